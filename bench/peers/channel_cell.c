// SPDX-License-Identifier: MIT
// A ring with a sequence number per cell: the known best shape for a bounded queue with many producers. Written for
// this benchmark without closing, counters or checks, as a reference for what the shape alone can do.

#include "peers.h"

#include <stdlib.h>

typedef struct cell {
    uint64_t sequence; // position: free for that turn; position + 1: filled
    channel_message message;
} cell;

typedef struct cell_ring {
    _Alignas(CHANNEL_APART) uint64_t tail; // producers
    _Alignas(CHANNEL_APART) uint64_t head; // consumer
    _Alignas(CHANNEL_APART) cell cells[CHANNEL_CAPACITY];
} cell_ring;

static bool try_send(void *queue, const channel_message *message) {
    cell_ring *ring = queue;
    uint64_t position = __atomic_load_n(&ring->tail, __ATOMIC_RELAXED);
    for (;;) {
        cell *place = &ring->cells[position % CHANNEL_CAPACITY];
        uint64_t sequence = __atomic_load_n(&place->sequence, __ATOMIC_ACQUIRE);
        if (sequence == position) {
            if (!__atomic_compare_exchange_n(&ring->tail, &position, position + 1, true, __ATOMIC_RELAXED,
                                             __ATOMIC_RELAXED))
                continue;
            place->message = *message;
            // Read by the acquire load in try_recv.
            __atomic_store_n(&place->sequence, position + 1, __ATOMIC_RELEASE);
            return true;
        }
        if ((int64_t)(sequence - position) < 0) return false;
        position = __atomic_load_n(&ring->tail, __ATOMIC_RELAXED);
    }
}

static bool try_recv(void *queue, channel_message *message) {
    cell_ring *ring = queue;
    cell *place = &ring->cells[ring->head % CHANNEL_CAPACITY];
    if (__atomic_load_n(&place->sequence, __ATOMIC_ACQUIRE) != ring->head + 1) return false;
    *message = place->message;
    // Read by the acquire load in try_send, one lap later.
    __atomic_store_n(&place->sequence, ring->head + CHANNEL_CAPACITY, __ATOMIC_RELEASE);
    ++ring->head;
    return true;
}

static void *create(unsigned producer_count) {
    (void)producer_count;
    cell_ring *ring = aligned_alloc(CHANNEL_APART, sizeof *ring);
    if (!ring) return NULL;
    ring->tail = ring->head = 0;
    for (uint64_t i = 0; i < CHANNEL_CAPACITY; ++i) ring->cells[i].sequence = i;
    return ring;
}

static void produce(void *queue, channel_lane *lane) { channel_produce(queue, lane, try_send); }
static void consume(void *queue, channel_tally *tally) { channel_consume(queue, tally, try_recv); }

const channel_peer peer_cell_ring = {create, produce, consume, free};
