// SPDX-License-Identifier: MIT
// The row of one column in which two states differ, where other columns differ, too: a copy of the one state gets the
// column of the other, and is compared with what it was.

#include "verify_run.h"

#include <string.h>

// A column, with the entities of its rows, as it was.
typedef struct column_copy {
    unsigned char *bytes; // of the column, then of the entities
    size_t column_bytes, entity_bytes;
} column_copy;

static bool find_column(const nb_store *world, nb_table table, const char *name, uint32_t *column,
                        nb_column_info *info) {
    for (*column = 0; *column < NB_STORE_COLUMN_COUNT_MAX; ++*column) {
        if (nb_store_column_info(world, table, *column, info) != NB_OK) return false;
        if (strcmp(info->name, name) == 0) return true;
    }
    return false;
}

static nb_result copy_column(const nbi_run *run, nb_table table, uint32_t column, column_copy *copy) {
    nb_column_view rows, entities;
    nb_result result = nb_store_column_view(run->world, table, column, &rows);
    if (result == NB_OK) result = nb_store_entity_view(run->world, table, &entities);
    if (result != NB_OK) return result;
    copy->column_bytes = rows.row_count * rows.stride_bytes;
    copy->entity_bytes = entities.row_count * entities.stride_bytes;
    if (copy->column_bytes == 0) return NB_EMPTY;
    copy->bytes =
        nb_hooks_alloc(&run->desc.hooks, copy->column_bytes + copy->entity_bytes, NB_CACHE_LINE, "nb_replay_verify");
    if (copy->bytes == NULL) return NB_ERR_MEMORY;
    memcpy(copy->bytes, rows.base, copy->column_bytes);
    memcpy(copy->bytes + copy->column_bytes, entities.base, copy->entity_bytes);
    return NB_OK;
}

// Puts the copy in the place of the column as it is now. NB_EMPTY: the rows are others, so they cannot be compared.
static nb_result paste_column(const nbi_run *run, nb_table table, uint32_t column, size_t size_bytes,
                              const column_copy *copy) {
    nb_column_view entities;
    nb_result result = nb_store_entity_view(run->world, table, &entities);
    if (result != NB_OK) return result;
    bool is_same = entities.row_count * entities.stride_bytes == copy->entity_bytes &&
                   memcmp(copy->bytes + copy->column_bytes, entities.base, copy->entity_bytes) == 0;
    if (!is_same) return NB_EMPTY;
    void *rows = nb_store_rows_write(run->world, table, column, size_bytes, 0, UINT32_MAX);
    if (rows == NULL) return NB_ERR_PERMISSION;
    memcpy(rows, copy->bytes, copy->column_bytes);
    return NB_OK;
}

bool nbi_row_is_of_other_column(const nb_difference *difference, const char *table_name, const char *column_name) {
    if (column_name[0] == '\0') return false;
    return strcmp(difference->table, table_name) != 0 || strcmp(difference->column, column_name) != 0;
}

nb_result nbi_row_find(nbi_run *run, const char *table_name, const char *column_name, const nbi_key *key,
                       nb_difference *out) {
    nb_states *states = nb_engine_states(run->engine);
    nb_table table = run->world != NULL ? nb_store_table_find(run->world, table_name) : (nb_table){0};
    nb_column_info info;
    uint32_t column = 0;
    column_copy copy = {.bytes = NULL};
    if (table.value == 0 || !find_column(run->world, table, column_name, &column, &info)) return NB_EMPTY;
    nb_result result = nb_states_load(states, run->kept.bytes, run->kept.size_bytes);
    if (result == NB_OK) result = copy_column(run, table, column, &copy);
    if (result == NB_OK) result = nb_states_load(states, key->bytes, key->size_bytes);
    if (result == NB_OK) result = paste_column(run, table, column, info.size_bytes, &copy);
    nb_hooks_free(&run->desc.hooks, copy.bytes, copy.column_bytes + copy.entity_bytes);
    if (result == NB_OK) result = nbi_run_save(run, &run->kept);
    if (result != NB_OK) return result;
    return nb_states_compare(states, run->kept.bytes, run->kept.size_bytes, key->bytes, key->size_bytes, out);
}
