// SPDX-License-Identifier: MIT
// Which reports are repetitions.

#include "throttle.h"

#include "nebula/hash.h"

#include <string.h>

// The name and not its address: a function may be named in several files. Never 0.
static uint64_t key_of(const char *function, nb_log_item item, uint64_t object) {
    return nb_hash64(function, strlen(function), object ^ (uint64_t)item << 32) | 1;
}

static uint32_t index_of(nbi_throttle *throttle, uint64_t key) {
    for (uint32_t i = 0; i + 1 < NB_THROTTLE_COUNT; ++i) {
        uint64_t seen = 0;
        if (nbi_atomic_compare_exchange_relaxed_u64(&throttle->keys[i], &seen, key) || seen == key) return i;
    }
    return NB_THROTTLE_COUNT - 1;
}

uint64_t nbi_throttle_note(nbi_throttle *throttle, const char *function, nb_log_item item, uint64_t object) {
    uint32_t index = index_of(throttle, key_of(function, item, object));
    uint64_t count = nbi_atomic_fetch_add_relaxed_u64(&throttle->counts[index], 1) + 1, next = count;
    while (next % 10 == 0) next /= 10;
    return next == 1 ? count : 0;
}
