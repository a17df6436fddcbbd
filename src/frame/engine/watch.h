// SPDX-License-Identifier: MIT
#pragma once

// Those that watch the ticks of an engine: recorders, replays, netplay.

#include "nebula/engine.h"

typedef struct nbi_watches {
    nb_tick_watch all[NB_TICK_WATCH_COUNT_MAX]; // in the order of adding
    uint32_t count;
} nbi_watches;

// Before the tick: watches may put other input in its place.
void nbi_watches_begin(nb_engine *engine);

// After the tick: shows the watches its input and its hash.
void nbi_watches_end(const nb_engine *engine);
