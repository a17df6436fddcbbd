// SPDX-License-Identifier: MIT
// Slots, pins and publication.
//
// Two kinds of 64-bit words carry the protocol. `current` = {version, slot} names the newest publication; only the
// publisher writes it. Each slot's word = {version, pins} says what the slot holds and how many readers hold it; a mark
// in place of the pins says that the publisher is writing there. A version is given once, to one slot.
//
// The publisher: takes a slot that is not the current one with a CAS from {v, 0 pins} to {v, FILLING}; fills it; stores
// {v', 0 pins}; exchanges `current` for {v', slot}. No free slot: the publication is skipped. A filling that fails ends
// in {0, 0 pins}, because the bytes are no longer those of v.
//
// A reader: loads `current` = {v, slot}; pins with a CAS from {v, n pins} to {v, n + 1 pins}. A slot whose word has
// another version or the mark has been taken since, so `current` has changed as well and the reader starts again. The
// version in the compared word is the second look: a slot that was emptied and filled in between never fits. Between
// load and CAS the publication may have become the second newest; the reader then holds what was newest when it loaded,
// which is all that a reader can ever know. A release takes one pin off again.
//
// Why bytes are never written while they are read: both claims, pin and FILLING, are CASes on the same word, so one of
// two that race fails. Why a reader sees whole bytes: they are written before the store of {v', 0}, and its CAS reads
// that word, directly or through other pins and releases (all RMWs). Why the publisher does not overtake a reader's
// last read: that read is before its release of the pin, which the CAS to FILLING reads. The model of it is
// tests/models/snapshot.pml.

#include "snapshot.h"

#include <string.h>

static uint64_t word_of(uint64_t version, uint64_t pins) { return version << NBI_SNAPSHOT_PIN_BITS | pins; }
static uint64_t word_version(uint64_t word) { return word >> NBI_SNAPSHOT_PIN_BITS; }
static uint64_t word_pins(uint64_t word) { return word & NBI_SNAPSHOT_PIN_MASK; }

// Pins of readers: 0 also while the slot is being filled.
static uint64_t word_readers(uint64_t word) {
    uint64_t pins = word_pins(word);
    return pins != NBI_SNAPSHOT_FILLING ? pins : 0;
}

static uint64_t current_of(uint64_t version, uint32_t slot) { return version << NBI_SNAPSHOT_SLOT_BITS | slot; }
static uint64_t current_version(uint64_t current) { return current >> NBI_SNAPSHOT_SLOT_BITS; }
static uint32_t current_slot(uint64_t current) { return (uint32_t)current & ((1u << NBI_SNAPSHOT_SLOT_BITS) - 1); }

static nbi_snapshot_slot *slot_of(const nb_snapshot *snapshot) {
    // Readers have const pointers; the word behind what they see is the library's.
    return (nbi_snapshot_slot *)(uintptr_t)snapshot;
}

// --- life ---

static const nbi_desc_number numbers[] = {
    NBI_NUMBER(nb_snapshots_desc, slot_count, NB_SNAPSHOT_SLOT_COUNT_DEFAULT, NB_SNAPSHOT_SLOT_COUNT_MIN,
               NB_SNAPSHOT_SLOT_COUNT_MAX),
    NBI_NUMBER(nb_snapshots_desc, region_count_max, NB_SNAPSHOT_REGION_COUNT_DEFAULT, 1, NB_SNAPSHOT_REGION_COUNT_MAX),
};
const nbi_desc_rules nbi_snapshots_rules = NBI_RULES(nb_snapshots_desc, numbers);

nb_snapshots_desc nb_snapshots_desc_default(void) {
    nb_snapshots_desc desc = {.hooks = nb_hooks_default()};
    nbi_desc_fill(&nbi_snapshots_rules, &desc);
    return desc;
}

static nb_result desc_check(const nb_snapshots_desc *desc, const char *function) {
    nbi_desc_place place = {&desc->hooks, NB_ITEM_SNAPSHOT_ARGUMENT, function, NULL};
    nb_result result = nbi_desc_check(&nbi_snapshots_rules, desc, &place);
    if (result != NB_OK) return result;
    if (desc->is_protected && !nbi_platform_has(NBI_ABILITY_PAGE_PROTECT)) {
        return nbi_fail(&desc->hooks, NB_ITEM_SNAPSHOT_OS, NB_ERR_UNSUPPORTED, function,
                        "is_protected: pages cannot be made read-only here");
    }
    return NB_OK;
}

// The arrays of slots and regions, behind the ring in the same block of memory.
static void slots_init(nb_snapshots *snapshots) {
    const uint32_t slot_count = snapshots->desc.slot_count, region_count = snapshots->desc.region_count_max;
    nb_snapshot_span *spans = (nb_snapshot_span *)(void *)(snapshots->regions + region_count);
    uint64_t *versions = (uint64_t *)(void *)(spans + (size_t)slot_count * region_count);
    for (uint32_t i = 0; i < slot_count; ++i) {
        nbi_snapshot_slot *slot = &snapshots->slots[i];
        slot->ring = snapshots;
        slot->index = i;
        slot->spans = spans + (size_t)i * region_count;
        slot->versions = versions + (size_t)i * region_count;
        slot->head.regions = slot->spans;
    }
}

nb_result nb_snapshots_create(const nb_snapshots_desc *desc, nb_snapshots **out) {
    nb_snapshots_desc resolved = desc != NULL ? *desc : (nb_snapshots_desc){0};
    nbi_desc_fill(&nbi_snapshots_rules, &resolved);
    resolved.hooks = nbi_hooks_resolve(&resolved.hooks);
    if (out == NULL) return NBI_FAIL(&resolved.hooks, NB_ITEM_SNAPSHOT_ARGUMENT, NB_ERR_MISUSE, "out is NULL");
    nb_result result = desc_check(&resolved, __func__);
    if (result != NB_OK) return result;

    // Cannot wrap: at most 16 slots of 1024 regions.
    size_t region_bytes =
        sizeof(nbi_snapshot_region) + (size_t)resolved.slot_count * (sizeof(nb_snapshot_span) + sizeof(uint64_t));
    size_t size_bytes = sizeof(nb_snapshots) + resolved.region_count_max * region_bytes;
    nb_snapshots *snapshots = (nb_snapshots *)nbi_alloc(&resolved.hooks, size_bytes, NB_CACHE_LINE, __func__);
    if (snapshots == NULL) return NB_ERR_MEMORY;
    memset(snapshots, 0, size_bytes);
    snapshots->hooks = resolved.hooks;
    snapshots->desc = resolved;
    snapshots->size_bytes = size_bytes;
    snapshots->regions = (nbi_snapshot_region *)(void *)(snapshots + 1);
    slots_init(snapshots);
    *out = snapshots;
    return NB_OK;
}

nb_result nb_snapshots_destroy(nb_snapshots *snapshots) {
    if (snapshots == NULL) return NB_OK;
    uint64_t pin_count = 0;
    for (uint32_t i = 0; i < snapshots->desc.slot_count; ++i) {
        // Pairs with the release in nb_snapshot_release: what readers read, they have read.
        pin_count += word_readers(nbi_atomic_load_acquire_u64(&snapshots->slots[i].word));
    }
    if (pin_count != 0 || snapshots->is_filling) {
        return NBI_FAIL(&snapshots->hooks, NB_ITEM_SNAPSHOT_BUSY, NB_BUSY, "%llu pins are out, or it is being filled",
                        nb_llu(pin_count));
    }
    uint32_t region_count = nbi_atomic_load_relaxed_u32(&snapshots->region_count);
    for (uint32_t i = 0; i < region_count; ++i) nbi_snapshot_region_free(snapshots, &snapshots->regions[i]);
    nb_hooks hooks = snapshots->hooks;
    nbi_free(&hooks, snapshots, snapshots->size_bytes);
    return NB_OK;
}

// --- the publisher ---

nb_result nbi_snapshots_enter(nb_snapshots *snapshots, const char *function) {
    uint64_t owner = 0, self = nbi_thread_id();
    // Pairs with the release in nb_snapshots_disown: the last publisher's plain fields are the new one's.
    if (nbi_atomic_load_relaxed_u64(&snapshots->publisher) != self &&
        !nbi_atomic_compare_exchange_acquire_u64(&snapshots->publisher, &owner, self)) {
        return nbi_fail(&snapshots->hooks, NB_ITEM_SNAPSHOT_THREAD, NB_ERR_THREAD, function,
                        "another thread is the publisher");
    }
    if (!snapshots->is_filling) return NB_OK;
    return nbi_fail(&snapshots->hooks, NB_ITEM_SNAPSHOT_ARGUMENT, NB_ERR_MISUSE, function,
                    "called by a fill callback, inside a publication");
}

nb_result nb_snapshots_disown(nb_snapshots *snapshots) {
    if (snapshots == NULL) return NBI_FAIL_NULL("snapshots");
    if (snapshots->is_filling) {
        return NBI_FAIL(&snapshots->hooks, NB_ITEM_SNAPSHOT_ARGUMENT, NB_ERR_MISUSE, "called inside a publication");
    }
    nbi_atomic_store_release_u64(&snapshots->publisher, 0); // read by the acquire in nbi_snapshots_enter
    return NB_OK;
}

// The free slot that was filled last: the least has changed since, and slots nobody ever needs are never touched.
static nbi_snapshot_slot *slot_find(nb_snapshots *snapshots, uint64_t *word) {
    nbi_snapshot_slot *found = NULL;
    uint64_t current = nbi_atomic_load_relaxed_u64(&snapshots->current); // written by this thread alone
    for (uint32_t i = 0; i < snapshots->desc.slot_count; ++i) {
        nbi_snapshot_slot *slot = &snapshots->slots[i];
        if (current != 0 && i == current_slot(current)) continue;
        if (found != NULL && slot->head.version <= found->head.version) continue;
        uint64_t seen = nbi_atomic_load_relaxed_u64(&slot->word);
        if (word_pins(seen) != 0) continue;
        found = slot;
        *word = seen;
    }
    return found;
}

// A free slot, marked so that nobody can pin it; NULL: none. It starts again at most once for each reader that loaded
// `current` before it changed and pins only now.
static nbi_snapshot_slot *slot_take(nb_snapshots *snapshots) {
    uint64_t word = 0;
    nbi_snapshot_slot *slot = slot_find(snapshots, &word);
    while (slot != NULL) {
        // Decides against a pin in nb_snapshots_acquire, and pairs with the release in nb_snapshot_release: reads
        // through pins that are gone come before what is written now.
        uint64_t taken = word | NBI_SNAPSHOT_FILLING;
        if (nbi_atomic_compare_exchange_seq_cst_u64(&slot->word, &word, taken)) return slot;
        slot = slot_find(snapshots, &word);
    }
    return NULL;
}

static nb_result slot_protect(nb_snapshots *snapshots, const nbi_snapshot_slot *slot, nbi_page_access access) {
    if (!snapshots->desc.is_protected) return NB_OK;
    uint32_t region_count = nbi_atomic_load_relaxed_u32(&snapshots->region_count);
    for (uint32_t i = 0; i < region_count; ++i) {
        const nbi_snapshot_region *region = &snapshots->regions[i];
        unsigned char *pages = region->pages + slot->index * region->stride_bytes;
        if (nbi_pages_protect(pages, region->stride_bytes, access) == NB_OK) continue;
        nbi_log_throttled(&snapshots->hooks, &snapshots->throttle, i, NB_LOG_ERROR, NB_ITEM_SNAPSHOT_OS,
                          "nb_snapshots_publish", "region \"%s\": the OS does not make the pages of a slot %s",
                          region->name, access == NBI_PAGE_READ ? "read-only" : "writable");
        return NB_ERR_OS;
    }
    return NB_OK;
}

static nb_result slot_fill(nb_snapshots *snapshots, nbi_snapshot_slot *slot, uint64_t version) {
    uint32_t region_count = nbi_atomic_load_relaxed_u32(&snapshots->region_count);
    snapshots->filled_bytes = 0;
    snapshots->filled_blocks = 0;
    nb_result result = slot_protect(snapshots, slot, NBI_PAGE_READ_WRITE);
    for (uint32_t i = 0; i < region_count && result == NB_OK; ++i) {
        result = nbi_snapshot_region_fill(snapshots, slot, i, version);
    }
    nb_result protected_result = slot_protect(snapshots, slot, NBI_PAGE_READ);
    return result != NB_OK ? result : protected_result;
}

static uint64_t oldest_pinned(const nb_snapshots *snapshots) {
    uint64_t oldest = 0;
    for (uint32_t i = 0; i < snapshots->desc.slot_count; ++i) {
        uint64_t word = nbi_atomic_load_relaxed_u64(&snapshots->slots[i].word);
        if (word_readers(word) != 0 && (oldest == 0 || word_version(word) < oldest)) oldest = word_version(word);
    }
    return oldest;
}

static nb_result publish_skip(nb_snapshots *snapshots) {
    nbi_snapshot_count(&snapshots->skip_count, 1);
    if (!snapshots->is_skip_reported) {
        snapshots->is_skip_reported = true;
        nbi_log(&snapshots->hooks, NB_LOG_WARNING, NB_ITEM_SNAPSHOT_SKIPPED, "nb_snapshots_publish",
                "all %u slots are held, the oldest by a reader of version %llu: readers keep version %llu",
                (unsigned)snapshots->desc.slot_count, nb_llu(oldest_pinned(snapshots)),
                nb_llu(nb_snapshots_version(snapshots)));
    }
    return NB_FULL;
}

static nb_result publish_fail(nb_snapshots *snapshots, nbi_snapshot_slot *slot, nb_result result) {
    nbi_snapshot_count(&snapshots->fail_count, 1);
    // The number of this attempt is given again, to other bytes: nothing here may count as known by it.
    memset(slot->versions, 0, snapshots->desc.region_count_max * sizeof *slot->versions);
    // Not the version it had: a reader that still knows that one must not find it here. Read by the CAS in slot_take.
    nbi_atomic_store_release_u64(&slot->word, word_of(0, 0));
    return result;
}

static void publish_slot(nb_snapshots *snapshots, nbi_snapshot_slot *slot, uint64_t version,
                         const nb_snapshot_info *info) {
    slot->head.version = version;
    slot->head.info = info != NULL ? *info : (nb_snapshot_info){0};
    slot->head.region_count = nbi_atomic_load_relaxed_u32(&snapshots->region_count);
    // Everything above and in slot_fill comes before; read by the CAS in nb_snapshots_acquire.
    nbi_atomic_store_release_u64(&slot->word, word_of(version, 0));
    nbi_snapshot_count(&snapshots->publish_count, 1);
    nbi_snapshot_count(&snapshots->copied_bytes_total, snapshots->filled_bytes);
    nbi_snapshot_count(&snapshots->copied_blocks_total, snapshots->filled_blocks);
    nbi_atomic_store_relaxed_u64(&snapshots->copied_bytes, snapshots->filled_bytes);
    nbi_atomic_store_relaxed_u64(&snapshots->copied_blocks, snapshots->filled_blocks);
    // The one step that makes it the newest; read by the load in nb_snapshots_acquire.
    nbi_atomic_exchange_seq_cst_u64(&snapshots->current, current_of(version, slot->index));
}

nb_result nb_snapshots_publish(nb_snapshots *snapshots, const nb_snapshot_info *info) {
    if (snapshots == NULL) return NBI_FAIL_NULL("snapshots");
    nb_result result = nbi_snapshots_enter(snapshots, __func__);
    if (result != NB_OK) return result;
    uint64_t version = nb_snapshots_version(snapshots) + 1;
    if (version > NBI_SNAPSHOT_VERSION_MAX) {
        return NBI_FAIL(&snapshots->hooks, NB_ITEM_SNAPSHOT_ARGUMENT, NB_ERR_RANGE, "there are no more versions");
    }
    nbi_snapshot_slot *slot = slot_take(snapshots);
    if (slot == NULL) return publish_skip(snapshots);
    snapshots->is_skip_reported = false;
    snapshots->is_filling = true;
    result = slot_fill(snapshots, slot, version);
    snapshots->is_filling = false;
    if (result != NB_OK) return publish_fail(snapshots, slot, result);
    publish_slot(snapshots, slot, version, info);
    return NB_OK;
}

void nbi_snapshots_set_version(nb_snapshots *snapshots, uint64_t version) {
    nbi_atomic_store_release_u64(&snapshots->slots[0].word, word_of(version, 0));
    nbi_atomic_store_release_u64(&snapshots->current, current_of(version, 0));
}

// --- readers ---

static const nb_snapshot *refuse_pin(const nb_snapshots *snapshots, const char *function) {
    nbi_fail(&snapshots->hooks, NB_ITEM_SNAPSHOT_STALE, NB_ERR_RANGE, function, "a snapshot has %u pins",
             NB_SNAPSHOT_PIN_COUNT_MAX);
    return NULL;
}

const nb_snapshot *nb_snapshots_acquire(nb_snapshots *snapshots) {
    if (snapshots == NULL) {
        NBI_FAIL_NULL("snapshots");
        return NULL;
    }
    for (;;) {
        uint64_t current = nbi_atomic_load_seq_cst_u64(&snapshots->current);
        if (current == 0) return NULL;
        nbi_snapshot_slot *slot = &snapshots->slots[current_slot(current)];
        // A word of another version was written after `current` changed; with the acquire, the load above sees that
        // when it comes again, so each round is a publication.
        uint64_t word = nbi_atomic_load_acquire_u64(&slot->word);
        while (word_version(word) == current_version(current) && word_pins(word) != NBI_SNAPSHOT_FILLING) {
            if (word_pins(word) == NB_SNAPSHOT_PIN_COUNT_MAX) return refuse_pin(snapshots, __func__);
            // Decides against the CAS in slot_take, and pairs with the store in publish_slot: the bytes are there.
            if (nbi_atomic_compare_exchange_seq_cst_u64(&slot->word, &word, word + 1)) return &slot->head;
        }
    }
}

const nb_snapshot *nb_snapshot_retain(const nb_snapshot *snapshot) {
    if (snapshot == NULL) {
        NBI_FAIL_NULL("snapshot");
        return NULL;
    }
    nbi_snapshot_slot *slot = slot_of(snapshot);
    uint64_t word = nbi_atomic_load_relaxed_u64(&slot->word);
    while (word_readers(word) != 0) {
        if (word_pins(word) == NB_SNAPSHOT_PIN_COUNT_MAX) return refuse_pin(slot->ring, __func__);
        // The caller's own pin keeps the slot: nothing to decide or to read.
        if (nbi_atomic_compare_exchange_relaxed_u64(&slot->word, &word, word + 1)) return snapshot;
    }
    NBI_FAIL(&slot->ring->hooks, NB_ITEM_SNAPSHOT_STALE, NB_ERR_STALE, "nobody holds this snapshot");
    return NULL;
}

void nb_snapshot_release(const nb_snapshot *snapshot) {
    if (snapshot == NULL) return;
    nbi_snapshot_slot *slot = slot_of(snapshot);
    uint64_t word = nbi_atomic_load_relaxed_u64(&slot->word);
    while (word_readers(word) != 0) {
        // This reader's reads come before; read by the CAS in slot_take and the load in nb_snapshots_destroy.
        if (nbi_atomic_compare_exchange_seq_cst_u64(&slot->word, &word, word - 1)) return;
    }
    NBI_FAIL(&slot->ring->hooks, NB_ITEM_SNAPSHOT_STALE, NB_ERR_STALE, "nobody holds this snapshot");
}

const void *nb_snapshot_region(const nb_snapshot *snapshot, uint32_t region, size_t *size_bytes) {
    if (size_bytes != NULL) *size_bytes = 0;
    if (snapshot == NULL) {
        NBI_FAIL_NULL("snapshot");
        return NULL;
    }
    if (region >= snapshot->region_count) {
        const nb_snapshots *ring = slot_of(snapshot)->ring;
        uint32_t region_count = nbi_atomic_load_relaxed_u32(&ring->region_count);
        if (region >= region_count) {
            NBI_FAIL(&ring->hooks, NB_ITEM_SNAPSHOT_ARGUMENT, NB_ERR_RANGE, "region %u of %u", (unsigned)region,
                     (unsigned)region_count);
        }
        return NULL;
    }
    if (size_bytes != NULL) *size_bytes = snapshot->regions[region].size_bytes;
    return snapshot->regions[region].base;
}

// --- questions ---

uint64_t nb_snapshots_version(const nb_snapshots *snapshots) {
    if (snapshots == NULL) {
        NBI_FAIL_NULL("snapshots");
        return 0;
    }
    return current_version(nbi_atomic_load_relaxed_u64(&snapshots->current));
}

nb_result nb_snapshots_locate(const nb_snapshots *snapshots, const void *address, nb_snapshot_place *place) {
    if (snapshots == NULL) return NBI_FAIL_NULL("snapshots");
    if (place == NULL) return NBI_FAIL(&snapshots->hooks, NB_ITEM_SNAPSHOT_ARGUMENT, NB_ERR_MISUSE, "place is NULL");
    // Pairs with the release in nb_snapshots_region_add.
    uint32_t region_count = nbi_atomic_load_acquire_u32(&snapshots->region_count);
    for (uint32_t i = 0; i < region_count; ++i) {
        const nbi_snapshot_region *region = &snapshots->regions[i];
        size_t offset = (size_t)((uintptr_t)address - (uintptr_t)region->pages); // wraps for what lies before
        if (offset >= region->stride_bytes * snapshots->desc.slot_count) continue;
        const nbi_snapshot_slot *slot = &snapshots->slots[offset / region->stride_bytes];
        *place = (nb_snapshot_place){
            .name = region->name,
            .region = i,
            .offset_bytes = offset % region->stride_bytes,
            .version = word_version(nbi_atomic_load_relaxed_u64(&slot->word)),
        };
        return NB_OK;
    }
    return NB_EMPTY;
}

nb_snapshots_stats nb_snapshots_stats_get(const nb_snapshots *snapshots) {
    if (snapshots == NULL) {
        NBI_FAIL_NULL("snapshots");
        return (nb_snapshots_stats){0};
    }
    nb_snapshots_stats stats = {
        .version = nb_snapshots_version(snapshots),
        .publish_count = nbi_atomic_load_relaxed_u64(&snapshots->publish_count),
        .skip_count = nbi_atomic_load_relaxed_u64(&snapshots->skip_count),
        .fail_count = nbi_atomic_load_relaxed_u64(&snapshots->fail_count),
        .copied_bytes = nbi_atomic_load_relaxed_u64(&snapshots->copied_bytes),
        .copied_bytes_total = nbi_atomic_load_relaxed_u64(&snapshots->copied_bytes_total),
        .copied_blocks = nbi_atomic_load_relaxed_u64(&snapshots->copied_blocks),
        .copied_blocks_total = nbi_atomic_load_relaxed_u64(&snapshots->copied_blocks_total),
        .reserved_bytes = nbi_atomic_load_relaxed_u64(&snapshots->reserved_bytes),
        .oldest_pinned_version = oldest_pinned(snapshots),
        .slot_count = snapshots->desc.slot_count,
        .region_count = nbi_atomic_load_relaxed_u32(&snapshots->region_count),
    };
    for (uint32_t i = 0; i < stats.slot_count; ++i) {
        uint64_t readers = word_readers(nbi_atomic_load_relaxed_u64(&snapshots->slots[i].word));
        stats.pin_count += readers;
        stats.pinned_slots += readers != 0;
    }
    return stats;
}
