// SPDX-License-Identifier: MIT
// What grows where.

#include "biome.h"

#include "noise.h"
#include "terrain.h"

enum { SEED_MOISTURE = 0x500, SEED_TEMPERATURE = 0x600 };

#define MOISTURE_CELLS 2.6
#define TEMPERATURE_CELLS 9.0

// Degrees of the scale that a metre of height takes: 150 m are as far as from the equator to a cool coast.
#define COLDER_PER_METRE 0.0048

#define FROZEN 0.10
#define PEAK 0.36 // mountains are white from here on
#define COLD 0.30
#define WARM 0.70

static const biome_look LOOKS[BIOME_COUNT] = {
    [BIOME_OCEAN] = {TERRAIN_GRAVEL, TERRAIN_GRAVEL, BIOME_TREE_NONE, 0},
    [BIOME_BEACH] = {TERRAIN_SAND, TERRAIN_SAND, BIOME_TREE_NONE, 0},
    [BIOME_DESERT] = {TERRAIN_DUNE, TERRAIN_SAND, BIOME_TREE_CACTUS, 14},
    [BIOME_SAVANNA] = {TERRAIN_DRY_GRASS, TERRAIN_DIRT, BIOME_TREE_ROUND, 14},
    [BIOME_GRASS] = {TERRAIN_GRASS, TERRAIN_DIRT, BIOME_TREE_ROUND, 24},
    [BIOME_FOREST] = {TERRAIN_FOREST_GRASS, TERRAIN_DIRT, BIOME_TREE_ROUND, 190},
    [BIOME_JUNGLE] = {TERRAIN_JUNGLE_GRASS, TERRAIN_DIRT, BIOME_TREE_TALL, 225},
    [BIOME_TAIGA] = {TERRAIN_MOSS, TERRAIN_DIRT, BIOME_TREE_CONIFER, 175},
    [BIOME_TUNDRA] = {TERRAIN_TUNDRA, TERRAIN_DIRT, BIOME_TREE_CONIFER, 8},
    [BIOME_ROCK] = {TERRAIN_STONE, TERRAIN_STONE, BIOME_TREE_NONE, 0},
    [BIOME_SNOW] = {TERRAIN_SNOW, TERRAIN_SNOW, BIOME_TREE_CONIFER, 5},
};

climate climate_at(uint64_t seed, vec3d direction, double height) {
    double latitude = direction.y < 0 ? -direction.y : direction.y;
    double wobble = noise_fractal_3d(seed + SEED_TEMPERATURE, vec3d_scale(direction, TEMPERATURE_CELLS), 2);
    double wet = noise_fractal_3d(seed + SEED_MOISTURE, vec3d_scale(direction, MOISTURE_CELLS), 3);
    // Dry belts on both sides of a wet equator.
    double from_belt = (latitude - 0.36) / 0.26, dry = 1 - from_belt * from_belt;
    climate result = {.temperature = 1.04 - 1.12 * latitude * latitude + 0.16 * wobble};
    if (height > 0) result.temperature -= height * COLDER_PER_METRE;
    result.moisture = 0.55 + 1.1 * wet + 0.10 * wobble - (dry > 0 ? 0.20 * dry : 0);
    return result;
}

bool biome_is_frozen(const climate *c) { return c->temperature < FROZEN; }

static biome warm_biome(const climate *c) {
    if (c->moisture < 0.34) return BIOME_DESERT;
    if (c->moisture < 0.44) return BIOME_SAVANNA;
    if (c->moisture < 0.56) return BIOME_GRASS;
    return c->temperature > WARM ? BIOME_JUNGLE : BIOME_FOREST;
}

biome biome_at(const climate *c, const relief *r) {
    if (r->height < 0) return BIOME_OCEAN;
    if (biome_is_frozen(c)) return BIOME_SNOW;
    if (r->mountain > 62 - 30 * c->moisture) return c->temperature < PEAK ? BIOME_SNOW : BIOME_ROCK;
    if (r->height < 2.2) return BIOME_BEACH;
    if (c->temperature < COLD) return c->moisture > 0.42 ? BIOME_TAIGA : BIOME_TUNDRA;
    return warm_biome(c);
}

const biome_look *biome_look_of(biome b) { return &LOOKS[(uint32_t)b < BIOME_COUNT ? b : BIOME_OCEAN]; }
