// SPDX-License-Identifier: MIT
// The cells of a node.

#include "volume.h"

#include <string.h>

#include "../planet/noise.h"

#define SEED_BUMPS 0xb00

// Layers that a border goes on below its neighbour, whose heights are those of other places: twice a cell's width, for
// slopes of 45 degrees, and some.
#define SKIRT_LAYERS 4

// Metres that a quad may be long: the planet is 12 mm rounder than that, and 3 mm where one may stand before it. What
// ends beside the middle of a longer one leaves a gap as wide.
#define MERGE_METRES 16
#define MERGE_METRES_0 8

// Fewer trees than this do not show from afar: a cell of leaves is wider than a tree.
#define WOOD_SPARSE 64

static int32_t step_of(uint32_t level) { return level > 2 ? 1 << (level - 2) : 1; }

static int32_t skirt_of(const volume *v) { return SKIRT_LAYERS + 2 * node_cell_columns(v->level) / v->step; }

void volume_begin(volume *v, uint64_t seed, lod_node node) {
    v->node = node;
    v->seed = seed;
    v->base = v->low = v->high = 0;
    v->level = (uint32_t)node.level + node.coarse;
    v->step = step_of(v->level) << (node.coarse && v->level > 1);
    v->layer_count = 0;
    memset(v->trees, 0, sizeof v->trees);
}

static const terrain_tree *tree_at(volume *v, uint32_t face, int32_t x, int32_t z) {
    int32_t square_x = x / 8, square_z = z / 8;
    uint32_t key = 1 + ((uint32_t)square_z * 512 + (uint32_t)square_x) * 8 + face;
    volume_tree *slot = &v->trees[square_z % VOLUME_TREE_SLOTS * VOLUME_TREE_SLOTS + square_x % VOLUME_TREE_SLOTS];
    if (slot->key != key) {
        slot->tree = terrain_tree_of(v->seed, face, square_x, square_z);
        slot->key = key;
    }
    return &slot->tree;
}

// Metres of leaves on a cell that is too large for trees.
static uint8_t bump_of(const volume *v, const terrain_column *column, sphere_cell cell) {
    static const uint8_t HEIGHTS[] = {[BIOME_TREE_NONE] = 0,
                                      [BIOME_TREE_ROUND] = 5,
                                      [BIOME_TREE_TALL] = 9,
                                      [BIOME_TREE_CONIFER] = 7,
                                      [BIOME_TREE_CACTUS] = 0};
    uint32_t bits = noise_hash(v->seed + SEED_BUMPS + v->level, (uint32_t)cell.x, cell.face, (uint32_t)cell.z);
    if (column->wood < WOOD_SPARSE || (bits & 255) >= column->wood) return 0;
    return HEIGHTS[biome_look_of((biome)column->biome)->tree];
}

// Rounded down, from -1 on.
static int32_t cell_down(int32_t at, int32_t grain) { return (at + grain) / grain - 1; }

void volume_columns(volume *v, int32_t z) {
    uint32_t level = v->level;
    int32_t size = SPHERE_FACE_COLUMNS >> level, grain = 1 + v->node.coarse;
    double width = node_cell_columns(level);
    int32_t first_x = v->node.x * (NODE_CELLS / grain), first_z = v->node.y * (NODE_CELLS / grain);
    for (int32_t x = -1; x <= NODE_CELLS; ++x) {
        uint32_t index = mesh_column_index(x, z);
        terrain_column *column = &v->columns[index];
        if (x > 0 && x % grain != 0) { // the second one of a cell
            *column = v->columns[index - 1];
            v->bumps[index] = v->bumps[index - 1];
            continue;
        }
        sphere_cell cell =
            sphere_fold(v->node.face, first_x + cell_down(x, grain), first_z + cell_down(z, grain), size);
        *column = terrain_ground_at(v->seed, cell.face, (cell.x + 0.5) * width, (cell.z + 0.5) * width);
        bool is_coarse = level >= VOLUME_BUMP_LEVEL;
        v->bumps[index] = is_coarse ? bump_of(v, column, cell) : 0;
        if (is_coarse) continue;
        int32_t tree_x = cell.x << level, tree_z = cell.z << level;
        terrain_tree_reach(tree_at(v, cell.face, tree_x, tree_z), tree_x, tree_z, column);
    }
}

// Rounded down for both signs.
static int32_t layer_down(int32_t metres, int32_t step) { return (metres + 1024 * step) / step - 1024; }

// Metres up to the top of a column: its ground, what grows on it, or the sea.
static int32_t top_of(const volume *v, uint32_t index) {
    const terrain_column *column = &v->columns[index];
    int32_t top = column->height + 1 + v->bumps[index];
    int32_t crown = column->tree_size > 0 ? column->tree_height + column->tree_size + 3 : top;
    if (crown > top) top = crown;
    return top > TERRAIN_SEA_Y ? top : TERRAIN_SEA_Y;
}

// The layer of the highest ground: the nearest, but never above the sea where there is water.
static int32_t ground_layer(const volume *v, int32_t height) {
    int32_t layer = layer_down(height + 1 - v->base - v->step / 2, v->step);
    int32_t sea = (TERRAIN_SEA_Y - v->base) / v->step;
    if (v->step == 1) layer = height - v->base;
    return terrain_is_wet(height) && layer >= sea - 1 ? sea - 2 : layer;
}

static void fit_slopes(volume *v) {
    if (v->level < VOLUME_BUMP_LEVEL) {
        memset(v->slopes, 0, sizeof v->slopes);
        return;
    }
    int32_t width = node_cell_columns(v->level), grain = 1 + v->node.coarse;
    for (int32_t z = 0; z < NODE_CELLS; ++z) {
        for (int32_t x = 0; x < NODE_CELLS; ++x) {
            int32_t in_x = x % grain, in_z = z % grain;
            int32_t west = v->columns[mesh_column_index(x - in_x - 1, z)].height;
            int32_t east = v->columns[mesh_column_index(x - in_x + grain, z)].height;
            int32_t south = v->columns[mesh_column_index(x, z - in_z - 1)].height;
            int32_t north = v->columns[mesh_column_index(x, z - in_z + grain)].height;
            // Quarters, rounded: over two cells' width.
            v->slopes[mesh_column_index(x, z)] =
                mesh_slope((2 * (east - west) + (east > west ? width : -width) / 2) / width,
                           (2 * (north - south) + (north > south ? width : -width) / 2) / width);
        }
    }
}

void volume_fit(volume *v) {
    v->low = TERRAIN_Y_END, v->high = TERRAIN_SEA_Y;
    bool is_wet = false;
    for (uint32_t i = 0; i < MESH_LAYER_CELLS; ++i) {
        int32_t height = v->columns[i].height, top = top_of(v, i);
        if (height < v->low) v->low = height;
        if (i == 0 || top > v->high) v->high = top;
        is_wet = is_wet || terrain_is_wet(height);
    }
    // The sea's floor is at least two layers below its top.
    if (is_wet && v->high < TERRAIN_SEA_Y) v->high = TERRAIN_SEA_Y;
    for (;; v->step *= 2) {
        int32_t low = is_wet && v->low > TERRAIN_SEA_Y - 2 * v->step ? TERRAIN_SEA_Y - 2 * v->step : v->low;
        // Where layers are thick, ground may be rounded to the one below.
        v->base = (layer_down(low, v->step) - skirt_of(v) - (v->step > 1)) * v->step;
        int32_t layers = layer_down(v->high - 1 - v->base, v->step) + 2;
        v->layer_count = (uint32_t)layers;
        if (layers <= MESH_LAYERS_MAX) break;
    }
    if (v->step > 1) v->high += v->step / 2; // and here to the one above
    for (uint32_t i = 0; i < MESH_LAYER_CELLS; ++i) v->ground[i] = (int16_t)ground_layer(v, v->columns[i].height);
    fit_slopes(v);
}

// What is in a layer of a column.
static uint8_t cell_of(const volume *v, uint32_t index, int32_t layer) {
    const terrain_column *column = &v->columns[index];
    int32_t ground = v->ground[index], y = v->base + layer * v->step, up = layer - ground;
    // Leaves cover the ground even where they are lower than a layer.
    if (v->bumps[index] > 0 && up >= 0 && up * v->step <= v->bumps[index])
        return (uint8_t)terrain_leaves_of(biome_look_of((biome)column->biome)->tree);
    if (up <= 0) return (uint8_t)terrain_material_at(column, column->height + up * v->step);
    if (v->step == 1) return (uint8_t)terrain_material_at(column, y);
    if (y >= TERRAIN_SEA_Y) return TERRAIN_AIR;
    return column->is_frozen && y == TERRAIN_SEA_Y - v->step ? TERRAIN_ICE : TERRAIN_WATER;
}

void volume_fill(volume *v, int32_t z) {
    int32_t end = (int32_t)v->layer_count;
    for (int32_t x = -1; x <= NODE_CELLS; ++x) {
        uint32_t index = mesh_column_index(x, z);
        for (int32_t layer = -1; layer < end; ++layer) {
            int32_t depth = v->ground[index] - layer;
            // Nobody sees deeper than the skirts.
            uint8_t cell = depth > MESH_LAYERS_MAX ? TERRAIN_BASALT : cell_of(v, index, layer);
            v->cells[mesh_cell_index(x, layer, z)] = cell;
        }
        v->cells[mesh_cell_index(x, end, z)] = TERRAIN_AIR;
    }
}

mesh_input volume_mesh_input(const volume *v) {
    int32_t width = node_cell_columns(v->level), low = MESH_LAYERS_MAX, grain = 1 + v->node.coarse;
    int32_t merge = v->level == 0 ? MERGE_METRES_0 : MERGE_METRES / width * grain;
    for (uint32_t i = 0; i < MESH_LAYER_CELLS; ++i)
        if (v->ground[i] < low) low = v->ground[i];
    return (mesh_input){.cells = v->cells,
                        .layer_count = v->layer_count,
                        .open_layer = low >= 0 ? (uint32_t)low + 1 : 0,
                        .ground = v->ground,
                        .skirt = (uint32_t)skirt_of(v),
                        .slopes = v->slopes,
                        .grain = (uint32_t)grain,
                        .merge_max = (uint32_t)(merge < grain        ? grain
                                                : merge > NODE_CELLS ? NODE_CELLS
                                                                     : merge),
                        .rise = (uint32_t)(width / v->step > 2 ? 2 : 1)};
}
