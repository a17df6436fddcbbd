// SPDX-License-Identifier: MIT
// What simulated tables have beside simulated state, put aside while the store is another for a moment: local columns
// and previous values.

#include "store.h"

#include <string.h>

// Visits them: NULL beyond the last.
static const nb_store_column *stash_column(const nbi_table *table, uint32_t index) {
    uint32_t count = table->head->column_count;
    return index < count ? &table->heads[index] : index < 2 * count ? &table->columns[index - count].previous : NULL;
}

static bool is_stashed(const nbi_table *table, const nb_store_column *column, uint32_t index) {
    bool is_previous = index >= table->head->column_count;
    return is_previous ? column->rows != NULL : !nbi_column_is_simulated(column);
}

static void column_put(const nbi_store *self, const nb_store_column *column, const unsigned char *from,
                       uint32_t row_count) {
    memcpy(column->rows, from, (size_t)row_count * column->size_bytes);
    for (uint32_t block = 0; block < nbi_block_count(row_count); ++block)
        nbi_store_mark(column, block, self->visible.version);
}

size_t nbi_store_stash(nb_store *store, unsigned char *bytes, nbi_stash_mode what) {
    const nbi_store *self = nbi_store_of(store);
    size_t used_bytes = 0;
    for (uint32_t i = 0; i < store->table_count; ++i) {
        const nbi_table *table = &self->tables[i];
        uint32_t row_count = table->is_local ? 0 : table->head->row_count;
        const nb_store_column *column;
        for (uint32_t j = 0; row_count != 0 && (column = stash_column(table, j)) != NULL; ++j) {
            if (!is_stashed(table, column, j)) continue;
            size_t size_bytes = (size_t)row_count * column->size_bytes;
            if (what == NBI_STASH_SAVE) memcpy(bytes + used_bytes, column->rows, size_bytes);
            if (what == NBI_STASH_RESTORE) column_put(self, column, bytes + used_bytes, row_count);
            used_bytes += size_bytes;
        }
    }
    return used_bytes;
}
