// SPDX-License-Identifier: MIT
// The null backend: takes everything, draws nothing, keeps count.

#include "null.h"

#include "nebula/atomic.h"
#include "nebula/report.h"

#include <string.h>

// Copies of one frame that are done: a capture and some read backs. More are taken and not done.
#define COPY_COUNT_MAX 64u

typedef struct null_buffer {
    bool is_alive;
    void *memory; // of a frame, or for reading back; else NULL
    uint64_t size_bytes;
} null_buffer;

typedef struct null_image {
    bool is_alive;
    nb_gpu_format format;
    uint32_t width, height;
    bool is_cleared; // in the frame that is being handed over
    float clear[4];
} null_image;

typedef struct null_copy {
    uint32_t item; // that it is of
    bool is_image;
    nb_gpu_index from, to;
    uint64_t from_offset, to_offset, size_bytes;
} null_copy;

typedef struct null_device {
    nb_hooks hooks;
    nb_gpu_null *control;
    nb_gpu_limits limits;
    uint32_t latency, width, height;
    null_buffer *buffers;
    null_image *images;
    bool *pipelines;
    uint64_t submitted, completed, stuck_at, memory_bytes;
    bool is_stuck;
    bool is_lost;
    uint64_t pass_ns, begin_ns, picture_ns; // of the newest picture
    null_copy copies[COPY_COUNT_MAX];
    nb_atomic_u32 copy_count;
} null_device;

static void *alloc_zero(const nb_hooks *hooks, size_t size_bytes) {
    void *memory = nb_hooks_alloc(hooks, size_bytes, NB_CACHE_LINE, "nb_gpu_create");
    if (memory != NULL) memset(memory, 0, size_bytes);
    return memory;
}

// --- the device ---

static void null_destroy(void *self) {
    null_device *device = self;
    nb_hooks hooks = device->hooks;
    for (uint32_t i = 0; device->buffers != NULL && i < device->limits.buffer_count_max; ++i) {
        null_buffer *buffer = &device->buffers[i];
        nb_hooks_free(&hooks, buffer->memory, (size_t)buffer->size_bytes);
        if (buffer->is_alive) nbi_null_count(device->control, -1);
    }
    for (uint32_t i = 0; device->images != NULL && i < device->limits.image_count_max; ++i)
        if (device->images[i].is_alive) nbi_null_count(device->control, -1);
    for (uint32_t i = 0; device->pipelines != NULL && i < device->limits.pipeline_count_max; ++i)
        if (device->pipelines[i]) nbi_null_count(device->control, -1);
    nb_hooks_free(&hooks, device->buffers, device->limits.buffer_count_max * sizeof *device->buffers);
    nb_hooks_free(&hooks, device->images, device->limits.image_count_max * sizeof *device->images);
    nb_hooks_free(&hooks, device->pipelines, device->limits.pipeline_count_max * sizeof *device->pipelines);
    nb_hooks_free(&hooks, device, sizeof *device);
}

static nb_result null_create(const nb_gpu_backend_create *create, void **out, nb_gpu_backend_info *info) {
    const nb_gpu_null_desc *desc = create->desc;
    nb_gpu_null *control = desc != NULL ? desc->control : NULL;
    if (nbi_null_shows(control, NB_GPU_NULL_NO_DEVICE)) return NB_ERR_UNSUPPORTED;
    null_device *device = alloc_zero(create->hooks, sizeof *device);
    if (device == NULL) return NB_ERR_MEMORY;
    device->hooks = *create->hooks;
    device->control = control;
    device->limits = create->limits;
    device->latency = desc != NULL ? desc->latency_frames : 0;
    device->pass_ns = desc != NULL ? desc->pass_ns : 0;
    device->width = create->width;
    device->height = create->height;
    const nb_gpu_limits *limits = &create->limits;
    device->buffers = alloc_zero(create->hooks, limits->buffer_count_max * sizeof *device->buffers);
    device->images = alloc_zero(create->hooks, limits->image_count_max * sizeof *device->images);
    device->pipelines = alloc_zero(create->hooks, limits->pipeline_count_max * sizeof *device->pipelines);
    if (device->buffers == NULL || device->images == NULL || device->pipelines == NULL) {
        null_destroy(device);
        return NB_ERR_MEMORY;
    }
    *info = (nb_gpu_backend_info){.name = "nothing",
                                  .surface_format = NB_GPU_FORMAT_RGBA8,
                                  .has_surface = desc != NULL && desc->has_surface,
                                  .is_on_cpu = desc != NULL && desc->is_on_cpu};
    *out = device;
    return NB_OK;
}

// --- objects ---

static nb_result gate(null_device *device) {
    if (device->is_lost) return NB_ERR_LOST;
    return nbi_null_shows(device->control, NB_GPU_NULL_MEMORY) ? NB_ERR_MEMORY : NB_OK;
}

static nb_result null_buffer_create(void *self, nb_gpu_index index, const nb_gpu_buffer_desc *desc) {
    null_device *device = self;
    nb_result result = gate(device);
    if (result != NB_OK) return result;
    void *memory = NULL;
    if (desc->memory == NB_GPU_MEMORY_READBACK) {
        memory = alloc_zero(&device->hooks, (size_t)desc->size_bytes);
        if (memory == NULL) return NB_ERR_MEMORY;
    }
    device->buffers[index] = (null_buffer){true, memory, desc->size_bytes};
    device->memory_bytes += desc->size_bytes;
    nbi_null_count(device->control, 1);
    return NB_OK;
}

static void null_buffer_destroy(void *self, nb_gpu_index index) {
    null_device *device = self;
    null_buffer *buffer = &device->buffers[index];
    nb_hooks_free(&device->hooks, buffer->memory, (size_t)buffer->size_bytes);
    device->memory_bytes -= buffer->size_bytes;
    *buffer = (null_buffer){false, NULL, 0};
    nbi_null_count(device->control, -1);
}

static const void *null_buffer_memory(void *self, nb_gpu_index index) {
    return ((null_device *)self)->buffers[index].memory;
}

static uint64_t image_bytes(const null_image *image) {
    return (uint64_t)image->width * image->height * nb_gpu_format_bytes(image->format);
}

static nb_result null_image_create(void *self, nb_gpu_index index, const nb_gpu_image_desc *desc) {
    null_device *device = self;
    nb_result result = gate(device);
    if (result != NB_OK) return result;
    device->images[index] =
        (null_image){.is_alive = true, .format = desc->format, .width = desc->width, .height = desc->height};
    device->memory_bytes += image_bytes(&device->images[index]);
    nbi_null_count(device->control, 1);
    return NB_OK;
}

static void null_image_destroy(void *self, nb_gpu_index index) {
    null_device *device = self;
    device->memory_bytes -= image_bytes(&device->images[index]);
    device->images[index].is_alive = false;
    nbi_null_count(device->control, -1);
}

static nb_result null_pipeline_create(void *self, nb_gpu_index index, const nb_gpu_pipeline_desc *desc) {
    null_device *device = self;
    (void)desc;
    nb_result result = gate(device);
    if (result != NB_OK) return result;
    device->pipelines[index] = true;
    nbi_null_count(device->control, 1);
    return NB_OK;
}

static void null_pipeline_destroy(void *self, nb_gpu_index index) {
    null_device *device = self;
    device->pipelines[index] = false;
    nbi_null_count(device->control, -1);
}

static nb_result null_frame_memory(void *self, uint32_t slot, nb_gpu_index index, void **memory) {
    null_device *device = self;
    (void)slot;
    size_t size_bytes = device->limits.frame_bytes;
    // Aligned as spans may ask for.
    void *made = nb_hooks_alloc(&device->hooks, size_bytes, NB_GPU_OFFSET_ALIGNMENT, "nb_gpu_create");
    if (made == NULL) return NB_ERR_MEMORY;
    device->buffers[index] = (null_buffer){false, made, size_bytes};
    *memory = made;
    return NB_OK;
}

// --- the fence ---

static void move_on(null_device *device) {
    uint64_t over = device->submitted > device->latency ? device->submitted - device->latency : 0;
    if (!device->is_stuck && over > device->completed) device->completed = over;
}

static nb_result null_completed(void *self, uint64_t *value) {
    null_device *device = self;
    if (device->is_lost) return NB_ERR_LOST;
    if (nbi_null_shows(device->control, NB_GPU_NULL_STUCK)) device->is_stuck = true;
    if (nbi_null_shows(device->control, NB_GPU_NULL_GO)) device->is_stuck = false;
    move_on(device);
    *value = device->completed;
    if (nbi_null_shows(device->control, NB_GPU_NULL_JUMP)) *value = device->submitted + 1000;
    if (device->completed > 0 && nbi_null_shows(device->control, NB_GPU_NULL_BACK)) *value = device->completed - 1;
    return NB_OK;
}

static nb_result null_wait(void *self, uint64_t value, uint64_t timeout_ns) {
    null_device *device = self;
    if (device->is_lost) return NB_ERR_LOST;
    move_on(device);
    bool is_over = value <= device->completed;
    bool can_be = !device->is_stuck && timeout_ns != 0 && value <= device->submitted;
    if (!is_over && can_be) device->completed = value;
    return is_over || can_be ? NB_OK : NB_TIMEOUT;
}

static nb_result null_times(void *self, nb_gpu_times *out) {
    const null_device *device = self;
    if (device->pass_ns == 0) return NB_EMPTY;
    *out = (nb_gpu_times){device->completed, 1, &device->begin_ns, &device->picture_ns};
    return NB_OK;
}

// --- the surface ---

static nb_result null_acquire(void *self, uint32_t slot, nb_gpu_index index, uint32_t *width, uint32_t *height) {
    null_device *device = self;
    (void)slot;
    if (device->is_lost) return NB_ERR_LOST;
    if (nbi_null_shows(device->control, NB_GPU_NULL_OUT_OF_DATE)) return NB_ERR_STALE;
    null_image *image = &device->images[index];
    image->format = NB_GPU_FORMAT_RGBA8;
    *width = image->width = device->width;
    *height = image->height = device->height;
    return NB_OK;
}

static nb_result null_surface_resize(void *self, uint32_t width, uint32_t height, bool is_vsync_off) {
    null_device *device = self;
    (void)is_vsync_off;
    if (device->is_lost) return NB_ERR_LOST;
    device->width = width;
    device->height = height;
    return NB_OK;
}

static nb_result null_present(void *self, uint32_t slot) {
    null_device *device = self;
    (void)slot;
    if (device->is_lost) return NB_ERR_LOST;
    if (nbi_null_shows(device->control, NB_GPU_NULL_PRESENT)) return NB_ERR_OS;
    return nbi_null_shows(device->control, NB_GPU_NULL_OUT_OF_DATE) ? NB_ERR_STALE : NB_OK;
}

// --- recording ---

static nb_result null_frame_reset(void *self, uint32_t slot) {
    null_device *device = self;
    (void)slot;
    nbi_atomic_store_relaxed_u32(&device->copy_count, 0);
    return device->is_lost ? NB_ERR_LOST : NB_OK;
}

static nb_result null_item_begin(void *self, uint32_t slot, const nb_gpu_item *item, const nb_graph_plan *plan,
                                 const nb_gpu_index *resources) {
    (void)self, (void)slot, (void)item, (void)plan, (void)resources;
    return NB_OK;
}

static nb_result null_item_end(void *self, uint32_t slot, const nb_gpu_item *item) {
    (void)self, (void)slot, (void)item;
    return NB_OK;
}

static void null_set_pipeline(void *self, const nb_gpu_item *item, nb_gpu_index pipeline) {
    (void)self, (void)item, (void)pipeline;
}

static nb_result null_set_bindings(void *self, const nb_gpu_item *item, nb_gpu_index pipeline,
                                   const nb_gpu_bindings *bindings) {
    (void)self, (void)item, (void)pipeline, (void)bindings;
    return NB_OK;
}

static void null_set_indices(void *self, const nb_gpu_item *item, nb_gpu_index buffer, uint64_t offset) {
    (void)self, (void)item, (void)buffer, (void)offset;
}

static void null_push(void *self, const nb_gpu_item *item, nb_gpu_index pipeline, const void *bytes,
                      size_t size_bytes) {
    (void)self, (void)item, (void)pipeline, (void)bytes, (void)size_bytes;
}

static void null_set_rect(void *self, const nb_gpu_item *item, nb_gpu_rect rect) { (void)self, (void)item, (void)rect; }

static void null_draw(void *self, const nb_gpu_item *item, const nb_gpu_draw_args *args) {
    (void)self, (void)item, (void)args;
}

static void null_draw_indexed(void *self, const nb_gpu_item *item, uint32_t index_count, uint32_t instance_count,
                              uint32_t first_index, int32_t vertex_offset, uint32_t first_instance) {
    (void)self, (void)item, (void)index_count, (void)instance_count;
    (void)first_index, (void)vertex_offset, (void)first_instance;
}

static void null_draw_indirect(void *self, const nb_gpu_item *item, nb_gpu_index buffer, uint64_t offset,
                               uint32_t count) {
    (void)self, (void)item, (void)buffer, (void)offset, (void)count;
}

static void null_dispatch(void *self, const nb_gpu_item *item, uint32_t x, uint32_t y, uint32_t z) {
    (void)self, (void)item, (void)x, (void)y, (void)z;
}

// Lanes add at once; the order of the plan is brought about when they are done.
static void keep_copy(null_device *device, null_copy copy) {
    uint32_t index = nbi_atomic_fetch_add_relaxed_u32(&device->copy_count, 1);
    if (index < COPY_COUNT_MAX) device->copies[index] = copy;
}

static void null_copy_buffer(void *self, const nb_gpu_item *item, nb_gpu_index from, uint64_t from_offset,
                             nb_gpu_index to, uint64_t to_offset, uint64_t size_bytes) {
    keep_copy(self, (null_copy){item->index, false, from, to, from_offset, to_offset, size_bytes});
}

static void null_copy_to_buffer(void *self, const nb_gpu_item *item, nb_gpu_index from, nb_gpu_index to,
                                uint64_t to_offset) {
    keep_copy(self, (null_copy){item->index, true, from, to, 0, to_offset, 0});
}

// --- handing over ---

static uint8_t to_byte(float value) {
    float scaled = value * 255.0f + 0.5f;
    return scaled <= 0.0f ? 0 : scaled >= 255.0f ? 255 : (uint8_t)scaled;
}

// The first colour of each image that a pass clears.
static void note_clears(null_device *device, const nb_gpu_submit *submit) {
    const nb_graph_plan *plan = submit->plan;
    for (uint32_t i = 0; i < plan->resource_count; ++i) {
        nb_gpu_index index = submit->resources[i];
        bool is_image = !plan->resources[i].is_buffer && plan->resources[i].is_used;
        if (is_image && index < device->limits.image_count_max) device->images[index].is_cleared = false;
    }
    for (uint32_t i = 0; i < plan->step_count; ++i) {
        for (uint32_t j = 0; j < plan->steps[i].color_count; ++j) {
            const nb_graph_attachment *color = &plan->steps[i].colors[j];
            null_image *image = &device->images[submit->resources[color->resource]];
            if (!color->is_cleared || image->is_cleared) continue;
            image->is_cleared = true;
            memcpy(image->clear, color->clear.value, sizeof image->clear);
        }
    }
}

static void do_copy(null_device *device, const null_copy *copy) {
    null_buffer *to = &device->buffers[copy->to];
    if (to->memory == NULL) return;
    uint8_t *bytes = (uint8_t *)to->memory + copy->to_offset;
    if (!copy->is_image) {
        const null_buffer *from = &device->buffers[copy->from];
        if (from->memory != NULL)
            memmove(bytes, (const uint8_t *)from->memory + copy->from_offset, (size_t)copy->size_bytes);
        return;
    }
    const null_image *image = &device->images[copy->from];
    if (nb_gpu_format_bytes(image->format) != 4) return;
    uint8_t pixel[4];
    for (uint32_t i = 0; i < 4; ++i) pixel[i] = image->is_cleared ? to_byte(image->clear[i]) : 0;
    for (uint64_t i = 0; i < image_bytes(image); i += 4) memcpy(bytes + i, pixel, 4);
}

// By item: the lanes have added them in any order.
static void do_copies(null_device *device) {
    uint32_t count = nbi_atomic_load_relaxed_u32(&device->copy_count);
    if (count > COPY_COUNT_MAX) count = COPY_COUNT_MAX;
    for (uint32_t i = 1; i < count; ++i) {
        null_copy copy = device->copies[i];
        uint32_t index = i;
        for (; index > 0 && device->copies[index - 1].item > copy.item; --index)
            device->copies[index] = device->copies[index - 1];
        device->copies[index] = copy;
    }
    for (uint32_t i = 0; i < count; ++i) do_copy(device, &device->copies[i]);
    nbi_atomic_store_relaxed_u32(&device->copy_count, 0);
}

static nb_result null_submit(void *self, const nb_gpu_submit *submit) {
    null_device *device = self;
    if (nbi_null_shows(device->control, NB_GPU_NULL_LOST)) device->is_lost = true;
    nb_result result = gate(device);
    if (result != NB_OK) return result;
    note_clears(device, submit);
    do_copies(device);
    device->submitted = submit->value;
    device->picture_ns = device->pass_ns * submit->plan->step_count;
    return NB_OK;
}

static void null_memory(void *self, uint64_t *used_bytes, uint64_t *budget_bytes) {
    *used_bytes = ((null_device *)self)->memory_bytes;
    *budget_bytes = 0;
}

const nb_gpu_backend *nb_gpu_null_backend(void) {
    static const nb_gpu_backend backend = {.name = "null",
                                           .create = null_create,
                                           .destroy = null_destroy,
                                           .buffer_create = null_buffer_create,
                                           .buffer_destroy = null_buffer_destroy,
                                           .buffer_memory = null_buffer_memory,
                                           .image_create = null_image_create,
                                           .image_destroy = null_image_destroy,
                                           .pipeline_create = null_pipeline_create,
                                           .pipeline_destroy = null_pipeline_destroy,
                                           .frame_memory = null_frame_memory,
                                           .completed = null_completed,
                                           .wait = null_wait,
                                           .times = null_times,
                                           .acquire = null_acquire,
                                           .surface_resize = null_surface_resize,
                                           .present = null_present,
                                           .frame_reset = null_frame_reset,
                                           .item_begin = null_item_begin,
                                           .item_end = null_item_end,
                                           .set_pipeline = null_set_pipeline,
                                           .set_bindings = null_set_bindings,
                                           .set_indices = null_set_indices,
                                           .push = null_push,
                                           .set_viewport = null_set_rect,
                                           .set_scissor = null_set_rect,
                                           .draw = null_draw,
                                           .draw_indexed = null_draw_indexed,
                                           .draw_indirect = null_draw_indirect,
                                           .dispatch = null_dispatch,
                                           .copy_buffer = null_copy_buffer,
                                           .copy_to_buffer = null_copy_to_buffer,
                                           .submit = null_submit,
                                           .memory = null_memory};
    return &backend;
}
