// SPDX-License-Identifier: MIT
// Structural changes written down by many threads, each in a stage of its own, and applied by one in an order that does
// not depend on threads: handler, job, sequence.

#include "store.h"

#include <stdio.h>
#include <string.h>

#include "../../platform/platform.h"

// Any value that cleared or arbitrary memory is unlikely to have.
#define STAGE_MARK 0x53746167u

typedef struct command {
    uint32_t offset;  // its own: tells a command from arbitrary bytes
    uint32_t next;    // offset of the command behind it
    uint32_t values;  // offset of a spawned row's values; 0 = a despawn or a link
    uint32_t table;   // of a spawn: index; of a link: column + 1; of a despawn: 0
    nb_entity entity; // of a despawn: who; of an applied spawn: who it became, null where the table was full; of a
                      // link: offsets of the spawns, who gets the value and whose entity it is
} command;

// In command.table of a spawn: so many rows as its entity's value says, one behind the other. They have no entities of
// their own to ask for.
#define MANY (UINT32_C(1) << 31)

nb_store_stage_desc nb_store_stage_desc_default(void) { return (nb_store_stage_desc){0}; }

nb_result nb_store_stage_init(nb_store_stage *stage, nb_store *store, const nb_store_stage_desc *desc) {
    if (store == NULL) return NBI_FAIL_NULL("store");
    nbi_store *self = nbi_store_of(store);
    if (stage == NULL || desc == NULL || desc->memory == NULL) {
        return NBI_FAIL(&self->hooks, NB_ITEM_STORE_ARGUMENT, NB_ERR_MISUSE, "stage, desc or memory is NULL");
    }
    uintptr_t address = (uintptr_t)desc->memory;
    size_t skipped = (size_t)(0 - address) & (NB_ALIGNOF(command) - 1);
    if (desc->size_bytes < skipped + sizeof(command) || desc->size_bytes >= UINT32_MAX) {
        return NBI_FAIL(&self->hooks, NB_ITEM_STORE_ARGUMENT, NB_ERR_RANGE, "a stage of %zu bytes", desc->size_bytes);
    }
    size_t size_bytes_max = desc->commit != NULL ? desc->size_bytes_max : desc->size_bytes;
    bool is_page = desc->commit == NULL || address % nbi_page_size() == 0;
    if (!is_page || size_bytes_max < desc->size_bytes || size_bytes_max >= UINT32_MAX) {
        return NBI_FAIL(&self->hooks, NB_ITEM_STORE_ARGUMENT, NB_ERR_RANGE,
                        "a stage that grows to %zu bytes, from %zu at %p: it begins at a page, and cannot shrink",
                        size_bytes_max, desc->size_bytes, desc->memory);
    }
    *stage = (nb_store_stage){.store = store,
                              .memory = (unsigned char *)desc->memory + skipped,
                              .commit = desc->commit,
                              .size_bytes = (uint32_t)(desc->size_bytes - skipped),
                              .size_bytes_max = (uint32_t)(size_bytes_max - skipped),
                              .handler = desc->handler,
                              .job = desc->job,
                              .turn = 1,
                              .mark = STAGE_MARK};
    return NB_OK;
}

static nb_result check_stage(const nb_store_stage *stage, const char *function) {
    if (stage != NULL && stage->mark == STAGE_MARK) return NB_OK;
    return nbi_fail(NULL, stage == NULL ? NB_ITEM_BASE_NULL : NB_ITEM_STORE_ARGUMENT, NB_ERR_MISUSE, function,
                    "the stage is NULL or not initialised");
}

// Longest name of the module and handler that fill a stage.
#define STAGE_NAME_SIZE 112

// One stage of each in an apply.
static uint64_t order_of(const nb_store_stage *stage) { return (uint64_t)stage->handler << 32 | stage->job; }

static void name_stage(const nb_store_stage *stage, char *text, size_t size_bytes) {
    const nbi_store *self = nbi_store_of(stage->store);
    if (self->name_stage != NULL)
        self->name_stage(self->name_user, stage, text, size_bytes);
    else
        snprintf(text, size_bytes, "stage of handler %u, job %u", stage->handler, stage->job);
}

#define STAGE_FAIL(stage, object, item, result, ...) \
    NBI_STORE_FAIL(nbi_store_of((stage)->store), (object), (item), (result), function, __VA_ARGS__)

static nb_result check_open(const nb_store_stage *stage, nb_table table, const char *function) {
    nb_result result = check_stage(stage, function);
    if (result != NB_OK) return result;
    nbi_table *found = nbi_table_of(nbi_store_of(stage->store), table);
    if (found == NULL) {
        return STAGE_FAIL(stage, table.value, NB_ITEM_STORE_ARGUMENT, NB_ERR_MISUSE, "there is no table %u",
                          table.value);
    }
    if (found->is_singleton) {
        return STAGE_FAIL(stage, table.value, NB_ITEM_STORE_ARGUMENT, NB_ERR_MISUSE,
                          "singleton '%s' has one row for ever", found->name);
    }
    if (stage->is_applied) {
        return STAGE_FAIL(stage, order_of(stage), NB_ITEM_STORE_STAGE, NB_ERR_MISUSE,
                          "the stage was applied and not reset");
    }
    return nbi_table_is_writable(nbi_store_of(stage->store), found, function) ? NB_OK : NB_ERR_PERMISSION;
}

// A stage is reset in each tick, so the store remembers its report.
static nb_result report_full(nb_store_stage *stage, const char *function) {
    nbi_store *self = nbi_store_of(stage->store);
    char name[STAGE_NAME_SIZE];
    if (stage->full_count++ != 0) return NB_FULL;
    name_stage(stage, name, sizeof name);
    nbi_log_throttled(&self->hooks, &self->throttle, order_of(stage), NB_LOG_WARNING, NB_ITEM_STORE_STAGE, function,
                      "%s: staging buffer full after %u commands (%u bytes); raise %s; further refusals are only "
                      "counted",
                      name, stage->command_count, stage->size_bytes_max,
                      self->name_stage != NULL ? "nb_engine_desc.stage_bytes_max"
                      : stage->commit != NULL  ? "nb_store_stage_desc.size_bytes_max"
                                               : "nb_store_stage_desc.size_bytes");
    return NB_FULL;
}

static command *command_at(const nb_store_stage *stage, uint32_t offset) {
    return (command *)(void *)(stage->memory + offset);
}

// Twice as much as before, so that a stage that grows to n bytes asks the OS log2(n) times; whole pages, but for the
// last, since the limit is the same whatever the size of a page. False: it is full, or the OS has no memory.
static bool grow(nb_store_stage *stage, uint64_t wanted_bytes) {
    if (wanted_bytes > stage->size_bytes_max || stage->commit == NULL) return false;
    uint64_t page_bytes = nbi_page_size(), from = (stage->size_bytes + page_bytes - 1) / page_bytes * page_bytes;
    uint64_t to = nbi_max_u64(2 * from, (wanted_bytes + page_bytes - 1) / page_bytes * page_bytes);
    to = nbi_min_u64(to, (stage->size_bytes_max + page_bytes - 1) / page_bytes * page_bytes);
    if (to > from && stage->commit(stage->memory + from, (size_t)(to - from)) != NB_OK) return false;
    stage->size_bytes = (uint32_t)nbi_min_u64(to, stage->size_bytes_max);
    return true;
}

// Room for a command and `size_bytes` of values behind it; NULL when the stage is full. Sums stay below 2^53.
static command *push(nb_store_stage *stage, uint64_t size_bytes, uint64_t alignment) {
    uint64_t offset = stage->used_bytes, values = offset + sizeof(command), end = values;
    if (size_bytes != 0) {
        uint64_t address = (uintptr_t)stage->memory + values;
        values += (0 - address) & (alignment - 1);
        end = values + size_bytes;
    }
    end = (end + NB_ALIGNOF(command) - 1) & ~(uint64_t)(NB_ALIGNOF(command) - 1);
    if (end > stage->size_bytes && !grow(stage, end)) return NULL;
    command *added = command_at(stage, (uint32_t)offset);
    *added =
        (command){.offset = (uint32_t)offset, .next = (uint32_t)end, .values = size_bytes != 0 ? (uint32_t)values : 0};
    stage->used_bytes = (uint32_t)end;
    stage->command_count += 1;
    return added;
}

nb_result nb_store_stage_spawn(nb_store_stage *stage, nb_table table, nb_staged *out) {
    nb_result result = check_open(stage, table, __func__);
    if (result != NB_OK) return result;
    const nbi_table *found = nbi_table_of(nbi_store_of(stage->store), table);
    command *added = push(stage, found->staged_size_bytes, found->staged_alignment);
    if (added == NULL) return report_full(stage, __func__);
    added->table = table.value - 1;
    memset(stage->memory + added->values, 0, found->staged_size_bytes);
    if (out != NULL) *out = (nb_staged){(uint64_t)stage->turn << 32 | (added->offset + 1)};
    return NB_OK;
}

// The table whose rows are structs of this size; NULL, reported, where it has none.
static const nbi_table *typed_table(const nb_store_stage *stage, nb_table table, const void *rows, size_t size_bytes,
                                    const char *function) {
    const nbi_table *found = nbi_table_of(nbi_store_of(stage->store), table);
    if (rows != NULL && found->head->row_bytes == size_bytes && size_bytes != 0) return found;
    STAGE_FAIL(stage, table.value, NB_ITEM_STORE_ARGUMENT, NB_ERR_MISUSE,
               "table '%s' takes rows of %u bytes, not %zu at %p", found->name, found->head->row_bytes, size_bytes,
               rows);
    return NULL;
}

nb_result nb_store_stage_spawn_row(nb_store_stage *stage, nb_table table, const void *row, size_t size_bytes,
                                   nb_staged *out) {
    nb_result result = check_open(stage, table, __func__);
    if (result != NB_OK) return result;
    const nbi_table *found = typed_table(stage, table, row, size_bytes, __func__);
    if (found == NULL) return NB_ERR_MISUSE;
    command *added = push(stage, size_bytes, found->staged_alignment);
    if (added == NULL) return report_full(stage, __func__);
    added->table = table.value - 1;
    memcpy(stage->memory + added->values, row, size_bytes);
    if (out != NULL) *out = (nb_staged){(uint64_t)stage->turn << 32 | (added->offset + 1)};
    return NB_OK;
}

nb_result nb_store_stage_spawn_rows(nb_store_stage *stage, nb_table table, const void *rows, size_t size_bytes,
                                    uint32_t count) {
    nb_result result = check_open(stage, table, __func__);
    if (result != NB_OK) return result;
    const nbi_table *found = typed_table(stage, table, rows, size_bytes, __func__);
    if (found == NULL) return NB_ERR_MISUSE;
    if (count == 0) return NB_OK;
    command *added = push(stage, (uint64_t)size_bytes * count, found->staged_alignment);
    if (added == NULL) return report_full(stage, __func__);
    added->table = (table.value - 1) | MANY;
    added->entity.value = count;
    memcpy(stage->memory + added->values, rows, size_bytes * count);
    return NB_OK;
}

nb_result nb_store_stage_despawn(nb_store_stage *stage, nb_entity entity) {
    nb_result result = check_open(stage, nb_entity_table(entity), __func__);
    if (result != NB_OK) return result;
    command *added = push(stage, 0, 1);
    if (added == NULL) return report_full(stage, __func__);
    added->entity = entity;
    return NB_OK;
}

// The spawn that `staged` names in this turn; NULL for any other value.
static command *find_spawn(const nb_store_stage *stage, nb_staged staged) {
    uint64_t offset = (staged.value & UINT32_MAX) - 1;
    if (staged.value >> 32 != stage->turn || offset % NB_ALIGNOF(command) != 0) return NULL;
    if (offset + sizeof(command) > stage->used_bytes) return NULL;
    command *found = command_at(stage, (uint32_t)offset);
    return found->offset == offset && found->values != 0 && (found->table & MANY) == 0 ? found : NULL;
}

static nb_result fail_stale(const nb_store_stage *stage, nb_staged staged, const char *function) {
    return STAGE_FAIL(stage, staged.value, NB_ITEM_STORE_STALE, NB_ERR_STALE, "nothing staged is 0x%llx",
                      nb_llu(staged.value));
}

static void *staged_write(const nb_store_stage *stage, nb_staged staged, uint32_t column, size_t size_bytes,
                          const char *function) {
    if (check_stage(stage, function) != NB_OK) return NULL;
    const nbi_store *self = nbi_store_of(stage->store);
    const command *found = find_spawn(stage, staged);
    if (found == NULL || stage->is_applied) {
        fail_stale(stage, staged, function);
        return NULL;
    }
    const nbi_table *table = &self->tables[found->table];
    if (column >= table->head->column_count || table->heads[column].size_bytes != size_bytes) {
        NBI_STORE_FAIL(self, nbi_column_object((nb_table){found->table + 1}, column) ^ (uint64_t)size_bytes << 40,
                       NB_ITEM_STORE_ARGUMENT, NB_ERR_MISUSE, function, "table '%s' has no column %u of %zu bytes",
                       table->name, column, size_bytes);
        return NULL;
    }
    return stage->memory + found->values + table->columns[column].staged_offset;
}

void *nb_store_stage_write(nb_store_stage *stage, nb_staged staged, uint32_t column, size_t size_bytes) {
    return staged_write(stage, staged, column, size_bytes, __func__);
}

// Why staged_write had nothing to write to.
static nb_result link_problem(const nb_store_stage *stage, nb_staged staged) {
    bool is_stage = stage != NULL && stage->mark == STAGE_MARK;
    return is_stage && !stage->is_applied && find_spawn(stage, staged) == NULL ? NB_ERR_STALE : NB_ERR_MISUSE;
}

nb_result nb_store_stage_link(nb_store_stage *stage, nb_staged staged, uint32_t column, nb_staged target) {
    if (staged_write(stage, staged, column, sizeof(nb_entity), __func__) == NULL) return link_problem(stage, staged);
    if (find_spawn(stage, target) == NULL) return fail_stale(stage, target, __func__);
    command *added = push(stage, 0, 1);
    if (added == NULL) return report_full(stage, __func__);
    added->table = column + 1;
    added->entity.value = ((staged.value & UINT32_MAX) - 1) << 32 | ((target.value & UINT32_MAX) - 1);
    return NB_OK;
}

nb_result nb_store_stage_entity(const nb_store_stage *stage, nb_staged staged, nb_entity *out) {
    nb_result result = check_stage(stage, __func__);
    if (result != NB_OK) return result;
    if (out == NULL) {
        return NBI_FAIL(&nbi_store_of(stage->store)->hooks, NB_ITEM_STORE_ARGUMENT, NB_ERR_MISUSE, "out is NULL");
    }
    const command *found = find_spawn(stage, staged);
    if (found == NULL) return fail_stale(stage, staged, __func__);
    if (!stage->is_applied) return NB_EMPTY;
    if (found->entity.value == 0) return NB_FULL;
    *out = found->entity;
    return NB_OK;
}

nb_result nb_store_stage_reset(nb_store_stage *stage) {
    nb_result result = check_stage(stage, __func__);
    if (result != NB_OK) return result;
    stage->used_bytes = 0;
    stage->command_count = stage->full_count = 0;
    stage->is_applied = false;
    stage->turn += 1;
    return NB_OK;
}

// --- applying ---

// Lets the value at `root` sink in a heap with the largest on top.
static void sift_down(nb_store_stage **stages, size_t root, size_t count) {
    for (size_t child = 2 * root + 1; child < count; child = 2 * root + 1) {
        if (child + 1 < count && order_of(stages[child]) < order_of(stages[child + 1])) child += 1;
        if (order_of(stages[root]) >= order_of(stages[child])) return;
        nb_store_stage *moved = stages[root];
        stages[root] = stages[child];
        stages[child] = moved;
        root = child;
    }
}

// A heap sort: the C library's qsort may allocate.
static void sort_stages(nb_store_stage **stages, size_t count) {
    for (size_t i = count / 2; i > 0; --i) sift_down(stages, i - 1, count);
    for (size_t end = count; end > 1; --end) {
        nb_store_stage *largest = stages[0];
        stages[0] = stages[end - 1];
        stages[end - 1] = largest;
        sift_down(stages, 0, end - 1);
    }
}

static nb_result check_apply(const nbi_store *self, nb_store_stage **stages, size_t count) {
    if (stages == NULL && count != 0) {
        return nbi_fail(&self->hooks, NB_ITEM_STORE_ARGUMENT, NB_ERR_MISUSE, "nb_store_apply", "stages is NULL");
    }
    for (size_t i = 0; i < count; ++i) {
        const nb_store_stage *stage = stages[i];
        bool is_fine = stage != NULL && stage->mark == STAGE_MARK && stage->store == &self->visible;
        if (is_fine && !stage->is_applied) continue;
        return nbi_fail(&self->hooks, NB_ITEM_STORE_STAGE, NB_ERR_MISUSE, "nb_store_apply", "stage %zu: %s", i,
                        is_fine ? "applied and not reset" : "NULL, not initialised or of another store");
    }
    sort_stages(stages, count);
    for (size_t i = 1; i < count; ++i) {
        if (order_of(stages[i - 1]) != order_of(stages[i])) continue;
        return nbi_fail(&self->hooks, NB_ITEM_STORE_STAGE, NB_ERR_MISUSE, "nb_store_apply",
                        "two stages are of handler %u, job %u", stages[i]->handler, stages[i]->job);
    }
    return NB_OK;
}

static void apply_despawn(nbi_store *self, nb_entity entity) {
    uint32_t row = 0;
    nbi_table *table = nbi_store_lookup(self, entity, &row);
    if (self->skips_local && table != NULL && table->is_local) return;
    if (table == NULL)
        self->stale_count += 1;
    else if (nbi_table_is_writable(self, table, "nb_store_apply"))
        nbi_store_row_remove(self, table, row);
}

// Both were spawned before in this stage, unless their tables were full or are not written now.
static void apply_link(nbi_store *self, const nb_store_stage *stage, const command *link) {
    nb_entity entity = command_at(stage, (uint32_t)(link->entity.value >> 32))->entity;
    nb_entity target = command_at(stage, (uint32_t)link->entity.value)->entity;
    uint32_t row = 0, column = link->table - 1;
    const nbi_table *table = target.value != 0 ? nbi_store_lookup(self, entity, &row) : NULL;
    if (table == NULL) return;
    // Both were spawned in this tick, so that what they were before is what they are.
    memcpy(nbi_row_at(&table->heads[column], row), &target, sizeof target);
    if (table->columns[column].previous.rows != NULL)
        memcpy(nbi_row_at(&table->columns[column].previous, row), &target, sizeof target);
}

static nb_result apply_spawn(nbi_store *self, const nb_store_stage *stage, command *spawn) {
    nbi_table *table = &self->tables[spawn->table & ~MANY];
    const unsigned char *values = stage->memory + spawn->values;
    if (self->skips_local && table->is_local) return NB_OK;
    if (!nbi_table_is_writable(self, table, "nb_store_apply")) return NB_OK;
    if ((spawn->table & MANY) == 0) return nbi_store_rows_add(self, table, values, 1, &spawn->entity);
    nb_entity last;
    return nbi_store_rows_add(self, table, values, spawn->entity.value, &last);
}

static nb_result apply_stage(nbi_store *self, nb_store_stage *stage) {
    nb_result result = NB_OK;
    uint32_t offset = 0;
    for (uint32_t i = 0; i < stage->command_count; ++i) {
        command *next = command_at(stage, offset);
        offset = next->next;
        if (next->values == 0 && next->table != 0) {
            apply_link(self, stage, next);
            continue;
        }
        if (next->values == 0) {
            apply_despawn(self, next->entity);
            continue;
        }
        if (apply_spawn(self, stage, next) != NB_OK) result = NB_FULL;
    }
    stage->is_applied = true;
    return result;
}

nb_result nb_store_apply(nb_store *store, nb_store_stage **stages, size_t stage_count) {
    if (store == NULL) return NBI_FAIL_NULL("store");
    nbi_store *self = nbi_store_of(store);
    if (self->is_driven && self->is_in_tick) {
        return NBI_STORE_FAIL(self, 0, NB_ITEM_STORE_TICK, NB_ERR_MISUSE, __func__,
                              "the engine applies what ticks stage; do not apply it yourself");
    }
    return nbi_store_apply(self, stages, stage_count);
}

nb_result nbi_store_apply(nbi_store *self, nb_store_stage **stages, size_t stage_count) {
    nb_result result = check_apply(self, stages, stage_count);
    if (result != NB_OK) return result;
    self->is_started = true;
    self->is_applying = true;
    for (size_t i = 0; i < stage_count; ++i) {
        if (apply_stage(self, stages[i]) != NB_OK) result = NB_FULL;
    }
    self->is_applying = false;
    return result;
}
