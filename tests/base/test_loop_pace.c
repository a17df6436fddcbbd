// SPDX-License-Identifier: MIT
// Deadline pacing, on clocks that the test moves: sleeps that end late, frames that take too long, late latching.

#include "base/loop_support.h"

#define US UINT64_C(1000)
#define MS UINT64_C(1000000)
#define S UINT64_C(1000000000)

// A clock that moves a little with each reading and whose sleeps end late.
typedef struct rough_clock {
    uint64_t now_ns, read_ns, late_ns_min, late_ns_range, seed;
    uint64_t sleep_count, read_count;
} rough_clock;

static uint64_t rough_now(void *user) {
    rough_clock *clock = (rough_clock *)user;
    ++clock->read_count;
    return clock->now_ns += clock->read_ns;
}

static void rough_sleep(void *user, uint64_t deadline_ns) {
    rough_clock *clock = (rough_clock *)user;
    ++clock->sleep_count;
    uint64_t late_ns = clock->late_ns_min;
    if (clock->late_ns_range > 0) late_ns += test_random(&clock->seed) % clock->late_ns_range;
    if (clock->now_ns < deadline_ns + late_ns) clock->now_ns = deadline_ns + late_ns;
}

static nb_loop loop_on(rough_clock *clock, nb_loop_desc desc) {
    nb_loop loop;
    desc.clock = (nb_clock){.now_ns = rough_now, .sleep_until_ns = rough_sleep, .user = clock};
    desc.hooks.logger.level_min = NB_LOG_OFF;
    assert_int_equal(nb_loop_init(&loop, &desc), NB_OK);
    return loop;
}

static uint32_t paced_frame(nb_loop *loop) {
    assert_int_equal(nb_loop_pace(loop), NB_OK);
    assert_int_equal(nb_loop_begin(loop), NB_OK);
    nb_loop_tick tick;
    uint32_t count = 0;
    while (nb_loop_next_tick(loop, &tick)) ++count;
    assert_int_equal(nb_loop_end(loop), NB_OK);
    return count;
}

TEST(paced_frames_have_one_tick_each_whatever_the_sleep_does) {
    rough_clock clock = {.now_ns = 77, .read_ns = 40, .late_ns_min = 30 * US, .late_ns_range = 3 * MS};
    clock.seed = test_seed(__func__);
    nb_loop loop = loop_on(&clock, (nb_loop_desc){0});
    assert_int_equal(paced_frame(&loop), 0);
    for (uint64_t i = 1; i <= 10000; ++i) {
        assert_int_equal(paced_frame(&loop), 1);
        // The frame's time is the grid point itself, to the nanosecond, after any number of late waits.
        assert_int_equal(loop.now_ns, loop.pacer.anchor_ns + (i * S + 59) / 60);
        assert_true(nb_loop_is_valid(&loop));
    }
    assert_int_equal(report_of(&loop).pace_wait_count, 10000);
    assert_int_equal(report_of(&loop).pace_skip_count, 0);
}

TEST(errors_of_waits_do_not_add_up) {
    rough_clock clock = {.now_ns = S, .read_ns = 40, .late_ns_min = 60 * US};
    nb_loop loop = loop_on(&clock, (nb_loop_desc){.pace_rate = {60000, 1001}});
    for (int i = 0; i < 6001; ++i) paced_frame(&loop);
    uint64_t expected_ns = loop.pacer.anchor_ns + 6000 * S / 60000 * 1001;
    assert_true(clock.now_ns >= expected_ns && clock.now_ns - expected_ns < 2 * US); // the spin covers the late sleeps
}

TEST(spin_is_calibrated_and_below_one_percent) {
    rough_clock clock = {.now_ns = S, .read_ns = 40, .late_ns_min = 50 * US, .late_ns_range = 20 * US};
    nb_loop loop = loop_on(&clock, (nb_loop_desc){0});
    for (int i = 0; i < 600; ++i) paced_frame(&loop);
    nb_loop_report before = report_of(&loop);
    for (int i = 0; i < 6000; ++i) paced_frame(&loop);
    nb_loop_report after = report_of(&loop);
    uint64_t spin_ns = after.pace_spin_ns - before.pace_spin_ns, time_ns = after.elapsed_ns - before.elapsed_ns;
    assert_true(spin_ns > 0 && spin_ns < time_ns / 200);
    assert_true(after.pace_sleep_ns > after.elapsed_ns / 100 * 98);
    // Sleeps that end up to 5 ms late are not spun over: the cap holds.
    clock.late_ns_range = 5 * MS;
    before = after;
    for (int i = 0; i < 600; ++i) paced_frame(&loop);
    after = report_of(&loop);
    assert_true(after.pace_spin_ns - before.pace_spin_ns <= (after.elapsed_ns - before.elapsed_ns) / 200);
}

TEST(exact_clock_needs_no_spin) {
    nb_clock_manual manual;
    nb_clock_manual_init(&manual, 0);
    nb_loop loop;
    nb_loop_desc desc = {.clock = nb_clock_manual_get(&manual)};
    assert_int_equal(nb_loop_init(&loop, &desc), NB_OK);
    for (int i = 0; i < 61; ++i) paced_frame(&loop);
    nb_loop_report report = report_of(&loop);
    assert_int_equal(report.pace_spin_ns, 0);
    assert_int_equal(report.pace_error_ns_max, 0);
    assert_int_equal(nb_clock_now_ns(&desc.clock), S);
    assert_int_equal(report.tick_count, 60);
}

TEST(late_frames_skip_points_without_a_burst) {
    rough_clock clock = {.now_ns = S};
    nb_loop loop = loop_on(&clock, (nb_loop_desc){.pace_rate = {50, 1}, .tick_rate = {50, 1}});
    paced_frame(&loop);
    paced_frame(&loop);
    assert_int_equal(clock.now_ns, S + 20 * MS);
    clock.now_ns += 70 * MS; // a frame of 70 ms: points 40, 60 and 80 have passed, the time is 90
    assert_int_equal(paced_frame(&loop), 3);
    assert_int_equal(clock.now_ns, S + 90 * MS); // at once
    assert_int_equal(report_of(&loop).pace_skip_count, 2);
    assert_int_equal(paced_frame(&loop), 1);
    assert_int_equal(clock.now_ns, S + 100 * MS); // back on the grid
    assert_int_equal(paced_frame(&loop), 1);
    assert_int_equal(clock.now_ns, S + 120 * MS);
}

TEST(overlong_work_is_reported) {
    rough_clock clock = {.now_ns = S};
    test_log log = {0};
    nb_loop loop = loop_on(&clock, (nb_loop_desc){0});
    loop.hooks = nb_hooks_default();
    loop.hooks.logger = test_hooks(&log, NULL).logger;
    for (int i = 0; i < 10; ++i) {
        nb_loop_pace(&loop);
        nb_loop_begin(&loop);
        clock.now_ns += 26 * MS;
        nb_loop_end(&loop);
    }
    assert_int_equal(report_of(&loop).overrun_count, 10);
    assert_int_equal(test_log_count(&log, NB_ITEM_LOOP_OVERRUN), 1);
}

TEST(clock_that_steps_back_does_not_stop_the_frames) {
    rough_clock clock = {.now_ns = 100 * S};
    nb_loop loop = loop_on(&clock, (nb_loop_desc){0});
    for (int i = 0; i < 5; ++i) paced_frame(&loop);
    clock.now_ns = 10 * S;
    paced_frame(&loop);
    assert_true(clock.now_ns < 10 * S + 20 * MS);
    assert_int_equal(report_of(&loop).clock_backwards_count, 1);
    for (uint32_t i = 1; i < NB_LOOP_BEHIND_COUNT_MAX; ++i) assert_int_equal(paced_frame(&loop), 0);
    for (int i = 0; i < 5; ++i) assert_int_equal(paced_frame(&loop), 1);
    assert_true(clock.now_ns < 10 * S + 300 * MS);
    assert_true(nb_loop_is_valid(&loop));
}

TEST(late_latch_starts_as_late_as_the_cost_allows) {
    rough_clock clock = {.now_ns = S};
    nb_loop loop = loop_on(&clock, (nb_loop_desc){.pace_rate = {50, 1}, .tick_rate = {50, 1}, .is_late_latched = true});
    uint64_t started_ns = 0;
    for (uint64_t i = 0; i < 50; ++i) {
        nb_loop_pace(&loop);
        started_ns = clock.now_ns;
        nb_loop_begin(&loop);
        nb_loop_tick tick = {0};
        while (nb_loop_next_tick(&loop, &tick)) assert_int_equal(tick.input_until_ns, started_ns);
        clock.now_ns += 6 * MS; // the work
        nb_loop_end(&loop);
        if (i > 1) assert_true(clock.now_ns <= S + (i + 1) * 20 * MS); // never past the next point
    }
    // 20 ms less 6 ms of work less 1/16 of a period: input up to then is in the frame.
    assert_int_equal(started_ns, S + 49 * 20 * MS + 20 * MS - 6 * MS - 20 * MS / 16);
    assert_int_equal(report_of(&loop).pace_skip_count, 0);
    assert_int_equal(report_of(&loop).tick_count, 49);
}

static void do_nothing(void *user, const nb_loop_tick *tick) {
    (void)user;
    (void)tick;
}

TEST(pace_can_change_and_needs_a_clock_that_sleeps) {
    rough_clock clock = {.now_ns = S};
    nb_loop loop = loop_on(&clock, (nb_loop_desc){0});
    paced_frame(&loop);
    paced_frame(&loop);
    assert_int_equal(nb_loop_set_pace(&loop, (nb_rate){10, 1}), NB_OK); // the window is hidden
    uint64_t start_ns = clock.now_ns;
    paced_frame(&loop);
    for (int i = 0; i < 5; ++i) assert_int_equal(paced_frame(&loop), 6);
    assert_int_equal(clock.now_ns, start_ns + 500 * MS);
    loop.clock.sleep_until_ns = NULL;
    assert_int_equal(nb_loop_pace(&loop), NB_ERR_UNSUPPORTED);
    nb_loop_callbacks callbacks = {.tick_fn = do_nothing};
    assert_int_equal(nb_loop_run(&loop, &callbacks), NB_ERR_UNSUPPORTED);
}

TEST(standing_clock_does_not_hang_pacing) {
    // A broken clock whose sleep returns early and that then stands still: the spin gives up.
    rough_clock clock = {.now_ns = S, .read_ns = 0, .late_ns_min = 80 * US};
    nb_loop loop = loop_on(&clock, (nb_loop_desc){0});
    for (int i = 0; i < 10; ++i) paced_frame(&loop);
    clock.late_ns_min = 0;
    uint64_t read_count = clock.read_count;
    paced_frame(&loop);
    assert_true(clock.read_count - read_count <= 100010);
}

// The machine's own clock: only what does not depend on its speed.
TEST(real_clock_waits_are_never_early) {
    nb_loop loop;
    nb_loop_desc desc = {.pace_rate = {500, 1}};
    desc.hooks.logger.level_min = NB_LOG_OFF;
    assert_int_equal(nb_loop_init(&loop, &desc), NB_OK);
    for (int i = 0; i < 100; ++i) {
        nb_loop_pace(&loop);
        uint64_t now_ns = nb_clock_now_ns(NULL);
        nb_loop_begin(&loop);
        assert_true(loop.now_ns <= now_ns);
        nb_loop_end(&loop);
    }
    assert_true(nb_loop_is_valid(&loop));
}
