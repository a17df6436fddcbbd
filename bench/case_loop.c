// SPDX-License-Identifier: MIT
// The game loop: what an empty frame costs, and how well frames keep a 60 Hz grid.

#define _GNU_SOURCE // clock_nanosleep

#include "bench.h"

#include <nebula/loop.h>

#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#define FRAMES ((size_t)1 << 19)
#define FRAME_NS 16666667u
#define PACE_HZ 60u
// Two seconds a run. The median is that of a run; p99 and p99.9 need more waits and are taken over all runs so far, the
// warm-up included: about 1,000 with 7 runs, so the p99.9 is the worst of them.
#define PACE_FRAMES 120u
#define PACE_POOL_MAX ((size_t)BENCH_ROUNDS_MAX * 2 * PACE_FRAMES)

typedef struct pace_pool {
    double off_us[PACE_POOL_MAX]; // in the order of time
    size_t count;
} pace_pool;

typedef struct loop_fixture {
    nb_loop loop;
    pace_pool nebula;
    pace_pool sleep;
    double sorted_us[PACE_POOL_MAX];
} loop_fixture;

static void *open_fixture(void) { return calloc(1, sizeof(loop_fixture)); }

// values[0]: a frame with one tick, driven by a delta. values[1]: a frame that reads the clock and has nothing to do.
static bool run_frames_nebula(void *context, const void *argument, double *values) {
    loop_fixture *fixture = context;
    nb_loop_tick tick;
    size_t tick_count = 0;
    (void)argument;
    nb_loop_init(&fixture->loop, NULL);
    uint64_t start_ns = bench_now_ns();
    for (size_t i = 0; i < FRAMES; ++i) {
        nb_loop_begin_delta(&fixture->loop, FRAME_NS);
        while (nb_loop_next_tick(&fixture->loop, &tick)) ++tick_count;
        nb_loop_end(&fixture->loop);
    }
    values[0] = (double)(bench_now_ns() - start_ns) / (double)FRAMES;
    nb_loop_init(&fixture->loop, NULL);
    start_ns = bench_now_ns();
    for (size_t i = 0; i < FRAMES; ++i) {
        nb_loop_begin(&fixture->loop);
        while (nb_loop_next_tick(&fixture->loop, &tick)) bench_keep(&tick);
        nb_loop_end(&fixture->loop);
    }
    values[1] = (double)(bench_now_ns() - start_ns) / (double)FRAMES;
    return tick_count + 1 >= FRAMES;
}

typedef struct accumulator {
    double step_s;
    double rest_s;
    double alpha;
    uint64_t tick_count;
} accumulator;

BENCH_NOINLINE static void accumulate(accumulator *self, double delta_s) {
    self->rest_s += delta_s < 0.25 ? delta_s : 0.25;
    for (; self->rest_s >= self->step_s; self->rest_s -= self->step_s) ++self->tick_count;
    self->alpha = self->rest_s / self->step_s;
}

// The usual handful of lines: a double, no counters, no rate but the one written in.
static bool run_frames_accumulator(void *context, const void *argument, double *values) {
    accumulator self = {1.0 / PACE_HZ, 0.0, 0.0, 0};
    (void)context;
    (void)argument;
    uint64_t start_ns = bench_now_ns();
    for (size_t i = 0; i < FRAMES; ++i) accumulate(&self, FRAME_NS * 1e-9);
    values[0] = (double)(bench_now_ns() - start_ns) / (double)FRAMES;
    start_ns = bench_now_ns();
    uint64_t before_ns = start_ns;
    for (size_t i = 0; i < FRAMES; ++i) {
        uint64_t now_ns = bench_now_ns();
        accumulate(&self, (double)(now_ns - before_ns) * 1e-9);
        before_ns = now_ns;
    }
    values[1] = (double)(bench_now_ns() - start_ns) / (double)FRAMES;
    return self.tick_count + 1 >= FRAMES;
}

// Distance in microseconds from the nearest point of the exact grid that starts at anchor_ns.
static double distance_us(uint64_t anchor_ns, uint64_t now_ns) {
    double periods = (double)(now_ns - anchor_ns) * 1e-9 * PACE_HZ;
    double off = periods - (double)(uint64_t)(periods + 0.5);
    return (off < 0.0 ? -off : off) / PACE_HZ * 1e6;
}

static void pool_add(pace_pool *pool, double off_us) {
    if (pool->count < PACE_POOL_MAX) pool->off_us[pool->count++] = off_us;
}

// Percentile of the newest `count` waits.
static double pool_percentile(loop_fixture *fixture, const pace_pool *pool, size_t count, double fraction) {
    memcpy(fixture->sorted_us, pool->off_us + (pool->count - count), count * sizeof *fixture->sorted_us);
    bench_sort(fixture->sorted_us, count);
    return bench_percentile(fixture->sorted_us, count, fraction);
}

static void report_pacing(loop_fixture *fixture, const pace_pool *pool, uint64_t cpu_ns, uint64_t elapsed_ns,
                          double *values) {
    values[0] = pool_percentile(fixture, pool, PACE_FRAMES, 0.5);
    values[1] = pool_percentile(fixture, pool, pool->count, 0.99);
    values[2] = pool_percentile(fixture, pool, pool->count, 0.999);
    values[3] = 100.0 * (double)cpu_ns / (double)elapsed_ns;
}

static bool run_pacing_nebula(void *context, const void *argument, double *values) {
    loop_fixture *fixture = context;
    nb_loop *loop = &fixture->loop;
    (void)argument;
    bool is_good = nb_loop_init(loop, NULL) == NB_OK;
    uint64_t anchor_ns = 0, start_ns = bench_now_ns(), start_cpu_ns = bench_cpu_time_ns();
    for (size_t i = 0; is_good && i <= PACE_FRAMES; ++i) {
        is_good = nb_loop_pace(loop) == NB_OK;
        uint64_t now_ns = bench_now_ns();
        nb_loop_begin(loop);
        // The grid is where the loop says it is at the first frame; from there on it is arithmetic.
        if (i == 0) anchor_ns = nb_loop_frame_get(loop).now_ns;
        if (i > 0) pool_add(&fixture->nebula, distance_us(anchor_ns, now_ns));
        nb_loop_tick tick;
        while (nb_loop_next_tick(loop, &tick)) bench_keep(&tick);
        nb_loop_end(loop);
    }
    if (!is_good) return false;
    report_pacing(fixture, &fixture->nebula, bench_cpu_time_ns() - start_cpu_ns, bench_now_ns() - start_ns, values);
    return true;
}

// The operating system alone, asked for each point of the same grid, with its timers as exact as it can make them.
static bool run_pacing_sleep(void *context, const void *argument, double *values) {
    loop_fixture *fixture = context;
    (void)argument;
    prctl(PR_SET_TIMERSLACK, 1UL);
    uint64_t start_ns = bench_now_ns(), start_cpu_ns = bench_cpu_time_ns();
    for (uint64_t i = 1; i <= PACE_FRAMES; ++i) {
        uint64_t due_ns = start_ns + i * 1000000000u / PACE_HZ;
        struct timespec due = {(time_t)(due_ns / 1000000000u), (long)(due_ns % 1000000000u)};
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL) != 0) continue;
        pool_add(&fixture->sleep, distance_us(start_ns, bench_now_ns()));
    }
    report_pacing(fixture, &fixture->sleep, bench_cpu_time_ns() - start_cpu_ns, bench_now_ns() - start_ns, values);
    return true;
}

static const bench_row tick_rows[] = {
    {.name = "loop.tick", .unit = "ns/frame"},
    {.name = "loop.tick_clock", .unit = "ns/frame"},
};
static const bench_contender tick_contenders[] = {
    {"nebula", BENCH_NEBULA, run_frames_nebula, NULL, NULL},
    {"accumulator", BENCH_PEER, run_frames_accumulator, NULL, NULL},
};

static const bench_row pacing_rows[] = {
    {.name = "loop.pacing", .unit = "us off the grid, p50"},
    {.name = "loop.pacing_p99", .unit = "us off the grid, p99", .is_pooled = true},
    {.name = "loop.pacing_p999", .unit = "us off the grid, p99.9", .is_pooled = true},
    {.name = "loop.pacing_cpu", .unit = "% of a core", .goals = {{.kind = BENCH_GOAL_LIMIT, .factor = 1.0}}},
};
static const bench_contender pacing_contenders[] = {
    {"nebula", BENCH_NEBULA, run_pacing_nebula, NULL, NULL},
    {"clock_nanosleep", BENCH_PEER, run_pacing_sleep, NULL, NULL},
};

static const bench_case cases[] = {
    {"loop.tick", "an empty frame with one tick; an empty frame that reads the clock", tick_rows,
     BENCH_COUNT(tick_rows), tick_contenders, BENCH_COUNT(tick_contenders), 1, open_fixture, free},
    {"loop.pacing", "frames on a 60 Hz grid, two seconds a run, and the CPU used by it", pacing_rows,
     BENCH_COUNT(pacing_rows), pacing_contenders, BENCH_COUNT(pacing_contenders), 1, open_fixture, free},
};

const bench_case *bench_loop_cases(size_t *count) {
    *count = BENCH_COUNT(cases);
    return cases;
}
