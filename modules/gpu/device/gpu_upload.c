// SPDX-License-Identifier: MIT
// Uploads: copies from the frame's memory before its passes.

#include "gpu.h"

// What is wrong with the moment and the span, or NB_OK.
static nb_result check(nb_gpu *gpu, const nb_gpu_span *span, nbi_gpu_kind kind, uint64_t to, const char *function) {
    const char *name = nbi_gpu_object_name(gpu, kind, to), *kind_name = nbi_gpu_kind_name(kind);
    if (gpu->frame_state != NBI_GPU_FRAME_BEGUN || !gpu->has_picture) return NB_EMPTY;
    uint32_t index = 0;
    bool is_ours = (span->buffer.value & NBI_GPU_MEMORY_BIT) != 0 &&
                   nbi_gpu_object_find(gpu, NBI_GPU_BUFFER, span->buffer.value, &index) != NULL;
    if (!is_ours)
        return NBI_GPU_MISTAKE(
            gpu, nbi_gpu_key(name, ""), NB_ITEM_GPU_ARGUMENT, NB_ERR_MISUSE, function,
            "upload to %s \"%s\": the span is of another frame; call nb_gpu_frame_alloc in the frame "
            "that uploads",
            kind_name, name);
    bool is_inside = span->size_bytes != 0 && span->offset <= gpu->desc.frame_bytes &&
                     span->size_bytes <= gpu->desc.frame_bytes - span->offset;
    if (!is_inside)
        return NBI_GPU_MISTAKE(gpu, nbi_gpu_key(name, ""), NB_ITEM_GPU_ARGUMENT, NB_ERR_RANGE, function,
                               "upload to %s \"%s\": the span of %llu bytes at %llu is empty, or reaches beyond the "
                               "memory of the frame; stay inside what nb_gpu_frame_alloc gave",
                               kind_name, name, nb_llu(span->size_bytes), nb_llu(span->offset));
    return gpu->upload_count < NB_GPU_UPLOAD_COUNT_MAX ? NB_OK : NB_FULL;
}

static nb_result refuse_stale(nb_gpu *gpu, nbi_gpu_kind kind, uint64_t handle, const char *function) {
    const char *name = nbi_gpu_object_name(gpu, kind, handle);
    return NBI_GPU_MISTAKE(gpu, nbi_gpu_key(name, ""), NB_ITEM_GPU_STALE, NB_ERR_STALE, function,
                           "upload to %s \"%s\" (handle 0x%llx), which does not live; upload before you destroy it",
                           nbi_gpu_kind_name(kind), name, nb_llu(handle));
}

static nb_result add(nb_gpu *gpu, nbi_gpu_object *to, nb_gpu_upload upload) {
    to->upload_picture = gpu->picture;
    gpu->uploads[gpu->upload_count++] = upload;
    return NB_OK;
}

nb_result nb_gpu_upload_buffer(nb_gpu *gpu, nb_gpu_span span, nb_gpu_buffer buffer, uint64_t offset) {
    if (gpu == NULL) return NB_FAIL_NULL("gpu");
    nb_result result = check(gpu, &span, NBI_GPU_BUFFER, buffer.value, __func__);
    if (result != NB_OK) return result;
    uint32_t index = 0;
    nbi_gpu_object *to = nbi_gpu_object_find(gpu, NBI_GPU_BUFFER, buffer.value, &index);
    if (to == NULL || to->role != NBI_GPU_USERS) return refuse_stale(gpu, NBI_GPU_BUFFER, buffer.value, __func__);
    const nb_gpu_buffer_desc *desc = &to->desc.buffer;
    if (desc->memory != NB_GPU_MEMORY_DEVICE)
        return NBI_GPU_REFUSE(gpu, to->name, NB_ERR_MISUSE,
                              "buffer \"%s\" is in memory for reading back; upload to one of NB_GPU_MEMORY_DEVICE",
                              to->name);
    bool is_inside = offset <= desc->size_bytes && span.size_bytes <= desc->size_bytes - offset;
    if (!is_inside || offset % 4 != 0)
        return NBI_GPU_REFUSE(
            gpu, to->name, NB_ERR_RANGE,
            "buffer \"%s\" of %llu bytes: %llu bytes at %llu are not inside, or not at a multiple of 4", to->name,
            nb_llu(desc->size_bytes), nb_llu(span.size_bytes), nb_llu(offset));
    return add(gpu, to,
               (nb_gpu_upload){.from = span.offset, .to = index, .to_offset = offset, .size_bytes = span.size_bytes});
}

nb_result nb_gpu_upload_image(nb_gpu *gpu, nb_gpu_span span, nb_gpu_image image, uint32_t layer) {
    if (gpu == NULL) return NB_FAIL_NULL("gpu");
    nb_result result = check(gpu, &span, NBI_GPU_IMAGE, image.value, __func__);
    if (result != NB_OK) return result;
    uint32_t index = 0;
    nbi_gpu_object *to = nbi_gpu_object_find(gpu, NBI_GPU_IMAGE, image.value, &index);
    if (to == NULL || to->role != NBI_GPU_USERS) return refuse_stale(gpu, NBI_GPU_IMAGE, image.value, __func__);
    const nb_gpu_image_desc *desc = &to->desc.image;
    if ((desc->access & NB_GPU_ACCESS_COPY_TO) == 0)
        return NBI_GPU_REFUSE(gpu, to->name, NB_ERR_MISUSE,
                              "image \"%s\" was made without NB_GPU_ACCESS_COPY_TO; add it to nb_gpu_image_desc.access",
                              to->name);
    uint64_t size_bytes = (uint64_t)desc->width * desc->height * nb_gpu_format_bytes(desc->format);
    if (layer >= desc->layer_count || span.size_bytes != size_bytes || span.offset % 16 != 0)
        return NBI_GPU_REFUSE(gpu, to->name, NB_ERR_RANGE,
                              "image \"%s\": %llu bytes at %llu for layer %u; it has %u layers of %llu bytes each, "
                              "and a span begins at a multiple of 16",
                              to->name, nb_llu(span.size_bytes), nb_llu(span.offset), (unsigned)layer,
                              (unsigned)desc->layer_count, nb_llu(size_bytes));
    return add(gpu, to,
               (nb_gpu_upload){
                   .from = span.offset, .is_image = true, .to = index, .layer = layer, .size_bytes = span.size_bytes});
}

void nbi_gpu_uploads_drop(nb_gpu *gpu, nbi_gpu_kind kind, uint32_t index) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < gpu->upload_count; ++i) {
        const nb_gpu_upload *upload = &gpu->uploads[i];
        bool is_to = upload->to == index && upload->is_image == (kind == NBI_GPU_IMAGE);
        if (!is_to) gpu->uploads[kept++] = *upload;
    }
    gpu->upload_count = kept;
}
