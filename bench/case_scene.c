// SPDX-License-Identifier: MIT
// Poses of a hierarchy in the world: a scene beside nodes with pointers that update their children recursively. Every
// node has moved in the tick before and is drawn between two poses; both start from the same trees, made depth first,
// as a loaded level is, which is the order in which the recursion visits them.

#include "bench.h"

#include <stdlib.h>
#include <string.h>

#if BENCH_HAVE_SCENE
#include <nebula/scene.h>

// Frames of one run: some ten to hundred milliseconds.
#define FRAME_COUNT 20
#define TICK_NS UINT64_C(16666667)

typedef struct node {
    nb_transform local, previous;
    nb_matrix34 world;
    struct node *first_child, *next;
} node;

// A tree's shape: how many children each node has, how deep it is, and how many nodes there are.
typedef struct shape {
    uint32_t child_count, depth, count;
} shape;

enum { SMALL, WIDE, DEEP, SHAPE_COUNT };
static const shape shapes[SHAPE_COUNT] = {{8, 6, 10000}, {8, 7, 100000}, {1, 64, 100000}};

// Nodes of both kinds by the same order.
typedef struct forest {
    nb_engine *engines[2]; // without workers, and with one for each further core
    nb_scene *scenes[2];
    node **nodes;
    node *roots; // linked by next
    uint32_t count;
    const shape *shape;
    uint64_t random;
} forest;

typedef struct fixture {
    forest forests[SHAPE_COUNT];
} fixture;

// --- making both ---

static nb_transform any_transform(uint64_t *random) {
    nb_transform out = nb_transform_identity();
    for (int i = 0; i < 3; ++i) out.position[i] = (float)(bench_random(random) % 1000) * 0.01f;
    for (int i = 0; i < 4; ++i) out.rotation[i] = (float)(bench_random(random) % 1000) * 0.001f + 0.001f;
    return out;
}

static bool add_node(forest *f, nb_entity *parents, node **above, uint32_t depth) {
    nb_node_desc desc = {.local = any_transform(&f->random)};
    if (depth > 0) desc.parent = parents[depth - 1];
    node *added = calloc(1, sizeof *added);
    if (!added) return false;
    f->nodes[f->count++] = added;
    added->local = added->previous = desc.local;
    node **list = depth > 0 ? &above[depth - 1]->first_child : &f->roots;
    added->next = *list;
    *list = added;
    above[depth] = added;
    for (int i = 0; i < 2; ++i) {
        nb_entity entity;
        if (nb_scene_spawn(f->scenes[i], &desc, &entity) != NB_OK) return false;
        parents[depth] = entity; // the same for both: the same spawns in the same order
    }
    return true;
}

// Depth first, until there are enough.
static bool fill(forest *f) {
    nb_entity parents[64];
    node *above[64];
    uint32_t child_at[64] = {0}, depth = 0;
    while (f->count < f->shape->count) {
        if (!add_node(f, parents, above, depth)) return false;
        child_at[depth] += 1;
        if (depth + 1 < f->shape->depth) {
            child_at[++depth] = 0;
            continue;
        }
        while (depth > 0 && child_at[depth] == f->shape->child_count) --depth;
    }
    return true;
}

// None, or one bound to each core but that of the run.
static void choose_workers(nb_scheduler_desc *desc, bool has_workers, uint64_t *masks) {
    uint32_t count = bench_cpu_count() < 2 ? 1 : (bench_cpu_count() > 64 ? 63 : bench_cpu_count() - 1);
    for (uint32_t i = 0; i < count; ++i) masks[i] = UINT64_C(1) << (i + 1);
    desc->worker_count = has_workers ? count : NB_WORKER_COUNT_NONE;
    if (has_workers && bench_cpu_count() > 1) desc->affinity = masks;
}

static bool open_forest(forest *f, const shape *s) {
    f->shape = s;
    f->random = 5;
    f->nodes = calloc(s->count, sizeof *f->nodes);
    bool is_open = f->nodes != NULL;
    for (int i = 0; is_open && i < 2; ++i) {
        nb_engine_desc engine = nb_engine_desc_default();
        nb_scene_desc scene = {.node_count_max = s->count};
        uint64_t masks[64];
        choose_workers(&engine.scheduler_desc, i == 1, masks);
        is_open = nb_engine_create(&engine, &f->engines[i]) == NB_OK &&
                  nb_scene_create(f->engines[i], &scene, &f->scenes[i]) == NB_OK;
    }
    return is_open && fill(f);
}

static void close_fixture(void *context) {
    fixture *all = context;
    for (int i = 0; i < SHAPE_COUNT; ++i) {
        forest *f = &all->forests[i];
        for (int j = 0; j < 2; ++j) {
            nb_scene_destroy(f->scenes[j]);
            if (f->engines[j]) nb_engine_destroy(f->engines[j]);
        }
        for (uint32_t j = 0; j < f->count; ++j) free(f->nodes[j]);
        free(f->nodes);
    }
    free(all);
}

static void *open_fixture(void) {
    fixture *all = calloc(1, sizeof *all);
    bool is_open = all != NULL;
    for (int i = 0; is_open && i < SHAPE_COUNT; ++i) is_open = open_forest(&all->forests[i], &shapes[i]);
    if (!is_open && all) close_fixture(all);
    return is_open ? all : NULL;
}

// --- a frame of each ---

static void move(nb_transform *local, uint32_t i) { local->position[i % 3] += 0.01f; }

static double run_scene(forest *f, int which, bool is_moving) {
    nb_store *world = nb_engine_world(f->engines[which]);
    nb_table table = nb_scene_table(f->scenes[which]);
    double sum_ns = 0;
    for (uint32_t frame = 0; frame < FRAME_COUNT; ++frame) {
        nb_transform *local = is_moving ? NB_STORE_ROWS_WRITE(world, table, NB_SCENE_LOCAL, nb_transform) : NULL;
        for (uint32_t i = 0; is_moving && i < f->count; ++i) move(&local[i], i);
        // Half a tick: every other frame has one, and all are drawn at another place.
        if (nb_engine_frame_delta(f->engines[which], TICK_NS / 2 + frame) != NB_OK) return -1;
        sum_ns += (double)nb_engine_stats_get(f->engines[which]).phase_ns[NB_PHASE_TRANSFORMS];
        bool is_right = nb_scene_stats_get(f->scenes[which]).propagated_count == (is_moving ? f->count : 0);
        if (!is_right && frame > 2) return -1;
    }
    return sum_ns / ((double)FRAME_COUNT * f->count);
}

// One node comes and one goes in each frame: the others rest, but must be put in order again.
static double run_changes(forest *f, int which) {
    nb_store *world = nb_engine_world(f->engines[which]);
    nb_table table = nb_scene_table(f->scenes[which]);
    double sum_ns = 0;
    for (uint32_t frame = 0; frame < FRAME_COUNT; ++frame) {
        nb_entity last = nb_store_entity(world, table, f->count - 1), added;
        nb_node_desc desc = {.parent = nb_store_entity(world, table, 0), .local = nb_transform_identity()};
        bool is_right = nb_store_despawn(world, last) == NB_OK &&
                        nb_scene_spawn(f->scenes[which], &desc, &added) == NB_OK &&
                        nb_engine_frame_delta(f->engines[which], TICK_NS / 2) == NB_OK;
        if (!is_right) return -1;
        sum_ns += (double)nb_engine_stats_get(f->engines[which]).phase_ns[NB_PHASE_TRANSFORMS];
    }
    return sum_ns / ((double)FRAME_COUNT * f->count);
}

static BENCH_NOINLINE void update(node *list, const nb_matrix34 *above, float alpha) {
    for (node *at = list; at != NULL; at = at->next) {
        nb_matrix34 own = nb_transform_matrix(nb_transform_mix(at->previous, at->local, alpha));
        at->world = above ? nb_matrix34_multiply(*above, own) : own;
        update(at->first_child, &at->world, alpha);
    }
}

static double run_pointers(forest *f) {
    uint64_t sum_ns = 0;
    for (uint32_t frame = 0; frame < FRAME_COUNT; ++frame) {
        for (uint32_t i = 0; i < f->count; ++i) {
            f->nodes[i]->previous = f->nodes[i]->local;
            move(&f->nodes[i]->local, i);
        }
        uint64_t start_ns = bench_now_ns();
        update(f->roots, NULL, 0.25f + (float)frame * 0.01f);
        sum_ns += bench_now_ns() - start_ns;
        bench_keep(f->nodes[f->count - 1]);
    }
    return (double)sum_ns / ((double)FRAME_COUNT * f->count);
}

static const int alone = 0, with_workers = 1;

static bool run_nebula(void *context, const void *argument, double *values) {
    fixture *all = context;
    const int *which = argument;
    bool is_right = true;
    bench_pin(0);
    for (int i = 0; i < SHAPE_COUNT; ++i) {
        values[i] = run_scene(&all->forests[i], *which, true);
        is_right &= values[i] > 0;
    }
    // After it a few frames bring all to rest.
    forest *f = &all->forests[WIDE];
    nb_engine_run_ticks(f->engines[*which], 3);
    values[SHAPE_COUNT] = run_scene(f, *which, false);
    values[SHAPE_COUNT + 1] = run_changes(f, *which);
    bench_unpin();
    return is_right && values[SHAPE_COUNT] >= 0 && values[SHAPE_COUNT + 1] > 0;
}

static bool run_peer(void *context, const void *argument, double *values) {
    fixture *all = context;
    (void)argument;
    bench_pin(0);
    for (int i = 0; i < SHAPE_COUNT; ++i) values[i] = run_pointers(&all->forests[i]);
    bench_unpin();
    values[SHAPE_COUNT] = values[SHAPE_COUNT + 1] = values[WIDE]; // it does not know what rests
    return true;
}
#define NEBULA_RUN run_nebula
#define PEER_RUN run_peer
#else
static const int alone = 0, with_workers = 1;
static void *open_fixture(void) { return malloc(1); }
static void close_fixture(void *context) { free(context); }
#define NEBULA_RUN NULL
#define PEER_RUN NULL
#endif

static const bench_row rows[] = {
    {.name = "scene.propagate_10k",
     .unit = "ns/node",
     .goals = {{.kind = BENCH_GOAL_PEER, .factor = 1.0, .peer = "pointers"}}},
    {.name = "scene.propagate_100k",
     .unit = "ns/node",
     .goals = {{.kind = BENCH_GOAL_PEER, .factor = 1.0, .peer = "pointers"}}},
    {.name = "scene.propagate_deep",
     .unit = "ns/node",
     .goals = {{.kind = BENCH_GOAL_PEER, .factor = 1.0, .peer = "pointers"}}},
    {.name = "scene.propagate_resting", .unit = "ns/node"},
    {.name = "scene.propagate_changes", .unit = "ns/node"},
};

static const bench_contender contenders[] = {
    {"nebula", BENCH_NEBULA, NEBULA_RUN, &alone, NULL},
    {"all cores", BENCH_SHOWN, NEBULA_RUN, &with_workers, NULL},
    {"pointers", BENCH_PEER, PEER_RUN, NULL, NULL},
};

static const bench_case cases[] = {
    {"scene.propagate",
     "poses of 10,000 and 100,000 nodes, 6 to 64 levels; of 100,000 that rest, or of which one comes and one goes",
     rows, BENCH_COUNT(rows), contenders, BENCH_COUNT(contenders), 1, open_fixture, close_fixture},
};

const bench_case *bench_scene_cases(size_t *count) {
    *count = BENCH_COUNT(cases);
    return cases;
}
