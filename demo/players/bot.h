// SPDX-License-Identifier: MIT
#pragma once

// Players who are no people: the first goes on the flight, or on that of a script, the others each hold a steering for
// a while, then take another. What they do depends on seed, player and tick alone, so that a run is the same as often
// as it is made.

#include "nebula/engine.h"

#include "../game/planet.h"
#include "flight.h"
#include "script.h"

// How long a steering is held, in ticks: people at a pad change their minds two or three times a second.
#define BOT_HOLD_TICKS 24u

// Steers the explorers of an engine; its memory is the host's.
typedef struct bots {
    uint64_t seed;
    const bool *is_over;  // where somebody's hands may take over: they have; NULL = nobody's
    const script *script; // what the first one flies; NULL = the flight
    nb_input_event events[SCRIPT_EVENTS_MAX + PLANET_EXPLORERS];
} bots;

_Static_assert(FLIGHT_EVENTS_MAX <= SCRIPT_EVENTS_MAX, "either fits");

// What a player does in a tick.
nb_input_event bot_steer(uint64_t seed, uint32_t player, uint64_t tick);

// All players of an engine are bots from now on: what they do anew is a command of its tick.
nb_result bots_attach(bots *b, nb_engine *engine, uint64_t seed);
