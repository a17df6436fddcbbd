// SPDX-License-Identifier: MIT
// Rows as read-only memory while nobody may write them, and the way back from an address to its row.

#include "store.h"

#include "../../platform/platform.h"

// Changes the first `count` tables; gives how many it got done.
static uint32_t protect_tables(const nbi_store *self, uint32_t count, bool is_protected) {
    nbi_page_access access = is_protected ? NBI_PAGE_READ : NBI_PAGE_READ_WRITE;
    for (uint32_t i = 0; i < count; ++i) {
        const nbi_table *table = &self->tables[i];
        if (nbi_pages_protect(table->page_memory, table->page_bytes, access) != NB_OK) return i;
    }
    return count;
}

nb_result nbi_store_protect(nbi_store *self, bool is_protected, const char **table_name) {
    if (self->is_protected == is_protected) return NB_OK;
    uint32_t count = self->visible.table_count;
    uint32_t done = protect_tables(self, count, is_protected);
    if (done == count) {
        self->is_protected = is_protected;
        return NB_OK;
    }
    *table_name = self->tables[done].name;
    // Of the one that failed, what had been changed. Where the way back fails too, some rows are read-only: the store
    // counts as protected, so that the next call without protection tries again.
    if (protect_tables(self, done + 1, !is_protected) != done + 1) self->is_protected = true;
    return NB_ERR_OS;
}

nb_result nb_store_protect(nb_store *store, bool is_protected) {
    if (store == NULL) return NBI_FAIL_NULL("store");
    nbi_store *self = nbi_store_of(store);
    if (!self->is_protectable) {
        return NBI_FAIL(&self->hooks, NB_ITEM_STORE_PROTECTED, NB_ERR_UNSUPPORTED,
                        "the store was made without is_protectable");
    }
    const char *name = NULL;
    nb_result result = nbi_store_protect(self, is_protected, &name);
    if (result == NB_OK) return NB_OK;
    return nb_report_failure(&self->hooks, NB_ITEM_STORE_PROTECTED, result, __func__,
                             "the pages of table '%s' cannot be made %s", name,
                             is_protected ? "read-only" : "writable");
}

// --- from an address to its row ---

// False: the address is in no element of it.
static bool locate_in(const nbi_table *table, const nb_store_column *column, uintptr_t address, nb_store_place *place) {
    if (column->rows == NULL || address < (uintptr_t)column->rows) return false;
    size_t offset = address - (uintptr_t)column->rows;
    size_t row = offset / column->size_bytes;
    // Up to the end of the last block, all of which is the column's.
    if (row >= (size_t)table->block_count * NB_STORE_BLOCK_ROWS) return false;
    place->row = (uint32_t)row;
    place->offset_bytes = offset % column->size_bytes;
    return true;
}

// What stands at an index of nbi_table_row_column.
static void name_part(const nbi_table *table, uint32_t index, nb_store_place *place) {
    uint32_t count = table->head->column_count;
    if (index < 2 * count) {
        place->part = index < count ? NB_STORE_PART_ROWS : NB_STORE_PART_PREVIOUS;
        place->column = index % count;
        place->column_name = table->columns[place->column].name;
        return;
    }
    place->part = index == 2 * count ? NB_STORE_PART_ENTITIES : NB_STORE_PART_TELEPORTS;
    place->column_name = index == 2 * count ? "entities" : "teleports";
}

static bool locate_in_table(const nbi_table *table, uintptr_t address, nb_store_place *place) {
    const nb_store_column *column = NULL;
    for (uint32_t i = 0; (column = nbi_table_row_column(table, i)) != NULL; ++i) {
        if (!locate_in(table, column, address, place)) continue;
        name_part(table, i, place);
        place->table_name = table->name;
        return true;
    }
    return false;
}

nb_result nb_store_locate(const nb_store *store, const void *address, nb_store_place *place) {
    if (store == NULL) return NBI_FAIL_NULL("store");
    const nbi_store *self = nbi_store_const_of(store);
    if (place == NULL) return NBI_FAIL(&self->hooks, NB_ITEM_STORE_ARGUMENT, NB_ERR_MISUSE, "place is NULL");
    nb_store_place found = {0};
    for (uint32_t i = 0; i < store->table_count; ++i) {
        if (!locate_in_table(&self->tables[i], (uintptr_t)address, &found)) continue;
        found.table.value = i + 1;
        *place = found;
        return NB_OK;
    }
    return NB_EMPTY;
}
