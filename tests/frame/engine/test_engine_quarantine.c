// SPDX-License-Identifier: MIT
// Work that is late again and again, in an engine: quarantine of tasks and jobs by their labels, what suspends it, the
// time-out in frames, and the time of degraded frames.

#include "frame/engine/engine_fixture.h"

#include "nebula/rollback.h"

#define LIMIT_NS UINT64_C(20000000000)
#define STRIKE_COUNT 3u
#define JOB_COUNT 2u

// Workers, and whether the scheduler is borrowed.
typedef struct setting {
    uint32_t worker_count;
    bool is_borrowed;
} setting;

static const setting settings[] = {{1, false}, {1, true}};

// In each frame a task with the label, or a job of the module, that does not end before the frame has. Numbers are
// those of frames + 1; a worker holds one at a time.
typedef struct culprit {
    rig rig;
    nb_scheduler *borrowed;
    nb_fence *fence;
    nb_label label;
    nb_task task;
    uint64_t coordinator, published, clock_ns;
    bool holds, is_stopped;
    uint32_t merge_count, wrong_count;
    nb_atomic_u64 started, may_end;
    nb_atomic_u32 run_count, mistakes;
} culprit;

static void await(culprit *c, const nb_atomic_u64 *flag, uint64_t value) {
    uint64_t end_ns = nbi_clock_now_ns() + LIMIT_NS;
    while (nbi_atomic_load_acquire_u64(flag) < value && nbi_clock_now_ns() < end_ns) nbi_thread_yield();
    if (nbi_atomic_load_acquire_u64(flag) < value) nbi_atomic_fetch_add_seq_cst_u32(&c->mistakes, 1);
}

static void hold(culprit *c, uint64_t number) {
    nbi_atomic_exchange_seq_cst_u64(&c->started, number);
    await(c, &c->may_end, number);
}

typedef struct order {
    culprit *c;
    uint64_t number;
} order;

static void run_task(nb_task_context *context, void *argument) {
    const order *o = argument;
    (void)context;
    hold(o->c, o->number);
}

static nb_result submit(const nb_context *context, void *user) {
    culprit *c = user;
    order o = {c, context->frame_index + 1};
    c->fence = context->fence;
    if (!c->holds) return NB_OK;
    nb_task_desc desc = {.run = run_task,
                         .argument = &o,
                         .argument_size_bytes = sizeof o,
                         .label = c->label,
                         .lifetime = NB_LIFETIME_FRAME,
                         .fence = context->fence};
    if (nb_task_submit(context->scheduler, &desc, &c->task) != NB_OK) ++c->wrong_count;
    await(c, &c->started, o.number); // by the worker: the coordinator would be kept by it
    return NB_OK;
}

static nb_engine_desc quick_desc(uint32_t worker_count) {
    nb_engine_desc desc = rig_desc(worker_count);
    desc.fence_timeout_ns = 1000000;
    desc.strike_count_max = STRIKE_COUNT;
    desc.is_headless = true;
    return desc;
}

static void open_desc(culprit *c, setting by, nb_engine_desc desc) {
    memset(c, 0, sizeof *c);
    c->coordinator = nbi_thread_id();
    if (by.is_borrowed) {
        assert_int_equal(nb_scheduler_create(&desc.scheduler_desc, &c->borrowed), NB_OK);
        desc.scheduler = c->borrowed;
    }
    rig_open_desc(&c->rig, desc);
    assert_int_equal(nb_labels_intern(nb_engine_labels(c->rig.engine), "meshing", &c->label), NB_OK);
    c->holds = true;
}

static void open_tasks(culprit *c, setting by, nb_engine_desc desc) {
    open_desc(c, by, desc);
    attach(&c->rig, (nb_module_desc){.name = "world", .frame = submit, .user = c});
}

static void close(culprit *c) {
    assert_int_equal(c->wrong_count, 0);
    assert_int_equal(nbi_atomic_load_seq_cst_u32(&c->mistakes), 0);
    rig_close(&c->rig);
    assert_int_equal(nb_scheduler_destroy(c->borrowed), NB_OK);
}

static void let_go(culprit *c) {
    uint64_t end_ns = nbi_clock_now_ns() + LIMIT_NS;
    nbi_atomic_exchange_seq_cst_u64(&c->may_end, nbi_atomic_load_seq_cst_u64(&c->started));
    while (!nb_task_is_complete(nb_engine_scheduler(c->rig.engine), c->task) && nbi_clock_now_ns() < end_ns) {
        nbi_thread_yield();
    }
}

// A frame whose task does not end before it. Returns whether the frame was degraded by it.
static bool late_frame(culprit *c) {
    uint64_t degraded = rig_stats(&c->rig).degraded_count;
    assert_int_equal(nb_engine_frame_delta(c->rig.engine, 0), NB_OK);
    let_go(c);
    return rig_stats(&c->rig).degraded_count != degraded;
}

TEST(label_that_is_late_three_times_is_waited_for_no_longer) {
    static culprit c;
    for (uint32_t i = 0; i < 2; ++i) {
        open_tasks(&c, settings[i], quick_desc(settings[i].worker_count));
        for (uint32_t f = 0; f < STRIKE_COUNT; ++f) {
            assert_int_equal(rig_stats(&c.rig).quarantine_count, 0);
            assert_true(late_frame(&c));
        }
        assert_int_equal(rig_stats(&c.rig).quarantine_count, 1);
        assert_true(nb_fence_is_quarantined(c.fence, c.label));
        for (uint32_t f = 0; f < 5; ++f) assert_false(late_frame(&c));
        assert_int_equal(test_log_count(&c.rig.log, NB_ITEM_FENCE_QUARANTINED), 1);
        assert_int_equal(nb_fence_forgive(c.fence, true), NB_OK);
        assert_true(late_frame(&c));
        assert_int_equal(rig_stats(&c.rig).quarantine_count, 0);
        close(&c);
    }
}

static void open_striking(culprit *c, uint32_t strike_count_max) {
    nb_engine_desc desc = quick_desc(1);
    desc.strike_count_max = strike_count_max;
    open_tasks(c, settings[0], desc);
}

TEST(report_of_a_quarantine_names_the_label) {
    static culprit c;
    open_striking(&c, 1);
    assert_true(late_frame(&c));
    assert_int_equal(test_log_count(&c.rig.log, NB_ITEM_FENCE_QUARANTINED), 1);
    assert_non_null(strstr(c.rig.log.last_message, "\"meshing\""));
    close(&c);
}

TEST(without_quarantine_late_frames_are_only_counted) {
    static culprit c;
    open_striking(&c, 0);
    for (uint32_t f = 1; f <= 5; ++f) {
        assert_true(late_frame(&c));
        assert_int_equal(rig_stats(&c.rig).degraded_count, f);
    }
    assert_int_equal(rig_stats(&c.rig).quarantine_count, 0);
    assert_int_equal(test_log_count(&c.rig.log, NB_ITEM_FENCE_QUARANTINED), 0);
    close(&c);
}

// --- what suspends it ---

typedef enum cut { CUT_RESYNC, CUT_GAP, CUT_LOAD, CUT_REWIND, CUT_SET_TICK, CUT_COUNT } cut;

static void make_cut(culprit *c, cut by, const void *save, size_t save_bytes) {
    nb_engine *engine = c->rig.engine;
    if (by == CUT_RESYNC) assert_int_equal(nb_loop_resync(nb_engine_loop(engine)), NB_OK);
    if (by == CUT_LOAD) assert_int_equal(nb_states_load(nb_engine_states(engine), save, save_bytes), NB_OK);
    if (by == CUT_REWIND) assert_int_equal(nb_engine_rewind(engine, 2), NB_OK);
    if (by == CUT_SET_TICK) assert_int_equal(nb_engine_set_tick(engine, 1000), NB_OK);
}

static nb_result do_nothing(const nb_context *context, void *user) {
    (void)context, (void)user;
    return NB_OK;
}

TEST(late_frames_around_a_discontinuity_do_not_add_up) {
    static culprit c;
    uint64_t value = 7;
    for (uint32_t by = 0; by < CUT_COUNT; ++by) {
        nb_engine_desc desc = quick_desc(1);
        desc.keeps_history = true;
        open_tasks(&c, settings[0], desc);
        nb_module_desc ticker = {.name = "ticker", .tick = do_nothing};
        attach(&c.rig, ticker);
        nb_provider_desc provider = {.name = "value", .data = &value, .size_bytes = sizeof value};
        assert_int_equal(nb_states_add(nb_engine_states(c.rig.engine), &provider, NULL), NB_OK);
        unsigned char save[1024];
        size_t save_bytes = 0;
        c.holds = false;
        run_ticks(&c.rig, 4);
        assert_int_equal(nb_states_save(nb_engine_states(c.rig.engine), save, sizeof save, &save_bytes), NB_OK);
        c.holds = true;
        assert_true(late_frame(&c) && late_frame(&c));
        make_cut(&c, (cut)by, save, save_bytes);
        uint64_t delta_ns = by == CUT_GAP ? UINT64_C(2000000000) : 0;
        assert_int_equal(nb_engine_frame_delta(c.rig.engine, delta_ns), NB_OK); // late, and no strike
        let_go(&c);
        assert_true(late_frame(&c) && late_frame(&c));
        assert_int_equal(rig_stats(&c.rig).quarantine_count, 0);
        assert_int_equal(rig_stats(&c.rig).degraded_count, 5); // counted all the same
        assert_true(late_frame(&c));
        assert_int_equal(rig_stats(&c.rig).quarantine_count, 1);
        close(&c);
    }
}

// --- jobs ---

static uint64_t snapshot_value(const nb_context *context) {
    const uint64_t *value = context->snapshot != NULL ? nb_snapshot_region(context->snapshot, 0, NULL) : NULL;
    return value != NULL ? *value : UINT64_MAX;
}

// On the worker it waits; on the coordinator for that, so that there is always one which is late.
static nb_result run_job(const nb_context *context, void *user) {
    culprit *c = user;
    uint64_t number = context->frame_index + 1;
    uint64_t *block = nb_output_add(context, sizeof *block);
    if (block == NULL) return NB_ERR_MEMORY;
    *block = number;
    nbi_atomic_fetch_add_seq_cst_u32(&c->run_count, 1);
    if (nbi_thread_id() == c->coordinator) {
        if (!c->is_stopped) await(c, &c->started, number);
        return NB_OK;
    }
    if (nbi_atomic_load_acquire_u64(&c->may_end) < number) hold(c, number);
    bool is_its_own = snapshot_value(context) == number && *block == number && context->frame_index + 1 == number;
    if (!is_its_own) nbi_atomic_fetch_add_seq_cst_u32(&c->mistakes, 1);
    return NB_OK;
}

static nb_result merge_job(const nb_context *context, void *user, const nb_output_list *outputs) {
    culprit *c = user;
    const uint64_t *block = nb_output_list_next(outputs, NULL, NULL);
    if (block == NULL || *block != context->frame_index + 1 || context->job_age != 0) ++c->wrong_count;
    ++c->merge_count;
    return NB_OK;
}

static void job_frame(culprit *c) {
    c->published = rig_stats(&c->rig).frame_count + 1;
    assert_int_equal(nb_engine_frame_delta(c->rig.engine, 0), NB_OK);
}

static bool is_idle(const culprit *c) {
    return nb_scheduler_stats_get(nb_engine_scheduler(c->rig.engine)).alive_count == 0;
}

static void await_idle(culprit *c) {
    uint64_t end_ns = nbi_clock_now_ns() + LIMIT_NS;
    while (!is_idle(c) && nbi_clock_now_ns() < end_ns) nbi_thread_yield();
    assert_true(is_idle(c));
}

// Three late frames: the module's jobs are in quarantine.
static void open_jobs(culprit *c, setting by) {
    nb_engine_desc desc = quick_desc(by.worker_count);
    desc.shutdown_ns = 1000000;
    open_desc(c, by, desc);
    uint32_t region = 0;
    nb_snapshot_region_desc published = {.name = "frame", .base = &c->published, .size_bytes = sizeof c->published};
    assert_int_equal(nb_snapshots_region_add(nb_engine_snapshots(c->rig.engine), &published, &region), NB_OK);
    attach(&c->rig, (nb_module_desc){
                        .name = "culling", .parallel = run_job, .merge = merge_job, .job_count = JOB_COUNT, .user = c});
    for (uint32_t f = 1; f <= STRIKE_COUNT; ++f) {
        job_frame(c);
        assert_int_equal(rig_stats(&c->rig).degraded_count, f);
        let_go(c);
        await_idle(c);
    }
    assert_int_equal(rig_stats(&c->rig).quarantine_count, 1);
    assert_non_null(strstr(c->rig.log.last_message, "\"culling\""));
}

// The frame's jobs run on behind it: their snapshot, their outputs and their place stay theirs.
TEST(jobs_in_quarantine_run_on_behind_their_frame) {
    static culprit c;
    for (uint32_t i = 0; i < 2; ++i) {
        open_jobs(&c, settings[i]);
        for (uint32_t f = 0; f < 3; ++f) {
            uint64_t number = rig_stats(&c.rig).frame_count + 1, late = rig_stats(&c.rig).late_job_count;
            uint32_t run_count = nbi_atomic_load_seq_cst_u32(&c.run_count);
            job_frame(&c);
            await(&c, &c.started, number);
            for (uint32_t j = 0; j < 5; ++j) job_frame(&c);
            assert_true(rig_stats(&c.rig).late_job_count > late);
            let_go(&c);
            nbi_atomic_exchange_seq_cst_u64(&c.may_end, UINT64_MAX); // those that are queued behind it
            await_idle(&c);
            nbi_atomic_exchange_seq_cst_u64(&c.may_end, nbi_atomic_load_seq_cst_u64(&c.started));
            assert_int_equal(nbi_atomic_load_seq_cst_u32(&c.run_count), run_count + JOB_COUNT); // none is withdrawn
        }
        assert_int_equal(rig_stats(&c.rig).degraded_count, STRIKE_COUNT);
        assert_true(rig_stats(&c.rig).late_drop_count > 0);
        // The end waits for them, too.
        job_frame(&c);
        await(&c, &c.started, rig_stats(&c.rig).frame_count);
        assert_int_equal(nb_engine_destroy(c.rig.engine), NB_BUSY);
        assert_true(test_log_count(&c.rig.log, NB_ITEM_ENGINE_LEFTOVER) >= 1);
        nbi_atomic_exchange_seq_cst_u64(&c.may_end, UINT64_MAX);
        uint64_t end_ns = nbi_clock_now_ns() + LIMIT_NS;
        while (!is_idle(&c) && nbi_clock_now_ns() < end_ns) nbi_thread_yield();
        close(&c);
    }
}

static void keep_worker(nb_task_context *context, void *argument) {
    culprit *c = *(culprit **)argument;
    (void)context;
    hold(c, UINT64_MAX);
}

static void end_at_once(nb_task_context *context, void *argument) { (void)context, (void)argument; }

// Fills the pool of tasks behind one that keeps the worker.
static void fill_pool(culprit *c) {
    nb_scheduler *scheduler = nb_engine_scheduler(c->rig.engine);
    nb_task_desc desc = {.run = keep_worker, .argument = &c, .argument_size_bytes = sizeof c};
    assert_int_equal(nb_task_submit(scheduler, &desc, NULL), NB_OK);
    await(c, &c->started, UINT64_MAX);
    desc = (nb_task_desc){.run = end_at_once, .priority = NB_PRIORITY_CRITICAL};
    for (uint32_t i = 0; i < NB_TASK_COUNT_MAX && nb_task_submit(scheduler, &desc, NULL) == NB_OK; ++i) {
    }
}

// The coordinator runs jobs that find no room. One in quarantine is late for a reason.
TEST(jobs_in_quarantine_without_room_do_not_keep_the_frame) {
    static culprit c;
    open_jobs(&c, settings[0]);
    fill_pool(&c);
    c.is_stopped = true; // nothing holds a job that the coordinator runs
    uint32_t run_count = nbi_atomic_load_seq_cst_u32(&c.run_count);
    nb_engine_stats before = rig_stats(&c.rig);
    job_frame(&c);
    assert_int_equal(nbi_atomic_load_seq_cst_u32(&c.run_count), run_count);
    assert_int_equal(rig_stats(&c.rig).late_job_count, before.late_job_count + JOB_COUNT);
    assert_int_equal(rig_stats(&c.rig).job_count, before.job_count);
    nbi_atomic_exchange_seq_cst_u64(&c.may_end, UINT64_MAX);
    await_idle(&c);
    job_frame(&c);
    await_idle(&c);
    assert_int_equal(nbi_atomic_load_seq_cst_u32(&c.run_count), run_count + JOB_COUNT);
    close(&c);
}

// A borrowed scheduler that its host stops takes queued jobs with it: they are over, not busy for ever.
TEST(jobs_in_quarantine_end_with_their_scheduler) {
    static culprit c;
    open_jobs(&c, settings[1]);
    job_frame(&c);
    await(&c, &c.started, rig_stats(&c.rig).frame_count);
    c.is_stopped = true;
    assert_int_equal(nb_scheduler_stop(c.borrowed), NB_OK); // one runs, the other one is queued
    job_frame(&c);
    nbi_atomic_exchange_seq_cst_u64(&c.may_end, UINT64_MAX);
    await_idle(&c);
    job_frame(&c);
    assert_true(c.merge_count >= JOB_COUNT); // by the coordinator
    close(&c);
}

// Longer than the frame waits: the other one is not begun in time.
static nb_result run_long(const nb_context *context, void *user) {
    culprit *c = user;
    uint64_t end_ns = nbi_clock_now_ns() + 2000000;
    while (nbi_clock_now_ns() < end_ns) nbi_cpu_relax();
    (void)context;
    nbi_atomic_fetch_add_seq_cst_u32(&c->run_count, 1);
    return NB_OK;
}

TEST(jobs_in_quarantine_run_without_workers) {
    static culprit c;
    open_desc(&c, (setting){0, false}, quick_desc(0));
    attach(&c.rig, (nb_module_desc){.name = "culling", .parallel = run_long, .job_count = JOB_COUNT, .user = &c});
    for (uint32_t f = 0; f < STRIKE_COUNT; ++f) job_frame(&c);
    assert_int_equal(rig_stats(&c.rig).quarantine_count, 1);
    uint32_t run_count = nbi_atomic_load_seq_cst_u32(&c.run_count);
    // AsyncPoll runs one in each frame, at least.
    for (uint32_t f = 0; f < 2 * JOB_COUNT; ++f) job_frame(&c);
    assert_true(nbi_atomic_load_seq_cst_u32(&c.run_count) >= run_count + 2 * JOB_COUNT - 1);
    assert_int_equal(rig_stats(&c.rig).degraded_count, STRIKE_COUNT);
    close(&c);
}

// --- the time-out in frames ---

TEST(timeout_in_frames_follows_the_budget) {
    static culprit c;
    nb_engine_desc desc = quick_desc(1);
    desc.fence_timeout_ns = UINT64_C(60000000000); // longer than the task waits
    desc.fence_timeout_frames = 2;
    desc.budget.target_ns = 1000000;
    open_tasks(&c, settings[0], desc);
    assert_true(late_frame(&c));
    close(&c);
    desc.fence_timeout_frames = UINT32_MAX; // more nanoseconds than there are
    desc.budget.target_ns = UINT64_MAX / 4;
    open_tasks(&c, settings[0], desc);
    c.holds = false;
    assert_int_equal(nb_engine_frame_delta(c.rig.engine, 0), NB_OK);
    assert_int_equal(rig_stats(&c.rig).degraded_count, 0);
    close(&c);
}

// --- the time of degraded frames ---

#define STALL_NS UINT64_C(200000000)

static nb_result count_tick(const nb_context *context, void *user) {
    (void)context;
    ++*(uint64_t *)user;
    return NB_OK;
}

// Stands still but in the first frame that is degraded, where it moves before ParallelTasks ends.
static uint64_t stalling_now(void *user) {
    const culprit *c = user;
    bool has_stalled = c->rig.engine != NULL && rig_stats(&c->rig).degraded_count != 0;
    return c->clock_ns + (has_stalled ? STALL_NS : 0);
}

TEST(time_of_a_degraded_frame_is_left_out_where_asked_for) {
    static culprit c;
    for (int excludes = 0; excludes <= 1; ++excludes) {
        uint64_t tick_count = 0;
        nb_engine_desc desc = quick_desc(1);
        desc.strike_count_max = 0;
        desc.excludes_degraded_time = excludes != 0;
        desc.adapts_budget = true;
        desc.loop.clock = (nb_clock){.now_ns = stalling_now, .user = &c};
        c.rig.engine = NULL;
        open_tasks(&c, settings[0], desc);
        attach(&c.rig, (nb_module_desc){.name = "ticker", .tick = count_tick, .user = &tick_count});
        c.clock_ns = 1000;
        c.holds = false;
        assert_int_equal(nb_engine_frame(c.rig.engine), NB_OK);
        uint64_t ignored = nb_budget_stats_get(nb_engine_budget(c.rig.engine)).ignored_count;
        c.holds = true;
        assert_int_equal(nb_engine_frame(c.rig.engine), NB_OK);
        let_go(&c);
        c.holds = false;
        assert_int_equal(rig_stats(&c.rig).degraded_count, 1);
        nb_budget_stats budget = nb_budget_stats_get(nb_engine_budget(c.rig.engine));
        assert_int_equal(budget.ignored_count - ignored, excludes);
        tick_count = 0;
        assert_int_equal(nb_engine_frame(c.rig.engine), NB_OK);
        assert_int_equal(tick_count, excludes ? 0 : 12); // at 60 a second
        assert_int_equal(nb_loop_report_get(nb_engine_loop(c.rig.engine)).excluded_ns, excludes ? STALL_NS : 0);
        // A frame that is in time counts as ever.
        c.clock_ns += 50000001;
        tick_count = 0;
        assert_int_equal(nb_engine_frame(c.rig.engine), NB_OK);
        assert_int_equal(tick_count, 3);
        close(&c);
    }
}
