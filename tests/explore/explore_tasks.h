// SPDX-License-Identifier: MIT
#pragma once

// A scheduler whose threads are fibers: the explorer starts no threads, so the lanes of the workers are made here and
// given to fibers, which run the workers' own loop in them.

#include "explore.h"

#include "nebula/tasks.h"
#include "tasks/scheduler.h"

// Small enough that slots come round within a schedule, and no power of two more than needed.
#define CREW_TASK_COUNT 8
#define CREW_GROUP_COUNT 64

// A number that threads sleep on until it is large enough: how tests wait without the scheduler's help.
typedef struct crew_count {
    nb_atomic_u32 value;
} crew_count;

static inline void crew_count_add(crew_count *count) {
    nbi_atomic_fetch_add_seq_cst_u32(&count->value, 1);
    nbi_unpark(&count->value, UINT32_MAX);
}

static inline uint32_t crew_count_now(const crew_count *count) { return nbi_atomic_load_acquire_u32(&count->value); }

static inline void crew_count_await(const crew_count *count, uint32_t wanted) {
    for (;;) {
        uint32_t value = crew_count_now(count);
        if (value >= wanted) return;
        nbi_park_until(&count->value, value, NB_NEVER_NS);
    }
}

typedef struct crew {
    nb_scheduler *scheduler;
    nb_fence *fence; // for frame-bound tasks
    uint32_t worker_count;
} crew;

// What nb_scheduler_create does for the workers, short of starting them. For setup.
static inline void crew_create(crew *c, uint32_t worker_count) {
    nb_scheduler_desc desc = {.worker_count = NB_WORKER_COUNT_NONE,
                              .task_count_max = CREW_TASK_COUNT,
                              .group_count_max = CREW_GROUP_COUNT,
                              .dependency_count_max = 4 * CREW_TASK_COUNT,
                              .hooks = explore_hooks()};
    EXPLORE_CHECK(nb_scheduler_create(&desc, &c->scheduler) == NB_OK);
    nb_scheduler *scheduler = c->scheduler;
    for (uint32_t i = 1; i <= worker_count; ++i) {
        EXPLORE_CHECK(nbi_lane_create(scheduler, i) == NB_OK);
        scheduler->lanes[i]->is_worker = true;
    }
    scheduler->worker_count = c->worker_count = worker_count;
    scheduler->floating_max = worker_count > 1 ? worker_count - 1 : 1;
    nbi_atomic_store_release_u32(&scheduler->lane_count, 1 + worker_count);
    nbi_lane_disown(scheduler->lanes[0]);
}

static inline void crew_create_fence(crew *c) {
    nb_fence_desc desc = {.slot_count = 2, .slot_count_max = 2, .ticket_count_max = 1, .hooks = explore_hooks()};
    EXPLORE_CHECK(nb_fence_create(&desc, &c->fence) == NB_OK);
    nbi_serve_frames(c->scheduler); // as after the first task of a frame: the ceiling on background work holds
}

// The calling fiber is the coordinator from now on.
static inline void crew_coordinate(crew *c) { nbi_lane_own_by_caller(c->scheduler->lanes[0]); }

// The calling fiber is a worker, until crew_dismiss.
static inline void crew_work(crew *c, uint32_t worker) { nbi_worker_main(c->scheduler->lanes[1 + worker]); }

// True for a worker, whose fiber has done its part when this returns.
static inline bool crew_worked(crew *c, bool is_worker, uint32_t worker) {
    if (is_worker) crew_work(c, worker);
    return is_worker;
}

// Sends the workers home, as nb_scheduler_destroy does before it waits for them.
static inline void crew_dismiss(crew *c) {
    nbi_atomic_exchange_seq_cst_u32(&c->scheduler->is_stopping, NBI_STOP_WORKERS);
    nbi_wake_all(c->scheduler);
}

// Nothing is left over in any lane, and everything that was accepted has ended. For check.
static inline void crew_destroy(crew *c) {
    nb_scheduler *scheduler = c->scheduler;
    for (uint32_t i = 0; i < NBI_LANE_COUNT_MAX; ++i) {
        const nbi_lane *lane = scheduler->lanes[i];
        if (lane == NULL) continue;
        EXPLORE_CHECK(lane->group_pocket.count == 0 && lane->frame_pocket.count == 0);
        EXPLORE_CHECK(lane->running == NULL && lane->borrow_count == 0);
    }
    EXPLORE_CHECK(scheduler->sleepers == NULL && scheduler->sleeper_count.value == 0);
    nbi_lane_own_by_caller(scheduler->lanes[0]);
    nbi_task_cancel_all(scheduler);
    nb_scheduler_stats stats = nb_scheduler_stats_get(scheduler);
    EXPLORE_CHECK(stats.alive_count == 0);
    EXPLORE_CHECK(stats.submit_count == stats.run_count + stats.cancel_count);
    EXPLORE_CHECK(nb_scheduler_destroy(scheduler) == NB_OK);
    if (c->fence != NULL) EXPLORE_CHECK(nb_fence_destroy(c->fence) == NB_OK);
}

// Setup and check of tests whose user begins with a crew.
static inline void crew_create_none(void *user) { crew_create(user, 0); }
static inline void crew_create_one(void *user) { crew_create(user, 1); }
static inline void crew_create_two(void *user) { crew_create(user, 2); }
static inline void crew_end(void *user) { crew_destroy(user); }

// Submits `run` with a pointer as its argument.
static inline nb_result crew_submit(crew *c, nb_task_desc desc, void *argument, nb_task *task) {
    desc.argument = &argument;
    desc.argument_size_bytes = sizeof argument;
    return nb_task_submit(c->scheduler, &desc, task);
}

static inline void *crew_argument(void *argument) { return *(void **)argument; }
