// SPDX-License-Identifier: MIT
// Refresh snapping. Frames of a display are whole refresh periods long; what a clock measures is that plus noise. A
// tick rate equal to the refresh rate turns the noise into frames with 0 or 2 ticks. So a frame's time is rounded to
// whole periods, and what was rounded off is carried: the snapped time never leaves the clock's by more than 3/4 of a
// period, and not at all in the long run.
//
// Whether the display really runs at that rate is judged over windows of frames, with a gap between "stop snapping" and
// "start again": one late frame changes nothing, and a variable-refresh display is left alone within a second.

#include "frame_stats.h"
#include "loop.h"

// Frames in a window: about a second at 60 Hz, so a wrong rate does not show for long.
#define WINDOW_COUNT 64

// Snapping ends below 3/4 and starts from 7/8 of the frames near a multiple of the period.
#define WINDOW_GOOD_TO_STAY (WINDOW_COUNT * 3 / 4)
#define WINDOW_GOOD_TO_START (WINDOW_COUNT * 7 / 8)

// Frames an estimate looks at: with 1 ms of noise the mean of 512 is good to 2 / (512 * 16.7) = 0.023 %, enough to tell
// 59.94 from 60 Hz (0.1 %).
#define ESTIMATE_COUNT 512

// Period of a frame rate an estimate believes in: 500 Hz to 20 Hz.
#define ESTIMATE_NS_MIN UINT64_C(2000000)
#define ESTIMATE_NS_MAX UINT64_C(50000000)

// Rates displays are sold with; an estimate near one of them is taken to be it.
static const nb_rate STANDARD_RATES[] = {
    {24000, 1001}, {24, 1}, {25, 1}, {30000, 1001}, {30, 1},  {48, 1},  {50, 1},  {60000, 1001}, {60, 1},
    {72, 1},       {75, 1}, {85, 1}, {90, 1},       {100, 1}, {120, 1}, {144, 1}, {165, 1},      {240, 1},
};

// A period in 1/rate.num nanoseconds: the scale in which every period is a whole number.
static int64_t period_of(const nb_loop_snap *snap) { return (int64_t)(NBI_NS_PER_S * snap->rate.den); }

int64_t nbi_snap_carry(const nb_loop_snap *snap, uint32_t tick_num) {
    if (snap->rate.num == 0) return snap->pending_units;
    // Exact: snapped time is only ever handed out in whole units, and `rest` is what that left over.
    nbi_i128 carry = (nbi_i128)snap->residual * tick_num + (nbi_i128)snap->rest;
    return (int64_t)(carry / snap->rate.num) + snap->pending_units;
}

// Moves the residual to where raw frames work it off.
static void fold(nb_loop_snap *snap, uint32_t tick_num) {
    snap->pending_units = nbi_snap_carry(snap, tick_num);
    snap->residual = 0;
    snap->rest = 0;
}

static void restart_window(nb_loop_snap *snap) {
    snap->window_count = 0;
    snap->window_good = 0;
    snap->window_drift = 0;
    snap->window_low = 0;
    snap->window_high = 0;
}

void nbi_snap_set(nb_loop_snap *snap, nb_rate refresh, uint32_t tick_num) {
    fold(snap, tick_num);
    snap->rate = refresh;
    snap->is_locked = refresh.num != 0;
    snap->estimate_wait = ESTIMATE_COUNT;
    restart_window(snap);
    if (refresh.num == 0) return;
    nbi_u128 units = (nbi_u128)NBI_NS_PER_S * refresh.den * tick_num;
    snap->period_units = (uint64_t)(units / refresh.num);
    snap->period_rest = (uint64_t)(units % refresh.num);
}

static int64_t magnitude(int64_t value) { return value < 0 ? -value : value; }

// Frames of a display wander around its grid, by the noise of the clock; frames of anything else walk away from it. So
// the width of the path tells them apart, where single frames cannot.
static void judge_window(nb_loop_snap *snap, uint32_t tick_num) {
    int64_t width = snap->window_high - snap->window_low, period = period_of(snap);
    if (snap->is_locked) {
        // 3/4 of a period in a window is 1.2 %, more than any crystal is off: it is another rate.
        if (snap->window_good < WINDOW_GOOD_TO_STAY || width > period / 4 * 3) {
            fold(snap, tick_num);
            snap->is_locked = false;
            snap->estimate_wait = ESTIMATE_COUNT;
        }
    } else if (snap->window_good >= WINDOW_GOOD_TO_START && width <= period / 2) {
        snap->is_locked = true;
    }
    restart_window(snap);
}

static void watch(nb_loop_snap *snap, int64_t count, int64_t deviation, uint32_t tick_num) {
    if (count >= 1 && magnitude(deviation) <= period_of(snap) / 4) ++snap->window_good;
    snap->window_drift += deviation;
    if (snap->window_drift < snap->window_low) snap->window_low = snap->window_drift;
    if (snap->window_drift > snap->window_high) snap->window_high = snap->window_drift;
    if (++snap->window_count == WINDOW_COUNT) judge_window(snap, tick_num);
}

static uint64_t raw_units(nb_loop_snap *snap, uint64_t delta_ns, uint32_t tick_num) {
    int64_t units = (int64_t)(delta_ns * tick_num) + snap->pending_units;
    snap->pending_units = units < 0 ? units : 0;
    return units < 0 ? 0 : (uint64_t)units;
}

// `count` periods, give or take one where the residual has grown past 3/4 of a period. After such a correction it is a
// quarter period on the other side, so noise cannot bounce it back.
static uint64_t snapped_units(nb_loop_snap *snap, int64_t count, int64_t deviation) {
    int64_t period = period_of(snap), limit = period / 4 * 3;
    snap->residual += deviation;
    if (snap->residual > limit) {
        ++count;
        snap->residual -= period;
    } else if (snap->residual < -limit && count > 0) {
        --count;
        snap->residual += period;
    }
    uint64_t rest = (uint64_t)count * snap->period_rest + snap->rest;
    snap->rest = rest % snap->rate.num;
    return (uint64_t)count * snap->period_units + rest / snap->rate.num;
}

uint64_t nbi_snap_advance(nb_loop_snap *snap, uint64_t delta_ns, uint32_t tick_num) {
    if (snap->rate.num == 0) return raw_units(snap, delta_ns, tick_num);
    int64_t period = period_of(snap), delta = (int64_t)(delta_ns * snap->rate.num);
    int64_t count = (delta + period / 2) / period;
    int64_t deviation = delta - count * period;
    uint64_t units = snap->is_locked ? snapped_units(snap, count, deviation) : raw_units(snap, delta_ns, tick_num);
    // Two frames at the same moment are no frame of a display.
    if (delta_ns != 0) watch(snap, count, deviation, tick_num);
    return units;
}

static nb_rate nearest_standard(uint64_t count, uint64_t time_ns) {
    for (size_t i = 0; i < sizeof STANDARD_RATES / sizeof STANDARD_RATES[0]; ++i) {
        nb_rate rate = STANDARD_RATES[i];
        // Within 1/2000 = 0.05 %, half the distance between 59.94 and 60 Hz.
        nbi_u128 measured = (nbi_u128)count * NBI_NS_PER_S * rate.den, expected = (nbi_u128)time_ns * rate.num;
        nbi_u128 difference = measured > expected ? measured - expected : expected - measured;
        if (difference * 2000 <= expected) return rate;
    }
    // None of them: the measured rate in thousandths of a hertz, rounded.
    nbi_u128 millihertz = ((nbi_u128)count * NBI_NS_PER_S * 1000 + time_ns / 2) / time_ns;
    return (nb_rate){.num = (uint32_t)millihertz, .den = 1000};
}

// Whether the newest frames stay near the grid of the period time_ns / period_count, as judge_window asks too.
static bool follows_grid(const nb_frame_stats *stats, uint64_t period_count, uint64_t time_ns) {
    nbi_i128 path = 0, low = 0, high = 0, period = (nbi_i128)time_ns; // all in 1/period_count ns
    for (uint32_t i = 0; i < ESTIMATE_COUNT; ++i) {
        nbi_i128 frame = (nbi_i128)nbi_frame_stats_newest(stats, i)->frame_ns * (nbi_i128)period_count;
        path += frame - (frame + period / 2) / period * period;
        if (path < low) low = path;
        if (path > high) high = path;
    }
    return high - low <= period / 2;
}

// The refresh rate in the newest frames, or num 0 when they follow none. The median gives the period roughly, also when
// frames were missed; the mean over all periods gives it exactly.
static nb_rate estimate(const nb_frame_stats *stats) {
    uint64_t sorted_ns[ESTIMATE_COUNT];
    nbi_frame_stats_sorted(stats, ESTIMATE_COUNT, sorted_ns);
    uint64_t median_ns = sorted_ns[ESTIMATE_COUNT / 2];
    if (median_ns < ESTIMATE_NS_MIN || median_ns > ESTIMATE_NS_MAX) return (nb_rate){0};
    uint64_t period_count = 0, time_ns = 0;
    for (uint32_t i = 0; i < ESTIMATE_COUNT; ++i) {
        period_count += (sorted_ns[i] + median_ns / 2) / median_ns;
        time_ns += sorted_ns[i];
    }
    if (!follows_grid(stats, period_count, time_ns)) return (nb_rate){0};
    return nearest_standard(period_count, time_ns);
}

void nbi_snap_estimate(nb_loop *loop) {
    nb_loop_snap *snap = &loop->snap;
    if (!snap->is_estimated || snap->is_locked) return;
    if (snap->estimate_wait > 0) --snap->estimate_wait;
    if (snap->estimate_wait > 0 || nbi_frame_stats_held(loop->stats) < ESTIMATE_COUNT) return;
    snap->estimate_wait = ESTIMATE_COUNT;
    nb_rate rate = estimate(loop->stats);
    if (rate.num != 0) nbi_snap_set(snap, rate, loop->rate.num);
}
