// SPDX-License-Identifier: MIT
// What the picture is drawn to: the surface's image, or one of the device's own.

#include "gpu.h"

static nbi_gpu_object *image_at(const nb_gpu *gpu, uint32_t index) {
    return &gpu->tables[NBI_GPU_IMAGE].objects[index];
}

uint32_t nbi_gpu_back_index(const nb_gpu *gpu) {
    return gpu->info.has_surface ? gpu->slots[gpu->slot].surface : gpu->back;
}

// The device is idle meanwhile: what is shown now is of the old one.
static nb_result make_surface(nb_gpu *gpu) {
    nb_result result = nbi_gpu_wait(gpu, gpu->submitted, gpu->desc.wait_ns);
    if (result != NB_OK) return result;
    result = gpu->backend->surface_resize(gpu->self, gpu->width, gpu->height, gpu->desc.is_vsync_off);
    if (result != NB_OK) return nbi_gpu_note_result(gpu, result, "making a surface");
    gpu->is_surface_stale = false;
    ++gpu->stats.resize_count;
    return NB_OK;
}

static nb_result acquire(nb_gpu *gpu) {
    uint32_t index = gpu->slots[gpu->slot].surface, width = 0, height = 0;
    nb_result result = gpu->backend->acquire(gpu->self, gpu->slot, index, &width, &height);
    if (result != NB_OK) return nbi_gpu_note_result(gpu, result, "taking an image of the surface");
    gpu->back_width = width;
    gpu->back_height = height;
    nb_gpu_image_desc *desc = &image_at(gpu, index)->desc.image;
    desc->width = width, desc->height = height, desc->format = gpu->info.surface_format;
    return NB_OK;
}

// A surface that does not fit is made anew once; where it does not fit then either, the next frame tries again.
static nb_result take_of_surface(nb_gpu *gpu, bool *is_hidden) {
    nb_result result = gpu->is_surface_stale ? make_surface(gpu) : NB_OK;
    if (result != NB_OK) return result;
    result = acquire(gpu);
    if (result == NB_ERR_STALE) {
        result = make_surface(gpu);
        if (result == NB_OK) result = acquire(gpu);
    }
    if (result != NB_ERR_STALE) return result;
    gpu->is_surface_stale = true;
    *is_hidden = true;
    return NB_BUSY;
}

static nb_result take_own(nb_gpu *gpu) {
    bool is_fit = gpu->back != NBI_NONE_INDEX && gpu->back_width == gpu->width && gpu->back_height == gpu->height;
    if (is_fit) return NB_OK;
    nb_gpu_image_desc desc = {.name = "backbuffer",
                              .format = gpu->info.surface_format,
                              .width = gpu->width,
                              .height = gpu->height,
                              .layer_count = 1,
                              .access = NB_GPU_ACCESS_COLOR | NB_GPU_ACCESS_SAMPLED | NB_GPU_ACCESS_COPY_FROM |
                                        NB_GPU_ACCESS_COPY_TO};
    if (gpu->back != NBI_NONE_INDEX) {
        if (nbi_gpu_object_retire(gpu, NBI_GPU_IMAGE, gpu->back) != NB_OK) return NB_ERR_MEMORY;
        gpu->back = NBI_NONE_INDEX;
        ++gpu->stats.resize_count;
    }
    gpu->back_width = gpu->width;
    gpu->back_height = gpu->height;
    return nbi_gpu_own_image(gpu, &desc, &gpu->back);
}

nb_result nbi_gpu_surface_take(nb_gpu *gpu, bool *is_hidden) {
    *is_hidden = gpu->width == 0;
    if (*is_hidden) return NB_BUSY;
    return gpu->info.has_surface ? take_of_surface(gpu, is_hidden) : take_own(gpu);
}

nb_result nbi_gpu_back_import(nb_gpu *gpu) {
    nb_graph_import_desc import = {.name = "backbuffer",
                                   .image = {nbi_gpu_handle_of(gpu, NBI_GPU_IMAGE, nbi_gpu_back_index(gpu))},
                                   .format = gpu->info.surface_format,
                                   .width = gpu->back_width,
                                   .height = gpu->back_height,
                                   .after = gpu->info.has_surface ? NB_GPU_ACCESS_PRESENT : NB_GPU_ACCESS_COPY_FROM};
    return nb_graph_import(gpu->graph, &import, &gpu->back_resource);
}

void nbi_gpu_surface_show(nb_gpu *gpu) {
    nb_result result = gpu->backend->present(gpu->self, gpu->slot);
    if (result == NB_OK || nbi_gpu_note_result(gpu, result, "showing a picture") == NB_ERR_LOST) return;
    if (result == NB_ERR_STALE) {
        gpu->is_surface_stale = true;
        return;
    }
    ++gpu->stats.present_failed_count;
    NBI_GPU_FAILURE(gpu, (uint64_t)result, NB_ITEM_GPU_PRESENT, result, "gpu: device \"%s\" did not show a picture: %s",
                    gpu->name, nb_result_name(result));
}

// --- around it ---

nb_graph_resource nb_gpu_backbuffer(nb_gpu *gpu, uint32_t *width, uint32_t *height) {
    if (gpu == NULL) NB_FAIL_NULL("gpu");
    if (gpu == NULL || !gpu->has_picture) return (nb_graph_resource){0};
    if (width != NULL) *width = gpu->back_width;
    if (height != NULL) *height = gpu->back_height;
    return gpu->back_resource;
}

nb_gpu_format nb_gpu_backbuffer_format(const nb_gpu *gpu) {
    if (gpu == NULL) NB_FAIL_NULL("gpu");
    return gpu != NULL ? gpu->info.surface_format : NB_GPU_FORMAT_NONE;
}

nb_result nb_gpu_resize(nb_gpu *gpu, uint32_t width, uint32_t height) {
    if (gpu == NULL) return NB_FAIL_NULL("gpu");
    bool is_sane = width <= NB_GRAPH_IMAGE_SIZE_MAX && height <= NB_GRAPH_IMAGE_SIZE_MAX && !width == !height;
    if (!is_sane)
        return NBI_GPU_REFUSE(gpu, gpu->name, NB_ERR_RANGE,
                              "device \"%s\": %u x %u is no size; give both sides, up to %u, or 0 x 0 while the window "
                              "is hidden",
                              gpu->name, (unsigned)width, (unsigned)height, NB_GRAPH_IMAGE_SIZE_MAX);
    if (gpu->width != width || gpu->height != height) gpu->is_surface_stale = true;
    gpu->width = width;
    gpu->height = height;
    return NB_OK;
}

nb_result nb_gpu_set_vsync(nb_gpu *gpu, bool is_on) {
    if (gpu == NULL) return NB_FAIL_NULL("gpu");
    if (gpu->desc.is_vsync_off == is_on) gpu->is_surface_stale = true;
    gpu->desc.is_vsync_off = !is_on;
    return NB_OK;
}
