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
    static const quality_level LEVELS[QUALITY_COUNT] = {{0.2, 1, 0}, {0.8, 1, 0}, {1.0, 0, 0},  {1.6, 0, 1},
                                                        {2.6, 0, 2}, {4.5, 0, 3}, {11.5, 0, 3}, {11.5, 0, 4}};
    return LEVELS[level < QUALITY_COUNT ? level : QUALITY_COUNT - 1];
}

// From high above only some dozen nodes are seen: every level can afford so many widths there. In steps, so that what
// is wanted does not change with each metre.
#define QUALITY_SPLIT_HIGH 1.5
#define QUALITY_HIGH_METRES 2000.0
#define QUALITY_HIGH_STEPS 8

// The level's split for an eye so many metres above the ground.
static inline double quality_split(quality_level level, double height) {
    if (level.split >= QUALITY_SPLIT_HIGH || height <= 0) return level.split;
    double share = height < QUALITY_HIGH_METRES ? height / QUALITY_HIGH_METRES : 1;
    uint32_t step = (uint32_t)(share * QUALITY_HIGH_STEPS);
    return level.split + (QUALITY_SPLIT_HIGH - level.split) * step / QUALITY_HIGH_STEPS;
}
