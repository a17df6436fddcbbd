// SPDX-License-Identifier: MIT
#pragma once

// What the tests of the scheduler share: a scheduler that is checked for leaks and exact accounting when it is closed,
// events to synchronise with, and tasks that note that, and in which order, they ran.

#include "support/support.h"

#include "nebula/tasks.h"

// How long anything may take before a test has failed, and what counts as a lost wake-up.
#define LIMIT_NS ((uint64_t)10000000000)
#define WAKE_LIMIT_NS ((uint64_t)1000000000)

#define WORKER_COUNTS_MAX 4

// --- events ---

typedef struct event {
    nb_atomic_u32 count;
} event;

static inline void event_set(event *e) {
    nbi_atomic_fetch_add_seq_cst_u32(&e->count, 1);
    nbi_unpark(&e->count, UINT32_MAX);
}

static inline uint32_t event_count(const event *e) { return nbi_atomic_load_seq_cst_u32(&e->count); }

// False: it was not set `count` times in time.
static inline bool event_await(const event *e, uint32_t count) {
    uint64_t deadline_ns = nbi_clock_now_ns() + LIMIT_NS;
    for (;;) {
        uint32_t seen = event_count(e);
        if (seen >= count) return true;
        if (nbi_clock_now_ns() >= deadline_ns) return false;
        nbi_park_until(&e->count, seen, deadline_ns);
    }
}

// Until a condition of the scheduler's numbers holds, for which there is no event; false: it does not in time.
#define AWAIT(condition)                                                                                  \
    do {                                                                                                  \
        uint64_t await_end_ns_ = nbi_clock_now_ns() + LIMIT_NS;                                           \
        while (!(condition) && nbi_clock_now_ns() < await_end_ns_) nbi_thread_yield();                    \
        if (!(condition)) fail_msg("%s: not within %u s", #condition, (unsigned)(LIMIT_NS / 1000000000)); \
    } while (0)

// --- a scheduler ---

typedef struct tasks {
    nb_scheduler *scheduler;
    test_heap heap;
    test_log log;
} tasks;

static inline tasks *tasks_open_desc(nb_scheduler_desc desc) {
    tasks *t = calloc(1, sizeof *t);
    assert_non_null(t);
    desc.hooks = test_hooks(&t->log, &t->heap);
    desc.hooks.logger.level_min = NB_LOG_WARNING;
    assert_int_equal(nb_scheduler_create(&desc, &t->scheduler), NB_OK);
    return t;
}

// 0 is none here.
static inline uint32_t worker_count_of(uint32_t count) { return count != 0 ? count : NB_WORKER_COUNT_NONE; }

static inline tasks *tasks_open_room(uint32_t worker_count, uint32_t task_count_max) {
    return tasks_open_desc(
        (nb_scheduler_desc){.worker_count = worker_count_of(worker_count), .task_count_max = task_count_max});
}

static inline tasks *tasks_open(uint32_t worker_count) {
    return tasks_open_desc((nb_scheduler_desc){
        .worker_count = worker_count_of(worker_count), .task_count_max = 4096, .group_count_max = 1024});
}

static inline nb_scheduler_stats stats_of(const tasks *t) { return nb_scheduler_stats_get(t->scheduler); }

static inline void assert_ended(const tasks *t, uint64_t run_count, uint64_t cancel_count) {
    assert_int_equal(stats_of(t).run_count, run_count);
    assert_int_equal(stats_of(t).cancel_count, cancel_count);
}

// Nothing is left of the scheduler.
static inline void tasks_destroy(tasks *t) {
    assert_int_equal(nb_scheduler_destroy(t->scheduler), NB_OK);
    assert_int_equal(t->heap.live_count.value, 0);
    assert_int_equal(t->heap.live_bytes.value, 0);
    free(t);
}

// Every task accepted has ended once.
static inline void tasks_close(tasks *t) {
    assert_int_equal(nb_scheduler_stop(t->scheduler), NB_OK);
    AWAIT(stats_of(t).alive_count == 0);
    nb_scheduler_stats stats = stats_of(t);
    assert_int_equal(stats.submit_count, stats.run_count + stats.cancel_count);
    tasks_destroy(t);
}

// A new group; the case fails where there is none left.
static inline nb_group group_begin(const tasks *t) {
    nb_group group = {0};
    assert_int_equal(nb_group_begin(t->scheduler, &group), NB_OK);
    return group;
}

static inline uint64_t parks_of(const tasks *t, uint32_t thread_index) {
    return nb_scheduler_thread_stats_get(t->scheduler, thread_index).park_count;
}

// --- tasks ---

typedef void (*task_function)(nb_task_context *context, void *argument);

static inline nb_task_desc task_with_pointer(task_function run, void *const *pointer) {
    return (nb_task_desc){.run = run, .argument = pointer, .argument_size_bytes = sizeof *pointer};
}

static inline void *pointer_of(const void *argument) {
    void *pointer;
    memcpy(&pointer, argument, sizeof pointer);
    return pointer;
}

// Submits a task that gets one pointer.
static inline nb_task submit_pointer(tasks *t, nb_task_desc desc, task_function run, void *pointer) {
    nb_task task = {0};
    desc.run = run, desc.argument = &pointer, desc.argument_size_bytes = sizeof pointer;
    assert_int_equal(nb_task_submit(t->scheduler, &desc, &task), NB_OK);
    return task;
}

static inline void submit_many(tasks *t, nb_task_desc desc, task_function run, void *pointer, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) submit_pointer(t, desc, run, pointer);
}

// The same, and waits until all have started.
static inline void submit_started(tasks *t, nb_task_desc desc, task_function run, void *pointer, const event *started,
                                  uint32_t count) {
    submit_many(t, desc, run, pointer, count);
    assert_true(event_await(started, count));
}

// Counts its runs in an event.
static inline void run_event(nb_task_context *context, void *argument) {
    (void)context;
    event_set(pointer_of(argument));
}

static inline void run_nothing(nb_task_context *context, void *argument) { (void)context, (void)argument; }

// The order in which tasks started.
#define ORDER_MAX 4096
typedef struct order {
    nb_atomic_u32 count;
    uint32_t ids[ORDER_MAX];
} order;

typedef struct order_entry {
    order *order;
    uint32_t id;
} order_entry;

static inline void run_order(nb_task_context *context, void *argument) {
    (void)context;
    order_entry entry;
    memcpy(&entry, argument, sizeof entry);
    uint32_t at = nbi_atomic_fetch_add_seq_cst_u32(&entry.order->count, 1);
    if (at < ORDER_MAX) entry.order->ids[at] = entry.id;
}

static inline nb_task submit_order(tasks *t, nb_task_desc desc, order *ran, uint32_t id) {
    order_entry entry = {ran, id};
    nb_task task = {0};
    desc.run = run_order, desc.argument = &entry, desc.argument_size_bytes = sizeof entry;
    assert_int_equal(nb_task_submit(t->scheduler, &desc, &task), NB_OK);
    return task;
}

// A task that says that it runs, then waits until it may end.
typedef struct held {
    event started, may_end, ended;
    nb_atomic_u32 timeouts; // nobody let it go
    nb_atomic_u64 task;     // the value of its handle, set before `started`
    nb_atomic_u64 thread_id;
} held;

static inline void run_held(nb_task_context *context, void *argument) {
    held *h = pointer_of(argument);
    nbi_atomic_store_relaxed_u64(&h->task, context->task.value);
    nbi_atomic_store_relaxed_u64(&h->thread_id, nbi_thread_id());
    event_set(&h->started);
    if (!event_await(&h->may_end, 1)) nbi_atomic_fetch_add_seq_cst_u32(&h->timeouts, 1);
    event_set(&h->ended);
}

// Submits one, and waits until it runs.
static inline nb_task submit_held(tasks *t, nb_task_desc desc, held *h) {
    nb_task task = submit_pointer(t, desc, run_held, h);
    assert_true(event_await(&h->started, 1));
    return task;
}

// Lets it go, and waits for it.
static inline void held_wait(tasks *t, held *h, nb_task task) {
    event_set(&h->may_end);
    assert_int_equal(nb_task_wait(t->scheduler, task, NB_NEVER_NS), NB_OK);
}

// Lets all of them go, and waits until `count` have ended.
static inline void held_end(held *h, uint32_t count) {
    event_set(&h->may_end);
    assert_true(event_await(&h->ended, count));
    assert_int_equal(h->timeouts.value, 0);
}

// Each of 0 .. count - 1 exactly once, from any thread.
#define ONCE_MAX 65536
typedef struct once {
    nb_atomic_u32 counts[ONCE_MAX];
} once;

typedef struct once_entry {
    once *once;
    uint32_t index;
} once_entry;

static inline void once_note(once *o, uint32_t index) { nbi_atomic_fetch_add_relaxed_u32(&o->counts[index], 1); }

static inline void run_once(nb_task_context *context, void *argument) {
    (void)context;
    once_entry entry;
    memcpy(&entry, argument, sizeof entry);
    once_note(entry.once, entry.index);
}

static inline bool once_is_exact(const once *o, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
        if (nbi_atomic_load_relaxed_u32(&o->counts[i]) != 1) {
            print_error("item %u: %u times\n", (unsigned)i, (unsigned)nbi_atomic_load_relaxed_u32(&o->counts[i]));
            return false;
        }
    }
    return true;
}
