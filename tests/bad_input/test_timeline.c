// SPDX-License-Identifier: MIT
// nebula/timeline.h: timelines that are none, bad descs, values out of order.

#include "bad_input/bad_input.h"

#include "nebula/timeline.h"

static void destroy_nothing(void *object, void *user) {
    (void)object;
    (void)user;
}

TEST(timelines_refuse_a_bad_desc) {
    test_heap heap = {0};
    nb_timelines *set = UNTOUCHED(nb_timelines);
    const nb_timelines_desc fine = {.hooks = bad_hooks(&heap)};
    nb_timelines_desc large[] = {fine, fine, fine, fine};
    large[0].timeline_count_max = NB_TIMELINE_COUNT_MAX + 1;
    large[1].timeline_count_max = UINT32_MAX;
    large[2].retire_count_max = NB_TIMELINE_RETIRE_COUNT_MAX + 1;
    large[3].retire_count_max = UINT32_MAX;
    for (int i = 0; i < 4; ++i) {
        refused(NB_ERR_RANGE, NB_ITEM_TIMELINE_ARGUMENT, nb_timelines_create(&large[i], &set));
    }
    refused(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_timelines_create(&fine, NULL));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_timelines_create(NULL, NULL));
    assert_int_equal(heap.call_count.value, 0);
    refused_memory(heap, 2, set, nb_timelines_create(&fine, &set));
    accepted(NB_OK, nb_timelines_destroy(NULL));
}

TEST(timeline_functions_refuse_null) {
    nb_timeline *timeline = UNTOUCHED(nb_timeline);
    uint32_t count = 0x5A;
    nb_timelines_stats stats;
    const char *name = NULL;
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_timelines_open(NULL, "gpu", &timeline));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_timeline_signal(NULL, 1));
    refused_default(0, NB_ITEM_BASE_NULL, nb_timeline_value(NULL));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_timeline_wait(NULL, 1, NB_NEVER_NS));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_timeline_retire(NULL, 1, NULL, destroy_nothing, NULL));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_timelines_reclaim(NULL, 0, &count));
    reported_default(NB_ITEM_BASE_NULL, stats = nb_timelines_stats_get(NULL));
    reported_default(NB_ITEM_BASE_NULL, name = nb_timeline_name(NULL));
    assert_string_equal(name, "");
    assert_int_equal(stats.retire_count + stats.timeline_count, 0);
    assert_int_equal(count, 0x5A);
    assert_ptr_equal(timeline, UNTOUCHED(nb_timeline));
}

TEST(timeline_refuses_bad_values) {
    test_heap heap = {0};
    nb_timelines *set = NULL;
    nb_timeline *timeline = NULL;
    nb_timelines_desc desc = {.hooks = bad_hooks(&heap)};
    accepted(NB_OK, nb_timelines_create(&desc, &set));
    refused(NB_ERR_MISUSE, NB_ITEM_TIMELINE_ARGUMENT, nb_timelines_open(set, "gpu", NULL));
    accepted(NB_OK, nb_timelines_open(set, "gpu", &timeline));
    refused(NB_ERR_RANGE, NB_ITEM_TIMELINE_ARGUMENT, nb_timeline_signal(timeline, UINT64_MAX));
    refused(NB_ERR_RANGE, NB_ITEM_TIMELINE_ARGUMENT, nb_timeline_wait(timeline, UINT64_MAX, NB_NEVER_NS));
    refused(NB_ERR_RANGE, NB_ITEM_TIMELINE_ARGUMENT,
            nb_timeline_retire(timeline, UINT64_MAX, NULL, destroy_nothing, NULL));
    refused(NB_ERR_MISUSE, NB_ITEM_TIMELINE_ARGUMENT, nb_timeline_retire(timeline, 1, NULL, NULL, NULL));
    accepted(NB_OK, nb_timeline_signal(timeline, 5));
    refused(NB_ERR_RANGE, NB_ITEM_TIMELINE_BACKWARDS, nb_timeline_signal(timeline, 4));
    accepted(5, nb_timeline_value(timeline));
    accepted(NB_OK, nb_timeline_retire(timeline, 5, NULL, destroy_nothing, NULL));
    accepted(NB_OK, nb_timelines_reclaim(set, 0, NULL));
    nb_timelines_stats stats;
    silent(stats = nb_timelines_stats_get(set));
    assert_true(stats.retire_count == 1 && stats.reclaim_count == 1 && stats.backwards_count == 1);
    accepted(NB_OK, nb_timelines_destroy(set));
    assert_int_equal(heap.live_count.value, 0);
}
