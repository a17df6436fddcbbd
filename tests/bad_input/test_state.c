// SPDX-License-Identifier: MIT
// nebula/state.h, with nb_states_compare of nebula/compare.h: registries, descs and handles that are none.

#include "bad_input/bad_input.h"

#include "nebula/compare.h"
#include "nebula/state.h"

static size_t save_nothing(void *user, void *bytes, size_t capacity_bytes) {
    (void)user, (void)bytes, (void)capacity_bytes;
    return 0;
}

static nb_result load_nothing(void *user, const void *bytes, size_t size_bytes) {
    (void)user, (void)bytes, (void)size_bytes;
    return NB_OK;
}

TEST(null_is_refused_everywhere) {
    nb_provider_desc desc = {.name = "s"};
    nb_provider handle = {1};
    size_t size = 77;
    const char *name = "untouched";
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_states_create(NULL, NULL));
    silent(nb_states_destroy(NULL));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_states_add(NULL, &desc, NULL));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_states_remove(NULL, handle));
    refused_default(0, NB_ITEM_BASE_NULL, nb_states_count(NULL));
    refused_default(0, NB_ITEM_BASE_NULL, nb_states_at(NULL, 0, &name).value);
    assert_string_equal(name, "");
    refused_default(0, NB_ITEM_BASE_NULL, nb_provider_hash(NULL, handle));
    refused_default(0, NB_ITEM_BASE_NULL, nb_states_hash(NULL));
    refused_default(0, NB_ITEM_BASE_NULL, nb_states_layout_hash(NULL));
    refused_default(0, NB_ITEM_BASE_NULL, nb_provider_flags(NULL, handle));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_states_save(NULL, NULL, 0, &size));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_states_load(NULL, &size, sizeof size));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_states_check(NULL, &size, sizeof size));
    nb_difference difference = {.row = 77};
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_states_compare(NULL, &size, 8, &size, 8, &difference));
    assert_int_equal(difference.row, 77);
    assert_int_equal(size, 77);
}

TEST(bad_descs_and_handles_are_refused) {
    test_heap heap = {0};
    nb_states *states = UNTOUCHED(nb_states);
    nb_states_desc many = {.state_count_max = NB_PROVIDER_COUNT_MAX + 1, .hooks = bad_hooks(&heap)};
    refused(NB_ERR_RANGE, NB_ITEM_STATE_ARGUMENT, nb_states_create(&many, &states));
    assert_ptr_equal(states, UNTOUCHED(nb_states));
    nb_states_desc fine = {.hooks = bad_hooks(&heap)};
    accepted(NB_OK, nb_states_create(&fine, &states));
    uint32_t data = 0;
    static char long_name[NB_PROVIDER_NAME_SIZE_MAX + 2];
    memset(long_name, 's', sizeof long_name - 1);
    const nb_provider_desc bad[] = {
        {.name = NULL, .data = &data, .size_bytes = 4},
        {.name = "", .data = &data, .size_bytes = 4},
        {.name = "s"},
        {.name = "s", .data = &data},
        {.name = "s", .data = &data, .size_bytes = 4, .flags = 4},
        {.name = "s", .save = save_nothing, .load = load_nothing, .flags = NB_PROVIDER_IMAGE},
        {.name = "s", .save = save_nothing},
        {.name = "s", .load = load_nothing},
        {.name = "s", .data = &data, .size_bytes = 4, .save = save_nothing, .load = load_nothing},
    };
    nb_provider handle = {77};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; ++i) {
        refused(NB_ERR_MISUSE, NB_ITEM_STATE_ARGUMENT, nb_states_add(states, &bad[i], &handle));
    }
    refused(NB_ERR_MISUSE, NB_ITEM_STATE_ARGUMENT, nb_states_add(states, NULL, &handle));
    nb_provider_desc longer = {.name = long_name, .data = &data, .size_bytes = 4};
    refused(NB_ERR_RANGE, NB_ITEM_STATE_ARGUMENT, nb_states_add(states, &longer, &handle));
    assert_int_equal(handle.value, 77);
    refused(NB_ERR_STALE, NB_ITEM_STATE_STALE, nb_states_remove(states, handle));
    refused(0, NB_ITEM_STATE_STALE, nb_provider_hash(states, (nb_provider){0}));
    refused(0, NB_ITEM_STATE_STALE, nb_provider_flags(states, (nb_provider){0}));
    accepted(0, nb_states_at(states, UINT32_MAX, NULL).value);
    size_t size = 0;
    refused(NB_ERR_MISUSE, NB_ITEM_STATE_ARGUMENT, nb_states_save(states, NULL, 4, &size));
    refused(NB_ERR_MISUSE, NB_ITEM_STATE_ARGUMENT, nb_states_save(states, &data, 4, NULL));
    refused(NB_ERR_MISUSE, NB_ITEM_STATE_ARGUMENT, nb_states_load(states, NULL, 4));
    refused(NB_ERR_RANGE, NB_ITEM_STATE_SAVE, nb_states_load(states, &data, 0));
    refused(NB_ERR_MISUSE, NB_ITEM_STATE_ARGUMENT, nb_states_check(states, NULL, 4));
    refused(NB_ERR_RANGE, NB_ITEM_STATE_LAYOUT, nb_states_check(states, &data, 0));
    nb_difference difference = {.row = 77};
    refused(NB_ERR_MISUSE, NB_ITEM_STATE_ARGUMENT, nb_states_compare(states, NULL, 4, &data, 4, &difference));
    refused(NB_ERR_MISUSE, NB_ITEM_STATE_ARGUMENT, nb_states_compare(states, &data, 4, NULL, 4, &difference));
    refused(NB_ERR_MISUSE, NB_ITEM_STATE_ARGUMENT, nb_states_compare(states, &data, 4, &data, 4, NULL));
    refused(NB_ERR_RANGE, NB_ITEM_STATE_SAVE, nb_states_compare(states, &data, 4, &data, 4, &difference));
    assert_int_equal(difference.row, 77);
    assert_int_equal(nb_states_count(states), 0);
    silent(nb_states_destroy(states));
    assert_int_equal(heap.live_count.value, 0);
}
