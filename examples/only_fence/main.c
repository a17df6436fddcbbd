// SPDX-License-Identifier: MIT
// The fence alone, with a job system of one's own: two threads and a queue. Each frame waits for its jobs and for
// nothing else; the main thread helps while it waits; one slow job makes a frame degraded and not late.

#include <pthread.h>
#include <stdio.h>

#include "nebula/fence.h"

#define THREAD_COUNT 2
#define QUEUE_SIZE 64
#define FRAME_COUNT 60
#define JOB_COUNT 8

typedef struct job {
    nb_fence_ticket ticket;
    long *result;
    long input;
} job;

typedef struct job_system {
    pthread_mutex_t mutex;
    pthread_cond_t has_job;
    job queue[QUEUE_SIZE]; // a ring
    unsigned head, tail;
    bool is_ending;
    nb_fence *fence;
} job_system;

static bool pop(job_system *jobs, job *out) {
    if (jobs->head == jobs->tail) return false;
    *out = jobs->queue[jobs->head++ % QUEUE_SIZE];
    return true;
}

// Whatever becomes of a job, its ticket goes back; the result is written before.
static void run(job_system *jobs, const job *work) {
    *work->result = work->input * work->input;
    nb_fence_return(jobs->fence, work->ticket);
}

static void *work(void *user) {
    job_system *jobs = user;
    pthread_mutex_lock(&jobs->mutex);
    while (!jobs->is_ending) {
        job mine;
        if (!pop(jobs, &mine)) {
            pthread_cond_wait(&jobs->has_job, &jobs->mutex);
            continue;
        }
        pthread_mutex_unlock(&jobs->mutex);
        run(jobs, &mine);
        pthread_mutex_lock(&jobs->mutex);
    }
    pthread_mutex_unlock(&jobs->mutex);
    return NULL;
}

// The waiting thread takes jobs from the queue too.
static bool help(void *user, nb_fence_frame frame) {
    (void)frame;
    job_system *jobs = user;
    job mine;
    pthread_mutex_lock(&jobs->mutex);
    bool has_job = pop(jobs, &mine);
    pthread_mutex_unlock(&jobs->mutex);
    if (has_job) run(jobs, &mine);
    return has_job;
}

static bool submit(job_system *jobs, nb_fence_frame frame, long input, long *result) {
    job made = {.input = input, .result = result};
    if (nb_fence_take(jobs->fence, frame, (nb_label){0}, &made.ticket) != NB_OK) return false;
    pthread_mutex_lock(&jobs->mutex);
    jobs->queue[jobs->tail++ % QUEUE_SIZE] = made;
    pthread_cond_signal(&jobs->has_job);
    pthread_mutex_unlock(&jobs->mutex);
    return true;
}

static bool run_frame(job_system *jobs, long *sum) {
    nb_fence_frame frame;
    long results[JOB_COUNT] = {0};
    if (nb_fence_begin(jobs->fence, &frame) != NB_OK) return false;
    for (long i = 0; i < JOB_COUNT; ++i) {
        if (!submit(jobs, frame, i, &results[i])) return false;
    }
    // The results are on this stack, so this wait has no deadline.
    nb_fence_help helping = {.run = help, .user = jobs};
    if (nb_fence_wait(jobs->fence, frame, NB_NEVER_NS, &helping, NULL) != NB_OK) return false;
    for (int i = 0; i < JOB_COUNT; ++i) *sum += results[i];
    return true;
}

// A job that does not come back in time: the frame goes on without it, and the fence says what is missing.
static bool run_degraded_frame(nb_fence *fence) {
    nb_fence_frame late, next;
    nb_fence_ticket slow;
    nb_fence_report report;
    if (nb_fence_begin(fence, &late) != NB_OK) return false;
    if (nb_fence_take(fence, late, (nb_label){0}, &slow) != NB_OK) return false;
    if (nb_fence_wait(fence, late, NB_FENCE_DEADLINE_DEFAULT, NULL, &report) != NB_TIMEOUT) return false;
    printf("frame %llu: %u late\n", (unsigned long long)nb_fence_frame_number(late), (unsigned)report.pending_count);
    if (nb_fence_begin(fence, &next) != NB_OK || nb_fence_wait(fence, next, 0, NULL, NULL) != NB_OK) return false;
    printf("frame %llu: on time\n", (unsigned long long)nb_fence_frame_number(next));
    return nb_fence_return(fence, slow) == NB_OK; // late, and harmless
}

int main(void) {
    job_system jobs = {.mutex = PTHREAD_MUTEX_INITIALIZER, .has_job = PTHREAD_COND_INITIALIZER};
    nb_fence_desc desc = nb_fence_desc_default();
    desc.timeout_ns = 20000000;
    desc.hooks.logger.level_min = NB_LOG_ERROR; // time-outs are warnings
    if (nb_fence_create(&desc, &jobs.fence) != NB_OK) return 1;
    pthread_t threads[THREAD_COUNT];
    for (int i = 0; i < THREAD_COUNT; ++i) {
        if (pthread_create(&threads[i], NULL, work, &jobs) != 0) return 1;
    }
    long sum = 0;
    bool is_good = true;
    for (int i = 0; i < FRAME_COUNT && is_good; ++i) is_good = run_frame(&jobs, &sum);
    is_good = is_good && run_degraded_frame(jobs.fence);

    pthread_mutex_lock(&jobs.mutex);
    jobs.is_ending = true;
    pthread_cond_broadcast(&jobs.has_job);
    pthread_mutex_unlock(&jobs.mutex);
    for (int i = 0; i < THREAD_COUNT; ++i) pthread_join(threads[i], NULL);
    nb_fence_stats stats = nb_fence_stats_get(jobs.fence);
    printf("%llu frames, sum %ld, %llu degraded\n", (unsigned long long)stats.frame_count, sum,
           (unsigned long long)stats.degraded_count);
    if (nb_fence_destroy(jobs.fence) != NB_OK) return 1;
    return is_good && sum == FRAME_COUNT * 140L ? 0 : 1;
}
