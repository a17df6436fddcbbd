// SPDX-License-Identifier: MIT
// States of confirmed ticks compared with the other players', and the player who differs named. With three or more
// players the state that most of them have counts as right. Where states differ, digests of all inputs say whether the
// inputs differed before: then the player whose inputs they are told two players different things.

#include "netplay.h"

#include "nebula/hash.h"

static void digest(nb_netplay *netplay, uint64_t tick) {
    for (uint32_t i = 0; i < netplay->desc.player_count; ++i) {
        nbi_player *player = &netplay->players[i];
        const nb_input_event *input = &player->inputs[tick & NBI_KEEP_MASK];
        uint64_t before = player->digests[tick & NBI_KEEP_MASK];
        player->digests[(tick + 1) & NBI_KEEP_MASK] = nb_hash64(input, sizeof *input, before);
    }
}

// --- silence ---

static void look_for_hashes(nb_netplay *netplay, uint32_t player) {
    nbi_player *of = &netplay->players[player];
    of->is_silent = netplay->confirmed + 1 >= of->hash_known + NB_NETPLAY_SILENT_TICK_COUNT;
    if (!of->is_silent || of->was_silent) return;
    of->was_silent = true;
    nb_report(&netplay->hooks, NB_LOG_ERROR, NB_ITEM_NETPLAY_SUSPECT, "nb_engine_frame",
              "netplay: player %u has sent no hash of the last %u confirmed ticks: its state cannot be compared",
              player, NB_NETPLAY_SILENT_TICK_COUNT);
}

// --- difference ---

static void note_desync(nb_netplay *netplay, uint32_t player, uint64_t tick) {
    nb_netplay_stats *stats = &netplay->stats;
    bool is_first = !stats->has_desync;
    if (netplay->has_verdict || (!is_first && tick >= stats->desync_tick)) return;
    stats->has_desync = true;
    stats->desync_player = player;
    stats->desync_tick = tick;
    netplay->desync_hash = (uint32_t)netplay->hashes[(tick + 1) & NBI_KEEP_MASK];
    if (is_first)
        nb_report(&netplay->hooks, NB_LOG_ERROR, NB_ITEM_NETPLAY_DESYNC, "nb_engine_frame",
                  "netplay: desync with player %u at tick %llu; later ones are not logged", player, nb_llu(tick));
}

// A tick whose hash here was overwritten since is skipped: the player was silent for that long, and reported for it.
static void compare(nb_netplay *netplay, uint32_t player) {
    nbi_player *with = &netplay->players[player];
    while (with->hash_compared < with->hash_known && with->hash_compared <= netplay->confirmed) {
        uint64_t tick_count = with->hash_compared++;
        if (netplay->tick_count - tick_count >= NB_NETPLAY_KEEP_COUNT) continue;
        uint32_t ours = (uint32_t)netplay->hashes[tick_count & NBI_KEEP_MASK];
        uint32_t theirs = with->hashes[tick_count & NBI_KEEP_MASK];
        ++netplay->stats.compared_count;
        if (ours == theirs) continue;
        if (with->differs_at == 0) with->differs_at = tick_count, with->differs_hash = theirs;
        note_desync(netplay, player, tick_count - 1);
    }
}

// --- blame ---

// Whose inputs are not the same here and there. A player that gives other inputs for itself, for us, or for several
// players contradicts all of them: it is the author then.
static uint32_t author_of(const nb_netplay *netplay, uint32_t player) {
    const nbi_player *with = &netplay->players[player];
    uint32_t author = NBI_AUTHOR_NONE;
    for (uint32_t i = 0; i < netplay->desc.player_count; ++i) {
        uint32_t ours = (uint32_t)netplay->players[i].digests[with->digests_at & NBI_KEEP_MASK];
        if (ours == with->digests_theirs[i]) continue;
        if (i == netplay->desc.local_player || author != NBI_AUTHOR_NONE) return player;
        author = i;
    }
    return author;
}

static void look_for_author(nb_netplay *netplay, uint32_t player) {
    nbi_player *with = &netplay->players[player];
    bool can_look = with->differs_at != 0 && with->digests_at <= netplay->confirmed;
    if (can_look && with->author == NBI_AUTHOR_UNKNOWN) with->author = author_of(netplay, player);
}

// Every player that sends hashes was compared up to the first one that differs, and every difference looked into.
static bool is_complete(const nb_netplay *netplay, uint64_t tick_count) {
    for (uint32_t i = 0; i < netplay->desc.player_count; ++i) {
        const nbi_player *player = &netplay->players[i];
        if (i == netplay->desc.local_player || player->is_silent) continue;
        if (player->hash_compared <= tick_count) return false;
        if (player->differs_at == tick_count && player->author == NBI_AUTHOR_UNKNOWN) return false;
    }
    return true;
}

// The hashes after the first tick that any player differs at, of the players that sent one.
typedef struct vote {
    uint32_t players[NB_NETPLAY_PLAYER_COUNT_MAX], hashes[NB_NETPLAY_PLAYER_COUNT_MAX];
    uint32_t count;
} vote;

static vote vote_of(const nb_netplay *netplay, uint64_t tick_count) {
    vote v = {.count = 0};
    for (uint32_t i = 0; i < netplay->desc.player_count; ++i) {
        const nbi_player *player = &netplay->players[i];
        bool is_other = i != netplay->desc.local_player;
        if (is_other && player->is_silent) continue;
        bool differs = is_other && player->differs_at == tick_count;
        v.players[v.count] = i;
        v.hashes[v.count++] = differs ? player->differs_hash : netplay->desync_hash;
    }
    return v;
}

// How many have the hash of the voter `index`.
static uint32_t agree_count(const vote *v, uint32_t index) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < v->count; ++i) count += v->hashes[i] == v->hashes[index];
    return count;
}

// The first player outside of the majority. False: there is no majority.
static bool find_minority(const nb_netplay *netplay, uint64_t tick_count, uint32_t *player) {
    const vote v = vote_of(netplay, tick_count);
    uint32_t chosen = 0, other = 0;
    while (chosen < v.count && 2 * agree_count(&v, chosen) <= v.count) ++chosen;
    if (chosen == v.count) return false;
    while (other < v.count && v.hashes[other] == v.hashes[chosen]) ++other;
    if (other == v.count) return false; // the one that differed has fallen silent
    *player = v.players[other];
    return true;
}

// Another player whose state differs because inputs did. False: there is none.
static bool find_witness(const nb_netplay *netplay, uint64_t tick_count, uint32_t *witness) {
    for (uint32_t i = 0; i < netplay->desc.player_count; ++i) {
        const nbi_player *player = &netplay->players[i];
        if (player->differs_at != tick_count || player->author >= netplay->desc.player_count) continue;
        *witness = i;
        return true;
    }
    return false;
}

static void blame_inputs(nb_netplay *netplay, uint32_t player, uint32_t witness) {
    nb_netplay_stats *stats = &netplay->stats;
    stats->desync_blame = NB_NETPLAY_BLAME_INPUTS;
    stats->desync_player = player;
    stats->desync_witness = witness != player ? witness : netplay->desc.local_player;
    nb_report(&netplay->hooks, NB_LOG_ERROR, NB_ITEM_NETPLAY_SUSPECT, "nb_engine_frame",
              "netplay: before the desync at tick %llu inputs differ between players %u and %u: player %u is named",
              nb_llu(stats->desync_tick), netplay->desc.local_player, witness, player);
}

static void blame_state(nb_netplay *netplay, uint32_t player) {
    netplay->stats.desync_blame = NB_NETPLAY_BLAME_STATE;
    netplay->stats.desync_player = player;
    nb_report(&netplay->hooks, NB_LOG_ERROR, NB_ITEM_NETPLAY_SUSPECT, "nb_engine_frame",
              "netplay: at tick %llu player %u%s has another state than most players",
              nb_llu(netplay->stats.desync_tick), player, player == netplay->desc.local_player ? " (this one)" : "");
}

// Once. Different inputs are reason enough; a majority takes the hashes of all.
static void blame(nb_netplay *netplay) {
    uint64_t tick_count = netplay->stats.desync_tick + 1;
    if (!netplay->stats.has_desync || netplay->has_verdict) return;
    uint32_t player = 0;
    bool has_witness = find_witness(netplay, tick_count, &player);
    netplay->has_verdict = has_witness || is_complete(netplay, tick_count);
    if (has_witness)
        blame_inputs(netplay, netplay->players[player].author, player);
    else if (netplay->has_verdict && find_minority(netplay, tick_count, &player))
        blame_state(netplay, player);
}

void nbi_netplay_compare(nb_netplay *netplay, uint64_t confirmed_before) {
    for (uint64_t tick = confirmed_before; tick < netplay->confirmed; ++tick) digest(netplay, tick);
    for (uint32_t i = 0; i < netplay->desc.player_count; ++i) {
        if (i == netplay->desc.local_player) continue;
        look_for_hashes(netplay, i);
        compare(netplay, i);
        look_for_author(netplay, i);
    }
    blame(netplay);
}
