// SPDX-License-Identifier: MIT
// The pool that programs write by hand: one mutex, one condition variable, one growing queue per level. The worker
// takes the oldest task; a thread that waits helps with the newest, so that a tree stays as deep as it is. That is
// another thread's tree too, and inside it again: where the waits of one thread are nested HELP_DEPTH_MAX deep, it
// helps with nothing but its own parts, and so no deeper than the tree.

#include "peers.h"

#include <pthread.h>
#include <stdlib.h>

#define LEVELS 2
#define LEVEL_HIGH 0
#define LEVEL_LOW 1
// Nested waits of one thread: far more than a tree is deep.
#define HELP_DEPTH_MAX 100
// Grows by doubling. The first 100,000 tasks are queued in the warm-up round.
#define QUEUE_FIRST 1024

typedef struct mutex_group {
    size_t pending_count; // protected by the pool's mutex
} mutex_group;

typedef struct mutex_task {
    void (*run)(void *pool, const struct mutex_task *task);
    mutex_group *group;
    void *pointer;
    uint64_t numbers[2];
} mutex_task;

typedef struct mutex_queue {
    mutex_task *tasks; // a ring
    size_t capacity;   // a power of two
    size_t head;
    size_t tail;
} mutex_queue;

typedef struct mutex_pool {
    pthread_mutex_t mutex; // protects everything below
    pthread_cond_t is_changed;
    mutex_queue queues[LEVELS];
    unsigned sleeper_count;
    bool is_closing;
    bool has_thread;
    bool is_pinned;
    pthread_t thread;
} mutex_pool;

static _Thread_local unsigned help_depth;

static bool queue_grow(mutex_queue *queue) {
    size_t capacity = queue->capacity ? 2 * queue->capacity : QUEUE_FIRST;
    mutex_task *tasks = malloc(capacity * sizeof *tasks);
    if (!tasks) return false;
    for (size_t i = queue->head; i != queue->tail; ++i)
        tasks[i & (capacity - 1)] = queue->tasks[i & (queue->capacity - 1)];
    free(queue->tasks);
    queue->tasks = tasks;
    queue->capacity = capacity;
    return true;
}

static bool submit(mutex_pool *self, unsigned level, const mutex_task *task) {
    mutex_queue *queue = &self->queues[level];
    pthread_mutex_lock(&self->mutex);
    bool has_room = queue->tail - queue->head < queue->capacity || queue_grow(queue);
    bool has_sleeper = self->sleeper_count != 0;
    if (has_room) {
        queue->tasks[queue->tail++ & (queue->capacity - 1)] = *task;
        ++task->group->pending_count;
    }
    pthread_mutex_unlock(&self->mutex);
    if (has_room && has_sleeper) pthread_cond_signal(&self->is_changed);
    return has_room;
}

// Under the mutex.
static bool take(mutex_pool *self, bool is_newest, mutex_task *task) {
    for (unsigned level = 0; level < LEVELS; ++level) {
        mutex_queue *queue = &self->queues[level];
        if (queue->head == queue->tail) continue;
        size_t index = is_newest ? --queue->tail : queue->head++;
        *task = queue->tasks[index & (queue->capacity - 1)];
        return true;
    }
    return false;
}

// Under the mutex: the newest task of one group. The newest of all takes its place.
static bool take_own(mutex_pool *self, const mutex_group *group, mutex_task *task) {
    for (unsigned level = 0; level < LEVELS; ++level) {
        mutex_queue *queue = &self->queues[level];
        for (size_t i = queue->tail; i != queue->head; --i) {
            mutex_task *found = &queue->tasks[(i - 1) & (queue->capacity - 1)];
            if (found->group != group) continue;
            *task = *found;
            *found = queue->tasks[--queue->tail & (queue->capacity - 1)];
            return true;
        }
    }
    return false;
}

static bool take_for(mutex_pool *self, const mutex_group *group, mutex_task *task) {
    return help_depth <= HELP_DEPTH_MAX ? take(self, true, task) : take_own(self, group, task);
}

// Called under the mutex, runs the task outside of it.
static void run_one(mutex_pool *self, const mutex_task *task) {
    pthread_mutex_unlock(&self->mutex);
    task->run(self, task);
    pthread_mutex_lock(&self->mutex);
    if (--task->group->pending_count == 0 && self->sleeper_count) pthread_cond_broadcast(&self->is_changed);
}

static void sleep_on(mutex_pool *self) {
    ++self->sleeper_count;
    pthread_cond_wait(&self->is_changed, &self->mutex);
    --self->sleeper_count;
}

static void wait_for(mutex_pool *self, mutex_group *group) {
    mutex_task task;
    ++help_depth;
    pthread_mutex_lock(&self->mutex);
    while (group->pending_count) {
        if (take_for(self, group, &task))
            run_one(self, &task);
        else
            sleep_on(self);
    }
    pthread_mutex_unlock(&self->mutex);
    --help_depth;
}

static void *work(void *pool) {
    mutex_pool *self = pool;
    mutex_task task;
    if (self->is_pinned) bench_pin(TASK_WORKER_CPU);
    pthread_mutex_lock(&self->mutex);
    while (!self->is_closing) {
        if (take(self, false, &task))
            run_one(self, &task);
        else
            sleep_on(self);
    }
    pthread_mutex_unlock(&self->mutex);
    return NULL;
}

static void close_pool(void *pool) {
    mutex_pool *self = pool;
    pthread_mutex_lock(&self->mutex);
    self->is_closing = true;
    pthread_mutex_unlock(&self->mutex);
    pthread_cond_broadcast(&self->is_changed);
    if (self->has_thread) pthread_join(self->thread, NULL);
    for (unsigned level = 0; level < LEVELS; ++level) free(self->queues[level].tasks);
    pthread_cond_destroy(&self->is_changed);
    pthread_mutex_destroy(&self->mutex);
    free(self);
}

static void *open_pool(const task_setup *setup) {
    mutex_pool *self = calloc(1, sizeof *self);
    if (!self) return NULL;
    self->is_pinned = setup->is_pinned;
    pthread_mutex_init(&self->mutex, NULL);
    pthread_cond_init(&self->is_changed, NULL);
    self->has_thread = setup->worker_count && pthread_create(&self->thread, NULL, work, self) == 0;
    if (self->has_thread == (setup->worker_count != 0)) return self;
    close_pool(self);
    return NULL;
}

static void run_empty(void *pool, const mutex_task *task) {
    (void)pool;
    (void)task;
    task_note(1);
}

static bool flat(void *pool, size_t count) {
    mutex_group group = {0};
    mutex_task task = {.run = run_empty, .group = &group};
    bool is_good = true;
    task_submits(true);
    for (size_t i = 0; is_good && i < count; ++i) is_good = submit(pool, LEVEL_HIGH, &task);
    task_submits(false);
    wait_for(pool, &group);
    return is_good;
}

static void run_fibonacci(void *pool, const mutex_task *task) {
    uint64_t n = task->numbers[0], *result = task->pointer, parts[2] = {0, 0};
    task_note(1);
    if (n < 2) {
        *result = n;
        return;
    }
    mutex_group group = {0};
    for (uint64_t i = 0; i < 2; ++i) {
        mutex_task child = {.run = run_fibonacci, .group = &group, .pointer = &parts[i], .numbers = {n - 1 - i, 0}};
        if (!submit(pool, LEVEL_HIGH, &child)) run_fibonacci(pool, &child);
    }
    wait_for(pool, &group);
    *result = parts[0] + parts[1];
}

static bool tree(void *pool, unsigned n, uint64_t *result) {
    mutex_group group = {0};
    mutex_task root = {.run = run_fibonacci, .group = &group, .pointer = result, .numbers = {n, 0}};
    bool is_good = submit(pool, LEVEL_HIGH, &root);
    wait_for(pool, &group);
    return is_good;
}

static void run_range(void *pool, const mutex_task *task) {
    (void)pool;
    task_range_items(task->pointer, (size_t)task->numbers[0], (size_t)task->numbers[1]);
    task_note(task->numbers[1] - task->numbers[0]);
}

static bool range(void *pool, float *items, size_t count, size_t grain) {
    mutex_group group = {0};
    bool is_good = true;
    // Eight pieces a thread: a rule of thumb against pieces that take longer than others.
    if (grain == 0) grain = (count + 8 * TASK_THREADS - 1) / (8 * TASK_THREADS);
    for (size_t first = 0; is_good && first < count; first += grain) {
        size_t end = count - first < grain ? count : first + grain;
        mutex_task task = {.run = run_range, .group = &group, .pointer = items, .numbers = {first, end}};
        is_good = submit(pool, LEVEL_HIGH, &task);
    }
    wait_for(pool, &group);
    return is_good;
}

typedef struct batch_call {
    task_fn *run;
    void *argument;
} batch_call;

static void run_call(void *pool, const mutex_task *task) {
    const batch_call *call = task->pointer;
    (void)pool;
    call->run(call->argument);
}

static bool batch(void *pool, task_fn *run, void *argument, size_t count) {
    mutex_group group = {0};
    batch_call call = {run, argument};
    mutex_task task = {.run = run_call, .group = &group, .pointer = &call};
    bool is_good = true;
    for (size_t i = 0; is_good && i < count; ++i) is_good = submit(pool, LEVEL_HIGH, &task);
    wait_for(pool, &group);
    return is_good;
}

static bool wake_worker(void *pool, task_wake *wake) {
    mutex_group group = {0};
    batch_call call = {task_wake_run, wake};
    mutex_task task = {.run = run_call, .group = &group, .pointer = &call};
    if (!submit(pool, LEVEL_HIGH, &task)) return false;
    task_wake_await(wake);
    wait_for(pool, &group);
    return true;
}

typedef struct race_state {
    mutex_pool *pool;
    mutex_group group;
    batch_call low;
    batch_call critical;
} race_state;

static bool race_submit(void *state, task_race *race, bool is_critical) {
    race_state *self = state;
    (void)race;
    mutex_task task = {.run = run_call, .group = &self->group, .pointer = is_critical ? &self->critical : &self->low};
    return submit(self->pool, is_critical ? LEVEL_HIGH : LEVEL_LOW, &task);
}

static bool race_all(void *pool, task_race *race) {
    race_state state = {pool, {0}, {task_race_low, race}, {task_race_critical, race}};
    bool is_good = task_race_run(&state, race, race_submit);
    wait_for(pool, &state.group);
    return is_good;
}

const task_pool task_pool_mutex = {.open = open_pool,
                                   .close = close_pool,
                                   .flat = flat,
                                   .tree = tree,
                                   .range = range,
                                   .batch = batch,
                                   .wake = wake_worker,
                                   .race = race_all};
