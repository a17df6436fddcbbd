// SPDX-License-Identifier: MIT
// Watching ticks.

#include "watch.h"

#include "engine.h"

#include <string.h>

static uint32_t watch_index(const nb_engine *engine, const void *user) {
    uint32_t index = 0;
    while (index < engine->watches.count && engine->watches.all[index].user != user) ++index;
    return index;
}

nb_result nb_engine_watch_add(nb_engine *engine, const nb_tick_watch *watch) {
    if (engine == NULL) return NBI_FAIL_NULL("engine");
    nb_result result = nbi_check_coordinator(engine, __func__);
    if (result != NB_OK) return result;
    bool is_fine = watch != NULL && watch->user != NULL && watch_index(engine, watch->user) == engine->watches.count;
    if (!is_fine) {
        return NBI_FAIL(&engine->hooks, NB_ITEM_ENGINE_ARGUMENT, NB_ERR_MISUSE,
                        "a watch needs a user of its own that does not watch yet");
    }
    if (engine->is_in_frame) return NB_BUSY;
    if (engine->watches.count == NB_TICK_WATCH_COUNT_MAX) return NB_FULL;
    engine->watches.all[engine->watches.count++] = *watch;
    return NB_OK;
}

nb_result nb_engine_watch_remove(nb_engine *engine, const void *user) {
    if (engine == NULL) return NBI_FAIL_NULL("engine");
    nb_result result = nbi_check_coordinator(engine, __func__);
    if (result != NB_OK) return result;
    uint32_t index = watch_index(engine, user);
    if (index == engine->watches.count) {
        return NBI_FAIL(&engine->hooks, NB_ITEM_ENGINE_STALE, NB_ERR_STALE, "no watch has this user");
    }
    if (engine->is_in_frame) return NB_BUSY;
    nb_tick_watch *watch = &engine->watches.all[index];
    --engine->watches.count;
    memmove(watch, watch + 1, (engine->watches.count - index) * sizeof *watch);
    return NB_OK;
}

// However other state came in, and however the index was moved.
static bool is_new_run(nb_engine *engine) {
    uint64_t load_count = nbi_states_load_count(engine->states);
    bool is_new = engine->run_tick != engine->tick->index || engine->run_load_count != load_count;
    engine->run_tick = engine->tick->index + 1;
    engine->run_load_count = load_count;
    return is_new;
}

void nbi_watches_begin(nb_engine *engine) {
    nb_tick_view view = {.tick = engine->tick,
                         .input = engine->tick_input,
                         .commands = engine->tick_commands,
                         .is_new_run = is_new_run(engine)};
    for (uint32_t i = 0; i < engine->watches.count; ++i) {
        if (engine->watches.all[i].begin != NULL) engine->watches.all[i].begin(engine->watches.all[i].user, &view);
    }
    engine->tick_input = view.input;
    engine->tick_commands = view.commands;
}

void nbi_watches_end(const nb_engine *engine) {
    nb_tick_view view = {.tick = engine->tick,
                         .input = engine->tick_input,
                         .commands = engine->tick_commands,
                         .hash = engine->stats.tick_hash};
    for (uint32_t i = 0; i < engine->watches.count; ++i) {
        const nb_tick_watch *watch = &engine->watches.all[i];
        void (*notify)(void *user, const nb_tick_view *view) = engine->is_resimulating ? watch->again : watch->end;
        if (notify != NULL) notify(watch->user, &view);
    }
}
