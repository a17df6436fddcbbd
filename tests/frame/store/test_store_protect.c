// SPDX-License-Identifier: MIT
// A world whose rows can be made read-only: it is the same world in every other way, reads go on while it is protected,
// and every address of a row leads back to it.

#include "frame/store/store_fixture.h"

#include "nebula/snapshot.h"

static fixture protectable_open(uint32_t unit_count_max, const nb_hooks *hooks) {
    return fixture_open_desc(unit_count_max, (nb_store_desc){.is_protectable = true, .hooks = *hooks});
}

static fixture protectable_plain(uint32_t unit_count_max) {
    nb_hooks hooks = {0};
    return protectable_open(unit_count_max, &hooks);
}

// --- the same world ---

// One tick of changes that depend on the random numbers alone.
static void change(fixture *f, uint64_t *random) {
    static unsigned char memory[1 << 14];
    nb_store_stage stage, *stages[1] = {&stage};
    nb_store_stage_desc desc = {.memory = memory, .size_bytes = sizeof memory};
    assert_int_equal(nb_store_stage_init(&stage, f->world, &desc), NB_OK);
    assert_int_equal(nb_store_tick_begin(f->world), NB_OK);
    uint32_t row_count = nb_store_row_count(f->world, f->units);
    for (uint32_t i = 0; i < 10; ++i) {
        uint32_t row = row_count != 0 ? (uint32_t)(test_random(random) % row_count) : 0;
        nb_entity entity = nb_store_entity(f->world, f->units, row);
        uint64_t kind = test_random(random) % 4;
        nb_staged staged;
        if (kind == 0 && nb_store_stage_spawn(&stage, f->units, &staged) == NB_OK) {
            *NB_STORE_STAGED_WRITE(&stage, staged, HEALTH, uint32_t) = (uint32_t)test_random(random);
        }
        if (entity.value == 0) continue;
        if (kind == 1) nb_store_stage_despawn(&stage, entity);
        if (kind == 2)
            NB_STORE_ROW_WRITE(f->world, f->units, POSITION, vec3, row)->x = (float)(test_random(random) % 1000);
        if (kind == 3) nb_store_teleport(f->world, entity);
    }
    nb_store_apply(f->world, stages, 1);
    assert_int_equal(nb_store_tick_end(f->world), NB_OK);
}

TEST(protectable_world_is_the_same_world) {
    uint64_t seed = test_seed("protectable_world_is_the_same_world"), random_plain = seed, random_pages = seed;
    fixture plain = fixture_plain(300), pages = protectable_plain(300);
    assert_true(nb_store_layout_hash(plain.world) == nb_store_layout_hash(pages.world));
    for (uint64_t i = 0; i < test_size(300, 3000, 30000); ++i) {
        change(&plain, &random_plain);
        change(&pages, &random_pages);
        assert_true(nb_store_hash(plain.world) == nb_store_hash(pages.world));
        assert_int_equal(nb_store_protect(pages.world, true), NB_OK);
        if (i % 50 == 0) {
            assert_true(nb_store_is_valid(pages.world));
            saved a = fixture_save(&plain, NB_SAVE_HISTORY), b = fixture_save(&pages, NB_SAVE_HISTORY);
            assert_int_equal(a.size_bytes, b.size_bytes);
            assert_memory_equal(a.bytes, b.bytes, a.size_bytes);
            assert_int_equal(nb_store_protect(pages.world, false), NB_OK);
            assert_int_equal(nb_store_load(pages.world, b.bytes, b.size_bytes), NB_OK);
            assert_int_equal(nb_store_load(plain.world, a.bytes, a.size_bytes), NB_OK);
            free(a.bytes);
            free(b.bytes);
        }
        assert_int_equal(nb_store_protect(pages.world, false), NB_OK);
    }
    nb_store_destroy(plain.world);
    nb_store_destroy(pages.world);
}

TEST(protection_may_be_repeated_and_the_end_comes_at_any_time) {
    test_log log = {0};
    test_heap heap = {0};
    nb_hooks hooks = test_hooks(&log, &heap);
    fixture f = protectable_open(100, &hooks);
    nb_entity entity = unit_spawn(&f, 7);
    for (int i = 0; i < 2; ++i) assert_int_equal(nb_store_protect(f.world, true), NB_OK);
    assert_int_equal(unit_health(&f, entity), 7);
    for (int i = 0; i < 2; ++i) assert_int_equal(nb_store_protect(f.world, false), NB_OK);
    *NB_STORE_ROW_WRITE(f.world, f.units, HEALTH, uint32_t, 0) = 8;
    *NB_STORE_SINGLETON_WRITE(f.world, f.clock, CLOCK_TICK, uint64_t) = 9;
    assert_int_equal(unit_health(&f, entity), 8);
    assert_int_equal(nb_store_protect(f.world, true), NB_OK);
    nb_store_destroy(f.world);
    assert_int_equal(heap.live_count.value, 0);
    assert_int_equal(heap.live_bytes.value, 0);
}

TEST(protected_world_is_published) {
    fixture f = protectable_plain(100);
    unit_spawn(&f, 7);
    nb_column_view view;
    nb_snapshots *snapshots = NULL;
    uint32_t region = 0;
    assert_int_equal(nb_snapshots_create(NULL, &snapshots), NB_OK);
    assert_int_equal(nb_store_column_view(f.world, f.units, HEALTH, &view), NB_OK);
    nb_snapshot_region_desc desc = {.name = "health",
                                    .base = view.base,
                                    .size_bytes = view.stride_bytes * view.row_count_max,
                                    .block_size_bytes = view.stride_bytes * view.block_rows,
                                    .block_versions = view.block_versions};
    assert_int_equal(nb_snapshots_region_add(snapshots, &desc, &region), NB_OK);
    assert_int_equal(nb_store_protect(f.world, true), NB_OK);
    assert_int_equal(nb_snapshots_publish(snapshots, NULL), NB_OK);
    const nb_snapshot *snapshot = nb_snapshots_acquire(snapshots);
    assert_int_equal(*(const uint32_t *)nb_snapshot_region(snapshot, region, NULL), 7);
    nb_snapshot_release(snapshot);
    assert_int_equal(nb_snapshots_destroy(snapshots), NB_OK);
    nb_store_destroy(f.world);
}

// --- addresses ---

static void assert_place(const fixture *f, const nb_column_view *view, nb_table table, nb_store_part part,
                         const char *table_name, const char *column_name) {
    uint32_t block_rows = (view->row_count_max + view->block_rows - 1) / view->block_rows * view->block_rows;
    for (size_t offset = 0; offset < block_rows * view->stride_bytes; ++offset) {
        nb_store_place place = {0};
        assert_int_equal(nb_store_locate(f->world, (const char *)view->base + offset, &place), NB_OK);
        assert_int_equal(place.table.value, table.value);
        assert_int_equal(place.part, part);
        assert_int_equal(place.row, offset / view->stride_bytes);
        assert_int_equal(place.offset_bytes, offset % view->stride_bytes);
        assert_string_equal(place.table_name, table_name);
        assert_string_equal(place.column_name, column_name);
    }
    nb_store_place place = {0};
    bool is_other = nb_store_locate(f->world, (const char *)view->base - 1, &place) == NB_EMPTY ||
                    strcmp(place.column_name, column_name) != 0 || place.part != part;
    assert_true(is_other);
    is_other =
        nb_store_locate(f->world, (const char *)view->base + block_rows * view->stride_bytes, &place) == NB_EMPTY ||
        strcmp(place.column_name, column_name) != 0 || place.part != part;
    assert_true(is_other);
}

static void assert_located(fixture *f) {
    nb_column_view view;
    for (uint32_t i = 0; i < UNIT_COLUMNS; ++i) {
        assert_int_equal(nb_store_column_view(f->world, f->units, i, &view), NB_OK);
        assert_place(f, &view, f->units, NB_STORE_PART_ROWS, "units", unit_columns[i].name);
    }
    assert_int_equal(nb_store_previous_view(f->world, f->units, POSITION, &view), NB_OK);
    assert_place(f, &view, f->units, NB_STORE_PART_PREVIOUS, "units", "position");
    assert_int_equal(nb_store_entity_view(f->world, f->units, &view), NB_OK);
    assert_place(f, &view, f->units, NB_STORE_PART_ENTITIES, "units", "entities");
    assert_int_equal(nb_store_teleport_view(f->world, f->units, &view), NB_OK);
    assert_place(f, &view, f->units, NB_STORE_PART_TELEPORTS, "units", "teleports");
    assert_int_equal(nb_store_column_view(f->world, f->clock, CLOCK_TICK, &view), NB_OK);
    assert_place(f, &view, f->clock, NB_STORE_PART_ROWS, "clock", "tick");
    nb_store_place place = {.row = 77};
    int elsewhere = 0;
    assert_int_equal(nb_store_locate(f->world, &elsewhere, &place), NB_EMPTY);
    assert_int_equal(nb_store_locate(f->world, NULL, &place), NB_EMPTY);
    assert_int_equal(nb_store_locate(f->world, (const void *)UINTPTR_MAX, &place), NB_EMPTY);
    assert_int_equal(nb_store_locate(f->world, f->world, &place), NB_EMPTY);
    assert_int_equal(place.row, 77); // untouched
}

TEST(every_address_leads_back_to_its_row) {
    fixture plain = fixture_plain(100), pages = protectable_plain(100);
    unit_spawn(&plain, 1);
    unit_spawn(&pages, 1);
    assert_located(&plain);
    assert_located(&pages);
    assert_int_equal(nb_store_protect(pages.world, true), NB_OK);
    assert_located(&pages);
    nb_store_destroy(plain.world);
    nb_store_destroy(pages.world);
}

// --- refusals and memory ---

TEST(world_without_pages_is_not_protected) {
    test_log log = {0};
    nb_hooks hooks = test_hooks(&log, NULL);
    fixture f = fixture_open(100, &hooks);
    assert_int_equal(nb_store_protect(f.world, true), NB_ERR_UNSUPPORTED);
    assert_int_equal(nb_store_protect(f.world, false), NB_ERR_UNSUPPORTED);
    assert_int_equal(test_log_count(&log, NB_ITEM_STORE_PROTECTED), 2);
    nb_entity entity = unit_spawn(&f, 3);
    assert_int_equal(unit_health(&f, entity), 3);
    nb_store_destroy(f.world);
}

TEST(no_table_is_declared_while_protected) {
    test_log log = {0};
    nb_hooks hooks = test_hooks(&log, NULL);
    nb_store_desc desc = {.is_protectable = true, .hooks = hooks};
    nb_table_desc clock = {.name = "clock",
                           .row_count_max = 0,
                           .columns = clock_columns,
                           .column_count = CLOCK_COLUMNS,
                           .is_singleton = true};
    nb_store *world = NULL;
    nb_table table = {0};
    assert_int_equal(nb_store_create(&desc, &world), NB_OK);
    assert_int_equal(nb_store_protect(world, true), NB_OK); // of nothing
    assert_int_equal(nb_store_table_add(world, &clock, &table), NB_ERR_MISUSE);
    assert_int_equal(test_log_count(&log, NB_ITEM_STORE_PROTECTED), 1);
    assert_int_equal(nb_store_protect(world, false), NB_OK);
    assert_int_equal(nb_store_table_add(world, &clock, &table), NB_OK);
    nb_store_destroy(world);
}

static nb_result declare_all(const nb_hooks *hooks, nb_store **world) {
    return declare_two_tables((nb_store_desc){.is_protectable = true, .hooks = *hooks}, world);
}

TEST(declaration_survives_every_failed_allocation) {
    for (uint32_t n = 1;; ++n) {
        test_log log = {0};
        test_heap heap = {.fail_at = n};
        nb_hooks hooks = test_hooks(&log, &heap);
        nb_store *world = NULL;
        nb_result result = declare_all(&hooks, &world);
        if (result != NB_OK) assert_int_equal(result, NB_ERR_MEMORY);
        if (result != NB_OK) assert_int_equal(test_log_count(&log, NB_ITEM_BASE_MEMORY), 1);
        if (world != NULL) assert_int_equal(nb_store_protect(world, true), NB_OK);
        if (world != NULL) assert_int_equal(nb_store_protect(world, false), NB_OK);
        nb_store_destroy(world);
        assert_int_equal(heap.live_count.value, 0);
        assert_int_equal(heap.live_bytes.value, 0);
        if (result != NB_OK) continue;
        assert_int_equal(n, 10); // the world; columns, rows and two pools of each table
        return;
    }
}

// More than the addresses of a process.
TEST(pages_that_are_not_there_are_a_clean_error) {
    test_log log = {0};
    test_heap heap = {0};
    nb_store_desc desc = {.is_protectable = true, .hooks = test_hooks(&log, &heap)};
    nb_column_desc columns[16];
    char names[16][2];
    nb_store *world = NULL;
    nb_table table = {0};
    for (int i = 0; i < 16; ++i) {
        names[i][0] = (char)('a' + i), names[i][1] = 0;
        columns[i] = (nb_column_desc){.name = names[i], .size_bytes = NB_STORE_ELEMENT_SIZE_MAX};
    }
    nb_table_desc huge = {.name = "huge",
                          .row_count_max = NB_HANDLE_CAPACITY_MAX,
                          .columns = columns,
                          .column_count = 16,
                          .is_local = true};
    nb_table_desc clock = {.name = "clock",
                           .row_count_max = 0,
                           .columns = clock_columns,
                           .column_count = CLOCK_COLUMNS,
                           .is_singleton = true};
    assert_int_equal(nb_store_create(&desc, &world), NB_OK);
    uint64_t live_count = heap.live_count.value;
    assert_int_equal(nb_store_table_add(world, &huge, &table), NB_ERR_MEMORY);
    assert_int_equal(test_log_count(&log, NB_ITEM_BASE_MEMORY), 1);
    assert_int_equal(heap.live_count.value, live_count);
    assert_int_equal(nb_store_table_add(world, &clock, &table), NB_OK);
    nb_store_destroy(world);
    assert_int_equal(heap.live_count.value, 0);
}
