// SPDX-License-Identifier: MIT
// Regions: a shadow that follows its live bytes, and live bytes that become the shadow again.

#include "history.h"

#include <string.h>

// Bytes compared at a time: a cache line. Less is kept of a block with a few changed rows the smaller it is, down to
// where the 16 bytes in front of an entry outweigh that.
#define CELL_BYTES ((size_t)64)

// What is skipped at once where nothing has changed. memcmp reads twice as fast as the loop over cells, and is called a
// sixteenth as often; a larger one would leave more cells of changed chunks to that loop.
#define CHUNK_BYTES ((size_t)1024)

// Chunks that one word of the marks has a bit for.
#define MARK_COUNT ((size_t)64)

// What one entry may hold: its size has 32 bits.
#define RUN_BYTES_MAX ((size_t)1 << 30)

static size_t min_size(size_t a, size_t b) { return a < b ? a : b; }

static bool is_block_new(const nbi_region *region, size_t block, uint64_t since) {
    if (block * region->block_bytes >= region->versioned_bytes) return true;
    return nbi_atomic_load_relaxed_u64(&region->block_versions[block]) > since;
}

bool nbi_region_next(const nbi_region *region, uint64_t since, nbi_range *range) {
    size_t size_bytes = region->size_bytes;
    if (range->end >= size_bytes) return false;
    if (region->block_versions == NULL) {
        *range = (nbi_range){range->end, size_bytes};
        return true;
    }
    size_t block = range->end / region->block_bytes;
    size_t block_count = (size_bytes + region->block_bytes - 1) / region->block_bytes;
    while (block < block_count && !is_block_new(region, block, since)) ++block;
    if (block == block_count) return false;
    range->begin = block * region->block_bytes;
    while (block < block_count && is_block_new(region, block, since)) ++block;
    range->end = min_size(block * region->block_bytes, size_bytes);
    return true;
}

void nbi_region_mark(const nbi_region *region, nbi_range range, uint64_t version) {
    if (region->block_versions == NULL || range.begin == range.end) return;
    size_t block = range.begin / region->block_bytes, last = (range.end - 1) / region->block_bytes;
    for (; block <= last; ++block) nbi_atomic_store_relaxed_u64(&region->block_versions[block], version);
}

// Without a branch in it: some ten thousand of them are compared in a tick.
static bool is_cell_equal(const unsigned char *live, const unsigned char *shadow) {
    uint64_t difference = 0;
    for (size_t i = 0; i < CELL_BYTES; i += sizeof(uint64_t)) {
        uint64_t a, b;
        memcpy(&a, live + i, sizeof a);
        memcpy(&b, shadow + i, sizeof b);
        difference |= a ^ b;
    }
    return difference == 0;
}

static bool is_equal(const nbi_region *region, size_t at, size_t end) {
    const unsigned char *live = region->live + at, *shadow = region->shadow + at;
    return end - at >= CELL_BYTES ? is_cell_equal(live, shadow) : memcmp(live, shadow, end - at) == 0;
}

// --- chunks ---

size_t nbi_region_marks_bytes(size_t size_bytes_max) {
    return (size_bytes_max / CHUNK_BYTES / MARK_COUNT + 1) * sizeof(uint64_t);
}

static size_t chunk_end(size_t at, size_t end) { return min_size((at / CHUNK_BYTES + 1) * CHUNK_BYTES, end); }

static bool is_chunk_equal(const nbi_region *region, size_t at, size_t end) {
    size_t chunk = at / CHUNK_BYTES;
    if (region->is_marked) return (region->marks[chunk / MARK_COUNT] >> chunk % MARK_COUNT & 1) == 0;
    return memcmp(region->live + at, region->shadow + at, end - at) == 0;
}

static size_t differing_bytes(const nbi_region *region, size_t at, size_t end) {
    size_t sum = 0, next;
    for (; at < end; at = next) {
        next = min_size(at + CELL_BYTES, end);
        if (!is_equal(region, at, next)) sum += next - at;
    }
    return sum;
}

bool nbi_region_differs(nbi_region *region, uint64_t since, size_t limit_bytes) {
    size_t sum = 0, end;
    region->is_marked = false;
    memset(region->marks, 0, nbi_region_marks_bytes(region->size_bytes_max));
    for (nbi_range range = {0, 0}; nbi_region_next(region, since, &range);) {
        for (size_t at = range.begin; at < range.end; at = end) {
            end = chunk_end(at, range.end);
            if (is_chunk_equal(region, at, end)) continue;
            size_t chunk = at / CHUNK_BYTES;
            region->marks[chunk / MARK_COUNT] |= (uint64_t)1 << chunk % MARK_COUNT;
            sum += differing_bytes(region, at, end);
            if (sum > limit_bytes) return true;
        }
    }
    region->is_marked = true;
    return false;
}

// --- following ---

// The run of cells that differ from `first` on. Returns its end.
static size_t follow_run(const nbi_region *region, uint32_t index, size_t first, size_t end, nbi_undo *undo) {
    size_t at = first;
    do {
        at += min_size(CELL_BYTES, end - at);
    } while (at < end && at - first < RUN_BYTES_MAX && !is_equal(region, at, end));
    nbi_undo_add(undo, index, first, region->shadow + first, at - first);
    nbi_copy_run(region->shadow + first, region->live + first, at - first);
    return at;
}

static void follow_range(const nbi_region *region, uint32_t index, nbi_range range, nbi_undo *undo) {
    for (size_t at = range.begin, end = range.end, chunk = range.begin; at < end;) {
        // A run may have gone beyond the chunk it began in.
        bool is_first = at >= chunk;
        if (is_first) chunk = chunk_end(at, end);
        if (is_first && is_chunk_equal(region, at, chunk))
            at = chunk;
        else if (is_equal(region, at, end))
            at += min_size(CELL_BYTES, end - at);
        else
            at = follow_run(region, index, at, end, undo);
    }
}

void nbi_region_follow(nbi_region *region, uint32_t index, uint64_t since, nbi_undo *undo) {
    bool is_imaged = nbi_image_follow(region, index, since, undo);
    for (nbi_range range = {0, 0}; !is_imaged && nbi_region_next(region, since, &range);)
        follow_range(region, index, range, undo);
    region->is_marked = false;
    if (!is_imaged) nbi_image_note(region);
}

void nbi_region_restore(const nbi_region *region, uint64_t since, uint64_t version) {
    nbi_range range = {0, 0};
    while (nbi_region_next(region, since, &range)) {
        memcpy(region->live + range.begin, region->shadow + range.begin, range.end - range.begin);
        nbi_region_mark(region, range, version);
    }
}
