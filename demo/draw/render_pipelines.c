// SPDX-License-Identifier: MIT
// All pipelines, in one table.

#include "render_internal.h"

#include <stddef.h>

typedef enum pipeline_target {
    TARGET_SCENE = 0, // with depth
    TARGET_IMAGE,     // of the scene's format
    TARGET_SCREEN,    // the back buffer
    TARGET_SHADOW,    // depth alone
} pipeline_target;

typedef struct pipeline_row {
    const char *name;
    render_shader vertex, fragment;
    pipeline_target target;
    nb_gpu_topology topology;
    nb_gpu_blend blend;
    nb_gpu_cull cull;
    nb_gpu_depth depth;
    uint32_t push_bytes, uniforms, storage, images;
} pipeline_row;

#define FRAME (1u << BINDING_FRAME)
#define DATA (1u << BINDING_DATA)
#define MATERIALS (1u << BINDING_MATERIALS)
#define LIGHTS BINDINGS_OF_LIGHTS

// Written out once a line: what draws, where, how, and what it reads.
// clang-format off
static const pipeline_row ROWS[PIPELINE_COUNT] = {
    [PIPELINE_GROUND] = {"ground", SHADER_GROUND_VERT, SHADER_GROUND_FRAG, TARGET_SCENE, NB_GPU_TOPOLOGY_TRIANGLES, NB_GPU_BLEND_NONE, NB_GPU_CULL_BACK, NB_GPU_DEPTH_TEST_WRITE, 32, FRAME | MATERIALS, DATA, 0},
    [PIPELINE_GROUND_LIT] = {"ground lit", SHADER_GROUND_LIT_VERT, SHADER_GROUND_LIT_FRAG, TARGET_SCENE, NB_GPU_TOPOLOGY_TRIANGLES, NB_GPU_BLEND_NONE, NB_GPU_CULL_BACK, NB_GPU_DEPTH_TEST_WRITE, 32, FRAME | MATERIALS, DATA | LIGHTS, 0},
    [PIPELINE_GROUND_RICH] = {"ground rich", SHADER_GROUND_RICH_VERT, SHADER_GROUND_RICH_FRAG, TARGET_SCENE, NB_GPU_TOPOLOGY_TRIANGLES, NB_GPU_BLEND_NONE, NB_GPU_CULL_BACK, NB_GPU_DEPTH_TEST_WRITE, 32, FRAME | MATERIALS, DATA | LIGHTS, 1},
    [PIPELINE_SHADOW_GROUND] = {"shadow ground", SHADER_SHADOW_GROUND_VERT, SHADER_COUNT, TARGET_SHADOW, NB_GPU_TOPOLOGY_TRIANGLES, NB_GPU_BLEND_NONE, NB_GPU_CULL_BACK, NB_GPU_DEPTH_TEST_WRITE, 32, FRAME, DATA, 0},
    [PIPELINE_SHADOW_BOX] = {"shadow box", SHADER_SHADOW_BOX_VERT, SHADER_COUNT, TARGET_SHADOW, NB_GPU_TOPOLOGY_TRIANGLES, NB_GPU_BLEND_NONE, NB_GPU_CULL_BACK, NB_GPU_DEPTH_TEST_WRITE, 0, FRAME, DATA, 0},
    [PIPELINE_WATER] = {"water", SHADER_WATER_VERT, SHADER_WATER_FRAG, TARGET_SCENE, NB_GPU_TOPOLOGY_TRIANGLES, NB_GPU_BLEND_ALPHA, NB_GPU_CULL_BACK, NB_GPU_DEPTH_TEST, 32, FRAME | MATERIALS, DATA, 0},
    [PIPELINE_WATER_BELOW] = {"water below", SHADER_WATER_VERT, SHADER_WATER_FRAG, TARGET_SCENE, NB_GPU_TOPOLOGY_TRIANGLES, NB_GPU_BLEND_ALPHA, NB_GPU_CULL_FRONT, NB_GPU_DEPTH_TEST, 32, FRAME | MATERIALS, DATA, 0},
    [PIPELINE_DOME] = {"dome", SHADER_DOME_VERT, SHADER_DOME_FRAG, TARGET_SCENE, NB_GPU_TOPOLOGY_TRIANGLES, NB_GPU_BLEND_NONE, NB_GPU_CULL_NONE, NB_GPU_DEPTH_TEST, 16, FRAME, 0, 0},
    [PIPELINE_STARS] = {"stars", SHADER_STARS_VERT, SHADER_STARS_FRAG, TARGET_SCENE, NB_GPU_TOPOLOGY_POINTS, NB_GPU_BLEND_ADD, NB_GPU_CULL_NONE, NB_GPU_DEPTH_TEST, 0, FRAME, 0, 0},
    [PIPELINE_BOX] = {"box", SHADER_BOX_VERT, SHADER_BOX_FRAG, TARGET_SCENE, NB_GPU_TOPOLOGY_TRIANGLES, NB_GPU_BLEND_NONE, NB_GPU_CULL_BACK, NB_GPU_DEPTH_TEST_WRITE, 0, FRAME, DATA, 0},
    [PIPELINE_BOX_LIT] = {"box lit", SHADER_BOX_LIT_VERT, SHADER_BOX_FRAG, TARGET_SCENE, NB_GPU_TOPOLOGY_TRIANGLES, NB_GPU_BLEND_NONE, NB_GPU_CULL_BACK, NB_GPU_DEPTH_TEST_WRITE, 0, FRAME, DATA | LIGHTS, 0},
    [PIPELINE_BOX_RICH] = {"box rich", SHADER_BOX_RICH_VERT, SHADER_BOX_FRAG, TARGET_SCENE, NB_GPU_TOPOLOGY_TRIANGLES, NB_GPU_BLEND_NONE, NB_GPU_CULL_BACK, NB_GPU_DEPTH_TEST_WRITE, 0, FRAME, DATA | LIGHTS, 1},
    [PIPELINE_IMPOSTOR] = {"impostor", SHADER_IMPOSTOR_VERT, SHADER_IMPOSTOR_FRAG, TARGET_SCENE, NB_GPU_TOPOLOGY_TRIANGLES, NB_GPU_BLEND_NONE, NB_GPU_CULL_NONE, NB_GPU_DEPTH_TEST_WRITE, 0, FRAME, DATA, 0},
    [PIPELINE_SMOKE] = {"smoke", SHADER_PARTICLE_VERT, SHADER_PARTICLE_FRAG, TARGET_SCENE, NB_GPU_TOPOLOGY_TRIANGLES, NB_GPU_BLEND_ALPHA, NB_GPU_CULL_NONE, NB_GPU_DEPTH_TEST, 0, FRAME, DATA, 0},
    [PIPELINE_FLAME] = {"flame", SHADER_PARTICLE_VERT, SHADER_PARTICLE_FRAG, TARGET_SCENE, NB_GPU_TOPOLOGY_TRIANGLES, NB_GPU_BLEND_ADD, NB_GPU_CULL_NONE, NB_GPU_DEPTH_TEST, 0, FRAME, DATA, 0},
    [PIPELINE_GLOW] = {"glow", SHADER_SCREEN_VERT, SHADER_GLOW_FRAG, TARGET_IMAGE, NB_GPU_TOPOLOGY_TRIANGLES, NB_GPU_BLEND_NONE, NB_GPU_CULL_NONE, NB_GPU_DEPTH_NONE, 16, 0, 0, 1},
    [PIPELINE_POST] = {"post", SHADER_SCREEN_VERT, SHADER_POST_FRAG, TARGET_SCREEN, NB_GPU_TOPOLOGY_TRIANGLES, NB_GPU_BLEND_NONE, NB_GPU_CULL_NONE, NB_GPU_DEPTH_NONE, 24, 0, 0, 7},
    [PIPELINE_OVERLAY] = {"overlay", SHADER_OVERLAY_VERT, SHADER_OVERLAY_FRAG, TARGET_SCREEN, NB_GPU_TOPOLOGY_TRIANGLES, NB_GPU_BLEND_ALPHA, NB_GPU_CULL_NONE, NB_GPU_DEPTH_NONE, 16, 0, DATA, 0},
};
// clang-format on

static nb_result pipeline_make(render *r, uint32_t number) {
    const pipeline_row *row = &ROWS[number];
    bool has_depth = row->target == TARGET_SCENE || row->target == TARGET_SHADOW;
    nb_gpu_pipeline_desc desc = {.name = row->name,
                                 .vertex = render_shader_of(row->vertex),
                                 .fragment = render_shader_of(row->fragment),
                                 .colors = {row->target == TARGET_SCREEN ? r->target_format : RENDER_SCENE_FORMAT},
                                 .color_count = row->target == TARGET_SHADOW ? 0 : 1,
                                 .depth_format = has_depth ? RENDER_DEPTH_FORMAT : NB_GPU_FORMAT_NONE,
                                 .topology = row->topology,
                                 .blend = row->blend,
                                 .cull = row->cull,
                                 .depth = row->depth,
                                 .push_bytes = row->push_bytes,
                                 .uniform_mask = row->uniforms,
                                 .storage_mask = row->storage,
                                 .sampled_mask = row->images};
    return nb_gpu_pipeline_create(r->gpu, &desc, &r->pipelines[number]);
}

static void screen_pipelines_end(render *r) {
    for (uint32_t i = 0; i < PIPELINE_COUNT; ++i) {
        if (ROWS[i].target != TARGET_SCREEN || r->pipelines[i].value == 0) continue;
        nb_gpu_pipeline_destroy(r->gpu, r->pipelines[i]);
        r->pipelines[i] = (nb_gpu_pipeline){0};
    }
}

nb_result render_pipelines_make(render *r) {
    nb_gpu_format format = nb_gpu_backbuffer_format(r->gpu);
    if (format != r->target_format) screen_pipelines_end(r);
    r->target_format = format;
    r->is_target_linear = format == NB_GPU_FORMAT_RGBA8_SRGB || format == NB_GPU_FORMAT_BGRA8_SRGB;
    nb_result result = NB_OK;
    for (uint32_t i = 0; i < PIPELINE_COUNT && result == NB_OK; ++i)
        if (r->pipelines[i].value == 0) result = pipeline_make(r, i);
    return result;
}
