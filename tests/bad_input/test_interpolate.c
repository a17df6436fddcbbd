// SPDX-License-Identifier: MIT
// nebula/interpolate.h: pose buffers with a gap, and rows and modes that they do not have.

#include "bad_input/bad_input.h"

#include "nebula/interpolate.h"

#define POSE_ROWS 2
#define POSE_FLOATS 3

TEST(pose_buffer_refuses_descs_with_a_gap) {
    float memory[2 * POSE_ROWS * POSE_FLOATS];
    uint8_t marks[POSE_ROWS];
    nb_poses poses;
    memset(&poses, 0x5A, sizeof poses);
    const nb_poses_desc whole = {POSE_ROWS, POSE_FLOATS, memory, marks};
    nb_poses_desc gaps[] = {whole, whole, whole, whole, nb_poses_desc_default()};
    gaps[0].row_count = 0;
    gaps[1].float_count = 0;
    gaps[2].memory = NULL;
    gaps[3].marks = NULL;
    for (size_t i = 0; i < sizeof gaps / sizeof gaps[0]; ++i) {
        refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_ARGUMENT, nb_poses_init(&poses, &gaps[i]));
    }
    nb_poses_desc huge = whole;
    huge.row_count = huge.float_count = UINT32_MAX;
    refused_default(NB_ERR_RANGE, NB_ITEM_BASE_ARGUMENT, nb_poses_init(&poses, &huge));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_poses_init(&poses, NULL));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_poses_init(NULL, &whole));
    assert_untouched(poses, 0x5A);
}

static void bad_pose_buffers_are_refused(nb_poses *poses) {
    float out[POSE_ROWS * POSE_FLOATS];
    memset(out, 0x5A, sizeof out);
    refused_default(NULL, NB_ITEM_BASE_NULL, nb_poses_begin_tick(poses));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_poses_teleport(poses, 0));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_poses_sample(poses, 0, 0.5f, NB_POSE_INTERPOLATE, out));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_poses_sample_all(poses, 0.5f, NB_POSE_INTERPOLATE, out));
    assert_untouched(out, 0x5A);
}

TEST(pose_buffer_refuses_rows_and_modes_it_has_not) {
    nb_poses zeroed = {0}, poses;
    bad_pose_buffers_are_refused(NULL);
    bad_pose_buffers_are_refused(&zeroed);
    float memory[2 * POSE_ROWS * POSE_FLOATS], out[POSE_ROWS * POSE_FLOATS];
    uint8_t marks[POSE_ROWS];
    memset(out, 0x5A, sizeof out);
    accepted(NB_OK, nb_poses_init(&poses, &(nb_poses_desc){POSE_ROWS, POSE_FLOATS, memory, marks}));
    nb_poses_begin_tick(&poses)[0] = 1.0f;
    const nb_pose_mode modes[] = {NB_POSE_MODE_COUNT, (nb_pose_mode)-1};
    for (size_t i = 0; i < 2; ++i) {
        refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_ARGUMENT, nb_poses_sample(&poses, 0, 0.5f, modes[i], out));
        refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_ARGUMENT, nb_poses_sample_all(&poses, 0.5f, modes[i], out));
    }
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_ARGUMENT, nb_poses_sample(&poses, 0, 0.5f, NB_POSE_INTERPOLATE, NULL));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_ARGUMENT, nb_poses_sample_all(&poses, 0.5f, NB_POSE_EXTRAPOLATE, NULL));
    refused_default(NB_ERR_RANGE, NB_ITEM_BASE_ARGUMENT,
                    nb_poses_sample(&poses, POSE_ROWS, 0.5f, NB_POSE_INTERPOLATE, out));
    refused_default(NB_ERR_RANGE, NB_ITEM_BASE_ARGUMENT, nb_poses_teleport(&poses, UINT32_MAX));
    assert_untouched(out, 0x5A);
    accepted(NB_OK, nb_poses_sample(&poses, 0, -1.0f, NB_POSE_INTERPOLATE, out));
    assert_true(out[0] == 1.0f);
}
