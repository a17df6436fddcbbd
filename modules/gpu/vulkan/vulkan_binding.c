// SPDX-License-Identifier: MIT
// What is bound becomes a descriptor set. Sets live as long as the frame; the one before is used again where the same
// is bound.

#include "vulkan.h"

// Sets of the first descriptor pool of a lane, and of the largest.
#define SET_COUNT_FIRST 64u
#define SET_COUNT_MAX 4096u

// --- pools ---

// Places for the worst case of every set would be most of a pool unused; what there is too little of, the next pool
// has.
static nb_result pool_create(nbi_vulkan *v, nbi_vulkan_shelf *shelf) {
    if (shelf->pool_count == NBI_VULKAN_POOL_COUNT_MAX)
        return nbi_vulkan_fail(v, VK_ERROR_OUT_OF_POOL_MEMORY, "descriptor sets of one frame");
    uint32_t set_count = SET_COUNT_FIRST;
    for (uint32_t i = 0; i < shelf->pool_count && set_count < SET_COUNT_MAX; ++i) set_count *= 2;
    VkDescriptorPoolSize sizes[] = {{VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER, 2 * set_count},
                                    {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 4 * set_count},
                                    {VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER, 2 * set_count},
                                    {VK_DESCRIPTOR_TYPE_STORAGE_IMAGE, set_count}};
    VkDescriptorPoolCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
                                       .maxSets = set_count,
                                       .poolSizeCount = 4,
                                       .pPoolSizes = sizes};
    VkResult result = v->vk.CreateDescriptorPool(v->device, &info, NULL, &shelf->pools[shelf->pool_count]);
    if (result != VK_SUCCESS) return nbi_vulkan_fail(v, result, "vkCreateDescriptorPool");
    ++shelf->pool_count;
    return NB_OK;
}

static nb_result set_allocate(nbi_vulkan *v, nbi_vulkan_shelf *shelf, VkDescriptorSetLayout layout,
                              VkDescriptorSet *out) {
    VkResult result = VK_ERROR_OUT_OF_POOL_MEMORY;
    for (;; ++shelf->pool_used) {
        if (shelf->pool_used == shelf->pool_count) {
            nb_result made = pool_create(v, shelf);
            if (made != NB_OK) return made;
        }
        VkDescriptorSetAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
                                            .descriptorPool = shelf->pools[shelf->pool_used],
                                            .descriptorSetCount = 1,
                                            .pSetLayouts = &layout};
        result = v->vk.AllocateDescriptorSets(v->device, &info, out);
        if (result == VK_SUCCESS) return NB_OK;
        bool is_full = result == VK_ERROR_OUT_OF_POOL_MEMORY || result == VK_ERROR_FRAGMENTED_POOL;
        if (!is_full) return nbi_vulkan_fail(v, result, "vkAllocateDescriptorSets");
    }
}

// --- sets ---

VkImageLayout nbi_vulkan_layout_in_step(const nbi_vulkan *v, const nbi_vulkan_lane *lane, nb_gpu_index image) {
    const nb_graph_plan *plan = lane->plan;
    const nb_graph_step *step = &plan->steps[lane->step];
    // The newest transition up to the step; two resources of the plan may be the same image at different times.
    for (uint32_t i = step->transition_first + step->transition_count; i-- > 0;) {
        uint32_t resource = plan->transitions[i].resource;
        if (!plan->resources[resource].is_buffer && lane->resources[resource] == image)
            return nbi_vulkan_layout_of(plan->transitions[i].after);
    }
    return v->images[image].layout;
}

// Descriptors of one set while they are written.
typedef struct writer {
    VkDescriptorSet set;
    VkWriteDescriptorSet writes[NB_GPU_BUFFER_BINDING_COUNT + NB_GPU_IMAGE_BINDING_COUNT];
    VkDescriptorBufferInfo buffers[NB_GPU_BUFFER_BINDING_COUNT];
    VkDescriptorImageInfo images[NB_GPU_IMAGE_BINDING_COUNT];
    uint32_t count;
} writer;

static VkWriteDescriptorSet *write_next(writer *w, uint32_t binding, VkDescriptorType type) {
    VkWriteDescriptorSet *write = &w->writes[w->count++];
    *write = (VkWriteDescriptorSet){.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                                    .dstSet = w->set,
                                    .dstBinding = binding,
                                    .descriptorCount = 1,
                                    .descriptorType = type};
    return write;
}

static void buffer_write(const nbi_vulkan *v, writer *w, uint32_t bit, bool is_uniform,
                         const nb_gpu_bindings *bindings) {
    const nbi_vulkan_buffer *buffer = &v->buffers[bindings->buffers[bit].buffer];
    uint64_t offset = bindings->buffers[bit].offset, size_bytes = bindings->buffers[bit].size_bytes;
    if (size_bytes == 0) size_bytes = buffer->size_bytes - offset;
    const VkPhysicalDeviceLimits *limits = &v->properties.limits;
    uint64_t size_max = is_uniform ? limits->maxUniformBufferRange : limits->maxStorageBufferRange;
    if (size_bytes > size_max) size_bytes = size_max;
    w->buffers[bit] = (VkDescriptorBufferInfo){buffer->handle, offset, size_bytes};
    VkDescriptorType type = is_uniform ? VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER : VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
    write_next(w, bit, type)->pBufferInfo = &w->buffers[bit];
}

static void image_write(const nbi_vulkan *v, const nbi_vulkan_lane *lane, writer *w, uint32_t bit, bool is_storage,
                        const nb_gpu_bindings *bindings) {
    nb_gpu_index index = bindings->images[bit].image;
    w->images[bit] =
        (VkDescriptorImageInfo){.sampler = is_storage ? VK_NULL_HANDLE : v->samplers[bindings->images[bit].sampler],
                                .imageView = v->images[index].view,
                                .imageLayout = nbi_vulkan_layout_in_step(v, lane, index)};
    VkDescriptorType type = is_storage ? VK_DESCRIPTOR_TYPE_STORAGE_IMAGE : VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER;
    write_next(w, NB_GPU_BUFFER_BINDING_COUNT + bit, type)->pImageInfo = &w->images[bit];
}

static void set_write(const nbi_vulkan *v, const nbi_vulkan_lane *lane, const nbi_vulkan_layout *layout,
                      VkDescriptorSet set, const nb_gpu_bindings *bindings) {
    writer w = {.set = set};
    for (uint32_t bit = 0; bit < NB_GPU_BUFFER_BINDING_COUNT; ++bit) {
        if (((layout->uniform_mask | layout->storage_mask) & 1u << bit) != 0)
            buffer_write(v, &w, bit, (layout->uniform_mask & 1u << bit) != 0, bindings);
    }
    for (uint32_t bit = 0; bit < NB_GPU_IMAGE_BINDING_COUNT; ++bit) {
        if (((layout->sampled_mask | layout->storage_image_mask) & 1u << bit) != 0)
            image_write(v, lane, &w, bit, (layout->storage_image_mask & 1u << bit) != 0, bindings);
    }
    v->vk.UpdateDescriptorSets(v->device, w.count, w.writes, 0, NULL);
}

// Whether the set that is bound is what a pipeline of this layout is to see.
static bool is_bound(const nbi_vulkan_lane *lane, const nbi_vulkan_layout *layout, const nb_gpu_bindings *b) {
    const nbi_vulkan_layout *had = &lane->set_layout;
    if (lane->set == VK_NULL_HANDLE || had->uniform_mask != layout->uniform_mask ||
        had->storage_mask != layout->storage_mask || had->sampled_mask != layout->sampled_mask ||
        had->storage_image_mask != layout->storage_image_mask)
        return false;
    uint32_t buffers = layout->uniform_mask | layout->storage_mask;
    uint32_t images = layout->sampled_mask | layout->storage_image_mask;
    const nb_gpu_bindings *a = &lane->bindings;
    for (uint32_t bit = 0; bit < NB_GPU_BUFFER_BINDING_COUNT; ++bit) {
        bool is_other = a->buffers[bit].buffer != b->buffers[bit].buffer ||
                        a->buffers[bit].offset != b->buffers[bit].offset ||
                        a->buffers[bit].size_bytes != b->buffers[bit].size_bytes;
        if ((buffers & 1u << bit) != 0 && is_other) return false;
    }
    for (uint32_t bit = 0; bit < NB_GPU_IMAGE_BINDING_COUNT; ++bit) {
        bool is_other =
            a->images[bit].image != b->images[bit].image || a->images[bit].sampler != b->images[bit].sampler;
        if ((images & 1u << bit) != 0 && is_other) return false;
    }
    return true;
}

nb_result nbi_vulkan_set_bindings(void *self, const nb_gpu_item *item, nb_gpu_index pipeline,
                                  const nb_gpu_bindings *bindings) {
    nbi_vulkan *v = (nbi_vulkan *)self;
    nbi_vulkan_lane *lane = &v->lanes[item->lane];
    const nbi_vulkan_pipeline *p = &v->pipelines[pipeline];
    const nbi_vulkan_layout *layout = &v->layouts[p->layout];
    uint32_t all = layout->uniform_mask | layout->storage_mask | layout->sampled_mask | layout->storage_image_mask;
    if (all == 0) return NB_OK;
    if (!is_bound(lane, layout, bindings)) {
        VkDescriptorSet set = VK_NULL_HANDLE;
        nb_result result = set_allocate(v, lane->shelf, layout->set, &set);
        if (result != NB_OK) return result;
        set_write(v, lane, layout, set, bindings);
        lane->set = set;
        lane->set_layout = *layout;
        lane->bindings = *bindings;
    }
    // Also where the set is the same: another pipeline may have come in between.
    VkPipelineBindPoint point = p->is_compute ? VK_PIPELINE_BIND_POINT_COMPUTE : VK_PIPELINE_BIND_POINT_GRAPHICS;
    v->vk.CmdBindDescriptorSets(lane->command, point, layout->pipeline, 0, 1, &lane->set, 0, NULL);
    return NB_OK;
}
