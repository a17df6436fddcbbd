// SPDX-License-Identifier: MIT
#pragma once

// What the renderer's files share. Each pass has a file: a function that prepares it in render_add, on the thread of
// the frames, and one that records it, on any thread.

#include "nebula/gpu_command.h"

#include "render.h"

#include "../chunks/quad_pool.h"

#define RENDER_NONE UINT32_MAX

// Quads that one draw can have: as far as the index buffer goes.
#define RENDER_DRAW_QUADS_MAX 8192u

// Parts of a mesh that are drawn: of six directions, at most every other is left out.
#define RENDER_PARTS_MAX 3u

// Boxes of an animal near the camera.
#define RENDER_BOXES_EACH 18u

#define RENDER_SCENE_FORMAT NB_GPU_FORMAT_RGBA16F
#define RENDER_DEPTH_FORMAT NB_GPU_FORMAT_DEPTH32F

typedef enum render_shader {
    SHADER_GROUND_VERT = 0,
    SHADER_GROUND_FRAG,
    SHADER_GROUND_LIT_VERT,
    SHADER_GROUND_LIT_FRAG,
    SHADER_GROUND_RICH_VERT,
    SHADER_GROUND_RICH_FRAG,
    SHADER_SHADOW_GROUND_VERT,
    SHADER_SHADOW_BOX_VERT,
    SHADER_WATER_VERT,
    SHADER_WATER_FRAG,
    SHADER_DOME_VERT,
    SHADER_DOME_FRAG,
    SHADER_STARS_VERT,
    SHADER_STARS_FRAG,
    SHADER_BOX_VERT,
    SHADER_BOX_LIT_VERT,
    SHADER_BOX_RICH_VERT,
    SHADER_BOX_FRAG,
    SHADER_IMPOSTOR_VERT,
    SHADER_IMPOSTOR_FRAG,
    SHADER_PARTICLE_VERT,
    SHADER_PARTICLE_FRAG,
    SHADER_SCREEN_VERT,
    SHADER_GLOW_FRAG,
    SHADER_POST_FRAG,
    SHADER_OVERLAY_VERT,
    SHADER_OVERLAY_FRAG,
    SHADER_COUNT,
} render_shader;

typedef enum render_pipeline {
    PIPELINE_GROUND = 0,
    PIPELINE_GROUND_LIT,
    PIPELINE_GROUND_RICH,
    PIPELINE_SHADOW_GROUND,
    PIPELINE_SHADOW_BOX,
    PIPELINE_WATER,
    PIPELINE_WATER_BELOW,
    PIPELINE_DOME,
    PIPELINE_STARS,
    PIPELINE_BOX,
    PIPELINE_BOX_LIT,
    PIPELINE_BOX_RICH,
    PIPELINE_IMPOSTOR,
    PIPELINE_SMOKE,
    PIPELINE_FLAME,
    PIPELINE_GLOW,
    PIPELINE_POST,
    PIPELINE_OVERLAY,
    PIPELINE_COUNT,
} render_pipeline;

// Bindings of buffers, the same in all shaders.
enum {
    BINDING_FRAME = 0,
    BINDING_DATA = 1,
    BINDING_MATERIALS = 2,
    BINDING_LIGHTS = 3,
    BINDING_BLOCKS = 4,
    BINDING_NUMBERS = 5
};
#define BINDINGS_OF_LIGHTS (1u << BINDING_LIGHTS | 1u << BINDING_BLOCKS | 1u << BINDING_NUMBERS)

// What a level of quality means.
typedef struct render_level {
    uint32_t scale;                  // of the scene, in quarters of the back buffer's sides
    uint32_t lights;                 // that a pixel asks
    uint32_t rings, segments, steps; // of the sky
    uint32_t stars;
    uint32_t shadow; // pixels of a side of the sun's picture; 0 = none
    bool has_glow;
} render_level;

// As frame.glsl has it.
typedef struct frame_constants {
    camera_matrix clip;
    float camera[4], sun[4], clear[4], right[4], up[4], forward[4], size[4], clusters[4], cluster_counts[4], stars[4];
    camera_matrix shadow;
    float shadow_size[4];
} frame_constants;

_Static_assert(sizeof(frame_constants) == 2 * 64 + 11 * 16, "as the shaders take it");

// As quad.glsl has it.
typedef struct node_constants {
    uint32_t face, level, x, y;
    int32_t base, step, reserved[2];
} node_constants;

_Static_assert(sizeof(node_constants) == 32, "as the shaders take it");

typedef struct mesh_slot {
    uint16_t generation;
    bool is_used, is_waiting;
    node_constants node;
    uint32_t page_first, page_count;
    uint32_t quad_first, quad_count, water_count; // in the pool; the water follows the rest
    uint32_t done_count;                          // quads on the device
    uint32_t face_first[RENDER_FACE_COUNT + 1];   // of each direction; all 0 where they are not in order
    vec3d middle;
    uint32_t next, before; // among those that wait, or the free ones
} mesh_slot;

// A part of a mesh.
typedef struct ground_draw {
    uint32_t mesh, first, count;
} ground_draw;

typedef struct render_instance {
    float middle[3];
    uint32_t colour;
    float x[4], y[4], z[4];
} render_instance;

typedef struct render_sprite {
    float middle[3], size;
    uint32_t colour, kind, reserved[2]; // kind: of a particle; of an impostor its direction
} render_sprite;

typedef struct render_point_light {
    float place[3], radius, colour[4];
} render_point_light;

_Static_assert(sizeof(render_instance) == 64 && sizeof(render_sprite) == 32 && sizeof(render_point_light) == 32,
               "as the shaders take them");

// Things of one kind in the frame's memory.
typedef struct render_list {
    nb_gpu_span span;
    uint32_t count;
} render_list;

struct render {
    nb_hooks hooks;
    nb_gpu *gpu;
    render_desc desc;
    nb_gpu_format target_format; // that the last pipelines were made for
    nb_gpu_pipeline pipelines[PIPELINE_COUNT];
    nb_gpu_buffer quads, indices;
    bool is_filled; // the indices are on the device

    // Meshes: slots, pages, and a copy of all quads, from which a new device is filled.
    quad_pool pool;
    render_quad *copy;
    mesh_slot *meshes;
    uint32_t mesh_count, ready_count;
    uint32_t free_first, wait_first, wait_last; // slots; RENDER_NONE at the end
    uint64_t waiting_quads;
    uint64_t lost_bytes;   // of uploads that never reached the device, as far as known
    uint64_t filled_bytes; // uploaded from where jobs have put them, before this frame is drawn

    // The frame.
    render_level level;
    camera_view camera;
    uint32_t width, height, target_width, target_height;
    nb_gpu_span constants;
    ground_draw *draws; // room for RENDER_PARTS_MAX parts of each mesh
    uint32_t draw_count;
    uint32_t *order, *order_other; // of the chunks, the nearest first
    uint32_t *keys;                // half metres from the camera, and the directions that are drawn: by mesh
    uint32_t chunk_count;
    render_list materials;
    bool has_lights;
    bool has_shadows;
    double shadow_range;  // metres from the middle of the sun's picture to its sides
    camera_matrix shadow; // from what is relative to the camera
    vec3d shadow_middle;
    render_list lights, blocks, numbers;
    render_list boxes, impostors, smoke, flames, overlay;
    float exposure;
    bool is_target_linear;
    nb_graph_resource scene, depth, shadow_image, glow_near, glow_far, target;
    render_stats stats;
};

// render.c

// What every pass binds first.
void render_bind(const render *r, nb_gpu_command *command, render_pipeline pipeline);

// A pass over the scene: colour, and depth where it is given.
nb_result render_pass_add(render *r, const char *name, nb_graph_record_fn record, uint32_t bucket_count,
                          nb_gpu_access depth, nb_graph_pass *out);

// render_shaders.c
nb_gpu_shader render_shader_of(render_shader shader);

// render_pipelines.c: makes those that are missing, and those of the back buffer again where its format is another.
nb_result render_pipelines_make(render *r);

// render_resources.c
nb_result render_resources_make(render *r);
void render_resources_end(render *r);
void render_upload(render *r);
const mesh_slot *render_mesh_of(const render *r, render_mesh mesh);

// Takes memory of the frame for things of one kind; count 0 where there is none.
render_list render_list_take(render *r, uint32_t count, size_t size_bytes);

// render_frame.c
void render_constants_fill(const render *r, const render_frame *frame, frame_constants *out);

// render_<pass>.c: what a pass needs for the frame, and the pass itself where it has anything to draw.

// render_ground.c
void render_bind_ground(const render *r, nb_gpu_command *command, render_pipeline pipeline);
void render_draw_quads(nb_gpu_command *command, uint32_t first, uint32_t count);
void render_ground_prepare(render *r, const render_frame *frame);
nb_result render_ground_add(render *r, uint32_t bucket_count);
nb_result render_water_add(render *r, uint32_t bucket_count);

// render_shadow.c
void render_shadow_prepare(render *r, const render_frame *frame);
nb_result render_shadow_add(render *r);

// render_lights.c
void render_lights_prepare(render *r, const render_frame *frame);

// render_creatures.c
void render_creatures_prepare(render *r, const render_frame *frame);
nb_result render_creatures_add(render *r);

// render_sky.c
nb_result render_sky_add(render *r);

// render_particles.c
void render_particles_prepare(render *r, const render_frame *frame);
nb_result render_particles_add(render *r);

// render_post.c
nb_result render_post_add(render *r);
void render_overlay_prepare(render *r, const render_frame *frame);
nb_result render_overlay_add(render *r);
