// SPDX-License-Identifier: MIT
#pragma once

// What the demo tells a person: one line a second, and a summary at the end. Both are made from plain numbers, into a
// buffer of the caller's, so that they can be tested and printed anywhere.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "numbers.h"

// Numbers since the start, where a comment does not say otherwise.
typedef struct demo_report {
    double time_s;
    uint64_t tick_count, frame_count;
    double fps, ups;                           // over the last second; in the summary over the whole run
    float alpha;                               // of the newest frame, 0 to 1
    double busy_share;                         // of the workers' time over the last second, 0 to 1
    uint64_t queued_count;                     // tasks that wait now
    uint64_t checksum;                         // of the newest frame
    uint64_t checksum_count;                   // frames whose checksum was compared
    uint64_t checksum_wrong_count;             // of them, those that were wrong
    uint64_t p50_ns, p99_ns, max_ns;           // frame times: of the frames that are kept
    uint32_t chunk_count;                      // ready now
    uint64_t chunk_ready_count;                // meshed
    uint64_t chunk_cancelled_count;            // jobs ended because nobody wanted the chunk any more
    double chunks_per_s;                       // ready, over the last second; in the summary over the whole run
    uint32_t creature_count;                   // now
    uint64_t birth_count, death_count;         // of animals
    uint64_t frame_peak_bytes, job_peak_bytes; // most memory used in a frame's arena, and in one job's
    uint32_t quality_level, quality_level_max;
    uint64_t state_hash;
    uint64_t back_count;     // ticks that time ran backwards
    bool is_back;            // it does so now
    uint32_t triangle_count; // of the newest picture
    bool has_picture;        // a device draws one
    bool is_virtual;         // leave out what depends on the machine
    numbers_summary settled; // for the summary; without any frame: left out
} demo_report;

// Longest line and summary, with the end of the text.
#define REPORT_LINE_SIZE 256
#define REPORT_END_SIZE 2048

// The names of a line's columns, and a line, both without an end and of the same width for all usual numbers.
void report_header(bool is_virtual, bool has_picture, char text[REPORT_LINE_SIZE]);
void report_line(const demo_report *report, char text[REPORT_LINE_SIZE]);

// Several lines, each with its end.
void report_end(const demo_report *report, char text[REPORT_END_SIZE]);
