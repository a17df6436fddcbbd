// SPDX-License-Identifier: MIT
// link: -lm
// The demo's land: the same bits everywhere, smooth, without seams, and with everything on it that a picture needs.

#include "support.h"

#include "demo/noise.h"
#include "demo/terrain.h"

#define SEED 1

// Independent of byte order: the numbers themselves are mixed.
static uint64_t fold(uint64_t sum, int64_t value) {
    sum = (sum ^ (uint64_t)value) * 0x9E3779B97F4A7C15u;
    return sum ^ sum >> 29;
}

// Made once and written down: a compiler, optimisation or CPU that differs would be noticed here.
static void noise_has_the_same_bits_everywhere(void **state) {
    (void)state;
    uint64_t sums[3] = {0};
    for (int32_t i = 0; i < 4096; ++i) {
        int32_t x = i * 7919 - 16000000, y = i * 31 - 3000, z = i * -6131 + 11;
        sums[0] = fold(sums[0], noise_2d(SEED, x, z, (uint32_t)i % 17));
        sums[1] = fold(sums[1], noise_fractal_2d(SEED, x, z, 10, 5));
        sums[2] = fold(sums[2], noise_3d(SEED, x, y, z, (uint32_t)i % 17));
    }
    assert_int_equal(sums[0], 0xea8980a309391835u);
    assert_int_equal(sums[1], 0x70c3eb806d0c6063u);
    assert_int_equal(sums[2], 0x9bd5972c164f0d67u);
}

static void terrain_has_the_same_bits_everywhere(void **state) {
    (void)state;
    uint64_t heights = 0, voxels = 0;
    for (int32_t i = 0; i < 4096; ++i) {
        int32_t x = i % 64 * 37 - 1000, z = i / 64 * 41 - 1300;
        terrain_column column = terrain_column_at(SEED, x, z);
        heights = fold(heights, column.height);
        for (int32_t y = column.height - 20; y < column.height + 8; ++y)
            voxels = fold(voxels, terrain_material_at(SEED, &column, x, y, z));
    }
    assert_int_equal(heights, 0x3045133139e79ddeu);
    assert_int_equal(voxels, 0x788591bbcab5ad70u);
}

static void noise_stays_within_one_and_uses_most_of_it(void **state) {
    (void)state;
    uint64_t random = test_seed("noise_stays_within_one");
    int32_t low = 0, high = 0, low_3d = 0, high_3d = 0;
    for (uint32_t i = 0; i < 100000; ++i) {
        uint64_t seed = test_random(&random), place = test_random(&random);
        int32_t value = noise_2d(seed, (int32_t)place, (int32_t)(place >> 32), 8);
        int32_t deep = noise_3d(seed, (int32_t)place, (int32_t)(place >> 16), (int32_t)(place >> 32), 8);
        assert_in_range(value + NOISE_ONE, 0, 2 * NOISE_ONE);
        assert_in_range(deep + NOISE_ONE, 0, 2 * NOISE_ONE);
        low = value < low ? value : low;
        high = value > high ? value : high;
        low_3d = deep < low_3d ? deep : low_3d;
        high_3d = deep > high_3d ? deep : high_3d;
    }
    assert_true(low < -NOISE_ONE * 3 / 4 && high > NOISE_ONE * 3 / 4);
    assert_true(low_3d < -NOISE_ONE * 3 / 4 && high_3d > NOISE_ONE * 3 / 4);
}

static int32_t gap(int32_t a, int32_t b) { return a < b ? b - a : a - b; }

// The steepest slope of the smoothed weight is 15/8 a cell, over at most twice the range: one voxel of 256 changes the
// value by less than 1/32, also across a cell's border, at 0 and where the coordinates wrap.
static void noise_is_smooth_across_cells_and_where_coordinates_wrap(void **state) {
    (void)state;
    static const int32_t STARTS[] = {0, -3000, INT32_MAX - 1500};
    for (uint32_t start = 0; start < 3; ++start) {
        for (uint32_t i = 0; i < 3000; ++i) {
            int32_t here = (int32_t)((uint32_t)STARTS[start] + i), next = (int32_t)((uint32_t)STARTS[start] + i + 1);
            assert_in_range(gap(noise_2d(SEED, here, 77, 8), noise_2d(SEED, next, 77, 8)), 0, NOISE_ONE / 32);
            assert_in_range(gap(noise_2d(SEED, 77, here, 8), noise_2d(SEED, 77, next, 8)), 0, NOISE_ONE / 32);
            assert_in_range(gap(noise_3d(SEED, here, 5, 77, 8), noise_3d(SEED, next, 5, 77, 8)), 0, NOISE_ONE / 32);
            assert_in_range(gap(noise_3d(SEED, 5, here, 77, 8), noise_3d(SEED, 5, next, 77, 8)), 0, NOISE_ONE / 32);
        }
    }
}

static void another_seed_is_another_land(void **state) {
    (void)state;
    uint32_t same = 0;
    for (int32_t i = 0; i < 1000; ++i) same += terrain_height(1, i * 97, i * 53) == terrain_height(2, i * 97, i * 53);
    assert_in_range(same, 0, 100);
}

static void heights_stay_inside_the_world_and_change_gently(void **state) {
    (void)state;
    uint64_t random = test_seed("heights_stay_inside");
    uint32_t steep = 0;
    for (uint32_t i = 0; i < 20000; ++i) {
        uint64_t place = test_random(&random);
        int32_t x = (int32_t)place, z = (int32_t)(place >> 32);
        int32_t height = terrain_height(SEED, x, z);
        assert_true(height > TERRAIN_Y_MIN && height < TERRAIN_Y_END - 12);
        steep += gap(height, terrain_height(SEED, (int32_t)((uint32_t)x + 1), z)) > 2;
    }
    assert_in_range(steep, 0, 400); // 2 % are cliffs
}

static void generate(chunk_coord coord, uint8_t *voxels) {
    static terrain_columns columns;
    terrain_chunk_columns(SEED, coord, &columns);
    // From the top: the order of the layers does not matter.
    for (uint32_t layer = TERRAIN_PADDED_SIZE; layer > 0; --layer)
        terrain_chunk_layer(SEED, coord, &columns, layer - 1, voxels);
}

static void a_chunk_is_what_the_generator_says_of_each_voxel(void **state) {
    (void)state;
    static uint8_t voxels[TERRAIN_PADDED_VOXELS];
    static const chunk_coord COORDS[] = {{0, 0, 0}, {-3, -1, 5}, {7, 1, -9}};
    for (uint32_t c = 0; c < 3; ++c) {
        chunk_coord at = COORDS[c];
        memset(voxels, 0xA5, sizeof voxels);
        generate(at, voxels);
        for (int32_t i = 0; i < TERRAIN_PADDED_VOXELS; ++i) {
            int32_t x = i % 34 - 1, z = i / 34 % 34 - 1, y = i / (34 * 34) - 1;
            int32_t wx = at.x * 32 + x, wy = at.y * 32 + y, wz = at.z * 32 + z;
            terrain_column column = terrain_column_at(SEED, wx, wz);
            assert_int_equal(voxels[terrain_voxel_index(x, y, z)], terrain_material_at(SEED, &column, wx, wy, wz));
        }
    }
}

// So a mesher sees through a border what is really there.
static void the_padding_of_a_chunk_is_the_inside_of_its_neighbour(void **state) {
    (void)state;
    static uint8_t own[TERRAIN_PADDED_VOXELS], east[TERRAIN_PADDED_VOXELS], above[TERRAIN_PADDED_VOXELS];
    generate((chunk_coord){-1, -1, 2}, own);
    generate((chunk_coord){0, -1, 2}, east);
    generate((chunk_coord){-1, 0, 2}, above);
    for (int32_t a = 0; a < 32; ++a) {
        for (int32_t b = 0; b < 32; ++b) {
            assert_int_equal(own[terrain_voxel_index(32, a, b)], east[terrain_voxel_index(0, a, b)]);
            assert_int_equal(own[terrain_voxel_index(31, a, b)], east[terrain_voxel_index(-1, a, b)]);
            assert_int_equal(own[terrain_voxel_index(a, 32, b)], above[terrain_voxel_index(a, 0, b)]);
        }
    }
}

static void every_material_is_somewhere_and_land_and_sea_share_the_world(void **state) {
    (void)state;
    uint32_t counts[TERRAIN_MATERIAL_COUNT] = {0}, wet = 0, places = 0;
    for (int32_t x = -1500; x < 1500; x += 20) {
        for (int32_t z = -1500; z < 1500; z += 20, ++places) {
            terrain_column column = terrain_column_at(SEED, x, z);
            wet += terrain_is_wet(column.height);
            for (int32_t y = TERRAIN_Y_MIN; y < TERRAIN_Y_END; ++y)
                ++counts[terrain_material_at(SEED, &column, x, y, z)];
        }
    }
    for (uint32_t m = 0; m < TERRAIN_MATERIAL_COUNT; ++m) assert_true(counts[m] > 0);
    assert_in_range(wet, places / 10, places * 9 / 10);
}

static void above_and_below_the_world_nothing_changes(void **state) {
    (void)state;
    terrain_column column = terrain_column_at(SEED, 5, 5);
    assert_int_equal(terrain_material_at(SEED, &column, 5, TERRAIN_Y_MIN - 1, 5), TERRAIN_BASALT);
    assert_int_equal(terrain_material_at(SEED, &column, 5, TERRAIN_Y_END, 5), TERRAIN_AIR);
    for (int32_t x = -500; x < 500; x += 3) {
        terrain_column next = terrain_column_at(SEED, x, 9);
        assert_int_equal(terrain_material_at(SEED, &next, x, TERRAIN_Y_MIN, 9), TERRAIN_BASALT);
        assert_int_equal(terrain_material_at(SEED, &next, x, TERRAIN_Y_END - 1, 9), TERRAIN_AIR);
    }
}

static void water_lies_on_ground_and_caves_are_under_land(void **state) {
    (void)state;
    uint32_t caves = 0, water = 0;
    for (int32_t x = -800; x < 800; x += 4) {
        for (int32_t z = -800; z < 800; z += 16) {
            terrain_column column = terrain_column_at(SEED, x, z);
            bool is_wet = terrain_is_wet(column.height);
            terrain_material ground = terrain_material_at(SEED, &column, x, column.height, z);
            if (is_wet) assert_true(ground != TERRAIN_AIR && ground != TERRAIN_WATER);
            terrain_material top = terrain_material_at(SEED, &column, x, TERRAIN_SEA_Y - 1, z);
            if (is_wet) assert_int_equal(top, TERRAIN_WATER);
            water += is_wet;
            caves += terrain_material_at(SEED, &column, x, column.height - 10, z) == TERRAIN_AIR;
        }
    }
    assert_true(water > 0);
    assert_true(caves > 0);
}

// Each trunk stands on its ground, and its leaves are whole: none are cut off at the border of a square or chunk.
static void trees_are_whole(void **state) {
    (void)state;
    uint32_t trees = 0;
    for (int32_t cell = 0; cell < 4000; ++cell) {
        int32_t x0 = cell % 64 * 8 - 256, z0 = cell / 64 * 8 - 256;
        uint32_t trunks = 0, columns = 0;
        for (int32_t i = 0; i < 64; ++i) {
            terrain_column column = terrain_column_at(SEED, x0 + i % 8, z0 + i / 8);
            trunks += column.tree_size > 0 && column.tree_steps == 0;
            columns += column.tree_size > 0;
            if (column.tree_size > 0 && column.tree_steps == 0) assert_int_equal(column.tree_height, column.height);
        }
        assert_true((trunks == 0 && columns == 0) || (trunks == 1 && columns == 25));
        trees += trunks;
    }
    assert_in_range(trees, 100, 3900);
}

static void sight_ends_at_a_hill_and_nowhere_else(void **state) {
    (void)state;
    uint32_t seen = 0, hidden = 0;
    for (int32_t i = 0; i < 400; ++i) {
        int32_t x = i * 61 - 9000, z = i * -37 + 500, far = x + 60;
        int32_t from[3] = {x * TERRAIN_ONE, (terrain_height(SEED, x, z) + 3) * TERRAIN_ONE, z * TERRAIN_ONE};
        int32_t to[3] = {far * TERRAIN_ONE, (terrain_height(SEED, far, z) + 3) * TERRAIN_ONE, z * TERRAIN_ONE};
        int32_t sky[3] = {to[0], TERRAIN_Y_END * TERRAIN_ONE, to[2]};
        int32_t start[3] = {from[0], TERRAIN_Y_END * TERRAIN_ONE, from[2]};
        // One point for each of the 60 voxels on the way.
        bool is_open = true;
        for (int64_t step = 1; step < 60; ++step) {
            int32_t y = (int32_t)(from[1] + ((int64_t)to[1] - from[1]) * step / 60);
            is_open = is_open && terrain_voxel_of(y) > terrain_height(SEED, x + (int32_t)step, z);
        }
        bool is_seen = terrain_sees(SEED, from, to, 1000);
        assert_int_equal(is_seen, is_open);
        seen += is_seen;
        hidden += !is_seen;
        assert_true(terrain_sees(SEED, start, sky, 64));
        assert_true(terrain_sees(SEED, from, from, 64));
    }
    assert_true(seen > 20 && hidden > 20);
}

TEST_MAIN(cmocka_unit_test(noise_has_the_same_bits_everywhere), cmocka_unit_test(terrain_has_the_same_bits_everywhere),
          cmocka_unit_test(noise_stays_within_one_and_uses_most_of_it),
          cmocka_unit_test(noise_is_smooth_across_cells_and_where_coordinates_wrap),
          cmocka_unit_test(another_seed_is_another_land),
          cmocka_unit_test(heights_stay_inside_the_world_and_change_gently),
          cmocka_unit_test(a_chunk_is_what_the_generator_says_of_each_voxel),
          cmocka_unit_test(the_padding_of_a_chunk_is_the_inside_of_its_neighbour),
          cmocka_unit_test(every_material_is_somewhere_and_land_and_sea_share_the_world),
          cmocka_unit_test(above_and_below_the_world_nothing_changes),
          cmocka_unit_test(water_lies_on_ground_and_caves_are_under_land), cmocka_unit_test(trees_are_whole),
          cmocka_unit_test(sight_ends_at_a_hill_and_nowhere_else))
