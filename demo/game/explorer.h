// SPDX-License-Identifier: MIT
#pragma once

// Who travels the planet, from orbit to the ground: how an explorer is steered, and how it moves in one tick. Doubles,
// but + - * / and the square root alone: the same bits everywhere.

#include <stdbool.h>
#include <stdint.h>

#include "nebula/input.h"

#include "../planet/vec.h"
#include "creatures.h"

// Codes of commands (NB_INPUT_COMMAND) that a tick takes. All numbers are cut to what is allowed; a player that there
// is not, or a face, is ignored.
// PLANET_STEER: payload.i32 = {player, turn, pitch, pace}, which hold until the player's next. Turns are up to
// PLANET_TURN_MAX a tick to either side, of which 65536 are a full one: to the right, and up. A pace of PLANET_PACE_MAX
// is 6 metres a second on foot and 12 in flight, more the higher one is; less than 0 is backwards.
#define PLANET_STEER 1u
// PLANET_MOVE: {player, climb, mode}: up to PLANET_PACE_MAX up or down in flight, and an explorer_mode.
#define PLANET_MOVE 2u
// PLANET_TELEPORT: {player, face, u | v << 16, altitude}: to a column, and metres above its ground; 0 = as the mode has
// it.
#define PLANET_TELEPORT 3u

#define PLANET_TURN_MAX 256
#define PLANET_PACE_MAX 256
#define PLANET_ALTITUDE_MAX 20000

// Pitches end short of straight up and down, where there is no ahead.
#define PLANET_PITCH_MAX 15500

typedef enum explorer_mode {
    EXPLORER_FLIES = 0,
    EXPLORER_WALKS,
    EXPLORER_MODE_COUNT,
} explorer_mode;

// A row of the table "explorers". Every byte is simulated: there is no padding.
typedef struct explorer {
    vec3d up, forward;  // of length 1: from the planet's middle, and ahead along the ground
    double altitude;    // of the eyes, metres above the sea
    double ground;      // metres above the sea of the ground below, or of the sea
    int32_t turn, look; // a tick
    int32_t pace, climb;
    int32_t pitch;     // of the head, up: 65536 is a full turn
    uint32_t mode;     // an explorer_mode
    uint32_t journey;  // teleports so far
    uint32_t reserved; // zero
} explorer;

_Static_assert(sizeof(explorer) == 96, "states are hashed byte by byte");

// Above a column, looking north, and down where it is high.
void explorer_put(explorer *e, uint64_t seed, creature_home at, int32_t altitude);

// Turns the way ahead, to the right: 65536 is a full turn.
void explorer_turn(explorer *e, int32_t turn);

// Takes a command that is meant for it: the player's number was looked at before. True where it is now somewhere else
// at once.
bool explorer_command(explorer *e, uint64_t seed, const nb_input_event *command);

void explorer_step(explorer *e, uint64_t seed);

// Where it is, in metres from the planet's middle, and which way it looks, of length 1.
vec3d explorer_position(const explorer *e);
vec3d explorer_gaze(const explorer *e);

nb_input_event planet_steer(uint32_t player, int32_t turn, int32_t look, int32_t pace);
nb_input_event planet_move(uint32_t player, int32_t climb, explorer_mode mode);
nb_input_event planet_teleport(uint32_t player, creature_home at, int32_t altitude);
