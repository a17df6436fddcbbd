// SPDX-License-Identifier: MIT
// Any bytes as the state that another machine says was after a past tick, through an engine that goes back, loads it
// and simulates again. They are prepared as in fuzz_states.c; the second byte says of which tick it is. What is refused
// ends in the state of a run where nothing came; what is accepted ends in a state that can be played on.

#include "fuzz_states.h"

#include "nebula/engine.h"
#include "nebula/rollback.h"

#define TICKS_BEFORE 6u
#define TICKS_BEHIND 3u

typedef struct match {
    fuzz_game game;
    nb_engine *engine;
    fuzz_heap heap;
    const unsigned char *bytes; // to be sent in the next frame; NULL = nothing
    size_t size_bytes;
    uint64_t tick;
    nb_result sent;
} match;

static nb_result tick(const nb_context *context, void *user) {
    fuzz_game *g = &((match *)user)->game;
    uint32_t index = (uint32_t)context->tick->index, count = nb_store_row_count(g->world, g->tables.pawns);
    nb_store_stage *stage = nb_context_stage(context, 0);
    if (stage == NULL) return NB_ERR_MEMORY;
    nb_store_stage_spawn(stage, g->tables.pawns, NULL);
    if (index % 2 == 1 && count != 0)
        nb_store_stage_despawn(stage, nb_store_entity(g->world, g->tables.pawns, index % count));
    NB_STORE_EACH_ROW(row, g->world, g->tables.pawns) {
        NB_STORE_ROW_WRITE(g->world, g->tables.pawns, FUZZ_PLACE, float, row)[0] = (float)index;
        ++NB_STORE_ROW_WRITE(g->world, g->tables.pawns, FUZZ_TAG, fuzz_tag, row)->life;
    }
    *NB_STORE_SINGLETON_WRITE(g->world, g->tables.weather, 0, uint32_t) += index;
    ++g->plain[1];
    return NB_OK;
}

static nb_result reconcile(const nb_context *context, void *user) {
    match *m = user;
    if (m->bytes != NULL) m->sent = nb_context_correct_state(context, m->tick, m->bytes, m->size_bytes);
    m->bytes = NULL;
    return NB_OK;
}

static void match_open(match *m) {
    memset(m, 0, sizeof *m);
    nb_engine_desc desc = {.hashes_ticks = true, .keeps_history = true, .hooks = fuzz_hooks(&m->heap)};
    desc.scheduler_desc = (nb_scheduler_desc){
        .worker_count = NB_WORKER_COUNT_NONE, .task_count_max = 64, .group_count_max = 64, .dependency_count_max = 64};
    desc.history = (nb_history_desc){
        .bytes_max = (size_t)1 << 17, .tick_count_max = 16, .event_count_max = 1, .command_count_max = 1};
    desc.stage_count_max = 4;
    desc.stage_bytes_max = 4096;
    desc.module_count_max = 4;
    fuzz_expect(nb_engine_create(&desc, &m->engine) == NB_OK);
    m->game.states = nb_engine_states(m->engine);
    m->game.world = nb_engine_world(m->engine);
    m->game.tables = fuzz_tables_add(m->game.world);
    fuzz_game_add(&m->game);
    nb_module_desc module = {.name = "match", .tick = tick, .user = m};
    module.handlers[NB_PHASE_NETWORK_RECONCILIATION] = reconcile;
    fuzz_expect(nb_engine_module_attach(m->engine, &module, NULL) == NB_OK);
}

static uint64_t match_run(match *m, uint64_t count) {
    fuzz_expect(nb_engine_run_ticks(m->engine, count) == NB_OK);
    return nb_engine_stats_get(m->engine).tick_hash;
}

static void match_close(match *m) {
    fuzz_expect(nb_store_is_valid(m->game.world));
    fuzz_expect(nb_engine_destroy(m->engine) == NB_OK && m->heap.live_count == 0);
}

static uint64_t hash_without(void) {
    static uint64_t hash;
    static match m;
    if (hash != 0) return hash;
    match_open(&m);
    hash = match_run(&m, TICKS_BEFORE + TICKS_BEHIND);
    match_close(&m);
    return hash;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2 || size > FUZZ_STATE_MAX) return 0;
    static match m;
    uint64_t expected = hash_without();
    match_open(&m);
    match_run(&m, TICKS_BEFORE);
    unsigned char bytes[FUZZ_STATE_MAX];
    m.tick = data[1];
    m.size_bytes = fuzz_states_prepare(&m.game, FUZZ_MODE(data[0]), data + 2, size - 2, bytes);
    unsigned char *exact = malloc(m.size_bytes != 0 ? m.size_bytes : 1);
    fuzz_expect(exact != NULL);
    memcpy(exact, bytes, m.size_bytes);
    m.bytes = exact;
    uint64_t live_bytes = m.heap.live_bytes;
    uint64_t hash = match_run(&m, TICKS_BEHIND);
    free(exact);
    nb_rollback_stats stats = nb_engine_rollback_stats(m.engine);
    fuzz_expect(stats.refuse_count + stats.fail_count + stats.same_count + stats.correction_count == 1);
    fuzz_expect((m.sent == NB_ERR_RANGE) == (m.tick > TICKS_BEFORE) && (m.sent == NB_OK) == (stats.refuse_count == 0));
    if (stats.correction_count == 0) fuzz_expect(hash == expected && m.heap.live_bytes == live_bytes);
    // It goes on, and back before what came.
    match_run(&m, 2);
    fuzz_expect(nb_engine_rewind(m.engine, TICKS_BEFORE + 1) == NB_OK);
    uint64_t again = match_run(&m, TICKS_BEHIND - 1);
    fuzz_expect(again == hash);
    match_close(&m);
    return 0;
}
