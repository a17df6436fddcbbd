// SPDX-License-Identifier: MIT
// What a module has in flight: what may still call its code when the engine is between frames.

#include "../async/async.h"
#include "../service/service.h"
#include "engine.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "../../tasks/host.h"

typedef struct work {
    bool has_job; // of a parallel or record handler
    uint32_t task_count;
    nb_label task_label; // of one
    uint32_t counts[NBI_OWNED_COUNT];
    bool is_moving; // work began while this was counted
} work;

static uint64_t births(const nb_engine *engine, const nbi_owner *owner) {
    return nbi_owner_births(owner) + nbi_tasks_births(engine->scheduler, owner);
}

// Between two looks at the births: see owner.h.
static work look(const nb_engine *engine, const nbi_module *module) {
    uint64_t before = births(engine, module->owner);
    work found = {.has_job = !nbi_jobs_are_idle(module)};
    for (uint32_t i = 0; i < NBI_OWNED_COUNT; ++i) found.counts[i] = nbi_owner_count(module->owner, (nbi_owned)i);
    found.task_count = nbi_tasks_owned(engine->scheduler, module->owner, &found.task_label);
    found.is_moving = births(engine, module->owner) != before;
    return found;
}

static bool is_empty(const work *found) {
    bool is_anything = found->has_job || found->task_count != 0 || found->is_moving;
    for (uint32_t i = 0; i < NBI_OWNED_COUNT; ++i) is_anything |= found->counts[i] != 0;
    return !is_anything;
}

// --- what to say ---

typedef struct text {
    char *bytes;
    size_t size_bytes, used;
} text;

NB_PRINTF(2, 3)
static void add(text *to, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const char *comma = to->used != 0 ? ", " : "";
    int length = snprintf(to->bytes + to->used, to->size_bytes - to->used, "%s", comma);
    if (length > 0) to->used = (size_t)nbi_min_u64(to->used + (uint64_t)length, to->size_bytes - 1);
    length = vsnprintf(to->bytes + to->used, to->size_bytes - to->used, format, arguments);
    if (length > 0) to->used = (size_t)nbi_min_u64(to->used + (uint64_t)length, to->size_bytes - 1);
    va_end(arguments);
}

static const char *plural(uint32_t count) { return count == 1 ? "" : "s"; }

static void describe(const nb_engine *engine, const nbi_module *module, const work *found, text *to) {
    char number[NBI_LABEL_NUMBER_SIZE];
    uint32_t async_count = found->counts[NBI_OWNED_ASYNC_JOB], service_count = found->counts[NBI_OWNED_SERVICE];
    uint32_t callback_count = found->counts[NBI_OWNED_TOKEN_CALLBACK];
    nb_label label = {0};
    if (found->has_job) add(to, "jobs of its handlers");
    if (found->task_count != 0) {
        add(to, "%u task%s (\"%s\")", (unsigned)found->task_count, plural(found->task_count),
            nbi_label_text(engine->labels, found->task_label, number));
    }
    if (async_count != 0) {
        nbi_async_owned(engine->async, module->owner, &label);
        add(to, "%u async job%s (\"%s\")", (unsigned)async_count, plural(async_count),
            nbi_label_text(engine->labels, label, number));
    }
    if (service_count != 0) {
        const char *name = nbi_services_owned(engine->services, module->owner);
        add(to, "%u service%s (\"%s\")", (unsigned)service_count, plural(service_count), name != NULL ? name : "?");
    }
    if (callback_count != 0) add(to, "%u token callback%s", (unsigned)callback_count, plural(callback_count));
    if (to->used == 0) add(to, "work that began just now");
}

bool nbi_module_is_idle(const nb_engine *engine, const nbi_module *module, char *what, size_t size_bytes) {
    text to = {what, size_bytes, 0};
    work found = look(engine, module);
    if (is_empty(&found)) return true;
    describe(engine, module, &found, &to);
    return false;
}
