// SPDX-License-Identifier: MIT
// A picture is handed over: uploads, then step by step transitions and what was recorded, in one primary command
// buffer. The states of objects are committed only when the queue has taken it.

#include "vulkan.h"

// --- states ---

nbi_vulkan_image *nbi_vulkan_image_now(nbi_vulkan *v, nb_gpu_index index) {
    nbi_vulkan_image *image = &v->images[index];
    if (image->stamp == v->submit_stamp) return image;
    image->stamp = v->submit_stamp;
    image->layout_now = image->layout;
    image->access = NB_GPU_ACCESS_NONE;
    return image;
}

nbi_vulkan_buffer *nbi_vulkan_buffer_now(nbi_vulkan *v, nb_gpu_index index) {
    nbi_vulkan_buffer *buffer = &v->buffers[index];
    if (buffer->stamp == v->submit_stamp) return buffer;
    buffer->stamp = v->submit_stamp;
    buffer->access = NB_GPU_ACCESS_NONE;
    return buffer;
}

static void states_commit(nbi_vulkan *v) {
    for (uint32_t i = 0; i < v->limits.image_count_max; ++i) {
        nbi_vulkan_image *image = &v->images[i];
        if (image->handle == VK_NULL_HANDLE || image->stamp != v->submit_stamp) continue;
        image->layout = image->layout_now;
        if (image->is_fresh) --v->fresh_count;
        image->is_fresh = false;
    }
}

// --- transitions ---

// Everything of the frames before is over and visible to this one. What is new gets the layout that it is known to
// have.
static void begin_barrier(nbi_vulkan *v, VkCommandBuffer command) {
    nbi_vulkan_batch batch;
    nbi_vulkan_batch_begin(&batch, command);
    nbi_vulkan_batch_memory(v, &batch, nbi_vulkan_scope_all, nbi_vulkan_scope_all);
    for (uint32_t i = 0; i < v->limits.image_count_max && v->fresh_count > 0; ++i) {
        if (!v->images[i].is_fresh) continue;
        const nbi_vulkan_image *image = nbi_vulkan_image_now(v, i);
        nbi_vulkan_batch_image(v, &batch, image, nbi_vulkan_scope_all, VK_IMAGE_LAYOUT_UNDEFINED, nbi_vulkan_scope_all,
                               image->layout);
    }
    nbi_vulkan_batch_flush(v, &batch);
}

static void image_transition(nbi_vulkan *v, nbi_vulkan_batch *batch, nb_gpu_index index, const nb_graph_transition *t) {
    nbi_vulkan_image *image = nbi_vulkan_image_now(v, index);
    nbi_vulkan_scope to = nbi_vulkan_scope_of(t->after);
    // Its memory may have been another resource's earlier in this frame: that use has to be over also where nothing is
    // kept of it.
    nbi_vulkan_scope from = nbi_vulkan_scope_of(t->before | image->access);
    if (from.stages == VK_PIPELINE_STAGE_2_NONE) from.stages = to.stages;
    bool is_kept = t->before != NB_GPU_ACCESS_NONE && !t->is_discarded;
    VkImageLayout layout = nbi_vulkan_layout_of(t->after);
    nbi_vulkan_batch_image(v, batch, image, from, is_kept ? image->layout_now : VK_IMAGE_LAYOUT_UNDEFINED, to, layout);
    image->layout_now = layout;
    image->access = t->after;
}

static void buffer_transition(nbi_vulkan *v, nbi_vulkan_batch *batch, nb_gpu_index index,
                              const nb_graph_transition *t) {
    nbi_vulkan_buffer *buffer = nbi_vulkan_buffer_now(v, index);
    nb_gpu_access before = t->before | buffer->access;
    buffer->access = t->after;
    if (before == NB_GPU_ACCESS_NONE) return;
    nbi_vulkan_batch_buffer(v, batch, buffer, nbi_vulkan_scope_of(before), nbi_vulkan_scope_of(t->after));
}

static void transitions(nbi_vulkan *v, VkCommandBuffer command, const nb_gpu_submit *submit, uint32_t first,
                        uint32_t count) {
    nbi_vulkan_batch batch;
    nbi_vulkan_batch_begin(&batch, command);
    for (uint32_t i = first; i < first + count; ++i) {
        const nb_graph_transition *t = &submit->plan->transitions[i];
        nb_gpu_index index = submit->resources[t->resource];
        // An import that no pass uses has no object, and stays as it was.
        if (index == UINT32_MAX) continue;
        if (submit->plan->resources[t->resource].is_buffer)
            buffer_transition(v, &batch, index, t);
        else
            image_transition(v, &batch, index, t);
    }
    nbi_vulkan_batch_flush(v, &batch);
}

// --- steps ---

static VkClearColorValue color_of(nb_gpu_format format, nb_gpu_clear clear) {
    VkClearColorValue color;
    for (uint32_t i = 0; i < 4; ++i) {
        if (format == NB_GPU_FORMAT_R32_UINT)
            color.uint32[i] = clear.value[i] > 0 ? (uint32_t)clear.value[i] : 0;
        else
            color.float32[i] = clear.value[i];
    }
    return color;
}

static VkRenderingAttachmentInfo attachment(nbi_vulkan *v, const nb_gpu_submit *submit,
                                            const nb_graph_attachment *from) {
    const nbi_vulkan_image *image = nbi_vulkan_image_now(v, submit->resources[from->resource]);
    bool is_written = (from->access & NB_GPU_ACCESS_WRITES) != 0;
    VkRenderingAttachmentInfo info = {.sType = VK_STRUCTURE_TYPE_RENDERING_ATTACHMENT_INFO,
                                      .imageView = image->view,
                                      .imageLayout = image->layout_now,
                                      .loadOp = from->is_cleared     ? VK_ATTACHMENT_LOAD_OP_CLEAR
                                                : from->is_discarded ? VK_ATTACHMENT_LOAD_OP_DONT_CARE
                                                                     : VK_ATTACHMENT_LOAD_OP_LOAD,
                                      .storeOp =
                                          is_written ? VK_ATTACHMENT_STORE_OP_STORE : VK_ATTACHMENT_STORE_OP_NONE};
    if (image->aspect == VK_IMAGE_ASPECT_DEPTH_BIT)
        info.clearValue.depthStencil.depth = from->clear.value[0];
    else
        info.clearValue.color = color_of(submit->plan->resources[from->resource].format, from->clear);
    return info;
}

static void rendering_begin(nbi_vulkan *v, VkCommandBuffer command, const nb_gpu_submit *submit,
                            const nb_graph_step *step, bool has_items) {
    VkRenderingAttachmentInfo colors[NB_GRAPH_COLOR_COUNT_MAX];
    for (uint32_t i = 0; i < step->color_count; ++i) colors[i] = attachment(v, submit, &step->colors[i]);
    bool has_depth = step->depth.access != NB_GPU_ACCESS_NONE;
    VkRenderingAttachmentInfo depth = {0};
    if (has_depth) depth = attachment(v, submit, &step->depth);
    VkRenderingInfo info = {.sType = VK_STRUCTURE_TYPE_RENDERING_INFO,
                            .flags = has_items ? VK_RENDERING_CONTENTS_SECONDARY_COMMAND_BUFFERS_BIT : 0,
                            .renderArea = {.extent = {step->width, step->height}},
                            .layerCount = 1,
                            .colorAttachmentCount = step->color_count,
                            .pColorAttachments = colors,
                            .pDepthAttachment = has_depth ? &depth : NULL};
    v->vk.CmdBeginRendering(command, &info);
}

static void timestamp(nbi_vulkan *v, VkCommandBuffer command, const nbi_vulkan_slot *slot, uint32_t query) {
    if (slot->queries == VK_NULL_HANDLE) return;
    v->vk.CmdWriteTimestamp2(command, VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT, slot->queries, query);
}

// The items of a step lie side by side, from *item on.
static void step_record(nbi_vulkan *v, VkCommandBuffer command, const nb_gpu_submit *submit, uint32_t index,
                        uint32_t *item) {
    const nb_graph_step *step = &submit->plan->steps[index];
    const nbi_vulkan_slot *slot = &v->slots[submit->slot];
    uint32_t first = *item;
    while (*item < submit->item_count && submit->items[*item].step == index) ++*item;
    uint32_t count = *item - first;
    transitions(v, command, submit, step->transition_first, step->transition_count);
    timestamp(v, command, slot, 2 * index);
    bool draws = step->kind == NB_GPU_PASS_RENDER && step->width > 0;
    if (draws) rendering_begin(v, command, submit, step, count > 0);
    if (count > 0) v->vk.CmdExecuteCommands(command, count, &slot->items[first]);
    if (draws) v->vk.CmdEndRendering(command);
    timestamp(v, command, slot, 2 * index + 1);
}

// What the CPU reads back is visible to it when the timeline gets there.
static void end_barrier(nbi_vulkan *v, VkCommandBuffer command) {
    nbi_vulkan_batch batch;
    nbi_vulkan_batch_begin(&batch, command);
    nbi_vulkan_scope host = {VK_PIPELINE_STAGE_2_HOST_BIT, VK_ACCESS_2_HOST_READ_BIT};
    nbi_vulkan_batch_memory(v, &batch, nbi_vulkan_scope_all, host);
    nbi_vulkan_batch_flush(v, &batch);
}

static nb_result primary_record(nbi_vulkan *v, const nb_gpu_submit *submit) {
    nbi_vulkan_slot *slot = &v->slots[submit->slot];
    const nb_graph_plan *plan = submit->plan;
    VkResult result = v->vk.ResetCommandPool(v->device, slot->pool, 0);
    if (result != VK_SUCCESS) return nbi_vulkan_fail(v, result, "vkResetCommandPool");
    VkCommandBufferBeginInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                     .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT};
    result = v->vk.BeginCommandBuffer(slot->primary, &info);
    if (result != VK_SUCCESS) return nbi_vulkan_fail(v, result, "vkBeginCommandBuffer");
    if (slot->queries != VK_NULL_HANDLE && plan->step_count > 0)
        v->vk.CmdResetQueryPool(slot->primary, slot->queries, 0, 2 * plan->step_count);
    begin_barrier(v, slot->primary);
    nbi_vulkan_uploads_record(v, slot->primary, submit);
    uint32_t item = 0;
    for (uint32_t i = 0; i < plan->step_count; ++i) step_record(v, slot->primary, submit, i, &item);
    transitions(v, slot->primary, submit, plan->final_first, plan->final_count);
    end_barrier(v, slot->primary);
    result = v->vk.EndCommandBuffer(slot->primary);
    return result == VK_SUCCESS ? NB_OK : nbi_vulkan_fail(v, result, "vkEndCommandBuffer");
}

// --- the queue ---

static VkSemaphoreSubmitInfo semaphore_info(VkSemaphore semaphore, uint64_t value) {
    return (VkSemaphoreSubmitInfo){.sType = VK_STRUCTURE_TYPE_SEMAPHORE_SUBMIT_INFO,
                                   .semaphore = semaphore,
                                   .value = value,
                                   .stageMask = VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT};
}

static VkResult queue_submit(nbi_vulkan *v, const nb_gpu_submit *submit, bool is_shown) {
    const nbi_vulkan_surface *surface = &v->surface;
    VkCommandBufferSubmitInfo command = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_SUBMIT_INFO,
                                         .commandBuffer = v->slots[submit->slot].primary};
    VkSemaphoreSubmitInfo got = semaphore_info(is_shown ? surface->got[surface->got_now] : VK_NULL_HANDLE, 0);
    VkSemaphoreSubmitInfo done[2] = {semaphore_info(v->timeline, submit->value),
                                     semaphore_info(is_shown ? surface->drawn[surface->image_now] : VK_NULL_HANDLE, 0)};
    VkSubmitInfo2 info = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO_2,
                          .waitSemaphoreInfoCount = is_shown ? 1 : 0,
                          .pWaitSemaphoreInfos = &got,
                          .commandBufferInfoCount = 1,
                          .pCommandBufferInfos = &command,
                          .signalSemaphoreInfoCount = is_shown ? 2 : 1,
                          .pSignalSemaphoreInfos = done};
    return v->vk.QueueSubmit2(v->queue, 1, &info, VK_NULL_HANDLE);
}

nb_result nbi_vulkan_submit(void *self, const nb_gpu_submit *submit) {
    nbi_vulkan *v = (nbi_vulkan *)self;
    if (nbi_vulkan_is_lost(v)) return NB_ERR_LOST;
    ++v->submit_stamp;
    nb_result recorded = primary_record(v, submit);
    if (recorded != NB_OK) return recorded;
    bool is_shown = submit->is_shown && v->surface.is_acquired;
    VkResult result = queue_submit(v, submit, is_shown);
    if (result != VK_SUCCESS) return nbi_vulkan_fail(v, result, "vkQueueSubmit2");
    states_commit(v);
    v->slots[submit->slot].value = submit->value;
    v->slots[submit->slot].step_count = submit->plan->step_count;
    if (is_shown) {
        v->surface.got_values[v->surface.got_now] = submit->value;
        v->surface.is_acquired = false;
        v->surface.is_drawn = true;
    }
    return NB_OK;
}
