// SPDX-License-Identifier: MIT
// A recorder as a watch of an engine's ticks.

#include "recorder.h"

#include "nebula/state.h"
#include "tick_hashes.h"

static void begin(void *user, nb_tick_view *view) { nbi_window_begin(user, view); }
static void end(void *user, const nb_tick_view *view) { nbi_window_add(user, view); }
static void again(void *user, const nb_tick_view *view) { nbi_window_change(user, view); }

// A tick with all the events that the engine can have is to fit.
static size_t tick_bytes_max(const nb_engine_desc *engine, uint32_t hash_count) {
    uint32_t input_count = engine->input.event_count_max != 0 ? engine->input.event_count_max : 1024;
    size_t events = (size_t)input_count + engine->command_count_max;
    return NBI_TICK_BYTES + events * NBI_EVENT_BYTES + (size_t)hash_count * NBI_HASH_BYTES;
}

nb_result nb_recorder_attach(nb_engine *engine, const nb_recorder_desc *given, nb_recorder **out) {
    if (engine == NULL) return NB_FAIL_NULL("engine");
    if (given == NULL) return NB_FAIL_NULL("desc");
    if (out == NULL) return NB_FAIL_NULL("out");
    const nb_engine_desc *engine_desc = nb_engine_desc_get(engine);
    nb_recorder_desc desc = *given;
    desc.head.tick_rate = engine_desc->loop.tick_rate;
    desc.head.seed = engine_desc->seed;
    desc.head.layout_hash = nb_states_layout_hash(nb_engine_states(engine));
    if (desc.block_bytes == 0) desc.block_bytes = NB_RECORD_BLOCK_BYTES_DEFAULT;
    nb_store *world = desc.hashes_states ? nbi_hashes_world(engine) : NULL;
    uint32_t hash_count = desc.hashes_states ? nbi_hashes_count_max(world) : 0;
    size_t tick_bytes = tick_bytes_max(engine_desc, hash_count);
    if (desc.block_bytes < tick_bytes) desc.block_bytes = tick_bytes;
    nbi_file_ops ops = nbi_file_ops_default();
    nb_recorder *recorder = NULL;
    nb_result result = nbi_recorder_create(&desc, &ops, true, &recorder);
    if (result != NB_OK) return result;
    nb_tick_watch watch = {.begin = begin, .end = end, .again = again, .user = recorder};
    result = nbi_window_create(recorder, engine_desc, hash_count);
    if (result == NB_OK) result = nb_engine_watch_add(engine, &watch);
    if (result != NB_OK) {
        nb_recorder_destroy(recorder);
        return result;
    }
    recorder->engine = engine;
    recorder->world = world;
    if (desc.key_ticks == NB_RECORD_KEY_TICKS_NEVER) recorder->next_key_tick = UINT64_MAX;
    *out = recorder;
    return NB_OK;
}

nb_result nbi_recorder_detach(nb_recorder *recorder) {
    nb_result result = recorder->engine != NULL ? nb_engine_watch_remove(recorder->engine, recorder) : NB_OK;
    if (result == NB_OK) recorder->engine = NULL;
    return result;
}
