// SPDX-License-Identifier: MIT
// How far the device is, and how long the passes took.

#include "vulkan.h"

nb_result nbi_vulkan_completed(void *self, uint64_t *value) {
    nbi_vulkan *v = (nbi_vulkan *)self;
    if (nbi_vulkan_is_lost(v)) return NB_ERR_LOST;
    uint64_t reached = 0;
    VkResult result = v->vk.GetSemaphoreCounterValue(v->device, v->timeline, &reached);
    if (result != VK_SUCCESS) return nbi_vulkan_fail(v, result, "vkGetSemaphoreCounterValue");
    // What some drivers say of a device that is gone.
    if (reached == UINT64_MAX) return nbi_vulkan_fail(v, VK_ERROR_DEVICE_LOST, "vkGetSemaphoreCounterValue");
    *value = reached;
    return NB_OK;
}

nb_result nbi_vulkan_wait(void *self, uint64_t value, uint64_t timeout_ns) {
    nbi_vulkan *v = (nbi_vulkan *)self;
    if (nbi_vulkan_is_lost(v)) return NB_ERR_LOST;
    VkSemaphoreWaitInfo info = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
                                .semaphoreCount = 1,
                                .pSemaphores = &v->timeline,
                                .pValues = &value};
    VkResult result = v->vk.WaitSemaphores(v->device, &info, timeout_ns);
    if (result == VK_TIMEOUT) return NB_TIMEOUT;
    return result == VK_SUCCESS ? NB_OK : nbi_vulkan_fail(v, result, "vkWaitSemaphores");
}

// --- times ---

static uint64_t ticks_to_ns(const nbi_vulkan *v, uint64_t ticks) {
    return (uint64_t)((double)ticks * (double)v->properties.limits.timestampPeriod);
}

// Where a counter of fewer bits has wrapped, the difference is still right.
static uint64_t ticks_between(const nbi_vulkan *v, uint64_t from, uint64_t to) {
    uint64_t mask = v->timestamp_bits >= 64 ? UINT64_MAX : (UINT64_C(1) << v->timestamp_bits) - 1;
    return (to - from) & mask;
}

static nb_result times_read(nbi_vulkan *v, const nbi_vulkan_slot *slot) {
    if (slot->queries != VK_NULL_HANDLE && slot->step_count > 0) {
        uint32_t count = 2 * slot->step_count;
        VkResult result = v->vk.GetQueryPoolResults(v->device, slot->queries, 0, count, count * sizeof(uint64_t),
                                                    v->times_raw, sizeof(uint64_t), VK_QUERY_RESULT_64_BIT);
        if (result == VK_NOT_READY) return NB_EMPTY;
        if (result != VK_SUCCESS) return nbi_vulkan_fail(v, result, "vkGetQueryPoolResults");
        for (uint32_t i = 0; i < slot->step_count; ++i) {
            v->times_begin[i] = ticks_to_ns(v, ticks_between(v, v->times_raw[0], v->times_raw[2 * i]));
            v->times_end[i] = ticks_to_ns(v, ticks_between(v, v->times_raw[0], v->times_raw[2 * i + 1]));
        }
    }
    v->times_value = slot->value;
    v->times_count = slot->step_count;
    return NB_OK;
}

nb_result nbi_vulkan_times(void *self, nb_gpu_times *out) {
    nbi_vulkan *v = (nbi_vulkan *)self;
    uint64_t reached = 0;
    nb_result result = nbi_vulkan_completed(v, &reached);
    if (result != NB_OK) return result;
    const nbi_vulkan_slot *newest = NULL;
    for (uint32_t i = 0; i < v->limits.frames_in_flight; ++i) {
        const nbi_vulkan_slot *slot = &v->slots[i];
        if (slot->value <= v->times_value || slot->value > reached) continue;
        if (newest == NULL || slot->value > newest->value) newest = slot;
    }
    if (newest != NULL) result = times_read(v, newest);
    if (result != NB_OK) return result;
    if (v->times_value == 0) return NB_EMPTY;
    bool has_clock = v->timestamp_bits != 0;
    *out = (nb_gpu_times){.value = v->times_value,
                          .step_count = v->times_count,
                          .begin_ns = has_clock ? v->times_begin : NULL,
                          .end_ns = has_clock ? v->times_end : NULL};
    return NB_OK;
}
