// SPDX-License-Identifier: MIT
// Owners, and what they have in flight beside tasks.

#include "owner.h"

#include <string.h>

_Thread_local nbi_owner *nbi_owner_now;

nbi_owner *nbi_owner_create(const nb_hooks *hooks, nbi_owner *parent) {
    nbi_owner *owner = nbi_alloc(hooks, sizeof *owner, NB_CACHE_LINE, "nb_engine_module_attach");
    if (owner == NULL) return NULL;
    memset(owner, 0, sizeof *owner);
    owner->hooks = *hooks;
    owner->parent = parent;
    owner->hold_count.value = 1;
    if (parent != NULL) nbi_atomic_fetch_add_relaxed_u32(&parent->hold_count, 1);
    return owner;
}

void nbi_owner_release(nbi_owner *owner) {
    // What the others did with it is done when the last one frees it. Then its parent has one holder less.
    while (owner != NULL && nbi_atomic_fetch_sub_acq_rel_u32(&owner->hold_count, 1) == 1) {
        nbi_owner *parent = owner->parent;
        nb_hooks hooks = owner->hooks;
        nbi_free(&hooks, owner, sizeof *owner);
        owner = parent;
    }
}

nbi_owner *nbi_owner_take(nbi_owned kind) {
    nbi_owner *owner = nbi_owner_now;
    if (owner == NULL) return NULL;
    nbi_atomic_fetch_add_relaxed_u32(&owner->hold_count, 1);
    nbi_atomic_fetch_add_seq_cst_u32(&owner->counts[kind], 1);
    nbi_atomic_fetch_add_seq_cst_u64(&owner->birth_count, 1); // after the count: see owner.h
    return owner;
}

void nbi_owner_give(nbi_owner *owner, nbi_owned kind) {
    if (owner == NULL) return;
    nbi_atomic_fetch_sub_seq_cst_u32(&owner->counts[kind], 1);
    nbi_owner_release(owner);
}

uint32_t nbi_owner_count(const nbi_owner *owner, nbi_owned kind) {
    return nbi_atomic_load_seq_cst_u32(&owner->counts[kind]);
}

uint64_t nbi_owner_births(const nbi_owner *owner) { return nbi_atomic_load_seq_cst_u64(&owner->birth_count); }
