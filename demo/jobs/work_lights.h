// SPDX-License-Identifier: MIT
#pragma once

// Light clustering: the picture is cut into blocks, 16 by 9 across and 24 deep, and each gets the list of lights that
// reach it; a pixel then asks a few lights instead of all. A list is bounded; lights that find no room are counted.

#include <stdint.h>

#include "../planet/vec.h"

#define LIGHT_CLUSTERS_X 16
#define LIGHT_CLUSTERS_Y 9
#define LIGHT_CLUSTERS_Z 24
#define LIGHT_CLUSTER_COUNT (LIGHT_CLUSTERS_X * LIGHT_CLUSTERS_Y * LIGHT_CLUSTERS_Z)

// Lights in one block: more than a pixel should ask.
#define LIGHT_CLUSTER_LIGHTS_MAX 32

// Lights in all: numbers are 16 bits, and more than are in one picture.
#define LIGHTS_MAX 4096

// As the camera sees it: x to the right, y up, z away from it, in metres.
typedef struct light {
    vec3 position;
    float radius; // where it ends
} light;

typedef struct light_cluster {
    uint16_t light_count;
    uint16_t dropped_count;                    // that had no room
    uint16_t lights[LIGHT_CLUSTER_LIGHTS_MAX]; // ascending; the rest is zero
} light_cluster;

typedef struct lights_input {
    const light *lights;
    uint32_t light_count;         // LIGHTS_MAX at most; the rest is left out
    float tan_half_x, tan_half_y; // of the angles the camera sees to each side
    float near, far;              // depths of the first and the last block
} lights_input;

typedef struct lights_output {
    light_cluster *clusters; // room for count
    uint32_t cluster_count;
    uint32_t dropped_count; // of all clusters
} lights_output;

// Depth of the border before block z, 0 to LIGHT_CLUSTERS_Z: blocks grow with the square of their number.
float light_depth(const lights_input *input, uint32_t z);

// The box around a block.
void light_cluster_box(const lights_input *input, uint32_t number, vec3 *low, vec3 *high);

// Appends clusters first to first + count - 1; number = (z * LIGHT_CLUSTERS_Y + y) * LIGHT_CLUSTERS_X + x.
void lights_run(const lights_input *input, uint32_t first, uint32_t count, lights_output *out);

// Appends a job's output to that of the jobs before it.
void lights_append(lights_output *whole, const lights_output *part);
