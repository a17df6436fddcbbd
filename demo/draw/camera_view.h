// SPDX-License-Identifier: MIT
#pragma once

// From the planet's axes to the screen. Depth is reversed and has no far end: 1 at the near plane, towards 0 with the
// distance, so a float has as many digits a kilometre away as at one's feet. The one rule: subtract the camera's
// position first, in doubles; matrices only ever see what is relative to it.
//
//     x to the right and y down on the screen, from -1 to 1, as Vulkan has it

#include <stdbool.h>
#include <stdint.h>

#include "../planet/vec.h"

typedef struct camera_view {
    vec3d position;          // metres from the middle of the planet
    vec3 right, up, forward; // of length 1, at right angles; right = forward x up
    float tan_half_y;        // of half the angle seen from top to bottom; 0 = CAMERA_TAN_HALF_Y
    float near;              // metres; 0 = CAMERA_NEAR
} camera_view;

// 60 degrees from top to bottom.
#define CAMERA_TAN_HALF_Y 0.57735027f
// Nearer than any wall a walker can be pressed against.
#define CAMERA_NEAR 0.1f

// Columns one after the other, as shaders take them.
typedef struct camera_matrix {
    float m[16];
} camera_matrix;

typedef struct camera_point {
    float x, y, z, w;
} camera_point;

static inline vec3 camera_relative(const camera_view *view, vec3d position) {
    return vec3_of(vec3d_sub(position, view->position));
}

// Makes right and up fit forward; a forward along `up` is kept and right is any.
static inline void camera_aim(camera_view *view, vec3 forward, vec3 up) {
    vec3 any = forward.x * forward.x < 0.5f ? (vec3){1, 0, 0} : (vec3){0, 1, 0};
    view->forward = vec3_normal(forward, (vec3){0, 0, 1});
    vec3 side = vec3_normal(vec3_cross(view->forward, any), (vec3){1, 0, 0});
    view->right = vec3_normal(vec3_cross(view->forward, up), side);
    view->up = vec3_cross(view->right, view->forward);
}

// Takes what is relative to the camera; aspect is width by height.
static inline camera_matrix camera_clip(const camera_view *view, float aspect) {
    float y = 1.0f / view->tan_half_y, x = y / aspect;
    vec3 r = view->right, u = view->up, f = view->forward;
    // clang-format off
    return (camera_matrix){{r.x * x, -u.x * y, 0,          f.x,
                            r.y * x, -u.y * y, 0,          f.y,
                            r.z * x, -u.z * y, 0,          f.z,
                            0,       0,        view->near, 0}};
    // clang-format on
}

static inline camera_point camera_apply(const camera_matrix *a, vec3 p, float w) {
    const float *m = a->m;
    return (camera_point){
        m[0] * p.x + m[4] * p.y + m[8] * p.z + m[12] * w, m[1] * p.x + m[5] * p.y + m[9] * p.z + m[13] * w,
        m[2] * p.x + m[6] * p.y + m[10] * p.z + m[14] * w, m[3] * p.x + m[7] * p.y + m[11] * p.z + m[15] * w};
}
