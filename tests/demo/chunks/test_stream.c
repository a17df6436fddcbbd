// SPDX-License-Identifier: MIT
// The table that holds the demo's chunks.

#include "support/support.h"

#include "demo/chunks/chunk_table.h"

#define SLOTS 200
static chunk_slot memory[2 * SLOTS];

static chunk_table table_make(void) {
    chunk_table table;
    assert_true(chunk_table_size_bytes(SLOTS) <= sizeof memory);
    memset(memory, 0xA5, sizeof memory);
    assert_true(chunk_table_init(&table, memory, SLOTS));
    return table;
}

TEST(a_chunk_that_comes_back_has_a_new_generation) {
    chunk_table table = table_make();
    lod_node node = {3, 1, 4, 9, 0};
    chunk_ref first = chunk_table_add(&table, node);
    assert_true(first.generation != 0);
    assert_true(chunk_table_advance(&table, first, CHUNK_GENERATING));
    assert_int_equal(chunk_table_add(&table, node).generation, 0);
    assert_true(chunk_table_remove(&table, first));
    assert_null(chunk_table_get(&table, first));
    chunk_ref second = chunk_table_add(&table, node);
    assert_int_equal(second.slot, first.slot);
    assert_true(second.generation != 0 && second.generation != first.generation);
    // The old chunk's job comes too late.
    assert_false(chunk_table_advance(&table, first, CHUNK_GENERATED));
    assert_false(chunk_table_remove(&table, first));
    assert_int_equal(chunk_table_get(&table, second)->state, CHUNK_EMPTY);
}

TEST(generations_never_are_zero) {
    chunk_table table = table_make();
    lod_node node = {1, 1, 1, 1, 0};
    chunk_ref ref = chunk_table_add(&table, node);
    table.slots[ref.slot].generation = UINT32_MAX;
    ref.generation = UINT32_MAX;
    assert_true(chunk_table_remove(&table, ref));
    assert_int_equal(chunk_table_add(&table, node).generation, 1);
}

TEST(states_follow_each_other_and_are_counted) {
    chunk_table table = table_make();
    chunk_ref ref = chunk_table_add(&table, (lod_node){0, 0, 0, 0, 0});
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

TEST(a_full_table_refuses_and_counts) {
    chunk_table table = table_make();
    for (int32_t i = 0; i < SLOTS; ++i)
        assert_true(chunk_table_add(&table, (lod_node){5, 0, (uint8_t)(i % 128), (uint8_t)(i / 128), 0}).generation !=
                    0);
    assert_int_equal(chunk_table_add(&table, (lod_node){4, 0, 0, 0, 0}).generation, 0);
    assert_int_equal(table.full_count, 1);
    assert_int_equal(chunk_table_find(&table, (lod_node){4, 0, 0, 0, 0}).generation, 0);
    assert_true(chunk_table_remove(&table, chunk_table_find(&table, (lod_node){5, 0, 7, 0, 0})));
    assert_true(chunk_table_add(&table, (lod_node){4, 0, 0, 0, 0}).generation != 0);
}

TEST(wrong_sizes_and_references_are_refused) {
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
TEST(random_changes_agree_with_a_plain_list) {
    enum { PLACES = 8 * 8 * 4 };
    static chunk_ref expected[PLACES];
    uint64_t random = test_seed("random_changes_agree");
    chunk_table table = table_make();
    memset(expected, 0, sizeof expected);
    uint32_t count = 0;
    for (uint64_t step = 0; step < test_size(20000, 200000, 2000000); ++step) {
        uint32_t place = (uint32_t)(test_random(&random) % PLACES);
        lod_node node = {(uint8_t)(place / 64), (uint8_t)(place / 32 % 2), (uint8_t)(place % 8),
                         (uint8_t)(place / 8 % 4), 0};
        chunk_ref found = chunk_table_find(&table, node);
        assert_int_equal(found.generation, expected[place].generation);
        if (found.generation != 0) {
            assert_int_equal(found.slot, expected[place].slot);
            assert_memory_equal(&chunk_table_get(&table, found)->node, &node, sizeof node);
            assert_true(chunk_table_remove(&table, found));
            expected[place] = (chunk_ref){0, 0};
            --count;
        } else {
            expected[place] = chunk_table_add(&table, node);
            assert_int_equal(expected[place].generation != 0, count < SLOTS);
            count += expected[place].generation != 0;
        }
        assert_int_equal(table.slot_count, count);
        assert_int_equal(table.state_counts[CHUNK_EMPTY], count);
    }
}
