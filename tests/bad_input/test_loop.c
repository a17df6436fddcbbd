// SPDX-License-Identifier: MIT
// What the loop, the input queue and the buttons do with bad arguments and with calls in the wrong place.

#include "bad_input/bad_input.h"

#include "nebula/input.h"
#include "nebula/loop.h"

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

// --- loop ---

static uint64_t stopped_clock(void *user) {
    (void)user;
    return 5;
}

static void never_called(void *user, const nb_tick *tick) {
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
        nb_tick tick;
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
    nb_tick tick;
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
    nb_tick tick;
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
    nb_tick tick;
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

// --- input ---

TEST(input_refuses_a_bad_desc) {
    static _Alignas(NB_CACHE_LINE) unsigned char storage[4096];
    static const uint32_t sizes[] = {1, 3, 1000, NB_INPUT_COUNT_LIMIT + 1, NB_INPUT_COUNT_LIMIT * 2, UINT32_MAX};
    test_heap heap = {0};
    nb_input *input = UNTOUCHED(nb_input);
    refused_default(NB_ERR_MISUSE, NB_ITEM_INPUT_ARGUMENT, nb_input_create(NULL, NULL));
    accepted(nb_input_memory_size(1024), nb_input_memory_size(0)); // the default
    for (size_t i = 0; i < COUNT_OF(sizes); ++i) {
        nb_input_desc desc = {.event_count_max = sizes[i], .hooks = bad_hooks(&heap)};
        nb_result expected = (sizes[i] & (sizes[i] - 1)) == 0 ? NB_ERR_RANGE : NB_ERR_MISUSE;
        refused(expected, NB_ITEM_INPUT_ARGUMENT, nb_input_create(&desc, &input));
        accepted(0, nb_input_memory_size(sizes[i]));
    }
    nb_input_desc desc = {.event_count_max = 4, .memory = storage + 8, .memory_bytes = 2048, .hooks = bad_hooks(&heap)};
    memset(storage, 0x5A, sizeof storage);
    refused(NB_ERR_MISUSE, NB_ITEM_INPUT_ARGUMENT, nb_input_create(&desc, NULL));
    refused(NB_ERR_MISUSE, NB_ITEM_INPUT_ARGUMENT, nb_input_create(&desc, &input)); // not aligned
    desc.memory = storage;
    desc.memory_bytes = nb_input_memory_size(4) - 1;
    refused(NB_ERR_RANGE, NB_ITEM_INPUT_ARGUMENT, nb_input_create(&desc, &input));
    assert_untouched(storage, 0x5A);
    assert_int_equal(heap.call_count.value, 0);
    desc.memory = NULL;
    refused_memory(heap, 1, input, nb_input_create(&desc, &input));
    silent(nb_input_destroy(NULL));
}

TEST(input_refuses_null) {
    nb_input *input = NULL;
    nb_input_event event = {.kind = NB_INPUT_PRESS, .code = 1};
    nb_input_view view;
    nb_input_stats stats;
    memset(&view, 0x5A, sizeof view);
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_input_send(NULL, &event));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_input_begin_frame(NULL, &view));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_input_take_tick(NULL, 1, &view));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_input_discard(NULL));
    reported_default(NB_ITEM_BASE_NULL, stats = nb_input_stats_get(NULL));
    assert_zero(stats);
    assert_int_equal(nb_input_create(&(nb_input_desc){.event_count_max = 2, .hooks = bad_hooks(NULL)}, &input), NB_OK);
    accepted(NB_OK, nb_input_send(input, &event));
    memset(&view, 0x5A, sizeof view);
    refused(NB_ERR_MISUSE, NB_ITEM_INPUT_ARGUMENT, nb_input_send(input, NULL));
    refused(NB_ERR_MISUSE, NB_ITEM_INPUT_ARGUMENT, nb_input_begin_frame(input, NULL));
    refused(NB_ERR_MISUSE, NB_ITEM_INPUT_ARGUMENT, nb_input_take_tick(input, 1, NULL));
    accepted(NB_OK, nb_input_send(input, &event));
    accepted(NB_FULL, nb_input_send(input, &event)); // a warning, now and then
    assert_untouched(view, 0x5A);
    accepted(NB_OK, nb_input_take_tick(input, 1, &view)); // the events are still there
    assert_int_equal(view.count, 2);
    silent(stats = nb_input_stats_get(input));
    assert_int_equal(stats.sent_count, 2);
    assert_int_equal(stats.delivered_count, 2);
    nb_input_destroy(input);
}

TEST(buttons_refuse_null_and_ignore_codes_too_large) {
    nb_buttons buttons = {0};
    nb_input_event presses[] = {{.kind = NB_INPUT_PRESS, .code = 3},
                                {.kind = NB_INPUT_PRESS, .code = NB_BUTTON_COUNT_MAX},
                                {.kind = NB_INPUT_RELEASE, .code = UINT32_MAX}};
    nb_input_view view = {presses, COUNT_OF(presses)}, hollow = {NULL, 5}, empty = {NULL, 0};
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_buttons_apply(NULL, &view));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_buttons_release_all(NULL));
    accepted(NB_OK, nb_buttons_apply(&buttons, &view));
    assert_int_equal(buttons.ignored_count, 2);
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_buttons_apply(&buttons, NULL));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_buttons_apply(&buttons, &hollow));
    accepted(true, nb_buttons_is_pressed(&buttons, 3)); // the refused calls began no tick
    static bool (*const questions[])(const nb_buttons *, uint32_t) = {nb_buttons_is_down, nb_buttons_is_pressed,
                                                                      nb_buttons_is_released};
    for (size_t i = 0; i < COUNT_OF(questions); ++i) {
        accepted(false, questions[i](&buttons, NB_BUTTON_COUNT_MAX));
        accepted(false, questions[i](&buttons, UINT32_MAX));
        accepted(false, questions[i](NULL, 3)); // a question, asked too often to be reported
    }
    accepted(NB_OK, nb_buttons_apply(&buttons, &empty));
    assert_true(nb_buttons_is_down(&buttons, 3) && !nb_buttons_is_pressed(&buttons, 3));
}
