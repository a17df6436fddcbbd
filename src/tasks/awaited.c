// SPDX-License-Identifier: MIT
// Work that somebody waits for, and the ceiling on the rest.
//
// Workers that run floating work are counted, and stop at desc.floating_worker_count_max, so that one is left for the
// next frame. The ceiling holds for background work alone. Awaited work, which no ceiling applies to, is: a task that
// was given to nb_task_wait, the tasks of a group once its end has begun (of a parallel loop: from its begin), work of
// a frame; what these depend on; and every task below one of them.
//
// A worker above the ceiling finds awaited work by looking at each floating entry, which costs more than taking the
// first, and so only while some thread waits (waiter_count).
//
// Nobody may sleep beside awaited work:
// - A worker that passes floating work by sets its bit in kept_mask, and looks for awaited work after that. If it
//   sleeps then, its bit in parked_mask was set before the same look.
// - Whoever makes work awaited does so with an RMW (waiter_count, the stage of a group, the kind of a task) or under
//   depend_lock, and then looks at kept_mask and parked_mask: either it sees the worker, or the worker sees the work.
// - Who publishes floating work and wakes nobody, because of the ceiling, adds all sleepers to kept_mask before it
//   looks whether the work is awaited.
// What is woken is as many workers as entries are queued, so that one which takes something else costs nobody a wake.

#include "scheduler.h"

// Sets a bit of a task's kind. False: the slot has another task by now, or the bit was set.
static bool mark(nbi_slot *slot, nbi_hint hint) {
    uint32_t generation = (uint32_t)nbi_hint_generation(hint) << NBI_KIND_GENERATION_SHIFT;
    uint32_t kind = nbi_atomic_load_relaxed_u32(&slot->kind);
    do {
        if ((kind & NBI_KIND_GENERATION_MASK) != generation || (kind & NBI_KIND_AWAITED) != 0) return false;
    } while (!nbi_atomic_compare_exchange_seq_cst_u32(&slot->kind, &kind, kind | NBI_KIND_AWAITED));
    return true;
}

bool nbi_await_note(nb_scheduler *scheduler, nbi_lane *lane, nbi_hint task) {
    // Waits inside a wait of the same thread need no count of their own: many, and short.
    bool is_counted = lane == NULL || !lane->is_waiting;
    if (is_counted) nbi_atomic_fetch_add_seq_cst_u32(&scheduler->waiter_count, 1);
    if (is_counted && lane != NULL) lane->is_waiting = true;
    if (task != NBI_HINT_NONE) mark(nbi_slot_at(scheduler, nbi_hint_slot(task)), task);
    nbi_wake_kept(scheduler);
    return is_counted;
}

void nbi_await_settle(nb_scheduler *scheduler, nbi_lane *lane) {
    if (lane != NULL) lane->is_waiting = false;
    nbi_atomic_fetch_sub_seq_cst_u32(&scheduler->waiter_count, 1);
}

// A group's opener is awaited, or what it opened is.
static bool is_group_awaited(const nb_scheduler *scheduler, const nbi_group *group) {
    if (nbi_atomic_load_seq_cst_u32(&group->stage) != NBI_GROUP_OPEN) return true;
    if (nbi_atomic_load_relaxed_u32(&group->is_below) != 0) return true;
    if (nbi_atomic_load_relaxed_ptr(&group->frame_tally) != NULL) return true;
    uint64_t owner = nbi_atomic_load_relaxed_u64(&group->owner);
    if (owner == 0) return false;
    nbi_hint hint = owner - 1;
    uint32_t kind = nbi_atomic_load_seq_cst_u32(&nbi_slot_at(scheduler, nbi_hint_slot(hint))->kind);
    uint32_t generation = (uint32_t)nbi_hint_generation(hint) << NBI_KIND_GENERATION_SHIFT;
    return (kind & NBI_KIND_GENERATION_MASK) == generation && (kind & NBI_KIND_AWAITED) != 0;
}

bool nbi_is_awaited(const nb_scheduler *scheduler, nbi_hint hint) {
    const nbi_slot *slot = nbi_slot_at(scheduler, nbi_hint_slot(hint));
    if ((nbi_atomic_load_seq_cst_u32(&slot->kind) & NBI_KIND_AWAITED) != 0) return true;
    if (nbi_atomic_load_relaxed_ptr(&slot->frame_tally) != NULL) return true;
    const nbi_group *at = nbi_atomic_load_relaxed_ptr(&slot->group);
    // Stale values can lead astray, no further than there are groups; the claim decides whether what was read was true.
    for (uint32_t step = 0; at != NULL && step < scheduler->group_count; ++step) {
        if (is_group_awaited(scheduler, at)) return true;
        at = nbi_atomic_load_relaxed_ptr(&at->parent);
    }
    return false;
}

bool nbi_is_background(nb_scheduler *scheduler, nbi_hint hint, uint64_t parked_mask) {
    nbi_atomic_fetch_or_seq_cst_u64(&scheduler->kept_mask, parked_mask);
    if (nbi_atomic_load_seq_cst_u32(&scheduler->waiter_count) == 0) return true;
    if (hint == NBI_HINT_NONE) return false;
    uint64_t state = nbi_atomic_load_seq_cst_u64(&nbi_slot_at(scheduler, nbi_hint_slot(hint))->state.word);
    // Others depend on it, and one of those may be waited for.
    return (state & NBI_STATE_LISTED) == 0 && !nbi_is_awaited(scheduler, hint);
}

void nbi_keep(nbi_lane *lane) {
    uint64_t bit = (uint64_t)1 << lane->index;
    nb_atomic_u64 *kept = &lane->scheduler->kept_mask;
    if (!nbi_is_kept(lane)) nbi_atomic_fetch_or_seq_cst_u64(kept, bit);
}

void nbi_keep_no_more(nbi_lane *lane) {
    uint64_t bit = (uint64_t)1 << lane->index;
    nb_atomic_u64 *kept = &lane->scheduler->kept_mask;
    if (nbi_is_kept(lane)) nbi_atomic_fetch_and_seq_cst_u64(kept, ~bit);
}
