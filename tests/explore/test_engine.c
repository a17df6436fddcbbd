// SPDX-License-Identifier: MIT
// Whole frames of the real engine, over a scheduler whose workers are fibers: jobs and merge, a job that is late and
// ends in a later frame, the end of the engine with a job out, a stop from another thread.

#include "explore_tasks.h"

#include "nebula/engine.h"

#define JOB_COUNT 2u

// Longer than all that spins of a schedule take together: it passes only where nobody can run but after it.
#define FENCE_TIMEOUT_NS UINT64_C(1000000000000)

typedef struct room {
    crew crew;
    nb_engine *engine;
    nb_module_id module;
    crew_count ready;    // the engine is there
    crew_count may_end;  // frames' jobs that wait are let go
    crew_count is_gone;  // the module has left
    uint32_t held_frame; // jobs of the frame before this number wait; 0 = of none
    uint32_t held_count; // now
    uint64_t coordinator;
    uint32_t run_count, merge_count, adopted_count; // merged in time; late
    uint64_t next_place;                            // the least that may be merged next: frame, then index
    bool adopts;                                    // outputs of late jobs
    uint32_t running;                               // jobs inside their handler
    uint64_t frame;                                 // that was merged last
    uint64_t value;                                 // in the snapshot
    bool has_value;
    bool gives_way;         // there is no end to the frames otherwise
    bool is_impatient;      // the end of the engine is tried again and again
    uint32_t chain_left;    // tasks of the module that are still to begin, each by the one before
    uint32_t chain_running; // that have not returned
    bool is_replaced;       // their code may be gone
} room;

// --- the module ---

static nb_result run(const nb_context *context, void *user) {
    room *r = user;
    uint64_t frame = context->frame_index;
    EXPLORE_CHECK(crew_count_now(&r->is_gone) == 0);
    ++r->run_count, ++r->running;
    uint64_t *block = nb_output_add(context, 2 * sizeof *block);
    EXPLORE_CHECK(block != NULL && context->outputs != NULL);
    block[0] = frame, block[1] = context->job_index;
    // On a worker: the coordinator would wait for itself.
    if (frame + 1 == r->held_frame && nbi_thread_id() != r->coordinator) {
        ++r->held_count;
        crew_count_await(&r->may_end, 1);
        --r->held_count;
    }
    const uint64_t *value = context->snapshot != NULL ? nb_snapshot_region(context->snapshot, 0, NULL) : NULL;
    EXPLORE_CHECK(!r->has_value || (value != NULL && *value == frame));
    EXPLORE_CHECK(context->frame_index == frame && context->time->index == frame);
    EXPLORE_CHECK(nb_context_check(context, NB_LAYER_FRAME) == NB_OK);
    EXPLORE_CHECK(block[0] == frame && block[1] == context->job_index); // nobody else has the memory
    EXPLORE_CHECK(crew_count_now(&r->is_gone) == 0);
    --r->running;
    return NB_OK;
}

static nb_result merge(const nb_context *context, void *user, const nb_output_list *outputs) {
    room *r = user;
    const uint64_t *block = nb_output_list_next(outputs, NULL, NULL);
    uint64_t made_in = context->frame_index - context->job_age, place = made_in * JOB_COUNT + context->job_index;
    EXPLORE_CHECK(block != NULL && block[0] == made_in && block[1] == context->job_index);
    if (context->frame_index != r->frame) r->frame = context->frame_index, r->next_place = 0;
    EXPLORE_CHECK(place >= r->next_place);
    r->next_place = place + 1;
    if (context->job_age == 0) ++r->merge_count;
    if (context->job_age != 0) ++r->adopted_count;
    return NB_OK;
}

// Asleep for longer than anybody spins, so that whoever else can run does before the next frame.
static nb_result give_way(const nb_context *context, void *user) {
    room *r = user;
    (void)context;
    if (r->gives_way) nbi_sleep_until_ns(nbi_clock_now_ns() + 10000000);
    return NB_OK;
}

static void leave(nb_engine *engine, void *user) {
    room *r = user;
    (void)engine;
    EXPLORE_CHECK(r->running == 0 && crew_count_now(&r->is_gone) == 0);
    crew_count_add(&r->is_gone);
}

// --- frames ---

static void open_engine(room *r) {
    crew_coordinate(&r->crew);
    r->coordinator = nbi_thread_id();
    nb_engine_desc desc = {.scheduler = r->crew.scheduler,
                           .fence_timeout_ns = FENCE_TIMEOUT_NS,
                           .module_count_max = 1,
                           .output_bytes = 4096,
                           .frame_bytes = 4096,
                           .shutdown_ns = r->is_impatient ? 1000 : FENCE_TIMEOUT_NS,
                           .is_headless = true,
                           .hooks = explore_hooks()};
    desc.hooks.logger.level_min = NB_LOG_OFF;
    EXPLORE_CHECK(nb_engine_create(&desc, &r->engine) == NB_OK);
    nb_module_desc module = {.name = "crowd",
                             .parallel = run,
                             .merge = merge,
                             .job_count = JOB_COUNT,
                             .adopts_late = r->adopts,
                             .frame = give_way,
                             .on_detach = leave,
                             .user = r};
    EXPLORE_CHECK(nb_engine_module_attach(r->engine, &module, &r->module) == NB_OK);
    crew_count_add(&r->ready);
}

static nb_engine_stats frame(room *r) {
    EXPLORE_CHECK(nb_engine_frame_delta(r->engine, 0) == NB_OK);
    return nb_engine_stats_get(r->engine);
}

static void close_engine(room *r) {
    nb_result result = nb_engine_destroy(r->engine);
    while (r->is_impatient && result == NB_BUSY) result = nb_engine_destroy(r->engine);
    EXPLORE_CHECK(result == NB_OK);
    EXPLORE_CHECK(r->running == 0 && crew_count_now(&r->is_gone) == 1);
    crew_dismiss(&r->crew);
}

static void work(room *r, uint32_t worker) {
    crew_count_await(&r->ready, 1);
    crew_work(&r->crew, worker);
}

// --- jobs and merge ---

static void two_frames(void *user, uint32_t index) {
    room *r = user;
    if (index > 0) {
        work(r, index - 1);
        return;
    }
    open_engine(r);
    for (uint32_t i = 1; i <= 2; ++i) {
        nb_engine_stats stats = frame(r);
        // Time passes only when nobody can run: nothing is late here.
        EXPLORE_CHECK(stats.degraded_count == 0 && stats.late_job_count == 0);
        EXPLORE_CHECK(r->merge_count == i * JOB_COUNT && r->run_count == i * JOB_COUNT);
    }
    close_engine(r);
}

// --- a job that is late ---

static void publish_frames(room *r) {
    uint32_t region = 0;
    nb_snapshot_region_desc desc = {.name = "frame", .base = &r->value, .size_bytes = sizeof r->value};
    nb_snapshots *snapshots = nb_engine_snapshots(r->engine);
    EXPLORE_CHECK(snapshots != NULL && nb_snapshots_region_add(snapshots, &desc, &region) == NB_OK);
    r->has_value = true;
}

// Lets the jobs of the first frame end at any time after that frame, or as the engine ends.
static void let_go(room *r) {
    crew_count_await(&r->ready, 2);
    crew_count_add(&r->may_end);
}

static void hold_first_frame(room *r) {
    r->held_frame = 1;
    r->is_impatient = explore_random() % 2 == 0;
    r->adopts = explore_random() % 2 == 0;
    open_engine(r);
    publish_frames(r);
    nb_engine_stats stats = frame(r);
    EXPLORE_CHECK(stats.job_count == JOB_COUNT && stats.degraded_count == (r->held_count != 0 ? 1u : 0u));
    EXPLORE_CHECK(r->merge_count == r->run_count - r->held_count);
    crew_count_add(&r->ready);
}

static void late_into_frames(void *user, uint32_t index) {
    room *r = user;
    if (index == 1) let_go(r);
    if (index > 1) work(r, index - 2);
    if (index != 0) return;
    hold_first_frame(r);
    for (uint32_t i = 0; i < 2; ++i) {
        nb_engine_stats before = nb_engine_stats_get(r->engine);
        uint32_t merge_count = r->merge_count;
        r->value = before.frame_count;
        nb_engine_stats stats = frame(r);
        uint64_t started = stats.job_count - before.job_count;
        uint64_t late = stats.late_job_count - before.late_job_count;
        EXPLORE_CHECK(started + late == JOB_COUNT);
        if (crew_count_now(&r->may_end) == 0) EXPLORE_CHECK(late == r->held_count);
        // Nothing of these frames is late, and what is started is merged.
        EXPLORE_CHECK(stats.degraded_count == before.degraded_count && r->merge_count - merge_count == started);
        EXPLORE_CHECK(stats.adopted_count == r->adopted_count && (r->adopts || r->adopted_count == 0));
        // Each late job has run once, and what it has made was adopted, or dropped, or is there still.
        uint64_t gone = r->merge_count + stats.adopted_count + stats.late_drop_count;
        EXPLORE_CHECK(gone <= r->run_count && (r->run_count - gone <= JOB_COUNT));
        EXPLORE_CHECK(!r->adopts || stats.late_drop_count == 0);
    }
    close_engine(r);
}

static void late_into_the_end(void *user, uint32_t index) {
    room *r = user;
    if (index == 1) let_go(r);
    if (index > 1) work(r, index - 2);
    if (index != 0) return;
    hold_first_frame(r);
    close_engine(r); // waits for them
}

// The module is detached while its jobs are out, and leaves when they are back.
static void late_into_a_detach(void *user, uint32_t index) {
    room *r = user;
    if (index == 1) let_go(r);
    if (index > 1) work(r, index - 2);
    if (index != 0) return;
    hold_first_frame(r);
    EXPLORE_CHECK(nb_engine_module_detach(r->engine, r->module) == NB_OK);
    r->value = 1;
    frame(r);
    close_engine(r);
}

// --- a stop from another thread ---

static void stopped(void *user, uint32_t index) {
    room *r = user;
    if (index == 1) {
        crew_count_await(&r->ready, 1);
        EXPLORE_CHECK(nb_engine_stop(r->engine) == NB_OK);
        crew_count_add(&r->may_end);
    }
    if (index > 1) work(r, index - 2);
    if (index != 0) return;
    r->gives_way = true;
    open_engine(r);
    // One that was missed would never end.
    EXPLORE_CHECK(nb_engine_run_ticks(r->engine, UINT64_MAX) == NB_OK);
    crew_count_await(&r->may_end, 1);
    EXPLORE_CHECK(!nb_engine_is_stopping(r->engine));
    EXPLORE_CHECK(r->merge_count == r->run_count);
    close_engine(r);
}

// --- a replacement while tasks beget tasks ---

#define CHAIN_COUNT 3u

static nb_result submit_link(room *r, nb_scheduler *scheduler);

static void run_link(nb_task_context *context, void *argument) {
    room *r = *(room **)argument;
    EXPLORE_CHECK(!r->is_replaced);
    if (r->chain_left != 0) EXPLORE_CHECK(submit_link(r, context->scheduler) == NB_OK);
    EXPLORE_CHECK(!r->is_replaced);
    --r->chain_running;
}

static nb_result submit_link(room *r, nb_scheduler *scheduler) {
    nb_task_desc desc = {.run = run_link, .argument = &r, .argument_size_bytes = sizeof r};
    --r->chain_left, ++r->chain_running;
    return nb_task_submit(scheduler, &desc, NULL);
}

static nb_result begin_chain(const nb_context *context, void *user) {
    room *r = user;
    if (context->frame_index != 0) return NB_OK;
    r->chain_left = CHAIN_COUNT;
    return submit_link(r, context->scheduler);
}

static void replaced(void *user, uint32_t index) {
    room *r = user;
    if (index > 0) {
        work(r, index - 1);
        return;
    }
    open_engine(r);
    nb_module_desc desc = {.name = "crowd", .frame = begin_chain, .user = r};
    EXPLORE_CHECK(nb_engine_module_replace(r->engine, r->module, &desc) == NB_OK); // it has done nothing yet
    EXPLORE_CHECK(crew_count_now(&r->is_gone) == 1);
    frame(r);
    nb_module_desc next = {.name = "crowd"};
    nb_result result = nb_engine_module_replace(r->engine, r->module, &next);
    for (; result == NB_BUSY; result = nb_engine_module_replace(r->engine, r->module, &next)) {
        nbi_sleep_until_ns(nbi_clock_now_ns() + 10000000);
    }
    r->is_replaced = true;
    EXPLORE_CHECK(result == NB_OK && r->chain_left == 0 && r->chain_running == 0);
    close_engine(r);
}

EXPLORE(jobs_run_and_merge, 3, crew_create_two, two_frames, crew_end, sizeof(room))
EXPLORE(late_jobs_end_in_later_frames, 4, crew_create_two, late_into_frames, crew_end, sizeof(room))
EXPLORE(late_job_meets_the_end_of_the_engine, 3, crew_create_one, late_into_the_end, crew_end, sizeof(room))
EXPLORE(late_job_meets_the_end_of_its_module, 3, crew_create_one, late_into_a_detach, crew_end, sizeof(room))
EXPLORE(stop_is_not_missed, 3, crew_create_one, stopped, crew_end, sizeof(room))
EXPLORE(replacement_waits_for_tasks_of_tasks, 2, crew_create_one, replaced, crew_end, sizeof(room))
