// SPDX-License-Identifier: MIT
// Timelines: values that only grow, waits for them, and objects destroyed when they are reached.

#include "support/support.h"

#include "nebula/clock.h"
#include "nebula/timeline.h"

#define ORDER_MAX 64

// Writes down which objects were destroyed, in order.
typedef struct diary {
    uintptr_t order[ORDER_MAX];
    uint32_t count;
    nb_timelines *set;
    nb_timeline *timeline; // where a callback retires more
    uint32_t more_count;   // that many
    nb_result inner;       // what a call inside a callback gave
} diary;

static void note(void *object, void *user) {
    diary *d = user;
    if (d->count < ORDER_MAX) d->order[d->count] = (uintptr_t)object;
    ++d->count;
}

static void *object(uintptr_t number) { return (void *)number; }

typedef struct fixture {
    test_log log;
    test_heap heap;
    nb_timelines *set;
    nb_timeline *cpu, *gpu;
    diary diary;
} fixture;

static void begin(fixture *f, uint32_t retire_count_max) {
    memset(f, 0, sizeof *f);
    nb_timelines_desc desc = {.retire_count_max = retire_count_max, .hooks = test_hooks(&f->log, &f->heap)};
    assert_int_equal(nb_timelines_create(&desc, &f->set), NB_OK);
    assert_int_equal(nb_timelines_open(f->set, "cpu", &f->cpu), NB_OK);
    assert_int_equal(nb_timelines_open(f->set, "gpu", &f->gpu), NB_OK);
    f->diary.set = f->set;
    f->diary.timeline = f->cpu;
}

static void end(fixture *f) {
    assert_int_equal(nb_timelines_destroy(f->set), NB_OK);
    assert_int_equal(f->heap.live_count.value, 0);
}

static void retire(fixture *f, nb_timeline *timeline, uint64_t value, uintptr_t number) {
    assert_int_equal(nb_timeline_retire(timeline, value, object(number), note, &f->diary), NB_OK);
}

static uint32_t reclaim(fixture *f, uint32_t count_max) {
    uint32_t count = 0xBAD;
    assert_int_equal(nb_timelines_reclaim(f->set, count_max, &count), NB_OK);
    return count;
}

static void assert_order(const fixture *f, const char *wanted) {
    char order[ORDER_MAX + 1] = {0};
    for (uint32_t i = 0; i < f->diary.count && i < ORDER_MAX; ++i) order[i] = (char)('0' + f->diary.order[i]);
    assert_string_equal(order, wanted);
}

// --- values ---

TEST(value_grows_and_never_falls) {
    fixture f;
    begin(&f, 0);
    assert_int_equal(nb_timeline_value(f.gpu), 0);
    assert_string_equal(nb_timeline_name(f.gpu), "gpu");
    assert_int_equal(nb_timeline_signal(f.gpu, 5), NB_OK);
    assert_int_equal(nb_timeline_signal(f.gpu, 5), NB_OK);
    assert_int_equal(nb_timeline_signal(f.gpu, 4), NB_ERR_RANGE);
    assert_int_equal(nb_timeline_value(f.gpu), 5);
    assert_int_equal(test_log_count(&f.log, NB_ITEM_TIMELINE_BACKWARDS), 1);
    assert_non_null(strstr(f.log.last_message, "gpu: 4 after 5"));
    assert_int_equal(nb_timelines_stats_get(f.set).backwards_count, 1);
    assert_int_equal(nb_timeline_value(f.cpu), 0);
    assert_int_equal(nb_timeline_signal(f.gpu, NB_TIMELINE_VALUE_MAX), NB_OK);
    end(&f);
}

TEST(value_of_a_lost_device_is_refused) {
    fixture f;
    begin(&f, 0);
    retire(&f, f.gpu, 1000, 1);
    assert_int_equal(nb_timeline_signal(f.gpu, UINT64_MAX), NB_ERR_RANGE);
    assert_int_equal(nb_timeline_value(f.gpu), 0);
    assert_int_equal(reclaim(&f, 0), 0);
    assert_int_equal(nb_timeline_signal(f.gpu, 1000), NB_OK);
    assert_int_equal(reclaim(&f, 0), 1);
    end(&f);
}

TEST(set_holds_as_many_timelines_as_asked_for) {
    nb_timelines *set = NULL;
    nb_timeline *timeline = NULL;
    nb_timelines_desc desc = {.timeline_count_max = 2};
    assert_int_equal(nb_timelines_create(&desc, &set), NB_OK);
    assert_int_equal(nb_timelines_open(set, NULL, &timeline), NB_OK);
    assert_string_equal(nb_timeline_name(timeline), "timeline");
    assert_int_equal(nb_timelines_open(set, "a name of more than thirty-one bytes", &timeline), NB_OK);
    assert_int_equal(strlen(nb_timeline_name(timeline)), NB_TIMELINE_NAME_SIZE_MAX);
    nb_timeline *third = NULL;
    assert_int_equal(nb_timelines_open(set, "third", &third), NB_FULL);
    assert_null(third);
    assert_int_equal(nb_timelines_stats_get(set).timeline_count, 2);
    nb_timelines_destroy(set);
}

// --- objects ---

TEST(objects_end_in_the_order_of_retirement) {
    fixture f;
    begin(&f, 0);
    retire(&f, f.gpu, 2, 1);
    retire(&f, f.cpu, 1, 2);
    retire(&f, f.gpu, 1, 3);
    retire(&f, f.cpu, 2, 4);
    retire(&f, f.gpu, 1, 5);
    assert_int_equal(reclaim(&f, 0), 0);
    nb_timeline_signal(f.gpu, 1);
    nb_timeline_signal(f.cpu, 2);
    assert_int_equal(reclaim(&f, 0), 4);
    assert_order(&f, "2345");
    retire(&f, f.cpu, 1, 6);
    nb_timeline_signal(f.gpu, 2);
    assert_int_equal(reclaim(&f, 0), 2);
    assert_order(&f, "234516");
    assert_int_equal(nb_timelines_stats_get(f.set).pending_count, 0);
    end(&f);
}

TEST(value_reached_already_still_waits_for_a_reclaim) {
    fixture f;
    begin(&f, 0);
    nb_timeline_signal(f.cpu, 9);
    retire(&f, f.cpu, 3, 1);
    retire(&f, f.cpu, 0, 2);
    assert_int_equal(f.diary.count, 0);
    assert_int_equal(reclaim(&f, 0), 2);
    end(&f);
}

TEST(reclaim_is_bounded_and_goes_on_next_time) {
    fixture f;
    begin(&f, 0);
    for (uintptr_t i = 1; i <= 8; ++i) retire(&f, i % 4 == 0 ? f.gpu : f.cpu, 1, i);
    nb_timeline_signal(f.cpu, 1);
    assert_int_equal(reclaim(&f, 2), 2);
    assert_order(&f, "12");
    assert_int_equal(reclaim(&f, 2), 2);
    assert_order(&f, "1235");
    nb_timeline_signal(f.gpu, 1);
    assert_int_equal(reclaim(&f, 3), 3);
    assert_order(&f, "1235467");
    assert_int_equal(reclaim(&f, 3), 1);
    assert_order(&f, "12354678");
    end(&f);
}

TEST(full_set_refuses_and_loses_nothing) {
    fixture f;
    begin(&f, 3);
    for (uintptr_t i = 1; i <= 3; ++i) retire(&f, f.gpu, i, i);
    for (int i = 0; i < 2; ++i) {
        assert_int_equal(nb_timeline_retire(f.gpu, 1, object(9), note, &f.diary), NB_FULL);
    }
    assert_int_equal(test_log_count(&f.log, NB_ITEM_TIMELINE_FULL), 1);
    nb_timelines_stats stats = nb_timelines_stats_get(f.set);
    assert_int_equal(stats.full_count, 2);
    assert_int_equal(stats.pending_count, 3);
    // Looking without destroying makes no room.
    assert_int_equal(reclaim(&f, 0), 0);
    assert_int_equal(nb_timeline_retire(f.gpu, 1, object(9), note, &f.diary), NB_FULL);
    nb_timeline_signal(f.gpu, 1);
    assert_int_equal(reclaim(&f, 0), 1);
    retire(&f, f.gpu, 2, 4);
    nb_timeline_signal(f.gpu, 3);
    assert_int_equal(reclaim(&f, 0), 3);
    assert_order(&f, "1234");
    stats = nb_timelines_stats_get(f.set);
    assert_int_equal(stats.retire_count, 4);
    assert_int_equal(stats.reclaim_count, 4);
    assert_int_equal(stats.pending_peak, 3);
    end(&f);
}

static void retire_more(void *number, void *user) {
    diary *d = user;
    note(number, d);
    for (; d->more_count > 0; --d->more_count) {
        d->inner = nb_timeline_retire(d->timeline, 0, object(7), note, d);
    }
}

TEST(callback_may_retire_more) {
    fixture f;
    begin(&f, 2);
    f.diary.more_count = 1;
    assert_int_equal(nb_timeline_retire(f.cpu, 0, object(1), retire_more, &f.diary), NB_OK);
    assert_int_equal(reclaim(&f, 0), 1);
    assert_int_equal(f.diary.inner, NB_OK);
    assert_order(&f, "1");
    assert_int_equal(reclaim(&f, 0), 1);
    assert_order(&f, "17");
    // Its own place is free only after it returns.
    f.diary.more_count = 2;
    assert_int_equal(nb_timeline_retire(f.cpu, 0, object(2), retire_more, &f.diary), NB_OK);
    assert_int_equal(reclaim(&f, 0), 1);
    assert_int_equal(f.diary.inner, NB_FULL);
    end(&f);
    assert_order(&f, "1727");
}

static void reclaim_again(void *number, void *user) {
    diary *d = user;
    note(number, d);
    d->inner = nb_timelines_reclaim(d->set, 0, NULL);
    if (d->inner == NB_BUSY) d->inner = nb_timelines_destroy(d->set);
}

TEST(callback_may_not_reclaim_or_destroy) {
    fixture f;
    begin(&f, 0);
    assert_int_equal(nb_timeline_retire(f.cpu, 0, object(1), reclaim_again, &f.diary), NB_OK);
    retire(&f, f.cpu, 0, 2);
    assert_int_equal(reclaim(&f, 0), 2);
    assert_int_equal(f.diary.inner, NB_BUSY);
    assert_order(&f, "12");
    end(&f);
}

TEST(destroy_ends_what_was_never_reached_and_says_so) {
    fixture f;
    begin(&f, 0);
    retire(&f, f.cpu, 1, 1);
    retire(&f, f.gpu, 12, 2);
    assert_int_equal(reclaim(&f, 0), 0);
    retire(&f, f.gpu, 11, 3);
    nb_timeline_signal(f.cpu, 1);
    nb_timeline_signal(f.gpu, 10);
    end(&f);
    assert_order(&f, "123");
    assert_int_equal(test_log_count(&f.log, NB_ITEM_TIMELINE_UNREACHED), 1);
    assert_non_null(strstr(f.log.last_message, "2 objects"));
    assert_non_null(strstr(f.log.last_message, "12 of gpu, which stands at 10"));
    begin(&f, 0);
    retire(&f, f.cpu, 0, 1);
    end(&f);
    assert_order(&f, "1");
    assert_int_equal(test_log_count(&f.log, NB_ITEM_TIMELINE_UNREACHED), 0);
}

// A device that hangs for ten thousand frames and then comes back: nothing early, memory bounded, all within one frame.
TEST(stuck_timeline_holds_up_nothing_else) {
    fixture f;
    begin(&f, 64);
    uint64_t heap_calls = f.heap.call_count.value;
    for (uintptr_t i = 1; i <= 32; ++i) retire(&f, f.gpu, 100 + i, i);
    uint32_t cpu_count = 0;
    for (uint64_t frame = 1; frame <= 10000; ++frame) {
        retire(&f, f.cpu, frame + 2, 0);
        nb_timeline_signal(f.cpu, frame);
        if (frame % 100 == 0) assert_int_equal(nb_timeline_signal(f.gpu, 99), NB_OK);
        cpu_count += reclaim(&f, 0);
        assert_in_range(nb_timelines_stats_get(f.set).pending_count, 32, 35);
    }
    assert_int_equal(cpu_count, 9998);
    nb_timeline_signal(f.gpu, 5000);
    nb_timeline_signal(f.cpu, 10002);
    assert_int_equal(reclaim(&f, 0), 34);
    assert_int_equal(f.heap.call_count.value, heap_calls);
    end(&f);
}

// Against a list that is searched in full: random values, bounds and signals.
TEST(random_retirements_match_a_plain_list) {
    uint64_t seed = test_seed("random_retirements_match_a_plain_list");
    uint64_t rounds = test_size(20000, 200000, 2000000);
    fixture f;
    begin(&f, 16);
    struct {
        int timeline;
        uint64_t value;
        uintptr_t number;
    } model[16];
    uint32_t model_count = 0;
    uint64_t values[2] = {0, 0};
    for (uint64_t round = 0; round < rounds; ++round) {
        uint64_t dice = test_random(&seed);
        int which = (int)(dice >> 8 & 1);
        nb_timeline *timeline = which ? f.gpu : f.cpu;
        if (dice % 4 < 2) {
            uint64_t value = values[which] + (dice >> 16) % 4;
            nb_result result = nb_timeline_retire(timeline, value, object(round % 50), note, &f.diary);
            assert_int_equal(result, model_count < 16 ? NB_OK : NB_FULL);
            if (result != NB_OK) continue;
            model[model_count].timeline = which;
            model[model_count].value = value;
            model[model_count++].number = round % 50;
        } else if (dice % 4 == 2) {
            values[which] += (dice >> 16) % 3;
            assert_int_equal(nb_timeline_signal(timeline, values[which]), NB_OK);
        } else {
            uint32_t count_max = (uint32_t)(dice >> 16) % 5, left = count_max != 0 ? count_max : 16, kept = 0;
            f.diary.count = 0;
            uint32_t count = reclaim(&f, count_max), done = 0;
            for (uint32_t i = 0; i < model_count; ++i) {
                if (model[i].value <= values[model[i].timeline] && done < left) {
                    assert_int_equal(f.diary.order[done++], model[i].number);
                } else {
                    model[kept++] = model[i];
                }
            }
            model_count = kept;
            assert_int_equal(count, done);
            assert_int_equal(f.diary.count, done);
        }
    }
    end(&f);
}

// --- memory ---

TEST(creation_survives_every_failed_allocation) {
    for (int is_lasting = 0; is_lasting <= 1; ++is_lasting) {
        uint64_t n = 1;
        for (;; ++n) {
            test_heap heap = test_heap_failing(n, is_lasting);
            static test_log log;
            nb_timelines_desc desc = {.hooks = test_hooks(&log, &heap)};
            nb_timelines *set = object(0x5A5A);
            nb_result result = nb_timelines_create(&desc, &set);
            if (result == NB_OK) {
                nb_timelines_destroy(set);
                assert_int_equal(heap.live_count.value, 0);
                break;
            }
            assert_int_equal(result, NB_ERR_MEMORY);
            assert_ptr_equal(set, object(0x5A5A));
            assert_int_equal(heap.live_count.value, 0);
        }
        assert_int_equal(n, 3);
    }
}

// --- threads ---

TEST(wait_ends_at_its_deadline_and_not_before) {
    fixture f;
    begin(&f, 0);
    assert_int_equal(nb_timeline_wait(f.gpu, 1, 0), NB_TIMEOUT);
    uint64_t deadline_ns = nb_clock_now_ns(NULL) + 2000000;
    assert_int_equal(nb_timeline_wait(f.gpu, 1, deadline_ns), NB_TIMEOUT);
    assert_true(nb_clock_now_ns(NULL) >= deadline_ns);
    nb_timeline_signal(f.gpu, 2);
    assert_int_equal(nb_timeline_wait(f.gpu, 1, 0), NB_OK);
    assert_int_equal(nb_timeline_wait(f.gpu, 2, NB_NEVER_NS), NB_OK);
    end(&f);
}

#define LATE_NS 1000000000u

typedef struct race {
    fixture f;
    test_gate gate;
    uint64_t round_count;
    nb_atomic_u32 problem_count, through_count;
    nb_atomic_u64 destroyed_count, accepted_count;
} race;

static void race_begin(race *r, uint32_t retire_count_max) {
    begin(&r->f, retire_count_max);
    r->round_count = test_size(5000, 50000, 500000);
}

// Two threads hand a number to and fro, each waiting for the other: a lost wake-up shows as a wait of ten seconds.
static void ping_pong(void *user, uint32_t index) {
    race *r = user;
    nb_timeline *own = index == 0 ? r->f.cpu : r->f.gpu, *other = index == 0 ? r->f.gpu : r->f.cpu;
    for (uint64_t i = 1; i <= r->round_count; ++i) {
        if (index == 0) nb_timeline_signal(own, i);
        uint64_t start_ns = nbi_clock_now_ns();
        nb_result result = nb_timeline_wait(other, i, start_ns + 10u * LATE_NS);
        bool is_late = nbi_clock_now_ns() - start_ns > LATE_NS;
        if (result != NB_OK || is_late) nbi_atomic_fetch_add_seq_cst_u32(&r->problem_count, 1);
        if (index == 1) nb_timeline_signal(own, i);
    }
}

TEST(no_wake_up_is_lost) {
    static race r;
    race_begin(&r, 0);
    test_threads_run(2, ping_pong, &r);
    assert_int_equal(r.problem_count.value, 0);
    end(&r.f);
}

// Counts, and sees that the value was reached.
static void check_and_count(void *number, void *user) {
    race *r = user;
    if (nb_timeline_value(r->f.gpu) < (uintptr_t)number) nbi_atomic_fetch_add_seq_cst_u32(&r->problem_count, 1);
    nbi_atomic_fetch_add_seq_cst_u64(&r->destroyed_count, 1);
}

static void retire_many(void *user, uint32_t index) {
    race *r = user;
    test_gate_pass(&r->gate, 4);
    uint64_t seed = index;
    for (uint64_t i = 0; i < r->round_count; ++i) {
        uint64_t value = nb_timeline_value(r->f.gpu) + test_random(&seed) % 3;
        nb_result result = nb_timeline_retire(r->f.gpu, value, object((uintptr_t)value), check_and_count, r);
        if (result == NB_OK)
            nbi_atomic_fetch_add_seq_cst_u64(&r->accepted_count, 1);
        else
            nbi_thread_yield();
        if (result != NB_OK && result != NB_FULL) nbi_atomic_fetch_add_seq_cst_u32(&r->problem_count, 1);
    }
    nbi_atomic_fetch_add_seq_cst_u32(&r->through_count, 1);
}

TEST(objects_of_many_threads_end_exactly_once) {
    static race r;
    race_begin(&r, 32);
    test_thread threads[3];
    test_threads_start(threads, 3, retire_many, &r);
    test_gate_pass(&r.gate, 4);
    for (uint64_t value = 1; nbi_atomic_load_acquire_u32(&r.through_count) < 3; ++value) {
        nb_timeline_signal(r.f.gpu, value);
        uint32_t count = 0;
        assert_int_equal(nb_timelines_reclaim(r.f.set, (uint32_t)(value % 7), &count), NB_OK);
        assert_true(value % 7 == 0 || count <= value % 7);
        nbi_thread_yield();
    }
    test_threads_join(threads, 3);
    nb_timeline_signal(r.f.gpu, nb_timeline_value(r.f.gpu) + 2);
    reclaim(&r.f, 0);
    assert_int_equal(r.problem_count.value, 0);
    assert_true(r.accepted_count.value == r.destroyed_count.value && r.accepted_count.value > 0);
    nb_timelines_stats stats = nb_timelines_stats_get(r.f.set);
    assert_true(stats.retire_count == r.accepted_count.value && stats.reclaim_count == stats.retire_count);
    assert_true(stats.pending_count == 0 && stats.pending_peak <= 32);
    end(&r.f);
}
