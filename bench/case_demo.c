// SPDX-License-Identifier: MIT
// Chunks of the demo's planet, from nothing to all that is wanted for one eye: generated and meshed in jobs of many
// frames by the demo's own streamer, with 0 to 15 workers; and the same nodes by the same functions in a plain loop.
// Where there are workers the coordinator makes no chunks itself: it waits between frames, as for a display. Without
// any it makes them all, and frames follow each other at once.

#include "bench.h"

#include <stdlib.h>

#if BENCH_HAVE_DEMO

#include <string.h>

#include "../demo/chunks/quality.h"
#include "../demo/chunks/streamer.h"

#define SEED 1
// Some hundred chunks: a few tenths of a second by one thread.
#define QUALITY 2u
// From frame to frame: shorter than a display's, so that jobs under way, of which there are 64, do not run out.
#define FRAME_NS UINT64_C(2000000)
// Frames that a run may take, at most: minutes.
#define FRAMES_MAX 10000000u

// Beside the coordinator, of each row.
static const uint32_t worker_counts[] = {0, 1, 3, 7, 15};

typedef struct land {
    nb_engine *engine;
    planet planet;
    streamer streamer;
} land;

// What the plain loop makes; every run of nebula has to come to the same.
typedef struct fixture {
    lod_node nodes[LOD_NODES_MAX];
    uint32_t node_count;
    uint64_t quad_count;
    streamer_buffer buffer;
} fixture;

// --- nebula ---

static void close_land(land *l) {
    if (l->engine != NULL && nb_engine_destroy(l->engine) != NB_OK) return;
    streamer_end(&l->streamer);
    planet_end(&l->planet);
    free(l);
}

static land *open_land(uint32_t worker_count) {
    land *l = calloc(1, sizeof *l);
    nb_engine_desc desc = {.scheduler_desc = {.worker_count = worker_count > 0 ? worker_count : NB_WORKER_COUNT_NONE},
                           .budget = {.level_count = QUALITY_COUNT, .level_lowered = QUALITY_COUNT - 1 - QUALITY},
                           .is_headless = true};
    if (l == NULL) return NULL;
    l->planet.seed = SEED;
    bool is_open = nb_engine_create(&desc, &l->engine) == NB_OK && planet_attach(&l->planet, l->engine) == NB_OK &&
                   streamer_attach(&l->streamer, l->engine, &l->planet) == NB_OK &&
                   planet_populate(&l->planet) == NB_OK;
    if (is_open) return l;
    close_land(l);
    return NULL;
}

// No simulated time passes, so no tick comes and the eye stays where it is.
static bool settle(land *l, uint64_t frame_ns) {
    bool is_good = true;
    uint64_t due_ns = nb_clock_now_ns(NULL);
    for (uint32_t i = 0; i < FRAMES_MAX && is_good && !streamer_is_settled(&l->streamer); ++i) {
        is_good = nb_engine_frame_delta(l->engine, 0) == NB_OK;
        due_ns += frame_ns;
        if (frame_ns > 0) nb_clock_sleep_until_ns(NULL, due_ns);
    }
    return is_good && streamer_is_settled(&l->streamer);
}

static uint64_t quads_of(const streamer *s) {
    uint64_t count = 0;
    for (uint32_t slot = 0; slot < s->table.slot_count_max; ++slot) {
        if (!s->table.slots[slot].is_used) continue;
        count += s->slots[slot].draw.quad_count + s->slots[slot].draw.water_count;
    }
    return count;
}

static bool stream(const fixture *f, uint32_t worker_count, double *value) {
    land *l = open_land(worker_count);
    if (l == NULL) return false;
    uint64_t start_ns = bench_now_ns();
    bool is_good = settle(l, worker_count > 0 ? FRAME_NS : 0);
    uint64_t end_ns = bench_now_ns();
    *value = f->node_count * 1e9 / (double)(end_ns - start_ns);
    is_good &= l->streamer.ready_count == f->node_count && quads_of(&l->streamer) == f->quad_count;
    close_land(l);
    return is_good;
}

// More threads than the machine has say nothing.
static bool run_nebula(void *context, const void *argument, double *values) {
    (void)argument;
    bool is_good = true;
    bench_unpin(); // workers would be bound to the same cpu
    for (size_t i = 0; i < BENCH_COUNT(worker_counts); ++i) {
        values[i] = BENCH_THROWN_AWAY;
        if (i > 0 && worker_counts[i] >= bench_cpu_count()) continue;
        is_good &= stream(context, worker_counts[i], &values[i]);
    }
    bench_pin(0);
    return is_good;
}

// --- serial ---

static mesh_output make_chunk(streamer_buffer *to, lod_node node) {
    mesh_output out = {.quads = to->quads,
                       .quad_count_max = STREAMER_QUADS_MAX,
                       .water = to->water,
                       .water_count_max = STREAMER_WATER_MAX};
    volume_begin(&to->volume, SEED, node);
    for (int32_t z = -1; z <= NODE_CELLS; ++z) volume_columns(&to->volume, z);
    volume_fit(&to->volume);
    for (int32_t z = -1; z <= NODE_CELLS; ++z) volume_fill(&to->volume, z);
    mesh_input input = volume_mesh_input(&to->volume);
    for (int face = 0; face < MESH_FACE_COUNT; ++face) mesher_face(&input, (mesh_face)face, &out);
    return out;
}

// Each mesh goes to memory of its own, as the streamer keeps it.
static uint64_t make_all(fixture *f, mesh_quad *to) {
    uint64_t count = 0;
    for (uint32_t i = 0; i < f->node_count; ++i) {
        mesh_output made = make_chunk(&f->buffer, f->nodes[i]);
        mesh_quad *own = to + (size_t)i * STREAMER_SLOT_QUADS;
        memcpy(own, made.quads, made.quad_count * sizeof *own);
        memcpy(own + made.quad_count, made.water, made.water_count * sizeof *own);
        count += made.quad_count + made.water_count;
    }
    return count;
}

static bool run_serial(void *context, const void *argument, double *values) {
    fixture *f = context;
    (void)argument;
    mesh_quad *quads = calloc((size_t)f->node_count * STREAMER_SLOT_QUADS, sizeof *quads);
    if (quads == NULL) return false;
    uint64_t start_ns = bench_now_ns();
    f->quad_count = make_all(f, quads);
    double rate = f->node_count * 1e9 / (double)(bench_now_ns() - start_ns);
    free(quads);
    for (size_t i = 0; i < BENCH_COUNT(worker_counts); ++i) values[i] = rate;
    return true;
}

// --- both ---

static void close_fixture(void *context) { free(context); }

// The nodes that are wanted, as a streamer finds them in its first frame.
static void *open_fixture(void) {
    fixture *f = calloc(1, sizeof *f);
    double values[BENCH_COUNT(worker_counts)];
    land *l = f != NULL ? open_land(0) : NULL;
    bool is_open = l != NULL && nb_engine_frame_delta(l->engine, 0) == NB_OK;
    if (is_open) {
        const lod_choice *choice = &l->streamer.choices[l->streamer.choice];
        f->node_count = choice->node_count;
        memcpy(f->nodes, choice->nodes, sizeof f->nodes);
    }
    if (l != NULL) close_land(l);
    if (is_open && f->node_count > 0 && run_serial(f, NULL, values)) return f;
    free(f);
    return NULL;
}
#define NEBULA_RUN run_nebula
#define SERIAL_RUN run_serial
#else
static void *open_fixture(void) { return malloc(1); }
static void close_fixture(void *context) { free(context); }
#define NEBULA_RUN NULL
#define SERIAL_RUN NULL
#endif

// Frames, animals and all: what it costs to have chunks made beside a game, by one thread.
static const bench_row rows[] = {
    {.name = "demo.chunks0",
     .unit = "chunks/s",
     .is_rate = true,
     .goals = {{.kind = BENCH_GOAL_PEER, .factor = 1.25, .peer = "serial"}}},
    {.name = "demo.chunks1", .unit = "chunks/s", .is_rate = true},
    {.name = "demo.chunks3", .unit = "chunks/s", .is_rate = true},
    {.name = "demo.chunks7", .unit = "chunks/s", .is_rate = true},
    {.name = "demo.chunks15", .unit = "chunks/s", .is_rate = true},
};

static const bench_contender contenders[] = {
    {"nebula", BENCH_NEBULA, NEBULA_RUN, NULL, "the demo"},
    {"serial", BENCH_PEER, SERIAL_RUN, NULL, "the demo"},
};

static const bench_case cases[] = {
    {"demo.chunks", "chunks of the demo's planet, generated and meshed by 0 to 15 workers beside the coordinator", rows,
     BENCH_COUNT(rows), contenders, BENCH_COUNT(contenders), 1, open_fixture, close_fixture},
};

const bench_case *bench_demo_cases(size_t *count) {
    *count = BENCH_COUNT(cases);
    return cases;
}
