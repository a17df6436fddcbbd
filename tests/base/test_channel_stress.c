// SPDX-License-Identifier: MIT
// Channels under real threads: nothing lost, nothing twice, order kept, everybody woken.

#include "support/support.h"

#include "base/channel.h"
#include "nebula/arena.h"
#include "nebula/channel.h"

// A wait that nobody ends is given up after this long, and counts as failed above the second limit: a lost wake-up is a
// hang, not a delay, and a loaded machine delays.
#define GIVE_UP_NS ((uint64_t)10000000000)
#define LATE_NS ((uint64_t)1000000000)

#define THREADS_MAX 16

typedef struct packet {
    uint32_t sender;
    uint32_t number; // 0, 1, ... per sender
    uint64_t check;  // of both, so that a torn copy is seen
} packet;

NB_CHANNEL_DEFINE(packets, packet);

static packet packet_of(uint32_t sender, uint32_t number) {
    return (packet){sender, number, ((uint64_t)sender << 32 | number) * 0x9E3779B97F4A7C15u};
}

static uint64_t give_up_ns(void) { return nbi_clock_now_ns() + GIVE_UP_NS; }

// What all threads of a run share. Threads count their findings; the test asserts them after the join.
typedef struct traffic {
    packets channel;
    test_gate gate;
    uint32_t thread_count;
    uint32_t sender_count;
    uint32_t per_sender;                    // packets each sender tries to send; the run ends earlier if closed
    uint32_t batch;                         // packets a call; 1 = single calls
    nb_atomic_u32 senders_left;             // the last one closes
    nb_atomic_u32 sent_counts[THREADS_MAX]; // by sender, of NB_OK
    nb_atomic_u32 *seen;                    // [sender][number]: how often received
    nb_atomic_u32 received_count;
    uint32_t close_after;      // received packets after which a receiver closes; 0 = the last sender does
    nb_atomic_u32 wrong_count; // torn or out of order
    nb_atomic_u32 late_count;  // waits that timed out, or results that do not fit
} traffic;

static void traffic_init(traffic *t, const nb_channel_desc *desc, uint32_t sender_count, uint32_t per_sender) {
    memset(t, 0, sizeof *t);
    assert_int_equal(packets_create(desc, &t->channel), NB_OK);
    t->sender_count = sender_count;
    t->per_sender = per_sender;
    t->batch = 1;
    t->senders_left.value = sender_count;
    t->seen = calloc((size_t)sender_count * per_sender, sizeof *t->seen);
    assert_non_null(t->seen);
}

// A failure that other threads notice too: they must not wait for what will not come.
static void note_late(traffic *t) {
    nbi_atomic_fetch_add_seq_cst_u32(&t->late_count, 1);
    nb_channel_close(t->channel.base);
}

static nb_result send_some(traffic *t, uint32_t sender, uint32_t number, uint32_t *count) {
    if (t->batch == 1) {
        packet one = packet_of(sender, number);
        *count = 1;
        return packets_send(t->channel, &one, give_up_ns());
    }
    packet many[64];
    uint32_t wanted = number % t->batch + 1; // every length up to the batch
    if (wanted > t->per_sender - number) wanted = t->per_sender - number;
    for (uint32_t i = 0; i < wanted; ++i) many[i] = packet_of(sender, number + i);
    size_t done = 0;
    nb_result result = packets_try_send_many(t->channel, many, wanted, &done);
    if (result != NB_FULL) {
        *count = (uint32_t)done;
        return result;
    }
    *count = 1; // wait for room with a single send
    return packets_send(t->channel, many, give_up_ns());
}

static void run_sender(traffic *t, uint32_t sender) {
    uint32_t number = 0, count = 0;
    nb_result result = NB_OK;
    while (number < t->per_sender && (result = send_some(t, sender, number, &count)) == NB_OK) number += count;
    nbi_atomic_store_relaxed_u32(&t->sent_counts[sender], number);
    if (result != NB_OK && result != NB_CLOSED) note_late(t);
    bool is_last = nbi_atomic_fetch_sub_seq_cst_u32(&t->senders_left, 1) == 1;
    if (is_last) nb_channel_close(t->channel.base);
}

// `next` has the smallest number still allowed per sender: one receiver sees a sender's packets in order.
static void note_packet(traffic *t, uint32_t *next, const packet *found) {
    packet wanted = packet_of(found->sender, found->number);
    if (found->sender >= t->sender_count || found->number >= t->per_sender || found->check != wanted.check) {
        nbi_atomic_fetch_add_seq_cst_u32(&t->wrong_count, 1);
        return;
    }
    if (found->number < next[found->sender]) nbi_atomic_fetch_add_seq_cst_u32(&t->wrong_count, 1);
    next[found->sender] = found->number + 1;
    nbi_atomic_fetch_add_relaxed_u32(&t->seen[(size_t)found->sender * t->per_sender + found->number], 1);
    uint32_t received = nbi_atomic_fetch_add_relaxed_u32(&t->received_count, 1) + 1;
    if (received == t->close_after) nb_channel_close(t->channel.base);
}

static void run_receiver(traffic *t) {
    uint32_t next[THREADS_MAX] = {0};
    packet found[64];
    for (;;) {
        size_t count = 1;
        nb_result result = t->batch == 1 ? NB_EMPTY : packets_try_recv_many(t->channel, found, t->batch, &count);
        if (result == NB_EMPTY) result = packets_recv(t->channel, found, give_up_ns()), count = 1;
        if (result != NB_OK) {
            if (result != NB_CLOSED) note_late(t);
            return;
        }
        for (size_t i = 0; i < count; ++i) note_packet(t, next, &found[i]);
    }
}

static void traffic_thread(void *user, uint32_t index) {
    traffic *t = user;
    test_gate_pass(&t->gate, t->thread_count);
    if (index < t->sender_count) {
        run_sender(t, index);
    } else {
        run_receiver(t);
    }
}

// Runs senders and receivers to the end and checks: each accepted packet was received once, no other was.
static void traffic_run(traffic *t, uint32_t receiver_count) {
    test_thread threads[2 * THREADS_MAX];
    t->thread_count = t->sender_count + receiver_count;
    test_threads_start(threads, t->thread_count, traffic_thread, t);
    test_threads_join(threads, t->thread_count);
    assert_int_equal(t->late_count.value, 0);
    assert_int_equal(t->wrong_count.value, 0);
    for (uint32_t sender = 0; sender < t->sender_count; ++sender) {
        for (uint32_t number = 0; number < t->per_sender; ++number) {
            uint32_t wanted = number < t->sent_counts[sender].value ? 1 : 0;
            uint32_t seen = t->seen[(size_t)sender * t->per_sender + number].value;
            if (seen != wanted) fail_msg("sender %u, packet %u: received %u times", sender, number, seen);
        }
    }
    nb_channel_stats stats = nb_channel_stats_get(t->channel.base);
    assert_int_equal(stats.sent_count, t->received_count.value);
    assert_int_equal(stats.received_count, t->received_count.value);
    assert_int_equal(stats.depth, 0);
    assert_true(stats.depth_peak <= nb_channel_capacity(t->channel.base));
}

static void traffic_end(traffic *t) {
    nb_channel_destroy(t->channel.base);
    free(t->seen);
}

// Everything sent arrives; the last sender closes.
static void stream_everything(nb_channel_kind kind, size_t capacity, uint32_t senders, uint32_t receivers,
                              uint32_t batch, uint64_t total) {
    nb_channel_desc desc = {.kind = kind, .capacity = capacity};
    traffic t;
    traffic_init(&t, &desc, senders, (uint32_t)(total / senders));
    t.batch = batch;
    traffic_run(&t, receivers);
    assert_int_equal(t.received_count.value, t.per_sender * senders);
    traffic_end(&t);
}

static void stream_through_each_capacity(nb_channel_kind kind, uint32_t senders, uint32_t receivers) {
    uint64_t total = test_size(20000, 200000, 5000000);
    for (size_t capacity = 1; capacity <= 1024; capacity *= 32) {
        stream_everything(kind, capacity, senders, receivers, 1, total);
    }
}

TEST(spsc_stream_arrives_in_order) { stream_through_each_capacity(NB_CHANNEL_KIND_SPSC, 1, 1); }

TEST(mpsc_stream_keeps_each_senders_order) { stream_through_each_capacity(NB_CHANNEL_KIND_MPSC, 4, 1); }

TEST(mpmc_stream_arrives_once) { stream_through_each_capacity(NB_CHANNEL_KIND_MPMC, 4, 4); }

TEST(batches_mixed_with_single_calls_arrive_once) {
    uint64_t total = test_size(50000, 500000, 5000000);
    stream_everything(NB_CHANNEL_KIND_SPSC, 16, 1, 1, 7, total);
    stream_everything(NB_CHANNEL_KIND_MPMC, 4, 3, 3, 9, total);
    stream_everything(NB_CHANNEL_KIND_MPMC, 64, 4, 4, 64, total);
}

TEST(stream_over_the_wrap_of_positions_arrives_once) {
    uint32_t per_sender = (uint32_t)test_size(3000, 20000, 200000);
    for (size_t capacity = 1; capacity <= 64; capacity *= 8) {
        nb_channel_desc desc = {.capacity = capacity, .item_size_bytes = sizeof(packet)};
        traffic t;
        traffic_init(&t, &desc, 3, per_sender);
        nb_channel_destroy(t.channel.base);
        uint64_t first_position = UINT64_MAX - (uint64_t)per_sender * NBI_CHANNEL_STEP + 1;
        assert_int_equal(nbi_channel_create_at(&desc, first_position, &t.channel.base), NB_OK);
        traffic_run(&t, 3);
        traffic_end(&t);
    }
}

// H2: eight senders, eight receivers, closed in the middle; capacity 1, and every second round a little more, so that
// items are inside at the close whatever the schedule.
TEST(send_racing_close_is_delivered_or_refused) {
    uint64_t seed = test_seed(__func__), total = test_size(40000, 1000000, 10000000), received = 0;
    const uint32_t per_sender = 200;
    for (uint64_t round = 0; received < total; ++round) {
        nb_channel_desc desc = {.kind = NB_CHANNEL_KIND_MPMC, .capacity = round % 2 == 0 ? 1 : 8};
        traffic t;
        traffic_init(&t, &desc, 8, per_sender);
        t.close_after = 1 + (uint32_t)(test_random(&seed) % (8 * per_sender));
        traffic_run(&t, 8);
        assert_true(t.received_count.value >= t.close_after);
        received += t.received_count.value;
        traffic_end(&t);
    }
}

// --- blocked, then closed (H1) ---

typedef struct blocked {
    packets channel;
    bool is_sender;
    nb_atomic_u32 returned_count, wrong_count;
} blocked;

static void block(void *user, uint32_t index) {
    blocked *b = user;
    packet item = packet_of(index, 0);
    nb_result result =
        b->is_sender ? packets_send(b->channel, &item, give_up_ns()) : packets_recv(b->channel, &item, give_up_ns());
    if (result != NB_CLOSED) nbi_atomic_fetch_add_seq_cst_u32(&b->wrong_count, 1);
    nbi_atomic_fetch_add_seq_cst_u32(&b->returned_count, 1);
}

static uint64_t parked_now(const blocked *b) {
    nb_channel_stats stats = nb_channel_stats_get(b->channel.base);
    return b->is_sender ? stats.send_park_count : stats.recv_park_count;
}

static void close_with_four_blocked(bool is_sender, nb_channel_kind kind) {
    nb_channel_desc desc = {.kind = kind, .capacity = 1};
    blocked b = {.is_sender = is_sender};
    assert_int_equal(packets_create(&desc, &b.channel), NB_OK);
    packet item = packet_of(9, 0);
    if (is_sender) assert_int_equal(packets_try_send(b.channel, &item), NB_OK);
    test_thread threads[4];
    test_threads_start(threads, 4, block, &b);
    while (parked_now(&b) < 4) nbi_thread_yield(); // everybody is in the wait, or about to be
    uint64_t closed_ns = nbi_clock_now_ns();
    nb_channel_close(b.channel.base);
    test_threads_join(threads, 4);
    assert_int_equal(b.returned_count.value, 4);
    assert_int_equal(b.wrong_count.value, 0);
    assert_true(nbi_clock_now_ns() - closed_ns < LATE_NS);
    if (is_sender) assert_int_equal(packets_try_recv(b.channel, &item), NB_OK); // the one that was accepted
    assert_int_equal(packets_try_recv(b.channel, &item), NB_CLOSED);
    nb_channel_destroy(b.channel.base);
}

TEST(close_wakes_four_blocked_senders) {
    for (uint64_t i = test_size(20, 200, 2000); i > 0; --i) {
        close_with_four_blocked(true, i % 2 == 0 ? NB_CHANNEL_KIND_MPSC : NB_CHANNEL_KIND_MPMC);
    }
}

TEST(close_wakes_four_blocked_receivers) {
    for (uint64_t i = test_size(20, 200, 2000); i > 0; --i) close_with_four_blocked(false, NB_CHANNEL_KIND_MPMC);
}

// --- the seed's producers ---

typedef struct producers {
    packets channel;
    nb_atomic_u32 refused_count;
} producers;

static void produce_hundred(void *user, uint32_t index) {
    producers *p = user;
    for (uint32_t i = 0; i < 100; ++i) {
        packet item = packet_of(index, i);
        if (packets_try_send(p->channel, &item) != NB_OK) nbi_atomic_fetch_add_seq_cst_u32(&p->refused_count, 1);
    }
}

// With room for everything that can be under way no send is ever refused.
TEST(four_producers_of_hundred_all_arrive) {
    nb_arena arena;
    assert_int_equal(nb_arena_init(&arena, NULL), NB_OK);
    for (uint64_t round = test_size(20, 200, 2000); round > 0; --round) {
        nb_channel_desc desc = {.kind = NB_CHANNEL_KIND_MPSC, .capacity = 400};
        producers p = {{NULL}, {0}};
        assert_int_equal(packets_create(&desc, &p.channel), NB_OK);
        test_thread threads[4];
        test_threads_start(threads, 4, produce_hundred, &p);
        uint32_t next[4] = {0}, total = 0;
        packet *items = NULL;
        size_t count = 0;
        uint64_t deadline_ns = give_up_ns();
        while (total < 400 && nbi_clock_now_ns() < deadline_ns) {
            nb_result result = packets_drain(p.channel, &arena, &items, &count);
            if (result != NB_OK) nbi_thread_yield();
            for (size_t i = 0; result == NB_OK && i < count; ++i, ++total) {
                assert_true(items[i].sender < 4);
                assert_int_equal(items[i].number, next[items[i].sender]++);
            }
            nb_arena_reset(&arena);
        }
        test_threads_join(threads, 4);
        assert_int_equal(total, 400);
        assert_int_equal(p.refused_count.value, 0);
        nb_channel_destroy(p.channel.base);
    }
    nb_arena_deinit(&arena);
}

// --- wake-ups ---

typedef struct ping_pong {
    packets there, back;
    uint32_t round_count;
    uint64_t seed;
    nb_atomic_u32 late_count;
} ping_pong;

// Ends after a random time around the spin before a park, so that the other side is caught at every point of it.
static void delay(uint64_t *seed) {
    uint64_t until_ns = nbi_clock_now_ns() + test_random(seed) % 8000;
    while (nbi_clock_now_ns() < until_ns) nbi_cpu_relax();
}

static void answer(void *user, uint32_t index) {
    (void)index;
    ping_pong *p = user;
    uint64_t seed = p->seed + 1;
    packet item;
    while (packets_recv(p->there, &item, give_up_ns()) == NB_OK) {
        delay(&seed);
        if (packets_send(p->back, &item, give_up_ns()) != NB_OK) return;
    }
}

TEST(no_wake_is_lost_between_two_threads) {
    ping_pong p = {.round_count = (uint32_t)test_size(3000, 50000, 1000000), .seed = test_seed(__func__)};
    nb_channel_desc desc = {.kind = NB_CHANNEL_KIND_SPSC, .capacity = 1};
    assert_int_equal(packets_create(&desc, &p.there), NB_OK);
    assert_int_equal(packets_create(&desc, &p.back), NB_OK);
    test_thread thread;
    test_threads_start(&thread, 1, answer, &p);
    uint64_t seed = p.seed, worst_ns = 0;
    nb_result result = NB_OK;
    for (uint32_t i = 0; i < p.round_count && result == NB_OK; ++i) {
        uint64_t start_ns = nbi_clock_now_ns();
        packet item = packet_of(0, i);
        result = packets_send(p.there, &item, give_up_ns());
        delay(&seed);
        if (result == NB_OK) result = packets_recv(p.back, &item, give_up_ns());
        if (result == NB_OK && item.number != i) result = NB_ERR_RANGE;
        uint64_t taken_ns = nbi_clock_now_ns() - start_ns;
        if (taken_ns > worst_ns) worst_ns = taken_ns;
    }
    nb_channel_close(p.there.base);
    nb_channel_close(p.back.base);
    test_threads_join(&thread, 1);
    assert_int_equal(result, NB_OK);
    assert_true(worst_ns < LATE_NS);
    nb_channel_destroy(p.there.base);
    nb_channel_destroy(p.back.base);
}

typedef struct impatient {
    packets channel;
    test_gate gate;
    nb_atomic_u32 received_count, wrong_count;
    uint64_t seed;
} impatient;

// Receives with deadlines that mostly pass, until closed.
static void receive_impatiently(void *user, uint32_t index) {
    impatient *m = user;
    uint64_t seed = m->seed + index;
    test_gate_pass(&m->gate, 5);
    for (;;) {
        packet item;
        uint64_t deadline_ns = index == 0 ? give_up_ns() : nbi_clock_now_ns() + test_random(&seed) % 50000;
        nb_result result = packets_recv(m->channel, &item, deadline_ns);
        if (result == NB_CLOSED) return;
        if (result == NB_OK) nbi_atomic_fetch_add_seq_cst_u32(&m->received_count, 1);
        if (result != NB_OK && (result != NB_TIMEOUT || index == 0)) {
            nbi_atomic_fetch_add_seq_cst_u32(&m->wrong_count, 1);
            nb_channel_close(m->channel.base);
        }
    }
}

// A wake that reaches a receiver which is giving up must reach the patient one.
TEST(receivers_that_give_up_pass_their_wake_on) {
    impatient m = {.seed = test_seed(__func__)};
    uint32_t total = (uint32_t)test_size(3000, 50000, 500000), sent = 0;
    nb_channel_desc desc = {.kind = NB_CHANNEL_KIND_MPMC, .capacity = 2};
    assert_int_equal(packets_create(&desc, &m.channel), NB_OK);
    test_thread threads[4];
    test_threads_start(threads, 4, receive_impatiently, &m);
    test_gate_pass(&m.gate, 5);
    uint64_t seed = m.seed;
    nb_result result = NB_OK;
    while (sent < total && result == NB_OK) {
        packet item = packet_of(0, sent);
        result = packets_send(m.channel, &item, give_up_ns());
        if (result == NB_OK) ++sent;
        if (sent % 8 == 0) delay(&seed);
    }
    nb_channel_close(m.channel.base);
    test_threads_join(threads, 4);
    assert_int_equal(result, NB_OK);
    assert_int_equal(m.wrong_count.value, 0);
    assert_int_equal(m.received_count.value, total);
    nb_channel_destroy(m.channel.base);
}

// --- one wake for two receivers ---

static void receive_one(void *user, uint32_t index) {
    (void)index;
    blocked *b = user;
    packet item;
    if (packets_recv(b->channel, &item, give_up_ns()) == NB_OK) {
        nbi_atomic_fetch_add_seq_cst_u32(&b->returned_count, 1);
    }
}

// The second send finds the flag taken down by the first: the receiver that the first one woke has to wake the other.
TEST(items_sent_together_reach_both_receivers) {
    for (uint64_t round = test_size(20, 200, 2000); round > 0; --round) {
        nb_channel_desc desc = {.kind = NB_CHANNEL_KIND_MPMC, .capacity = 2};
        blocked b = {.is_sender = false};
        assert_int_equal(packets_create(&desc, &b.channel), NB_OK);
        test_thread threads[2];
        test_threads_start(threads, 2, receive_one, &b);
        while (parked_now(&b) < 2) nbi_thread_yield();
        for (uint32_t i = 0; i < 2; ++i) {
            packet item = packet_of(0, i);
            assert_int_equal(packets_try_send(b.channel, &item), NB_OK);
        }
        uint64_t sent_ns = nbi_clock_now_ns();
        test_threads_join(threads, 2);
        assert_int_equal(b.returned_count.value, 2);
        assert_true(nbi_clock_now_ns() - sent_ns < GIVE_UP_NS / 2);
        nb_channel_destroy(b.channel.base);
    }
}

// --- the receiver destroys the channel as soon as it can ---

static void send_two(void *user, uint32_t index) {
    (void)index;
    packets channel = *(packets *)user;
    for (uint32_t i = 0; i < 2; ++i) {
        packet item = packet_of(0, i);
        if (packets_send(channel, &item, give_up_ns()) != NB_OK) return;
    }
}

TEST(receiver_may_destroy_after_the_last_item) {
    for (uint64_t round = test_size(300, 5000, 100000); round > 0; --round) {
        nb_channel_desc desc = {.kind = NB_CHANNEL_KIND_SPSC, .capacity = 1};
        packets channel = {NULL};
        assert_int_equal(packets_create(&desc, &channel), NB_OK);
        test_thread thread;
        test_threads_start(&thread, 1, send_two, &channel);
        packet item;
        assert_int_equal(packets_recv(channel, &item, give_up_ns()), NB_OK);
        assert_int_equal(packets_recv(channel, &item, give_up_ns()), NB_OK);
        nb_channel_destroy(channel.base); // the sender may still be inside its second send
        test_threads_join(&thread, 1);
    }
}
