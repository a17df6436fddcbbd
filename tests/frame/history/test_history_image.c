// SPDX-License-Identifier: MIT
// Whole images of what changes much, against what a plain copy of every tick says: regions that share the room, tables
// with more room than rows, providers that come and go, and random games of hostile sizes.

#include "support/support.h"

#include "nebula/history.h"
#include "nebula/store.h"

#include "frame/history/history.h"

// --- structs ---

#define AREA_COUNT_MAX 6
#define AREA_BYTES_MAX 40000

typedef struct areas {
    unsigned char bytes[AREA_COUNT_MAX][AREA_BYTES_MAX];
    size_t sizes[AREA_COUNT_MAX];
    uint32_t count;
    nb_states *states;
    nb_history *history;
} areas;

static nb_provider areas_add(areas *a, uint32_t index) {
    char name[] = {'a', (char)('0' + index), 0};
    nb_provider_desc desc = {.name = name, .data = a->bytes[index], .size_bytes = a->sizes[index]};
    nb_provider out;
    assert_int_equal(nb_states_add(a->states, &desc, &out), NB_OK);
    return out;
}

static void areas_open(areas *a, uint32_t count, const size_t *sizes, nb_history_desc desc) {
    memset(a, 0, sizeof *a);
    a->count = count;
    assert_int_equal(nb_states_create(NULL, &a->states), NB_OK);
    for (uint32_t i = 0; i < count; ++i) {
        a->sizes[i] = sizes[i];
        areas_add(a, i);
    }
    desc.states = a->states;
    desc.event_count_max = desc.command_count_max = 1;
    assert_int_equal(nb_history_create(&desc, &a->history), NB_OK);
}

static void areas_close(areas *a) {
    nb_history_destroy(a->history);
    nb_states_destroy(a->states);
}

static void area_storm(areas *a, uint32_t index, uint64_t tick) {
    for (size_t i = 0; i < a->sizes[index]; ++i) a->bytes[index][i] = (unsigned char)(tick * 7 + i + index);
}

static uint64_t depth(const nb_history *history) {
    nb_history_stats stats = nb_history_stats_get(history);
    return stats.tick_newest - stats.tick_oldest;
}

// The first has taken all images, or all but a few, when the second begins to change: the past is not given up for
// what does not come of it.
static void check_late_region(areas *a, size_t bytes_max, uint64_t first_count, uint64_t depth_min) {
    const size_t sizes[] = {8192, 8192};
    areas_open(a, 2, sizes, (nb_history_desc){.bytes_max = bytes_max, .tick_count_max = 1000});
    uint64_t tick = 0, begin = first_count % 2 == 0 ? first_count : 0, last = first_count + depth_min + 30;
    for (; tick < last; ++tick) {
        if (begin != 0 && tick == begin) assert_int_equal(nb_history_confirm(a->history, tick - 1), NB_OK);
        area_storm(a, tick < first_count ? 0 : 1, tick);
        assert_int_equal(nb_history_save(a->history, tick), NB_OK);
        assert_true(tick < begin + depth_min || depth(a->history) >= depth_min);
    }
    for (uint64_t back = tick - depth_min; back < tick; ++back) {
        assert_int_equal(nb_history_rewind(a->history, back), NB_OK);
        assert_int_equal(a->bytes[1][17], (unsigned char)(back * 7 + 17 + 1));
        assert_int_equal(a->bytes[0][17], (unsigned char)((first_count - 1) * 7 + 17));
    }
    areas_close(a);
}

TEST(region_that_comes_late_costs_no_past) {
    static areas a;
    // A quarter of it is for changes: some 12 of these, and some 120.
    for (uint64_t first_count = 20; first_count < 80; ++first_count) {
        check_late_region(&a, (size_t)512 << 10, first_count, 10);
    }
    for (uint64_t first_count = 360; first_count < 420; first_count += 5) {
        check_late_region(&a, (size_t)4 << 20, first_count, 64);
    }
}

// A struct too large for images has the room that others do not use.
TEST(room_that_no_image_can_use_is_for_changes) {
    static areas a;
    const size_t sizes[] = {40000, 5000};
    for (uint32_t count = 1; count <= 2; ++count) {
        areas_open(&a, count, sizes, (nb_history_desc){.bytes_max = 256 << 10, .tick_count_max = 10});
        for (uint64_t tick = 0; tick < 20; ++tick) {
            for (uint32_t i = 0; i < count; ++i) area_storm(&a, i, tick);
            assert_int_equal(nb_history_save(a.history, tick), NB_OK);
        }
        assert_int_equal(nb_history_stats_get(a.history).change_bytes_max / 64, (256 << 10) / 64);
        assert_true(depth(a.history) >= (count == 1 ? 6 : 4)); // of 256 KiB, or of 200
        areas_close(&a);
    }
}

// --- reach ---

#define REACH_BYTES_MAX ((size_t)1 << 16)

typedef struct mix {
    const char *name;
    size_t size_bytes[2], changed_bytes[2]; // of two structs, the second may be none
    uint64_t second_from;                   // the tick from which on it changes
} mix;

static const mix mixes[] = {
    {"large, little of it changes", {REACH_BYTES_MAX, 0}, {3000, 0}, 0},
    {"the same, and a small one that never changes", {REACH_BYTES_MAX, 5000}, {3000, 0}, 0},
    {"the same, and a small one all of which changes", {REACH_BYTES_MAX, 5000}, {3000, 5000}, 0},
    {"the same, and that begins late", {REACH_BYTES_MAX, 5000}, {3000, 5000}, 450},
    {"all of one changes", {20000, 0}, {20000, 0}, 0},
    {"all of two change", {20000, 6000}, {20000, 6000}, 300},
};

static uint64_t reach_of(const mix *m, size_t bytes_max, uint32_t tick_count_max) {
    static unsigned char bytes[2][REACH_BYTES_MAX];
    nb_states *states = NULL;
    nb_history *history = NULL;
    memset(bytes, 0, sizeof bytes);
    assert_int_equal(nb_states_create(NULL, &states), NB_OK);
    for (uint32_t i = 0; i < 2 && m->size_bytes[i] != 0; ++i) {
        nb_provider_desc desc = {.name = i == 0 ? "a" : "b", .data = bytes[i], .size_bytes = m->size_bytes[i]};
        assert_int_equal(nb_states_add(states, &desc, NULL), NB_OK);
    }
    // Room for input as an engine has it.
    nb_history_desc desc = {.states = states, .bytes_max = bytes_max, .tick_count_max = tick_count_max};
    assert_int_equal(nb_history_create(&desc, &history), NB_OK);
    for (uint64_t tick = 0; tick < 900; ++tick) {
        for (uint32_t i = 0; i < 2; ++i) {
            bool is_calm = i == 1 && tick < m->second_from;
            for (size_t at = 0; !is_calm && at < m->changed_bytes[i]; at += 8)
                bytes[i][(at + tick * 64) % m->size_bytes[i]] += 1;
        }
        assert_int_equal(nb_history_save(history, tick), NB_OK);
    }
    uint64_t reach = depth(history);
    nb_history_destroy(history);
    nb_states_destroy(states);
    return reach;
}

// More ticks, or more bytes, never keep a shorter past; and what is never an image takes no room from what changes.
TEST(reach_grows_with_its_limits) {
    static const uint32_t tick_counts[] = {512, 1024, 8192};
    static const size_t sizes[] = {(size_t)512 << 10, (size_t)1 << 20, (size_t)2 << 20};
    uint64_t reach[sizeof mixes / sizeof mixes[0]][3][3];
    for (size_t m = 0; m < sizeof mixes / sizeof mixes[0]; ++m) {
        for (size_t s = 0; s < 3; ++s) {
            for (size_t t = 0; t < 3; ++t) {
                uint64_t now = reach[m][s][t] = reach_of(&mixes[m], sizes[s], tick_counts[t]);
                uint64_t fewer_ticks = t != 0 ? reach[m][s][t - 1] : 0, fewer_bytes = s != 0 ? reach[m][s - 1][t] : 0;
                if (now >= fewer_ticks && now >= fewer_bytes) continue;
                fail_msg("%s: %zu bytes and %u ticks keep %u, less keeps %u or %u", mixes[m].name, sizes[s],
                         (unsigned)tick_counts[t], (unsigned)now, (unsigned)fewer_ticks, (unsigned)fewer_bytes);
            }
        }
    }
    for (size_t s = 0; s < 3; ++s) {
        assert_int_equal(reach[1][s][2], reach[0][s][2]);
        // By the bytes that a tick takes of each kind: within a tenth of what all of it would keep.
        uint64_t sparse_bytes = sizes[s] / reach[0][s][2], both = sizes[s] / (sparse_bytes + 5120);
        assert_true(reach[2][s][2] >= both * 9 / 10);
        assert_true(reach[3][s][2] >= both * 9 / 10);
    }
}

// --- tables ---

enum { PLACE, KIND, COLUMN_COUNT };

typedef struct cell {
    uint32_t numbers[3];
} cell;

typedef struct field {
    nb_store *world;
    nb_table units;
    nb_states *states;
    nb_history *history;
} field;

static void field_open(field *f, uint32_t row_count_max, nb_history_desc desc) {
    static const nb_column_desc columns[COLUMN_COUNT] = {{.name = "place", .size_bytes = sizeof(cell)},
                                                         {.name = "kind", .size_bytes = 1}};
    nb_table_desc units = {
        .name = "units", .row_count_max = row_count_max, .columns = columns, .column_count = COLUMN_COUNT};
    memset(f, 0, sizeof *f);
    assert_int_equal(nb_store_create(NULL, &f->world), NB_OK);
    assert_int_equal(nb_store_table_add(f->world, &units, &f->units), NB_OK);
    assert_int_equal(nb_states_create(NULL, &f->states), NB_OK);
    desc.states = f->states;
    desc.world = f->world;
    desc.event_count_max = desc.command_count_max = 1;
    assert_int_equal(nb_history_create(&desc, &f->history), NB_OK);
}

static void field_close(field *f) {
    nb_history_destroy(f->history);
    nb_states_destroy(f->states);
    nb_store_destroy(f->world);
}

// Brings the table to so many rows; what comes is zero.
static void field_resize(field *f, uint32_t row_count) {
    nb_entity entity;
    for (uint32_t count; (count = nb_store_row_count(f->world, f->units)) != row_count;) {
        if (count > row_count) {
            assert_int_equal(nb_store_despawn(f->world, nb_store_entity(f->world, f->units, count - 1)), NB_OK);
            continue;
        }
        assert_int_equal(nb_store_spawn(f->world, f->units, &entity), NB_OK);
        assert_int_equal(NB_STORE_ROW(f->world, f->units, PLACE, cell, count)->numbers[2], 0);
        assert_int_equal(*NB_STORE_ROW(f->world, f->units, KIND, uint8_t, count), 0);
    }
}

static void field_storm(field *f, uint64_t tick) {
    cell *places = NB_STORE_ROWS_WRITE(f->world, f->units, PLACE, cell);
    uint8_t *kinds = NB_STORE_ROWS_WRITE(f->world, f->units, KIND, uint8_t);
    NB_STORE_EACH_ROW(row, f->world, f->units) {
        places[row] = (cell){{(uint32_t)tick * 3 + row, row, 0xabcdu}};
        kinds[row] = (uint8_t)(tick + row);
    }
}

// Room for images is taken for all rows that there may be; where there are few, changes take less.
TEST(table_with_few_of_its_rows_keeps_a_long_past) {
    field f;
    field_open(&f, 30000, (nb_history_desc){.bytes_max = (size_t)4 << 20, .tick_count_max = 200});
    field_resize(&f, 500);
    for (uint64_t tick = 0; tick <= 120; ++tick) {
        field_storm(&f, tick);
        assert_int_equal(nb_history_save(f.history, tick), NB_OK);
    }
    assert_true(depth(f.history) >= 100); // a mebibyte of changes of 8 KiB
    field_close(&f);
}

// Images are dealt out anew when providers come; what was in them is no past of what gets them.
TEST(images_dealt_out_again_are_empty) {
    field f;
    static test_log log;
    uint32_t late = 0;
    nb_provider_desc desc = {.name = "late", .data = &late, .size_bytes = sizeof late};
    field_open(&f, 1000,
               (nb_history_desc){.bytes_max = (size_t)1 << 20, .tick_count_max = 200, .hooks = test_hooks(&log, NULL)});
    field_resize(&f, 1000);
    uint64_t tick = 0;
    for (; tick < 30; ++tick) {
        field_storm(&f, tick);
        assert_int_equal(nb_history_save(f.history, tick), NB_OK);
    }
    assert_int_equal(nb_states_add(f.states, &desc, NULL), NB_OK);
    field_resize(&f, 400);
    for (; tick < 40; ++tick) {
        field_storm(&f, tick);
        assert_int_equal(nb_history_save(f.history, tick), NB_OK);
    }
    field_resize(&f, 900);
    assert_int_equal(nb_history_save(f.history, tick), NB_OK);
    assert_int_equal(nb_history_rewind(f.history, tick - 1), NB_OK);
    assert_true(nb_store_is_valid(f.world));
    field_resize(&f, 900); // of zeros
    field_close(&f);
}

// --- random games against copies of every tick ---

#define TICKS_KEPT 256 // a power of two above what is kept here
#define ROWS_MAX 700
#define LIST_BYTES_MAX 6000
#define BLOB_BYTES_MAX (AREA_COUNT_MAX * AREA_BYTES_MAX + 2 * LIST_BYTES_MAX + 64 * ROWS_MAX + 4096)

typedef struct list {
    unsigned char bytes[LIST_BYTES_MAX];
    size_t size_bytes;
    bool refuses;
} list;

static size_t list_save(void *user, void *bytes, size_t capacity_bytes) {
    const list *self = user;
    if (bytes != NULL && self->size_bytes <= capacity_bytes) memcpy(bytes, self->bytes, self->size_bytes);
    return self->size_bytes;
}

static nb_result list_load(void *user, const void *bytes, size_t size_bytes) {
    list *self = user;
    if (self->refuses) return NB_ERR_UNSUPPORTED;
    memcpy(self->bytes, bytes, size_bytes);
    self->size_bytes = size_bytes;
    return NB_OK;
}

typedef struct blob {
    unsigned char *bytes;
    size_t size_bytes;
} blob;

typedef struct game {
    areas a; // its states and history are those of f
    field f;
    list list;
    test_heap heap;
    test_log log;
    nb_provider late; // of the last area, which comes and goes
    bool has_late;
    uint64_t random, newest, calm_until[AREA_COUNT_MAX + 1];
    uint32_t tick_count_max;
    blob kept[TICKS_KEPT]; // by tick
    blob now;
} game;

static uint64_t pick(game *g, uint64_t count) { return test_random(&g->random) % count; }

// All that is kept, as it is now.
static void blob_fill(game *g, blob *out) {
    if (out->bytes == NULL) out->bytes = malloc(BLOB_BYTES_MAX);
    assert_non_null(out->bytes);
    size_t at = 0, world_bytes = 0;
    for (uint32_t i = 0; i < g->a.count; ++i) {
        memcpy(out->bytes + at, g->a.bytes[i], g->a.sizes[i]);
        at += g->a.sizes[i];
    }
    memcpy(out->bytes + at, g->list.bytes, g->list.size_bytes);
    at += g->list.size_bytes;
    assert_int_equal(nb_store_save(g->f.world, NB_SAVE_HISTORY, out->bytes + at, BLOB_BYTES_MAX - at, &world_bytes),
                     NB_OK);
    out->size_bytes = at + world_bytes;
}

static void blob_check(game *g, const blob *expected) {
    blob_fill(g, &g->now);
    assert_int_equal(g->now.size_bytes, expected->size_bytes);
    assert_memory_equal(g->now.bytes, expected->bytes, expected->size_bytes);
}

// Nothing, a few bytes, around the part from which on images are made, all of it.
static void area_change(game *g, uint32_t index) {
    size_t size_bytes = g->a.sizes[index], begin = pick(g, size_bytes), count = 0;
    if (g->newest >= g->calm_until[index]) count = pick(g, 4) == 0 ? size_bytes / 3 + pick(g, 130) : size_bytes;
    if (g->newest >= g->calm_until[index] && pick(g, 40) == 0) g->calm_until[index] = g->newest + pick(g, 60);
    if (count == 0) count = pick(g, 3);
    uint64_t salt = test_random(&g->random);
    for (size_t i = 0; i < count && i < size_bytes; ++i) {
        g->a.bytes[index][(begin + i) % size_bytes] += (unsigned char)(salt + i * 2 + 1);
    }
}

static void field_change(game *g) {
    static const uint32_t counts[] = {0, 1, 63, 64, 65, 341, 342, 400, 639, 640, 641, ROWS_MAX};
    field *f = &g->f;
    if (pick(g, 4) == 0) field_resize(f, counts[pick(g, sizeof counts / sizeof counts[0])]);
    uint32_t row_count = nb_store_row_count(f->world, f->units);
    if (row_count == 0) return;
    if (pick(g, 4) != 0) {
        field_storm(f, test_random(&g->random));
        return;
    }
    uint32_t row = (uint32_t)pick(g, row_count);
    NB_STORE_ROW_WRITE(f->world, f->units, PLACE, cell, row)->numbers[0] += 1;
    nb_store_despawn(f->world, nb_store_entity(f->world, f->units, (uint32_t)pick(g, row_count)));
}

static void list_change(game *g) {
    if (pick(g, 4) == 0) g->list.size_bytes = pick(g, pick(g, 8) == 0 ? LIST_BYTES_MAX : 300);
    for (uint64_t i = pick(g, 100); i > 0 && g->list.size_bytes > 0; --i) {
        g->list.bytes[pick(g, g->list.size_bytes)] += 1;
    }
}

static void game_change(game *g) {
    for (uint32_t i = 0; i < g->a.count; ++i) area_change(g, i);
    field_change(g);
    list_change(g);
}

static void game_save(game *g, uint64_t tick) {
    bool is_short = pick(g, 50) == 0;
    if (is_short) g->heap.fail_from = 1;
    nb_result result = nb_history_save(g->f.history, tick);
    g->heap.fail_from = 0;
    if (result == NB_ERR_MEMORY && is_short) result = nb_history_save(g->f.history, tick);
    assert_true(result == NB_OK || result == NB_FULL);
    g->newest = tick;
    blob_fill(g, &g->kept[tick % TICKS_KEPT]);
    nb_history_stats stats = nb_history_stats_get(g->f.history);
    assert_true(stats.has_begun && stats.tick_newest == tick && stats.tick_last == tick && stats.tick_oldest <= tick);
    assert_true(result == NB_OK || stats.tick_oldest == tick);
    assert_true(tick - stats.tick_oldest <= g->tick_count_max);
    assert_true(stats.used_bytes <= stats.change_bytes_max);
}

static void game_rewind(game *g, uint64_t tick) {
    assert_int_equal(nb_history_rewind(g->f.history, tick), NB_OK);
    g->newest = tick;
    blob_check(g, &g->kept[tick % TICKS_KEPT]);
}

static uint64_t pick_kept(game *g) {
    nb_history_stats stats = nb_history_stats_get(g->f.history);
    return stats.tick_oldest + pick(g, stats.tick_last - stats.tick_oldest + 1);
}

static void refuse_a_rewind(game *g) {
    list_change(g); // not saved
    blob_fill(g, &g->now);
    blob before = g->now;
    g->now = (blob){0};
    g->list.refuses = true;
    nb_result result = nb_history_rewind(g->f.history, pick_kept(g));
    g->list.refuses = false;
    assert_true(result == NB_OK || result == NB_ERR_UNSUPPORTED); // the list may be the same
    if (result == NB_ERR_UNSUPPORTED) blob_check(g, &before);
    g->newest = nb_history_stats_get(g->f.history).tick_newest;
    free(before.bytes);
}

static void come_or_go(game *g) {
    if (g->has_late) {
        assert_int_equal(nb_states_remove(g->f.states, g->late), NB_OK);
        g->a.count -= 1;
    } else {
        g->a.count += 1;
        g->late = areas_add(&g->a, g->a.count - 1);
    }
    g->has_late = !g->has_late;
    game_save(g, g->newest + pick(g, 3));
    assert_int_equal(nb_history_stats_get(g->f.history).tick_oldest, g->newest);
}

// What an engine does where a state that was sent does not do.
static void load_and_return(game *g) {
    uint64_t tick = pick_kept(g);
    game_change(g);
    if (pick(g, 2) == 0) { // as from a file: all rows are new
        blob_fill(g, &g->now);
        size_t size_bytes = 0;
        assert_int_equal(nb_store_save(g->f.world, NB_SAVE_FILE, g->now.bytes, BLOB_BYTES_MAX, &size_bytes), NB_OK);
        assert_int_equal(nb_store_load(g->f.world, g->now.bytes, size_bytes), NB_OK);
    }
    assert_int_equal(nbi_history_return(g->f.history, tick), NB_OK);
    g->newest = tick;
    blob_check(g, &g->kept[tick % TICKS_KEPT]);
}

static void confirm_some(game *g) {
    uint64_t oldest = nb_history_stats_get(g->f.history).tick_oldest, tick = oldest + pick(g, g->newest - oldest + 1);
    assert_int_equal(nb_history_confirm(g->f.history, tick), NB_OK);
    nb_history_stats stats = nb_history_stats_get(g->f.history);
    assert_int_equal(stats.tick_oldest, tick);
    if (tick == stats.tick_last) assert_int_equal(stats.used_bytes, 0);
}

static void sweep(game *g) {
    nb_history_stats stats = nb_history_stats_get(g->f.history);
    for (uint64_t tick = stats.tick_oldest; tick <= stats.tick_last; ++tick) game_rewind(g, tick);
    assert_true(nb_store_is_valid(g->f.world));
}

static void act(game *g) {
    switch (pick(g, 40)) {
    case 0: come_or_go(g); break;
    case 1: nb_history_reset(g->f.history), game_save(g, g->newest + pick(g, 1000)); break;
    case 2: game_change(g), game_save(g, g->newest + 2); break; // one is left out
    case 3:
    case 4: refuse_a_rewind(g); break;
    case 5:
    case 6: load_and_return(g); break;
    case 7:
    case 8: confirm_some(g); break;
    case 9: sweep(g); break;
    case 10:
    case 11:
    case 12: game_change(g), game_save(g, g->newest); break; // a correction
    case 13: game_change(g); break;                          // never saved
    default: game_rewind(g, pick_kept(g)); break;
    }
}

static void game_open(game *g, uint64_t seed) {
    static const size_t sizes[] = {1, 63, 64, 65, 4095, 4096, 4097, 8191, 24511, 24512, 24513, 24577, AREA_BYTES_MAX};
    static const size_t change_sizes[] = {4096,    20000,  (256 << 10) - 1, 256 << 10, (256 << 10) + 1, (300 << 10) + 7,
                                          1 << 20, 4 << 20};
    static const uint32_t tick_counts[] = {1, 2, 3, 10, 100};
    memset(g, 0, sizeof *g);
    g->random = seed;
    g->tick_count_max = tick_counts[pick(g, 5)];
    size_t change_bytes = change_sizes[pick(g, 8)];
    nb_history_desc desc = {
        .tick_count_max = g->tick_count_max, .bytes_max = change_bytes, .hooks = test_hooks(&g->log, &g->heap)};
    field_open(&g->f, ROWS_MAX, desc);
    assert_int_equal(nb_history_stats_get(g->f.history).change_bytes_max / 64, change_bytes / 64);
    g->a.states = g->f.states;
    g->a.count = (uint32_t)pick(g, AREA_COUNT_MAX);
    for (uint32_t i = 0; i < AREA_COUNT_MAX; ++i) g->a.sizes[i] = sizes[pick(g, sizeof sizes / sizeof sizes[0])];
    for (uint32_t i = 0; i < g->a.count; ++i) areas_add(&g->a, i);
    nb_provider_desc desc_of_list = {.name = "list", .save = list_save, .load = list_load, .user = &g->list};
    assert_int_equal(nb_states_add(g->f.states, &desc_of_list, NULL), NB_OK);
}

static void game_play(game *g, uint64_t rounds) {
    game_save(g, pick(g, 3));
    for (uint64_t round = 0; round < rounds; ++round) {
        for (uint64_t i = pick(g, 12); i > 0; --i) {
            game_change(g);
            game_save(g, g->newest + 1);
        }
        act(g);
    }
    sweep(g);
    for (uint32_t i = 0; i < TICKS_KEPT; ++i) free(g->kept[i].bytes);
    free(g->now.bytes);
    field_close(&g->f);
    assert_int_equal(g->heap.live_count.value, 0);
}

TEST(every_kept_tick_is_what_was_copied) {
    static game g;
    uint64_t seed = test_seed(__func__);
    for (uint64_t i = 0; i < test_size(40, 300, 2000); ++i) {
        game_open(&g, seed + i);
        game_play(&g, test_size(20, 40, 100));
    }
}
