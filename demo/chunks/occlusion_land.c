// SPDX-License-Identifier: MIT
// The land of a node.

#include "occlusion_land.h"

// Cells are flat where the planet is round: by less than this up to the fifth level, coarse ones too. What is coarser
// is too wide to hide anything.
#define FLATNESS 1.0

occlusion_land occlusion_land_of(lod_node node, double solid) {
    double width = node_columns(node.level), u = node.x * width, v = node.y * width;
    occlusion_land land = {.solid = (float)(SPHERE_RADIUS + solid - FLATNESS)};
    for (uint32_t i = 0; i < 4; ++i)
        land.corners[i] = vec3_of(sphere_direction(node.face, u + (i == 1 || i == 2 ? width : 0), v + (i / 2) * width));
    return land;
}
