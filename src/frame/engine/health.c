// SPDX-License-Identifier: MIT
// Failures of modules. Which tick handlers are disabled decides about what is simulated: where the engine disables any,
// that is simulated state itself, which is rewound, saved and replayed.

#include "engine.h"

#include <string.h>

#include "nebula/hash.h"

bool nbi_module_is_disabled(const nbi_module *module) {
    return module->health[NBI_HEALTH_TICKS].is_disabled || module->health[NBI_HEALTH_FRAMES].is_disabled;
}

static void note(nb_engine *engine, nbi_module *module, nbi_health_kind kind) {
    nbi_health *health = &module->health[kind];
    health->fail_streak = health->has_failed ? health->fail_streak + 1 : 0;
    health->has_failed = false;
    uint32_t limit = engine->desc.failure_count_max;
    if (limit == 0 || health->is_disabled || health->fail_streak < limit) return;
    engine->stats.disabled_count += nbi_module_is_disabled(module) ? 0 : 1;
    health->is_disabled = true;
    nbi_log(&engine->hooks, NB_LOG_ERROR, NB_ITEM_ENGINE_DISABLED, "nb_engine_frame",
            "module %s failed in %u %s in a row; its %s disabled", module->name, (unsigned)limit,
            kind == NBI_HEALTH_TICKS ? "ticks" : "frames",
            kind == NBI_HEALTH_TICKS ? "tick handler is" : "handlers but the tick's are");
}

void nbi_modules_note(nb_engine *engine, nbi_health_kind kind) {
    for (uint32_t i = 0; i < engine->module_limit; ++i) {
        if (engine->modules[i].number != 0) note(engine, &engine->modules[i], kind);
    }
}

// --- as simulated state ---

// Of one module, in the order of hashes; behind the last one zeros. Only those that have failed: who else is there, and
// in which place, is nothing simulated.
typedef struct health_entry {
    uint64_t name_hash;
    uint32_t fail_streak, is_disabled;
} health_entry;

static uint64_t name_hash_of(const nbi_module *module) { return nb_hash64(module->name, strlen(module->name), 0); }

static void insert(unsigned char *bytes, uint32_t count, health_entry added) {
    unsigned char *slot = bytes + count * sizeof added;
    for (health_entry before; count > 0; --count, slot -= sizeof before) {
        memcpy(&before, slot - sizeof before, sizeof before);
        if (before.name_hash <= added.name_hash) break;
        memcpy(slot, &before, sizeof before);
    }
    memcpy(slot, &added, sizeof added);
}

static size_t save(void *user, void *bytes, size_t capacity_bytes) {
    const nb_engine *engine = user;
    size_t size_bytes = engine->desc.module_count_max * sizeof(health_entry);
    if (capacity_bytes < size_bytes) return size_bytes;
    uint32_t count = 0;
    memset(bytes, 0, size_bytes);
    for (uint32_t i = 0; i < engine->module_limit; ++i) {
        const nbi_module *module = &engine->modules[i];
        const nbi_health *health = &module->health[NBI_HEALTH_TICKS];
        if (module->number == 0 || (health->fail_streak == 0 && !health->is_disabled)) continue;
        insert(bytes, count++, (health_entry){name_hash_of(module), health->fail_streak, health->is_disabled ? 1 : 0});
    }
    return size_bytes;
}

// A module that was not there then begins anew.
static health_entry entry_of(const nb_engine *engine, const nbi_module *module, const unsigned char *bytes) {
    uint64_t name_hash = name_hash_of(module);
    for (uint32_t i = 0; i < engine->desc.module_count_max; ++i) {
        health_entry entry;
        memcpy(&entry, bytes + i * sizeof entry, sizeof entry);
        if (entry.name_hash == name_hash) return entry;
    }
    return (health_entry){0};
}

static nb_result load(void *user, const void *bytes, size_t size_bytes) {
    nb_engine *engine = user;
    if (size_bytes != engine->desc.module_count_max * sizeof(health_entry)) return NB_ERR_RANGE;
    for (uint32_t i = 0; i < engine->module_limit; ++i) {
        nbi_module *module = &engine->modules[i];
        if (module->number == 0) continue;
        health_entry entry = entry_of(engine, module, bytes);
        bool was_disabled = nbi_module_is_disabled(module);
        module->health[NBI_HEALTH_TICKS].fail_streak = entry.fail_streak;
        module->health[NBI_HEALTH_TICKS].is_disabled = entry.is_disabled != 0;
        engine->stats.disabled_count += (uint32_t)nbi_module_is_disabled(module) - (uint32_t)was_disabled;
    }
    return NB_OK;
}

nb_result nbi_health_create(nb_engine *engine) {
    if (engine->desc.failure_count_max == 0) return NB_OK;
    nb_provider_desc desc = {.name = NBI_HEALTH_NAME,
                             .layout_hash = engine->desc.module_count_max,
                             .save = save,
                             .load = load,
                             .user = engine};
    return nb_states_add(engine->states, &desc, NULL);
}
