// SPDX-License-Identifier: MIT
#pragma once

// Reading recordings, from a file or from memory, whatever bytes are in there: tick by tick, or from the key state
// nearest to a tick. The one rule: a recording that was cut or damaged is read up to its last whole block, and info.end
// says so; nothing behind a wrong byte is handed out.
//
//     nb_replay *replay = NULL;
//     if (nb_replay_open("match.nbr", NULL, &replay) != NB_OK) return 1;
//     nb_replay_info info = nb_replay_info_get(replay);
//     printf("%s, %llu ticks, %s\n", info.head.game_name, (unsigned long long)info.tick_count, info.reason);
//     nb_record_tick tick;
//     while (nb_replay_next(replay, &tick) == NB_OK) printf("%u events\n", (unsigned)tick.input.count);
//     nb_replay_close(replay);
//
// Memory: the file, what its blocks are listed in (less than the file), one block (NB_RECORD_BLOCK_BYTES_MAX) and
// zstd's context; a key state is unpacked into the caller's memory.

#include "nebula/hooks.h"
#include "nebula/record.h"
#include "nebula/state.h"
#include "nebula/types.h"

// Largest file where the desc gives none: some days of ticks.
#define NB_REPLAY_FILE_BYTES_DEFAULT (UINT64_C(1) << 30)

// Largest key state or save that is unpacked where the desc gives none: a forged file of some bytes can claim any size.
#define NB_REPLAY_STATE_BYTES_DEFAULT ((size_t)256 << 20)

typedef enum nb_replay_end {
    NB_REPLAY_END_NONE = 0,
    NB_REPLAY_END_WHOLE,   // closed as it should be
    NB_REPLAY_END_STOPPED, // the recorder had to end it early: info.stop says why
    NB_REPLAY_END_CUT,     // no end: the program or the machine crashed, or it is still being written
    NB_REPLAY_END_DAMAGED, // wrong bytes follow
    NB_REPLAY_END_COUNT,
} nb_replay_end;

typedef struct nb_replay_desc {
    uint64_t file_bytes_max; // larger ones are refused
    size_t state_bytes_max;  // larger key states are not loaded by nb_replay_load, whatever a file says
    nb_hooks hooks;
} nb_replay_desc;

typedef struct nb_replay_info {
    nb_record_head head; // strings and config are the replay's
    uint32_t version;    // of the format
    uint64_t first_tick;
    uint64_t tick_count;  // in whole blocks
    uint32_t key_count;   // key states
    uint32_t block_count; // whole blocks
    uint64_t size_bytes;  // of the file
    uint64_t whole_bytes; // of it, up to the end of the last whole block
    nb_replay_end end;
    nb_record_stop stop; // where end is STOPPED
    const char *reason;  // one line about the end; a static string
} nb_replay_info;

// What an attached replay has found.
typedef struct nb_replay_check {
    uint64_t fed_count;      // ticks that got recorded input
    uint64_t compared_count; // of them, those with a hash on both sides
    uint64_t diverged_count; // of them, those with different hashes
    uint64_t diverged_tick;  // the first of them
    const char *state_name;  // the first state, by name, that differed there; "" = not recorded. The replay's
} nb_replay_check;

typedef struct nb_replay nb_replay;

NB_EXTERN_C_BEGIN

// A desc with every default spelled out.
// Thread: any. Owner: the caller gets a value. Fails: never.
NB_API nb_replay_desc nb_replay_desc_default(void);

// Opens a file: reads it, checks its head, and finds its whole blocks by their checksums. desc may be NULL.
// Thread: any; then one at a time. Owner: the caller, until nb_replay_close. Fails: NB_ERR_OS (it cannot be read),
// NB_ERR_UNSUPPORTED (no recording, or of another version), NB_ERR_RANGE (cut in its head, damaged there, too large),
// NB_ERR_MEMORY, NB_ERR_MISUSE. The log says what in one line.
NB_API nb_result nb_replay_open(const char *path, const nb_replay_desc *desc, nb_replay **out);

// The same with bytes in memory, which are not copied.
// Thread: any; then one at a time. Owner: the caller; the bytes stay until nb_replay_close. Fails: as nb_replay_open.
NB_API nb_result nb_replay_open_memory(const void *bytes, size_t size_bytes, const nb_replay_desc *desc,
                                       nb_replay **out);

// Ends a replay, also one that is attached; NULL is fine.
// Thread: the replay's; of an attached one the coordinator, between frames, before the engine's end. Owner: all it
// handed out ends. Fails: NB_BUSY (attached, and a frame runs).
NB_API nb_result nb_replay_close(nb_replay *replay);

// What the file says of itself.
// Thread: the replay's. Owner: strings and config are the replay's. Fails: zeros and empty strings for NULL.
NB_API nb_replay_info nb_replay_info_get(const nb_replay *replay);

// The next tick. NB_EMPTY: there are no more.
// Thread: the replay's. Owner: what *tick points to is the replay's, until the next call of next, seek or close. Fails:
// NB_EMPTY, NB_ERR_RANGE (a block was forged: its checksum is right, its content is not), NB_ERR_MEMORY, NB_ERR_MISUSE.
NB_API nb_result nb_replay_next(nb_replay *replay, nb_record_tick *tick);

// Makes `tick` the next one, first_tick to first_tick + tick_count.
// Thread: the replay's. Owner: ticks handed out end. Fails: NB_ERR_RANGE (not recorded, and as nb_replay_next),
// NB_ERR_MEMORY, NB_ERR_MISUSE.
NB_API nb_result nb_replay_seek(nb_replay *replay, uint64_t tick);

// The last key state at or before a tick: the state before *key_tick runs, and its size. Either may be NULL.
// Thread: the replay's. Owner: nothing. Fails: NB_EMPTY, NB_ERR_MISUSE.
NB_API nb_result nb_replay_key_find(const nb_replay *replay, uint64_t tick, uint64_t *key_tick, size_t *size_bytes);

// Unpacks the key state of exactly this tick, for nb_states_load.
// Thread: the replay's. Owner: the bytes are the caller's. Fails: NB_EMPTY (none there), NB_FULL (more than
// capacity_bytes), NB_ERR_RANGE (forged), NB_ERR_MEMORY, NB_ERR_MISUSE.
NB_API nb_result nb_replay_key_read(nb_replay *replay, uint64_t key_tick, void *bytes, size_t capacity_bytes);

// Loads the last key state at or before a tick, whose memory is on the heap meanwhile, and makes *key_tick the next
// tick: it is the one to simulate first.
// Thread: the replay's and the states'. Owner: unchanged. Fails: as the two above, NB_ERR_RANGE (larger than
// desc.state_bytes_max) and nb_states_load; the states have not changed then.
NB_API nb_result nb_replay_load(nb_replay *replay, uint64_t tick, nb_states *states, uint64_t *key_tick);

// Feeds the engine's ticks from the recording, by index, in the place of its own input and commands, and compares the
// hashes of ticks. Ticks that were not recorded get what they would have had.
// Thread: the engine's coordinator, between frames. Owner: unchanged; nb_replay_close ends it. Fails:
// NB_ERR_UNSUPPORTED (other layouts of states), as nb_engine_watch_add, NB_BUSY (attached already), NB_ERR_MISUSE.
NB_API nb_result nb_replay_attach(nb_replay *replay, nb_engine *engine);

// Brings the engine that the replay is attached to where `tick` is the next one: loads the last key state at or before
// it as nb_engine_load does, and simulates the rest, a frame for each tick. From there on it runs as recorded; nothing
// that waited for the ticks of the run before gets in.
// Thread: the engine's coordinator, between frames. Owner: unchanged. Fails: NB_ERR_MISUSE (not attached to it),
// NB_BUSY (inside a frame), NB_ERR_RANGE (not recorded), NB_EMPTY (no key state before it), NB_CANCELLED (stopped on
// the way), as nb_replay_load and nb_engine_run_ticks.
NB_API nb_result nb_replay_jump(nb_replay *replay, nb_engine *engine, uint64_t tick);

// What the attached replay has found so far.
// Thread: the replay's. Owner: the name is the replay's. Fails: zeros and "" for NULL.
NB_API nb_replay_check nb_replay_check_get(const nb_replay *replay);

NB_EXTERN_C_END
