// SPDX-License-Identifier: MIT
// Waiting: groups and their results, single tasks, time-outs, and waits that could never end.

#include "tasks/tasks_fixture.h"

// --- groups ---

TEST(group_end_returns_when_every_task_has_run) {
    static once seen;
    for (uint32_t workers = 0; workers <= WORKER_COUNTS_MAX; ++workers) {
        tasks *t = tasks_open(workers);
        for (uint32_t round = 0; round < 3; ++round) {
            memset(&seen, 0, sizeof seen);
            nb_group group = group_begin(t);
            for (uint32_t i = 0; i < 1000; ++i) {
                once_entry entry = {&seen, i};
                nb_task_desc desc = {
                    .run = run_once, .argument = &entry, .argument_size_bytes = sizeof entry, .group = group};
                assert_int_equal(nb_task_submit(t->scheduler, &desc, NULL), NB_OK);
            }
            assert_int_equal(nb_group_end(t->scheduler, group, NB_NEVER_NS), NB_OK);
            assert_true(once_is_exact(&seen, 1000));
        }
        tasks_close(t);
    }
}

typedef struct tree {
    once *seen;
    uint32_t first, count; // of the items this task is for
} tree;

// One item itself, the rest through two children in a group of its own.
static void run_tree(nb_task_context *context, void *argument) {
    tree self;
    memcpy(&self, argument, sizeof self);
    once_note(self.seen, self.first);
    if (self.count == 1) return;
    nb_group group = {0};
    if (nb_group_begin(context->scheduler, &group) != NB_OK) return;
    uint32_t rest = self.count - 1, half = rest / 2;
    tree children[2] = {{self.seen, self.first + 1, half}, {self.seen, self.first + 1 + half, rest - half}};
    for (int i = 0; i < 2; ++i) {
        nb_task_desc desc = {
            .run = run_tree, .argument = &children[i], .argument_size_bytes = sizeof children[i], .group = group};
        if (children[i].count != 0) nb_task_submit(context->scheduler, &desc, NULL);
    }
    nb_group_end(context->scheduler, group, NB_NEVER_NS);
}

TEST(nested_groups_run_everything_once) {
    static once seen;
    for (uint32_t workers = 0; workers <= WORKER_COUNTS_MAX; ++workers) {
        tasks *t = tasks_open(workers);
        memset(&seen, 0, sizeof seen);
        tree root = {&seen, 0, 1500};
        nb_task_desc desc = {.run = run_tree, .argument = &root, .argument_size_bytes = sizeof root};
        nb_task task = {0};
        assert_int_equal(nb_task_submit(t->scheduler, &desc, &task), NB_OK);
        assert_int_equal(nb_task_wait(t->scheduler, task, NB_NEVER_NS), NB_OK);
        assert_true(once_is_exact(&seen, 1500));
        tasks_close(t);
    }
}

TEST(empty_group_ends_at_once) {
    tasks *t = tasks_open(1);
    for (int i = 0; i < 100; ++i) {
        nb_group group = group_begin(t);
        assert_int_equal(nb_group_pending_count(t->scheduler, group), 0);
        assert_int_equal(nb_group_end(t->scheduler, group, 0), NB_OK);
    }
    assert_int_equal(parks_of(t, 0), 0);
    tasks_close(t);
}

TEST(ended_group_is_stale_and_refuses_tasks) {
    tasks *t = tasks_open(0);
    nb_group group = {0}, first = {0}, second = {0};
    group = group_begin(t);
    assert_int_equal(nb_group_end(t->scheduler, group, NB_NEVER_NS), NB_OK);
    assert_int_equal(nb_group_end(t->scheduler, group, NB_NEVER_NS), NB_ERR_STALE);
    assert_int_equal(nb_group_end(t->scheduler, group, 0), NB_ERR_STALE);
    assert_int_equal(test_log_count(&t->log, NB_ITEM_TASK_STALE), 2);
    assert_int_equal(nb_group_pending_count(t->scheduler, group), 0);
    nb_task_desc desc = {.run = run_nothing, .group = group};
    assert_int_equal(nb_task_submit(t->scheduler, &desc, NULL), NB_CLOSED);
    // The ends that were refused did not put it back twice.
    first = group_begin(t);
    second = group_begin(t);
    assert_int_not_equal(first.value, second.value);
    assert_int_equal(nb_task_submit(t->scheduler, &desc, NULL), NB_ERR_STALE);
    assert_int_equal(nb_group_end(t->scheduler, group, 0), NB_ERR_STALE);
    assert_int_equal(nb_group_end(t->scheduler, first, 0), NB_OK);
    assert_int_equal(nb_group_end(t->scheduler, second, 0), NB_OK);
    tasks_close(t);
}

static void run_result(nb_task_context *context, void *argument) {
    nb_result result;
    memcpy(&result, argument, sizeof result);
    nb_task_set_result(context, result);
    nb_task_set_result(context, NB_ERR_OS); // the first one stays
}

static nb_task submit_result(tasks *t, nb_group group, nb_result result) {
    nb_task task = {0};
    nb_task_desc desc = {.run = run_result, .argument = &result, .argument_size_bytes = sizeof result, .group = group};
    assert_int_equal(nb_task_submit(t->scheduler, &desc, &task), NB_OK);
    return task;
}

TEST(group_tells_the_first_result_a_task_set) {
    tasks *t = tasks_open(0);
    nb_group group = group_begin(t);
    submit_pointer(t, (nb_task_desc){.group = group}, run_event, &(event){0});
    submit_result(t, group, NB_ERR_RANGE);
    submit_result(t, group, NB_EMPTY);
    assert_int_equal(nb_group_end(t->scheduler, group, NB_NEVER_NS), NB_ERR_RANGE);
    assert_int_equal(nb_group_end(t->scheduler, group, NB_NEVER_NS), NB_ERR_STALE);
    // A new group in the same place knows nothing of it.
    group = group_begin(t);
    assert_int_equal(nb_group_end(t->scheduler, group, NB_NEVER_NS), NB_OK);
    tasks_close(t);
}

TEST(group_with_a_cancelled_task_says_so) {
    tasks *t = tasks_open(0);
    event runs = {0};
    nb_group group = group_begin(t);
    submit_pointer(t, (nb_task_desc){.group = group}, run_event, &runs);
    nb_task doomed = submit_pointer(t, (nb_task_desc){.group = group}, run_event, &runs);
    assert_int_equal(nb_group_pending_count(t->scheduler, group), 2);
    assert_int_equal(nb_task_cancel(t->scheduler, doomed), NB_OK);
    assert_int_equal(nb_group_pending_count(t->scheduler, group), 1);
    assert_int_equal(nb_group_end(t->scheduler, group, NB_NEVER_NS), NB_CANCELLED);
    assert_int_equal(event_count(&runs), 1);
    assert_int_equal(stats_of(t).cancel_count, 1);
    tasks_close(t);
}

// A group that has timed out: its task is held.
static nb_group group_held(tasks *t, held *h) {
    nb_group group = group_begin(t);
    submit_held(t, (nb_task_desc){.group = group}, h);
    assert_int_equal(nb_group_end(t->scheduler, group, 0), NB_TIMEOUT);
    return group;
}

TEST(group_that_timed_out_is_ended_again) {
    tasks *t = tasks_open(1);
    held h = {0};
    nb_group group = group_held(t, &h);
    uint64_t deadline_ns = nbi_clock_now_ns() + 2000000;
    assert_int_equal(nb_group_end(t->scheduler, group, deadline_ns), NB_TIMEOUT);
    assert_true(nbi_clock_now_ns() >= deadline_ns);
    assert_int_equal(nb_group_pending_count(t->scheduler, group), 1);
    event_set(&h.may_end);
    assert_int_equal(nb_group_end(t->scheduler, group, NB_NEVER_NS), NB_OK);
    assert_int_equal(nb_group_end(t->scheduler, group, NB_NEVER_NS), NB_ERR_STALE);
    assert_int_equal(h.timeouts.value, 0);
    tasks_close(t);
}

// A group that timed out and whose last task ends with nobody inside nb_group_end is still to be ended, once.
TEST(group_that_is_over_after_a_time_out_is_ended_once) {
    tasks *t = tasks_open(1);
    held h = {0};
    nb_group group = group_held(t, &h);
    event_set(&h.may_end);
    AWAIT(nb_group_pending_count(t->scheduler, group) == 0);
    assert_int_equal(nb_group_end(t->scheduler, group, 0), NB_OK);
    assert_int_equal(nb_group_end(t->scheduler, group, 0), NB_ERR_STALE);
    tasks_close(t);
}

#define FEW_GROUPS 32

static void cycle_groups(void *user) {
    tasks *t = user;
    for (uint32_t i = 0; i < 4 * FEW_GROUPS; ++i) {
        nb_group group = {0};
        if (nb_group_begin(t->scheduler, &group) != NB_OK) {
            fprintf(stderr, "group %u was refused\n", (unsigned)i);
            nbi_atomic_fetch_add_seq_cst_u32(&t->log.counts[0], 1);
            return;
        }
        nb_group_end(t->scheduler, group, NB_NEVER_NS);
    }
}

TEST(groups_of_a_thread_without_a_lane_come_back) {
    tasks *t =
        tasks_open_desc((nb_scheduler_desc){.worker_count = NB_WORKER_COUNT_NONE, .group_count_max = FEW_GROUPS});
    test_thread_run(cycle_groups, t);
    assert_int_equal(t->log.counts[0].value, 0);
    tasks_close(t);
}

typedef struct relay {
    tasks *t;
    nb_group groups[4 * FEW_GROUPS];
    event begun, ended;
    nb_atomic_u32 failures;
} relay;

static void end_groups(void *user, uint32_t index) {
    (void)index;
    relay *r = user;
    if (nb_scheduler_attach(r->t->scheduler) != NB_OK) nbi_atomic_fetch_add_seq_cst_u32(&r->failures, 1);
    for (uint32_t i = 0; i < 4 * FEW_GROUPS; ++i) {
        if (!event_await(&r->begun, i + 1)) return;
        if (nb_group_end(r->t->scheduler, r->groups[i], NB_NEVER_NS) != NB_OK) {
            nbi_atomic_fetch_add_seq_cst_u32(&r->failures, 1);
        }
        event_set(&r->ended);
    }
    nb_scheduler_detach(r->t->scheduler);
}

TEST(groups_ended_by_another_thread_come_back) {
    tasks *t =
        tasks_open_desc((nb_scheduler_desc){.worker_count = NB_WORKER_COUNT_NONE, .group_count_max = FEW_GROUPS});
    static relay r;
    memset(&r, 0, sizeof r);
    r.t = t;
    test_thread thread;
    test_threads_start(&thread, 1, end_groups, &r);
    uint32_t refused = 0;
    for (uint32_t i = 0; i < 4 * FEW_GROUPS; ++i) {
        if (nb_group_begin(t->scheduler, &r.groups[i]) != NB_OK) ++refused;
        event_set(&r.begun);
        if (refused != 0) break;
        event_await(&r.ended, i + 1);
    }
    for (uint32_t i = 0; refused != 0 && i < 4 * FEW_GROUPS; ++i) event_set(&r.begun);
    test_threads_join(&thread, 1);
    assert_int_equal(refused, 0);
    assert_int_equal(r.failures.value, 0);
    tasks_close(t);
}

TEST(groups_run_out_and_come_back) {
    tasks *t =
        tasks_open_desc((nb_scheduler_desc){.worker_count = NB_WORKER_COUNT_NONE, .group_count_max = FEW_GROUPS});
    nb_group groups[FEW_GROUPS], more = {0x5A};
    for (int round = 0; round < 3; ++round) {
        for (uint32_t i = 0; i < FEW_GROUPS; ++i) groups[i] = group_begin(t);
        assert_int_equal(nb_group_begin(t->scheduler, &more), NB_FULL);
        assert_int_equal(more.value, 0x5A);
        for (uint32_t i = 0; i < FEW_GROUPS; ++i) assert_int_equal(nb_group_end(t->scheduler, groups[i], 0), NB_OK);
    }
    tasks_close(t);
}

// --- what a waiting thread runs ---

TEST(wait_runs_only_what_it_waits_for) {
    tasks *t = tasks_open(0);
    order ran = {0};
    for (uint32_t i = 0; i < 10; ++i) {
        submit_order(t, (nb_task_desc){.priority = NB_PRIORITY_CRITICAL}, &ran, 100 + i);
        submit_order(t, (nb_task_desc){.priority = NB_PRIORITY_LOW}, &ran, 200 + i);
    }
    nb_task single = submit_order(t, (nb_task_desc){.priority = NB_PRIORITY_LOW}, &ran, 1);
    nb_group group = group_begin(t);
    submit_order(t, (nb_task_desc){.group = group, .priority = NB_PRIORITY_LOW}, &ran, 2);
    submit_order(t, (nb_task_desc){.group = group, .priority = NB_PRIORITY_HIGH}, &ran, 3);
    assert_int_equal(nb_task_wait(t->scheduler, single, NB_NEVER_NS), NB_OK);
    assert_int_equal(ran.count.value, 1);
    assert_int_equal(ran.ids[0], 1);
    assert_int_equal(nb_group_end(t->scheduler, group, NB_NEVER_NS), NB_OK);
    assert_int_equal(ran.count.value, 3);
    assert_int_equal(ran.ids[1] + ran.ids[2], 5);
    assert_int_equal(nb_scheduler_help(t->scheduler, NB_NEVER_NS, NULL), NB_OK);
    assert_int_equal(ran.count.value, 23);
    tasks_close(t);
}

typedef struct parent_task {
    event children_run, started;
    nb_group group;
    uint32_t failures;
} parent_task;

// Its children can only be run by somebody else: it does not wait for them with the scheduler.
static void run_parent(nb_task_context *context, void *argument) {
    parent_task *parent = pointer_of(argument);
    event *children_run = &parent->children_run;
    nb_group group = {0};
    nb_group_begin(context->scheduler, &group);
    nb_task_desc desc = {
        .run = run_event, .argument = &children_run, .argument_size_bytes = sizeof children_run, .group = group};
    for (int i = 0; i < 3; ++i) nb_task_submit(context->scheduler, &desc, NULL);
    event_set(&parent->started);
    if (!event_await(children_run, 3)) ++parent->failures;
    if (nb_group_end(context->scheduler, group, NB_NEVER_NS) != NB_OK) ++parent->failures;
}

TEST(waiting_for_a_task_helps_with_what_it_started) {
    tasks *t = tasks_open(1);
    parent_task parent = {0};
    nb_task task = submit_pointer(t, (nb_task_desc){0}, run_parent, &parent);
    assert_true(event_await(&parent.started, 1));
    assert_int_equal(nb_task_wait(t->scheduler, task, NB_NEVER_NS), NB_OK);
    assert_int_equal(parent.failures, 0);
    assert_int_equal(nb_scheduler_thread_stats_get(t->scheduler, 0).help_count, 3);
    tasks_close(t);
}

TEST(waiting_for_a_group_helps_with_nested_groups) {
    tasks *t = tasks_open(1);
    parent_task parent = {0};
    nb_group group = group_begin(t);
    submit_started(t, (nb_task_desc){.group = group}, run_parent, &parent, &parent.started, 1);
    assert_int_equal(nb_group_end(t->scheduler, group, NB_NEVER_NS), NB_OK);
    assert_int_equal(parent.failures, 0);
    tasks_close(t);
}

typedef struct late_child {
    tasks *t;
    nb_group group;
    event child_run, started;
    uint32_t failures;
} late_child;

// Once the coordinator sleeps in its wait, a child comes that only it can run.
static void run_late_child(nb_task_context *context, void *argument) {
    late_child *late = pointer_of(argument);
    event *child_run = &late->child_run;
    event_set(&late->started);
    uint64_t end_ns = nbi_clock_now_ns() + LIMIT_NS;
    while (parks_of(late->t, 0) == 0 && nbi_clock_now_ns() < end_ns) nbi_thread_yield();
    nb_task_desc desc = {
        .run = run_event, .argument = &child_run, .argument_size_bytes = sizeof child_run, .group = late->group};
    if (nb_task_submit(context->scheduler, &desc, NULL) != NB_OK) ++late->failures;
    uint64_t start_ns = nbi_clock_now_ns();
    if (!event_await(child_run, 1) || nbi_clock_now_ns() - start_ns > WAKE_LIMIT_NS) ++late->failures;
}

TEST(sleeping_waiter_is_woken_for_new_work) {
    for (int round = 0; round < 5; ++round) {
        tasks *t = tasks_open(1);
        late_child late = {.t = t};
        late.group = group_begin(t);
        submit_pointer(t, (nb_task_desc){.group = late.group}, run_late_child, &late);
        assert_true(event_await(&late.started, 1));
        assert_int_equal(nb_group_end(t->scheduler, late.group, NB_NEVER_NS), NB_OK);
        assert_int_equal(late.failures, 0);
        tasks_close(t);
    }
}

typedef struct outsider {
    nb_group group;
    event child_run, submitted, may_end;
    uint32_t failures;
} outsider;

// Belongs to no group, and adds a task to one.
static void run_outsider(nb_task_context *context, void *argument) {
    outsider *out = pointer_of(argument);
    event *child_run = &out->child_run;
    nb_task_desc desc = {
        .run = run_event, .argument = &child_run, .argument_size_bytes = sizeof child_run, .group = out->group};
    if (nb_task_submit(context->scheduler, &desc, NULL) != NB_OK) ++out->failures;
    event_set(&out->submitted);
    if (!event_await(&out->may_end, 1)) ++out->failures;
}

TEST(group_does_not_wait_for_a_task_that_only_submitted_to_it) {
    tasks *t = tasks_open(1);
    outsider out = {0};
    out.group = group_begin(t);
    submit_pointer(t, (nb_task_desc){0}, run_outsider, &out);
    assert_true(event_await(&out.submitted, 1));
    uint64_t deadline_ns = nbi_clock_now_ns() + WAKE_LIMIT_NS;
    nb_result result = nb_group_end(t->scheduler, out.group, deadline_ns);
    event_set(&out.may_end);
    assert_int_equal(result, NB_OK);
    assert_int_equal(out.failures, 0);
    assert_int_equal(event_count(&out.child_run), 1);
    tasks_close(t);
}

// The thread that ran its last task goes on with a long one of another group.
TEST(group_is_over_though_its_thread_runs_on) {
    tasks *t = tasks_open(1);
    held first = {0}, other = {0};
    event runs = {0};
    nb_group group = {0}, next = {0};
    group = group_begin(t);
    next = group_begin(t);
    submit_pointer(t, (nb_task_desc){0}, run_held, &first); // so that the worker finds both of the others at once
    assert_true(event_await(&first.started, 1));
    submit_pointer(t, (nb_task_desc){.group = group}, run_event, &runs);
    submit_pointer(t, (nb_task_desc){.group = next}, run_held, &other);
    event_set(&first.may_end);
    assert_true(event_await(&other.started, 1));
    nb_result result = nb_group_end(t->scheduler, group, nbi_clock_now_ns() + WAKE_LIMIT_NS);
    event_set(&other.may_end);
    assert_int_equal(result, NB_OK);
    assert_int_equal(event_count(&runs), 1);
    assert_int_equal(nb_group_end(t->scheduler, next, NB_NEVER_NS), NB_OK);
    tasks_close(t);
}

// --- single tasks ---

TEST(waiting_for_an_ended_task_returns_at_once) {
    for (uint32_t workers = 0; workers <= 2; ++workers) {
        tasks *t = tasks_open(workers);
        event runs = {0};
        nb_task task = submit_pointer(t, (nb_task_desc){0}, run_event, &runs);
        assert_int_equal(nb_task_wait(t->scheduler, task, NB_NEVER_NS), NB_OK);
        assert_true(nb_task_is_complete(t->scheduler, task));
        assert_int_equal(event_count(&runs), 1);
        assert_int_equal(nb_task_wait(t->scheduler, task, 0), NB_OK);
        assert_int_equal(nb_task_wait(t->scheduler, (nb_task){0}, 0), NB_OK);
        tasks_close(t);
    }
}

TEST(deadline_of_zero_only_looks) {
    tasks *t = tasks_open(0);
    event runs = {0};
    nb_task task = submit_pointer(t, (nb_task_desc){0}, run_event, &runs);
    assert_int_equal(nb_task_wait(t->scheduler, task, 0), NB_TIMEOUT);
    assert_int_equal(event_count(&runs), 0);
    nb_group group = group_begin(t);
    submit_pointer(t, (nb_task_desc){.group = group}, run_event, &runs);
    assert_int_equal(nb_group_end(t->scheduler, group, 0), NB_TIMEOUT);
    assert_int_equal(event_count(&runs), 0);
    assert_int_equal(nb_group_end(t->scheduler, group, NB_NEVER_NS), NB_OK);
    assert_int_equal(nb_task_wait(t->scheduler, task, NB_NEVER_NS), NB_OK);
    assert_int_equal(event_count(&runs), 2);
    tasks_close(t);
}

TEST(wait_for_a_running_task_times_out_and_never_early) {
    tasks *t = tasks_open(1);
    held h = {0};
    nb_task task = submit_held(t, (nb_task_desc){0}, &h);
    for (uint64_t timeout_ns = 1; timeout_ns < 10000000; timeout_ns *= 10) {
        uint64_t deadline_ns = nbi_clock_now_ns() + timeout_ns;
        assert_int_equal(nb_task_wait(t->scheduler, task, deadline_ns), NB_TIMEOUT);
        assert_true(nbi_clock_now_ns() >= deadline_ns);
    }
    assert_int_equal(nb_task_wait(t->scheduler, task, 0), NB_TIMEOUT);
    assert_false(nb_task_is_complete(t->scheduler, task));
    held_wait(t, &h, task);
    tasks_close(t);
}

static void run_5_ms(nb_task_context *context, void *argument) {
    nbi_sleep_until_ns(nbi_clock_now_ns() + 5000000);
    run_event(context, argument);
}

// A deadline is overrun by the task that is being helped with, not by all that are queued.
TEST(deadline_ends_helping) {
    tasks *t = tasks_open(0);
    event runs = {0};
    nb_group group = group_begin(t);
    for (int i = 0; i < 40; ++i) submit_pointer(t, (nb_task_desc){.group = group}, run_5_ms, &runs);
    assert_int_equal(nb_group_end(t->scheduler, group, nbi_clock_now_ns() + 12000000), NB_TIMEOUT);
    assert_in_range(event_count(&runs), 1, 10);
    // A deadline that has passed does not begin anything.
    uint32_t before = event_count(&runs);
    assert_int_equal(nb_group_end(t->scheduler, group, 1), NB_TIMEOUT);
    assert_int_equal(event_count(&runs), before);
    assert_int_equal(nb_group_end(t->scheduler, group, NB_NEVER_NS), NB_OK);
    assert_int_equal(event_count(&runs), 40);
    tasks_close(t);
}

typedef struct releaser {
    tasks *t;
    held *h;
} releaser;

static void release_when_asleep(void *user, uint32_t index) {
    (void)index;
    releaser *r = user;
    uint64_t end_ns = nbi_clock_now_ns() + LIMIT_NS;
    while (parks_of(r->t, 0) == 0 && nbi_clock_now_ns() < end_ns) nbi_thread_yield();
    event_set(&r->h->may_end);
}

// The handle that a task finds in its context is the one that the submit gave, and null where it gave none.
TEST(sleeper_on_a_running_task_is_woken_by_its_end) {
    tasks *t = tasks_open(1);
    for (int has_handle = 0; has_handle <= 1; ++has_handle) {
        held h = {0};
        held *pointer = &h;
        nb_task task = {0};
        nb_task_desc desc = {.run = run_held, .argument = &pointer, .argument_size_bytes = sizeof pointer};
        assert_int_equal(nb_task_submit(t->scheduler, &desc, has_handle ? &task : NULL), NB_OK);
        assert_true(event_await(&h.started, 1));
        assert_int_equal(nbi_atomic_load_relaxed_u64(&h.task), task.value);
        assert_int_equal(nb_task_is_complete(t->scheduler, task), !has_handle);
        releaser r = {t, &h};
        test_thread thread;
        if (!has_handle) event_set(&h.may_end);
        test_threads_start(&thread, has_handle ? 1 : 0, release_when_asleep, &r);
        uint64_t start_ns = nbi_clock_now_ns();
        nb_result result = nb_task_wait(t->scheduler, task, start_ns + LIMIT_NS);
        uint64_t waited_ns = nbi_clock_now_ns() - start_ns;
        test_threads_join(&thread, has_handle ? 1 : 0);
        assert_int_equal(result, NB_OK);
        assert_true(waited_ns < WAKE_LIMIT_NS);
        assert_true(event_await(&h.ended, 1));
    }
    tasks_close(t);
}

typedef struct crowd {
    tasks *t;
    nb_task task;
    held h;
    nb_atomic_u32 failures;
} crowd;

// How often threads from an index on have gone to sleep.
static uint64_t parks_from(const tasks *t, uint32_t first) {
    uint64_t count = 0;
    for (uint32_t i = first; i < stats_of(t).thread_count; ++i) count += parks_of(t, i);
    return count;
}

static void many_threads_wait_for_one_task(void *user, uint32_t index) {
    (void)index;
    crowd *c = user;
    if (nb_task_wait(c->t->scheduler, c->task, nbi_clock_now_ns() + LIMIT_NS) != NB_OK) {
        nbi_atomic_fetch_add_seq_cst_u32(&c->failures, 1);
    }
}

TEST(end_of_a_task_wakes_everybody_who_waits) {
    tasks *t = tasks_open(1);
    static crowd c;
    memset(&c, 0, sizeof c);
    c.t = t;
    c.task = submit_pointer(t, (nb_task_desc){0}, run_held, &c.h);
    assert_true(event_await(&c.h.started, 1));
    test_thread threads[6];
    test_threads_start(threads, 6, many_threads_wait_for_one_task, &c);
    AWAIT(parks_from(t, 2) >= 6); // behind the coordinator and the worker
    uint64_t start_ns = nbi_clock_now_ns();
    event_set(&c.h.may_end);
    test_threads_join(threads, 6);
    assert_true(nbi_clock_now_ns() - start_ns < WAKE_LIMIT_NS);
    assert_int_equal(c.failures.value, 0);
    tasks_close(t);
}

// --- waits that could never end ---

typedef struct deadlock {
    nb_group outer;   // of the first task
    nb_task task;     // to wait for
    nb_result result; // of the wait
    event inner_started;
} deadlock;

static void run_wait_for_itself(nb_task_context *context, void *argument) {
    deadlock *d = pointer_of(argument);
    d->result = nb_task_wait(context->scheduler, context->task, nbi_clock_now_ns() + LIMIT_NS);
}

static void run_wait_for_task(nb_task_context *context, void *argument) {
    deadlock *d = pointer_of(argument);
    d->result = nb_task_wait(context->scheduler, d->task, nbi_clock_now_ns() + LIMIT_NS);
}

static void run_wait_for_group(nb_task_context *context, void *argument) {
    deadlock *d = pointer_of(argument);
    d->result = nb_group_end(context->scheduler, d->outer, nbi_clock_now_ns() + LIMIT_NS);
}

// Runs `inner` in a group of its own, below the calling task.
static void run_inside(nb_task_context *context, deadlock *d, task_function inner) {
    nb_group group = {0};
    nb_group_begin(context->scheduler, &group);
    nb_task_desc desc = {.run = inner, .argument = &d, .argument_size_bytes = sizeof d, .group = group};
    nb_task_submit(context->scheduler, &desc, NULL);
    nb_group_end(context->scheduler, group, NB_NEVER_NS);
}

static void run_nested_wait_for_task(nb_task_context *context, void *argument) {
    deadlock *d = pointer_of(argument);
    d->task = context->task;
    run_inside(context, d, run_wait_for_task);
}

static void run_nested_wait_for_group(nb_task_context *context, void *argument) {
    run_inside(context, pointer_of(argument), run_wait_for_group);
}

static void run_twice_nested_wait_for_group(nb_task_context *context, void *argument) {
    run_inside(context, pointer_of(argument), run_nested_wait_for_group);
}

TEST(wait_that_cannot_end_is_found) {
    static const task_function bodies[] = {run_wait_for_itself, run_nested_wait_for_task, run_wait_for_group,
                                           run_nested_wait_for_group, run_twice_nested_wait_for_group};
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; ++i) {
        for (uint32_t workers = 0; workers <= 2; ++workers) {
            tasks *t = tasks_open(workers);
            deadlock d = {0};
            d.outer = group_begin(t);
            submit_pointer(t, (nb_task_desc){.group = d.outer}, bodies[i], &d);
            assert_int_equal(nb_group_end(t->scheduler, d.outer, nbi_clock_now_ns() + LIMIT_NS), NB_OK);
            assert_int_equal(d.result, NB_ERR_DEADLOCK);
            assert_int_equal(test_log_count(&t->log, NB_ITEM_TASK_DEADLOCK), 1);
            tasks_close(t);
        }
    }
}

static void run_wait_for_ancestor(nb_task_context *context, void *argument) {
    deadlock *d = pointer_of(argument);
    event_set(&d->inner_started);
    d->result = nb_task_wait(context->scheduler, d->task, nbi_clock_now_ns() + 100000000);
}

// Its child runs on another thread: it does not help before that has begun.
static void run_ancestor(nb_task_context *context, void *argument) {
    deadlock *d = pointer_of(argument);
    d->task = context->task;
    nb_group group = {0};
    nb_group_begin(context->scheduler, &group);
    nb_task_desc desc = {.run = run_wait_for_ancestor, .argument = &d, .argument_size_bytes = sizeof d, .group = group};
    nb_task_submit(context->scheduler, &desc, NULL);
    event_await(&d->inner_started, 1);
    nb_group_end(context->scheduler, group, NB_NEVER_NS);
}

TEST(wait_for_an_ancestor_on_another_thread_is_found) {
    tasks *t = tasks_open(1);
    deadlock d = {0};
    nb_task task = submit_pointer(t, (nb_task_desc){0}, run_ancestor, &d);
    assert_int_equal(nb_task_wait(t->scheduler, task, NB_NEVER_NS), NB_OK);
    assert_int_equal(d.result, NB_ERR_DEADLOCK);
    tasks_close(t);
}

static void run_inline_wait(nb_task_context *context, void *argument) {
    deadlock *d = pointer_of(argument);
    d->result = nb_group_end(context->scheduler, d->outer, nbi_clock_now_ns() + 50000000);
}

static void run_fill_and_inline_wait(nb_task_context *context, void *argument) {
    deadlock *d = pointer_of(argument);
    nb_task_desc filler = {.run = run_nothing};
    while (nb_task_submit(context->scheduler, &filler, NULL) == NB_OK) {
    }
    nb_task_desc desc = {.run = run_inline_wait, .argument = &d, .argument_size_bytes = sizeof d, .runs_inline = true};
    nb_task_submit(context->scheduler, &desc, NULL);
}

TEST(wait_of_an_inline_task_for_the_group_below_is_found) {
    tasks *t = tasks_open_room(0, 16);
    deadlock d = {0};
    d.outer = group_begin(t);
    submit_pointer(t, (nb_task_desc){.group = d.outer}, run_fill_and_inline_wait, &d);
    assert_int_equal(nb_group_end(t->scheduler, d.outer, NB_NEVER_NS), NB_OK);
    assert_int_equal(stats_of(t).inline_count, 1);
    assert_int_equal(d.result, NB_ERR_DEADLOCK);
    tasks_close(t);
}
