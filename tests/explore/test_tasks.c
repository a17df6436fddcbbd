// SPDX-License-Identifier: MIT
// The scheduler's tasks: submitted while workers go to sleep, run or cancelled exactly once, stopped.

#include "explore_tasks.h"

typedef struct room {
    crew crew;
    crew_count run_count; // tasks that ran
    crew_count ready;     // submitters that are through
    crew_count gate;      // a task that waits for another is through with it
    nb_task task;
    nb_token *token;
    nb_fence_frame frame;
    uint32_t cancelled_count, accepted_count, refused_count;
    uint64_t stopped_count; // by the token
} room;

static void count_run(nb_task_context *context, void *argument) {
    (void)context;
    room *r = crew_argument(argument);
    crew_count_add(&r->run_count);
}

static nb_result submit(room *r, nb_task_desc desc, nb_task *task) { return crew_submit(&r->crew, desc, r, task); }

// --- nobody sleeps while something is queued ---

// One thread has a lane of its own, the other shares one; neither helps.
static void submit_and_look(room *r, uint32_t index, uint32_t total) {
    if (index == 0) crew_coordinate(&r->crew);
    for (uint32_t i = 0; i < 2; ++i) {
        EXPLORE_CHECK(submit(r, (nb_task_desc){.run = count_run}, NULL) == NB_OK);
        if (explore_random() % 2 == 0) crew_count_await(&r->run_count, i + 1);
    }
    crew_count_add(&r->ready);
    if (index != 0) return;
    crew_count_await(&r->ready, total / 2);
    crew_count_await(&r->run_count, total);
    crew_dismiss(&r->crew);
}

static void parking_worker(void *user, uint32_t index) {
    room *r = user;
    if (index == 0) submit_and_look(r, 0, 2);
    if (index == 1) crew_work(&r->crew, 0);
}

static void parking_workers(void *user, uint32_t index) {
    room *r = user;
    if (index < 2) submit_and_look(r, index, 4);
    if (index >= 2) crew_work(&r->crew, index - 2);
}

// --- tasks that need a worker each ---

// Ends only when as many run as there are workers.
static void meet(nb_task_context *context, void *argument) {
    (void)context;
    room *r = crew_argument(argument);
    crew_count_add(&r->gate);
    crew_count_await(&r->gate, r->crew.worker_count);
    crew_count_add(&r->run_count);
}

// Bound to the frame: of floating tasks the workers may not run one each.
static void submit_meet(room *r) {
    nb_task_desc desc = {.run = meet, .lifetime = NB_LIFETIME_FRAME, .fence = r->crew.fence};
    EXPLORE_CHECK(submit(r, desc, NULL) == NB_OK);
}

static void meeting(void *user, uint32_t index) {
    room *r = user;
    if (crew_worked(&r->crew, index >= 2, index - 2)) return;
    // Wakes one worker, whose wake-up may be late: it must not be taken for that of another task.
    EXPLORE_CHECK(submit(r, (nb_task_desc){.run = count_run}, NULL) == NB_OK);
    submit_meet(r);
    if (index == 0 && r->crew.worker_count > 2) submit_meet(r);
    crew_count_add(&r->ready);
    if (index != 0) return;
    crew_count_await(&r->ready, 2);
    crew_count_await(&r->run_count, 2 + r->crew.worker_count);
    crew_dismiss(&r->crew);
}

// As short as can be: one of the workers may find the first task on its way to sleep, and be taken for a sleeper.
static void meeting_of_two(void *user, uint32_t index) {
    room *r = user;
    if (crew_worked(&r->crew, index > 0, index - 1)) return;
    submit_meet(r);
    submit_meet(r);
    crew_count_await(&r->run_count, 2);
    crew_dismiss(&r->crew);
}

// A ring full of dead entries, with a living one in front, is cleaned while the workers go to sleep.
static void cleaning(void *user, uint32_t index) {
    room *r = user;
    if (index > 0) {
        crew_count_await(&r->ready, 1);
        crew_work(&r->crew, index - 1);
        return;
    }
    crew_coordinate(&r->crew);
    submit_meet(r);
    nb_task_desc dead = {.run = count_run, .lifetime = NB_LIFETIME_FRAME, .fence = r->crew.fence};
    for (uint32_t i = 1; i < CREW_TASK_COUNT; ++i) {
        nb_task task;
        EXPLORE_CHECK(submit(r, dead, &task) == NB_OK);
        EXPLORE_CHECK(nb_task_cancel(r->crew.scheduler, task) == NB_OK);
    }
    crew_count_add(&r->ready);
    submit_meet(r);
    crew_count_await(&r->run_count, 2);
    crew_dismiss(&r->crew);
}

static void create_with_frame(room *r, uint32_t worker_count) {
    crew_create(&r->crew, worker_count);
    crew_create_fence(&r->crew);
    EXPLORE_CHECK(nb_fence_begin(r->crew.fence, &r->frame) == NB_OK);
}
static void create_two_with_frame(void *user) { create_with_frame(user, 2); }
static void create_three_with_frame(void *user) { create_with_frame(user, 3); }

static void destroy_with_frame(void *user) {
    room *r = user;
    EXPLORE_CHECK(nb_fence_wait(r->crew.fence, r->frame, 0, NULL, NULL) == NB_OK);
    crew_destroy(&r->crew);
}

// --- the ceiling on workers busy with floating work ---

// Keeps a worker until the floating tasks have run on the other.
static void await_floating(nb_task_context *context, void *argument) {
    (void)context;
    room *r = crew_argument(argument);
    crew_count_await(&r->run_count, 2);
    crew_count_add(&r->gate);
}

static void ceiling(void *user, uint32_t index) {
    room *r = user;
    if (crew_worked(&r->crew, index >= 2, index - 2)) return;
    nb_task_desc frame_bound = {.run = await_floating, .lifetime = NB_LIFETIME_FRAME, .fence = r->crew.fence};
    nb_task_desc floating = {.run = count_run};
    EXPLORE_CHECK(submit(r, floating, NULL) == NB_OK);
    if (index == 1) EXPLORE_CHECK(submit(r, frame_bound, NULL) == NB_OK);
    crew_count_add(&r->ready);
    if (index != 0) return;
    crew_count_await(&r->gate, 1);
    crew_count_await(&r->ready, 2);
    crew_dismiss(&r->crew);
}

// --- run, claim, cancel and promote: one of them has the task ---

static void by_handle(void *user, uint32_t index) {
    room *r = user;
    nb_scheduler *scheduler = r->crew.scheduler;
    if (crew_worked(&r->crew, index == 3, 0)) return;
    if (index == 0) {
        crew_coordinate(&r->crew);
        EXPLORE_CHECK(submit(r, (nb_task_desc){.run = count_run, .priority = NB_PRIORITY_LOW}, &r->task) == NB_OK);
        crew_count_add(&r->gate);
        EXPLORE_CHECK(nb_task_wait(scheduler, r->task, NB_NEVER_NS) == NB_OK);
        EXPLORE_CHECK(nb_task_is_complete(scheduler, r->task));
        // The slot's next task must not be mistaken for it.
        EXPLORE_CHECK(submit(r, (nb_task_desc){.run = count_run}, NULL) == NB_OK);
        crew_count_await(&r->ready, 2);
        crew_count_await(&r->run_count, 2 - r->cancelled_count);
        crew_dismiss(&r->crew);
        return;
    }
    crew_count_await(&r->gate, 1);
    nb_result result = index == 1 ? nb_task_promote(scheduler, r->task, NB_PRIORITY_HIGH) : NB_OK;
    EXPLORE_CHECK(result == NB_OK || result == NB_BUSY || result == NB_EMPTY);
    result = index == 1 ? nb_task_claim(scheduler, r->task) : nb_task_cancel(scheduler, r->task);
    EXPLORE_CHECK(result == NB_OK || result == NB_BUSY || result == NB_EMPTY);
    if (index == 2 && result == NB_OK) r->cancelled_count = 1;
    if (result == NB_OK) EXPLORE_CHECK(nb_task_is_complete(scheduler, r->task));
    crew_count_add(&r->ready);
}

static void by_handle_check(void *user) {
    room *r = user;
    EXPLORE_CHECK(crew_count_now(&r->run_count) == 2 - r->cancelled_count);
    crew_destroy(&r->crew);
}

// --- a token's tasks are counted by its cancel, or run, never both ---

static void create_with_token(void *user) {
    room *r = user;
    crew_create(&r->crew, 1);
    nb_token_desc desc = {.hooks = explore_hooks()};
    EXPLORE_CHECK(nb_token_create(&desc, &r->token) == NB_OK);
}

static void token_race(void *user, uint32_t index) {
    room *r = user;
    if (crew_worked(&r->crew, index == 2, 0)) return;
    if (index == 1) {
        nb_cancel_counts counts;
        EXPLORE_CHECK(nb_token_cancel(r->token, NB_CANCEL_SHUTDOWN, 0, &counts) == NB_OK);
        r->stopped_count = counts.task_queued_count;
        return;
    }
    crew_coordinate(&r->crew);
    nb_group group;
    EXPLORE_CHECK(nb_group_begin(r->crew.scheduler, &group) == NB_OK);
    for (uint32_t i = 0; i < 3; ++i) {
        nb_result result = submit(r, (nb_task_desc){.run = count_run, .token = r->token, .group = group}, NULL);
        EXPLORE_CHECK(result == NB_OK || result == NB_CANCELLED);
        if (result == NB_OK) ++r->accepted_count;
    }
    nb_result result = nb_group_end(r->crew.scheduler, group, NB_NEVER_NS);
    uint32_t run_count = crew_count_now(&r->run_count);
    EXPLORE_CHECK(run_count == r->accepted_count || result == NB_CANCELLED);
    EXPLORE_CHECK(run_count < r->accepted_count || result == NB_OK);
    crew_dismiss(&r->crew);
}

static void token_race_check(void *user) {
    room *r = user;
    nb_scheduler_stats stats = nb_scheduler_stats_get(r->crew.scheduler);
    EXPLORE_CHECK(stats.cancel_count == r->stopped_count);
    EXPLORE_CHECK(stats.run_count + r->stopped_count == r->accepted_count);
    crew_destroy(&r->crew);
    nb_token_release(r->token);
}

// --- a result is told, and its slot has a new task, while the thread that ended the task is still at it ---

static void note_told(void *user, const nb_task_result *result) {
    room *r = user;
    EXPLORE_CHECK(result->status == NB_OK);
    ++r->accepted_count;
}

static void drained(void *user, uint32_t index) {
    room *r = user;
    if (crew_worked(&r->crew, index == 1, 0)) return;
    nb_scheduler *scheduler = r->crew.scheduler;
    crew_coordinate(&r->crew);
    nb_task_desc desc = {.run = count_run, .on_complete = note_told, .user = r};
    EXPLORE_CHECK(submit(r, desc, &r->task) == NB_OK);
    crew_count_await(&r->run_count, 1);
    uint32_t submitted_count = 1;
    for (uint32_t i = 0; i < 4; ++i) {
        nb_result result = nb_scheduler_drain(scheduler, 0, NULL);
        EXPLORE_CHECK(result == NB_OK || result == NB_EMPTY);
        if (result == NB_EMPTY) continue;
        // Takes the slot that was just given back.
        nb_task next;
        EXPLORE_CHECK(submit(r, (nb_task_desc){.run = count_run}, &next) == NB_OK);
        EXPLORE_CHECK(next.value != r->task.value);
        EXPLORE_CHECK(nb_task_wait(scheduler, next, NB_NEVER_NS) == NB_OK);
        ++submitted_count;
    }
    // Who knows of the end finds the result.
    EXPLORE_CHECK(nb_task_wait(scheduler, r->task, NB_NEVER_NS) == NB_OK);
    nb_scheduler_drain(scheduler, 0, NULL);
    EXPLORE_CHECK(r->accepted_count == 1);
    crew_count_await(&r->run_count, submitted_count);
    crew_dismiss(&r->crew);
}

// --- stop against submit and sleep ---

static void stop_race(void *user, uint32_t index) {
    room *r = user;
    if (crew_worked(&r->crew, index == 3, 0)) return;
    if (index == 1) {
        for (uint32_t i = 0; i < 3; ++i) {
            nb_result result = submit(r, (nb_task_desc){.run = count_run}, NULL);
            EXPLORE_CHECK(result == NB_OK || result == NB_CLOSED);
            if (result == NB_OK) ++r->accepted_count;
            if (result == NB_CLOSED) ++r->refused_count;
        }
        crew_count_add(&r->ready);
        return;
    }
    EXPLORE_CHECK(nb_scheduler_stop(r->crew.scheduler) == NB_OK);
    EXPLORE_CHECK(submit(r, (nb_task_desc){.run = count_run}, NULL) == NB_CLOSED);
    if (index != 0) return;
    crew_count_await(&r->ready, 1);
    crew_dismiss(&r->crew);
}

static void stop_race_check(void *user) {
    room *r = user;
    nb_scheduler_stats stats = nb_scheduler_stats_get(r->crew.scheduler);
    EXPLORE_CHECK(stats.submit_count == r->accepted_count && r->accepted_count + r->refused_count == 3);
    crew_destroy(&r->crew);
}

EXPLORE(submit_meets_parking_worker, 2, crew_create_one, parking_worker, crew_end, sizeof(room))
EXPLORE(two_submits_meet_two_parking_workers, 4, crew_create_two, parking_workers, crew_end, sizeof(room))
EXPLORE(two_tasks_that_need_a_worker_each, 3, create_two_with_frame, meeting_of_two, destroy_with_frame, sizeof(room))
EXPLORE(tasks_among_others_that_need_a_worker_each, 4, create_two_with_frame, meeting, destroy_with_frame, sizeof(room))
EXPLORE(three_tasks_that_need_a_worker_each, 5, create_three_with_frame, meeting, destroy_with_frame, sizeof(room))
EXPLORE(ring_is_cleaned_before_sleepy_workers, 3, create_two_with_frame, cleaning, destroy_with_frame, sizeof(room))
EXPLORE(floating_ceiling_loses_no_wake_up, 4, create_two_with_frame, ceiling, destroy_with_frame, sizeof(room))
EXPLORE(run_claim_cancel_and_promote_agree, 4, crew_create_one, by_handle, by_handle_check, sizeof(room))
EXPLORE(token_cancel_and_run_agree, 3, create_with_token, token_race, token_race_check, sizeof(room))
EXPLORE(drained_slot_is_not_used_too_early, 2, crew_create_one, drained, crew_end, sizeof(room))
EXPLORE(stop_submit_and_parking_worker, 4, crew_create_one, stop_race, stop_race_check, sizeof(room))
