// SPDX-License-Identifier: MIT
#pragma once

// Pictures of the flight as files: one of each part of it, at ticks that are the same in every run. A file is written
// by a thread that may block, while the frames go on.

#include <stdbool.h>
#include <stdint.h>

#include "nebula/async.h"
#include "nebula/gpu.h"

#include "../players/script.h"

#define SHOTS_PATH_SIZE 512

typedef struct shots {
    const char *folder; // NULL = none are taken
    nb_gpu *gpu;
    nb_async *async; // NULL = files are written at once
    const script_shot *plan;
    uint32_t plan_count;
    uint32_t next;   // of the plan
    bool is_asked;   // pixels are under way
    bool is_writing; // a file is
    uint32_t count;  // written
    uint64_t hash;   // of all pixels so far
    nb_result result;
    char path[SHOTS_PATH_SIZE];
    uint8_t *pixels; // of the file that is written
    size_t pixel_bytes;
    uint32_t width, height;
} shots;

// The folder is made where it is missing; false, with one line on stderr, where it cannot be.
// flight = whose pictures they are; NULL = the built-in one's.
bool shots_open(shots *s, const char *folder, nb_gpu *gpu, const script *flight);

// Whether the next one is due once this many ticks have run: the host waits for what is wanted to be there, and asks.
bool shots_is_due(const shots *s, uint64_t tick_count);

// In FrameGraph: asks the device for this frame's pixels.
void shots_ask(shots *s);

// After a frame: takes the pixels that have come, and has them written. wait: until they have.
nb_result shots_take(shots *s, bool wait);

// When no job of the engine runs any more.
void shots_close(shots *s);
