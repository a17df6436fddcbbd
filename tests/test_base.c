// SPDX-License-Identifier: MIT
// Result names, log items, hooks and their defaults, and the one way a mistake is reported.

#define _POSIX_C_SOURCE 200809L // pipe, dup

#include "support.h"

#include "base/base.h"

#include <unistd.h>

static void every_result_has_its_own_name(void **state) {
    (void)state;
    for (int a = NB_ERR_PERMISSION; a <= NB_BUSY; ++a) {
        assert_string_not_equal(nb_result_name((nb_result)a), "unknown");
        assert_memory_equal(nb_result_name((nb_result)a), "NB_", 3);
        for (int b = NB_ERR_PERMISSION; b < a; ++b) {
            assert_string_not_equal(nb_result_name((nb_result)a), nb_result_name((nb_result)b));
        }
    }
    assert_string_equal(nb_result_name((nb_result)1000), "unknown");
}

static void log_item_numbers_and_names_are_unique(void **state) {
    (void)state;
    const int numbers[] = {
#define NBI_ITEM(upper, lower, number) number,
        NB_LOG_ITEMS(NBI_ITEM)
#undef NBI_ITEM
    };
    size_t count = sizeof numbers / sizeof numbers[0];
    for (size_t i = 0; i < count; ++i) {
        assert_string_not_equal(nb_log_item_name((nb_log_item)numbers[i]), "unknown");
        if (i > 0) assert_true(numbers[i] > numbers[i - 1]);
        for (size_t j = 0; j < i; ++j) {
            assert_string_not_equal(nb_log_item_name((nb_log_item)numbers[i]),
                                    nb_log_item_name((nb_log_item)numbers[j]));
        }
    }
    assert_string_equal(nb_log_item_name((nb_log_item)999999), "unknown");
}

static void version_matches_the_header(void **state) {
    (void)state;
    char text[32];
    snprintf(text, sizeof text, "%d.%d.%d", NB_VERSION_MAJOR, NB_VERSION_MINOR, NB_VERSION_PATCH);
    assert_string_equal(nb_version(), text);
}

static void level_names_are_known(void **state) {
    (void)state;
    assert_string_equal(nb_log_level_name(NB_LOG_WARNING), "warning");
    assert_string_equal(nb_log_level_name((nb_log_level)77), "unknown");
}

static void zero_hooks_resolve_to_the_defaults(void **state) {
    (void)state;
    nb_hooks zero = {0};
    nb_hooks resolved = nbi_hooks_resolve(&zero), from_null = nbi_hooks_resolve(NULL);
    assert_ptr_equal(resolved.allocator.alloc, from_null.allocator.alloc);
    assert_ptr_equal(resolved.logger.log, from_null.logger.log);
    assert_ptr_equal(resolved.assertion.failed, from_null.assertion.failed);
    assert_int_equal(resolved.logger.level_min, NB_LOG_WARNING);
    void *memory = nbi_alloc(&resolved, 100, 64, __func__);
    assert_non_null(memory);
    assert_int_equal((uintptr_t)memory % 64, 0);
    nbi_free(&resolved, memory, 100);
}

static void half_an_allocator_counts_as_none(void **state) {
    (void)state;
    nb_hooks hooks = {.allocator = {.alloc = test_heap_alloc}};
    assert_ptr_equal(nbi_hooks_resolve(&hooks).allocator.alloc, nb_hooks_default().allocator.alloc);
}

static void custom_hooks_are_kept_with_their_users(void **state) {
    (void)state;
    test_log log = {0};
    test_heap heap = {0};
    nb_hooks wanted = test_hooks(&log, &heap);
    nb_hooks hooks = nbi_hooks_resolve(&wanted);
    void *memory = nbi_alloc(&hooks, 10, 8, __func__);
    assert_int_equal(heap.live_count.value, 1);
    assert_int_equal(heap.live_bytes.value, 10);
    nbi_free(&hooks, memory, 10);
    assert_int_equal(heap.live_count.value, 0);
    nbi_free(&hooks, NULL, 10);
    assert_int_equal(heap.live_count.value, 0);
}

static void default_heap_refuses_sizes_that_wrap(void **state) {
    (void)state;
    test_log log = {0};
    nb_hooks wanted = test_hooks(&log, NULL);
    nb_hooks hooks = nbi_hooks_resolve(&wanted);
    assert_null(nbi_alloc(&hooks, SIZE_MAX - 3, 64, __func__));
    assert_int_equal(test_log_count(&log, NB_ITEM_BASE_MEMORY), 1);
}

static void levels_below_the_minimum_are_not_delivered(void **state) {
    (void)state;
    test_log log = {0};
    nb_hooks wanted = test_hooks(&log, NULL);
    wanted.logger.level_min = NB_LOG_ERROR;
    nb_hooks hooks = nbi_hooks_resolve(&wanted);
    nbi_log(&hooks, NB_LOG_WARNING, NB_ITEM_BASE_OS, "f", "x");
    assert_int_equal(test_log_count(&log, NB_ITEM_BASE_OS), 0);
    nbi_log(&hooks, NB_LOG_ERROR, NB_ITEM_BASE_OS, "f", "code %d", 5);
    assert_int_equal(test_log_count(&log, NB_ITEM_BASE_OS), 1);
    assert_string_equal(log.last_message, "code 5");
    hooks.logger.level_min = NB_LOG_OFF;
    nbi_log(&hooks, NB_LOG_ERROR, NB_ITEM_BASE_OS, "f", "x");
    assert_int_equal(test_log_count(&log, NB_ITEM_BASE_OS), 1);
}

static void long_messages_are_cut_not_overrun(void **state) {
    (void)state;
    test_log log = {0};
    nb_hooks wanted = test_hooks(&log, NULL);
    nb_hooks hooks = nbi_hooks_resolve(&wanted);
    char text[2000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = 0;
    nbi_log(&hooks, NB_LOG_ERROR, NB_ITEM_BASE_OS, "f", "%s", text);
    assert_int_equal(strlen(log.last_message), 319);
}

typedef struct assert_probe {
    int count;
    nb_log_item item;
    char message[64];
} assert_probe;

static void assert_probe_failed(void *user, const nb_log_record *record) {
    assert_probe *probe = user;
    ++probe->count;
    probe->item = record->item;
    snprintf(probe->message, sizeof probe->message, "%s", record->message);
}

static void a_mistake_is_logged_then_asserted_then_returned(void **state) {
    (void)state;
    test_log log = {0};
    assert_probe probe = {0};
    nb_hooks wanted = test_hooks(&log, NULL);
    wanted.assertion = (nb_assert_hook){.failed = assert_probe_failed, .user = &probe};
    nb_hooks hooks = nbi_hooks_resolve(&wanted);
    assert_int_equal(NBI_FAIL(&hooks, NB_ITEM_BASE_ARGUMENT, NB_ERR_RANGE, "size %d", 3), NB_ERR_RANGE);
    assert_int_equal(test_log_count(&log, NB_ITEM_BASE_ARGUMENT), 1);
    assert_int_equal(probe.count, NB_ASSERTIONS);
    // With logging off the hook still hears of it.
    hooks.logger.level_min = NB_LOG_OFF;
    NBI_FAIL(&hooks, NB_ITEM_BASE_ARGUMENT, NB_ERR_RANGE, "size %d", 4);
    assert_int_equal(test_log_count(&log, NB_ITEM_BASE_ARGUMENT), 1);
    assert_int_equal(probe.count, 2 * NB_ASSERTIONS);
    if (NB_ASSERTIONS) assert_string_equal(probe.message, "size 4");
}

static void without_hooks_a_mistake_goes_to_stderr(void **state) {
    (void)state;
    int saved = dup(2), ends[2];
    assert_int_equal(pipe(ends), 0);
    dup2(ends[1], 2);
    nb_result result = NBI_FAIL_NULL("thing");
    fflush(stderr);
    dup2(saved, 2);
    close(ends[1]);
    char text[256] = {0};
    ssize_t length = read(ends[0], text, sizeof text - 1);
    close(ends[0]);
    close(saved);
    assert_true(length > 0);
    assert_int_equal(result, NB_ERR_MISUSE);
    assert_string_equal(text, "nebula: error 100 base_null: without_hooks_a_mistake_goes_to_stderr: thing is NULL\n");
}

static void size_arithmetic_refuses_to_wrap(void **state) {
    (void)state;
    size_t out = 7;
    assert_false(nbi_size_add(SIZE_MAX, 1, &out));
    assert_false(nbi_size_mul(SIZE_MAX / 2, 3, &out));
    assert_int_equal(out, 7);
    assert_true(nbi_size_mul(0, SIZE_MAX, &out));
    assert_int_equal(out, 0);
    assert_true(nbi_size_add(SIZE_MAX - 1, 1, &out));
    assert_true(out == SIZE_MAX);
    assert_false(nbi_is_power_of_two(0));
    assert_false(nbi_is_power_of_two(3));
    assert_true(nbi_is_power_of_two(1));
}

TEST_MAIN(cmocka_unit_test(every_result_has_its_own_name), cmocka_unit_test(log_item_numbers_and_names_are_unique),
          cmocka_unit_test(version_matches_the_header), cmocka_unit_test(level_names_are_known),
          cmocka_unit_test(zero_hooks_resolve_to_the_defaults), cmocka_unit_test(half_an_allocator_counts_as_none),
          cmocka_unit_test(custom_hooks_are_kept_with_their_users),
          cmocka_unit_test(default_heap_refuses_sizes_that_wrap),
          cmocka_unit_test(levels_below_the_minimum_are_not_delivered),
          cmocka_unit_test(long_messages_are_cut_not_overrun),
          cmocka_unit_test(a_mistake_is_logged_then_asserted_then_returned),
          cmocka_unit_test(without_hooks_a_mistake_goes_to_stderr), cmocka_unit_test(size_arithmetic_refuses_to_wrap))
