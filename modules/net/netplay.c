// SPDX-License-Identifier: MIT
// A match: its beginning, its end, and what can be asked of it.

#include "netplay.h"

#include "nebula/rollback.h"

#include <string.h>

nb_netplay_desc nb_netplay_desc_default(void) {
    return (nb_netplay_desc){.player_count = 2, .window = NB_NETPLAY_WINDOW_MAX, .hooks = nb_hooks_default()};
}

// --- beginning and end ---

// What is wrong with the desc by itself, or NULL.
static const char *problem_of(const nb_netplay_desc *desc) {
    if (desc->player_count < 2 || desc->player_count > NB_NETPLAY_PLAYER_COUNT_MAX) return "player_count is not 2 to 8";
    if (desc->local_player >= desc->player_count) return "local_player is not below player_count";
    if (desc->input_delay > NB_NETPLAY_DELAY_MAX) return "input_delay is over NB_NETPLAY_DELAY_MAX";
    return desc->window > NB_NETPLAY_WINDOW_MAX ? "window is over NB_NETPLAY_WINDOW_MAX" : NULL;
}

// What the engine cannot do for it, or NULL.
static const char *problem_with(const nb_engine_desc *engine, const nb_netplay_desc *desc) {
    if (desc->window > engine->rollback_count_max)
        return "window is over nb_engine_desc.rollback_count_max; raise that, or lower the window";
    // Zero is the history's default, which is more than enough of both.
    uint32_t ticks = engine->history.tick_count_max, commands = engine->history.command_count_max;
    if (ticks != 0 && desc->window > ticks)
        return "window is over nb_engine_desc.history.tick_count_max; raise that, or lower the window";
    return commands != 0 && desc->player_count > commands
               ? "player_count is over nb_engine_desc.history.command_count_max; raise that"
               : NULL;
}

static nb_result refuse(const nb_netplay_desc *desc, nb_result result, const char *reason) {
    return nb_report_mistake(&desc->hooks, NB_ITEM_NETPLAY_ARGUMENT, result, "nb_netplay_create",
                             "nb_netplay_desc of player %u: %s", desc->local_player, reason);
}

static nb_netplay *begin(const nb_netplay_desc *desc, uint64_t base) {
    nb_hooks hooks = nb_hooks_resolve(&desc->hooks);
    nb_netplay *netplay = nb_hooks_alloc(&hooks, sizeof *netplay, NB_CACHE_LINE, "nb_netplay_create");
    if (netplay == NULL) return NULL;
    memset(netplay, 0, sizeof *netplay);
    netplay->desc = *desc;
    netplay->hooks = netplay->desc.hooks = hooks;
    netplay->base = netplay->tick_count = netplay->taken = netplay->confirmed = netplay->hint_at = base;
    for (uint32_t i = 0; i < desc->player_count; ++i) {
        nbi_player *player = &netplay->players[i];
        player->known = player->acked = player->input_sent = player->input_from = base;
        player->tick_count = player->tick_seen_at = base;
        player->hash_known = player->hash_compared = player->hash_acked = base + 1;
        player->hash_sent = player->hash_from = base + 1;
        player->author = NBI_AUTHOR_UNKNOWN;
    }
    // What comes before the first input that is sampled is nothing, and known.
    netplay->players[desc->local_player].known = base + desc->input_delay;
    return netplay;
}

nb_result nb_netplay_create(nb_engine *engine, const nb_netplay_desc *desc, nb_netplay **out) {
    if (engine == NULL) return NB_FAIL_NULL("engine");
    if (desc == NULL) return NB_FAIL_NULL("desc");
    if (out == NULL) return NB_FAIL_NULL("out");
    const nb_engine_desc *engine_desc = nb_engine_desc_get(engine);
    nb_netplay_desc d = *desc;
    if (d.window == 0) d.window = (uint32_t)nbi_min_u64(NB_NETPLAY_WINDOW_MAX, engine_desc->rollback_count_max);
    if (d.sample == NULL) return refuse(&d, NB_ERR_MISUSE, "sample is NULL");
    const char *problem = problem_of(&d);
    if (problem != NULL) return refuse(&d, NB_ERR_RANGE, problem);
    if (!engine_desc->keeps_history)
        return refuse(&d, NB_ERR_UNSUPPORTED, "the engine keeps no history; set nb_engine_desc.keeps_history");
    problem = problem_with(engine_desc, &d);
    if (problem != NULL) return refuse(&d, NB_ERR_RANGE, problem);
    nb_netplay *netplay = begin(&d, nb_loop_tick_count(nb_engine_loop(engine)));
    if (netplay == NULL) return NB_ERR_MEMORY;
    netplay->has_hashes = engine_desc->hashes_ticks;
    nb_result result = nbi_netplay_attach(netplay, engine);
    if (result != NB_OK) {
        nb_hooks_free(&netplay->hooks, netplay, sizeof *netplay);
        return result;
    }
    *out = netplay;
    return NB_OK;
}

nb_result nb_netplay_destroy(nb_netplay *netplay) {
    if (netplay == NULL) return NB_OK;
    nb_result result = nbi_netplay_detach(netplay);
    if (result != NB_OK) return result;
    nb_hooks hooks = netplay->hooks;
    nb_hooks_free(&hooks, netplay, sizeof *netplay);
    return NB_OK;
}

// --- questions ---

uint64_t nbi_netplay_known(const nb_netplay *netplay) {
    uint64_t known = UINT64_MAX;
    for (uint32_t i = 0; i < netplay->desc.player_count; ++i) known = nbi_min_u64(known, netplay->players[i].known);
    return known;
}

bool nbi_netplay_is_full(const nb_netplay *netplay, uint64_t known) {
    return netplay->tick_count > known && netplay->tick_count - known >= netplay->desc.window;
}

static int64_t ahead_of(const nbi_player *player) { return (player->advantage - player->advantage_theirs) / 2; }

// Both sides see the same delay, so half the difference of what they see is by how much one is ahead.
static uint32_t hint_of(const nb_netplay *netplay) {
    int64_t most = 0;
    for (uint32_t i = 0; i < netplay->desc.player_count; ++i) {
        int64_t ahead = i != netplay->desc.local_player ? ahead_of(&netplay->players[i]) / NBI_TICK_PARTS : 0;
        if (ahead > most) most = ahead;
    }
    return (uint32_t)nbi_min_u64((uint64_t)most, NB_NETPLAY_HINT_MAX);
}

nb_netplay_advice nb_netplay_advice_get(nb_netplay *netplay) {
    if (netplay == NULL) {
        NB_FAIL_NULL("netplay");
        return (nb_netplay_advice){0};
    }
    if (netplay->stats.has_left) return (nb_netplay_advice){0};
    nb_netplay_advice advice = {.must_wait = nbi_netplay_is_full(netplay, nbi_netplay_known(netplay))};
    if (netplay->tick_count - netplay->hint_at < NB_NETPLAY_HINT_TICK_COUNT) return advice;
    advice.hold_tick_count = hint_of(netplay);
    if (advice.hold_tick_count != 0) netplay->hint_at = netplay->tick_count;
    return advice;
}

nb_result nb_netplay_hash_get(const nb_netplay *netplay, uint64_t tick_count, uint64_t *hash) {
    if (netplay == NULL) return NB_FAIL_NULL("netplay");
    if (hash == NULL)
        return NBI_NETPLAY_FAIL(netplay, netplay->desc.local_player, NB_ERR_MISUSE, "netplay: player %u: hash is NULL",
                                netplay->desc.local_player);
    if (!netplay->has_hashes) return NB_ERR_UNSUPPORTED;
    bool is_kept = tick_count > netplay->base && tick_count <= netplay->confirmed &&
                   netplay->confirmed - tick_count < NB_NETPLAY_KEEP_COUNT / 2;
    if (!is_kept) return NB_ERR_RANGE;
    *hash = netplay->hashes[tick_count & NBI_KEEP_MASK];
    return NB_OK;
}

nb_result nb_netplay_peer_get(const nb_netplay *netplay, uint32_t player, nb_netplay_peer *peer) {
    if (netplay == NULL) return NB_FAIL_NULL("netplay");
    if (peer == NULL)
        return NBI_NETPLAY_FAIL(netplay, player, NB_ERR_MISUSE, "netplay: player %u: peer is NULL", player);
    if (player >= netplay->desc.player_count || player == netplay->desc.local_player)
        return NBI_NETPLAY_FAIL(netplay, player, NB_ERR_RANGE,
                                "netplay: player %u is no other player; there are %u, and player %u plays here", player,
                                netplay->desc.player_count, netplay->desc.local_player);
    const nbi_player *from = &netplay->players[player];
    *peer = (nb_netplay_peer){.known_count = from->known,
                              .acked_count = from->acked,
                              .tick_count = from->tick_count,
                              .rtt_ticks = (uint32_t)((from->rtt + NBI_TICK_PARTS / 2) / NBI_TICK_PARTS),
                              .ahead_ticks = (int32_t)(ahead_of(from) / NBI_TICK_PARTS),
                              .hash_count = from->hash_known - 1,
                              .refused_count = from->refused_count,
                              .is_silent = from->is_silent};
    return NB_OK;
}

nb_netplay_stats nb_netplay_stats_get(const nb_netplay *netplay) {
    if (netplay == NULL) {
        NB_FAIL_NULL("netplay");
        return (nb_netplay_stats){0};
    }
    nb_netplay_stats stats = netplay->stats;
    stats.tick_count = netplay->tick_count;
    stats.confirmed_count = netplay->confirmed;
    return stats;
}
