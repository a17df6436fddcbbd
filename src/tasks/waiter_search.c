// SPDX-License-Identifier: MIT
// What a waiter may run: the task or the group that it waits for, what is below it, and other tasks of that group. A
// waiter looks first where that costs least, at the ends of queues; a thorough search looks at every entry.

#include "scheduler.h"

// Whether a group lies at or below what is waited for. Stale values can lead astray, not out of the array, and no
// further than there are groups; the claim decides whether what was read was true.
static NB_NOINLINE bool is_group_below(const nb_scheduler *scheduler, const nbi_group *at, const nbi_target *target) {
    uint32_t top_depth = target->group != NULL ? nbi_atomic_load_relaxed_u32(&target->group->depth) : 0;
    for (uint32_t step = 0; at != NULL && step < scheduler->group_count; ++step) {
        if (at == target->group) return true;
        if (target->task_id != 0 && nbi_atomic_load_relaxed_u64(&at->owner) == target->task_id) return true;
        if (target->frame != NULL && nbi_atomic_load_relaxed_ptr(&at->frame_tally) == target->frame) return true;
        if (target->group != NULL && nbi_atomic_load_relaxed_u32(&at->depth) <= top_depth) return false;
        at = nbi_atomic_load_relaxed_ptr(&at->parent);
    }
    return false;
}

static inline bool serves(const nb_scheduler *scheduler, const nbi_target *target, nbi_hint hint) {
    const nbi_slot *slot = nbi_slot_at(scheduler, nbi_hint_slot(hint));
    const nbi_group *group = nbi_atomic_load_relaxed_ptr(&slot->group);
    if (NB_LIKELY(group == target->group && group != NULL)) return true;
    if (NB_UNLIKELY(target->is_any)) return nbi_is_awaited(scheduler, hint);
    if (hint + 1 == target->task_id) return true;
    if (target->frame != NULL && nbi_atomic_load_relaxed_ptr(&slot->frame_tally) == target->frame) return true;
    return group != NULL && is_group_below(scheduler, group, target);
}

// The newest entry of the own deque. Dead ones are thrown away: they would hide what lies below them.
static nbi_hint pop_serving(nb_scheduler *scheduler, nbi_deque *deque, const nbi_target *target) {
    for (;;) {
        nbi_hint hint = nbi_deque_newest(deque);
        if (hint == NBI_HINT_NONE) return hint;
        bool is_wanted = serves(scheduler, target, hint);
        if (!is_wanted && nbi_is_queued(scheduler, hint)) return NBI_HINT_NONE;
        hint = nbi_deque_pop(deque);
        if (hint == NBI_HINT_NONE || is_wanted) return hint;
    }
}

static nbi_hint take_ring_serving(nb_scheduler *scheduler, nbi_ring *ring, const nbi_target *target) {
    uint64_t index;
    for (;;) {
        nbi_hint hint = nbi_ring_peek(ring, &index);
        if (hint == NBI_HINT_NONE) return hint;
        bool is_wanted = serves(scheduler, target, hint);
        if (!is_wanted && nbi_is_queued(scheduler, hint)) return NBI_HINT_NONE;
        if (nbi_ring_take(ring, index) && is_wanted) return hint;
    }
}

static nbi_hint take_own_serving(nbi_lane *lane, const nbi_target *target) {
    for (uint32_t mask = lane->owned_mask; mask != 0; mask &= mask - 1) {
        nbi_queue *own = &lane->queues[__builtin_ctz(mask)];
        nbi_hint hint = pop_serving(lane->scheduler, &own->deque, target);
        if (hint == NBI_HINT_NONE) hint = take_ring_serving(lane->scheduler, &own->ring, target);
        if (hint != NBI_HINT_NONE) return hint;
    }
    return NBI_HINT_NONE;
}

static nbi_hint take_serving_from(nb_scheduler *scheduler, nbi_queue *theirs, const nbi_target *target) {
    nbi_hint hint = take_ring_serving(scheduler, &theirs->ring, target);
    if (hint != NBI_HINT_NONE) return hint;
    uint64_t index;
    hint = nbi_deque_peek(&theirs->deque, &index);
    if (hint == NBI_HINT_NONE || nbi_hint_slot(hint) >= scheduler->slot_count) return NBI_HINT_NONE;
    bool is_wanted = serves(scheduler, target, hint) && nbi_deque_take(&theirs->deque, index);
    return is_wanted ? hint : NBI_HINT_NONE;
}

// Dead entries that a search may pass before it is worth while to throw them out.
#if defined(NB_EXPLORE)
#define DEAD_MAX 1u
#else
#define DEAD_MAX 64u
#endif

// Looks at every entry, and leaves it where it is: its task is claimed, the entry dies.
static nbi_hint scan_ring(const nb_scheduler *scheduler, const nbi_ring *ring, const nbi_target *target,
                          uint32_t *dead_count) {
    uint64_t index;
    nbi_hint hint = nbi_ring_peek(ring, &index);
    while (hint != NBI_HINT_NONE) {
        bool is_alive = nbi_is_queued(scheduler, hint);
        if (is_alive && serves(scheduler, target, hint)) return hint;
        if (!is_alive) ++*dead_count;
        hint = nbi_ring_at(ring, ++index);
        uint64_t head = nbi_atomic_load_seq_cst_u64(&ring->head);
        // Others have taken so much meanwhile that the place belongs to a later lap.
        if (hint == NBI_HINT_NONE && (int64_t)(head - index) > 0) hint = nbi_ring_peek(ring, &index);
    }
    return NBI_HINT_NONE;
}

static nbi_hint scan_deque(const nb_scheduler *scheduler, const nbi_deque *deque, const nbi_target *target) {
    uint64_t top = nbi_atomic_load_seq_cst_u64(&deque->top);
    uint64_t bottom = nbi_atomic_load_seq_cst_u64(&deque->bottom);
    for (; (int64_t)(bottom - top) > 0; ++top) {
        nbi_hint hint = nbi_atomic_load_relaxed_u64(&deque->cells[top & deque->mask]);
        bool is_slot = nbi_hint_slot(hint) < scheduler->slot_count;
        if (is_slot && nbi_is_queued(scheduler, hint) && serves(scheduler, target, hint)) return hint;
    }
    return NBI_HINT_NONE;
}

static nbi_hint scan_queue(nbi_lane *lane, nbi_lane *victim, uint32_t queue, const nbi_target *target) {
    uint32_t dead_count = 0;
    nbi_hint hint = scan_ring(lane->scheduler, &victim->queues[queue].ring, target, &dead_count);
    if (dead_count > DEAD_MAX && victim == lane) nbi_ring_clean(lane->scheduler, &lane->queues[queue].ring);
    return hint != NBI_HINT_NONE ? hint : scan_deque(lane->scheduler, &victim->queues[queue].deque, target);
}

nbi_hint nbi_search_awaited(nbi_lane *lane, uint32_t queue) {
    nb_scheduler *scheduler = lane->scheduler;
    const nbi_target any = {.is_any = true};
    uint64_t mask = nbi_atomic_load_seq_cst_u64(&scheduler->has_work[queue]);
    for (; mask != 0; mask &= mask - 1) {
        nbi_lane *victim = scheduler->lanes[__builtin_ctzll(mask)];
        nbi_hint hint = take_serving_from(scheduler, &victim->queues[queue], &any);
        if (hint == NBI_HINT_NONE) hint = scan_queue(lane, victim, queue, &any);
        if (hint != NBI_HINT_NONE) return hint;
    }
    return NBI_HINT_NONE;
}

// Whether a walk under way has met the slot before; now it has.
static bool is_met_again(nb_scheduler *scheduler, nbi_hint hint) {
    nbi_slot_more *more = &scheduler->more[nbi_hint_slot(hint)];
    bool is_met = more->visit_number == scheduler->visit_number;
    more->visit_number = scheduler->visit_number;
    return is_met;
}

void nbi_ring_clean(nb_scheduler *scheduler, nbi_ring *ring) {
    nbi_lock_acquire(&scheduler->depend_lock); // for the numbers of walks
    nbi_visit_begin(scheduler);
    uint64_t end = nbi_atomic_load_relaxed_u64(&ring->tail), index;
    // Once around: what others take meanwhile is theirs.
    for (;;) {
        nbi_hint hint = nbi_ring_peek(ring, &index);
        if (hint == NBI_HINT_NONE || (int64_t)(index - end) >= 0) break;
        if (!nbi_ring_take(ring, index)) continue;
        // A task that had to wait once more has an old entry beside its new one.
        if (!nbi_is_queued(scheduler, hint) || is_met_again(scheduler, hint)) continue;
        // There is room: an entry was just taken, and only this thread puts any in.
        nbi_ring_push(ring, hint);
    }
    nbi_lock_release(&scheduler->depend_lock);
    // Somebody may have looked while an entry was out, and gone to sleep.
    nbi_wake_all(scheduler);
    if (nbi_atomic_load_seq_cst_u32(&scheduler->sleeper_count) != 0) nbi_poke_sleepers(scheduler);
}

bool nbi_serves(const nb_scheduler *scheduler, const nbi_target *target, nbi_hint hint) {
    return serves(scheduler, target, hint);
}

nbi_hint nbi_search_target(nbi_lane *lane, const nbi_target *target, bool is_thorough) {
    nb_scheduler *scheduler = lane->scheduler;
    nbi_hint hint = take_own_serving(lane, target);
    if (hint != NBI_HINT_NONE) return hint;
    if (NB_UNLIKELY(nbi_atomic_load_seq_cst_u32(&lane->inbox_mask) != 0)) {
        hint = nbi_pin_search(lane, target);
        if (hint != NBI_HINT_NONE) return hint;
    }
    for (uint32_t queue = 0; queue < NBI_QUEUE_COUNT; ++queue) {
        uint64_t mask = nbi_atomic_load_seq_cst_u64(&scheduler->has_work[queue]);
        if (!is_thorough) mask &= ~((uint64_t)1 << lane->index);
        for (; mask != 0; mask &= mask - 1) {
            nbi_lane *victim = scheduler->lanes[__builtin_ctzll(mask)];
            hint = is_thorough ? scan_queue(lane, victim, queue, target)
                               : take_serving_from(scheduler, &victim->queues[queue], target);
            if (hint != NBI_HINT_NONE) return hint;
        }
    }
    return NBI_HINT_NONE;
}
