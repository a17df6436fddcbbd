// SPDX-License-Identifier: MIT
#pragma once

// The bytes of a recording. A file is a head and blocks; all integers are little-endian.
//
//   head    0 magic (8)                       8 version (4)             12 size of the head (4)
//          16 layout hash (8)                24 seed (8)                32 ticks a second, num (8)   40 den (8)
//          48 size of the build id (4)       52 of the game's name (4)  56 of the config (4)         60 of an event (4)
//          64 build id, name, config         then the hash of all before (8)
//
//   block   0 magic (4)                       4 kind (4)                 8 first tick (8)
//          16 tick count (4)                 20 why it stopped (4)      24 size of the content (8)
//          32 size as stored (8)             40 hash of what is stored (8)
//          48 number of the block (8)        56 hash of all before (8), with the hash of the head as its seed
//          64 zstd of the content
//
//   tick    0 event count (4)                 4 command count (4)        8 hash (8)
//          16 count of single hashes (4)     20 zero (4)
//          24 events, commands (32 each), single hashes (16 each)
//
// The number and the seed bind a block to its place: blocks that are lost, twice there or from another file do not
// pass. Ticks follow each other without gaps. A key state is what nb_states_save wrote before its tick, and stands
// where that tick follows. The last block is an end or an error block, without content; behind it there is nothing.

#include "nebula/record.h"

#define NBI_HEAD_BYTES 64u
#define NBI_BLOCK_BYTES 64u
#define NBI_TICK_BYTES 24u
#define NBI_EVENT_BYTES 32u
#define NBI_HASH_BYTES 16u
#define NBI_HEAD_BYTES_MAX (NBI_HEAD_BYTES + 2 * NB_RECORD_TEXT_SIZE_MAX + NB_RECORD_CONFIG_BYTES_MAX + 8u)

typedef enum nbi_block_kind {
    NBI_BLOCK_NONE = 0,
    NBI_BLOCK_TICKS,
    NBI_BLOCK_KEY,
    NBI_BLOCK_END,
    NBI_BLOCK_ERROR,
    NBI_BLOCK_KIND_COUNT,
} nbi_block_kind;

typedef struct nbi_block {
    uint32_t kind;
    uint32_t tick_count;
    uint32_t stop; // nb_record_stop of an error block
    uint64_t first_tick;
    uint64_t raw_bytes, stored_bytes;
    uint64_t stored_hash;
    uint64_t number;
} nbi_block;

// What a reader has of a file's head.
typedef struct nbi_head {
    uint32_t head_bytes;
    uint64_t hash;
    nb_record_head head; // strings are not terminated
    uint32_t build_bytes, name_bytes;
} nbi_head;

// The size of a head, and its bytes.
size_t nbi_head_size(const nb_record_head *head);
uint64_t nbi_head_write(const nb_record_head *head, unsigned char *bytes);

// NB_OK, or what is wrong with *reason set.
nb_result nbi_head_read(const unsigned char *bytes, size_t size_bytes, nbi_head *head, const char **reason);

void nbi_block_write(const nbi_block *block, uint64_t head_hash, unsigned char *bytes);

// Reads the block's head from NBI_BLOCK_BYTES bytes; NULL, or what is wrong with it by itself.
const char *nbi_block_read(const unsigned char *bytes, uint64_t head_hash, nbi_block *block);

size_t nbi_tick_size(const nb_record_tick *tick);
void nbi_tick_write(const nb_record_tick *tick, unsigned char *bytes);

// Of one that nbi_tick_write wrote.
size_t nbi_tick_written_size(const unsigned char *bytes);
uint64_t nbi_tick_written_hash(const unsigned char *bytes);

// Where the parts of a tick are; false: it does not fit into size_bytes, or its counts are above the limits.
typedef struct nbi_tick_parts {
    uint32_t input_count, command_count, hash_count;
    uint64_t hash;
    const unsigned char *events, *commands, *hashes;
    size_t size_bytes; // of the whole tick
} nbi_tick_parts;
bool nbi_tick_read(const unsigned char *bytes, size_t size_bytes, nbi_tick_parts *parts);

// Writes events one behind the other, NBI_EVENT_BYTES each; the end is returned.
unsigned char *nbi_events_write(nb_input_view view, unsigned char *at);
void nbi_event_read(const unsigned char *bytes, nb_input_event *event);

// Longest part of a path that messages name.
#define NBI_NAME_SIZE_MAX 192u

// What messages call a recording: its path, of a long one the end, in quotes.
typedef struct nbi_recording_name {
    char text[NBI_NAME_SIZE_MAX + sizeof "\"...\""];
} nbi_recording_name;

// otherwise: what to call one without a path.
nbi_recording_name nbi_recording_name_of(const char *path, const char *otherwise);
