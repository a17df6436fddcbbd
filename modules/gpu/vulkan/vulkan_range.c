// SPDX-License-Identifier: MIT
// First fit, with neighbours that become one when they are free.

#include "vulkan_range.h"

void nbi_ranges_init(nbi_ranges *ranges, nbi_range *items, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) items[i] = (nbi_range){.next = i + 1 < count ? i + 1 : NBI_RANGE_NONE};
    *ranges = (nbi_ranges){.items = items, .unused = count > 0 ? 0 : NBI_RANGE_NONE, .unused_count = count};
}

static uint32_t record_take(nbi_ranges *ranges) {
    uint32_t index = ranges->unused;
    if (index == NBI_RANGE_NONE) return index;
    ranges->unused = ranges->items[index].next;
    --ranges->unused_count;
    return index;
}

static void record_give(nbi_ranges *ranges, uint32_t index) {
    ranges->items[index] = (nbi_range){.next = ranges->unused};
    ranges->unused = index;
    ++ranges->unused_count;
}

uint32_t nbi_ranges_block(nbi_ranges *ranges, uint64_t size_bytes) {
    uint32_t index = record_take(ranges);
    if (index == NBI_RANGE_NONE) return index;
    ranges->items[index] =
        (nbi_range){.size_bytes = size_bytes, .previous = NBI_RANGE_NONE, .next = NBI_RANGE_NONE, .is_free = true};
    return index;
}

void nbi_ranges_unblock(nbi_ranges *ranges, uint32_t first) {
    while (first != NBI_RANGE_NONE) {
        uint32_t next = ranges->items[first].next;
        record_give(ranges, first);
        first = next;
    }
}

// Cuts a free range after so many bytes: the rest becomes a free range of its own behind it.
static bool split(nbi_ranges *ranges, uint32_t index, uint64_t size_bytes) {
    nbi_range *range = &ranges->items[index];
    if (range->size_bytes == size_bytes) return true;
    uint32_t rest = record_take(ranges);
    if (rest == NBI_RANGE_NONE) return false;
    ranges->items[rest] = (nbi_range){.offset = range->offset + size_bytes,
                                      .size_bytes = range->size_bytes - size_bytes,
                                      .previous = index,
                                      .next = range->next,
                                      .is_free = true};
    if (range->next != NBI_RANGE_NONE) ranges->items[range->next].previous = rest;
    range->next = rest;
    range->size_bytes = size_bytes;
    return true;
}

// A range and the one behind it become one.
static void join(nbi_ranges *ranges, uint32_t index) {
    nbi_range *range = &ranges->items[index];
    uint32_t gone = range->next;
    range->size_bytes += ranges->items[gone].size_bytes;
    range->next = ranges->items[gone].next;
    if (range->next != NBI_RANGE_NONE) ranges->items[range->next].previous = index;
    record_give(ranges, gone);
}

// Bytes to leave out so that the place begins where it must.
static uint64_t pad_bytes(uint64_t offset, uint64_t alignment) { return (0 - offset) & (alignment - 1); }

uint32_t nbi_ranges_take(nbi_ranges *ranges, uint32_t first, uint64_t size_bytes, uint64_t alignment) {
    for (uint32_t i = first; i != NBI_RANGE_NONE; i = ranges->items[i].next) {
        const nbi_range *range = &ranges->items[i];
        uint64_t pad = pad_bytes(range->offset, alignment);
        if (!range->is_free || range->size_bytes < pad || range->size_bytes - pad < size_bytes) continue;
        // Two records are enough for a gap in front and one behind; without them nothing has changed.
        if (ranges->unused_count < 2) return NBI_RANGE_NONE;
        if (pad > 0) {
            split(ranges, i, pad);
            i = ranges->items[i].next;
        }
        split(ranges, i, size_bytes);
        ranges->items[i].is_free = false;
        return i;
    }
    return NBI_RANGE_NONE;
}

void nbi_ranges_give(nbi_ranges *ranges, uint32_t range) {
    ranges->items[range].is_free = true;
    uint32_t next = ranges->items[range].next;
    if (next != NBI_RANGE_NONE && ranges->items[next].is_free) join(ranges, range);
    uint32_t previous = ranges->items[range].previous;
    if (previous != NBI_RANGE_NONE && ranges->items[previous].is_free) join(ranges, previous);
}
