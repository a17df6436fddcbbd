// SPDX-License-Identifier: MIT
// The engine's side of a match. In a frame: NetworkReconciliation finds ticks that were guessed wrong, and the engine
// simulates them again; RandomSeed, which follows, confirms what is final; then ticks get what is known or guessed.

#include "netplay.h"

#include "nebula/rollback.h"

#include <string.h>

// A new sample is a sixteenth of the average: a quarter of a second, longer than messages are out of step.
#define AVERAGE_PARTS 16

// --- inputs of a tick ---

// Known, or guessed: what the player did last.
static nb_input_event input_of(const nb_netplay *netplay, uint32_t player, uint64_t tick) {
    const nbi_player *from = &netplay->players[player];
    if (tick < from->known) return from->inputs[tick & NBI_KEEP_MASK];
    return from->known > netplay->base ? from->inputs[(from->known - 1) & NBI_KEEP_MASK] : (nb_input_event){0};
}

static nb_input_view commands_of(const nb_netplay *netplay, uint64_t tick, nb_input_event *commands) {
    for (uint32_t i = 0; i < netplay->desc.player_count; ++i) commands[i] = input_of(netplay, i, tick);
    return (nb_input_view){commands, netplay->desc.player_count};
}

static void sample(nb_netplay *netplay, const nb_tick_view *view) {
    nbi_player *local = &netplay->players[netplay->desc.local_player];
    while (local->known <= view->tick->index + netplay->desc.input_delay) {
        nb_input_event event = {0};
        netplay->desc.sample(netplay->desc.user, view, &event);
        event.timestamp_ns = 0; // of this machine's clock
        local->inputs[local->known++ & NBI_KEEP_MASK] = event;
    }
}

static void feed(void *user, nb_tick_view *view) {
    nb_netplay *netplay = user;
    uint64_t tick = view->tick->index;
    sample(netplay, view);
    view->input = (nb_input_view){NULL, 0};
    view->commands = commands_of(netplay, tick, netplay->commands);
    for (uint32_t i = 0; i < netplay->desc.player_count; ++i) {
        netplay->players[i].used[tick & NBI_KEEP_MASK] = netplay->commands[i];
        if (tick >= netplay->players[i].known) ++netplay->stats.predicted_count;
    }
    netplay->tick_count = tick + 1;
}

// --- holding the loop ---

// No tick runs any more, neither by the clock nor asked for.
static void hold(nb_netplay *netplay) {
    nb_loop *loop = nb_engine_loop(netplay->engine);
    if (!netplay->is_holding) netplay->was_paused = loop->is_paused;
    netplay->is_holding = true;
    nb_loop_resume(loop); // forgets ticks that were asked for
    nb_loop_pause(loop);
}

static void let_go(nb_netplay *netplay) {
    if (netplay->is_holding && !netplay->was_paused) nb_loop_resume(nb_engine_loop(netplay->engine));
    netplay->is_holding = false;
}

void nbi_netplay_let_go(nb_netplay *netplay) {
    bool can_go = netplay->engine != NULL && !nbi_netplay_is_full(netplay, nbi_netplay_known(netplay));
    if (can_go) let_go(netplay);
}

// --- after a tick ---

static void keep_hash(void *user, const nb_tick_view *view) {
    nb_netplay *netplay = user;
    netplay->hashes[(view->tick->index + 1) & NBI_KEEP_MASK] = view->hash;
}

static void after_tick(void *user, const nb_tick_view *view) {
    nb_netplay *netplay = user;
    keep_hash(netplay, view);
    if (nbi_netplay_is_full(netplay, netplay->taken)) hold(netplay);
}

// --- putting right ---

// Notes what a tick gets now; false: it has had the same before.
static bool note_input(nb_netplay *netplay, uint32_t player, uint64_t tick, const nb_input_event *event) {
    nbi_player *of = &netplay->players[player];
    nb_input_event *used = &of->used[tick & NBI_KEEP_MASK];
    if (memcmp(used, event, sizeof *used) == 0) return false;
    *used = *event;
    if (tick < of->known) ++netplay->stats.mispredicted_count;
    return true;
}

static void lose(nb_netplay *netplay, uint64_t tick, nb_result result) {
    if (netplay->stats.has_lost) return;
    netplay->stats.has_lost = true;
    netplay->stats.lost_tick = tick;
    nb_report(&netplay->hooks, NB_LOG_ERROR, NB_ITEM_NETPLAY_LOST, "nb_netplay_create",
              "tick %llu was guessed wrong and cannot be put right any more: %s", (unsigned long long)tick,
              nb_result_name(result));
}

static void put_right(nb_netplay *netplay, const nb_context *context, uint64_t tick) {
    nb_history_input input = {{NULL, 0}, commands_of(netplay, tick, netplay->commands)};
    bool is_wrong = false;
    for (uint32_t i = 0; i < input.commands.count; ++i)
        is_wrong |= note_input(netplay, i, tick, &input.commands.events[i]);
    nb_result result = is_wrong ? nb_context_correct_input(context, tick, &input) : NB_OK;
    if (result != NB_OK) lose(netplay, tick, result);
}

static nb_result reconcile(const nb_context *context, void *user) {
    nb_netplay *netplay = user;
    netplay->taken = nbi_netplay_known(netplay);
    for (uint64_t tick = netplay->confirmed; tick < netplay->tick_count; ++tick) put_right(netplay, context, tick);
    return NB_OK;
}

// --- what is final ---

static void tell_desync(nb_netplay *netplay, uint32_t player, uint64_t tick) {
    bool is_first = !netplay->stats.has_desync;
    if (!is_first && tick >= netplay->stats.desync_tick) return;
    netplay->stats.has_desync = true;
    netplay->stats.desync_player = player;
    netplay->stats.desync_tick = tick;
    if (is_first)
        nb_report(&netplay->hooks, NB_LOG_ERROR, NB_ITEM_NETPLAY_DESYNC, "nb_netplay_create",
                  "the state after tick %llu is another one than player %u's; further ones are not told",
                  (unsigned long long)tick, player);
}

static void compare(nb_netplay *netplay, uint32_t player) {
    nbi_player *with = &netplay->players[player];
    while (with->hash_compared < with->hash_known && with->hash_compared <= netplay->confirmed) {
        uint64_t tick_count = with->hash_compared++;
        uint32_t ours = (uint32_t)netplay->hashes[tick_count & NBI_KEEP_MASK];
        ++netplay->stats.compared_count;
        if (ours != with->hashes[tick_count & NBI_KEEP_MASK]) tell_desync(netplay, player, tick_count - 1);
    }
}

static void average(nb_netplay *netplay, nbi_player *player) {
    int64_t seen = (int64_t)(netplay->tick_count - player->tick_count) * NBI_TICK_PARTS;
    player->advantage += (seen - player->advantage) / AVERAGE_PARTS;
}

// Ticks have been put right by now, and none has run yet.
static nb_result settle(const nb_context *context, void *user) {
    nb_netplay *netplay = user;
    (void)context;
    netplay->confirmed = nbi_min_u64(netplay->taken, netplay->tick_count);
    nb_history_confirm(nb_engine_history(netplay->engine), netplay->confirmed);
    for (uint32_t i = 0; i < netplay->desc.player_count; ++i) {
        if (i == netplay->desc.local_player) continue;
        compare(netplay, i);
        average(netplay, &netplay->players[i]);
    }
    if (nbi_netplay_is_full(netplay, netplay->taken)) {
        ++netplay->stats.stall_count;
        hold(netplay);
    } else {
        let_go(netplay);
    }
    return NB_OK;
}

// --- joining and leaving ---

// The watch leaves with the module, so nothing of the engine uses the netplay any more.
static void on_detach(nb_engine *engine, void *user) {
    nb_netplay *netplay = user;
    nb_engine_watch_remove(engine, netplay);
    let_go(netplay);
    netplay->engine = NULL;
}

nb_result nbi_netplay_attach(nb_netplay *netplay, nb_engine *engine) {
    nb_tick_watch watch = {.begin = feed, .end = after_tick, .again = keep_hash, .user = netplay};
    nb_result result = nb_engine_watch_add(engine, &watch);
    if (result != NB_OK) return result;
    nb_module_desc module = {.name = "netplay", .on_detach = on_detach, .user = netplay};
    module.handlers[NB_PHASE_NETWORK_RECONCILIATION] = reconcile;
    module.handlers[NB_PHASE_RANDOM_SEED] = settle;
    netplay->engine = engine;
    result = nb_engine_module_attach(engine, &module, &netplay->module);
    if (result != NB_OK) nb_engine_watch_remove(engine, netplay);
    return result;
}

nb_result nbi_netplay_detach(nb_netplay *netplay) {
    if (netplay->engine == NULL) return NB_OK;
    if (nb_engine_phase(netplay->engine) != NB_PHASE_NONE) return NB_BUSY;
    nb_result result = nb_engine_module_detach(netplay->engine, netplay->module);
    if (netplay->engine == NULL) return NB_OK; // on_detach was called
    return result == NB_ERR_THREAD ? result : NB_BUSY;
}
