// SPDX-License-Identifier: MIT
#pragma once

// A game of everything a history keeps: a world with rows that come, go, move and teleport, a plain struct, a list of
// bytes that grows and shrinks behind callbacks, and something local. A tick depends on the state and its input alone.

#include "frame/store/store_fixture.h"

#include "nebula/history.h"

#define LIST_BYTES_MAX 3000
#define BOARD_BYTES 5000

typedef struct list {
    unsigned char bytes[LIST_BYTES_MAX];
    size_t size_bytes;
    uint32_t save_count, load_count;
    uint32_t refuse_count; // loads to refuse from now on
} list;

static inline size_t list_save(void *user, void *bytes, size_t capacity_bytes) {
    list *self = user;
    self->save_count += 1;
    if (bytes != NULL && self->size_bytes <= capacity_bytes) memcpy(bytes, self->bytes, self->size_bytes);
    return self->size_bytes;
}

static inline nb_result list_load(void *user, const void *bytes, size_t size_bytes) {
    list *self = user;
    self->load_count += 1;
    if (self->refuse_count > 0) {
        self->refuse_count -= 1;
        return NB_ERR_UNSUPPORTED;
    }
    if (size_bytes > LIST_BYTES_MAX) return NB_ERR_RANGE;
    memset(self->bytes, 0, sizeof self->bytes);
    memcpy(self->bytes, bytes, size_bytes);
    self->size_bytes = size_bytes;
    return NB_OK;
}

// The world as an engine registers it; the history must not call these.
static inline size_t game_world_save(void *user, void *bytes, size_t capacity_bytes) {
    (void)user, (void)bytes, (void)capacity_bytes;
    abort();
}
static inline nb_result game_world_load(void *user, const void *bytes, size_t size_bytes) {
    (void)user, (void)bytes, (void)size_bytes;
    abort();
}
static inline uint64_t game_world_hash(void *user) { return nb_store_hash(user); }

typedef struct game {
    fixture f;
    nb_states *states;
    nb_history *history;
    list first, second; // two, so that one can refuse after the other was loaded
    unsigned char board[BOARD_BYTES];
    uint32_t local;
    nb_store_stage stage;
    unsigned char stage_memory[1 << 15];
} game;

static inline void game_add(game *g, nb_provider_desc desc) {
    assert_int_equal(nb_states_add(g->states, &desc, NULL), NB_OK);
}

// desc: sizes and hooks alone.
static inline void game_open(game *g, uint32_t unit_count_max, nb_history_desc desc) {
    memset(g, 0, sizeof *g);
    nb_hooks hooks = {0};
    g->f = fixture_open(unit_count_max, &hooks);
    assert_int_equal(nb_states_create(NULL, &g->states), NB_OK);
    game_add(g, (nb_provider_desc){.name = "board", .data = g->board, .size_bytes = sizeof g->board});
    game_add(g, (nb_provider_desc){.name = "first", .save = list_save, .load = list_load, .user = &g->first});
    game_add(g, (nb_provider_desc){.name = "local", .data = &g->local, .size_bytes = 4, .flags = NB_PROVIDER_LOCAL});
    game_add(g, (nb_provider_desc){.name = "second", .save = list_save, .load = list_load, .user = &g->second});
    game_add(g, (nb_provider_desc){.name = "world",
                                   .save = game_world_save,
                                   .load = game_world_load,
                                   .hash = game_world_hash,
                                   .user = g->f.world});
    nb_store_stage_desc stage = {.memory = g->stage_memory, .size_bytes = sizeof g->stage_memory};
    assert_int_equal(nb_store_stage_init(&g->stage, g->f.world, &stage), NB_OK);
    desc.states = g->states;
    desc.world = g->f.world;
    assert_int_equal(nb_history_create(&desc, &g->history), NB_OK);
}

static inline void game_close(game *g) {
    nb_history_destroy(g->history);
    nb_states_destroy(g->states);
    nb_store_destroy(g->f.world);
}

// --- a tick ---

static inline void game_write_rows(game *g, uint64_t *random) {
    fixture *f = &g->f;
    uint32_t count = nb_store_row_count(f->world, f->units);
    for (uint64_t i = test_random(random) % 8; count > 0 && i > 0; --i) {
        uint32_t row = (uint32_t)(test_random(random) % count);
        uint64_t value = test_random(random);
        NB_STORE_ROW_WRITE(f->world, f->units, POSITION, vec3, row)->x += (float)(value % 10);
        if (value % 3 == 0) *NB_STORE_ROW_WRITE(f->world, f->units, HEALTH, uint32_t, row) += (uint32_t)(value % 7);
        if (value % 5 == 0) {
            padded *note = NB_STORE_ROW_WRITE(f->world, f->units, NOTE, padded, row);
            memset(note, (int)(value & 255), sizeof *note); // padding too
            note->number = value;
        }
        if (value % 11 == 0) nb_store_teleport(f->world, nb_store_entity(f->world, f->units, row));
    }
    if (test_random(random) % 16 != 0 || count == 0) return;
    vec3 *position = NB_STORE_ROWS_WRITE(f->world, f->units, POSITION, vec3);
    for (uint32_t row = 0; row < count; ++row) position[row].y += 1.0f;
}

// Waves of growth and decay, so that slots are used again and blocks come and go.
static inline void game_stage_rows(game *g, uint64_t tick, uint64_t *random) {
    fixture *f = &g->f;
    uint32_t count = nb_store_row_count(f->world, f->units);
    uint64_t spawns = test_random(random) % (tick / 64 % 2 == 0 ? 6 : 3), despawns = test_random(random) % 5;
    for (uint64_t i = 0; i < spawns; ++i) {
        nb_staged staged;
        if (nb_store_stage_spawn(&g->stage, f->units, &staged) != NB_OK) continue;
        *NB_STORE_STAGED_WRITE(&g->stage, staged, HEALTH, uint32_t) = (uint32_t)test_random(random);
        NB_STORE_STAGED_WRITE(&g->stage, staged, POSITION, vec3)->z = (float)(test_random(random) % 2);
    }
    for (uint64_t i = 0; count > 0 && i < despawns; ++i) {
        nb_store_stage_despawn(&g->stage, nb_store_entity(f->world, f->units, (uint32_t)(test_random(random) % count)));
    }
    if (tick % 251 != 250) return;
    for (uint32_t row = 0; row < count; ++row)
        nb_store_stage_despawn(&g->stage, nb_store_entity(f->world, f->units, row));
}

static inline void list_change(list *self, uint64_t *random) {
    uint64_t value = test_random(random);
    if (value % 4 == 0) {
        size_t size_bytes = test_random(random) % (value % 64 == 0 ? LIST_BYTES_MAX : 200);
        for (size_t i = self->size_bytes; i < size_bytes; ++i) self->bytes[i] = (unsigned char)(value >> i % 56);
        self->size_bytes = size_bytes;
    }
    if (self->size_bytes != 0 && value % 3 == 0) self->bytes[test_random(random) % self->size_bytes] ^= 1;
}

static inline void game_tick(game *g, uint64_t tick, uint64_t input) {
    fixture *f = &g->f;
    nb_store_stage *stages[] = {&g->stage};
    uint64_t random = tick ^ input ^ *NB_STORE_SINGLETON(f->world, f->clock, CLOCK_TICK, uint64_t);
    assert_int_equal(nb_store_tick_begin(f->world), NB_OK);
    uint32_t count = nb_store_row_count(f->world, f->units);
    if (count != 0) {
        assert_memory_equal(NB_STORE_ROWS_PREVIOUS(f->world, f->units, POSITION, vec3),
                            NB_STORE_ROWS(f->world, f->units, POSITION, vec3), count * sizeof(vec3));
    }
    game_write_rows(g, &random);
    *NB_STORE_SINGLETON_WRITE(f->world, f->clock, CLOCK_TICK, uint64_t) = tick * 3 + input % 5;
    game_stage_rows(g, tick, &random);
    nb_store_apply(f->world, stages, 1); // full tables are fine
    assert_int_equal(nb_store_stage_reset(&g->stage), NB_OK);
    assert_int_equal(nb_store_tick_end(f->world), NB_OK);
    // Calm and storm: what changes much is kept in another way.
    bool is_storm = tick / 24 % 2 == 1;
    for (uint32_t i = 0; is_storm && i < BOARD_BYTES; ++i) g->board[i] = (unsigned char)(g->board[i] * 5 + i + input);
    for (uint64_t i = test_random(&random) % 4; i > 0; --i) {
        g->board[test_random(&random) % BOARD_BYTES] ^= (unsigned char)test_random(&random);
    }
    list_change(&g->first, &random);
    list_change(&g->second, &random);
}

// Runs a tick and saves it.
static inline void game_step(game *g, uint64_t tick, uint64_t input) {
    game_tick(g, tick, input);
    nb_result result = nb_history_save(g->history, tick);
    assert_true(result == NB_OK || result == NB_FULL);
}

static inline uint64_t game_hash(game *g) { return nb_states_hash(g->states); }

// Of all that a rewind brings back, incarnations too, read anew.
static inline uint64_t game_deep_hash(const game *g) {
    static unsigned char bytes[1 << 20];
    size_t size_bytes = 0;
    assert_int_equal(nb_store_save(g->f.world, NB_SAVE_HISTORY, bytes, sizeof bytes, &size_bytes), NB_OK);
    uint64_t hash = nb_hash64(bytes, size_bytes, 0);
    hash = nb_hash64(g->board, sizeof g->board, hash);
    hash = nb_hash64(g->first.bytes, g->first.size_bytes, hash);
    return nb_hash64(g->second.bytes, g->second.size_bytes, hash);
}
