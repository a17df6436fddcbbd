// SPDX-License-Identifier: MIT
#pragma once

// A world with one table of each kind, and a mirror that follows it by block versions as a snapshot does.

#include "support/support.h"

#include "nebula/hash.h"
#include "nebula/store.h"

typedef struct vec3 {
    float x, y, z;
} vec3;

// Padding behind `kind`, and none of it may matter.
typedef struct padded {
    uint8_t kind;
    uint64_t number;
} padded;

enum { POSITION, HEALTH, NOTE, CACHE, UNIT_COLUMNS };
enum { SPARK_PLACE, SPARK_COLUMNS };
enum { CLOCK_TICK, CLOCK_COLUMNS };

static const nb_store_field padded_fields[] = {NB_STORE_FIELD(padded, kind), NB_STORE_FIELD(padded, number)};

static const nb_column_desc unit_columns[UNIT_COLUMNS] = {
    {.name = "position", .size_bytes = sizeof(vec3), .flags = NB_COLUMN_SNAPSHOT | NB_COLUMN_INTERPOLATE},
    {.name = "health", .size_bytes = sizeof(uint32_t), .flags = NB_COLUMN_SIMULATED},
    {.name = "note", .size_bytes = sizeof(padded), .fields = padded_fields, .field_count = 2},
    {.name = "cache", .size_bytes = sizeof(uint16_t), .flags = NB_COLUMN_LOCAL},
};
static const nb_column_desc spark_columns[SPARK_COLUMNS] = {
    {.name = "place", .size_bytes = sizeof(vec3), .flags = NB_COLUMN_SNAPSHOT | NB_COLUMN_INTERPOLATE}};
static const nb_column_desc clock_columns[CLOCK_COLUMNS] = {{.name = "tick", .size_bytes = sizeof(uint64_t)}};

typedef struct fixture {
    nb_store *world;
    nb_table units, sparks, clock;
    uint32_t unit_count_max;
} fixture;

static inline fixture fixture_open_desc(uint32_t unit_count_max, nb_store_desc desc) {
    fixture f = {.unit_count_max = unit_count_max};
    nb_table_desc units = {
        .name = "units", .row_count_max = unit_count_max, .columns = unit_columns, .column_count = UNIT_COLUMNS};
    nb_table_desc sparks = {.name = "sparks",
                            .row_count_max = 100,
                            .columns = spark_columns,
                            .column_count = SPARK_COLUMNS,
                            .is_local = true};
    nb_table_desc clock = {.name = "clock",
                           .row_count_max = 0,
                           .columns = clock_columns,
                           .column_count = CLOCK_COLUMNS,
                           .is_singleton = true};
    assert_int_equal(nb_store_create(&desc, &f.world), NB_OK);
    assert_int_equal(nb_store_table_add(f.world, &units, &f.units), NB_OK);
    assert_int_equal(nb_store_table_add(f.world, &sparks, &f.sparks), NB_OK);
    assert_int_equal(nb_store_table_add(f.world, &clock, &f.clock), NB_OK);
    return f;
}

static inline fixture fixture_open(uint32_t unit_count_max, const nb_hooks *hooks) {
    return fixture_open_desc(unit_count_max, (nb_store_desc){.hooks = *hooks});
}

// With a log, which counts from zero.
static inline fixture fixture_logged(uint32_t unit_count_max, test_log *log) {
    memset(log, 0, sizeof *log);
    nb_hooks hooks = test_hooks(log, NULL);
    return fixture_open(unit_count_max, &hooks);
}

// A world with two tables, as far as it comes.
static inline nb_result declare_two_tables(nb_store_desc desc, nb_store **world) {
    nb_table table = {0};
    nb_table_desc units = {
        .name = "units", .row_count_max = 100, .columns = unit_columns, .column_count = UNIT_COLUMNS};
    nb_table_desc clock = {.name = "clock",
                           .row_count_max = 0,
                           .columns = clock_columns,
                           .column_count = CLOCK_COLUMNS,
                           .is_singleton = true};
    nb_result result = nb_store_create(&desc, world);
    if (result == NB_OK) result = nb_store_table_add(*world, &units, &table);
    if (result == NB_OK) result = nb_store_table_add(*world, &clock, &table);
    return result;
}

static inline fixture fixture_plain(uint32_t unit_count_max) {
    nb_hooks hooks = {0};
    return fixture_open(unit_count_max, &hooks);
}

static inline nb_entity unit_spawn(fixture *f, uint32_t health) {
    nb_entity entity = {0};
    uint32_t row = 0;
    assert_int_equal(nb_store_spawn(f->world, f->units, &entity), NB_OK);
    assert_int_equal(nb_store_find(f->world, entity, &row), NB_OK);
    *NB_STORE_ROW_WRITE(f->world, f->units, HEALTH, uint32_t, row) = health;
    return entity;
}

static inline uint32_t unit_row(const fixture *f, nb_entity entity) {
    uint32_t row = UINT32_MAX;
    assert_int_equal(nb_store_find(f->world, entity, &row), NB_OK);
    return row;
}

static inline uint32_t unit_health(const fixture *f, nb_entity entity) {
    return *NB_STORE_ROW(f->world, f->units, HEALTH, uint32_t, unit_row(f, entity));
}

typedef struct saved {
    unsigned char *bytes;
    size_t size_bytes;
} saved;

static inline saved fixture_save(const fixture *f, nb_save_kind kind) {
    saved out = {.size_bytes = nb_store_save_size(f->world, kind)};
    size_t written = 0;
    out.bytes = malloc(out.size_bytes);
    assert_non_null(out.bytes);
    assert_int_equal(nb_store_save(f->world, kind, out.bytes, out.size_bytes, &written), NB_OK);
    assert_int_equal(written, out.size_bytes);
    return out;
}

// --- a mirror ---

#define MIRROR_VIEWS_MAX 16

typedef struct mirror_view {
    unsigned char *bytes;
    uint64_t *versions;
} mirror_view;

typedef struct mirror {
    mirror_view views[MIRROR_VIEWS_MAX];
    uint64_t copied_blocks; // by the last mirror_follow
} mirror;

static inline uint32_t mirror_list(const fixture *f, nb_column_view *views) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < UNIT_COLUMNS; ++i) nb_store_column_view(f->world, f->units, i, &views[count++]);
    nb_store_previous_view(f->world, f->units, POSITION, &views[count++]);
    nb_store_entity_view(f->world, f->units, &views[count++]);
    nb_store_teleport_view(f->world, f->units, &views[count++]);
    nb_store_column_view(f->world, f->sparks, SPARK_PLACE, &views[count++]);
    nb_store_previous_view(f->world, f->sparks, SPARK_PLACE, &views[count++]);
    nb_store_column_view(f->world, f->clock, CLOCK_TICK, &views[count++]);
    return count;
}

static inline void mirror_open(mirror *m, const fixture *f) {
    nb_column_view views[MIRROR_VIEWS_MAX];
    memset(m, 0, sizeof *m);
    for (uint32_t i = 0; i < mirror_list(f, views); ++i) {
        size_t blocks = (views[i].row_count_max + views[i].block_rows - 1) / views[i].block_rows;
        m->views[i].bytes = calloc(blocks * views[i].block_rows, views[i].stride_bytes);
        m->views[i].versions = calloc(blocks, sizeof(uint64_t));
        assert_non_null(m->views[i].bytes);
        assert_non_null(m->views[i].versions);
    }
}

// Copies the blocks whose version moved on, and is then equal to the world in every row.
static inline void mirror_follow(mirror *m, fixture *f) {
    nb_column_view views[MIRROR_VIEWS_MAX];
    uint32_t count = mirror_list(f, views);
    m->copied_blocks = 0;
    for (uint32_t i = 0; i < count; ++i) {
        const nb_column_view *view = &views[i];
        size_t block_bytes = view->stride_bytes * view->block_rows;
        for (uint32_t block = 0; block * view->block_rows < view->row_count; ++block) {
            if (m->views[i].versions[block] == view->block_versions[block]) continue;
            memcpy(m->views[i].bytes + block * block_bytes, (const char *)view->base + block * block_bytes,
                   block_bytes);
            m->views[i].versions[block] = view->block_versions[block];
            m->copied_blocks += 1;
        }
        if (view->row_count == 0) continue;
        assert_memory_equal(m->views[i].bytes, view->base, view->row_count * view->stride_bytes);
    }
    nb_store_version_advance(f->world);
}

static inline void mirror_close(mirror *m) {
    for (uint32_t i = 0; i < MIRROR_VIEWS_MAX; ++i) {
        free(m->views[i].bytes);
        free(m->views[i].versions);
    }
}
