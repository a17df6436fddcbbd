// SPDX-License-Identifier: MIT
#pragma once

// What the files of the store share. Each table keeps its rows dense; a pool of handles says which entities live, and
// two arrays tie slots of the pool to rows and back.

#include "nebula/snapshot.h"
#include "nebula/store.h"

#include "../../base/base.h"
#include "../../base/desc.h"
#include "../../base/throttle.h"

extern const nbi_desc_rules nbi_store_rules;

// The name of the only column of a singleton with a type.
#define NBI_STATE_COLUMN "state"

// No slot; never an index, which has 24 bits.
#define NBI_SLOT_NONE UINT32_MAX

// The part of a column that only the library sees; nb_store_table.columns has the rest under the same index.
typedef struct nbi_column {
    char name[NB_STORE_NAME_SIZE];
    nb_store_column previous;         // rows is NULL unless the column is interpolated
    uint64_t *block_hashes;           // NULL for a local column; valid where the block is not newer than hash_version
    uint8_t *padding;                 // for each byte of an element 1 = padding; NULL = there is none
    const struct nbi_leaf *leaves;    // the values in an element, where the table has a type
    uint32_t leaf_count;              // 0 = it has none
    uint64_t hash;                    // as of the last nb_store_hash
    uint32_t staged_offset;           // in the values of a staged row
    uint32_t region, previous_region; // in the snapshots, + 1; 0 = in none
} nbi_column;

typedef struct nbi_table {
    char name[NB_STORE_NAME_SIZE];
    nb_store_table *head;
    nb_store_column *heads;  // head->columns, to write
    uint8_t *column_at;      // head->column_at, to write
    struct nbi_leaf *leaves; // of all columns
    nbi_column *columns;
    nb_handle_pool *pool;
    nb_handle_pool *spare_pool; // loaded state is checked in it, then the two change places
    uint32_t *slot_rows;        // of each live slot: its row
    uint32_t *spare_slot_rows;
    uint64_t *incarnations;      // by row
    nb_store_column entities;    // an nb_entity a row
    nb_store_column marks;       // a byte a row, 1 = teleported; rows is NULL without interpolated columns
    nb_store_column generations; // of the pool, by slot; rows is looked up, for the pools change places
    nb_store_column links;       // the same
    uint64_t *entity_hashes, *mark_hashes, *generation_hashes, *link_hashes;
    uint64_t hash;
    uint64_t rows_hash; // of all but the columns' values
    uint32_t row_count_max, block_count;
    uint32_t cleared_count;    // rows below it are in use or zero; memory above was never touched
    uint32_t spare_used_count; // slots of the spare pool that may not be zero
    uint32_t slot_last;        // the slot released last, if it still waits: the next release writes its link too
    uint32_t staged_size_bytes, staged_alignment;
    uint32_t entities_region, marks_region; // in the snapshots, + 1; 0 = in none
    uint64_t full_count;
    nb_atomic_u32 is_denial_reported; // a refused write to it was reported
    bool is_local, is_singleton;
    void *meta_memory, *row_memory;
    void *page_memory; // what is kept by row, where the store is protectable; else NULL and in row_memory too
    size_t meta_bytes, row_bytes, page_bytes;
} nbi_table;

typedef struct nbi_store {
    nb_store visible; // first: the public pointer is this one
    nb_hooks hooks;
    nb_snapshots *snapshots; // where it is published; NULL = nowhere
    nb_store_table *heads;   // visible.tables, to write
    nbi_table *tables;
    size_t memory_bytes; // of this block
    uint32_t table_count_max;
    bool is_started; // no more tables
    bool is_driven;  // by an engine: ticks are its own
    bool is_viewed;  // all regions are in the snapshots
    bool traps;      // refused writes go to the assertion hook each time: NB_VIOLATION_TRAP
    nb_atomic_u64 denied_count;
    nb_atomic_u32 is_denial_reported; // a refused load or rewind was reported
    nbi_throttle throttle;            // of reports that handlers repeat
    // Who fills a stage, for reports: a name such as: module "rocks", tick handler. NULL without an engine.
    void (*name_stage)(void *user, const nb_store_stage *stage, char *text, size_t size_bytes);
    void *name_user;
    bool is_in_tick;
    bool is_applying;      // for reports: rows come from stages
    bool skips_local;      // what is staged for local tables is left out: it was applied when the tick first ran
    bool is_protectable;   // rows have pages of their own
    bool is_protected;     // which are read-only now
    uint64_t hash_version; // blocks with a larger version changed after the last hash
    uint64_t tick_version; // the same for the last copy of previous values
    uint64_t incarnation_last;
    uint64_t layout_hash;
    uint64_t spawn_count, despawn_count, stale_count, hashed_block_count;
} nbi_store;

static inline nbi_store *nbi_store_of(nb_store *store) { return (nbi_store *)(void *)store; }
static inline const nbi_store *nbi_store_const_of(const nb_store *store) {
    return (const nbi_store *)(const void *)store;
}

// A mistake about one object of the store, a table, column or entity, which a handler may repeat in each frame.
#define NBI_STORE_FAIL(self, object, item, result, function, ...)                                                  \
    nbi_fail_throttled(&(self)->hooks, (nbi_throttle *)(uintptr_t) & (self)->throttle, (object), (item), (result), \
                       (function), __VA_ARGS__)

static inline uint64_t nbi_column_object(nb_table table, uint32_t column) {
    return (uint64_t)(column + 1) << 32 | table.value;
}

// NULL for what is no table.
static inline nbi_table *nbi_table_of(const nbi_store *self, nb_table table) {
    return table.value - 1 < self->visible.table_count ? &self->tables[table.value - 1] : NULL;
}

static inline uint32_t nbi_block_count(uint32_t row_count) {
    return (row_count + NB_STORE_BLOCK_ROWS - 1) / NB_STORE_BLOCK_ROWS;
}

static inline uint64_t nbi_block_version(const nb_store_column *column, uint32_t block) {
    return nbi_atomic_load_relaxed_u64(&column->block_versions[block]);
}

static inline unsigned char *nbi_row_at(const nb_store_column *column, uint32_t row) {
    return column->rows + (size_t)row * column->size_bytes;
}

static inline nb_handle nbi_entity_handle(nb_entity entity) { return (nb_handle){entity.value & (UINT64_MAX >> 8)}; }

static inline const nb_entity *nbi_entities(const nbi_table *table) {
    return (const nb_entity *)(const void *)table->entities.rows;
}

static inline bool nbi_column_is_simulated(const nb_store_column *column) {
    return (column->flags & NB_COLUMN_SIMULATED) != 0;
}

// --- store_protect.c ---

// nb_store_protect without its checks and its report. NB_ERR_OS: *table_name is of the table that could not be changed.
nb_result nbi_store_protect(nbi_store *self, bool is_protected, const char **table_name);

// --- store.c ---

// May rows of this table be written now? If not, counts and reports in the name of `function`.
bool nbi_table_is_writable(nbi_store *self, nbi_table *table, const char *function);
// A refused write to the table, or to all simulated state where it is NULL.
void nbi_store_deny(nbi_store *self, nbi_table *table, const char *function);

// The public functions of those names without their checks, for the engine.
void nbi_store_tick_begin(nbi_store *self);
void nbi_store_tick_end(nbi_store *self);

// The table and row of a live entity; NULL for any other.
nbi_table *nbi_store_lookup(const nbi_store *self, nb_entity entity, uint32_t *out_row);

// New rows with these values, in the layout of staged rows; NULL = zero. *last is the entity of the last row. NB_FULL
// is counted and logged: rows that fit are there.
nb_result nbi_store_rows_add(nbi_store *self, nbi_table *table, const unsigned char *values, uint64_t count,
                             nb_entity *last);

// Visits what a table keeps by row and stamps with versions: columns, previous values, entities, marks. Ends with NULL;
// rows is NULL in those that the table does without.
const nb_store_column *nbi_table_row_column(const nbi_table *table, uint32_t index);

// Makes rows below `count` memory that was cleared at least once.
void nbi_table_clear_to(nbi_table *table, uint32_t count);

// Takes a live row out; the last one moves into its place.
void nbi_store_row_remove(nbi_store *self, nbi_table *table, uint32_t row);

// --- store_stage.c ---

// nb_store_apply for the engine, which drives the store.
nb_result nbi_store_apply(nbi_store *self, nb_store_stage **stages, size_t stage_count);

// --- store_save.c ---

// The three parts of a pool's bytes; slots never used are zero.
typedef struct nbi_pool_parts {
    unsigned char *header, *generations, *links;
    size_t header_bytes;
} nbi_pool_parts;

nbi_pool_parts nbi_pool_parts_of(nb_handle_pool *pool);

// The slot released last, if it still waits, as the pool's links have it; what nbi_table.slot_last is.
uint32_t nbi_table_slot_last(const nbi_table *table, uint32_t used_count);

// --- store_stash.c ---

typedef enum nbi_stash_mode { NBI_STASH_MEASURE, NBI_STASH_SAVE, NBI_STASH_RESTORE } nbi_stash_mode;

// Counts the bytes that local columns and previous values of simulated tables have, takes a copy, or puts it back: then
// the rows are those that were there.
size_t nbi_store_stash(nb_store *store, unsigned char *bytes, nbi_stash_mode what);

// --- store_view.c ---

// Does any column go into snapshots?
bool nbi_store_is_published(const nbi_store *self);

// --- store_table.c ---

void nbi_table_deinit(nbi_store *self, nbi_table *table);

// Sets the padding of `count` elements to zero; was any of it not? padding may be NULL.
bool nbi_padding_clear(const uint8_t *padding, unsigned char *elements, size_t size_bytes, uint32_t count);
