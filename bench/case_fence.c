// SPDX-License-Identifier: MIT
// The frame fence: what a frame costs that has one piece of work, and what a wait costs that has nothing to wait for.

#include "bench.h"
#include "peers/peers.h"

#include <nebula/fence.h>

// Some tens of nanoseconds each, so that a run takes some milliseconds.
#define CYCLES ((size_t)1 << 17)
#define WAITS ((size_t)1 << 20)

static void *open_fence(void) {
    nb_fence *fence = NULL;
    return nb_fence_create(NULL, &fence) == NB_OK ? fence : NULL;
}

static void close_fence(void *context) { nb_fence_destroy(context); }

static bool cycle(nb_fence *fence) {
    nb_fence_frame frame;
    nb_fence_ticket ticket;
    nb_fence_report report;
    if (nb_fence_begin(fence, &frame) != NB_OK) return false;
    if (nb_fence_take(fence, frame, (nb_label){0}, &ticket) != NB_OK) return false;
    if (nb_fence_return(fence, ticket) != NB_OK) return false;
    return nb_fence_wait(fence, frame, NB_FENCE_DEADLINE_DEFAULT, NULL, &report) == NB_OK;
}

static bool run_cycle_nebula(void *context, const void *argument, double *values) {
    (void)argument;
    bool is_good = true;
    uint64_t start_ns = bench_now_ns();
    for (size_t i = 0; is_good && i < CYCLES; ++i) is_good = cycle(context);
    values[0] = (double)(bench_now_ns() - start_ns) / (double)CYCLES;
    return is_good;
}

static bool run_complete_nebula(void *context, const void *argument, double *values) {
    (void)argument;
    nb_fence *fence = context;
    nb_fence_frame frame;
    bool is_good = nb_fence_begin(fence, &frame) == NB_OK;
    uint64_t start_ns = bench_now_ns();
    for (size_t i = 0; is_good && i < WAITS; ++i) {
        nb_fence_report report;
        is_good = nb_fence_wait(fence, frame, NB_FENCE_DEADLINE_DEFAULT, NULL, &report) == NB_OK;
    }
    values[0] = (double)(bench_now_ns() - start_ns) / (double)WAITS;
    return is_good;
}

typedef struct condvar_work {
    double (*run)(size_t count);
    size_t count;
} condvar_work;

static const condvar_work condvar_cycle = {peer_condvar_fence_cycle, CYCLES};
static const condvar_work condvar_complete = {peer_condvar_fence_complete, WAITS};

static bool run_condvar(void *context, const void *argument, double *values) {
    const condvar_work *work = argument;
    (void)context;
    double elapsed_ns = work->run(work->count);
    values[0] = elapsed_ns / (double)work->count;
    return elapsed_ns >= 0.0;
}

// The hand-written fence has no tickets, no time-outs and one counter for all frames: shown, not a rival.
static const bench_row cycle_rows[] = {
    {.name = "fence.cycle", .unit = "ns", .goals = {{.kind = BENCH_GOAL_LIMIT, .factor = 100.0}}},
};
static const bench_contender cycle_contenders[] = {
    {"nebula", BENCH_NEBULA, run_cycle_nebula, NULL, NULL},
    {"mutex+condvar", BENCH_SHOWN, run_condvar, &condvar_cycle, NULL},
};

static const bench_row complete_rows[] = {
    {.name = "fence.complete", .unit = "ns", .goals = {{.kind = BENCH_GOAL_LIMIT, .factor = 20.0}}},
};
static const bench_contender complete_contenders[] = {
    {"nebula", BENCH_NEBULA, run_complete_nebula, NULL, NULL},
    {"mutex+condvar", BENCH_SHOWN, run_condvar, &condvar_complete, NULL},
};

static const bench_case cases[] = {
    {"fence.cycle", "a frame with one ticket: begin, take, return, wait; one thread", cycle_rows,
     BENCH_COUNT(cycle_rows), cycle_contenders, BENCH_COUNT(cycle_contenders), 5, open_fence, close_fence},
    {"fence.complete", "a wait for a frame whose work is done", complete_rows, BENCH_COUNT(complete_rows),
     complete_contenders, BENCH_COUNT(complete_contenders), 5, open_fence, close_fence},
};

const bench_case *bench_fence_cases(size_t *count) {
    *count = BENCH_COUNT(cases);
    return cases;
}
