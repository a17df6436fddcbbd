// SPDX-License-Identifier: MIT
// A cube blown up to a sphere.

#include "sphere.h"

typedef struct face_axes {
    int8_t axis[3][3]; // U, V, out
} face_axes;

static const face_axes FACES[SPHERE_FACE_COUNT] = {
    {{{0, 0, 1}, {0, 1, 0}, {1, 0, 0}}},   {{{0, 0, -1}, {0, 1, 0}, {-1, 0, 0}}}, {{{1, 0, 0}, {0, 0, 1}, {0, 1, 0}}},
    {{{-1, 0, 0}, {0, 0, 1}, {0, -1, 0}}}, {{{-1, 0, 0}, {0, 1, 0}, {0, 0, 1}}},  {{{1, 0, 0}, {0, 1, 0}, {0, 0, -1}}},
};

// Newton's steps to undo the warp: its slope is between 0.78 and 1.6, so each doubles the digits, from one to all.
#define UNWARP_STEPS 5

static double warp(double s) {
    double q = s * s;
    return s * (807.0 + q * (145.0 + q * 72.0)) / 1024.0;
}

static double unwarp(double value) {
    double s = value;
    for (int i = 0; i < UNWARP_STEPS; ++i) {
        double q = s * s, slope = (807.0 + q * (435.0 + q * 360.0)) / 1024.0;
        s -= (warp(s) - value) / slope;
    }
    return s;
}

double sphere_warped(double column) { return warp(column / (SPHERE_FACE_COLUMNS / 2) - 1); }

double sphere_unwarped(double value) {
    // Beyond four faces' width nothing is looked for.
    double near = value < -4 ? -4 : value > 4 ? 4 : value;
    return (unwarp(near) + 1) * (SPHERE_FACE_COLUMNS / 2);
}

vec3d sphere_axis(uint32_t face, uint32_t which) {
    const int8_t *axis = FACES[face % SPHERE_FACE_COUNT].axis[which % 3];
    return (vec3d){axis[0], axis[1], axis[2]};
}

vec3d sphere_direction(uint32_t face, double u, double v) {
    const face_axes *f = &FACES[face % SPHERE_FACE_COUNT];
    double a = sphere_warped(u), b = sphere_warped(v);
    double scale = 1 / sqrt(1 + a * a + b * b);
    vec3d result = {f->axis[2][0] + f->axis[0][0] * a + f->axis[1][0] * b,
                    f->axis[2][1] + f->axis[0][1] * a + f->axis[1][1] * b,
                    f->axis[2][2] + f->axis[0][2] * a + f->axis[1][2] * b};
    return vec3d_scale(result, scale);
}

vec3d sphere_position(uint32_t face, double u, double v, double h) {
    return vec3d_scale(sphere_direction(face, u, v), SPHERE_RADIUS + h);
}

// The face that a direction leaves the cube through.
static uint32_t face_of(vec3d p) {
    double x = p.x < 0 ? -p.x : p.x, y = p.y < 0 ? -p.y : p.y, z = p.z < 0 ? -p.z : p.z;
    if (x >= y && x >= z) return p.x < 0 ? 1 : 0;
    if (y >= z) return p.y < 0 ? 3 : 2;
    return p.z < 0 ? 5 : 4;
}

sphere_place sphere_locate(vec3d position) {
    uint32_t face = face_of(position);
    double length = vec3d_length(position), depth = vec3d_dot(position, sphere_axis(face, 2));
    sphere_place place = {.face = face, .u = 0, .v = 0, .h = length - SPHERE_RADIUS};
    if (!(depth > 0)) return place;
    place.u = sphere_unwarped(vec3d_dot(position, sphere_axis(face, 0)) / depth);
    place.v = sphere_unwarped(vec3d_dot(position, sphere_axis(face, 1)) / depth);
    return place;
}

static int32_t dot(const int8_t a[3], const int32_t b[3]) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

static uint32_t face_along(const int32_t axis[3]) {
    for (uint32_t face = 0; face < SPHERE_FACE_COUNT; ++face)
        if (dot(FACES[face].axis[2], axis) > 0) return face;
    return 0;
}

// Over one edge: what lies beyond it along the face lies below it on the neighbour, whose out is the way that was
// taken. Numbers are doubled, so that the middles of squares are whole.
static sphere_cell fold_once(sphere_cell from, int32_t size) {
    const face_axes *f = &FACES[from.face];
    bool is_x = from.x < 0 || from.x >= size;
    int32_t at = is_x ? from.x : from.z, along = is_x ? from.z : from.x;
    int32_t sign = at < 0 ? -1 : 1, beyond = at < 0 ? -1 - at : at - size;
    int32_t way[3], point[3], ahead[3];
    for (int i = 0; i < 3; ++i) {
        way[i] = f->axis[is_x ? 0 : 1][i] * sign;
        point[i] = f->axis[2][i] * (size - 1 - 2 * beyond) + f->axis[is_x ? 1 : 0][i] * (2 * along + 1 - size);
        // Where +x leads: on over the edge it bends down, along the edge it goes on.
        ahead[i] = is_x ? -f->axis[2][i] * sign : f->axis[0][i];
    }
    uint32_t face = face_along(way);
    const face_axes *to = &FACES[face];
    static const uint32_t TURNS[3][3] = {{0, 2, 0}, {3, 0, 1}, {0, 0, 0}}; // by the new direction of x: [u + 1][v + 1]
    sphere_cell result = {.face = face, .x = (dot(to->axis[0], point) + size - 1) / 2};
    result.z = (dot(to->axis[1], point) + size - 1) / 2;
    result.turns = (from.turns + TURNS[dot(to->axis[0], ahead) + 1][dot(to->axis[1], ahead) + 1]) % 4;
    return result;
}

sphere_cell sphere_fold(uint32_t face, int32_t x, int32_t z, int32_t size) {
    sphere_cell cell = {face % SPHERE_FACE_COUNT, x, z, 0};
    // Beyond two edges the second fold leads onto a face; one more for who is beyond by nearly a whole face.
    for (int i = 0; i < 3; ++i) {
        if (cell.x >= 0 && cell.x < size && cell.z >= 0 && cell.z < size) return cell;
        cell = fold_once(cell, size);
    }
    cell.x = cell.x < 0 ? 0 : cell.x >= size ? size - 1 : cell.x;
    cell.z = cell.z < 0 ? 0 : cell.z >= size ? size - 1 : cell.z;
    return cell;
}
