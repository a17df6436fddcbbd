// SPDX-License-Identifier: MIT
#pragma once

// Material and uniform packing: of each chunk what its draw needs to know from where the camera is, and of the
// materials only those in use, laid out as std140 wants it (everything in groups of 16 bytes). Jobs note which
// materials they met; the block of the materials is packed when all are known.

#include <stdint.h>

#include "../chunks/material_draw.h"
#include "../planet/palette.h"
#include "../planet/vec.h"

// A draw from where the camera is.
typedef struct draw_block {
    uint32_t faces; // a bit for each mesh_face: quads that look that way can be seen from there
    float distance; // metres to the chunk's middle
} draw_block;

// A material's uniforms. Colours are linear.
typedef struct material_block {
    float colour[3], speckle;
    float opacity, roughness, glow, reserved; // zero
} material_block;

_Static_assert(sizeof(material_block) == 32, "std140: multiples of 16 bytes");

typedef struct materials_input {
    const material_draw *draws;
    vec3d camera; // metres from the planet's middle
} materials_input;

typedef struct materials_output {
    draw_block *blocks; // room for count
    uint32_t block_count;
    uint32_t draw_counts[TERRAIN_MATERIAL_COUNT]; // draws that use each material
} materials_output;

// Directions of a node's quads that can be seen from a place: a bit for each mesh_face. What it leaves out certainly
// looks away.
uint32_t material_faces(vec3d eye, lod_node node);

// Appends the blocks of draws first to first + count - 1, and counts their materials.
void materials_run(const materials_input *input, uint32_t first, uint32_t count, materials_output *out);

// Appends a job's output to that of the jobs before it.
void materials_append(materials_output *whole, const materials_output *part);

// Packs the materials in use into TERRAIN_MATERIAL_COUNT blocks, by their numbers; the others stay as they are.
// Returns how many are in use.
uint32_t materials_pack(const materials_output *whole, material_block *blocks);
