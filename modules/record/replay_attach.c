// SPDX-License-Identifier: MIT
// A replay as a watch of an engine's ticks: it feeds them, and compares what came out.

#include "replay.h"

#include "nebula/rollback.h"
#include "tick_hashes.h"

#include <string.h>

nb_result nbi_replay_feed(nb_replay *replay, nb_tick_view *view) {
    uint64_t tick = view->tick->index, first = replay->info.first_tick;
    replay->is_fed = false;
    if (tick < first || tick - first >= replay->info.tick_count) return NB_EMPTY;
    nb_result result = replay->next_tick != tick ? nb_replay_seek(replay, tick) : NB_OK;
    if (result == NB_OK) result = nb_replay_next(replay, &replay->fed);
    if (result != NB_OK) return result;
    replay->is_fed = true;
    view->input = replay->fed.input;
    view->commands = replay->fed.commands;
    return NB_OK;
}

static void begin(void *user, nb_tick_view *view) {
    nb_replay *replay = user;
    if (nbi_replay_feed(replay, view) == NB_OK) ++replay->check.fed_count;
}

static void name_state(nb_replay *replay) {
    nbi_hash_location location = nbi_hashes_compare(nb_engine_states(replay->engine), NULL, NULL, &replay->fed);
    memcpy(replay->state_name, location.provider, sizeof replay->state_name);
}

static void end(void *user, const nb_tick_view *view) {
    nb_replay *replay = user;
    if (!replay->is_fed || view->hash == 0 || replay->fed.hash == 0) return;
    ++replay->check.compared_count;
    if (view->hash == replay->fed.hash) return;
    if (replay->check.diverged_count++ != 0) return;
    replay->check.diverged_tick = view->tick->index;
    name_state(replay);
    nb_report(&replay->hooks, NB_LOG_ERROR, NB_ITEM_RECORD_DIVERGED, "nb_engine_frame",
              "recording %s: the state after tick %llu differs from it%s%s; verify it to find the cause; later "
              "differences are only counted",
              replay->name.text, nb_llu(view->tick->index), replay->state_name[0] != '\0' ? ", first in " : "",
              replay->state_name);
}

nb_result nb_replay_attach(nb_replay *replay, nb_engine *engine) {
    if (replay == NULL) return NB_FAIL_NULL("replay");
    if (engine == NULL) return NBI_REPLAY_FAIL(replay, NB_ERR_MISUSE, "%s is NULL", "engine");
    if (replay->engine != NULL) return NB_BUSY;
    uint64_t recorded = replay->info.head.layout_hash;
    if (recorded != 0 && recorded != nb_states_layout_hash(nb_engine_states(engine))) {
        return nb_report_throttled(
            &replay->hooks, &replay->throttle, 0, false, NB_ITEM_SAVE_LAYOUT, NB_ERR_UNSUPPORTED, __func__,
            "recording %s has other states than the engine, or another layout of them; replay it "
            "with the build that recorded it",
            replay->name.text);
    }
    nb_tick_watch watch = {.begin = begin, .end = end, .user = replay};
    nb_result result = nb_engine_watch_add(engine, &watch);
    if (result != NB_OK) return result;
    replay->engine = engine;
    replay->check = (nb_replay_check){0};
    replay->state_name[0] = '\0';
    return NB_OK;
}

nb_result nbi_replay_restore(nb_replay *replay, nb_engine *engine, uint64_t tick, uint64_t *key_tick) {
    nbi_key key;
    nb_result result = nbi_replay_key_take(replay, tick, "nb_replay_jump", &key);
    if (result != NB_OK) return result;
    result = nb_engine_load(engine, key.tick, key.bytes, key.size_bytes, (nb_input_view){NULL, 0});
    nb_hooks_free(&replay->hooks, key.bytes, key.size_bytes);
    if (result == NB_OK) *key_tick = key.tick;
    return result;
}

nb_result nb_replay_jump(nb_replay *replay, nb_engine *engine, uint64_t tick) {
    if (replay == NULL) return NB_FAIL_NULL("replay");
    if (engine == NULL || replay->engine != engine) {
        return NBI_REPLAY_FAIL(replay, NB_ERR_MISUSE, "it is not attached to this engine; call %s first",
                               "nb_replay_attach");
    }
    if (nb_engine_phase(engine) != NB_PHASE_NONE) return NB_BUSY;
    uint64_t first = replay->info.first_tick, key_tick = 0;
    if (tick < first || tick - first > replay->info.tick_count) {
        return NBI_REPLAY_FAIL_TICK(replay, tick);
    }
    nb_result result = nbi_replay_restore(replay, engine, tick, &key_tick);
    if (result == NB_OK) result = nb_engine_run_ticks(engine, tick - key_tick);
    if (result != NB_OK) return result;
    return nb_loop_tick_count(nb_engine_loop(engine)) == tick ? NB_OK : NB_CANCELLED;
}

nb_replay_check nb_replay_check_get(const nb_replay *replay) {
    if (replay == NULL) {
        NB_FAIL_NULL("replay");
        return (nb_replay_check){.state_name = ""};
    }
    nb_replay_check check = replay->check;
    check.state_name = replay->state_name;
    return check;
}

nb_result nbi_replay_detach(nb_replay *replay) {
    nb_result result = replay->engine != NULL ? nb_engine_watch_remove(replay->engine, replay) : NB_OK;
    if (result == NB_OK) replay->engine = NULL;
    return result;
}
