// SPDX-License-Identifier: MIT
// nebula/engine.h, with what an engine gives its handlers (nebula/context.h, nebula/effect.h, nebula/rollback.h) and
// nebula/synctest.h: engines and contexts that are none, bad descs and handles, calls from the wrong place.

#include "bad_input/bad_input.h"

#include "nebula/effect.h"
#include "nebula/engine.h"
#include "nebula/rollback.h"
#include "nebula/synctest.h"

static nb_result do_nothing(const nb_context *context, void *user) {
    (void)context, (void)user;
    return NB_OK;
}

static nb_engine *engine_open(test_heap *heap) {
    nb_engine *engine = NULL;
    nb_engine_desc desc = {.scheduler_desc = {.worker_count = NB_WORKER_COUNT_NONE, .task_count_max = 64},
                           .module_count_max = 4,
                           .hooks = bad_hooks(heap)};
    accepted(NB_OK, nb_engine_create(&desc, &engine));
    return engine;
}

// Nothing that was refused has left anything, and the engine still works.
static void engine_close(nb_engine *engine, test_heap *heap) {
    uint64_t frames = nb_engine_stats_get(engine).frame_count;
    assert_int_equal(nb_engine_stats_get(engine).module_count, 0);
    accepted(NB_OK, nb_engine_frame_delta(engine, 0));
    assert_int_equal(nb_engine_stats_get(engine).frame_count, frames + 1);
    accepted(NB_OK, nb_engine_destroy(engine));
    assert_int_equal(heap->live_count.value, 0);
}

TEST(null_is_refused_everywhere) {
    nb_module_desc desc = {.name = "m"};
    nb_module_id module = {1};
    nb_engine_desc fine = {0};
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_engine_create(&fine, NULL));
    accepted(NB_OK, nb_engine_destroy(NULL));
    refused_default(NULL, NB_ITEM_BASE_NULL, nb_engine_desc_get(NULL));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_engine_module_attach(NULL, &desc, NULL));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_engine_module_detach(NULL, module));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_engine_module_replace(NULL, module, &desc));
    refused_default(0, NB_ITEM_BASE_NULL, nb_engine_order_get(NULL, NB_PHASE_INPUT, NULL, 0));
    const char *name = NULL;
    reported_default(NB_ITEM_BASE_NULL, name = nb_engine_module_name(NULL, module));
    assert_string_equal(name, "");
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_engine_run(NULL));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_engine_run_ticks(NULL, 1));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_engine_frame(NULL));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_engine_frame_delta(NULL, 1));
    accepted(NB_ERR_MISUSE, nb_engine_stop(NULL)); // a signal handler must not log
    accepted(false, nb_engine_is_stopping(NULL));
    refused_default(NULL, NB_ITEM_BASE_NULL, nb_engine_loop(NULL));
    refused_default(NULL, NB_ITEM_BASE_NULL, nb_engine_states(NULL));
    refused_default(NULL, NB_ITEM_BASE_NULL, nb_engine_scheduler(NULL));
    refused_default(NULL, NB_ITEM_BASE_NULL, nb_engine_token(NULL));
    refused_default(NULL, NB_ITEM_BASE_NULL, nb_engine_world(NULL));
    refused_default(NULL, NB_ITEM_BASE_NULL, nb_engine_input(NULL));
    refused_default(NULL, NB_ITEM_BASE_NULL, nb_engine_async(NULL));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_engine_set_blind(NULL, true));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_engine_wait_begin(NULL));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_engine_wait_end(NULL));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_engine_note_device(NULL, 1, false));
    refused_default(NULL, NB_ITEM_BASE_NULL, nb_engine_snapshots(NULL));
    refused_default(NULL, NB_ITEM_BASE_NULL, nb_engine_timelines(NULL));
    refused_default(NULL, NB_ITEM_BASE_NULL, nb_engine_epochs(NULL));
    refused_default(NULL, NB_ITEM_BASE_NULL, nb_engine_services(NULL));
    refused_default(NULL, NB_ITEM_BASE_NULL, nb_engine_budget(NULL));
    nb_tick_watch watch = {.user = &fine};
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_engine_watch_add(NULL, &watch));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_engine_watch_remove(NULL, &fine));
    refused_default(NULL, NB_ITEM_BASE_NULL, nb_engine_labels(NULL));
    accepted(NB_PHASE_NONE, nb_engine_phase(NULL));
    nb_engine_stats stats;
    reported_default(NB_ITEM_BASE_NULL, stats = nb_engine_stats_get(NULL));
    assert_int_equal(stats.frame_count, 0);
    refused_default(NULL, NB_ITEM_BASE_NULL, nb_engine_history(NULL));
    nb_synctest_report report = {.depth = 77};
    nb_input_view no_commands = {0};
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_engine_rewind(NULL, 0));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_engine_set_tick(NULL, 0));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_engine_load(NULL, 0, &report, 1, no_commands));
    reported_default(NB_ITEM_BASE_NULL, no_commands = nb_engine_commands(NULL));
    assert_int_equal(no_commands.count, 0);
    nb_rollback_stats rollback;
    reported_default(NB_ITEM_BASE_NULL, rollback = nb_engine_rollback_stats(NULL));
    assert_zero(rollback);
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_engine_synctest_get(NULL, &report));
    assert_int_equal(report.depth, 77);
}

TEST(contexts_of_no_engine_are_refused) {
    nb_context context = {0};
    refused_default(NULL, NB_ITEM_BASE_NULL, nb_output_add(NULL, 1));
    refused_default(NULL, NB_ITEM_BASE_NULL, nb_output_add(&context, 1));
    accepted(NULL, nb_output_list_next(NULL, NULL, NULL));
    nb_input_event command = {0};
    nb_history_input correction = {{NULL, 0}, {NULL, 0}};
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_context_correct_input(NULL, 0, &correction));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_context_correct_input(&context, 0, &correction));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_context_correct_state(NULL, 0, &command, 1));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_context_correct_state(&context, 0, &command, 1));
    nb_async_job_desc job = nb_async_job_desc_default();
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_context_submit(NULL, &job, NULL));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_context_submit(&context, &job, NULL));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_context_log(NULL, NB_LOG_INFO, "text"));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_context_log(&context, NB_LOG_INFO, "text"));
    refused_default(NULL, NB_ITEM_BASE_NULL, nb_context_stage(NULL, 0));
    refused_default(NULL, NB_ITEM_BASE_NULL, nb_context_stage(&context, 0));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_context_command(NULL, &command));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_context_command(&context, &command));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_context_check(NULL, NB_LAYER_GAME));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_context_check(&context, NB_LAYER_GAME));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_context_check_capability(NULL, NB_CAPABILITY_SUBMIT));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_context_check_capability(&context, NB_CAPABILITY_SUBMIT));
}

TEST(creation_refuses_a_bad_desc) {
    test_heap heap = {0};
    nb_engine *out = UNTOUCHED(nb_engine);
    nb_engine_desc many = {.module_count_max = NB_MODULE_COUNT_MAX + 1, .hooks = bad_hooks(&heap)};
    refused(NB_ERR_RANGE, NB_ITEM_ENGINE_ARGUMENT, nb_engine_create(&many, &out));
    nb_engine_desc policy = {.violation_policy = (nb_violation_policy)77, .hooks = bad_hooks(&heap)};
    refused(NB_ERR_RANGE, NB_ITEM_ENGINE_ARGUMENT, nb_engine_create(&policy, &out));
    nb_engine_desc commands = {.command_count_max = NB_COMMAND_COUNT_MAX + 1, .hooks = bad_hooks(&heap)};
    refused(NB_ERR_RANGE, NB_ITEM_ENGINE_ARGUMENT, nb_engine_create(&commands, &out));
    nb_engine_desc stages = {.stage_count_max = NB_STAGE_COUNT_MAX + 1, .hooks = bad_hooks(&heap)};
    refused(NB_ERR_RANGE, NB_ITEM_ENGINE_ARGUMENT, nb_engine_create(&stages, &out));
    nb_engine_desc bytes = {.stage_bytes_max = NB_STAGE_BYTES_MAX_LIMIT + 1, .hooks = bad_hooks(&heap)};
    refused(NB_ERR_RANGE, NB_ITEM_ENGINE_ARGUMENT, nb_engine_create(&bytes, &out));
    nb_engine_desc depth = {.synctest_depth = NB_SYNCTEST_DEPTH_MAX + 1, .hooks = bad_hooks(&heap)};
    refused(NB_ERR_RANGE, NB_ITEM_ENGINE_ARGUMENT, nb_engine_create(&depth, &out));
    nb_engine_desc rate = {.loop = {.tick_rate = {NB_LOOP_RATE_MAX + 1, 1}}, .hooks = bad_hooks(&heap)};
    refused(NB_ERR_RANGE, NB_ITEM_LOOP_ARGUMENT, nb_engine_create(&rate, &out));
    nb_engine_desc workers = {.scheduler_desc = {.worker_count = 1000}, .hooks = bad_hooks(&heap)};
    refused(NB_ERR_RANGE, NB_ITEM_TASK_ARGUMENT, nb_engine_create(&workers, &out));
    assert_ptr_equal(out, UNTOUCHED(nb_engine));
    assert_int_equal(heap.live_count.value, 0);
}

TEST(synctest_has_a_report_only_where_it_runs) {
    test_heap heap = {0};
    nb_engine *engine = engine_open(&heap);
    nb_synctest_report report = {.depth = 77};
    refused(NB_ERR_MISUSE, NB_ITEM_ENGINE_ARGUMENT, nb_engine_synctest_get(engine, NULL));
    accepted(NB_ERR_UNSUPPORTED, nb_engine_synctest_get(engine, &report));
    assert_int_equal(report.depth, 77);
    assert_int_equal(nb_engine_destroy(engine), NB_OK);
    assert_int_equal(heap.live_count.value, 0);
}

TEST(attaching_refuses_a_bad_desc) {
    test_heap heap = {0};
    nb_engine *engine = engine_open(&heap);
    static char long_name[NB_MODULE_NAME_SIZE_MAX + 2];
    memset(long_name, 'n', sizeof long_name - 1);
    static const char *const hole[] = {"a", NULL};
    nb_module_desc bad[] = {
        {.name = NULL},
        {.name = ""},
        {.name = "m", .after_count = 1},
        {.name = "m", .before_count = 1},
        {.name = "m", .after = hole, .after_count = 2},
        {.name = "m", .before = hole, .before_count = 2},
        {.name = "m", .capabilities = 16},
        {.name = "m", .tick = do_nothing},
        {.name = "m", .frame = do_nothing},
        {.name = "m"},
        {.name = "m"},
        {.name = "m"},
    };
    bad[7].handlers[NB_PHASE_FIXED_SIM] = do_nothing;
    bad[8].handlers[NB_PHASE_GAMEPLAY] = do_nothing;
    bad[9].handlers[NB_PHASE_PARALLEL_TASKS] = do_nothing;
    bad[10].handlers[NB_PHASE_DETACHED_SERVICES] = do_nothing;
    bad[11].handlers[NB_PHASE_NONE] = do_nothing;
    nb_module_id module = {77};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; ++i) {
        refused(NB_ERR_MISUSE, NB_ITEM_ENGINE_ARGUMENT, nb_engine_module_attach(engine, &bad[i], &module));
    }
    refused(NB_ERR_MISUSE, NB_ITEM_ENGINE_ARGUMENT, nb_engine_module_attach(engine, NULL, &module));
    nb_module_desc name = {.name = long_name};
    refused(NB_ERR_RANGE, NB_ITEM_ENGINE_ARGUMENT, nb_engine_module_attach(engine, &name, &module));
    nb_module_desc jobs = {.name = "m", .parallel = do_nothing, .job_count = NB_JOB_COUNT_MAX + 1};
    refused(NB_ERR_RANGE, NB_ITEM_ENGINE_ARGUMENT, nb_engine_module_attach(engine, &jobs, &module));
    assert_int_equal(module.value, 77);
    engine_close(engine, &heap);
}

TEST(handles_that_are_none_are_refused) {
    test_heap heap = {0};
    nb_engine *engine = engine_open(&heap);
    nb_module_desc desc = {.name = "m"};
    static const uint64_t values[] = {0, 1, 77, 0xFFFF, UINT64_MAX};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; ++i) {
        nb_module_id module = {values[i]};
        refused(NB_ERR_STALE, NB_ITEM_ENGINE_STALE, nb_engine_module_detach(engine, module));
        refused(NB_ERR_STALE, NB_ITEM_ENGINE_STALE, nb_engine_module_replace(engine, module, &desc));
        accepted(0, nb_engine_module_name(engine, module)[0]);
    }
    nb_module_id module;
    accepted(NB_OK, nb_engine_module_attach(engine, &desc, &module));
    accepted(NB_OK, nb_engine_module_detach(engine, module));
    refused(NB_ERR_STALE, NB_ITEM_ENGINE_STALE, nb_engine_module_detach(engine, module));
    accepted(0, nb_engine_order_get(engine, (nb_phase)77, NULL, 0));
    accepted(0, nb_engine_order_get(engine, NB_PHASE_NONE, NULL, 5));
    engine_close(engine, &heap);
}

// What a handler can get wrong about world and commands.
static nb_result do_wrong(const nb_context *context, void *user) {
    uint32_t *count = user;
    if (nb_engine_world(context->engine) == NULL) ++*count;
    if (nb_context_command(context, NULL) == NB_ERR_MISUSE) ++*count;
    if (nb_context_correct_input(context, 0, NULL) == NB_ERR_MISUSE) ++*count;
    if (nb_context_correct_state(context, 0, NULL, 0) == NB_ERR_MISUSE) ++*count;
    return NB_OK;
}

TEST(handlers_are_refused_what_makes_no_sense) {
    test_heap heap = {0};
    nb_engine *engine = engine_open(&heap);
    uint32_t count = 0;
    nb_module_desc desc = {.name = "wrong", .frame = do_wrong, .user = &count};
    nb_module_id module;
    accepted(NB_OK, nb_engine_module_attach(engine, &desc, &module));
    LISTENED(OWN_LOGGER, NB_ITEM_ENGINE_ARGUMENT, 4, nb_engine_frame_delta(engine, 0));
    assert_int_equal(count, 4);
    accepted(NB_OK, nb_engine_module_detach(engine, module));
    engine_close(engine, &heap);
}

TEST(other_states_need_bytes_commands_and_a_tick) {
    test_heap heap = {0};
    nb_engine *engine = engine_open(&heap);
    uint64_t bytes = 0;
    static nb_input_event events[NB_COMMAND_COUNT_DEFAULT + 1];
    nb_input_view none = {0}, missing = {NULL, 1}, many = {events, NB_COMMAND_COUNT_DEFAULT + 1};
    refused(NB_ERR_MISUSE, NB_ITEM_ENGINE_ARGUMENT, nb_engine_load(engine, 0, NULL, 8, none));
    refused(NB_ERR_MISUSE, NB_ITEM_ENGINE_ARGUMENT, nb_engine_load(engine, 0, &bytes, 8, missing));
    refused(NB_ERR_RANGE, NB_ITEM_ENGINE_ARGUMENT, nb_engine_load(engine, 0, &bytes, 8, many));
    refused(NB_ERR_RANGE, NB_ITEM_ENGINE_ARGUMENT, nb_engine_load(engine, NB_TICK_COUNT_MAX + 1, &bytes, 8, none));
    refused(NB_ERR_RANGE, NB_ITEM_STATE_SAVE, nb_engine_load(engine, 0, &bytes, 8, none));
    refused(NB_ERR_RANGE, NB_ITEM_ENGINE_ARGUMENT, nb_engine_set_tick(engine, NB_TICK_COUNT_MAX + 1));
    refused(NB_ERR_RANGE, NB_ITEM_ENGINE_ARGUMENT, nb_engine_set_tick(engine, UINT64_MAX));
    accepted(0, nb_engine_commands(engine).count);
    accepted(0, nb_loop_tick_count(nb_engine_loop(engine)));
    engine_close(engine, &heap);
}

TEST(watches_without_a_user_of_their_own_are_refused) {
    test_heap heap = {0};
    nb_engine *engine = engine_open(&heap);
    nb_tick_watch none = {0}, fine = {.user = &heap};
    refused(NB_ERR_MISUSE, NB_ITEM_ENGINE_ARGUMENT, nb_engine_watch_add(engine, NULL));
    refused(NB_ERR_MISUSE, NB_ITEM_ENGINE_ARGUMENT, nb_engine_watch_add(engine, &none));
    refused(NB_ERR_STALE, NB_ITEM_ENGINE_STALE, nb_engine_watch_remove(engine, &heap));
    accepted(NB_OK, nb_engine_watch_add(engine, &fine));
    refused(NB_ERR_MISUSE, NB_ITEM_ENGINE_ARGUMENT, nb_engine_watch_add(engine, &fine));
    accepted(NB_OK, nb_engine_watch_remove(engine, &heap));
    refused(NB_ERR_STALE, NB_ITEM_ENGINE_STALE, nb_engine_watch_remove(engine, NULL));
    engine_close(engine, &heap);
}
