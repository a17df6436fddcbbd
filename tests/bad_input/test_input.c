// SPDX-License-Identifier: MIT
// nebula/input.h: queues that are none, memory that does not fit, codes that are too large.

#include "bad_input/bad_input.h"

#include "nebula/input.h"

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

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
