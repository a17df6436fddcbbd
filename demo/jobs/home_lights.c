// SPDX-License-Identifier: MIT
// The lights of a home.

#include "home_lights.h"

#include "nebula/random.h"

#define LIGHT_STREAM 301 // of nb_random
#define FLICKER_STREAM 302

// Fireflies are this far from their home, in columns, and up to so many metres above the ground.
#define FIREFLY_RANGE 48
#define FIREFLY_HEIGHT 4

// Metres.
#define FIRE_RADIUS 14.0f
#define FIREFLY_RADIUS 3.0f

// Ticks that a fire burns as high as it does.
#define FLICKER_TICKS 4

// It is night where less of the day is left.
#define NIGHT 0.5f

static light light_at(uint64_t seed, creature_home at, double above, float radius) {
    double y = terrain_height(seed, at.face, at.x, at.z) + 1;
    if (y < TERRAIN_SEA_Y) y = TERRAIN_SEA_Y;
    return (light){vec3_of(sphere_position(at.face, at.x + 0.5, at.z + 0.5, y + above)), radius};
}

static light firefly_of(uint64_t seed, creature_home home, uint32_t number) {
    uint64_t column = (uint64_t)home.x * SPHERE_FACE_COLUMNS + (uint64_t)home.z;
    nb_random_block block = nb_random_words(nb_random_make(seed, column, LIGHT_STREAM), number);
    int32_t x = home.x + (int32_t)(block.words[0] % (2 * FIREFLY_RANGE)) - FIREFLY_RANGE;
    int32_t z = home.z + (int32_t)(block.words[1] % (2 * FIREFLY_RANGE)) - FIREFLY_RANGE;
    sphere_cell at = sphere_fold(home.face, x, z, SPHERE_FACE_COLUMNS);
    double above = 0.5 + (double)(block.words[2] % 256) / 256 * FIREFLY_HEIGHT;
    return light_at(seed, (creature_home){at.face, at.x, at.z}, above, FIREFLY_RADIUS);
}

void home_lights_place(uint64_t seed, creature_home home, light lights[HOME_LIGHTS]) {
    for (uint32_t i = 0; i < HOME_FIRES; ++i) lights[i] = light_at(seed, home_fire(seed, home, i), 0.5, FIRE_RADIUS);
    for (uint32_t i = HOME_FIRES; i < HOME_LIGHTS; ++i) lights[i] = firefly_of(seed, home, i);
}

uint32_t home_lights_seen(const light lights[HOME_LIGHTS], const planet_eye *eye, uint64_t seed,
                          light seen[HOME_LIGHTS]) {
    const camera *c = &eye->camera;
    vec3 right = vec3_normal(vec3_cross(c->forward, c->up), (vec3){1, 0, 0}), top = vec3_cross(right, c->forward);
    nb_random random = nb_random_make(seed, eye->tick / FLICKER_TICKS, FLICKER_STREAM);
    uint32_t count = eye->daylight < NIGHT ? HOME_LIGHTS : HOME_FIRES;
    for (uint32_t i = 0; i < count; ++i) {
        vec3 line = vec3_sub(lights[i].position, c->position);
        float flicker = 0.85f + (float)(nb_random_words(random, i).words[0] % 64) / 256.0f;
        seen[i] = (light){{vec3_dot(line, right), vec3_dot(line, top), vec3_dot(line, c->forward)},
                          lights[i].radius * flicker};
    }
    return count;
}
