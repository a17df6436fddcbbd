// SPDX-License-Identifier: MIT
#pragma once

// Levels of quality of the picture, from a CPU that draws to a large graphics card. The budget controller chooses one
// by the time that frames take, or the command line does.

#include <stdint.h>

#define QUALITY_COUNT 8u

// Where a run begins: high enough for a card to look well at once, low enough for a CPU not to stall.
#define QUALITY_FIRST 3u

// Where nothing measures time: the same pictures everywhere, at a fair price.
#define QUALITY_FIXED_DEFAULT 4u

typedef struct quality_level {
    double split;    // a node nearer than this many of its widths is split, see lod.h
    uint8_t coarse;  // cells are made two by two, see node.h
    uint32_t render; // level of the renderer, see render.h
} quality_level;

// Levels above the highest are the highest.
static inline quality_level quality_of(uint32_t level) {
    static const quality_level LEVELS[QUALITY_COUNT] = {{0.25, 1, 0}, {0.8, 1, 0}, {1.0, 0, 0},  {1.6, 0, 1},
                                                        {2.6, 0, 2},  {4.5, 0, 3}, {11.5, 0, 3}, {11.5, 0, 4}};
    return LEVELS[level < QUALITY_COUNT ? level : QUALITY_COUNT - 1];
}
