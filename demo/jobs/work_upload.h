// SPDX-License-Identifier: MIT
#pragma once

// Upload preparation: jobs copy the meshes of new chunks into memory that a graphics card reads. Each fills ranges of
// the ring that no other job has.

#include <stdint.h>

#include "../chunks/upload_ring.h"

typedef struct upload_input {
    const upload_item *items;
} upload_input;

typedef struct upload_output {
    mesh_quad *buffer;   // the whole one: written only inside the items' ranges
    uint32_t item_count; // filled
    uint32_t quad_count; // in them
} upload_output;

// Fills the ranges of items first to first + count - 1.
void upload_run(const upload_input *input, uint32_t first, uint32_t count, upload_output *out);

// Adds up what jobs have done; the buffer needs no merging.
void upload_append(upload_output *whole, const upload_output *part);
