// SPDX-License-Identifier: MIT
// Visibility and culling.

#include "work_visibility.h"

#include <string.h>

static plane plane_through(vec3 normal, vec3 point) { return (plane){normal, -vec3_dot(normal, point)}; }

frustum frustum_of(const camera *eye) {
    vec3 up = {0, 1, 0}, forward = eye->forward;
    vec3 right = vec3_normal(vec3_cross(forward, up), (vec3){1, 0, 0}), top = vec3_cross(right, forward);
    frustum result;
    result.planes[0] = plane_through(forward, vec3_add(eye->position, vec3_scale(forward, eye->near)));
    result.planes[1] = plane_through(vec3_scale(forward, -1), vec3_add(eye->position, vec3_scale(forward, eye->far)));
    // A side leans inwards by its angle: its normal is forward * tan +- right.
    vec3 lean_x = vec3_scale(forward, eye->tan_half_x), lean_y = vec3_scale(forward, eye->tan_half_y);
    vec3 sides[4] = {vec3_add(lean_x, right), vec3_sub(lean_x, right), vec3_add(lean_y, top), vec3_sub(lean_y, top)};
    for (int i = 0; i < 4; ++i) result.planes[2 + i] = plane_through(vec3_normal(sides[i], forward), eye->position);
    return result;
}

// Only the corner that lies furthest along each normal matters.
bool frustum_has_box(const frustum *area, vec3 low, vec3 high) {
    for (int i = 0; i < FRUSTUM_PLANE_COUNT; ++i) {
        const plane *side = &area->planes[i];
        vec3 corner = {side->normal.x >= 0 ? high.x : low.x, side->normal.y >= 0 ? high.y : low.y,
                       side->normal.z >= 0 ? high.z : low.z};
        if (vec3_dot(side->normal, corner) + side->offset < 0) return false;
    }
    return true;
}

bool frustum_has_sphere(const frustum *area, vec3 middle, float radius) {
    for (int i = 0; i < FRUSTUM_PLANE_COUNT; ++i) {
        if (vec3_dot(area->planes[i].normal, middle) + area->planes[i].offset < -radius) return false;
    }
    return true;
}

static bool is_visible(const visibility_input *input, uint32_t number) {
    if (number >= input->chunk_count) {
        vec3 middle = input->spheres[number - input->chunk_count];
        return frustum_has_sphere(&input->frustum, middle, input->sphere_radius);
    }
    const float size = TERRAIN_CHUNK_SIZE;
    chunk_coord coord = input->chunks[number];
    vec3 low = {(float)coord.x * size, (float)coord.y * size, (float)coord.z * size};
    return frustum_has_box(&input->frustum, low, vec3_add(low, (vec3){size, size, size}));
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
