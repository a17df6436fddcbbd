// SPDX-License-Identifier: MIT
// Rows that come and go, entities, ticks and views of a store. Rows stay dense: the last row takes the place of one
// that is removed, so that a column is a bare array to whoever iterates.

#include "store.h"

#include <string.h>

#include "../../platform/platform.h"

// Room for a game's kinds of objects; each costs some hundred bytes when unused.
#define TABLE_COUNT_DEFAULT 64

#define WRITABLE_ALL ((uint32_t)(NB_COLUMN_SIMULATED | NB_COLUMN_LOCAL))

static const nbi_desc_number numbers[] = {
    NBI_NUMBER(nb_store_desc, table_count_max, TABLE_COUNT_DEFAULT, 1, NB_STORE_TABLE_COUNT_MAX)};
const nbi_desc_rules nbi_store_rules = NBI_RULES(nb_store_desc, numbers);

nb_store_desc nb_store_desc_default(void) {
    nb_store_desc desc = {.hooks = nb_hooks_default()};
    nbi_desc_fill(&nbi_store_rules, &desc);
    return desc;
}

nb_result nb_store_create(const nb_store_desc *desc, nb_store **out) {
    nb_store_desc asked = desc != NULL ? *desc : (nb_store_desc){0};
    nb_hooks hooks = nbi_hooks_resolve(&asked.hooks);
    if (out == NULL) return NBI_FAIL(&hooks, NB_ITEM_STORE_ARGUMENT, NB_ERR_MISUSE, "out is NULL");
    nbi_desc_fill(&nbi_store_rules, &asked);
    nbi_desc_place place = {&hooks, NB_ITEM_STORE_ARGUMENT, __func__, NULL};
    nb_result result = nbi_desc_check(&nbi_store_rules, &asked, &place);
    if (result != NB_OK) return result;
    if (asked.is_protectable && !nbi_platform_has(NBI_ABILITY_PAGE_PROTECT)) {
        return NBI_FAIL(&hooks, NB_ITEM_STORE_ARGUMENT, NB_ERR_UNSUPPORTED, "pages cannot be protected here");
    }
    // At most 255 tables: the sum is far from overflow.
    size_t heads_at = sizeof(nbi_store);
    size_t tables_at = heads_at + asked.table_count_max * sizeof(nb_store_table);
    size_t memory_bytes = tables_at + asked.table_count_max * sizeof(nbi_table);
    unsigned char *memory = nbi_alloc(&hooks, memory_bytes, NB_ALIGNOF(nbi_store), __func__);
    if (memory == NULL) return NB_ERR_MEMORY;
    memset(memory, 0, memory_bytes);
    nbi_store *self = (nbi_store *)(void *)memory;
    self->hooks = hooks;
    self->heads = (nb_store_table *)(void *)(memory + heads_at);
    self->tables = (nbi_table *)(void *)(memory + tables_at);
    self->memory_bytes = memory_bytes;
    self->table_count_max = asked.table_count_max;
    self->is_protectable = asked.is_protectable;
    self->visible = (nb_store){.tables = self->heads, .version = 1};
    nbi_atomic_store_relaxed_u32(&self->visible.writable, WRITABLE_ALL);
    *out = &self->visible;
    return NB_OK;
}

void nb_store_destroy(nb_store *store) {
    if (store == NULL) return;
    nbi_store *self = nbi_store_of(store);
    for (uint32_t i = 0; i < store->table_count; ++i) nbi_table_deinit(self, &self->tables[i]);
    nb_hooks hooks = self->hooks;
    nbi_free(&hooks, self, self->memory_bytes);
}

// --- who may write ---

nb_result nb_store_allow(nb_store *store, uint32_t flags) {
    if (store == NULL) return NBI_FAIL_NULL("store");
    if ((flags & ~WRITABLE_ALL) != 0) {
        return NBI_FAIL(&nbi_store_of(store)->hooks, NB_ITEM_STORE_ARGUMENT, NB_ERR_MISUSE, "flags 0x%x", flags);
    }
    nbi_atomic_store_relaxed_u32(&store->writable, flags);
    return NB_OK;
}

bool nbi_table_is_writable(nbi_store *self, nbi_table *table, const char *function) {
    uint32_t flag = table->is_local ? NB_COLUMN_LOCAL : NB_COLUMN_SIMULATED;
    if ((nbi_atomic_load_relaxed_u32(&self->visible.writable) & flag) != 0) return true;
    nbi_store_deny(self, table, function);
    return false;
}

// Whether it has not been done before; the word is set then.
static bool is_first(nb_atomic_u32 *is_reported) { return nbi_atomic_fetch_or_seq_cst_u32(is_reported, 1) == 0; }

#define DENIED "%s%s must not be written in this phase; further refusals are only counted"

void nbi_store_deny(nbi_store *self, nbi_table *table, const char *function) {
    const char *kind = table != NULL ? "table " : "simulated state", *name = table != NULL ? table->name : "";
    bool is_logged = is_first(table != NULL ? &table->is_denial_reported : &self->is_denial_reported);
    nbi_atomic_fetch_add_relaxed_u64(&self->denied_count, 1);
    if (self->traps)
        nbi_trap(&self->hooks, is_logged, NB_ITEM_STORE_DENIED, function, DENIED, kind, name);
    else if (is_logged)
        nbi_log(&self->hooks, NB_LOG_ERROR, NB_ITEM_STORE_DENIED, function, DENIED, kind, name);
}

// --- rows come and go ---

static void mark_row(const nbi_store *self, const nb_store_column *column, uint32_t row) {
    nbi_store_mark(column, row / NB_STORE_BLOCK_ROWS, self->visible.version);
}

const nb_store_column *nbi_table_row_column(const nbi_table *table, uint32_t index) {
    uint32_t count = table->head->column_count;
    if (index < count) return &table->heads[index];
    if (index < 2 * count) return &table->columns[index - count].previous;
    if (index == 2 * count) return &table->entities;
    return index == 2 * count + 1 ? &table->marks : NULL;
}

// Memory is cleared when its block is first used, so that a large table costs nothing until it is filled.
void nbi_table_clear_to(nbi_table *table, uint32_t count) {
    const nb_store_column *column = NULL;
    uint32_t first = table->cleared_count;
    if (count <= first) return;
    uint32_t added = nbi_block_count(count - first) * NB_STORE_BLOCK_ROWS;
    for (uint32_t i = 0; (column = nbi_table_row_column(table, i)) != NULL; ++i) {
        if (column->rows != NULL) memset(nbi_row_at(column, first), 0, (size_t)column->size_bytes * added);
    }
    table->cleared_count += added;
}

// A changed slot of the pool. Its link may be read as an index by the pool; here both are only hashed.
static void mark_slot(const nbi_store *self, nbi_table *table, uint32_t slot) {
    if (slot == NBI_SLOT_NONE) return;
    mark_row(self, &table->generations, slot);
    mark_row(self, &table->links, slot);
}

static nb_result report_full(nbi_store *self, nbi_table *table) {
    if (table->full_count++ == 0) {
        nbi_log(&self->hooks, NB_LOG_WARNING, NB_ITEM_STORE_FULL,
                !self->is_applying ? "nb_store_spawn"
                : self->is_driven  ? "nb_store_stage_spawn"
                                   : "nb_store_apply",
                "table '%s' has no room for more than %u rows; raise nb_table_desc.row_count_max; further refusals are "
                "only counted",
                table->name, table->row_count_max);
    }
    return NB_FULL;
}

static void mark_rows(const nbi_store *self, const nb_store_column *column, uint32_t first, uint32_t count) {
    uint32_t last = (first + count - 1) / NB_STORE_BLOCK_ROWS;
    for (uint32_t i = first / NB_STORE_BLOCK_ROWS; i <= last; ++i) nbi_store_mark(column, i, self->visible.version);
}

// One value of each of `count` structs that are stride_bytes apart. Sizes that are known make the copy a move.
static void gather(unsigned char *to, const unsigned char *from, size_t size_bytes, size_t stride_bytes,
                   uint32_t count) {
    if (size_bytes == 4)
        for (uint32_t i = 0; i < count; ++i) memcpy(to + (size_t)i * 4, from + i * stride_bytes, 4);
    else if (size_bytes == 8)
        for (uint32_t i = 0; i < count; ++i) memcpy(to + (size_t)i * 8, from + i * stride_bytes, 8);
    else
        for (uint32_t i = 0; i < count; ++i) memcpy(to + i * size_bytes, from + i * stride_bytes, size_bytes);
}

static void fill_rows(nbi_store *self, nbi_table *table, uint32_t first, uint32_t count, const unsigned char *values) {
    for (uint32_t i = 0; i < table->head->column_count; ++i) {
        const nb_store_column *column = &table->heads[i], *previous = &table->columns[i].previous;
        unsigned char *rows = nbi_row_at(column, first);
        mark_rows(self, column, first, count);
        if (values != NULL)
            gather(rows, values + table->columns[i].staged_offset, column->size_bytes, table->staged_size_bytes, count);
        if (previous->rows == NULL) continue;
        mark_rows(self, previous, first, count);
        memcpy(nbi_row_at(previous, first), rows, (size_t)column->size_bytes * count);
    }
    mark_rows(self, &table->entities, first, count);
    if (table->marks.rows == NULL) return;
    mark_rows(self, &table->marks, first, count);
    memset(table->marks.rows + first, 1, count);
}

// An entity for the row behind the last. False: there is no slot.
static bool take_entity(nbi_store *self, nbi_table *table, nb_entity *out) {
    nb_handle handle;
    if (nb_handle_pool_acquire(table->pool, &handle) != NB_OK) return false;
    uint32_t row = table->head->row_count++, slot = nb_handle_index(handle);
    uint64_t table_bits = (uint64_t)(table - self->tables + 1) << 56;
    *out = (nb_entity){table_bits | handle.value};
    memcpy(nbi_row_at(&table->entities, row), out, sizeof *out);
    table->incarnations[row] = ++self->incarnation_last;
    table->slot_rows[slot] = row;
    if (slot == table->slot_last) table->slot_last = NBI_SLOT_NONE;
    mark_slot(self, table, slot);
    return true;
}

nb_result nbi_store_rows_add(nbi_store *self, nbi_table *table, const unsigned char *values, uint64_t count,
                             nb_entity *last) {
    uint32_t first = table->head->row_count, room = table->row_count_max - first, added = 0;
    uint32_t wanted = count < room ? (uint32_t)count : room;
    nbi_table_clear_to(table, first + wanted);
    while (added < wanted && take_entity(self, table, last)) ++added;
    if (added != 0) fill_rows(self, table, first, added, values);
    self->spawn_count += added;
    return added == count ? NB_OK : report_full(self, table);
}

// Rows behind the last stay zero: copies of whole blocks are then equal for equal states.
void nbi_store_row_remove(nbi_store *self, nbi_table *table, uint32_t row) {
    nb_entity entity = nbi_entities(table)[row];
    uint32_t slot = nb_handle_index(nbi_entity_handle(entity));
    uint32_t last = table->head->row_count - 1;
    table->slot_rows[nb_handle_index(nbi_entity_handle(nbi_entities(table)[last]))] = row;
    table->incarnations[row] = table->incarnations[last];
    const nb_store_column *column = NULL;
    for (uint32_t i = 0; (column = nbi_table_row_column(table, i)) != NULL; ++i) {
        if (column->rows == NULL) continue;
        if (row != last) memcpy(nbi_row_at(column, row), nbi_row_at(column, last), column->size_bytes);
        memset(nbi_row_at(column, last), 0, column->size_bytes);
        mark_row(self, column, row);
        mark_row(self, column, last);
    }
    table->head->row_count = last;
    mark_slot(self, table, table->slot_last);
    mark_slot(self, table, slot);
    nb_handle_pool_release(table->pool, nbi_entity_handle(entity));
    // After its last use a slot is retired and waits no more.
    bool is_retired = nb_handle_generation(nbi_entity_handle(entity)) >= 2 * NB_STORE_SLOT_USE_COUNT_MAX - 1;
    if (!is_retired) table->slot_last = slot;
    self->despawn_count += 1;
}

static nb_result check_direct(nbi_store *self, nbi_table *table, uint64_t object, const char *function) {
    if (table == NULL) {
        return NBI_STORE_FAIL(self, object, NB_ITEM_STORE_ARGUMENT, NB_ERR_MISUSE, function, "there is no such table");
    }
    if (table->is_singleton) {
        return NBI_STORE_FAIL(self, object, NB_ITEM_STORE_ARGUMENT, NB_ERR_MISUSE, function,
                              "singleton '%s' has one row for ever", table->name);
    }
    if (self->is_in_tick) {
        return NBI_STORE_FAIL(self, object, NB_ITEM_STORE_TICK, NB_ERR_MISUSE, function,
                              "rows of table '%s' come and go through stages during a tick", table->name);
    }
    return nbi_table_is_writable(self, table, function) ? NB_OK : NB_ERR_PERMISSION;
}

nb_result nb_store_row_get(const nb_store *store, nb_table table, uint32_t row, void *out, size_t size_bytes) {
    if (store == NULL) return NBI_FAIL_NULL("store");
    const nbi_store *self = nbi_store_const_of(store);
    const nbi_table *found = nbi_table_of(self, table);
    if (found == NULL || out == NULL || size_bytes == 0 || found->head->row_bytes != size_bytes) {
        return NBI_STORE_FAIL(self, table.value, NB_ITEM_STORE_ARGUMENT, NB_ERR_MISUSE, __func__,
                              "there is no table %u with rows of %zu bytes, or out is NULL", table.value, size_bytes);
    }
    if (row >= found->head->row_count) return NB_ERR_RANGE;
    memset(out, 0, size_bytes);
    for (uint32_t i = 0; i < found->head->column_count; ++i) {
        const nb_store_column *column = &found->heads[i];
        memcpy((unsigned char *)out + found->columns[i].staged_offset, nbi_row_at(column, row), column->size_bytes);
    }
    return NB_OK;
}

nb_result nb_store_spawn(nb_store *store, nb_table table, nb_entity *out) {
    if (store == NULL) return NBI_FAIL_NULL("store");
    nbi_store *self = nbi_store_of(store);
    nbi_table *found = nbi_table_of(self, table);
    if (out == NULL) return NBI_FAIL(&self->hooks, NB_ITEM_STORE_ARGUMENT, NB_ERR_MISUSE, "out is NULL");
    nb_result result = check_direct(self, found, table.value, __func__);
    if (result != NB_OK) return result;
    self->is_started = true;
    return nbi_store_rows_add(self, found, NULL, 1, out);
}

nb_result nb_store_despawn(nb_store *store, nb_entity entity) {
    if (store == NULL) return NBI_FAIL_NULL("store");
    nbi_store *self = nbi_store_of(store);
    uint32_t row = 0;
    nbi_table *table = nbi_store_lookup(self, entity, &row);
    if (table == NULL) {
        self->stale_count += 1;
        return NBI_STORE_FAIL(self, entity.value, NB_ITEM_STORE_STALE, NB_ERR_STALE, __func__,
                              "entity 0x%llx does not live", nb_llu(entity.value));
    }
    nb_result result = check_direct(self, table, nb_entity_table(entity).value, __func__);
    if (result == NB_OK) nbi_store_row_remove(self, table, row);
    return result;
}

// --- entities ---

nbi_table *nbi_store_lookup(const nbi_store *self, nb_entity entity, uint32_t *out_row) {
    nbi_table *table = nbi_table_of(self, nb_entity_table(entity));
    nb_handle handle = nbi_entity_handle(entity);
    if (table == NULL || !nb_handle_pool_is_live(table->pool, handle)) return NULL;
    *out_row = table->slot_rows[nb_handle_index(handle)];
    return table;
}

nb_result nb_store_find(const nb_store *store, nb_entity entity, uint32_t *out_row) {
    if (store == NULL) return NBI_FAIL_NULL("store");
    const nbi_store *self = nbi_store_const_of(store);
    if (out_row == NULL) return NBI_FAIL(&self->hooks, NB_ITEM_STORE_ARGUMENT, NB_ERR_MISUSE, "out_row is NULL");
    return nbi_store_lookup(self, entity, out_row) != NULL ? NB_OK : NB_ERR_STALE;
}

nb_result nb_store_ref(const nb_store *store, nb_entity entity, nb_entity_ref *out) {
    if (store == NULL) return NBI_FAIL_NULL("store");
    const nbi_store *self = nbi_store_const_of(store);
    if (out == NULL) return NBI_FAIL(&self->hooks, NB_ITEM_STORE_ARGUMENT, NB_ERR_MISUSE, "out is NULL");
    uint32_t row = 0;
    const nbi_table *table = nbi_store_lookup(self, entity, &row);
    if (table == NULL) return NB_ERR_STALE;
    *out = (nb_entity_ref){.entity = entity, .incarnation = table->incarnations[row]};
    return NB_OK;
}

nb_result nb_store_resolve(const nb_store *store, nb_entity_ref ref, uint32_t *out_row) {
    if (store == NULL) return NBI_FAIL_NULL("store");
    const nbi_store *self = nbi_store_const_of(store);
    if (out_row == NULL) return NBI_FAIL(&self->hooks, NB_ITEM_STORE_ARGUMENT, NB_ERR_MISUSE, "out_row is NULL");
    uint32_t row = 0;
    const nbi_table *table = nbi_store_lookup(self, ref.entity, &row);
    if (table == NULL || table->incarnations[row] != ref.incarnation) return NB_ERR_STALE;
    *out_row = row;
    return NB_OK;
}

// --- ticks ---

uint64_t nb_store_version_advance(nb_store *store) {
    if (store == NULL) {
        NBI_FAIL_NULL("store");
        return 0;
    }
    return ++store->version;
}

// Copies what changed since the last tick began. Previous values get the new version: a snapshot taken between the
// version's last advance and now has the old ones.
static void keep_previous(const nbi_store *self, const nbi_table *table, uint32_t index, uint64_t version) {
    const nb_store_column *column = &table->heads[index], *previous = &table->columns[index].previous;
    if (previous->rows == NULL) return;
    uint32_t block_count = nbi_block_count(table->head->row_count);
    for (uint32_t block = 0; block < block_count; ++block) {
        if (nbi_block_version(column, block) <= self->tick_version) continue;
        uint32_t row = block * NB_STORE_BLOCK_ROWS;
        memcpy(nbi_row_at(previous, row), nbi_row_at(column, row), (size_t)column->size_bytes * NB_STORE_BLOCK_ROWS);
        nbi_store_mark(previous, block, version);
    }
}

// Marks are set in the tick that runs or behind the one before, so older blocks have none.
static bool has_mark(const nbi_store *self, const nbi_table *table, uint32_t block) {
    if (nbi_block_version(&table->marks, block) <= self->tick_version) return false;
    const unsigned char *marks = table->marks.rows + (size_t)block * NB_STORE_BLOCK_ROWS;
    unsigned char any = 0;
    for (uint32_t i = 0; i < NB_STORE_BLOCK_ROWS; ++i) any |= marks[i];
    return any != 0;
}

static void forget_teleports(const nbi_store *self, const nbi_table *table, uint64_t version) {
    if (table->marks.rows == NULL) return;
    uint32_t block_count = nbi_block_count(table->head->row_count);
    for (uint32_t block = 0; block < block_count; ++block) {
        if (!has_mark(self, table, block)) continue;
        memset(table->marks.rows + (size_t)block * NB_STORE_BLOCK_ROWS, 0, NB_STORE_BLOCK_ROWS);
        nbi_store_mark(&table->marks, block, version);
    }
}

static nb_result fail_driven(const nbi_store *self, const char *function) {
    return NBI_STORE_FAIL(self, 0, NB_ITEM_STORE_TICK, NB_ERR_MISUSE, function, "the engine runs this store's ticks");
}

nb_result nb_store_tick_begin(nb_store *store) {
    if (store == NULL) return NBI_FAIL_NULL("store");
    nbi_store *self = nbi_store_of(store);
    if (self->is_in_tick) return NBI_STORE_FAIL(self, 0, NB_ITEM_STORE_TICK, NB_ERR_MISUSE, __func__, "a tick is on");
    if (self->is_driven) return fail_driven(self, __func__);
    nbi_store_tick_begin(self);
    return NB_OK;
}

void nbi_store_tick_begin(nbi_store *self) {
    nb_store *store = &self->visible;
    self->is_started = true;
    uint64_t version = store->version + 1;
    for (uint32_t i = 0; i < store->table_count; ++i) {
        const nbi_table *table = &self->tables[i];
        for (uint32_t j = 0; j < table->head->column_count; ++j) keep_previous(self, table, j, version);
        forget_teleports(self, table, version);
    }
    self->tick_version = store->version;
    store->version = version;
    self->is_in_tick = true;
}

nb_result nb_store_teleport(nb_store *store, nb_entity entity) {
    if (store == NULL) return NBI_FAIL_NULL("store");
    nbi_store *self = nbi_store_of(store);
    uint32_t row = 0;
    nbi_table *table = nbi_store_lookup(self, entity, &row);
    if (table == NULL) {
        return NBI_STORE_FAIL(self, entity.value, NB_ITEM_STORE_STALE, NB_ERR_STALE, __func__,
                              "entity 0x%llx does not live", nb_llu(entity.value));
    }
    if (!nbi_table_is_writable(self, table, __func__)) return NB_ERR_PERMISSION;
    if (table->marks.rows == NULL) {
        uint64_t object = (uint64_t)(table - self->tables) + 1;
        return NBI_STORE_FAIL(self, object, NB_ITEM_STORE_ARGUMENT, NB_ERR_MISUSE, __func__,
                              "table '%s' has no interpolated column", table->name);
    }
    mark_row(self, &table->marks, row);
    table->marks.rows[row] = 1;
    return NB_OK;
}

static void settle_row(const nbi_store *self, const nbi_table *table, uint32_t row) {
    for (uint32_t i = 0; i < table->head->column_count; ++i) {
        const nb_store_column *column = &table->heads[i], *previous = &table->columns[i].previous;
        if (previous->rows == NULL) continue;
        memcpy(nbi_row_at(previous, row), nbi_row_at(column, row), column->size_bytes);
        mark_row(self, previous, row);
    }
}

static void settle_teleports(const nbi_store *self, const nbi_table *table) {
    if (table->marks.rows == NULL) return;
    for (uint32_t block = 0; block < nbi_block_count(table->head->row_count); ++block) {
        if (!has_mark(self, table, block)) continue;
        for (uint32_t i = 0; i < NB_STORE_BLOCK_ROWS; ++i) {
            uint32_t row = block * NB_STORE_BLOCK_ROWS + i;
            if (table->marks.rows[row] != 0) settle_row(self, table, row);
        }
    }
}

nb_result nb_store_tick_end(nb_store *store) {
    if (store == NULL) return NBI_FAIL_NULL("store");
    nbi_store *self = nbi_store_of(store);
    if (!self->is_in_tick) return NBI_STORE_FAIL(self, 0, NB_ITEM_STORE_TICK, NB_ERR_MISUSE, __func__, "no tick is on");
    if (self->is_driven) return fail_driven(self, __func__);
    nbi_store_tick_end(self);
    return NB_OK;
}

void nbi_store_tick_end(nbi_store *self) {
    for (uint32_t i = 0; i < self->visible.table_count; ++i) settle_teleports(self, &self->tables[i]);
    self->is_in_tick = false;
}

// --- numbers and checks ---

nb_store_stats nb_store_stats_get(const nb_store *store) {
    if (store == NULL) {
        NBI_FAIL_NULL("store");
        return (nb_store_stats){0};
    }
    const nbi_store *self = nbi_store_const_of(store);
    nb_store_stats stats = {.table_count = store->table_count,
                            .spawn_count = self->spawn_count,
                            .despawn_count = self->despawn_count,
                            .stale_count = self->stale_count,
                            .denied_count = nbi_atomic_load_relaxed_u64(&self->denied_count),
                            .hashed_block_count = self->hashed_block_count,
                            .memory_bytes = self->memory_bytes};
    for (uint32_t i = 0; i < store->table_count; ++i) {
        const nbi_table *table = &self->tables[i];
        stats.row_count += table->head->row_count;
        stats.full_count += table->full_count;
        stats.memory_bytes += table->meta_bytes + table->row_bytes + table->page_bytes;
    }
    return stats;
}

static bool is_zero(const unsigned char *bytes, size_t size_bytes) {
    for (size_t i = 0; i < size_bytes; ++i) {
        if (bytes[i] != 0) return false;
    }
    return true;
}

static bool has_clear_tail(const nbi_table *table) {
    const nb_store_column *column = NULL;
    uint32_t first = table->head->row_count;
    for (uint32_t i = 0; (column = nbi_table_row_column(table, i)) != NULL; ++i) {
        if (column->rows == NULL) continue;
        if (!is_zero(nbi_row_at(column, first), (size_t)(table->cleared_count - first) * column->size_bytes))
            return false;
    }
    return true;
}

static bool is_table_valid(const nbi_store *self, const nbi_table *table) {
    uint32_t row_count = table->head->row_count;
    if (row_count > table->cleared_count || row_count > table->row_count_max) return false;
    if (nb_handle_pool_stats_get(table->pool).live_count != row_count) return false;
    for (uint32_t row = 0; row < row_count; ++row) {
        uint32_t found = UINT32_MAX;
        if (nbi_store_lookup(self, nbi_entities(table)[row], &found) != table || found != row) return false;
        if (table->incarnations[row] == 0 || table->incarnations[row] > self->incarnation_last) return false;
    }
    return has_clear_tail(table) && nb_handle_pool_is_valid(table->pool);
}

bool nb_store_is_valid(const nb_store *store) {
    if (store == NULL) {
        NBI_FAIL_NULL("store");
        return false;
    }
    const nbi_store *self = nbi_store_const_of(store);
    for (uint32_t i = 0; i < store->table_count; ++i) {
        if (is_table_valid(self, &self->tables[i])) continue;
        NBI_FAIL(&self->hooks, NB_ITEM_STORE_CORRUPT, NB_ERR_RANGE, "rows and entities of '%s' do not agree",
                 self->tables[i].name);
        return false;
    }
    return true;
}
