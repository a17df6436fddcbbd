// SPDX-License-Identifier: MIT
// The pool of slots. A lane keeps a few dozen for itself and exchanges them with the pool many at a time, so the pool's
// lock is taken once in so many tasks and held for a copy of as many numbers.

#include "scheduler.h"

#include <string.h>

// Kept for Critical tasks, as a share of all slots: background work that floods the pool must not stop a frame.
#define CRITICAL_SHARE 8u

uint32_t nbi_slot_spare_max(const nb_scheduler *scheduler) {
    // A small pool is not to disappear in the lanes.
    uint32_t fair = scheduler->slot_count / (4 * NBI_LANE_COUNT_MAX);
    return fair < NBI_SPARE_MAX ? fair : NBI_SPARE_MAX;
}

// Takes up to `wanted` slots from the pool, used ones first: their memory is warm. The lock is held.
static void take_from_pool(nb_scheduler *scheduler, nbi_lane *lane, uint32_t wanted) {
    uint32_t used = scheduler->free_slot_count < wanted ? scheduler->free_slot_count : wanted;
    scheduler->free_slot_count -= used;
    memcpy(lane->spare, scheduler->free_slots + scheduler->free_slot_count, used * sizeof lane->spare[0]);
    lane->spare_count = used;
    for (; lane->spare_count < wanted && scheduler->fresh_slot_count < scheduler->slot_count; ++lane->spare_count) {
        lane->spare[lane->spare_count] = scheduler->fresh_slot_count++;
    }
}

void nbi_slot_refill(nbi_lane *lane, nb_priority priority) {
    nb_scheduler *scheduler = lane->scheduler;
    uint32_t wanted = lane->spare_max / 2 + 1;
    nbi_lock_acquire(&scheduler->pool_lock);
    uint32_t left = scheduler->free_slot_count + (scheduler->slot_count - scheduler->fresh_slot_count);
    uint32_t kept = priority == NB_PRIORITY_CRITICAL ? 0 : scheduler->slot_count / CRITICAL_SHARE;
    if (left > kept) take_from_pool(scheduler, lane, left - kept < wanted ? left - kept : wanted);
    nbi_lock_release(&scheduler->pool_lock);
}

void nbi_slot_spill(nbi_lane *lane) {
    nb_scheduler *scheduler = lane->scheduler;
    uint32_t count = lane->spare_max / 2 + 1;
    lane->spare_count -= count;
    nbi_lock_acquire(&scheduler->pool_lock);
    memcpy(scheduler->free_slots + scheduler->free_slot_count, lane->spare + lane->spare_count,
           count * sizeof lane->spare[0]);
    scheduler->free_slot_count += count;
    nbi_lock_release(&scheduler->pool_lock);
}

uint32_t nbi_slot_used_count(nb_scheduler *scheduler) {
    nbi_lock_acquire(&scheduler->pool_lock);
    uint32_t count = scheduler->fresh_slot_count;
    nbi_lock_release(&scheduler->pool_lock);
    return count;
}
