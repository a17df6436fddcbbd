// SPDX-License-Identifier: MIT
// Frame allocations: the same blocks from every allocator, touched and given back together.

#include "bench.h"
#include "peers/peers.h"

#include <nebula/arena.h>

#include <stdlib.h>

#define FRAME_BLOCKS 10000
#define SIZE_MIN 16
#define SIZE_MAX_BYTES 256
// Frames of one run: the fastest contender then takes some milliseconds, the slowest a tenth of a second.
#define FRAMES 200
#define WARM_FRAMES 5

// For the tail the frame is smaller and there are more of them: a p99.9 of fewer than 10,000 frames says little.
#define TAIL_BLOCKS 500
#define TAIL_FRAMES 10000

typedef struct arena_fixture {
    uint32_t sizes[FRAME_BLOCKS];
    void *blocks[FRAME_BLOCKS];
    double frame_ns[TAIL_FRAMES];
} arena_fixture;

// The floor: a pointer, a limit, an alignment, nothing counted.
typedef struct bump {
    unsigned char *cursor;
    unsigned char *limit;
    unsigned char *base;
} bump;

static void *bump_create(void) {
    bump *self = malloc(sizeof *self);
    unsigned char *base = aligned_alloc(64, ARENA_FRAME_BYTES);
    if (self && base) {
        *self = (bump){base, base + ARENA_FRAME_BYTES, base};
        return self;
    }
    free(self);
    free(base);
    return NULL;
}

static void bump_destroy(void *state) {
    free(((bump *)state)->base);
    free(state);
}

BENCH_ALWAYS_INLINE void *bump_alloc(bump *self, size_t size_bytes) {
    uintptr_t start = ((uintptr_t)self->cursor + ARENA_FRAME_ALIGNMENT - 1) & ~(uintptr_t)(ARENA_FRAME_ALIGNMENT - 1);
    if (start + size_bytes > (uintptr_t)self->limit) return NULL;
    self->cursor = (unsigned char *)(start + size_bytes);
    return (void *)start;
}

static bool bump_frame(void *state, arena_frame frame) {
    bump *self = state;
    for (size_t i = 0; i < frame.count; ++i) {
        size_t size_bytes = frame.sizes[i];
        void *block = bump_alloc(self, size_bytes);
        if (!block) return false;
        arena_touch(block, size_bytes);
    }
    self->cursor = self->base;
    return true;
}

static const arena_peer peer_bump = {bump_create, bump_frame, bump_destroy};

static void *nebula_create(void) {
    nb_arena *arena = malloc(sizeof *arena);
    if (arena && nb_arena_init(arena, NULL) == NB_OK) return arena;
    free(arena);
    return NULL;
}

static void nebula_destroy(void *state) {
    nb_arena_deinit(state);
    free(state);
}

static bool nebula_frame(void *state, arena_frame frame) {
    nb_arena *arena = state;
    for (size_t i = 0; i < frame.count; ++i) {
        size_t size_bytes = frame.sizes[i];
        void *block = nb_arena_alloc(arena, size_bytes, ARENA_FRAME_ALIGNMENT);
        if (!block) return false;
        arena_touch(block, size_bytes);
    }
    return nb_arena_reset(arena) == NB_OK;
}

static const arena_peer peer_nebula = {nebula_create, nebula_frame, nebula_destroy};

// malloc has no state of its own; any non-NULL pointer will do.
static void *malloc_create(void) { return malloc(1); }

static bool malloc_frame(void *state, arena_frame frame) {
    (void)state;
    for (size_t i = 0; i < frame.count; ++i) {
        size_t size_bytes = frame.sizes[i];
        void *block = malloc(size_bytes);
        if (!block) return false;
        arena_touch(block, size_bytes);
        frame.blocks[i] = block;
    }
    for (size_t i = 0; i < frame.count; ++i) free(frame.blocks[i]);
    return true;
}

static const arena_peer peer_malloc = {malloc_create, malloc_frame, free};

static void *open_fixture(void) {
    arena_fixture *fixture = calloc(1, sizeof *fixture);
    uint64_t random = 1;
    for (size_t i = 0; fixture && i < FRAME_BLOCKS; ++i)
        fixture->sizes[i] = SIZE_MIN + (uint32_t)(bench_random(&random) % (SIZE_MAX_BYTES - SIZE_MIN + 1));
    return fixture;
}

static bool run_frames(const arena_peer *peer, void *state, arena_frame frame, size_t count) {
    bool is_good = true;
    for (size_t i = 0; is_good && i < count; ++i) is_good = peer->frame(state, frame);
    return is_good;
}

static bool run_mean(void *context, const void *argument, double *values) {
    arena_fixture *fixture = context;
    const arena_peer *peer = argument;
    arena_frame frame = {fixture->sizes, FRAME_BLOCKS, fixture->blocks};
    void *state = peer->create();
    if (!state) return false;
    bool is_good = run_frames(peer, state, frame, WARM_FRAMES);
    uint64_t start_ns = bench_now_ns();
    is_good = is_good && run_frames(peer, state, frame, FRAMES);
    values[0] = (double)(bench_now_ns() - start_ns) / ((double)FRAMES * FRAME_BLOCKS);
    peer->destroy(state);
    return is_good;
}

static bool run_tail(void *context, const void *argument, double *values) {
    arena_fixture *fixture = context;
    const arena_peer *peer = argument;
    arena_frame frame = {fixture->sizes, TAIL_BLOCKS, fixture->blocks};
    void *state = peer->create();
    if (!state) return false;
    bool is_good = run_frames(peer, state, frame, WARM_FRAMES);
    double sum_ns = 0.0;
    for (size_t i = 0; is_good && i < TAIL_FRAMES; ++i) {
        uint64_t start_ns = bench_now_ns();
        is_good = peer->frame(state, frame);
        fixture->frame_ns[i] = (double)(bench_now_ns() - start_ns);
        sum_ns += fixture->frame_ns[i];
    }
    peer->destroy(state);
    bench_sort(fixture->frame_ns, TAIL_FRAMES);
    values[0] = sum_ns / TAIL_FRAMES * 1e-3;
    values[1] = bench_percentile(fixture->frame_ns, TAIL_FRAMES, 0.99) * 1e-3;
    values[2] = bench_percentile(fixture->frame_ns, TAIL_FRAMES, 0.999) * 1e-3;
    return is_good;
}

static const bench_row frame_rows[] = {
    {.name = "arena.frame",
     .unit = "ns/alloc",
     .goals = {{.kind = BENCH_GOAL_PEER, .factor = 1.15, .peer = "bump"},
               {.kind = BENCH_GOAL_PEER, .factor = 0.2, .peer = "mimalloc"}}},
};

static const bench_contender frame_contenders[] = {
    {"nebula", BENCH_NEBULA, run_mean, &peer_nebula, NULL},
    {"bump", BENCH_PEER, run_mean, &peer_bump, NULL},
    BENCH_CONTENDER_IF(BENCH_HAVE_CXX, "pmr::monotonic", BENCH_PEER, run_mean, &peer_pmr_monotonic, "g++"),
    BENCH_CONTENDER_IF(BENCH_HAVE_OBSTACK, "obstack", BENCH_PEER, run_mean, &peer_obstack, "libc6-dev"),
    BENCH_CONTENDER_IF(BENCH_HAVE_MIMALLOC, "mimalloc", BENCH_PEER, run_mean, &peer_mimalloc, "libmimalloc-dev"),
    BENCH_CONTENDER_IF(BENCH_HAVE_MIMALLOC, "mimalloc_heap", BENCH_PEER, run_mean, &peer_mimalloc_heap,
                       "libmimalloc-dev"),
    {"malloc", BENCH_PEER, run_mean, &peer_malloc, NULL},
};

static const bench_row tail_rows[] = {
    {.name = "arena.frame_mean",
     .unit = "us/frame",
     .goals = {{.kind = BENCH_GOAL_PEER, .factor = 1.0, .peer = "malloc"}}},
    {.name = "arena.frame_p99",
     .unit = "us/frame",
     .goals = {{.kind = BENCH_GOAL_PEER, .factor = 1.0, .peer = "malloc"}}},
    {.name = "arena.frame_p999",
     .unit = "us/frame",
     .goals = {{.kind = BENCH_GOAL_PEER, .factor = 1.0, .peer = "malloc"}}},
};

static const bench_contender tail_contenders[] = {
    {"nebula", BENCH_NEBULA, run_tail, &peer_nebula, NULL},
    {"malloc", BENCH_PEER, run_tail, &peer_malloc, NULL},
    BENCH_CONTENDER_IF(BENCH_HAVE_MIMALLOC, "mimalloc", BENCH_PEER, run_tail, &peer_mimalloc, "libmimalloc-dev"),
};

static const bench_case cases[] = {
    {"arena.frame", "10,000 blocks of 16 to 256 bytes, first and last byte written, all freed", frame_rows,
     BENCH_COUNT(frame_rows), frame_contenders, BENCH_COUNT(frame_contenders), 3, open_fixture, free},
    {"arena.frame_tail", "500 such blocks a frame, 10,000 frames: mean, p99 and p99.9 of a frame", tail_rows,
     BENCH_COUNT(tail_rows), tail_contenders, BENCH_COUNT(tail_contenders), 1, open_fixture, free},
};

const bench_case *bench_arena_cases(size_t *count) {
    *count = BENCH_COUNT(cases);
    return cases;
}
