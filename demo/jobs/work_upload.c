// SPDX-License-Identifier: MIT
// Upload preparation.

#include "work_upload.h"

#include <string.h>

#include "picture_job.h"

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

// --- in every frame ---

typedef struct upload_head {
    uint32_t item_count, quad_count;
} upload_head;

// Straight into memory that the device reads.
static nb_result upload_to_device(const nb_context *context, const streamer *s, upload_item *items, uint32_t count) {
    streamer_room *rooms = job_output(context, count * sizeof *rooms);
    if (rooms == NULL) return NB_ERR_MEMORY;
    for (uint32_t i = 0; i < count; ++i) {
        rooms[i] = s->device.room(s->device.user, context->frame, items[i].quad_count * sizeof(mesh_quad));
        items[i].range = (upload_range){0, items[i].quad_count};
        upload_output out = {.buffer = rooms[i].memory};
        if (out.buffer != NULL) upload_run(&(upload_input){&items[i]}, 0, 1, &out);
        items[i].quads = NULL; // an address is not the same in every run
    }
    return NB_OK;
}

static nb_result upload_job(const nb_context *context, void *user) {
    const picture *p = user;
    const streamer *s = p->streamer;
    size_t fresh_bytes = 0;
    const upload_item *fresh = nb_snapshot_region(context->snapshot, s->fresh_region, &fresh_bytes);
    const uint32_t *first = nb_snapshot_region(context->snapshot, s->fresh_first_region, NULL);
    const mesh_quad *quads = nb_snapshot_region(context->snapshot, s->fresh_quads_region, NULL);
    job_share mine = job_share_of(context, (uint32_t)(fresh_bytes / sizeof *fresh));
    upload_head *head = job_output(context, sizeof *head);
    upload_item *items = job_output(context, mine.count * sizeof *items);
    if (head == NULL || items == NULL) return NB_ERR_MEMORY;
    uint32_t quad_count = 0;
    for (uint32_t i = 0; i < mine.count; ++i) {
        items[i] = fresh[mine.first + i];
        items[i].quads = quads + first[mine.first + i];
        items[i].range.first = quad_count; // within this job's block; the merge knows the place in the ring
        quad_count += items[i].quad_count;
    }
    *head = (upload_head){mine.count, quad_count};
    if (s->device.room != NULL) return upload_to_device(context, s, items, mine.count);
    upload_output out = {.buffer = job_output(context, quad_count * sizeof(mesh_quad))};
    if (out.buffer == NULL) return NB_ERR_MEMORY;
    upload_run(&(upload_input){items}, 0, mine.count, &out);
    for (uint32_t i = 0; i < mine.count; ++i) {
        items[i].quads = NULL; // an address is not the same in every run
        items[i].range = fresh[mine.first + i].range;
    }
    return NB_OK;
}

static nb_result upload_merge(const nb_context *context, void *user, const nb_output_list *outputs) {
    picture *p = user;
    size_t size_bytes = 0;
    const upload_head *head = merge_note(context, p, outputs, &size_bytes);
    const upload_item *items = nb_output_list_next(outputs, head, NULL);
    const void *block = nb_output_list_next(outputs, items, NULL);
    const streamer_device *device = &p->streamer->device;
    const streamer_room *rooms = device->room != NULL ? block : NULL;
    const mesh_quad *quads = device->room == NULL ? block : NULL;
    p->now.uploaded_quads += head->quad_count;
    for (uint32_t i = 0; i < head->item_count && rooms != NULL && merge_is_of_now(context); ++i)
        if (rooms[i].memory != NULL) device->filled(device->user, items[i].slot, &rooms[i]);
    for (uint32_t i = 0; i < head->item_count && quads != NULL; ++i) {
        memcpy(p->upload + items[i].range.first, quads, items[i].quad_count * sizeof *quads);
        quads += items[i].quad_count;
    }
    return NB_OK;
}

const nb_module_desc work_upload_module = {
    .name = "upload", .parallel = upload_job, .merge = upload_merge, .job_count = 4};
