// SPDX-License-Identifier: MIT
// An OS that refuses to change pages while an engine guards its world: frames fail with a result, the log says which
// table, and once pages can be changed again the game goes on where it was.

#include "frame/engine/engine_fixture.h"
#include "support/faults.h"
#include "support/log_lines.h"

#include "nebula/rollback.h"

#define TICKS 12

// --- a game that writes everywhere it may ---

static const nb_column_desc columns[] = {{.name = "weight", .size_bytes = sizeof(uint64_t)}};

typedef struct game {
    nb_engine *engine;
    nb_store *world;
    nb_table crates, sparks;
    log_lines *log;
    uint64_t merges, refused_frames;
} game;

static nb_result load_crates(const nb_context *context, void *user) {
    game *g = user;
    uint64_t *weight = NB_STORE_ROWS_WRITE(context->world, g->crates, 0, uint64_t);
    nb_store_stage *stage = nb_context_stage(context, 0);
    nb_staged staged;
    if (weight == NULL || stage == NULL) return NB_ERR_MISUSE;
    NB_STORE_EACH_ROW(row, context->world, g->crates) weight[row] = weight[row] * 3 + context->tick->index + row;
    return nb_store_stage_spawn(stage, g->crates, &staged);
}

static nb_result weigh(const nb_context *context, void *user) {
    const game *g = user;
    uint64_t sum = 0;
    NB_STORE_EACH_ROW(row, context->world, g->crates) sum += *NB_STORE_ROW(context->world, g->crates, 0, uint64_t, row);
    uint64_t *out = nb_output_add(context, sizeof sum);
    if (out != NULL) *out = sum;
    return NB_OK;
}

// Local columns may be written where outputs are merged.
static nb_result note_weight(const nb_context *context, void *user, const nb_output_list *outputs) {
    game *g = user;
    const uint64_t *sum = nb_output_list_next(outputs, NULL, NULL);
    *NB_STORE_SINGLETON_WRITE(context->world, g->sparks, 0, uint64_t) = sum != NULL ? *sum : 0;
    ++g->merges;
    return NB_OK;
}

static nb_result spark(const nb_context *context, void *user) {
    *NB_STORE_SINGLETON_WRITE(context->world, ((game *)user)->sparks, 0, uint64_t) += 1;
    return NB_OK;
}

static void game_open(game *g, uint32_t workers) {
    static log_lines log;
    *g = (game){.log = &log};
    nb_engine_desc desc = rig_desc(workers);
    desc.hooks = log_lines_hooks(&log);
    desc.is_guarded = desc.hashes_ticks = desc.keeps_history = true;
    assert_int_equal(nb_engine_create(&desc, &g->engine), NB_OK);
    nb_table_desc crates = {.name = "crates", .row_count_max = 200, .columns = columns, .column_count = 1};
    nb_table_desc sparks = {
        .name = "sparks", .columns = columns, .column_count = 1, .is_local = true, .is_singleton = true};
    g->world = nb_engine_world(g->engine);
    assert_int_equal(nb_store_table_add(g->world, &crates, &g->crates), NB_OK);
    assert_int_equal(nb_store_table_add(g->world, &sparks, &g->sparks), NB_OK);
    nb_module_desc module = {.name = "yard",
                             .tick = load_crates,
                             .frame = spark,
                             .handlers = {[NB_PHASE_POST_PARALLEL] = spark},
                             .parallel = weigh,
                             .merge = note_weight,
                             .record = weigh,
                             .job_count = 2,
                             .record_count = 2,
                             .user = g};
    assert_int_equal(nb_engine_module_attach(g->engine, &module, NULL), NB_OK);
}

// Frames until so many ticks have run, however many of them the OS spoils.
static void game_play(game *g, uint64_t tick_count) {
    for (int i = 0; i < 200 && nb_loop_tick_count(nb_engine_loop(g->engine)) < tick_count; ++i) {
        nb_result result = nb_engine_run_ticks(g->engine, 1);
        if (result == NB_OK) continue;
        assert_int_equal(result, NB_ERR_OS);
        ++g->refused_frames;
        nb_entity entity;
        assert_int_equal(nb_store_spawn(g->world, g->crates, &entity), NB_ERR_PERMISSION);
    }
    assert_int_equal(nb_loop_tick_count(nb_engine_loop(g->engine)), tick_count);
}

static uint64_t game_close(game *g) {
    uint64_t hash = nb_engine_stats_get(g->engine).run_hash;
    assert_int_equal(nb_engine_destroy(g->engine), NB_OK);
    return hash;
}

static uint64_t run_alone(uint32_t workers, uint64_t *calls) {
    game g;
    os_reset();
    game_open(&g, workers);
    game_play(&g, TICKS);
    assert_int_equal(g.merges, 2 * TICKS);
    *calls = os.protects.call_count.value;
    return game_close(&g);
}

TEST(refused_pages_never_end_the_process_and_leave_the_game_as_it_was) {
    uint64_t calls = 0, expected = run_alone(0, &calls), refused = 0;
    for (uint64_t at = 1; at <= calls; ++at) {
        for (uint64_t length = 1; length <= 16; length *= 4) {
            game g;
            os.protects.call_count.value = 0, os.protects.fail_from = at, os.protects.fail_until = at + length;
            os.protect = at % 2 != 0 ? NBI_PAGE_NONE : NBI_PAGE_READ_WRITE;
            game_open(&g, (uint32_t)(at % 64 == 0));
            game_play(&g, TICKS);
            refused += g.refused_frames;
            assert_in_range(log_lines_count(g.log, NB_ITEM_ENGINE_GUARD), 0, 2);
            assert_int_equal(log_lines_count(g.log, NB_ITEM_STORE_PROTECTED), 0);
            assert_int_equal(game_close(&g), expected);
        }
    }
    assert_in_range(refused, 1, UINT64_MAX);
}

TEST(guard_that_is_switched_off_names_the_table) {
    game g;
    os_reset();
    game_open(&g, 0);
    game_play(&g, 2);
    // Snapshots are published before, whose pages are changed too: only what comes after fails.
    os.protects.fail_from = os.protects.call_count.value + 1, os.protects.fail_until = UINT64_MAX,
    os.protect = NBI_PAGE_READ_WRITE;
    assert_int_equal(nb_engine_frame_delta(g.engine, 0), NB_ERR_OS);
    assert_int_equal(nb_engine_frame_delta(g.engine, 0), NB_ERR_OS);
    assert_int_equal(nb_engine_run(g.engine), NB_ERR_OS);
    assert_int_equal(nb_engine_rewind(g.engine, 1), NB_ERR_OS);
    assert_int_equal(log_lines_count(g.log, NB_ITEM_ENGINE_GUARD), 1);
    assert_says(g.log, NB_ITEM_ENGINE_GUARD, "table 'crates' writable");
    os_reset();
    game_play(&g, 4);
    game_close(&g);
}
