// SPDX-License-Identifier: MIT
#pragma once

// An animal between two ticks: where it stands, which way it goes and how far below or above it each foot meets the
// ground. Legs and heads are worked out from it.

#include <stdint.h>

#include "../planet/vec.h"

#define POSE_LEG_COUNT 4

// How far up or down a foot finds the ground: a leg is not much longer.
#define POSE_REACH 0.35f

typedef struct pose_body {
    vec3 feet;                    // middle of the animal, on the ground
    vec3 up;                      // of length 1, away from the planet's middle
    vec3 forward;                 // of length 1, along the ground
    float phase;                  // of its walk: steps done; any number
    float is_moving;              // 0 standing to 1 walking
    float ground[POSE_LEG_COUNT]; // how far above `feet` the ground below each foot is, up to POSE_REACH either way
} pose_body;

// Where the foot of a leg stands when the animal does, from the body's feet, on even ground.
vec3 pose_leg_offset(const pose_body *body, uint32_t number);
