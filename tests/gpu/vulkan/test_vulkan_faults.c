// SPDX-License-Identifier: MIT
// What the driver refuses: every function of it that can fail does so here, by a stand-in of the test. The result is
// the right one, nothing is left behind (the validation layer counts Vulkan's objects), and what can go on does.

#include "gpu/vulkan/vulkan_rig.h"

#include "shaders/color.frag.h"
#include "shaders/fill.comp.h"
#include "shaders/mesh.vert.h"

#define MIB UINT64_C(1048576)

// --- beginnings that fail ---

static nb_result open_failing(rig *r, const nb_gpu_vulkan_desc *desc) {
    memset(r, 0, sizeof *r);
    if (is_vulkan_left_out()) skip();
    vulkan_keep_loaded();
    nb_hooks hooks = vulkan_hooks(&r->log, &r->heap);
    r->hooks = nb_hooks_resolve(&hooks);
    nb_gpu_backend_create create = rig_create_desc(r, desc);
    r->b = nb_gpu_vulkan_backend();
    return r->b->create(&create, &r->self, &r->info);
}

TEST(missing_loader_is_said_in_one_line) {
    static rig r;
    assert_int_equal(open_failing(&r, &(nb_gpu_vulkan_desc){.loader = "libno_such.so"}), NB_ERR_UNSUPPORTED);
    assert_int_equal(vulkan_log_count(&r.log, NB_ITEM_VULKAN_LOADER), 1);
    assert_non_null(strstr(r.log.last[NB_LOG_ERROR], "libno_such.so"));
    assert_int_equal(r.heap.live_count.value, 0);
}

TEST(library_that_is_no_loader_is_refused) {
    static rig r;
    assert_int_equal(open_failing(&r, &(nb_gpu_vulkan_desc){.loader = "libcmocka.so.0"}), NB_ERR_UNSUPPORTED);
    assert_int_equal(vulkan_log_count(&r.log, NB_ITEM_VULKAN_LOADER), 1);
    assert_int_equal(r.heap.live_count.value, 0);
}

TEST(device_of_another_name_is_not_taken) {
    static rig r;
    rig_open(&r, &(nb_gpu_vulkan_desc){0});
    rig_close(&r);
    assert_int_equal(open_failing(&r, &(nb_gpu_vulkan_desc){.device = "no such device"}), NB_ERR_UNSUPPORTED);
    assert_non_null(strstr(r.log.last[NB_LOG_ERROR], "no such device"));
    assert_non_null(strstr(r.log.last[NB_LOG_WARNING], "the name that is asked for"));
    assert_int_equal(r.heap.live_count.value, 0);
}

static bool no_surface(void *user, void *instance, uint64_t *surface) {
    (void)user, (void)instance;
    *surface = 0;
    return false;
}

TEST(window_without_surface_is_refused) {
    static rig r;
    rig_open(&r, &(nb_gpu_vulkan_desc){0});
    rig_close(&r);
    nb_gpu_vulkan_desc desc = {.window = {.surface_create = no_surface}};
    assert_int_equal(open_failing(&r, &desc), NB_ERR_UNSUPPORTED);
    assert_int_equal(vulkan_log_count(&r.log, NB_ITEM_VULKAN_SURFACE), 1);
    const char *extensions[] = {"VK_NB_no_such_extension"};
    desc.window = (nb_gpu_vulkan_window){extensions, 1, no_surface, NULL};
    assert_int_equal(open_failing(&r, &desc), NB_ERR_UNSUPPORTED);
    assert_non_null(strstr(r.log.last[NB_LOG_ERROR], "VK_ERROR_EXTENSION_NOT_PRESENT"));
    assert_int_equal(r.heap.live_count.value, 0);
}

TEST(beginning_without_memory_leaves_nothing) {
    static rig r;
    rig_open_validated(&r);
    rig_close(&r);
    nb_gpu_vulkan_desc desc = {.is_validated = true};
    for (uint64_t call = 1; call <= 3; ++call) {
        memset(&r, 0, sizeof r);
        r.heap.fail_at = call;
        nb_hooks hooks = vulkan_hooks(&r.log, &r.heap);
        r.hooks = nb_hooks_resolve(&hooks);
        nb_gpu_backend_create create = rig_create_desc(&r, &desc);
        assert_int_equal(nb_gpu_vulkan_backend()->create(&create, &r.self, &r.info), NB_ERR_MEMORY);
        assert_int_equal(r.heap.live_count.value, 0);
        assert_int_equal(nbi_atomic_load_seq_cst_u32(&r.log.message_count), 0);
    }
}

// --- stand-ins: the call after `after` more fails, once ---

static VkResult refusal;
static uint32_t after;
static nbi_vulkan_functions real;

static bool is_refused(void) {
    if (refusal == VK_SUCCESS || after-- > 0) return false;
    return true;
}

static VkResult refuse(void) {
    VkResult result = refusal;
    refusal = VK_SUCCESS;
    return result;
}

#define STAND_IN(name, parameters, arguments)                         \
    static VKAPI_ATTR VkResult VKAPI_CALL failing_##name parameters { \
        return is_refused() ? refuse() : real.name arguments;         \
    }
typedef const VkAllocationCallbacks *callbacks;
STAND_IN(AllocateMemory, (VkDevice d, const VkMemoryAllocateInfo *i, callbacks c, VkDeviceMemory *o), (d, i, c, o))
STAND_IN(MapMemory, (VkDevice d, VkDeviceMemory m, VkDeviceSize f, VkDeviceSize s, VkMemoryMapFlags g, void **o),
         (d, m, f, s, g, o))
STAND_IN(CreateBuffer, (VkDevice d, const VkBufferCreateInfo *i, callbacks c, VkBuffer *o), (d, i, c, o))
STAND_IN(BindBufferMemory, (VkDevice d, VkBuffer b, VkDeviceMemory m, VkDeviceSize o), (d, b, m, o))
STAND_IN(CreateImage, (VkDevice d, const VkImageCreateInfo *i, callbacks c, VkImage *o), (d, i, c, o))
STAND_IN(BindImageMemory, (VkDevice d, VkImage b, VkDeviceMemory m, VkDeviceSize o), (d, b, m, o))
STAND_IN(CreateImageView, (VkDevice d, const VkImageViewCreateInfo *i, callbacks c, VkImageView *o), (d, i, c, o))
STAND_IN(CreateShaderModule, (VkDevice d, const VkShaderModuleCreateInfo *i, callbacks c, VkShaderModule *o),
         (d, i, c, o))
STAND_IN(CreateGraphicsPipelines,
         (VkDevice d, VkPipelineCache k, uint32_t n, const VkGraphicsPipelineCreateInfo *i, callbacks c, VkPipeline *o),
         (d, k, n, i, c, o))
STAND_IN(CreateComputePipelines,
         (VkDevice d, VkPipelineCache k, uint32_t n, const VkComputePipelineCreateInfo *i, callbacks c, VkPipeline *o),
         (d, k, n, i, c, o))
STAND_IN(CreatePipelineLayout, (VkDevice d, const VkPipelineLayoutCreateInfo *i, callbacks c, VkPipelineLayout *o),
         (d, i, c, o))
STAND_IN(CreateDescriptorSetLayout,
         (VkDevice d, const VkDescriptorSetLayoutCreateInfo *i, callbacks c, VkDescriptorSetLayout *o), (d, i, c, o))
STAND_IN(CreateDescriptorPool, (VkDevice d, const VkDescriptorPoolCreateInfo *i, callbacks c, VkDescriptorPool *o),
         (d, i, c, o))
STAND_IN(AllocateDescriptorSets, (VkDevice d, const VkDescriptorSetAllocateInfo *i, VkDescriptorSet *o), (d, i, o))
STAND_IN(AllocateCommandBuffers, (VkDevice d, const VkCommandBufferAllocateInfo *i, VkCommandBuffer *o), (d, i, o))
STAND_IN(ResetCommandPool, (VkDevice d, VkCommandPool p, VkCommandPoolResetFlags f), (d, p, f))
STAND_IN(BeginCommandBuffer, (VkCommandBuffer b, const VkCommandBufferBeginInfo *i), (b, i))
STAND_IN(EndCommandBuffer, (VkCommandBuffer b), (b))
STAND_IN(QueueSubmit2, (VkQueue q, uint32_t n, const VkSubmitInfo2 *i, VkFence f), (q, n, i, f))
STAND_IN(WaitSemaphores, (VkDevice d, const VkSemaphoreWaitInfo *i, uint64_t t), (d, i, t))
STAND_IN(GetSemaphoreCounterValue, (VkDevice d, VkSemaphore s, uint64_t *o), (d, s, o))

static void fail_next(rig *r, VkResult result, uint32_t calls_before) {
    refusal = result;
    after = calls_before;
    (void)r;
}

#define HOOK(name) (real.name = r->v->vk.name, r->v->vk.name = failing_##name)
#define UNHOOK(name) (r->v->vk.name = real.name)

// --- objects ---

static nb_result make_buffer(rig *r) {
    return r->b->buffer_create(r->self, 0, &(nb_gpu_buffer_desc){.name = "buffer", .size_bytes = 1000});
}

// Memory that is mapped: a block of its own, as it is large.
static nb_result make_readback(rig *r) {
    return r->b->buffer_create(
        r->self, 1,
        &(nb_gpu_buffer_desc){.name = "readback", .size_bytes = 20 * MIB, .memory = NB_GPU_MEMORY_READBACK});
}

static nb_result make_image(rig *r) {
    nb_gpu_image_desc desc = {.name = "image",
                              .format = NB_GPU_FORMAT_RGBA8,
                              .width = 64,
                              .height = 64,
                              .access = NB_GPU_ACCESS_COLOR | NB_GPU_ACCESS_SAMPLED};
    return r->b->image_create(r->self, 0, &desc);
}

static nb_result make_drawing(rig *r) {
    nb_gpu_pipeline_desc desc = {.name = "draw",
                                 .vertex = RIG_SHADER(mesh_vert),
                                 .fragment = RIG_SHADER(color_frag),
                                 .colors = {NB_GPU_FORMAT_RGBA8},
                                 .color_count = 1,
                                 .push_bytes = 32,
                                 .storage_mask = 1};
    return r->b->pipeline_create(r->self, 0, &desc);
}

static nb_result make_computing(rig *r) {
    nb_gpu_pipeline_desc desc = {
        .name = "fill", .compute = RIG_SHADER(fill_comp), .push_bytes = 12, .storage_mask = 1u << 2};
    return r->b->pipeline_create(r->self, 1, &desc);
}

// Makes with one call of Vulkan refused, then again without.
#define REFUSE_ONCE(name, make, result, expected, calls_before) \
    do {                                                        \
        HOOK(name);                                             \
        fail_next(r, result, calls_before);                     \
        assert_int_equal(make(r), expected);                    \
        assert_int_equal(refusal, VK_SUCCESS);                  \
        UNHOOK(name);                                           \
        uint64_t used = r->v->memory.used_bytes;                \
        assert_int_equal(used, before);                         \
    } while (0)

TEST(refused_objects_leave_nothing_and_can_be_made_again) {
    static rig the_rig;
    rig *r = &the_rig;
    rig_open_validated(r);
    const VkResult oom = VK_ERROR_OUT_OF_DEVICE_MEMORY, host = VK_ERROR_OUT_OF_HOST_MEMORY;
    uint64_t before = r->v->memory.used_bytes;
    // First: later there are empty blocks to fall back on.
    REFUSE_ONCE(AllocateMemory, make_readback, oom, NB_ERR_MEMORY, 0);
    REFUSE_ONCE(MapMemory, make_readback, VK_ERROR_MEMORY_MAP_FAILED, NB_ERR_MEMORY, 0);
    REFUSE_ONCE(CreateBuffer, make_buffer, oom, NB_ERR_MEMORY, 0);
    REFUSE_ONCE(BindBufferMemory, make_buffer, oom, NB_ERR_MEMORY, 0);
    REFUSE_ONCE(BindBufferMemory, make_buffer, VK_ERROR_UNKNOWN, NB_ERR_OS, 0);
    REFUSE_ONCE(CreateImage, make_image, oom, NB_ERR_MEMORY, 0);
    REFUSE_ONCE(BindImageMemory, make_image, oom, NB_ERR_MEMORY, 0);
    REFUSE_ONCE(CreateImageView, make_image, oom, NB_ERR_MEMORY, 0);
    REFUSE_ONCE(CreateShaderModule, make_drawing, host, NB_ERR_MEMORY, 0);
    REFUSE_ONCE(CreateShaderModule, make_drawing, host, NB_ERR_MEMORY, 1);
    REFUSE_ONCE(CreateShaderModule, make_drawing, VK_ERROR_INVALID_SHADER_NV, NB_ERR_MISUSE, 1);
    REFUSE_ONCE(CreateGraphicsPipelines, make_drawing, oom, NB_ERR_MEMORY, 0);
    REFUSE_ONCE(CreateGraphicsPipelines, make_drawing, VK_ERROR_UNKNOWN, NB_ERR_MISUSE, 0);
    REFUSE_ONCE(CreateDescriptorSetLayout, make_drawing, host, NB_ERR_MEMORY, 0);
    REFUSE_ONCE(CreatePipelineLayout, make_drawing, host, NB_ERR_MEMORY, 0);
    REFUSE_ONCE(CreateShaderModule, make_computing, host, NB_ERR_MEMORY, 0);
    REFUSE_ONCE(CreateComputePipelines, make_computing, VK_ERROR_DEVICE_LOST, NB_ERR_LOST, 0);
    nbi_atomic_store_relaxed_u32(&r->v->is_lost, 0);
    for (uint32_t i = 0; i < 2; ++i) {
        assert_int_equal(make_buffer(r), NB_OK);
        assert_int_equal(make_readback(r), NB_OK);
        assert_int_equal(make_image(r), NB_OK);
        assert_int_equal(make_drawing(r), NB_OK);
        assert_int_equal(make_computing(r), NB_OK);
        r->b->buffer_destroy(r->self, 0);
        r->b->buffer_destroy(r->self, 1);
        r->b->image_destroy(r->self, 0);
        r->b->pipeline_destroy(r->self, 0);
        r->b->pipeline_destroy(r->self, 1);
    }
    assert_int_equal(r->v->memory.used_bytes, before);
    assert_int_equal(r->v->fresh_count, 0);
    rig_close(r);
}

TEST(images_that_no_device_has_are_refused) {
    static rig r;
    rig_open_validated(&r);
    nb_gpu_image_desc desc = {.name = "depth", .width = 8, .height = 8};
    desc.format = NB_GPU_FORMAT_DEPTH32F;
    desc.access = NB_GPU_ACCESS_COLOR;
    assert_int_equal(r.b->image_create(r.self, 0, &desc), NB_ERR_UNSUPPORTED);
    desc.name = "color";
    desc.format = NB_GPU_FORMAT_RGBA8;
    desc.access = NB_GPU_ACCESS_DEPTH;
    assert_int_equal(r.b->image_create(r.self, 0, &desc), NB_ERR_UNSUPPORTED);
    desc.name = "wide";
    desc.access = NB_GPU_ACCESS_COLOR;
    desc.width = 1u << 30;
    for (int i = 0; i < 10; ++i) assert_int_equal(r.b->image_create(r.self, 0, &desc), NB_ERR_UNSUPPORTED);
    assert_int_equal(vulkan_log_count(&r.log, NB_ITEM_VULKAN_FORMAT), 4); // of the last one the 1st and 10th time
    rig_close(&r);
}

// --- memory ---

static nb_result make_numbered(rig *r, uint32_t index, uint64_t size_bytes) {
    return r->b->buffer_create(r->self, index, &(nb_gpu_buffer_desc){.name = "buffer", .size_bytes = size_bytes});
}

TEST(memory_ends_where_it_is_told_to) {
    static rig r;
    rig_open(&r, &(nb_gpu_vulkan_desc){.is_validated = true, .memory_bytes_max = 8 * MIB});
    uint64_t used = 0, budget = 0, begin = 0;
    r.b->memory(r.self, &begin, &budget);
    assert_int_equal(budget, 8 * MIB);
    uint32_t count = 0;
    while (count < 20 && make_numbered(&r, count, MIB) == NB_OK) ++count;
    // Two frames have one each.
    assert_int_equal(count, 6);
    assert_int_equal(vulkan_log_count(&r.log, NB_ITEM_VULKAN_MEMORY), 1);
    r.b->memory(r.self, &used, &budget);
    assert_int_equal(used, begin + 6 * MIB);
    assert_true(r.v->memory.held_bytes <= 8 * MIB);
    // What is given back is there again, for images too.
    for (uint32_t i = 0; i < count; ++i) r.b->buffer_destroy(r.self, i);
    rig_make_image(&r, 0, NB_GPU_FORMAT_RGBA8, 1024, NB_GPU_ACCESS_COLOR);
    r.b->image_destroy(r.self, 0);
    assert_int_equal(make_numbered(&r, 0, 5 * MIB), NB_OK);
    assert_int_equal(make_numbered(&r, 1, 5 * MIB), NB_ERR_MEMORY);
    assert_int_equal(make_numbered(&r, 1, MIB << 18), NB_ERR_MEMORY);
    r.b->buffer_destroy(r.self, 0);
    r.b->memory(r.self, &used, &budget);
    assert_int_equal(used, begin);
    rig_close(&r);
}

TEST(small_objects_share_few_blocks) {
    static rig r;
    rig_open_validated(&r);
    uint32_t block_count = 0;
    for (uint32_t i = 0; i < 20; ++i) assert_int_equal(make_numbered(&r, i, 1000 + 777 * i), NB_OK);
    for (uint32_t i = 0; i < 16; ++i) rig_make_image(&r, i, NB_GPU_FORMAT_RGBA8, 8 + i, NB_GPU_ACCESS_SAMPLED);
    for (uint32_t i = 0; i < NBI_VULKAN_BLOCK_COUNT_MAX; ++i)
        block_count += r.v->memory.blocks[i].memory != VK_NULL_HANDLE;
    // One for buffers, one for images, one for what the CPU writes.
    assert_int_equal(block_count, 3);
    rig_close(&r);
}

// --- pictures ---

static void empty_plan(rig *r) {
    nb_graph_resource target =
        rig_image(r, "target", NB_GPU_FORMAT_RGBA8, 64, NB_GPU_ACCESS_NONE, NB_GPU_ACCESS_COPY_FROM);
    nb_graph_pass clear = rig_pass(r, "clear", NB_GPU_PASS_RENDER, 1);
    rig_use(r, clear, target, NB_GPU_ACCESS_COLOR);
    rig_clear(r, clear, target, 1, 1, 1);
    rig_compile(r);
    rig_is(r, target, 0);
}

static nb_result hand_over(rig *r) {
    nb_gpu_submit submit = rig_submit_desc(r, NULL, 0);
    return r->b->submit(r->self, &submit);
}

TEST(refused_submit_changes_nothing) {
    static rig the_rig;
    rig *r = &the_rig;
    rig_open_validated(r);
    assert_int_equal(make_image(r), NB_OK);
    empty_plan(r);
    VkImageLayout layout = r->v->images[0].layout;
#define REFUSE_SUBMIT(name, result, expected)             \
    do {                                                  \
        HOOK(name);                                       \
        fail_next(r, result, 0);                          \
        assert_int_equal(hand_over(r), expected);         \
        assert_int_equal(refusal, VK_SUCCESS);            \
        UNHOOK(name);                                     \
        assert_int_equal(r->v->images[0].layout, layout); \
        assert_true(r->v->images[0].is_fresh);            \
        assert_int_equal(r->v->fresh_count, 1);           \
    } while (0)
    REFUSE_SUBMIT(ResetCommandPool, VK_ERROR_OUT_OF_DEVICE_MEMORY, NB_ERR_MEMORY);
    REFUSE_SUBMIT(BeginCommandBuffer, VK_ERROR_OUT_OF_HOST_MEMORY, NB_ERR_MEMORY);
    REFUSE_SUBMIT(EndCommandBuffer, VK_ERROR_OUT_OF_HOST_MEMORY, NB_ERR_MEMORY);
    REFUSE_SUBMIT(QueueSubmit2, VK_ERROR_OUT_OF_DEVICE_MEMORY, NB_ERR_MEMORY);
    rig_submit(r, NULL, 0);
    rig_finish(r);
    assert_int_equal(r->v->fresh_count, 0);
    assert_int_equal(r->v->images[0].layout, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL);
    rig_close(r);
}

TEST(refused_recording_is_reported_and_can_be_repeated) {
    static rig the_rig;
    rig *r = &the_rig;
    rig_open_validated(r);
    assert_int_equal(make_image(r), NB_OK);
    assert_int_equal(make_buffer(r), NB_OK);
    assert_int_equal(make_drawing(r), NB_OK);
    empty_plan(r);
    nb_gpu_item item = {.index = 0};
    nb_gpu_bindings bindings = {.buffer_mask = 1};
    HOOK(AllocateCommandBuffers), HOOK(ResetCommandPool), HOOK(BeginCommandBuffer), HOOK(EndCommandBuffer);
    HOOK(CreateDescriptorPool), HOOK(AllocateDescriptorSets);
    // In the order of the calls: reset, allocate, begin.
    for (uint32_t i = 0; i < 3; ++i) {
        fail_next(r, VK_ERROR_OUT_OF_HOST_MEMORY, i == 2 ? 1 : 0);
        assert_int_equal(r->b->item_begin(r->self, 0, &item, r->plan, r->resources), NB_ERR_MEMORY);
    }
    assert_int_equal(r->b->item_begin(r->self, 0, &item, r->plan, r->resources), NB_OK);
    r->b->set_pipeline(r->self, &item, 0);
    for (uint32_t i = 0; i < 2; ++i) {
        fail_next(r, VK_ERROR_OUT_OF_DEVICE_MEMORY, i);
        assert_int_equal(r->b->set_bindings(r->self, &item, 0, &bindings), NB_ERR_MEMORY);
    }
    // A pool that is full is no failure: there is a next one.
    fail_next(r, VK_ERROR_OUT_OF_POOL_MEMORY, 0);
    assert_int_equal(r->b->set_bindings(r->self, &item, 0, &bindings), NB_OK);
    assert_int_equal(r->v->lanes[0].shelf->pool_count, 2);
    fail_next(r, VK_ERROR_OUT_OF_HOST_MEMORY, 0);
    assert_int_equal(r->b->item_end(r->self, 0, &item), NB_ERR_MEMORY);
    assert_int_equal(r->b->item_end(r->self, 0, &item), NB_OK);
    rig_submit(r, NULL, 0);
    rig_finish(r);
    rig_close(r);
}

static VKAPI_ATTR VkResult VKAPI_CALL counter_of_a_dead_device(VkDevice device, VkSemaphore semaphore, uint64_t *out) {
    (void)device, (void)semaphore;
    *out = UINT64_MAX;
    return VK_SUCCESS;
}

// However it shows, from then on everything says so, and only the end is left.
TEST(lost_device_is_lost_for_good) {
    static rig the_rig;
    rig *r = &the_rig;
    for (uint32_t way = 0; way < 5; ++way) {
        rig_open_validated(r);
        assert_int_equal(make_image(r), NB_OK);
        empty_plan(r);
        uint64_t value = 7;
        nb_gpu_times times;
        const VkResult lost = VK_ERROR_DEVICE_LOST;
        HOOK(QueueSubmit2), HOOK(WaitSemaphores), HOOK(GetSemaphoreCounterValue), HOOK(AllocateMemory);
        if (way == 0) fail_next(r, lost, 0), assert_int_equal(hand_over(r), NB_ERR_LOST);
        if (way == 1) fail_next(r, lost, 0), assert_int_equal(r->b->wait(r->self, 1, 1), NB_ERR_LOST);
        if (way == 2) fail_next(r, lost, 0), assert_int_equal(r->b->completed(r->self, &value), NB_ERR_LOST);
        if (way == 3) fail_next(r, lost, 0), assert_int_equal(make_readback(r), NB_ERR_LOST);
        if (way == 4) {
            r->v->vk.GetSemaphoreCounterValue = counter_of_a_dead_device;
            assert_int_equal(r->b->times(r->self, &times), NB_ERR_LOST);
        }
        assert_int_equal(value, 7);
        assert_int_equal(r->b->completed(r->self, &value), NB_ERR_LOST);
        assert_int_equal(r->b->wait(r->self, 1, 0), NB_ERR_LOST);
        assert_int_equal(r->b->times(r->self, &times), NB_ERR_LOST);
        assert_int_equal(r->b->frame_reset(r->self, 0), NB_ERR_LOST);
        assert_int_equal(hand_over(r), NB_ERR_LOST);
        rig_close(r);
    }
}

TEST(wait_for_what_never_comes_ends) {
    static rig r;
    rig_open_validated(&r);
    assert_int_equal(r.b->wait(r.self, 1, 1000), NB_TIMEOUT);
    assert_int_equal(r.b->wait(r.self, 0, 1000), NB_OK);
    rig_close(&r);
}
