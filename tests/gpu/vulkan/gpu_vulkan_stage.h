// SPDX-License-Identifier: MIT
#pragma once

// A Vulkan device with validation and without an engine: frames by hand, on one thread, whose pictures and numbers are
// read back.

#include "gpu/vulkan/gpu_vulkan_fixture.h"

#include "nebula/gpu.h"
#include "nebula/gpu_backend.h"
#include "nebula/gpu_command.h"

#define STAGE_WAIT_NS UINT64_C(60000000000)
#define STAGE_SHADER(words) \
    { (words), sizeof(words) }

typedef struct stage {
    nb_gpu *gpu;
    nb_gpu_vulkan_desc vulkan; // a lost device is made anew with it
    vulkan_log log;
    test_heap heap;
} stage;

static inline void stage_open_as(stage *s, nb_gpu_desc desc, nb_gpu_vulkan_desc vulkan) {
    memset(s, 0, sizeof *s);
    if (is_vulkan_left_out()) skip();
    vulkan_keep_loaded();
    s->vulkan = vulkan;
    s->vulkan.is_validated = true;
    desc.backend = nb_gpu_vulkan_backend();
    desc.backend_desc = &s->vulkan;
    desc.wait_ns = desc.stuck_ns = STAGE_WAIT_NS; // however slow the machine is
    desc.hooks = vulkan_hooks(&s->log, &s->heap);
    vulkan_skip_unless(nb_gpu_create(&desc, &s->gpu), s->log.last[NB_LOG_ERROR]);
    if (is_vulkan_needed()) assert_int_equal(vulkan_log_count(&s->log, NB_ITEM_VULKAN_LAYER), 0);
}

// Small: a test makes many.
static inline nb_gpu_desc stage_desc(uint32_t width, uint32_t height) {
    return (nb_gpu_desc){.width = width,
                         .height = height,
                         .frame_bytes = 1u << 18,
                         .buffer_count_max = 64,
                         .image_count_max = 32,
                         .pipeline_count_max = 16,
                         .lane_count = 4,
                         .graph = {.pass_count_max = 64, .resource_count_max = 64, .use_count_max = 256}};
}

static inline void stage_open(stage *s, uint32_t width, uint32_t height) {
    stage_open_as(s, stage_desc(width, height), (nb_gpu_vulkan_desc){0});
}

// No command was refused, the validation layer had nothing to say, and nothing is left.
static inline void stage_close(stage *s) {
    assert_int_equal(nb_gpu_stats_get(s->gpu).misuse_count, 0);
    assert_int_equal(nb_gpu_vulkan_message_count(s->gpu), 0);
    assert_int_equal(nb_gpu_destroy(s->gpu), NB_OK);
    assert_int_equal(nbi_atomic_load_seq_cst_u32(&s->log.message_count), 0);
    assert_int_equal(s->heap.live_count.value, 0);
}

// --- objects ---

static inline nb_gpu_buffer stage_buffer(stage *s, uint64_t size_bytes, nb_gpu_memory memory) {
    nb_gpu_buffer out = {0};
    nb_gpu_buffer_desc desc = {.size_bytes = size_bytes, .memory = memory};
    assert_int_equal(nb_gpu_buffer_create(s->gpu, &desc, &out), NB_OK);
    return out;
}

static inline nb_gpu_image stage_image(stage *s, nb_gpu_format format, uint32_t width, uint32_t height, uint32_t layers,
                                       nb_gpu_access access) {
    nb_gpu_image out = {0};
    nb_gpu_image_desc desc = {
        .format = format, .width = width, .height = height, .layer_count = layers, .access = access};
    assert_int_equal(nb_gpu_image_create(s->gpu, &desc, &out), NB_OK);
    return out;
}

static inline nb_gpu_pipeline stage_pipeline(stage *s, nb_gpu_pipeline_desc desc) {
    nb_gpu_pipeline out = {0};
    assert_int_equal(nb_gpu_pipeline_create(s->gpu, &desc, &out), NB_OK);
    return out;
}

// --- a frame ---

static inline nb_graph *stage_begin(stage *s) {
    assert_int_equal(nb_gpu_frame_begin(s->gpu), NB_OK);
    return nb_gpu_graph(s->gpu);
}

static inline void stage_end(stage *s) {
    assert_int_equal(nb_gpu_frame_compile(s->gpu), NB_OK);
    assert_int_equal(nb_gpu_frame_record(s->gpu, 0), NB_OK);
    assert_int_equal(nb_gpu_frame_submit(s->gpu), NB_OK);
    assert_int_equal(nb_gpu_frame_end(s->gpu), NB_OK);
}

static inline void stage_wait(stage *s) { assert_int_equal(nb_gpu_wait_idle(s->gpu, STAGE_WAIT_NS), NB_OK); }

static inline nb_graph_pass stage_pass(nb_graph *graph, const char *name, nb_gpu_pass_kind kind,
                                       nb_graph_record_fn record, void *user) {
    nb_graph_pass out = {0};
    nb_graph_pass_desc desc = {.name = name, .kind = kind, .record = record, .user = user, .is_kept = true};
    assert_int_equal(nb_graph_pass_add(graph, &desc, &out), NB_OK);
    return out;
}

static inline void stage_use(nb_graph *graph, nb_graph_pass pass, nb_graph_resource resource, nb_gpu_access access) {
    assert_int_equal(nb_graph_use(graph, pass, resource, access), NB_OK);
}

static inline nb_graph_resource stage_transient(nb_graph *graph, const char *name, nb_gpu_format format, uint32_t width,
                                                uint32_t height) {
    nb_graph_resource out = {0};
    nb_graph_image_desc desc = {name, format, width, height};
    assert_int_equal(nb_graph_image_add(graph, &desc, &out), NB_OK);
    return out;
}

static inline nb_graph_resource stage_transient_buffer(nb_graph *graph, const char *name, uint64_t size_bytes) {
    nb_graph_resource out = {0};
    nb_graph_buffer_desc desc = {name, size_bytes};
    assert_int_equal(nb_graph_buffer_add(graph, &desc, &out), NB_OK);
    return out;
}

// Memory of the frame with these bytes in it.
static inline nb_gpu_span stage_span(stage *s, const void *bytes, size_t size_bytes, size_t alignment) {
    nb_gpu_span span = {0};
    assert_int_equal(nb_gpu_frame_alloc(s->gpu, size_bytes, alignment, &span), NB_OK);
    memcpy(span.memory, bytes, size_bytes);
    return span;
}

static inline void stage_upload(stage *s, nb_gpu_buffer to, uint64_t offset, const void *bytes, size_t size_bytes) {
    nb_gpu_span span = stage_span(s, bytes, size_bytes, 0);
    assert_int_equal(nb_gpu_upload_buffer(s->gpu, span, to, offset), NB_OK);
}

// A pass that clears the back buffer and draws to it, and the picture as it comes out.
static inline nb_graph_pass stage_draw(stage *s, nb_graph_record_fn record, void *user) {
    nb_graph *graph = nb_gpu_graph(s->gpu);
    nb_graph_resource back = nb_gpu_backbuffer(s->gpu, NULL, NULL);
    nb_graph_pass pass = stage_pass(graph, "draw", NB_GPU_PASS_RENDER, record, user);
    stage_use(graph, pass, back, NB_GPU_ACCESS_COLOR);
    nb_gpu_clear clear = {{0, 0, 1, 1}};
    assert_int_equal(nb_graph_clear(graph, pass, back, clear), NB_OK);
    return pass;
}

static inline nb_gpu_capture stage_capture(stage *s) {
    assert_int_equal(nb_gpu_capture_ask(s->gpu), NB_OK);
    stage_end(s);
    nb_gpu_capture out = {0};
    assert_int_equal(nb_gpu_capture_take(s->gpu, STAGE_WAIT_NS, &out), NB_OK);
    return out;
}

static inline uint32_t stage_pixel(const nb_gpu_capture *capture, uint32_t x, uint32_t y) {
    const uint8_t *pixel = capture->pixels + 4 * ((size_t)y * capture->width + x);
    return (uint32_t)pixel[0] << 24 | (uint32_t)pixel[1] << 16 | (uint32_t)pixel[2] << 8 | pixel[3];
}
