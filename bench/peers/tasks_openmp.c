// SPDX-License-Identifier: MIT
// OpenMP tasks. Each call is one parallel region, in which the main thread makes the tasks; the region's end waits for
// them. The runtime reads its settings when the program is loaded, so this peer runs in a process of its own.

#include "peers.h"

#include <omp.h>
#include <stdlib.h>

// The runtime runs tasks in place when more than 64 a thread are queued; 1000 Low tasks cannot wait.
#define RACE_LOW_MAX 100

typedef struct omp_pool {
    int thread_count;
} omp_pool;

static void *open_pool(const task_setup *setup) {
    omp_pool *self = calloc(1, sizeof *self);
    if (!self) return NULL;
    bool is_pinned = setup->is_pinned;
    self->thread_count = (int)setup->worker_count + 1;
    omp_set_dynamic(0);
    // Later regions of the same size use the same threads.
#pragma omp parallel num_threads(self->thread_count)
    if (is_pinned && omp_get_thread_num() != 0) bench_pin(TASK_WORKER_CPU);
    return self;
}

static void close_pool(void *pool) { free(pool); }

static bool flat(void *pool, size_t count) {
    omp_pool *self = pool;
#pragma omp parallel num_threads(self->thread_count)
#pragma omp master
    {
        task_submits(true);
        for (size_t i = 0; i < count; ++i) {
#pragma omp task
            task_note(1);
        }
        task_submits(false);
    }
    return true;
}

static uint64_t fibonacci(unsigned n) {
    task_note(1);
    if (n < 2) return n;
    uint64_t first = 0, second = 0;
#pragma omp task shared(first)
    first = fibonacci(n - 1);
#pragma omp task shared(second)
    second = fibonacci(n - 2);
#pragma omp taskwait
    return first + second;
}

static bool tree(void *pool, unsigned n, uint64_t *result) {
    omp_pool *self = pool;
#pragma omp parallel num_threads(self->thread_count)
#pragma omp master
    *result = fibonacci(n);
    return true;
}

static void range_chunk(float *items, size_t first, size_t end) {
    task_range_items(items, first, end);
    task_note(end - first);
}

static bool range(void *pool, float *items, size_t count, size_t grain) {
    omp_pool *self = pool;
    if (grain == 0) {
#pragma omp parallel num_threads(self->thread_count)
        {
            size_t index = (size_t)omp_get_thread_num(), threads = (size_t)omp_get_num_threads();
            range_chunk(items, count * index / threads, count * (index + 1) / threads);
        }
        return true;
    }
    size_t chunk_count = (count + grain - 1) / grain;
#pragma omp parallel for num_threads(self->thread_count) schedule(dynamic, 1)
    for (size_t i = 0; i < chunk_count; ++i)
        range_chunk(items, i * grain, i + 1 < chunk_count ? (i + 1) * grain : count);
    return true;
}

static bool batch(void *pool, task_fn *run, void *argument, size_t count) {
    omp_pool *self = pool;
#pragma omp parallel num_threads(self->thread_count)
#pragma omp master
    for (size_t i = 0; i < count; ++i) {
#pragma omp task
        run(argument);
    }
    return true;
}

// The second thread of a region is the worker: a task made by the first would start no sooner.
static bool wake_worker(void *pool, task_wake *wake) {
    omp_pool *self = pool;
#pragma omp parallel num_threads(self->thread_count)
    {
        if (omp_get_thread_num() == 0)
            task_wake_await(wake);
        else
            task_wake_run(wake);
    }
    return true;
}

static bool race_submit(void *pool, task_race *race, bool is_critical) {
    (void)pool;
    if (is_critical) {
#pragma omp task priority(1)
        task_race_critical(race);
    } else {
#pragma omp task priority(0)
        task_race_low(race);
    }
    return true;
}

static bool race_all(void *pool, task_race *race) {
    omp_pool *self = pool;
    bool is_good = false;
    if (race->low_count > RACE_LOW_MAX) race->low_count = RACE_LOW_MAX;
#pragma omp parallel num_threads(self->thread_count)
#pragma omp master
    is_good = task_race_run(pool, race, race_submit);
    return is_good;
}

const task_pool task_pool_openmp = {.open = open_pool,
                                    .close = close_pool,
                                    .flat = flat,
                                    .tree = tree,
                                    .range = range,
                                    .batch = batch,
                                    .wake = wake_worker,
                                    .race = race_all};
