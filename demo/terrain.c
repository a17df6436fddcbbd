// SPDX-License-Identifier: MIT
// The land.

#include "terrain.h"

#include "noise.h"

// Each feature draws from noise of its own.
enum { SEED_CONTINENT = 0x100, SEED_HILLS = 0x200, SEED_RIDGES = 0x300, SEED_WHERE = 0x400, SEED_STRATA = 0x500 };
enum { SEED_CAVE_1 = 0x600, SEED_CAVE_2 = 0x700, SEED_TREES = 0x800, SEED_SOIL = 0x900, SEED_ORE = 0xa00 };

// Ground stays this far from the ends of the world: a tree of 12 voxels has room above.
#define HEIGHT_MIN (TERRAIN_Y_MIN + 8)
#define HEIGHT_MAX (TERRAIN_Y_END - 16)

// From here on snow covers the ground, give or take the soil's noise.
#define SNOW_HEIGHT 90

// Trees grow one to a square of 8 by 8, at 2 to 5 in each direction: their leaves, of radius 2, never leave it, so a
// column has to look at one tree alone.
#define TREE_CELL_SHIFT 3
#define TREE_RADIUS 2
#define TREE_LINE 58

// Caves are where two noises are near 0 at once: winding tubes.
#define CAVE_SHIFT 5
#define CAVE_WIDTH 3400
// Below a sea or lake the ground is whole: water does not flow here.
#define CAVE_ROOF 6

static int32_t q15(int64_t a, int64_t b) { return (int32_t)(a * b / NOISE_ONE); }
static int32_t clamp(int32_t value, int32_t low, int32_t high) {
    return value < low ? low : value > high ? high : value;
}

// The large shape: deep sea, shelf, coast, plain and highland, in voxels times 256. `c` is Q15.
static int32_t continent_height(int32_t c) {
    static const int32_t POINTS[][2] = {{-32768, -52}, {-9000, -40}, {-3500, -14}, {-600, -4},
                                        {600, 3},      {5000, 12},   {11000, 30},  {32768, 62}};
    uint32_t i = 1;
    while (c > POINTS[i][0] && i + 1 < sizeof POINTS / sizeof POINTS[0]) ++i;
    int32_t from = POINTS[i - 1][0], span = POINTS[i][0] - from, low = POINTS[i - 1][1], high = POINTS[i][1];
    return low * 256 + (int32_t)((int64_t)(high - low) * 256 * (c - from) / span);
}

int32_t terrain_height(uint64_t seed, int32_t x, int32_t z) {
    int32_t c = 2 * noise_fractal_2d(seed + SEED_CONTINENT, x, z, 10, 5);
    c = clamp(c, -NOISE_ONE, NOISE_ONE);
    int32_t hills = noise_fractal_2d(seed + SEED_HILLS, x, z, 7, 5);
    int32_t folds = noise_fractal_2d(seed + SEED_RIDGES, x, z, 9, 5);
    int32_t ridge = NOISE_ONE - clamp(3 * (folds < 0 ? -folds : folds), 0, NOISE_ONE);
    // Mountains stand in belts, and not in the sea.
    int32_t belt = clamp(2 * noise_2d(seed + SEED_WHERE, x, z, 10) + q15(c, 16384), 0, NOISE_ONE);
    int32_t inland = clamp(4 * c, 0, NOISE_ONE);
    int32_t height = continent_height(c);
    height += q15(hills, 256 * 10) + q15(q15(hills, inland), 256 * 14);
    height += q15(q15(q15(ridge, ridge), belt), q15(inland, 256 * 110));
    // Rounded down for both signs.
    return clamp((height + 256 * 256) / 256 - 256, HEIGHT_MIN, HEIGHT_MAX);
}

static void column_add_tree(uint64_t seed, int32_t x, int32_t z, terrain_column *column) {
    uint32_t mask = (1u << TREE_CELL_SHIFT) - 1, cell_x = (uint32_t)x & ~mask, cell_z = (uint32_t)z & ~mask;
    uint32_t bits = noise_hash(seed + SEED_TREES, cell_x, 0, cell_z);
    uint32_t tree_x = cell_x + 2 + (bits & 3), tree_z = cell_z + 2 + (bits >> 2 & 3);
    int32_t dx = (int32_t)(tree_x - (uint32_t)x), dz = (int32_t)(tree_z - (uint32_t)z);
    if (dx < -TREE_RADIUS || dx > TREE_RADIUS || dz < -TREE_RADIUS || dz > TREE_RADIUS) return;
    // Woods and clearings: noise says how many of the squares have a tree.
    int32_t wood = noise_2d(seed + SEED_TREES, (int32_t)cell_x, (int32_t)cell_z, 7) + 6000;
    if (wood < 0 || (int32_t)(bits >> 8 & 0x7fff) > 2 * wood) return;
    int32_t height = terrain_height(seed, (int32_t)tree_x, (int32_t)tree_z);
    if (height < TERRAIN_SEA_Y + 2 || height > TREE_LINE) return;
    column->tree_height = (int16_t)height;
    column->tree_size = (uint8_t)(4 + (bits >> 4 & 3));
    column->tree_steps = (uint8_t)((dx < 0 ? -dx : dx) + (dz < 0 ? -dz : dz));
}

terrain_column terrain_column_at(uint64_t seed, int32_t x, int32_t z) {
    terrain_column column = {.height = (int16_t)terrain_height(seed, x, z)};
    column.soil_depth = (uint8_t)(3 + noise_2d(seed + SEED_SOIL, x, z, 4) / 16384);
    column.strata_offset = (int8_t)(noise_2d(seed + SEED_STRATA, x, z, 7) / 2048);
    column_add_tree(seed, x, z, &column);
    return column;
}

static bool is_cave(uint64_t seed, const terrain_column *column, int32_t x, int32_t y, int32_t z) {
    if (y < TERRAIN_Y_MIN + 4) return false;
    if (column->height < TERRAIN_SEA_Y + 4 && y > column->height - CAVE_ROOF) return false;
    int32_t first = noise_3d(seed + SEED_CAVE_1, x, 2 * y, z, CAVE_SHIFT);
    if (first < -CAVE_WIDTH || first > CAVE_WIDTH) return false;
    int32_t second = noise_3d(seed + SEED_CAVE_2, x, 2 * y, z, CAVE_SHIFT);
    return second >= -CAVE_WIDTH && second <= CAVE_WIDTH;
}

static terrain_material rock_at(uint64_t seed, const terrain_column *column, int32_t x, int32_t y, int32_t z) {
    int32_t level = y + column->strata_offset;
    if (level < TERRAIN_Y_MIN + 24) return TERRAIN_BASALT;
    // A vein is where a few neighbouring voxels share a cell of 2.
    uint32_t bits = noise_hash(seed + SEED_ORE, (uint32_t)x >> 1, (uint32_t)y >> 1, (uint32_t)z >> 1);
    if (bits < 0xffffffffu / 200) return TERRAIN_ORE;
    static const uint8_t LAYERS[8] = {TERRAIN_STONE,     TERRAIN_STONE,     TERRAIN_SLATE, TERRAIN_STONE,
                                      TERRAIN_LIMESTONE, TERRAIN_LIMESTONE, TERRAIN_STONE, TERRAIN_SLATE};
    return (terrain_material)LAYERS[(uint32_t)(level - TERRAIN_Y_MIN) / 5 % 8];
}

static terrain_material soil_at(const terrain_column *column, int32_t y) {
    int32_t height = column->height;
    if (height < TERRAIN_SEA_Y + 2) return TERRAIN_SAND;
    if (height >= SNOW_HEIGHT + 3 * column->soil_depth) return TERRAIN_SNOW;
    return y == height ? TERRAIN_GRASS : TERRAIN_DIRT;
}

static terrain_material above_at(const terrain_column *column, int32_t y) {
    if (y < TERRAIN_SEA_Y) return TERRAIN_WATER;
    int32_t up = y - column->tree_height, size = column->tree_size;
    if (size == 0 || up < 1 || up > size + 1) return TERRAIN_AIR;
    if (column->tree_steps == 0 && up <= size) return TERRAIN_WOOD;
    // A round crown: wide around the top of the trunk, narrow above.
    int32_t reach = up > size ? 1 : up >= size - 2 ? 3 : 0;
    return column->tree_steps <= reach && up >= size - 2 ? TERRAIN_LEAVES : TERRAIN_AIR;
}

terrain_material terrain_material_at(uint64_t seed, const terrain_column *column, int32_t x, int32_t y, int32_t z) {
    if (y < TERRAIN_Y_MIN) return TERRAIN_BASALT;
    if (y >= TERRAIN_Y_END) return TERRAIN_AIR;
    if (y > column->height) return above_at(column, y);
    if (is_cave(seed, column, x, y, z)) return TERRAIN_AIR;
    // Bare rock where it is too high for soil to stay.
    bool has_soil = column->height < SNOW_HEIGHT - 12 || column->height >= SNOW_HEIGHT + 3 * column->soil_depth;
    if (has_soil && y > column->height - column->soil_depth) return soil_at(column, y);
    return rock_at(seed, column, x, y, z);
}

// Coordinates wrap like the noise's do.
static int32_t voxel_at(int32_t chunk, uint32_t index) {
    return (int32_t)((uint32_t)chunk * TERRAIN_CHUNK_SIZE + index - 1u);
}

void terrain_chunk_columns(uint64_t seed, chunk_coord coord, terrain_columns *out) {
    for (uint32_t i = 0; i < TERRAIN_LAYER_VOXELS; ++i) {
        int32_t x = voxel_at(coord.x, i % TERRAIN_PADDED_SIZE), z = voxel_at(coord.z, i / TERRAIN_PADDED_SIZE);
        out->at[i] = terrain_column_at(seed, x, z);
    }
}

void terrain_chunk_layer(uint64_t seed, chunk_coord coord, const terrain_columns *columns, uint32_t layer,
                         uint8_t *voxels) {
    uint8_t *row = voxels + (size_t)layer * TERRAIN_LAYER_VOXELS;
    int32_t y = voxel_at(coord.y, layer);
    for (uint32_t i = 0; i < TERRAIN_LAYER_VOXELS; ++i) {
        int32_t x = voxel_at(coord.x, i % TERRAIN_PADDED_SIZE), z = voxel_at(coord.z, i / TERRAIN_PADDED_SIZE);
        row[i] = (uint8_t)terrain_material_at(seed, &columns->at[i], x, y, z);
    }
}

bool terrain_sees(uint64_t seed, const int32_t from[3], const int32_t to[3], uint32_t steps_max) {
    int64_t span[3], longest = 0;
    for (int i = 0; i < 3; ++i) {
        span[i] = (int64_t)to[i] - from[i];
        int64_t size = span[i] < 0 ? -span[i] : span[i];
        if (size > longest) longest = size;
    }
    int64_t steps = longest / TERRAIN_ONE < steps_max ? longest / TERRAIN_ONE : steps_max;
    for (int64_t i = 1; i < steps; ++i) {
        int32_t at[3];
        for (int j = 0; j < 3; ++j) at[j] = terrain_voxel_of((int32_t)(from[j] + span[j] * i / steps));
        if (at[1] <= terrain_height(seed, at[0], at[2])) return false;
    }
    return true;
}
