// SPDX-License-Identifier: MIT
// Services: messages, failures and restarts, stopping, and what is left when threads or memory do not come.

#include "support/faults.h"

#include "nebula/clock.h"
#include "nebula/service.h"

#define SECOND_NS UINT64_C(1000000000)

// A number that threads wait on.
typedef struct count {
    nb_atomic_u32 value;
} count;

static void count_add(count *c) {
    nbi_atomic_fetch_add_seq_cst_u32(&c->value, 1);
    nbi_unpark(&c->value, UINT32_MAX);
}

static bool count_await(const count *c, uint32_t wanted) {
    uint64_t deadline_ns = nbi_clock_now_ns() + 10 * SECOND_NS;
    for (;;) {
        uint32_t value = nbi_atomic_load_acquire_u32(&c->value);
        if (value >= wanted) return true;
        if (nbi_clock_now_ns() >= deadline_ns) return false;
        nbi_park_until(&c->value, value, deadline_ns);
    }
}

typedef struct fixture {
    test_log log;
    test_heap heap;
    nb_services *set;
    nb_service *service;
    count started, received, may_go_on, destroyed;
    uint64_t sum;
    uint32_t fail_count; // the first runs fail
    nb_result inner;
} fixture;

static void begin(fixture *f) {
    memset(f, 0, sizeof *f);
    os_reset();
    nb_services_desc desc = {.service_count_max = 3, .hooks = test_hooks(&f->log, &f->heap)};
    assert_int_equal(nb_services_create(&desc, &f->set), NB_OK);
}

static void end(fixture *f) {
    assert_int_equal(nb_services_destroy(f->set), NB_OK);
    assert_int_equal(f->heap.live_count.value, 0);
}

static uint64_t soon(void) { return nb_clock_now_ns(NULL) + 10 * SECOND_NS; }

static void note_destroyed(void *user) { count_add(&((fixture *)user)->destroyed); }

static void start(fixture *f, nb_service_desc desc) {
    if (desc.name == NULL) desc.name = "worker";
    desc.user = f;
    desc.destroyed = note_destroyed;
    if (desc.pause_ns == 0) desc.pause_ns = 1000; // no test waits for pauses it does not need
    assert_int_equal(nb_service_start(f->set, &desc, &f->service), NB_OK);
}

static nb_service_state state_of(const fixture *f) { return nb_service_stats_get(f->service).state; }

static bool state_await(const fixture *f, nb_service_state wanted) {
    for (uint64_t limit_ns = soon(); state_of(f) != wanted; nbi_thread_yield()) {
        if (nbi_clock_now_ns() > limit_ns) return false;
    }
    return true;
}

// --- messages ---

static nb_result sum_up(nb_service *service, void *user) {
    fixture *f = user;
    uint64_t number;
    nb_result result;
    count_add(&f->started);
    while ((result = nb_service_recv(service, &number, NB_NEVER_NS)) == NB_OK) {
        f->sum += number;
        count_add(&f->received);
    }
    f->inner = result;
    return NB_OK;
}

static nb_result serve_to_the_end(nb_service *service, void *user) {
    (void)user;
    uint64_t message;
    while (nb_service_recv(service, &message, NB_NEVER_NS) == NB_OK) continue;
    return NB_OK;
}

TEST(messages_arrive_and_all_are_received_before_the_stop) {
    fixture f;
    begin(&f);
    start(&f, (nb_service_desc){.run = sum_up});
    uint64_t sent = 0;
    for (uint64_t i = 1; i <= 1000; ++i) {
        nb_result result = nb_service_send(f.service, &i);
        assert_true(result == NB_OK || result == NB_FULL);
        if (result == NB_OK) sent += i;
    }
    assert_int_equal(nb_service_stop(f.service, soon()), NB_OK);
    assert_int_equal(f.sum, sent);
    assert_int_equal(f.inner, NB_CLOSED);
    nb_service_stats stats = nb_service_stats_get(f.service);
    assert_int_equal(stats.state, NB_SERVICE_STATE_STOPPED);
    assert_int_equal(stats.sent_count + stats.full_count, 1000);
    assert_int_equal(stats.undelivered_count, 0);
    assert_int_equal(stats.run_count, 1);
    // Stopping again is fine, sending is not.
    assert_int_equal(nb_service_stop(f.service, 0), NB_OK);
    assert_int_equal(nb_service_send(f.service, &sent), NB_CLOSED);
    assert_int_equal(nb_service_stats_get(f.service).down_count, 1);
    assert_string_equal(nb_service_name(f.service), "worker");
    assert_ptr_equal(nb_services_find(f.set, "worker"), f.service);
    assert_null(nb_services_find(f.set, "nobody"));
    end(&f);
    assert_int_equal(f.destroyed.value.value, 1);
}

// Stands until told to go on.
static nb_result hold(nb_service *service, void *user) {
    fixture *f = user;
    (void)service;
    count_add(&f->started);
    return count_await(&f->may_go_on, 1) ? NB_OK : NB_ERR_OS;
}

TEST(full_mailbox_refuses_and_what_is_left_is_counted) {
    fixture f;
    begin(&f);
    start(&f, (nb_service_desc){.run = hold, .mailbox_count = 4});
    uint64_t message = 1;
    for (int i = 0; i < 4; ++i) assert_int_equal(nb_service_send(f.service, &message), NB_OK);
    for (int i = 0; i < 3; ++i) assert_int_equal(nb_service_send(f.service, &message), NB_FULL);
    count_add(&f.may_go_on);
    assert_true(state_await(&f, NB_SERVICE_STATE_STOPPED));
    nb_service_stats stats = nb_service_stats_get(f.service);
    assert_int_equal(stats.sent_count, 4);
    assert_int_equal(stats.full_count, 3);
    assert_int_equal(stats.undelivered_count, 4);
    assert_int_equal(test_log_count(&f.log, NB_ITEM_SERVICE_UNDELIVERED), 1);
    assert_int_equal(nb_service_send(f.service, &message), NB_CLOSED);
    end(&f);
    assert_int_equal(test_log_count(&f.log, NB_ITEM_CHANNEL_UNDRAINED), 0);
}

static nb_result receive_large(nb_service *service, void *user) {
    fixture *f = user;
    unsigned char message[100];
    while (nb_service_recv(service, message, NB_NEVER_NS) == NB_OK) {
        for (size_t i = 0; i < sizeof message; ++i) f->sum += message[i];
    }
    return NB_OK;
}

TEST(messages_have_the_size_asked_for) {
    fixture f;
    begin(&f);
    start(&f, (nb_service_desc){.run = receive_large, .message_size_bytes = 100});
    unsigned char message[100];
    memset(message, 3, sizeof message);
    assert_int_equal(nb_service_send(f.service, message), NB_OK);
    assert_int_equal(nb_service_stop(f.service, soon()), NB_OK);
    assert_int_equal(f.sum, 300);
    end(&f);
}

// --- failures ---

static nb_result fail_first(nb_service *service, void *user) {
    fixture *f = user;
    bool is_failing = f->started.value.value < f->fail_count;
    if (!is_failing) return sum_up(service, user);
    count_add(&f->started);
    return NB_ERR_OS;
}

TEST(failing_service_is_restarted) {
    fixture f;
    begin(&f);
    f.fail_count = 3;
    start(&f, (nb_service_desc){.run = fail_first, .is_kept_while_down = true});
    for (uint64_t i = 1; i <= 10; ++i) assert_int_equal(nb_service_send(f.service, &i), NB_OK);
    assert_true(count_await(&f.received, 10));
    assert_int_equal(f.sum, 55);
    nb_service_stats stats = nb_service_stats_get(f.service);
    assert_int_equal(stats.run_count, 4);
    assert_int_equal(stats.fail_count, 3);
    assert_int_equal(stats.state, NB_SERVICE_STATE_RUNNING);
    assert_int_equal(test_log_count(&f.log, NB_ITEM_SERVICE_RESTARTED), 3);
    assert_int_equal(test_log_count(&f.log, NB_ITEM_SERVICE_FAILED), 0);
    end(&f);
}

static nb_result fail_always(nb_service *service, void *user) {
    (void)service;
    count_add(&((fixture *)user)->started);
    return NB_ERR_MEMORY;
}

TEST(crash_loop_ends_as_failed_and_is_reported_once) {
    fixture f;
    begin(&f);
    start(&f, (nb_service_desc){.name = "crasher", .run = fail_always, .restart_limit = 4});
    assert_true(state_await(&f, NB_SERVICE_STATE_FAILED));
    assert_int_equal(f.started.value.value, 5);
    assert_int_equal(test_log_count(&f.log, NB_ITEM_SERVICE_RESTARTED), 4);
    assert_int_equal(test_log_count(&f.log, NB_ITEM_SERVICE_FAILED), 1);
    assert_non_null(strstr(f.log.last_message, "service \"crasher\" failed with NB_ERR_MEMORY after 4 restarts"));
    uint64_t message = 0;
    assert_int_equal(nb_service_send(f.service, &message), NB_CLOSED);
    assert_int_equal(nb_service_stop(f.service, 0), NB_OK);
    assert_int_equal(state_of(&f), NB_SERVICE_STATE_FAILED);
    end(&f);
    assert_int_equal(test_log_count(&f.log, NB_ITEM_SERVICE_FAILED), 1);
}

// Failures further apart than the window do not add up: each finds the last one forgotten.
TEST(rare_failures_are_not_a_crash_loop) {
    fixture f;
    begin(&f);
    f.fail_count = 20;
    start(&f,
          (nb_service_desc){.run = fail_first, .restart_limit = 1, .restart_window_ns = 100000, .pause_ns = 200000});
    assert_true(count_await(&f.started, 21));
    assert_int_equal(nb_service_stats_get(f.service).fail_count, 20);
    end(&f);
}

TEST(first_failure_is_the_end_where_asked_for) {
    fixture f;
    begin(&f);
    start(&f, (nb_service_desc){.run = fail_always, .restart_limit = NB_SERVICE_RESTART_NEVER});
    assert_true(state_await(&f, NB_SERVICE_STATE_FAILED));
    assert_int_equal(f.started.value.value, 1);
    end(&f);
}

TEST(service_that_is_done_is_not_run_again) {
    fixture f;
    begin(&f);
    count_add(&f.may_go_on);
    start(&f, (nb_service_desc){.run = hold});
    assert_true(state_await(&f, NB_SERVICE_STATE_STOPPED));
    assert_int_equal(nb_service_stats_get(f.service).run_count, 1);
    end(&f);
}

TEST(pauses_double_and_are_kept) {
    fixture f;
    begin(&f);
    uint64_t start_ns = nbi_clock_now_ns();
    start(&f, (nb_service_desc){.run = fail_always, .restart_limit = 4, .pause_ns = 1000000, .pause_max_ns = 3000000});
    assert_true(state_await(&f, NB_SERVICE_STATE_FAILED));
    assert_true(nbi_clock_now_ns() - start_ns >= 9000000); // 1 + 2 + 3 + 3 ms
    end(&f);
}

// --- while it is down ---

TEST(messages_in_a_pause_are_refused_or_kept) {
    for (int is_kept = 0; is_kept <= 1; ++is_kept) {
        fixture f;
        begin(&f);
        start(&f, (nb_service_desc){.run = fail_always,
                                    .mailbox_count = 2,
                                    .pause_ns = 1000 * SECOND_NS,
                                    .pause_max_ns = 1000 * SECOND_NS,
                                    .is_kept_while_down = is_kept});
        assert_true(state_await(&f, NB_SERVICE_STATE_PAUSED));
        uint64_t message = 1;
        for (int i = 0; i < 2; ++i) {
            assert_int_equal(nb_service_send(f.service, &message), is_kept ? NB_OK : NB_CLOSED);
        }
        assert_int_equal(nb_service_send(f.service, &message), is_kept ? NB_FULL : NB_CLOSED);
        // The stop does not wait for the pause.
        assert_int_equal(nb_service_stop(f.service, soon()), NB_OK);
        nb_service_stats stats = nb_service_stats_get(f.service);
        assert_int_equal(stats.state, NB_SERVICE_STATE_STOPPED);
        assert_int_equal(stats.down_count, is_kept ? 0 : 3);
        assert_int_equal(stats.undelivered_count, is_kept ? 2 : 0);
        assert_int_equal(f.started.value.value, 1);
        end(&f);
    }
}

// --- stopping ---

TEST(service_that_does_not_stop_is_named_and_not_killed) {
    fixture f;
    begin(&f);
    start(&f, (nb_service_desc){.name = "mule", .run = hold});
    nb_service *mule = f.service;
    start(&f, (nb_service_desc){.name = "good", .run = sum_up});
    assert_int_equal(nb_services_stop(f.set, nb_clock_now_ns(NULL) + 20000000), NB_TIMEOUT);
    assert_int_equal(test_log_count(&f.log, NB_ITEM_SERVICE_STUCK), 1);
    assert_non_null(strstr(f.log.last_message, "mule"));
    assert_int_equal(state_of(&f), NB_SERVICE_STATE_STOPPED);
    assert_true(nb_service_should_stop(mule));
    nb_service_state mule_state = nb_service_stats_get(mule).state;
    assert_true(mule_state == NB_SERVICE_STATE_RUNNING || mule_state == NB_SERVICE_STATE_STARTING);
    assert_int_equal(nb_service_stop(mule, nb_clock_now_ns(NULL) + 1000000), NB_TIMEOUT);
    nb_service *late = NULL;
    nb_service_desc desc = {.name = "late", .run = hold, .user = &f};
    assert_int_equal(nb_service_start(f.set, &desc, &late), NB_CLOSED);
    count_add(&f.may_go_on);
    end(&f);
}

static nb_result stop_oneself(nb_service *service, void *user) {
    fixture *f = user;
    count_await(&f->may_go_on, 1);
    f->inner = nb_service_stop(service, NB_NEVER_NS);
    if (f->inner == NB_ERR_DEADLOCK) f->inner = nb_services_stop(f->set, NB_NEVER_NS);
    if (f->inner == NB_ERR_DEADLOCK) f->inner = nb_services_destroy(f->set);
    count_add(&f->received);
    return NB_OK;
}

TEST(service_cannot_wait_for_its_own_end) {
    fixture f;
    begin(&f);
    start(&f, (nb_service_desc){.run = stop_oneself});
    count_add(&f.may_go_on);
    assert_true(count_await(&f.received, 1));
    assert_int_equal(f.inner, NB_ERR_DEADLOCK);
    end(&f);
}

static nb_result receive_here(nb_service *service, void *user) {
    uint64_t message;
    ((fixture *)user)->inner = nb_service_recv(service, &message, 0);
    count_add(&((fixture *)user)->received);
    return NB_OK;
}

TEST(only_the_own_thread_receives) {
    fixture f;
    begin(&f);
    start(&f, (nb_service_desc){.run = receive_here});
    uint64_t message;
    assert_int_equal(nb_service_recv(f.service, &message, 0), NB_ERR_THREAD);
    assert_true(count_await(&f.received, 1));
    assert_int_equal(f.inner, NB_EMPTY);
    end(&f);
}

typedef struct order {
    nb_service *first, *last;
    nb_atomic_u32 problem_count;
} order;

static nb_result needs_the_last(nb_service *service, void *user) {
    order *o = user;
    uint64_t message;
    while (nb_service_recv(service, &message, NB_NEVER_NS) == NB_OK) continue;
    // Asked to stop: the other still takes messages.
    if (nb_service_send(o->last, &message) != NB_OK) nbi_atomic_fetch_add_seq_cst_u32(&o->problem_count, 1);
    return NB_OK;
}

TEST(those_stopped_last_serve_the_others_to_the_end) {
    for (int is_reversed = 0; is_reversed <= 1; ++is_reversed) {
        fixture f;
        begin(&f);
        order o = {0};
        nb_service_desc last = {.name = "last", .run = serve_to_the_end, .is_stopped_last = true};
        nb_service_desc first = {.name = "first", .run = needs_the_last, .user = &o};
        if (!is_reversed) assert_int_equal(nb_service_start(f.set, &last, &o.last), NB_OK);
        // Reads `last` only once it is asked to stop, which is later.
        assert_int_equal(nb_service_start(f.set, &first, &o.first), NB_OK);
        if (is_reversed) assert_int_equal(nb_service_start(f.set, &last, &o.last), NB_OK);
        assert_int_equal(nb_services_stop(f.set, soon()), NB_OK);
        assert_int_equal(o.problem_count.value, 0);
        assert_int_equal(nb_service_stats_get(o.last).sent_count, 1);
        end(&f);
    }
}

TEST(destroy_stops_what_still_runs) {
    fixture f;
    begin(&f);
    start(&f, (nb_service_desc){.name = "a", .run = serve_to_the_end});
    start(&f, (nb_service_desc){.name = "b", .run = fail_always});
    start(&f, (nb_service_desc){.name = "c", .run = serve_to_the_end, .is_stopped_last = true});
    nb_service *more = NULL;
    nb_service_desc desc = {.name = "d", .run = sum_up};
    assert_int_equal(nb_service_start(f.set, &desc, &more), NB_FULL);
    end(&f);
    assert_int_equal(f.destroyed.value.value, 3);
}

// --- what does not come ---

TEST(start_survives_a_thread_that_does_not_come) {
    fixture f;
    begin(&f);
    start(&f, (nb_service_desc){.name = "a", .run = serve_to_the_end});
    uint64_t live_count = f.heap.live_count.value;
    os.threads.fail_at = 2;
    nb_service *service = (nb_service *)(uintptr_t)0x5A5A;
    nb_service_desc desc = {.name = "b", .run = serve_to_the_end, .user = &f};
    assert_int_equal(nb_service_start(f.set, &desc, &service), NB_ERR_OS);
    assert_ptr_equal(service, (nb_service *)(uintptr_t)0x5A5A);
    assert_int_equal(test_log_count(&f.log, NB_ITEM_SERVICE_OS), 1);
    assert_int_equal(f.heap.live_count.value, live_count);
    assert_null(nb_services_find(f.set, "b"));
    assert_int_equal(nb_service_start(f.set, &desc, &service), NB_OK);
    end(&f);
}

TEST(start_survives_every_failed_allocation) {
    for (int is_lasting = 0; is_lasting <= 1; ++is_lasting) {
        uint64_t n = 1;
        for (bool is_done = false; !is_done; ++n) {
            test_heap heap = test_heap_failing(n, is_lasting);
            static fixture f;
            memset(&f, 0, sizeof f);
            nb_services_desc set_desc = {.hooks = test_hooks(&f.log, &heap)};
            nb_service_desc desc = {.name = "a", .run = sum_up, .user = &f};
            nb_result result = nb_services_create(&set_desc, &f.set);
            if (result == NB_OK) result = nb_service_start(f.set, &desc, &f.service);
            is_done = result == NB_OK;
            if (!is_done) assert_int_equal(result, NB_ERR_MEMORY);
            assert_int_equal(nb_services_destroy(f.set), NB_OK);
            assert_int_equal(heap.live_count.value, 0);
        }
        assert_int_equal(n - 1, 4); // set, service, mailbox, and none
    }
}

// Sending, receiving, failing and restarting take nothing from the heap.
TEST(running_takes_no_memory) {
    fixture f;
    begin(&f);
    f.fail_count = 3;
    start(&f, (nb_service_desc){.run = fail_first, .is_kept_while_down = true});
    uint64_t calls = f.heap.call_count.value;
    for (uint64_t i = 1; i <= 100; ++i) assert_int_equal(nb_service_send(f.service, &i), NB_OK);
    assert_true(count_await(&f.received, 100));
    assert_int_equal(nb_service_stop(f.service, soon()), NB_OK);
    assert_int_equal(f.heap.call_count.value, calls);
    end(&f);
}

// --- everything at once ---

static nb_result fail_now_and_then(nb_service *service, void *user) {
    fixture *f = user;
    uint64_t number;
    while (nb_service_recv(service, &number, NB_NEVER_NS) == NB_OK) {
        count_add(&f->received);
        if (number % 64 == 0) return NB_ERR_OS;
    }
    return NB_OK;
}

typedef struct chaos {
    fixture f;
    test_gate gate;
    uint64_t message_count;
    nb_atomic_u64 accepted_count, refused_count;
    nb_atomic_u32 problem_count;
} chaos;

static void send_many(void *user, uint32_t index) {
    chaos *c = user;
    (void)index;
    test_gate_pass(&c->gate, 4);
    for (uint64_t i = 1; i <= c->message_count; ++i) {
        nb_result result = nb_service_send(c->f.service, &i);
        nbi_atomic_fetch_add_seq_cst_u64(result == NB_OK ? &c->accepted_count : &c->refused_count, 1);
        bool is_possible = result == NB_OK || result == NB_FULL || result == NB_CLOSED;
        if (!is_possible) nbi_atomic_fetch_add_seq_cst_u32(&c->problem_count, 1);
    }
}

TEST(every_message_is_accounted_for_whatever_happens) {
    for (uint64_t round = 0; round < test_size(30, 200, 2000); ++round) {
        static chaos c;
        memset(&c, 0, sizeof c);
        begin(&c.f);
        c.message_count = 300;
        start(&c.f, (nb_service_desc){.run = fail_now_and_then,
                                      .mailbox_count = 16,
                                      .restart_limit = 8,
                                      .is_kept_while_down = round % 2 != 0});
        test_thread senders[3];
        test_threads_start(senders, 3, send_many, &c);
        test_gate_pass(&c.gate, 4);
        for (uint64_t i = 0; i < round % 16; ++i) nbi_thread_yield();
        assert_int_equal(nb_service_stop(c.f.service, soon()), NB_OK);
        test_threads_join(senders, 3);
        nb_service_stats stats = nb_service_stats_get(c.f.service);
        assert_int_equal(c.problem_count.value, 0);
        assert_int_equal(c.accepted_count.value + c.refused_count.value, 900);
        assert_int_equal(stats.sent_count, c.accepted_count.value);
        assert_int_equal(stats.full_count + stats.down_count, c.refused_count.value);
        assert_int_equal(stats.sent_count, c.f.received.value.value + stats.undelivered_count);
        end(&c.f);
    }
}
