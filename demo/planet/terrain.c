// SPDX-License-Identifier: MIT
// The land, column by column.

#include "terrain.h"

#include "noise.h"

enum { SEED_STRATA = 0x700, SEED_TREES = 0x800, SEED_CLEARINGS = 0x810, SEED_BORDERS = 0x900, SEED_ORE = 0xa00 };

// Trees stand one to a square of 8 by 8, at 2 to 5 in each direction: their leaves, of radius 2, never leave it, so a
// column has to look at one tree alone.
#define TREE_SQUARE 8
#define TREE_RADIUS 2

// Noises across the planet's radius: clearings of some forty metres, strata bent over a hundred.
#define CLEARING_CELLS 60.0
#define STRATA_CELLS 24.0

// How far borders between kinds of land are frayed, in moisture and temperature.
#define FRAY 0.022

// Ore is this far below the ground: it shows in cliffs, and does not lie about.
#define ORE_DEPTH 5

// What the floor of the sea is made of, by depth.
#define SAND_DEPTH (-7)
#define GRAVEL_DEPTH (-26)

// Rounded down for both signs: heights are above -256.
static int32_t whole(double height) { return (int32_t)(height + 256) - 256; }

int32_t terrain_height_towards(uint64_t seed, vec3d direction) { return whole(relief_at(seed, direction).height); }

int32_t terrain_height(uint64_t seed, uint32_t face, int32_t x, int32_t z) {
    return terrain_height_towards(seed, sphere_direction(face, x + 0.5, z + 0.5));
}

static uint8_t surface_of(uint32_t kind, int32_t height) {
    if (kind != BIOME_OCEAN) return biome_look_of((biome)kind)->surface;
    return height > SAND_DEPTH ? TERRAIN_SAND : height > GRAVEL_DEPTH ? TERRAIN_GRAVEL : TERRAIN_SEABED;
}

terrain_column terrain_ground_at(uint64_t seed, uint32_t face, double u, double v) {
    vec3d direction = sphere_direction(face, u, v);
    relief land = relief_at(seed, direction);
    climate air = climate_at(seed, direction, land.height);
    int32_t x = sphere_column(u), z = sphere_column(v);
    uint32_t fray = noise_hash(seed + SEED_BORDERS, (uint32_t)x, face, (uint32_t)z);
    air.moisture += ((fray & 255) / 255.0 - 0.5) * FRAY;
    air.temperature += ((fray >> 8 & 255) / 255.0 - 0.5) * FRAY;
    biome kind = biome_at(&air, &land);
    terrain_column column = {.height = (int16_t)whole(land.height), .biome = (uint8_t)kind};
    double bend = noise_3d(seed + SEED_STRATA, vec3d_scale(direction, STRATA_CELLS));
    column.surface = surface_of(kind, column.height);
    column.is_frozen = biome_is_frozen(&air);
    column.strata_offset = (int8_t)(bend * 12);
    column.soil_depth = (uint8_t)(3 + (bend > 0));
    const biome_look *look = biome_look_of(kind);
    if (look->wood > 0) {
        double clearing = noise_3d(seed + SEED_CLEARINGS, vec3d_scale(direction, CLEARING_CELLS));
        double wood = look->wood * (0.95 + 1.3 * clearing);
        column.wood = (uint8_t)(wood < 0 ? 0 : wood > 255 ? 255 : wood);
    }
    // A vein is where a few neighbouring voxels share a cell of 2.
    column.ore_bits = noise_hash(seed + SEED_ORE, (uint32_t)x >> 1, face, (uint32_t)z >> 1);
    return column;
}

static uint8_t tree_size(uint32_t kind, uint32_t bits) {
    static const uint8_t SMALLEST[] = {[BIOME_TREE_NONE] = 0,
                                       [BIOME_TREE_ROUND] = 4,
                                       [BIOME_TREE_TALL] = 7,
                                       [BIOME_TREE_CONIFER] = 6,
                                       [BIOME_TREE_CACTUS] = 2};
    return (uint8_t)(SMALLEST[kind] + (bits >> 4 & 3));
}

terrain_tree terrain_tree_of(uint64_t seed, uint32_t face, int32_t square_x, int32_t square_z) {
    uint32_t bits = noise_hash(seed + SEED_TREES, (uint32_t)square_x, face, (uint32_t)square_z);
    terrain_tree tree = {.x = (uint8_t)(2 + (bits & 3)), .z = (uint8_t)(2 + (bits >> 2 & 3))};
    int32_t x = square_x * TREE_SQUARE + tree.x, z = square_z * TREE_SQUARE + tree.z;
    terrain_column ground = terrain_ground_at(seed, face, x + 0.5, z + 0.5);
    uint32_t kind = biome_look_of((biome)ground.biome)->tree;
    if (kind == BIOME_TREE_NONE || (bits >> 8 & 255) >= ground.wood) return tree;
    tree.height = ground.height;
    tree.kind = (uint8_t)kind;
    tree.size = tree_size(kind, bits);
    return tree;
}

void terrain_tree_reach(const terrain_tree *tree, int32_t x, int32_t z, terrain_column *column) {
    int32_t dx = tree->x - x % TREE_SQUARE, dz = tree->z - z % TREE_SQUARE;
    bool is_near = dx >= -TREE_RADIUS && dx <= TREE_RADIUS && dz >= -TREE_RADIUS && dz <= TREE_RADIUS;
    if (tree->size == 0 || !is_near) return;
    column->tree_height = tree->height;
    column->tree_size = tree->size;
    column->tree = tree->kind;
    column->tree_steps = (uint8_t)((dx < 0 ? -dx : dx) + (dz < 0 ? -dz : dz));
}

terrain_column terrain_column_at(uint64_t seed, uint32_t face, int32_t x, int32_t z) {
    terrain_column column = terrain_ground_at(seed, face, x + 0.5, z + 0.5);
    terrain_tree tree = terrain_tree_of(seed, face, x / TREE_SQUARE, z / TREE_SQUARE);
    terrain_tree_reach(&tree, x, z, &column);
    return column;
}

static terrain_material rock_at(const terrain_column *column, int32_t y) {
    int32_t level = y + column->strata_offset;
    if (level < TERRAIN_Y_MIN + 14) return TERRAIN_BASALT;
    uint32_t bits = noise_hash(column->ore_bits, 0, (uint32_t)y >> 1, 0);
    if (y < column->height - ORE_DEPTH && bits < 0xffffffffu / 200) return TERRAIN_ORE;
    static const uint8_t LAYERS[8] = {TERRAIN_STONE,     TERRAIN_STONE,     TERRAIN_SLATE, TERRAIN_STONE,
                                      TERRAIN_LIMESTONE, TERRAIN_LIMESTONE, TERRAIN_STONE, TERRAIN_SLATE};
    return (terrain_material)LAYERS[(uint32_t)(level - TERRAIN_Y_MIN) / 5 % 8];
}

terrain_material terrain_leaves_of(uint32_t tree) {
    if (tree == BIOME_TREE_TALL) return TERRAIN_JUNGLE_LEAVES;
    if (tree == BIOME_TREE_CONIFER) return TERRAIN_NEEDLES;
    return tree == BIOME_TREE_CACTUS ? TERRAIN_CACTUS : TERRAIN_LEAVES;
}

// How far from the trunk leaves reach, in steps; -1 = there are none. `up` counts from the ground.
static int32_t crown_reach(uint32_t tree, int32_t size, int32_t up) {
    if (tree == BIOME_TREE_CACTUS) return -1;
    // A cone, whose skirts swing out and in.
    if (tree == BIOME_TREE_CONIFER) return up < 2 ? -1 : (size + 3 - up) / 2 - (up + size) % 2 * (up < size);
    // Round, or wide and flat at the top of a high trunk.
    if (tree == BIOME_TREE_TALL) return up > size ? 2 : up >= size - 1 ? 4 : up == size - 2 ? 1 : -1;
    return up > size ? 1 : up >= size - 2 ? 3 : -1;
}

static terrain_material above_at(const terrain_column *column, int32_t y) {
    if (y < TERRAIN_SEA_Y) return column->is_frozen && y == TERRAIN_SEA_Y - 1 ? TERRAIN_ICE : TERRAIN_WATER;
    int32_t up = y - column->tree_height, size = column->tree_size;
    if (size == 0 || up < 1 || up > size + 2) return TERRAIN_AIR;
    if (column->tree_steps == 0 && up <= size) return column->tree == BIOME_TREE_CACTUS ? TERRAIN_CACTUS : TERRAIN_WOOD;
    if (up > size + 1 && column->tree != BIOME_TREE_CONIFER) return TERRAIN_AIR;
    return column->tree_steps <= crown_reach(column->tree, size, up) ? terrain_leaves_of(column->tree) : TERRAIN_AIR;
}

terrain_material terrain_material_at(const terrain_column *column, int32_t y) {
    if (y < TERRAIN_Y_MIN) return TERRAIN_BASALT;
    if (y >= TERRAIN_Y_END) return TERRAIN_AIR;
    if (y > column->height) return above_at(column, y);
    if (y == column->height && column->biome != BIOME_ROCK) return (terrain_material)column->surface;
    bool has_soil = column->biome != BIOME_ROCK && y > column->height - column->soil_depth;
    if (!has_soil) return rock_at(column, y);
    return column->biome == BIOME_OCEAN ? (terrain_material)column->surface
                                        : (terrain_material)biome_look_of((biome)column->biome)->soil;
}

bool terrain_sees(uint64_t seed, vec3d from, vec3d to, uint32_t steps_max) {
    vec3d span = vec3d_sub(to, from);
    double length = vec3d_length(span);
    uint32_t steps = length < steps_max ? (uint32_t)length : steps_max;
    for (uint32_t i = 1; i < steps; ++i) {
        vec3d at = vec3d_add(from, vec3d_scale(span, (double)i / steps));
        double distance = vec3d_length(at), h = distance - SPHERE_RADIUS;
        if (h >= RELIEF_MAX + 1) continue; // over every mountain
        if (h < RELIEF_MIN || h < terrain_height_towards(seed, vec3d_scale(at, 1 / distance)) + 1) return false;
    }
    return true;
}
