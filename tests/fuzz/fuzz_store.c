// SPDX-License-Identifier: MIT
// Any bytes as the saved state of a world. The first byte says how they are prepared: as they are (0); with a head that
// is right (1); as changes to a valid save whose head is then made right (2), or not (3). It also says whether the save
// was one of history, and with which step the game goes on. What is refused has changed nothing; what is accepted is a
// state like any other: it is saved, loaded elsewhere and played on, with the same hash.

#include "fuzz_store.h"

typedef struct rig {
    nb_store *world;
    fuzz_tables tables;
    fuzz_heap heap;
} rig;

static void rig_open(rig *r) {
    memset(r, 0, sizeof *r);
    nb_store_desc desc = {.hooks = fuzz_hooks(&r->heap)};
    fuzz_expect(nb_store_create(&desc, &r->world) == NB_OK);
    r->tables = fuzz_tables_add(r->world);
}

static void rig_close(rig *r) {
    nb_store_destroy(r->world);
    fuzz_expect(r->heap.live_count == 0);
}

// What is not in the hash: incarnations, local values, values at the tick's start.
typedef struct beside {
    nb_entity_ref refs[FUZZ_PAWN_MAX];
    uint32_t glow[FUZZ_PAWN_MAX], count, spark_count;
    float previous[FUZZ_PAWN_MAX];
} beside;

static beside beside_of(const rig *r) {
    beside b;
    memset(&b, 0, sizeof b);
    b.count = nb_store_row_count(r->world, r->tables.pawns);
    b.spark_count = nb_store_row_count(r->world, r->tables.sparks);
    const float *previous = NB_STORE_ROWS_PREVIOUS(r->world, r->tables.pawns, FUZZ_PLACE, float);
    NB_STORE_EACH_ROW(row, r->world, r->tables.pawns) {
        nb_store_ref(r->world, nb_store_entity(r->world, r->tables.pawns, row), &b.refs[row]);
        b.glow[row] = *NB_STORE_ROW(r->world, r->tables.pawns, FUZZ_GLOW, uint32_t, row);
        b.previous[row] = previous[row];
    }
    return b;
}

// Saved, loaded elsewhere, played on: hashes of blocks and links that were not noted as changed would differ.
static void play_on(rig *r, uint32_t step) {
    unsigned char bytes[FUZZ_STATE_MAX];
    size_t size = 0;
    rig other;
    rig_open(&other);
    fuzz_expect(nb_store_save(r->world, NB_SAVE_FILE, bytes, sizeof bytes, &size) == NB_OK);
    fuzz_expect(nb_store_load(other.world, bytes, size) == NB_OK);
    for (uint32_t end = step + 9; step < end; ++step) {
        fuzz_expect(nb_store_hash(r->world) == nb_store_hash(other.world));
        fuzz_world_step(r->world, &r->tables, step);
        fuzz_world_step(other.world, &other.tables, step);
        // Not as it was noted, but as it is.
        rig fresh;
        rig_open(&fresh);
        fuzz_expect(nb_store_save(r->world, NB_SAVE_FILE, bytes, sizeof bytes, &size) == NB_OK);
        fuzz_expect(nb_store_load(fresh.world, bytes, size) == NB_OK);
        fuzz_expect(nb_store_hash(r->world) == nb_store_hash(fresh.world));
        rig_close(&fresh);
    }
    fuzz_expect(nb_store_is_valid(r->world) && nb_store_is_valid(other.world));
    rig_close(&other);
}

static size_t prepare(const rig *r, uint8_t how, const uint8_t *data, size_t size, unsigned char *bytes) {
    uint32_t mode = FUZZ_MODE(how);
    nb_save_kind kind = how / 4 % 2 != 0 ? NB_SAVE_HISTORY : NB_SAVE_FILE;
    size_t saved = 0;
    if (mode < 2) {
        memcpy(bytes, data, size);
    } else {
        fuzz_expect(nb_store_save(r->world, kind, bytes, FUZZ_STATE_MAX, &saved) == NB_OK);
        size = fuzz_edit(bytes, saved, data, size);
    }
    if (mode == 1 || mode == 2) fuzz_world_sign(bytes, size, nb_store_layout_hash(r->world));
    return size;
}

// In a tick, and where simulated state is not to be written, the best bytes are refused.
static void refuse_now(nb_store *world, const unsigned char *bytes, size_t size) {
    fuzz_expect(nb_store_load(world, NULL, size) == NB_ERR_MISUSE);
    fuzz_expect(nb_store_tick_begin(world) == NB_OK);
    fuzz_expect(nb_store_load(world, bytes, size) == NB_ERR_MISUSE);
    fuzz_expect(nb_store_tick_end(world) == NB_OK);
    fuzz_expect(nb_store_allow(world, NB_COLUMN_LOCAL) == NB_OK);
    fuzz_expect(nb_store_load(world, bytes, size) == NB_ERR_PERMISSION);
    fuzz_expect(nb_store_allow(world, NB_COLUMN_LOCAL | NB_COLUMN_SIMULATED) == NB_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0 || size > FUZZ_STATE_MAX) return 0;
    rig r;
    rig_open(&r);
    fuzz_world_fill(r.world, &r.tables);
    unsigned char bytes[FUZZ_STATE_MAX];
    uint8_t how = data[0];
    size = prepare(&r, how, data + 1, size - 1, bytes);
    // At the end of a block of its own size: a read behind it is seen.
    unsigned char *exact = malloc(size != 0 ? size : 1);
    fuzz_expect(exact != NULL);
    memcpy(exact, bytes, size);
    refuse_now(r.world, exact, size);
    uint64_t hash = nb_store_hash(r.world), calls = r.heap.call_count;
    beside before = beside_of(&r);
    nb_result result = nb_store_load(r.world, exact, size);
    free(exact);
    fuzz_expect(r.heap.call_count == calls); // whatever the counts in it say
    fuzz_expect(nb_store_is_valid(r.world));
    if (result != NB_OK) {
        beside after = beside_of(&r);
        fuzz_expect(nb_store_hash(r.world) == hash && memcmp(&before, &after, sizeof before) == 0);
    }
    play_on(&r, how / 8);
    rig_close(&r);
    return 0;
}
