// SPDX-License-Identifier: MIT
#pragma once

// Visibility and culling: which chunks and which animals may be in the picture. What it leaves out is certainly
// outside; what it keeps may still be.

#include <stdbool.h>
#include <stdint.h>

#include "terrain.h"
#include "vec.h"

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

typedef struct camera {
    vec3 position;                // voxels
    vec3 forward;                 // of length 1, not straight up or down
    float tan_half_x, tan_half_y; // of the angles it sees to each side
    float near, far;              // voxels
} camera;

typedef struct visibility_input {
    frustum frustum;
    const chunk_coord *chunks;
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

// Whether any of a box, or of a sphere, may be inside. Boxes near an edge of the frustum may be kept though they are
// not.
bool frustum_has_box(const frustum *frustum, vec3 low, vec3 high);
bool frustum_has_sphere(const frustum *frustum, vec3 middle, float radius);

// Appends the visible ones among the chunk_count + sphere_count numbers from first to first + count - 1, ascending.
void visibility_run(const visibility_input *input, uint32_t first, uint32_t count, visibility_output *out);

// Appends a job's output to that of the jobs before it.
void visibility_append(visibility_output *whole, const visibility_output *part);
