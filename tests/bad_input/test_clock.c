// SPDX-License-Identifier: MIT
// nebula/clock.h: clocks that are none, that cannot sleep, or are at the end of time.

#include "bad_input/bad_input.h"

#include "nebula/clock.h"

static uint64_t stopped_clock(void *user) {
    (void)user;
    return 5;
}

TEST(clock_without_an_object_is_the_machines) {
    nb_clock zero = {0};
    uint64_t first_ns = 0, second_ns = 0;
    silent(first_ns = nb_clock_now_ns(NULL), second_ns = nb_clock_now_ns(&zero));
    assert_true(first_ns != 0 && second_ns >= first_ns);
    accepted(NB_OK, nb_clock_sleep_until_ns(NULL, 0));
    accepted(NB_OK, nb_clock_sleep_until_ns(&zero, first_ns));
    nb_clock sleepless = {.now_ns = stopped_clock};
    refused_default(NB_ERR_UNSUPPORTED, NB_ITEM_BASE_ARGUMENT, nb_clock_sleep_until_ns(&sleepless, 10));
}

TEST(manual_clock_refuses_null_and_stops_at_the_end) {
    nb_clock clock;
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_clock_manual_init(NULL, 1));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_clock_manual_advance(NULL, 1));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_clock_manual_set(NULL, 1));
    reported_default(NB_ITEM_BASE_NULL, clock = nb_clock_manual_get(NULL));
    assert_zero(clock);
    nb_clock_manual manual;
    accepted(NB_OK, nb_clock_manual_init(&manual, UINT64_MAX - 1));
    accepted(NB_OK, nb_clock_manual_advance(&manual, UINT64_MAX));
    clock = nb_clock_manual_get(&manual);
    assert_true(nb_clock_now_ns(&clock) == UINT64_MAX);
}
