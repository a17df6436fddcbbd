// SPDX-License-Identifier: MIT
// Parallel handlers: private outputs, merged by index, the same with any number of threads; late and failing jobs.

#include "frame/engine/engine_fixture.h"

#define JOB_COUNT 7u
#define LIMIT_NS ((uint64_t)10000000000)

typedef struct crowd {
    uint64_t hash;
    uint64_t merged_jobs, merged_blocks;
    uint32_t next_index;
    bool is_in_order;
    uint32_t fail_job; // index + 1
    uint32_t full_job; // index + 1
} crowd;

static nb_result make(const nb_context *context, void *user) {
    crowd *c = user;
    if (context->job_index + 1 == c->fail_job) return NB_ERR_OS;
    if (context->job_index + 1 == c->full_job && nb_output_add(context, (size_t)1 << 40) != NULL) return NB_ERR_RANGE;
    for (uint32_t i = 0; i <= context->job_index; ++i) {
        uint64_t *block = nb_output_add(context, 8 * (i + 1));
        if (block == NULL) return NB_OK; // counted by the engine
        if (((uintptr_t)block & 15) != 0 || block[i] != 0) return NB_ERR_MISUSE;
        block[i] = context->frame_index * 1000 + context->job_index * 10 + i;
    }
    return NB_OK;
}

static nb_result merge(const nb_context *context, void *user, const nb_output_list *outputs) {
    crowd *c = user;
    if (context->phase != NB_PHASE_POST_PARALLEL || context->job_index < c->next_index) c->is_in_order = false;
    c->next_index = (context->job_index + 1) % context->job_count;
    ++c->merged_jobs;
    size_t size_bytes = 0;
    uint32_t i = 0;
    for (const void *block = nb_output_list_next(outputs, NULL, &size_bytes); block != NULL;
         block = nb_output_list_next(outputs, block, &size_bytes), ++i) {
        if (size_bytes != 8 * (i + 1)) c->is_in_order = false;
        c->hash = (c->hash ^ ((const uint64_t *)block)[i]) * 0x100000001B3u;
        ++c->merged_blocks;
    }
    return NB_OK;
}

static nb_module_desc crowd_desc(crowd *c) {
    *c = (crowd){.is_in_order = true};
    return (nb_module_desc){.name = "crowd", .parallel = make, .merge = merge, .job_count = JOB_COUNT, .user = c};
}

static void crowd_open(rig *r, crowd *c, uint32_t worker_count) {
    rig_open(r, worker_count);
    attach(r, crowd_desc(c));
}

static rig r; // of the case that runs

TEST(outputs_merge_by_index_with_any_number_of_workers) {
    uint64_t expected = 0;
    uint64_t frames = test_size(50, 500, 5000);
    for (uint32_t workers = 0; workers <= 4; ++workers) {
        crowd c;
        rig_open(&r, workers);
        attach(&r, crowd_desc(&c));
        run_ticks(&r, frames);
        assert_true(c.is_in_order);
        assert_int_equal(c.merged_jobs, frames * JOB_COUNT);
        assert_int_equal(c.merged_blocks, frames * JOB_COUNT * (JOB_COUNT + 1) / 2);
        if (workers == 0) expected = c.hash;
        assert_true(c.hash == expected);
        assert_int_equal(rig_stats(&r).job_count, frames * JOB_COUNT);
        assert_int_equal(rig_stats(&r).degraded_count, 0);
        // The last job has blocks of 8, 16, ... bytes, each with 16 before it, and no other has more.
        size_t bytes = 4 * JOB_COUNT * (JOB_COUNT + 1) + 16 * JOB_COUNT;
        assert_in_range(rig_stats(&r).output_peak_bytes, bytes, bytes + 16 * JOB_COUNT);
        assert_int_equal(rig_stats(&r).frame_peak_bytes, 0);
        rig_close(&r);
    }
}

static nb_result record(const nb_context *context, void *user) {
    (void)user;
    uint32_t *command = nb_output_add(context, sizeof *command);
    if (command == NULL) return NB_ERR_MEMORY;
    *command = context->job_index;
    return context->phase == NB_PHASE_COMMAND_RECORD ? NB_OK : NB_ERR_MISUSE;
}

static nb_result submit(const nb_context *context, void *user, const nb_output_list *outputs) {
    uint32_t *count = user;
    const uint32_t *command = nb_output_list_next(outputs, NULL, NULL);
    bool is_good = command != NULL && *command == context->job_index && *count % 5 == context->job_index &&
                   context->phase == NB_PHASE_COMMAND_RECORD &&
                   nb_context_check_capability(context, NB_CAPABILITY_SUBMIT) == NB_OK;
    ++*count;
    return is_good ? NB_OK : NB_ERR_MISUSE;
}

TEST(commands_are_recorded_in_parallel_and_submitted_in_order) {
    for (uint32_t workers = 0; workers <= 2; ++workers) {
        uint32_t count = 0;
        rig_open(&r, workers);
        attach(&r, (nb_module_desc){.name = "draw",
                                    .record = record,
                                    .submit = submit,
                                    .record_count = 5,
                                    .capabilities = NB_CAPABILITY_SUBMIT,
                                    .user = &count});
        run_ticks(&r, 20);
        assert_int_equal(count, 100);
        assert_int_equal(rig_stats(&r).failure_count, 0);
        rig_close(&r);
    }
}

TEST(failing_job_is_a_failure_of_its_module) {
    crowd c;
    crowd_open(&r, &c, 1);
    c.fail_job = 4;
    assert_int_equal(nb_engine_frame_delta(r.engine, 0), NB_ERR_OS);
    assert_int_equal(c.merged_jobs, 3); // those before it
    assert_int_equal(rig_stats(&r).failure_count, 1);
    c.fail_job = 0, c.next_index = 0;
    assert_int_equal(nb_engine_frame_delta(r.engine, 0), NB_OK);
    assert_int_equal(c.merged_jobs, 3 + JOB_COUNT);
    rig_close(&r);
}

TEST(outputs_beyond_their_memory_are_a_failure) {
    crowd c;
    crowd_open(&r, &c, 0);
    c.full_job = 1;
    assert_int_equal(nb_engine_frame_delta(r.engine, 0), NB_ERR_MEMORY);
    assert_int_equal(rig_stats(&r).output_full_count, 1);
    assert_int_equal(c.merged_jobs, 0);
    c.full_job = 0;
    assert_int_equal(nb_engine_frame_delta(r.engine, 0), NB_OK);
    rig_close(&r);
}

// --- late jobs ---

// Jobs of the first frame that do not return before they may, on the worker; on the coordinator they wait for one of
// those, and on until the frame's time is over: what is queued behind them is not begun.
#define SLEEPY_COUNT 3u
#define FENCE_TIMEOUT_NS ((uint64_t)2000000)

typedef struct sleeper {
    nb_atomic_u32 may_end, started, timeouts, mistakes;
    nb_atomic_u32 late_index; // of the job on the worker
    uint64_t coordinator;
    uint32_t merged;
} sleeper;

static void wait_until(sleeper *s, const nb_atomic_u32 *flag) {
    uint64_t end_ns = nbi_clock_now_ns() + LIMIT_NS;
    while (nbi_atomic_load_seq_cst_u32(flag) == 0 && nbi_clock_now_ns() < end_ns) nbi_thread_yield();
    if (nbi_atomic_load_seq_cst_u32(flag) == 0) nbi_atomic_fetch_add_seq_cst_u32(&s->timeouts, 1);
}

static nb_result sleep_on(const nb_context *context, void *user) {
    sleeper *s = user;
    uint64_t *frame = nb_output_add(context, sizeof *frame);
    if (frame == NULL) return NB_ERR_MEMORY;
    *frame = context->frame_index;
    if (context->frame_index != 0) return NB_OK;
    bool is_coordinator = nbi_thread_id() == s->coordinator;
    if (!is_coordinator) {
        nbi_atomic_store_relaxed_u32(&s->late_index, context->job_index);
        nbi_atomic_fetch_add_seq_cst_u32(&s->started, 1);
    }
    wait_until(s, is_coordinator ? &s->started : &s->may_end);
    uint64_t until_ns = is_coordinator ? nbi_clock_now_ns() + 2 * FENCE_TIMEOUT_NS : 0;
    while (nbi_clock_now_ns() < until_ns) nbi_cpu_relax();
    // Its own frame's, however late it is.
    if (context->time->index != 0) nbi_atomic_fetch_add_seq_cst_u32(&s->mistakes, 1);
    return NB_OK;
}

static nb_result wake_up(const nb_context *context, void *user, const nb_output_list *outputs) {
    sleeper *s = user;
    ++s->merged;
    bool is_late = context->frame_index == 0 && context->job_index == nbi_atomic_load_relaxed_u32(&s->late_index);
    if (is_late) nbi_atomic_fetch_add_seq_cst_u32(&s->mistakes, 1);
    const uint64_t *frame = nb_output_list_next(outputs, NULL, NULL);
    return frame != NULL && *frame == context->frame_index ? NB_OK : NB_ERR_STALE;
}

static void open_sleepy(rig *own, sleeper *s, uint64_t shutdown_ns) {
    nb_engine_desc desc = rig_desc(1);
    desc.fence_timeout_ns = FENCE_TIMEOUT_NS;
    desc.shutdown_ns = shutdown_ns;
    rig_open_desc(own, desc);
    *s = (sleeper){.coordinator = nbi_thread_id()};
    attach(own, (nb_module_desc){
                    .name = "sleeper", .parallel = sleep_on, .merge = wake_up, .job_count = SLEEPY_COUNT, .user = s});
}

// A frame that waited for nobody, with all of the crowd's outputs. False: there is none.
static bool run_until_whole(rig *own, crowd *c) {
    uint64_t end_ns = nbi_clock_now_ns() + LIMIT_NS;
    do {
        uint64_t degraded = rig_stats(own).degraded_count;
        c->merged_jobs = 0, c->next_index = 0;
        if (nb_engine_frame_delta(own->engine, 0) != NB_OK) return false;
        if (c->merged_jobs == JOB_COUNT && rig_stats(own).degraded_count == degraded) return true;
    } while (nbi_clock_now_ns() < end_ns);
    return false;
}

TEST(late_job_degrades_its_frame_and_is_left_out_until_it_returns) {
    sleeper s;
    crowd c;
    open_sleepy(&r, &s, 0);
    attach(&r, crowd_desc(&c));
    assert_int_equal(nb_engine_frame_delta(r.engine, 0), NB_OK);
    uint32_t late = nbi_atomic_load_seq_cst_u32(&s.started);
    assert_int_equal(late, 1);
    assert_true(rig_stats(&r).degraded_count >= 1);
    assert_true(s.merged <= SLEEPY_COUNT - late);
    // The others are not its hostages, and later frames do not wait for it: on a machine that is busy these may be late
    // too, but not for ever.
    assert_true(run_until_whole(&r, &c));
    assert_true(rig_stats(&r).late_job_count >= late);
    nbi_atomic_store_release_u32(&s.may_end, 1);
    uint64_t end_ns = nbi_clock_now_ns() + LIMIT_NS;
    for (s.merged = 0; s.merged < SLEEPY_COUNT && nbi_clock_now_ns() < end_ns;) {
        s.merged = 0;
        assert_int_equal(nb_engine_frame_delta(r.engine, 0), NB_OK); // never with outputs of the old frame
    }
    assert_int_equal(s.merged, SLEEPY_COUNT);
    assert_int_equal(s.timeouts.value + s.mistakes.value, 0);
    rig_close(&r);
}

TEST(destroy_names_a_job_that_does_not_stop) {
    sleeper s;
    open_sleepy(&r, &s, 1000000);
    assert_int_equal(nb_engine_frame_delta(r.engine, 0), NB_OK);
    assert_int_equal(nb_engine_destroy(r.engine), NB_BUSY);
    assert_int_equal(test_log_count(&r.log, NB_ITEM_ENGINE_LEFTOVER), 1);
    assert_non_null(strstr(r.log.last_message, "module sleeper"));
    nbi_atomic_store_release_u32(&s.may_end, 1);
    nb_result result = NB_BUSY;
    uint64_t end_ns = nbi_clock_now_ns() + LIMIT_NS;
    while (result == NB_BUSY && nbi_clock_now_ns() < end_ns) result = nb_engine_destroy(r.engine);
    assert_int_equal(result, NB_OK);
    assert_int_equal(r.heap.live_count.value, 0);
    assert_int_equal(s.timeouts.value, 0);
}
