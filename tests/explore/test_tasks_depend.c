// SPDX-License-Identifier: MIT
// Tasks that depend on others: none starts before what it waits for has ended, none waits for something that is over,
// and of two that want to wait for each other one is refused.

#include "explore_order.h"

#define FIRST 0
#define SECOND 1
#define THIRD 2
#define FOURTH 3

// Task `index`, after task `on` (or none, when it is the same).
static nb_result submit(room *r, uint32_t index, uint32_t on, nb_group group) {
    nb_task_desc desc = {
        .group = group, .dependencies = on != index ? &r->tasks[on] : NULL, .dependency_count = on != index ? 1 : 0};
    return submit_ordered(r, index, desc);
}

// SECOND waits for FIRST, and THIRD for another one or for none.
static void submit_three(room *r, uint32_t third_on) {
    EXPLORE_CHECK(submit(r, FIRST, FIRST, (nb_group){0}) == NB_OK);
    EXPLORE_CHECK(submit(r, SECOND, FIRST, (nb_group){0}) == NB_OK);
    EXPLORE_CHECK(submit(r, THIRD, third_on, (nb_group){0}) == NB_OK);
}

// --- a chain, submitted while its beginning runs and ends ---

static void chain(void *user, uint32_t index) {
    room *r = user;
    if (crew_worked(&r->crew, index == 1, 0)) return;
    crew_coordinate(&r->crew);
    nb_group group;
    EXPLORE_CHECK(nb_group_begin(r->crew.scheduler, &group) == NB_OK);
    EXPLORE_CHECK(submit(r, FIRST, FIRST, (nb_group){0}) == NB_OK);
    EXPLORE_CHECK(submit(r, SECOND, FIRST, (nb_group){0}) == NB_OK);
    EXPLORE_CHECK(submit(r, THIRD, SECOND, group) == NB_OK);
    // Only the last belongs to the group: the others are run because it depends on them.
    EXPLORE_CHECK(nb_group_end(r->crew.scheduler, group, NB_NEVER_NS) == NB_OK);
    EXPLORE_CHECK(order_of(r, FIRST) == 1 && order_of(r, SECOND) == 2 && order_of(r, THIRD) == 3);
    crew_dismiss(&r->crew);
}

// --- a dependency is added while both ends move ---

// FIRST keeps SECOND waiting; THIRD is added to what SECOND waits for.
static void added_late(void *user, uint32_t index) {
    room *r = user;
    nb_scheduler *scheduler = r->crew.scheduler;
    if (index == 0) {
        crew_coordinate(&r->crew);
        submit_three(r, THIRD);
        crew_count_add(&r->ready);
        wait_for(r, SECOND);
        wait_for(r, THIRD);
        return;
    }
    crew_count_await(&r->ready, 1);
    if (index == 1) r->results[1] = nb_task_depend(scheduler, r->tasks[SECOND], r->tasks[THIRD]);
    if (index == 2) r->results[2] = nb_task_claim(scheduler, r->tasks[explore_random() % 2 == 0 ? FIRST : THIRD]);
}

static void added_late_check(void *user) {
    room *r = user;
    EXPLORE_CHECK(crew_count_now(&r->run_count) == 3);
    EXPLORE_CHECK(r->results[1] == NB_OK || r->results[1] == NB_BUSY || r->results[1] == NB_EMPTY);
    EXPLORE_CHECK(order_of(r, FIRST) < order_of(r, SECOND));
    if (r->results[1] == NB_OK) EXPLORE_CHECK(order_of(r, THIRD) < order_of(r, SECOND));
    crew_destroy(&r->crew);
}

// --- two that want to wait for each other ---

static void cycle(void *user, uint32_t index) {
    room *r = user;
    nb_scheduler *scheduler = r->crew.scheduler;
    if (index == 0) {
        crew_coordinate(&r->crew);
        submit_three(r, FIRST);
        crew_count_add(&r->ready);
        crew_count_await(&r->ended, 2);
        wait_for(r, SECOND);
        wait_for(r, THIRD);
        return;
    }
    crew_count_await(&r->ready, 1);
    uint32_t own = index == 1 ? SECOND : THIRD, other = index == 1 ? THIRD : SECOND;
    r->results[index] = nb_task_depend(scheduler, r->tasks[own], r->tasks[other]);
    crew_count_add(&r->ended);
}

static void cycle_check(void *user) {
    room *r = user;
    bool is_second_refused = r->results[1] == NB_ERR_DEADLOCK, is_third_refused = r->results[2] == NB_ERR_DEADLOCK;
    EXPLORE_CHECK(is_second_refused != is_third_refused);
    EXPLORE_CHECK(r->results[is_second_refused ? 2 : 1] == NB_OK);
    EXPLORE_CHECK((order_of(r, SECOND) < order_of(r, THIRD)) == is_second_refused);
    crew_destroy(&r->crew);
}

// --- a waiting task is cancelled while it comes to be queued ---

static void cancelled(void *user, uint32_t index) {
    room *r = user;
    nb_scheduler *scheduler = r->crew.scheduler;
    if (crew_worked(&r->crew, index == 1, 0)) return;
    if (index == 2) {
        crew_count_await(&r->ready, 1);
        r->results[2] = nb_task_cancel(scheduler, r->tasks[SECOND]);
        crew_count_add(&r->ended);
        return;
    }
    crew_coordinate(&r->crew);
    submit_three(r, SECOND);
    crew_count_add(&r->ready);
    // Waits for one that was cancelled are over too.
    wait_for(r, THIRD);
    crew_count_await(&r->ended, 1);
    crew_count_await(&r->run_count, r->results[2] == NB_OK ? 2 : 3);
    crew_dismiss(&r->crew);
}

static void cancelled_check(void *user) {
    room *r = user;
    EXPLORE_CHECK((order_of(r, SECOND) == 0) == (r->results[2] == NB_OK));
    EXPLORE_CHECK(order_of(r, SECOND) < order_of(r, THIRD));
    crew_destroy(&r->crew);
}

// The cancelled task's slot has another one that waits, when what the first waited for ends.
static void slot_of_a_cancelled(void *user, uint32_t index) {
    room *r = user;
    nb_scheduler *scheduler = r->crew.scheduler;
    if (index == 0) {
        crew_coordinate(&r->crew);
        submit_three(r, THIRD);
        EXPLORE_CHECK(nb_task_cancel(scheduler, r->tasks[SECOND]) == NB_OK);
        EXPLORE_CHECK(submit(r, FOURTH, THIRD, (nb_group){0}) == NB_OK);
        crew_count_add(&r->ready);
        wait_for(r, FOURTH);
        EXPLORE_CHECK(order_of(r, THIRD) != 0 && order_of(r, THIRD) < order_of(r, FOURTH));
        wait_for(r, FIRST);
        return;
    }
    crew_count_await(&r->ready, 1);
    nb_task_claim(scheduler, r->tasks[index == 1 ? FIRST : THIRD]);
}

// --- the scheduler stops while tasks wait for each other ---

static void stopped(void *user, uint32_t index) {
    room *r = user;
    if (crew_worked(&r->crew, index == 1, 0)) return;
    if (index == 2) {
        EXPLORE_CHECK(nb_scheduler_stop(r->crew.scheduler) == NB_OK);
        return;
    }
    crew_coordinate(&r->crew);
    nb_group group;
    EXPLORE_CHECK(nb_group_begin(r->crew.scheduler, &group) == NB_OK);
    for (uint32_t i = FIRST; i <= THIRD; ++i) {
        nb_result result = submit(r, i, i == FIRST ? FIRST : i - 1, group);
        EXPLORE_CHECK(result == NB_OK || result == NB_CLOSED);
    }
    nb_result result = nb_group_end(r->crew.scheduler, group, NB_NEVER_NS);
    EXPLORE_CHECK(result == NB_OK || result == NB_CANCELLED);
    crew_dismiss(&r->crew);
}

// --- entries of a task that became a waiting one and back do not pile up ---

static void again_and_again(void *user, uint32_t index) {
    room *r = user;
    nb_scheduler *scheduler = r->crew.scheduler;
    if (index == 1) {
        crew_count_await(&r->ready, 1);
        EXPLORE_CHECK(nb_task_claim(scheduler, r->tasks[FIRST]) == NB_OK);
        crew_count_add(&r->ended);
        return;
    }
    crew_coordinate(&r->crew);
    EXPLORE_CHECK(submit(r, FIRST, FIRST, (nb_group){0}) == NB_OK);
    EXPLORE_CHECK(submit(r, SECOND, SECOND, (nb_group){0}) == NB_OK);
    EXPLORE_CHECK(submit(r, THIRD, FIRST, (nb_group){0}) == NB_OK);
    crew_count_add(&r->ready);
    for (uint32_t i = 0; i < 2 * CREW_TASK_COUNT; ++i) {
        EXPLORE_CHECK(nb_task_depend(scheduler, r->tasks[SECOND], r->tasks[FIRST]) == NB_OK);
    }
    EXPLORE_CHECK(submit(r, FOURTH, FOURTH, (nb_group){0}) == NB_OK);
    crew_count_await(&r->ended, 1);
    uint64_t run_count = 0;
    EXPLORE_CHECK(nb_scheduler_help(scheduler, NB_NEVER_NS, &run_count) == NB_OK);
    EXPLORE_CHECK(run_count == 3 && crew_count_now(&r->run_count) == 4);
}

// --- one who sleeps for a group is told of a task in it that depends on what nobody else runs ---

static void asleep(void *user, uint32_t index) {
    room *r = user;
    if (index != 0) {
        claim_or_end_group(r, index, SECOND);
        return;
    }
    crew_coordinate(&r->crew);
    EXPLORE_CHECK(nb_group_begin(r->crew.scheduler, &r->group) == NB_OK);
    EXPLORE_CHECK(submit(r, FIRST, FIRST, (nb_group){0}) == NB_OK);
    hold_group(r, SECOND);
    EXPLORE_CHECK(submit(r, THIRD, FIRST, r->group) == NB_OK);
    crew_count_add(&r->gate);
}

EXPLORE(chain_runs_in_order, 2, crew_create_one, chain, crew_end, sizeof(room))
EXPLORE(dependency_added_while_both_ends_move, 3, crew_create_none, added_late, added_late_check, sizeof(room))
EXPLORE(one_of_two_is_refused, 3, crew_create_none, cycle, cycle_check, sizeof(room))
EXPLORE(waiting_task_is_cancelled_or_runs, 3, crew_create_one, cancelled, cancelled_check, sizeof(room))
EXPLORE(slot_of_a_cancelled_task_waits_for_others, 3, crew_create_none, slot_of_a_cancelled, crew_end, sizeof(room))
EXPLORE(stop_ends_waiting_tasks, 3, crew_create_one, stopped, crew_end, sizeof(room))
EXPLORE(entries_of_a_waiting_task_do_not_pile_up, 2, crew_create_none, again_and_again, crew_end, sizeof(room))
EXPLORE(sleeper_is_told_of_a_dependency, 3, crew_create_none, asleep, crew_end, sizeof(room))
