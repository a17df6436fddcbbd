// SPDX-License-Identifier: MIT
// Smooth noise from integers.

#include "noise.h"

// Odd numbers with well mixed bits: the golden ratio and the fractions of sqrt(2), sqrt(3), sqrt(5) and sqrt(7), times
// 2^64.
#define MIX_X 0x9e3779b97f4a7c15u
#define MIX_Y 0x6a09e667f3bcc909u
#define MIX_Z 0xbb67ae8584caa73bu
#define MIX_1 0x3c6ef372fe94f82bu
#define MIX_2 0xa54ff53a5f1d36f1u

// Weights between corners are Q16.
#define WEIGHT_ONE 65536

// A place on one axis: its cell, the next one, and how far it lies between them.
typedef struct axis {
    uint32_t cell, next;
    int32_t offset; // Q16
    int32_t weight; // of next, Q16: the offset, smoothed
} axis;

// Sixteen directions of length 256.
static const int16_t DIRECTIONS[16][2] = {{256, 0},    {237, 98},  {181, 181},  {98, 237},   {0, 256},     {-98, 237},
                                          {-181, 181}, {-237, 98}, {-256, 0},   {-237, -98}, {-181, -181}, {-98, -237},
                                          {0, -256},   {98, -237}, {181, -181}, {237, -98}};

uint32_t noise_hash(uint64_t seed, uint32_t x, uint32_t y, uint32_t z) {
    uint64_t bits = seed + x * MIX_X + y * MIX_Y + z * MIX_Z;
    bits = (bits ^ bits >> 32) * MIX_1;
    bits = (bits ^ bits >> 29) * MIX_2;
    return (uint32_t)(bits >> 32);
}

// 6t^5 - 15t^4 + 10t^3, whose first two derivatives are 0 at both ends: slopes and shading show no grid.
static int32_t smooth(int64_t t) {
    int64_t inner = t * (6 * t - 15 * WEIGHT_ONE) / WEIGHT_ONE + 10 * WEIGHT_ONE;
    return (int32_t)(t * t / WEIGHT_ONE * t / WEIGHT_ONE * inner / WEIGHT_ONE);
}

// Unsigned throughout: shifting a negative number right is up to the compiler. Masking makes the last cell of the
// numbers the neighbour of the first, as coordinates are.
static axis axis_at(int32_t coordinate, uint32_t shift) {
    uint32_t bits = (uint32_t)coordinate, mask = 0xffffffffu >> shift;
    axis result = {.cell = bits >> shift};
    result.next = (result.cell + 1) & mask;
    result.offset = (int32_t)((bits & ((1u << shift) - 1)) << (16 - shift));
    result.weight = smooth(result.offset);
    return result;
}

static int32_t mix(int32_t from, int32_t to, int32_t weight) {
    return from + (int32_t)((int64_t)(to - from) * weight / WEIGHT_ONE);
}

// How far a point lies along the direction of a corner; dx and dz are Q16 from that corner.
static int32_t slope(uint64_t seed, uint32_t x, uint32_t z, int32_t dx, int32_t dz) {
    const int16_t *direction = DIRECTIONS[noise_hash(seed, x, 0, z) >> 28];
    return direction[0] * dx + direction[1] * dz;
}

int32_t noise_2d(uint64_t seed, int32_t x, int32_t z, uint32_t shift) {
    axis ax = axis_at(x, shift), az = axis_at(z, shift);
    int32_t x0 = ax.offset, x1 = ax.offset - WEIGHT_ONE, z0 = az.offset, z1 = az.offset - WEIGHT_ONE;
    int32_t near = mix(slope(seed, ax.cell, az.cell, x0, z0), slope(seed, ax.next, az.cell, x1, z0), ax.weight);
    int32_t far = mix(slope(seed, ax.cell, az.next, x0, z1), slope(seed, ax.next, az.next, x1, z1), ax.weight);
    // Directions of length 1 reach sqrt(1/2): 181/128 stretches that to 1, and 512 takes Q24 to Q15.
    int64_t value = (int64_t)mix(near, far, az.weight) * 181 / (128 * 512);
    if (value > NOISE_ONE) return NOISE_ONE;
    return value < -NOISE_ONE ? -NOISE_ONE : (int32_t)value;
}

int32_t noise_fractal_2d(uint64_t seed, int32_t x, int32_t z, uint32_t shift, uint32_t octaves) {
    int32_t sum = 0, weight = NOISE_ONE, weights = 0;
    for (uint32_t i = 0; i < octaves; ++i) {
        sum += (int32_t)((int64_t)noise_2d(seed + i, x, z, shift - i) * weight / NOISE_ONE);
        weights += weight;
        weight /= 2;
    }
    return (int32_t)((int64_t)sum * NOISE_ONE / weights);
}

static int32_t corner(uint64_t seed, uint32_t x, uint32_t y, uint32_t z) {
    return (int32_t)(noise_hash(seed, x, y, z) >> 16) - NOISE_ONE;
}

int32_t noise_3d(uint64_t seed, int32_t x, int32_t y, int32_t z, uint32_t shift) {
    axis ax = axis_at(x, shift), ay = axis_at(y, shift), az = axis_at(z, shift);
    int32_t planes[2];
    for (uint32_t i = 0; i < 2; ++i) {
        uint32_t cy = i == 0 ? ay.cell : ay.next;
        int32_t near = mix(corner(seed, ax.cell, cy, az.cell), corner(seed, ax.next, cy, az.cell), ax.weight);
        int32_t far = mix(corner(seed, ax.cell, cy, az.next), corner(seed, ax.next, cy, az.next), ax.weight);
        planes[i] = mix(near, far, az.weight);
    }
    return mix(planes[0], planes[1], ay.weight);
}
