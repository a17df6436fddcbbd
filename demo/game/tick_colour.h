// SPDX-License-Identifier: MIT
#pragma once

// The pulse of the simulation: a colour that depends on the tick alone, from black to dark blue and back every 120
// ticks. Space behind the planet pulses with it, and --ticks prints it.

#include <stdint.h>

// Ticks from black to dark blue: a second at 60 Hz.
#define COLOUR_RISE_TICKS 60u

typedef struct tick_colour {
    uint8_t red, green, blue;
} tick_colour;

// 0 at tick 0, COLOUR_RISE_TICKS that many ticks later, 0 again after twice as many.
static inline uint32_t colour_level(uint64_t tick) {
    uint32_t phase = (uint32_t)(tick % (2 * COLOUR_RISE_TICKS));
    return phase < COLOUR_RISE_TICKS ? phase : 2 * COLOUR_RISE_TICKS - phase;
}

static inline tick_colour colour_of_tick(uint64_t tick) {
    uint32_t level = colour_level(tick);
    return (tick_colour){0, (uint8_t)(level * 16 / COLOUR_RISE_TICKS), (uint8_t)(level * 96 / COLOUR_RISE_TICKS)};
}
