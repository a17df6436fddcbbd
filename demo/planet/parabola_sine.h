// SPDX-License-Identifier: MIT
#pragma once

// A sine of parabolas, for what is simulated: never off by more than 6 %, and whole numbers only.

#include <stdint.h>

// In 1/32768; 65536 is a full turn, of which the angle's low bits count.
static inline int32_t wave(uint32_t angle) {
    int32_t t = (int32_t)(angle & 32767), value = t * (32768 - t) / 8192;
    return (angle & 65535) < 32768 ? value : -value;
}
