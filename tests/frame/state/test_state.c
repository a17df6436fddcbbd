// SPDX-License-Identifier: MIT
// State providers: the hash follows the state, a save brings it back, and what is no save changes nothing.

#include "support/support.h"

#include "nebula/state.h"

typedef struct bench {
    nb_states *states;
    test_heap heap;
    test_log log;
    uint32_t points[4];
    uint64_t local;
    // Somebody's own: rows of a list, through callbacks.
    uint32_t rows[256];
    uint32_t row_count;
    nb_result load_result;
    uint32_t load_count;
    uint64_t hash_count;
} bench;

static size_t rows_save(void *user, void *bytes, size_t capacity_bytes) {
    const bench *b = user;
    size_t size = b->row_count * sizeof b->rows[0];
    if (size <= capacity_bytes && bytes != NULL) memcpy(bytes, b->rows, size);
    return size;
}

static nb_result rows_load(void *user, const void *bytes, size_t size_bytes) {
    bench *b = user;
    ++b->load_count;
    if (b->load_result != NB_OK) {
        nb_result result = b->load_result;
        b->load_result = NB_OK; // the way back works
        return result;
    }
    if (size_bytes > sizeof b->rows || size_bytes % sizeof b->rows[0] != 0) return NB_ERR_RANGE;
    memcpy(b->rows, bytes, size_bytes);
    b->row_count = (uint32_t)(size_bytes / sizeof b->rows[0]);
    return NB_OK;
}

static uint64_t rows_hash(void *user) {
    bench *b = user;
    ++b->hash_count;
    return b->row_count;
}

static nb_provider add(bench *b, nb_provider_desc desc) {
    nb_provider state = {0};
    assert_int_equal(nb_states_add(b->states, &desc, &state), NB_OK);
    return state;
}

static void open_empty(bench *b) {
    memset(b, 0, sizeof *b);
    nb_states_desc desc = {.hooks = test_hooks(&b->log, &b->heap)};
    assert_int_equal(nb_states_create(&desc, &b->states), NB_OK);
}

static void open_full(bench *b) {
    open_empty(b);
    add(b, (nb_provider_desc){.name = "points", .data = b->points, .size_bytes = sizeof b->points});
    add(b, (nb_provider_desc){.name = "rows", .save = rows_save, .load = rows_load, .user = b});
    add(b, (nb_provider_desc){
               .name = "local", .data = &b->local, .size_bytes = sizeof b->local, .flags = NB_PROVIDER_LOCAL});
}

static size_t save_full(const bench *b, unsigned char bytes[1024]) {
    size_t size = 0;
    assert_int_equal(nb_states_save(b->states, bytes, 1024, &size), NB_OK);
    return size;
}

static void close_bench(bench *b) {
    nb_states_destroy(b->states);
    assert_int_equal(b->heap.live_count.value, 0);
}

TEST(hash_follows_what_is_not_local) {
    bench b;
    open_full(&b);
    uint64_t empty = nb_states_hash(b.states);
    assert_true(empty != 0);
    b.local = 7;
    assert_true(nb_states_hash(b.states) == empty);
    b.points[2] = 1;
    uint64_t scored = nb_states_hash(b.states);
    assert_true(scored != empty);
    b.rows[0] = 5, b.row_count = 1;
    assert_true(nb_states_hash(b.states) != scored);
    b.row_count = 0, b.points[2] = 0;
    assert_true(nb_states_hash(b.states) == empty);
    close_bench(&b);
}

TEST(hash_does_not_depend_on_the_order_of_adding) {
    bench b, other;
    open_full(&b);
    open_empty(&other);
    add(&other, (nb_provider_desc){.name = "rows", .save = rows_save, .load = rows_load, .user = &other});
    add(&other, (nb_provider_desc){.name = "points", .data = other.points, .size_bytes = sizeof other.points});
    assert_true(nb_states_hash(b.states) == nb_states_hash(other.states));
    const char *name = NULL;
    assert_true(nb_states_at(other.states, 0, &name).value != 0);
    assert_string_equal(name, "points");
    assert_true(nb_states_at(other.states, 2, &name).value == 0);
    assert_string_equal(name, "");
    // A name is part of the state: two that change places are not the same.
    other.points[0] = 1;
    assert_true(nb_states_hash(b.states) != nb_states_hash(other.states));
    close_bench(&b);
    close_bench(&other);
}

TEST(hash_of_its_own_is_used_and_needs_no_memory) {
    bench b;
    open_empty(&b);
    nb_provider rows =
        add(&b, (nb_provider_desc){.name = "r", .save = rows_save, .load = rows_load, .hash = rows_hash, .user = &b});
    uint64_t calls = b.heap.call_count.value;
    b.row_count = 9;
    assert_int_equal(nb_provider_hash(b.states, rows), 9);
    nb_states_hash(b.states);
    assert_int_equal(b.hash_count, 2);
    assert_int_equal(b.heap.call_count.value, calls);
    close_bench(&b);
}

TEST(hashing_uses_no_heap_after_it_has_warmed_up) {
    bench b;
    open_full(&b);
    b.row_count = 100;
    nb_states_hash(b.states);
    uint64_t calls = b.heap.call_count.value;
    for (uint32_t i = 0; i < 100; ++i) {
        b.rows[i] = i, b.row_count = 100 + i % 40; // within what it has grown to
        assert_true(nb_states_hash(b.states) != 0);
    }
    assert_int_equal(b.heap.call_count.value, calls);
    close_bench(&b);
}

TEST(save_brings_the_state_back) {
    bench b;
    open_full(&b);
    b.points[1] = 42, b.row_count = 3, b.rows[2] = 9, b.local = 1;
    uint64_t hash = nb_states_hash(b.states);
    unsigned char bytes[1024];
    size_t size = 0, needed = 0;
    assert_int_equal(nb_states_save(b.states, NULL, 0, &needed), NB_FULL);
    assert_int_equal(nb_states_save(b.states, bytes, needed - 1, &size), NB_FULL);
    assert_int_equal(size, needed);
    assert_int_equal(nb_states_save(b.states, bytes, sizeof bytes, &size), NB_OK);
    assert_int_equal(size, needed);
    memset(b.points, 0xFF, sizeof b.points);
    b.row_count = 200, b.local = 2;
    assert_int_equal(nb_states_load(b.states, bytes, size), NB_OK);
    assert_true(nb_states_hash(b.states) == hash);
    assert_int_equal(b.points[1], 42);
    assert_int_equal(b.row_count, 3);
    assert_int_equal(b.rows[2], 9);
    assert_int_equal(b.local, 2); // not part of a save
    unsigned char again[1024];
    memset(again, 0x77, sizeof again);
    assert_int_equal(nb_states_save(b.states, again, sizeof again, &size), NB_OK);
    assert_memory_equal(bytes, again, size);
    close_bench(&b);
}

TEST(damaged_saves_change_nothing) {
    bench b;
    open_full(&b);
    b.points[0] = 3, b.row_count = 5;
    unsigned char bytes[1024], damaged[1024];
    size_t size = 0;
    assert_int_equal(nb_states_save(b.states, bytes, sizeof bytes, &size), NB_OK);
    b.points[0] = 4;
    uint64_t hash = nb_states_hash(b.states);
    for (size_t cut = 0; cut < size; ++cut) assert_true(nb_states_load(b.states, bytes, cut) < 0);
    for (size_t bit = 0; bit < size * 8; ++bit) {
        memcpy(damaged, bytes, size);
        damaged[bit / 8] ^= (unsigned char)(1u << bit % 8);
        assert_true(nb_states_load(b.states, damaged, size) < 0);
    }
    memcpy(damaged, bytes, size);
    memset(damaged + size, 0, 8);
    assert_true(nb_states_load(b.states, damaged, size + 8) < 0);
    assert_true(nb_states_hash(b.states) == hash);
    assert_int_equal(b.load_count, 0);
    close_bench(&b);
}

TEST(save_of_other_providers_is_refused) {
    bench b;
    open_full(&b);
    unsigned char bytes[1024];
    size_t size = save_full(&b, bytes);
    uint64_t more = 0;
    nb_provider extra = add(&b, (nb_provider_desc){.name = "extra", .data = &more, .size_bytes = sizeof more});
    assert_int_equal(nb_states_load(b.states, bytes, size), NB_ERR_UNSUPPORTED);
    assert_int_equal(nb_states_remove(b.states, extra), NB_OK);
    assert_int_equal(nb_states_load(b.states, bytes, size), NB_OK);
    nb_provider points = nb_states_at(b.states, 1, NULL);
    assert_int_equal(nb_states_remove(b.states, points), NB_OK);
    assert_int_equal(nb_states_load(b.states, bytes, size), NB_ERR_UNSUPPORTED);
    add(&b, (nb_provider_desc){.name = "points", .data = b.points, .size_bytes = sizeof b.points, .layout_hash = 1});
    assert_int_equal(nb_states_load(b.states, bytes, size), NB_ERR_UNSUPPORTED);
    assert_int_equal(test_log_count(&b.log, NB_ITEM_STATE_SAVE), 3);
    close_bench(&b);
}

TEST(refused_load_puts_everything_back) {
    bench b;
    open_full(&b);
    b.points[0] = 1, b.row_count = 2;
    unsigned char bytes[1024];
    size_t size = save_full(&b, bytes);
    b.points[0] = 77, b.row_count = 8;
    uint64_t hash = nb_states_hash(b.states);
    b.load_result = NB_ERR_OS; // "rows" comes before "points", which is memory
    assert_int_equal(nb_states_load(b.states, bytes, size), NB_ERR_OS);
    assert_int_equal(b.points[0], 77);
    assert_true(nb_states_hash(b.states) == hash);
    close_bench(&b);
}

// Rows come and go where they are loaded, even as the same ones: a provider that was not reached is left alone.
TEST(refused_load_leaves_the_rest_alone) {
    bench b;
    open_full(&b);
    unsigned char bytes[1024];
    size_t size = save_full(&b, bytes);
    b.load_result = NB_ERR_OS;
    assert_int_equal(nb_states_load(b.states, bytes, size), NB_ERR_OS);
    assert_int_equal(b.load_count, 1);
    close_bench(&b);
}

// A plain struct of another size is seen before anything is loaded, also behind a list.
TEST(part_of_another_size_is_refused_before_anything_changes) {
    bench b, other;
    uint32_t tail[4] = {1, 2, 3, 4};
    open_full(&b);
    open_full(&other);
    add(&b, (nb_provider_desc){.name = "tail", .data = tail, .size_bytes = 12, .layout_hash = 9});
    add(&other, (nb_provider_desc){.name = "tail", .data = tail, .size_bytes = 16, .layout_hash = 9});
    unsigned char bytes[1024];
    size_t size = 0;
    assert_int_equal(nb_states_save(other.states, bytes, sizeof bytes, &size), NB_OK);
    assert_int_equal(nb_states_load(b.states, bytes, size), NB_ERR_RANGE);
    assert_int_equal(b.load_count, 0);
    assert_int_equal(nb_states_save(b.states, bytes, sizeof bytes, &size), NB_OK);
    assert_int_equal(nb_states_load(other.states, bytes, size), NB_ERR_RANGE);
    assert_int_equal(other.load_count, 0);
    close_bench(&b);
    close_bench(&other);
}

TEST(every_allocation_may_fail) {
    test_heap heap = {0};
    nb_states_desc desc = {.hooks = test_hooks(NULL, &heap)};
    desc.hooks.logger.level_min = NB_LOG_OFF;
    for (uint64_t i = 1; i <= 2; ++i) {
        nb_states *states = NULL;
        heap = (test_heap){.fail_at = i};
        assert_int_equal(nb_states_create(&desc, &states), NB_ERR_MEMORY);
        assert_null(states);
        assert_int_equal(heap.live_count.value, 0);
    }
    bench b;
    open_full(&b);
    b.row_count = 10;
    b.heap.fail_at = b.heap.call_count.value + 1;
    assert_int_equal(nb_states_hash(b.states), 0);
    assert_true(nb_states_hash(b.states) != 0);
    unsigned char bytes[1024];
    size_t size = save_full(&b, bytes);
    b.heap.fail_at = b.heap.call_count.value + 1;
    b.points[0] = 5;
    assert_int_equal(nb_states_load(b.states, bytes, size), NB_ERR_MEMORY);
    assert_int_equal(b.points[0], 5);
    close_bench(&b);
}

TEST(names_are_unique_and_places_limited) {
    bench b;
    memset(&b, 0, sizeof b);
    nb_states_desc desc = {.state_count_max = 2, .hooks = test_hooks(&b.log, &b.heap)};
    assert_int_equal(nb_states_create(&desc, &b.states), NB_OK);
    nb_provider a = add(&b, (nb_provider_desc){.name = "a", .data = b.points, .size_bytes = 4});
    nb_provider_desc same = {.name = "a", .data = b.points, .size_bytes = 4};
    assert_int_equal(nb_states_add(b.states, &same, NULL), NB_ERR_MISUSE);
    add(&b, (nb_provider_desc){.name = "b", .data = b.points, .size_bytes = 4});
    nb_provider_desc third = {.name = "c", .data = b.points, .size_bytes = 4};
    assert_int_equal(nb_states_add(b.states, &third, NULL), NB_FULL);
    assert_int_equal(nb_states_count(b.states), 2);
    assert_int_equal(nb_states_remove(b.states, a), NB_OK);
    assert_int_equal(nb_states_remove(b.states, a), NB_ERR_STALE);
    nb_provider again = add(&b, same);
    assert_true(again.value != a.value);
    close_bench(&b);
}
