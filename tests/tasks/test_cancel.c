// SPDX-License-Identifier: MIT
// Cancellation: tokens, what a cancel counts, stopping and ending a scheduler, and that every task ends exactly once.

#include "tasks/tasks_fixture.h"

static nb_token *token_open(tasks *t) {
    nb_token *token = NULL;
    nb_token_desc desc = {.label = "root", .hooks = test_hooks(NULL, &t->heap)};
    assert_int_equal(nb_token_create(&desc, &token), NB_OK);
    return token;
}

// Releases it. Tasks that are still alive are an error.
static void token_close(nb_token *token) {
    nb_cancel_counts counts = {0};
    nb_token_cancel(token, NB_CANCEL_STALE, 0, &counts);
    assert_int_equal(counts.task_queued_count + counts.task_running_count, 0);
    nb_token_release(token);
}

// Cancels it, and with it so many tasks.
static void token_cancel(nb_token *token, uint32_t running, uint32_t queued) {
    nb_cancel_counts counts = {0};
    assert_int_equal(nb_token_cancel(token, NB_CANCEL_STALE, 0, &counts), NB_OK);
    assert_int_equal(counts.task_running_count, running);
    assert_int_equal(counts.task_queued_count, queued);
}

// --- tokens ---

TEST(test_pre_cancelled_task_never_runs) {
    tasks *t = tasks_open(1);
    nb_token *token = token_open(t);
    assert_int_equal(nb_token_cancel(token, NB_CANCEL_STALE, 0, NULL), NB_OK);
    event runs = {0}, *pointer = &runs;
    nb_task task = {0x5A};
    nb_group group = group_begin(t);
    nb_task_desc desc = {
        .run = run_event, .argument = &pointer, .argument_size_bytes = sizeof pointer, .token = token, .group = group};
    assert_int_equal(nb_task_submit(t->scheduler, &desc, &task), NB_CANCELLED);
    assert_int_equal(task.value, 0x5A);
    desc.runs_inline = true;
    assert_int_equal(nb_task_submit(t->scheduler, &desc, NULL), NB_CANCELLED);
    assert_int_equal(nb_group_end(t->scheduler, group, 0), NB_OK);
    assert_int_equal(event_count(&runs), 0);
    assert_int_equal(stats_of(t).submit_count, 0);
    assert_int_equal(stats_of(t).refuse_count, 2);
    nb_token_release(token);
    tasks_close(t);
}

TEST(cancelled_token_stops_queued_tasks_and_counts_them) {
    tasks *t = tasks_open(0);
    nb_token *token = token_open(t);
    event runs = {0};
    nb_group group = group_begin(t);
    submit_many(t, (nb_task_desc){.token = token, .group = group}, run_event, &runs, 47);
    submit_many(t, (nb_task_desc){.group = group}, run_event, &runs, 3);
    token_cancel(token, 0, 47);
    print_message("Cancelled %u stale tasks\n", (unsigned)stats_of(t).cancel_count);
    assert_int_equal(nb_group_end(t->scheduler, group, NB_NEVER_NS), NB_CANCELLED);
    assert_int_equal(event_count(&runs), 3);
    assert_ended(t, 3, 47);
    nb_token_release(token);
    tasks_close(t);
}

typedef struct stoppable {
    event started;
    nb_atomic_u32 saw_stop, timeouts;
} stoppable;

static void run_until_stopped(nb_task_context *context, void *argument) {
    stoppable *s = pointer_of(argument);
    event_set(&s->started);
    uint64_t end_ns = nbi_clock_now_ns() + LIMIT_NS;
    while (!nb_task_should_stop(context)) {
        if (nbi_clock_now_ns() > end_ns) {
            nbi_atomic_fetch_add_seq_cst_u32(&s->timeouts, 1);
            return;
        }
        nbi_thread_yield();
    }
    nbi_atomic_fetch_add_seq_cst_u32(&s->saw_stop, 1);
}

TEST(cancel_counts_running_and_queued_tasks_exactly) {
    tasks *t = tasks_open(2);
    nb_token *token = token_open(t);
    stoppable s = {0};
    event runs = {0};
    nb_group group = group_begin(t);
    submit_started(t, (nb_task_desc){.token = token, .group = group}, run_until_stopped, &s, &s.started, 2);
    submit_many(t, (nb_task_desc){.token = token, .group = group}, run_event, &runs, 10);
    token_cancel(token, 2, 10);
    assert_int_equal(nb_group_end(t->scheduler, group, NB_NEVER_NS), NB_CANCELLED);
    assert_int_equal(s.saw_stop.value, 2);
    assert_int_equal(s.timeouts.value, 0);
    assert_int_equal(event_count(&runs), 0);
    assert_int_equal(stats_of(t).cancel_count, 10);
    nb_token_release(token);
    tasks_close(t);
}

// Claimed, waited for, helped with: nothing gets a cancelled task to run.
TEST(no_way_of_running_runs_a_cancelled_task) {
    tasks *t = tasks_open(0);
    nb_token *token = token_open(t);
    event runs = {0};
    nb_task all[4];
    for (int i = 0; i < 4; ++i) all[i] = submit_pointer(t, (nb_task_desc){.token = token}, run_event, &runs);
    assert_int_equal(nb_token_cancel(token, NB_CANCEL_STALE, 0, NULL), NB_OK);
    assert_int_equal(nb_task_wait(t->scheduler, all[0], NB_NEVER_NS), NB_OK);
    nb_task_claim(t->scheduler, all[1]);
    assert_true(nb_task_is_complete(t->scheduler, all[1]));
    assert_int_equal(nb_task_cancel(t->scheduler, all[2]), NB_OK);
    nb_result result = nb_scheduler_help(t->scheduler, NB_NEVER_NS, NULL);
    assert_true(result == NB_OK || result == NB_EMPTY);
    for (int i = 0; i < 4; ++i) assert_true(nb_task_is_complete(t->scheduler, all[i]));
    assert_int_equal(event_count(&runs), 0);
    assert_ended(t, 0, 4);
    nb_token_release(token);
    tasks_close(t);
}

// The task's own handle keeps the token alive until the task has ended.
TEST(token_lives_as_long_as_its_tasks) {
    tasks *t = tasks_open(0);
    uint64_t before = t->heap.live_count.value;
    nb_token *token = token_open(t);
    event runs = {0};
    nb_task first = submit_pointer(t, (nb_task_desc){.token = token}, run_event, &runs);
    nb_task second = submit_pointer(t, (nb_task_desc){.token = token}, run_event, &runs);
    submit_pointer(t, (nb_task_desc){.token = token}, run_event, &runs);
    nb_token_release(token);
    assert_int_equal(nb_task_cancel(t->scheduler, first), NB_OK);
    assert_int_equal(nb_task_wait(t->scheduler, second, NB_NEVER_NS), NB_OK);
    assert_true(t->heap.live_count.value > before);
    assert_int_equal(nb_scheduler_help(t->scheduler, 0, NULL), NB_OK);
    assert_int_equal(t->heap.live_count.value, before);
    assert_int_equal(event_count(&runs), 2);
    tasks_close(t);
}

// A submit that is refused for another reason leaves nothing behind on the token.
TEST(refused_submit_leaves_the_token_as_it_was) {
    tasks *t = tasks_open_room(0, 8);
    uint64_t before = t->heap.live_count.value;
    nb_token *token = token_open(t);
    nb_group group = group_begin(t);
    assert_int_equal(nb_group_end(t->scheduler, group, 0), NB_OK);
    nb_task_desc over = {.run = run_nothing, .token = token, .group = group};
    assert_int_equal(nb_task_submit(t->scheduler, &over, NULL), NB_CLOSED);
    nb_task_desc frameless = {.run = run_nothing, .token = token, .lifetime = NB_LIFETIME_FRAME};
    assert_int_equal(nb_task_submit(t->scheduler, &frameless, NULL), NB_ERR_MISUSE);
    nb_task_desc fine = {.run = run_nothing, .token = token};
    uint32_t accepted = 0;
    while (nb_task_submit(t->scheduler, &fine, NULL) == NB_OK) ++accepted;
    token_cancel(token, 0, accepted);
    nb_token_release(token);
    nb_scheduler_help(t->scheduler, NB_NEVER_NS, NULL);
    assert_int_equal(t->heap.live_count.value, before);
    tasks_close(t);
}

TEST(should_stop_is_false_until_there_is_a_reason) {
    nb_task_context context = {0};
    tasks *t = tasks_open(0);
    context.scheduler = t->scheduler;
    assert_false(nb_task_should_stop(&context));
    nb_token *token = token_open(t);
    context.token = token;
    assert_false(nb_task_should_stop(&context));
    nb_token_cancel(token, NB_CANCEL_STALE, 0, NULL);
    assert_true(nb_task_should_stop(&context));
    context.token = NULL;
    assert_false(nb_task_should_stop(&context));
    nb_scheduler_stop(t->scheduler);
    assert_true(nb_task_should_stop(&context));
    nb_token_release(token);
    tasks_close(t);
}

// --- stopping ---

TEST(stop_refuses_new_tasks_and_cancels_queued_ones) {
    for (uint32_t workers = 0; workers <= 2; ++workers) {
        tasks *t = tasks_open(workers);
        held h = {0};
        event runs = {0};
        nb_group group = group_begin(t);
        nb_token *token = token_open(t);
        submit_started(t, (nb_task_desc){.group = group, .token = token}, run_held, &h, &h.started, workers);
        submit_many(t, (nb_task_desc){.group = group, .token = token}, run_event, &runs, 1000);
        assert_int_equal(nb_scheduler_stop(t->scheduler), NB_OK);
        assert_int_equal(nb_scheduler_stop(t->scheduler), NB_OK);
        nb_task_desc late = {.run = run_nothing};
        assert_int_equal(nb_task_submit(t->scheduler, &late, NULL), NB_CLOSED);
        late.runs_inline = true;
        assert_int_equal(nb_task_submit(t->scheduler, &late, NULL), NB_CLOSED);
        event_set(&h.may_end);
        assert_int_equal(nb_group_end(t->scheduler, group, NB_NEVER_NS), NB_CANCELLED);
        assert_int_equal(event_count(&h.ended), workers);
        assert_int_equal(event_count(&runs), 0);
        token_close(token);
        tasks_close(t);
    }
}

TEST(destroy_cancels_what_is_queued) {
    for (uint32_t workers = 0; workers <= 2; ++workers) {
        tasks *t = tasks_open(workers);
        nb_token *token = token_open(t);
        stoppable s = {0};
        event runs = {0};
        submit_started(t, (nb_task_desc){0}, run_until_stopped, &s, &s.started, workers);
        submit_many(t, (nb_task_desc){.token = token}, run_event, &runs, 500);
        assert_int_equal(nb_scheduler_destroy(t->scheduler), NB_OK);
        // A worker whose task has seen the stop may be faster than the cancel.
        if (workers == 0) assert_int_equal(event_count(&runs), 0);
        assert_in_range(event_count(&runs), 0, 499);
        assert_int_equal(s.saw_stop.value, workers);
        token_close(token);
        assert_int_equal(t->heap.live_count.value, 0);
        free(t);
    }
}

static void run_stop(nb_task_context *context, void *argument) {
    event_set(pointer_of(argument));
    nb_scheduler_stop(context->scheduler);
    if (!nb_task_should_stop(context)) abort();
}

TEST(task_may_stop_its_scheduler) {
    for (uint32_t workers = 0; workers <= 1; ++workers) {
        tasks *t = tasks_open(workers);
        event runs = {0};
        nb_task task = submit_pointer(t, (nb_task_desc){.priority = NB_PRIORITY_HIGH}, run_stop, &runs);
        assert_int_equal(nb_task_wait(t->scheduler, task, NB_NEVER_NS), NB_OK);
        nb_task_desc desc = {.run = run_nothing};
        assert_int_equal(nb_task_submit(t->scheduler, &desc, NULL), NB_CLOSED);
        tasks_close(t);
    }
}

typedef struct blocked {
    nb_group group; // never over while the scheduler runs: a held task is in it
    event waiting;
    nb_atomic_u32 result;
} blocked;

static void run_blocked(nb_task_context *context, void *argument) {
    blocked *b = pointer_of(argument);
    event_set(&b->waiting);
    nb_result result = nb_group_end(context->scheduler, b->group, NB_NEVER_NS);
    nbi_atomic_store_release_u32(&b->result, (uint32_t)result);
}

// A task that sleeps in a wait for tasks that are cancelled wakes, and the scheduler can end.
TEST(destroy_wakes_tasks_that_wait) {
    tasks *t = tasks_open(3);
    blocked b = {0};
    stoppable s = {0};
    b.group = group_begin(t);
    submit_pointer(t, (nb_task_desc){.group = b.group}, run_until_stopped, &s);
    assert_true(event_await(&s.started, 1));
    submit_pointer(t, (nb_task_desc){0}, run_blocked, &b);
    assert_true(event_await(&b.waiting, 1));
    uint64_t start_ns = nbi_clock_now_ns();
    assert_int_equal(nb_scheduler_destroy(t->scheduler), NB_OK);
    assert_true(nbi_clock_now_ns() - start_ns < WAKE_LIMIT_NS);
    assert_int_equal(b.result.value, NB_OK);
    assert_int_equal(t->heap.live_count.value, 0);
    free(t);
}

// --- accounting ---

typedef struct chaos {
    tasks *t;
    once *seen; // each accepted task once, run or not
    nb_atomic_u32 submitted, refused, ran;
} chaos;

static void run_chaos(nb_task_context *context, void *argument) {
    chaos *c = pointer_of(argument);
    uint32_t number = nbi_atomic_fetch_add_seq_cst_u32(&c->ran, 1);
    nb_task_desc desc = {.run = run_chaos, .argument = argument, .argument_size_bytes = sizeof(void *)};
    for (int i = 0; i < 2 && number < 20000; ++i) {
        nb_result result = nb_task_submit(context->scheduler, &desc, NULL);
        nbi_atomic_fetch_add_seq_cst_u32(result == NB_OK ? &c->submitted : &c->refused, 1);
    }
}

// T6: queued tasks, running tasks that submit more, a stop in the middle of it, and a second one.
TEST(accounting_is_exact_when_stopped_in_the_middle) {
    for (uint32_t workers = 0; workers <= WORKER_COUNTS_MAX; ++workers) {
        tasks *t = tasks_open(workers);
        chaos c = {.t = t};
        // Critical: what the first ones start may fill the pool before the last one is in.
        nb_task_desc first = {.priority = NB_PRIORITY_CRITICAL};
        submit_many(t, first, run_chaos, &c, 100);
        nbi_atomic_fetch_add_seq_cst_u32(&c.submitted, 100);
        while (workers == 0 && nbi_atomic_load_seq_cst_u32(&c.ran) <= 50)
            nb_scheduler_help(t->scheduler, 1000000, NULL);
        AWAIT(nbi_atomic_load_seq_cst_u32(&c.ran) > 50);
        nb_scheduler_stop(t->scheduler);
        nb_scheduler_stop(t->scheduler);
        AWAIT(stats_of(t).alive_count == 0);
        nb_scheduler_stats stats = stats_of(t);
        assert_int_equal(stats.submit_count, nbi_atomic_load_seq_cst_u32(&c.submitted));
        assert_int_equal(stats.refuse_count, nbi_atomic_load_seq_cst_u32(&c.refused));
        assert_int_equal(stats.run_count, nbi_atomic_load_seq_cst_u32(&c.ran));
        assert_int_equal(stats.run_count + stats.cancel_count, stats.submit_count);
        tasks_close(t);
    }
}
