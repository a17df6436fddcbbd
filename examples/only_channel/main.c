// SPDX-License-Identifier: MIT
// Channels alone: three workers send results, the main thread collects them frame by frame. No engine, no scheduler.

#include <pthread.h>
#include <sched.h>
#include <stdio.h>

#include "nebula/arena.h"
#include "nebula/channel.h"

typedef struct result {
    int worker;
    int input;
    long square;
} result;

NB_CHANNEL_DEFINE(results, result);

#define WORKER_COUNT 3
#define INPUT_COUNT 1000

typedef struct job {
    results channel;
    int worker;
} job;

static void *work(void *user) {
    job *j = user;
    for (int i = 0; i < INPUT_COUNT; ++i) {
        result made = {.worker = j->worker, .input = i, .square = (long)i * i};
        // Waits while the channel is full: a slow frame slows the workers down instead of losing results.
        if (results_send(j->channel, &made, NB_NEVER_NS) != NB_OK) break;
    }
    return NULL;
}

// One frame: everything that has arrived, in one array that lives until the frame's arena is reset.
static long collect(results channel, nb_arena *frame, long *sum) {
    result *items = NULL;
    size_t count = 0;
    if (results_drain(channel, frame, &items, &count) == NB_OK) {
        for (size_t i = 0; i < count; ++i) *sum += items[i].square;
    }
    nb_arena_reset(frame);
    return (long)count;
}

int main(void) {
    results channel = {NULL};
    nb_channel_desc desc = {.name = "results", .kind = NB_CHANNEL_KIND_MPSC, .capacity = 64};
    nb_arena frame;
    if (results_create(&desc, &channel) != NB_OK || nb_arena_init(&frame, NULL) != NB_OK) return 1;

    pthread_t threads[WORKER_COUNT];
    job jobs[WORKER_COUNT];
    for (int i = 0; i < WORKER_COUNT; ++i) {
        jobs[i] = (job){channel, i};
        if (pthread_create(&threads[i], NULL, work, &jobs[i]) != 0) return 1;
    }
    long received = 0, sum = 0;
    while (received < (long)WORKER_COUNT * INPUT_COUNT) {
        long count = collect(channel, &frame, &sum);
        if (count == 0) sched_yield();
        received += count;
    }
    for (int i = 0; i < WORKER_COUNT; ++i) pthread_join(threads[i], NULL);

    printf("%s: %ld results, sum %ld\n", nb_channel_name(channel.base), received, sum);
    nb_channel_destroy(channel.base);
    nb_arena_deinit(&frame);
    return sum == WORKER_COUNT * 332833500L ? 0 : 1;
}
