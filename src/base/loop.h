// SPDX-License-Identifier: MIT
#pragma once

// What the files of the loop share: loop.c (frames and ticks), loop_reading.c (from readings to deltas), loop_time.c
// (from deltas to the accumulator), loop_snap.c (refresh snapping), loop_pace.c (waiting), loop_control.c (the rest of
// the public functions).

#include "base.h"
#include "nebula/loop.h"

// Standard C has no 128-bit integers; gcc and clang have, and -Wpedantic asks to say so.
__extension__ typedef unsigned __int128 nbi_u128;
__extension__ typedef __int128 nbi_i128;

#define NBI_NS_PER_S UINT64_C(1000000000)

// "loop": tells an initialised loop from zeroed or random memory.
#define NBI_LOOP_MAGIC 0x706F6F6Cu

enum { NBI_SOURCE_NONE, NBI_SOURCE_CLOCK, NBI_SOURCE_DELTA };

// Which clamp ended the ticks of a frame.
enum { NBI_CAP_NONE, NBI_CAP_TICKS, NBI_CAP_COST };

// Causes of rate-limited records, indices of nb_loop.quiet.
enum {
    NBI_QUIET_CLAMPED,
    NBI_QUIET_DISCONTINUITY,
    NBI_QUIET_BACKWARDS,
    NBI_QUIET_ADOPTED,
    NBI_QUIET_STILL,
    NBI_QUIET_OVERRUN,
    NBI_QUIET_COUNT
};

// Why a loop cannot be used: NB_OK, or a reported error. `function` is the public function's name.
nb_result nbi_loop_check(const nb_loop *loop, const char *function);
#define NBI_LOOP_CHECK(loop) nbi_loop_check((loop), __func__)

// Puts what nb_loop_init runs with into the desc. Fails as nb_loop_init.
nb_result nbi_loop_desc_resolve(nb_loop_desc *desc, const nb_hooks *hooks);

// Whether a record of this cause may be logged now; *suppressed tells how many were held back.
bool nbi_loop_may_log(nb_loop *loop, int cause, uint64_t *suppressed);

// --- rates ---

// den 0 becomes 1; false for a number out of 1..NB_LOOP_RATE_MAX.
bool nbi_rate_resolve(nb_rate *rate);

// floor(index * den / num s) in nanoseconds, UINT64_MAX where that does not fit.
uint64_t nbi_rate_time_ns(nb_rate rate, uint64_t index);

// ceil of the same. Rounding up keeps a grid point from lying before the moment it stands for: a frame at grid point i
// of the tick rate then has exactly i ticks behind it, not i - 1.
uint64_t nbi_rate_grid_ns(nb_rate rate, uint64_t index);

// floor(time * num / den): the newest grid point at or before time_ns.
uint64_t nbi_rate_index_at(nb_rate rate, uint64_t time_ns);

// --- readings ---

// A reading of -1 as an unsigned number: the clock has no answer.
#define NBI_NO_READING UINT64_MAX

// Time passed at a reading of the clock, or after a delta of the host's: see nb_loop_begin.
uint64_t nbi_loop_read(nb_loop *loop, uint64_t reading_ns, const char *function);
uint64_t nbi_loop_read_delta(nb_loop *loop, uint64_t delta_ns, const char *function);

// From one reading to a later one; zero across a step back, and where one of them is no answer.
static inline uint64_t nbi_loop_since(uint64_t now_ns, uint64_t then_ns) {
    return now_ns > then_ns && now_ns != NBI_NO_READING ? now_ns - then_ns : 0;
}

// --- time ---

// Books a measured delta: excluded, paused, clamped or added to the accumulator.
void nbi_loop_add_time(nb_loop *loop, uint64_t delta_ns, const char *function);

// Clock time at which the slice of input of the tick just taken from the accumulator ends.
uint64_t nbi_loop_slice_end(const nb_loop *loop);

// Starts a new span of the account for another time scale.
void nbi_loop_rebase_scale(nb_loop *loop, nb_rate scale);

// --- snapping ---

// Sets the refresh rate, resolved or zero; what was carried stays in the account.
void nbi_snap_set(nb_loop_snap *snap, nb_rate refresh, uint32_t tick_num);

// Turns a frame's delta into units to simulate.
uint64_t nbi_snap_advance(nb_loop_snap *snap, uint64_t delta_ns, uint32_t tick_num);

// Clock time minus time handed out by nbi_snap_advance, in units.
int64_t nbi_snap_carry(const nb_loop_snap *snap, uint32_t tick_num);

// Looks for a steady refresh rate in the newest frames where it is due; called once a frame.
void nbi_snap_estimate(nb_loop *loop);

// --- pacing ---

nb_result nbi_pace(nb_loop *loop);

// Length of a frame: of the display's, or of the grid's where that is longer. 0 = neither is known.
uint64_t nbi_loop_period_ns(const nb_loop *loop);

// Length of a frame of the grid. 0 = the loop is not paced.
uint64_t nbi_loop_pace_ns(const nb_loop *loop);

// Feeds the measured length of a frame's work, for late latching.
void nbi_pace_frame_cost(nb_loop_pacer *pacer, uint64_t cost_ns);

// --- ticks ---

static inline bool nbi_loop_has_clock_that_sleeps(const nb_loop *loop) {
    return loop->clock.now_ns == NULL || loop->clock.sleep_until_ns != NULL;
}
