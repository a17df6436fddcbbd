// SPDX-License-Identifier: MIT
#pragma once

// Whose work it is. An engine has an owner, and each of its modules has one below that. While an engine or a module is
// called, the thread has its owner. Work that is submitted meanwhile takes the owner along and has it again while it
// runs, so that the work of work has the same one. That is how an engine knows which tasks to end with itself, and
// which tasks, async jobs, services and token callbacks may still call a library.
//
// Nothing of an owner is in flight where its births are the same before and after a look that finds nothing. The work
// that begins other work makes it visible, then counts its birth, then ends. So for work that the look missed, either
// its parent was found, or its birth comes between the two counts.

#include "base.h"

#include "nebula/atomic.h"

// What an owner has a count of. Tasks are counted by their scheduler.
typedef enum nbi_owned {
    NBI_OWNED_ASYNC_JOB,
    NBI_OWNED_SERVICE,
    NBI_OWNED_TOKEN_CALLBACK,
    NBI_OWNED_COUNT,
} nbi_owned;

// Made by a scheduler (../tasks/owned.c), and there until the work that it counts has ended.
typedef struct nbi_owner {
    uint32_t number;          // of the scheduler's owners
    bool is_open;             // its engine or module is there; under the scheduler's lock
    bool is_closed;           // of code that is about to go: nothing can be submitted
    nb_atomic_ptr scheduler;  // that has the number; NULL = gone. Only compared
    struct nbi_owner *parent; // the engine's, of a module; NULL = none. Held
    nb_hooks hooks;           // it is freed with
    nb_atomic_u32 hold_count;
    nb_atomic_u32 counts[NBI_OWNED_COUNT];
    nb_atomic_u64 birth_count;
} nbi_owner;

// The quick way to a thread's variable in a shared library too, as nbi_lane_noted.
#if defined(__GNUC__)
__attribute__((tls_model("initial-exec"), visibility("hidden")))
#endif
extern _Thread_local nbi_owner *nbi_owner_now; // NULL = nobody

// Returns the owner before, for nbi_owner_leave.
static inline nbi_owner *nbi_owner_enter(nbi_owner *owner) {
    nbi_owner *before = nbi_owner_now;
    nbi_owner_now = owner;
    return before;
}
static inline void nbi_owner_leave(nbi_owner *before) { nbi_owner_now = before; }

// 0 = nobody, also where the thread's owner is one of another scheduler.
static inline uint32_t nbi_owner_number(const void *scheduler) {
    const nbi_owner *owner = nbi_owner_now;
    return owner != NULL && nbi_atomic_load_relaxed_ptr(&owner->scheduler) == scheduler ? owner->number : 0;
}
static inline bool nbi_owner_is_closed(void) {
    const nbi_owner *owner = nbi_owner_now;
    return owner != NULL && owner->is_closed;
}

// NULL: no memory. The caller holds it, and it holds its parent.
nbi_owner *nbi_owner_create(const nb_hooks *hooks, nbi_owner *parent);
void nbi_owner_release(nbi_owner *owner);

// Counts work of the calling thread's owner, which it returns for nbi_owner_give at the work's end. NULL is fine.
nbi_owner *nbi_owner_take(nbi_owned kind);
void nbi_owner_give(nbi_owner *owner, nbi_owned kind);

uint32_t nbi_owner_count(const nbi_owner *owner, nbi_owned kind);
uint64_t nbi_owner_births(const nbi_owner *owner);
