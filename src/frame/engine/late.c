// SPDX-License-Identifier: MIT
// Outputs of late jobs. A job that returns after its frame has left outputs that no frame waits for: they are dropped,
// or, where the module adopts them, put aside so that the job's place is free for the next frame, and merged in the
// first PostParallel from then on. A job has one set put aside at most. Only the coordinator comes here.

#include "engine.h"

static nb_arena *other_arena(nbi_job *job) { return &job->arenas[job->arena == &job->arenas[0] ? 1 : 0]; }

// What was made before a load or a jump belongs to a game that is no longer played.
static bool is_of_this_run(const nb_engine *engine, const nbi_late *late) {
    return late->run_number == engine->run_number;
}

void nbi_late_return(nb_engine *engine, nbi_job *job) {
    const nb_module_desc *desc = &engine->modules[job->module].desc;
    nbi_late late = {job->outputs, job->result, job->time.index, job->run_number, true};
    job->is_late = false;
    if (job->result == NB_CANCELLED) return; // there is nothing
    bool is_kept = desc->adopts_late && desc->merge != NULL && is_of_this_run(engine, &late);
    // Where the module has failed, the set before it was not merged: the newer one counts.
    if (!is_kept || job->late.is_pending) ++engine->stats.late_drop_count;
    if (!is_kept) return;
    job->late = late;
    job->arena = other_arena(job);
}

// The oldest outputs, of several the one with the lowest index. A module has NB_JOB_COUNT_MAX jobs at most, so looking
// through them for each late one ends soon.
static nbi_job *next_late(const nbi_jobs *all) {
    nbi_job *next = NULL;
    for (uint32_t i = 0; i < all->count; ++i) {
        nbi_job *job = &all->jobs[i];
        if (!job->late.is_pending) continue;
        if (next == NULL || job->late.frame_index < next->late.frame_index) next = job;
    }
    return next;
}

static void adopt(nb_engine *engine, nbi_module *module, nbi_job *job) {
    nbi_late *late = &job->late;
    late->is_pending = false;
    if (!is_of_this_run(engine, late)) {
        ++engine->stats.late_drop_count;
        return;
    }
    size_t used_bytes = nb_arena_bytes_used(other_arena(job));
    if (used_bytes > engine->stats.output_peak_bytes) engine->stats.output_peak_bytes = used_bytes;
    if (late->result < 0) {
        ++engine->stats.late_drop_count;
        nbi_module_failed(engine, module, NB_PHASE_PARALLEL_TASKS, late->result);
        return;
    }
    ++engine->stats.adopted_count;
    uint64_t age = engine->time.index - late->frame_index;
    nb_result result = nbi_job_merge(engine, job, &late->outputs, age, NB_PHASE_POST_PARALLEL, module->desc.merge);
    if (result < 0) nbi_module_failed(engine, module, NB_PHASE_POST_PARALLEL, result);
}

void nbi_late_merge(nb_engine *engine, nbi_module *module) {
    const nbi_jobs *all = &module->parallel;
    const nbi_health *health = &module->health[NBI_HEALTH_FRAMES];
    // All first: one that returns while others are merged waits for the next frame, and the order holds.
    for (uint32_t i = 0; i < all->count; ++i) {
        nbi_job *job = &all->jobs[i];
        if (job->is_late && !job->is_started && nbi_job_is_settled(job)) nbi_late_return(engine, job);
    }
    nbi_job *job = next_late(all);
    for (; job != NULL && !health->has_failed && !health->is_disabled; job = next_late(all)) adopt(engine, module, job);
}
