// SPDX-License-Identifier: MIT
// Generation handles: stale handles are found for ever, order of reuse, retiring, saved state, bad input.

#include "support/support.h"

#include "nebula/handle.h"

static nb_handle_pool *pool_with(uint32_t capacity, uint64_t use_count_max, test_log *log, test_heap *heap) {
    nb_handle_pool_desc desc = {.capacity = capacity, .use_count_max = use_count_max, .hooks = test_hooks(log, heap)};
    nb_handle_pool *pool = NULL;
    assert_int_equal(nb_handle_pool_create(&desc, &pool), NB_OK);
    return pool;
}

static nb_handle acquire(nb_handle_pool *pool) {
    nb_handle handle = {0};
    assert_int_equal(nb_handle_pool_acquire(pool, &handle), NB_OK);
    return handle;
}

TEST(handle_of_released_slot_is_stale_for_ever) {
    test_log log = {0};
    test_heap heap = {0};
    nb_handle_pool *pool = pool_with(1, 0, &log, &heap);
    nb_handle first = acquire(pool);
    uint32_t index = 99;
    assert_int_equal(nb_handle_pool_find(pool, first, &index), NB_OK);
    assert_int_equal(index, 0);
    assert_int_equal(nb_handle_pool_release(pool, first), NB_OK);
    for (int i = 0; i < 100; ++i) {
        nb_handle next = acquire(pool);
        assert_int_equal(nb_handle_index(next), 0);
        assert_true(nb_handle_generation(next) > nb_handle_generation(first));
        assert_true(nb_handle_pool_is_live(pool, next));
        assert_false(nb_handle_pool_is_live(pool, first));
        assert_int_equal(nb_handle_pool_find(pool, first, &index), NB_ERR_STALE);
        assert_int_equal(nb_handle_pool_release(pool, first), NB_ERR_STALE);
        assert_int_equal(nb_handle_pool_release(pool, next), NB_OK);
    }
    assert_int_equal(nb_handle_pool_stats_get(pool).stale_count, 200);
    assert_int_equal(test_log_count(&log, NB_ITEM_HANDLE_STALE), 100);
    nb_handle_pool_destroy(pool);
    assert_int_equal(heap.live_count.value, 0);
}

TEST(handle_slots_are_reused_oldest_first_before_fresh_ones) {
    nb_handle_pool *pool = pool_with(6, 0, NULL, NULL);
    nb_handle handles[4];
    for (uint32_t i = 0; i < 4; ++i) {
        handles[i] = acquire(pool);
        assert_int_equal(nb_handle_index(handles[i]), i);
    }
    const uint32_t order[] = {2, 0, 3};
    for (int i = 0; i < 3; ++i) assert_int_equal(nb_handle_pool_release(pool, handles[order[i]]), NB_OK);
    for (int i = 0; i < 3; ++i) assert_int_equal(nb_handle_index(acquire(pool)), order[i]);
    assert_int_equal(nb_handle_index(acquire(pool)), 4);
    assert_int_equal(nb_handle_pool_stats_get(pool).used_count, 5);
    nb_handle_pool_destroy(pool);
}

TEST(handle_pool_full_refuses_and_recovers) {
    test_log log = {0};
    nb_handle_pool *pool = pool_with(3, 0, &log, NULL);
    nb_handle kept = acquire(pool);
    acquire(pool);
    acquire(pool);
    nb_handle refused = {42};
    assert_int_equal(nb_handle_pool_acquire(pool, &refused), NB_FULL);
    assert_int_equal(nb_handle_pool_acquire(pool, &refused), NB_FULL);
    assert_int_equal(refused.value, 42);
    assert_int_equal(nb_handle_pool_stats_get(pool).full_count, 2);
    assert_int_equal(test_log_count(&log, NB_ITEM_HANDLE_FULL), 1);
    assert_int_equal(nb_handle_pool_release(pool, kept), NB_OK);
    assert_int_equal(nb_handle_index(acquire(pool)), nb_handle_index(kept));
    assert_true(nb_handle_pool_is_valid(pool));
    nb_handle_pool_destroy(pool);
}

TEST(handle_slot_out_of_generations_is_retired) {
    test_log log = {0};
    nb_handle_pool *pool = pool_with(2, 3, &log, NULL);
    nb_handle seen[6];
    for (int i = 0; i < 6; ++i) { // two slots, three uses each
        seen[i] = acquire(pool);
        for (int j = 0; j < i; ++j) assert_int_not_equal(seen[i].value, seen[j].value);
        assert_int_equal(nb_handle_pool_release(pool, seen[i]), NB_OK);
        assert_true(nb_handle_pool_is_valid(pool));
    }
    nb_handle none = {0};
    assert_int_equal(nb_handle_pool_acquire(pool, &none), NB_FULL);
    assert_int_equal(nb_handle_pool_stats_get(pool).retired_count, 2);
    for (int i = 0; i < 6; ++i) assert_false(nb_handle_pool_is_live(pool, seen[i]));
    nb_handle_pool_destroy(pool);
}

TEST(handle_walk_visits_live_slots_in_order_while_releasing) {
    nb_handle_pool *pool = pool_with(16, 0, NULL, NULL);
    nb_handle handles[10];
    for (int i = 0; i < 10; ++i) handles[i] = acquire(pool);
    nb_handle_pool_release(pool, handles[0]);
    nb_handle_pool_release(pool, handles[7]);
    uint32_t visited = 0, last_index = 0;
    for (nb_handle handle = nb_handle_pool_next(pool, (nb_handle){0}); handle.value != 0;
         handle = nb_handle_pool_next(pool, handle)) {
        assert_true(nb_handle_index(handle) > last_index);
        last_index = nb_handle_index(handle);
        ++visited;
        if (visited % 2 == 0) assert_int_equal(nb_handle_pool_release(pool, handle), NB_OK);
    }
    assert_int_equal(visited, 8);
    assert_int_equal(nb_handle_pool_stats_get(pool).live_count, 4);
    nb_handle_pool_destroy(pool);
}

// A model that forgets nothing: every handle ever given out, and whether it is live.
#define MODEL_MAX 6000
typedef struct model {
    nb_handle handles[MODEL_MAX];
    bool is_live[MODEL_MAX];
    uint32_t count, live_count;
} model;

static void model_step(model *seen, nb_handle_pool *pool, uint32_t capacity, uint64_t pick) {
    uint32_t chosen = seen->count == 0 ? 0 : (uint32_t)((pick >> 8) % seen->count);
    if (pick % 2 == 0 || seen->count == 0) {
        nb_handle handle = {0};
        nb_result result = nb_handle_pool_acquire(pool, &handle);
        assert_int_equal(result, seen->live_count == capacity ? NB_FULL : NB_OK);
        if (result != NB_OK) return;
        for (uint32_t i = 0; i < seen->count; ++i) assert_int_not_equal(handle.value, seen->handles[i].value);
        seen->handles[seen->count] = handle;
        seen->is_live[seen->count++] = true;
        seen->live_count += 1;
    } else {
        nb_result expected = seen->is_live[chosen] ? NB_OK : NB_ERR_STALE;
        assert_int_equal(nb_handle_pool_release(pool, seen->handles[chosen]), expected);
        if (expected != NB_OK) return;
        seen->is_live[chosen] = false;
        seen->live_count -= 1;
    }
}

TEST(handle_random_history_agrees_with_a_model) {
    uint64_t random = test_seed(__func__);
    test_log log = {0};
    const uint32_t capacity = 37;
    nb_handle_pool *pool = pool_with(capacity, 0, &log, NULL);
    model *seen = (model *)calloc(1, sizeof *seen);
    assert_non_null(seen);
    uint64_t steps = test_size(4000, 10000, 10000); // half of them acquire: within MODEL_MAX
    for (uint64_t step = 0; step < steps && seen->count < MODEL_MAX; ++step) {
        model_step(seen, pool, capacity, test_random(&random));
        if (step % 64 != 0) continue;
        assert_true(nb_handle_pool_is_valid(pool));
        assert_int_equal(nb_handle_pool_stats_get(pool).live_count, seen->live_count);
        for (uint32_t i = 0; i < seen->count; ++i) {
            assert_int_equal(nb_handle_pool_is_live(pool, seen->handles[i]), seen->is_live[i]);
        }
    }
    free(seen);
    nb_handle_pool_destroy(pool);
}

TEST(handle_state_copied_back_repeats_history) {
    test_heap heap = {0}; // its memory is never zero: padding left alone would show in the bytes
    nb_handle_pool *pool = pool_with(8, 0, NULL, &heap);
    nb_handle_pool *twin = pool_with(8, 0, NULL, &heap);
    nb_handle first = acquire(pool), second = acquire(pool);
    nb_handle_pool_release(pool, first);
    nb_handle_pool_bytes from = nb_handle_pool_state(pool), to = nb_handle_pool_state(twin);
    assert_int_equal(from.size_bytes, to.size_bytes);
    memcpy(to.bytes, from.bytes, from.size_bytes);
    assert_true(nb_handle_pool_is_valid(twin));
    assert_true(nb_handle_pool_is_live(twin, second));
    assert_false(nb_handle_pool_is_live(twin, first));
    for (int i = 0; i < 5; ++i) assert_int_equal(acquire(pool).value, acquire(twin).value);
    assert_memory_equal(from.bytes, to.bytes, from.size_bytes);
    nb_handle_pool_destroy(pool);
    nb_handle_pool_destroy(twin);
    assert_int_equal(heap.live_count.value, 0);
}

// Whatever bytes are loaded, no call may touch memory outside the pool; ASan builds would see it.
TEST(handle_state_of_random_bytes_is_found_and_harmless) {
    uint64_t random = test_seed(__func__);
    test_log log = {0};
    nb_handle_pool *pool = pool_with(8, 0, &log, NULL);
    nb_handle_pool_bytes state = nb_handle_pool_state(pool);
    uint8_t *good = (uint8_t *)malloc(state.size_bytes);
    assert_non_null(good);
    for (int i = 0; i < 3; ++i) nb_handle_pool_release(pool, acquire(pool));
    for (int i = 0; i < 5; ++i) acquire(pool);
    memcpy(good, state.bytes, state.size_bytes);
    uint64_t rounds = test_size(2000, 20000, 200000);
    for (uint64_t round = 0; round < rounds; ++round) {
        memcpy(state.bytes, good, state.size_bytes);
        for (uint64_t flips = test_random(&random) % 6 + 1; flips > 0; --flips) {
            ((uint8_t *)state.bytes)[test_random(&random) % state.size_bytes] = (uint8_t)test_random(&random);
        }
        (void)nb_handle_pool_is_valid(pool);
        nb_handle handle = {0};
        for (int i = 0; i < 10; ++i) {
            nb_handle_pool_acquire(pool, &handle);
            if (test_random(&random) % 2 == 0) nb_handle_pool_release(pool, handle);
        }
        for (handle.value = 0; (handle = nb_handle_pool_next(pool, handle)).value != 0;) continue;
    }
    memset(state.bytes, 0x5A, state.size_bytes);
    assert_false(nb_handle_pool_is_valid(pool));
    assert_true(test_log_count(&log, NB_ITEM_BASE_CORRUPT) > 0);
    memcpy(state.bytes, good, state.size_bytes);
    assert_true(nb_handle_pool_is_valid(pool));
    free(good);
    nb_handle_pool_destroy(pool);
}

// The same state has the same bytes: links of slots that do not wait are zero, and whoever looks for the end of the
// chain finds one.
TEST(handle_state_with_a_stray_link_is_found) {
    test_log log = {0};
    nb_handle_pool *pool = pool_with(4, 2, &log, NULL);
    nb_handle_pool_bytes state = nb_handle_pool_state(pool);
    uint32_t *links = (uint32_t *)(void *)((char *)state.bytes + state.size_bytes - 4 * sizeof(uint32_t));
    nb_handle first = acquire(pool), second = acquire(pool), third = acquire(pool);
    nb_handle_pool_release(pool, second);
    nb_handle_pool_release(pool, first);
    nb_handle_pool_release(pool, acquire(pool)); // the second's slot retires; the first's waits, the third's lives
    assert_true(nb_handle_pool_is_live(pool, third));
    assert_true(nb_handle_pool_is_valid(pool));
    for (uint32_t slot = 1; slot < 4; ++slot) {
        links[slot] = UINT32_MAX;
        assert_false(nb_handle_pool_is_valid(pool));
        links[slot] = 0;
        assert_true(nb_handle_pool_is_valid(pool));
    }
    nb_handle_pool_destroy(pool);
}

TEST(handle_bad_arguments_are_refused) {
    test_log log = {0};
    nb_handle_pool *pool = pool_with(2, 0, &log, NULL);
    nb_handle handle = {0};
    uint32_t index = 7;
    assert_int_equal(nb_handle_pool_acquire(NULL, &handle), NB_ERR_MISUSE);
    assert_int_equal(nb_handle_pool_acquire(pool, NULL), NB_ERR_MISUSE);
    assert_int_equal(nb_handle_pool_release(NULL, handle), NB_ERR_MISUSE);
    assert_int_equal(nb_handle_pool_find(NULL, handle, &index), NB_ERR_MISUSE);
    assert_int_equal(nb_handle_pool_find(pool, handle, NULL), NB_ERR_MISUSE);
    assert_false(nb_handle_pool_is_live(NULL, handle));
    assert_false(nb_handle_pool_is_valid(NULL));
    assert_int_equal(nb_handle_pool_next(NULL, handle).value, 0);
    assert_null(nb_handle_pool_state(NULL).bytes);
    assert_int_equal(nb_handle_pool_stats_get(NULL).capacity, 0);
    nb_handle_pool_destroy(NULL);

    // Null, never given out, out of range, of the next generation, all bits.
    const uint64_t values[] = {0, 1ull << 24 | 1, 1ull << 24 | 0xFFFFFF, 2ull << 24, 3ull << 24, UINT64_MAX};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; ++i) {
        assert_false(nb_handle_pool_is_live(pool, (nb_handle){values[i]}));
        assert_int_equal(nb_handle_pool_find(pool, (nb_handle){values[i]}, &index), NB_ERR_STALE);
        assert_int_equal(nb_handle_pool_release(pool, (nb_handle){values[i]}), NB_ERR_STALE);
    }
    assert_int_equal(index, 7);
    assert_int_equal(nb_handle_pool_stats_get(pool).live_count, 0);
    assert_true(nb_handle_pool_is_valid(pool));
    nb_handle_pool_destroy(pool);

    nb_handle_pool_desc desc = {.capacity = NB_HANDLE_CAPACITY_MAX + 1, .hooks = test_hooks(&log, NULL)};
    assert_int_equal(nb_handle_pool_create(&desc, &pool), NB_ERR_RANGE);
    desc = (nb_handle_pool_desc){.use_count_max = NB_HANDLE_USE_COUNT_MAX + 1, .hooks = test_hooks(&log, NULL)};
    assert_int_equal(nb_handle_pool_create(&desc, &pool), NB_ERR_RANGE);
    assert_int_equal(nb_handle_pool_create(&desc, NULL), NB_ERR_MISUSE);
    assert_int_equal(test_log_count(&log, NB_ITEM_HANDLE_ARGUMENT), 5);
}

TEST(handle_pool_without_memory_is_not_created) {
    test_log log = {0};
    test_heap heap = {.fail_at = 1};
    nb_handle_pool_desc desc = nb_handle_pool_desc_default();
    desc.hooks = test_hooks(&log, &heap);
    nb_handle_pool *pool = NULL;
    assert_int_equal(nb_handle_pool_create(&desc, &pool), NB_ERR_MEMORY);
    assert_null(pool);
    assert_int_equal(heap.live_count.value, 0);
    assert_int_equal(nb_handle_pool_create(&desc, &pool), NB_OK);
    assert_int_equal(pool->capacity, desc.capacity);
    nb_handle_pool_destroy(pool);
}
