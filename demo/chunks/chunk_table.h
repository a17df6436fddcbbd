// SPDX-License-Identifier: MIT
#pragma once

// The chunks that are loaded or on their way, by node. A chunk keeps its slot as long as it is in the table, so
// buffers can be kept by slot; a chunk that is unloaded and loaded again has a new generation, by which late work for
// the old one is known. The one rule: all functions are the coordinator's; jobs hold copies of a chunk_ref.
//
// No heap: the caller gives the memory.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../planet/node.h"

typedef enum chunk_state {
    CHUNK_EMPTY = 0,  // in the table; nothing was done yet
    CHUNK_GENERATING, // a job fills in the voxels
    CHUNK_GENERATED,  // they are there
    CHUNK_MESHING,    // a job makes the quads
    CHUNK_MESHED,     // they are there, and wait for their upload
    CHUNK_READY,      // they can be drawn
    CHUNK_STATE_COUNT,
} chunk_state;

// One chunk during one stay in the table. Generation 0 is null.
typedef struct chunk_ref {
    uint32_t slot;
    uint32_t generation;
} chunk_ref;

typedef struct chunk_slot {
    lod_node node;
    chunk_state state;
    uint32_t generation; // of the chunk that is here, or of the last one that was
    uint32_t next_free;  // private: the next free slot + 1
    bool is_used;
} chunk_slot;

typedef struct chunk_table {
    chunk_slot *slots;   // slot_count_max, in no order
    uint32_t *index;     // private: slot + 1 by hash of the node, 0 = free; index_mask + 1 entries
    uint32_t index_mask; // at most half of the index is in use, so searches are short
    uint32_t slot_count; // in use
    uint32_t slot_count_max;
    uint32_t first_free;                      // private: slot + 1
    uint32_t state_counts[CHUNK_STATE_COUNT]; // chunks in each state
    uint64_t full_count;                      // chunks refused because all slots were taken
} chunk_table;

// Most slots: far more than a machine can hold chunks.
#define CHUNK_TABLE_SLOTS_MAX (1u << 20)

// Bytes a table of so many slots needs; 0 where slot_count_max is 0 or above CHUNK_TABLE_SLOTS_MAX.
size_t chunk_table_size_bytes(uint32_t slot_count_max);

// An empty table in `memory`, chunk_table_size_bytes long and aligned for a pointer. False for a wrong count.
bool chunk_table_init(chunk_table *table, void *memory, uint32_t slot_count_max);

// The chunk at a place; null where there is none.
chunk_ref chunk_table_find(const chunk_table *table, lod_node node);

// Adds an empty chunk. Null where the place is taken or the table is full.
chunk_ref chunk_table_add(chunk_table *table, lod_node node);

// The chunk, until the next add or remove; NULL where it was removed since.
const chunk_slot *chunk_table_get(const chunk_table *table, chunk_ref ref);

// Moves a chunk on to the next state, one step at a time. False, without effect, where it was removed or `to` is not
// the next state.
bool chunk_table_advance(chunk_table *table, chunk_ref ref, chunk_state to);

// Takes a chunk out. False where it was removed before.
bool chunk_table_remove(chunk_table *table, chunk_ref ref);
