// SPDX-License-Identifier: MIT
#pragma once

// Occlusion: what the land itself hides, as a bit a thing. The eye looks out in sectors all around. In each, a piece of
// land that is drawn and fills the sector's width hides whatever lies behind it and below the line from the eye over
// its solid part. The results of all sectors are reduced to one bit: a thing is hidden when no sector sees it. Nothing
// is kept from frame to frame, so nothing comes late when the eye moves.
//
// The one rule: what counts as hidden certainly is; what counts as seen may still be hidden.
//
// A job takes every n-th sector, looks at all things, and writes bits of its own; the bits of all jobs are joined by
// or.

#include <stdbool.h>
#include <stdint.h>

#include "../chunks/lod.h"
#include "../chunks/occlusion_land.h"
#include "work_visibility.h"

#define OCCLUSION_WORD_THINGS 64

// A sector is 0.45 to 0.9 degrees wide: a quarter of what a small chunk fills at 600 m.
#define OCCLUSION_SECTORS 512u

// Rings around the eye: one for all within 0.6 m, then eight for each of twelve doublings of the distance, up to where
// the planet has bent by 45 degrees. What hides and what is hidden are in different ones.
#define OCCLUSION_RINGS_EACH 8u
#define OCCLUSION_RINGS (1 + 12 * OCCLUSION_RINGS_EACH)

typedef struct occlusion_input {
    vec3d eye;                // metres from the planet's middle
    frustum frustum;          // what is outside counts as seen, and hides nothing
    const lod_bounds *bounds; // around each land: nothing of it is above
    const occlusion_land *lands;
    const uint8_t *is_drawn; // of each land; what is not counts as seen, and hides nothing
    uint32_t land_count;
    const vec3 *spheres; // things that hide nothing: their middles
    uint32_t sphere_count;
    float sphere_radius;
} occlusion_input;

// A land or a sphere as the eye sees it.
typedef struct occlusion_outline {
    uint32_t number;   // of the land, or the count of lands + that of the sphere
    float near, far;   // tangents of the angles between it and the eye, at the planet's middle
    float first, last; // sectors from where to where; first may be below 0
} occlusion_outline;

// What a job needs to work in.
typedef struct occlusion_room {
    float *horizon;              // occlusion_horizon_count
    occlusion_outline *outlines; // the count of lands and spheres
} occlusion_room;

// Words that `thing_count` things need.
static inline uint32_t occlusion_word_count(uint32_t thing_count) {
    return thing_count / OCCLUSION_WORD_THINGS + (thing_count % OCCLUSION_WORD_THINGS != 0);
}

// Numbers that the horizon of one of `stride` jobs has.
static inline uint32_t occlusion_horizon_count(uint32_t stride) {
    return (OCCLUSION_SECTORS / stride + 1) * OCCLUSION_RINGS;
}

// Sectors first, first + stride, and so on: a bit for each thing that one of them sees. Writes all words; bits past the
// last thing are 0.
void occlusion_run(const occlusion_input *input, uint32_t first, uint32_t stride, const occlusion_room *room,
                   uint64_t *words);

// Joins a job's words with those of the jobs before it.
void occlusion_append(uint64_t *whole, const uint64_t *part, uint32_t word_count);
