// SPDX-License-Identifier: MIT
// What all shaders of a frame know: the camera, the sun, how bright it is.

#include "render_internal.h"

#include <math.h>

#include "../planet/sphere.h"

// Metres above the sea where the air begins to thin out for the eye, and where space begins.
#define AIR_LOW 160.0f
#define AIR_HIGH 600.0f

// Walkers see for a kilometre; from above the whole air is between the eye and the ground.
#define HAZE_NEAR 0.16f
#define HAZE_FAR 0.80f

// How far before itself a surface asks whether it is in the sun: some centimetres of the depth, and some pixels of the
// sun's picture.
#define SHADOW_BIAS 0.0001f
#define SHADOW_PIXELS 3.0f

static float smooth(float low, float high, float x) {
    float t = (x - low) / (high - low);
    t = t < 0 ? 0 : t > 1 ? 1 : t;
    return t * t * (3 - 2 * t);
}

static float mix(float a, float b, float t) { return a + (b - a) * t; }

static void put(float out[4], vec3 v, float w) {
    out[0] = v.x;
    out[1] = v.y;
    out[2] = v.z;
    out[3] = w;
}

static void put4(float out[4], float x, float y, float z, float w) { put(out, (vec3){x, y, z}, w); }

static void stars_fill(const render_frame *frame, float rise, float high, frame_constants *out) {
    float night = 1 - smooth(-0.20f, 0.0f, rise);
    put4(out->stars, cosf(frame->turn), sinf(frame->turn), mix(night, 0.9f, high), 0);
}

static void space_fill(const render_frame *frame, float high, frame_constants *out) {
    float pulse = frame->tick_pulse;
    float c = 0.6f + 1.6f * pulse;
    put4(out->clear, 0.0007f * c, 0.0009f * c, 0.0026f * c, mix(HAZE_NEAR, HAZE_FAR, high));
}

void render_constants_fill(const render *r, const render_frame *frame, frame_constants *out) {
    const camera_view *camera = &r->camera;
    float aspect = (float)r->target_width / (float)r->target_height;
    float height = (float)(vec3d_length(camera->position) - SPHERE_RADIUS), high = smooth(AIR_LOW, AIR_HIGH, height);
    vec3 away = vec3_normal(vec3_of(camera->position), (vec3){0, 1, 0});
    float rise = vec3_dot(away, frame->sun);
    const render_clusters *blocks = &frame->clusters;

    out->clip = camera_clip(camera, aspect);
    put(out->camera, vec3_of(camera->position), height);
    put(out->sun, frame->sun, frame->time_s);
    put(out->right, camera->right, camera->tan_half_y * aspect);
    put(out->up, camera->up, camera->tan_half_y);
    put(out->forward, camera->forward, camera->near);
    put4(out->size, (float)r->width, (float)r->height, 1.0f / (float)r->width, 1.0f / (float)r->height);
    put4(out->clusters, blocks->near, blocks->far, (float)r->level.lights, 0);
    // Without lights there is no block that a shader would look into.
    float z_count = r->has_lights ? (float)blocks->z_count : 0;
    put4(out->cluster_counts, (float)blocks->x_count, (float)blocks->y_count, z_count, 0);
    out->shadow = r->shadow;
    float side = r->has_shadows ? (float)r->level.shadow : 1;
    put4(out->shadow_size, side, 1 / side, SHADOW_BIAS, (float)r->shadow_range * SHADOW_PIXELS / side);
    stars_fill(frame, rise, high, out);
    space_fill(frame, high, out);
}
