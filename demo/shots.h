// SPDX-License-Identifier: MIT
#pragma once

// Pictures of the flight as files: one of each part of it, at ticks that are the same in every run.

#include <stdbool.h>
#include <stdint.h>

#include "nebula/gpu.h"

#define SHOTS_PATH_SIZE 512

typedef struct shots {
    const char *folder; // NULL = none are taken
    nb_gpu *gpu;
    uint32_t next;  // of the plan
    bool is_asked;  // one is under way
    uint32_t count; // written
    uint64_t hash;  // of all pixels so far
} shots;

// The folder is made where it is missing; false, with one line on stderr, where it cannot be.
bool shots_open(shots *s, const char *folder, nb_gpu *gpu);

// Whether the next one is due once this many ticks have run: the host waits for what is wanted to be there, and asks.
bool shots_is_due(const shots *s, uint64_t tick_count);

// In FrameGraph: asks the device for this frame's pixels.
void shots_ask(shots *s);

// After a frame: writes what has come. wait: until it has.
nb_result shots_take(shots *s, bool wait);
