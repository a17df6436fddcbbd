// SPDX-License-Identifier: MIT
#pragma once

// Poses between two ticks: keeps each row of floats as of the last two ticks and gives its value for the frame. What is
// shown interpolated is one tick old (shown time = now - dt): the state after "now" does not exist yet. Extrapolating
// shows "now" instead and overshoots when motion changes. The one rule: begin a tick per tick, not per frame.
//
//     static float memory[2 * 100 * 3];
//     static uint8_t marks[100];
//     nb_poses poses;
//     nb_poses_desc desc = {100, 3, memory, marks};
//     nb_poses_init(&poses, &desc);
//     float *rows = nb_poses_begin_tick(&poses); // in each tick: 100 rows, as they were; write the new ones
//     rows[0] = 5.0f;
//     nb_poses_teleport(&poses, 0); // row 0 jumped: do not draw it on the way
//     float position[3];
//     nb_poses_sample(&poses, 0, 0.25f, NB_POSE_INTERPOLATE, position); // nb_loop_alpha_f32

#include "nebula/types.h"

typedef enum nb_pose_mode {
    NB_POSE_INTERPOLATE = 0, // previous + (current - previous) * alpha
    NB_POSE_EXTRAPOLATE,     // current + (current - previous) * alpha
    NB_POSE_MODE_COUNT,
} nb_pose_mode;

typedef struct nb_poses_desc {
    uint32_t row_count;   // entities; at least 1
    uint32_t float_count; // floats a row, such as 3 for a position or 7 with a quaternion; at least 1
    float *memory;        // 2 * row_count * float_count floats, zeroed by nb_poses_init; the caller keeps them alive
    uint8_t *marks;       // row_count bytes, the same
} nb_poses_desc;

// Private: use the functions below.
typedef struct nb_poses {
    float *previous; // rows as of the tick before
    float *current;  // rows as of the newest tick
    uint8_t *marks;  // 1 = teleported in the newest tick
    uint32_t row_count, float_count;
    bool has_tick; // a tick has begun
} nb_poses;

NB_EXTERN_C_BEGIN

// A desc with every default spelled out: there are none, all fields are needed.
// Thread: any. Owner: the caller gets a value. Fails: never.
NB_API nb_poses_desc nb_poses_desc_default(void);

// Prepares a pose buffer over caller memory. There is nothing to release afterwards.
// Thread: any; then one thread at a time. Owner: the caller's storage, borrowed. Fails: NB_ERR_MISUSE for a NULL or
// zero field, NB_ERR_RANGE when the sizes overflow.
NB_API nb_result nb_poses_init(nb_poses *poses, const nb_poses_desc *desc);

// Begins a tick: what was current is previous, and the current rows, which start as a copy of it, may be written until
// the next call. Teleport marks are cleared; in the first tick every row counts as teleported.
// Thread: the buffer's own. Owner: the rows belong to the buffer. Fails: NULL for a bad buffer.
NB_API float *nb_poses_begin_tick(nb_poses *poses);

// Marks a row as jumped in this tick (also a row in new use): frames until the next tick show its current value.
// Thread: the buffer's own. Owner: nothing. Fails: NB_ERR_MISUSE, NB_ERR_RANGE for a row that is not there.
NB_API nb_result nb_poses_teleport(nb_poses *poses, uint32_t row);

// A row's value at alpha in [0, 1) of the frame; alpha outside is cut to [0, 1]. Quaternions come out unnormalised.
// Thread: the buffer's own. Owner: *out holds float_count floats. Fails: NB_ERR_MISUSE, NB_ERR_RANGE for a row that is
// not there.
NB_API nb_result nb_poses_sample(const nb_poses *poses, uint32_t row, float alpha, nb_pose_mode mode, float *out);

// Every row at once, in row order.
// Thread: the buffer's own. Owner: *out holds row_count * float_count floats. Fails: NB_ERR_MISUSE.
NB_API nb_result nb_poses_sample_all(const nb_poses *poses, float alpha, nb_pose_mode mode, float *out);

NB_EXTERN_C_END
