// SPDX-License-Identifier: MIT
// What the tasks of the tasks cases do.

#define _GNU_SOURCE // sched_getcpu

#include "peers/tasks_pool.h"

// A Low task runs this long, so that a Critical one can be submitted meanwhile.
#define LOW_SPIN_NS 20000u
// A task that has not started by then was forgotten; the figures will show it.
#define GIVE_UP_NS 1000000000u

task_count task_counts[TASK_THREADS];
TASK_THREAD_LOCAL bool task_is_main = false;

BENCH_NOINLINE void task_range_items(float *items, size_t first, size_t end) {
    for (size_t i = first; i < end; ++i) {
        items[i] = items[i] * 0.999f + 0.5f;
        // One at a time, with any compiler.
        __asm__ volatile("" : : : "memory");
    }
}

static void spin_until(uint64_t end_ns) {
    while (bench_now_ns() < end_ns) task_pause();
}

void task_spin_run(void *spin) {
    spin_until(bench_now_ns() + ((const task_spin *)spin)->spin_ns);
    task_note(1);
}

void task_wake_run(void *wake) {
    task_wake *self = wake;
    self->start_ns = bench_now_ns();
    self->cpu = sched_getcpu();
    // Read by the acquire load in task_wake_await.
    __atomic_store_n(&self->is_started, 1, __ATOMIC_RELEASE);
}

// Waits for a counter that another thread advances; false after a second.
static bool await_count(const uint32_t *count, uint32_t least) {
    uint64_t end_ns = bench_now_ns() + GIVE_UP_NS;
    while ((int32_t)(__atomic_load_n(count, __ATOMIC_ACQUIRE) - least) < 0) {
        if (bench_now_ns() > end_ns) return false;
        task_pause();
    }
    return true;
}

void task_wake_await(task_wake *wake) { await_count(&wake->is_started, 1); }

// The counters have one writer, the worker; what the main thread reads with acquire are these releases.
static void advance(uint32_t *count) {
    __atomic_store_n(count, __atomic_load_n(count, __ATOMIC_RELAXED) + 1, __ATOMIC_RELEASE);
}

void task_race_low(void *race) {
    task_race *self = race;
    advance(&self->low_started_count);
    if (!__atomic_load_n(&self->is_over, __ATOMIC_RELAXED)) {
        spin_until(bench_now_ns() + LOW_SPIN_NS);
        self->low_end_ns = bench_now_ns();
    }
    advance(&self->low_ended_count);
}

void task_race_critical(void *race) {
    task_race *self = race;
    self->samples_ns[self->critical_count] = (double)(bench_now_ns() - self->low_end_ns);
    advance(&self->critical_count);
}

// Keeps the asked-for number of Low tasks queued.
static bool top_up(void *pool, task_race *race, task_race_submit_fn *submit) {
    uint32_t started_count = __atomic_load_n(&race->low_started_count, __ATOMIC_RELAXED);
    while (race->low_submitted_count - started_count < race->low_count) {
        if (!submit(pool, race, false)) return false;
        ++race->low_submitted_count;
    }
    return true;
}

bool task_race_run(void *pool, task_race *race, task_race_submit_fn *submit) {
    bool is_good = true;
    for (uint32_t i = 0; is_good && i < race->sample_count; ++i) {
        is_good = top_up(pool, race, submit);
        // A Low task that started after this look is running when the Critical one is submitted.
        uint32_t started_count = __atomic_load_n(&race->low_started_count, __ATOMIC_RELAXED);
        is_good = is_good && await_count(&race->low_started_count, started_count + 1) && submit(pool, race, true) &&
                  await_count(&race->critical_count, i + 1);
    }
    __atomic_store_n(&race->is_over, 1, __ATOMIC_RELAXED);
    return await_count(&race->low_ended_count, race->low_submitted_count) && is_good;
}
