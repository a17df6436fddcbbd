// SPDX-License-Identifier: MIT
#pragma once

// Levels of detail and impostors: how finely each thing is drawn, by its distance, and for the furthest which of the
// pictures taken of it beforehand stands in for it. A level changes only when the distance is a tenth beyond the
// border, so that nothing flickers between two.

#include <stdint.h>

#include "work_pose.h"

// 0 is the finest; the last is a picture.
#define LOD_LEVEL_COUNT 5
#define LOD_LEVEL_IMPOSTOR (LOD_LEVEL_COUNT - 1)

// Pictures of a thing, taken from directions all around.
#define LOD_DIRECTION_COUNT 8

typedef struct lod_impostor {
    uint32_t number;    // of the thing
    uint32_t direction; // 0 to LOD_DIRECTION_COUNT - 1, counted from `forward` to the right: where the viewer is
} lod_impostor;

typedef struct lod_input {
    const pose_body *bodies;
    const uint8_t *
        levels; // of the frame before; any byte for a new thing: it is taken for the coarsest. NULL = by distance alone
    vec3 viewer;
    float distance_1; // up to where level 0 lasts, in metres; each further level lasts twice as far
} lod_input;

typedef struct lod_output {
    uint8_t *levels; // room for count
    uint32_t level_count;
    lod_impostor *impostors; // room for count
    uint32_t impostor_count;
} lod_output;

// Appends the levels of things first to first + count - 1, and those that are pictures.
void lod_run(const lod_input *input, uint32_t first, uint32_t count, lod_output *out);

// Appends a job's output to that of the jobs before it.
void lod_append(lod_output *whole, const lod_output *part);
