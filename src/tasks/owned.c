// SPDX-License-Identifier: MIT
// The owners of a scheduler's tasks, and which tasks an owner has in flight. That is a look at every slot that was ever
// used, because a count of living tasks would be one more word that all threads write for each task.

#include "host.h"
#include "scheduler.h"

// --- tasks ---

// Whether the slot has a task, or the result of one that nobody was told yet.
static bool is_in_flight(const nb_scheduler *scheduler, uint32_t index) {
    const nbi_slot *slot = nbi_slot_at(scheduler, index);
    // Pairs with the ends in end_slot: a thread that sees the end sees what the task submitted.
    if (nbi_state_phase(nbi_atomic_load_acquire_u64(&slot->state.word)) != NBI_PHASE_FREE) return true;
    if ((nbi_atomic_load_relaxed_u32(&slot->kind) & NBI_KIND_HAS_RESULT) == 0) return false;
    // Pairs with nbi_result_part in tell, which comes after the callback.
    uint32_t parts = nbi_atomic_load_acquire_u32(&scheduler->outcomes[index].parts);
    return parts != (NBI_OUTCOME_ENDED | NBI_OUTCOME_TOLD);
}

uint32_t nbi_tasks_owned(nb_scheduler *scheduler, const nbi_owner *owner, nb_label *label) {
    uint32_t count = 0, slot_count = nbi_slot_used_count(scheduler);
    for (uint32_t i = 0; i < slot_count; ++i) {
        if (!is_in_flight(scheduler, i)) continue;
        const nbi_slot *slot = nbi_slot_at(scheduler, i);
        if (nbi_kind_owner(nbi_atomic_load_relaxed_u32(&slot->kind)) != owner->number) continue;
        label->id = nbi_atomic_load_relaxed_u32(&slot->label);
        ++count;
    }
    return count;
}

uint64_t nbi_tasks_births(const nb_scheduler *scheduler, const nbi_owner *owner) {
    uint32_t lane_count = nbi_atomic_load_acquire_u32(&scheduler->lane_count);
    uint64_t count = nbi_atomic_load_acquire_u32(&scheduler->lanes[NBI_LANE_OUTSIDE]->births[owner->number]);
    for (uint32_t i = 0; i < lane_count; ++i) {
        count += nbi_atomic_load_acquire_u32(&scheduler->lanes[i]->births[owner->number]);
    }
    return count;
}

// --- owners ---

// A number without a module, from where the last search ended: a number rests before it is used again. Where all have
// one, the next is shared. The lock is held.
static uint32_t free_number(nb_scheduler *scheduler) {
    uint32_t count = NBI_OWNER_CLOSED - 1;
    for (uint32_t i = 0; i < count; ++i) {
        uint32_t number = 1 + scheduler->owner_next % count;
        scheduler->owner_next = number % count;
        const nbi_owner *owner = scheduler->owners[number];
        if (owner == NULL || owner->user_count == 0) return number;
    }
    return 1 + scheduler->owner_next;
}

nbi_owner *nbi_owner_open(nb_scheduler *scheduler) {
    nbi_lock_acquire(&scheduler->lock);
    uint32_t number = free_number(scheduler);
    nbi_owner **place = &scheduler->owners[number];
    if (*place == NULL) *place = nbi_owner_create(&scheduler->desc.hooks, number);
    nbi_owner *owner = *place;
    if (owner != NULL) ++owner->user_count;
    nbi_lock_release(&scheduler->lock);
    return owner;
}

// A task that is in flight looks for its owner when it runs.
static bool has_tasks(nb_scheduler *scheduler, const nbi_owner *owner) {
    nb_label label;
    uint64_t births = nbi_tasks_births(scheduler, owner);
    if (births == 0) return false;
    return nbi_tasks_owned(scheduler, owner, &label) != 0 || nbi_tasks_births(scheduler, owner) != births;
}

void nbi_owner_close(nb_scheduler *scheduler, nbi_owner *owner) {
    if (owner == NULL) return;
    nbi_lock_acquire(&scheduler->lock);
    bool is_over = --owner->user_count == 0 && !has_tasks(scheduler, owner);
    if (is_over) scheduler->owners[owner->number] = NULL;
    nbi_lock_release(&scheduler->lock);
    if (is_over) nbi_owner_release(owner);
}

nbi_owner *nbi_owner_closed(nb_scheduler *scheduler) { return &scheduler->closed_owner; }

void nbi_owners_end(nb_scheduler *scheduler) {
    for (uint32_t i = 0; i < NBI_OWNER_CLOSED; ++i) nbi_owner_release(scheduler->owners[i]);
}
