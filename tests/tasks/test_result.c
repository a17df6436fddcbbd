// SPDX-License-Identifier: MIT
// Results: each told once, in the order of submission, with the frames it began and ended in.

#include "support/support.h"

#include "tasks/tasks_fixture.h"

#include "nebula/fence.h"

typedef struct heard {
    uint32_t count;
    uint32_t values[512];
    nb_result statuses[512];
    nb_fence_frame dispatched, completed;
    bool is_stale;
    nb_scheduler *scheduler;
    nb_result nested; // of a drain inside the callback
} heard;

// The argument carries the result back.
static void run_double(nb_task_context *context, void *argument) {
    (void)context;
    *(uint32_t *)argument *= 2;
}

static void run_fail(nb_task_context *context, void *argument) {
    (void)argument;
    nb_task_set_result(context, NB_ERR_OS);
}

static void hear(void *user, const nb_task_result *result) {
    heard *h = user;
    h->values[h->count] = *(const uint32_t *)result->argument;
    h->statuses[h->count++] = result->status;
    h->dispatched = result->dispatched;
    h->completed = result->completed;
    h->is_stale = result->is_stale;
    if (h->scheduler != NULL) h->nested = nb_scheduler_drain(h->scheduler, 0, NULL);
}

static nb_task_desc told(heard *h, const uint32_t *value) {
    return (nb_task_desc){
        .run = run_double, .argument = value, .argument_size_bytes = sizeof *value, .on_complete = hear, .user = h};
}

static nb_result submit_told(tasks *t, heard *h, uint32_t value, nb_task *task) {
    nb_task_desc desc = told(h, &value);
    return nb_task_submit(t->scheduler, &desc, task);
}

TEST(results_come_in_the_order_of_submission) {
    for (uint32_t workers = 0; workers < 4; ++workers) {
        tasks *t = tasks_open(workers);
        static heard h;
        memset(&h, 0, sizeof h);
        nb_group group = group_begin(t);
        for (uint32_t i = 0; i < 500; ++i) {
            nb_task_desc desc = told(&h, &i);
            desc.group = group;
            desc.priority = (nb_priority)(NB_PRIORITY_LOW + i % 4);
            assert_int_equal(nb_task_submit(t->scheduler, &desc, NULL), NB_OK);
        }
        assert_int_equal(nb_group_end(t->scheduler, group, NB_NEVER_NS), NB_OK);
        uint64_t count = 0;
        assert_int_equal(nb_scheduler_drain(t->scheduler, 7, &count), NB_OK); // a part first
        assert_int_equal(count, 7);
        assert_int_equal(nb_scheduler_drain(t->scheduler, 0, &count), NB_OK);
        assert_int_equal(count, 493);
        for (uint32_t i = 0; i < 500; ++i) assert_int_equal(h.values[i], 2 * i);
        assert_int_equal(nb_scheduler_drain(t->scheduler, 0, &count), NB_EMPTY);
        assert_int_equal(nb_scheduler_stats_get(t->scheduler).result_count, 500);
        tasks_close(t);
    }
}

TEST(every_end_is_told) {
    tasks *t = tasks_open(0);
    static heard h;
    memset(&h, 0, sizeof h);
    uint32_t value = 21;
    nb_task cancelled;
    assert_int_equal(submit_told(t, &h, value, NULL), NB_OK);
    assert_int_equal(submit_told(t, &h, value, &cancelled), NB_OK);
    nb_task_desc failing = told(&h, &value);
    failing.run = run_fail;
    assert_int_equal(nb_task_submit(t->scheduler, &failing, NULL), NB_OK);
    assert_int_equal(nb_task_cancel(t->scheduler, cancelled), NB_OK);
    assert_int_equal(nb_scheduler_help(t->scheduler, NB_NEVER_NS, NULL), NB_OK);
    h.scheduler = t->scheduler;
    assert_int_equal(nb_scheduler_drain(t->scheduler, 0, NULL), NB_OK);
    assert_int_equal(h.nested, NB_BUSY);
    assert_int_equal(h.count, 3);
    assert_int_equal(h.statuses[0], NB_OK);
    assert_int_equal(h.values[0], 42);
    assert_int_equal(h.statuses[1], NB_CANCELLED);
    assert_int_equal(h.values[1], 21);
    assert_int_equal(h.statuses[2], NB_ERR_OS);
    tasks_close(t);
}

// Nothing but the pool bounds results, and the pool says so before a task is accepted.
TEST(results_are_refused_early_never_dropped) {
    tasks *t = tasks_open_room(0, 64);
    static heard h;
    memset(&h, 0, sizeof h);
    uint32_t accepted = 0;
    while (submit_told(t, &h, accepted, NULL) == NB_OK) {
        ++accepted;
        assert_int_equal(nb_scheduler_help(t->scheduler, 0, NULL), NB_OK);
    }
    assert_int_equal(accepted, 64 - 64 / 8); // the rest is Critical's
    assert_int_equal(nb_scheduler_drain(t->scheduler, 0, NULL), NB_OK);
    assert_int_equal(h.count, accepted);
    assert_int_equal(submit_told(t, &h, 0, NULL), NB_OK);
    tasks_close(t);
}

TEST(destroy_tells_what_is_left) {
    tasks *t = tasks_open(1);
    static heard h;
    memset(&h, 0, sizeof h);
    for (uint32_t i = 0; i < 10; ++i) assert_int_equal(submit_told(t, &h, i, NULL), NB_OK);
    tasks_close(t);
    assert_int_equal(h.count, 10);
}

TEST(result_knows_its_frames_and_when_it_is_stale) {
    tasks *t = tasks_open(0);
    nb_fence *fence = NULL;
    assert_int_equal(nb_fence_create(NULL, &fence), NB_OK);
    for (uint32_t later = 0; later < 6; ++later) {
        static heard h;
        memset(&h, 0, sizeof h);
        nb_fence_frame first, frame;
        assert_int_equal(nb_fence_begin(fence, &first), NB_OK);
        frame = first;
        uint32_t value = 1;
        nb_task_desc desc = told(&h, &value);
        desc.fence = fence;
        desc.stale_frame_count = 3;
        assert_int_equal(nb_task_submit(t->scheduler, &desc, NULL), NB_OK);
        for (uint32_t i = 0; i < later; ++i) assert_int_equal(nb_fence_begin(fence, &frame), NB_OK);
        assert_int_equal(nb_scheduler_help(t->scheduler, 0, NULL), NB_OK);
        assert_int_equal(nb_scheduler_drain(t->scheduler, 0, NULL), NB_OK);
        assert_int_equal(h.dispatched.value, first.value);
        assert_int_equal(h.completed.value, frame.value);
        assert_int_equal(h.is_stale, later > 3);
    }
    assert_int_equal(nb_scheduler_stats_get(t->scheduler).stale_count, 2);
    tasks_close(t);
    assert_int_equal(nb_fence_destroy(fence), NB_OK);
}

// After the frame's wait all its results are there, without another word.
TEST(frame_bound_results_are_there_after_the_wait) {
    tasks *t = tasks_open(2);
    nb_fence *fence = NULL;
    assert_int_equal(nb_fence_create(NULL, &fence), NB_OK);
    static heard h;
    for (uint64_t round = test_size(200, 3000, 100000); round > 0; --round) {
        memset(&h, 0, sizeof h);
        nb_fence_frame frame;
        assert_int_equal(nb_fence_begin(fence, &frame), NB_OK);
        for (uint32_t i = 0; i < 20; ++i) {
            nb_task_desc desc = told(&h, &i);
            desc.fence = fence;
            desc.priority = NB_PRIORITY_CRITICAL;
            assert_int_equal(nb_task_submit(t->scheduler, &desc, NULL), NB_OK);
        }
        assert_int_equal(nb_scheduler_frame_wait(t->scheduler, fence, frame, NB_NEVER_NS, NULL), NB_OK);
        assert_int_equal(nb_scheduler_drain(t->scheduler, 0, NULL), NB_OK);
        assert_int_equal(h.count, 20);
        for (uint32_t i = 0; i < 20; ++i) assert_int_equal(h.values[i], 2 * i);
    }
    tasks_close(t);
    assert_int_equal(nb_fence_destroy(fence), NB_OK);
}
