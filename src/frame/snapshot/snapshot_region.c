// SPDX-License-Identifier: MIT
// What a snapshot is made of: regions of the host's memory, and copies of them slot by slot.
//
// A slot remembers of each block which version it has copied, so it never matters how many publications ago it was
// filled: it copies what has changed since, in runs of neighbouring blocks. The owner's versions are compared for being
// different, not greater: any number that has changed will do, and no clock has to be shared.

#include "snapshot.h"

#include <string.h>

// --- adding ---

typedef struct region_sizes {
    size_t stride_bytes, pages_bytes;   // of one slot, of all
    size_t block_count_max, seen_bytes; // of one slot, of all
} region_sizes;

static nb_result argument_fail(const nb_snapshots *snapshots, nb_result result, const char *function,
                               const char *problem) {
    return nbi_fail(&snapshots->hooks, NB_ITEM_SNAPSHOT_ARGUMENT, result, function, "%s", problem);
}

static nb_result name_check(const nb_snapshots *snapshots, const char *name, const char *function) {
    if (name == NULL || name[0] == 0) return argument_fail(snapshots, NB_ERR_MISUSE, function, "a region has no name");
    if (memchr(name, 0, NB_SNAPSHOT_NAME_SIZE_MAX + 1) == NULL) {
        return argument_fail(snapshots, NB_ERR_RANGE, function, "the name is longer than 63 bytes");
    }
    uint32_t other;
    if (nb_snapshots_region_find(snapshots, name, &other) != NB_OK) return NB_OK;
    return nbi_fail(&snapshots->hooks, NB_ITEM_SNAPSHOT_ARGUMENT, NB_ERR_MISUSE, function,
                    "there is a region \"%s\" already", name);
}

static nb_result desc_check(const nb_snapshots *snapshots, const nb_snapshot_region_desc *desc, const char *function) {
    nb_result result = name_check(snapshots, desc->name, function);
    if (result != NB_OK) return result;
    if (desc->fill != NULL && (desc->base != NULL || desc->block_versions != NULL)) {
        return argument_fail(snapshots, NB_ERR_MISUSE, function, "fill comes instead of base and block_versions");
    }
    if (desc->fill == NULL && desc->base == NULL && desc->size_bytes != 0) {
        return argument_fail(snapshots, NB_ERR_MISUSE, function, "neither base nor fill is given");
    }
    if (desc->size_bytes == 0 && desc->size_bytes_max == 0) {
        return argument_fail(snapshots, NB_ERR_RANGE, function, "size_bytes and size_bytes_max are both 0");
    }
    if (desc->size_bytes_max != 0 && desc->size_bytes > desc->size_bytes_max) {
        return argument_fail(snapshots, NB_ERR_RANGE, function, "size_bytes is more than size_bytes_max");
    }
    if (nbi_atomic_load_relaxed_u32(&snapshots->region_count) == snapshots->desc.region_count_max) {
        return argument_fail(snapshots, NB_ERR_RANGE, function, "there are region_count_max regions already");
    }
    return NB_OK;
}

static size_t block_count(size_t size_bytes, size_t block_size_bytes) {
    return size_bytes / block_size_bytes + (size_bytes % block_size_bytes != 0);
}

static bool sizes_make(const nb_snapshots *snapshots, const nbi_snapshot_region *region, region_sizes *sizes) {
    size_t page = nbi_page_size(), rounded, slot_count = snapshots->desc.slot_count;
    if (!nbi_size_add(region->size_bytes_max, page - 1, &rounded)) return false;
    sizes->stride_bytes = rounded / page * page;
    bool has_blocks = region->block_versions != NULL;
    sizes->block_count_max = has_blocks ? block_count(region->size_bytes_max, region->block_size_bytes) : 0;
    return nbi_size_mul(sizes->stride_bytes, slot_count, &sizes->pages_bytes) &&
           nbi_size_mul(sizes->block_count_max, slot_count * sizeof(uint64_t), &sizes->seen_bytes);
}

static nb_result memory_make(const nb_snapshots *snapshots, nbi_snapshot_region *region, const region_sizes *sizes,
                             const char *function) {
    if (sizes->seen_bytes != 0) {
        region->seen = (uint64_t *)nbi_alloc(&snapshots->hooks, sizes->seen_bytes, sizeof(uint64_t), function);
        if (region->seen == NULL) return NB_ERR_MEMORY;
    }
    // All of it now, so that a publication cannot run out of memory; the OS gives real pages when they are first
    // written.
    unsigned char *pages = (unsigned char *)nbi_pages_reserve(sizes->pages_bytes);
    if (pages != NULL && nbi_pages_commit(pages, sizes->pages_bytes) == NB_OK) {
        region->pages = pages;
        return NB_OK;
    }
    if (pages != NULL) nbi_pages_release(pages, sizes->pages_bytes);
    if (region->seen != NULL) nbi_free(&snapshots->hooks, region->seen, sizes->seen_bytes);
    nbi_log(&snapshots->hooks, NB_LOG_ERROR, NB_ITEM_BASE_MEMORY, function, "%s: no %zu bytes of pages", region->name,
            sizes->pages_bytes);
    return NB_ERR_MEMORY;
}

nb_result nb_snapshots_region_add(nb_snapshots *snapshots, const nb_snapshot_region_desc *desc, uint32_t *region) {
    if (snapshots == NULL) return NBI_FAIL_NULL("snapshots");
    if (desc == NULL || region == NULL) {
        return argument_fail(snapshots, NB_ERR_MISUSE, __func__, "desc or region is NULL");
    }
    nb_result result = nbi_snapshots_enter(snapshots, __func__);
    if (result == NB_OK) result = desc_check(snapshots, desc, __func__);
    if (result != NB_OK) return result;
    nbi_snapshot_region made = {
        .base = (const unsigned char *)desc->base,
        .size_bytes = desc->size_bytes,
        .size_bytes_max = desc->size_bytes_max != 0 ? desc->size_bytes_max : desc->size_bytes,
        .block_size_bytes = desc->block_size_bytes != 0 ? desc->block_size_bytes : NB_SNAPSHOT_BLOCK_SIZE_DEFAULT,
        .block_versions = desc->block_versions,
        .fill = desc->fill,
        .user = desc->user,
    };
    memcpy(made.name, desc->name, strlen(desc->name));
    region_sizes sizes;
    if (!sizes_make(snapshots, &made, &sizes)) {
        return argument_fail(snapshots, NB_ERR_RANGE, __func__, "size_bytes_max times slots is more than there is");
    }
    made.stride_bytes = sizes.stride_bytes;
    made.block_count_max = sizes.block_count_max;
    result = memory_make(snapshots, &made, &sizes, __func__);
    if (result != NB_OK) return result;
    uint32_t index = nbi_atomic_load_relaxed_u32(&snapshots->region_count);
    snapshots->regions[index] = made;
    nbi_snapshot_count(&snapshots->reserved_bytes, sizes.pages_bytes);
    // Read by the acquire loads in nb_snapshots_region_find and nb_snapshots_locate.
    nbi_atomic_store_release_u32(&snapshots->region_count, index + 1);
    *region = index;
    return NB_OK;
}

void nbi_snapshot_region_free(nb_snapshots *snapshots, nbi_snapshot_region *region) {
    size_t slot_count = snapshots->desc.slot_count;
    nbi_pages_release(region->pages, region->stride_bytes * slot_count);
    if (region->seen == NULL) return;
    nbi_free(&snapshots->hooks, region->seen, region->block_count_max * slot_count * sizeof(uint64_t));
}

nb_result nb_snapshots_region_find(const nb_snapshots *snapshots, const char *name, uint32_t *region) {
    if (snapshots == NULL) return NBI_FAIL_NULL("snapshots");
    if (name == NULL || region == NULL) {
        return argument_fail(snapshots, NB_ERR_MISUSE, __func__, "name or region is NULL");
    }
    // Pairs with the release in nb_snapshots_region_add.
    uint32_t region_count = nbi_atomic_load_acquire_u32(&snapshots->region_count);
    for (uint32_t i = 0; i < region_count; ++i) {
        if (strcmp(snapshots->regions[i].name, name) != 0) continue;
        *region = i;
        return NB_OK;
    }
    return NB_EMPTY;
}

nb_result nb_snapshots_region_move(nb_snapshots *snapshots, uint32_t region, const void *base, size_t size_bytes,
                                   const uint64_t *block_versions) {
    if (snapshots == NULL) return NBI_FAIL_NULL("snapshots");
    nb_result result = nbi_snapshots_enter(snapshots, __func__);
    if (result != NB_OK) return result;
    if (region >= nbi_atomic_load_relaxed_u32(&snapshots->region_count)) {
        return argument_fail(snapshots, NB_ERR_MISUSE, __func__, "there is no such region");
    }
    nbi_snapshot_region *moved = &snapshots->regions[region];
    if (moved->fill != NULL) return argument_fail(snapshots, NB_ERR_MISUSE, __func__, "a fill callback has no memory");
    if (size_bytes > moved->size_bytes_max) {
        return argument_fail(snapshots, NB_ERR_RANGE, __func__, "size_bytes is more than the region's size_bytes_max");
    }
    if (base == NULL && size_bytes != 0) return argument_fail(snapshots, NB_ERR_MISUSE, __func__, "base is NULL");
    if (size_bytes != 0 && (block_versions != NULL) != (moved->seen != NULL)) {
        return argument_fail(snapshots, NB_ERR_MISUSE, __func__, "a region keeps having block_versions, or none");
    }
    moved->base = (const unsigned char *)base;
    moved->size_bytes = size_bytes;
    moved->block_versions = block_versions;
    return NB_OK;
}

// --- copying ---

// Copies blocks first to last, which are neighbours; only the last one of a region may be shorter.
static size_t copy_run(unsigned char *to, const nbi_snapshot_region *region, size_t first, size_t last) {
    size_t from = first * region->block_size_bytes;
    // By the number of blocks, not by their end: that could lie past the largest size there is.
    size_t size = region->size_bytes - from;
    size_t whole = last - first;
    if (whole <= size / region->block_size_bytes) size = whole * region->block_size_bytes;
    memcpy(to + from, region->base + from, size);
    return size;
}

// The first block from `block` on that is old (or not), or `count`.
static size_t find_block(const uint64_t *seen, const uint64_t *versions, size_t block, size_t count, bool is_old) {
    while (block < count && (seen[block] != versions[block]) != is_old) ++block;
    return block;
}

static void copy_blocks(nb_snapshots *snapshots, const nbi_snapshot_region *region, const nbi_snapshot_slot *slot,
                        unsigned char *to, size_t known_bytes) {
    const uint64_t *versions = region->block_versions;
    uint64_t *seen = region->seen + slot->index * region->block_count_max;
    size_t count = block_count(region->size_bytes, region->block_size_bytes);
    // A block that the slot has in part, or not at all, is old whatever was remembered of it.
    size_t known = known_bytes >= region->size_bytes ? count : known_bytes / region->block_size_bytes;
    for (size_t i = known; i < count; ++i) seen[i] = ~versions[i];

    size_t first = find_block(seen, versions, 0, count, true);
    while (first < count) {
        size_t last = find_block(seen, versions, first, count, false);
        memcpy(seen + first, versions + first, (last - first) * sizeof *seen);
        snapshots->filled_bytes += copy_run(to, region, first, last);
        snapshots->filled_blocks += last - first;
        first = find_block(seen, versions, last, count, true);
    }
}

static void copy_all(nb_snapshots *snapshots, const nbi_snapshot_region *region, unsigned char *to) {
    if (region->size_bytes == 0) return;
    memcpy(to, region->base, region->size_bytes);
    snapshots->filled_bytes += region->size_bytes;
    ++snapshots->filled_blocks;
}

static nb_result run_fill(nb_snapshots *snapshots, const nbi_snapshot_region *region, const nb_snapshot_fill *fill,
                          size_t *size_bytes) {
    nb_result result = region->fill(region->user, fill, size_bytes);
    uint64_t object = (uint64_t)(region - snapshots->regions) << 32 | (uint32_t)result;
    if (result == NB_OK && *size_bytes > fill->capacity_bytes) {
        nbi_log_throttled(&snapshots->hooks, &snapshots->throttle, object, NB_LOG_ERROR, NB_ITEM_SNAPSHOT_FILL,
                          "nb_snapshots_publish", "region \"%s\": %zu bytes do not fit into %zu", region->name,
                          *size_bytes, fill->capacity_bytes);
        return NB_ERR_RANGE;
    }
    if (result != NB_OK) {
        nbi_log_throttled(&snapshots->hooks, &snapshots->throttle, object, NB_LOG_ERROR, NB_ITEM_SNAPSHOT_FILL,
                          "nb_snapshots_publish", "region \"%s\": fill gave %s", region->name, nb_result_name(result));
        return result;
    }
    snapshots->filled_bytes += *size_bytes;
    ++snapshots->filled_blocks;
    return NB_OK;
}

nb_result nbi_snapshot_region_fill(nb_snapshots *snapshots, nbi_snapshot_slot *slot, uint32_t index, uint64_t version) {
    const nbi_snapshot_region *region = &snapshots->regions[index];
    nb_snapshot_span *span = &slot->spans[index];
    unsigned char *to = region->pages + slot->index * region->stride_bytes;
    size_t size_bytes = region->size_bytes;
    size_t known_bytes = slot->versions[index] != 0 ? span->size_bytes : 0;
    if (region->fill != NULL) {
        nb_snapshot_fill fill = {to, region->size_bytes_max, version, slot->versions[index], known_bytes};
        slot->versions[index] = 0; // until the callback has done it all
        size_bytes = 0;
        nb_result result = run_fill(snapshots, region, &fill, &size_bytes);
        if (result != NB_OK) return result;
    } else if (region->seen != NULL) {
        copy_blocks(snapshots, region, slot, to, known_bytes);
    } else {
        copy_all(snapshots, region, to);
    }
    *span = (nb_snapshot_span){to, size_bytes};
    slot->versions[index] = version;
    return NB_OK;
}
