// SPDX-License-Identifier: MIT
#pragma once

// What the files of the recorder share. recorder.c is the frame's side, recorder_write.c the thread that compresses and
// writes, recorder_attach.c what an engine feeds it with, recorder_window.c ticks that wait because they may change.
//
// Blocks and key states are buffers made at creation. A buffer is the frame's while is_busy is 0, the writer's while it
// is 1; it goes over with a message to the writer's mailbox, which has room for one of each buffer, and comes back by
// the release store of 0.

#include "nebula/atomic.h"
#include "nebula/record.h"
#include "nebula/report.h"
#include "nebula/service.h"

#include "compress.h"
#include "file.h"
#include "recording_format.h"

// One that is written and one that is filled: a key state that comes sooner is late.
#define NBI_KEY_SLOT_COUNT 2u

typedef struct nbi_batch {
    unsigned char *bytes; // desc.block_bytes
    size_t used_bytes;
    uint64_t first_tick;
    uint32_t tick_count;
    nb_atomic_u32 is_busy;
} nbi_batch;

typedef struct nbi_key_slot {
    unsigned char *bytes;  // of the state
    unsigned char *packed; // what it becomes: NBI_BLOCK_BYTES and then nbi_compress_bound(capacity_bytes)
    size_t capacity_bytes, used_bytes;
    uint64_t tick;
    nb_atomic_u32 is_busy;
} nbi_key_slot;

typedef enum nbi_message_kind {
    NBI_MESSAGE_TICKS = 1, // batches[index]
    NBI_MESSAGE_KEY,       // keys[index]
    NBI_MESSAGE_STOP,      // the recording ends here: index is the nb_record_stop
} nbi_message_kind;

typedef struct nbi_message {
    uint32_t kind;
    uint32_t index;
} nbi_message;

// The writer's own.
typedef struct nbi_writer {
    nbi_file_ops ops;
    nbi_file file; // where there is a path
    nbi_compress compress;
    unsigned char *head; // bytes of the file's head
    size_t head_bytes;
    uint64_t head_hash;
    unsigned char *packed; // a block as it is written
    size_t packed_bytes;
    uint64_t next_tick, number;
    bool has_tick;    // next_tick is known
    bool has_stopped; // an error block was written
} nbi_writer;

// Ticks that may still be put right: of an engine that keeps a history.
typedef struct nbi_window {
    unsigned char *memory; // of the cells, each with a tick as it will be written
    size_t cell_bytes;
    uint32_t limit; // cells; 0 = no tick waits
    uint32_t count; // of them that are used, from tick `first` on
    uint64_t first;
    nbi_key_slot *key; // that waits for the ticks before key_tick; NULL = none
    uint64_t key_tick;
    size_t key_bytes;
} nbi_window;

struct nb_recorder {
    nb_recorder_desc desc;   // resolved; head's texts are in writer.head
    nbi_recording_name name; // what messages call it
    bool is_attached;        // an engine pushes; never changes
    nb_hooks hooks;
    nb_throttle throttle; // of mistakes that frames repeat
    nb_services *services;
    nb_service *service;
    nbi_writer writer;
    uint64_t close_ns;

    // The frame's side.
    nbi_batch *batches; // desc.queue_count
    unsigned char *memory;
    size_t memory_bytes; // of all batches
    nbi_key_slot keys[NBI_KEY_SLOT_COUNT];
    uint32_t key_next;  // slot to try first: in turn, so that each has its memory after the first few key states
    nbi_batch *filling; // NULL = none
    uint64_t next_tick;
    bool has_tick;      // next_tick is known
    uint64_t last_hash; // of the tick before next_tick
    nb_recorder_stats stats;

    // Attached.
    nb_engine *engine;
    nb_store *world;        // of the engine, where desc.hashes_states; NULL = it has none
    nb_record_hash *hashes; // NB_RECORD_HASH_COUNT_MAX, where desc.hashes_states
    uint64_t next_key_tick; // UINT64_MAX: no more
    nbi_window window;

    // Written by the writer, read by the frame's side.
    nb_atomic_u32 result; // nb_result
    nb_atomic_u64 block_count, raw_bytes, file_bytes;
    nb_atomic_u64 unwritten_count; // ticks that came over and that the file does not have
};

// What reports name: the function that the user called.
static inline const char *nbi_recorder_opened_by(bool is_attached) {
    return is_attached ? "nb_recorder_attach" : "nb_recorder_create";
}
static inline const char *nbi_recorder_pushed_by(const nb_recorder *recorder) {
    return recorder->is_attached ? "nb_engine_frame" : "nb_recorder_push";
}

// --- recorder.c ---

// A recorder that is not attached, with files of its own.
nb_result nbi_recorder_create(const nb_recorder_desc *desc, const nbi_file_ops *ops, bool is_attached,
                              nb_recorder **out);

// A key slot with room for size_bytes, or NULL with *result set: NB_BUSY, NB_ERR_MEMORY, NB_ERR_RANGE.
nbi_key_slot *nbi_recorder_key_begin(nb_recorder *recorder, size_t size_bytes, nb_result *result);

// Hands it over: the state before `tick`.
nb_result nbi_recorder_key_end(nb_recorder *recorder, nbi_key_slot *slot, uint64_t tick, size_t size_bytes);

// Adds a tick that nbi_tick_write wrote.
nb_result nbi_recorder_push_cell(nb_recorder *recorder, uint64_t index, const unsigned char *cell);

// A tick that is in the recording runs again: where it comes to another state the recording ends.
void nbi_recorder_repeat(nb_recorder *recorder, const nb_record_tick *tick);

// The tick of this index begins another run: the recording ends before next_tick.
void nbi_recorder_jump(nb_recorder *recorder, uint64_t index);

// --- recorder_window.c ---

// Memory for the ticks that an engine may simulate again; freed by nbi_window_end.
nb_result nbi_window_create(nb_recorder *recorder, const nb_engine_desc *engine, uint32_t hash_count);
void nbi_window_end(nb_recorder *recorder);

// A tick begins, has ended, was simulated again.
void nbi_window_begin(nb_recorder *recorder, const nb_tick_view *view);
void nbi_window_add(nb_recorder *recorder, const nb_tick_view *view);
void nbi_window_change(nb_recorder *recorder, const nb_tick_view *view);

// Writes all that waits.
void nbi_window_write(nb_recorder *recorder);

// --- recorder_write.c ---

nb_result nbi_writer_run(nb_service *service, void *user);

// --- recorder_attach.c ---

// NB_BUSY: inside a frame.
nb_result nbi_recorder_detach(nb_recorder *recorder);
