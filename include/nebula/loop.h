// SPDX-License-Identifier: MIT
#pragma once

// The fixed-step game loop: how many ticks to run in this frame, and how far the picture is between two of them. It
// lives in caller storage, uses no heap and no threads, and is stepped by its host; nb_loop_run is a wrapper for
// programs that have no loop of their own. The one rule: a tick handler reads its tick, never the frame, so the same
// inputs per tick give the same state at any frame rate.
//
//     nb_loop loop;
//     nb_loop_init(&loop, NULL); // 60 ticks a second
//     for (int frame = 0; frame < 600; ++frame) {
//         nb_loop_pace(&loop); // only where neither a display nor the host paces the frames
//         nb_loop_begin(&loop);
//         nb_loop_tick tick;
//         while (nb_loop_next_tick(&loop, &tick)) printf("simulate tick %llu\n", (unsigned long long)tick.index);
//         printf("draw at %.3f between the last two ticks\n", nb_loop_alpha(&loop));
//         nb_loop_end(&loop);
//     }
//
// Time is counted in units of 1/(10^9 * num) s, where the tick rate is num/den: a nanosecond is num units, a tick is
// 10^9 * den units, and both are whole numbers, so nothing is ever rounded. Every nanosecond is accounted for:
//
//   elapsed_ns = excluded_ns + paused_ns + clamped_ns + admitted_ns
//   admitted_ns * num = advanced + snap carry                          (snapping moves time between frames only)
//   scaled(advanced) + granted * tick = (ticks + dropped) * tick + accumulator
//
// and at time scale 1 scaled(advanced) is advanced. Under another scale it is the sum over the spans between two scale
// changes of floor(span * scale): changing the scale may cost less than one unit. nb_loop_is_valid checks all three.

#include "nebula/clock.h"
#include "nebula/frame_stats.h"
#include "nebula/hooks.h"
#include "nebula/types.h"

// Largest numerator and denominator of a rate: 60000/1001 fits with room, and a frame's units stay below 2^63.
#define NB_LOOP_RATE_MAX 1000000u

// Longest frame_ns_max, 10 s: together with the two limits around it a frame's units fit 64 bits.
#define NB_LOOP_FRAME_NS_LIMIT UINT64_C(10000000000)

// Largest numerator and denominator of the time scale: from a thousandth to a thousand times real time.
#define NB_LOOP_SCALE_MAX 1000u

// Secondary tick groups a loop holds: AI, network, audio, statistics and as many again.
#define NB_LOOP_GROUP_COUNT_MAX 8u

// Frames in a row that a clock may be below its largest reading before it counts as set back. A glitch is over within
// one or two frames; eight of 60 Hz stop the game for an eighth of a second.
#define NB_LOOP_BEHIND_COUNT_MAX 8u

// Frames in a row with the same clock reading after which the loop warns: a coarse clock, of 10 ms, has moved by then
// however fast the frames are.
#define NB_LOOP_STILL_COUNT_MAX 100000u

// In a desc: no such limit.
#define NB_LOOP_UNLIMITED UINT64_MAX

// num/den times a second, both 1..NB_LOOP_RATE_MAX; den 0 means 1; num 0 means none or default.
typedef struct nb_rate {
    uint32_t num;
    uint32_t den;
} nb_rate;

typedef struct nb_loop_desc {
    nb_rate tick_rate;         // ticks a second of the simulation; default 60
    uint64_t frame_ns_max;     // clamp 1: time a frame may add, up to NB_LOOP_FRAME_NS_LIMIT; default 250 ms
    uint32_t tick_count_max;   // clamp 2: ticks a frame may run; default what frame_ns_max holds (15 at 60 Hz)
    uint64_t tick_budget_ns;   // clamp 3: clock time the ticks of a frame may take; default 25 ms, or NB_LOOP_UNLIMITED
    uint64_t gap_ns;           // a frame longer than this is reported as a discontinuity; default 1 s
    nb_rate refresh_rate;      // of the display that paces the frames, at least 1: their times snap to it; default none
    bool is_refresh_estimated; // measure the refresh rate and snap to it once it is steady; needs `stats`
    nb_rate pace_rate;         // frames a second of nb_loop_pace; default tick_rate
    bool is_unpaced;           // nb_loop_run does not pace: the host's present call blocks
    bool is_late_latched;      // pacing starts a frame as late as its predicted cost allows, so input is fresher
    bool is_paused;            // start paused
    nb_clock clock;            // zero = the machine's monotonic clock
    nb_frame_stats *stats;     // filled once a frame if given; initialised by the caller, who keeps it alive
    nb_hooks hooks;            // zero = defaults; the loop allocates nothing
} nb_loop_desc;

// One step of the simulation, or of a tick group.
typedef struct nb_loop_tick {
    uint64_t index;          // counts from 0 without gaps
    uint64_t start_ns;       // simulated time at its start: index * den / num s, rounded down to a nanosecond
    uint64_t input_until_ns; // clock time at which its slice of input ends: see nb_input_take_tick; 0 for a tick group;
                             // UINT64_MAX for the first tick after the clock was set back: what waits is due
    double dt_s;             // den / num, the nearest double, the same for every tick
    uint32_t index_in_frame; // 0 for the first tick of a frame; 0 for a tick group
    bool is_last;            // no tick follows in this frame, whatever happens; false promises one, unless the loop
                             // is paused, held or quit before
} nb_loop_tick;

// What a frame handler may know.
typedef struct nb_loop_frame {
    uint64_t index;        // frames ended before this one
    uint64_t now_ns;       // clock time of the frame; a sum of deltas where nb_loop_begin_delta drives the loop
    uint64_t delta_ns;     // clock time since the frame before; from grid point to grid point where paced
    uint32_t tick_count;   // ticks run in this frame so far
    double alpha;          // nb_loop_alpha now
    float alpha_f32;       // nb_loop_alpha_f32 now
    bool is_discontinuity; // a gap longer than gap_ns, or nb_loop_resync: do not draw conclusions from delta_ns
} nb_loop_frame;

// For nb_loop_run, in calling order; only tick_fn is needed.
typedef struct nb_loop_callbacks {
    void (*tick_fn)(void *user, const nb_loop_tick *tick); // 0..n times a frame; alone writes simulated state
    void (*group_fn)(void *user, uint32_t group, const nb_loop_tick *tick); // due ticks of groups, after each tick
    void (*frame_fn)(void *user, const nb_loop_frame *frame);               // once a frame, after its ticks
    void (*render_fn)(void *user, const nb_loop_frame *frame);              // once a frame, draws at frame->alpha
    void *user;
} nb_loop_callbacks;

// Where time went, and what went wrong, since nb_loop_init.
typedef struct nb_loop_report {
    uint64_t frame_count;           // frames ended
    uint64_t tick_count;            // ticks run
    uint64_t time_ns;               // simulated time, nb_loop_tick_count * den / num s
    uint64_t elapsed_ns;            // clock time, or deltas, seen; this and the next three are modulo 2^64
    uint64_t excluded_ns;           // left out on request: nb_loop_exclude, nb_loop_resync
    uint64_t paused_ns;             // passed while paused or held
    uint64_t clamped_ns;            // dropped by frame_ns_max, clock time
    uint64_t dropped_tick_count;    // ticks dropped by tick_count_max, tick_budget_ns, or a host that did not ask
    uint64_t dropped_ns;            // the time debt: clamped_ns plus the dropped ticks
    uint64_t granted_tick_count;    // ticks run by nb_loop_step and nb_loop_run_to_tick, outside of time
    uint64_t clamp_time_count;      // frames cut by frame_ns_max
    uint64_t clamp_ticks_count;     // frames cut by tick_count_max
    uint64_t clamp_cost_count;      // frames cut by tick_budget_ns
    uint64_t discontinuity_count;   // frames after a gap or a resync
    uint64_t clock_backwards_count; // frames whose clock reading was below the largest one, or UINT64_MAX, and frames
                                    // whose delta underflowed; such a frame gets zero time
    uint64_t clock_adopt_count;     // lasting steps back: after NB_LOOP_BEHIND_COUNT_MAX of these frames in a row time
                                    // goes on from the clock's new place
    uint64_t clock_still_count;     // frames whose clock reading is that of the frame before
    uint64_t overrun_count;         // paced frames whose work took more than 1.5 frame periods
    uint64_t tick_cost_ns;          // predicted cost of the next tick; 0 = never measured
    uint64_t pace_wait_count;       // frames nb_loop_pace waited for
    uint64_t pace_skip_count;       // grid points passed over because frames were late
    uint64_t pace_sleep_ns;         // slept by pacing
    uint64_t pace_spin_ns;          // spun by pacing: its CPU cost beside one system call a frame
    uint64_t pace_error_ns;         // how late the newest wait ended
    uint64_t pace_error_ns_max;     // how late the worst wait ended
    nb_rate refresh_rate;           // given or estimated; num 0 = not known
    bool is_snapping;               // frame times are snapped to it now
    int64_t snap_offset_ns;         // clock time minus snapped time, at most 3/4 of a refresh either way
} nb_loop_report;

// --- private parts of nb_loop; use the functions ---

// A 128-bit count: units of a long run pass 2^64.
typedef struct nb_loop_total {
    uint64_t low, high;
} nb_loop_total;

typedef struct nb_loop_snap {
    nb_rate rate;           // refresh rate; num 0 = unknown
    uint64_t period_units;  // whole units in a refresh, and the rest in 1/rate.num units
    uint64_t period_rest;   // 0..rate.num - 1
    uint64_t rest;          // part of a unit snapped but not yet added, in 1/rate.num units
    int64_t residual;       // clock minus snapped time in 1/rate.num ns, within 3/4 of a refresh
    int64_t pending_units;  // residual left when snapping ended; raw frames work it off
    int64_t window_drift;   // sum of deviations from whole periods in this window, 1/rate.num ns
    int64_t window_low;     // least and
    int64_t window_high;    // greatest value of that sum
    uint32_t window_count;  // frames in this window
    uint32_t window_good;   // of them, those near a multiple of the refresh
    uint32_t estimate_wait; // frames until the next estimate
    bool is_locked;         // snapping is on
    bool is_estimated;      // the rate is measured, not given
} nb_loop_snap;

typedef struct nb_loop_pacer {
    nb_rate rate;           // frames a second
    uint64_t anchor_ns;     // clock time of grid point 0
    uint64_t index;         // grid point of the newest frame
    uint64_t grid_ns;       // its time; what the next nb_loop_begin uses
    uint64_t wake_late_ns;  // how late sleeps end, calibrated; the spin covers it
    uint64_t frame_cost_ns; // predicted begin-to-end time, a slowly falling maximum
    uint64_t wait_count, skip_count, sleep_ns, spin_ns, error_ns, error_ns_max; // as reported
    bool is_given;                                                              // the rate is the host's, no default
    bool is_anchored;                                                           // the grid exists
    bool has_grid_ns;                                                           // grid_ns waits for nb_loop_begin
    bool is_late_latched;                                                       // as in the desc
} nb_loop_pacer;

typedef struct nb_loop_group {
    nb_rate rate;        // ticks a second
    uint64_t base_tick;  // primary tick at which it was added
    uint64_t tick_count; // ticks handed out
} nb_loop_group;

// One record a second and cause; the rest is counted.
typedef struct nb_loop_quiet {
    uint64_t until_ns;   // elapsed time before which nothing is logged
    uint64_t suppressed; // records held back since
} nb_loop_quiet;

typedef struct nb_loop {
    uint32_t magic;              // set by nb_loop_init
    nb_atomic_u32 is_quitting;   // set by nb_loop_quit from any thread
    bool is_running;             // inside nb_loop_run
    bool is_in_frame;            // between begin and end
    bool is_paused;              // time goes to paused_ns
    bool is_held;                // the same, and no tick runs that was asked for
    bool is_clocked;             // this frame read the clock
    bool is_paced;               // this frame waited on the grid
    bool is_tick_measured;       // tick_start_ns holds the start of a tick whose cost is not known yet
    bool is_resyncing;           // the next delta is excluded
    bool is_unpaced;             // as in the desc
    uint8_t source;              // what drove the frame before: nothing, the clock, deltas
    uint8_t capped_by;           // the clamp that ends this frame's ticks
    nb_rate rate;                // tick rate
    nb_rate scale;               // time scale
    uint64_t tick_units;         // units in a tick, 10^9 * den
    uint64_t accumulator;        // units not yet simulated
    uint64_t granted_pending;    // ticks to run while paused
    uint64_t scale_rest;         // part of a unit lost by scaling so far, in 1/scale.den units
    nb_loop_total scaled;        // units ever added to the accumulator
    nb_loop_total scaled_base;   // `scaled` when the scale was last set
    nb_loop_total advanced_base; // units before scaling, at the same moment
    uint64_t exclude_pending_ns; // asked for by nb_loop_exclude and not yet found in a delta
    uint64_t now_ns;             // clock time of the newest frame: the largest reading so far
    uint64_t reading_ns;         // the newest reading
    uint32_t behind_count;       // readings in a row below now_ns
    uint32_t still_count;        // readings in a row that are the same
    bool is_slice_open;          // the clock was set back: the next tick gets all input that waits for the old time
    uint64_t delta_ns;           // its length, from grid point to grid point where paced
    uint64_t measured_ns;        // the same from start to start, for the statistics
    uint64_t slice_end_ns;       // end of the newest input slice
    int64_t carry_units;         // snap carry in units, as of this frame
    uint64_t latch_ns;           // clock time at which a late-latched frame began, else 0
    uint64_t frame_start_ns;     // real clock time of begin
    uint64_t tick_start_ns;      // clock time at which the running tick was handed out
    uint64_t tick_spent_ns;      // measured cost of this frame's ticks
    uint64_t cost_mean_ns;       // moving mean of tick costs
    uint64_t cost_last_ns;       // newest tick cost
    uint64_t frame_ns_max, tick_budget_ns, gap_ns;                  // as in the desc
    uint32_t tick_count_max;                                        // as in the desc
    uint32_t frame_tick_count;                                      // ticks run in this frame
    bool is_tick_last;                                              // the newest tick was announced as the last one
    bool is_discontinuity;                                          // of this frame
    uint32_t group_count;                                           // groups in use
    uint64_t frame_count, tick_count, granted_count;                // as reported
    uint64_t tick_offset;                                           // index of the next tick - tick_count, modulo 2^64
    uint64_t elapsed_ns, excluded_ns, paused_ns, clamped_ns;        // as reported
    uint64_t dropped_count;                                         // dropped_tick_count as reported
    uint64_t clamp_time_count, clamp_ticks_count, clamp_cost_count; // as reported
    uint64_t discontinuity_count, overrun_count;                    // as reported
    uint64_t backwards_count, adopt_count, still_total;             // as reported
    nb_loop_snap snap;
    nb_loop_pacer pacer;
    nb_loop_group groups[NB_LOOP_GROUP_COUNT_MAX];
    nb_loop_quiet quiet[6]; // one for each cause of a rate-limited record
    nb_clock clock;         // as in the desc
    nb_frame_stats *stats;  // as in the desc
    nb_hooks hooks;         // resolved
} nb_loop;

NB_EXTERN_C_BEGIN

// A desc with every default spelled out; what follows from the tick rate stays 0, so that changing that is enough.
// Thread: any. Owner: the caller gets a value. Fails: never.
NB_API nb_loop_desc nb_loop_desc_default(void);

// Prepares a loop; desc NULL means all defaults. There is nothing to release afterwards.
// Thread: any; then one thread at a time is the loop's own. Owner: the caller's storage; the desc is copied, its stats
// and clock are borrowed. Fails: NB_ERR_MISUSE, NB_ERR_RANGE for a rate or limit out of bounds.
NB_API nb_result nb_loop_init(nb_loop *loop, const nb_loop_desc *desc);

// Waits for the next point of the frame grid, which the next nb_loop_begin then takes as its time. A late frame starts
// at once and skips the points it missed. Sleeps, then spins at most 1/200 of a period; lowers the timer slack of the
// calling thread.
// Thread: the loop's own. Owner: nothing. Fails: NB_ERR_MISUSE inside a frame, NB_ERR_UNSUPPORTED for a clock that
// cannot sleep.
NB_API nb_result nb_loop_pace(nb_loop *loop);

// Begins a frame with the time passed on the loop's clock, up to now or to the grid point nb_loop_pace waited for. The
// first frame gets zero: loading is not simulated. Time is measured from the largest reading so far, so no time passes
// twice on a clock that steps back and forth; a reading of UINT64_MAX means that the clock has no answer. A clock that
// stays below its largest reading for NB_LOOP_BEHIND_COUNT_MAX frames was set back: time goes on from there.
// Thread: the loop's own. Owner: nothing. Fails: NB_ERR_MISUSE inside a frame.
NB_API nb_result nb_loop_begin(nb_loop *loop);

// Begins a frame with a given delta. No clock is read and no cost measured, so the same deltas give the same ticks. A
// delta above INT64_MAX is a step back of the host's clock (an unsigned difference that underflowed), and counts as in
// nb_loop_begin.
// Thread: the loop's own. Owner: nothing. Fails: NB_ERR_MISUSE inside a frame.
NB_API nb_result nb_loop_begin_delta(nb_loop *loop, uint64_t delta_ns);

// Hands out the next due tick of this frame, or returns false: then it is time to draw.
// Thread: the loop's own. Owner: *tick is a value, written on true. Fails: false outside a frame, with a log item.
NB_API bool nb_loop_next_tick(nb_loop *loop, nb_loop_tick *tick);

// Hands out the next due tick of a group, or returns false. Due ticks follow from the primary ticks run, exactly:
// after n of them, floor(n * dt * rate).
// Thread: the loop's own. Owner: *tick is a value, written on true. Fails: false for a group that is not
// there, with a log item.
NB_API bool nb_loop_next_group_tick(nb_loop *loop, uint32_t group, nb_loop_tick *tick);

// What a frame handler may know about the frame now.
// Thread: the loop's own. Owner: a value. Fails: zeros for a bad loop.
NB_API nb_loop_frame nb_loop_frame_get(const nb_loop *loop);

// Ends the frame. Two or more ticks still owed are dropped and reported; a single one is carried over, so that a slow
// tick now and then costs no simulated time.
// Thread: the loop's own. Owner: nothing. Fails: NB_ERR_MISUSE outside a frame.
NB_API nb_result nb_loop_end(nb_loop *loop);

// Runs frames until nb_loop_quit, paced unless the desc says otherwise. Callbacks may pause, step, scale, resync and
// quit; calling begin, next_tick, end, pace or run from inside is refused.
// Thread: the loop's own. Owner: the callbacks are borrowed for the call. Fails: NB_ERR_MISUSE, NB_ERR_UNSUPPORTED for
// a paced loop whose clock cannot sleep.
NB_API nb_result nb_loop_run(nb_loop *loop, const nb_loop_callbacks *callbacks);

// Stops the loop after the current tick: nb_loop_next_tick gives no more, nb_loop_run returns without further
// callbacks. Once before nb_loop_run makes that return at once.
// Thread: any, also a signal handler. Owner: nothing. Fails: NB_ERR_MISUSE, not logged: a signal handler must not.
NB_API nb_result nb_loop_quit(nb_loop *loop);

// Whether nb_loop_quit was called; cleared when nb_loop_run returns and by nb_loop_init.
// Thread: any. Owner: nothing. Fails: false for a bad loop.
NB_API bool nb_loop_is_quitting(const nb_loop *loop);

// How far the frame is into the next tick, in [0, 1): draw between the last two states. Constant while paused.
// Thread: the loop's own. Owner: nothing. Fails: 0 for a bad loop.
NB_API double nb_loop_alpha(const nb_loop *loop);

// The same as a float, in [0, 1) too: rounding never gives 1.
// Thread: the loop's own. Owner: nothing. Fails: 0 for a bad loop.
NB_API float nb_loop_alpha_f32(const nb_loop *loop);

// Length of a tick in seconds, the double nearest to den / num.
// Thread: the loop's own. Owner: nothing. Fails: 0 for a bad loop.
NB_API double nb_loop_dt_s(const nb_loop *loop);

// Where simulated time is: the index of the next tick. These are the ticks run, unless nb_loop_set_tick has moved it.
// Thread: the loop's own. Owner: nothing. Fails: 0 for a bad loop.
NB_API uint64_t nb_loop_tick_count(const nb_loop *loop);

// Moves simulated time: the next tick has this index. For state that was loaded or rewound. Time owed and alpha stay;
// ticks asked for by step or run-to-tick and not yet run are forgotten. The loop of an engine is moved by
// nb_engine_set_tick instead.
// Thread: the loop's own, outside ticks. Owner: nothing. Fails: NB_ERR_MISUSE, NB_ERR_RANGE (more than
// NB_TICK_COUNT_MAX).
NB_API nb_result nb_loop_set_tick(nb_loop *loop, uint64_t tick_count);

// A tick as it is, or was, or will be, by its index: to simulate one again. Its slice of input is not known: 0.
// Thread: the loop's own. Owner: the caller gets a value. Fails: zeros for a bad loop.
NB_API nb_loop_tick nb_loop_tick_at(const nb_loop *loop, uint64_t index);

// Frames ended.
// Thread: the loop's own. Owner: nothing. Fails: 0 for a bad loop.
NB_API uint64_t nb_loop_frame_count(const nb_loop *loop);

// Simulated time: nb_loop_tick_count * den / num s, rounded down to a nanosecond.
// Thread: the loop's own. Owner: nothing. Fails: 0 for a bad loop.
NB_API uint64_t nb_loop_time_ns(const nb_loop *loop);

// Stops simulated time; frames go on with zero ticks and the same alpha.
// Thread: the loop's own. Owner: nothing. Fails: NB_ERR_MISUSE.
NB_API nb_result nb_loop_pause(nb_loop *loop);

// Lets time run again; ticks asked for by step or run-to-tick and not yet run are forgotten.
// Thread: the loop's own. Owner: nothing. Fails: NB_ERR_MISUSE.
NB_API nb_result nb_loop_resume(nb_loop *loop);

// Holds all ticks back, or lets them run again: for a match that waits for another player. Simulated time stops as in a
// pause, but the two are independent: nb_loop_resume does not end a hold, ticks asked for by step or run-to-tick wait,
// and the engine's input waits for its ticks too.
// Thread: the loop's own. Owner: nothing. Fails: NB_ERR_MISUSE.
NB_API nb_result nb_loop_hold(nb_loop *loop, bool is_held);

// Pauses, and runs tick_count more ticks in the next frames, as many in each as the clamps allow.
// Thread: the loop's own. Owner: nothing. Fails: NB_ERR_MISUSE, NB_ERR_RANGE when they end beyond NB_TICK_COUNT_MAX.
NB_API nb_result nb_loop_step(nb_loop *loop, uint64_t tick_count);

// Pauses, and runs ticks in the next frames until nb_loop_tick_count is target_tick_count.
// Thread: the loop's own. Owner: nothing. Fails: NB_ERR_MISUSE, NB_ERR_RANGE when that is in the past, or
// beyond NB_TICK_COUNT_MAX.
NB_API nb_result nb_loop_run_to_tick(nb_loop *loop, uint64_t target_tick_count);

// Lets simulated time run num/den times as fast, from the next frame on; both 1..NB_LOOP_SCALE_MAX (to stop, pause).
// Thread: the loop's own. Owner: nothing. Fails: NB_ERR_MISUSE, NB_ERR_RANGE.
NB_API nb_result nb_loop_set_scale(nb_loop *loop, uint32_t num, uint32_t den);

// Leaves the time until the next frame out of the simulation: after loading, a breakpoint, a modal dialog.
// Thread: the loop's own. Owner: nothing. Fails: NB_ERR_MISUSE.
NB_API nb_result nb_loop_resync(nb_loop *loop);

// Leaves time_ns out of the coming deltas, for example what a frame lost waiting for a stuck task.
// Thread: the loop's own. Owner: nothing. Fails: NB_ERR_MISUSE.
NB_API nb_result nb_loop_exclude(nb_loop *loop, uint64_t time_ns);

// Changes the refresh rate frames snap to, when the window moves to another display; num 0 ends snapping.
// Thread: the loop's own. Owner: nothing. Fails: NB_ERR_MISUSE, NB_ERR_RANGE (also for a rate below 1 a second).
NB_API nb_result nb_loop_set_refresh(nb_loop *loop, nb_rate rate);

// Changes the frame rate of pacing, for example while the window is hidden; the grid starts anew.
// Thread: the loop's own. Owner: nothing. Fails: NB_ERR_MISUSE, NB_ERR_RANGE.
NB_API nb_result nb_loop_set_pace(nb_loop *loop, nb_rate rate);

// Adds a tick group with its own rate; its ticks may read simulated state but never write it.
// Thread: the loop's own. Owner: *group is a value, valid as long as the loop. Fails: NB_FULL, NB_ERR_MISUSE,
// NB_ERR_RANGE.
NB_API nb_result nb_loop_group_add(nb_loop *loop, nb_rate rate, uint32_t *group);

// Counters since nb_loop_init.
// Thread: the loop's own. Owner: the caller gets a value. Fails: zeros for a bad loop.
NB_API nb_loop_report nb_loop_report_get(const nb_loop *loop);

// Whether the account of time at the top of this header adds up and every field is in bounds.
// Thread: the loop's own. Owner: nothing. Fails: false for a bad loop.
NB_API bool nb_loop_is_valid(const nb_loop *loop);

NB_EXTERN_C_END
