// SPDX-License-Identifier: MIT
#pragma once

// A meshed chunk as it is drawn: where its quads are, how high it lies and what it is made of.

#include <stdint.h>

#include "../planet/node.h"

// Opaque quads come first, then water.
typedef struct material_draw {
    lod_node node;
    int16_t base, step;     // metres: of its lowest layer above the sea, and of a layer
    uint64_t material_bits; // of terrain_material: what its quads are made of
    uint32_t quad_count, water_count;
    uint32_t slot; // that its quads are known by
} material_draw;
