// SPDX-License-Identifier: MIT
// GNU obstack. Its chunk size is raised so that a frame fits in one chunk: with the default of 4 KiB it would ask
// malloc for hundreds of chunks a frame, and glibc would give the heap back to the system each time.

#include "peers.h"

#include <obstack.h>
#include <stdlib.h>

#define obstack_chunk_alloc malloc
#define obstack_chunk_free free

typedef struct obstack_state {
    struct obstack stack;
    void *bottom; // freeing it empties the stack and keeps the chunk
} obstack_state;

static void *create(void) {
    obstack_state *self = calloc(1, sizeof *self);
    if (!self) return NULL;
    obstack_begin(&self->stack, ARENA_FRAME_BYTES);
    obstack_alignment_mask(&self->stack) = ARENA_FRAME_ALIGNMENT - 1;
    self->bottom = obstack_alloc(&self->stack, ARENA_FRAME_ALIGNMENT);
    return self;
}

static void destroy(void *state) {
    obstack_free(&((obstack_state *)state)->stack, NULL);
    free(state);
}

static bool frame_run(void *state, arena_frame frame) {
    obstack_state *self = state;
    for (size_t i = 0; i < frame.count; ++i) {
        size_t size_bytes = frame.sizes[i];
        void *block = obstack_alloc(&self->stack, (int)size_bytes);
        arena_touch(block, size_bytes);
    }
    obstack_free(&self->stack, self->bottom);
    self->bottom = obstack_alloc(&self->stack, ARENA_FRAME_ALIGNMENT);
    return true;
}

const arena_peer peer_obstack = {create, frame_run, destroy};
