// SPDX-License-Identifier: MIT
#pragma once

// Providers of every kind around the small world, and saves of them that are damaged on purpose.

#include "fuzz_store.h"

#include "nebula/state.h"

#define FUZZ_LIST_MAX 16u

// A list behind callbacks; it does not take a list whose first number is 255.
typedef struct fuzz_list {
    uint8_t numbers[FUZZ_LIST_MAX];
    size_t count;
    uint64_t load_count;
} fuzz_list;

typedef struct fuzz_game {
    nb_states *states;
    nb_store *world;
    fuzz_tables tables;
    fuzz_list list, tail; // "a list" before the world, "z tail" behind it
    uint32_t plain[3];
    uint64_t local;
} fuzz_game;

static inline size_t fuzz_list_save(void *user, void *bytes, size_t capacity_bytes) {
    const fuzz_list *list = (const fuzz_list *)user;
    if (bytes != NULL && list->count <= capacity_bytes) memcpy(bytes, list->numbers, list->count);
    return list->count;
}

static inline nb_result fuzz_list_load(void *user, const void *bytes, size_t size_bytes) {
    fuzz_list *list = (fuzz_list *)user;
    const uint8_t *numbers = (const uint8_t *)bytes;
    ++list->load_count;
    if (size_bytes > FUZZ_LIST_MAX || (size_bytes != 0 && numbers[0] == 255)) return NB_ERR_RANGE;
    memcpy(list->numbers, numbers, size_bytes);
    list->count = size_bytes;
    return NB_OK;
}

// Everything but the world, which is an engine's or a provider of its own.
static inline void fuzz_game_add(fuzz_game *g) {
    nb_provider_desc descs[] = {
        {.name = "a list", .save = fuzz_list_save, .load = fuzz_list_load, .user = &g->list},
        {.name = "local", .data = &g->local, .size_bytes = sizeof g->local, .flags = NB_PROVIDER_LOCAL},
        {.name = "plain", .data = g->plain, .size_bytes = sizeof g->plain},
        {.name = "z tail", .save = fuzz_list_save, .load = fuzz_list_load, .user = &g->tail}};
    for (uint32_t i = 0; i < 4; ++i) fuzz_expect(nb_states_add(g->states, &descs[i], NULL) == NB_OK);
    g->list = (fuzz_list){.numbers = {1, 2, 3}, .count = 3};
    g->tail = (fuzz_list){.numbers = {9}, .count = 1};
    g->plain[0] = 5, g->plain[2] = 7, g->local = 11;
}

// The head of a save made right: count and rows stay.
#define FUZZ_STATES_HEAD_BYTES 32u
#define FUZZ_STATES_ROW_BYTES 24u
static inline void fuzz_states_sign(unsigned char *bytes, size_t size) {
    if (size < FUZZ_STATES_HEAD_BYTES) return;
    memcpy(bytes, "nebstat1", 8);
    fuzz_put_u64(bytes + 8, 1);
    uint64_t count = fuzz_get_u64(bytes + 16);
    fuzz_put_u64(bytes + 24, nb_hash64(bytes + FUZZ_STATES_HEAD_BYTES, size - FUZZ_STATES_HEAD_BYTES, count));
}

// Where the bytes of the world are in a save of these providers: they are the third.
static inline unsigned char *fuzz_states_world(unsigned char *bytes, size_t size, size_t *world_size) {
    size_t at = FUZZ_STATES_HEAD_BYTES;
    for (uint32_t i = 0; size - at >= FUZZ_STATES_ROW_BYTES; ++i) {
        uint64_t part = fuzz_get_u64(bytes + at + 16);
        at += FUZZ_STATES_ROW_BYTES;
        if (part > size - at) return NULL;
        *world_size = (size_t)part;
        if (i == 2) return bytes + at;
        at += (size_t)((part + 7) & ~(uint64_t)7);
        if (at > size) return NULL;
    }
    return NULL;
}

// A valid save in `bytes` with changes; what is right again afterwards follows from the mode: nothing (0 and 3), the
// outer head (1), both heads (2). Mode 0 takes the bytes as they are.
static inline size_t fuzz_states_prepare(const fuzz_game *g, uint32_t mode, const uint8_t *data, size_t size,
                                         unsigned char *bytes) {
    size_t saved = 0, world_size = 0;
    if (mode == 0) {
        memcpy(bytes, data, size);
        return size;
    }
    fuzz_expect(nb_states_save(g->states, bytes, FUZZ_STATE_MAX, &saved) == NB_OK);
    size = fuzz_edit(bytes, saved, data, size);
    unsigned char *world = size > FUZZ_STATES_HEAD_BYTES ? fuzz_states_world(bytes, size, &world_size) : NULL;
    if (mode == 2 && world != NULL) fuzz_world_sign(world, world_size, nb_store_layout_hash(g->world));
    if (mode != 3) fuzz_states_sign(bytes, size);
    return size;
}
