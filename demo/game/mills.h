// SPDX-License-Identifier: MIT
#pragma once

// Windmills, one beside each home, as nodes of a scene: a root on the ground, a tower on it, at its top a hub that the
// wind turns, and four blades on the hub. The one rule: how far a hub has turned follows from the seed and the tick, so
// that a tick that is simulated again gives the same bits.

#include "nebula/engine.h"
#include "nebula/scene.h"

#include "homes.h"

#define MILLS_BLADES 4u
#define MILLS_NODES (HOME_COUNT * (3 + MILLS_BLADES))

// Metres: from the ground to the hub, from the tower's middle to the hub before it, from the hub to a blade's middle.
#define MILLS_HUB_HEIGHT 7.4f
#define MILLS_HUB_AHEAD 2.3f
#define MILLS_BLADE_MIDDLE 2.7f

typedef enum mill_part {
    MILL_ROOT = 0, // its origin on the ground, y up, z to where the blades are
    MILL_TOWER,
    MILL_HUB,   // turns around z
    MILL_BLADE, // its origin in the middle, y away from the hub
    MILL_PART_COUNT,
} mill_part;

// The column behind a scene's own: a byte, a mill_part.
#define MILLS_PART NB_SCENE_COLUMN_COUNT

typedef struct mills {
    uint64_t seed;
    nb_store *world;
    nb_scene *scene;
    uint32_t hub_count; // 0 until there are mills
    nb_entity hubs[HOME_COUNT];
} mills;

// Declares the scene "mills" and attaches the module that turns them.
nb_result mills_attach(mills *m, nb_engine *engine, uint64_t seed);

// Builds them; when all modules have declared their tables.
nb_result mills_populate(mills *m, const creature_home homes[HOME_COUNT]);

// How far the hub of a home's mill has turned after so many ticks, in turns: 0 to 1.
double mills_turns(uint64_t seed, uint32_t number, uint64_t tick_count);

// After the engine is destroyed. Fine where nothing was attached.
void mills_end(mills *m);
