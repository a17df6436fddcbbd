// SPDX-License-Identifier: MIT
// One frame. The boxes of docs/frame.md, in their order.

#include "engine.h"

static void frame_start(nb_engine *engine) {
    if (engine->timelines != NULL) nb_timelines_reclaim(engine->timelines, 0, NULL);
    nb_arena_reset(&engine->arena);
    // Where every slot has late work the frame has none of its own: jobs run on the coordinator then.
    if (nb_fence_begin(engine->fence, &engine->frame) != NB_OK) engine->frame = (nb_frame){0};
    if (engine->trace != NULL) nb_trace_frame(engine->trace, engine->time.index);
    nbi_tasks_tell(engine);
    nbi_frame_async_publish(engine);
}

static void take_input(nb_engine *engine) {
    engine->frame_input = (nb_input_view){NULL, 0};
    if (engine->input != NULL) nb_input_begin_frame(engine->input, &engine->frame_input);
}

static void fixed_sim(nb_engine *engine) {
    nb_tick tick;
    while (nb_loop_next_tick(&engine->loop, &tick)) nbi_tick_run(engine, &tick);
    engine->time = nb_loop_frame_get(&engine->loop);
}

// Workers wake while the state is copied.
static void wake_workers(nb_engine *engine) {
    if (engine->orders[NB_PHASE_PARALLEL_TASKS].count != 0) nb_scheduler_prewake(engine->scheduler, 0);
}

// What cannot be published, because readers hold every slot, leaves the last one to be read.
static void publish(nb_engine *engine) {
    if (engine->snapshots == NULL) return;
    uint64_t tick_count = nb_loop_tick_count(&engine->loop);
    uint64_t target_ns = engine->budget.desc.target_ns, used_ns = engine->phase_start_ns - engine->frame_start_ns;
    nb_snapshot_info info = {.frame = engine->time.index,
                             .tick = tick_count,
                             .tick_previous = tick_count > 0 ? tick_count - 1 : 0,
                             .epoch = engine->time.index,
                             .alpha = engine->time.alpha,
                             .budget_ns = used_ns < target_ns ? target_ns - used_ns : 1,
                             .quality_level = nb_budget_level(&engine->budget)};
    if (engine->is_world_viewed)
        nb_world_views_publish(engine->world, &info);
    else
        nb_snapshots_publish(engine->snapshots, &info);
    engine->snapshot = nb_snapshots_acquire(engine->snapshots);
}

static void parallel_tasks(nb_engine *engine) {
    nbi_world_guard(engine, true);
    nbi_jobs_start(engine, NB_PHASE_PARALLEL_TASKS);
    nbi_jobs_await(engine);
    nbi_world_guard(engine, false);
}

// What tasks have left is there when the outputs of jobs are merged.
static void post_parallel(nb_engine *engine) {
    nbi_tasks_tell(engine);
    nbi_jobs_merge(engine);
}

// Without workers nobody else runs what floats across frames. On a borrowed scheduler other engines have frames on this
// thread, too.
static void help(nb_engine *engine) {
    uint64_t start_ns = nbi_clock_now_ns(), used_ns = start_ns - engine->frame_start_ns;
    uint64_t target_ns = engine->budget.desc.target_ns, left_ns = NB_FLOATING_NS_MIN;
    if (engine->owns_scheduler && used_ns < target_ns) left_ns = nbi_max_u64(left_ns, target_ns - used_ns);
    nb_scheduler_help(engine->scheduler, left_ns, NULL);
    engine->help_ns = nbi_clock_now_ns() - start_ns;
}

static void async_poll(nb_engine *engine) {
    if (engine->is_alone) help(engine);
    nbi_frame_async_poll(engine);
}

// The work of the frame so far, without what filled it up: what is left is the wait for the display.
static void budget_adapt(nb_engine *engine) {
    nb_budget_sample sample = {.measured_ns = engine->phase_start_ns - engine->frame_start_ns - engine->help_ns,
                               .is_discontinuity = engine->time.is_discontinuity,
                               .has_nothing_visible = engine->has_nothing_visible};
    if (engine->desc.adapts_budget) nb_budget_update(&engine->budget, &sample);
}

static void frame_end(nb_engine *engine) {
    engine->stats.frame_peak_bytes = nb_arena_high_watermark(&engine->arena);
    nb_snapshot_release(engine->snapshot);
    engine->snapshot = NULL;
    if (engine->epochs != NULL) nb_timeline_signal(engine->epochs, engine->time.index + 1);
}

void nbi_frame_run(nb_engine *engine) {
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
    if (has_picture) nbi_phase_run(engine, NB_PHASE_PRESENT, NULL, NULL);
    nbi_phase_run(engine, NB_PHASE_ASYNC_POLL, async_poll, NULL);
    nbi_phase_run(engine, NB_PHASE_BUDGET_ADAPT, budget_adapt, NULL);
    nbi_phase_run(engine, NB_PHASE_FRAME_END, NULL, frame_end);
}
