// SPDX-License-Identifier: MIT
#pragma once

// One node's pose in the world, four numbers at a time: the same steps as nb_transform_mix, nb_transform_matrix and
// nb_matrix34_multiply, which compilers leave to one number at a time.

#include "nebula/transform.h"

#include <string.h>

#if defined(NBI_HAS_LANES)
// Said by the build, to try the other way.
#elif defined(__clang__) || (defined(__GNUC__) && __GNUC__ >= 12)
#define NBI_HAS_LANES 1
#else
#define NBI_HAS_LANES 0
#endif

#if NBI_HAS_LANES

typedef float nbi_lanes __attribute__((vector_size(16)));

NB_STATIC_ASSERT(sizeof(nb_transform) == 2 * sizeof(nbi_lanes), "position and size, and a quaternion");
NB_STATIC_ASSERT(sizeof(nb_matrix34) == 3 * sizeof(nbi_lanes), "three rows");

#define NBI_PICK(v, a, b, c, d) __builtin_shufflevector((v), (v), (a), (b), (c), (d))
#define NBI_ALL(v, i) NBI_PICK(v, i, i, i, i)

static inline nbi_lanes nbi_lanes_load(const float *from) {
    nbi_lanes out;
    memcpy(&out, from, sizeof out);
    return out;
}

// In every lane the same sum.
static inline nbi_lanes nbi_lanes_dot(nbi_lanes a, nbi_lanes b) {
    nbi_lanes product = a * b;
    nbi_lanes pairs = product + NBI_PICK(product, 1, 0, 3, 2);
    return pairs + NBI_PICK(pairs, 2, 3, 0, 1);
}

typedef struct nbi_pose {
    nbi_lanes position_size; // position and size
    nbi_lanes turn;
} nbi_pose;

static inline nbi_pose nbi_pose_load(const nb_transform *from) {
    return (nbi_pose){nbi_lanes_load(from->position), nbi_lanes_load(from->rotation)};
}

static inline nbi_pose nbi_pose_mix(nbi_pose from, nbi_pose to, float alpha) {
    if (nbi_lanes_dot(from.turn, to.turn)[0] < 0.0f) from.turn = -from.turn;
    return (nbi_pose){from.position_size + (to.position_size - from.position_size) * alpha,
                      from.turn + (to.turn - from.turn) * alpha};
}

// Rows of the pose's matrix, or of above times it; above may be NULL.
static inline void nbi_pose_draw(nbi_pose pose, const nb_matrix34 *above, nb_matrix34 *out) {
    const nbi_lanes q = pose.turn;
    float size = pose.position_size[3], square = nbi_lanes_dot(q, q)[0],
          factor = square > 0.0f ? 2.0f * size / square : 0.0f;
    nbi_lanes f = q * factor;
    // Sums of two products for each element; those of the diagonal are taken off the size.
    nbi_lanes x = NBI_PICK(f, 1, 0, 0, 3) * NBI_PICK(q, 1, 1, 2, 3) * (nbi_lanes){-1, 1, 1, 0} +
                  NBI_PICK(f, 2, 3, 3, 3) * NBI_PICK(q, 2, 2, 1, 3) * (nbi_lanes){-1, -1, 1, 0};
    nbi_lanes y = NBI_PICK(f, 0, 0, 1, 3) * NBI_PICK(q, 1, 0, 2, 3) * (nbi_lanes){1, -1, 1, 0} +
                  NBI_PICK(f, 3, 2, 3, 3) * NBI_PICK(q, 2, 2, 0, 3) * (nbi_lanes){1, -1, -1, 0};
    nbi_lanes z = NBI_PICK(f, 0, 1, 0, 3) * NBI_PICK(q, 2, 2, 0, 3) * (nbi_lanes){1, 1, -1, 0} +
                  NBI_PICK(f, 3, 3, 1, 3) * NBI_PICK(q, 1, 0, 1, 3) * (nbi_lanes){-1, 1, -1, 0};
    x += (nbi_lanes){size, 0, 0, pose.position_size[0]};
    y += (nbi_lanes){0, size, 0, pose.position_size[1]};
    z += (nbi_lanes){0, 0, size, pose.position_size[2]};
    nbi_lanes rows[3] = {x, y, z};
    for (int i = 0; above != NULL && i < 3; ++i) {
        nbi_lanes a = nbi_lanes_load(above->m + 4 * i);
        nbi_lanes last = __builtin_shufflevector(a, (nbi_lanes){0}, 4, 4, 4, 3);
        rows[i] = NBI_ALL(a, 0) * x + NBI_ALL(a, 1) * y + NBI_ALL(a, 2) * z + last;
    }
    memcpy(out, rows, sizeof rows);
}

#else

typedef nb_transform nbi_pose;

static inline nbi_pose nbi_pose_load(const nb_transform *from) { return *from; }

static inline nbi_pose nbi_pose_mix(nbi_pose from, nbi_pose to, float alpha) {
    return nb_transform_mix(from, to, alpha);
}

static inline void nbi_pose_draw(nbi_pose pose, const nb_matrix34 *above, nb_matrix34 *out) {
    nb_matrix34 own = nb_transform_matrix(pose);
    *out = above != NULL ? nb_matrix34_multiply(*above, own) : own;
}

#endif
