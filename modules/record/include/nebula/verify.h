// SPDX-License-Identifier: MIT
#pragma once

// Verifying recordings: a game that describes itself here is simulated again from a recording, without a window and as
// fast as it goes, and the hash of each tick is compared. Where one differs it is simulated once more, from the key
// state before, to name the tick, the phase, the state, the column and the row. The one rule: a game is made by the
// recording's head and by nothing else, so begin and attach read no file, no clock and no option.
//
//     static nb_result begin(const nb_record_head *head, nb_engine_desc *desc, void **user) {
//         desc->is_headless = true; // seed and tick rate are there already
//         return head->config_bytes == 0 ? NB_OK : NB_ERR_UNSUPPORTED;
//     }
//     static nb_result attach(void *user, nb_engine *engine) { return my_game_attach(engine); }
//     nb_replay_game game = {.name = "planet", .begin = begin, .attach = attach};
//     nb_replay *replay = NULL;
//     nb_verify_report report;
//     if (nb_replay_open("match.nbr", NULL, &replay) != NB_OK) return 1;
//     if (nb_replay_verify(replay, &game, NULL, &report) == NB_OK) printf("%s\n", report.text);
//     nb_replay_close(replay);

#include "nebula/compare.h"
#include "nebula/engine.h"
#include "nebula/hooks.h"
#include "nebula/record.h"
#include "nebula/replay.h"
#include "nebula/types.h"

// What a library that nebula-replay loads has: `const nb_replay_game *nebula_replay_game(void);`.
#define NB_REPLAY_GAME_FUNCTION "nebula_replay_game"

// Room for one line: the text of a difference, names, and the words between them.
#define NB_VERIFY_TEXT_SIZE 2048

// A game, described once for all its recordings.
typedef struct nb_replay_game {
    const char *name;     // as in the head of its recordings; NULL or "" = any
    const char *build_id; // of this build, to be noted where the recording has another; NULL = not compared
    // Fills the desc by the recording: seed and tick rate are set, clock, workers, hashes and hooks are the verifier's.
    // *user is handed to the other two. Called anew for each engine; may be NULL.
    nb_result (*begin)(const nb_record_head *head, nb_engine_desc *desc, void **user);
    // Adds modules, tables and states, and what is there before tick 0.
    nb_result (*attach)(void *user, nb_engine *engine);
    void (*end)(void *user); // after the engine is gone, also where attach failed, not where begin did; may be NULL
} nb_replay_game;

typedef enum nb_verdict {
    NB_VERDICT_NONE = 0,
    NB_VERDICT_SAME,              // every hash is the recorded one
    NB_VERDICT_DIVERGED,          // this build computes another state, each time
    NB_VERDICT_NOT_DETERMINISTIC, // two runs of this build differ
    NB_VERDICT_OTHER_GAME,        // recorded by another one: nothing was simulated
    NB_VERDICT_OTHER_LAYOUT,      // recorded with other states: nothing was simulated
    NB_VERDICT_NO_START,          // the first tick is not 0, and there is no key state to begin with
    NB_VERDICT_NO_HASHES,         // simulated, but the recording has nothing to compare with
    NB_VERDICT_COUNT,
} nb_verdict;

// In nb_verify_report.notes.
#define NB_VERIFY_OTHER_BUILD 1u   // the recording has another build id
#define NB_VERIFY_RECORDING_CUT 2u // it was cut, damaged or ended early: verified up to its last whole block

typedef struct nb_verify_desc {
    uint32_t worker_count; // as in nb_scheduler_desc: 0 = the machine's, NB_WORKER_COUNT_NONE = none
    uint64_t from_tick;    // where to begin: at the last key state at or before; 0 = at the start
    uint64_t until_tick;   // the tick before which to end; 0 = the end
    // Called up to a hundred times while ticks are compared, and at the end; may be NULL. The replay is not its to use.
    void (*progress)(void *user, uint64_t done_count, uint64_t total_count);
    void *user;
    nb_hooks hooks; // of the engines, too
} nb_verify_desc;

typedef struct nb_verify_report {
    nb_verdict verdict;
    uint32_t notes;          // NB_VERIFY_*
    uint64_t from_tick;      // the first that was simulated
    uint64_t tick_count;     // simulated by the first run
    uint64_t compared_count; // of them, those with a hash on both sides
    uint64_t hash;           // of all states after the last one
    // Of DIVERGED and NOT_DETERMINISTIC:
    uint64_t tick;  // the first whose hash differs
    nb_phase phase; // in which the states became others; NONE = before the first tick; FIXED_SIM also where not known
    char provider[NB_PROVIDER_NAME_SIZE_MAX + 1]; // the first state that differs; "" = neither recorded nor found
    char table[NB_PROVIDER_NAME_SIZE_MAX + 1];    // of the world; "" = not known
    char column[NB_PROVIDER_NAME_SIZE_MAX + 1];   // the first that differs; "" = which rows there are, or not known
    uint32_t column_count;                        // columns that differ after that tick; 0 = not known
    // The row, between two states: this build "here" and the recording "there"; of NOT_DETERMINISTIC the first and the
    // second run, of another phase than FixedSim before and after it. Kind NONE = not known.
    nb_difference difference;
    uint64_t difference_tick; // those states are before this tick, later than `tick` where only the next key shows it
    char text[NB_VERIFY_TEXT_SIZE]; // all of it in one line
} nb_verify_report;

// In what two recordings differ first.
typedef enum nb_replay_diff_kind {
    NB_REPLAY_DIFF_NONE = 0, // in nothing
    NB_REPLAY_DIFF_START,    // they begin with different ticks
    NB_REPLAY_DIFF_END,      // one ends before `tick`
    NB_REPLAY_DIFF_INPUT,
    NB_REPLAY_DIFF_COMMANDS,
    NB_REPLAY_DIFF_HASH, // the same went in
    NB_REPLAY_DIFF_COUNT,
} nb_replay_diff_kind;

typedef struct nb_replay_diff {
    nb_replay_diff_kind kind;
    uint64_t tick;       // of the difference
    uint64_t tick_count; // that are the same
    // Of HASH, as in nb_verify_report, where a game told the names; the first recording is "here", the second "there".
    char provider[NB_PROVIDER_NAME_SIZE_MAX + 1];
    char table[NB_PROVIDER_NAME_SIZE_MAX + 1];
    char column[NB_PROVIDER_NAME_SIZE_MAX + 1];
    uint32_t column_count;
    nb_difference difference; // at the next key state that both have; kind NONE = not known
    uint64_t difference_tick;
    char text[NB_VERIFY_TEXT_SIZE]; // all of it in one line
} nb_replay_diff;

NB_EXTERN_C_BEGIN

// A desc with every default spelled out.
// Thread: any. Owner: the caller gets a value. Fails: never.
NB_API nb_verify_desc nb_verify_desc_default(void);

// What a verdict means, in one line.
// Thread: any. Owner: the library; it never changes. Fails: "" for what is no verdict.
NB_API const char *nb_verdict_text(nb_verdict verdict);

// Simulates the recording again and compares. NB_OK: *out says what came of it, whatever that is. desc may be NULL.
// Afterwards the replay is at its beginning.
// Thread: the replay's; it becomes the coordinator of the engines. Owner: unchanged; *out is a value, written on NB_OK
// alone. Fails: NB_BUSY (the replay is attached), NB_ERR_RANGE (from_tick or until_tick is not recorded, a block or a
// key state was forged), NB_ERR_MEMORY, NB_ERR_OS, NB_CANCELLED (the game does not run on), NB_ERR_MISUSE, what begin
// and attach returned.
NB_API nb_result nb_replay_verify(nb_replay *replay, const nb_replay_game *game, const nb_verify_desc *desc,
                                  nb_verify_report *out);

// Compares two recordings tick by tick. A game, which may be NULL or another one, is made to tell the names of states,
// columns and rows; it is not run. desc (workers and hooks of it) may be NULL. Afterwards both are at their beginning.
// Thread: the replays'. Owner: unchanged; *out is a value, written on NB_OK alone. Fails: NB_ERR_RANGE (a block was
// forged), NB_ERR_MEMORY, NB_ERR_OS, NB_ERR_MISUSE, NB_BUSY (one is attached), what begin and attach returned.
NB_API nb_result nb_replay_compare(nb_replay *here, nb_replay *there, const nb_replay_game *game,
                                   const nb_verify_desc *desc, nb_replay_diff *out);

NB_EXTERN_C_END
