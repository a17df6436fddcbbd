// SPDX-License-Identifier: MIT
// The scheduler's two queues: every entry comes out exactly once, whoever takes, however small the queue, across the
// wrap of the indices.

#include "explore.h"

#include "tasks/queue.h"

#define ENTRY_COUNT 6
#define CAPACITY 2
#define GENERATION 5u
#define LOOK_COUNT 8 // of each thief; what they leave, the owner takes in the end

typedef struct room {
    nbi_deque deque;
    nbi_ring ring;
    nb_atomic_u64 cells[CAPACITY];
    nb_atomic_u32 taken[ENTRY_COUNT]; // how often each entry came out
    nb_atomic_u32 pushed_count;       // entries that went in
    uint64_t last[EXPLORE_THREADS_MAX];
} room;

static nbi_hint hint_of(uint32_t entry) { return nbi_hint_of(GENERATION, entry); }

static void note_taken(room *r, nbi_hint hint) {
    EXPLORE_CHECK(nbi_hint_generation(hint) == GENERATION);
    uint32_t entry = nbi_hint_slot(hint);
    EXPLORE_CHECK(entry < ENTRY_COUNT);
    EXPLORE_CHECK(nbi_atomic_fetch_add_relaxed_u32(&r->taken[entry], 1) == 0);
}

static void check_all_taken(void *user) {
    room *r = user;
    for (uint32_t i = 0; i < ENTRY_COUNT; ++i) EXPLORE_CHECK(nbi_atomic_load_relaxed_u32(&r->taken[i]) == 1);
}

// --- deque ---

// Two pushes before the indices pass 2^64.
static void deque_create(void *user) {
    room *r = user;
    nbi_deque_init(&r->deque, r->cells, CAPACITY, UINT64_MAX - 1);
}

// Pushes while there is room, and takes some of it back.
static void deque_own(room *r) {
    uint32_t entry = 0;
    while (entry < ENTRY_COUNT) {
        if (nbi_deque_push(&r->deque, hint_of(entry))) {
            ++entry;
            if (explore_random() % 2 == 0) continue;
        }
        nbi_hint newest = nbi_deque_newest(&r->deque);
        nbi_hint hint = nbi_deque_pop(&r->deque);
        // Only thieves come between the two, and they leave nothing newer behind.
        EXPLORE_CHECK(hint == NBI_HINT_NONE || hint == newest);
        if (hint != NBI_HINT_NONE) note_taken(r, hint);
    }
    nbi_hint hint;
    while ((hint = nbi_deque_pop(&r->deque)) != NBI_HINT_NONE) note_taken(r, hint);
}

static void deque_steal(room *r, uint32_t thief) {
    for (uint32_t i = 0; i < LOOK_COUNT; ++i) {
        uint64_t index;
        nbi_hint hint = nbi_deque_peek(&r->deque, &index);
        if (hint == NBI_HINT_NONE || !nbi_deque_take(&r->deque, index)) continue;
        note_taken(r, hint);
        // Thieves take the oldest: what one of them gets only becomes newer.
        EXPLORE_CHECK(r->last[thief] <= nbi_hint_slot(hint));
        r->last[thief] = nbi_hint_slot(hint);
    }
}

static void deque_thread(void *user, uint32_t index) {
    room *r = user;
    if (index == 0) deque_own(r);
    if (index != 0) deque_steal(r, index);
}

// --- ring ---

static void ring_create(void *user) {
    room *r = user;
    nbi_ring_init(&r->ring, r->cells, CAPACITY);
}

// False: it was empty.
static bool ring_take_one(room *r, uint32_t taker) {
    uint64_t index;
    uint32_t pushed_count = nbi_atomic_load_acquire_u32(&r->pushed_count);
    nbi_hint hint = nbi_ring_peek(&r->ring, &index);
    if (hint == NBI_HINT_NONE) {
        // Everything that was in before the look is out.
        EXPLORE_CHECK(nbi_atomic_load_relaxed_u64(&r->ring.head) >= pushed_count);
        return false;
    }
    if (!nbi_ring_take(&r->ring, index)) return true;
    EXPLORE_CHECK(nbi_hint_slot(hint) == index); // first in, first out
    note_taken(r, hint);
    EXPLORE_CHECK(index == 0 || r->last[taker] < index);
    r->last[taker] = index;
    return true;
}

static void ring_own(room *r) {
    for (uint32_t entry = 0; entry < ENTRY_COUNT;) {
        if (nbi_ring_push(&r->ring, hint_of(entry))) {
            ++entry;
            nbi_atomic_store_release_u32(&r->pushed_count, entry); // read in ring_take_one
        } else {
            ring_take_one(r, 0);
        }
    }
    while (ring_take_one(r, 0)) {
    }
}

static void ring_thread(void *user, uint32_t index) {
    room *r = user;
    if (index == 0) ring_own(r);
    for (uint32_t i = 0; index != 0 && i < LOOK_COUNT; ++i) ring_take_one(r, index);
}

// Takes two where two are in. What was seen is taken, or nothing.
static void ring_take_two(room *r, uint32_t taker) {
    uint64_t index;
    nbi_hint first = nbi_ring_peek(&r->ring, &index);
    if (first == NBI_HINT_NONE) return;
    nbi_hint second = nbi_ring_at(&r->ring, index + 1);
    if (second == NBI_HINT_NONE || !nbi_ring_take_many(&r->ring, index, 2)) return;
    EXPLORE_CHECK(nbi_hint_slot(first) == index && nbi_hint_slot(second) == index + 1);
    EXPLORE_CHECK(index == 0 || r->last[taker] < index);
    note_taken(r, first);
    note_taken(r, second);
    r->last[taker] = index + 1;
}

static void ring_take_many_thread(void *user, uint32_t index) {
    room *r = user;
    if (index == 0) ring_own(r);
    for (uint32_t i = 0; index != 0 && i < LOOK_COUNT; ++i) {
        if (explore_random() % 3 == 0) ring_take_one(r, index);
        ring_take_two(r, index);
    }
}

// What is found behind the head is the entry of that place, or one of an even number of laps later.
static void ring_scan_thread(void *user, uint32_t index) {
    room *r = user;
    if (index < 2) ring_thread(user, index);
    for (uint32_t i = 0; index >= 2 && i < 3; ++i) {
        uint64_t at;
        nbi_hint hint = nbi_ring_peek(&r->ring, &at);
        for (; hint != NBI_HINT_NONE; hint = nbi_ring_at(&r->ring, ++at)) {
            EXPLORE_CHECK((nbi_hint_slot(hint) - at) % (2 * CAPACITY) == 0);
        }
    }
}

EXPLORE(deque_owner_and_two_thieves, 3, deque_create, deque_thread, check_all_taken, sizeof(room))
EXPLORE(deque_owner_and_one_thief, 2, deque_create, deque_thread, check_all_taken, sizeof(room))
EXPLORE(ring_owner_and_two_takers, 3, ring_create, ring_thread, check_all_taken, sizeof(room))
EXPLORE(ring_owner_and_three_takers, 4, ring_create, ring_thread, check_all_taken, sizeof(room))
EXPLORE(ring_owner_and_takers_of_two, 3, ring_create, ring_take_many_thread, check_all_taken, sizeof(room))
EXPLORE(ring_scan_sees_its_own_lap, 3, ring_create, ring_scan_thread, check_all_taken, sizeof(room))
