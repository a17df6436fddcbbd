// SPDX-License-Identifier: MIT
#pragma once

// What every allocator of the arena cases does in a frame: allocate the same sequence of sizes, write the first and the
// last byte of each block, give everything back. The loop is spelled out by each peer, so that what can be inlined is.

#include "../bench.h"

typedef struct arena_frame {
    const uint32_t *sizes; // bytes
    size_t count;
    void **blocks; // room for `count` pointers, for allocators that free one by one
} arena_frame;

// Alignment asked of every allocator: what malloc gives.
#define ARENA_FRAME_ALIGNMENT 16
// Holds a whole frame in one piece: 10,000 blocks of at most 256 bytes, rounded up.
#define ARENA_FRAME_BYTES ((size_t)4 << 20)

typedef struct arena_peer {
    void *(*create)(void); // NULL: failed
    // By value: what the blocks' bytes are written over can then not be the frame itself, and nothing is reloaded.
    bool (*frame)(void *state, arena_frame frame);
    void (*destroy)(void *state);
} arena_peer;

BENCH_ALWAYS_INLINE void arena_touch(void *memory, size_t size_bytes) {
    unsigned char *bytes = (unsigned char *)memory;
    bytes[0] = 1;
    bytes[size_bytes - 1] = 2;
    bench_keep(memory);
}
