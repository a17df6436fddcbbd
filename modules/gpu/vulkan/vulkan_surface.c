// SPDX-License-Identifier: MIT
// The window's side: a swapchain, its images one after the other, and what happens when it no longer fits.

#include "vulkan.h"

#include "nebula/report.h"

#include <string.h>

#define FORMAT_COUNT_MAX 128u
#define MODE_COUNT_MAX 16u

// How long an image of the swapchain is waited for: a bit more than one picture of a display with 60 a second, so that
// the display paces who waits for it.
#define ACQUIRE_NS UINT64_C(20000000)

// --- choices ---

// Shaders write what is to be seen, so a format without conversion comes first.
static nb_result format_choose(nbi_vulkan *v, nbi_vulkan_surface *surface) {
    static const VkFormat wanted[] = {VK_FORMAT_B8G8R8A8_UNORM, VK_FORMAT_R8G8B8A8_UNORM, VK_FORMAT_B8G8R8A8_SRGB,
                                      VK_FORMAT_R8G8B8A8_SRGB};
    VkSurfaceFormatKHR there[FORMAT_COUNT_MAX];
    uint32_t count = FORMAT_COUNT_MAX;
    VkResult result = v->vk.GetPhysicalDeviceSurfaceFormatsKHR(v->physical, surface->handle, &count, there);
    if (result < 0) return nbi_vulkan_fail(v, result, "vkGetPhysicalDeviceSurfaceFormatsKHR");
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; ++i) {
        for (uint32_t j = 0; j < count; ++j) {
            if (there[j].format != wanted[i]) continue;
            surface->format = there[j].format;
            surface->color_space = there[j].colorSpace;
            return NB_OK;
        }
    }
    return nb_report_failure(&v->hooks, NB_ITEM_VULKAN_SURFACE, NB_ERR_UNSUPPORTED, "vulkan",
                             "none of the %u formats of the surface will do", count);
}

// FIFO is always there, and the one that waits for the display.
static VkPresentModeKHR mode_choose(nbi_vulkan *v, bool is_vsync_off) {
    VkPresentModeKHR there[MODE_COUNT_MAX], best = VK_PRESENT_MODE_FIFO_KHR;
    uint32_t count = MODE_COUNT_MAX;
    if (!is_vsync_off) return best;
    if (v->vk.GetPhysicalDeviceSurfacePresentModesKHR(v->physical, v->surface.handle, &count, there) < 0) return best;
    for (uint32_t i = 0; i < count; ++i) {
        if (there[i] == VK_PRESENT_MODE_MAILBOX_KHR) return there[i];
        if (there[i] == VK_PRESENT_MODE_IMMEDIATE_KHR) best = there[i];
    }
    return best;
}

static uint32_t clamp(uint32_t value, uint32_t low, uint32_t high) {
    return value < low ? low : value > high ? high : value;
}

static VkExtent2D extent_choose(const VkSurfaceCapabilitiesKHR *able, uint32_t width, uint32_t height) {
    // All bits set: the swapchain decides.
    if (able->currentExtent.width != UINT32_MAX) return able->currentExtent;
    return (VkExtent2D){clamp(width, able->minImageExtent.width, able->maxImageExtent.width),
                        clamp(height, able->minImageExtent.height, able->maxImageExtent.height)};
}

// --- swapchain ---

static void swapchain_close(nbi_vulkan *v) {
    nbi_vulkan_surface *surface = &v->surface;
    for (uint32_t i = 0; i < NBI_VULKAN_SURFACE_IMAGE_COUNT_MAX; ++i) {
        v->vk.DestroyImageView(v->device, surface->views[i], NULL);
        v->vk.DestroySemaphore(v->device, surface->drawn[i], NULL);
        surface->views[i] = VK_NULL_HANDLE;
        surface->drawn[i] = VK_NULL_HANDLE;
    }
    for (uint32_t i = 0; i <= NB_GPU_FRAMES_MAX; ++i) {
        v->vk.DestroySemaphore(v->device, surface->got[i], NULL);
        surface->got[i] = VK_NULL_HANDLE;
        surface->got_values[i] = 0;
    }
    if (surface->swapchain != VK_NULL_HANDLE) v->vk.DestroySwapchainKHR(v->device, surface->swapchain, NULL);
    surface->swapchain = VK_NULL_HANDLE;
    surface->image_count = surface->got_count = 0;
    surface->is_acquired = surface->is_drawn = false;
    surface->is_stale = true;
}

static nb_result semaphore_create(nbi_vulkan *v, VkSemaphore *out) {
    VkSemaphoreCreateInfo info = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO};
    VkResult result = v->vk.CreateSemaphore(v->device, &info, NULL, out);
    if (result == VK_SUCCESS) return NB_OK;
    *out = VK_NULL_HANDLE;
    return nbi_vulkan_fail(v, result, "vkCreateSemaphore");
}

static nbi_vulkan_image image_of(const nbi_vulkan_surface *surface, uint32_t index) {
    return (nbi_vulkan_image){.handle = surface->images[index],
                              .view = surface->views[index],
                              .format = surface->format,
                              .aspect = VK_IMAGE_ASPECT_COLOR_BIT,
                              .width = surface->extent.width,
                              .height = surface->extent.height,
                              .layer_count = 1,
                              .layout = VK_IMAGE_LAYOUT_UNDEFINED,
                              .is_surface = true};
}

static nb_result images_open(nbi_vulkan *v) {
    nbi_vulkan_surface *surface = &v->surface;
    uint32_t count = NBI_VULKAN_SURFACE_IMAGE_COUNT_MAX;
    VkResult got = v->vk.GetSwapchainImagesKHR(v->device, surface->swapchain, &count, surface->images);
    // With VK_INCOMPLETE there are images that we could be given and do not know.
    if (got != VK_SUCCESS) return nbi_vulkan_fail(v, got, "vkGetSwapchainImagesKHR");
    surface->image_count = count;
    nb_result result = NB_OK;
    for (uint32_t i = 0; i < count && result == NB_OK; ++i) {
        nbi_vulkan_image image = image_of(surface, i);
        result = nbi_vulkan_view_create(v, &image, &surface->views[i]);
        if (result == NB_OK) result = semaphore_create(v, &surface->drawn[i]);
    }
    surface->got_count = v->limits.frames_in_flight + 1;
    for (uint32_t i = 0; i < surface->got_count && result == NB_OK; ++i) result = semaphore_create(v, &surface->got[i]);
    return result;
}

static nb_result swapchain_create(nbi_vulkan *v, const VkSurfaceCapabilitiesKHR *able, bool is_vsync_off) {
    nbi_vulkan_surface *surface = &v->surface;
    // One more than the display needs, so that there is one to draw to.
    uint32_t count_max = able->maxImageCount != 0 ? able->maxImageCount : NBI_VULKAN_SURFACE_IMAGE_COUNT_MAX;
    VkImageUsageFlags usage =
        VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT |
        (able->supportedUsageFlags & (VK_IMAGE_USAGE_TRANSFER_SRC_BIT | VK_IMAGE_USAGE_TRANSFER_DST_BIT));
    bool is_opaque = (able->supportedCompositeAlpha & VK_COMPOSITE_ALPHA_OPAQUE_BIT_KHR) != 0;
    VkSwapchainCreateInfoKHR info = {.sType = VK_STRUCTURE_TYPE_SWAPCHAIN_CREATE_INFO_KHR,
                                     .surface = surface->handle,
                                     .minImageCount = clamp(able->minImageCount + 1, able->minImageCount, count_max),
                                     .imageFormat = surface->format,
                                     .imageColorSpace = surface->color_space,
                                     .imageExtent = surface->extent,
                                     .imageArrayLayers = 1,
                                     .imageUsage = usage,
                                     .preTransform = able->currentTransform,
                                     .compositeAlpha = is_opaque ? VK_COMPOSITE_ALPHA_OPAQUE_BIT_KHR
                                                                 : VK_COMPOSITE_ALPHA_INHERIT_BIT_KHR,
                                     .presentMode = mode_choose(v, is_vsync_off),
                                     .clipped = VK_TRUE};
    VkResult result = v->vk.CreateSwapchainKHR(v->device, &info, NULL, &surface->swapchain);
    if (result != VK_SUCCESS) {
        surface->swapchain = VK_NULL_HANDLE;
        return nbi_vulkan_fail(v, result, "vkCreateSwapchainKHR");
    }
    return images_open(v);
}

static nb_result swapchain_open(nbi_vulkan *v, uint32_t width, uint32_t height, bool is_vsync_off) {
    nbi_vulkan_surface *surface = &v->surface;
    VkSurfaceCapabilitiesKHR able;
    VkResult asked = v->vk.GetPhysicalDeviceSurfaceCapabilitiesKHR(v->physical, surface->handle, &able);
    if (asked != VK_SUCCESS) {
        surface->is_lost = asked == VK_ERROR_SURFACE_LOST_KHR;
        return nbi_vulkan_fail(v, asked, "vkGetPhysicalDeviceSurfaceCapabilitiesKHR");
    }
    surface->extent = extent_choose(&able, width, height);
    // A minimised window: there is nothing to draw to, until it is made anew.
    if (surface->extent.width == 0 || surface->extent.height == 0) return NB_BUSY;
    nb_result result = swapchain_create(v, &able, is_vsync_off);
    if (result != NB_OK) {
        swapchain_close(v);
        return result;
    }
    surface->is_stale = false;
    return NB_OK;
}

nb_result nbi_vulkan_surface_open(nbi_vulkan *v, uint32_t width, uint32_t height, bool is_vsync_off) {
    if (v->surface.handle == VK_NULL_HANDLE) return NB_OK;
    v->surface.is_stale = true;
    nb_result result = format_choose(v, &v->surface);
    if (result != NB_OK) return result;
    result = swapchain_open(v, width, height, is_vsync_off);
    return result == NB_BUSY ? NB_OK : result;
}

void nbi_vulkan_surface_close(nbi_vulkan *v) {
    if (v->surface.handle != VK_NULL_HANDLE) swapchain_close(v);
}

static nb_result surface_renew(nbi_vulkan *v) {
    uint64_t made = 0;
    v->vk.DestroySurfaceKHR(v->instance, v->surface.handle, NULL);
    if (!v->window.surface_create(v->window.user, v->instance, &made)) made = 0;
    memcpy(&v->surface.handle, &made, sizeof v->surface.handle);
    if (made == 0)
        return nb_report_throttled(&v->hooks, &v->throttle, 0, false, NB_ITEM_VULKAN_SURFACE, NB_ERR_STALE, "vulkan",
                                   "the window has no surface");
    v->surface.is_lost = false;
    return NB_OK;
}

nb_result nbi_vulkan_surface_resize(void *self, uint32_t width, uint32_t height, bool is_vsync_off) {
    nbi_vulkan *v = (nbi_vulkan *)self;
    if (v->window.surface_create == NULL) return NB_OK;
    if (nbi_vulkan_is_lost(v)) return NB_ERR_LOST;
    // All that was drawn is over; what is left is presents that have not yet taken their semaphores.
    VkResult idle = v->vk.DeviceWaitIdle(v->device);
    if (idle != VK_SUCCESS) return nbi_vulkan_fail(v, idle, "vkDeviceWaitIdle");
    swapchain_close(v);
    bool is_gone = v->surface.is_lost || v->surface.handle == VK_NULL_HANDLE;
    nb_result result = is_gone ? surface_renew(v) : NB_OK;
    return result == NB_OK ? swapchain_open(v, width, height, is_vsync_off) : result;
}

// --- a picture ---

static bool semaphore_find(nbi_vulkan *v, uint64_t reached, uint32_t *out) {
    for (uint32_t i = 0; i < v->surface.got_count; ++i) {
        if (v->surface.got_values[i] > reached) continue;
        *out = i;
        return true;
    }
    return false;
}

static nb_result image_acquire(nbi_vulkan *v) {
    nbi_vulkan_surface *surface = &v->surface;
    uint64_t reached = 0;
    nb_result result = nbi_vulkan_completed(v, &reached);
    if (result != NB_OK) return result;
    uint32_t semaphore = 0;
    if (!semaphore_find(v, reached, &semaphore)) return NB_BUSY;
    VkResult got = v->vk.AcquireNextImageKHR(v->device, surface->swapchain, ACQUIRE_NS, surface->got[semaphore],
                                             VK_NULL_HANDLE, &surface->image_now);
    if (got == VK_TIMEOUT || got == VK_NOT_READY) return NB_BUSY;
    if (got == VK_SUBOPTIMAL_KHR || got == VK_ERROR_OUT_OF_DATE_KHR) surface->is_stale = true;
    if (got == VK_ERROR_SURFACE_LOST_KHR) surface->is_stale = surface->is_lost = true;
    // Out of date is what a resize looks like: nothing to report.
    if (got == VK_ERROR_OUT_OF_DATE_KHR) return NB_ERR_STALE;
    if (got < 0) return nbi_vulkan_fail(v, got, "vkAcquireNextImageKHR");
    surface->got_now = semaphore;
    surface->is_acquired = true;
    return NB_OK;
}

// An image that was acquired and not drawn to, because that frame was left out, is the next one too.
nb_result nbi_vulkan_acquire(void *self, uint32_t slot, nb_gpu_index index, uint32_t *width, uint32_t *height) {
    (void)slot;
    nbi_vulkan *v = (nbi_vulkan *)self;
    nbi_vulkan_surface *surface = &v->surface;
    if (v->window.surface_create == NULL) return NB_ERR_UNSUPPORTED;
    if (surface->swapchain == VK_NULL_HANDLE) return NB_ERR_STALE;
    if (!surface->is_acquired) {
        if (surface->is_stale) return NB_ERR_STALE;
        nb_result result = image_acquire(v);
        if (result != NB_OK) return result;
    }
    v->images[index] = image_of(surface, surface->image_now);
    *width = surface->extent.width;
    *height = surface->extent.height;
    return NB_OK;
}

nb_result nbi_vulkan_present(void *self, uint32_t slot) {
    (void)slot;
    nbi_vulkan *v = (nbi_vulkan *)self;
    nbi_vulkan_surface *surface = &v->surface;
    if (!surface->is_drawn) return NB_OK;
    surface->is_drawn = false;
    VkPresentInfoKHR info = {.sType = VK_STRUCTURE_TYPE_PRESENT_INFO_KHR,
                             .waitSemaphoreCount = 1,
                             .pWaitSemaphores = &surface->drawn[surface->image_now],
                             .swapchainCount = 1,
                             .pSwapchains = &surface->swapchain,
                             .pImageIndices = &surface->image_now};
    VkResult result = v->vk.QueuePresentKHR(v->queue, &info);
    if (result == VK_SUBOPTIMAL_KHR || result == VK_ERROR_OUT_OF_DATE_KHR) surface->is_stale = true;
    if (result == VK_ERROR_SURFACE_LOST_KHR) surface->is_stale = surface->is_lost = true;
    if (result < 0 && result != VK_ERROR_OUT_OF_DATE_KHR) return nbi_vulkan_fail(v, result, "vkQueuePresentKHR");
    return surface->is_stale ? NB_ERR_STALE : NB_OK;
}
