// SPDX-License-Identifier: MIT
// Modules: attached, put in order, detached.

#include "engine.h"

#include <stdio.h>
#include <string.h>

#include "../../tasks/host.h"

// In nb_module_id: [ number 48 | index 16 ].
#define INDEX_BITS 16
#define INDEX_MASK 0xFFFFu

static nb_module_id handle_of(const nb_engine *engine, const nbi_module *module) {
    return (nb_module_id){module->number << INDEX_BITS | (uint64_t)(module - engine->modules)};
}

// Also one that is leaving.
static nbi_module *find_any(const nb_engine *engine, nb_module_id handle) {
    uint32_t index = (uint32_t)(handle.value & INDEX_MASK);
    if (handle.value == 0 || index >= engine->module_limit) return NULL;
    nbi_module *module = &engine->modules[index];
    return module->number != 0 && module->number == handle.value >> INDEX_BITS ? module : NULL;
}

static nbi_module *find(const nb_engine *engine, nb_module_id handle) {
    nbi_module *module = find_any(engine, handle);
    return module != NULL && !module->is_leaving ? module : NULL;
}

static nbi_module *find_name(const nb_engine *engine, const char *name) {
    for (uint32_t i = 0; i < engine->module_limit; ++i) {
        nbi_module *module = &engine->modules[i];
        if (module->number != 0 && !module->is_leaving && strcmp(module->name, name) == 0) return module;
    }
    return NULL;
}

// --- order ---

static bool names_have(const char *const *names, uint32_t count, const char *name) {
    for (uint32_t i = 0; i < count; ++i) {
        if (strcmp(names[i], name) == 0) return true;
    }
    return false;
}

// Whether `first` has to run before `second`.
static bool is_before(const nbi_module *first, const nbi_module *second) {
    return names_have(second->desc.after, second->desc.after_count, first->name) ||
           names_have(first->desc.before, first->desc.before_count, second->name);
}

static bool takes_part(const nbi_module *module) { return module->number != 0 && !module->is_leaving; }

// Of two that may both be next.
static bool is_better(const nbi_module *a, const nbi_module *b) {
    if (a->desc.priority != b->desc.priority) return a->desc.priority > b->desc.priority;
    return a->number < b->number;
}

// The next to be ordered, or NULL: all are, or the rest is a cycle.
static nbi_module *next_to_order(const nb_engine *engine) {
    nbi_module *best = NULL;
    for (uint32_t i = 0; i < engine->module_limit; ++i) {
        nbi_module *module = &engine->modules[i];
        if (!takes_part(module) || module->is_ordered || module->pending_count != 0) continue;
        if (best == NULL || is_better(module, best)) best = module;
    }
    return best;
}

// Counts what has to be ordered before each module.
static void count_pending(const nb_engine *engine) {
    for (uint32_t i = 0; i < engine->module_limit; ++i) {
        nbi_module *module = &engine->modules[i];
        module->is_ordered = false;
        module->pending_count = 0;
        for (uint32_t j = 0; takes_part(module) && j < engine->module_limit; ++j) {
            const nbi_module *other = &engine->modules[j];
            if (takes_part(other) && is_before(other, module)) ++module->pending_count;
        }
    }
}

// Puts all modules in order: of those whose predecessors are ordered, the one with the highest priority, then the one
// that was attached first. False: there is a cycle.
static bool sort(nb_engine *engine) {
    engine->order_count = 0;
    uint32_t expected = 0;
    for (uint32_t i = 0; i < engine->module_limit; ++i) expected += takes_part(&engine->modules[i]) ? 1 : 0;
    count_pending(engine);
    for (nbi_module *module = next_to_order(engine); module != NULL; module = next_to_order(engine)) {
        module->is_ordered = true;
        engine->order[engine->order_count++] = (uint32_t)(module - engine->modules);
        for (uint32_t i = 0; i < engine->module_limit; ++i) {
            nbi_module *other = &engine->modules[i];
            if (takes_part(other) && is_before(module, other)) --other->pending_count;
        }
    }
    return engine->order_count == expected;
}

// One that is not ordered has a predecessor that is not ordered: following them leads into the cycle.
static const nbi_module *unordered_before(const nb_engine *engine, const nbi_module *module) {
    for (uint32_t i = 0; i < engine->module_limit; ++i) {
        const nbi_module *other = &engine->modules[i];
        if (takes_part(other) && !other->is_ordered && is_before(other, module)) return other;
    }
    return module;
}

static nb_result report_cycle(const nb_engine *engine, const nbi_module *module) {
    for (uint32_t i = 0; i < engine->module_count; ++i) module = unordered_before(engine, module);
    // Told from the one that was attached first.
    const nbi_module *first = module;
    for (const nbi_module *at = unordered_before(engine, module); at != module; at = unordered_before(engine, at)) {
        if (at->number < first->number) first = at;
    }
    char text[512] = "";
    size_t used = 0;
    module = first;
    do {
        int length = snprintf(text + used, sizeof text - used, "%s after ", module->name);
        if (length < 0 || used + (size_t)length >= sizeof text) break;
        used += (size_t)length;
        module = unordered_before(engine, module);
    } while (module != first);
    return nbi_fail(&engine->hooks, NB_ITEM_ENGINE_ORDER, NB_ERR_MISUSE, "nb_engine_module_attach",
                    "the order is a cycle: %s%s", text, first->name);
}

static bool has_work(const nbi_module *module, nb_phase phase) {
    const nb_module_desc *desc = &module->desc;
    if (desc->handlers[phase] != NULL) return true;
    switch (phase) {
    case NB_PHASE_FIXED_SIM: return desc->tick != NULL;
    case NB_PHASE_GAMEPLAY: return desc->frame != NULL;
    case NB_PHASE_PARALLEL_TASKS: return desc->parallel != NULL;
    case NB_PHASE_COMMAND_RECORD: return desc->record != NULL;
    default: return false;
    }
}

static void list_by_phase(nb_engine *engine) {
    for (uint32_t phase = 0; phase < NB_PHASE_COUNT; ++phase) {
        nbi_order *list = &engine->orders[phase];
        list->count = 0;
        for (uint32_t i = 0; i < engine->order_count; ++i) {
            if (has_work(&engine->modules[engine->order[i]], (nb_phase)phase)) {
                list->modules[list->count++] = engine->order[i];
            }
        }
    }
}

// --- coming and going ---

static nb_result refuse(const nb_engine *engine, const char *function, const char *name, nb_result result,
                        const char *what) {
    return nbi_fail(&engine->hooks, NB_ITEM_ENGINE_ARGUMENT, result, function, "module \"%s\": %s",
                    name != NULL ? name : "", what);
}

static bool are_names(const char *const *names, uint32_t count) {
    if (names == NULL) return count == 0;
    for (uint32_t i = 0; i < count; ++i) {
        if (names[i] == NULL) return false;
    }
    return true;
}

static nb_result check_desc(const nb_engine *engine, const nb_module_desc *desc, const char *function) {
    if (desc == NULL || desc->name == NULL || desc->name[0] == '\0')
        return refuse(engine, function, NULL, NB_ERR_MISUSE, "no name");
    if (strlen(desc->name) > NB_MODULE_NAME_SIZE_MAX)
        return refuse(engine, function, desc->name, NB_ERR_RANGE, "the name is too long");
    if (!are_names(desc->after, desc->after_count) || !are_names(desc->before, desc->before_count)) {
        return refuse(engine, function, desc->name, NB_ERR_MISUSE,
                      "after or before has no name where its count says so");
    }
    if (desc->job_count > NB_JOB_COUNT_MAX || desc->record_count > NB_JOB_COUNT_MAX) {
        return refuse(engine, function, desc->name, NB_ERR_RANGE, "more jobs than NB_JOB_COUNT_MAX");
    }
    const nb_handler *handlers = desc->handlers;
    if ((desc->tick != NULL && handlers[NB_PHASE_FIXED_SIM] != NULL) ||
        (desc->frame != NULL && handlers[NB_PHASE_GAMEPLAY] != NULL)) {
        return refuse(engine, function, desc->name, NB_ERR_MISUSE, "two handlers for one phase");
    }
    if (handlers[NB_PHASE_NONE] != NULL || handlers[NB_PHASE_PARALLEL_TASKS] != NULL ||
        handlers[NB_PHASE_COMMAND_RECORD] != NULL || handlers[NB_PHASE_DETACHED_SERVICES] != NULL) {
        return refuse(engine, function, desc->name, NB_ERR_MISUSE,
                      "a handler for a phase that has jobs or services instead");
    }
    if ((desc->capabilities & ~NB_CAPABILITY_ALL) != 0)
        return refuse(engine, function, desc->name, NB_ERR_MISUSE, "an unknown capability");
    return NB_OK;
}

static size_t names_bytes(const char *const *names, uint32_t count) {
    size_t size = count * sizeof(char *);
    for (uint32_t i = 0; i < count; ++i) size += strlen(names[i]) + 1;
    return size;
}

// Copies names into memory that begins with the pointers to them.
static char *copy_names(const char *const **list, uint32_t count, char *at) {
    const char **copies = (const char **)(void *)at;
    char *text = at + count * sizeof(char *);
    for (uint32_t i = 0; i < count; ++i) {
        size_t size = strlen((*list)[i]) + 1;
        memcpy(text, (*list)[i], size);
        copies[i] = text;
        text += size;
    }
    *list = copies;
    size_t used = (size_t)(text - at);
    return at + (used + sizeof(char *) - 1) / sizeof(char *) * sizeof(char *);
}

static void clear(nb_engine *engine, nbi_module *module) {
    nbi_jobs_destroy(engine, module);
    nbi_owner_close(engine->scheduler, module->owner);
    if (module->names != NULL) nbi_free(&engine->hooks, module->names, module->names_bytes);
    memset(module, 0, sizeof *module);
}

static nb_result fill(nb_engine *engine, nbi_module *module, const nb_module_desc *desc, uint64_t number) {
    memset(module, 0, sizeof *module);
    module->desc = *desc;
    module->number = number;
    memcpy(module->name, desc->name, strlen(desc->name) + 1);
    module->desc.name = module->name;
    // Room for both lists, and for rounding up between them.
    module->names_bytes = names_bytes(desc->after, desc->after_count) + names_bytes(desc->before, desc->before_count) +
                          2 * sizeof(char *);
    module->names = nbi_alloc(&engine->hooks, module->names_bytes, sizeof(char *), "nb_engine_module_attach");
    if (module->names == NULL) return NB_ERR_MEMORY;
    char *end = copy_names(&module->desc.after, desc->after_count, module->names);
    copy_names(&module->desc.before, desc->before_count, end);
    // A table that is full costs names in reports, nothing else.
    nb_labels_intern(engine->labels, module->name, &module->label);
    nb_result result = nbi_owner_open(engine->scheduler, engine->owner, &module->owner);
    return result == NB_OK ? nbi_jobs_create(engine, module) : result;
}

static nbi_module *free_slot(nb_engine *engine) {
    for (uint32_t i = 0; i < engine->module_limit; ++i) {
        if (engine->modules[i].number == 0) return &engine->modules[i];
    }
    return engine->module_limit < engine->desc.module_count_max ? &engine->modules[engine->module_limit++] : NULL;
}

// While a module is told, others may be attached and detached; who takes part is settled when it has returned.
static nb_result call_attach(nb_engine *engine, nbi_module *module) {
    if (module->desc.on_attach == NULL) return NB_OK;
    bool was_calling = engine->is_calling;
    engine->is_calling = module->is_inside = true;
    nbi_owner *owner = nbi_owner_enter(module->owner);
    nb_result result = module->desc.on_attach(engine, module->desc.user);
    nbi_owner_leave(owner);
    engine->is_calling = was_calling;
    module->is_inside = false;
    return result < 0 ? result : NB_OK;
}

// owner: of what on_detach submits.
static void call_detach(nb_engine *engine, const nb_module_desc *desc, nbi_owner *owner) {
    if (desc->on_detach == NULL) return;
    bool was_calling = engine->is_calling;
    engine->is_calling = true;
    nbi_owner *before = nbi_owner_enter(owner);
    desc->on_detach(engine, desc->user);
    nbi_owner_leave(before);
    engine->is_calling = was_calling;
}

static bool may_settle(const nb_engine *engine) { return !engine->is_in_frame && !nbi_engine_is_calling(engine); }

// Puts a module into a free slot. Where it fails the slot is free again.
static nb_result attach(nb_engine *engine, nbi_module *module, const nb_module_desc *desc, uint64_t number) {
    char what[NBI_WORK_TEXT_SIZE];
    nb_result result = fill(engine, module, desc, number);
    ++engine->module_count;
    // The lists by phase, which a running frame uses, are made later.
    if (result == NB_OK && !sort(engine)) result = report_cycle(engine, module);
    if (result == NB_OK) result = call_attach(engine, module);
    engine->is_order_old = true;
    if (result == NB_OK) {
        engine->is_tick_order_old |= has_work(module, NB_PHASE_FIXED_SIM);
        return NB_OK;
    }
    if (module->owner != NULL && !nbi_module_is_idle(engine, module, what, sizeof what)) {
        nbi_log(&engine->hooks, NB_LOG_ERROR, NB_ITEM_ENGINE_LEFTOVER, "nb_engine_module_attach",
                "module \"%s\" is refused, and its on_attach has left %s: its code must stay until that has ended",
                module->name, what);
    }
    --engine->module_count;
    clear(engine, module);
    return result;
}

nb_result nb_engine_module_attach(nb_engine *engine, const nb_module_desc *desc, nb_module_id *out) {
    if (engine == NULL) return NBI_FAIL_NULL("engine");
    nb_result result = nbi_check_coordinator(engine, __func__);
    if (result == NB_OK) result = check_desc(engine, desc, __func__);
    if (result != NB_OK) return result;
    if (engine->is_ending) return NB_CLOSED;
    if (find_name(engine, desc->name) != NULL)
        return refuse(engine, __func__, desc->name, NB_ERR_MISUSE, "the name is taken");
    nbi_module *module = free_slot(engine);
    if (module == NULL) return NB_FULL;
    result = attach(engine, module, desc, ++engine->module_number);
    nb_module_id handle = handle_of(engine, module);
    if (may_settle(engine)) nbi_modules_settle(engine);
    if (result == NB_OK && out != NULL) *out = handle;
    return result;
}

// False: something of it still runs.
static bool leave(nb_engine *engine, nbi_module *module) {
    if (!nbi_jobs_are_idle(module)) return false;
    if (nbi_module_is_disabled(module)) --engine->stats.disabled_count;
    call_detach(engine, &module->desc, module->owner);
    clear(engine, module);
    --engine->module_count;
    return true;
}

// Between frames a module leaves in the call that detaches it, so that its owner may free `user` behind the call.
// Inside its own on_attach, and under what nb_engine_destroy waits for, code of the module may be on the stack.
static bool may_leave(const nb_engine *engine, const nbi_module *module) {
    return !engine->is_in_frame && !engine->is_draining && !module->is_inside;
}

nb_result nb_engine_module_detach(nb_engine *engine, nb_module_id handle) {
    if (engine == NULL) return NBI_FAIL_NULL("engine");
    nb_result result = nbi_check_coordinator(engine, __func__);
    if (result != NB_OK) return result;
    nbi_module *module = find_any(engine, handle);
    if (module == NULL) return NBI_FAIL(&engine->hooks, NB_ITEM_ENGINE_STALE, NB_ERR_STALE, "no such module");
    if (module->is_leaving) return NB_ERR_STALE; // no mistake: another of its owners was first
    module->is_leaving = true;
    engine->is_order_old = true;
    engine->is_tick_order_old |= has_work(module, NB_PHASE_FIXED_SIM);
    if (may_leave(engine, module)) leave(engine, module);
    if (may_settle(engine)) nbi_modules_settle(engine);
    return NB_OK;
}

// Says what runs, once for a row of refusals.
static nb_result refuse_busy(const nb_engine *engine, nbi_module *module, const char *what) {
    uint64_t frame = engine->stats.frame_count;
    bool is_first = !module->was_refused || frame > module->refuse_frame + 1;
    module->was_refused = true;
    module->refuse_frame = frame;
    if (is_first) {
        nbi_log(&engine->hooks, NB_LOG_WARNING, NB_ITEM_ENGINE_LEFTOVER, "nb_engine_module_replace",
                "module \"%s\" is not replaced while its work is in flight: %s; run frames and try again", module->name,
                what);
    }
    return NB_BUSY;
}

// The new module is attached in the old one's slot, and only then the old one ends: a failure puts it back.
static nb_result replace(nb_engine *engine, nbi_module *module, const nb_module_desc *desc) {
    nbi_module old = *module;
    --engine->module_count;
    nb_result result = attach(engine, module, desc, old.number);
    if (result != NB_OK) {
        *module = old;
        ++engine->module_count;
        return result;
    }
    engine->is_tick_order_old |= has_work(&old, NB_PHASE_FIXED_SIM);
    if (nbi_module_is_disabled(&old)) --engine->stats.disabled_count;
    call_detach(engine, &old.desc, nbi_owner_closed(engine->scheduler));
    clear(engine, &old);
    return NB_OK;
}

nb_result nb_engine_module_replace(nb_engine *engine, nb_module_id handle, const nb_module_desc *desc) {
    if (engine == NULL) return NBI_FAIL_NULL("engine");
    nb_result result = nbi_check_coordinator(engine, __func__);
    if (result == NB_OK) result = check_desc(engine, desc, __func__);
    if (result != NB_OK) return result;
    nbi_module *module = find(engine, handle);
    if (module == NULL) return NBI_FAIL(&engine->hooks, NB_ITEM_ENGINE_STALE, NB_ERR_STALE, "no such module");
    if (strcmp(module->name, desc->name) != 0)
        return refuse(engine, __func__, desc->name, NB_ERR_MISUSE, "a module keeps its name");
    if (!may_settle(engine)) return NB_BUSY;
    char what[NBI_WORK_TEXT_SIZE];
    if (!nbi_module_is_idle(engine, module, what, sizeof what)) return refuse_busy(engine, module, what);
    result = replace(engine, module, desc);
    nbi_modules_settle(engine);
    return result;
}

// --- between frames ---

// False: none of those that are to leave could.
static bool leave_some(nb_engine *engine) {
    bool has_left = false;
    for (uint32_t i = 0; i < engine->module_limit; ++i) {
        nbi_module *module = &engine->modules[i];
        if (module->number != 0 && module->is_leaving && leave(engine, module)) has_left = true;
    }
    return has_left;
}

void nbi_modules_settle(nb_engine *engine) {
    // A module that leaves may have detached others, also of those that were looked at before.
    while (leave_some(engine)) engine->is_order_old = true;
    if (!engine->is_order_old) return;
    sort(engine);
    list_by_phase(engine);
    ++engine->order_serial;
    engine->is_order_old = false;
    // Those who take part now did not in the ticks before.
    if (engine->is_tick_order_old) nbi_rollback_floor_set(engine);
    engine->is_tick_order_old = false;
}

bool nbi_modules_are_idle(const nb_engine *engine) {
    for (uint32_t i = 0; i < engine->module_limit; ++i) {
        if (engine->modules[i].number != 0 && !nbi_jobs_are_idle(&engine->modules[i])) return false;
    }
    return true;
}

nb_result nbi_modules_end(nb_engine *engine) {
    nb_result result = NB_OK;
    // In the reverse of their order; those that had left before it come last. An on_detach may detach further ones.
    for (uint32_t i = engine->order_count; i > 0; --i) {
        nbi_module *module = &engine->modules[engine->order[i - 1]];
        if (module->number == 0) continue;
        module->is_leaving = true;
        if (!leave(engine, module)) result = NB_BUSY;
    }
    for (uint32_t i = 0; i < engine->module_limit; ++i) {
        nbi_module *module = &engine->modules[i];
        if (module->number != 0 && !leave(engine, module)) result = NB_BUSY;
    }
    engine->is_order_old = true;
    return result;
}

// --- numbers ---

uint32_t nb_engine_order_get(const nb_engine *engine, nb_phase phase, nb_module_id *modules, uint32_t count_max) {
    if (engine == NULL) return NBI_FAIL_NULL("engine") == NB_OK;
    if ((uint32_t)phase >= NB_PHASE_COUNT) return 0;
    const nbi_order *order = &engine->orders[phase];
    for (uint32_t i = 0; modules != NULL && i < order->count && i < count_max; ++i) {
        modules[i] = handle_of(engine, &engine->modules[order->modules[i]]);
    }
    return order->count;
}

const char *nb_engine_module_name(const nb_engine *engine, nb_module_id handle) {
    if (engine == NULL) return NBI_FAIL_NULL("engine") == NB_OK ? "?" : "";
    const nbi_module *module = find(engine, handle);
    return module != NULL ? module->name : "";
}
