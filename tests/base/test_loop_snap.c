// SPDX-License-Identifier: MIT
// Refresh snapping: the number of ticks in a frame of a display does not depend on the noise of the clock, and the
// snapped time stays with the clock's.

#include "support/support.h"

#include "nebula/loop.h"

#define MS UINT64_C(1000000)
#define S UINT64_C(1000000000)

__extension__ typedef unsigned __int128 u128;

// A display that shows frames on its own grid, seen through a noisy clock.
typedef struct display {
    nb_rate rate;
    uint64_t noise_ns; // each reading is off by up to this, either way
    uint64_t seed;
    uint64_t refresh_count; // refreshes shown
    uint64_t seen_ns;       // the newest reading
} display;

// The delta a loop measures after `count` more refreshes.
static uint64_t display_next(display *d, uint64_t count) {
    d->refresh_count += count;
    uint64_t noise_ns = d->noise_ns == 0 ? 0 : test_random(&d->seed) % (2 * d->noise_ns + 1);
    // Computed from the count, so that a period that is no whole number of nanoseconds does not drift.
    uint64_t time_ns = S + (uint64_t)((u128)d->refresh_count * d->rate.den * S / d->rate.num) + noise_ns;
    uint64_t delta_ns = d->seen_ns == 0 ? 0 : time_ns - d->seen_ns;
    d->seen_ns = time_ns;
    return delta_ns;
}

static nb_loop loop_with(nb_rate tick_rate, nb_rate refresh_rate) {
    nb_loop loop;
    nb_loop_desc desc = {.tick_rate = tick_rate, .refresh_rate = refresh_rate};
    assert_int_equal(nb_loop_init(&loop, &desc), NB_OK);
    return loop;
}

static uint32_t frame(nb_loop *loop, uint64_t delta_ns) {
    nb_loop_begin_delta(loop, delta_ns);
    nb_loop_tick tick;
    uint32_t count = 0;
    while (nb_loop_next_tick(loop, &tick)) ++count;
    nb_loop_end(loop);
    return count;
}

static nb_loop_report report_of(const nb_loop *loop) {
    nb_loop_report report = nb_loop_report_get(loop);
    assert_int_equal(report.frame_count, nb_loop_frame_count(loop));
    return report;
}

// Frames by their number of ticks; index 3 stands for more.
typedef struct histogram {
    uint64_t frames[4];
    int64_t offset_ns_max; // largest distance between snapped time and the clock
} histogram;

static histogram show(nb_loop *loop, display *d, uint64_t count) {
    histogram h = {0};
    if (d->seen_ns == 0) frame(loop, display_next(d, 0));
    for (uint64_t i = 0; i < count; ++i) {
        uint32_t ticks = frame(loop, display_next(d, 1));
        ++h.frames[ticks < 3 ? ticks : 3];
        int64_t offset_ns = report_of(loop).snap_offset_ns;
        if (offset_ns < 0) offset_ns = -offset_ns;
        if (offset_ns > h.offset_ns_max) h.offset_ns_max = offset_ns;
        if (i % 1000 == 0) assert_true(nb_loop_is_valid(loop));
    }
    assert_true(nb_loop_is_valid(loop));
    return h;
}

TEST(noisy_display_at_the_tick_rate_has_no_wrong_frame) {
    uint64_t count = test_size(1000000, 1000000, 10000000);
    nb_loop loop = loop_with((nb_rate){60, 1}, (nb_rate){60, 1});
    display d = {.rate = {60, 1}, .noise_ns = MS, .seed = test_seed(__func__)};
    histogram h = show(&loop, &d, count);
    assert_int_equal(h.frames[1], count);
    // Bounded by 3/4 of a refresh by construction; the noise alone is 2 ms. No drift: the clock is still that near.
    assert_true(h.offset_ns_max <= (int64_t)(2 * MS));
    assert_true(report_of(&loop).is_snapping);
}

TEST(without_snapping_the_same_display_is_wrong_often) {
    nb_loop loop = loop_with((nb_rate){60, 1}, (nb_rate){0, 0});
    display noisy = {.rate = {60, 1}, .noise_ns = MS, .seed = test_seed(__func__)};
    assert_true(show(&loop, &noisy, 10000).frames[1] < 7000);
    // A perfect clock does not help: the period is no whole number of nanoseconds.
    loop = loop_with((nb_rate){60, 1}, (nb_rate){0, 0});
    display perfect = {.rate = {60, 1}};
    assert_true(show(&loop, &perfect, 9999).frames[1] < 7000);
    loop = loop_with((nb_rate){60, 1}, (nb_rate){60, 1});
    display again = {.rate = {60, 1}};
    assert_int_equal(show(&loop, &again, 9999).frames[1], 9999);
}

TEST(rates_apart_by_a_thousandth_give_one_odd_frame_in_a_thousand) {
    uint64_t seed = test_seed(__func__);
    // The display runs at 59.94 Hz, known or believed to be 60: a tick more in every thousandth frame, never one less.
    const nb_rate told[] = {{60000, 1001}, {60, 1}};
    for (int i = 0; i < 2; ++i) {
        nb_loop loop = loop_with((nb_rate){60, 1}, told[i]);
        display d = {.rate = {60000, 1001}, .noise_ns = MS, .seed = seed};
        histogram h = show(&loop, &d, 100000);
        assert_int_equal(h.frames[0] + h.frames[3], 0);
        assert_in_range(h.frames[2], 98, 101);
        assert_true(h.offset_ns_max <= (int64_t)(S * 1001 / 60000 * 3 / 4));
        assert_true(report_of(&loop).is_snapping);
    }
    // A display slightly fast: a tick less, never one more.
    nb_loop loop = loop_with((nb_rate){60, 1}, (nb_rate){60, 1});
    display d = {.rate = {60060, 1000}, .noise_ns = MS, .seed = seed};
    histogram h = show(&loop, &d, 100000);
    assert_int_equal(h.frames[2] + h.frames[3], 0);
    assert_in_range(h.frames[0], 98, 101);
    // Ticks at the display's own odd rate: none.
    loop = loop_with((nb_rate){60000, 1001}, (nb_rate){60000, 1001});
    display same = {.rate = {60000, 1001}, .noise_ns = MS, .seed = seed};
    assert_int_equal(show(&loop, &same, 100000).frames[1], 100000);
}

TEST(other_displays_have_their_regular_pattern) {
    uint64_t seed = test_seed(__func__);
    nb_loop loop = loop_with((nb_rate){60, 1}, (nb_rate){30, 1});
    display d30 = {.rate = {30, 1}, .noise_ns = MS, .seed = seed};
    assert_int_equal(show(&loop, &d30, 100000).frames[2], 100000);

    loop = loop_with((nb_rate){60, 1}, (nb_rate){120, 1});
    display d120 = {.rate = {120, 1}, .noise_ns = MS, .seed = seed};
    histogram h = show(&loop, &d120, 100000);
    assert_true(h.frames[0] == 50000 && h.frames[1] == 50000);

    // 5 ticks in 12 frames of 144 Hz, and the pattern repeats exactly.
    loop = loop_with((nb_rate){60, 1}, (nb_rate){144, 1});
    display d144 = {.rate = {144, 1}, .noise_ns = MS, .seed = seed};
    h = show(&loop, &d144, 120000);
    assert_true(h.frames[1] == 50000 && h.frames[0] == 70000);
    assert_true(report_of(&loop).is_snapping);
}

TEST(missed_refreshes_are_caught_up_exactly) {
    nb_loop loop = loop_with((nb_rate){60, 1}, (nb_rate){60, 1});
    display d = {.rate = {60, 1}, .noise_ns = MS, .seed = test_seed(__func__)};
    frame(&loop, display_next(&d, 0));
    uint64_t seed = d.seed;
    for (int i = 0; i < 100000; ++i) {
        uint64_t count = test_random(&seed) % 20 == 0 ? 2 + test_random(&seed) % 4 : 1;
        assert_int_equal(frame(&loop, display_next(&d, count)), count);
    }
    assert_int_equal(nb_loop_tick_count(&loop), d.refresh_count);
    assert_true(nb_loop_is_valid(&loop));
}

TEST(frame_far_off_the_grid_does_not_disturb_the_next) {
    // One frame in 50 is shown 5 ms late and the one after it is that much shorter.
    nb_loop loop = loop_with((nb_rate){60, 1}, (nb_rate){60, 1});
    display d = {.rate = {60, 1}, .noise_ns = MS, .seed = test_seed(__func__)};
    frame(&loop, display_next(&d, 0));
    for (int i = 0; i < 10000; ++i) {
        uint64_t delta_ns = display_next(&d, 1), late_ns = i % 50 == 0 ? 5 * MS : 0;
        uint64_t early_ns = i % 50 == 1 ? 5 * MS : 0;
        assert_int_equal(frame(&loop, delta_ns + late_ns - early_ns), 1);
    }
}

TEST(variable_refresh_is_left_alone) {
    nb_loop loop = loop_with((nb_rate){60, 1}, (nb_rate){60, 1});
    uint64_t seed = test_seed(__func__), total_ns = 0, snapped_count = 0;
    for (int i = 0; i < 20000; ++i) {
        uint64_t delta_ns = 12 * MS + test_random(&seed) % (14 * MS);
        total_ns += delta_ns;
        frame(&loop, delta_ns);
        snapped_count += report_of(&loop).is_snapping;
        if (!report_of(&loop).is_snapping && i > 200) {
            assert_int_equal(nb_loop_tick_count(&loop), total_ns * 60 / S);
        }
    }
    assert_true(snapped_count < 500); // a window at the start, and chance
    assert_true(nb_loop_is_valid(&loop));
    // 58 frames a second is near 60 in every single frame, and still not 60.
    loop = loop_with((nb_rate){60, 1}, (nb_rate){60, 1});
    display d58 = {.rate = {58, 1}, .noise_ns = MS, .seed = seed};
    show(&loop, &d58, 200);
    assert_false(report_of(&loop).is_snapping);
    // No display at all.
    loop = loop_with((nb_rate){60, 1}, (nb_rate){60, 1});
    display unlimited = {.rate = {1000, 1}, .noise_ns = MS / 4, .seed = seed};
    show(&loop, &unlimited, 2000);
    assert_false(report_of(&loop).is_snapping);
    assert_in_range(nb_loop_tick_count(&loop), 119, 120);
}

TEST(snapping_returns_when_the_display_is_steady_again) {
    nb_loop loop = loop_with((nb_rate){60, 1}, (nb_rate){60, 1});
    display d = {.rate = {58, 1}, .noise_ns = MS, .seed = test_seed(__func__)};
    show(&loop, &d, 200);
    assert_false(report_of(&loop).is_snapping);
    display steady = {.rate = {60, 1}, .noise_ns = MS, .seed = d.seed};
    show(&loop, &steady, 200);
    assert_true(report_of(&loop).is_snapping);
    assert_int_equal(show(&loop, &steady, 10000).frames[1], 10000);
}

TEST(refresh_can_change_at_any_time) {
    nb_loop loop = loop_with((nb_rate){60, 1}, (nb_rate){60, 1});
    uint64_t seed = test_seed(__func__);
    const nb_rate rates[] = {{60, 1}, {144, 1}, {60000, 1001}, {30, 1}, {0, 0}, {75, 1}};
    for (int i = 0; i < 600; ++i) {
        nb_rate rate = rates[test_random(&seed) % 6];
        assert_int_equal(nb_loop_set_refresh(&loop, rate), NB_OK);
        display d = {.rate = {rate.num == 0 ? 50 : rate.num, rate.num == 0 ? 1 : rate.den}, .noise_ns = MS};
        d.seed = seed;
        show(&loop, &d, test_random(&seed) % 200);
    }
    nb_loop_report report = report_of(&loop);
    uint64_t behind_ns = report.elapsed_ns - report.time_ns;
    assert_true(behind_ns <= 60 * MS && report.dropped_ns == 0);
}

TEST(estimated_rate_is_found_and_used) {
    const nb_rate rates[] = {{60, 1}, {60000, 1001}, {144, 1}, {75, 1}, {30, 1}, {57300, 1000}};
    uint64_t seed = test_seed(__func__);
    static nb_frame_stats stats;
    for (size_t i = 0; i < sizeof rates / sizeof rates[0]; ++i) {
        nb_frame_stats_init(&stats);
        nb_loop loop;
        nb_loop_desc desc = {.is_refresh_estimated = true, .stats = &stats};
        assert_int_equal(nb_loop_init(&loop, &desc), NB_OK);
        display d = {.rate = rates[i], .noise_ns = MS, .seed = seed};
        show(&loop, &d, 600);
        nb_loop_report report = report_of(&loop);
        assert_true(report.is_snapping);
        double found = (double)report.refresh_rate.num / (double)report.refresh_rate.den;
        double real = (double)rates[i].num / (double)rates[i].den;
        assert_true(found > real * 0.9994 && found < real * 1.0006);
        if (i < 2) assert_memory_equal(&report.refresh_rate, &rates[i], sizeof rates[i]);
        if (i == 0) assert_int_equal(show(&loop, &d, 100000).frames[1], 100000);
    }
    // Nothing steady: nothing is found.
    nb_frame_stats_init(&stats);
    nb_loop loop;
    nb_loop_desc desc = {.is_refresh_estimated = true, .stats = &stats};
    nb_loop_init(&loop, &desc);
    for (int i = 0; i < 5000; ++i) {
        frame(&loop, 12 * MS + test_random(&seed) % (8 * MS));
        assert_false(report_of(&loop).is_snapping);
    }
}

// Snapped, paused, clamped, excluded, scaled: the account of time holds and the offset stays within its bound.
TEST(random_use_keeps_the_bound) {
    nb_loop loop = loop_with((nb_rate){60, 1}, (nb_rate){75, 1});
    loop.hooks.logger.level_min = NB_LOG_OFF;
    uint64_t seed = test_seed(__func__), count = test_size(200000, 2000000, 20000000);
    for (uint64_t i = 0; i < count; ++i) {
        uint64_t choice = test_random(&seed) % 200, value = test_random(&seed);
        if (choice == 0) nb_loop_pause(&loop);
        if (choice == 1) nb_loop_resume(&loop);
        if (choice == 2) nb_loop_exclude(&loop, value % (20 * MS));
        if (choice == 3) nb_loop_set_scale(&loop, 1 + (uint32_t)(value % 3), 1 + (uint32_t)(value / 4 % 3));
        frame(&loop, choice == 4 ? value % S : S / 75 - MS + value % (2 * MS));
        int64_t offset_ns = report_of(&loop).snap_offset_ns;
        bool is_near = offset_ns <= (int64_t)(S / 100) && offset_ns >= -(int64_t)(S / 100);
        if (!is_near || !nb_loop_is_valid(&loop)) fail_msg("frame %zu", (size_t)i);
    }
}
