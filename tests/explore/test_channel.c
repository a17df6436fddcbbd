// SPDX-License-Identifier: MIT
// Channels under every kind of interleaving: each item once, per-sender order, close, parking, destruction.

#include "explore.h"

#include "nebula/channel.h"

#define ITEMS_MAX 16
#define SENDER_ITEMS 3u

// What one schedule does: threads 0 .. sender_count - 1 send, the next ones receive, the last one may close.
typedef struct traffic {
    nb_channel *channel;
    uint32_t sender_count, receiver_count;
    bool has_closer;
    nb_atomic_u32 sent_ok[ITEMS_MAX];  // by item
    nb_atomic_u32 received[ITEMS_MAX]; // by item
    nb_atomic_u32 senders_left;
} traffic;

static nb_channel *channel_make(nb_channel_kind kind, size_t capacity) {
    nb_channel_desc desc = {.name = "explored",
                            .kind = kind,
                            .capacity = capacity,
                            .item_size_bytes = sizeof(uint32_t),
                            .hooks = explore_hooks()};
    nb_channel *channel = NULL;
    EXPLORE_CHECK(nb_channel_create(&desc, &channel) == NB_OK);
    return channel;
}

static void send_all(traffic *t, uint32_t sender) {
    for (uint32_t i = 0; i < SENDER_ITEMS; ++i) {
        uint32_t item = sender * SENDER_ITEMS + i;
        nb_result result = nb_channel_send(t->channel, &item, NB_NEVER_NS);
        EXPLORE_CHECK(result == NB_OK || (result == NB_CLOSED && t->has_closer));
        if (result == NB_OK) nbi_atomic_fetch_add_seq_cst_u32(&t->sent_ok[item], 1);
    }
    bool is_last = nbi_atomic_fetch_sub_seq_cst_u32(&t->senders_left, 1) == 1;
    if (is_last && !t->has_closer) EXPLORE_CHECK(nb_channel_close(t->channel) == NB_OK);
}

static void receive_all(traffic *t) {
    uint32_t newest[ITEMS_MAX / SENDER_ITEMS + 1] = {0}; // item + 1, per sender
    for (;;) {
        uint32_t item = 0;
        nb_result result = nb_channel_recv(t->channel, &item, NB_NEVER_NS);
        if (result == NB_CLOSED) return;
        EXPLORE_CHECK(result == NB_OK && item < ITEMS_MAX);
        EXPLORE_CHECK(newest[item / SENDER_ITEMS] < item + 1);
        newest[item / SENDER_ITEMS] = item + 1;
        EXPLORE_CHECK(nbi_atomic_fetch_add_seq_cst_u32(&t->received[item], 1) == 0);
    }
}

static void traffic_thread(void *user, uint32_t index) {
    traffic *t = user;
    if (index < t->sender_count)
        send_all(t, index);
    else if (index < t->sender_count + t->receiver_count)
        receive_all(t);
    else
        EXPLORE_CHECK(nb_channel_close(t->channel) == NB_OK);
}

static void traffic_check(void *user) {
    traffic *t = user;
    for (uint32_t i = 0; i < ITEMS_MAX; ++i) EXPLORE_CHECK(t->sent_ok[i].value == t->received[i].value);
    nb_channel_destroy(t->channel);
}

static void traffic_setup(traffic *t, nb_channel_kind kind, size_t capacity, uint32_t senders, uint32_t receivers) {
    t->channel = channel_make(kind, capacity);
    t->sender_count = senders;
    t->receiver_count = receivers;
    t->senders_left.value = senders;
}

static void setup_spsc(void *user) { traffic_setup(user, NB_CHANNEL_KIND_SPSC, 1, 1, 1); }
static void setup_mpsc(void *user) { traffic_setup(user, NB_CHANNEL_KIND_MPSC, 2, 2, 1); }
static void setup_mpmc(void *user) { traffic_setup(user, NB_CHANNEL_KIND_MPMC, 1, 2, 2); }
static void setup_closed(void *user) {
    traffic_setup(user, NB_CHANNEL_KIND_MPMC, 1, 2, 1);
    ((traffic *)user)->has_closer = true;
}

// The receiver frees the channel as soon as it has what it waited for; the sender may still be on its way out.
static void setup_last_item(void *user) { ((traffic *)user)->channel = channel_make(NB_CHANNEL_KIND_SPSC, 1); }

static void send_one_or_receive_and_destroy(void *user, uint32_t index) {
    traffic *t = user;
    uint32_t item = 5;
    if (index == 0) {
        EXPLORE_CHECK(nb_channel_send(t->channel, &item, NB_NEVER_NS) == NB_OK);
        return;
    }
    item = 0;
    EXPLORE_CHECK(nb_channel_recv(t->channel, &item, NB_NEVER_NS) == NB_OK && item == 5);
    nb_channel_destroy(t->channel);
}

// The same with a batch: the sender has another cell to hand over when the receiver has its first item.
static void setup_batch(void *user) { ((traffic *)user)->channel = channel_make(NB_CHANNEL_KIND_SPSC, 2); }

static void send_batch_or_receive_and_destroy(void *user, uint32_t index) {
    traffic *t = user;
    const uint32_t items[2] = {1, 2};
    size_t count = 0;
    if (index == 0) {
        EXPLORE_CHECK(nb_channel_try_send_many(t->channel, items, 2, &count) == NB_OK && count == 2);
        return;
    }
    uint32_t item = 0;
    EXPLORE_CHECK(nb_channel_recv(t->channel, &item, NB_NEVER_NS) == NB_OK && item == 1);
    nb_channel_destroy(t->channel);
}

// A deadline ends a wait that nobody answers, and an item that came in time is never lost to it.
static void send_late_or_time_out(void *user, uint32_t index) {
    traffic *t = user;
    uint32_t item = 1;
    if (index == 0) {
        EXPLORE_CHECK(nb_channel_try_send(t->channel, &item) == NB_OK);
        return;
    }
    nb_result result = nb_channel_recv(t->channel, &item, 2000000);
    EXPLORE_CHECK(result == NB_OK || result == NB_TIMEOUT);
    nbi_atomic_store_relaxed_u32(&t->received[1], result == NB_OK);
}

static void timed_out_item_is_still_there(void *user) {
    traffic *t = user;
    uint32_t item = 0;
    nb_result expected = t->received[1].value == 1 ? NB_EMPTY : NB_OK;
    EXPLORE_CHECK(nb_channel_disown(t->channel) == NB_OK);
    EXPLORE_CHECK(nb_channel_try_recv(t->channel, &item) == expected);
    nb_channel_destroy(t->channel);
}

EXPLORE(channel_spsc_keeps_order, .thread_count = 2, .setup = setup_spsc, .thread = traffic_thread,
        .check = traffic_check, .user_size_bytes = sizeof(traffic))
EXPLORE(channel_mpsc_delivers_each_once, .thread_count = 3, .setup = setup_mpsc, .thread = traffic_thread,
        .check = traffic_check, .user_size_bytes = sizeof(traffic))
EXPLORE(channel_mpmc_delivers_each_once, .thread_count = 4, .setup = setup_mpmc, .thread = traffic_thread,
        .check = traffic_check, .user_size_bytes = sizeof(traffic))
EXPLORE(channel_close_loses_nothing, .thread_count = 4, .setup = setup_closed, .thread = traffic_thread,
        .check = traffic_check, .user_size_bytes = sizeof(traffic))
EXPLORE(channel_destroyed_by_its_receiver, .thread_count = 2, .setup = setup_last_item,
        .thread = send_one_or_receive_and_destroy, .user_size_bytes = sizeof(traffic))
EXPLORE(channel_destroyed_inside_a_batch, .thread_count = 2, .setup = setup_batch,
        .thread = send_batch_or_receive_and_destroy, .user_size_bytes = sizeof(traffic))
EXPLORE(channel_deadline_loses_nothing, .thread_count = 2, .setup = setup_last_item, .thread = send_late_or_time_out,
        .check = timed_out_item_is_still_there, .user_size_bytes = sizeof(traffic))
