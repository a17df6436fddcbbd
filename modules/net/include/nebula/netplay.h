// SPDX-License-Identifier: MIT
#pragma once

// Games of two to eight players, each with an engine of its own that never waits for the others: inputs that have not
// come yet are guessed, and ticks that were guessed wrong are simulated again, see rollback.h. Only inputs travel. The
// one rule: all engines begin with the same state, seed and tick, and their ticks read nothing but what is simulated
// and context->commands, which has one event for each player, in their order.
//
//     static void press(void *user, const nb_tick_view *view, nb_input_event *event) {
//         event->kind = NB_INPUT_COMMAND, event->code = view->input.count; // what this player does
//     }
//     nb_netplay_desc desc = {.player_count = 2, .local_player = 0, .sample = press};
//     nb_netplay *play = NULL; // the engine has desc.keeps_history and hashes_ticks
//     if (nb_netplay_create(engine, &desc, &play) != NB_OK) return 1;
//     unsigned char bytes[NB_NETPLAY_MESSAGE_BYTES_MAX];
//     size_t size_bytes = 0;
//     while (receive(bytes, &size_bytes)) nb_netplay_receive(play, 1, bytes, size_bytes); // before each frame
//     nb_engine_frame(engine);
//     if (nb_netplay_send(play, 1, bytes, sizeof bytes, &size_bytes) == NB_OK) send(bytes, size_bytes); // after it
//     nb_netplay_destroy(play);
//
// The caller carries the messages. They may be lost, late, duplicated or out of order: each holds all inputs that the
// other side has not acknowledged.
//
// Among strangers: the carrier authenticates each message, and the caller says which player sent it. Use a new session
// number for each match, or messages of an old match count again. A message is checked against what its sender can
// know. A wrong one has no effect, is counted for its sender, and the log names the sender.
//
// Inputs go from each player straight to each other and are not signed, so some questions have no sure answer:
// - A player that stops sending stops the match after a window. advice.must_wait says so; the caller ends the match.
// - With three or more players a player whose state differs from that of most players is named. With two, or without
//   a majority, nobody can say which state is right.
// - A player that tells two players different inputs splits the match. Digests of all inputs travel with the hashes, so
//   both find that the inputs of that player differ, and name it, with the other as witness. A witness could lie: it
//   can accuse a player falsely, but only with a hash of its own that differs from the others'.
// - A player that copies the hashes of the others is not found: a hash finds machines that differ, not cheats.

#include "nebula/engine.h"
#include "nebula/hooks.h"
#include "nebula/input.h"
#include "nebula/types.h"

#define NB_NETPLAY_PLAYER_COUNT_MAX 8u

// Ticks ahead of the slowest player where the desc gives none, and at most: a second of 60 Hz.
#define NB_NETPLAY_WINDOW_MAX 64u

// Most ticks between sampling an input and its tick: a quarter of a second, more than a person puts up with.
#define NB_NETPLAY_DELAY_MAX 16u

// Of one message: what every path of the internet carries in one piece.
#define NB_NETPLAY_MESSAGE_BYTES_MAX 1200u

// Ticks for which inputs and hashes are kept: two windows, two delays and a frame of many ticks, as a power of two.
#define NB_NETPLAY_KEEP_COUNT 256u

// A player whose hash of a confirmed tick has not come when so many more are confirmed is silent: two windows, which is
// longer than any hash is on its way where a round trip takes less than a window.
#define NB_NETPLAY_SILENT_TICK_COUNT 128u

// Ticks between two hints of nb_netplay_advice_get to hold back: what the last one has changed must first be seen.
#define NB_NETPLAY_HINT_TICK_COUNT 32u
// Most ticks of one hint: eight frames that stand still are felt less than a jump.
#define NB_NETPLAY_HINT_MAX 8u

typedef struct nb_netplay_desc {
    uint32_t player_count; // 2 to NB_NETPLAY_PLAYER_COUNT_MAX, the same for all
    uint32_t local_player; // which of them plays here
    uint32_t input_delay;  // ticks by which the own input counts later, 0 to NB_NETPLAY_DELAY_MAX: fewer wrong guesses
    uint32_t window;       // ticks that are guessed, at most, 1 to NB_NETPLAY_WINDOW_MAX and to what the engine goes
                           // back in a frame; default: the smaller of both
    uint64_t session;      // a number of the match: messages of another one are refused
    // What the local player does, asked once for each tick, in a tick's begin: the event is zero, and view has the
    // engine's own input and commands of this tick, which reach the tick in no other way. Its time is left out.
    void (*sample)(void *user, const nb_tick_view *view, nb_input_event *event);
    void *user;
    nb_hooks hooks; // zero = defaults
} nb_netplay_desc;

// What to do before the next frame.
typedef struct nb_netplay_advice {
    bool must_wait;           // somebody is too far behind: no tick will run until messages have come
    uint32_t hold_tick_count; // ticks to hold back, because this side is ahead of the others; mostly 0
} nb_netplay_advice;

// Why desync_player of nb_netplay_stats is named.
typedef enum nb_netplay_blame {
    NB_NETPLAY_BLAME_NONE = 0, // it was the first found to differ: no majority, or not all hashes have come yet
    NB_NETPLAY_BLAME_STATE,    // most players have the same other state; it may be the local player
    NB_NETPLAY_BLAME_INPUTS,   // desync_witness has other inputs of it than the local player
    NB_NETPLAY_BLAME_COUNT,
} nb_netplay_blame;

typedef struct nb_netplay_stats {
    uint64_t tick_count;           // run
    uint64_t confirmed_count;      // of them, those that nothing will change any more
    uint64_t in_count;             // messages taken
    uint64_t in_stale_count;       // of them, those without anything new: late, or twice there
    uint64_t in_damaged_count;     // refused: cut, changed, of another version or match
    uint64_t in_foreign_count;     // refused: names another sender, another receiver or another number of players
    uint64_t in_absurd_count;      // refused: what its sender cannot know, or other inputs than before
    uint64_t out_count;            // messages made
    uint64_t out_bytes;            // their bytes
    uint64_t predicted_count;      // inputs that a tick had to guess
    uint64_t mispredicted_count;   // of them, those that were wrong
    uint64_t stall_count;          // frames that ran no tick, because the window was full
    uint64_t compared_count;       // hashes of confirmed ticks that were compared with others'
    bool has_desync;               // a confirmed state differs from another player's:
    uint64_t desync_tick;          // after this tick, and after none before it
    uint32_t desync_player;        // the player that is named
    uint32_t desync_witness;       // by NB_NETPLAY_BLAME_INPUTS: a player that has other inputs of it
    nb_netplay_blame desync_blame; // why it is named
    bool has_lost;                 // a wrong guess could not be put right any more, because the history was too short:
    uint64_t lost_tick;            // this one
    bool has_left; // states were loaded or the tick was set, by nb_engine_load, _set_tick or _rewind: the match is over
                   // here, and the engine goes on by itself
} nb_netplay_stats;

// One of the others.
typedef struct nb_netplay_peer {
    uint64_t known_count;   // ticks up to which its inputs are here
    uint64_t acked_count;   // ticks up to which ours are there
    uint64_t tick_count;    // the newest it has told of itself
    uint64_t hash_count;    // ticks up to which the hashes of its states are here
    uint64_t refused_count; // messages that it sent and that were refused
    uint32_t rtt_ticks;     // there and back, in our ticks; from messages that were not late
    int32_t ahead_ticks;    // by which we are ahead of it; negative: behind
    bool is_silent;         // the last NB_NETPLAY_SILENT_TICK_COUNT confirmed ticks or more have no hash of it
} nb_netplay_peer;

typedef struct nb_netplay nb_netplay;

NB_EXTERN_C_BEGIN

// A desc with every default spelled out; sample is needed.
// Thread: any. Owner: the caller gets a value. Fails: never.
NB_API nb_netplay_desc nb_netplay_desc_default(void);

// Joins an engine to a match that begins with its next tick: adds the module "netplay" and a watch. Where the window is
// full it pauses the engine's loop and forgets ticks that were asked for; it lets the loop go on when messages have
// come. A load, or a rewind to another tick, ends the match for this engine: the log says so, stats.has_left is true,
// and nb_netplay_send is NB_CLOSED. An engine without hashes_ticks plays, but notices no desync, and the others report
// it as silent.
// Thread: the engine's coordinator, between frames. Owner: the caller, until nb_netplay_destroy. Fails:
// NB_ERR_UNSUPPORTED (the engine keeps no history), NB_ERR_RANGE (also: its history is shorter than the window, or has
// no room for a command of each player), NB_ERR_MEMORY, NB_ERR_MISUSE; as nb_engine_watch_add and
// nb_engine_module_attach.
NB_API nb_result nb_netplay_create(nb_engine *engine, const nb_netplay_desc *desc, nb_netplay **out);

// Leaves the match; the engine goes on by itself, or has ended before. NULL is fine.
// Thread: the coordinator, between frames; also inside a callback of another module. Owner: the netplay is gone. Fails:
// NB_BUSY (inside a frame, or the module "netplay" is leaving: try again later), NB_ERR_THREAD.
NB_API nb_result nb_netplay_destroy(nb_netplay *netplay);

// Takes a message that `player` sent, whatever bytes it is. A wrong one is counted and changes nothing; of each player
// the first is logged, then the 2nd, 4th, 8th and so on. What a message brings counts in the next frame's
// NetworkReconciliation.
// Thread: the coordinator. Owner: the bytes are copied. Fails: NB_ERR_RANGE (refused; or, as a mistake, no other
// player), NB_ERR_MISUSE (NULL).
NB_API nb_result nb_netplay_receive(nb_netplay *netplay, uint32_t player, const void *bytes, size_t size_bytes);

// Writes the message for another player as of now: once a tick for each of them is well.
// Thread: the coordinator. Owner: the bytes are the caller's. Fails: NB_ERR_RANGE (no other player; capacity_bytes
// below NB_NETPLAY_MESSAGE_BYTES_MAX), NB_CLOSED (the engine has ended, or has left the match), NB_ERR_MISUSE.
NB_API nb_result nb_netplay_send(nb_netplay *netplay, uint32_t player, void *bytes, size_t capacity_bytes,
                                 size_t *size_bytes);

// What to do before the next frame. A hint to hold back counts as followed: the next one comes later.
// Thread: the coordinator. Owner: the caller gets a value. Fails: zeros, reported, for NULL.
NB_API nb_netplay_advice nb_netplay_advice_get(nb_netplay *netplay);

// The hash of all states after so many ticks, which are confirmed.
// Thread: the coordinator. Owner: *hash is a value. Fails: NB_ERR_RANGE (not confirmed, or more than
// NB_NETPLAY_KEEP_COUNT / 2 ticks ago; not reported), NB_ERR_UNSUPPORTED (the engine hashes none), NB_ERR_MISUSE.
NB_API nb_result nb_netplay_hash_get(const nb_netplay *netplay, uint64_t tick_count, uint64_t *hash);

// How one of the others is seen from here.
// Thread: the coordinator. Owner: *peer is a value. Fails: NB_ERR_RANGE (no other player), NB_ERR_MISUSE.
NB_API nb_result nb_netplay_peer_get(const nb_netplay *netplay, uint32_t player, nb_netplay_peer *peer);

// The numbers of the match; those of going back are nb_engine_rollback_stats.
// Thread: the coordinator. Owner: the caller gets a value. Fails: zeros, reported, for NULL.
NB_API nb_netplay_stats nb_netplay_stats_get(const nb_netplay *netplay);

NB_EXTERN_C_END
