// SPDX-License-Identifier: MIT
// Where animals look: to who is near and to the explorer that they see, as far as a neck turns, and to who is
// near never in a jump.

#include "support/support.h"

#include "demo/game/homes.h"
#include "demo/jobs/work_looks.h"

#define SEED UINT64_C(1)
#define ANIMALS 300

// Animals and what is asked about them.
static uint8_t face[ANIMALS];
static int32_t x[ANIMALS], z[ANIMALS];
static pose_body bodies[ANIMALS];
static uint32_t rows[ANIMALS];
static query_grid grid;
static query queries[ANIMALS + LOOK_SIGHTS_MAX];
static query_answer answers[ANIMALS + LOOK_SIGHTS_MAX];

// Nowhere near any animal.
static const vec3d FAR_AWAY = {0, 9000, 0};

static double real(uint64_t *random, double low, double high) {
    return low + (high - low) * (double)(test_random(random) >> 40) / 16777216.0;
}

static vec3d wide(vec3 a) { return (vec3d){a.x, a.y, a.z}; }

// An animal at a place in columns, beyond the edge of its face if need be, that looks along `way`.
static void animal_put(uint32_t row, uint32_t on, double u, double v, vec3d way) {
    sphere_cell at =
        sphere_fold(on, (int32_t)floor(u * TERRAIN_ONE), (int32_t)floor(v * TERRAIN_ONE), TERRAIN_FACE_ONES);
    face[row] = (uint8_t)at.face, x[row] = at.x, z[row] = at.z;
    double own_u = (double)at.x / TERRAIN_ONE, own_v = (double)at.z / TERRAIN_ONE;
    double height = terrain_height(SEED, at.face, at.x / TERRAIN_ONE, at.z / TERRAIN_ONE) + 1;
    vec3d place = sphere_position(at.face, own_u, own_v, height), up = vec3d_normal(place, way);
    vec3d ahead = vec3d_sub(way, vec3d_scale(up, vec3d_dot(way, up)));
    bodies[row] = (pose_body){.feet = vec3_of(place), .up = vec3_of(up), .forward = vec3_of(vec3d_normal(ahead, up))};
}

// The looks of animals first to first + count - 1 of so many; returns how many questions there were.
static uint32_t looks_of(uint32_t animals, vec3d eye, uint32_t first, uint32_t count, vec3 *looks) {
    looks_input input = {bodies, face, x, z, eye};
    query_grid_build(&grid, rows, x, z, animals);
    uint32_t asked = looks_ask(&input, first, count, queries);
    queries_input questions = {SEED, queries, face, x, z, &grid};
    queries_output told = {.answers = answers};
    queries_run(&questions, 0, asked, &told);
    looks_output out = {.looks = looks};
    looks_run(&input, first, count, queries, &told, &out);
    assert_int_equal(out.look_count, count);
    return asked;
}

// From the body's own directions to the planet's.
static vec3 on_planet(const pose_body *body, vec3 look) {
    vec3 right = vec3_cross(body->forward, body->up);
    return vec3_add(vec3_add(vec3_scale(body->forward, look.x), vec3_scale(body->up, look.y)),
                    vec3_scale(right, look.z));
}

static void assert_ahead(vec3 look) {
    assert_true(look.x > 0.99999f && fabsf(look.y) < 1e-3f && fabsf(look.z) < 1e-3f);
}

static void assert_neck_holds(vec3 look) {
    const float slack = 1e-5f;
    assert_true(fabsf(vec3_length(look) - 1) < slack);
    assert_true(fabsf(look.y) <= LOOK_RISE_MAX + slack);
    assert_true(look.x > 0 && fabsf(look.z) <= (LOOK_SIDE_MAX + slack) * sqrtf(look.x * look.x + look.z * look.z));
}

// --- pull and neck ---

static pose_body any_body(uint64_t *random) {
    vec3d up = vec3d_normal((vec3d){real(random, -1, 1), real(random, -1, 1), real(random, -1, 1)}, (vec3d){0, 1, 0});
    vec3d any = {real(random, -1, 1), real(random, -1, 1), real(random, -1, 1)};
    vec3d ahead = vec3d_normal(vec3d_cross(up, any), sphere_axis(0, 0));
    return (pose_body){.up = vec3_of(up), .forward = vec3_of(ahead)};
}

TEST(necks_turn_as_far_as_they_can_and_no_further) {
    uint64_t random = test_seed("necks_turn");
    float most_side = 0, most_rise = 0;
    for (uint32_t i = 0; i < 20000; ++i) {
        pose_body body = any_body(&random);
        // From nothing at all to more than a whole herd; every eighth along one of the body's own directions.
        float strength = powf(10, (float)real(&random, -12, 4));
        vec3 own = {(float)real(&random, -1, 1), (float)real(&random, -1, 1), (float)real(&random, -1, 1)};
        if (i % 8 == 0) own = (vec3){i % 3 == 0 ? -1 : 0, i % 3 == 1 ? 1 : 0, i % 3 == 2 ? -1 : 0};
        vec3 look = look_of(&body, vec3_scale(on_planet(&body, own), strength));
        assert_neck_holds(look);
        if (strength < 1e-6f) assert_ahead(look);
        most_side = fmaxf(most_side, fabsf(look.z));
        most_rise = fmaxf(most_rise, fabsf(look.y));
    }
    assert_true(most_side > 0.93f && most_rise > 0.42f);
    pose_body body = any_body(&random);
    vec3 look = look_of(&body, (vec3){0, 0, 0});
    assert_true(look.x >= 1 && look.x <= 1 && vec3_dot(look, look) <= 1);
}

TEST(a_strong_pull_is_looked_at) {
    uint64_t random = test_seed("a_strong_pull");
    for (uint32_t i = 0; i < 5000; ++i) {
        pose_body body = any_body(&random);
        double side, ahead, angle = real(&random, -1.2, 1.2), rise = real(&random, -0.4, 0.4);
        side = sin(angle), ahead = cos(angle);
        vec3 own = vec3_normal((vec3){(float)ahead, (float)rise, (float)side}, (vec3){0, 0, 0});
        vec3 strong = look_of(&body, vec3_scale(on_planet(&body, own), 20)), weak, behind;
        assert_true(vec3_dot(strong, own) > 0.999f);
        weak = look_of(&body, vec3_scale(on_planet(&body, own), 0.1f));
        assert_true(weak.x >= strong.x - 0.05f && fabsf(weak.z) <= fabsf(strong.z) + 1e-3f);
        behind = look_of(&body, vec3_scale(body.forward, -20));
        assert_ahead(behind);
    }
}

// --- who is near ---

TEST(alone_an_animal_looks_straight_ahead) {
    vec3 look;
    creature_home home = home_of(SEED, 1);
    animal_put(0, home.face, home.x, home.z, sphere_axis(home.face, 0));
    assert_int_equal(looks_of(1, FAR_AWAY, 0, 1, &look), 1);
    assert_ahead(look);
    // Nobody within reach, and one in the same place: neither is anywhere to look at.
    for (uint32_t i = 0; i < 2; ++i) {
        animal_put(1, home.face, home.x, home.z + (i == 0 ? QUERY_PULL_RADIUS : 0), sphere_axis(home.face, 0));
        looks_of(2, FAR_AWAY, 0, 1, &look);
        assert_ahead(look);
    }
}

// Away from the middle of an edge columns are askew, so that it is told by them only about where the other is.
TEST(one_over_the_edge_of_a_face_is_looked_at) {
    uint64_t random = test_seed("one_over_the_edge");
    uint32_t across = 0;
    double sum = 0;
    for (uint32_t i = 0; i < 4800; ++i) {
        uint32_t edge = i % 24;
        double side = real(&random, -4, 4), along = real(&random, 1200, 2800);
        if (edge % 2 == 1) side += SPHERE_FACE_COLUMNS;
        double u = edge % 4 < 2 ? side : along, v = edge % 4 < 2 ? along : side;
        animal_put(1, edge / 4, u + real(&random, -3, 3), v + real(&random, -3, 3), (vec3d){1, 0, 0});
        animal_put(0, edge / 4, u, v, (vec3d){1, 0, 0});
        // Turned so that the other is ahead of it, more or less.
        vec3d line = vec3d_sub(wide(bodies[1].feet), wide(bodies[0].feet)), up = wide(bodies[0].up);
        line = vec3d_sub(line, vec3d_scale(up, vec3d_dot(line, up)));
        if (vec3d_length(line) < 1 || vec3d_length(line) > 4) continue;
        vec3d askew = vec3d_scale(vec3d_cross(line, up), real(&random, -0.8, 0.8));
        animal_put(0, edge / 4, u, v, vec3d_add(line, askew));
        vec3 look;
        looks_of(2, FAR_AWAY, 0, 1, &look);
        assert_neck_holds(look);
        double cosine = vec3d_dot(wide(on_planet(&bodies[0], look)), vec3d_normal(line, up));
        if (cosine < 0.85) fail_msg("edge %u: the cosine is %g", edge, cosine);
        if (face[0] == face[1]) continue;
        ++across;
        sum += cosine;
    }
    print_message("%u over an edge, the mean cosine is %g\n", across, sum / across);
    assert_true(across > 500 && sum > 0.98 * across);
}

// One walks past others, through them and over the edge of the face, by a millimetre at a time: every head turns by a
// little, though the nearest one changes.
TEST(heads_never_jump) {
    enum { HERD = 8, STEPS = 12000 };
    uint64_t random = test_seed("heads_never_jump"), walks = test_size(12, 12, 200);
    uint32_t changes = 0, crossings = 0;
    float most = 0, widest = 0;
    for (uint64_t walk = 0; walk < walks; ++walk) {
        double u = walk % 2 == 0 ? SPHERE_FACE_COLUMNS : 1500, v = 1800;
        for (uint32_t i = 0; i < HERD; ++i)
            animal_put(i, 4, u + real(&random, -4, 4), v + real(&random, -4, 4), sphere_axis(4, i % 2));
        animal_put(HERD - 1, 4, u, v, sphere_axis(4, 0)); // which it comes through
        double step_u = real(&random, -1, 1), step_v = real(&random, 0.1, 1);
        double scale = 0.001 / sqrt(step_u * step_u + step_v * step_v);
        vec3 before[HERD], now[HERD];
        uint32_t nearest = QUERY_NONE, on = 0;
        for (int32_t step = 0; step < STEPS; ++step) {
            double way = (step - STEPS / 2) * scale;
            animal_put(0, 4, u + step_u * way, v + step_v * way, sphere_axis(4, 1));
            looks_of(HERD, FAR_AWAY, 1, HERD - 1, now);
            for (uint32_t i = 0; i + 1 < HERD && step > 0; ++i) {
                most = fmaxf(most, vec3_length(vec3_sub(now[i], before[i])));
                widest = fmaxf(widest, fabsf(now[i].z));
                assert_neck_holds(now[i]);
            }
            changes += step > 0 && nearest != answers[HERD - 2].nearest;
            crossings += step > 0 && on != face[0];
            nearest = answers[HERD - 2].nearest, on = face[0];
            memcpy(before, now, sizeof now);
        }
    }
    print_message("at most %g a millimetre; %u changes, %u crossings\n", (double)most, changes, crossings);
    assert_true(most < 0.015f);
    assert_true(widest > 0.7f && changes > walks && crossings > walks / 4);
}

// --- the explorer ---

TEST(the_explorer_is_looked_at_where_it_is_seen) {
    uint64_t random = test_seed("the_explorer");
    uint32_t seen = 0, hidden = 0;
    for (uint32_t i = 0; i < 400; ++i) {
        creature_home home = home_of(SEED, i % HOME_COUNT);
        double u = home.x + real(&random, -90, 90), v = home.z + real(&random, -90, 90),
               angle = real(&random, -1.1, 1.1);
        animal_put(0, home.face, u, v, sphere_axis(home.face, 0));
        vec3 right = vec3_cross(bodies[0].forward, bodies[0].up), look;
        vec3d ahead = vec3d_scale(wide(bodies[0].forward), cos(angle)), aside = vec3d_scale(wide(right), sin(angle));
        vec3d head = vec3d_add(wide(bodies[0].feet), vec3d_scale(wide(bodies[0].up), LOOK_EYE_HEIGHT));
        vec3d way = vec3d_add(ahead, vec3d_add(aside, vec3d_scale(wide(bodies[0].up), real(&random, -0.3, 0.3))));
        vec3d line = vec3d_scale(vec3d_normal(way, way), real(&random, 2, 10)), eye = vec3d_add(head, line);
        assert_int_equal(looks_of(1, eye, 0, 1, &look), 2);
        bool is_seen = terrain_sees(SEED, head, eye, QUERY_SIGHT_STEPS);
        if (is_seen) assert_true(vec3d_dot(wide(on_planet(&bodies[0], look)), vec3d_normal(line, line)) > 0.99);
        if (!is_seen) assert_ahead(look);
        seen += is_seen, hidden += !is_seen;
    }
    print_message("%u see the explorer, %u do not\n", seen, hidden);
    assert_true(seen > 100 && hidden > 20);
}

TEST(who_comes_into_reach_is_noticed_little_by_little) {
    creature_home home = home_of(SEED, 2);
    vec3 before = {1, 0, 0}, look = {1, 0, 0};
    animal_put(0, home.face, home.x, home.z, sphere_axis(home.face, 0));
    vec3 right = vec3_cross(bodies[0].forward, bodies[0].up);
    // From high above one sees over all hills.
    vec3d way = vec3d_add(vec3d_scale(wide(right), 0.28), vec3d_scale(wide(bodies[0].up), 0.96));
    vec3d head = vec3d_add(wide(bodies[0].feet), vec3d_scale(wide(bodies[0].up), LOOK_EYE_HEIGHT));
    for (int32_t millimetres = 26000; millimetres > 10000; millimetres -= 5) {
        uint32_t asked = looks_of(1, vec3d_add(head, vec3d_scale(way, millimetres / 1000.0)), 0, 1, &look);
        if (millimetres < 24999 || millimetres > 25001) assert_int_equal(asked, millimetres < 25000 ? 2 : 1);
        assert_true(vec3_length(vec3_sub(look, before)) < 0.01f);
        before = look;
    }
    assert_true(look.z > 0.5f && look.y > 0.4f);
}

TEST(looks_are_the_same_for_any_split) {
    static vec3 whole[ANIMALS], parts[ANIMALS];
    uint64_t random = test_seed("any_split");
    creature_home home = home_of(SEED, 3);
    for (uint32_t i = 0; i < ANIMALS; ++i)
        animal_put(i, home.face, home.x + real(&random, -15, 15), home.z + real(&random, -15, 15), (vec3d){1, 1, 1});
    vec3d eye = vec3d_add(wide(bodies[0].feet), vec3d_scale(wide(bodies[0].up), 3));
    // More are near than may ask.
    assert_int_equal(looks_of(ANIMALS, eye, 0, ANIMALS, whole), ANIMALS + LOOK_SIGHTS_MAX);
    for (uint32_t round = 0; round < 20; ++round) {
        uint32_t first = 0, asked = 0;
        while (first < ANIMALS) {
            uint32_t count = (uint32_t)(test_random(&random) % 120);
            if (count > ANIMALS - first) count = ANIMALS - first;
            asked += looks_of(ANIMALS, eye, first, count, parts + first);
            first += count;
        }
        assert_int_equal(asked, ANIMALS + LOOK_SIGHTS_MAX);
        assert_memory_equal(parts, whole, sizeof whole);
    }
}
