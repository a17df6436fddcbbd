// SPDX-License-Identifier: MIT
// The line that names an illegal write. What runs after the fault reads memory and makes one write to the standard
// error: no lock, no heap, no library of formats, because the thread may have been inside any of them.

#include "nebula/guard.h"

#include <string.h>

#include "../../base/base.h"
#include "../../platform/platform.h"
#include "../snapshot/snapshot.h"
#include "store.h"

NB_STATIC_ASSERT(NB_GUARD_COUNT_MAX == NBI_FAULT_WATCH_COUNT_MAX, "each guard is one watch");

struct nb_guard {
    nb_guard_desc desc;
    nbi_fault_watch watch;
};

// --- a line ---

// Three names of at most 63 bytes, numbers and words; a longer one of `who` is cut.
#define LINE_SIZE 512

typedef struct line {
    char text[LINE_SIZE];
    size_t length;
} line;

static void add_text(line *self, const char *text) {
    // The last byte is kept for the end of the line.
    while (*text != 0 && self->length < LINE_SIZE - 1) self->text[self->length++] = *text++;
}

static void add_number(line *self, uint64_t number, uint32_t base) {
    char digits[20 + 1]; // of 2^64 in base ten
    size_t at = sizeof digits - 1;
    digits[at] = 0;
    do {
        digits[--at] = "0123456789abcdef"[number % base];
        number /= base;
    } while (number != 0);
    add_text(self, digits + at);
}

// --- who and what ---

static void add_owner(line *self, const nb_guard_desc *desc) {
    uint32_t job_index = NB_GUARD_NO_JOB;
    uint64_t thread_id = nbi_thread_id();
    const char *name = desc->who != NULL ? desc->who(desc->user, thread_id, &job_index) : NULL;
    if (name != NULL) {
        add_text(self, name);
    } else {
        add_text(self, "thread 0x");
        add_number(self, thread_id, 16);
    }
    if (name == NULL || job_index == NB_GUARD_NO_JOB) return;
    add_text(self, ", job ");
    add_number(self, job_index, 10);
}

static void add_world_place(line *self, const nb_store_place *place) {
    add_text(self, place->table_name);
    add_text(self, ".");
    add_text(self, place->column_name);
    if (place->part == NB_STORE_PART_PREVIOUS) add_text(self, " (previous)");
    add_text(self, "[");
    add_number(self, place->row, 10);
    add_text(self, "], byte ");
    add_number(self, place->offset_bytes, 10);
}

static void add_snapshot_place(line *self, const nb_snapshot_place *place) {
    add_text(self, "snapshot ");
    add_number(self, place->version, 10);
    add_text(self, " of ");
    add_text(self, place->name);
    add_text(self, ", byte ");
    add_number(self, place->offset_bytes, 10);
}

static bool report(void *user, const void *address) {
    const nb_guard_desc *desc = &((const nb_guard *)user)->desc;
    nb_store_place in_world;
    nb_snapshot_place in_snapshot;
    bool is_world = desc->store != NULL && nb_store_locate(desc->store, address, &in_world) == NB_OK;
    bool is_snapshot =
        !is_world && desc->snapshots != NULL && nb_snapshots_locate(desc->snapshots, address, &in_snapshot) == NB_OK;
    if (!is_world && !is_snapshot) return false;
    line out;
    out.length = 0;
    add_text(&out, "nebula: illegal write by ");
    add_owner(&out, desc);
    add_text(&out, " to ");
    if (is_world)
        add_world_place(&out, &in_world);
    else
        add_snapshot_place(&out, &in_snapshot);
    out.text[out.length++] = '\n';
    nbi_stderr_write(out.text, out.length);
    return true;
}

// --- life ---

nb_guard_desc nb_guard_desc_default(void) { return (nb_guard_desc){.hooks = nb_hooks_default()}; }

static nb_result check_desc(const nb_guard_desc *desc, const nb_hooks *hooks) {
    const char *problem = NULL;
    if (desc->store == NULL && desc->snapshots == NULL) {
        return nbi_fail(hooks, NB_ITEM_GUARD_ARGUMENT, NB_ERR_MISUSE, "nb_guard_create", "nothing to guard is given");
    }
    if (!nbi_platform_has(NBI_ABILITY_FAULT_WATCH)) problem = "faults cannot be watched here";
    if (desc->store != NULL && !nbi_store_const_of(desc->store)->is_protectable) {
        problem = "the store was made without is_protectable";
    }
    if (desc->snapshots != NULL && !desc->snapshots->desc.is_protected) {
        problem = "the snapshots were made without is_protected";
    }
    if (problem == NULL) return NB_OK;
    return nbi_fail(hooks, NB_ITEM_GUARD_ARGUMENT, NB_ERR_UNSUPPORTED, "nb_guard_create", "%s", problem);
}

nb_result nb_guard_create(const nb_guard_desc *desc, nb_guard **out) {
    if (desc == NULL || out == NULL) return NBI_FAIL_NULL("desc or out");
    nb_hooks hooks = nbi_hooks_resolve(&desc->hooks);
    nb_result result = check_desc(desc, &hooks);
    if (result != NB_OK) return result;
    nb_guard *guard = nbi_alloc(&hooks, sizeof *guard, NB_ALIGNOF(nb_guard), __func__);
    if (guard == NULL) return NB_ERR_MEMORY;
    guard->desc = *desc;
    guard->desc.hooks = hooks;
    guard->watch = (nbi_fault_watch){.report = report, .user = guard};
    result = nbi_fault_watch_add(&guard->watch);
    if (result == NB_OK) {
        *out = guard;
        return NB_OK;
    }
    nbi_log(&hooks, NB_LOG_ERROR, NB_ITEM_GUARD_FULL, __func__, "no fault can be watched: %s", nb_result_name(result));
    nbi_free(&hooks, guard, sizeof *guard);
    return result;
}

void nb_guard_destroy(nb_guard *guard) {
    if (guard == NULL) return;
    nb_hooks hooks = guard->desc.hooks;
    nbi_fault_watch_remove(&guard->watch);
    nbi_free(&hooks, guard, sizeof *guard);
}
