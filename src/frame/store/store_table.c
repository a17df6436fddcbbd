// SPDX-License-Identifier: MIT
// Declaring tables: every argument is checked, then all memory of the table is taken at once; and what can be asked of
// a declaration afterwards.

#include "store.h"
#include "type.h"

#include "nebula/hash.h"

#include <string.h>

#include "../../platform/platform.h"

// A small game's objects of one kind.
#define ROW_COUNT_DEFAULT 1024

// Rows start on a cache line, which also is the largest alignment an element may have.
#define ROW_ALIGNMENT NB_CACHE_LINE

nb_table_desc nb_table_desc_default(void) { return (nb_table_desc){.row_count_max = ROW_COUNT_DEFAULT}; }

#define REFUSE(item, result, ...) nbi_fail(&self->hooks, (item), (result), "nb_store_table_add", __VA_ARGS__)

// Length of a name that fits with its zero; 0 for one that does not.
static size_t name_length(const char *name) {
    if (name == NULL) return 0;
    const char *end = memchr(name, 0, NB_STORE_NAME_SIZE);
    return end != NULL ? (size_t)(end - name) : 0;
}

static nb_result check_name(const nbi_store *self, const char *name, const char *what) {
    if (name_length(name) != 0) return NB_OK;
    return REFUSE(NB_ITEM_STORE_NAME, NB_ERR_MISUSE, "a %s needs a name of 1 to %d bytes", what,
                  NB_STORE_NAME_SIZE - 1);
}

static nb_result check_fields(const nbi_store *self, const nb_column_desc *column) {
    if ((column->fields == NULL) != (column->field_count == 0)) {
        return REFUSE(NB_ITEM_STORE_ARGUMENT, NB_ERR_MISUSE, "column '%s' has fields without a count or the reverse",
                      column->name);
    }
    for (uint32_t i = 0; i < column->field_count; ++i) {
        const nb_store_field *field = &column->fields[i];
        bool is_inside = field->size_bytes > 0 && field->offset_bytes < column->size_bytes &&
                         field->size_bytes <= column->size_bytes - field->offset_bytes;
        if (!is_inside) {
            return REFUSE(NB_ITEM_STORE_ARGUMENT, NB_ERR_RANGE, "field %u of column '%s' is not inside the element", i,
                          column->name);
        }
    }
    return NB_OK;
}

static nb_result check_column(const nbi_store *self, const nb_table_desc *desc, uint32_t index) {
    const nb_column_desc *column = &desc->columns[index];
    nb_result result = check_name(self, column->name, "column");
    if (result != NB_OK) return result;
    for (uint32_t i = 0; i < index; ++i) {
        if (strcmp(desc->columns[i].name, column->name) != 0) continue;
        return REFUSE(NB_ITEM_STORE_NAME, NB_ERR_MISUSE, "two columns are named '%s'", column->name);
    }
    if (column->size_bytes == 0 || column->size_bytes > NB_STORE_ELEMENT_SIZE_MAX) {
        return REFUSE(NB_ITEM_STORE_ARGUMENT, NB_ERR_RANGE, "column '%s': %zu bytes an element", column->name,
                      column->size_bytes);
    }
    const uint32_t known = NB_COLUMN_SNAPSHOT | NB_COLUMN_INTERPOLATE | NB_COLUMN_SIMULATED | NB_COLUMN_LOCAL;
    bool is_simulated = (column->flags & NB_COLUMN_SIMULATED) != 0;
    bool is_local = (column->flags & NB_COLUMN_LOCAL) != 0;
    if ((column->flags & ~known) != 0 || (is_simulated && (is_local || desc->is_local))) {
        return REFUSE(NB_ITEM_STORE_ARGUMENT, NB_ERR_MISUSE, "column '%s': flags 0x%x contradict or are unknown",
                      column->name, column->flags);
    }
    return check_fields(self, column);
}

// --- a type in place of columns ---

// The columns, values and padding of a type.
typedef struct typed_columns {
    nb_column_desc columns[NB_STORE_COLUMN_COUNT_MAX];
    uint32_t first_leaf[NB_STORE_COLUMN_COUNT_MAX + 1]; // of each column, and behind the last
    nb_store_field fields[NB_TYPE_VALUE_COUNT_MAX];     // of the leaf with that index
    nbi_leaf leaves[NB_TYPE_VALUE_COUNT_MAX];
    uint32_t column_count;
} typed_columns;

static uint32_t flags_of(const nb_table_desc *desc, uint32_t flags) {
    bool is_local = desc->is_local || (flags & NB_LOCAL) != 0;
    uint32_t out = is_local ? NB_COLUMN_LOCAL : NB_COLUMN_SIMULATED;
    if ((flags & NB_TICK_ONLY) == 0) out |= NB_COLUMN_SNAPSHOT;
    return (flags & NB_INTERPOLATE) != 0 ? out | NB_COLUMN_INTERPOLATE : out;
}

// The next column, with the leaves that were added since the one before. Their fields tell what is padding, where there
// is any: clearing it costs a look at each byte.
static void add_column(typed_columns *out, const nb_column_desc *column, uint32_t leaf_count) {
    uint32_t index = out->column_count++, first = out->first_leaf[index];
    out->columns[index] = *column;
    size_t value_bytes = 0;
    for (uint32_t i = first; i < leaf_count; ++i) {
        out->fields[i] = (nb_store_field){out->leaves[i].offset_bytes, out->leaves[i].size_bytes};
        value_bytes += out->leaves[i].size_bytes;
    }
    out->first_leaf[index + 1] = leaf_count;
    if (value_bytes == column->size_bytes) return;
    out->columns[index].fields = &out->fields[first];
    out->columns[index].field_count = leaf_count - first;
}

// A table has a column for each member.
static bool add_members(typed_columns *out, const nb_table_desc *desc) {
    nbi_leaves leaves = {.all = out->leaves, .count_max = NB_TYPE_VALUE_COUNT_MAX};
    for (uint32_t i = 0; i < desc->type->member_count; ++i) {
        nb_member member = desc->type->members[i];
        const nb_type alone = {desc->type->name, member.size_bytes, 1, &member};
        uint32_t flags = flags_of(desc, member.flags);
        member.offset_bytes = 0;
        if (!nbi_type_leaves(&alone, 0, "", &leaves)) return false;
        add_column(out, &(nb_column_desc){.name = member.name, .size_bytes = member.size_bytes, .flags = flags},
                   leaves.count);
    }
    return true;
}

// A singleton is one struct, which is read and written as a whole.
static bool add_struct(typed_columns *out, const nb_table_desc *desc) {
    nbi_leaves leaves = {.all = out->leaves, .count_max = NB_TYPE_VALUE_COUNT_MAX};
    if (!nbi_type_leaves(desc->type, 0, "", &leaves)) return false;
    add_column(out,
               &(nb_column_desc){.name = NBI_STATE_COLUMN,
                                 .size_bytes = desc->type->size_bytes,
                                 .flags = flags_of(desc, desc->type->members[0].flags)},
               leaves.count);
    return true;
}

// All members of a singleton are kept in one way.
static bool has_flags_of_one_kind(const nb_type *type) {
    for (uint32_t i = 1; i < type->member_count; ++i) {
        if (type->members[i].flags != type->members[0].flags) return false;
    }
    return true;
}

static nb_result check_type(const nbi_store *self, const nb_table_desc *desc) {
    const nb_type *type = desc->type;
    const char *name = desc->name != NULL ? desc->name : "";
    if (desc->columns != NULL || desc->column_count != 0)
        return REFUSE(NB_ITEM_STORE_ARGUMENT, NB_ERR_MISUSE, "table '%s' has both columns and a type", name);
    nb_result result = nb_type_check(type, &self->hooks);
    if (result != NB_OK) return result;
    bool has_many = !desc->is_singleton && type->member_count > NB_STORE_COLUMN_COUNT_MAX;
    if (has_many || type->size_bytes > NB_STORE_ELEMENT_SIZE_MAX) {
        return REFUSE(NB_ITEM_STORE_ARGUMENT, NB_ERR_RANGE,
                      "type \"%s\": %u members of at most %d, %u bytes of at most %zu", type->name, type->member_count,
                      NB_STORE_COLUMN_COUNT_MAX, type->size_bytes, NB_STORE_ELEMENT_SIZE_MAX);
    }
    if (!desc->is_singleton || has_flags_of_one_kind(type)) return NB_OK;
    return REFUSE(NB_ITEM_STORE_ARGUMENT, NB_ERR_MISUSE, "singleton '%s': all members of \"%s\" need the same flags",
                  name, type->name);
}

static nb_result describe_type(const nbi_store *self, nb_table_desc *desc, typed_columns *out) {
    nb_result result = check_type(self, desc);
    if (result != NB_OK) return result;
    out->column_count = 0;
    out->first_leaf[0] = 0;
    if (!(desc->is_singleton ? add_struct(out, desc) : add_members(out, desc))) {
        return REFUSE(NB_ITEM_STORE_ARGUMENT, NB_ERR_RANGE, "type \"%s\" has more than %u values", desc->type->name,
                      NB_TYPE_VALUE_COUNT_MAX);
    }
    desc->columns = out->columns;
    desc->column_count = out->column_count;
    return NB_OK;
}

// --- checks ---

static nb_result check_counts(const nbi_store *self, const nb_table_desc *desc) {
    if (desc->columns == NULL || desc->column_count == 0) {
        return REFUSE(NB_ITEM_STORE_ARGUMENT, NB_ERR_MISUSE, "table '%s' has no columns", desc->name);
    }
    bool is_singleton_of_many = desc->is_singleton && desc->row_count_max > 1;
    if (desc->column_count > NB_STORE_COLUMN_COUNT_MAX || desc->row_count_max > NB_HANDLE_CAPACITY_MAX ||
        is_singleton_of_many) {
        return REFUSE(NB_ITEM_STORE_ARGUMENT, NB_ERR_RANGE, "table '%s': %u columns or %u rows are too many",
                      desc->name, desc->column_count, desc->row_count_max);
    }
    return NB_OK;
}

static nb_result check_desc(const nbi_store *self, const nb_table_desc *desc) {
    nb_result result = check_name(self, desc->name, "table");
    if (result != NB_OK) return result;
    for (uint32_t i = 0; i < self->visible.table_count; ++i) {
        if (strcmp(self->tables[i].name, desc->name) != 0) continue;
        return REFUSE(NB_ITEM_STORE_NAME, NB_ERR_MISUSE, "two tables are named '%s'", desc->name);
    }
    result = check_counts(self, desc);
    for (uint32_t i = 0; result == NB_OK && i < desc->column_count; ++i) result = check_column(self, desc, i);
    return result;
}

// --- memory ---

// Hands out pieces of one allocation. The first pass has no base and only measures.
typedef struct carver {
    unsigned char *base;
    size_t used_bytes;
    bool is_too_large;
} carver;

static void *carve(carver *self, size_t count, size_t size_bytes) {
    size_t at = self->used_bytes, wanted = 0;
    bool is_fine = nbi_size_mul(count, size_bytes, &wanted) && nbi_size_add(wanted, ROW_ALIGNMENT - 1, &wanted) &&
                   nbi_size_add(at, wanted & ~(size_t)(ROW_ALIGNMENT - 1), &self->used_bytes);
    if (!is_fine) self->is_too_large = true;
    return self->base != NULL ? self->base + at : NULL;
}

// The rows come from one carver, which may be that of pages; their versions, which are written to whenever somebody
// asks for rows to write, from another.
static void carve_column(carver *from, carver *rows, const nbi_table *table, size_t size_bytes, nb_store_column *out) {
    out->rows = carve(rows, (size_t)table->block_count * NB_STORE_BLOCK_ROWS, size_bytes);
    out->block_versions = carve(from, table->block_count, sizeof(nb_atomic_u64));
    out->size_bytes = (uint32_t)size_bytes;
    if (from->base == NULL) return;
    memset(out->block_versions, 0, table->block_count * sizeof(nb_atomic_u64));
}

// A part of the pool, which has its own memory: only versions and hashes.
static void carve_slots(carver *from, const nbi_table *table, size_t size_bytes, nb_store_column *out) {
    carve_column(from, from, table, 0, out);
    out->rows = NULL;
    out->size_bytes = (uint32_t)size_bytes;
}

static uint64_t *carve_hashes(carver *from, const nbi_table *table) {
    return carve(from, table->block_count, sizeof(uint64_t));
}

static void carve_table(carver *from, carver *rows, nbi_table *table) {
    bool has_previous = false;
    for (uint32_t i = 0; i < table->head->column_count; ++i) {
        nb_store_column *head = &table->heads[i];
        nbi_column *column = &table->columns[i];
        carve_column(from, rows, table, head->size_bytes, head);
        if (nbi_column_is_simulated(head)) column->block_hashes = carve_hashes(from, table);
        if ((head->flags & NB_COLUMN_INTERPOLATE) == 0) continue;
        has_previous = true;
        carve_column(from, rows, table, head->size_bytes, &column->previous);
    }
    carve_column(from, rows, table, sizeof(nb_entity), &table->entities);
    if (has_previous) carve_column(from, rows, table, 1, &table->marks);
    carve_slots(from, table, sizeof(uint64_t), &table->generations);
    carve_slots(from, table, sizeof(uint32_t), &table->links);
    table->entity_hashes = carve_hashes(from, table);
    table->mark_hashes = carve_hashes(from, table);
    table->generation_hashes = carve_hashes(from, table);
    table->link_hashes = carve_hashes(from, table);
    table->incarnations = carve(from, table->row_count_max, sizeof(uint64_t));
    table->slot_rows = carve(from, table->row_count_max, sizeof(uint32_t));
    table->spare_slot_rows = carve(from, table->row_count_max, sizeof(uint32_t));
}

// Heads, columns and the padding of each: what the second allocation is measured from.
static nb_result allocate_meta(nbi_store *self, nbi_table *table, const nb_table_desc *desc,
                               const typed_columns *typed) {
    size_t heads_bytes = desc->column_count * sizeof(nb_store_column);
    size_t columns_bytes = desc->column_count * sizeof(nbi_column);
    size_t padding_bytes = 0;
    for (uint32_t i = 0; i < desc->column_count; ++i) {
        if (desc->columns[i].fields != NULL) padding_bytes += desc->columns[i].size_bytes;
    }
    size_t map_bytes = desc->type != NULL ? desc->type->size_bytes : 0;
    size_t leaves_bytes = typed != NULL ? typed->first_leaf[typed->column_count] * sizeof(nbi_leaf) : 0;
    size_t front_bytes = heads_bytes + columns_bytes + leaves_bytes;
    table->meta_bytes = front_bytes + padding_bytes + map_bytes; // at most 65 MiB
    unsigned char *memory =
        nbi_alloc(&self->hooks, table->meta_bytes, NB_ALIGNOF(nb_store_column), "nb_store_table_add");
    if (memory == NULL) return NB_ERR_MEMORY;
    memset(memory, 0, heads_bytes + columns_bytes);
    table->meta_memory = memory;
    table->heads = (nb_store_column *)(void *)memory;
    table->columns = (nbi_column *)(void *)(memory + heads_bytes);
    table->leaves = (nbi_leaf *)(void *)(memory + heads_bytes + columns_bytes);
    if (leaves_bytes != 0) memcpy(table->leaves, typed->leaves, leaves_bytes);
    uint8_t *padding = memory + front_bytes;
    for (uint32_t i = 0; i < desc->column_count; ++i) {
        if (desc->columns[i].fields == NULL) continue;
        table->columns[i].padding = padding;
        padding += desc->columns[i].size_bytes;
    }
    table->column_at = map_bytes != 0 ? padding : NULL;
    return NB_OK;
}

// Whole pages, so that protecting them concerns nothing else. Real memory comes with the first write.
static nb_result allocate_pages(nbi_store *self, nbi_table *table, size_t size_bytes) {
    size_t page_bytes = nbi_page_size();
    table->page_bytes = (size_bytes + page_bytes - 1) / page_bytes * page_bytes;
    table->page_memory = nbi_pages_reserve(table->page_bytes);
    bool is_there = table->page_memory != NULL && nbi_pages_commit(table->page_memory, table->page_bytes) == NB_OK;
    if (is_there) return NB_OK;
    nbi_log(&self->hooks, NB_LOG_ERROR, NB_ITEM_BASE_MEMORY, "nb_store_table_add", "%s: no %zu bytes of pages",
            table->name, table->page_bytes);
    return NB_ERR_MEMORY;
}

static nb_result allocate_rows(nbi_store *self, nbi_table *table) {
    carver measure = {0}, measure_pages = {0}, rows = {0}, pages = {0};
    bool has_pages = self->is_protectable;
    carve_table(&measure, has_pages ? &measure_pages : &measure, table);
    // Half of all addresses leaves room for rounding up.
    if (measure.is_too_large || measure_pages.is_too_large || measure_pages.used_bytes > SIZE_MAX / 2) {
        return REFUSE(NB_ITEM_STORE_ARGUMENT, NB_ERR_RANGE, "table '%s' does not fit into memory", table->name);
    }
    rows.base = nbi_alloc(&self->hooks, measure.used_bytes, ROW_ALIGNMENT, "nb_store_table_add");
    if (rows.base == NULL) return NB_ERR_MEMORY;
    table->row_memory = rows.base;
    table->row_bytes = measure.used_bytes;
    if (has_pages && allocate_pages(self, table, measure_pages.used_bytes) != NB_OK) return NB_ERR_MEMORY;
    pages.base = table->page_memory;
    carve_table(&rows, has_pages ? &pages : &rows, table);
    return NB_OK;
}

// The store reports for its pools, which would not know their table's name.
static nb_result create_pools(nbi_store *self, nbi_table *table) {
    nb_handle_pool_desc desc = {.capacity = table->row_count_max,
                                .use_count_max = NB_STORE_SLOT_USE_COUNT_MAX,
                                .hooks = {.allocator = self->hooks.allocator, .logger = {.level_min = NB_LOG_OFF}}};
    nb_result result = nb_handle_pool_create(&desc, &table->pool);
    if (result == NB_OK) result = nb_handle_pool_create(&desc, &table->spare_pool);
    if (result == NB_OK) return NB_OK;
    nbi_log(&self->hooks, NB_LOG_ERROR, NB_ITEM_BASE_MEMORY, "nb_store_table_add", "no memory for %u handles of '%s'",
            table->row_count_max, table->name);
    return result;
}

void nbi_table_deinit(nbi_store *self, nbi_table *table) {
    nb_handle_pool_destroy(table->spare_pool);
    nb_handle_pool_destroy(table->pool);
    nbi_pages_release(table->page_memory, table->page_bytes);
    if (table->row_memory != NULL) nbi_free(&self->hooks, table->row_memory, table->row_bytes);
    if (table->meta_memory != NULL) nbi_free(&self->hooks, table->meta_memory, table->meta_bytes);
    memset(table, 0, sizeof *table);
}

// --- declaration ---

static void fill_padding(uint8_t *padding, const nb_column_desc *column) {
    memset(padding, 1, column->size_bytes);
    for (uint32_t i = 0; i < column->field_count; ++i) {
        memset(padding + column->fields[i].offset_bytes, 0, column->fields[i].size_bytes);
    }
}

bool nbi_padding_clear(const uint8_t *padding, unsigned char *elements, size_t size_bytes, uint32_t count) {
    bool has_changed = false;
    if (padding == NULL) return false;
    for (uint32_t i = 0; i < count; ++i, elements += size_bytes) {
        for (size_t byte = 0; byte < size_bytes; ++byte) {
            if (padding[byte] == 0 || elements[byte] == 0) continue;
            elements[byte] = 0;
            has_changed = true;
        }
    }
    return has_changed;
}

// An alignment divides its type's size, so the size's largest power of two is enough for any type of that size.
static uint32_t alignment_of(uint32_t size_bytes) {
    uint32_t largest = size_bytes & (~size_bytes + 1);
    return largest < ROW_ALIGNMENT ? largest : ROW_ALIGNMENT;
}

static uint32_t resolve_flags(const nb_table_desc *desc, uint32_t flags) {
    if ((flags & (NB_COLUMN_SIMULATED | NB_COLUMN_LOCAL)) != 0) return flags;
    return flags | (desc->is_local ? NB_COLUMN_LOCAL : NB_COLUMN_SIMULATED);
}

// Elements of a staged row one after the other, each aligned; 64 of at most 1 MiB stay far below 4 GiB.
static void describe_columns(nbi_table *table, const nb_table_desc *desc) {
    uint32_t offset = 0, alignment = 1;
    for (uint32_t i = 0; i < desc->column_count; ++i) {
        const nb_column_desc *asked = &desc->columns[i];
        nbi_column *column = &table->columns[i];
        uint32_t size_bytes = (uint32_t)asked->size_bytes, own = alignment_of(size_bytes);
        memcpy(column->name, asked->name, name_length(asked->name));
        table->heads[i].size_bytes = size_bytes;
        table->heads[i].flags = resolve_flags(desc, asked->flags);
        offset = (offset + own - 1) & ~(own - 1);
        column->staged_offset = offset;
        offset += size_bytes;
        if (own > alignment) alignment = own;
        if (column->padding != NULL) fill_padding(column->padding, asked);
    }
    table->staged_size_bytes = offset;
    table->staged_alignment = alignment;
}

// A staged row of a table with a type is the struct itself, and members are found by their offset.
static void describe_members(nbi_table *table, const nb_table_desc *desc, const typed_columns *typed) {
    uint32_t alignment = 1;
    memset(table->column_at, UINT8_MAX, desc->type->size_bytes);
    for (uint32_t i = 0; i < desc->type->member_count; ++i) {
        const nb_member *member = &desc->type->members[i];
        if (member->align_bytes > alignment) alignment = member->align_bytes;
        if (desc->is_singleton) continue;
        table->columns[i].staged_offset = member->offset_bytes;
        table->column_at[member->offset_bytes] = (uint8_t)i;
    }
    if (desc->is_singleton) table->column_at[0] = 0;
    for (uint32_t i = 0; i < typed->column_count; ++i) {
        table->columns[i].leaves = table->leaves + typed->first_leaf[i];
        table->columns[i].leaf_count = typed->first_leaf[i + 1] - typed->first_leaf[i];
    }
    table->staged_size_bytes = desc->type->size_bytes;
    table->staged_alignment = alignment;
    table->head->column_at = table->column_at;
    table->head->row_bytes = desc->type->size_bytes;
}

static uint64_t mix(uint64_t hash, const void *data, size_t size_bytes) { return nb_hash64(data, size_bytes, hash); }

// Local tables and columns are no part of what is saved: adding one keeps old saves good.
static uint64_t layout_of(const nbi_table *table, uint64_t hash) {
    if (table->is_local) return hash;
    uint32_t numbers[] = {table->row_count_max, table->is_singleton, table->marks.rows != NULL};
    hash = mix(mix(hash, table->name, sizeof table->name), numbers, sizeof numbers);
    for (uint32_t i = 0; i < table->head->column_count; ++i) {
        const nb_store_column *head = &table->heads[i];
        const nbi_column *column = &table->columns[i];
        if (!nbi_column_is_simulated(head)) continue;
        hash = mix(mix(hash, column->name, sizeof column->name), &head->size_bytes, sizeof head->size_bytes);
        if (column->padding != NULL) hash = mix(hash, column->padding, head->size_bytes);
        // A column that is a struct means what its values are called. Others are named already.
        bool is_struct = column->leaf_count > 1 || (column->leaf_count == 1 && table->is_singleton);
        if (is_struct) hash = mix(hash, column->leaves, column->leaf_count * sizeof(nbi_leaf));
    }
    return hash;
}

static nb_result build_table(nbi_store *self, nbi_table *table, const nb_table_desc *desc, const typed_columns *typed) {
    memcpy(table->name, desc->name, name_length(desc->name));
    table->row_count_max = desc->row_count_max != 0 ? desc->row_count_max : ROW_COUNT_DEFAULT;
    if (desc->is_singleton) table->row_count_max = 1;
    table->block_count = nbi_block_count(table->row_count_max);
    table->slot_last = NBI_SLOT_NONE;
    table->is_local = desc->is_local;
    table->is_singleton = desc->is_singleton;
    table->head = &self->heads[self->visible.table_count];
    *table->head = (nb_store_table){.column_count = desc->column_count};
    nb_result result = allocate_meta(self, table, desc, typed);
    if (result != NB_OK) return result;
    describe_columns(table, desc);
    if (typed != NULL) describe_members(table, desc, typed);
    result = allocate_rows(self, table);
    if (result == NB_OK) result = create_pools(self, table);
    table->head->columns = table->heads;
    table->head->entities = nbi_entities(table);
    return result;
}

nb_result nb_store_table_add(nb_store *store, const nb_table_desc *given, nb_table *out) {
    if (store == NULL) return NBI_FAIL_NULL("store");
    nbi_store *self = nbi_store_of(store);
    if (given == NULL || out == NULL) {
        return NBI_FAIL(&self->hooks, NB_ITEM_STORE_ARGUMENT, NB_ERR_MISUSE, "desc or out is NULL");
    }
    if (self->is_started) {
        return NBI_FAIL(&self->hooks, NB_ITEM_STORE_STARTED, NB_ERR_MISUSE,
                        "tables are declared before the first row, load or tick");
    }
    if (self->is_protected) {
        return NBI_FAIL(&self->hooks, NB_ITEM_STORE_PROTECTED, NB_ERR_MISUSE, "the store is read-only now");
    }
    typed_columns typed;
    nb_table_desc desc = *given;
    nb_result result = desc.type != NULL ? describe_type(self, &desc, &typed) : NB_OK;
    if (result == NB_OK) result = check_desc(self, &desc);
    if (result != NB_OK) return result;
    if (store->table_count == self->table_count_max) {
        nbi_log(&self->hooks, NB_LOG_WARNING, NB_ITEM_STORE_FULL, __func__, "there are %u tables already",
                store->table_count);
        return NB_FULL;
    }
    nbi_table *table = &self->tables[store->table_count];
    result = build_table(self, table, &desc, desc.type != NULL ? &typed : NULL);
    if (result != NB_OK) {
        nbi_table_deinit(self, table);
        return result;
    }
    store->table_count += 1;
    self->layout_hash = layout_of(table, self->layout_hash);
    nb_entity entity;
    if (table->is_singleton) nbi_store_rows_add(self, table, NULL, 1, &entity);
    *out = (nb_table){store->table_count};
    return NB_OK;
}

// --- questions ---

// The table, or NULL with a report.
static const nbi_table *table_or_report(const nb_store *store, nb_table table, const void *out, const char *function) {
    if (store == NULL) {
        nbi_fail(NULL, NB_ITEM_BASE_NULL, NB_ERR_MISUSE, function, "store is NULL");
        return NULL;
    }
    const nbi_store *self = nbi_store_const_of(store);
    const nbi_table *found = nbi_table_of(self, table);
    if (found != NULL && out != NULL) return found;
    const char *format = found == NULL ? "there is no table %u" : "table %u: out is NULL";
    NBI_STORE_FAIL(self, table.value, NB_ITEM_STORE_ARGUMENT, NB_ERR_MISUSE, function, format, table.value);
    return NULL;
}

static const nbi_table *column_or_report(const nb_store *store, nb_table table, uint32_t column, const void *out,
                                         const char *function) {
    const nbi_table *found = table_or_report(store, table, out, function);
    if (found == NULL || column < found->head->column_count) return found;
    NBI_STORE_FAIL(nbi_store_const_of(store), nbi_column_object(table, column), NB_ITEM_STORE_ARGUMENT, NB_ERR_MISUSE,
                   function, "table '%s' has no column %u", found->name, column);
    return NULL;
}

nb_table nb_store_table_find(const nb_store *store, const char *name) {
    if (store == NULL || name == NULL) {
        NBI_FAIL_NULL("store or name");
        return (nb_table){0};
    }
    const nbi_store *self = nbi_store_const_of(store);
    for (uint32_t i = 0; i < store->table_count; ++i) {
        if (strcmp(self->tables[i].name, name) == 0) return (nb_table){i + 1};
    }
    return (nb_table){0};
}

uint32_t nb_store_table_count(const nb_store *store) {
    if (store != NULL) return store->table_count;
    NBI_FAIL_NULL("store");
    return 0;
}

nb_result nb_store_table_info(const nb_store *store, nb_table table, nb_table_info *out) {
    const nbi_table *found = table_or_report(store, table, out, __func__);
    if (found == NULL) return NB_ERR_MISUSE;
    *out = (nb_table_info){.name = found->name,
                           .row_count = found->head->row_count,
                           .row_count_max = found->row_count_max,
                           .column_count = found->head->column_count,
                           .is_local = found->is_local,
                           .is_singleton = found->is_singleton};
    return NB_OK;
}

nb_result nb_store_column_info(const nb_store *store, nb_table table, uint32_t column, nb_column_info *out) {
    const nbi_table *found = column_or_report(store, table, column, out, __func__);
    if (found == NULL) return NB_ERR_MISUSE;
    *out = (nb_column_info){.name = found->columns[column].name,
                            .size_bytes = found->heads[column].size_bytes,
                            .flags = found->heads[column].flags};
    return NB_OK;
}

uint64_t nb_store_layout_hash(const nb_store *store) {
    if (store != NULL) return nbi_store_const_of(store)->layout_hash;
    NBI_FAIL_NULL("store");
    return 0;
}

// --- views ---

NB_STATIC_ASSERT(sizeof(nb_atomic_u64) == sizeof(uint64_t), "an array of versions can be read as plain numbers");

static nb_column_view view_of(const nbi_table *table, const nb_store_column *column, uint32_t flags) {
    return (nb_column_view){.base = column->rows,
                            .stride_bytes = column->size_bytes,
                            .row_count = table->head->row_count,
                            .row_count_max = table->row_count_max,
                            .block_rows = NB_STORE_BLOCK_ROWS,
                            .flags = flags,
                            .block_versions = &column->block_versions->value};
}

static nb_result fail_not_interpolated(const nb_store *store, const nbi_table *table, const char *function) {
    const nbi_store *self = nbi_store_const_of(store);
    uint64_t object = (uint64_t)(table - self->tables) + 1;
    return NBI_STORE_FAIL(self, object, NB_ITEM_STORE_ARGUMENT, NB_ERR_MISUSE, function,
                          "not interpolated in table '%s'", table->name);
}

nb_result nb_store_column_view(const nb_store *store, nb_table table, uint32_t column, nb_column_view *out) {
    const nbi_table *found = column_or_report(store, table, column, out, __func__);
    if (found == NULL) return NB_ERR_MISUSE;
    *out = view_of(found, &found->heads[column], found->heads[column].flags);
    return NB_OK;
}

nb_result nb_store_previous_view(const nb_store *store, nb_table table, uint32_t column, nb_column_view *out) {
    const nbi_table *found = column_or_report(store, table, column, out, __func__);
    if (found == NULL) return NB_ERR_MISUSE;
    const nb_store_column *previous = &found->columns[column].previous;
    if (previous->rows == NULL) return fail_not_interpolated(store, found, __func__);
    *out = view_of(found, previous, found->heads[column].flags);
    return NB_OK;
}

nb_result nb_store_entity_view(const nb_store *store, nb_table table, nb_column_view *out) {
    const nbi_table *found = table_or_report(store, table, out, __func__);
    if (found == NULL) return NB_ERR_MISUSE;
    *out = view_of(found, &found->entities, found->is_local ? NB_COLUMN_LOCAL : NB_COLUMN_SIMULATED);
    return NB_OK;
}

nb_result nb_store_teleport_view(const nb_store *store, nb_table table, nb_column_view *out) {
    const nbi_table *found = table_or_report(store, table, out, __func__);
    if (found == NULL) return NB_ERR_MISUSE;
    if (found->marks.rows == NULL) return fail_not_interpolated(store, found, __func__);
    *out = view_of(found, &found->marks, found->is_local ? NB_COLUMN_LOCAL : NB_COLUMN_SIMULATED);
    return NB_OK;
}

const void *nb_store_rows_previous(const nb_store *store, nb_table table, uint32_t column, size_t size_bytes) {
    if (nbi_store_column_at(store, table, column, size_bytes) == NULL) {
        return nb_store_refuse(store, table, column, size_bytes, 0, __func__);
    }
    const nbi_table *found = nbi_table_of(nbi_store_const_of(store), table);
    const unsigned char *rows = found->columns[column].previous.rows;
    if (rows == NULL) fail_not_interpolated(store, found, __func__);
    return rows;
}

void *nb_store_refuse(const nb_store *store, nb_table table, uint32_t column, size_t size_bytes, uint32_t row,
                      const char *function) {
    if (function == NULL) function = __func__;
    const nbi_table *found = column_or_report(store, table, column, function, function);
    if (found == NULL) return NULL;
    if (found->heads[column].size_bytes == size_bytes && row < found->head->row_count) {
        // All is as it should be but the moment: a write. So the caller's store is not const.
        nbi_store *self = nbi_store_of((nb_store *)(uintptr_t)store);
        nbi_store_deny(self, &self->tables[table.value - 1], function);
        return NULL;
    }
    NBI_STORE_FAIL(nbi_store_const_of(store), nbi_column_object(table, column) ^ (uint64_t)size_bytes << 40,
                   NB_ITEM_STORE_ARGUMENT, NB_ERR_MISUSE, function,
                   "'%s.%s' has %u rows of %u bytes: row %u of %zu bytes was asked for", found->name,
                   found->columns[column].name, found->head->row_count, found->heads[column].size_bytes, row,
                   size_bytes);
    return NULL;
}
