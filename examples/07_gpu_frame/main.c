// SPDX-License-Identifier: MIT
// module: gpu
// A renderer as a module: two passes, recorded in buckets by all threads, on a device that may be lost. The null
// backend draws nothing, so this runs everywhere; with another backend it is the same program.

#include <nebula/engine.h>
#include <nebula/gpu.h>
#include <nebula/gpu_command.h>
#include <nebula/gpu_null.h>

#include <stdio.h>

#define HOUSE_COUNT 300u
#define BUCKET_COUNT 8u

typedef struct renderer {
    nb_gpu *gpu;
    nb_gpu_pipeline houses, glow;
    nb_gpu_buffer walls;
    nb_graph_resource scene; // of this frame
    bool is_uploaded;
} renderer;

// On any thread, eight times at once.
static nb_result draw_houses(nb_gpu_command *command, uint32_t bucket, uint32_t bucket_count, void *user) {
    const renderer *r = user;
    nb_gpu_set_pipeline(command, r->houses);
    nb_gpu_set_buffer(command, 0, r->walls, 0, 0);
    for (uint32_t i = bucket; i < HOUSE_COUNT; i += bucket_count) {
        nb_gpu_push(command, &i, sizeof i);
        nb_gpu_draw(command, 36, 1, 0, 0);
    }
    return NB_OK;
}

static nb_result draw_glow(nb_gpu_command *command, uint32_t bucket, uint32_t bucket_count, void *user) {
    const renderer *r = user;
    (void)bucket, (void)bucket_count;
    nb_gpu_set_pipeline(command, r->glow);
    nb_gpu_set_resource(command, 8, r->scene, NB_GPU_SAMPLER_LINEAR);
    return nb_gpu_draw(command, 3, 1, 0, 0);
}

static void upload(renderer *r) {
    nb_gpu_span span;
    if (nb_gpu_frame_alloc(r->gpu, 4096, 0, &span) != NB_OK) return; // in a later frame, then
    for (size_t i = 0; i < span.size_bytes; ++i) ((unsigned char *)span.memory)[i] = (unsigned char)i;
    r->is_uploaded = nb_gpu_upload_buffer(r->gpu, span, r->walls, 0) == NB_OK;
}

// In FrameGraph: what this frame is made of.
static nb_result plan(const nb_context *context, void *user) {
    renderer *r = user;
    nb_graph *graph = nb_gpu_graph(r->gpu);
    (void)context;
    if (graph == NULL) return NB_OK; // no picture in this frame
    if (!r->is_uploaded) upload(r);
    uint32_t width = 0, height = 0;
    nb_graph_resource back = nb_gpu_backbuffer(r->gpu, &width, &height), depth;
    nb_graph_image_add(graph, &(nb_graph_image_desc){"scene", NB_GPU_FORMAT_RGBA16F, width, height}, &r->scene);
    nb_graph_image_add(graph, &(nb_graph_image_desc){"depth", NB_GPU_FORMAT_DEPTH32F, width, height}, &depth);
    nb_graph_pass houses, glow;
    nb_graph_pass_desc first = {
        .name = "houses", .kind = NB_GPU_PASS_RENDER, .record = draw_houses, .user = r, .bucket_count = BUCKET_COUNT};
    nb_graph_pass_desc second = {.name = "glow", .kind = NB_GPU_PASS_RENDER, .record = draw_glow, .user = r};
    nb_graph_pass_add(graph, &first, &houses);
    nb_graph_pass_add(graph, &second, &glow);
    nb_graph_use(graph, houses, r->scene, NB_GPU_ACCESS_COLOR);
    nb_graph_clear(graph, houses, r->scene, (nb_gpu_clear){{0.1f, 0.2f, 0.4f, 1.0f}});
    nb_graph_use(graph, houses, depth, NB_GPU_ACCESS_DEPTH);
    nb_graph_clear(graph, houses, depth, (nb_gpu_clear){{0.0f}});
    nb_graph_use(graph, glow, r->scene, NB_GPU_ACCESS_SAMPLED);
    return nb_graph_use(graph, glow, back, NB_GPU_ACCESS_COLOR);
}

// The device was lost and is there again, but what was in its buffers is not.
static void upload_again(nb_gpu *gpu, void *user) {
    (void)gpu;
    ((renderer *)user)->is_uploaded = false;
}

static bool make(renderer *r, nb_gpu_null *faults) {
    static const uint32_t shader[] = {0x07230203, 0x00010000, 0, 1, 0}; // SPIR-V that says nothing
    static nb_gpu_null_desc null_desc;
    null_desc = (nb_gpu_null_desc){.control = faults, .latency_frames = 1};
    nb_gpu_desc desc = {.backend = nb_gpu_null_backend(),
                        .backend_desc = &null_desc,
                        .width = 320,
                        .height = 180,
                        .on_restored = upload_again,
                        .user = r};
    nb_gpu_buffer_desc walls = {.name = "walls", .size_bytes = 4096};
    nb_gpu_pipeline_desc houses = {.name = "houses",
                                   .vertex = {shader, sizeof shader},
                                   .fragment = {shader, sizeof shader},
                                   .colors = {NB_GPU_FORMAT_RGBA16F},
                                   .color_count = 1,
                                   .depth_format = NB_GPU_FORMAT_DEPTH32F,
                                   .depth = NB_GPU_DEPTH_TEST_WRITE,
                                   .push_bytes = 4,
                                   .storage_mask = 1};
    if (nb_gpu_create(&desc, &r->gpu) != NB_OK) return false;
    nb_gpu_pipeline_desc glow = houses;
    glow.name = "glow";
    glow.colors[0] = nb_gpu_backbuffer_format(r->gpu);
    glow.depth_format = NB_GPU_FORMAT_NONE, glow.depth = NB_GPU_DEPTH_NONE;
    glow.push_bytes = 0, glow.storage_mask = 0, glow.sampled_mask = 1;
    return nb_gpu_buffer_create(r->gpu, &walls, &r->walls) == NB_OK &&
           nb_gpu_pipeline_create(r->gpu, &houses, &r->houses) == NB_OK &&
           nb_gpu_pipeline_create(r->gpu, &glow, &r->glow) == NB_OK;
}

int main(void) {
    renderer r = {0};
    nb_engine *engine = NULL;
    nb_gpu_null *faults = NULL;
    if (nb_gpu_null_create(NULL, &faults) != NB_OK || !make(&r, faults)) return 1;
    if (nb_engine_create(NULL, &engine) != NB_OK || nb_gpu_attach(r.gpu, engine) != NB_OK) return 1;
    nb_module_desc module = {.name = "renderer", .user = &r};
    module.handlers[NB_PHASE_FRAME_GRAPH] = plan;
    nb_engine_module_attach(engine, &module, NULL);

    nb_gpu_null_fail(faults, NB_GPU_NULL_LOST, 30); // the engine does not notice
    nb_engine_run_ticks(engine, 60);

    nb_gpu_stats stats = nb_gpu_stats_get(r.gpu);
    printf("%s: %d frames, %d pictures, %d devices lost, %d made anew\n", nb_gpu_name(r.gpu), (int)stats.frame_count,
           (int)stats.submit_count, (int)stats.lost_count, (int)stats.restored_count);
    printf("the last: %u passes, %u draws, %u transitions, commands %016llx; %u bytes uploaded in all\n",
           (unsigned)stats.pass_count, (unsigned)stats.draw_count, (unsigned)stats.transition_count,
           (unsigned long long)stats.command_hash, (unsigned)stats.upload_bytes);
    bool is_good = stats.submit_count == 59 && stats.restored_count == 1 && stats.draw_count == HOUSE_COUNT + 1 &&
                   stats.misuse_count == 0 && stats.upload_bytes == 8192;
    nb_engine_destroy(engine);
    nb_gpu_destroy(r.gpu);
    nb_gpu_null_destroy(faults);
    return is_good ? 0 : 1;
}
