// SPDX-License-Identifier: MIT
#pragma once

// The watches of an engine, such as recorders, replays and netplay: callbacks around each tick.

#include "nebula/engine.h"

typedef struct nbi_watches {
    nb_tick_watch all[NB_TICK_WATCH_COUNT_MAX]; // in the order of adding
    uint32_t count;
} nbi_watches;

// Before the tick: watches may put other input in its place.
void nbi_watches_begin(nb_engine *engine);

// After the tick: shows the watches its input and its hash.
void nbi_watches_end(const nb_engine *engine);
