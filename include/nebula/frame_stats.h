// SPDX-License-Identifier: MIT
#pragma once

// How the last frames went: a ring of frame records in caller storage, and a summary with percentiles. The loop fills
// it where its desc names one; a program without the loop may fill it too. The one rule: one thread at a time.
//
//     static nb_frame_stats stats;
//     nb_frame_stats_init(&stats);
//     nb_frame_record record = {16666667, 1, 0.5f};
//     nb_frame_stats_add(&stats, &record);
//     nb_frame_summary summary;
//     if (nb_frame_stats_summarise(&stats, 60, &summary) == NB_OK) printf("%.1f fps\n", summary.fps);

#include "nebula/types.h"

// Frames kept: p99.9 means nothing below 1000 of them, and at 60 frames a second this is the last 17 s in 16 KiB.
#define NB_FRAME_STATS_COUNT_MAX 1024

// A hitch is a frame longer than this many times the mean of the frames before it: one missed refresh.
#define NB_FRAME_HITCH_FACTOR 2

typedef struct nb_frame_record {
    uint64_t frame_ns;   // from the frame before this one, nanoseconds
    uint32_t tick_count; // updates run in this frame
    float alpha;         // interpolation factor after them, [0, 1)
} nb_frame_record;

// Private: use the functions below.
typedef struct nb_frame_stats {
    nb_frame_record records[NB_FRAME_STATS_COUNT_MAX]; // ring; record i of all time is at i % NB_FRAME_STATS_COUNT_MAX
    uint64_t total_count;                              // records ever added
    uint64_t window_ns;                                // sum of frame_ns over the ring
    uint64_t hitch_count;                              // of all time
} nb_frame_stats;

// Over a window of the newest frames. The percentile p is the smallest recorded time that at least p of the frames do
// not exceed (nearest rank, no interpolation).
typedef struct nb_frame_summary {
    uint32_t frame_count;     // frames in the window, at least 1
    uint64_t frame_ns;        // the newest frame
    uint32_t tick_count;      // updates in the newest frame
    float alpha;              // after the newest frame
    double fps;               // frames a second over the window; 0 when no time passed
    double ups;               // updates a second over the window; 0 when no time passed
    uint64_t mean_ns;         // over the window, as the six below
    uint64_t min_ns, max_ns;  // shortest and longest frame
    uint64_t p50_ns, p95_ns;  // median; one frame in twenty is longer
    uint64_t p99_ns, p999_ns; // one in a hundred, one in a thousand is longer
    double low_1_percent_fps; // frame rate over the slowest 1 % of the frames (at least one of them)
    uint64_t hitch_count;     // hitches since nb_frame_stats_init, also those outside the window
} nb_frame_summary;

NB_EXTERN_C_BEGIN

// Empties the ring and the counters.
// Thread: the stats' own. Owner: the caller's storage. Fails: NB_ERR_MISUSE.
NB_API nb_result nb_frame_stats_init(nb_frame_stats *stats);

// Adds one frame, over the oldest one when the ring is full.
// Thread: the stats' own. Owner: the record is copied. Fails: NB_ERR_MISUSE.
NB_API nb_result nb_frame_stats_add(nb_frame_stats *stats, const nb_frame_record *record);

// Sums up the newest frame_count frames; 0 or more than there are means all of them. Sorts a copy on the stack (8 KiB).
// Thread: the stats' own. Owner: *out is a value. Fails: NB_EMPTY without any frame, NB_ERR_MISUSE.
NB_API nb_result nb_frame_stats_summarise(const nb_frame_stats *stats, uint32_t frame_count, nb_frame_summary *out);

NB_EXTERN_C_END
