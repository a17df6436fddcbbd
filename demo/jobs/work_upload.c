// SPDX-License-Identifier: MIT
// Upload preparation.

#include "work_upload.h"

#include <string.h>

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
