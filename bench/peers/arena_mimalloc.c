// SPDX-License-Identifier: MIT
// mimalloc, loaded at run time: a program linked with the shared library would have its malloc replaced, and glibc's
// could no longer be measured beside it.

#include "peers.h"

#include <dlfcn.h>
#include <mimalloc.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct mimalloc_calls {
    void *library;
    void *(*malloc)(size_t);
    void (*free)(void *);
    mi_heap_t *(*heap_new)(void);
    void *(*heap_malloc)(mi_heap_t *, size_t);
    void (*heap_destroy)(mi_heap_t *);
} mimalloc_calls;

// POSIX lets dlsym's result be a function; C wants the detour through an object pointer.
static bool find(void *library, const char *name, void *function) {
    void *found = dlsym(library, name);
    memcpy(function, &found, sizeof found);
    return found != NULL;
}

static void *create(void) {
    mimalloc_calls *calls = calloc(1, sizeof *calls);
    if (!calls) return NULL;
    calls->library = dlopen("libmimalloc.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!calls->library) calls->library = dlopen("libmimalloc.so", RTLD_NOW | RTLD_LOCAL);
    if (calls->library && find(calls->library, "mi_malloc", &calls->malloc) &&
        find(calls->library, "mi_free", &calls->free) && find(calls->library, "mi_heap_new", &calls->heap_new) &&
        find(calls->library, "mi_heap_malloc", &calls->heap_malloc) &&
        find(calls->library, "mi_heap_destroy", &calls->heap_destroy))
        return calls;
    fprintf(stderr, "mimalloc: %s\n", dlerror());
    free(calls);
    return NULL;
}

// The library stays loaded: it registers thread-exit handlers and does not expect to be unloaded.
static void destroy(void *state) { free(state); }

static bool frame_free(void *state, arena_frame frame) {
    const mimalloc_calls *calls = state;
    for (size_t i = 0; i < frame.count; ++i) {
        size_t size_bytes = frame.sizes[i];
        void *block = calls->malloc(size_bytes);
        if (!block) return false;
        arena_touch(block, size_bytes);
        frame.blocks[i] = block;
    }
    for (size_t i = 0; i < frame.count; ++i) calls->free(frame.blocks[i]);
    return true;
}

static bool frame_heap(void *state, arena_frame frame) {
    const mimalloc_calls *calls = state;
    mi_heap_t *heap = calls->heap_new();
    bool is_good = heap != NULL;
    for (size_t i = 0; is_good && i < frame.count; ++i) {
        size_t size_bytes = frame.sizes[i];
        void *block = calls->heap_malloc(heap, size_bytes);
        is_good = block != NULL;
        if (is_good) arena_touch(block, size_bytes);
    }
    if (heap) calls->heap_destroy(heap);
    return is_good;
}

const arena_peer peer_mimalloc = {create, frame_free, destroy};
const arena_peer peer_mimalloc_heap = {create, frame_heap, destroy};
