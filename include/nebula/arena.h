// SPDX-License-Identifier: MIT
#pragma once

// Arenas: memory handed out by moving a pointer, given back all at once. Over reserved pages that are committed as they
// are needed, or over a buffer of the caller's with no heap at all. The one rule: a block lives until its arena is
// reset or rewound past it, and only the owning thread touches the arena. A task that outlives its frame keeps its
// memory in an nb_arena of its own; scratch memory per thread and frame is in thread_arena.h.
//
//     nb_arena arena;
//     if (nb_arena_init(&arena, NULL) < 0) return;
//     float *heights = nb_arena_array(&arena, float, 64 * 64);
//     nb_arena_mark scope = nb_arena_save(&arena);
//     char *name = nb_arena_strdup(&arena, "scratch");
//     if (heights != NULL && name != NULL) heights[0] = (float)name[0];
//     nb_arena_rewind(&arena, scope);
//     nb_arena_reset(&arena);
//     nb_arena_deinit(&arena);

#include <string.h>

#include "nebula/hooks.h"
#include "nebula/types.h"

// Address space of an arena where the desc gives none: the thread arena size the frame memory was planned with. Only
// touched pages cost memory.
#define NB_ARENA_CAPACITY_DEFAULT ((size_t)16 << 20)

// Largest alignment: a huge page. On 64-bit machines the bound keeps "cursor + alignment - 1" from wrapping, without a
// test per allocation: no program's memory ends that close to the top.
#define NB_ARENA_ALIGNMENT_MAX ((size_t)2 << 20)

// Alignment for memory whose use is not known: enough for every C type and for 128-bit vectors.
#define NB_ARENA_ALIGNMENT_DEFAULT ((size_t)16)

// Frames (resets) remembered for the peak statistics: the fewest, as a power of two, for which a 99th percentile may
// leave a single outlier out.
#define NB_ARENA_PEAK_COUNT 128

// What a reset or rewind leaves in released memory where checks are on and no sanitizer watches it.
#define NB_ARENA_POISON_BYTE 0xDD

// What happens to an allocation that does not fit.
typedef enum nb_arena_policy {
    NB_ARENA_POLICY_DEFAULT = 0, // FAIL; CHAIN for thread arenas
    NB_ARENA_POLICY_FAIL,        // NULL, counted, logged once between two resets
    NB_ARENA_POLICY_CHAIN,       // served from a further block of the hooks' allocator, which later resets keep
    NB_ARENA_POLICY_COUNT,
} nb_arena_policy;

// Checks: the calling thread is compared with the owner, released memory is poisoned. Every allocation then makes a
// call.
typedef enum nb_arena_checks {
    NB_ARENA_CHECKS_DEFAULT = 0, // ON in a library built with assertions or with an address or memory sanitizer
    NB_ARENA_CHECKS_OFF,
    NB_ARENA_CHECKS_ON,
    NB_ARENA_CHECKS_COUNT,
} nb_arena_checks;

typedef struct nb_arena_desc {
    const char *label;        // for log messages, not copied; default "arena"
    void *buffer;             // the caller's memory, must outlive the arena; default NULL: reserved pages
    size_t capacity_bytes;    // of the first block, exact; default 16 MiB; with a buffer its size, then required
    nb_arena_policy policy;   // default FAIL
    size_t chain_block_bytes; // smallest chained block; default the capacity, at least 4 KiB and at most 1 MiB
    size_t chain_bytes_max;   // all chained blocks together; default 64 times the capacity
    bool keep_committed;      // true: reset never gives memory back; default false: what 128 frames did not need goes
    nb_arena_checks checks;   // default by build
    nb_hooks hooks;           // memory for chained blocks only
} nb_arena_desc;

// A stretch of memory. Private to the arena.
typedef struct nb_arena_block {
    struct nb_arena_block *next; // used when this one is full; NULL = none
    unsigned char *base;         // first byte
    unsigned char *committed;    // end of what may be touched; beyond `end` where the capacity is no multiple of a page
    unsigned char *end;          // end of the capacity
    unsigned char *left_at;      // the cursor when the arena went on to `next`
} nb_arena_block;

// An arena in caller storage. Fields are private; visible only for the inline allocation. Not to be copied or moved.
typedef struct nb_arena {
    unsigned char *cursor; // first free byte of the current block
    unsigned char *limit;  // what the fast path may reach; equal to cursor where every allocation must make the call
    uint64_t tally;        // since it was last folded: low half allocations, high half requested bytes

    nb_arena_block *current;           // the block being filled
    nb_arena_block first;              // pages or the caller's buffer
    struct nb_arena_cleanup *cleanups; // newest first, nodes inside the arena
    size_t used_before_bytes;          // capacity of the blocks before `current`
    size_t requested_bytes;            // without padding, without what is in tally
    uint64_t allocation_count;         // without what is in tally
    uint64_t generation;               // 1 at init, +1 with each reset; 0 = not an arena
    uint64_t owner;                    // thread that may call
    uint64_t overflow_count;
    uint64_t refused_count;
    size_t high_watermark_bytes;
    size_t frame_peak_bytes;           // largest use seen at a rewind since the last reset
    size_t peaks[NB_ARENA_PEAK_COUNT]; // ring, indexed by reset_count
    uint64_t reset_count;
    uint64_t steady_since; // reset_count when memory last grew or was given back
    size_t chained_bytes;
    size_t chain_block_bytes;
    size_t chain_bytes_max;
    nb_arena_policy policy;
    bool owns_pages;
    bool keeps_committed;
    bool is_checked;
    bool is_cleaning;      // inside cleanup callbacks
    bool is_full_reported; // since the last reset
    bool is_managed;       // one of a thread's frame arenas: its reset and end belong to the context
    const char *label;
    nb_hooks hooks;
} nb_arena;

// A position to rewind to. Plain data; good until the arena is reset or rewound past it.
typedef struct nb_arena_mark {
    nb_arena_block *block;
    unsigned char *cursor;
    struct nb_arena_cleanup *cleanups;
    size_t used_before_bytes;
    size_t requested_bytes;
    uint64_t allocation_count;
    uint64_t generation; // 0 = no mark
} nb_arena_mark;

// A pointer into an arena that knows when it has become stale. Zero is null.
typedef struct nb_arena_ref {
    void *memory;
    uint64_t generation;
} nb_arena_ref;

typedef struct nb_arena_stats {
    size_t capacity_bytes;       // of all blocks
    size_t committed_bytes;      // that may be touched without asking the OS; the rest is address space
    size_t used_bytes;           // with padding and with the tails of full blocks
    size_t padding_bytes;        // the part of used_bytes nobody asked for
    uint64_t allocation_count;   // living blocks: since the last reset, less what was rewound
    uint64_t overflow_count;     // ever: allocations that did not fit the block being filled; served or refused
    uint64_t refused_count;      // ever: those of them that got NULL
    size_t high_watermark_bytes; // largest used_bytes since init or nb_arena_high_watermark_reset
    size_t peak_p99_bytes;       // of the last 128 frames' peaks the 99th percentile; 0 before the first reset
    uint64_t reset_count;
    uint32_t chained_block_count; // held now, in use or kept
} nb_arena_stats;

// Runs at the reset, rewind or deinit that releases the memory it was registered with.
typedef void (*nb_arena_cleanup_fn)(void *user);

NB_EXTERN_C_BEGIN

// A desc with every default spelled out. What follows from other things stays 0: the capacity, which a buffer requires
// to be given, the sizes of chained blocks, which follow from it, and checks, which follow from the build.
// Thread: any. Owner: the caller gets a value. Fails: never.
NB_API nb_arena_desc nb_arena_desc_default(void);

// Makes an arena in the caller's storage; desc NULL means all defaults. Reserves address space, touches no memory. The
// calling thread becomes the owner.
// Thread: any. Owner: the caller, until nb_arena_deinit. Fails: NB_ERR_MEMORY, NB_ERR_RANGE, NB_ERR_MISUSE.
NB_API nb_result nb_arena_init(nb_arena *arena, const nb_arena_desc *desc);

// Makes an arena over the caller's buffer with all defaults: no heap, no pages, NULL when full.
// Thread: any. Owner: the buffer is the arena's until nb_arena_deinit, then the caller's again. Fails: NB_ERR_RANGE,
// NB_ERR_MISUSE.
NB_API nb_result nb_arena_init_buffer(nb_arena *arena, void *buffer, size_t size_bytes);

// Runs the cleanups and gives everything back; the storage is zeroed. NULL and a zeroed arena are fine.
// Thread: the owner. Owner: every block ends. Fails: NB_ERR_MISUSE (also for a thread's frame arena), NB_ERR_THREAD;
// nothing is released then.
NB_API nb_result nb_arena_deinit(nb_arena *arena);

// Makes the calling thread the owner, for an arena that is handed over. The hand-over itself must be ordered by the
// caller (a join, a channel, a lock).
// Thread: any, while no other uses the arena. Owner: the calling thread. Fails: NB_ERR_MISUSE (also for a thread's
// frame arena).
NB_API nb_result nb_arena_adopt(nb_arena *arena);

// The part of nb_arena_alloc that is too long to be inline: mistakes, size 0, committing pages, chaining, checks.
// Thread: the owner. Owner: the arena, until reset. Fails: NULL, as nb_arena_alloc.
NB_API void *nb_arena_alloc_slow(nb_arena *arena, size_t size_bytes, size_t alignment);

// size_bytes of uninitialised memory at an address that is a multiple of alignment (a power of two up to
// NB_ARENA_ALIGNMENT_MAX). Size 0 gives a pointer that must not be followed and takes nothing.
// Thread: the owner. Owner: the arena, until reset or rewind. Fails: NULL when full, on a bad alignment, from a cleanup
// callback and, with checks, from a foreign thread; the arena is unchanged then.
NB_INLINE void *nb_arena_alloc(nb_arena *arena, size_t size_bytes, size_t alignment) {
    // With a constant alignment the compiler leaves only the NULL test of this line.
    if (NB_UNLIKELY(arena == NULL || alignment - 1 >= NB_ARENA_ALIGNMENT_MAX || (alignment & (alignment - 1)) != 0)) {
        return nb_arena_alloc_slow(arena, size_bytes, alignment);
    }
    // The address is aligned, not the offset.
    uintptr_t start = ((uintptr_t)arena->cursor + (alignment - 1)) & ~(uintptr_t)(alignment - 1);
    uintptr_t end = start + size_bytes;
    // The second test is true for size 0 and for a sum that wrapped.
    bool is_start_wrapped = sizeof(void *) < 8 && start < (uintptr_t)arena->cursor;
    if (NB_UNLIKELY(end > (uintptr_t)arena->limit || end <= start || is_start_wrapped)) {
        return nb_arena_alloc_slow(arena, size_bytes, alignment);
    }
    arena->cursor = (unsigned char *)end;
    // The count and the requested bytes in one addition. Neither half can run over: limit is never more than 1 GiB
    // ahead. A constant of 1 folds into the sum; a larger one made clang add twice, at the price of the whole call.
    arena->tally += (uint64_t)size_bytes << 32 | 1;
    return (void *)start;
}

// count elements of zeroed memory.
// Thread: the owner. Owner: the arena, until reset or rewind. Fails: NULL as nb_arena_alloc, and when count times the
// element size overflows.
NB_INLINE void *nb_arena_calloc(nb_arena *arena, size_t count, size_t element_bytes, size_t alignment) {
    // A product that overflows becomes a size no arena can hold, which is refused and counted like any other.
    size_t size_bytes = element_bytes != 0 && count > SIZE_MAX / element_bytes ? SIZE_MAX : count * element_bytes;
    void *memory = nb_arena_alloc(arena, size_bytes, alignment);
    if (memory != NULL && size_bytes != 0) memset(memory, 0, size_bytes);
    return memory;
}

// count copies of the element at `value`.
// Thread: the owner. Owner: the arena, until reset or rewind. Fails: NULL as nb_arena_calloc, and for value NULL.
NB_API void *nb_arena_fill(nb_arena *arena, size_t count, size_t element_bytes, size_t alignment, const void *value);

// A zeroed object, an array of zeroed elements, an array of copies of *value. NULL as nb_arena_calloc.
#define nb_arena_new(arena, type) ((type *)nb_arena_calloc((arena), 1, sizeof(type), NB_ALIGNOF(type)))
#define nb_arena_array(arena, type, count) ((type *)nb_arena_calloc((arena), (count), sizeof(type), NB_ALIGNOF(type)))
#define nb_arena_array_fill(arena, type, count, value) \
    ((type *)nb_arena_fill((arena), (count), sizeof(type), NB_ALIGNOF(type), (value)))

// A copy of size_bytes bytes.
// Thread: the owner. Owner: the arena, until reset or rewind. Fails: NULL as nb_arena_alloc, and for source NULL.
NB_API void *nb_arena_memdup(nb_arena *arena, const void *source, size_t size_bytes, size_t alignment);

// A copy of a string with its final zero.
// Thread: the owner. Owner: the arena, until reset or rewind. Fails: NULL as nb_arena_alloc, and for text NULL.
NB_API char *nb_arena_strdup(nb_arena *arena, const char *text);

// Makes a block larger or smaller. The newest block keeps its address while it fits; any other is copied (the old one
// stays until reset) or, when it shrinks, stays as it is. Bytes beyond old_size_bytes are uninitialised. memory NULL or
// old_size_bytes 0 is a plain allocation.
// Thread: the owner. Owner: the arena; the old pointer ends where another is returned. Fails: NULL as nb_arena_alloc,
// and for memory that is not of this arena; the old block is unchanged then.
NB_API void *nb_arena_grow(nb_arena *arena, void *memory, size_t old_size_bytes, size_t new_size_bytes,
                           size_t alignment);

// Registers a callback for when the memory allocated so far is released; newest first. It may use that memory, and must
// not call this arena. The note takes a few bytes of the arena.
// Thread: the owner. Owner: user stays the caller's. Fails: NB_ERR_MEMORY, NB_ERR_MISUSE, NB_ERR_THREAD.
NB_API nb_result nb_arena_defer(nb_arena *arena, nb_arena_cleanup_fn cleanup, void *user);

// The position to come back to with nb_arena_rewind.
// Thread: the owner. Owner: the caller gets a value. Fails: a zero mark, which rewind refuses.
NB_API nb_arena_mark nb_arena_save(const nb_arena *arena);

// Releases what was allocated since the mark; cleanups registered since run newest first. Marks nest. After a rewind to
// an older mark a stale one is certain to be found only until new blocks cover its place.
// Thread: the owner. Owner: later blocks end. Fails: NB_ERR_STALE after a reset or a rewind to an older mark, for a
// zero mark and for one of another arena, NB_ERR_MISUSE, NB_ERR_THREAD.
NB_API nb_result nb_arena_rewind(nb_arena *arena, nb_arena_mark mark);

// Releases everything and returns to the first block, in constant time but for cleanups and, with checks, poisoning.
// Chained blocks are kept; memory 128 frames in a row had no use for is given back unless keep_committed.
// Thread: the owner. Owner: every block ends. Fails: NB_ERR_MISUSE (also for a thread's frame arena, which resets
// itself with its frame), NB_ERR_THREAD.
NB_API nb_result nb_arena_reset(nb_arena *arena);

// Gives memory in excess of keep_bytes back: committed pages and chained blocks that hold no allocation.
// Thread: the owner. Owner: living blocks are untouched. Fails: NB_ERR_MISUSE, NB_ERR_THREAD.
NB_API nb_result nb_arena_trim(nb_arena *arena, size_t keep_bytes);

// Bytes in use, padding included.
// Thread: the owner. Owner: nothing. Fails: 0 for NULL or a zeroed arena.
NB_API size_t nb_arena_bytes_used(const nb_arena *arena);

// Bytes of all blocks; used and remaining add up to it.
// Thread: the owner. Owner: nothing. Fails: 0 for NULL or a zeroed arena.
NB_API size_t nb_arena_capacity(const nb_arena *arena);

// Bytes not in use, in the block being filled and in those after it; alignment may take some of them.
// Thread: the owner. Owner: nothing. Fails: 0 for NULL or a zeroed arena.
NB_API size_t nb_arena_bytes_remaining(const nb_arena *arena);

// The most bytes ever in use at once; survives reset.
// Thread: the owner. Owner: nothing. Fails: 0 for NULL or a zeroed arena.
NB_API size_t nb_arena_high_watermark(const nb_arena *arena);

// Starts the watermark again from what is in use now.
// Thread: the owner. Owner: nothing. Fails: NB_ERR_MISUSE, NB_ERR_THREAD.
NB_API nb_result nb_arena_high_watermark_reset(nb_arena *arena);

// All numbers at once.
// Thread: the owner. Owner: the caller gets a value. Fails: zeros for NULL or a zeroed arena.
NB_API nb_arena_stats nb_arena_stats_get(const nb_arena *arena);

// A number that changes with every reset; 0 for something that is not an arena.
// Thread: the owner. Owner: nothing. Fails: 0.
NB_API uint64_t nb_arena_generation(const nb_arena *arena);

// A reference to a block that can be asked later whether the block still lives.
// Thread: the owner. Owner: nothing is kept alive. Fails: a zero reference for memory that is not of this arena.
NB_API nb_arena_ref nb_arena_ref_make(const nb_arena *arena, void *memory);

// The pointer, while its block lives. After a rewind the answer is certain only until new blocks cover the place.
// Thread: the owner. Owner: the arena. Fails: NULL after a reset, logged as NB_ITEM_ARENA_STALE.
NB_API void *nb_arena_ref_get(const nb_arena *arena, nb_arena_ref ref);

// Walks the whole structure and says whether it is consistent; for tests.
// Thread: the owner. Owner: nothing. Fails: false.
NB_API bool nb_arena_is_valid(const nb_arena *arena);

NB_EXTERN_C_END
