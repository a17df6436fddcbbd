// SPDX-License-Identifier: MIT
#pragma once

// What is simulated: animals that walk the land, and explorers who are steered over it and now and then are somewhere
// else at once. The tables of the world, their ticks, and how they look between two ticks. The one rule: a tick depends
// on the seed, the tick, its commands and the tables, so the state is the same for any number of workers and any frame
// rate.

#include "nebula/engine.h"
#include "nebula/smooth.h"

#include "creatures.h"
#include "stream.h"
#include "work_pose.h"
#include "work_visibility.h"

// Animals: as many as fit, and how many there are at first.
#define PLANET_CREATURES_MAX 8192u
#define PLANET_CREATURES_START 3000u

// Explorers: one for each player of --lag, of which the first is followed by the camera where nothing is said.
#define PLANET_EXPLORERS 2u

// Codes of commands (NB_INPUT_COMMAND) that a tick takes. PLANET_STEER: payload.i32 = {player, turn, pace}, which hold
// until the player's next. A turn is up to PLANET_TURN_MAX a tick, of which 65536 are a full one, to either side; a
// pace up to PLANET_PACE_MAX, 12 voxels a second. What is beyond is cut to it.
#define PLANET_STEER 1u
#define PLANET_TURN_MAX 256
#define PLANET_PACE_MAX 256

// Columns of the table "creatures". Simulated up to ENERGY; the others are made anew in each tick or frame.
typedef enum creature_column {
    CREATURE_ID,
    CREATURE_X,
    CREATURE_Y,
    CREATURE_Z,
    CREATURE_SPEED_X,
    CREATURE_SPEED_Z,
    CREATURE_HEADING,
    CREATURE_ENERGY,
    CREATURE_IS_TELEPORTED,
    CREATURE_DECISION,
    CREATURE_PLACE, // a vec3: where it is drawn, in voxels
    CREATURE_LEVEL, // of detail, a byte
    CREATURE_BODY,  // a pose_body
    CREATURE_COLUMN_COUNT,
} creature_column;

// An explorer, a row of the table "explorers": where, in TERRAIN_ONE, which way, and how it is steered.
typedef struct explorer {
    int32_t x, y, z;
    uint32_t heading; // 65536 is a full turn
    int32_t turn, pace;
    uint32_t journey; // teleports so far
} explorer;

// What there is once, a singleton.
typedef struct planet_census {
    uint32_t next_id; // of the next animal
    uint32_t birth_count, death_count;
} planet_census;

// What the explorer that is followed sees in this frame, a local singleton that is published.
typedef struct planet_eye {
    camera camera;
    chunk_coord chunk; // that the camera is in
    int32_t place[3];  // of the camera, in TERRAIN_ONE
    uint32_t journey;  // as the explorer's
} planet_eye;

typedef struct planet {
    uint64_t seed;
    uint64_t teleport_ticks; // between teleports; 0 = never
    uint64_t tick_count_max; // after which the engine is stopped; 0 = never
    nb_world *world;
    nb_table creatures, explorers, census, eye;
    uint32_t player; // whose explorer the camera follows: nothing simulated looks at it
    // Corrections of explorers, where ticks were simulated again.
    nb_smooth smooth;
    float smooth_memory[PLANET_EXPLORERS * 3];
    uint64_t smooth_left_ns[PLANET_EXPLORERS];
    float predicted[PLANET_EXPLORERS][3]; // before them
    uint64_t rollback_count;              // seen
} planet;

// The command that steers a player's explorer.
nb_input_event planet_steer(uint32_t player, int32_t turn, int32_t pace);

// Declares the tables and attaches the module "planet".
nb_result planet_attach(planet *p, nb_engine *engine);

// Puts the first animals on the land; when all modules have declared their tables.
nb_result planet_populate(planet *p);
