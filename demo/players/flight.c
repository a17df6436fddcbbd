// SPDX-License-Identifier: MIT
// A journey without anybody's hands.

#include "flight.h"

#include "../game/homes.h"
#include "../planet/angle.h"
#include "../planet/sun.h"

// An orbit begins this far south of where it goes down, as a share of a full turn, and comes there at this pace.
#define ORBIT_TURNS 0.08
#define ORBIT_PACE 86

// On the way down the head comes up, from the planet to the horizon: 300 ticks of it.
#define DESCENT_LOOK 47

// From here the camps of a home lie before one: metres to the south as a share of a full turn, and metres up. Then the
// head goes down a little.
#define CAMP_TURNS 0.0022
#define CAMP_HEIGHT 9
#define CAMP_LOOK (-3)

// A place so much to the south, around the planet.
static creature_home south_of(creature_home home, double turns) {
    explorer e = {.up = home_direction(home)};
    double sine = 0, cosine = 0;
    vec3d pole = {0, 1, 0}, north = vec3d_sub(pole, vec3d_scale(e.up, e.up.y));
    angle_of(turns, &sine, &cosine);
    north = vec3d_normal(north, (vec3d){1, 0, 0});
    sphere_place at = sphere_locate(vec3d_sub(vec3d_scale(e.up, cosine), vec3d_scale(north, sine)));
    return (creature_home){at.face, sphere_column(at.u), sphere_column(at.v)};
}

// Part 0 and 1 are by daylight, part 2 by night.
static creature_home home_at(uint64_t seed, uint64_t tick, uint32_t part) {
    // When one has come down there: in the middle of the part.
    static const uint32_t LATER[3] = {(FLIGHT_GROUND + FLIGHT_TELEPORT) / 2, (FLIGHT_NIGHT - FLIGHT_TELEPORT) / 2,
                                      (FLIGHT_TICKS - FLIGHT_NIGHT) / 2};
    uint64_t round = tick / FLIGHT_TICKS;
    vec3d sun = sun_direction((double)(tick + LATER[part]));
    return home_by_light(seed, (uint32_t)(round * 5 % HOME_COUNT) + part * 3, sun, part < 2);
}

uint32_t flight_commands(uint64_t seed, uint32_t player, uint64_t tick, nb_input_event events[FLIGHT_EVENTS_MAX]) {
    switch (tick % FLIGHT_TICKS) {
    case 0:
        events[0] = planet_move(player, 0, EXPLORER_FLIES);
        events[1] = planet_teleport(player, south_of(home_at(seed, tick, 0), ORBIT_TURNS), FLIGHT_ORBIT);
        events[2] = planet_steer(player, 0, 0, ORBIT_PACE);
        return 3;
    case FLIGHT_DESCENT:
        events[0] = planet_move(player, -PLANET_PACE_MAX, EXPLORER_FLIES);
        events[1] = planet_steer(player, 12, DESCENT_LOOK, 0);
        return 2;
    case FLIGHT_GROUND:
        events[0] = planet_move(player, 0, EXPLORER_WALKS);
        events[1] = planet_steer(player, 24, 0, PLANET_PACE_MAX / 2);
        return 2;
    case FLIGHT_HILL:
        events[0] = planet_move(player, PLANET_PACE_MAX / 2, EXPLORER_FLIES);
        events[1] = planet_steer(player, 16, CAMP_LOOK, PLANET_PACE_MAX / 4);
        return 2;
    case FLIGHT_TELEPORT:
        events[0] = planet_move(player, 0, EXPLORER_FLIES);
        events[1] = planet_teleport(player, home_at(seed, tick, 1), 0);
        events[2] = planet_steer(player, 48, 0, PLANET_PACE_MAX);
        return 3;
    case FLIGHT_NIGHT:
        events[0] = planet_move(player, 0, EXPLORER_FLIES);
        events[1] = planet_teleport(player, south_of(home_at(seed, tick, 2), CAMP_TURNS), CAMP_HEIGHT);
        events[2] = planet_steer(player, 0, CAMP_LOOK, PLANET_PACE_MAX / 8);
        return 3;
    default: return 0;
    }
}
