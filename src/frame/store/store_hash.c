// SPDX-License-Identifier: MIT
// The hash of simulated state. Each block of each column has its hash kept; a block written since the last call is
// hashed again, and the kept ones are combined in the order of rows. Nothing else goes in: no address, no version, no
// incarnation.

#include "store.h"

#include "nebula/hash.h"

static uint64_t mix(uint64_t hash, uint64_t value) { return nb_hash64(&value, sizeof value, hash); }

// Hashes the first `count` elements, block by block. The last block's hash covers the elements there are; whenever that
// number changes, the block has been written.
static uint64_t hash_column(nbi_store *self, const nb_store_column *column, uint64_t *hashes, uint32_t count) {
    uint32_t block_count = nbi_block_count(count);
    for (uint32_t block = 0; block < block_count; ++block) {
        if (nbi_block_version(column, block) <= self->hash_version) continue;
        uint32_t first = block * NB_STORE_BLOCK_ROWS;
        uint32_t rows = count - first < NB_STORE_BLOCK_ROWS ? count - first : NB_STORE_BLOCK_ROWS;
        hashes[block] = nb_hash64(nbi_row_at(column, first), (size_t)rows * column->size_bytes, 0);
        self->hashed_block_count += 1;
    }
    return nb_hash64(hashes, block_count * sizeof *hashes, count);
}

// What nobody reads must not count: padding is cleared in place, where blocks are read anyway. That is a write like any
// other to whoever copies by versions.
static void clear_padding(const nbi_store *self, const nbi_table *table, uint32_t index) {
    const nb_store_column *column = &table->heads[index];
    const uint8_t *padding = table->columns[index].padding;
    if (padding == NULL) return;
    uint32_t block_count = nbi_block_count(table->head->row_count);
    for (uint32_t block = 0; block < block_count; ++block) {
        if (nbi_block_version(column, block) <= self->hash_version) continue;
        uint32_t row = block * NB_STORE_BLOCK_ROWS;
        uint32_t count = (uint32_t)nbi_min_u64(table->head->row_count - row, NB_STORE_BLOCK_ROWS);
        bool has_changed = nbi_padding_clear(padding, nbi_row_at(column, row), column->size_bytes, count);
        if (has_changed) nbi_store_mark(column, block, self->visible.version);
    }
}

// The pool's bytes are {header, generations, links}: its header whole, of the slots those ever used.
static uint64_t hash_pool(nbi_store *self, nbi_table *table) {
    nb_handle_pool_bytes state = nb_handle_pool_state(table->pool);
    uint32_t used_count = nb_handle_pool_stats_get(table->pool).used_count;
    unsigned char *bytes = state.bytes;
    size_t links_at = state.size_bytes - table->row_count_max * sizeof(uint32_t);
    size_t generations_at = links_at - table->row_count_max * sizeof(uint64_t);
    table->generations.rows = bytes + generations_at;
    table->links.rows = bytes + links_at;
    uint64_t hash = nb_hash64(bytes, generations_at, 0);
    hash = mix(hash, hash_column(self, &table->generations, table->generation_hashes, used_count));
    return mix(hash, hash_column(self, &table->links, table->link_hashes, used_count));
}

static uint64_t hash_table(nbi_store *self, nbi_table *table) {
    uint32_t row_count = table->head->row_count;
    uint64_t hash = mix(hash_pool(self, table), hash_column(self, &table->entities, table->entity_hashes, row_count));
    if (table->marks.rows != NULL) hash = mix(hash, hash_column(self, &table->marks, table->mark_hashes, row_count));
    table->rows_hash = hash;
    for (uint32_t i = 0; i < table->head->column_count; ++i) {
        nbi_column *column = &table->columns[i];
        if (!nbi_column_is_simulated(&table->heads[i])) continue;
        clear_padding(self, table, i);
        column->hash = hash_column(self, &table->heads[i], column->block_hashes, row_count);
        hash = mix(hash, column->hash);
    }
    return hash;
}

uint64_t nb_store_hash(nb_store *store) {
    if (store == NULL) {
        NBI_FAIL_NULL("store");
        return 0;
    }
    nbi_store *self = nbi_store_of(store);
    uint64_t hash = self->layout_hash;
    self->hashed_block_count = 0;
    for (uint32_t i = 0; i < store->table_count; ++i) {
        nbi_table *table = &self->tables[i];
        if (table->is_local) continue;
        table->hash = hash_table(self, table);
        hash = mix(hash, table->hash);
    }
    // What is written from here on is newer than what was hashed.
    self->hash_version = store->version;
    store->version += 1;
    return hash;
}

uint64_t nb_store_table_hash(const nb_store *store, nb_table table) {
    if (store == NULL) {
        NBI_FAIL_NULL("store");
        return 0;
    }
    const nbi_store *self = nbi_store_const_of(store);
    const nbi_table *found = nbi_table_of(self, table);
    if (found != NULL) return found->hash;
    NBI_STORE_FAIL(self, table.value, NB_ITEM_STORE_ARGUMENT, NB_ERR_MISUSE, __func__, "there is no table %u",
                   table.value);
    return 0;
}

uint64_t nb_store_column_hash(const nb_store *store, nb_table table, uint32_t column) {
    if (store == NULL) {
        NBI_FAIL_NULL("store");
        return 0;
    }
    const nbi_store *self = nbi_store_const_of(store);
    const nbi_table *found = nbi_table_of(self, table);
    if (found != NULL && column < found->head->column_count) return found->columns[column].hash;
    NBI_STORE_FAIL(self, nbi_column_object(table, column), NB_ITEM_STORE_ARGUMENT, NB_ERR_MISUSE, __func__,
                   "there is no column %u in table %u", column, table.value);
    return 0;
}

static uint32_t part_count(const nbi_table *table) {
    if (table->is_local) return 0;
    uint32_t count = 1;
    for (uint32_t i = 0; i < table->head->column_count; ++i) count += nbi_column_is_simulated(&table->heads[i]) ? 1 : 0;
    return count;
}

uint32_t nb_store_hash_count(const nb_store *store) {
    if (store == NULL) return NBI_FAIL_NULL("store") == NB_OK;
    const nbi_store *self = nbi_store_const_of(store);
    uint32_t count = 0;
    for (uint32_t i = 0; i < store->table_count; ++i) count += part_count(&self->tables[i]);
    return count;
}

// The part of a table at a place that it has: its rows, then its simulated columns.
static nb_store_hash_part part_at(const nbi_table *table, uint32_t index) {
    nb_store_hash_part part = {.column = NB_STORE_COLUMN_NONE, .table_name = table->name, .column_name = ""};
    part.hash = table->rows_hash;
    for (uint32_t i = 0; index > 0; ++i) {
        if (!nbi_column_is_simulated(&table->heads[i])) continue;
        part.column = i;
        part.column_name = table->columns[i].name;
        part.hash = table->columns[i].hash;
        --index;
    }
    return part;
}

nb_result nb_store_hash_at(const nb_store *store, uint32_t index, nb_store_hash_part *out) {
    if (store == NULL) return NBI_FAIL_NULL("store");
    const nbi_store *self = nbi_store_const_of(store);
    if (out == NULL) return NBI_FAIL(&self->hooks, NB_ITEM_STORE_ARGUMENT, NB_ERR_MISUSE, "out is NULL");
    for (uint32_t i = 0; i < store->table_count; ++i) {
        uint32_t count = part_count(&self->tables[i]);
        if (index < count) {
            *out = part_at(&self->tables[i], index);
            out->table.value = i + 1;
            return NB_OK;
        }
        index -= count;
    }
    return NB_EMPTY;
}
