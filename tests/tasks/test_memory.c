// SPDX-License-Identifier: MIT
// A scheduler whose memory, pages or threads fail to come: a clean error, nothing left behind, and the next try works.

#include "support/faults.h"
#include "support/resident.h"
#include "tasks/tasks_fixture.h"

static void assert_nothing_left(const test_heap *heap) {
    assert_int_equal(heap->live_count.value, 0);
    assert_int_equal(heap->live_bytes.value, 0);
    assert_int_equal(os.reserved_count.value, 0);
    assert_int_equal(os.reserved_bytes.value, 0);
}

static nb_scheduler_desc small_desc(test_log *log, test_heap *heap, uint32_t workers) {
    return (nb_scheduler_desc){
        .worker_count = workers, .task_count_max = 64, .group_count_max = 64, .hooks = test_hooks(log, heap)};
}

// --- creation ---

// One call after the other fails, of the heap or of the pages, until none does; `is_lasting`: with all later ones.
static uint32_t create_with_failing(bool is_heap, bool is_lasting) {
    static test_log log;
    for (uint32_t n = 1;; ++n) {
        os_reset();
        memset(&log, 0, sizeof log);
        uint64_t fail_at = is_lasting ? 0 : n, fail_from = is_lasting ? n : 0;
        test_heap heap = {0};
        if (is_heap) heap.fail_at = fail_at, heap.fail_from = fail_from;
        if (!is_heap) os.pages.fail_at = fail_at, os.pages.fail_from = fail_from;
        nb_scheduler_desc desc = small_desc(&log, &heap, 2);
        nb_scheduler *scheduler = (nb_scheduler *)(uintptr_t)0x5A5A;
        nb_result result = nb_scheduler_create(&desc, &scheduler);
        if (result == NB_OK) {
            assert_int_equal(nb_scheduler_destroy(scheduler), NB_OK);
            assert_nothing_left(&heap);
            return n - 1;
        }
        assert_int_equal(result, NB_ERR_MEMORY);
        assert_ptr_equal(scheduler, (nb_scheduler *)(uintptr_t)0x5A5A);
        if (is_heap) assert_true(test_log_count(&log, NB_ITEM_BASE_MEMORY) >= 1);
        assert_nothing_left(&heap);
    }
}

TEST(creation_survives_every_failed_allocation) {
    // The scheduler, and a lane each for the coordinator, two workers and the other threads, at the least.
    assert_in_range(create_with_failing(true, false), 5, 100);
    assert_in_range(create_with_failing(true, true), 5, 100);
}

TEST(creation_survives_every_failed_page_call) {
    assert_in_range(create_with_failing(false, false), 2, 100);
    assert_in_range(create_with_failing(false, true), 2, 100);
}

typedef struct worker_ends {
    nb_atomic_u32 starts, stops;
} worker_ends;

static void note_start(void *user, uint32_t index) {
    (void)index;
    nbi_atomic_fetch_add_seq_cst_u32(&((worker_ends *)user)->starts, 1);
}

static void note_stop(void *user, uint32_t index) {
    (void)index;
    nbi_atomic_fetch_add_seq_cst_u32(&((worker_ends *)user)->stops, 1);
}

TEST(creation_survives_every_thread_that_does_not_start) {
    for (int is_lasting = 0; is_lasting <= 1; ++is_lasting) {
        for (uint32_t n = 1; n <= 4; ++n) {
            os_reset();
            os.threads.fail_at = is_lasting ? 0 : n;
            os.threads.fail_from = is_lasting ? n : 0;
            test_heap heap = {0};
            test_log log = {0};
            worker_ends ends = {0};
            nb_scheduler_desc desc = small_desc(&log, &heap, 4);
            desc.on_start = note_start, desc.on_stop = note_stop, desc.user = &ends;
            nb_scheduler *scheduler = NULL;
            assert_int_equal(nb_scheduler_create(&desc, &scheduler), NB_ERR_OS);
            assert_null(scheduler);
            // Those that had started have ended.
            assert_int_equal(nbi_atomic_load_seq_cst_u32(&ends.starts), n - 1);
            assert_int_equal(nbi_atomic_load_seq_cst_u32(&ends.stops), n - 1);
            assert_int_equal(test_log_count(&log, NB_ITEM_TASK_OS), 1);
            assert_int_equal(os.started_count.value, n - 1);
            assert_nothing_left(&heap);
        }
    }
    os_reset();
}

// What the OS itself refuses: more stack than there is address space.
TEST(creation_survives_a_stack_that_the_os_refuses) {
    os_reset();
    test_heap heap = {0};
    test_log log = {0};
    nb_scheduler_desc desc = small_desc(&log, &heap, 2);
    desc.stack_size_bytes = SIZE_MAX / 4;
    nb_scheduler *scheduler = NULL;
    nb_result result = nb_scheduler_create(&desc, &scheduler);
    assert_true(result == NB_ERR_OS || result == NB_ERR_MEMORY || result == NB_ERR_RANGE);
    assert_null(scheduler);
    assert_nothing_left(&heap);
}

// --- attaching ---

typedef struct attaching {
    tasks *t;
    nb_result failed, second, waited;
    event runs;
} attaching;

static void attach_twice(void *user) {
    attaching *a = user;
    nb_scheduler *scheduler = a->t->scheduler;
    a->failed = nb_scheduler_attach(scheduler);
    // It can still be used as a thread that is not attached.
    event *runs = &a->runs;
    nb_task_desc desc = {.run = run_event, .argument = &runs, .argument_size_bytes = sizeof runs};
    nb_task task = {0};
    a->waited = nb_task_submit(scheduler, &desc, &task);
    event_await(runs, 1);
    a->t->heap.fail_at = a->t->heap.fail_from = os.pages.fail_at = os.pages.fail_from = 0;
    a->second = nb_scheduler_attach(scheduler);
    if (a->second == NB_OK) nb_scheduler_detach(scheduler);
}

TEST(attach_survives_failed_memory) {
    for (int kind = 0; kind < 3; ++kind) {
        os_reset();
        tasks *t = tasks_open(1);
        attaching a = {.t = t};
        if (kind == 0) t->heap.fail_from = nbi_atomic_load_seq_cst_u64(&t->heap.call_count) + 1;
        uint64_t pages = nbi_atomic_load_seq_cst_u64(&os.pages.call_count);
        if (kind == 1) os.pages.fail_from = pages + 1;
        if (kind == 2) os.pages.fail_from = pages + 2;
        test_thread_run(attach_twice, &a);
        assert_int_equal(a.failed, NB_ERR_MEMORY);
        assert_int_equal(a.waited, NB_OK);
        assert_int_equal(a.second, NB_OK);
        assert_int_equal(event_count(&a.runs), 1);
        tasks_close(t);
        assert_int_equal(os.reserved_count.value, 0);
        assert_int_equal(os.reserved_bytes.value, 0);
    }
}

typedef struct borrowing {
    tasks *t;
    nb_result task_result, group_result;
    event runs;
} borrowing;

// A thread that is not attached and for which there is no memory either waits without helping.
static void wait_without_a_lane(void *user) {
    borrowing *b = user;
    event *runs = &b->runs;
    nb_scheduler *scheduler = b->t->scheduler;
    nb_group group = {0};
    nb_group_begin(scheduler, &group);
    nb_task task = {0};
    nb_task_desc desc = {.run = run_event, .argument = &runs, .argument_size_bytes = sizeof runs, .group = group};
    for (int i = 0; i < 20; ++i) nb_task_submit(scheduler, &desc, &task);
    b->task_result = nb_task_wait(scheduler, task, nbi_clock_now_ns() + LIMIT_NS);
    b->group_result = nb_group_end(scheduler, group, nbi_clock_now_ns() + LIMIT_NS);
}

TEST(waiting_works_without_memory) {
    os_reset();
    tasks *t = tasks_open(1);
    borrowing b = {.t = t, .task_result = NB_ERR_OS, .group_result = NB_ERR_OS};
    t->heap.fail_from = 1;
    test_thread_run(wait_without_a_lane, &b);
    assert_int_equal(b.task_result, NB_OK);
    assert_int_equal(b.group_result, NB_OK);
    assert_int_equal(event_count(&b.runs), 20);
    tasks_close(t);
}

// --- after creation ---

// Whatever a scheduler does, it does without the heap.
TEST(nothing_touches_the_heap_after_creation) {
    os_reset();
    tasks *t = tasks_open(2);
    uint64_t heap_calls = nbi_atomic_load_seq_cst_u64(&t->heap.call_count);
    uint64_t page_calls = nbi_atomic_load_seq_cst_u64(&os.pages.call_count);
    event runs = {0};
    for (uint32_t round = 0; round < 20; ++round) {
        nb_group group = group_begin(t);
        for (uint32_t i = 0; i < 500; ++i) {
            nb_task task = submit_pointer(t, (nb_task_desc){.group = group, .priority = (nb_priority)(1 + i % 4)},
                                          run_event, &runs);
            if (i % 50 == 0) nb_task_promote(t->scheduler, task, NB_PRIORITY_CRITICAL);
            if (i % 70 == 0) nb_task_wait(t->scheduler, task, NB_NEVER_NS);
            if (i % 90 == 0) nb_task_cancel(t->scheduler, task);
        }
        nb_scheduler_help(t->scheduler, 1000, NULL);
        nb_result result = nb_group_end(t->scheduler, group, NB_NEVER_NS);
        assert_true(result == NB_OK || result == NB_CANCELLED);
    }
    assert_int_equal(nbi_atomic_load_seq_cst_u64(&t->heap.call_count), heap_calls);
    assert_int_equal(nbi_atomic_load_seq_cst_u64(&os.pages.call_count), page_calls);
    tasks_close(t);
}

// --- queues ---

static void run_batches(tasks *t, uint64_t count) {
    for (uint64_t i = 0; i < count; i += 8) {
        nb_group group = group_begin(t);
        nb_task_desc desc = {.run = run_nothing, .group = group};
        for (int j = 0; j < 8; ++j) assert_int_equal(nb_task_submit(t->scheduler, &desc, NULL), NB_OK);
        assert_int_equal(nb_group_end(t->scheduler, group, NB_NEVER_NS), NB_OK);
    }
}

// A queue's ring is touched once round, however few tasks there are at a time: 8 bytes for each of task_count_max, and
// here one queue of each of the two lanes is used. After that it takes no more.
TEST(queues_take_their_rings_and_no_more) {
    if (!IS_RESIDENT_SIZE_MEANINGFUL) skip();
    tasks *t = tasks_open_desc((nb_scheduler_desc){.worker_count = 1});
    run_batches(t, 4096);
    size_t begin = resident_bytes();
    run_batches(t, NB_TASK_COUNT_DEFAULT + 4096);
    size_t one_round = resident_bytes();
    run_batches(t, 2 * (uint64_t)NB_TASK_COUNT_DEFAULT);
    size_t often = resident_bytes();
    assert_true(one_round <= begin + 2 * (size_t)NB_TASK_COUNT_DEFAULT * 8 + (256u << 10));
    assert_true(often <= one_round + (size_t)NB_TASK_COUNT_DEFAULT * 8 + (256u << 10)); // the worker's, if it was late
    tasks_close(t);
}
