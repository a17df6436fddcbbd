// SPDX-License-Identifier: MIT
#pragma once

// Animation and inverse kinematics: where the knees and feet of each animal are, for skinning. A leg is two bones; its
// foot swings in a step that follows the distance walked, and the knee is where both bones can meet.

#include <stdint.h>

#include "../game/pose_body.h"

// Metres.
#define POSE_THIGH_LENGTH 0.40f
#define POSE_SHIN_LENGTH 0.45f
#define POSE_HIP_HEIGHT 0.75f

typedef struct pose_leg {
    vec3 hip, knee, foot;
} pose_leg;

typedef struct pose {
    pose_leg legs[POSE_LEG_COUNT];
} pose;

typedef struct pose_input {
    const pose_body *bodies;
} pose_input;

typedef struct pose_output {
    pose *poses; // room for count
    uint32_t pose_count;
} pose_output;

// Appends the poses of bodies first to first + count - 1.
void pose_run(const pose_input *input, uint32_t first, uint32_t count, pose_output *out);

// Appends a job's poses to those of the jobs before it.
void pose_append(pose_output *whole, const pose_output *part);

// The knee of a leg whose hip and foot are given, bent towards `bend` (of length 1). A foot out of reach leaves the leg
// straight; the foot is then moved to where the leg ends.
pose_leg pose_solve(vec3 hip, vec3 foot, vec3 bend);
