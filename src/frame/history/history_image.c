// SPDX-License-Identifier: MIT
// Images: where most of a region changes in each tick, comparing it and keeping what it was costs more than a copy of
// all of it. Such a copy is the shadow until the next one, and then what the next one's record holds. So a save is one
// copy, and a way back over any number of ticks changes a pointer. Ticks that change little go on in the same copy.

#include "history.h"

#include <string.h>

// The part of an image above which a region is copied: what changes less takes less memory cell by cell, and so does a
// table with few of the rows that its images have room for.
#define DENSE_PART 3

// Smaller ones are not worth it: a page.
#define IMAGE_BYTES_MIN ((size_t)4096)

// Images that there is room for, at least, or the history would be short.
#define IMAGE_COUNT_MIN 8

// Records that do not fall off for images: as many ticks as an engine simulates again in a frame.
#define RECORD_COUNT_MIN 64

// Copies after which a region is compared again: it may have come to rest while all of it is still written.
#define IMAGE_RUN_MAX 16

// Bytes for changes from which on there are images: dozens of a table with a hundred rows.
#define IMAGE_CHANGE_BYTES_MIN ((size_t)256 << 10)

// The pool grows by this part of what it may have, or by one image: what is in the ring moves then.
#define POOL_STEPS 32

// Images begin on a cache line, and so do the copies in them.
#define IMAGE_HEAD_BYTES NB_CACHE_LINE

static unsigned char *copy_of(nbi_image *image) { return (unsigned char *)image + IMAGE_HEAD_BYTES; }

static size_t image_bytes(const nbi_region *region) {
    size_t whole = IMAGE_HEAD_BYTES + region->size_bytes_max;
    return (whole + NB_CACHE_LINE - 1) / NB_CACHE_LINE * NB_CACHE_LINE;
}

static bool is_much(const nbi_region *region, uint64_t changed_bytes) {
    return changed_bytes * DENSE_PART > image_bytes(region);
}

static bool can_image(const nbi_undo *undo, const nbi_region *region) {
    return region->may_image && region->size_bytes >= IMAGE_BYTES_MIN &&
           image_bytes(region) <= undo->images.size_bytes_max / IMAGE_COUNT_MIN;
}

// At least a quarter stays with those that are kept cell by cell.
void nbi_images_begin(nbi_undo *undo, size_t change_bytes) {
    size_t limit = change_bytes >= IMAGE_CHANGE_BYTES_MIN ? change_bytes / 4 * 3 / NB_CACHE_LINE * NB_CACHE_LINE : 0;
    if (limit != 0) change_bytes = change_bytes / NB_CACHE_LINE * NB_CACHE_LINE; // pages begin on one
    undo->size_bytes = change_bytes;
    undo->images = (nbi_image_pool){.end = undo->bytes + change_bytes, .size_bytes_max = limit};
}

// Bytes of the blocks that were written.
static size_t written_bytes(const nbi_region *region, uint64_t since) {
    size_t sum = 0;
    for (nbi_range range = {0, 0}; nbi_region_next(region, since, &range);) sum += range.end - range.begin;
    return sum;
}

// Takes bytes from the ring that nobody needs there now.
static bool pool_grow(nbi_undo *undo, size_t size_bytes) {
    nbi_image_pool *pool = &undo->images;
    size_t left = pool->size_bytes_max - pool->size_bytes;
    size_t step = pool->size_bytes_max / POOL_STEPS / NB_CACHE_LINE * NB_CACHE_LINE;
    if (size_bytes > left) return false;
    if (step < size_bytes || step > left || !nbi_undo_shrink(undo, step)) {
        step = size_bytes;
        if (!nbi_undo_shrink(undo, step)) return false;
    }
    pool->size_bytes += step;
    return true;
}

static nbi_image *pool_take(nbi_undo *undo, const nbi_region *region) {
    nbi_image_pool *pool = &undo->images;
    size_t left = pool->size_bytes - pool->used_bytes, size_bytes = image_bytes(region);
    if (left < size_bytes && !pool_grow(undo, size_bytes - left)) return NULL;
    pool->used_bytes += size_bytes;
    nbi_image *image = (nbi_image *)(void *)(pool->end - pool->used_bytes);
    // It has what the ring left there.
    *image = (nbi_image){.used_bytes = region->size_bytes_max};
    return image;
}

// A short past is not made shorter while the ring has room for what changes: where other regions have taken most of the
// pool, all of it would go and little would come of it.
static bool may_drop(const nbi_undo *undo, const nbi_region *region) {
    return undo->last - undo->first > RECORD_COUNT_MIN || !nbi_undo_has_room(undo, region->size_bytes);
}

static nbi_image *image_at_hand(nbi_undo *undo, nbi_region *region) {
    nbi_image *image = region->free_images;
    if (image == NULL) return pool_take(undo, region);
    region->free_images = image->next;
    return image;
}

// One that is free, or that there is room for, or that the oldest record makes room for.
static nbi_image *image_take(nbi_undo *undo, nbi_region *region) {
    nbi_image *image = image_at_hand(undo, region);
    if (image != NULL || !may_drop(undo, region) || !nbi_undo_drop(undo)) return image;
    return image_at_hand(undo, region);
}

static void fill(nbi_image *image, const nbi_region *region) {
    unsigned char *copy = copy_of(image);
    memcpy(copy, region->live, region->size_bytes);
    if (image->used_bytes > region->size_bytes)
        memset(copy + region->size_bytes, 0, image->used_bytes - region->size_bytes);
    image->used_bytes = region->size_bytes;
}

void nbi_image_set(nbi_region *region, nbi_image *image) {
    region->image = image;
    region->shadow = image != NULL ? copy_of(image) : region->home;
}

size_t nbi_image_held(const nbi_region *region, const nbi_image *image) {
    return image != NULL ? image_bytes(region) : 0;
}

void nbi_image_free(nbi_region *region, nbi_image *image) {
    if (image == NULL) return; // its own memory
    image->next = region->free_images;
    region->free_images = image;
}

// Whether all of it is to be copied. A region that was found to change much is not compared for a while: that is what
// an image saves. Where it is compared, it is before anything is kept, so that what changes much never goes through the
// ring while there are images.
static bool is_due(nbi_region *region, uint64_t since, const nbi_undo *undo) {
    if (!can_image(undo, region) || !undo->is_open || undo->is_over) return false;
    if (!is_much(region, written_bytes(region, since))) return false;
    if (region->is_dense && region->image_count < IMAGE_RUN_MAX) return true;
    region->image_count = 0;
    region->is_dense = nbi_region_differs(region, since, image_bytes(region) / DENSE_PART);
    return region->is_dense;
}

bool nbi_image_follow(nbi_region *region, uint32_t index, uint64_t since, nbi_undo *undo) {
    nbi_image *image = is_due(region, since, undo) ? image_take(undo, region) : NULL;
    if (image == NULL) return false;
    if (!nbi_undo_add_image(undo, index, region->image)) {
        nbi_image_free(region, image);
        return false;
    }
    fill(image, region);
    nbi_image_set(region, image);
    region->image_count += 1;
    return true;
}

void nbi_image_note(nbi_region *region) {
    region->is_dense = false;
    nbi_image *image = region->image;
    if (image != NULL && image->used_bytes < region->size_bytes) image->used_bytes = region->size_bytes;
}
