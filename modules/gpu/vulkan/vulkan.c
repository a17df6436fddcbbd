// SPDX-License-Identifier: MIT
// The backend as a whole: its table of functions, its memory, its beginning and its end.

#include "vulkan.h"

#include "nebula/hash.h"
#include "nebula/report.h"

#include <stdio.h>
#include <string.h>

// --- reports ---

static nb_result meaning(VkResult result) {
    switch (result) {
    case VK_ERROR_DEVICE_LOST: return NB_ERR_LOST;
    case VK_ERROR_OUT_OF_HOST_MEMORY:
    case VK_ERROR_OUT_OF_DEVICE_MEMORY:
    case VK_ERROR_OUT_OF_POOL_MEMORY:
    case VK_ERROR_FRAGMENTED_POOL:
    case VK_ERROR_MEMORY_MAP_FAILED:
    case VK_ERROR_TOO_MANY_OBJECTS: return NB_ERR_MEMORY;
    case VK_SUBOPTIMAL_KHR:
    case VK_ERROR_OUT_OF_DATE_KHR:
    case VK_ERROR_FULL_SCREEN_EXCLUSIVE_MODE_LOST_EXT:
    case VK_ERROR_SURFACE_LOST_KHR: return NB_ERR_STALE;
    case VK_ERROR_INVALID_SHADER_NV: return NB_ERR_MISUSE;
    case VK_ERROR_INITIALIZATION_FAILED:
    case VK_ERROR_LAYER_NOT_PRESENT:
    case VK_ERROR_EXTENSION_NOT_PRESENT:
    case VK_ERROR_FEATURE_NOT_PRESENT:
    case VK_ERROR_INCOMPATIBLE_DRIVER:
    case VK_ERROR_FORMAT_NOT_SUPPORTED: return NB_ERR_UNSUPPORTED;
    default: return NB_ERR_OS;
    }
}

nb_result nbi_vulkan_fail(nbi_vulkan *v, VkResult result, const char *what) {
    // A flag and nothing that it would publish: whoever sees it late gets the same answer from the driver.
    if (result == VK_ERROR_DEVICE_LOST) nbi_atomic_store_relaxed_u32(&v->is_lost, 1);
    uint64_t object = nb_hash64(what, strlen(what), (uint64_t)result);
    return nb_report_throttled(&v->hooks, &v->throttle, object, false, NB_ITEM_VULKAN_RESULT, meaning(result), "vulkan",
                               "%s: %s", what, nbi_vulkan_result_name(result));
}

void nbi_vulkan_name(nbi_vulkan *v, VkObjectType type, uint64_t handle, const char *name) {
    if (v->vk.SetDebugUtilsObjectNameEXT == NULL || v->messenger == VK_NULL_HANDLE || name == NULL) return;
    VkDebugUtilsObjectNameInfoEXT info = {.sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_OBJECT_NAME_INFO_EXT,
                                          .objectType = type,
                                          .objectHandle = handle,
                                          .pObjectName = name};
    v->vk.SetDebugUtilsObjectNameEXT(v->device, &info);
}

// --- arrays: all in one allocation, all zero ---

// The next array of the block; with no block, only its place is counted.
static void *array_next(unsigned char *block, size_t *at, size_t count, size_t size_bytes) {
    size_t begin = (*at + NB_CACHE_LINE - 1) & ~(size_t)(NB_CACHE_LINE - 1);
    *at = begin + count * size_bytes;
    return block != NULL ? block + begin : NULL;
}

static size_t arrays_carve(nbi_vulkan *v, unsigned char *block) {
    const nb_gpu_limits *limits = &v->limits;
    size_t at = 0;
    v->buffers = (nbi_vulkan_buffer *)array_next(block, &at, limits->buffer_count_max, sizeof *v->buffers);
    v->images = (nbi_vulkan_image *)array_next(block, &at, limits->image_count_max, sizeof *v->images);
    v->pipelines = (nbi_vulkan_pipeline *)array_next(block, &at, limits->pipeline_count_max, sizeof *v->pipelines);
    v->layouts = (nbi_vulkan_layout *)array_next(block, &at, limits->pipeline_count_max, sizeof *v->layouts);
    v->lanes = (nbi_vulkan_lane *)array_next(block, &at, limits->lane_count, sizeof *v->lanes);
    size_t time_count = limits->pass_count_max;
    v->times_raw = (uint64_t *)array_next(block, &at, 2 * time_count, sizeof(uint64_t));
    v->times_begin = (uint64_t *)array_next(block, &at, time_count, sizeof(uint64_t));
    v->times_end = (uint64_t *)array_next(block, &at, time_count, sizeof(uint64_t));
    for (uint32_t slot = 0; slot < limits->frames_in_flight; ++slot) {
        v->slots[slot].items =
            (VkCommandBuffer *)array_next(block, &at, limits->item_count_max, sizeof(VkCommandBuffer));
        for (uint32_t lane = 0; lane < limits->lane_count; ++lane) {
            void *commands = array_next(block, &at, limits->item_count_max, sizeof(VkCommandBuffer));
            if (block != NULL) v->lanes[lane].shelves[slot].commands = (VkCommandBuffer *)commands;
        }
    }
    v->memory.blocks = (nbi_vulkan_block *)array_next(block, &at, NBI_VULKAN_BLOCK_COUNT_MAX, sizeof *v->memory.blocks);
    // An object is a range, and may leave one behind it; a block has one more.
    size_t range_count = 2 * ((size_t)limits->buffer_count_max + limits->image_count_max) + NBI_VULKAN_BLOCK_COUNT_MAX;
    nbi_range *ranges = (nbi_range *)array_next(block, &at, range_count + 2, sizeof *ranges);
    if (block != NULL) nbi_ranges_init(&v->memory.ranges, ranges, (uint32_t)range_count + 2);
    return at;
}

static nb_result arrays_open(nbi_vulkan *v) {
    v->arrays_bytes = arrays_carve(v, NULL);
    v->arrays = nb_hooks_alloc(&v->hooks, v->arrays_bytes, NB_CACHE_LINE, "vulkan");
    if (v->arrays == NULL) return NB_ERR_MEMORY;
    memset(v->arrays, 0, v->arrays_bytes);
    arrays_carve(v, (unsigned char *)v->arrays);
    return NB_OK;
}

// --- beginning and end ---

static void objects_close(nbi_vulkan *v) {
    for (uint32_t i = 0; i < v->limits.pipeline_count_max; ++i) nbi_vulkan_pipeline_destroy(v, i);
    for (uint32_t i = 0; i < v->limits.image_count_max; ++i) nbi_vulkan_image_destroy(v, i);
    for (uint32_t i = 0; i < v->limits.buffer_count_max; ++i) nbi_vulkan_buffer_destroy(v, i);
}

static void vulkan_destroy(void *self) {
    nbi_vulkan *v = (nbi_vulkan *)self;
    if (v->device != VK_NULL_HANDLE) {
        // What it says does not matter: a lost device has nothing to wait for.
        v->vk.DeviceWaitIdle(v->device);
        objects_close(v);
        nbi_vulkan_record_close(v);
        nbi_vulkan_surface_close(v);
        nbi_vulkan_memory_close(v);
    }
    nbi_vulkan_device_close(v);
    nb_hooks hooks = v->hooks;
    nb_hooks_free(&hooks, v->arrays, v->arrays_bytes);
    nb_hooks_free(&hooks, v, sizeof *v);
}

static nb_gpu_format format_from(VkFormat format) {
    for (uint32_t i = 1; i < NB_GPU_FORMAT_COUNT; ++i) {
        if (nbi_vulkan_format((nb_gpu_format)i) == format) return (nb_gpu_format)i;
    }
    return NB_GPU_FORMAT_NONE;
}

static nb_result open_all(nbi_vulkan *v, const nb_gpu_backend_create *create) {
    static const nb_gpu_vulkan_desc defaults;
    const nb_gpu_vulkan_desc *desc = create->desc != NULL ? (const nb_gpu_vulkan_desc *)create->desc : &defaults;
    v->window = desc->window;
    nb_result result = arrays_open(v);
    if (result == NB_OK) result = nbi_vulkan_device_open(v, desc);
    if (result == NB_OK) result = nbi_vulkan_samplers_open(v);
    if (result == NB_OK) result = nbi_vulkan_record_open(v);
    if (result == NB_OK) result = nbi_vulkan_surface_open(v, create->width, create->height, create->is_vsync_off);
    return result;
}

static nb_result vulkan_create(const nb_gpu_backend_create *create, void **out, nb_gpu_backend_info *info) {
    nbi_vulkan *v = (nbi_vulkan *)nb_hooks_alloc(create->hooks, sizeof *v, NB_CACHE_LINE, "vulkan");
    if (v == NULL) return NB_ERR_MEMORY;
    *v = (nbi_vulkan){.hooks = *create->hooks, .limits = create->limits};
    nb_result result = open_all(v, create);
    if (result != NB_OK) {
        vulkan_destroy(v);
        return result;
    }
    snprintf(info->name, sizeof info->name, "%.127s", v->properties.deviceName);
    info->is_on_cpu = v->properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
    info->has_surface = v->surface.handle != VK_NULL_HANDLE;
    info->surface_format = info->has_surface ? format_from(v->surface.format) : NB_GPU_FORMAT_RGBA8;
    *out = v;
    return NB_OK;
}

static const nb_gpu_backend backend = {
    .name = "vulkan",
    .create = vulkan_create,
    .destroy = vulkan_destroy,
    .buffer_create = nbi_vulkan_buffer_create,
    .buffer_destroy = nbi_vulkan_buffer_destroy,
    .buffer_memory = nbi_vulkan_buffer_memory,
    .image_create = nbi_vulkan_image_create,
    .image_destroy = nbi_vulkan_image_destroy,
    .pipeline_create = nbi_vulkan_pipeline_create,
    .pipeline_destroy = nbi_vulkan_pipeline_destroy,
    .frame_memory = nbi_vulkan_frame_memory,
    .completed = nbi_vulkan_completed,
    .wait = nbi_vulkan_wait,
    .times = nbi_vulkan_times,
    .acquire = nbi_vulkan_acquire,
    .surface_resize = nbi_vulkan_surface_resize,
    .present = nbi_vulkan_present,
    .frame_reset = nbi_vulkan_frame_reset,
    .item_begin = nbi_vulkan_item_begin,
    .item_end = nbi_vulkan_item_end,
    .set_pipeline = nbi_vulkan_set_pipeline,
    .set_bindings = nbi_vulkan_set_bindings,
    .set_indices = nbi_vulkan_set_indices,
    .push = nbi_vulkan_push,
    .set_viewport = nbi_vulkan_set_viewport,
    .set_scissor = nbi_vulkan_set_scissor,
    .draw = nbi_vulkan_draw,
    .draw_indexed = nbi_vulkan_draw_indexed,
    .draw_indirect = nbi_vulkan_draw_indirect,
    .dispatch = nbi_vulkan_dispatch,
    .copy_buffer = nbi_vulkan_copy_buffer,
    .copy_to_buffer = nbi_vulkan_copy_to_buffer,
    .submit = nbi_vulkan_submit,
    .memory = nbi_vulkan_memory_get,
};

nb_gpu_vulkan_desc nb_gpu_vulkan_desc_default(void) { return (nb_gpu_vulkan_desc){0}; }

const nb_gpu_backend *nb_gpu_vulkan_backend(void) { return &backend; }
