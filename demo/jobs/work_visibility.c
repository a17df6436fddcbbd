// SPDX-License-Identifier: MIT
// Visibility and culling.

#include "work_visibility.h"

#include <string.h>

#include "picture_job.h"

// What a float is off by at this distance from the planet's middle, in metres, and some.
#define ROUNDING 0.01f

static plane plane_through(vec3 normal, vec3 point) { return (plane){normal, -vec3_dot(normal, point)}; }

frustum frustum_of(const camera *eye) {
    vec3 forward = eye->forward, right = vec3_normal(vec3_cross(forward, eye->up), (vec3){1, 0, 0}),
         top = vec3_cross(right, forward);
    frustum result;
    result.planes[0] = plane_through(forward, vec3_add(eye->position, vec3_scale(forward, eye->near)));
    result.planes[1] = plane_through(vec3_scale(forward, -1), vec3_add(eye->position, vec3_scale(forward, eye->far)));
    // A side leans inwards by its angle: its normal is forward * tan +- right.
    vec3 lean_x = vec3_scale(forward, eye->tan_half_x), lean_y = vec3_scale(forward, eye->tan_half_y);
    vec3 sides[4] = {vec3_add(lean_x, right), vec3_sub(lean_x, right), vec3_add(lean_y, top), vec3_sub(lean_y, top)};
    for (int i = 0; i < 4; ++i) result.planes[2 + i] = plane_through(vec3_normal(sides[i], forward), eye->position);
    return result;
}

bool frustum_has_sphere(const frustum *area, vec3 middle, float radius) {
    for (int i = 0; i < FRUSTUM_PLANE_COUNT; ++i) {
        if (vec3_dot(area->planes[i].normal, middle) + area->planes[i].offset < -radius) return false;
    }
    return true;
}

bool frustum_has_bounds(const frustum *area, const lod_bounds *bounds) {
    return frustum_has_sphere(area, vec3_of(bounds->middle), (float)bounds->radius + ROUNDING);
}

static bool is_visible(const visibility_input *input, uint32_t number) {
    if (number >= input->chunk_count) {
        vec3 middle = input->spheres[number - input->chunk_count];
        vec3d point = {middle.x, middle.y, middle.z};
        return frustum_has_sphere(&input->frustum, middle, input->sphere_radius) &&
               lod_point_is_over_horizon(input->eye, point);
    }
    const lod_bounds *chunk = &input->chunks[number];
    return input->is_drawn[number] != 0 && frustum_has_bounds(&input->frustum, chunk) &&
           lod_is_over_horizon(input->eye, chunk);
}

void visibility_run(const visibility_input *input, uint32_t first, uint32_t count, visibility_output *out) {
    for (uint32_t i = first; i < first + count; ++i) {
        if (is_visible(input, i)) out->visible[out->visible_count++] = i;
    }
}

void visibility_append(visibility_output *whole, const visibility_output *part) {
    memcpy(whole->visible + whole->visible_count, part->visible, part->visible_count * sizeof(uint32_t));
    whole->visible_count += part->visible_count;
}

// --- in every frame ---

static nb_result visibility_job(const nb_context *context, void *user) {
    const picture *p = user;
    const nb_snapshot *seen = context->snapshot;
    const planet_eye *eye = job_eye(context, p);
    visibility_input input = {.frustum = frustum_of(&eye->camera),
                              .eye = eye->position,
                              .chunks = NB_STORE_VIEW(seen, p->world, p->streamer->chunks, CHUNK_BOUNDS, lod_bounds),
                              .is_drawn = NB_STORE_VIEW(seen, p->world, p->streamer->chunks, CHUNK_IS_DRAWN, uint8_t),
                              .chunk_count = job_chunk_count(context, p),
                              .spheres = NB_STORE_VIEW(seen, p->world, p->planet->creatures, CREATURE_PLACE, vec3),
                              .sphere_count = job_creature_count(context, p),
                              .sphere_radius = PICTURE_CREATURE_RADIUS};
    job_share mine = job_share_of(context, input.chunk_count + input.sphere_count);
    uint32_t *count = job_output(context, sizeof *count);
    visibility_output out = {.visible = job_output(context, mine.count * sizeof(uint32_t))};
    if (count == NULL || out.visible == NULL) return NB_ERR_MEMORY;
    visibility_run(&input, mine.first, mine.count, &out);
    *count = out.visible_count;
    return NB_OK;
}

static nb_result visibility_merge(const nb_context *context, void *user, const nb_output_list *outputs) {
    picture *p = user;
    size_t size_bytes = 0;
    const uint32_t *count = merge_note(context, p, outputs, &size_bytes),
                   *visible = nb_output_list_next(outputs, count, NULL);
    memcpy(p->made.visible + p->now.visible_count, visible, *count * sizeof *visible);
    p->now.visible_count += *count;
    return NB_OK;
}

const nb_module_desc work_visibility_module = {
    .name = "visibility", .parallel = visibility_job, .merge = visibility_merge, .job_count = 2};
