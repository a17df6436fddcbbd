// SPDX-License-Identifier: MIT
// The chunks by node: slots that stay where they are, and an index with open addressing over them.

#include "chunk_table.h"

#include <string.h>

#include "../planet/noise.h"

static const chunk_ref NONE = {0, 0};

// A power of two, at least twice the slots.
static uint32_t index_count(uint32_t slot_count_max) {
    uint32_t count = 4;
    while (count < 2 * slot_count_max) count *= 2;
    return count;
}

static uint32_t home_of(const chunk_table *table, lod_node node) {
    return noise_hash(0, node_key(node), 0, 0) & table->index_mask;
}

size_t chunk_table_size_bytes(uint32_t slot_count_max) {
    if (slot_count_max == 0 || slot_count_max > CHUNK_TABLE_SLOTS_MAX) return 0;
    return slot_count_max * sizeof(chunk_slot) + index_count(slot_count_max) * sizeof(uint32_t);
}

bool chunk_table_init(chunk_table *table, void *memory, uint32_t slot_count_max) {
    size_t size_bytes = chunk_table_size_bytes(slot_count_max);
    if (size_bytes == 0 || memory == NULL) return false;
    memset(memory, 0, size_bytes);
    *table = (chunk_table){.slots = (chunk_slot *)memory, .slot_count_max = slot_count_max, .first_free = 1};
    table->index = (uint32_t *)(table->slots + slot_count_max);
    table->index_mask = index_count(slot_count_max) - 1;
    for (uint32_t i = 0; i + 1 < slot_count_max; ++i) table->slots[i].next_free = i + 2;
    return true;
}

// Where a place stands in the index, or the free entry where it would. Bounded: half of the entries are free.
static uint32_t entry_of(const chunk_table *table, lod_node node) {
    uint32_t at = home_of(table, node);
    while (table->index[at] != 0 && !node_is_same(table->slots[table->index[at] - 1].node, node))
        at = (at + 1) & table->index_mask;
    return at;
}

chunk_ref chunk_table_find(const chunk_table *table, lod_node node) {
    uint32_t entry = table->index[entry_of(table, node)];
    if (entry == 0) return NONE;
    return (chunk_ref){entry - 1, table->slots[entry - 1].generation};
}

chunk_ref chunk_table_add(chunk_table *table, lod_node node) {
    uint32_t at = entry_of(table, node);
    if (table->index[at] != 0) return NONE;
    if (table->first_free == 0) {
        ++table->full_count;
        return NONE;
    }
    uint32_t slot_index = table->first_free - 1;
    chunk_slot *slot = &table->slots[slot_index];
    table->first_free = slot->next_free;
    // 0 stays null when the counter runs over.
    uint32_t generation = slot->generation + 1 != 0 ? slot->generation + 1 : 1;
    *slot = (chunk_slot){.node = node, .generation = generation, .is_used = true};
    table->index[at] = slot_index + 1;
    ++table->slot_count;
    ++table->state_counts[CHUNK_EMPTY];
    return (chunk_ref){slot_index, generation};
}

static chunk_slot *slot_of(const chunk_table *table, chunk_ref ref) {
    if (ref.slot >= table->slot_count_max) return NULL;
    chunk_slot *slot = &table->slots[ref.slot];
    return slot->is_used && slot->generation == ref.generation ? slot : NULL;
}

const chunk_slot *chunk_table_get(const chunk_table *table, chunk_ref ref) { return slot_of(table, ref); }

bool chunk_table_advance(chunk_table *table, chunk_ref ref, chunk_state to) {
    chunk_slot *slot = slot_of(table, ref);
    if (slot == NULL || to >= CHUNK_STATE_COUNT || (uint32_t)to != (uint32_t)slot->state + 1) return false;
    --table->state_counts[slot->state];
    ++table->state_counts[to];
    slot->state = to;
    return true;
}

// Empties an entry and moves those behind it up, so that no search ends too early.
static void index_remove(chunk_table *table, uint32_t hole) {
    uint32_t mask = table->index_mask;
    for (uint32_t at = (hole + 1) & mask; table->index[at] != 0; at = (at + 1) & mask) {
        uint32_t home = home_of(table, table->slots[table->index[at] - 1].node);
        // It may move into the hole only if its home is not behind the hole.
        if (((at - home) & mask) < ((at - hole) & mask)) continue;
        table->index[hole] = table->index[at];
        hole = at;
    }
    table->index[hole] = 0;
}

bool chunk_table_remove(chunk_table *table, chunk_ref ref) {
    chunk_slot *slot = slot_of(table, ref);
    if (slot == NULL) return false;
    index_remove(table, entry_of(table, slot->node));
    --table->state_counts[slot->state];
    --table->slot_count;
    slot->is_used = false;
    slot->next_free = table->first_free;
    table->first_free = ref.slot + 1;
    return true;
}
