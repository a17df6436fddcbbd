// SPDX-License-Identifier: MIT
// link: -lm
// The demo's streaming: which chunks are wanted, and the table that holds them.

#include "support.h"

#include "demo/chunk_table.h"
#include "demo/stream.h"

#define RADIUS 6
static stream_offset offsets[STREAM_OFFSETS_MAX(STREAM_RADIUS_MAX)];

static int64_t distance(chunk_coord a, chunk_coord b) {
    int64_t x = (int64_t)a.x - b.x, y = (int64_t)a.y - b.y, z = (int64_t)a.z - b.z;
    return x * x + y * y + z * z;
}

static void wanted_chunks_come_nearest_first_and_each_once(void **state) {
    (void)state;
    static bool is_wanted[2 * RADIUS + 1][16][2 * RADIUS + 1];
    stream_area area;
    assert_true(stream_init(&area, offsets, RADIUS));
    for (int32_t camera_y = TERRAIN_CHUNK_Y_MIN; camera_y < TERRAIN_CHUNK_Y_END; ++camera_y) {
        chunk_coord camera = {100, camera_y, -50}, coord;
        int64_t before = 0;
        uint32_t count = 0, expected = 0;
        memset(is_wanted, 0, sizeof is_wanted);
        for (uint32_t i = 0; i < area.offset_count; ++i) {
            if (!stream_wanted(&area, camera, i, &coord)) continue;
            assert_true(distance(coord, camera) >= before);
            before = distance(coord, camera);
            bool *flag = &is_wanted[coord.x - 100 + RADIUS][coord.y - TERRAIN_CHUNK_Y_MIN][coord.z + 50 + RADIUS];
            assert_false(*flag);
            *flag = true;
            ++count;
        }
        for (int32_t x = -RADIUS; x <= RADIUS; ++x)
            for (int32_t z = -RADIUS; z <= RADIUS; ++z)
                expected += x * x + z * z <= RADIUS * RADIUS ? TERRAIN_CHUNK_Y_END - TERRAIN_CHUNK_Y_MIN : 0;
        assert_int_equal(count, expected);
    }
}

static void the_first_wanted_chunk_is_the_cameras(void **state) {
    (void)state;
    stream_area area;
    assert_true(stream_init(&area, offsets, 3));
    chunk_coord coord, camera = {-7, 2, 9};
    assert_true(stream_wanted(&area, camera, 0, &coord));
    assert_memory_equal(&coord, &camera, sizeof coord);
    // Above the world it is the highest one below.
    camera.y = 40;
    assert_true(stream_wanted(&area, camera, 0, &coord));
    assert_int_equal(coord.y, TERRAIN_CHUNK_Y_END - 1);
    assert_false(stream_wanted(&area, camera, area.offset_count, &coord));
}

static void the_order_is_total(void **state) {
    (void)state;
    static stream_offset again[STREAM_OFFSETS_MAX(RADIUS)];
    stream_area first, second;
    assert_true(stream_init(&first, offsets, RADIUS));
    memset(again, 0xA5, sizeof again);
    assert_true(stream_init(&second, again, RADIUS));
    assert_int_equal(first.offset_count, second.offset_count);
    assert_memory_equal(offsets, again, first.offset_count * sizeof again[0]);
    for (uint32_t i = 1; i < first.offset_count; ++i) {
        stream_offset a = offsets[i - 1], b = offsets[i];
        int32_t near = a.x * a.x + a.y * a.y + a.z * a.z, far = b.x * b.x + b.y * b.y + b.z * b.z;
        int32_t key_a = (a.y * 256 + a.z) * 256 + a.x, key_b = (b.y * 256 + b.z) * 256 + b.x;
        assert_true(near < far || (near == far && key_a < key_b));
    }
}

static void a_radius_out_of_range_is_refused(void **state) {
    (void)state;
    stream_area area;
    assert_false(stream_init(&area, offsets, 0));
    assert_false(stream_init(&area, offsets, STREAM_RADIUS_MAX + 1));
    assert_true(stream_init(&area, offsets, STREAM_RADIUS_MAX));
    assert_true(area.offset_count <= STREAM_OFFSETS_MAX(STREAM_RADIUS_MAX));
}

// Going back and forth over a border changes nothing: what was wanted on either side is never far on the other.
static void what_is_wanted_is_not_far_from_neighbouring_places(void **state) {
    (void)state;
    stream_area area;
    assert_true(stream_init(&area, offsets, RADIUS));
    chunk_coord camera = {0, 1, 0}, coord;
    for (uint32_t i = 0; i < area.offset_count; ++i) {
        if (!stream_wanted(&area, camera, i, &coord)) continue;
        for (int32_t step = 0; step < 9; ++step)
            assert_false(stream_is_far(&area, (chunk_coord){step % 3 - 1, 1, step / 3 - 1}, coord));
    }
    assert_true(stream_is_far(&area, camera, (chunk_coord){RADIUS + STREAM_MARGIN + 1, 0, 0}));
    assert_false(stream_is_far(&area, camera, (chunk_coord){RADIUS + STREAM_MARGIN, 0, 0}));
    assert_true(stream_is_far(&area, camera, (chunk_coord){RADIUS + STREAM_MARGIN, 0, 3}));
    assert_true(stream_is_far(&area, camera, (chunk_coord){0, 0, INT32_MIN}));
    assert_true(stream_is_far(&area, (chunk_coord){INT32_MAX, 0, INT32_MAX}, (chunk_coord){INT32_MIN / 2, 0, 0}));
}

static void voxels_below_zero_are_in_chunks_below_zero(void **state) {
    (void)state;
    chunk_coord coord = stream_chunk_of(-1, 31, 32);
    assert_true(coord.x == -1 && coord.y == 0 && coord.z == 1);
    coord = stream_chunk_of(-32, -33, INT32_MIN);
    assert_true(coord.x == -1 && coord.y == -2 && coord.z == INT32_MIN / 32);
}

// --- the table ---

#define SLOTS 200
static chunk_slot memory[2 * SLOTS];

static chunk_table table_make(void) {
    chunk_table table;
    assert_true(chunk_table_size_bytes(SLOTS) <= sizeof memory);
    memset(memory, 0xA5, sizeof memory);
    assert_true(chunk_table_init(&table, memory, SLOTS));
    return table;
}

static void a_chunk_that_comes_back_has_a_new_generation(void **state) {
    (void)state;
    chunk_table table = table_make();
    chunk_coord coord = {3, -1, 4};
    chunk_ref first = chunk_table_add(&table, coord);
    assert_true(first.generation != 0);
    assert_true(chunk_table_advance(&table, first, CHUNK_GENERATING));
    assert_int_equal(chunk_table_add(&table, coord).generation, 0);
    assert_true(chunk_table_remove(&table, first));
    assert_null(chunk_table_get(&table, first));
    chunk_ref second = chunk_table_add(&table, coord);
    assert_int_equal(second.slot, first.slot);
    assert_true(second.generation != 0 && second.generation != first.generation);
    // The old chunk's job comes too late.
    assert_false(chunk_table_advance(&table, first, CHUNK_GENERATED));
    assert_false(chunk_table_remove(&table, first));
    assert_int_equal(chunk_table_get(&table, second)->state, CHUNK_EMPTY);
}

static void generations_never_are_zero(void **state) {
    (void)state;
    chunk_table table = table_make();
    chunk_coord coord = {1, 1, 1};
    chunk_ref ref = chunk_table_add(&table, coord);
    table.slots[ref.slot].generation = UINT32_MAX;
    ref.generation = UINT32_MAX;
    assert_true(chunk_table_remove(&table, ref));
    assert_int_equal(chunk_table_add(&table, coord).generation, 1);
}

static void states_follow_each_other_and_are_counted(void **state) {
    (void)state;
    chunk_table table = table_make();
    chunk_ref ref = chunk_table_add(&table, (chunk_coord){0, 0, 0});
    for (uint32_t next = CHUNK_GENERATING; next < CHUNK_STATE_COUNT; ++next) {
        for (uint32_t other = 0; other <= CHUNK_STATE_COUNT; ++other)
            if (other != next) assert_false(chunk_table_advance(&table, ref, (chunk_state)other));
        assert_true(chunk_table_advance(&table, ref, (chunk_state)next));
        assert_int_equal(table.state_counts[next], 1);
        assert_int_equal(table.state_counts[next - 1], 0);
    }
    assert_false(chunk_table_advance(&table, ref, CHUNK_STATE_COUNT));
    assert_true(chunk_table_remove(&table, ref));
    assert_int_equal(table.state_counts[CHUNK_READY], 0);
}

static void a_full_table_refuses_and_counts(void **state) {
    (void)state;
    chunk_table table = table_make();
    for (int32_t i = 0; i < SLOTS; ++i) assert_true(chunk_table_add(&table, (chunk_coord){i, 0, -i}).generation != 0);
    assert_int_equal(chunk_table_add(&table, (chunk_coord){-1, 0, 0}).generation, 0);
    assert_int_equal(table.full_count, 1);
    assert_int_equal(chunk_table_find(&table, (chunk_coord){-1, 0, 0}).generation, 0);
    assert_true(chunk_table_remove(&table, chunk_table_find(&table, (chunk_coord){7, 0, -7})));
    assert_true(chunk_table_add(&table, (chunk_coord){-1, 0, 0}).generation != 0);
}

static void wrong_sizes_and_references_are_refused(void **state) {
    (void)state;
    chunk_table table;
    assert_int_equal(chunk_table_size_bytes(0), 0);
    assert_int_equal(chunk_table_size_bytes(CHUNK_TABLE_SLOTS_MAX + 1), 0);
    assert_false(chunk_table_init(&table, memory, 0));
    assert_false(chunk_table_init(&table, NULL, SLOTS));
    table = table_make();
    assert_null(chunk_table_get(&table, (chunk_ref){0, 0}));
    assert_null(chunk_table_get(&table, (chunk_ref){SLOTS, 1}));
    assert_false(chunk_table_remove(&table, (chunk_ref){UINT32_MAX, UINT32_MAX}));
}

// Few places and many changes: long runs in the index, which removals have to keep searchable.
static void random_changes_agree_with_a_plain_list(void **state) {
    (void)state;
    enum { PLACES = 8 * 8 * 4 };
    static chunk_ref expected[PLACES];
    uint64_t random = test_seed("random_changes_agree");
    chunk_table table = table_make();
    memset(expected, 0, sizeof expected);
    uint32_t count = 0;
    for (uint64_t step = 0; step < test_size(20000, 200000, 2000000); ++step) {
        uint32_t place = (uint32_t)(test_random(&random) % PLACES);
        chunk_coord coord = {(int32_t)(place % 8) - 4, (int32_t)(place / 64), (int32_t)(place / 8 % 8) - 4};
        chunk_ref found = chunk_table_find(&table, coord);
        assert_int_equal(found.generation, expected[place].generation);
        if (found.generation != 0) {
            assert_int_equal(found.slot, expected[place].slot);
            assert_memory_equal(&chunk_table_get(&table, found)->coord, &coord, sizeof coord);
            assert_true(chunk_table_remove(&table, found));
            expected[place] = (chunk_ref){0, 0};
            --count;
        } else {
            expected[place] = chunk_table_add(&table, coord);
            assert_int_equal(expected[place].generation != 0, count < SLOTS);
            count += expected[place].generation != 0;
        }
        assert_int_equal(table.slot_count, count);
        assert_int_equal(table.state_counts[CHUNK_EMPTY], count);
    }
}

TEST_MAIN(cmocka_unit_test(wanted_chunks_come_nearest_first_and_each_once),
          cmocka_unit_test(the_first_wanted_chunk_is_the_cameras), cmocka_unit_test(the_order_is_total),
          cmocka_unit_test(a_radius_out_of_range_is_refused),
          cmocka_unit_test(what_is_wanted_is_not_far_from_neighbouring_places),
          cmocka_unit_test(voxels_below_zero_are_in_chunks_below_zero),
          cmocka_unit_test(a_chunk_that_comes_back_has_a_new_generation), cmocka_unit_test(generations_never_are_zero),
          cmocka_unit_test(states_follow_each_other_and_are_counted), cmocka_unit_test(a_full_table_refuses_and_counts),
          cmocka_unit_test(wrong_sizes_and_references_are_refused),
          cmocka_unit_test(random_changes_agree_with_a_plain_list))
