// SPDX-License-Identifier: MIT
#pragma once

// A square of a face of the planet that is generated, meshed and drawn as one: a node of the face's quadtree. Level 0
// is 32 by 32 columns; each level up is twice as wide, with cells twice as wide; the root, level 7, is the whole face.

#include <stdbool.h>
#include <stdint.h>

#include "sphere.h"

// Cells along each side. 32 keeps a node's cells within a core's cache, and quads within 8 bytes.
#define NODE_CELLS 32
#define NODE_LEVELS 8
#define NODE_ROOT_LEVEL (NODE_LEVELS - 1)

// Nodes of level 0 along a side of a face.
#define NODE_COUNT_0 (SPHERE_FACE_COLUMNS / NODE_CELLS)

_Static_assert(NODE_CELLS << NODE_ROOT_LEVEL == SPHERE_FACE_COLUMNS, "a root is a whole face");

typedef struct lod_node {
    uint8_t face, level;
    uint8_t x, y;   // along U and V, 0 to (NODE_COUNT_0 >> level) - 1
    uint8_t coarse; // 1: its cells are made two by two, as those of the level above; a picture of its own of a place
} lod_node;

// A number of its own for each node.
static inline uint32_t node_key(lod_node n) {
    uint32_t kind = ((uint32_t)n.coarse * SPHERE_FACE_COUNT + n.face) * NODE_LEVELS + n.level;
    return (kind * NODE_COUNT_0 + n.y) * NODE_COUNT_0 + n.x;
}

static inline bool node_is_same(lod_node a, lod_node b) { return node_key(a) == node_key(b); }

static inline lod_node node_root(uint32_t face) { return (lod_node){(uint8_t)face, NODE_ROOT_LEVEL, 0, 0, 0}; }

// Of a node above level 0; number is 0 to 3.
static inline lod_node node_child(lod_node n, uint32_t number) {
    return (lod_node){n.face, (uint8_t)(n.level - 1), (uint8_t)(n.x * 2 + number % 2), (uint8_t)(n.y * 2 + number / 2),
                      n.coarse};
}

// Of a node below the root.
static inline lod_node node_parent(lod_node n) {
    return (lod_node){n.face, (uint8_t)(n.level + 1), n.x / 2, n.y / 2, n.coarse};
}

// Columns along a side, and along a side of a cell.
static inline int32_t node_columns(uint32_t level) { return NODE_CELLS << level; }
static inline int32_t node_cell_columns(uint32_t level) { return 1 << level; }
