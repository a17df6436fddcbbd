// SPDX-License-Identifier: MIT
// From the graph's plan to objects of the device: imports are looked up, memory of the frame comes from a pool that is
// kept, and every bucket of every pass becomes an item to be recorded.

#include "gpu.h"

static nb_result refuse(nb_gpu *gpu, nb_result result, const nb_graph_plan_resource *resource, const char *why) {
    return NBI_GPU_MISTAKE(gpu, nbi_gpu_key(resource->name, why), NB_ITEM_GPU_IMPORT, result, gpu->caller,
                           "gpu: import \"%s\": %s", resource->name, why);
}

// --- imports ---

static bool is_like(const nbi_gpu_object *object, const nb_graph_plan_resource *resource) {
    if (resource->is_buffer) return true;
    const nb_gpu_image_desc *desc = &object->desc.image;
    return desc->format == resource->format && desc->width == resource->width && desc->height == resource->height;
}

static nb_result resolve_import(nb_gpu *gpu, uint32_t root) {
    const nb_graph_plan_resource *resource = &gpu->plan->resources[root];
    nbi_gpu_kind kind = resource->is_buffer ? NBI_GPU_BUFFER : NBI_GPU_IMAGE;
    uint64_t handle = resource->is_buffer ? resource->buffer.value : resource->image.value;
    if (handle == 0) return refuse(gpu, NB_ERR_MISUSE, resource, "imported without a buffer or image");
    uint32_t index = 0;
    nbi_gpu_object *object = nbi_gpu_object_find(gpu, kind, handle, &index);
    if (object == NULL) return refuse(gpu, NB_ERR_STALE, resource, "what was imported is not alive");
    if (!is_like(object, resource)) return refuse(gpu, NB_ERR_MISUSE, resource, "imported with another format or size");
    if (object->import_picture == gpu->picture) return refuse(gpu, NB_ERR_MISUSE, resource, "imported twice");
    object->import_picture = gpu->picture;
    object->import_root = root;
    gpu->resources[root] = index;
    return NB_OK;
}

// --- memory of the frame ---

// Buffers whose size changes a little with every frame are the same ones.
static uint64_t rounded(uint64_t size_bytes) {
    uint64_t size = 256;
    while (size < size_bytes) size *= 2;
    return size;
}

static bool is_fit(const nb_gpu *gpu, const nbi_gpu_transient *transient, const nb_graph_slot *slot) {
    if (!transient->is_used || transient->picture == gpu->picture || transient->is_buffer != slot->is_buffer)
        return false;
    if (slot->is_buffer)
        return gpu->tables[NBI_GPU_BUFFER].objects[transient->index].desc.buffer.size_bytes ==
               rounded(slot->size_bytes);
    const nb_gpu_image_desc *desc = &gpu->tables[NBI_GPU_IMAGE].objects[transient->index].desc.image;
    return desc->format == slot->format && desc->width == slot->width && desc->height == slot->height &&
           (desc->access & slot->access) == slot->access;
}

static nb_result make_transient(nb_gpu *gpu, nbi_gpu_transient *transient, const nb_graph_slot *slot) {
    nb_gpu_buffer_desc buffer = {.name = "graph", .size_bytes = rounded(slot->size_bytes)};
    nb_gpu_image_desc image = {.name = "graph",
                               .format = slot->format,
                               .width = slot->width,
                               .height = slot->height,
                               .layer_count = 1,
                               .access = slot->access};
    nb_result result = slot->is_buffer ? nbi_gpu_own_buffer(gpu, &buffer, &transient->index)
                                       : nbi_gpu_own_image(gpu, &image, &transient->index);
    if (result != NB_OK) return result;
    transient->is_used = true;
    transient->is_buffer = slot->is_buffer;
    return NB_OK;
}

// In the same order every frame, so the next place is the one.
static nb_result take_transient(nb_gpu *gpu, const nb_graph_slot *slot, uint32_t *index) {
    nbi_gpu_transient *found = NULL, *empty = NULL;
    for (uint32_t i = 0; i < gpu->transient_max && found == NULL; ++i) {
        nbi_gpu_transient *transient = &gpu->transients[(gpu->transient_cursor + i) % gpu->transient_max];
        if (is_fit(gpu, transient, slot)) found = transient;
        if (empty == NULL && !transient->is_used) empty = transient;
    }
    if (found == NULL && empty == NULL) return NB_ERR_MEMORY;
    if (found == NULL) {
        nb_result result = make_transient(gpu, empty, slot);
        if (result != NB_OK) return result;
        found = empty;
    }
    found->picture = gpu->picture;
    found->frame = gpu->stats.frame_count;
    gpu->transient_cursor = (uint32_t)(found - gpu->transients) + 1;
    *index = found->index;
    return NB_OK;
}

void nbi_gpu_transients_trim(nb_gpu *gpu) {
    for (uint32_t i = 0; i < gpu->transient_max; ++i) {
        nbi_gpu_transient *transient = &gpu->transients[i];
        bool is_idle = transient->is_used && gpu->stats.frame_count - transient->frame > NB_GPU_IDLE_FRAMES_MAX;
        nbi_gpu_kind kind = transient->is_buffer ? NBI_GPU_BUFFER : NBI_GPU_IMAGE;
        if (is_idle && nbi_gpu_object_retire(gpu, kind, transient->index) == NB_OK) transient->is_used = false;
    }
}

static nb_result take_slots(nb_gpu *gpu) {
    gpu->transient_cursor = 0;
    for (uint32_t i = 0; i < gpu->plan->slot_count; ++i) {
        nb_result result = take_transient(gpu, &gpu->plan->slots[i], &gpu->slot_objects[i]);
        if (result == NB_OK) continue;
        if (result != NB_ERR_LOST)
            NBI_GPU_FAILURE(
                gpu, (uint64_t)result, NB_ITEM_GPU_SUBMIT, result,
                "gpu: device \"%s\" has no memory for the %u resources of the frame graph: the picture is left out",
                gpu->name, (unsigned)gpu->plan->slot_count);
        return result;
    }
    return NB_OK;
}

// --- all of it ---

static nb_result resolve_resource(nb_gpu *gpu, uint32_t i) {
    const nb_graph_plan_resource *resource = &gpu->plan->resources[i];
    if (!resource->is_used) return NB_OK;
    uint32_t root = resource->root;
    if (resource->is_imported) {
        if (gpu->resources[root] == NBI_NONE_INDEX) {
            nb_result result = resolve_import(gpu, root);
            if (result != NB_OK) return result;
        }
        gpu->resources[i] = gpu->resources[root];
    } else if (resource->slot != NB_GRAPH_SLOT_NONE) {
        gpu->resources[i] = gpu->slot_objects[resource->slot];
    }
    return NB_OK;
}

// Names of the same memory hang together, from the root on.
static void link_versions(nb_gpu *gpu) {
    for (uint32_t i = 0; i < gpu->plan->resource_count; ++i) gpu->versions[i] = NBI_NONE_INDEX;
    for (uint32_t i = gpu->plan->resource_count; i > 0; --i) {
        uint32_t root = gpu->plan->resources[i - 1].root;
        if (root == i - 1) continue;
        gpu->versions[i - 1] = gpu->versions[root];
        gpu->versions[root] = i - 1;
    }
}

static nb_result list_items(nb_gpu *gpu) {
    gpu->item_count = 0;
    for (uint32_t i = 0; i < gpu->plan->step_count; ++i) {
        const nb_graph_step *step = &gpu->plan->steps[i];
        if (step->record == NULL) continue;
        if (step->bucket_count > gpu->limits.item_count_max - gpu->item_count) {
            return NBI_GPU_FAILURE(gpu, nbi_gpu_key(step->name, ""), NB_ITEM_GPU_FULL, NB_ERR_RANGE,
                                   "gpu: pass \"%s\" has no room: at most %u buckets of all passes; raise "
                                   "nb_gpu_desc.graph.pass_count_max",
                                   step->name, (unsigned)gpu->limits.item_count_max);
        }
        for (uint32_t bucket = 0; bucket < step->bucket_count; ++bucket) {
            uint32_t index = gpu->item_count++;
            gpu->items[index] = (nb_gpu_item){.step = i, .bucket = bucket, .index = index};
            gpu->recorded[index] = (nbi_gpu_recorded){.result = NB_OK};
        }
    }
    nbi_atomic_store_relaxed_u32(&gpu->claimed, 0);
    return NB_OK;
}

nb_result nbi_gpu_plan_resolve(nb_gpu *gpu) {
    nb_result result = take_slots(gpu);
    if (result != NB_OK) return result;
    for (uint32_t i = 0; i < gpu->plan->resource_count; ++i) gpu->resources[i] = NBI_NONE_INDEX;
    for (uint32_t i = 0; i < gpu->plan->resource_count; ++i) {
        result = resolve_resource(gpu, i);
        if (result != NB_OK) return result;
    }
    link_versions(gpu);
    return list_items(gpu);
}
