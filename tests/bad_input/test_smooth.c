// SPDX-License-Identifier: MIT
// nebula/smooth.h: smoothers that are none, rows and times out of bounds.

#include "bad_input/bad_input.h"

#include <math.h>

#include "nebula/smooth.h"

TEST(smoother_refuses_descs_with_a_gap) {
    float memory[2 * 3];
    uint64_t left_ns[2];
    nb_smooth smooth;
    memset(&smooth, 0x5A, sizeof smooth);
    nb_smooth_desc whole = nb_smooth_desc_default();
    whole.row_count = 2, whole.float_count = 3, whole.memory = memory, whole.left_ns = left_ns;
    nb_smooth_desc gaps[] = {whole, whole, whole, whole, nb_smooth_desc_default()};
    gaps[0].row_count = 0;
    gaps[1].float_count = 0;
    gaps[2].memory = NULL;
    gaps[3].left_ns = NULL;
    for (size_t i = 0; i < sizeof gaps / sizeof gaps[0]; ++i)
        refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_ARGUMENT, nb_smooth_init(&smooth, &gaps[i]));
    nb_smooth_desc wide[] = {whole, whole, whole};
    wide[0].row_count = wide[0].float_count = UINT32_MAX;
    wide[1].snap_distance = -1;
    wide[2].snap_distance = NAN;
    for (size_t i = 0; i < sizeof wide / sizeof wide[0]; ++i)
        refused_default(NB_ERR_RANGE, NB_ITEM_BASE_ARGUMENT, nb_smooth_init(&smooth, &wide[i]));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_smooth_init(&smooth, NULL));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_smooth_init(NULL, &whole));
    assert_untouched(smooth, 0x5A);
}

TEST(smoother_refuses_rows_it_has_not) {
    float memory[2 * 3], value[3] = {1, 2, 3};
    uint64_t left_ns[2];
    nb_smooth zeroed = {0}, smooth, *none[] = {NULL, &zeroed};
    for (size_t i = 0; i < 2; ++i) {
        refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_smooth_correct(none[i], 0, value, value));
        refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_smooth_advance(none[i], 1));
        refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_smooth_apply(none[i], 0, value));
        refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_smooth_reset(none[i], 0));
        nb_smooth_stats stats;
        reported_default(NB_ITEM_BASE_NULL, stats = nb_smooth_stats_get(none[i]));
        assert_int_equal(stats.blend_count, 0);
    }
    nb_smooth_desc desc = {.row_count = 2, .float_count = 3, .memory = memory, .left_ns = left_ns};
    accepted(NB_OK, nb_smooth_init(&smooth, &desc));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_smooth_correct(&smooth, 0, NULL, value));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_smooth_correct(&smooth, 0, value, NULL));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_smooth_apply(&smooth, 0, NULL));
    refused_default(NB_ERR_RANGE, NB_ITEM_BASE_ARGUMENT, nb_smooth_correct(&smooth, 2, value, value));
    refused_default(NB_ERR_RANGE, NB_ITEM_BASE_ARGUMENT, nb_smooth_apply(&smooth, UINT32_MAX, value));
    refused_default(NB_ERR_RANGE, NB_ITEM_BASE_ARGUMENT, nb_smooth_reset(&smooth, 2));
    assert_true(value[0] == 1 && value[1] == 2 && value[2] == 3);
}
