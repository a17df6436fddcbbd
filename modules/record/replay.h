// SPDX-License-Identifier: MIT
#pragma once

// What the files of the replay share: replay.c finds blocks and unpacks ticks, replay_attach.c feeds an engine.

#include "nebula/replay.h"
#include "nebula/report.h"

#include "compress.h"
#include "recording_format.h"

// A whole block. Smaller than the 64 bytes that each has in the file.
typedef struct nbi_entry {
    uint64_t first_tick;
    uint32_t tick_count; // 0: a key state
    uint32_t reserved;
    size_t at; // of what is stored
    uint64_t raw_bytes, stored_bytes;
} nbi_entry;

NB_STATIC_ASSERT(sizeof(nbi_entry) < NBI_BLOCK_BYTES, "the list is smaller than the file");

struct nb_replay {
    nb_replay_desc desc; // resolved
    nb_hooks hooks;
    nbi_recording_name name; // what messages call it
    nb_throttle throttle;    // of reports that frames repeat
    const unsigned char *bytes;
    size_t size_bytes;
    unsigned char *own; // the bytes, where a file was read
    size_t own_bytes;
    nbi_head head;
    nb_replay_info info;
    char build_id[NB_RECORD_TEXT_SIZE_MAX + 1], game_name[NB_RECORD_TEXT_SIZE_MAX + 1];
    nbi_entry *entries; // by first tick
    uint32_t entry_count, entry_capacity;
    nbi_compress compress;

    // The block that is unpacked.
    unsigned char *block;
    size_t block_capacity_bytes, block_bytes, block_at;
    uint64_t block_next; // the tick at block_at
    uint32_t block_left; // ticks from there on
    nb_input_event *events;
    size_t event_capacity;
    nb_record_hash hashes[NB_RECORD_HASH_COUNT_MAX];
    uint64_t next_tick;

    // Attached.
    nb_engine *engine;
    nb_record_tick fed; // to the tick that runs
    bool is_fed;
    nb_replay_check check;
    char state_name[NB_PROVIDER_NAME_SIZE_MAX + 1];
};

// A mistake of the caller, which frames may repeat.
#define NBI_REPLAY_FAIL(replay, result, format, ...)                                                                 \
    nb_report_throttled(&(replay)->hooks, &(replay)->throttle, 0, true, NB_ITEM_RECORD_ARGUMENT, (result), __func__, \
                        "recording %s: " format, (replay)->name.text, __VA_ARGS__)

// The same for a tick that is not recorded.
#define NBI_REPLAY_FAIL_TICK(replay, tick)                                                              \
    NBI_REPLAY_FAIL((replay), NB_ERR_RANGE, "tick %llu is not in it; it has %llu ticks from tick %llu", \
                    (unsigned long long)(tick), (unsigned long long)(replay)->info.tick_count,          \
                    (unsigned long long)(replay)->info.first_tick)

// A key state that was unpacked.
typedef struct nbi_key {
    uint64_t tick;
    unsigned char *bytes; // of the replay's hooks
    size_t size_bytes;
} nbi_key;

// The last key state at or before a tick. NB_EMPTY: there is none; else fails as nb_replay_load.
nb_result nbi_replay_key_take(nb_replay *replay, uint64_t tick, const char *function, nbi_key *key);

// Lets the engine go on from the last key state at or before a tick, *key_tick. Fails as nbi_replay_key_take and
// nb_engine_load; nothing has changed then.
nb_result nbi_replay_restore(nb_replay *replay, nb_engine *engine, uint64_t tick, uint64_t *key_tick);

// The first key state at or behind a tick. NB_EMPTY: there is none; else fails as nb_replay_load.
nb_result nbi_replay_key_next(nb_replay *replay, uint64_t tick, nbi_key *key);

// Makes the recorded tick of the view's index its input; replay->fed is that tick. NB_EMPTY: it was not recorded. Fails
// as nb_replay_next.
nb_result nbi_replay_feed(nb_replay *replay, nb_tick_view *view);

// NB_BUSY: inside a frame.
nb_result nbi_replay_detach(nb_replay *replay);
