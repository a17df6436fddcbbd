// SPDX-License-Identifier: MIT
// Poses between ticks: per tick, not per frame; teleports do not streak.

#include "support/support.h"

#include "nebula/interpolate.h"
#include "nebula/loop.h"

#define ROWS 4
#define WIDTH 3

typedef struct fixture {
    float memory[2 * ROWS * WIDTH];
    uint8_t marks[ROWS];
    nb_poses poses;
} fixture;

static void fixture_init(fixture *f) {
    memset(f->memory, 0xA5, sizeof f->memory);
    memset(f->marks, 0xA5, sizeof f->marks);
    nb_poses_desc desc = {.row_count = ROWS, .float_count = WIDTH, .memory = f->memory, .marks = f->marks};
    assert_int_equal(nb_poses_init(&f->poses, &desc), NB_OK);
}

static void push_all(fixture *f, float value) {
    float *rows = nb_poses_begin_tick(&f->poses);
    assert_non_null(rows);
    for (int i = 0; i < ROWS * WIDTH; ++i) rows[i] = value;
}

static float sample(const fixture *f, uint32_t row, float alpha, nb_pose_mode mode) {
    float out[WIDTH] = {-1.0f, -1.0f, -1.0f};
    assert_int_equal(nb_poses_sample(&f->poses, row, alpha, mode, out), NB_OK);
    assert_true(out[0] == out[1] && out[1] == out[2]);
    return out[0];
}

TEST(values_lie_between_the_last_two_ticks) {
    fixture f;
    fixture_init(&f);
    push_all(&f, 10.0f);
    push_all(&f, 20.0f);
    assert_true(sample(&f, 1, 0.0f, NB_POSE_INTERPOLATE) == 10.0f); // one tick old
    assert_true(sample(&f, 1, 0.25f, NB_POSE_INTERPOLATE) == 12.5f);
    assert_true(sample(&f, 1, 0.25f, NB_POSE_EXTRAPOLATE) == 22.5f);
    // Two ticks in one frame: the one before the last counts, not the last one shown.
    push_all(&f, 40.0f);
    push_all(&f, 80.0f);
    assert_true(sample(&f, 2, 0.5f, NB_POSE_INTERPOLATE) == 60.0f);
    // A frame without ticks changes nothing.
    assert_true(sample(&f, 2, 0.75f, NB_POSE_INTERPOLATE) == 70.0f);
    float all[ROWS * WIDTH];
    assert_int_equal(nb_poses_sample_all(&f.poses, 0.5f, NB_POSE_INTERPOLATE, all), NB_OK);
    for (int i = 0; i < ROWS * WIDTH; ++i) assert_true(all[i] == 60.0f);
}

TEST(first_tick_does_not_come_from_zero) {
    fixture f;
    fixture_init(&f);
    assert_true(sample(&f, 0, 0.5f, NB_POSE_INTERPOLATE) == 0.0f); // before any tick
    push_all(&f, 100.0f);
    assert_true(sample(&f, 0, 0.0f, NB_POSE_INTERPOLATE) == 100.0f);
    assert_true(sample(&f, 0, 0.5f, NB_POSE_EXTRAPOLATE) == 100.0f);
    push_all(&f, 110.0f);
    assert_true(sample(&f, 0, 0.5f, NB_POSE_INTERPOLATE) == 105.0f);
}

TEST(teleport_is_shown_at_once_and_for_one_tick) {
    fixture f;
    fixture_init(&f);
    push_all(&f, 0.0f);
    push_all(&f, 1.0f);
    push_all(&f, 500.0f);
    assert_int_equal(nb_poses_teleport(&f.poses, 2), NB_OK);
    assert_true(sample(&f, 2, 0.0f, NB_POSE_INTERPOLATE) == 500.0f);
    assert_true(sample(&f, 2, 0.5f, NB_POSE_EXTRAPOLATE) == 500.0f);
    assert_true(sample(&f, 1, 0.0f, NB_POSE_INTERPOLATE) == 1.0f); // its neighbour did not jump
    push_all(&f, 502.0f);
    assert_true(sample(&f, 2, 0.5f, NB_POSE_INTERPOLATE) == 501.0f);
}

TEST(rows_not_written_stay) {
    fixture f;
    fixture_init(&f);
    push_all(&f, 7.0f);
    float *rows = nb_poses_begin_tick(&f.poses);
    rows[0] = rows[1] = rows[2] = 9.0f;
    nb_poses_begin_tick(&f.poses);
    assert_true(sample(&f, 0, 0.5f, NB_POSE_INTERPOLATE) == 9.0f);
    assert_true(sample(&f, 3, 0.5f, NB_POSE_INTERPOLATE) == 7.0f);
}

TEST(motion_is_smooth_through_the_loop) {
    // A thing that moves 60 units a second, drawn at 144 Hz: each frame moves it by 60/144, one tick late.
    nb_loop loop;
    nb_loop_init(&loop, NULL);
    fixture f;
    fixture_init(&f);
    uint64_t now_ns = 0;
    for (uint64_t i = 1; i <= 1440; ++i) {
        uint64_t next_ns = i * 1000000000u / 144;
        nb_loop_begin_delta(&loop, next_ns - now_ns);
        now_ns = next_ns;
        nb_loop_tick tick;
        while (nb_loop_next_tick(&loop, &tick)) {
            float *rows = nb_poses_begin_tick(&f.poses);
            for (int k = 0; k < WIDTH; ++k) rows[k] = (float)(tick.index + 1);
        }
        nb_loop_end(&loop);
        if (nb_loop_tick_count(&loop) < 2) continue;
        float expected = (float)((double)now_ns * 60e-9 - 1.0);
        float error = sample(&f, 0, nb_loop_alpha_f32(&loop), NB_POSE_INTERPOLATE) - expected;
        assert_true(error < 1e-3f && error > -1e-3f);
    }
}

TEST(bad_arguments_have_defined_results) {
    fixture f;
    fixture_init(&f);
    nb_poses zeroed = {0}, untouched = f.poses;
    float out[WIDTH] = {5.0f, 5.0f, 5.0f}, not_a_number = strtof("nan", NULL);
    nb_poses_desc desc = nb_poses_desc_default();
    assert_int_equal(nb_poses_init(&zeroed, &desc), NB_ERR_MISUSE);
    assert_int_equal(nb_poses_init(NULL, &desc), NB_ERR_MISUSE);
    assert_int_equal(nb_poses_init(&zeroed, NULL), NB_ERR_MISUSE);
    desc = (nb_poses_desc){UINT32_MAX, UINT32_MAX, f.memory, f.marks};
    assert_int_equal(nb_poses_init(&zeroed, &desc), NB_ERR_RANGE);
    assert_null(nb_poses_begin_tick(NULL));
    assert_null(nb_poses_begin_tick(&zeroed));
    assert_int_equal(nb_poses_teleport(&zeroed, 0), NB_ERR_MISUSE);
    assert_int_equal(nb_poses_teleport(&f.poses, ROWS), NB_ERR_RANGE);
    assert_int_equal(nb_poses_sample(&f.poses, ROWS, 0.0f, NB_POSE_INTERPOLATE, out), NB_ERR_RANGE);
    assert_int_equal(nb_poses_sample(&f.poses, 0, 0.0f, NB_POSE_INTERPOLATE, NULL), NB_ERR_MISUSE);
    assert_int_equal(nb_poses_sample(&f.poses, 0, 0.0f, (nb_pose_mode)9, out), NB_ERR_MISUSE);
    assert_int_equal(nb_poses_sample(NULL, 0, 0.0f, NB_POSE_INTERPOLATE, out), NB_ERR_MISUSE);
    assert_int_equal(nb_poses_sample_all(&zeroed, 0.0f, NB_POSE_INTERPOLATE, out), NB_ERR_MISUSE);
    assert_true(out[0] == 5.0f);
    assert_memory_equal(&untouched, &f.poses, sizeof untouched);
    push_all(&f, 1.0f);
    push_all(&f, 2.0f);
    assert_true(sample(&f, 0, not_a_number, NB_POSE_INTERPOLATE) == 1.0f);
    assert_true(sample(&f, 0, -3.0f, NB_POSE_INTERPOLATE) == 1.0f);
    assert_true(sample(&f, 0, 3.0f, NB_POSE_INTERPOLATE) == 2.0f);
}
