// SPDX-License-Identifier: MIT
// Shadows near the camera: a picture as the sun sees it, depth alone.

#include "render_internal.h"

#include <math.h>

#include "../planet/sphere.h"

// Metres around the middle of the picture for one who walks; more from above, and nothing from far above, where a
// shadow would be smaller than a pixel of it.
#define RANGE_WALKING 90.0
#define RANGE_BY_HEIGHT 1.6
#define HEIGHT_MAX 350.0

// Below this sine of its height the sun throws no shadows that matter.
#define SUN_LOWEST (-0.1)

// Depth of the picture, in its ranges: hills before and behind what is seen.
#define DEPTH_RANGES 4.0

static vec3d vec3d_from(vec3 v) { return (vec3d){v.x, v.y, v.z}; }

// In steps of the picture's pixels, so that shadows stand still while the camera moves.
static double snap(double value, double step) { return floor(value / step) * step; }

static void matrix_find(render *r, vec3d right, vec3d up, vec3d way) {
    vec3d from = vec3d_sub(r->camera.position, r->shadow_middle);
    double s = 1 / r->shadow_range, z = -0.5 / (r->shadow_range * DEPTH_RANGES);
    double m[16] = {right.x * s, -up.x * s, way.x * z, 0, right.y * s, -up.y * s, way.y * z, 0,
                    right.z * s, -up.z * s, way.z * z, 0, 0,           0,         0,         1};
    m[12] = vec3d_dot(from, right) * s;
    m[13] = -vec3d_dot(from, up) * s;
    m[14] = 0.5 + vec3d_dot(from, way) * z;
    for (uint32_t i = 0; i < 16; ++i) r->shadow.m[i] = (float)m[i];
}

void render_shadow_prepare(render *r, const render_frame *frame) {
    double away = vec3d_length(r->camera.position), height = away - SPHERE_RADIUS;
    vec3d sun = vec3d_from(frame->sun);
    r->has_shadows = r->level.shadow > 0 && height < HEIGHT_MAX && frame->chunk_count > 0 &&
                     vec3d_dot(sun, r->camera.position) > SUN_LOWEST * away;
    if (!r->has_shadows) return;
    r->shadow_range = RANGE_WALKING + (height > 0 ? height * RANGE_BY_HEIGHT : 0);
    vec3d way = vec3d_scale(sun, -1), pole = sun.y * sun.y < 0.9 ? (vec3d){0, 1, 0} : (vec3d){1, 0, 0};
    vec3d right = vec3d_normal(vec3d_cross(way, pole), (vec3d){1, 0, 0}), up = vec3d_cross(right, way);
    // Most of it ahead of the camera.
    vec3d ahead = vec3d_scale(vec3d_from(r->camera.forward), r->shadow_range * 0.6);
    vec3d middle = vec3d_add(r->camera.position, ahead);
    double step = 2 * r->shadow_range / r->level.shadow;
    double x = snap(vec3d_dot(middle, right), step), y = snap(vec3d_dot(middle, up), step), z = vec3d_dot(middle, way);
    r->shadow_middle = vec3d_add(vec3d_scale(right, x), vec3d_add(vec3d_scale(up, y), vec3d_scale(way, z)));
    matrix_find(r, right, up, way);
}

// Whether anything of a mesh may be in the picture: its middle is within it, or within reach of its width.
static bool is_near(const render *r, const mesh_slot *slot) {
    double reach = r->shadow_range * 1.5 + (double)(32u << slot->node.level);
    return vec3d_length(vec3d_sub(slot->middle, r->shadow_middle)) < reach;
}

static nb_result record_shadow(nb_gpu_command *command, uint32_t bucket, uint32_t bucket_count, void *user) {
    const render *r = (const render *)user;
    (void)bucket, (void)bucket_count;
    if (r->chunk_count > 0) render_bind_ground(r, command, PIPELINE_SHADOW_GROUND);
    for (uint32_t i = 0; i < r->chunk_count; ++i) {
        const mesh_slot *slot = &r->meshes[r->order[i]];
        if (!is_near(r, slot) || slot->quad_count == 0) continue;
        nb_gpu_push(command, &slot->node, sizeof slot->node);
        render_draw_quads(command, slot->quad_first, slot->quad_count);
    }
    if (r->boxes.count > 0) {
        render_bind(r, command, PIPELINE_SHADOW_BOX);
        nb_gpu_set_span(command, BINDING_DATA, r->boxes.span);
        nb_gpu_draw(command, r->boxes.count * 36, 1, 0, 0);
    }
    return NB_OK;
}

nb_result render_shadow_add(render *r) {
    if (!r->has_shadows) return NB_OK;
    nb_graph *graph = nb_gpu_graph(r->gpu);
    nb_graph_image_desc image = {"shadow", RENDER_DEPTH_FORMAT, r->level.shadow, r->level.shadow};
    nb_graph_pass_desc desc = {.name = "shadow", .kind = NB_GPU_PASS_RENDER, .record = record_shadow, .user = r};
    nb_graph_pass pass;
    nb_result result = nb_graph_image_add(graph, &image, &r->shadow_image);
    if (result == NB_OK) result = nb_graph_pass_add(graph, &desc, &pass);
    if (result == NB_OK) result = nb_graph_use(graph, pass, r->shadow_image, NB_GPU_ACCESS_DEPTH);
    if (result == NB_OK) result = nb_graph_clear(graph, pass, r->shadow_image, (nb_gpu_clear){{0}});
    return result;
}
