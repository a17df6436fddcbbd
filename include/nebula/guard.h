// SPDX-License-Identifier: MIT
#pragma once

// Tells who wrote to what may not be written. A store that is protected and snapshots that are published are read-only
// memory; a job that writes there faults, and a guard prints one line to the standard error before the process ends at
// the very instruction: which module and job, which table, column and row. The one rule: protect before jobs run, and
// unprotect before the state is changed again.
//
//     nb_guard *guard = NULL;
//     nb_store *store = NULL;
//     nb_store_desc world_desc = {.is_protectable = true};
//     if (nb_store_create(&world_desc, &store) != NB_OK) return 1;
//     nb_guard_desc desc = {.store = store};
//     nb_guard_create(&desc, &guard);
//     nb_store_protect(store, true); // jobs run here, and only read
//     nb_store_protect(store, false);
//     nb_guard_destroy(guard);
//     nb_store_destroy(store);

#include "nebula/hooks.h"
#include "nebula/snapshot.h"
#include "nebula/store.h"
#include "nebula/types.h"

// Guards of one process at a time: an engine has one, and few engines share a process that is being debugged.
#define NB_GUARD_COUNT_MAX 16

// In place of a job's index: it is no job.
#define NB_GUARD_NO_JOB UINT32_MAX

typedef struct nb_guard nb_guard;

// Who runs on a thread: a name, and of a job its index (*job_index is NB_GUARD_NO_JOB before the call). NULL = not
// known. Called inside a signal handler, on the thread that is asked about: it may read memory, and nothing else.
typedef const char *nb_guard_who_fn(void *user, uint64_t thread_id, uint32_t *job_index);

typedef struct nb_guard_desc {
    const nb_store *store;         // with is_protectable; NULL = none
    const nb_snapshots *snapshots; // with is_protected; NULL = none. At least one of the two is needed
    nb_guard_who_fn *who;          // NULL: the thread's number is printed
    void *user;                    // for who
    nb_hooks hooks;                // zero = defaults; what is printed on a fault does not go through them
} nb_guard_desc;

NB_EXTERN_C_BEGIN

// The defaults, spelled out: a store or snapshots are needed.
// Thread: any. Owner: the caller gets a value. Fails: never.
NB_API nb_guard_desc nb_guard_desc_default(void);

// Sets up the report. Faults on other memory go to whoever handled them before. Where somebody handles such faults
// after this call, the report depends on being called by that handler.
// Thread: any. Owner: the caller, until nb_guard_destroy; store and snapshots must outlive it. Fails: NB_ERR_MEMORY,
// NB_ERR_MISUSE (NULL, neither store nor snapshots), NB_ERR_UNSUPPORTED (a store that is not protectable, snapshots
// that are not protected, an OS that cannot), NB_FULL (NB_GUARD_COUNT_MAX are there), NB_ERR_OS.
NB_API nb_result nb_guard_create(const nb_guard_desc *desc, nb_guard **out);

// Ends the report. NULL is fine.
// Thread: any, while no other writes what may be protected. Owner: the guard is gone. Fails: never.
NB_API void nb_guard_destroy(nb_guard *guard);

NB_EXTERN_C_END
