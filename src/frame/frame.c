// SPDX-License-Identifier: MIT
// One frame. The boxes of docs/frame.md, in their order.

#include "engine/engine.h"
#include "state/state.h"

#include "../base/input.h"
#include "../base/loop.h"
#include "../base/trace.h"

// Being late says nothing about work after a pause of the whole program, a load or a jump.
static void forgive_late(nb_engine *engine) {
    if (engine->run_loads != nbi_states_load_count(engine->states)) ++engine->run_number;
    bool is_elsewhere = engine->run_forgiven != engine->run_number;
    engine->run_forgiven = engine->run_number;
    if (is_elsewhere || engine->time.is_discontinuity) nb_fence_forgive(engine->fence, false);
}

static void frame_start(nb_engine *engine) {
    if (engine->timelines != NULL) nb_timelines_reclaim(engine->timelines, 0, NULL);
    nb_arena_reset(&engine->arena);
    // Where every slot has late work the frame has none of its own: jobs run on the coordinator then.
    if (nb_fence_begin(engine->fence, &engine->frame) != NB_OK) engine->frame = (nb_fence_frame){0};
    forgive_late(engine);
    if (engine->trace != NULL) nb_trace_frame(engine->trace, engine->time.index);
    nbi_task_results_deliver(engine);
    nbi_frame_async_publish(engine);
}

// In a pause, events are for frames only. So is what was sent up to now if a pause has ended since the frame before:
// the click on "resume" is no shot. A hold is no pause, nor are ticks that nb_engine_run_ticks asks for.
static void take_input(nb_engine *engine) {
    engine->frame_input = (nb_input_view){NULL, 0};
    bool is_paused = engine->loop.is_paused && !engine->is_pause_own;
    nbi_input_fold idle = engine->is_idle ? NBI_INPUT_FOLD_EXCESS : NBI_INPUT_FOLD_NONE;
    nbi_input_fold next = is_paused ? NBI_INPUT_FOLD_ALL : idle;
    nbi_input_fold now = engine->was_paused ? NBI_INPUT_FOLD_ALL : next;
    engine->was_paused = is_paused;
    if (engine->input == NULL) return;
    nbi_input_fold_set(engine->input, now);
    nb_input_begin_frame(engine->input, &engine->frame_input);
    nbi_input_fold_set(engine->input, next);
}

static void fixed_sim(nb_engine *engine) {
    nb_loop_tick tick;
    while (nb_loop_next_tick(&engine->loop, &tick)) nbi_tick_run(engine, &tick);
    engine->time = nb_loop_frame_get(&engine->loop);
    engine->is_idle = engine->time.tick_count == 0;
}

// Workers wake while the state is copied.
static void wake_workers(nb_engine *engine) {
    if (engine->orders[NB_PHASE_PARALLEL_TASKS].count != 0) nb_scheduler_prewake(engine->scheduler, 0);
}

// What cannot be published, because readers hold every slot, leaves the last one to be read.
static void publish(nb_engine *engine) {
    if (engine->snapshots == NULL) return;
    uint64_t tick_count = nb_loop_tick_count(&engine->loop);
    uint64_t target_ns = engine->budget.desc.target_ns, used_ns = nbi_work_ns(engine);
    nb_snapshot_info info = {.frame = engine->time.index,
                             .tick = tick_count,
                             .tick_previous = tick_count > 0 ? tick_count - 1 : 0,
                             .epoch = engine->time.index,
                             .alpha = engine->time.alpha,
                             .budget_ns = used_ns < target_ns ? target_ns - used_ns : 1,
                             .quality_level = nb_budget_level(&engine->budget)};
    if (engine->is_world_viewed)
        nb_store_views_publish(engine->world, &info);
    else
        nb_snapshots_publish(engine->snapshots, &info);
    engine->snapshot = nb_snapshots_acquire(engine->snapshots);
}

// What a degraded frame has lost would come back as ticks to catch up. A frame that was given its time has lost none.
static void exclude_since(nb_engine *engine, uint64_t start_ns) {
    if (engine->loop.is_clocked) nb_loop_exclude(&engine->loop, nbi_loop_since(nbi_engine_now_ns(engine), start_ns));
}

static void parallel_tasks(nb_engine *engine) {
    bool may_exclude = engine->desc.excludes_degraded_time;
    uint64_t start_ns = may_exclude ? nbi_engine_now_ns(engine) : 0;
    nbi_store_guard(engine);
    nbi_jobs_start(engine, NB_PHASE_PARALLEL_TASKS);
    nbi_jobs_await(engine);
    nbi_store_unguard(engine);
    if (may_exclude && engine->is_degraded) exclude_since(engine, start_ns);
}

// What tasks have left is there when the outputs of jobs are merged.
static void post_parallel(nb_engine *engine) {
    if (engine->is_world_stuck) return; // callbacks may write to the world
    nbi_task_results_deliver(engine);
    nbi_jobs_merge(engine);
}

// Without workers nobody else runs what floats across frames. On a borrowed scheduler other engines have frames on this
// thread, too. It fills the frame up, and so is no work to the budget.
static void help(nb_engine *engine) {
    uint64_t used_ns = nbi_work_ns(engine), target_ns = engine->budget.desc.target_ns, left_ns = NB_FLOATING_NS_MIN;
    if (engine->owns_scheduler && used_ns < target_ns) left_ns = nbi_max_u64(left_ns, target_ns - used_ns);
    nb_engine_wait_begin(engine);
    nb_scheduler_help(engine->scheduler, left_ns, NULL);
    nb_engine_wait_end(engine);
}

static void async_poll(nb_engine *engine) {
    if (engine->is_alone) help(engine);
    if (!engine->is_world_stuck) nbi_frame_async_poll(engine);
}

static void frame_end(nb_engine *engine) {
    engine->run_loads = nbi_states_load_count(engine->states);
    engine->stats.frame_peak_bytes = nb_arena_high_watermark(&engine->arena);
    nb_snapshot_release(engine->snapshot);
    engine->snapshot = NULL;
    if (engine->epochs != NULL) nb_timeline_signal(engine->epochs, engine->time.index + 1);
}

static void run_phases(nb_engine *engine) {
    bool has_picture = !engine->desc.is_headless;
    nbi_phase_run(engine, NB_PHASE_FRAME_START, frame_start, NULL);
    nbi_phase_run(engine, NB_PHASE_INPUT, take_input, NULL);
    nbi_phase_run(engine, NB_PHASE_NETWORK_RECONCILIATION, NULL, nbi_rollback);
    nbi_phase_run(engine, NB_PHASE_RANDOM_SEED, NULL, NULL);
    nbi_phase_run(engine, NB_PHASE_FIXED_SIM, fixed_sim, NULL);
    nbi_phase_run(engine, NB_PHASE_GAMEPLAY, NULL, NULL);
    nbi_phase_run(engine, NB_PHASE_SCENE_MUTATION, nbi_stages_apply, NULL);
    nbi_phase_run(engine, NB_PHASE_TRANSFORMS, NULL, NULL);
    nbi_phase_run(engine, NB_PHASE_SNAPSHOT, wake_workers, publish);
    nbi_phase_run(engine, NB_PHASE_PARALLEL_TASKS, parallel_tasks, NULL);
    nbi_phase_run(engine, NB_PHASE_POST_PARALLEL, post_parallel, NULL);
    if (has_picture) nbi_phase_run(engine, NB_PHASE_FRAME_GRAPH, NULL, NULL);
    if (has_picture) nbi_phase_run(engine, NB_PHASE_COMMAND_RECORD, nbi_jobs_record, NULL);
    if (has_picture) nbi_phase_run(engine, NB_PHASE_PRESENT, nbi_work_present, NULL);
    nbi_phase_run(engine, NB_PHASE_ASYNC_POLL, async_poll, NULL);
    nbi_phase_run(engine, NB_PHASE_BUDGET_ADAPT, nbi_work_adapt, NULL);
    nbi_phase_run(engine, NB_PHASE_FRAME_END, NULL, frame_end);
}

static void open_frame(nb_engine *engine) {
    engine->phase_start_ns = engine->frame_start_ns = nbi_engine_now_ns(engine);
    engine->wait_ns = engine->device_ns = 0;
    engine->is_in_frame = true;
    engine->closed_barriers = 0;
    engine->failure = NB_OK;
    engine->is_degraded = false;
    engine->time = nb_loop_frame_get(&engine->loop);
    // In each frame: the host may attach the thread itself, and detach it.
    if (engine->desc.trace != NULL)
        engine->trace = nbi_trace_join(engine->desc.trace, "coordinator", &engine->trace_own);
}

// What a module does in its on_detach is not part of the frame, but the loop's frame goes on until it has.
static void close_frame(nb_engine *engine) {
    nbi_atomic_store_relaxed_u32(&engine->phase, NB_PHASE_NONE);
    nbi_store_allow(engine, NB_PHASE_NONE);
    nbi_modules_note(engine, NBI_HEALTH_FRAMES);
    engine->is_in_frame = false;
    nbi_modules_settle(engine);
    nb_loop_end(&engine->loop);
    engine->stats.frame_ns = nbi_loop_since(engine->phase_start_ns, engine->frame_start_ns);
    engine->stats.work_ns = nbi_work_ns(engine);
    ++engine->stats.frame_count;
}

nb_result nbi_frame_run(nb_engine *engine) {
    nbi_modules_settle(engine);
    open_frame(engine);
    nbi_owner *before = nbi_owner_enter(engine->owner);
    uint32_t fp_mode = nbi_fp_enter();
    run_phases(engine);
    nbi_fp_leave(fp_mode);
    nbi_owner_leave(before);
    close_frame(engine);
    return engine->failure;
}
