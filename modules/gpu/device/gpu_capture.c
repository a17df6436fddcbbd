// SPDX-License-Identifier: MIT
// Captures: a pass of the device's own that copies the back buffer to memory that the CPU reads.

#include "gpu.h"

static void give_buffer_back(nb_gpu *gpu) {
    nbi_gpu_capturing *capture = &gpu->capture;
    if (capture->buffer == NBI_NONE_INDEX) return;
    if (nbi_gpu_object_retire(gpu, NBI_GPU_BUFFER, capture->buffer) == NB_OK) capture->buffer = NBI_NONE_INDEX;
}

// Buffer and pixels for a picture of this size; those of the last capture where they fit.
static nb_result make_room(nb_gpu *gpu) {
    nbi_gpu_capturing *capture = &gpu->capture;
    size_t size_bytes = (size_t)gpu->back_width * gpu->back_height * 4;
    if (capture->buffer != NBI_NONE_INDEX && capture->pixel_bytes == size_bytes) return NB_OK;
    give_buffer_back(gpu);
    if (capture->buffer != NBI_NONE_INDEX) return NB_ERR_MEMORY;
    nb_hooks_free(gpu->hooks, capture->pixels, capture->pixel_bytes);
    capture->pixel_bytes = 0;
    capture->pixels = nb_hooks_alloc(gpu->hooks, size_bytes, NB_CACHE_LINE, "nb_gpu_capture_ask");
    if (capture->pixels == NULL) return NB_ERR_MEMORY;
    capture->pixel_bytes = size_bytes;
    nb_gpu_buffer_desc desc = {.name = "capture", .size_bytes = size_bytes, .memory = NB_GPU_MEMORY_READBACK};
    return nbi_gpu_own_buffer(gpu, &desc, &capture->buffer);
}

static bool has_known_pixels(nb_gpu_format format) {
    return format == NB_GPU_FORMAT_RGBA8 || format == NB_GPU_FORMAT_RGBA8_SRGB || format == NB_GPU_FORMAT_BGRA8 ||
           format == NB_GPU_FORMAT_BGRA8_SRGB;
}

nb_result nb_gpu_capture_ask(nb_gpu *gpu) {
    if (gpu == NULL) return NB_FAIL_NULL("gpu");
    nbi_gpu_capturing *capture = &gpu->capture;
    if (gpu->frame_state != NBI_GPU_FRAME_BEGUN || !gpu->has_picture || gpu->is_lost) return NB_EMPTY;
    bool is_flying = capture->state == NBI_CAPTURE_FLYING && gpu->completed < capture->value;
    if (capture->state == NBI_CAPTURE_ASKED || is_flying) return NB_BUSY;
    if (!has_known_pixels(gpu->info.surface_format)) return NB_ERR_UNSUPPORTED;
    capture->state = NBI_CAPTURE_NONE;
    gpu->caller = __func__;
    nb_result result = make_room(gpu);
    if (result != NB_OK) return result;
    capture->state = NBI_CAPTURE_ASKED;
    capture->width = gpu->back_width;
    capture->height = gpu->back_height;
    capture->frame = gpu->stats.frame_count;
    return NB_OK;
}

static nb_result record_capture(nb_gpu_command *command, uint32_t bucket, uint32_t bucket_count, void *user) {
    nb_gpu *gpu = user;
    (void)bucket, (void)bucket_count;
    nb_gpu_buffer to = {nbi_gpu_handle_of(gpu, NBI_GPU_BUFFER, gpu->capture.buffer)};
    return nb_gpu_copy_to_buffer(command, gpu->capture.from, to, 0);
}

nb_result nbi_gpu_capture_add(nb_gpu *gpu) {
    if (gpu->capture.state != NBI_CAPTURE_ASKED) return NB_OK;
    nb_graph_pass_desc desc = {
        .name = "capture", .kind = NB_GPU_PASS_COMPUTE, .record = record_capture, .user = gpu, .is_kept = true};
    nb_graph_pass pass = {0};
    nb_result result = nb_graph_newest(gpu->graph, gpu->back_resource, &gpu->capture.from);
    if (result == NB_OK) result = nb_graph_pass_add(gpu->graph, &desc, &pass);
    if (result == NB_OK) result = nb_graph_use(gpu->graph, pass, gpu->capture.from, NB_GPU_ACCESS_COPY_FROM);
    return result;
}

void nbi_gpu_capture_note(nb_gpu *gpu, bool is_handed) {
    if (gpu->capture.state != NBI_CAPTURE_ASKED) return;
    gpu->capture.state = is_handed ? NBI_CAPTURE_FLYING : NBI_CAPTURE_LOST;
    gpu->capture.value = gpu->submitted;
}

// To red, green, blue, alpha.
static void read_pixels(nb_gpu *gpu) {
    nbi_gpu_capturing *capture = &gpu->capture;
    const uint8_t *from = gpu->backend->buffer_memory(gpu->self, capture->buffer);
    nb_gpu_format format = gpu->info.surface_format;
    bool is_swapped = format == NB_GPU_FORMAT_BGRA8 || format == NB_GPU_FORMAT_BGRA8_SRGB;
    for (size_t i = 0; i < capture->pixel_bytes; i += 4) {
        capture->pixels[i] = from[i + (is_swapped ? 2 : 0)];
        capture->pixels[i + 1] = from[i + 1];
        capture->pixels[i + 2] = from[i + (is_swapped ? 0 : 2)];
        capture->pixels[i + 3] = from[i + 3];
    }
    capture->state = NBI_CAPTURE_READY;
}

nb_result nb_gpu_capture_take(nb_gpu *gpu, uint64_t wait_ns, nb_gpu_capture *out) {
    if (gpu == NULL) return NB_FAIL_NULL("gpu");
    if (out == NULL) return NBI_GPU_REFUSE(gpu, gpu->name, NB_ERR_MISUSE, "device \"%s\": out is NULL", gpu->name);
    nbi_gpu_capturing *capture = &gpu->capture;
    if (capture->state == NBI_CAPTURE_NONE) return NB_EMPTY;
    if (capture->state == NBI_CAPTURE_ASKED) return NB_BUSY;
    if (capture->state == NBI_CAPTURE_FLYING) {
        gpu->caller = __func__;
        nb_result result = nbi_gpu_wait(gpu, capture->value, wait_ns);
        if (result != NB_OK) return result;
        read_pixels(gpu);
    }
    if (capture->state == NBI_CAPTURE_LOST) return NB_ERR_LOST;
    *out = (nb_gpu_capture){capture->pixels, capture->width, capture->height, capture->frame};
    return NB_OK;
}
