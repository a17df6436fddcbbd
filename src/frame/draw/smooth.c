// SPDX-License-Identifier: MIT
// Offsets that fade: what is drawn is the state plus what is left of its last corrections.

#include "nebula/smooth.h"

#include <math.h>
#include <string.h>

#include "../../base/base.h"

nb_smooth_desc nb_smooth_desc_default(void) { return (nb_smooth_desc){.blend_ns = NB_SMOOTH_BLEND_NS_DEFAULT}; }

nb_result nb_smooth_init(nb_smooth *smooth, const nb_smooth_desc *desc) {
    if (smooth == NULL) return NBI_FAIL_NULL("smooth");
    if (desc == NULL) return NBI_FAIL_NULL("desc");
    if (desc->memory == NULL || desc->left_ns == NULL || desc->row_count == 0 || desc->float_count == 0)
        return NBI_FAIL(NULL, NB_ITEM_BASE_ARGUMENT, NB_ERR_MISUSE, "a field of the desc is missing");
    size_t count, size_bytes;
    bool has_size =
        nbi_size_mul(desc->row_count, desc->float_count, &count) && nbi_size_mul(count, sizeof(float), &size_bytes);
    if (!has_size || !(desc->snap_distance >= 0.0f))
        return NBI_FAIL(NULL, NB_ITEM_BASE_ARGUMENT, NB_ERR_RANGE, "%u rows of %u floats, or the snap distance",
                        desc->row_count, desc->float_count);
    memset(desc->memory, 0, size_bytes);
    memset(desc->left_ns, 0, desc->row_count * sizeof *desc->left_ns);
    *smooth = (nb_smooth){.desc = *desc};
    if (desc->blend_ns == 0) smooth->desc.blend_ns = NB_SMOOTH_BLEND_NS_DEFAULT;
    return NB_OK;
}

static nb_result check(const nb_smooth *smooth, const char *function) {
    if (smooth != NULL && smooth->desc.memory != NULL) return NB_OK;
    return nbi_fail(NULL, NB_ITEM_BASE_NULL, NB_ERR_MISUSE, function, "smooth is NULL or was never initialised");
}

static nb_result check_row(const nb_smooth *smooth, uint32_t row, const float *value, const char *function) {
    nb_result result = check(smooth, function);
    if (result != NB_OK) return result;
    if (value == NULL) return nbi_fail(NULL, NB_ITEM_BASE_NULL, NB_ERR_MISUSE, function, "the value is NULL");
    if (row < smooth->desc.row_count) return NB_OK;
    return nbi_fail(NULL, NB_ITEM_BASE_ARGUMENT, NB_ERR_RANGE, function, "no row %u", row);
}

static float *offset_of(const nb_smooth *smooth, uint32_t row) {
    return smooth->desc.memory + (size_t)row * smooth->desc.float_count;
}

static float left_of(const nb_smooth *smooth, uint32_t row) {
    return (float)((double)smooth->desc.left_ns[row] / (double)smooth->desc.blend_ns);
}

// By the float that moved most.
static float distance_of(const float *a, const float *b, uint32_t count) {
    float most = 0;
    for (uint32_t i = 0; i < count; ++i) {
        float gap = fabsf(a[i] - b[i]);
        if (!(gap <= most)) most = gap; // a NaN stays
        if (isnan(gap)) break;
    }
    return most;
}

// False: what is left of many large ones is no number any more.
static bool blend(nb_smooth *smooth, uint32_t row, const float *before, const float *after) {
    float *offset = offset_of(smooth, row), left = left_of(smooth, row);
    bool is_number = true;
    for (uint32_t i = 0; i < smooth->desc.float_count; ++i) {
        // Where nothing is left the offset may be any: also one that was no number.
        offset[i] = (left > 0 ? offset[i] * left : 0) + (before[i] - after[i]);
        is_number = is_number && isfinite(offset[i]);
    }
    smooth->desc.left_ns[row] = is_number ? smooth->desc.blend_ns : 0;
    return is_number;
}

nb_result nb_smooth_correct(nb_smooth *smooth, uint32_t row, const float *before, const float *after) {
    nb_result result = check_row(smooth, row, before, __func__);
    if (result == NB_OK) result = check_row(smooth, row, after, __func__);
    if (result != NB_OK) return result;
    nb_smooth_stats *stats = &smooth->stats;
    float distance = distance_of(before, after, smooth->desc.float_count), most = smooth->desc.snap_distance;
    bool is_far = !isfinite(distance) || (most > 0 && distance > most);
    if (distance == 0) {
        ++stats->same_count;
    } else if (is_far) {
        ++stats->snap_count;
        smooth->desc.left_ns[row] = 0;
    } else if (!blend(smooth, row, before, after)) {
        ++stats->snap_count;
    } else {
        ++stats->blend_count;
        if (distance > stats->distance_max) stats->distance_max = distance;
    }
    return NB_OK;
}

nb_result nb_smooth_advance(nb_smooth *smooth, uint64_t delta_ns) {
    nb_result result = check(smooth, __func__);
    if (result != NB_OK) return result;
    for (uint32_t row = 0; row < smooth->desc.row_count; ++row)
        smooth->desc.left_ns[row] -= nbi_min_u64(delta_ns, smooth->desc.left_ns[row]);
    return NB_OK;
}

nb_result nb_smooth_apply(const nb_smooth *smooth, uint32_t row, float *value) {
    nb_result result = check_row(smooth, row, value, __func__);
    if (result != NB_OK || smooth->desc.left_ns[row] == 0) return result;
    const float *offset = offset_of(smooth, row);
    float left = left_of(smooth, row);
    for (uint32_t i = 0; i < smooth->desc.float_count; ++i) value[i] += offset[i] * left;
    return NB_OK;
}

nb_result nb_smooth_reset(nb_smooth *smooth, uint32_t row) {
    static const float any = 0;
    nb_result result = check_row(smooth, row, &any, __func__);
    if (result == NB_OK) smooth->desc.left_ns[row] = 0;
    return result;
}

nb_smooth_stats nb_smooth_stats_get(const nb_smooth *smooth) {
    return check(smooth, __func__) == NB_OK ? smooth->stats : (nb_smooth_stats){0};
}
