// SPDX-License-Identifier: MIT
#pragma once

// Synctest: does a tick depend on anything that a rewind does not bring back? After every tick the engine goes back
// desc.synctest_depth ticks, simulates them again and compares all states with those of the first run. Where they
// differ it says where, and looks for what was not saved. The one rule: it is a test, many times slower than the game;
// leave it out where the game is played.
//
//     nb_engine_desc desc = nb_engine_desc_default();
//     desc.synctest_depth = 8;
//     nb_engine *engine = NULL;
//     if (nb_engine_create(&desc, &engine) != NB_OK) return 1;
//     nb_engine_run_ticks(engine, 1000); // of your game
//     nb_synctest_report report;
//     nb_result result = nb_engine_synctest_get(engine, &report);
//     if (result == NB_OK && report.diverged_count != 0) printf("%s\n", report.text);
//     nb_engine_destroy(engine);
//
// Variables that nobody registered are found by comparing the program's own static variables, and those of libraries it
// brought along, with what they were before the tick's first run. desc.synctest_depth is the switch for that, in every
// build: it copies them in each tick, as far as 16 MiB. They are put back in a copy of the process (fork), never in the
// game itself. A variable has a name where its file has symbols; a stripped one gives the address as the file counts
// it. Heap memory and variables of one thread are not compared. docs/time_travel.md tells how to read what it says.
//
// The first divergence is looked into and logged; later ones are counted. The game goes on with the first run's state,
// as if nothing had been simulated again: its hashes, local tables and local columns are those of a run without
// synctest. Handlers see context->is_resimulated, and watches see nothing. Ticks before a change that no tick made
// (state loaded, a correction, modules or providers that came or went) are not simulated again.

#include "nebula/compare.h"
#include "nebula/engine.h"
#include "nebula/types.h"

// What a tick depends on beside simulated state and its input.
typedef enum nb_synctest_cause {
    NB_SYNCTEST_NONE = 0,
    NB_SYNCTEST_LOCAL_COLUMN,   // a local column of a simulated table
    NB_SYNCTEST_LOCAL_TABLE,    // a local table
    NB_SYNCTEST_LOCAL_PROVIDER, // a provider with NB_PROVIDER_LOCAL, and memory
    NB_SYNCTEST_LOCAL_SEVERAL,  // several of those together
    NB_SYNCTEST_UNREGISTERED,   // a variable of the program that nobody registered
    NB_SYNCTEST_UNSTEADY,       // time or addresses: run twice from the same state, on one thread, the tick ends in two
    NB_SYNCTEST_RACE,           // which threads run its tasks
    NB_SYNCTEST_UNINITIALISED,  // memory of its stack or arena that it has not written
    NB_SYNCTEST_UNKNOWN,        // none of these was found
    NB_SYNCTEST_CAUSE_COUNT,
} nb_synctest_cause;

typedef struct nb_synctest_report {
    uint32_t depth;          // as in the desc
    uint64_t checked_count;  // ticks that were simulated again and ended as before
    uint64_t diverged_count; // times that one ended otherwise
    uint64_t outside_count;  // times that simulated state had changed between ticks, by no tick
    uint64_t skipped_count;  // ticks after which none could be simulated again: the history did not reach back, or
                             // had no room for the input
    uint64_t lost_count;     // divergences after which the first run's state could not be put back: no memory
    size_t memory_bytes;     // on the heap, for copies; grows with the state
    // Of the first divergence; zeros until there is one.
    uint64_t tick;           // its index: the first tick that ended otherwise
    uint32_t back_count;     // how many ticks the engine had gone back, 1 to depth
    uint32_t again_count;    // how many had been simulated again, this one included
    nb_synctest_cause cause; // what was found to be behind it
    char culprit[128]; // "table.column", "table", the name of a provider, or the first variable; "" where it has none
    uint32_t variable_count;  // of UNREGISTERED: variables that may be behind it, each of which is named in `text` as
                              // far as there is room
    size_t program_bytes;     // of the program's variables that were compared; 0 = they cannot be, or were not
    nb_difference difference; // here: the first run, there: the one again. NB_DIFFERENCE_NONE: no memory to tell
    char text[4096];          // all of it in one line
} nb_synctest_report;

NB_EXTERN_C_BEGIN

// What synctest has found so far.
// Thread: the coordinator. Owner: *out is a value, written on NB_OK alone. Fails: NB_ERR_UNSUPPORTED (without
// desc.synctest_depth, and before the first frame), NB_ERR_MISUSE.
NB_API nb_result nb_engine_synctest_get(const nb_engine *engine, nb_synctest_report *out);

NB_EXTERN_C_END
