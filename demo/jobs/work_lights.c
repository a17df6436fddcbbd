// SPDX-License-Identifier: MIT
// Light clustering.

#include "work_lights.h"

#include <stdbool.h>
#include <string.h>

#include "picture_job.h"

#define SLICE_CLUSTERS (LIGHT_CLUSTERS_X * LIGHT_CLUSTERS_Y)

// The lights that reach one depth: found once for its 144 blocks.
typedef struct light_slice {
    uint32_t z; // LIGHT_CLUSTERS_Z = none yet
    uint32_t light_count;
    uint16_t lights[LIGHTS_MAX];
} light_slice;

float light_depth(const lights_input *input, uint32_t z) {
    float share = (float)z / LIGHT_CLUSTERS_Z;
    return input->near + (input->far - input->near) * share * share;
}

// From side to side at a depth, in steps of 1 / count: the smaller of both depths on the inner side, the larger on the
// outer.
static void axis_box(float from, float to, float tan_half, float near, float far, float *low, float *high) {
    float left = (2 * from - 1) * tan_half, right = (2 * to - 1) * tan_half;
    *low = left * (left < 0 ? far : near);
    *high = right * (right < 0 ? near : far);
}

void light_cluster_box(const lights_input *input, uint32_t number, vec3 *low, vec3 *high) {
    uint32_t x = number % LIGHT_CLUSTERS_X, y = number / LIGHT_CLUSTERS_X % LIGHT_CLUSTERS_Y;
    uint32_t z = number / SLICE_CLUSTERS;
    const float step_x = 1.0f / LIGHT_CLUSTERS_X, step_y = 1.0f / LIGHT_CLUSTERS_Y;
    low->z = light_depth(input, z);
    high->z = light_depth(input, z + 1);
    axis_box((float)x * step_x, (float)(x + 1) * step_x, input->tan_half_x, low->z, high->z, &low->x, &high->x);
    axis_box((float)y * step_y, (float)(y + 1) * step_y, input->tan_half_y, low->z, high->z, &low->y, &high->y);
}

static float outside(float value, float low, float high) {
    if (value < low) return low - value;
    return value > high ? value - high : 0;
}

static bool is_reached(const light *from, vec3 low, vec3 high) {
    vec3 gap = {outside(from->position.x, low.x, high.x), outside(from->position.y, low.y, high.y),
                outside(from->position.z, low.z, high.z)};
    return vec3_dot(gap, gap) <= from->radius * from->radius;
}

static void slice_fill(const lights_input *input, uint32_t z, light_slice *out) {
    float near = light_depth(input, z), far = light_depth(input, z + 1);
    uint32_t light_count = input->light_count < LIGHTS_MAX ? input->light_count : LIGHTS_MAX;
    out->z = z;
    out->light_count = 0;
    for (uint32_t i = 0; i < light_count; ++i) {
        float depth = input->lights[i].position.z, radius = input->lights[i].radius;
        if (depth + radius >= near && depth - radius <= far) out->lights[out->light_count++] = (uint16_t)i;
    }
}

static void cluster_fill(const lights_input *input, uint32_t number, const light_slice *from, light_cluster *out) {
    vec3 low, high;
    light_cluster_box(input, number, &low, &high);
    *out = (light_cluster){0};
    for (uint32_t i = 0; i < from->light_count; ++i) {
        if (!is_reached(&input->lights[from->lights[i]], low, high)) continue;
        if (out->light_count < LIGHT_CLUSTER_LIGHTS_MAX) {
            out->lights[out->light_count++] = from->lights[i];
        } else {
            ++out->dropped_count;
        }
    }
}

void lights_run(const lights_input *input, uint32_t first, uint32_t count, lights_output *out) {
    light_slice slice;
    slice.z = LIGHT_CLUSTERS_Z;
    slice.light_count = 0;
    for (uint32_t number = first; number < first + count; ++number) {
        if (slice.z != number / SLICE_CLUSTERS) slice_fill(input, number / SLICE_CLUSTERS, &slice);
        light_cluster *cluster = &out->clusters[out->cluster_count++];
        cluster_fill(input, number, &slice, cluster);
        out->dropped_count += cluster->dropped_count;
    }
}

void lights_append(lights_output *whole, const lights_output *part) {
    memcpy(whole->clusters + whole->cluster_count, part->clusters, part->cluster_count * sizeof(light_cluster));
    whole->cluster_count += part->cluster_count;
    whole->dropped_count += part->dropped_count;
}

// --- in every frame ---

static nb_result lights_job(const nb_context *context, void *user) {
    const picture *p = user;
    const planet_eye *eye = job_eye(context, p);
    light *lights = nb_arena_alloc(context->arena, HOME_LIGHTS * sizeof *lights, 16);
    job_share mine = job_share_of(context, LIGHT_CLUSTER_COUNT);
    lights_output out = {.clusters = job_output(context, mine.count * sizeof(light_cluster))};
    if (lights == NULL || out.clusters == NULL) return NB_ERR_MEMORY;
    lights_input input = {.lights = lights,
                          .light_count = home_lights_seen(p->lights[eye->home], eye, p->planet->seed, lights),
                          .tan_half_x = eye->camera.tan_half_x,
                          .tan_half_y = eye->camera.tan_half_y,
                          .near = eye->camera.near,
                          .far = eye->camera.near + PICTURE_LIGHTS_FAR};
    lights_run(&input, mine.first, mine.count, &out);
    return NB_OK;
}

static nb_result lights_merge(const nb_context *context, void *user, const nb_output_list *outputs) {
    picture *p = user;
    size_t size_bytes = 0;
    const planet_eye *eye = job_eye(context, p);
    const light_cluster *clusters = merge_note(context, p, outputs, &size_bytes);
    memcpy(p->made.clusters + job_share_of(context, LIGHT_CLUSTER_COUNT).first, clusters, size_bytes);
    p->now.light_count = home_lights_seen(p->lights[eye->home], eye, p->planet->seed, p->made.lights);
    for (uint32_t i = 0; i < size_bytes / sizeof *clusters; ++i) p->now.lit_count += clusters[i].light_count != 0;
    return NB_OK;
}

const nb_module_desc work_lights_module = {
    .name = "lights", .parallel = lights_job, .merge = lights_merge, .job_count = 4};
