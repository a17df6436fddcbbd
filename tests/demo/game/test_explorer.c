// SPDX-License-Identifier: MIT
// Who travels the planet: steering, flight and walk, the scripted journey, and the sun above it.

#include "support/support.h"

#include "demo/game/explorer.h"
#include "demo/game/homes.h"
#include "demo/planet/angle.h"
#include "demo/planet/sun.h"
#include "demo/players/flight.h"

#define SEED 1

static explorer explorer_at(creature_home at, explorer_mode mode, int32_t altitude) {
    explorer e = {.mode = mode};
    explorer_put(&e, SEED, at, altitude);
    return e;
}

static void assert_upright(const explorer *e) {
    assert_true(fabs(vec3d_length(e->up) - 1) < 1e-12 && fabs(vec3d_length(e->forward) - 1) < 1e-12);
    assert_true(fabs(vec3d_dot(e->up, e->forward)) < 1e-12);
}

TEST(sines_are_right_to_millionths) {
    for (int32_t i = -3000; i <= 3000; ++i) {
        double turns = i / 700.0, sine = 9, cosine = 9;
        angle_of(turns, &sine, &cosine);
        assert_true(fabs(sine - sin(turns * 6.283185307179586)) < 5e-6);
        assert_true(fabs(cosine - cos(turns * 6.283185307179586)) < 5e-6);
        assert_true(fabs(sine * sine + cosine * cosine - 1) < 1e-14);
    }
}

TEST(the_sun_goes_around_once_a_day) {
    vec3d morning = sun_direction(0), noon = sun_direction(SUN_DAY_TICKS / 2.0), next = sun_direction(SUN_DAY_TICKS);
    assert_true(vec3d_length(vec3d_sub(morning, next)) < 1e-12);
    assert_true(vec3d_dot(morning, noon) < 0);
    for (uint32_t tick = 0; tick < SUN_DAY_TICKS; tick += 100) {
        vec3d here = sun_direction(tick), then = sun_direction(tick + 1);
        assert_true(fabs(vec3d_length(here) - 1) < 1e-12);
        assert_true(vec3d_length(vec3d_sub(here, then)) < 0.001);
    }
}

// Straight ahead one comes back to where one was, over all edges on the way.
TEST(a_way_around_the_planet_ends_where_it_began) {
    explorer e = explorer_at((creature_home){0, 1000, 2222}, EXPLORER_FLIES, 1500);
    vec3d start = e.up, forward = e.forward;
    uint32_t faces = 0;
    e.pace = PLANET_PACE_MAX;
    double travelled = 0, way = 0;
    for (uint32_t tick = 0; tick < 5000 && way < 6.2; ++tick) {
        vec3d before = e.up;
        explorer_step(&e, SEED);
        assert_upright(&e);
        travelled = vec3d_length(vec3d_sub(e.up, before));
        way += travelled;
        faces |= 1u << sphere_locate(e.up).face;
    }
    // One step short of the start, or one beyond it.
    assert_true(way > 6 && vec3d_length(vec3d_sub(e.up, start)) < 0.1 + travelled);
    assert_true(vec3d_dot(e.forward, forward) > 0.98);
    uint32_t count = 0;
    for (; faces != 0; faces &= faces - 1) ++count;
    assert_true(count >= 4);
}

TEST(turns_add_up_to_a_full_one) {
    explorer e = explorer_at((creature_home){2, 100, 4000}, EXPLORER_FLIES, 0);
    vec3d ahead = e.forward, right = vec3d_cross(e.forward, e.up);
    nb_input_event command = planet_steer(0, PLANET_TURN_MAX, 0, 0);
    assert_false(explorer_command(&e, SEED, &command));
    for (uint32_t tick = 1; tick <= 65536 / PLANET_TURN_MAX; ++tick) {
        explorer_step(&e, SEED);
        if (tick == 65536 / PLANET_TURN_MAX / 4) assert_true(vec3d_dot(e.forward, right) > 0.999);
    }
    assert_true(vec3d_dot(e.forward, ahead) > 0.9999);
}

TEST(who_walks_stays_on_the_ground) {
    for (uint32_t home = 0; home < 6; ++home) {
        explorer e = explorer_at(home_of(SEED, home), EXPLORER_WALKS, 0);
        e.pace = PLANET_PACE_MAX;
        e.turn = 20;
        for (uint32_t tick = 0; tick < 600; ++tick) {
            vec3d before = explorer_position(&e);
            explorer_step(&e, SEED);
            double above = e.altitude - e.ground;
            assert_true(above > -6 && above < 12); // eased where the ground jumps
            assert_true(vec3d_length(vec3d_sub(explorer_position(&e), before)) < 3);
            int32_t ground = terrain_height_towards(SEED, e.up) + 1;
            assert_true(e.ground >= 0 && (ground < 0 || fabs(e.ground - ground) < 1e-12));
        }
        assert_true(fabs(e.altitude - e.ground - 1.8) < 4);
    }
}

TEST(who_flies_stays_above_the_ground_and_below_the_moon) {
    explorer e = explorer_at((creature_home){0, 2048, 2048}, EXPLORER_FLIES, 300);
    nb_input_event down = planet_move(0, -PLANET_PACE_MAX, EXPLORER_FLIES), up = planet_move(0, 9999, EXPLORER_FLIES);
    e.pace = PLANET_PACE_MAX;
    explorer_command(&e, SEED, &down);
    for (uint32_t tick = 0; tick < 2000; ++tick) {
        explorer_step(&e, SEED);
        if (tick > 600) assert_true(e.altitude - e.ground > -8 && e.altitude - e.ground < 30);
    }
    explorer_command(&e, SEED, &up);
    assert_int_equal(e.climb, PLANET_PACE_MAX);
    for (uint32_t tick = 0; tick < 2000; ++tick) explorer_step(&e, SEED);
    assert_true(e.altitude <= PLANET_ALTITUDE_MAX && e.altitude > PLANET_ALTITUDE_MAX * 0.99);
}

TEST(commands_beyond_the_limits_are_cut_or_ignored) {
    explorer e = explorer_at((creature_home){1, 5, 5}, EXPLORER_FLIES, 0), before;
    nb_input_event wild = planet_steer(0, INT32_MAX, INT32_MIN, INT32_MIN);
    assert_false(explorer_command(&e, SEED, &wild));
    assert_true(e.turn == PLANET_TURN_MAX && e.look == -PLANET_TURN_MAX && e.pace == -PLANET_PACE_MAX);
    for (uint32_t i = 0; i < 1000; ++i) explorer_step(&e, SEED);
    assert_int_equal(e.pitch, -PLANET_PITCH_MAX);
    assert_upright(&e);
    wild = planet_move(0, INT32_MIN, (explorer_mode)77);
    explorer_command(&e, SEED, &wild);
    assert_int_equal(e.mode, EXPLORER_MODE_COUNT - 1);
    before = e;
    nb_input_event none = planet_teleport(0, (creature_home){6, 0, 0}, 0),
                   other = {.kind = NB_INPUT_COMMAND, .code = 99};
    assert_false(explorer_command(&e, SEED, &none));
    none.payload.i32[1] = -1;
    assert_false(explorer_command(&e, SEED, &none));
    assert_false(explorer_command(&e, SEED, &other));
    assert_memory_equal(&e, &before, sizeof e);
    // Any other words lead somewhere.
    none.payload.i32[1] = 5, none.payload.i32[2] = INT32_MIN, none.payload.i32[3] = INT32_MAX;
    assert_true(explorer_command(&e, SEED, &none));
    assert_upright(&e);
}

TEST(a_teleport_leads_to_its_column) {
    for (uint32_t i = 0; i < 60; ++i) {
        creature_home at = {i % 6, (int32_t)(i * 691 % 4096), (int32_t)(i * 1237 % 4096)};
        explorer e = {.mode = EXPLORER_FLIES};
        nb_input_event command = planet_teleport(0, at, i % 2 == 0 ? 0 : 3000);
        assert_true(explorer_command(&e, SEED, &command));
        sphere_place place = sphere_locate(explorer_position(&e));
        assert_true(place.face == at.face && sphere_column(place.u) == at.x && sphere_column(place.v) == at.z);
        assert_true(fabs(e.altitude - e.ground - (i % 2 == 0 ? 40 : 3000)) < 1e-9);
        assert_upright(&e);
        if (i % 2 == 1) assert_true(vec3d_dot(explorer_gaze(&e), e.up) < -0.9); // looks at the planet
    }
}

TEST(homes_are_dry_green_and_all_over_the_planet) {
    uint32_t faces = 0;
    for (uint32_t i = 0; i < HOME_COUNT; ++i) {
        creature_home home = home_of(SEED, i);
        terrain_column column = terrain_column_at(SEED, home.face, home.x, home.z);
        assert_false(terrain_is_wet(column.height));
        assert_true(column.biome == BIOME_GRASS || column.biome == BIOME_SAVANNA);
        faces |= 1u << home.face;
        for (uint32_t fire = 0; fire < HOME_FIRES; ++fire) {
            creature_home at = home_fire(SEED, home, fire);
            assert_false(terrain_is_wet(terrain_height(SEED, at.face, at.x, at.z)));
            vec3d gap = vec3d_sub(home_direction(at), home_direction(home));
            assert_true(vec3d_length(gap) * SPHERE_RADIUS < 1.5 * HOME_FIRE_RANGE);
        }
    }
    assert_true((faces & (faces - 1)) != 0);
}

// Orbit, descent, ground, teleport and night, each round anew; by the tick alone.
TEST(the_flight_goes_from_orbit_to_the_ground_and_into_the_night) {
    explorer e = {0};
    uint32_t journeys = 0;
    nb_input_event events[FLIGHT_EVENTS_MAX], again[FLIGHT_EVENTS_MAX];
    for (uint64_t tick = 0; tick < 3 * FLIGHT_TICKS; ++tick) {
        uint32_t count = flight_commands(SEED, 0, tick, events), part = (uint32_t)(tick % FLIGHT_TICKS);
        assert_in_range(count, 0, FLIGHT_EVENTS_MAX);
        assert_int_equal(flight_commands(SEED, 0, tick, again), count);
        if (count > 0) assert_memory_equal(events, again, count * sizeof events[0]);
        for (uint32_t i = 0; i < count; ++i) journeys += explorer_command(&e, SEED, &events[i]);
        explorer_step(&e, SEED);
        double above = e.altitude - e.ground, light = vec3d_dot(e.up, sun_direction((double)tick));
        if (part < FLIGHT_DESCENT) assert_true(above > 4000);
        if (part == FLIGHT_GROUND - 1) assert_true(above < 30 && !terrain_is_wet(terrain_height_towards(SEED, e.up)));
        if (part == FLIGHT_HILL - 1) assert_true(above < 5);
        if (part == FLIGHT_TELEPORT - 1) assert_true(above > 5 && above < 40);
        if (part == FLIGHT_GROUND || part == FLIGHT_TELEPORT) assert_true(light > 0.3);
        if (part >= FLIGHT_NIGHT) assert_true(light < -0.1);
    }
    assert_int_equal(journeys, 9);
}
