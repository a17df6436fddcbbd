// SPDX-License-Identifier: MIT
#pragma once

// What is simulated: animals that walk the planet, windmills at their homes, and explorers that are steered around it,
// from orbit to the ground, and occasionally teleport. The tables of the world and their tick. The one rule: a tick
// depends on the seed, the tick, its commands and the tables, so the state is the same for any number of workers and
// any frame rate.

#include "nebula/engine.h"
#include "nebula/smooth.h"

#include "explorer.h"
#include "eye.h"
#include "homes.h"
#include "mills.h"
#include "pose_body.h"

// Animals: as many as fit, and how many there are at first.
#define PLANET_CREATURES_MAX 8192u
#define PLANET_CREATURES_START 3000u

// Explorers: one for each player of --lag, of which the first is followed by the camera where nothing is said.
#define PLANET_EXPLORERS 2u

// Columns of the table "creatures". Simulated up to ENERGY; the others are made anew in each tick or frame.
typedef enum creature_column {
    CREATURE_ID,
    CREATURE_FACE,
    CREATURE_X,
    CREATURE_Y,
    CREATURE_Z,
    CREATURE_SPEED_X,
    CREATURE_SPEED_Z,
    CREATURE_HEADING,
    CREATURE_ENERGY,
    CREATURE_IS_TELEPORTED,
    CREATURE_DECISION,
    CREATURE_PLACE, // a vec3: where it is drawn, metres from the planet's middle
    CREATURE_LEVEL, // of detail, a byte
    CREATURE_BODY,  // a pose_body
    CREATURE_COLUMN_COUNT,
} creature_column;

// What there is once, a singleton.
typedef struct planet_census {
    uint32_t next_id; // of the next animal
    uint32_t birth_count, death_count;
} planet_census;

typedef struct planet {
    uint64_t seed;
    uint64_t teleport_ticks; // between teleports; 0 = never
    uint64_t tick_count_max; // after which the engine is stopped; 0 = never
    nb_store *world;
    nb_table creatures, explorers, census, eye;
    creature_home homes[HOME_COUNT]; // of the herds; they follow from the seed
    mills mills;
    uint32_t player; // whose explorer the camera follows: nothing simulated looks at it
    // Corrections of explorers, where ticks were simulated again.
    nb_smooth smooth;
    float smooth_memory[PLANET_EXPLORERS * 3];
    uint64_t smooth_left_ns[PLANET_EXPLORERS];
    float predicted[PLANET_EXPLORERS][3]; // before them
    uint64_t rollback_count;              // seen
} planet;

// Declares the tables and attaches the modules "planet" and "wind".
nb_result planet_attach(planet *p, nb_engine *engine);

// Puts the first animals on the land, and builds the mills; when all modules have declared their tables.
nb_result planet_populate(planet *p);

// After the engine is destroyed. Fine for a planet that was never attached.
void planet_end(planet *p);
