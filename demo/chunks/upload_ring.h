// SPDX-License-Identifier: MIT
#pragma once

// A ring of quads that a graphics card reads from: the coordinator reserves a range for each new chunk, and a range is
// free again when the frame that uses it has been drawn.

#include <stdbool.h>
#include <stdint.h>

#include "mesher.h"

// Reserved and not yet released: head - tail. Both only grow; a place in the buffer is the number modulo
// quad_count_max.
typedef struct upload_ring {
    uint64_t head, tail;
    uint32_t quad_count_max;
    uint64_t full_count; // chunks that found no room, and are to be tried again later
} upload_ring;

typedef struct upload_range {
    uint32_t first; // in the buffer
    uint32_t count; // 0 = none was reserved
} upload_range;

typedef struct upload_item {
    const mesh_quad *quads;
    uint32_t quad_count;
    uint32_t slot;      // of its chunk
    upload_range range; // as upload_reserve gave it
} upload_item;

// Reserves room for a chunk, without a break in it: a range that would cross the end starts at the beginning. False,
// counted, where there is none, or where quad_count is 0 or more than the ring.
bool upload_reserve(upload_ring *ring, uint32_t quad_count, upload_range *out);

// Frees what was reserved before `head` was this.
void upload_release(upload_ring *ring, uint64_t head);
