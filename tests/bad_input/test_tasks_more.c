// SPDX-License-Identifier: MIT
// Dependencies, results and memory of tasks, asked for in every wrong way.

#include "support/support.h"

#include "tasks/tasks_fixture.h"

static void never_run(nb_task_context *context, void *argument) {
    (void)context;
    (void)argument;
    fail_msg("a task ran that was refused");
}

TEST(functions_refuse_null) {
    nb_task task = {1};
    assert_int_equal(nb_task_depend(NULL, task, task), NB_ERR_MISUSE);
    assert_int_equal(nb_scheduler_drain(NULL, 0, NULL), NB_ERR_MISUSE);
    assert_null(nb_task_arena(NULL));
    assert_int_equal(nb_scheduler_budget_open(NULL, 0), NB_ERR_MISUSE);
    assert_int_equal(nb_scheduler_budget_close(NULL), NB_ERR_MISUSE);
}

typedef struct elsewhere {
    nb_scheduler *scheduler;
    nb_result opened, closed;
} elsewhere;

static void open_elsewhere(void *user, uint32_t index) {
    (void)index;
    elsewhere *e = user;
    e->opened = nb_scheduler_budget_open(e->scheduler, 0);
    e->closed = nb_scheduler_budget_close(e->scheduler);
}

TEST(budget_refuses_other_threads) {
    tasks t;
    tasks_open(&t, 0);
    elsewhere e = {.scheduler = t.scheduler};
    test_thread thread;
    test_threads_start(&thread, 1, open_elsewhere, &e);
    test_threads_join(&thread, 1);
    assert_int_equal(e.opened, NB_ERR_THREAD);
    assert_int_equal(e.closed, NB_ERR_THREAD);
    assert_int_equal(test_log_count(&t.log, NB_ITEM_TASK_THREAD), 2);
    tasks_close(&t);
}

TEST(depend_refuses_handles_that_are_none) {
    tasks t;
    tasks_open(&t, 0);
    event runs = {0};
    nb_task task = submit_pointer(&t, (nb_task_desc){0}, run_event, &runs);
    assert_int_equal(nb_task_depend(t.scheduler, (nb_task){0}, task), NB_EMPTY);
    assert_int_equal(nb_task_depend(t.scheduler, (nb_task){UINT64_MAX}, task), NB_EMPTY);
    // Nothing to wait for.
    assert_int_equal(nb_task_depend(t.scheduler, task, (nb_task){0}), NB_OK);
    assert_int_equal(nb_task_depend(t.scheduler, task, (nb_task){UINT64_MAX}), NB_OK);
    assert_int_equal(nb_task_depend(t.scheduler, task, task), NB_ERR_DEADLOCK);
    assert_int_equal(test_log_count(&t.log, NB_ITEM_TASK_DEADLOCK), 1);
    assert_int_equal(nb_task_wait(t.scheduler, task, NB_NEVER_NS), NB_OK);
    assert_int_equal(event_count(&runs), 1);
    tasks_close(&t);
}

TEST(submit_refuses_dependencies_without_an_array) {
    tasks t;
    tasks_open(&t, 0);
    nb_task_desc desc = {.run = never_run, .dependency_count = 1};
    assert_int_equal(nb_task_submit(t.scheduler, &desc, NULL), NB_ERR_MISUSE);
    assert_int_equal(test_log_count(&t.log, NB_ITEM_TASK_ARGUMENT), 1);
    nb_scheduler_desc many = {.dependency_count_max = NB_TASK_COUNT_MAX + 1, .hooks = test_hooks(&t.log, &t.heap)};
    nb_scheduler *other = NULL;
    assert_int_equal(nb_scheduler_create(&many, &other), NB_ERR_RANGE);
    assert_null(other);
    tasks_close(&t);
}

TEST(drain_of_nothing_is_empty) {
    tasks t;
    tasks_open(&t, 0);
    uint64_t count = 77;
    assert_int_equal(nb_scheduler_drain(t.scheduler, 0, &count), NB_EMPTY);
    assert_int_equal(nb_scheduler_drain(t.scheduler, UINT64_MAX, &count), NB_EMPTY);
    assert_int_equal(count, 77);
    tasks_close(&t);
}
