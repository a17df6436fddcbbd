// SPDX-License-Identifier: MIT
#pragma once

// Poses: where a thing is, how it is turned and how large it is, relative to its parent; and the matrices that
// renderers want. The one rule: nothing here calls the maths library, only + - * / are used, so that ticks give the
// same bits on every machine where the code that includes this is compiled without contraction (-ffp-contract=off).
//
//     nb_transform planet = nb_transform_identity(), moon = planet;
//     planet.position[0] = 10.0f;
//     moon.position[1] = 2.0f;
//     planet = nb_transform_turn(planet, 0.0f, 0.0f, 0.01f); // about a hundredth of a radian around z
//     nb_transform seen = nb_transform_compose(planet, moon);
//     printf("%g %g\n", (double)seen.position[0], (double)seen.position[1]);

#include "nebula/types.h"

// A pose. Sizes are uniform, so that poses can be composed and inverted without shear.
typedef struct nb_transform {
    float position[3]; // of its origin, in the parent's space
    float scale;       // 1 = as large as in its own space
    float rotation[4]; // a quaternion x, y, z, w; of any length: what it turns by does not depend on it, 0 is no turn
} nb_transform;

// A pose as three rows of four: x' = m[0] x + m[1] y + m[2] z + m[3], and so on.
typedef struct nb_matrix34 {
    float m[12];
} nb_matrix34;

NB_EXTERN_C_BEGIN

// At the origin, not turned, of size 1.
// Thread: any. Owner: the caller gets a value. Fails: never.
NB_INLINE nb_transform nb_transform_identity(void) {
    nb_transform out = {{0.0f, 0.0f, 0.0f}, 1.0f, {0.0f, 0.0f, 0.0f, 1.0f}};
    return out;
}

// Private: 2 over the square of a quaternion's length, which makes a rotation of one of any length; 0 for zero.
NB_INLINE float nbi_rotation_factor(const float q[4]) {
    float square = q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3];
    return square > 0.0f ? 2.0f / square : 0.0f;
}

// Private: a vector, turned.
NB_INLINE void nbi_rotation_apply(const float q[4], const float v[3], float out[3]) {
    float factor = nbi_rotation_factor(q);
    float cx = q[1] * v[2] - q[2] * v[1] + q[3] * v[0];
    float cy = q[2] * v[0] - q[0] * v[2] + q[3] * v[1];
    float cz = q[0] * v[1] - q[1] * v[0] + q[3] * v[2];
    out[0] = v[0] + factor * (q[1] * cz - q[2] * cy);
    out[1] = v[1] + factor * (q[2] * cx - q[0] * cz);
    out[2] = v[2] + factor * (q[0] * cy - q[1] * cx);
}

// Private: first b, then a. A quaternion of zero turns by nothing.
NB_INLINE void nbi_rotation_multiply(const float a[4], const float b[4], float out[4]) {
    bool is_a = nbi_rotation_factor(a) > 0.0f, is_b = nbi_rotation_factor(b) > 0.0f;
    float x = a[3] * b[0] + a[0] * b[3] + a[1] * b[2] - a[2] * b[1];
    float y = a[3] * b[1] - a[0] * b[2] + a[1] * b[3] + a[2] * b[0];
    float z = a[3] * b[2] + a[0] * b[1] - a[1] * b[0] + a[2] * b[3];
    float w = a[3] * b[3] - a[0] * b[0] - a[1] * b[1] - a[2] * b[2];
    const float product[4] = {x, y, z, w};
    const float *from = is_a && is_b ? product : (is_a ? a : b);
    for (int i = 0; i < 4; ++i) out[i] = from[i];
}

// A point of the pose's own space, in its parent's.
// Thread: any. Owner: *out has 3 floats, which may be those of point. Fails: nothing is written where one is NULL.
NB_INLINE void nb_transform_point(nb_transform transform, const float *point, float *out) {
    float turned[3];
    if (point == NULL || out == NULL) return;
    nbi_rotation_apply(transform.rotation, point, turned);
    for (int i = 0; i < 3; ++i) out[i] = transform.position[i] + transform.scale * turned[i];
}

// A child's pose in the space that its parent's pose is in.
// Thread: any. Owner: the caller gets a value. Fails: never.
NB_INLINE nb_transform nb_transform_compose(nb_transform parent, nb_transform child) {
    nb_transform out;
    nb_transform_point(parent, child.position, out.position);
    nbi_rotation_multiply(parent.rotation, child.rotation, out.rotation);
    out.scale = parent.scale * child.scale;
    return out;
}

// The way back: composed with the pose it is about nothing. Of a pose of size 0, which nothing undoes, one of size 0.
// Thread: any. Owner: the caller gets a value. Fails: never.
NB_INLINE nb_transform nb_transform_invert(nb_transform transform) {
    nb_transform out = transform;
    out.scale = transform.scale != 0.0f ? 1.0f / transform.scale : 0.0f;
    for (int i = 0; i < 3; ++i) out.rotation[i] = -transform.rotation[i];
    float back[3];
    nbi_rotation_apply(out.rotation, transform.position, back);
    for (int i = 0; i < 3; ++i) out.position[i] = -(out.scale * back[i]);
    return out;
}

// Turns by a small angle, in radians around each axis of the parent's space: a speed times dt. Up to a quarter of a
// radian it is right to half a percent. The quaternion stays close to length 1 if it was.
// Thread: any. Owner: the caller gets a value. Fails: never.
NB_INLINE nb_transform nb_transform_turn(nb_transform transform, float x, float y, float z) {
    const float turn[4] = {0.5f * x, 0.5f * y, 0.5f * z, 1.0f};
    float *q = transform.rotation;
    nbi_rotation_multiply(turn, transform.rotation, q);
    // One step of Newton's towards length 1; far away from it there would be no way back.
    float square = q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3];
    float factor = square < 2.0f ? 1.5f - 0.5f * square : 1.0f / square;
    for (int i = 0; i < 4; ++i) q[i] *= factor;
    return transform;
}

// The pose at alpha between two, 0 to 1: places and sizes in a straight line, turns the short way round.
// Thread: any. Owner: the caller gets a value. Fails: never.
NB_INLINE nb_transform nb_transform_mix(nb_transform from, nb_transform to, float alpha) {
    const float *a = from.rotation, *b = to.rotation;
    nb_transform out;
    // A quaternion and its negative turn alike; the near one of both is the short way.
    float sign = a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + a[3] * b[3] < 0.0f ? -1.0f : 1.0f;
    for (int i = 0; i < 3; ++i) out.position[i] = from.position[i] + (to.position[i] - from.position[i]) * alpha;
    for (int i = 0; i < 4; ++i) out.rotation[i] = sign * a[i] + (b[i] - sign * a[i]) * alpha;
    out.scale = from.scale + (to.scale - from.scale) * alpha;
    return out;
}

// A pose as a matrix.
// Thread: any. Owner: the caller gets a value. Fails: never.
NB_INLINE nb_matrix34 nb_transform_matrix(nb_transform transform) {
    const float *q = transform.rotation, s = transform.scale, factor = nbi_rotation_factor(q) * s;
    float x = q[0] * factor, y = q[1] * factor, z = q[2] * factor;
    float xx = q[0] * x, yy = q[1] * y, zz = q[2] * z, xy = q[0] * y, xz = q[0] * z, yz = q[1] * z;
    float wx = q[3] * x, wy = q[3] * y, wz = q[3] * z;
    nb_matrix34 out = {{s - (yy + zz), xy - wz, xz + wy, transform.position[0], //
                        xy + wz, s - (xx + zz), yz - wx, transform.position[1], //
                        xz - wy, yz + wx, s - (xx + yy), transform.position[2]}};
    return out;
}

// First b, then a: a parent's matrix times its child's.
// Thread: any. Owner: the caller gets a value. Fails: never.
NB_INLINE nb_matrix34 nb_matrix34_multiply(nb_matrix34 a, nb_matrix34 b) {
    nb_matrix34 out;
    for (int row = 0; row < 3; ++row) {
        const float *from = a.m + 4 * row;
        float *to = out.m + 4 * row;
        for (int i = 0; i < 4; ++i) to[i] = from[0] * b.m[i] + from[1] * b.m[4 + i] + from[2] * b.m[8 + i];
        to[3] += from[3];
    }
    return out;
}

// A point, moved.
// Thread: any. Owner: *out has 3 floats, which may be those of point. Fails: nothing is written where one is NULL.
NB_INLINE void nb_matrix34_point(nb_matrix34 matrix, const float *point, float *out) {
    if (point == NULL || out == NULL) return;
    float x = point[0], y = point[1], z = point[2];
    for (int row = 0; row < 3; ++row) {
        const float *m = matrix.m + 4 * row;
        out[row] = m[0] * x + m[1] * y + m[2] * z + m[3];
    }
}

NB_EXTERN_C_END
