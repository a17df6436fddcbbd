// SPDX-License-Identifier: MIT
// The frame graph: what it costs to plan a frame of 10, 100 and 1000 passes, each with three images that it samples and
// one that it draws. Beside it what one writes without a graph: passes in the order of the code and a barrier before
// every use, which leaves nothing out, orders nothing, shares no memory and finds no mistake.

#include "bench.h"

#include <stdio.h>
#include <stdlib.h>

#if BENCH_HAVE_GPU

#include <nebula/frame_graph.h>

#define PASSES_MAX 1000u
#define READS 3u
// How far back a pass looks for what it reads.
#define REACH 16u
#define PLANS 21

typedef struct barrier {
    uint32_t resource;
    nb_gpu_access before, after;
} barrier;

typedef struct fixture {
    nb_graph *graph;
    char pass_names[PASSES_MAX][8], image_names[PASSES_MAX][8];
    uint32_t reads[PASSES_MAX][READS]; // images, which have the numbers of who draws them
    // By hand.
    struct {
        uint32_t resource;
        nb_gpu_access access;
    } uses[PASSES_MAX * (READS + 1)];
    uint32_t use_count;
    nb_gpu_access last[PASSES_MAX];
    barrier barriers[PASSES_MAX * (READS + 1)];
} fixture;

static void close_fixture(void *context) {
    fixture *f = context;
    nb_graph_destroy(f->graph);
    free(f);
}

static void *open_fixture(void) {
    fixture *f = calloc(1, sizeof *f);
    uint64_t random = 5;
    nb_graph_desc desc = {
        .pass_count_max = PASSES_MAX, .resource_count_max = PASSES_MAX, .use_count_max = PASSES_MAX * (READS + 1)};
    if (f == NULL) return NULL;
    for (uint32_t p = 0; p < PASSES_MAX; ++p) {
        snprintf(f->pass_names[p], sizeof f->pass_names[p], "p%u", p);
        snprintf(f->image_names[p], sizeof f->image_names[p], "i%u", p);
        for (uint32_t i = 0; i < READS; ++i) {
            uint32_t back = 1 + (uint32_t)(bench_random(&random) % REACH);
            f->reads[p][i] = back <= p ? p - back : p;
        }
    }
    if (nb_graph_create(&desc, &f->graph) == NB_OK) return f;
    close_fixture(f);
    return NULL;
}

// Nanoseconds of all, and of planning alone.
typedef struct cost {
    double frame_ns, plan_ns;
} cost;

typedef bool frame_fn(fixture *f, uint32_t pass_count, cost *out);

static bool assemble(fixture *f, uint32_t pass_count) {
    nb_graph_resource images[PASSES_MAX];
    nb_graph *graph = f->graph;
    bool is_good = nb_graph_begin(graph) == NB_OK;
    for (uint32_t p = 0; p < pass_count && is_good; ++p) {
        nb_graph_pass pass = {0};
        nb_graph_image_desc image = {f->image_names[p], NB_GPU_FORMAT_RGBA8, 640, 360};
        nb_graph_pass_desc desc = {.name = f->pass_names[p], .kind = NB_GPU_PASS_RENDER};
        is_good =
            nb_graph_image_add(graph, &image, &images[p]) == NB_OK && nb_graph_pass_add(graph, &desc, &pass) == NB_OK;
        for (uint32_t i = 0; i < READS && is_good; ++i) {
            uint32_t read = f->reads[p][i];
            if (read != p) is_good = nb_graph_use(graph, pass, images[read], NB_GPU_ACCESS_SAMPLED) == NB_OK;
        }
        is_good = is_good && nb_graph_use(graph, pass, images[p], NB_GPU_ACCESS_COLOR) == NB_OK;
        // The last few are what is wanted, so that most of the others are needed.
        if (is_good && p + REACH >= pass_count) is_good = nb_graph_keep(graph, images[p]) == NB_OK;
    }
    return is_good;
}

static bool frame_nebula(fixture *f, uint32_t pass_count, cost *out) {
    uint64_t start_ns = bench_now_ns();
    if (!assemble(f, pass_count)) return false;
    uint64_t assembled_ns = bench_now_ns();
    const nb_graph_plan *plan = NULL;
    bool is_good = nb_graph_compile(f->graph, &plan) == NB_OK && plan->step_count > pass_count / 2;
    uint64_t end_ns = bench_now_ns();
    *out = (cost){(double)(end_ns - start_ns), (double)(end_ns - assembled_ns)};
    return is_good;
}

static bool frame_hand(fixture *f, uint32_t pass_count, cost *out) {
    uint64_t start_ns = bench_now_ns();
    f->use_count = 0;
    for (uint32_t p = 0; p < pass_count; ++p) {
        f->last[p] = NB_GPU_ACCESS_NONE;
        for (uint32_t i = 0; i < READS; ++i) {
            f->uses[f->use_count].resource = f->reads[p][i];
            f->uses[f->use_count].access = NB_GPU_ACCESS_SAMPLED;
            f->use_count += f->reads[p][i] != p;
        }
        f->uses[f->use_count].resource = p;
        f->uses[f->use_count++].access = NB_GPU_ACCESS_COLOR;
    }
    uint64_t assembled_ns = bench_now_ns();
    for (uint32_t i = 0; i < f->use_count; ++i) {
        uint32_t resource = f->uses[i].resource;
        f->barriers[i] = (barrier){resource, f->last[resource], f->uses[i].access};
        f->last[resource] = f->uses[i].access;
    }
    bench_keep(f->barriers);
    uint64_t end_ns = bench_now_ns();
    *out = (cost){(double)(end_ns - start_ns), (double)(end_ns - assembled_ns)};
    return true;
}

typedef struct planner {
    frame_fn *frame;
} planner;

// The middle one of many: one interruption is longer than a small plan.
static bool run(void *context, const void *argument, double *values) {
    static const uint32_t counts[] = {10, 100, 1000};
    for (int c = 0; c < 3; ++c) {
        double frames_ns[PLANS], plans_ns[PLANS];
        for (int i = 0; i < PLANS; ++i) {
            cost one;
            if (!((const planner *)argument)->frame(context, counts[c], &one)) return false;
            frames_ns[i] = one.frame_ns, plans_ns[i] = one.plan_ns;
        }
        bench_sort(frames_ns, PLANS);
        bench_sort(plans_ns, PLANS);
        values[c] = plans_ns[PLANS / 2];
        values[3 + c] = frames_ns[PLANS / 2];
    }
    return true;
}

static const planner nebula = {frame_nebula}, hand = {frame_hand};

#else
static void *open_fixture(void) { return malloc(1); }
static void close_fixture(void *context) { free(context); }
#endif

// A millisecond of planning would be a tenth of a frame at 100 Hz.
static const bench_row rows[] = {
    {.name = "graph.compile10", .unit = "ns"},
    {.name = "graph.compile100", .unit = "ns"},
    {.name = "graph.compile1000", .unit = "ns", .goals = {{.kind = BENCH_GOAL_LIMIT, .factor = 500000}}},
    {.name = "graph.frame10", .unit = "ns"},
    {.name = "graph.frame100", .unit = "ns"},
    {.name = "graph.frame1000", .unit = "ns", .goals = {{.kind = BENCH_GOAL_LIMIT, .factor = 1000000}}},
};

static const bench_contender contenders[] = {
#if BENCH_HAVE_GPU
    {"nebula", BENCH_NEBULA, run, &nebula, NULL},
    {"barrier before every use", BENCH_SHOWN, run, &hand, NULL},
#else
    {"nebula", BENCH_NEBULA, NULL, NULL, "the module gpu"},
#endif
};

static const bench_case cases[] = {
    {"graph.compile", "a frame of 10, 100 and 1000 passes is planned: compiling alone, and with its assembly", rows,
     BENCH_COUNT(rows), contenders, BENCH_COUNT(contenders), 3, open_fixture, close_fixture},
};

const bench_case *bench_graph_cases(size_t *count) {
    *count = BENCH_COUNT(cases);
    return cases;
}
