// SPDX-License-Identifier: MIT
#pragma once

// Smooth noise in space: the same bits with every compiler and CPU, which a world that is generated on many machines
// needs. Cells are unit cubes: whoever wants larger ones scales the place. The one rule: values lie between -1 and 1.
// Only + - and * of doubles are used, and integers.

#include <stdint.h>

#include "vec.h"

// 32 well mixed bits of a place.
uint32_t noise_hash(uint64_t seed, uint32_t x, uint32_t y, uint32_t z);

// Gradient noise: zero at the corners of the cells. Places are within 2^30 of the origin.
double noise_3d(uint64_t seed, vec3d at);

// The sum of `octaves` of noise_3d, each of half the cell and half the height of the one before, scaled to stay within
// -1 and 1. octaves is 1 or more.
double noise_fractal_3d(uint64_t seed, vec3d at, uint32_t octaves);

// As noise_fractal_3d, but folded at zero: 0 to 1, with sharp crests where it is 1. An octave counts as much as the one
// before it is high, so that crests are rough and valleys are smooth.
double noise_ridges_3d(uint64_t seed, vec3d at, uint32_t octaves);
