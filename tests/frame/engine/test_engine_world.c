// SPDX-License-Identifier: MIT
// The engine with a world: ticks stage, the tick's end applies, jobs read views, and each phase writes what its row of
// the table allows.

#include "frame/engine/engine_fixture.h"

enum { PLACE, OWNER, THING_COLUMNS };
enum { LIFE, DUST_COLUMNS };

static const nb_column_desc thing_columns[THING_COLUMNS] = {
    {.name = "place", .size_bytes = sizeof(int64_t), .flags = NB_COLUMN_SNAPSHOT | NB_COLUMN_INTERPOLATE},
    {.name = "owner", .size_bytes = sizeof(uint32_t)}};
static const nb_column_desc dust_columns[DUST_COLUMNS] = {
    {.name = "life", .size_bytes = sizeof(uint32_t), .flags = NB_COLUMN_SNAPSHOT}};

typedef struct game {
    rig r;
    nb_store *world;
    nb_table things, dust;
    uint64_t mistakes;
} game;

static void declare(game *g) {
    nb_table_desc things = {.name = "things", .row_count_max = 512, .columns = thing_columns, .column_count = 2};
    nb_table_desc dust = {.name = "dust", .columns = dust_columns, .column_count = 1, .is_local = true};
    g->world = nb_engine_world(g->r.engine);
    assert_non_null(g->world);
    assert_ptr_equal(nb_engine_world(g->r.engine), g->world);
    assert_int_equal(nb_store_table_add(g->world, &things, &g->things), NB_OK);
    assert_int_equal(nb_store_table_add(g->world, &dust, &g->dust), NB_OK);
}

static void game_open(game *g, uint32_t worker_count) {
    memset(g, 0, sizeof *g);
    rig_open_hashed(&g->r, worker_count);
    declare(g);
}

static void game_close(game *g) {
    assert_int_equal(g->mistakes, 0);
    assert_true(nb_store_is_valid(g->world));
    rig_close(&g->r);
}

static void expect(game *g, bool is_right) { g->mistakes += is_right ? 0 : 1; }

static uint32_t thing_count(const game *g) { return nb_store_row_count(g->world, g->things); }

// --- stages ---

typedef struct maker {
    game *game;
    uint32_t owner;
    nb_result returns;
    uint32_t calls;
    bool is_reversed; // takes its stages from the last to the first
} maker;

static void stage_thing(game *g, nb_store_stage *stage, uint32_t owner) {
    nb_staged staged = {0};
    expect(g, nb_store_stage_spawn(stage, g->things, &staged) == NB_OK);
    uint32_t *value = NB_STORE_STAGED_WRITE(stage, staged, OWNER, uint32_t);
    expect(g, value != NULL);
    if (value != NULL) *value = owner;
}

// Two rows by the handler's own stage and one by each of three "jobs".
static nb_result make_things(const nb_context *context, void *user) {
    maker *m = user;
    game *g = m->game;
    ++m->calls;
    uint32_t before = thing_count(g);
    for (uint32_t i = 0; i < 4; ++i) {
        uint32_t job = m->is_reversed ? 3 - i : i;
        nb_store_stage *stage = nb_context_stage(context, job);
        expect(g, stage != NULL && nb_context_stage(context, job) == stage);
        if (stage == NULL) return NB_ERR_MEMORY;
        stage_thing(g, stage, m->owner * 10 + job);
        if (job == 0) stage_thing(g, stage, m->owner * 10 + 9);
    }
    expect(g, thing_count(g) == before); // not before the tick ends
    return m->returns;
}

TEST(staged_rows_come_by_handler_and_job) {
    game g;
    game_open(&g, 0);
    maker second = {.game = &g, .owner = 2, .is_reversed = true}, first = {.game = &g, .owner = 1};
    attach(&g.r, (nb_module_desc){.name = "second", .tick = make_things, .user = &second});
    attach(&g.r, (nb_module_desc){.name = "first", .tick = make_things, .priority = 1, .user = &first});
    run_ticks(&g.r, 1);
    static const uint32_t expected[] = {10, 19, 11, 12, 13, 20, 29, 21, 22, 23};
    assert_int_equal(thing_count(&g), 10);
    for (uint32_t i = 0; i < 10; ++i)
        assert_int_equal(*NB_STORE_ROW(g.world, g.things, OWNER, uint32_t, i), expected[i]);
    run_ticks(&g.r, 1);
    assert_int_equal(thing_count(&g), 20);
    game_close(&g);
}

// Two ticks in one frame: the module fails in both, and is asked in both.
TEST(failed_tick_leaves_nothing_staged_and_the_next_tick_runs) {
    game g;
    game_open(&g, 0);
    maker bad = {.game = &g, .owner = 1, .returns = NB_ERR_RANGE}, good = {.game = &g, .owner = 2};
    attach(&g.r, (nb_module_desc){.name = "bad", .tick = make_things, .user = &bad});
    attach(&g.r, (nb_module_desc){.name = "good", .tick = make_things, .user = &good});
    assert_int_equal(nb_engine_frame_delta(g.r.engine, 2 * UINT64_C(16666667)), NB_ERR_RANGE);
    assert_int_equal(rig_stats(&g.r).tick_count, 2);
    assert_int_equal(bad.calls, 2);
    assert_int_equal(thing_count(&g), 10);
    assert_int_equal(*NB_STORE_ROW(g.world, g.things, OWNER, uint32_t, 0), 20);
    assert_int_equal(test_log_count(&g.r.log, NB_ITEM_ENGINE_FAILURE), 1);
    game_close(&g);
}

// The same failures end in the same state, whether ticks share frames or not.
static uint64_t hash_with_failures(uint64_t ticks_per_frame, uint32_t failure_count_max) {
    game g;
    memset(&g, 0, sizeof g);
    nb_engine_desc desc = rig_desc(0);
    desc.hashes_ticks = true;
    desc.failure_count_max = failure_count_max;
    desc.loop.tick_count_max = 8;
    rig_open_desc(&g.r, desc);
    declare(&g);
    maker bad = {.game = &g, .owner = 1, .returns = NB_ERR_RANGE}, good = {.game = &g, .owner = 2};
    attach(&g.r, (nb_module_desc){.name = "bad", .tick = make_things, .user = &bad});
    attach(&g.r, (nb_module_desc){.name = "good", .tick = make_things, .user = &good});
    for (uint64_t tick = 0; tick < 24; tick += ticks_per_frame) {
        nb_engine_frame_delta(g.r.engine, ticks_per_frame * 1000000000 / 60 + 1);
    }
    assert_int_equal(rig_stats(&g.r).tick_count, 24);
    assert_int_equal(bad.calls, failure_count_max != 0 ? failure_count_max : 24);
    assert_int_equal(good.calls, 24);
    uint64_t hash = rig_stats(&g.r).run_hash;
    game_close(&g);
    return hash;
}

TEST(failures_of_ticks_count_by_ticks) {
    for (uint32_t limit = 0; limit <= 5; limit += 5) {
        uint64_t expected = hash_with_failures(1, limit);
        assert_true(hash_with_failures(2, limit) == expected);
        assert_true(hash_with_failures(8, limit) == expected);
    }
}

// --- the table, operation by operation ---

typedef struct prober {
    game *game;
    nb_entity thing, speck;
    uint32_t phases_seen[NB_PHASE_COUNT];
    uint64_t refused;
} prober;

static void probe_all(prober *p, const nb_context *context, bool is_job) {
    game *g = p->game;
    nb_store *world = context->world;
    uint32_t layers = nb_phase_info_get(context->phase)->mutates;
    bool simulated = (layers & NB_LAYER_SIMULATED) != 0 && !is_job, local = (layers & NB_LAYER_GAME) != 0 && !is_job;
    bool is_tick = context->phase == NB_PHASE_FIXED_SIM, has_stage = is_tick || context->phase == NB_PHASE_GAMEPLAY;
    ++p->phases_seen[context->phase];
    uint64_t before = nb_engine_stats_get(context->engine).violation_count;
    uint32_t refused = 0;
    // Columns.
    expect(g, (NB_STORE_ROW_WRITE(world, g->things, OWNER, uint32_t, 0) != NULL) == simulated);
    expect(g, (NB_STORE_ROWS_WRITE(world, g->things, PLACE, int64_t) != NULL) == simulated);
    expect(g, (NB_STORE_ROW_WRITE(world, g->dust, LIFE, uint32_t, 0) != NULL) == local);
    expect(g, (nb_store_teleport(world, p->thing) == NB_OK) == simulated);
    refused += (simulated ? 0u : 3u) + (local ? 0u : 1u);
    // Rows, directly: never in ticks.
    nb_entity entity;
    nb_result result = nb_store_spawn(world, g->dust, &entity);
    expect(g, result == (is_tick ? NB_ERR_MISUSE : local ? NB_OK : NB_ERR_PERMISSION));
    if (result == NB_OK) nb_store_despawn(world, entity);
    result = nb_store_despawn(world, p->thing);
    expect(g, result == (is_tick ? NB_ERR_MISUSE : NB_ERR_PERMISSION));
    refused += is_tick ? 0u : (local ? 1u : 2u);
    // Rows, staged: in ticks and Gameplay.
    nb_store_stage *stage = nb_context_stage(context, 0);
    expect(g, (stage != NULL) == has_stage);
    refused += has_stage ? 0 : 1;
    if (stage != NULL) {
        nb_result things = nb_store_stage_spawn(stage, g->things, NULL),
                  dust = nb_store_stage_spawn(stage, g->dust, NULL);
        expect(g, things == (simulated ? NB_OK : NB_ERR_PERMISSION) && dust == NB_OK);
        refused += simulated ? 0 : 1;
    }
    // Ticks are the engine's.
    expect(g, nb_store_tick_begin(world) == NB_ERR_MISUSE);
    if (is_tick)
        expect(g, nb_store_tick_end(world) == NB_ERR_MISUSE && nb_store_apply(world, &stage, 1) == NB_ERR_MISUSE);
    expect(g, nb_engine_stats_get(context->engine).violation_count - before == refused);
    p->refused += refused;
}

static nb_result probe(const nb_context *context, void *user) {
    probe_all(user, context, false);
    return NB_OK;
}

static nb_result probe_in_job(const nb_context *context, void *user) {
    probe_all(user, context, true);
    return NB_OK;
}

TEST(every_phase_writes_what_its_row_allows) {
    game g;
    game_open(&g, 0);
    prober p = {.game = &g};
    nb_module_desc desc = {.name = "prober", .parallel = probe_in_job, .record = probe_in_job, .user = &p};
    for (uint32_t i = 1; i < NB_PHASE_DETACHED_SERVICES; ++i) {
        if (i != NB_PHASE_PARALLEL_TASKS && i != NB_PHASE_COMMAND_RECORD) desc.handlers[i] = probe;
    }
    attach(&g.r, desc);
    assert_int_equal(nb_store_spawn(g.world, g.things, &p.thing), NB_OK); // between frames all may be written
    assert_int_equal(nb_store_spawn(g.world, g.dust, &p.speck), NB_OK);
    run_ticks(&g.r, 1);
    for (uint32_t i = 1; i < NB_PHASE_DETACHED_SERVICES; ++i) assert_int_equal(p.phases_seen[i], 1);
    assert_int_equal(thing_count(&g), 2);                         // one from the tick
    assert_int_equal(nb_store_row_count(g.world, g.dust), 1 + 2); // one from the tick, one from Gameplay
    assert_int_equal(rig_stats(&g.r).violation_count, p.refused);
    assert_int_equal(nb_store_despawn(g.world, p.thing), NB_OK);
    game_close(&g);
}

// Gameplay's rows are there in SceneMutation, not before.
static nb_result sprinkle(const nb_context *context, void *user) {
    game *g = user;
    expect(g, nb_store_stage_spawn(nb_context_stage(context, 0), g->dust, NULL) == NB_OK);
    expect(g, nb_store_row_count(g->world, g->dust) == context->frame_index);
    return NB_OK;
}

static nb_result count_dust(const nb_context *context, void *user) {
    game *g = user;
    expect(g, nb_store_row_count(g->world, g->dust) == context->frame_index + 1);
    return NB_OK;
}

TEST(gameplay_changes_local_tables_in_scene_mutation) {
    game g;
    game_open(&g, 0);
    nb_module_desc desc = {.name = "dust", .frame = sprinkle, .user = &g};
    desc.handlers[NB_PHASE_SCENE_MUTATION] = count_dust;
    attach(&g.r, desc);
    uint64_t hash = 0;
    for (uint32_t i = 0; i < 20; ++i) {
        run_ticks(&g.r, 1);
        if (i > 0) assert_true(rig_stats(&g.r).tick_hash == hash); // no part of simulated state
        hash = rig_stats(&g.r).tick_hash;
    }
    assert_int_equal(rig_stats(&g.r).failure_count, 0);
    game_close(&g);
}

// --- views ---

static nb_result advance(const nb_context *context, void *user) {
    game *g = user;
    int64_t *place = NB_STORE_ROWS_WRITE(context->world, g->things, PLACE, int64_t);
    NB_STORE_EACH_ROW(row, context->world, g->things) place[row] += 10 + row;
    return NB_OK;
}

static nb_result look(const nb_context *context, void *user) {
    game *g = user;
    const int64_t *now = NB_STORE_VIEW(context->snapshot, context->world, g->things, PLACE, int64_t);
    const int64_t *before = NB_STORE_VIEW_PREVIOUS(context->snapshot, context->world, g->things, PLACE, int64_t);
    uint32_t count = nb_store_view_row_count(context->snapshot, context->world, g->things);
    uint64_t *out = nb_output_add(context, sizeof *out);
    if (out == NULL || now == NULL || before == NULL || count != 100) return NB_ERR_RANGE;
    for (uint32_t row = 0; row < count; ++row) {
        if (now[row] - before[row] != 10 + row) return NB_ERR_STALE;
        *out += (uint64_t)now[row];
    }
    return NB_OK;
}

static nb_result check_sum(const nb_context *context, void *user, const nb_output_list *outputs) {
    game *g = user;
    uint64_t sum = *(const uint64_t *)nb_output_list_next(outputs, NULL, NULL);
    expect(g, sum == context->snapshot->info.tick * (100 * 10 + 99 * 100 / 2));
    return NB_OK;
}

TEST(jobs_see_both_ticks_of_the_world) {
    for (uint32_t workers = 0; workers < 3; ++workers) {
        game g;
        game_open(&g, workers);
        for (uint32_t i = 0; i < 100; ++i) {
            nb_entity entity;
            assert_int_equal(nb_store_spawn(g.world, g.things, &entity), NB_OK);
        }
        attach(&g.r,
               (nb_module_desc){
                   .name = "look", .tick = advance, .parallel = look, .merge = check_sum, .job_count = 3, .user = &g});
        run_ticks(&g.r, 30);
        assert_int_equal(rig_stats(&g.r).failure_count, 0);
        uint64_t calls = g.r.heap.call_count.value;
        run_ticks(&g.r, 30);
        assert_int_equal(g.r.heap.call_count.value, calls); // no heap once it is warm
        game_close(&g);
    }
}

// --- the state "world" ---

TEST(world_is_saved_and_loaded_with_the_states) {
    game g, h;
    game_open(&g, 0);
    game_open(&h, 0);
    maker m = {.game = &g, .owner = 1};
    attach(&g.r, (nb_module_desc){.name = "maker", .tick = make_things, .user = &m});
    run_ticks(&g.r, 10);
    run_ticks(&h.r, 1);
    nb_states *from = nb_engine_states(g.r.engine), *to = nb_engine_states(h.r.engine);
    static unsigned char bytes[65536];
    size_t size = 0;
    assert_int_equal(nb_states_save(from, bytes, sizeof bytes, &size), NB_OK);
    assert_true(nb_states_hash(to) != nb_states_hash(from));
    assert_int_equal(nb_states_load(to, bytes, size), NB_OK);
    assert_true(nb_states_hash(to) == nb_states_hash(from));
    assert_int_equal(thing_count(&h), thing_count(&g));
    // Another layout is told apart.
    rig other;
    rig_open(&other, 0);
    assert_non_null(nb_engine_world(other.engine));
    assert_int_equal(nb_states_load(nb_engine_states(other.engine), bytes, size), NB_ERR_UNSUPPORTED);
    assert_int_equal(test_log_count(&other.log, NB_ITEM_STORE_LAYOUT), 0); // before the world is asked to load it
    rig_close(&other);
    game_close(&g);
    game_close(&h);
}

TEST(tables_are_declared_before_the_first_frame) {
    game g;
    game_open(&g, 0);
    run_ticks(&g.r, 1);
    nb_table late;
    nb_table_desc desc = {.name = "late", .columns = dust_columns, .column_count = 1};
    assert_int_equal(nb_store_table_add(g.world, &desc, &late), NB_ERR_MISUSE);
    assert_int_equal(test_log_count(&g.r.log, NB_ITEM_STORE_STARTED), 1);
    game_close(&g);
}

TEST(world_needs_its_name) {
    rig r;
    rig_open(&r, 0);
    static uint64_t mine;
    nb_provider_desc desc = {.name = "world", .data = &mine, .size_bytes = sizeof mine};
    nb_provider handle;
    assert_int_equal(nb_states_add(nb_engine_states(r.engine), &desc, &handle), NB_OK);
    assert_null(nb_engine_world(r.engine));
    assert_int_equal(nb_states_remove(nb_engine_states(r.engine), handle), NB_OK);
    assert_non_null(nb_engine_world(r.engine));
    run_ticks(&r, 1);
    rig_close(&r);
}

// Every allocation of the world and of its first frame, failed once.
TEST(failing_memory_is_survived_at_every_call) {
    bool has_failed = true;
    for (uint64_t call = 1; has_failed; ++call) {
        game g;
        memset(&g, 0, sizeof g);
        rig_open_desc(&g.r, rig_desc(0));
        g.r.heap.fail_at = g.r.heap.call_count.value + call;
        uint64_t limit = g.r.heap.fail_at;
        nb_store *world = nb_engine_world(g.r.engine);
        if (world == NULL) world = nb_engine_world(g.r.engine);
        assert_non_null(world);
        nb_table_desc things = {.name = "things", .columns = thing_columns, .column_count = 2};
        nb_result result = nb_store_table_add(world, &things, &g.things);
        if (result == NB_ERR_MEMORY) result = nb_store_table_add(world, &things, &g.things);
        assert_int_equal(result, NB_OK);
        result = nb_engine_run_ticks(g.r.engine, 1);
        if (result == NB_ERR_MEMORY) result = nb_engine_run_ticks(g.r.engine, 1);
        assert_int_equal(result, NB_OK);
        assert_int_equal(rig_stats(&g.r).tick_count, 1);
        has_failed = g.r.heap.call_count.value >= limit;
        rig_close(&g.r);
    }
}

// --- without a world ---

static nb_result stage_nowhere(const nb_context *context, void *user) {
    *(uint32_t *)user += nb_context_stage(context, 0) == NULL && context->world == NULL;
    return NB_OK;
}

TEST(without_a_world_nothing_is_staged) {
    rig r;
    rig_open(&r, 0);
    uint32_t refused = 0;
    attach(&r, (nb_module_desc){.name = "nowhere", .tick = stage_nowhere, .user = &refused});
    run_ticks(&r, 5);
    assert_int_equal(refused, 5);
    assert_int_equal(rig_stats(&r).violation_count, 5);
    assert_int_equal(test_log_count(&r.log, NB_ITEM_ENGINE_VIOLATION), 1);
    rig_close(&r);
}

// --- limits ---

static nb_result take_many(const nb_context *context, void *user) {
    game *g = user;
    for (uint32_t i = 0; i < 4; ++i) expect(g, (nb_context_stage(context, i) != NULL) == (i < 3));
    return NB_OK;
}

TEST(stages_have_a_bound) {
    game g;
    memset(&g, 0, sizeof g);
    nb_engine_desc desc = rig_desc(0);
    desc.stage_count_max = 3;
    rig_open_desc(&g.r, desc);
    declare(&g);
    attach(&g.r, (nb_module_desc){.name = "many", .tick = take_many, .user = &g});
    run_ticks(&g.r, 5);
    assert_int_equal(rig_stats(&g.r).stage_full_count, 5);
    assert_int_equal(rig_stats(&g.r).failure_count, 5); // and the three stages are dropped
    assert_int_equal(test_log_count(&g.r.log, NB_ITEM_ENGINE_FULL), 1);
    game_close(&g);
}
