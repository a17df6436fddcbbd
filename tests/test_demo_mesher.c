// SPDX-License-Identifier: MIT
// link: -lm
// The demo's mesher against one that looks at each voxel alone.

#include "support.h"

#include "demo/mesher.h"
#include "demo/terrain.h"

// Face directions by themselves: nothing of the mesher's tables.
static const int32_t OUT[MESH_FACE_COUNT][3] = {{-1, 0, 0}, {1, 0, 0}, {0, -1, 0}, {0, 1, 0}, {0, 0, -1}, {0, 0, 1}};

static uint8_t voxels[TERRAIN_PADDED_VOXELS];
static mesh_quad quads[MESH_FACE_QUADS_MAX];

static uint8_t voxel(int32_t x, int32_t y, int32_t z) { return voxels[terrain_voxel_index(x, y, z)]; }

// The material that shows on a voxel's face; 0 where none does.
static uint8_t naive_face(int32_t x, int32_t y, int32_t z, uint32_t face) {
    uint8_t own = voxel(x, y, z), other = voxel(x + OUT[face][0], y + OUT[face][1], z + OUT[face][2]);
    if (own == TERRAIN_AIR) return 0;
    if (other == TERRAIN_AIR) return own;
    return other == TERRAIN_WATER && own != TERRAIN_WATER ? own : 0;
}

static mesh_output mesh(mesh_face face) {
    mesh_output out = {.quads = quads, .quad_count_max = MESH_FACE_QUADS_MAX};
    assert_true(mesher_face(voxels, face, &out));
    assert_int_equal(out.dropped_count, 0);
    return out;
}

// Marks what a quad covers, and fails where something is covered twice, or not of its material.
static void cover(const mesh_quad *quad, uint8_t covered[32][32][32]) {
    assert_int_equal(quad->reserved, 0);
    assert_in_range(quad->w, 1, 32);
    assert_in_range(quad->h, 1, 32);
    for (int32_t i = 0; i < quad->w * quad->h; ++i) {
        int32_t a = i % quad->w, b = i / quad->w, axis = quad->face / 2;
        int32_t x = quad->x + (axis == 0 ? 0 : a), y = quad->y + (axis == 0 ? a : axis == 1 ? 0 : b);
        int32_t z = quad->z + (axis == 2 ? 0 : b);
        assert_true(x < 32 && y < 32 && z < 32);
        assert_int_equal(covered[x][y][z], 0);
        covered[x][y][z] = 1;
        assert_int_equal(naive_face(x, y, z, quad->face), quad->material);
    }
}

// Returns how many faces there are.
static uint32_t check_all_faces(uint32_t *quad_count) {
    static uint8_t covered[32][32][32];
    uint32_t faces = 0;
    for (uint32_t face = 0; face < MESH_FACE_COUNT; ++face) {
        mesh_output out = mesh((mesh_face)face);
        memset(covered, 0, sizeof covered);
        for (uint32_t i = 0; i < out.quad_count; ++i) {
            assert_int_equal(quads[i].face, face);
            cover(&quads[i], covered);
        }
        for (int32_t i = 0; i < 32768; ++i) {
            int32_t x = i % 32, y = i / 32 % 32, z = i / 1024;
            bool has_face = naive_face(x, y, z, face) != 0;
            assert_int_equal(covered[x][y][z], has_face);
            faces += has_face;
        }
        *quad_count += out.quad_count;
    }
    return faces;
}

static void quads_cover_exactly_the_faces_of_random_chunks(void **state) {
    (void)state;
    uint64_t random = test_seed("quads_cover_exactly");
    for (uint64_t round = 0; round < test_size(12, 100, 1000); ++round) {
        // From nearly empty to nearly full, with one to four materials, and in blocks of 1 or 2.
        uint64_t share = round % 6 * 51, materials = 1 + round % 4, shift = round / 6 % 2;
        uint64_t salt = test_random(&random);
        for (uint32_t i = 0; i < TERRAIN_PADDED_VOXELS; ++i) {
            uint64_t x = i % 34 >> shift, z = i / 34 % 34 >> shift, y = i / 1156 >> shift;
            uint64_t place = salt + (x * 64 + y) * 64 + z, bits = test_random(&place);
            uint64_t material = TERRAIN_WATER + (bits >> 8) % materials;
            voxels[i] = (uint8_t)((bits & 255) < share ? TERRAIN_AIR : material);
        }
        uint32_t quad_count = 0;
        check_all_faces(&quad_count);
    }
}

static void generate(chunk_coord coord) {
    static terrain_columns columns;
    terrain_chunk_columns(1, coord, &columns);
    for (uint32_t layer = 0; layer < TERRAIN_PADDED_SIZE; ++layer)
        terrain_chunk_layer(1, coord, &columns, layer, voxels);
}

static void terrain_takes_far_fewer_quads_than_faces(void **state) {
    (void)state;
    uint32_t faces = 0, quad_count = 0;
    for (int32_t i = 0; i < 24; ++i) {
        generate((chunk_coord){i % 4 * 5 - 8, i % 3 - 1, i / 4 * 4 - 10});
        faces += check_all_faces(&quad_count);
    }
    print_message("%u faces in %u quads\n", faces, quad_count);
    assert_true(quad_count > 0 && quad_count * 5 < faces * 2);
}

static void a_full_chunk_among_full_ones_has_no_faces(void **state) {
    (void)state;
    memset(voxels, TERRAIN_STONE, sizeof voxels);
    for (uint32_t face = 0; face < MESH_FACE_COUNT; ++face) assert_int_equal(mesh((mesh_face)face).quad_count, 0);
}

static void a_full_chunk_in_the_air_has_one_quad_a_side(void **state) {
    (void)state;
    memset(voxels, TERRAIN_AIR, sizeof voxels);
    for (int32_t i = 0; i < 32768; ++i) voxels[terrain_voxel_index(i % 32, i / 32 % 32, i / 1024)] = TERRAIN_STONE;
    for (uint32_t face = 0; face < MESH_FACE_COUNT; ++face) {
        assert_int_equal(mesh((mesh_face)face).quad_count, 1);
        assert_int_equal(quads[0].w, 32);
        assert_int_equal(quads[0].h, 32);
        uint8_t at = face % 2 == 0 ? 0 : 31;
        assert_int_equal(face / 2 == 0 ? quads[0].x : face / 2 == 1 ? quads[0].y : quads[0].z, at);
    }
}

// Stone, water and air in turn along a line, and shifted from line to line: nothing merges.
static void fill_worst(void) {
    static const uint8_t TURN[3] = {TERRAIN_STONE, TERRAIN_WATER, TERRAIN_AIR};
    for (int32_t i = 0; i < TERRAIN_PADDED_VOXELS; ++i) voxels[i] = TURN[(i % 34 + i / 34 % 34 + i / 1156) % 3];
}

static void the_worst_chunk_fits_the_documented_bound(void **state) {
    (void)state;
    for (uint32_t face = 1; face < MESH_FACE_COUNT; face += 2) {
        fill_worst();
        uint32_t count = mesh((mesh_face)face).quad_count;
        assert_in_range(count, 21 * 1024, MESH_FACE_QUADS_MAX);
    }
}

static void too_many_quads_are_counted_and_the_others_are_right(void **state) {
    (void)state;
    static mesh_quad all[MESH_FACE_QUADS_MAX];
    fill_worst();
    mesh_output whole = mesh(MESH_FACE_Y_POSITIVE);
    memcpy(all, quads, sizeof quads);
    memset(quads, 0xA5, sizeof quads);
    mesh_output part = {.quads = quads, .quad_count_max = 1000};
    assert_false(mesher_face(voxels, MESH_FACE_Y_POSITIVE, &part));
    assert_int_equal(part.quad_count, 1000);
    assert_int_equal(part.dropped_count, whole.quad_count - 1000);
    assert_memory_equal(quads, all, 1000 * sizeof quads[0]);
    assert_int_equal(quads[1000].x, 0xA5);
    // A direction that fits after one that did not says so.
    memset(voxels, TERRAIN_AIR, sizeof voxels);
    assert_true(mesher_face(voxels, MESH_FACE_Y_POSITIVE, &part));
}

static void no_such_face_is_refused(void **state) {
    (void)state;
    mesh_output out = {.quads = quads, .quad_count_max = 10};
    assert_false(mesher_face(voxels, MESH_FACE_COUNT, &out));
    assert_int_equal(out.quad_count, 0);
}

TEST_MAIN(cmocka_unit_test(quads_cover_exactly_the_faces_of_random_chunks),
          cmocka_unit_test(terrain_takes_far_fewer_quads_than_faces),
          cmocka_unit_test(a_full_chunk_among_full_ones_has_no_faces),
          cmocka_unit_test(a_full_chunk_in_the_air_has_one_quad_a_side),
          cmocka_unit_test(the_worst_chunk_fits_the_documented_bound),
          cmocka_unit_test(too_many_quads_are_counted_and_the_others_are_right),
          cmocka_unit_test(no_such_face_is_refused))
