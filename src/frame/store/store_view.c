// SPDX-License-Identifier: MIT
// Joins a store to snapshots: a region for each published column, and the way back from a region to its rows.

#include "nebula/store_view.h"

#include "store.h"

#include <stdio.h>

// --- regions ---

// A column, or what is kept like one, as it is published.
typedef struct source {
    nb_column_view view;
    const char *column; // NULL = of the whole table
    const char *suffix;
    uint32_t *region; // where its number + 1 is kept; 0 = not added yet
} source;

static nb_result add_region(nbi_store *self, const nbi_table *table, const source *from) {
    if (*from->region != 0) return NB_OK;
    char name[NB_SNAPSHOT_NAME_SIZE_MAX + 1];
    snprintf(name, sizeof name, "%s.%s%s", table->name, from->column != NULL ? from->column : "", from->suffix);
    const nb_column_view *view = &from->view;
    nb_snapshot_region_desc desc = {.name = name,
                                    .base = view->base,
                                    .size_bytes = view->row_count * view->stride_bytes,
                                    .size_bytes_max = view->row_count_max * view->stride_bytes,
                                    .block_size_bytes = view->block_rows * view->stride_bytes,
                                    .block_versions = view->block_versions};
    uint32_t region = 0;
    nb_result result = nb_snapshots_region_add(self->snapshots, &desc, &region);
    if (result == NB_OK) *from->region = region + 1;
    return result;
}

static nb_result move_region(nbi_store *self, const nbi_table *table, const source *from) {
    (void)table;
    const nb_column_view *view = &from->view;
    return nb_snapshots_region_move(self->snapshots, *from->region - 1, view->base,
                                    view->row_count * view->stride_bytes, view->block_versions);
}

typedef nb_result (*visit_fn)(nbi_store *self, const nbi_table *table, const source *from);

static nb_result visit_column(nbi_store *self, nbi_table *table, uint32_t index, visit_fn visit) {
    nb_store *store = &self->visible;
    nb_table handle = {(uint32_t)(table - self->tables) + 1};
    nbi_column *column = &table->columns[index];
    if ((table->heads[index].flags & NB_COLUMN_SNAPSHOT) == 0) return NB_OK;
    source now = {.column = column->name, .suffix = "", .region = &column->region};
    nb_store_column_view(store, handle, index, &now.view);
    nb_result result = visit(self, table, &now);
    if (result != NB_OK || column->previous.rows == NULL) return result;
    source before = {.column = column->name, .suffix = ".previous", .region = &column->previous_region};
    nb_store_previous_view(store, handle, index, &before.view);
    return visit(self, table, &before);
}

static nb_result visit_table(nbi_store *self, nbi_table *table, visit_fn visit) {
    nb_store *store = &self->visible;
    nb_table handle = {(uint32_t)(table - self->tables) + 1};
    bool is_published = false;
    for (uint32_t i = 0; i < table->head->column_count; ++i) {
        nb_result result = visit_column(self, table, i, visit);
        if (result != NB_OK) return result;
        is_published = is_published || (table->heads[i].flags & NB_COLUMN_SNAPSHOT) != 0;
    }
    if (!is_published) return NB_OK;
    source entities = {.suffix = "entities", .region = &table->entities_region};
    nb_store_entity_view(store, handle, &entities.view);
    nb_result result = visit(self, table, &entities);
    if (result != NB_OK || table->marks.rows == NULL) return result;
    source marks = {.suffix = "teleports", .region = &table->marks_region};
    nb_store_teleport_view(store, handle, &marks.view);
    return visit(self, table, &marks);
}

static nb_result visit_all(nbi_store *self, visit_fn visit) {
    for (uint32_t i = 0; i < self->visible.table_count; ++i) {
        nb_result result = visit_table(self, &self->tables[i], visit);
        if (result != NB_OK) return result;
    }
    return NB_OK;
}

bool nbi_store_is_published(const nbi_store *self) {
    for (uint32_t i = 0; i < self->visible.table_count; ++i) {
        const nb_store_table *table = &self->heads[i];
        for (uint32_t j = 0; j < table->column_count; ++j) {
            if ((table->columns[j].flags & NB_COLUMN_SNAPSHOT) != 0) return true;
        }
    }
    return false;
}

nb_result nb_store_views_add(nb_store *store, nb_snapshots *snapshots) {
    if (store == NULL || snapshots == NULL) return NBI_FAIL_NULL("store or snapshots");
    nbi_store *self = nbi_store_of(store);
    if (self->snapshots != NULL && self->snapshots != snapshots) {
        return NBI_FAIL(&self->hooks, NB_ITEM_STORE_ARGUMENT, NB_ERR_MISUSE, "the store is in other snapshots");
    }
    self->snapshots = snapshots;
    self->is_started = true;
    self->is_viewed = false;
    nb_result result = visit_all(self, add_region);
    self->is_viewed = result == NB_OK;
    return result;
}

nb_result nb_store_views_publish(nb_store *store, const nb_snapshot_info *info) {
    if (store == NULL) return NBI_FAIL_NULL("store");
    nbi_store *self = nbi_store_of(store);
    if (!self->is_viewed) {
        return NBI_FAIL(&self->hooks, NB_ITEM_STORE_ARGUMENT, NB_ERR_MISUSE, "nb_store_views_add comes first");
    }
    nb_result result = visit_all(self, move_region);
    if (result == NB_OK) result = nb_snapshots_publish(self->snapshots, info);
    nb_store_version_advance(store);
    return result;
}

// --- reading ---

// NULL: the snapshot is older than the region, or has none of its rows.
static const nb_snapshot_span *span_of(const nb_snapshot *snapshot, uint32_t region) {
    if (region == 0 || region > snapshot->region_count) return NULL;
    const nb_snapshot_span *span = &snapshot->regions[region - 1];
    return span->size_bytes != 0 ? span : NULL;
}

static const nbi_table *table_of(const nb_snapshot *snapshot, const nb_store *store, nb_table table) {
    return snapshot != NULL && store != NULL ? nbi_table_of(nbi_store_const_of(store), table) : NULL;
}

uint32_t nb_store_view_row_count(const nb_snapshot *snapshot, const nb_store *store, nb_table table) {
    const nbi_table *found = table_of(snapshot, store, table);
    const nb_snapshot_span *span = found != NULL ? span_of(snapshot, found->entities_region) : NULL;
    return span != NULL ? (uint32_t)(span->size_bytes / sizeof(nb_entity)) : 0;
}

const nb_entity *nb_store_view_entities(const nb_snapshot *snapshot, const nb_store *store, nb_table table) {
    const nbi_table *found = table_of(snapshot, store, table);
    const nb_snapshot_span *span = found != NULL ? span_of(snapshot, found->entities_region) : NULL;
    return span != NULL ? span->base : NULL;
}

const uint8_t *nb_store_view_teleports(const nb_snapshot *snapshot, const nb_store *store, nb_table table) {
    const nbi_table *found = table_of(snapshot, store, table);
    const nb_snapshot_span *span = found != NULL ? span_of(snapshot, found->marks_region) : NULL;
    return span != NULL ? span->base : NULL;
}

static const void *rows_of(const nb_snapshot *snapshot, const nb_store *store, nb_table table, uint32_t column,
                           size_t size_bytes, bool is_previous, const char *function) {
    if (snapshot == NULL || store == NULL) return NULL;
    const nbi_store *self = nbi_store_const_of(store);
    const nbi_table *found = nbi_table_of(self, table);
    bool is_there = found != NULL && column < found->head->column_count;
    uint32_t region = 0;
    if (is_there) region = is_previous ? found->columns[column].previous_region : found->columns[column].region;
    if (region == 0 || found->heads[column].size_bytes != size_bytes) {
        NBI_STORE_FAIL(self, nbi_column_object(table, column), NB_ITEM_STORE_ARGUMENT, NB_ERR_MISUSE, function,
                       "table %u '%s' has no column %u '%s' of %zu bytes in the snapshot", table.value,
                       found != NULL ? found->name : "", column, is_there ? found->columns[column].name : "",
                       size_bytes);
        return NULL;
    }
    const nb_snapshot_span *span = span_of(snapshot, region);
    return span != NULL ? span->base : NULL;
}

const void *nb_store_view_rows(const nb_snapshot *snapshot, const nb_store *store, nb_table table, uint32_t column,
                               size_t size_bytes) {
    return rows_of(snapshot, store, table, column, size_bytes, false, __func__);
}

const void *nb_store_view_rows_previous(const nb_snapshot *snapshot, const nb_store *store, nb_table table,
                                        uint32_t column, size_t size_bytes) {
    return rows_of(snapshot, store, table, column, size_bytes, true, __func__);
}
