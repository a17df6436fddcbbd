// SPDX-License-Identifier: MIT
#pragma once

// The cells of a node, ready to be meshed: its columns row by row, then as many layers as its heights need, then the
// cells row by row; between two rows a job can look whether it is still wanted. The one rule: a coarse node asks the
// same land as a fine one, in the middles of its cells, so what is seen from afar is what is there.
//
// A coarse node (node.coarse) is the same of the level above, each cell four times and layers twice as high: a
// sixth of the quads, for slow devices. Below, `level` is that of the cells.
//
// Layers are a metre high up to level 2, and a quarter of a cell's width above it: mountains keep their shape from
// orbit. From level 2 on trees are bumps of leaves, and the ground has slopes, which light falls on, because one sees
// little but the tops of the cells.

#include "../planet/terrain.h"
#include "mesher.h"

#define VOLUME_CELLS_MAX (MESH_LAYER_CELLS * (MESH_LAYERS_MAX + 2))

// From this level on trees are bumps.
#define VOLUME_BUMP_LEVEL 2

// Trees that were looked at, by square: a padded node of level 1 lies in 10 by 10 of them.
#define VOLUME_TREE_SLOTS 16

typedef struct volume_tree {
    uint32_t key; // 0 = none yet
    terrain_tree tree;
} volume_tree;

typedef struct volume {
    lod_node node;
    uint64_t seed;
    uint32_t level; // of the cells: the node's, or the one above
    int32_t base;   // metres from the sea up to layer 0; a multiple of step
    int32_t step;   // metres of a layer
    uint32_t layer_count;
    int32_t low, high; // metres: of the lowest ground, and up to the highest thing
    terrain_column columns[MESH_LAYER_CELLS];
    int16_t ground[MESH_LAYER_CELLS]; // layer of the highest ground
    uint8_t bumps[MESH_LAYER_CELLS];  // metres of leaves above it
    uint8_t slopes[MESH_LAYER_CELLS]; // as mesh_slope
    volume_tree trees[VOLUME_TREE_SLOTS * VOLUME_TREE_SLOTS];
    uint8_t cells[VOLUME_CELLS_MAX];
} volume;

void volume_begin(volume *v, uint64_t seed, lod_node node);

// The columns of row z, -1 to 32. All rows, then volume_fit, then volume_fill for all rows.
void volume_columns(volume *v, int32_t z);
void volume_fit(volume *v);
void volume_fill(volume *v, int32_t z);

// How it is to be meshed; points into it.
mesh_input volume_mesh_input(const volume *v);
