// SPDX-License-Identifier: MIT
#pragma once

// Tables of columns that hold a game's state. A column is a plain array; a row belongs to an entity, a handle that
// stays true while rows move. Snapshots, interpolation, hash and save files all come from the one declaration of the
// tables. The one rule: write through the _WRITE macros, which note that a block of 64 rows changed.
//
//     enum { POSITION, VELOCITY };
//     const nb_column_desc position = {"position", sizeof(float), NB_COLUMN_INTERPOLATE};
//     const nb_column_desc velocity = {"velocity", sizeof(float)}, columns[] = {position, velocity};
//     nb_table_desc desc = {.name = "ships", .row_count_max = 1000, .columns = columns, .column_count = 2};
//     nb_store *store = NULL;
//     nb_table ships = {0};
//     nb_entity ship = {0};
//     if (nb_store_create(NULL, &store) != NB_OK) return 1;
//     nb_store_table_add(store, &desc, &ships);
//     nb_store_spawn(store, ships, &ship);
//     const float *speed = NB_STORE_ROWS(store, ships, VELOCITY, float);
//     float *place = NB_STORE_ROWS_WRITE(store, ships, POSITION, float);
//     NB_STORE_EACH_ROW(row, store, ships) place[row] += speed[row];
//     printf("state %016llx\n", (unsigned long long)nb_store_hash(store));
//     nb_store_destroy(store);
//
// Who may write: column data is plain memory without locks. Threads may write different rows at the same time, and read
// what none writes. Rows come and go in nb_store_apply and the direct calls alone, while no other thread uses the
// store.

#include "nebula/atomic.h"
#include "nebula/handle.h"
#include "nebula/hooks.h"
#include "nebula/type.h"
#include "nebula/types.h"

// Rows of a block, the unit of change: 64 rows of 16 to 64 bytes are 1 to 4 KiB, large enough to copy at full speed and
// small enough that one changed row does not cost a whole table.
#define NB_STORE_BLOCK_ROWS 64

// An entity has 8 bits for its table. Games have tens of tables; more kinds of columns go into one table.
#define NB_STORE_TABLE_COUNT_MAX 255

// Column sets are scanned for each row that comes or goes; 64 is far above what tables of games have.
#define NB_STORE_COLUMN_COUNT_MAX 64

// A staged row is one piece of memory with one element of each column; 1 MiB also holds a large singleton.
#define NB_STORE_ELEMENT_SIZE_MAX ((size_t)1 << 20)

// Names are copied, with their zero at the end, so that none dangles when a game library is reloaded.
#define NB_STORE_NAME_SIZE 48

// Of the 40 bits of a handle's generation 8 carry the table; the other 32 count to 2^31 uses of a slot.
#define NB_STORE_SLOT_USE_COUNT_MAX (1ull << 31)

// A declared table; zero is null.
typedef struct nb_table {
    uint32_t value; // its place in the order of declaration, from 1
} nb_table;

// An entity as kept outside simulated state. After a rewind the same nb_entity may name another life; the incarnation,
// which never rewinds and is in no hash, tells them apart.
typedef struct nb_entity_ref {
    nb_entity entity;
    uint64_t incarnation; // 0 is never one
} nb_entity_ref;

typedef enum nb_column_flags {
    NB_COLUMN_DEFAULT = 0,          // simulated, or local in a local table
    NB_COLUMN_SNAPSHOT = 1 << 0,    // for the snapshot to copy
    NB_COLUMN_INTERPOLATE = 1 << 1, // the values at the tick's start are kept too
    NB_COLUMN_SIMULATED = 1 << 2,   // hashed and saved
    NB_COLUMN_LOCAL = 1 << 3,       // neither hashed nor saved
} nb_column_flags;

// Bytes of an element that carry a value; what no field names is padding.
typedef struct nb_store_field {
    uint32_t offset_bytes;
    uint32_t size_bytes; // at least 1
} nb_store_field;

#define NB_STORE_FIELD(type, member) \
    { (uint32_t) offsetof(type, member), (uint32_t)sizeof(((type *)0)->member) }

typedef struct nb_column_desc {
    const char *name;             // unique in its table, shorter than NB_STORE_NAME_SIZE; copied
    size_t size_bytes;            // of an element, 1..NB_STORE_ELEMENT_SIZE_MAX; its alignment is at most 64
    uint32_t flags;               // nb_column_flags; SIMULATED and LOCAL exclude each other
    const nb_store_field *fields; // for a struct with padding, which is then kept zero; NULL = every byte counts
    uint32_t field_count;         // 0 with fields NULL
} nb_column_desc;

typedef struct nb_table_desc {
    const char *name;              // unique in its store, shorter than NB_STORE_NAME_SIZE; copied
    uint32_t row_count_max;        // 1..NB_HANDLE_CAPACITY_MAX; 0 = 1024, a small game's objects
    const nb_column_desc *columns; // needed only during the call
    uint32_t column_count;         // 1..NB_STORE_COLUMN_COUNT_MAX
    bool is_local;                 // no part of simulated state: all its columns are local
    bool is_singleton; // exactly one row, there from the declaration on, which is never despawned; row_count_max is 1
    // In place of columns, see type.h: a table has a column for each member of the struct, a singleton is one struct.
    // Needed only during the call.
    const nb_type *type;
} nb_table_desc;

typedef struct nb_store_desc {
    uint32_t table_count_max; // 1..NB_STORE_TABLE_COUNT_MAX; 0 = 64
    bool is_protectable;      // rows are in pages of their own, for nb_store_protect. For debugging
    nb_hooks hooks;           // zero = defaults
} nb_store_desc;

// Private: what the inline functions need of a column.
typedef struct nb_store_column {
    unsigned char *rows;           // element i at rows + i * size_bytes; does not move
    nb_atomic_u64 *block_versions; // of each block: the store's version when it was last written; 0 = never
    uint32_t size_bytes;
    uint32_t flags;
} nb_store_column;

// Private: what the inline functions need of a table.
typedef struct nb_store_table {
    const nb_store_column *columns;
    const nb_entity *entities; // by row
    const uint8_t *column_at;  // by the offset of a member in the row's struct: its column, or UINT8_MAX
    uint32_t row_bytes;        // of that struct; 0 = the table has none
    uint32_t column_count;
    uint32_t row_count;
} nb_store_table;

// Private, but for its address: use the functions below.
typedef struct nb_store {
    const nb_store_table *tables;
    uint64_t version; // stamped on every block written
    uint32_t table_count;
    nb_atomic_u32 writable; // NB_COLUMN_SIMULATED, NB_COLUMN_LOCAL: what may be written now, see nb_store_allow
} nb_store;

// A column as the snapshot sees it. Rows behind the last one, up to the end of its block, are zero.
typedef struct nb_column_view {
    const void *base;               // row 0; does not move while the store lives
    size_t stride_bytes;            // from row to row
    uint32_t row_count;             // now
    uint32_t row_count_max;         // ever
    uint32_t block_rows;            // NB_STORE_BLOCK_ROWS
    uint32_t flags;                 // nb_column_flags, resolved
    const uint64_t *block_versions; // (row_count_max + block_rows - 1) / block_rows of them; read while none writes
} nb_column_view;

typedef struct nb_table_info {
    const char *name; // the store's copy
    uint32_t row_count, row_count_max;
    uint32_t column_count;
    bool is_local, is_singleton;
} nb_table_info;

typedef struct nb_column_info {
    const char *name; // the store's copy
    size_t size_bytes;
    uint32_t flags; // nb_column_flags, resolved: either SIMULATED or LOCAL is set
} nb_column_info;

// What of a table an address may lie in.
typedef enum nb_store_part {
    NB_STORE_PART_NONE = 0,
    NB_STORE_PART_ROWS,      // of a column
    NB_STORE_PART_PREVIOUS,  // a column's values at the tick's start
    NB_STORE_PART_ENTITIES,  // which entity has the row
    NB_STORE_PART_TELEPORTS, // marks
    NB_STORE_PART_COUNT,
} nb_store_part;

// Whose memory an address is.
typedef struct nb_store_place {
    nb_table table;
    nb_store_part part;
    uint32_t column;         // of ROWS and PREVIOUS; else 0
    uint32_t row;            // may lie behind the last one
    size_t offset_bytes;     // within the element
    const char *table_name;  // the store's copy
    const char *column_name; // the same; "entities" or "teleports" for those
} nb_store_place;

typedef struct nb_store_stats {
    uint32_t table_count;
    uint64_t row_count;          // of all tables
    uint64_t spawn_count;        // rows ever spawned
    uint64_t despawn_count;      // rows ever despawned
    uint64_t full_count;         // spawns refused because a table was full
    uint64_t stale_count;        // despawns that found their entity gone
    uint64_t denied_count;       // writes refused because nb_store_allow did not allow them
    uint64_t hashed_block_count; // blocks hashed by the last nb_store_hash
    size_t memory_bytes;         // allocated, handle pools not counted
} nb_store_stats;

// In place of a column: none.
#define NB_STORE_COLUMN_NONE UINT32_MAX

// A part of what nb_store_hash is of.
typedef struct nb_store_hash_part {
    nb_table table;
    uint32_t column; // NB_STORE_COLUMN_NONE: which rows there are, in which order, and their teleport marks
    const char *table_name, *column_name; // the store's copies; "" for no column
    uint64_t hash;
} nb_store_hash_part;

typedef struct nb_store_stage_desc {
    uint32_t handler;  // first part of the order: which handler stages
    uint32_t job;      // second part: which of its jobs; never which thread or worker
    void *memory;      // where commands go; the caller keeps it alive until the stage is applied
    size_t size_bytes; // below 4 GiB; the same in every run, because a full stage changes what happens
    // Makes more memory usable: whole pages, one behind the other. The memory begins at a page, and all of the page in
    // which its first size_bytes end is usable. NULL = the memory does not grow.
    nb_result (*commit)(void *address, size_t size_bytes);
    size_t size_bytes_max; // with commit: below 4 GiB; the same in every run, in place of size_bytes
} nb_store_stage_desc;

// Structural changes to come, in the caller's storage; no field is for callers.
typedef struct nb_store_stage {
    nb_store *store;
    unsigned char *memory;
    nb_result (*commit)(void *address, size_t size_bytes);
    uint32_t size_bytes, size_bytes_max, used_bytes;
    uint32_t command_count, full_count;
    uint32_t handler, job;
    uint32_t turn; // counts up with each reset: what was staged before is stale
    uint32_t mark; // tells an initialised stage from arbitrary bytes
    bool is_applied;
} nb_store_stage;

// A row staged to be spawned; zero is null, and stale after the stage is reset.
typedef struct nb_staged {
    uint64_t value;
} nb_staged;

typedef enum nb_save_kind {
    NB_SAVE_FILE = 0, // for any store of the same layout; loaded rows get new incarnations
    NB_SAVE_HISTORY,  // to rewind the store that saved it; rows get their own incarnations back
    NB_SAVE_KIND_COUNT,
} nb_save_kind;

// --- access to columns ---
// `type` must have the column's size. All give NULL, with a report, for a wrong table, column, row or size.

// All rows of a column, to read.
#define NB_STORE_ROWS(store, table, column, type) \
    ((const type *)nb_store_rows((store), (table), (column), sizeof(type)))

// The same as of the start of the newest tick; for rows that teleported, as now. Not for tick handlers: after a rewind
// these values are not what they were.
#define NB_STORE_ROWS_PREVIOUS(store, table, column, type) \
    ((const type *)nb_store_rows_previous((store), (table), (column), sizeof(type)))

// All rows, to write: every block counts as changed.
#define NB_STORE_ROWS_WRITE(store, table, column, type) \
    ((type *)nb_store_rows_write((store), (table), (column), sizeof(type), 0, UINT32_MAX))

// The same pointer to row 0, to write rows first .. first + count - 1 alone: a job's part of a parallel loop.
#define NB_STORE_RANGE_WRITE(store, table, column, type, first, count) \
    ((type *)nb_store_rows_write((store), (table), (column), sizeof(type), (first), (count)))

// One row, to read or to write.
#define NB_STORE_ROW(store, table, column, type, row) \
    ((const type *)nb_store_row((store), (table), (column), sizeof(type), (row)))
#define NB_STORE_ROW_WRITE(store, table, column, type, row) \
    ((type *)nb_store_row_write((store), (table), (column), sizeof(type), (row)))

// The one row of a singleton.
#define NB_STORE_SINGLETON(store, table, column, type) NB_STORE_ROW(store, table, column, type, 0)
#define NB_STORE_SINGLETON_WRITE(store, table, column, type) NB_STORE_ROW_WRITE(store, table, column, type, 0)

// All rows of the column of a member of the row's struct, in a table that was declared by its type.
#define NB_STORE_MEMBER(store, table, row_type, member)    \
    NBI_CAST(const NBI_TYPEOF(NBI_OF(row_type)->member) *, \
             nb_store_member((store), (table), offsetof(row_type, member), sizeof(NBI_OF(row_type)->member)))
#define NB_STORE_MEMBER_WRITE(store, table, row_type, member) \
    NBI_CAST(NBI_TYPEOF(NBI_OF(row_type)->member) *,          \
             nb_store_member_write((store), (table), offsetof(row_type, member), sizeof(NBI_OF(row_type)->member)))

// The struct of a singleton that was declared by its type, to read or to write.
#define NB_STORE_STATE(store, table, struct_type) \
    NBI_CAST(const struct_type *, nb_store_member((store), (table), 0, sizeof(struct_type)))
#define NB_STORE_STATE_WRITE(store, table, struct_type) \
    NBI_CAST(struct_type *, nb_store_member_write((store), (table), 0, sizeof(struct_type)))

// Every row of a table, in order.
#define NB_STORE_EACH_ROW(row, store, table) \
    for (uint32_t row = 0, row##_end = nb_store_row_count((store), (table)); row < row##_end; ++row)

// A value of a row staged to be spawned, to write; zero until written. NULL, with a report, for a stale one.
#define NB_STORE_STAGED_WRITE(stage, staged, column, type) \
    ((type *)nb_store_stage_write((stage), (staged), (column), sizeof(type)))

NB_EXTERN_C_BEGIN

// --- declaration ---

// The defaults, spelled out.
// Thread: any. Owner: the caller gets a value. Fails: never.
NB_API nb_store_desc nb_store_desc_default(void);

// The defaults, spelled out: name and columns are needed.
// Thread: any. Owner: the caller gets a value. Fails: never.
NB_API nb_table_desc nb_table_desc_default(void);

// The defaults, spelled out: order and memory are needed.
// Thread: any. Owner: the caller gets a value. Fails: never.
NB_API nb_store_stage_desc nb_store_stage_desc_default(void);

// Creates a store without tables. desc may be NULL.
// Thread: any. Owner: the caller, until nb_store_destroy. Fails: NB_ERR_MEMORY, NB_ERR_MISUSE (out is NULL),
// NB_ERR_RANGE, NB_ERR_UNSUPPORTED (is_protectable, where the OS cannot).
NB_API nb_result nb_store_create(const nb_store_desc *desc, nb_store **out);

// Declares a table and allocates all its memory; later calls allocate nothing.
// Thread: one, while no other uses the store. Owner: the store. Fails: NB_ERR_MISUSE (NULL, names that are empty or
// taken, flags that contradict, after the first row was spawned, loaded or ticked, protected), NB_ERR_RANGE (sizes and
// counts), NB_FULL (table_count_max are there), NB_ERR_MEMORY. Nothing is declared then.
NB_API nb_result nb_store_table_add(nb_store *store, const nb_table_desc *desc, nb_table *out);

// The table of that name; null where there is none.
// Thread: any, while no table is declared. Owner: nothing. Fails: null; reported for NULL.
NB_API nb_table nb_store_table_find(const nb_store *store, const char *name);

// How many tables there are: their values are 1 to this.
// Thread: any, while no table is declared. Owner: nothing. Fails: 0, reported, for NULL.
NB_API uint32_t nb_store_table_count(const nb_store *store);

// What a table is, and how full.
// Thread: any, while no row comes or goes. Owner: the name is the store's. Fails: NB_ERR_MISUSE.
NB_API nb_result nb_store_table_info(const nb_store *store, nb_table table, nb_table_info *out);

// What a column is. Columns count from 0 in the order of the desc.
// Thread: any. Owner: the name is the store's. Fails: NB_ERR_MISUSE.
NB_API nb_result nb_store_column_info(const nb_store *store, nb_table table, uint32_t column, nb_column_info *out);

// A number for everything declared of simulated state: names, sizes, capacities, flags, fields. Saved state of another
// layout is not loaded.
// Thread: any, while no table is declared. Owner: nothing. Fails: 0, reported, for NULL.
NB_API uint64_t nb_store_layout_hash(const nb_store *store);

// --- rows and entities ---

// How many rows a table has.
// Thread: any, while no row comes or goes. Owner: nothing. Fails: 0 for NULL and for what is no table.
NB_INLINE uint32_t nb_store_row_count(const nb_store *store, nb_table table) {
    if (store == NULL || table.value - 1 >= store->table_count) return 0;
    return store->tables[table.value - 1].row_count;
}

// The table of an entity, whether or not it lives; null for null.
// Thread: any. Owner: nothing. Fails: never.
NB_INLINE nb_table nb_entity_table(nb_entity entity) {
    nb_table table;
    table.value = (uint32_t)(entity.value >> 56);
    return table;
}

// Spawns a row at once, all zero: for loading, outside ticks. In ticks rows are staged.
// Thread: one, while no other uses the store. Owner: the store, until despawned. Fails: NB_FULL (counted; logged the
// first time in each table), NB_ERR_MISUSE (NULL, no table, a singleton, inside a tick), NB_ERR_PERMISSION.
NB_API nb_result nb_store_spawn(nb_store *store, nb_table table, nb_entity *out);

// Despawns a row at once, outside ticks. The table's last row takes its place: rows stay without gaps, and iteration is
// that of a bare array. Row order depends on the order of spawns and despawns alone; entities stay as they are.
// Thread: one, while no other uses the store. Owner: the row is gone. Fails: NB_ERR_STALE (counted, reported),
// NB_ERR_MISUSE (NULL, a singleton, inside a tick), NB_ERR_PERMISSION.
NB_API nb_result nb_store_despawn(nb_store *store, nb_entity entity);

// The row of a live entity, true until rows next come or go.
// Thread: any, while no row comes or goes. Owner: nothing. Fails: NB_ERR_STALE (null, despawned, foreign; not reported:
// asking is how one finds out), NB_ERR_MISUSE (NULL).
NB_API nb_result nb_store_find(const nb_store *store, nb_entity entity, uint32_t *out_row);

// The entity of a row; null where there is no such row.
// Thread: any, while no row comes or goes. Owner: nothing. Fails: null for NULL and for what is no row.
NB_INLINE nb_entity nb_store_entity(const nb_store *store, nb_table table, uint32_t row) {
    nb_entity none = {0};
    return row < nb_store_row_count(store, table) ? store->tables[table.value - 1].entities[row] : none;
}

// A reference for outside simulated state.
// Thread: any, while no row comes or goes. Owner: the caller gets a value. Fails: as nb_store_find.
NB_API nb_result nb_store_ref(const nb_store *store, nb_entity entity, nb_entity_ref *out);

// The row of the very life that was referred to.
// Thread: any, while no row comes or goes. Owner: nothing. Fails: as nb_store_find; NB_ERR_STALE also for another life
// under the same entity.
NB_API nb_result nb_store_resolve(const nb_store *store, nb_entity_ref ref, uint32_t *out_row);

// What an access that is wrong ends in: reports which argument it is, in the name of `function`. Not for callers.
// Thread: any. Owner: nothing. Fails: always, with NULL.
NB_API void *nb_store_refuse(const nb_store *store, nb_table table, uint32_t column, size_t size_bytes, uint32_t row,
                             const char *function);

// Private: the column, where the size is right.
NB_INLINE const nb_store_column *nbi_store_column_at(const nb_store *store, nb_table table, uint32_t column,
                                                     size_t size_bytes) {
    if (store == NULL || table.value - 1 >= store->table_count) return NULL;
    const nb_store_table *head = &store->tables[table.value - 1];
    if (column >= head->column_count || head->columns[column].size_bytes != size_bytes) return NULL;
    return &head->columns[column];
}

// Private: the column of a member of the row's struct, where offset and size are right.
NB_INLINE const nb_store_column *nbi_store_member_at(const nb_store *store, nb_table table, size_t offset_bytes,
                                                     size_t size_bytes) {
    if (store == NULL || table.value - 1 >= store->table_count) return NULL;
    const nb_store_table *head = &store->tables[table.value - 1];
    if (offset_bytes >= head->row_bytes) return NULL;
    uint32_t column = head->column_at[offset_bytes];
    if (column >= head->column_count || head->columns[column].size_bytes != size_bytes) return NULL;
    return &head->columns[column];
}

// Private: whether nb_store_allow lets a column be written now.
NB_INLINE bool nbi_store_is_writable(const nb_store *store, const nb_store_column *column) {
    return (nbi_atomic_load_relaxed_u32(&store->writable) & column->flags) != 0;
}

// Private: notes a write. Threads that write other rows of the block store the same value; the look first keeps the
// cache line shared among them.
NB_INLINE void nbi_store_mark(const nb_store_column *column, uint32_t block, uint64_t version) {
    nb_atomic_u64 *stamp = &column->block_versions[block];
    if (nbi_atomic_load_relaxed_u64(stamp) != version) nbi_atomic_store_relaxed_u64(stamp, version);
}

// What NB_STORE_ROWS calls.
// Thread: any, while no thread writes the rows read. Owner: the store. Fails: NULL, reported.
NB_INLINE const void *nb_store_rows(const nb_store *store, nb_table table, uint32_t column, size_t size_bytes) {
    const nb_store_column *found = nbi_store_column_at(store, table, column, size_bytes);
    if (NB_LIKELY(found != NULL)) return found->rows;
    return nb_store_refuse(store, table, column, size_bytes, 0, "nb_store_rows");
}

// What NB_STORE_ROWS_PREVIOUS calls.
// Thread: any, between ticks. Owner: the store. Fails: NULL, reported, also for a column without NB_COLUMN_INTERPOLATE.
NB_API const void *nb_store_rows_previous(const nb_store *store, nb_table table, uint32_t column, size_t size_bytes);

// What NB_STORE_ROWS_WRITE and NB_STORE_RANGE_WRITE call; rows behind the last one are left out.
// Thread: any; two may not write one row. Owner: the store. Fails: NULL, reported.
NB_INLINE void *nb_store_rows_write(nb_store *store, nb_table table, uint32_t column, size_t size_bytes, uint32_t first,
                                    uint32_t count) {
    const nb_store_column *found = nbi_store_column_at(store, table, column, size_bytes);
    uint32_t row_count = nb_store_row_count(store, table);
    if (NB_UNLIKELY(found == NULL || (row_count != 0 && !nbi_store_is_writable(store, found)))) {
        return nb_store_refuse(store, table, column, size_bytes, 0, "nb_store_rows_write");
    }
    if (first >= row_count || count == 0) return found->rows;
    uint32_t last = count - 1 < row_count - 1 - first ? first + count - 1 : row_count - 1;
    // Without a look first, unlike for one row: threads share only the blocks at the edges of their ranges.
    nb_atomic_u64 *stamp = found->block_versions + first / NB_STORE_BLOCK_ROWS;
    nb_atomic_u64 *stamp_last = found->block_versions + last / NB_STORE_BLOCK_ROWS;
    for (uint64_t version = store->version; stamp <= stamp_last; ++stamp) nbi_atomic_store_relaxed_u64(stamp, version);
    return found->rows;
}

// What NB_STORE_ROW calls.
// Thread: any, while no thread writes the row. Owner: the store. Fails: NULL, reported.
NB_INLINE const void *nb_store_row(const nb_store *store, nb_table table, uint32_t column, size_t size_bytes,
                                   uint32_t row) {
    const nb_store_column *found = nbi_store_column_at(store, table, column, size_bytes);
    if (NB_LIKELY(found != NULL && row < store->tables[table.value - 1].row_count)) {
        return found->rows + (size_t)row * size_bytes;
    }
    return nb_store_refuse(store, table, column, size_bytes, row, "nb_store_row");
}

// What NB_STORE_ROW_WRITE calls.
// Thread: any; two may not write one row. Owner: the store. Fails: NULL, reported.
NB_INLINE void *nb_store_row_write(nb_store *store, nb_table table, uint32_t column, size_t size_bytes, uint32_t row) {
    const nb_store_column *found = nbi_store_column_at(store, table, column, size_bytes);
    bool is_there = found != NULL && row < store->tables[table.value - 1].row_count;
    if (NB_LIKELY(is_there && nbi_store_is_writable(store, found))) {
        nbi_store_mark(found, row / NB_STORE_BLOCK_ROWS, store->version);
        return found->rows + (size_t)row * size_bytes;
    }
    return nb_store_refuse(store, table, column, size_bytes, row, "nb_store_row_write");
}

// Called by NB_STORE_MEMBER.
// Thread: any, while no thread writes the rows read. Owner: the store. Fails: NULL, reported.
NB_INLINE const void *nb_store_member(const nb_store *store, nb_table table, size_t offset_bytes, size_t size_bytes) {
    const nb_store_column *found = nbi_store_member_at(store, table, offset_bytes, size_bytes);
    if (NB_LIKELY(found != NULL)) return found->rows;
    return nb_store_refuse(store, table, UINT32_MAX, size_bytes, 0, "nb_store_member");
}

// Called by NB_STORE_MEMBER_WRITE: every block counts as changed.
// Thread: any; two may not write one row. Owner: the store. Fails: NULL, reported.
NB_INLINE void *nb_store_member_write(nb_store *store, nb_table table, size_t offset_bytes, size_t size_bytes) {
    const nb_store_column *found = nbi_store_member_at(store, table, offset_bytes, size_bytes);
    uint32_t column = found != NULL ? NBI_CAST(uint32_t, found - store->tables[table.value - 1].columns) : UINT32_MAX;
    return nb_store_rows_write(store, table, column, size_bytes, 0, UINT32_MAX);
}

// Copies a whole row into a struct of the table's type.
// Thread: any, while no thread writes the row. Owner: the caller's struct. Fails: NB_ERR_MISUSE (NULL, no table with a
// type of that size), NB_ERR_RANGE (no such row).
NB_API nb_result nb_store_row_get(const nb_store *store, nb_table table, uint32_t row, void *out, size_t size_bytes);

// --- ticks ---

// Says what may be written from now on: NB_COLUMN_SIMULATED, NB_COLUMN_LOCAL, both (as at first) or 0. Other writes,
// staged ones too, are refused, counted, and reported the first time in each table. The engine does this for each
// phase.
// Thread: one, while no other writes. Owner: nothing. Fails: NB_ERR_MISUSE (NULL, other flags).
NB_API nb_result nb_store_allow(nb_store *store, uint32_t flags);

// Begins a tick: keeps the interpolated columns' values as the previous ones (only blocks that changed), forgets
// teleports, advances the version. From here to nb_store_tick_end rows come and go through nb_store_apply alone.
// Thread: one, while no other uses the store. Owner: nothing. Fails: NB_ERR_MISUSE (NULL, a tick is on, an engine runs
// the store's ticks).
NB_API nb_result nb_store_tick_begin(nb_store *store);

// Marks a row as jumped in this tick: its previous values become its values at the tick's end. The mark is simulated
// state; a row that is spawned has it for the rest of its tick.
// Thread: any; two may not mark one row. Owner: nothing. Fails: NB_ERR_STALE, NB_ERR_MISUSE (NULL, a table without
// interpolated columns), NB_ERR_PERMISSION.
NB_API nb_result nb_store_teleport(nb_store *store, nb_entity entity);

// Ends the tick: rows that teleported get their values as previous ones.
// Thread: one, while no other uses the store. Owner: nothing. Fails: NB_ERR_MISUSE (NULL, no tick is on, an engine runs
// the store's ticks).
NB_API nb_result nb_store_tick_end(nb_store *store);

// Advances the version and gives the new one: blocks written from here on are newer than whatever was copied before.
// Call it after each copy. nb_store_views_publish, nb_store_tick_begin and nb_store_hash do it too.
// Thread: one, while no other writes. Owner: nothing. Fails: 0, reported, for NULL.
NB_API uint64_t nb_store_version_advance(nb_store *store);

// --- staged changes ---

// Prepares a stage: one for each handler and job, filled by one thread. There is nothing to release afterwards.
// Thread: any, while no table is declared. Owner: the caller's storage and memory. Fails: NB_ERR_MISUSE (NULL),
// NB_ERR_RANGE (size_bytes).
NB_API nb_result nb_store_stage_init(nb_store_stage *stage, nb_store *store, const nb_store_stage_desc *desc);

// Stages a row to be spawned, all zero until NB_STORE_STAGED_WRITE. out may be NULL.
// Thread: the stage's own. Owner: the stage. Fails: NB_FULL (no memory left; counted, logged the first time),
// NB_ERR_MISUSE (NULL, no table, a singleton, already applied), NB_ERR_PERMISSION.
NB_API nb_result nb_store_stage_spawn(nb_store_stage *stage, nb_table table, nb_staged *out);

// Stages a row with its values, a struct of the table's type. out may be NULL.
// Thread: the stage's own. Owner: the row is copied. Fails: as nb_store_stage_spawn; NB_ERR_MISUSE (a table without a
// type of that size).
NB_API nb_result nb_store_stage_spawn_row(nb_store_stage *stage, nb_table table, const void *row, size_t size_bytes,
                                          nb_staged *out);

// Stages `count` rows from an array of such structs, all or none.
// Thread: the stage's own. Owner: the rows are copied. Fails: as nb_store_stage_spawn_row.
NB_API nb_result nb_store_stage_spawn_rows(nb_store_stage *stage, nb_table table, const void *rows, size_t size_bytes,
                                           uint32_t count);

// What NB_STORE_STAGED_WRITE calls.
// Thread: the stage's own. Owner: the stage. Fails: NULL, reported.
NB_API void *nb_store_stage_write(nb_store_stage *stage, nb_staged staged, uint32_t column, size_t size_bytes);

// Makes a value of a row staged to be spawned, an nb_entity, the entity that another row of the same stage becomes,
// which nobody knows yet: a child's parent. Where that one finds its table full, the value stays as it was written.
// Thread: the stage's own. Owner: the stage. Fails: NB_FULL (as nb_store_stage_spawn), NB_ERR_STALE, NB_ERR_MISUSE
// (NULL, no column of that size, already applied).
NB_API nb_result nb_store_stage_link(nb_store_stage *stage, nb_staged staged, uint32_t column, nb_staged target);

// Stages a despawn. Whether the entity lives is seen when it is applied: several may stage the same one.
// Thread: the stage's own. Owner: the stage. Fails: NB_FULL (as nb_store_stage_spawn), NB_ERR_MISUSE (NULL, null, no
// table, a singleton, already applied), NB_ERR_PERMISSION.
NB_API nb_result nb_store_stage_despawn(nb_store_stage *stage, nb_entity entity);

// Applies stages, ordered by handler, job and sequence: whatever thread filled which stage when, the rows and entities
// are the same. Sorts the array it is given. Commands that find their table full, their entity gone or their table not
// to be written are counted and skipped.
// Thread: one, while no other uses the store. Owner: the stages are the caller's again. Fails: NB_FULL (something found
// its table full; the rest is applied), NB_ERR_MISUSE (NULL, a stage of another store, applied before, or two of one
// handler and job, inside a tick that an engine runs; nothing is applied).
NB_API nb_result nb_store_apply(nb_store *store, nb_store_stage **stages, size_t stage_count);

// The entity that a staged row became.
// Thread: the stage's own. Owner: nothing. Fails: NB_EMPTY (not applied yet), NB_FULL (its table was full),
// NB_ERR_STALE, NB_ERR_MISUSE (NULL).
NB_API nb_result nb_store_stage_entity(const nb_store_stage *stage, nb_staged staged, nb_entity *out);

// Empties a stage, applied or not, for its next use.
// Thread: the stage's own. Owner: nothing. Fails: NB_ERR_MISUSE (NULL, not initialised).
NB_API nb_result nb_store_stage_reset(nb_store_stage *stage);

// --- what others build on ---

// A column with its block versions: a block whose version is larger than that of a copy has changed since.
// Thread: any, while no row comes or goes. Owner: the store. Fails: NB_ERR_MISUSE.
NB_API nb_result nb_store_column_view(const nb_store *store, nb_table table, uint32_t column, nb_column_view *out);

// The same for the previous values of an interpolated column.
// Thread: any, between ticks. Owner: the store. Fails: NB_ERR_MISUSE.
NB_API nb_result nb_store_previous_view(const nb_store *store, nb_table table, uint32_t column, nb_column_view *out);

// The same for the entities of a table: an nb_entity a row.
// Thread: any, while no row comes or goes. Owner: the store. Fails: NB_ERR_MISUSE.
NB_API nb_result nb_store_entity_view(const nb_store *store, nb_table table, nb_column_view *out);

// The same for the teleport marks of a table with interpolated columns: a byte a row, 1 = teleported.
// Thread: any, while no row comes or goes. Owner: the store. Fails: NB_ERR_MISUSE.
NB_API nb_result nb_store_teleport_view(const nb_store *store, nb_table table, nb_column_view *out);

// The hash of all simulated state: rows in their order, which entities live and which come next, teleport marks. Only
// blocks written since the last call are read. Padding named by fields is set to zero. Advances the version.
// Thread: one, while no other uses the store. Owner: nothing. Fails: 0, reported, for NULL.
NB_API uint64_t nb_store_hash(nb_store *store);

// A simulated table's part in the last nb_store_hash; 0 for a local table.
// Thread: any, while none hashes. Owner: nothing. Fails: 0, reported, for NULL and what is no table.
NB_API uint64_t nb_store_table_hash(const nb_store *store, nb_table table);

// A simulated column's part in the last nb_store_hash; 0 for a local column.
// Thread: any, while none hashes. Owner: nothing. Fails: 0, reported, for NULL and what is no column.
NB_API uint64_t nb_store_column_hash(const nb_store *store, nb_table table, uint32_t column);

// How many parts the last nb_store_hash was of: of each simulated table its rows and each simulated column.
// Thread: any, while no table is declared. Owner: nothing. Fails: 0, reported, for NULL.
NB_API uint32_t nb_store_hash_count(const nb_store *store);

// One of those parts, in the order of tables: first a table's rows, then its columns. Two stores of one layout have the
// same parts at the same places; in a table with more rows all columns differ, too.
// Thread: any, while none hashes. Owner: names are the store's. Fails: NB_EMPTY (behind the last), NB_ERR_MISUSE.
NB_API nb_result nb_store_hash_at(const nb_store *store, uint32_t index, nb_store_hash_part *out);

// --- protection, for debugging ---

// Makes all rows read-only memory, or writable again: what columns, previous values, entities and teleport marks are
// in. Whoever writes then faults; nb_guard says who and where. Meanwhile nothing may come, go, tick, load or be hashed
// (which clears padding); reading, saving and publishing go on.
// Thread: one, while no other writes. Owner: nothing. Fails: NB_ERR_UNSUPPORTED (without is_protectable), NB_ERR_OS
// (everything is as before), NB_ERR_MISUSE (NULL).
NB_API nb_result nb_store_protect(nb_store *store, bool is_protected);

// Which row of which column an address lies in, protected or not. Reads only, and is safe in a signal handler.
// Thread: any, while no table is declared. Owner: *place is filled on NB_OK; its names are the store's. Fails: NB_EMPTY
// (not in a row), NB_ERR_MISUSE (NULL).
NB_API nb_result nb_store_locate(const nb_store *store, const void *address, nb_store_place *place);

// --- save and load ---

// How many bytes nb_store_save would write now.
// Thread: any, while none writes. Owner: nothing. Fails: 0, reported, for NULL and a bad kind.
NB_API size_t nb_store_save_size(const nb_store *store, nb_save_kind kind);

// Writes the simulated state: the same state gives the same bytes.
// Thread: any, while none writes. Owner: the caller's buffer. Fails: NB_FULL (size_bytes is too small; nothing
// written), NB_ERR_MISUSE (NULL, a bad kind).
NB_API nb_result nb_store_save(const nb_store *store, nb_save_kind kind, void *buffer, size_t size_bytes,
                               size_t *out_size_bytes);

// Replaces the simulated state by a saved one: same rows, entities and hash. Previous values become the loaded ones;
// local columns of simulated tables become zero; local tables stay. Everything is checked before anything changes.
// Thread: one, while no other uses the store. Owner: the buffer may go. Fails: NB_ERR_UNSUPPORTED (another layout),
// NB_ERR_RANGE (cut short or damaged), NB_ERR_MISUSE (NULL, inside a tick), NB_ERR_PERMISSION. Nothing is changed then.
NB_API nb_result nb_store_load(nb_store *store, const void *buffer, size_t size_bytes);

// --- the end ---

// Walks everything: do entities and rows agree, is what lies behind the rows zero?
// Thread: one, while no other uses the store. Owner: nothing. Fails: false, with a report; false for NULL.
NB_API bool nb_store_is_valid(const nb_store *store);

// How much there is, and what was refused.
// Thread: one, while no other uses the store. Owner: the caller gets a value. Fails: zeros, reported, for NULL.
NB_API nb_store_stats nb_store_stats_get(const nb_store *store);

// Ends the store and all its tables. NULL is fine.
// Thread: one, while no other uses the store. Owner: the store is gone. Fails: never.
NB_API void nb_store_destroy(nb_store *store);

NB_EXTERN_C_END
