// SPDX-License-Identifier: MIT
#pragma once

// A small world whose saved state is damaged: what the targets for authoritative state share.

#include "fuzz.h"

#include "nebula/store.h"

// More than a block of slots, which are noted as changed together.
#define FUZZ_PAWN_MAX 80u
#define FUZZ_STATE_MAX 8192u // more than any save of it

enum { FUZZ_PLACE, FUZZ_TAG, FUZZ_GLOW, FUZZ_PAWN_COLUMNS };

// With padding.
typedef struct fuzz_tag {
    uint8_t kind;
    uint32_t life;
} fuzz_tag;

typedef struct fuzz_tables {
    nb_table pawns, weather, sparks;
} fuzz_tables;

static inline void fuzz_expect(bool is_so) {
    if (!is_so) abort();
}

static inline fuzz_tables fuzz_tables_add(nb_store *world) {
    static const nb_store_field fields[] = {NB_STORE_FIELD(fuzz_tag, kind), NB_STORE_FIELD(fuzz_tag, life)};
    static const nb_column_desc pawns[] = {{"place", sizeof(float), NB_COLUMN_INTERPOLATE, NULL, 0},
                                           {"tag", sizeof(fuzz_tag), NB_COLUMN_DEFAULT, fields, 2},
                                           {"glow", sizeof(uint32_t), NB_COLUMN_LOCAL, NULL, 0}};
    static const nb_column_desc single[] = {{"value", sizeof(uint32_t), NB_COLUMN_DEFAULT, NULL, 0}};
    nb_table_desc descs[] = {
        {.name = "pawns", .row_count_max = FUZZ_PAWN_MAX, .columns = pawns, .column_count = FUZZ_PAWN_COLUMNS},
        {.name = "weather", .columns = single, .column_count = 1, .is_singleton = true},
        {.name = "sparks", .row_count_max = 4, .columns = single, .column_count = 1, .is_local = true}};
    fuzz_tables tables;
    fuzz_expect(nb_store_table_add(world, &descs[0], &tables.pawns) == NB_OK);
    fuzz_expect(nb_store_table_add(world, &descs[1], &tables.weather) == NB_OK);
    fuzz_expect(nb_store_table_add(world, &descs[2], &tables.sparks) == NB_OK);
    return tables;
}

// One change of many kinds, the same for the same step and state.
static inline void fuzz_world_step(nb_store *world, const fuzz_tables *tables, uint32_t step) {
    uint32_t count = nb_store_row_count(world, tables->pawns);
    if (step % 3 != 2) {
        nb_entity pawn;
        if (nb_store_spawn(world, tables->pawns, &pawn) == NB_OK)
            *NB_STORE_ROW_WRITE(world, tables->pawns, FUZZ_PLACE, float, count) = (float)step;
    } else if (count != 0) {
        nb_store_despawn(world, nb_store_entity(world, tables->pawns, step % count));
    }
    NB_STORE_EACH_ROW(row, world, tables->pawns) {
        ++NB_STORE_ROW_WRITE(world, tables->pawns, FUZZ_TAG, fuzz_tag, row)->life;
        NB_STORE_ROW_WRITE(world, tables->pawns, FUZZ_GLOW, uint32_t, row)[0] = 7 + row;
    }
    *NB_STORE_SINGLETON_WRITE(world, tables->weather, 0, uint32_t) += step;
}

// Few rows, many waiting slots in no order, some never used.
static inline void fuzz_world_fill(nb_store *world, const fuzz_tables *tables) {
    nb_entity pawn, spark;
    for (uint32_t i = 0; i < 70; ++i) fuzz_expect(nb_store_spawn(world, tables->pawns, &pawn) == NB_OK);
    for (uint32_t i = 70; i > 3; --i) nb_store_despawn(world, nb_store_entity(world, tables->pawns, i * 5 % i));
    for (uint32_t step = 0; step < 6; ++step) fuzz_world_step(world, tables, step);
    fuzz_expect(nb_store_spawn(world, tables->sparks, &spark) == NB_OK);
    fuzz_expect(nb_store_tick_begin(world) == NB_OK);
    fuzz_expect(nb_store_teleport(world, nb_store_entity(world, tables->pawns, 0)) == NB_OK);
    fuzz_expect(nb_store_tick_end(world) == NB_OK);
}

static inline void fuzz_put_u64(unsigned char *at, uint64_t value) {
    for (uint32_t i = 0; i < 8; ++i) at[i] = (unsigned char)(value >> 8 * i);
}

static inline uint64_t fuzz_get_u64(const unsigned char *at) {
    uint64_t value = 0;
    for (uint32_t i = 0; i < 8; ++i) value |= (uint64_t)at[i] << 8 * i;
    return value;
}

// The head of a world's save made right: layout, magic, size, hash of the body; the kind stays.
#define FUZZ_WORLD_HEAD_BYTES 40u
static inline void fuzz_world_sign(unsigned char *bytes, size_t size, uint64_t layout) {
    if (size < FUZZ_WORLD_HEAD_BYTES) return;
    fuzz_put_u64(bytes, layout);
    memcpy(bytes + 8, "nebworld", 8);
    fuzz_put_u64(bytes + 16, size);
    uint64_t kind = fuzz_get_u64(bytes + 32);
    fuzz_put_u64(bytes + 24, nb_hash64(bytes + FUZZ_WORLD_HEAD_BYTES, size - FUZZ_WORLD_HEAD_BYTES, kind));
}

// A valid save with changes: each four bytes of the input are a place (two), what to do and a value; the last of them
// may cut it.
static inline size_t fuzz_edit(unsigned char *bytes, size_t size, const uint8_t *data, size_t data_size) {
    for (; data_size >= 4 && size != 0; data += 4, data_size -= 4) {
        size_t at = (size_t)(data[0] | data[1] << 8) % size;
        switch (data[2] % 4) {
        case 0: bytes[at] = data[3]; break;
        case 1: bytes[at] = (unsigned char)(bytes[at] + data[3]); break;
        case 2: memset(bytes + at, data[3], size - at < 4 ? size - at : 4); break;
        default: size = at; break;
        }
    }
    return size;
}
