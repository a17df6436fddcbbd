// SPDX-License-Identifier: MIT
#pragma once

// The large shape of the land: continents and oceans, mountain chains, hills. A pure function of the seed and a
// direction from the middle of the planet, so that it has no seams.

#include <stdint.h>

#include "vec.h"

typedef struct relief {
    double height;   // metres above the sea
    double mountain; // metres of it that belong to a mountain chain
} relief;

// Heights stay between these.
#define RELIEF_MIN (-60)
#define RELIEF_MAX 180

// `direction` is of length 1.
relief relief_at(uint64_t seed, vec3d direction);
