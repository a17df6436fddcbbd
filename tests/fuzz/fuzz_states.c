// SPDX-License-Identifier: MIT
// Any bytes as a save of all states: as they are (0), or as changes to a valid save whose outer head is then made right
// (1), or both heads (2), or none (3). The first byte also says which allocation fails. What is refused has changed
// nothing; no count in it decides how much memory is taken.

#include "fuzz_states.h"

// Of our own state, which is kept aside while another is loaded.
#define MEMORY_CONSTANT FUZZ_STATE_MAX

static size_t world_save(void *user, void *bytes, size_t capacity_bytes) {
    const nb_store *world = user;
    size_t size_bytes = nb_store_save_size(world, NB_SAVE_FILE);
    if (bytes != NULL && size_bytes <= capacity_bytes)
        fuzz_expect(nb_store_save(world, NB_SAVE_FILE, bytes, capacity_bytes, &size_bytes) == NB_OK);
    return size_bytes;
}

static nb_result world_load(void *user, const void *bytes, size_t size_bytes) {
    return nb_store_load(user, bytes, size_bytes);
}

static uint64_t world_hash(void *user) { return nb_store_hash(user); }
static uint64_t world_layout(void *user) { return nb_store_layout_hash(user); }

static void game_open(fuzz_game *g, fuzz_heap *heap, fuzz_heap *world_heap) {
    memset(g, 0, sizeof *g);
    nb_states_desc desc = {.hooks = fuzz_hooks(heap)};
    nb_store_desc world_desc = {.hooks = fuzz_hooks(world_heap)};
    fuzz_expect(nb_store_create(&world_desc, &g->world) == NB_OK);
    fuzz_expect(nb_states_create(&desc, &g->states) == NB_OK);
    g->tables = fuzz_tables_add(g->world);
    fuzz_world_fill(g->world, &g->tables);
    fuzz_game_add(g);
    nb_provider_desc world = {.name = "world",
                              .save = world_save,
                              .load = world_load,
                              .hash = world_hash,
                              .layout = world_layout,
                              .user = g->world};
    fuzz_expect(nb_states_add(g->states, &world, NULL) == NB_OK);
}

// Where the world itself refuses, or nothing came so far, its rows are the very same lives.
static void expect_unchanged(const fuzz_game *g, uint64_t hash, nb_entity_ref ref, uint64_t tail_loads) {
    uint32_t row = 0;
    fuzz_expect(nb_states_hash(g->states) == hash && g->local == 11);
    fuzz_expect(nb_store_find(g->world, ref.entity, &row) == NB_OK);
    if (g->tail.load_count == tail_loads) fuzz_expect(nb_store_resolve(g->world, ref, &row) == NB_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0 || size > FUZZ_STATE_MAX) return 0;
    fuzz_heap heap = {0}, world_heap = {0};
    fuzz_game g;
    game_open(&g, &heap, &world_heap);
    unsigned char bytes[FUZZ_STATE_MAX];
    uint8_t how = data[0];
    size = fuzz_states_prepare(&g, FUZZ_MODE(how), data + 1, size - 1, bytes);
    unsigned char *exact = malloc(size != 0 ? size : 1);
    fuzz_expect(exact != NULL);
    memcpy(exact, bytes, size);
    uint64_t hash = nb_states_hash(g.states), live_bytes = heap.live_bytes, tail_loads = g.tail.load_count;
    nb_entity_ref ref;
    fuzz_expect(nb_store_ref(g.world, nb_store_entity(g.world, g.tables.pawns, 0), &ref) == NB_OK);
    if (FUZZ_FAIL_AT(how) != 0) heap.fail_at = heap.call_count + FUZZ_FAIL_AT(how);
    heap.peak_bytes = live_bytes;
    fuzz_expect(nb_states_load(g.states, NULL, size) == NB_ERR_MISUSE);
    nb_result result = nb_states_load(g.states, exact, size);
    free(exact);
    heap.fail_at = 0;
    fuzz_expect(heap.live_bytes == live_bytes && heap.peak_bytes <= live_bytes + size + MEMORY_CONSTANT);
    fuzz_expect(nb_store_is_valid(g.world));
    if (result != NB_OK) expect_unchanged(&g, hash, ref, tail_loads);
    // What is there now can be saved and loaded.
    size_t saved = 0;
    hash = nb_states_hash(g.states);
    fuzz_expect(nb_states_save(g.states, bytes, sizeof bytes, &saved) == NB_OK);
    fuzz_expect(nb_states_load(g.states, bytes, saved) == NB_OK && nb_states_hash(g.states) == hash);
    nb_states_destroy(g.states);
    nb_store_destroy(g.world);
    fuzz_expect(heap.live_count == 0 && world_heap.live_count == 0);
    return 0;
}
