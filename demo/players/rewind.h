// SPDX-License-Identifier: MIT
#pragma once

// Time that runs backwards: at a given tick, or while a key is held. A tick a frame, as far as the history goes; then
// forwards again, over what was rewound.

#include "nebula/engine.h"

typedef struct rewind_plan {
    uint64_t at_tick;    // where it turns by itself, once; 0 = never
    uint64_t for_ticks;  // how far back
    uint64_t back_count; // ticks that went back so far
    uint64_t turn_count; // times that it turned
    uint64_t left;       // ticks still to go back by itself
    bool is_back;        // now
} rewind_plan;

// Between frames: goes one tick back where the plan says so, or the key is held. The loop's ticks rest meanwhile.
nb_result rewind_step(rewind_plan *plan, nb_engine *engine, bool is_key_held);
