// SPDX-License-Identifier: MIT
#pragma once

// The land: a pure function of the seed and a place, so that it is the same whether or not anything is loaded there.
// The one rule: whatever is simulated asks terrain_height, never a loaded chunk; which chunks are loaded depends on the
// machine.
//
// One voxel is a metre, y points up, and the sea ends at y = 0. Below TERRAIN_Y_MIN all is basalt, from TERRAIN_Y_END
// on all is air, so there are chunks only between.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// A cube of voxels that is generated, meshed and drawn as one. 32 keeps a chunk within a core's cache, and quads within
// bytes.
#define TERRAIN_CHUNK_SIZE 32

// Voxels of a chunk are kept with one more on each side, so that a mesher sees what lies behind a border without any
// neighbour being there. The price is a fifth of the memory and of the generation.
#define TERRAIN_PADDED_SIZE (TERRAIN_CHUNK_SIZE + 2)
#define TERRAIN_LAYER_VOXELS (TERRAIN_PADDED_SIZE * TERRAIN_PADDED_SIZE)
#define TERRAIN_PADDED_VOXELS (TERRAIN_LAYER_VOXELS * TERRAIN_PADDED_SIZE)

#define TERRAIN_SEA_Y 0 // the lowest voxel above water

// Places between voxels are in 1/4096 voxel: a quarter of a millimetre, and half a million voxels in each direction.
#define TERRAIN_ONE 4096

// Heights stay below these by more than a tree.
#define TERRAIN_CHUNK_Y_MIN (-2)
#define TERRAIN_CHUNK_Y_END 5
#define TERRAIN_Y_MIN (TERRAIN_CHUNK_Y_MIN * TERRAIN_CHUNK_SIZE)
#define TERRAIN_Y_END (TERRAIN_CHUNK_Y_END * TERRAIN_CHUNK_SIZE)

typedef enum terrain_material {
    TERRAIN_AIR = 0,
    TERRAIN_WATER,
    TERRAIN_STONE,
    TERRAIN_SLATE,
    TERRAIN_LIMESTONE,
    TERRAIN_BASALT,
    TERRAIN_ORE,
    TERRAIN_DIRT,
    TERRAIN_GRASS,
    TERRAIN_SAND,
    TERRAIN_SNOW,
    TERRAIN_WOOD,
    TERRAIN_LEAVES,
    TERRAIN_MATERIAL_COUNT,
} terrain_material;

// A chunk's place, in chunks; its first voxel is at 32 times that.
typedef struct chunk_coord {
    int32_t x, y, z;
} chunk_coord;

// What all voxels above each other share.
typedef struct terrain_column {
    int16_t height;       // of the ground's highest voxel
    int16_t tree_height;  // of the ground below the tree that reaches over this column
    uint8_t tree_size;    // of its trunk, in voxels; 0 = no tree
    uint8_t tree_steps;   // from its trunk to here, in voxels along the axes
    uint8_t soil_depth;   // voxels of soil on the rock
    int8_t strata_offset; // voxels by which the layers of rock are bent here
} terrain_column;

// The columns of a padded chunk, z by z.
typedef struct terrain_columns {
    terrain_column at[TERRAIN_LAYER_VOXELS];
} terrain_columns;

// Y of the highest voxel of the ground: TERRAIN_Y_MIN < height < TERRAIN_Y_END. Trees do not count.
int32_t terrain_height(uint64_t seed, int32_t x, int32_t z);

terrain_column terrain_column_at(uint64_t seed, int32_t x, int32_t z);

// What is in one voxel. `column` is terrain_column_at(seed, x, z).
terrain_material terrain_material_at(uint64_t seed, const terrain_column *column, int32_t x, int32_t y, int32_t z);

// Whether who stands on ground of this height has wet feet.
static inline bool terrain_is_wet(int32_t height) { return height < TERRAIN_SEA_Y - 1; }

// Fills in the columns of a chunk: the first step of generating it.
void terrain_chunk_columns(uint64_t seed, chunk_coord coord, terrain_columns *out);

// Fills in one layer, 0 to TERRAIN_PADDED_SIZE - 1 from below, of TERRAIN_PADDED_VOXELS voxels. Layers may be made in
// any order; between two of them a job can look whether it is still wanted.
void terrain_chunk_layer(uint64_t seed, chunk_coord coord, const terrain_columns *columns, uint32_t layer,
                         uint8_t *voxels);

// Where a voxel of a chunk stands among its padded ones; x, y and z are -1 to TERRAIN_CHUNK_SIZE.
static inline uint32_t terrain_voxel_index(int32_t x, int32_t y, int32_t z) {
    return (uint32_t)(((y + 1) * TERRAIN_PADDED_SIZE + z + 1) * TERRAIN_PADDED_SIZE + x + 1);
}

// The voxel of a place in TERRAIN_ONE, rounded down for both signs.
static inline int32_t terrain_voxel_of(int32_t place) {
    return (int32_t)(((int64_t)place + ((int64_t)1 << 31)) / TERRAIN_ONE - ((int64_t)1 << 31) / TERRAIN_ONE);
}

// Whether the ground leaves two places, in TERRAIN_ONE, in sight of each other. Looks at up to `steps_max` points
// between them, evenly spread and at least one voxel apart.
bool terrain_sees(uint64_t seed, const int32_t from[3], const int32_t to[3], uint32_t steps_max);
