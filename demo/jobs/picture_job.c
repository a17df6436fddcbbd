// SPDX-License-Identifier: MIT
// What the nine kinds of parallel work share.

#include "picture_job.h"

#include "nebula/hash.h"

// --- jobs ---

job_share job_share_of(const nb_context *context, uint32_t count) {
    uint32_t first = (uint32_t)((uint64_t)count * context->job_index / context->job_count);
    uint32_t end = (uint32_t)((uint64_t)count * (context->job_index + 1) / context->job_count);
    return (job_share){first, end - first};
}

void *job_output(const nb_context *context, size_t size_bytes) {
    return nb_output_add(context, size_bytes != 0 ? size_bytes : 1);
}

const planet_eye *job_eye(const nb_context *context, const picture *p) {
    return NB_STORE_VIEW(context->snapshot, p->world, p->planet->eye, 0, planet_eye);
}

uint32_t job_creature_count(const nb_context *context, const picture *p) {
    return nb_store_view_row_count(context->snapshot, p->world, p->planet->creatures);
}

uint32_t job_chunk_count(const nb_context *context, const picture *p) {
    return nb_store_view_row_count(context->snapshot, p->world, p->streamer->chunks);
}

float job_finest_distance(const nb_context *context) { return 8.0f * (float)(context->quality_level + 1); }

// --- merges ---

bool merge_is_first(const nb_context *context, uint64_t *frame_end) {
    bool is_new = *frame_end != context->frame_index + 1;
    *frame_end = context->frame_index + 1;
    return is_new;
}

const void *merge_note(const nb_context *context, picture *p, const nb_output_list *outputs, size_t *size_bytes) {
    const void *first = NULL;
    if (merge_is_first(context, &p->now_end)) p->now = (picture_numbers){.hash = p->now.hash};
    for (const void *block = nb_output_list_next(outputs, NULL, size_bytes); block != NULL;
         block = nb_output_list_next(outputs, block, size_bytes)) {
        p->now.hash = nb_hash64(block, *size_bytes, p->now.hash);
        if (first == NULL) first = block;
    }
    nb_output_list_next(outputs, NULL, size_bytes);
    return first;
}

bool merge_is_of_now(const nb_context *context) { return context->snapshot->info.frame == context->frame_index; }

uint64_t merge_parts_end(const nb_context *context, picture_parts *parts) {
    if (merge_is_first(context, &parts->frame_end)) parts->count = 0;
    bool is_whole = ++parts->count == context->job_count && merge_is_of_now(context);
    return is_whole ? context->frame_index + 1 : 0;
}
