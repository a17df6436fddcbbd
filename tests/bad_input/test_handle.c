// SPDX-License-Identifier: MIT
// nebula/handle.h: pools that are none or too large, handles of no pool, states that make no sense.

#include "bad_input/bad_input.h"

#include "nebula/handle.h"

static const nb_handle bad_handles[] = {
    {0},                                                                  // null
    {7},                                                                  // an index without a generation
    {(uint64_t)2 << NB_HANDLE_INDEX_BITS},                                // a generation of a slot that is not live
    {(uint64_t)9 << NB_HANDLE_INDEX_BITS},                                // one the slot has never had
    {(uint64_t)1 << NB_HANDLE_INDEX_BITS | (NB_HANDLE_CAPACITY_MAX - 1)}, // an index past the end
    {UINT64_MAX},
};
#define BAD_HANDLE_COUNT (sizeof bad_handles / sizeof bad_handles[0])

TEST(handle_pool_refuses_a_bad_desc) {
    test_heap heap = {0};
    nb_handle_pool *pool = UNTOUCHED(nb_handle_pool);
    nb_handle_pool_desc fine = {.capacity = 4, .hooks = bad_hooks(&heap)}, bad[] = {fine, fine, fine};
    bad[0].capacity = NB_HANDLE_CAPACITY_MAX + 1;
    bad[1].capacity = UINT32_MAX;
    bad[2].use_count_max = NB_HANDLE_USE_COUNT_MAX + 1;
    for (int i = 0; i < 3; ++i) {
        refused(NB_ERR_RANGE, NB_ITEM_HANDLE_ARGUMENT, nb_handle_pool_create(&bad[i], &pool));
    }
    refused(NB_ERR_MISUSE, NB_ITEM_HANDLE_ARGUMENT, nb_handle_pool_create(&fine, NULL));
    refused_default(NB_ERR_MISUSE, NB_ITEM_HANDLE_ARGUMENT, nb_handle_pool_create(NULL, NULL));
    assert_int_equal(heap.call_count.value, 0);
    refused_memory(heap, 1, pool, nb_handle_pool_create(&fine, &pool));
    silent(nb_handle_pool_destroy(NULL));
}

TEST(handle_functions_refuse_a_null_pool) {
    nb_handle handle = {0x5A5A};
    uint32_t index = 0x5A;
    nb_handle_pool_bytes bytes = {&handle, 1};
    nb_handle_pool_stats stats = {.capacity = 1};
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_handle_pool_acquire(NULL, &handle));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_handle_pool_find(NULL, handle, &index));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_handle_pool_release(NULL, handle));
    refused_default(0, NB_ITEM_BASE_NULL, nb_handle_pool_next(NULL, handle).value);
    refused_default(false, NB_ITEM_BASE_NULL, nb_handle_pool_is_valid(NULL));
    reported_default(NB_ITEM_BASE_NULL, bytes = nb_handle_pool_state(NULL));
    assert_zero(bytes);
    reported_default(NB_ITEM_BASE_NULL, stats = nb_handle_pool_stats_get(NULL));
    assert_zero(stats);
    accepted(false, nb_handle_pool_is_live(NULL, handle)); // a question, asked too often to be reported
    assert_int_equal(handle.value, 0x5A5A);
    assert_int_equal(index, 0x5A);
}

TEST(bad_handles_leave_the_pool_as_it_is) {
    nb_handle_pool *pool = NULL;
    nb_handle live = {0}, gone = {0};
    uint32_t index = 0x5A;
    assert_int_equal(nb_handle_pool_create(&(nb_handle_pool_desc){.capacity = 4, .hooks = bad_hooks(NULL)}, &pool),
                     NB_OK);
    nb_handle_pool_acquire(pool, &gone);
    nb_handle_pool_acquire(pool, &live);
    nb_handle_pool_release(pool, gone);
    refused(NB_ERR_STALE, NB_ITEM_HANDLE_STALE, nb_handle_pool_release(pool, gone));
    for (size_t i = 0; i < BAD_HANDLE_COUNT; ++i) {
        refused(NB_ERR_STALE, NB_ITEM_HANDLE_STALE, nb_handle_pool_release(pool, bad_handles[i]));
        accepted(NB_ERR_STALE, nb_handle_pool_find(pool, bad_handles[i], &index)); // counted, not reported
        accepted(false, nb_handle_pool_is_live(pool, bad_handles[i]));
    }
    assert_int_equal(nb_handle_pool_stats_get(pool).stale_count, 2 * BAD_HANDLE_COUNT + 1);
    refused(NB_ERR_MISUSE, NB_ITEM_HANDLE_ARGUMENT, nb_handle_pool_find(pool, live, NULL));
    refused(NB_ERR_MISUSE, NB_ITEM_HANDLE_ARGUMENT, nb_handle_pool_acquire(pool, NULL));
    accepted(0, nb_handle_pool_next(pool, bad_handles[4]).value); // behind the last slot
    accepted(0, nb_handle_index(bad_handles[0]) + nb_handle_generation(bad_handles[0]));
    assert_int_equal(index, 0x5A);
    assert_true(nb_handle_pool_is_valid(pool));
    assert_int_equal(nb_handle_pool_find(pool, live, &index), NB_OK);
    assert_int_equal(index, 1);
    assert_int_equal(nb_handle_pool_stats_get(pool).live_count, 1);
    nb_handle_pool_destroy(pool);
}

// Bytes that a save file may hold: each 32-bit word of the header in turn is nonsense.
TEST(handle_pool_survives_a_state_that_makes_no_sense) {
    nb_handle_pool *pool = NULL;
    nb_handle handles[3] = {{0}};
    assert_int_equal(nb_handle_pool_create(&(nb_handle_pool_desc){.capacity = 4, .hooks = bad_hooks(NULL)}, &pool),
                     NB_OK);
    for (int i = 0; i < 3; ++i) nb_handle_pool_acquire(pool, &handles[i]);
    nb_handle_pool_release(pool, handles[0]);
    nb_handle_pool_bytes bytes = nb_handle_pool_state(pool);
    unsigned char saved[256];
    assert_true(bytes.size_bytes <= sizeof saved);
    memcpy(saved, bytes.bytes, bytes.size_bytes);
    for (size_t word = 0; word < 6; ++word) {
        memset((unsigned char *)bytes.bytes + 4 * word, 0xFE, 4);
        refused(false, NB_ITEM_BASE_CORRUPT, nb_handle_pool_is_valid(pool));
        nb_handle handle = {0};
        listen_begin();
        nb_result acquired = nb_handle_pool_acquire(pool, &handle);
        nb_result released = nb_handle_pool_release(pool, handles[1]);
        listen_end();
        assert_true(acquired == NB_OK || acquired == NB_FULL || acquired == NB_ERR_RANGE);
        assert_true(released == NB_OK || released == NB_ERR_RANGE);
        memcpy(bytes.bytes, saved, bytes.size_bytes);
    }
    assert_true(nb_handle_pool_is_valid(pool));
    nb_handle_pool_destroy(pool);
}
