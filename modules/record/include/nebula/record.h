// SPDX-License-Identifier: MIT
#pragma once

// Recordings: what went into each tick, and what came out of it as a hash, in a file that can be replayed; with whole
// saved states now and then, to begin from. A thread of its own compresses and writes. The one rule: the frame never
// waits; where the disk is too slow for that the recording ends there, and says so, rather than have a gap.
//
//     nb_recorder *recorder = NULL;
//     nb_recorder_desc desc = nb_recorder_desc_default();
//     desc.path = "match.nbr";
//     desc.head.game_name = "planet";
//     if (nb_recorder_attach(engine, &desc, &recorder) != NB_OK) return 1;
//     nb_engine_run_ticks(engine, 600); // ten seconds, recorded
//     if (nb_recorder_destroy(recorder) != NB_OK) printf("the recording is not whole\n");
//
// What a crash loses: the block being filled and the full blocks that still wait for the writer. With the defaults that
// is usually half a second, and never more than queue_count blocks of block_ticks ticks (four seconds). An engine that
// keeps a history also loses the ticks that a rollback may still change. A loss of power also loses blocks that the
// operating system has not yet written: set is_synced to flush each block. The rest of the file stays readable.

#include "nebula/engine.h"
#include "nebula/hooks.h"
#include "nebula/input.h"
#include "nebula/loop.h"
#include "nebula/types.h"

// Of the file format. A reader takes no other: a recording is bound to its build anyway.
#define NB_RECORD_VERSION 1u

// Longest build id and game name in bytes, without the final zero.
#define NB_RECORD_TEXT_SIZE_MAX 255u

// Config bytes in a file's head: what a game needs to be set up the same way again.
#define NB_RECORD_CONFIG_BYTES_MAX (1u << 20)

// Memory of one block before it is compressed, where the desc gives none: half a second of ticks with 270 events each.
// The most is what a reader needs at most.
#define NB_RECORD_BLOCK_BYTES_DEFAULT ((size_t)256 << 10)
#define NB_RECORD_BLOCK_BYTES_MAX ((size_t)16 << 20)
#define NB_RECORD_BLOCK_BYTES_MIN ((size_t)1 << 10)

// Default ticks per block: half a second at 60 Hz. A crash may lose each block that is not written yet.
#define NB_RECORD_BLOCK_TICKS_DEFAULT 30u
#define NB_RECORD_BLOCK_TICKS_MAX 65536u

// Blocks between the frame and the writer where the desc gives none: four seconds of a disk that stands still.
#define NB_RECORD_QUEUE_COUNT_DEFAULT 8u
#define NB_RECORD_QUEUE_COUNT_MAX 256u

// Ticks between key states where the desc gives none: seeking replays five seconds on average.
#define NB_RECORD_KEY_TICKS_DEFAULT 600u
#define NB_RECORD_KEY_TICKS_NEVER UINT64_MAX

// Largest key state or save.
#define NB_RECORD_STATE_BYTES_MAX ((size_t)1 << 30)

// Single hashes of one tick: all states that there may be, and the columns of a large world. What nb_recorder_attach
// finds beyond is left out.
#define NB_RECORD_HASH_COUNT_MAX 4096u

// How long nb_recorder_destroy waits for the writer.
#define NB_RECORD_CLOSE_NS UINT64_C(5000000000)

// What is known before the first tick.
typedef struct nb_record_head {
    const char *build_id;  // of the program; NULL = ""
    const char *game_name; // NULL = ""
    nb_rate tick_rate;     // num 0: 60; nb_recorder_attach takes the engine's
    uint64_t seed;         // nb_recorder_attach takes the engine's
    uint64_t layout_hash;  // nb_recorder_attach takes that of the engine's states
    const void *config;    // may be NULL
    size_t config_bytes;   // up to NB_RECORD_CONFIG_BYTES_MAX
} nb_record_head;

// The hash of one state, or of one part of the world, after a tick.
typedef struct nb_record_hash {
    // nb_hash64 with seed 0 of the state's name; of "world/table" for which rows a table has, and of
    // "world/table.column" for a column.
    uint64_t name_hash;
    uint64_t hash;
} nb_record_hash;

// One tick of a recording.
typedef struct nb_record_tick {
    uint64_t index;
    nb_input_view input;          // up to NB_INPUT_COUNT_LIMIT
    nb_input_view commands;       // up to NB_COMMAND_COUNT_MAX
    uint64_t hash;                // of all states after it; 0 = not known
    const nb_record_hash *hashes; // of single states and columns; may be NULL
    uint32_t hash_count;          // up to NB_RECORD_HASH_COUNT_MAX
} nb_record_tick;

// Why a recording ends before it was closed.
typedef enum nb_record_stop {
    NB_RECORD_STOP_NONE = 0,
    NB_RECORD_STOP_QUEUE_FULL, // the writer was too slow
    NB_RECORD_STOP_TOO_LARGE,  // a tick did not fit into a block
    NB_RECORD_STOP_WRITE,      // the disk is full, or another failure of writing; nothing in the file says so
    NB_RECORD_STOP_REWOUND,    // nb_engine_rewind went back behind what is written, and what followed is other
    NB_RECORD_STOP_JUMPED,     // another run began: states were loaded, or nb_engine_set_tick was called
    NB_RECORD_STOP_COUNT,
} nb_record_stop;

// Where the bytes go instead of a file; called in the writer's thread.
typedef struct nb_record_sink {
    nb_result (*write)(void *user, const void *bytes, size_t size_bytes); // all of them, or a failure
    nb_result (*sync)(void *user); // what was written is to survive from now on; NULL = nothing to do
    void *user;
} nb_record_sink;

typedef struct nb_recorder_desc {
    const char *path;     // of the file, which is overwritten; a FIFO or a socket is refused (use sink); or
    nb_record_sink sink;  // with write set, and no path
    nb_record_head head;  // copied
    size_t block_bytes;   // NB_RECORD_BLOCK_BYTES_MIN to _MAX; nb_recorder_attach takes at least what a tick may need
    uint32_t block_ticks; // up to NB_RECORD_BLOCK_TICKS_MAX
    uint32_t queue_count; // blocks, 2 to NB_RECORD_QUEUE_COUNT_MAX
    uint64_t key_ticks;   // between key states, for nb_recorder_attach; NB_RECORD_KEY_TICKS_NEVER = none
    int level;            // of zstd, 1 to 19; 0 = 3
    bool is_synced;       // every block is flushed to the disk when it is written, not only the last
    bool hashes_states;   // nb_recorder_attach records the hash of each state, and of each simulated column of the
                          // world, after each tick, not only that of all: what diverged can be named
    // Called from the writer's thread too, and from there without a caller's doing.
    nb_hooks hooks;
} nb_recorder_desc;

typedef struct nb_recorder_stats {
    uint64_t tick_count;       // taken
    uint64_t lost_count;       // that the file does not have because the recording ended early: refused, or taken and
                               // not written any more
    uint64_t repeat_count;     // ticks that are written and ran again, which nb_recorder_attach leaves out
    uint64_t key_count;        // key states taken
    uint64_t key_late_count;   // ticks by which key states came late because the writer was busy with earlier ones
    uint64_t block_count;      // written
    uint64_t raw_bytes;        // written, before compression
    uint64_t file_bytes;       // written
    uint64_t queue_peak_count; // most blocks that waited for the writer
    nb_record_stop stop;
    nb_result result; // of writing: NB_OK, or the first failure
} nb_recorder_stats;

typedef struct nb_recorder nb_recorder;

NB_EXTERN_C_BEGIN

// A desc with every default spelled out; a path or a sink is left for the caller.
// Thread: any. Owner: the caller gets a value. Fails: never.
NB_API nb_recorder_desc nb_recorder_desc_default(void);

// Begins a recording that is fed by nb_recorder_push.
// Thread: any; then one at a time. Owner: the caller, until nb_recorder_destroy. Fails: NB_ERR_MEMORY, NB_ERR_OS (the
// file cannot be made, or no thread), NB_ERR_RANGE, NB_ERR_MISUSE (neither or both of path and sink).
NB_API nb_result nb_recorder_create(const nb_recorder_desc *desc, nb_recorder **out);

// Begins a recording of every tick that the engine runs from now on, with key states. Where the engine has the hashes
// of ticks (desc.hashes_ticks) they are part of it. The heap is needed for the first key state, and when states grow.
// Of an engine that keeps a history the newest ticks, as many as can be simulated again, are written when their input
// is certain, and of key states one at a time waits with them; a state that was sent (nb_context_correct_state) is no
// input, and a replay diverges there.
// Thread: the engine's coordinator, between frames, when all states and tables are there. Owner: the caller, until
// nb_recorder_destroy, which has to come before the engine's end. Fails: as nb_recorder_create and nb_engine_watch_add.
NB_API nb_result nb_recorder_attach(nb_engine *engine, const nb_recorder_desc *desc, nb_recorder **out);

// Adds a tick. The first one may have any index, the others follow it without gaps. Never blocks; no heap. Where the
// recording ends early the log says so once, with the cause; the tick that meets the end gets the cause as its result,
// and each later one NB_CLOSED, whatever its index.
// Thread: the recorder's. Owner: everything is copied. Fails: NB_FULL (the writer is too slow: the recording has ended,
// with an error block), NB_CLOSED (it had ended before), NB_ERR_OS (writing has failed), NB_ERR_RANGE (it does not fit
// into a block: as NB_FULL), NB_ERR_MISUSE (another index, counts above the limits, events without memory).
NB_API nb_result nb_recorder_push(nb_recorder *recorder, const nb_record_tick *tick);

// Adds a key state: what nb_states_save gave after the newest tick, or before the first, whose index is then `tick`.
// The heap is needed where it is larger than those before.
// Thread: the recorder's. Owner: the bytes are copied. Fails: NB_BUSY (the writer has two already: later),
// NB_ERR_MEMORY (the recording goes on without it), NB_ERR_RANGE (too large), NB_ERR_MISUSE (another tick), NB_CLOSED,
// NB_ERR_OS.
NB_API nb_result nb_recorder_push_state(nb_recorder *recorder, uint64_t tick, const void *bytes, size_t size_bytes);

// Hands the block being filled to the writer, which writes it soon after: call it before something that may crash.
// Ticks whose input may still change are kept.
// Thread: the recorder's. Owner: unchanged. Fails: NB_CLOSED, NB_ERR_OS, NB_ERR_MISUSE.
NB_API nb_result nb_recorder_flush(nb_recorder *recorder);

// Counters since the beginning; those of writing are a moment old.
// Thread: the recorder's. Owner: the caller gets a value. Fails: zeros for NULL.
NB_API nb_recorder_stats nb_recorder_stats_get(const nb_recorder *recorder);

// Writes what is left and the end, closes the file and frees the recorder. NULL is fine.
// Thread: the recorder's; of an attached one the coordinator, between frames. Owner: the recorder ends, but where
// NB_BUSY says that the writer hangs, or a frame runs: then the call may be made again. Fails: NB_BUSY, NB_FULL (it had
// ended early), NB_ERR_RANGE (the same, for a tick too large, a past that was changed or ticks left out), NB_ERR_OS and
// what a sink returned (writing has failed).
NB_API nb_result nb_recorder_destroy(nb_recorder *recorder);

NB_EXTERN_C_END
