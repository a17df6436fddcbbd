// SPDX-License-Identifier: MIT
#pragma once

// The animals that walk the planet: how each moves in one tick. The one rule: a row's next state is a function of that
// row, the seed and the tick, so rows can be stepped in any order and by any number of threads. Nothing is loaded or
// looked up but terrain_height. All numbers are integers.

#include <stdbool.h>
#include <stdint.h>

#include "../planet/terrain.h"

typedef enum creature_decision {
    CREATURE_LIVES = 0,
    CREATURE_BIRTH, // it lives, and a young one appears beside it
    CREATURE_DEATH,
    CREATURE_DECISION_COUNT,
} creature_decision;

// One array per column, in the caller's storage. Places are in TERRAIN_ONE: x and z on a face, from 0 to
// TERRAIN_FACE_ONES - 1, and y above the sea.
typedef struct creature_columns {
    uint32_t *id; // never changes, and no two are the same: what its chance depends on
    uint8_t *face;
    int32_t *x, *y, *z;         // of its feet; y is always the top of the ground
    int32_t *speed_x, *speed_z; // TERRAIN_ONE a tick
    uint16_t *heading;          // 65536 is a full turn; 0 is +x, a quarter is +z
    int32_t *energy;            // 0 is death
    uint8_t *is_teleported;     // in this tick: not to be interpolated
    uint8_t *decision;          // a creature_decision
} creature_columns;

// Where animals are to be found.
typedef struct creature_home {
    uint32_t face;
    int32_t x, z; // columns
} creature_home;

#define CREATURE_ENERGY_START 2000
#define CREATURE_ENERGY_MAX 4000

// Streams of nb_random that the animals use; a spawn takes one more for each try, up to CREATURE_STREAM_END.
#define CREATURE_STREAM_STEP 100
#define CREATURE_STREAM_SPAWN 101
#define CREATURE_STREAM_END 200

// Columns around a place that a spawn can be asked to look at: less than a face.
#define CREATURE_RANGE_MAX 2048

// Puts an animal with a new id on dry land within `range` columns (up to CREATURE_RANGE_MAX) of home; where it finds
// none, at home.
void creature_spawn(uint64_t seed, uint64_t tick, uint32_t id, creature_home home, uint32_t range, uint32_t row,
                    const creature_columns *out);

// Puts the young of the animal in row `parent` there, with half its energy: the parent has given it already.
void creature_spawn_young(uint32_t id, uint32_t parent, uint32_t row, const creature_columns *columns);

// One tick of rows first to first + count - 1. `out` may be `in`, or columns of their own; its ids are not written.
void creatures_step(uint64_t seed, uint64_t tick, const creature_columns *in, uint32_t first, uint32_t count,
                    const creature_columns *out);

// Rows whose decision is `wanted`, in ascending order, row_count_max at most; returns how many there are in all.
uint32_t creatures_collect(const uint8_t *decisions, uint32_t count, creature_decision wanted, uint32_t *rows,
                           uint32_t row_count_max);
