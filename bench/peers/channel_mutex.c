// SPDX-License-Identifier: MIT
// A ring under one mutex: what most programs write first.

#include "peers.h"

#include <pthread.h>
#include <stdlib.h>

typedef struct mutex_ring {
    pthread_mutex_t mutex; // protects everything below
    uint64_t head;
    uint64_t tail;
    channel_message messages[CHANNEL_CAPACITY];
} mutex_ring;

static bool try_send(void *queue, const channel_message *message) {
    mutex_ring *ring = queue;
    pthread_mutex_lock(&ring->mutex);
    bool has_room = ring->tail - ring->head < CHANNEL_CAPACITY;
    if (has_room) ring->messages[ring->tail++ % CHANNEL_CAPACITY] = *message;
    pthread_mutex_unlock(&ring->mutex);
    return has_room;
}

static bool try_recv(void *queue, channel_message *message) {
    mutex_ring *ring = queue;
    pthread_mutex_lock(&ring->mutex);
    bool has_message = ring->tail != ring->head;
    if (has_message) *message = ring->messages[ring->head++ % CHANNEL_CAPACITY];
    pthread_mutex_unlock(&ring->mutex);
    return has_message;
}

static void *create(unsigned producer_count) {
    (void)producer_count;
    mutex_ring *ring = calloc(1, sizeof *ring);
    if (ring && pthread_mutex_init(&ring->mutex, NULL) == 0) return ring;
    free(ring);
    return NULL;
}

static void destroy(void *queue) {
    pthread_mutex_destroy(&((mutex_ring *)queue)->mutex);
    free(queue);
}

static void produce(void *queue, channel_lane *lane) { channel_produce(queue, lane, try_send); }
static void consume(void *queue, channel_tally *tally) { channel_consume(queue, tally, try_recv); }

const channel_peer peer_mutex_ring = {create, produce, consume, destroy};
