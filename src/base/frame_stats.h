// SPDX-License-Identifier: MIT
#pragma once

#include "nebula/frame_stats.h"

// Copies the newest `count` frame times, sorted from short to long; count is at most what the ring holds.
void nbi_frame_stats_sorted(const nb_frame_stats *stats, uint32_t count, uint64_t *out_ns);

// Records in the ring now.
static inline uint32_t nbi_frame_stats_held(const nb_frame_stats *stats) {
    return stats->total_count < NB_FRAME_STATS_COUNT_MAX ? (uint32_t)stats->total_count : NB_FRAME_STATS_COUNT_MAX;
}

// The i-th newest record, 0 = the newest.
static inline const nb_frame_record *nbi_frame_stats_newest(const nb_frame_stats *stats, uint32_t i) {
    return &stats->records[(stats->total_count - 1 - i) % NB_FRAME_STATS_COUNT_MAX];
}
