// SPDX-License-Identifier: MIT
// What can be wrong with a desc, before a backend sees it.

#include "gpu.h"

static const char *wrong(nb_result *result, nb_result value, const char *text) {
    *result = value;
    return text;
}

static bool is_format(nb_gpu_format format) { return format > NB_GPU_FORMAT_NONE && format < NB_GPU_FORMAT_COUNT; }

static bool is_depth(nb_gpu_format format) { return format == NB_GPU_FORMAT_DEPTH32F; }

const char *nbi_gpu_buffer_problem(const nb_gpu_buffer_desc *desc, nb_result *result) {
    if (desc->memory < 0 || desc->memory >= NB_GPU_MEMORY_COUNT)
        return wrong(result, NB_ERR_MISUSE, "there is no such memory");
    if (desc->size_bytes == 0 || desc->size_bytes > NB_GRAPH_BUFFER_BYTES_MAX)
        return wrong(result, NB_ERR_RANGE, "a buffer has 1 byte to a tebibyte");
    return NULL;
}

const char *nbi_gpu_image_problem(const nb_gpu_image_desc *desc, nb_result *result) {
    const nb_gpu_access depth = NB_GPU_ACCESS_DEPTH | NB_GPU_ACCESS_DEPTH_READ;
    const nb_gpu_access color = NB_GPU_ACCESS_COLOR | NB_GPU_ACCESS_STORAGE | NB_GPU_ACCESS_STORAGE_READ;
    if (!is_format(desc->format)) return wrong(result, NB_ERR_MISUSE, "there is no such format");
    if (desc->access == 0 || (desc->access & ~NB_GPU_ACCESS_OF_IMAGES) != 0)
        return wrong(result, NB_ERR_MISUSE, "images cannot be used in this way");
    bool is_sized = desc->width != 0 && desc->height != 0 && desc->width <= NB_GRAPH_IMAGE_SIZE_MAX &&
                    desc->height <= NB_GRAPH_IMAGE_SIZE_MAX && desc->layer_count <= NB_GPU_LAYER_COUNT_MAX;
    if (!is_sized) return wrong(result, NB_ERR_RANGE, "an image has no such size");
    if ((desc->access & (is_depth(desc->format) ? color : depth)) != 0)
        return wrong(result, NB_ERR_UNSUPPORTED, "the format cannot be used in this way");
    return NULL;
}

static bool is_shader(const nb_gpu_shader *shader) {
    return shader->words != NULL && shader->size_bytes != 0 && shader->size_bytes % 4 == 0;
}

static bool is_absent(const nb_gpu_shader *shader) { return shader->words == NULL && shader->size_bytes == 0; }

static const char *shaders_problem(const nb_gpu_pipeline_desc *desc) {
    bool is_drawing = is_absent(&desc->compute);
    if (!is_drawing) {
        bool is_alone = is_absent(&desc->vertex) && is_absent(&desc->fragment);
        return is_alone && is_shader(&desc->compute) ? NULL : "shaders that compute and draw, or no words";
    }
    if (!is_shader(&desc->vertex)) return "no vertex shader";
    // What only writes depth needs none.
    bool is_fragment = is_shader(&desc->fragment) || (is_absent(&desc->fragment) && desc->color_count == 0);
    return is_fragment ? NULL : "no fragment shader";
}

static bool are_enums(const nb_gpu_pipeline_desc *desc) {
    return desc->topology >= 0 && desc->topology < NB_GPU_TOPOLOGY_COUNT && desc->blend >= 0 &&
           desc->blend < NB_GPU_BLEND_COUNT && desc->cull >= 0 && desc->cull < NB_GPU_CULL_COUNT && desc->depth >= 0 &&
           desc->depth < NB_GPU_DEPTH_COUNT;
}

static bool are_targets(const nb_gpu_pipeline_desc *desc) {
    for (uint32_t i = 0; i < desc->color_count; ++i) {
        if (!is_format(desc->colors[i]) || is_depth(desc->colors[i])) return false;
    }
    bool has_depth = desc->depth_format != NB_GPU_FORMAT_NONE;
    if (has_depth && !is_depth(desc->depth_format)) return false;
    return has_depth || desc->depth == NB_GPU_DEPTH_NONE;
}

const char *nbi_gpu_pipeline_problem(const nb_gpu_pipeline_desc *desc, nb_result *result) {
    const char *problem = shaders_problem(desc);
    if (problem != NULL) return wrong(result, NB_ERR_MISUSE, problem);
    if (desc->color_count > NB_GRAPH_COLOR_COUNT_MAX) return wrong(result, NB_ERR_RANGE, "too many colours");
    if (desc->push_bytes > NB_GPU_PUSH_BYTES_MAX || desc->push_bytes % 4 != 0)
        return wrong(result, NB_ERR_RANGE, "constants are words, up to 128 bytes");
    uint32_t masks = desc->uniform_mask | desc->storage_mask | desc->sampled_mask | desc->storage_image_mask;
    if (masks > 0xFF) return wrong(result, NB_ERR_RANGE, "a mask has 8 bits");
    bool is_twice = (desc->uniform_mask & desc->storage_mask) != 0 || (desc->sampled_mask & desc->storage_image_mask);
    if (is_twice) return wrong(result, NB_ERR_MISUSE, "a binding is one of two kinds");
    if (!are_enums(desc) || !are_targets(desc)) return wrong(result, NB_ERR_MISUSE, "there is no such state or format");
    return NULL;
}
