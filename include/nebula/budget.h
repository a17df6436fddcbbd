// SPDX-License-Identifier: MIT
#pragma once

// A controller that trades quality for time: fed with the time each frame took, it says which quality level to use and
// how long optional work may take. It lowers within a few frames and raises only where room is proven, and a raise that
// failed is not tried again under the same load. The one rule: measure the work, not the wait for the display, or every
// frame looks as long as its target. Integers only, no clock: the same times give the same levels.
//
//     nb_budget budget;
//     nb_budget_desc desc = nb_budget_desc_default();
//     desc.level_count = 4;
//     nb_budget_init(&budget, &desc);
//     nb_budget_sample sample = {0};
//     sample.measured_ns = 18000000; // of the frame that ended
//     nb_budget_update(&budget, &sample);
//     if (nb_budget_level(&budget) < 2) printf("no impostors\n");
//     uint64_t meshing_ns = nb_budget_optional_ns(&budget, NB_BUDGET_KIND_MESHING);

#include "nebula/hooks.h"
#include "nebula/types.h"

// Levels where the desc gives no number; most games offer low, medium, high and ultra.
#define NB_BUDGET_LEVEL_COUNT_DEFAULT 4
#define NB_BUDGET_LEVEL_COUNT_MAX 16

// Where the desc gives no target: a frame of 60 Hz.
#define NB_BUDGET_TARGET_DEFAULT_NS UINT64_C(16666667)

// Frames that are looked at for lowering, and how many of them must be over the target. Three: one or two slow frames
// are an accident (a page fault, another program), three within a quarter of a second are a load. A count and not a
// mean: a single frame of a second would weigh as much as sixty slow ones.
#define NB_BUDGET_WINDOW_DEFAULT 16
#define NB_BUDGET_WINDOW_MAX 32
#define NB_BUDGET_OVER_DEFAULT 3

// Frames in a row that must prove room before a raise: two thirds of a second at 60 Hz, so that quality which fits is
// back within a second or two. Two of them may be slower than the rest: the third slowest counts, about the 95th
// percentile.
#define NB_BUDGET_RAISE_FRAMES_DEFAULT 40

// Room is proven where those frames stay within this many thousandths of the target. Between here and the target is the
// band where nothing happens; it is wider than what one level is expected to cost.
#define NB_BUDGET_ROOM_PERMILLE_DEFAULT 750

// What one level is expected to save, in thousandths of the frame: by it an overload of half a frame is answered with
// two levels at once. Too small a number lowers too far, too large a number only takes a few frames more.
#define NB_BUDGET_GAIN_PERMILLE_DEFAULT 150

// Frames not looked at after a change or a discontinuity: frames begun before it are still under way (three at most in
// flight), and the first one after it pays for what is made anew.
#define NB_BUDGET_SETTLE_FRAMES_DEFAULT 4

// The longest wait after failed raises, in frames: it starts at three times raise_frames, doubles with each of them and
// ends at about a minute of 60 Hz.
#define NB_BUDGET_WAIT_FRAMES_MAX 3840

// Optional work whose time is given out.
typedef enum nb_budget_kind {
    NB_BUDGET_KIND_GENERATION = 0,
    NB_BUDGET_KIND_MESHING,
    NB_BUDGET_KIND_COUNT,
} nb_budget_kind;

// At the highest level: a quarter of a 60 Hz frame, and a little less.
#define NB_BUDGET_GENERATION_DEFAULT_NS UINT64_C(4000000)
#define NB_BUDGET_MESHING_DEFAULT_NS UINT64_C(3000000)
// While nothing is visible there is no picture to keep smooth, and filling the world comes first.
#define NB_BUDGET_UNSEEN_FACTOR 4

typedef struct nb_budget_desc {
    uint32_t level_count;   // 1..NB_BUDGET_LEVEL_COUNT_MAX; 0 = 4
    uint32_t level_lowered; // start this many levels below the highest; 0 = at the highest
    uint64_t target_ns;     // of a frame; 0 = 16666667
    uint32_t window_frames; // 1..NB_BUDGET_WINDOW_MAX; 0 = 16
    uint32_t over_frames;   // of the window, up to window_frames; 0 = 3, or the window where that is smaller
    uint32_t raise_frames;  // 3..NB_BUDGET_WAIT_FRAMES_MAX; 0 = 40
    uint32_t room_permille; // of the target, 1..999; 0 = 750
    uint32_t gain_permille; // of a frame, 1..999; 0 = 150
    uint32_t settle_frames; // up to NB_BUDGET_WAIT_FRAMES_MAX; 0 = 4
    uint64_t generation_ns; // a frame, at the highest level; 0 = 4 ms
    uint64_t meshing_ns;    // the same; 0 = 3 ms
    nb_hooks hooks;         // for reports; nothing is allocated
} nb_budget_desc;

// What one frame tells.
typedef struct nb_budget_sample {
    uint64_t measured_ns;     // work of the frame, or of the phases that the levels change
    uint64_t target_ns;       // 0 = as before, at first that of the desc
    bool is_discontinuity;    // a load, a pause, a teleport: the time says nothing; default false
    bool has_nothing_visible; // optional work may take four times as long; default false
} nb_budget_sample;

// Counters since nb_budget_init.
typedef struct nb_budget_stats {
    uint64_t frame_count;   // samples
    uint64_t over_count;    // of them above their target, discontinuities left out
    uint64_t ignored_count; // of them not looked at: discontinuities and frames that settle
    uint64_t lower_count;   // changes to a lower level
    uint64_t raise_count;   // changes to a higher one
    uint64_t fail_count;    // raises taken back soon after
} nb_budget_stats;

// A controller. Fields are private; visible so that it can live in the caller's storage. Times are kept in thousandths
// of their target, so that a target may change at any time.
typedef struct nb_budget {
    nb_budget_desc desc; // resolved
    nb_budget_stats stats;
    uint32_t level;
    bool has_nothing_visible;
    bool is_raised;                        // the last change was a raise
    uint32_t settle_left;                  // frames not to be looked at
    uint32_t wait_left, wait_frames;       // until the next raise may come; how long after the next failure
    uint32_t raised_frames;                // since the last raise
    uint32_t raised_permille;              // how slow the slow frames were before it
    uint32_t recent[NB_BUDGET_WINDOW_MAX]; // ring of permilles for lowering
    uint32_t recent_count, recent_next;    // filled places; the next one
    uint32_t slowest[3];                   // of the frames that are to prove room, slowest first
    uint32_t room_count;                   // of these frames
    uint32_t failed_permille[NB_BUDGET_LEVEL_COUNT_MAX]; // raised_permille of a raise to it that failed; 0 = none
    uint32_t trial_frames[NB_BUDGET_LEVEL_COUNT_MAX];    // how long a raise to it is on trial
} nb_budget;

NB_EXTERN_C_BEGIN

// The defaults, spelled out.
// Thread: any. Owner: the caller gets a value. Fails: never.
NB_API nb_budget_desc nb_budget_desc_default(void);

// Starts a controller at its first level. desc may be NULL.
// Thread: one. Owner: the caller's storage; nothing is to be ended. Fails: NB_ERR_MISUSE, NB_ERR_RANGE; *budget is then
// untouched.
NB_API nb_result nb_budget_init(nb_budget *budget, const nb_budget_desc *desc);

// Takes one frame's time and decides. A level lasts until the next update, or until nb_budget_set_level.
// Thread: one at a time, the coordinator at the end of a frame. Owner: the sample is copied. Fails: NB_ERR_MISUSE.
NB_API nb_result nb_budget_update(nb_budget *budget, const nb_budget_sample *sample);

// Sets the level, for a menu or a scene that is known to be heavy. The controller goes on from there after
// settle_frames; without updates the level stays. The counters do not count it.
// Thread: the one that updates. Owner: unchanged. Fails: NB_ERR_MISUSE, NB_ERR_RANGE (level_count or more).
NB_API nb_result nb_budget_set_level(nb_budget *budget, uint32_t level);

// The quality level now: level_count - 1 is the highest quality, 0 the lowest.
// Thread: the one that updates. Owner: nothing. Fails: 0 for NULL.
NB_API uint32_t nb_budget_level(const nb_budget *budget);

// How long optional work of a kind may take in this frame. It shrinks with the level, down to one part in level_count:
// a low level slows streaming down, but nothing starves. Four times the highest level's while nothing is visible.
// Thread: the one that updates. Owner: nothing. Fails: 0 for NULL or an unknown kind.
NB_API uint64_t nb_budget_optional_ns(const nb_budget *budget, nb_budget_kind kind);

// Reads the counters.
// Thread: the one that updates. Owner: the caller gets a value. Fails: zeros for NULL.
NB_API nb_budget_stats nb_budget_stats_get(const nb_budget *budget);

NB_EXTERN_C_END
