// SPDX-License-Identifier: MIT
// Concurrency Kit's ck_ring, with the messages stored in the ring. Its many-producer form commits in order and spins
// without yielding while the producer before it is preempted: with several producers on one cpu a run may then carry
// only a few hundred messages a second. The run still ends, because it is bounded by time and not by a count.

#include "peers.h"

#include <ck_ring.h>
#include <stdlib.h>

CK_RING_PROTOTYPE(message, channel_message)

typedef struct ck_queue {
    _Alignas(CHANNEL_APART) struct ck_ring ring;
    _Alignas(CHANNEL_APART) channel_message messages[CHANNEL_CAPACITY];
} ck_queue;

// ck_ring only reads the entry; its prototype lacks the const.
static bool try_send_spsc(void *queue, const channel_message *message) {
    ck_queue *self = queue;
    return CK_RING_ENQUEUE_SPSC(message, &self->ring, self->messages, (channel_message *)(uintptr_t)message);
}

static bool try_recv_spsc(void *queue, channel_message *message) {
    ck_queue *self = queue;
    return CK_RING_DEQUEUE_SPSC(message, &self->ring, self->messages, message);
}

static bool try_send_mpsc(void *queue, const channel_message *message) {
    ck_queue *self = queue;
    return CK_RING_ENQUEUE_MPSC(message, &self->ring, self->messages, (channel_message *)(uintptr_t)message);
}

static bool try_recv_mpsc(void *queue, channel_message *message) {
    ck_queue *self = queue;
    return CK_RING_DEQUEUE_MPSC(message, &self->ring, self->messages, message);
}

static void *create(unsigned producer_count) {
    (void)producer_count;
    ck_queue *self = aligned_alloc(CHANNEL_APART, sizeof *self);
    if (!self) return NULL;
    memset(self, 0, sizeof *self);
    ck_ring_init(&self->ring, CHANNEL_CAPACITY);
    return self;
}

static void produce_spsc(void *queue, channel_lane *lane) { channel_produce(queue, lane, try_send_spsc); }
static void consume_spsc(void *queue, channel_tally *tally) { channel_consume(queue, tally, try_recv_spsc); }
static void produce_mpsc(void *queue, channel_lane *lane) { channel_produce(queue, lane, try_send_mpsc); }
static void consume_mpsc(void *queue, channel_tally *tally) { channel_consume(queue, tally, try_recv_mpsc); }

const channel_peer peer_ck_spsc = {create, produce_spsc, consume_spsc, free};
const channel_peer peer_ck_mpsc = {create, produce_mpsc, consume_mpsc, free};
