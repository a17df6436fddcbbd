// SPDX-License-Identifier: MIT
// Uploads: copies from the frame's memory before all passes. They run side by side where they write different places;
// where they write the same, a barrier keeps their order.

#include "vulkan.h"

static const nbi_vulkan_scope copy_writes = {VK_PIPELINE_STAGE_2_COPY_BIT, VK_ACCESS_2_TRANSFER_WRITE_BIT};

static void divide(nbi_vulkan *v, nbi_vulkan_batch *batch) {
    nbi_vulkan_batch_memory(v, batch, copy_writes, copy_writes);
    nbi_vulkan_batch_flush(v, batch);
    ++v->upload_batch;
}

static void buffer_copy(nbi_vulkan *v, nbi_vulkan_batch *batch, VkBuffer from, const nb_gpu_upload *upload) {
    nbi_vulkan_buffer *to = &v->buffers[upload->to];
    uint64_t begin = upload->to_offset, end = begin + upload->size_bytes;
    // The hull of what was written, not each place: a barrier too many is only slow.
    if (to->batch == v->upload_batch && begin < to->written_end && to->written_begin < end) divide(v, batch);
    bool is_first = to->batch != v->upload_batch;
    to->batch = v->upload_batch;
    to->written_begin = is_first || begin < to->written_begin ? begin : to->written_begin;
    to->written_end = is_first || end > to->written_end ? end : to->written_end;
    VkBufferCopy copy = {.srcOffset = upload->from, .dstOffset = begin, .size = upload->size_bytes};
    v->vk.CmdCopyBuffer(batch->command, from, to->handle, 1, &copy);
}

static void image_copy(nbi_vulkan *v, nbi_vulkan_batch *batch, VkBuffer from, const nb_gpu_upload *upload) {
    nbi_vulkan_image *to = &v->images[upload->to];
    uint32_t begin = upload->layer, end = begin + 1;
    if (to->batch == v->upload_batch && begin < to->written_end && to->written_begin < end) divide(v, batch);
    bool is_first = to->batch != v->upload_batch;
    to->batch = v->upload_batch;
    to->written_begin = is_first || begin < to->written_begin ? begin : to->written_begin;
    to->written_end = is_first || end > to->written_end ? end : to->written_end;
    VkBufferImageCopy copy = {
        .bufferOffset = upload->from,
        .imageSubresource = {.aspectMask = to->aspect, .baseArrayLayer = upload->layer, .layerCount = 1},
        .imageExtent = {to->width, to->height, 1}};
    v->vk.CmdCopyBufferToImage(batch->command, from, to->handle, VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL, 1, &copy);
}

// Every image that is uploaded to goes from its layout to the one for copies, or back.
static void images_move(nbi_vulkan *v, nbi_vulkan_batch *batch, const nb_gpu_submit *submit, bool is_back) {
    for (uint32_t i = 0; i < submit->upload_count; ++i) {
        if (!submit->uploads[i].is_image) continue;
        nbi_vulkan_image *image = nbi_vulkan_image_now(v, submit->uploads[i].to);
        VkImageLayout to = is_back ? image->layout : VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL;
        // An image with several uploads goes once.
        if (image->layout_now == to) continue;
        nbi_vulkan_batch_image(v, batch, image, is_back ? copy_writes : nbi_vulkan_scope_all, image->layout_now,
                               is_back ? nbi_vulkan_scope_all : copy_writes, to);
        image->layout_now = to;
    }
}

void nbi_vulkan_uploads_record(nbi_vulkan *v, VkCommandBuffer command, const nb_gpu_submit *submit) {
    if (submit->upload_count == 0) return;
    nbi_vulkan_batch batch;
    nbi_vulkan_batch_begin(&batch, command);
    VkBuffer from = v->buffers[v->slots[submit->slot].memory].handle;
    ++v->upload_batch;
    images_move(v, &batch, submit, false);
    nbi_vulkan_batch_flush(v, &batch);
    for (uint32_t i = 0; i < submit->upload_count; ++i) {
        const nb_gpu_upload *upload = &submit->uploads[i];
        if (upload->is_image)
            image_copy(v, &batch, from, upload);
        else
            buffer_copy(v, &batch, from, upload);
    }
    images_move(v, &batch, submit, true);
    nbi_vulkan_batch_memory(v, &batch, copy_writes, nbi_vulkan_scope_all);
    nbi_vulkan_batch_flush(v, &batch);
}
