// SPDX-License-Identifier: MIT
#pragma once

// Places worth going to: dry, green and not too high, all over the planet. Herds live there, campfires burn there, and
// whoever travels without a plan lands there. A pure function of the seed.

#include "creatures.h"

#define HOME_COUNT 24u

// Campfires around a home, and how far from it, in columns.
#define HOME_FIRES 6u
#define HOME_FIRE_RANGE 40

creature_home home_of(uint64_t seed, uint32_t number);

// A campfire: a dry column near its home, or the home's own.
creature_home home_fire(uint64_t seed, creature_home home, uint32_t number);

// Of all homes, from `first` on, one that stands in the light (or in the dark) of a sun in this direction; the best of
// them where none really does.
creature_home home_by_light(uint64_t seed, uint32_t first, vec3d sun, bool is_day);

static inline vec3d home_direction(creature_home home) {
    return sphere_direction(home.face, home.x + 0.5, home.z + 0.5);
}
