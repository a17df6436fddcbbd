// SPDX-License-Identifier: MIT
// Places worth going to.

#include "homes.h"

#include "nebula/random.h"

#define HOME_STREAM 320 // of nb_random
#define FIRE_STREAM 321

// Tries to find one: a thirtieth of the planet is what is looked for.
#define HOME_TRIES 256u

// A meadow: so many columns away the ground is not higher or lower than this.
#define MEADOW_COLUMNS 28
#define MEADOW_RISE 6

#define HEIGHT_LOW 4
#define HEIGHT_HIGH 45

// How high the sun stands over a bright home, as the sine of its angle, and how far below a dark one.
#define BRIGHT 0.6
#define DARK (-0.4)

static creature_home column_of(const uint32_t *words) {
    return (creature_home){words[0] % SPHERE_FACE_COUNT, (int32_t)(words[1] % SPHERE_FACE_COLUMNS),
                           (int32_t)(words[2] % SPHERE_FACE_COLUMNS)};
}

static bool is_pleasant(const terrain_column *c) {
    bool is_green = c->biome == BIOME_GRASS || c->biome == BIOME_SAVANNA;
    return is_green && c->height >= HEIGHT_LOW && c->height <= HEIGHT_HIGH;
}

static bool is_meadow(uint64_t seed, creature_home home, int32_t height) {
    for (int32_t i = 0; i < 4; ++i) {
        int32_t x = i == 0 ? MEADOW_COLUMNS : i == 1 ? -MEADOW_COLUMNS : 0;
        int32_t z = i == 2 ? MEADOW_COLUMNS : i == 3 ? -MEADOW_COLUMNS : 0;
        sphere_cell at = sphere_fold(home.face, home.x + x, home.z + z, SPHERE_FACE_COLUMNS);
        int32_t rise = terrain_height(seed, at.face, at.x, at.z) - height;
        if (rise > MEADOW_RISE || rise < -MEADOW_RISE) return false;
    }
    return true;
}

creature_home home_of(uint64_t seed, uint32_t number) {
    creature_home home = {0, 0, 0};
    for (uint32_t i = 0; i < HOME_TRIES; ++i) {
        nb_random_block block = nb_random_words(nb_random_make(seed, i, HOME_STREAM), number);
        home = column_of(block.words);
        terrain_column column = terrain_ground_at(seed, home.face, home.x + 0.5, home.z + 0.5);
        if (is_pleasant(&column) && is_meadow(seed, home, column.height)) break;
    }
    return home;
}

creature_home home_fire(uint64_t seed, creature_home home, uint32_t number) {
    nb_random_block block =
        nb_random_words(nb_random_make(seed, (uint64_t)home.x * 4096 + (uint64_t)home.z, FIRE_STREAM), number);
    int32_t x = home.x + (int32_t)(block.words[0] % (2 * HOME_FIRE_RANGE)) - HOME_FIRE_RANGE;
    int32_t z = home.z + (int32_t)(block.words[1] % (2 * HOME_FIRE_RANGE)) - HOME_FIRE_RANGE;
    sphere_cell at = sphere_fold(home.face, x, z, SPHERE_FACE_COLUMNS);
    bool is_wet = terrain_is_wet(terrain_height(seed, at.face, at.x, at.z));
    return is_wet ? home : (creature_home){at.face, at.x, at.z};
}

creature_home home_by_light(uint64_t seed, uint32_t first, vec3d sun, bool is_day) {
    creature_home best = home_of(seed, first % HOME_COUNT);
    double best_light = -2;
    for (uint32_t i = 0; i < HOME_COUNT; ++i) {
        creature_home home = home_of(seed, (first + i) % HOME_COUNT);
        double light = vec3d_dot(home_direction(home), sun), value = is_day ? light : -light;
        if (value > best_light) best = home, best_light = value;
        if (is_day ? light > BRIGHT : light < DARK) break;
    }
    return best;
}
