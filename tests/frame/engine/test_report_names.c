// SPDX-License-Identifier: MIT
// What the log says about a careless game: each report names the module, table, column, provider or service that the
// game knows, and the field to raise, and a handler that makes the same mistake in each tick does not fill the log.

#include "frame/engine/engine_fixture.h"
#include "support/log_lines.h"

#include "nebula/rollback.h"
#include "nebula/service.h"

#define TICKS 30
#define LIMIT_NS UINT64_C(10000000000)

static const nb_column_desc columns[] = {{.name = "mass", .size_bytes = sizeof(uint64_t)},
                                         {.name = "age", .size_bytes = sizeof(uint64_t)}};

typedef enum mistake {
    SPAWNS_IN_TICK,
    READS_NO_COLUMN,
    READS_WRONG_SIZE,
    READS_NO_ROW,
    FILLS_STAGE,
    FILLS_TABLE,
    FILLS_STAGES,
    FILLS_COMMANDS,
    SUBMITS_BAD_TASK,
    RUNS_BAD_TASK,
    SUBMITS_BAD_JOB,
    SENDS_NOTHING,
    MISTAKES,
} mistake;

typedef struct game {
    nb_engine *engine;
    log_lines log;
    nb_table rocks, trees;
    nb_label mesh;
    mistake mistake;
    uint32_t asserted_count;
} game;

static nb_result fill_stage(const nb_context *context, const game *g) {
    nb_store_stage *stage = nb_context_stage(context, 0);
    nb_staged staged;
    if (stage == NULL) return NB_ERR_MISUSE;
    for (int i = 0; i < 3000; ++i) nb_store_stage_spawn(stage, g->rocks, &staged);
    return NB_OK;
}

// In Gameplay.
static void offer_bad_work(const nb_context *context, const game *g) {
    nb_task_desc task = {.label = g->mesh};
    nb_async_job_desc job = {.label = g->mesh};
    switch (g->mistake) {
    case SUBMITS_BAD_TASK: nb_task_submit(context->scheduler, &task, NULL); break;
    case RUNS_BAD_TASK: nb_task_run(context->scheduler, &task); break;
    case SUBMITS_BAD_JOB: nb_async_submit(nb_engine_async(context->engine), &job, NULL); break;
    case SENDS_NOTHING: nb_context_command(context, NULL); break;
    default: break;
    }
}

static nb_result be_careless(const nb_context *context, void *user) {
    const game *g = user;
    nb_entity entity;
    nb_input_event command = {.kind = NB_INPUT_COMMAND};
    bool is_tick = context->phase == NB_PHASE_FIXED_SIM;
    if (g->mistake == FILLS_COMMANDS) {
        for (int i = 0; i < 10 && !is_tick; ++i) nb_context_command(context, &command);
        return NB_OK;
    }
    if (!is_tick) offer_bad_work(context, g);
    if (!is_tick) return NB_OK;
    switch (g->mistake) {
    case SPAWNS_IN_TICK:
        nb_store_spawn(context->world, g->rocks, &entity);
        nb_store_spawn(context->world, g->trees, &entity);
        break;
    case READS_NO_COLUMN: nb_store_rows(context->world, g->rocks, 7, sizeof(uint64_t)); break;
    case READS_WRONG_SIZE: nb_store_rows(context->world, g->rocks, 1, sizeof(uint32_t)); break;
    case READS_NO_ROW:
        nb_store_row(context->world, g->rocks, 1, sizeof(uint64_t), 1000 + (uint32_t)context->tick->index);
        break;
    case FILLS_STAGE: return fill_stage(context, g);
    case FILLS_TABLE: return fill_stage(context, g);
    case FILLS_STAGES:
        for (uint32_t i = 0; i < 3; ++i) nb_context_stage(context, i);
        break;
    default: break;
    }
    return NB_OK;
}

static void count_assertion(void *user, const nb_log_record *record) {
    (void)record;
    ++*(uint32_t *)user;
}

static void game_play(game *g, mistake made) {
    memset(g, 0, sizeof *g);
    g->mistake = made;
    nb_engine_desc desc = rig_desc(0);
    desc.hooks = log_lines_hooks(&g->log);
    desc.hooks.assertion = (nb_assert_hook){count_assertion, &g->asserted_count};
    desc.stage_bytes_max = made == FILLS_TABLE ? 1 << 20 : 65536;
    desc.stage_count_max = 2;
    desc.command_count_max = 4;
    assert_int_equal(nb_engine_create(&desc, &g->engine), NB_OK);
    assert_int_equal(nb_labels_intern(nb_engine_labels(g->engine), "mesh", &g->mesh), NB_OK);
    uint32_t row_count_max = made == FILLS_STAGE ? 200000 : 500;
    nb_table_desc rocks = {.name = "rocks", .row_count_max = row_count_max, .columns = columns, .column_count = 2};
    nb_table_desc trees = {.name = "trees", .row_count_max = 10, .columns = columns, .column_count = 2};
    assert_int_equal(nb_store_table_add(nb_engine_world(g->engine), &rocks, &g->rocks), NB_OK);
    assert_int_equal(nb_store_table_add(nb_engine_world(g->engine), &trees, &g->trees), NB_OK);
    nb_module_desc first = {.name = "weather", .tick = be_careless, .user = &(game){.mistake = MISTAKES}};
    nb_module_desc second = {.name = "geology", .tick = be_careless, .frame = be_careless, .user = g};
    assert_int_equal(nb_engine_module_attach(g->engine, &first, NULL), NB_OK);
    assert_int_equal(nb_engine_module_attach(g->engine, &second, NULL), NB_OK);
    for (int i = 0; i < TICKS; ++i) nb_engine_run_ticks(g->engine, 1);
    assert_int_equal(nb_engine_destroy(g->engine), NB_OK);
}

static void assert_reported(const game *g, nb_log_item item, uint32_t count_max, const char *function,
                            const char *text) {
    const log_line *line = log_lines_first(&g->log, item);
    assert_in_range(log_lines_count(&g->log, item), 1, count_max);
    assert_string_equal(line->function, function);
    if (strstr(line->message, text) == NULL) fail_msg("\"%s\" is not in \"%s\"", text, line->message);
}

static void assert_play_reported(game *g, mistake made, nb_log_item item, uint32_t count_max, const char *function,
                                 const char *text) {
    game_play(g, made);
    assert_reported(g, item, count_max, function, text);
}

TEST(mistake_of_each_tick_is_logged_twice_in_30_ticks) {
    static game g;
    assert_play_reported(&g, READS_NO_COLUMN, NB_ITEM_STORE_ARGUMENT, 2, "nb_store_rows",
                         "table 'rocks' has no column 7");
    assert_string_equal(g.log.lines[1].message,
                        "table 'rocks' has no column 7 (10 times by now, 8 of them not logged)");
#if !defined(NDEBUG)
    assert_int_equal(g.asserted_count, TICKS);
#endif
    assert_play_reported(&g, READS_WRONG_SIZE, NB_ITEM_STORE_ARGUMENT, 2, "nb_store_rows",
                         "'rocks.age' has 0 rows of 8 bytes");
    assert_play_reported(&g, READS_NO_ROW, NB_ITEM_STORE_ARGUMENT, 2, "nb_store_row",
                         "'rocks.age' has 0 rows of 8 bytes: row 1000");
}

TEST(each_object_has_reports_of_its_own) {
    static game g;
    assert_play_reported(&g, SPAWNS_IN_TICK, NB_ITEM_STORE_TICK, 4, "nb_store_spawn", "table 'rocks'");
    assert_non_null(strstr(g.log.lines[1].message, "table 'trees'"));
}

TEST(work_that_is_refused_has_its_label_and_the_call) {
    static const struct {
        mistake made;
        nb_log_item item;
        const char *function, *text;
    } rows[] = {
        {SUBMITS_BAD_TASK, NB_ITEM_TASK_ARGUMENT, "nb_task_submit", "task \"mesh\": run is NULL"},
        {RUNS_BAD_TASK, NB_ITEM_TASK_ARGUMENT, "nb_task_run", "task \"mesh\": run is NULL"},
        {SUBMITS_BAD_JOB, NB_ITEM_ASYNC_ARGUMENT, "nb_async_submit", "async job \"mesh\": there is no step"},
        {SENDS_NOTHING, NB_ITEM_ENGINE_ARGUMENT, "nb_context_command", "geology in Gameplay: command is NULL"},
    };
    static game g;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        print_message("%s\n", rows[i].function);
        assert_play_reported(&g, rows[i].made, rows[i].item, 2, rows[i].function, rows[i].text);
    }
}

TEST(call_between_frames_that_needs_one_is_throttled) {
    static log_lines log;
    nb_engine *engine = NULL;
    nb_engine_desc desc = rig_desc(0);
    desc.hooks = log_lines_hooks(&log);
    assert_int_equal(nb_engine_create(&desc, &engine), NB_OK);
    for (int i = 0; i < 1000; ++i) assert_int_equal(nb_engine_wait_begin(engine), NB_ERR_MISUSE);
    assert_throttled(&log, "no frame runs; call it inside a frame");
    assert_int_equal(nb_engine_wait_end(engine), NB_ERR_MISUSE);
    assert_int_equal(log.count.value, 5);
    assert_int_equal(nb_engine_destroy(engine), NB_OK);
}

TEST(pool_that_is_full_names_module_and_field) {
    static const struct {
        mistake made;
        nb_log_item item;
        uint32_t count_max;
        const char *function, *text, *advice;
    } rows[] = {
        {FILLS_STAGE, NB_ITEM_STORE_STAGE, 2, "nb_store_stage_spawn",
         "module \"geology\", tick handler: staging buffer full",
         "(65536 bytes); raise nb_engine_desc.stage_bytes_max"},
        {FILLS_TABLE, NB_ITEM_STORE_FULL, 1, "nb_store_stage_spawn", "table 'rocks' has no room for more than 500 rows",
         "raise nb_table_desc.row_count_max"},
        {FILLS_STAGES, NB_ITEM_ENGINE_FULL, 1, "nb_context_stage", "module \"geology\": no room for more than 2 stages",
         "raise nb_engine_desc.stage_count_max"},
        {FILLS_COMMANDS, NB_ITEM_ENGINE_FULL, 1, "nb_context_command", "module \"geology\": 4 commands",
         "raise nb_engine_desc.command_count_max"},
    };
    static game g;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        print_message("%s\n", rows[i].advice);
        assert_play_reported(&g, rows[i].made, rows[i].item, rows[i].count_max, rows[i].function, rows[i].text);
        assert_says(&g.log, rows[i].item, rows[i].advice);
    }
}

TEST(more_mistakes_than_there_is_room_for_share_a_count) {
    log_lines *log = calloc(1, sizeof *log);
    nb_store_desc desc = {.hooks = log_lines_hooks(log)};
    nb_store *world = NULL;
    nb_table_desc rocks = {.name = "rocks", .row_count_max = 10, .columns = columns, .column_count = 2};
    nb_table table;
    assert_int_equal(nb_store_create(&desc, &world), NB_OK);
    assert_int_equal(nb_store_table_add(world, &rocks, &table), NB_OK);
    for (uint32_t turn = 0; turn < 10; ++turn) {
        for (uint32_t column = 2; column < 1000; ++column) nb_store_rows(world, table, column, 8);
    }
    // 63 of their own, each the first and 10th time; the others the first, 10th, 100th and 1000th.
    assert_in_range(log->count.value, 64, 63 * 2 + 4);
    nb_store_destroy(world);
    free(log);
}

// --- services, providers, modules ---

static nb_engine *engine_logged(log_lines *log) {
    nb_engine_desc desc = rig_desc(0);
    desc.hooks = log_lines_hooks(log);
    nb_engine *engine = NULL;
    assert_int_equal(nb_engine_create(&desc, &engine), NB_OK);
    return engine;
}

static nb_result fail_always(nb_service *service, void *user) {
    (void)service, (void)user;
    return NB_ERR_OS;
}

TEST(service_that_fails_is_named_and_nobody_called) {
    static log_lines log;
    nb_engine *engine = engine_logged(&log);
    nb_service *service = NULL;
    nb_service_desc service_desc = {
        .name = "lobby", .run = fail_always, .restart_limit = 1, .pause_ns = 1, .pause_max_ns = 1};
    assert_int_equal(nb_service_start(nb_engine_services(engine), &service_desc, &service), NB_OK);
    uint64_t end_ns = nbi_clock_now_ns() + LIMIT_NS;
    // One restart, then the end.
    while (nbi_atomic_load_seq_cst_u32(&log.count) < 2 && nbi_clock_now_ns() < end_ns) nbi_thread_yield();
    assert_int_equal(nb_engine_destroy(engine), NB_OK);
    assert_string_equal(log_lines_first(&log, NB_ITEM_SERVICE_RESTARTED)->function, "nb_service_desc.run");
    assert_string_equal(log_lines_first(&log, NB_ITEM_SERVICE_FAILED)->function, "nb_service_desc.run");
    assert_says(&log, NB_ITEM_SERVICE_FAILED, "service \"lobby\" failed with NB_ERR_OS");
}

static size_t save_nothing(void *user, void *bytes, size_t capacity_bytes) {
    (void)user, (void)bytes, (void)capacity_bytes;
    return 0;
}

static nb_result load_never(void *user, const void *bytes, size_t size_bytes) {
    (void)user, (void)bytes, (void)size_bytes;
    return NB_ERR_RANGE;
}

TEST(provider_and_module_that_are_refused_are_named) {
    static log_lines log;
    static uint32_t memory;
    nb_engine *engine = engine_logged(&log);
    nb_provider_desc state_desc = {.name = "weather", .data = &memory};
    assert_int_equal(nb_states_add(nb_engine_states(engine), &state_desc, NULL), NB_ERR_MISUSE);
    assert_says(&log, NB_ITEM_STATE_ARGUMENT, "state \"weather\": memory without a size");
    state_desc = (nb_provider_desc){.name = "tides", .save = save_nothing, .load = load_never};
    assert_int_equal(nb_states_add(nb_engine_states(engine), &state_desc, NULL), NB_OK);
    unsigned char bytes[256];
    size_t size_bytes = 0;
    assert_int_equal(nb_states_save(nb_engine_states(engine), bytes, sizeof bytes, &size_bytes), NB_OK);
    assert_int_equal(nb_states_load(nb_engine_states(engine), bytes, size_bytes), NB_ERR_RANGE);
    assert_says(&log, NB_ITEM_STATE_SAVE, "state \"tides\" refuses its part");
    nb_module_id module;
    nb_module_desc module_desc = {.name = "rocks", .capabilities = UINT32_MAX};
    assert_int_equal(nb_engine_module_attach(engine, &module_desc, &module), NB_ERR_MISUSE);
    assert_says(&log, NB_ITEM_ENGINE_ARGUMENT, "module \"rocks\": an unknown capability");
    assert_int_equal(nb_engine_destroy(engine), NB_OK);
}

// --- what an engine drives ---

TEST(history_that_cannot_be_names_its_field) {
    static log_lines log;
    nb_engine_desc desc = rig_desc(0);
    nb_engine *engine = NULL;
    desc.keeps_history = true;
    desc.history.bytes_max = 1000;
    desc.hooks = log_lines_hooks(&log);
    assert_int_equal(nb_engine_create(&desc, &engine), NB_ERR_RANGE);
    assert_string_equal(log_lines_first(&log, NB_ITEM_HISTORY_ARGUMENT)->function, "nb_engine_create");
    assert_says(&log, NB_ITEM_HISTORY_ARGUMENT, "nb_engine_desc.history.bytes_max is 1000; 4096 to ");
    desc.history.bytes_max = 0;
    desc.history.event_count_max = NB_INPUT_COUNT_LIMIT + 1;
    desc.hooks = log_lines_hooks(&log);
    assert_int_equal(nb_engine_create(&desc, &engine), NB_ERR_RANGE);
    assert_says(&log, NB_ITEM_HISTORY_ARGUMENT,
                "nb_engine_desc.history.event_count_max is 65537; 1 to 65536 are possible");
    // By hand it is the history's own desc.
    nb_history_desc own = {.world = (nb_store *)(void *)&own, .event_count_max = NB_INPUT_COUNT_LIMIT + 1};
    nb_history *history = NULL;
    own.hooks = log_lines_hooks(&log);
    assert_int_equal(nb_history_create(&own, &history), NB_ERR_RANGE);
    assert_string_equal(log_lines_first(&log, NB_ITEM_HISTORY_ARGUMENT)->function, "nb_history_create");
    assert_says(&log, NB_ITEM_HISTORY_ARGUMENT, "nb_history_desc.event_count_max is 65537");
}

// A provider that wants more room with each call, from the given one on.
typedef struct grower {
    uint32_t call_count, greedy_from;
    nb_result loaded;
    uint64_t tick;
} grower;

static size_t save_more(void *user, void *bytes, size_t capacity_bytes) {
    grower *g = user;
    size_t wanted = 8;
    if (++g->call_count > g->greedy_from) wanted = capacity_bytes + 1000;
    if (wanted <= capacity_bytes) memcpy(bytes, &g->tick, wanted);
    return wanted;
}

static nb_result load_as_set(void *user, const void *bytes, size_t size_bytes) {
    (void)bytes, (void)size_bytes;
    return ((grower *)user)->loaded;
}

static nb_result count_tick(const nb_context *context, void *user) {
    (void)context;
    ++((grower *)user)->tick;
    return NB_OK;
}

TEST(provider_that_the_history_cannot_keep_is_named) {
    static log_lines log;
    nb_engine_desc desc = rig_desc(0);
    desc.keeps_history = true;
    desc.hooks = log_lines_hooks(&log);
    nb_engine *engine = NULL;
    grower tides = {.greedy_from = UINT32_MAX, .loaded = NB_ERR_RANGE};
    assert_int_equal(nb_engine_create(&desc, &engine), NB_OK);
    nb_provider_desc state_desc = {.name = "tides", .save = save_more, .load = load_as_set, .user = &tides};
    assert_int_equal(nb_states_add(nb_engine_states(engine), &state_desc, NULL), NB_OK);
    nb_module_desc moon = {.name = "moon", .tick = count_tick, .user = &tides};
    assert_int_equal(nb_engine_module_attach(engine, &moon, NULL), NB_OK);
    assert_int_equal(nb_engine_run_ticks(engine, 4), NB_OK);
    for (int i = 0; i < TICKS; ++i) assert_int_equal(nb_engine_rewind(engine, 2), NB_ERR_RANGE);
    const log_line *refused = log_lines_first(&log, NB_ITEM_HISTORY_LOAD);
    assert_string_equal(refused->function, "nb_engine_rewind");
    assert_says(&log, NB_ITEM_HISTORY_LOAD, "state \"tides\": load refused what its save gave (NB_ERR_RANGE)");
    tides.loaded = NB_OK;
    tides.greedy_from = tides.call_count;
    assert_int_equal(log_lines_count(&log, NB_ITEM_HISTORY_LOAD), 2); // the 1st and 10th time
    assert_int_equal(nb_engine_run_ticks(engine, 1), NB_OK);
    assert_int_equal(log_lines_count(&log, NB_ITEM_HISTORY_LOAD), 3);
    assert_string_equal(refused[2].function, "nb_engine_run_ticks");
    assert_non_null(strstr(refused[2].message, "state \"tides\": save asks for more room with each call"));
    assert_int_equal(nb_engine_destroy(engine), NB_OK);
}

static nb_result correct_with_nonsense(const nb_context *context, void *user) {
    static const unsigned char nonsense[64] = {1};
    (void)user;
    if (nb_loop_tick_count(nb_engine_loop(context->engine)) != 2) return NB_OK;
    assert_int_equal(nb_context_correct_state(context, 1, nonsense, sizeof nonsense), NB_OK);
    return NB_OK;
}

// What the engine does for a call of the game is reported under that call.
TEST(pieces_of_an_engine_are_reported_under_its_calls) {
    static log_lines log;
    nb_engine_desc desc = rig_desc(0);
    nb_engine *engine = NULL;
    desc.async.job_count_max = NB_ASYNC_JOB_COUNT_MAX + 1;
    desc.keeps_history = true;
    desc.hooks = log_lines_hooks(&log);
    assert_int_equal(nb_engine_create(&desc, &engine), NB_OK);
    assert_null(nb_engine_async(engine));
    assert_string_equal(log_lines_first(&log, NB_ITEM_ASYNC_ARGUMENT)->function, "nb_engine_async");
    nb_module_desc module = {.name = "net"};
    module.handlers[NB_PHASE_NETWORK_RECONCILIATION] = correct_with_nonsense;
    assert_int_equal(nb_engine_module_attach(engine, &module, NULL), NB_OK);
    assert_int_equal(nb_engine_run_ticks(engine, 3), NB_OK);
    assert_string_equal(log_lines_first(&log, NB_ITEM_STATE_SAVE)->function, "nb_context_correct_state");
    assert_int_equal(nb_engine_destroy(engine), NB_OK);
}
