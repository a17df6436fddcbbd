// SPDX-License-Identifier: MIT
// Tasks that wait for the end of others.

#include "support/support.h"

#include "tasks/tasks_fixture.h"

#define NODES 64

// Each task notes its place in the order of starts.
typedef struct sequence {
    nb_atomic_u32 next;
    nb_atomic_u32 places[NODES]; // 1, 2, ...; 0 = did not run
} sequence;

static sequence all; // of the scheduler that is open

static void run_node(nb_task_context *context, void *argument) {
    (void)context;
    uint32_t index = *(const uint32_t *)argument;
    if (index % 3 == 0) nbi_thread_yield(); // others run meanwhile, on one core too
    uint32_t place = nbi_atomic_fetch_add_seq_cst_u32(&all.next, 1) + 1;
    nbi_atomic_store_release_u32(&all.places[index], place);
}

static tasks *open_empty(uint32_t workers) {
    memset(&all, 0, sizeof all);
    return tasks_open(workers);
}

static nb_task submit_in(tasks *t, uint32_t index, nb_group group, const nb_task *on, uint32_t on_count) {
    nb_task_desc desc = {.run = run_node,
                         .argument = &index,
                         .argument_size_bytes = sizeof index,
                         .group = group,
                         .dependencies = on,
                         .dependency_count = on_count};
    nb_task task = {0};
    assert_int_equal(nb_task_submit(t->scheduler, &desc, &task), NB_OK);
    return task;
}

static nb_task submit_free(tasks *t, uint32_t index) { return submit_in(t, index, (nb_group){0}, NULL, 0); }

static nb_task submit_after(tasks *t, uint32_t index, nb_task on) { return submit_in(t, index, (nb_group){0}, &on, 1); }

static uint32_t place_of(uint32_t index) { return nbi_atomic_load_acquire_u32(&all.places[index]); }

// Of the first tasks, as text.
static const char *places_of_first(uint32_t count) {
    static char text[256];
    int length = 0;
    for (uint32_t i = 0; i < count; ++i) {
        length += snprintf(text + length, sizeof text - (size_t)length, "%s%u", i == 0 ? "" : " ", place_of(i));
    }
    return text;
}

// Each waits for the one before.
static void submit_chain(tasks *t, nb_group group, nb_task *made, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) made[i] = submit_in(t, i, group, i == 0 ? NULL : &made[i - 1], i == 0 ? 0 : 1);
}

TEST(chain_runs_in_order) {
    for (uint32_t workers = 0; workers < 4; ++workers) {
        tasks *t = open_empty(workers);
        nb_group group = group_begin(t);
        nb_task made[NODES];
        submit_chain(t, group, made, NODES);
        assert_int_equal(nb_group_end(t->scheduler, group, NB_NEVER_NS), NB_OK);
        for (uint32_t i = 0; i < NODES; ++i) assert_int_equal(place_of(i), i + 1);
        tasks_close(t);
    }
}

// Without workers nobody but the waiting thread can run what the group's task depends on.
TEST(waiting_thread_runs_what_its_group_depends_on) {
    tasks *t = open_empty(0);
    nb_task first = submit_free(t, 0);
    nb_task unrelated = submit_free(t, 1);
    nb_task second = submit_after(t, 2, first);
    nb_group group = group_begin(t);
    submit_in(t, 3, group, &second, 1);
    assert_int_equal(nb_group_end(t->scheduler, group, NB_NEVER_NS), NB_OK);
    assert_string_equal(places_of_first(4), "1 0 2 3");
    assert_int_equal(nb_task_wait(t->scheduler, unrelated, NB_NEVER_NS), NB_OK);
    tasks_close(t);
}

TEST(wait_for_a_task_runs_its_dependencies_first) {
    tasks *t = open_empty(0);
    nb_task leaves[3];
    for (uint32_t i = 0; i < 3; ++i) leaves[i] = submit_free(t, i);
    nb_task join = submit_in(t, 3, (nb_group){0}, leaves, 3);
    assert_int_equal(nb_task_claim(t->scheduler, join), NB_BUSY);
    assert_int_equal(nb_task_wait(t->scheduler, join, 0), NB_TIMEOUT);
    assert_int_equal(nb_task_wait(t->scheduler, join, NB_NEVER_NS), NB_OK);
    assert_int_equal(place_of(3), 4);
    tasks_close(t);
}

TEST(dependency_added_to_a_queued_task_holds_it) {
    tasks *t = open_empty(0);
    nb_task late = submit_free(t, 0);
    nb_task early = submit_free(t, 1);
    assert_int_equal(nb_task_depend(t->scheduler, late, early), NB_OK);
    assert_int_equal(nb_task_promote(t->scheduler, late, NB_PRIORITY_CRITICAL), NB_OK); // does not let it go
    uint64_t run_count = 0;
    assert_int_equal(nb_scheduler_help(t->scheduler, NB_NEVER_NS, &run_count), NB_OK);
    assert_int_equal(run_count, 2);
    assert_string_equal(places_of_first(2), "2 1");
    // What has ended is nothing to wait for, and what has ended cannot wait.
    nb_task free_task = submit_after(t, 2, early);
    assert_int_equal(nb_task_depend(t->scheduler, free_task, late), NB_OK);
    assert_int_equal(nb_scheduler_help(t->scheduler, 0, NULL), NB_OK);
    assert_int_equal(place_of(2), 3);
    assert_int_equal(nb_task_depend(t->scheduler, free_task, late), NB_EMPTY);
    tasks_close(t);
}

TEST(circle_is_refused) {
    tasks *t = open_empty(0);
    nb_task chain[3];
    submit_chain(t, (nb_group){0}, chain, 3);
    assert_int_equal(nb_task_depend(t->scheduler, chain[0], chain[0]), NB_ERR_DEADLOCK);
    assert_int_equal(nb_task_depend(t->scheduler, chain[0], chain[2]), NB_ERR_DEADLOCK);
    assert_int_equal(test_log_count(&t->log, NB_ITEM_TASK_DEADLOCK), 2);
    assert_int_equal(nb_task_wait(t->scheduler, chain[2], NB_NEVER_NS), NB_OK);
    assert_int_equal(place_of(2), 3);
    tasks_close(t);
}

TEST(cancelled_dependency_lets_go) {
    tasks *t = open_empty(0);
    nb_task chain[3];
    submit_chain(t, (nb_group){0}, chain, 3);
    assert_int_equal(nb_task_cancel(t->scheduler, chain[1]), NB_OK); // while it waits
    assert_int_equal(nb_task_cancel(t->scheduler, chain[0]), NB_OK);
    assert_int_equal(nb_task_wait(t->scheduler, chain[2], NB_NEVER_NS), NB_OK);
    assert_string_equal(places_of_first(3), "0 0 1");
    tasks_close(t);
}

TEST(too_many_dependencies_are_refused_whole) {
    nb_scheduler_desc desc = {.worker_count = NB_WORKER_COUNT_NONE, .task_count_max = 64, .dependency_count_max = 4};
    tasks *t = tasks_open_desc(desc);
    nb_task leaves[5];
    for (uint32_t i = 0; i < 5; ++i) leaves[i] = submit_free(t, i);
    uint32_t index = 5;
    nb_task_desc join = {.run = run_node,
                         .argument = &index,
                         .argument_size_bytes = sizeof index,
                         .dependencies = leaves,
                         .dependency_count = 5};
    assert_int_equal(nb_task_submit(t->scheduler, &join, NULL), NB_FULL);
    assert_int_equal(nb_scheduler_help(t->scheduler, NB_NEVER_NS, NULL), NB_OK);
    assert_int_equal(place_of(5), 0);
    // The places are free again.
    for (uint32_t i = 0; i < 4; ++i) leaves[i] = submit_free(t, i);
    join.dependency_count = 4;
    nb_task task;
    assert_int_equal(nb_task_submit(t->scheduler, &join, &task), NB_OK);
    assert_int_equal(nb_task_wait(t->scheduler, task, NB_NEVER_NS), NB_OK);
    assert_int_equal(place_of(5), 10);
    tasks_close(t);
}

typedef struct self_wait {
    tasks *t;
    nb_result result;
} self_wait;

// A task that waits for one that depends on it.
static void run_self_wait(nb_task_context *context, void *argument) {
    self_wait *w = pointer_of(argument);
    nb_task after = submit_after(w->t, 0, context->task);
    w->result = nb_task_wait(w->t->scheduler, after, NB_NEVER_NS);
}

TEST(waiting_for_what_depends_on_oneself_is_a_deadlock) {
    for (uint32_t workers = 0; workers < 3; ++workers) {
        tasks *t = open_empty(workers);
        self_wait w = {.t = t};
        nb_task task = submit_pointer(t, (nb_task_desc){0}, run_self_wait, &w);
        assert_int_equal(nb_task_wait(t->scheduler, task, NB_NEVER_NS), NB_OK);
        assert_int_equal(w.result, NB_ERR_DEADLOCK);
        assert_int_equal(test_log_count(&t->log, NB_ITEM_TASK_DEADLOCK), 1);
        while (place_of(0) == 0) nb_scheduler_help(t->scheduler, 0, NULL);
        tasks_close(t);
    }
}

TEST(stop_ends_what_waits) {
    tasks *t = open_empty(0);
    nb_task made[NODES];
    submit_chain(t, (nb_group){0}, made, NODES);
    assert_int_equal(nb_scheduler_stop(t->scheduler), NB_OK);
    nb_scheduler_stats stats = nb_scheduler_stats_get(t->scheduler);
    assert_int_equal(stats.cancel_count, NODES);
    assert_int_equal(stats.alive_count, 0);
    assert_true(nb_task_is_complete(t->scheduler, made[NODES - 1]));
    tasks_close(t);
}

// Layers of tasks, each waiting for a few of the layer before, while the workers run them.
TEST(layers_never_overtake_each_other) {
    uint64_t seed = test_seed(__func__);
    for (uint64_t round = test_size(60, 600, 20000); round > 0; --round) {
        tasks *t = tasks_open((uint32_t)(round % 4));
        nb_task made[NODES];
        uint32_t on[NODES][3];
        nb_group group = group_begin(t);
        for (uint32_t i = 0; i < NODES; ++i) {
            nb_task some[3];
            for (int k = 0; k < 3; ++k) {
                on[i][k] = (uint32_t)(test_random(&seed) % (i + 1)); // itself: null, and nothing to wait for
                some[k] = on[i][k] < i ? made[on[i][k]] : (nb_task){0};
            }
            made[i] = submit_in(t, i, group, some, 2);
            nb_result result = nb_task_depend(t->scheduler, made[i], some[2]);
            // Too late is fine; then the third does not count.
            if (result != NB_OK) on[i][2] = i;
            assert_true(result == NB_OK || result == NB_BUSY || result == NB_EMPTY);
        }
        assert_int_equal(nb_group_end(t->scheduler, group, NB_NEVER_NS), NB_OK);
        for (uint32_t i = 0; i < NODES; ++i) {
            assert_true(place_of(i) != 0);
            for (int k = 0; k < 3; ++k) {
                if (on[i][k] < i) assert_true(place_of(on[i][k]) < place_of(i));
            }
        }
        tasks_close(t);
    }
}
