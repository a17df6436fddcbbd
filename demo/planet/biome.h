// SPDX-License-Identifier: MIT
#pragma once

// What grows where: a climate from latitude, height and moisture, and the kind of land that comes of it. A pure
// function of seed and place.

#include <stdbool.h>
#include <stdint.h>

#include "relief.h"
#include "vec.h"

typedef enum biome {
    BIOME_OCEAN = 0,
    BIOME_BEACH,
    BIOME_DESERT,
    BIOME_SAVANNA,
    BIOME_GRASS,
    BIOME_FOREST,
    BIOME_JUNGLE,
    BIOME_TAIGA,
    BIOME_TUNDRA,
    BIOME_ROCK,
    BIOME_SNOW,
    BIOME_COUNT,
} biome;

typedef enum biome_tree {
    BIOME_TREE_NONE = 0,
    BIOME_TREE_ROUND,
    BIOME_TREE_TALL,
    BIOME_TREE_CONIFER,
    BIOME_TREE_CACTUS,
} biome_tree;

typedef struct climate {
    double temperature; // 0 the poles to 1 the equator at the sea; falls with height
    double moisture;    // 0 dry to 1 wet
} climate;

// What a kind of land looks like. Materials are terrain_material.
typedef struct biome_look {
    uint8_t surface, soil; // of the ground's highest voxel, and of some below it
    uint8_t tree;          // a biome_tree
    uint8_t wood;          // share of the squares of 8 by 8 columns that have a tree, in 1/255
} biome_look;

climate climate_at(uint64_t seed, vec3d direction, double height);

biome biome_at(const climate *c, const relief *r);

// Whether the sea is frozen there.
bool biome_is_frozen(const climate *c);

const biome_look *biome_look_of(biome b);
