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
        uint32_t word = nbi_atomic_load_relaxed_u32(&nbi_slot_at(scheduler, i)->label);
        if (nbi_label_owner(word) != owner->number) continue;
        label->id = word & NBI_LABEL_MASK;
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

// --- numbers ---

static uint64_t births(const nb_scheduler *scheduler, const nbi_owner *owner) {
    return nbi_owner_births(owner) + nbi_tasks_births(scheduler, owner);
}

// Whether a closed owner can go: nothing of it can submit any more, nor look for it when it runs. The lock is held.
static bool is_over(nb_scheduler *scheduler, const nbi_owner *owner) {
    nb_label label;
    uint64_t before = births(scheduler, owner);
    // Pairs with the release of those that hold it: modules below it, and work that is no task.
    if (nbi_atomic_load_acquire_u32(&owner->hold_count) != 1) return false;
    if (nbi_tasks_births(scheduler, owner) == 0) return births(scheduler, owner) == before;
    return nbi_tasks_owned(scheduler, owner, &label) == 0 && births(scheduler, owner) == before;
}

// The lock is held.
static bool end_if_over(nb_scheduler *scheduler, nbi_owner_place *place) {
    nbi_owner *owner = place->owner;
    if (owner->is_open || !is_over(scheduler, owner)) return false;
    place->owner = NULL;
    nbi_owner_release(owner);
    return true;
}

// A number that nobody has, from where the last search ended: a number rests before it is used again. Where all are
// taken, the first of an owner that has gone since. 0: there is none. The lock is held.
static uint32_t free_number(nb_scheduler *scheduler) {
    for (uint32_t i = 1; i < NBI_OWNER_COUNT; ++i) {
        scheduler->owner_last = scheduler->owner_last % (NBI_OWNER_COUNT - 1) + 1;
        if (scheduler->owners[scheduler->owner_last].owner == NULL) return scheduler->owner_last;
    }
    for (uint32_t i = 1; i < NBI_OWNER_COUNT; ++i) {
        if (end_if_over(scheduler, &scheduler->owners[i])) return i;
    }
    return 0;
}

static nb_result open(nb_scheduler *scheduler, nbi_owner *parent, nbi_owner **out) {
    uint32_t number = free_number(scheduler);
    if (number == 0) return NB_FULL;
    nbi_owner *owner = nbi_owner_create(&scheduler->desc.hooks, parent);
    if (owner == NULL) return NB_ERR_MEMORY;
    nbi_owner_place *place = &scheduler->owners[number];
    owner->number = number;
    owner->is_open = true;
    nbi_atomic_store_relaxed_ptr(&owner->scheduler, scheduler);
    nbi_atomic_store_relaxed_u32(&place->host, parent != NULL ? parent->number : number);
    place->owner = owner;
    if (number >= scheduler->owner_limit) scheduler->owner_limit = number + 1;
    *out = owner;
    return NB_OK;
}

nb_result nbi_owner_open(nb_scheduler *scheduler, nbi_owner *parent, nbi_owner **out) {
    nbi_lock_acquire(&scheduler->lock);
    nb_result result = open(scheduler, parent, out);
    nbi_lock_release(&scheduler->lock);
    return result;
}

void nbi_owner_close(nb_scheduler *scheduler, nbi_owner *owner) {
    if (owner == NULL) return;
    nbi_lock_acquire(&scheduler->lock);
    owner->is_open = false;
    end_if_over(scheduler, &scheduler->owners[owner->number]);
    nbi_lock_release(&scheduler->lock);
}

nbi_owner *nbi_owner_closed(nb_scheduler *scheduler) { return &scheduler->closed_owner; }

void nbi_owners_end(nb_scheduler *scheduler) {
    for (uint32_t i = 1; i < scheduler->owner_limit; ++i) {
        nbi_owner *owner = scheduler->owners[i].owner;
        if (owner == NULL) continue;
        nbi_atomic_store_relaxed_ptr(&owner->scheduler, NULL);
        nbi_owner_release(owner);
    }
}
