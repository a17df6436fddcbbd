// SPDX-License-Identifier: MIT
#pragma once

// A three-state futex lock for short, cold sections (token trees, attach lists). Never held across user code.
// 0 free, 1 held, 2 held and somebody may be parked.

#include "../platform/platform.h"

// Spins before parking: a holder's section is a few list operations (tens of ns), a system call costs thousands.
#if defined(NB_EXPLORE)
#define NBI_LOCK_SPIN_COUNT 1 // so that short explored sections are parked for, too
#else
#define NBI_LOCK_SPIN_COUNT 64
#endif

typedef struct nbi_lock {
    nb_atomic_u32 word;
} nbi_lock;

static inline bool nbi_lock_try(nbi_lock *lock) {
    uint32_t expected = 0;
    return nbi_atomic_compare_exchange_acquire_u32(&lock->word, &expected, 1);
}

static inline void nbi_lock_acquire(nbi_lock *lock) {
    for (int spin = 0; spin < NBI_LOCK_SPIN_COUNT; ++spin) {
        if (nbi_lock_try(lock)) return;
        nbi_cpu_relax();
    }
    // From here on the word is set to 2, even by the thread that gets the lock: it may not be the only one parked.
    // Pairs with the exchange in nbi_lock_release.
    while (nbi_atomic_exchange_acquire_u32(&lock->word, 2) != 0) {
        nbi_park_until(&lock->word, 2, NBI_NEVER_NS);
    }
}

static inline void nbi_lock_release(nbi_lock *lock) {
    // Publishes the section; read by the acquire operations above. The word is not touched after the exchange, so the
    // lock's memory may be freed by the next holder.
    if (nbi_atomic_exchange_release_u32(&lock->word, 0) == 2) nbi_unpark(&lock->word, 1);
}
