// SPDX-License-Identifier: MIT
// The fixed-step loop: exact time, the three clamps, control, re-entry, misuse.

#include "base/loop_support.h"

#include <float.h>

#define MS UINT64_C(1000000)
#define S UINT64_C(1000000000)
#define YEAR (UINT64_C(31557600) * S)

__extension__ typedef unsigned __int128 u128;

static nb_loop loop_at(nb_rate rate) {
    nb_loop loop;
    nb_loop_desc desc = {.tick_rate = rate};
    desc.hooks.logger.level_min = NB_LOG_OFF;
    assert_int_equal(nb_loop_init(&loop, &desc), NB_OK);
    return loop;
}

// One frame with a given delta; returns the ticks it ran and checks what every tick must satisfy.
static uint32_t frame(nb_loop *loop, uint64_t delta_ns) {
    assert_int_equal(nb_loop_begin_delta(loop, delta_ns), NB_OK);
    uint32_t count = 0;
    bool was_last = false;
    nb_loop_tick tick;
    while (nb_loop_next_tick(loop, &tick)) {
        assert_false(was_last);
        assert_int_equal(tick.index, nb_loop_tick_count(loop) - 1);
        assert_int_equal(tick.index_in_frame, count);
        was_last = tick.is_last;
        ++count;
    }
    assert_true(count == 0 || was_last);
    assert_int_equal(nb_loop_end(loop), NB_OK);
    return count;
}

// ticks * dt + accumulator + dropped = elapsed, in units, from the outside: at scale 1, without snapping.
static void assert_account(const nb_loop *loop) {
    nb_loop_report r = report_of(loop);
    u128 tick_units = (u128)S * loop->rate.den;
    u128 left = (u128)(r.elapsed_ns - r.excluded_ns - r.paused_ns - r.clamped_ns) * loop->rate.num;
    u128 right = ((u128)r.tick_count + r.dropped_tick_count - r.granted_tick_count) * tick_units + loop->accumulator;
    assert_true(left == right);
    assert_true(nb_loop_is_valid(loop));
}

static void assert_alpha_in_range(const nb_loop *loop) {
    assert_true(nb_loop_alpha(loop) >= 0.0 && nb_loop_alpha(loop) < 1.0);
    assert_true(nb_loop_alpha_f32(loop) >= 0.0f && nb_loop_alpha_f32(loop) < 1.0f);
}

// --- the seed's tests, in their stronger form ---

TEST(test_fixed_dt_value) {
    nb_loop loop = loop_at((nb_rate){60, 1});
    double error = nb_loop_dt_s(&loop) - 1.0 / 60.0;
    assert_true(error < DBL_EPSILON * 10.0 && error > -DBL_EPSILON * 10.0);
    assert_true(nb_loop_dt_s(&loop) == 1.0 / 60.0);
    const nb_rate rates[] = {{64, 1}, {50, 0}, {60000, 1001}, {1, 3}};
    for (size_t i = 0; i < sizeof rates / sizeof rates[0]; ++i) {
        loop = loop_at(rates[i]);
        double den = rates[i].den == 0 ? 1.0 : (double)rates[i].den;
        assert_true(nb_loop_dt_s(&loop) == den / (double)rates[i].num);
    }
}

TEST(test_accumulator_single_step) {
    nb_loop loop = loop_at((nb_rate){50, 1});
    assert_int_equal(frame(&loop, 20 * MS), 1);
    assert_true(loop.accumulator == 0 && nb_loop_alpha(&loop) == 0.0);
    // A tick of 60 Hz is no whole number of nanoseconds: one below is not enough, one above leaves its rest.
    loop = loop_at((nb_rate){60, 1});
    assert_int_equal(frame(&loop, 16666666), 0);
    assert_int_equal(frame(&loop, 1), 1);
    assert_int_equal(loop.accumulator, 16666667 * UINT64_C(60) - S);
    assert_account(&loop);
}

TEST(test_accumulator_multiple_steps) {
    nb_loop loop = loop_at((nb_rate){60, 1});
    assert_int_equal(frame(&loop, 50 * MS), 3);
    assert_int_equal(loop.accumulator, 0);
    assert_int_equal(nb_loop_time_ns(&loop), 50 * MS);
    assert_account(&loop);
}

TEST(test_accumulator_partial) {
    nb_loop loop = loop_at((nb_rate){50, 1});
    assert_int_equal(frame(&loop, 10 * MS), 0);
    assert_int_equal(loop.accumulator, 10 * MS * 50);
    assert_true(nb_loop_alpha(&loop) == 0.5);
    assert_int_equal(nb_loop_frame_count(&loop), 1);
    assert_int_equal(frame(&loop, 10 * MS), 1);
    assert_int_equal(loop.accumulator, 0);
}

TEST(test_interpolation_alpha) {
    nb_loop loop = loop_at((nb_rate){50, 1});
    frame(&loop, 5 * MS);
    assert_true(nb_loop_alpha(&loop) == 0.25 && nb_loop_alpha_f32(&loop) == 0.25f);
    // The last unit before a tick: 0.99999999996 is 1 as a float.
    loop = loop_at((nb_rate){60, 1});
    frame(&loop, 16666666);
    loop.accumulator = loop.tick_units - 1;
    assert_alpha_in_range(&loop);
    assert_true(nb_loop_alpha_f32(&loop) > 0.99999f);
    // The finest rate has the largest accumulator.
    loop = loop_at((nb_rate){1, NB_LOOP_RATE_MAX});
    loop.accumulator = loop.tick_units - 1;
    assert_alpha_in_range(&loop);
    loop.accumulator = 2 * loop.tick_units - 1; // a tick is owed
    assert_alpha_in_range(&loop);
}

TEST(test_max_frame_time_clamp) {
    for (uint64_t rest_ns = 0; rest_ns < 16666667; rest_ns += 1666666) {
        nb_loop loop = loop_at((nb_rate){60, 1});
        assert_int_equal(frame(&loop, rest_ns), 0);
        assert_int_equal(frame(&loop, S), 15);
        // The remainder survives the clamp: 15 ticks are exactly 250 ms.
        assert_int_equal(loop.accumulator, rest_ns * 60);
        nb_loop_report report = report_of(&loop);
        assert_int_equal(report.clamped_ns, 750 * MS);
        assert_int_equal(report.dropped_ns, 750 * MS);
        assert_int_equal(report.clamp_time_count, 1);
        assert_account(&loop);
    }
}

TEST(test_total_sim_time_advances) {
    const nb_rate rates[] = {{60, 1}, {64, 1}, {60000, 1001}, {7, 3}, {999983, 1000}};
    uint64_t seed = test_seed(__func__);
    for (size_t i = 0; i < sizeof rates / sizeof rates[0]; ++i) {
        nb_loop loop = loop_at(rates[i]);
        for (int n = 0; n < 2000; ++n) {
            frame(&loop, test_random(&seed) % (40 * MS));
            u128 time = (u128)nb_loop_tick_count(&loop) * rates[i].den * S / rates[i].num;
            assert_true(time == nb_loop_time_ns(&loop));
        }
        assert_account(&loop);
    }
}

TEST(test_frame_count_increments) {
    nb_loop loop = loop_at((nb_rate){60, 1});
    for (uint64_t i = 0; i < 10; ++i) frame(&loop, i * 10 * MS);
    assert_int_equal(nb_loop_frame_count(&loop), 10);
}

TEST(test_zero_frame_time) {
    nb_loop loop = loop_at((nb_rate){60, 1});
    assert_int_equal(frame(&loop, 0), 0);
    assert_true(nb_loop_alpha(&loop) == 0.0);
    frame(&loop, 10 * MS);
    double alpha = nb_loop_alpha(&loop);
    assert_int_equal(frame(&loop, 0), 0);
    assert_true(alpha > 0.5 && nb_loop_alpha(&loop) == alpha);
}

// One random act on a loop: mostly frames, sometimes a control.
static void random_act(nb_loop *loop, uint64_t *seed) {
    uint64_t choice = test_random(seed) % 100, value = test_random(seed);
    if (choice < 1) nb_loop_pause(loop);
    if (choice == 1 || choice == 2) nb_loop_resume(loop);
    if (choice == 3) nb_loop_set_scale(loop, 1 + (uint32_t)(value % 5), 1 + (uint32_t)(value / 8 % 7));
    if (choice == 4) nb_loop_step(loop, value % 4);
    if (choice == 5) nb_loop_exclude(loop, value % (30 * MS));
    if (choice == 6) nb_loop_resync(loop);
    if (choice == 7) nb_loop_set_refresh(loop, (nb_rate){(uint32_t)(value % 3) * 60, 1 + (uint32_t)(value / 8 % 2)});
    uint64_t range_ns = choice == 8 ? 20 * YEAR / 1000000 : choice < 20 ? 400 * MS : 40 * MS;
    nb_loop_begin_delta(loop, value % range_ns);
    nb_loop_tick tick;
    while (nb_loop_next_tick(loop, &tick)) continue;
    nb_loop_end(loop);
}

TEST(test_deterministic_sequence) {
    nb_loop a = loop_at((nb_rate){60, 1}), b = loop_at((nb_rate){60, 1});
    uint64_t seed_a = test_seed(__func__), seed_b = seed_a;
    uint64_t count = test_size(1000000, 1000000, 10000000);
    for (uint64_t i = 0; i < count; ++i) {
        random_act(&a, &seed_a);
        random_act(&b, &seed_b);
        double alpha_a = nb_loop_alpha(&a), alpha_b = nb_loop_alpha(&b);
        bool is_same = a.tick_count == b.tick_count && memcmp(&alpha_a, &alpha_b, sizeof alpha_a) == 0 &&
                       nb_loop_time_ns(&a) == nb_loop_time_ns(&b);
        if (!is_same || !(alpha_a >= 0.0 && alpha_a < 1.0) || !nb_loop_is_valid(&a)) fail_msg("act %zu", (size_t)i);
    }
    assert_true(nb_loop_tick_count(&a) > count / 2);
}

// --- exact time ---

// The promise for a billion frames: after any of them, ticks = floor(total * 60 / 10^9).
TEST(long_run_has_no_drift) {
    nb_loop loop = loop_at((nb_rate){60, 1});
    uint64_t seed = test_seed(__func__), total_ns = 0, count = test_size(1000000, 10000000, 1000000000), wrong = 0;
    for (uint64_t i = 0; i < count; ++i) {
        uint64_t delta_ns = test_random(&seed) % (20 * MS);
        total_ns += delta_ns;
        nb_loop_begin_delta(&loop, delta_ns);
        nb_loop_tick tick;
        while (nb_loop_next_tick(&loop, &tick)) continue;
        nb_loop_end(&loop);
        double alpha = nb_loop_alpha(&loop);
        float alpha_f32 = nb_loop_alpha_f32(&loop);
        wrong += !(alpha >= 0.0 && alpha < 1.0 && alpha_f32 >= 0.0f && alpha_f32 < 1.0f);
        if (i % 1024 == 0) wrong += loop.tick_count != (uint64_t)((u128)total_ns * 60 / S);
    }
    assert_int_equal(wrong, 0);
    assert_true(loop.tick_count == (uint64_t)((u128)total_ns * 60 / S));
    assert_account(&loop);
}

TEST(tick_times_are_exact_at_every_rate) {
    const nb_rate rates[] = {{60, 1}, {64, 1}, {50, 1}, {60000, 1001}, {120, 1}};
    for (size_t i = 0; i < sizeof rates / sizeof rates[0]; ++i) {
        nb_loop loop = loop_at(rates[i]);
        nb_loop_tick tick;
        for (int n = 0; n < 500; ++n) {
            nb_loop_begin_delta(&loop, 33 * MS + 7);
            while (nb_loop_next_tick(&loop, &tick)) {
                assert_true(tick.start_ns == (uint64_t)((u128)tick.index * rates[i].den * S / rates[i].num));
                assert_true(tick.dt_s == (double)rates[i].den / (double)rates[i].num);
            }
            nb_loop_end(&loop);
        }
        // Start times neither repeat nor jump, also after three years.
        loop.tick_count = UINT64_C(6000000000);
        nb_loop_begin_delta(&loop, 33 * MS);
        assert_true(nb_loop_next_tick(&loop, &tick));
        assert_true(tick.start_ns == (uint64_t)((u128)6000000000u * rates[i].den * S / rates[i].num));
    }
}

TEST(simulated_speed_is_the_same_at_any_frame_rate) {
    const uint64_t frame_rates[] = {1000, 144, 90, 61, 60, 59, 30, 24, 7};
    for (size_t i = 0; i < sizeof frame_rates / sizeof frame_rates[0]; ++i) {
        nb_loop loop = loop_at((nb_rate){60, 1});
        for (uint64_t n = 0, before_ns = 0; n < frame_rates[i] * 10; ++n) {
            uint64_t now_ns = (n + 1) * S / frame_rates[i];
            frame(&loop, now_ns - before_ns);
            before_ns = now_ns;
        }
        assert_int_equal(nb_loop_tick_count(&loop), 600);
    }
}

// --- L4: odd frame times ---

TEST(odd_frame_times_keep_the_account) {
    const uint64_t deltas[] = {0, 1, 250 * MS, 250 * MS + 1, S, 10 * YEAR, 0, 250 * MS, 16666667, 10 * YEAR, 3};
    nb_loop loop = loop_at((nb_rate){60, 1});
    for (int round = 0; round < 5; ++round) {
        for (size_t i = 0; i < sizeof deltas / sizeof deltas[0]; ++i) {
            assert_in_range(frame(&loop, deltas[i]), 0, 15);
            assert_account(&loop);
            assert_alpha_in_range(&loop);
        }
    }
    // Beyond the end of 64 bits: the sums wrap, time goes on, and the account still adds up.
    for (int i = 0; i < 5; ++i) assert_in_range(frame(&loop, INT64_MAX), 15, 15);
    assert_account(&loop);
    assert_int_equal(frame(&loop, UINT64_MAX), 0); // one nanosecond back
    assert_int_equal(report_of(&loop).clock_backwards_count, 1);
    assert_in_range(frame(&loop, S), 15, 15);
    assert_account(&loop);
}

TEST(gaps_are_reported_and_rate_limited) {
    test_log log = {0};
    nb_loop loop;
    nb_loop_desc desc = {.hooks = test_hooks(&log, NULL)};
    nb_loop_init(&loop, &desc);
    frame(&loop, S); // clamped, but no gap yet
    assert_int_equal(test_log_count(&log, NB_ITEM_LOOP_CLAMPED), 1);
    assert_int_equal(test_log_count(&log, NB_ITEM_LOOP_DISCONTINUITY), 0);
    for (int i = 0; i < 7; ++i) frame(&loop, 300 * MS);
    // 2.1 s of clamped frames: a record at 1 s, 2.2 s (the first frame a second later) and no more than that.
    assert_int_equal(test_log_count(&log, NB_ITEM_LOOP_CLAMPED), 2);
    assert_int_equal(report_of(&loop).clamp_time_count, 8);
    nb_loop_begin_delta(&loop, S + 1);
    assert_true(nb_loop_frame_get(&loop).is_discontinuity);
    nb_loop_end(&loop);
    assert_int_equal(test_log_count(&log, NB_ITEM_LOOP_DISCONTINUITY), 1);
    assert_int_equal(report_of(&loop).discontinuity_count, 1);
    frame(&loop, MS);
    assert_false(nb_loop_frame_get(&loop).is_discontinuity);
}

// --- clock-driven frames ---

typedef struct clocked {
    nb_clock_manual manual;
    nb_loop loop;
    test_log log;
    uint64_t tick_cost_ns, render_cost_ns; // what tick_fn and render_fn take
    uint64_t quit_at_frame;
    uint32_t tick_calls, frame_calls, render_calls, group_calls;
    nb_result inner;
    uint64_t max_ticks;
} clocked;

static void clocked_init(clocked *c, nb_loop_desc desc) {
    memset(c, 0, sizeof *c);
    nb_clock_manual_init(&c->manual, 5);
    desc.clock = nb_clock_manual_get(&c->manual);
    desc.hooks = test_hooks(&c->log, NULL);
    assert_int_equal(nb_loop_init(&c->loop, &desc), NB_OK);
}

static void clocked_tick(void *user, const nb_loop_tick *tick) {
    clocked *c = (clocked *)user;
    (void)tick;
    ++c->tick_calls;
    nb_clock_manual_advance(&c->manual, c->tick_cost_ns);
}

static void clocked_frame(void *user, const nb_loop_frame *f) {
    clocked *c = (clocked *)user;
    ++c->frame_calls;
    if (f->tick_count > c->max_ticks) c->max_ticks = f->tick_count;
}

static void clocked_render(void *user, const nb_loop_frame *f) {
    clocked *c = (clocked *)user;
    ++c->render_calls;
    nb_clock_manual_advance(&c->manual, c->render_cost_ns);
    if (f->index + 1 >= c->quit_at_frame) nb_loop_quit(&c->loop);
}

static nb_loop_callbacks clocked_callbacks(clocked *c) {
    return (nb_loop_callbacks){
        .tick_fn = clocked_tick, .frame_fn = clocked_frame, .render_fn = clocked_render, .user = c};
}

static uint32_t clock_frame(clocked *c) {
    assert_int_equal(nb_loop_begin(&c->loop), NB_OK);
    nb_loop_tick tick;
    uint32_t count = 0;
    while (nb_loop_next_tick(&c->loop, &tick)) ++count;
    assert_int_equal(nb_loop_end(&c->loop), NB_OK);
    return count;
}

TEST(first_frame_of_a_clock_gets_zero_time) {
    clocked c;
    clocked_init(&c, (nb_loop_desc){0});
    nb_clock_manual_advance(&c.manual, 10 * S); // loading
    assert_int_equal(clock_frame(&c), 0);
    assert_int_equal(report_of(&c.loop).elapsed_ns, 0);
    nb_clock_manual_advance(&c.manual, 50 * MS);
    assert_int_equal(clock_frame(&c), 3);
}

TEST(resync_leaves_a_gap_out) {
    clocked c;
    clocked_init(&c, (nb_loop_desc){0});
    clock_frame(&c);
    nb_clock_manual_advance(&c.manual, 10 * MS);
    clock_frame(&c);
    double alpha = nb_loop_alpha(&c.loop);
    nb_clock_manual_advance(&c.manual, 10 * S);
    nb_loop_resync(&c.loop);
    assert_int_equal(clock_frame(&c), 0);
    assert_true(nb_loop_alpha(&c.loop) == alpha);
    nb_loop_report report = report_of(&c.loop);
    assert_int_equal(report.excluded_ns, 10 * S);
    assert_int_equal(report.dropped_ns, 0);
    assert_int_equal(report.discontinuity_count, 1);
    assert_int_equal(test_log_count(&c.log, NB_ITEM_LOOP_DISCONTINUITY), 0); // it was asked for
    assert_account(&c.loop);
}

TEST(clock_that_steps_back_gives_zero_time) {
    clocked c;
    clocked_init(&c, (nb_loop_desc){0});
    nb_clock_manual_set(&c.manual, 10 * S);
    clock_frame(&c);
    nb_clock_manual_set(&c.manual, 4 * S);
    assert_int_equal(clock_frame(&c), 0);
    assert_int_equal(report_of(&c.loop).clock_backwards_count, 1);
    assert_int_equal(test_log_count(&c.log, NB_ITEM_LOOP_CLOCK_BACKWARDS), 1);
    // Forth again: only what lies beyond the largest reading is new.
    nb_clock_manual_set(&c.manual, 10 * S + 50 * MS);
    assert_int_equal(clock_frame(&c), 3);
    // Back for good: after eight frames time goes on from the new place.
    nb_clock_manual_set(&c.manual, 4 * S);
    for (uint32_t i = 0; i < NB_LOOP_BEHIND_COUNT_MAX; ++i) {
        assert_int_equal(report_of(&c.loop).clock_adopt_count, 0);
        nb_clock_manual_advance(&c.manual, 50 * MS);
        assert_int_equal(clock_frame(&c), 0);
    }
    assert_int_equal(report_of(&c.loop).clock_adopt_count, 1);
    nb_clock_manual_advance(&c.manual, 50 * MS);
    assert_int_equal(clock_frame(&c), 3);
    assert_int_equal(report_of(&c.loop).clock_backwards_count, 1 + NB_LOOP_BEHIND_COUNT_MAX);
    assert_int_equal(test_log_count(&c.log, NB_ITEM_LOOP_CLOCK_BACKWARDS), 2); // back, and adopted
    assert_account(&c.loop);
}

TEST(excluded_time_is_not_simulated) {
    nb_loop loop = loop_at((nb_rate){50, 1});
    nb_loop_exclude(&loop, 100 * MS); // a fence timed out
    assert_int_equal(frame(&loop, 60 * MS), 0);
    assert_int_equal(frame(&loop, 80 * MS), 2);
    assert_int_equal(report_of(&loop).excluded_ns, 100 * MS);
    nb_loop_exclude(&loop, UINT64_MAX);
    nb_loop_exclude(&loop, UINT64_MAX);
    assert_int_equal(frame(&loop, 80 * MS), 0);
    assert_account(&loop);
}

// --- the cost clamp ---

static double fps_with_costs(uint64_t tick_cost_ns, uint64_t render_cost_ns, bool is_unpaced, nb_loop_report *report) {
    clocked c;
    clocked_init(&c, (nb_loop_desc){.is_unpaced = is_unpaced});
    c.tick_cost_ns = tick_cost_ns;
    c.render_cost_ns = render_cost_ns;
    c.quit_at_frame = 3000;
    nb_loop_callbacks callbacks = clocked_callbacks(&c);
    uint64_t start_ns = nb_clock_now_ns(&c.loop.clock);
    assert_int_equal(nb_loop_run(&c.loop, &callbacks), NB_OK);
    assert_account(&c.loop);
    *report = report_of(&c.loop);
    return 3000.0 * 1e9 / (double)(nb_clock_now_ns(&c.loop.clock) - start_ns);
}

TEST(slow_ticks_keep_the_frame_rate_and_report_the_debt) {
    nb_loop_report report;
    for (int is_unpaced = 0; is_unpaced < 2; ++is_unpaced) {
        assert_true(fps_with_costs(17 * MS, MS / 100, is_unpaced, &report) >= 58.0);
        assert_true(fps_with_costs(17 * MS, 1870000, is_unpaced, &report) >= 50.0);
        // 18.87 ms for each 16.67 ms of simulated time: the debt is the difference, to within the two owed ticks.
        assert_true(report.dropped_tick_count > 0 && report.clamp_cost_count > 0);
        uint64_t behind_ns = report.elapsed_ns - report.time_ns;
        assert_true(report.dropped_ns <= behind_ns && report.dropped_ns + 34 * MS >= behind_ns);
        // 20 ms can at best make 50.
        assert_true(fps_with_costs(20 * MS, MS / 100, is_unpaced, &report) >= 49.5);
        assert_int_equal(report.tick_cost_ns, 20 * MS);
    }
}

TEST(affordable_ticks_are_all_run) {
    nb_loop_report report;
    // 30 frames a second, two ticks of 9 ms in each, is sustainable.
    double fps = fps_with_costs(9 * MS, 15 * MS, true, &report);
    assert_true(fps > 29.0);
    assert_int_equal(report.dropped_tick_count, 0);
    // One slow frame among cheap ticks is caught up with.
    clocked c;
    clocked_init(&c, (nb_loop_desc){0});
    c.tick_cost_ns = MS;
    clock_frame(&c);
    for (int i = 0; i < 20; ++i) {
        nb_clock_manual_advance(&c.manual, 17 * MS);
        clock_frame(&c);
    }
    nb_clock_manual_advance(&c.manual, 200 * MS);
    assert_int_equal(clock_frame(&c), 12);
    assert_int_equal(report_of(&c.loop).dropped_tick_count, 0);
}

TEST(alternating_due_ticks_are_carried_not_dropped) {
    // A 60 Hz display without snapping gives 0, 1 or 2 due ticks a frame. Two of 14 ms do not fit; none may be lost.
    clocked c;
    clocked_init(&c, (nb_loop_desc){.is_unpaced = true});
    uint64_t seed = test_seed(__func__);
    for (uint64_t i = 0; i < 5000; ++i) {
        nb_clock_manual_set(&c.manual, 20 * MS + i * S / 60 + test_random(&seed) % (2 * MS));
        nb_loop_begin(&c.loop);
        nb_loop_tick tick;
        while (nb_loop_next_tick(&c.loop, &tick)) nb_clock_manual_advance(&c.manual, 14 * MS);
        nb_loop_end(&c.loop);
        assert_true(nb_loop_is_valid(&c.loop));
    }
    assert_int_equal(report_of(&c.loop).dropped_tick_count, 0);
    assert_true(report_of(&c.loop).clamp_cost_count > 100);
    assert_in_range(nb_loop_tick_count(&c.loop), 4997, 4999);
}

TEST(announced_last_tick_is_the_last) {
    clocked c;
    clocked_init(&c, (nb_loop_desc){0});
    uint64_t seed = test_seed(__func__);
    for (int i = 0; i < 20000; ++i) {
        nb_clock_manual_advance(&c.manual, test_random(&seed) % (300 * MS));
        nb_loop_begin(&c.loop);
        nb_loop_tick tick;
        bool was_last = true;
        for (uint32_t n = 0; nb_loop_next_tick(&c.loop, &tick); ++n) {
            assert_true(n == 0 || !was_last);
            was_last = tick.is_last;
            nb_clock_manual_advance(&c.manual, test_random(&seed) % (test_random(&seed) % 8 == 0 ? 60 * MS : 2 * MS));
        }
        assert_true(was_last);
        nb_loop_end(&c.loop);
        assert_account(&c.loop);
    }
}

TEST(tick_count_clamp_is_independent_of_time) {
    nb_loop loop;
    test_log log = {0};
    nb_loop_desc desc = {.tick_count_max = 2, .hooks = test_hooks(&log, NULL)};
    nb_loop_init(&loop, &desc);
    assert_int_equal(frame(&loop, 50 * MS), 2); // the third is carried
    assert_int_equal(frame(&loop, 0), 1);
    assert_int_equal(frame(&loop, 105 * MS), 2); // four are too many to make up for
    assert_int_equal(loop.accumulator, 5 * MS * 60);
    nb_loop_report report = report_of(&loop);
    assert_int_equal(report.dropped_tick_count, 4);
    assert_int_equal(report.dropped_ns, 66666666);
    assert_int_equal(report.clamp_ticks_count, 2);
    assert_int_equal(test_log_count(&log, NB_ITEM_LOOP_CLAMPED), 1);
    assert_account(&loop);
}

// --- control ---

TEST(pause_keeps_the_picture_and_steps_run_exactly) {
    nb_loop loop = loop_at((nb_rate){60, 1});
    frame(&loop, 40 * MS);
    double alpha = nb_loop_alpha(&loop);
    nb_loop_pause(&loop);
    assert_int_equal(frame(&loop, 100 * MS), 0);
    assert_true(nb_loop_alpha(&loop) == alpha);
    nb_loop_step(&loop, 1);
    assert_int_equal(frame(&loop, 100 * MS), 1);
    assert_int_equal(frame(&loop, 100 * MS), 0);
    assert_true(nb_loop_alpha(&loop) == alpha);
    nb_loop_step(&loop, 20); // more than one frame may run
    assert_int_equal(frame(&loop, 0), 15);
    assert_int_equal(frame(&loop, 0), 5);
    assert_int_equal(nb_loop_run_to_tick(&loop, 30), NB_OK);
    assert_int_equal(frame(&loop, MS), 7);
    assert_int_equal(nb_loop_tick_count(&loop), 30);
    assert_int_equal(nb_loop_run_to_tick(&loop, 30), NB_OK);
    assert_int_equal(frame(&loop, MS), 0);
    assert_int_equal(nb_loop_run_to_tick(&loop, 29), NB_ERR_RANGE);
    assert_int_equal(nb_loop_step(&loop, UINT64_MAX), NB_ERR_RANGE);
    nb_loop_step(&loop, 5);
    nb_loop_resume(&loop);
    assert_int_equal(frame(&loop, 17 * MS), 1); // the pending five are forgotten
    nb_loop_report report = report_of(&loop);
    assert_int_equal(report.granted_tick_count, 28);
    assert_int_equal(report.paused_ns, 302 * MS);
    assert_account(&loop);
}

TEST(start_paused_runs_nothing) {
    nb_loop loop;
    nb_loop_desc desc = {.is_paused = true};
    nb_loop_init(&loop, &desc);
    assert_int_equal(frame(&loop, 100 * MS), 0);
    nb_loop_resume(&loop);
    assert_int_equal(frame(&loop, 100 * MS), 6);
}

TEST(scale_is_exact_and_keeps_the_account) {
    nb_loop loop = loop_at((nb_rate){60, 1});
    nb_loop_set_scale(&loop, 1, 3);
    uint64_t seed = test_seed(__func__), total_ns = 0;
    for (int i = 0; i < 10000; ++i) {
        uint64_t delta_ns = test_random(&seed) % (40 * MS);
        total_ns += delta_ns;
        frame(&loop, delta_ns);
        assert_int_equal(nb_loop_tick_count(&loop), (u128)total_ns * 60 / (3 * (u128)S));
    }
    for (uint32_t num = 1; num <= 1000; num += 37) {
        nb_loop_set_scale(&loop, num, 1 + num % 10);
        for (int i = 0; i < 50; ++i) {
            frame(&loop, test_random(&seed) % (300 * MS));
            assert_true(nb_loop_is_valid(&loop));
        }
    }
    assert_int_equal(nb_loop_set_scale(&loop, 0, 1), NB_ERR_RANGE);
    assert_int_equal(nb_loop_set_scale(&loop, 1, 0), NB_ERR_RANGE);
    assert_int_equal(nb_loop_set_scale(&loop, 1001, 1), NB_ERR_RANGE);
}

TEST(largest_numbers_do_not_overflow) {
    nb_loop loop;
    nb_loop_desc desc = {.tick_rate = {NB_LOOP_RATE_MAX, 1},
                         .frame_ns_max = NB_LOOP_FRAME_NS_LIMIT,
                         .tick_count_max = 10,
                         .refresh_rate = {NB_LOOP_RATE_MAX, NB_LOOP_RATE_MAX}};
    desc.hooks.logger.level_min = NB_LOG_OFF;
    assert_int_equal(nb_loop_init(&loop, &desc), NB_OK);
    nb_loop_set_scale(&loop, NB_LOOP_SCALE_MAX, 1);
    for (int i = 0; i < 100; ++i) {
        frame(&loop, NB_LOOP_FRAME_NS_LIMIT - (uint64_t)(i % 3));
        assert_true(nb_loop_is_valid(&loop));
    }
    desc.tick_rate = (nb_rate){1, NB_LOOP_RATE_MAX};
    nb_loop_init(&loop, &desc);
    for (int i = 0; i < 100; ++i) frame(&loop, NB_LOOP_FRAME_NS_LIMIT);
    assert_true(nb_loop_is_valid(&loop));
}

TEST(groups_tick_exactly_at_their_own_rates) {
    nb_loop loop = loop_at((nb_rate){60, 1});
    const nb_rate rates[] = {{10, 1}, {144, 1}, {60000, 1001}, {1, 2}};
    uint32_t groups[4];
    uint64_t counts[4] = {0};
    for (int i = 0; i < 4; ++i) assert_int_equal(nb_loop_group_add(&loop, rates[i], &groups[i]), NB_OK);
    uint64_t seed = test_seed(__func__);
    for (int n = 0; n < 3000; ++n) {
        frame(&loop, test_random(&seed) % (100 * MS));
        for (int i = 0; i < 4; ++i) {
            nb_loop_tick tick = {0};
            while (nb_loop_next_group_tick(&loop, groups[i], &tick)) {
                assert_int_equal(tick.index, counts[i]);
                assert_true(tick.start_ns == (uint64_t)((u128)counts[i] * rates[i].den * S / rates[i].num));
                ++counts[i];
                uint64_t due = nb_loop_tick_count(&loop) * rates[i].num / (60 * (uint64_t)rates[i].den);
                assert_int_equal(tick.is_last, counts[i] == due);
            }
            assert_int_equal(counts[i], nb_loop_tick_count(&loop) * rates[i].num / (60 * (uint64_t)rates[i].den));
        }
    }
    uint32_t group;
    for (int i = 4; i < (int)NB_LOOP_GROUP_COUNT_MAX; ++i) {
        assert_int_equal(nb_loop_group_add(&loop, rates[0], &group), NB_OK);
    }
    assert_int_equal(nb_loop_group_add(&loop, rates[0], &group), NB_FULL);
}

// --- run, quit, re-entry ---

TEST(run_calls_back_in_order_until_quit) {
    clocked c;
    clocked_init(&c, (nb_loop_desc){0});
    c.quit_at_frame = 61;
    nb_loop_callbacks callbacks = clocked_callbacks(&c);
    assert_int_equal(nb_loop_run(&c.loop, &callbacks), NB_OK);
    assert_int_equal(c.frame_calls, 61);
    assert_int_equal(c.render_calls, 61);
    assert_int_equal(c.tick_calls, 60); // the first frame has no time yet; then exactly one tick each
    assert_int_equal(c.max_ticks, 1);
    assert_false(nb_loop_is_quitting(&c.loop));
    // A quit before the run is not lost.
    nb_loop_quit(&c.loop);
    assert_int_equal(nb_loop_run(&c.loop, &callbacks), NB_OK);
    assert_int_equal(c.frame_calls, 61);
}

static void quitting_tick(void *user, const nb_loop_tick *tick) {
    clocked *c = (clocked *)user;
    ++c->tick_calls;
    if (tick->index == 3) nb_loop_quit(&c->loop);
}

static void advancing_frame(void *user, const nb_loop_frame *f) {
    clocked *c = (clocked *)user;
    (void)f;
    ++c->frame_calls;
    nb_clock_manual_advance(&c->manual, 200 * MS);
}

TEST(quit_in_a_tick_stops_after_it) {
    clocked c;
    clocked_init(&c, (nb_loop_desc){.is_unpaced = true});
    nb_loop_callbacks callbacks = {
        .tick_fn = quitting_tick, .frame_fn = advancing_frame, .render_fn = clocked_render, .user = &c};
    c.quit_at_frame = UINT64_MAX;
    assert_int_equal(nb_loop_run(&c.loop, &callbacks), NB_OK);
    assert_int_equal(c.tick_calls, 4); // of the twelve that were due
    assert_int_equal(c.frame_calls, 1);
    assert_int_equal(c.render_calls, 1);
    assert_account(&c.loop);
    // Stepped: no more ticks, and the host can see why.
    nb_loop_quit(&c.loop);
    nb_clock_manual_advance(&c.manual, 100 * MS);
    assert_int_equal(clock_frame(&c), 0);
    assert_true(nb_loop_is_quitting(&c.loop));
}

static void reentering_tick(void *user, const nb_loop_tick *tick) {
    clocked *c = (clocked *)user;
    (void)tick;
    ++c->tick_calls;
    nb_loop_tick inner;
    nb_loop_callbacks callbacks = clocked_callbacks(c);
    bool is_refused = nb_loop_begin(&c->loop) == NB_ERR_MISUSE && nb_loop_begin_delta(&c->loop, S) == NB_ERR_MISUSE &&
                      !nb_loop_next_tick(&c->loop, &inner) && nb_loop_end(&c->loop) == NB_ERR_MISUSE &&
                      nb_loop_pace(&c->loop) == NB_ERR_MISUSE && nb_loop_run(&c->loop, &callbacks) == NB_ERR_MISUSE;
    c->inner = is_refused ? NB_ERR_MISUSE : NB_OK;
}

TEST(reentry_is_refused_and_changes_nothing) {
    clocked c;
    clocked_init(&c, (nb_loop_desc){0});
    c.quit_at_frame = 5;
    nb_loop_callbacks callbacks = {.tick_fn = reentering_tick, .render_fn = clocked_render, .user = &c};
    assert_int_equal(nb_loop_run(&c.loop, &callbacks), NB_OK);
    assert_int_equal(c.inner, NB_ERR_MISUSE);
    assert_int_equal(c.tick_calls, 4);
    assert_int_equal(test_log_count(&c.log, NB_ITEM_LOOP_REENTERED), 4 * 6);
    // Stepped frames do not nest either.
    assert_int_equal(nb_loop_end(&c.loop), NB_ERR_MISUSE);
    assert_int_equal(nb_loop_begin(&c.loop), NB_OK);
    assert_int_equal(nb_loop_begin(&c.loop), NB_ERR_MISUSE);
    assert_int_equal(nb_loop_run(&c.loop, &callbacks), NB_ERR_MISUSE);
    assert_int_equal(nb_loop_end(&c.loop), NB_OK);
    assert_account(&c.loop);
}

static void count_group(void *user, uint32_t group, const nb_loop_tick *tick) {
    clocked *c = (clocked *)user;
    (void)tick;
    c->group_calls += group == 0;
}

TEST(run_serves_groups_and_needs_no_render) {
    clocked c;
    clocked_init(&c, (nb_loop_desc){0});
    uint32_t group;
    nb_loop_group_add(&c.loop, (nb_rate){120, 1}, &group);
    nb_loop_callbacks callbacks = {.tick_fn = quitting_tick, .group_fn = count_group, .user = &c};
    assert_int_equal(nb_loop_run(&c.loop, &callbacks), NB_OK);
    assert_int_equal(c.tick_calls, 4);
    assert_int_equal(c.group_calls, 6); // two after each tick; after the quit nothing is called
}

// --- misuse ---

TEST(bad_descs_are_refused) {
    test_log log = {0};
    nb_loop loop;
    const nb_loop_desc bad[] = {
        {.tick_rate = {NB_LOOP_RATE_MAX + 1, 1}},
        {.tick_rate = {60, NB_LOOP_RATE_MAX + 1}},
        {.refresh_rate = {1, 2}},
        {.pace_rate = {UINT32_MAX, 1}},
        {.frame_ns_max = UINT64_MAX},
        {.is_refresh_estimated = true},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; ++i) {
        nb_loop_desc desc = bad[i];
        desc.hooks = test_hooks(&log, NULL);
        assert_true(nb_loop_init(&loop, &desc) < 0);
        assert_int_equal(test_log_count(&log, NB_ITEM_LOOP_ARGUMENT), i + 1);
    }
    nb_loop_desc desc = nb_loop_desc_default();
    assert_int_equal(nb_loop_init(&loop, &desc), NB_OK);
    nb_loop zero;
    assert_int_equal(nb_loop_init(&zero, NULL), NB_OK);
    assert_int_equal(loop.tick_count_max, zero.tick_count_max);
    assert_int_equal(loop.tick_budget_ns, zero.tick_budget_ns);
    assert_int_equal(loop.frame_ns_max, zero.frame_ns_max);
    assert_int_equal(loop.gap_ns, zero.gap_ns);
    assert_memory_equal(&loop.pacer.rate, &zero.pacer.rate, sizeof loop.pacer.rate);
}

TEST(bad_loops_have_defined_results) {
    nb_loop zeroed = {0};
    nb_loop *bad[] = {NULL, &zeroed};
    nb_loop_tick tick;
    uint32_t group;
    nb_loop_callbacks callbacks = {0};
    for (int i = 0; i < 2; ++i) {
        nb_loop *loop = bad[i];
        assert_int_equal(nb_loop_begin(loop), NB_ERR_MISUSE);
        assert_int_equal(nb_loop_begin_delta(loop, 1), NB_ERR_MISUSE);
        assert_false(nb_loop_next_tick(loop, &tick));
        assert_false(nb_loop_next_group_tick(loop, 0, &tick));
        assert_int_equal(nb_loop_end(loop), NB_ERR_MISUSE);
        assert_int_equal(nb_loop_pace(loop), NB_ERR_MISUSE);
        assert_int_equal(nb_loop_run(loop, &callbacks), NB_ERR_MISUSE);
        assert_int_equal(nb_loop_quit(loop), NB_ERR_MISUSE);
        assert_false(nb_loop_is_quitting(loop));
        assert_true(nb_loop_alpha(loop) == 0.0 && nb_loop_alpha_f32(loop) == 0.0f && nb_loop_dt_s(loop) == 0.0);
        assert_int_equal(nb_loop_tick_count(loop) + nb_loop_frame_count(loop) + nb_loop_time_ns(loop), 0);
        assert_int_equal(nb_loop_pause(loop), NB_ERR_MISUSE);
        assert_int_equal(nb_loop_resume(loop), NB_ERR_MISUSE);
        assert_int_equal(nb_loop_step(loop, 1), NB_ERR_MISUSE);
        assert_int_equal(nb_loop_run_to_tick(loop, 1), NB_ERR_MISUSE);
        assert_int_equal(nb_loop_set_scale(loop, 1, 1), NB_ERR_MISUSE);
        assert_int_equal(nb_loop_resync(loop), NB_ERR_MISUSE);
        assert_int_equal(nb_loop_exclude(loop, 1), NB_ERR_MISUSE);
        assert_int_equal(nb_loop_set_refresh(loop, (nb_rate){60, 1}), NB_ERR_MISUSE);
        assert_int_equal(nb_loop_set_pace(loop, (nb_rate){60, 1}), NB_ERR_MISUSE);
        assert_int_equal(nb_loop_group_add(loop, (nb_rate){60, 1}, &group), NB_ERR_MISUSE);
        nb_loop_report report = nb_loop_report_get(loop);
        assert_int_equal(report.frame_count + report.tick_count + report.time_ns + report.elapsed_ns, 0);
        assert_int_equal(nb_loop_frame_get(loop).index, 0);
        assert_false(nb_loop_is_valid(loop));
    }
    assert_int_equal(nb_loop_init(NULL, NULL), NB_ERR_MISUSE);
}

TEST(bad_arguments_have_defined_results) {
    nb_loop loop = loop_at((nb_rate){60, 1});
    nb_loop_tick tick;
    uint32_t group = 77;
    assert_false(nb_loop_next_tick(&loop, &tick)); // no frame
    nb_loop_begin_delta(&loop, 100 * MS);
    assert_false(nb_loop_next_tick(&loop, NULL));
    assert_int_equal(nb_loop_tick_count(&loop), 0);
    nb_loop_end(&loop); // a host that runs no ticks drops them
    assert_int_equal(report_of(&loop).dropped_tick_count, 6);
    assert_false(nb_loop_next_group_tick(&loop, 0, &tick));
    assert_int_equal(nb_loop_group_add(&loop, (nb_rate){0, 0}, &group), NB_ERR_RANGE);
    assert_int_equal(nb_loop_group_add(&loop, (nb_rate){60, 1}, NULL), NB_ERR_MISUSE);
    assert_int_equal(group, 77);
    assert_int_equal(nb_loop_set_pace(&loop, (nb_rate){0, 1}), NB_ERR_RANGE);
    assert_int_equal(nb_loop_set_refresh(&loop, (nb_rate){1, 2}), NB_ERR_RANGE);
    assert_int_equal(nb_loop_run(&loop, NULL), NB_ERR_MISUSE);
    assert_account(&loop);
}

// --- another place in time ---

TEST(tick_can_be_moved) {
    nb_loop loop;
    nb_loop_tick tick;
    assert_int_equal(nb_loop_init(&loop, NULL), NB_OK);
    for (uint64_t to = 1000; to <= 2000; to += 500) {
        assert_int_equal(nb_loop_set_tick(&loop, to), NB_OK);
        assert_int_equal(nb_loop_tick_count(&loop), to);
        assert_int_equal(nb_loop_begin_delta(&loop, 2 * UINT64_C(16666667)), NB_OK);
        for (uint64_t i = 0; i < 2; ++i) {
            assert_true(nb_loop_next_tick(&loop, &tick));
            nb_loop_tick same = nb_loop_tick_at(&loop, to + i);
            assert_int_equal(tick.index, to + i);
            assert_int_equal(tick.start_ns, same.start_ns);
            assert_true(tick.dt_s == same.dt_s);
        }
        assert_false(nb_loop_next_tick(&loop, &tick));
        assert_int_equal(nb_loop_end(&loop), NB_OK);
        assert_true(nb_loop_is_valid(&loop));
    }
    assert_int_equal(nb_loop_report_get(&loop).tick_count, 6); // that is how many ran
    assert_int_equal(nb_loop_time_ns(&loop), nb_loop_tick_at(&loop, 2002).start_ns);
    // Back, and on by request: from there.
    assert_int_equal(nb_loop_set_tick(&loop, 5), NB_OK);
    assert_int_equal(nb_loop_run_to_tick(&loop, 4), NB_ERR_RANGE);
    assert_int_equal(nb_loop_run_to_tick(&loop, 7), NB_OK);
    assert_int_equal(nb_loop_begin_delta(&loop, 0), NB_OK);
    for (uint64_t i = 5; i < 7; ++i) {
        assert_true(nb_loop_next_tick(&loop, &tick));
        assert_int_equal(tick.index, i);
    }
    assert_false(nb_loop_next_tick(&loop, &tick));
    assert_int_equal(nb_loop_end(&loop), NB_OK);
    // What was asked for is forgotten where time is moved.
    assert_int_equal(nb_loop_step(&loop, 3), NB_OK);
    assert_int_equal(nb_loop_set_tick(&loop, NB_TICK_COUNT_MAX), NB_OK);
    assert_int_equal(nb_loop_begin_delta(&loop, 0), NB_OK);
    assert_false(nb_loop_next_tick(&loop, &tick));
    assert_int_equal(nb_loop_end(&loop), NB_OK);
    assert_int_equal(nb_loop_step(&loop, 1), NB_ERR_RANGE);
    assert_int_equal(nb_loop_run_to_tick(&loop, NB_TICK_COUNT_MAX + 1), NB_ERR_RANGE);
    // No index is larger, and where one is refused nothing moves and nothing is forgotten.
    assert_int_equal(nb_loop_set_tick(&loop, NB_TICK_COUNT_MAX - 1), NB_OK);
    assert_int_equal(nb_loop_step(&loop, 2), NB_ERR_RANGE);
    assert_int_equal(nb_loop_step(&loop, 1), NB_OK);
    assert_int_equal(nb_loop_set_tick(&loop, NB_TICK_COUNT_MAX + 1), NB_ERR_RANGE);
    assert_int_equal(nb_loop_set_tick(&loop, UINT64_MAX), NB_ERR_RANGE);
    assert_int_equal(nb_loop_begin_delta(&loop, 0), NB_OK);
    assert_true(nb_loop_next_tick(&loop, &tick));
    assert_int_equal(tick.index, NB_TICK_COUNT_MAX - 1);
    assert_int_equal(nb_loop_end(&loop), NB_OK);
    assert_true(nb_loop_is_valid(&loop));
}
