// SPDX-License-Identifier: MIT
// Thieves that take several tasks of a long ring at once: every task runs once, none is slept through or lost on its
// way from the ring to the thief's own deque, and none goes before a better one.

#include "explore_tasks.h"

#define TASK_MAX 24
#define BATCH 4 // entries of which a thief takes more than one

typedef struct room {
    crew crew;
    crew_count run_count;
    crew_count ready; // submitters that are through
    crew_count gate;  // what a task waits for
    crew_count ended;
    nb_atomic_u32 runs[TASK_MAX]; // of each task
    nb_atomic_u32 started_count, started_before;
    nb_group group;
    nb_fence_frame frame;
    uint32_t task_count, meeting_count;
} room;

typedef struct note {
    room *room;
    uint32_t index;
} note;

static void note_run(room *r, uint32_t index) {
    EXPLORE_CHECK(nbi_atomic_fetch_add_relaxed_u32(&r->runs[index], 1) == 0);
    crew_count_add(&r->run_count);
}

static void run_note(nb_task_context *context, void *argument) {
    (void)context;
    const note *own = argument;
    nbi_atomic_fetch_add_seq_cst_u32(&own->room->started_count, 1);
    note_run(own->room, own->index);
}

static nb_result submit_index(room *r, nb_task_desc desc, uint32_t index) {
    note own = {r, index};
    desc.argument = &own;
    desc.argument_size_bytes = sizeof own;
    return nb_task_submit(r->crew.scheduler, &desc, NULL);
}

static void submit(room *r, nb_task_desc desc, uint32_t index) { EXPLORE_CHECK(submit_index(r, desc, index) == NB_OK); }

// Frame-bound, but Normal: of floating tasks the workers may not run one each.
static nb_task_desc bound(const room *r) {
    return (nb_task_desc){.run = run_note, .lifetime = NB_LIFETIME_FRAME, .fence = r->crew.fence};
}

static void create(room *r, uint32_t worker_count) {
    crew_create(&r->crew, worker_count);
    crew_create_fence(&r->crew);
    EXPLORE_CHECK(nb_fence_begin(r->crew.fence, &r->frame) == NB_OK);
}
static void create_one(void *user) { create(user, 1); }
static void create_two(void *user) { create(user, 2); }
static void create_three(void *user) { create(user, 3); }
static void create_four(void *user) { create(user, 4); }

static void destroy(void *user) {
    room *r = user;
    EXPLORE_CHECK(nb_fence_wait(r->crew.fence, r->frame, 0, NULL, NULL) == NB_OK);
    EXPLORE_CHECK(crew_count_now(&r->run_count) == r->task_count);
    for (uint32_t i = 0; i < TASK_MAX; ++i) {
        EXPLORE_CHECK(nbi_atomic_load_relaxed_u32(&r->runs[i]) == (i < r->task_count ? 1 : 0));
    }
    crew_destroy(&r->crew);
}

static void finish(room *r, uint32_t task_count) {
    r->task_count = task_count;
    crew_count_await(&r->run_count, task_count);
    crew_dismiss(&r->crew);
}

// Half of the schedules let the workers in when everything is queued.
static void work_late(room *r, uint32_t worker) {
    if (explore_random() % 2 == 0) crew_count_await(&r->ready, 1);
    crew_work(&r->crew, worker);
}

// --- thieves at one ring ---

static void two_thieves(void *user, uint32_t index) {
    room *r = user;
    if (index != 0) {
        work_late(r, index - 1);
        return;
    }
    crew_coordinate(&r->crew);
    for (uint32_t i = 0; i < 6; ++i) submit(r, bound(r), i);
    crew_count_add(&r->ready);
    finish(r, 6);
}

// Two of the three workers may take floating tasks.
static void floating_thieves(void *user, uint32_t index) {
    room *r = user;
    if (index != 0) {
        work_late(r, index - 1);
        return;
    }
    crew_coordinate(&r->crew);
    for (uint32_t i = 0; i < 6; ++i) submit(r, (nb_task_desc){.run = run_note}, i);
    crew_count_add(&r->ready);
    finish(r, 6);
}

// The owner takes from the front of its own ring meanwhile.
static void owner_helps(void *user, uint32_t index) {
    room *r = user;
    if (index != 0) {
        work_late(r, index - 1);
        return;
    }
    crew_coordinate(&r->crew);
    for (uint32_t i = 0; i < 5; ++i) submit(r, bound(r), i);
    crew_count_add(&r->ready);
    for (uint32_t i = 0; i < 3; ++i) nb_scheduler_help(r->crew.scheduler, 0, NULL);
    finish(r, 5);
}

// One ring is a thread's own, the other, which is the longer one now and then, is shared.
static void two_rings(void *user, uint32_t index) {
    room *r = user;
    if (crew_worked(&r->crew, index >= 2, index - 2)) return;
    if (index == 0) crew_coordinate(&r->crew);
    // As many as there is room for in all.
    uint32_t first = index == 0 ? 0 : BATCH, end = index == 0 ? BATCH : CREW_TASK_COUNT - 1;
    for (uint32_t i = first; i < end; ++i) submit(r, bound(r), i);
    crew_count_add(&r->ready);
    if (index != 0) return;
    crew_count_await(&r->ready, 2);
    finish(r, CREW_TASK_COUNT - 1);
}

// So many that the ring goes round while a thief looks at it.
static void round_and_round(void *user, uint32_t index) {
    room *r = user;
    if (index != 0) {
        work_late(r, index - 1);
        return;
    }
    crew_coordinate(&r->crew);
    for (uint32_t i = 0; i < TASK_MAX; ++i) {
        if (i == BATCH) crew_count_add(&r->ready);
        uint32_t run_count = crew_count_now(&r->run_count);
        while (submit_index(r, bound(r), i) == NB_FULL) {
            crew_count_await(&r->run_count, run_count + 1);
            run_count = crew_count_now(&r->run_count);
            nbi_thread_yield();
        }
    }
    finish(r, TASK_MAX);
}

// Dead entries between living ones, and an owner that throws them out under the thieves' hands.
static void cleaned(void *user, uint32_t index) {
    room *r = user;
    if (index != 0) {
        work_late(r, index - 1);
        return;
    }
    crew_coordinate(&r->crew);
    uint32_t alive_count = 0;
    for (uint32_t i = 0; i < CREW_TASK_COUNT + 2; ++i) {
        bool is_alive = i % 3 != 1 && alive_count < 5;
        note own = {r, alive_count};
        nb_task_desc desc = bound(r);
        desc.argument = &own;
        desc.argument_size_bytes = sizeof own;
        nb_task task;
        EXPLORE_CHECK(nb_task_submit(r->crew.scheduler, &desc, &task) == NB_OK);
        if (i == BATCH) crew_count_add(&r->ready);
        // One that a worker has started already counts as alive.
        if (is_alive || nb_task_cancel(r->crew.scheduler, task) != NB_OK) ++alive_count;
    }
    finish(r, alive_count);
}

// --- a thief that leaves ---

// Takes several and runs one; the others are found where it was.
static void passer_by(void *user, uint32_t index) {
    room *r = user;
    if (crew_worked(&r->crew, index == 1, 0)) return;
    if (index == 2) {
        if (explore_random() % 2 == 0) crew_count_await(&r->ready, 1);
        nb_result result = nb_scheduler_help(r->crew.scheduler, 0, NULL);
        EXPLORE_CHECK(result == NB_OK || result == NB_EMPTY);
        return;
    }
    crew_coordinate(&r->crew);
    for (uint32_t i = 0; i < 5; ++i) submit(r, bound(r), i);
    crew_count_add(&r->ready);
    finish(r, 5);
}

// --- tasks that need a worker each ---

// Ends only when as many have begun as are to run at once.
static void meet(nb_task_context *context, void *argument) {
    (void)context;
    const note *own = argument;
    crew_count_add(&own->room->gate);
    crew_count_await(&own->room->gate, own->room->meeting_count);
    note_run(own->room, own->index);
}

static void meeting(void *user, uint32_t index) {
    room *r = user;
    if (crew_worked(&r->crew, index != 0, index - 1)) return;
    crew_coordinate(&r->crew);
    nb_task_desc desc = bound(r);
    desc.run = meet;
    r->meeting_count = r->crew.worker_count;
    for (uint32_t i = 0; i < BATCH; ++i) submit(r, desc, i);
    finish(r, BATCH);
}

// A worker that has found nothing twice, and has come to its last look when all is queued. Those who submit do not see
// it: only who takes tasks away from under its eyes can wake it.
static void work_from_last_look(room *r, uint32_t worker) {
    nb_scheduler *scheduler = r->crew.scheduler;
    nbi_lane *lane = scheduler->lanes[1 + worker];
    uint64_t bit = (uint64_t)1 << lane->index;
    nbi_lane_own_by_caller(lane);
    crew_count_await(&r->ready, 1);
    uint32_t event = nbi_atomic_load_acquire_u32(&lane->wake_event);
    nbi_atomic_fetch_or_seq_cst_u64(&scheduler->parked_mask, bit);
    nbi_hint hint = nbi_search(lane);
    while (hint == NBI_HINT_NONE && nbi_atomic_load_acquire_u32(&lane->wake_event) == event) {
        nbi_park_until(&lane->wake_event, event, NB_NEVER_NS);
    }
    uint64_t mask = nbi_atomic_fetch_and_seq_cst_u64(&scheduler->parked_mask, ~bit);
    if ((mask & bit) == 0 && hint != NBI_HINT_NONE) nbi_wake_one(lane, false, hint);
    if (hint != NBI_HINT_NONE) nbi_task_run(lane, hint);
    crew_work(&r->crew, worker);
}

// The coordinator is one of those who run them, so that the ring is empty soon.
static void meeting_with_the_owner(void *user, uint32_t index) {
    room *r = user;
    if (index == 1) {
        crew_count_await(&r->ready, 1);
        crew_work(&r->crew, 0);
        return;
    }
    if (index != 0) {
        work_from_last_look(r, index - 1);
        return;
    }
    crew_coordinate(&r->crew);
    nb_task_desc desc = bound(r);
    desc.run = meet;
    r->meeting_count = BATCH;
    for (uint32_t i = 0; i < BATCH; ++i) submit(r, desc, i);
    crew_count_add(&r->ready);
    while (nb_scheduler_help(r->crew.scheduler, 0, NULL) != NB_OK) nbi_thread_yield();
    finish(r, BATCH);
}

// --- a waiter that finds nothing, because it looked here before and there afterwards ---

static void run_when_open(nb_task_context *context, void *argument) {
    (void)context;
    const note *own = argument;
    crew_count_await(&own->room->gate, 1);
    note_run(own->room, own->index);
}

static void open_gate(nb_task_context *context, void *argument) {
    run_note(context, argument);
    crew_count_add(&((const note *)argument)->room->gate);
}

// The only worker takes the first tasks together; one waits for the next, which only the sleeper can run.
static void waiter(void *user, uint32_t index) {
    room *r = user;
    nb_scheduler *scheduler = r->crew.scheduler;
    if (index == 1) {
        work_late(r, 0);
        return;
    }
    if (index == 2) {
        crew_count_await(&r->ended, 1);
        submit(r, (nb_task_desc){.run = run_when_open}, 0);
        submit(r, (nb_task_desc){.run = open_gate, .group = r->group}, 1);
        for (uint32_t i = 2; i < BATCH; ++i) submit(r, (nb_task_desc){.run = run_note}, i);
        crew_count_add(&r->ready);
        return;
    }
    crew_coordinate(&r->crew);
    EXPLORE_CHECK(nb_group_begin(scheduler, &r->group) == NB_OK);
    crew_count_add(&r->ended);
    crew_count_await(&r->ready, 1);
    EXPLORE_CHECK(nb_group_end(scheduler, r->group, NB_NEVER_NS) == NB_OK);
    EXPLORE_CHECK(nbi_atomic_load_relaxed_u32(&r->runs[1]) == 1);
    finish(r, BATCH);
}

// --- strict priority ---

static void run_urgent(nb_task_context *context, void *argument) {
    (void)context;
    const note *own = argument;
    room *r = own->room;
    uint32_t started_count = nbi_atomic_load_seq_cst_u32(&r->started_count);
    nbi_atomic_store_relaxed_u32(&r->started_before, started_count);
    note_run(r, own->index);
}

// The only worker may have chosen one task already; what it has taken with that is no better for it.
static void urgent(void *user, uint32_t index) {
    room *r = user;
    if (index != 0) {
        work_late(r, 0);
        return;
    }
    crew_coordinate(&r->crew);
    for (uint32_t i = 0; i < 5; ++i) submit(r, bound(r), i);
    crew_count_add(&r->ready);
    nb_task_desc desc = bound(r);
    desc.run = run_urgent;
    desc.priority = NB_PRIORITY_HIGH;
    submit(r, desc, 5);
    uint32_t started_count = nbi_atomic_load_seq_cst_u32(&r->started_count);
    finish(r, 6);
    EXPLORE_CHECK(nbi_atomic_load_relaxed_u32(&r->started_before) <= started_count + 1);
}

EXPLORE(two_thieves_at_a_ring, 3, create_two, two_thieves, destroy, sizeof(room))
EXPLORE(three_thieves_of_floating_tasks, 4, create_three, floating_thieves, destroy, sizeof(room))
EXPLORE(thieves_and_an_owner_that_helps, 3, create_two, owner_helps, destroy, sizeof(room))
EXPLORE(thieves_at_two_rings, 4, create_two, two_rings, destroy, sizeof(room))
EXPLORE(ring_goes_round_under_thieves, 3, create_two, round_and_round, destroy, sizeof(room))
EXPLORE(ring_is_cleaned_under_thieves, 3, create_two, cleaned, destroy, sizeof(room))
EXPLORE(thief_leaves_after_one_task, 3, create_one, passer_by, destroy, sizeof(room))
EXPLORE(tasks_taken_together_need_a_worker_each, 4, create_three, meeting, destroy, sizeof(room))
EXPLORE(four_tasks_need_four_workers, 5, create_four, meeting, destroy, sizeof(room))
EXPLORE(workers_are_woken_for_all_that_was_taken, 4, create_three, meeting_with_the_owner, destroy, sizeof(room))
EXPLORE(task_on_its_way_is_not_slept_through, 3, create_one, waiter, destroy, sizeof(room))
EXPLORE(urgent_task_goes_before_what_was_taken, 2, create_one, urgent, destroy, sizeof(room))
