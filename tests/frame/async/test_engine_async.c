// SPDX-License-Identifier: MIT
// Jobs of many frames in the engine: committed in AsyncPoll, seen from the next FrameStart on, never in a frame's
// middle, and given back when the engine ends.

#include "frame/engine/engine_fixture.h"
#include "support/async_job.h"

#define LIMIT_NS ((uint64_t)10000000000)

static const nb_column_desc mark_columns[] = {{.name = "number", .size_bytes = sizeof(uint32_t)}};

typedef struct streamer {
    rig r;
    nb_store *world;
    nb_table marks, ticks; // local; simulated
    uint64_t commits, publishes, discards, mistakes;
    uint64_t commit_frame, publish_frame;
    uint64_t seen_at_start, seen_at_end; // publishes, as seen by handlers of the newest frame
    uint64_t commands;                   // that reached a tick
    uint64_t asset_generation;
    nb_result last_reason;
    nb_atomic_u32 is_held, is_inside; // for steps that wait
} streamer;

typedef struct work {
    streamer *owner;
    uint32_t steps, number;
} work;

static void expect(streamer *s, bool is_right) { s->mistakes += is_right ? 0 : 1; }

static nb_async_status step(nb_async_call *call, void *state) {
    work *w = state;
    NB_ASYNC_BEGIN(call);
    for (w->number = 0; w->number < w->steps; ++w->number) {
        NB_ASYNC_FRAME(call);
    }
    NB_ASYNC_END(call);
}

static nb_result commit(void *host, void *state) {
    const nb_context *context = host;
    streamer *s = ((work *)state)->owner;
    ++s->commits;
    s->commit_frame = context->frame_index;
    expect(s, context->phase == NB_PHASE_ASYNC_POLL && context->module.value == 0);
    expect(s, nb_context_check(context, NB_LAYER_SIMULATED) == NB_ERR_PERMISSION);
    nb_entity entity;
    expect(s, nb_store_spawn(s->world, s->marks, &entity) == NB_ERR_PERMISSION); // this frame's snapshot is out
    nb_input_event command = {.kind = NB_INPUT_COMMAND};
    expect(s, nb_context_command(context, &command) == NB_OK);
    return NB_OK;
}

static void publish(void *host, void *state) {
    const nb_context *context = host;
    streamer *s = ((work *)state)->owner;
    ++s->publishes;
    s->publish_frame = context->frame_index;
    expect(s, context->phase == NB_PHASE_FRAME_START && context->engine == s->r.engine);
    expect(s, nb_context_check(context, NB_LAYER_GAME) == NB_OK);
    nb_entity entity;
    expect(s, nb_store_spawn(s->world, s->marks, &entity) == NB_OK);
    expect(s, nb_store_spawn(s->world, s->ticks, &entity) == NB_ERR_PERMISSION);
}

static void discard(void *host, void *state, nb_result reason) {
    streamer *s = ((work *)state)->owner;
    expect(s, host != NULL);
    ++s->discards;
    s->last_reason = reason;
}

static bool is_wanted(void *user, uint64_t generation, const void *state) {
    (void)state;
    return ((streamer *)user)->asset_generation == generation;
}

static nb_result note_start(const nb_context *context, void *user) {
    streamer *s = user;
    (void)context;
    s->seen_at_start = s->publishes;
    return NB_OK;
}

static nb_result note_end(const nb_context *context, void *user) {
    streamer *s = user;
    (void)context;
    s->seen_at_end = s->publishes;
    expect(s, s->seen_at_end == s->seen_at_start);
    return NB_OK;
}

static nb_result count_commands(const nb_context *context, void *user) {
    ((streamer *)user)->commands += context->commands.count;
    return NB_OK;
}

static void streamer_open_desc(streamer *s, nb_engine_desc desc) {
    memset(s, 0, sizeof *s);
    rig_open_desc(&s->r, desc);
    s->world = nb_engine_world(s->r.engine);
    nb_table_desc marks = {.name = "marks", .columns = mark_columns, .column_count = 1, .is_local = true};
    nb_table_desc ticks = {.name = "ticks", .columns = mark_columns, .column_count = 1};
    assert_int_equal(nb_store_table_add(s->world, &marks, &s->marks), NB_OK);
    assert_int_equal(nb_store_table_add(s->world, &ticks, &s->ticks), NB_OK);
    assert_non_null(nb_engine_async(s->r.engine));
    assert_ptr_equal(nb_engine_async(s->r.engine), nb_engine_async(s->r.engine));
    nb_module_desc module = {.name = "streamer", .tick = count_commands, .user = s};
    module.handlers[NB_PHASE_FRAME_START] = note_start;
    module.handlers[NB_PHASE_FRAME_END] = note_end;
    attach(&s->r, module);
}

static void streamer_open(streamer *s, uint32_t workers) { streamer_open_desc(s, rig_desc(workers)); }

static void submit(streamer *s, uint32_t steps, nb_async_job *job) {
    work state = {.owner = s, .steps = steps};
    nb_async_job_desc desc = async_job_of(step, commit, publish, discard, &state, sizeof state);
    desc.is_wanted = is_wanted, desc.user = s, desc.generation = s->asset_generation;
    assert_int_equal(nb_async_submit(nb_engine_async(s->r.engine), &desc, job), NB_OK);
}

// Frames until a number is reached: with workers, how many that are is the machine's business.
static void run_until(streamer *s, const uint64_t *number, uint64_t value) {
    uint64_t limit_ns = nbi_clock_now_ns() + LIMIT_NS;
    while (*number < value && nbi_clock_now_ns() < limit_ns) run_ticks(&s->r, 1);
    assert_true(*number >= value);
}

TEST(results_are_seen_from_the_next_frame_on) {
    for (uint32_t workers = 0; workers < 3; ++workers) {
        streamer s;
        streamer_open(&s, workers);
        for (uint32_t i = 0; i < 5; ++i) submit(&s, i, NULL);
        run_until(&s, &s.publishes, 5);
        assert_int_equal(s.commits, 5);
        assert_int_equal(s.discards, 0);
        assert_int_equal(s.publish_frame, s.commit_frame + 1);
        assert_int_equal(nb_store_row_count(s.world, s.marks), 5);
        assert_int_equal(s.commands, 5); // each in a tick after its commit
        assert_int_equal(s.mistakes, 0);
        assert_int_equal(rig_stats(&s.r).failure_count, 0);
        // Refusals: one check and one spawn for each commit, one spawn for each publish.
        assert_int_equal(rig_stats(&s.r).violation_count, 15);
        rig_close(&s.r);
    }
}

// Unloaded and loaded again while the job was on its way, or between commit and publish.
TEST(result_for_an_old_generation_is_not_published) {
    streamer s;
    streamer_open(&s, 0);
    submit(&s, 2, NULL);
    run_ticks(&s.r, 1);
    ++s.asset_generation;
    run_until(&s, &s.discards, 1);
    assert_int_equal(s.last_reason, NB_ERR_STALE);
    assert_int_equal(s.commits, 0);
    submit(&s, 0, NULL);
    run_until(&s, &s.commits, 1);
    assert_int_equal(s.publishes, 0);
    ++s.asset_generation;
    run_ticks(&s.r, 1);
    assert_int_equal(s.publishes, 0);
    assert_int_equal(s.discards, 2);
    submit(&s, 0, NULL);
    run_until(&s, &s.publishes, 1);
    assert_int_equal(s.mistakes, 0);
    rig_close(&s.r);
}

TEST(engine_gives_everything_back_at_its_end) {
    for (uint32_t workers = 0; workers < 2; ++workers) {
        streamer s;
        streamer_open(&s, workers);
        for (uint32_t i = 0; i < 20; ++i) submit(&s, i * 100, NULL);
        run_ticks(&s.r, 3);
        uint64_t published = s.publishes;
        rig_close(&s.r);
        assert_int_equal(s.publishes, published);
        assert_int_equal(s.publishes + s.discards, 20);
        assert_int_equal(s.last_reason, NB_CANCELLED);
        assert_int_equal(s.mistakes, 0);
    }
}

// --- what does not stop ---

static nb_async_status wait_inside(nb_async_call *call, void *state) {
    (void)call;
    streamer *s = ((work *)state)->owner;
    nbi_atomic_store_release_u32(&s->is_inside, 1);
    while (nbi_atomic_load_acquire_u32(&s->is_held) != 0) nbi_thread_yield();
    return NB_ASYNC_STATUS_DONE;
}

static void submit_held(streamer *s) {
    work state = {.owner = s};
    nb_async_job_desc desc = {
        .step = wait_inside, .discard = discard, .state = &state, .state_size_bytes = sizeof state};
    nbi_atomic_store_release_u32(&s->is_held, 1);
    assert_int_equal(nb_async_submit(nb_engine_async(s->r.engine), &desc, NULL), NB_OK);
    while (nbi_atomic_load_acquire_u32(&s->is_inside) == 0) nbi_thread_yield();
}

TEST(job_that_does_not_stop_is_named_and_the_end_repeated) {
    streamer s;
    nb_engine_desc desc = rig_desc(1);
    desc.shutdown_ns = 1000000;
    streamer_open_desc(&s, desc);
    submit_held(&s);
    assert_int_equal(nb_engine_destroy(s.r.engine), NB_BUSY);
    assert_int_equal(test_log_count(&s.r.log, NB_ITEM_ASYNC_STUCK), 1);
    assert_string_equal(s.r.log.last_function, "nb_engine_destroy");
    assert_int_equal(s.discards, 0);
    nbi_atomic_store_release_u32(&s.is_held, 0);
    uint64_t limit_ns = nbi_clock_now_ns() + LIMIT_NS;
    nb_result result = NB_BUSY;
    while (result == NB_BUSY && nbi_clock_now_ns() < limit_ns) result = nb_engine_destroy(s.r.engine);
    assert_int_equal(result, NB_OK);
    assert_int_equal(s.discards, 1);
    assert_int_equal(s.r.heap.live_count.value, 0);
}

TEST(replacing_a_module_leaves_the_jobs_of_others) {
    streamer s;
    streamer_open_desc(&s, rig_desc(1));
    nb_module_desc module = {.name = "other", .user = &s};
    nb_module_id handle = attach(&s.r, module);
    submit_held(&s);
    assert_int_equal(nb_engine_module_replace(s.r.engine, handle, &module), NB_OK);
    submit(&s, 1, NULL);
    nbi_atomic_store_release_u32(&s.is_held, 0);
    run_until(&s, &s.publishes, 1);
    while (nb_async_stats_get(nb_engine_async(s.r.engine)).live_count != 0) run_ticks(&s.r, 1);
    assert_int_equal(nb_async_stats_get(nb_engine_async(s.r.engine)).publish_count, 2);
    assert_int_equal(s.discards, 0);
    rig_close(&s.r);
}

// --- time ---

typedef struct slow {
    nb_clock_manual clock;
    uint32_t commits;
} slow;

static nb_async_status done(nb_async_call *call, void *state) {
    (void)call, (void)state;
    return NB_ASYNC_STATUS_DONE;
}

// A commit takes two milliseconds of the injected clock.
static nb_result commit_slowly(void *host, void *state) {
    (void)host;
    slow *s = *(slow **)state;
    nb_clock_manual_advance(&s->clock, 2000000);
    ++s->commits;
    return NB_OK;
}

static uint32_t commits_of_a_frame(bool adapts_budget, uint64_t meshing_ns, bool is_blind) {
    slow s = {.commits = 0}, *pointer = &s;
    nb_clock_manual_init(&s.clock, 0);
    rig r;
    nb_engine_desc desc = rig_desc(0);
    desc.async.clock = nb_clock_manual_get(&s.clock);
    desc.adapts_budget = adapts_budget;
    desc.budget.meshing_ns = meshing_ns;
    rig_open_desc(&r, desc);
    assert_int_equal(nb_engine_set_blind(r.engine, is_blind), NB_OK);
    for (uint32_t i = 0; i < 20; ++i) {
        nb_async_job_desc job = {.step = done,
                                 .commit = commit_slowly,
                                 .state = &pointer,
                                 .state_size_bytes = sizeof pointer,
                                 .budget_class = NB_ASYNC_CLASS_MESHING};
        assert_int_equal(nb_async_submit(nb_engine_async(r.engine), &job, NULL), NB_OK);
    }
    // The budget learns of being blind at the end of a frame. All jobs are done long before the second frame's poll.
    run_ticks(&r, 1);
    uint32_t before = s.commits;
    run_ticks(&r, 1);
    uint32_t commits = s.commits - before;
    rig_close(&r);
    return commits;
}

TEST(commits_keep_to_the_time_of_their_class) {
    assert_int_equal(commits_of_a_frame(false, 0, false), 2); // 3 ms
    assert_int_equal(commits_of_a_frame(false, 0, true), 6);  // four times as long
    assert_int_equal(commits_of_a_frame(true, 0, false), 2);
    assert_int_equal(commits_of_a_frame(true, 7000000, false), 4);
    assert_int_equal(commits_of_a_frame(true, 0, true), 6);
    assert_int_equal(commits_of_a_frame(true, 1, false), 1); // at least one, or nothing would ever come
}

TEST(failing_memory_is_survived) {
    bool has_failed = true;
    for (uint64_t call = 1; has_failed; ++call) {
        rig r;
        rig_open(&r, 0);
        uint64_t limit = r.heap.fail_at = r.heap.call_count.value + call;
        nb_async *async = nb_engine_async(r.engine);
        has_failed = r.heap.call_count.value >= limit;
        assert_true(has_failed ? async == NULL : async != NULL);
        assert_non_null(nb_engine_async(r.engine));
        run_ticks(&r, 2);
        rig_close(&r);
    }
}
