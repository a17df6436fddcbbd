// SPDX-License-Identifier: MIT
// Several threads submit and cancel while frames go by: for every accepted job exactly one of publish and discard is
// called, on the thread that polls, and none that was cancelled in time is published.

#include "frame/async/async_fixture.h"

#define SUBMITTER_COUNT 3u
#define CANCELLER_COUNT 2u
#define RECENT 64u

static asyncs a;

typedef struct storm {
    uint64_t seed;
    uint32_t job_count;                 // of each submitter
    nb_atomic_u32 recent[RECENT];       // numbers of jobs that may be alive
    nb_atomic_u32 cancelled[JOBS_MAX];  // by number: NB_OK was returned
    nb_atomic_u64 jobs[JOBS_MAX];       // by number: the handle; 0 = not accepted
    nb_atomic_u32 submitter_done_count; // threads
    nb_atomic_u32 mistake_count;
} storm;

static storm now;

static nb_result io_nothing(void *argument) {
    (void)argument;
    return NB_OK;
}

// All ways to be suspended, in an order that the number decides.
static nb_async_status step_mixed(nb_async_call *call, void *state) {
    job_state *s = state;
    uint32_t kind = (s->number >> (2 * call->step)) & 3;
    if (++call->step > 4) return NB_ASYNC_STATUS_DONE;
    call->io_run = io_nothing;
    call->io_argument = s;
    static const nb_async_status statuses[4] = {NB_ASYNC_STATUS_YIELD, NB_ASYNC_STATUS_IO, NB_ASYNC_STATUS_FRAME,
                                                NB_ASYNC_STATUS_YIELD};
    if (s->number % 17 == 0 && call->step == 3) NB_ASYNC_FAIL(call, NB_ERR_OS);
    return statuses[kind];
}

static nb_result commit_some(void *host, void *state) {
    job_state *s = state;
    commit_count(host, state);
    return s->number % 13 == 0 ? NB_ERR_MEMORY : NB_OK;
}

static bool is_wanted_some(void *user, uint64_t generation, const void *state) {
    (void)user;
    (void)state;
    return generation % 11 != 0;
}

static void submit_crowd(uint32_t index, uint64_t *random) {
    for (uint32_t i = 0; i < now.job_count; ++i) {
        uint32_t number = index * now.job_count + i;
        job_state state;
        nb_async_job_desc desc = job_desc(&a, &state, number, step_mixed);
        desc.commit = commit_some;
        desc.is_wanted = is_wanted_some;
        desc.generation = number;
        desc.priority = (nb_priority)(test_random(random) % NB_PRIORITY_COUNT);
        desc.budget_class = (nb_async_class)(test_random(random) % NB_ASYNC_CLASS_COUNT);
        nb_async_job job = {0};
        nb_result result = NB_FULL;
        while ((result = nb_async_submit(a.async, &desc, &job)) == NB_FULL) nbi_thread_yield();
        if (result != NB_OK) nbi_atomic_fetch_add_seq_cst_u32(&now.mistake_count, 1);
        nbi_atomic_store_release_u64(&now.jobs[number], job.value);
        nbi_atomic_store_release_u32(&now.recent[test_random(random) % RECENT], number);
    }
    nbi_atomic_fetch_add_seq_cst_u32(&now.submitter_done_count, 1);
}

// Cancels by number, so that what it was told can be compared with what became of the job.
static void cancel_many(uint64_t *random) {
    while (nbi_atomic_load_acquire_u32(&now.submitter_done_count) < SUBMITTER_COUNT) {
        uint32_t number = nbi_atomic_load_acquire_u32(&now.recent[test_random(random) % RECENT]);
        nb_async_job job = {nbi_atomic_load_acquire_u64(&now.jobs[number])};
        nb_async_stage stage = nb_async_stage_get(a.async, job);
        nb_result result = nb_async_cancel(a.async, job);
        if (result == NB_OK) nbi_atomic_fetch_add_seq_cst_u32(&now.cancelled[number], 1);
        if (result < 0 || (uint32_t)stage >= NB_ASYNC_STAGE_COUNT) {
            nbi_atomic_fetch_add_seq_cst_u32(&now.mistake_count, 1);
        }
        nbi_thread_yield();
    }
}

static void work(void *user, uint32_t index) {
    (void)user;
    uint64_t random = now.seed + index;
    if (index < SUBMITTER_COUNT)
        submit_crowd(index, &random);
    else
        cancel_many(&random);
}

static void check_fates(uint32_t count) {
    uint32_t cancelled_count = 0;
    for (uint32_t i = 0; i < count; ++i) {
        const fate *f = &a.fates[i];
        if (f->publish_count.value + f->discard_count.value != 1) {
            fail_msg("job %u: published %u times, discarded %u times", (unsigned)i, (unsigned)f->publish_count.value,
                     (unsigned)f->discard_count.value);
        }
        assert_true(f->commit_count.value <= 1);
        assert_true(now.cancelled[i].value <= 1);
        if (now.cancelled[i].value != 0) assert_int_equal(f->publish_count.value, 0);
        cancelled_count += now.cancelled[i].value;
        bool is_bad = i % 17 == 0 || i % 13 == 0 || i % 11 == 0;
        if (is_bad) assert_int_equal(f->publish_count.value, 0);
        if (!is_bad && now.cancelled[i].value == 0) assert_int_equal(f->publish_count.value, 1);
    }
    fprintf(stderr, "%u jobs, %u cancelled by name\n", (unsigned)count, (unsigned)cancelled_count);
}

static void one_storm(uint32_t workers, uint64_t seed, uint32_t job_count) {
    memset(&now, 0, sizeof now);
    asyncs_open_desc(&a, workers, (nb_async_desc){.job_count_max = 50});
    now.seed = seed;
    now.job_count = job_count;
    test_thread threads[SUBMITTER_COUNT + CANCELLER_COUNT];
    test_threads_start(threads, SUBMITTER_COUNT + CANCELLER_COUNT, work, NULL);
    uint64_t limit_ns = nbi_clock_now_ns() + 12 * LIMIT_NS;
    while (nbi_atomic_load_acquire_u32(&now.submitter_done_count) < SUBMITTER_COUNT ||
           async_stats(&a).live_count != 0) {
        publish_once(&a);
        poll_once(&a);
        nbi_thread_yield();
        if (nbi_clock_now_ns() > limit_ns) abort();
    }
    test_threads_join(threads, SUBMITTER_COUNT + CANCELLER_COUNT);
    assert_int_equal(now.mistake_count.value, 0);
    check_fates(SUBMITTER_COUNT * job_count);
    asyncs_close(&a);
}

TEST(every_job_ends_once_with_workers) {
    uint64_t seed = test_seed("every_job_ends_once_with_workers");
    uint64_t rounds = test_size(10, 100, 4000);
    for (uint64_t i = 0; i < rounds; ++i) one_storm(1 + (uint32_t)(i % 3), seed + i, JOBS_MAX / 4);
}

TEST(every_job_ends_once_without_workers) {
    uint64_t seed = test_seed("every_job_ends_once_without_workers");
    uint64_t rounds = test_size(5, 50, 1000);
    for (uint64_t i = 0; i < rounds; ++i) one_storm(0, seed + i, JOBS_MAX / 8);
}

// --- drained in the middle ---

static void submit_until_closed(void *user, uint32_t index) {
    (void)user;
    for (uint32_t i = 0; i < now.job_count; ++i) {
        uint32_t number = index * now.job_count + i;
        job_state state;
        nb_async_job_desc desc = job_desc(&a, &state, number, step_mixed);
        nb_async_job job = {0};
        nb_result result = NB_FULL;
        while ((result = nb_async_submit(a.async, &desc, &job)) == NB_FULL) nbi_thread_yield();
        if (result == NB_CLOSED) return;
        if (result != NB_OK) nbi_atomic_fetch_add_seq_cst_u32(&now.mistake_count, 1);
        nbi_atomic_store_release_u64(&now.jobs[number], job.value);
    }
}

static void drain_in_the_middle(uint64_t seed) {
    memset(&now, 0, sizeof now);
    asyncs_open_desc(&a, (uint32_t)(seed % 3), (nb_async_desc){.job_count_max = 50});
    now.job_count = JOBS_MAX / SUBMITTER_COUNT;
    test_thread threads[SUBMITTER_COUNT];
    test_threads_start(threads, SUBMITTER_COUNT, submit_until_closed, NULL);
    for (uint64_t i = seed % 50; i > 0; --i) {
        publish_once(&a);
        poll_once(&a);
    }
    assert_int_equal(nb_async_drain(a.async, &a.frame, nbi_clock_now_ns() + LIMIT_NS), NB_OK);
    // A submit that was accepted before the drain has been drained; none is accepted after it.
    assert_int_equal(async_stats(&a).live_count, 0);
    test_threads_join(threads, SUBMITTER_COUNT);
    assert_int_equal(now.mistake_count.value, 0);
    for (uint32_t i = 0; i < JOBS_MAX; ++i) {
        uint32_t ends = a.fates[i].publish_count.value + a.fates[i].discard_count.value;
        assert_int_equal(ends, now.jobs[i].value != 0 ? 1 : 0);
    }
    asyncs_close(&a);
}

TEST(drain_beside_submits_leaves_nothing) {
    uint64_t seed = test_seed("drain_beside_submits_leaves_nothing");
    uint64_t rounds = test_size(30, 300, 3000);
    for (uint64_t i = 0; i < rounds; ++i) drain_in_the_middle(seed + i);
}
