// SPDX-License-Identifier: MIT
#pragma once

// The lights of a home: its campfires first, then fireflies over the grass, which come at night. They follow from the
// seed, so they are placed once and never change; what changes is how a camera sees them.

#include "../game/planet.h"
#include "work_lights.h"

#define HOME_LIGHTS 96u

// On the planet: the first HOME_FIRES are fires, in the colour of embers, the others fireflies.
void home_lights_place(uint64_t seed, creature_home home, light lights[HOME_LIGHTS]);

// As a camera sees them; by day the fires alone, and they flicker with the ticks. Returns how many there are.
uint32_t home_lights_seen(const light lights[HOME_LIGHTS], const planet_eye *eye, uint64_t seed,
                          light seen[HOME_LIGHTS]);
