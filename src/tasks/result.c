// SPDX-License-Identifier: MIT
// Results: what became of a task, told where the host wants to hear it. An ended task that somebody is to be told of
// keeps its slot, which so is the reserved place of its result: there is no queue that could be full.

#include "host.h"
#include "scheduler.h"

void nbi_result_keep(nb_scheduler *scheduler, nbi_hint hint, nb_result status) {
    uint32_t slot = nbi_hint_slot(hint);
    nbi_outcome *outcome = &scheduler->outcomes[slot];
    outcome->status = status;
    bool has_fence = (nbi_atomic_load_relaxed_u32(&nbi_slot_at(scheduler, slot)->kind) & NBI_KIND_HAS_FENCE) != 0;
    outcome->fence = has_fence ? scheduler->more[slot].fence : NULL;
    outcome->completed = has_fence ? nb_fence_current(outcome->fence) : (nb_fence_frame){0};
    uint32_t first = nbi_atomic_load_relaxed_u32(&scheduler->done_first);
    do {
        outcome->next = first;
        // Publishes the task's end; read by the acquire exchange in take_all.
    } while (!nbi_atomic_compare_exchange_release_u32(&scheduler->done_first, &first, slot + 1));
}

void nbi_result_part(nbi_lane *lane, uint32_t slot, uint32_t part) {
    nb_atomic_u32 *parts = &lane->scheduler->outcomes[slot].parts;
    // What the first did with the slot is done when the second gives it away.
    if (nbi_atomic_fetch_or_acq_rel_u32(parts, part) != 0) nbi_slot_free(lane, slot);
}

static uint32_t next_of(const nb_scheduler *scheduler, uint32_t slot) { return scheduler->outcomes[slot - 1].next; }

// Two sorted lists become one.
static uint32_t merge(nb_scheduler *scheduler, uint32_t a, uint32_t b) {
    uint32_t first = 0, *last = &first;
    while (a != 0 && b != 0) {
        bool is_a = scheduler->outcomes[a - 1].sequence < scheduler->outcomes[b - 1].sequence;
        uint32_t taken = is_a ? a : b;
        if (is_a)
            a = next_of(scheduler, a);
        else
            b = next_of(scheduler, b);
        *last = taken;
        last = &scheduler->outcomes[taken - 1].next;
    }
    *last = a != 0 ? a : b;
    return first;
}

// Merge sort without memory: runs[i] is empty or a sorted list of 2^i slots.
static uint32_t sort(nb_scheduler *scheduler, uint32_t list) {
    uint32_t runs[32] = {0};
    while (list != 0) {
        uint32_t carry = list, i = 0;
        list = next_of(scheduler, list);
        scheduler->outcomes[carry - 1].next = 0;
        for (; runs[i] != 0; ++i) {
            carry = merge(scheduler, runs[i], carry);
            runs[i] = 0;
        }
        runs[i] = carry;
    }
    uint32_t sorted = 0;
    for (int i = 0; i < 32; ++i) sorted = merge(scheduler, runs[i], sorted);
    return sorted;
}

// Everything that has ended so far joins what was left from the last drain. The lock is held.
static void take_all(nb_scheduler *scheduler) {
    uint32_t taken = nbi_atomic_exchange_acquire_u32(&scheduler->done_first, 0);
    if (taken != 0) scheduler->done_sorted = merge(scheduler, scheduler->done_sorted, sort(scheduler, taken));
}

// Cuts off what is told now, oldest submission first: the results of one fence's tasks, or, without a fence, all. Only
// what is there at this moment: a callback that submits more cannot keep the caller. The lock is held.
static uint32_t cut(nb_scheduler *scheduler, const nb_fence *fence, uint64_t count_max) {
    uint32_t first = 0, *last = &first, *link = &scheduler->done_sorted;
    for (uint64_t count = 0; *link != 0 && (count_max == 0 || count < count_max);) {
        uint32_t slot = *link, *next = &scheduler->outcomes[slot - 1].next;
        if (fence != NULL && scheduler->outcomes[slot - 1].fence != fence) {
            link = next;
            continue;
        }
        *last = slot;
        last = next;
        *link = *next;
        ++count;
    }
    *last = 0;
    return first;
}

static uint32_t take(nb_scheduler *scheduler, const nb_fence *fence, uint64_t count_max) {
    nbi_lock_acquire(&scheduler->done_lock);
    take_all(scheduler);
    uint32_t list = cut(scheduler, fence, count_max);
    nbi_lock_release(&scheduler->done_lock);
    return list;
}

static void tell(nb_scheduler *scheduler, uint32_t slot) {
    const nbi_outcome *outcome = &scheduler->outcomes[slot];
    uint32_t word = nbi_atomic_load_relaxed_u32(&nbi_slot_at(scheduler, slot)->label);
    nb_task_result result = {.task = outcome->task,
                             .label = {word & NBI_LABEL_MASK},
                             .status = outcome->status,
                             .argument = nbi_slot_at(scheduler, slot)->argument,
                             .dispatched = outcome->fence != NULL ? scheduler->more[slot].frame : (nb_fence_frame){0},
                             .completed = outcome->completed};
    uint64_t age = nb_fence_frame_age(result.dispatched, result.completed);
    result.is_stale = outcome->stale_frame_count != 0 && age > outcome->stale_frame_count;
    nbi_atomic_fetch_add_relaxed_u64(&scheduler->result_count, 1);
    nbi_atomic_fetch_add_relaxed_u64(&scheduler->stale_count, result.is_stale ? 1 : 0);
    nbi_owner *before = nbi_owner_enter(scheduler->owners[nbi_label_owner(word)].owner);
    outcome->on_complete(outcome->user, &result);
    nbi_owner_leave(before);
    nbi_outcome_memory_end(scheduler, outcome);
    nbi_lane *lane = nbi_lane_enter(scheduler);
    nbi_result_part(lane, slot, NBI_OUTCOME_TOLD);
    nbi_lane_leave(lane);
}

static uint64_t tell_all(nb_scheduler *scheduler, uint32_t list) {
    uint64_t count = 0;
    for (; list != 0; ++count) {
        uint32_t slot = list - 1;
        list = next_of(scheduler, list); // the slot is another task's afterwards
        tell(scheduler, slot);
    }
    return count;
}

static bool begin_draining(nb_scheduler *scheduler) {
    uint32_t free_mark = 0;
    return nbi_atomic_compare_exchange_acquire_u32(&scheduler->is_draining, &free_mark, 1);
}

static void end_draining(nb_scheduler *scheduler) { nbi_atomic_store_release_u32(&scheduler->is_draining, 0); }

nb_result nb_scheduler_drain(nb_scheduler *scheduler, uint64_t count_max, uint64_t *count) {
    if (scheduler == NULL) return NBI_FAIL_NULL("scheduler");
    if (!begin_draining(scheduler)) return NB_BUSY;
    uint64_t told = tell_all(scheduler, take(scheduler, NULL, count_max));
    end_draining(scheduler);
    if (told == 0) return NB_EMPTY;
    if (count != NULL) *count = told;
    return NB_OK;
}

// Another thread that drains keeps its callbacks to itself, and this one does not wait for them. A drain inside these
// callbacks is refused as ever.
void nbi_results_tell(nb_scheduler *scheduler, const nb_fence *fence) {
    bool is_first = begin_draining(scheduler);
    tell_all(scheduler, take(scheduler, fence, 0));
    if (is_first) end_draining(scheduler);
}
