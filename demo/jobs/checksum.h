// SPDX-License-Identifier: MIT
#pragma once

// A checksum of every frame, made by all threads: each job reads its share of the animals in the snapshot, and the
// merge puts the parts in the order of the jobs. The coordinator works out the same parts from the world itself. The
// one rule: they are equal in every frame; a torn read, a part of another frame or a lost row makes them differ.

#include "nebula/engine.h"

#include "../game/planet.h"

// More than the threads of a usual machine, so that all of them take part.
#define CHECKSUM_JOB_COUNT 16u

typedef struct checksum {
    const planet *planet;
    uint64_t expected[CHECKSUM_JOB_COUNT]; // of the world, when this frame's snapshot was taken
    uint64_t parts[CHECKSUM_JOB_COUNT];    // of the jobs
    uint32_t part_count;                   // merged in this frame
    uint64_t value;                        // of the newest frame that all jobs took part in
    uint64_t frame_count;                  // such frames
    uint64_t wrong_count;                  // of them, those with a part that differs
    uint64_t left_count;                   // frames without a checksum: a job was late, or readers held every snapshot
} checksum;

// Attaches the module "checksum", behind the planet. c outlives the engine.
nb_result checksum_attach(checksum *c, nb_engine *engine, const planet *land);
