// SPDX-License-Identifier: MIT
// Channels: 64-byte messages from one or four producers on cpu 1 to a consumer on cpu 0.

#include "bench.h"
#include "peers/peers.h"

#include <nebula/channel.h>

#include <pthread.h>
#include <stdlib.h>

#define CONSUMER_CPU 0
#define PRODUCER_CPU 1
// Four producers share a cpu and are switched every few milliseconds: the measured part must span many such turns.
#define WARM_NS 5000000u
#define MEASURE_NS 80000000u

typedef struct channel_fixture {
    unsigned producer_count;
} channel_fixture;

typedef struct producer_thread {
    pthread_t thread;
    const channel_peer *peer;
    channel_lane lane;
} producer_thread;

NB_CHANNEL_DEFINE(message_channel, channel_message);

static void *nebula_create(nb_channel_kind kind) {
    nb_channel_desc desc = nb_channel_desc_default();
    message_channel channel = {NULL};
    desc.kind = kind;
    desc.capacity = CHANNEL_CAPACITY;
    // A run ends with messages inside; the report about them is not news here.
    desc.hooks.logger.level_min = NB_LOG_OFF;
    return message_channel_create(&desc, &channel) == NB_OK ? channel.base : NULL;
}

static void *nebula_create_spsc(unsigned producer_count) {
    (void)producer_count;
    return nebula_create(NB_CHANNEL_KIND_SPSC);
}

static void *nebula_create_mpsc(unsigned producer_count) {
    (void)producer_count;
    return nebula_create(NB_CHANNEL_KIND_MPSC);
}

static void nebula_destroy(void *queue) { nb_channel_destroy(queue); }

static bool nebula_try_send(void *queue, const channel_message *message) {
    return message_channel_try_send((message_channel){queue}, message) == NB_OK;
}

static bool nebula_try_recv(void *queue, channel_message *message) {
    return message_channel_try_recv((message_channel){queue}, message) == NB_OK;
}

static void nebula_produce(void *queue, channel_lane *lane) { channel_produce(queue, lane, nebula_try_send); }
static void nebula_consume(void *queue, channel_tally *tally) { channel_consume(queue, tally, nebula_try_recv); }

static const channel_peer nebula_spsc = {nebula_create_spsc, nebula_produce, nebula_consume, nebula_destroy};
static const channel_peer nebula_mpsc = {nebula_create_mpsc, nebula_produce, nebula_consume, nebula_destroy};

static void *open_with(unsigned producer_count) {
    channel_fixture *fixture = calloc(1, sizeof *fixture);
    if (fixture) fixture->producer_count = producer_count;
    return fixture;
}

static void *open_one(void) { return open_with(1); }
static void *open_four(void) { return open_with(4); }

static void *run_producer(void *argument) {
    producer_thread *self = argument;
    bench_pin(PRODUCER_CPU);
    while (!__atomic_load_n(&self->lane.gate->is_open, __ATOMIC_ACQUIRE)) sched_yield();
    self->peer->produce(self->lane.queue, &self->lane);
    return NULL;
}

// Returns how many producers were started; all of them are waiting at the gate.
static unsigned start_producers(producer_thread *producers, unsigned count, const channel_peer *peer, void *queue,
                                channel_gate *gate) {
    unsigned started = 0;
    for (; started < count; ++started) {
        producer_thread *producer = &producers[started];
        producer->peer = peer;
        producer->lane = (channel_lane){gate, queue, started, 0};
        if (pthread_create(&producer->thread, NULL, run_producer, producer) != 0) break;
    }
    return started;
}

static bool run_channel(void *context, const void *argument, double *values) {
    const channel_fixture *fixture = context;
    const channel_peer *peer = argument;
    producer_thread producers[CHANNEL_PRODUCERS_MAX];
    channel_gate gate = {0, 0, WARM_NS, MEASURE_NS};
    channel_tally tally = {&gate, 0, 0, 0};
    void *queue = peer->create(fixture->producer_count);
    if (!queue) return false;
    unsigned started = start_producers(producers, fixture->producer_count, peer, queue, &gate);
    bench_pin(CONSUMER_CPU);
    // Read by the acquire load in run_producer.
    __atomic_store_n(&gate.is_open, 1, __ATOMIC_RELEASE);
    if (started == fixture->producer_count) peer->consume(queue, &tally);
    __atomic_store_n(&gate.is_stopped, 1, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < started; ++i) pthread_join(producers[i].thread, NULL);
    peer->destroy(queue);
    values[0] = tally.elapsed_ns ? (double)tally.received_count / (double)tally.elapsed_ns * 1e3 : 0.0;
    return started == fixture->producer_count && tally.wrong_count == 0;
}

#define AHEAD                                      \
    {                                              \
        { .kind = BENCH_GOAL_BEST, .factor = 1.0 } \
    }

static const bench_row spsc_rows[] = {{.name = "channel.spsc", .unit = "M msg/s", .is_rate = true, .goals = AHEAD}};
static const bench_row mpsc1_rows[] = {{.name = "channel.mpsc1", .unit = "M msg/s", .is_rate = true, .goals = AHEAD}};
static const bench_row mpsc4_rows[] = {{.name = "channel.mpsc4", .unit = "M msg/s", .is_rate = true, .goals = AHEAD}};

// What the three cases have in common. Unbounded queues promise less, and the cell ring is a reference of this
// benchmark's own: they are shown and not counted.
#define COMMON_CONTENDERS                                                                                   \
    {"mutex_ring", BENCH_PEER, run_channel, &peer_mutex_ring, NULL},                                        \
        BENCH_CONTENDER_IF(BENCH_HAVE_MOODYCAMEL, "moodycamel_credits", BENCH_PEER, run_channel,            \
                           &peer_moodycamel_credits, "libconcurrentqueue-dev"),                             \
        BENCH_CONTENDER_IF(BENCH_HAVE_MOODYCAMEL, "moodycamel_unbounded", BENCH_SHOWN, run_channel,         \
                           &peer_moodycamel_unbounded, "libconcurrentqueue-dev"),                           \
        BENCH_CONTENDER_IF(BENCH_HAVE_URCU, "wfcqueue_unbounded", BENCH_SHOWN, run_channel, &peer_wfcqueue, \
                           "liburcu-dev"),                                                                  \
    {                                                                                                       \
        "cell_ring_reference", BENCH_SHOWN, run_channel, &peer_cell_ring, NULL                              \
    }

static const bench_contender spsc_contenders[] = {
    {"nebula", BENCH_NEBULA, run_channel, &nebula_spsc, NULL},
    BENCH_CONTENDER_IF(BENCH_HAVE_CK, "ck_ring", BENCH_PEER, run_channel, &peer_ck_spsc, "libck-dev"),
    COMMON_CONTENDERS,
};

static const bench_contender mpsc_contenders[] = {
    {"nebula", BENCH_NEBULA, run_channel, &nebula_mpsc, NULL},
    BENCH_CONTENDER_IF(BENCH_HAVE_CK, "ck_ring", BENCH_PEER, run_channel, &peer_ck_mpsc, "libck-dev"),
    COMMON_CONTENDERS,
};

static const bench_case cases[] = {
    {"channel.spsc", "one producer, one consumer", spsc_rows, BENCH_COUNT(spsc_rows), spsc_contenders,
     BENCH_COUNT(spsc_contenders), 1, open_one, free},
    {"channel.mpsc1", "the many-producer channel with one producer", mpsc1_rows, BENCH_COUNT(mpsc1_rows),
     mpsc_contenders, BENCH_COUNT(mpsc_contenders), 1, open_one, free},
    {"channel.mpsc4", "the many-producer channel with four producers on one cpu", mpsc4_rows, BENCH_COUNT(mpsc4_rows),
     mpsc_contenders, BENCH_COUNT(mpsc_contenders), 1, open_four, free},
};

const bench_case *bench_channel_cases(size_t *count) {
    *count = BENCH_COUNT(cases);
    return cases;
}
