// SPDX-License-Identifier: MIT
// Buffers, images with their views, formats and samplers.

#include "vulkan.h"

#include "nebula/hash.h"
#include "nebula/report.h"

#include <string.h>

// Any buffer may be any kind of buffer: on no device that we know does it cost anything.
#define BUFFER_USAGE                                                                                              \
    (VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT | VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_INDEX_BUFFER_BIT | \
     VK_BUFFER_USAGE_INDIRECT_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT)

VkFormat nbi_vulkan_format(nb_gpu_format format) {
    static const VkFormat formats[NB_GPU_FORMAT_COUNT] = {
        [NB_GPU_FORMAT_NONE] = VK_FORMAT_UNDEFINED,
        [NB_GPU_FORMAT_R8] = VK_FORMAT_R8_UNORM,
        [NB_GPU_FORMAT_RGBA8] = VK_FORMAT_R8G8B8A8_UNORM,
        [NB_GPU_FORMAT_RGBA8_SRGB] = VK_FORMAT_R8G8B8A8_SRGB,
        [NB_GPU_FORMAT_BGRA8] = VK_FORMAT_B8G8R8A8_UNORM,
        [NB_GPU_FORMAT_BGRA8_SRGB] = VK_FORMAT_B8G8R8A8_SRGB,
        [NB_GPU_FORMAT_RGBA16F] = VK_FORMAT_R16G16B16A16_SFLOAT,
        [NB_GPU_FORMAT_R32F] = VK_FORMAT_R32_SFLOAT,
        [NB_GPU_FORMAT_R32_UINT] = VK_FORMAT_R32_UINT,
        [NB_GPU_FORMAT_DEPTH32F] = VK_FORMAT_D32_SFLOAT,
    };
    return (uint32_t)format < NB_GPU_FORMAT_COUNT ? formats[format] : VK_FORMAT_UNDEFINED;
}

// --- samplers ---

nb_result nbi_vulkan_samplers_open(nbi_vulkan *v) {
    for (uint32_t i = 0; i < NB_GPU_SAMPLER_COUNT; ++i) {
        VkFilter filter = i == NB_GPU_SAMPLER_NEAREST ? VK_FILTER_NEAREST : VK_FILTER_LINEAR;
        VkSamplerAddressMode mode =
            i == NB_GPU_SAMPLER_LINEAR_REPEAT ? VK_SAMPLER_ADDRESS_MODE_REPEAT : VK_SAMPLER_ADDRESS_MODE_CLAMP_TO_EDGE;
        VkSamplerCreateInfo info = {.sType = VK_STRUCTURE_TYPE_SAMPLER_CREATE_INFO,
                                    .magFilter = filter,
                                    .minFilter = filter,
                                    .addressModeU = mode,
                                    .addressModeV = mode,
                                    .addressModeW = mode};
        VkResult result = v->vk.CreateSampler(v->device, &info, NULL, &v->samplers[i]);
        if (result != VK_SUCCESS) {
            v->samplers[i] = VK_NULL_HANDLE;
            return nbi_vulkan_fail(v, result, "vkCreateSampler");
        }
    }
    return NB_OK;
}

// --- buffers ---

static nb_result buffer_bind(nbi_vulkan *v, nbi_vulkan_buffer *buffer, nbi_vulkan_use use) {
    VkMemoryRequirements needs;
    v->vk.GetBufferMemoryRequirements(v->device, buffer->handle, &needs);
    nb_result result = nbi_vulkan_memory_take(v, &needs, use, false, &buffer->piece);
    if (result != NB_OK) return result;
    VkResult bound = v->vk.BindBufferMemory(v->device, buffer->handle, buffer->piece.memory, buffer->piece.offset);
    return bound == VK_SUCCESS ? NB_OK : nbi_vulkan_fail(v, bound, "vkBindBufferMemory");
}

static void buffer_free(nbi_vulkan *v, nbi_vulkan_buffer *buffer) {
    if (buffer->handle != VK_NULL_HANDLE) v->vk.DestroyBuffer(v->device, buffer->handle, NULL);
    nbi_vulkan_memory_give(v, &buffer->piece);
    *buffer = (nbi_vulkan_buffer){0};
}

static nb_result buffer_open(nbi_vulkan *v, nb_gpu_index index, uint64_t size_bytes, nbi_vulkan_use use,
                             const char *name) {
    if (size_bytes > v->buffer_bytes_max) return nbi_vulkan_fail(v, VK_ERROR_OUT_OF_DEVICE_MEMORY, "buffer too large");
    nbi_vulkan_buffer buffer = {.size_bytes = size_bytes};
    VkBufferCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, .size = size_bytes, .usage = BUFFER_USAGE};
    VkResult made = v->vk.CreateBuffer(v->device, &info, NULL, &buffer.handle);
    if (made != VK_SUCCESS) return nbi_vulkan_fail(v, made, "vkCreateBuffer");
    nb_result result = buffer_bind(v, &buffer, use);
    if (result != NB_OK) {
        buffer_free(v, &buffer);
        return result;
    }
    nbi_vulkan_name(v, VK_OBJECT_TYPE_BUFFER, (uint64_t)buffer.handle, name);
    v->buffers[index] = buffer;
    return NB_OK;
}

nb_result nbi_vulkan_buffer_create(void *self, nb_gpu_index index, const nb_gpu_buffer_desc *desc) {
    bool is_readback = desc->memory == NB_GPU_MEMORY_READBACK;
    return buffer_open((nbi_vulkan *)self, index, desc->size_bytes,
                       is_readback ? NBI_VULKAN_USE_READBACK : NBI_VULKAN_USE_DEVICE, desc->name);
}

void nbi_vulkan_buffer_destroy(void *self, nb_gpu_index index) {
    nbi_vulkan *v = (nbi_vulkan *)self;
    if (v->buffers[index].handle != VK_NULL_HANDLE) buffer_free(v, &v->buffers[index]);
}

const void *nbi_vulkan_buffer_memory(void *self, nb_gpu_index index) {
    return ((nbi_vulkan *)self)->buffers[index].piece.mapped;
}

nb_result nbi_vulkan_frame_memory(void *self, uint32_t slot, nb_gpu_index index, void **memory) {
    nbi_vulkan *v = (nbi_vulkan *)self;
    nb_result result = buffer_open(v, index, v->limits.frame_bytes, NBI_VULKAN_USE_FRAME, "frame memory");
    if (result != NB_OK) return result;
    v->slots[slot].memory = index;
    *memory = v->buffers[index].piece.mapped;
    return NB_OK;
}

// --- images ---

static VkImageUsageFlags usage_of(nb_gpu_access access) {
    // Uploads and captures are always possible.
    VkImageUsageFlags usage = VK_IMAGE_USAGE_TRANSFER_SRC_BIT | VK_IMAGE_USAGE_TRANSFER_DST_BIT;
    if (access & NB_GPU_ACCESS_COLOR) usage |= VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT;
    if (access & (NB_GPU_ACCESS_DEPTH | NB_GPU_ACCESS_DEPTH_READ)) usage |= VK_IMAGE_USAGE_DEPTH_STENCIL_ATTACHMENT_BIT;
    if (access & NB_GPU_ACCESS_SAMPLED) usage |= VK_IMAGE_USAGE_SAMPLED_BIT;
    if (access & (NB_GPU_ACCESS_STORAGE_READ | NB_GPU_ACCESS_STORAGE)) usage |= VK_IMAGE_USAGE_STORAGE_BIT;
    return usage;
}

static bool is_format_able(nbi_vulkan *v, VkFormat format, VkImageUsageFlags usage) {
    VkFormatFeatureFlags needed = VK_FORMAT_FEATURE_TRANSFER_SRC_BIT | VK_FORMAT_FEATURE_TRANSFER_DST_BIT;
    if (usage & VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT) needed |= VK_FORMAT_FEATURE_COLOR_ATTACHMENT_BIT;
    if (usage & VK_IMAGE_USAGE_DEPTH_STENCIL_ATTACHMENT_BIT) needed |= VK_FORMAT_FEATURE_DEPTH_STENCIL_ATTACHMENT_BIT;
    if (usage & VK_IMAGE_USAGE_SAMPLED_BIT) needed |= VK_FORMAT_FEATURE_SAMPLED_IMAGE_BIT;
    if (usage & VK_IMAGE_USAGE_STORAGE_BIT) needed |= VK_FORMAT_FEATURE_STORAGE_IMAGE_BIT;
    VkFormatProperties properties;
    v->vk.GetPhysicalDeviceFormatProperties(v->physical, format, &properties);
    return (properties.optimalTilingFeatures & needed) == needed;
}

nb_result nbi_vulkan_view_create(nbi_vulkan *v, const nbi_vulkan_image *image, VkImageView *out) {
    VkImageViewCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_IMAGE_VIEW_CREATE_INFO,
        .image = image->handle,
        .viewType = image->layer_count > 1 ? VK_IMAGE_VIEW_TYPE_2D_ARRAY : VK_IMAGE_VIEW_TYPE_2D,
        .format = image->format,
        .subresourceRange = {.aspectMask = image->aspect, .levelCount = 1, .layerCount = image->layer_count}};
    VkResult result = v->vk.CreateImageView(v->device, &info, NULL, out);
    if (result == VK_SUCCESS) return NB_OK;
    *out = VK_NULL_HANDLE;
    return nbi_vulkan_fail(v, result, "vkCreateImageView");
}

static nb_result image_bind(nbi_vulkan *v, nbi_vulkan_image *image) {
    VkMemoryRequirements needs;
    v->vk.GetImageMemoryRequirements(v->device, image->handle, &needs);
    nb_result result = nbi_vulkan_memory_take(v, &needs, NBI_VULKAN_USE_DEVICE, true, &image->piece);
    if (result != NB_OK) return result;
    VkResult bound = v->vk.BindImageMemory(v->device, image->handle, image->piece.memory, image->piece.offset);
    if (bound != VK_SUCCESS) return nbi_vulkan_fail(v, bound, "vkBindImageMemory");
    return nbi_vulkan_view_create(v, image, &image->view);
}

static void image_free(nbi_vulkan *v, nbi_vulkan_image *image) {
    if (image->is_fresh) --v->fresh_count;
    if (!image->is_surface) {
        v->vk.DestroyImageView(v->device, image->view, NULL);
        v->vk.DestroyImage(v->device, image->handle, NULL);
        nbi_vulkan_memory_give(v, &image->piece);
    }
    *image = (nbi_vulkan_image){0};
}

static VkResult image_open(nbi_vulkan *v, nbi_vulkan_image *image, VkImageUsageFlags usage) {
    VkImageCreateInfo info = {.sType = VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO,
                              .imageType = VK_IMAGE_TYPE_2D,
                              .format = image->format,
                              .extent = {image->width, image->height, 1},
                              .mipLevels = 1,
                              .arrayLayers = image->layer_count,
                              .samples = VK_SAMPLE_COUNT_1_BIT,
                              .tiling = VK_IMAGE_TILING_OPTIMAL,
                              .usage = usage,
                              .initialLayout = VK_IMAGE_LAYOUT_UNDEFINED};
    return v->vk.CreateImage(v->device, &info, NULL, &image->handle);
}

nb_result nbi_vulkan_image_create(void *self, nb_gpu_index index, const nb_gpu_image_desc *desc) {
    nbi_vulkan *v = (nbi_vulkan *)self;
    VkPhysicalDeviceLimits *limits = &v->properties.limits;
    bool is_depth = desc->format == NB_GPU_FORMAT_DEPTH32F;
    nbi_vulkan_image image = {.format = nbi_vulkan_format(desc->format),
                              .aspect = is_depth ? VK_IMAGE_ASPECT_DEPTH_BIT : VK_IMAGE_ASPECT_COLOR_BIT,
                              .width = desc->width,
                              .height = desc->height,
                              .layer_count = desc->layer_count != 0 ? desc->layer_count : 1,
                              .layout = nbi_vulkan_layout_resting(desc->access)};
    VkImageUsageFlags usage = usage_of(desc->access);
    bool is_size_able = image.width <= limits->maxImageDimension2D && image.height <= limits->maxImageDimension2D &&
                        image.layer_count <= limits->maxImageArrayLayers;
    if (!is_size_able || !is_format_able(v, image.format, usage))
        return nb_report_throttled(&v->hooks, &v->throttle, nb_hash64(desc->name, strlen(desc->name), 0), false,
                                   NB_ITEM_VULKAN_FORMAT, NB_ERR_UNSUPPORTED, "vulkan",
                                   "image \"%s\": the device has no %s of %u x %u x %u for uses 0x%x; choose another "
                                   "format or size, or fewer uses",
                                   desc->name, nb_gpu_format_name(desc->format), image.width, image.height,
                                   image.layer_count, desc->access);
    VkResult made = image_open(v, &image, usage);
    if (made != VK_SUCCESS) return nbi_vulkan_fail(v, made, "vkCreateImage");
    nb_result result = image_bind(v, &image);
    if (result != NB_OK) {
        image_free(v, &image);
        return result;
    }
    nbi_vulkan_name(v, VK_OBJECT_TYPE_IMAGE, (uint64_t)image.handle, desc->name);
    image.is_fresh = true;
    ++v->fresh_count;
    v->images[index] = image;
    return NB_OK;
}

void nbi_vulkan_image_destroy(void *self, nb_gpu_index index) {
    nbi_vulkan *v = (nbi_vulkan *)self;
    if (v->images[index].handle != VK_NULL_HANDLE) image_free(v, &v->images[index]);
}
