// SPDX-License-Identifier: MIT
// Where the legs of an animal stand.

#include "pose_body.h"

// From the middle of the animal to its legs, in metres.
#define HALF_LENGTH 0.55f
#define HALF_WIDTH 0.22f

vec3 pose_leg_offset(const pose_body *body, uint32_t number) {
    vec3 right = vec3_cross(body->forward, body->up);
    float front = number < 2 ? HALF_LENGTH : -HALF_LENGTH, side = number % 2 == 0 ? -HALF_WIDTH : HALF_WIDTH;
    return vec3_add(vec3_scale(body->forward, front), vec3_scale(right, side));
}
