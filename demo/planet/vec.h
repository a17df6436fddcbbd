// SPDX-License-Identifier: MIT
#pragma once

// Three floats or doubles, and the few operations the demo needs. Only + - * / and the square root, which IEEE 754
// rounds exactly: the same bits with every compiler and CPU.

#include <math.h>

typedef struct vec3 {
    float x, y, z;
} vec3;

static inline vec3 vec3_add(vec3 a, vec3 b) { return (vec3){a.x + b.x, a.y + b.y, a.z + b.z}; }
static inline vec3 vec3_sub(vec3 a, vec3 b) { return (vec3){a.x - b.x, a.y - b.y, a.z - b.z}; }
static inline vec3 vec3_scale(vec3 a, float factor) { return (vec3){a.x * factor, a.y * factor, a.z * factor}; }
static inline float vec3_dot(vec3 a, vec3 b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
static inline float vec3_length(vec3 a) { return sqrtf(vec3_dot(a, a)); }

static inline vec3 vec3_cross(vec3 a, vec3 b) {
    return (vec3){a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}

// Of length 1; `otherwise` where a is too short to have a direction.
static inline vec3 vec3_normal(vec3 a, vec3 otherwise) {
    float length = vec3_length(a);
    return length > 1e-6f ? vec3_scale(a, 1.0f / length) : otherwise;
}

// What is simulated, or as large as the planet, is in doubles.
typedef struct vec3d {
    double x, y, z;
} vec3d;

static inline vec3d vec3d_add(vec3d a, vec3d b) { return (vec3d){a.x + b.x, a.y + b.y, a.z + b.z}; }
static inline vec3d vec3d_sub(vec3d a, vec3d b) { return (vec3d){a.x - b.x, a.y - b.y, a.z - b.z}; }
static inline vec3d vec3d_scale(vec3d a, double factor) { return (vec3d){a.x * factor, a.y * factor, a.z * factor}; }
static inline double vec3d_dot(vec3d a, vec3d b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
static inline double vec3d_length(vec3d a) { return sqrt(vec3d_dot(a, a)); }

static inline vec3d vec3d_cross(vec3d a, vec3d b) {
    return (vec3d){a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}

static inline vec3d vec3d_normal(vec3d a, vec3d otherwise) {
    double length = vec3d_length(a);
    return length > 1e-12 ? vec3d_scale(a, 1.0 / length) : otherwise;
}

static inline vec3 vec3_of(vec3d a) { return (vec3){(float)a.x, (float)a.y, (float)a.z}; }
