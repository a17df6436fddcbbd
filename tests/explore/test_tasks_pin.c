// SPDX-License-Identifier: MIT
// Pinned tasks: their own thread finds them, asleep or not, and nobody else's wake-up is lost on them.

#include "explore_tasks.h"

typedef struct room {
    crew crew;
    crew_count run_count, pinned_count, ready;
    nb_group group;
    nb_task task;
    nb_fence_frame frame;
} room;

static void count_run(nb_task_context *context, void *argument) {
    (void)context;
    room *r = crew_argument(argument);
    crew_count_add(&r->run_count);
}

static void pinned_to_first_worker(nb_task_context *context, void *argument) {
    EXPLORE_CHECK(context->thread_index == 1);
    room *r = crew_argument(argument);
    crew_count_add(&r->pinned_count);
}

static void pinned_to_coordinator(nb_task_context *context, void *argument) {
    EXPLORE_CHECK(context->thread_index == 0);
    room *r = crew_argument(argument);
    crew_count_add(&r->pinned_count);
}

// Keeps its worker until the other task has run, elsewhere.
static void pinned_and_long(nb_task_context *context, void *argument) {
    room *r = crew_argument(argument);
    crew_count_await(&r->run_count, 1);
    pinned_to_first_worker(context, argument);
}

static void submit(room *r, nb_task_desc desc, nb_task *task) {
    EXPLORE_CHECK(crew_submit(&r->crew, desc, r, task) == NB_OK);
}

static void create_two(void *user) {
    room *r = user;
    crew_create(&r->crew, 2);
    crew_create_fence(&r->crew);
    EXPLORE_CHECK(nb_fence_begin(r->crew.fence, &r->frame) == NB_OK);
}

// --- the worker goes to sleep while a task is pinned to it ---

static void parking(void *user, uint32_t index) {
    room *r = user;
    if (crew_worked(&r->crew, index == 1, 0)) return;
    for (uint32_t i = 0; i < 2; ++i) {
        submit(r, (nb_task_desc){.run = pinned_to_first_worker, .pin = NB_PIN_WORKER(0)}, NULL);
        if (explore_random() % 2 == 0) crew_count_await(&r->pinned_count, i + 1);
    }
    crew_count_await(&r->pinned_count, 2);
    crew_dismiss(&r->crew);
}

// --- a pinned task and another one that needs the other worker ---

static void swallowed(void *user, uint32_t index) {
    room *r = user;
    if (crew_worked(&r->crew, index >= 2, index - 2)) return;
    if (index == 1) {
        submit(r, (nb_task_desc){.run = pinned_and_long, .pin = NB_PIN_WORKER(0), .priority = NB_PRIORITY_HIGH}, NULL);
        crew_count_add(&r->ready);
        return;
    }
    nb_lifetime lifetime = explore_random() % 2 == 0 ? NB_LIFETIME_FRAME : NB_LIFETIME_FLOATING;
    submit(r, (nb_task_desc){.run = count_run, .lifetime = lifetime, .fence = r->crew.fence}, NULL);
    crew_count_await(&r->ready, 1);
    crew_count_await(&r->pinned_count, 1);
    crew_dismiss(&r->crew);
}

// A worker busy with floating tasks turns to its pinned one; the next floating task is the other worker's.
static void ceiling(void *user, uint32_t index) {
    room *r = user;
    if (crew_worked(&r->crew, index >= 1, index - 1)) return;
    submit(r, (nb_task_desc){.run = count_run}, NULL);
    crew_count_await(&r->run_count, 1);
    nbi_atomic_store_relaxed_u32(&r->run_count.value, 0);
    submit(r, (nb_task_desc){.run = pinned_and_long, .pin = NB_PIN_WORKER(0), .priority = NB_PRIORITY_HIGH}, NULL);
    submit(r, (nb_task_desc){.run = count_run}, NULL);
    crew_count_await(&r->pinned_count, 1);
    crew_dismiss(&r->crew);
}

// --- the coordinator sleeps in a wait, and is the only one who can go on ---

// Keeps the group open until the coordinator has run its task.
static void run_after_pinned(nb_task_context *context, void *argument) {
    room *r = crew_argument(argument);
    crew_count_add(&r->ready);
    crew_count_await(&r->pinned_count, 1);
    count_run(context, argument);
}

static void awaited(void *user, uint32_t index) {
    room *r = user;
    if (crew_worked(&r->crew, index == 1, 0)) return;
    if (index == 2) {
        crew_count_await(&r->ready, 1);
        submit(r, (nb_task_desc){.run = pinned_to_coordinator, .pin = NB_PIN_COORDINATOR, .group = r->group}, NULL);
        return;
    }
    crew_coordinate(&r->crew);
    EXPLORE_CHECK(nb_group_begin(r->crew.scheduler, &r->group) == NB_OK);
    submit(r, (nb_task_desc){.run = run_after_pinned, .group = r->group}, NULL);
    crew_count_await(&r->ready, 1);
    EXPLORE_CHECK(nb_group_end(r->crew.scheduler, r->group, NB_NEVER_NS) == NB_OK);
    EXPLORE_CHECK(crew_count_now(&r->run_count) == 1 && crew_count_now(&r->pinned_count) == 1);
    crew_dismiss(&r->crew);
}

EXPLORE(pin_meets_parking_worker, 2, crew_create_one, parking, crew_end, sizeof(room))
EXPLORE(pinned_task_swallows_no_wake_up, 4, create_two, swallowed, crew_end, sizeof(room))
EXPLORE(pinned_task_makes_room_for_floating_ones, 3, create_two, ceiling, crew_end, sizeof(room))
EXPLORE(sleeping_coordinator_runs_its_own, 3, crew_create_one, awaited, crew_end, sizeof(room))
