// SPDX-License-Identifier: MIT
#pragma once

// What materials look like, for everything that draws. Colours are linear: light adds up in them; a screen wants their
// square root, or the sRGB curve.

#include "terrain.h"

typedef struct palette_entry {
    float colour[3]; // red, green, blue, 0 to 1, linear
    float opacity;   // 1 = nothing is seen through it
    float roughness; // 0 a mirror to 1 chalk
    float glow;      // share of its colour that it gives off by itself
    float speckle;   // how much one voxel may differ from the next, 0 to 1
} palette_entry;

// Air for a number that is no material.
const palette_entry *palette_of(uint32_t material);
