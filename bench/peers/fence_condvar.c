// SPDX-License-Identifier: MIT
// The frame fence people write by hand: one counter, one mutex, one condition variable.

#include "peers.h"

#include <pthread.h>

typedef struct condvar_fence {
    pthread_mutex_t mutex;
    pthread_cond_t is_done;
    uint64_t frame;
    uint32_t pending_count;
} condvar_fence;

static void fence_begin(condvar_fence *fence) {
    pthread_mutex_lock(&fence->mutex);
    ++fence->frame;
    fence->pending_count = 0;
    pthread_mutex_unlock(&fence->mutex);
}

static void fence_enter(condvar_fence *fence) {
    pthread_mutex_lock(&fence->mutex);
    ++fence->pending_count;
    pthread_mutex_unlock(&fence->mutex);
}

static void fence_leave(condvar_fence *fence) {
    pthread_mutex_lock(&fence->mutex);
    if (--fence->pending_count == 0) pthread_cond_broadcast(&fence->is_done);
    pthread_mutex_unlock(&fence->mutex);
}

static void fence_wait(condvar_fence *fence) {
    pthread_mutex_lock(&fence->mutex);
    while (fence->pending_count != 0) pthread_cond_wait(&fence->is_done, &fence->mutex);
    pthread_mutex_unlock(&fence->mutex);
}

double peer_condvar_fence_cycle(size_t count) {
    condvar_fence fence = {.mutex = PTHREAD_MUTEX_INITIALIZER, .is_done = PTHREAD_COND_INITIALIZER};
    uint64_t start_ns = bench_now_ns();
    for (size_t i = 0; i < count; ++i) {
        fence_begin(&fence);
        fence_enter(&fence);
        fence_leave(&fence);
        fence_wait(&fence);
    }
    double elapsed_ns = (double)(bench_now_ns() - start_ns);
    return fence.frame == count ? elapsed_ns : -1.0;
}

double peer_condvar_fence_complete(size_t count) {
    condvar_fence fence = {.mutex = PTHREAD_MUTEX_INITIALIZER, .is_done = PTHREAD_COND_INITIALIZER};
    fence_begin(&fence);
    uint64_t start_ns = bench_now_ns();
    for (size_t i = 0; i < count; ++i) fence_wait(&fence);
    return (double)(bench_now_ns() - start_ns);
}
