// SPDX-License-Identifier: MIT
// Upload preparation.

#include "work_upload.h"

#include <string.h>

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

static void item_fill(const upload_item *item, mesh_quad *buffer) {
    uint32_t count = item->quad_count < item->range.count ? item->quad_count : item->range.count;
    memcpy(buffer + item->range.first, item->quads, count * sizeof *buffer);
}

void upload_run(const upload_input *input, uint32_t first, uint32_t count, upload_output *out) {
    for (uint32_t i = first; i < first + count; ++i) {
        const upload_item *item = &input->items[i];
        if (item->range.count == 0) continue;
        item_fill(item, out->buffer);
        out->quad_count += item->range.count;
        ++out->item_count;
    }
}

void upload_append(upload_output *whole, const upload_output *part) {
    whole->item_count += part->item_count;
    whole->quad_count += part->quad_count;
}
