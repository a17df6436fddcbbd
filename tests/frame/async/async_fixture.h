// SPDX-License-Identifier: MIT
#pragma once

// What the tests of async jobs share: a scheduler with jobs, and callbacks that count what became of each.

#include "support/async_job.h"
#include "tasks/tasks_fixture.h"

#include "nebula/async.h"
#include "nebula/clock.h"

#define JOBS_MAX 4096

// What happened to one job, by its number.
typedef struct fate {
    nb_atomic_u32 commit_count, publish_count, discard_count;
    nb_result reason;
} fate;

typedef struct asyncs {
    tasks *tasks;
    test_heap heap;
    test_log log;
    nb_async *async;
    nb_async_frame frame;
    uint64_t coordinator_id;
    nb_atomic_u32 wrong_thread_count, wrong_host_count;
    nb_clock_manual clock;
    uint64_t cost_ns;             // of each commit, on the manual clock
    nb_result commit_result;      // what commits give
    nb_atomic_u64 wanted_version; // the generation that is wanted; 0 = any
    uint32_t order[JOBS_MAX];     // of commits, by number
    uint32_t order_count;
    fate fates[JOBS_MAX];
    // For steps that wait.
    event started, may_go, io_started, io_may_go;
    nb_atomic_u32 step_count, io_count;
} asyncs;

// The state of a test's job.
typedef struct job_state {
    asyncs *a;
    uint32_t number;
    uint32_t count; // for the step
} job_state;

static inline void note_thread(asyncs *a, void *host) {
    if (nbi_thread_id() != a->coordinator_id) nbi_atomic_fetch_add_seq_cst_u32(&a->wrong_thread_count, 1);
    if (host != a) nbi_atomic_fetch_add_seq_cst_u32(&a->wrong_host_count, 1);
}

static inline nb_result commit_count(void *host, void *state) {
    job_state *s = state;
    note_thread(s->a, host);
    nbi_atomic_fetch_add_seq_cst_u32(&s->a->fates[s->number].commit_count, 1);
    if (s->a->order_count < JOBS_MAX) s->a->order[s->a->order_count++] = s->number;
    nb_clock_manual_advance(&s->a->clock, s->a->cost_ns);
    return s->a->commit_result;
}

static inline void publish_count(void *host, void *state) {
    job_state *s = state;
    note_thread(s->a, host);
    nbi_atomic_fetch_add_seq_cst_u32(&s->a->fates[s->number].publish_count, 1);
}

static inline void discard_count(void *host, void *state, nb_result reason) {
    job_state *s = state;
    note_thread(s->a, host);
    nbi_atomic_fetch_add_seq_cst_u32(&s->a->fates[s->number].discard_count, 1);
    s->a->fates[s->number].reason = reason;
    nb_clock_manual_advance(&s->a->clock, s->a->cost_ns);
}

static inline bool is_wanted_version(void *user, uint64_t generation, const void *state) {
    asyncs *a = user;
    (void)state;
    uint64_t wanted = nbi_atomic_load_acquire_u64(&a->wanted_version);
    return wanted == 0 || wanted == generation;
}

static inline void asyncs_open_desc(asyncs *a, uint32_t worker_count, nb_async_desc desc) {
    memset(a, 0, sizeof *a);
    a->tasks = tasks_open(worker_count);
    a->frame.host = a;
    a->coordinator_id = nbi_thread_id();
    nb_clock_manual_init(&a->clock, 1000);
    desc.scheduler = a->tasks->scheduler;
    desc.clock = nb_clock_manual_get(&a->clock);
    desc.hooks = test_hooks(&a->log, &a->heap);
    assert_int_equal(nb_async_create(&desc, &a->async), NB_OK);
}

static inline void asyncs_open(asyncs *a, uint32_t worker_count) {
    asyncs_open_desc(a, worker_count, (nb_async_desc){.job_count_max = 64});
}

static inline nb_async_stats async_stats(const asyncs *a) { return nb_async_stats_get(a->async); }

static inline void assert_balanced(const asyncs *a) {
    nb_async_stats stats = async_stats(a);
    assert_int_equal(stats.submit_count, stats.publish_count + stats.discard_count + stats.live_count);
    assert_int_equal(stats.discard_count, stats.cancel_count + stats.fail_count + stats.unwanted_count);
    assert_int_equal(a->wrong_thread_count.value, 0);
    assert_int_equal(a->wrong_host_count.value, 0);
}

static inline void asyncs_close(asyncs *a) {
    assert_int_equal(nb_async_drain(a->async, &a->frame, nbi_clock_now_ns() + LIMIT_NS), NB_OK);
    assert_balanced(a);
    assert_int_equal(async_stats(a).live_count, 0);
    assert_int_equal(nb_async_destroy(a->async), NB_OK);
    assert_int_equal(a->heap.live_count.value, 0);
    tasks_close(a->tasks);
}

// A job with all callbacks.
static inline nb_async_job_desc job_desc(asyncs *a, job_state *state, uint32_t number, nb_async_step_fn step) {
    *state = (job_state){.a = a, .number = number};
    nb_async_job_desc desc = async_job_of(step, commit_count, publish_count, discard_count, state, sizeof *state);
    desc.is_wanted = is_wanted_version, desc.user = a;
    return desc;
}

static inline nb_async_job submit_job(asyncs *a, uint32_t number, nb_async_step_fn step) {
    job_state state;
    nb_async_job job = {0};
    nb_async_job_desc desc = job_desc(a, &state, number, step);
    assert_int_equal(nb_async_submit(a->async, &desc, &job), NB_OK);
    assert_true(job.value != 0);
    return job;
}

static inline void poll_once(asyncs *a) {
    ++a->frame.frame_index;
    assert_int_equal(nb_async_poll(a->async, &a->frame), NB_OK);
}

static inline void publish_once(asyncs *a) { assert_int_equal(nb_async_publish(a->async, &a->frame), NB_OK); }

// Frames, until a condition holds.
#define FRAMES_UNTIL(a, condition)                                                                        \
    do {                                                                                                  \
        uint64_t frames_end_ns_ = nbi_clock_now_ns() + LIMIT_NS;                                          \
        while (!(condition) && nbi_clock_now_ns() < frames_end_ns_) {                                     \
            publish_once(a);                                                                              \
            poll_once(a);                                                                                 \
            nbi_thread_yield();                                                                           \
        }                                                                                                 \
        if (!(condition)) fail_msg("%s: not within %u s", #condition, (unsigned)(LIMIT_NS / 1000000000)); \
    } while (0)

static inline uint32_t published(const asyncs *a, uint32_t number) { return a->fates[number].publish_count.value; }
static inline uint32_t discarded(const asyncs *a, uint32_t number) { return a->fates[number].discard_count.value; }
static inline uint32_t committed(const asyncs *a, uint32_t number) { return a->fates[number].commit_count.value; }

static inline void assert_discarded(const asyncs *a, uint32_t number, nb_result reason) {
    assert_int_equal(published(a, number), 0);
    assert_int_equal(discarded(a, number), 1);
    assert_int_equal(a->fates[number].reason, reason);
}

// --- steps ---

static inline nb_async_status step_at_once(nb_async_call *call, void *state) {
    (void)call;
    (void)state;
    return NB_ASYNC_STATUS_DONE;
}

// Says that it runs, and waits inside its step.
static inline nb_async_status step_held(nb_async_call *call, void *state) {
    asyncs *a = ((job_state *)state)->a;
    (void)call;
    event_set(&a->started);
    event_await(&a->may_go, 1);
    nbi_atomic_fetch_add_seq_cst_u32(&a->step_count, 1);
    return NB_ASYNC_STATUS_DONE;
}

static inline nb_result io_held(void *argument) {
    asyncs *a = argument;
    event_set(&a->io_started);
    event_await(&a->io_may_go, 1);
    nbi_atomic_fetch_add_seq_cst_u32(&a->io_count, 1);
    return NB_EMPTY;
}

static inline nb_async_status step_io_held(nb_async_call *call, void *state) {
    asyncs *a = ((job_state *)state)->a;
    NB_ASYNC_BEGIN(call);
    NB_ASYNC_IO(call, io_held, a);
    nbi_atomic_fetch_add_seq_cst_u32(&a->step_count, 1);
    if (call->result != NB_EMPTY) NB_ASYNC_FAIL(call, NB_ERR_RANGE);
    NB_ASYNC_END(call);
}
