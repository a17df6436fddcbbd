// SPDX-License-Identifier: MIT
#pragma once

// The land: a pure function of the seed and a place, so that it is the same whether or not anything is loaded there.
// The one rule: whatever is simulated asks terrain_height, never a loaded node; which nodes are loaded depends on the
// machine.
//
// A column is a square metre of a face, 0 to SPHERE_FACE_COLUMNS - 1 in each direction; a voxel is a metre of it. y
// points away from the middle of the planet, and the sea ends at y = 0. Below TERRAIN_Y_MIN all is basalt, from
// TERRAIN_Y_END on all is air.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "biome.h"
#include "node.h"

#define TERRAIN_SEA_Y 0 // the lowest voxel above water

// Places between columns are in 1/4096 column: a quarter of a millimetre. A face has 2^24 of them in each direction.
#define TERRAIN_ONE 4096
#define TERRAIN_FACE_ONES (SPHERE_FACE_COLUMNS * TERRAIN_ONE)

// The highest tree, with its crown.
#define TERRAIN_TREE_MAX 14

#define TERRAIN_Y_MIN (RELIEF_MIN - 4)
#define TERRAIN_Y_END (RELIEF_MAX + TERRAIN_TREE_MAX + 6)

typedef enum terrain_material {
    TERRAIN_AIR = 0,
    TERRAIN_WATER,
    TERRAIN_ICE,
    TERRAIN_STONE,
    TERRAIN_SLATE,
    TERRAIN_LIMESTONE,
    TERRAIN_BASALT,
    TERRAIN_ORE,
    TERRAIN_DIRT,
    TERRAIN_SEABED,
    TERRAIN_GRAVEL,
    TERRAIN_SAND,
    TERRAIN_DUNE,
    TERRAIN_GRASS,
    TERRAIN_DRY_GRASS,
    TERRAIN_FOREST_GRASS,
    TERRAIN_JUNGLE_GRASS,
    TERRAIN_MOSS,
    TERRAIN_TUNDRA,
    TERRAIN_SNOW,
    TERRAIN_WOOD,
    TERRAIN_LEAVES,
    TERRAIN_JUNGLE_LEAVES,
    TERRAIN_NEEDLES,
    TERRAIN_CACTUS,
    TERRAIN_MATERIAL_COUNT,
} terrain_material;

// What is seen through: everything else is opaque.
static inline bool terrain_is_clear(uint8_t material) { return material <= TERRAIN_WATER; }

// What all voxels above each other share.
typedef struct terrain_column {
    int16_t height;       // of the ground's highest voxel
    int16_t tree_height;  // of the ground below the tree that reaches over this column
    uint8_t tree_size;    // of its trunk, in voxels; 0 = no tree
    uint8_t tree_steps;   // from its trunk to here, in voxels along the axes
    uint8_t tree;         // a biome_tree
    uint8_t biome;        // a biome
    uint8_t surface;      // a terrain_material: of the highest voxel
    uint8_t wood;         // share of the squares around that have a tree, in 1/255
    uint8_t soil_depth;   // voxels of soil on the rock
    int8_t strata_offset; // voxels by which the layers of rock are bent here
    uint8_t is_frozen;    // the sea is, where there is sea
    uint8_t reserved[3];  // zero: columns are compared byte by byte
    uint32_t ore_bits;    // what decides where ore is
} terrain_column;

// A tree of one square of 8 by 8 columns.
typedef struct terrain_tree {
    int16_t height; // of the ground below it
    uint8_t x, z;   // in the square: 2 to 5, so that leaves of radius 2 never leave it
    uint8_t size;   // of its trunk; 0 = no tree
    uint8_t kind;   // a biome_tree
} terrain_tree;

// Y of the highest voxel of the ground: TERRAIN_Y_MIN < height < TERRAIN_Y_END. Trees do not count.
int32_t terrain_height(uint64_t seed, uint32_t face, int32_t x, int32_t z);

// The same for a direction of length 1 from the middle of the planet; for whoever has no column.
int32_t terrain_height_towards(uint64_t seed, vec3d direction);

terrain_column terrain_column_at(uint64_t seed, uint32_t face, int32_t x, int32_t z);

// A column without its tree; the place may lie anywhere in it.
terrain_column terrain_ground_at(uint64_t seed, uint32_t face, double u, double v);

// The tree of a square of 8 by 8 columns, and what it adds to one of its columns.
terrain_tree terrain_tree_of(uint64_t seed, uint32_t face, int32_t square_x, int32_t square_z);
void terrain_tree_reach(const terrain_tree *tree, int32_t x, int32_t z, terrain_column *column);

// What is in one voxel.
terrain_material terrain_material_at(const terrain_column *column, int32_t y);

// What a tree's crown is made of.
terrain_material terrain_leaves_of(uint32_t tree);

// Whether who stands on ground of this height has wet feet.
static inline bool terrain_is_wet(int32_t height) { return height < TERRAIN_SEA_Y - 1; }

// The column of a place in TERRAIN_ONE, rounded down for both signs.
static inline int32_t terrain_voxel_of(int32_t place) {
    return (int32_t)(((int64_t)place + ((int64_t)1 << 31)) / TERRAIN_ONE - ((int64_t)1 << 31) / TERRAIN_ONE);
}

// Whether the ground leaves two positions in sight of each other. Looks at up to `steps_max` points between them,
// evenly spread and at least a metre apart.
bool terrain_sees(uint64_t seed, vec3d from, vec3d to, uint32_t steps_max);
