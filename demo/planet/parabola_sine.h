// SPDX-License-Identifier: MIT
#pragma once

// A sine made of two parabolas, for what is simulated: whole numbers only, and never off by more than 6 %.

#include <stdint.h>

// In 1/32768; 65536 is a full turn, of which the angle's low bits count.
static inline int32_t parabola_sine(uint32_t angle) {
    int32_t t = (int32_t)(angle & 32767), value = t * (32768 - t) / 8192;
    return (angle & 65535) < 32768 ? value : -value;
}
