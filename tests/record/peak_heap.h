// SPDX-License-Identifier: MIT
#pragma once

// A heap that knows how much was taken from it at a time, of one thread.

#include "support/support.h"

typedef struct peak_heap {
    test_heap heap;
    uint64_t peak_bytes;
} peak_heap;

static inline void *peak_alloc(void *user, size_t size_bytes, size_t alignment) {
    peak_heap *h = user;
    void *memory = test_heap_alloc(&h->heap, size_bytes, alignment);
    if (h->heap.live_bytes.value > h->peak_bytes) h->peak_bytes = h->heap.live_bytes.value;
    return memory;
}

static inline void peak_free(void *user, void *memory, size_t size_bytes) {
    test_heap_free(&((peak_heap *)user)->heap, memory, size_bytes);
}
