// SPDX-License-Identifier: MIT
// Medians of a run's frames.

#include "numbers.h"

#include <stdlib.h>
#include <string.h>

// Every second one goes: what is left is as far apart as what comes from now on.
static void halve(numbers *n) {
    for (uint32_t i = 0; i < NUMBERS_SAMPLES_MAX / 2; ++i)
        memcpy(n->samples[i], n->samples[2 * i], sizeof n->samples[i]);
    n->sample_count = NUMBERS_SAMPLES_MAX / 2;
    ++n->halved_count;
}

static void keep(numbers *n, const numbers_frame *frame) {
    if (n->sample_count == NUMBERS_SAMPLES_MAX) halve(n);
    if (n->frame_count % (UINT64_C(1) << n->halved_count) != 0) return;
    float *to = n->samples[n->sample_count++];
    to[NUMBERS_FRAME] = (float)frame->frame_ns;
    to[NUMBERS_GPU] = (float)frame->gpu_ns;
    to[NUMBERS_TRIANGLES] = (float)frame->triangle_count;
    to[NUMBERS_VIEW_TRIANGLES] = (float)frame->view_triangle_count;
    for (uint32_t i = 0; i < NB_PHASE_COUNT; ++i) to[NUMBERS_PHASES + i] = (float)frame->phase_ns[i];
}

// From this frame on all is counted anew.
static void restart(numbers *n, const numbers_frame *frame) {
    n->is_warm = true;
    n->sample_count = n->halved_count = n->triangle_count_max = 0;
    n->time_ns = n->frame_count = 0;
    memset(n->quality_counts, 0, sizeof n->quality_counts);
    n->first = n->last = *frame;
}

void numbers_add(numbers *n, const numbers_frame *frame) {
    n->time_ns += frame->frame_ns;
    if (!n->is_warm && n->time_ns >= NUMBERS_WARM_NS) {
        restart(n, frame);
        return;
    }
    keep(n, frame);
    ++n->frame_count;
    ++n->quality_counts[frame->quality < QUALITY_COUNT ? frame->quality : QUALITY_COUNT - 1];
    if (frame->triangle_count > n->triangle_count_max) n->triangle_count_max = frame->triangle_count;
    n->last = *frame;
}

static int compare(const void *a, const void *b) {
    const float *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

// The smallest that at least half of them do not exceed.
static double median(const numbers *n, uint32_t column) {
    float sorted[NUMBERS_SAMPLES_MAX];
    for (uint32_t i = 0; i < n->sample_count; ++i) sorted[i] = n->samples[i][column];
    qsort(sorted, n->sample_count, sizeof sorted[0], compare);
    return (double)sorted[(n->sample_count - 1) / 2];
}

bool numbers_sum_up(const numbers *n, numbers_summary *out) {
    *out = (numbers_summary){.is_warm = n->is_warm, .frame_count = n->frame_count};
    if (n->sample_count == 0) return false;
    double frame_ns = median(n, NUMBERS_FRAME);
    out->time_s = (double)n->time_ns / 1e9;
    out->fps = frame_ns > 0 ? 1e9 / frame_ns : 0;
    out->gpu_ms = median(n, NUMBERS_GPU) / 1e6;
    out->triangle_count = (uint32_t)median(n, NUMBERS_TRIANGLES);
    out->view_triangle_count = (uint32_t)median(n, NUMBERS_VIEW_TRIANGLES);
    out->triangle_max = n->triangle_count_max;
    out->upload_bytes = n->last.upload_bytes;
    out->quality = n->last.quality;
    for (uint32_t i = 1; i < QUALITY_COUNT; ++i)
        if (n->quality_counts[i] > n->quality_counts[out->quality_most]) out->quality_most = i;
    for (uint32_t i = 0; i < NB_PHASE_COUNT; ++i) out->phase_ms[i] = median(n, NUMBERS_PHASES + i) / 1e6;
    if (n->time_ns == 0) return true;
    out->upload_mb_per_s = (double)(n->last.upload_bytes - n->first.upload_bytes) / 1e6 / out->time_s;
    out->chunks_per_s = (double)(n->last.chunk_count - n->first.chunk_count) / out->time_s;
    return true;
}
