// SPDX-License-Identifier: MIT
// The demo's sphere: there and back over every edge, neighbours that are neighbours, and columns of one size.

#include "support/support.h"

#include "demo/planet/sphere.h"

#define SIZE SPHERE_FACE_COLUMNS

static double real(uint64_t *random, double low, double high) {
    return low + (high - low) * (double)(test_random(random) >> 11) / 9007199254740992.0;
}

static vec3d middle_of(sphere_cell cell, int32_t size) {
    double scale = (double)SIZE / size;
    return sphere_direction(cell.face, (cell.x + 0.5) * scale, (cell.z + 0.5) * scale);
}

static double distance(vec3d a, vec3d b) { return vec3d_length(vec3d_sub(a, b)) * SPHERE_RADIUS; }

TEST(axes_are_right_handed_on_every_face) {
    for (uint32_t face = 0; face < SPHERE_FACE_COUNT; ++face) {
        vec3d out = vec3d_cross(sphere_axis(face, 1), sphere_axis(face, 0));
        assert_true(distance(out, sphere_axis(face, 2)) < 1e-9);
        vec3d middle = sphere_direction(face, SIZE / 2, SIZE / 2);
        assert_true(distance(middle, sphere_axis(face, 2)) < 1e-9);
    }
}

TEST(places_come_back_from_their_positions) {
    uint64_t random = test_seed("places_come_back");
    for (uint32_t i = 0; i < 20000; ++i) {
        uint32_t face = i % SPHERE_FACE_COUNT;
        double u = real(&random, 0.001, SIZE - 0.001), v = real(&random, 0.001, SIZE - 0.001),
               h = real(&random, -60, 9000);
        vec3d position = sphere_position(face, u, v, h);
        sphere_place place = sphere_locate(position);
        assert_int_equal(place.face, face);
        assert_true(fabs(place.u - u) < 1e-8 && fabs(place.v - v) < 1e-8 && fabs(place.h - h) < 1e-8);
        assert_true(fabs(vec3d_length(position) - SPHERE_RADIUS - h) < 1e-9);
    }
    sphere_place none = sphere_locate((vec3d){0, 0, 0});
    assert_true(none.face < SPHERE_FACE_COUNT && none.u >= 0 && none.u <= SIZE);
}

// Made once and written down.
TEST(positions_have_the_same_bits_everywhere) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < 4096; ++i) {
        vec3d p = sphere_position(i % 6, i * 0.99, (4095 - i) * 0.37, i * 0.1);
        sphere_place back = sphere_locate(p);
        double numbers[5] = {p.x, p.y, p.z, back.u, back.v};
        for (uint32_t k = 0; k < 5; ++k) {
            uint64_t bits;
            memcpy(&bits, &numbers[k], sizeof bits);
            sum = (sum ^ bits) * 0x9E3779B97F4A7C15u;
            sum ^= sum >> 29;
        }
    }
    assert_int_equal(sum, 0xef0adc28cbecbeccu);
}

TEST(columns_are_nearly_the_same_size_everywhere) {
    double low = 9, high = 0;
    for (uint32_t i = 0; i <= 64; ++i) {
        double u = i * (SIZE - 1) / 64.0;
        // Along the middle of a face, where the other coordinate does nothing.
        double width = distance(sphere_direction(0, u, SIZE / 2), sphere_direction(0, u + 1, SIZE / 2));
        low = fmin(low, width), high = fmax(high, width);
    }
    assert_true(low > 0.985 && high < 1.015);
}

// The square beside each edge, at several places along it: `side` 0 to 3 is -x, +x, -z, +z.
static sphere_cell beside(uint32_t face, uint32_t side, int32_t along, int32_t deep, int32_t size) {
    int32_t at = side % 2 == 0 ? -1 - deep : size + deep;
    return side < 2 ? sphere_fold(face, at, along, size) : sphere_fold(face, along, at, size);
}

TEST(over_all_24_edges_there_and_back) {
    for (uint32_t edge = 0; edge < 24; ++edge) {
        uint32_t face = edge / 4, side = edge % 4;
        for (int32_t along = 0; along < SIZE; along += 13) {
            int32_t deep = along % 97;
            sphere_cell there = beside(face, side, along, deep, SIZE);
            assert_true(there.face != face && there.turns < 4);
            assert_true(there.x >= 0 && there.x < SIZE && there.z >= 0 && there.z < SIZE);
            // A step on, and as many back again, with the heading turned as it was told.
            int32_t step_x = side == 0 ? -1 : side == 1, step_z = side == 2 ? -1 : side == 3;
            sphere_turn(there.turns, &step_x, &step_z);
            int32_t back = deep + 1;
            sphere_cell home = sphere_fold(there.face, there.x - back * step_x, there.z - back * step_z, SIZE);
            assert_int_equal(home.face, face);
            assert_int_equal(home.x, side == 0 ? 0 : side == 1 ? SIZE - 1 : along);
            assert_int_equal(home.z, side == 2 ? 0 : side == 3 ? SIZE - 1 : along);
            assert_int_equal((there.turns + home.turns) % 4, 0);
        }
    }
}

TEST(columns_across_an_edge_are_neighbours_in_space) {
    for (uint32_t edge = 0; edge < 24; ++edge) {
        uint32_t face = edge / 4, side = edge % 4;
        for (int32_t along = 0; along < SIZE; along += 61) {
            int32_t x = side == 0 ? 0 : side == 1 ? SIZE - 1 : along, z = side == 2 ? 0 : side == 3 ? SIZE - 1 : along;
            vec3d own = middle_of((sphere_cell){face, x, z, 0}, SIZE);
            vec3d next = middle_of(beside(face, side, along, 0, SIZE), SIZE);
            assert_true(distance(own, next) < 1.05);
            // Two steps are two metres: it goes on straight.
            vec3d after = middle_of(beside(face, side, along, 1, SIZE), SIZE);
            assert_true(distance(own, after) > 1.2 && distance(own, after) < 2.1);
        }
    }
}

TEST(headings_go_on_across_an_edge) {
    for (uint32_t edge = 0; edge < 24; ++edge) {
        uint32_t face = edge / 4, side = edge % 4;
        for (int32_t along = 100; along < SIZE - 100; along += 611) {
            // Along the edge: {1, 0} or {0, 1} on this face, turned on the other, lead the same way.
            sphere_cell there = beside(face, side, along, 0, SIZE), on = beside(face, side, along + 1, 0, SIZE);
            int32_t x = side >= 2, z = side < 2;
            sphere_turn(there.turns, &x, &z);
            assert_int_equal(on.x, there.x + x);
            assert_int_equal(on.z, there.z + z);
        }
    }
}

TEST(around_a_corner_there_are_three_columns) {
    static const int32_t AT[4][2] = {{-1, -1}, {SIZE, -1}, {-1, SIZE}, {SIZE, SIZE}};
    for (uint32_t face = 0; face < SPHERE_FACE_COUNT; ++face) {
        for (uint32_t i = 0; i < 4; ++i) {
            sphere_cell cell = sphere_fold(face, AT[i][0], AT[i][1], SIZE);
            assert_true(cell.x >= 0 && cell.x < SIZE && cell.z >= 0 && cell.z < SIZE && cell.face != face);
            vec3d corner = sphere_direction(face, AT[i][0] < 0 ? 0 : SIZE, AT[i][1] < 0 ? 0 : SIZE);
            assert_true(distance(middle_of(cell, SIZE), corner) < 1.0);
        }
    }
}

// Chunks of any level, and places of 1/4096 column, fold as columns do.
TEST(coarser_and_finer_squares_fold_alike) {
    uint64_t random = test_seed("coarser_and_finer");
    for (uint32_t i = 0; i < 20000; ++i) {
        uint32_t face = i % 6, shift = 1 + i % 12;
        int32_t fine = 1 << 24, coarse = fine >> shift;
        int32_t x = (int32_t)(test_random(&random) % (uint64_t)fine),
                z = (int32_t)(test_random(&random) % (uint64_t)fine);
        x = i % 2 == 0 ? -1 - x / 8 : fine + x / 8;
        sphere_cell small = sphere_fold(face, x, z, fine);
        int32_t big_x = x < 0 ? -1 - ((-1 - x) >> shift) : x >> shift;
        sphere_cell large = sphere_fold(face, big_x, z >> shift, coarse);
        assert_int_equal(small.face, large.face);
        assert_int_equal(small.x >> shift, large.x);
        assert_int_equal(small.z >> shift, large.z);
        assert_int_equal(small.turns, large.turns);
    }
}

TEST(what_is_inside_stays) {
    for (int32_t i = 0; i < 6 * 64; ++i) {
        sphere_cell cell = sphere_fold((uint32_t)i / 64, i % 8, i / 8 % 8, 8);
        assert_true(cell.face == (uint32_t)i / 64 && cell.x == i % 8 && cell.z == i / 8 % 8 && cell.turns == 0);
    }
}
