// SPDX-License-Identifier: MIT
#pragma once

// Where the windmill of a home stands: north-east of its middle, or else in another quarter around it, where the ground
// is dry, even, and has neither trees nor campfires. A pure function of the seed.

#include "homes.h"

typedef struct mill_site {
    vec3d ground; // metres from the middle of the planet
    vec3d up;     // of length 1, away from the middle of the planet
    vec3d facing; // of length 1, along the ground: where its blades are
} mill_site;

mill_site mill_site_of(uint64_t seed, creature_home home);
