// SPDX-License-Identifier: MIT
#pragma once

// The picture of the planet, over the gpu module: meshes of the ground are handed over once, everything else with each
// frame. It knows nothing of how the planet is made. The one rule: whatever a render_frame points to is only read
// during render_add.
//
//     render_mesh_add(r, &mesh, &handle);         // when a node is meshed
//     if (render_mesh_is_ready(r, handle)) ...    // it is on the device: its parent may go
//     render_add(r, &frame);                      // in FrameGraph: passes for this frame
//
// Positions are in metres from the middle of the planet, directions in its axes; colours are linear.

#include <stdbool.h>
#include <stdint.h>

#include "nebula/gpu.h"

#include "camera_view.h"
#include "overlay.h"

#define RENDER_MATERIALS_MAX 64u
#define RENDER_LEG_COUNT 4

// Where the desc gives none. A quad is 8 bytes: 16 MiB of ground.
#define RENDER_QUADS_DEFAULT (2u << 20)
#define RENDER_MESHES_DEFAULT 2048u
#define RENDER_UPLOAD_BYTES_DEFAULT (1u << 20)

// Of one frame; what is above is left out and counted.
#define RENDER_CREATURES_MAX 512u
#define RENDER_BOXES_MAX 1024u
#define RENDER_IMPOSTORS_MAX 4096u
#define RENDER_PARTICLES_MAX 8192u
#define RENDER_LIGHTS_MAX 1024u
#define RENDER_BUCKETS_MAX 64u

// Levels of quality: from a CPU that draws, to pictures of four samples a pixel.
#define RENDER_QUALITY_COUNT 5u
#define RENDER_QUALITY_BEST (RENDER_QUALITY_COUNT - 1)

typedef struct render render;

// A mesh on its way to the device, or there. Zero is none; one that was removed is refused.
typedef struct render_mesh {
    uint32_t value; // private
} render_mesh;

// As the shaders' quad.glsl opens it, and the mesher packs it.
typedef struct render_quad {
    uint32_t place, what;
} render_quad;

// A node of the planet: a square of 32 by 32 cells of a face.
typedef struct render_mesh_desc {
    uint8_t face, level, x, y; // cells are 2^level columns wide; x along U, y along V
    int32_t base, step;        // metres above the sea of layer 0; metres of a layer
    const render_quad *quads;  // opaque; copied. Those of one direction together, in the order of directions, are
    uint32_t quad_count;       // left out where nobody can see them; in any other order all are drawn
    const render_quad *water;  // copied
    uint32_t water_count;
} render_mesh_desc;

// How a mesh is drawn in one frame.
typedef struct render_chunk {
    render_mesh mesh;
    uint32_t faces; // a bit for each direction: what looks that way is drawn; 0 = it only casts shadows
    float distance; // metres from the camera: the nearest are drawn first
} render_chunk;

#define RENDER_FACE_COUNT 6u
#define RENDER_FACES_ALL ((1u << RENDER_FACE_COUNT) - 1)

// What is further from the camera than this many metres casts no shadow worth drawing.
#define RENDER_SHADOW_REACH 1200.0f

// As quad.glsl has it; all 0 to 1, colours linear.
typedef struct render_material {
    float colour[3], speckle;
    float opacity, roughness, glow, reserved; // zero
} render_material;

typedef struct render_leg {
    vec3 hip, knee, foot; // from the animal's position
} render_leg;

typedef struct render_creature {
    vec3d position; // its middle, on the ground
    vec3 up, forward;
    vec3 look;       // where its head points: ahead, up and to its right; of length 1, all zero = ahead
    float size;      // metres from the ground to its back
    uint32_t colour; // 0xRRGGBB as a screen shows it
    render_leg legs[RENDER_LEG_COUNT];
} render_creature;

// A plain box: what is built is made of them. Lit and shadowed as animals are.
typedef struct render_box {
    vec3d position;  // its middle
    vec3 x, y, z;    // from the middle to its sides, at right angles; x cross y is along z
    uint32_t colour; // 0xRRGGBB as a screen shows it
} render_box;

// An animal far away: a flat figure that faces the camera, and shows the side the camera is on.
typedef struct render_impostor {
    vec3d position;
    float size;
    uint32_t colour;
    uint32_t direction; // eighths of a turn, from where it looks to its right: where the camera is
} render_impostor;

typedef enum render_particle_kind {
    RENDER_PARTICLE_FLAME = 0, // gives light of its own
    RENDER_PARTICLE_SMOKE,
    RENDER_PARTICLE_DUST,
    RENDER_PARTICLE_KIND_COUNT,
} render_particle_kind;

typedef struct render_particle {
    vec3d position;
    float size;      // metres from its middle to where it ends
    uint32_t colour; // 0xAARRGGBB
    render_particle_kind kind;
} render_particle;

typedef struct render_light {
    vec3d position;
    float radius; // where it ends
    vec3 colour;  // and strength
} render_light;

// The lights that reach one block of the picture.
#define RENDER_CLUSTER_LIGHTS_MAX 32
typedef struct render_cluster {
    uint16_t light_count;
    uint16_t dropped_count;
    uint16_t lights[RENDER_CLUSTER_LIGHTS_MAX];
} render_cluster;

// Blocks of the picture: number = (z * y_count + y) * x_count + x, x to the right, y up, z away from the camera.
// Block z begins at the depth near + (far - near) * (z / z_count)^2.
typedef struct render_clusters {
    const render_cluster *clusters; // NULL: no point lights
    uint32_t x_count, y_count, z_count;
    float near, far;
} render_clusters;

typedef struct render_frame {
    camera_view camera;
    vec3 sun;              // towards it, of length 1
    float turn;            // of the stars around the planet's axis, radians
    float time_s;          // for waves and flames; any beginning
    float tick_pulse;      // of space behind the planet: 0 darkest to 1 brightest
    uint32_t quality;      // below RENDER_QUALITY_COUNT
    uint32_t bucket_count; // jobs that record the ground; 0 = 1

    const render_material *materials; // by number, up to RENDER_MATERIALS_MAX; those that the quads of this frame name
    uint32_t material_count;
    const render_chunk *chunks; // in any order; what is not ready is left out
    uint32_t chunk_count;
    const render_creature *creatures;
    uint32_t creature_count;
    const render_box *boxes;
    uint32_t box_count;
    const render_impostor *impostors;
    uint32_t impostor_count;
    const render_particle *particles; // smoke and dust the farthest first
    uint32_t particle_count;
    const render_light *lights;
    uint32_t light_count;
    render_clusters clusters;
    const overlay *overlay; // may be NULL
} render_frame;

typedef struct render_desc {
    nb_gpu *gpu;
    uint32_t quad_count_max;   // of all meshes
    uint32_t mesh_count_max;   // up to 65535
    uint32_t upload_bytes_max; // of meshes in one frame
    nb_hooks hooks;
} render_desc;

// The last render_add, unless said otherwise.
typedef struct render_stats {
    uint32_t triangle_count;               // of all passes
    uint32_t draw_count;                   // of the ground
    uint32_t chunk_count, skipped_count;   // ready, those too that only cast shadows; not ready or removed
    uint32_t dropped_count;                // of all lists: what was beyond its bound, or found no memory
    uint32_t width, height;                // that the scene is drawn in
    uint32_t mesh_count, mesh_ready_count; // now
    uint32_t quad_count, quad_count_max;   // of the pool, now
    uint64_t upload_bytes, pending_bytes;  // of meshes: handed over; still waiting
    uint64_t filled_bytes_total;           // of the next: from memory that jobs had filled, since the beginning
    uint64_t upload_bytes_total;
} render_stats;

// Makes pipelines and buffers; the first frames upload what never changes. NB_ERR_UNSUPPORTED where the demo was built
// without shaders and the device would need them.
nb_result render_create(const render_desc *desc, render **out);

// Between frames. NULL is fine.
void render_destroy(render *r);

// After the device was lost and made anew: everything is uploaded again, within the budgets.
void render_restored(render *r);

// Takes a copy of a mesh. NB_FULL: no room for it now.
nb_result render_mesh_add(render *r, const render_mesh_desc *desc, render_mesh *out);

// All of a mesh's quads, the water behind the ground, lie in memory of this frame: they are uploaded from there, in the
// frame that it was added in. False where that is not so, or it is on its way already: then it is copied as the others.
bool render_mesh_fill(render *r, render_mesh mesh, nb_gpu_span quads);

// Ends a mesh. It must not be in a later render_frame; there it counts as skipped.
void render_mesh_remove(render *r, render_mesh mesh);

// Whether it is on the device and can be drawn.
bool render_mesh_is_ready(const render *r, render_mesh mesh);

// Triangles of a mesh that look in these directions, and of its water: what a chunk with such faces would add.
uint32_t render_mesh_triangles(const render *r, render_mesh mesh, uint32_t faces);

// Adds the passes of this frame to the device's graph, in FrameGraph. NB_EMPTY: this frame has no picture; meshes wait.
nb_result render_add(render *r, const render_frame *frame);

render_stats render_stats_get(const render *r);

// Whether a level of quality has shadows.
bool render_has_shadows(uint32_t quality);

// False where the demo was built without glslc: only the null device can be used then.
bool render_has_shaders(void);
