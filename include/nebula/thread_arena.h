// SPDX-License-Identifier: MIT
#pragma once

// Thread arenas: scratch memory per thread and frame, without locks and without anyone resetting on another's behalf.
// The coordinator advances one frame number; each thread resets its own arena at its first use in the newer frame. The
// one rule: a block lives for slot_count - 1 further frames, and as long as its frame is pinned; whoever needs it
// longer pins the frame, or allocates from an nb_arena of its own.
//
//     nb_thread_arenas *arenas = NULL;
//     if (nb_thread_arenas_create(NULL, &arenas) < 0) return;
//     nb_thread_arena *mine = NULL;
//     nb_thread_arena_attach(arenas, &mine); // once per thread
//     nb_arena_frame frame;
//     nb_thread_arenas_advance(arenas, &frame); // once per frame, by the coordinator
//     int *visible = (int *)nb_thread_arena_alloc(mine, 100 * sizeof(int), sizeof(int));
//     if (visible != NULL) visible[0] = 7;
//     nb_thread_arenas_pin(arenas, frame); // a reader that may be late
//     nb_thread_arenas_unpin(arenas, frame);
//     nb_thread_arena_detach(mine);
//     nb_thread_arenas_destroy(arenas);

#include "nebula/arena.h"
#include "nebula/atomic.h"

// Frames that may be alive at once, at most: pinned ones and the youngest slot_count. A frame's number and its slot fit
// one word.
#define NB_THREAD_ARENA_SLOT_COUNT_MAX 64

// Slots where the desc gives none: three frames in flight on the GPU, and as many again late, with room to spare.
#define NB_THREAD_ARENA_SLOT_COUNT_DEFAULT 8

// Threads attached at once where the desc gives none; far above any machine's cores, so that only a leak reaches it.
#define NB_THREAD_ARENA_THREAD_COUNT_DEFAULT 4096

// Pins of one frame at most: what fits beside a 40-bit frame number in one word.
#define NB_THREAD_ARENA_PIN_COUNT_MAX 0xFFFFFEu

// Frame numbers start again at 0 after this one: 34 years at 1000 frames a second.
#define NB_ARENA_FRAME_NUMBER_MAX (((uint64_t)1 << 40) - 1)

// Says which frame. Zero is null.
typedef struct nb_arena_frame {
    uint64_t value; // private: number and slot
} nb_arena_frame;

// Everything the threads share. One per engine; several may exist.
typedef struct nb_thread_arenas nb_thread_arenas;

// One thread's arenas in one context. Fields are private; visible only for the inline functions.
typedef struct nb_thread_arena {
    const nb_atomic_u64 *current; // the context's current frame
    uint64_t frame;               // the frame `arena` is for
    nb_arena *arena;
} nb_thread_arena;

typedef struct nb_thread_arenas_desc {
    size_t capacity_bytes;     // address space per thread and frame slot; default 16 MiB
    nb_arena_policy policy;    // default CHAIN
    nb_arena_checks checks;    // default by build
    uint32_t slot_count;       // frames whose blocks live without a pin, the current one included; 2 to 64, default 8
    uint32_t slot_count_max;   // slots that pinned frames may make it grow to; slot_count to 64, default 64
    uint32_t thread_count_max; // threads attached at once; default 4096
    uint64_t frame_first;      // number of the frame open at creation; default 0
    nb_hooks hooks;
} nb_thread_arenas_desc;

typedef struct nb_thread_arenas_stats {
    nb_arena_frame frame;     // the current one
    uint32_t slot_count;      // slots opened so far
    uint32_t live_slot_count; // of them: current, young or pinned
    uint64_t pin_count;       // pins out, of all frames
    uint32_t thread_count;    // attached now
    uint32_t idle_count;      // left by their threads, holding memory that a frame may still need
    uint64_t full_count;      // ever: advances refused because every slot was pinned or young
    uint64_t stale_count;     // ever: pins refused because the frame had ended
} nb_thread_arenas_stats;

NB_EXTERN_C_BEGIN

// A desc with every default spelled out; checks stays 0, for it follows from the build.
// Thread: any. Owner: the caller gets a value. Fails: never.
NB_API nb_thread_arenas_desc nb_thread_arenas_desc_default(void);

// Makes a context with its first frame open; desc NULL means all defaults.
// Thread: any. Owner: the caller, until nb_thread_arenas_destroy. Fails: NB_ERR_MEMORY, NB_ERR_MISUSE, NB_ERR_RANGE.
NB_API nb_result nb_thread_arenas_create(const nb_thread_arenas_desc *desc, nb_thread_arenas **arenas);

// Frees everything, blocks of threads that have left included. NULL is fine.
// Thread: any, when no other uses the context. Owner: all blocks end. Fails: NB_BUSY while threads are attached or pins
// are out, logged as NB_ITEM_ARENA_PINNED; nothing is freed then.
NB_API nb_result nb_thread_arenas_destroy(nb_thread_arenas *arenas);

// Ends the current frame and opens the next; *frame (may be NULL) says which. Memory of threads that have left is
// released here when its frame ends, cleanups included.
// Thread: any, as a rule the coordinator; calls are ordered by a lock. Owner: blocks of the frame that is slot_count -
// 1 back end, unless pinned. Fails: NB_FULL when every slot is pinned or young: the current frame stays open, its
// arenas are not reset, allocation goes on. NB_ERR_MISUSE.
NB_API nb_result nb_thread_arenas_advance(nb_thread_arenas *arenas, nb_arena_frame *frame);

// The current frame.
// Thread: any. Owner: the caller gets a value. Fails: zero for NULL.
NB_API nb_arena_frame nb_thread_arenas_frame(const nb_thread_arenas *arenas);

// Keeps every block of a frame alive, of all threads, until the pin is given back.
// Thread: any. Owner: the caller owes one nb_thread_arenas_unpin. Fails: NB_ERR_STALE when the frame has ended or
// never was, NB_FULL at NB_THREAD_ARENA_PIN_COUNT_MAX, NB_ERR_MISUSE.
NB_API nb_result nb_thread_arenas_pin(nb_thread_arenas *arenas, nb_arena_frame frame);

// Gives one pin back; reads of the frame's blocks must lie before it.
// Thread: any. Owner: the pin ends. Fails: NB_ERR_STALE when the frame has ended or never was, NB_ERR_MISUSE when it
// has no pins; nothing is changed then.
NB_API nb_result nb_thread_arenas_unpin(nb_thread_arenas *arenas, nb_arena_frame frame);

// The context's numbers; those that other threads change meanwhile are a moment old.
// Thread: any. Owner: the caller gets a value. Fails: zeros for NULL.
NB_API nb_thread_arenas_stats nb_thread_arenas_stats_get(const nb_thread_arenas *arenas);

// The number of a frame, as counted by advance.
// Thread: any. Owner: nothing. Fails: never; 0 for the zero frame.
NB_INLINE uint64_t nb_arena_frame_number(nb_arena_frame frame) { return frame.value >> 8; }

// Gives the calling thread its arenas in this context; memory left by a thread that has detached is used again.
// Thread: any, once per thread as a rule. Owner: the calling thread, until nb_thread_arena_detach. Fails:
// NB_ERR_MEMORY, NB_FULL at thread_count_max (logged the first time in a row), NB_ERR_MISUSE.
NB_API nb_result nb_thread_arena_attach(nb_thread_arenas *arenas, nb_thread_arena **thread);

// Ends the thread's use. Its blocks stay as long as their frames do; the context sees to them.
// Thread: the attached one. Owner: the pointer ends. Fails: NB_ERR_THREAD, NB_ERR_MISUSE; still attached then.
NB_API nb_result nb_thread_arena_detach(nb_thread_arena *thread);

// The part of nb_thread_arena_get that runs once a frame: takes up the current frame and resets what is older.
// Thread: the attached one. Owner: the context. Fails: NULL, as nb_thread_arena_get.
NB_API nb_arena *nb_thread_arena_refresh(nb_thread_arena *thread);

// The calling thread's arena in the current frame: marks, growth and the rest of nebula/arena.h work on it. Asked again
// in each frame.
// Thread: the attached one. Owner: the context; reset and deinit are refused. Fails: NULL for NULL, from another thread
// (at its first use in a frame; later with checks only), and when memory runs out.
NB_INLINE nb_arena *nb_thread_arena_get(nb_thread_arena *thread) {
    // Pairs with the release in nb_thread_arenas_advance: a thread that sees the new frame sees every unpin before it.
    if (NB_UNLIKELY(thread == NULL || thread->frame != nbi_atomic_load_acquire_u64(thread->current))) {
        return nb_thread_arena_refresh(thread);
    }
    return thread->arena;
}

// nb_arena_alloc from the calling thread's arena in the current frame.
// Thread: the attached one. Owner: the context, while the frame lives. Fails: NULL as nb_thread_arena_get and
// nb_arena_alloc.
NB_INLINE void *nb_thread_arena_alloc(nb_thread_arena *thread, size_t size_bytes, size_t alignment) {
    nb_arena *arena = nb_thread_arena_get(thread);
    return arena != NULL ? nb_arena_alloc(arena, size_bytes, alignment) : NULL;
}

// The calling thread's arena in a given frame, for work that has pinned it and may run past the next advance.
// Thread: the attached one. Owner: the context, while the frame lives. Fails: NULL when the frame has ended or never
// was, logged as NB_ITEM_ARENA_STALE, and as nb_thread_arena_get.
NB_API nb_arena *nb_thread_arena_at(nb_thread_arena *thread, nb_arena_frame frame);

NB_EXTERN_C_END
