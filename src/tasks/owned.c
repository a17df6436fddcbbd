// SPDX-License-Identifier: MIT
// Which tasks an owner has in flight. A look at every slot that was ever used, because a count of living tasks would be
// one more word that all threads write for each task.

#include "host.h"
#include "scheduler.h"

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

uint32_t nbi_tasks_owned(nb_scheduler *scheduler, uint32_t owner, nb_label *label) {
    uint32_t count = 0, slot_count = nbi_slot_used_count(scheduler);
    for (uint32_t i = 0; i < slot_count; ++i) {
        if (!is_in_flight(scheduler, i)) continue;
        const nbi_slot *slot = nbi_slot_at(scheduler, i);
        if (nbi_kind_owner(nbi_atomic_load_relaxed_u32(&slot->kind)) != owner) continue;
        label->id = nbi_atomic_load_relaxed_u32(&slot->label);
        ++count;
    }
    return count;
}

uint64_t nbi_tasks_births(const nb_scheduler *scheduler, uint32_t owner) {
    uint32_t lane_count = nbi_atomic_load_acquire_u32(&scheduler->lane_count);
    uint64_t count = nbi_atomic_load_acquire_u32(&scheduler->lanes[NBI_LANE_OUTSIDE]->births[owner]);
    for (uint32_t i = 0; i < lane_count; ++i) {
        count += nbi_atomic_load_acquire_u32(&scheduler->lanes[i]->births[owner]);
    }
    return count;
}
