// SPDX-License-Identifier: MIT
// Previous and current rows of floats, and values between them.

#include "nebula/interpolate.h"

#include <string.h>

#include "../../base/base.h"

nb_poses_desc nb_poses_desc_default(void) { return (nb_poses_desc){0}; }

nb_result nb_poses_init(nb_poses *poses, const nb_poses_desc *desc) {
    if (poses == NULL) return NBI_FAIL_NULL("poses");
    if (desc == NULL) return NBI_FAIL_NULL("desc");
    if (desc->memory == NULL || desc->marks == NULL || desc->row_count == 0 || desc->float_count == 0) {
        return NBI_FAIL(NULL, NB_ITEM_BASE_ARGUMENT, NB_ERR_MISUSE, "a field of the desc is missing");
    }
    size_t count, size_bytes;
    if (!nbi_size_mul(desc->row_count, desc->float_count, &count) ||
        !nbi_size_mul(count, 2 * sizeof(float), &size_bytes)) {
        return NBI_FAIL(NULL, NB_ITEM_BASE_ARGUMENT, NB_ERR_RANGE, "%u rows of %u floats", desc->row_count,
                        desc->float_count);
    }
    memset(desc->memory, 0, size_bytes);
    memset(desc->marks, 0, desc->row_count);
    *poses = (nb_poses){
        .previous = desc->memory,
        .current = desc->memory + count,
        .marks = desc->marks,
        .row_count = desc->row_count,
        .float_count = desc->float_count,
    };
    return NB_OK;
}

static nb_result check(const nb_poses *poses, const char *function) {
    if (poses != NULL && poses->current != NULL) return NB_OK;
    return nbi_fail(NULL, NB_ITEM_BASE_NULL, NB_ERR_MISUSE, function, "poses is NULL or was never initialised");
}

float *nb_poses_begin_tick(nb_poses *poses) {
    if (check(poses, __func__) != NB_OK) return NULL;
    float *oldest = poses->previous;
    poses->previous = poses->current;
    poses->current = oldest;
    memcpy(poses->current, poses->previous, (size_t)poses->row_count * poses->float_count * sizeof(float));
    // There is nothing before the first tick to come from.
    memset(poses->marks, poses->has_tick ? 0 : 1, poses->row_count);
    poses->has_tick = true;
    return poses->current;
}

nb_result nb_poses_teleport(nb_poses *poses, uint32_t row) {
    nb_result result = check(poses, __func__);
    if (result != NB_OK) return result;
    if (row >= poses->row_count) return NBI_FAIL(NULL, NB_ITEM_BASE_ARGUMENT, NB_ERR_RANGE, "no row %u", row);
    poses->marks[row] = 1;
    return NB_OK;
}

static void sample_row(const nb_poses *poses, uint32_t row, float alpha, nb_pose_mode mode, float *out) {
    const float *previous = poses->previous + (size_t)row * poses->float_count;
    const float *current = poses->current + (size_t)row * poses->float_count;
    if (poses->marks[row]) {
        memcpy(out, current, poses->float_count * sizeof(float));
        return;
    }
    const float *base = mode == NB_POSE_EXTRAPOLATE ? current : previous;
    for (uint32_t i = 0; i < poses->float_count; ++i) out[i] = base[i] + (current[i] - previous[i]) * alpha;
}

// Written so that a NaN becomes 0.
static float cut(float alpha) { return alpha > 0.0f ? (alpha < 1.0f ? alpha : 1.0f) : 0.0f; }

static nb_result check_sample(const nb_poses *poses, nb_pose_mode mode, const float *out, const char *function) {
    nb_result result = check(poses, function);
    if (result != NB_OK) return result;
    if (out != NULL && (unsigned)mode < NB_POSE_MODE_COUNT) return NB_OK;
    return nbi_fail(NULL, NB_ITEM_BASE_ARGUMENT, NB_ERR_MISUSE, function, "out is NULL or the mode is none");
}

nb_result nb_poses_sample(const nb_poses *poses, uint32_t row, float alpha, nb_pose_mode mode, float *out) {
    nb_result result = check_sample(poses, mode, out, __func__);
    if (result != NB_OK) return result;
    if (row >= poses->row_count) return NBI_FAIL(NULL, NB_ITEM_BASE_ARGUMENT, NB_ERR_RANGE, "no row %u", row);
    sample_row(poses, row, cut(alpha), mode, out);
    return NB_OK;
}

nb_result nb_poses_sample_all(const nb_poses *poses, float alpha, nb_pose_mode mode, float *out) {
    nb_result result = check_sample(poses, mode, out, __func__);
    if (result != NB_OK) return result;
    alpha = cut(alpha);
    for (uint32_t row = 0; row < poses->row_count; ++row) {
        sample_row(poses, row, alpha, mode, out + (size_t)row * poses->float_count);
    }
    return NB_OK;
}
