// SPDX-License-Identifier: MIT
#pragma once

// --record and --replay: a run that is written down, and one that is played again and compared, tick by tick. Without
// the module record both are refused.

#include "../shell/options.h"
#include "nebula/engine.h"

typedef struct recording {
    struct nb_recorder *recorder; // NULL = nothing is recorded
    struct nb_replay *replay;     // NULL = nothing is replayed
} recording;

// Opens what is to be replayed and takes planet, rates and length from it. On false one line about it is on stderr.
bool recording_open(recording *r, demo_options *options);

// When the engine has all its tables and players: from now on ticks are fed, or written down.
nb_result recording_attach(recording *r, nb_engine *engine, const demo_options *options);

// Ends both, before the engine does, and prints a line for each. NB_ERR_MISUSE: the replay came to another state.
nb_result recording_close(recording *r, const demo_options *options);
