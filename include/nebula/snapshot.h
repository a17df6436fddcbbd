// SPDX-License-Identifier: MIT
#pragma once

// Snapshots: copies of the memory a game registers, made at one point of the frame and read by any number of threads
// for as long as they like, while the original goes on changing. One thread publishes; a reader acquires the newest
// one without a lock, reads, and releases it, many frames later if need be. A snapshot that somebody holds is never
// written again: when all slots are held, the publication is skipped and readers keep the last one. The one rule: what
// is acquired is released, once; between the two the pointer and all it points to are valid, and after that they are
// not.
//
//     nb_snapshots *snapshots = NULL;
//     uint32_t positions = 0;
//     static float world[3000];
//     nb_snapshot_region_desc region = {.name = "positions", .base = world, .size_bytes = sizeof world};
//     if (nb_snapshots_create(NULL, &snapshots) != NB_OK) return 1;
//     nb_snapshots_region_add(snapshots, &region, &positions);
//     nb_snapshots_publish(snapshots, &(nb_snapshot_info){.frame = 1, .alpha = 0.5}); // once a frame
//     const nb_snapshot *snapshot = nb_snapshots_acquire(snapshots); // on any thread
//     if (snapshot != NULL) {
//         const float *x = (const float *)snapshot->regions[positions].base;
//         printf("frame %llu: %f\n", (unsigned long long)snapshot->info.frame, (double)x[0]);
//     }
//     nb_snapshot_release(snapshot);
//     nb_snapshots_destroy(snapshots);

#include "nebula/hooks.h"
#include "nebula/types.h"

// Copies kept where the desc says nothing: the newest, one being filled, and two that slow readers may hold.
#define NB_SNAPSHOT_SLOT_COUNT_DEFAULT 4

// Fewest and most copies. With two, one reader that holds the older one would stop all publication; more than 16 held
// at once are a leak rather than a need.
#define NB_SNAPSHOT_SLOT_COUNT_MIN 3
#define NB_SNAPSHOT_SLOT_COUNT_MAX 16

// Regions where the desc says nothing, and the most it may ask for: a few tables with a dozen columns; every region has
// page mappings of its own, of which a process has some ten thousand.
#define NB_SNAPSHOT_REGION_COUNT_DEFAULT 64
#define NB_SNAPSHOT_REGION_COUNT_MAX 1024

// Most pins one snapshot can have: what its word can count. Only lost releases explain the number.
#define NB_SNAPSHOT_PIN_COUNT_MAX ((1u << 20) - 2)

// Block size where a region with versions gives none: 64 rows of 64 bytes.
#define NB_SNAPSHOT_BLOCK_SIZE_DEFAULT ((size_t)4096)

// Longest name of a region in bytes, without the final zero: a table, a column and what of it.
#define NB_SNAPSHOT_NAME_SIZE_MAX 127

// All snapshots of one world, and the memory they are made of.
typedef struct nb_snapshots nb_snapshots;

// What a publication says about itself. The library only hands it on.
typedef struct nb_snapshot_info {
    uint64_t frame;         // the frame that published
    uint64_t tick;          // the tick whose state this is
    uint64_t tick_previous; // the tick that interpolated columns come from
    uint64_t epoch;         // of the frame, for what is reclaimed by epochs
    double alpha;           // where between the two ticks this frame is, 0 to 1
    uint64_t budget_ns;     // a hint: time left of the frame's target; 0 = unknown
    uint32_t quality_level; // a hint: the level the budget asks for
} nb_snapshot_info;

// The bytes of one region in one snapshot.
typedef struct nb_snapshot_span {
    const void *base;  // page-aligned
    size_t size_bytes; // as at the publication
} nb_snapshot_span;

// One published snapshot, as its readers see it: plain values that do not change while it is held.
typedef struct nb_snapshot {
    uint64_t version; // counts publications from 1; a newer one is always larger
    nb_snapshot_info info;
    const nb_snapshot_span *regions; // by the number nb_snapshots_region_add gave
    uint32_t region_count;           // regions added later have no bytes here
} nb_snapshot;

// What a fill callback gets.
typedef struct nb_snapshot_fill {
    void *memory;            // where to write, page-aligned
    size_t capacity_bytes;   // how much fits: size_bytes_max of the region
    uint64_t version;        // of the publication being made
    uint64_t version_before; // memory still holds what this callback wrote for that publication; 0 = nothing
    size_t size_before_bytes;
} nb_snapshot_fill;

// Writes a region's bytes, for state that is not one piece of memory. NB_OK and *size_bytes say what was written; any
// other result, or a size over the capacity, ends the publication. Runs on the publisher's thread, and may not publish.
typedef nb_result nb_snapshot_fill_fn(void *user, const nb_snapshot_fill *fill, size_t *size_bytes);

// One piece of state: memory to copy, or a callback that writes it.
typedef struct nb_snapshot_region_desc {
    const char *name;        // copied; 1 to NB_SNAPSHOT_NAME_SIZE_MAX bytes, one of a kind
    const void *base;        // read during nb_snapshots_publish only; NULL where size_bytes is 0 or fill is given
    size_t size_bytes;       // now
    size_t size_bytes_max;   // ever; each slot has room for it. 0 = size_bytes
    size_t block_size_bytes; // what one of block_versions stands for; default 4096
    // One number for each block of size_bytes, changed by the owner of the memory whenever it has written to the block,
    // to one the block has not had before (a counter, a tick, a frame: whatever has moved since the last publication).
    // Blocks with the same number as in the slot's last filling are not copied. NULL = everything is copied.
    const uint64_t *block_versions;
    nb_snapshot_fill_fn *fill; // instead of base and block_versions; needs size_bytes_max
    void *user;                // for fill
} nb_snapshot_region_desc;

typedef struct nb_snapshots_desc {
    uint32_t slot_count;       // 3 to 16; default 4
    uint32_t region_count_max; // 1 to 1024; default 64
    bool is_protected;         // a published slot is read-only memory: whoever writes to it faults. For debugging
    nb_hooks hooks;            // zero = defaults
} nb_snapshots_desc;

typedef struct nb_snapshots_stats {
    uint64_t version;               // of the newest publication; 0 = none yet
    uint64_t publish_count;         // ever
    uint64_t skip_count;            // ever: publications refused because every other slot was held
    uint64_t fail_count;            // ever: publications ended by a fill callback or the OS
    uint64_t copied_bytes;          // by the newest publication
    uint64_t copied_bytes_total;    // ever
    uint64_t copied_blocks;         // by the newest publication; a region without blocks counts as one
    uint64_t copied_blocks_total;   // ever
    uint64_t reserved_bytes;        // memory of all slots, used or not
    uint64_t oldest_pinned_version; // 0 = no snapshot is held
    uint64_t pin_count;             // pins now
    uint32_t pinned_slots;          // slots with pins now
    uint32_t slot_count;
    uint32_t region_count;
} nb_snapshots_stats;

// Whose memory an address is.
typedef struct nb_snapshot_place {
    const char *name; // of the region
    uint32_t region;
    size_t offset_bytes; // within the region
    uint64_t version;    // of the snapshot; 0 = the slot holds none
} nb_snapshot_place;

NB_EXTERN_C_BEGIN

// The defaults, spelled out.
// Thread: any. Owner: the caller gets a value. Fails: never.
NB_API nb_snapshots_desc nb_snapshots_desc_default(void);

// Makes an empty ring; desc may be NULL.
// Thread: any. Owner: the caller, until nb_snapshots_destroy. Fails: NB_ERR_MEMORY, NB_ERR_RANGE, NB_ERR_MISUSE,
// NB_ERR_UNSUPPORTED (is_protected, where the OS cannot).
NB_API nb_result nb_snapshots_create(const nb_snapshots_desc *desc, nb_snapshots **out);

// Ends the ring and all its memory. NULL is fine.
// Thread: any, when no other uses it. Owner: the ring is gone. Fails: NB_BUSY while a snapshot is held, logged as
// NB_ITEM_SNAPSHOT_BUSY; nothing is freed.
NB_API nb_result nb_snapshots_destroy(nb_snapshots *snapshots);

// Adds a region, with memory for it in every slot; at any time between publications, and for good. The next publication
// has it. The only call after creation that takes memory.
// Thread: the publisher. Owner: the memory and what fill needs stay the caller's, and valid while there are
// publications. Fails: NB_ERR_MEMORY, NB_ERR_RANGE (sizes, or region_count_max are there), NB_ERR_MISUSE (also: the
// name is taken), NB_ERR_THREAD.
NB_API nb_result nb_snapshots_region_add(nb_snapshots *snapshots, const nb_snapshot_region_desc *desc,
                                         uint32_t *region);

// Tells where a region's memory is now and how large, up to its size_bytes_max. A move alone copies nothing again: what
// differs from the last publication is marked in block_versions, as ever; bytes beyond the old size are always copied.
// A region added with versions keeps having them. Size 0 empties the region.
// Thread: the publisher. Owner: as nb_snapshots_region_add. Fails: NB_ERR_RANGE (over size_bytes_max), NB_ERR_MISUSE
// (no such region, or one with a fill callback), NB_ERR_THREAD.
NB_API nb_result nb_snapshots_region_move(nb_snapshots *snapshots, uint32_t region, const void *base, size_t size_bytes,
                                          const uint64_t *block_versions);

// Finds a region by its name.
// Thread: any. Owner: the caller gets a value. Fails: NB_EMPTY (no such name), NB_ERR_MISUSE.
NB_API nb_result nb_snapshots_region_find(const nb_snapshots *snapshots, const char *name, uint32_t *region);

// Copies every region into a free slot and makes it the newest snapshot, in one step for all readers. info may be NULL.
// The registered memory must not be written meanwhile. Whatever fails, readers keep the last publication.
// Thread: the publisher: the first thread that adds a region or publishes, see nb_snapshots_disown. Owner: unchanged.
// Fails: NB_FULL (every other slot is held; logged once for each run of skips), the fill callback's result,
// NB_ERR_RANGE (it wrote too much), NB_ERR_OS (page protection), NB_ERR_THREAD, NB_ERR_MISUSE.
NB_API nb_result nb_snapshots_publish(nb_snapshots *snapshots, const nb_snapshot_info *info);

// Lets another thread be the publisher: the next one that adds, moves or publishes.
// Thread: any, when nothing is being added, moved or published. Owner: unchanged. Fails: NB_ERR_MISUSE.
NB_API nb_result nb_snapshots_disown(nb_snapshots *snapshots);

// The version of the newest publication, 0 before the first: tells a reader whether what it holds is old.
// Thread: any. Owner: the caller gets a value. Fails: 0 for NULL.
NB_API uint64_t nb_snapshots_version(const nb_snapshots *snapshots);

// The newest snapshot, held for the caller. Never waits: it starts again only when a publication came between. One
// thread never gets an older one than before.
// Thread: any. Owner: the caller, one pin, until nb_snapshot_release; the bytes are read-only. Fails: NULL before the
// first publication, for NULL, and with NB_SNAPSHOT_PIN_COUNT_MAX pins (logged).
NB_API const nb_snapshot *nb_snapshots_acquire(nb_snapshots *snapshots);

// Takes one more pin and returns the same pointer, to hand the snapshot to another thread.
// Thread: any that holds it. Owner: the caller, until nb_snapshot_release. Fails: NULL for NULL, a snapshot nobody
// holds, and with NB_SNAPSHOT_PIN_COUNT_MAX pins.
NB_API const nb_snapshot *nb_snapshot_retain(const nb_snapshot *snapshot);

// Gives a pin back; after the last one the slot may be filled again. NULL is fine.
// Thread: any. Owner: the pin is gone. Fails: logged, for a snapshot nobody holds; a release too many that hits another
// reader's pin is not seen.
NB_API void nb_snapshot_release(const nb_snapshot *snapshot);

// The bytes of one region; size_bytes may be NULL. The same as snapshot->regions[region], checked.
// Thread: any that holds it. Owner: the snapshot. Fails: NULL and size 0 for a region added after this publication, and
// (logged) for one that does not exist.
NB_API const void *nb_snapshot_region(const nb_snapshot *snapshot, uint32_t region, size_t *size_bytes);

// Which region of which snapshot an address lies in: for a host's fault handler, with is_protected. Reads only, and is
// safe in a signal handler.
// Thread: any. Owner: *place is filled on NB_OK; its name is the ring's. Fails: NB_EMPTY (not in a snapshot),
// NB_ERR_MISUSE.
NB_API nb_result nb_snapshots_locate(const nb_snapshots *snapshots, const void *address, nb_snapshot_place *place);

// The numbers of a ring; those about pins are of the moment.
// Thread: any. Owner: the caller gets a value. Fails: zero for NULL.
NB_API nb_snapshots_stats nb_snapshots_stats_get(const nb_snapshots *snapshots);

NB_EXTERN_C_END
