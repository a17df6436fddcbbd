// SPDX-License-Identifier: MIT
// A ring of quads.

#include "upload_ring.h"

bool upload_reserve(upload_ring *ring, uint32_t quad_count, upload_range *out) {
    uint32_t at = (uint32_t)(ring->head % ring->quad_count_max), left = ring->quad_count_max - at;
    uint64_t skipped = quad_count > left ? left : 0;
    bool has_room = quad_count > 0 && ring->head - ring->tail + skipped + quad_count <= ring->quad_count_max;
    if (!has_room) {
        ++ring->full_count;
        *out = (upload_range){0};
        return false;
    }
    *out = (upload_range){skipped > 0 ? 0 : at, quad_count};
    ring->head += skipped + quad_count;
    return true;
}

void upload_release(upload_ring *ring, uint64_t head) {
    // Never backwards, and never past what was reserved.
    if (head > ring->tail && head <= ring->head) ring->tail = head;
}
