// SPDX-License-Identifier: MIT
// A world seen through snapshots: every row as it was when it was published, whatever happens to the world since.

#include "frame/store/store_fixture.h"

#include "nebula/store_view.h"

typedef struct watched {
    fixture f;
    nb_snapshots *snapshots;
    test_heap heap;
    test_log log;
} watched;

static void watched_open(watched *w, uint32_t unit_count_max) {
    memset(w, 0, sizeof *w);
    nb_hooks hooks = test_hooks(&w->log, &w->heap);
    w->f = fixture_open(unit_count_max, &hooks);
    nb_snapshots_desc desc = {.hooks = hooks};
    assert_int_equal(nb_snapshots_create(&desc, &w->snapshots), NB_OK);
    assert_int_equal(nb_store_views_add(w->f.world, w->snapshots), NB_OK);
}

static void watched_close(watched *w) {
    assert_int_equal(nb_snapshots_destroy(w->snapshots), NB_OK);
    nb_store_destroy(w->f.world);
    assert_int_equal(w->heap.live_count.value, 0);
}

static const nb_snapshot *publish(watched *w) {
    assert_int_equal(nb_store_views_publish(w->f.world, NULL), NB_OK);
    const nb_snapshot *snapshot = nb_snapshots_acquire(w->snapshots);
    assert_non_null(snapshot);
    return snapshot;
}

// --- the same rows ---

// A hash of everything a snapshot shows.
static uint64_t view_hash(const watched *w, const nb_snapshot *seen) {
    const nb_store *world = w->f.world;
    uint32_t units = nb_store_view_row_count(seen, world, w->f.units),
             sparks = nb_store_view_row_count(seen, world, w->f.sparks);
    uint64_t hash = nb_hash64(&units, sizeof units, sparks);
    if (units != 0) {
        hash = nb_hash64(NB_STORE_VIEW(seen, world, w->f.units, POSITION, vec3), units * sizeof(vec3), hash);
        hash = nb_hash64(NB_STORE_VIEW_PREVIOUS(seen, world, w->f.units, POSITION, vec3), units * sizeof(vec3), hash);
        hash = nb_hash64(nb_store_view_entities(seen, world, w->f.units), units * sizeof(nb_entity), hash);
        hash = nb_hash64(nb_store_view_teleports(seen, world, w->f.units), units, hash);
    }
    if (sparks != 0)
        hash = nb_hash64(NB_STORE_VIEW(seen, world, w->f.sparks, SPARK_PLACE, vec3), sparks * sizeof(vec3), hash);
    return hash;
}

static uint64_t live_hash(const watched *w) {
    const nb_store *world = w->f.world;
    uint32_t units = nb_store_row_count(world, w->f.units), sparks = nb_store_row_count(world, w->f.sparks);
    uint64_t hash = nb_hash64(&units, sizeof units, sparks);
    if (units != 0) {
        nb_column_view entities, marks;
        nb_store_entity_view(world, w->f.units, &entities);
        nb_store_teleport_view(world, w->f.units, &marks);
        hash = nb_hash64(NB_STORE_ROWS(world, w->f.units, POSITION, vec3), units * sizeof(vec3), hash);
        hash = nb_hash64(NB_STORE_ROWS_PREVIOUS(world, w->f.units, POSITION, vec3), units * sizeof(vec3), hash);
        hash = nb_hash64(entities.base, units * sizeof(nb_entity), hash);
        hash = nb_hash64(marks.base, units, hash);
    }
    if (sparks != 0)
        hash = nb_hash64(NB_STORE_ROWS(world, w->f.sparks, SPARK_PLACE, vec3), sparks * sizeof(vec3), hash);
    return hash;
}

static void change_at_random(watched *w, uint64_t *random) {
    nb_store *world = w->f.world;
    uint32_t count = nb_store_row_count(world, w->f.units);
    uint32_t row = count > 0 ? (uint32_t)(test_random(random) % count) : 0;
    nb_entity entity, chosen = nb_store_entity(world, w->f.units, row);
    switch (test_random(random) % 6) {
    case 0: nb_store_spawn(world, w->f.units, &entity); break;
    case 1:
        if (count > 0) nb_store_despawn(world, chosen);
        break;
    case 2:
        if (count > 0) NB_STORE_ROW_WRITE(world, w->f.units, POSITION, vec3, row)->y = (float)(*random % 1000);
        break;
    case 3:
        if (count > 0) nb_store_teleport(world, chosen);
        break;
    case 4: nb_store_spawn(world, w->f.sparks, &entity); break;
    default:
        nb_store_tick_begin(world);
        nb_store_tick_end(world);
        break;
    }
}

TEST(snapshots_have_what_the_world_had) {
    uint64_t random = test_seed(__func__), rounds = test_size(2000, 20000, 200000);
    watched w;
    watched_open(&w, 300);
    const nb_snapshot *kept[2] = {NULL, NULL};
    uint64_t kept_hashes[2] = {0, 0};
    for (uint64_t i = 0; i < rounds; ++i) {
        for (uint64_t j = test_random(&random) % 8; j > 0; --j) change_at_random(&w, &random);
        uint64_t place = test_random(&random) % 2;
        if (kept[place] != NULL) assert_true(view_hash(&w, kept[place]) == kept_hashes[place]);
        nb_snapshot_release(kept[place]);
        kept[place] = publish(&w);
        kept_hashes[place] = live_hash(&w);
        assert_true(view_hash(&w, kept[place]) == kept_hashes[place]);
    }
    nb_snapshot_release(kept[0]);
    nb_snapshot_release(kept[1]);
    watched_close(&w);
}

TEST(only_blocks_that_changed_are_copied) {
    watched w;
    watched_open(&w, 64 * 20);
    for (uint32_t i = 0; i < 64 * 20; ++i) unit_spawn(&w.f, i);
    for (uint32_t i = 0; i < 4; ++i) nb_snapshot_release(publish(&w)); // every slot has it
    uint64_t before = nb_snapshots_stats_get(w.snapshots).copied_blocks_total;
    for (uint32_t i = 0; i < 4; ++i) nb_snapshot_release(publish(&w));
    assert_int_equal(nb_snapshots_stats_get(w.snapshots).copied_blocks_total, before);
    NB_STORE_ROW_WRITE(w.f.world, w.f.units, POSITION, vec3, 130)->x = 7;
    nb_snapshot_release(publish(&w));
    assert_int_equal(nb_snapshots_stats_get(w.snapshots).copied_blocks, 1);
    // The same block once more, right after the publication: it is new again.
    NB_STORE_ROW_WRITE(w.f.world, w.f.units, POSITION, vec3, 130)->x = 8;
    const nb_snapshot *seen = publish(&w);
    assert_true(NB_STORE_VIEW(seen, w.f.world, w.f.units, POSITION, vec3)[130].x == 8.0f);
    nb_snapshot_release(seen);
    watched_close(&w);
}

TEST(names_say_where_regions_come_from) {
    watched w;
    watched_open(&w, 10);
    static const char *const names[] = {"units.position", "units.position.previous", "units.entities",
                                        "units.teleports", "sparks.place"};
    uint32_t region;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; ++i)
        assert_int_equal(nb_snapshots_region_find(w.snapshots, names[i], &region), NB_OK);
    assert_int_equal(nb_snapshots_region_find(w.snapshots, "units.health", &region), NB_EMPTY);
    assert_int_equal(nb_snapshots_region_find(w.snapshots, "clock.entities", &region), NB_EMPTY);
    // Nothing more can be declared: it would be missing.
    nb_table late;
    nb_table_desc desc = {.name = "late", .columns = spark_columns, .column_count = 1};
    assert_int_equal(nb_store_table_add(w.f.world, &desc, &late), NB_ERR_MISUSE);
    watched_close(&w);
}

TEST(adding_goes_on_after_a_failure) {
    bool has_failed = true;
    for (uint64_t call = 1; has_failed; ++call) {
        test_heap heap = {0}, ring_heap = {0};
        test_log log = {0};
        nb_hooks hooks = test_hooks(&log, &heap), ring_hooks = test_hooks(&log, &ring_heap);
        fixture f = fixture_open(100, &hooks);
        nb_snapshots *snapshots = NULL;
        nb_snapshots_desc desc = {.hooks = ring_hooks};
        assert_int_equal(nb_snapshots_create(&desc, &snapshots), NB_OK);
        ring_heap.fail_at = ring_heap.call_count.value + call;
        nb_result result = nb_store_views_add(f.world, snapshots);
        has_failed = result != NB_OK;
        if (has_failed) {
            assert_int_equal(result, NB_ERR_MEMORY);
            assert_int_equal(nb_store_views_publish(f.world, NULL), NB_ERR_MISUSE);
            assert_int_equal(nb_store_views_add(f.world, snapshots), NB_OK);
        }
        unit_spawn(&f, 1);
        assert_int_equal(nb_store_views_publish(f.world, NULL), NB_OK);
        const nb_snapshot *seen = nb_snapshots_acquire(snapshots);
        assert_int_equal(nb_store_view_row_count(seen, f.world, f.units), 1);
        assert_non_null(nb_store_view_entities(seen, f.world, f.units));
        nb_snapshot_release(seen);
        assert_int_equal(nb_snapshots_destroy(snapshots), NB_OK);
        nb_store_destroy(f.world);
        assert_int_equal(heap.live_count.value + ring_heap.live_count.value, 0);
        assert_true(has_failed || call > 5); // each region needs memory
    }
}

// --- who may write ---

TEST(writes_that_are_not_allowed_change_nothing) {
    watched w;
    watched_open(&w, 10);
    nb_store *world = w.f.world;
    nb_entity unit = unit_spawn(&w.f, 5), other;
    unsigned char memory[256];
    nb_store_stage stage;
    nb_store_stage_desc desc = {.memory = memory, .size_bytes = sizeof memory};
    assert_int_equal(nb_store_stage_init(&stage, world, &desc), NB_OK);
    assert_int_equal(nb_store_stage_spawn(&stage, w.f.units, NULL), NB_OK);
    saved save = fixture_save(&w.f, NB_SAVE_FILE);
    uint64_t hash = nb_store_hash(world);
    assert_int_equal(nb_store_allow(world, NB_COLUMN_LOCAL), NB_OK);
    assert_null(NB_STORE_ROW_WRITE(world, w.f.units, HEALTH, uint32_t, 0));
    assert_null(NB_STORE_ROWS_WRITE(world, w.f.units, HEALTH, uint32_t));
    assert_null(NB_STORE_RANGE_WRITE(world, w.f.units, HEALTH, uint32_t, 0, 1));
    assert_null(NB_STORE_SINGLETON_WRITE(world, w.f.clock, CLOCK_TICK, uint64_t));
    assert_int_equal(nb_store_spawn(world, w.f.units, &other), NB_ERR_PERMISSION);
    assert_int_equal(nb_store_despawn(world, unit), NB_ERR_PERMISSION);
    assert_int_equal(nb_store_teleport(world, unit), NB_ERR_PERMISSION);
    assert_int_equal(nb_store_load(world, save.bytes, save.size_bytes), NB_ERR_PERMISSION);
    nb_store_stage *stages[] = {&stage};
    assert_int_equal(nb_store_apply(world, stages, 1), NB_OK); // its spawn is skipped
    assert_int_equal(nb_store_stage_reset(&stage), NB_OK);
    assert_int_equal(nb_store_stage_spawn(&stage, w.f.units, NULL), NB_ERR_PERMISSION);
    assert_int_equal(nb_store_stage_despawn(&stage, unit), NB_ERR_PERMISSION);
    assert_true(nb_store_hash(world) == hash);
    assert_int_equal(nb_store_stats_get(world).denied_count, 11);
    assert_int_equal(test_log_count(&w.log, NB_ITEM_STORE_DENIED), 3); // units, clock and the load
    // What is local goes on: a table, and a column of a simulated one.
    assert_int_equal(nb_store_spawn(world, w.f.sparks, &other), NB_OK);
    assert_non_null(NB_STORE_ROW_WRITE(world, w.f.units, CACHE, uint16_t, 0));
    assert_int_equal(nb_store_stats_get(world).denied_count, 11);
    assert_int_equal(nb_store_allow(world, NB_COLUMN_SIMULATED), NB_OK);
    assert_non_null(NB_STORE_ROW_WRITE(world, w.f.units, HEALTH, uint32_t, 0));
    assert_null(NB_STORE_ROW_WRITE(world, w.f.units, CACHE, uint16_t, 0));
    assert_int_equal(nb_store_despawn(world, other), NB_ERR_PERMISSION);
    free(save.bytes);
    watched_close(&w);
}
