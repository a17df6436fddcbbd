// SPDX-License-Identifier: MIT
#pragma once

// What the files of netplay share: netplay.c begins and ends it and answers questions, netplay_attach.c has the
// engine's side (what ticks get, what is put right, what is confirmed), netplay_exchange.c makes and takes messages,
// netplay_compare.c compares states with the other players'.

#include "nebula/netplay.h"
#include "nebula/report.h"

#include "message.h"

#define NBI_KEEP_MASK ((uint64_t)NB_NETPLAY_KEEP_COUNT - 1)
NB_STATIC_ASSERT((NB_NETPLAY_KEEP_COUNT & (NB_NETPLAY_KEEP_COUNT - 1)) == 0, "rings are indexed with a mask");

// Averages of advantage and round trip are in 1/256 tick.
#define NBI_TICK_PARTS 256

// Why a state differs: not looked into yet, or not because of inputs.
#define NBI_AUTHOR_UNKNOWN 0xFFFFFFFFu
#define NBI_AUTHOR_NONE 0xFFFFFFFEu

static inline uint64_t nbi_min_u64(uint64_t a, uint64_t b) { return a < b ? a : b; }
static inline uint64_t nbi_max_u64(uint64_t a, uint64_t b) { return a > b ? a : b; }

// A player: of the local one only the first lines count.
typedef struct nbi_player {
    nb_input_event inputs[NB_NETPLAY_KEEP_COUNT]; // by tick
    nb_input_event used[NB_NETPLAY_KEEP_COUNT];   // by tick, what a tick had of it: an input, or a guess
    uint64_t digests[NB_NETPLAY_KEEP_COUNT];      // by tick count, of all its inputs of confirmed ticks before
    uint64_t known;                               // the first tick whose input is not here
    uint64_t acked;                               // the first tick whose input of ours is not there
    uint64_t input_sent;                          // the first tick whose input of ours was not sent to it
    uint64_t input_from;                          // the first tick whose input of ours the next message to it has

    uint32_t hashes[NB_NETPLAY_KEEP_COUNT]; // by tick count, what it has confirmed
    uint64_t hash_known;                    // the first tick count whose hash is not here
    uint64_t hash_compared;                 // the first one that was not compared
    uint64_t hash_acked;                    // the first one whose hash of ours is not there
    uint64_t hash_sent;                     // the first one whose hash of ours was not sent to it
    uint64_t hash_from;                     // the first one whose hash of ours the next message to it has

    uint64_t differs_at;   // the first tick count after which its state is not ours; 0 = none was compared
    uint32_t differs_hash; // its hash then
    uint32_t author;       // whose inputs are not the same here and there, or NBI_AUTHOR_*
    uint32_t digests_theirs[NB_NETPLAY_PLAYER_COUNT_MAX]; // the newest, until differs_at
    uint64_t digests_at;                                  // the tick count that they are of
    bool is_silent;                                       // it has sent no hash of late
    bool was_silent;                                      // and that was logged
    uint64_t refused_count;                               // messages

    uint64_t tick_count;                      // the newest it has told,
    uint64_t tick_seen_at;                    // and our tick count then
    int64_t rtt, advantage, advantage_theirs; // averages
    bool has_rtt;
} nbi_player;

// What the engine's history was like in a frame's reconciliation.
typedef struct nbi_past {
    const nb_history *history;
    uint64_t tick_count;                // of the netplay then
    uint64_t full_count, restart_count; // of the history
    uint64_t layout_hash;               // of the engine's states
    bool is_there;                      // the history reached back behind tick_count
} nbi_past;

struct nb_netplay {
    nb_netplay_desc desc; // resolved
    nb_hooks hooks;
    nb_engine *engine; // NULL: it has ended
    nb_module_id module;
    uint64_t base;        // the match's first tick
    uint64_t tick_count;  // run
    uint64_t taken;       // ticks below have every input, and were looked at in this frame's reconciliation
    uint64_t confirmed;   // states after up to so many ticks are final, and hashed
    uint64_t hint_at;     // tick count of the last hint to hold back
    bool has_hashes;      // the engine hashes its ticks
    bool has_verdict;     // blame for the desync was looked for
    uint32_t desync_hash; // the own hash after desync_tick
    bool is_holding;      // the loop
    nbi_past past;        // in the newest frame
    uint64_t hashes[NB_NETPLAY_KEEP_COUNT]; // of the states after so many ticks
    nb_input_event commands[NB_NETPLAY_PLAYER_COUNT_MAX];
    nbi_player players[NB_NETPLAY_PLAYER_COUNT_MAX];
    nb_throttle throttle; // of mistakes that frames repeat
    nbi_message message;  // that is written or read
    nb_netplay_stats stats;
};

// A mistake of the caller about a player, which frames may repeat. Reports are all that a question changes.
#define NBI_NETPLAY_FAIL(netplay, player, result, ...)                                                       \
    nb_report_throttled(&(netplay)->hooks, (nb_throttle *)(uintptr_t) & (netplay)->throttle, (player), true, \
                        NB_ITEM_NETPLAY_ARGUMENT, (result), __func__, __VA_ARGS__)

// The first tick for which an input is missing.
uint64_t nbi_netplay_known(const nb_netplay *netplay);

// Whether one more tick could not be put right any more, where all inputs of ticks below `known` are here.
bool nbi_netplay_is_full(const nb_netplay *netplay, uint64_t known);

// Compares the states of ticks that were confirmed with the other players'; confirmed_before is what the last call saw.
void nbi_netplay_compare(nb_netplay *netplay, uint64_t confirmed_before);

// Lets the loop go on, where it was held and messages have come.
void nbi_netplay_loop_release(nb_netplay *netplay);

// Joins the engine, and leaves it. NB_BUSY: inside a frame.
nb_result nbi_netplay_attach(nb_netplay *netplay, nb_engine *engine);
nb_result nbi_netplay_detach(nb_netplay *netplay);
