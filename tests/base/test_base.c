// SPDX-License-Identifier: MIT
// Result names, log items, and arithmetic that cannot wrap.

#include "support/support.h"

#include "base/base.h"

TEST(every_result_has_its_own_name) {
    for (int a = NB_ERR_LOST; a <= NB_BUSY; ++a) {
        assert_string_not_equal(nb_result_name((nb_result)a), "unknown");
        assert_memory_equal(nb_result_name((nb_result)a), "NB_", 3);
        for (int b = NB_ERR_LOST; b < a; ++b) {
            assert_string_not_equal(nb_result_name((nb_result)a), nb_result_name((nb_result)b));
        }
    }
    assert_string_equal(nb_result_name((nb_result)1000), "unknown");
}

TEST(log_item_numbers_and_names_are_unique) {
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

TEST(version_matches_the_header) {
    char text[32];
    snprintf(text, sizeof text, "%d.%d.%d", NB_VERSION_MAJOR, NB_VERSION_MINOR, NB_VERSION_PATCH);
    assert_string_equal(nb_version(), text);
}

TEST(level_names_are_known) {
    assert_string_equal(nb_log_level_name(NB_LOG_WARNING), "warning");
    assert_string_equal(nb_log_level_name((nb_log_level)77), "unknown");
}

TEST(size_arithmetic_refuses_to_wrap) {
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
