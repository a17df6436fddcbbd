// SPDX-License-Identifier: MIT
#pragma once

// The two loops of the channel cases, the same for every queue: producers that send 64-byte messages as fast as they
// can, and one consumer that checks the order of what arrives. A queue gives its try_send and try_recv; both are
// inlined into the loops where the queue's own code allows it.

#include "../bench.h"

#include <sched.h>
#include <string.h>

#define CHANNEL_PRODUCERS_MAX 4
// Cells of every bounded queue: 64 KiB of messages, so that the ring itself stays in the second-level cache.
#define CHANNEL_CAPACITY 1024
// What the two sides write must not share a line; two lines, because CPUs fetch neighbours too.
#define CHANNEL_APART 128
// Refusals in a row after which a producer gives its cpu to the others that share it.
#define CHANNEL_SPINS 32
// How often the consumer looks at the clock, in messages and in empty polls: about every 40 microseconds.
#define CHANNEL_CLOCK_MESSAGES 1024
#define CHANNEL_CLOCK_POLLS 256

typedef struct channel_message {
    uint64_t producer;
    uint64_t sequence;
    uint64_t payload[5];
    uint64_t check; // repeats the sequence: a message torn in two shows
} channel_message;

// What the threads of one run share.
typedef struct channel_gate {
    uint32_t is_open;
    uint32_t is_stopped;
    uint64_t warm_ns;    // the first part is not counted
    uint64_t measure_ns; // the run ends after this, however little went through
} channel_gate;

typedef struct channel_lane {
    channel_gate *gate;
    void *queue;
    unsigned index;
    uint64_t sent_count;
} channel_lane;

typedef struct channel_tally {
    channel_gate *gate;
    uint64_t received_count; // in the measured part
    uint64_t elapsed_ns;
    uint64_t wrong_count; // out of order, torn or from nowhere
} channel_tally;

typedef struct channel_peer {
    void *(*create)(unsigned producer_count); // NULL: failed
    void (*produce)(void *queue, channel_lane *lane);
    void (*consume)(void *queue, channel_tally *tally);
    void (*destroy)(void *queue);
} channel_peer;

BENCH_ALWAYS_INLINE void channel_pause(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

BENCH_ALWAYS_INLINE bool channel_is_stopped(const channel_gate *gate) {
    return __atomic_load_n(&gate->is_stopped, __ATOMIC_RELAXED) != 0;
}

BENCH_ALWAYS_INLINE void channel_produce(void *queue, channel_lane *lane,
                                         bool (*try_send)(void *, const channel_message *)) {
    channel_message message;
    unsigned refused_count = 0;
    memset(&message, 0, sizeof message);
    message.producer = lane->index;
    while (!channel_is_stopped(lane->gate)) {
        message.sequence = lane->sent_count;
        message.check = lane->sent_count;
        // All 64 bytes are in memory, as they would be for a message of the program's own.
        __asm__ volatile("" : "+m"(message));
        if (try_send(queue, &message)) {
            ++lane->sent_count;
            refused_count = 0;
        } else {
            channel_pause();
            if (++refused_count % CHANNEL_SPINS == 0) sched_yield();
        }
    }
}

// Starts the measured part when the warm-up is over; true when that part is over too.
BENCH_ALWAYS_INLINE bool channel_clock_step(channel_tally *tally, uint64_t *begin_ns, bool *is_warm, uint64_t *count) {
    uint64_t now_ns = bench_now_ns();
    if (!*is_warm) {
        if (now_ns - *begin_ns < tally->gate->warm_ns) return false;
        *is_warm = true;
        *begin_ns = now_ns;
        *count = 0;
        return false;
    }
    tally->elapsed_ns = now_ns - *begin_ns;
    return tally->elapsed_ns >= tally->gate->measure_ns;
}

BENCH_ALWAYS_INLINE void channel_consume(void *queue, channel_tally *tally,
                                         bool (*try_recv)(void *, channel_message *)) {
    uint64_t expected[CHANNEL_PRODUCERS_MAX] = {0};
    uint64_t count = 0, wrong_count = 0, begin_ns = bench_now_ns();
    unsigned until_clock = CHANNEL_CLOCK_MESSAGES, polls = 0;
    bool is_warm = false;
    for (;;) {
        channel_message message;
        bool is_look = false;
        if (try_recv(queue, &message)) {
            __asm__ volatile("" : "+m"(message));
            unsigned producer = (unsigned)message.producer % CHANNEL_PRODUCERS_MAX;
            wrong_count += message.sequence != expected[producer] || message.check != message.sequence;
            ++expected[producer];
            ++count;
            is_look = --until_clock == 0;
        } else {
            channel_pause();
            is_look = ++polls % CHANNEL_CLOCK_POLLS == 0;
        }
        if (!is_look) continue;
        until_clock = CHANNEL_CLOCK_MESSAGES;
        if (channel_clock_step(tally, &begin_ns, &is_warm, &count)) break;
    }
    tally->received_count = count;
    tally->wrong_count = wrong_count;
}
