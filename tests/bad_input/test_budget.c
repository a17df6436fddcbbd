// SPDX-License-Identifier: MIT
// nebula/budget.h: controllers that are none, levels and times out of bounds.

#include "bad_input/bad_input.h"

#include "nebula/budget.h"

TEST(budget_refuses_a_bad_desc) {
    nb_budget budget;
    memset(&budget, 0x5A, sizeof budget);
    const nb_budget_desc fine = {.hooks = bad_hooks(NULL)};
    nb_budget_desc wrong[12];
    for (size_t i = 0; i < 12; ++i) wrong[i] = fine;
    wrong[0].level_count = NB_BUDGET_LEVEL_COUNT_MAX + 1;
    wrong[1].level_count = UINT32_MAX;
    wrong[2].level_lowered = NB_BUDGET_LEVEL_COUNT_DEFAULT;
    wrong[3].window_frames = NB_BUDGET_WINDOW_MAX + 1;
    wrong[4].over_frames = NB_BUDGET_WINDOW_DEFAULT + 1;
    wrong[5].raise_frames = 2;
    wrong[6].raise_frames = NB_BUDGET_WAIT_FRAMES_MAX + 1;
    wrong[7].room_permille = 1000;
    wrong[8].gain_permille = 1000;
    wrong[9].settle_frames = UINT32_MAX;
    wrong[10].over_frames = UINT32_MAX;
    wrong[11].level_lowered = UINT32_MAX;
    for (size_t i = 0; i < 12; ++i) {
        refused(NB_ERR_RANGE, NB_ITEM_BUDGET_ARGUMENT, nb_budget_init(&budget, &wrong[i]));
    }
    refused(NB_ERR_MISUSE, NB_ITEM_BUDGET_ARGUMENT, nb_budget_init(NULL, &fine));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BUDGET_ARGUMENT, nb_budget_init(NULL, NULL));
    assert_untouched(budget, 0x5A);
    accepted(NB_OK, nb_budget_init(&budget, NULL));
}

TEST(budget_functions_refuse_null_and_unknown_kinds) {
    nb_budget budget;
    nb_budget_desc desc = {.hooks = bad_hooks(NULL)};
    nb_budget_sample sample = {.measured_ns = 1};
    nb_budget_stats stats;
    accepted(NB_OK, nb_budget_init(&budget, &desc));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_budget_update(NULL, &sample));
    refused(NB_ERR_MISUSE, NB_ITEM_BUDGET_ARGUMENT, nb_budget_update(&budget, NULL));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_budget_set_level(NULL, 0));
    refused(NB_ERR_RANGE, NB_ITEM_BUDGET_ARGUMENT, nb_budget_set_level(&budget, 4));
    refused(NB_ERR_RANGE, NB_ITEM_BUDGET_ARGUMENT, nb_budget_set_level(&budget, UINT32_MAX));
    refused_default(0, NB_ITEM_BASE_NULL, nb_budget_level(NULL));
    refused_default(0, NB_ITEM_BASE_NULL, nb_budget_optional_ns(NULL, NB_BUDGET_KIND_MESHING));
    refused(0, NB_ITEM_BUDGET_ARGUMENT, nb_budget_optional_ns(&budget, NB_BUDGET_KIND_COUNT));
    refused(0, NB_ITEM_BUDGET_ARGUMENT, nb_budget_optional_ns(&budget, (nb_budget_kind)-1));
    reported_default(NB_ITEM_BASE_NULL, stats = nb_budget_stats_get(NULL));
    assert_int_equal(stats.frame_count, 0);
    silent(stats = nb_budget_stats_get(&budget));
    assert_int_equal(stats.frame_count, 0);
    accepted(NB_OK, nb_budget_update(&budget, &sample));
    accepted(3, nb_budget_level(&budget));
}
