// SPDX-License-Identifier: MIT
// The engine as an object: made, run, ended.

#include "engine.h"

#include "../../base/loop.h"
#include "../../base/trace.h"
#include "../../tasks/host.h"
#include "../async/async.h"
#include "../history/history.h"
#include "../snapshot/snapshot.h"
#include "../store/store.h"

#include <stdio.h>
#include <string.h>

static const nbi_desc_number numbers[] = {
    NBI_NUMBER(nb_engine_desc, fence_timeout_ns, NB_FENCE_TIMEOUT_NS_DEFAULT, 1, UINT64_MAX),
    NBI_NUMBER(nb_engine_desc, module_count_max, NB_MODULE_COUNT_DEFAULT, 1, NB_MODULE_COUNT_MAX),
    NBI_NUMBER(nb_engine_desc, output_bytes, NB_OUTPUT_BYTES_DEFAULT, 1, SIZE_MAX),
    NBI_NUMBER(nb_engine_desc, frame_bytes, NB_FRAME_BYTES_DEFAULT, 1, SIZE_MAX),
    NBI_NUMBER(nb_engine_desc, task_bytes, NB_ARENA_CAPACITY_DEFAULT, 1, SIZE_MAX),
    NBI_NUMBER(nb_engine_desc, shutdown_ns, NB_SHUTDOWN_NS_DEFAULT, 1, UINT64_MAX),
    NBI_NUMBER(nb_engine_desc, command_count_max, NB_COMMAND_COUNT_DEFAULT, 1, NB_COMMAND_COUNT_MAX),
    NBI_NUMBER(nb_engine_desc, stage_bytes_max, NB_STAGE_BYTES_MAX_DEFAULT, NB_STAGE_BYTES_MAX_LEAST,
               NB_STAGE_BYTES_MAX_LIMIT),
    NBI_NUMBER(nb_engine_desc, stage_count_max, NB_STAGE_COUNT_DEFAULT, 1, NB_STAGE_COUNT_MAX),
    NBI_NUMBER(nb_engine_desc, violation_policy, NB_VIOLATION_REPORT, 1, NB_VIOLATION_POLICY_COUNT - 1),
    NBI_NUMBER(nb_engine_desc, rollback_count_max, NB_ROLLBACK_COUNT_DEFAULT, 1, UINT32_MAX),
    NBI_NUMBER(nb_engine_desc, synctest_depth, 0, 0, NB_SYNCTEST_DEPTH_MAX),
};
static const nbi_desc_rules rules = NBI_RULES(nb_engine_desc, numbers);

// Of parts that are made on demand, too: what is read back is what they get.
static void fill(nb_engine_desc *desc) {
    nbi_desc_fill(&rules, desc);
    nbi_desc_fill(&nbi_store_rules, &desc->world);
    nbi_desc_fill(&nbi_async_rules, &desc->async);
    nbi_desc_fill(&nbi_history_rules, &desc->history);
    // The columns of a few dozen tables are more regions than a ring that is used alone has.
    if (desc->snapshots.region_count_max == 0) desc->snapshots.region_count_max = NB_ENGINE_REGION_COUNT_DEFAULT;
    nbi_desc_fill(&nbi_snapshots_rules, &desc->snapshots);
    if (desc->input.event_count_max == 0) desc->input.event_count_max = nb_input_desc_default().event_count_max;
}

nb_engine_desc nb_engine_desc_default(void) {
    nb_engine_desc desc = {.loop = nb_loop_desc_default(),
                           .scheduler_desc = nb_scheduler_desc_default(),
                           .budget = nb_budget_desc_default(),
                           .hooks = nb_hooks_default()};
    desc.budget.target_ns = 0; // follows the loop, so that changing the loop is enough
    desc.world.hooks = desc.async.hooks = desc.history.hooks = desc.snapshots.hooks = desc.input.hooks = desc.hooks;
    fill(&desc);
    return desc;
}

// --- creating ---

static nb_result resolve_desc(const nb_engine_desc *given, nb_engine_desc *desc) {
    *desc = given != NULL ? *given : (nb_engine_desc){0};
    desc->hooks = nbi_hooks_resolve(&desc->hooks);
    desc->loop.hooks = desc->scheduler_desc.hooks = desc->budget.hooks = desc->world.hooks = desc->hooks;
    desc->snapshots.hooks = desc->input.hooks = desc->async.hooks = desc->history.hooks = desc->hooks;
    if (desc->is_guarded) desc->world.is_protectable = desc->snapshots.is_protected = true;
    if (desc->synctest_depth != 0) desc->keeps_history = desc->hashes_ticks = true;
    fill(desc);
    nbi_desc_place place = {&desc->hooks, NB_ITEM_ENGINE_ARGUMENT, "nb_engine_create", NULL};
    nb_result result = nbi_desc_check(&rules, desc, &place);
    if (result == NB_OK) result = nbi_loop_desc_resolve(&desc->loop, &desc->hooks);
    return result == NB_OK && desc->keeps_history ? nbi_history_check(&desc->history) : result;
}

// nb_engine_desc_get returns the descs that the parts run with.
static void read_back(nb_engine *engine) {
    nb_scheduler_desc runs = nbi_scheduler_desc(engine->scheduler), *desc = &engine->desc.scheduler_desc;
    desc->worker_count = runs.worker_count != 0 ? runs.worker_count : NB_WORKER_COUNT_NONE;
    desc->task_count_max = runs.task_count_max;
    desc->group_count_max = runs.group_count_max;
    desc->dependency_count_max = runs.dependency_count_max;
    desc->floating_worker_count_max = runs.floating_worker_count_max;
    desc->stack_size_bytes = runs.stack_size_bytes;
    engine->desc.budget = engine->budget.desc;
    nbi_work_follow(engine);
}

static size_t order_bytes(const nb_engine *engine) {
    // One list of all, and one for each phase.
    return (size_t)engine->desc.module_count_max * (NB_PHASE_COUNT + 1) * sizeof(uint32_t);
}

static nb_result modules_create(nb_engine *engine) {
    uint32_t count = engine->desc.module_count_max;
    engine->modules = nbi_alloc(&engine->hooks, count * sizeof *engine->modules, NB_CACHE_LINE, "nb_engine_create");
    if (engine->modules == NULL) return NB_ERR_MEMORY;
    memset(engine->modules, 0, count * sizeof *engine->modules);
    engine->order = nbi_alloc(&engine->hooks, order_bytes(engine), NB_CACHE_LINE, "nb_engine_create");
    if (engine->order == NULL) return NB_ERR_MEMORY;
    for (uint32_t i = 0; i < NB_PHASE_COUNT; ++i) engine->orders[i].modules = engine->order + (size_t)(i + 1) * count;
    return NB_OK;
}

// Workers of the engine's own scheduler write into its trace.
static void worker_start(void *user, uint32_t worker_index) {
    const nb_engine *engine = user;
    char name[24];
    snprintf(name, sizeof name, "worker %u", (unsigned)worker_index);
    nb_trace_thread *thread = NULL;
    nbi_trace_join(engine->desc.trace, name, &thread);
    const nb_scheduler_desc *given = &engine->desc.scheduler_desc;
    if (given->on_start != NULL) given->on_start(given->user, worker_index);
}

static void worker_stop(void *user, uint32_t worker_index) {
    const nb_engine *engine = user;
    const nb_scheduler_desc *given = &engine->desc.scheduler_desc;
    if (given->on_stop != NULL) given->on_stop(given->user, worker_index);
    nb_trace_thread *thread = nbi_trace_find(engine->desc.trace);
    if (thread != NULL) nb_trace_detach(thread);
}

// Labels are numbers, so work of the engine can be named only where all of it takes them from one table.
static nb_result labels_create(nb_engine *engine) {
    nb_engine_desc *desc = &engine->desc;
    nb_labels *given[] = {desc->labels, desc->trace != NULL ? nb_trace_labels(desc->trace) : NULL,
                          desc->scheduler != NULL ? nb_scheduler_labels(desc->scheduler) : desc->scheduler_desc.labels};
    for (uint32_t i = 0; i < sizeof given / sizeof given[0]; ++i) {
        if (engine->labels == NULL) engine->labels = given[i];
        if (given[i] == NULL || given[i] == engine->labels) continue;
        return nbi_fail(&engine->hooks, NB_ITEM_ENGINE_ARGUMENT, NB_ERR_MISUSE, "nb_engine_create",
                        "labels, trace and scheduler have different tables of labels; give all of them the same one");
    }
    nb_labels_desc labels_desc = {.label_count_max = NB_ENGINE_LABEL_COUNT_DEFAULT, .hooks = engine->hooks};
    if (engine->labels == NULL) {
        nb_result result = nb_labels_create(&labels_desc, &engine->labels);
        if (result != NB_OK) return result;
        engine->owns_labels = true;
    }
    desc->labels = desc->scheduler_desc.labels = engine->labels;
    desc->async.labels = engine->labels;
    return NB_OK;
}

static nb_result scheduler_create(nb_engine *engine) {
    if (engine->desc.scheduler != NULL) {
        engine->scheduler = engine->desc.scheduler;
        engine->is_alone = nb_scheduler_stats_get(engine->scheduler).worker_count == 0;
        return nbi_owner_open(engine->scheduler, NULL, &engine->owner);
    }
    nb_scheduler_desc desc = engine->desc.scheduler_desc;
    if (engine->desc.trace != NULL) desc.on_start = worker_start, desc.on_stop = worker_stop, desc.user = engine;
    nb_result result = nb_scheduler_create(&desc, &engine->scheduler);
    engine->owns_scheduler = result == NB_OK;
    if (!engine->owns_scheduler) return result;
    engine->coordinator = nbi_thread_id();
    engine->is_alone = nb_scheduler_stats_get(engine->scheduler).worker_count == 0;
    return nbi_owner_open(engine->scheduler, NULL, &engine->owner);
}

// One set of arenas for the scheduler's tasks and the fence's frames, so that what a task of a frame leaves in memory
// is there until the frame ends. Those of an own scheduler outlive it: the fence gives its pins back after it.
static nb_result arenas_create(nb_engine *engine) {
    nb_scheduler_desc *given = &engine->desc.scheduler_desc;
    engine->arenas = engine->desc.scheduler != NULL ? nbi_scheduler_arenas(engine->desc.scheduler) : given->arenas;
    if (engine->arenas != NULL) return NB_OK;
    nb_thread_arenas_desc desc = {
        .capacity_bytes = engine->desc.task_bytes, .slot_count = NBI_ARENA_SLOT_COUNT, .hooks = engine->hooks};
    nb_result result = nb_thread_arenas_create(&desc, &engine->arenas);
    engine->owns_arenas = result == NB_OK;
    given->arenas = engine->arenas;
    return result;
}

static nb_result fence_create(nb_engine *engine) {
    nb_fence_desc desc = {.timeout_ns = engine->desc.fence_timeout_ns,
                          .strike_count_max = engine->desc.strike_count_max,
                          .labels = engine->labels,
                          .arenas = engine->arenas,
                          .hooks = engine->hooks};
    return nb_fence_create(&desc, &engine->fence);
}

static void resolve_barriers(nb_engine *engine) {
    for (uint32_t i = 1; i < NB_PHASE_COUNT; ++i) {
        const nb_phase_info *info = nb_phase_info_get((nb_phase)i);
        for (uint32_t j = 1; j < i; ++j) {
            const nb_phase_info *earlier = nb_phase_info_get((nb_phase)j);
            bool is_left_out = engine->desc.is_headless && earlier->is_rendering;
            if (earlier->barrier != NB_BARRIER_NONE && !is_left_out) {
                engine->required_barriers[i] |= 1u << earlier->barrier;
            }
        }
        if (engine->desc.trace != NULL) nb_labels_intern(engine->labels, info->name, &engine->phase_labels[i]);
    }
}

static void trace_tasks(nb_engine *engine) {
    if (engine->desc.trace == NULL) return;
    if (nbi_scheduler_trace_add(engine->scheduler, engine->desc.trace, engine->fence) == NB_OK) return;
    nbi_log(&engine->hooks, NB_LOG_WARNING, NB_ITEM_TRACE_SHARED, "nb_engine_create",
            "%u engines that share the scheduler have traces already: the trace of this one gets no tasks",
            NBI_TRACED_COUNT_MAX);
}

static nb_result create_all(nb_engine *engine) {
    nb_arena_desc arena_desc = {.label = "frame", .capacity_bytes = engine->desc.frame_bytes, .hooks = engine->hooks};
    nb_token_desc token_desc = {.label = "engine", .hooks = engine->hooks};
    nb_states_desc states_desc = {.hooks = engine->hooks};
    engine->follows_loop = engine->desc.budget.target_ns == 0;
    nb_result result = nb_loop_init(&engine->loop, &engine->desc.loop);
    if (result == NB_OK) result = nb_budget_init(&engine->budget, &engine->desc.budget);
    if (result == NB_OK) result = modules_create(engine);
    if (result == NB_OK) result = nbi_commands_create(engine);
    if (result == NB_OK) result = nb_arena_init(&engine->arena, &arena_desc);
    if (result == NB_OK) engine->has_arena = true;
    if (result == NB_OK) result = nb_token_create(&token_desc, &engine->token);
    if (result == NB_OK) result = nb_states_create(&states_desc, &engine->states);
    if (result == NB_OK) result = nbi_health_create(engine);
    if (result == NB_OK) result = labels_create(engine);
    if (result == NB_OK) result = arenas_create(engine);
    if (result == NB_OK) result = fence_create(engine);
    if (result == NB_OK) result = scheduler_create(engine);
    if (result != NB_OK) return result;
    resolve_barriers(engine);
    trace_tasks(engine);
    read_back(engine);
    return NB_OK;
}

static void trace_end(nb_engine *engine) {
    if (engine->desc.trace == NULL) return;
    if (engine->scheduler != NULL) nbi_scheduler_trace_remove(engine->scheduler, engine->desc.trace);
    if (engine->trace_own != NULL) nbi_trace_leave(engine->trace_own, engine->coordinator);
}

static void free_all(nb_engine *engine) {
    const nb_hooks hooks = engine->hooks;
    uint32_t count = engine->desc.module_count_max;
    trace_end(engine);
    if (engine->owns_scheduler)
        nb_scheduler_destroy(engine->scheduler);
    else if (engine->scheduler != NULL)
        nbi_owner_close(engine->scheduler, engine->owner);
    if (engine->fence != NULL) nb_fence_destroy(engine->fence);
    if (engine->owns_arenas) nb_thread_arenas_destroy(engine->arenas);
    if (engine->owns_labels) nb_labels_destroy(engine->labels);
    if (engine->token != NULL) nb_token_release(engine->token);
    nbi_synctest_end(engine);
    nb_history_destroy(engine->history);
    nb_states_destroy(engine->states);
    nbi_store_end(engine);
    nb_input_destroy(engine->input);
    nbi_commands_destroy(engine);
    if (engine->has_arena) {
        nb_arena_adopt(&engine->arena);
        nb_arena_deinit(&engine->arena);
    }
    if (engine->order != NULL) nbi_free(&hooks, engine->order, order_bytes(engine));
    if (engine->modules != NULL) nbi_free(&hooks, engine->modules, count * sizeof *engine->modules);
    nbi_free(&hooks, engine, sizeof *engine);
}

nb_result nb_engine_create(const nb_engine_desc *desc, nb_engine **out) {
    if (out == NULL) return NBI_FAIL_NULL("out");
    nb_engine_desc resolved;
    nb_result result = resolve_desc(desc, &resolved);
    if (result != NB_OK) return result;
    nb_engine *engine = nbi_alloc(&resolved.hooks, sizeof *engine, NB_CACHE_LINE, __func__);
    if (engine == NULL) return NB_ERR_MEMORY;
    memset(engine, 0, sizeof *engine);
    engine->desc = resolved;
    engine->hooks = resolved.hooks;
    result = create_all(engine);
    if (result != NB_OK) {
        free_all(engine);
        return result;
    }
    *out = engine;
    return NB_OK;
}

// --- ending ---

// Of its own scheduler all tasks are the engine's.
static const nbi_owner *host_of(const nb_engine *engine) { return engine->owns_scheduler ? NULL : engine->owner; }

static void set_tasks_stopped(nb_engine *engine, bool is_stopped) {
    if (engine->is_host_stopped == is_stopped) return;
    engine->is_host_stopped = is_stopped;
    if (is_stopped)
        nbi_host_stop(engine->scheduler, host_of(engine));
    else
        nbi_host_resume(engine->scheduler, host_of(engine));
}

static void report_tasks(nb_engine *engine, const nbi_host_rest *rest) {
    for (uint32_t i = 0; i < rest->label_count; ++i) {
        char number[NBI_LABEL_NUMBER_SIZE];
        nbi_log(&engine->hooks, NB_LOG_ERROR, NB_ITEM_ENGINE_LEFTOVER, "nb_engine_destroy",
                "tasks labelled \"%s\" have not stopped (%u); a task stops when it asks nb_task_should_stop",
                nbi_label_text(engine->labels, rest->labels[i], number), (unsigned)rest->task_counts[i]);
    }
}

// Ends tasks that have not started, and waits for the others without running any: the coordinator would be stuck in one
// that is. NB_BUSY: one that belongs to no frame, and so to no module that is known, goes on. *are_over: none does.
static nb_result end_tasks(nb_engine *engine, bool *are_over) {
    nbi_host_rest rest;
    set_tasks_stopped(engine, true);
    *are_over = nbi_host_await(engine->scheduler, host_of(engine), engine->end_ns, &rest);
    report_tasks(engine, &rest);
    return rest.label_count == 0 ? NB_OK : NB_BUSY;
}

// Waits for the work of late frames. False: the time was over first.
static bool drain(const nb_engine *engine) {
    while (nb_fence_stats_get(engine->fence).pending_slots != 0 || !nbi_modules_are_idle(engine)) {
        if (nbi_clock_now_ns() >= engine->end_ns) return false;
        // Tasks of a frame that are of no host, where nobody else would run them.
        bool is_helped = engine->is_alone && nb_scheduler_help(engine->scheduler, 0, NULL) == NB_OK;
        if (!is_helped) nbi_thread_yield();
    }
    return true;
}

// Ends what was made on demand. NB_BUSY: a service did not stop, or a snapshot is held; said in the log by those.
static nb_result end_pieces(nb_engine *engine) {
    if (engine->services != NULL) {
        bool is_ended = nb_services_stop(engine->services, engine->end_ns) == NB_OK &&
                        nb_services_destroy(engine->services) == NB_OK;
        if (!is_ended) return NB_BUSY;
        engine->services = NULL;
    }
    nb_guard_destroy(engine->guard); // it looks into world and snapshots
    engine->guard = NULL;
    if (engine->snapshots != NULL) {
        if (nb_snapshots_destroy(engine->snapshots) != NB_OK) return NB_BUSY;
        engine->snapshots = NULL;
    }
    nb_timelines_destroy(engine->timelines);
    engine->timelines = NULL, engine->epochs = NULL;
    return NB_OK;
}

static nb_result report_leftovers(nb_engine *engine) {
    for (uint32_t i = 0; i < engine->module_limit; ++i) {
        const nbi_module *module = &engine->modules[i];
        if (module->number == 0 || nbi_jobs_are_idle(module)) continue;
        nbi_log(&engine->hooks, NB_LOG_ERROR, NB_ITEM_ENGINE_LEFTOVER, "nb_engine_destroy",
                "a job of module %s has not stopped", module->name);
    }
    return NB_BUSY;
}

// Nothing runs there any more, but threads may be attached.
static nb_result end_scheduler(nb_engine *engine) {
    if (!engine->owns_scheduler) return NB_OK;
    if (engine->desc.trace != NULL) nbi_scheduler_trace_remove(engine->scheduler, engine->desc.trace);
    nb_result result = nb_scheduler_destroy(engine->scheduler);
    if (result == NB_OK) {
        engine->owns_scheduler = false;
        engine->scheduler = NULL;
        return NB_OK;
    }
    nbi_log(&engine->hooks, NB_LOG_ERROR, NB_ITEM_ENGINE_LEFTOVER, "nb_engine_destroy",
            "a thread is attached to the scheduler; call nb_scheduler_detach there first");
    return result;
}

// Gives the modules what their async jobs have made, and calls on_complete of their tasks. No module leaves meanwhile.
// *are_over: no task goes on. *is_drained: work of late frames has ended.
static nb_result end_work(nb_engine *engine, bool *are_over, bool *is_drained) {
    engine->is_draining = true;
    nb_token_cancel(engine->token, NB_CANCEL_SHUTDOWN, 0, NULL);
    nbi_store_unguard(engine); // modules may write to it as they go
    nb_result result = nbi_frame_async_end(engine);
    if (result == NB_OK && end_tasks(engine, are_over) != NB_OK) result = report_leftovers(engine);
    if (result == NB_OK) {
        *is_drained = drain(engine);
        nbi_task_results_deliver(engine);
    }
    engine->is_draining = false;
    return result;
}

static nb_result end_all(nb_engine *engine) {
    bool are_over = false, is_drained = false;
    engine->is_ending = true;
    if (end_work(engine, &are_over, &is_drained) != NB_OK) return NB_BUSY;
    // What a module does in its on_detach may take tasks.
    if (are_over) set_tasks_stopped(engine, false);
    if (nbi_modules_end(engine) != NB_OK || !is_drained) return report_leftovers(engine);
    if (end_tasks(engine, &are_over) != NB_OK || !are_over) return NB_BUSY;
    nb_result result = end_pieces(engine);
    if (result == NB_OK) result = end_tasks(engine, &are_over); // of services
    if (result != NB_OK || !are_over) return NB_BUSY;
    set_tasks_stopped(engine, false);
    return end_scheduler(engine);
}

nb_result nb_engine_destroy(nb_engine *engine) {
    if (engine == NULL) return NB_OK;
    nb_result result = nbi_check_coordinator(engine, __func__);
    if (result != NB_OK) return result;
    if (engine->is_in_frame || nbi_engine_is_calling(engine) || engine->is_running) return NB_BUSY;
    engine->is_calling = true; // callbacks
    engine->end_ns = nbi_shutdown_deadline_ns(engine);
    result = end_all(engine);
    engine->end_ns = 0;
    engine->is_calling = false;
    if (result != NB_OK) return NB_BUSY;
    free_all(engine);
    return NB_OK;
}

// --- running ---

static void become_coordinator(nb_engine *engine) {
    engine->coordinator = nbi_thread_id();
    nb_arena_adopt(&engine->arena);
}

// Makes a world that is new part of the frame. Providers are called meanwhile: what would change the engine is NB_BUSY.
static nb_result prepare(nb_engine *engine, const char *function) {
    engine->is_calling = true;
    nb_result result = engine->is_world_stuck ? nbi_store_unguard(engine) : NB_OK;
    if (result == NB_OK) result = nbi_store_join(engine);
    if (result == NB_OK) result = nbi_history_begin(engine, function);
    if (result == NB_OK) result = nbi_synctest_begin(engine);
    engine->is_calling = false;
    return result;
}

// Begins a call that runs frames: from here to its end nothing that it calls, be it a clock, ends the engine.
static nb_result enter(nb_engine *engine, const char *function) {
    if (engine->coordinator == 0) become_coordinator(engine);
    nb_result result = nbi_check_coordinator(engine, function);
    if (result != NB_OK) return result;
    if (engine->is_in_frame || nbi_engine_is_calling(engine) || engine->is_running) return NB_BUSY;
    engine->is_running = true;
    result = prepare(engine, function);
    if (result != NB_OK) engine->is_running = false;
    return result;
}

nb_result nb_engine_frame(nb_engine *engine) {
    if (engine == NULL) return NBI_FAIL_NULL("engine");
    nb_result result = enter(engine, __func__);
    if (result != NB_OK) return result;
    result = nb_loop_begin(&engine->loop);
    if (result == NB_OK) result = nbi_frame_run(engine);
    engine->is_running = false;
    return result;
}

nb_result nb_engine_frame_delta(nb_engine *engine, uint64_t delta_ns) {
    if (engine == NULL) return NBI_FAIL_NULL("engine");
    nb_result result = enter(engine, __func__);
    if (result != NB_OK) return result;
    result = nb_loop_begin_delta(&engine->loop, delta_ns);
    if (result == NB_OK) result = nbi_frame_run(engine);
    engine->is_running = false;
    return result;
}

// A stop is spent by the run it ended, also one that was asked of the loop; read by the acquire loads in
// nb_engine_is_stopping and nb_loop_is_quitting.
static void clear_stop(nb_engine *engine) {
    nbi_atomic_store_release_u32(&engine->is_stopping, 0);
    nbi_atomic_store_release_u32(&engine->loop.is_quitting, 0);
}

static nb_result between(nb_engine *engine) {
    if (engine->desc.between == NULL) return NB_OK;
    nb_result result = engine->desc.between(engine, engine->desc.between_user);
    return result < 0 ? result : NB_OK;
}

nb_result nb_engine_run(nb_engine *engine) {
    if (engine == NULL) return NBI_FAIL_NULL("engine");
    nb_result result = enter(engine, __func__);
    if (result != NB_OK) return result;
    while (result == NB_OK && !nb_engine_is_stopping(engine)) {
        if (!engine->desc.loop.is_unpaced) result = nb_loop_pace(&engine->loop);
        if (result == NB_OK) result = prepare(engine, __func__); // on_detach may have made a world
        if (result == NB_OK) result = nb_loop_begin(&engine->loop);
        if (result == NB_OK) nbi_frame_run(engine); // what a handler failed with does not end the run
        if (result == NB_OK) result = between(engine);
    }
    clear_stop(engine);
    engine->is_running = false;
    return result;
}

nb_result nb_engine_run_ticks(nb_engine *engine, uint64_t tick_count) {
    if (engine == NULL) return NBI_FAIL_NULL("engine");
    nb_result result = enter(engine, __func__);
    if (result != NB_OK) return result;
    bool was_paused = engine->loop.is_paused;
    engine->is_pause_own = !was_paused;
    for (uint64_t i = 0; result == NB_OK && i < tick_count && !nb_engine_is_stopping(engine); ++i) {
        result = prepare(engine, __func__);
        if (result == NB_OK) result = nb_loop_run_to_tick(&engine->loop, nb_loop_tick_count(&engine->loop) + 1);
        if (result == NB_OK) result = nb_loop_begin_delta(&engine->loop, 0);
        if (result == NB_OK) nbi_frame_run(engine);
        if (result == NB_OK) result = between(engine);
    }
    nb_loop_resume(&engine->loop); // forgets a tick that a hold has kept back
    if (was_paused) nb_loop_pause(&engine->loop);
    engine->is_pause_own = false;
    clear_stop(engine);
    engine->is_running = false;
    return result;
}

nb_result nb_engine_stop(nb_engine *engine) {
    if (engine == NULL) return NB_ERR_MISUSE;
    nbi_atomic_store_release_u32(&engine->is_stopping, 1);
    return NB_OK;
}

bool nb_engine_is_stopping(const nb_engine *engine) {
    if (engine == NULL) return false;
    return nbi_atomic_load_acquire_u32(&engine->is_stopping) != 0 || nb_loop_is_quitting(&engine->loop);
}

// --- pieces made on demand ---

nb_snapshots *nb_engine_snapshots(nb_engine *engine) {
    if (engine == NULL) NBI_FAIL_NULL("engine");
    if (engine == NULL) return NULL;
    if (engine->snapshots == NULL) nb_snapshots_create(&engine->desc.snapshots, &engine->snapshots);
    return engine->snapshots;
}

nb_input *nb_engine_input(nb_engine *engine) {
    if (engine == NULL) NBI_FAIL_NULL("engine");
    if (engine == NULL) return NULL;
    if (engine->input == NULL) nb_input_create(&engine->desc.input, &engine->input);
    return engine->input;
}

nb_timelines *nb_engine_timelines(nb_engine *engine) {
    if (engine == NULL) NBI_FAIL_NULL("engine");
    if (engine == NULL) return NULL;
    nb_timelines_desc desc = {.hooks = engine->hooks};
    if (engine->timelines != NULL) return engine->timelines;
    if (nb_timelines_create(&desc, &engine->timelines) != NB_OK) return NULL;
    nb_timelines_open(engine->timelines, "frames", &engine->epochs);
    nb_timeline_signal(engine->epochs, engine->stats.frame_count);
    return engine->timelines;
}

nb_timeline *nb_engine_epochs(nb_engine *engine) { return nb_engine_timelines(engine) != NULL ? engine->epochs : NULL; }

nb_services *nb_engine_services(nb_engine *engine) {
    if (engine == NULL) NBI_FAIL_NULL("engine");
    if (engine == NULL) return NULL;
    nb_services_desc desc = {.hooks = engine->hooks};
    if (engine->services == NULL) nb_services_create(&desc, &engine->services);
    return engine->services;
}

nb_result nb_engine_set_blind(nb_engine *engine, bool is_blind) {
    if (engine == NULL) return NBI_FAIL_NULL("engine");
    engine->has_nothing_visible = is_blind;
    return NB_OK;
}

nb_budget *nb_engine_budget(nb_engine *engine) {
    if (engine == NULL) NBI_FAIL_NULL("engine");
    return engine != NULL ? &engine->budget : NULL;
}

// --- numbers ---

const nb_engine_desc *nb_engine_desc_get(const nb_engine *engine) {
    if (engine == NULL) NBI_FAIL_NULL("engine");
    return engine != NULL ? &engine->desc : NULL;
}

nb_loop *nb_engine_loop(nb_engine *engine) {
    if (engine == NULL) NBI_FAIL_NULL("engine");
    return engine != NULL ? &engine->loop : NULL;
}

nb_scheduler *nb_engine_scheduler(nb_engine *engine) {
    if (engine == NULL) NBI_FAIL_NULL("engine");
    return engine != NULL ? engine->scheduler : NULL;
}

nb_token *nb_engine_token(nb_engine *engine) {
    if (engine == NULL) NBI_FAIL_NULL("engine");
    return engine != NULL ? engine->token : NULL;
}

nb_states *nb_engine_states(nb_engine *engine) {
    if (engine == NULL) NBI_FAIL_NULL("engine");
    return engine != NULL ? engine->states : NULL;
}

nb_labels *nb_engine_labels(nb_engine *engine) {
    if (engine == NULL) NBI_FAIL_NULL("engine");
    return engine != NULL ? engine->labels : NULL;
}

nb_phase nb_engine_phase(const nb_engine *engine) {
    return engine != NULL ? (nb_phase)nbi_atomic_load_relaxed_u32(&engine->phase) : NB_PHASE_NONE;
}

nb_engine_stats nb_engine_stats_get(const nb_engine *engine) {
    if (engine == NULL) {
        NBI_FAIL_NULL("engine");
        return (nb_engine_stats){0};
    }
    nb_engine_stats stats = engine->stats;
    stats.tick_count = nb_loop_tick_count(&engine->loop);
    stats.module_count = engine->module_count;
    stats.quarantine_count = (uint32_t)nb_fence_stats_get(engine->fence).quarantine_count;
    stats.violation_count = nbi_atomic_load_relaxed_u64(&engine->violation_count);
    if (engine->world != NULL) stats.violation_count += nb_store_stats_get(engine->world).denied_count;
    stats.output_full_count = nbi_atomic_load_relaxed_u64(&engine->output_full_count);
    return stats;
}
