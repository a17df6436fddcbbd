// SPDX-License-Identifier: MIT
// A tick and what it has around its handlers: the input that belongs to it, the world, and the hash.

#include "engine.h"

#include "../state/state.h"
#include "../store/store.h"
#include "nebula/compare.h"
#include "nebula/hash.h"
#include "thread_owner.h"

#include <stdio.h>
#include <string.h>

// --- commands ---

nb_result nb_context_command(const nb_context *context, const nb_input_event *command) {
    if (context == NULL || context->engine == NULL) return NBI_FAIL_NULL("context");
    nb_engine *engine = context->engine;
    if (command == NULL) return nbi_context_fail(context, __func__, "command is NULL");
    nb_result result = nbi_context_check_call(context);
    const nbi_call *call = context->call;
    // Ticks write what is simulated themselves; jobs have outputs, which are merged on the coordinator.
    bool is_allowed = result == NB_OK && call == &engine->call && call->phase != NB_PHASE_FIXED_SIM;
    if (!is_allowed) {
        result = result == NB_OK ? NB_ERR_PERMISSION : result;
        nbi_context_report(context, __func__, NBI_VIOLATION_COMMAND, result);
        return result;
    }
    if (engine->command_count == engine->desc.command_count_max) {
        if (engine->stats.command_full_count++ == 0) {
            nbi_log(&engine->hooks, NB_LOG_WARNING, NB_ITEM_ENGINE_FULL, __func__,
                    "module \"%s\": %u commands wait for a tick; raise nb_engine_desc.command_count_max; further "
                    "refusals are only counted",
                    call->module < engine->module_limit ? engine->modules[call->module].name : "",
                    engine->command_count);
        }
        return NB_FULL;
    }
    engine->commands[engine->command_count++] = *command;
    return NB_OK;
}

// --- the world ---

static size_t world_save(void *user, void *bytes, size_t capacity_bytes) {
    const nb_store *world = user;
    size_t size_bytes = nb_store_save_size(world, NB_SAVE_FILE);
    if (bytes != NULL && size_bytes <= capacity_bytes)
        nb_store_save(world, NB_SAVE_FILE, bytes, capacity_bytes, &size_bytes);
    return size_bytes;
}

static nb_result world_load(void *user, const void *bytes, size_t size_bytes) {
    return nb_store_load(user, bytes, size_bytes);
}

static uint64_t world_hash(void *user) { return nb_store_hash(user); }
static uint64_t world_layout(void *user) { return nb_store_layout_hash(user); }

static nb_result world_locate(void *user, const void *here, size_t here_bytes, const void *there, size_t there_bytes,
                              nb_difference *out) {
    return nb_store_compare(user, here, here_bytes, there, there_bytes, out);
}

// On any thread, while the handler that the stage is for runs.
static void name_stage(void *user, const nb_store_stage *stage, char *text, size_t size_bytes) {
    const nb_engine *engine = user;
    nb_phase phase = nb_engine_phase(engine);
    const nbi_order *order = &engine->orders[phase];
    const char *name = stage->handler < order->count ? engine->modules[order->modules[stage->handler]].name : "?";
    int length =
        snprintf(text, size_bytes, "module \"%s\", %s handler", name, phase == NB_PHASE_FIXED_SIM ? "tick" : "frame");
    if (stage->job != 0 && length > 0 && (size_t)length < size_bytes)
        snprintf(text + length, size_bytes - (size_t)length, ", job %u", stage->job);
}

static nb_result world_create(nb_engine *engine) {
    nb_result result = nbi_staging_create(engine);
    if (result != NB_OK) return result;
    result = nb_store_create(&engine->desc.world, &engine->world);
    if (result != NB_OK) return result;
    nbi_store_of(engine->world)->is_driven = true;
    nbi_store_of(engine->world)->name_stage = name_stage;
    nbi_store_of(engine->world)->name_user = engine;
    nbi_store_of(engine->world)->traps = engine->desc.violation_policy == NB_VIOLATION_TRAP;
    nb_provider_desc state = {.name = "world",
                              .save = world_save,
                              .load = world_load,
                              .hash = world_hash,
                              .layout = world_layout,
                              .locate = world_locate,
                              .user = engine->world};
    nb_provider handle;
    result = nb_states_add(engine->states, &state, &handle);
    if (result == NB_OK) nbi_states_load_last(engine->states, handle);
    return result;
}

nb_store *nb_engine_world(nb_engine *engine) {
    if (engine == NULL) NBI_FAIL_NULL("engine");
    if (engine == NULL) return NULL;
    if (engine->world != NULL) return engine->world;
    if (engine->is_in_frame) {
        NBI_FAIL(&engine->hooks, NB_ITEM_ENGINE_ARGUMENT, NB_ERR_MISUSE, "a world is made between frames");
        return NULL;
    }
    if (world_create(engine) != NB_OK) nbi_store_end(engine);
    return engine->world;
}

void nbi_store_end(nb_engine *engine) {
    nb_guard_destroy(engine->guard);
    engine->guard = NULL;
    nb_store_destroy(engine->world);
    engine->world = NULL;
    nbi_staging_destroy(engine);
}

nb_result nbi_store_join(nb_engine *engine) {
    if (engine->world == NULL || engine->is_world_joined) return NB_OK;
    engine->is_world_viewed = nbi_store_is_published(nbi_store_of(engine->world));
    if (engine->is_world_viewed) {
        nb_snapshots *snapshots = nb_engine_snapshots(engine);
        nb_result result = snapshots != NULL ? nb_store_views_add(engine->world, snapshots) : NB_ERR_MEMORY;
        if (result != NB_OK) return result;
    }
    nbi_store_of(engine->world)->is_started = true; // what is declared later would be in no snapshot
    nb_guard_desc guard = {.store = engine->world,
                           .snapshots = engine->snapshots,
                           .who = nbi_engine_thread_owner,
                           .user = engine,
                           .hooks = engine->hooks};
    nb_result result = engine->desc.is_guarded ? nb_guard_create(&guard, &engine->guard) : NB_OK;
    engine->is_world_joined = result == NB_OK;
    return result;
}

void nbi_store_guard(nb_engine *engine) {
    const char *name = NULL;
    if (engine->guard == NULL || engine->is_guard_off) return;
    if (nbi_store_protect(nbi_store_of(engine->world), true, &name) == NB_OK) return;
    engine->is_guard_off = true;
    nbi_log(&engine->hooks, NB_LOG_ERROR, NB_ITEM_ENGINE_GUARD, "nb_engine_frame",
            "guard switched off: the OS does not make the pages of table '%s' read-only; writes of jobs to the world "
            "are no longer found",
            name);
}

nb_result nbi_store_unguard(nb_engine *engine) {
    const char *name = NULL;
    if (engine->guard == NULL) return NB_OK;
    bool was_stuck = engine->is_world_stuck;
    nb_result result = nbi_store_protect(nbi_store_of(engine->world), false, &name);
    engine->is_world_stuck = result != NB_OK;
    if (was_stuck || result != NB_OK) nbi_store_allow(engine, NB_PHASE_NONE);
    if (was_stuck || result == NB_OK) return result;
    engine->is_guard_off = true;
    if (engine->failure == NB_OK) engine->failure = result;
    nbi_log(&engine->hooks, NB_LOG_ERROR, NB_ITEM_ENGINE_GUARD, "nb_engine_frame",
            "guard switched off: the OS does not make the pages of table '%s' writable again; the rest of this frame "
            "is left out, and frames are refused until it does",
            name);
    return result;
}

void nbi_store_allow(nb_engine *engine, nb_phase phase) {
    if (engine->world == NULL) return;
    uint32_t layers = phase == NB_PHASE_NONE ? UINT32_MAX : nb_phase_info_get(phase)->mutates;
    if (engine->is_world_stuck) layers = 0;
    uint32_t flags = 0;
    if ((layers & NB_LAYER_SIMULATED) != 0) flags |= NB_COLUMN_SIMULATED;
    if ((layers & NB_LAYER_GAME) != 0) flags |= NB_COLUMN_LOCAL;
    nb_store_allow(engine->world, flags);
}

// --- the tick ---

nb_input *nb_engine_input(nb_engine *engine) {
    if (engine == NULL) NBI_FAIL_NULL("engine");
    if (engine == NULL) return NULL;
    if (engine->input == NULL) nb_input_create(&engine->desc.input, &engine->input);
    return engine->input;
}

static void hash_tick(nb_engine *engine) {
    uint64_t hash = nb_states_hash(engine->states);
    engine->stats.tick_hash = hash;
    engine->stats.run_hash = nb_hash64(&hash, sizeof hash, engine->stats.run_hash);
}

// --- watches ---

static uint32_t watch_index(const nb_engine *engine, const void *user) {
    uint32_t index = 0;
    while (index < engine->watch_count && engine->watches[index].user != user) ++index;
    return index;
}

nb_result nb_engine_watch_add(nb_engine *engine, const nb_tick_watch *watch) {
    if (engine == NULL) return NBI_FAIL_NULL("engine");
    nb_result result = nbi_check_coordinator(engine, __func__);
    if (result != NB_OK) return result;
    bool is_fine = watch != NULL && watch->user != NULL && watch_index(engine, watch->user) == engine->watch_count;
    if (!is_fine) {
        return NBI_FAIL(&engine->hooks, NB_ITEM_ENGINE_ARGUMENT, NB_ERR_MISUSE,
                        "a watch needs a user of its own that does not watch yet");
    }
    if (engine->is_in_frame) return NB_BUSY;
    if (engine->watch_count == NB_TICK_WATCH_COUNT_MAX) return NB_FULL;
    engine->watches[engine->watch_count++] = *watch;
    return NB_OK;
}

nb_result nb_engine_watch_remove(nb_engine *engine, const void *user) {
    if (engine == NULL) return NBI_FAIL_NULL("engine");
    nb_result result = nbi_check_coordinator(engine, __func__);
    if (result != NB_OK) return result;
    uint32_t index = watch_index(engine, user);
    if (index == engine->watch_count) {
        return NBI_FAIL(&engine->hooks, NB_ITEM_ENGINE_STALE, NB_ERR_STALE, "no watch has this user");
    }
    if (engine->is_in_frame) return NB_BUSY;
    nb_tick_watch *watch = &engine->watches[index];
    --engine->watch_count;
    memmove(watch, watch + 1, (engine->watch_count - index) * sizeof *watch);
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

static void watches_begin(nb_engine *engine) {
    nb_tick_view view = {.tick = engine->tick,
                         .input = engine->tick_input,
                         .commands = engine->tick_commands,
                         .is_new_run = is_new_run(engine)};
    for (uint32_t i = 0; i < engine->watch_count; ++i) {
        if (engine->watches[i].begin != NULL) engine->watches[i].begin(engine->watches[i].user, &view);
    }
    engine->tick_input = view.input;
    engine->tick_commands = view.commands;
}

void nbi_watches_end(const nb_engine *engine) {
    nb_tick_view view = {.tick = engine->tick,
                         .input = engine->tick_input,
                         .commands = engine->tick_commands,
                         .hash = engine->stats.tick_hash};
    for (uint32_t i = 0; i < engine->watch_count; ++i) {
        const nb_tick_watch *watch = &engine->watches[i];
        void (*notify)(void *user, const nb_tick_view *view) = engine->is_resimulating ? watch->again : watch->end;
        if (notify != NULL) notify(watch->user, &view);
    }
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
    engine->tick_commands =
        (nb_input_view){engine->command_count != 0 ? engine->commands : NULL, engine->command_count};
    engine->tick = tick;
    watches_begin(engine);
    nbi_tick_simulate(engine);
    nbi_watches_end(engine);
    nbi_synctest_run(engine, tick->index + 1);
    engine->tick = NULL;
    engine->stats.command_count += engine->command_count;
    engine->command_count = 0;
}
