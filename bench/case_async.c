// SPDX-License-Identifier: MIT
// Async jobs: what one costs from its submit to its publication, beside a queue of heap blocks under a mutex.

#include "bench.h"

#include <nebula/async.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

// As many as fit the default pool; the result of a frame in which much comes in.
#define JOBS 512
// Batches of one run: some ten milliseconds.
#define BATCHES 40
#define STATE_BYTES 64
// The harness keeps the main thread on cpu 0, and threads it starts would stay there too.
#define WORKER_CPU 1

typedef struct payload {
    uint64_t number;
    unsigned char bytes[STATE_BYTES - sizeof(uint64_t)];
} payload;

// What the callbacks see.
typedef struct tally {
    uint64_t commit_count, publish_sum;
} tally;

static uint64_t work(uint64_t number) { return number * 3 + 1; }

// --- nebula ---

typedef struct async_fixture {
    nb_scheduler *schedulers[2]; // without and with a worker
    nb_async *asyncs[2];
} async_fixture;

static nb_async_status step(nb_async_call *call, void *state) {
    payload *p = state;
    (void)call;
    p->number = work(p->number);
    return NB_ASYNC_STATUS_DONE;
}

static nb_result commit(void *host, void *state) {
    (void)state;
    ++((tally *)host)->commit_count;
    return NB_OK;
}

static void publish(void *host, void *state) { ((tally *)host)->publish_sum += ((payload *)state)->number; }

static bool run_batch(nb_async *async, tally *host) {
    payload p = {0, {0}};
    nb_async_job_desc desc = {
        .step = step, .commit = commit, .publish = publish, .state = &p, .state_size_bytes = sizeof p};
    nb_async_frame frame = {.host = host, .is_blind = true};
    for (uint64_t i = 0; i < JOBS; ++i) {
        p.number = i;
        if (nb_async_submit(async, &desc, NULL) != NB_OK) return false;
    }
    for (host->commit_count = 0; host->commit_count < JOBS;) {
        if (nb_async_poll(async, &frame) != NB_OK) return false;
    }
    return nb_async_publish(async, &frame) == NB_OK;
}

static bool run_nebula(void *context, const void *argument, double *values) {
    async_fixture *fixture = context;
    (void)argument;
    for (int i = 0; i < 2; ++i) {
        tally host = {0, 0};
        uint64_t start_ns = bench_now_ns();
        for (int batch = 0; batch < BATCHES; ++batch) {
            if (!run_batch(fixture->asyncs[i], &host)) return false;
        }
        values[i] = (double)(bench_now_ns() - start_ns) / ((double)BATCHES * JOBS);
        if (host.publish_sum != (uint64_t)BATCHES * JOBS * (3 * (JOBS - 1) + 2) / 2) return false;
    }
    return true;
}

static void close_fixture(void *context) {
    async_fixture *fixture = context;
    for (int i = 0; i < 2; ++i) {
        nb_async_destroy(fixture->asyncs[i]);
        nb_scheduler_destroy(fixture->schedulers[i]);
    }
    free(fixture);
}

static void *open_fixture(void) {
    async_fixture *fixture = calloc(1, sizeof *fixture);
    if (!fixture) return NULL;
    bool is_good = true;
    for (int i = 0; i < 2 && is_good; ++i) {
        static const uint64_t worker_mask = (uint64_t)1 << WORKER_CPU;
        nb_scheduler_desc desc = {.worker_count = i == 0 ? NB_WORKER_COUNT_NONE : 1, .affinity = &worker_mask};
        is_good = nb_scheduler_create(&desc, &fixture->schedulers[i]) == NB_OK;
        nb_async_desc async = {.scheduler = fixture->schedulers[i], .budget_other_ns = 1000000000};
        is_good = is_good && nb_async_create(&async, &fixture->asyncs[i]) == NB_OK;
    }
    if (is_good) return fixture;
    close_fixture(fixture);
    return NULL;
}

// --- the peer: what one writes in an afternoon. No handles, cancellation, priorities or budgets. ---

typedef struct node {
    struct node *next;
    void (*run)(payload *p);
    nb_result (*commit)(void *host, void *state);
    void (*publish)(void *host, void *state);
    payload payload;
} node;

typedef struct list {
    node *first, **last;
} list;

typedef struct mutex_queue {
    pthread_mutex_t mutex;
    pthread_cond_t condition;
    list waiting, done;
    bool is_over;
} mutex_queue;

static void list_push(list *l, node *n) {
    n->next = NULL;
    *l->last = n;
    l->last = &n->next;
}

static node *list_pop(list *l) {
    node *n = l->first;
    if (!n) return NULL;
    l->first = n->next;
    if (!l->first) l->last = &l->first;
    return n;
}

static void run_payload(payload *p) { p->number = work(p->number); }

static bool mutex_submit(mutex_queue *queue, const payload *p) {
    node *n = malloc(sizeof *n);
    if (!n) return false;
    n->run = run_payload, n->commit = commit, n->publish = publish;
    n->payload = *p;
    pthread_mutex_lock(&queue->mutex);
    list_push(&queue->waiting, n);
    pthread_mutex_unlock(&queue->mutex);
    pthread_cond_signal(&queue->condition);
    return true;
}

// False: there was nothing to run, and `waits` is false or the queue is over.
static bool mutex_run(mutex_queue *queue, bool waits) {
    pthread_mutex_lock(&queue->mutex);
    while (waits && !queue->waiting.first && !queue->is_over) pthread_cond_wait(&queue->condition, &queue->mutex);
    node *n = list_pop(&queue->waiting);
    pthread_mutex_unlock(&queue->mutex);
    if (!n) return false;
    n->run(&n->payload);
    pthread_mutex_lock(&queue->mutex);
    list_push(&queue->done, n);
    pthread_mutex_unlock(&queue->mutex);
    return true;
}

static void mutex_poll(mutex_queue *queue, list *staged, tally *host) {
    for (;;) {
        pthread_mutex_lock(&queue->mutex);
        node *n = list_pop(&queue->done);
        pthread_mutex_unlock(&queue->mutex);
        if (!n) return;
        n->commit(host, &n->payload);
        list_push(staged, n);
    }
}

static bool mutex_batch(mutex_queue *queue, bool has_worker, tally *host) {
    payload p = {0, {0}};
    list staged = {NULL, &staged.first};
    for (uint64_t i = 0; i < JOBS; ++i) {
        p.number = i;
        if (!mutex_submit(queue, &p)) return false;
    }
    for (host->commit_count = 0; host->commit_count < JOBS;) {
        while (!has_worker && mutex_run(queue, false)) continue;
        mutex_poll(queue, &staged, host);
    }
    for (node *n = list_pop(&staged); n; n = list_pop(&staged)) {
        n->publish(host, &n->payload);
        free(n);
    }
    return true;
}

static void *mutex_worker(void *queue) {
    bench_pin(WORKER_CPU);
    while (mutex_run(queue, true)) continue;
    return NULL;
}

static double mutex_time(bool has_worker, bool *is_good) {
    mutex_queue queue = {.mutex = PTHREAD_MUTEX_INITIALIZER, .condition = PTHREAD_COND_INITIALIZER};
    queue.waiting.last = &queue.waiting.first;
    queue.done.last = &queue.done.first;
    pthread_t thread;
    tally host = {0, 0};
    if (has_worker && pthread_create(&thread, NULL, mutex_worker, &queue) != 0) *is_good = false;
    if (!*is_good) return 0;
    uint64_t start_ns = bench_now_ns();
    for (int batch = 0; batch < BATCHES && *is_good; ++batch) *is_good = mutex_batch(&queue, has_worker, &host);
    double time_ns = (double)(bench_now_ns() - start_ns) / ((double)BATCHES * JOBS);
    pthread_mutex_lock(&queue.mutex);
    queue.is_over = true;
    pthread_mutex_unlock(&queue.mutex);
    pthread_cond_signal(&queue.condition);
    if (has_worker) pthread_join(thread, NULL);
    return time_ns;
}

static bool run_mutex(void *context, const void *argument, double *values) {
    bool is_good = true;
    (void)context;
    (void)argument;
    values[0] = mutex_time(false, &is_good);
    values[1] = mutex_time(true, &is_good);
    return is_good;
}

static const bench_row rows[] = {
    {.name = "async.commit", .unit = "ns/job, one thread"},
    {.name = "async.commit_worker", .unit = "ns/job, one worker"},
};
static const bench_contender contenders[] = {
    {"nebula", BENCH_NEBULA, run_nebula, NULL, NULL},
    {"mutex+malloc", BENCH_PEER, run_mutex, NULL, NULL},
};
static const bench_case cases[] = {
    {"async.commit", "512 jobs a frame: submitted, run, committed, published", rows, BENCH_COUNT(rows), contenders,
     BENCH_COUNT(contenders), 3, open_fixture, close_fixture},
};

const bench_case *bench_async_cases(size_t *count) {
    *count = BENCH_COUNT(cases);
    return cases;
}
