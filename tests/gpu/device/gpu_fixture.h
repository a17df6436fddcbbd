// SPDX-License-Identifier: MIT
#pragma once

// What the tests of the device share: a null device with a control, a clock and a heap that is checked when it is
// closed, and a frame by hand.

#include "support/support.h"

#include "nebula/clock.h"
#include "nebula/gpu.h"
#include "nebula/gpu_backend.h"
#include "nebula/gpu_command.h"
#include "nebula/gpu_null.h"

typedef struct gpu_rig {
    nb_gpu *gpu;
    nb_gpu_null *control;
    nb_gpu_null_desc null_desc;
    nb_clock_manual clock;
    test_heap heap;
    test_log log;
} gpu_rig;

// Small pools: a test makes many.
static inline nb_gpu_desc gpu_rig_desc(void) {
    nb_gpu_desc desc = {.width = 64, .height = 32, .frame_bytes = 65536, .lane_count = 4};
    desc.buffer_count_max = 64, desc.image_count_max = 32, desc.pipeline_count_max = 16;
    desc.graph = (nb_graph_desc){.pass_count_max = 32, .resource_count_max = 32, .use_count_max = 128};
    return desc;
}

static inline nb_result gpu_rig_try(gpu_rig *r, nb_gpu_desc desc, nb_gpu_null_desc null_desc) {
    r->null_desc = null_desc;
    r->null_desc.control = r->control;
    if (desc.backend == NULL) desc.backend = nb_gpu_null_backend();
    desc.backend_desc = &r->null_desc;
    desc.clock = nb_clock_manual_get(&r->clock);
    desc.hooks = test_hooks(&r->log, &r->heap);
    return nb_gpu_create(&desc, &r->gpu);
}

static inline void gpu_rig_open_as(gpu_rig *r, nb_gpu_desc desc, nb_gpu_null_desc null_desc) {
    memset(r, 0, sizeof *r);
    nb_clock_manual_init(&r->clock, 1);
    assert_int_equal(nb_gpu_null_create(NULL, &r->control), NB_OK);
    assert_int_equal(gpu_rig_try(r, desc, null_desc), NB_OK);
}

static inline void gpu_rig_open(gpu_rig *r) { gpu_rig_open_as(r, gpu_rig_desc(), (nb_gpu_null_desc){0}); }

static inline void gpu_rig_close(gpu_rig *r) {
    assert_int_equal(nb_gpu_destroy(r->gpu), NB_OK);
    assert_int_equal(nb_gpu_null_object_count(r->control), 0);
    nb_gpu_null_destroy(r->control);
    assert_int_equal(r->heap.live_count.value, 0);
}

static inline nb_gpu_stats gpu_stats(const gpu_rig *r) { return nb_gpu_stats_get(r->gpu); }

// Every frame has a picture, or is counted as one that has none.
static inline void assert_accounted(const nb_gpu_stats *s) {
    assert_int_equal(s->frame_count, s->submit_count + s->skipped_behind_count + s->skipped_late_count +
                                         s->skipped_hidden_count + s->skipped_lost_count + s->skipped_failed_count);
}

// A pass that clears the back buffer, and what else a test records in it.
typedef struct gpu_pass {
    const char *name; // NULL = "main"
    nb_graph_record_fn record;
    void *user;
    uint32_t bucket_count;
} gpu_pass;

static inline nb_graph_pass gpu_pass_add(nb_gpu *gpu, gpu_pass pass) {
    nb_graph_pass added = {0};
    nb_graph_pass_desc desc = {.name = pass.name != NULL ? pass.name : "main",
                               .kind = NB_GPU_PASS_RENDER,
                               .record = pass.record,
                               .user = pass.user,
                               .bucket_count = pass.bucket_count};
    nb_graph_resource back = nb_gpu_backbuffer(gpu, NULL, NULL);
    assert_int_equal(nb_graph_pass_add(nb_gpu_graph(gpu), &desc, &added), NB_OK);
    assert_int_equal(nb_graph_use(nb_gpu_graph(gpu), added, back, NB_GPU_ACCESS_COLOR), NB_OK);
    nb_gpu_clear clear = {{0.25f, 0.5f, 1.0f, 1.0f}};
    assert_int_equal(nb_graph_clear(nb_gpu_graph(gpu), added, back, clear), NB_OK);
    return added;
}

// From the compiled graph to the end, on this thread.
static inline nb_result gpu_finish(nb_gpu *gpu) {
    nb_result compiled = nb_gpu_frame_compile(gpu), recorded = nb_gpu_frame_record(gpu, 0);
    nb_result submitted = nb_gpu_frame_submit(gpu), ended = nb_gpu_frame_end(gpu);
    if (compiled < 0) return compiled;
    if (recorded < 0) return recorded;
    return submitted != NB_OK ? submitted : ended;
}

// A whole frame with one pass. Without a picture: what begin returned.
static inline nb_result gpu_frame(nb_gpu *gpu, gpu_pass pass) {
    nb_result begun = nb_gpu_frame_begin(gpu);
    if (begun == NB_OK) gpu_pass_add(gpu, pass);
    nb_result finished = gpu_finish(gpu);
    return begun != NB_OK ? begun : finished;
}

static inline nb_gpu_buffer gpu_buffer(nb_gpu *gpu, uint64_t size_bytes, nb_gpu_memory memory) {
    nb_gpu_buffer buffer = {0};
    nb_gpu_buffer_desc desc = {.name = "test", .size_bytes = size_bytes, .memory = memory};
    assert_int_equal(nb_gpu_buffer_create(gpu, &desc, &buffer), NB_OK);
    return buffer;
}

static inline nb_gpu_image gpu_image(nb_gpu *gpu, uint32_t size, nb_gpu_access access) {
    nb_gpu_image image = {0};
    nb_gpu_image_desc desc = {.format = NB_GPU_FORMAT_RGBA8, .width = size, .height = size, .access = access};
    assert_int_equal(nb_gpu_image_create(gpu, &desc, &image), NB_OK);
    return image;
}

static const uint32_t gpu_words[4] = {0x07230203, 1, 2, 3};

// One that draws to the back buffer.
static inline nb_gpu_pipeline_desc gpu_drawing(void) {
    return (nb_gpu_pipeline_desc){
        .vertex = {gpu_words, 16}, .fragment = {gpu_words, 16}, .colors = {NB_GPU_FORMAT_RGBA8}, .color_count = 1};
}

static inline nb_gpu_pipeline gpu_pipeline(nb_gpu *gpu, nb_gpu_pipeline_desc desc) {
    nb_gpu_pipeline pipeline = {0};
    assert_int_equal(nb_gpu_pipeline_create(gpu, &desc, &pipeline), NB_OK);
    return pipeline;
}
