// SPDX-License-Identifier: MIT
// Point lights and the blocks of the picture they reach, packed for the shaders.

#include "render_internal.h"

// A list's beginning has 24 bits, its length eight.
#define NUMBERS_MAX (1u << 24)

static uint32_t block_count(const render_clusters *c) {
    uint64_t count = (uint64_t)c->x_count * c->y_count * c->z_count;
    return count <= 65536 ? (uint32_t)count : 0;
}

static uint32_t lights_of(const render_cluster *cluster) {
    return cluster->light_count < RENDER_CLUSTER_LIGHTS_MAX ? cluster->light_count : RENDER_CLUSTER_LIGHTS_MAX;
}

static void lights_fill(const render *r, const render_frame *frame, render_point_light *out, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
        const render_light *light = &frame->lights[i];
        vec3 at = camera_relative(&r->camera, light->position);
        out[i] = (render_point_light){
            {at.x, at.y, at.z}, light->radius, {light->colour.x, light->colour.y, light->colour.z, 0}};
    }
}

// Numbers of lights that were left out do not count.
static void blocks_fill(const render_clusters *from, uint32_t count, uint32_t light_count, uint32_t *blocks,
                        uint32_t *numbers) {
    uint32_t next = 0;
    for (uint32_t i = 0; i < count; ++i) {
        uint32_t first = next;
        for (uint32_t j = 0; j < lights_of(&from->clusters[i]); ++j)
            if (from->clusters[i].lights[j] < light_count) numbers[next++] = from->clusters[i].lights[j];
        blocks[i] = first | (next - first) << 24;
    }
}

void render_lights_prepare(render *r, const render_frame *frame) {
    const render_clusters *c = &frame->clusters;
    uint32_t count = c->clusters != NULL && c->far > c->near ? block_count(c) : 0, numbers = 0;
    uint32_t lights = frame->light_count < RENDER_LIGHTS_MAX ? frame->light_count : RENDER_LIGHTS_MAX;
    for (uint32_t i = 0; i < count; ++i) numbers += lights_of(&c->clusters[i]);
    r->has_lights = false;
    if (lights == 0 || numbers == 0 || numbers >= NUMBERS_MAX) return;
    r->stats.dropped_count += frame->light_count - lights;
    r->lights = render_list_take(r, lights, sizeof(render_point_light));
    r->blocks = render_list_take(r, count, sizeof(uint32_t));
    r->numbers = render_list_take(r, numbers, sizeof(uint32_t));
    r->has_lights = r->lights.count > 0 && r->blocks.count > 0 && r->numbers.count > 0;
    if (!r->has_lights) return;
    lights_fill(r, frame, (render_point_light *)r->lights.span.memory, lights);
    blocks_fill(c, count, lights, (uint32_t *)r->blocks.span.memory, (uint32_t *)r->numbers.span.memory);
}
