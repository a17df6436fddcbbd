// SPDX-License-Identifier: MIT
#pragma once

// Generation handles: a number for a slot of an array, which stops being valid when the slot is released, for ever.
// The one rule: keep handles, not indices; ask for the index when you use it.
//
//     nb_handle_pool *pool = NULL;
//     nb_handle enemy = {0};
//     uint32_t index = 0;
//     if (nb_handle_pool_create(NULL, &pool) != NB_OK) return 1;
//     nb_handle_pool_acquire(pool, &enemy);
//     if (nb_handle_pool_find(pool, enemy, &index) == NB_OK) printf("enemy in slot %u\n", (unsigned)index);
//     nb_handle_pool_release(pool, enemy);
//     if (!nb_handle_pool_is_live(pool, enemy)) puts("gone, and no later enemy has this handle");
//     nb_handle_pool_destroy(pool);

#include "nebula/hooks.h"
#include "nebula/types.h"

// 24 bits of index: 16.7 million slots, more than a frame can visit.
#define NB_HANDLE_INDEX_BITS 24
#define NB_HANDLE_CAPACITY_MAX (1u << NB_HANDLE_INDEX_BITS)

// 40 bits of generation, odd while the slot is live: 2^39 uses of each slot, 290 years of 60 uses a second. A slot that
// has had them all is retired.
#define NB_HANDLE_GENERATION_BITS 40
#define NB_HANDLE_USE_COUNT_MAX (1ull << (NB_HANDLE_GENERATION_BITS - 1))

// {generation, index}; zero is null and never valid.
typedef struct nb_handle {
    uint64_t value;
} nb_handle;

typedef struct nb_handle_pool_desc {
    uint32_t capacity;      // slots, 1..NB_HANDLE_CAPACITY_MAX; 0 = 1024, a small game's objects
    uint64_t use_count_max; // uses before a slot is retired; 0 = NB_HANDLE_USE_COUNT_MAX, which is also the most
    nb_hooks hooks;         // zero = defaults
} nb_handle_pool_desc;

// Which slots are live. Only what the inline functions need is visible; callers read none of it.
typedef struct nb_handle_pool {
    const uint64_t *generations; // by index, odd = live
    uint32_t capacity;           // slots
} nb_handle_pool;

typedef struct nb_handle_pool_stats {
    uint32_t capacity;      // as created
    uint32_t live_count;    // handles acquired and not released
    uint32_t used_count;    // slots ever used: the indices of live handles are below it
    uint32_t retired_count; // slots that will never be used again
    uint64_t stale_count;   // handles refused because they were not live
    uint64_t full_count;    // acquires refused because no slot was left
} nb_handle_pool_stats;

// The bytes that decide which handles are live, without pointers: see nb_handle_pool_state.
typedef struct nb_handle_pool_bytes {
    void *bytes;
    size_t size_bytes;
} nb_handle_pool_bytes;

NB_EXTERN_C_BEGIN

// The slot of a handle, whether or not it is live; 0 for null.
// Thread: any. Owner: nothing. Fails: never.
NB_INLINE uint32_t nb_handle_index(nb_handle handle) { return (uint32_t)(handle.value & (NB_HANDLE_CAPACITY_MAX - 1)); }

// The generation of a handle: odd, and larger for each later use of its slot; 0 for null.
// Thread: any. Owner: nothing. Fails: never.
NB_INLINE uint64_t nb_handle_generation(nb_handle handle) { return handle.value >> NB_HANDLE_INDEX_BITS; }

// The defaults, spelled out.
// Thread: any. Owner: the caller gets a value. Fails: never.
NB_API nb_handle_pool_desc nb_handle_pool_desc_default(void);

// Creates a pool with every slot free; all its memory is allocated here, in one piece. desc may be NULL.
// Thread: any. Owner: the caller, until nb_handle_pool_destroy. Fails: NB_ERR_MEMORY, NB_ERR_MISUSE (out is NULL),
// NB_ERR_RANGE.
NB_API nb_result nb_handle_pool_create(const nb_handle_pool_desc *desc, nb_handle_pool **out);

// Takes a slot: the one released longest ago, or, when none waits, the next never used. The choice depends on the
// pool's state alone, so that equal histories give equal handles.
// Thread: one at a time for each pool. Owner: the caller, until nb_handle_pool_release. Fails: NB_FULL (counted; logged
// the first time), NB_ERR_MISUSE (NULL), NB_ERR_RANGE (the state was loaded from bytes that make no sense).
NB_API nb_result nb_handle_pool_acquire(nb_handle_pool *pool, nb_handle *out);

// Is this handle acquired and not released? One load and two compares; counts nothing.
// Thread: one at a time for each pool, or many while none changes it. Owner: nothing. Fails: false for NULL, null,
// stale and out-of-range handles.
NB_INLINE bool nb_handle_pool_is_live(const nb_handle_pool *pool, nb_handle handle) {
    uint64_t generation = nb_handle_generation(handle);
    uint32_t index = nb_handle_index(handle);
    if (pool == NULL || (generation & 1) == 0 || index >= pool->capacity) return false;
    return pool->generations[index] == generation;
}

// The slot of a live handle.
// Thread: one at a time for each pool. Owner: the slot is the caller's until the handle is released. Fails:
// NB_ERR_STALE (null, released or foreign; counted), NB_ERR_MISUSE (NULL).
NB_API nb_result nb_handle_pool_find(nb_handle_pool *pool, nb_handle handle, uint32_t *out_index);

// The live handle with the smallest index above that of `after`, or the first for null; null at the end. `after` may
// have been released meanwhile: a walk may release what it visits.
// Thread: one at a time for each pool, or many while none changes it. Owner: nothing. Fails: null for NULL.
NB_API nb_handle nb_handle_pool_next(const nb_handle_pool *pool, nb_handle after);

// Gives the slot back; the handle and its copies are stale from here on.
// Thread: one at a time for each pool. Owner: the slot is the pool's again. Fails: NB_ERR_STALE (null, released before
// or foreign; counted and reported), NB_ERR_MISUSE (NULL), NB_ERR_RANGE (as nb_handle_pool_acquire).
NB_API nb_result nb_handle_pool_release(nb_handle_pool *pool, nb_handle handle);

// What decides every later result of the pool, as plain bytes: copying them out saves it, copying them back into a pool
// of the same capacity and use_count_max restores it. Equal histories have equal bytes. Call nb_handle_pool_is_valid
// after loading bytes from outside.
// Thread: one at a time for each pool. Owner: the pool. Fails: {NULL, 0} for NULL.
NB_API nb_handle_pool_bytes nb_handle_pool_state(nb_handle_pool *pool);

// Walks all slots: does every one have exactly one role (live, waiting, retired, never used), and do the counts agree?
// Thread: one at a time for each pool, or many while none changes it. Owner: nothing. Fails: false, with a report that
// names the first slot found wrong; false for NULL.
NB_API bool nb_handle_pool_is_valid(const nb_handle_pool *pool);

// How many slots are in which role, and what was refused.
// Thread: one at a time for each pool. Owner: the caller gets a value. Fails: zeros for NULL.
NB_API nb_handle_pool_stats nb_handle_pool_stats_get(const nb_handle_pool *pool);

// Ends the pool; every handle of it is meaningless from here on. NULL is fine.
// Thread: one, when no other uses the pool. Owner: the pool is gone. Fails: never.
NB_API void nb_handle_pool_destroy(nb_handle_pool *pool);

NB_EXTERN_C_END
