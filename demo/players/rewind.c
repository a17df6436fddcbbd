// SPDX-License-Identifier: MIT
// Time that runs backwards.

#include "rewind.h"

#include "nebula/rollback.h"

static bool is_rewind_due(rewind_plan *plan, uint64_t now, bool is_key_held) {
    if (plan->at_tick != 0 && now >= plan->at_tick) {
        plan->left = plan->for_ticks;
        plan->at_tick = 0;
    }
    return plan->left > 0 || is_key_held;
}

static void turn(rewind_plan *plan, nb_loop *loop, bool is_back) {
    if (is_back == plan->is_back) return;
    plan->is_back = is_back;
    if (is_back) ++plan->turn_count;
    if (is_back)
        nb_loop_pause(loop);
    else
        nb_loop_resume(loop);
}

nb_result rewind_step(rewind_plan *plan, nb_engine *engine, bool is_key_held) {
    nb_loop *loop = nb_engine_loop(engine);
    uint64_t now = nb_loop_tick_count(loop);
    if (now == 0) plan->left = 0; // nothing was before
    bool is_back = is_rewind_due(plan, now, is_key_held) && now > 0;
    turn(plan, loop, is_back);
    if (!is_back) return NB_OK;
    if (plan->left > 0) --plan->left;
    nb_result result = nb_engine_rewind(engine, now - 1);
    if (result == NB_OK) ++plan->back_count;
    if (result != NB_ERR_RANGE) return result;
    plan->left = 0; // nothing older is kept
    if (!is_key_held) turn(plan, loop, false);
    return NB_OK;
}
