// SPDX-License-Identifier: MIT
#pragma once

// A journey without anybody's hands: from orbit down to a herd, on foot among it, up to look around, at once to
// another, and to a third by night; then again, elsewhere. What is steered depends on the seed and the tick alone.

#include "../game/explorer.h"

// Ticks of one round, and where its parts begin: 20 seconds at 60 a second.
#define FLIGHT_TICKS 1200u
#define FLIGHT_DESCENT 240u
#define FLIGHT_GROUND 540u
#define FLIGHT_HILL 660u
#define FLIGHT_TELEPORT 840u
#define FLIGHT_NIGHT 960u

// Metres above the ground in orbit.
#define FLIGHT_ORBIT 4300

// Commands of one tick at most.
#define FLIGHT_EVENTS_MAX 3u

// The commands for a player in a tick; returns how many there are.
uint32_t flight_commands(uint64_t seed, uint32_t player, uint64_t tick, nb_input_event events[FLIGHT_EVENTS_MAX]);
