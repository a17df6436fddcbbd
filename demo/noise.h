// SPDX-License-Identifier: MIT
#pragma once

// Smooth noise from integers alone: the same bits with every compiler and CPU, which a world that is generated on many
// machines needs. The one rule: values are Q15, where 32768 stands for 1, and lie between -1 and 1. Coordinates wrap at
// 2^32, without a seam.

#include <stdint.h>

#define NOISE_ONE 32768

// Largest `shift`: cells of 2^16 voxels have corners with 16 bits of fraction between them.
#define NOISE_SHIFT_MAX 16

// 32 well mixed bits of a place.
uint32_t noise_hash(uint64_t seed, uint32_t x, uint32_t y, uint32_t z);

// Gradient noise over a grid of 2^shift voxels; shift is 0 to NOISE_SHIFT_MAX. Zero at the corners of the grid.
int32_t noise_2d(uint64_t seed, int32_t x, int32_t z, uint32_t shift);

// The sum of `octaves` of noise_2d, each of half the cell and half the height of the one before, scaled to stay within
// -1 and 1. octaves is 1 to shift + 1.
int32_t noise_fractal_2d(uint64_t seed, int32_t x, int32_t z, uint32_t shift, uint32_t octaves);

// Value noise over a grid of cubes of 2^shift voxels.
int32_t noise_3d(uint64_t seed, int32_t x, int32_t y, int32_t z, uint32_t shift);
