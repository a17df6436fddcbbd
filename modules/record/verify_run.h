// SPDX-License-Identifier: MIT
#pragma once

// One simulation of a recording: an engine of the game, fed by the replay, its hashes compared. verify.c makes one for
// the whole recording, and another one, with probes in all phases, to find out where it diverged.

#include "nebula/verify.h"

#include "replay.h"
#include "tick_hashes.h"

// A saved state.
typedef struct nbi_saved {
    unsigned char *bytes;
    size_t size_bytes, capacity_bytes;
} nbi_saved;

// No tick: beyond all that are recorded.
#define NBI_TICK_NONE UINT64_MAX

typedef struct nbi_run {
    nb_replay *replay;
    const nb_replay_game *game;
    nb_verify_desc desc; // resolved
    nb_engine *engine;
    nb_store *world; // NULL = the game has none
    void *user;      // the game's
    bool has_begun;
    bool is_idle; // made for its names: no state, no ticks
    nb_clock_manual clock;
    nb_result result; // what went wrong inside ticks

    uint64_t from_tick; // where it began
    uint64_t tick_count, compared_count;
    uint64_t hash;      // of all states after the newest tick
    uint64_t same_tick; // up to where it was the recorded one: behind the newest tick with the same hash
    bool stops;         // at the first divergence
    bool has_diverged;
    uint64_t diverged_tick;
    nbi_hash_location location; // where, by the recorded hashes
    uint64_t keep_tick;         // the state after this tick is kept, or after the divergence that stops it
    nbi_saved kept;

    // Probes: what is not to change but in ticks.
    bool is_probing;
    nbi_saved before; // the state after the newest tick, or at the beginning
    uint64_t before_hash;
    bool has_leak;       // it changed elsewhere:
    uint64_t leak_tick;  // before this tick
    nb_phase leak_phase; // in this phase
    nb_difference leak;  // here
} nbi_run;

// --- verify_run.c ---

// Makes the engine, with the last key state at or before `tick`; tick 0 is the game's own beginning. NB_EMPTY: the
// recording and the game do not fit, as *why says. Else fails as nb_replay_verify.
nb_result nbi_run_open(const nbi_run *made, uint64_t tick, nbi_run **out, nb_verdict *why);

// Simulates until `tick` is the next one, or a divergence stops it.
nb_result nbi_run_to(nbi_run *run, uint64_t tick);

// Saves the states of now.
nb_result nbi_run_save(nbi_run *run, nbi_saved *saved);

// Ends the engine, and leaves what was saved. NB_BUSY: the game's jobs do not end; nothing is freed.
nb_result nbi_run_end(nbi_run *run);
void nbi_run_free(nbi_run *run);

// --- verify.c ---

// Whether the recording is one of this game, by its name.
bool nbi_game_fits(const nb_replay_game *game, const nb_replay *replay);

// --- verify_find_row.c ---

// Whether a difference is not in this column, where one is known.
bool nbi_row_is_of_other_column(const nb_difference *difference, const char *table_name, const char *column_name);

// The first row of a column in which the state that was kept is not that of the key; changes the run's states and what
// it has kept. NB_EMPTY: it has no such column, the same rows in it, or other rows altogether. Else fails as
// nb_states_compare and nb_states_load.
nb_result nbi_row_find(nbi_run *run, const char *table_name, const char *column_name, const nbi_key *key,
                       nb_difference *out);

// --- verify_find_phase.c ---

// Attaches the probes, around all modules of the game. Where there is no room for two more there are none.
nb_result nbi_probes_attach(nbi_run *run);

// Takes the states of now for what is not to change until the next tick.
void nbi_probes_note(nbi_run *run);
