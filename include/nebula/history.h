// SPDX-License-Identifier: MIT
#pragma once

// History: past ticks of simulated state and their inputs, to go back to one and simulate again. It keeps a copy of the
// state as of the newest saved tick, and for each tick before it only the bytes that the tick changed; of a struct, or
// a column of the world, most of which changes tick by tick, it keeps whole copies, which costs less time. The one
// rule: save after every tick, also after one that was simulated again; what was not saved is forgotten by a rewind.
//
//     static uint32_t score;
//     nb_states *states = NULL;
//     nb_provider_desc state = {.name = "score", .data = &score, .size_bytes = sizeof score};
//     if (nb_states_create(NULL, &states) != NB_OK || nb_states_add(states, &state, NULL) != NB_OK) return 1;
//     nb_history *history = NULL;
//     nb_history_desc desc = {.states = states};
//     if (nb_history_create(&desc, &history) != NB_OK) return 1;
//     nb_history_save(history, 0); // where it begins
//     for (uint64_t tick = 1; tick <= 10; ++tick) {
//         score += 1;
//         nb_history_save(history, tick);
//     }
//     if (nb_history_rewind(history, 4) == NB_OK) printf("after tick 4: %u\n", score);
//     nb_history_destroy(history);
//     nb_states_destroy(states);
//
// To simulate again from tick T: rewind to T; then for each later tick read its input, or set another, run it, save it.
// Handles rewind with the state; incarnations (nb_entity_ref) do not: a row that comes back has the incarnation of its
// own life, a row spawned anew gets a new one. Values of interpolated columns at the tick's start are no simulated
// state: where a rewind changes a block they become those of now. A row that belongs to another life after a rewind has
// zero in its local columns; local tables and local providers stay as they are.

#include "nebula/hooks.h"
#include "nebula/input.h"
#include "nebula/state.h"
#include "nebula/store.h"
#include "nebula/types.h"

// Where the desc says nothing: 17 s at 60 ticks a second, far more than any network is late.
#define NB_HISTORY_TICK_COUNT_DEFAULT 1024u
// A bound for what is kept for each tick, beside what has changed: 56 bytes and room for its input.
#define NB_HISTORY_TICK_COUNT_MAX (1u << 20)

// Where the desc says nothing: hundreds of ticks in which 10,000 entities of 64 bytes change a tenth of their bytes,
// and 75 in which they change all of them: more than a frame simulates again.
#define NB_HISTORY_BYTES_DEFAULT ((size_t)64 << 20)
// One page. From 256 KiB on, whole copies take up to three quarters of the memory as they are made. A tick whose
// changes need more than the rest is NB_FULL.
#define NB_HISTORY_CHANGE_BYTES_MIN ((size_t)4096)

// Where the desc says nothing: a mouse at 1000 Hz sends 17 events in a tick of a sixtieth of a second.
#define NB_HISTORY_INPUT_COUNT_DEFAULT 64u

typedef struct nb_history nb_history;

typedef struct nb_history_desc {
    // What is kept: all providers that are not local, and a world; either may be NULL. Of the world only blocks that
    // were written since the last save are looked at. Where it is also a provider (with the name "world" and itself as
    // `user`, as in an engine), that one is left out; a world that is a provider alone is loaded as from a file, all
    // its rows with new incarnations. Providers with callbacks are saved and loaded as a whole.
    nb_states *states;
    nb_store *world;
    // For changes, taken at creation; more of it keeps more ticks. On top of it come the copy of the newest tick and
    // the inputs: (tick_count_max + 1) * (event_count_max + command_count_max) events, as address space that gets
    // memory as it is used. Here and below 0 is the _DEFAULT above.
    size_t bytes_max;
    // Most ticks to go back, up to NB_HISTORY_TICK_COUNT_MAX; one that is saved again counts as one more. A higher
    // limit never keeps fewer ticks.
    uint32_t tick_count_max;
    uint32_t event_count_max;   // events of one tick's input, up to NB_INPUT_COUNT_LIMIT
    uint32_t command_count_max; // commands of it, the same
    nb_hooks hooks;             // zero = defaults
} nb_history_desc;

// What a tick got from outside.
typedef struct nb_history_input {
    nb_input_view events;
    nb_input_view commands;
} nb_history_input;

typedef struct nb_history_stats {
    bool has_begun;       // a tick was saved; else the ticks below are 0
    uint64_t tick_newest; // whose state is the newest saved one, or the one that was rewound to
    uint64_t tick_oldest; // a rewind goes back to it, and no further
    uint64_t tick_last;   // a rewind goes forward to it: newest, but for what was rewound and not saved anew
    uint64_t save_count;
    uint64_t rewind_count;
    uint64_t refuse_count;    // ticks asked for that were not kept: rewinds, inputs, confirmations
    uint64_t fallen_count;    // records that had to go for newer ones, because bytes_max or tick_count_max was reached
    uint64_t confirmed_count; // records that nb_history_confirm let go
    uint64_t full_count;      // ticks that changed more than there is room for
    uint64_t restart_count;   // all was forgotten: providers came or went, or ticks were left out
    uint64_t changed_bytes;   // by the newest save; where a whole copy was kept, all of it
    size_t used_bytes;        // of changes and whole copies, now
    size_t change_bytes_max;  // what there is for both: bytes_max, rounded down
    size_t copy_bytes;        // of the newest tick; address space of pages, which get memory as they are used
} nb_history_stats;

NB_EXTERN_C_BEGIN

// A desc with every default spelled out: states or world is needed.
// Thread: any. Owner: the caller gets a value. Fails: never.
NB_API nb_history_desc nb_history_desc_default(void);

// Creates an empty history.
// Thread: any; then one at a time. Owner: the caller, until nb_history_destroy; states and world must outlive it.
// Fails: NB_ERR_MEMORY, NB_ERR_MISUSE (NULL, neither states nor world), NB_ERR_RANGE (counts; bytes_max is less than
// NB_HISTORY_CHANGE_BYTES_MIN, or a quarter of all addresses).
NB_API nb_result nb_history_create(const nb_history_desc *desc, nb_history **out);

// Ends a history; the state is as it is. NULL is fine.
// Thread: the history's. Owner: the history is gone. Fails: never.
NB_API void nb_history_destroy(nb_history *history);

// Keeps the state as that after `tick`. The first time any tick will do, and memory is taken; from then on it is the
// newest one + 1, or the newest one itself after a correction. Later ticks that a rewind left are gone. Ticks left out,
// as well as providers that came or went, begin a new history with this tick; in the first case inputs are kept.
// Thread: the history's, while no other writes, between ticks. Owner: nothing. Fails: NB_FULL (the tick changed more
// than there is room for: it is saved, and the oldest one now), NB_ERR_MEMORY (nothing was saved; the first time, and
// where a provider with callbacks has grown), NB_ERR_MISUSE (NULL, an older tick, one beyond
// NB_TICK_COUNT_MAX, inside a tick, a provider that asks for more each time it is asked).
NB_API nb_result nb_history_save(nb_history *history, uint64_t tick);

// Makes the state what it was after `tick`, whatever was written since the last save.
// Thread: the history's, while no other uses the state, between ticks. Owner: nothing. Fails: NB_ERR_RANGE (not kept:
// see nb_history_stats; counted, not reported), NB_ERR_MEMORY, NB_ERR_MISUSE (NULL, inside a tick, a protected world),
// NB_ERR_PERMISSION (nb_store_allow), what a provider's load returned. Nothing has changed then.
NB_API nb_result nb_history_rewind(nb_history *history, uint64_t tick);

// No rewind will go back to before `tick`: the room of what is older is free for newer ones.
// Thread: the history's. Owner: nothing. Fails: NB_ERR_RANGE (newer than the newest; counted, not reported),
// NB_ERR_MISUSE. What is older than the oldest one changes nothing.
NB_API nb_result nb_history_confirm(nb_history *history, uint64_t tick);

// Forgets all ticks and inputs, after other state was loaded; the next save begins anew.
// Thread: the history's. Owner: nothing. Fails: NB_ERR_MISUSE.
NB_API nb_result nb_history_reset(nb_history *history);

// Keeps a tick's input, in place of what was kept for it: what leads from the state saved as `tick` - 1 to that saved
// as `tick`. Any tick later than the oldest one will do, up to one more than the latest that was ever saved.
// Thread: the history's. Owner: events are copied; they may be what nb_history_input_get gave for this tick, events as
// events and commands as commands. Fails: NB_FULL (more than the desc allows; nothing was kept), NB_ERR_RANGE (another
// tick; counted, not reported), NB_ERR_MISUSE (NULL, a count without events).
NB_API nb_result nb_history_input_set(nb_history *history, uint64_t tick, const nb_history_input *input);

// The input that was kept for a tick; rewinds and saves leave it as it is.
// Thread: the history's. Owner: the history; valid until that tick is set or saving has gone past it. Fails: NB_EMPTY
// (none was set), NB_ERR_RANGE (as nb_history_input_set), NB_ERR_MISUSE.
NB_API nb_result nb_history_input_get(nb_history *history, uint64_t tick, nb_history_input *out);

// How far it reaches, and what it had to forget.
// Thread: the history's. Owner: the caller gets a value. Fails: zeros, reported, for NULL.
NB_API nb_history_stats nb_history_stats_get(const nb_history *history);

NB_EXTERN_C_END
