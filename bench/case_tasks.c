// SPDX-License-Identifier: MIT
// The task scheduler's throughput: many small tasks, and ranges. Each contender is measured with its two threads pinned
// to two cpus, and again where both may run anywhere; only the first is judged, because unpinned figures depend on
// whether the worker happens to take part at all.

#include "tasks_job.h"

#include <stdlib.h>

const task_contender task_nebula = {&task_pool_nebula, NULL, 0};
const task_contender task_nebula_frame = {&task_pool_nebula_frame, NULL, 1};
const task_contender task_nebula_queued = {&task_pool_nebula_queued, NULL, 7};
const task_contender task_mutex = {&task_pool_mutex, NULL, 2};
#if BENCH_HAVE_TBB
const task_contender task_tbb = {&task_pool_tbb, NULL, 3};
const task_contender task_tbb_other = {&task_pool_tbb_other, NULL, 4};
#endif
const task_contender task_openmp = {NULL, "", 5};
const task_contender task_openmp_passive = {NULL, "passive", 6};

bool task_has_two_cpus(void) { return bench_cpu_count() >= TASK_THREADS; }

static void *open_outcome(void) { return calloc(1, sizeof(task_outcome)); }

// Values: pinned; unpinned; pinned, without asking who ran what; the worker's share. A run counts for the first two
// only where both threads did at least a tenth of the work.
static bool run_pair(task_outcome *outcome, const task_contender *contender, task_work work, double *values) {
    for (unsigned i = 2; i-- > 0;) {
        task_job job = {work, 1, i == 0};
        if (!task_measure(contender, &job, outcome)) return false;
        // Only OpenMP may run tasks where they are submitted; it is not counted where that matters.
        if (work == TASK_WORK_FLAT && contender->pool && outcome->inline_count) return false;
        values[2] = bench_stat_of(outcome->samples, outcome->sample_count).median;
        values[3] = 100.0 * outcome->worker_share;
        values[i] = task_is_shared(outcome) ? values[2] : BENCH_THROWN_AWAY;
    }
    return true;
}

static bool run_flat(void *outcome, const void *argument, double *values) {
    return run_pair(outcome, argument, TASK_WORK_FLAT, values);
}

static bool run_tree(void *outcome, const void *argument, double *values) {
    return run_pair(outcome, argument, TASK_WORK_TREE, values);
}

static bool run_range(void *outcome, const void *argument, double *values) {
    return run_pair(outcome, argument, TASK_WORK_RANGE, values);
}

static bool run_range256(void *outcome, const void *argument, double *values) {
    return run_pair(outcome, argument, TASK_WORK_RANGE256, values);
}

static bool run_serial(void *context, const void *argument, double *values) {
    float *items = task_range_create();
    (void)context;
    (void)argument;
    if (!items) return false;
    values[0] = values[1] = values[2] = task_range_serial_us(items);
    free(items);
    return true;
}

// No worker: the thread that waits does everything.
static bool run_alone(task_outcome *outcome, const task_contender *contender, task_work work, double *values) {
    task_job job = {work, 0, true};
    if (!task_measure(contender, &job, outcome)) return false;
    values[0] = outcome->samples[0];
    return outcome->inline_count == 0;
}

static bool run_flat0(void *outcome, const void *argument, double *values) {
    return run_alone(outcome, argument, TASK_WORK_FLAT, values);
}

static bool run_tree0(void *outcome, const void *argument, double *values) {
    return run_alone(outcome, argument, TASK_WORK_TREE, values);
}

static const bench_row flat_rows[] = {
    {.name = "tasks.flat",
     .unit = "ns/task",
     .goals = {{.kind = BENCH_GOAL_BEST, .factor = 0.6, .applies = task_has_two_cpus}}},
    {.name = "tasks.flat_unpinned", .unit = "ns/task"},
    {.name = "tasks.flat_all", .unit = "ns/task, whoever ran it"},
    {.name = "tasks.flat_share", .unit = "% of the work done by the worker", .is_note = true},
};
static const bench_contender flat_contenders[] = {
    {"nebula", BENCH_NEBULA, run_flat, &task_nebula, NULL},
    {"nebula_frame", BENCH_SHOWN, run_flat, &task_nebula_frame, NULL},
    TASK_TBB_PEER("onetbb", run_flat, &task_tbb),
    {"mutex_pool", BENCH_PEER, run_flat, &task_mutex, NULL},
    TASK_OPENMP_SHOWN("openmp_inline", run_flat, &task_openmp),
    TASK_OPENMP_SHOWN("openmp_passive_inline", run_flat, &task_openmp_passive),
};

static const bench_row tree_rows[] = {
    {.name = "tasks.tree",
     .unit = "ns/task",
     .goals = {{.kind = BENCH_GOAL_BEST, .factor = 0.65, .applies = task_has_two_cpus}}},
    {.name = "tasks.tree_unpinned", .unit = "ns/task"},
    {.name = "tasks.tree_all", .unit = "ns/task, whoever ran it"},
    {.name = "tasks.tree_share", .unit = "% of the work done by the worker", .is_note = true},
};
static const bench_contender tree_contenders[] = {
    {"nebula", BENCH_NEBULA, run_tree, &task_nebula, NULL},
    {"nebula_frame", BENCH_SHOWN, run_tree, &task_nebula_frame, NULL},
    // Of the others, as of oneTBB's run and run_and_wait, one of two calls is a task that is run at once.
    {"nebula_queued", BENCH_SHOWN, run_tree, &task_nebula_queued, NULL},
    TASK_TBB_PEER("onetbb", run_tree, &task_tbb),
    // One of the two calls is no task: shown, because it is what a user of oneTBB would write.
    TASK_TBB_SHOWN("onetbb_invoke", run_tree, &task_tbb_other),
    {"mutex_pool", BENCH_PEER, run_tree, &task_mutex, NULL},
    TASK_OPENMP_PEER("openmp", run_tree, &task_openmp),
    TASK_OPENMP_PEER("openmp_passive", run_tree, &task_openmp_passive),
};

static const bench_row flat0_rows[] = {
    {.name = "tasks.flat0", .unit = "ns/task", .goals = {{.kind = BENCH_GOAL_LIMIT, .factor = 30.0}}},
};
static const bench_contender flat0_contenders[] = {
    {"nebula", BENCH_NEBULA, run_flat0, &task_nebula, NULL},
    TASK_TBB_PEER("onetbb", run_flat0, &task_tbb),
    {"mutex_pool", BENCH_PEER, run_flat0, &task_mutex, NULL},
};

static const bench_row tree0_rows[] = {
    {.name = "tasks.tree0", .unit = "ns/task", .goals = {{.kind = BENCH_GOAL_LIMIT, .factor = 30.0}}},
};
static const bench_contender tree0_contenders[] = {
    {"nebula", BENCH_NEBULA, run_tree0, &task_nebula, NULL},
    {"nebula_queued", BENCH_SHOWN, run_tree0, &task_nebula_queued, NULL},
    TASK_TBB_PEER("onetbb", run_tree0, &task_tbb),
    TASK_TBB_SHOWN("onetbb_invoke", run_tree0, &task_tbb_other),
    {"mutex_pool", BENCH_PEER, run_tree0, &task_mutex, NULL},
};

// The serial loop's time over 1.9.
static const bench_row range_rows[] = {
    {.name = "tasks.range",
     .unit = "us",
     .goals = {{.kind = BENCH_GOAL_PEER, .factor = 1.0 / 1.9, .peer = "serial", .applies = task_has_two_cpus}}},
    {.name = "tasks.range_unpinned", .unit = "us"},
    {.name = "tasks.range_all", .unit = "us, whoever ran it"},
    {.name = "tasks.range_share", .unit = "% of the work done by the worker", .is_note = true},
};
static const bench_contender range_contenders[] = {
    {"nebula", BENCH_NEBULA, run_range, &task_nebula, NULL},
    {"serial", BENCH_PEER, run_serial, NULL, NULL},
    TASK_TBB_PEER("onetbb", run_range, &task_tbb),
    TASK_TBB_PEER("onetbb_static", run_range, &task_tbb_other),
    {"mutex_pool", BENCH_PEER, run_range, &task_mutex, NULL},
    TASK_OPENMP_PEER("openmp", run_range, &task_openmp),
    TASK_OPENMP_PEER("openmp_passive", run_range, &task_openmp_passive),
};

static const bench_row range256_rows[] = {
    {.name = "tasks.range256",
     .unit = "us",
     .goals = {{.kind = BENCH_GOAL_PEER, .factor = 1.0, .peer = "onetbb", .applies = task_has_two_cpus}}},
    {.name = "tasks.range256_unpinned", .unit = "us"},
    {.name = "tasks.range256_all", .unit = "us, whoever ran it"},
    {.name = "tasks.range256_share", .unit = "% of the work done by the worker", .is_note = true},
};
static const bench_contender range256_contenders[] = {
    {"nebula", BENCH_NEBULA, run_range256, &task_nebula, NULL},
    {"serial", BENCH_PEER, run_serial, NULL, NULL},
    TASK_TBB_PEER("onetbb", run_range256, &task_tbb),
    {"mutex_pool", BENCH_PEER, run_range256, &task_mutex, NULL},
    TASK_OPENMP_PEER("openmp", run_range256, &task_openmp),
    TASK_OPENMP_PEER("openmp_passive", run_range256, &task_openmp_passive),
};

static const bench_case cases[] = {
    {"tasks.flat", "100,000 empty tasks from one thread, then wait", flat_rows, BENCH_COUNT(flat_rows), flat_contenders,
     BENCH_COUNT(flat_contenders), 2, open_outcome, free},
    {"tasks.tree", "fib(27), every call a task", tree_rows, BENCH_COUNT(tree_rows), tree_contenders,
     BENCH_COUNT(tree_contenders), 1, open_outcome, free},
    {"tasks.flat0", "tasks.flat without workers", flat0_rows, BENCH_COUNT(flat0_rows), flat0_contenders,
     BENCH_COUNT(flat0_contenders), 1, open_outcome, free},
    {"tasks.tree0", "tasks.tree without workers", tree0_rows, BENCH_COUNT(tree0_rows), tree0_contenders,
     BENCH_COUNT(tree0_contenders), 1, open_outcome, free},
};

static const bench_case range_cases[] = {
    {"tasks.range", "a pass over 1,000,000 floats, pieces as the scheduler likes", range_rows, BENCH_COUNT(range_rows),
     range_contenders, BENCH_COUNT(range_contenders), 1, open_outcome, free},
    {"tasks.range256", "the same in pieces of 256", range256_rows, BENCH_COUNT(range256_rows), range256_contenders,
     BENCH_COUNT(range256_contenders), 1, open_outcome, free},
};

const bench_case *bench_task_cases(size_t *count) {
    *count = BENCH_COUNT(cases);
    return cases;
}

// None as long as the scheduler does not split ranges.
const bench_case *bench_task_range_cases(size_t *count) {
    *count = task_pool_nebula.range ? BENCH_COUNT(range_cases) : 0;
    return range_cases;
}
