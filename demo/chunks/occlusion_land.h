// SPDX-License-Identifier: MIT
#pragma once

// What a chunk hides of the land behind it: the ground between four corners, solid up to some height.

#include "../planet/node.h"

typedef struct occlusion_land {
    vec3 corners[4]; // directions, of length 1, one after the other around it
    float solid;     // metres from the planet's middle: nothing can be seen through it below
} occlusion_land;

// The land of a node that is solid up to so many metres above the sea.
occlusion_land occlusion_land_of(lod_node node, double solid);
