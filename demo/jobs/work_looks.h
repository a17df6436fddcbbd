// SPDX-License-Identifier: MIT
#pragma once

// Where animals look: their heads turn to who is near, and more so to the explorer where they see it, as far as a neck
// can turn. The one rule: a look follows from this frame alone, and turns with what is looked at without a jump, but
// where the explorer comes in sight or goes.
//
//     uint32_t query_count = looks_ask(&input, first, count, queries);
//     queries_run(&asked, 0, query_count, &answers);
//     looks_run(&input, first, count, queries, &answers, &out);

#include <stdint.h>

#include "work_pose.h"
#include "work_queries.h"

// Metres from the ground to an animal's eyes, and from there to where it begins to see the explorer.
#define LOOK_EYE_HEIGHT 1.1f
#define LOOK_REACH 25.0f

// Animals that look for the explorer in one frame, the lowest rows first: a few tenths of a millisecond for all jobs.
#define LOOK_SIGHTS_MAX 64u

// The sines of how far a neck turns to a side, 70 degrees, and up or down, 25.
#define LOOK_SIDE_MAX 0.9396926f
#define LOOK_RISE_MAX 0.4226183f

typedef struct looks_input {
    const pose_body *bodies; // of the animals, as the rest
    const uint8_t *face;
    const int32_t *x, *z; // in TERRAIN_ONE
    vec3d eye;            // the explorer's, metres from the planet's middle
} looks_input;

typedef struct looks_output {
    vec3 *looks; // room for count
    uint32_t look_count;
} looks_output;

// Writes what animals first to first + count - 1 ask, up to count + LOOK_SIGHTS_MAX questions, and returns how many.
uint32_t looks_ask(const looks_input *input, uint32_t first, uint32_t count, query *out);

// Appends the looks of the same animals, from the answers to all that they asked.
void looks_run(const looks_input *input, uint32_t first, uint32_t count, const query *queries,
               const queries_output *answers, looks_output *out);

// Where a head points that is pulled at: straight ahead for no pull, and the stronger, the nearer to its direction. To
// what is behind it does not turn. The pull is in the planet's axes, of any length up to some thousands; the look is
// in the body's own: ahead, up and to its right, and of length 1.
vec3 look_of(const pose_body *body, vec3 pull);
