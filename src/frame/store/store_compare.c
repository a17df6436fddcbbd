// SPDX-License-Identifier: MIT
// Where two saved states of a store differ: rows first, then the values in them, then the handles behind them.

#include "../state/compare.h"
#include "store_save.h"
#include "type.h"

#include <stdio.h>
#include <string.h>

typedef struct table_pair {
    const nbi_table *table;
    nbi_saved_table here, there;
    uint32_t shared_count; // rows that both have
} table_pair;

static nb_entity entity_at(const nbi_saved_table *saved, uint32_t row) {
    nb_entity entity = {0};
    if (row < saved->row_count) memcpy(&entity, saved->entities + row * sizeof entity, sizeof entity);
    return entity;
}

// The first of `count` elements that differs, and how many do; `count` where none does.
static uint32_t differing_row(const unsigned char *here, const unsigned char *there, size_t size_bytes, uint32_t count,
                              uint64_t *row_count) {
    uint32_t first = count;
    *row_count = 0;
    if (count == 0 || memcmp(here, there, count * size_bytes) == 0) return count;
    for (uint32_t row = 0; row < count; ++row) {
        if (memcmp(here + row * size_bytes, there + row * size_bytes, size_bytes) == 0) continue;
        if (first == count) first = row;
        *row_count += 1;
    }
    return first;
}

static void note(const table_pair *pair, nb_difference_kind kind, uint32_t row, nb_difference *out) {
    out->kind = kind;
    snprintf(out->table, sizeof out->table, "%s", pair->table->name);
    out->row = row;
    out->entity_here = entity_at(&pair->here, row);
    out->entity_there = entity_at(&pair->there, row);
    out->count_here = pair->here.row_count;
    out->count_there = pair->there.row_count;
}

// Each takes what differs first, unless something was found before.

// True: both have the same entities in the same rows.
static bool compare_rows(const table_pair *pair, nb_difference *out) {
    uint64_t row_count = 0;
    uint32_t shared = pair->shared_count;
    uint32_t row = differing_row(pair->here.entities, pair->there.entities, sizeof(nb_entity), shared, &row_count);
    bool is_counted = pair->here.row_count != pair->there.row_count;
    if (row == shared && !is_counted) return true;
    if (out->kind != NB_DIFFERENCE_NONE) {
        nbi_difference_other(out, pair->table->name, "");
        return false;
    }
    note(pair, is_counted ? NB_DIFFERENCE_ROW_COUNT : NB_DIFFERENCE_ROW_ORDER, row, out);
    out->row_count = row_count;
    return false;
}

// The values of the rows that differ, from the first one on.
static void list_rows(const table_pair *pair, const unsigned char *here, const unsigned char *there, size_t size_bytes,
                      uint32_t first, nb_difference *out) {
    for (uint32_t row = first; row < pair->shared_count; ++row) {
        const unsigned char *a = here + row * size_bytes, *b = there + row * size_bytes;
        size_t at = nbi_differ_at(a, b, size_bytes);
        if (at == size_bytes) continue;
        nbi_difference_range(out, &(nb_difference_range){.offset_bytes = at,
                                                         .size_bytes = size_bytes - at,
                                                         .row = row,
                                                         .here = nbi_difference_word(a, size_bytes, at),
                                                         .there = nbi_difference_word(b, size_bytes, at)});
    }
}

// The value that a byte of an element belongs to; NULL where that is not known.
static const nbi_leaf *leaf_at(const nbi_column *column, size_t at) {
    for (uint32_t i = 0; i < column->leaf_count; ++i) {
        const nbi_leaf *leaf = &column->leaves[i];
        if (at >= leaf->offset_bytes && at - leaf->offset_bytes < leaf->size_bytes) return leaf;
    }
    return NULL;
}

static bool is_single(const nbi_table *table) { return table->is_singleton && table->head->row_bytes != 0; }

// Behind the name of the column; "" for a plain column, which is its only value. A single struct has all of it.
static const char *member_name(const table_pair *pair, const nbi_column *column, const nbi_leaf *leaf) {
    size_t length = is_single(pair->table) ? 0 : strlen(column->name);
    return leaf->name + length + (leaf->name[length] == '.');
}

// Further values of a single struct that differ.
static void note_others(const table_pair *pair, const nbi_column *column, const nbi_leaf *first,
                        const unsigned char *here, const unsigned char *there, nb_difference *out) {
    for (const nbi_leaf *leaf = first + 1; leaf < column->leaves + column->leaf_count; ++leaf) {
        if (memcmp(here + leaf->offset_bytes, there + leaf->offset_bytes, leaf->size_bytes) != 0)
            nbi_difference_other(out, pair->table->name, leaf->name);
    }
}

// Of a column, or of the marks with column NULL.
static void compare_values(const table_pair *pair, const nbi_column *column, const unsigned char *here,
                           const unsigned char *there, size_t size_bytes, nb_difference *out) {
    uint64_t row_count = 0;
    uint32_t row = differing_row(here, there, size_bytes, pair->shared_count, &row_count);
    if (row == pair->shared_count) return;
    if (column != NULL) out->column_count += 1;
    if (out->kind != NB_DIFFERENCE_NONE) {
        nbi_difference_other(out, pair->table->name, column != NULL ? column->name : "teleport marks");
        return;
    }
    note(pair, column != NULL ? NB_DIFFERENCE_VALUE : NB_DIFFERENCE_TELEPORT, row, out);
    if (column != NULL) snprintf(out->column, sizeof out->column, "%s", column->name);
    out->row_count = row_count;
    list_rows(pair, here, there, size_bytes, row, out);
    here += row * size_bytes;
    there += row * size_bytes;
    size_t at = nbi_differ_at(here, there, size_bytes);
    const nbi_leaf *leaf = column != NULL ? leaf_at(column, at) : NULL;
    if (leaf == NULL) {
        nbi_difference_value(out, here, there, size_bytes, at);
        return;
    }
    snprintf(out->member, sizeof out->member, "%s", member_name(pair, column, leaf));
    out->is_single = is_single(pair->table);
    if (out->is_single) note_others(pair, column, leaf, here, there, out);
    out->value_kind = leaf->kind;
    here += leaf->offset_bytes;
    there += leaf->offset_bytes;
    nbi_difference_value(out, here, there, leaf->size_bytes, at - leaf->offset_bytes);
}

static void compare_columns(const table_pair *pair, nb_difference *out) {
    const unsigned char *here = pair->here.columns, *there = pair->there.columns;
    for (uint32_t i = 0; i < pair->table->head->column_count; ++i) {
        const nb_store_column *column = &pair->table->heads[i];
        if (!nbi_column_is_simulated(column)) continue;
        compare_values(pair, &pair->table->columns[i], here, there, column->size_bytes, out);
        here += (size_t)pair->here.row_count * column->size_bytes;
        there += (size_t)pair->there.row_count * column->size_bytes;
    }
}

static void compare_handles(const table_pair *pair, nb_difference *out) {
    const nbi_saved_table *here = &pair->here, *there = &pair->there;
    size_t header_bytes = nbi_pool_parts_of(pair->table->pool).header_bytes;
    bool is_same = here->used_count == there->used_count && memcmp(here->header, there->header, header_bytes) == 0;
    uint32_t count = here->used_count;
    if (is_same && count != 0)
        is_same = memcmp(here->generations, there->generations, count * sizeof(uint64_t)) == 0 &&
                  memcmp(here->links, there->links, count * sizeof(uint32_t)) == 0;
    if (!is_same && out->kind == NB_DIFFERENCE_NONE) note(pair, NB_DIFFERENCE_HANDLES, UINT32_MAX, out);
}

static void compare_table(const table_pair *pair, nb_difference *out) {
    if (!compare_rows(pair, out)) return; // values in rows of other entities say nothing
    compare_columns(pair, out);
    if (pair->here.marks != NULL) compare_values(pair, NULL, pair->here.marks, pair->there.marks, 1, out);
    compare_handles(pair, out);
}

typedef struct saved_side {
    nbi_reader from;
    nb_save_kind kind;
} saved_side;

// False: the bytes make no sense.
static bool compare_bodies(const nbi_store *self, saved_side *here, saved_side *there, nb_difference *out) {
    for (uint32_t i = 0; i < self->visible.table_count; ++i) {
        const nbi_table *table = &self->tables[i];
        table_pair pair = {.table = table};
        if (table->is_local) continue;
        bool is_fine = nbi_saved_table_take(&here->from, table, here->kind, &pair.here) &&
                       nbi_saved_table_take(&there->from, table, there->kind, &pair.there);
        if (!is_fine) return false;
        pair.shared_count = (uint32_t)nbi_min_u64(pair.here.row_count, pair.there.row_count);
        compare_table(&pair, out);
    }
    return here->from.left_bytes == 0 && there->from.left_bytes == 0;
}

nb_result nb_store_compare(const nb_store *store, const void *here, size_t here_bytes, const void *there,
                           size_t there_bytes, nb_difference *out) {
    if (store == NULL) return NBI_FAIL_NULL("store");
    const nbi_store *self = nbi_store_const_of(store);
    if (here == NULL || there == NULL || out == NULL)
        return NBI_FAIL(&self->hooks, NB_ITEM_STORE_ARGUMENT, NB_ERR_MISUSE, "here, there or out is NULL");
    saved_side a, b;
    nb_result result = nbi_saved_open(self, here, here_bytes, __func__, &a.from, &a.kind);
    if (result == NB_OK) result = nbi_saved_open(self, there, there_bytes, __func__, &b.from, &b.kind);
    if (result != NB_OK) return result;
    nb_difference found = {.provider = "world"};
    if (!compare_bodies(self, &a, &b, &found))
        return NBI_FAIL(&self->hooks, NB_ITEM_STORE_CORRUPT, NB_ERR_RANGE, "the saved state makes no sense");
    if (found.kind == NB_DIFFERENCE_NONE) return NB_EMPTY;
    found.provider_count = 1;
    nbi_difference_describe(&found);
    *out = found;
    return NB_OK;
}
