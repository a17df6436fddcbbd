// SPDX-License-Identifier: MIT
#pragma once

// What the files of the history share. State is a list of regions, each with its live bytes and a shadow: a copy as of
// the newest saved tick. history_undo.c keeps what shadows were before, in a ring; history_region.c lets one follow the
// other; history_image.c keeps whole copies of what changes much; store_history.c says which regions a world has;
// history.c puts it together.

#include "nebula/history.h"

#include "../../base/base.h"
#include "../../base/desc.h"

#include <string.h>

extern const nbi_desc_rules nbi_history_rules;

// memcpy for what is mostly a single cell of 64 bytes or the 16 in front of it: thousands of those in a tick are not to
// be a call each.
static inline void nbi_copy_run(unsigned char *to, const unsigned char *from, size_t size_bytes) {
    if (size_bytes == 64)
        memcpy(to, from, 64);
    else if (size_bytes == 16)
        memcpy(to, from, 16);
    else
        memcpy(to, from, size_bytes);
}

// --- images (history_image.c) ---

typedef struct nbi_region nbi_region;
typedef struct nbi_undo nbi_undo;

// Memory for one copy of a region, of its size_bytes_max; the copy lies behind it.
typedef struct nbi_image {
    struct nbi_image *next; // that is free, of the same region
    size_t used_bytes;      // of the copy that were ever written: what is behind them is zero
} nbi_image;

// Where images come from: the end of the ring's memory, which gets shorter as they are made. So both have what they
// need, whichever regions change much, and when.
typedef struct nbi_image_pool {
    unsigned char *end;            // images lie in front of it, the first one last
    size_t size_bytes, used_bytes; // taken from the ring; and given out once, from then on by way of the regions
    size_t size_bytes_max;         // 0: there are none
    size_t held_bytes;             // by records
} nbi_image_pool;

// --- regions (history_region.c) ---

struct nbi_region {
    unsigned char *live;           // looked up before each use: it may have moved
    unsigned char *shadow;         // a copy as of the newest saved tick: home, or an image
    unsigned char *home;           // memory of its own
    size_t size_bytes;             // of what may differ between the two; what lies behind is of no meaning
    size_t size_bytes_max;         // ever
    nb_atomic_u64 *block_versions; // raised by the owner where blocks are written; NULL = all is compared
    size_t block_bytes;
    size_t versioned_bytes; // blocks that begin behind it are compared, whatever their versions
    bool may_image;         // where it changes much it is kept as images
    bool is_dense;          // it did when it was last compared, and an image was made of it
    uint32_t image_count;   // since then
    uint64_t *marks;        // of chunks that differ; where may_image
    bool is_marked;         // the marks are those of this save
    nbi_image *image;       // that the shadow is; NULL = home
    nbi_image *free_images;
};

// A run of bytes that is to be looked at: [begin, end) of a region.
typedef struct nbi_range {
    size_t begin, end;
} nbi_range;

// The next run behind range->end of blocks with a version above `since`; begin with {0, 0}. False: no more.
bool nbi_region_next(const nbi_region *region, uint64_t since, nbi_range *range);

// Whether more than limit_bytes of the blocks with a version above `since` are in cells that differ. Where not, chunks
// that differ are marked, and following looks at no others: nothing is compared twice.
bool nbi_region_differs(nbi_region *region, uint64_t since, size_t limit_bytes);

// Memory for the marks of a region.
size_t nbi_region_marks_bytes(size_t size_bytes_max);

// The live bytes become those of the shadow; all blocks looked at get `version`.
void nbi_region_restore(const nbi_region *region, uint64_t since, uint64_t version);

// Marks the blocks of a range; nothing where the region has no versions.
void nbi_region_mark(const nbi_region *region, nbi_range range, uint64_t version);

// --- for the engine (history.c) ---

// As nb_history_create for an engine, of which `caller` is the function that the user called; NULL = for no engine.
// Reports name it, and the fields of the engine's desc.
nb_result nbi_history_create(const nb_history_desc *desc, const char *caller, nb_history **out);
// The same from here on.
void nbi_history_call(nb_history *history, const char *caller);

// Whether nb_engine_create could make a history of this, but for memory; reported.
nb_result nbi_history_check(const nb_history_desc *desc);

// As nb_history_rewind to a tick that is kept, after other state was loaded, whatever that is now: it needs no memory.
// Fails with what a provider's load returned; the others are there.
nb_result nbi_history_return(nb_history *history, uint64_t tick);

// The world that it keeps; NULL = none.
const nb_store *nbi_history_world(const nb_history *history);

// --- the ring of what was before (history_undo.c) ---

// From the state after `tick` to the one before it and, once that was done, back again: to apply it is to swap bytes.
typedef struct nbi_record {
    uint64_t tick;
    uint64_t begin, end; // in the ring; positions count up for ever
    bool has_images;     // some of its entries are
} nbi_record;

// Records [first, now) can be undone, [now, last) can be done again. All count up for ever; a record's place is its
// number modulo record_count_max.
struct nbi_undo {
    unsigned char *bytes;
    size_t size_bytes;
    nbi_record *records;
    uint32_t record_count_max;
    uint64_t first, now, last;
    uint64_t head, tail;  // of the bytes in use
    uint64_t origin;      // the position of the ring's first byte, or a whole number of rings before it
    uint64_t tick_oldest; // that can be gone back to
    uint64_t fallen_count;
    uint64_t changed_bytes; // added since the last begin
    bool is_open;           // a record is being written
    bool is_over;           // and does not fit
    nbi_image_pool images;
    nbi_region *regions; // NULL = none yet
    uint32_t region_count;
};

// Forgets everything: `tick` is the only one.
void nbi_undo_clear(nbi_undo *undo, uint64_t tick);

// Opens a record, over what could have been done again.
void nbi_undo_begin(nbi_undo *undo, uint64_t tick);

// Adds bytes as they were; older records fall off where there is no room. Nothing while no record is open.
void nbi_undo_add(nbi_undo *undo, uint32_t region, size_t offset, const unsigned char *bytes, size_t size_bytes);

// Adds that the region's shadow was this image. False: there is no room for it, and nothing was added.
bool nbi_undo_add_image(nbi_undo *undo, uint32_t region, nbi_image *image);

// Whether so many bytes of one region can be added without any record going.
bool nbi_undo_has_room(const nbi_undo *undo, size_t size_bytes);

// Lets the oldest record go, to give back its images. False: there is none.
bool nbi_undo_drop(nbi_undo *undo);

// Takes so many bytes from the ring's end. False: they are in use.
bool nbi_undo_shrink(nbi_undo *undo, size_t size_bytes);

// False: the record did not fit, and all is forgotten.
bool nbi_undo_end(nbi_undo *undo);

// Lets the oldest records go, up to that of `tick`; gives their number.
uint32_t nbi_undo_confirm(nbi_undo *undo, uint64_t tick);

// Moves the shadows to what they were after `tick`, back or forth, and marks what has changed.
void nbi_undo_move(nbi_undo *undo, uint64_t tick, uint64_t version);

// --- history_region.c ---

// The shadow becomes what the live bytes are.
void nbi_region_follow(nbi_region *region, uint32_t index, uint64_t since, nbi_undo *undo);

// --- history_image.c ---

// The shadow becomes a new image of the live bytes, where the region changes much; the old one is in the record. False:
// it is to follow.
bool nbi_image_follow(nbi_region *region, uint32_t index, uint64_t since, nbi_undo *undo);

// All of change_bytes is the ring's; nothing is in it.
void nbi_images_begin(nbi_undo *undo, size_t change_bytes);

// After its changes were kept cell by cell.
void nbi_image_note(nbi_region *region);

// The image that a shadow becomes, or ceases to be.
void nbi_image_set(nbi_region *region, nbi_image *image);
void nbi_image_free(nbi_region *region, nbi_image *image);

// What a record holds with it: nothing for NULL.
size_t nbi_image_held(const nbi_region *region, const nbi_image *image);

// --- a world's regions (store_history.c) ---

// How much of a table is in use: rows, and slots of its pool.
typedef struct nbi_table_head {
    uint32_t row_count, used_count;
} nbi_table_head;

// How many regions a world needs.
uint32_t nbi_store_region_count(const nb_store *world);

// Sizes, blocks and versions. heads: one for each table.
void nbi_store_regions_describe(nb_store *world, nbi_region *regions, nbi_table_head *heads);

// Looks up where the live bytes are and how many may differ.
void nbi_store_regions_locate(nb_store *world, nbi_region *regions);

// Lets the world become what the shadows are, with all that is derived from it.
void nbi_store_regions_restore(nb_store *world, nbi_region *regions, uint64_t since, uint64_t version);
