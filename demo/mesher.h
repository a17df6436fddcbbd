// SPDX-License-Identifier: MIT
#pragma once

// Turns the voxels of a chunk into rectangles, as few as a greedy search finds, one face direction at a time: between
// two directions a job can look whether it is still wanted. A voxel has a face where its neighbour lets it be seen:
// air, or water beside anything but water. Neighbours behind the chunk's border come from its padding, so two chunks
// that touch make no faces between them.

#include <stdbool.h>
#include <stdint.h>

typedef enum mesh_face {
    MESH_FACE_X_NEGATIVE = 0,
    MESH_FACE_X_POSITIVE,
    MESH_FACE_Y_NEGATIVE,
    MESH_FACE_Y_POSITIVE,
    MESH_FACE_Z_NEGATIVE,
    MESH_FACE_Z_POSITIVE,
    MESH_FACE_COUNT,
} mesh_face;

// Quads one direction can need at most. Along a line of 32 voxels no three in a row all have a face (at best stone,
// water, air), so 22 of 32 have one; and neighbours may all differ in material, so that nothing merges.
#define MESH_FACE_QUADS_MAX (22 * 32 * 32)

// A rectangle of faces of one material. The axes of w and h are those of the face's plane: y and z for x, x and z for
// y, x and y for z.
typedef struct mesh_quad {
    uint8_t x, y, z;  // its voxel with the lowest coordinates, 0 to 31
    uint8_t w, h;     // voxels it covers along the first and the second axis, 1 to 32
    uint8_t face;     // a mesh_face
    uint8_t material; // a terrain_material
    uint8_t reserved; // zero
} mesh_quad;

_Static_assert(sizeof(mesh_quad) == 8, "quads are uploaded as they are");

// Where quads go. The caller sets the first two fields and clears the others.
typedef struct mesh_output {
    mesh_quad *quads;
    uint32_t quad_count_max;
    uint32_t quad_count;
    uint32_t dropped_count; // quads that had no room; the others are right
} mesh_output;

// Appends the quads of one direction, in an order that depends on the voxels alone. `voxels` are those of
// terrain_chunk_layer. False where a quad had no room, or where face is none.
bool mesher_face(const uint8_t *voxels, mesh_face face, mesh_output *out);
