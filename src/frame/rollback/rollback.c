// SPDX-License-Identifier: MIT
// Ticks that are simulated again: corrections are noted by handlers of NetworkReconciliation, and applied together when
// the phase ends.

#include "nebula/rollback.h"

#include "../../base/input.h"
#include "../engine/engine.h"
#include "../history/history.h"
#include "../state/state.h"
#include "../store/store.h"

#include <string.h>

// --- keeping ---

nb_result nbi_history_begin(nb_engine *engine, const char *function) {
    if (!engine->desc.keeps_history) return NB_OK;
    // A world that came since is not in it.
    bool is_other = engine->history != NULL && nbi_history_world(engine->history) != engine->world;
    if (is_other) nb_history_destroy(engine->history);
    if (is_other) engine->history = NULL;
    if (engine->history == NULL) {
        nb_history_desc desc = engine->desc.history;
        desc.states = engine->states;
        desc.world = engine->world;
        nb_result result = nbi_history_create(&desc, function, &engine->history);
        if (result != NB_OK) return result;
    }
    nbi_history_call(engine->history, function);
    uint64_t now = nb_loop_tick_count(&engine->loop);
    nb_history_stats stats = nb_history_stats_get(engine->history);
    uint64_t load_count = nbi_states_load_count(engine->states);
    if (stats.has_begun && stats.tick_newest == now && engine->load_count == load_count) return NB_OK;
    // Where it begins, or somebody has moved the loop's tick or loaded other state.
    engine->load_count = load_count;
    nb_history_reset(engine->history);
    nb_history_save(engine->history, now); // without memory there is no way back; the game goes on
    return NB_OK;
}

// What does not fit cannot be played again, and so nobody goes back behind this tick.
static void keep_input(nb_engine *engine, uint64_t tick) {
    nb_history_input input = {engine->tick_input, engine->tick_commands};
    nb_result result = nb_history_input_set(engine->history, tick + 1, &input);
    // After a rewind: what was known of ticks from here on was of another past.
    if (engine->correction.oldest > tick) engine->correction.oldest = tick;
    if (result == NB_OK) return;
    engine->correction.oldest = tick + 1;
    if (result != NB_FULL || engine->rollback.lost_count++ != 0) return;
    nbi_log(&engine->hooks, NB_LOG_WARNING, NB_ITEM_HISTORY_FULL, "nb_engine_frame",
            "tick %llu has %u events and %u commands, more than are kept: no rollback goes behind it; raise "
            "nb_engine_desc.history.event_count_max or command_count_max; later ones are only counted",
            nb_llu(tick), input.events.count, input.commands.count);
}

void nbi_history_keep(nb_engine *engine, uint64_t tick) {
    if (engine->history == NULL) return;
    if (!engine->is_resimulating) keep_input(engine, tick);
    nb_history_save(engine->history, tick + 1);
}

void nbi_engine_own_load(nb_engine *engine) {
    engine->load_count = engine->run_load_count = nbi_states_load_count(engine->states);
}

void nbi_rollback_floor_set(nb_engine *engine) { engine->correction.oldest = nb_loop_tick_count(&engine->loop); }

nb_history *nb_engine_history(nb_engine *engine) {
    if (engine == NULL) NBI_FAIL_NULL("engine");
    return engine != NULL ? engine->history : NULL;
}

// --- corrections ---

static nb_result check_call(const nb_context *context, const char *function) {
    nb_result result = nbi_context_check_call(context);
    const nbi_call *call = context->call;
    if (result == NB_OK && (call != &context->engine->call || call->phase != NB_PHASE_NETWORK_RECONCILIATION))
        result = NB_ERR_PERMISSION;
    if (result != NB_OK) nbi_context_report(context, function, NBI_VIOLATION_CORRECTION, result);
    return result;
}

// Whether the state after so many ticks, `newest` at most, is one to go back to.
static nb_result check_tick(nb_engine *engine, uint64_t tick_count, uint64_t newest) {
    uint64_t now = nb_loop_tick_count(&engine->loop);
    bool is_near = tick_count <= newest && newest <= now && now - tick_count <= engine->desc.rollback_count_max;
    if (engine->history != NULL && is_near && tick_count >= engine->correction.oldest) {
        nb_history_stats stats = nb_history_stats_get(engine->history);
        if (stats.has_begun && tick_count >= stats.tick_oldest) return NB_OK;
    }
    ++engine->rollback.refuse_count;
    return NB_ERR_RANGE;
}

static bool is_same_view(nb_input_view a, nb_input_view b) {
    return a.count == b.count && (a.count == 0 || memcmp(a.events, b.events, a.count * sizeof *a.events) == 0);
}

static void correct_from(nb_engine *engine, uint64_t tick_count) {
    ++engine->rollback.correction_count;
    if (!engine->correction.has_input || tick_count < engine->correction.from) engine->correction.from = tick_count;
    engine->correction.has_input = true;
}

nb_result nb_context_correct_input(const nb_context *context, uint64_t tick, const nb_history_input *input) {
    if (context == NULL || context->engine == NULL) return NBI_FAIL_NULL("context");
    nb_engine *engine = context->engine;
    if (input == NULL) return nbi_context_fail(context, __func__, "input is NULL");
    nb_result result = check_call(context, __func__);
    // Where none has run yet, this wraps and is newer than now.
    if (result == NB_OK) result = check_tick(engine, tick, nb_loop_tick_count(&engine->loop) - 1);
    if (result != NB_OK) return result;
    nb_history_input kept = {{NULL, 0}, {NULL, 0}};
    nb_history_input_get(engine->history, tick + 1, &kept);
    if (is_same_view(kept.events, input->events) && is_same_view(kept.commands, input->commands)) {
        ++engine->rollback.same_count;
        return NB_OK;
    }
    result = nb_history_input_set(engine->history, tick + 1, input);
    if (result == NB_OK) correct_from(engine, tick);
    return result;
}

nb_result nb_context_correct_state(const nb_context *context, uint64_t tick_count, const void *bytes,
                                   size_t size_bytes) {
    if (context == NULL || context->engine == NULL) return NBI_FAIL_NULL("context");
    nb_engine *engine = context->engine;
    if (bytes == NULL) return nbi_context_fail(context, __func__, "bytes is NULL");
    nb_result result = check_call(context, __func__);
    if (result == NB_OK) result = check_tick(engine, tick_count, nb_loop_tick_count(&engine->loop));
    if (result != NB_OK) return result;
    bool is_older = engine->correction.bytes != NULL && tick_count < engine->correction.state_tick;
    if (is_older) return NB_OK; // what a later state says is already more than this one knows
    engine->correction.bytes = bytes;
    engine->correction.size_bytes = size_bytes;
    engine->correction.state_tick = tick_count;
    return NB_OK;
}

// --- again ---

void nbi_tick_resimulate(nb_engine *engine, uint64_t index, bool is_watched) {
    nb_history_input input = {{NULL, 0}, {NULL, 0}};
    nb_history_input_get(engine->history, index + 1, &input);
    engine->tick_input = input.events;
    engine->tick_commands = input.commands;
    nb_loop_tick tick = nb_loop_tick_at(&engine->loop, index);
    engine->tick = &tick;
    nbi_tick_simulate(engine);
    if (is_watched) nbi_watches_end(engine);
    engine->tick = NULL;
}

static void simulate_to(nb_engine *engine, uint64_t from, uint64_t now) {
    engine->is_resimulating = true;
    for (uint64_t index = from; index < now; ++index) {
        nbi_tick_resimulate(engine, index, true);
        ++engine->rollback.tick_count;
    }
    engine->is_resimulating = false;
    ++engine->rollback.rollback_count;
    engine->rollback.depth_max = nbi_max_u64(engine->rollback.depth_max, now - from);
}

typedef enum sent_state { SENT_FAILED, SENT_SAME, SENT_OTHER } sent_state;

// Loads what was sent where it belongs. A hash of 0: there was no memory for it.
static nb_result load_there(nb_engine *engine, bool *is_other) {
    uint64_t before = nb_states_hash(engine->states);
    nb_result result = nbi_states_load(engine->states, engine->correction.bytes, engine->correction.size_bytes,
                                       "nb_context_correct_state");
    uint64_t after = result == NB_OK ? nb_states_hash(engine->states) : 0;
    nbi_engine_own_load(engine);
    if (result == NB_OK && (before == 0 || after == 0)) result = NB_ERR_MEMORY;
    *is_other = result == NB_OK && after != before;
    return *is_other ? nb_history_save(engine->history, engine->correction.state_tick) : result;
}

// Where the state that was sent is other than ours, ours is what was sent. Else it is as before, with all that is
// drawn: `stash`.
static sent_state try_state(nb_engine *engine, uint64_t now, unsigned char *stash) {
    nb_store *world = engine->is_world_joined ? engine->world : NULL;
    bool is_other = false;
    if (world != NULL) nbi_store_stash(world, stash, NBI_STASH_SAVE);
    if (nb_history_rewind(engine->history, engine->correction.state_tick) != NB_OK) return SENT_FAILED;
    nb_result result = load_there(engine, &is_other);
    if (is_other && result >= 0) return SENT_OTHER;
    nbi_history_return(engine->history, now);
    if (world != NULL) nbi_store_stash(world, stash, NBI_STASH_RESTORE);
    return result < 0 ? SENT_FAILED : SENT_SAME;
}

static sent_state load_state(nb_engine *engine, uint64_t now) {
    // One more byte: there may be nothing to put aside.
    size_t size_bytes = 1 + (engine->is_world_joined ? nbi_store_stash(engine->world, NULL, NBI_STASH_MEASURE) : 0);
    unsigned char *stash = nbi_alloc(&engine->hooks, size_bytes, NB_CACHE_LINE, "nb_context_correct_state");
    if (stash == NULL) return SENT_FAILED;
    sent_state sent = try_state(engine, now, stash);
    nbi_free(&engine->hooks, stash, size_bytes);
    return sent;
}

// From where to simulate again, or `now`. Inputs of ticks before a state that was sent are in it.
static uint64_t apply_state(nb_engine *engine, uint64_t now) {
    uint64_t from = engine->correction.has_input ? engine->correction.from : now;
    if (engine->correction.bytes == NULL) return from;
    sent_state sent = load_state(engine, now);
    if (sent == SENT_FAILED) ++engine->rollback.fail_count;
    if (sent == SENT_FAILED) return from;
    if (sent == SENT_SAME) ++engine->rollback.same_count;
    if (sent == SENT_OTHER) ++engine->rollback.correction_count;
    // What comes later about ticks before it knows less.
    engine->correction.oldest = engine->correction.state_tick;
    return sent == SENT_SAME ? nbi_max_u64(from, engine->correction.state_tick) : engine->correction.state_tick;
}

void nbi_rollback(nb_engine *engine) {
    if (!engine->correction.has_input && engine->correction.bytes == NULL) return;
    uint64_t now = nb_loop_tick_count(&engine->loop);
    nbi_store_allow(engine, NB_PHASE_FIXED_SIM);
    uint64_t from = apply_state(engine, now);
    if (engine->desc.hashes_ticks && from == now) engine->stats.tick_hash = nb_states_hash(engine->states);
    bool is_back = from == now || nb_history_rewind(engine->history, from) == NB_OK;
    if (!is_back) ++engine->rollback.fail_count;
    if (is_back && from != now) simulate_to(engine, from, now);
    nbi_store_allow(engine, NB_PHASE_NETWORK_RECONCILIATION);
    engine->correction.has_input = false;
    engine->correction.bytes = NULL;
}

static nb_result check_between_frames(nb_engine *engine, const char *function) {
    if (!nbi_is_coordinator(engine))
        return nbi_fail_throttled(&engine->hooks, &engine->throttle, 0, NB_ITEM_ENGINE_THREAD, NB_ERR_THREAD, function,
                                  "called on another thread; call it on the thread that runs the frames");
    if (engine->is_in_frame || nbi_engine_is_calling(engine)) return NB_BUSY;
    return engine->is_world_stuck ? nbi_store_unguard(engine) : NB_OK;
}

// Ends the run so far: nothing that waits for its next tick reaches the ticks that follow, of which the first has this
// index. Corrections and staged rows never outlive their frame.
static void resume_at(nb_engine *engine, uint64_t tick_count) {
    ++engine->run_number;
    engine->stats.command_dropped_count += engine->commands.count;
    engine->commands.count = 0;
    if (engine->input != NULL) nbi_input_restart(engine->input);
    nb_loop_set_tick(&engine->loop, tick_count); // in bounds: checked, or a tick that ran
    engine->run_tick = tick_count;
    if (engine->desc.hashes_ticks) engine->stats.tick_hash = nb_states_hash(engine->states);
}

nb_result nb_engine_rewind(nb_engine *engine, uint64_t tick_count) {
    if (engine == NULL) return NBI_FAIL_NULL("engine");
    nb_result result = check_between_frames(engine, __func__);
    if (result == NB_OK && engine->history == NULL) result = NB_ERR_UNSUPPORTED;
    if (result != NB_OK) return result;
    engine->is_calling = true; // providers
    nbi_history_call(engine->history, __func__);
    result = nb_history_rewind(engine->history, tick_count);
    if (result == NB_OK) resume_at(engine, tick_count);
    engine->is_calling = false;
    return result;
}

static nb_result check_start(nb_engine *engine, uint64_t tick_count, const char *function) {
    nb_result result = check_between_frames(engine, function);
    if (result != NB_OK || tick_count <= NB_TICK_COUNT_MAX) return result;
    return nbi_fail(&engine->hooks, NB_ITEM_ENGINE_ARGUMENT, NB_ERR_RANGE, function,
                    "tick %llu is over NB_TICK_COUNT_MAX", nb_llu(tick_count));
}

static void start_at(nb_engine *engine, uint64_t tick_count) {
    if (engine->history != NULL) nb_history_reset(engine->history);
    nbi_synctest_restart(engine, tick_count);
    // No tick of the past before it is known any more. A rewind may go forward again, over ticks whose input was not
    // kept.
    engine->correction.oldest = nbi_min_u64(engine->correction.oldest, tick_count);
    resume_at(engine, tick_count);
}

nb_result nb_engine_set_tick(nb_engine *engine, uint64_t tick_count) {
    if (engine == NULL) return NBI_FAIL_NULL("engine");
    nb_result result = check_start(engine, tick_count, __func__);
    if (result != NB_OK) return result;
    engine->is_calling = true; // providers
    start_at(engine, tick_count);
    engine->is_calling = false;
    engine->run_tick = UINT64_MAX; // whatever was loaded, not necessarily by nb_states_load
    return NB_OK;
}

nb_result nb_engine_load(nb_engine *engine, uint64_t tick_count, const void *bytes, size_t size_bytes,
                         nb_input_view commands) {
    if (engine == NULL) return NBI_FAIL_NULL("engine");
    if (bytes == NULL || (commands.events == NULL && commands.count != 0)) {
        return NBI_FAIL(&engine->hooks, NB_ITEM_ENGINE_ARGUMENT, NB_ERR_MISUSE, "bytes or commands are NULL");
    }
    nb_result result = check_start(engine, tick_count, __func__);
    if (result != NB_OK) return result;
    if (commands.count > engine->desc.command_count_max) {
        return NBI_FAIL(&engine->hooks, NB_ITEM_ENGINE_ARGUMENT, NB_ERR_RANGE,
                        "%u commands wait, more than desc.command_count_max of %u", commands.count,
                        engine->desc.command_count_max);
    }
    engine->is_calling = true; // providers
    result = nbi_states_load(engine->states, bytes, size_bytes, __func__);
    if (result == NB_OK) start_at(engine, tick_count);
    engine->is_calling = false;
    if (result != NB_OK) return result;
    nbi_commands_replace(engine, commands);
    return NB_OK;
}

nb_rollback_stats nb_engine_rollback_stats(const nb_engine *engine) {
    if (engine == NULL) NBI_FAIL_NULL("engine");
    return engine != NULL ? engine->rollback : (nb_rollback_stats){0};
}
