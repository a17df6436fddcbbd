// SPDX-License-Identifier: MIT
// The engine: what a frame costs in which nothing happens, and one with two hundred handlers that do nothing.

#include "bench.h"

#include <nebula/engine.h>

#include <stdio.h>

// A microsecond or so each, so that a run takes some milliseconds.
#define FRAMES 20000u

#define MODULE_COUNT 20

static nb_result do_nothing(const nb_context *context, void *user) {
    (void)context;
    (void)user;
    return NB_OK;
}

static void *open_empty(void) {
    nb_engine *engine = NULL;
    return nb_engine_create(NULL, &engine) == NB_OK ? engine : NULL;
}

static void close_engine(void *context) { nb_engine_destroy(context); }

static void *open_full(void) {
    // Ten of the phases that have handlers.
    static const nb_phase phases[] = {
        NB_PHASE_FRAME_START, NB_PHASE_INPUT,         NB_PHASE_FIXED_SIM,   NB_PHASE_GAMEPLAY, NB_PHASE_TRANSFORMS,
        NB_PHASE_SNAPSHOT,    NB_PHASE_POST_PARALLEL, NB_PHASE_FRAME_GRAPH, NB_PHASE_PRESENT,  NB_PHASE_FRAME_END};
    nb_engine *engine = open_empty();
    if (!engine) return NULL;
    for (int i = 0; i < MODULE_COUNT; ++i) {
        char name[32];
        snprintf(name, sizeof name, "module %d", i);
        nb_module_desc desc = {.name = name};
        for (size_t j = 0; j < BENCH_COUNT(phases); ++j) desc.handlers[phases[j]] = do_nothing;
        if (nb_engine_module_attach(engine, &desc, NULL) == NB_OK) continue;
        close_engine(engine);
        return NULL;
    }
    return engine;
}

static bool run_frames(void *context, const void *argument, double *values) {
    (void)argument;
    uint64_t start_ns = bench_now_ns();
    bool is_good = nb_engine_run_ticks(context, FRAMES) == NB_OK;
    values[0] = (double)(bench_now_ns() - start_ns) / FRAMES / 1000.0;
    return is_good;
}

static const bench_row empty_rows[] = {
    {.name = "engine.empty_frame", .unit = "us", .goals = {{.kind = BENCH_GOAL_LIMIT, .factor = 5.0}}},
};
static const bench_row full_rows[] = {
    {.name = "engine.frame_200", .unit = "us", .goals = {{.kind = BENCH_GOAL_LIMIT, .factor = 25.0}}},
};
static const bench_contender contenders[] = {{"nebula", BENCH_NEBULA, run_frames, NULL, NULL}};

static const bench_case cases[] = {
    {"engine.empty_frame", "a frame of one tick, all phases, no modules", empty_rows, BENCH_COUNT(empty_rows),
     contenders, BENCH_COUNT(contenders), 5, open_empty, close_engine},
    {"engine.frame_200", "the same with 20 modules of 10 handlers that do nothing", full_rows, BENCH_COUNT(full_rows),
     contenders, BENCH_COUNT(contenders), 5, open_full, close_engine},
};

const bench_case *bench_engine_cases(size_t *count) {
    *count = BENCH_COUNT(cases);
    return cases;
}
