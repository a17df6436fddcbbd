// SPDX-License-Identifier: MIT
// Hooks and their defaults, memory through them, the one way to report what went wrong, and integers in bytes.

#define _POSIX_C_SOURCE 200809L // pipe, dup

#include "support/support.h"

#include "base/base.h"
#include "nebula/bytes.h"
#include "nebula/report.h"

#include <unistd.h>

// What the logger and the assertion hook were told, the newest record in full.
typedef struct probe {
    int log_count, assert_count, log_count_at_assertion;
    nb_log_level level;
    nb_log_item item;
    char name[32], function[64], message[64];
} probe;

static void probe_keep(probe *heard, const nb_log_record *record) {
    heard->level = record->level;
    heard->item = record->item;
    snprintf(heard->name, sizeof heard->name, "%s", record->name);
    snprintf(heard->function, sizeof heard->function, "%s", record->function);
    snprintf(heard->message, sizeof heard->message, "%s", record->message);
}

static void probe_log(void *user, const nb_log_record *record) {
    probe *heard = user;
    ++heard->log_count;
    probe_keep(heard, record);
}

static void probe_failed(void *user, const nb_log_record *record) {
    probe *heard = user;
    ++heard->assert_count;
    heard->log_count_at_assertion = heard->log_count;
    probe_keep(heard, record);
}

static nb_hooks probe_hooks(probe *heard, test_heap *heap) {
    nb_hooks hooks = test_hooks(NULL, heap);
    hooks.logger = (nb_logger){.log = probe_log, .user = heard, .level_min = NB_LOG_TRACE};
    hooks.assertion = (nb_assert_hook){.failed = probe_failed, .user = heard};
    return nb_hooks_resolve(&hooks);
}

TEST(zero_hooks_resolve_to_the_defaults) {
    nb_hooks zero = {0};
    nb_hooks resolved = nb_hooks_resolve(&zero), from_null = nb_hooks_resolve(NULL);
    assert_ptr_equal(resolved.allocator.alloc, from_null.allocator.alloc);
    assert_ptr_equal(resolved.logger.log, from_null.logger.log);
    assert_ptr_equal(resolved.assertion.failed, from_null.assertion.failed);
    assert_int_equal(resolved.logger.level_min, NB_LOG_WARNING);
    void *memory = nb_hooks_alloc(&resolved, 100, 64, __func__);
    assert_non_null(memory);
    assert_int_equal((uintptr_t)memory % 64, 0);
    nb_hooks_free(&resolved, memory, 100);
}

TEST(half_an_allocator_counts_as_none) {
    nb_hooks hooks = {.allocator = {.alloc = test_heap_alloc}};
    assert_ptr_equal(nb_hooks_resolve(&hooks).allocator.alloc, nb_hooks_default().allocator.alloc);
}

TEST(custom_hooks_are_kept_with_their_users) {
    test_log log = {0};
    test_heap heap = {0};
    nb_hooks wanted = test_hooks(&log, &heap);
    nb_hooks hooks = nb_hooks_resolve(&wanted);
    void *memory = nb_hooks_alloc(&hooks, 10, 8, __func__);
    assert_int_equal(heap.live_count.value, 1);
    assert_int_equal(heap.live_bytes.value, 10);
    nb_hooks_free(&hooks, memory, 10);
    assert_int_equal(heap.live_count.value, 0);
    nb_hooks_free(&hooks, NULL, 10);
    assert_int_equal(heap.live_count.value, 0);
}

TEST(default_heap_refuses_sizes_that_wrap) {
    test_log log = {0};
    nb_hooks wanted = test_hooks(&log, NULL);
    nb_hooks hooks = nb_hooks_resolve(&wanted);
    assert_null(nb_hooks_alloc(&hooks, SIZE_MAX - 3, 64, __func__));
    assert_int_equal(test_log_count(&log, NB_ITEM_BASE_MEMORY), 1);
}

TEST(levels_below_the_minimum_are_not_delivered) {
    test_log log = {0};
    nb_hooks wanted = test_hooks(&log, NULL);
    wanted.logger.level_min = NB_LOG_ERROR;
    nb_hooks hooks = nb_hooks_resolve(&wanted);
    nb_report(&hooks, NB_LOG_WARNING, NB_ITEM_BASE_OS, "f", "x");
    assert_int_equal(test_log_count(&log, NB_ITEM_BASE_OS), 0);
    nb_report(&hooks, NB_LOG_ERROR, NB_ITEM_BASE_OS, "f", "code %d", 5);
    assert_int_equal(test_log_count(&log, NB_ITEM_BASE_OS), 1);
    assert_string_equal(log.last_message, "code 5");
    hooks.logger.level_min = NB_LOG_OFF;
    nb_report(&hooks, NB_LOG_ERROR, NB_ITEM_BASE_OS, "f", "x");
    assert_int_equal(test_log_count(&log, NB_ITEM_BASE_OS), 1);
}

TEST(long_messages_are_cut_not_overrun) {
    test_log log = {0};
    nb_hooks wanted = test_hooks(&log, NULL);
    nb_hooks hooks = nb_hooks_resolve(&wanted);
    char text[2000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = 0;
    nb_report(&hooks, NB_LOG_ERROR, NB_ITEM_BASE_OS, "f", "%s", text);
    assert_int_equal(strlen(log.last_message), 319);
}

TEST(a_mistake_is_logged_then_asserted_then_returned) {
    probe heard = {0};
    nb_hooks hooks = probe_hooks(&heard, NULL);
    assert_int_equal(NB_FAIL(&hooks, NB_ITEM_BASE_ARGUMENT, NB_ERR_RANGE, "size %d", 3), NB_ERR_RANGE);
    assert_int_equal(heard.log_count, 1);
    assert_int_equal(heard.log_count_at_assertion, NB_ASSERTIONS);
    assert_int_equal(heard.assert_count, NB_ASSERTIONS);
    assert_int_equal(heard.item, NB_ITEM_BASE_ARGUMENT);
    assert_string_equal(heard.function, __func__);
    // With logging off the hook still hears of it.
    hooks.logger.level_min = NB_LOG_OFF;
    nb_result result = nb_report_mistake(&hooks, NB_ITEM_BASE_ARGUMENT, NB_ERR_MISUSE, "nb_thing", "size %d", 4);
    assert_int_equal(result, NB_ERR_MISUSE);
    assert_int_equal(heard.log_count, 1);
    assert_int_equal(heard.assert_count, 2 * NB_ASSERTIONS);
    if (NB_ASSERTIONS) assert_string_equal(heard.message, "size 4");
    if (NB_ASSERTIONS) assert_string_equal(heard.function, "nb_thing");
}

TEST(without_hooks_a_mistake_goes_to_stderr) {
    int saved = dup(2), ends[2];
    assert_int_equal(pipe(ends), 0);
    dup2(ends[1], 2);
    nb_result result = NB_FAIL_NULL("thing");
    fflush(stderr);
    dup2(saved, 2);
    close(ends[1]);
    char text[256] = {0};
    ssize_t length = read(ends[0], text, sizeof text - 1);
    close(ends[0]);
    close(saved);
    assert_true(length > 0);
    assert_int_equal(result, NB_ERR_MISUSE);
    char expected[128];
    snprintf(expected, sizeof expected, "nebula: error 100 base_null: %s: thing is NULL\n", __func__);
    assert_string_equal(text, expected);
}

TEST(zero_bytes_are_one_on_both_ways) {
    test_heap heap = {0};
    nb_hooks hooks = test_hooks(NULL, &heap); // not resolved
    void *memory = nb_hooks_alloc(&hooks, 0, 8, __func__);
    assert_non_null(memory);
    assert_int_equal(heap.live_bytes.value, 1);
    nb_hooks_free(&hooks, memory, 0);
    assert_int_equal(heap.live_bytes.value, 0);
    assert_int_equal(heap.live_count.value, 0);
}

static void assert_one_error(const probe *heard, nb_log_item item) {
    assert_int_equal(heard->log_count, 1);
    assert_int_equal(heard->assert_count, 0);
    assert_int_equal(heard->level, NB_LOG_ERROR);
    assert_int_equal(heard->item, item);
}

TEST(a_refusal_of_memory_is_logged_and_not_asserted) {
    probe heard = {0};
    test_heap heap = {.fail_at = 1};
    nb_hooks hooks = probe_hooks(&heard, &heap);
    assert_null(nb_hooks_alloc(&hooks, 100, 64, "nb_thing_create"));
    assert_one_error(&heard, NB_ITEM_BASE_MEMORY);
    assert_string_equal(heard.function, "nb_thing_create");
    assert_string_equal(heard.message, "no memory for 100 bytes");
}

TEST(a_failure_is_logged_and_not_asserted) {
    probe heard = {0};
    nb_hooks hooks = probe_hooks(&heard, NULL);
    nb_result result = nb_report_failure(&hooks, NB_ITEM_BASE_OS, NB_ERR_OS, "nb_thing_open", "code %d", 7);
    assert_int_equal(result, NB_ERR_OS);
    assert_one_error(&heard, NB_ITEM_BASE_OS);
    assert_string_equal(heard.name, "base_os");
    assert_string_equal(heard.function, "nb_thing_open");
    assert_string_equal(heard.message, "code 7");
    hooks.logger.level_min = NB_LOG_OFF;
    assert_int_equal(nb_report_failure(&hooks, NB_ITEM_BASE_OS, NB_ERR_OS, "f", "x"), NB_ERR_OS);
    assert_int_equal(heard.log_count, 1);
}

TEST(repeated_reports_are_throttled_by_place_and_object) {
    probe heard = {0};
    nb_throttle throttle = {{{0}}, {{0}}};
    nb_hooks hooks = probe_hooks(&heard, NULL);
    for (int i = 0; i < 1000; ++i)
        assert_int_equal(nb_report_throttled(&hooks, &throttle, 7, true, NB_ITEM_BASE_ARGUMENT, NB_ERR_RANGE,
                                             "nb_thing", "thing %d", 7),
                         NB_ERR_RANGE);
    assert_int_equal(heard.log_count, 4);
    assert_int_equal(heard.assert_count, 1000 * NB_ASSERTIONS);
    assert_string_equal(heard.message, "thing 7 (1000 times by now, 996 of them not logged)");
    // Another object, function, item or format has a count of its own.
    nb_report_throttled(&hooks, &throttle, 8, true, NB_ITEM_BASE_ARGUMENT, NB_ERR_RANGE, "nb_thing", "thing %d", 8);
    nb_report_throttled(&hooks, &throttle, 7, true, NB_ITEM_BASE_ARGUMENT, NB_ERR_RANGE, "nb_other", "thing %d", 7);
    nb_report_throttled(&hooks, &throttle, 7, true, NB_ITEM_BASE_NULL, NB_ERR_RANGE, "nb_thing", "thing %d", 7);
    nb_report_throttled(&hooks, &throttle, 7, true, NB_ITEM_BASE_ARGUMENT, NB_ERR_RANGE, "nb_thing", "thing %d sinks",
                        7);
    assert_int_equal(heard.log_count, 8);
    assert_string_equal(heard.message, "thing 7 sinks");
    // A failure is not asserted; without a throttle every report is logged.
    heard = (probe){0};
    for (int i = 0; i < 20; ++i)
        nb_report_throttled(&hooks, &throttle, 7, false, NB_ITEM_BASE_OS, NB_ERR_OS, "nb_thing", "code %d", 7);
    assert_int_equal(heard.log_count, 2);
    for (int i = 0; i < 20; ++i)
        nb_report_throttled(&hooks, NULL, 7, false, NB_ITEM_BASE_OS, NB_ERR_OS, "nb_thing", "code %d", 7);
    assert_int_equal(heard.log_count, 22);
    assert_int_equal(heard.assert_count, 0);
}

TEST(every_level_is_delivered_as_itself) {
    for (int level = NB_LOG_TRACE; level <= NB_LOG_ERROR; ++level) {
        probe heard = {0};
        nb_hooks hooks = probe_hooks(&heard, NULL);
        nb_report(&hooks, (nb_log_level)level, NB_ITEM_BASE_OS, __func__, "x");
        assert_int_equal(heard.log_count, 1);
        assert_int_equal(heard.level, level);
        assert_int_equal(heard.assert_count, 0);
    }
}

// As of a desc that was not looked at yet: a logger alone, and no level.
TEST(hooks_that_are_not_resolved_report_as_if_they_were) {
    probe heard = {0};
    nb_hooks hooks = {.logger = {.log = probe_log, .user = &heard}};
    nb_report(&hooks, NB_LOG_INFO, NB_ITEM_BASE_OS, __func__, "below the default level");
    assert_int_equal(heard.log_count, 0);
    nb_report(&hooks, NB_LOG_WARNING, NB_ITEM_BASE_OS, __func__, "x");
    assert_int_equal(heard.log_count, 1);
    assert_int_equal(NB_FAIL(&hooks, NB_ITEM_BASE_ARGUMENT, NB_ERR_RANGE, "size %d", 3), NB_ERR_RANGE);
    assert_int_equal(heard.log_count, 2);
    assert_string_equal(heard.function, __func__);
    void *memory = nb_hooks_alloc(&hooks, 10, 16, __func__);
    assert_non_null(memory);
    nb_hooks_free(&hooks, memory, 10);
    assert_int_equal(heard.log_count, 2);
}

TEST(integers_are_little_endian_at_any_address) {
    static const unsigned char expected[8] = {0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x91};
    const uint64_t value = UINT64_C(0x9122334455667788);
    for (size_t offset = 0; offset < 8; ++offset) {
        for (size_t size = 2; size <= 8; size *= 2) {
            unsigned char bytes[24];
            memset(bytes, 0x5A, sizeof bytes);
            unsigned char *at = bytes + 8 + offset;
            if (size == 2) nb_bytes_put_u16(at, (uint16_t)value);
            if (size == 4) nb_bytes_put_u32(at, (uint32_t)value);
            if (size == 8) nb_bytes_put_u64(at, value);
            assert_memory_equal(at, expected, size);
            assert_int_equal(at[-1], 0x5A);
            if (offset + size < 16) assert_int_equal(at[size], 0x5A);
            uint64_t got = size == 2 ? nb_bytes_get_u16(at) : size == 4 ? nb_bytes_get_u32(at) : nb_bytes_get_u64(at);
            assert_true(got == (size == 8 ? value : value & ((UINT64_C(1) << 8 * size) - 1)));
        }
    }
    unsigned char high[8];
    memset(high, 0xFF, sizeof high);
    assert_true(nb_bytes_get_u16(high) == UINT16_MAX && nb_bytes_get_u32(high) == UINT32_MAX);
    assert_true(nb_bytes_get_u64(high) == UINT64_MAX);
}
