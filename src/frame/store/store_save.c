// SPDX-License-Identifier: MIT
// Simulated state as bytes: a header, then each simulated table {row count, used slots, handle pool, entities,
// incarnations where it is history, teleport marks, columns}. Loading parses all of it twice: to check, then to take it
// over, so that bad bytes change nothing.

#include "store_save.h"

#include "nebula/hash.h"

#include <string.h>

// "nebworld" as bytes on a little-endian machine; what another machine wrote is refused with it.
#define SAVE_MAGIC 0x646C726F7762656Eull

typedef struct save_header {
    uint64_t layout_hash; // first: a reader of any kind can look at it
    uint64_t magic;
    uint64_t size_bytes; // with this header
    uint64_t body_hash;  // of what follows, seeded with the kind
    uint64_t kind;
} save_header;

// --- saving ---

// With `out` NULL it only counts.
typedef struct writer {
    unsigned char *out;
    size_t used_bytes;
} writer;

static unsigned char *put(writer *self, const void *data, size_t size_bytes) {
    unsigned char *at = self->out != NULL ? self->out + self->used_bytes : NULL;
    if (at != NULL && size_bytes != 0) memcpy(at, data, size_bytes);
    self->used_bytes += size_bytes;
    return at;
}

nbi_pool_parts nbi_pool_parts_of(nb_handle_pool *pool) {
    nb_handle_pool_bytes state = nb_handle_pool_state(pool);
    size_t links_at = state.size_bytes - pool->capacity * sizeof(uint32_t);
    size_t generations_at = links_at - pool->capacity * sizeof(uint64_t);
    unsigned char *bytes = state.bytes;
    return (nbi_pool_parts){bytes, bytes + generations_at, bytes + links_at, generations_at};
}

// A local table is in no file; what keeps one aside keeps all of it.
static bool is_saved(const nbi_table *table, const nb_store_column *column) {
    return table->is_local || nbi_column_is_simulated(column);
}

static void save_table(writer *out, const nbi_table *table, nb_save_kind kind) {
    uint32_t row_count = table->head->row_count;
    uint32_t used_count = nb_handle_pool_stats_get(table->pool).used_count;
    nbi_pool_parts parts = nbi_pool_parts_of(table->pool);
    put(out, &row_count, sizeof row_count);
    put(out, &used_count, sizeof used_count);
    put(out, parts.header, parts.header_bytes);
    put(out, parts.generations, used_count * sizeof(uint64_t));
    put(out, parts.links, used_count * sizeof(uint32_t));
    put(out, table->entities.rows, row_count * sizeof(nb_entity));
    if (kind == NB_SAVE_HISTORY) put(out, table->incarnations, row_count * sizeof(uint64_t));
    if (table->marks.rows != NULL) put(out, table->marks.rows, row_count);
    for (uint32_t i = 0; i < table->head->column_count; ++i) {
        const nb_store_column *column = &table->heads[i];
        if (!is_saved(table, column)) continue;
        unsigned char *at = put(out, column->rows, (size_t)row_count * column->size_bytes);
        if (at != NULL) nbi_padding_clear(table->columns[i].padding, at, column->size_bytes, row_count);
    }
}

static size_t save_all(const nbi_store *self, nb_save_kind kind, unsigned char *buffer) {
    writer out = {.out = buffer, .used_bytes = sizeof(save_header)};
    for (uint32_t i = 0; i < self->visible.table_count; ++i) {
        if (!self->tables[i].is_local) save_table(&out, &self->tables[i], kind);
    }
    if (buffer == NULL) return out.used_bytes;
    save_header header = {.layout_hash = self->layout_hash,
                          .magic = SAVE_MAGIC,
                          .size_bytes = out.used_bytes,
                          .body_hash = nb_hash64(buffer + sizeof header, out.used_bytes - sizeof header, kind),
                          .kind = kind};
    memcpy(buffer, &header, sizeof header);
    return out.used_bytes;
}

static bool is_kind(nb_save_kind kind) { return kind == NB_SAVE_FILE || kind == NB_SAVE_HISTORY; }

size_t nb_store_save_size(const nb_store *store, nb_save_kind kind) {
    if (store == NULL) {
        NBI_FAIL_NULL("store");
        return 0;
    }
    const nbi_store *self = nbi_store_const_of(store);
    if (is_kind(kind)) return save_all(self, kind, NULL);
    NBI_FAIL(&self->hooks, NB_ITEM_STORE_ARGUMENT, NB_ERR_MISUSE, "kind %d", (int)kind);
    return 0;
}

nb_result nb_store_save(const nb_store *store, nb_save_kind kind, void *buffer, size_t size_bytes,
                        size_t *out_size_bytes) {
    if (store == NULL) return NBI_FAIL_NULL("store");
    const nbi_store *self = nbi_store_const_of(store);
    if (!is_kind(kind) || buffer == NULL || out_size_bytes == NULL) {
        return NBI_FAIL(&self->hooks, NB_ITEM_STORE_ARGUMENT, NB_ERR_MISUSE,
                        "buffer or out is NULL, or kind %d is none", (int)kind);
    }
    if (size_bytes < save_all(self, kind, NULL)) return NB_FULL;
    *out_size_bytes = save_all(self, kind, buffer);
    return NB_OK;
}

// --- parsing ---

static const unsigned char *take(nbi_reader *self, size_t size_bytes) {
    if (self->is_short || self->left_bytes < size_bytes) {
        self->is_short = true;
        return NULL;
    }
    const unsigned char *at = self->next;
    self->next += size_bytes;
    self->left_bytes -= size_bytes;
    return at;
}

static uint32_t take_u32(nbi_reader *self) {
    uint32_t value = 0;
    const unsigned char *at = take(self, sizeof value);
    if (at != NULL) memcpy(&value, at, sizeof value);
    return value;
}

// Counts are checked before they are multiplied: the table itself has memory for as many rows.
bool nbi_saved_table_take(nbi_reader *from, const nbi_table *table, nb_save_kind kind, nbi_saved_table *out) {
    *out = (nbi_saved_table){.row_count = take_u32(from)};
    out->used_count = take_u32(from);
    if (from->is_short || out->row_count > table->row_count_max || out->used_count > table->row_count_max) return false;
    if (table->is_singleton && out->row_count != 1) return false;
    out->header = take(from, nbi_pool_parts_of(table->pool).header_bytes);
    out->generations = take(from, out->used_count * sizeof(uint64_t));
    out->links = take(from, out->used_count * sizeof(uint32_t));
    out->entities = take(from, out->row_count * sizeof(nb_entity));
    if (kind == NB_SAVE_HISTORY) out->incarnations = take(from, out->row_count * sizeof(uint64_t));
    if (table->marks.rows != NULL) out->marks = take(from, out->row_count);
    out->columns = from->next;
    for (uint32_t i = 0; i < table->head->column_count; ++i) {
        const nb_store_column *column = &table->heads[i];
        if (is_saved(table, column)) take(from, (size_t)out->row_count * column->size_bytes);
    }
    return !from->is_short;
}

// --- checking ---

static void fill_spare(nbi_table *table, const nbi_saved_table *saved) {
    nbi_pool_parts parts = nbi_pool_parts_of(table->spare_pool);
    memcpy(parts.header, saved->header, parts.header_bytes);
    if (table->spare_used_count > saved->used_count) {
        uint32_t cleared = table->spare_used_count - saved->used_count;
        memset(parts.generations + saved->used_count * sizeof(uint64_t), 0, cleared * sizeof(uint64_t));
        memset(parts.links + saved->used_count * sizeof(uint32_t), 0, cleared * sizeof(uint32_t));
    }
    if (saved->used_count != 0) {
        memcpy(parts.generations, saved->generations, saved->used_count * sizeof(uint64_t));
        memcpy(parts.links, saved->links, saved->used_count * sizeof(uint32_t));
    }
    table->spare_used_count = saved->used_count;
}

static nb_entity saved_entity(const nbi_saved_table *saved, uint32_t row) {
    nb_entity entity;
    memcpy(&entity, saved->entities + row * sizeof entity, sizeof entity);
    return entity;
}

static uint32_t slot_of(nb_entity entity) { return nb_handle_index(nbi_entity_handle(entity)); }

// Each row has a live entity of its own: a slot named twice ends up with the later row.
static bool has_valid_entities(nbi_table *table, uint32_t table_value, const nbi_saved_table *saved) {
    for (uint32_t row = 0; row < saved->row_count; ++row) {
        nb_entity entity = saved_entity(saved, row);
        if (nb_entity_table(entity).value != table_value) return false;
        if (!nb_handle_pool_is_live(table->spare_pool, nbi_entity_handle(entity))) return false;
        table->spare_slot_rows[slot_of(entity)] = row;
    }
    for (uint32_t row = 0; row < saved->row_count; ++row) {
        if (table->spare_slot_rows[slot_of(saved_entity(saved, row))] != row) return false;
    }
    return true;
}

// Incarnations never rewind, so history has none that this store has not given out.
static bool has_valid_rows(const nbi_store *self, const nbi_saved_table *saved) {
    for (uint32_t row = 0; row < saved->row_count; ++row) {
        uint64_t incarnation = 0;
        if (saved->marks != NULL && saved->marks[row] > 1) return false;
        if (saved->incarnations == NULL) continue;
        memcpy(&incarnation, saved->incarnations + row * sizeof incarnation, sizeof incarnation);
        if (incarnation == 0 || incarnation > self->incarnation_last) return false;
    }
    return true;
}

// Only what loading does not touch otherwise is written: the spare pool and the spare slots.
static bool check_table(nbi_store *self, nbi_table *table, const nbi_saved_table *saved) {
    fill_spare(table, saved);
    if (!nb_handle_pool_is_valid(table->spare_pool)) return false;
    nb_handle_pool_stats stats = nb_handle_pool_stats_get(table->spare_pool);
    if (stats.live_count != saved->row_count || stats.used_count != saved->used_count) return false;
    return has_valid_entities(table, (uint32_t)(table - self->tables) + 1, saved) && has_valid_rows(self, saved);
}

static bool check_body(nbi_store *self, nbi_reader from, nb_save_kind kind) {
    for (uint32_t i = 0; i < self->visible.table_count; ++i) {
        nbi_table *table = &self->tables[i];
        nbi_saved_table saved;
        if (table->is_local) continue;
        if (!nbi_saved_table_take(&from, table, kind, &saved) || !check_table(self, table, &saved)) return false;
    }
    return from.left_bytes == 0;
}

static nb_result check_header(const nbi_store *self, const unsigned char *bytes, size_t size_bytes,
                              const char *function, save_header *header) {
    if (size_bytes < sizeof *header) {
        return nbi_fail(&self->hooks, NB_ITEM_STORE_CORRUPT, NB_ERR_RANGE, function, "%zu bytes are no state",
                        size_bytes);
    }
    memcpy(header, bytes, sizeof *header);
    if (header->magic == SAVE_MAGIC && header->layout_hash != self->layout_hash) {
        return nbi_fail(&self->hooks, NB_ITEM_STORE_LAYOUT, NB_ERR_UNSUPPORTED, function,
                        "saved with layout %016llx, this store has %016llx", nb_llu(header->layout_hash),
                        nb_llu(self->layout_hash));
    }
    bool is_fine = header->magic == SAVE_MAGIC && header->size_bytes == size_bytes &&
                   header->kind < NB_SAVE_KIND_COUNT &&
                   header->body_hash == nb_hash64(bytes + sizeof *header, size_bytes - sizeof *header, header->kind);
    if (is_fine) return NB_OK;
    return nbi_fail(&self->hooks, NB_ITEM_STORE_CORRUPT, NB_ERR_RANGE, function, "%zu bytes are cut short or damaged",
                    size_bytes);
}

nb_result nbi_saved_open(const nbi_store *self, const void *bytes, size_t size_bytes, const char *function,
                         nbi_reader *body, nb_save_kind *kind) {
    save_header header;
    nb_result result = check_header(self, bytes, size_bytes, function, &header);
    if (result != NB_OK) return result;
    *kind = (nb_save_kind)header.kind;
    *body =
        (nbi_reader){.next = (const unsigned char *)bytes + sizeof header, .left_bytes = size_bytes - sizeof header};
    return NB_OK;
}

// --- loading ---

static void swap_pools(nbi_table *table) {
    nb_handle_pool *pool = table->pool;
    uint32_t *slot_rows = table->slot_rows;
    uint32_t used_count = nb_handle_pool_stats_get(pool).used_count;
    table->pool = table->spare_pool;
    table->slot_rows = table->spare_slot_rows;
    table->spare_pool = pool;
    table->spare_slot_rows = slot_rows;
    table->spare_used_count = used_count;
}

// The pool ends its chain of waiting slots with a link that is no index; every other slot's link is one, or zero.
uint32_t nbi_table_slot_last(const nbi_table *table, uint32_t used_count) {
    const uint32_t *links = (const uint32_t *)(const void *)nbi_pool_parts_of(table->pool).links;
    for (uint32_t slot = 0; slot < used_count; ++slot) {
        if (links[slot] == NBI_SLOT_NONE) return slot;
    }
    return NBI_SLOT_NONE;
}

static void mark_blocks(const nbi_store *self, const nb_store_column *column, uint32_t count) {
    for (uint32_t block = 0; block < nbi_block_count(count); ++block) {
        nbi_store_mark(column, block, self->visible.version);
    }
}

static void take_columns(nbi_table *table, const nbi_saved_table *saved) {
    const unsigned char *from = saved->columns;
    for (uint32_t i = 0; i < table->head->column_count; ++i) {
        const nb_store_column *column = &table->heads[i], *previous = &table->columns[i].previous;
        size_t size_bytes = (size_t)saved->row_count * column->size_bytes;
        if (size_bytes == 0 || !is_saved(table, column)) continue;
        memcpy(column->rows, from, size_bytes);
        if (previous->rows != NULL) memcpy(previous->rows, from, size_bytes);
        from += size_bytes;
    }
}

static void take_rows(nbi_store *self, nbi_table *table, const nbi_saved_table *saved) {
    if (saved->row_count == 0) return;
    memcpy(table->entities.rows, saved->entities, saved->row_count * sizeof(nb_entity));
    if (saved->marks != NULL) memcpy(table->marks.rows, saved->marks, saved->row_count);
    if (saved->incarnations != NULL) {
        memcpy(table->incarnations, saved->incarnations, saved->row_count * sizeof(uint64_t));
        return;
    }
    for (uint32_t row = 0; row < saved->row_count; ++row) table->incarnations[row] = ++self->incarnation_last;
}

// Cannot fail: everything was checked.
static void load_table(nbi_store *self, nbi_table *table, const nbi_saved_table *saved) {
    uint32_t row_count = table->head->row_count;
    uint32_t touched = saved->row_count > row_count ? saved->row_count : row_count;
    const nb_store_column *column = NULL;
    nbi_table_clear_to(table, touched);
    for (uint32_t i = 0; (column = nbi_table_row_column(table, i)) != NULL; ++i) {
        if (column->rows == NULL) continue;
        memset(column->rows, 0, (size_t)touched * column->size_bytes);
        mark_blocks(self, column, touched);
    }
    swap_pools(table);
    table->slot_last = nbi_table_slot_last(table, saved->used_count);
    mark_blocks(self, &table->generations, saved->used_count);
    mark_blocks(self, &table->links, saved->used_count);
    table->head->row_count = saved->row_count;
    take_rows(self, table, saved);
    take_columns(table, saved);
}

nb_result nb_store_load(nb_store *store, const void *buffer, size_t size_bytes) {
    if (store == NULL) return NBI_FAIL_NULL("store");
    nbi_store *self = nbi_store_of(store);
    if (buffer == NULL) return NBI_FAIL(&self->hooks, NB_ITEM_STORE_ARGUMENT, NB_ERR_MISUSE, "buffer is NULL");
    if (self->is_in_tick) return NBI_FAIL(&self->hooks, NB_ITEM_STORE_TICK, NB_ERR_MISUSE, "a tick is on");
    if ((nbi_atomic_load_relaxed_u32(&store->writable) & NB_COLUMN_SIMULATED) == 0) {
        nbi_store_deny(self, NULL, __func__);
        return NB_ERR_PERMISSION;
    }
    nb_save_kind kind;
    nbi_reader from;
    nb_result result = nbi_saved_open(self, buffer, size_bytes, __func__, &from, &kind);
    if (result != NB_OK) return result;
    if (!check_body(self, from, kind)) {
        return NBI_FAIL(&self->hooks, NB_ITEM_STORE_CORRUPT, NB_ERR_RANGE, "the saved state makes no sense");
    }
    self->is_started = true;
    for (uint32_t i = 0; i < store->table_count; ++i) {
        nbi_saved_table saved;
        if (self->tables[i].is_local) continue;
        nbi_saved_table_take(&from, &self->tables[i], kind, &saved);
        load_table(self, &self->tables[i], &saved);
    }
    return NB_OK;
}

// --- one table ---

size_t nbi_table_save(const nbi_table *table, unsigned char *out) {
    writer to = {.out = out};
    save_table(&to, table, NB_SAVE_HISTORY);
    return to.used_bytes;
}

bool nbi_table_load(nbi_store *self, nbi_table *table, const void *bytes, size_t size_bytes) {
    nbi_reader from = {.next = bytes, .left_bytes = size_bytes};
    nbi_saved_table saved;
    if (!nbi_saved_table_take(&from, table, NB_SAVE_HISTORY, &saved) || !check_table(self, table, &saved)) return false;
    load_table(self, table, &saved);
    return true;
}
