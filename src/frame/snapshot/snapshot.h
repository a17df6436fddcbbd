// SPDX-License-Identifier: MIT
#pragma once

// What the two files of the snapshots share: snapshot.c has slots, pins and publication, snapshot_region.c has what is
// copied and where to.

#include "nebula/atomic.h"
#include "nebula/snapshot.h"

#include "../../base/base.h"
#include "../../base/desc.h"
#include "../../base/throttle.h"
#include "../../platform/platform.h"

extern const nbi_desc_rules nbi_snapshots_rules;

// A slot's word: version above, pins below.
#define NBI_SNAPSHOT_PIN_BITS 20
#define NBI_SNAPSHOT_PIN_MASK (((uint64_t)1 << NBI_SNAPSHOT_PIN_BITS) - 1)

// In place of a number of pins: the publisher is writing, nobody may pin.
#define NBI_SNAPSHOT_FILLING NBI_SNAPSHOT_PIN_MASK

// What is left for the version: five centuries at a thousand publications a second.
#define NBI_SNAPSHOT_VERSION_MAX (((uint64_t)1 << (64 - NBI_SNAPSHOT_PIN_BITS)) - 1)

// The word of the newest publication: version above, slot below.
#define NBI_SNAPSHOT_SLOT_BITS 4

NB_STATIC_ASSERT(NB_SNAPSHOT_PIN_COUNT_MAX < NBI_SNAPSHOT_FILLING, "the mark is no number of pins");
NB_STATIC_ASSERT(NB_SNAPSHOT_SLOT_COUNT_MAX <= 1 << NBI_SNAPSHOT_SLOT_BITS, "every slot has a number");
NB_STATIC_ASSERT(NBI_SNAPSHOT_SLOT_BITS <= NBI_SNAPSHOT_PIN_BITS, "the version fits into both words");

// One registered piece of state. Written by the publisher; of what others read (name, pages, stride_bytes) nothing
// changes once the region is counted in region_count.
typedef struct nbi_snapshot_region {
    char name[NB_SNAPSHOT_NAME_SIZE_MAX + 1];
    const unsigned char *base;
    size_t size_bytes, size_bytes_max;
    size_t block_size_bytes;
    const uint64_t *block_versions; // NULL: not in blocks
    nb_snapshot_fill_fn *fill;
    void *user;
    unsigned char *pages; // slot after slot
    size_t stride_bytes;  // from slot to slot: size_bytes_max in whole pages
    uint64_t *seen;       // slot after slot: each block's version when it was last copied there
    size_t block_count_max;
} nbi_snapshot_region;

typedef struct nbi_snapshot_slot {
    nb_snapshot head;        // first: a reader's pointer is the slot's
    nb_snapshots *ring;      // set at creation
    nb_snapshot_span *spans; // head.regions, for the publisher
    uint64_t *versions;      // by region: the publication whose bytes are there, 0 = no whole one
    uint32_t index;
    char padding[NB_CACHE_LINE]; // the word changes with every pin, what is above is read by every reader
    nb_atomic_u64 word;
    char padding_end[NB_CACHE_LINE - sizeof(nb_atomic_u64)];
} nbi_snapshot_slot;

struct nb_snapshots {
    nb_atomic_u64 current; // {version, slot} of the newest publication; 0 = none
    char padding[NB_CACHE_LINE - sizeof(nb_atomic_u64)];
    nb_hooks hooks;
    nbi_throttle throttle;  // of what a frame may report each time
    nb_snapshots_desc desc; // resolved
    size_t size_bytes;      // of the block of memory that starts here
    nbi_snapshot_region *regions;
    nb_atomic_u32 region_count;
    nb_atomic_u64 publisher; // thread id; 0 = nobody yet
    bool is_filling;         // the publisher is inside a publication
    bool is_skip_reported;   // in this run of skips
    uint64_t filled_bytes;   // by the publication being made
    uint64_t filled_blocks;
    // Written by the publisher alone.
    nb_atomic_u64 publish_count, skip_count, fail_count;
    nb_atomic_u64 copied_bytes, copied_bytes_total, copied_blocks, copied_blocks_total;
    nb_atomic_u64 reserved_bytes;
    nbi_snapshot_slot slots[NB_SNAPSHOT_SLOT_COUNT_MAX];
};

static inline void nbi_snapshot_count(nb_atomic_u64 *counter, uint64_t more) {
    // One writer: an addition in two halves loses nothing.
    nbi_atomic_store_relaxed_u64(counter, nbi_atomic_load_relaxed_u64(counter) + more);
}

// The caller is the publisher, or becomes it, and is not inside a publication.
nb_result nbi_snapshots_enter(nb_snapshots *snapshots, const char *function);

// Brings one region of a slot up to date and fills in its span. The slot is the publisher's.
nb_result nbi_snapshot_region_fill(nb_snapshots *snapshots, nbi_snapshot_slot *slot, uint32_t region, uint64_t version);

// Gives back what nb_snapshots_region_add took.
void nbi_snapshot_region_free(nb_snapshots *snapshots, nbi_snapshot_region *region);

// For tests of the last versions there are: as if this one had been published last. Before the first publication.
void nbi_snapshots_set_version(nb_snapshots *snapshots, uint64_t version);
