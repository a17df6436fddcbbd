// SPDX-License-Identifier: MIT
// Commands: each is checked against the pass that it is in, then handed to the backend. What is wrong is left out,
// counted, and reported with the names of the pass and the resource.

#include "../graph/graph.h"
#include "command.h"

// For hashes: which command it was.
enum { OP_PIPELINE = 1, OP_BUFFER, OP_IMAGE, OP_INDICES, OP_PUSH, OP_VIEWPORT, OP_SCISSOR, OP_DRAW, OP_COUNT };
enum { OP_DRAW_INDEXED = OP_COUNT, OP_DRAW_INDIRECT, OP_DISPATCH, OP_COPY, OP_COPY_IMAGE };

#define BUFFER_ACCESS (NB_GPU_ACCESS_UNIFORM | NB_GPU_ACCESS_STORAGE | NB_GPU_ACCESS_STORAGE_READ)
#define IMAGE_ACCESS (NB_GPU_ACCESS_SAMPLED | NB_GPU_ACCESS_STORAGE | NB_GPU_ACCESS_STORAGE_READ)
#define STORAGE_ACCESS (NB_GPU_ACCESS_STORAGE | NB_GPU_ACCESS_STORAGE_READ)

void nbi_command_begin(nb_gpu_command *command, nb_gpu *gpu, const nb_gpu_item *item, const nb_graph_step *step) {
    *command = (nb_gpu_command){.gpu = gpu, .item = item, .step = step, .is_dirty = true};
    command->hash = nbi_gpu_mix(item->step, item->bucket);
}

static nb_result refuse(nb_gpu_command *command, const char *function, nb_result result, const char *resource,
                        const char *why) {
    nb_gpu *gpu = command->gpu;
    nbi_atomic_fetch_add_relaxed_u64(&gpu->misuse_count, 1);
    uint64_t object = nbi_gpu_key(command->step->name, resource) ^ nbi_gpu_key(why, "");
    return NBI_GPU_MISTAKE(gpu, object, NB_ITEM_GPU_COMMAND, result, function, "pass %s, %s: %s", command->step->name,
                           resource, why);
}

#define REFUSE(command, result, resource, why) refuse((command), __func__, (result), (resource), (why))

// A handle without an object; `otherwise` is what reports call one whose name is not known any more.
static nb_result refuse_stale(nb_gpu_command *command, const char *function, nbi_gpu_kind kind, uint64_t handle,
                              const char *otherwise) {
    const char *name = nbi_gpu_object_name(command->gpu, kind, handle);
    return refuse(command, function, NB_ERR_STALE, strcmp(name, "unknown") != 0 ? name : otherwise,
                  "it does not live; create it before the frame, and destroy it after its last use");
}

static void mix(nb_gpu_command *command, uint64_t op, uint64_t word) {
    command->hash = nbi_gpu_mix(command->hash, op << 56 ^ word);
}

static bool is_rendering(const nb_gpu_command *command) { return command->step->kind == NB_GPU_PASS_RENDER; }

// --- what a handle may be used for ---

// Something found for a command.
typedef struct target {
    nb_gpu_index index;
    nb_gpu_access declared;
    const char *name;
    uint64_t identity;   // for hashes; the same in every run
    bool is_memory;      // of the frame: where in it depends on who came first
    uint64_t size_bytes; // of a buffer
    nb_gpu_memory memory;
} target;

// All names that the graph has for it count.
static nb_gpu_access declared_of(const nb_gpu_command *command, uint32_t root) {
    const nb_gpu *gpu = command->gpu;
    nb_gpu_access declared = 0;
    for (uint32_t i = root; i != NBI_NONE_INDEX; i = gpu->versions[i])
        declared |= nbi_graph_declared_at(gpu->graph, command->step->pass, i);
    return declared;
}

static nb_result check_declared(nb_gpu_command *command, const char *function, const target *to, nb_gpu_access wanted) {
    if ((to->declared & wanted) != 0) return NB_OK;
    return refuse(command, function, NB_ERR_PERMISSION, to->name,
                  "the pass has not declared this use; call nb_graph_use for it");
}

static nb_result find_buffer(nb_gpu_command *command, const char *function, nb_gpu_buffer buffer, nb_gpu_access wanted,
                             target *to) {
    const nb_gpu *gpu = command->gpu;
    const nbi_gpu_object *object = nbi_gpu_object_find(gpu, NBI_GPU_BUFFER, buffer.value, &to->index);
    if (object == NULL) return refuse_stale(command, function, NBI_GPU_BUFFER, buffer.value, "a buffer");
    bool is_imported = object->import_picture == gpu->picture;
    to->is_memory = object->role == NBI_GPU_MEMORY;
    to->size_bytes = object->desc.buffer.size_bytes;
    to->name = is_imported ? gpu->plan->resources[object->import_root].name : object->name;
    to->identity = object->role == NBI_GPU_USERS ? object->serial : 0;
    to->declared = is_imported ? declared_of(command, object->import_root) : NB_GPU_ACCESS_ALL;
    if (to->is_memory) to->declared &= ~NB_GPU_ACCESS_WRITES;
    if (object->desc.buffer.memory == NB_GPU_MEMORY_READBACK) to->declared &= NB_GPU_ACCESS_COPY_TO;
    return check_declared(command, function, to, wanted);
}

static nb_result find_image(nb_gpu_command *command, const char *function, nb_gpu_image image, nb_gpu_access wanted,
                            target *to) {
    const nb_gpu *gpu = command->gpu;
    const nbi_gpu_object *object = nbi_gpu_object_find(gpu, NBI_GPU_IMAGE, image.value, &to->index);
    if (object == NULL) return refuse_stale(command, function, NBI_GPU_IMAGE, image.value, "an image");
    bool is_imported = object->import_picture == gpu->picture;
    to->name = is_imported ? gpu->plan->resources[object->import_root].name : object->name;
    to->identity = object->serial;
    // What is not in the graph is changed by uploads alone.
    to->declared =
        is_imported ? declared_of(command, object->import_root) : object->desc.image.access & NB_GPU_ACCESS_SAMPLED;
    return check_declared(command, function, to, wanted);
}

static nb_result find_resource(nb_gpu_command *command, const char *function, nb_graph_resource resource,
                               bool is_buffer, nb_gpu_access wanted, target *to) {
    const nb_gpu *gpu = command->gpu;
    uint32_t index = 0;
    if (nb_graph_resource_index(gpu->graph, resource, &index) != NB_OK)
        return refuse(command, function, NB_ERR_STALE, "a resource",
                      "it is not of this frame's graph; add or find it in each frame");
    const nb_graph_plan_resource *found = &gpu->plan->resources[index];
    to->name = found->name;
    to->index = gpu->resources[index];
    to->identity = index + 1;
    if (found->is_buffer != is_buffer)
        return refuse(command, function, NB_ERR_RANGE, to->name,
                      is_buffer ? "it is an image; bind a buffer here" : "it is a buffer; bind an image here");
    to->declared = nbi_graph_declared_at(gpu->graph, command->step->pass, index);
    nb_result result = check_declared(command, function, to, wanted);
    if (result != NB_OK || !is_buffer) return result;
    // What lives within the frame may have got more than it asked for.
    const nb_gpu_buffer_desc *desc = &gpu->tables[NBI_GPU_BUFFER].objects[to->index].desc.buffer;
    to->size_bytes = found->is_imported ? desc->size_bytes : found->size_bytes;
    return NB_OK;
}

// --- state ---

static bool has_formats(const nb_gpu_command *command, const nb_gpu_pipeline_desc *desc) {
    const nb_graph_step *step = command->step;
    const nb_graph_plan_resource *resources = command->gpu->plan->resources;
    if (desc->color_count != step->color_count) return false;
    for (uint32_t i = 0; i < desc->color_count; ++i) {
        if (desc->colors[i] != resources[step->colors[i].resource].format) return false;
    }
    bool has_depth = step->depth.access != 0;
    nb_gpu_format depth = has_depth ? resources[step->depth.resource].format : NB_GPU_FORMAT_NONE;
    bool writes = desc->depth == NB_GPU_DEPTH_TEST_WRITE;
    return desc->depth_format == depth && (!writes || (step->depth.access & NB_GPU_ACCESS_DEPTH) != 0);
}

nb_result nb_gpu_set_pipeline(nb_gpu_command *command, nb_gpu_pipeline pipeline) {
    if (command == NULL) return NB_FAIL_NULL("command");
    uint32_t index = 0;
    const nb_gpu *gpu = command->gpu;
    const nbi_gpu_object *object = nbi_gpu_object_find(gpu, NBI_GPU_PIPELINE, pipeline.value, &index);
    command->pipeline = NULL; // what follows is not drawn with another one
    command->has_push = false;
    if (object == NULL) return refuse_stale(command, __func__, NBI_GPU_PIPELINE, pipeline.value, "a pipeline");
    const nb_gpu_pipeline_desc *desc = &object->desc.pipeline;
    bool is_compute = desc->compute.size_bytes != 0;
    if (is_compute == is_rendering(command))
        return REFUSE(command, NB_ERR_MISUSE, object->name,
                      is_compute ? "it computes; set it in a compute pass" : "it draws; set it in a render pass");
    if (!is_compute && !has_formats(command, desc))
        return REFUSE(command, NB_ERR_MISUSE, object->name,
                      "it was made for other attachments; give nb_gpu_pipeline_desc the formats of the pass");
    command->pipeline = desc;
    command->pipeline_index = index;
    command->is_dirty = true;
    mix(command, OP_PIPELINE, object->serial);
    gpu->backend->set_pipeline(gpu->self, command->item, index);
    return NB_OK;
}

static nb_result bind_buffer(nb_gpu_command *command, const char *function, uint32_t binding, const target *to,
                             uint64_t offset, uint64_t size_bytes) {
    if (size_bytes == 0 && offset < to->size_bytes) size_bytes = to->size_bytes - offset;
    bool is_inside = size_bytes != 0 && offset < to->size_bytes && size_bytes <= to->size_bytes - offset;
    if (!is_inside || offset % NB_GPU_OFFSET_ALIGNMENT != 0)
        return refuse(command, function, NB_ERR_RANGE, to->name,
                      "the part is empty, outside of the buffer, or not at a multiple of 256 bytes");
    nb_gpu_bindings *bindings = &command->bindings;
    bindings->buffer_mask |= 1u << binding;
    bindings->buffers[binding].buffer = to->index;
    bindings->buffers[binding].offset = offset;
    bindings->buffers[binding].size_bytes = size_bytes;
    command->buffers[binding] = (nbi_command_binding){to->declared, to->name};
    command->is_dirty = true;
    mix(command, OP_BUFFER, binding);
    mix(command, to->identity, to->is_memory ? size_bytes : offset ^ size_bytes << 32);
    return NB_OK;
}

nb_result nb_gpu_set_buffer(nb_gpu_command *command, uint32_t binding, nb_gpu_buffer buffer, uint64_t offset,
                            uint64_t size_bytes) {
    if (command == NULL) return NB_FAIL_NULL("command");
    if (binding >= NB_GPU_BUFFER_BINDING_COUNT)
        return REFUSE(command, NB_ERR_RANGE, "a buffer", "no such binding; buffers have 0 to 7");
    target to = {0};
    command->bindings.buffer_mask &= ~(1u << binding); // what was refused is not drawn with what was there
    nb_result result = find_buffer(command, __func__, buffer, BUFFER_ACCESS, &to);
    return result == NB_OK ? bind_buffer(command, __func__, binding, &to, offset, size_bytes) : result;
}

nb_result nb_gpu_set_span(nb_gpu_command *command, uint32_t binding, nb_gpu_span span) {
    if (command == NULL) return NB_FAIL_NULL("command");
    if (binding >= NB_GPU_BUFFER_BINDING_COUNT)
        return REFUSE(command, NB_ERR_RANGE, "a span", "no such binding; buffers have 0 to 7");
    target to = {0};
    command->bindings.buffer_mask &= ~(1u << binding);
    bool is_span = (span.buffer.value & NBI_GPU_MEMORY_BIT) != 0;
    if (!is_span)
        return REFUSE(command, NB_ERR_STALE, "a span", "it is no memory of a frame; take one with nb_gpu_frame_alloc");
    nb_result result = find_buffer(command, __func__, span.buffer, BUFFER_ACCESS, &to);
    if (result == NB_OK && span.size_bytes == 0) return REFUSE(command, NB_ERR_RANGE, "a span", "it has no bytes");
    return result == NB_OK ? bind_buffer(command, __func__, binding, &to, span.offset, span.size_bytes) : result;
}

static nb_result bind_image(nb_gpu_command *command, const char *function, uint32_t binding, const target *to,
                            nb_gpu_sampler sampler) {
    if (sampler < 0 || sampler >= NB_GPU_SAMPLER_COUNT)
        return refuse(command, function, NB_ERR_RANGE, to->name, "no such sampler; choose an nb_gpu_sampler");
    nb_gpu_bindings *bindings = &command->bindings;
    bindings->image_mask |= 1u << binding;
    bindings->images[binding].image = to->index;
    bindings->images[binding].sampler = sampler;
    command->images[binding] = (nbi_command_binding){to->declared, to->name};
    command->is_dirty = true;
    mix(command, OP_IMAGE, binding | (uint64_t)sampler << 8 | to->identity << 16);
    return NB_OK;
}

static bool is_image_binding(uint32_t binding) {
    return binding >= NB_GPU_BUFFER_BINDING_COUNT && binding < NB_GPU_BUFFER_BINDING_COUNT + NB_GPU_IMAGE_BINDING_COUNT;
}

nb_result nb_gpu_set_image(nb_gpu_command *command, uint32_t binding, nb_gpu_image image, nb_gpu_sampler sampler) {
    if (command == NULL) return NB_FAIL_NULL("command");
    if (!is_image_binding(binding))
        return REFUSE(command, NB_ERR_RANGE, "an image", "no such binding; images have 8 to 15");
    target to = {0};
    binding -= NB_GPU_BUFFER_BINDING_COUNT;
    command->bindings.image_mask &= ~(1u << binding);
    nb_result result = find_image(command, __func__, image, IMAGE_ACCESS, &to);
    return result == NB_OK ? bind_image(command, __func__, binding, &to, sampler) : result;
}

nb_result nb_gpu_set_resource(nb_gpu_command *command, uint32_t binding, nb_graph_resource resource,
                              nb_gpu_sampler sampler) {
    if (command == NULL) return NB_FAIL_NULL("command");
    bool is_buffer = binding < NB_GPU_BUFFER_BINDING_COUNT;
    if (!is_buffer && !is_image_binding(binding))
        return REFUSE(command, NB_ERR_RANGE, "a resource", "no such binding; there are 0 to 15");
    target to = {0};
    if (is_buffer) {
        command->bindings.buffer_mask &= ~(1u << binding);
        nb_result result = find_resource(command, __func__, resource, true, BUFFER_ACCESS, &to);
        return result == NB_OK ? bind_buffer(command, __func__, binding, &to, 0, 0) : result;
    }
    binding -= NB_GPU_BUFFER_BINDING_COUNT;
    command->bindings.image_mask &= ~(1u << binding);
    nb_result result = find_resource(command, __func__, resource, false, IMAGE_ACCESS, &to);
    return result == NB_OK ? bind_image(command, __func__, binding, &to, sampler) : result;
}

nb_result nb_gpu_set_indices(nb_gpu_command *command, nb_gpu_buffer buffer, uint64_t offset) {
    if (command == NULL) return NB_FAIL_NULL("command");
    target to = {0};
    command->has_indices = false;
    nb_result result = find_buffer(command, __func__, buffer, NB_GPU_ACCESS_INDEX, &to);
    if (result != NB_OK) return result;
    if (offset % 4 != 0 || offset >= to.size_bytes)
        return REFUSE(command, NB_ERR_RANGE, to.name, "the offset is outside of the buffer, or not a multiple of 4");
    command->has_indices = true;
    command->index_count = (to.size_bytes - offset) / 4;
    mix(command, OP_INDICES, to.identity ^ (to.is_memory ? 0 : offset << 24));
    command->gpu->backend->set_indices(command->gpu->self, command->item, to.index, offset);
    return NB_OK;
}

nb_result nb_gpu_push(nb_gpu_command *command, const void *bytes, size_t size_bytes) {
    if (command == NULL) return NB_FAIL_NULL("command");
    if (bytes == NULL || command->pipeline == NULL)
        return REFUSE(command, NB_ERR_MISUSE, "constants",
                      "no pipeline is set, or bytes is NULL; call nb_gpu_set_pipeline first");
    if (size_bytes != command->pipeline->push_bytes || size_bytes == 0)
        return REFUSE(command, NB_ERR_RANGE, "constants",
                      "the pipeline has another number of bytes; pass nb_gpu_pipeline_desc.push_bytes");
    const unsigned char *from = bytes;
    mix(command, OP_PUSH, size_bytes);
    for (size_t i = 0; i < size_bytes; i += 4) {
        uint32_t word =
            (uint32_t)from[i] | (uint32_t)from[i + 1] << 8 | (uint32_t)from[i + 2] << 16 | (uint32_t)from[i + 3] << 24;
        command->hash = nbi_gpu_mix(command->hash, word);
    }
    command->has_push = true;
    command->gpu->backend->push(command->gpu->self, command->item, command->pipeline_index, bytes, size_bytes);
    return NB_OK;
}

static nb_result check_rect(nb_gpu_command *command, const char *function, nb_gpu_rect rect) {
    const nb_graph_step *step = command->step;
    if (!is_rendering(command))
        return refuse(command, function, NB_ERR_MISUSE, "a rectangle", "the pass computes; set it in a render pass");
    bool is_inside = rect.x >= 0 && rect.y >= 0 && rect.width != 0 && rect.height != 0 &&
                     (uint64_t)rect.x + rect.width <= step->width && (uint64_t)rect.y + rect.height <= step->height;
    return is_inside ? NB_OK
                     : refuse(command, function, NB_ERR_RANGE, "a rectangle",
                              "it is empty, or not inside of the attachments");
}

static void mix_rect(nb_gpu_command *command, uint64_t op, nb_gpu_rect rect) {
    mix(command, op, (uint64_t)(uint32_t)rect.x | (uint64_t)(uint32_t)rect.y << 24);
    command->hash = nbi_gpu_mix(command->hash, rect.width | (uint64_t)rect.height << 32);
}

nb_result nb_gpu_set_viewport(nb_gpu_command *command, nb_gpu_rect rect) {
    if (command == NULL) return NB_FAIL_NULL("command");
    nb_result result = check_rect(command, __func__, rect);
    if (result != NB_OK) return result;
    mix_rect(command, OP_VIEWPORT, rect);
    command->gpu->backend->set_viewport(command->gpu->self, command->item, rect);
    return NB_OK;
}

nb_result nb_gpu_set_scissor(nb_gpu_command *command, nb_gpu_rect rect) {
    if (command == NULL) return NB_FAIL_NULL("command");
    nb_result result = check_rect(command, __func__, rect);
    if (result != NB_OK) return result;
    mix_rect(command, OP_SCISSOR, rect);
    command->gpu->backend->set_scissor(command->gpu->self, command->item, rect);
    return NB_OK;
}

// --- drawing ---

static nb_result check_bindings(nb_gpu_command *command, const char *function, uint32_t mask,
                                const nbi_command_binding *bindings, nb_gpu_access wanted) {
    for (uint32_t i = 0; mask >> i != 0; ++i) {
        if ((mask >> i & 1) == 0 || (bindings[i].declared & wanted) != 0) continue;
        return refuse(command, function, NB_ERR_PERMISSION, bindings[i].name,
                      "the pass declared another use than the pipeline has; call nb_graph_use for that");
    }
    return NB_OK;
}

// Looks after all that was bound since the last draw.
static nb_result flush(nb_gpu_command *command, const char *function) {
    const nb_gpu_pipeline_desc *desc = command->pipeline;
    nb_gpu_bindings *bindings = &command->bindings;
    uint32_t buffers = desc->uniform_mask | desc->storage_mask, images = desc->sampled_mask | desc->storage_image_mask;
    if ((buffers & ~bindings->buffer_mask) != 0 || (images & ~bindings->image_mask) != 0)
        return refuse(command, function, NB_ERR_MISUSE, "bindings",
                      "one that the pipeline has is missing; set all of its masks before you draw");
    nb_result result = check_bindings(command, function, desc->uniform_mask, command->buffers, NB_GPU_ACCESS_UNIFORM);
    if (result == NB_OK)
        result = check_bindings(command, function, desc->storage_mask, command->buffers, STORAGE_ACCESS);
    if (result == NB_OK)
        result = check_bindings(command, function, desc->sampled_mask, command->images, NB_GPU_ACCESS_SAMPLED);
    if (result == NB_OK)
        result = check_bindings(command, function, desc->storage_image_mask, command->images, STORAGE_ACCESS);
    if (result != NB_OK) return result;
    for (uint32_t i = 0; i < NB_GPU_IMAGE_BINDING_COUNT; ++i)
        bindings->images[i].is_storage = (desc->storage_image_mask >> i & 1) != 0;
    nb_gpu *gpu = command->gpu;
    result = gpu->backend->set_bindings(gpu->self, command->item, command->pipeline_index, bindings);
    // Without it the picture would be another one: it is left out.
    if (result != NB_OK) command->result = result;
    command->is_dirty = result != NB_OK;
    return result;
}

static nb_result prepare(nb_gpu_command *command, const char *function, bool is_drawing) {
    if (is_drawing != is_rendering(command))
        return refuse(command, function, NB_ERR_MISUSE, "the pass",
                      is_drawing ? "it computes; draw in a render pass" : "it renders; dispatch in a compute pass");
    if (command->pipeline == NULL)
        return refuse(command, function, NB_ERR_MISUSE, "a pipeline", "none is set; call nb_gpu_set_pipeline first");
    if (command->pipeline->push_bytes != 0 && !command->has_push)
        return refuse(command, function, NB_ERR_MISUSE, "constants",
                      "none since the pipeline was set; call nb_gpu_push before you draw");
    return command->is_dirty ? flush(command, function) : NB_OK;
}

nb_result nb_gpu_draw(nb_gpu_command *command, uint32_t vertex_count, uint32_t instance_count, uint32_t first_vertex,
                      uint32_t first_instance) {
    if (command == NULL) return NB_FAIL_NULL("command");
    nb_result result = prepare(command, __func__, true);
    if (result != NB_OK) return result;
    nb_gpu_draw_args args = {vertex_count, instance_count, first_vertex, first_instance};
    mix(command, OP_DRAW, vertex_count | (uint64_t)instance_count << 32);
    command->hash = nbi_gpu_mix(command->hash, first_vertex | (uint64_t)first_instance << 32);
    ++command->draw_count;
    command->gpu->backend->draw(command->gpu->self, command->item, &args);
    return NB_OK;
}

nb_result nb_gpu_draw_indexed(nb_gpu_command *command, uint32_t index_count, uint32_t instance_count,
                              uint32_t first_index, int32_t vertex_offset, uint32_t first_instance) {
    if (command == NULL) return NB_FAIL_NULL("command");
    nb_result result = prepare(command, __func__, true);
    if (result != NB_OK) return result;
    if (!command->has_indices)
        return REFUSE(command, NB_ERR_MISUSE, "indices", "none are set; call nb_gpu_set_indices first");
    if ((uint64_t)first_index + index_count > command->index_count)
        return REFUSE(command, NB_ERR_RANGE, "indices", "the index buffer has fewer than the draw asks for");
    mix(command, OP_DRAW_INDEXED, index_count | (uint64_t)instance_count << 32);
    command->hash = nbi_gpu_mix(command->hash, first_index | (uint64_t)(uint32_t)vertex_offset << 32);
    command->hash = nbi_gpu_mix(command->hash, first_instance);
    ++command->draw_count;
    command->gpu->backend->draw_indexed(command->gpu->self, command->item, index_count, instance_count, first_index,
                                        vertex_offset, first_instance);
    return NB_OK;
}

nb_result nb_gpu_draw_indirect(nb_gpu_command *command, nb_gpu_buffer buffer, uint64_t offset, uint32_t draw_count) {
    if (command == NULL) return NB_FAIL_NULL("command");
    nb_result result = prepare(command, __func__, true);
    if (result != NB_OK) return result;
    target to = {0};
    result = find_buffer(command, __func__, buffer, NB_GPU_ACCESS_INDIRECT, &to);
    if (result != NB_OK) return result;
    uint64_t size_bytes = (uint64_t)draw_count * sizeof(nb_gpu_draw_args);
    bool is_inside = offset % 4 == 0 && offset <= to.size_bytes && size_bytes <= to.size_bytes - offset;
    if (!is_inside)
        return REFUSE(command, NB_ERR_RANGE, to.name, "the draws are outside of it, or not at a multiple of 4 bytes");
    mix(command, OP_DRAW_INDIRECT, draw_count);
    command->hash = nbi_gpu_mix(command->hash, to.identity ^ (to.is_memory ? 0 : offset << 24));
    command->draw_count += draw_count;
    command->gpu->backend->draw_indirect(command->gpu->self, command->item, to.index, offset, draw_count);
    return NB_OK;
}

nb_result nb_gpu_dispatch(nb_gpu_command *command, uint32_t x, uint32_t y, uint32_t z) {
    if (command == NULL) return NB_FAIL_NULL("command");
    if (x > NB_GPU_GROUP_COUNT_MAX || y > NB_GPU_GROUP_COUNT_MAX || z > NB_GPU_GROUP_COUNT_MAX)
        return REFUSE(command, NB_ERR_RANGE, "groups", "more than NB_GPU_GROUP_COUNT_MAX in one direction");
    nb_result result = prepare(command, __func__, false);
    if (result != NB_OK) return result;
    mix(command, OP_DISPATCH, x | (uint64_t)y << 16 | (uint64_t)z << 32);
    ++command->draw_count;
    command->gpu->backend->dispatch(command->gpu->self, command->item, x, y, z);
    return NB_OK;
}

// --- copying ---

static bool has_part(const target *to, uint64_t offset, uint64_t size_bytes) {
    return offset % 4 == 0 && offset <= to->size_bytes && size_bytes <= to->size_bytes - offset;
}

nb_result nb_gpu_copy_buffer(nb_gpu_command *command, nb_gpu_buffer from, uint64_t from_offset, nb_gpu_buffer to,
                             uint64_t to_offset, uint64_t size_bytes) {
    if (command == NULL) return NB_FAIL_NULL("command");
    if (is_rendering(command))
        return REFUSE(command, NB_ERR_MISUSE, "a copy", "the pass renders; copy in a compute pass");
    target source = {0}, goal = {0};
    nb_result result = find_buffer(command, __func__, from, NB_GPU_ACCESS_COPY_FROM, &source);
    if (result == NB_OK) result = find_buffer(command, __func__, to, NB_GPU_ACCESS_COPY_TO, &goal);
    if (result != NB_OK) return result;
    bool is_apart = source.index != goal.index;
    if (size_bytes == 0 || !is_apart || !has_part(&source, from_offset, size_bytes) ||
        !has_part(&goal, to_offset, size_bytes))
        return REFUSE(command, NB_ERR_RANGE, source.name,
                      "the part is empty, outside of a buffer or not at a multiple of 4 bytes, or source and goal are "
                      "one buffer");
    mix(command, OP_COPY, size_bytes);
    mix(command, source.identity, source.is_memory ? 0 : from_offset);
    mix(command, goal.identity, to_offset);
    command->gpu->backend->copy_buffer(command->gpu->self, command->item, source.index, from_offset, goal.index,
                                       to_offset, size_bytes);
    return NB_OK;
}

nb_result nb_gpu_copy_to_buffer(nb_gpu_command *command, nb_graph_resource from, nb_gpu_buffer to, uint64_t to_offset) {
    if (command == NULL) return NB_FAIL_NULL("command");
    if (is_rendering(command))
        return REFUSE(command, NB_ERR_MISUSE, "a copy", "the pass renders; copy in a compute pass");
    target source = {0}, goal = {0};
    nb_result result = find_resource(command, __func__, from, false, NB_GPU_ACCESS_COPY_FROM, &source);
    if (result == NB_OK) result = find_buffer(command, __func__, to, NB_GPU_ACCESS_COPY_TO, &goal);
    if (result != NB_OK) return result;
    const nb_gpu_image_desc *desc = &command->gpu->tables[NBI_GPU_IMAGE].objects[source.index].desc.image;
    uint64_t size_bytes = (uint64_t)desc->width * desc->height * nb_gpu_format_bytes(desc->format);
    if (!has_part(&goal, to_offset, size_bytes))
        return REFUSE(command, NB_ERR_RANGE, goal.name,
                      "it is too small for the image, or the offset is no multiple of 4");
    mix(command, OP_COPY_IMAGE, source.identity);
    mix(command, goal.identity, to_offset);
    command->gpu->backend->copy_to_buffer(command->gpu->self, command->item, source.index, goal.index, to_offset);
    return NB_OK;
}

nb_gpu *nb_gpu_command_device(const nb_gpu_command *command) {
    if (command == NULL) NB_FAIL_NULL("command");
    return command != NULL ? command->gpu : NULL;
}
