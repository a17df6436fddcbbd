// SPDX-License-Identifier: MIT
// nebula/frame_stats.h: statistics and records that are none.

#include "bad_input/bad_input.h"

#include "nebula/frame_stats.h"

TEST(frame_stats_refuse_null_and_keep_their_frames) {
    static nb_frame_stats stats;
    nb_frame_record record = {.frame_ns = UINT64_MAX, .tick_count = 1};
    nb_frame_summary summary;
    memset(&summary, 0x5A, sizeof summary);
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_frame_stats_init(NULL));
    accepted(NB_OK, nb_frame_stats_init(&stats));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_frame_stats_add(NULL, &record));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_frame_stats_add(&stats, NULL));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_frame_stats_summarise(NULL, 0, &summary));
    accepted(NB_EMPTY, nb_frame_stats_summarise(&stats, 0, &summary));
    accepted(NB_OK, nb_frame_stats_add(&stats, &record)); // the longest frame there is
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_frame_stats_summarise(&stats, 0, NULL));
    assert_untouched(summary, 0x5A);
    accepted(NB_OK, nb_frame_stats_summarise(&stats, UINT32_MAX, &summary));
    assert_int_equal(summary.frame_count, 1);
}
