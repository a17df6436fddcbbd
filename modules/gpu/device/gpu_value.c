// SPDX-License-Identifier: MIT
// The fence of the device: how far it is, and whether it can be believed.

#include "gpu.h"

uint64_t nbi_gpu_now_ns(const nb_gpu *gpu) { return nb_clock_now_ns(&gpu->desc.clock); }

nb_result nbi_gpu_lose(nb_gpu *gpu, const char *why) {
    if (gpu->is_lost) return NB_ERR_LOST;
    gpu->is_lost = true;
    ++gpu->stats.lost_count;
    gpu->retry_at_ns = 0;
    gpu->retry_pause_ns = NB_GPU_RETRY_NS_MIN;
    // Only the backend's own end will follow, which ends all it has.
    for (uint32_t kind = 0; kind < NBI_GPU_KIND_COUNT; ++kind) {
        for (uint32_t i = 0; i < gpu->tables[kind].capacity; ++i) gpu->tables[kind].objects[i].is_made = false;
    }
    gpu->completed = gpu->submitted;
    nb_timeline_signal(gpu->timeline, gpu->completed);
    if (gpu->capture.state == NBI_CAPTURE_FLYING) gpu->capture.state = NBI_CAPTURE_LOST;
    nb_report_failure(gpu->hooks, NB_ITEM_GPU_LOST, NB_ERR_LOST, gpu->caller,
                      "gpu: device \"%s\" is lost: %s; it is made again", gpu->name, why);
    return NB_ERR_LOST;
}

nb_result nbi_gpu_note_result(nb_gpu *gpu, nb_result result, const char *what) {
    return result == NB_ERR_LOST ? nbi_gpu_lose(gpu, what) : result;
}

static nb_result refuse_value(nb_gpu *gpu, uint64_t value, bool is_beyond) {
    ++gpu->stats.value_refused_count;
    NBI_GPU_FAILURE(gpu, is_beyond, NB_ITEM_GPU_VALUE, NB_ERR_RANGE,
                    "gpu: device \"%s\" reported fence value %llu after %llu (submitted %llu): ignored", gpu->name,
                    nb_llu(value), nb_llu(gpu->completed - gpu->base), nb_llu(gpu->submitted - gpu->base));
    return is_beyond ? nbi_gpu_lose(gpu, "its fence is beyond what was handed over") : NB_OK;
}

// Names were kept with the slot: none of a picture that is over has been used again yet.
static void read_times(nb_gpu *gpu) {
    nb_gpu_times times = {0};
    if (gpu->backend->times(gpu->self, &times) != NB_OK || times.begin_ns == NULL || times.end_ns == NULL) return;
    for (uint32_t i = 0; i < gpu->limits.frames_in_flight; ++i) {
        const nbi_gpu_slot *slot = &gpu->slots[i];
        if (slot->value != gpu->base + times.value || slot->step_count == 0) continue;
        uint32_t count = times.step_count < slot->step_count ? times.step_count : slot->step_count;
        gpu->time_count = count;
        gpu->stats.gpu_ns = 0;
        for (uint32_t j = 0; j < count; ++j) {
            nb_gpu_pass_time *time = &gpu->times[j];
            for (uint32_t k = 0; k < sizeof time->name; ++k) time->name[k] = slot->steps[j][k];
            time->begin_ns = times.begin_ns[j];
            time->end_ns = times.end_ns[j];
            if (time->end_ns > gpu->stats.gpu_ns) gpu->stats.gpu_ns = time->end_ns;
        }
    }
}

nb_result nbi_gpu_poll(nb_gpu *gpu) {
    if (gpu->is_lost) return NB_ERR_LOST;
    uint64_t value = 0;
    nb_result result = nbi_gpu_note_result(gpu, gpu->backend->completed(gpu->self, &value), "as its fence says");
    if (result != NB_OK) return result;
    if (value > gpu->submitted - gpu->base) return refuse_value(gpu, value, true);
    if (gpu->base + value < gpu->completed) return refuse_value(gpu, value, false);
    if (gpu->base + value == gpu->completed) return NB_OK;
    gpu->completed = gpu->base + value;
    gpu->progress_ns = nbi_gpu_now_ns(gpu);
    nb_timeline_signal(gpu->timeline, gpu->completed);
    read_times(gpu);
    return NB_OK;
}

nb_result nbi_gpu_wait(nb_gpu *gpu, uint64_t value, uint64_t timeout_ns) {
    if (gpu->is_lost) return NB_ERR_LOST;
    if (gpu->completed >= value) return NB_OK;
    nb_result result =
        nbi_gpu_note_result(gpu, gpu->backend->wait(gpu->self, value - gpu->base, timeout_ns), "while waiting");
    if (result == NB_ERR_LOST) return result;
    result = nbi_gpu_poll(gpu);
    if (result != NB_OK) return result;
    if (gpu->completed >= value) return NB_OK;
    bool is_stuck = nbi_gpu_now_ns(gpu) - gpu->progress_ns >= gpu->desc.stuck_ns;
    return is_stuck ? nbi_gpu_lose(gpu, "it does not move any more") : NB_BUSY;
}

nb_result nb_gpu_wait_idle(nb_gpu *gpu, uint64_t timeout_ns) {
    if (gpu == NULL) return NB_FAIL_NULL("gpu");
    if (gpu->frame_state != NBI_GPU_FRAME_NONE)
        return NBI_GPU_REFUSE_STATE(gpu, "a frame is begun; call nb_gpu_wait_idle between frames");
    gpu->caller = __func__;
    nb_result result = nbi_gpu_wait(gpu, gpu->submitted, timeout_ns);
    return result == NB_BUSY ? NB_TIMEOUT : result;
}

nb_timeline *nb_gpu_timeline(nb_gpu *gpu) {
    if (gpu == NULL) NB_FAIL_NULL("gpu");
    return gpu != NULL ? gpu->timeline : NULL;
}

uint32_t nb_gpu_pass_times(const nb_gpu *gpu, nb_gpu_pass_time *times, uint32_t count_max) {
    if (gpu == NULL) {
        NB_FAIL_NULL("gpu");
        return 0;
    }
    for (uint32_t i = 0; times != NULL && i < count_max && i < gpu->time_count; ++i) times[i] = gpu->times[i];
    return gpu->time_count;
}
