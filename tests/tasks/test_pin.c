// SPDX-License-Identifier: MIT
// Pinned tasks: run by the one thread they are for, whoever else would be free.

#include "support/support.h"

#include "tasks/tasks_fixture.h"

typedef struct noted {
    nb_atomic_u32 wrong; // runs on a thread that was not the one
    event runs;
} noted;

typedef struct pinned {
    noted *all;
    uint32_t thread_index;
} pinned;

static void run_pinned(nb_task_context *context, void *argument) {
    const pinned *p = argument;
    if (context->thread_index != p->thread_index) nbi_atomic_fetch_add_seq_cst_u32(&p->all->wrong, 1);
    event_set(&p->all->runs);
}

static nb_task submit_pinned(tasks *t, noted *all, uint32_t thread_index, nb_task_desc desc) {
    pinned p = {all, thread_index};
    desc.run = run_pinned, desc.argument = &p, desc.argument_size_bytes = sizeof p;
    desc.pin = NB_PIN_COORDINATOR + thread_index;
    nb_task task = {0};
    assert_int_equal(nb_task_submit(t->scheduler, &desc, &task), NB_OK);
    return task;
}

TEST(worker_runs_what_is_pinned_to_it) {
    tasks *t = tasks_open(3);
    noted all = {0};
    assert_int_equal(NB_PIN_WORKER(0), NB_PIN_COORDINATOR + 1);
    uint32_t count = (uint32_t)test_size(3000, 30000, 1000000);
    for (uint32_t i = 0; i < count; ++i) {
        // Now and then all are asleep.
        if (i % 100 == 0) assert_true(event_await(&all.runs, i));
        submit_pinned(t, &all, 1 + i % 3, (nb_task_desc){.priority = (nb_priority)(i % 5)});
    }
    assert_true(event_await(&all.runs, count));
    assert_int_equal(all.wrong.value, 0);
    tasks_close(t);
}

TEST(coordinator_runs_its_own_when_it_waits_or_helps) {
    for (uint32_t workers = 0; workers < 3; ++workers) {
        tasks *t = tasks_open(workers);
        noted all = {0};
        nb_task task = submit_pinned(t, &all, 0, (nb_task_desc){0});
        assert_int_equal(nb_task_wait(t->scheduler, task, NB_NEVER_NS), NB_OK);
        nb_group group = group_begin(t);
        for (int i = 0; i < 10; ++i) submit_pinned(t, &all, 0, (nb_task_desc){.group = group});
        submit_pinned(t, &all, 0, (nb_task_desc){0}); // not of the group: left
        assert_int_equal(nb_group_end(t->scheduler, group, NB_NEVER_NS), NB_OK);
        assert_int_equal(event_count(&all.runs), 11);
        assert_int_equal(nb_scheduler_help(t->scheduler, NB_NEVER_NS, NULL), NB_OK);
        assert_int_equal(event_count(&all.runs), 12);
        assert_int_equal(all.wrong.value, 0);
        tasks_close(t);
    }
}

TEST(nobody_else_can_claim_a_pinned_task) {
    tasks *t = tasks_open(1);
    noted all = {0};
    held busy = {0};
    submit_held(t, (nb_task_desc){.pin = NB_PIN_WORKER(0)}, &busy);
    nb_task task = submit_pinned(t, &all, 1, (nb_task_desc){0});
    assert_int_equal(nb_task_claim(t->scheduler, task), NB_ERR_THREAD);
    assert_int_equal(nb_scheduler_help(t->scheduler, 0, NULL), NB_EMPTY);
    assert_int_equal(nb_task_wait(t->scheduler, task, nbi_clock_now_ns() + 1000000), NB_TIMEOUT);
    assert_int_equal(nb_task_promote(t->scheduler, task, NB_PRIORITY_CRITICAL), NB_OK);
    held_wait(t, &busy, task);
    assert_int_equal(all.wrong.value, 0);
    tasks_close(t);
}

TEST(pinned_task_waits_for_its_dependencies) {
    tasks *t = tasks_open(2);
    noted all = {0};
    for (uint32_t round = 0; round < test_size(300, 3000, 100000); ++round) {
        nb_task first = submit_pinned(t, &all, 1, (nb_task_desc){0});
        nb_task second = submit_pinned(t, &all, 2, (nb_task_desc){.dependencies = &first, .dependency_count = 1});
        nb_task third = submit_pinned(t, &all, 0, (nb_task_desc){.dependencies = &second, .dependency_count = 1});
        assert_int_equal(nb_task_wait(t->scheduler, third, NB_NEVER_NS), NB_OK);
        assert_int_equal(event_count(&all.runs), 3 * (round + 1));
    }
    assert_int_equal(all.wrong.value, 0);
    tasks_close(t);
}

TEST(pin_to_nobody_is_refused) {
    tasks *t = tasks_open(1);
    noted all = {0};
    pinned p = {&all, 0};
    nb_task_desc desc = {.run = run_pinned, .argument = &p, .argument_size_bytes = sizeof p, .pin = NB_PIN_WORKER(1)};
    assert_int_equal(nb_task_submit(t->scheduler, &desc, NULL), NB_ERR_RANGE);
    desc.pin = UINT32_MAX;
    assert_int_equal(nb_task_submit(t->scheduler, &desc, NULL), NB_ERR_RANGE);
    assert_int_equal(test_log_count(&t->log, NB_ITEM_TASK_ARGUMENT), 2);
    tasks_close(t);
}

// Cancelled ones leave dead entries behind; there is room for the living all the same.
TEST(cancelled_pinned_tasks_take_no_room) {
    tasks *t = tasks_open_room(0, 16);
    noted all = {0};
    nb_task kept = submit_pinned(t, &all, 0, (nb_task_desc){0});
    for (int i = 0; i < 200; ++i) {
        nb_task task = submit_pinned(t, &all, 0, (nb_task_desc){0});
        assert_int_equal(nb_task_cancel(t->scheduler, task), NB_OK);
    }
    submit_pinned(t, &all, 0, (nb_task_desc){0});
    uint64_t run_count = 0;
    assert_int_equal(nb_scheduler_help(t->scheduler, NB_NEVER_NS, &run_count), NB_OK);
    assert_int_equal(run_count, 2);
    assert_true(nb_task_is_complete(t->scheduler, kept));
    tasks_close(t);
}
