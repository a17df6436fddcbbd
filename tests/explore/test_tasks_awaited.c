// SPDX-License-Identifier: MIT
// The ceiling on background work, while work comes that some thread waits for: no worker sleeps beside that, and none
// takes more background work for it.

#include "explore_tasks.h"

typedef struct room {
    crew crew;
    crew_count started; // tasks that hold a worker
    crew_count may_end; // 1: they end
    crew_count met;     // tasks that need a thread each, and have one
    crew_count ended;
    uint32_t meeting_count; // of them
    nb_atomic_u32 inside;   // background tasks that run
    nb_fence_frame frame;
} room;

static nb_result submit(room *r, nb_task_desc desc, nb_task *task) { return crew_submit(&r->crew, desc, r, task); }

static void hold(nb_task_context *context, void *argument) {
    (void)context;
    room *r = crew_argument(argument);
    crew_count_add(&r->started);
    crew_count_await(&r->may_end, 1);
    crew_count_add(&r->ended);
}

static void meet_here(room *r) {
    crew_count_add(&r->met);
    crew_count_await(&r->met, r->meeting_count);
}

static void meet(nb_task_context *context, void *argument) {
    (void)context;
    meet_here(crew_argument(argument));
}

static void create(room *r, uint32_t worker_count, uint32_t meeting_count) {
    crew_create(&r->crew, worker_count);
    r->crew.scheduler->floating_max = 1;
    crew_create_fence(&r->crew);
    r->meeting_count = meeting_count;
}
static void create_two(void *user) { create(user, 2, 2); }
static void create_three(void *user) { create(user, 3, 2); }

// The coordinator's part begins with a background task that keeps the one worker which may have one.
static bool begin(room *r, uint32_t index) {
    if (index != 0) {
        crew_work(&r->crew, index - 1);
        return false;
    }
    crew_coordinate(&r->crew);
    EXPLORE_CHECK(submit(r, (nb_task_desc){.run = hold}, NULL) == NB_OK);
    // It has begun, or else another thread may begin it any time.
    if (explore_random() % 2 == 0) crew_count_await(&r->started, 1);
    return true;
}

static void end(room *r) {
    crew_count_add(&r->may_end);
    crew_count_await(&r->ended, 1);
    crew_dismiss(&r->crew);
}

// --- what is waited for ---

static void group(void *user, uint32_t index) {
    room *r = user;
    if (!begin(r, index)) return;
    nb_group group;
    EXPLORE_CHECK(nb_group_begin(r->crew.scheduler, &group) == NB_OK);
    for (uint32_t i = 0; i < 2; ++i) {
        EXPLORE_CHECK(submit(r, (nb_task_desc){.run = meet, .group = group}, NULL) == NB_OK);
    }
    EXPLORE_CHECK(nb_group_end(r->crew.scheduler, group, NB_NEVER_NS) == NB_OK);
    end(r);
}

static void loop_run(nb_task_context *context, void *user, uint64_t begin_index, uint64_t end_index) {
    (void)context, (void)begin_index, (void)end_index;
    meet_here(user);
}

static void loop(void *user, uint32_t index) {
    room *r = user;
    if (!begin(r, index)) return;
    nb_parallel_desc desc = {.run = loop_run, .user = r, .count = 2, .grain = 1};
    EXPLORE_CHECK(nb_parallel_for(r->crew.scheduler, &desc, NULL) == NB_OK);
    end(r);
}

static void do_nothing(nb_task_context *context, void *argument) { (void)context, (void)argument; }

// The waiting thread runs one of the two, the other is a worker's.
static void dependency(void *user, uint32_t index) {
    room *r = user;
    if (!begin(r, index)) return;
    nb_task on[2], last;
    for (uint32_t i = 0; i < 2; ++i) EXPLORE_CHECK(submit(r, (nb_task_desc){.run = meet}, &on[i]) == NB_OK);
    nb_task_desc desc = {.run = do_nothing, .dependencies = on, .dependency_count = 2};
    EXPLORE_CHECK(submit(r, desc, &last) == NB_OK);
    EXPLORE_CHECK(nb_task_wait(r->crew.scheduler, last, NB_NEVER_NS) == NB_OK);
    end(r);
}

// Ends its group only when the two tasks in it have met.
static void spawn(nb_task_context *context, void *argument) {
    room *r = crew_argument(argument);
    nb_group group;
    EXPLORE_CHECK(nb_group_begin(context->scheduler, &group) == NB_OK);
    for (uint32_t i = 0; i < 2; ++i) {
        EXPLORE_CHECK(submit(r, (nb_task_desc){.run = meet, .group = group}, NULL) == NB_OK);
    }
    crew_count_await(&r->met, 2);
    EXPLORE_CHECK(nb_group_end(context->scheduler, group, NB_NEVER_NS) == NB_OK);
}

static void below(void *user, uint32_t index) {
    room *r = user;
    if (!begin(r, index)) return;
    nb_task task;
    EXPLORE_CHECK(submit(r, (nb_task_desc){.run = spawn}, &task) == NB_OK);
    EXPLORE_CHECK(nb_task_wait(r->crew.scheduler, task, NB_NEVER_NS) == NB_OK);
    end(r);
}

// The same below a task of the frame, which the coordinator waits for.
static void below_frame(void *user, uint32_t index) {
    room *r = user;
    if (!begin(r, index)) return;
    EXPLORE_CHECK(nb_fence_begin(r->crew.fence, &r->frame) == NB_OK);
    nb_task_desc desc = {.run = spawn, .priority = NB_PRIORITY_CRITICAL, .fence = r->crew.fence};
    EXPLORE_CHECK(submit(r, desc, NULL) == NB_OK);
    EXPLORE_CHECK(nb_scheduler_frame_wait(r->crew.scheduler, r->crew.fence, r->frame, NB_NEVER_NS, NULL) == NB_OK);
    end(r);
}

// --- what is not ---

static void note_inside(nb_task_context *context, void *argument) {
    (void)context;
    room *r = crew_argument(argument);
    EXPLORE_CHECK(nbi_atomic_fetch_add_seq_cst_u32(&r->inside, 1) == 0);
    nbi_atomic_fetch_sub_seq_cst_u32(&r->inside, 1);
    crew_count_add(&r->started);
}

// Background tasks run one at a time, also while a thread waits for others.
static void background(void *user, uint32_t index) {
    room *r = user;
    if (crew_worked(&r->crew, index != 0, index - 1)) return;
    crew_coordinate(&r->crew);
    nb_group group;
    EXPLORE_CHECK(nb_group_begin(r->crew.scheduler, &group) == NB_OK);
    for (uint32_t i = 0; i < 2; ++i) {
        EXPLORE_CHECK(submit(r, (nb_task_desc){.run = note_inside}, NULL) == NB_OK);
        EXPLORE_CHECK(submit(r, (nb_task_desc){.run = do_nothing, .group = group}, NULL) == NB_OK);
    }
    EXPLORE_CHECK(nb_group_end(r->crew.scheduler, group, NB_NEVER_NS) == NB_OK);
    crew_count_await(&r->started, 2);
    crew_dismiss(&r->crew);
}

// --- the first frame ---

static void create_idle(void *user) {
    room *r = user;
    crew_create(&r->crew, 2);
    crew_create_fence(&r->crew);
    r->crew.scheduler->serves_frames.value = 0;
    EXPLORE_CHECK(nb_fence_begin(r->crew.fence, &r->frame) == NB_OK);
}

static void destroy_with_frame(void *user) {
    room *r = user;
    EXPLORE_CHECK(nb_fence_wait(r->crew.fence, r->frame, 0, NULL, NULL) == NB_OK);
    crew_destroy(&r->crew);
}

static void await_met(nb_task_context *context, void *argument) {
    (void)context;
    room *r = crew_argument(argument);
    crew_count_await(&r->met, 1);
    crew_count_add(&r->ended);
}

// Both workers run background work when the first task of a frame comes: one of them turns away from it, though more
// is queued.
static void first_frame(void *user, uint32_t index) {
    room *r = user;
    if (crew_worked(&r->crew, index != 0, index - 1)) return;
    crew_coordinate(&r->crew);
    for (uint32_t i = 0; i < 2; ++i) EXPLORE_CHECK(submit(r, (nb_task_desc){.run = hold}, NULL) == NB_OK);
    crew_count_await(&r->started, 2);
    nb_task_desc bound = {.run = meet, .lifetime = NB_LIFETIME_FRAME, .fence = r->crew.fence};
    nb_task_desc first = {.run = do_nothing, .lifetime = NB_LIFETIME_FRAME, .fence = r->crew.fence};
    EXPLORE_CHECK(nb_task_run(r->crew.scheduler, &first) == NB_OK);
    for (uint32_t i = 0; i < 2; ++i) EXPLORE_CHECK(submit(r, (nb_task_desc){.run = await_met}, NULL) == NB_OK);
    crew_count_add(&r->may_end);
    crew_count_await(&r->ended, 2);
    EXPLORE_CHECK(submit(r, bound, NULL) == NB_OK);
    crew_count_await(&r->ended, 4);
    crew_dismiss(&r->crew);
}

EXPLORE(group_above_the_ceiling_has_every_worker, 3, create_two, group, crew_end, sizeof(room))
EXPLORE(loop_above_the_ceiling_has_every_worker, 3, create_two, loop, crew_end, sizeof(room))
EXPLORE(dependency_above_the_ceiling_has_every_worker, 3, create_two, dependency, crew_end, sizeof(room))
EXPLORE(tasks_below_an_awaited_one_have_every_worker, 4, create_three, below, crew_end, sizeof(room))
EXPLORE(tasks_below_a_frame_have_every_worker, 4, create_three, below_frame, crew_end, sizeof(room))
EXPLORE(background_stays_below_the_ceiling, 3, create_two, background, crew_end, sizeof(room))
EXPLORE(first_frame_finds_a_worker, 3, create_idle, first_frame, destroy_with_frame, sizeof(room))
