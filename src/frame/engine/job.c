// SPDX-License-Identifier: MIT
// Parallel handlers: jobs on all threads, each with outputs of its own, merged by index on the coordinator. A job has
// one place for all frames. One that is late keeps its place, and its outputs, until it returns; meanwhile the frames
// go on without it. What becomes of its outputs then: late.c.

#include "engine.h"

#include <string.h>

#include "../../base/trace.h"
#include "../../tasks/host.h"

// --- outputs ---

void *nb_output_add(const nb_context *context, size_t size_bytes) {
    if (context == NULL || context->engine == NULL || context->outputs == NULL || context->arena == NULL) {
        NBI_FAIL_NULL("the outputs of the context");
        return NULL;
    }
    // Kept from an earlier frame, or by another thread, it would write where a later job does.
    nb_result call = nbi_context_check_call(context);
    if (call != NB_OK) {
        nbi_context_report(context, __func__, NBI_VIOLATION_OUTPUT, call);
        return NULL;
    }
    size_t whole;
    bool is_sane = nbi_size_add(size_bytes, sizeof(nbi_output), &whole);
    nbi_output *block = is_sane ? nb_arena_alloc(context->arena, whole, 16) : NULL;
    if (block == NULL) {
        nbi_atomic_fetch_add_relaxed_u64(&context->engine->output_full_count, 1);
        nbi_job *job = (nbi_job *)(void *)((char *)context->outputs - offsetof(nbi_job, outputs));
        job->result = NB_ERR_MEMORY;
        return NULL;
    }
    *block = (nbi_output){NULL, size_bytes};
    memset(block + 1, 0, size_bytes);
    nb_output_list *outputs = context->outputs;
    if (outputs->last != NULL)
        outputs->last->next = block;
    else
        outputs->first = block;
    outputs->last = block;
    return block + 1;
}

const void *nb_output_list_next(const nb_output_list *outputs, const void *block, size_t *size_bytes) {
    if (outputs == NULL) return NULL;
    const nbi_output *next = block != NULL ? ((const nbi_output *)block - 1)->next : outputs->first;
    if (next == NULL) return NULL;
    if (size_bytes != NULL) *size_bytes = next->size_bytes;
    return next + 1;
}

// --- running ---

static nb_context job_begin(nbi_job *job, uint64_t thread_id, nb_arena *arena) {
    nb_engine *engine = job->engine;
    const nbi_module *module = &engine->modules[job->module];
    nbi_call *call = &job->call;
    call->phase = job->phase;
    call->capabilities = 0; // what a capability allows happens on the coordinator
    call->module = job->module;
    // The high bit tells jobs from handlers of the coordinator.
    uint64_t serial = (uint64_t)1 << 63 | (nbi_atomic_fetch_add_relaxed_u64(&engine->job_serial, 1) + 1);
    nbi_atomic_store_relaxed_u64(&call->thread_id, thread_id);
    nbi_atomic_store_relaxed_u64(&call->serial, serial);
    return (nb_context){.engine = engine,
                        .module = {module->number << 16 | job->module},
                        .phase = job->phase,
                        .frame_index = job->time.index,
                        .frame = job->frame,
                        .time = &job->time,
                        .world = engine->world,
                        .arena = arena,
                        .token = engine->token,
                        .scheduler = engine->scheduler,
                        .fence = engine->fence,
                        .snapshot = job->snapshot,
                        .seed = engine->desc.seed,
                        .quality_level = job->quality_level,
                        .job_index = job->index,
                        .job_count = job->count,
                        .outputs = &job->outputs,
                        .call = call,
                        .serial = serial};
}

static void release_snapshot(nbi_job *job) {
    nb_snapshot_release(job->snapshot);
    job->snapshot = NULL;
}

// The ring for the job's span where its task has none: it records itself, or the coordinator runs it in its place.
static nb_trace_thread *span_begin(const nbi_job *job, bool is_task) {
    const nb_engine *engine = job->engine;
    bool is_recorded = is_task && job->phase == NB_PHASE_PARALLEL_TASKS;
    nb_trace_thread *ring = engine->desc.trace != NULL && !is_recorded ? nbi_trace_find(engine->desc.trace) : NULL;
    nb_trace_begin(ring, engine->modules[job->module].label);
    return ring;
}

static void run_job(nbi_job *job, bool is_task) {
    nb_arena_adopt(job->arena);
    nb_arena_reset(job->arena);
    job->outputs = (nb_output_list){NULL, NULL};
    job->result = NB_OK;
    nb_context context = job_begin(job, nbi_thread_id(), job->arena);
    nb_trace_thread *ring = span_begin(job, is_task);
    job->call.fp_mode = nbi_fp_enter();
    nbi_owner *owner = nbi_owner_enter(job->engine->modules[job->module].owner);
    nb_result result = job->run(&context, job->user);
    nbi_owner_leave(owner);
    nbi_fp_leave(job->call.fp_mode);
    nb_trace_end(ring);
    nbi_atomic_store_relaxed_u64(&job->call.serial, 0);
    release_snapshot(job);
    if (job->result == NB_OK) job->result = result;
    // Publishes outputs and result; read by the acquire load in is_done.
    nbi_atomic_store_release_u32(&job->is_busy, 0);
}

static void run_job_task(nb_task_context *context, void *argument) {
    (void)context;
    run_job(*(nbi_job **)argument, true);
}

static bool is_done(const nbi_job *job) { return nbi_atomic_load_acquire_u32(&job->is_busy) == 0; }

static nbi_jobs *jobs_of(nbi_module *module, nb_phase phase) {
    return phase == NB_PHASE_PARALLEL_TASKS ? &module->parallel : &module->record;
}

static void note_cancelled(nbi_job *job) {
    release_snapshot(job);
    job->outputs = (nb_output_list){NULL, NULL};
    job->result = NB_CANCELLED;
    nbi_atomic_store_relaxed_u32(&job->is_busy, 0);
}

bool nbi_job_is_settled(nbi_job *job) {
    if (is_done(job)) return true;
    // In this order: a task that has ended has run its job before, or was cancelled with its scheduler.
    if (!nb_task_is_complete(job->engine->scheduler, job->task)) return false;
    if (!is_done(job)) note_cancelled(job);
    return true;
}

static void leave_out(nb_engine *engine, nbi_job *job) {
    note_cancelled(job);
    job->is_started = false;
    --engine->stats.job_count;
    ++engine->stats.late_job_count;
}

static void start_job(nb_engine *engine, nbi_job *job, nb_group group) {
    bool is_bound = job->phase == NB_PHASE_PARALLEL_TASKS; // to the frame; others are waited for with their group
    job->is_started = nbi_job_is_settled(job);
    if (!job->is_started) {
        ++engine->stats.late_job_count;
        return;
    }
    if (job->is_late) nbi_late_return(engine, job);
    nb_label label = engine->modules[job->module].label;
    job->is_awaited = !is_bound || !nb_fence_is_quarantined(engine->fence, label);
    job->run_number = engine->run_number;
    job->time = engine->time;
    job->frame = engine->frame;
    job->quality_level = nb_budget_level(&engine->budget);
    // One of its own: it may still read when the frame is over.
    job->snapshot = engine->snapshot != NULL ? nb_snapshot_retain(engine->snapshot) : NULL;
    // Seen by the job's thread with the submit.
    nbi_atomic_store_relaxed_u32(&job->is_busy, 1);
    ++engine->stats.job_count;
    nb_task_desc desc = {.run = run_job_task,
                         .argument = &job,
                         .argument_size_bytes = sizeof job,
                         .label = {label.id | (is_bound ? 0 : NBI_LABEL_RECORDS)},
                         .priority = NB_PRIORITY_CRITICAL,
                         .lifetime = is_bound ? NB_LIFETIME_FRAME : NB_LIFETIME_FLOATING,
                         .fence = is_bound ? engine->fence : NULL,
                         .frame = is_bound ? engine->frame : (nb_fence_frame){0},
                         .group = group};
    // Where there is no room for tasks, or nothing to wait for one with, the coordinator does it; but one in quarantine
    // would keep it for as long as that takes.
    bool can_wait = is_bound ? engine->frame.value != 0 || !job->is_awaited : group.value != 0;
    bool is_queued = can_wait && nb_task_submit(engine->scheduler, &desc, &job->task) == NB_OK;
    if (is_queued) return;
    if (job->is_awaited)
        run_job(job, false);
    else
        leave_out(engine, job);
}

static void start_all(nb_engine *engine, nb_phase phase, nb_group group) {
    const nbi_order *order = &engine->orders[phase];
    for (uint32_t i = 0; i < order->count; ++i) {
        nbi_module *module = &engine->modules[order->modules[i]];
        const nbi_health *health = &module->health[NBI_HEALTH_FRAMES];
        const nbi_jobs *all = jobs_of(module, phase);
        for (uint32_t j = 0; j < all->count; ++j) {
            all->jobs[j].is_started = false;
            if (!health->has_failed && !health->is_disabled) start_job(engine, &all->jobs[j], group);
        }
    }
}

void nbi_jobs_start(nb_engine *engine, nb_phase phase) { start_all(engine, phase, (nb_group){0}); }

// Looks after jobs of the phase that have not returned. On a time-out those that nobody has begun are withdrawn: they
// would keep their places for nothing. One in quarantine runs when a thread comes to it, in whatever frame.
static void settle_jobs(nb_engine *engine, nb_phase phase, bool is_timeout) {
    const nbi_order *order = &engine->orders[phase];
    for (uint32_t i = 0; i < order->count; ++i) {
        const nbi_jobs *all = jobs_of(&engine->modules[order->modules[i]], phase);
        for (uint32_t j = 0; j < all->count; ++j) {
            nbi_job *job = &all->jobs[j];
            if (!job->is_started || nbi_job_is_settled(job)) continue;
            bool is_withdrawn = is_timeout && job->is_awaited && nb_task_cancel(engine->scheduler, job->task) == NB_OK;
            if (is_withdrawn) note_cancelled(job);
            job->is_late = !is_withdrawn;
        }
    }
}

// The time-out in frames is one of the budget's target now: that may change.
static uint64_t await_deadline_ns(const nb_engine *engine) {
    uint64_t frames = engine->desc.fence_timeout_frames, target_ns = engine->budget.desc.target_ns;
    if (frames == 0) return NB_FENCE_DEADLINE_DEFAULT;
    uint64_t now_ns = nbi_clock_now_ns(), left_ns = NB_FENCE_DEADLINE_DEFAULT - 1 - now_ns;
    return now_ns + (frames < left_ns / target_ns ? frames * target_ns : left_ns);
}

void nbi_jobs_await(nb_engine *engine) {
    if (engine->frame.value == 0) {
        settle_jobs(engine, NB_PHASE_PARALLEL_TASKS, false);
        return;
    }
    nb_result result =
        nb_scheduler_frame_wait(engine->scheduler, engine->fence, engine->frame, await_deadline_ns(engine), NULL);
    settle_jobs(engine, NB_PHASE_PARALLEL_TASKS, result != NB_OK);
    if (result != NB_TIMEOUT) return;
    engine->is_degraded = true;
    ++engine->stats.degraded_count;
}

// Of a borrowed scheduler only the results that are known to be this engine's: the other tasks may be those of another
// engine, on another thread.
void nbi_task_results_deliver(nb_engine *engine) {
    nbi_results_tell(engine->scheduler, engine->owns_scheduler ? NULL : engine->fence);
}

// --- merging ---

nb_result nbi_job_merge(nb_engine *engine, const nbi_job *job, const nb_output_list *outputs, uint64_t age,
                        nb_phase phase, nb_merge_handler merge) {
    if (merge == NULL) return NB_OK;
    nb_context context = nbi_call_begin(engine, job->module, phase);
    context.job_index = job->index;
    context.job_count = job->count;
    context.job_age = age;
    nb_result result = merge(&context, job->user, outputs);
    nbi_call_end(engine);
    return result;
}

static void merge_all(nb_engine *engine, nb_phase made_in, nb_phase phase) {
    const nbi_order *order = &engine->orders[made_in];
    for (uint32_t i = 0; i < order->count; ++i) {
        nbi_module *module = &engine->modules[order->modules[i]];
        const nbi_jobs *all = jobs_of(module, made_in);
        bool is_record = made_in == NB_PHASE_COMMAND_RECORD;
        nb_merge_handler merge = is_record ? module->desc.submit : module->desc.merge;
        if (!is_record) nbi_late_merge(engine, module);
        for (uint32_t j = 0; j < all->count && !module->health[NBI_HEALTH_FRAMES].has_failed; ++j) {
            nbi_job *job = &all->jobs[j];
            if (!job->is_started || !is_done(job)) continue; // late: the frame is degraded
            job->is_late = false;
            size_t used_bytes = nb_arena_bytes_used(job->arena);
            if (used_bytes > engine->stats.output_peak_bytes) engine->stats.output_peak_bytes = used_bytes;
            if (job->result < 0) nbi_module_failed(engine, module, made_in, job->result);
            if (job->result < 0 || job->result == NB_CANCELLED) continue;
            nb_result result = nbi_job_merge(engine, job, &job->outputs, 0, phase, merge);
            if (result < 0) nbi_module_failed(engine, module, phase, result);
        }
    }
}

void nbi_jobs_merge(nb_engine *engine) { merge_all(engine, NB_PHASE_PARALLEL_TASKS, NB_PHASE_POST_PARALLEL); }

void nbi_jobs_record(nb_engine *engine) {
    nb_group group = {0};
    if (engine->orders[NB_PHASE_COMMAND_RECORD].count == 0 || engine->is_world_stuck) return;
    // Without a group there is no task to wait for: every job runs here.
    bool has_group = nb_group_begin(engine->scheduler, &group) == NB_OK;
    nbi_store_guard(engine);
    start_all(engine, NB_PHASE_COMMAND_RECORD, group);
    if (has_group) nb_group_end(engine->scheduler, group, NB_NEVER_NS);
    settle_jobs(engine, NB_PHASE_COMMAND_RECORD, false);
    if (nbi_store_unguard(engine) != NB_OK) return;
    merge_all(engine, NB_PHASE_COMMAND_RECORD, NB_PHASE_COMMAND_RECORD);
}

// --- places ---

static nb_result create_all(nb_engine *engine, nbi_module *module, nb_phase phase, nb_handler run, uint32_t count) {
    nbi_jobs *all = jobs_of(module, phase);
    if (run == NULL) return NB_OK;
    count = count != 0 ? count : 1;
    all->jobs = nbi_alloc(&engine->hooks, count * sizeof *all->jobs, NB_CACHE_LINE, "nb_engine_module_attach");
    if (all->jobs == NULL) return NB_ERR_MEMORY;
    memset(all->jobs, 0, count * sizeof *all->jobs);
    all->count = count;
    nb_arena_desc desc = {.label = module->name, .capacity_bytes = engine->desc.output_bytes, .hooks = engine->hooks};
    for (uint32_t i = 0; i < count; ++i) {
        nbi_job *job = &all->jobs[i];
        job->engine = engine;
        job->run = run;
        job->user = module->desc.user;
        job->index = i, job->count = count, job->phase = phase;
        job->module = (uint32_t)(module - engine->modules);
        job->arena = &job->arenas[0];
        uint32_t arena_count = module->desc.adopts_late && phase == NB_PHASE_PARALLEL_TASKS ? 2 : 1;
        for (; job->arena_count < arena_count; ++job->arena_count) {
            nb_result result = nb_arena_init(&job->arenas[job->arena_count], &desc);
            if (result != NB_OK) return result;
        }
    }
    return NB_OK;
}

nb_result nbi_jobs_create(nb_engine *engine, nbi_module *module) {
    const nb_module_desc *desc = &module->desc;
    nb_result result = create_all(engine, module, NB_PHASE_PARALLEL_TASKS, desc->parallel, desc->job_count);
    if (result != NB_OK) return result;
    return create_all(engine, module, NB_PHASE_COMMAND_RECORD, desc->record, desc->record_count);
}

static bool are_idle(const nbi_jobs *all) {
    for (uint32_t i = 0; i < all->count; ++i) {
        if (!nbi_job_is_settled(&all->jobs[i])) return false;
    }
    return true;
}

bool nbi_jobs_are_idle(const nbi_module *module) { return are_idle(&module->parallel) && are_idle(&module->record); }

static void destroy_all(nb_engine *engine, nbi_jobs *all) {
    for (uint32_t i = 0; i < all->count; ++i) {
        nbi_job *job = &all->jobs[i];
        if (job->is_late || job->late.is_pending) ++engine->stats.late_drop_count;
        for (uint32_t j = 0; j < job->arena_count; ++j) {
            nb_arena_adopt(&job->arenas[j]);
            nb_arena_deinit(&job->arenas[j]);
        }
    }
    if (all->jobs != NULL) nbi_free(&engine->hooks, all->jobs, all->count * sizeof *all->jobs);
    *all = (nbi_jobs){NULL, 0};
}

void nbi_jobs_destroy(nb_engine *engine, nbi_module *module) {
    destroy_all(engine, &module->parallel);
    destroy_all(engine, &module->record);
}
