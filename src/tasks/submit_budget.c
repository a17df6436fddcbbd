// SPDX-License-Identifier: MIT
// The budget for submitting: a frame that has too much to start does not become a late frame; it starts the rest in the
// next one. What is held back waits like a task with one more dependency (depend.c).

#include "scheduler.h"

static nb_result coordinator_lane(nb_scheduler *scheduler, nbi_lane **lane, const char *function) {
    *lane = nbi_lane_own(scheduler);
    if (*lane != NULL && (*lane)->index == 0 && (*lane)->running == NULL) return NB_OK;
    return nbi_fail(&scheduler->desc.hooks, NB_ITEM_TASK_THREAD, NB_ERR_THREAD, function,
                    "called by another thread than the coordinator, or inside a task");
}

nb_result nb_scheduler_budget_open(nb_scheduler *scheduler, uint64_t budget_ns) {
    if (scheduler == NULL) return NBI_FAIL_NULL("scheduler");
    nbi_lane *lane = NULL;
    nb_result result = coordinator_lane(scheduler, &lane, __func__);
    if (result != NB_OK) return result;
    if (budget_ns == 0) budget_ns = NB_SUBMIT_BUDGET_NS_DEFAULT;
    uint64_t start_ns = nbi_clock_now_ns(), spent_ns = 0;
    // At least one, so that even a budget of a nanosecond gets everything started in the end.
    while (spent_ns < budget_ns && nbi_depend_release_held(lane)) spent_ns = nbi_clock_now_ns() - start_ns;
    lane->budget_left_ns = budget_ns - nbi_min_u64(spent_ns, budget_ns);
    lane->has_budget = true;
    return NB_OK;
}

nb_result nb_scheduler_budget_close(nb_scheduler *scheduler) {
    if (scheduler == NULL) return NBI_FAIL_NULL("scheduler");
    nbi_lane *lane = NULL;
    nb_result result = coordinator_lane(scheduler, &lane, __func__);
    if (result == NB_OK) lane->has_budget = false;
    return result;
}
