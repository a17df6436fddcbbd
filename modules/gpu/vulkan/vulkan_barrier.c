// SPDX-License-Identifier: MIT
// Ways of use, in Vulkan's words: stages, accesses, layouts.

#include "vulkan.h"

#define SHADERS                                                                        \
    (VK_PIPELINE_STAGE_2_VERTEX_SHADER_BIT | VK_PIPELINE_STAGE_2_FRAGMENT_SHADER_BIT | \
     VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT)
#define DEPTH_TESTS (VK_PIPELINE_STAGE_2_EARLY_FRAGMENT_TESTS_BIT | VK_PIPELINE_STAGE_2_LATE_FRAGMENT_TESTS_BIT)

typedef struct meaning {
    nb_gpu_access access;
    nbi_vulkan_scope scope;
    VkImageLayout layout; // UNDEFINED: of buffers
} meaning;

static const meaning meanings[] = {
    {NB_GPU_ACCESS_COLOR,
     {VK_PIPELINE_STAGE_2_COLOR_ATTACHMENT_OUTPUT_BIT,
      VK_ACCESS_2_COLOR_ATTACHMENT_READ_BIT | VK_ACCESS_2_COLOR_ATTACHMENT_WRITE_BIT},
     VK_IMAGE_LAYOUT_COLOR_ATTACHMENT_OPTIMAL},
    {NB_GPU_ACCESS_DEPTH,
     {DEPTH_TESTS, VK_ACCESS_2_DEPTH_STENCIL_ATTACHMENT_READ_BIT | VK_ACCESS_2_DEPTH_STENCIL_ATTACHMENT_WRITE_BIT},
     VK_IMAGE_LAYOUT_DEPTH_STENCIL_ATTACHMENT_OPTIMAL},
    {NB_GPU_ACCESS_DEPTH_READ,
     {DEPTH_TESTS, VK_ACCESS_2_DEPTH_STENCIL_ATTACHMENT_READ_BIT},
     VK_IMAGE_LAYOUT_DEPTH_STENCIL_READ_ONLY_OPTIMAL},
    {NB_GPU_ACCESS_SAMPLED, {SHADERS, VK_ACCESS_2_SHADER_SAMPLED_READ_BIT}, VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL},
    {NB_GPU_ACCESS_STORAGE_READ, {SHADERS, VK_ACCESS_2_SHADER_STORAGE_READ_BIT}, VK_IMAGE_LAYOUT_GENERAL},
    {NB_GPU_ACCESS_STORAGE,
     {SHADERS, VK_ACCESS_2_SHADER_STORAGE_READ_BIT | VK_ACCESS_2_SHADER_STORAGE_WRITE_BIT},
     VK_IMAGE_LAYOUT_GENERAL},
    {NB_GPU_ACCESS_UNIFORM, {SHADERS, VK_ACCESS_2_UNIFORM_READ_BIT}, VK_IMAGE_LAYOUT_UNDEFINED},
    // Vertices are pulled from storage buffers.
    {NB_GPU_ACCESS_VERTEX,
     {VK_PIPELINE_STAGE_2_VERTEX_SHADER_BIT, VK_ACCESS_2_SHADER_STORAGE_READ_BIT},
     VK_IMAGE_LAYOUT_UNDEFINED},
    {NB_GPU_ACCESS_INDEX, {VK_PIPELINE_STAGE_2_INDEX_INPUT_BIT, VK_ACCESS_2_INDEX_READ_BIT}, VK_IMAGE_LAYOUT_UNDEFINED},
    {NB_GPU_ACCESS_INDIRECT,
     {VK_PIPELINE_STAGE_2_DRAW_INDIRECT_BIT, VK_ACCESS_2_INDIRECT_COMMAND_READ_BIT},
     VK_IMAGE_LAYOUT_UNDEFINED},
    {NB_GPU_ACCESS_COPY_FROM,
     {VK_PIPELINE_STAGE_2_COPY_BIT, VK_ACCESS_2_TRANSFER_READ_BIT},
     VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL},
    {NB_GPU_ACCESS_COPY_TO,
     {VK_PIPELINE_STAGE_2_COPY_BIT, VK_ACCESS_2_TRANSFER_WRITE_BIT},
     VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL},
    // The semaphore that the display waits for makes everything visible to it.
    {NB_GPU_ACCESS_PRESENT, {VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT, VK_ACCESS_2_NONE}, VK_IMAGE_LAYOUT_PRESENT_SRC_KHR},
};

#define MEANING_COUNT (sizeof meanings / sizeof meanings[0])

nbi_vulkan_scope nbi_vulkan_scope_of(nb_gpu_access access) {
    nbi_vulkan_scope scope = {VK_PIPELINE_STAGE_2_NONE, VK_ACCESS_2_NONE};
    for (size_t i = 0; i < MEANING_COUNT; ++i) {
        if ((access & meanings[i].access) == 0) continue;
        scope.stages |= meanings[i].scope.stages;
        scope.access |= meanings[i].scope.access;
    }
    return scope;
}

VkImageLayout nbi_vulkan_layout_of(nb_gpu_access access) {
    // One layout for both: a depth image that is tested against and sampled.
    if (access == (NB_GPU_ACCESS_DEPTH_READ | NB_GPU_ACCESS_SAMPLED))
        return VK_IMAGE_LAYOUT_DEPTH_STENCIL_READ_ONLY_OPTIMAL;
    VkImageLayout layout = VK_IMAGE_LAYOUT_UNDEFINED;
    for (size_t i = 0; i < MEANING_COUNT; ++i) {
        if ((access & meanings[i].access) == 0) continue;
        bool is_other = layout != VK_IMAGE_LAYOUT_UNDEFINED && layout != meanings[i].layout;
        layout = is_other ? VK_IMAGE_LAYOUT_GENERAL : meanings[i].layout;
    }
    return layout;
}

VkImageLayout nbi_vulkan_layout_resting(nb_gpu_access access) {
    nb_gpu_access bound = access & (NB_GPU_ACCESS_SAMPLED | NB_GPU_ACCESS_STORAGE_READ | NB_GPU_ACCESS_STORAGE);
    VkImageLayout layout = nbi_vulkan_layout_of(bound != 0 ? bound : access);
    return layout != VK_IMAGE_LAYOUT_UNDEFINED ? layout : VK_IMAGE_LAYOUT_GENERAL;
}

// --- batches ---

const nbi_vulkan_scope nbi_vulkan_scope_all = {VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT,
                                               VK_ACCESS_2_MEMORY_READ_BIT | VK_ACCESS_2_MEMORY_WRITE_BIT};

// What was only read has nothing to be made visible.
static VkAccessFlags2 writes_of(VkAccessFlags2 access) {
    return access &
           (VK_ACCESS_2_COLOR_ATTACHMENT_WRITE_BIT | VK_ACCESS_2_DEPTH_STENCIL_ATTACHMENT_WRITE_BIT |
            VK_ACCESS_2_SHADER_STORAGE_WRITE_BIT | VK_ACCESS_2_TRANSFER_WRITE_BIT | VK_ACCESS_2_MEMORY_WRITE_BIT);
}

void nbi_vulkan_batch_begin(nbi_vulkan_batch *batch, VkCommandBuffer command) {
    // The barriers themselves are kilobytes that nobody reads before they are written.
    batch->command = command;
    batch->memory_count = batch->buffer_count = batch->image_count = 0;
}

void nbi_vulkan_batch_flush(nbi_vulkan *v, nbi_vulkan_batch *batch) {
    if (batch->memory_count + batch->buffer_count + batch->image_count == 0) return;
    VkDependencyInfo info = {.sType = VK_STRUCTURE_TYPE_DEPENDENCY_INFO,
                             .memoryBarrierCount = batch->memory_count,
                             .pMemoryBarriers = batch->memory,
                             .bufferMemoryBarrierCount = batch->buffer_count,
                             .pBufferMemoryBarriers = batch->buffers,
                             .imageMemoryBarrierCount = batch->image_count,
                             .pImageMemoryBarriers = batch->images};
    v->vk.CmdPipelineBarrier2(batch->command, &info);
    batch->memory_count = batch->buffer_count = batch->image_count = 0;
}

void nbi_vulkan_batch_memory(nbi_vulkan *v, nbi_vulkan_batch *batch, nbi_vulkan_scope from, nbi_vulkan_scope to) {
    if (batch->memory_count > 0) nbi_vulkan_batch_flush(v, batch);
    batch->memory[batch->memory_count++] = (VkMemoryBarrier2){.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER_2,
                                                              .srcStageMask = from.stages,
                                                              .srcAccessMask = writes_of(from.access),
                                                              .dstStageMask = to.stages,
                                                              .dstAccessMask = to.access};
}

void nbi_vulkan_batch_buffer(nbi_vulkan *v, nbi_vulkan_batch *batch, const nbi_vulkan_buffer *buffer,
                             nbi_vulkan_scope from, nbi_vulkan_scope to) {
    if (batch->buffer_count == NBI_VULKAN_BATCH_COUNT_MAX) nbi_vulkan_batch_flush(v, batch);
    batch->buffers[batch->buffer_count++] = (VkBufferMemoryBarrier2){.sType = VK_STRUCTURE_TYPE_BUFFER_MEMORY_BARRIER_2,
                                                                     .srcStageMask = from.stages,
                                                                     .srcAccessMask = writes_of(from.access),
                                                                     .dstStageMask = to.stages,
                                                                     .dstAccessMask = to.access,
                                                                     .srcQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED,
                                                                     .dstQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED,
                                                                     .buffer = buffer->handle,
                                                                     .size = VK_WHOLE_SIZE};
}

void nbi_vulkan_batch_image(nbi_vulkan *v, nbi_vulkan_batch *batch, const nbi_vulkan_image *image,
                            nbi_vulkan_scope from, VkImageLayout from_layout, nbi_vulkan_scope to,
                            VkImageLayout to_layout) {
    if (batch->image_count == NBI_VULKAN_BATCH_COUNT_MAX) nbi_vulkan_batch_flush(v, batch);
    batch->images[batch->image_count++] = (VkImageMemoryBarrier2){
        .sType = VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER_2,
        .srcStageMask = from.stages,
        .srcAccessMask = writes_of(from.access),
        .dstStageMask = to.stages,
        .dstAccessMask = to.access,
        .oldLayout = from_layout,
        .newLayout = to_layout,
        .srcQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED,
        .dstQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED,
        .image = image->handle,
        .subresourceRange = {.aspectMask = image->aspect, .levelCount = 1, .layerCount = image->layer_count}};
}
