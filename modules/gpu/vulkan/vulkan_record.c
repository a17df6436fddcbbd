// SPDX-License-Identifier: MIT
// What is recorded into: a command pool and descriptor pools for each lane and slot, so that threads never meet; every
// item is a secondary command buffer.

#include "vulkan.h"

// --- beginning and end ---

static nb_result pool_create(nbi_vulkan *v, VkCommandPool *out) {
    VkCommandPoolCreateInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                    .flags = VK_COMMAND_POOL_CREATE_TRANSIENT_BIT,
                                    .queueFamilyIndex = v->family};
    VkResult result = v->vk.CreateCommandPool(v->device, &info, NULL, out);
    if (result == VK_SUCCESS) return NB_OK;
    *out = VK_NULL_HANDLE;
    return nbi_vulkan_fail(v, result, "vkCreateCommandPool");
}

static nb_result command_create(nbi_vulkan *v, VkCommandPool pool, VkCommandBufferLevel level, VkCommandBuffer *out) {
    VkCommandBufferAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                        .commandPool = pool,
                                        .level = level,
                                        .commandBufferCount = 1};
    VkResult result = v->vk.AllocateCommandBuffers(v->device, &info, out);
    return result == VK_SUCCESS ? NB_OK : nbi_vulkan_fail(v, result, "vkAllocateCommandBuffers");
}

static nb_result queries_create(nbi_vulkan *v, nbi_vulkan_slot *slot) {
    if (v->timestamp_bits == 0) return NB_OK;
    VkQueryPoolCreateInfo info = {.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO,
                                  .queryType = VK_QUERY_TYPE_TIMESTAMP,
                                  .queryCount = 2 * v->limits.pass_count_max};
    VkResult result = v->vk.CreateQueryPool(v->device, &info, NULL, &slot->queries);
    if (result == VK_SUCCESS) return NB_OK;
    slot->queries = VK_NULL_HANDLE;
    return nbi_vulkan_fail(v, result, "vkCreateQueryPool");
}

nb_result nbi_vulkan_record_open(nbi_vulkan *v) {
    nb_result result = NB_OK;
    for (uint32_t s = 0; s < v->limits.frames_in_flight && result == NB_OK; ++s) {
        nbi_vulkan_slot *slot = &v->slots[s];
        result = pool_create(v, &slot->pool);
        if (result == NB_OK) result = command_create(v, slot->pool, VK_COMMAND_BUFFER_LEVEL_PRIMARY, &slot->primary);
        if (result == NB_OK) result = queries_create(v, slot);
        for (uint32_t lane = 0; lane < v->limits.lane_count && result == NB_OK; ++lane)
            result = pool_create(v, &v->lanes[lane].shelves[s].pool);
    }
    return result;
}

static void shelf_close(nbi_vulkan *v, nbi_vulkan_shelf *shelf) {
    // Command buffers end with their pool, sets with theirs.
    v->vk.DestroyCommandPool(v->device, shelf->pool, NULL);
    for (uint32_t i = 0; i < shelf->pool_count; ++i) v->vk.DestroyDescriptorPool(v->device, shelf->pools[i], NULL);
}

void nbi_vulkan_record_close(nbi_vulkan *v) {
    for (uint32_t s = 0; s < v->limits.frames_in_flight; ++s) {
        v->vk.DestroyCommandPool(v->device, v->slots[s].pool, NULL);
        v->vk.DestroyQueryPool(v->device, v->slots[s].queries, NULL);
        for (uint32_t lane = 0; lane < v->limits.lane_count; ++lane) shelf_close(v, &v->lanes[lane].shelves[s]);
    }
}

// --- a frame ---

// The lanes reset what is theirs with their first item, side by side.
nb_result nbi_vulkan_frame_reset(void *self, uint32_t slot) {
    nbi_vulkan *v = (nbi_vulkan *)self;
    ++v->slots[slot].frame;
    return nbi_vulkan_is_lost(v) ? NB_ERR_LOST : NB_OK;
}

static nb_result shelf_reset(nbi_vulkan *v, nbi_vulkan_shelf *shelf, uint64_t frame) {
    if (shelf->frame == frame) return NB_OK;
    VkResult result = v->vk.ResetCommandPool(v->device, shelf->pool, 0);
    if (result != VK_SUCCESS) return nbi_vulkan_fail(v, result, "vkResetCommandPool");
    for (uint32_t i = 0; i < shelf->pool_count; ++i) {
        result = v->vk.ResetDescriptorPool(v->device, shelf->pools[i], 0);
        if (result != VK_SUCCESS) return nbi_vulkan_fail(v, result, "vkResetDescriptorPool");
    }
    shelf->command_used = 0;
    shelf->pool_used = 0;
    shelf->frame = frame;
    return NB_OK;
}

// --- items ---

static nb_result command_next(nbi_vulkan *v, nbi_vulkan_shelf *shelf, VkCommandBuffer *out) {
    if (shelf->command_used == shelf->command_count) {
        nb_result result =
            command_create(v, shelf->pool, VK_COMMAND_BUFFER_LEVEL_SECONDARY, &shelf->commands[shelf->command_count]);
        if (result != NB_OK) return result;
        ++shelf->command_count;
    }
    *out = shelf->commands[shelf->command_used++];
    return NB_OK;
}

static nb_result command_begin(nbi_vulkan *v, VkCommandBuffer command, const nb_graph_plan *plan,
                               const nb_graph_step *step) {
    VkFormat colors[NB_GRAPH_COLOR_COUNT_MAX];
    for (uint32_t i = 0; i < step->color_count; ++i)
        colors[i] = nbi_vulkan_format(plan->resources[step->colors[i].resource].format);
    bool has_depth = step->depth.access != NB_GPU_ACCESS_NONE;
    VkFormat depth = has_depth ? nbi_vulkan_format(plan->resources[step->depth.resource].format) : VK_FORMAT_UNDEFINED;
    VkCommandBufferInheritanceRenderingInfo rendering = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_INHERITANCE_RENDERING_INFO,
        .colorAttachmentCount = step->color_count,
        .pColorAttachmentFormats = colors,
        .depthAttachmentFormat = depth,
        .rasterizationSamples = VK_SAMPLE_COUNT_1_BIT};
    bool draws = step->kind == NB_GPU_PASS_RENDER;
    VkCommandBufferInheritanceInfo inheritance = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_INHERITANCE_INFO,
                                                  .pNext = draws ? &rendering : NULL};
    VkCommandBufferBeginInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                     .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT,
                                     .pInheritanceInfo = &inheritance};
    if (draws) info.flags |= VK_COMMAND_BUFFER_USAGE_RENDER_PASS_CONTINUE_BIT;
    VkResult result = v->vk.BeginCommandBuffer(command, &info);
    return result == VK_SUCCESS ? NB_OK : nbi_vulkan_fail(v, result, "vkBeginCommandBuffer");
}

nb_result nbi_vulkan_item_begin(void *self, uint32_t slot, const nb_gpu_item *item, const nb_graph_plan *plan,
                                const nb_gpu_index *resources) {
    nbi_vulkan *v = (nbi_vulkan *)self;
    nbi_vulkan_lane *lane = &v->lanes[item->lane];
    const nb_graph_step *step = &plan->steps[item->step];
    lane->shelf = &lane->shelves[slot];
    lane->plan = plan;
    lane->resources = resources;
    lane->step = item->step;
    lane->set = VK_NULL_HANDLE;
    nb_result result = shelf_reset(v, lane->shelf, v->slots[slot].frame);
    if (result == NB_OK) result = command_next(v, lane->shelf, &lane->command);
    if (result == NB_OK) result = command_begin(v, lane->command, plan, step);
    if (result != NB_OK || step->kind != NB_GPU_PASS_RENDER) return result;
    nb_gpu_rect all = {.width = step->width, .height = step->height};
    nbi_vulkan_set_viewport(v, item, all);
    nbi_vulkan_set_scissor(v, item, all);
    return NB_OK;
}

nb_result nbi_vulkan_item_end(void *self, uint32_t slot, const nb_gpu_item *item) {
    nbi_vulkan *v = (nbi_vulkan *)self;
    nbi_vulkan_lane *lane = &v->lanes[item->lane];
    VkResult result = v->vk.EndCommandBuffer(lane->command);
    if (result != VK_SUCCESS) return nbi_vulkan_fail(v, result, "vkEndCommandBuffer");
    v->slots[slot].items[item->index] = lane->command;
    return NB_OK;
}
