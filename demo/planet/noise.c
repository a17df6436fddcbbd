// SPDX-License-Identifier: MIT
// Smooth noise.

#include "noise.h"

// Odd numbers with well mixed bits: the golden ratio and the fractions of sqrt(2), sqrt(3), sqrt(5) and sqrt(7), times
// 2^64.
#define MIX_X 0x9e3779b97f4a7c15u
#define MIX_Y 0x6a09e667f3bcc909u
#define MIX_Z 0xbb67ae8584caa73bu
#define MIX_1 0x3c6ef372fe94f82bu
#define MIX_2 0xa54ff53a5f1d36f1u

// A place on one axis: its cell's share of the hash, the next one's, and how far it lies between them.
typedef struct axis {
    uint64_t cell, next;
    double offset;
    double weight; // of next: the offset, smoothed
} axis;

// To the middles of a cube's edges, and four of them twice, so that four bits choose one.
static const double DIRECTIONS[16][3] = {{1, 1, 0},  {-1, 1, 0},  {1, -1, 0}, {-1, -1, 0}, {1, 0, 1},  {-1, 0, 1},
                                         {1, 0, -1}, {-1, 0, -1}, {0, 1, 1},  {0, -1, 1},  {0, 1, -1}, {0, -1, -1},
                                         {1, 1, 0},  {-1, 1, 0},  {0, -1, 1}, {0, -1, -1}};

static uint32_t mix_bits(uint64_t bits) {
    bits = (bits ^ bits >> 32) * MIX_1;
    bits = (bits ^ bits >> 29) * MIX_2;
    return (uint32_t)(bits >> 32);
}

uint32_t noise_hash(uint64_t seed, uint32_t x, uint32_t y, uint32_t z) {
    return mix_bits(seed + x * MIX_X + y * MIX_Y + z * MIX_Z);
}

// The weight is 6t^5 - 15t^4 + 10t^3, whose first two derivatives are 0 at both ends: slopes and shading show no grid.
static axis axis_at(double at, uint64_t factor) {
    int32_t cell = (int32_t)at;
    if (at < cell) --cell; // rounded down for both signs
    double t = at - cell;
    return (axis){.cell = (uint32_t)cell * factor,
                  .next = ((uint32_t)cell + 1) * factor,
                  .offset = t,
                  .weight = t * t * t * (t * (t * 6 - 15) + 10)};
}

// How far a point lies along the direction of a corner; x, y and z are from that corner.
static double slope(uint64_t bits, double x, double y, double z) {
    // Four bits of sums that are well mixed already: one product is enough.
    const double *direction = DIRECTIONS[(bits ^ bits >> 32) * MIX_1 >> 60];
    return direction[0] * x + direction[1] * y + direction[2] * z;
}

static double blend(double from, double to, double weight) { return from + (to - from) * weight; }

// One of the two planes of corners.
static double plane_at(uint64_t bits, const axis *x, const axis *y, double z) {
    double x0 = x->offset, x1 = x0 - 1, y0 = y->offset, y1 = y0 - 1;
    uint64_t near = bits + y->cell, far = bits + y->next;
    double a = blend(slope(near + x->cell, x0, y0, z), slope(near + x->next, x1, y0, z), x->weight);
    double b = blend(slope(far + x->cell, x0, y1, z), slope(far + x->next, x1, y1, z), x->weight);
    return blend(a, b, y->weight);
}

double noise_3d(uint64_t seed, vec3d at) {
    axis x = axis_at(at.x, MIX_X), y = axis_at(at.y, MIX_Y), z = axis_at(at.z, MIX_Z);
    double near = plane_at(seed + z.cell, &x, &y, z.offset), far = plane_at(seed + z.next, &x, &y, z.offset - 1);
    double value = blend(near, far, z.weight);
    return value < -1 ? -1 : value > 1 ? 1 : value;
}

double noise_fractal_3d(uint64_t seed, vec3d at, uint32_t octaves) {
    double sum = 0, weight = 1, weights = 0;
    for (uint32_t i = 0; i < octaves; ++i) {
        sum += noise_3d(seed + i, at) * weight;
        weights += weight;
        weight *= 0.5;
        at = vec3d_scale(at, 2);
    }
    return sum / weights;
}

double noise_ridges_3d(uint64_t seed, vec3d at, uint32_t octaves) {
    double sum = 0, weight = 1, weights = 0, before = 1;
    for (uint32_t i = 0; i < octaves; ++i) {
        double value = noise_3d(seed + i, at), crest = 1 - 1.5 * (value < 0 ? -value : value);
        crest = crest > 0 ? crest * crest : 0;
        sum += crest * weight * before;
        weights += weight;
        before = crest;
        weight *= 0.5;
        at = vec3d_scale(at, 2);
    }
    return sum / weights;
}
