// SPDX-License-Identifier: MIT
#pragma once

// The demo's parallel work: in every frame an array that all threads fill and the coordinator then verifies, and
// between frames the chunks of a planet, which a teleport makes stale. All functions are the coordinator's.

#include "nebula/tasks.h"

// Tasks that fill a frame's array, and values of each: enough for every core of a large machine, and some 20 us of
// work.
#define DEMO_SLICE_COUNT 16
#define DEMO_SLICE_SIZE 512

// Chunks queued or running after each frame's start: a few frames' work for a small machine.
#define DEMO_CHUNK_COUNT 64

typedef struct demo_work {
    nb_scheduler *scheduler;
    nb_fence *fence;
    nb_token *game, *planet; // the chunks' tokens are children of the planet's
    bool has_chunks;         // chunks are generated
    uint32_t worker_count;
    uint32_t chunk_count;       // queued, running, or not yet told
    uint64_t chunk_next;        // number of the next one
    uint64_t checked, wrong;    // frames verified; of them, those with a value or checksum that is not right
    uint64_t busy_ns, total_ns; // of all workers when demo_work_load_get was last called
    uint64_t sums[DEMO_SLICE_COUNT];
    uint64_t values[DEMO_SLICE_COUNT * DEMO_SLICE_SIZE];
} demo_work;

typedef struct demo_load {
    double busy_share;     // of the workers' time since the last call, 0 to 1
    uint64_t queued_count; // tasks in the queues
} demo_load;

// Starts the workers (worker_count as in nb_scheduler_desc). On failure too, demo_work_stop is to be called.
nb_result demo_work_start(demo_work *work, uint32_t worker_count, bool has_chunks);

// Runs the frame's tasks, waits for them and verifies what they wrote; replaces chunks that are done.
void demo_work_frame(demo_work *work, uint64_t frame_number);

// Leaves the planet for a new one, and returns how many of its chunks were queued or running.
uint64_t demo_work_teleport(demo_work *work);

// How much the workers do.
demo_load demo_work_load_get(demo_work *work);

// Cancels what is left and ends everything.
nb_result demo_work_stop(demo_work *work);
