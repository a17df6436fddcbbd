// SPDX-License-Identifier: MIT
// liburcu's wfcqueue: intrusive, unbounded, many producers. Nodes come from a pool of each producer's and are marked
// free again by the consumer, so that no heap call is measured. One consumer needs no dequeue lock.

#define _LGPL_SOURCE // the queue's operations inline, as the library recommends where speed matters

#include "peers.h"

#include <stdlib.h>
#include <urcu/wfcqueue.h>

// Enough that a producer finds its next node free unless the consumer is far behind.
#define POOL_COUNT 4096

typedef struct wfc_node {
    _Alignas(64) struct cds_wfcq_node link;
    uint32_t is_taken;
    channel_message message;
} wfc_node;

typedef struct wfc_queue {
    _Alignas(CHANNEL_APART) struct __cds_wfcq_head head;
    _Alignas(CHANNEL_APART) struct cds_wfcq_tail tail;
    wfc_node *pools;
} wfc_queue;

typedef struct wfc_producer {
    wfc_queue *queue;
    wfc_node *pool;
    uint32_t next;
} wfc_producer;

static bool try_send(void *producer, const channel_message *message) {
    wfc_producer *self = producer;
    wfc_node *node = &self->pool[self->next % POOL_COUNT];
    if (__atomic_load_n(&node->is_taken, __ATOMIC_ACQUIRE)) return false;
    node->is_taken = 1;
    node->message = *message;
    cds_wfcq_node_init(&node->link);
    cds_wfcq_enqueue(&self->queue->head, &self->queue->tail, &node->link);
    ++self->next;
    return true;
}

static bool try_recv(void *queue, channel_message *message) {
    wfc_queue *self = queue;
    struct cds_wfcq_node *link = __cds_wfcq_dequeue_nonblocking(&self->head, &self->tail);
    if (!link || link == CDS_WFCQ_WOULDBLOCK) return false;
    wfc_node *node = caa_container_of(link, wfc_node, link);
    *message = node->message;
    // Read by the acquire load in try_send.
    __atomic_store_n(&node->is_taken, 0, __ATOMIC_RELEASE);
    return true;
}

static void *create(unsigned producer_count) {
    wfc_queue *self = aligned_alloc(CHANNEL_APART, sizeof *self);
    wfc_node *pools = aligned_alloc(CHANNEL_APART, producer_count * POOL_COUNT * sizeof *pools);
    if (!self || !pools) {
        free(self);
        free(pools);
        return NULL;
    }
    memset(pools, 0, producer_count * POOL_COUNT * sizeof *pools);
    self->pools = pools;
    __cds_wfcq_init(&self->head, &self->tail);
    return self;
}

static void destroy(void *queue) {
    free(((wfc_queue *)queue)->pools);
    free(queue);
}

static void produce(void *queue, channel_lane *lane) {
    wfc_queue *self = queue;
    wfc_producer producer = {self, self->pools + (size_t)lane->index * POOL_COUNT, 0};
    channel_produce(&producer, lane, try_send);
}

static void consume(void *queue, channel_tally *tally) { channel_consume(queue, tally, try_recv); }

const channel_peer peer_wfcqueue = {create, produce, consume, destroy};
