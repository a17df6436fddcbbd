// SPDX-License-Identifier: MIT
// Tables, rows, entities, ticks and stages of a world, one promise at a time.

#include "frame/store/store_fixture.h"

// --- declaration ---

TEST(declared_tables_can_be_asked_for) {
    fixture f = fixture_plain(100);
    nb_table_info table;
    nb_column_info column;
    assert_int_equal(nb_store_table_count(f.world), 3);
    assert_int_equal(nb_store_table_find(f.world, "sparks").value, f.sparks.value);
    assert_int_equal(nb_store_table_find(f.world, "spark").value, 0);
    assert_int_equal(nb_store_table_info(f.world, f.units, &table), NB_OK);
    assert_string_equal(table.name, "units");
    assert_int_equal(table.row_count_max, 100);
    assert_int_equal(table.column_count, UNIT_COLUMNS);
    assert_int_equal(nb_store_column_info(f.world, f.units, POSITION, &column), NB_OK);
    assert_string_equal(column.name, "position");
    assert_int_equal(column.size_bytes, sizeof(vec3));
    assert_int_equal(column.flags, NB_COLUMN_SNAPSHOT | NB_COLUMN_INTERPOLATE | NB_COLUMN_SIMULATED);
    assert_int_equal(nb_store_column_info(f.world, f.sparks, SPARK_PLACE, &column), NB_OK);
    assert_int_equal(column.flags, NB_COLUMN_SNAPSHOT | NB_COLUMN_INTERPOLATE | NB_COLUMN_LOCAL);
    assert_int_equal(nb_store_desc_default().table_count_max, 64);
    assert_int_equal(nb_table_desc_default().row_count_max, 1024);
    assert_int_equal(nb_store_stage_desc_default().size_bytes, 0);
    nb_store_destroy(f.world);
}

TEST(names_are_copied) {
    nb_store *world = NULL;
    nb_table table;
    char table_name[] = "things", column_name[] = "count";
    nb_column_desc column = {.name = column_name, .size_bytes = 4};
    nb_table_desc desc = {.name = table_name, .columns = &column, .column_count = 1};
    assert_int_equal(nb_store_create(NULL, &world), NB_OK);
    assert_int_equal(nb_store_table_add(world, &desc, &table), NB_OK);
    memset(table_name, 'x', 6);
    memset(column_name, 'x', 5);
    nb_column_info info;
    assert_int_equal(nb_store_table_find(world, "things").value, table.value);
    assert_int_equal(nb_store_column_info(world, table, 0, &info), NB_OK);
    assert_string_equal(info.name, "count");
    nb_store_destroy(world);
}

TEST(singleton_has_its_row_from_the_start) {
    fixture f = fixture_plain(10);
    assert_int_equal(nb_store_row_count(f.world, f.clock), 1);
    assert_int_equal(*NB_STORE_SINGLETON(f.world, f.clock, CLOCK_TICK, uint64_t), 0);
    uint64_t before = nb_store_hash(f.world);
    *NB_STORE_SINGLETON_WRITE(f.world, f.clock, CLOCK_TICK, uint64_t) = 7;
    assert_int_equal(*NB_STORE_SINGLETON(f.world, f.clock, CLOCK_TICK, uint64_t), 7);
    assert_int_not_equal(nb_store_hash(f.world), before);
    nb_store_destroy(f.world);
}

// --- rows and entities ---

TEST(despawn_moves_the_last_row_and_no_entity) {
    fixture f = fixture_plain(10);
    nb_entity a = unit_spawn(&f, 1), b = unit_spawn(&f, 2), c = unit_spawn(&f, 3);
    assert_int_equal(nb_store_despawn(f.world, a), NB_OK);
    assert_int_equal(nb_store_row_count(f.world, f.units), 2);
    assert_int_equal(unit_row(&f, c), 0);
    assert_int_equal(unit_row(&f, b), 1);
    assert_int_equal(unit_health(&f, b), 2);
    assert_int_equal(unit_health(&f, c), 3);
    assert_int_equal(nb_store_entity(f.world, f.units, 0).value, c.value);
    assert_int_equal(nb_store_entity(f.world, f.units, 2).value, 0);
    assert_true(nb_store_is_valid(f.world));
    nb_store_destroy(f.world);
}

TEST(despawned_entity_is_stale_for_ever) {
    fixture f = fixture_plain(1);
    nb_entity first = unit_spawn(&f, 1);
    uint32_t row = 0;
    assert_int_equal(nb_store_despawn(f.world, first), NB_OK);
    for (int i = 0; i < 100; ++i) {
        nb_entity later = unit_spawn(&f, 2);
        assert_int_not_equal(later.value, first.value);
        assert_int_equal(nb_store_find(f.world, first, &row), NB_ERR_STALE);
        assert_int_equal(nb_store_despawn(f.world, later), NB_OK);
    }
    assert_int_equal(nb_store_find(f.world, (nb_entity){0}, &row), NB_ERR_STALE);
    nb_store_destroy(f.world);
}

TEST(entity_of_one_table_is_none_of_another) {
    fixture f = fixture_plain(10);
    nb_entity unit = unit_spawn(&f, 1), spark;
    assert_int_equal(nb_store_spawn(f.world, f.sparks, &spark), NB_OK);
    assert_int_not_equal(unit.value, spark.value);
    assert_int_equal(nb_entity_table(unit).value, f.units.value);
    assert_int_equal(nb_entity_table(spark).value, f.sparks.value);
    assert_int_equal(nb_store_despawn(f.world, unit), NB_OK);
    uint32_t row = 9;
    assert_int_equal(nb_store_find(f.world, spark, &row), NB_OK);
    assert_int_equal(row, 0);
    nb_store_destroy(f.world);
}

TEST(spawned_row_is_zero_also_where_another_was) {
    fixture f = fixture_plain(3);
    nb_entity entity = unit_spawn(&f, 77);
    *NB_STORE_ROW_WRITE(f.world, f.units, CACHE, uint16_t, 0) = 5;
    assert_int_equal(nb_store_despawn(f.world, entity), NB_OK);
    assert_int_equal(nb_store_spawn(f.world, f.units, &entity), NB_OK);
    assert_int_equal(*NB_STORE_ROW(f.world, f.units, HEALTH, uint32_t, 0), 0);
    assert_int_equal(*NB_STORE_ROW(f.world, f.units, CACHE, uint16_t, 0), 0);
    nb_store_destroy(f.world);
}

TEST(full_table_refuses_counts_and_logs_once) {
    static test_log log;
    fixture f = fixture_logged(65, &log); // one more than a block
    nb_entity entity = {0x5A};
    for (uint32_t i = 0; i < 65; ++i) unit_spawn(&f, i);
    assert_int_equal(nb_store_spawn(f.world, f.units, &entity), NB_FULL);
    assert_int_equal(nb_store_spawn(f.world, f.units, &entity), NB_FULL);
    assert_int_equal(entity.value, 0x5A);
    assert_int_equal(nb_store_stats_get(f.world).full_count, 2);
    assert_int_equal(test_log_count(&log, NB_ITEM_STORE_FULL), 1);
    assert_int_equal(nb_store_despawn(f.world, nb_store_entity(f.world, f.units, 64)), NB_OK);
    assert_int_equal(nb_store_spawn(f.world, f.units, &entity), NB_OK);
    assert_true(nb_store_is_valid(f.world));
    nb_store_destroy(f.world);
}

TEST(reference_outlives_nothing_but_its_own_life) {
    fixture f = fixture_plain(4);
    saved before = fixture_save(&f, NB_SAVE_HISTORY);
    nb_entity first = unit_spawn(&f, 1);
    nb_entity_ref first_ref, second_ref;
    uint32_t row = 9;
    assert_int_equal(nb_store_ref(f.world, first, &first_ref), NB_OK);
    assert_int_equal(nb_store_resolve(f.world, first_ref, &row), NB_OK);
    assert_int_equal(row, 0);
    saved with_first = fixture_save(&f, NB_SAVE_HISTORY);
    // Rewound, another one comes to life under the same entity.
    assert_int_equal(nb_store_load(f.world, before.bytes, before.size_bytes), NB_OK);
    assert_int_equal(nb_store_resolve(f.world, first_ref, &row), NB_ERR_STALE);
    nb_entity second = unit_spawn(&f, 2);
    assert_int_equal(second.value, first.value);
    assert_int_equal(nb_store_find(f.world, first, &row), NB_OK);
    assert_int_equal(nb_store_resolve(f.world, first_ref, &row), NB_ERR_STALE);
    assert_int_equal(nb_store_ref(f.world, second, &second_ref), NB_OK);
    assert_true(second_ref.incarnation > first_ref.incarnation);
    // Back where the first one lived: it is itself again.
    assert_int_equal(nb_store_load(f.world, with_first.bytes, with_first.size_bytes), NB_OK);
    assert_int_equal(nb_store_resolve(f.world, first_ref, &row), NB_OK);
    assert_int_equal(nb_store_resolve(f.world, second_ref, &row), NB_ERR_STALE);
    free(before.bytes);
    free(with_first.bytes);
    nb_store_destroy(f.world);
}

// --- writes ---

static uint64_t version_of(const fixture *f, uint32_t column, uint32_t row) {
    nb_column_view view;
    assert_int_equal(nb_store_column_view(f->world, f->units, column, &view), NB_OK);
    return view.block_versions[row / view.block_rows];
}

TEST(write_marks_its_block_and_no_other) {
    fixture f = fixture_plain(300);
    for (uint32_t i = 0; i < 300; ++i) unit_spawn(&f, i);
    uint64_t before = f.world->version;
    uint64_t now = nb_store_version_advance(f.world);
    assert_int_equal(now, before + 1);
    *NB_STORE_ROW_WRITE(f.world, f.units, HEALTH, uint32_t, 64) = 1;
    for (uint32_t row = 0; row < 300; row += 64) {
        assert_int_equal(version_of(&f, HEALTH, row), row == 64 ? now : before);
        assert_int_equal(version_of(&f, POSITION, row), before);
    }
    now = nb_store_version_advance(f.world);
    assert_non_null(NB_STORE_RANGE_WRITE(f.world, f.units, POSITION, vec3, 127, 2)); // over the edge of two blocks
    assert_non_null(NB_STORE_RANGE_WRITE(f.world, f.units, POSITION, vec3, 0, 0));
    assert_non_null(NB_STORE_RANGE_WRITE(f.world, f.units, POSITION, vec3, 300, 5));
    assert_int_equal(version_of(&f, POSITION, 0), before);
    assert_int_equal(version_of(&f, POSITION, 64), now);
    assert_int_equal(version_of(&f, POSITION, 128), now);
    assert_int_equal(version_of(&f, POSITION, 192), before);
    assert_int_equal(version_of(&f, POSITION, 256), before);
    assert_non_null(NB_STORE_RANGE_WRITE(f.world, f.units, POSITION, vec3, 256, UINT32_MAX));
    assert_int_equal(version_of(&f, POSITION, 256), now);
    uint32_t *health = NB_STORE_ROWS_WRITE(f.world, f.units, HEALTH, uint32_t);
    NB_STORE_EACH_ROW(row, f.world, f.units) health[row] += 1;
    for (uint32_t row = 0; row < 300; row += 64) assert_int_equal(version_of(&f, HEALTH, row), now);
    const uint32_t *read = NB_STORE_ROWS(f.world, f.units, HEALTH, uint32_t);
    assert_int_equal(read[299], 300);
    nb_store_destroy(f.world);
}

typedef struct crowd {
    fixture *f;
    test_gate gate;
    uint32_t thread_count, round_count;
} crowd;

// Every thread has every nth row: all blocks are shared by all threads.
static void write_own_rows(void *user, uint32_t index) {
    crowd *c = user;
    test_gate_pass(&c->gate, c->thread_count);
    uint32_t count = nb_store_row_count(c->f->world, c->f->units);
    for (uint32_t round = 0; round < c->round_count; ++round) {
        for (uint32_t row = index; row < count; row += c->thread_count) {
            *NB_STORE_ROW_WRITE(c->f->world, c->f->units, HEALTH, uint32_t, row) += row;
            nb_store_teleport(c->f->world, nb_store_entity(c->f->world, c->f->units, row));
        }
    }
}

TEST(threads_write_rows_of_one_block_together) {
    fixture f = fixture_plain(1000);
    crowd c = {.f = &f, .thread_count = 4, .round_count = (uint32_t)test_size(20, 200, 2000)};
    for (uint32_t i = 0; i < 1000; ++i) unit_spawn(&f, 0);
    uint64_t before = nb_store_hash(f.world);
    assert_int_equal(nb_store_tick_begin(f.world), NB_OK);
    test_threads_run(4, write_own_rows, &c);
    assert_int_equal(nb_store_tick_end(f.world), NB_OK);
    for (uint32_t row = 0; row < 1000; ++row) {
        assert_int_equal(*NB_STORE_ROW(f.world, f.units, HEALTH, uint32_t, row), row * c.round_count);
        assert_int_equal(version_of(&f, HEALTH, row), f.world->version);
    }
    assert_int_not_equal(nb_store_hash(f.world), before);
    nb_store_destroy(f.world);
}

// --- ticks ---

TEST(previous_values_are_those_of_the_ticks_start) {
    fixture f = fixture_plain(200);
    for (uint32_t i = 0; i < 200; ++i) unit_spawn(&f, i);
    for (uint32_t i = 0; i < 200; ++i) NB_STORE_ROW_WRITE(f.world, f.units, POSITION, vec3, i)->x = (float)i;
    nb_column_view previous;
    for (uint32_t tick = 0; tick < 4; ++tick) {
        assert_int_equal(nb_store_tick_begin(f.world), NB_OK);
        if (tick != 1) NB_STORE_ROW_WRITE(f.world, f.units, POSITION, vec3, 100)->x += 1.0f;
        assert_int_equal(nb_store_tick_end(f.world), NB_OK);
        const vec3 *before = NB_STORE_ROWS_PREVIOUS(f.world, f.units, POSITION, vec3);
        const vec3 *now = NB_STORE_ROWS(f.world, f.units, POSITION, vec3);
        float moved = tick == 1 ? 0.0f : 1.0f;
        for (uint32_t i = 0; i < 200; ++i) assert_true(now[i].x - before[i].x == (i == 100 ? moved : 0.0f));
        // Only the block that changed in the tick before is copied.
        assert_int_equal(nb_store_previous_view(f.world, f.units, POSITION, &previous), NB_OK);
        bool is_copied = previous.block_versions[1] == f.world->version;
        assert_int_equal(is_copied, tick != 2);
        assert_int_equal(previous.block_versions[2] == f.world->version, tick == 0);
    }
    nb_store_destroy(f.world);
}

TEST(teleported_row_has_no_way_behind_it) {
    fixture f = fixture_plain(100);
    nb_entity stays = unit_spawn(&f, 1), jumps = unit_spawn(&f, 2);
    nb_column_view marks;
    assert_int_equal(nb_store_tick_begin(f.world), NB_OK);
    assert_int_equal(nb_store_tick_end(f.world), NB_OK);
    uint64_t without = nb_store_hash(f.world);
    assert_int_equal(nb_store_tick_begin(f.world), NB_OK);
    assert_int_equal(nb_store_teleport(f.world, jumps), NB_OK);
    NB_STORE_ROW_WRITE(f.world, f.units, POSITION, vec3, unit_row(&f, jumps))->x = 50.0f; // after the mark
    NB_STORE_ROW_WRITE(f.world, f.units, POSITION, vec3, unit_row(&f, stays))->x = 1.0f;
    assert_int_equal(nb_store_tick_end(f.world), NB_OK);
    const vec3 *before = NB_STORE_ROWS_PREVIOUS(f.world, f.units, POSITION, vec3);
    assert_true(before[unit_row(&f, jumps)].x == 50.0f);
    assert_true(before[unit_row(&f, stays)].x == 0.0f);
    assert_int_equal(nb_store_teleport_view(f.world, f.units, &marks), NB_OK);
    assert_int_equal(((const uint8_t *)marks.base)[unit_row(&f, jumps)], 1);
    assert_int_equal(((const uint8_t *)marks.base)[unit_row(&f, stays)], 0);
    // The mark alone is state.
    NB_STORE_ROW_WRITE(f.world, f.units, POSITION, vec3, unit_row(&f, jumps))->x = 0.0f;
    NB_STORE_ROW_WRITE(f.world, f.units, POSITION, vec3, unit_row(&f, stays))->x = 0.0f;
    assert_int_not_equal(nb_store_hash(f.world), without);
    assert_int_equal(nb_store_tick_begin(f.world), NB_OK);
    assert_int_equal(((const uint8_t *)marks.base)[unit_row(&f, jumps)], 0);
    assert_int_equal(nb_store_tick_end(f.world), NB_OK);
    assert_int_equal(nb_store_hash(f.world), without);
    nb_store_destroy(f.world);
}

TEST(rows_do_not_come_or_go_directly_in_a_tick) {
    static test_log log;
    fixture f = fixture_logged(100, &log);
    nb_entity entity = unit_spawn(&f, 1), other;
    saved bytes = fixture_save(&f, NB_SAVE_FILE);
    assert_int_equal(nb_store_tick_begin(f.world), NB_OK);
    assert_int_equal(nb_store_tick_begin(f.world), NB_ERR_MISUSE);
    assert_int_equal(nb_store_spawn(f.world, f.units, &other), NB_ERR_MISUSE);
    assert_int_equal(nb_store_despawn(f.world, entity), NB_ERR_MISUSE);
    assert_int_equal(nb_store_load(f.world, bytes.bytes, bytes.size_bytes), NB_ERR_MISUSE);
    assert_int_equal(nb_store_tick_end(f.world), NB_OK);
    assert_int_equal(nb_store_tick_end(f.world), NB_ERR_MISUSE);
    assert_int_equal(test_log_count(&log, NB_ITEM_STORE_TICK), 5);
    assert_int_equal(nb_store_despawn(f.world, entity), NB_OK);
    free(bytes.bytes);
    nb_store_destroy(f.world);
}
