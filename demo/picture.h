// SPDX-License-Identifier: MIT
#pragma once

// What is made of every frame: nine kinds of work, each a module with jobs on all threads. A job reads the snapshot and
// writes outputs of its own; the outputs are merged in the order of the jobs, so the picture is the same with any
// number of workers. Where a frame needs what the one before has found (levels of detail, sight), the merge keeps it in
// tables that the next snapshot shows.

#include "nebula/engine.h"

#include "planet.h"
#include "streamer.h"
#include "work_particles.h"

#define PICTURE_KIND_COUNT 9

// Particles in the pool, and where they spring from.
#define PICTURE_PARTICLES 2048u
#define PICTURE_EMITTERS 8u

// Lights around the explorer.
#define PICTURE_LIGHTS 192u

// What the newest frame has come to; the merges write it.
typedef struct picture_numbers {
    uint32_t pose_count, sprite_count, visible_count, impostor_count, lit_count, draw_count, material_count,
        answer_count, uploaded_quads, seen_count;
    uint64_t hash; // of all outputs of all frames: the same for the same frames
} picture_numbers;

typedef struct picture {
    const planet *planet;
    const streamer *streamer;
    nb_world *world;
    particle particles[PICTURE_PARTICLES];
    uint32_t particle_count;                 // merged so far
    uint64_t particles_end, draw_counts_end; // of the frame they are of: its index + 1
    uint32_t particles_region;
    uint32_t draw_counts[TERRAIN_MATERIAL_COUNT];
    upload_quad *upload; // the ring's memory
    picture_numbers now, last;
} picture;

// Attaches the nine modules.
nb_result picture_attach(picture *p, nb_engine *engine, const planet *land, const streamer *chunks);

// Frees what picture_attach took, after the engine is destroyed.
void picture_end(picture *p);
