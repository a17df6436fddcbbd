// SPDX-License-Identifier: MIT
#pragma once

// A table from 64-bit keys to numbers in the order of adding, which is emptied in no time: a bucket counts only where
// the entry it names points back at it.

#include <stdint.h>

#define NBI_NONE UINT32_MAX

typedef struct nbi_graph_table {
    uint32_t *buckets;   // mask + 1, at least twice the entries, so that a search always ends
    uint32_t *bucket_of; // of each entry
    uint64_t *keys;      // of each entry
    uint32_t mask;
    uint32_t count;
} nbi_graph_table;

// Where a search for the key begins. The multiplier is 2^64 divided by the golden ratio: it spreads keys that differ in
// a few bits.
static inline uint32_t nbi_graph_table_start(const nbi_graph_table *table, uint64_t key) {
    return (uint32_t)((key * 0x9E3779B97F4A7C15u) >> 32) & table->mask;
}

// The entry with the key at or behind the bucket `at`, which is left there; NBI_NONE where there is none, and the
// bucket where it would be added.
static inline uint32_t nbi_graph_table_next(const nbi_graph_table *table, uint64_t key, uint32_t *at) {
    for (;; *at = (*at + 1) & table->mask) {
        uint32_t entry = table->buckets[*at];
        if (entry >= table->count || table->bucket_of[entry] != *at) return NBI_NONE;
        if (table->keys[entry] == key) return entry;
    }
}

// The same from the start, for keys that say all.
static inline uint32_t nbi_graph_table_find(const nbi_graph_table *table, uint64_t key, uint32_t *at) {
    *at = nbi_graph_table_start(table, key);
    return nbi_graph_table_next(table, key, at);
}

static inline uint32_t nbi_graph_table_add(nbi_graph_table *table, uint64_t key, uint32_t at) {
    uint32_t entry = table->count++;
    table->buckets[at] = entry;
    table->bucket_of[entry] = at;
    table->keys[entry] = key;
    return entry;
}
