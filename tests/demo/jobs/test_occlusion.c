// SPDX-License-Identifier: MIT
// What the land hides, against lines of sight that are followed step by step.

#include "support/support.h"

#include "demo/jobs/work_occlusion.h"

#define SIDE 24
#define LANDS (SIDE * SIDE)
#define SPHERES 40

// A square of small nodes. Heights are in metres above the sea.
typedef struct scene {
    uint32_t face, level, x, y; // of its first node
    double solid[LANDS], high[LANDS];
    lod_bounds bounds[LANDS];
    occlusion_land lands[LANDS];
    uint8_t is_drawn[LANDS];
    vec3 spheres[SPHERES];
    occlusion_input input;
    float horizon[(OCCLUSION_SECTORS + 1) * OCCLUSION_RINGS];
    occlusion_outline outlines[LANDS + SPHERES];
    uint64_t words[(LANDS + SPHERES + 63) / 64];
} scene;

static scene s;

static lod_node node_at(uint32_t i) {
    return (lod_node){(uint8_t)s.face, (uint8_t)s.level, (uint8_t)(s.x + i % SIDE), (uint8_t)(s.y + i / SIDE), 0};
}

// Somewhere on the land, in nodes from its first.
static vec3d place_at(double x, double y, double height) {
    double width = node_columns(s.level);
    return sphere_position(s.face, (s.x + x) * width, (s.y + y) * width, height);
}

// Everything is in the picture.
static frustum whole_view(void) {
    frustum all;
    for (uint32_t i = 0; i < FRUSTUM_PLANE_COUNT; ++i) all.planes[i] = (plane){{1, 0, 0}, 1e6f};
    return all;
}

static void scene_make(vec3d eye) {
    for (uint32_t i = 0; i < LANDS; ++i) {
        s.bounds[i] = lod_bounds_of(node_at(i), s.solid[i] - 8, s.high[i]);
        s.lands[i] = occlusion_land_of(node_at(i), s.solid[i]);
        s.is_drawn[i] = 1;
    }
    s.input = (occlusion_input){.eye = eye,
                                .frustum = whole_view(),
                                .bounds = s.bounds,
                                .lands = s.lands,
                                .is_drawn = s.is_drawn,
                                .land_count = LANDS};
}

static void look(uint32_t first, uint32_t stride, uint64_t *words) {
    occlusion_room room = {s.horizon, s.outlines};
    occlusion_run(&s.input, first, stride, &room, words);
}

static bool is_seen(uint32_t number) { return (s.words[number / 64] >> number % 64 & 1) != 0; }

// --- lines of sight ---

// The solid height at a position; -1e9 beside the land.
static double solid_at(vec3d position) {
    sphere_place at = sphere_locate(position);
    double width = node_columns(s.level), x = at.u / width - s.x, y = at.v / width - s.y;
    if (at.face != s.face || x < 0 || y < 0 || x >= SIDE || y >= SIDE) return -1e9;
    return s.solid[(uint32_t)y * SIDE + (uint32_t)x];
}

static bool is_blocked(vec3d from, vec3d to, double step) {
    vec3d way = vec3d_sub(to, from);
    double far = vec3d_length(way);
    for (double at = 0; at < far; at += step) {
        vec3d point = vec3d_add(from, vec3d_scale(way, at / far));
        if (vec3d_length(point) < SPHERE_RADIUS + solid_at(point)) return true;
    }
    return false;
}

// Hills of some nodes, valleys, and now and then a wall.
static void heights_make(uint64_t *seed) {
    double rough = (double)(test_random(seed) % 60);
    for (uint32_t i = 0; i < LANDS; ++i) {
        double wave = (double)(test_random(seed) % 1000) / 1000;
        s.solid[i] = rough * wave * wave - 5;
        if (test_random(seed) % 16 == 0) s.solid[i] += 25;
        s.high[i] = s.solid[i] + (double)(test_random(seed) % 12);
    }
}

static double share(uint64_t *seed) { return (double)(test_random(seed) % 1001) / 1000; }

static void check_blocked(vec3d eye, vec3d point, const char *what, uint32_t number) {
    if (!is_blocked(eye, point, 1.0) && !is_blocked(eye, point, 0.01)) fail_msg("%s %u can be seen", what, number);
}

// Above the land, some of them just so.
static void spheres_make(uint64_t *seed) {
    for (uint32_t i = 0; i < SPHERES; ++i) {
        double x = share(seed) * (SIDE - 1), y = share(seed) * (SIDE - 1);
        double ground = s.high[(uint32_t)y * SIDE + (uint32_t)x];
        s.spheres[i] = vec3_of(place_at(x, y, ground + 1 + share(seed) * share(seed) * 10));
    }
    s.input.spheres = s.spheres, s.input.sphere_count = SPHERES, s.input.sphere_radius = 1.75f;
}

static uint64_t check_hidden(vec3d eye, uint64_t *seed) {
    uint64_t hidden = 0;
    for (uint32_t i = 0; i < LANDS; ++i) {
        hidden += !is_seen(i);
        for (uint32_t k = 0; k < 4 && !is_seen(i); ++k)
            check_blocked(eye, place_at(i % SIDE + share(seed), i / SIDE + share(seed), s.high[i]), "land", i);
    }
    for (uint32_t i = 0; i < SPHERES; ++i) {
        if (is_seen(LANDS + i)) continue;
        vec3d middle = {s.spheres[i].x, s.spheres[i].y, s.spheres[i].z};
        check_blocked(eye, middle, "sphere", i);
        check_blocked(eye, vec3d_scale(middle, 1 + 1.0 / SPHERE_RADIUS), "sphere", i);
    }
    return hidden;
}

TEST(what_is_hidden_cannot_be_seen) {
    uint64_t seed = test_seed(__func__), hidden = 0, rounds = test_size(60, 300, 10000);
    for (uint64_t round = 0; round < rounds; ++round) {
        s.face = (uint32_t)(test_random(&seed) % SPHERE_FACE_COUNT), s.level = (uint32_t)(test_random(&seed) % 3);
        uint32_t room = ((uint32_t)NODE_COUNT_0 >> s.level) - SIDE + 1; // at corners of the face, too
        s.x = (uint32_t)(test_random(&seed) % room), s.y = (uint32_t)(test_random(&seed) % room);
        heights_make(&seed);
        double x = SIDE / 4.0 + share(&seed) * SIDE / 2, y = SIDE / 4.0 + share(&seed) * SIDE / 2;
        uint32_t own = (uint32_t)y * SIDE + (uint32_t)x;
        vec3d eye = place_at(x, y, s.high[own] + 1 + share(&seed) * 20);
        scene_make(eye);
        spheres_make(&seed);
        look(0, 1, s.words);
        assert_true(is_seen(own));
        hidden += check_hidden(eye, &seed);
    }
    assert_true(hidden > rounds * LANDS / 20); // and much is found
}

// --- a wall ---

#define WALL_ROW 14u
#define EYE_X 12.5
#define EYE_Y 8.5

// Flat land, and a wall of 60 m across it. The eye is before it, high enough that the planet hides none of it.
static void wall_make(void) {
    s.face = 3, s.level = 0, s.x = 40, s.y = 50;
    for (uint32_t i = 0; i < LANDS; ++i) {
        s.solid[i] = i / SIDE == WALL_ROW ? 60 : 2;
        s.high[i] = s.solid[i] + 2;
    }
    scene_make(place_at(EYE_X, EYE_Y, 20));
}

TEST(a_wall_hides_what_is_behind_it) {
    wall_make();
    look(0, 1, s.words);
    for (uint32_t i = 0; i < LANDS; ++i) {
        uint32_t x = i % SIDE, y = i / SIDE;
        if (y <= WALL_ROW) assert_true(is_seen(i));
        // Two rows behind it, and not past its ends.
        if (y > WALL_ROW + 2 && x > 8 && x < 16) assert_false(is_seen(i));
    }
}

TEST(animals_are_hidden_as_the_land_is) {
    wall_make();
    for (uint32_t i = 0; i < SPHERES; ++i) {
        double x = EYE_X - 2 + i % 4, height = i % 2 == 0 ? 4 : 120;
        s.spheres[i] = vec3_of(place_at(x, i < SPHERES / 2 ? WALL_ROW - 2 : WALL_ROW + 4, height));
    }
    s.spheres[0] = vec3_of(place_at(EYE_X, EYE_Y, 19)); // where the eye is
    s.input.spheres = s.spheres, s.input.sphere_count = SPHERES, s.input.sphere_radius = 1.75f;
    look(0, 1, s.words);
    for (uint32_t i = 0; i < SPHERES; ++i)
        assert_int_equal(is_seen(LANDS + i), i < SPHERES / 2 || i % 2 == 1); // behind it only the high ones
}

// Wherever the rings around the eye begin and end.
TEST(nothing_is_hidden_by_what_is_behind_it) {
    wall_make();
    for (uint32_t step = 0; step < 400; ++step) {
        s.input.eye = place_at(EYE_X, WALL_ROW - step / 32.0, 40);
        s.spheres[0] = vec3_of(place_at(EYE_X, WALL_ROW - 2.5 / 32, 50)); // a metre before the wall
        s.input.spheres = s.spheres, s.input.sphere_count = 1, s.input.sphere_radius = 1.75f;
        look(0, 1, s.words);
        assert_true(is_seen(LANDS) && is_seen(WALL_ROW * SIDE + 12));
    }
}

TEST(what_is_not_drawn_hides_nothing) {
    wall_make();
    for (uint32_t x = 0; x < SIDE; ++x) s.is_drawn[WALL_ROW * SIDE + x] = 0;
    look(0, 1, s.words);
    for (uint32_t i = 0; i < (WALL_ROW + 3) * SIDE; ++i) assert_true(is_seen(i)); // further away the planet bends
    // And so is what is outside the picture.
    wall_make();
    s.input.frustum.planes[0].offset = -1e6f;
    look(0, 1, s.words);
    for (uint32_t i = 0; i < LANDS; ++i) assert_true(is_seen(i));
}

TEST(from_above_everything_is_seen) {
    wall_make();
    s.input.eye = place_at(EYE_X, EYE_Y, 500);
    memset(s.words, 0xff, sizeof s.words);
    look(0, 1, s.words);
    for (uint32_t i = 0; i < LANDS; ++i) assert_true(is_seen(i));
    for (uint32_t i = LANDS; i < occlusion_word_count(LANDS) * 64; ++i) assert_false(is_seen(i));
}

TEST(any_number_of_jobs_see_the_same) {
    uint64_t seed = test_seed(__func__), one[16], part[16];
    static const uint32_t STRIDES[] = {2, 3, 4, 7, 16, 512};
    uint32_t count = occlusion_word_count(LANDS);
    s.face = 1, s.level = 1, s.x = 3, s.y = 30;
    heights_make(&seed);
    scene_make(place_at(EYE_X, EYE_Y, s.high[(uint32_t)EYE_Y * SIDE + (uint32_t)EYE_X] + 2));
    look(0, 1, one);
    uint32_t hidden = LANDS;
    for (uint32_t i = 0; i < LANDS; ++i) hidden -= (uint32_t)(one[i / 64] >> i % 64 & 1);
    assert_true(hidden > LANDS / 20);
    for (uint32_t i = 0; i < 6; ++i) {
        memset(s.words, 0, sizeof s.words);
        for (uint32_t job = 0; job < STRIDES[i]; ++job) {
            look(job, STRIDES[i], part);
            occlusion_append(s.words, part, count);
        }
        assert_memory_equal(s.words, one, count * sizeof *one);
    }
}
