// SPDX-License-Identifier: MIT
#pragma once

// Turns the cells of a node into rectangles, as few as a greedy search finds, one face direction at a time: between two
// directions a job can look whether it is still wanted. A cell has a face where its neighbour lets it be seen: anything
// opaque beside air or water, water beside air. Neighbours behind the node's border come from its padding, so two nodes
// of one level that touch need no faces between them; but a neighbour may be of another level and lie higher or lower,
// so at the border the sides go on below the ground, as far as `skirt` says, and no gap shows.
//
// Faces are merged only where material, slope and the light in all four corners agree: neighbours share the corners
// between them, so what agrees is even along the way of the merge, and the light stays what it was.

#include <stdbool.h>
#include <stdint.h>

#include "../planet/node.h"

typedef enum mesh_face {
    MESH_FACE_X_NEGATIVE = 0,
    MESH_FACE_X_POSITIVE,
    MESH_FACE_Y_NEGATIVE,
    MESH_FACE_Y_POSITIVE,
    MESH_FACE_Z_NEGATIVE,
    MESH_FACE_Z_POSITIVE,
    MESH_FACE_COUNT,
} mesh_face;

// Cells are kept with one more on each side.
#define MESH_PADDED (NODE_CELLS + 2)
#define MESH_LAYER_CELLS (MESH_PADDED * MESH_PADDED)
#define MESH_LAYERS_MAX 256

// A rectangle of faces, as shaders take it. Both words from the lowest bit:
//     place  x: 5, z: 5, y: 8, w - 1: 5, face: 3, material: 6
//     what   h - 1: 8, light: 8, slope x: 3, slope z: 3
// x, y and z are those of its cell with the lowest coordinates; x along U, z along V, y in layers from the node's base.
// w and h are the cells it covers: along z and y for the faces of x, along x and z for those of y, along x and y for
// those of z. light has two bits a corner, 0 dark to 3 open: the corners {low, low}, {high w, low}, {low, high h} and
// {high, high} of w and h; a shader that cuts the quad in two triangles takes the diagonal between the corners whose
// sum is larger, or shadows look torn. Slopes are signed, in quarters: how the ground rises along x and z.
typedef struct mesh_quad {
    uint32_t place, what;
} mesh_quad;

// The same, opened.
typedef struct mesh_rect {
    uint32_t x, y, z, w, h;
    uint32_t face, material, light;
    int32_t slope_x, slope_z; // -3 to 3
} mesh_rect;

typedef struct mesh_input {
    // x fastest, then z, then y; one more on each side of 32 * 32 * layer_count, see mesh_cell_index.
    const uint8_t *cells;
    uint32_t layer_count;  // 1 to MESH_LAYERS_MAX
    uint32_t open_layer;   // below it all cells are opaque, padding too; 0 where that is not known
    const int16_t *ground; // the layer of the highest ground of each padded column; NULL = no skirts
    uint32_t skirt;        // layers that the sides of the border go on below the ground behind it
    const uint8_t *slopes; // of each padded column, as mesh_slope packs them; NULL = 0
    uint32_t grain;        // cells along a side of those that are alike, 1 or 2: light is looked for beside all of them
    uint32_t merge_max;    // cells that a quad may be long across the ground, grain to 32: the planet is round
    uint32_t rise;         // layers above a face where a cell takes its light; 1 or more where layers are flat
} mesh_input;

// Where quads go. The caller sets the buffers and their sizes and clears the rest.
typedef struct mesh_output {
    mesh_quad *quads; // opaque
    uint32_t quad_count_max;
    mesh_quad *water; // to be drawn after all that is opaque
    uint32_t water_count_max;
    uint32_t quad_count, water_count;
    uint32_t dropped_count; // quads that had no room; the others are right
} mesh_output;

// Where a cell stands among the padded ones; x and z are -1 to 32, y is -1 to layer_count.
static inline uint32_t mesh_cell_index(int32_t x, int32_t y, int32_t z) {
    return (uint32_t)(((y + 1) * MESH_PADDED + z + 1) * MESH_PADDED + x + 1);
}

// Where a column stands among the padded ones; x and z are -1 to 32.
static inline uint32_t mesh_column_index(int32_t x, int32_t z) { return (uint32_t)((z + 1) * MESH_PADDED + x + 1); }

// Slopes in quarters, each cut to -3 to 3.
uint8_t mesh_slope(int32_t slope_x, int32_t slope_z);

mesh_quad mesh_quad_pack(const mesh_rect *rect);
mesh_rect mesh_quad_open(mesh_quad quad);

static inline uint32_t mesh_quad_material(mesh_quad quad) { return quad.place >> 26; }

// Appends the quads of one direction, in an order that depends on the cells alone. False where a quad had no room, or
// where face or layer_count is none.
bool mesher_face(const mesh_input *input, mesh_face face, mesh_output *out);
