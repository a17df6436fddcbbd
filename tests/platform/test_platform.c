// SPDX-License-Identifier: MIT
// The OS layer: parking, deadlines, threads, pages, cpu count.

#include "support/support.h"

#include "base/base.h"
#include "base/lock.h"

#define NS_PER_MS 1000000u

TEST(park_returns_at_once_when_the_word_differs) {
    nb_atomic_u32 word = {7};
    assert_int_equal(nbi_park_until(&word, 6, NBI_NEVER_NS), NB_OK);
}

TEST(park_times_out_never_early) {
    nb_atomic_u32 word = {0};
    for (int round = 0; round < 20; ++round) {
        uint64_t deadline = nbi_clock_now_ns() + NS_PER_MS;
        nb_result result = NB_OK;
        while (result != NB_TIMEOUT) result = nbi_park_until(&word, 0, deadline);
        assert_true(nbi_clock_now_ns() >= deadline);
    }
}

TEST(park_with_a_past_deadline_times_out) {
    nb_atomic_u32 word = {0};
    assert_int_equal(nbi_park_until(&word, 0, 1), NB_TIMEOUT);
}

typedef struct ping_pong {
    nb_atomic_u32 turn; // whose move it is
    uint32_t round_count;
} ping_pong;

static void ping_pong_run(void *user, uint32_t index) {
    ping_pong *game = user;
    for (uint32_t round = 0; round < game->round_count; ++round) {
        uint32_t now;
        while ((now = nbi_atomic_load_acquire_u32(&game->turn)) % 2 != index) {
            nbi_park_until(&game->turn, now, NBI_NEVER_NS);
        }
        nbi_atomic_fetch_add_seq_cst_u32(&game->turn, 1);
        nbi_unpark(&game->turn, 1);
    }
}

TEST(two_threads_hand_a_word_to_and_fro) {
    ping_pong game = {.round_count = (uint32_t)test_size(2000, 50000, 500000)};
    test_threads_run(2, ping_pong_run, &game);
    assert_int_equal(game.turn.value, 2 * game.round_count);
}

typedef struct counter_under_lock {
    nbi_lock lock;
    uint64_t count; // protected by lock
    uint64_t round_count;
} counter_under_lock;

static void count_under_lock(void *user, uint32_t index) {
    (void)index;
    counter_under_lock *counter = user;
    for (uint64_t i = 0; i < counter->round_count; ++i) {
        nbi_lock_acquire(&counter->lock);
        // Read and write apart, so that two holders at once lose a step.
        uint64_t before = counter->count;
        if (i % 64 == 0) nbi_thread_yield();
        counter->count = before + 1;
        nbi_lock_release(&counter->lock);
    }
}

TEST(lock_admits_one_thread_at_a_time) {
    counter_under_lock counter = {.round_count = test_size(20000, 200000, 5000000)};
    test_threads_run(4, count_under_lock, &counter);
    assert_int_equal(counter.count, 4 * counter.round_count);
    assert_int_equal(counter.lock.word.value, 0);
}

typedef struct thread_probe {
    uint64_t id;
    int cpu;
    char stack_touched;
} thread_probe;

static void probe_thread(void *user) {
    thread_probe *probe = user;
    volatile char big[48 * 1024]; // fits the 64 KiB asked for
    big[0] = 1;
    big[sizeof big - 1] = 2;
    probe->stack_touched = (char)(big[0] + big[sizeof big - 1]);
    probe->id = nbi_thread_id();
    probe->cpu = nbi_cpu_current();
}

TEST(thread_gets_its_stack_name_and_cpu) {
    thread_probe probe = {0};
    nbi_thread thread = {0};
    nbi_thread_desc desc = {.run = probe_thread,
                            .user = &probe,
                            .name = "a name longer than fifteen",
                            .stack_size_bytes = 64 * 1024,
                            .affinity_mask = 1};
    assert_int_equal(nbi_thread_start(&thread, &desc), NB_OK);
    nbi_thread_join(&thread);
    assert_int_equal(thread.os, 0);
    assert_int_equal(probe.stack_touched, 3);
    assert_int_not_equal(probe.id, nbi_thread_id());
    // A container may forbid cpu 0; then the thread has run elsewhere, which is the promise.
    assert_true(probe.cpu >= 0);
    nbi_thread_join(&thread); // joined twice: nothing happens
}

TEST(pages_reserve_commit_decommit_and_protect) {
    size_t page = nbi_page_size();
    char *pages = nbi_pages_reserve(8 * page);
    assert_non_null(pages);
    assert_int_equal((uintptr_t)pages % page, 0);
    assert_int_equal(nbi_pages_commit(pages, 2 * page), NB_OK);
    for (size_t i = 0; i < 2 * page; ++i) assert_int_equal(pages[i], 0);
    memset(pages, 0x5A, 2 * page);
    assert_int_equal(nbi_pages_decommit(pages, page), NB_OK);
    assert_int_equal(nbi_pages_commit(pages, page), NB_OK);
    assert_int_equal(pages[0], 0);
    assert_int_equal(pages[page], 0x5A);
    assert_int_equal(nbi_pages_protect(pages, page, NBI_PAGE_READ), NB_OK);
    assert_int_equal(pages[1], 0);
    assert_int_equal(nbi_pages_protect(pages, page, NBI_PAGE_READ_WRITE), NB_OK);
    pages[1] = 1;
    nbi_pages_release(pages, 8 * page);
}

TEST(pages_too_large_to_reserve_are_null) { assert_null(nbi_pages_reserve(SIZE_MAX & ~(nbi_page_size() - 1))); }

static void count_cpus_on_one(void *user) {
    uint32_t *count = user;
    // Affinity belongs to the thread, so the narrow mask ends with it. A container may forbid cpu 0: nothing to see
    // then.
    *count = nbi_thread_set_affinity(NULL, 1) == NB_OK ? nbi_cpu_count() : 1;
}

TEST(cpu_count_is_at_least_one_and_follows_the_mask) {
    assert_true(nbi_cpu_count() >= 1);
    uint32_t count = 0;
    test_thread_run(count_cpus_on_one, &count);
    assert_int_equal(count, 1);
}

TEST(clock_never_steps_back) {
    uint64_t last = nbi_clock_now_ns();
    for (int i = 0; i < 100000; ++i) {
        uint64_t now = nbi_clock_now_ns();
        assert_true(now >= last);
        last = now;
    }
}

TEST(sleep_until_is_never_early) {
    uint64_t deadline = nbi_clock_now_ns() + NS_PER_MS;
    nbi_sleep_until_ns(deadline);
    assert_true(nbi_clock_now_ns() >= deadline);
    nbi_sleep_until_ns(0); // long past: returns at once
}

// --- the program's own variables ---

static uint64_t first_variable = 1;
static uint32_t table_of_numbers[1000];

static bool is_listed(const void *address) {
    nbi_program_run runs[64];
    uint32_t count = nbi_program_runs(runs, 64);
    for (uint32_t i = 0; i < count; ++i) {
        const unsigned char *at = address;
        if (at >= runs[i].begin && at < runs[i].begin + runs[i].size_bytes) return true;
    }
    return false;
}

TEST(variables_are_listed_and_named) {
    if (!nbi_platform_has(NBI_ABILITY_PROGRAM_MEMORY)) skip();
    static const char *const constant = "text";
    uint32_t local = 0;
    nbi_program_symbol symbol;
    assert_true(is_listed(&first_variable));
    assert_true(is_listed(table_of_numbers));
    assert_false(is_listed(constant));
    assert_false(is_listed(&local));
    assert_false(is_listed((const void *)(uintptr_t)&memset)); // of a library of the system
    assert_int_equal(nbi_program_runs(NULL, 0), 0);
    assert_true(nbi_program_name(&table_of_numbers[77], &symbol));
    assert_string_equal(symbol.name, "table_of_numbers");
    assert_ptr_equal(symbol.begin, table_of_numbers);
    assert_int_equal(symbol.size_bytes, sizeof table_of_numbers);
    assert_false(nbi_program_name(&local, &symbol));
    assert_false(nbi_program_name(NULL, &symbol));
}

static uint64_t write_here(void *user) {
    *(uint64_t *)user = 77;
    return *(uint64_t *)user + 1;
}

static uint64_t write_nowhere(void *user) {
    *(volatile uint64_t *)user = 1;
    return 0;
}

static uint64_t never_end(void *user) {
    for (;;) nbi_park_until(user, 0, NBI_NEVER_NS);
    return 0;
}

TEST(what_a_probe_does_stays_in_it) {
    nb_atomic_u32 word = {0};
    uint64_t out = 5;
    if (!nbi_platform_has(NBI_ABILITY_PROBE)) {
        assert_int_equal(nbi_probe(write_here, &first_variable, NBI_NEVER_NS, &out), NB_ERR_UNSUPPORTED);
        return;
    }
    assert_int_equal(nbi_probe(write_here, &first_variable, NBI_NEVER_NS, &out), NB_OK);
    assert_int_equal(out, 78);
    assert_int_equal(first_variable, 1);
    out = 5;
    // It crashes, or waits for what nobody does.
    assert_int_equal(nbi_probe(write_nowhere, NULL, NBI_NEVER_NS, &out), NB_CLOSED);
    assert_int_equal(nbi_probe(never_end, &word, nbi_clock_now_ns() + NS_PER_MS, &out), NB_TIMEOUT);
    assert_int_equal(nbi_probe(never_end, &word, 0, &out), NB_TIMEOUT);
    assert_int_equal(out, 5);
}
