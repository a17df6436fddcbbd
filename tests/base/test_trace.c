// SPDX-License-Identifier: MIT
// The trace: what is recorded comes back, rings and their owners, reading while writing, bad input. The JSON writer has
// its own file, test_trace_json.c.

#include "support/support.h"

#include "nebula/trace.h"

// A clock that moves by 1000 ns at each reading.
static uint64_t step_clock(void *user) { return *(uint64_t *)user += 1000; }

typedef struct fixture {
    test_log log;
    test_heap heap;
    uint64_t now;
    nb_trace *trace;
    nb_trace_thread *thread;
    nb_label label;
} fixture;

static void start_with(fixture *room, nb_trace_desc desc) {
    *room = (fixture){0};
    desc.hooks = test_hooks(&room->log, &room->heap);
    if (desc.now != NULL) desc.now_user = &room->now;
    assert_int_equal(nb_trace_create(&desc, &room->trace), NB_OK);
    assert_int_equal(nb_trace_attach(room->trace, "main", &room->thread), NB_OK);
    assert_int_equal(nb_labels_intern(nb_trace_labels(room->trace), "work", &room->label), NB_OK);
}

static void start(fixture *room, uint32_t record_count_max) {
    nb_trace_desc desc = {.thread_count_max = 4, .record_count_max = record_count_max, .now = step_clock};
    start_with(room, desc);
}

static void finish(fixture *room) {
    assert_int_equal(nb_trace_destroy(room->trace), NB_OK);
    assert_int_equal(room->heap.live_count.value, 0);
}

#define EVENT_MAX 256
typedef struct event_list {
    nb_trace_event events[EVENT_MAX];
    char names[EVENT_MAX][32], thread_names[EVENT_MAX][32];
    uint32_t count;
} event_list;

static void collect(void *user, const nb_trace_event *event) {
    event_list *list = (event_list *)user;
    if (list->count == EVENT_MAX) return;
    snprintf(list->names[list->count], 32, "%s", event->name);
    snprintf(list->thread_names[list->count], 32, "%s", event->thread_name);
    list->events[list->count++] = *event;
}

static void read_all(nb_trace *trace, event_list *list) {
    memset(list, 0, sizeof *list);
    assert_int_equal(nb_trace_read(trace, collect, list), NB_OK);
}

TEST(trace_events_come_back_in_order_with_their_times) {
    fixture room;
    event_list list;
    start(&room, 64);
    nb_trace_frame(room.thread, 7);
    nb_trace_begin(room.thread, room.label);
    nb_trace_instant(room.thread, room.label);
    nb_trace_counter(room.thread, room.label, INT64_MIN);
    nb_trace_counter_f64(room.thread, room.label, -0.25);
    nb_trace_end(room.thread);
    read_all(room.trace, &list);
    const nb_trace_kind kinds[] = {NB_TRACE_KIND_FRAME,       NB_TRACE_KIND_BEGIN,       NB_TRACE_KIND_INSTANT,
                                   NB_TRACE_KIND_COUNTER_I64, NB_TRACE_KIND_COUNTER_F64, NB_TRACE_KIND_END};
    assert_int_equal(list.count, 6);
    for (uint32_t i = 0; i < 6; ++i) {
        assert_int_equal(list.events[i].kind, kinds[i]);
        assert_int_equal(list.events[i].time_ns, 1000 * (i + 1));
        assert_int_equal(list.events[i].thread_number, 1);
        assert_string_equal(list.thread_names[i], "main");
        assert_string_equal(list.names[i], i == 0 || i == 5 ? "" : "work");
        assert_false(list.events[i].is_cut);
    }
    assert_int_equal(list.events[0].frame, 7);
    assert_int_equal(list.events[3].value_i64, INT64_MIN);
    assert_true(list.events[4].value_f64 == -0.25);
    assert_int_equal(nb_trace_stats_get(room.trace).recorded_count, 8);
    finish(&room);
}

TEST(trace_full_ring_keeps_the_newest) {
    fixture room;
    event_list list;
    start(&room, 16);
    for (uint64_t frame = 0; frame < 100; ++frame) nb_trace_frame(room.thread, frame);
    read_all(room.trace, &list);
    // Two of 16 are given up: the owner might be overwriting them now.
    assert_int_equal(list.count, 14);
    for (uint32_t i = 0; i < list.count; ++i) assert_int_equal(list.events[i].frame, 86 + i);
    nb_trace_stats stats = nb_trace_stats_get(room.trace);
    assert_int_equal(stats.recorded_count, 100);
    assert_int_equal(stats.overwritten_count, 84);
    finish(&room);
}

TEST(trace_counter_cut_in_half_by_the_ring_is_left_out) {
    fixture room;
    event_list list;
    start(&room, 16);
    nb_trace_frame(room.thread, 0); // makes the pairs straddle the end of the ring
    for (int64_t i = 0; i < 50; ++i) nb_trace_counter(room.thread, room.label, i);
    read_all(room.trace, &list);
    assert_int_equal(list.count, 7);
    for (uint32_t i = 0; i < list.count; ++i) assert_int_equal(list.events[i].value_i64, 43 + i);
    nb_trace_frame(room.thread, 0);
    read_all(room.trace, &list);
    assert_int_equal(list.events[0].value_i64, 44);
    finish(&room);
}

TEST(trace_spans_are_read_balanced) {
    fixture room;
    event_list list;
    start(&room, 16);
    nb_trace_end(room.thread); // never begun
    nb_trace_begin(room.thread, room.label);
    nb_trace_begin(room.thread, room.label);
    nb_trace_end(room.thread);
    read_all(room.trace, &list);
    assert_int_equal(list.count, 4);
    assert_int_equal(list.events[0].kind, NB_TRACE_KIND_BEGIN);
    assert_int_equal(list.events[3].kind, NB_TRACE_KIND_END);
    assert_true(list.events[3].is_cut);
    assert_int_equal(list.events[3].time_ns, 5000); // the reading's own look at the clock
    for (int i = 0; i < 20; ++i) nb_trace_end(room.thread);
    read_all(room.trace, &list);
    assert_int_equal(list.count, 0);
    finish(&room);
}

static void use_scopes(fixture *room, int *rounds) {
    for (*rounds = 0; *rounds < 10; ++*rounds) {
        NB_TRACE_SCOPE(room->thread, room->label);
        if (*rounds == 1) continue;
        if (*rounds == 2) break;
        NB_TRACE_SCOPE(room->thread, room->label);
    }
    NB_TRACE_SCOPE(room->thread, room->label);
    if (*rounds == 2) return;
    nb_trace_instant(room->thread, room->label);
}

TEST(trace_scope_ends_however_the_block_is_left) {
    fixture room;
    event_list list;
    int rounds = 0;
    start(&room, 64);
    use_scopes(&room, &rounds);
    read_all(room.trace, &list);
    const char expected[] = "BBEEBEBEBE";
    assert_int_equal(list.count, sizeof expected - 1);
    for (uint32_t i = 0; i < list.count; ++i) {
        assert_int_equal(list.events[i].kind, expected[i] == 'B' ? NB_TRACE_KIND_BEGIN : NB_TRACE_KIND_END);
        assert_false(list.events[i].is_cut);
    }
    finish(&room);
}

TEST(trace_of_null_thread_records_nothing) {
    fixture room;
    start(&room, 16);
    nb_trace_begin(NULL, room.label);
    nb_trace_instant(NULL, room.label);
    nb_trace_counter(NULL, room.label, 1);
    nb_trace_counter_f64(NULL, room.label, 1);
    nb_trace_frame(NULL, 1);
    nb_trace_end(NULL);
    nb_trace_write(NULL, NB_TRACE_KIND_BEGIN, room.label, 0);
    assert_int_equal(nb_trace_stats_get(room.trace).recorded_count, 0);
    finish(&room);
}

// --- who owns which ring ---

static void run_on_thread(void (*run)(void *, uint32_t), void *user) { test_threads_run(1, run, user); }

static void look_up_unattached(void *user, uint32_t index) {
    (void)index;
    fixture *room = (fixture *)user;
    for (int i = 0; i < 3; ++i) nb_trace_instant(nb_trace_current(room->trace), room->label);
}

TEST(trace_of_unattached_thread_is_dropped_and_counted) {
    fixture room;
    start(&room, 16);
    run_on_thread(look_up_unattached, &room);
    assert_int_equal(nb_trace_stats_get(room.trace).dropped_count, 3);
    assert_int_equal(nb_trace_stats_get(room.trace).recorded_count, 0);
    assert_ptr_equal(nb_trace_current(room.trace), room.thread);
    assert_int_equal(nb_trace_stats_get(room.trace).dropped_count, 3);
    finish(&room);
}

TEST(trace_after_detach_is_dropped_and_counted) {
    fixture room;
    start(&room, 16);
    assert_int_equal(nb_trace_detach(room.thread), NB_OK);
    nb_trace_begin(room.thread, room.label);
    nb_trace_end(room.thread);
    assert_null(nb_trace_current(room.trace));
    assert_int_equal(nb_trace_stats_get(room.trace).dropped_count, 3);
    assert_int_equal(nb_trace_detach(room.thread), NB_ERR_THREAD);
    finish(&room);
}

static void detach_foreign(void *user, uint32_t index) {
    (void)index;
    fixture *room = (fixture *)user;
    if (nb_trace_detach(room->thread) != NB_ERR_THREAD) room->now = UINT64_MAX;
    if (nb_trace_destroy(room->trace) != NB_BUSY) room->now = UINT64_MAX;
}

TEST(trace_detach_and_destroy_by_another_thread_are_refused) {
    fixture room;
    start(&room, 16);
    run_on_thread(detach_foreign, &room);
    assert_int_not_equal(room.now, UINT64_MAX);
    assert_int_equal(test_log_count(&room.log, NB_ITEM_TRACE_ARGUMENT), 2);
    assert_int_equal(nb_trace_stats_get(room.trace).thread_count, 1);
    finish(&room);
}

// Attaches with a name of its own, leaves a frame mark and an open span, and detaches.
typedef struct visitor {
    fixture *room;
    const char *name;
    uint64_t frame;
    nb_result result;
} visitor;

static void visit_trace(void *user, uint32_t index) {
    (void)index;
    visitor *self = (visitor *)user;
    nb_trace_thread *thread = NULL;
    self->result = nb_trace_attach(self->room->trace, self->name, &thread);
    if (self->result != NB_OK) return;
    nb_trace_frame(thread, self->frame);
    nb_trace_begin(thread, self->room->label);
    self->result = nb_trace_detach(thread);
}

static nb_result visit_once(fixture *room, const char *name, uint64_t frame) {
    visitor self = {.room = room, .name = name, .frame = frame};
    run_on_thread(visit_trace, &self);
    return self.result;
}

TEST(trace_ring_of_detached_thread_is_readable_until_the_oldest_is_reused) {
    fixture room;
    event_list list;
    start_with(&room, (nb_trace_desc){.thread_count_max = 3, .record_count_max = 16, .now = step_clock});
    assert_int_equal(visit_once(&room, "first", 1), NB_OK);
    assert_int_equal(visit_once(&room, "second", 2), NB_OK);
    read_all(room.trace, &list);
    assert_int_equal(list.count, 6);
    assert_string_equal(list.thread_names[0], "first");
    assert_string_equal(list.thread_names[3], "second");
    assert_true(list.events[2].is_cut);
    assert_int_equal(list.events[2].time_ns, list.events[1].time_ns); // a thread that left ends with its last event
    assert_int_equal(visit_once(&room, "third", 3), NB_OK);
    read_all(room.trace, &list);
    assert_int_equal(list.count, 6);
    assert_string_equal(list.thread_names[0], "third");
    assert_int_equal(list.events[0].frame, 3);
    assert_int_equal(list.events[0].thread_number, 4);
    assert_string_equal(list.thread_names[3], "second");
    finish(&room);
}

TEST(trace_without_a_free_ring_refuses_to_attach) {
    fixture room;
    start_with(&room, (nb_trace_desc){.thread_count_max = 1, .record_count_max = 16, .now = step_clock});
    for (int i = 0; i < 3; ++i) assert_int_equal(visit_once(&room, "other", 1), NB_FULL);
    assert_int_equal(nb_trace_stats_get(room.trace).refused_count, 3);
    assert_int_equal(test_log_count(&room.log, NB_ITEM_TRACE_FULL), 1);
    assert_int_equal(nb_trace_detach(room.thread), NB_OK);
    assert_int_equal(visit_once(&room, "other", 1), NB_OK);
    finish(&room);
}

TEST(trace_attached_twice_is_refused) {
    fixture room;
    start(&room, 16);
    nb_trace_thread *again = NULL;
    assert_int_equal(nb_trace_attach(room.trace, "again", &again), NB_ERR_MISUSE);
    assert_null(again);
    assert_int_equal(nb_trace_detach(room.thread), NB_OK);
    assert_int_equal(nb_trace_attach(room.trace, "again", &again), NB_OK);
    finish(&room);
}

TEST(trace_thread_name_without_room_is_empty) {
    nb_labels *labels = NULL;
    nb_labels_desc labels_desc = {.label_count_max = 1};
    assert_int_equal(nb_labels_create(&labels_desc, &labels), NB_OK);
    nb_label taken;
    assert_int_equal(nb_labels_intern(labels, "taken", &taken), NB_OK);
    nb_trace_desc desc = {.record_count_max = 16, .labels = labels};
    nb_trace *trace = NULL;
    nb_trace_thread *thread = NULL;
    event_list list;
    assert_int_equal(nb_trace_create(&desc, &trace), NB_OK);
    assert_ptr_equal(nb_trace_labels(trace), labels);
    assert_int_equal(nb_trace_attach(trace, "main", &thread), NB_OK);
    nb_trace_instant(thread, taken);
    nb_trace_instant(thread, (nb_label){55}); // of no table
    read_all(trace, &list);
    assert_int_equal(list.count, 2);
    assert_string_equal(list.thread_names[0], "");
    assert_string_equal(list.names[0], "taken");
    assert_string_equal(list.names[1], "?");
    assert_int_equal(nb_trace_destroy(trace), NB_OK);
    assert_string_equal(nb_labels_name(labels, taken), "taken"); // borrowed: not destroyed with the trace
    nb_labels_destroy(labels);
}

// --- clocks and sinks ---

TEST(trace_sink_gets_each_event_as_it_happens) {
    fixture room;
    event_list live = {.count = 0}, read;
    start_with(&room, (nb_trace_desc){.record_count_max = 64, .now = step_clock, .sink = collect, .sink_user = &live});
    nb_trace_frame(room.thread, 3);
    assert_int_equal(live.count, 1);
    nb_trace_begin(room.thread, room.label);
    nb_trace_counter(room.thread, room.label, -5);
    nb_trace_counter_f64(room.thread, room.label, 1.5);
    nb_trace_end(room.thread);
    read_all(room.trace, &read);
    assert_int_equal(live.count, 5);
    assert_int_equal(read.count, 5);
    for (uint32_t i = 0; i < 5; ++i) {
        assert_int_equal(live.events[i].kind, read.events[i].kind);
        assert_int_equal(live.events[i].time_ns, read.events[i].time_ns);
        assert_int_equal(live.events[i].value_i64, read.events[i].value_i64);
        assert_string_equal(live.names[i], read.names[i]);
        assert_string_equal(live.thread_names[i], "main");
    }
    finish(&room);
}

static nb_trace_clock clock_of(nb_trace_desc desc) {
    nb_trace *trace = NULL;
    desc.record_count_max = 16;
    assert_int_equal(nb_trace_create(&desc, &trace), NB_OK);
    nb_trace_clock clock = nb_trace_stats_get(trace).clock;
    assert_int_equal(nb_trace_destroy(trace), NB_OK);
    return clock;
}

TEST(trace_clock_follows_the_desc) {
    uint64_t now = 0;
    nb_trace_clock best = clock_of((nb_trace_desc){0});
    assert_true(best == NB_TRACE_CLOCK_TSC || best == NB_TRACE_CLOCK_SYSTEM);
    assert_int_equal(clock_of((nb_trace_desc){.clock = NB_TRACE_CLOCK_SYSTEM}), NB_TRACE_CLOCK_SYSTEM);
    assert_int_equal(clock_of((nb_trace_desc){.sink = collect}), NB_TRACE_CLOCK_SYSTEM);
    assert_int_equal(clock_of((nb_trace_desc){.now = step_clock, .now_user = &now}), NB_TRACE_CLOCK_CUSTOM);
    test_log log = {0};
    nb_trace_desc desc = {.clock = NB_TRACE_CLOCK_TSC, .record_count_max = 16, .hooks = test_hooks(&log, NULL)};
    nb_trace *trace = NULL;
    bool has_tsc = best == NB_TRACE_CLOCK_TSC;
    assert_int_equal(nb_trace_create(&desc, &trace), has_tsc ? NB_OK : NB_ERR_UNSUPPORTED);
    assert_int_equal(nb_trace_destroy(trace), NB_OK);
    desc.sink = collect;
    assert_int_equal(nb_trace_create(&desc, &trace), NB_ERR_UNSUPPORTED);
}

static void times_agree_with_the_system(nb_trace_clock clock) {
    nb_trace_desc desc = {.clock = clock, .record_count_max = 128};
    fixture room;
    event_list list;
    start_with(&room, desc);
    uint64_t before = nbi_clock_now_ns();
    for (int i = 0; i < 30; ++i) nb_trace_instant(room.thread, room.label);
    uint64_t after = nbi_clock_now_ns();
    // Whatever is between two readings of two clocks; a preempted reading is thrown away, unless all eight are.
    const uint64_t slack_ns = 1000000;
    read_all(room.trace, &list);
    assert_int_equal(list.count, 30);
    for (uint32_t i = 0; i < list.count; ++i) {
        assert_in_range(list.events[i].time_ns, before - slack_ns, after + slack_ns);
        if (i > 0) assert_true(list.events[i].time_ns >= list.events[i - 1].time_ns);
    }
    finish(&room);
}

TEST(trace_times_agree_with_the_system_clock) {
    times_agree_with_the_system(NB_TRACE_CLOCK_DEFAULT);
    times_agree_with_the_system(NB_TRACE_CLOCK_SYSTEM);
}

// --- reading while writing ---

static void read_again(void *user, const nb_trace_event *event) {
    (void)event;
    fixture *room = (fixture *)user;
    if (nb_trace_read(room->trace, collect, NULL) == NB_BUSY && nb_trace_destroy(room->trace) == NB_BUSY)
        room->now += 1;
}

TEST(trace_read_inside_a_read_is_busy) {
    fixture room;
    start_with(&room, (nb_trace_desc){.record_count_max = 16});
    nb_trace_instant(room.thread, room.label);
    assert_int_equal(nb_trace_read(room.trace, read_again, &room), NB_OK);
    assert_int_equal(room.now, 1);
    finish(&room);
}

#define WRITER_COUNT 3

typedef struct storm {
    nb_trace *trace;
    nb_label label;
    nb_atomic_u32 is_over, failed_count;
} storm;

// Each writer leaves a chain: counter n is n * 2654435761 and stands before the frame mark n.
#define CHAIN_FACTOR 2654435761u

static void write_chain(void *user, uint32_t index) {
    storm *shared = (storm *)user;
    char name[8];
    snprintf(name, sizeof name, "w%u", index);
    for (uint64_t number = 0; nbi_atomic_load_acquire_u32(&shared->is_over) == 0;) {
        nb_trace_thread *thread = NULL;
        if (nb_trace_attach(shared->trace, name, &thread) != NB_OK) {
            nbi_atomic_fetch_add_seq_cst_u32(&shared->failed_count, 1);
            return;
        }
        for (uint64_t end = number + 2000; number < end; ++number) {
            nb_trace_counter(thread, shared->label, (int64_t)(number * CHAIN_FACTOR));
            nb_trace_frame(thread, number);
        }
        nb_trace_detach(thread);
    }
}

typedef struct chain {
    uint32_t thread_number;
    uint64_t time_ns, expected_frame, event_count;
    int64_t value;
    bool has_value, has_frame;
    uint32_t wrong_count;
} chain;

static void check_chain(void *user, const nb_trace_event *event) {
    chain *self = (chain *)user;
    if (event->thread_number != self->thread_number) {
        *self = (chain){
            .thread_number = event->thread_number, .wrong_count = self->wrong_count, .event_count = self->event_count};
    }
    self->event_count += 1;
    bool is_right = event->time_ns >= self->time_ns;
    if (event->kind == NB_TRACE_KIND_COUNTER_I64) {
        is_right = is_right && !self->has_value;
        self->value = event->value_i64;
        self->has_value = true;
    } else {
        is_right = is_right && event->kind == NB_TRACE_KIND_FRAME && (self->has_value || !self->has_frame);
        is_right = is_right && (!self->has_value || self->value == (int64_t)(event->frame * CHAIN_FACTOR));
        is_right = is_right && (!self->has_frame || event->frame == self->expected_frame);
        self->expected_frame = event->frame + 1;
        self->has_frame = true;
        self->has_value = false;
    }
    self->time_ns = event->time_ns;
    if (!is_right) self->wrong_count += 1;
}

TEST(trace_read_while_threads_write_attach_and_detach_is_whole) {
    storm shared = {0};
    // A small ring is overwritten many times during a copy, a large one is likely to be preempted during one.
    const uint32_t sizes[] = {16, 1024, 16384};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; ++i) {
        shared = (storm){0};
        nb_trace_desc desc = {.thread_count_max = WRITER_COUNT + 1, .record_count_max = sizes[i]};
        assert_int_equal(nb_trace_create(&desc, &shared.trace), NB_OK);
        assert_int_equal(nb_labels_intern(nb_trace_labels(shared.trace), "value", &shared.label), NB_OK);
        test_thread threads[WRITER_COUNT];
        test_threads_start(threads, WRITER_COUNT, write_chain, &shared);
        uint64_t rounds = test_size(1, 4, 100) * (sizes[i] > 1024 ? 5 : 100);
        chain state = {0};
        for (uint64_t round = 0; round < rounds; ++round) {
            state.thread_number = 0;
            assert_int_equal(nb_trace_read(shared.trace, check_chain, &state), NB_OK);
        }
        nbi_atomic_store_release_u32(&shared.is_over, 1);
        test_threads_join(threads, WRITER_COUNT);
        assert_int_equal(state.wrong_count, 0);
        assert_int_equal(shared.failed_count.value, 0);
        assert_int_equal(nb_trace_read(shared.trace, check_chain, &state), NB_OK);
        assert_true(state.event_count > 0);
        assert_int_equal(state.wrong_count, 0);
        assert_int_equal(nb_trace_destroy(shared.trace), NB_OK);
    }
}

// --- bad input and memory ---

TEST(trace_bad_arguments_are_refused) {
    fixture room;
    start(&room, 16);
    nb_trace_thread *thread = NULL;
    assert_int_equal(nb_trace_create(NULL, NULL), NB_ERR_MISUSE);
    assert_int_equal(nb_trace_attach(NULL, "x", &thread), NB_ERR_MISUSE);
    assert_int_equal(nb_trace_attach(room.trace, NULL, &thread), NB_ERR_MISUSE);
    assert_int_equal(nb_trace_attach(room.trace, "x", NULL), NB_ERR_MISUSE);
    assert_int_equal(nb_trace_detach(NULL), NB_ERR_MISUSE);
    assert_null(nb_trace_current(NULL));
    assert_null(nb_trace_labels(NULL));
    assert_int_equal(nb_trace_read(NULL, collect, NULL), NB_ERR_MISUSE);
    assert_int_equal(nb_trace_read(room.trace, NULL, NULL), NB_ERR_MISUSE);
    assert_int_equal(nb_trace_stats_get(NULL).thread_count_max, 0);
    assert_int_equal(nb_trace_destroy(NULL), NB_OK);
    nb_trace_write(room.thread, NB_TRACE_KIND_NONE, room.label, 0);
    nb_trace_write(room.thread, NB_TRACE_KIND_COUNT, room.label, 0);
    nb_trace_write(room.thread, (nb_trace_kind)15, room.label, 0);
    assert_int_equal(nb_trace_stats_get(room.trace).recorded_count, 0);
    assert_int_equal(test_log_count(&room.log, NB_ITEM_TRACE_ARGUMENT), 6);

    const struct {
        nb_trace_desc desc;
        nb_result result;
    } bad[] = {
        {{.record_count_max = 1000}, NB_ERR_MISUSE},
        {{.record_count_max = 8}, NB_ERR_RANGE},
        {{.record_count_max = 2 * NB_TRACE_RECORD_COUNT_MAX}, NB_ERR_RANGE},
        {{.thread_count_max = NB_TRACE_THREAD_COUNT_MAX + 1}, NB_ERR_RANGE},
        {{.clock = NB_TRACE_CLOCK_COUNT}, NB_ERR_MISUSE},
        {{.clock = NB_TRACE_CLOCK_CUSTOM}, NB_ERR_MISUSE},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; ++i) {
        nb_trace_desc desc = bad[i].desc;
        desc.hooks = test_hooks(&room.log, &room.heap);
        nb_trace *trace = NULL;
        assert_int_equal(nb_trace_create(&desc, &trace), bad[i].result);
        assert_null(trace);
    }
    finish(&room);
}

TEST(trace_without_memory_is_not_created) {
    for (uint64_t call = 1; call <= 2; ++call) {
        for (int is_from = 0; is_from < 2; ++is_from) {
            test_log log = {0};
            test_heap heap = test_heap_failing(call, is_from);
            nb_trace_desc desc = nb_trace_desc_default();
            desc.record_count_max = 16;
            desc.hooks = test_hooks(&log, &heap);
            nb_trace *trace = NULL;
            assert_int_equal(nb_trace_create(&desc, &trace), NB_ERR_MEMORY);
            assert_not_created(trace, &heap, &log, NB_ITEM_BASE_MEMORY);
        }
    }
}

TEST(trace_allocates_nothing_after_creation) {
    fixture room;
    event_list list;
    start(&room, 64);
    uint64_t calls = room.heap.call_count.value;
    for (int i = 0; i < 1000; ++i) nb_trace_counter(room.thread, room.label, i);
    assert_int_equal(visit_once(&room, "other", 1), NB_OK);
    read_all(room.trace, &list);
    assert_int_equal(room.heap.call_count.value, calls);
    finish(&room);
}
