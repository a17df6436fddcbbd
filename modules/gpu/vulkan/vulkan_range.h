// SPDX-License-Identifier: MIT
#pragma once

// Ranges of memory that is not ours to write into: which parts of a block are taken is kept beside it. The ranges of a
// block cover it without gaps, in the order of their offsets; two free ones are never neighbours.

#include "nebula/types.h"

#define NBI_RANGE_NONE UINT32_MAX

typedef struct nbi_range {
    uint64_t offset, size_bytes;
    uint32_t previous, next; // in the block; of an unused record, the next unused one
    bool is_free;
} nbi_range;

// The records of the ranges of all blocks.
typedef struct nbi_ranges {
    nbi_range *items;
    uint32_t unused;       // the first of a list
    uint32_t unused_count; // in it
} nbi_ranges;

// All records are unused.
void nbi_ranges_init(nbi_ranges *ranges, nbi_range *items, uint32_t count);

// One free range of so many bytes: a block. NBI_RANGE_NONE: there are no records left.
uint32_t nbi_ranges_block(nbi_ranges *ranges, uint64_t size_bytes);

// Gives the records of a block back; `first` is its first range.
void nbi_ranges_unblock(nbi_ranges *ranges, uint32_t first);

// Takes the first place that is large enough, of the block that begins with `first`. The place begins at a multiple of
// alignment, a power of two; what is left of it stays free. NBI_RANGE_NONE: there is none.
uint32_t nbi_ranges_take(nbi_ranges *ranges, uint32_t first, uint64_t size_bytes, uint64_t alignment);

// Gives a range back; it becomes one with its free neighbours.
void nbi_ranges_give(nbi_ranges *ranges, uint32_t range);
