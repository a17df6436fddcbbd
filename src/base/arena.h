// SPDX-License-Identifier: MIT
#pragma once

// What the files about arenas share: small questions about blocks, the test of a caller, and what thread arenas do to
// the arenas they manage and nobody else may.

#include "nebula/arena.h"
#include "nebula/thread_arena.h"

// As the public functions, for an arena marked is_managed and without the owner check: the context calls them for the
// owner, or for a thread that has left.
void nbi_arena_reset_managed(nb_arena *arena);
void nbi_arena_deinit_managed(nb_arena *arena);

// NB_OK, or NB_ERR_MISUSE with a log item for NULL and for storage that is not an arena.
nb_result nbi_arena_check_object(const nb_arena *arena, const char *function);

// The same, and NB_ERR_THREAD for a foreign thread where checks are on, NB_ERR_MISUSE from a cleanup.
nb_result nbi_arena_check_caller(const nb_arena *arena, const char *function);

// As nb_thread_arenas_advance, with one pin of the frame for the caller, who gives it back with nb_thread_arenas_unpin.
// In one step: between an advance and a pin, other fences that share the context could end the frame. Where the advance
// is refused, the frame that stays open is pinned. Zero: that one has all its pins out.
nb_arena_frame nbi_thread_arenas_advance_pinned(nb_thread_arenas *arenas);

// Whether [memory, memory + size) lies in blocks handed out and not released.
bool nbi_arena_is_in_use(const nb_arena *arena, const void *memory, size_t size_bytes);

// Fills what the next allocations would get with a byte, up to size_bytes of it.
void nbi_arena_paint(nb_arena *arena, unsigned char byte, size_t size_bytes);

// The two largest of the remembered peaks.
void nbi_arena_largest_peaks(const nb_arena *arena, size_t *largest, size_t *second);

static inline size_t nbi_size_min(size_t a, size_t b) { return a < b ? a : b; }
static inline size_t nbi_size_max(size_t a, size_t b) { return a > b ? a : b; }

static inline size_t nbi_distance(const unsigned char *from, const unsigned char *to) { return (size_t)(to - from); }

static inline size_t nbi_block_capacity(const nb_arena_block *block) { return nbi_distance(block->base, block->end); }

// What may be touched of a block; its last page may go beyond the capacity.
static inline unsigned char *nbi_block_usable_end(const nb_arena_block *block) {
    return block->committed < block->end ? block->committed : block->end;
}

// End of the part of `block` in use, for blocks up to the current one.
static inline unsigned char *nbi_block_used_end(const nb_arena *arena, const nb_arena_block *block) {
    return block == arena->current ? arena->cursor : block->left_at;
}

static inline size_t nbi_arena_used(const nb_arena *arena) {
    return arena->used_before_bytes + nbi_distance(arena->current->base, arena->cursor);
}

static inline size_t nbi_arena_capacity(const nb_arena *arena) {
    return nbi_block_capacity(&arena->first) + arena->chained_bytes;
}

static inline size_t nbi_arena_committed(const nb_arena *arena) {
    return nbi_distance(arena->first.base, nbi_block_usable_end(&arena->first)) + arena->chained_bytes;
}

// The folded counters and what the fast path has added since.
static inline size_t nbi_arena_requested(const nb_arena *arena) {
    return arena->requested_bytes + (size_t)(arena->tally >> 32);
}

static inline uint64_t nbi_arena_allocations(const nb_arena *arena) {
    return arena->allocation_count + (arena->tally & UINT32_MAX);
}
