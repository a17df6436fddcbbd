// SPDX-License-Identifier: MIT
// The Vulkan device in an engine: recorded by jobs on all threads, lost and made anew, short of memory. The pictures
// are the same for any number of workers, and the frame goes on whatever the device does.

#include "frame/engine/engine_fixture.h"
#include "gpu/vulkan/gpu_vulkan_stage.h"

#include "gpu/device/gpu.h"
#include "gpu/vulkan/vulkan.h"

#include "shaders/color.frag.h"
#include "shaders/mesh.vert.h"

#define SIDE 48u
#define DRAW_COUNT 96u

typedef struct constants {
    float move[4], tint[4];
} constants;

typedef struct game {
    rig rig;
    stage s;
    nb_gpu_buffer mesh;
    nb_gpu_pipeline pipeline;
    uint32_t bucket_count;
    uint32_t restored_count;
    bool is_asked;    // for a capture
    bool is_unfilled; // what is drawn with has to be uploaded
} game;

static const float triangle[3][8] = {
    {-1, -1, 0, 1, 1, 1, 1, 1}, {-1, -0.5f, 0, 1, 1, 1, 1, 1}, {-0.5f, -1, 0, 1, 1, 1, 1, 1}};

static nb_result record(nb_gpu_command *command, uint32_t bucket, uint32_t bucket_count, void *user) {
    game *g = (game *)user;
    nb_gpu_set_pipeline(command, g->pipeline);
    nb_gpu_set_buffer(command, 0, g->mesh, 0, 0);
    uint32_t first = DRAW_COUNT * bucket / bucket_count, end = DRAW_COUNT * (bucket + 1) / bucket_count;
    for (uint32_t i = first; i < end; ++i) {
        constants push = {.move = {(float)(i % 10) * 0.19f, (float)(i / 10) * 0.18f, 0, 0},
                          .tint = {(float)i / DRAW_COUNT, 1, (float)(i % 7) / 7, 1}};
        nb_gpu_push(command, &push, sizeof push);
        nb_gpu_draw(command, 3, 1, 0, 0);
    }
    return NB_OK;
}

static nb_result add_passes(const nb_context *context, void *user) {
    game *g = (game *)user;
    (void)context;
    if (nb_gpu_graph(g->s.gpu) == NULL) return NB_OK;
    if (g->is_unfilled) stage_upload(&g->s, g->mesh, 0, triangle, sizeof triangle);
    g->is_unfilled = false;
    nb_graph_resource back = nb_gpu_backbuffer(g->s.gpu, NULL, NULL);
    nb_graph_pass_desc desc = {
        .name = "draw", .kind = NB_GPU_PASS_RENDER, .record = record, .user = g, .bucket_count = g->bucket_count};
    nb_graph_pass pass = {0};
    assert_int_equal(nb_graph_pass_add(nb_gpu_graph(g->s.gpu), &desc, &pass), NB_OK);
    stage_use(nb_gpu_graph(g->s.gpu), pass, back, NB_GPU_ACCESS_COLOR);
    nb_gpu_clear clear = {{0, 0, 0, 1}};
    assert_int_equal(nb_graph_clear(nb_gpu_graph(g->s.gpu), pass, back, clear), NB_OK);
    if (g->is_asked && nb_gpu_capture_ask(g->s.gpu) == NB_OK) g->is_asked = false;
    return NB_OK;
}

static void on_restored(nb_gpu *gpu, void *user) {
    game *g = (game *)user;
    (void)gpu;
    ++g->restored_count;
    g->is_unfilled = true;
}

static void game_open(game *g, uint32_t worker_count, uint32_t bucket_count) {
    memset(g, 0, sizeof *g);
    nb_gpu_desc desc = stage_desc(SIDE, SIDE);
    desc.lane_count = 8;
    desc.on_restored = on_restored;
    desc.user = g;
    stage_open_as(&g->s, desc, (nb_gpu_vulkan_desc){0});
    rig_open(&g->rig, worker_count);
    g->mesh = stage_buffer(&g->s, sizeof triangle, NB_GPU_MEMORY_DEVICE);
    g->pipeline = stage_pipeline(&g->s, (nb_gpu_pipeline_desc){.vertex = STAGE_SHADER(mesh_vert),
                                                               .fragment = STAGE_SHADER(color_frag),
                                                               .colors = {NB_GPU_FORMAT_RGBA8},
                                                               .color_count = 1,
                                                               .push_bytes = sizeof(constants),
                                                               .storage_mask = 1});
    g->bucket_count = bucket_count;
    g->is_unfilled = true;
    assert_int_equal(nb_gpu_attach(g->s.gpu, g->rig.engine), NB_OK);
    nb_module_desc renderer = {.name = "renderer", .user = g};
    renderer.handlers[NB_PHASE_FRAME_GRAPH] = add_passes;
    attach(&g->rig, renderer);
}

static void game_close(game *g) {
    assert_int_equal(rig_stats(&g->rig).failure_count, 0);
    stage_close(&g->s);
    rig_close(&g->rig);
}

static void game_run(game *g, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) assert_int_equal(nb_engine_frame_delta(g->rig.engine, 0), NB_OK);
}

// Runs until there is a picture, and hashes it.
static uint32_t game_picture(game *g) {
    g->is_asked = true;
    for (uint32_t i = 0; i < 1000 && g->is_asked; ++i) game_run(g, 1);
    assert_false(g->is_asked);
    nb_gpu_capture picture = {0};
    assert_int_equal(nb_gpu_capture_take(g->s.gpu, STAGE_WAIT_NS, &picture), NB_OK);
    uint32_t hash = 2166136261u, lit_count = 0;
    for (uint32_t i = 0; i < SIDE * SIDE; ++i) {
        uint32_t pixel = stage_pixel(&picture, i % SIDE, i / SIDE);
        lit_count += pixel != 0x000000ffu;
        hash = (hash ^ pixel) * 16777619u;
    }
    assert_true(lit_count > SIDE * SIDE / 4);
    return hash;
}

TEST(picture_is_the_same_for_any_number_of_workers) {
    static game g;
    uint32_t hash = 0;
    for (uint32_t workers = 0; workers <= 4; workers += 2) {
        game_open(&g, workers, workers == 0 ? 1 : 12);
        game_run(&g, 5);
        uint32_t found = game_picture(&g);
        if (workers == 0) hash = found;
        assert_int_equal(found, hash);
        game_close(&g);
    }
}

TEST(frames_take_nothing_from_the_heap) {
    static game g;
    game_open(&g, 2, 12);
    game_run(&g, 10);
    uint64_t before = nbi_atomic_load_seq_cst_u64(&g.s.heap.call_count);
    uint64_t held = nb_gpu_stats_get(g.s.gpu).memory_bytes;
    game_run(&g, 60);
    assert_int_equal(nbi_atomic_load_seq_cst_u64(&g.s.heap.call_count), before);
    assert_int_equal(nb_gpu_stats_get(g.s.gpu).memory_bytes, held);
    game_close(&g);
}

// --- lost ---

static VKAPI_ATTR VkResult VKAPI_CALL submit_lost(VkQueue queue, uint32_t count, const VkSubmitInfo2 *info,
                                                  VkFence fence) {
    (void)queue, (void)count, (void)info, (void)fence;
    return VK_ERROR_DEVICE_LOST;
}

static VKAPI_ATTR VkResult VKAPI_CALL submit_without_memory(VkQueue queue, uint32_t count, const VkSubmitInfo2 *info,
                                                            VkFence fence) {
    (void)queue, (void)count, (void)info, (void)fence;
    return VK_ERROR_OUT_OF_DEVICE_MEMORY;
}

TEST(lost_device_comes_back_with_the_same_picture) {
    static game g;
    game_open(&g, 2, 6);
    uint32_t hash = game_picture(&g);
    for (uint32_t i = 1; i <= 3; ++i) {
        nbi_vulkan *v = (nbi_vulkan *)nbi_gpu_backend_self(g.s.gpu, nb_gpu_vulkan_backend());
        v->vk.QueueSubmit2 = submit_lost;
        game_run(&g, 1);
        for (uint32_t frame = 0; frame < 100000 && g.restored_count < i; ++frame) game_run(&g, 1);
        assert_int_equal(g.restored_count, i);
        assert_int_equal(game_picture(&g), hash);
    }
    nb_gpu_stats stats = nb_gpu_stats_get(g.s.gpu);
    assert_int_equal(stats.lost_count, 3);
    assert_int_equal(stats.restored_count, 3);
    game_close(&g);
}

TEST(picture_without_memory_is_left_out) {
    static game g;
    game_open(&g, 0, 2);
    uint32_t hash = game_picture(&g);
    nbi_vulkan *v = (nbi_vulkan *)nbi_gpu_backend_self(g.s.gpu, nb_gpu_vulkan_backend());
    PFN_vkQueueSubmit2 real = v->vk.QueueSubmit2;
    v->vk.QueueSubmit2 = submit_without_memory;
    game_run(&g, 3);
    v->vk.QueueSubmit2 = real;
    nb_gpu_stats stats = nb_gpu_stats_get(g.s.gpu);
    assert_int_equal(stats.skipped_failed_count, 3);
    assert_int_equal(stats.lost_count, 0);
    assert_int_equal(game_picture(&g), hash);
    game_close(&g);
}

TEST(message_count_is_of_vulkan_devices_only) {
    nb_gpu *gpu = NULL;
    assert_int_equal(nb_gpu_create(NULL, &gpu), NB_OK);
    assert_int_equal(nb_gpu_vulkan_message_count(gpu), 0);
    assert_int_equal(nb_gpu_vulkan_message_count(NULL), 0);
    assert_int_equal(nb_gpu_destroy(gpu), NB_OK);
}
