// SPDX-License-Identifier: MIT
// Channels under every kind of interleaving: nothing lost, nothing twice, nobody asleep for ever, no touch after free.

#include "explore.h"

#include "base/channel.h"
#include "nebula/arena.h"
#include "nebula/channel.h"
#include "platform/platform.h"

NB_CHANNEL_DEFINE(ids, uint64_t);

#define ITEM_MAX 16

typedef struct room {
    ids channel;
    nb_atomic_u32 senders_left;
    bool is_sent[ITEM_MAX]; // by the sender of the item, on NB_OK
    uint32_t received_counts[ITEM_MAX];
    uint64_t last_of_sender[EXPLORE_THREADS_MAX][4]; // [receiver][sender], for the order
    bool is_destroyed;
} room;

static void open_room(void *user, nb_channel_kind kind, size_t capacity, uint64_t first_position) {
    room *r = user;
    nb_channel_desc desc = {
        .kind = kind, .capacity = capacity, .item_size_bytes = sizeof(uint64_t), .hooks = explore_hooks()};
    EXPLORE_CHECK(nbi_channel_create_at(&desc, first_position, &r->channel.base) == NB_OK);
}

// Ids are sender * 4 + number, numbers from 1.
static nb_result send_one(room *r, uint32_t sender, uint32_t number, uint64_t deadline_ns) {
    uint64_t id = sender * 4 + number;
    nb_result result = ids_send(r->channel, &id, deadline_ns);
    if (result == NB_OK) r->is_sent[id] = true;
    return result;
}

static void note_received(room *r, uint32_t receiver, uint64_t id) {
    EXPLORE_CHECK(id < ITEM_MAX);
    ++r->received_counts[id];
    EXPLORE_CHECK(id % 4 > r->last_of_sender[receiver][id / 4]);
    r->last_of_sender[receiver][id / 4] = id % 4;
}

static nb_result recv_one(room *r, uint32_t receiver, uint64_t deadline_ns) {
    uint64_t id = 0;
    nb_result result = ids_recv(r->channel, &id, deadline_ns);
    if (result == NB_OK) note_received(r, receiver, id);
    return result;
}

static void recv_until_closed(room *r, uint32_t receiver) {
    nb_result result;
    while ((result = recv_one(r, receiver, NB_NEVER_NS)) == NB_OK) {
    }
    EXPLORE_CHECK(result == NB_CLOSED);
    uint64_t id;
    EXPLORE_CHECK(ids_try_recv(r->channel, &id) == NB_CLOSED); // it stays closed
}

static void nothing_lost(void *user) {
    room *r = user;
    for (uint32_t id = 0; id < ITEM_MAX; ++id) EXPLORE_CHECK(r->received_counts[id] == (r->is_sent[id] ? 1u : 0u));
    nb_channel_stats stats = nb_channel_stats_get(r->channel.base);
    EXPLORE_CHECK(stats.depth == 0 && stats.sent_count == stats.received_count);
    nb_channel_destroy(r->channel.base);
}

// What is left inside counts as received.
static void collect_rest(void *user) {
    room *r = user;
    uint64_t id;
    while (ids_try_recv(r->channel, &id) == NB_OK) ++r->received_counts[id];
    nothing_lost(user);
}

// --- two senders, two receivers, the last sender closes ---

static void open_tiny(void *user) { open_room(user, NB_CHANNEL_KIND_MPMC, 1, 0); }
static void open_wrapping(void *user) { open_room(user, NB_CHANNEL_KIND_MPMC, 2, UINT64_MAX - 3); }
// Large enough for the inline way, which the first send of a lap does not take.
static void open_large(void *user) { open_room(user, NB_CHANNEL_KIND_MPMC, 32, 4); }

static void stream(void *user, uint32_t index) {
    room *r = user;
    if (index >= 2) {
        recv_until_closed(r, index);
        return;
    }
    for (uint32_t number = 1; number <= 2; ++number) {
        EXPLORE_CHECK(send_one(r, index, number, NB_NEVER_NS) == NB_OK);
    }
    if (nbi_atomic_fetch_add_seq_cst_u32(&r->senders_left, 1) == 1) nb_channel_close(r->channel.base);
}

// --- sends race a close ---

static void race_close(void *user, uint32_t index) {
    room *r = user;
    if (index == 3) {
        nb_channel_close(r->channel.base);
        EXPLORE_CHECK(send_one(r, 3, 3, 0) == NB_CLOSED);
        return;
    }
    if (index == 2) {
        recv_until_closed(r, index);
        return;
    }
    uint32_t number = 1;
    nb_result result = NB_OK;
    while (number <= 3 && (result = send_one(r, index, number, NB_NEVER_NS)) == NB_OK) ++number;
    EXPLORE_CHECK(result == NB_OK || result == NB_CLOSED);
}

// --- everybody is blocked, somebody closes ---

static void open_full(void *user) {
    open_tiny(user);
    EXPLORE_CHECK(send_one(user, 3, 1, 0) == NB_OK);
}

static void blocked_senders(void *user, uint32_t index) {
    room *r = user;
    if (index == 2) {
        nb_channel_close(r->channel.base);
    } else {
        EXPLORE_CHECK(send_one(r, index, 1, NB_NEVER_NS) == NB_CLOSED);
    }
}

static void blocked_receivers(void *user, uint32_t index) {
    room *r = user;
    if (index == 2) {
        nb_channel_close(r->channel.base);
    } else {
        EXPLORE_CHECK(recv_one(r, index, NB_NEVER_NS) == NB_CLOSED);
    }
}

// --- one wake for several waiters is passed on ---

static void batch_for_two(void *user, uint32_t index) {
    room *r = user;
    if (index < 2) {
        EXPLORE_CHECK(recv_one(r, index, NB_NEVER_NS) == NB_OK);
        return;
    }
    uint64_t batch[2] = {1, 5};
    size_t count = 0, total = 0;
    while (total < 2) {
        EXPLORE_CHECK(ids_try_send_many(r->channel, batch + total, 2 - total, &count) == NB_OK);
        total += count;
    }
    r->is_sent[1] = r->is_sent[5] = true;
}

static void open_full_pair(void *user) {
    open_room(user, NB_CHANNEL_KIND_MPMC, 2, 0);
    EXPLORE_CHECK(send_one(user, 3, 1, 0) == NB_OK);
    EXPLORE_CHECK(send_one(user, 3, 2, 0) == NB_OK);
}

static void room_for_two(void *user, uint32_t index) {
    room *r = user;
    if (index < 2) {
        EXPLORE_CHECK(send_one(r, index, 1, NB_NEVER_NS) == NB_OK);
        return;
    }
    uint64_t batch[2];
    size_t count = 0;
    EXPLORE_CHECK(ids_try_recv_many(r->channel, batch, 2, &count) == NB_OK);
    for (size_t i = 0; i < count; ++i) note_received(r, index, batch[i]);
    if (count < 2) EXPLORE_CHECK(recv_one(r, index, NB_NEVER_NS) == NB_OK);
}

// One receiver gives up at about the time the item comes: the other must not miss its wake.
static void one_gives_up(void *user, uint32_t index) {
    room *r = user;
    if (index == 0) {
        nb_result result = recv_one(r, index, nbi_clock_now_ns() + explore_random() % 20000);
        EXPLORE_CHECK(result == NB_OK || result == NB_TIMEOUT);
    } else if (index == 1) {
        EXPLORE_CHECK(recv_one(r, index, NB_NEVER_NS) == NB_OK);
    } else {
        EXPLORE_CHECK(send_one(r, 0, 1, NB_NEVER_NS) == NB_OK);
        EXPLORE_CHECK(send_one(r, 0, 2, NB_NEVER_NS) == NB_OK);
    }
}

// --- the receiver destroys as soon as it has what it waited for ---

static void open_pair(void *user) { open_room(user, NB_CHANNEL_KIND_SPSC, 1, 0); }

static void last_item_then_destroy(void *user, uint32_t index) {
    room *r = user;
    if (index == 0) {
        for (uint32_t number = 1; number <= 2; ++number) {
            EXPLORE_CHECK(send_one(r, 0, number, NB_NEVER_NS) == NB_OK);
        }
        return;
    }
    EXPLORE_CHECK(recv_one(r, 1, NB_NEVER_NS) == NB_OK);
    EXPLORE_CHECK(recv_one(r, 1, NB_NEVER_NS) == NB_OK);
    nb_channel_destroy(r->channel.base);
}

static void closed_then_destroy(void *user, uint32_t index) {
    room *r = user;
    if (index == 0) {
        EXPLORE_CHECK(send_one(r, 0, 1, NB_NEVER_NS) == NB_OK);
        nb_channel_close(r->channel.base);
        return;
    }
    recv_until_closed(r, 1);
    nb_channel_destroy(r->channel.base);
}

static void all_arrived(void *user) {
    room *r = user;
    for (uint32_t id = 0; id < ITEM_MAX; ++id) EXPLORE_CHECK(r->received_counts[id] == (r->is_sent[id] ? 1u : 0u));
}

// --- draining beside senders and a close ---

static void drain_beside_sends(void *user, uint32_t index) {
    room *r = user;
    if (index < 2) {
        for (uint32_t number = 1; number <= 2; ++number) {
            if (send_one(r, index, number, NB_NEVER_NS) != NB_OK) return;
        }
        if (index == 1) nb_channel_close(r->channel.base);
        return;
    }
    unsigned char buffer[256];
    nb_arena arena;
    EXPLORE_CHECK(nb_arena_init_buffer(&arena, buffer, sizeof buffer) == NB_OK);
    nb_result result = NB_OK;
    while (result != NB_CLOSED) {
        uint64_t *array = NULL;
        size_t count = 0;
        result = ids_drain(r->channel, &arena, &array, &count);
        EXPLORE_CHECK(result == NB_OK || result == NB_EMPTY || result == NB_CLOSED);
        // Not a poll: time passes here only while nobody can run.
        if (result == NB_EMPTY) result = recv_one(r, index, NB_NEVER_NS);
        for (size_t i = 0; i < count; ++i) note_received(r, index, array[i]);
        nb_arena_reset(&arena);
    }
    nb_arena_deinit(&arena);
}

EXPLORE(stream_through_one_cell, 4, open_tiny, stream, nothing_lost, sizeof(room))
EXPLORE(stream_over_the_wrap, 4, open_wrapping, stream, nothing_lost, sizeof(room))
EXPLORE(stream_on_the_inline_way, 4, open_large, stream, nothing_lost, sizeof(room))
EXPLORE(send_races_close, 4, open_tiny, race_close, nothing_lost, sizeof(room))
EXPLORE(send_races_close_on_the_inline_way, 4, open_large, race_close, nothing_lost, sizeof(room))
EXPLORE(close_wakes_blocked_senders, 3, open_full, blocked_senders, collect_rest, sizeof(room))
EXPLORE(close_wakes_blocked_receivers, 3, open_tiny, blocked_receivers, nothing_lost, sizeof(room))
EXPLORE(batch_reaches_both_receivers, 3, open_wrapping, batch_for_two, nothing_lost, sizeof(room))
EXPLORE(room_reaches_both_senders, 3, open_full_pair, room_for_two, collect_rest, sizeof(room))
EXPLORE(wake_of_one_who_gives_up_is_passed_on, 3, open_wrapping, one_gives_up, collect_rest, sizeof(room))
EXPLORE(receiver_destroys_after_the_last_item, 2, open_pair, last_item_then_destroy, all_arrived, sizeof(room))
EXPLORE(receiver_destroys_after_closed, 2, open_pair, closed_then_destroy, all_arrived, sizeof(room))
EXPLORE(drain_beside_sends, 3, open_wrapping, drain_beside_sends, nothing_lost, sizeof(room))
