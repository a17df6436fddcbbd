// SPDX-License-Identifier: MIT
// Deadline pacing. Frames start on an absolute grid, so an error of one wait is not passed on to the next, and a late
// frame skips points instead of running a burst. A sleep covers nearly all of a wait; a short spin covers what the
// sleep is known to be late by.

#include "../platform/platform.h"
#include "loop.h"

// The spin is at most this part of a period: half a percent of a core, so that pacing stays below one percent.
#define SPIN_PER_PERIOD 200

// Reads of the clock in one spin at most. The longest useful spin is far shorter; a clock that stands still must not
// hang the frame.
#define SPIN_COUNT_MAX 100000

// Part of a period kept free when a frame starts late on purpose: costs vary.
#define LATCH_MARGIN_PER_PERIOD 16

// Timer slack asked for, nanoseconds: Linux delays timers by 50 us unless told otherwise, more than all other errors.
#define TIMER_SLACK_NS 1000

static uint64_t period_ns(const nb_loop_pacer *pacer) { return nbi_rate_grid_ns(pacer->rate, 1); }

static uint64_t grid_at(const nb_loop_pacer *pacer, uint64_t index) {
    uint64_t offset_ns = nbi_rate_grid_ns(pacer->rate, index);
    return offset_ns > UINT64_MAX - pacer->anchor_ns ? UINT64_MAX : pacer->anchor_ns + offset_ns;
}

// Follows a later wake-up at once by half, an earlier one slowly: being late costs more than spinning a little longer.
static void calibrate(nb_loop_pacer *pacer, uint64_t late_ns) {
    if (late_ns > pacer->wake_late_ns) {
        pacer->wake_late_ns += (late_ns - pacer->wake_late_ns + 1) / 2;
    } else {
        pacer->wake_late_ns -= (pacer->wake_late_ns - late_ns + 15) / 16;
    }
}

static uint64_t sleep_until(nb_loop *loop, uint64_t now_ns, uint64_t deadline_ns) {
    nb_clock_sleep_until_ns(&loop->clock, deadline_ns);
    uint64_t woken_ns = nb_clock_now_ns(&loop->clock);
    loop->pacer.sleep_ns += nbi_loop_since(woken_ns, now_ns);
    calibrate(&loop->pacer, nbi_loop_since(woken_ns, deadline_ns));
    return woken_ns;
}

static uint64_t spin_until(nb_loop *loop, uint64_t now_ns, uint64_t deadline_ns) {
    uint64_t start_ns = now_ns;
    for (uint32_t i = 0; i < SPIN_COUNT_MAX && now_ns < deadline_ns; ++i) {
        nbi_cpu_relax();
        now_ns = nb_clock_now_ns(&loop->clock);
    }
    loop->pacer.spin_ns += nbi_loop_since(now_ns, start_ns);
    return now_ns;
}

static void wait_until(nb_loop *loop, uint64_t now_ns, uint64_t deadline_ns) {
    nb_loop_pacer *pacer = &loop->pacer;
    uint64_t spin_ns = nbi_min_u64(pacer->wake_late_ns, period_ns(pacer) / SPIN_PER_PERIOD);
    if (deadline_ns - now_ns > spin_ns) now_ns = sleep_until(loop, now_ns, deadline_ns - spin_ns);
    now_ns = spin_until(loop, now_ns, deadline_ns);
    ++pacer->wait_count;
    pacer->error_ns = nbi_loop_since(now_ns, deadline_ns);
    pacer->error_ns_max = nbi_max_u64(pacer->error_ns_max, pacer->error_ns);
}

static void anchor(nb_loop *loop, uint64_t now_ns) {
    nb_loop_pacer *pacer = &loop->pacer;
    if (loop->clock.now_ns == NULL) nbi_thread_set_timer_slack(TIMER_SLACK_NS); // where the OS has it
    pacer->anchor_ns = now_ns;
    pacer->index = 0;
    pacer->grid_ns = now_ns;
    pacer->is_anchored = true;
    pacer->has_grid_ns = true;
}

// When the frame at the current grid point starts: there, or late enough to end just before the next point.
static uint64_t start_of(const nb_loop_pacer *pacer) {
    if (!pacer->is_late_latched) return pacer->grid_ns;
    uint64_t reserved_ns = pacer->frame_cost_ns + period_ns(pacer) / LATCH_MARGIN_PER_PERIOD;
    return nbi_max_u64(pacer->grid_ns, nbi_loop_since(grid_at(pacer, pacer->index + 1), reserved_ns));
}

// More than two periods ahead of the clock: it stepped back, and waiting for the old grid could take for ever. More
// than half of all time behind it: the reading is wild, and the points in between were not missed.
static bool is_off_grid(const nb_loop_pacer *pacer, uint64_t next_ns, uint64_t now_ns) {
    return next_ns > now_ns ? next_ns - now_ns > 2 * period_ns(pacer) : now_ns - next_ns > INT64_MAX;
}

nb_result nbi_pace(nb_loop *loop) {
    nb_loop_pacer *pacer = &loop->pacer;
    if (!nbi_loop_has_clock_that_sleeps(loop)) return NB_ERR_UNSUPPORTED;
    uint64_t now_ns = nb_clock_now_ns(&loop->clock);
    if (now_ns == NBI_NO_READING) return NB_OK; // the frame has no grid point, and no time
    uint64_t next_ns = pacer->is_anchored ? grid_at(pacer, pacer->index + 1) : 0;
    if (!pacer->is_anchored || is_off_grid(pacer, next_ns, now_ns)) {
        anchor(loop, now_ns);
        return NB_OK;
    }
    uint64_t index = pacer->index + 1;
    if (now_ns >= next_ns) {
        index = nbi_rate_index_at(pacer->rate, now_ns - pacer->anchor_ns);
        pacer->skip_count += index - (pacer->index + 1);
    }
    pacer->index = index;
    pacer->grid_ns = grid_at(pacer, index);
    pacer->has_grid_ns = true;
    uint64_t start_ns = start_of(pacer);
    if (now_ns < start_ns) wait_until(loop, now_ns, start_ns);
    return NB_OK;
}

// A maximum that falls by 1/64 a frame: one dear frame makes a second of frames start early, which costs latency only.
void nbi_pace_frame_cost(nb_loop_pacer *pacer, uint64_t cost_ns) {
    uint64_t fallen_ns = pacer->frame_cost_ns - pacer->frame_cost_ns / 64;
    pacer->frame_cost_ns = nbi_max_u64(cost_ns, fallen_ns);
}

uint64_t nbi_loop_pace_ns(const nb_loop *loop) {
    bool has_pace = loop->is_paced || loop->pacer.is_given;
    return has_pace ? nbi_rate_time_ns(loop->pacer.rate, 1) : 0;
}

uint64_t nbi_loop_period_ns(const nb_loop *loop) {
    uint64_t refresh_ns = loop->snap.rate.num != 0 ? nbi_rate_time_ns(loop->snap.rate, 1) : 0;
    return nbi_max_u64(refresh_ns, nbi_loop_pace_ns(loop));
}
