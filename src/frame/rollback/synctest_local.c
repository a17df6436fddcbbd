// SPDX-License-Identifier: MIT
// What is not simulated, kept and put back: local columns, local tables, memory of local providers; and with them what
// belongs to rows but is no state: incarnations and previous values.

#include "synctest.h"

#include "../state/state.h"
#include "../store/store_save.h"

#include <string.h>

// --- pieces ---

static void set_rows(nbi_local *piece, nbi_local_kind kind, const nb_store_column *column, void *memory) {
    piece->kind = kind;
    piece->column = column;
    piece->memory = memory;
    piece->size_bytes = (size_t)piece->table->head->row_count * column->size_bytes;
}

static void set_stashed(nbi_local *piece, const nb_store_column *column, void *memory) {
    set_rows(piece, NBI_LOCAL_STASHED, column, memory);
}

// A table's parts: incarnations or, where it is local, all of it; then of each column its rows, its previous values.
static uint32_t part_count(const nbi_table *table) { return 1 + 2 * table->head->column_count; }

// False: the table has nothing there.
static bool take_part(nbi_local *piece, uint32_t part) {
    nbi_table *table = piece->table;
    piece->name = table->name;
    piece->column_name = "";
    if (part == 0 && table->is_local) {
        piece->kind = NBI_LOCAL_TABLE;
        piece->memory = NULL;
        piece->size_bytes = nbi_table_save(table, NULL);
        return true;
    }
    NB_STATIC_ASSERT(sizeof(nb_entity) == sizeof *table->incarnations, "an incarnation for each entity");
    if (part == 0) {
        set_stashed(piece, &table->entities, table->incarnations);
        return true;
    }
    uint32_t index = (part - 1) / 2;
    const nb_store_column *column = &table->heads[index], *previous = &table->columns[index].previous;
    piece->column_name = table->columns[index].name;
    bool is_previous = part % 2 == 0;
    if (is_previous && previous->rows != NULL) set_stashed(piece, previous, previous->rows);
    if (is_previous) return previous->rows != NULL;
    if (table->is_local || nbi_column_is_simulated(column)) return false;
    set_rows(piece, NBI_LOCAL_COLUMN, column, column->rows);
    return true;
}

static bool next_of_world(const nbi_store *self, nbi_local *piece) {
    while (piece->next_table < self->visible.table_count) {
        piece->table = &self->tables[piece->next_table];
        uint32_t part = piece->next_part++;
        if (piece->next_part == part_count(piece->table)) piece->next_table += 1, piece->next_part = 0;
        if (take_part(piece, part)) return true;
    }
    return false;
}

static bool next_provider(const nb_states *states, nbi_local *piece) {
    const nb_provider_desc *desc = NULL;
    while ((desc = nbi_states_desc_at(states, piece->next_provider, &piece->name)) != NULL) {
        piece->next_provider += 1;
        if ((desc->flags & NB_PROVIDER_LOCAL) == 0 || desc->data == NULL) continue;
        piece->kind = NBI_LOCAL_PROVIDER;
        piece->column_name = "";
        piece->memory = desc->data;
        piece->size_bytes = desc->size_bytes;
        return true;
    }
    return false;
}

bool nbi_local_next(const nb_engine *engine, nbi_local *piece) {
    if (engine->is_world_joined && next_of_world(nbi_store_of(engine->world), piece)) return true;
    return next_provider(engine->states, piece);
}

// --- copies ---

// Of each piece: its size, its bytes.

static size_t read_size(const unsigned char *at) {
    uint64_t size_bytes;
    memcpy(&size_bytes, at, sizeof size_bytes);
    return (size_t)size_bytes;
}

static void write_piece(const nbi_local *piece, unsigned char *at) {
    uint64_t size_bytes = piece->size_bytes;
    memcpy(at, &size_bytes, sizeof size_bytes);
    at += sizeof size_bytes;
    if (piece->kind == NBI_LOCAL_TABLE) nbi_table_save(piece->table, at);
    if (piece->memory != NULL && size_bytes != 0) memcpy(at, piece->memory, piece->size_bytes);
}

void nbi_local_keep(nbi_synctest *self, nbi_copy *copy) {
    size_t size_bytes = 0;
    for (nbi_local piece = {0}; nbi_local_next(self->engine, &piece);) size_bytes += 8 + piece.size_bytes;
    if (!nbi_copy_reserve(self, copy, size_bytes)) return; // then nothing is put back from it
    for (nbi_local piece = {0}; nbi_local_next(self->engine, &piece);) {
        write_piece(&piece, copy->bytes + copy->size_bytes);
        copy->size_bytes += 8 + piece.size_bytes;
    }
}

// The place of a piece's size in a copy; NULL where it has none.
static const unsigned char *piece_at(const nbi_copy *copy, uint32_t index) {
    size_t at = 0;
    for (uint32_t i = 0; i < index && at < copy->size_bytes; ++i) at += 8 + read_size(copy->bytes + at);
    return at < copy->size_bytes ? copy->bytes + at : NULL;
}

bool nbi_local_is_same(const nbi_copy *a, const nbi_copy *b, uint32_t index) {
    const unsigned char *first = piece_at(a, index), *second = piece_at(b, index);
    if (first == NULL || second == NULL) return first == second;
    return read_size(first) == read_size(second) && memcmp(first + 8, second + 8, read_size(first)) == 0;
}

// --- putting back ---

// What is the same and marked all the same would be hashed and copied anew. What is local is not compared: its padding
// may be anything.
static bool is_same_stashed(const nbi_local *piece, const unsigned char *bytes) {
    return piece->kind == NBI_LOCAL_STASHED && memcmp(piece->memory, bytes, piece->size_bytes) == 0;
}

static void put_memory(const nbi_synctest *self, const nbi_local *piece, const unsigned char *bytes) {
    if (piece->size_bytes == 0 || is_same_stashed(piece, bytes)) return;
    memcpy(piece->memory, bytes, piece->size_bytes);
    if (piece->kind == NBI_LOCAL_PROVIDER) return;
    uint32_t block_count = nbi_block_count(piece->table->head->row_count);
    for (uint32_t i = 0; i < block_count; ++i) nbi_store_mark(piece->column, i, self->engine->world->version);
}

void nbi_local_put(nbi_synctest *self, const nbi_copy *copy, nbi_local_filter filter, const void *user) {
    size_t at = 0;
    uint32_t index = 0;
    for (nbi_local piece = {0}; at < copy->size_bytes && nbi_local_next(self->engine, &piece); ++index) {
        size_t size_bytes = read_size(copy->bytes + at);
        const unsigned char *bytes = copy->bytes + at + 8;
        at += 8 + size_bytes;
        if (filter != NULL && !filter(&piece, index, user)) continue;
        if (piece.kind == NBI_LOCAL_TABLE)
            nbi_table_load(nbi_store_of(self->engine->world), piece.table, bytes, size_bytes);
        if (piece.kind != NBI_LOCAL_TABLE && piece.size_bytes == size_bytes) put_memory(self, &piece, bytes);
    }
}
