// SPDX-License-Identifier: MIT
// From light to what a screen shows: the glow of what is bright, the curve of a film, and the overlay on top.

#include "render_internal.h"

#include "../planet/sphere.h"

#define GLOW_THRESHOLD 1.6f
#define GLOW_STRENGTH 0.35f

// By night an eye opens.
#define EXPOSURE_DAY 0.92f
#define EXPOSURE_NIGHT 2.1f

typedef struct glow_constants {
    float pixel[2];
    float threshold, spread;
} glow_constants;

typedef struct post_constants {
    float pixel[2];
    float exposure, glow;
    uint32_t samples, is_linear;
} post_constants;

typedef struct overlay_constants {
    float scale[2];
    uint32_t is_linear, reserved;
} overlay_constants;

static void draw_screen(nb_gpu_command *command, const void *constants, size_t size_bytes) {
    nb_gpu_push(command, constants, size_bytes);
    nb_gpu_draw(command, 3, 1, 0, 0);
}

static uint32_t glow_size(uint32_t size, uint32_t part) { return size / part > 0 ? size / part : 1; }

static nb_result record_glow_near(nb_gpu_command *command, uint32_t bucket, uint32_t bucket_count, void *user) {
    const render *r = (const render *)user;
    (void)bucket, (void)bucket_count;
    glow_constants glow = {{1.0f / (float)r->width, 1.0f / (float)r->height}, GLOW_THRESHOLD, 1.5f};
    nb_gpu_set_pipeline(command, r->pipelines[PIPELINE_GLOW]);
    nb_gpu_set_resource(command, 8, r->scene, NB_GPU_SAMPLER_LINEAR);
    draw_screen(command, &glow, sizeof glow);
    return NB_OK;
}

static nb_result record_glow_far(nb_gpu_command *command, uint32_t bucket, uint32_t bucket_count, void *user) {
    const render *r = (const render *)user;
    (void)bucket, (void)bucket_count;
    float w = (float)glow_size(r->target_width, 4), h = (float)glow_size(r->target_height, 4);
    glow_constants glow = {{1.0f / w, 1.0f / h}, 0, 1.8f};
    nb_gpu_set_pipeline(command, r->pipelines[PIPELINE_GLOW]);
    nb_gpu_set_resource(command, 8, r->glow_near, NB_GPU_SAMPLER_LINEAR);
    draw_screen(command, &glow, sizeof glow);
    return NB_OK;
}

static nb_result record_post(nb_gpu_command *command, uint32_t bucket, uint32_t bucket_count, void *user) {
    const render *r = (const render *)user;
    (void)bucket, (void)bucket_count;
    bool has_glow = r->level.has_glow;
    post_constants post = {{1.0f / (float)r->width, 1.0f / (float)r->height},
                           r->exposure,
                           has_glow ? GLOW_STRENGTH : 0,
                           r->level.scale > 4 ? 4 : 1,
                           r->is_target_linear};
    nb_gpu_set_pipeline(command, r->pipelines[PIPELINE_POST]);
    // Pixel for pixel, or exactly four for one: nothing lies between.
    bool is_even = r->level.scale % 4 == 0;
    nb_gpu_set_resource(command, 8, r->scene, is_even ? NB_GPU_SAMPLER_NEAREST : NB_GPU_SAMPLER_LINEAR);
    nb_gpu_set_resource(command, 9, has_glow ? r->glow_near : r->scene, NB_GPU_SAMPLER_LINEAR);
    nb_gpu_set_resource(command, 10, has_glow ? r->glow_far : r->scene, NB_GPU_SAMPLER_LINEAR);
    draw_screen(command, &post, sizeof post);
    return NB_OK;
}

static nb_result glow_add(render *r, const char *name, nb_graph_record_fn record, nb_graph_resource from, uint32_t part,
                          nb_graph_resource *out) {
    nb_graph *graph = nb_gpu_graph(r->gpu);
    nb_graph_image_desc image = {name, RENDER_SCENE_FORMAT, glow_size(r->target_width, part),
                                 glow_size(r->target_height, part)};
    nb_graph_pass_desc desc = {.name = name, .kind = NB_GPU_PASS_RENDER, .record = record, .user = r};
    nb_graph_pass pass;
    nb_result result = nb_graph_image_add(graph, &image, out);
    if (result == NB_OK) result = nb_graph_pass_add(graph, &desc, &pass);
    if (result == NB_OK) result = nb_graph_use(graph, pass, *out, NB_GPU_ACCESS_COLOR);
    if (result == NB_OK) result = nb_graph_use(graph, pass, from, NB_GPU_ACCESS_SAMPLED);
    return result;
}

static void exposure_find(render *r) {
    const frame_constants *c = (const frame_constants *)r->constants.memory;
    double away = vec3d_length(r->camera.position);
    float rise = (c->camera[0] * c->sun[0] + c->camera[1] * c->sun[1] + c->camera[2] * c->sun[2]) / (float)(away + 1);
    float t = (rise + 0.22f) / 0.37f, low = 1 - (float)(away - SPHERE_RADIUS - 200) / 600.0f;
    t = t < 0 ? 0 : t > 1 ? 1 : t;
    low = low < 0 ? 0 : low > 1 ? 1 : low;
    r->exposure = EXPOSURE_DAY + (EXPOSURE_NIGHT - EXPOSURE_DAY) * (1 - t * t * (3 - 2 * t)) * low;
}

nb_result render_post_add(render *r) {
    nb_graph *graph = nb_gpu_graph(r->gpu);
    nb_graph_pass pass;
    nb_graph_pass_desc desc = {.name = "post", .kind = NB_GPU_PASS_RENDER, .record = record_post, .user = r};
    nb_result result = NB_OK;
    exposure_find(r);
    if (r->level.has_glow) {
        result = glow_add(r, "glow near", record_glow_near, r->scene, 4, &r->glow_near);
        if (result == NB_OK) result = glow_add(r, "glow far", record_glow_far, r->glow_near, 8, &r->glow_far);
    }
    if (result == NB_OK) result = nb_graph_pass_add(graph, &desc, &pass);
    if (result == NB_OK) result = nb_graph_use(graph, pass, r->target, NB_GPU_ACCESS_COLOR);
    if (result == NB_OK) result = nb_graph_use(graph, pass, r->scene, NB_GPU_ACCESS_SAMPLED);
    if (result == NB_OK && r->level.has_glow) result = nb_graph_use(graph, pass, r->glow_near, NB_GPU_ACCESS_SAMPLED);
    if (result == NB_OK && r->level.has_glow) result = nb_graph_use(graph, pass, r->glow_far, NB_GPU_ACCESS_SAMPLED);
    return result;
}

// --- overlay ---

void render_overlay_prepare(render *r, const render_frame *frame) {
    uint32_t count = frame->overlay != NULL ? frame->overlay->rect_count : 0;
    r->overlay = render_list_take(r, count, 4 * sizeof(uint32_t));
    uint32_t *out = (uint32_t *)r->overlay.span.memory;
    for (uint32_t i = 0; i < r->overlay.count; ++i) {
        const overlay_rect *rect = &frame->overlay->rects[i];
        out[i * 4 + 0] = (uint16_t)rect->x0 | (uint32_t)(uint16_t)rect->y0 << 16;
        out[i * 4 + 1] = (uint16_t)rect->x1 | (uint32_t)(uint16_t)rect->y1 << 16;
        out[i * 4 + 2] = rect->colour;
        out[i * 4 + 3] = 0;
    }
    r->stats.triangle_count += r->overlay.count * 2;
}

static nb_result record_overlay(nb_gpu_command *command, uint32_t bucket, uint32_t bucket_count, void *user) {
    const render *r = (const render *)user;
    (void)bucket, (void)bucket_count;
    overlay_constants constants = {
        {2.0f / (float)r->target_width, 2.0f / (float)r->target_height}, r->is_target_linear, 0};
    nb_gpu_set_pipeline(command, r->pipelines[PIPELINE_OVERLAY]);
    nb_gpu_set_span(command, BINDING_DATA, r->overlay.span);
    nb_gpu_push(command, &constants, sizeof constants);
    nb_gpu_draw(command, r->overlay.count * 6, 1, 0, 0);
    return NB_OK;
}

nb_result render_overlay_add(render *r) {
    if (r->overlay.count == 0) return NB_OK;
    nb_graph *graph = nb_gpu_graph(r->gpu);
    nb_graph_pass pass;
    nb_graph_pass_desc desc = {.name = "overlay", .kind = NB_GPU_PASS_RENDER, .record = record_overlay, .user = r};
    nb_result result = nb_graph_pass_add(graph, &desc, &pass);
    return result == NB_OK ? nb_graph_use(graph, pass, r->target, NB_GPU_ACCESS_COLOR) : result;
}
