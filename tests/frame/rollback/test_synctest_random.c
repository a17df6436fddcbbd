// SPDX-License-Identifier: MIT
// Random games with random tables and providers, played in random ways: none diverges, and each ends as without
// synctest. And one game for very long: going back 8 ticks after every tick gives the same hashes.

#include "frame/rollback/synctest_fixture.h"

#include "nebula/rollback.h"

// --- a random game ---

#define TABLE_MAX 5u
#define COLUMN_MAX 4u
#define PIECE_MAX 4u
#define PIECE_BYTES 96u

typedef struct lot {
    nb_table table;
    nb_column_desc columns[COLUMN_MAX];
    uint32_t column_count, row_count_max;
    bool is_local, is_singleton, has_marks;
} lot;

typedef struct chance {
    rig r;
    uint64_t seed;
    bool is_told_outside; // state changes between ticks; else there are rewinds and late inputs
    nb_store *world;
    lot lots[TABLE_MAX];
    uint32_t lot_count;
    unsigned char pieces[PIECE_MAX][PIECE_BYTES]; // providers with memory
    uint32_t piece_flags[PIECE_MAX];
    unsigned char heap[PIECE_BYTES]; // behind callbacks
    size_t heap_bytes;
    nb_module_id extra; // comes and goes
    nb_provider added;
    uint64_t added_data;
} chance;

static size_t heap_save(void *user, void *bytes, size_t capacity_bytes) {
    const chance *c = user;
    if (bytes != NULL && c->heap_bytes <= capacity_bytes) memcpy(bytes, c->heap, c->heap_bytes);
    return c->heap_bytes;
}

static nb_result heap_load(void *user, const void *bytes, size_t size_bytes) {
    chance *c = user;
    if (size_bytes > PIECE_BYTES) return NB_ERR_RANGE;
    memset(c->heap, 0, sizeof c->heap);
    memcpy(c->heap, bytes, size_bytes);
    c->heap_bytes = size_bytes;
    return NB_OK;
}

static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g"};

static void add_lot(chance *c, lot *l, uint64_t *random) {
    l->is_local = c->lot_count > 0 && test_random(random) % 3 == 0;
    l->is_singleton = test_random(random) % 5 == 0;
    l->row_count_max = 1 + (uint32_t)(test_random(random) % 200);
    l->column_count = 1 + (uint32_t)(test_random(random) % COLUMN_MAX);
    for (uint32_t i = 0; i < l->column_count; ++i) {
        uint64_t draw = test_random(random);
        uint32_t flags = draw % 3 == 0 && !l->is_local && i > 0 ? NB_COLUMN_LOCAL : 0;
        if (draw / 3 % 3 == 0) flags |= NB_COLUMN_INTERPOLATE;
        if (draw / 9 % 3 == 0) flags |= NB_COLUMN_SNAPSHOT;
        l->has_marks = l->has_marks || (flags & NB_COLUMN_INTERPOLATE) != 0;
        l->columns[i] = (nb_column_desc){.name = names[i], .size_bytes = 1 + draw / 27 % 24, .flags = flags};
    }
    nb_table_desc desc = {.name = names[c->lot_count],
                          .row_count_max = l->is_singleton ? 0 : l->row_count_max,
                          .columns = l->columns,
                          .column_count = l->column_count,
                          .is_local = l->is_local,
                          .is_singleton = l->is_singleton};
    assert_int_equal(nb_store_table_add(c->world, &desc, &l->table), NB_OK);
}

// --- its tick: what is drawn does not depend on anything local ---

static void change_row(const chance *c, const lot *l, uint64_t *random) {
    uint32_t count = nb_store_row_count(c->world, l->table), column = (uint32_t)(test_random(random) % l->column_count);
    uint64_t draw = test_random(random), value = test_random(random);
    if (count == 0) return;
    uint32_t row = (uint32_t)(draw % count);
    size_t size_bytes = l->columns[column].size_bytes;
    unsigned char *bytes = nb_store_row_write(c->world, l->table, column, size_bytes, row);
    bytes[value % size_bytes] = (unsigned char)(bytes[value % size_bytes] * 3 + value / 64);
    if (l->has_marks && value % 13 == 0) nb_store_teleport(c->world, nb_store_entity(c->world, l->table, row));
}

static void change_rows(const chance *c, const lot *l, const nb_context *context, uint64_t *random) {
    uint64_t draw = test_random(random), value = test_random(random);
    if (l->is_singleton) return;
    nb_store_stage *stage = nb_context_stage(context, (uint32_t)(draw % 2));
    uint32_t count = nb_store_row_count(c->world, l->table);
    nb_staged staged;
    bool is_spawn = draw / 2 % 5 < 3;
    if (is_spawn && nb_store_stage_spawn(stage, l->table, &staged) == NB_OK) {
        unsigned char *bytes = nb_store_stage_write(stage, staged, 0, l->columns[0].size_bytes);
        bytes[0] = (unsigned char)value;
    }
    if (!is_spawn && count > 0)
        nb_store_stage_despawn(stage, nb_store_entity(c->world, l->table, (uint32_t)(value % count)));
}

static nb_result chance_tick(const nb_context *context, void *user) {
    chance *c = user;
    uint64_t random = c->seed ^ context->tick->index * 7919 ^ c->pieces[0][0] ^ (uint64_t)c->heap_bytes << 9;
    for (uint32_t i = 0; i < context->commands.count; ++i) random += context->commands.events[i].code;
    for (uint64_t i = test_random(&random) % 12; i > 0; --i) {
        const lot *l = &c->lots[test_random(&random) % c->lot_count];
        uint64_t draw = test_random(&random);
        if (draw % 3 != 0) change_row(c, l, &random);
        if (draw % 3 == 0) change_rows(c, l, context, &random);
    }
    for (uint32_t i = 0; i < PIECE_MAX; ++i) {
        uint64_t value = test_random(&random);
        c->pieces[i][value % PIECE_BYTES] ^= (unsigned char)(value >> 32);
    }
    uint64_t value = test_random(&random);
    if (value % 4 == 0) c->heap_bytes = value / 4 % PIECE_BYTES;
    memset(c->heap + c->heap_bytes, 0, PIECE_BYTES - c->heap_bytes); // what is not saved is not to come back
    if (c->heap_bytes > 0) c->heap[value % c->heap_bytes] += 1;
    return value % 31 == 0 ? NB_ERR_OS : NB_OK;
}

static nb_result extra_tick(const nb_context *context, void *user) {
    chance *c = user;
    c->pieces[0][1] += (unsigned char)context->tick->index;
    return NB_OK;
}

static nb_result chance_reconcile(const nb_context *context, void *user) {
    chance *c = user;
    uint64_t now = nb_loop_tick_count(nb_engine_loop(context->engine));
    uint64_t random = c->seed ^ context->frame_index * 104729;
    nb_input_event event = {.kind = NB_INPUT_COMMAND, .code = (uint32_t)test_random(&random)};
    if (test_random(&random) % 2 == 0) nb_context_command(context, &event);
    uint64_t back = test_random(&random) % 40;
    nb_history_input input = {{NULL, 0}, {&event, 1}};
    if (!c->is_told_outside && back > 0 && back < 12 && back <= now)
        nb_context_correct_input(context, now - back, &input);
    return NB_OK;
}

// --- playing ---

static void chance_open(chance *c, uint64_t seed, uint32_t depth, uint32_t workers) {
    memset(c, 0, sizeof *c);
    uint64_t random = seed;
    nb_engine_desc desc = town_desc(workers, depth);
    desc.failure_count_max = test_random(&random) % 2 == 0 ? 2 : 0;
    rig_open_desc(&c->r, desc);
    c->seed = seed;
    c->is_told_outside = test_random(&random) % 2 == 0;
    c->world = nb_engine_world(c->r.engine);
    uint32_t lot_count = 1 + (uint32_t)(test_random(&random) % TABLE_MAX);
    for (; c->lot_count < lot_count; ++c->lot_count) add_lot(c, &c->lots[c->lot_count], &random);
    for (uint32_t i = 0; i < PIECE_MAX; ++i) {
        c->piece_flags[i] = i > 0 && test_random(&random) % 2 == 0 ? NB_PROVIDER_LOCAL : 0;
        nb_provider_desc piece = {
            .name = names[i], .data = c->pieces[i], .size_bytes = PIECE_BYTES, .flags = c->piece_flags[i]};
        assert_int_equal(nb_states_add(nb_engine_states(c->r.engine), &piece, NULL), NB_OK);
    }
    nb_provider_desc heap = {.name = "heap", .save = heap_save, .load = heap_load, .user = c};
    assert_int_equal(nb_states_add(nb_engine_states(c->r.engine), &heap, NULL), NB_OK);
    nb_module_desc module = {.name = "chance", .tick = chance_tick, .user = c};
    module.handlers[NB_PHASE_NETWORK_RECONCILIATION] = chance_reconcile;
    attach(&c->r, module);
}

// By no tick.
static void change_outside(chance *c, uint64_t draw) {
    const lot *l = &c->lots[draw % c->lot_count];
    nb_entity entity;
    c->pieces[0][5] += 1;
    if (!l->is_singleton && nb_store_row_count(c->world, l->table) < l->row_count_max)
        assert_int_equal(nb_store_spawn(c->world, l->table, &entity), NB_OK);
}

static void toggle_module(chance *c) {
    nb_module_desc module = {.name = "extra", .tick = extra_tick, .user = c};
    if (c->extra.value != 0) {
        assert_int_equal(nb_engine_module_detach(c->r.engine, c->extra), NB_OK);
        c->extra = (nb_module_id){0};
    } else {
        c->extra = attach(&c->r, module);
    }
}

static void toggle_provider(chance *c, uint64_t draw) {
    nb_states *states = nb_engine_states(c->r.engine);
    nb_provider_desc desc = {.name = "added", .data = &c->added_data, .size_bytes = 8, .flags = (uint32_t)(draw % 2)};
    if (c->added.value != 0) {
        assert_int_equal(nb_states_remove(states, c->added), NB_OK);
        c->added = (nb_provider){0};
    } else {
        assert_int_equal(nb_states_add(states, &desc, &c->added), NB_OK);
    }
}

static void play(chance *c, uint32_t step_count) {
    uint64_t random = c->seed * 3 + 1;
    for (uint32_t i = 0; i < step_count; ++i) {
        uint64_t draw = test_random(&random), back = draw / 100 % 12;
        uint64_t now = rig_stats(&c->r).tick_count;
        if (draw % 100 < 10 && c->is_told_outside) change_outside(c, draw / 100);
        if (draw % 100 < 10 && !c->is_told_outside && back <= now) nb_engine_rewind(c->r.engine, now - back);
        if (draw % 100 >= 94 && c->is_told_outside) toggle_module(c);
        if (draw % 100 >= 90 && draw % 100 < 94 && c->is_told_outside) toggle_provider(c, draw / 100);
        nb_engine_run_ticks(c->r.engine, 1 + draw / 1000 % 4);
    }
}

typedef struct ending {
    uint64_t run_hash, tick_hash, tick_count, local_hash;
} ending;

static uint64_t local_hash_of(const chance *c) {
    uint64_t hash = 0;
    for (uint32_t i = 0; i < PIECE_MAX; ++i) hash = nb_hash64(c->pieces[i], PIECE_BYTES, hash);
    for (uint32_t i = 0; i < c->lot_count; ++i) {
        const lot *l = &c->lots[i];
        uint32_t count = nb_store_row_count(c->world, l->table);
        for (uint32_t j = 0; j < l->column_count; ++j) {
            size_t size_bytes = l->columns[j].size_bytes;
            hash = nb_hash64(nb_store_rows(c->world, l->table, j, size_bytes), count * size_bytes, hash);
            if ((l->columns[j].flags & NB_COLUMN_INTERPOLATE) == 0) continue;
            hash = nb_hash64(nb_store_rows_previous(c->world, l->table, j, size_bytes), count * size_bytes, hash);
        }
    }
    return hash;
}

static ending ending_of(uint64_t seed, uint32_t depth, uint32_t workers) {
    static chance c;
    chance_open(&c, seed, depth, workers);
    play(&c, 60);
    nb_engine_stats stats = rig_stats(&c.r);
    nb_synctest_report report;
    if (depth != 0) {
        assert_int_equal(nb_engine_synctest_get(c.r.engine, &report), NB_OK);
        if (report.text[0] != '\0') fail_msg("seed 0x%llx: %s", (unsigned long long)seed, report.text);
        assert_int_equal(report.lost_count, 0);
        assert_true(report.checked_count > 0);
        if (!c.is_told_outside) assert_int_equal(report.outside_count, 0);
    }
    assert_true(nb_store_is_valid(c.world));
    ending end = {stats.run_hash, stats.tick_hash, stats.tick_count, local_hash_of(&c)};
    rig_close(&c.r);
    return end;
}

TEST(random_games_never_diverge_and_end_as_without) {
    uint64_t random = test_seed(__func__);
    for (uint64_t i = 0; i < test_size(40, 200, 20000); ++i) {
        uint64_t seed = test_random(&random);
        uint32_t depth = 1 + (uint32_t)(seed % 16), workers = seed / 16 % 8 == 0 ? 2 : 0;
        ending expected = ending_of(seed, 0, 0), end = ending_of(seed, depth, workers);
        if (memcmp(&expected, &end, sizeof end) != 0)
            fail_msg("seed 0x%llx, depth %u, %u workers: other than without synctest", (unsigned long long)seed, depth,
                     workers);
    }
}

// --- long ---

TEST_ONE_THREAD(going_back_8_ticks_after_every_tick_gives_the_same_hashes) {
    static town t;
    uint64_t tick_count = test_size(1000, 60000, 1000000);
    town_open(&t, 0, 8, SIN_NONE);
    run_ticks(&t.r, tick_count);
    nb_synctest_report report = town_report(&t);
    assert_string_equal(report.text, "");
    assert_int_equal(report.diverged_count + report.outside_count + report.skipped_count, 0);
    assert_int_equal(report.checked_count, 8 * tick_count - 8 * 7 / 2);
    uint64_t hash = town_hash(&t);
    town_close(&t);
    assert_true(hash == town_plain_hash(tick_count, SIN_NONE));
}
