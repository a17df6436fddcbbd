// SPDX-License-Identifier: MIT
#pragma once

// How the demo runs at this moment: numbers that the status line and the overlay both show.
//
//     status_read(&s, engine, &frame_stats, &sums); // after each frame

#include <stdint.h>

#include "nebula/engine.h"
#include "nebula/frame_stats.h"

#include "../jobs/checksum.h"

// Frames that the rates are over, and after which the load is read again: a second at 60 frames a second.
#define STATUS_FRAMES 60u

typedef struct status {
    double fps, ups;                         // frames and ticks a second, over the newest STATUS_FRAMES frames
    float alpha;                             // of the newest frame: how far it is between two ticks, 0 to 1
    uint64_t checksum;                       // of the newest frame
    double busy_share;                       // of the workers' time, 0 to 1; 0 without workers
    uint64_t queued_count;                   // tasks that wait in queues
    uint64_t busy_ns, total_ns, frame_count; // when the share was worked out
} status;

void status_read(status *s, nb_engine *engine, const nb_frame_stats *frames, const checksum *sums);
