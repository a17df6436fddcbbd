// SPDX-License-Identifier: MIT
#pragma once

// Visibility and culling: which chunks and which animals may be in the picture: of those that are drawn, what lies in
// the camera's view and not behind the planet's limb. What it leaves out is certainly unseen; what it keeps may still
// be.

#include <stdbool.h>
#include <stdint.h>

#include "../chunks/lod.h"
#include "../game/eye.h"
#include "../planet/vec.h"

// Points p with dot(normal, p) + offset >= 0 are inside.
typedef struct plane {
    vec3 normal; // of length 1
    float offset;
} plane;

#define FRUSTUM_PLANE_COUNT 6

// near, far, left, right, bottom, top
typedef struct frustum {
    plane planes[FRUSTUM_PLANE_COUNT];
} frustum;

typedef struct visibility_input {
    frustum frustum;
    vec3d eye; // for the limb: where the camera is
    const lod_bounds *chunks;
    const uint8_t *is_drawn; // of each chunk: a coarser one, or finer ones, may stand for it
    uint32_t chunk_count;
    const vec3 *spheres; // middles of the animals
    uint32_t sphere_count;
    float sphere_radius;
} visibility_input;

// Numbers below chunk_count are chunks, those above are animals: chunk_count + its number.
typedef struct visibility_output {
    uint32_t *visible; // room for count
    uint32_t visible_count;
} visibility_output;

// The planes around what a camera sees.
frustum frustum_of(const camera *camera);

// Whether any of a sphere may be inside. Near an edge of the frustum it may be kept though it is not.
bool frustum_has_sphere(const frustum *frustum, vec3 middle, float radius);

// The same for what lies in bounds.
bool frustum_has_bounds(const frustum *frustum, const lod_bounds *bounds);

// Appends the visible ones among the chunk_count + sphere_count numbers from first to first + count - 1, ascending.
void visibility_run(const visibility_input *input, uint32_t first, uint32_t count, visibility_output *out);

// Appends a job's output to that of the jobs before it.
void visibility_append(visibility_output *whole, const visibility_output *part);
