// SPDX-License-Identifier: MIT
// The ring of what shadows were before. A record is a row of entries {offset, region, size} with their bytes, which may
// run over the ring's end. Applying one swaps its bytes with the shadow's, so that the same record leads back.

#include "history.h"

#include <string.h>

typedef struct entry {
    uint64_t offset;
    uint32_t region;
    uint32_t size_bytes;
} entry;

// Swapped at a time: what fits into the registers of any machine, and the least that changes are kept by.
#define SWAP_BYTES ((size_t)64)

static nbi_record *record_at(const nbi_undo *undo, uint64_t number) {
    return &undo->records[number % undo->record_count_max];
}

// --- bytes of the ring ---

// A place to read and write at, moved on by each.
typedef struct cursor {
    unsigned char *bytes;
    size_t size_bytes, at;
} cursor;

static cursor cursor_at(const nbi_undo *undo, uint64_t position) {
    return (cursor){undo->bytes, undo->size_bytes, (size_t)(position % undo->size_bytes)};
}

// The next bytes that lie in one piece, `size_bytes` of them or up to the ring's end.
static unsigned char *next_piece(cursor *self, size_t size_bytes, size_t *piece_bytes) {
    unsigned char *piece = self->bytes + self->at;
    size_t left = self->size_bytes - self->at;
    *piece_bytes = size_bytes < left ? size_bytes : left;
    self->at = size_bytes < left ? self->at + size_bytes : 0;
    return piece;
}

static void ring_write(cursor *to, const void *bytes, size_t size_bytes) {
    const unsigned char *from = bytes;
    while (size_bytes > 0) {
        size_t piece_bytes;
        unsigned char *piece = next_piece(to, size_bytes, &piece_bytes);
        nbi_copy_run(piece, from, piece_bytes);
        from += piece_bytes;
        size_bytes -= piece_bytes;
    }
}

static void ring_read(cursor *from, void *bytes, size_t size_bytes) {
    unsigned char *to = bytes;
    while (size_bytes > 0) {
        size_t piece_bytes;
        const unsigned char *piece = next_piece(from, size_bytes, &piece_bytes);
        nbi_copy_run(to, piece, piece_bytes);
        to += piece_bytes;
        size_bytes -= piece_bytes;
    }
}

// Whole chunks go through registers; what is left of a piece is shorter, and mostly nothing.
static void swap_bytes(unsigned char *a, unsigned char *b, size_t size_bytes) {
    unsigned char kept[SWAP_BYTES];
    for (; size_bytes >= SWAP_BYTES; size_bytes -= SWAP_BYTES, a += SWAP_BYTES, b += SWAP_BYTES) {
        memcpy(kept, a, SWAP_BYTES);
        memcpy(a, b, SWAP_BYTES);
        memcpy(b, kept, SWAP_BYTES);
    }
    if (size_bytes == 0) return;
    memcpy(kept, a, size_bytes);
    memcpy(a, b, size_bytes);
    memcpy(b, kept, size_bytes);
}

static void ring_swap(cursor *with, unsigned char *bytes, size_t size_bytes) {
    while (size_bytes > 0) {
        size_t piece_bytes;
        unsigned char *piece = next_piece(with, size_bytes, &piece_bytes);
        swap_bytes(piece, bytes, piece_bytes);
        bytes += piece_bytes;
        size_bytes -= piece_bytes;
    }
}

// --- writing ---

void nbi_undo_clear(nbi_undo *undo, uint64_t tick) {
    undo->first = undo->now = undo->last = 0;
    undo->head = undo->tail = 0;
    undo->tick_oldest = tick;
    undo->changed_bytes = 0;
    undo->is_open = undo->is_over = false;
}

// The record goes and, with it, what corrected the same tick later: nobody can go back behind that.
static uint32_t drop_first(nbi_undo *undo) {
    uint32_t count = 0;
    undo->tick_oldest = record_at(undo, undo->first)->tick;
    for (; undo->first < undo->now && record_at(undo, undo->first)->tick <= undo->tick_oldest; ++count) {
        undo->tail = record_at(undo, undo->first)->end;
        undo->first += 1;
    }
    return count;
}

void nbi_undo_begin(nbi_undo *undo, uint64_t tick) {
    if (undo->now < undo->last) undo->head = record_at(undo, undo->now)->begin;
    undo->last = undo->now;
    undo->changed_bytes = 0;
    if (undo->last - undo->first == undo->record_count_max) undo->fallen_count += drop_first(undo);
    undo->is_over = false;
    // A correction of the oldest tick: there is nothing before it to go back to.
    undo->is_open = tick > undo->tick_oldest;
    if (undo->is_open) *record_at(undo, undo->last) = (nbi_record){.tick = tick, .begin = undo->head};
}

void nbi_undo_add(nbi_undo *undo, uint32_t region, size_t offset, const unsigned char *bytes, size_t size_bytes) {
    undo->changed_bytes += size_bytes;
    if (!undo->is_open || undo->is_over) return;
    size_t wanted = sizeof(entry) + size_bytes;
    while (undo->head - undo->tail + wanted > undo->size_bytes && undo->first < undo->last) {
        undo->fallen_count += drop_first(undo);
    }
    if (undo->head - undo->tail + wanted > undo->size_bytes) {
        undo->is_over = true;
        return;
    }
    entry added = {.offset = offset, .region = region, .size_bytes = (uint32_t)size_bytes};
    cursor to = cursor_at(undo, undo->head);
    ring_write(&to, &added, sizeof added);
    ring_write(&to, bytes, size_bytes);
    undo->head += wanted;
}

bool nbi_undo_end(nbi_undo *undo) {
    if (!undo->is_open) return true;
    nbi_record *record = record_at(undo, undo->last);
    uint64_t tick = record->tick, changed_bytes = undo->changed_bytes;
    undo->is_open = false;
    if (undo->is_over) {
        nbi_undo_clear(undo, tick);
        undo->changed_bytes = changed_bytes;
        return false;
    }
    // The tick's own record fell off while this one, its correction, was written.
    if (tick <= undo->tick_oldest) {
        undo->head = undo->tail;
        return true;
    }
    record->end = undo->head;
    undo->last += 1;
    undo->now = undo->last;
    return true;
}

uint32_t nbi_undo_confirm(nbi_undo *undo, uint64_t tick) {
    uint32_t count = 0;
    while (undo->first < undo->now && record_at(undo, undo->first)->tick <= tick) count += drop_first(undo);
    return count;
}

// --- applying ---

static void swap_record(const nbi_undo *undo, const nbi_record *record, const nbi_region *regions, uint64_t version) {
    cursor with = cursor_at(undo, record->begin);
    for (uint64_t position = record->begin; position < record->end;) {
        entry next;
        ring_read(&with, &next, sizeof next);
        const nbi_region *region = &regions[next.region];
        nbi_range range = {(size_t)next.offset, (size_t)next.offset + next.size_bytes};
        ring_swap(&with, region->shadow + range.begin, next.size_bytes);
        nbi_region_mark(region, range, version);
        position += sizeof next + next.size_bytes;
    }
}

void nbi_undo_move(nbi_undo *undo, const nbi_region *regions, uint64_t tick, uint64_t version) {
    while (undo->now > undo->first && record_at(undo, undo->now - 1)->tick > tick) {
        undo->now -= 1;
        swap_record(undo, record_at(undo, undo->now), regions, version);
    }
    while (undo->now < undo->last && record_at(undo, undo->now)->tick <= tick) {
        swap_record(undo, record_at(undo, undo->now), regions, version);
        undo->now += 1;
    }
}
