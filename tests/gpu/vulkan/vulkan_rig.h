// SPDX-License-Identifier: MIT
#pragma once

// The backend without the device above it: objects under numbers of the test's choice, a graph of the test's making,
// and a picture that is recorded by one thread, waited for, and read back.

#include "gpu/vulkan/gpu_vulkan_fixture.h"

#include "gpu/vulkan/vulkan.h"
#include "nebula/report.h"

#define RIG_FRAME_BYTES ((size_t)1 << 20)
#define RIG_FRAME_BUFFER 30u // and 31: memory of the two frames
#define RIG_RESOURCE_COUNT_MAX 32u
#define RIG_ITEM_COUNT_MAX 64u

typedef struct rig {
    const nb_gpu_backend *b;
    void *self;
    nbi_vulkan *v; // the same
    nb_gpu_backend_info info;
    vulkan_log log;
    test_heap heap;
    nb_hooks hooks;
    nb_graph *graph;
    const nb_graph_plan *plan;
    nb_gpu_index resources[RIG_RESOURCE_COUNT_MAX];
    nb_gpu_item items[RIG_ITEM_COUNT_MAX];
    uint32_t item_count;
    uint32_t slot;
    uint64_t value;
    void *memory[2];
} rig;

static inline nb_gpu_backend_create rig_create_desc(rig *r, const nb_gpu_vulkan_desc *desc) {
    return (nb_gpu_backend_create){.desc = desc,
                                   .limits = {.frames_in_flight = 2,
                                              .lane_count = 2,
                                              .buffer_count_max = 32,
                                              .image_count_max = 32,
                                              .pipeline_count_max = 8,
                                              .pass_count_max = 32,
                                              .item_count_max = RIG_ITEM_COUNT_MAX,
                                              .frame_bytes = RIG_FRAME_BYTES},
                                   .width = 64,
                                   .height = 64,
                                   .hooks = &r->hooks};
}

static inline void rig_open(rig *r, const nb_gpu_vulkan_desc *desc) {
    memset(r, 0, sizeof *r);
    if (is_vulkan_left_out()) skip();
    vulkan_keep_loaded();
    r->hooks = vulkan_hooks(&r->log, &r->heap);
    nb_hooks resolved = nb_hooks_resolve(&r->hooks);
    r->hooks = resolved;
    nb_gpu_backend_create create = rig_create_desc(r, desc);
    r->b = nb_gpu_vulkan_backend();
    vulkan_skip_unless(r->b->create(&create, &r->self, &r->info), r->log.last[NB_LOG_ERROR]);
    r->v = (nbi_vulkan *)r->self;
    if (is_vulkan_needed() && desc != NULL && desc->is_validated)
        assert_int_equal(vulkan_log_count(&r->log, NB_ITEM_VULKAN_LAYER), 0);
    for (uint32_t i = 0; i < 2; ++i)
        assert_int_equal(r->b->frame_memory(r->self, i, RIG_FRAME_BUFFER + i, &r->memory[i]), NB_OK);
    assert_int_equal(nb_graph_create(&(nb_graph_desc){.hooks = r->hooks}, &r->graph), NB_OK);
    assert_int_equal(nb_graph_begin(r->graph), NB_OK);
}

static inline void rig_open_validated(rig *r) { rig_open(r, &(nb_gpu_vulkan_desc){.is_validated = true}); }

// Nothing is left: of our own objects, and of Vulkan's, which the validation layer counts. Returns how many messages it
// had.
static inline uint32_t rig_close_count(rig *r) {
    nb_graph_destroy(r->graph);
    r->b->destroy(r->self);
    assert_int_equal(r->heap.live_count.value, 0);
    return nbi_atomic_load_seq_cst_u32(&r->log.message_count);
}

static inline void rig_close(rig *r) { assert_int_equal(rig_close_count(r), 0); }

// --- the graph ---

// What nebula knows as the resource is the object under this number.
static inline void rig_is(rig *r, nb_graph_resource resource, nb_gpu_index index) {
    uint32_t at = 0;
    assert_int_equal(nb_graph_resource_index(r->graph, resource, &at), NB_OK);
    r->resources[at] = index;
}

static inline nb_graph_resource rig_image(rig *r, const char *name, nb_gpu_format format, uint32_t side,
                                          nb_gpu_access before, nb_gpu_access after) {
    nb_graph_import_desc desc = {
        .name = name, .format = format, .width = side, .height = side, .before = before, .after = after};
    nb_graph_resource out = {0};
    assert_int_equal(nb_graph_import(r->graph, &desc, &out), NB_OK);
    return out;
}

static inline nb_graph_resource rig_buffer(rig *r, const char *name, nb_gpu_access before, nb_gpu_access after) {
    nb_graph_import_desc desc = {.name = name, .is_buffer = true, .before = before, .after = after};
    nb_graph_resource out = {0};
    assert_int_equal(nb_graph_import(r->graph, &desc, &out), NB_OK);
    return out;
}

static inline nb_graph_pass rig_pass(rig *r, const char *name, nb_gpu_pass_kind kind, uint32_t bucket_count) {
    nb_graph_pass_desc desc = {.name = name, .kind = kind, .bucket_count = bucket_count, .is_kept = true};
    nb_graph_pass out = {0};
    assert_int_equal(nb_graph_pass_add(r->graph, &desc, &out), NB_OK);
    return out;
}

static inline void rig_use(rig *r, nb_graph_pass pass, nb_graph_resource resource, nb_gpu_access access) {
    assert_int_equal(nb_graph_use(r->graph, pass, resource, access), NB_OK);
}

static inline void rig_clear(rig *r, nb_graph_pass pass, nb_graph_resource resource, float red, float green,
                             float blue) {
    nb_gpu_clear clear = {{red, green, blue, 1}};
    assert_int_equal(nb_graph_clear(r->graph, pass, resource, clear), NB_OK);
}

static inline void rig_compile(rig *r) {
    assert_int_equal(nb_graph_compile(r->graph, &r->plan), NB_OK);
    assert_int_equal(r->b->frame_reset(r->self, r->slot), NB_OK);
    r->item_count = 0;
}

// --- a picture ---

static inline nb_gpu_item rig_item_begin(rig *r, uint32_t step, uint32_t bucket, uint32_t lane) {
    nb_gpu_item item = {.step = step, .bucket = bucket, .lane = lane, .index = r->item_count};
    r->items[r->item_count++] = item;
    assert_int_equal(r->b->item_begin(r->self, r->slot, &item, r->plan, r->resources), NB_OK);
    return item;
}

static inline void rig_item_end(rig *r, const nb_gpu_item *item) {
    assert_int_equal(r->b->item_end(r->self, r->slot, item), NB_OK);
}

// An item that copies a buffer.
static inline void rig_copy(rig *r, uint32_t step, uint32_t from, uint32_t to, uint64_t size_bytes) {
    nb_gpu_item item = rig_item_begin(r, step, 0, 0);
    r->b->copy_buffer(r->self, &item, from, 0, to, 0, size_bytes);
    rig_item_end(r, &item);
}

static inline nb_gpu_submit rig_submit_desc(rig *r, const nb_gpu_upload *uploads, uint32_t upload_count) {
    return (nb_gpu_submit){.slot = r->slot,
                           .value = r->value + 1,
                           .plan = r->plan,
                           .resources = r->resources,
                           .item_count = r->item_count,
                           .items = r->items,
                           .uploads = uploads,
                           .upload_count = upload_count};
}

static inline void rig_submit(rig *r, const nb_gpu_upload *uploads, uint32_t upload_count) {
    nb_gpu_submit submit = rig_submit_desc(r, uploads, upload_count);
    assert_int_equal(r->b->submit(r->self, &submit), NB_OK);
    ++r->value;
    r->slot = (r->slot + 1) % 2;
}

// Waits for what was handed over, and begins the next graph.
static inline void rig_finish(rig *r) {
    assert_int_equal(r->b->wait(r->self, r->value, UINT64_C(30000000000)), NB_OK);
    uint64_t reached = 0;
    assert_int_equal(r->b->completed(r->self, &reached), NB_OK);
    assert_int_equal(reached, r->value);
    assert_int_equal(nb_graph_begin(r->graph), NB_OK);
}

// --- objects ---

static inline void rig_make_image(rig *r, nb_gpu_index index, nb_gpu_format format, uint32_t side,
                                  nb_gpu_access access) {
    nb_gpu_image_desc desc = {.name = "image", .format = format, .width = side, .height = side, .access = access};
    assert_int_equal(r->b->image_create(r->self, index, &desc), NB_OK);
}

static inline void rig_make_buffer(rig *r, nb_gpu_index index, uint64_t size_bytes, nb_gpu_memory memory) {
    nb_gpu_buffer_desc desc = {.name = "buffer", .size_bytes = size_bytes, .memory = memory};
    assert_int_equal(r->b->buffer_create(r->self, index, &desc), NB_OK);
}

#define RIG_SHADER(words) \
    { (words), sizeof(words) }
