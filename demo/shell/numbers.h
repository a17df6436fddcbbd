// SPDX-License-Identifier: MIT
#pragma once

// How the frames of a run were, in medians: of a machine that has settled, so what was before the first five seconds is
// forgotten when they are over. Memory is bounded: up to NUMBERS_SAMPLES_MAX frames are kept, and where there were
// more, every second, every fourth and so on, evenly over the whole time.
//
//     numbers_add(&n, &frame);               // after each frame
//     numbers_summary summary;
//     if (numbers_sum_up(&n, &summary)) printf("%.1f frames a second\n", summary.fps);

#include <stdbool.h>
#include <stdint.h>

#include "nebula/phase.h"

#include "../chunks/quality.h"

// A minute at 60 frames a second without leaving one out.
#define NUMBERS_SAMPLES_MAX 4096u

#define NUMBERS_WARM_NS UINT64_C(5000000000)

typedef struct numbers_frame {
    uint64_t frame_ns;                 // since the frame before
    uint64_t gpu_ns;                   // of the newest picture; 0 = unknown, or none
    uint64_t upload_bytes;             // since the start, as the next
    uint64_t chunk_count;              // made
    uint32_t triangle_count;           // of the picture; 0 = none
    uint32_t view_triangle_count;      // with those in the camera's view that hills hide, and are not drawn
    uint32_t quality;                  // level
    uint64_t phase_ns[NB_PHASE_COUNT]; // inside it
} numbers_frame;

// What is kept of a frame: nanoseconds and numbers, to seven digits.
typedef enum numbers_column {
    NUMBERS_FRAME,
    NUMBERS_GPU,
    NUMBERS_TRIANGLES,
    NUMBERS_VIEW_TRIANGLES,
    NUMBERS_PHASES,
    NUMBERS_COLUMN_COUNT = NUMBERS_PHASES + NB_PHASE_COUNT,
} numbers_column;

// All zero at first.
typedef struct numbers {
    float samples[NUMBERS_SAMPLES_MAX][NUMBERS_COLUMN_COUNT];
    uint32_t sample_count;
    uint32_t halved_count; // how often every second one was left out
    bool is_warm;          // the first seconds are over
    uint64_t time_ns;      // of the frames that count
    uint64_t frame_count;  // of them
    uint64_t quality_counts[QUALITY_COUNT];
    uint32_t triangle_count_max;
    numbers_frame first, last; // the one before those that count, and the newest of all
} numbers;

typedef struct numbers_summary {
    bool is_warm; // false: of all frames, because there were no five seconds of them
    uint64_t frame_count;
    double time_s;
    double fps;                            // of the median frame
    double gpu_ms;                         // median; 0 = unknown
    uint32_t triangle_count, triangle_max; // median, and most
    uint32_t view_triangle_count;          // median
    uint64_t upload_bytes;                 // since the start
    double upload_mb_per_s, chunks_per_s;  // over the time that counts
    uint32_t quality, quality_most;        // at the end, and in most frames
    double phase_ms[NB_PHASE_COUNT];       // medians
} numbers_summary;

void numbers_add(numbers *n, const numbers_frame *frame);

// False: there was no frame.
bool numbers_sum_up(const numbers *n, numbers_summary *out);
