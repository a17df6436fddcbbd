// SPDX-License-Identifier: MIT
// Reading rings under every kind of interleaving with their writers, and rings that change hands.

#include "explore.h"

#include "nebula/trace.h"

typedef struct trace_room {
    nb_trace *trace;
    nb_label label;
    uint64_t now;
} trace_room;

// Later than any counter's value, so that a value in the place of a time shows.
#define TIME_FIRST 1000

static uint64_t step_clock(void *user) { return TIME_FIRST + (*(uint64_t *)user)++; }

static void create_with(trace_room *room, uint32_t thread_count_max) {
    nb_labels_desc labels_desc = {.label_count_max = 8, .hooks = explore_hooks()};
    nb_labels *labels = NULL;
    EXPLORE_CHECK(nb_labels_create(&labels_desc, &labels) == NB_OK);
    EXPLORE_CHECK(nb_labels_intern(labels, "value", &room->label) == NB_OK);
    nb_trace_desc desc = {.thread_count_max = thread_count_max,
                          .record_count_max = 16,
                          .labels = labels,
                          .now = step_clock,
                          .now_user = &room->now,
                          .hooks = explore_hooks()};
    EXPLORE_CHECK(nb_trace_create(&desc, &room->trace) == NB_OK);
}

static void create_one_ring(void *user) { create_with((trace_room *)user, 1); }
static void create_two_rings(void *user) { create_with((trace_room *)user, 2); }

static void destroy(void *user) {
    trace_room *room = user;
    nb_labels *labels = nb_trace_labels(room->trace);
    EXPLORE_CHECK(nb_trace_destroy(room->trace) == NB_OK);
    nb_labels_destroy(labels);
}

// The writer's events count up without a gap.
typedef struct sequence {
    uint64_t next, time_ns;
    bool has_event;
} sequence;

static void check_sequence(void *user, const nb_trace_event *event) {
    sequence *self = user;
    uint64_t number = event->kind == NB_TRACE_KIND_FRAME ? event->frame : (uint64_t)event->value_i64;
    EXPLORE_CHECK(event->kind == NB_TRACE_KIND_FRAME || event->kind == NB_TRACE_KIND_COUNTER_I64);
    EXPLORE_CHECK(!self->has_event || number == self->next);
    EXPLORE_CHECK(event->time_ns >= TIME_FIRST && event->time_ns > self->time_ns);
    *self = (sequence){.next = number + 1, .time_ns = event->time_ns, .has_event = true};
}

static void read_three_times(trace_room *room) {
    for (int i = 0; i < 3; ++i) {
        sequence state = {0};
        EXPLORE_CHECK(nb_trace_read(room->trace, check_sequence, &state) == NB_OK);
    }
}

// Frames take one record, counters two. With one counter to two frames a place in the ring holds the same kind in every
// lap, with two to one the kinds move round: different mistakes show.
static void write_or_read(void *user, uint32_t index) {
    trace_room *room = user;
    if (index == 1) {
        read_three_times(room);
        return;
    }
    uint64_t counters = 1 + explore_random() % 2;
    nb_trace_thread *thread = NULL;
    EXPLORE_CHECK(nb_trace_attach(room->trace, "writer", &thread) == NB_OK);
    for (uint64_t number = 0; number < 24; ++number) {
        bool is_counter = number % 3 < counters;
        if (is_counter) nb_trace_counter(thread, room->label, (int64_t)number);
        if (!is_counter) nb_trace_frame(thread, number);
    }
    EXPLORE_CHECK(nb_trace_detach(thread) == NB_OK);
}

// Every event carries its thread's index, and the thread's name must agree.
static void check_owner(void *user, const nb_trace_event *event) {
    (void)user;
    EXPLORE_CHECK(event->kind == NB_TRACE_KIND_FRAME && event->frame == (uint64_t)(event->thread_name[0] - '0'));
}

// Three threads share two rings and read in between.
static void come_and_go(void *user, uint32_t index) {
    trace_room *room = user;
    const char name[2] = {(char)('0' + index), '\0'};
    for (int round = 0; round < 2; ++round) {
        nb_trace_thread *thread = NULL;
        nb_result result = nb_trace_attach(room->trace, name, &thread);
        EXPLORE_CHECK(result == NB_OK || result == NB_FULL);
        EXPLORE_CHECK(nb_trace_current(room->trace) == thread);
        for (int i = 0; i < 5; ++i) nb_trace_frame(thread, index);
        result = nb_trace_read(room->trace, check_owner, NULL);
        EXPLORE_CHECK(result == NB_OK || result == NB_BUSY);
        if (thread != NULL) EXPLORE_CHECK(nb_trace_detach(thread) == NB_OK);
    }
}

EXPLORE(trace_read_while_written_has_no_gap, .thread_count = 2, .setup = create_one_ring, .thread = write_or_read,
        .check = destroy, .user_size_bytes = sizeof(trace_room))
EXPLORE(trace_rings_change_hands_with_their_names, .thread_count = 3, .setup = create_two_rings, .thread = come_and_go,
        .check = destroy, .user_size_bytes = sizeof(trace_room))
