// SPDX-License-Identifier: MIT
// After a lost device: its backend is ended, made anew, and filled with all that is alive, under the same numbers. What
// cannot be made is tried again after a pause that grows.

#include "gpu.h"

// --- late work ---

bool nbi_gpu_is_late(nb_gpu *gpu, uint32_t slot) {
    nb_fence_frame *frame = &gpu->slots[slot].frame;
    if (gpu->fence == NULL || frame->value == 0) return false;
    nb_result result = nb_fence_wait(gpu->fence, *frame, 0, NULL, NULL);
    if (result == NB_TIMEOUT || result == NB_CLOSED) return true;
    *frame = (nb_fence_frame){0};
    return false;
}

bool nbi_gpu_is_any_late(nb_gpu *gpu) {
    bool is_late = false;
    for (uint32_t i = 0; i < gpu->limits.frames_in_flight; ++i) is_late |= nbi_gpu_is_late(gpu, i);
    return is_late;
}

// --- making ---

static nb_result make_frames(nb_gpu *gpu) {
    for (uint32_t i = 0; i < gpu->limits.frames_in_flight; ++i) {
        nbi_gpu_slot *slot = &gpu->slots[i];
        nb_result result = gpu->backend->frame_memory(gpu->self, i, slot->buffer, &slot->memory);
        if (result != NB_OK) return result;
    }
    return NB_OK;
}

static nb_result make_objects(nb_gpu *gpu, nbi_gpu_kind kind) {
    for (uint32_t i = 0; i < gpu->tables[kind].capacity; ++i) {
        if (gpu->tables[kind].objects[i].life != NBI_GPU_LIVE) continue;
        nb_result result = nbi_gpu_object_make(gpu, kind, i);
        if (result != NB_OK) return result;
    }
    return NB_OK;
}

nb_result nbi_gpu_make(nb_gpu *gpu) {
    nb_gpu_backend_create create = {.desc = gpu->desc.backend_desc,
                                    .limits = gpu->limits,
                                    .width = gpu->width != 0 ? gpu->width : 1,
                                    .height = gpu->height != 0 ? gpu->height : 1,
                                    .is_vsync_off = gpu->desc.is_vsync_off,
                                    .hooks = gpu->hooks};
    nb_gpu_backend_info info = {0};
    nb_result result = gpu->backend->create(&create, &gpu->self, &info);
    if (result != NB_OK) {
        gpu->self = NULL;
        return result;
    }
    gpu->info = info;
    gpu->is_lost = false;
    result = make_frames(gpu);
    for (uint32_t kind = 0; kind < NBI_GPU_KIND_COUNT && result == NB_OK; ++kind)
        result = make_objects(gpu, (nbi_gpu_kind)kind);
    if (result != NB_OK) nbi_gpu_unmake(gpu);
    return result;
}

void nbi_gpu_unmake(nb_gpu *gpu) {
    if (gpu->self != NULL) gpu->backend->destroy(gpu->self);
    gpu->self = NULL;
    for (uint32_t kind = 0; kind < NBI_GPU_KIND_COUNT; ++kind) {
        nbi_gpu_table *table = &gpu->tables[kind];
        for (uint32_t i = 0; table->objects != NULL && i < table->capacity; ++i) table->objects[i].is_made = false;
    }
}

// --- trying ---

static nb_result try_later(nb_gpu *gpu, uint64_t pause_ns, nb_result result) {
    gpu->is_lost = true;
    gpu->retry_at_ns = nbi_gpu_now_ns(gpu) + pause_ns;
    gpu->retry_pause_ns = pause_ns * 2 < NB_GPU_RETRY_NS_MAX ? pause_ns * 2 : NB_GPU_RETRY_NS_MAX;
    if (!gpu->is_unrestored_reported)
        nb_report_failure(gpu->hooks, NB_ITEM_GPU_UNRESTORED, result, gpu->caller,
                          "gpu: device \"%s\" not restored yet: %s", gpu->name, nb_result_name(result));
    gpu->is_unrestored_reported = true;
    return NB_ERR_LOST;
}

static nb_result settle(nb_gpu *gpu) {
    gpu->base = gpu->completed = gpu->submitted;
    for (uint32_t i = 0; i < gpu->limits.frames_in_flight; ++i) {
        gpu->slots[i].value = 0;
        gpu->slots[i].step_count = 0;
    }
    gpu->is_surface_stale = gpu->width == 0;
    gpu->is_unrestored_reported = false;
    gpu->time_count = 0;
    ++gpu->stats.restored_count;
    const char *caller = gpu->caller;
    if (gpu->desc.on_restored != NULL) gpu->desc.on_restored(gpu, gpu->desc.user);
    gpu->caller = caller; // the rest of the frame is not what the callback called
    return gpu->is_lost ? NB_ERR_LOST : NB_OK;
}

nb_result nbi_gpu_restore(nb_gpu *gpu) {
    // Memory that a late job still writes to goes with the backend.
    if (nbi_gpu_now_ns(gpu) < gpu->retry_at_ns || nbi_gpu_is_any_late(gpu)) return NB_ERR_LOST;
    uint64_t pause_ns = gpu->retry_pause_ns;
    nbi_gpu_unmake(gpu);
    nb_result result = nbi_gpu_make(gpu);
    return result == NB_OK ? settle(gpu) : try_later(gpu, pause_ns, result);
}
