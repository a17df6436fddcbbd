// SPDX-License-Identifier: MIT
// Whose code runs on a thread. The places of jobs stay while any of them runs, so nothing here can be gone.

#include "thread_owner.h"

static bool is_on(const nbi_call *call, uint64_t thread_id) {
    return nbi_atomic_load_relaxed_u64(&call->serial) != 0 &&
           nbi_atomic_load_relaxed_u64(&call->thread_id) == thread_id;
}

static const nbi_job *job_on(const nbi_jobs *all, uint64_t thread_id) {
    for (uint32_t i = 0; i < all->count; ++i) {
        if (is_on(&all->jobs[i].call, thread_id)) return &all->jobs[i];
    }
    return NULL;
}

const char *nbi_engine_thread_owner(void *user, uint64_t thread_id, uint32_t *job_index) {
    const nb_engine *engine = user;
    // Jobs first: a handler that waits may be running one.
    for (uint32_t i = 0; i < engine->module_limit; ++i) {
        const nbi_module *module = &engine->modules[i];
        const nbi_job *job = job_on(&module->parallel, thread_id);
        if (job == NULL) job = job_on(&module->record, thread_id);
        if (job == NULL) continue;
        *job_index = job->index;
        return module->name;
    }
    if (!is_on(&engine->call, thread_id)) return NULL;
    uint32_t index = engine->call.module;
    return index < engine->desc.module_count_max ? engine->modules[index].name : "the engine"; // of no module
}
