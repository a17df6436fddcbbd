// SPDX-License-Identifier: MIT
// The store alone, without the engine: a table that is declared by the struct of its rows, entities that stay valid
// while rows move, a tick that stages its changes, a hash that follows each write, and a save that loads as it was.

#include "nebula/store.h"

#include <stdio.h>
#include <stdlib.h>

#define SHEEP_MAX 1000u

typedef struct sheep {
    int32_t position;
    uint32_t age;
} sheep; // one row; the table keeps a column of each member
NB_ROW(sheep, NB_COLUMN(position, NB_INTERPOLATE), NB_COLUMN(age, NB_PLAIN))

// Sheep walk and grow older. At 3 a sheep has a lamb, at 8 it leaves. Both changes are staged and applied at the end.
static bool tick(nb_store *store, nb_table herd, nb_store_stage *stage) {
    nb_store_tick_begin(store);
    int32_t *position = NB_STORE_MEMBER_WRITE(store, herd, sheep, position);
    uint32_t *age = NB_STORE_MEMBER_WRITE(store, herd, sheep, age);
    bool is_good = true;
    NB_STORE_EACH_ROW(row, store, herd) {
        position[row] += (int32_t)(row % 3) - 1;
        sheep lamb = {.position = position[row] + 1};
        if (++age[row] == 3)
            is_good = nb_store_stage_spawn_row(stage, herd, &lamb, sizeof lamb, NULL) == NB_OK && is_good;
        if (age[row] == 8)
            is_good = nb_store_stage_despawn(stage, nb_store_entity(store, herd, row)) == NB_OK && is_good;
    }
    is_good = nb_store_apply(store, &stage, 1) == NB_OK && is_good;
    nb_store_stage_reset(stage);
    nb_store_tick_end(store);
    return is_good;
}

int main(void) {
    nb_store *store = NULL;
    nb_table herd = {0};
    nb_table_desc table = {.name = "sheep", .row_count_max = SHEEP_MAX, .type = sheep_type()};
    if (nb_store_create(NULL, &store) != NB_OK || nb_store_table_add(store, &table, &herd) != NB_OK) return 1;
    static unsigned char memory[1 << 16];
    nb_store_stage stage;
    nb_store_stage_desc staging = {.memory = memory, .size_bytes = sizeof memory};
    bool is_good = nb_store_stage_init(&stage, store, &staging) == NB_OK;
    nb_entity first = {0};
    for (int i = 0; i < 10; ++i) {
        nb_entity entity;
        is_good = is_good && nb_store_spawn(store, herd, &entity) == NB_OK;
        if (i == 0) first = entity;
    }
    for (int i = 0; i < 7; ++i) is_good = is_good && tick(store, herd, &stage);

    // The state of now, kept; then on, and back.
    size_t size_bytes = nb_store_save_size(store, NB_SAVE_FILE);
    void *save = malloc(size_bytes);
    is_good = is_good && save != NULL && nb_store_save(store, NB_SAVE_FILE, save, size_bytes, &size_bytes) == NB_OK;
    uint64_t then = nb_store_hash(store);
    uint32_t row, count_then = nb_store_row_count(store, herd);
    is_good = is_good && nb_store_find(store, first, &row) == NB_OK;
    is_good = is_good && tick(store, herd, &stage);
    printf("tick 8: %u sheep; the first one is %s\n", nb_store_row_count(store, herd),
           nb_store_find(store, first, &row) == NB_OK ? "there" : "gone");
    is_good = is_good && nb_store_load(store, save, size_bytes) == NB_OK && nb_store_hash(store) == then;
    printf("loaded: %u sheep; the first one is %s\n", nb_store_row_count(store, herd),
           nb_store_find(store, first, &row) == NB_OK ? "there" : "gone");
    is_good = is_good && nb_store_row_count(store, herd) == count_then;
    free(save);
    nb_store_destroy(store);
    return is_good ? 0 : 1;
}
