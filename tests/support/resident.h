// SPDX-License-Identifier: MIT
#pragma once

// How much memory the process holds.

#include "support/support.h"

#include "base/poison.h"

// Sanitizers keep memory of their own, so that what the process holds says little.
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define WITH_TSAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__) || defined(WITH_TSAN) || NBI_WITH_ASAN || NBI_WITH_MSAN
#define IS_RESIDENT_SIZE_MEANINGFUL 0
#else
#define IS_RESIDENT_SIZE_MEANINGFUL 1
#endif

// Pages the process holds; 0 where the system does not say.
static inline size_t resident_bytes(void) {
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL) return 0;
    unsigned long total = 0;
    unsigned long resident = 0;
    int fields = fscanf(file, "%lu %lu", &total, &resident);
    fclose(file);
    return fields == 2 ? resident * nbi_page_size() : 0;
}
