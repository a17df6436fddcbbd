// SPDX-License-Identifier: MIT
// A tick and what it has around its handlers: the input that belongs to it, and the hash.

#include "engine.h"

#include "../store/store.h"
#include "nebula/hash.h"

static void hash_tick(nb_engine *engine) {
    uint64_t hash = nb_states_hash(engine->states);
    engine->stats.tick_hash = hash;
    engine->stats.run_hash = nb_hash64(&hash, sizeof hash, engine->stats.run_hash);
}

void nbi_tick_simulate(nb_engine *engine) {
    nb_arena_mark mark = nb_arena_save(&engine->arena);
    nbi_synctest_before(engine);
    if (engine->is_world_joined) nbi_store_tick_begin(nbi_store_of(engine->world));
    nbi_handlers_run(engine, NB_PHASE_FIXED_SIM);
    if (engine->is_world_joined) {
        nbi_stages_apply(engine);
        nbi_store_tick_end(nbi_store_of(engine->world));
    }
    nbi_modules_note(engine, NBI_HEALTH_TICKS);
    if (engine->desc.hashes_ticks) hash_tick(engine);
    nbi_synctest_after(engine);
    nbi_history_keep(engine, engine->tick->index);
    nb_arena_rewind(&engine->arena, mark); // each tick begins with the same memory, however many share the frame
}

void nbi_tick_run(nb_engine *engine, const nb_loop_tick *tick) {
    engine->tick_input = (nb_input_view){NULL, 0};
    if (engine->input != NULL) nb_input_take_tick(engine->input, tick->input_until_ns, &engine->tick_input);
    engine->tick_commands = nb_engine_commands(engine);
    engine->tick = tick;
    nbi_watches_begin(engine);
    nbi_tick_simulate(engine);
    nbi_watches_end(engine);
    nbi_synctest_run(engine, tick->index + 1);
    engine->tick = NULL;
    engine->stats.command_count += engine->commands.count;
    engine->commands.count = 0;
}
