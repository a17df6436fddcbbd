// SPDX-License-Identifier: MIT
#pragma once

// The two queues of a lane: a first-in-first-out ring for tasks submitted from outside tasks, and a deque for tasks
// that tasks submit, whose owner takes the newest and whose thieves take the oldest. One thread, the owner, puts in;
// any thread takes out. Entries are hints: the slot's own state decides whether a hint still means anything, so an
// entry found twice does no harm, but none may be lost.
//
// Neither queue ever changes its buffer. Indices are 64 bits and only compared by difference, so they may wrap.

#include "nebula/atomic.h"

// [ lap 1 | generation 41 | slot 22 ]: the lap bit is the ring's own, 0 elsewhere. At one task in 30 ns a slot comes to
// the same generation again after 18 hours.
typedef uint64_t nbi_hint;

#define NBI_HINT_NONE UINT64_MAX // all bits: no slot has this index
#define NBI_HINT_SLOT_BITS 22
#define NBI_HINT_GENERATION_MASK (((uint64_t)1 << 41) - 1)
#define NBI_HINT_LAP ((uint64_t)1 << 63)

static inline nbi_hint nbi_hint_of(uint64_t generation, uint32_t slot) {
    return generation << NBI_HINT_SLOT_BITS | slot;
}
static inline uint32_t nbi_hint_slot(nbi_hint hint) { return (uint32_t)hint & ((1u << NBI_HINT_SLOT_BITS) - 1); }
static inline uint64_t nbi_hint_generation(nbi_hint hint) { return (hint & ~NBI_HINT_LAP) >> NBI_HINT_SLOT_BITS; }

// --- ring ---

// A cell belongs to a lap of the ring, and says so with its lap bit; there is no shared tail. Fresh memory reads as a
// lap before the first.
typedef struct nbi_ring {
    nb_atomic_u64 *cells; // a power of two
    uint64_t mask;
    nb_atomic_u64 tail; // written by the owner; others read it to count
    uint64_t head_seen; // the owner's; at most head
    char pad[NB_CACHE_LINE - 32];
    nb_atomic_u64 head; // moved by whoever takes
    char pad_end[NB_CACHE_LINE - 8];
} nbi_ring;

static inline uint64_t nbi_ring_lap(const nbi_ring *ring, uint64_t index) {
    return ((index / (ring->mask + 1)) & 1) == 0 ? NBI_HINT_LAP : 0;
}

static inline void nbi_ring_init(nbi_ring *ring, nb_atomic_u64 *zeroed_cells, uint64_t capacity) {
    ring->cells = zeroed_cells;
    ring->mask = capacity - 1;
    ring->head_seen = 0;
    nbi_atomic_store_relaxed_u64(&ring->tail, 0);
    nbi_atomic_store_relaxed_u64(&ring->head, 0);
}

// The owner. False: full.
static inline bool nbi_ring_push(nbi_ring *ring, nbi_hint hint) {
    uint64_t tail = nbi_atomic_load_relaxed_u64(&ring->tail);
    if (NB_UNLIKELY(tail - ring->head_seen > ring->mask)) {
        // acquire: the thread that took the cell's last entry has read it.
        ring->head_seen = nbi_atomic_load_acquire_u64(&ring->head);
        if (tail - ring->head_seen > ring->mask) return false;
    }
    nbi_atomic_store_relaxed_u64(&ring->tail, tail + 1);
    // Publishes the slot; read by the acquire load in nbi_ring_peek. seq_cst: one half of the pair "publish, or see who
    // sleeps"; the other is in nbi_lane_sleep and nbi_wait.
    nbi_atomic_exchange_seq_cst_u64(&ring->cells[tail & ring->mask], hint | nbi_ring_lap(ring, tail));
    return true;
}

// Any thread: the entry at an index, or NBI_HINT_NONE when it has not been put in yet.
static inline nbi_hint nbi_ring_at(const nbi_ring *ring, uint64_t index) {
    uint64_t cell = nbi_atomic_load_seq_cst_u64(&ring->cells[index & ring->mask]);
    return (cell & NBI_HINT_LAP) == nbi_ring_lap(ring, index) ? cell & ~NBI_HINT_LAP : NBI_HINT_NONE;
}

// Any thread: the oldest entry, with its index for nbi_ring_take. What is seen may be gone by the time of the take, but
// NBI_HINT_NONE means that the ring was empty at some moment of the call.
static inline nbi_hint nbi_ring_peek(const nbi_ring *ring, uint64_t *index) {
    uint64_t head = nbi_atomic_load_seq_cst_u64(&ring->head);
    for (;;) {
        nbi_hint hint = nbi_ring_at(ring, head);
        uint64_t now = hint == NBI_HINT_NONE ? nbi_atomic_load_seq_cst_u64(&ring->head) : head;
        *index = head;
        if (now == head) return hint;
        head = now; // others took a whole lap meanwhile
    }
}

// Any thread: takes the entry seen at an index. False: another was faster.
static inline bool nbi_ring_take(nbi_ring *ring, uint64_t index) {
    return nbi_atomic_compare_exchange_seq_cst_u64(&ring->head, &index, index + 1);
}

// Any thread: takes all entries seen from an index on, as many as they are. False: another was faster.
static inline bool nbi_ring_take_many(nbi_ring *ring, uint64_t index, uint64_t count) {
    return nbi_atomic_compare_exchange_seq_cst_u64(&ring->head, &index, index + count);
}

// Any thread: takes the oldest entry, or NBI_HINT_NONE.
static inline nbi_hint nbi_ring_pop(nbi_ring *ring) {
    uint64_t index;
    for (;;) {
        nbi_hint hint = nbi_ring_peek(ring, &index);
        if (hint == NBI_HINT_NONE || nbi_ring_take(ring, index)) return hint;
    }
}

// --- deque ---

typedef struct nbi_deque {
    nb_atomic_u64 *cells; // a power of two
    uint64_t mask;
    char pad[NB_CACHE_LINE - 16];
    nb_atomic_u64 top; // moved by whoever takes the oldest
    char pad_top[NB_CACHE_LINE - 8];
    nb_atomic_u64 bottom; // written by the owner
    char pad_end[NB_CACHE_LINE - 8];
} nbi_deque;

// `first` is any index; tests start near the wrap.
static inline void nbi_deque_init(nbi_deque *deque, nb_atomic_u64 *cells, uint64_t capacity, uint64_t first) {
    deque->cells = cells;
    deque->mask = capacity - 1;
    nbi_atomic_store_relaxed_u64(&deque->top, first);
    nbi_atomic_store_relaxed_u64(&deque->bottom, first);
}

// The owner. False: full.
static inline bool nbi_deque_push(nbi_deque *deque, nbi_hint hint) {
    uint64_t bottom = nbi_atomic_load_relaxed_u64(&deque->bottom);
    uint64_t top = nbi_atomic_load_acquire_u64(&deque->top);
    if (NB_UNLIKELY(bottom - top > deque->mask)) return false;
    nbi_atomic_store_relaxed_u64(&deque->cells[bottom & deque->mask], hint);
    // Publishes the entry and the slot; read by the load of bottom in nbi_deque_peek. seq_cst: as in nbi_ring_push.
    nbi_atomic_exchange_seq_cst_u64(&deque->bottom, bottom + 1);
    return true;
}

// The owner: the newest entry without taking it, or NBI_HINT_NONE. A thief may take it meanwhile.
static inline nbi_hint nbi_deque_newest(const nbi_deque *deque) {
    uint64_t bottom = nbi_atomic_load_relaxed_u64(&deque->bottom);
    uint64_t top = nbi_atomic_load_relaxed_u64(&deque->top);
    if ((int64_t)(bottom - top) <= 0) return NBI_HINT_NONE;
    return nbi_atomic_load_relaxed_u64(&deque->cells[(bottom - 1) & deque->mask]);
}

// The owner: takes the newest entry, or NBI_HINT_NONE.
static inline nbi_hint nbi_deque_pop(nbi_deque *deque) {
    uint64_t bottom = nbi_atomic_load_relaxed_u64(&deque->bottom) - 1;
    // seq_cst, with the loads in nbi_deque_peek and the CAS in nbi_deque_take: a thief sees that the newest is claimed,
    // or its claim is seen here.
    nbi_atomic_exchange_seq_cst_u64(&deque->bottom, bottom);
    uint64_t top = nbi_atomic_load_seq_cst_u64(&deque->top);
    int64_t left = (int64_t)(bottom - top);
    nbi_hint hint = NBI_HINT_NONE;
    if (left > 0) return nbi_atomic_load_relaxed_u64(&deque->cells[bottom & deque->mask]);
    if (left == 0) {
        // The last one: owner and thieves decide it at the top.
        hint = nbi_atomic_load_relaxed_u64(&deque->cells[bottom & deque->mask]);
        if (!nbi_atomic_compare_exchange_seq_cst_u64(&deque->top, &top, top + 1)) hint = NBI_HINT_NONE;
    }
    nbi_atomic_store_release_u64(&deque->bottom, bottom + 1);
    return hint;
}

// Any thread: the oldest entry, with its index for nbi_deque_take.
static inline nbi_hint nbi_deque_peek(const nbi_deque *deque, uint64_t *index) {
    *index = nbi_atomic_load_seq_cst_u64(&deque->top);
    uint64_t bottom = nbi_atomic_load_seq_cst_u64(&deque->bottom);
    if ((int64_t)(bottom - *index) <= 0) return NBI_HINT_NONE;
    return nbi_atomic_load_relaxed_u64(&deque->cells[*index & deque->mask]);
}

// Any thread: takes the entry seen at an index. False: another was faster.
static inline bool nbi_deque_take(nbi_deque *deque, uint64_t index) {
    return nbi_atomic_compare_exchange_seq_cst_u64(&deque->top, &index, index + 1);
}
