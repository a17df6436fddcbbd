// SPDX-License-Identifier: MIT
// The frame fence: frames, tickets, waits, time-outs, late work, quarantine.

#include "support/support.h"

#include "nebula/fence.h"
#include "tasks/fence.h"

#define NO_LABEL ((nb_label){0})

static test_log fixture_log;
static test_heap fixture_heap;

static nb_fence_desc desc_of_test(void) {
    memset(&fixture_log, 0, sizeof fixture_log);
    memset(&fixture_heap, 0, sizeof fixture_heap);
    return (nb_fence_desc){.ticket_count_max = 64, .hooks = test_hooks(&fixture_log, &fixture_heap)};
}

static nb_fence *fence_of(const nb_fence_desc *desc) {
    nb_fence *fence = NULL;
    assert_int_equal(nb_fence_create(desc, &fence), NB_OK);
    return fence;
}

static nb_fence *fence_open(void) {
    nb_fence_desc desc = desc_of_test();
    return fence_of(&desc);
}

static void fence_end(nb_fence *fence) {
    assert_int_equal(nb_fence_destroy(fence), NB_OK);
    assert_int_equal(fixture_heap.live_count.value, 0);
}

static nb_fence_frame begin(nb_fence *fence) {
    nb_fence_frame frame = {0};
    assert_int_equal(nb_fence_begin(fence, &frame), NB_OK);
    return frame;
}

static nb_fence_ticket take(nb_fence *fence, nb_fence_frame frame) {
    nb_fence_ticket ticket = {0};
    assert_int_equal(nb_fence_take(fence, frame, NO_LABEL, &ticket), NB_OK);
    assert_true(ticket.value != 0);
    return ticket;
}

static void give_back(nb_fence *fence, nb_fence_ticket ticket) {
    assert_int_equal(nb_fence_return(fence, ticket), NB_OK);
}

static nb_result look(nb_fence *fence, nb_fence_frame frame, nb_fence_report *report) {
    return nb_fence_wait(fence, frame, 0, NULL, report);
}

// --- the tests that the fence's first description named ---

typedef struct barrier {
    nb_fence *fence;
    nb_fence_ticket tickets[5];
    nb_atomic_u32 counter, go;
} barrier;

static void barrier_work(void *user, uint32_t index) {
    barrier *b = user;
    while (nbi_atomic_load_acquire_u32(&b->go) <= index) nbi_thread_yield();
    for (int i = 0; i < 100; ++i) nbi_thread_yield();
    nbi_atomic_fetch_add_relaxed_u32(&b->counter, 1);
    nb_fence_return(b->fence, b->tickets[index]);
}

TEST(test_barrier_waits_for_all_critical) {
    barrier b = {.fence = fence_open()};
    nb_fence_frame frame = begin(b.fence);
    for (int i = 0; i < 5; ++i) b.tickets[i] = take(b.fence, frame);
    test_thread threads[5];
    test_threads_start(threads, 5, barrier_work, &b);
    nb_fence_report report;
    uint64_t end_ns = nbi_clock_now_ns() + 10000000000u;
    for (uint32_t left = 5; left > 0; --left) {
        do {
            nbi_thread_yield();
            assert_int_equal(look(b.fence, frame, &report), NB_TIMEOUT);
        } while (report.pending_count > left && nbi_clock_now_ns() < end_ns);
        assert_int_equal(report.pending_count, left);
        nbi_atomic_store_release_u32(&b.go, 6 - left); // lets one more thread go
    }
    assert_int_equal(nb_fence_wait(b.fence, frame, NB_NEVER_NS, NULL, &report), NB_OK);
    assert_int_equal(nbi_atomic_load_relaxed_u32(&b.counter), 5);
    assert_int_equal(report.status, NB_FENCE_COMPLETE);
    assert_int_equal(report.pending_count, 0);
    fence_end(b.fence); // the last thread may still be inside nb_fence_return
    test_threads_join(threads, 5);
}

TEST(test_frame_counter_increments) {
    nb_fence *fence = fence_open();
    assert_int_equal(nb_fence_frame_number(nb_fence_current(fence)), 0);
    for (uint64_t number = 1; number <= 3; ++number) {
        nb_fence_frame frame = begin(fence);
        assert_int_equal(nb_fence_frame_number(frame), number);
        assert_int_equal(nb_fence_current(fence).value, frame.value);
    }
    assert_int_equal(nb_fence_stats_get(fence).frame_count, 3);
    fence_end(fence);
}

// Late tickets of frame 1 come back before, during and after the wait for frame 2, and never change it.
TEST(test_tasks_from_different_frames_independent) {
    nb_fence *fence = fence_open();
    nb_fence_frame first = begin(fence);
    nb_fence_ticket late[3] = {take(fence, first), take(fence, first), take(fence, first)};
    nb_fence_frame second = begin(fence);
    nb_fence_ticket own = take(fence, second), other = take(fence, second);
    give_back(fence, own);
    give_back(fence, late[0]);
    nb_fence_report report;
    assert_int_equal(look(fence, second, &report), NB_TIMEOUT); // late[0] has not stood in for `other`
    assert_int_equal(report.pending_count, 1);
    give_back(fence, late[1]);
    assert_int_equal(look(fence, second, &report), NB_TIMEOUT);
    give_back(fence, other);
    assert_int_equal(nb_fence_wait(fence, second, NB_NEVER_NS, NULL, &report), NB_OK);
    assert_int_equal(report.status, NB_FENCE_COMPLETE);
    assert_int_equal(look(fence, first, &report), NB_TIMEOUT);
    assert_int_equal(report.pending_count, 1);
    give_back(fence, late[2]);
    assert_int_equal(look(fence, first, &report), NB_OK);
    assert_int_equal(report.status, NB_FENCE_COMPLETE);
    fence_end(fence);
}

TEST(test_wait_with_no_critical_tasks_returns_immediately) {
    nb_fence *fence = fence_open();
    nb_fence_report report;
    nb_fence_frame frame = begin(fence);
    assert_int_equal(nb_fence_wait(fence, frame, NB_NEVER_NS, NULL, &report), NB_OK);
    assert_int_equal(report.status, NB_FENCE_COMPLETE);
    assert_int_equal(report.park_count + report.waited_ns, 0);
    assert_int_equal(nb_fence_stats_get(fence).park_count, 0);
    fence_end(fence);
}

typedef struct ticking {
    nb_clock_manual clock;
    uint64_t step_ns;
    uint32_t call_count;
} ticking;

// Has nothing to do, and lets time pass.
static bool tick_instead(void *user, nb_fence_frame frame) {
    (void)frame;
    ticking *t = user;
    ++t->call_count;
    nb_clock_manual_advance(&t->clock, t->step_ns);
    return false;
}

TEST(test_fence_timeout_does_not_deadlock) {
    ticking t = {.step_ns = 1000000};
    nb_clock_manual_init(&t.clock, 5000000);
    nb_fence_desc desc = desc_of_test();
    nb_labels *labels = NULL;
    nb_label mesh;
    assert_int_equal(nb_labels_create(NULL, &labels), NB_OK);
    assert_int_equal(nb_labels_intern(labels, "mesh", &mesh), NB_OK);
    desc.clock = nb_clock_manual_get(&t.clock);
    desc.labels = labels;
    nb_fence *fence = fence_of(&desc);
    nb_fence_frame frame = begin(fence);
    nb_fence_ticket named, plain = take(fence, frame);
    assert_int_equal(nb_fence_take(fence, frame, mesh, &named), NB_OK);
    nb_clock_manual_advance(&t.clock, 4000000);

    nb_fence_help help = {.run = tick_instead, .user = &t};
    nb_fence_report report;
    assert_int_equal(nb_fence_wait(fence, frame, NB_FENCE_DEADLINE_DEFAULT, &help, &report), NB_TIMEOUT);
    assert_int_equal(report.status, NB_FENCE_TIMEDOUT);
    assert_int_equal(report.waited_ns, NB_FENCE_TIMEOUT_NS_DEFAULT); // neither early nor late by a nanosecond
    assert_int_equal(t.call_count, 100);
    assert_int_equal(report.pending_count, 2);
    assert_int_equal(report.straggler_count, 2);
    assert_int_equal(report.stragglers[0].label.id, 0);
    assert_int_equal(report.stragglers[1].label.id, mesh.id);
    assert_int_equal(report.stragglers[1].age_ns, 104000000);
    assert_int_equal(report.stragglers[1].thread_id, nbi_thread_id());
    assert_int_equal(test_log_count(&fixture_log, NB_ITEM_FENCE_TIMEOUT), 1);
    assert_non_null(strstr(fixture_log.last_message, "frame 1: 2 pieces of work still pending after 100 ms"));
    assert_non_null(strstr(fixture_log.last_message, "mesh (104 ms, thread"));

    assert_true(nb_fence_is_degraded(fence, frame));
    nb_fence_frame next = begin(fence);
    assert_int_equal(nb_fence_wait(fence, next, NB_FENCE_DEADLINE_DEFAULT, &help, NULL), NB_OK);
    assert_false(nb_fence_is_degraded(fence, next));
    give_back(fence, plain);
    give_back(fence, named);
    nb_fence_stats stats = nb_fence_stats_get(fence);
    assert_int_equal(stats.degraded_count, 1);
    assert_int_equal(stats.late_count, 2);
    fence_end(fence);
    nb_labels_destroy(labels);
}

static nb_fence_frame frame_numbered(uint64_t number) { return (nb_fence_frame){number << 8 | 1}; }

TEST(test_task_result_staleness_detection) {
    assert_int_equal(nb_fence_frame_age(frame_numbered(10), frame_numbered(15)), 5);
    assert_true(nb_fence_frame_age(frame_numbered(10), frame_numbered(15)) > 3);
    assert_int_equal(nb_fence_frame_age(frame_numbered(15), frame_numbered(15)), 0);
    assert_int_equal(nb_fence_frame_age(frame_numbered(15), frame_numbered(10)), 0); // no wrap to a huge age
    assert_int_equal(nb_fence_frame_age((nb_fence_frame){0}, frame_numbered(1)), 1);
}

// --- tickets ---

TEST(ticket_counts_once_wherever_it_comes_from) {
    nb_fence *fence = fence_open(), *other = NULL;
    nb_fence_desc desc = {.ticket_count_max = 64, .hooks = test_hooks(&fixture_log, &fixture_heap)};
    other = fence_of(&desc);
    nb_fence_frame frame = begin(fence);
    begin(other);
    nb_fence_ticket ticket = take(fence, frame), kept = take(fence, frame), own = take(other, (nb_fence_frame){0}),
                    foreign = take(other, (nb_fence_frame){0});
    give_back(fence, ticket);
    const nb_fence_ticket bad[] = {ticket, {0}, foreign, {UINT64_MAX}, {ticket.value ^ (uint64_t)1 << 40}, {64}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; ++i) {
        assert_int_equal(nb_fence_return(fence, bad[i]), NB_ERR_STALE);
        nb_fence_stats stats = nb_fence_stats_get(fence);
        assert_int_equal(stats.refused_count, i + 1);
        assert_int_equal(stats.ticket_count, 1);
    }
    assert_int_equal(test_log_count(&fixture_log, NB_ITEM_FENCE_STALE), 6);
    nb_fence_ticket again = take(fence, frame); // uses the record of `ticket`
    assert_int_equal(nb_fence_return(fence, ticket), NB_ERR_STALE);
    give_back(fence, again);
    nb_fence_report report;
    assert_int_equal(look(fence, frame, &report), NB_TIMEOUT);
    assert_int_equal(report.pending_count, 1);
    give_back(fence, kept);
    assert_int_equal(look(fence, frame, &report), NB_OK);
    give_back(other, own);
    give_back(other, foreign);
    assert_int_equal(nb_fence_destroy(other), NB_OK);
    fence_end(fence);
}

TEST(work_takes_more_while_it_has_a_ticket) {
    nb_fence *fence = fence_open();
    nb_fence_frame frame = begin(fence);
    nb_fence_ticket parent = take(fence, (nb_fence_frame){0}), child, none;
    assert_int_equal(nb_fence_seal(fence), NB_OK);
    child = take(fence, frame);
    give_back(fence, parent);
    assert_int_equal(look(fence, frame, NULL), NB_TIMEOUT);
    give_back(fence, child);
    assert_int_equal(look(fence, frame, NULL), NB_OK);
    // Sealed, and all is back: final.
    assert_int_equal(nb_fence_take(fence, frame, NO_LABEL, &none), NB_CLOSED);
    assert_int_equal(nb_fence_take(fence, (nb_fence_frame){0}, NO_LABEL, &none), NB_CLOSED);
    fence_end(fence);
}

TEST(tickets_run_out_and_come_back) {
    nb_fence_desc desc = desc_of_test();
    desc.ticket_count_max = 3;
    nb_fence *fence = fence_of(&desc);
    nb_fence_frame frame = begin(fence);
    for (int round = 0; round < 3; ++round) {
        nb_fence_ticket tickets[3], none;
        for (int i = 0; i < 3; ++i) tickets[i] = take(fence, frame);
        for (int i = 0; i < 2; ++i) assert_int_equal(nb_fence_take(fence, frame, NO_LABEL, &none), NB_FULL);
        assert_int_equal(nb_fence_destroy(fence), NB_BUSY);
        for (int i = 0; i < 3; ++i) give_back(fence, tickets[(i + round) % 3]);
    }
    nb_fence_stats stats = nb_fence_stats_get(fence);
    assert_int_equal(stats.ticket_full_count, 6);
    assert_int_equal(stats.ticket_count_peak, 3);
    assert_int_equal(test_log_count(&fixture_log, NB_ITEM_FENCE_FULL), 1);
    assert_int_equal(test_log_count(&fixture_log, NB_ITEM_FENCE_BUSY), 3);
    fence_end(fence);
}

// What one frame's word can hold is refused beyond that, and neither its generation nor its flags are touched.
TEST(units_beyond_the_word_are_refused) {
    nb_fence *fence = fence_open();
    nb_fence_frame frame = begin(fence);
    nbi_tally *tally = NULL;
    const uint32_t room = NB_FENCE_TICKET_COUNT_MAX - 1; // beside the open unit
    assert_int_equal(nbi_fence_enter(fence, &frame, room + 1, &tally), NB_FULL);
    assert_int_equal(nbi_fence_enter(fence, &frame, UINT32_MAX, &tally), NB_FULL);
    assert_int_equal(nbi_fence_enter(fence, &frame, room, &tally), NB_OK);
    nb_fence_ticket none;
    assert_int_equal(nb_fence_take(fence, frame, NO_LABEL, &none), NB_FULL);
    assert_false(nbi_tally_add_held(tally, 1));
    nb_fence_report report;
    assert_int_equal(look(fence, frame, &report), NB_TIMEOUT);
    assert_int_equal(report.pending_count, room);
    assert_int_equal(nb_fence_destroy(fence), NB_BUSY);
    nbi_tally_sub(tally, room);
    assert_int_equal(look(fence, frame, &report), NB_OK);
    assert_int_equal(nb_fence_stats_get(fence).ticket_count, 0);
    fence_end(fence);
}

// --- frames and slots ---

// Frame numbers pass the end of what a slot's word holds, with a late frame on the other side.
TEST(frames_go_on_where_the_word_begins_again) {
    nb_fence_desc desc = desc_of_test();
    nb_fence *fence = NULL;
    nb_fence_report report;
    uint64_t number = NBI_TALLY_GENERATION_MASK - 2;
    assert_int_equal(nbi_fence_create_at(&desc, number, &fence), NB_OK);
    nb_fence_frame late = begin(fence), frame = late;
    assert_int_equal(nb_fence_frame_number(late), number);
    nb_fence_ticket ticket = take(fence, late), none;
    for (uint64_t i = 1; i < 30; ++i) {
        frame = begin(fence);
        assert_int_equal(nb_fence_frame_number(frame), number + i);
        nb_fence_ticket own = take(fence, frame);
        assert_int_equal(look(fence, frame, &report), NB_TIMEOUT);
        give_back(fence, own);
        assert_int_equal(look(fence, frame, &report), NB_OK);
        assert_int_equal(report.status, NB_FENCE_COMPLETE);
        assert_int_equal(look(fence, late, &report), NB_TIMEOUT);
        assert_int_equal(report.pending_count, 1);
    }
    give_back(fence, ticket);
    assert_int_equal(look(fence, late, &report), NB_OK);
    assert_int_equal(report.status, NB_FENCE_COMPLETE);
    nb_fence_frame future = {frame.value + ((uint64_t)1 << 8)};
    assert_int_equal(nb_fence_wait(fence, future, 0, NULL, NULL), NB_ERR_STALE);
    assert_int_equal(nb_fence_take(fence, future, NO_LABEL, &none), NB_ERR_STALE);
    fence_end(fence);
}

TEST(over_frame_is_complete_then_superseded) {
    nb_fence_desc desc = desc_of_test();
    desc.slot_count = 3;
    nb_fence *fence = fence_of(&desc);
    nb_fence_frame first = begin(fence);
    nb_fence_ticket none;
    for (int i = 0; i < 2; ++i) begin(fence);
    nb_fence_report report;
    assert_int_equal(look(fence, first, &report), NB_OK); // the slot used longest ago is used next
    assert_int_equal(report.status, NB_FENCE_COMPLETE);
    nb_fence_frame newest = begin(fence);
    nb_fence_ticket ticket = take(fence, newest);
    assert_int_equal(look(fence, first, &report), NB_OK);
    assert_int_equal(report.status, NB_FENCE_SUPERSEDED);
    assert_int_equal(report.pending_count, 0);
    assert_int_equal(nb_fence_wait(fence, first, NB_NEVER_NS, NULL, &report), NB_OK);
    assert_int_equal(nb_fence_take(fence, first, NO_LABEL, &none), NB_ERR_STALE);
    assert_int_equal(nb_fence_poke(fence, first), NB_ERR_STALE);
    assert_int_equal(nb_fence_stats_get(fence).slot_count, 3);
    give_back(fence, ticket);
    fence_end(fence);
}

TEST(late_frames_make_the_ring_grow_and_then_fill) {
    nb_fence_desc desc = desc_of_test();
    desc.slot_count = 2;
    desc.slot_count_max = 5;
    nb_fence *fence = fence_of(&desc);
    nb_fence_ticket late[5], none;
    for (int i = 0; i < 5; ++i) late[i] = take(fence, begin(fence));
    nb_fence_frame frame = {77};
    for (int i = 0; i < 2; ++i) {
        assert_int_equal(nb_fence_begin(fence, &frame), NB_FULL);
        assert_int_equal(frame.value, 77);
        assert_int_equal(nb_fence_current(fence).value, 0);
        assert_int_equal(nb_fence_take(fence, (nb_fence_frame){0}, NO_LABEL, &none), NB_FULL);
    }
    assert_int_equal(test_log_count(&fixture_log, NB_ITEM_FENCE_FULL), 1); // the first in a row
    nb_fence_stats stats = nb_fence_stats_get(fence);
    assert_int_equal(stats.full_count, 2);
    assert_int_equal(stats.slot_count, 5);
    assert_int_equal(stats.pending_slots, 5);
    give_back(fence, late[2]);
    frame = begin(fence);
    assert_int_equal(nb_fence_frame_number(frame), 8); // numbers went on meanwhile
    for (int i = 0; i < 5; ++i) {
        if (i != 2) give_back(fence, late[i]);
    }
    assert_int_equal(look(fence, frame, NULL), NB_OK);
    fence_end(fence);
}

typedef struct late_return {
    nb_fence *fence;
    nb_fence_ticket ticket;
    nb_fence_frame frame;
} late_return;

static void return_late(void *user, uint32_t index) {
    (void)index;
    late_return *late = user;
    // Until somebody is about to sleep for the frame, or much too long.
    const nbi_tally *tally = nbi_fence_tally(late->fence, late->frame);
    uint64_t end_ns = nbi_clock_now_ns() + 2000000000u;
    while ((nbi_atomic_load_acquire_u64(&tally->word) & NBI_TALLY_MARK) == 0 && nbi_clock_now_ns() < end_ns) {
        nbi_thread_yield();
    }
    nb_fence_return(late->fence, late->ticket);
}

TEST(begin_waits_for_a_slot_if_asked_to) {
    nb_fence_desc desc = desc_of_test();
    desc.slot_count = desc.slot_count_max = 2;
    desc.policy = NB_FENCE_POLICY_WAIT;
    desc.timeout_ns = 10000000000u;
    nb_fence *fence = fence_of(&desc);
    late_return late = {.fence = fence, .frame = begin(fence)};
    late.ticket = take(fence, late.frame);
    nb_fence_ticket second = take(fence, begin(fence));
    test_thread thread;
    test_threads_start(&thread, 1, return_late, &late);
    uint64_t start_ns = nbi_clock_now_ns();
    nb_fence_frame frame = begin(fence);
    assert_true(nbi_clock_now_ns() - start_ns < 1000000000u); // it was woken: the deadline is far
    assert_int_equal(nb_fence_frame_number(frame), 3);
    test_threads_join(&thread, 1);
    give_back(fence, second);
    assert_int_equal(look(fence, frame, NULL), NB_OK);
    fence_end(fence);
}

typedef struct late_clock {
    late_return late;
    uint32_t call_count; // since it was armed; 0 = it is not
} late_clock;

// Whoever waits asks for the time: then the work comes back.
static uint64_t return_when_asked(void *user) {
    late_clock *c = user;
    if (c->call_count != 0 && c->call_count++ == 3) nb_fence_return(c->late.fence, c->late.ticket);
    return c->call_count;
}

TEST(begin_waits_until_the_slot_is_back_and_no_longer) {
    late_clock c = {.call_count = 0};
    nb_fence_desc desc = desc_of_test();
    desc.slot_count = desc.slot_count_max = 2;
    desc.policy = NB_FENCE_POLICY_WAIT;
    desc.clock = (nb_clock){.now_ns = return_when_asked, .user = &c};
    desc.timeout_ns = 100;
    nb_fence *fence = fence_of(&desc);
    nb_fence_ticket first = take(fence, begin(fence)), second = take(fence, begin(fence));
    c = (late_clock){.late = {.fence = fence, .ticket = first}, .call_count = 1};
    nb_fence_frame frame = begin(fence);
    assert_in_range(c.call_count, 4, 6);
    assert_int_equal(nb_fence_frame_number(frame), 3);
    // Nothing comes back: it gives up at the deadline.
    nb_fence_ticket third = take(fence, frame);
    assert_int_equal(nb_fence_begin(fence, &frame), NB_FULL);
    assert_in_range(c.call_count, 100, 110);
    give_back(fence, second);
    give_back(fence, third);
    fence_end(fence);
}

TEST(coordinator_is_one_thread_until_disowned) {
    nb_fence *fence = fence_open();
    assert_int_equal(nb_fence_seal(fence), NB_ERR_MISUSE); // no frame yet
    begin(fence);
    assert_int_equal(nb_fence_seal(fence), NB_OK);
    assert_int_equal(nb_fence_seal(fence), NB_ERR_MISUSE);
    assert_int_equal(nb_fence_disown(fence), NB_OK);
    assert_int_equal(nb_fence_seal(fence), NB_ERR_THREAD);
    begin(fence);
    assert_int_equal(nb_fence_seal(fence), NB_OK);
    fence_end(fence);
}

TEST(closing_ends_frames_tickets_and_waits) {
    nb_fence *fence = fence_open();
    nb_fence_frame done = begin(fence), frame = begin(fence), none_frame = {77};
    nb_fence_ticket ticket = take(fence, frame), none;
    assert_int_equal(nb_fence_close(fence), NB_OK);
    assert_int_equal(nb_fence_begin(fence, &none_frame), NB_CLOSED);
    assert_int_equal(nb_fence_take(fence, frame, NO_LABEL, &none), NB_CLOSED);
    assert_int_equal(nb_fence_take(fence, (nb_fence_frame){0}, NO_LABEL, &none), NB_CLOSED);
    nb_fence_report report;
    assert_int_equal(nb_fence_wait(fence, frame, NB_NEVER_NS, NULL, &report), NB_CLOSED);
    assert_int_equal(report.status, NB_FENCE_CLOSED);
    assert_int_equal(report.pending_count, 1);
    assert_int_equal(nb_fence_wait(fence, done, NB_NEVER_NS, NULL, NULL), NB_OK);
    assert_int_equal(nb_fence_destroy(fence), NB_BUSY);
    give_back(fence, ticket);
    assert_int_equal(nb_fence_wait(fence, frame, NB_NEVER_NS, NULL, &report), NB_OK);
    fence_end(fence);
}

// --- help ---

typedef struct helper {
    nb_fence *fence;
    nb_fence_ticket tickets[4];
    uint32_t ticket_count;
    nb_clock_manual clock;
    uint64_t cost_ns;
} helper;

static bool help_return(void *user, nb_fence_frame frame) {
    (void)frame;
    helper *h = user;
    if (h->ticket_count == 0) return false;
    nb_clock_manual_advance(&h->clock, h->cost_ns);
    nb_fence_return(h->fence, h->tickets[--h->ticket_count]);
    return true;
}

static uint32_t help_list(void *user, nb_fence_frame frame, nb_fence_straggler *stragglers, uint32_t count_max) {
    (void)user;
    (void)frame;
    if (count_max == 0) return 0;
    stragglers[0] = (nb_fence_straggler){.label = {9}};
    return UINT32_MAX; // more than there is room for
}

static helper *helper_open(helper *h, uint64_t cost_ns) {
    nb_clock_manual_init(&h->clock, 0);
    nb_fence_desc desc = desc_of_test();
    desc.clock = nb_clock_manual_get(&h->clock);
    h->fence = fence_of(&desc);
    h->cost_ns = cost_ns;
    nb_fence_frame frame = begin(h->fence);
    for (h->ticket_count = 0; h->ticket_count < 4; ++h->ticket_count) {
        h->tickets[h->ticket_count] = take(h->fence, frame);
    }
    return h;
}

TEST(waiting_thread_does_the_work_itself) {
    helper h;
    helper_open(&h, 1000);
    nb_fence_help help = {.run = help_return, .user = &h};
    nb_fence_report report;
    assert_int_equal(nb_fence_wait(h.fence, nb_fence_current(h.fence), NB_NEVER_NS, &help, &report), NB_OK);
    assert_int_equal(report.help_count, 4);
    assert_int_equal(report.park_count, 0);
    assert_int_equal(report.waited_ns, 4000);
    assert_int_equal(report.overrun_ns, 0);
    fence_end(h.fence);
}

// The deadline stops the help between two pieces of work, not within one.
TEST(helped_work_overruns_the_deadline_and_is_counted) {
    helper h;
    helper_open(&h, 60);
    nb_fence_help help = {.run = help_return, .list = help_list, .user = &h};
    nb_fence_report report;
    assert_int_equal(nb_fence_wait(h.fence, nb_fence_current(h.fence), 100, &help, &report), NB_TIMEOUT);
    assert_int_equal(report.help_count, 2);
    assert_int_equal(report.overrun_ns, 20);
    assert_int_equal(report.pending_count, 2);
    assert_int_equal(report.straggler_count, NB_FENCE_STRAGGLER_COUNT_MAX);
    assert_int_equal(report.stragglers[2].label.id, 9); // after the fence's own two
    assert_int_equal(nb_fence_stats_get(h.fence).overrun_count, 1);
    while (help_return(&h, nb_fence_current(h.fence))) {
    }
    fence_end(h.fence);
}

// A poll neither helps, nor makes the frame degraded, nor is it reported.
TEST(poll_only_looks) {
    helper h;
    helper_open(&h, 60);
    nb_fence_frame frame = nb_fence_current(h.fence);
    nb_fence_help help = {.run = help_return, .user = &h};
    nb_fence_report report;
    assert_int_equal(nb_fence_wait(h.fence, frame, 0, &help, &report), NB_TIMEOUT);
    assert_int_equal(report.status, NB_FENCE_TIMEDOUT);
    assert_int_equal(report.pending_count, 4);
    assert_int_equal(report.straggler_count, 0);
    assert_false(nb_fence_is_degraded(h.fence, frame));
    assert_int_equal(test_log_count(&fixture_log, NB_ITEM_FENCE_TIMEOUT), 0);
    assert_int_equal(nb_fence_wait(h.fence, frame, NB_NEVER_NS, &help, NULL), NB_OK);
    fence_end(h.fence);
}

// --- frame memory ---

TEST(late_frame_keeps_its_arena_frame) {
    nb_thread_arenas *arenas = NULL;
    nb_thread_arena *mine = NULL;
    nb_thread_arenas_desc arenas_desc = {.capacity_bytes = 65536, .slot_count = 2};
    assert_int_equal(nb_thread_arenas_create(&arenas_desc, &arenas), NB_OK);
    assert_int_equal(nb_thread_arena_attach(arenas, &mine), NB_OK);
    nb_fence_desc desc = desc_of_test();
    desc.slot_count = 2;
    desc.arenas = arenas;
    nb_fence *fence = fence_of(&desc);
    nb_fence_frame late = begin(fence);
    nb_fence_ticket ticket = take(fence, late);
    nb_arena_frame arena_frame = nb_fence_arena_frame(fence, late);
    assert_int_equal(arena_frame.value, nb_thread_arenas_frame(arenas).value);
    int *block = nb_arena_alloc(nb_thread_arena_at(mine, arena_frame), sizeof *block, sizeof *block);
    *block = 42;
    for (int i = 0; i < 20; ++i) {
        begin(fence);
        int *scratch = nb_thread_arena_alloc(mine, sizeof *scratch, sizeof *scratch);
        assert_ptr_not_equal(scratch, block);
        *scratch = i;
    }
    assert_int_equal(*block, 42);
    assert_int_equal(nb_fence_arena_frame(fence, late).value, arena_frame.value);
    give_back(fence, ticket);
    begin(fence); // gives the memory back
    assert_int_equal(nb_thread_arenas_stats_get(arenas).pin_count, 1);
    fence_end(fence);
    assert_int_equal(nb_thread_arenas_stats_get(arenas).pin_count, 0);
    assert_int_equal(nb_thread_arena_detach(mine), NB_OK);
    assert_int_equal(nb_thread_arenas_destroy(arenas), NB_OK);
}

// Also where the arenas cannot advance, and where the ring is full.
TEST(full_arenas_and_full_ring_leave_no_pin_behind) {
    nb_thread_arenas *arenas = NULL;
    static test_log quiet;
    nb_thread_arenas_desc arenas_desc = {
        .capacity_bytes = 4096, .slot_count = 2, .slot_count_max = 3, .hooks = test_hooks(&quiet, NULL)};
    assert_int_equal(nb_thread_arenas_create(&arenas_desc, &arenas), NB_OK);
    nb_fence_desc desc = desc_of_test();
    desc.slot_count = desc.slot_count_max = 4;
    desc.arenas = arenas;
    nb_fence *fence = fence_of(&desc);
    nb_fence_ticket tickets[4];
    nb_fence_frame frame;
    for (int i = 0; i < 4; ++i) {
        frame = begin(fence);
        tickets[i] = take(fence, frame);
        assert_true(nb_fence_arena_frame(fence, frame).value != 0);
    }
    assert_int_equal(nb_fence_begin(fence, &frame), NB_FULL);
    assert_int_equal(nb_thread_arenas_stats_get(arenas).pin_count, 4);
    for (int i = 0; i < 4; ++i) give_back(fence, tickets[i]);
    begin(fence);
    assert_int_equal(nb_thread_arenas_stats_get(arenas).pin_count, 1);
    assert_int_equal(nb_fence_close(fence), NB_OK);
    fence_end(fence);
    assert_int_equal(nb_thread_arenas_destroy(arenas), NB_OK);
}

// --- quarantine ---

typedef struct court {
    nb_fence *fence;
    ticking t;
} court;

static void court_open(court *c) {
    c->t = (ticking){.step_ns = NB_FENCE_TIMEOUT_NS_DEFAULT};
    nb_clock_manual_init(&c->t.clock, 0);
    nb_fence_desc desc = desc_of_test();
    desc.clock = nb_clock_manual_get(&c->t.clock);
    desc.strike_count_max = NB_FENCE_STRIKE_COUNT_DEFAULT;
    c->fence = fence_of(&desc);
}

typedef enum lateness { IN_TIME, LATE, LATE_WAITED_FOR_AGAIN } lateness;

// One frame with work of one label.
static nb_result court_frame(court *c, uint32_t label, lateness late) {
    nb_fence_ticket ticket;
    nb_fence_help help = {.run = tick_instead, .user = &c->t};
    nb_fence_frame frame = begin(c->fence);
    assert_int_equal(nb_fence_take(c->fence, frame, (nb_label){label}, &ticket), NB_OK);
    if (late == IN_TIME) give_back(c->fence, ticket);
    nb_result result = nb_fence_wait(c->fence, frame, NB_FENCE_DEADLINE_DEFAULT, &help, NULL);
    if (late == LATE_WAITED_FOR_AGAIN) nb_fence_wait(c->fence, frame, NB_FENCE_DEADLINE_DEFAULT, &help, NULL);
    if (late != IN_TIME) give_back(c->fence, ticket);
    if (late == LATE_WAITED_FOR_AGAIN) assert_int_equal(nb_fence_wait(c->fence, frame, 0, NULL, NULL), NB_OK);
    return result;
}

TEST(label_late_three_times_in_a_row_no_longer_counts) {
    court c;
    court_open(&c);
    for (int i = 0; i < 2; ++i) assert_int_equal(court_frame(&c, 5, LATE), NB_TIMEOUT);
    assert_int_equal(court_frame(&c, 5, IN_TIME), NB_OK); // in time once: it starts anew
    for (int i = 0; i < 2; ++i) assert_int_equal(court_frame(&c, 5, LATE), NB_TIMEOUT);
    assert_int_equal(court_frame(&c, 6, LATE), NB_TIMEOUT); // in time: another one was late in that frame
    for (int i = 0; i < 3; ++i) {
        assert_false(nb_fence_is_quarantined(c.fence, (nb_label){5}));
        // A second wait for the frame is neither a second strike nor, when it completes, a pardon.
        assert_int_equal(court_frame(&c, 5, LATE_WAITED_FOR_AGAIN), NB_TIMEOUT);
    }
    assert_true(nb_fence_is_quarantined(c.fence, (nb_label){5}));
    assert_false(nb_fence_is_quarantined(c.fence, (nb_label){6}));
    assert_int_equal(test_log_count(&fixture_log, NB_ITEM_FENCE_QUARANTINED), 1);
    for (int i = 0; i < 3; ++i) assert_int_equal(court_frame(&c, 5, LATE), NB_OK); // nobody waits for it
    assert_int_equal(court_frame(&c, 6, LATE), NB_TIMEOUT);
    assert_int_equal(nb_fence_stats_get(c.fence).quarantine_count, 1);

    assert_int_equal(nb_fence_forgive(c.fence, false), NB_OK);
    assert_true(nb_fence_is_quarantined(c.fence, (nb_label){5}));
    assert_int_equal(nb_fence_forgive(c.fence, true), NB_OK);
    assert_false(nb_fence_is_quarantined(c.fence, (nb_label){5}));
    assert_int_equal(court_frame(&c, 5, LATE), NB_TIMEOUT);
    assert_int_equal(nb_fence_stats_get(c.fence).quarantine_count, 0);
    fence_end(c.fence);
}

TEST(quarantined_ticket_still_holds_the_fence) {
    court c;
    court_open(&c);
    for (int i = 0; i < 3; ++i) assert_int_equal(court_frame(&c, 5, LATE), NB_TIMEOUT);
    nb_fence_frame frame = begin(c.fence);
    nb_fence_ticket ticket, none;
    assert_int_equal(nb_fence_take(c.fence, frame, (nb_label){5}, &ticket), NB_OK);
    assert_int_equal(nb_fence_wait(c.fence, frame, NB_NEVER_NS, NULL, NULL), NB_OK);
    assert_int_equal(nb_fence_take(c.fence, frame, (nb_label){5}, &none), NB_CLOSED);
    assert_int_equal(nb_fence_take(c.fence, frame_numbered(99), (nb_label){5}, &none), NB_ERR_STALE);
    assert_int_equal(nb_fence_destroy(c.fence), NB_BUSY);
    give_back(c.fence, ticket);
    assert_int_equal(nb_fence_return(c.fence, ticket), NB_ERR_STALE);
    fence_end(c.fence);
}

// More late labels than the table has room for: the rest is never struck, and nothing breaks.
TEST(more_late_labels_than_the_table_holds) {
    court c;
    court_open(&c);
    nb_fence_help help = {.run = tick_instead, .user = &c.t};
    for (uint32_t first = 1; first <= 96; first += NB_FENCE_STRAGGLER_COUNT_MAX) {
        for (int strike = 0; strike < 3; ++strike) {
            nb_fence_ticket tickets[NB_FENCE_STRAGGLER_COUNT_MAX];
            nb_fence_frame frame = begin(c.fence);
            for (uint32_t i = 0; i < NB_FENCE_STRAGGLER_COUNT_MAX; ++i) {
                assert_int_equal(nb_fence_take(c.fence, frame, (nb_label){first + i}, &tickets[i]), NB_OK);
            }
            nb_fence_wait(c.fence, frame, NB_FENCE_DEADLINE_DEFAULT, &help, NULL);
            for (uint32_t i = 0; i < NB_FENCE_STRAGGLER_COUNT_MAX; ++i) give_back(c.fence, tickets[i]);
        }
    }
    assert_int_equal(nb_fence_stats_get(c.fence).quarantine_count, 64);
    assert_true(nb_fence_is_quarantined(c.fence, (nb_label){64}));
    assert_false(nb_fence_is_quarantined(c.fence, (nb_label){65}));
    fence_end(c.fence);
}

// --- memory ---

TEST(creation_survives_every_failed_allocation) {
    nb_fence_desc desc = desc_of_test();
    nb_fence *fence = NULL;
    for (fixture_heap.fail_at = 1;; ++fixture_heap.fail_at) {
        nbi_atomic_store_relaxed_u64(&fixture_heap.call_count, 0);
        nb_result result = nb_fence_create(&desc, &fence);
        if (result == NB_OK) break;
        assert_int_equal(result, NB_ERR_MEMORY);
        assert_null(fence);
        assert_int_equal(fixture_heap.live_count.value, 0);
    }
    assert_int_equal(fixture_heap.fail_at, 2); // one allocation
    fixture_heap.fail_from = 1;
    for (int i = 0; i < 100; ++i) give_back(fence, take(fence, begin(fence))); // and none in use
    fixture_heap.fail_from = 0;
    fence_end(fence);
}

TEST(desc_default_spells_out_the_zeros) {
    nb_fence_desc desc = nb_fence_desc_default();
    assert_int_equal(desc.slot_count, 8);
    assert_int_equal(desc.slot_count_max, 64);
    assert_int_equal(desc.ticket_count_max, 4096);
    assert_int_equal(desc.timeout_ns, 100000000);
    assert_int_equal(desc.strike_count_max, 0);
    nb_fence *fence = NULL;
    assert_int_equal(nb_fence_create(NULL, &fence), NB_OK);
    assert_int_equal(nb_fence_stats_get(fence).slot_count, 8);
    assert_int_equal(nb_fence_destroy(fence), NB_OK);
    assert_int_equal(nb_fence_destroy(NULL), NB_OK);
}
