// SPDX-License-Identifier: MIT
#pragma once

// The clear colour: a pure function of the tick, so that it proves the simulation is alive and can be tested.

#include <stdint.h>

typedef struct demo_colour {
    uint8_t red, green, blue;
} demo_colour;

// Black at tick 0, dark blue 60 ticks later, black again after 120.
static inline demo_colour demo_colour_of(uint64_t tick) {
    uint32_t phase = (uint32_t)(tick % 120);
    uint32_t level = phase < 60 ? phase : 120 - phase;
    return (demo_colour){0, (uint8_t)(level * 16 / 60), (uint8_t)(level * 96 / 60)};
}
