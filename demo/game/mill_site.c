// SPDX-License-Identifier: MIT
// A good place for a windmill.

#include "mill_site.h"

#include "../planet/angle.h"
#include "nebula/random.h"

#define SITE_STREAM 330 // of nb_random

// Metres from the home's middle: whoever lands there and looks north sees it at the right, with all its blades.
#define NORTH_LEAST 24
#define EAST_LEAST 13
#define STEP 4
#define STEPS 4

// The ground is asked so many metres to each side: the foot is 2 wide, a blade reaches farther.
#define REACH 4

// What a site is worth less by, in metres that its ground goes up and down.
#define PER_TREE 4
#define PER_FIRE 16
#define PER_WATER 64

// From here on another quarter is looked at.
#define BAD 16

// Metres that a campfire stays away.
#define FIRE_DISTANCE 7.0

// How far from straight at its home a mill looks, at most, in turns: winds are not the same everywhere.
#define FACING_TURNS 0.09

// What a place on the ground has around it.
typedef struct compass {
    vec3d up, north, east;
} compass;

static compass compass_at(vec3d up) {
    vec3d pole = {0, 1, 0}, north = vec3d_sub(pole, vec3d_scale(up, vec3d_dot(pole, up)));
    compass c = {.up = up, .north = vec3d_normal(north, (vec3d){1, 0, 0})};
    c.east = vec3d_cross(c.north, up);
    return c;
}

static vec3d beside(const compass *c, double north, double east) {
    vec3d way = vec3d_add(vec3d_scale(c->north, north), vec3d_scale(c->east, east));
    return vec3d_normal(vec3d_add(vec3d_scale(c->up, SPHERE_RADIUS), way), c->up);
}

static terrain_column column_towards(uint64_t seed, vec3d direction) {
    sphere_place at = sphere_locate(vec3d_scale(direction, SPHERE_RADIUS));
    return terrain_column_at(seed, at.face, sphere_column(at.u), sphere_column(at.v));
}

// 0 is perfect.
static int32_t badness(uint64_t seed, creature_home home, vec3d direction) {
    compass c = compass_at(direction);
    int32_t low = INT32_MAX, high = INT32_MIN, bad = 0;
    for (int32_t i = 0; i < 9; ++i) {
        terrain_column column = column_towards(seed, beside(&c, (i / 3 - 1) * REACH, (i % 3 - 1) * REACH));
        low = column.height < low ? column.height : low;
        high = column.height > high ? column.height : high;
        bad += (column.tree_size != 0 ? PER_TREE : 0) + (terrain_is_wet(column.height) ? PER_WATER : 0);
    }
    for (uint32_t i = 0; i < HOME_FIRES; ++i) {
        vec3d line = vec3d_sub(home_direction(home_fire(seed, home, i)), direction);
        if (vec3d_length(line) * SPHERE_RADIUS < FIRE_DISTANCE) bad += PER_FIRE;
    }
    return bad + high - low;
}

// The best of one quarter around the home: north-east, south-east, north-west, south-west.
static vec3d best_of_quarter(uint64_t seed, creature_home home, uint32_t quarter, int32_t *least) {
    compass c = compass_at(home_direction(home));
    vec3d best = c.up;
    if (quarter & 1) c.north = vec3d_scale(c.north, -1);
    if (quarter & 2) c.east = vec3d_scale(c.east, -1);
    *least = INT32_MAX;
    for (int32_t i = 0; i<STEPS * STEPS && * least> 0; ++i) {
        vec3d direction = beside(&c, NORTH_LEAST + i % STEPS * STEP, EAST_LEAST + i / STEPS * STEP);
        int32_t bad = badness(seed, home, direction);
        if (bad < *least) best = direction, *least = bad;
    }
    return best;
}

static vec3d best_direction(uint64_t seed, creature_home home) {
    int32_t least = INT32_MAX, own;
    vec3d best = {0, 1, 0};
    for (uint32_t quarter = 0; quarter < 4 && least >= BAD; ++quarter) {
        vec3d direction = best_of_quarter(seed, home, quarter, &own);
        if (own < least) best = direction, least = own;
    }
    return best;
}

mill_site mill_site_of(uint64_t seed, creature_home home) {
    mill_site site = {.up = best_direction(seed, home)};
    double height = column_towards(seed, site.up).height + 1;
    site.ground = vec3d_scale(site.up, SPHERE_RADIUS + height);
    vec3d back = vec3d_sub(home_direction(home), site.up);
    back = vec3d_sub(back, vec3d_scale(site.up, vec3d_dot(back, site.up)));
    back = vec3d_normal(back, compass_at(site.up).north);
    uint64_t column = (uint64_t)home.x * SPHERE_FACE_COLUMNS + (uint64_t)home.z;
    double share = nb_random_double(nb_random_make(seed, column, SITE_STREAM), home.face) * 2 - 1, sine, cosine;
    angle_of(share * FACING_TURNS, &sine, &cosine);
    vec3d side = vec3d_cross(site.up, back);
    site.facing = vec3d_add(vec3d_scale(back, cosine), vec3d_scale(side, sine));
    return site;
}
