// SPDX-License-Identifier: MIT
#pragma once

// A game that is made to be the same everywhere: it has no purpose but to use all of the machinery that simulates.
// Bodies chase each other, come and go in stages of parallel ranges, and jump; a tree of tasks and an ordered sum look
// at them. Arithmetic is + - * / and sqrt, which every machine rounds alike. What is simulated is in a world (a table
// and a singleton), in two plain structs and in a list behind callbacks; beside it there are local rows, columns and
// providers, which must not leave a trace in any of that.

#include "nebula/engine.h"

#define GAME_SEED UINT64_C(0x6E6562756C61)
#define GAME_TICK_RATE 50u // a tick is a whole number of nanoseconds
#define GAME_BODY_MAX 192u
#define GAME_NOTE_MAX 48u
#define GAME_LEAF_COUNT 4u

typedef struct game {
    nb_engine *engine;
    nb_store *world;
    nb_table bodies, weather, sparks;
    // A plain struct; no padding.
    struct {
        uint64_t event_sum, command_sum, census, tree;
        double energy;
        float reach, pad;
    } score;
    nb_buttons buttons;            // another
    uint32_t notes[GAME_NOTE_MAX]; // behind callbacks: as many as there are
    uint32_t note_count;
    uint64_t tree[2 * GAME_LEAF_COUNT]; // of this tick's tasks
    uint64_t seen;                      // local: what jobs of frames saw
} game;

// Makes tables, providers and modules. False: something failed.
bool game_open(game *g, nb_engine *engine);
