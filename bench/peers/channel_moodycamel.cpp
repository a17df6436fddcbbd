// SPDX-License-Identifier: MIT
// moodycamel::ConcurrentQueue with producer and consumer tokens, its fastest form. It is unbounded; bounded by credits
// it promises what a channel does: a sender that finds no room is told so.

#include "peers.h"

#include <atomic>
#include <concurrentqueue/concurrentqueue.h>
#include <memory>
#include <new>

namespace {

using message_queue = moodycamel::ConcurrentQueue<channel_message>;

// Credits the consumer hands back at once; one at a time makes both sides fight for the counter's line at each message.
constexpr int64_t credit_batch = 32;

struct credit_queue {
    message_queue queue{CHANNEL_CAPACITY * 2};
    moodycamel::ConsumerToken consumer{queue};
    int64_t unreturned = 0; // of the consumer
    alignas(CHANNEL_APART) std::atomic<int64_t> credits{CHANNEL_CAPACITY};
};

struct credit_producer {
    credit_queue *owner;
    moodycamel::ProducerToken token;
};

bool send_unbounded(void *producer, const channel_message *message) {
    auto *self = static_cast<credit_producer *>(producer);
    return self->owner->queue.enqueue(self->token, *message);
}

bool recv_unbounded(void *queue, channel_message *message) {
    auto *self = static_cast<credit_queue *>(queue);
    return self->queue.try_dequeue(self->consumer, *message);
}

bool send_credits(void *producer, const channel_message *message) {
    auto *self = static_cast<credit_producer *>(producer);
    std::atomic<int64_t> &credits = self->owner->credits;
    if (credits.load(std::memory_order_relaxed) <= 0) return false;
    if (credits.fetch_sub(1, std::memory_order_acquire) <= 0) {
        credits.fetch_add(1, std::memory_order_relaxed);
        return false;
    }
    return self->owner->queue.enqueue(self->token, *message);
}

bool recv_credits(void *queue, channel_message *message) {
    auto *self = static_cast<credit_queue *>(queue);
    bool has_message = self->queue.try_dequeue(self->consumer, *message);
    self->unreturned += has_message;
    // An empty queue returns what is left, or a producer could wait for credits nobody gives back.
    if (self->unreturned >= credit_batch || (!has_message && self->unreturned > 0)) {
        self->credits.fetch_add(self->unreturned, std::memory_order_release);
        self->unreturned = 0;
    }
    return has_message;
}

void *create(unsigned) { return new (std::nothrow) credit_queue; }
void destroy(void *queue) { delete static_cast<credit_queue *>(queue); }

void produce_unbounded(void *queue, channel_lane *lane) {
    auto *owner = static_cast<credit_queue *>(queue);
    credit_producer producer{owner, moodycamel::ProducerToken(owner->queue)};
    channel_produce(&producer, lane, send_unbounded);
}

void produce_credits(void *queue, channel_lane *lane) {
    auto *owner = static_cast<credit_queue *>(queue);
    credit_producer producer{owner, moodycamel::ProducerToken(owner->queue)};
    channel_produce(&producer, lane, send_credits);
}

void consume_unbounded(void *queue, channel_tally *tally) { channel_consume(queue, tally, recv_unbounded); }
void consume_credits(void *queue, channel_tally *tally) { channel_consume(queue, tally, recv_credits); }

} // namespace

const channel_peer peer_moodycamel_credits = {create, produce_credits, consume_credits, destroy};
const channel_peer peer_moodycamel_unbounded = {create, produce_unbounded, consume_unbounded, destroy};
