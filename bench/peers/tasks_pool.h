// SPDX-License-Identifier: MIT
#pragma once

// What a task system has to do in the tasks cases, and the bodies its tasks have: the same ones for everybody. A pool
// has two threads: the calling one, which also works while it waits, and one worker. Who ran what is counted outside of
// the pools, in a line per thread, because 100,000 empty tasks are fastest where the second thread takes no part.

#include "../bench.h"

#include <sched.h>

#define TASK_MAIN_CPU 0
#define TASK_WORKER_CPU 1
#define TASK_THREADS 2
// What two threads write must not share a line; two lines, because CPUs fetch neighbours too.
#define TASK_APART 128

#if defined(__cplusplus)
#define TASK_ALIGNED alignas(TASK_APART)
#define TASK_THREAD_LOCAL __thread // thread_local would call a function at each use
extern "C" {
#else
#define TASK_ALIGNED _Alignas(TASK_APART)
#define TASK_THREAD_LOCAL _Thread_local
#endif

typedef struct task_count {
    TASK_ALIGNED uint64_t work_count; // tasks, or items of a range
    uint64_t inline_count;            // of them, run inside a submit
    uint64_t is_submitting;
} task_count;

// Of the main thread and of the worker. Program-wide, since an empty task has no argument to find them by.
extern task_count task_counts[TASK_THREADS];
// Set in the main thread alone, so that no pool has to tell its worker.
extern TASK_THREAD_LOCAL bool task_is_main;

BENCH_ALWAYS_INLINE void task_note(uint64_t work_count) {
    task_count *count = &task_counts[!task_is_main];
    count->work_count += work_count;
    count->inline_count += count->is_submitting;
}

// Around the submits of tasks.flat: a task that runs in between was not queued.
BENCH_ALWAYS_INLINE void task_submits(bool is_submitting) { task_counts[!task_is_main].is_submitting = is_submitting; }

BENCH_ALWAYS_INLINE void task_pause(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

// One items' worth of a range: cheap, neither merged with its neighbours nor turned into vector code at -O2, so that
// 10^6 of them take a few hundred microseconds and two cores are twice as fast. Out of line: one loop for everybody.
void task_range_items(float *items, size_t first, size_t end);

// A task that takes a given time, as seen by the clock.
typedef struct task_spin {
    uint64_t spin_ns;
} task_spin;

void task_spin_run(void *spin);

// A task that says when and where it started; the thread that submitted it is busy until then.
typedef struct task_wake {
    uint64_t start_ns;
    int cpu;
    TASK_ALIGNED uint32_t is_started;
} task_wake;

void task_wake_run(void *wake);
// Returns when the task has started, without doing anything else meanwhile.
void task_wake_await(task_wake *wake);

// tasks.priority: one thread keeps low_count Low tasks queued and submits a Critical one while a Low one runs.
typedef struct task_race {
    size_t low_count;
    double *samples_ns; // end of the Low task to start of the Critical one
    size_t sample_count;
    uint32_t low_submitted_count;
    TASK_ALIGNED uint64_t low_end_ns; // by the worker, who runs both
    uint32_t low_started_count;
    uint32_t low_ended_count; // the last thing a Low task touches
    uint32_t critical_count;
    TASK_ALIGNED uint32_t is_over; // what is left does nothing
} task_race;

void task_race_low(void *race);
void task_race_critical(void *race);
typedef bool task_race_submit_fn(void *pool, task_race *race, bool is_critical);
// Returns when every task has run, those that were left over without doing anything.
bool task_race_run(void *pool, task_race *race, task_race_submit_fn *submit);

typedef void task_fn(void *argument);

typedef struct task_setup {
    unsigned worker_count; // 1 or 0
    bool is_pinned;        // worker to TASK_WORKER_CPU; the main thread is pinned by the caller
} task_setup;

// A task system. open is called by a thread that may run anywhere, and so may its new threads unless is_pinned. What is
// NULL is not offered. False: refused or wrong.
typedef struct task_pool {
    void *(*open)(const task_setup *setup);
    void (*close)(void *pool);
    // `count` tasks that call task_note(1), then wait.
    bool (*flat)(void *pool, size_t count);
    // Fibonacci, every call a task that calls task_note(1).
    bool (*tree)(void *pool, unsigned n, uint64_t *result);
    // task_range_items and task_note over all items; grain 0: the pool chooses.
    bool (*range)(void *pool, float *items, size_t count, size_t grain);
    // `count` tasks that call run(argument), then wait.
    bool (*batch)(void *pool, task_fn *run, void *argument, size_t count);
    // One task_wake_run, started on the worker.
    bool (*wake)(void *pool, task_wake *wake);
    bool (*race)(void *pool, task_race *race);
    bool (*prewake)(void *pool, uint64_t spin_ns);
} task_pool;

extern const task_pool task_pool_mutex;
extern const task_pool task_pool_tbb;
extern const task_pool task_pool_tbb_other; // parallel_invoke for trees, the static partitioner for ranges
extern const task_pool task_pool_openmp;

#if defined(__cplusplus)
}
#endif
