// SPDX-License-Identifier: MIT
// The task scheduler's latency: a small barrier after some idle time, with and without announcement, the start of one
// task on a sleeping worker, the jump over a queue, and what all that costs while nothing is done.
//
// OpenMP's threads spin for milliseconds after each region unless told to be passive. A runtime that never sleeps meets
// every latency goal and burns a core, so only peers that park are counted; its default is listed beside them.

#include "tasks_job.h"

#include <stdlib.h>
#include <string.h>

// A p99 is taken over all rounds so far, the warm-up included.
typedef struct sample_pool {
    double *values;
    size_t count;
    size_t capacity;
} sample_pool;

typedef struct latency_fixture {
    task_outcome outcome;
    sample_pool pools[TASK_CONTENDER_SLOTS][2]; // pinned, unpinned
} latency_fixture;

static void *open_fixture(void) { return calloc(1, sizeof(latency_fixture)); }

static void close_fixture(void *context) {
    latency_fixture *fixture = context;
    for (size_t i = 0; i < TASK_CONTENDER_SLOTS; ++i)
        for (size_t j = 0; j < 2; ++j) free(fixture->pools[i][j].values);
    free(fixture);
}

static bool pool_add(sample_pool *pool, const double *values, size_t count) {
    if (pool->count + count > pool->capacity) {
        size_t capacity = 2 * pool->capacity + count;
        double *grown = realloc(pool->values, capacity * sizeof *grown);
        if (!grown) return false;
        pool->values = grown;
        pool->capacity = capacity;
    }
    memcpy(pool->values + pool->count, values, count * sizeof *values);
    pool->count += count;
    return true;
}

// The order of time is not needed any more, so the pool itself is sorted.
static double pool_p99(sample_pool *pool) {
    bench_sort(pool->values, pool->count);
    return bench_percentile(pool->values, pool->count, 0.99);
}

// Values: p50 of this run, p99 of all so far.
static bool run_latency(latency_fixture *fixture, const task_contender *contender, task_work work, bool is_pinned,
                        double *values) {
    task_job job = {work, 1, is_pinned};
    task_outcome *outcome = &fixture->outcome;
    sample_pool *pool = &fixture->pools[contender->slot][!is_pinned];
    if (!task_measure(contender, &job, outcome)) return false;
    if (!pool_add(pool, outcome->samples, outcome->sample_count)) return false;
    values[0] = bench_stat_of(outcome->samples, outcome->sample_count).median;
    values[1] = pool_p99(pool);
    return true;
}

static bool run_barrier(void *fixture, const void *argument, double *values) {
    return run_latency(fixture, argument, TASK_WORK_BARRIER, true, &values[0]) &&
           run_latency(fixture, argument, TASK_WORK_BARRIER, false, &values[2]);
}

static bool run_priority(void *fixture, const void *argument, double *values) {
    return run_latency(fixture, argument, TASK_WORK_PRIORITY, true, &values[0]) &&
           run_latency(fixture, argument, TASK_WORK_PRIORITY, false, &values[2]);
}

static bool run_wake(void *context, const void *argument, double *values) {
    latency_fixture *fixture = context;
    const task_contender *contender = argument;
    if (!run_latency(fixture, contender, TASK_WORK_WAKE, true, &values[0])) return false;
    if (!run_latency(fixture, contender, TASK_WORK_WAKE, false, &values[2])) return false;
    values[4] = 100.0 * fixture->outcome.same_cpu_share;
    // A wake-up on the submitter's own core is quick and stops the submitter. Nebula places its worker by itself and is
    // held, unpinned, against peers that had to be pinned.
    values[5] = contender == &task_nebula ? values[2] : values[0];
    return true;
}

static bool run_frames(void *context, const void *argument, double *values) {
    latency_fixture *fixture = context;
    for (unsigned i = 0; i < 2; ++i) {
        double *part = &values[4 * i];
        if (!run_latency(fixture, argument, TASK_WORK_FRAMES, i == 0, part)) return false;
        part[2] = 100.0 * fixture->outcome.worker_cpu;
        part[3] = fixture->outcome.prewake_call_us;
    }
    return true;
}

static bool run_idle(void *context, const void *argument, double *values) {
    latency_fixture *fixture = context;
    task_job job = {TASK_WORK_IDLE, 1, false};
    if (!task_measure(argument, &job, &fixture->outcome)) return false;
    values[0] = 100.0 * fixture->outcome.worker_cpu;
    return true;
}

// The parking peers, and the one that spins.
#define LATENCY_CONTENDERS(run)                                                                 \
    {"nebula", BENCH_NEBULA, run, &task_nebula, NULL}, TASK_TBB_PEER("onetbb", run, &task_tbb), \
        {"mutex_pool", BENCH_PEER, run, &task_mutex, NULL},                                     \
        TASK_OPENMP_PEER("openmp_passive", run, &task_openmp_passive),                          \
        TASK_OPENMP_SHOWN("openmp_spinning", run, &task_openmp)

#define NO_WORSE                                                                 \
    {                                                                            \
        { .kind = BENCH_GOAL_BEST, .factor = 1.0, .applies = task_has_two_cpus } \
    }
#define AT_MOST(limit)                                                              \
    {                                                                               \
        { .kind = BENCH_GOAL_LIMIT, .factor = limit, .applies = task_has_two_cpus } \
    }

static const bench_row barrier_rows[] = {
    {.name = "tasks.barrier8", .unit = "us over ideal, p50", .goals = NO_WORSE},
    {.name = "tasks.barrier8_p99",
     .unit = "us over ideal, p99",
     .is_pooled = true,
     .sample_count = TASK_BARRIER_SAMPLES},
    {.name = "tasks.barrier8_unpinned", .unit = "us over ideal, p50", .goals = NO_WORSE},
    {.name = "tasks.barrier8_unpinned_p99",
     .unit = "us over ideal, p99",
     .is_pooled = true,
     .sample_count = TASK_BARRIER_SAMPLES},
};
static const bench_contender barrier_contenders[] = {LATENCY_CONTENDERS(run_barrier)};

static const bench_row frame_rows[] = {
    {.name = "tasks.barrier8_prewake", .unit = "us over ideal, p50", .goals = AT_MOST(3.0)},
    {.name = "tasks.barrier8_prewake_p99",
     .unit = "us over ideal, p99",
     .is_pooled = true,
     .sample_count = TASK_FRAME_SAMPLES},
    {.name = "tasks.barrier8_prewake_cpu", .unit = "% of a core burnt between frames", .goals = AT_MOST(1.0)},
    {.name = "tasks.barrier8_prewake_call", .unit = "us in the announcing call, p50"},
    {.name = "tasks.barrier8_prewake_unpinned", .unit = "us over ideal, p50"},
    {.name = "tasks.barrier8_prewake_unpinned_p99",
     .unit = "us over ideal, p99",
     .is_pooled = true,
     .sample_count = TASK_FRAME_SAMPLES},
    {.name = "tasks.barrier8_prewake_unpinned_cpu", .unit = "% of a core burnt between frames"},
    {.name = "tasks.barrier8_prewake_unpinned_call", .unit = "us in the announcing call, p50"},
};
static const bench_contender frame_contenders[] = {{"nebula", BENCH_NEBULA, run_frames, &task_nebula, NULL}};

static const bench_row wake_rows[] = {
    {.name = "tasks.wake", .unit = "us, p50", .goals = NO_WORSE},
    {.name = "tasks.wake_p99", .unit = "us, p99", .is_pooled = true, .sample_count = TASK_WAKE_SAMPLES},
    {.name = "tasks.wake_unpinned", .unit = "us, p50"},
    {.name = "tasks.wake_unpinned_p99", .unit = "us, p99", .is_pooled = true, .sample_count = TASK_WAKE_SAMPLES},
    {.name = "tasks.wake_same_core",
     .unit = "% of unpinned starts on the submitter's core",
     .is_note = true,
     .goals = AT_MOST(0.0)},
    {.name = "tasks.wake_placed", .unit = "us, p50, Nebula unpinned and peers pinned", .goals = NO_WORSE},
};
static const bench_contender wake_contenders[] = {LATENCY_CONTENDERS(run_wake)};

// A tenth above the best figure that was measured for any scheduler, 190 ns (enkiTS).
static const bench_row priority_rows[] = {
    {.name = "tasks.priority", .unit = "ns, p50", .goals = AT_MOST(209.0)},
    {.name = "tasks.priority_p99", .unit = "ns, p99", .is_pooled = true, .sample_count = TASK_PRIORITY_SAMPLES},
    {.name = "tasks.priority_unpinned", .unit = "ns, p50"},
    {.name = "tasks.priority_unpinned_p99",
     .unit = "ns, p99",
     .is_pooled = true,
     .sample_count = TASK_PRIORITY_SAMPLES},
};
static const bench_contender priority_contenders[] = {
    {"nebula", BENCH_NEBULA, run_priority, &task_nebula, NULL},
    TASK_TBB_PEER("onetbb_arenas", run_priority, &task_tbb),
    {"mutex_pool", BENCH_PEER, run_priority, &task_mutex, NULL},
    TASK_OPENMP_SHOWN("openmp_100_queued", run_priority, &task_openmp),
};

static const bench_row idle_rows[] = {{.name = "tasks.idle_cpu", .unit = "% of a core", .goals = AT_MOST(0.01)}};
static const bench_contender idle_contenders[] = {
    {"nebula", BENCH_NEBULA, run_idle, &task_nebula, NULL},
    TASK_TBB_PEER("onetbb", run_idle, &task_tbb),
    {"mutex_pool", BENCH_PEER, run_idle, &task_mutex, NULL},
    TASK_OPENMP_PEER("openmp", run_idle, &task_openmp),
};

static const bench_case cases[] = {
    {"tasks.barrier8", "8 tasks of 20 us after 1 ms without work", barrier_rows, BENCH_COUNT(barrier_rows),
     barrier_contenders, BENCH_COUNT(barrier_contenders), 1, open_fixture, close_fixture},
    {"tasks.barrier8_prewake", "8 tasks of 20 us 60 times a second, announced 90 us ahead", frame_rows,
     BENCH_COUNT(frame_rows), frame_contenders, BENCH_COUNT(frame_contenders), 1, open_fixture, close_fixture},
    {"tasks.wake", "from the submit to the start on a worker that slept for 5 ms", wake_rows, BENCH_COUNT(wake_rows),
     wake_contenders, BENCH_COUNT(wake_contenders), 1, open_fixture, close_fixture},
    {"tasks.priority", "end of the running Low task to start of the Critical one, 1,000 Low ones queued", priority_rows,
     BENCH_COUNT(priority_rows), priority_contenders, BENCH_COUNT(priority_contenders), 1, open_fixture, close_fixture},
    {"tasks.idle_cpu", "cpu time of a worker without work", idle_rows, BENCH_COUNT(idle_rows), idle_contenders,
     BENCH_COUNT(idle_contenders), 1, open_fixture, close_fixture},
};

const bench_case *bench_task_latency_cases(size_t *count) {
    *count = BENCH_COUNT(cases);
    return cases;
}
