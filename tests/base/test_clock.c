// SPDX-License-Identifier: MIT
// The injectable clock.

#include "support/support.h"

#include "nebula/clock.h"

TEST(zero_clock_is_the_machines_monotonic_clock) {
    nb_clock zero = {0};
    uint64_t a = nbi_clock_now_ns(), b = nb_clock_now_ns(&zero), c = nb_clock_now_ns(NULL), d = nbi_clock_now_ns();
    assert_true(a <= b && b <= c && c <= d);
    uint64_t deadline_ns = nb_clock_now_ns(NULL) + 1000000;
    assert_int_equal(nb_clock_sleep_until_ns(&zero, deadline_ns), NB_OK);
    assert_true(nb_clock_now_ns(NULL) >= deadline_ns);
    assert_int_equal(nb_clock_sleep_until_ns(NULL, 0), NB_OK);
}

TEST(manual_clock_moves_only_when_told) {
    nb_clock_manual manual;
    assert_int_equal(nb_clock_manual_init(&manual, 100), NB_OK);
    nb_clock clock = nb_clock_manual_get(&manual);
    assert_int_equal(nb_clock_now_ns(&clock), 100);
    nb_clock_manual_advance(&manual, 23);
    assert_int_equal(nb_clock_now_ns(&clock), 123);
    assert_int_equal(nb_clock_sleep_until_ns(&clock, 500), NB_OK);
    assert_int_equal(nb_clock_now_ns(&clock), 500);
    assert_int_equal(nb_clock_sleep_until_ns(&clock, 400), NB_OK); // passed already
    assert_int_equal(nb_clock_now_ns(&clock), 500);
    nb_clock_manual_set(&manual, 7);
    assert_int_equal(nb_clock_now_ns(&clock), 7);
    nb_clock_manual_advance(&manual, UINT64_MAX);
    assert_int_equal(nb_clock_now_ns(&clock), UINT64_MAX);
}

static void advance_many(void *user, uint32_t index) {
    (void)index;
    for (int i = 0; i < 10000; ++i) nb_clock_manual_advance((nb_clock_manual *)user, 3);
}

TEST(manual_clock_counts_every_advance_of_every_thread) {
    nb_clock_manual manual;
    nb_clock_manual_init(&manual, 0);
    test_threads_run(3, advance_many, &manual);
    nb_clock clock = nb_clock_manual_get(&manual);
    assert_int_equal(nb_clock_now_ns(&clock), 90000);
}

static uint64_t always_seven(void *user) {
    (void)user;
    return 7;
}

TEST(bad_clocks_have_defined_results) {
    nb_clock no_sleep = {.now_ns = always_seven};
    assert_int_equal(nb_clock_now_ns(&no_sleep), 7);
    assert_int_equal(nb_clock_sleep_until_ns(&no_sleep, 10), NB_ERR_UNSUPPORTED);
    assert_int_equal(nb_clock_manual_init(NULL, 0), NB_ERR_MISUSE);
    assert_int_equal(nb_clock_manual_advance(NULL, 0), NB_ERR_MISUSE);
    assert_int_equal(nb_clock_manual_set(NULL, 0), NB_ERR_MISUSE);
    nb_clock clock = nb_clock_manual_get(NULL);
    assert_null(clock.now_ns);
}
