// SPDX-License-Identifier: MIT
#pragma once

// Whose work it is. While the engine calls a module, the thread has the module's number. Work that is submitted
// meanwhile takes the number along and has it again while it runs, so that the work of work has the same owner. That is
// how an engine knows which tasks, async jobs, services and token callbacks may still call a library.
//
// Nothing of an owner is in flight where its births are the same before and after a look that finds nothing. The work
// that begins other work makes it visible, then counts its birth, then ends. So for work that the look missed, either
// its parent was found, or its birth comes between the two counts.

#include "nebula/atomic.h"
#include "nebula/types.h"

// Owners of the process: bits that a task has room for. With more modules than that some share a number, and wait for
// each other's work.
#define NBI_OWNER_BITS 7u
#define NBI_OWNER_MASK ((1u << NBI_OWNER_BITS) - 1)
#define NBI_OWNER_NONE 0u
// In the on_detach of a module that was replaced: nothing can be submitted, for its code is about to go.
#define NBI_OWNER_CLOSED NBI_OWNER_MASK

// What an owner has a count of. Tasks are counted by their scheduler.
typedef enum nbi_owned {
    NBI_OWNED_ASYNC_JOB,
    NBI_OWNED_SERVICE,
    NBI_OWNED_TOKEN_CALLBACK,
    NBI_OWNED_COUNT,
} nbi_owned;

// The quick way to a thread's variable in a shared library too, as nbi_lane_noted.
#if defined(__GNUC__)
__attribute__((tls_model("initial-exec"), visibility("hidden")))
#endif
extern _Thread_local uint32_t nbi_owner_now;

// Returns the owner before, for nbi_owner_leave.
static inline uint32_t nbi_owner_enter(uint32_t owner) {
    uint32_t before = nbi_owner_now;
    nbi_owner_now = owner;
    return before;
}
static inline void nbi_owner_leave(uint32_t before) { nbi_owner_now = before; }

static inline bool nbi_owner_is_closed(void) { return nbi_owner_now == NBI_OWNER_CLOSED; }

// A number for a module. Never fails.
uint32_t nbi_owner_open(void);
void nbi_owner_close(uint32_t owner);

// Counts work of the calling thread's owner, which it returns for nbi_owner_give at the work's end.
uint32_t nbi_owner_take(nbi_owned kind);
void nbi_owner_give(uint32_t owner, nbi_owned kind);

uint32_t nbi_owner_count(uint32_t owner, nbi_owned kind);
uint64_t nbi_owner_births(uint32_t owner);
