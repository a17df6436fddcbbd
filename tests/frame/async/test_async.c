// SPDX-License-Identifier: MIT
// Jobs that span many frames: steps, commits and budgets, generations, cancellation at every stage, draining, memory.

#include "frame/async/async_fixture.h"
#include "support/faults.h"

static asyncs a; // too large for a stack under sanitizers

// Until the job is there, and the thread that put it there has left: only then the next poll certainly finds it.
static void await_stage(nb_async_job job, nb_async_stage stage) {
    AWAIT(nb_async_stage_get(a.async, job) == stage);
    AWAIT(stats_of(a.tasks).alive_count == 0);
}

static nb_async_job submit_until(uint32_t number, nb_async_step_fn step, nb_async_stage stage) {
    nb_async_job job = submit_job(&a, number, step);
    await_stage(job, stage);
    return job;
}

static void cancel_and_poll(nb_async_job job, uint32_t number) {
    assert_int_equal(nb_async_cancel(a.async, job), NB_OK);
    poll_once(&a);
    assert_discarded(&a, number, NB_CANCELLED);
}

// --- steps ---

static nb_async_status step_yields(nb_async_call *call, void *state) {
    job_state *s = state;
    NB_ASYNC_BEGIN(call);
    for (; s->count < 5; ++s->count) {
        NB_ASYNC_YIELD(call);
    }
    NB_ASYNC_END(call);
}

TEST(job_is_committed_in_a_poll_and_visible_after_the_next_publish) {
    for (uint32_t workers = 0; workers <= 2; ++workers) {
        asyncs_open(&a, workers);
        nb_async_job job = submit_job(&a, 0, step_yields);
        assert_false(nb_async_is_done(a.async, job));
        AWAIT((poll_once(&a), committed(&a, 0) == 1));
        poll_once(&a);
        assert_int_equal(published(&a, 0), 0);
        assert_int_equal(nb_async_stage_get(a.async, job), NB_ASYNC_STAGE_STAGED);
        publish_once(&a);
        assert_int_equal(published(&a, 0), 1);
        assert_int_equal(discarded(&a, 0), 0);
        assert_true(nb_async_is_done(a.async, job));
        assert_int_equal(async_stats(&a).resume_count, 6);
        assert_int_equal(async_stats(&a).complete_count, 1);
        asyncs_close(&a);
        assert_int_equal(published(&a, 0) + discarded(&a, 0), 1);
    }
}

static nb_async_status step_by_hand(nb_async_call *call, void *state) {
    job_state *s = state;
    if (call->step != s->count) NB_ASYNC_FAIL(call, NB_ERR_RANGE);
    ++s->count;
    return ++call->step < 4 ? NB_ASYNC_STATUS_YIELD : NB_ASYNC_STATUS_DONE;
}

TEST(step_counter_works_without_the_macros) {
    asyncs_open(&a, 1);
    submit_job(&a, 0, step_by_hand);
    FRAMES_UNTIL(&a, published(&a, 0) == 1);
    assert_int_equal(async_stats(&a).resume_count, 4);
    asyncs_close(&a);
}

// The first of three steps, or the next one; `again` but for the last.
static nb_async_status note_step(nb_async_call *call, const job_state *s, nb_async_status again) {
    uint32_t at = nbi_atomic_fetch_add_seq_cst_u32(&s->a->step_count, 1);
    s->a->order[at] = s->number;
    return ++call->step < 3 ? again : NB_ASYNC_STATUS_DONE;
}

// Leaves the jobs of the nine steps of three jobs in a.order.
static void run_three(nb_async_step_fn step) {
    asyncs_open(&a, 0);
    for (uint32_t i = 0; i < 3; ++i) submit_job(&a, i, step);
    AWAIT((nb_scheduler_help(a.tasks->scheduler, 0, NULL), a.step_count.value == 9));
}

static nb_async_status step_takes_turns(nb_async_call *call, void *state) {
    return note_step(call, state, NB_ASYNC_STATUS_YIELD);
}

TEST(yield_lets_the_jobs_before_it_run_first) {
    run_three(step_takes_turns);
    for (uint32_t i = 0; i < 9; ++i) assert_int_equal(a.order[i], i % 3);
    asyncs_close(&a);
}

static nb_async_status step_checks(nb_async_call *call, void *state) {
    return note_step(call, state, NB_ASYNC_STATUS_CHECK);
}

TEST(check_goes_on_before_jobs_that_were_queued) {
    run_three(step_checks);
    for (uint32_t i = 0; i < 9; ++i) assert_int_equal(a.order[i], i / 3);
    asyncs_close(&a);
    // One that checks is cancelled where it stands, and those behind it are found.
    asyncs_open(&a, 0);
    nb_async_job first = submit_job(&a, 0, step_checks);
    submit_job(&a, 1, step_checks);
    assert_int_equal(nb_scheduler_help(a.tasks->scheduler, 0, NULL), NB_OK);
    assert_int_equal(a.step_count.value, 1);
    submit_job(&a, 2, step_checks);
    assert_int_equal(nb_async_cancel(a.async, first), NB_OK);
    FRAMES_UNTIL(&a, published(&a, 1) == 1 && published(&a, 2) == 1);
    assert_int_equal(discarded(&a, 0), 1);
    assert_int_equal(a.step_count.value, 7);
    asyncs_close(&a);
}

static nb_async_status step_waits_for_frames(nb_async_call *call, void *state) {
    job_state *s = state;
    NB_ASYNC_BEGIN(call);
    for (; s->count < 3; ++s->count) {
        s->a->order[s->count] = (uint32_t)call->frame_index;
        NB_ASYNC_FRAME(call);
    }
    NB_ASYNC_END(call);
}

TEST(frame_wait_resumes_once_in_each_poll) {
    asyncs_open(&a, 1);
    nb_async_job job = submit_job(&a, 0, step_waits_for_frames);
    for (uint32_t i = 1; i <= 3; ++i) {
        await_stage(job, NB_ASYNC_STAGE_PAUSED);
        assert_int_equal(async_stats(&a).resume_count, i);
        poll_once(&a);
    }
    FRAMES_UNTIL(&a, published(&a, 0) == 1);
    assert_int_equal(a.order[0], 0);
    assert_int_equal(a.order[1], 1);
    assert_int_equal(a.order[2], 2);
    asyncs_close(&a);
}

static nb_async_status step_fails(nb_async_call *call, void *state) {
    (void)state;
    NB_ASYNC_BEGIN(call);
    NB_ASYNC_YIELD(call);
    NB_ASYNC_FAIL(call, NB_ERR_PERMISSION);
    NB_ASYNC_END(call);
}

static nb_async_status step_returns_nothing(nb_async_call *call, void *state) {
    (void)call;
    (void)state;
    return NB_ASYNC_STATUS_NONE;
}

static nb_async_status step_fails_with_success(nb_async_call *call, void *state) {
    (void)state;
    NB_ASYNC_FAIL(call, NB_OK);
}

static nb_async_status step_io_of_nothing(nb_async_call *call, void *state) {
    (void)state;
    NB_ASYNC_BEGIN(call);
    NB_ASYNC_IO(call, NULL, NULL);
    NB_ASYNC_END(call);
}

TEST(failures_are_discarded_with_their_reason) {
    asyncs_open(&a, 1);
    submit_job(&a, 0, step_fails);
    submit_job(&a, 1, step_returns_nothing);
    submit_job(&a, 2, step_fails_with_success);
    submit_job(&a, 3, step_io_of_nothing);
    FRAMES_UNTIL(&a, async_stats(&a).live_count == 0);
    assert_discarded(&a, 0, NB_ERR_PERMISSION);
    for (uint32_t i = 1; i <= 3; ++i) assert_discarded(&a, i, NB_ERR_MISUSE);
    assert_int_equal(test_log_count(&a.log, NB_ITEM_ASYNC_STATUS), 3);
    assert_int_equal(async_stats(&a).fail_count, 4);
    assert_int_equal(async_stats(&a).commit_count, 0);
    a.commit_result = NB_ERR_MEMORY;
    submit_job(&a, 4, step_at_once);
    FRAMES_UNTIL(&a, async_stats(&a).live_count == 0);
    assert_int_equal(committed(&a, 4), 1);
    assert_discarded(&a, 4, NB_ERR_MEMORY);
    asyncs_close(&a);
}

static nb_async_status step_looks_at_its_state(nb_async_call *call, void *state) {
    const unsigned char *bytes = state;
    if ((uintptr_t)state % 64 != 0) NB_ASYNC_FAIL(call, NB_ERR_MISUSE);
    for (int i = 0; i < 256; ++i) {
        if (bytes[i] != 0) NB_ASYNC_FAIL(call, NB_ERR_MISUSE);
    }
    memset(state, 0xFF, 256);
    return NB_ASYNC_STATUS_DONE;
}

TEST(state_is_zero_where_nothing_was_given_and_callbacks_are_optional) {
    asyncs_open_desc(&a, 1, (nb_async_desc){.job_count_max = 1});
    for (uint32_t i = 0; i < 3; ++i) {
        nb_async_job_desc desc = {.step = step_looks_at_its_state};
        assert_int_equal(nb_async_submit(a.async, &desc, NULL), NB_OK);
        FRAMES_UNTIL(&a, async_stats(&a).live_count == 0);
        assert_int_equal(async_stats(&a).publish_count, i + 1);
    }
    asyncs_close(&a);
}

// --- blocking calls ---

static nb_async_status step_io_tells_its_thread(nb_async_call *call, void *state);

static nb_result io_note_thread(void *argument) {
    job_state *s = argument;
    s->a->fates[s->number].reason = (nb_result)s->count;
    nbi_atomic_store_relaxed_u32(&s->a->io_count, 1);
    s->count = (uint32_t)nbi_thread_id();
    return NB_EMPTY;
}

static nb_async_status step_io_tells_its_thread(nb_async_call *call, void *state) {
    job_state *s = state;
    NB_ASYNC_BEGIN(call);
    s->count = (uint32_t)nbi_thread_id();
    NB_ASYNC_IO(call, io_note_thread, s);
    if (call->result != NB_EMPTY || s->count == (uint32_t)nbi_thread_id()) NB_ASYNC_FAIL(call, NB_ERR_THREAD);
    NB_ASYNC_END(call);
}

TEST(blocking_call_runs_on_another_thread_and_gives_its_result) {
    for (uint32_t workers = 0; workers <= 1; ++workers) {
        asyncs_open(&a, workers);
        for (uint32_t i = 0; i < 20; ++i) submit_job(&a, i, step_io_tells_its_thread);
        FRAMES_UNTIL(&a, async_stats(&a).publish_count == 20);
        assert_int_equal(async_stats(&a).io_count, 20);
        asyncs_close(&a);
    }
}

TEST(two_blocking_calls_go_on_side_by_side) {
    asyncs_open(&a, 1);
    for (uint32_t i = 0; i < 3; ++i) submit_job(&a, i, step_io_held);
    assert_true(event_await(&a.io_started, 2));
    assert_int_equal(event_count(&a.io_started), 2);
    event_set(&a.io_may_go);
    FRAMES_UNTIL(&a, async_stats(&a).publish_count == 3);
    asyncs_close(&a);
}

static nb_async_status step_io_may_fail(nb_async_call *call, void *state) {
    job_state *s = state;
    NB_ASYNC_BEGIN(call);
    NB_ASYNC_IO(call, io_note_thread, s);
    if (call->result < 0) NB_ASYNC_FAIL(call, call->result);
    NB_ASYNC_END(call);
}

TEST(missing_io_threads_are_told_to_the_step) {
    asyncs_open(&a, 1);
    os.thread_name = "nebula-io";
    os.threads = (test_fault){.fail_at = 1};
    submit_job(&a, 0, step_io_may_fail);
    FRAMES_UNTIL(&a, async_stats(&a).live_count == 0);
    assert_discarded(&a, 0, NB_ERR_OS);
    assert_int_equal(test_log_count(&a.log, NB_ITEM_ASYNC_OS), 1);
    submit_job(&a, 1, step_io_may_fail);
    FRAMES_UNTIL(&a, published(&a, 1) == 1);
    asyncs_close(&a);
}

// --- generations ---

// A job of the generation that is wanted from now on.
static void submit_version(uint32_t number, nb_async_step_fn step, uint64_t generation) {
    job_state s;
    nb_async_job_desc desc = job_desc(&a, &s, number, step);
    desc.generation = generation;
    nbi_atomic_store_release_u64(&a.wanted_version, generation);
    assert_int_equal(nb_async_submit(a.async, &desc, NULL), NB_OK);
}

TEST(result_of_an_older_generation_is_not_published) {
    asyncs_open(&a, 1);
    submit_version(0, step_held, 1);
    assert_true(event_await(&a.started, 1));
    // Unloaded, and loaded again as generation 2, while generation 1 is still being made.
    submit_version(1, step_at_once, 2);
    event_set(&a.may_go);
    FRAMES_UNTIL(&a, async_stats(&a).live_count == 0);
    assert_discarded(&a, 0, NB_ERR_STALE);
    assert_int_equal(committed(&a, 0), 0);
    assert_int_equal(published(&a, 1), 1);
    assert_int_equal(async_stats(&a).unwanted_count, 1);
    asyncs_close(&a);
}

TEST(generation_is_asked_for_again_before_publication) {
    asyncs_open(&a, 1);
    submit_version(0, step_at_once, 1);
    AWAIT((poll_once(&a), committed(&a, 0) == 1));
    nbi_atomic_store_release_u64(&a.wanted_version, 2);
    publish_once(&a);
    assert_discarded(&a, 0, NB_ERR_STALE);
    assert_int_equal(async_stats(&a).live_count, 0);
    asyncs_close(&a);
}

// --- order and budgets ---

static void submit_for(nb_async_class budget_class, nb_priority priority, uint32_t number) {
    job_state s;
    nb_async_job_desc desc = job_desc(&a, &s, number, step_at_once);
    desc.budget_class = budget_class;
    desc.priority = priority;
    assert_int_equal(nb_async_submit(a.async, &desc, NULL), NB_OK);
}

TEST(commits_follow_priority_and_then_submission) {
    static const nb_priority priorities[8] = {NB_PRIORITY_LOW,      NB_PRIORITY_HIGH,    NB_PRIORITY_DEFAULT,
                                              NB_PRIORITY_CRITICAL, NB_PRIORITY_LOW,     NB_PRIORITY_HIGH,
                                              NB_PRIORITY_NORMAL,   NB_PRIORITY_CRITICAL};
    static const uint32_t expected[8] = {3, 7, 1, 5, 2, 6, 0, 4};
    for (uint32_t workers = 0; workers <= 2; ++workers) {
        asyncs_open(&a, workers);
        for (uint32_t i = 0; i < 8; ++i) {
            submit_for((nb_async_class)(i % NB_ASYNC_CLASS_COUNT), priorities[i], i);
        }
        if (workers == 0) nb_scheduler_help(a.tasks->scheduler, LIMIT_NS, NULL);
        AWAIT(async_stats(&a).complete_count == 8);
        AWAIT(stats_of(a.tasks).alive_count == 0);
        poll_once(&a);
        assert_int_equal(a.order_count, 8);
        for (uint32_t i = 0; i < 8; ++i) assert_int_equal(a.order[i], expected[i]);
        asyncs_close(&a);
    }
}

static void await_complete(uint64_t count) {
    AWAIT(async_stats(&a).complete_count == count);
    AWAIT(stats_of(a.tasks).alive_count == 0);
}

TEST(budget_defers_what_does_not_fit) {
    asyncs_open_desc(
        &a, 1,
        (nb_async_desc){
            .job_count_max = 64, .budget_generation_ns = 100, .budget_meshing_ns = 30, .budget_other_ns = 5});
    a.cost_ns = 20;
    for (uint32_t i = 0; i < 8; ++i) submit_for(NB_ASYNC_CLASS_GENERATION, 0, i);
    for (uint32_t i = 8; i < 12; ++i) submit_for(NB_ASYNC_CLASS_MESHING, 0, i);
    for (uint32_t i = 12; i < 14; ++i) submit_for(NB_ASYNC_CLASS_OTHER, 0, i);
    await_complete(14);
    poll_once(&a);
    // 5 x 20 of 100; 2 x 20 go beyond 30, and 1 x 20 beyond 5.
    assert_int_equal(async_stats(&a).commit_count, 5 + 2 + 1);
    assert_int_equal(async_stats(&a).defer_count, 3 + 2 + 1);
    assert_int_equal(async_stats(&a).overrun_count, 2);
    for (uint32_t i = 0; i < 14; ++i) {
        bool is_first = i < 5 || (i >= 8 && i < 10) || i == 12;
        assert_int_equal(committed(&a, i), is_first ? 1 : 0);
    }
    publish_once(&a);
    assert_int_equal(async_stats(&a).publish_count, 8);
    poll_once(&a);
    assert_int_equal(async_stats(&a).commit_count, 14);
    assert_int_equal(async_stats(&a).defer_count, 6);
    publish_once(&a);
    assert_int_equal(async_stats(&a).publish_count, 14);
    asyncs_close(&a);
}

TEST(budget_is_four_times_as_long_when_nothing_is_visible) {
    asyncs_open_desc(&a, 1, (nb_async_desc){.job_count_max = 64, .budget_other_ns = 40});
    a.cost_ns = 20;
    a.frame.is_blind = true;
    for (uint32_t i = 0; i < 20; ++i) submit_for(NB_ASYNC_CLASS_OTHER, 0, i);
    await_complete(20);
    poll_once(&a);
    assert_int_equal(async_stats(&a).commit_count, 8);
    a.frame.is_blind = false;
    poll_once(&a);
    assert_int_equal(async_stats(&a).commit_count, 10);
    asyncs_close(&a);
}

TEST(default_budgets_are_four_three_and_two_milliseconds) {
    asyncs_open(&a, 1);
    a.cost_ns = 500000;
    for (uint32_t i = 0; i < 60; ++i) submit_for((nb_async_class)(1 + i % 3), 0, i);
    await_complete(60);
    poll_once(&a);
    assert_int_equal(async_stats(&a).commit_count, 8 + 6 + 4);
    asyncs_close(&a);
}

TEST(unwanted_results_do_not_take_the_place_of_the_one_commit) {
    asyncs_open_desc(&a, 1, (nb_async_desc){.job_count_max = 64, .budget_other_ns = 1});
    a.cost_ns = 100;
    nb_async_job jobs[4];
    for (uint32_t i = 0; i < 4; ++i) jobs[i] = submit_job(&a, i, step_at_once);
    await_complete(4);
    assert_int_equal(nb_async_cancel(a.async, jobs[0]), NB_OK);
    assert_int_equal(nb_async_cancel(a.async, jobs[1]), NB_OK);
    poll_once(&a);
    assert_discarded(&a, 0, NB_CANCELLED);
    assert_discarded(&a, 1, NB_CANCELLED);
    assert_int_equal(committed(&a, 2), 1);
    assert_int_equal(committed(&a, 3), 0);
    asyncs_close(&a);
}

// --- cancellation ---

TEST(cancel_before_the_first_step_ends_the_job_at_once) {
    asyncs_open(&a, 0);
    nb_async_job first = submit_job(&a, 0, step_held), job = submit_job(&a, 1, step_held);
    assert_int_equal(nb_async_cancel(a.async, job), NB_OK);
    assert_int_equal(nb_async_stage_get(a.async, job), NB_ASYNC_STAGE_DONE);
    assert_int_equal(nb_async_cancel(a.async, job), NB_CANCELLED);
    cancel_and_poll(first, 0);
    assert_discarded(&a, 1, NB_CANCELLED);
    assert_int_equal(nb_async_cancel(a.async, job), NB_EMPTY);
    assert_int_equal(async_stats(&a).resume_count, 0);
    // Its runner takes another job instead of a new one.
    submit_job(&a, 2, step_at_once);
    FRAMES_UNTIL(&a, published(&a, 2) == 1);
    asyncs_close(&a);
}

static nb_async_status step_until_cancelled(nb_async_call *call, void *state) {
    asyncs *b = ((job_state *)state)->a;
    NB_ASYNC_BEGIN(call);
    event_set(&b->started);
    for (;;) {
        if (nb_async_should_stop(call)) event_set(&b->io_started); // it is not resumed any more after this
        NB_ASYNC_YIELD(call);
    }
    NB_ASYNC_END(call);
}

TEST(cancel_of_a_running_job_ends_it_at_the_next_yield) {
    for (uint32_t workers = 0; workers <= 2; ++workers) {
        asyncs_open(&a, workers);
        nb_async_job job = submit_job(&a, 0, step_until_cancelled);
        poll_once(&a);
        assert_true(event_await(&a.started, 1));
        assert_int_equal(nb_async_cancel(a.async, job), NB_OK);
        FRAMES_UNTIL(&a, async_stats(&a).live_count == 0);
        assert_discarded(&a, 0, NB_CANCELLED);
        assert_true(event_count(&a.io_started) <= 1);
        asyncs_close(&a);
    }
}

TEST(cancel_inside_the_last_step_still_discards) {
    asyncs_open(&a, 1);
    nb_async_job job = submit_job(&a, 0, step_held);
    assert_true(event_await(&a.started, 1));
    assert_int_equal(nb_async_stage_get(a.async, job), NB_ASYNC_STAGE_RUNNING);
    assert_int_equal(nb_async_cancel(a.async, job), NB_OK);
    event_set(&a.may_go);
    FRAMES_UNTIL(&a, async_stats(&a).live_count == 0);
    assert_discarded(&a, 0, NB_CANCELLED);
    assert_int_equal(committed(&a, 0), 0);
    asyncs_close(&a);
}

TEST(cancel_during_and_before_a_blocking_call) {
    asyncs_open_desc(&a, 1, (nb_async_desc){.job_count_max = 8, .io_thread_count = 1});
    nb_async_job inside = submit_job(&a, 0, step_io_held);
    assert_true(event_await(&a.io_started, 1));
    nb_async_job queued = submit_job(&a, 1, step_io_held);
    AWAIT(nb_async_stage_get(a.async, queued) == NB_ASYNC_STAGE_IO);
    cancel_and_poll(queued, 1); // without the thread that hangs
    assert_int_equal(nb_async_cancel(a.async, inside), NB_OK);
    poll_once(&a);
    assert_int_equal(discarded(&a, 0), 0);
    event_set(&a.io_may_go);
    FRAMES_UNTIL(&a, async_stats(&a).live_count == 0);
    assert_discarded(&a, 0, NB_CANCELLED);
    assert_int_equal(a.step_count.value, 0);
    assert_int_equal(async_stats(&a).io_count, 1);
    asyncs_close(&a);
}

TEST(cancel_of_a_paused_job_ends_it_in_the_next_poll) {
    asyncs_open(&a, 1);
    nb_async_job job = submit_until(0, step_waits_for_frames, NB_ASYNC_STAGE_PAUSED);
    cancel_and_poll(job, 0);
    assert_int_equal(async_stats(&a).resume_count, 1);
    asyncs_close(&a);
}

TEST(cancel_after_completion_and_between_commit_and_publish) {
    asyncs_open(&a, 1);
    nb_async_job job = submit_until(0, step_at_once, NB_ASYNC_STAGE_DONE);
    cancel_and_poll(job, 0);
    assert_int_equal(committed(&a, 0), 0);
    job = submit_job(&a, 1, step_at_once);
    AWAIT((poll_once(&a), committed(&a, 1) == 1));
    assert_int_equal(nb_async_cancel(a.async, job), NB_OK);
    publish_once(&a);
    assert_discarded(&a, 1, NB_CANCELLED);
    asyncs_close(&a);
}

TEST(token_cancels_its_jobs_at_every_stage) {
    asyncs_open(&a, 1);
    nb_token *token = NULL;
    assert_int_equal(nb_token_create(NULL, &token), NB_OK);
    job_state s;
    nb_async_step_fn steps[5] = {step_until_cancelled, step_waits_for_frames, step_io_held, step_at_once, step_at_once};
    nb_async_job jobs[5];
    for (uint32_t i = 0; i < 5; ++i) {
        nb_async_job_desc desc = job_desc(&a, &s, i, steps[i]);
        desc.token = token;
        assert_int_equal(nb_async_submit(a.async, &desc, &jobs[i]), NB_OK);
        if (i == 3) AWAIT((poll_once(&a), committed(&a, 3) == 1));
    }
    AWAIT(nb_async_stage_get(a.async, jobs[4]) == NB_ASYNC_STAGE_DONE);
    assert_true(event_await(&a.io_started, 1));
    assert_int_equal(nb_token_cancel(token, NB_CANCEL_STALE, 0, NULL), NB_OK);
    event_set(&a.io_may_go);
    FRAMES_UNTIL(&a, async_stats(&a).live_count == 0);
    for (uint32_t i = 0; i < 5; ++i) assert_discarded(&a, i, NB_CANCELLED);
    nb_async_job_desc desc = job_desc(&a, &s, 6, step_at_once);
    desc.token = token;
    assert_int_equal(nb_async_submit(a.async, &desc, NULL), NB_CANCELLED);
    nb_token_release(token);
    asyncs_close(&a);
    assert_int_equal(published(&a, 6) + discarded(&a, 6), 0);
}

TEST(token_of_the_whole_cancels_all_jobs) {
    nb_token *token = NULL;
    assert_int_equal(nb_token_create(NULL, &token), NB_OK);
    asyncs_open_desc(&a, 1, (nb_async_desc){.job_count_max = 8, .token = token});
    submit_job(&a, 0, step_until_cancelled);
    assert_true(event_await(&a.started, 1));
    assert_int_equal(nb_token_cancel(token, NB_CANCEL_SHUTDOWN, 0, NULL), NB_OK);
    FRAMES_UNTIL(&a, async_stats(&a).live_count == 0);
    assert_discarded(&a, 0, NB_CANCELLED);
    nb_async_job_desc desc = {.step = step_at_once};
    assert_int_equal(nb_async_submit(a.async, &desc, NULL), NB_CANCELLED);
    asyncs_close(&a);
    nb_token_release(token);
}

TEST(cancel_all_counts_those_it_cancelled) {
    asyncs_open(&a, 0);
    nb_async_job jobs[5];
    for (uint32_t i = 0; i < 5; ++i) jobs[i] = submit_job(&a, i, step_at_once);
    assert_int_equal(nb_async_cancel(a.async, jobs[2]), NB_OK);
    uint32_t count = 99;
    assert_int_equal(nb_async_cancel_all(a.async, &count), NB_OK);
    assert_int_equal(count, 4);
    assert_int_equal(nb_async_cancel_all(a.async, NULL), NB_OK);
    poll_once(&a);
    for (uint32_t i = 0; i < 5; ++i) assert_discarded(&a, i, NB_CANCELLED);
    assert_int_equal(async_stats(&a).cancel_count, 5);
    asyncs_close(&a);
}

static void publish_cancelling_itself(void *host, void *state) {
    job_state *s = state;
    nb_async_job job = {nbi_atomic_load_relaxed_u64(&s->a->wanted_version)};
    s->a->order[0] = (uint32_t)nb_async_cancel(s->a->async, job);
    s->a->order[1] = (uint32_t)nb_async_stage_get(s->a->async, job);
    s->a->order[2] = (uint32_t)nb_async_poll(s->a->async, NULL);
    s->a->order[3] = (uint32_t)nb_async_drain(s->a->async, NULL, 0);
    publish_count(host, state);
    submit_job(s->a, 7, step_at_once); // its own slot is not free yet, but others are
}

TEST(cancel_inside_its_own_publish_is_too_late) {
    asyncs_open(&a, 1);
    job_state s;
    nb_async_job job;
    nb_async_job_desc desc = job_desc(&a, &s, 0, step_at_once);
    desc.publish = publish_cancelling_itself;
    desc.is_wanted = NULL;
    assert_int_equal(nb_async_submit(a.async, &desc, &job), NB_OK);
    AWAIT((poll_once(&a), committed(&a, 0) == 1));
    nbi_atomic_store_relaxed_u64(&a.wanted_version, job.value);
    publish_once(&a);
    nbi_atomic_store_relaxed_u64(&a.wanted_version, 0);
    assert_int_equal((int)a.order[0], NB_EMPTY);
    assert_int_equal((int)a.order[1], NB_ASYNC_STAGE_ENDING);
    assert_int_equal((int)a.order[2], NB_ERR_MISUSE);
    assert_int_equal((int)a.order[3], NB_ERR_MISUSE);
    FRAMES_UNTIL(&a, published(&a, 7) == 1);
    asyncs_close(&a);
}

// --- bounds ---

TEST(full_pool_refuses_and_counts_until_a_job_has_ended) {
    asyncs_open_desc(&a, 1, (nb_async_desc){.job_count_max = 3});
    nb_async_job jobs[3];
    for (uint32_t i = 0; i < 3; ++i) jobs[i] = submit_job(&a, i, step_at_once);
    nb_async_job untouched = {0x5A};
    nb_token *token = NULL;
    assert_int_equal(nb_token_create(NULL, &token), NB_OK);
    job_state s;
    nb_async_job_desc desc = job_desc(&a, &s, 3, step_at_once);
    desc.token = token;
    assert_int_equal(nb_async_submit(a.async, &desc, &untouched), NB_FULL);
    assert_int_equal(untouched.value, 0x5A);
    await_complete(3);
    poll_once(&a);
    assert_int_equal(nb_async_submit(a.async, &desc, NULL), NB_FULL); // staged ones have their place still
    nb_token_release(token);
    publish_once(&a);
    assert_int_equal(async_stats(&a).full_count, 2);
    assert_int_equal(async_stats(&a).live_peak_count, 3);
    nb_async_job next = submit_job(&a, 3, step_at_once);
    for (uint32_t i = 0; i < 3; ++i) {
        assert_true(next.value != jobs[i].value);
        assert_int_equal(nb_async_cancel(a.async, jobs[i]), NB_EMPTY);
    }
    FRAMES_UNTIL(&a, published(&a, 3) == 1);
    asyncs_close(&a);
}

TEST(full_scheduler_delays_jobs_and_loses_none) {
    memset(&a, 0, sizeof a);
    a.tasks = tasks_open_room(0, 64);
    a.frame.host = &a;
    a.coordinator_id = nbi_thread_id();
    nb_async_desc desc = {.scheduler = a.tasks->scheduler, .job_count_max = 256, .hooks = test_hooks(&a.log, &a.heap)};
    assert_int_equal(nb_async_create(&desc, &a.async), NB_OK);
    for (uint32_t i = 0; i < 256; ++i) submit_job(&a, i, step_yields);
    assert_true(async_stats(&a).stall_count > 0);
    FRAMES_UNTIL(&a, async_stats(&a).publish_count == 256);
    asyncs_close(&a);
}

TEST(nothing_touches_the_heap_after_the_first_blocking_call) {
    asyncs_open(&a, 1);
    submit_job(&a, 0, step_io_may_fail);
    FRAMES_UNTIL(&a, async_stats(&a).live_count == 0);
    uint64_t calls = a.heap.call_count.value + a.tasks->heap.call_count.value;
    for (uint32_t round = 0; round < 50; ++round) {
        for (uint32_t i = 0; i < 16; ++i) {
            nb_async_job job = submit_job(&a, 1 + i, i % 3 == 0 ? step_io_may_fail : step_yields);
            if (i % 4 == 0) nb_async_cancel(a.async, job);
        }
        FRAMES_UNTIL(&a, async_stats(&a).live_count == 0);
    }
    assert_int_equal(a.heap.call_count.value + a.tasks->heap.call_count.value, calls);
    asyncs_close(&a);
}

TEST(creation_survives_every_failed_allocation) {
    tasks *t = tasks_open(1);
    uint32_t failed_count = 0;
    for (uint32_t n = 1;; ++n) {
        test_heap heap = {.fail_at = n};
        nb_async_desc desc = {.scheduler = t->scheduler, .hooks = test_hooks(&a.log, &heap)};
        nb_async *async = (nb_async *)(uintptr_t)0x5A5A;
        nb_result result = nb_async_create(&desc, &async);
        if (result == NB_OK) {
            assert_int_equal(nb_async_destroy(async), NB_OK);
            assert_int_equal(heap.live_count.value, 0);
            break;
        }
        ++failed_count;
        assert_int_equal(result, NB_ERR_MEMORY);
        assert_ptr_equal(async, (nb_async *)(uintptr_t)0x5A5A);
        assert_int_equal(heap.live_count.value, 0);
    }
    assert_true(failed_count >= 1);
    tasks_close(t);
}

TEST(creation_without_a_group_leaves_nothing_behind) {
    tasks *t = tasks_open_desc(
        (nb_scheduler_desc){.worker_count = NB_WORKER_COUNT_NONE, .task_count_max = 64, .group_count_max = 1});
    nb_async *first = NULL, *second = NULL;
    test_heap heap = {.fail_at = 0};
    nb_async_desc desc = {.scheduler = t->scheduler, .hooks = test_hooks(NULL, &heap)};
    assert_int_equal(nb_async_create(&desc, &first), NB_OK);
    assert_int_equal(nb_async_create(&desc, &second), NB_FULL);
    assert_null(second);
    assert_int_equal(nb_async_destroy(first), NB_OK);
    assert_int_equal(nb_async_create(&desc, &second), NB_OK);
    assert_int_equal(nb_async_destroy(second), NB_OK);
    assert_int_equal(heap.live_count.value, 0);
    tasks_close(t);
}

// --- draining ---

TEST(drain_discards_jobs_of_every_stage) {
    for (uint32_t workers = 0; workers <= 1; ++workers) {
        asyncs_open(&a, workers);
        event_set(&a.io_may_go);
        nb_async_step_fn steps[6] = {step_at_once, step_until_cancelled, step_waits_for_frames,
                                     step_io_held, step_at_once,         step_until_cancelled};
        for (uint32_t i = 0; i < 6; ++i) {
            submit_job(&a, i, steps[i]);
            if (i == 0) AWAIT((poll_once(&a), committed(&a, 0) == 1));
            if (i == 2) poll_once(&a);
        }
        assert_int_equal(nb_async_destroy(a.async), NB_BUSY);
        assert_int_equal(test_log_count(&a.log, NB_ITEM_ASYNC_BUSY), 1);
        assert_int_equal(nb_async_drain(a.async, &a.frame, nbi_clock_now_ns() + LIMIT_NS), NB_OK);
        for (uint32_t i = 0; i < 6; ++i) assert_discarded(&a, i, NB_CANCELLED);
        nb_async_job_desc desc = {.step = step_at_once};
        assert_int_equal(nb_async_submit(a.async, &desc, NULL), NB_CLOSED);
        asyncs_close(&a);
    }
}

TEST(drain_names_a_hanging_blocking_call_and_may_be_repeated) {
    nb_labels *labels = NULL;
    nb_label label = {0};
    assert_int_equal(nb_labels_create(NULL, &labels), NB_OK);
    assert_int_equal(nb_labels_intern(labels, "slow disk", &label), NB_OK);
    asyncs_open_desc(&a, 1, (nb_async_desc){.job_count_max = 8, .labels = labels});
    job_state s;
    nb_async_job_desc desc = job_desc(&a, &s, 0, step_io_held);
    desc.label = label;
    assert_int_equal(nb_async_submit(a.async, &desc, NULL), NB_OK);
    await_stage(submit_job(&a, 1, step_waits_for_frames), NB_ASYNC_STAGE_PAUSED); // no thread is needed to end it
    assert_true(event_await(&a.io_started, 1));
    assert_int_equal(nb_async_drain(a.async, &a.frame, nbi_clock_now_ns() + 20000000), NB_TIMEOUT);
    assert_int_equal(test_log_count(&a.log, NB_ITEM_ASYNC_STUCK), 1);
    assert_non_null(strstr(a.log.last_message, "slow disk"));
    assert_discarded(&a, 1, NB_CANCELLED);
    assert_int_equal(discarded(&a, 0), 0);
    assert_int_equal(nb_async_destroy(a.async), NB_BUSY);
    event_set(&a.io_may_go);
    assert_int_equal(nb_async_drain(a.async, &a.frame, nbi_clock_now_ns() + LIMIT_NS), NB_OK);
    assert_discarded(&a, 0, NB_CANCELLED);
    asyncs_close(&a);
    nb_labels_destroy(labels);
}

TEST(drain_names_a_hanging_step) {
    asyncs_open(&a, 1);
    submit_job(&a, 0, step_held);
    assert_true(event_await(&a.started, 1));
    submit_job(&a, 1, step_at_once);
    assert_int_equal(nb_async_drain(a.async, &a.frame, nbi_clock_now_ns() + 20000000), NB_TIMEOUT);
    assert_int_equal(test_log_count(&a.log, NB_ITEM_ASYNC_STUCK), 1);
    assert_discarded(&a, 1, NB_CANCELLED);
    event_set(&a.may_go);
    assert_int_equal(nb_async_drain(a.async, &a.frame, nbi_clock_now_ns() + LIMIT_NS), NB_OK);
    assert_discarded(&a, 0, NB_CANCELLED);
    asyncs_close(&a);
}

static nb_async_status step_drains(nb_async_call *call, void *state) {
    job_state *s = state;
    s->a->order[0] = (uint32_t)nb_async_drain(call->async, NULL, NB_NEVER_NS);
    s->a->order[1] = discarded(s->a, 1);
    event_set(&s->a->started);
    return NB_ASYNC_STATUS_DONE;
}

TEST(drain_from_a_step_is_a_deadlock_and_says_so) {
    asyncs_open(&a, 1);
    await_stage(submit_job(&a, 1, step_waits_for_frames), NB_ASYNC_STAGE_PAUSED);
    submit_job(&a, 0, step_drains);
    assert_true(event_await(&a.started, 1));
    assert_int_equal(a.order[1], 0);
    assert_int_equal((int)a.order[0], NB_ERR_DEADLOCK);
    asyncs_close(&a);
    assert_discarded(&a, 0, NB_CANCELLED);
    assert_discarded(&a, 1, NB_CANCELLED);
}

TEST(drain_after_the_scheduler_was_stopped_discards_what_it_left) {
    asyncs_open(&a, 1);
    nb_async_job first = submit_job(&a, 0, step_held);
    assert_true(event_await(&a.started, 1));
    for (uint32_t i = 1; i < 10; ++i) submit_job(&a, i, step_yields);
    assert_int_equal(nb_scheduler_stop(a.tasks->scheduler), NB_OK);
    submit_job(&a, 10, step_at_once);
    assert_int_equal(nb_async_stage_get(a.async, first), NB_ASYNC_STAGE_RUNNING);
    event_set(&a.may_go);
    assert_int_equal(nb_async_drain(a.async, &a.frame, nbi_clock_now_ns() + LIMIT_NS), NB_OK);
    for (uint32_t i = 0; i < 11; ++i) assert_discarded(&a, i, NB_CANCELLED);
    asyncs_close(&a);
}

TEST(reopened_after_a_drain_it_accepts_jobs_again) {
    for (uint32_t workers = 0; workers <= 1; ++workers) {
        asyncs_open(&a, workers);
        assert_int_equal(nb_async_reopen(a.async), NB_BUSY);
        nb_async_job job = submit_job(&a, 0, step_at_once);
        assert_int_equal(nb_async_cancel(a.async, job), NB_OK);
        // With nobody to run it, the runner of the cancelled job is still there.
        assert_int_equal(nb_async_drain(a.async, &a.frame, 0), NB_OK);
        assert_int_equal(nb_async_reopen(a.async), NB_OK);
        submit_job(&a, 1, step_io_may_fail);
        FRAMES_UNTIL(&a, published(&a, 1) == 1);
        asyncs_close(&a);
    }
}

static void poll_elsewhere(void *user) { ((asyncs *)user)->order[5] = (uint32_t)nb_async_poll(a.async, NULL); }

static nb_result commit_while_another_polls(void *host, void *state) {
    test_thread_run(poll_elsewhere, &a);
    return commit_count(host, state);
}

TEST(poll_beside_a_poll_is_refused) {
    asyncs_open(&a, 1);
    job_state s;
    nb_async_job_desc desc = job_desc(&a, &s, 0, step_at_once);
    desc.commit = commit_while_another_polls;
    assert_int_equal(nb_async_submit(a.async, &desc, NULL), NB_OK);
    AWAIT((poll_once(&a), committed(&a, 0) == 1));
    assert_int_equal((int)a.order[5], NB_ERR_THREAD);
    assert_int_equal(test_log_count(&a.log, NB_ITEM_ASYNC_THREAD), 1);
    asyncs_close(&a);
}
