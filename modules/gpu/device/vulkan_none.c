// SPDX-License-Identifier: MIT
// Stands in for the other vulkan files where there are no headers of Vulkan to build them with.

#include "nebula/gpu_vulkan.h"

nb_gpu_vulkan_desc nb_gpu_vulkan_desc_default(void) { return (nb_gpu_vulkan_desc){0}; }

const nb_gpu_backend *nb_gpu_vulkan_backend(void) { return NULL; }

uint64_t nb_gpu_vulkan_message_count(const nb_gpu *gpu) {
    (void)gpu;
    return 0;
}
