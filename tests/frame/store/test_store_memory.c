// SPDX-License-Identifier: MIT
// A world's memory: every failed allocation is a clean error, and none happens once the tables are declared.

#include "frame/store/store_fixture.h"

static nb_result declare_all(const nb_hooks *hooks, nb_store **world) {
    return declare_two_tables((nb_store_desc){.hooks = *hooks}, world);
}

static uint32_t declare_with_failing_heap(bool is_lasting) {
    static test_log log;
    for (uint32_t n = 1;; ++n) {
        memset(&log, 0, sizeof log);
        test_heap heap = test_heap_failing(n, is_lasting);
        nb_hooks hooks = test_hooks(&log, &heap);
        nb_store *world = NULL;
        nb_result result = declare_all(&hooks, &world);
        assert_ok_or_no_memory(result, &log);
        // The table that failed is not there, and its name is free.
        if (result != NB_OK && world != NULL) {
            nb_table_desc again = {
                .name = "units", .row_count_max = 100, .columns = unit_columns, .column_count = UNIT_COLUMNS};
            nb_table table = nb_store_table_find(world, "units");
            heap.fail_at = heap.fail_from = 0;
            if (table.value == 0) assert_int_equal(nb_store_table_add(world, &again, &table), NB_OK);
            nb_entity entity;
            assert_int_equal(nb_store_spawn(world, table, &entity), NB_OK);
            assert_true(nb_store_is_valid(world));
        }
        nb_store_destroy(world);
        assert_int_equal(heap.live_count.value, 0);
        assert_int_equal(heap.live_bytes.value, 0);
        if (result == NB_OK) return n - 1;
    }
}

TEST(declaration_survives_every_failed_allocation) {
    assert_int_equal(declare_with_failing_heap(false), 9); // the world; columns, rows and two pools of each table
    assert_int_equal(declare_with_failing_heap(true), 9);
}

TEST(running_world_calls_no_heap) {
    test_heap heap = {0};
    nb_hooks hooks = test_hooks(NULL, &heap);
    fixture f = fixture_open(1000, &hooks);
    static unsigned char memory[1 << 16], bytes[1 << 18];
    nb_store_stage stage, *stages[1] = {&stage};
    nb_store_stage_desc desc = {.memory = memory, .size_bytes = sizeof memory};
    uint64_t calls = heap.call_count.value;
    size_t written = 0;
    assert_int_equal(nb_store_stage_init(&stage, f.world, &desc), NB_OK);
    for (uint32_t tick = 0; tick < 100; ++tick) {
        assert_int_equal(nb_store_tick_begin(f.world), NB_OK);
        for (uint32_t i = 0; i < 20; ++i) nb_store_stage_spawn(&stage, f.units, NULL);
        for (uint32_t i = 0; i < 12; ++i) {
            nb_entity entity = nb_store_entity(f.world, f.units, i * 3);
            if (entity.value != 0) nb_store_stage_despawn(&stage, entity);
        }
        assert_int_equal(nb_store_apply(f.world, stages, 1), NB_OK);
        assert_int_equal(nb_store_tick_end(f.world), NB_OK);
        assert_int_equal(nb_store_stage_reset(&stage), NB_OK);
        nb_store_hash(f.world);
        assert_int_equal(nb_store_save(f.world, NB_SAVE_HISTORY, bytes, sizeof bytes, &written), NB_OK);
        assert_int_equal(nb_store_load(f.world, bytes, written), NB_OK);
    }
    assert_int_equal(heap.call_count.value, calls);
    nb_store_destroy(f.world);
    assert_int_equal(heap.live_count.value, 0);
}
