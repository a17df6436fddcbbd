// SPDX-License-Identifier: MIT
#pragma once

// What the files of synctest share: synctest.c goes back and simulates again; synctest_local.c keeps what is not
// simulated; synctest_cause.c looks for what a tick depends on.

#include "nebula/synctest.h"

#include "engine.h"
#include "world.h"

// Bytes on the heap that grow as they are needed; counted in the report.
typedef struct nbi_copy {
    unsigned char *bytes;
    size_t size_bytes, capacity_bytes;
} nbi_copy;

// The engine where so many ticks had run.
typedef struct nbi_sync_slot {
    uint64_t tick_count; // UINT64_MAX: none
    uint64_t hash;
    nbi_copy state; // of nb_states_save; empty where there was no memory
    nbi_copy local; // of nbi_local_keep, before the next tick
} nbi_sync_slot;

typedef enum nbi_sync_mode {
    NBI_SYNC_FIRST, // a tick of the game, noted
    NBI_SYNC_AGAIN, // simulated again, compared
    NBI_SYNC_TRY,   // simulated again to see what comes of it
} nbi_sync_mode;

struct nbi_synctest {
    nb_engine *engine;
    nbi_sync_slot *slots; // depth + 1, by tick count
    nbi_copy local_again; // before the newest tick that was simulated again
    nbi_copy scratch;
    nbi_sync_mode mode;
    bool has_diverged;   // in this pass
    uint64_t tick_first; // no going back behind it
    uint64_t setup;      // of modules, providers and tables: another one begins anew
    nb_synctest_report report;
};

// --- synctest.c ---

nbi_sync_slot *nbi_sync_slot_of(const nbi_synctest *self, uint64_t tick_count);

// Makes room; what was there is gone. False: no memory.
bool nbi_copy_reserve(nbi_synctest *self, nbi_copy *copy, size_t size_bytes);

// All states as they are. False: no memory.
bool nbi_sync_save(nbi_synctest *self, nbi_copy *copy);

// The tick of this index, with the input that was kept for it.
void nbi_sync_simulate(nbi_synctest *self, nbi_sync_mode mode, uint64_t tick);

// --- synctest_local.c ---

typedef enum nbi_local_kind {
    NBI_LOCAL_ASIDE, // incarnations and previous values: no tick reads them
    NBI_LOCAL_COLUMN,
    NBI_LOCAL_TABLE,
    NBI_LOCAL_PROVIDER,
} nbi_local_kind;

// A piece of what is not simulated.
typedef struct nbi_local {
    nbi_local_kind kind;
    nbi_table *table;
    const nb_world_column *column; // marked where it is written; of ASIDE and COLUMN
    unsigned char *memory;         // NULL for TABLE
    size_t size_bytes;
    const char *name, *column_name; // of table or provider; "" for no column
    uint32_t next_table, next_part, next_provider;
} nbi_local;

// The next piece; begin with zeros. False: no more.
bool nbi_local_next(const nb_engine *engine, nbi_local *piece);

// All pieces as they are.
void nbi_local_keep(nbi_synctest *self, nbi_copy *copy);

// Which pieces, by their place.
typedef bool (*nbi_local_filter)(const nbi_local *piece, uint32_t index, const void *user);

// Puts pieces back to what was kept: all, or those that `filter` takes. Where a table has another number of rows now,
// its columns stay as they are.
void nbi_local_put(nbi_synctest *self, const nbi_copy *copy, nbi_local_filter filter, const void *user);

// Whether a piece was the same in both.
bool nbi_local_is_same(const nbi_copy *a, const nbi_copy *b, uint32_t index);

// --- synctest_cause.c ---

// Fills the report of a divergence: the state is the one after the tick of this index, simulated again.
void nbi_sync_find(nbi_synctest *self, uint64_t tick, uint64_t from, uint64_t now);
