// SPDX-License-Identifier: MIT
// The world alone, without the engine: tables of columns, entities that stay true while rows move, a tick with changes
// that are staged, a hash that follows what was written, and a save that comes back as it was.

#include "nebula/store.h"

#include <stdio.h>
#include <stdlib.h>

#define SHEEP_MAX 1000u

enum { POSITION, AGE };

static const nb_column_desc sheep_columns[] = {
    {.name = "position", .size_bytes = sizeof(int32_t), .flags = NB_COLUMN_INTERPOLATE},
    {.name = "age", .size_bytes = sizeof(uint32_t)},
};

// Everyone walks and grows older; at 3 a sheep has a lamb, at 8 it is gone. Who comes and goes is staged, and applied
// when all have been looked at.
static bool tick(nb_store *world, nb_table sheep, nb_store_stage *stage) {
    nb_store_tick_begin(world);
    int32_t *position = NB_STORE_ROWS_WRITE(world, sheep, POSITION, int32_t);
    uint32_t *age = NB_STORE_ROWS_WRITE(world, sheep, AGE, uint32_t);
    NB_STORE_EACH_ROW(row, world, sheep) {
        position[row] += (int32_t)(row % 3) - 1;
        nb_staged lamb;
        if (++age[row] == 3 && nb_store_stage_spawn(stage, sheep, &lamb) == NB_OK)
            *NB_STORE_STAGED_WRITE(stage, lamb, POSITION, int32_t) = position[row] + 1;
        if (age[row] == 8) nb_store_stage_despawn(stage, nb_store_entity(world, sheep, row));
    }
    nb_result result = nb_store_apply(world, &stage, 1);
    nb_store_stage_reset(stage);
    nb_store_tick_end(world);
    return result == NB_OK;
}

int main(void) {
    nb_store *world = NULL;
    nb_table sheep = {0};
    nb_table_desc table = {.name = "sheep", .row_count_max = SHEEP_MAX, .columns = sheep_columns, .column_count = 2};
    if (nb_store_create(NULL, &world) != NB_OK || nb_store_table_add(world, &table, &sheep) != NB_OK) return 1;
    static unsigned char memory[1 << 16];
    nb_store_stage stage;
    nb_store_stage_desc staging = {.memory = memory, .size_bytes = sizeof memory};
    bool is_good = nb_store_stage_init(&stage, world, &staging) == NB_OK;
    nb_entity first = {0};
    for (int i = 0; i < 10; ++i) {
        nb_entity entity;
        is_good = is_good && nb_store_spawn(world, sheep, &entity) == NB_OK;
        if (i == 0) first = entity;
    }
    for (int i = 0; i < 7; ++i) is_good = is_good && tick(world, sheep, &stage);

    // The state of now, kept; then on, and back.
    size_t size_bytes = nb_store_save_size(world, NB_SAVE_FILE);
    void *save = malloc(size_bytes);
    is_good = is_good && save != NULL && nb_store_save(world, NB_SAVE_FILE, save, size_bytes, &size_bytes) == NB_OK;
    uint64_t then = nb_store_hash(world);
    uint32_t row, count_then = nb_store_row_count(world, sheep);
    is_good = is_good && nb_store_find(world, first, &row) == NB_OK;
    is_good = is_good && tick(world, sheep, &stage);
    printf("tick 8: %u sheep; the first one is %s\n", nb_store_row_count(world, sheep),
           nb_store_find(world, first, &row) == NB_OK ? "there" : "gone");
    is_good = is_good && nb_store_load(world, save, size_bytes) == NB_OK && nb_store_hash(world) == then;
    printf("loaded: %u sheep; the first one is %s\n", nb_store_row_count(world, sheep),
           nb_store_find(world, first, &row) == NB_OK ? "there" : "gone");
    is_good = is_good && nb_store_row_count(world, sheep) == count_then;
    free(save);
    nb_store_destroy(world);
    return is_good ? 0 : 1;
}
