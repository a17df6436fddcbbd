// SPDX-License-Identifier: MIT
// A physics library that brings no threads asks its host for two functions, as Box2D does: one that starts work over a
// range and one that waits for it. Here a scheduler gives it both; the physics is a toy that checks the bargain.

#include <stdio.h>

#include "nebula/tasks.h"

// What the library asks for.
typedef void physics_task(int start, int end, uint32_t worker_index, void *task_context);
typedef void *physics_enqueue(physics_task *task, int item_count, int min_range, void *task_context, void *user);
typedef void physics_finish(void *user_task, void *user);

// The host's side.
typedef struct host {
    nb_scheduler *scheduler;
    int thread_count;   // workers and the thread that steps
    nb_group groups[8]; // of work under way; null = free
} host;

typedef struct range {
    physics_task *task;
    void *task_context;
    int start, end;
} range;

static void run_range(nb_task_context *context, void *argument) {
    const range *mine = argument;
    mine->task(mine->start, mine->end, context->thread_index, mine->task_context);
}

// NULL tells the library that the work is done already. The step is the coordinator's, whose index is 0.
static void *enqueue(physics_task *task, int item_count, int min_range, void *task_context, void *user) {
    host *h = user;
    nb_group *group = h->groups, *end = h->groups + sizeof h->groups / sizeof *h->groups;
    while (group < end && group->value != 0) ++group;
    if (group == end || nb_group_begin(h->scheduler, group) != NB_OK) {
        task(0, item_count, 0, task_context);
        return NULL;
    }
    int size = (item_count + h->thread_count - 1) / h->thread_count;
    if (size < min_range) size = min_range;
    nb_task_desc desc = {.run = run_range, .priority = NB_PRIORITY_HIGH, .group = *group, .runs_inline = true};
    for (int start = 0; start < item_count; start += size) {
        range next = {task, task_context, start, start + size < item_count ? start + size : item_count};
        desc.argument = &next, desc.argument_size_bytes = sizeof next;
        nb_task_submit(h->scheduler, &desc, NULL);
    }
    return group;
}

// While this work is under way the thread helps with all that is queued: a wait alone runs the work of its own group,
// and would leave other pieces of the step to the workers.
static void finish(void *user_task, void *user) {
    nb_group *group = user_task;
    nb_scheduler *scheduler = ((host *)user)->scheduler;
    while (nb_group_pending_count(scheduler, *group) != 0 && nb_scheduler_help(scheduler, 0, NULL) == NB_OK) {
    }
    nb_group_end(scheduler, *group, NB_NEVER_NS);
    *group = (nb_group){0};
}

#define BODY_COUNT 5000
#define STEP_COUNT 60

// The library's side.
typedef struct world {
    int moved[BODY_COUNT], touched[BODY_COUNT];         // times each body was worked on
    long long by_worker[NB_SCHEDULER_THREAD_COUNT_MAX]; // bodies, counted without atomics: an index is one thread's
} world;

static void move_bodies(int start, int end, uint32_t worker_index, void *task_context) {
    world *w = task_context;
    for (int i = start; i < end; ++i) ++w->moved[i];
    w->by_worker[worker_index] += end - start;
}

static void touch_bodies(int start, int end, uint32_t worker_index, void *task_context) {
    world *w = task_context;
    for (int i = start; i < end; ++i) ++w->touched[i];
    w->by_worker[worker_index] += end - start;
}

// Two pieces of work that need nothing of each other are under way at once.
static void step(world *w, physics_enqueue *enqueue_fn, physics_finish *finish_fn, void *user) {
    void *moving = enqueue_fn(move_bodies, BODY_COUNT, 64, w, user);
    void *touching = enqueue_fn(touch_bodies, BODY_COUNT, 256, w, user);
    if (moving != NULL) finish_fn(moving, user);
    if (touching != NULL) finish_fn(touching, user);
}

// Every body exactly once a step, and every piece of work under the index of the one thread that did it.
static bool is_right(const world *w) {
    long long sum = 0;
    for (int i = 0; i < NB_SCHEDULER_THREAD_COUNT_MAX; ++i) sum += w->by_worker[i];
    for (int i = 0; i < BODY_COUNT; ++i) {
        if (w->moved[i] != STEP_COUNT || w->touched[i] != STEP_COUNT) return false;
    }
    return sum == 2LL * STEP_COUNT * BODY_COUNT;
}

static bool run(const char *name, uint32_t worker_count) {
    static world w;
    w = (world){0};
    host h = {0};
    nb_scheduler_desc desc = {.worker_count = worker_count};
    if (nb_scheduler_create(&desc, &h.scheduler) != NB_OK) return false;
    h.thread_count = (int)nb_scheduler_stats_get(h.scheduler).worker_count + 1;
    for (int i = 0; i < STEP_COUNT; ++i) step(&w, enqueue, finish, &h);
    bool is_good = nb_scheduler_destroy(h.scheduler) == NB_OK && is_right(&w);
    printf("%s: %d steps, %d bodies, %s\n", name, STEP_COUNT, BODY_COUNT, is_good ? "each once" : "WRONG");
    return is_good;
}

int main(void) { return run("no workers", NB_WORKER_COUNT_NONE) && run("the machine's workers", 0) ? 0 : 1; }
