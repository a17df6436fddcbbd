// SPDX-License-Identifier: MIT
#pragma once

// What a pass does: pipelines, bindings, draws, dispatches, copies, given to its record function to be filled on any
// thread. The one rule: a resource of the graph must have been declared for the pass in the way it is used; else the
// command is left out, counted, and reported with the names of both.
//
//     static nb_result draw_ground(nb_gpu_command *command, uint32_t bucket, uint32_t bucket_count, void *user) {
//         const renderer *r = (const renderer *)user;
//         nb_gpu_set_pipeline(command, r->ground);
//         nb_gpu_set_buffer(command, 0, r->quads, 0, 0);
//         for (uint32_t i = bucket; i < r->draw_count; i += bucket_count) {
//             nb_gpu_push(command, &r->draws[i], sizeof r->draws[i]);
//             nb_gpu_draw(command, 6 * r->draws[i].quad_count, 1, 0, 0);
//         }
//         return NB_OK;
//     }

#include "nebula/frame_graph.h"
#include "nebula/gpu.h"
#include "nebula/gpu_types.h"
#include "nebula/types.h"

typedef enum nb_gpu_sampler {
    NB_GPU_SAMPLER_NEAREST = 0, // at the edge, the edge
    NB_GPU_SAMPLER_LINEAR,
    NB_GPU_SAMPLER_LINEAR_REPEAT,
    NB_GPU_SAMPLER_COUNT,
} nb_gpu_sampler;

typedef struct nb_gpu_rect {
    int32_t x, y;
    uint32_t width, height;
} nb_gpu_rect;

// One draw in a buffer, as NB_GPU_ACCESS_INDIRECT reads it.
typedef struct nb_gpu_draw_args {
    uint32_t vertex_count, instance_count, first_vertex, first_instance;
} nb_gpu_draw_args;

NB_EXTERN_C_BEGIN

// All of these are called in a record function, for its command. Where one fails the command is left out, counted in
// nb_gpu_stats.misuse_count and reported with pass and object, of repetitions only some; the recording goes on. A
// binding, an index buffer or a pipeline that was refused leaves none, so that nothing is drawn with what was there
// before.

// The pipeline of what follows; bindings stay, constants do not.
// Thread: the record function's. Owner: unchanged. Fails: NB_ERR_STALE, NB_ERR_MISUSE (of another kind or with other
// formats than the pass).
NB_API nb_result nb_gpu_set_pipeline(nb_gpu_command *command, nb_gpu_pipeline pipeline);

// Binds a buffer, from offset on, to 0..7; size_bytes 0 = to its end. The offset is a multiple of 256
// (NB_GPU_OFFSET_ALIGNMENT).
// Thread: the record function's. Owner: unchanged. Fails: NB_ERR_STALE, NB_ERR_RANGE, NB_ERR_PERMISSION (of the graph,
// and not declared).
NB_API nb_result nb_gpu_set_buffer(nb_gpu_command *command, uint32_t binding, nb_gpu_buffer buffer, uint64_t offset,
                                   uint64_t size_bytes);

// Binds memory of the frame to 0..7. It was taken with an alignment of 256.
// Thread: the record function's. Owner: unchanged. Fails: NB_ERR_STALE, NB_ERR_RANGE.
NB_API nb_result nb_gpu_set_span(nb_gpu_command *command, uint32_t binding, nb_gpu_span span);

// Binds an image to 8..15. One that is not in this frame's graph can be sampled, and nothing else.
// Thread: the record function's. Owner: unchanged. Fails: NB_ERR_STALE, NB_ERR_RANGE, NB_ERR_PERMISSION.
NB_API nb_result nb_gpu_set_image(nb_gpu_command *command, uint32_t binding, nb_gpu_image image,
                                  nb_gpu_sampler sampler);

// Binds a resource of the graph, a buffer to 0..7 or an image to 8..15.
// Thread: the record function's. Owner: unchanged. Fails: NB_ERR_STALE, NB_ERR_RANGE, NB_ERR_PERMISSION (the pass has
// not declared this use).
NB_API nb_result nb_gpu_set_resource(nb_gpu_command *command, uint32_t binding, nb_graph_resource resource,
                                     nb_gpu_sampler sampler);

// The index buffer of what follows, 32 bits each.
// Thread: the record function's. Owner: unchanged. Fails: NB_ERR_STALE, NB_ERR_RANGE, NB_ERR_PERMISSION.
NB_API nb_result nb_gpu_set_indices(nb_gpu_command *command, nb_gpu_buffer buffer, uint64_t offset);

// Constants of what follows, as many bytes as the pipeline has.
// Thread: the record function's. Owner: copied. Fails: NB_ERR_RANGE, NB_ERR_MISUSE (no pipeline).
NB_API nb_result nb_gpu_push(nb_gpu_command *command, const void *bytes, size_t size_bytes);

// The part of the attachments that is drawn to; at first all of it.
// Thread: the record function's. Owner: unchanged. Fails: NB_ERR_RANGE, NB_ERR_MISUSE (the pass does not render).
NB_API nb_result nb_gpu_set_viewport(nb_gpu_command *command, nb_gpu_rect rect);

// What is drawn beyond it is cut off; at first nothing.
// Thread: the record function's. Owner: unchanged. Fails: as above.
NB_API nb_result nb_gpu_set_scissor(nb_gpu_command *command, nb_gpu_rect rect);

// Draws.
// Thread: the record function's. Owner: unchanged. Fails: NB_ERR_MISUSE (no pipeline, a binding of it is missing),
// NB_ERR_MEMORY.
NB_API nb_result nb_gpu_draw(nb_gpu_command *command, uint32_t vertex_count, uint32_t instance_count,
                             uint32_t first_vertex, uint32_t first_instance);

// Draws by indices.
// Thread: the record function's. Owner: unchanged. Fails: as above; NB_ERR_MISUSE (no indices).
NB_API nb_result nb_gpu_draw_indexed(nb_gpu_command *command, uint32_t index_count, uint32_t instance_count,
                                     uint32_t first_index, int32_t vertex_offset, uint32_t first_instance);

// Draws as nb_gpu_draw_args in a buffer say, draw_count of them one after the other.
// Thread: the record function's. Owner: unchanged. Fails: as above; NB_ERR_STALE, NB_ERR_RANGE, NB_ERR_PERMISSION.
NB_API nb_result nb_gpu_draw_indirect(nb_gpu_command *command, nb_gpu_buffer buffer, uint64_t offset,
                                      uint32_t draw_count);

// Computes, in so many groups.
// Thread: the record function's. Owner: unchanged. Fails: as nb_gpu_draw; NB_ERR_MISUSE (the pass renders).
NB_API nb_result nb_gpu_dispatch(nb_gpu_command *command, uint32_t x, uint32_t y, uint32_t z);

// Copies between buffers of the graph or of the device.
// Thread: the record function's. Owner: unchanged. Fails: NB_ERR_STALE, NB_ERR_RANGE, NB_ERR_PERMISSION, NB_ERR_MISUSE
// (the pass renders).
NB_API nb_result nb_gpu_copy_buffer(nb_gpu_command *command, nb_gpu_buffer from, uint64_t from_offset, nb_gpu_buffer to,
                                    uint64_t to_offset, uint64_t size_bytes);

// Copies an image of the graph, all of it, to a buffer, rows without gaps.
// Thread: the record function's. Owner: unchanged. Fails: as above.
NB_API nb_result nb_gpu_copy_to_buffer(nb_gpu_command *command, nb_graph_resource from, nb_gpu_buffer to,
                                       uint64_t to_offset);

// The device that records.
// Thread: the record function's. Owner: unchanged. Fails: NULL for NULL.
NB_API nb_gpu *nb_gpu_command_device(const nb_gpu_command *command);

NB_EXTERN_C_END
