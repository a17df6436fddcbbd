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

// --- holding the loop ---

// No tick runs any more, neither by the clock nor asked for.
static void loop_hold(nb_netplay *netplay) {
    netplay->is_holding = true;
    nb_loop_hold(nb_engine_loop(netplay->engine), true);
}

static void loop_release(nb_netplay *netplay) {
    if (netplay->is_holding) nb_loop_hold(nb_engine_loop(netplay->engine), false);
    netplay->is_holding = false;
}

void nbi_netplay_loop_release(nb_netplay *netplay) {
    bool can_go = netplay->engine != NULL && !nbi_netplay_is_full(netplay, nbi_netplay_known(netplay));
    if (can_go) loop_release(netplay);
}

// The engine has gone elsewhere in time, where the others cannot follow: it goes on by itself.
static void leave(nb_netplay *netplay, uint64_t tick) {
    if (netplay->stats.has_left) return;
    netplay->stats.has_left = true;
    loop_release(netplay);
    nb_report(
        &netplay->hooks, NB_LOG_ERROR, NB_ITEM_NETPLAY_LOST, "nb_engine_frame",
        "player %u left the match after %llu ticks: states were loaded or the tick was set, and tick %llu follows",
        netplay->desc.local_player, nb_llu(netplay->tick_count), nb_llu(tick));
}

// --- around a tick ---

// Every tick of the match follows the one before. A match may begin with states that were just loaded.
static bool is_of_match(const nb_netplay *netplay, const nb_tick_view *view) {
    uint64_t tick = view->tick->index;
    return tick == netplay->tick_count && (!view->is_new_run || tick == netplay->base);
}

static void feed(void *user, nb_tick_view *view) {
    nb_netplay *netplay = user;
    uint64_t tick = view->tick->index;
    if (!is_of_match(netplay, view)) leave(netplay, tick);
    if (netplay->stats.has_left) return;
    sample(netplay, view);
    view->input = (nb_input_view){NULL, 0};
    view->commands = commands_of(netplay, tick, netplay->commands);
    for (uint32_t i = 0; i < netplay->desc.player_count; ++i) {
        netplay->players[i].used[tick & NBI_KEEP_MASK] = netplay->commands[i];
        if (tick >= netplay->players[i].known) ++netplay->stats.predicted_count;
    }
    netplay->tick_count = tick + 1;
}

static void keep_hash(void *user, const nb_tick_view *view) {
    nb_netplay *netplay = user;
    if (netplay->stats.has_left) return;
    netplay->hashes[(view->tick->index + 1) & NBI_KEEP_MASK] = view->hash;
}

static void after_tick(void *user, const nb_tick_view *view) {
    nb_netplay *netplay = user;
    keep_hash(netplay, view);
    if (!netplay->stats.has_left && nbi_netplay_is_full(netplay, netplay->taken)) loop_hold(netplay);
}

// --- corrections ---

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
    nb_report(&netplay->hooks, NB_LOG_ERROR, NB_ITEM_NETPLAY_LOST, "nb_engine_frame",
              "player %u: tick %llu was predicted wrong and cannot be simulated again: %s; later ones are not logged",
              netplay->desc.local_player, nb_llu(tick), nb_result_name(result));
}

static void correct_tick(nb_netplay *netplay, const nb_context *context, uint64_t tick) {
    nb_history_input input = {{NULL, 0}, commands_of(netplay, tick, netplay->commands)};
    bool is_wrong = false;
    for (uint32_t i = 0; i < input.commands.count; ++i)
        is_wrong |= note_input(netplay, i, tick, &input.commands.events[i]);
    nb_result result = is_wrong ? nb_context_correct_input(context, tick, &input) : NB_OK;
    if (result != NB_OK) lose(netplay, tick, result);
}

static nbi_past past_of(const nb_netplay *netplay) {
    const nb_history *history = nb_engine_history(netplay->engine);
    nb_history_stats stats = nb_history_stats_get(history);
    return (nbi_past){.history = history,
                      .tick_count = netplay->tick_count,
                      .full_count = stats.full_count,
                      .restart_count = stats.restart_count,
                      .layout_hash = nb_states_layout_hash(nb_engine_states(netplay->engine)),
                      .is_there = stats.has_begun && stats.tick_oldest < netplay->tick_count};
}

// Whether other states came in since the last frame, at the tick where the match stands. An engine forgets its history
// then, of which the match still needs the ticks that are not confirmed. A history that is full, or restarted because
// states were added or a world came late, forgets them too: that is no other state.
static bool has_other_states(nb_netplay *netplay) {
    const nbi_past before = netplay->past, now = past_of(netplay);
    netplay->past = now;
    if (now.is_there || netplay->confirmed >= netplay->tick_count) return false;
    bool was_there = before.is_there || before.tick_count != now.tick_count; // ticks that ran are kept
    return was_there && before.history == now.history && before.full_count == now.full_count &&
           before.restart_count == now.restart_count && before.layout_hash == now.layout_hash;
}

static nb_result reconcile(const nb_context *context, void *user) {
    nb_netplay *netplay = user;
    uint64_t now = nb_loop_tick_count(nb_engine_loop(netplay->engine));
    if (netplay->stats.has_left) return NB_OK;
    // A loop that is held has no tick that would tell.
    if (now != netplay->tick_count || has_other_states(netplay)) leave(netplay, now);
    if (netplay->stats.has_left) return NB_OK;
    netplay->taken = nbi_netplay_known(netplay);
    for (uint64_t tick = netplay->confirmed; tick < netplay->tick_count; ++tick) correct_tick(netplay, context, tick);
    return NB_OK;
}

// --- what is final ---

static void average(nb_netplay *netplay, nbi_player *player) {
    int64_t seen = (int64_t)(netplay->tick_count - player->tick_count) * NBI_TICK_PARTS;
    player->advantage += (seen - player->advantage) / AVERAGE_PARTS;
}

// Ticks have been put right by now, and none has run yet.
static nb_result settle(const nb_context *context, void *user) {
    nb_netplay *netplay = user;
    (void)context;
    if (netplay->stats.has_left) return NB_OK;
    uint64_t confirmed_before = netplay->confirmed;
    netplay->confirmed = nbi_min_u64(netplay->taken, netplay->tick_count);
    nb_history_confirm(nb_engine_history(netplay->engine), netplay->confirmed);
    if (netplay->has_hashes) nbi_netplay_compare(netplay, confirmed_before);
    for (uint32_t i = 0; i < netplay->desc.player_count; ++i) {
        if (i != netplay->desc.local_player) average(netplay, &netplay->players[i]);
    }
    if (nbi_netplay_is_full(netplay, netplay->taken)) {
        ++netplay->stats.stall_count;
        loop_hold(netplay);
    } else {
        loop_release(netplay);
    }
    return NB_OK;
}

// --- joining and leaving ---

// The watch leaves with the module, so nothing of the engine uses the netplay any more.
static void on_detach(nb_engine *engine, void *user) {
    nb_netplay *netplay = user;
    nb_engine_watch_remove(engine, netplay);
    loop_release(netplay);
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
