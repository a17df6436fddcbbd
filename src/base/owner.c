// SPDX-License-Identifier: MIT
// The owners of the process, and what they have in flight beside tasks.

#include "owner.h"

typedef struct record {
    nb_atomic_u32 user_count; // modules with this number
    nb_atomic_u32 counts[NBI_OWNED_COUNT];
    nb_atomic_u64 birth_count;
    char pad[NB_CACHE_LINE - 24];
} record;

NB_STATIC_ASSERT(sizeof(record) == NB_CACHE_LINE, "owners share no line");

static record records[NBI_OWNER_MASK + 1];
static nb_atomic_u32 next_owner;

_Thread_local uint32_t nbi_owner_now;

uint32_t nbi_owner_open(void) {
    // From where the last search ended: a number rests before it is used again.
    uint32_t count = NBI_OWNER_CLOSED - 1, first = nbi_atomic_fetch_add_relaxed_u32(&next_owner, 1);
    for (uint32_t i = 0; i < count; ++i) {
        uint32_t owner = 1 + (first + i) % count, none = 0;
        if (nbi_atomic_compare_exchange_relaxed_u32(&records[owner].user_count, &none, 1)) return owner;
    }
    uint32_t shared = 1 + first % count;
    nbi_atomic_fetch_add_relaxed_u32(&records[shared].user_count, 1);
    return shared;
}

void nbi_owner_close(uint32_t owner) {
    if (owner != NBI_OWNER_NONE) nbi_atomic_fetch_sub_relaxed_u32(&records[owner].user_count, 1);
}

uint32_t nbi_owner_take(nbi_owned kind) {
    uint32_t owner = nbi_owner_now;
    if (owner == NBI_OWNER_NONE) return owner;
    nbi_atomic_fetch_add_seq_cst_u32(&records[owner].counts[kind], 1);
    nbi_atomic_fetch_add_seq_cst_u64(&records[owner].birth_count, 1); // after the count: see owner.h
    return owner;
}

void nbi_owner_give(uint32_t owner, nbi_owned kind) {
    if (owner != NBI_OWNER_NONE) nbi_atomic_fetch_sub_seq_cst_u32(&records[owner].counts[kind], 1);
}

uint32_t nbi_owner_count(uint32_t owner, nbi_owned kind) {
    return nbi_atomic_load_seq_cst_u32(&records[owner].counts[kind]);
}

uint64_t nbi_owner_births(uint32_t owner) { return nbi_atomic_load_seq_cst_u64(&records[owner].birth_count); }
