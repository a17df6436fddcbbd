// SPDX-License-Identifier: MIT
// A store as regions of a history: of each simulated table its head, the slots of its handle pool, its rows. After the
// rows were put back, what follows from them is put right: the row of each slot, previous values, local columns.

#include "../history/history.h"

#include "store.h"

#include <string.h>

// The regions of one table, in this order. marks is NULL without interpolated columns; columns are the simulated ones.
typedef struct table_regions {
    nbi_region *head, *pool, *generations, *links, *entities, *incarnations, *marks, *columns;
    nbi_region *end;
} table_regions;

// Those every table has.
#define FIXED_COUNT 6

static uint32_t simulated_count(const nbi_table *table) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < table->head->column_count; ++i) count += nbi_column_is_simulated(&table->heads[i]);
    return count;
}

static table_regions regions_of(const nbi_table *table, nbi_region *first) {
    table_regions out = {.head = first, .pool = first + 1, .generations = first + 2, .links = first + 3};
    out.entities = first + 4;
    out.incarnations = first + 5;
    out.columns = first + FIXED_COUNT;
    if (table->marks.rows != NULL) out.marks = out.columns++;
    out.end = out.columns + simulated_count(table);
    return out;
}

uint32_t nbi_store_region_count(const nb_store *store) {
    const nbi_store *self = nbi_store_const_of(store);
    uint32_t count = 0;
    for (uint32_t i = 0; i < store->table_count; ++i) {
        const nbi_table *table = &self->tables[i];
        uint32_t marks_count = table->marks.rows != NULL ? 1 : 0;
        if (!table->is_local) count += FIXED_COUNT + marks_count + simulated_count(table);
    }
    return count;
}

// --- describing ---

static void describe(const nbi_table *table, nbi_region *region, const nb_store_column *column) {
    region->size_bytes_max = (size_t)table->row_count_max * column->size_bytes;
    region->block_bytes = (size_t)column->size_bytes * NB_STORE_BLOCK_ROWS;
    region->block_versions = column->block_versions;
}

static void describe_table(nbi_table *table, const table_regions *to, nbi_table_head *head) {
    NB_STATIC_ASSERT(sizeof(nb_entity) == sizeof *table->incarnations, "both are kept in blocks of the same size");
    to->head->live = (unsigned char *)head;
    to->head->size_bytes = to->head->size_bytes_max = sizeof *head;
    to->pool->size_bytes = to->pool->size_bytes_max = nbi_pool_parts_of(table->pool).header_bytes;
    describe(table, to->generations, &table->generations);
    describe(table, to->links, &table->links);
    describe(table, to->entities, &table->entities);
    // An incarnation comes and goes with its row's entity, so it is written when that one is.
    describe(table, to->incarnations, &table->entities);
    if (to->marks != NULL) describe(table, to->marks, &table->marks);
    nbi_region *region = to->columns;
    for (uint32_t i = 0; i < table->head->column_count; ++i) {
        if (!nbi_column_is_simulated(&table->heads[i])) continue;
        describe(table, region, &table->heads[i]);
        region++->may_image = true;
    }
}

void nbi_store_regions_describe(nb_store *store, nbi_region *regions, nbi_table_head *heads) {
    nbi_store *self = nbi_store_of(store);
    self->is_started = true; // what is kept knows these tables and no others
    for (uint32_t i = 0; i < store->table_count; ++i) {
        if (self->tables[i].is_local) continue;
        table_regions to = regions_of(&self->tables[i], regions);
        describe_table(&self->tables[i], &to, &heads[i]);
        regions = to.end;
    }
}

// --- locating ---

static void locate(nbi_region *region, void *live, uint32_t count_now, uint32_t count_then) {
    size_t element_bytes = region->block_bytes / NB_STORE_BLOCK_ROWS;
    uint32_t count = count_now > count_then ? count_now : count_then;
    region->live = live;
    region->size_bytes = count * element_bytes;
    // What is behind the last one may have become zero in one go, without a mark.
    region->versioned_bytes = count_now * element_bytes;
}

static void locate_table(const nbi_table *table, const table_regions *to) {
    nbi_table_head then,
        now = {.row_count = table->head->row_count, .used_count = nb_handle_pool_stats_get(table->pool).used_count};
    memcpy(to->head->live, &now, sizeof now);
    memcpy(&then, to->head->shadow, sizeof then);
    nbi_pool_parts parts = nbi_pool_parts_of(table->pool);
    to->pool->live = parts.header;
    locate(to->generations, parts.generations, now.used_count, then.used_count);
    locate(to->links, parts.links, now.used_count, then.used_count);
    locate(to->entities, table->entities.rows, now.row_count, then.row_count);
    locate(to->incarnations, table->incarnations, now.row_count, then.row_count);
    if (to->marks != NULL) locate(to->marks, table->marks.rows, now.row_count, then.row_count);
    nbi_region *region = to->columns;
    for (uint32_t i = 0; i < table->head->column_count; ++i) {
        const nb_store_column *column = &table->heads[i];
        if (nbi_column_is_simulated(column)) locate(region++, column->rows, now.row_count, then.row_count);
    }
}

void nbi_store_regions_locate(nb_store *store, nbi_region *regions) {
    const nbi_store *self = nbi_store_of(store);
    for (uint32_t i = 0; i < store->table_count; ++i) {
        if (self->tables[i].is_local) continue;
        table_regions to = regions_of(&self->tables[i], regions);
        locate_table(&self->tables[i], &to);
        regions = to.end;
    }
}

// --- restoring ---

// Another life takes the row: nothing local is known of it, and it comes from nowhere else.
static void forget_row(const nbi_table *table, const table_regions *from, uint32_t row, uint64_t version) {
    const nbi_region *region = from->columns;
    uint32_t block = row / NB_STORE_BLOCK_ROWS;
    for (uint32_t i = 0; i < table->head->column_count; ++i) {
        const nb_store_column *column = &table->heads[i], *previous = &table->columns[i].previous;
        size_t size_bytes = column->size_bytes;
        const unsigned char *value = NULL;
        if (nbi_column_is_simulated(column)) {
            value = region++->shadow + row * size_bytes;
        } else {
            memset(nbi_row_at(column, row), 0, size_bytes);
            nbi_store_mark(column, block, version);
        }
        if (previous->rows == NULL) continue;
        memset(nbi_row_at(previous, row), 0, size_bytes);
        if (value != NULL) memcpy(nbi_row_at(previous, row), value, size_bytes);
        nbi_store_mark(previous, block, version);
    }
}

static bool is_other_life(const table_regions *from, size_t offset) {
    const nbi_region *entities = from->entities, *incarnations = from->incarnations;
    return memcmp(entities->live + offset, entities->shadow + offset, sizeof(nb_entity)) != 0 ||
           memcmp(incarnations->live + offset, incarnations->shadow + offset, sizeof(uint64_t)) != 0;
}

// Before rows are put back, while both what is and what is to be can be seen.
static void forget_rows(const nbi_table *table, const table_regions *from, uint64_t since, uint64_t version) {
    nbi_range range = {0, 0};
    while (nbi_region_next(from->entities, since, &range)) {
        for (size_t at = range.begin; at < range.end; at += sizeof(nb_entity)) {
            if (is_other_life(from, at)) forget_row(table, from, (uint32_t)(at / sizeof(nb_entity)), version);
        }
    }
}

static void find_rows(const nbi_table *table, const nbi_region *entities, uint64_t since) {
    uint32_t row_count = table->head->row_count;
    nbi_range range = {0, 0};
    while (nbi_region_next(entities, since, &range)) {
        for (size_t at = range.begin; at < range.end && at / sizeof(nb_entity) < row_count; at += sizeof(nb_entity)) {
            uint32_t row = (uint32_t)(at / sizeof(nb_entity));
            table->slot_rows[nb_handle_index(nbi_entity_handle(nbi_entities(table)[row]))] = row;
        }
    }
}

// As after loading: nothing moves until the next tick.
static void settle_previous(const nbi_table *table, const table_regions *from, uint64_t since, uint64_t version) {
    const nbi_region *region = from->columns;
    for (uint32_t i = 0; i < table->head->column_count; ++i) {
        const nb_store_column *previous = &table->columns[i].previous;
        if (!nbi_column_is_simulated(&table->heads[i])) continue;
        nbi_range range = {0, 0};
        while (previous->rows != NULL && nbi_region_next(region, since, &range)) {
            memcpy(previous->rows + range.begin, region->live + range.begin, range.end - range.begin);
            for (size_t at = range.begin; at < range.end; at += region->block_bytes) {
                nbi_store_mark(previous, (uint32_t)(at / region->block_bytes), version);
            }
        }
        ++region;
    }
}

// A hash covers the elements of a block that there are, so where their number changes the block has been written, even
// if its bytes are the same.
static void mark_ends(const table_regions *from, uint64_t version) {
    nbi_table_head now, then;
    memcpy(&now, from->head->live, sizeof now);
    memcpy(&then, from->head->shadow, sizeof then);
    for (const nbi_region *region = from->generations; region < from->end; ++region) {
        bool is_slots = region == from->generations || region == from->links;
        uint32_t count_now = is_slots ? now.used_count : now.row_count;
        uint32_t count_then = is_slots ? then.used_count : then.row_count;
        uint32_t first = count_now < count_then ? count_now : count_then;
        size_t begin = first / NB_STORE_BLOCK_ROWS * region->block_bytes;
        nbi_range range = {begin, region->size_bytes};
        if (count_now != count_then && begin < region->size_bytes) nbi_region_mark(region, range, version);
    }
}

static void restore_table(nbi_table *table, const table_regions *from, uint64_t since, uint64_t version) {
    mark_ends(from, version);
    forget_rows(table, from, since, version);
    for (const nbi_region *region = from->head; region < from->end; ++region) {
        nbi_region_restore(region, since, version);
    }
    nbi_table_head head;
    memcpy(&head, from->head->live, sizeof head);
    table->head->row_count = head.row_count;
    find_rows(table, from->entities, since);
    nbi_range range = {0, 0};
    if (nbi_region_next(from->links, since, &range)) table->slot_last = nbi_table_slot_last(table, head.used_count);
    settle_previous(table, from, since, version);
}

void nbi_store_regions_restore(nb_store *store, nbi_region *regions, uint64_t since, uint64_t version) {
    nbi_store *self = nbi_store_of(store);
    nbi_store_regions_locate(store, regions); // the shadows have moved
    for (uint32_t i = 0; i < store->table_count; ++i) {
        if (self->tables[i].is_local) continue;
        table_regions from = regions_of(&self->tables[i], regions);
        restore_table(&self->tables[i], &from, since, version);
        regions = from.end;
    }
}
