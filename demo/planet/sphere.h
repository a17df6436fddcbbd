// SPDX-License-Identifier: MIT
#pragma once

// The planet's shape: a cube blown up to a sphere. Each of six faces is a square of 4096 by 4096 columns; a place is a
// face, u and v in columns from the face's first corner, and h in metres above the sea. The one rule: a face's columns
// go from 0 to 4095, and whoever steps over its edge asks sphere_fold where that is.
//
// As a formula, for shaders too (x, y and z by the axes of the face; all constants are exact in a float):
//     s = u / 2048 - 1,  t = v / 2048 - 1
//     warp(s) = s * (807 + 145 s^2 + 72 s^4) / 1024
//     position = normalise(out + U * warp(s) + V * warp(t)) * (SPHERE_RADIUS + h)
// The warp is within 1 % of tan(s * pi / 4), so that along the middle of a face all columns are a metre wide, and it is
// 0 at 0 and 1 at 1, so that faces meet. Towards the edges columns are narrower along the edge, down to 0.7 m.
//
//     face  0   1   2   3   4   5
//     out  +X  -X  +Y  -Y  +Z  -Z     the north pole is +Y
//     U    +Z  -Z  +X  -X  -X  +X
//     V    +Y  +Y  +Z  +Z  +Y  +Y     V x U = out on every face
//
// All numbers are doubles, and only + - * / and the square root are used: the same bits with every compiler and CPU.

#include <stdbool.h>
#include <stdint.h>

#include "vec.h"

#define SPHERE_FACE_COUNT 6
#define SPHERE_FACE_COLUMNS 4096

// A quarter of the way around is the width of a face: 2 * 4096 / pi, so that a column is a metre wide.
#define SPHERE_RADIUS 2607.5945876176133

// A square of a face that is cut into size * size squares, x along U and z along V; and how often whatever points
// somewhere has to be turned by a quarter, from +x to +z, on the way there.
typedef struct sphere_cell {
    uint32_t face;
    int32_t x, z;
    uint32_t turns; // 0 to 3
} sphere_cell;

typedef struct sphere_place {
    uint32_t face;
    double u, v; // columns, 0 to 4096
    double h;    // metres above the sea
} sphere_place;

// The direction of a face's axes: which = 0 for U, 1 for V, 2 for out.
vec3d sphere_axis(uint32_t face, uint32_t which);

// Of length 1, from the middle of the planet.
vec3d sphere_direction(uint32_t face, double u, double v);

vec3d sphere_position(uint32_t face, double u, double v, double h);

// The place of a position; any place for the middle of the planet.
sphere_place sphere_locate(vec3d position);

// The warp of a column: -1 for 0, 1 for 4096.
double sphere_warped(double column);

// The column whose warp is `value`: 0 for -1, 4096 for 1, and on beyond.
double sphere_unwarped(double value);

// Where a square is that may lie beyond the edges of its face, by up to one face. Whoever is beyond two edges at once
// goes over that of x first: around a corner there are three squares, not four.
sphere_cell sphere_fold(uint32_t face, int32_t x, int32_t z, int32_t size);

// Turns {x, z} by quarters, from +x to +z.
static inline void sphere_turn(uint32_t turns, int32_t *x, int32_t *z) {
    for (; turns > 0; --turns) {
        int32_t old = *x;
        *x = -*z;
        *z = old;
    }
}

// The voxel or column of a coordinate, kept inside the face.
static inline int32_t sphere_column(double u) {
    if (!(u > 0)) return 0;
    return u < SPHERE_FACE_COLUMNS ? (int32_t)u : SPHERE_FACE_COLUMNS - 1;
}
