// SPDX-License-Identifier: MIT
// The world of an engine: its store, as a state, in snapshots, under the guard, and written as each phase allows.

#include "engine.h"

#include "../state/state.h"
#include "../store/store.h"
#include "nebula/compare.h"
#include "thread_owner.h"

#include <stdio.h>

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
