// SPDX-License-Identifier: MIT
// Tasks that the budget for submitting holds back: let go in their order by the next frame, or at once by whoever waits
// for one; run or cancelled once, and gone from the list either way.

#include "explore_order.h"

static void submit(room *r, uint32_t index, nb_task_desc desc) {
    EXPLORE_CHECK(submit_ordered(r, index, desc) == NB_OK);
}

// A budget that is used up already: time does not pass by itself here.
static void open_without_any(room *r) {
    EXPLORE_CHECK(nb_scheduler_budget_open(r->crew.scheduler, 1) == NB_OK);
    r->crew.scheduler->lanes[0]->budget_left_ns = 0;
}

static void open_for_all(room *r) { EXPLORE_CHECK(nb_scheduler_budget_open(r->crew.scheduler, NB_NEVER_NS) == NB_OK); }

static void destroy(void *user) {
    room *r = user;
    const nb_scheduler *scheduler = r->crew.scheduler;
    EXPLORE_CHECK(scheduler->held_count.value == 0 && scheduler->waiting_count.value == 0);
    EXPLORE_CHECK(scheduler->first_held == 0 && scheduler->last_held == 0);
    crew_destroy(&r->crew);
}

// --- the next frame, and a thread that cannot wait for it ---

static void in_order(void *user, uint32_t index) {
    room *r = user;
    if (crew_worked(&r->crew, index == 1, 0)) return;
    if (index == 2) {
        crew_count_await(&r->ready, 1);
        wait_for(r, 2);
        crew_count_add(&r->ended);
        return;
    }
    crew_coordinate(&r->crew);
    open_without_any(r);
    for (uint32_t i = 0; i < ORDERED_TASK_COUNT; ++i) submit(r, i, (nb_task_desc){0});
    EXPLORE_CHECK(crew_count_now(&r->run_count) == 0);
    crew_count_add(&r->ready);
    open_for_all(r);
    crew_count_await(&r->run_count, ORDERED_TASK_COUNT);
    crew_count_await(&r->ended, 1);
    EXPLORE_CHECK(order_of(r, 0) < order_of(r, 1) && order_of(r, 1) < order_of(r, 3));
    crew_dismiss(&r->crew);
}

// --- nobody opens again, and nobody works: those who wait do it all ---

static void waited_for(void *user, uint32_t index) {
    room *r = user;
    if (index == 0) {
        crew_coordinate(&r->crew);
        open_without_any(r);
        EXPLORE_CHECK(nb_group_begin(r->crew.scheduler, &r->group) == NB_OK);
        submit(r, 0, (nb_task_desc){0});
        submit(r, 1, (nb_task_desc){.group = r->group});
        // Waits for one that is held, and is held itself.
        submit(r, 2, (nb_task_desc){.group = r->group, .dependencies = &r->tasks[0], .dependency_count = 1});
        submit(r, 3, (nb_task_desc){.dependencies = &r->tasks[2], .dependency_count = 1});
        crew_count_add(&r->ready);
        if (explore_random() % 2 == 0) open_for_all(r);
        wait_for(r, 3);
        EXPLORE_CHECK(order_of(r, 0) < order_of(r, 2) && order_of(r, 2) < order_of(r, 3));
        return;
    }
    crew_count_await(&r->ready, 1);
    if (index == 1) {
        EXPLORE_CHECK(nb_group_end(r->crew.scheduler, r->group, NB_NEVER_NS) == NB_OK);
        EXPLORE_CHECK(order_of(r, 1) != 0 && order_of(r, 2) != 0);
    } else {
        wait_for(r, 0);
    }
}

static void waited_for_check(void *user) {
    EXPLORE_CHECK(crew_count_now(&((room *)user)->run_count) == ORDERED_TASK_COUNT);
    destroy(user);
}

// --- one in the middle is cancelled while the list moves ---

static void cancelled(void *user, uint32_t index) {
    room *r = user;
    nb_scheduler *scheduler = r->crew.scheduler;
    if (crew_worked(&r->crew, index == 1, 0)) return;
    if (index >= 2) {
        crew_count_await(&r->ready, 1);
        if (index == 2) r->results[2] = nb_task_cancel(scheduler, r->tasks[1]);
        if (index == 3) wait_for(r, explore_random() % 2 == 0 ? 1 : 3);
        crew_count_add(&r->ended);
        return;
    }
    crew_coordinate(&r->crew);
    open_without_any(r);
    for (uint32_t i = 0; i < 3; ++i) submit(r, i, (nb_task_desc){0});
    submit(r, 3, (nb_task_desc){.dependencies = &r->tasks[1], .dependency_count = 1});
    crew_count_add(&r->ready);
    if (explore_random() % 2 == 0) open_without_any(r);
    crew_count_await(&r->ended, 2);
    open_for_all(r);
    for (uint32_t i = 0; i < ORDERED_TASK_COUNT; ++i) wait_for(r, i);
    crew_count_await(&r->run_count, r->results[2] == NB_OK ? 3 : 4);
    crew_dismiss(&r->crew);
}

static void cancelled_check(void *user) {
    room *r = user;
    nb_result result = r->results[2];
    EXPLORE_CHECK(result == NB_OK || result == NB_BUSY || result == NB_EMPTY);
    EXPLORE_CHECK((order_of(r, 1) == 0) == (result == NB_OK));
    EXPLORE_CHECK(order_of(r, 1) < order_of(r, 3));
    destroy(user);
}

// --- the scheduler stops while some are held ---

static void stopped(void *user, uint32_t index) {
    room *r = user;
    if (crew_worked(&r->crew, index == 1, 0)) return;
    if (index == 2) {
        crew_count_await(&r->ready, 1);
        EXPLORE_CHECK(nb_scheduler_stop(r->crew.scheduler) == NB_OK);
        crew_count_add(&r->ended);
        return;
    }
    crew_coordinate(&r->crew);
    open_without_any(r);
    EXPLORE_CHECK(nb_group_begin(r->crew.scheduler, &r->group) == NB_OK);
    for (uint32_t i = 0; i < ORDERED_TASK_COUNT; ++i) submit(r, i, (nb_task_desc){.group = r->group});
    crew_count_add(&r->ready);
    if (explore_random() % 2 == 0) open_for_all(r);
    nb_result result = nb_group_end(r->crew.scheduler, r->group, NB_NEVER_NS);
    EXPLORE_CHECK(result == NB_OK || result == NB_CANCELLED);
    EXPLORE_CHECK((crew_count_now(&r->run_count) == ORDERED_TASK_COUNT) == (result == NB_OK));
    crew_count_await(&r->ended, 1);
    crew_dismiss(&r->crew);
}

// --- one is let go while somebody claims it, and its slot gets a task for one thread alone ---

static void run_pinned(nb_task_context *context, void *argument) {
    EXPLORE_CHECK(context->thread_index == 0);
    note_order(context, argument);
}

static void claim_and_reuse(room *r) {
    nb_scheduler *scheduler = r->crew.scheduler;
    ordered_task own = {r, 1};
    nb_task_desc pinned = {
        .run = run_pinned, .argument = &own, .argument_size_bytes = sizeof own, .pin = NB_PIN_COORDINATOR};
    EXPLORE_CHECK(nb_scheduler_attach(scheduler) == NB_OK);
    crew_count_await(&r->ready, 1);
    nb_result result = NB_BUSY;
    for (uint32_t i = 0; i < 20 && result == NB_BUSY; ++i) result = nb_task_claim(scheduler, r->tasks[0]);
    // Takes the slot that was just given back, if this thread ran the task.
    EXPLORE_CHECK(nb_task_submit(scheduler, &pinned, NULL) == NB_OK);
    EXPLORE_CHECK(nb_scheduler_detach(scheduler) == NB_OK);
    crew_count_add(&r->ended);
}

static void claimed(room *r, uint32_t index, bool is_waited_for) {
    nb_scheduler *scheduler = r->crew.scheduler;
    if (crew_worked(&r->crew, index == 1, 0)) return;
    if (index == 2) {
        claim_and_reuse(r);
        return;
    }
    crew_coordinate(&r->crew);
    open_without_any(r);
    submit(r, 0, (nb_task_desc){0});
    crew_count_add(&r->ready);
    if (is_waited_for)
        wait_for(r, 0);
    else
        open_for_all(r);
    crew_count_await(&r->ended, 1);
    while (crew_count_now(&r->run_count) < 2) {
        nb_scheduler_help(scheduler, 0, NULL);
        nbi_thread_yield();
    }
    crew_dismiss(&r->crew);
}

static void claimed_from_the_next_frame(void *user, uint32_t index) { claimed(user, index, false); }
static void claimed_from_a_waiter(void *user, uint32_t index) { claimed(user, index, true); }

// --- one who sleeps for a group is told of a task in it that only the budget holds back ---

static void asleep(void *user, uint32_t index) {
    room *r = user;
    if (index != 0) {
        claim_or_end_group(r, index, 0);
        return;
    }
    crew_coordinate(&r->crew);
    EXPLORE_CHECK(nb_group_begin(r->crew.scheduler, &r->group) == NB_OK);
    hold_group(r, 0);
    open_without_any(r);
    submit(r, 1, (nb_task_desc){.group = r->group});
    crew_count_add(&r->gate);
}

EXPLORE(next_frame_lets_go_in_order, 3, crew_create_one, in_order, destroy, sizeof(room))
EXPLORE(waiters_let_go_what_they_wait_for, 3, crew_create_none, waited_for, waited_for_check, sizeof(room))
EXPLORE(held_task_is_cancelled_or_let_go, 4, crew_create_one, cancelled, cancelled_check, sizeof(room))
EXPLORE(stop_ends_held_tasks, 3, crew_create_one, stopped, destroy, sizeof(room))
EXPLORE(held_task_is_claimed_from_the_next_frame, 3, crew_create_one, claimed_from_the_next_frame, destroy,
        sizeof(room))
EXPLORE(held_task_is_claimed_from_a_waiter, 3, crew_create_one, claimed_from_a_waiter, destroy, sizeof(room))
EXPLORE(sleeper_is_told_of_a_held_task, 3, crew_create_none, asleep, destroy, sizeof(room))
