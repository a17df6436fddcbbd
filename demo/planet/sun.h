// SPDX-License-Identifier: MIT
#pragma once

// Day and night: where the sun stands, a pure function of the tick. It goes around the poles' axis, a little to the
// north of the equator.

#include "angle.h"
#include "vec.h"

// Ticks of a day: two minutes at 60 a second.
#define SUN_DAY_TICKS 7200

#define SUN_NORTH 0.30

// Of length 1, from the planet to the sun. The tick may have a fraction, for what is drawn between two.
static inline vec3d sun_direction(double tick) {
    double sine = 0, cosine = 0;
    angle_of(tick / SUN_DAY_TICKS, &sine, &cosine);
    vec3d towards = {cosine, SUN_NORTH, -sine};
    return vec3d_normal(towards, (vec3d){1, 0, 0});
}
