// SPDX-License-Identifier: MIT
// The commands of an item, one for one.

#include "vulkan.h"

static VkCommandBuffer command_of(nbi_vulkan *v, const nb_gpu_item *item) { return v->lanes[item->lane].command; }

void nbi_vulkan_set_pipeline(void *self, const nb_gpu_item *item, nb_gpu_index pipeline) {
    nbi_vulkan *v = (nbi_vulkan *)self;
    const nbi_vulkan_pipeline *p = &v->pipelines[pipeline];
    VkPipelineBindPoint point = p->is_compute ? VK_PIPELINE_BIND_POINT_COMPUTE : VK_PIPELINE_BIND_POINT_GRAPHICS;
    v->vk.CmdBindPipeline(command_of(v, item), point, p->handle);
}

void nbi_vulkan_set_indices(void *self, const nb_gpu_item *item, nb_gpu_index buffer, uint64_t offset) {
    nbi_vulkan *v = (nbi_vulkan *)self;
    v->vk.CmdBindIndexBuffer(command_of(v, item), v->buffers[buffer].handle, offset, VK_INDEX_TYPE_UINT32);
}

void nbi_vulkan_push(void *self, const nb_gpu_item *item, nb_gpu_index pipeline, const void *bytes, size_t size_bytes) {
    nbi_vulkan *v = (nbi_vulkan *)self;
    VkPipelineLayout layout = v->layouts[v->pipelines[pipeline].layout].pipeline;
    v->vk.CmdPushConstants(command_of(v, item), layout, VK_SHADER_STAGE_ALL, 0, (uint32_t)size_bytes, bytes);
}

// Depth goes as it comes: reversed depth is a matter of the projection and of the comparison.
void nbi_vulkan_set_viewport(void *self, const nb_gpu_item *item, nb_gpu_rect rect) {
    nbi_vulkan *v = (nbi_vulkan *)self;
    VkViewport viewport = {.x = (float)rect.x,
                           .y = (float)rect.y,
                           .width = (float)rect.width,
                           .height = (float)rect.height,
                           .maxDepth = 1};
    v->vk.CmdSetViewport(command_of(v, item), 0, 1, &viewport);
}

void nbi_vulkan_set_scissor(void *self, const nb_gpu_item *item, nb_gpu_rect rect) {
    nbi_vulkan *v = (nbi_vulkan *)self;
    VkRect2D scissor = {.offset = {rect.x, rect.y}, .extent = {rect.width, rect.height}};
    v->vk.CmdSetScissor(command_of(v, item), 0, 1, &scissor);
}

void nbi_vulkan_draw(void *self, const nb_gpu_item *item, const nb_gpu_draw_args *args) {
    nbi_vulkan *v = (nbi_vulkan *)self;
    v->vk.CmdDraw(command_of(v, item), args->vertex_count, args->instance_count, args->first_vertex,
                  args->first_instance);
}

void nbi_vulkan_draw_indexed(void *self, const nb_gpu_item *item, uint32_t index_count, uint32_t instance_count,
                             uint32_t first_index, int32_t vertex_offset, uint32_t first_instance) {
    nbi_vulkan *v = (nbi_vulkan *)self;
    v->vk.CmdDrawIndexed(command_of(v, item), index_count, instance_count, first_index, vertex_offset, first_instance);
}

void nbi_vulkan_draw_indirect(void *self, const nb_gpu_item *item, nb_gpu_index buffer, uint64_t offset,
                              uint32_t count) {
    nbi_vulkan *v = (nbi_vulkan *)self;
    VkBuffer handle = v->buffers[buffer].handle;
    const uint32_t stride = sizeof(nb_gpu_draw_args);
    if (v->features.multiDrawIndirect) {
        v->vk.CmdDrawIndirect(command_of(v, item), handle, offset, count, stride);
        return;
    }
    for (uint32_t i = 0; i < count; ++i)
        v->vk.CmdDrawIndirect(command_of(v, item), handle, offset + (uint64_t)i * stride, 1, stride);
}

void nbi_vulkan_dispatch(void *self, const nb_gpu_item *item, uint32_t x, uint32_t y, uint32_t z) {
    nbi_vulkan *v = (nbi_vulkan *)self;
    v->vk.CmdDispatch(command_of(v, item), x, y, z);
}

void nbi_vulkan_copy_buffer(void *self, const nb_gpu_item *item, nb_gpu_index from, uint64_t from_offset,
                            nb_gpu_index to, uint64_t to_offset, uint64_t size_bytes) {
    nbi_vulkan *v = (nbi_vulkan *)self;
    VkBufferCopy copy = {.srcOffset = from_offset, .dstOffset = to_offset, .size = size_bytes};
    v->vk.CmdCopyBuffer(command_of(v, item), v->buffers[from].handle, v->buffers[to].handle, 1, &copy);
}

void nbi_vulkan_copy_to_buffer(void *self, const nb_gpu_item *item, nb_gpu_index from, nb_gpu_index to,
                               uint64_t to_offset) {
    nbi_vulkan *v = (nbi_vulkan *)self;
    const nbi_vulkan_lane *lane = &v->lanes[item->lane];
    const nbi_vulkan_image *image = &v->images[from];
    VkBufferImageCopy copy = {.bufferOffset = to_offset,
                              .imageSubresource = {.aspectMask = image->aspect, .layerCount = 1},
                              .imageExtent = {image->width, image->height, 1}};
    v->vk.CmdCopyImageToBuffer(lane->command, image->handle, nbi_vulkan_layout_in_step(v, lane, from),
                               v->buffers[to].handle, 1, &copy);
}
