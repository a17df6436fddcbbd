// SPDX-License-Identifier: MIT
#pragma once

// What is made of every frame: nine kinds of work, each a module with jobs on all threads. A job reads the snapshot and
// writes outputs of its own; the outputs are merged in the order of the jobs, so the picture is the same with any
// number of workers. Where a frame needs what the one before has found (levels of detail), the merge keeps it in tables
// that the next snapshot shows.

#include "nebula/engine.h"

#include "../chunks/streamer.h"
#include "../game/planet.h"
#include "home_lights.h"
#include "work_lights.h"
#include "work_lod.h"
#include "work_materials.h"
#include "work_occlusion.h"
#include "work_particles.h"

#define PICTURE_KIND_COUNT 9

// Particles in the pool, and where they spring from: the campfires of a home, and animals that raise dust.
#define PICTURE_PARTICLES 2048u
#define PICTURE_DUST 10u
#define PICTURE_EMITTERS (HOME_FIRES + PICTURE_DUST)

// Around an animal, from its feet: its neck is 1.2 m from there, and its muzzle half a metre from that.
#define PICTURE_CREATURE_RADIUS 1.75f

// Of sparks and of dust, by which who draws them tells them apart.
#define PICTURE_FIRE_COLOUR 0xff9a3cu
#define PICTURE_DUST_COLOUR 0xb8a07au

// What may be visible.
#define PICTURE_THINGS_MAX (STREAMER_CHUNKS_MAX + PLANET_CREATURES_MAX)

// How far lights are looked at, in metres.
#define PICTURE_LIGHTS_FAR 256.0f

// What the newest frame has come to; the merges write it.
typedef struct picture_numbers {
    uint32_t pose_count, sprite_count, visible_count, impostor_count, light_count, lit_count, draw_count,
        material_count, answer_count, uploaded_quads;
    uint64_t hash; // of all outputs of all frames: the same for the same frames
} picture_numbers;

// What the jobs have made of the newest frame, merged: for who draws it, from PostParallel to the end of the frame. The
// counts are those of picture_numbers.
typedef struct picture_made {
    pose poses[PLANET_CREATURES_MAX];           // by row of the creatures
    vec3 looks[PLANET_CREATURES_MAX];           // by row of the creatures, as look_of makes them; all zero = ahead
    particle_sprite sprites[PICTURE_PARTICLES]; // sprite_count
    uint32_t
        visible[PICTURE_THINGS_MAX]; // visible_count, ascending: rows of chunks, then their count + rows of creatures
    lod_impostor impostors[PLANET_CREATURES_MAX]; // impostor_count, ascending
    light lights[HOME_LIGHTS];                    // light_count: as the camera sees them
    light_cluster clusters[LIGHT_CLUSTER_COUNT];  // all of them
    draw_block draws[STREAMER_CHUNKS_MAX];        // by row of the chunks
    uint64_t draws_end; // of the frame that all of them are of: its index + 1; 0 = some are missing
    material_block materials[TERRAIN_MATERIAL_COUNT]; // by number: those in use are of this frame
    uint64_t seen[(PICTURE_THINGS_MAX + 63) / 64]; // a bit for each number as in `visible`: the land does not hide it
    uint64_t seen_end;                             // as draws_end
} picture_made;

// Merges of a kind whose parts are worth something only together.
typedef struct picture_parts {
    uint64_t frame_end; // of the frame they are of: its index + 1
    uint32_t count;
} picture_parts;

typedef struct picture {
    const planet *planet;
    const streamer *streamer;
    nb_store *world;
    bool is_restarted; // this frame takes nothing from those before it: it is the same whatever they were
    light lights[HOME_COUNT][HOME_LIGHTS]; // on the planet; never changed once they are there
    particle particles[PICTURE_PARTICLES];
    uint32_t particle_count;         // merged so far
    uint64_t particles_end, now_end; // of the frame they are of: its index + 1
    picture_parts draw_parts, seen_parts;
    uint32_t particles_region;
    uint32_t draw_counts[TERRAIN_MATERIAL_COUNT];
    mesh_quad *upload; // the ring's memory
    picture_made made;
    picture_numbers now, last; // of the frame under way, and of the last whole one
} picture;

// Whether the land may leave a thing in sight, a number as in `visible`, in the frame whose index + 1 is frame_end.
static inline bool picture_is_seen(const picture_made *made, uint64_t frame_end, uint32_t number) {
    return made->seen_end != frame_end || (made->seen[number / 64] >> number % 64 & 1) != 0;
}

// Attaches the nine modules.
nb_result picture_attach(picture *p, nb_engine *engine, const planet *land, const streamer *chunks);

// Frees what picture_attach took, after the engine is destroyed.
void picture_end(picture *p);
