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

// In an entry's size: its bytes are the address of an image.
#define IMAGE_MARK UINT32_MAX

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
    return (cursor){undo->bytes, undo->size_bytes, (size_t)((position - undo->origin) % undo->size_bytes)};
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

// Images go back to their regions; those that became the shadow meanwhile are no longer in the record.
static void free_images(nbi_undo *undo, const nbi_record *record) {
    if (!record->has_images) return;
    cursor from = cursor_at(undo, record->begin);
    for (uint64_t position = record->begin; position < record->end;) {
        entry next;
        nbi_image *image;
        ring_read(&from, &next, sizeof next);
        size_t size_bytes = next.size_bytes == IMAGE_MARK ? sizeof image : next.size_bytes;
        position += sizeof next + size_bytes;
        if (next.size_bytes != IMAGE_MARK) {
            from = cursor_at(undo, position);
            continue;
        }
        ring_read(&from, &image, sizeof image);
        undo->images.held_bytes -= nbi_image_held(&undo->regions[next.region], image);
        nbi_image_free(&undo->regions[next.region], image);
    }
}

void nbi_undo_clear(nbi_undo *undo, uint64_t tick) {
    for (uint64_t i = undo->first; i < undo->last; ++i) free_images(undo, record_at(undo, i));
    undo->first = undo->now = undo->last = 0;
    undo->head = undo->tail = undo->origin = 0;
    undo->tick_oldest = tick;
    undo->changed_bytes = 0;
    undo->is_open = undo->is_over = false;
}

// The record goes and, with it, what corrected the same tick later: nobody can go back behind that.
static uint32_t drop_first(nbi_undo *undo) {
    uint32_t count = 0;
    undo->tick_oldest = record_at(undo, undo->first)->tick;
    for (; undo->first < undo->now && record_at(undo, undo->first)->tick <= undo->tick_oldest; ++count) {
        free_images(undo, record_at(undo, undo->first));
        undo->tail = record_at(undo, undo->first)->end;
        undo->first += 1;
    }
    return count;
}

void nbi_undo_begin(nbi_undo *undo, uint64_t tick) {
    if (undo->now < undo->last) undo->head = record_at(undo, undo->now)->begin;
    for (uint64_t i = undo->now; i < undo->last; ++i) free_images(undo, record_at(undo, i));
    undo->last = undo->now;
    undo->changed_bytes = 0;
    if (undo->last - undo->first == undo->record_count_max) undo->fallen_count += drop_first(undo);
    undo->is_over = false;
    // A correction of the oldest tick: there is nothing before it to go back to.
    undo->is_open = tick > undo->tick_oldest;
    if (undo->is_open) *record_at(undo, undo->last) = (nbi_record){.tick = tick, .begin = undo->head};
}

bool nbi_undo_drop(nbi_undo *undo) {
    if (undo->first == undo->last) return false;
    undo->fallen_count += drop_first(undo);
    return true;
}

// What lies up to the ring's end moves to in front of the new one; what has run over the end stays where it is.
bool nbi_undo_shrink(nbi_undo *undo, size_t size_bytes) {
    size_t used_bytes = (size_t)(undo->head - undo->tail), end = undo->size_bytes - size_bytes;
    if (size_bytes > undo->size_bytes || used_bytes > end) return false;
    size_t at = cursor_at(undo, undo->tail).at, piece_bytes = undo->size_bytes - at;
    if (piece_bytes > used_bytes) piece_bytes = used_bytes;
    if (at + piece_bytes > end) {
        memmove(undo->bytes + end - piece_bytes, undo->bytes + at, piece_bytes);
        at = end - piece_bytes;
    }
    undo->size_bytes = end;
    undo->origin = undo->tail - at;
    return true;
}

bool nbi_undo_has_room(const nbi_undo *undo, size_t size_bytes) {
    return undo->head - undo->tail + sizeof(entry) + size_bytes <= undo->size_bytes;
}

static bool add(nbi_undo *undo, const entry *added, const void *bytes, size_t size_bytes) {
    while (!nbi_undo_has_room(undo, size_bytes) && nbi_undo_drop(undo)) {
    }
    if (!nbi_undo_has_room(undo, size_bytes)) return false;
    cursor to = cursor_at(undo, undo->head);
    ring_write(&to, added, sizeof *added);
    ring_write(&to, bytes, size_bytes);
    undo->head += sizeof *added + size_bytes;
    return true;
}

void nbi_undo_add(nbi_undo *undo, uint32_t region, size_t offset, const unsigned char *bytes, size_t size_bytes) {
    undo->changed_bytes += size_bytes;
    if (!undo->is_open || undo->is_over) return;
    entry added = {.offset = offset, .region = region, .size_bytes = (uint32_t)size_bytes};
    undo->is_over = !add(undo, &added, bytes, size_bytes);
}

bool nbi_undo_add_image(nbi_undo *undo, uint32_t region, nbi_image *image) {
    entry added = {.region = region, .size_bytes = IMAGE_MARK};
    if (!add(undo, &added, &image, sizeof image)) return false;
    undo->changed_bytes += undo->regions[region].size_bytes;
    undo->images.held_bytes += nbi_image_held(&undo->regions[region], image);
    record_at(undo, undo->last)->has_images = true;
    return true;
}

bool nbi_undo_end(nbi_undo *undo) {
    if (!undo->is_open) return true;
    nbi_record *record = record_at(undo, undo->last);
    uint64_t tick = record->tick, changed_bytes = undo->changed_bytes;
    undo->is_open = false;
    bool is_lost = undo->is_over || tick <= undo->tick_oldest;
    record->end = undo->head;
    if (is_lost) free_images(undo, record);
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

// The image that the record holds becomes the shadow, and the other way round.
static void swap_image(nbi_undo *undo, cursor *with, nbi_region *region, uint64_t version) {
    nbi_image *image, *now = region->image;
    cursor back = *with;
    ring_read(with, &image, sizeof image);
    ring_write(&back, &now, sizeof now);
    undo->images.held_bytes += nbi_image_held(region, now);
    undo->images.held_bytes -= nbi_image_held(region, image);
    nbi_image_set(region, image);
    nbi_region_mark(region, (nbi_range){0, region->size_bytes}, version);
}

static void swap_record(nbi_undo *undo, const nbi_record *record, uint64_t version) {
    cursor with = cursor_at(undo, record->begin);
    for (uint64_t position = record->begin; position < record->end;) {
        entry next;
        ring_read(&with, &next, sizeof next);
        nbi_region *region = &undo->regions[next.region];
        if (next.size_bytes == IMAGE_MARK) {
            swap_image(undo, &with, region, version);
            position += sizeof next + sizeof(nbi_image *);
            continue;
        }
        nbi_range range = {(size_t)next.offset, (size_t)next.offset + next.size_bytes};
        ring_swap(&with, region->shadow + range.begin, next.size_bytes);
        nbi_region_mark(region, range, version);
        position += sizeof next + next.size_bytes;
    }
}

void nbi_undo_move(nbi_undo *undo, uint64_t tick, uint64_t version) {
    while (undo->now > undo->first && record_at(undo, undo->now - 1)->tick > tick) {
        undo->now -= 1;
        swap_record(undo, record_at(undo, undo->now), version);
    }
    while (undo->now < undo->last && record_at(undo, undo->now)->tick <= tick) {
        swap_record(undo, record_at(undo, undo->now), version);
        undo->now += 1;
    }
}
