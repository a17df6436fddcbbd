// SPDX-License-Identifier: MIT
// Names and sizes of formats, names of accesses.

#include "nebula/gpu_types.h"

typedef struct format_row {
    const char *name;
    uint32_t bytes;
} format_row;

static const format_row formats[NB_GPU_FORMAT_COUNT] = {
    [NB_GPU_FORMAT_NONE] = {"unknown", 0},      [NB_GPU_FORMAT_R8] = {"r8", 1},
    [NB_GPU_FORMAT_RGBA8] = {"rgba8", 4},       [NB_GPU_FORMAT_RGBA8_SRGB] = {"rgba8_srgb", 4},
    [NB_GPU_FORMAT_BGRA8] = {"bgra8", 4},       [NB_GPU_FORMAT_BGRA8_SRGB] = {"bgra8_srgb", 4},
    [NB_GPU_FORMAT_RGBA16F] = {"rgba16f", 8},   [NB_GPU_FORMAT_R32F] = {"r32f", 4},
    [NB_GPU_FORMAT_R32_UINT] = {"r32_uint", 4}, [NB_GPU_FORMAT_DEPTH32F] = {"depth32f", 4},
};

static const format_row *row_of(nb_gpu_format format) {
    bool is_one = (int)format > 0 && format < NB_GPU_FORMAT_COUNT;
    return &formats[is_one ? format : NB_GPU_FORMAT_NONE];
}

const char *nb_gpu_format_name(nb_gpu_format format) { return row_of(format)->name; }

uint32_t nb_gpu_format_bytes(nb_gpu_format format) { return row_of(format)->bytes; }

const char *nb_gpu_access_name(nb_gpu_access access) {
    switch (access) {
    case NB_GPU_ACCESS_NONE: return "none";
    case NB_GPU_ACCESS_COLOR: return "color";
    case NB_GPU_ACCESS_DEPTH: return "depth";
    case NB_GPU_ACCESS_DEPTH_READ: return "depth_read";
    case NB_GPU_ACCESS_SAMPLED: return "sampled";
    case NB_GPU_ACCESS_STORAGE_READ: return "storage_read";
    case NB_GPU_ACCESS_STORAGE: return "storage";
    case NB_GPU_ACCESS_UNIFORM: return "uniform";
    case NB_GPU_ACCESS_VERTEX: return "vertex";
    case NB_GPU_ACCESS_INDEX: return "index";
    case NB_GPU_ACCESS_INDIRECT: return "indirect";
    case NB_GPU_ACCESS_COPY_FROM: return "copy_from";
    case NB_GPU_ACCESS_COPY_TO: return "copy_to";
    case NB_GPU_ACCESS_PRESENT: return "present";
    default: return (access & ~NB_GPU_ACCESS_ALL) != 0 ? "unknown" : "several";
    }
}
