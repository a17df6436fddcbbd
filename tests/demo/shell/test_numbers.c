// SPDX-License-Identifier: MIT
// Medians of a run's frames: exact while all are kept, near them after that, and nothing of the first five seconds.

#include "support/support.h"

#include "demo/shell/numbers.h"

#define MS UINT64_C(1000000)

static numbers n;
static numbers_summary summary;

static void clear(void) { memset(&n, 0, sizeof n); }

static void add(uint64_t frame_ms, uint32_t triangle_count) {
    numbers_frame frame = {
        .frame_ns = frame_ms * MS, .gpu_ns = frame_ms * MS / 2, .triangle_count = triangle_count, .quality = 2};
    frame.view_triangle_count = 2 * triangle_count;
    frame.phase_ns[NB_PHASE_FIXED_SIM] = frame_ms * MS / 4;
    frame.upload_bytes = n.last.upload_bytes + 1000000;
    frame.chunk_count = n.last.chunk_count + 3;
    numbers_add(&n, &frame);
}

TEST(without_frames_there_are_no_numbers) {
    clear();
    assert_false(numbers_sum_up(&n, &summary));
    assert_int_equal(summary.frame_count, 0);
}

TEST(a_short_run_is_summed_up_whole) {
    clear();
    add(100, 7), add(10, 9), add(20, 8);
    assert_true(numbers_sum_up(&n, &summary));
    assert_false(summary.is_warm);
    assert_int_equal(summary.frame_count, 3);
    assert_true(summary.fps == 50 && summary.gpu_ms == 10 && summary.phase_ms[NB_PHASE_FIXED_SIM] == 5);
    assert_true(summary.triangle_count == 8 && summary.triangle_max == 9 && summary.view_triangle_count == 16);
    assert_true(summary.quality == 2 && summary.quality_most == 2);
    assert_int_equal(summary.upload_bytes, 3000000);
}

// A frame a tenth of a second for five of them, then fifty a second.
TEST(what_was_before_it_settled_is_forgotten) {
    clear();
    for (uint32_t i = 0; i < 49; ++i) add(100, 1000);
    assert_true(numbers_sum_up(&n, &summary) && !summary.is_warm);
    add(100, 1000);
    assert_false(numbers_sum_up(&n, &summary)); // it has settled just now
    for (uint32_t i = 0; i < 100; ++i) add(20, 10 + i);
    assert_true(numbers_sum_up(&n, &summary) && summary.is_warm);
    assert_int_equal(summary.frame_count, 100);
    assert_true(summary.fps == 50);
    assert_true(summary.triangle_count == 59 && summary.triangle_max == 109);
    assert_int_equal(summary.upload_bytes, 150000000); // of all
    assert_true(summary.time_s == 2 && summary.upload_mb_per_s == 50 && summary.chunks_per_s == 150);
}

TEST(memory_is_bounded_and_frames_are_left_out_evenly) {
    clear();
    numbers_frame frame = {.frame_ns = NUMBERS_WARM_NS};
    numbers_add(&n, &frame);
    const uint32_t count = 10 * NUMBERS_SAMPLES_MAX + 77;
    for (uint32_t i = 0; i < count; ++i) {
        frame = (numbers_frame){.frame_ns = 1, .triangle_count = i, .quality = i < count / 3 ? 1 : 6};
        numbers_add(&n, &frame);
        assert_true(n.sample_count <= NUMBERS_SAMPLES_MAX);
    }
    for (uint32_t i = 0; i < n.sample_count; ++i)
        assert_true(n.samples[i][NUMBERS_TRIANGLES] == (float)(i << n.halved_count));
    assert_true(n.sample_count > NUMBERS_SAMPLES_MAX / 2);
    assert_true(numbers_sum_up(&n, &summary));
    assert_int_equal(summary.frame_count, count);
    assert_in_range(summary.triangle_count, count / 2 - 16, count / 2 + 16);
    assert_int_equal(summary.triangle_max, count - 1);
    assert_int_equal(summary.quality_most, 6);
}
