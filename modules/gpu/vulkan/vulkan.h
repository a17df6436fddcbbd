// SPDX-License-Identifier: MIT
#pragma once

// The Vulkan device behind nb_gpu_vulkan_backend, and what its files do for each other. All of it belongs to the thread
// of the frames, but for the lanes: each of those records on one thread.

#include "nebula/atomic.h"
#include "nebula/gpu_backend.h"
#include "nebula/gpu_vulkan.h"
#include "nebula/report.h"
#include "vulkan_load.h"
#include "vulkan_range.h"

// Blocks of device memory: at 32 MiB each more than any device has.
#define NBI_VULKAN_BLOCK_COUNT_MAX 1024u

// Descriptor pools of a lane and slot, each twice as large as the one before up to a limit.
#define NBI_VULKAN_POOL_COUNT_MAX 16u

// Images of a swapchain: drivers have two to five.
#define NBI_VULKAN_SURFACE_IMAGE_COUNT_MAX 8u

// What memory is for.
typedef enum nbi_vulkan_use {
    NBI_VULKAN_USE_DEVICE = 0,
    NBI_VULKAN_USE_READBACK, // read by the CPU
    NBI_VULKAN_USE_FRAME,    // written by the CPU
} nbi_vulkan_use;

typedef struct nbi_vulkan_block {
    VkDeviceMemory memory; // VK_NULL_HANDLE: this record is unused
    void *mapped;          // NULL: the CPU does not see it
    uint64_t size_bytes, used_bytes;
    uint32_t first;  // of its ranges
    uint32_t type;   // index of the memory type
    bool has_images; // images and buffers never share a block: between them drivers ask for gaps
    bool is_single;  // made for one large object
} nbi_vulkan_block;

// A part of a block.
typedef struct nbi_vulkan_piece {
    VkDeviceMemory memory; // VK_NULL_HANDLE: none
    uint64_t offset, size_bytes;
    void *mapped;
    uint32_t block, range;
} nbi_vulkan_piece;

typedef struct nbi_vulkan_memory {
    VkPhysicalDeviceMemoryProperties types;
    bool has_budget; // VK_EXT_memory_budget
    uint64_t bytes_max, block_bytes_max;
    uint64_t held_bytes; // of blocks
    uint64_t used_bytes; // of pieces
    uint64_t budget_bytes;
    uint32_t budget_age; // questions answered from what was known
    nbi_vulkan_block *blocks;
    nbi_ranges ranges;
} nbi_vulkan_memory;

typedef struct nbi_vulkan_buffer {
    VkBuffer handle; // VK_NULL_HANDLE: no buffer under this number
    nbi_vulkan_piece piece;
    uint64_t size_bytes;
    // Within one submit, where `stamp` is the submit's.
    uint64_t stamp;
    nb_gpu_access access;
    // Within uploads that no barrier divides, where `batch` is theirs.
    uint64_t batch;
    uint64_t written_begin, written_end;
} nbi_vulkan_buffer;

typedef struct nbi_vulkan_image {
    VkImage handle; // VK_NULL_HANDLE: no image under this number
    VkImageView view;
    nbi_vulkan_piece piece;
    VkFormat format;
    VkImageAspectFlags aspect;
    uint32_t width, height, layer_count;
    VkImageLayout layout; // after all that was handed over
    bool is_fresh;        // not even that: it gets there with the next submit
    bool is_surface;      // the swapchain's, not ours to destroy
    uint64_t stamp;
    VkImageLayout layout_now;
    nb_gpu_access access;
    uint64_t batch;
    uint32_t written_begin, written_end; // layers
} nbi_vulkan_image;

// What a pipeline sees. Pipelines that see the same share it.
typedef struct nbi_vulkan_layout {
    uint32_t uniform_mask, storage_mask, sampled_mask, storage_image_mask, push_bytes;
    uint32_t use_count; // 0: this record is unused
    VkDescriptorSetLayout set;
    VkPipelineLayout pipeline;
} nbi_vulkan_layout;

typedef struct nbi_vulkan_pipeline {
    VkPipeline handle; // VK_NULL_HANDLE: no pipeline under this number
    uint32_t layout;
    bool is_compute;
} nbi_vulkan_pipeline;

// What a lane records into in one slot of the frames in flight.
typedef struct nbi_vulkan_shelf {
    uint64_t frame; // that it was reset for
    VkCommandPool pool;
    VkCommandBuffer *commands;
    uint32_t command_count, command_used;
    VkDescriptorPool pools[NBI_VULKAN_POOL_COUNT_MAX];
    uint32_t pool_count, pool_used;
} nbi_vulkan_shelf;

// A lane between item_begin and item_end.
typedef struct nbi_vulkan_lane {
    nbi_vulkan_shelf shelves[NB_GPU_FRAMES_MAX];
    nbi_vulkan_shelf *shelf; // of the slot
    VkCommandBuffer command;
    const nb_graph_plan *plan;
    const nb_gpu_index *resources;
    uint32_t step;
    VkDescriptorSet set; // bound; VK_NULL_HANDLE: none yet
    nbi_vulkan_layout set_layout;
    nb_gpu_bindings bindings; // that the set has
    char padding[NB_CACHE_LINE];
} nbi_vulkan_lane;

// One of the frames in flight.
typedef struct nbi_vulkan_slot {
    uint64_t frame; // counts resets
    uint64_t value; // of its submit; 0: none yet
    uint32_t step_count;
    VkCommandPool pool;
    VkCommandBuffer primary;
    VkQueryPool queries;
    nb_gpu_index memory;    // the buffer that the CPU writes
    VkCommandBuffer *items; // by index of the item
} nbi_vulkan_slot;

typedef struct nbi_vulkan_surface {
    VkSurfaceKHR handle; // VK_NULL_HANDLE: no window
    VkSwapchainKHR swapchain;
    VkFormat format;
    VkColorSpaceKHR color_space;
    VkExtent2D extent;
    uint32_t image_count;
    VkImage images[NBI_VULKAN_SURFACE_IMAGE_COUNT_MAX];
    VkImageView views[NBI_VULKAN_SURFACE_IMAGE_COUNT_MAX];
    VkSemaphore drawn[NBI_VULKAN_SURFACE_IMAGE_COUNT_MAX]; // by image: it may be shown
    // Image got; free again when the submit of that value is over.
    VkSemaphore got[NB_GPU_FRAMES_MAX + 1];
    uint64_t got_values[NB_GPU_FRAMES_MAX + 1];
    uint32_t got_count;
    uint32_t got_now;   // of the image that was acquired
    uint32_t image_now; // the image itself
    bool is_acquired;   // and not yet handed over
    bool is_drawn;      // handed over and not yet shown
    bool is_stale;      // it no longer fits
    bool is_lost;       // the surface too has to be made anew
} nbi_vulkan_surface;

typedef struct nbi_vulkan {
    nb_hooks hooks;
    nb_throttle throttle; // of failures that frames repeat
    nb_gpu_limits limits;
    nb_gpu_vulkan_window window;
    void *library;
    nbi_vulkan_functions vk;
    VkInstance instance;
    VkDebugUtilsMessengerEXT messenger;
    nb_atomic_u64 message_count;
    VkPhysicalDevice physical;
    VkPhysicalDeviceProperties properties;
    VkPhysicalDeviceFeatures features; // that are on
    uint32_t family;
    uint32_t timestamp_bits;
    VkDevice device;
    VkQueue queue;
    VkSemaphore timeline;
    VkPipelineCache cache;
    VkSampler samplers[NB_GPU_SAMPLER_COUNT];
    uint64_t buffer_bytes_max;
    nb_atomic_u32 is_lost; // lanes may find out too
    nbi_vulkan_memory memory;
    nbi_vulkan_buffer *buffers;
    nbi_vulkan_image *images;
    uint32_t fresh_count;
    nbi_vulkan_pipeline *pipelines;
    nbi_vulkan_layout *layouts;
    nbi_vulkan_lane *lanes;
    nbi_vulkan_slot slots[NB_GPU_FRAMES_MAX];
    nbi_vulkan_surface surface;
    uint64_t submit_stamp; // counts attempts to submit
    uint64_t upload_batch; // counts barriers between uploads
    // Answers of `times`.
    uint64_t times_value;
    uint32_t times_count;
    uint64_t *times_raw, *times_begin, *times_end;
    // Where all arrays are.
    void *arrays;
    size_t arrays_bytes;
} nbi_vulkan;

static inline bool nbi_vulkan_is_lost(const nbi_vulkan *v) { return nbi_atomic_load_relaxed_u32(&v->is_lost) != 0; }

// Logs a result that is not VK_SUCCESS with its name, and says what it is to the device.
nb_result nbi_vulkan_fail(nbi_vulkan *v, VkResult result, const char *what);

// Names an object in messages of the validation layer.
void nbi_vulkan_name(nbi_vulkan *v, VkObjectType type, uint64_t handle, const char *name);

// vulkan_device.c
nb_result nbi_vulkan_device_open(nbi_vulkan *v, const nb_gpu_vulkan_desc *desc);
void nbi_vulkan_device_close(nbi_vulkan *v);

// vulkan_memory.c
void nbi_vulkan_memory_open(nbi_vulkan *v, uint64_t bytes_max, bool has_budget);
void nbi_vulkan_memory_close(nbi_vulkan *v);
nb_result nbi_vulkan_memory_take(nbi_vulkan *v, const VkMemoryRequirements *needs, nbi_vulkan_use use, bool is_image,
                                 nbi_vulkan_piece *out);
void nbi_vulkan_memory_give(nbi_vulkan *v, nbi_vulkan_piece *piece);
void nbi_vulkan_memory_get(void *self, uint64_t *used_bytes, uint64_t *budget_bytes);

// vulkan_resource.c
VkFormat nbi_vulkan_format(nb_gpu_format format);
nb_result nbi_vulkan_samplers_open(nbi_vulkan *v);
nb_result nbi_vulkan_view_create(nbi_vulkan *v, const nbi_vulkan_image *image, VkImageView *out);
nb_result nbi_vulkan_buffer_create(void *self, nb_gpu_index index, const nb_gpu_buffer_desc *desc);
void nbi_vulkan_buffer_destroy(void *self, nb_gpu_index index);
const void *nbi_vulkan_buffer_memory(void *self, nb_gpu_index index);
nb_result nbi_vulkan_image_create(void *self, nb_gpu_index index, const nb_gpu_image_desc *desc);
void nbi_vulkan_image_destroy(void *self, nb_gpu_index index);
nb_result nbi_vulkan_frame_memory(void *self, uint32_t slot, nb_gpu_index index, void **memory);

// vulkan_pipeline.c
nb_result nbi_vulkan_pipeline_create(void *self, nb_gpu_index index, const nb_gpu_pipeline_desc *desc);
void nbi_vulkan_pipeline_destroy(void *self, nb_gpu_index index);

// vulkan_barrier.c: what Vulkan calls the ways of use.
typedef struct nbi_vulkan_scope {
    VkPipelineStageFlags2 stages;
    VkAccessFlags2 access;
} nbi_vulkan_scope;
nbi_vulkan_scope nbi_vulkan_scope_of(nb_gpu_access access);
VkImageLayout nbi_vulkan_layout_of(nb_gpu_access access);      // that serves all of these
VkImageLayout nbi_vulkan_layout_resting(nb_gpu_access access); // of an image for all of these, when no plan has a say

// Everything that was begun, before everything that follows.
extern const nbi_vulkan_scope nbi_vulkan_scope_all;

// Barriers that are given to the device together.
#define NBI_VULKAN_BATCH_COUNT_MAX 32u
typedef struct nbi_vulkan_batch {
    VkCommandBuffer command;
    uint32_t memory_count, buffer_count, image_count;
    VkMemoryBarrier2 memory[1];
    VkBufferMemoryBarrier2 buffers[NBI_VULKAN_BATCH_COUNT_MAX];
    VkImageMemoryBarrier2 images[NBI_VULKAN_BATCH_COUNT_MAX];
} nbi_vulkan_batch;
void nbi_vulkan_batch_begin(nbi_vulkan_batch *batch, VkCommandBuffer command);
void nbi_vulkan_batch_memory(nbi_vulkan *v, nbi_vulkan_batch *batch, nbi_vulkan_scope from, nbi_vulkan_scope to);
void nbi_vulkan_batch_buffer(nbi_vulkan *v, nbi_vulkan_batch *batch, const nbi_vulkan_buffer *buffer,
                             nbi_vulkan_scope from, nbi_vulkan_scope to);
void nbi_vulkan_batch_image(nbi_vulkan *v, nbi_vulkan_batch *batch, const nbi_vulkan_image *image,
                            nbi_vulkan_scope from, VkImageLayout from_layout, nbi_vulkan_scope to,
                            VkImageLayout to_layout);
void nbi_vulkan_batch_flush(nbi_vulkan *v, nbi_vulkan_batch *batch);

// vulkan_record.c
nb_result nbi_vulkan_record_open(nbi_vulkan *v);
void nbi_vulkan_record_close(nbi_vulkan *v);
nb_result nbi_vulkan_frame_reset(void *self, uint32_t slot);
nb_result nbi_vulkan_item_begin(void *self, uint32_t slot, const nb_gpu_item *item, const nb_graph_plan *plan,
                                const nb_gpu_index *resources);
nb_result nbi_vulkan_item_end(void *self, uint32_t slot, const nb_gpu_item *item);

// vulkan_binding.c
nb_result nbi_vulkan_set_bindings(void *self, const nb_gpu_item *item, nb_gpu_index pipeline,
                                  const nb_gpu_bindings *bindings);
// The layout that an image has in the step that the lane records.
VkImageLayout nbi_vulkan_layout_in_step(const nbi_vulkan *v, const nbi_vulkan_lane *lane, nb_gpu_index image);

// vulkan_command.c
void nbi_vulkan_set_pipeline(void *self, const nb_gpu_item *item, nb_gpu_index pipeline);
void nbi_vulkan_set_indices(void *self, const nb_gpu_item *item, nb_gpu_index buffer, uint64_t offset);
void nbi_vulkan_push(void *self, const nb_gpu_item *item, nb_gpu_index pipeline, const void *bytes, size_t size_bytes);
void nbi_vulkan_set_viewport(void *self, const nb_gpu_item *item, nb_gpu_rect rect);
void nbi_vulkan_set_scissor(void *self, const nb_gpu_item *item, nb_gpu_rect rect);
void nbi_vulkan_draw(void *self, const nb_gpu_item *item, const nb_gpu_draw_args *args);
void nbi_vulkan_draw_indexed(void *self, const nb_gpu_item *item, uint32_t index_count, uint32_t instance_count,
                             uint32_t first_index, int32_t vertex_offset, uint32_t first_instance);
void nbi_vulkan_draw_indirect(void *self, const nb_gpu_item *item, nb_gpu_index buffer, uint64_t offset,
                              uint32_t count);
void nbi_vulkan_dispatch(void *self, const nb_gpu_item *item, uint32_t x, uint32_t y, uint32_t z);
void nbi_vulkan_copy_buffer(void *self, const nb_gpu_item *item, nb_gpu_index from, uint64_t from_offset,
                            nb_gpu_index to, uint64_t to_offset, uint64_t size_bytes);
void nbi_vulkan_copy_to_buffer(void *self, const nb_gpu_item *item, nb_gpu_index from, nb_gpu_index to,
                               uint64_t to_offset);

// vulkan_submit.c
nb_result nbi_vulkan_submit(void *self, const nb_gpu_submit *submit);
// Objects as they are within the submit that is being put together.
nbi_vulkan_image *nbi_vulkan_image_now(nbi_vulkan *v, nb_gpu_index index);
nbi_vulkan_buffer *nbi_vulkan_buffer_now(nbi_vulkan *v, nb_gpu_index index);

// vulkan_upload.c
void nbi_vulkan_uploads_record(nbi_vulkan *v, VkCommandBuffer command, const nb_gpu_submit *submit);

// vulkan_fence.c
nb_result nbi_vulkan_completed(void *self, uint64_t *value);
nb_result nbi_vulkan_wait(void *self, uint64_t value, uint64_t timeout_ns);
nb_result nbi_vulkan_times(void *self, nb_gpu_times *out);

// vulkan_surface.c
nb_result nbi_vulkan_surface_open(nbi_vulkan *v, uint32_t width, uint32_t height, bool is_vsync_off);
void nbi_vulkan_surface_close(nbi_vulkan *v);
nb_result nbi_vulkan_acquire(void *self, uint32_t slot, nb_gpu_index index, uint32_t *width, uint32_t *height);
nb_result nbi_vulkan_surface_resize(void *self, uint32_t width, uint32_t height, bool is_vsync_off);
nb_result nbi_vulkan_present(void *self, uint32_t slot);
