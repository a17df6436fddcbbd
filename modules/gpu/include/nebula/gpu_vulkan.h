// SPDX-License-Identifier: MIT
#pragma once

// The Vulkan backend: 1.3 with dynamic rendering, synchronization2 and timeline semaphores. The loader is opened when a
// device is made, so a program that has it also runs where there is no Vulkan.
//
//     nb_gpu_vulkan_desc vulkan = {.is_validated = true};
//     nb_gpu_desc desc = {.backend = nb_gpu_vulkan_backend(), .backend_desc = &vulkan, .width = 1280, .height = 720};
//     nb_gpu *gpu = NULL;
//     if (nb_gpu_create(&desc, &gpu) != NB_OK) puts("no Vulkan here");

#include "nebula/gpu.h"
#include "nebula/types.h"

// A window system's part: the instance extensions it needs and how it makes a surface of the window. The device asks
// for a surface when it is made, and again where one was lost; it ends them itself.
typedef struct nb_gpu_vulkan_window {
    const char *const *extensions; // at most 14
    uint32_t extension_count;
    // instance is a VkInstance, *surface a VkSurfaceKHR; false where there is none. On the thread of the frames.
    bool (*surface_create)(void *user, void *instance, uint64_t *surface);
    void *user; // for surface_create
} nb_gpu_vulkan_window;

// Lives as long as the device, as all it points to: a lost one is made anew with it.
typedef struct nb_gpu_vulkan_desc {
    const char *device;          // a part of the name of the device to take; NULL = the best there is
    bool is_validated;           // the Khronos validation layer, with synchronization validation, where it is installed
    uint64_t memory_bytes_max;   // of the device; 0 = what the driver lets us have
    nb_gpu_vulkan_window window; // all zero: no window, the picture is drawn to an image
    const char *loader;          // NULL = "libvulkan.so.1"
} nb_gpu_vulkan_desc;

NB_EXTERN_C_BEGIN

// The defaults, spelled out: all zero, the best device, without validation and without a window.
// Thread: any. Owner: the caller gets a value. Fails: never.
NB_API nb_gpu_vulkan_desc nb_gpu_vulkan_desc_default(void);

// The backend; NULL where the library was built without Vulkan, which nb_gpu_create takes for the null backend.
// Thread: any. Owner: a static struct. Fails: NULL.
NB_API const nb_gpu_backend *nb_gpu_vulkan_backend(void);

// Messages of the validation layer, warnings and errors, since the device was made, or made anew.
// Thread: that of the frames. Owner: nothing. Fails: 0 for NULL and for a device of another backend.
NB_API uint64_t nb_gpu_vulkan_message_count(const nb_gpu *gpu);

NB_EXTERN_C_END
