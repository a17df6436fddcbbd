// SPDX-License-Identifier: MIT
// From a measured delta to the accumulator, without losing a unit: exclude, pause, clamp, snap, scale.

#include "loop.h"

bool nbi_rate_resolve(nb_rate *rate) {
    if (rate->den == 0) rate->den = 1;
    return rate->num >= 1 && rate->num <= NB_LOOP_RATE_MAX && rate->den <= NB_LOOP_RATE_MAX;
}

static uint64_t saturate(nbi_u128 value) { return value > UINT64_MAX ? UINT64_MAX : (uint64_t)value; }

uint64_t nbi_rate_time_ns(nb_rate rate, uint64_t index) {
    return saturate((nbi_u128)index * rate.den * NBI_NS_PER_S / rate.num);
}

uint64_t nbi_rate_grid_ns(nb_rate rate, uint64_t index) {
    return saturate(((nbi_u128)index * rate.den * NBI_NS_PER_S + rate.num - 1) / rate.num);
}

uint64_t nbi_rate_index_at(nb_rate rate, uint64_t time_ns) {
    return saturate((nbi_u128)time_ns * rate.num / ((nbi_u128)rate.den * NBI_NS_PER_S));
}

static nbi_u128 total_get(nb_loop_total total) { return ((nbi_u128)total.high << 64) | total.low; }

static nb_loop_total total_of(nbi_u128 value) {
    return (nb_loop_total){.low = (uint64_t)value, .high = (uint64_t)(value >> 64)};
}

static void total_add(nb_loop_total *total, uint64_t units) {
    total->low += units;
    if (total->low < units) ++total->high;
}

// Units handed to the accumulator before scaling: all admitted time but what snapping holds back. Signed because a
// snapped frame may run ahead of the clock by part of a refresh.
static nbi_i128 advanced_units(const nb_loop *loop) {
    uint64_t admitted_ns = loop->elapsed_ns - loop->excluded_ns - loop->paused_ns - loop->clamped_ns;
    return (nbi_i128)admitted_ns * loop->rate.num - nbi_snap_carry(&loop->snap, loop->rate.num);
}

void nbi_loop_rebase_scale(nb_loop *loop, nb_rate scale) {
    loop->advanced_base = total_of((nbi_u128)advanced_units(loop));
    loop->scaled_base = loop->scaled;
    loop->scale_rest = 0;
    loop->scale = scale;
}

// The limits on rate, frame time and scale keep units * num below 2^64: 10 s * 10^9 * 10^6 * 10^3, and a tenth more for
// a snapped frame that runs ahead.
static uint64_t scale_units(nb_loop *loop, uint64_t units) {
    if (loop->scale.num == loop->scale.den) return units;
    uint64_t scaled = units * loop->scale.num + loop->scale_rest;
    loop->scale_rest = scaled % loop->scale.den;
    return scaled / loop->scale.den;
}

static void log_clamp(nb_loop *loop, uint64_t delta_ns, const char *function) {
    uint64_t suppressed;
    if (!nbi_loop_may_log(loop, NBI_QUIET_CLAMPED, &suppressed)) return;
    nbi_log(&loop->hooks, NB_LOG_WARNING, NB_ITEM_LOOP_CLAMPED, function,
            "frame time %.1f ms exceeds maximum, clamping to %.1f ms (%.1f ms dropped so far, %llu reports held back)",
            (double)delta_ns / 1e6, (double)loop->frame_ns_max / 1e6, (double)loop->clamped_ns / 1e6,
            nb_llu(suppressed));
}

// Books what does not reach the simulation and returns the rest.
static uint64_t admit(nb_loop *loop, uint64_t delta_ns, const char *function) {
    if (loop->is_resyncing) {
        loop->is_resyncing = false;
        loop->excluded_ns += delta_ns;
        return 0;
    }
    uint64_t excluded_ns = nbi_min_u64(delta_ns, loop->exclude_pending_ns);
    loop->exclude_pending_ns -= excluded_ns;
    loop->excluded_ns += excluded_ns;
    delta_ns -= excluded_ns;
    if (loop->is_paused || loop->is_held) {
        loop->paused_ns += delta_ns;
        return 0;
    }
    if (delta_ns <= loop->frame_ns_max) return delta_ns;
    // Clamp before adding: after a debugger pause the loop must drop time rather than replay a minute of ticks.
    loop->clamped_ns += delta_ns - loop->frame_ns_max;
    ++loop->clamp_time_count;
    log_clamp(loop, delta_ns, function);
    return loop->frame_ns_max;
}

void nbi_loop_add_time(nb_loop *loop, uint64_t delta_ns, const char *function) {
    loop->elapsed_ns +=
        delta_ns; // modulo 2^64, as the parts of it: a clock that jumps for centuries must not stop time
    uint64_t admitted_ns = admit(loop, delta_ns, function);
    uint64_t units;
    if (admitted_ns == delta_ns) {
        units = nbi_snap_advance(&loop->snap, delta_ns, loop->rate.num);
    } else {
        // What is left of a cut frame says nothing about the display: it is added as it is.
        units = admitted_ns * loop->rate.num;
    }
    units = scale_units(loop, units);
    loop->accumulator += units;
    total_add(&loop->scaled, units);
    loop->carry_units = nbi_snap_carry(&loop->snap, loop->rate.num);
}

static nbi_i128 floor_div(nbi_i128 value, nbi_i128 divisor) {
    nbi_i128 quotient = value / divisor;
    return value % divisor < 0 ? quotient - 1 : quotient;
}

uint64_t nbi_loop_slice_end(const nb_loop *loop) {
    // now - left / num, rounded up: an event belongs to this slice when its whole nanosecond starts before the end.
    if (loop->carry_units == 0 && loop->scale.num == loop->scale.den) {
        uint64_t left_ns = loop->accumulator / loop->rate.num;
        return left_ns > loop->now_ns ? 0 : loop->now_ns - left_ns;
    }
    nbi_i128 left = (nbi_i128)loop->accumulator * loop->scale.den / loop->scale.num + loop->carry_units;
    nbi_i128 end = (nbi_i128)loop->now_ns - floor_div(left, loop->rate.num);
    return end < 0 ? 0 : saturate((nbi_u128)end);
}

static bool is_time_account_valid(const nb_loop *loop) {
    nbi_i128 advanced = advanced_units(loop) - (nbi_i128)total_get(loop->advanced_base);
    nbi_i128 expected = (nbi_i128)total_get(loop->scaled_base) +
                        floor_div(advanced * (nbi_i128)loop->scale.num, (nbi_i128)loop->scale.den);
    return (nbi_i128)total_get(loop->scaled) == expected;
}

static bool is_tick_account_valid(const nb_loop *loop) {
    nbi_u128 in = total_get(loop->scaled) + (nbi_u128)loop->granted_count * loop->tick_units;
    nbi_u128 out = ((nbi_u128)loop->tick_count + loop->dropped_count) * loop->tick_units + loop->accumulator;
    return in == out;
}

static bool is_snap_valid(const nb_loop_snap *snap) {
    if (snap->rate.num == 0) return snap->residual == 0 && snap->rest == 0;
    int64_t period = (int64_t)(NBI_NS_PER_S * snap->rate.den);
    return snap->rest < snap->rate.num && snap->residual * 4 <= period * 3 && snap->residual * 4 >= -period * 3;
}

bool nb_loop_is_valid(const nb_loop *loop) {
    if (nbi_loop_check(loop, __func__) != NB_OK) return false;
    // Outside a frame less than two ticks are owed: what nb_loop_end leaves.
    if (!loop->is_in_frame && loop->accumulator >= 2 * loop->tick_units) return false;
    if (loop->group_count > NB_LOOP_GROUP_COUNT_MAX) return false;
    return is_snap_valid(&loop->snap) && is_time_account_valid(loop) && is_tick_account_valid(loop);
}
