// SPDX-License-Identifier: MIT
// History over a world: entities and their lives, local columns, previous values, whoever copies by versions, saves
// that are loaded in between, an engine's world.

#include "frame/history/history_fixture.h"

#include "frame/engine/engine_fixture.h"

typedef struct small_world {
    fixture f;
    nb_history *history;
} small_world;

static void open_world(small_world *w, uint32_t unit_count_max) {
    w->f = fixture_plain(unit_count_max);
    nb_history_desc desc = {.world = w->f.world};
    assert_int_equal(nb_history_create(&desc, &w->history), NB_OK);
}

// With its first tick saved.
static void open_populated(small_world *w, uint32_t unit_count_max, uint32_t unit_count) {
    open_world(w, unit_count_max);
    for (uint32_t i = 0; i < unit_count; ++i) unit_spawn(&w->f, i);
    assert_int_equal(nb_history_save(w->history, 0), NB_OK);
}

static void close_world(small_world *w) {
    assert_true(nb_store_is_valid(w->f.world));
    nb_history_destroy(w->history);
    nb_store_destroy(w->f.world);
}

static nb_entity_ref ref_of(const small_world *w, nb_entity entity) {
    nb_entity_ref ref = {0};
    assert_int_equal(nb_store_ref(w->f.world, entity, &ref), NB_OK);
    return ref;
}

static bool is_alive(const small_world *w, nb_entity_ref ref) {
    uint32_t row;
    return nb_store_resolve(w->f.world, ref, &row) == NB_OK;
}

TEST(lives_come_back_and_new_ones_are_others) {
    small_world w;
    open_world(&w, 100);
    nb_entity old = unit_spawn(&w.f, 1);
    nb_entity_ref old_ref = ref_of(&w, old);
    assert_int_equal(nb_history_save(w.history, 0), NB_OK);
    nb_entity young = unit_spawn(&w.f, 2);
    nb_entity_ref young_ref = ref_of(&w, young);
    assert_int_equal(nb_store_despawn(w.f.world, old), NB_OK);
    assert_int_equal(nb_history_save(w.history, 1), NB_OK);
    assert_false(is_alive(&w, old_ref));

    assert_int_equal(nb_history_rewind(w.history, 0), NB_OK);
    assert_true(is_alive(&w, old_ref));
    assert_false(is_alive(&w, young_ref));
    assert_int_equal(unit_health(&w.f, old), 1);

    // Simulated again, the same entity is another life; the one referred to does not come back by itself,
    nb_entity again = unit_spawn(&w.f, 3);
    assert_int_equal(again.value, young.value);
    nb_entity_ref again_ref = ref_of(&w, again);
    assert_true(again_ref.incarnation > young_ref.incarnation);
    assert_false(is_alive(&w, young_ref));
    assert_int_equal(nb_history_save(w.history, 1), NB_OK);
    // and this one does, by a rewind to where it lives.
    assert_int_equal(nb_history_rewind(w.history, 0), NB_OK);
    assert_false(is_alive(&w, again_ref));
    assert_int_equal(nb_history_rewind(w.history, 1), NB_OK);
    assert_true(is_alive(&w, again_ref));
    assert_false(is_alive(&w, young_ref));
    close_world(&w);
}

TEST(local_columns_stay_with_their_lives) {
    small_world w;
    open_world(&w, 200);
    nb_entity units[100];
    for (uint32_t i = 0; i < 100; ++i) units[i] = unit_spawn(&w.f, i);
    assert_int_equal(nb_history_save(w.history, 0), NB_OK);
    assert_int_equal(nb_store_despawn(w.f.world, units[3]), NB_OK); // the last row takes its place
    unit_spawn(&w.f, 0);
    unit_spawn(&w.f, 0);
    assert_int_equal(nb_history_save(w.history, 1), NB_OK);
    NB_STORE_EACH_ROW(row, w.f.world, w.f.units) {
        *NB_STORE_ROW_WRITE(w.f.world, w.f.units, CACHE, uint16_t, row) = (uint16_t)(row + 1);
    }
    nb_entity spark;
    assert_int_equal(nb_store_spawn(w.f.world, w.f.sparks, &spark), NB_OK);
    assert_int_equal(nb_history_rewind(w.history, 0), NB_OK);
    NB_STORE_EACH_ROW(row, w.f.world, w.f.units) {
        uint16_t expected = row == 3 || row == 99 ? 0 : (uint16_t)(row + 1);
        assert_int_equal(*NB_STORE_ROW(w.f.world, w.f.units, CACHE, uint16_t, row), expected);
    }
    assert_int_equal(nb_store_row_count(w.f.world, w.f.sparks), 1); // a local table is none of its business
    // The same entities in the same rows, by other lives: spawned again, then taken back to those of tick 1.
    assert_int_equal(nb_store_despawn(w.f.world, units[3]), NB_OK);
    unit_spawn(&w.f, 0);
    unit_spawn(&w.f, 0);
    *NB_STORE_ROW_WRITE(w.f.world, w.f.units, CACHE, uint16_t, 50) = 50;
    *NB_STORE_ROW_WRITE(w.f.world, w.f.units, CACHE, uint16_t, 100) = 100;
    nb_entity last = nb_store_entity(w.f.world, w.f.units, 100);
    assert_int_equal(nb_history_rewind(w.history, 1), NB_OK);
    assert_int_equal(nb_store_entity(w.f.world, w.f.units, 100).value, last.value);
    assert_int_equal(*NB_STORE_ROW(w.f.world, w.f.units, CACHE, uint16_t, 100), 0);
    assert_int_equal(*NB_STORE_ROW(w.f.world, w.f.units, CACHE, uint16_t, 50), 50);
    close_world(&w);
}

TEST(nothing_moves_after_a_rewind_until_the_next_tick) {
    small_world w;
    open_world(&w, 200);
    nb_entity unit = unit_spawn(&w.f, 1);
    for (uint64_t tick = 0; tick < 5; ++tick) {
        nb_store_tick_begin(w.f.world);
        NB_STORE_ROW_WRITE(w.f.world, w.f.units, POSITION, vec3, 0)->x = (float)tick * 10.0f;
        nb_store_tick_end(w.f.world);
        assert_int_equal(nb_history_save(w.history, tick), NB_OK);
    }
    assert_int_equal(nb_history_rewind(w.history, 2), NB_OK);
    assert_true(NB_STORE_ROWS(w.f.world, w.f.units, POSITION, vec3)[0].x == 20.0f);
    assert_true(NB_STORE_ROWS_PREVIOUS(w.f.world, w.f.units, POSITION, vec3)[0].x == 20.0f);
    nb_store_tick_begin(w.f.world);
    NB_STORE_ROW_WRITE(w.f.world, w.f.units, POSITION, vec3, 0)->x = 33.0f;
    nb_store_tick_end(w.f.world);
    assert_true(NB_STORE_ROWS_PREVIOUS(w.f.world, w.f.units, POSITION, vec3)[0].x == 20.0f);
    assert_int_equal(nb_store_find(w.f.world, unit, &(uint32_t){0}), NB_OK);
    close_world(&w);
}

// Rows whose bytes are all zero come and go without a byte of a column changing.
TEST(rows_of_zeros_are_counted) {
    small_world w;
    open_world(&w, 400);
    mirror m;
    mirror_open(&m, &w.f);
    static const uint32_t counts[] = {0, 1, 64, 63, 65, 300, 128, 0, 200};
    uint64_t hashes[9];
    for (uint32_t tick = 0; tick < 9; ++tick) {
        while (nb_store_row_count(w.f.world, w.f.units) < counts[tick]) {
            nb_entity entity;
            assert_int_equal(nb_store_spawn(w.f.world, w.f.units, &entity), NB_OK);
        }
        while (nb_store_row_count(w.f.world, w.f.units) > counts[tick]) {
            uint32_t last = nb_store_row_count(w.f.world, w.f.units) - 1;
            nb_store_despawn(w.f.world, nb_store_entity(w.f.world, w.f.units, last));
        }
        assert_int_equal(nb_history_save(w.history, tick), NB_OK);
        hashes[tick] = nb_store_hash(w.f.world);
    }
    uint64_t random = test_seed(__func__);
    for (uint32_t i = 0; i < 200; ++i) {
        uint32_t tick = (uint32_t)(test_random(&random) % 9);
        assert_int_equal(nb_history_rewind(w.history, tick), NB_OK);
        assert_int_equal(nb_store_row_count(w.f.world, w.f.units), counts[tick]);
        assert_int_equal(nb_store_hash(w.f.world), hashes[tick]);
        if (i % 3 == 0) mirror_follow(&m, &w.f);
        assert_true(nb_store_is_valid(w.f.world));
    }
    mirror_close(&m);
    close_world(&w);
}

// Loading puts other state in place with fewer slots than were in use, and gives rows new incarnations.
TEST(loaded_state_is_a_change_like_any_other) {
    small_world w;
    open_world(&w, 400);
    for (uint32_t i = 0; i < 10; ++i) unit_spawn(&w.f, i);
    saved save = fixture_save(&w.f, NB_SAVE_FILE);
    nb_entity first = nb_store_entity(w.f.world, w.f.units, 0);
    nb_entity_ref ref = ref_of(&w, first);
    for (uint32_t i = 0; i < 300; ++i) unit_spawn(&w.f, i);
    nb_store_despawn(w.f.world, nb_store_entity(w.f.world, w.f.units, 200));
    assert_int_equal(nb_history_save(w.history, 0), NB_OK);
    uint64_t hash = nb_store_hash(w.f.world);
    assert_int_equal(nb_store_load(w.f.world, save.bytes, save.size_bytes), NB_OK);
    uint64_t loaded_hash = nb_store_hash(w.f.world);
    assert_int_equal(nb_history_save(w.history, 1), NB_OK);
    assert_false(is_alive(&w, ref));
    for (int i = 0; i < 3; ++i) {
        assert_int_equal(nb_history_rewind(w.history, 0), NB_OK);
        assert_true(is_alive(&w, ref));
        assert_int_equal(nb_store_hash(w.f.world), hash);
        assert_true(nb_store_is_valid(w.f.world));
        assert_int_equal(nb_history_rewind(w.history, 1), NB_OK);
        assert_false(is_alive(&w, ref));
        assert_int_equal(nb_store_hash(w.f.world), loaded_hash);
        assert_true(nb_store_is_valid(w.f.world));
    }
    // And loaded without a save: a rewind forgets it.
    assert_int_equal(nb_history_rewind(w.history, 0), NB_OK);
    assert_int_equal(nb_store_load(w.f.world, save.bytes, save.size_bytes), NB_OK);
    assert_int_equal(nb_history_rewind(w.history, 0), NB_OK);
    assert_int_equal(nb_store_hash(w.f.world), hash);
    free(save.bytes);
    close_world(&w);
}

// A hash before the rewind has seen what the rewind takes back.
TEST(hash_sees_what_a_rewind_takes_back) {
    small_world w;
    open_world(&w, 100);
    unit_spawn(&w.f, 5);
    assert_int_equal(nb_history_save(w.history, 0), NB_OK);
    uint64_t hash = nb_store_hash(w.f.world);
    *NB_STORE_ROW_WRITE(w.f.world, w.f.units, HEALTH, uint32_t, 0) = 6;
    assert_int_not_equal(nb_store_hash(w.f.world), hash);
    assert_int_equal(nb_history_rewind(w.history, 0), NB_OK);
    assert_int_equal(nb_store_hash(w.f.world), hash);
    close_world(&w);
}

TEST(unwritten_blocks_are_not_looked_at) {
    small_world w;
    open_populated(&w, 1000, 1000);
    *NB_STORE_ROW_WRITE(w.f.world, w.f.units, HEALTH, uint32_t, 500) = 0;
    assert_int_equal(nb_history_save(w.history, 1), NB_OK);
    assert_in_range(nb_history_stats_get(w.history).changed_bytes, 1, 256);
    NB_STORE_ROWS_WRITE(w.f.world, w.f.units, POSITION, vec3); // asked for, not written
    assert_int_equal(nb_history_save(w.history, 2), NB_OK);
    assert_int_equal(nb_history_stats_get(w.history).changed_bytes, 0);
    close_world(&w);
}

TEST(moment_and_permission_are_checked) {
    test_log log = {0};
    fixture f = fixture_plain(100);
    nb_history *history = NULL;
    nb_history_desc desc = {.world = f.world, .hooks = test_hooks(&log, NULL)};
    assert_int_equal(nb_history_create(&desc, &history), NB_OK);
    unit_spawn(&f, 1);
    assert_int_equal(nb_history_save(history, 0), NB_OK);
    unit_spawn(&f, 2);
    assert_int_equal(nb_history_save(history, 1), NB_OK);
    nb_store_tick_begin(f.world);
    assert_int_equal(nb_history_save(history, 2), NB_ERR_MISUSE);
    assert_int_equal(nb_history_rewind(history, 0), NB_ERR_MISUSE);
    nb_store_tick_end(f.world);
    nb_store_allow(f.world, NB_COLUMN_LOCAL);
    assert_int_equal(nb_history_rewind(history, 0), NB_ERR_PERMISSION);
    assert_int_equal(nb_store_stats_get(f.world).denied_count, 1);
    nb_store_allow(f.world, NB_COLUMN_LOCAL | NB_COLUMN_SIMULATED);
    assert_int_equal(nb_store_row_count(f.world, f.units), 2);
    assert_int_equal(test_log_count(&log, NB_ITEM_STORE_TICK), 2);
    assert_int_equal(test_log_count(&log, NB_ITEM_STORE_DENIED), 1);
    assert_int_equal(nb_history_rewind(history, 0), NB_OK);
    assert_int_equal(nb_store_row_count(f.world, f.units), 1);
    nb_history_destroy(history);
    nb_store_destroy(f.world);
}

TEST(read_only_world_is_saved_and_not_rewound) {
    if (!nbi_platform_has(NBI_ABILITY_PAGE_PROTECT)) return;
    test_log log = {0};
    nb_store *world = NULL;
    nb_table units = {0};
    nb_store_desc desc = {.is_protectable = true};
    nb_table_desc table = {
        .name = "units", .row_count_max = 100, .columns = unit_columns, .column_count = UNIT_COLUMNS};
    assert_int_equal(nb_store_create(&desc, &world), NB_OK);
    assert_int_equal(nb_store_table_add(world, &table, &units), NB_OK);
    nb_history *history = NULL;
    nb_history_desc history_desc = {.world = world, .hooks = test_hooks(&log, NULL)};
    assert_int_equal(nb_history_create(&history_desc, &history), NB_OK);
    assert_int_equal(nb_history_save(history, 0), NB_OK);
    nb_entity entity;
    assert_int_equal(nb_store_spawn(world, units, &entity), NB_OK);
    assert_int_equal(nb_store_protect(world, true), NB_OK);
    assert_int_equal(nb_history_save(history, 1), NB_OK);
    assert_int_equal(nb_history_rewind(history, 0), NB_ERR_MISUSE);
    assert_int_equal(test_log_count(&log, NB_ITEM_STORE_PROTECTED), 1);
    assert_int_equal(nb_store_protect(world, false), NB_OK);
    assert_int_equal(nb_history_rewind(history, 0), NB_OK);
    assert_int_equal(nb_store_row_count(world, units), 0);
    nb_history_destroy(history);
    nb_store_destroy(world);
}

// --- an engine's world ---

typedef struct herd {
    nb_store *world;
    nb_table sheep;
    uint64_t count; // a provider beside the world
} herd;

// Depends on the state alone, not on the number of the tick, which the engine does not rewind.
static nb_result herd_tick(const nb_context *context, void *user) {
    herd *h = user;
    nb_store *world = h->world;
    nb_store_stage *stage = nb_context_stage(context, 0);
    h->count += 1;
    uint32_t row_count = nb_store_row_count(world, h->sheep);
    NB_STORE_EACH_ROW(row, world, h->sheep) * NB_STORE_ROW_WRITE(world, h->sheep, 0, uint64_t, row) += h->count;
    for (uint64_t i = h->count % 3; i > 0; --i) nb_store_stage_spawn(stage, h->sheep, NULL);
    if (row_count > 20)
        nb_store_stage_despawn(stage, nb_store_entity(world, h->sheep, (uint32_t)(h->count % row_count)));
    return NB_OK;
}

TEST(world_of_an_engine_is_kept_by_blocks) {
    rig r;
    herd h = {0};
    rig_open(&r, 0);
    nb_store *world = h.world = nb_engine_world(r.engine);
    nb_column_desc column = {.name = "age", .size_bytes = sizeof(uint64_t)};
    nb_table_desc table = {.name = "sheep", .row_count_max = 500, .columns = &column, .column_count = 1};
    assert_int_equal(nb_store_table_add(world, &table, &h.sheep), NB_OK);
    nb_provider_desc count = {.name = "count", .data = &h.count, .size_bytes = sizeof h.count};
    assert_int_equal(nb_states_add(nb_engine_states(r.engine), &count, NULL), NB_OK);
    attach(&r, (nb_module_desc){.name = "herd", .tick = herd_tick, .user = &h});
    nb_history *history = NULL;
    nb_history_desc desc = {.states = nb_engine_states(r.engine), .world = world};
    assert_int_equal(nb_history_create(&desc, &history), NB_OK);
    uint64_t hashes[60];
    for (uint64_t tick = 0; tick < 60; ++tick) {
        run_ticks(&r, 1);
        assert_int_equal(nb_history_save(history, tick), NB_OK);
        hashes[tick] = nb_states_hash(nb_engine_states(r.engine));
    }
    for (uint64_t tick = 50; tick > 0; tick -= 10) {
        assert_int_equal(nb_history_rewind(history, tick), NB_OK);
        assert_int_equal(nb_states_hash(nb_engine_states(r.engine)), hashes[tick]);
        for (uint64_t next = tick + 1; next < 60; ++next) {
            run_ticks(&r, 1);
            assert_int_equal(nb_history_save(history, next), NB_OK);
            assert_int_equal(nb_states_hash(nb_engine_states(r.engine)), hashes[next]);
        }
    }
    assert_true(nb_store_is_valid(world));
    nb_history_destroy(history);
    rig_close(&r);
}

// --- images: where all rows change in each tick, columns are kept whole ---

static void storm(small_world *w, uint32_t tick) {
    uint32_t count = nb_store_row_count(w->f.world, w->f.units);
    uint32_t *health = NB_STORE_ROWS_WRITE(w->f.world, w->f.units, HEALTH, uint32_t);
    for (uint32_t row = 0; row < count; ++row) health[row] = tick * 100000 + row;
    assert_int_equal(nb_history_save(w->history, tick), NB_OK);
}

TEST(rows_that_all_change_come_back) {
    small_world w;
    open_populated(&w, 4000, 3000);
    for (uint32_t tick = 1; tick <= 12; ++tick) storm(&w, tick);
    for (uint32_t tick = 12; tick >= 1; --tick) {
        assert_int_equal(nb_history_rewind(w.history, tick), NB_OK);
        const uint32_t *health = NB_STORE_ROWS(w.f.world, w.f.units, HEALTH, uint32_t);
        for (uint32_t row = 0; row < 3000; ++row) assert_int_equal(health[row], tick * 100000 + row);
    }
    close_world(&w);
}

TEST(nothing_is_left_behind_the_last_row) {
    small_world w;
    open_populated(&w, 4000, 3000);
    for (uint32_t tick = 1; tick <= 6; ++tick) storm(&w, tick);
    // Half of them go, and the memory of the large images is used for small ones.
    for (uint32_t row = 2999; row >= 1500; --row) {
        assert_int_equal(nb_store_despawn(w.f.world, nb_store_entity(w.f.world, w.f.units, row)), NB_OK);
    }
    for (uint32_t tick = 7; tick <= 12; ++tick) {
        assert_int_equal(nb_history_confirm(w.history, tick - 1), NB_OK);
        storm(&w, tick);
    }
    for (uint32_t i = 0; i < 1500; ++i) unit_spawn(&w.f, i);
    assert_int_equal(nb_history_save(w.history, 13), NB_OK);
    assert_int_equal(nb_history_rewind(w.history, 12), NB_OK);
    nb_entity young;
    assert_int_equal(nb_store_spawn(w.f.world, w.f.units, &young), NB_OK);
    assert_int_equal(unit_health(&w.f, young), 0);
    close_world(&w);
}
