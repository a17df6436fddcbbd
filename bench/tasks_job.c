// SPDX-License-Identifier: MIT
// Measuring one task system: each kind of work once, on a pool made for it.

#define _GNU_SOURCE // sched_getcpu

#include "tasks_job.h"
#include "tasks_process.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FLAT_TASKS ((size_t)100000)
#define TREE_N 27u
// Fibonacci number n takes 2 F(n + 1) - 1 calls.
#define TREE_RESULT 196418u
#define TREE_CALLS 635621u
// Tasks that wake the worker, fault in its stack and fill its caches before anything is measured.
#define WARM_TREE_N 20u
#define RANGE_RUNS 9
#define RANGE_GRAIN 256u
#define BARRIER_TASKS 8u
#define BARRIER_SPIN_NS 20000u
#define BARRIER_IDLE_NS 1000000u
#define BARRIER_WARM 8
#define WAKE_IDLE_NS 5000000u
#define WAKE_WARM 3
#define PRIORITY_LOW_TASKS 1000u
#define FRAME_NS 16666667u
// How far ahead workers are told of a frame's tasks, and how long they look for them without sleeping: the lead, and as
// much again for a coordinator that is late.
#define PREWAKE_LEAD_NS 90000u
#define PREWAKE_SPIN_NS 200000u
// The settling time is longer than any peer spins after its last task (OpenMP: 8 ms).
#define IDLE_SETTLE_NS 40000000u
#define IDLE_NS 200000000u
// The end of an idle time is spent awake: the thread that submits is a coordinator at work, on a core that is warm.
#define AWAKE_NS 200000u

#define SHARE_LEAST 0.1

static void sleep_until(uint64_t due_ns) {
    struct timespec due = {(time_t)(due_ns / 1000000000u), (long)(due_ns % 1000000000u)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL) != 0) continue;
}

static void idle_until(uint64_t due_ns) {
    if (bench_now_ns() + AWAKE_NS < due_ns) sleep_until(due_ns - AWAKE_NS);
    while (bench_now_ns() < due_ns) task_pause();
}

static uint64_t thread_cpu_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

// Of all threads but the calling one. The order of the two readings keeps the difference above zero.
static double others_cpu_ns(void) {
    uint64_t own_ns = thread_cpu_ns();
    return (double)(bench_cpu_time_ns() - own_ns);
}

static void add_sample(task_outcome *outcome, double value) {
    if (outcome->sample_count < TASK_SAMPLES_MAX) outcome->samples[outcome->sample_count++] = value;
}

static void counts_clear(void) { memset(task_counts, 0, sizeof task_counts); }

// After all tasks have ended; true where they were as many as they should be.
static bool counts_take(uint64_t expected_count, task_outcome *outcome) {
    uint64_t worker_count = task_counts[1].work_count, total_count = task_counts[0].work_count + worker_count;
    outcome->worker_share = total_count ? (double)worker_count / (double)total_count : 0.0;
    outcome->inline_count = task_counts[0].inline_count;
    return total_count == expected_count;
}

static bool measure_flat(const task_pool *kind, void *pool, task_outcome *outcome) {
    bool is_good = kind->flat(pool, FLAT_TASKS);
    counts_clear();
    uint64_t start_ns = bench_now_ns();
    is_good = is_good && kind->flat(pool, FLAT_TASKS);
    add_sample(outcome, (double)(bench_now_ns() - start_ns) / (double)FLAT_TASKS);
    return counts_take(FLAT_TASKS, outcome) && is_good;
}

static bool measure_tree(const task_pool *kind, void *pool, task_outcome *outcome) {
    uint64_t result = 0;
    bool is_good = kind->tree(pool, WARM_TREE_N, &result);
    counts_clear();
    uint64_t start_ns = bench_now_ns();
    is_good = is_good && kind->tree(pool, TREE_N, &result);
    add_sample(outcome, (double)(bench_now_ns() - start_ns) / (double)TREE_CALLS);
    return counts_take(TREE_CALLS, outcome) && is_good && result == TREE_RESULT;
}

float *task_range_create(void) {
    float *items = aligned_alloc(64, TASK_RANGE_ITEMS * sizeof *items);
    for (size_t i = 0; items && i < TASK_RANGE_ITEMS; ++i) items[i] = 1.0f;
    return items;
}

// All items started alike and were treated alike as often: one that was left out or done twice differs.
static bool range_is_even(const float *items) {
    bool is_even = true;
    for (size_t i = 1; i < TASK_RANGE_ITEMS; ++i) is_even &= items[i] == items[0];
    return is_even;
}

double task_range_serial_us(float *items) {
    double samples[RANGE_RUNS];
    task_range_items(items, 0, TASK_RANGE_ITEMS);
    for (size_t i = 0; i < RANGE_RUNS; ++i) {
        uint64_t start_ns = bench_now_ns();
        task_range_items(items, 0, TASK_RANGE_ITEMS);
        samples[i] = (double)(bench_now_ns() - start_ns) * 1e-3;
    }
    return bench_stat_of(samples, RANGE_RUNS).median;
}

static bool measure_range(const task_pool *kind, void *pool, size_t grain, task_outcome *outcome) {
    float *items = task_range_create();
    if (!items) return false;
    bool is_good = kind->range(pool, items, TASK_RANGE_ITEMS, grain);
    counts_clear();
    for (size_t i = 0; is_good && i < RANGE_RUNS; ++i) {
        uint64_t start_ns = bench_now_ns();
        is_good = kind->range(pool, items, TASK_RANGE_ITEMS, grain);
        add_sample(outcome, (double)(bench_now_ns() - start_ns) * 1e-3);
    }
    is_good = is_good && range_is_even(items);
    free(items);
    return counts_take(RANGE_RUNS * TASK_RANGE_ITEMS, outcome) && is_good;
}

// Eight tasks of 20 us on two threads; microseconds beyond the 80 that they take at best.
static bool measure_batch(const task_pool *kind, void *pool, task_outcome *outcome) {
    static const double ideal_us = BARRIER_TASKS * BARRIER_SPIN_NS * 1e-3 / TASK_THREADS;
    task_spin spin = {BARRIER_SPIN_NS};
    uint64_t start_ns = bench_now_ns();
    bool is_good = kind->batch(pool, task_spin_run, &spin, BARRIER_TASKS);
    add_sample(outcome, (double)(bench_now_ns() - start_ns) * 1e-3 - ideal_us);
    return is_good;
}

static bool measure_barrier(const task_pool *kind, void *pool, task_outcome *outcome) {
    bool is_good = true;
    for (size_t i = 0; is_good && i < BARRIER_WARM + TASK_BARRIER_SAMPLES; ++i) {
        if (i == BARRIER_WARM) outcome->sample_count = 0;
        idle_until(bench_now_ns() + BARRIER_IDLE_NS);
        is_good = measure_batch(kind, pool, outcome);
    }
    return is_good;
}

// The same at 60 frames a second, announced a little ahead.
static bool measure_frames(const task_pool *kind, void *pool, task_outcome *outcome) {
    double calls_us[TASK_FRAME_SAMPLES];
    bool is_good = kind->prewake && measure_batch(kind, pool, outcome);
    counts_clear();
    outcome->sample_count = 0;
    double begin_cpu_ns = others_cpu_ns();
    uint64_t begin_ns = bench_now_ns();
    for (uint64_t i = 0; is_good && i < TASK_FRAME_SAMPLES; ++i) {
        uint64_t due_ns = begin_ns + (i + 1) * FRAME_NS;
        idle_until(due_ns - PREWAKE_LEAD_NS);
        uint64_t call_ns = bench_now_ns();
        is_good = kind->prewake(pool, PREWAKE_SPIN_NS);
        calls_us[i] = (double)(bench_now_ns() - call_ns) * 1e-3;
        while (bench_now_ns() < due_ns) task_pause();
        is_good = is_good && measure_batch(kind, pool, outcome);
    }
    // Ends with a whole frame, so that what is burnt after the last tasks counts too.
    sleep_until(bench_now_ns() + FRAME_NS);
    double elapsed_ns = (double)(bench_now_ns() - begin_ns);
    double task_ns = (double)task_counts[1].work_count * BARRIER_SPIN_NS;
    outcome->worker_cpu = (others_cpu_ns() - begin_cpu_ns - task_ns) / elapsed_ns;
    outcome->prewake_call_us = is_good ? bench_stat_of(calls_us, TASK_FRAME_SAMPLES).median : 0.0;
    return counts_take(BARRIER_TASKS * TASK_FRAME_SAMPLES, outcome) && is_good;
}

static bool measure_wake(const task_pool *kind, void *pool, task_outcome *outcome) {
    size_t same_count = 0;
    bool is_good = true;
    for (size_t i = 0; is_good && i < WAKE_WARM + TASK_WAKE_SAMPLES; ++i) {
        idle_until(bench_now_ns() + (i < WAKE_WARM ? BARRIER_IDLE_NS : WAKE_IDLE_NS));
        task_wake wake = {0, -1, 0};
        int cpu = sched_getcpu();
        uint64_t start_ns = bench_now_ns();
        is_good = kind->wake(pool, &wake);
        if (i < WAKE_WARM) continue;
        add_sample(outcome, (double)(wake.start_ns - start_ns) * 1e-3);
        same_count += wake.cpu == cpu;
    }
    outcome->same_cpu_share = (double)same_count / TASK_WAKE_SAMPLES;
    return is_good;
}

static bool measure_priority(const task_pool *kind, void *pool, task_outcome *outcome) {
    task_race race = {
        .low_count = PRIORITY_LOW_TASKS, .samples_ns = outcome->samples, .sample_count = TASK_PRIORITY_SAMPLES};
    bool is_good = kind->race(pool, &race);
    outcome->sample_count = race.critical_count;
    return is_good && race.critical_count == TASK_PRIORITY_SAMPLES;
}

static bool measure_idle(const task_pool *kind, void *pool, task_outcome *outcome) {
    bool is_good = measure_batch(kind, pool, outcome);
    sleep_until(bench_now_ns() + IDLE_SETTLE_NS);
    double begin_cpu_ns = others_cpu_ns();
    uint64_t begin_ns = bench_now_ns();
    sleep_until(begin_ns + IDLE_NS);
    // The two clocks are not read at once, so a worker that does nothing may seem to have gained time.
    double used_ns = fmax(others_cpu_ns() - begin_cpu_ns, 0.0);
    outcome->worker_cpu = used_ns / (double)(bench_now_ns() - begin_ns);
    return is_good;
}

static bool measure_on(const task_pool *kind, void *pool, task_work work, task_outcome *outcome) {
    switch (work) {
    case TASK_WORK_FLAT: return measure_flat(kind, pool, outcome);
    case TASK_WORK_TREE: return measure_tree(kind, pool, outcome);
    case TASK_WORK_RANGE: return measure_range(kind, pool, 0, outcome);
    case TASK_WORK_RANGE256: return measure_range(kind, pool, RANGE_GRAIN, outcome);
    case TASK_WORK_BARRIER: return measure_barrier(kind, pool, outcome);
    case TASK_WORK_FRAMES: return measure_frames(kind, pool, outcome);
    case TASK_WORK_WAKE: return measure_wake(kind, pool, outcome);
    case TASK_WORK_PRIORITY: return measure_priority(kind, pool, outcome);
    case TASK_WORK_IDLE: return measure_idle(kind, pool, outcome);
    case TASK_WORK_COUNT: break;
    }
    return false;
}

bool task_measure_here(const task_pool *kind, const task_job *job, task_outcome *outcome) {
    memset(outcome, 0, sizeof *outcome);
    task_is_main = true;
    // Threads inherit the cpus of the one that makes them, and peers count their cores by it.
    bench_unpin();
    task_setup setup = {job->worker_count, job->is_pinned};
    void *pool = kind->open(&setup);
    if (job->is_pinned) bench_pin(TASK_MAIN_CPU);
    bool is_good = pool && measure_on(kind, pool, job->work, outcome);
    if (pool) kind->close(pool);
    bench_pin(TASK_MAIN_CPU);
    return is_good;
}

bool task_measure(const task_contender *contender, const task_job *job, task_outcome *outcome) {
    if (contender->pool) return task_measure_here(contender->pool, job, outcome);
    return task_measure_elsewhere(contender->wait_policy, job, outcome);
}

// The submitting thread always takes part; a worker that keeps up with it may well run nearly all tasks.
bool task_is_shared(const task_outcome *outcome) { return outcome->worker_share >= SHARE_LEAST; }
