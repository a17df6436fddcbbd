// SPDX-License-Identifier: MIT
// The picture of the planet: its life, and the passes of a frame in their order.

#include "render_internal.h"

#include <string.h>

#include "nebula/report.h"

// The middle one is a fair picture for a CPU that draws; the last two are for graphics cards.
static const render_level LEVELS[RENDER_QUALITY_COUNT] = {
    {.scale = 3, .lights = 2, .rings = 16, .segments = 28, .steps = 8, .stars = 700},
    {.scale = 4, .lights = 3, .rings = 18, .segments = 32, .steps = 8, .stars = 1000},
    {.scale = 4, .lights = 6, .rings = 24, .segments = 40, .steps = 12, .stars = 1600},
    {.scale = 4,
     .lights = 16,
     .rings = 40,
     .segments = 64,
     .steps = 16,
     .stars = 3000,
     .shadow = 2048,
     .has_glow = true},
    {.scale = 8,
     .lights = 32,
     .rings = 64,
     .segments = 96,
     .steps = 24,
     .stars = 6000,
     .shadow = 4096,
     .has_glow = true},
};

static render_level level_of(uint32_t quality) {
    return LEVELS[quality < RENDER_QUALITY_COUNT ? quality : RENDER_QUALITY_BEST];
}

bool render_has_shadows(uint32_t quality) { return level_of(quality).shadow > 0; }

static render_desc desc_resolve(const render_desc *given) {
    render_desc desc = *given;
    if (desc.quad_count_max == 0) desc.quad_count_max = RENDER_QUADS_DEFAULT;
    if (desc.mesh_count_max == 0) desc.mesh_count_max = RENDER_MESHES_DEFAULT;
    if (desc.upload_bytes_max == 0) desc.upload_bytes_max = RENDER_UPLOAD_BYTES_DEFAULT;
    return desc;
}

nb_result render_create(const render_desc *given, render **out) {
    if (given == NULL || out == NULL || given->gpu == NULL) return NB_FAIL_NULL("desc, gpu or out");
    render_desc desc = desc_resolve(given);
    // A page at least; and quads are numbered by vertices, which are signed.
    if (desc.mesh_count_max > 65535 || desc.quad_count_max > (1u << 28) || desc.upload_bytes_max < sizeof(render_quad))
        return NB_FAIL(&desc.hooks, NB_ITEM_BASE_ARGUMENT, NB_ERR_RANGE, "%u quads, %u meshes, %u bytes a frame",
                       desc.quad_count_max, desc.mesh_count_max, desc.upload_bytes_max);
    render *r = (render *)nb_hooks_alloc(&desc.hooks, sizeof(render), 64, __func__);
    if (r == NULL) return NB_ERR_MEMORY;
    memset(r, 0, sizeof *r);
    r->hooks = nb_hooks_resolve(&desc.hooks);
    r->desc = desc;
    r->gpu = desc.gpu;
    nb_result result = render_resources_make(r);
    if (result == NB_OK) result = render_pipelines_make(r);
    if (result != NB_OK) {
        render_destroy(r);
        return result;
    }
    *out = r;
    return NB_OK;
}

void render_destroy(render *r) {
    if (r == NULL) return;
    for (uint32_t i = 0; i < PIPELINE_COUNT; ++i)
        if (r->pipelines[i].value != 0) nb_gpu_pipeline_destroy(r->gpu, r->pipelines[i]);
    render_resources_end(r);
    nb_hooks hooks = r->hooks;
    nb_hooks_free(&hooks, r, sizeof *r);
}

render_stats render_stats_get(const render *r) {
    render_stats stats = r->stats;
    stats.mesh_count = r->mesh_count;
    stats.mesh_ready_count = r->ready_count;
    stats.quad_count = r->pool.used_count * QUAD_POOL_PAGE;
    stats.quad_count_max = r->pool.page_count * QUAD_POOL_PAGE;
    stats.pending_bytes = r->waiting_quads * sizeof(render_quad);
    return stats;
}

void render_bind(const render *r, nb_gpu_command *command, render_pipeline pipeline) {
    nb_gpu_set_pipeline(command, r->pipelines[pipeline]);
    nb_gpu_set_span(command, BINDING_FRAME, r->constants);
    bool is_rich = pipeline == PIPELINE_GROUND_RICH || pipeline == PIPELINE_BOX_RICH;
    if (is_rich) nb_gpu_set_resource(command, 8, r->shadow_image, NB_GPU_SAMPLER_NEAREST);
    if (!is_rich && pipeline != PIPELINE_GROUND_LIT && pipeline != PIPELINE_BOX_LIT) return;
    // Where there are no lights nobody looks; but something has to be there.
    nb_gpu_set_span(command, BINDING_LIGHTS, r->has_lights ? r->lights.span : r->constants);
    nb_gpu_set_span(command, BINDING_BLOCKS, r->has_lights ? r->blocks.span : r->constants);
    nb_gpu_set_span(command, BINDING_NUMBERS, r->has_lights ? r->numbers.span : r->constants);
}

nb_result render_pass_add(render *r, const char *name, nb_graph_record_fn record, uint32_t bucket_count,
                          nb_gpu_access depth, nb_graph_pass *out) {
    nb_graph *graph = nb_gpu_graph(r->gpu);
    nb_graph_pass_desc desc = {
        .name = name, .kind = NB_GPU_PASS_RENDER, .record = record, .user = r, .bucket_count = bucket_count};
    nb_result result = nb_graph_pass_add(graph, &desc, out);
    if (result == NB_OK) result = nb_graph_use(graph, *out, r->scene, NB_GPU_ACCESS_COLOR);
    if (result == NB_OK) result = nb_graph_use(graph, *out, r->depth, depth);
    // Whoever draws solid things may ask for the sun.
    bool is_solid = depth == NB_GPU_ACCESS_DEPTH && r->has_shadows;
    if (result == NB_OK && is_solid) result = nb_graph_use(graph, *out, r->shadow_image, NB_GPU_ACCESS_SAMPLED);
    return result;
}

// --- the frame ---

static nb_result images_add(render *r) {
    nb_graph *graph = nb_gpu_graph(r->gpu);
    nb_graph_image_desc scene = {"scene", RENDER_SCENE_FORMAT, r->width, r->height};
    nb_graph_image_desc depth = {"depth", RENDER_DEPTH_FORMAT, r->width, r->height};
    nb_result result = nb_graph_image_add(graph, &scene, &r->scene);
    return result == NB_OK ? nb_graph_image_add(graph, &depth, &r->depth) : result;
}

static uint32_t scaled(uint32_t size, uint32_t scale) {
    uint32_t result = size * scale / 4;
    return result > 0 ? result : 1;
}

static nb_result frame_begin(render *r, const render_frame *frame) {
    r->target = nb_gpu_backbuffer(r->gpu, &r->target_width, &r->target_height);
    if (nb_gpu_graph(r->gpu) == NULL || r->target_width == 0 || r->target_height == 0) return NB_EMPTY;
    r->level = level_of(frame->quality);
    r->width = scaled(r->target_width, r->level.scale);
    r->height = scaled(r->target_height, r->level.scale);
    r->camera = frame->camera;
    if (!(r->camera.tan_half_y > 0)) r->camera.tan_half_y = CAMERA_TAN_HALF_Y;
    if (!(r->camera.near > 0)) r->camera.near = CAMERA_NEAR;
    r->stats = (render_stats){.upload_bytes_total = r->stats.upload_bytes_total,
                              .filled_bytes_total = r->stats.filled_bytes_total,
                              .width = r->width,
                              .height = r->height};
    return render_pipelines_make(r);
}

static nb_result constants_take(render *r, const render_frame *frame) {
    nb_result result = nb_gpu_frame_alloc(r->gpu, sizeof(frame_constants), 256, &r->constants);
    if (result == NB_OK) render_constants_fill(r, frame, (frame_constants *)r->constants.memory);
    return result;
}

static uint32_t buckets_of(const render_frame *frame) {
    uint32_t count = frame->bucket_count > 0 ? frame->bucket_count : 1;
    return count < RENDER_BUCKETS_MAX ? count : RENDER_BUCKETS_MAX;
}

nb_result render_add(render *r, const render_frame *frame) {
    nb_result result = frame_begin(r, frame);
    if (result != NB_OK) return result;
    render_upload(r);
    render_lights_prepare(r, frame);
    render_shadow_prepare(r, frame);
    result = constants_take(r, frame);
    if (result != NB_OK) return result;
    render_ground_prepare(r, frame);
    render_creatures_prepare(r, frame);
    render_particles_prepare(r, frame);
    render_overlay_prepare(r, frame);
    uint32_t buckets = buckets_of(frame);
    result = images_add(r);
    if (result == NB_OK) result = render_shadow_add(r);
    if (result == NB_OK) result = render_ground_add(r, buckets);
    if (result == NB_OK) result = render_creatures_add(r);
    if (result == NB_OK) result = render_sky_add(r);
    if (result == NB_OK) result = render_water_add(r, buckets);
    if (result == NB_OK) result = render_particles_add(r);
    if (result == NB_OK) result = render_post_add(r);
    if (result == NB_OK) result = render_overlay_add(r);
    return result;
}
