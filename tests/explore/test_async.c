// SPDX-License-Identifier: MIT
// Jobs under every schedule: submits, cancels, steps, blocking calls and polls beside each other. Every accepted job
// ends exactly once, one that was cancelled in time is not published, and nobody sleeps on for something that is over.

#include "explore_tasks.h"
#include "support/async_job.h"

#include "frame/async/async.h"

#define JOB_COUNT 3

typedef struct room room;

typedef struct job_state {
    room *room;
    uint32_t number;
} job_state;

struct room {
    crew crew;
    nb_async *async;
    nb_async_job jobs[JOB_COUNT];
    crew_count submitted, over; // jobs with a handle; jobs that have ended
    bool is_cancelled[JOB_COUNT];
    uint32_t commit_counts[JOB_COUNT], publish_counts[JOB_COUNT], discard_counts[JOB_COUNT];
    uint32_t step_counts[JOB_COUNT], io_counts[JOB_COUNT];
    uint32_t coordinator; // the fiber that polls
    bool is_running[JOB_COUNT];
    nb_async_status statuses[2]; // of the first steps of each job
    nb_async_frame frame;
};

// --- callbacks ---

static nb_result commit(void *host, void *state) {
    job_state *s = state;
    EXPLORE_CHECK(host == s->room && nbi_thread_id() == s->room->coordinator);
    EXPLORE_CHECK(++s->room->commit_counts[s->number] == 1);
    return NB_OK;
}

static void end(job_state *s, uint32_t *count) {
    room *r = s->room;
    EXPLORE_CHECK(nbi_thread_id() == r->coordinator && !r->is_running[s->number]);
    ++*count;
    EXPLORE_CHECK(r->publish_counts[s->number] + r->discard_counts[s->number] == 1);
    crew_count_add(&r->over);
}

static void publish(void *host, void *state) {
    job_state *s = state;
    (void)host;
    EXPLORE_CHECK(s->room->commit_counts[s->number] == 1);
    end(s, &s->room->publish_counts[s->number]);
}

static void discard(void *host, void *state, nb_result reason) {
    job_state *s = state;
    (void)host;
    EXPLORE_CHECK(reason == NB_CANCELLED);
    end(s, &s->room->discard_counts[s->number]);
}

static nb_result block(void *argument) {
    job_state *s = argument;
    EXPLORE_CHECK(!s->room->is_running[s->number]);
    s->room->is_running[s->number] = true;
    nbi_thread_yield();
    s->room->is_running[s->number] = false;
    ++s->room->io_counts[s->number];
    return NB_EMPTY;
}

static nb_async_status step(nb_async_call *call, void *state) {
    job_state *s = state;
    room *r = s->room;
    EXPLORE_CHECK(!r->is_running[s->number] && call->step == r->step_counts[s->number]);
    r->is_running[s->number] = true;
    nbi_thread_yield();
    r->is_running[s->number] = false;
    ++r->step_counts[s->number];
    call->io_run = block;
    call->io_argument = s;
    if (call->step > 0 && r->statuses[call->step - 1] == NB_ASYNC_STATUS_IO) EXPLORE_CHECK(call->result == NB_EMPTY);
    return call->step < 2 ? r->statuses[call->step++] : NB_ASYNC_STATUS_DONE;
}

// --- the room ---

static void create(room *r, uint32_t worker_count, nb_async_status first, nb_async_status second) {
    crew_create(&r->crew, worker_count);
    nb_async_desc desc = {.scheduler = r->crew.scheduler,
                          .job_count_max = 2, // so that slots come round
                          .state_bytes_max = sizeof(job_state),
                          .hooks = explore_hooks()};
    nbi_lane_own_by_caller(r->crew.scheduler->lanes[0]);
    EXPLORE_CHECK(nb_async_create(&desc, &r->async) == NB_OK);
    nbi_lane_disown(r->crew.scheduler->lanes[0]);
    // The explorer starts no threads: a fiber runs the io thread's loop.
    nbi_atomic_store_relaxed_u32(&r->async->io_is_started, 1);
    r->statuses[0] = first;
    r->statuses[1] = second;
    r->frame.host = r;
}

static void create_plain(void *user) { create(user, 1, NB_ASYNC_STATUS_DONE, NB_ASYNC_STATUS_DONE); }
static void create_yielding(void *user) { create(user, 2, NB_ASYNC_STATUS_YIELD, NB_ASYNC_STATUS_YIELD); }
static void create_yielding_one(void *user) { create(user, 1, NB_ASYNC_STATUS_YIELD, NB_ASYNC_STATUS_YIELD); }
static void create_pausing(void *user) { create(user, 1, NB_ASYNC_STATUS_FRAME, NB_ASYNC_STATUS_YIELD); }
static void create_io(void *user) { create(user, 1, NB_ASYNC_STATUS_IO, NB_ASYNC_STATUS_YIELD); }

static bool submit(room *r, uint32_t number) {
    job_state state = {r, number};
    nb_async_job_desc desc = async_job_of(step, commit, publish, discard, &state, sizeof state);
    nb_async_job job;
    nb_result result = nb_async_submit(r->async, &desc, &job);
    EXPLORE_CHECK(result == NB_OK || result == NB_FULL || result == NB_CLOSED);
    if (result == NB_OK) r->jobs[number] = job;
    return result == NB_OK;
}

static void cancel(room *r, uint32_t number) {
    nb_async_job job = r->jobs[number];
    bool was_over = r->publish_counts[number] + r->discard_counts[number] != 0;
    nb_result result = nb_async_cancel(r->async, job);
    EXPLORE_CHECK(result == NB_OK || result == NB_EMPTY);
    if (result == NB_OK) EXPLORE_CHECK(!was_over && r->publish_counts[number] == 0);
    if (result == NB_OK) r->is_cancelled[number] = true;
}

static void frame(room *r) {
    EXPLORE_CHECK(nb_async_publish(r->async, &r->frame) == NB_OK);
    EXPLORE_CHECK(nb_async_poll(r->async, &r->frame) == NB_OK);
}

// Frames until so many jobs are over; then everybody may go home.
static void coordinate(room *r, uint32_t wanted) {
    crew_coordinate(&r->crew);
    r->coordinator = (uint32_t)nbi_thread_id();
    while (crew_count_now(&r->over) < wanted) {
        frame(r);
        if (r->async->staged_count != 0) continue;
        // Without workers the next step is this fiber's own to run, and nothing says when.
        if (crew_count_now(&r->over) >= wanted) break;
        if (r->crew.worker_count == 0)
            nbi_thread_yield();
        else
            nbi_async_await_inbox(r->async, NB_NEVER_NS);
    }
    nbi_async_io_stop(r->async);
    crew_dismiss(&r->crew);
    nbi_lane_disown(r->crew.scheduler->lanes[0]);
}

static void destroy(void *user) {
    room *r = user;
    nb_async_stats stats = nb_async_stats_get(r->async);
    EXPLORE_CHECK(stats.live_count == 0 && stats.submit_count == stats.publish_count + stats.discard_count);
    for (uint32_t i = 0; i < JOB_COUNT; ++i) {
        if (r->is_cancelled[i]) EXPLORE_CHECK(r->publish_counts[i] == 0);
        EXPLORE_CHECK(r->publish_counts[i] + r->discard_counts[i] == (r->jobs[i].value != 0 ? 1 : 0));
    }
    // After a drain no runner is left, nor was one refused because it came too late.
    for (uint32_t i = 0; i < NB_PRIORITY_COUNT; ++i) {
        EXPLORE_CHECK(r->async->group.value != 0 || r->async->runner_count[i] == 0);
    }
    nbi_lane_own_by_caller(r->crew.scheduler->lanes[0]);
    nbi_task_cancel_all(r->crew.scheduler);
    EXPLORE_CHECK(nb_async_destroy(r->async) == NB_OK);
    nbi_lane_disown(r->crew.scheduler->lanes[0]);
    crew_destroy(&r->crew);
}

// --- cases: fiber 0 polls, the last ones work and block, those between submit and cancel ---

static void submit_all(room *r) {
    for (uint32_t i = 0; i < JOB_COUNT; ++i) {
        if (i >= 2) crew_count_await(&r->over, i - 1); // two at a time
        while (!submit(r, i)) nbi_thread_yield();      // the slot is about to be freed
        crew_count_add(&r->submitted);
    }
}

static void cancel_some(room *r) {
    uint32_t first = (uint32_t)explore_random() % JOB_COUNT;
    crew_count_await(&r->submitted, first + 1);
    cancel(r, first);
}

static void plain(void *user, uint32_t index) {
    room *r = user;
    if (index == 0) coordinate(r, JOB_COUNT);
    if (index == 1) submit_all(r);
    if (index == 2) cancel_some(r);
    if (index >= 3 && index < 3 + r->crew.worker_count) crew_work(&r->crew, index - 3);
    if (index == 3 + r->crew.worker_count) nbi_async_io_main(r->async);
}

// Two cancel the same job: one of them is told that it was the first.
static void two_cancels(void *user, uint32_t index) {
    room *r = user;
    if (index == 0) coordinate(r, 1);
    if (index == 1) {
        EXPLORE_CHECK(submit(r, 0));
        crew_count_add(&r->submitted);
    }
    if (index == 1 || index == 2) {
        crew_count_await(&r->submitted, 1);
        nb_result result = nb_async_cancel(r->async, r->jobs[0]);
        EXPLORE_CHECK(result == NB_OK || result == NB_EMPTY || result == NB_CANCELLED);
        if (result == NB_OK) EXPLORE_CHECK(!r->is_cancelled[0]);
        if (result == NB_OK) r->is_cancelled[0] = true;
    }
    if (index == 3) crew_work(&r->crew, 0);
    if (index == 4) nbi_async_io_main(r->async);
}

// A handle of an ended job does nothing to the next in its slot.
static void stale_cancel(void *user, uint32_t index) {
    room *r = user;
    if (index == 0) coordinate(r, 3);
    if (index == 1) submit_all(r);
    if (index == 2) {
        crew_count_await(&r->over, 1);
        for (uint32_t i = 0; i < JOB_COUNT; ++i) {
            bool was_over = r->publish_counts[i] == 1;
            nb_result result = was_over ? nb_async_cancel(r->async, r->jobs[i]) : NB_EMPTY;
            EXPLORE_CHECK(result == NB_EMPTY);
        }
    }
    if (index == 3) crew_work(&r->crew, 0);
    if (index == 4) nbi_async_io_main(r->async);
}

// A drain at any moment: it returns, and nothing is left.
static void drain(void *user, uint32_t index) {
    room *r = user;
    if (index == 0) {
        crew_coordinate(&r->crew);
        r->coordinator = (uint32_t)nbi_thread_id();
        if (explore_random() % 2 == 0) frame(r);
        EXPLORE_CHECK(nb_async_drain(r->async, &r->frame, NB_NEVER_NS) == NB_OK);
        EXPLORE_CHECK(nb_async_stats_get(r->async).live_count == 0);
        EXPLORE_CHECK(nbi_atomic_load_relaxed_u32(&r->async->submitting_count) == 0);
        nbi_async_io_stop(r->async);
        crew_dismiss(&r->crew);
        nbi_lane_disown(r->crew.scheduler->lanes[0]);
    }
    if (index == 1) {
        for (uint32_t i = 0; i < 2; ++i) submit(r, i);
    }
    if (index == 2) crew_work(&r->crew, 0);
    if (index == 3) nbi_async_io_main(r->async);
}

// A job inside its blocking call is cancelled while a drain waits for it: its next runner does not come to a group that
// has ended.
static void create_blocked(void *user) {
    room *r = user;
    create(r, 0, NB_ASYNC_STATUS_IO, NB_ASYNC_STATUS_IO);
    nbi_lane_own_by_caller(r->crew.scheduler->lanes[0]);
    EXPLORE_CHECK(submit(r, 0));
    EXPLORE_CHECK(nb_scheduler_help(r->crew.scheduler, 0, NULL) == NB_OK);
    EXPLORE_CHECK(nb_async_stage_get(r->async, r->jobs[0]) == NB_ASYNC_STAGE_IO);
    nbi_lane_disown(r->crew.scheduler->lanes[0]);
}

static void drain_and_cancel(void *user, uint32_t index) {
    room *r = user;
    if (index == 0) {
        crew_coordinate(&r->crew);
        r->coordinator = (uint32_t)nbi_thread_id();
        EXPLORE_CHECK(nb_async_drain(r->async, &r->frame, NB_NEVER_NS) == NB_OK);
        nbi_async_io_stop(r->async);
        nbi_lane_disown(r->crew.scheduler->lanes[0]);
    }
    if (index == 1) nbi_async_io_main(r->async);
    if (index == 2) nb_async_cancel(r->async, r->jobs[0]);
}

// A cancel and the publication at the same moment: what the cancel was told is what happens.
static void create_staged(void *user) {
    room *r = user;
    create(r, 0, NB_ASYNC_STATUS_DONE, NB_ASYNC_STATUS_DONE);
    nbi_lane_own_by_caller(r->crew.scheduler->lanes[0]);
    EXPLORE_CHECK(submit(r, 0));
    r->coordinator = (uint32_t)nbi_thread_id();
    EXPLORE_CHECK(nb_async_poll(r->async, &r->frame) == NB_OK && r->commit_counts[0] == 1);
    nbi_lane_disown(r->crew.scheduler->lanes[0]);
}

static void publish_and_cancel(void *user, uint32_t index) {
    room *r = user;
    if (index == 0) {
        r->coordinator = (uint32_t)nbi_thread_id();
        EXPLORE_CHECK(nb_async_publish(r->async, &r->frame) == NB_OK);
    }
    if (index == 1) cancel(r, 0);
}

// Nobody works: the poll does.
static void create_alone(void *user) { create(user, 0, NB_ASYNC_STATUS_YIELD, NB_ASYNC_STATUS_IO); }

EXPLORE(cancel_beside_steps_and_polls, 5, create_plain, plain, destroy, sizeof(room))
EXPLORE(cancel_beside_yields, 6, create_yielding, plain, destroy, sizeof(room))
EXPLORE(cancel_beside_frame_waits, 5, create_pausing, plain, destroy, sizeof(room))
EXPLORE(cancel_beside_blocking_calls, 5, create_io, plain, destroy, sizeof(room))
EXPLORE(without_workers, 4, create_alone, plain, destroy, sizeof(room))
EXPLORE(two_cancels_of_one_job, 5, create_yielding_one, two_cancels, destroy, sizeof(room))
EXPLORE(two_cancels_beside_a_blocking_call, 5, create_io, two_cancels, destroy, sizeof(room))
EXPLORE(stale_cancel_does_nothing, 5, create_plain, stale_cancel, destroy, sizeof(room))
EXPLORE(drain_beside_submits_and_yields, 4, create_pausing, drain, destroy, sizeof(room))
EXPLORE(drain_beside_blocking_calls, 4, create_io, drain, destroy, sizeof(room))
EXPLORE(cancel_beside_publication, 2, create_staged, publish_and_cancel, destroy, sizeof(room))
EXPLORE(drain_beside_a_cancel, 3, create_blocked, drain_and_cancel, destroy, sizeof(room))
