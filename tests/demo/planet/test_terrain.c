// SPDX-License-Identifier: MIT
// The demo's land: the same bits everywhere, smooth, without seams, and with everything on it that a picture needs.

#include "support/support.h"

#include "demo/planet/noise.h"
#include "demo/planet/palette.h"
#include "demo/planet/terrain.h"

#define SEED 1

static double real(uint64_t *random, double low, double high) {
    return low + (high - low) * (double)(test_random(random) >> 11) / 9007199254740992.0;
}

static vec3d any_place(uint64_t *random, double reach) {
    double x = real(random, -reach, reach), y = real(random, -reach, reach), z = real(random, -reach, reach);
    return (vec3d){x, y, z};
}

static uint64_t bits_of(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

// Independent of byte order: the numbers themselves are mixed.
static uint64_t fold(uint64_t sum, int64_t value) {
    sum = (sum ^ (uint64_t)value) * 0x9E3779B97F4A7C15u;
    return sum ^ sum >> 29;
}

// Made once and written down: a compiler, optimisation or CPU that differs would be noticed here.
TEST(noise_has_the_same_bits_everywhere) {
    uint64_t sums[3] = {0};
    for (int32_t i = 0; i < 4096; ++i) {
        vec3d at = {i * 0.37 - 700, i * -0.011 + 3, i * 1.9 - 4000};
        sums[0] = fold(sums[0], (int64_t)bits_of(noise_3d(SEED, at)));
        sums[1] = fold(sums[1], (int64_t)bits_of(noise_fractal_3d(SEED, at, 5)));
        sums[2] = fold(sums[2], (int64_t)bits_of(noise_ridges_3d(SEED, at, 4)));
    }
    assert_int_equal(sums[0], 0x1232015cca66cac6u);
    assert_int_equal(sums[1], 0xe2283a26b86f2956u);
    assert_int_equal(sums[2], 0x81681f9d55dc26bcu);
}

TEST(terrain_has_the_same_bits_everywhere) {
    uint64_t heights = 0, voxels = 0;
    for (int32_t i = 0; i < 4096; ++i) {
        int32_t x = i % 64 * 61 + 5, z = i / 64 * 63 + 7;
        terrain_column column = terrain_column_at(SEED, (uint32_t)i % 6, x, z);
        heights = fold(heights, column.height);
        assert_int_equal(column.height, terrain_height(SEED, (uint32_t)i % 6, x, z));
        for (int32_t y = column.height - 20; y < column.height + 8; ++y)
            voxels = fold(voxels, terrain_material_at(&column, y));
    }
    assert_int_equal(heights, 0xf78961ce5a756882u);
    assert_int_equal(voxels, 0x9bfa7588fd779447u);
}

TEST(noise_stays_within_one_and_uses_most_of_it) {
    uint64_t random = test_seed("noise_stays_within_one");
    double low = 0, high = 0, low_ridge = 1, high_ridge = 0;
    for (uint32_t i = 0; i < 100000; ++i) {
        uint64_t seed = test_random(&random);
        vec3d at = any_place(&random, 1000);
        double value = noise_3d(seed, at), ridge = noise_ridges_3d(seed, at, 3),
               fractal = noise_fractal_3d(seed, at, 3);
        assert_true(value >= -1 && value <= 1 && fractal >= -1 && fractal <= 1 && ridge >= 0 && ridge <= 1);
        low = fmin(low, value), high = fmax(high, value);
        low_ridge = fmin(low_ridge, ridge), high_ridge = fmax(high_ridge, ridge);
    }
    assert_true(low < -0.75 && high > 0.75 && low_ridge < 0.05 && high_ridge > 0.8);
}

// The steepest slope of the smoothed weight is 15/8 a cell, over at most twice the range: a step of 1/256 changes the
// value by less than 1/32, also across a cell's border and at 0.
TEST(noise_is_smooth_across_cells_and_zero) {
    for (uint32_t axis = 0; axis < 3; ++axis) {
        for (int32_t i = -3000; i < 3000; ++i) {
            vec3d here = {0.3, 0.7, 0.1}, next = here;
            double at = i / 256.0, then = (i + 1) / 256.0;
            if (axis == 0) here.x = at, next.x = then;
            if (axis == 1) here.y = at, next.y = then;
            if (axis == 2) here.z = at, next.z = then;
            assert_true(fabs(noise_3d(SEED, here) - noise_3d(SEED, next)) < 1.0 / 32);
        }
    }
}

static int32_t gap(int32_t a, int32_t b) { return a < b ? b - a : a - b; }

TEST(another_seed_is_another_land) {
    uint32_t same = 0;
    for (int32_t i = 0; i < 1000; ++i) same += terrain_height(1, 2, i * 3, i * 4) == terrain_height(2, 2, i * 3, i * 4);
    assert_in_range(same, 0, 120);
}

TEST(heights_stay_inside_the_world_and_change_gently) {
    uint64_t random = test_seed("heights_stay_inside");
    uint32_t steep = 0;
    for (uint32_t i = 0; i < 20000; ++i) {
        uint64_t place = test_random(&random);
        int32_t x = (int32_t)(place % 4095), z = (int32_t)(place >> 32 & 4095);
        int32_t height = terrain_height(SEED, i % 6, x, z);
        assert_true(height > TERRAIN_Y_MIN && height < TERRAIN_Y_END - TERRAIN_TREE_MAX);
        steep += gap(height, terrain_height(SEED, i % 6, x + 1, z)) > 2;
    }
    assert_in_range(steep, 0, 600); // 3 % are cliffs
}

// Across all 24 edges the land goes on: a step over one is no larger than a step beside it.
TEST(the_land_has_no_seams) {
    double over = 0, beside = 0;
    uint32_t kinds = 0;
    for (uint32_t edge = 0; edge < 24; ++edge) {
        for (int32_t along = 0; along < 4096; along += 16) {
            int32_t at[3] = {edge % 2 == 0 ? 1 : 4094, edge % 2 == 0 ? 0 : 4095, edge % 2 == 0 ? -1 : 4096};
            terrain_column columns[3];
            for (uint32_t i = 0; i < 3; ++i) {
                sphere_cell cell = edge % 4 < 2 ? sphere_fold(edge / 4, at[i], along, 4096)
                                                : sphere_fold(edge / 4, along, at[i], 4096);
                columns[i] = terrain_ground_at(SEED, cell.face, cell.x + 0.5, cell.z + 0.5);
            }
            beside += gap(columns[0].height, columns[1].height);
            over += gap(columns[1].height, columns[2].height);
            kinds += columns[1].biome != columns[2].biome;
        }
    }
    print_message("over edges %g, beside them %g, other kinds of land %u\n", over, beside, kinds);
    assert_true(over < beside * 1.2 + 50 && kinds < 24 * 256 / 20);
}

TEST(every_material_and_biome_is_somewhere_and_land_and_sea_share_the_planet) {
    uint32_t counts[TERRAIN_MATERIAL_COUNT] = {0}, kinds[BIOME_COUNT] = {0}, wet = 0, places = 0;
    for (int32_t i = 0; i < 6 * 80 * 80; ++i, ++places) {
        terrain_column column = terrain_column_at(SEED, (uint32_t)i / 6400, i % 80 * 51 + 9, i / 80 % 80 * 51 + 9);
        wet += terrain_is_wet(column.height);
        ++kinds[column.biome];
        for (int32_t y = column.height - 12; y < column.height + TERRAIN_TREE_MAX; ++y)
            ++counts[terrain_material_at(&column, y)];
        ++counts[terrain_material_at(&column, TERRAIN_SEA_Y - 1)];
        ++counts[terrain_material_at(&column, TERRAIN_Y_MIN)];
    }
    for (uint32_t m = 0; m < TERRAIN_MATERIAL_COUNT; ++m) assert_true(counts[m] > 0);
    for (uint32_t b = 0; b < BIOME_COUNT; ++b) assert_true(kinds[b] > places / 400);
    assert_in_range(wet, places * 4 / 10, places * 8 / 10);
}

// Ice at the poles, none at the equator, and deserts in between.
TEST(climate_follows_the_latitude) {
    uint32_t frozen[2] = {0}, deserts = 0;
    for (int32_t i = 0; i < 2000; ++i) {
        terrain_column pole = terrain_ground_at(SEED, 2 + (uint32_t)i % 2, 1900 + i % 300, 1900 + i / 7);
        terrain_column equator = terrain_ground_at(SEED, (uint32_t)i % 2, i * 2, 2000 + i % 100);
        frozen[0] += pole.is_frozen, frozen[1] += equator.is_frozen && equator.height < 60;
        deserts += terrain_ground_at(SEED, (uint32_t)i % 2, i * 2, 2900 + i % 300).biome == BIOME_DESERT;
    }
    assert_true(frozen[0] > 1900 && frozen[1] == 0 && deserts > 20);
}

TEST(above_and_below_the_world_nothing_changes) {
    terrain_column column = terrain_column_at(SEED, 1, 5, 5);
    assert_int_equal(terrain_material_at(&column, TERRAIN_Y_MIN - 1), TERRAIN_BASALT);
    assert_int_equal(terrain_material_at(&column, TERRAIN_Y_END), TERRAIN_AIR);
    for (int32_t x = 0; x < 4096; x += 13) {
        terrain_column next = terrain_column_at(SEED, 3, x, 9);
        assert_int_equal(terrain_material_at(&next, TERRAIN_Y_MIN), TERRAIN_BASALT);
        assert_int_equal(terrain_material_at(&next, TERRAIN_Y_END - 1), TERRAIN_AIR);
    }
}

TEST(water_lies_on_ground_and_ground_is_whole) {
    uint32_t water = 0, ice = 0;
    for (int32_t i = 0; i < 30000; ++i) {
        terrain_column column = terrain_column_at(SEED, (uint32_t)i % 6, i * 17 % 4096, i / 17 * 2 % 4096);
        bool is_wet = terrain_is_wet(column.height);
        for (int32_t y = TERRAIN_Y_MIN; y <= column.height; y += 3)
            assert_false(terrain_is_clear((uint8_t)terrain_material_at(&column, y)));
        terrain_material top = terrain_material_at(&column, TERRAIN_SEA_Y - 1);
        if (is_wet) assert_int_equal(top, column.is_frozen ? TERRAIN_ICE : TERRAIN_WATER);
        water += top == TERRAIN_WATER, ice += top == TERRAIN_ICE;
    }
    assert_true(water > 1000 && ice > 100);
}

// Each trunk stands on its ground, and its leaves are whole: none are cut off at the border of a square or node.
TEST(trees_are_whole) {
    uint32_t trees = 0;
    for (int32_t cell = 0; cell < 1000; ++cell) {
        int32_t x0 = cell % 32 * 128, z0 = cell / 32 * 128;
        uint32_t trunks = 0, columns = 0;
        for (int32_t i = 0; i < 64; ++i) {
            terrain_column column = terrain_column_at(SEED, 0, x0 + i % 8, z0 + i / 8);
            trunks += column.tree_size > 0 && column.tree_steps == 0;
            columns += column.tree_size > 0;
            if (column.tree_size > 0 && column.tree_steps == 0) assert_int_equal(column.tree_height, column.height);
            int32_t top = column.tree_height + TERRAIN_TREE_MAX;
            if (column.tree_size > 0 && top > TERRAIN_SEA_Y)
                assert_int_equal(terrain_material_at(&column, top), TERRAIN_AIR);
        }
        assert_true((trunks == 0 && columns == 0) || (trunks == 1 && columns == 25));
        trees += trunks;
    }
    assert_in_range(trees, 30, 900);
}

TEST(sight_ends_at_a_hill_and_at_the_horizon_and_nowhere_else) {
    uint32_t seen = 0, hidden = 0;
    for (int32_t i = 0; i < 400; ++i) {
        int32_t x = i * 9 + 40, z = i * 7 % 4000 + 40;
        uint32_t face = (uint32_t)i % 6;
        vec3d from = sphere_position(face, x + 0.5, z + 0.5, terrain_height(SEED, face, x, z) + 3);
        vec3d to = sphere_position(face, x + 60.5, z + 0.5, terrain_height(SEED, face, x + 60, z) + 3);
        vec3d span = vec3d_sub(to, from);
        uint32_t steps = (uint32_t)vec3d_length(span);
        // A point for each metre on the way.
        bool is_open = true;
        for (uint32_t step = 1; step < steps; ++step) {
            sphere_place at = sphere_locate(vec3d_add(from, vec3d_scale(span, (double)step / steps)));
            relief land = relief_at(SEED, sphere_direction(at.face, at.u, at.v));
            is_open = is_open && at.h >= floor(land.height) + 1;
        }
        bool is_seen = terrain_sees(SEED, from, to, 1000);
        assert_int_equal(is_seen, is_open);
        seen += is_seen;
        hidden += !is_seen;
        assert_true(terrain_sees(SEED, sphere_position(face, x, z, 250), sphere_position(face, x + 60, z, 250), 64));
        assert_true(terrain_sees(SEED, from, from, 64));
        assert_false(terrain_sees(SEED, from, sphere_position((face + 1) % 6, x, z, 200), 64));
    }
    assert_true(seen > 20 && hidden > 20);
}

TEST(every_material_has_a_look) {
    for (uint32_t m = 0; m < TERRAIN_MATERIAL_COUNT; ++m) {
        const palette_entry *entry = palette_of(m);
        for (uint32_t i = 0; i < 3; ++i) assert_true(entry->colour[i] > 0 && entry->colour[i] <= 1);
        assert_true((entry->opacity >= 1) == !terrain_is_clear((uint8_t)m));
        assert_true(entry->roughness > 0 && entry->roughness <= 1);
    }
    assert_ptr_equal(palette_of(TERRAIN_MATERIAL_COUNT), palette_of(TERRAIN_AIR));
}
