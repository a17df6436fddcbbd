// SPDX-License-Identifier: MIT
#pragma once

// What a backend is: one struct of functions. For those who write one; the device checks everything before it calls, so
// a backend trusts what it gets. The one rule: a call that fails has changed nothing, and NB_ERR_LOST means that only
// `destroy` will be called.
//
//     const nb_gpu_backend *backend = nb_gpu_null_backend();
//     printf("%s\n", backend->name);

#include "nebula/frame_graph.h"
#include "nebula/gpu.h"
#include "nebula/gpu_command.h"
#include "nebula/gpu_types.h"
#include "nebula/hooks.h"
#include "nebula/types.h"

// Numbers that the device gives to objects; the backend keeps its own under them. Below the counts of the limits.
typedef uint32_t nb_gpu_index;

// Bytes at which spans and bound parts of buffers begin: what every device asks for at most.
#define NB_GPU_OFFSET_ALIGNMENT 256u

typedef struct nb_gpu_limits {
    uint32_t frames_in_flight, lane_count, buffer_count_max, image_count_max, pipeline_count_max, pass_count_max;
    uint32_t item_count_max; // recorded passes and buckets of one frame
    size_t frame_bytes;
} nb_gpu_limits;

typedef struct nb_gpu_backend_create {
    const void *desc; // nb_gpu_desc.backend_desc
    nb_gpu_limits limits;
    uint32_t width, height;
    bool is_vsync_off;
    const nb_hooks *hooks; // resolved; live as long as the backend
} nb_gpu_backend_create;

typedef struct nb_gpu_backend_info {
    char name[128];               // of the device
    nb_gpu_format surface_format; // of the back buffer
    bool has_surface;             // it is shown; else it is an image that the device makes
    bool is_on_cpu;               // it takes the CPU's time to draw
} nb_gpu_backend_info;

// What a bound place holds when something is drawn.
typedef struct nb_gpu_bindings {
    uint32_t buffer_mask, image_mask; // what is set
    struct {
        nb_gpu_index buffer;
        uint64_t offset, size_bytes;
    } buffers[NB_GPU_BUFFER_BINDING_COUNT];
    struct {
        nb_gpu_index image;
        nb_gpu_sampler sampler;
        bool is_storage;
    } images[NB_GPU_IMAGE_BINDING_COUNT];
} nb_gpu_bindings;

// One recorded pass or bucket.
typedef struct nb_gpu_item {
    uint32_t step;   // of the plan
    uint32_t bucket; // of the step
    uint32_t lane;   // that records it
    uint32_t index;  // in the order of the plan
} nb_gpu_item;

typedef struct nb_gpu_upload {
    uint64_t from; // in the frame's memory
    bool is_image;
    nb_gpu_index to; // a buffer, or an image
    uint32_t layer;
    uint64_t to_offset, size_bytes;
} nb_gpu_upload;

// All that makes up a picture. Without steps and resources: uploads alone. What it does begins after all that was
// handed over before has ended: memory of the graph is the same in all frames.
typedef struct nb_gpu_submit {
    uint32_t slot;  // of the frames in flight
    uint64_t value; // that the fence gets to when it is over: one more than the last
    const nb_graph_plan *plan;
    const nb_gpu_index *resources; // by index of the plan's resources: the image or buffer it is; UINT32_MAX: none
    uint32_t item_count;           // recorded, in the order of the plan: steps without a record function have none
    const nb_gpu_item *items;
    const nb_gpu_upload *uploads; // before all passes, in their order
    uint32_t upload_count;
    bool is_shown; // it draws to the surface's image: present follows
} nb_gpu_submit;

typedef struct nb_gpu_times {
    uint64_t value; // of the picture they are of
    uint32_t step_count;
    const uint64_t *begin_ns, *end_ns; // by step, since the first; NULL = the backend has no clock
} nb_gpu_times;

struct nb_gpu_backend {
    const char *name; // "null", "vulkan"

    // Everything it will ever allocate for frames is allocated here, by the limits.
    nb_result (*create)(const nb_gpu_backend_create *create, void **out, nb_gpu_backend_info *info);
    // The device is idle, or lost. All that is left is freed.
    void (*destroy)(void *self);

    // Objects, by number. Destroyed when the device is through with them; at once where nothing was handed over since
    // they were made.
    nb_result (*buffer_create)(void *self, nb_gpu_index index, const nb_gpu_buffer_desc *desc);
    void (*buffer_destroy)(void *self, nb_gpu_index index);
    const void *(*buffer_memory)(void *self, nb_gpu_index index); // of a readback buffer
    nb_result (*image_create)(void *self, nb_gpu_index index, const nb_gpu_image_desc *desc);
    void (*image_destroy)(void *self, nb_gpu_index index);
    nb_result (*pipeline_create)(void *self, nb_gpu_index index, const nb_gpu_pipeline_desc *desc);
    void (*pipeline_destroy)(void *self, nb_gpu_index index);
    // Memory of a frame in flight: a buffer under this number for its whole life, written by the CPU.
    nb_result (*frame_memory)(void *self, uint32_t slot, nb_gpu_index index, void **memory);

    // Fences. Values count from 1 in each backend that was made. The value that the device has reached; NB_ERR_LOST.
    nb_result (*completed)(void *self, uint64_t *value);
    nb_result (*wait)(void *self, uint64_t value, uint64_t timeout_ns); // NB_TIMEOUT, NB_ERR_LOST
    nb_result (*times)(void *self, nb_gpu_times *out);                  // of the newest that is over; NB_EMPTY

    // Surface. The image that comes next, from now on under this number of the images; each slot has one of its own.
    // Called again before a submit that is shown, perhaps with another slot, it gives the same image: a picture was
    // left out. NB_BUSY: none yet, or none of this size. NB_ERR_STALE: it has to be made anew first.
    nb_result (*acquire)(void *self, uint32_t slot, nb_gpu_index index, uint32_t *width, uint32_t *height);
    nb_result (*surface_resize)(void *self, uint32_t width, uint32_t height, bool is_vsync_off); // the device is idle
    nb_result (*present)(void *self, uint32_t slot); // NB_ERR_STALE: shown or not, it has to be made anew

    // Recording: lanes at once, each by one thread. begin resets what the slot's lane has held with its first item.
    nb_result (*frame_reset)(void *self, uint32_t slot); // the device is through with what the slot held
    nb_result (*item_begin)(void *self, uint32_t slot, const nb_gpu_item *item, const nb_graph_plan *plan,
                            const nb_gpu_index *resources);
    nb_result (*item_end)(void *self, uint32_t slot, const nb_gpu_item *item);
    void (*set_pipeline)(void *self, const nb_gpu_item *item, nb_gpu_index pipeline);
    nb_result (*set_bindings)(void *self, const nb_gpu_item *item, nb_gpu_index pipeline,
                              const nb_gpu_bindings *bindings); // before a draw, where they changed
    void (*set_indices)(void *self, const nb_gpu_item *item, nb_gpu_index buffer, uint64_t offset);
    void (*push)(void *self, const nb_gpu_item *item, nb_gpu_index pipeline, const void *bytes, size_t size_bytes);
    void (*set_viewport)(void *self, const nb_gpu_item *item, nb_gpu_rect rect);
    void (*set_scissor)(void *self, const nb_gpu_item *item, nb_gpu_rect rect);
    void (*draw)(void *self, const nb_gpu_item *item, const nb_gpu_draw_args *args);
    void (*draw_indexed)(void *self, const nb_gpu_item *item, uint32_t index_count, uint32_t instance_count,
                         uint32_t first_index, int32_t vertex_offset, uint32_t first_instance);
    void (*draw_indirect)(void *self, const nb_gpu_item *item, nb_gpu_index buffer, uint64_t offset, uint32_t count);
    void (*dispatch)(void *self, const nb_gpu_item *item, uint32_t x, uint32_t y, uint32_t z);
    void (*copy_buffer)(void *self, const nb_gpu_item *item, nb_gpu_index from, uint64_t from_offset, nb_gpu_index to,
                        uint64_t to_offset, uint64_t size_bytes);
    void (*copy_to_buffer)(void *self, const nb_gpu_item *item, nb_gpu_index from, nb_gpu_index to, uint64_t to_offset);

    nb_result (*submit)(void *self, const nb_gpu_submit *submit); // NB_ERR_LOST, NB_ERR_MEMORY
    void (*memory)(void *self, uint64_t *used_bytes, uint64_t *budget_bytes);
};
