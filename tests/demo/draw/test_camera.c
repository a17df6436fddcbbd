// SPDX-License-Identifier: MIT
// The demo's camera: where on the screen things are, and how depth runs.

#include "support/support.h"

#include <math.h>

#include "demo/draw/camera_view.h"

static camera_view view_along(vec3 forward, vec3 up) {
    camera_view view = {.tan_half_y = CAMERA_TAN_HALF_Y, .near = CAMERA_NEAR};
    camera_aim(&view, forward, up);
    return view;
}

static float random_float(uint64_t *state, float low, float high) {
    return low + (high - low) * (float)(test_random(state) >> 40) / 16777216.0f;
}

static vec3 random_direction(uint64_t *state) {
    vec3 v = {random_float(state, -1, 1), random_float(state, -1, 1), random_float(state, -1, 1)};
    return vec3_normal(v, (vec3){1, 0, 0});
}

TEST(what_is_ahead_is_in_the_middle) {
    camera_view view = view_along((vec3){0, 0, -1}, (vec3){0, 1, 0});
    camera_matrix clip = camera_clip(&view, 2.0f);
    camera_point p = camera_apply(&clip, (vec3){0, 0, -10}, 1);
    assert_true(fabsf(p.x) < 1e-6f && fabsf(p.y) < 1e-6f);
    assert_true(fabsf(p.w - 10) < 1e-4f);
    assert_true(fabsf(view.right.x - 1) < 1e-6f); // right-handed: forward -z, up y, right x
}

TEST(right_is_right_and_up_is_up_on_the_screen) {
    camera_view view = view_along((vec3){0, 0, -1}, (vec3){0, 1, 0});
    camera_matrix clip = camera_clip(&view, 2.0f);
    camera_point right = camera_apply(&clip, (vec3){1, 0, -10}, 1), up = camera_apply(&clip, (vec3){0, 1, -10}, 1);
    assert_true(right.x > 0 && fabsf(right.y) < 1e-6f);
    assert_true(up.y < 0 && fabsf(up.x) < 1e-6f); // y points down on the screen
}

TEST(the_edge_of_the_angle_is_the_edge_of_the_screen) {
    camera_view view = view_along((vec3){1, 0, 0}, (vec3){0, 1, 0});
    camera_matrix clip = camera_clip(&view, 1.5f);
    float tan_y = view.tan_half_y;
    camera_point top = camera_apply(&clip, (vec3){1, tan_y, 0}, 1);
    camera_point side = camera_apply(&clip, vec3_add(view.forward, vec3_scale(view.right, tan_y * 1.5f)), 1);
    assert_true(fabsf(top.y / top.w + 1) < 1e-5f);
    assert_true(fabsf(side.x / side.w - 1) < 1e-5f);
}

TEST(depth_is_one_near_and_falls_to_zero) {
    camera_view view = view_along((vec3){0, 0, -1}, (vec3){0, 1, 0});
    camera_matrix clip = camera_clip(&view, 1);
    float before = 2;
    for (float far = CAMERA_NEAR; far < 1e6f; far *= 1.7f) {
        camera_point p = camera_apply(&clip, (vec3){0, 0, -far}, 1);
        float depth = p.z / p.w;
        assert_true(depth < before && depth > 0);
        before = depth;
    }
    camera_point near = camera_apply(&clip, (vec3){0, 0, -CAMERA_NEAR}, 1);
    camera_point never = camera_apply(&clip, (vec3){0, 0, -1}, 0); // a direction: a star
    assert_true(fabsf(near.z / near.w - 1) < 1e-6f);
    assert_true(never.z == 0 && never.w > 0);
}

TEST(any_aim_is_square_and_right_handed) {
    uint64_t seed = test_seed(__func__);
    uint64_t rounds = test_size(2000, 20000, 200000);
    for (uint64_t i = 0; i < rounds; ++i) {
        vec3 forward = random_direction(&seed), up = i % 8 == 0 ? forward : random_direction(&seed);
        camera_view v = view_along(forward, up);
        assert_true(fabsf(vec3_length(v.right) - 1) < 1e-4f && fabsf(vec3_length(v.up) - 1) < 1e-4f);
        assert_true(fabsf(vec3_dot(v.right, v.forward)) < 1e-4f && fabsf(vec3_dot(v.up, v.forward)) < 1e-4f);
        assert_true(vec3_dot(vec3_cross(v.forward, v.up), v.right) > 0.999f);
        assert_true(vec3_dot(v.forward, forward) > 0.999f);
        if (i % 8 != 0) assert_true(vec3_dot(v.up, up) >= -1e-4f);
    }
}

TEST(a_millimetre_counts_far_from_the_middle) {
    camera_view view = view_along((vec3){0, 0, -1}, (vec3){0, 1, 0});
    view.position = (vec3d){0, 2607.5945876, 0};
    vec3 a = camera_relative(&view, (vec3d){0, 2607.5945876, -1}),
         b = camera_relative(&view, (vec3d){0, 2607.5955876, -1});
    assert_true(fabsf(b.y - a.y - 0.001f) < 1e-6f);
}
