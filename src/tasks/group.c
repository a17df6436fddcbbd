// SPDX-License-Identifier: MIT
// Groups: opened, waited for, ended.

#include "scheduler.h"

// Groups a lane takes from the pool at a time, at most: the depth of a small recursion.
#define GROUP_BATCH_MAX 16u

// A small pool is not to disappear in the lanes.
uint32_t nbi_group_batch(const nb_scheduler *scheduler) {
    uint32_t fair = scheduler->group_count / (4 * NBI_LANE_COUNT_MAX);
    return fair < 1 ? 1 : fair < GROUP_BATCH_MAX ? fair : GROUP_BATCH_MAX;
}

static void spare_push(nbi_lane *lane, uint32_t index) {
    lane->scheduler->groups[index].next_free = lane->spare_group;
    lane->spare_group = index + 1;
    ++lane->spare_group_count;
}

static uint32_t spare_pop(nbi_lane *lane) {
    uint32_t index = lane->spare_group - 1;
    lane->spare_group = lane->scheduler->groups[index].next_free;
    --lane->spare_group_count;
    return index;
}

static NB_NOINLINE void refill(nbi_lane *lane) {
    nb_scheduler *scheduler = lane->scheduler;
    nbi_lock_acquire(&scheduler->pool_lock);
    for (uint32_t i = lane->group_batch; i > 0; --i) {
        uint32_t index = scheduler->free_group - 1;
        if (scheduler->free_group != 0)
            scheduler->free_group = scheduler->groups[index].next_free;
        else if (scheduler->fresh_group_count < scheduler->group_count)
            index = scheduler->fresh_group_count++;
        else
            break;
        spare_push(lane, index);
    }
    nbi_lock_release(&scheduler->pool_lock);
}

static NB_NOINLINE void spill(nbi_lane *lane) {
    nb_scheduler *scheduler = lane->scheduler;
    nbi_lock_acquire(&scheduler->pool_lock);
    for (uint32_t i = lane->group_batch; i > 0; --i) {
        uint32_t index = spare_pop(lane);
        scheduler->groups[index].next_free = scheduler->free_group;
        scheduler->free_group = index + 1;
    }
    nbi_lock_release(&scheduler->pool_lock);
}

static inline void group_free(nbi_lane *lane, uint32_t index) {
    spare_push(lane, index);
    if (NB_UNLIKELY(lane->spare_group_count > 2 * lane->group_batch)) spill(lane);
}

static bool is_stage(const nbi_group *group, uint32_t stage) {
    return nbi_atomic_load_relaxed_u32(&group->stage) == stage;
}

void nbi_group_stage(const nb_scheduler *scheduler, nbi_group *group, uint32_t stage) {
    // Below another one that is awaited nothing changes. Else seq_cst, before the look at kept_mask in nbi_await_note.
    if (nbi_has_ceiling(scheduler) && nbi_atomic_load_relaxed_u32(&group->is_below) == 0)
        nbi_atomic_exchange_seq_cst_u32(&group->stage, stage);
    else
        nbi_atomic_store_relaxed_u32(&group->stage, stage);
}

// True once: the caller has the open unit to give back.
static bool group_seal(const nb_scheduler *scheduler, nbi_group *group) {
    if (nbi_atomic_load_relaxed_u32(&group->stage) >= NBI_GROUP_SEALED) return false;
    nbi_group_stage(scheduler, group, NBI_GROUP_SEALED);
    return true;
}

static bool is_awaited(const nbi_group *group) {
    return !is_stage(group, NBI_GROUP_OPEN) || nbi_atomic_load_relaxed_u32(&group->is_below) != 0;
}

static void group_open(nbi_lane *lane, nbi_group *group, uint64_t sequence) {
    const nbi_running *running = lane->running;
    nbi_group *parent = running != NULL ? running->group : NULL;
    uint32_t depth = parent != NULL ? nbi_atomic_load_relaxed_u32(&parent->depth) + 1 : 0;
    uint64_t owner = running != NULL ? running->id : 0;
    nbi_atomic_store_relaxed_ptr(&group->parent, parent);
    nbi_atomic_store_relaxed_u32(&group->depth, depth);
    nbi_atomic_store_relaxed_u64(&group->owner, owner);
    nbi_atomic_store_relaxed_ptr(&group->frame_tally, running != NULL ? running->frame_tally : NULL);
    nbi_atomic_store_relaxed_u32(&group->is_below, parent != NULL && is_awaited(parent) ? 1 : 0);
    nbi_atomic_store_relaxed_u32(&group->result, (uint32_t)NB_OK);
    nbi_atomic_store_relaxed_u32(&group->stage, NBI_GROUP_OPEN);
    // What a task opens, it is about to fill, and ends itself: a few units are its own from the start, without an RMW.
    uint32_t units = owner != 0 ? NBI_POCKET_TAKE : 0;
    if (units != 0) {
        nbi_pocket_empty(&lane->group_pocket);
        lane->group_pocket = (nbi_pocket){&group->tally, units};
    }
    uint64_t generation = sequence & NBI_TALLY_GENERATION_MASK;
    // A plain store, unlike nbi_tally_open: nobody else opens or closes a group. A mark that a late sleeper of the last
    // generation makes at this moment may be lost; what it saw told it not to sleep.
    nbi_atomic_store_release_u64(&group->tally.word,
                                 generation << NBI_TALLY_GENERATION_SHIFT | nbi_tally_units(1 + units));
    nbi_atomic_store_release_u64(&group->sequence, sequence);
}

nb_result nb_group_begin(nb_scheduler *scheduler, nb_group *group) {
    if (scheduler == NULL) return NBI_FAIL_NULL("scheduler");
    if (group == NULL) return NBI_FAIL(&scheduler->desc.hooks, NB_ITEM_TASK_ARGUMENT, NB_ERR_MISUSE, "group is NULL");
    nbi_lane *lane = nbi_lane_enter(scheduler);
    if (NB_UNLIKELY(lane->spare_group == 0)) refill(lane);
    bool has_one = lane->spare_group != 0;
    if (has_one) {
        uint32_t index = spare_pop(lane);
        nbi_group *found = &scheduler->groups[index];
        uint64_t sequence = (nbi_atomic_load_relaxed_u64(&found->sequence) + 1) & NBI_HINT_GENERATION_MASK;
        group_open(lane, found, sequence);
        group->value = nbi_handle_of(scheduler, nbi_hint_of(sequence, index));
    }
    nbi_lane_leave(lane);
    return has_one ? NB_OK : NB_FULL;
}

// Whether a task that runs in this lane belongs to the group, or lies below it: it could never end.
static bool is_inside(const nbi_lane *lane, const nbi_group *group) {
    const nbi_running *top = lane->running;
    if (top == NULL) return false;
    // What runs here was submitted before the newest task of all opened the group.
    if (top->id != 0 && nbi_atomic_load_relaxed_u64(&group->owner) == top->id) return false;
    for (const nbi_running *running = top; running != NULL; running = running->below) {
        // Each of these groups has a unit out: they and their parents are what they were.
        for (const nbi_group *at = running->group; at != NULL; at = nbi_atomic_load_relaxed_ptr(&at->parent)) {
            if (at == group) return true;
        }
    }
    return false;
}

static inline nb_result group_result(nbi_lane *lane, nbi_group *group) {
    nb_result result = (nb_result)(int32_t)nbi_atomic_load_relaxed_u32(&group->result);
    nbi_atomic_store_relaxed_u32(&group->stage, NBI_GROUP_ENDED);
    group_free(lane, (uint32_t)(group - lane->scheduler->groups));
    return result;
}

static inline nb_result end_in_lane(nbi_lane *lane, nbi_group *group, const nbi_target *target, uint64_t deadline_ns) {
    if (NB_UNLIKELY(is_inside(lane, group))) {
        return nbi_fail(&lane->scheduler->desc.hooks, NB_ITEM_TASK_DEADLOCK, NB_ERR_DEADLOCK, "nb_group_end",
                        "a task waits for its own group");
    }
    // The open unit goes the way of all units: into the pocket, and from there together with those of the last tasks.
    if (group_seal(lane->scheduler, group)) nbi_pocket_put(&lane->group_pocket, &group->tally);
    nb_result result = nbi_wait(lane, target, deadline_ns);
    return result == NB_OK ? group_result(lane, group) : result;
}

// For a thread that finds no lane free.
static nb_result end_outside(nb_scheduler *scheduler, nbi_group *group, const nbi_target *target,
                             uint64_t deadline_ns) {
    if (group_seal(scheduler, group)) nbi_tally_sub(&group->tally, 1);
    nb_result result = nbi_wait_outside(scheduler, target, deadline_ns);
    if (result != NB_OK) return result;
    nbi_lane *lane = nbi_lane_enter(scheduler);
    result = group_result(lane, group);
    nbi_lane_leave(lane);
    return result;
}

nb_result nb_group_end(nb_scheduler *scheduler, nb_group handle, uint64_t deadline_ns) {
    if (scheduler == NULL) return NBI_FAIL_NULL("scheduler");
    nbi_group *group = nbi_group_find(scheduler, handle);
    if (NB_UNLIKELY(group == NULL || is_stage(group, NBI_GROUP_ENDED))) {
        return NBI_FAIL(&scheduler->desc.hooks, NB_ITEM_TASK_STALE, NB_ERR_STALE, "the group has ended, or never was");
    }
    nbi_target target = nbi_target_group(group);
    nbi_lane *lane = nbi_lane_borrow(scheduler);
    if (NB_UNLIKELY(lane == NULL)) return end_outside(scheduler, group, &target, deadline_ns);
    nb_result result = end_in_lane(lane, group, &target, deadline_ns);
    nbi_lane_return(lane);
    return result;
}

uint32_t nb_group_pending_count(const nb_scheduler *scheduler, nb_group handle) {
    if (scheduler == NULL) return NBI_FAIL_NULL("scheduler") == NB_OK;
    const nbi_group *group = nbi_group_find(scheduler, handle);
    if (group == NULL) return 0;
    uint32_t count = nbi_tally_count(nbi_atomic_load_acquire_u64(&group->tally.word));
    return count > 0 && nbi_atomic_load_relaxed_u32(&group->stage) < NBI_GROUP_SEALED ? count - 1 : count;
}
