// SPDX-License-Identifier: MIT
#pragma once

// Corrections that are not seen: when a rollback has moved something, it is drawn where it was and blended to where it
// is; what moved far jumps at once. The state is the corrected one all the time. The one rule: this is for what is
// drawn, and nothing simulated looks at it.
//
//     static float memory[100 * 3];
//     static uint64_t left_ns[100];
//     nb_smooth smooth;
//     nb_smooth_desc desc = {.row_count = 100, .float_count = 3, .memory = memory, .left_ns = left_ns};
//     desc.snap_distance = 5.0f;
//     nb_smooth_init(&smooth, &desc);
//     const float before[3] = {1, 0, 0}, after[3] = {0, 0, 0}; // of row 7, in the same tick
//     nb_smooth_correct(&smooth, 7, before, after);
//     nb_smooth_advance(&smooth, 50000000); // once a frame
//     float drawn[3] = {0, 0, 0};
//     nb_smooth_apply(&smooth, 7, drawn); // half of the way: 0.5, 0, 0
//
// In an engine a handler of NetworkReconciliation reads `before`, and one of RandomSeed, the phase after it, `after`:
// ticks were simulated again between the two, and new ones come later.

#include "nebula/types.h"

// How long a blend takes where the desc gives no time: too short to be noticed as a delay, too long to be seen as a
// jump.
#define NB_SMOOTH_BLEND_NS_DEFAULT UINT64_C(100000000)

typedef struct nb_smooth_desc {
    uint32_t row_count;   // things that are drawn; at least 1
    uint32_t float_count; // floats a row, such as 3 for a position; at least 1
    float *memory;        // row_count * float_count floats, zeroed by nb_smooth_init; the caller keeps them alive
    uint64_t *left_ns;    // row_count numbers, the same
    uint64_t blend_ns;    // 0 = NB_SMOOTH_BLEND_NS_DEFAULT
    float snap_distance;  // corrections that move any float by more than this jump; 0 = none does
} nb_smooth_desc;

typedef struct nb_smooth_stats {
    uint64_t blend_count; // corrections that were blended
    uint64_t snap_count;  // corrections that jumped, and those whose distance is no number
    uint64_t same_count;  // corrections that moved nothing
    float distance_max;   // most that a float was moved by one that was blended
} nb_smooth_stats;

// Private: use the functions below.
typedef struct nb_smooth {
    nb_smooth_desc desc;
    nb_smooth_stats stats;
} nb_smooth;

NB_EXTERN_C_BEGIN

// A desc with every default spelled out: memory and counts are needed.
// Thread: any. Owner: the caller gets a value. Fails: never.
NB_API nb_smooth_desc nb_smooth_desc_default(void);

// Prepares rows over caller memory. There is nothing to release afterwards.
// Thread: any; then one at a time. Owner: the caller's storage, borrowed. Fails: NB_ERR_MISUSE for a NULL or zero
// field, NB_ERR_RANGE when the sizes overflow or snap_distance is negative or no number.
NB_API nb_result nb_smooth_init(nb_smooth *smooth, const nb_smooth_desc *desc);

// Says that a row was moved from `before` to `after` by a correction: both for the same moment. What is left of a
// correction before it is added, so that nothing jumps.
// Thread: the smoother's. Owner: copied. Fails: NB_ERR_MISUSE, NB_ERR_RANGE for a row that is not there.
NB_API nb_result nb_smooth_correct(nb_smooth *smooth, uint32_t row, const float *before, const float *after);

// Lets time pass: once a frame, with the frame's length.
// Thread: the smoother's. Owner: nothing. Fails: NB_ERR_MISUSE.
NB_API nb_result nb_smooth_advance(nb_smooth *smooth, uint64_t delta_ns);

// Adds what is left of a row's corrections to the value that is to be drawn.
// Thread: any, while no other function is called. Owner: nothing. Fails: NB_ERR_MISUSE, NB_ERR_RANGE; the value stays
// as it is.
NB_API nb_result nb_smooth_apply(const nb_smooth *smooth, uint32_t row, float *value);

// Forgets a row's corrections: it has teleported, or is in new use.
// Thread: the smoother's. Owner: nothing. Fails: NB_ERR_MISUSE, NB_ERR_RANGE.
NB_API nb_result nb_smooth_reset(nb_smooth *smooth, uint32_t row);

// Counters since nb_smooth_init.
// Thread: the smoother's. Owner: the caller gets a value. Fails: zeros for NULL.
NB_API nb_smooth_stats nb_smooth_stats_get(const nb_smooth *smooth);

NB_EXTERN_C_END
