// SPDX-License-Identifier: MIT
// Nebula's scheduler as a contender of the tasks cases.

#include "tasks_job.h"

#include <nebula/tasks.h>

#include <stdlib.h>

typedef struct nebula_pool {
    nb_scheduler *scheduler;
    nb_fence *fence;     // NULL: tasks float
    nb_task_desc common; // what the tasks of this pool have in common
    bool is_queued;      // tree: both parts are submitted, none is run at once
} nebula_pool;

typedef struct tree_call {
    const nebula_pool *pool;
    uint64_t *result;
    uint64_t n;
} tree_call;

typedef struct plain_call {
    task_fn *run;
    void *argument;
} plain_call;

static void close_pool(void *pool) {
    nebula_pool *self = pool;
    nb_scheduler_destroy(self->scheduler);
    nb_fence_destroy(self->fence);
    free(self);
}

static void *open_pool(const task_setup *setup) {
    static const uint64_t worker_mask = (uint64_t)1 << TASK_WORKER_CPU;
    nebula_pool *self = calloc(1, sizeof *self);
    if (!self) return NULL;
    nb_scheduler_desc desc = nb_scheduler_desc_default();
    desc.worker_count = setup->worker_count ? setup->worker_count : NB_WORKER_COUNT_NONE;
    if (setup->is_pinned) desc.affinity = &worker_mask;
    if (nb_scheduler_create(&desc, &self->scheduler) == NB_OK) return self;
    free(self);
    return NULL;
}

static void *open_pool_frame(const task_setup *setup) {
    nebula_pool *self = open_pool(setup);
    if (!self) return NULL;
    self->common.lifetime = NB_LIFETIME_FRAME;
    if (nb_fence_create(NULL, &self->fence) == NB_OK) {
        self->common.fence = self->fence;
        return self;
    }
    close_pool(self);
    return NULL;
}

static void *open_pool_queued(const task_setup *setup) {
    nebula_pool *self = open_pool(setup);
    if (self) self->is_queued = true;
    return self;
}

// Around the work of one measurement: with a fence it is one frame.
static bool begin(nebula_pool *self, nb_group *group) {
    bool is_good = !self->fence || nb_fence_begin(self->fence, &self->common.frame) == NB_OK;
    return is_good && nb_group_begin(self->scheduler, group) == NB_OK;
}

static bool end(nebula_pool *self, nb_group group) {
    bool is_good = nb_group_end(self->scheduler, group, NB_NEVER_NS) == NB_OK;
    if (!self->fence) return is_good;
    return nb_scheduler_frame_wait(self->scheduler, self->fence, self->common.frame, NB_NEVER_NS, NULL) == NB_OK &&
           is_good;
}

static void run_empty(nb_task_context *context, void *argument) {
    (void)context;
    (void)argument;
    task_note(1);
}

static bool flat(void *pool, size_t count) {
    nebula_pool *self = pool;
    nb_group group;
    if (!begin(self, &group)) return false;
    nb_task_desc desc = self->common;
    desc.run = run_empty;
    desc.group = group;
    bool is_good = true;
    task_submits(true);
    for (size_t i = 0; is_good && i < count; ++i) is_good = nb_task_submit(self->scheduler, &desc, NULL) == NB_OK;
    task_submits(false);
    return end(self, group) && is_good && nb_scheduler_stats_get(self->scheduler).inline_count == 0;
}

static void run_tree(nb_task_context *context, void *argument) {
    const tree_call *call = argument;
    task_note(1);
    if (call->n < 2) {
        *call->result = call->n;
        return;
    }
    uint64_t parts[2] = {0, 0};
    nb_group group;
    bool is_good = nb_group_begin(context->scheduler, &group) == NB_OK;
    nb_task_desc desc = call->pool->common;
    desc.run = run_tree;
    desc.group = group;
    tree_call first = {call->pool, &parts[0], call->n - 1}, second = {call->pool, &parts[1], call->n - 2};
    desc.argument = &first;
    desc.argument_size_bytes = sizeof first;
    is_good = is_good && nb_task_submit(context->scheduler, &desc, NULL) == NB_OK;
    desc.argument = &second;
    if (call->pool->is_queued)
        is_good = is_good && nb_task_submit(context->scheduler, &desc, NULL) == NB_OK;
    else
        is_good = is_good && nb_task_run(context->scheduler, &desc) == NB_OK;
    // What went wrong shows in the sum.
    if (nb_group_end(context->scheduler, group, NB_NEVER_NS) == NB_OK && is_good) *call->result = parts[0] + parts[1];
}

static bool tree(void *pool, unsigned n, uint64_t *result) {
    nebula_pool *self = pool;
    nb_group group;
    if (!begin(self, &group)) return false;
    tree_call root = {self, result, n};
    nb_task_desc desc = self->common;
    desc.run = run_tree;
    desc.group = group;
    desc.argument = &root;
    desc.argument_size_bytes = sizeof root;
    bool is_good = nb_task_submit(self->scheduler, &desc, NULL) == NB_OK;
    return end(self, group) && is_good;
}

static void run_plain(nb_task_context *context, void *argument) {
    const plain_call *call = argument;
    (void)context;
    call->run(call->argument);
}

static nb_task_desc plain_desc(const nebula_pool *self, nb_group group, const plain_call *call) {
    nb_task_desc desc = self->common;
    desc.run = run_plain;
    desc.group = group;
    desc.argument = call;
    desc.argument_size_bytes = sizeof *call;
    return desc;
}

static bool batch(void *pool, task_fn *run, void *argument, size_t count) {
    nebula_pool *self = pool;
    nb_group group;
    if (!begin(self, &group)) return false;
    plain_call call = {run, argument};
    nb_task_desc desc = plain_desc(self, group, &call);
    bool is_good = true;
    for (size_t i = 0; is_good && i < count; ++i) is_good = nb_task_submit(self->scheduler, &desc, NULL) == NB_OK;
    return end(self, group) && is_good;
}

static bool wake_worker(void *pool, task_wake *wake) {
    nebula_pool *self = pool;
    nb_group group;
    if (!begin(self, &group)) return false;
    plain_call call = {task_wake_run, wake};
    nb_task_desc desc = plain_desc(self, group, &call);
    bool is_good = nb_task_submit(self->scheduler, &desc, NULL) == NB_OK;
    if (is_good) task_wake_await(wake);
    return end(self, group) && is_good;
}

typedef struct race_state {
    nebula_pool *pool;
    nb_group group;
} race_state;

static bool race_submit(void *state, task_race *race, bool is_critical) {
    race_state *self = state;
    plain_call call = {is_critical ? task_race_critical : task_race_low, race};
    nb_task_desc desc = plain_desc(self->pool, self->group, &call);
    desc.priority = is_critical ? NB_PRIORITY_CRITICAL : NB_PRIORITY_LOW;
    return nb_task_submit(self->pool->scheduler, &desc, NULL) == NB_OK;
}

static bool race_all(void *pool, task_race *race) {
    race_state state = {pool, {0}};
    if (!begin(state.pool, &state.group)) return false;
    bool is_good = task_race_run(&state, race, race_submit);
    return end(state.pool, state.group) && is_good;
}

static bool prewake(void *pool, uint64_t spin_ns) {
    return nb_scheduler_prewake(((nebula_pool *)pool)->scheduler, spin_ns) == NB_OK;
}

static void run_items(nb_task_context *context, void *user, uint64_t begin_index, uint64_t end_index) {
    (void)context;
    task_range_items(user, begin_index, end_index);
    task_note(end_index - begin_index);
}

static bool range(void *pool, float *items, size_t count, size_t grain) {
    nb_parallel_desc desc = {.run = run_items, .user = items, .count = count, .grain = grain};
    return nb_parallel_for(((nebula_pool *)pool)->scheduler, &desc, NULL) == NB_OK;
}

const task_pool task_pool_nebula = {.open = open_pool,
                                    .close = close_pool,
                                    .flat = flat,
                                    .tree = tree,
                                    .range = range,
                                    .batch = batch,
                                    .wake = wake_worker,
                                    .race = race_all,
                                    .prewake = prewake};
const task_pool task_pool_nebula_queued = {.open = open_pool_queued, .close = close_pool, .tree = tree};
const task_pool task_pool_nebula_frame = {
    .open = open_pool_frame, .close = close_pool, .flat = flat, .tree = tree, .batch = batch};
