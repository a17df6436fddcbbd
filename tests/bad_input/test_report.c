// SPDX-License-Identifier: MIT
// nebula/report.h, with the names of nebula/types.h, nebula/log_items.h and nebula/hooks.h: values of no enum, no
// hooks, no words.

#include "bad_input/bad_input.h"

#include "nebula/report.h"

TEST(values_outside_an_enum_are_named_unknown) {
    static const int values[] = {-1000, 9999, 12345, INT32_MAX};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; ++i) {
        const char *name = NULL;
        silent(name = nb_result_name((nb_result)values[i]));
        assert_string_equal(name, "unknown");
        silent(name = nb_log_item_name((nb_log_item)values[i]));
        assert_string_equal(name, "unknown");
        silent(name = nb_log_level_name((nb_log_level)values[i]));
        assert_string_equal(name, "unknown");
    }
}

TEST(reports_without_hooks_or_words_are_delivered) {
    const nb_hooks hooks = bad_hooks(NULL);
    const char *none = NULL;
    reported_default(NB_ITEM_BASE_OS, nb_report(NULL, NB_LOG_ERROR, NB_ITEM_BASE_OS, "nb_f", "x"));
    refused_default(NB_ERR_OS, NB_ITEM_BASE_OS, nb_report_failure(NULL, NB_ITEM_BASE_OS, NB_ERR_OS, "nb_f", "x"));
    refused_default(NB_ERR_OS, NB_ITEM_BASE_ARGUMENT,
                    nb_report_mistake(NULL, NB_ITEM_BASE_ARGUMENT, NB_ERR_OS, "nb_f", "x"));
    refused(NB_ERR_OS, NB_ITEM_RECORD_FILE, nb_report_failure(&hooks, NB_ITEM_RECORD_FILE, NB_ERR_OS, "nb_f", none, 1));
    refused(NB_ERR_OS, NB_ITEM_BASE_ARGUMENT,
            nb_report_mistake(&hooks, NB_ITEM_BASE_ARGUMENT, NB_ERR_OS, "nb_f", none, 1));
    nb_throttle throttle = {{{0}}, {{0}}};
    refused_default(NB_ERR_OS, NB_ITEM_BASE_ARGUMENT,
                    nb_report_throttled(NULL, NULL, 0, true, NB_ITEM_BASE_ARGUMENT, NB_ERR_OS, "nb_f", "x"));
    refused(NB_ERR_OS, NB_ITEM_RECORD_FILE,
            nb_report_throttled(&hooks, NULL, 0, false, NB_ITEM_RECORD_FILE, NB_ERR_OS, "nb_f", none, 1));
    listen_begin();
    nb_report_throttled(&hooks, &throttle, 0, true, NB_ITEM_BASE_ARGUMENT, NB_ERR_OS, none, none, 1);
    listen_end();
    assert_int_equal(bad_heard.own_count, 1);
    assert_string_equal(bad_heard.own_function, "?");
    const nb_log_level levels[] = {NB_LOG_DEFAULT, NB_LOG_OFF, (nb_log_level)77, (nb_log_level)-1};
    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; ++i) {
        reported(NB_ITEM_RECORD_FILE, nb_report(&hooks, levels[i], NB_ITEM_RECORD_FILE, "nb_f", "x"));
    }
    listen_begin();
    nb_report(&hooks, NB_LOG_ERROR, NB_ITEM_BASE_OS, none, none, 1);
    listen_end();
    assert_int_equal(bad_heard.own_count, 1);
    assert_string_equal(bad_heard.own_function, "?");
}

TEST(memory_of_no_alignment_is_refused) {
    test_heap heap = {0};
    const nb_hooks hooks = nb_hooks_resolve(&(nb_hooks){.logger.log = bad_log, .assertion.failed = bad_assertion});
    assert_int_equal(hooks.logger.level_min, NB_LOG_WARNING);
    const size_t alignments[] = {0, 3, 24, SIZE_MAX};
    for (size_t i = 0; i < sizeof alignments / sizeof alignments[0]; ++i) {
        refused(NULL, NB_ITEM_BASE_ARGUMENT, nb_hooks_alloc(&hooks, 8, alignments[i], "nb_f"));
        refused_default(NULL, NB_ITEM_BASE_ARGUMENT, nb_hooks_alloc(NULL, 8, alignments[i], NULL));
    }
    refused(NULL, NB_ITEM_BASE_MEMORY, nb_hooks_alloc(&hooks, SIZE_MAX, 64, NULL));
    refused_default(NULL, NB_ITEM_BASE_MEMORY, nb_hooks_alloc(NULL, SIZE_MAX, 64, NULL));
    void *memory = NULL;
    silent(memory = nb_hooks_alloc(NULL, 8, 8, NULL));
    assert_non_null(memory);
    silent(nb_hooks_free(NULL, memory, 8));
    const nb_hooks counted = bad_hooks(&heap);
    silent(nb_hooks_free(&counted, NULL, 8));
    assert_int_equal(heap.live_bytes.value, 0);
}
