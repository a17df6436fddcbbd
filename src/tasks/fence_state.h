// SPDX-License-Identifier: MIT
#pragma once

// What the files of the fence share: fence.c (frames), fence_ticket.c, fence_wait.c,
// fence_late.c, fence_quarantine.c.

#include "fence.h"

#include "../base/base.h"
#include "../base/lock.h"

#define NBI_FENCE_SLOT_MAX NB_FENCE_SLOT_COUNT_MAX

// A frame value: the low 8 bits are slot + 1, so that no frame is zero; the rest is the frame's number.
#define NBI_FENCE_SLOT_BITS 8
#define NBI_FENCE_NUMBER_MAX (UINT64_MAX >> NBI_FENCE_SLOT_BITS)

// Labels with strikes or in quarantine at once. Far above what can go wrong in one program at a time; the rest is never
// struck.
#define NBI_FENCE_STRIKE_MAX 64

// One frame's place in the ring. Late frames are touched by other threads than new ones: a cache line each.
typedef struct nbi_fence_slot {
    _Alignas(NB_CACHE_LINE) nbi_tally tally; // its generation is the frame's number
    nb_atomic_u64 degraded;                  // newest frame here with a wait that timed out; only rises
    nb_atomic_u64 arena_frame;               // of the thread arenas; 0 = none. Published by the tally's opening
    uint64_t number;                         // coordinator: of the newest frame here
    bool is_pinned;                          // coordinator: arena_frame is pinned
} nbi_fence_slot;

// A ticket that is out, or a place for one. Who reads it without owning it reads `state` before and after.
typedef struct nbi_fence_record {
    nb_atomic_u64 state; // generation and whether it is out
    nb_atomic_u64 frame;
    nb_atomic_u64 taken_ns;
    nb_atomic_u64 thread_id;
    nb_atomic_u32 label;
    nb_atomic_u32 is_counted; // 0: of a label in quarantine, without a unit in the frame's tally
    nb_atomic_u32 next;       // in the free list: index + 1, 0 = last
} nbi_fence_record;

// A label that was late. Fields without nb_atomic are the lock's.
typedef struct nbi_fence_strike {
    nb_atomic_u32 quarantined; // the label, once it is in quarantine; 0 before
    nb_label label;            // 0 = unused
    uint32_t count;            // late in so many frames in a row
    uint64_t number;           // of the newest frame it was late in
} nbi_fence_strike;

struct nb_fence {
    nb_hooks hooks;
    nb_fence_desc desc; // with defaults filled in
    nbi_fence_record *records;
    size_t size_bytes; // of this allocation, records included

    // Written by the coordinator, read by all.
    _Alignas(NB_CACHE_LINE) nb_atomic_u64 current; // frame; 0 = none
    nb_atomic_u64 sealed;                          // the newest frame whose open unit was given back
    nb_atomic_u64 number;                          // of the newest frame, refused ones included
    nb_atomic_u64 owner;                           // the coordinator's thread; 0 = nobody yet
    nb_atomic_u64 frame_count, full_count;
    nb_atomic_u32 slot_count; // slots in use or used before
    nb_atomic_u32 is_closed;
    bool is_full_reported; // coordinator

    // Written by takers and returners.
    _Alignas(NB_CACHE_LINE) nb_atomic_u64 free_head; // tag and place of the first free record
    nb_atomic_u64 ticket_count, ticket_count_peak, ticket_full_count;
    nb_atomic_u64 late_count, refused_count;
    nb_atomic_u32 is_ticket_full_reported;

    // Written by waiters.
    _Alignas(NB_CACHE_LINE) nb_atomic_u64 wait_count;
    nb_atomic_u64 park_count, overrun_count, degraded_count;

    nb_atomic_u32 quarantine_count;
    nb_atomic_u32 struck_count; // entries of `strikes` in use
    nbi_lock strike_lock;       // protects the plain fields of `strikes` and forgiven_number; cold
    uint64_t forgiven_number;   // no strikes for this frame and those before it
    nbi_fence_strike strikes[NBI_FENCE_STRIKE_MAX];

    nbi_fence_slot slots[NBI_FENCE_SLOT_MAX];
};

NB_STATIC_ASSERT(sizeof(nbi_fence_slot) == NB_CACHE_LINE, "a slot is one line");
NB_STATIC_ASSERT(NB_FENCE_SLOT_COUNT_MAX < 1 << NBI_FENCE_SLOT_BITS, "slot + 1 fits its bits");

static inline uint64_t nbi_fence_number(nb_fence_frame frame) { return frame.value >> NBI_FENCE_SLOT_BITS; }

// The slot a frame names, or NULL where it names none.
static inline nbi_fence_slot *nbi_fence_slot_of(nb_fence *fence, nb_fence_frame frame) {
    uint32_t place = (uint32_t)(frame.value & ((1u << NBI_FENCE_SLOT_BITS) - 1));
    if (place == 0 || place > NBI_FENCE_SLOT_MAX || nbi_fence_number(frame) == 0) return NULL;
    return &fence->slots[place - 1];
}

static inline bool nbi_fence_is_in(nb_fence_frame frame, uint64_t word) {
    return nbi_tally_generation(word) == (nbi_fence_number(frame) & NBI_TALLY_GENERATION_MASK);
}

static inline bool nbi_fence_is_coordinator(const nb_fence *fence) {
    return nbi_atomic_load_relaxed_u64(&fence->owner) == nbi_thread_id();
}

// 1 while the coordinator has not sealed the frame: that unit of its tally is no work.
static inline uint32_t nbi_fence_open_units(const nb_fence *fence, nb_fence_frame frame) {
    bool is_open = nbi_atomic_load_relaxed_u64(&fence->current) == frame.value &&
                   nbi_atomic_load_relaxed_u64(&fence->sealed) != frame.value;
    return is_open ? 1 : 0;
}

// Raises an atomic to at least `value`. True: it was below.
static inline bool nbi_fence_raise(nb_atomic_u64 *atomic, uint64_t value) {
    uint64_t seen = nbi_atomic_load_relaxed_u64(atomic);
    while (seen < value) {
        if (nbi_atomic_compare_exchange_relaxed_u64(atomic, &seen, value)) return true;
    }
    return false;
}

// --- fence.c ---

// Gives back the open unit of the current frame where the coordinator still holds it. False: it does not.
bool nbi_fence_seal_current(nb_fence *fence);

// --- fence_ticket.c ---

void nbi_fence_records_init(nb_fence *fence);

// Tickets of a frame that are out, up to count_max.
uint32_t nbi_fence_records_list(const nb_fence *fence, nb_fence_frame frame, uint64_t now_ns,
                                nb_fence_straggler *stragglers, uint32_t count_max);

// --- fence_wait.c ---

// Waits for one slot's frame without telling anybody: for a coordinator that needs a slot. True: it is over.
bool nbi_fence_wait_quietly(nb_fence *fence, nb_fence_frame frame, uint64_t deadline_ns);

// --- fence_late.c ---

// Lists the late work of a wait that timed out in its report, logs it, marks the frame as degraded and tells the
// quarantine. The report has the frame, the waited time and the pending count; help is the waiter's, or NULL.
void nbi_fence_report_late(nb_fence *fence, const nb_fence_help *help, uint64_t start_ns, nb_fence_report *report);

// --- fence_quarantine.c ---

// What a coordinator's wait came to. Complete matters only while struck_count is not 0.
void nbi_fence_note_complete(nb_fence *fence, nb_fence_frame frame);
void nbi_fence_note_late(nb_fence *fence, nb_fence_frame frame, const nb_fence_straggler *stragglers, uint32_t count);
