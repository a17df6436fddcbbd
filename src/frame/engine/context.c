// SPDX-License-Identifier: MIT
// Who may do what, where. A context says what the handler was told; what counts is the engine's own record of the call,
// so that a context kept for later, or taken to another thread, is worth nothing.

#include "engine.h"

// Bits of nbi_module.violations: layers, then capabilities.
#define CAPABILITY_SHIFT 4

static const char *refusal(nb_result result) {
    if (result == NB_ERR_STALE) return "the handler has returned";
    if (result == NB_ERR_THREAD) return "another thread than the handler's";
    if (result == NB_ERR_MISUSE) return "the engine has no world";
    return "the phase does not allow it, or not without the capability";
}

// The module of a context, or NULL: it is of none, or that one is gone, and another may have its place. Not
// module_limit: a late job may report while the coordinator attaches another module.
static nbi_module *module_of(const nb_context *context) {
    nb_engine *engine = context->engine;
    uint32_t index = (uint32_t)(context->module.value & 0xFFFF);
    bool is_one = context->module.value != 0 && index < engine->desc.module_count_max &&
                  engine->modules[index].number == context->module.value >> 16;
    return is_one ? &engine->modules[index] : NULL;
}

static const char *name_of(const nb_context *context) {
    const nbi_module *module = module_of(context);
    if (module != NULL) return module->name;
    return context->module.value != 0 ? "a module that is gone" : "an async job";
}

nb_result nbi_context_fail(const nb_context *context, const char *function, const char *what) {
    nb_engine *engine = context->engine;
    return nbi_fail_throttled(&engine->hooks, &engine->throttle, context->module.value, NB_ITEM_ENGINE_ARGUMENT,
                              NB_ERR_MISUSE, function, "%s in %s: %s", name_of(context),
                              nb_phase_info_get(context->phase)->name, what);
}

void nbi_context_report(const nb_context *context, const char *function, uint32_t bit, nb_result result) {
    nb_engine *engine = context->engine;
    const char *what = refusal(result);
    nbi_atomic_fetch_add_relaxed_u64(&engine->violation_count, 1);
    nb_violation_policy policy = engine->desc.violation_policy;
    if (policy == NB_VIOLATION_COUNT_ONLY) return;
    const nb_phase_info *info = nb_phase_info_get(context->phase);
    nbi_module *module = module_of(context);
    nb_atomic_u32 *seen = module != NULL ? &module->violations[info->phase] : &engine->violations[info->phase];
    bool is_first = (nbi_atomic_fetch_or_seq_cst_u32(seen, bit) & bit) == 0;
    const char *name = name_of(context);
    if (policy == NB_VIOLATION_TRAP)
        nbi_trap(&engine->hooks, is_first, NB_ITEM_ENGINE_VIOLATION, function, "%s in %s: %s", name, info->name, what);
    else if (is_first)
        nbi_log(&engine->hooks, NB_LOG_ERROR, NB_ITEM_ENGINE_VIOLATION, function, "%s in %s: %s", name, info->name,
                what);
}

// The record of a job's call, if the job is still there: a module that was detached, or replaced, has taken its own
// along.
static const nbi_call *job_call(const nb_context *context) {
    const nb_engine *engine = context->engine;
    uint32_t index = (uint32_t)(context->module.value & 0xFFFF);
    if (index >= engine->desc.module_count_max) return NULL;
    const nbi_module *module = &engine->modules[index];
    const nbi_jobs *all[2] = {&module->parallel, &module->record};
    for (uint32_t i = 0; i < 2; ++i) {
        if (context->job_index >= all[i]->count) continue;
        const nbi_call *call = &all[i]->jobs[context->job_index].call;
        if (call == context->call) return call;
    }
    return NULL;
}

nb_result nbi_context_check_call(const nb_context *context) {
    const nbi_call *call = context->call == &context->engine->call ? context->call : job_call(context);
    if (call == NULL || nbi_atomic_load_relaxed_u64(&call->serial) != context->serial) return NB_ERR_STALE;
    return nbi_atomic_load_relaxed_u64(&call->thread_id) == nbi_thread_id() ? NB_OK : NB_ERR_THREAD;
}

// The bit that a layer, or a capability, has in nbi_module.violations.
static uint32_t violation_bit(uint32_t bit, uint32_t shift) {
    bool is_one = bit != 0 && (bit & (bit - 1)) == 0 && bit < 1u << CAPABILITY_SHIFT;
    return is_one ? bit << shift : NBI_VIOLATION_UNKNOWN;
}

nb_result nb_context_check(const nb_context *context, uint32_t layer) {
    if (context == NULL || context->engine == NULL) return NBI_FAIL_NULL("context");
    nb_result result = nbi_context_check_call(context);
    const nbi_call *call = context->call;
    bool is_allowed = result == NB_OK && nb_phase_may_mutate(call->phase, layer, call->capabilities);
    if (result == NB_OK && !is_allowed) result = NB_ERR_PERMISSION;
    if (result != NB_OK) nbi_context_report(context, __func__, violation_bit(layer, 0), result);
    return result;
}

nb_result nb_context_check_capability(const nb_context *context, uint32_t capability) {
    if (context == NULL || context->engine == NULL) return NBI_FAIL_NULL("context");
    nb_result result = nbi_context_check_call(context);
    const nbi_call *call = context->call;
    bool is_one = capability != 0 && (capability & (capability - 1)) == 0;
    if (result == NB_OK && (!is_one || (call->capabilities & capability) == 0)) result = NB_ERR_PERMISSION;
    if (result != NB_OK) nbi_context_report(context, __func__, violation_bit(capability, CAPABILITY_SHIFT), result);
    return result;
}
