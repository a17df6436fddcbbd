// SPDX-License-Identifier: MIT
#pragma once

// A fuzz target is LLVMFuzzerTestOneInput: with clang libFuzzer calls it, without the loop of fuzz_main.c does.

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nebula/hash.h"
#include "nebula/hooks.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// What a reader may take beside the input; more is a failure.
typedef struct fuzz_heap {
    uint64_t live_bytes, peak_bytes, live_count;
    uint64_t call_count, fail_at; // this call fails (1 = the first); 0 = none
} fuzz_heap;

static inline void *fuzz_alloc(void *user, size_t size_bytes, size_t alignment) {
    fuzz_heap *heap = (fuzz_heap *)user;
    (void)alignment;
    if (++heap->call_count == heap->fail_at) return NULL;
    heap->live_bytes += size_bytes;
    ++heap->live_count;
    if (heap->live_bytes > heap->peak_bytes) heap->peak_bytes = heap->live_bytes;
    void *memory = aligned_alloc(64, (size_bytes + 63) & ~(size_t)63);
    if (memory == NULL) abort();
    return memory;
}

static inline void fuzz_free(void *user, void *memory, size_t size_bytes) {
    fuzz_heap *heap = (fuzz_heap *)user;
    heap->live_bytes -= size_bytes;
    --heap->live_count;
    free(memory);
}

// The first byte of an input: how the others are prepared, and which allocation fails.
#define FUZZ_MODE(byte) ((byte) % 4u)
#define FUZZ_FAIL_AT(byte) ((byte) / 4u % 16u)

// For readers of files: the bytes under a name of this process.
static inline const char *fuzz_file(const void *bytes, size_t size, const char *name) {
    FILE *file = fopen(name, "wb");
    if (file == NULL || fwrite(bytes, 1, size, file) != size || fclose(file) != 0) abort();
    return name;
}

static inline void fuzz_log(void *user, const nb_log_record *record) {
    (void)user;
    if (record->message[0] == '\0') abort();
}

static inline nb_hooks fuzz_hooks(fuzz_heap *heap) {
    nb_hooks hooks = {.allocator = {fuzz_alloc, fuzz_free, heap}, .logger = {.log = fuzz_log}};
    return hooks;
}
