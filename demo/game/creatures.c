// SPDX-License-Identifier: MIT
// How animals move.

#include "creatures.h"

#include "../planet/parabola_sine.h"
#include "nebula/random.h"

// 2.8 voxels a second at 60 ticks: a quick walk.
#define SPEED 192

// What it climbs, or jumps down, in voxels.
#define CLIMB_MAX 2

// Grass grows between these heights.
#define GRASS_MIN 2
#define GRASS_MAX 60

// Chances of one in 2^n a tick: grazing twice a second, a birth within seconds of having the energy, and a death or
// journey every minute or two.
#define GRAZE_BITS 5
#define BIRTH_BITS 8
#define DEATH_BITS 13
#define TELEPORT_BITS 13

// On grass it gains half a point a tick: a life of two minutes has two young, so a herd grows where there is grass.
#define GRAZE_ENERGY 48
#define BIRTH_ENERGY 3000

// Columns a journey takes it at most in each direction.
#define TELEPORT_RANGE 128

// Tries to find dry land; a coast has half of it.
#define SPAWN_TRIES 32

// What the functions below change: one row by value.
typedef struct creature {
    uint32_t id, face;
    int32_t x, y, z, speed_x, speed_z, energy;
    uint16_t heading;
    uint8_t is_teleported, decision;
} creature;

static creature row_read(const creature_columns *c, uint32_t row) {
    return (creature){.id = c->id[row],
                      .face = c->face[row],
                      .x = c->x[row],
                      .y = c->y[row],
                      .z = c->z[row],
                      .speed_x = c->speed_x[row],
                      .speed_z = c->speed_z[row],
                      .energy = c->energy[row],
                      .heading = c->heading[row]};
}

// All but the id: a tick leaves that column as it is.
static void row_write(const creature_columns *c, uint32_t row, const creature *from) {
    c->face[row] = (uint8_t)from->face;
    c->x[row] = from->x;
    c->y[row] = from->y;
    c->z[row] = from->z;
    c->speed_x[row] = from->speed_x;
    c->speed_z[row] = from->speed_z;
    c->energy[row] = from->energy;
    c->heading[row] = from->heading;
    c->is_teleported[row] = from->is_teleported;
    c->decision[row] = from->decision;
}

// A place, over the edge of its face if need be.
static sphere_cell place_at(uint32_t face, int32_t x, int32_t z) { return sphere_fold(face, x, z, TERRAIN_FACE_ONES); }

static int32_t ground_at(uint64_t seed, sphere_cell at) {
    return terrain_height(seed, at.face, terrain_voxel_of(at.x), terrain_voxel_of(at.z));
}

static bool is_chance(uint32_t bits, uint32_t shift) { return (bits & ((1u << shift) - 1)) == 0; }

// -range to range - 1 voxels, from 16 bits.
static int32_t offset_of(uint32_t bits, uint32_t range) {
    return (int32_t)((uint64_t)(bits & 0xffff) * (2 * range) * TERRAIN_ONE / 65536) - (int32_t)range * TERRAIN_ONE;
}

// What it was heading for turns with the face.
static void put(creature *c, sphere_cell at, int32_t ground) {
    c->face = at.face;
    c->x = at.x;
    c->z = at.z;
    c->y = (ground + 1) * TERRAIN_ONE;
    c->heading = (uint16_t)(c->heading + at.turns * 16384);
    sphere_turn(at.turns, &c->speed_x, &c->speed_z);
}

static bool is_same_column(const creature *c, sphere_cell at) {
    return at.face == c->face && terrain_voxel_of(at.x) == terrain_voxel_of(c->x) &&
           terrain_voxel_of(at.z) == terrain_voxel_of(c->z);
}

static void walk(uint64_t seed, const uint32_t *words, creature *c) {
    c->heading = (uint16_t)(c->heading + (words[0] & 0x7ff) - 0x400);
    c->speed_x += (parabola_sine(c->heading + 16384u) * SPEED / 32768 - c->speed_x) / 4;
    c->speed_z += (parabola_sine(c->heading) * SPEED / 32768 - c->speed_z) / 4;
    sphere_cell at = place_at(c->face, c->x + c->speed_x, c->z + c->speed_z);
    int32_t here = c->y / TERRAIN_ONE - 1, ground = here;
    // It crosses into another column once in twenty ticks; the land is asked only then.
    if (!is_same_column(c, at)) ground = ground_at(seed, at);
    int32_t climb = ground - here;
    // Who stands in water, because the journey or birth found nothing better, may walk on in it.
    bool is_blocked = climb > CLIMB_MAX || climb < -CLIMB_MAX || (terrain_is_wet(ground) && !terrain_is_wet(here));
    if (!is_blocked) {
        put(c, at, ground);
        return;
    }
    c->heading = (uint16_t)(c->heading + 0x6000 + (words[0] >> 18));
    c->speed_x = c->speed_z = 0;
}

static void journey(uint64_t seed, const uint32_t *words, creature *c) {
    sphere_cell at =
        place_at(c->face, c->x + offset_of(words[3], TELEPORT_RANGE), c->z + offset_of(words[3] >> 16, TELEPORT_RANGE));
    int32_t ground = ground_at(seed, at);
    if (terrain_is_wet(ground)) return;
    put(c, at, ground);
    c->speed_x = c->speed_z = 0;
    c->is_teleported = 1;
}

static void live(const uint32_t *words, creature *c) {
    int32_t ground = c->y / TERRAIN_ONE - 1;
    bool is_grass = ground >= GRASS_MIN && ground <= GRASS_MAX;
    c->energy -= 1;
    if (is_grass && is_chance(words[1], GRAZE_BITS)) c->energy += GRAZE_ENERGY;
    if (c->energy > CREATURE_ENERGY_MAX) c->energy = CREATURE_ENERGY_MAX;
    if (c->energy <= 0 || is_chance(words[2], DEATH_BITS)) {
        c->decision = CREATURE_DEATH;
    } else if (c->energy >= BIRTH_ENERGY && is_chance(words[1] >> GRAZE_BITS, BIRTH_BITS)) {
        c->decision = CREATURE_BIRTH;
        c->energy /= 2;
    }
}

void creatures_step(uint64_t seed, uint64_t tick, const creature_columns *in, uint32_t first, uint32_t count,
                    const creature_columns *out) {
    nb_random random = nb_random_make(seed, tick, CREATURE_STREAM_STEP);
    for (uint32_t row = first; row < first + count; ++row) {
        creature c = row_read(in, row);
        nb_random_block block = nb_random_words(random, c.id);
        if (is_chance(block.words[2] >> DEATH_BITS, TELEPORT_BITS)) {
            journey(seed, block.words, &c);
        } else {
            walk(seed, block.words, &c);
        }
        live(block.words, &c);
        row_write(out, row, &c);
    }
}

void creature_spawn(uint64_t seed, uint64_t tick, uint32_t id, creature_home home, uint32_t range, uint32_t row,
                    const creature_columns *out) {
    // Each try is a stream of its own, so that the index can be the animal.
    nb_random_block block = {{0}};
    int32_t home_x = home.x * TERRAIN_ONE, home_z = home.z * TERRAIN_ONE, ground = 0;
    sphere_cell at = {home.face, home_x, home_z, 0};
    for (uint32_t i = 0; i <= SPAWN_TRIES; ++i) {
        bool is_last = i == SPAWN_TRIES;
        block = nb_random_words(nb_random_make(seed, tick, CREATURE_STREAM_SPAWN + i), id);
        at = place_at(home.face, home_x + (is_last ? 0 : offset_of(block.words[0], range)),
                      home_z + (is_last ? 0 : offset_of(block.words[0] >> 16, range)));
        ground = ground_at(seed, at);
        if (!terrain_is_wet(ground)) break;
    }
    creature c = {.heading = (uint16_t)block.words[1], .energy = CREATURE_ENERGY_START, .is_teleported = 1};
    c.energy += (int32_t)(block.words[2] % 512);
    put(&c, at, ground);
    out->id[row] = id;
    row_write(out, row, &c);
}

void creature_spawn_young(uint32_t id, uint32_t parent, uint32_t row, const creature_columns *columns) {
    creature c = row_read(columns, parent);
    columns->id[row] = id;
    c.heading = (uint16_t)(c.heading + 0x8000);
    c.speed_x = c.speed_z = 0;
    c.is_teleported = 1;
    row_write(columns, row, &c);
}

uint32_t creatures_collect(const uint8_t *decisions, uint32_t count, creature_decision wanted, uint32_t *rows,
                           uint32_t row_count_max) {
    uint32_t found = 0;
    for (uint32_t row = 0; row < count; ++row) {
        if (decisions[row] != wanted) continue;
        if (found < row_count_max) rows[found] = row;
        ++found;
    }
    return found;
}
