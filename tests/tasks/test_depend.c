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

typedef struct node {
    sequence *all;
    uint32_t index;
} node;

static void run_node(nb_task_context *context, void *argument) {
    (void)context;
    const node *n = argument;
    if (n->index % 3 == 0) nbi_thread_yield(); // others run meanwhile, on one core too
    uint32_t place = nbi_atomic_fetch_add_seq_cst_u32(&n->all->next, 1) + 1;
    nbi_atomic_store_release_u32(&n->all->places[n->index], place);
}

static nb_task submit_node(tasks *t, sequence *all, uint32_t index, nb_group group, const nb_task *on,
                           uint32_t on_count) {
    node n = {all, index};
    nb_task_desc desc = {.run = run_node,
                         .argument = &n,
                         .argument_size_bytes = sizeof n,
                         .group = group,
                         .dependencies = on,
                         .dependency_count = on_count};
    nb_task task = {0};
    assert_int_equal(nb_task_submit(t->scheduler, &desc, &task), NB_OK);
    return task;
}

static uint32_t place_of(sequence *all, uint32_t index) { return nbi_atomic_load_acquire_u32(&all->places[index]); }

TEST(chain_runs_in_order) {
    for (uint32_t workers = 0; workers < 4; ++workers) {
        tasks t;
        tasks_open(&t, workers);
        static sequence all;
        memset(&all, 0, sizeof all);
        nb_group group;
        assert_int_equal(nb_group_begin(t.scheduler, &group), NB_OK);
        nb_task last = {0};
        for (uint32_t i = 0; i < NODES; ++i) last = submit_node(&t, &all, i, group, &last, i == 0 ? 0 : 1);
        assert_int_equal(nb_group_end(t.scheduler, group, NB_NEVER_NS), NB_OK);
        for (uint32_t i = 0; i < NODES; ++i) assert_int_equal(place_of(&all, i), i + 1);
        tasks_close(&t);
    }
}

// Without workers nobody but the waiting thread can run what the group's task depends on.
TEST(waiting_thread_runs_what_its_group_depends_on) {
    tasks t;
    tasks_open(&t, 0);
    static sequence all;
    memset(&all, 0, sizeof all);
    nb_task first = submit_node(&t, &all, 0, (nb_group){0}, NULL, 0);
    nb_task unrelated = submit_node(&t, &all, 1, (nb_group){0}, NULL, 0);
    nb_task second = submit_node(&t, &all, 2, (nb_group){0}, &first, 1);
    nb_group group;
    assert_int_equal(nb_group_begin(t.scheduler, &group), NB_OK);
    submit_node(&t, &all, 3, group, &second, 1);
    assert_int_equal(nb_group_end(t.scheduler, group, NB_NEVER_NS), NB_OK);
    assert_int_equal(place_of(&all, 0), 1);
    assert_int_equal(place_of(&all, 1), 0);
    assert_int_equal(place_of(&all, 2), 2);
    assert_int_equal(place_of(&all, 3), 3);
    assert_int_equal(nb_task_wait(t.scheduler, unrelated, NB_NEVER_NS), NB_OK);
    tasks_close(&t);
}

TEST(wait_for_a_task_runs_its_dependencies_first) {
    tasks t;
    tasks_open(&t, 0);
    static sequence all;
    memset(&all, 0, sizeof all);
    nb_task leaves[3];
    for (uint32_t i = 0; i < 3; ++i) leaves[i] = submit_node(&t, &all, i, (nb_group){0}, NULL, 0);
    nb_task join = submit_node(&t, &all, 3, (nb_group){0}, leaves, 3);
    assert_int_equal(nb_task_claim(t.scheduler, join), NB_BUSY);
    assert_int_equal(nb_task_wait(t.scheduler, join, 0), NB_TIMEOUT);
    assert_int_equal(nb_task_wait(t.scheduler, join, NB_NEVER_NS), NB_OK);
    assert_int_equal(place_of(&all, 3), 4);
    tasks_close(&t);
}

TEST(dependency_added_to_a_queued_task_holds_it) {
    tasks t;
    tasks_open(&t, 0);
    static sequence all;
    memset(&all, 0, sizeof all);
    nb_task late = submit_node(&t, &all, 0, (nb_group){0}, NULL, 0);
    nb_task early = submit_node(&t, &all, 1, (nb_group){0}, NULL, 0);
    assert_int_equal(nb_task_depend(t.scheduler, late, early), NB_OK);
    assert_int_equal(nb_task_promote(t.scheduler, late, NB_PRIORITY_CRITICAL), NB_OK); // does not let it go
    uint64_t run_count = 0;
    assert_int_equal(nb_scheduler_help(t.scheduler, NB_NEVER_NS, &run_count), NB_OK);
    assert_int_equal(run_count, 2);
    assert_int_equal(place_of(&all, 1), 1);
    assert_int_equal(place_of(&all, 0), 2);
    // What has ended is nothing to wait for, and what has ended cannot wait.
    nb_task free_task = submit_node(&t, &all, 2, (nb_group){0}, &early, 1);
    assert_int_equal(nb_task_depend(t.scheduler, free_task, late), NB_OK);
    assert_int_equal(nb_scheduler_help(t.scheduler, 0, NULL), NB_OK);
    assert_int_equal(place_of(&all, 2), 3);
    assert_int_equal(nb_task_depend(t.scheduler, free_task, late), NB_EMPTY);
    tasks_close(&t);
}

TEST(circle_is_refused) {
    tasks t;
    tasks_open(&t, 0);
    static sequence all;
    memset(&all, 0, sizeof all);
    nb_task a = submit_node(&t, &all, 0, (nb_group){0}, NULL, 0);
    nb_task b = submit_node(&t, &all, 1, (nb_group){0}, &a, 1);
    nb_task c = submit_node(&t, &all, 2, (nb_group){0}, &b, 1);
    assert_int_equal(nb_task_depend(t.scheduler, a, a), NB_ERR_DEADLOCK);
    assert_int_equal(nb_task_depend(t.scheduler, a, c), NB_ERR_DEADLOCK);
    assert_int_equal(test_log_count(&t.log, NB_ITEM_TASK_DEADLOCK), 2);
    assert_int_equal(nb_task_wait(t.scheduler, c, NB_NEVER_NS), NB_OK);
    assert_int_equal(place_of(&all, 2), 3);
    tasks_close(&t);
}

TEST(cancelled_dependency_lets_go) {
    tasks t;
    tasks_open(&t, 0);
    static sequence all;
    memset(&all, 0, sizeof all);
    nb_task a = submit_node(&t, &all, 0, (nb_group){0}, NULL, 0);
    nb_task b = submit_node(&t, &all, 1, (nb_group){0}, &a, 1);
    nb_task c = submit_node(&t, &all, 2, (nb_group){0}, &b, 1);
    assert_int_equal(nb_task_cancel(t.scheduler, b), NB_OK); // while it waits
    assert_int_equal(nb_task_cancel(t.scheduler, a), NB_OK);
    assert_int_equal(nb_task_wait(t.scheduler, c, NB_NEVER_NS), NB_OK);
    assert_int_equal(place_of(&all, 0), 0);
    assert_int_equal(place_of(&all, 1), 0);
    assert_int_equal(place_of(&all, 2), 1);
    tasks_close(&t);
}

TEST(too_many_dependencies_are_refused_whole) {
    tasks t;
    nb_scheduler_desc desc = {.worker_count = NB_WORKER_COUNT_NONE, .task_count_max = 64, .dependency_count_max = 4};
    tasks_open_desc(&t, desc);
    static sequence all;
    memset(&all, 0, sizeof all);
    nb_task leaves[5];
    for (uint32_t i = 0; i < 5; ++i) leaves[i] = submit_node(&t, &all, i, (nb_group){0}, NULL, 0);
    node n = {&all, 5};
    nb_task_desc join = {.run = run_node,
                         .argument = &n,
                         .argument_size_bytes = sizeof n,
                         .dependencies = leaves,
                         .dependency_count = 5};
    assert_int_equal(nb_task_submit(t.scheduler, &join, NULL), NB_FULL);
    assert_int_equal(nb_scheduler_help(t.scheduler, NB_NEVER_NS, NULL), NB_OK);
    assert_int_equal(place_of(&all, 5), 0);
    // The places are free again.
    for (uint32_t i = 0; i < 4; ++i) leaves[i] = submit_node(&t, &all, i, (nb_group){0}, NULL, 0);
    join.dependency_count = 4;
    nb_task task;
    assert_int_equal(nb_task_submit(t.scheduler, &join, &task), NB_OK);
    assert_int_equal(nb_task_wait(t.scheduler, task, NB_NEVER_NS), NB_OK);
    assert_int_equal(place_of(&all, 5), 10);
    tasks_close(&t);
}

typedef struct self_wait {
    tasks *t;
    sequence *all;
    nb_result result;
} self_wait;

// A task that waits for one that depends on it.
static void run_self_wait(nb_task_context *context, void *argument) {
    self_wait *w = *(self_wait **)argument;
    nb_task after = submit_node(w->t, w->all, 0, (nb_group){0}, &context->task, 1);
    w->result = nb_task_wait(w->t->scheduler, after, NB_NEVER_NS);
}

TEST(waiting_for_what_depends_on_oneself_is_a_deadlock) {
    for (uint32_t workers = 0; workers < 3; ++workers) {
        tasks t;
        tasks_open(&t, workers);
        static sequence all;
        memset(&all, 0, sizeof all);
        self_wait w = {.t = &t, .all = &all}, *pointer = &w;
        nb_task_desc desc = {.run = run_self_wait, .argument = &pointer, .argument_size_bytes = sizeof pointer};
        nb_task task;
        assert_int_equal(nb_task_submit(t.scheduler, &desc, &task), NB_OK);
        assert_int_equal(nb_task_wait(t.scheduler, task, NB_NEVER_NS), NB_OK);
        assert_int_equal(w.result, NB_ERR_DEADLOCK);
        assert_int_equal(test_log_count(&t.log, NB_ITEM_TASK_DEADLOCK), 1);
        while (place_of(&all, 0) == 0) nb_scheduler_help(t.scheduler, 0, NULL);
        tasks_close(&t);
    }
}

TEST(stop_ends_what_waits) {
    tasks t;
    tasks_open(&t, 0);
    static sequence all;
    memset(&all, 0, sizeof all);
    nb_task last = {0};
    for (uint32_t i = 0; i < NODES; ++i) last = submit_node(&t, &all, i, (nb_group){0}, &last, i == 0 ? 0 : 1);
    assert_int_equal(nb_scheduler_stop(t.scheduler), NB_OK);
    nb_scheduler_stats stats = nb_scheduler_stats_get(t.scheduler);
    assert_int_equal(stats.cancel_count, NODES);
    assert_int_equal(stats.alive_count, 0);
    assert_true(nb_task_is_complete(t.scheduler, last));
    tasks_close(&t);
}

// Layers of tasks, each waiting for a few of the layer before, while the workers run them.
TEST(layers_never_overtake_each_other) {
    uint64_t seed = test_seed(__func__);
    for (uint64_t round = test_size(60, 600, 20000); round > 0; --round) {
        tasks t;
        tasks_open(&t, (uint32_t)(round % 4));
        static sequence all;
        memset(&all, 0, sizeof all);
        nb_task made[NODES];
        uint32_t on[NODES][3];
        nb_group group;
        assert_int_equal(nb_group_begin(t.scheduler, &group), NB_OK);
        for (uint32_t i = 0; i < NODES; ++i) {
            nb_task some[3];
            for (int k = 0; k < 3; ++k) {
                on[i][k] = (uint32_t)(test_random(&seed) % (i + 1)); // itself: null, and nothing to wait for
                some[k] = on[i][k] < i ? made[on[i][k]] : (nb_task){0};
            }
            made[i] = submit_node(&t, &all, i, group, some, 2);
            nb_result result = nb_task_depend(t.scheduler, made[i], some[2]);
            // Too late is fine; then the third does not count.
            if (result != NB_OK) on[i][2] = i;
            assert_true(result == NB_OK || result == NB_BUSY || result == NB_EMPTY);
        }
        assert_int_equal(nb_group_end(t.scheduler, group, NB_NEVER_NS), NB_OK);
        for (uint32_t i = 0; i < NODES; ++i) {
            assert_true(place_of(&all, i) != 0);
            for (int k = 0; k < 3; ++k) {
                if (on[i][k] < i) assert_true(place_of(&all, on[i][k]) < place_of(&all, i));
            }
        }
        tasks_close(&t);
    }
}
