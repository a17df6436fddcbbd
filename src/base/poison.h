// SPDX-License-Identifier: MIT
#pragma once

// Marks memory as not to be touched: through the address sanitizer where the library is built with it, as uninitialised
// through the memory sanitizer, else by a byte pattern a person recognises in a debugger.

#include "nebula/arena.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define NBI_WITH_ASAN 1
#endif
#if __has_feature(memory_sanitizer)
#define NBI_WITH_MSAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define NBI_WITH_ASAN 1
#endif
#if !defined(NBI_WITH_ASAN)
#define NBI_WITH_ASAN 0
#endif
#if !defined(NBI_WITH_MSAN)
#define NBI_WITH_MSAN 0
#endif

#if NBI_WITH_ASAN
#include <sanitizer/asan_interface.h>
#elif NBI_WITH_MSAN
#include <sanitizer/msan_interface.h>
#endif

// Memory that no longer belongs to anyone; it has been written before, or belongs to the caller's buffer.
static inline void nbi_poison_released(unsigned char *memory, size_t size_bytes) {
    if (size_bytes == 0) return;
#if NBI_WITH_ASAN
    ASAN_POISON_MEMORY_REGION(memory, size_bytes);
#elif NBI_WITH_MSAN
    __msan_poison(memory, size_bytes);
#else
    memset(memory, NB_ARENA_POISON_BYTE, size_bytes);
#endif
}

// Memory that nobody has had yet. A pattern would touch every page of it, so only the sanitizers mark it.
static inline void nbi_poison_fresh(unsigned char *memory, size_t size_bytes) {
#if NBI_WITH_ASAN || NBI_WITH_MSAN
    nbi_poison_released(memory, size_bytes);
#else
    (void)memory;
    (void)size_bytes;
#endif
}

// Memory that is handed out, or given back to whoever it came from. Its contents stay undefined.
static inline void nbi_unpoison(unsigned char *memory, size_t size_bytes) {
#if NBI_WITH_ASAN
    ASAN_UNPOISON_MEMORY_REGION(memory, size_bytes);
#else
    (void)memory;
    (void)size_bytes;
#endif
}
