// SPDX-License-Identifier: MIT
// What the validation layer had to say, for those who have the device and not its backend.

#include "../device/gpu.h"
#include "vulkan.h"

uint64_t nb_gpu_vulkan_message_count(const nb_gpu *gpu) {
    const nbi_vulkan *v = (const nbi_vulkan *)nbi_gpu_backend_self(gpu, nb_gpu_vulkan_backend());
    return v != NULL ? nbi_atomic_load_relaxed_u64(&v->message_count) : 0;
}
