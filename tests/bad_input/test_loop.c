// SPDX-License-Identifier: MIT
// nebula/loop.h: loops that are none, numbers out of bounds, calls in the wrong place.

#include "bad_input/bad_input.h"

#include "nebula/loop.h"

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

static uint64_t stopped_clock(void *user) {
    (void)user;
    return 5;
}

static void never_called(void *user, const nb_loop_tick *tick) {
    (void)user;
    (void)tick;
    abort();
}

static void loop_open(nb_loop *loop) {
    nb_loop_desc desc = {.hooks = bad_hooks(NULL)};
    accepted(NB_OK, nb_loop_init(loop, &desc));
}

// Half a second of frames has 30 ticks, whatever was asked of the loop before.
static void loop_still_works(nb_loop *loop) {
    uint64_t first_tick = nb_loop_tick_count(loop);
    for (int frame = 0; frame < 5; ++frame) {
        nb_loop_tick tick;
        accepted(NB_OK, nb_loop_begin_delta(loop, 100000000));
        while (nb_loop_next_tick(loop, &tick)) assert_int_equal(tick.index, nb_loop_tick_count(loop) - 1);
        accepted(NB_OK, nb_loop_end(loop));
    }
    assert_int_equal(nb_loop_tick_count(loop) - first_tick, 30);
    accepted(true, nb_loop_is_valid(loop));
}

TEST(loop_refuses_descs_out_of_bounds) {
    const nb_rate fast = {NB_LOOP_RATE_MAX + 1, 1}, slow = {1, NB_LOOP_RATE_MAX + 1}, below_1_hz = {1, 2};
    nb_loop_desc descs[7];
    for (size_t i = 0; i < COUNT_OF(descs); ++i) descs[i] = (nb_loop_desc){.hooks = bad_hooks(NULL)};
    descs[0].tick_rate = fast;
    descs[1].tick_rate = slow;
    descs[2].pace_rate = fast;
    descs[3].refresh_rate = slow;
    descs[4].refresh_rate = below_1_hz;
    descs[5].frame_ns_max = NB_LOOP_FRAME_NS_LIMIT + 1;
    descs[6].frame_ns_max = UINT64_MAX;
    nb_loop loop;
    memset(&loop, 0x5A, sizeof loop);
    for (size_t i = 0; i < COUNT_OF(descs); ++i) {
        refused(NB_ERR_RANGE, NB_ITEM_LOOP_ARGUMENT, nb_loop_init(&loop, &descs[i]));
    }
    nb_loop_desc blind = {.is_refresh_estimated = true, .hooks = bad_hooks(NULL)}; // without stats to measure with
    refused(NB_ERR_MISUSE, NB_ITEM_LOOP_ARGUMENT, nb_loop_init(&loop, &blind));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_loop_init(NULL, NULL));
    assert_untouched(loop, 0x5A);
}

// Everything that only takes a loop.
static nb_result (*const commands[])(nb_loop *) = {nb_loop_begin, nb_loop_end,    nb_loop_pace,
                                                   nb_loop_pause, nb_loop_resume, nb_loop_resync};
static uint64_t (*const counts[])(const nb_loop *) = {nb_loop_tick_count, nb_loop_frame_count, nb_loop_time_ns};
static double (*const numbers[])(const nb_loop *) = {nb_loop_alpha, nb_loop_dt_s};

static void assert_no_report(const nb_loop_report *report) {
    // Up to here there is no padding.
    assert_true(is_untouched(report, offsetof(nb_loop_report, is_snapping), 0));
    assert_true(!report->is_snapping && report->snap_offset_ns == 0);
}

static void bad_loop_is_refused_everywhere(nb_loop *loop, nb_log_item item) {
    const nb_loop_callbacks callbacks = {.tick_fn = never_called};
    nb_loop_tick tick;
    GIVES(DEFAULT_LOGGER, item, NB_ERR_MISUSE, nb_loop_set_tick(loop, 5));
    LISTENED(DEFAULT_LOGGER, item, 1, tick = nb_loop_tick_at(loop, 5));
    assert_int_equal(tick.index + tick.start_ns, 0);
    nb_loop_report report;
    nb_loop_frame frame;
    uint32_t group = 0x5A;
    memset(&tick, 0x5A, sizeof tick);
    for (size_t i = 0; i < COUNT_OF(commands); ++i) refused_default(NB_ERR_MISUSE, item, commands[i](loop));
    for (size_t i = 0; i < COUNT_OF(counts); ++i) refused_default(0, item, counts[i](loop));
    for (size_t i = 0; i < COUNT_OF(numbers); ++i) refused_default(0, item, numbers[i](loop));
    refused_default(0, item, nb_loop_alpha_f32(loop));
    refused_default(NB_ERR_MISUSE, item, nb_loop_begin_delta(loop, 1));
    refused_default(false, item, nb_loop_next_tick(loop, &tick));
    refused_default(false, item, nb_loop_next_group_tick(loop, 0, &tick));
    refused_default(NB_ERR_MISUSE, item, nb_loop_run(loop, &callbacks));
    accepted(NB_ERR_MISUSE, nb_loop_quit(loop)); // a signal handler may call it, so it reports nothing
    refused_default(false, item, nb_loop_is_quitting(loop));
    refused_default(NB_ERR_MISUSE, item, nb_loop_hold(loop, true));
    refused_default(NB_ERR_MISUSE, item, nb_loop_step(loop, 1));
    refused_default(NB_ERR_MISUSE, item, nb_loop_run_to_tick(loop, 1));
    refused_default(NB_ERR_MISUSE, item, nb_loop_set_scale(loop, 1, 1));
    refused_default(NB_ERR_MISUSE, item, nb_loop_exclude(loop, 1));
    refused_default(NB_ERR_MISUSE, item, nb_loop_set_refresh(loop, (nb_rate){60, 1}));
    refused_default(NB_ERR_MISUSE, item, nb_loop_set_pace(loop, (nb_rate){60, 1}));
    refused_default(NB_ERR_MISUSE, item, nb_loop_group_add(loop, (nb_rate){10, 1}, &group));
    reported_default(item, report = nb_loop_report_get(loop));
    assert_no_report(&report);
    refused_default(false, item, nb_loop_is_valid(loop));
    reported_default(item, frame = nb_loop_frame_get(loop));
    assert_true(frame.now_ns == 0 && frame.delta_ns == 0 && frame.alpha == 0.0 && !frame.is_discontinuity);
    assert_untouched(tick, 0x5A);
    assert_int_equal(group, 0x5A);
}

TEST(loop_functions_refuse_null_and_uninitialised_loops) {
    nb_loop zeroed, garbage;
    memset(&zeroed, 0, sizeof zeroed);
    memset(&garbage, 0xA5, sizeof garbage);
    bad_loop_is_refused_everywhere(NULL, NB_ITEM_BASE_NULL);
    bad_loop_is_refused_everywhere(&zeroed, NB_ITEM_LOOP_ARGUMENT);
    bad_loop_is_refused_everywhere(&garbage, NB_ITEM_LOOP_ARGUMENT);
    assert_zero(zeroed);
    assert_untouched(garbage, 0xA5);
}

TEST(loop_refuses_calls_in_the_wrong_place) {
    const nb_loop_callbacks callbacks = {.tick_fn = never_called};
    nb_loop loop;
    nb_loop_tick tick;
    memset(&tick, 0x5A, sizeof tick);
    loop_open(&loop);
    refused(NB_ERR_MISUSE, NB_ITEM_LOOP_REENTERED, nb_loop_end(&loop));
    refused(false, NB_ITEM_LOOP_REENTERED, nb_loop_next_tick(&loop, &tick));
    accepted(NB_OK, nb_loop_begin_delta(&loop, 100000000));
    refused(NB_ERR_MISUSE, NB_ITEM_LOOP_REENTERED, nb_loop_begin(&loop));
    refused(NB_ERR_MISUSE, NB_ITEM_LOOP_REENTERED, nb_loop_begin_delta(&loop, 100000000));
    refused(NB_ERR_MISUSE, NB_ITEM_LOOP_REENTERED, nb_loop_pace(&loop));
    refused(NB_ERR_MISUSE, NB_ITEM_LOOP_REENTERED, nb_loop_run(&loop, &callbacks));
    refused(false, NB_ITEM_LOOP_ARGUMENT, nb_loop_next_tick(&loop, NULL));
    assert_untouched(tick, 0x5A);
    int tick_count = 0;
    while (nb_loop_next_tick(&loop, &tick)) ++tick_count;
    assert_int_equal(tick_count, 6); // the refused calls took none of them
    accepted(NB_OK, nb_loop_end(&loop));
    loop_still_works(&loop);
}

TEST(loop_refuses_numbers_out_of_bounds) {
    nb_loop loop;
    nb_loop_report before, after;
    loop_open(&loop);
    loop_still_works(&loop);
    silent(before = nb_loop_report_get(&loop));
    refused(NB_ERR_RANGE, NB_ITEM_LOOP_ARGUMENT, nb_loop_step(&loop, UINT64_MAX));
    refused(NB_ERR_RANGE, NB_ITEM_LOOP_ARGUMENT, nb_loop_run_to_tick(&loop, 29));
    refused(NB_ERR_RANGE, NB_ITEM_LOOP_ARGUMENT, nb_loop_set_scale(&loop, 0, 1));
    refused(NB_ERR_RANGE, NB_ITEM_LOOP_ARGUMENT, nb_loop_set_scale(&loop, 1, 0));
    refused(NB_ERR_RANGE, NB_ITEM_LOOP_ARGUMENT, nb_loop_set_scale(&loop, NB_LOOP_SCALE_MAX + 1, 1));
    refused(NB_ERR_RANGE, NB_ITEM_LOOP_ARGUMENT, nb_loop_set_scale(&loop, 1, UINT32_MAX));
    refused(NB_ERR_RANGE, NB_ITEM_LOOP_ARGUMENT, nb_loop_set_refresh(&loop, (nb_rate){NB_LOOP_RATE_MAX + 1, 1}));
    refused(NB_ERR_RANGE, NB_ITEM_LOOP_ARGUMENT, nb_loop_set_refresh(&loop, (nb_rate){1, 2}));
    refused(NB_ERR_RANGE, NB_ITEM_LOOP_ARGUMENT, nb_loop_set_pace(&loop, (nb_rate){0, 1}));
    refused(NB_ERR_RANGE, NB_ITEM_LOOP_ARGUMENT, nb_loop_set_pace(&loop, (nb_rate){1, UINT32_MAX}));
    refused(NB_ERR_MISUSE, NB_ITEM_LOOP_ARGUMENT, nb_loop_run(&loop, NULL));
    refused(NB_ERR_MISUSE, NB_ITEM_LOOP_ARGUMENT, nb_loop_run(&loop, &(nb_loop_callbacks){0}));
    silent(after = nb_loop_report_get(&loop));
    assert_int_equal(after.frame_count, before.frame_count);
    assert_int_equal(after.tick_count, before.tick_count);
    assert_int_equal(after.elapsed_ns, before.elapsed_ns);
    assert_int_equal(after.refresh_rate.num, before.refresh_rate.num);
    loop_still_works(&loop); // neither paused nor scaled
    accepted(NB_OK, nb_loop_exclude(&loop, UINT64_MAX));
    accepted(NB_OK, nb_loop_exclude(&loop, UINT64_MAX)); // as much as there is, not a little after a wrap
    accepted(NB_OK, nb_loop_begin_delta(&loop, INT64_MAX));
    accepted(NB_OK, nb_loop_end(&loop));
    accepted(true, nb_loop_is_valid(&loop));
}

TEST(tick_groups_refuse_what_they_cannot_hold) {
    nb_loop loop;
    nb_loop_tick tick;
    memset(&tick, 0x5A, sizeof tick);
    loop_open(&loop);
    uint32_t group = 0x5A;
    refused(NB_ERR_MISUSE, NB_ITEM_LOOP_ARGUMENT, nb_loop_group_add(&loop, (nb_rate){10, 1}, NULL));
    refused(NB_ERR_RANGE, NB_ITEM_LOOP_ARGUMENT, nb_loop_group_add(&loop, (nb_rate){0, 1}, &group));
    refused(NB_ERR_RANGE, NB_ITEM_LOOP_ARGUMENT, nb_loop_group_add(&loop, (nb_rate){UINT32_MAX, 1}, &group));
    refused(false, NB_ITEM_LOOP_ARGUMENT, nb_loop_next_group_tick(&loop, 0, &tick));
    assert_int_equal(group, 0x5A);
    for (uint32_t i = 0; i < NB_LOOP_GROUP_COUNT_MAX; ++i) {
        accepted(NB_OK, nb_loop_group_add(&loop, (nb_rate){10, 1}, &group));
        assert_int_equal(group, i);
    }
    accepted(NB_FULL, nb_loop_group_add(&loop, (nb_rate){10, 1}, &group));
    refused(false, NB_ITEM_LOOP_ARGUMENT, nb_loop_next_group_tick(&loop, NB_LOOP_GROUP_COUNT_MAX, &tick));
    refused(false, NB_ITEM_LOOP_ARGUMENT, nb_loop_next_group_tick(&loop, UINT32_MAX, &tick));
    refused(false, NB_ITEM_LOOP_ARGUMENT, nb_loop_next_group_tick(&loop, 0, NULL));
    assert_untouched(tick, 0x5A);
    loop_still_works(&loop);
    for (int i = 0; i < 5; ++i) accepted(true, nb_loop_next_group_tick(&loop, 0, &tick));
    accepted(false, nb_loop_next_group_tick(&loop, 0, &tick));
}

TEST(loop_refuses_to_pace_on_a_clock_that_cannot_sleep) {
    const nb_loop_callbacks callbacks = {.tick_fn = never_called};
    nb_loop loop;
    nb_loop_desc desc = {.clock = {.now_ns = stopped_clock}, .hooks = bad_hooks(NULL)};
    accepted(NB_OK, nb_loop_init(&loop, &desc));
    refused(NB_ERR_UNSUPPORTED, NB_ITEM_LOOP_ARGUMENT, nb_loop_pace(&loop));
    refused(NB_ERR_UNSUPPORTED, NB_ITEM_LOOP_ARGUMENT, nb_loop_run(&loop, &callbacks));
    loop_still_works(&loop);
}
