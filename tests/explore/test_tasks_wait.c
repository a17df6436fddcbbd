// SPDX-License-Identifier: MIT
// Waiting for tasks, groups and frames: nobody sleeps on for something that is over or that it could do itself, and no
// wait ends before everything in it has.

#include "explore_tasks.h"

#define ROUND_COUNT 3

typedef struct room {
    crew crew;
    crew_count run_count;
    crew_count ready; // threads that have come to some place
    crew_count gate;  // what a task waits for
    crew_count ended; // waits that have returned
    nb_atomic_u32 is_over;
    nb_group group, inner;
    nb_task task, second;
    nb_fence_frame frame;
    uint32_t accepted_count;
} room;

static void create_with_fence(void *user) {
    room *r = user;
    crew_create(&r->crew, 1);
    crew_create_fence(&r->crew);
}

static void submit(room *r, nb_task_desc desc, nb_task *task) {
    EXPLORE_CHECK(crew_submit(&r->crew, desc, r, task) == NB_OK);
}

static void count_run(nb_task_context *context, void *argument) {
    (void)context;
    room *r = crew_argument(argument);
    EXPLORE_CHECK(nbi_atomic_load_relaxed_u32(&r->is_over) == 0);
    crew_count_add(&r->run_count);
}

static void begin(room *r) { EXPLORE_CHECK(nb_group_begin(r->crew.scheduler, &r->group) == NB_OK); }
static void end(room *r, uint32_t run_count) {
    EXPLORE_CHECK(nb_group_end(r->crew.scheduler, r->group, NB_NEVER_NS) == NB_OK);
    EXPLORE_CHECK(crew_count_now(&r->run_count) == run_count);
}

// --- groups one after the other in the same place, whose tasks submit into their own group ---

static void spawn_one(nb_task_context *context, void *argument) {
    room *r = crew_argument(argument);
    submit(r, (nb_task_desc){.run = count_run, .group = r->group}, NULL);
    count_run(context, argument);
}

static void reuse(void *user, uint32_t index) {
    room *r = user;
    if (crew_worked(&r->crew, index != 0, index - 1)) return;
    crew_coordinate(&r->crew);
    for (uint32_t i = 0; i < ROUND_COUNT; ++i) {
        begin(r);
        submit(r, (nb_task_desc){.run = spawn_one, .group = r->group}, NULL);
        submit(r, (nb_task_desc){.run = spawn_one, .group = r->group}, NULL);
        end(r, 4 * (i + 1));
    }
    crew_dismiss(&r->crew);
}

// --- a task that waits for a group of its own ---

static void spawn_and_wait(nb_task_context *context, void *argument) {
    room *r = crew_argument(argument);
    nb_group inner;
    EXPLORE_CHECK(nb_group_begin(context->scheduler, &inner) == NB_OK);
    uint32_t before = crew_count_now(&r->run_count);
    submit(r, (nb_task_desc){.run = count_run, .group = inner}, NULL);
    submit(r, (nb_task_desc){.run = count_run, .group = inner}, NULL);
    EXPLORE_CHECK(nb_group_end(context->scheduler, inner, NB_NEVER_NS) == NB_OK);
    EXPLORE_CHECK(crew_count_now(&r->run_count) >= before + 2);
    count_run(context, argument);
}

static void nested(void *user, uint32_t index) {
    room *r = user;
    if (crew_worked(&r->crew, index != 0, index - 1)) return;
    crew_coordinate(&r->crew);
    begin(r);
    submit(r, (nb_task_desc){.run = spawn_and_wait, .group = r->group}, NULL);
    submit(r, (nb_task_desc){.run = spawn_and_wait, .group = r->group}, NULL);
    end(r, 6);
    crew_dismiss(&r->crew);
}

// --- two threads wait for one task, and for the next one in its slot ---

static void wait_for(room *r, nb_task task, uint32_t run_count) {
    EXPLORE_CHECK(nb_task_wait(r->crew.scheduler, task, NB_NEVER_NS) == NB_OK);
    EXPLORE_CHECK(nb_task_is_complete(r->crew.scheduler, task));
    EXPLORE_CHECK(crew_count_now(&r->run_count) >= run_count);
}

static void two_waiters(void *user, uint32_t index) {
    room *r = user;
    if (crew_worked(&r->crew, index == 1, 0)) return;
    if (index == 0) {
        crew_coordinate(&r->crew);
        submit(r, (nb_task_desc){.run = count_run}, &r->task);
        crew_count_add(&r->ready);
    }
    crew_count_await(&r->ready, 1);
    wait_for(r, r->task, 1);
    if (index == 0) {
        submit(r, (nb_task_desc){.run = count_run}, &r->second);
        crew_count_add(&r->ready);
    }
    crew_count_await(&r->ready, 2);
    wait_for(r, r->second, 2);
    crew_count_add(&r->ended);
    if (index != 0) return;
    crew_count_await(&r->ended, 2);
    crew_dismiss(&r->crew);
}

// --- a sleeper that is poked after the slot it slept on has a new task ---

// Ends when somebody is about to sleep on it.
static void run_until_slept_on(nb_task_context *context, void *argument) {
    const nb_scheduler *scheduler = context->scheduler;
    while (context->thread_index != 0 && nbi_atomic_load_acquire_u32(&scheduler->sleeper_count) == 0) {
        nbi_thread_yield();
    }
    count_run(context, argument);
}

// Nobody but thread 1 runs what it submits, so nothing else takes its slots.
static void poked_late(void *user, uint32_t index) {
    room *r = user;
    nb_scheduler *scheduler = r->crew.scheduler;
    if (index == 0) {
        crew_coordinate(&r->crew);
        submit(r, (nb_task_desc){.run = run_until_slept_on}, &r->task);
        crew_count_add(&r->ready);
        wait_for(r, r->task, 1);
        return;
    }
    EXPLORE_CHECK(nb_scheduler_attach(scheduler) == NB_OK);
    crew_count_await(&r->ready, 1);
    nb_result result = nb_task_claim(scheduler, r->task);
    EXPLORE_CHECK(result == NB_OK || result == NB_BUSY || result == NB_EMPTY);
    for (uint32_t i = 0; i < 3; ++i) submit(r, (nb_task_desc){.run = count_run}, NULL);
    uint64_t run_count = 0;
    EXPLORE_CHECK(nb_scheduler_help(scheduler, NB_NEVER_NS, &run_count) == NB_OK);
    // The task itself may have been found by the help.
    EXPLORE_CHECK(crew_count_now(&r->run_count) >= 3 && run_count >= 3);
    EXPLORE_CHECK(nb_scheduler_detach(scheduler) == NB_OK);
}

// --- a sleeping waiter is made to look when its group gets a task that nobody else can run ---

static void run_when_open(nb_task_context *context, void *argument) {
    room *r = crew_argument(argument);
    crew_count_add(&r->ready);
    crew_count_await(&r->gate, 1);
    count_run(context, argument);
}

static void open_gate(nb_task_context *context, void *argument) {
    room *r = crew_argument(argument);
    count_run(context, argument);
    crew_count_add(&r->gate);
}

static void poke(void *user, uint32_t index) {
    room *r = user;
    if (crew_worked(&r->crew, index == 1, 0)) return;
    if (index == 2) {
        // The only worker is busy with a task that waits for the one submitted here.
        crew_count_await(&r->ready, 1);
        submit(r, (nb_task_desc){.run = open_gate, .group = r->group}, NULL);
        return;
    }
    crew_coordinate(&r->crew);
    begin(r);
    submit(r, (nb_task_desc){.run = run_when_open, .group = r->group}, NULL);
    crew_count_await(&r->ready, 1);
    end(r, 2);
    crew_dismiss(&r->crew);
}

// The same where there are no workers at all, and the busy thread is one that helped.
static void poke_without_workers(void *user, uint32_t index) {
    room *r = user;
    if (index == 0) {
        crew_coordinate(&r->crew);
        begin(r);
        submit(r, (nb_task_desc){.run = run_when_open, .group = r->group}, &r->task);
        crew_count_add(&r->ended);
        crew_count_await(&r->ready, 1);
        end(r, 2);
        return;
    }
    if (index == 1) {
        crew_count_await(&r->ended, 1);
        EXPLORE_CHECK(nb_task_claim(r->crew.scheduler, r->task) == NB_OK);
        return;
    }
    crew_count_await(&r->ready, 1);
    submit(r, (nb_task_desc){.run = open_gate, .group = r->group}, NULL);
}

// --- a group that ends while somebody adds to it ---

static void late_submit(void *user, uint32_t index) {
    room *r = user;
    if (crew_worked(&r->crew, index == 1, 0)) return;
    if (index == 2) {
        crew_count_await(&r->ready, 1);
        nb_result result = crew_submit(&r->crew, (nb_task_desc){.run = count_run, .group = r->group}, r, NULL);
        EXPLORE_CHECK(result == NB_OK || result == NB_CLOSED || result == NB_ERR_STALE);
        if (result == NB_OK) r->accepted_count = 1;
        crew_count_add(&r->ended);
        return;
    }
    crew_coordinate(&r->crew);
    begin(r);
    crew_count_add(&r->ready);
    submit(r, (nb_task_desc){.run = count_run, .group = r->group}, NULL);
    EXPLORE_CHECK(nb_group_end(r->crew.scheduler, r->group, NB_NEVER_NS) == NB_OK);
    // Whatever was accepted has run; nothing runs from now on, in the next group of that place neither.
    nbi_atomic_store_relaxed_u32(&r->is_over, 1);
    nb_group next;
    EXPLORE_CHECK(nb_group_begin(r->crew.scheduler, &next) == NB_OK);
    EXPLORE_CHECK(nb_group_end(r->crew.scheduler, next, NB_NEVER_NS) == NB_OK);
    crew_count_await(&r->ended, 1);
    EXPLORE_CHECK(crew_count_now(&r->run_count) == 1 + r->accepted_count);
    crew_dismiss(&r->crew);
}

// --- what a thread did for others does not stay with it ---

// Thread 0 waits for the task alone and may run it; thread 2 waits for its group.
static void left_in_a_pocket(void *user, uint32_t index) {
    room *r = user;
    if (crew_worked(&r->crew, index == 1, 0)) return;
    if (index == 2) {
        crew_count_await(&r->ready, 1);
        end(r, 1);
        crew_count_add(&r->ended);
        return;
    }
    crew_coordinate(&r->crew);
    begin(r);
    submit(r, (nb_task_desc){.run = count_run, .group = r->group}, &r->task);
    crew_count_add(&r->ready);
    wait_for(r, r->task, 1);
    crew_count_await(&r->ended, 1);
    crew_dismiss(&r->crew);
}

// A task of no group submits into one, and then waits for those who wait for that group.
static void submit_and_stay(nb_task_context *context, void *argument) {
    room *r = crew_argument(argument);
    submit(r, (nb_task_desc){.run = count_run, .group = r->group}, NULL);
    crew_count_add(&r->ready);
    crew_count_await(&r->ended, 1);
    count_run(context, argument);
}

static void hoarded(void *user, uint32_t index) {
    room *r = user;
    if (crew_worked(&r->crew, index == 1, 0)) return;
    crew_coordinate(&r->crew);
    begin(r);
    submit(r, (nb_task_desc){.run = submit_and_stay}, NULL);
    crew_count_await(&r->ready, 1);
    end(r, 1);
    crew_count_add(&r->ended);
    crew_count_await(&r->run_count, 2);
    crew_dismiss(&r->crew);
}

// --- frames ---

static void spawn_in_frame(nb_task_context *context, void *argument) {
    submit(crew_argument(argument), (nb_task_desc){.run = count_run, .lifetime = NB_LIFETIME_FRAME}, NULL);
    count_run(context, argument);
}

static void frames(void *user, uint32_t index) {
    room *r = user;
    if (crew_worked(&r->crew, index != 0, index - 1)) return;
    crew_coordinate(&r->crew);
    nb_task_desc desc = {.run = spawn_in_frame, .lifetime = NB_LIFETIME_FRAME, .fence = r->crew.fence};
    for (uint32_t i = 0; i < ROUND_COUNT; ++i) {
        nb_fence_frame frame;
        EXPLORE_CHECK(nb_fence_begin(r->crew.fence, &frame) == NB_OK);
        submit(r, desc, NULL);
        submit(r, desc, NULL);
        nb_fence_report report;
        nb_result result = nb_scheduler_frame_wait(r->crew.scheduler, r->crew.fence, frame, NB_NEVER_NS, &report);
        EXPLORE_CHECK(result == NB_OK && report.status == NB_FENCE_COMPLETE);
        EXPLORE_CHECK(crew_count_now(&r->run_count) == 4 * (i + 1));
        // A task that comes too late leaves the frame alone.
        EXPLORE_CHECK(crew_submit(&r->crew, desc, r, NULL) == NB_CLOSED);
    }
    crew_dismiss(&r->crew);
}

// The group is waited for here, its frame by another thread that cannot help.
static void frame_of_a_group(void *user, uint32_t index) {
    room *r = user;
    if (crew_worked(&r->crew, index == 1, 0)) return;
    if (index == 2) {
        crew_count_await(&r->ready, 1);
        EXPLORE_CHECK(nb_fence_wait(r->crew.fence, r->frame, NB_NEVER_NS, NULL, NULL) == NB_OK);
        EXPLORE_CHECK(crew_count_now(&r->run_count) == 2);
        crew_count_add(&r->ended);
        return;
    }
    crew_coordinate(&r->crew);
    EXPLORE_CHECK(nb_fence_begin(r->crew.fence, &r->frame) == NB_OK);
    begin(r);
    nb_task_desc desc = {.run = count_run, .lifetime = NB_LIFETIME_FRAME, .fence = r->crew.fence, .group = r->group};
    submit(r, desc, NULL);
    submit(r, desc, NULL);
    EXPLORE_CHECK(nb_fence_seal(r->crew.fence) == NB_OK);
    crew_count_add(&r->ready);
    end(r, 2);
    crew_count_await(&r->ended, 1);
    crew_dismiss(&r->crew);
}

EXPLORE(groups_reuse_a_place, 2, crew_create_one, reuse, crew_end, sizeof(room))
EXPLORE(groups_reuse_a_place_two_workers, 3, crew_create_two, reuse, crew_end, sizeof(room))
EXPLORE(nested_groups, 2, crew_create_one, nested, crew_end, sizeof(room))
EXPLORE(nested_groups_two_workers, 3, crew_create_two, nested, crew_end, sizeof(room))
EXPLORE(two_threads_wait_for_a_task, 3, crew_create_one, two_waiters, crew_end, sizeof(room))
EXPLORE(late_poke_spares_the_next_task, 2, crew_create_none, poked_late, crew_end, sizeof(room))
EXPLORE(sleeping_waiter_is_poked, 3, crew_create_one, poke, crew_end, sizeof(room))
EXPLORE(sleeping_waiter_is_poked_without_workers, 3, crew_create_none, poke_without_workers, crew_end, sizeof(room))
EXPLORE(submit_into_an_ending_group, 3, crew_create_one, late_submit, crew_end, sizeof(room))
EXPLORE(task_wait_leaves_no_unit_behind, 3, crew_create_one, left_in_a_pocket, crew_end, sizeof(room))
EXPLORE(running_task_hoards_no_units, 2, crew_create_one, hoarded, crew_end, sizeof(room))
EXPLORE(frames_one_after_the_other, 2, create_with_fence, frames, crew_end, sizeof(room))
EXPLORE(frame_waits_for_a_group_ended_elsewhere, 3, create_with_fence, frame_of_a_group, crew_end, sizeof(room))
