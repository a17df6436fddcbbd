// SPDX-License-Identifier: MIT
// Questions about an arena: numbers, references, consistency. Nothing here changes one but the watermark.

#include "arena.h"

#include "base.h"

bool nbi_arena_is_in_use(const nb_arena *arena, const void *memory, size_t size_bytes) {
    uintptr_t address = (uintptr_t)memory;
    for (const nb_arena_block *block = &arena->first;; block = block->next) {
        uintptr_t base = (uintptr_t)block->base;
        uintptr_t end = (uintptr_t)nbi_block_used_end(arena, block);
        if (address >= base && address < end) return size_bytes <= end - address;
        if (block == arena->current) return false;
    }
}

void nbi_arena_largest_peaks(const nb_arena *arena, size_t *largest, size_t *second) {
    size_t count = (size_t)nbi_min_u64(arena->reset_count, NB_ARENA_PEAK_COUNT);
    *largest = 0;
    *second = 0;
    for (size_t i = 0; i < count; ++i) {
        size_t peak = arena->peaks[i];
        if (peak >= *largest) {
            *second = *largest;
            *largest = peak;
        } else if (peak > *second) {
            *second = peak;
        }
    }
}

size_t nb_arena_bytes_used(const nb_arena *arena) {
    return nbi_arena_check_object(arena, __func__) == NB_OK ? nbi_arena_used(arena) : 0;
}

size_t nb_arena_capacity(const nb_arena *arena) {
    return nbi_arena_check_object(arena, __func__) == NB_OK ? nbi_arena_capacity(arena) : 0;
}

size_t nb_arena_bytes_remaining(const nb_arena *arena) {
    return nbi_arena_check_object(arena, __func__) == NB_OK ? nbi_arena_capacity(arena) - nbi_arena_used(arena) : 0;
}

static size_t high_watermark(const nb_arena *arena) {
    return nbi_size_max(arena->high_watermark_bytes, nbi_arena_used(arena));
}

size_t nb_arena_high_watermark(const nb_arena *arena) {
    return nbi_arena_check_object(arena, __func__) == NB_OK ? high_watermark(arena) : 0;
}

nb_result nb_arena_high_watermark_reset(nb_arena *arena) {
    nb_result result = nbi_arena_check_caller(arena, __func__);
    if (result == NB_OK) arena->high_watermark_bytes = nbi_arena_used(arena);
    return result;
}

// Nearest rank: of n peaks the ceil(0.99 n)-th smallest, which is the largest up to 100 of them and the second largest
// from there to 128.
static size_t peak_p99(const nb_arena *arena) {
    size_t largest = 0;
    size_t second = 0;
    nbi_arena_largest_peaks(arena, &largest, &second);
    return arena->reset_count > 100 ? second : largest;
}

nb_arena_stats nb_arena_stats_get(const nb_arena *arena) {
    if (nbi_arena_check_object(arena, __func__) != NB_OK) return (nb_arena_stats){0};
    nb_arena_stats stats = {
        .capacity_bytes = nbi_arena_capacity(arena),
        .committed_bytes = nbi_arena_committed(arena),
        .used_bytes = nbi_arena_used(arena),
        .padding_bytes = nbi_arena_used(arena) - nbi_arena_requested(arena),
        .allocation_count = nbi_arena_allocations(arena),
        .overflow_count = arena->overflow_count,
        .refused_count = arena->refused_count,
        .high_watermark_bytes = high_watermark(arena),
        .peak_p99_bytes = peak_p99(arena),
        .reset_count = arena->reset_count,
    };
    for (const nb_arena_block *block = arena->first.next; block != NULL; block = block->next) {
        ++stats.chained_block_count;
    }
    return stats;
}

uint64_t nb_arena_generation(const nb_arena *arena) {
    return nbi_arena_check_object(arena, __func__) == NB_OK ? arena->generation : 0;
}

nb_arena_ref nb_arena_ref_make(const nb_arena *arena, void *memory) {
    if (nbi_arena_check_object(arena, __func__) != NB_OK) return (nb_arena_ref){0};
    if (!nbi_arena_is_in_use(arena, memory, 1)) {
        NBI_FAIL(&arena->hooks, NB_ITEM_ARENA_ARGUMENT, NB_ERR_MISUSE, "%s: %p is no block of this arena", arena->label,
                 memory);
        return (nb_arena_ref){0};
    }
    return (nb_arena_ref){.memory = memory, .generation = arena->generation};
}

void *nb_arena_ref_get(const nb_arena *arena, nb_arena_ref ref) {
    if (nbi_arena_check_object(arena, __func__) != NB_OK) return NULL;
    if (ref.generation == arena->generation && nbi_arena_is_in_use(arena, ref.memory, 1)) return ref.memory;
    NBI_FAIL(&arena->hooks, NB_ITEM_ARENA_STALE, NB_ERR_STALE, "%s: reference of generation %llu, now %llu",
             arena->label, nb_llu(ref.generation), nb_llu(arena->generation));
    return NULL;
}

static bool is_block_valid(const nb_arena *arena, const nb_arena_block *block) {
    if (block->base == NULL || block->base >= block->end || block->committed < block->base) return false;
    if (block != &arena->first && block->committed != block->end) return false;
    const unsigned char *used = nbi_block_used_end(arena, block);
    return used >= block->base && used <= nbi_block_usable_end(block);
}

bool nb_arena_is_valid(const nb_arena *arena) {
    if (nbi_arena_check_object(arena, __func__) != NB_OK) return false;
    size_t before = 0;
    size_t chained = 0;
    bool has_current = false;
    for (const nb_arena_block *block = &arena->first; block != NULL; block = block->next) {
        if (!is_block_valid(arena, block)) return false;
        has_current = has_current || block == arena->current;
        if (!has_current) before += nbi_block_capacity(block);
        if (block != &arena->first) chained += nbi_block_capacity(block);
    }
    bool is_limit_valid = arena->limit >= arena->cursor && arena->limit <= nbi_block_usable_end(arena->current);
    return has_current && is_limit_valid && before == arena->used_before_bytes && chained == arena->chained_bytes &&
           nbi_arena_requested(arena) <= nbi_arena_used(arena) && (arena->limit == arena->cursor || !arena->is_checked);
}
