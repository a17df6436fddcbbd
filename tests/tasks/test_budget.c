// SPDX-License-Identifier: MIT
// The budget for submitting. With a budget of a nanosecond the first submit uses it up, whatever the machine.

#include "support/support.h"

#include "tasks/tasks_fixture.h"

typedef struct noted {
    uint32_t count;
    uint32_t numbers[64];
} noted;

typedef struct numbered {
    noted *all;
    uint32_t number;
} numbered;

static void run_note(nb_task_context *context, void *argument) {
    (void)context;
    const numbered *n = argument;
    n->all->numbers[n->all->count++] = n->number;
}

static nb_task submit_number(tasks *t, noted *all, uint32_t number, nb_task_desc desc) {
    numbered n = {all, number};
    desc.run = run_note, desc.argument = &n, desc.argument_size_bytes = sizeof n;
    nb_task task = {0};
    assert_int_equal(nb_task_submit(t->scheduler, &desc, &task), NB_OK);
    return task;
}

static uint64_t run_all(tasks *t) {
    uint64_t count = 0;
    nb_scheduler_help(t->scheduler, NB_NEVER_NS, &count);
    return count;
}

// One is let in by each frame, in the order of the submits; Critical ones always.
TEST(leftovers_keep_their_order_for_the_next_frame) {
    tasks *t = tasks_open(0);
    noted all = {0};
    assert_int_equal(nb_scheduler_budget_open(t->scheduler, 1), NB_OK);
    for (uint32_t i = 0; i < 5; ++i) submit_number(t, &all, i, (nb_task_desc){0});
    submit_number(t, &all, 9, (nb_task_desc){.priority = NB_PRIORITY_CRITICAL});
    assert_int_equal(stats_of(t).held_count, 4);
    assert_int_equal(run_all(t), 2);
    for (uint32_t frame = 1; frame < 5; ++frame) {
        assert_int_equal(nb_scheduler_budget_open(t->scheduler, 1), NB_OK);
        submit_number(t, &all, 10 + frame, (nb_task_desc){0}); // behind the leftovers
        assert_int_equal(run_all(t), 1);
    }
    static const uint32_t wanted[] = {9, 0, 1, 2, 3, 4};
    assert_int_equal(all.count, 6);
    assert_memory_equal(all.numbers, wanted, sizeof wanted);
    // Enough for all that is left.
    assert_int_equal(nb_scheduler_budget_open(t->scheduler, NB_NEVER_NS), NB_OK);
    assert_int_equal(stats_of(t).held_count, 0);
    assert_int_equal(run_all(t), 4);
    for (uint32_t i = 0; i < 4; ++i) assert_int_equal(all.numbers[6 + i], 11 + i);
    tasks_close(t);
}

TEST(there_is_no_limit_without_a_budget) {
    tasks *t = tasks_open(0);
    noted all = {0};
    for (uint32_t i = 0; i < 5; ++i) submit_number(t, &all, i, (nb_task_desc){0});
    assert_int_equal(nb_scheduler_budget_open(t->scheduler, 1), NB_OK);
    assert_int_equal(nb_scheduler_budget_close(t->scheduler), NB_OK);
    for (uint32_t i = 5; i < 10; ++i) submit_number(t, &all, i, (nb_task_desc){0});
    assert_int_equal(stats_of(t).held_count, 0);
    assert_int_equal(run_all(t), 10);
    // The default is far more than a handful of submits takes, even on a machine that stops in between now and then.
    for (int attempt = 0; attempt < 100; ++attempt) {
        assert_int_equal(nb_scheduler_budget_open(t->scheduler, 0), NB_OK);
        submit_number(t, &all, 10, (nb_task_desc){0});
        submit_number(t, &all, 11, (nb_task_desc){0});
        bool is_free = stats_of(t).held_count == 0;
        nb_scheduler_budget_open(t->scheduler, NB_NEVER_NS);
        run_all(t);
        all.count = 0;
        if (is_free) break;
        assert_true(attempt < 99);
    }
    tasks_close(t);
}

TEST(waiting_lets_go) {
    for (uint32_t workers = 0; workers < 3; ++workers) {
        tasks *t = tasks_open(workers);
        static noted first, tasks_of_group, single;
        memset(&first, 0, sizeof first);
        memset(&tasks_of_group, 0, sizeof tasks_of_group);
        memset(&single, 0, sizeof single);
        assert_int_equal(nb_scheduler_budget_open(t->scheduler, 1), NB_OK);
        nb_task let_in = submit_number(t, &first, 0, (nb_task_desc){0});
        nb_task late = submit_number(t, &single, 1, (nb_task_desc){0});
        nb_group group = group_begin(t);
        nb_task in_group = submit_number(t, &tasks_of_group, 2, (nb_task_desc){.group = group});
        submit_number(t, &tasks_of_group, 3,
                      (nb_task_desc){.group = group, .dependencies = &in_group, .dependency_count = 1});
        assert_int_equal(stats_of(t).held_count, 3);
        assert_int_equal(nb_group_end(t->scheduler, group, NB_NEVER_NS), NB_OK);
        assert_int_equal(tasks_of_group.count, 2);
        assert_int_equal(single.count, 0);
        assert_int_equal(nb_task_wait(t->scheduler, late, NB_NEVER_NS), NB_OK);
        assert_int_equal(single.count, 1);
        assert_int_equal(nb_task_wait(t->scheduler, let_in, NB_NEVER_NS), NB_OK);
        assert_int_equal(stats_of(t).held_count, 0);
        tasks_close(t);
    }
}

TEST(held_tasks_can_be_cancelled_and_stopped) {
    tasks *t = tasks_open(0);
    noted all = {0};
    nb_task late[4];
    assert_int_equal(nb_scheduler_budget_open(t->scheduler, 1), NB_OK);
    submit_number(t, &all, 0, (nb_task_desc){0});
    for (uint32_t i = 0; i < 4; ++i) late[i] = submit_number(t, &all, 1 + i, (nb_task_desc){0});
    assert_int_equal(nb_task_cancel(t->scheduler, late[1]), NB_OK);
    assert_int_equal(nb_task_cancel(t->scheduler, late[3]), NB_OK);
    assert_int_equal(nb_task_claim(t->scheduler, late[0]), NB_BUSY);
    assert_int_equal(stats_of(t).held_count, 2);
    assert_int_equal(nb_scheduler_budget_open(t->scheduler, 1), NB_OK);
    assert_int_equal(run_all(t), 2);
    assert_int_equal(all.numbers[1], 1);
    assert_int_equal(nb_scheduler_stop(t->scheduler), NB_OK);
    assert_int_equal(stats_of(t).held_count, 0);
    assert_int_equal(stats_of(t).cancel_count, 3);
    tasks_close(t);
}
