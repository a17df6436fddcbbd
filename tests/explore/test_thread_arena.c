// SPDX-License-Identifier: MIT
// Thread arenas under every kind of interleaving: pins against advances, threads leaving against the sweep.

#include "explore.h"

#include "nebula/thread_arena.h"

#define WRITER_COUNT 2

typedef struct arena_post {
    nb_atomic_u64 frame; // 0 = nothing posted, or being changed
    nb_atomic_ptr block;
} arena_post;

typedef struct arena_room {
    nb_thread_arenas *arenas;
    arena_post posts[WRITER_COUNT];
} arena_room;

static void room_create(void *user) {
    nb_thread_arenas_desc desc = {.capacity_bytes = 4096,
                                  .slot_count = 2,
                                  .slot_count_max = 4,
                                  .checks = NB_ARENA_CHECKS_ON,
                                  .hooks = explore_hooks()};
    EXPLORE_CHECK(nb_thread_arenas_create(&desc, &((arena_room *)user)->arenas) == NB_OK);
}

static void room_destroy(void *user) {
    arena_room *room = user;
    nb_thread_arenas_stats stats = nb_thread_arenas_stats_get(room->arenas);
    EXPLORE_CHECK(stats.thread_count == 0 && stats.pin_count == 0);
    EXPLORE_CHECK(nb_thread_arenas_destroy(room->arenas) == NB_OK);
}

static void advance_often(arena_room *room) {
    for (int i = 0; i < 4; ++i) {
        nb_result result = nb_thread_arenas_advance(room->arenas, NULL);
        EXPLORE_CHECK(result == NB_OK || result == NB_FULL);
    }
}

// Writes the frame into a block of its own and posts it, then leaves; the context keeps the block.
static void write_and_leave(arena_room *room, uint32_t writer) {
    arena_post *post = &room->posts[writer];
    nb_thread_arena *thread = NULL;
    EXPLORE_CHECK(nb_thread_arena_attach(room->arenas, &thread) == NB_OK);
    for (int i = 0; i < 2; ++i) {
        uint64_t *block = nb_thread_arena_alloc(thread, sizeof *block, sizeof *block);
        EXPLORE_CHECK(block != NULL);
        uint64_t frame = thread->frame;
        *block = frame;
        nbi_atomic_store_release_u64(&post->frame, 0);
        nbi_atomic_store_release_ptr(&post->block, block);
        nbi_atomic_store_release_u64(&post->frame, frame);
    }
    EXPLORE_CHECK(nb_thread_arena_detach(thread) == NB_OK);
}

// Where the pin of a posted frame succeeds, the block says that frame until the unpin.
static void pin_and_read(arena_room *room) {
    for (uint32_t i = 0; i < 2 * WRITER_COUNT; ++i) {
        const arena_post *post = &room->posts[i % WRITER_COUNT];
        nb_arena_frame frame = {nbi_atomic_load_acquire_u64(&post->frame)};
        if (frame.value == 0 || nb_thread_arenas_pin(room->arenas, frame) != NB_OK) continue;
        const uint64_t *block = nbi_atomic_load_acquire_ptr(&post->block);
        bool is_posted = nbi_atomic_load_acquire_u64(&post->frame) == frame.value;
        EXPLORE_CHECK(!is_posted || *block == frame.value);
        nb_thread_arenas_frame(room->arenas); // a point at which others go on
        EXPLORE_CHECK(!is_posted || *block == frame.value);
        EXPLORE_CHECK(nb_thread_arenas_unpin(room->arenas, frame) == NB_OK);
    }
}

static void pin_against_advance(void *user, uint32_t index) {
    if (index == 0) advance_often(user);
    if (index == 1) pin_and_read(user);
    if (index >= 2) write_and_leave(user, index - 2);
}

// Two coordinators and two threads that come and go: idle records are taken, swept and freed at the same time.
static void leave_against_sweep(void *user, uint32_t index) {
    arena_room *room = user;
    if (index < 2) {
        advance_often(room);
        return;
    }
    for (int i = 0; i < 2; ++i) write_and_leave(room, index - 2);
}

EXPLORE(pinned_block_outlives_advances_and_its_thread, .thread_count = 2 + WRITER_COUNT, .setup = room_create,
        .thread = pin_against_advance, .check = room_destroy, .user_size_bytes = sizeof(arena_room))
EXPLORE(idle_memory_is_released_once, .thread_count = 2 + WRITER_COUNT, .setup = room_create,
        .thread = leave_against_sweep, .check = room_destroy, .user_size_bytes = sizeof(arena_room))
