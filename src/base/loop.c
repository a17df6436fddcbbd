// SPDX-License-Identifier: MIT
// Frames and ticks: begin, next tick, end, and the loop around them.

#include "loop.h"

#include <string.h>

// The seed of every game loop: no more than a quarter of a second is simulated at once.
#define FRAME_NS_MAX_DEFAULT UINT64_C(250000000)

// Three quarters of a frame at 30 frames a second, the least that still looks like motion; the rest is for drawing.
#define TICK_BUDGET_NS_DEFAULT UINT64_C(25000000)

// Longer than any frame of a loaded machine, shorter than a suspend, a breakpoint or a loading screen.
#define GAP_NS_DEFAULT UINT64_C(1000000000)

// One record a second and cause says enough.
#define LOG_INTERVAL_NS UINT64_C(1000000000)

nb_loop_desc nb_loop_desc_default(void) {
    return (nb_loop_desc){
        .tick_rate = {60, 1},
        .frame_ns_max = FRAME_NS_MAX_DEFAULT,
        .tick_budget_ns = TICK_BUDGET_NS_DEFAULT,
        .gap_ns = GAP_NS_DEFAULT,
        .hooks = nb_hooks_default(),
    };
}

static nb_result resolve_rates(nb_loop_desc *desc, const nb_hooks *hooks) {
    if (desc->tick_rate.num == 0) desc->tick_rate = (nb_rate){60, 1};
    bool is_fine = nbi_rate_resolve(&desc->tick_rate);
    // One that is given limits the frames; by default they only wait for the next tick.
    if (desc->pace_rate.num != 0) is_fine = is_fine && nbi_rate_resolve(&desc->pace_rate);
    // A refresh period is at most a second, so that a snapped frame's units stay in bounds.
    if (desc->refresh_rate.num != 0) {
        is_fine = is_fine && nbi_rate_resolve(&desc->refresh_rate) && desc->refresh_rate.num >= desc->refresh_rate.den;
    }
    if (is_fine) return NB_OK;
    return nbi_fail(hooks, NB_ITEM_LOOP_ARGUMENT, NB_ERR_RANGE, "nb_loop_init", "a rate is out of bounds");
}

nb_result nbi_loop_desc_resolve(nb_loop_desc *desc, const nb_hooks *hooks) {
    nb_result result = resolve_rates(desc, hooks);
    if (result != NB_OK) return result;
    if (desc->frame_ns_max == 0) desc->frame_ns_max = FRAME_NS_MAX_DEFAULT;
    if (desc->frame_ns_max > NB_LOOP_FRAME_NS_LIMIT) {
        return nbi_fail(hooks, NB_ITEM_LOOP_ARGUMENT, NB_ERR_RANGE, "nb_loop_init",
                        "frame_ns_max %llu is above the limit", nb_llu(desc->frame_ns_max));
    }
    if (desc->tick_budget_ns == 0) desc->tick_budget_ns = TICK_BUDGET_NS_DEFAULT;
    if (desc->gap_ns == 0) desc->gap_ns = GAP_NS_DEFAULT;
    if (desc->tick_count_max == 0) {
        uint64_t tick_units = NBI_NS_PER_S * desc->tick_rate.den;
        uint64_t frame_units = desc->frame_ns_max * desc->tick_rate.num;
        desc->tick_count_max = (uint32_t)((frame_units + tick_units - 1) / tick_units);
    }
    if (desc->is_refresh_estimated && desc->stats == NULL) {
        return nbi_fail(hooks, NB_ITEM_LOOP_ARGUMENT, NB_ERR_MISUSE, "nb_loop_init",
                        "estimating the refresh rate needs stats");
    }
    return NB_OK;
}

nb_result nb_loop_init(nb_loop *loop, const nb_loop_desc *given) {
    if (loop == NULL) return NBI_FAIL_NULL("loop");
    nb_loop_desc desc = given == NULL ? (nb_loop_desc){0} : *given;
    nb_hooks hooks = nbi_hooks_resolve(&desc.hooks);
    nb_result result = nbi_loop_desc_resolve(&desc, &hooks);
    if (result != NB_OK) return result;
    memset(loop, 0, sizeof *loop);
    loop->magic = NBI_LOOP_MAGIC;
    loop->is_paused = desc.is_paused;
    loop->is_unpaced = desc.is_unpaced;
    loop->rate = desc.tick_rate;
    loop->scale = (nb_rate){1, 1};
    loop->tick_units = NBI_NS_PER_S * desc.tick_rate.den;
    loop->frame_ns_max = desc.frame_ns_max;
    loop->tick_budget_ns = desc.tick_budget_ns;
    loop->gap_ns = desc.gap_ns;
    loop->tick_count_max = desc.tick_count_max;
    loop->pacer.is_given = desc.pace_rate.num != 0;
    loop->pacer.rate = loop->pacer.is_given ? desc.pace_rate : desc.tick_rate;
    loop->pacer.is_late_latched = desc.is_late_latched;
    loop->clock = desc.clock;
    loop->stats = desc.stats;
    loop->hooks = hooks;
    nbi_snap_set(&loop->snap, desc.refresh_rate, desc.tick_rate.num);
    loop->snap.is_estimated = desc.is_refresh_estimated;
    return NB_OK;
}

NB_STATIC_ASSERT(sizeof(((nb_loop *)0)->quiet) / sizeof(nb_loop_quiet) == NBI_QUIET_COUNT, "one for each cause");

nb_result nbi_loop_check(const nb_loop *loop, const char *function) {
    if (loop == NULL) return nbi_fail(NULL, NB_ITEM_BASE_NULL, NB_ERR_MISUSE, function, "loop is NULL");
    if (loop->magic == NBI_LOOP_MAGIC) return NB_OK;
    return nbi_fail(NULL, NB_ITEM_LOOP_ARGUMENT, NB_ERR_MISUSE, function, "the loop was never initialised");
}

bool nbi_loop_may_log(nb_loop *loop, int cause, uint64_t *suppressed) {
    nb_loop_quiet *quiet = &loop->quiet[cause];
    uint64_t left_ns = quiet->until_ns - loop->elapsed_ns; // elapsed time may wrap
    if (left_ns != 0 && left_ns <= LOG_INTERVAL_NS) {
        ++quiet->suppressed;
        return false;
    }
    *suppressed = quiet->suppressed;
    quiet->suppressed = 0;
    quiet->until_ns = loop->elapsed_ns + LOG_INTERVAL_NS;
    return true;
}

// What may not be called from a callback of nb_loop_run, nor inside or outside a frame.
static nb_result check_frame_state(const nb_loop *loop, bool is_in_frame, const char *function) {
    nb_result result = nbi_loop_check(loop, function);
    if (result != NB_OK) return result;
    if (loop->is_running) {
        return nbi_fail(&loop->hooks, NB_ITEM_LOOP_REENTERED, NB_ERR_MISUSE, function, "called inside nb_loop_run");
    }
    if (loop->is_in_frame == is_in_frame) return NB_OK;
    return nbi_fail(&loop->hooks, NB_ITEM_LOOP_REENTERED, NB_ERR_MISUSE, function,
                    is_in_frame ? "no frame has begun" : "the frame before has not ended");
}

static void log_discontinuity(nb_loop *loop, const char *function) {
    uint64_t suppressed;
    if (!nbi_loop_may_log(loop, NBI_QUIET_DISCONTINUITY, &suppressed)) return;
    nbi_log(&loop->hooks, NB_LOG_WARNING, NB_ITEM_LOOP_DISCONTINUITY, function,
            "%.1f ms since the frame before: loading, suspend or a debugger? (%llu reports held back)",
            (double)loop->delta_ns / 1e6, nb_llu(suppressed));
}

static void begin_frame(nb_loop *loop, uint64_t delta_ns, const char *function) {
    loop->is_in_frame = true;
    loop->delta_ns = delta_ns;
    loop->frame_tick_count = 0;
    loop->is_tick_last = false;
    loop->capped_by = NBI_CAP_NONE;
    loop->tick_spent_ns = 0;
    loop->is_tick_measured = false;
    loop->is_discontinuity = loop->is_resyncing || delta_ns > loop->gap_ns;
    if (loop->is_discontinuity) ++loop->discontinuity_count;
    if (loop->is_discontinuity && !loop->is_resyncing) log_discontinuity(loop, function);
    nbi_loop_add_time(loop, delta_ns, function);
}

static void begin_clocked(nb_loop *loop, const char *function) {
    uint64_t clock_ns = nb_clock_now_ns(&loop->clock), now_ns = clock_ns;
    nb_loop_pacer *pacer = &loop->pacer;
    loop->latch_ns = 0;
    loop->is_paced = pacer->has_grid_ns;
    if (pacer->has_grid_ns) {
        // The grid point, not the moment the wait ended: waits end late by a varying bit, ticks must not.
        now_ns = pacer->grid_ns;
        pacer->has_grid_ns = false;
    }
    uint64_t delta_ns = nbi_loop_read(loop, now_ns, function);
    // No later than a late wait ends: a slice that ends at a wild reading would swallow the input of the ticks to come.
    bool is_near = nbi_loop_since(clock_ns, loop->now_ns) <= nbi_rate_time_ns(pacer->rate, 2);
    if (loop->is_paced && pacer->is_late_latched && is_near) loop->latch_ns = clock_ns;
    loop->measured_ns = delta_ns == 0 ? 0 : nbi_loop_since(clock_ns, loop->frame_start_ns);
    loop->is_clocked = true;
    loop->frame_start_ns = clock_ns;
    begin_frame(loop, delta_ns, function);
}

nb_result nb_loop_begin(nb_loop *loop) {
    nb_result result = check_frame_state(loop, false, __func__);
    if (result == NB_OK) begin_clocked(loop, __func__);
    return result;
}

nb_result nb_loop_begin_delta(nb_loop *loop, uint64_t delta_ns) {
    nb_result result = check_frame_state(loop, false, __func__);
    if (result != NB_OK) return result;
    delta_ns = nbi_loop_read_delta(loop, delta_ns, __func__);
    loop->is_clocked = false;
    loop->latch_ns = 0;
    loop->measured_ns = delta_ns;
    begin_frame(loop, delta_ns, __func__);
    return NB_OK;
}

// The cost of the tick that ran since it was handed out. Returns the clock, so that the next tick need not read it.
static uint64_t settle_cost(nb_loop *loop) {
    if (!loop->is_clocked || loop->tick_budget_ns == NB_LOOP_UNLIMITED) return 0;
    uint64_t now_ns = nb_clock_now_ns(&loop->clock);
    if (!loop->is_tick_measured) return now_ns;
    uint64_t cost_ns = nbi_loop_since(now_ns, loop->tick_start_ns);
    // A moving mean over about eight ticks, moved by whole nanoseconds.
    if (loop->cost_mean_ns == 0) loop->cost_mean_ns = cost_ns;
    loop->cost_mean_ns = loop->cost_mean_ns - loop->cost_mean_ns / 8 + cost_ns / 8;
    loop->cost_last_ns = cost_ns;
    loop->tick_spent_ns += cost_ns;
    loop->is_tick_measured = false;
    return now_ns;
}

static bool has_tick(const nb_loop *loop) {
    if (loop->is_held) return false;
    return loop->is_paused ? loop->granted_pending > 0 : loop->accumulator >= loop->tick_units;
}

static void take_tick(nb_loop *loop) {
    if (loop->is_paused) {
        --loop->granted_pending;
        ++loop->granted_count;
        loop->slice_end_ns = nbi_max_u64(loop->slice_end_ns, loop->now_ns);
    } else {
        loop->accumulator -= loop->tick_units;
        loop->slice_end_ns = nbi_max_u64(loop->slice_end_ns, nbi_loop_slice_end(loop));
    }
    ++loop->tick_count;
    ++loop->frame_tick_count;
}

// Whether the tick just taken ends the frame's ticks. The cost clamp looks one tick ahead, because what is announced as
// the last tick must be the last: it asks whether this tick and one more fit what is left of the budget. The lower of
// mean and newest cost is taken: after one slow tick the loop should catch up, and if the next ones are slow too, what
// they really took is already in tick_spent_ns.
static bool is_last_tick(nb_loop *loop) {
    if (!has_tick(loop)) return true;
    if (loop->frame_tick_count >= loop->tick_count_max) {
        loop->capped_by = NBI_CAP_TICKS;
        return true;
    }
    if (!loop->is_clocked || loop->tick_budget_ns == NB_LOOP_UNLIMITED) return false;
    uint64_t cost_ns = nbi_min_u64(loop->cost_mean_ns, loop->cost_last_ns);
    uint64_t left_ns = loop->tick_budget_ns - nbi_min_u64(loop->tick_spent_ns, loop->tick_budget_ns);
    if (cost_ns <= left_ns / 2) return false;
    loop->capped_by = NBI_CAP_COST;
    return true;
}

static bool next_tick(nb_loop *loop, nb_loop_tick *tick) {
    uint64_t now_ns = settle_cost(loop);
    if (loop->is_tick_last || !has_tick(loop) || nb_loop_is_quitting(loop)) return false;
    take_tick(loop);
    loop->is_tick_last = is_last_tick(loop);
    loop->tick_start_ns = now_ns;
    loop->is_tick_measured = true;
    bool is_latched = loop->is_tick_last && loop->latch_ns > loop->slice_end_ns;
    if (is_latched) loop->slice_end_ns = loop->latch_ns;
    uint64_t index = loop->tick_count + loop->tick_offset - 1;
    *tick = (nb_loop_tick){
        .index = index,
        .start_ns = nbi_rate_time_ns(loop->rate, index),
        .input_until_ns = loop->is_slice_open ? UINT64_MAX : loop->slice_end_ns,
        .dt_s = nb_loop_dt_s(loop),
        .index_in_frame = loop->frame_tick_count - 1,
        .is_last = loop->is_tick_last,
    };
    loop->is_slice_open = false;
    return true;
}

bool nb_loop_next_tick(nb_loop *loop, nb_loop_tick *tick) {
    if (check_frame_state(loop, true, __func__) != NB_OK) return false;
    if (tick == NULL) {
        NBI_FAIL(&loop->hooks, NB_ITEM_LOOP_ARGUMENT, NB_ERR_MISUSE, "tick is NULL");
        return false;
    }
    return next_tick(loop, tick);
}

// Ticks still owed. One is kept: where frames alternate between 0 and 2 due ticks and two do not fit the budget, it
// runs in the next frame. More will not be made up for.
static void drop_owed(nb_loop *loop, const char *function) {
    if (loop->capped_by == NBI_CAP_TICKS) ++loop->clamp_ticks_count;
    if (loop->capped_by == NBI_CAP_COST) ++loop->clamp_cost_count;
    if (loop->accumulator < 2 * loop->tick_units) return;
    loop->dropped_count += loop->accumulator / loop->tick_units;
    loop->accumulator %= loop->tick_units;
    if (loop->is_paused || loop->is_held || nb_loop_is_quitting(loop)) return; // asked for, so no news
    uint64_t suppressed;
    if (!nbi_loop_may_log(loop, NBI_QUIET_CLAMPED, &suppressed)) return;
    nbi_log(&loop->hooks, NB_LOG_WARNING, NB_ITEM_LOOP_CLAMPED, function,
            "ticks take too long or are too many: %llu dropped so far (%llu reports held back)",
            nb_llu(loop->dropped_count), nb_llu(suppressed));
}

static void measure_frame(nb_loop *loop, const char *function) {
    if (!loop->is_clocked) return;
    uint64_t work_ns = nbi_loop_since(nb_clock_now_ns(&loop->clock), loop->frame_start_ns);
    nbi_pace_frame_cost(&loop->pacer, work_ns);
    uint64_t limit_ns = nbi_rate_time_ns(loop->pacer.rate, 3) / 2;
    // Without a grid the work may include waiting for the display.
    if (!loop->is_paced || work_ns <= limit_ns) return;
    ++loop->overrun_count;
    uint64_t suppressed;
    if (!nbi_loop_may_log(loop, NBI_QUIET_OVERRUN, &suppressed)) return;
    nbi_log(&loop->hooks, NB_LOG_WARNING, NB_ITEM_LOOP_OVERRUN, function,
            "a frame's work took %.1f ms, more than 1.5 frame periods (%llu reports held back)", (double)work_ns / 1e6,
            nb_llu(suppressed));
}

static void end_frame(nb_loop *loop, const char *function) {
    drop_owed(loop, function);
    measure_frame(loop, function);
    loop->is_in_frame = false;
    ++loop->frame_count;
    // A frame without a length (the first of a clock) or with a meaningless one would spoil the statistics.
    if (loop->stats == NULL || loop->measured_ns == 0 || loop->is_discontinuity) return;
    nb_frame_record record = {
        .frame_ns = loop->measured_ns, .tick_count = loop->frame_tick_count, .alpha = nb_loop_alpha_f32(loop)};
    nb_frame_stats_add(loop->stats, &record);
    nbi_snap_estimate(loop);
}

nb_result nb_loop_end(nb_loop *loop) {
    nb_result result = check_frame_state(loop, true, __func__);
    if (result == NB_OK) end_frame(loop, __func__);
    return result;
}

static void run_groups(nb_loop *loop, const nb_loop_callbacks *callbacks) {
    if (callbacks->group_fn == NULL) return;
    for (uint32_t group = 0; group < loop->group_count; ++group) {
        nb_loop_tick tick;
        while (!nb_loop_is_quitting(loop) && nb_loop_next_group_tick(loop, group, &tick)) {
            callbacks->group_fn(callbacks->user, group, &tick);
        }
    }
}

static void run_frame(nb_loop *loop, const nb_loop_callbacks *callbacks, const char *function) {
    if (!loop->is_unpaced) nbi_pace(loop);
    begin_clocked(loop, function);
    nb_loop_tick tick;
    while (next_tick(loop, &tick)) {
        callbacks->tick_fn(callbacks->user, &tick);
        run_groups(loop, callbacks);
    }
    if (callbacks->frame_fn != NULL && !nb_loop_is_quitting(loop)) {
        nb_loop_frame frame = nb_loop_frame_get(loop);
        callbacks->frame_fn(callbacks->user, &frame);
    }
    if (callbacks->render_fn != NULL && !nb_loop_is_quitting(loop)) {
        nb_loop_frame frame = nb_loop_frame_get(loop);
        callbacks->render_fn(callbacks->user, &frame);
    }
    end_frame(loop, function);
}

nb_result nb_loop_run(nb_loop *loop, const nb_loop_callbacks *callbacks) {
    nb_result result = check_frame_state(loop, false, __func__);
    if (result != NB_OK) return result;
    if (callbacks == NULL || callbacks->tick_fn == NULL) {
        return NBI_FAIL(&loop->hooks, NB_ITEM_LOOP_ARGUMENT, NB_ERR_MISUSE, "there is no tick_fn");
    }
    if (!loop->is_unpaced && !nbi_loop_has_clock_that_sleeps(loop)) {
        return NBI_FAIL(&loop->hooks, NB_ITEM_LOOP_ARGUMENT, NB_ERR_UNSUPPORTED, "the clock cannot sleep");
    }
    loop->is_running = true;
    while (!nb_loop_is_quitting(loop)) run_frame(loop, callbacks, __func__);
    loop->is_running = false;
    // A quit is spent by the run it ended; read by the acquire load in nb_loop_is_quitting.
    nbi_atomic_store_release_u32(&loop->is_quitting, 0);
    return NB_OK;
}
