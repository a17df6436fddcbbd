// SPDX-License-Identifier: MIT
// How well quality is traded for time: a load that grows by half at one moment, as a computed simulation with fixed
// seeds. Nothing here is timed, so every run gives the same numbers.

#include "bench.h"

#include "nebula/budget.h"

#include <stdlib.h>
#include <string.h>

#define LEVEL_COUNT 6
#define TARGET_NS 16666667u
#define BEFORE_FRAMES 600u
#define AFTER_FRAMES 3600u
#define SEED_COUNT 32u
// It holds from the first frame on after which a second passes with no more than two slow frames.
#define HOLD_FRAMES 60u
#define HOLD_OVER_MAX 2u

// Thousandths of the target at each level, before the step: about 12 % a level, the highest at 85 % of the target.
static const uint32_t level_permille[LEVEL_COUNT] = {450, 510, 580, 660, 750, 850};

// A controller to be measured: told each frame's time, it answers with a level.
typedef struct controller {
    uint32_t level;
    nb_budget budget;     // Nebula's
    uint64_t mean_ns[30]; // the others'
    uint32_t frame;
} controller;

typedef void update_fn(controller *self, uint64_t measured_ns);

static void update_nebula(controller *self, uint64_t measured_ns) {
    nb_budget_sample sample = {.measured_ns = measured_ns};
    if (self->frame++ == 0) {
        nb_budget_desc desc = {.level_count = LEVEL_COUNT, .target_ns = TARGET_NS};
        nb_budget_init(&self->budget, &desc);
    }
    nb_budget_update(&self->budget, &sample);
    self->level = nb_budget_level(&self->budget);
}

// The usual dozen lines: the mean of half a second against two thresholds.
static void update_mean(controller *self, uint64_t measured_ns) {
    const uint32_t count = (uint32_t)BENCH_COUNT(self->mean_ns);
    self->mean_ns[self->frame++ % count] = measured_ns;
    if (self->frame % count != 0) return;
    uint64_t sum_ns = 0;
    for (uint32_t i = 0; i < count; ++i) sum_ns += self->mean_ns[i];
    if (sum_ns / count > TARGET_NS && self->level > 0)
        --self->level;
    else if (sum_ns / count < TARGET_NS * 8u / 10 && self->level + 1 < LEVEL_COUNT)
        ++self->level;
}

// Noise of 8 % to either side, and a frame of three times its length about every 120.
static uint64_t cost_ns(uint32_t level, uint32_t frame, uint64_t *random) {
    uint64_t load = frame < BEFORE_FRAMES ? 1000 : 1500, dice = bench_random(random);
    uint64_t permille = level_permille[level] * load / 1000 * (920 + dice % 161) / 1000;
    if ((dice >> 32) % 120 == 0) permille *= 3;
    return permille * TARGET_NS / 1000;
}

typedef struct outcome {
    uint64_t hold_over_count; // slow frames until it held
    uint64_t within_count;    // frames within the target, after the step
    uint64_t change_count;    // of the level, after the step
    uint64_t level_sum;       // the same frames
} outcome;

static void simulate(update_fn *update, uint64_t seed, outcome *sum) {
    controller self = {.level = LEVEL_COUNT - 1};
    uint64_t random = seed;
    uint32_t quiet_frames = 0, quiet_over_count = 0, over_count = 0;
    bool is_held = false;
    for (uint32_t frame = 0; frame < BEFORE_FRAMES + AFTER_FRAMES; ++frame) {
        uint32_t level = self.level;
        uint64_t measured_ns = cost_ns(level, frame, &random);
        update(&self, measured_ns);
        if (frame < BEFORE_FRAMES) continue;
        bool is_over = measured_ns > TARGET_NS;
        sum->within_count += !is_over;
        sum->change_count += self.level != level;
        sum->level_sum += level;
        if (is_held) continue;
        over_count += is_over;
        quiet_over_count += is_over;
        if (quiet_over_count > HOLD_OVER_MAX) quiet_frames = quiet_over_count = 0;
        is_held = ++quiet_frames >= HOLD_FRAMES;
    }
    sum->hold_over_count += over_count;
}

static update_fn *const updates[] = {update_nebula, update_mean};

static bool run_hold(void *context, const void *argument, double *values) {
    outcome sum = {0};
    (void)context;
    for (uint64_t seed = 1; seed <= SEED_COUNT; ++seed) {
        simulate(updates[*(const int *)argument], seed * 0x9E3779B97F4A7C15u, &sum);
    }
    values[0] = (double)sum.hold_over_count / SEED_COUNT;
    values[1] = 100.0 * (double)sum.within_count / ((double)SEED_COUNT * AFTER_FRAMES);
    values[2] = (double)sum.change_count / SEED_COUNT;
    values[3] = (double)sum.level_sum / ((double)SEED_COUNT * AFTER_FRAMES);
    return true;
}

static const int use_nebula = 0, use_mean = 1;

static const bench_row rows[] = {
    {.name = "budget.hold",
     .unit = "frames over target until it holds",
     .goals = {{.kind = BENCH_GOAL_LIMIT, .factor = 12}}},
    {.name = "budget.hold_within", .unit = "% of frames within target", .is_rate = true},
    {.name = "budget.hold_changes", .unit = "changes of the level"},
    {.name = "budget.hold_level", .unit = "mean level, 0 to 5", .is_note = true},
};
static const bench_contender contenders[] = {
    {"nebula", BENCH_NEBULA, run_hold, &use_nebula, NULL},
    {"mean of 30 frames", BENCH_PEER, run_hold, &use_mean, NULL},
};

static void *open_nothing(void) { return malloc(1); }

static const bench_case cases[] = {
    {"budget.hold", "a load that grows by half at once, simulated: how soon and how well the target is held", rows,
     BENCH_COUNT(rows), contenders, BENCH_COUNT(contenders), 1, open_nothing, free},
};

const bench_case *bench_budget_cases(size_t *count) {
    *count = BENCH_COUNT(cases);
    return cases;
}
