// SPDX-License-Identifier: MIT
// Pinned tasks: for the coordinator, or for one worker. They go to the inbox of that thread's lane, which nobody else
// takes from.

#include "scheduler.h"

void nbi_pin_publish(nb_scheduler *scheduler, nbi_hint hint, uint32_t queue) {
    uint32_t index = nbi_atomic_load_relaxed_u32(&scheduler->more[nbi_hint_slot(hint)].pin_lane);
    nbi_lane *lane = scheduler->lanes[index];
    nbi_lock_acquire(&lane->inbox_lock);
    if (!nbi_ring_push(&lane->inbox[queue], hint)) {
        nbi_ring_clean(scheduler, &lane->inbox[queue]);
        // There is room: without its dead and double entries a ring has at most one entry for each task.
        nbi_ring_push(&lane->inbox[queue], hint);
    }
    // seq_cst, before the look for sleepers; the owner looks at the mask after it has said that it will sleep.
    uint32_t mask = nbi_atomic_load_relaxed_u32(&lane->inbox_mask);
    nbi_atomic_exchange_seq_cst_u32(&lane->inbox_mask, mask | 1u << queue);
    nbi_lock_release(&lane->inbox_lock);
    nbi_wake_lane(scheduler, index);
}

nbi_hint nbi_pin_take(nbi_lane *lane, uint32_t queue) {
    nbi_ring *ring = &lane->inbox[queue];
    nbi_hint hint = nbi_ring_pop(ring);
    if (hint != NBI_HINT_NONE) return hint;
    uint64_t index;
    nbi_lock_acquire(&lane->inbox_lock);
    bool is_empty = nbi_ring_peek(ring, &index) == NBI_HINT_NONE;
    uint32_t mask = nbi_atomic_load_relaxed_u32(&lane->inbox_mask);
    if (is_empty) nbi_atomic_exchange_seq_cst_u32(&lane->inbox_mask, mask & ~(1u << queue));
    nbi_lock_release(&lane->inbox_lock);
    return NBI_HINT_NONE;
}

nbi_hint nbi_pin_search(nbi_lane *lane, const nbi_target *target) {
    const nb_scheduler *scheduler = lane->scheduler;
    uint32_t mask = nbi_atomic_load_seq_cst_u32(&lane->inbox_mask);
    for (; mask != 0; mask &= mask - 1) {
        const nbi_ring *ring = &lane->inbox[__builtin_ctz(mask)];
        uint64_t index;
        // Under the lock nobody cleans, and so nothing is out of the ring for a moment.
        nbi_lock_acquire(&lane->inbox_lock);
        nbi_hint hint = nbi_ring_peek(ring, &index);
        while (hint != NBI_HINT_NONE && !(nbi_is_queued(scheduler, hint) && nbi_serves(scheduler, target, hint))) {
            hint = nbi_ring_at(ring, ++index);
        }
        nbi_lock_release(&lane->inbox_lock);
        if (hint != NBI_HINT_NONE) return hint;
    }
    return NBI_HINT_NONE;
}
