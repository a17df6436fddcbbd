// SPDX-License-Identifier: MIT
#pragma once

// What the files of synctest share: synctest.c goes back and simulates again; synctest_local.c keeps what is not
// simulated; synctest_program.c keeps the program's own variables; synctest_cause.c looks for what a tick depends on.

#include "nebula/synctest.h"

#include "../../platform/platform.h"
#include "../engine/engine.h"
#include "../store/store.h"

// Bytes on the heap that grow as they are needed; counted in the report.
typedef struct nbi_copy {
    unsigned char *bytes;
    size_t size_bytes, capacity_bytes;
} nbi_copy;

// The engine where so many ticks had run.
typedef struct nbi_sync_slot {
    uint64_t tick_count; // UINT64_MAX: none
    uint64_t hash;
    nbi_copy state;   // of nb_states_save; empty where there was no memory
    nbi_copy local;   // of nbi_local_keep, before the next tick
    nbi_copy program; // of nbi_sync_program_keep, the same
} nbi_sync_slot;

// Runs of memory with variables: two for each library, and holes where much of it is registered.
#define NBI_SYNC_RUN_MAX 64u

// Places that are tried one by one: what a tick, or the frames since, change of a program.
#define NBI_SYNC_RANGE_MAX 32u

// Bytes of the program in one row that may have made a tick end otherwise.
typedef struct nbi_sync_range {
    const unsigned char *address;
    const unsigned char *before, *now; // in the copies
    size_t size_bytes;
} nbi_sync_range;

// The program's own variables, which a rewind does not bring back unless they are registered.
typedef struct nbi_sync_program {
    nbi_program_run runs[NBI_SYNC_RUN_MAX];
    uint32_t run_count;
    size_t size_bytes;     // of all runs
    nbi_copy tries[2];     // before two tries of one tick
    const nbi_copy *first; // before its first run
    bool is_steady;        // the tries ended alike
    bool is_proven;        // a copy of the process in which they were put back has shown it
    nbi_sync_range ranges[NBI_SYNC_RANGE_MAX], last;
    uint32_t range_count; // all of them, also those that have no room
    char text[1024];      // their names
} nbi_sync_program;

typedef enum nbi_sync_mode {
    NBI_SYNC_FIRST,      // a tick of the game, noted
    NBI_SYNC_RESIMULATE, // simulated again, compared
    NBI_SYNC_TRY,        // simulated again to see what comes of it
} nbi_sync_mode;

struct nbi_synctest {
    nb_engine *engine;
    nbi_sync_slot *slots;       // depth + 1, by tick count
    nbi_copy local_resimulated; // before the newest tick that was simulated again
    nbi_copy scratch;
    nbi_sync_mode mode;
    bool has_diverged;   // in this pass
    uint64_t tick_first; // no going back behind it
    uint64_t setup;      // of modules, providers and tables: another one begins anew
    nbi_sync_program program;
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
    NBI_LOCAL_STASHED, // incarnations and previous values: no tick reads them
    NBI_LOCAL_COLUMN,
    NBI_LOCAL_TABLE,
    NBI_LOCAL_PROVIDER,
} nbi_local_kind;

// A piece of what is not simulated.
typedef struct nbi_local {
    nbi_local_kind kind;
    nbi_table *table;
    const nb_store_column *column; // marked where it is written; of ASIDE and COLUMN
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

// --- synctest_program.c ---

// The program's own variables as they are; empty where that is not possible.
void nbi_sync_program_keep(nbi_synctest *self, nbi_copy *copy);

// Finds what may have made a tick end otherwise: `first` is from before its first run, program.tries from before two
// others. is_steady: those two ended alike. Returns the number of places.
uint32_t nbi_sync_program_search(nbi_synctest *self, const nbi_copy *first, bool is_steady);

#define NBI_SYNC_ALL UINT32_MAX

// Puts a place, or all, to what it was. Only in a copy of the process.
void nbi_sync_program_put(nbi_synctest *self, uint32_t index);

// Names a place, or all, in program.text and in the report.
void nbi_sync_program_describe(nbi_synctest *self, uint32_t index);

// --- synctest_cause.c ---

// Fills the report of a divergence: the state is the one after the tick of this index, simulated again.
void nbi_sync_find(nbi_synctest *self, uint64_t tick, uint64_t from, uint64_t now);
