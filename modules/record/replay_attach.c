// SPDX-License-Identifier: MIT
// A replay as a watch of an engine's ticks: it feeds them, and compares what came out.

#include "replay.h"

#include "nebula/hash.h"

#include <string.h>

static void begin(void *user, nb_tick_view *view) {
    nb_replay *replay = user;
    uint64_t tick = view->tick->index, first = replay->info.first_tick;
    replay->is_fed = false;
    if (tick < first || tick - first >= replay->info.tick_count) return;
    if (replay->next_tick != tick && nb_replay_seek(replay, tick) != NB_OK) return;
    if (nb_replay_next(replay, &replay->fed) != NB_OK) return;
    replay->is_fed = true;
    ++replay->check.fed_count;
    view->input = replay->fed.input;
    view->commands = replay->fed.commands;
}

static const nb_record_hash *find_hash(const nb_record_tick *tick, uint64_t name_hash) {
    for (uint32_t i = 0; i < tick->hash_count; ++i) {
        if (tick->hashes[i].name_hash == name_hash) return &tick->hashes[i];
    }
    return NULL;
}

static void name_state(nb_replay *replay) {
    nb_states *states = nb_engine_states(replay->engine);
    for (uint32_t i = 0; i < nb_states_count(states); ++i) {
        const char *name;
        nb_state state = nb_states_at(states, i, &name);
        const nb_record_hash *recorded = find_hash(&replay->fed, nb_hash64(name, strlen(name), 0));
        if (recorded == NULL || recorded->hash == nb_state_hash(states, state)) continue;
        memcpy(replay->state_name, name, strlen(name) + 1);
        return;
    }
}

static void end(void *user, const nb_tick_view *view) {
    nb_replay *replay = user;
    if (!replay->is_fed || view->hash == 0 || replay->fed.hash == 0) return;
    ++replay->check.compared_count;
    if (view->hash == replay->fed.hash) return;
    if (replay->check.diverged_count++ != 0) return;
    replay->check.diverged_tick = view->tick->index;
    name_state(replay);
    nbi_record_log(&replay->hooks, NB_ITEM_RECORD_DIVERGED, NB_OK, "nb_replay_attach",
                   "the state after tick %llu is not the recorded one%s%s; further ones are only counted",
                   (unsigned long long)view->tick->index, replay->state_name[0] != '\0' ? ", first in " : "",
                   replay->state_name);
}

nb_result nb_replay_attach(nb_replay *replay, nb_engine *engine) {
    if (replay == NULL) return NBI_RECORD_NULL("replay");
    if (engine == NULL)
        return nbi_record_fail(&replay->hooks, NB_ITEM_RECORD_ARGUMENT, NB_ERR_MISUSE, __func__, "engine is NULL");
    if (replay->engine != NULL) return NB_BUSY;
    uint64_t recorded = replay->info.head.layout_hash;
    if (recorded != 0 && recorded != nb_states_layout_hash(nb_engine_states(engine))) {
        return nbi_record_log(&replay->hooks, NB_ITEM_SAVE_LAYOUT, NB_ERR_UNSUPPORTED, __func__,
                              "it was recorded with other states, or with another layout of them");
    }
    nb_tick_watch watch = {.begin = begin, .end = end, .user = replay};
    nb_result result = nb_engine_watch_add(engine, &watch);
    if (result != NB_OK) return result;
    replay->engine = engine;
    replay->check = (nb_replay_check){0};
    replay->state_name[0] = '\0';
    return NB_OK;
}

nb_replay_check nb_replay_check_get(const nb_replay *replay) {
    if (replay == NULL) {
        NBI_RECORD_NULL("replay");
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
