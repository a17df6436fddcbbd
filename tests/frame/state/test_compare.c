// SPDX-License-Identifier: MIT
// Where two saved states differ: every kind of place is found and named, and bytes from anywhere are read safely.

#include "frame/store/store_fixture.h"

#include "nebula/compare.h"
#include "nebula/state.h"

// --- a world ---

static fixture populated(uint32_t count) {
    fixture f = fixture_plain(200);
    for (uint32_t i = 0; i < count; ++i) unit_spawn(&f, i);
    return f;
}

// What nb_store_compare says of the two, which end.
static nb_result compared(const fixture *f, saved here, saved there, nb_difference *out) {
    nb_result result = nb_store_compare(f->world, here.bytes, here.size_bytes, there.bytes, there.size_bytes, out);
    free(here.bytes);
    free(there.bytes);
    return result;
}

static saved file_of(const fixture *f) { return fixture_save(f, NB_SAVE_FILE); }

TEST(same_states_have_no_difference) {
    fixture f = populated(100);
    nb_difference difference = {.row = 77};
    saved before = file_of(&f);
    *NB_STORE_ROW_WRITE(f.world, f.units, CACHE, uint16_t, 3) = 9; // local
    assert_int_equal(compared(&f, before, file_of(&f), &difference), NB_EMPTY);
    assert_int_equal(difference.row, 77);
    // With incarnations and without: they are no part of the state.
    assert_int_equal(compared(&f, file_of(&f), fixture_save(&f, NB_SAVE_HISTORY), &difference), NB_EMPTY);
    nb_store_destroy(f.world);
}

TEST(value_is_named_with_row_and_entity) {
    fixture f = populated(100);
    nb_difference d;
    saved before = file_of(&f);
    *NB_STORE_ROW_WRITE(f.world, f.units, HEALTH, uint32_t, 17) += 0x100;
    *NB_STORE_ROW_WRITE(f.world, f.units, HEALTH, uint32_t, 90) += 1;
    NB_STORE_ROW_WRITE(f.world, f.units, NOTE, padded, 3)->number = 5;
    *NB_STORE_SINGLETON_WRITE(f.world, f.clock, CLOCK_TICK, uint64_t) = 5;
    nb_entity entity = nb_store_entity(f.world, f.units, 17);
    assert_int_equal(compared(&f, before, file_of(&f), &d), NB_OK);
    assert_int_equal(d.kind, NB_DIFFERENCE_VALUE);
    assert_string_equal(d.provider, "world");
    assert_string_equal(d.table, "units");
    assert_string_equal(d.column, "health");
    assert_int_equal(d.row, 17);
    assert_int_equal(d.entity_here.value, entity.value);
    assert_int_equal(d.entity_there.value, entity.value);
    assert_int_equal(d.row_count, 2);
    assert_int_equal(d.column_count, 3); // health, note, tick
    assert_int_equal(d.count_here, 100);
    assert_int_equal(d.offset_bytes, 1);
    assert_int_equal(d.size_bytes, 4);
    assert_int_equal(d.value_bytes, 4);
    assert_memory_equal(d.here, "\x11\0\0\0", 4);
    assert_memory_equal(d.there, "\x11\1\0\0", 4);
    assert_int_equal(d.range_count, 2);
    assert_int_equal(d.ranges[0].row, 17);
    assert_int_equal(d.ranges[1].row, 90);
    assert_int_equal(d.ranges[1].here, 90);
    assert_int_equal(d.ranges[1].there, 91);
    assert_string_equal(d.others, "units.note, clock.tick");
    char expected[NB_DIFFERENCE_TEXT_SIZE];
    snprintf(expected, sizeof expected,
             "world: units.health, row 17 (entity 0x%llx): 0x00000011 here, 0x00000111 there "
             "(2 rows, 3 columns differ); row 90: 0x5a here, 0x5b there; also units.note, clock.tick",
             (unsigned long long)entity.value);
    assert_string_equal(d.text, expected);
    nb_store_destroy(f.world);
}

TEST(large_value_is_shown_from_where_it_differs) {
    fixture f = populated(4);
    nb_difference d;
    saved before = file_of(&f);
    NB_STORE_ROW_WRITE(f.world, f.units, POSITION, vec3, 2)->z = 2.0f; // 12 bytes: shown whole
    assert_int_equal(compared(&f, before, file_of(&f), &d), NB_OK);
    assert_string_equal(d.column, "position");
    assert_int_equal(d.offset_bytes, 11);
    assert_int_equal(d.value_bytes, 12);
    assert_non_null(strstr(d.text, ": 000000000000000000000000 here, 000000000000000000000040 there"));
    nb_store_destroy(f.world);

    const nb_column_desc columns[] = {{.name = "grid", .size_bytes = 100}};
    nb_table_desc desc = {.name = "maps", .columns = columns, .column_count = 1, .is_singleton = true};
    nb_store *world = NULL;
    nb_table maps;
    assert_int_equal(nb_store_create(NULL, &world), NB_OK);
    assert_int_equal(nb_store_table_add(world, &desc, &maps), NB_OK);
    fixture g = {.world = world};
    before = file_of(&g);
    ((unsigned char *)nb_store_row_write(world, maps, 0, 100, 0))[91] = 7;
    assert_int_equal(compared(&g, before, file_of(&g), &d), NB_OK);
    assert_int_equal(d.offset_bytes, 91);
    assert_int_equal(d.value_bytes, 9);
    assert_non_null(strstr(d.text, "maps.grid, row 0"));
    assert_non_null(strstr(d.text, ", byte 91 of 100: 000000000000000000 here, 070000000000000000 there"));
    nb_store_destroy(world);
}

TEST(rows_that_came_went_or_moved_are_told_apart) {
    fixture f = populated(10);
    nb_difference d;
    // One more.
    saved before = file_of(&f), again = file_of(&f);
    nb_entity extra = unit_spawn(&f, 1);
    assert_int_equal(compared(&f, before, file_of(&f), &d), NB_OK);
    assert_int_equal(d.kind, NB_DIFFERENCE_ROW_COUNT);
    assert_int_equal(d.count_here, 10);
    assert_int_equal(d.count_there, 11);
    assert_int_equal(d.row, 10);
    assert_int_equal(d.entity_here.value, 0);
    assert_int_equal(d.entity_there.value, extra.value);
    assert_non_null(strstr(d.text, "units: 10 rows here, 11 there, row 10: entity 0x0 here, 0x"));
    // Gone again: the rows are as they were, and the next one will be another entity.
    assert_int_equal(nb_store_despawn(f.world, extra), NB_OK);
    assert_int_equal(compared(&f, again, file_of(&f), &d), NB_OK);
    assert_int_equal(d.kind, NB_DIFFERENCE_HANDLES);
    assert_string_equal(d.text, "world: units: the same rows, other handles to come");
    // Another order: the last one takes the place of the one that went, and a new one comes.
    before = file_of(&f);
    assert_int_equal(nb_store_despawn(f.world, nb_store_entity(f.world, f.units, 4)), NB_OK);
    unit_spawn(&f, 1);
    assert_int_equal(compared(&f, before, file_of(&f), &d), NB_OK);
    assert_int_equal(d.kind, NB_DIFFERENCE_ROW_ORDER);
    assert_int_equal(d.row, 4);
    assert_int_equal(d.row_count, 2); // 4, and 9, where the new one is
    assert_int_equal(d.entity_there.value, nb_store_entity(f.world, f.units, 4).value);
    assert_int_not_equal(d.entity_here.value, d.entity_there.value);
    assert_int_equal(d.column_count, 0);
    nb_store_destroy(f.world);
}

TEST(teleport_mark_is_named) {
    fixture f = populated(70);
    nb_difference d;
    nb_store_tick_begin(f.world); // marks of the spawns go
    nb_store_tick_end(f.world);
    saved before = file_of(&f);
    nb_entity entity = nb_store_entity(f.world, f.units, 66);
    assert_int_equal(nb_store_teleport(f.world, entity), NB_OK);
    assert_int_equal(compared(&f, before, file_of(&f), &d), NB_OK);
    assert_int_equal(d.kind, NB_DIFFERENCE_TELEPORT);
    assert_int_equal(d.row, 66);
    assert_int_equal(d.here[0], 0);
    assert_int_equal(d.there[0], 1);
    assert_non_null(strstr(d.text, ", teleport mark: 0x00 here, 0x01 there"));
    nb_store_destroy(f.world);
}

// A later table, behind one of another size in the two.
TEST(singleton_behind_other_rows_is_read_where_it_is) {
    fixture f = populated(10);
    nb_difference d;
    saved before = file_of(&f);
    *NB_STORE_SINGLETON_WRITE(f.world, f.clock, CLOCK_TICK, uint64_t) = 5;
    saved middle = file_of(&f);
    unit_spawn(&f, 1);
    assert_int_equal(compared(&f, before, file_of(&f), &d), NB_OK);
    assert_string_equal(d.table, "units");
    assert_int_equal(d.column_count, 1);
    assert_int_equal(compared(&f, middle, file_of(&f), &d), NB_OK);
    assert_int_equal(d.column_count, 0);
    nb_store_destroy(f.world);
}

// Any one value, in any place: found where it was written, whatever else there is.
TEST(any_single_write_is_found) {
    uint64_t random = test_seed(__func__);
    fixture f = populated(150);
    for (uint64_t i = 0; i < test_size(300, 3000, 30000); ++i) {
        saved before = file_of(&f);
        uint32_t row = (uint32_t)(test_random(&random) % 150);
        uint32_t column = (uint32_t)(test_random(&random) % 3);
        static const char *const names[] = {"position", "health", "note"};
        if (column == POSITION) NB_STORE_ROW_WRITE(f.world, f.units, POSITION, vec3, row)->y += 1.0f;
        if (column == HEALTH) *NB_STORE_ROW_WRITE(f.world, f.units, HEALTH, uint32_t, row) ^= 1u << i % 32;
        if (column == NOTE) NB_STORE_ROW_WRITE(f.world, f.units, NOTE, padded, row)->kind ^= 1;
        nb_difference d;
        assert_int_equal(compared(&f, before, file_of(&f), &d), NB_OK);
        assert_int_equal(d.kind, NB_DIFFERENCE_VALUE);
        assert_string_equal(d.column, names[column]);
        assert_int_equal(d.row, row);
        assert_int_equal(d.row_count, 1);
        assert_int_equal(d.column_count, 1);
    }
    nb_store_destroy(f.world);
}

// --- bytes from anywhere ---

// As in store_save.c: the layout, a magic number, the size and the hash of what follows, the kind.
static void reseal(saved *s) {
    uint64_t words[5];
    memcpy(words, s->bytes, sizeof words);
    words[2] = s->size_bytes;
    words[3] = nb_hash64(s->bytes + sizeof words, s->size_bytes - sizeof words, words[4]);
    memcpy(s->bytes, words, sizeof words);
}

TEST(torn_and_forged_bytes_are_refused_or_compared) {
    uint64_t random = test_seed(__func__);
    test_heap heap = {0};
    static test_log log; // reports are many
    nb_hooks hooks = test_hooks(&log, &heap);
    fixture f = fixture_open(200, &hooks);
    for (uint32_t i = 0; i < 70; ++i) unit_spawn(&f, i);
    saved whole = file_of(&f);
    uint64_t hash = nb_store_hash(f.world), calls = nbi_atomic_load_relaxed_u64(&heap.call_count);
    for (uint64_t i = 0; i < test_size(2000, 20000, 200000); ++i) {
        saved forged = {.size_bytes = whole.size_bytes};
        if (i % 3 == 0) forged.size_bytes = (size_t)(test_random(&random) % whole.size_bytes);
        forged.bytes = malloc(forged.size_bytes + 1); // exactly so many, for the address sanitizer to see
        assert_non_null(forged.bytes);
        memcpy(forged.bytes, whole.bytes, forged.size_bytes);
        for (uint64_t j = test_random(&random) % 4; forged.size_bytes > 40 && j > 0; --j) {
            // Most counts are near the beginning.
            size_t range = j % 2 == 0 ? forged.size_bytes - 40 : (forged.size_bytes - 40) % 64 + 1;
            forged.bytes[40 + test_random(&random) % range] = (unsigned char)test_random(&random);
        }
        if (forged.size_bytes >= 40 && i % 2 == 0) reseal(&forged);
        nb_difference d;
        bool is_turned = test_random(&random) % 2 == 0;
        nb_result result =
            is_turned ? nb_store_compare(f.world, forged.bytes, forged.size_bytes, whole.bytes, whole.size_bytes, &d)
                      : nb_store_compare(f.world, whole.bytes, whole.size_bytes, forged.bytes, forged.size_bytes, &d);
        assert_true(result == NB_OK || result == NB_EMPTY || result == NB_ERR_RANGE || result == NB_ERR_UNSUPPORTED);
        if (result == NB_OK) assert_true(strlen(d.text) < sizeof d.text && d.text[0] != '\0');
        free(forged.bytes);
    }
    assert_int_equal(nb_store_hash(f.world), hash);
    assert_true(nb_store_is_valid(f.world));
    assert_int_equal(nbi_atomic_load_relaxed_u64(&heap.call_count), calls); // comparing needs no heap
    free(whole.bytes);
    nb_store_destroy(f.world);
}

// --- providers ---

typedef struct board {
    uint8_t squares[40];
    uint32_t count; // of squares that are saved
} board;

static size_t board_save(void *user, void *bytes, size_t capacity_bytes) {
    const board *self = user;
    if (bytes != NULL && self->count <= capacity_bytes) memcpy(bytes, self->squares, self->count);
    return self->count;
}

static nb_result board_load(void *user, const void *bytes, size_t size_bytes) {
    (void)user, (void)bytes, (void)size_bytes;
    return NB_ERR_UNSUPPORTED;
}

static nb_result board_locate(void *user, const void *here, size_t here_bytes, const void *there, size_t there_bytes,
                              nb_difference *out) {
    const unsigned char *a = here, *b = there;
    (void)user;
    if (here_bytes != there_bytes) return NB_EMPTY; // the size will do
    if (b[out->offset_bytes] == 66) return NB_ERR_RANGE;
    assert_int_equal(out->kind, NB_DIFFERENCE_BYTES);
    assert_true(a[out->offset_bytes] != b[out->offset_bytes]);
    out->kind = NB_DIFFERENCE_VALUE;
    snprintf(out->table, sizeof out->table, "board");
    snprintf(out->column, sizeof out->column, "square");
    out->row = (uint32_t)out->offset_bytes;
    out->size_bytes = out->value_bytes = 1;
    out->here[0] = a[out->offset_bytes];
    out->there[0] = b[out->offset_bytes];
    return NB_OK;
}

typedef struct desk {
    nb_states *states;
    struct {
        uint32_t left, right;
        uint64_t more[3];
    } score;
    uint32_t local;
    board plain, told;
    unsigned char before[1024], after[1024];
    size_t before_bytes, after_bytes;
} desk;

static void desk_open(desk *d) {
    memset(d, 0, sizeof *d);
    d->plain.count = d->told.count = 40;
    static test_log log;
    nb_states_desc states_desc = {.hooks = test_hooks(&log, NULL)};
    assert_int_equal(nb_states_create(&states_desc, &d->states), NB_OK);
    const nb_provider_desc descs[] = {
        {.name = "score", .data = &d->score, .size_bytes = sizeof d->score},
        {.name = "a local one", .data = &d->local, .size_bytes = 4, .flags = NB_PROVIDER_LOCAL},
        {.name = "plain", .save = board_save, .load = board_load, .user = &d->plain},
        {.name = "told", .save = board_save, .load = board_load, .locate = board_locate, .user = &d->told},
    };
    for (uint32_t i = 0; i < 4; ++i) assert_int_equal(nb_states_add(d->states, &descs[i], NULL), NB_OK);
    assert_int_equal(nb_states_save(d->states, d->before, sizeof d->before, &d->before_bytes), NB_OK);
}

static nb_result desk_compare(desk *d, nb_difference *out) {
    assert_int_equal(nb_states_save(d->states, d->after, sizeof d->after, &d->after_bytes), NB_OK);
    return nb_states_compare(d->states, d->before, d->before_bytes, d->after, d->after_bytes, out);
}

// A large struct, as of a game that keeps its state in one: every place is found, the first ones with their words.
TEST(every_range_is_counted_and_the_first_are_listed) {
    enum { BYTES = 100000 };
    static unsigned char bytes[BYTES], before[BYTES + 1024], after[BYTES + 1024];
    nb_states *states = NULL;
    nb_difference d;
    size_t before_bytes, after_bytes;
    nb_provider_desc desc = {.name = "game", .data = bytes, .size_bytes = sizeof bytes};
    assert_int_equal(nb_states_create(NULL, &states), NB_OK);
    assert_int_equal(nb_states_add(states, &desc, NULL), NB_OK);
    for (uint32_t count = 1; count <= 40; count += 13) {
        memset(bytes, 0, sizeof bytes);
        assert_int_equal(nb_states_save(states, before, sizeof before, &before_bytes), NB_OK);
        for (uint32_t i = 0; i < count; ++i) bytes[1003 + i * 2000] = bytes[1006 + i * 2000] = (unsigned char)(i + 1);
        bytes[BYTES - 1] = 9;
        assert_int_equal(nb_states_save(states, after, sizeof after, &after_bytes), NB_OK);
        assert_int_equal(nb_states_compare(states, before, before_bytes, after, after_bytes, &d), NB_OK);
        assert_int_equal(d.range_count, count + 1);
        assert_int_equal(d.differing_bytes, 2 * count + 1);
        for (uint32_t i = 0; i < count && i < NB_DIFFERENCE_RANGE_MAX; ++i) {
            assert_int_equal(d.ranges[i].offset_bytes, 1003 + i * 2000);
            assert_int_equal(d.ranges[i].size_bytes, 4); // with equal bytes between
            assert_int_equal(d.ranges[i].row, UINT32_MAX);
            assert_int_equal(d.ranges[i].here, 0);
            assert_true(d.ranges[i].there == ((uint64_t)(i + 1) << 24 | (uint64_t)(i + 1) << 48)); // the word at 1000
        }
        if (count > NB_DIFFERENCE_RANGE_MAX) continue;
        assert_int_equal(d.ranges[count].offset_bytes, BYTES - 1);
        assert_string_equal(d.text,
                            "game: byte 1003 of 100000: 00 here, 01 there; 2 ranges, 3 bytes differ; 1003 to 1006: "
                            "word 0x0000000000000000 here, 0x0001000001000000 there; 99999 to 99999: "
                            "word 0x0000000000000000 here, 0x0900000000000000 there");
    }
    assert_non_null(strstr(d.text, "; 33 more"));
    nb_states_destroy(states);
}

TEST(provider_and_place_are_named) {
    static desk d;
    nb_difference difference;
    desk_open(&d);
    d.local = 9;
    assert_int_equal(desk_compare(&d, &difference), NB_EMPTY);
    // In the order of names: told is behind score.
    d.told.squares[7] = 3;
    assert_int_equal(desk_compare(&d, &difference), NB_OK);
    assert_string_equal(difference.text, "told: board.square, row 7: 0x00 here, 0x03 there");
    d.score.right = 0x0100;
    assert_int_equal(desk_compare(&d, &difference), NB_OK);
    assert_int_equal(difference.kind, NB_DIFFERENCE_BYTES);
    assert_int_equal(difference.offset_bytes, 5);
    assert_string_equal(difference.text, "score: byte 5 of 32: 00 here, 01 there; also told");
    assert_int_equal(difference.provider_count, 2);
    assert_int_equal(difference.there[0], 1);
    d.plain.count = 39;
    assert_int_equal(desk_compare(&d, &difference), NB_OK);
    assert_int_equal(difference.kind, NB_DIFFERENCE_SIZE);
    assert_string_equal(difference.text, "plain: 40 bytes here, 39 there; also score, told");
    nb_states_destroy(d.states);
}

TEST(what_locate_returns_counts) {
    static desk d;
    nb_difference difference = {.row = 77};
    desk_open(&d);
    d.told.squares[7] = 66;
    assert_int_equal(desk_compare(&d, &difference), NB_ERR_RANGE);
    assert_int_equal(difference.row, 77);
    d.told.count = 8;
    assert_int_equal(desk_compare(&d, &difference), NB_OK); // it does not know: the bytes are told
    assert_string_equal(difference.text, "told: byte 7 of 40: 00 here, 42 there");
    nb_states_destroy(d.states);
}

TEST(save_cut_or_changed_anywhere_is_refused) {
    static desk d;
    nb_difference difference;
    desk_open(&d);
    d.score.left = 1;
    assert_int_equal(desk_compare(&d, &difference), NB_OK);
    difference.row = 77;
    for (size_t size = 0; size < d.before_bytes; ++size) {
        nb_result result = nb_states_compare(d.states, d.before, size, d.after, d.after_bytes, &difference);
        assert_true(result == NB_ERR_RANGE || result == NB_ERR_UNSUPPORTED);
        result = nb_states_compare(d.states, d.after, d.after_bytes, d.before, size, &difference);
        assert_true(result == NB_ERR_RANGE || result == NB_ERR_UNSUPPORTED);
    }
    for (size_t at = 0; at < d.before_bytes; ++at) {
        d.before[at] ^= 0x10;
        nb_result result = nb_states_compare(d.states, d.before, d.before_bytes, d.after, d.after_bytes, &difference);
        assert_true(result == NB_ERR_RANGE || result == NB_ERR_UNSUPPORTED);
        d.before[at] ^= 0x10;
    }
    assert_int_equal(difference.row, 77);
    nb_states_destroy(d.states);
}

// --- parts of the hash ---

TEST(parts_of_the_hash_name_what_has_changed) {
    fixture f = populated(100);
    // Of units the rows and 3 columns, of the clock the rows and 1; sparks and the cache are local.
    assert_int_equal(nb_store_hash_count(f.world), 6);
    static const char *const names[][2] = {{"units", ""},     {"units", "position"}, {"units", "health"},
                                           {"units", "note"}, {"clock", ""},         {"clock", "tick"}};
    nb_store_hash_part before[6], now;
    nb_store_hash(f.world);
    for (uint32_t i = 0; i < 6; ++i) {
        assert_int_equal(nb_store_hash_at(f.world, i, &before[i]), NB_OK);
        assert_string_equal(before[i].table_name, names[i][0]);
        assert_string_equal(before[i].column_name, names[i][1]);
        if (names[i][1][0] == '\0')
            assert_int_equal(before[i].column, NB_STORE_COLUMN_NONE);
        else
            assert_int_equal(before[i].hash, nb_store_column_hash(f.world, before[i].table, before[i].column));
    }
    assert_int_equal(nb_store_hash_at(f.world, 6, &now), NB_EMPTY);
    for (uint32_t changed = 0; changed < 6; ++changed) {
        if (changed == 0) nb_store_teleport(f.world, nb_store_entity(f.world, f.units, 5));
        if (changed == 0) assert_int_equal(nb_store_despawn(f.world, unit_spawn(&f, 1)), NB_OK);
        if (changed == 4) continue; // a singleton's rows stay
        if (changed == 1) NB_STORE_ROW_WRITE(f.world, f.units, POSITION, vec3, 9)->x = 4;
        if (changed == 2) *NB_STORE_ROW_WRITE(f.world, f.units, HEALTH, uint32_t, 9) = 4000;
        if (changed == 3) NB_STORE_ROW_WRITE(f.world, f.units, NOTE, padded, 9)->kind = 4;
        if (changed == 5) *NB_STORE_SINGLETON_WRITE(f.world, f.clock, CLOCK_TICK, uint64_t) = 4;
        nb_store_hash(f.world);
        for (uint32_t i = 0; i < 6; ++i) {
            assert_int_equal(nb_store_hash_at(f.world, i, &now), NB_OK);
            assert_int_equal(now.hash != before[i].hash, i == changed);
            before[i] = now;
        }
    }
    nb_store_destroy(f.world);
}

TEST(local_columns_are_no_part_of_the_hash) {
    const nb_column_desc columns[] = {{.name = "a", .size_bytes = 4, .flags = NB_COLUMN_LOCAL},
                                      {.name = "b", .size_bytes = 4}};
    nb_table_desc desc = {.name = "t", .columns = columns, .column_count = 2};
    nb_store *world = NULL;
    nb_table table;
    nb_store_hash_part part;
    assert_int_equal(nb_store_create(NULL, &world), NB_OK);
    assert_int_equal(nb_store_table_add(world, &desc, &table), NB_OK);
    nb_store_hash(world);
    assert_int_equal(nb_store_hash_count(world), 2);
    assert_int_equal(nb_store_hash_at(world, 1, &part), NB_OK);
    assert_string_equal(part.column_name, "b");
    assert_int_equal(part.column, 1);
    assert_int_equal(part.table.value, table.value);
    nb_store_destroy(world);
}
