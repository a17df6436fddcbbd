// SPDX-License-Identifier: MIT
// Frame statistics against a plain sort of the same numbers.

#include "support/support.h"

#include "nebula/frame_stats.h"
#include "nebula/loop.h"

#define MS UINT64_C(1000000)

static int compare(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static nb_frame_stats *fresh_stats(void) {
    static nb_frame_stats stats;
    assert_int_equal(nb_frame_stats_init(&stats), NB_OK);
    return &stats;
}

static void add(nb_frame_stats *stats, uint64_t frame_ns, uint32_t tick_count, float alpha) {
    nb_frame_record record = {.frame_ns = frame_ns, .tick_count = tick_count, .alpha = alpha};
    assert_int_equal(nb_frame_stats_add(stats, &record), NB_OK);
}

// The smallest value that at least `share` of all do not exceed, by counting.
static uint64_t percentile_by_definition(const uint64_t *sorted, uint32_t count, double share) {
    for (uint32_t i = 0; i < count; ++i) {
        if ((double)(i + 1) >= share * (double)count - 1e-9) return sorted[i];
    }
    return sorted[count - 1];
}

TEST(summary_equals_a_plain_sort) {
    uint64_t seed = test_seed(__func__);
    static uint64_t all[3000], sorted[NB_FRAME_STATS_COUNT_MAX];
    nb_frame_stats *stats = fresh_stats();
    for (uint32_t n = 0; n < 3000; ++n) {
        all[n] = test_random(&seed) % (test_random(&seed) % 50 == 0 ? 100 * MS : 20 * MS);
        add(stats, all[n], n % 3, 0.25f);
        uint32_t window = 1 + (uint32_t)(test_random(&seed) % 1500);
        uint32_t count = window < n + 1 ? window : n + 1;
        if (count > NB_FRAME_STATS_COUNT_MAX) count = NB_FRAME_STATS_COUNT_MAX;
        if (n % 7 != 0) continue;
        nb_frame_summary s;
        assert_int_equal(nb_frame_stats_summarise(stats, window, &s), NB_OK);
        memcpy(sorted, &all[n + 1 - count], count * sizeof sorted[0]);
        qsort(sorted, count, sizeof sorted[0], compare);
        uint64_t sum = 0;
        for (uint32_t i = 0; i < count; ++i) sum += sorted[i];
        assert_int_equal(s.frame_count, count);
        assert_int_equal(s.mean_ns, sum / count);
        assert_true(s.min_ns == sorted[0] && s.max_ns == sorted[count - 1]);
        assert_int_equal(s.p50_ns, percentile_by_definition(sorted, count, 0.5));
        assert_int_equal(s.p95_ns, percentile_by_definition(sorted, count, 0.95));
        assert_int_equal(s.p99_ns, percentile_by_definition(sorted, count, 0.99));
        assert_int_equal(s.p999_ns, percentile_by_definition(sorted, count, 0.999));
        assert_int_equal(s.frame_ns, all[n]);
        assert_int_equal(s.tick_count, n % 3);
    }
}

TEST(steady_frames_have_steady_numbers) {
    nb_frame_stats *stats = fresh_stats();
    for (int i = 0; i < 2000; ++i) add(stats, 20 * MS, (uint32_t)(i % 2) * 2, 0.5f);
    nb_frame_summary s;
    assert_int_equal(nb_frame_stats_summarise(stats, 0, &s), NB_OK);
    assert_int_equal(s.frame_count, NB_FRAME_STATS_COUNT_MAX);
    assert_true(s.fps > 49.999 && s.fps < 50.001 && s.ups > 49.999 && s.ups < 50.001);
    assert_true(s.low_1_percent_fps > 49.999 && s.alpha == 0.5f);
    assert_int_equal(s.hitch_count, 0);
}

TEST(hitches_and_the_slowest_percent_are_seen) {
    nb_frame_stats *stats = fresh_stats();
    add(stats, 500 * MS, 0, 0.0f); // too early to judge
    for (int i = 0; i < 1000; ++i) add(stats, i % 200 == 199 ? 50 * MS : 10 * MS, 1, 0.0f);
    nb_frame_summary s;
    assert_int_equal(nb_frame_stats_summarise(stats, 1000, &s), NB_OK);
    assert_int_equal(s.hitch_count, 5);
    assert_int_equal(s.p99_ns, 10 * MS);
    assert_int_equal(s.p999_ns, 50 * MS);
    // The slowest ten frames: five of 50 ms and five of 10 ms.
    assert_true(s.low_1_percent_fps > 33.3 && s.low_1_percent_fps < 33.4);
}

TEST(empty_huge_and_zero_frames_are_harmless) {
    nb_frame_stats *stats = fresh_stats();
    nb_frame_summary s = {.frame_count = 77};
    assert_int_equal(nb_frame_stats_summarise(stats, 0, &s), NB_EMPTY);
    assert_int_equal(s.frame_count, 77);
    add(stats, 0, 1, 0.0f);
    assert_int_equal(nb_frame_stats_summarise(stats, 0, &s), NB_OK);
    assert_true(s.fps == 0.0 && s.ups == 0.0 && s.low_1_percent_fps == 0.0);
    for (int i = 0; i < 3000; ++i) add(stats, UINT64_MAX, UINT32_MAX, 0.0f);
    assert_int_equal(nb_frame_stats_summarise(stats, 0, &s), NB_OK);
    assert_int_equal(s.mean_ns, UINT64_MAX / NB_FRAME_STATS_COUNT_MAX);
    for (int i = 0; i < NB_FRAME_STATS_COUNT_MAX; ++i) add(stats, 10 * MS, 1, 0.0f);
    assert_int_equal(nb_frame_stats_summarise(stats, 0, &s), NB_OK);
    assert_int_equal(s.mean_ns, 10 * MS); // the sum over the ring recovered
    assert_int_equal(stats->window_ns, 10 * MS * NB_FRAME_STATS_COUNT_MAX);
}

TEST(loop_fills_its_stats) {
    nb_frame_stats *stats = fresh_stats();
    nb_loop loop;
    nb_loop_desc desc = {.tick_rate = {50, 1}, .stats = stats};
    desc.hooks.logger.level_min = NB_LOG_OFF;
    assert_int_equal(nb_loop_init(&loop, &desc), NB_OK);
    const uint64_t deltas[] = {0, 10 * MS, 45 * MS, 5000 * MS}; // the first has no length, the last is a gap
    for (int i = 0; i < 4; ++i) {
        nb_loop_begin_delta(&loop, deltas[i]);
        nb_loop_tick tick;
        while (nb_loop_next_tick(&loop, &tick)) continue;
        nb_loop_end(&loop);
    }
    nb_frame_summary s;
    assert_int_equal(nb_frame_stats_summarise(stats, 0, &s), NB_OK);
    assert_int_equal(s.frame_count, 2);
    assert_int_equal(s.frame_ns, 45 * MS);
    assert_int_equal(s.tick_count, 2);
    assert_true(s.alpha == 0.75f);
}

TEST(bad_arguments_have_defined_results) {
    nb_frame_stats *stats = fresh_stats();
    nb_frame_record record = {0};
    nb_frame_summary s;
    assert_int_equal(nb_frame_stats_init(NULL), NB_ERR_MISUSE);
    assert_int_equal(nb_frame_stats_add(NULL, &record), NB_ERR_MISUSE);
    assert_int_equal(nb_frame_stats_add(stats, NULL), NB_ERR_MISUSE);
    assert_int_equal(nb_frame_stats_summarise(NULL, 1, &s), NB_ERR_MISUSE);
    assert_int_equal(nb_frame_stats_summarise(stats, 1, NULL), NB_ERR_MISUSE);
    assert_int_equal(stats->total_count, 0);
}
