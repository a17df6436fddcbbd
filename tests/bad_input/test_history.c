// SPDX-License-Identifier: MIT
// nebula/history.h: histories that are none, bad descs, ticks out of reach.

#include "bad_input/bad_input.h"

#include "nebula/history.h"

TEST(null_is_refused_everywhere) {
    nb_history_input input = {0};
    nb_history_desc desc = {0};
    nb_history *history = UNTOUCHED(nb_history);
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_history_create(NULL, &history));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_history_create(&desc, NULL));
    assert_ptr_equal(history, UNTOUCHED(nb_history));
    silent(nb_history_destroy(NULL));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_history_save(NULL, 1));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_history_rewind(NULL, 1));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_history_confirm(NULL, 1));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_history_reset(NULL));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_history_input_set(NULL, 1, &input));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_history_input_get(NULL, 1, &input));
    reported_default(NB_ITEM_BASE_NULL, assert_int_equal(nb_history_stats_get(NULL).save_count, 0));
}

TEST(bad_descs_are_refused) {
    test_heap heap = {0};
    nb_states *states = NULL;
    accepted(NB_OK, nb_states_create(NULL, &states));
    nb_hooks hooks = bad_hooks(&heap);
    const nb_history_desc bad[] = {
        {.states = states, .tick_count_max = NB_HISTORY_TICK_COUNT_MAX + 1, .hooks = hooks},
        {.states = states, .event_count_max = NB_INPUT_COUNT_LIMIT + 1, .hooks = hooks},
        {.states = states, .command_count_max = NB_INPUT_COUNT_LIMIT + 1, .hooks = hooks},
        {.states = states, .tick_count_max = UINT32_MAX, .event_count_max = UINT32_MAX, .hooks = hooks},
        {.states = states, .bytes_max = 1, .hooks = hooks},
        {.states = states, .bytes_max = 4095, .hooks = hooks},
        {.states = states, .bytes_max = SIZE_MAX, .hooks = hooks},
        {.states = states, .tick_count_max = 1 << 20, .event_count_max = 1 << 16, .hooks = hooks},
    };
    nb_history *history = UNTOUCHED(nb_history);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; ++i) {
        refused(NB_ERR_RANGE, NB_ITEM_HISTORY_ARGUMENT, nb_history_create(&bad[i], &history));
    }
    nb_history_desc none = {.hooks = hooks};
    refused(NB_ERR_MISUSE, NB_ITEM_HISTORY_ARGUMENT, nb_history_create(&none, &history));
    assert_ptr_equal(history, UNTOUCHED(nb_history));
    assert_int_equal(heap.call_count.value, 0);
    nb_states_destroy(states);
}

TEST(bad_ticks_and_inputs_change_nothing) {
    test_heap heap = {0};
    uint32_t data = 5;
    nb_states *states = NULL;
    nb_history *history = NULL;
    nb_provider_desc provider = {.name = "data", .data = &data, .size_bytes = sizeof data};
    accepted(NB_OK, nb_states_create(NULL, &states));
    accepted(NB_OK, nb_states_add(states, &provider, NULL));
    nb_history_desc desc = {.states = states, .hooks = bad_hooks(&heap)};
    accepted(NB_OK, nb_history_create(&desc, &history));
    nb_history_input input = {0}, got = {0};
    // Before anything was saved no tick is there.
    accepted(NB_ERR_RANGE, nb_history_rewind(history, 0));
    accepted(NB_ERR_RANGE, nb_history_confirm(history, 0));
    accepted(NB_ERR_RANGE, nb_history_input_set(history, 0, &input));
    accepted(NB_ERR_RANGE, nb_history_input_get(history, 0, &got));
    accepted(NB_OK, nb_history_reset(history));
    refused(NB_ERR_MISUSE, NB_ITEM_HISTORY_ARGUMENT, nb_history_save(history, NB_TICK_COUNT_MAX + 1));
    accepted(NB_OK, nb_history_save(history, NB_TICK_COUNT_MAX - 1));
    accepted(NB_OK, nb_history_save(history, NB_TICK_COUNT_MAX));
    refused(NB_ERR_MISUSE, NB_ITEM_HISTORY_ARGUMENT, nb_history_save(history, NB_TICK_COUNT_MAX + 1));
    refused(NB_ERR_MISUSE, NB_ITEM_HISTORY_ARGUMENT, nb_history_save(history, NB_TICK_COUNT_MAX - 1));
    refused(NB_ERR_MISUSE, NB_ITEM_HISTORY_ARGUMENT, nb_history_save(history, 0));
    accepted(NB_ERR_RANGE, nb_history_rewind(history, UINT64_MAX));
    accepted(NB_ERR_RANGE, nb_history_rewind(history, 0));
    accepted(NB_ERR_RANGE, nb_history_confirm(history, UINT64_MAX));
    accepted(NB_ERR_RANGE, nb_history_input_set(history, (uint64_t)-10000, &input));
    accepted(NB_OK, nb_history_input_set(history, NB_TICK_COUNT_MAX + 1, &input)); // the one to come
    nb_history_input bad_events = {.events = {NULL, 1}}, bad_commands = {.commands = {NULL, 1}};
    refused(NB_ERR_MISUSE, NB_ITEM_HISTORY_ARGUMENT, nb_history_input_set(history, NB_TICK_COUNT_MAX, NULL));
    refused(NB_ERR_MISUSE, NB_ITEM_HISTORY_ARGUMENT, nb_history_input_set(history, NB_TICK_COUNT_MAX, &bad_events));
    refused(NB_ERR_MISUSE, NB_ITEM_HISTORY_ARGUMENT, nb_history_input_set(history, NB_TICK_COUNT_MAX, &bad_commands));
    refused(NB_ERR_MISUSE, NB_ITEM_HISTORY_ARGUMENT, nb_history_input_get(history, NB_TICK_COUNT_MAX, NULL));
    accepted(NB_EMPTY, nb_history_input_get(history, NB_TICK_COUNT_MAX, &got));
    assert_zero(got);
    nb_input_event events[NB_HISTORY_INPUT_COUNT_DEFAULT + 1] = {0};
    nb_history_input many = {.events = {events, NB_HISTORY_INPUT_COUNT_DEFAULT + 1}};
    accepted(NB_FULL, nb_history_input_set(history, NB_TICK_COUNT_MAX, &many));
    nb_history_input endless = {.commands = {events, UINT32_MAX}};
    accepted(NB_FULL, nb_history_input_set(history, NB_TICK_COUNT_MAX, &endless));
    nb_history_stats stats = nb_history_stats_get(history);
    assert_int_equal(stats.refuse_count, 8);
    assert_int_equal(stats.tick_newest, NB_TICK_COUNT_MAX);
    assert_int_equal(data, 5);
    silent(nb_history_destroy(history));
    assert_int_equal(heap.live_count.value, 0);
    nb_states_destroy(states);
}
