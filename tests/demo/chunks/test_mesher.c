// SPDX-License-Identifier: MIT
// The demo's mesher against one that looks at each cell alone, and the cells of nodes against the land.

#include "support/support.h"

#include "demo/chunks/mesher.h"
#include "demo/chunks/volume.h"

// Face directions by themselves: nothing of the mesher's tables. And the axes along w and h: 0 = x, 1 = y, 2 = z.
static const int32_t OUT[MESH_FACE_COUNT][3] = {{-1, 0, 0}, {1, 0, 0}, {0, -1, 0}, {0, 1, 0}, {0, 0, -1}, {0, 0, 1}};
static const uint32_t ALONG_W[3] = {2, 0, 0}, ALONG_H[3] = {1, 2, 1};

#define LAYERS_MAX 128
#define CELLS_MAX (MESH_LAYER_CELLS * (LAYERS_MAX + 2))
#define QUADS_MAX (6 * 32 * 32 * LAYERS_MAX)

static uint8_t cells[CELLS_MAX];
static int16_t ground[MESH_LAYER_CELLS];
static uint8_t slopes[MESH_LAYER_CELLS];
static mesh_quad quads[QUADS_MAX], water[QUADS_MAX];
static mesh_input input;

static uint8_t cell(int32_t x, int32_t y, int32_t z) { return input.cells[mesh_cell_index(x, y, z)]; }

static bool is_dark(const int32_t at[3], int32_t axis_w, int32_t w, int32_t axis_h, int32_t h) {
    int32_t p[3] = {at[0], at[1], at[2]};
    p[axis_w] += w, p[axis_h] += h;
    return cell(p[0], p[1], p[2]) > TERRAIN_WATER;
}

// From a cell to the one beside its grain; layers, axis 1, have none.
static int32_t beside(int32_t at, int32_t axis, bool is_high) {
    int32_t grain = axis == 1 ? 1 : (int32_t)input.grain, in = at & (grain - 1);
    return is_high ? grain - in : -in - 1;
}

// What a cell's face looks like, as a rectangle of one; material 0 where it has none.
static mesh_rect naive_face(int32_t x, int32_t y, int32_t z, uint32_t face) {
    const int32_t *out = OUT[face];
    mesh_rect rect = {.face = face, .light = 0xff};
    uint8_t own = cell(x, y, z), other = cell(x + out[0], y + out[1], z + out[2]);
    bool is_water = own == TERRAIN_WATER, is_open = other == TERRAIN_AIR || (other == TERRAIN_WATER && !is_water);
    bool is_border = (face == 0 && x == 0) || (face == 1 && x == 31) || (face == 4 && z == 0) || (face == 5 && z == 31);
    if (own == TERRAIN_AIR) return rect;
    if (!is_open) {
        if (!is_border || is_water || input.ground == NULL) return rect;
        int32_t top = input.ground[mesh_column_index(x + out[0], z + out[2])];
        if (y <= top && y > top - (int32_t)input.skirt) rect.material = own;
        return rect;
    }
    rect.material = own;
    if (is_water) return rect;
    int32_t at[3] = {x + out[0], y + out[1], z + out[2]}, w = (int32_t)ALONG_W[face / 2],
            h = (int32_t)ALONG_H[face / 2];
    if (face == MESH_FACE_Y_POSITIVE) {
        at[1] =
            y + (int32_t)input.rise < (int32_t)input.layer_count ? y + (int32_t)input.rise : (int32_t)input.layer_count;
        uint32_t bits = input.slopes != NULL ? input.slopes[mesh_column_index(x, z)] : 0;
        rect.slope_x = (int32_t)(bits & 3) - (int32_t)(bits & 4);
        rect.slope_z = (int32_t)(bits >> 3 & 3) - (int32_t)(bits >> 3 & 4);
    }
    rect.light = 0;
    for (int32_t corner = 0; corner < 4; ++corner) {
        int32_t step_w = beside(at[w], w, corner % 2 == 1), step_h = beside(at[h], h, corner / 2 == 1);
        bool a = is_dark(at, w, step_w, h, 0), b = is_dark(at, w, 0, h, step_h), c = is_dark(at, w, step_w, h, step_h);
        uint32_t light = a && b ? 0 : 3u - a - b - c;
        rect.light |= light << 2 * corner;
    }
    return rect;
}

static mesh_output mesh(mesh_face face) {
    mesh_output out = {.quads = quads, .quad_count_max = QUADS_MAX, .water = water, .water_count_max = QUADS_MAX};
    assert_true(mesher_face(&input, face, &out));
    assert_int_equal(out.dropped_count, 0);
    return out;
}

static mesh_input plain_input(uint32_t layer_count) {
    return (mesh_input){.cells = cells, .layer_count = layer_count, .grain = 1, .merge_max = 32, .rise = 1};
}

// Marks what a quad covers, and fails where something is covered twice, or does not look like it.
static void cover(const mesh_rect *rect, uint8_t covered[32][LAYERS_MAX][32]) {
    assert_in_range(rect->w, 1, input.merge_max);
    assert_in_range(rect->h, 1, rect->face / 2 == 1 ? input.merge_max : input.layer_count);
    for (uint32_t i = 0; i < rect->w * rect->h; ++i) {
        uint32_t at[3] = {rect->x, rect->y, rect->z};
        at[ALONG_W[rect->face / 2]] += i % rect->w;
        at[ALONG_H[rect->face / 2]] += i / rect->w;
        assert_true(at[0] < 32 && at[1] < input.layer_count && at[2] < 32);
        assert_int_equal(covered[at[0]][at[1]][at[2]], 0);
        covered[at[0]][at[1]][at[2]] = 1;
        mesh_rect own = naive_face((int32_t)at[0], (int32_t)at[1], (int32_t)at[2], rect->face);
        assert_int_equal(own.material, rect->material);
        assert_int_equal(own.light, rect->light);
        assert_int_equal(own.slope_x, rect->slope_x);
        assert_int_equal(own.slope_z, rect->slope_z);
    }
}

// Returns how many faces there are.
static uint32_t check_all_faces(uint32_t *quad_count) {
    static uint8_t covered[32][LAYERS_MAX][32];
    uint32_t faces = 0;
    for (uint32_t face = 0; face < MESH_FACE_COUNT; ++face) {
        mesh_output out = mesh((mesh_face)face);
        memset(covered, 0, sizeof covered);
        for (uint32_t i = 0; i < out.quad_count + out.water_count; ++i) {
            mesh_rect rect = mesh_quad_open(i < out.quad_count ? quads[i] : water[i - out.quad_count]);
            assert_int_equal(rect.face, face);
            assert_int_equal(rect.material == TERRAIN_WATER, i >= out.quad_count);
            cover(&rect, covered);
        }
        for (uint32_t i = 0; i < 1024 * input.layer_count; ++i) {
            uint32_t x = i % 32, z = i / 32 % 32, y = i / 1024;
            bool has_face = naive_face((int32_t)x, (int32_t)y, (int32_t)z, face).material != 0;
            assert_int_equal(covered[x][y][z], has_face);
            faces += has_face;
        }
        *quad_count += out.quad_count + out.water_count;
    }
    return faces;
}

TEST(quads_cover_exactly_the_faces_of_random_cells) {
    uint64_t random = test_seed("quads_cover_exactly");
    for (uint64_t round = 0; round < test_size(12, 60, 600); ++round) {
        // From nearly empty to nearly full, with one to four materials, and in blocks of 1 or 2.
        uint64_t share = round % 6 * 51, materials = 1 + round % 4, shift = round / 6 % 2;
        uint64_t salt = test_random(&random);
        input = plain_input(1 + (uint32_t)(test_random(&random) % 40));
        input.merge_max = 1u << round % 6;
        input.grain = 1 + (uint32_t)round / 2 % 2;
        input.rise = 1 + (uint32_t)round % 2;
        input.slopes = slopes, input.ground = round % 3 == 0 ? NULL : ground, input.skirt = (uint32_t)round % 7;
        for (uint32_t i = 0; i < MESH_LAYER_CELLS * (input.layer_count + 2); ++i) {
            uint64_t x = i % 34 >> shift, z = i / 34 % 34 >> shift, y = i / 1156 >> shift;
            uint64_t place = salt + (x * 64 + y) * 64 + z, bits = test_random(&place);
            uint64_t material = TERRAIN_WATER + (bits >> 8) % materials;
            cells[i] = (uint8_t)((bits & 255) < share ? TERRAIN_AIR : material);
        }
        for (uint32_t i = 0; i < MESH_LAYER_CELLS; ++i) {
            uint64_t place = salt ^ (i / 4), bits = test_random(&place);
            ground[i] = (int16_t)((int32_t)(bits % (input.layer_count + 4)) - 2);
            slopes[i] = mesh_slope((int32_t)(bits >> 8 & 7) - 3, (int32_t)(bits >> 11 & 7) - 4);
        }
        uint32_t quad_count = 0;
        check_all_faces(&quad_count);
    }
}

// --- nodes ---

static volume land;

static void generate(lod_node node) {
    volume_begin(&land, 1, node);
    // From the last row: their order does not matter.
    for (int32_t z = 32; z >= -1; --z) volume_columns(&land, z);
    volume_fit(&land);
    for (int32_t z = 32; z >= -1; --z) volume_fill(&land, z);
    input = volume_mesh_input(&land);
}

// A coast, a mountain, the corner of three faces, and ever coarser ones up to a whole face.
static const lod_node NODES[] = {{0, 0, 30, 40, 0}, {3, 0, 103, 85, 0}, {2, 0, 0, 0, 0}, {0, 1, 20, 24, 0},
                                 {3, 2, 5, 30, 0},  {5, 3, 1, 2, 0},    {0, 4, 4, 2, 0}, {2, 5, 0, 0, 0},
                                 {0, 6, 1, 1, 0},   {3, 7, 0, 0, 0}};
#define NODE_COUNT (sizeof NODES / sizeof NODES[0])

TEST(land_takes_far_fewer_quads_than_faces) {
    uint32_t faces = 0, quad_count = 0;
    for (uint32_t i = 0; i < NODE_COUNT; ++i) {
        generate(NODES[i]);
        assert_true(input.layer_count <= LAYERS_MAX);
        uint32_t before = quad_count, own = check_all_faces(&quad_count);
        if (NODES[i].level == 0) faces += own;
        if (NODES[i].level > 0) quad_count = before;
    }
    print_message("%u faces in %u quads\n", faces, quad_count);
    assert_true(quad_count > 0 && quad_count * 5 < faces * 3);
}

// Below the lowest ground all is opaque, above the highest all is air: nothing is cut off.
TEST(layers_are_as_many_as_the_heights_need) {
    for (uint32_t i = 0; i < NODE_COUNT; ++i) {
        generate(NODES[i]);
        assert_in_range(land.layer_count, 1, MESH_LAYERS_MAX);
        assert_int_equal(land.base % land.step, 0);
        for (int32_t k = 0; k < MESH_LAYER_CELLS; ++k) {
            int32_t x = k % 34 - 1, z = k / 34 - 1;
            assert_true(cell(x, -1, z) > TERRAIN_WATER && cell(x, 0, z) > TERRAIN_WATER);
            assert_int_equal(cell(x, (int32_t)land.layer_count, z), TERRAIN_AIR);
            assert_int_equal(cell(x, (int32_t)land.layer_count - 1, z), TERRAIN_AIR);
            assert_true(land.ground[k] >= (int32_t)input.skirt && land.ground[k] < (int32_t)land.layer_count);
            assert_true(cell(x, land.ground[k], z) > TERRAIN_WATER);
            assert_true((uint32_t)land.ground[k] + 1 >= input.open_layer);
        }
    }
}

TEST(a_fine_node_is_what_the_land_says_of_each_voxel) {
    for (uint32_t i = 0; i < 3; ++i) {
        generate(NODES[i]);
        for (int32_t k = 0; k < MESH_LAYER_CELLS; ++k) {
            int32_t x = k % 34 - 1, z = k / 34 - 1;
            sphere_cell at = sphere_fold(NODES[i].face, NODES[i].x * 32 + x, NODES[i].y * 32 + z, SPHERE_FACE_COLUMNS);
            terrain_column column = terrain_column_at(1, at.face, at.x, at.z);
            for (int32_t y = 0; y < (int32_t)land.layer_count; ++y)
                assert_int_equal(cell(x, y, z), terrain_material_at(&column, land.base + y));
        }
    }
}

// So a mesher sees through a border what is really there, also over the edge of a face.
TEST(the_padding_of_a_node_is_the_inside_of_its_neighbour) {
    static terrain_column own[MESH_LAYER_CELLS];
    static uint8_t bumps[MESH_LAYER_CELLS];
    static const lod_node PAIRS[][2] = {{{0, 0, 40, 70, 0}, {0, 0, 41, 70, 0}},
                                        {{1, 3, 4, 9, 0}, {1, 3, 5, 9, 0}},
                                        {{0, 0, 127, 50, 0}, {4, 0, 0, 50, 0}},
                                        {{0, 4, 7, 2, 0}, {4, 4, 0, 2, 0}}};
    for (uint32_t i = 0; i < 4; ++i) {
        generate(PAIRS[i][0]);
        memcpy(own, land.columns, sizeof own);
        memcpy(bumps, land.bumps, sizeof bumps);
        generate(PAIRS[i][1]);
        for (int32_t z = 0; z < 32; ++z) {
            uint32_t a = mesh_column_index(32, z), b = mesh_column_index(0, z);
            assert_memory_equal(&own[a], &land.columns[b], sizeof own[a]);
            assert_int_equal(bumps[a], land.bumps[b]);
            assert_memory_equal(&own[mesh_column_index(31, z)], &land.columns[mesh_column_index(-1, z)], sizeof own[a]);
        }
    }
}

// Seas end at the same height in every level, coasts are where they are, and woods do not vanish.
TEST(coarse_nodes_show_the_same_land) {
    uint32_t wet = 0, dry = 0, leaves = 0;
    for (uint32_t i = 0; i < NODE_COUNT; ++i) {
        generate(NODES[i]);
        int32_t sea = (TERRAIN_SEA_Y - land.base) / land.step;
        for (int32_t k = 0; k < 1024; ++k) {
            int32_t x = k % 32, z = k / 32;
            uint32_t index = mesh_column_index(x, z);
            int32_t height = land.columns[index].height, top = land.base + (land.ground[index] + 1) * land.step;
            bool is_wet = terrain_is_wet(height);
            if (is_wet) assert_true(cell(x, sea - 1, z) == TERRAIN_WATER || cell(x, sea - 1, z) == TERRAIN_ICE);
            if (is_wet) assert_true(cell(x, sea, z) == TERRAIN_AIR);
            if (!is_wet) assert_true(top - height - 1 <= land.step / 2 && height + 1 - top <= land.step / 2);
            wet += is_wet, dry += !is_wet;
            leaves += land.bumps[index] > 0 && cell(x, land.ground[index], z) >= TERRAIN_LEAVES;
        }
    }
    assert_true(wet > 500 && dry > 500 && leaves > 100);
}

// A coarse node is a quarter of the node above it, in cells of the same size.
TEST(a_coarse_node_is_a_quarter_of_the_one_above) {
    static volume above;
    uint64_t fine_quads = 0, coarse_quads = 0;
    for (uint32_t i = 0; i + 1 < NODE_COUNT; ++i) {
        lod_node node = NODES[i];
        generate(node);
        for (uint32_t face = 0; face < MESH_FACE_COUNT; ++face) fine_quads += mesh((mesh_face)face).quad_count;
        generate(node_parent(node));
        above = land;
        node.coarse = 1;
        generate(node);
        uint32_t ignored = 0;
        check_all_faces(&ignored);
        for (uint32_t face = 0; face < MESH_FACE_COUNT; ++face) coarse_quads += mesh((mesh_face)face).quad_count;
        for (int32_t k = 0; k < MESH_LAYER_CELLS; ++k) {
            int32_t x = k % 34 - 1, z = k / 34 - 1;
            uint32_t own = mesh_column_index(x, z);
            uint32_t other =
                mesh_column_index(node.x % 2 * 16 + ((x + 2) / 2 - 1), node.y % 2 * 16 + ((z + 2) / 2 - 1));
            assert_memory_equal(&land.columns[own], &above.columns[other], sizeof land.columns[own]);
            assert_int_equal(land.bumps[own], above.bumps[other]);
            if (x >= 0 && x < 32 && z >= 0 && z < 32) assert_int_equal(land.slopes[own], above.slopes[other]);
        }
    }
    print_message("%llu quads, coarse %llu\n", (unsigned long long)fine_quads, (unsigned long long)coarse_quads);
    assert_true(coarse_quads * 5 < fine_quads * 2);
}

// --- bounds ---

static void fill(uint8_t material) {
    memset(cells, material, sizeof cells);
    input = plain_input(32);
}

TEST(full_cells_among_full_ones_have_no_faces) {
    fill(TERRAIN_STONE);
    for (uint32_t face = 0; face < MESH_FACE_COUNT; ++face) assert_int_equal(mesh((mesh_face)face).quad_count, 0);
}

TEST(a_full_node_in_the_air_has_one_quad_a_side) {
    fill(TERRAIN_AIR);
    for (int32_t i = 0; i < 32768; ++i) cells[mesh_cell_index(i % 32, i / 32 % 32, i / 1024)] = TERRAIN_STONE;
    for (uint32_t face = 0; face < MESH_FACE_COUNT; ++face) {
        assert_int_equal(mesh((mesh_face)face).quad_count, 1);
        mesh_rect rect = mesh_quad_open(quads[0]);
        assert_int_equal(rect.w, 32);
        assert_int_equal(rect.h, 32);
        uint32_t at = face % 2 == 0 ? 0 : 31;
        assert_int_equal(face / 2 == 0 ? rect.x : face / 2 == 1 ? rect.y : rect.z, at);
    }
}

// Flat ground whose neighbours are as high: nothing but its top, and at the border the skirts.
TEST(skirts_hang_below_the_border) {
    fill(TERRAIN_AIR);
    for (uint32_t i = 0; i < MESH_LAYER_CELLS; ++i) ground[i] = 9;
    for (uint32_t i = 0; i < MESH_LAYER_CELLS * 11; ++i) cells[i] = TERRAIN_DIRT;
    input.ground = ground, input.skirt = 4;
    for (uint32_t face = 0; face < MESH_FACE_COUNT; ++face) {
        mesh_output out = mesh((mesh_face)face);
        assert_int_equal(out.quad_count, face != MESH_FACE_Y_NEGATIVE);
        mesh_rect rect = mesh_quad_open(quads[0]);
        if (face / 2 == 1) continue;
        assert_int_equal(rect.y, 6);
        assert_int_equal(rect.h, 4);
        assert_int_equal(rect.w, 32);
    }
}

// Stone and air in turn along a line, and shifted from line to line: nothing merges.
static void fill_worst(void) {
    static const uint8_t TURN[2] = {TERRAIN_STONE, TERRAIN_AIR};
    input = plain_input(32);
    for (int32_t i = 0; i < CELLS_MAX; ++i) cells[i] = TURN[(i % 34 + i / 34 % 34 + i / 1156) % 2];
}

TEST(too_many_quads_are_counted_and_the_others_are_right) {
    static mesh_quad all[QUADS_MAX];
    fill_worst();
    mesh_output whole = mesh(MESH_FACE_Y_POSITIVE);
    assert_int_equal(whole.quad_count, 16 * 1024);
    memcpy(all, quads, sizeof quads);
    memset(quads, 0xA5, sizeof quads);
    mesh_output part = {.quads = quads, .quad_count_max = 1000};
    assert_false(mesher_face(&input, MESH_FACE_Y_POSITIVE, &part));
    assert_int_equal(part.quad_count, 1000);
    assert_int_equal(part.dropped_count, whole.quad_count - 1000);
    assert_memory_equal(quads, all, 1000 * sizeof quads[0]);
    assert_int_equal(quads[1000].place, 0xA5A5A5A5u);
    // A direction that fits after one that did not says so.
    fill(TERRAIN_AIR);
    assert_true(mesher_face(&input, MESH_FACE_Y_POSITIVE, &part));
}

TEST(packed_quads_can_be_opened) {
    uint64_t random = test_seed("packed_quads");
    for (uint32_t i = 0; i < 1000; ++i) {
        uint64_t a = test_random(&random), b = test_random(&random);
        mesh_rect rect = {
            .x = a & 31, .y = a >> 5 & 255, .z = a >> 13 & 31, .w = 1 + (a >> 18 & 31), .h = 1 + (b & 255)};
        rect.face = (uint32_t)(a >> 23) % 6, rect.material = a >> 26 & 63, rect.light = b >> 8 & 255;
        rect.slope_x = (int32_t)(b >> 26 & 7) % 7 - 3, rect.slope_z = (int32_t)(b >> 30 & 7) % 7 - 3;
        mesh_rect opened = mesh_quad_open(mesh_quad_pack(&rect));
        assert_memory_equal(&opened, &rect, sizeof rect);
        assert_int_equal(mesh_quad_material(mesh_quad_pack(&rect)), rect.material);
    }
}

TEST(no_such_face_or_layers_are_refused) {
    mesh_output out = {.quads = quads, .quad_count_max = 10};
    fill(TERRAIN_STONE);
    assert_false(mesher_face(&input, MESH_FACE_COUNT, &out));
    input.layer_count = 0;
    assert_false(mesher_face(&input, MESH_FACE_Y_POSITIVE, &out));
    input.layer_count = MESH_LAYERS_MAX + 1;
    assert_false(mesher_face(&input, MESH_FACE_Y_POSITIVE, &out));
    assert_int_equal(out.quad_count, 0);
}
