// SPDX-License-Identifier: MIT
#pragma once

// Material and uniform packing: for each thing that is drawn the block of numbers its shader reads, laid out as std140
// wants it (everything in groups of 16 bytes), and of the materials only those in use, each once. Jobs note which
// materials they met; the blocks of the materials are packed when all are known.

#include <stdint.h>

#include "palette.h"
#include "vec.h"

// A chunk as it is drawn: opaque quads, then water.
typedef struct material_draw {
    lod_node node;
    int16_t base, step;     // metres: of its lowest layer above the sea, and of a layer
    uint64_t material_bits; // of terrain_material: what its quads are made of
    uint32_t quad_first, quad_count;
    uint32_t water_first, water_count;
} material_draw;

// A draw's uniforms. Positions on the planet are large; the shader gets them relative to the camera, where floats are
// exact.
typedef struct draw_block {
    float origin[3]; // of the chunk's middle at the sea, metres from the camera
    float fade;      // 0 at the far end of the picture to 1 near
    uint32_t face, level;
    uint32_t column_u, column_v; // its first
    int32_t base, step;          // as in material_draw
    uint32_t quad_first, quad_count;
    uint32_t water_first, water_count;
    uint32_t material_count;
    uint32_t reserved; // zero
} draw_block;

// A material's uniforms.
typedef struct material_block {
    float colour[4]; // linear, and how opaque
    float roughness, glow;
    uint32_t material;   // a terrain_material
    uint32_t draw_count; // draws that use it
} material_block;

_Static_assert(sizeof(draw_block) == 64 && sizeof(material_block) == 32, "std140: multiples of 16 bytes");

typedef struct materials_input {
    const material_draw *draws;
    vec3d camera; // metres from the planet's middle
    float far;    // metres
} materials_input;

typedef struct materials_output {
    draw_block *blocks; // room for count
    uint32_t block_count;
    uint32_t draw_counts[TERRAIN_MATERIAL_COUNT]; // draws that use each material
} materials_output;

// Appends the blocks of draws first to first + count - 1, and counts their materials.
void materials_run(const materials_input *input, uint32_t first, uint32_t count, materials_output *out);

// Appends a job's output to that of the jobs before it.
void materials_append(materials_output *whole, const materials_output *part);

// Packs the materials in use, ascending; `blocks` has room for TERRAIN_MATERIAL_COUNT. Returns how many there are.
uint32_t materials_pack(const materials_output *whole, material_block *blocks);
