// SPDX-License-Identifier: MIT
// The large shape of the land.

#include "relief.h"

#include <stddef.h>

#include "noise.h"

// Each feature draws from noise of its own.
enum { SEED_WARP = 0x10, SEED_CONTINENT = 0x100, SEED_RIDGES = 0x300, SEED_BELT = 0x400, SEED_HILLS = 0x200 };

// Cells of the noises across the planet's radius: four or five continents, chains of some hundred metres, hills of a
// hundred metres and less.
#define CONTINENT_CELLS 1.35
#define WARP_CELLS 2.9
#define WARP_REACH 0.20
#define BELT_CELLS 2.6
#define RIDGE_CELLS 8.5
#define HILL_CELLS 19.0

#define MOUNTAIN_HEIGHT 210.0

static double clamp(double value, double low, double high) { return value < low ? low : value > high ? high : value; }

// 0 up to `low`, 1 from `high` on, smooth between.
static double ramp(double value, double low, double high) {
    double t = clamp((value - low) / (high - low), 0, 1);
    return t * t * (3 - 2 * t);
}

// Deep sea, shelf, coast, plain and highland, by the continents' noise.
static double continent_height(double c) {
    static const double POINTS[][2] = {{-1, -58},  {-0.30, -50}, {-0.13, -34}, {-0.035, -9}, {-0.005, -2.5},
                                       {0.008, 2}, {0.05, 7},    {0.16, 17},   {0.32, 34},   {1, 60}};
    size_t i = 1;
    while (c > POINTS[i][0] && i + 1 < sizeof POINTS / sizeof POINTS[0]) ++i;
    double share = (c - POINTS[i - 1][0]) / (POINTS[i][0] - POINTS[i - 1][0]);
    return POINTS[i - 1][1] + (POINTS[i][1] - POINTS[i - 1][1]) * share;
}

// Coasts wind where the places that the noise is asked for are moved about.
static vec3d warped(uint64_t seed, vec3d at) {
    vec3d from = vec3d_scale(at, WARP_CELLS);
    vec3d move = {noise_3d(seed + SEED_WARP, from), noise_3d(seed + SEED_WARP + 4, from),
                  noise_3d(seed + SEED_WARP + 8, from)};
    return vec3d_add(at, vec3d_scale(move, WARP_REACH));
}

relief relief_at(uint64_t seed, vec3d direction) {
    vec3d at = warped(seed, direction);
    double c = noise_fractal_3d(seed + SEED_CONTINENT, vec3d_scale(at, CONTINENT_CELLS), 6) - 0.015;
    double hills = noise_fractal_3d(seed + SEED_HILLS, vec3d_scale(direction, HILL_CELLS), 4);
    double inland = ramp(c, 0.005, 0.11);
    relief result = {.height = continent_height(c), .mountain = 0};
    // Plains are nearly flat, highlands roll; the floor of the sea is calm.
    result.height += hills * (c < 0 ? 5 + 5 * ramp(-c, 0, 0.1) : 5 + 17 * ramp(c, 0.02, 0.22));
    // Mountains stand in belts, and not in the sea.
    double belt = inland > 0 ? ramp(noise_fractal_3d(seed + SEED_BELT, vec3d_scale(at, BELT_CELLS), 2), 0.0, 0.28) : 0;
    if (belt > 0) {
        double ridges = noise_ridges_3d(seed + SEED_RIDGES, vec3d_scale(at, RIDGE_CELLS), 5);
        result.mountain = ridges * belt * inland * MOUNTAIN_HEIGHT;
        result.height += result.mountain;
    }
    result.height = clamp(result.height, RELIEF_MIN, RELIEF_MAX);
    return result;
}
