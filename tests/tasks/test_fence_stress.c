// SPDX-License-Identifier: MIT
// Races of the frame fence under real threads, and its time-outs under the real clock. Each race here has mutants in
// tests/mutants that it must catch.

#define _GNU_SOURCE // setitimer

#include "support/support.h"

#include <signal.h>
#include <sys/time.h>

#include "nebula/fence.h"

#define NO_LABEL ((nb_label){0})
#define WORKER_MAX 8
#define SECOND_NS ((uint64_t)1000000000)

static test_log stress_log;

// Counts alone: several threads report at once.
static void count_record(void *user, const nb_log_record *record) {
    nbi_atomic_fetch_add_seq_cst_u32(&((test_log *)user)->counts[record->item], 1);
}

static nb_fence_desc stress_desc(uint32_t ticket_count_max) {
    memset(&stress_log, 0, sizeof stress_log);
    nb_fence_desc desc = {.ticket_count_max = ticket_count_max, .hooks = test_hooks(&stress_log, NULL)};
    desc.hooks.logger.log = count_record;
    return desc;
}

// Threads count failures instead of asserting, because cmocka may only be left from the main thread.
static void expect(nb_atomic_u32 *failure_count, bool condition) {
    if (!condition) nbi_atomic_fetch_add_seq_cst_u32(failure_count, 1);
}

// --- frames and their work ---

typedef struct frames {
    nb_fence *fence;
    uint32_t worker_count;
    uint64_t frame_count, seed;
    nb_atomic_u32 failure_count;
    nb_atomic_u64 opened; // the newest frame's number; workers wait for it to change. UINT64_MAX = the end
    nb_atomic_u64 tickets[WORKER_MAX];
    uint64_t results[WORKER_MAX];      // the frame it was written in
    nb_atomic_u64 done_ns[WORKER_MAX]; // just before the ticket went back
} frames;

// Mostly short; now and then so long that the coordinator goes to sleep.
static void random_delay(uint64_t random) {
    uint64_t length = random % 32 == 0 ? 4000 : random / 64 % 64;
    for (uint64_t i = 0; i < length; ++i) nbi_cpu_relax();
    if (random % 8 == 1) nbi_thread_yield();
}

static void do_frame(frames *f, uint32_t index, uint64_t number, uint64_t *random) {
    nb_fence_ticket own = {nbi_atomic_load_relaxed_u64(&f->tickets[index])}, child = {0};
    random_delay(test_random(random));
    // Work may take tickets for more work: the frame is sealed, and open as long as one is out.
    bool has_child = test_random(random) % 4 == 0;
    if (has_child) expect(&f->failure_count, nb_fence_take(f->fence, (nb_fence_frame){0}, NO_LABEL, &child) == NB_OK);
    if (has_child) expect(&f->failure_count, nb_fence_return(f->fence, own) == NB_OK);
    f->results[index] = number;
    nbi_atomic_store_relaxed_u64(&f->done_ns[index], nbi_clock_now_ns());
    expect(&f->failure_count, nb_fence_return(f->fence, has_child ? child : own) == NB_OK);
}

static void frames_worker(void *user, uint32_t index) {
    frames *f = user;
    uint64_t random = f->seed + index, seen = 0;
    for (;;) {
        uint64_t number = nbi_atomic_load_acquire_u64(&f->opened);
        if (number == UINT64_MAX) return;
        if (number == seen) {
            nbi_thread_yield();
            continue;
        }
        seen = number;
        do_frame(f, index, number, &random);
    }
}

// One frame of all workers. The wait must end within a second of the last return, and not before it.
static void frames_coordinate(frames *f) {
    nb_fence_frame frame = {0};
    expect(&f->failure_count, nb_fence_begin(f->fence, &frame) == NB_OK);
    for (uint32_t i = 0; i < f->worker_count; ++i) {
        nb_fence_ticket ticket = {0};
        expect(&f->failure_count, nb_fence_take(f->fence, frame, NO_LABEL, &ticket) == NB_OK);
        nbi_atomic_store_relaxed_u64(&f->tickets[i], ticket.value);
    }
    uint64_t number = nb_fence_frame_number(frame);
    nbi_atomic_store_release_u64(&f->opened, number); // read by the acquire load in frames_worker
    nb_result result = nb_fence_wait(f->fence, frame, nbi_clock_now_ns() + 10 * SECOND_NS, NULL, NULL);
    uint64_t now_ns = nbi_clock_now_ns(), done_ns = 0;
    expect(&f->failure_count, result == NB_OK);
    for (uint32_t i = 0; i < f->worker_count && result == NB_OK; ++i) {
        uint64_t ns = nbi_atomic_load_relaxed_u64(&f->done_ns[i]);
        if (ns > done_ns) done_ns = ns;
        expect(&f->failure_count, f->results[i] == number);
    }
    expect(&f->failure_count, now_ns < done_ns + SECOND_NS);
}

TEST(every_wait_ends_with_its_last_return) {
    static const uint32_t worker_counts[] = {1, 2, 4, 8};
    uint64_t seed = test_seed("every_wait_ends_with_its_last_return");
    for (size_t i = 0; i < sizeof worker_counts / sizeof worker_counts[0]; ++i) {
        nb_fence_desc desc = stress_desc(2 * WORKER_MAX);
        frames f = {.worker_count = worker_counts[i], .frame_count = test_size(2500, 25000, 10000000), .seed = seed};
        assert_int_equal(nb_fence_create(&desc, &f.fence), NB_OK);
        test_thread threads[WORKER_MAX];
        test_threads_start(threads, f.worker_count, frames_worker, &f);
        for (uint64_t frame = 0; frame < f.frame_count && f.failure_count.value == 0; ++frame) frames_coordinate(&f);
        nbi_atomic_store_release_u64(&f.opened, UINT64_MAX);
        test_threads_join(threads, f.worker_count);
        nb_fence_stats stats = nb_fence_stats_get(f.fence);
        print_message("%u workers: %llu frames, %llu sleeps\n", (unsigned)f.worker_count,
                      (unsigned long long)stats.frame_count, (unsigned long long)stats.park_count);
        assert_int_equal(nbi_atomic_load_seq_cst_u32(&f.failure_count), 0);
        assert_int_equal(stats.ticket_count, 0);
        assert_int_equal(stats.refused_count + stats.late_count + stats.degraded_count, 0);
        assert_int_equal(nb_fence_destroy(f.fence), NB_OK);
    }
}

// --- late work ---

// Workers keep their ticket for some frames; the coordinator goes on. No frame is complete before its own work is.
#define LATE_FRAMES 64
typedef struct late_work {
    nb_fence *fence;
    uint64_t frame_count, seed;
    nb_atomic_u32 failure_count, end;
    nb_atomic_u64 tickets[LATE_FRAMES]; // of frame n at n % LATE_FRAMES; 0 = none, or taken by a worker
    nb_atomic_u64 done[LATE_FRAMES];    // the newest frame there whose work is done
} late_work;

static void late_worker(void *user, uint32_t index) {
    late_work *w = user;
    uint64_t random = w->seed + index;
    while (nbi_atomic_load_acquire_u32(&w->end) == 0) {
        uint32_t place = (uint32_t)(test_random(&random) % LATE_FRAMES);
        if (nbi_atomic_load_relaxed_u64(&w->tickets[place]) == 0) {
            if (random % 64 == 0) nbi_thread_yield();
            continue;
        }
        uint64_t value = nbi_atomic_exchange_acquire_u64(&w->tickets[place], 0);
        if (value == 0) continue;
        if (random % 4 == 0) random_delay(test_random(&random));
        nbi_atomic_fetch_add_relaxed_u64(&w->done[place], 1);
        expect(&w->failure_count, nb_fence_return(w->fence, (nb_fence_ticket){value}) == NB_OK);
        expect(&w->failure_count, nb_fence_return(w->fence, (nb_fence_ticket){value}) == NB_ERR_STALE);
    }
}

static void late_frame(late_work *w, uint64_t round) {
    nb_fence_frame frame = {0};
    nb_fence_ticket ticket = {0};
    uint32_t place = (uint32_t)(round % LATE_FRAMES);
    // A place is used again only when its ticket is back, so that `done` counts the rounds.
    uint64_t lap = round / LATE_FRAMES;
    while (nbi_atomic_load_acquire_u64(&w->done[place]) < lap) nbi_thread_yield();
    nb_result result = nb_fence_begin(w->fence, &frame);
    while (result == NB_FULL) {
        nbi_thread_yield();
        result = nb_fence_begin(w->fence, &frame);
    }
    expect(&w->failure_count, result == NB_OK);
    expect(&w->failure_count, nb_fence_take(w->fence, frame, NO_LABEL, &ticket) == NB_OK);
    nbi_atomic_exchange_release_u64(&w->tickets[place], ticket.value); // read by the acquire in late_worker
    uint64_t timeout_ns = round % 3 * 2000;
    result = nb_fence_wait(w->fence, frame, timeout_ns != 0 ? nbi_clock_now_ns() + timeout_ns : 0, NULL, NULL);
    bool is_done = nbi_atomic_load_relaxed_u64(&w->done[place]) == lap + 1;
    expect(&w->failure_count, result == NB_TIMEOUT || (result == NB_OK && is_done));
}

TEST(late_returns_complete_no_newer_frame) {
    nb_fence_desc desc = stress_desc(LATE_FRAMES * 2);
    desc.slot_count = 2;
    desc.hooks.logger.level_min = NB_LOG_OFF; // time-outs and double returns are the rule here
    late_work w = {.frame_count = test_size(4000, 50000, 5000000),
                   .seed = test_seed("late_returns_complete_no_newer_frame")};
    assert_int_equal(nb_fence_create(&desc, &w.fence), NB_OK);
    test_thread threads[3];
    test_threads_start(threads, 3, late_worker, &w);
    for (uint64_t i = 0; i < w.frame_count && w.failure_count.value == 0; ++i) late_frame(&w, i);
    uint64_t limit_ns = nbi_clock_now_ns() + 10 * SECOND_NS;
    while (nb_fence_stats_get(w.fence).ticket_count != 0 && nbi_clock_now_ns() < limit_ns) nbi_thread_yield();
    nbi_atomic_store_release_u32(&w.end, 1);
    test_threads_join(threads, 3);
    nb_fence_stats stats = nb_fence_stats_get(w.fence);
    print_message("%llu frames, %llu degraded, %llu full, %u slots\n", (unsigned long long)stats.frame_count,
                  (unsigned long long)stats.degraded_count, (unsigned long long)stats.full_count,
                  (unsigned)stats.slot_count);
    assert_int_equal(nbi_atomic_load_seq_cst_u32(&w.failure_count), 0);
    assert_int_equal(stats.refused_count, stats.frame_count);
    assert_int_equal(nb_fence_destroy(w.fence), NB_OK);
}

// --- the fence ends while the last returner is on its way out ---

// Keeps freed memory and sees whether anybody writes to it.
typedef struct grave {
    unsigned char *memory;
    size_t size_bytes;
} grave;

static void *grave_alloc(void *user, size_t size_bytes, size_t alignment) {
    (void)user;
    return aligned_alloc(alignment, (size_bytes + alignment - 1) & ~(alignment - 1));
}

static void grave_free(void *user, void *memory, size_t size_bytes) {
    grave *g = user;
    memset(memory, 0xDD, size_bytes);
    *g = (grave){memory, size_bytes};
}

static bool grave_is_quiet(const grave *g) {
    for (size_t i = 0; i < g->size_bytes; ++i) {
        if (g->memory[i] != 0xDD) return false;
    }
    return true;
}

typedef struct ending {
    uint64_t round_count;
    nb_fence *fence;
    nb_fence_ticket tickets[2];
    test_gate gate;
    nb_atomic_u32 failure_count;
} ending;

static void ending_round(ending *e, uint64_t round) {
    grave g = {0};
    nb_fence_desc desc = {.ticket_count_max = 2, .slot_count = 2};
    desc.hooks.allocator = (nb_allocator){grave_alloc, grave_free, &g};
    nb_fence_frame frame = {0};
    expect(&e->failure_count, nb_fence_create(&desc, &e->fence) == NB_OK);
    expect(&e->failure_count, nb_fence_begin(e->fence, &frame) == NB_OK);
    for (int i = 0; i < 2; ++i) {
        expect(&e->failure_count, nb_fence_take(e->fence, frame, NO_LABEL, &e->tickets[i]) == NB_OK);
    }
    test_gate_pass(&e->gate, (uint32_t)(6 * round + 3));
    expect(&e->failure_count, nb_fence_wait(e->fence, frame, NB_NEVER_NS, NULL, NULL) == NB_OK);
    expect(&e->failure_count, nb_fence_destroy(e->fence) == NB_OK);
    test_gate_pass(&e->gate, (uint32_t)(6 * round + 6)); // now the others are out
    expect(&e->failure_count, grave_is_quiet(&g));
    free(g.memory);
}

static void ending_thread(void *user, uint32_t index) {
    ending *e = user;
    for (uint64_t round = 0; round < e->round_count; ++round) {
        if (index == 0) {
            ending_round(e, round);
            continue;
        }
        test_gate_pass(&e->gate, (uint32_t)(6 * round + 3));
        nb_fence_return(e->fence, e->tickets[index - 1]);
        test_gate_pass(&e->gate, (uint32_t)(6 * round + 6));
    }
}

TEST(fence_may_end_as_soon_as_the_wait_has) {
    ending e = {.round_count = test_size(3000, 30000, 1000000)};
    // The gate's 32 bits count six a round.
    test_threads_run(3, ending_thread, &e);
    assert_int_equal(nbi_atomic_load_seq_cst_u32(&e.failure_count), 0);
}

// --- records ---

#define STORM_TICKETS 8
typedef struct storm {
    nb_fence *fence;
    nb_fence_frame frame;
    uint64_t round_count;
    nb_atomic_u32 failure_count;
    nb_atomic_u32 holders[STORM_TICKETS]; // of each record: 1 while a ticket of it is out
    nb_atomic_u64 ok_count, full_count;
} storm;

static bool storm_take(storm *s, uint32_t index, nb_fence_ticket *ticket) {
    nb_result result = nb_fence_take(s->fence, s->frame, (nb_label){index + 1}, ticket);
    expect(&s->failure_count, result == NB_OK || result == NB_FULL);
    nbi_atomic_fetch_add_relaxed_u64(result == NB_OK ? &s->ok_count : &s->full_count, 1);
    if (result != NB_OK) return false;
    // The low bits of a ticket are its record's index.
    expect(&s->failure_count, nbi_atomic_fetch_add_seq_cst_u32(&s->holders[ticket->value % STORM_TICKETS], 1) == 0);
    return true;
}

static void storm_return(storm *s, nb_fence_ticket ticket) {
    nbi_atomic_fetch_sub_seq_cst_u32(&s->holders[ticket.value % STORM_TICKETS], 1);
    expect(&s->failure_count, nb_fence_return(s->fence, ticket) == NB_OK);
}

// Two at once, the first given back first: the head of the free list is then the same with another one below.
static void storm_thread(void *user, uint32_t index) {
    storm *s = user;
    for (uint64_t i = 0; i < s->round_count; ++i) {
        nb_fence_ticket first = {0}, second = {0};
        bool has_first = storm_take(s, index, &first), has_second = storm_take(s, index, &second);
        if (has_first) storm_return(s, first);
        if (i % 64 == 0) nbi_thread_yield();
        if (has_second) storm_return(s, second);
    }
}

TEST(no_record_is_handed_out_twice) {
    nb_fence_desc desc = stress_desc(STORM_TICKETS);
    storm s = {.round_count = test_size(5000, 50000, 5000000)};
    assert_int_equal(nb_fence_create(&desc, &s.fence), NB_OK);
    assert_int_equal(nb_fence_begin(s.fence, &s.frame), NB_OK);
    test_threads_run(10, storm_thread, &s);
    nb_fence_stats stats = nb_fence_stats_get(s.fence);
    assert_int_equal(nbi_atomic_load_seq_cst_u32(&s.failure_count), 0);
    assert_int_equal(s.ok_count.value + s.full_count.value, 2 * 10 * s.round_count);
    assert_int_equal(stats.ticket_full_count, s.full_count.value);
    assert_int_equal(stats.ticket_count, 0);
    assert_int_equal(nb_fence_wait(s.fence, s.frame, 0, NULL, NULL), NB_OK);
    assert_int_equal(nb_fence_destroy(s.fence), NB_OK);
}

// --- time-outs ---

static int compare_u64(const void *left, const void *right) {
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return a < b ? -1 : a > b;
}

// Lateness is reported; only a whole second of it fails, for machines are busy. Being early always fails.
TEST(timeouts_are_never_early) {
    nb_fence_desc desc = stress_desc(4);
    nb_fence *fence = NULL;
    nb_fence_frame frame = {0};
    nb_fence_ticket ticket;
    uint64_t random = test_seed("timeouts_are_never_early"), count = test_size(500, 2500, 20000);
    assert_int_equal(nb_fence_create(&desc, &fence), NB_OK);
    assert_int_equal(nb_fence_begin(fence, &frame), NB_OK);
    assert_int_equal(nb_fence_take(fence, frame, NO_LABEL, &ticket), NB_OK);
    uint64_t *late_ns = malloc(count * sizeof *late_ns);
    assert_non_null(late_ns);
    for (uint64_t i = 0; i < count; ++i) {
        // Shorter than the spin before the sleep, and longer.
        uint64_t deadline_ns = nbi_clock_now_ns() + 1000 + test_random(&random) % 400000;
        assert_int_equal(nb_fence_wait(fence, frame, deadline_ns, NULL, NULL), NB_TIMEOUT);
        uint64_t now_ns = nbi_clock_now_ns();
        assert_true(now_ns >= deadline_ns);
        late_ns[i] = now_ns - deadline_ns;
        assert_true(late_ns[i] < SECOND_NS);
    }
    qsort(late_ns, count, sizeof *late_ns, compare_u64);
    print_message("late by p50 %.3f ms, p99 %.3f ms, at most %.3f ms (n = %llu)\n", (double)late_ns[count / 2] / 1e6,
                  (double)late_ns[count * 99 / 100] / 1e6, (double)late_ns[count - 1] / 1e6, (unsigned long long)count);
    free(late_ns);
    assert_int_equal(test_log_count(&stress_log, NB_ITEM_FENCE_TIMEOUT), count);
    assert_int_equal(nb_fence_return(fence, ticket), NB_OK);
    assert_int_equal(nb_fence_destroy(fence), NB_OK);
}

static void on_signal(int number) { (void)number; }

// Blocked in the calling thread, so that they reach those that sleep.
static void signals_every_100_us(bool is_on) {
    struct sigaction action = {.sa_handler = on_signal}; // without SA_RESTART: sleeps are interrupted
    sigaction(SIGALRM, &action, NULL);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    struct itimerval timer = {0};
    if (is_on) timer.it_value.tv_usec = timer.it_interval.tv_usec = 100;
    setitimer(ITIMER_REAL, &timer, NULL);
}

typedef struct sleepers {
    nb_fence *fence;
    nb_fence_frame frame;
    uint64_t timeout_ns;
    nb_atomic_u32 failure_count, awake_count;
} sleepers;

static void sleeper(void *user, uint32_t index) {
    (void)index;
    sleepers *s = user;
    uint64_t deadline_ns = nbi_clock_now_ns() + s->timeout_ns;
    nb_result result = nb_fence_wait(s->fence, s->frame, deadline_ns, NULL, NULL);
    uint64_t now_ns = nbi_clock_now_ns();
    expect(&s->failure_count, result == NB_TIMEOUT && now_ns >= deadline_ns && now_ns < deadline_ns + SECOND_NS);
    expect(&s->failure_count, nb_fence_wait(s->fence, s->frame, now_ns + 10 * SECOND_NS, NULL, NULL) == NB_OK);
    nbi_atomic_fetch_add_seq_cst_u32(&s->awake_count, 1);
}

TEST(signals_neither_shorten_nor_lose_a_wait) {
    uint64_t round_count = test_size(2, 10, 200);
    for (uint64_t round = 0; round < round_count; ++round) {
        nb_fence_desc desc = stress_desc(4);
        sleepers s = {.timeout_ns = NB_FENCE_TIMEOUT_NS_DEFAULT};
        nb_fence_ticket ticket;
        assert_int_equal(nb_fence_create(&desc, &s.fence), NB_OK);
        assert_int_equal(nb_fence_begin(s.fence, &s.frame), NB_OK);
        assert_int_equal(nb_fence_take(s.fence, s.frame, NO_LABEL, &ticket), NB_OK);
        assert_int_equal(nb_fence_seal(s.fence), NB_OK);
        test_thread threads[8];
        test_threads_start(threads, 8, sleeper, &s);
        signals_every_100_us(true);
        // All have timed out once when this many reports are there; the second wait may or may not have begun.
        uint64_t limit_ns = nbi_clock_now_ns() + 10 * SECOND_NS;
        while (test_log_count(&stress_log, NB_ITEM_FENCE_TIMEOUT) < 8 && nbi_clock_now_ns() < limit_ns) {
            nbi_thread_yield();
        }
        uint64_t returned_ns = nbi_clock_now_ns();
        assert_int_equal(nb_fence_return(s.fence, ticket), NB_OK);
        test_threads_join(threads, 8);
        signals_every_100_us(false);
        assert_true(nbi_clock_now_ns() < returned_ns + SECOND_NS);
        assert_int_equal(nbi_atomic_load_seq_cst_u32(&s.failure_count), 0);
        assert_int_equal(s.awake_count.value, 8);
        assert_int_equal(nb_fence_destroy(s.fence), NB_OK);
    }
}
