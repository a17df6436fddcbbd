// SPDX-License-Identifier: MIT
// What a host may ask of a loop, and change about it, beside stepping it.

#include "loop.h"

// The largest double and float below 1.
#define ALPHA_MAX 0x1.fffffffffffffp-1
#define ALPHA_MAX_F32 0x1.fffffep-1f

static bool is_loop(const nb_loop *loop, const char *function) { return nbi_loop_check(loop, function) == NB_OK; }

nb_result nb_loop_quit(nb_loop *loop) {
    // No log here: a signal handler may call this.
    if (loop == NULL || loop->magic != NBI_LOOP_MAGIC) return NB_ERR_MISUSE;
    nbi_atomic_store_release_u32(&loop->is_quitting, 1); // read by the acquire load below
    return NB_OK;
}

bool nb_loop_is_quitting(const nb_loop *loop) {
    if (!is_loop(loop, __func__)) return false;
    return nbi_atomic_load_acquire_u32(&loop->is_quitting) != 0;
}

double nb_loop_alpha(const nb_loop *loop) {
    if (!is_loop(loop, __func__)) return 0.0;
    // A tick is owed: the picture stays just before it.
    if (loop->accumulator >= loop->tick_units) return ALPHA_MAX;
    double alpha = (double)loop->accumulator / (double)loop->tick_units;
    return alpha < 1.0 ? alpha : ALPHA_MAX;
}

float nb_loop_alpha_f32(const nb_loop *loop) {
    float alpha = (float)nb_loop_alpha(loop);
    return alpha < 1.0f ? alpha : ALPHA_MAX_F32; // 0.99999999994 rounds to 1 as a float
}

double nb_loop_dt_s(const nb_loop *loop) {
    if (!is_loop(loop, __func__)) return 0.0;
    return (double)loop->rate.den / (double)loop->rate.num;
}

static uint64_t absolute_tick(const nb_loop *loop) { return loop->tick_count + loop->tick_offset; }

uint64_t nb_loop_tick_count(const nb_loop *loop) { return is_loop(loop, __func__) ? absolute_tick(loop) : 0; }

nb_result nb_loop_set_tick(nb_loop *loop, uint64_t tick_count) {
    nb_result result = NBI_LOOP_CHECK(loop);
    if (result != NB_OK) return result;
    if (tick_count > NB_TICK_COUNT_MAX) {
        return NBI_FAIL(&loop->hooks, NB_ITEM_LOOP_ARGUMENT, NB_ERR_RANGE, "tick %llu is over NB_TICK_COUNT_MAX",
                        nb_llu(tick_count));
    }
    loop->tick_offset = tick_count - loop->tick_count;
    loop->granted_pending = 0;
    return NB_OK;
}

nb_loop_tick nb_loop_tick_at(const nb_loop *loop, uint64_t index) {
    if (!is_loop(loop, __func__)) return (nb_loop_tick){0};
    return (nb_loop_tick){.index = index, .start_ns = nbi_rate_time_ns(loop->rate, index), .dt_s = nb_loop_dt_s(loop)};
}

uint64_t nb_loop_frame_count(const nb_loop *loop) { return is_loop(loop, __func__) ? loop->frame_count : 0; }

uint64_t nb_loop_time_ns(const nb_loop *loop) {
    return is_loop(loop, __func__) ? nbi_rate_time_ns(loop->rate, absolute_tick(loop)) : 0;
}

nb_loop_frame nb_loop_frame_get(const nb_loop *loop) {
    if (!is_loop(loop, __func__)) return (nb_loop_frame){0};
    return (nb_loop_frame){
        .index = loop->frame_count,
        .now_ns = loop->now_ns,
        .delta_ns = loop->delta_ns,
        .tick_count = loop->frame_tick_count,
        .alpha = nb_loop_alpha(loop),
        .alpha_f32 = nb_loop_alpha_f32(loop),
        .is_discontinuity = loop->is_discontinuity,
    };
}

nb_result nb_loop_pace(nb_loop *loop) {
    nb_result result = NBI_LOOP_CHECK(loop);
    if (result != NB_OK) return result;
    if (loop->is_running || loop->is_in_frame) {
        return NBI_FAIL(&loop->hooks, NB_ITEM_LOOP_REENTERED, NB_ERR_MISUSE, "pacing is done between frames");
    }
    result = nbi_pace(loop);
    if (result == NB_OK) return NB_OK;
    return NBI_FAIL(&loop->hooks, NB_ITEM_LOOP_ARGUMENT, result, "the clock cannot sleep");
}

nb_result nb_loop_pause(nb_loop *loop) {
    nb_result result = NBI_LOOP_CHECK(loop);
    if (result == NB_OK) loop->is_paused = true;
    return result;
}

nb_result nb_loop_resume(nb_loop *loop) {
    nb_result result = NBI_LOOP_CHECK(loop);
    if (result != NB_OK) return result;
    loop->is_paused = false;
    loop->granted_pending = 0;
    return NB_OK;
}

nb_result nb_loop_hold(nb_loop *loop, bool is_held) {
    nb_result result = NBI_LOOP_CHECK(loop);
    if (result == NB_OK) loop->is_held = is_held;
    return result;
}

nb_result nb_loop_step(nb_loop *loop, uint64_t tick_count) {
    nb_result result = NBI_LOOP_CHECK(loop);
    if (result != NB_OK) return result;
    uint64_t left = NB_TICK_COUNT_MAX - nbi_min_u64(absolute_tick(loop), NB_TICK_COUNT_MAX);
    if (loop->granted_pending > left || tick_count > left - loop->granted_pending) {
        return NBI_FAIL(&loop->hooks, NB_ITEM_LOOP_ARGUMENT, NB_ERR_RANGE, "too many ticks");
    }
    loop->is_paused = true;
    loop->granted_pending += tick_count;
    return NB_OK;
}

nb_result nb_loop_run_to_tick(nb_loop *loop, uint64_t target_tick_count) {
    nb_result result = NBI_LOOP_CHECK(loop);
    if (result != NB_OK) return result;
    if (target_tick_count < absolute_tick(loop) || target_tick_count > NB_TICK_COUNT_MAX) {
        return NBI_FAIL(&loop->hooks, NB_ITEM_LOOP_ARGUMENT, NB_ERR_RANGE,
                        "tick %llu is behind tick %llu, or over NB_TICK_COUNT_MAX", nb_llu(target_tick_count),
                        nb_llu(absolute_tick(loop)));
    }
    loop->is_paused = true;
    loop->granted_pending = target_tick_count - absolute_tick(loop);
    return NB_OK;
}

nb_result nb_loop_set_scale(nb_loop *loop, uint32_t num, uint32_t den) {
    nb_result result = NBI_LOOP_CHECK(loop);
    if (result != NB_OK) return result;
    if (num == 0 || den == 0 || num > NB_LOOP_SCALE_MAX || den > NB_LOOP_SCALE_MAX) {
        return NBI_FAIL(&loop->hooks, NB_ITEM_LOOP_ARGUMENT, NB_ERR_RANGE, "a scale of %u/%u", num, den);
    }
    nbi_loop_rebase_scale(loop, (nb_rate){num, den});
    return NB_OK;
}

nb_result nb_loop_resync(nb_loop *loop) {
    nb_result result = NBI_LOOP_CHECK(loop);
    if (result == NB_OK) loop->is_resyncing = true;
    return result;
}

nb_result nb_loop_exclude(nb_loop *loop, uint64_t time_ns) {
    nb_result result = NBI_LOOP_CHECK(loop);
    if (result != NB_OK) return result;
    uint64_t room_ns = UINT64_MAX - loop->exclude_pending_ns;
    loop->exclude_pending_ns += nbi_min_u64(time_ns, room_ns);
    return NB_OK;
}

nb_result nb_loop_set_refresh(nb_loop *loop, nb_rate rate) {
    nb_result result = NBI_LOOP_CHECK(loop);
    if (result != NB_OK) return result;
    if (rate.num != 0 && (!nbi_rate_resolve(&rate) || rate.num < rate.den)) {
        return NBI_FAIL(&loop->hooks, NB_ITEM_LOOP_ARGUMENT, NB_ERR_RANGE, "a refresh rate of %u/%u", rate.num,
                        rate.den);
    }
    nbi_snap_set(&loop->snap, rate, loop->rate.num);
    return NB_OK;
}

nb_result nb_loop_set_pace(nb_loop *loop, nb_rate rate) {
    nb_result result = NBI_LOOP_CHECK(loop);
    if (result != NB_OK) return result;
    if (!nbi_rate_resolve(&rate)) {
        return NBI_FAIL(&loop->hooks, NB_ITEM_LOOP_ARGUMENT, NB_ERR_RANGE, "a pace of %u/%u", rate.num, rate.den);
    }
    loop->pacer.rate = rate;
    loop->pacer.is_given = true;
    loop->pacer.is_anchored = false;
    return NB_OK;
}

nb_result nb_loop_group_add(nb_loop *loop, nb_rate rate, uint32_t *group) {
    nb_result result = NBI_LOOP_CHECK(loop);
    if (result != NB_OK) return result;
    if (group == NULL) return NBI_FAIL(&loop->hooks, NB_ITEM_LOOP_ARGUMENT, NB_ERR_MISUSE, "group is NULL");
    if (!nbi_rate_resolve(&rate)) {
        return NBI_FAIL(&loop->hooks, NB_ITEM_LOOP_ARGUMENT, NB_ERR_RANGE, "a rate of %u/%u", rate.num, rate.den);
    }
    if (loop->group_count == NB_LOOP_GROUP_COUNT_MAX) return NB_FULL;
    *group = loop->group_count++;
    loop->groups[*group] = (nb_loop_group){.rate = rate, .base_tick = loop->tick_count};
    return NB_OK;
}

// Ticks of a group that are due once the primary ticks since it was added have run: floor(n * den/num * rate).
static uint64_t group_due(const nb_loop *loop, const nb_loop_group *group) {
    nbi_u128 run = loop->tick_count - group->base_tick;
    return (uint64_t)(run * loop->rate.den * group->rate.num / ((nbi_u128)loop->rate.num * group->rate.den));
}

bool nb_loop_next_group_tick(nb_loop *loop, uint32_t index, nb_loop_tick *tick) {
    if (!is_loop(loop, __func__)) return false;
    if (index >= loop->group_count || tick == NULL) {
        NBI_FAIL(&loop->hooks, NB_ITEM_LOOP_ARGUMENT, NB_ERR_MISUSE, "no group %u, or tick is NULL", index);
        return false;
    }
    nb_loop_group *group = &loop->groups[index];
    uint64_t due = group_due(loop, group);
    if (group->tick_count >= due) return false;
    *tick = (nb_loop_tick){
        .index = group->tick_count,
        .start_ns = nbi_rate_time_ns(loop->rate, group->base_tick) + nbi_rate_time_ns(group->rate, group->tick_count),
        .dt_s = (double)group->rate.den / (double)group->rate.num,
        .is_last = group->tick_count + 1 == due,
    };
    ++group->tick_count;
    return true;
}

static void report_pacing(const nb_loop_pacer *pacer, nb_loop_report *out) {
    out->pace_wait_count = pacer->wait_count;
    out->pace_skip_count = pacer->skip_count;
    out->pace_sleep_ns = pacer->sleep_ns;
    out->pace_spin_ns = pacer->spin_ns;
    out->pace_error_ns = pacer->error_ns;
    out->pace_error_ns_max = pacer->error_ns_max;
}

nb_loop_report nb_loop_report_get(const nb_loop *loop) {
    if (NBI_LOOP_CHECK(loop) != NB_OK) return (nb_loop_report){0};
    uint64_t dropped_ns = nbi_rate_time_ns(loop->rate, loop->dropped_count);
    nb_loop_report report = {
        .frame_count = loop->frame_count,
        .tick_count = loop->tick_count,
        .time_ns = nb_loop_time_ns(loop),
        .elapsed_ns = loop->elapsed_ns,
        .excluded_ns = loop->excluded_ns,
        .paused_ns = loop->paused_ns,
        .clamped_ns = loop->clamped_ns,
        .dropped_tick_count = loop->dropped_count,
        .dropped_ns = loop->clamped_ns + nbi_min_u64(dropped_ns, UINT64_MAX - loop->clamped_ns),
        .granted_tick_count = loop->granted_count,
        .clamp_time_count = loop->clamp_time_count,
        .clamp_ticks_count = loop->clamp_ticks_count,
        .clamp_cost_count = loop->clamp_cost_count,
        .discontinuity_count = loop->discontinuity_count,
        .clock_backwards_count = loop->backwards_count,
        .clock_adopt_count = loop->adopt_count,
        .clock_still_count = loop->still_total,
        .overrun_count = loop->overrun_count,
        .tick_cost_ns = nbi_min_u64(loop->cost_mean_ns, loop->cost_last_ns),
        .refresh_rate = loop->snap.rate,
        .is_snapping = loop->snap.is_locked,
        .snap_offset_ns = nbi_snap_carry(&loop->snap, loop->rate.num) / (int64_t)loop->rate.num,
    };
    report_pacing(&loop->pacer, &report);
    return report;
}
