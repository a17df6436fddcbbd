// SPDX-License-Identifier: MIT
#pragma once

// Two players in one process, each with an engine and a planet of his own, who send each other nothing but their
// steering, over links that are as bad as the options say. Each sees himself at once and guesses the other; what was
// guessed wrong is simulated again. The planets alone: nothing is drawn and no chunks are made.

#include "../shell/options.h"

// How it ended; numbers of both together.
typedef struct players_result {
    uint64_t tick_count;             // confirmed by both, and compared
    uint64_t differ_count;           // of them, those with different states,
    uint64_t differ_tick;            // and the first
    uint64_t state_hash;             // after the last tick
    uint64_t rollback_count;         // frames that went back,
    uint64_t again_count;            // ticks simulated again in them,
    uint64_t depth_max;              // and the most in one
    uint64_t wrong_count;            // guesses
    uint64_t sent_count, lost_count; // messages
    uint64_t stall_count;            // frames that had to wait
    uint64_t blend_count;            // corrections of explorers that were blended when they were drawn,
    uint64_t snap_count;             // and that jumped, because they were large
} players_result;

// Runs for options->tick_count ticks (0: for ever), and until everything that was sent has arrived. On the virtual
// clock as fast as it goes, else in real time; the output is the same, and so is the state hash at the end for any
// links. Prints a line a second and a summary; *result may be NULL. Returns what the program should exit with: 1 where
// the planets differ or something failed.
int players_run(const demo_options *options, players_result *result);
