// SPDX-License-Identifier: MIT
// nebula/store.h, with nebula/store_view.h and nb_store_compare of nebula/compare.h: worlds, tables, rows, stages and
// views that are none, bad descs and bytes.

#include "bad_input/bad_input.h"

#include "nebula/compare.h"
#include "nebula/store.h"
#include "nebula/store_view.h"

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

static const nb_column_desc columns[] = {
    {.name = "a", .size_bytes = 4, .flags = NB_COLUMN_SNAPSHOT | NB_COLUMN_INTERPOLATE},
    {.name = "b", .size_bytes = 8}};

typedef struct subject {
    test_heap heap;
    nb_store *world;
    nb_table rows, plain, single;
    nb_entity entity;
} subject;

static void subject_open(subject *s) {
    memset(s, 0, sizeof *s);
    nb_store_desc desc = {.table_count_max = 3, .hooks = bad_hooks(&s->heap)};
    nb_table_desc rows = {.name = "rows", .row_count_max = 4, .columns = columns, .column_count = 2};
    nb_table_desc plain = {.name = "plain", .columns = columns + 1, .column_count = 1, .is_local = true};
    nb_table_desc single = {.name = "single", .columns = columns + 1, .column_count = 1, .is_singleton = true};
    accepted(NB_OK, nb_store_create(&desc, &s->world));
    accepted(NB_OK, nb_store_table_add(s->world, &rows, &s->rows));
    accepted(NB_OK, nb_store_table_add(s->world, &plain, &s->plain));
    accepted(NB_OK, nb_store_table_add(s->world, &single, &s->single));
    accepted(NB_OK, nb_store_spawn(s->world, s->rows, &s->entity));
}

// One row, as it was, and another can come and go.
static void subject_close(subject *s) {
    nb_entity entity;
    assert_int_equal(nb_store_row_count(s->world, s->rows), 1);
    accepted(NB_OK, nb_store_spawn(s->world, s->rows, &entity));
    accepted(NB_OK, nb_store_despawn(s->world, entity));
    accepted(true, nb_store_is_valid(s->world));
    silent(nb_store_destroy(s->world));
    assert_int_equal(s->heap.live_count.value, 0);
}

TEST(world_refuses_a_bad_desc) {
    test_heap heap = {0};
    nb_store *world = UNTOUCHED(nb_store);
    nb_store_desc fine = {.hooks = bad_hooks(&heap)}, many = fine;
    many.table_count_max = NB_STORE_TABLE_COUNT_MAX + 1;
    refused(NB_ERR_MISUSE, NB_ITEM_STORE_ARGUMENT, nb_store_create(&fine, NULL));
    refused(NB_ERR_RANGE, NB_ITEM_STORE_ARGUMENT, nb_store_create(&many, &world));
    assert_int_equal(heap.call_count.value, 0);
    refused_memory(heap, 1, world, nb_store_create(&fine, &world));
    silent(nb_store_destroy(NULL));
}

TEST(world_refuses_bad_tables) {
    test_heap heap = {0};
    nb_store *world = NULL;
    nb_table table = {0x5A}, taken;
    nb_store_desc desc = {.table_count_max = 2, .hooks = bad_hooks(&heap)};
    const nb_table_desc fine = {.name = "fine", .columns = columns, .column_count = 2};
    char long_name[NB_STORE_NAME_SIZE + 1];
    memset(long_name, 'n', sizeof long_name);
    long_name[NB_STORE_NAME_SIZE] = '\0';
    accepted(NB_OK, nb_store_create(&desc, &world));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_store_table_add(NULL, &fine, &table));
    refused(NB_ERR_MISUSE, NB_ITEM_STORE_ARGUMENT, nb_store_table_add(world, NULL, &table));
    refused(NB_ERR_MISUSE, NB_ITEM_STORE_ARGUMENT, nb_store_table_add(world, &fine, NULL));
    accepted(NB_OK, nb_store_table_add(world, &fine, &taken));
    uint64_t calls = heap.call_count.value;
    const char *const names[] = {NULL, "", "fine", long_name};
    for (size_t i = 0; i < COUNT_OF(names); ++i) {
        nb_table_desc wrong = fine;
        wrong.name = names[i];
        refused(NB_ERR_MISUSE, NB_ITEM_STORE_NAME, nb_store_table_add(world, &wrong, &table));
    }
    nb_table_desc wrong[] = {fine, fine, fine, fine, fine};
    for (size_t i = 0; i < COUNT_OF(wrong); ++i) wrong[i].name = "other";
    wrong[0].columns = NULL;
    wrong[1].column_count = 0;
    wrong[2].column_count = NB_STORE_COLUMN_COUNT_MAX + 1;
    wrong[3].row_count_max = NB_HANDLE_CAPACITY_MAX + 1;
    wrong[4].row_count_max = 2;
    wrong[4].is_singleton = true;
    for (size_t i = 0; i < COUNT_OF(wrong); ++i) {
        refused(i < 2 ? NB_ERR_MISUSE : NB_ERR_RANGE, NB_ITEM_STORE_ARGUMENT,
                nb_store_table_add(world, &wrong[i], &table));
    }
    assert_int_equal(heap.call_count.value, calls);
    assert_int_equal(table.value, 0x5A);
    // Full, then started.
    nb_table_desc second = fine;
    second.name = "second";
    accepted(NB_OK, nb_store_table_add(world, &second, &table));
    second.name = "third";
    accepted(NB_FULL, nb_store_table_add(world, &second, &table)); // a warning, not an error
    nb_entity entity;
    accepted(NB_OK, nb_store_spawn(world, taken, &entity));
    refused(NB_ERR_MISUSE, NB_ITEM_STORE_STARTED, nb_store_table_add(world, &second, &table));
    silent(nb_store_destroy(world));
    assert_int_equal(heap.live_count.value, 0);
}

TEST(world_refuses_bad_columns) {
    test_heap heap = {0};
    nb_store *world = NULL;
    nb_table table = {0x5A};
    nb_store_desc desc = {.hooks = bad_hooks(&heap)};
    accepted(NB_OK, nb_store_create(&desc, &world));
    static const nb_store_field outside[] = {{0, 4}, {3, 2}}, empty[] = {{1, 0}}, far[] = {{UINT32_MAX, 1}};
    const struct {
        nb_column_desc column;
        nb_result result;
        nb_log_item item;
        bool is_local;
    } wrong[] = {
        {{.name = NULL, .size_bytes = 4}, NB_ERR_MISUSE, NB_ITEM_STORE_NAME, false},
        {{.name = "", .size_bytes = 4}, NB_ERR_MISUSE, NB_ITEM_STORE_NAME, false},
        {{.name = "first", .size_bytes = 4}, NB_ERR_MISUSE, NB_ITEM_STORE_NAME, false},
        {{.name = "x", .size_bytes = 0}, NB_ERR_RANGE, NB_ITEM_STORE_ARGUMENT, false},
        {{.name = "x", .size_bytes = NB_STORE_ELEMENT_SIZE_MAX + 1}, NB_ERR_RANGE, NB_ITEM_STORE_ARGUMENT, false},
        {{.name = "x", .size_bytes = SIZE_MAX}, NB_ERR_RANGE, NB_ITEM_STORE_ARGUMENT, false},
        {{"x", 4, NB_COLUMN_SIMULATED | NB_COLUMN_LOCAL, NULL, 0}, NB_ERR_MISUSE, NB_ITEM_STORE_ARGUMENT, false},
        {{"x", 4, 1u << 30, NULL, 0}, NB_ERR_MISUSE, NB_ITEM_STORE_ARGUMENT, false},
        {{"x", 4, NB_COLUMN_SIMULATED, NULL, 0}, NB_ERR_MISUSE, NB_ITEM_STORE_ARGUMENT, true},
        {{"x", 4, 0, NULL, 1}, NB_ERR_MISUSE, NB_ITEM_STORE_ARGUMENT, false},
        {{"x", 4, 0, outside, 0}, NB_ERR_MISUSE, NB_ITEM_STORE_ARGUMENT, false},
        {{"x", 4, 0, outside, 2}, NB_ERR_RANGE, NB_ITEM_STORE_ARGUMENT, false},
        {{"x", 4, 0, empty, 1}, NB_ERR_RANGE, NB_ITEM_STORE_ARGUMENT, false},
        {{"x", 4, 0, far, 1}, NB_ERR_RANGE, NB_ITEM_STORE_ARGUMENT, false},
    };
    for (size_t i = 0; i < COUNT_OF(wrong); ++i) {
        const nb_column_desc both[] = {{.name = "first", .size_bytes = 4}, wrong[i].column};
        nb_table_desc table_desc = {.name = "t", .columns = both, .column_count = 2, .is_local = wrong[i].is_local};
        refused(wrong[i].result, wrong[i].item, nb_store_table_add(world, &table_desc, &table));
    }
    assert_int_equal(heap.call_count.value, 1);
    assert_int_equal(table.value, 0x5A);
    assert_int_equal(nb_store_table_count(world), 0);
    silent(nb_store_destroy(world));
}

TEST(functions_refuse_a_null_world) {
    const nb_table table = {1};
    const nb_entity entity = {1};
    nb_table_info table_info;
    nb_column_info column_info;
    nb_column_view view;
    nb_entity_ref ref = {{1}, 1};
    nb_entity out;
    nb_store_stage stage;
    nb_store_stage_desc stage_desc = {0};
    nb_store_stats stats;
    uint32_t row;
    size_t size;
    refused_default(0, NB_ITEM_BASE_NULL, nb_store_table_find(NULL, "x").value);
    refused_default(0, NB_ITEM_BASE_NULL, nb_store_table_count(NULL));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_store_table_info(NULL, table, &table_info));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_store_column_info(NULL, table, 0, &column_info));
    refused_default(0, NB_ITEM_BASE_NULL, nb_store_layout_hash(NULL));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_store_spawn(NULL, table, &out));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_store_despawn(NULL, entity));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_store_find(NULL, entity, &row));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_store_ref(NULL, entity, &ref));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_store_resolve(NULL, ref, &row));
    refused_default(NULL, NB_ITEM_BASE_NULL, nb_store_rows(NULL, table, 0, 4));
    refused_default(NULL, NB_ITEM_BASE_NULL, nb_store_rows_previous(NULL, table, 0, 4));
    refused_default(NULL, NB_ITEM_BASE_NULL, nb_store_rows_write(NULL, table, 0, 4, 0, 1));
    refused_default(NULL, NB_ITEM_BASE_NULL, nb_store_row(NULL, table, 0, 4, 0));
    refused_default(NULL, NB_ITEM_BASE_NULL, nb_store_row_write(NULL, table, 0, 4, 0));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_store_tick_begin(NULL));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_store_teleport(NULL, entity));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_store_tick_end(NULL));
    refused_default(0, NB_ITEM_BASE_NULL, nb_store_version_advance(NULL));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_store_stage_init(&stage, NULL, &stage_desc));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_store_apply(NULL, NULL, 0));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_store_column_view(NULL, table, 0, &view));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_store_previous_view(NULL, table, 0, &view));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_store_entity_view(NULL, table, &view));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_store_teleport_view(NULL, table, &view));
    refused_default(0, NB_ITEM_BASE_NULL, nb_store_hash(NULL));
    refused_default(0, NB_ITEM_BASE_NULL, nb_store_table_hash(NULL, table));
    refused_default(0, NB_ITEM_BASE_NULL, nb_store_column_hash(NULL, table, 0));
    nb_store_hash_part part = {.column = 77};
    nb_difference difference = {.row = 77};
    refused_default(0, NB_ITEM_BASE_NULL, nb_store_hash_count(NULL));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_store_hash_at(NULL, 0, &part));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_store_compare(NULL, &row, 4, &row, 4, &difference));
    assert_true(part.column == 77 && difference.row == 77);
    refused_default(0, NB_ITEM_BASE_NULL, nb_store_save_size(NULL, NB_SAVE_FILE));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_store_save(NULL, NB_SAVE_FILE, &row, 4, &size));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_store_load(NULL, &row, 4));
    refused_default(false, NB_ITEM_BASE_NULL, nb_store_is_valid(NULL));
    reported_default(NB_ITEM_BASE_NULL, stats = nb_store_stats_get(NULL));
    assert_int_equal(stats.memory_bytes, 0);
    accepted(0, nb_store_row_count(NULL, table));
    accepted(0, nb_store_entity(NULL, table, 0).value);
    accepted(0, nb_entity_table((nb_entity){0}).value);
}

TEST(questions_refuse_bad_tables_and_columns) {
    subject s;
    subject_open(&s);
    const nb_table bad[] = {{0}, {4}, {UINT32_MAX}};
    nb_table_info table_info;
    nb_column_info column_info;
    nb_column_view view;
    nb_entity entity;
    for (size_t i = 0; i < COUNT_OF(bad); ++i) {
        refused(NB_ERR_MISUSE, NB_ITEM_STORE_ARGUMENT, nb_store_table_info(s.world, bad[i], &table_info));
        refused(NB_ERR_MISUSE, NB_ITEM_STORE_ARGUMENT, nb_store_column_info(s.world, bad[i], 0, &column_info));
        refused(NB_ERR_MISUSE, NB_ITEM_STORE_ARGUMENT, nb_store_column_view(s.world, bad[i], 0, &view));
        refused(NB_ERR_MISUSE, NB_ITEM_STORE_ARGUMENT, nb_store_previous_view(s.world, bad[i], 0, &view));
        refused(NB_ERR_MISUSE, NB_ITEM_STORE_ARGUMENT, nb_store_entity_view(s.world, bad[i], &view));
        refused(NB_ERR_MISUSE, NB_ITEM_STORE_ARGUMENT, nb_store_teleport_view(s.world, bad[i], &view));
        refused(0, NB_ITEM_STORE_ARGUMENT, nb_store_table_hash(s.world, bad[i]));
        refused(0, NB_ITEM_STORE_ARGUMENT, nb_store_column_hash(s.world, bad[i], 0));
        refused(NB_ERR_MISUSE, NB_ITEM_STORE_ARGUMENT, nb_store_spawn(s.world, bad[i], &entity));
        refused(NULL, NB_ITEM_STORE_ARGUMENT, nb_store_rows(s.world, bad[i], 0, 4));
        refused(NULL, NB_ITEM_STORE_ARGUMENT, nb_store_row_write(s.world, bad[i], 0, 4, 0));
        accepted(0, nb_store_row_count(s.world, bad[i]));
        accepted(0, nb_store_entity(s.world, bad[i], 0).value);
    }
    refused(NB_ERR_MISUSE, NB_ITEM_STORE_ARGUMENT, nb_store_table_info(s.world, s.rows, NULL));
    refused(NB_ERR_MISUSE, NB_ITEM_STORE_ARGUMENT, nb_store_column_info(s.world, s.rows, 2, &column_info));
    refused(NB_ERR_MISUSE, NB_ITEM_STORE_ARGUMENT, nb_store_column_info(s.world, s.rows, 0, NULL));
    refused(NB_ERR_MISUSE, NB_ITEM_STORE_ARGUMENT, nb_store_column_view(s.world, s.rows, 2, &view));
    refused(NB_ERR_MISUSE, NB_ITEM_STORE_ARGUMENT, nb_store_column_view(s.world, s.rows, 0, NULL));
    refused(NB_ERR_MISUSE, NB_ITEM_STORE_ARGUMENT, nb_store_previous_view(s.world, s.rows, 1, &view));
    refused(NB_ERR_MISUSE, NB_ITEM_STORE_ARGUMENT, nb_store_entity_view(s.world, s.rows, NULL));
    refused(NB_ERR_MISUSE, NB_ITEM_STORE_ARGUMENT, nb_store_teleport_view(s.world, s.plain, &view));
    refused(0, NB_ITEM_STORE_ARGUMENT, nb_store_column_hash(s.world, s.rows, 2));
    nb_store_hash_part part = {.column = 77};
    refused(NB_ERR_MISUSE, NB_ITEM_STORE_ARGUMENT, nb_store_hash_at(s.world, 0, NULL));
    accepted(NB_EMPTY, nb_store_hash_at(s.world, UINT32_MAX, &part));
    assert_int_equal(part.column, 77);
    refused_default(0, NB_ITEM_BASE_NULL, nb_store_table_find(s.world, NULL).value);
    subject_close(&s);
}

TEST(accesses_refuse_bad_columns_rows_and_sizes) {
    subject s;
    subject_open(&s);
    refused(NULL, NB_ITEM_STORE_ARGUMENT, nb_store_rows(s.world, s.rows, 2, 4));
    refused(NULL, NB_ITEM_STORE_ARGUMENT, nb_store_rows(s.world, s.rows, 0, 8));
    refused(NULL, NB_ITEM_STORE_ARGUMENT, nb_store_rows_previous(s.world, s.rows, 0, 8));
    refused(NULL, NB_ITEM_STORE_ARGUMENT, nb_store_rows_previous(s.world, s.rows, 1, 8));
    refused(NULL, NB_ITEM_STORE_ARGUMENT, nb_store_rows_write(s.world, s.rows, 0, 8, 0, 1));
    refused(NULL, NB_ITEM_STORE_ARGUMENT, nb_store_row(s.world, s.rows, 0, 4, 1));
    refused(NULL, NB_ITEM_STORE_ARGUMENT, nb_store_refuse(s.world, s.rows, 0, 4, 1, NULL));
    refused(NULL, NB_ITEM_STORE_ARGUMENT, nb_store_row(s.world, s.rows, 0, 8, 0));
    refused(NULL, NB_ITEM_STORE_ARGUMENT, nb_store_row_write(s.world, s.rows, 0, 4, UINT32_MAX));
    refused(NULL, NB_ITEM_STORE_ARGUMENT, nb_store_row_write(s.world, s.rows, UINT32_MAX, 4, 0));
    subject_close(&s);
}

TEST(rows_refuse_bad_entities) {
    subject s;
    subject_open(&s);
    const nb_entity bad[] = {{0}, {1}, {UINT64_MAX}, {s.entity.value + 1}, {s.entity.value ^ 1ull << 58}};
    nb_entity_ref ref;
    nb_entity out;
    uint32_t row = 0x5A;
    for (size_t i = 0; i < COUNT_OF(bad); ++i) {
        refused(NB_ERR_STALE, NB_ITEM_STORE_STALE, nb_store_despawn(s.world, bad[i]));
        refused(NB_ERR_STALE, NB_ITEM_STORE_STALE, nb_store_teleport(s.world, bad[i]));
        accepted(NB_ERR_STALE, nb_store_find(s.world, bad[i], &row));
        accepted(NB_ERR_STALE, nb_store_ref(s.world, bad[i], &ref));
        accepted(NB_ERR_STALE, nb_store_resolve(s.world, (nb_entity_ref){bad[i], 1}, &row));
    }
    accepted(NB_ERR_STALE, nb_store_resolve(s.world, (nb_entity_ref){s.entity, 0}, &row));
    refused(NB_ERR_MISUSE, NB_ITEM_STORE_ARGUMENT, nb_store_find(s.world, s.entity, NULL));
    refused(NB_ERR_MISUSE, NB_ITEM_STORE_ARGUMENT, nb_store_ref(s.world, s.entity, NULL));
    refused(NB_ERR_MISUSE, NB_ITEM_STORE_ARGUMENT, nb_store_resolve(s.world, (nb_entity_ref){s.entity, 1}, NULL));
    refused(NB_ERR_MISUSE, NB_ITEM_STORE_ARGUMENT, nb_store_spawn(s.world, s.rows, NULL));
    refused(NB_ERR_MISUSE, NB_ITEM_STORE_ARGUMENT, nb_store_spawn(s.world, s.single, &out));
    nb_entity single = nb_store_entity(s.world, s.single, 0), plain;
    refused(NB_ERR_MISUSE, NB_ITEM_STORE_ARGUMENT, nb_store_despawn(s.world, single));
    accepted(NB_OK, nb_store_spawn(s.world, s.plain, &plain));
    refused(NB_ERR_MISUSE, NB_ITEM_STORE_ARGUMENT, nb_store_teleport(s.world, plain));
    assert_int_equal(row, 0x5A);
    subject_close(&s);
}

TEST(stages_refuse_bad_arguments) {
    subject s, other;
    subject_open(&s);
    subject_open(&other);
    _Alignas(16) unsigned char memory[512];
    nb_store_stage stage, blank, *list[2] = {&stage, NULL};
    memset(&blank, 0, sizeof blank);
    nb_store_stage_desc fine = {.memory = memory, .size_bytes = sizeof memory}, wrong = fine;
    nb_staged staged = {0};
    nb_entity entity;
    refused(NB_ERR_MISUSE, NB_ITEM_STORE_ARGUMENT, nb_store_stage_init(NULL, s.world, &fine));
    refused(NB_ERR_MISUSE, NB_ITEM_STORE_ARGUMENT, nb_store_stage_init(&stage, s.world, NULL));
    wrong.memory = NULL;
    refused(NB_ERR_MISUSE, NB_ITEM_STORE_ARGUMENT, nb_store_stage_init(&stage, s.world, &wrong));
    const size_t sizes[] = {0, 8, UINT32_MAX, SIZE_MAX};
    for (size_t i = 0; i < COUNT_OF(sizes); ++i) {
        wrong = (nb_store_stage_desc){.memory = memory, .size_bytes = sizes[i]};
        refused(NB_ERR_RANGE, NB_ITEM_STORE_ARGUMENT, nb_store_stage_init(&stage, s.world, &wrong));
    }
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_store_stage_spawn(NULL, s.rows, &staged));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_store_stage_despawn(NULL, s.entity));
    refused_default(NULL, NB_ITEM_BASE_NULL, nb_store_stage_write(NULL, staged, 0, 4));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_store_stage_link(NULL, staged, 0, staged));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_store_stage_entity(NULL, staged, &entity));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_store_stage_reset(NULL));
    refused_default(NB_ERR_MISUSE, NB_ITEM_STORE_ARGUMENT, nb_store_stage_spawn(&blank, s.rows, &staged));
    refused_default(NB_ERR_MISUSE, NB_ITEM_STORE_ARGUMENT, nb_store_stage_reset(&blank));
    accepted(NB_OK, nb_store_stage_init(&stage, s.world, &fine));
    refused(NB_ERR_MISUSE, NB_ITEM_STORE_ARGUMENT, nb_store_stage_spawn(&stage, (nb_table){0}, &staged));
    refused(NB_ERR_MISUSE, NB_ITEM_STORE_ARGUMENT, nb_store_stage_spawn(&stage, s.single, &staged));
    refused(NB_ERR_MISUSE, NB_ITEM_STORE_ARGUMENT, nb_store_stage_despawn(&stage, (nb_entity){0}));
    refused(NB_ERR_MISUSE, NB_ITEM_STORE_ARGUMENT,
            nb_store_stage_despawn(&stage, nb_store_entity(s.world, s.single, 0)));
    accepted(NB_OK, nb_store_stage_spawn(&stage, s.rows, &staged));
    const nb_staged bad[] = {{0}, {staged.value + 1}, {staged.value + 8}, {staged.value & UINT32_MAX}, {UINT64_MAX}};
    for (size_t i = 0; i < COUNT_OF(bad); ++i) {
        refused(NULL, NB_ITEM_STORE_STALE, nb_store_stage_write(&stage, bad[i], 0, 4));
        refused(NB_ERR_STALE, NB_ITEM_STORE_STALE, nb_store_stage_entity(&stage, bad[i], &entity));
        refused(NB_ERR_STALE, NB_ITEM_STORE_STALE, nb_store_stage_link(&stage, bad[i], 0, staged));
    }
    refused(NB_ERR_MISUSE, NB_ITEM_STORE_ARGUMENT, nb_store_stage_link(&stage, staged, 0, staged)); // of 4 bytes
    refused(NULL, NB_ITEM_STORE_ARGUMENT, nb_store_stage_write(&stage, staged, 2, 4));
    refused(NULL, NB_ITEM_STORE_ARGUMENT, nb_store_stage_write(&stage, staged, 0, 8));
    refused(NB_ERR_MISUSE, NB_ITEM_STORE_ARGUMENT, nb_store_stage_entity(&stage, staged, NULL));
    refused(NB_ERR_MISUSE, NB_ITEM_STORE_ARGUMENT, nb_store_apply(s.world, NULL, 1));
    refused(NB_ERR_MISUSE, NB_ITEM_STORE_STAGE, nb_store_apply(s.world, list, 2));
    list[1] = &blank;
    refused(NB_ERR_MISUSE, NB_ITEM_STORE_STAGE, nb_store_apply(s.world, list, 2));
    refused(NB_ERR_MISUSE, NB_ITEM_STORE_STAGE, nb_store_apply(other.world, list, 1));
    accepted(NB_OK, nb_store_apply(s.world, NULL, 0));
    subject_close(&s);
    subject_close(&other);
}

TEST(views_refuse_bad_arguments) {
    subject s;
    subject_open(&s);
    nb_snapshots *snapshots = NULL, *others = NULL;
    nb_snapshots_desc desc = {.hooks = bad_hooks(&s.heap)};
    accepted(NB_OK, nb_snapshots_create(&desc, &snapshots));
    accepted(NB_OK, nb_snapshots_create(&desc, &others));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_store_allow(NULL, 0));
    refused(NB_ERR_MISUSE, NB_ITEM_STORE_ARGUMENT, nb_store_allow(s.world, NB_COLUMN_SNAPSHOT));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_store_views_add(NULL, snapshots));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_store_views_add(s.world, NULL));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_store_views_publish(NULL, NULL));
    refused(NB_ERR_MISUSE, NB_ITEM_STORE_ARGUMENT, nb_store_views_publish(s.world, NULL));
    accepted(NB_OK, nb_store_views_add(s.world, snapshots));
    accepted(NB_OK, nb_store_views_add(s.world, snapshots)); // there already
    refused(NB_ERR_MISUSE, NB_ITEM_STORE_ARGUMENT, nb_store_views_add(s.world, others));
    accepted(NB_OK, nb_store_views_publish(s.world, NULL));
    const nb_snapshot *seen = nb_snapshots_acquire(snapshots);
    assert_non_null(seen);
    static const nb_table none = {77};
    accepted(0, nb_store_view_row_count(NULL, s.world, s.rows));
    accepted(0, nb_store_view_row_count(seen, NULL, s.rows));
    accepted(0, nb_store_view_row_count(seen, s.world, none));
    accepted(0, nb_store_view_row_count(seen, s.world, s.plain)); // not published
    accepted(NULL, nb_store_view_entities(seen, s.world, none));
    accepted(NULL, nb_store_view_entities(NULL, s.world, s.rows));
    accepted(NULL, nb_store_view_teleports(seen, s.world, none));
    accepted(NULL, nb_store_view_teleports(NULL, s.world, s.rows));
    accepted(NULL, nb_store_view_rows(NULL, s.world, s.rows, 0, 4));
    accepted(NULL, nb_store_view_rows(seen, NULL, s.rows, 0, 4));
    refused(NULL, NB_ITEM_STORE_ARGUMENT, nb_store_view_rows(seen, s.world, none, 0, 4));
    refused(NULL, NB_ITEM_STORE_ARGUMENT, nb_store_view_rows(seen, s.world, s.rows, 9, 4));
    refused(NULL, NB_ITEM_STORE_ARGUMENT, nb_store_view_rows(seen, s.world, s.rows, 0, 8));
    refused(NULL, NB_ITEM_STORE_ARGUMENT, nb_store_view_rows(seen, s.world, s.rows, 1, 8)); // not published
    accepted(NULL, nb_store_view_rows_previous(NULL, s.world, s.rows, 0, 4));
    refused(NULL, NB_ITEM_STORE_ARGUMENT, nb_store_view_rows_previous(seen, s.world, s.rows, 1, 8));
    assert_int_equal(nb_store_view_row_count(seen, s.world, s.rows), 1);
    assert_non_null(nb_store_view_rows(seen, s.world, s.rows, 0, 4));
    nb_snapshot_release(seen);
    accepted(NB_OK, nb_snapshots_destroy(snapshots));
    accepted(NB_OK, nb_snapshots_destroy(others));
    subject_close(&s);
}

TEST(save_and_load_refuse_bad_arguments) {
    subject s;
    subject_open(&s);
    unsigned char bytes[512] = {0};
    size_t size = 0x5A;
    nb_save_kind kind = NB_SAVE_KIND_COUNT;
    refused(0, NB_ITEM_STORE_ARGUMENT, nb_store_save_size(s.world, kind));
    refused(NB_ERR_MISUSE, NB_ITEM_STORE_ARGUMENT, nb_store_save(s.world, kind, bytes, sizeof bytes, &size));
    refused(NB_ERR_MISUSE, NB_ITEM_STORE_ARGUMENT, nb_store_save(s.world, NB_SAVE_FILE, NULL, sizeof bytes, &size));
    refused(NB_ERR_MISUSE, NB_ITEM_STORE_ARGUMENT, nb_store_save(s.world, NB_SAVE_FILE, bytes, sizeof bytes, NULL));
    refused(NB_ERR_MISUSE, NB_ITEM_STORE_ARGUMENT, nb_store_load(s.world, NULL, 4));
    refused(NB_ERR_RANGE, NB_ITEM_STORE_CORRUPT, nb_store_load(s.world, bytes, 0));
    refused(NB_ERR_RANGE, NB_ITEM_STORE_CORRUPT, nb_store_load(s.world, bytes, sizeof bytes));
    nb_difference difference = {.row = 77};
    refused(NB_ERR_MISUSE, NB_ITEM_STORE_ARGUMENT, nb_store_compare(s.world, NULL, 4, bytes, 4, &difference));
    refused(NB_ERR_MISUSE, NB_ITEM_STORE_ARGUMENT, nb_store_compare(s.world, bytes, 4, NULL, 4, &difference));
    refused(NB_ERR_MISUSE, NB_ITEM_STORE_ARGUMENT, nb_store_compare(s.world, bytes, 4, bytes, 4, NULL));
    refused(NB_ERR_RANGE, NB_ITEM_STORE_CORRUPT, nb_store_compare(s.world, bytes, 0, bytes, 0, &difference));
    refused(NB_ERR_RANGE, NB_ITEM_STORE_CORRUPT,
            nb_store_compare(s.world, bytes, sizeof bytes, bytes, sizeof bytes, &difference));
    assert_int_equal(difference.row, 77);
    refused(NB_ERR_MISUSE, NB_ITEM_STORE_TICK, nb_store_tick_end(s.world));
    assert_int_equal(size, 0x5A);
    subject_close(&s);
}

// --- tables with a type ---

typedef struct crate {
    uint32_t weight, value;
} crate;
NB_ROW(crate, NB_COLUMN(weight, NB_PLAIN), NB_COLUMN(value, NB_PLAIN))

TEST(types_that_are_none_are_refused) {
    static const nb_type empty = {"empty", 4, 0, NULL};
    refused_default(NB_ERR_MISUSE, NB_ITEM_STORE_TYPE, nb_type_check(NULL, NULL));
    refused_default(NB_ERR_MISUSE, NB_ITEM_STORE_TYPE, nb_type_check(&empty, NULL));
    accepted(NB_OK, nb_type_check(crate_type(), NULL));
    test_heap heap = {0};
    nb_store *world = NULL;
    nb_table table = {0x5A};
    nb_store_desc desc = {.hooks = bad_hooks(&heap)};
    accepted(NB_OK, nb_store_create(&desc, &world));
    uint64_t calls = heap.call_count.value;
    nb_table_desc both = {.name = "both", .type = crate_type(), .columns = columns, .column_count = 2};
    nb_table_desc none = {.name = "none", .type = &empty};
    refused(NB_ERR_MISUSE, NB_ITEM_STORE_ARGUMENT, nb_store_table_add(world, &both, &table));
    refused(NB_ERR_MISUSE, NB_ITEM_STORE_TYPE, nb_store_table_add(world, &none, &table));
    assert_int_equal(heap.call_count.value, calls);
    assert_int_equal(table.value, 0x5A);
    silent(nb_store_destroy(world));
}

TEST(rows_that_are_none_are_refused) {
    subject s;
    subject_open(&s);
    crate row = {1, 2};
    static unsigned char memory[1024];
    nb_store_stage stage;
    nb_store_stage_desc desc = {.memory = memory, .size_bytes = sizeof memory};
    accepted(NB_OK, nb_store_stage_init(&stage, s.world, &desc));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_store_stage_spawn_row(NULL, s.rows, &row, sizeof row, NULL));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_store_stage_spawn_rows(NULL, s.rows, &row, sizeof row, 1));
    refused(NB_ERR_MISUSE, NB_ITEM_STORE_ARGUMENT,
            nb_store_stage_spawn_row(&stage, (nb_table){9}, &row, sizeof row, NULL));
    refused(NB_ERR_MISUSE, NB_ITEM_STORE_ARGUMENT,
            nb_store_stage_spawn_rows(&stage, (nb_table){0}, &row, sizeof row, 1));
    refused(NB_ERR_MISUSE, NB_ITEM_STORE_ARGUMENT, nb_store_stage_spawn_row(&stage, s.rows, &row, sizeof row, NULL));
    refused(NB_ERR_MISUSE, NB_ITEM_STORE_ARGUMENT, nb_store_stage_spawn_rows(&stage, s.plain, NULL, 8, 1));
    refused(NB_ERR_MISUSE, NB_ITEM_STORE_ARGUMENT, nb_store_stage_spawn_row(&stage, s.single, &row, 8, NULL));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_store_row_get(NULL, s.rows, 0, &row, sizeof row));
    refused(NB_ERR_MISUSE, NB_ITEM_STORE_ARGUMENT, nb_store_row_get(s.world, (nb_table){9}, 0, &row, sizeof row));
    refused(NB_ERR_MISUSE, NB_ITEM_STORE_ARGUMENT, nb_store_row_get(s.world, s.rows, 0, NULL, sizeof row));
    refused_default(NULL, NB_ITEM_BASE_NULL, nb_store_member(NULL, s.rows, 0, 4));
    refused_default(NULL, NB_ITEM_BASE_NULL, nb_store_member_write(NULL, s.rows, 0, 4));
    refused(NULL, NB_ITEM_STORE_ARGUMENT, nb_store_member(s.world, s.rows, 0, 4)); // it has columns, and no type
    refused(NULL, NB_ITEM_STORE_ARGUMENT, nb_store_member_write(s.world, (nb_table){9}, SIZE_MAX, 4));
    assert_int_equal(row.weight, 1);
    subject_close(&s);
}
