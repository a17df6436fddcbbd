// SPDX-License-Identifier: MIT
// The input queue under every kind of interleaving: two senders, and the loop's thread taking ticks, on a ring so small
// that it wraps and fills.

#include "explore.h"

#include "nebula/input.h"
#include "platform/platform.h"

#define SENDERS 2
#define PER_SENDER 3

typedef struct room {
    nb_input *input;
    uint32_t sent_count[SENDERS];          // accepted by the queue, each written by its sender
    uint32_t received_count[SENDERS];      // written by the loop's thread
    uint8_t seen[SENDERS][PER_SENDER];     // times each event was received
    uint8_t accepted[SENDERS][PER_SENDER]; // 1 = accepted
    nb_atomic_u32 finished;
} room;

static void open_room(void *user) {
    room *r = user;
    nb_input_desc desc = {.event_count_max = 2, .hooks = explore_hooks()};
    desc.hooks.logger.level_min = NB_LOG_OFF;
    EXPLORE_CHECK(nb_input_create(&desc, &r->input) == NB_OK);
}

static void send_all(room *r, uint32_t sender) {
    for (uint32_t i = 0; i < PER_SENDER; ++i) {
        nb_input_event event = {.timestamp_ns = i, .kind = NB_INPUT_COMMAND, .device = (uint16_t)sender, .code = i};
        event.payload.i32[0] = (int32_t)(100 * sender + i);
        nb_result result = nb_input_send(r->input, &event);
        EXPLORE_CHECK(result == NB_OK || result == NB_FULL);
        if (result != NB_OK) continue;
        r->accepted[sender][i] = 1;
        ++r->sent_count[sender];
    }
    nbi_atomic_fetch_add_seq_cst_u32(&r->finished, 1);
}

static void receive(room *r, uint64_t until_ns) {
    nb_input_view view;
    EXPLORE_CHECK(nb_input_take_tick(r->input, until_ns, &view) == NB_OK);
    for (uint32_t i = 0; i < view.count; ++i) {
        const nb_input_event *event = &view.events[i];
        EXPLORE_CHECK(event->device < SENDERS && event->code < PER_SENDER && event->timestamp_ns == event->code);
        EXPLORE_CHECK(event->payload.i32[0] == (int32_t)(100 * event->device + event->code));
        EXPLORE_CHECK(i == 0 || view.events[i - 1].timestamp_ns <= event->timestamp_ns);
        ++r->seen[event->device][event->code];
        ++r->received_count[event->device];
    }
}

static void send_or_take(void *user, uint32_t index) {
    room *r = user;
    if (index < SENDERS) {
        send_all(r, index);
        return;
    }
    for (uint64_t until_ns = 1; until_ns <= PER_SENDER; ++until_ns) receive(r, until_ns);
}

static void each_once(void *user) {
    room *r = user;
    receive(r, UINT64_MAX);
    receive(r, UINT64_MAX);
    for (uint32_t s = 0; s < SENDERS; ++s) {
        EXPLORE_CHECK(r->received_count[s] == r->sent_count[s]);
        for (uint32_t i = 0; i < PER_SENDER; ++i) EXPLORE_CHECK(r->seen[s][i] == r->accepted[s][i]);
    }
    nb_input_stats stats = nb_input_stats_get(r->input);
    EXPLORE_CHECK(stats.sent_count == stats.delivered_count && stats.waiting_count == 0);
    EXPLORE_CHECK(stats.sent_count + stats.full_count == SENDERS * PER_SENDER);
    nb_input_destroy(r->input);
}

EXPLORE(events_of_two_senders_arrive_once, .thread_count = SENDERS + 1, .setup = open_room, .thread = send_or_take,
        .check = each_once, .user_size_bytes = sizeof(room))
