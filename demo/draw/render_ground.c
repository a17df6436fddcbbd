// SPDX-License-Identifier: MIT
// The ground and the water: which parts of which meshes, in which order, recorded in buckets. The nearest meshes come
// first, so that what is hidden is not drawn.

#include "render_internal.h"

#include <string.h>

#include "../planet/sphere.h"

// A mesh as it is drawn in this frame: half metres from the camera in 16 bits, above them the directions.
#define KEY_FACES_SHIFT 16u

// --- order ---

static uint32_t key_of(const render_chunk *chunk) {
    float far = chunk->distance * 2;
    uint32_t near = far < 65535 ? (uint32_t)(far > 0 ? far : 0) : 65535;
    return (chunk->faces & RENDER_FACES_ALL) << KEY_FACES_SHIFT | near;
}

static uint32_t faces_of(const render *r, uint32_t mesh) { return r->keys[mesh] >> KEY_FACES_SHIFT; }

// By the keys, eight bits at a time; what is equal keeps its order.
static void sort_by_byte(const uint32_t *keys, const uint32_t *from, uint32_t *to, uint32_t count, uint32_t shift) {
    uint32_t first[257] = {0};
    for (uint32_t i = 0; i < count; ++i) ++first[(keys[from[i]] >> shift & 255) + 1];
    for (uint32_t i = 0; i < 256; ++i) first[i + 1] += first[i];
    for (uint32_t i = 0; i < count; ++i) to[first[keys[from[i]] >> shift & 255]++] = from[i];
}

static bool is_drawable(const mesh_slot *slot) {
    return slot != NULL && slot->done_count == slot->quad_count + slot->water_count;
}

static void order_find(render *r, const render_frame *frame) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < frame->chunk_count && count < r->desc.mesh_count_max; ++i) {
        const mesh_slot *slot = render_mesh_of(r, frame->chunks[i].mesh);
        if (!is_drawable(slot)) continue;
        uint32_t index = (uint32_t)(slot - r->meshes);
        r->keys[index] = key_of(&frame->chunks[i]);
        r->order[count++] = index;
    }
    r->chunk_count = count;
    r->stats.chunk_count = count;
    r->stats.skipped_count = frame->chunk_count - count;
    sort_by_byte(r->keys, r->order, r->order_other, count, 0);
    sort_by_byte(r->keys, r->order_other, r->order, count, 8);
}

// --- draws ---

static void draw_put(render *r, uint32_t mesh, uint32_t first, uint32_t count) {
    if (count == 0) return;
    r->draws[r->draw_count++] = (ground_draw){mesh, first, count};
    r->stats.triangle_count += count * 2;
}

// Directions side by side are one part: of six that is three at most.
static void draws_of_mesh(render *r, uint32_t mesh) {
    const mesh_slot *slot = &r->meshes[mesh];
    uint32_t seen = faces_of(r, mesh), face = 0;
    if (slot->face_first[RENDER_FACE_COUNT] != slot->quad_count) {
        if (seen != 0) draw_put(r, mesh, slot->quad_first, slot->quad_count);
        return;
    }
    while (face < RENDER_FACE_COUNT) {
        uint32_t first = face;
        while (face < RENDER_FACE_COUNT && (seen >> face & 1)) ++face;
        if (face > first)
            draw_put(r, mesh, slot->quad_first + slot->face_first[first],
                     slot->face_first[face] - slot->face_first[first]);
        ++face;
    }
}

uint32_t render_mesh_triangles(const render *r, render_mesh mesh, uint32_t faces) {
    const mesh_slot *slot = render_mesh_of(r, mesh);
    if (!is_drawable(slot) || faces == 0) return 0;
    uint32_t count = slot->water_count;
    if (slot->face_first[RENDER_FACE_COUNT] != slot->quad_count) return (count + slot->quad_count) * 2;
    for (uint32_t face = 0; face < RENDER_FACE_COUNT; ++face)
        if (faces >> face & 1) count += slot->face_first[face + 1] - slot->face_first[face];
    return count * 2;
}

static void materials_prepare(render *r, const render_frame *frame) {
    uint32_t count = frame->material_count < RENDER_MATERIALS_MAX ? frame->material_count : RENDER_MATERIALS_MAX;
    r->materials = render_list_take(r, RENDER_MATERIALS_MAX, sizeof(render_material));
    if (r->materials.count == 0) return;
    memset(r->materials.span.memory, 0, r->materials.span.size_bytes);
    if (count > 0) memcpy(r->materials.span.memory, frame->materials, count * sizeof(render_material));
}

void render_ground_prepare(render *r, const render_frame *frame) {
    r->draw_count = 0;
    order_find(r, frame);
    materials_prepare(r, frame);
    // Before the first upload of what never changes nothing can be drawn.
    if (!r->is_filled || r->materials.count == 0) r->chunk_count = 0;
    for (uint32_t i = 0; i < r->chunk_count; ++i) draws_of_mesh(r, r->order[i]);
    r->stats.draw_count = r->draw_count;
}

void render_draw_quads(nb_gpu_command *command, uint32_t first, uint32_t count) {
    for (uint32_t done = 0; done < count; done += RENDER_DRAW_QUADS_MAX) {
        uint32_t part = count - done < RENDER_DRAW_QUADS_MAX ? count - done : RENDER_DRAW_QUADS_MAX;
        nb_gpu_draw_indexed(command, part * 6, 1, 0, (int32_t)((first + done) * 4), 0);
    }
}

void render_bind_ground(const render *r, nb_gpu_command *command, render_pipeline pipeline) {
    render_bind(r, command, pipeline);
    nb_gpu_set_buffer(command, BINDING_DATA, r->quads, 0, 0);
    nb_gpu_set_span(command, BINDING_MATERIALS, r->materials.span);
    nb_gpu_set_indices(command, r->indices, 0);
}

// A bucket is a part of the order: the first bucket is the nearest ground.
static uint32_t bucket_first(uint32_t count, uint32_t bucket, uint32_t bucket_count) {
    return (uint32_t)((uint64_t)count * bucket / bucket_count);
}

static render_pipeline pipeline_of(const render *r) {
    if (r->has_shadows) return PIPELINE_GROUND_RICH;
    return r->has_lights ? PIPELINE_GROUND_LIT : PIPELINE_GROUND;
}

static nb_result record_ground(nb_gpu_command *command, uint32_t bucket, uint32_t bucket_count, void *user) {
    const render *r = (const render *)user;
    uint32_t i = bucket_first(r->draw_count, bucket, bucket_count);
    uint32_t end = bucket_first(r->draw_count, bucket + 1, bucket_count), mesh = RENDER_NONE;
    if (i < end) render_bind_ground(r, command, pipeline_of(r));
    for (; i < end; ++i) {
        const ground_draw *draw = &r->draws[i];
        const mesh_slot *slot = &r->meshes[draw->mesh];
        if (draw->mesh != mesh) nb_gpu_push(command, &slot->node, sizeof slot->node);
        mesh = draw->mesh;
        render_draw_quads(command, draw->first, draw->count);
    }
    return NB_OK;
}

static uint32_t water_count(const render *r, uint32_t mesh) {
    return faces_of(r, mesh) != 0 ? r->meshes[mesh].water_count : 0;
}

// The farthest first; and never its other side: over the horizon one would see the sea from below.
static nb_result record_water(nb_gpu_command *command, uint32_t bucket, uint32_t bucket_count, void *user) {
    const render *r = (const render *)user;
    uint32_t i = bucket_first(r->chunk_count, bucket, bucket_count);
    uint32_t end = bucket_first(r->chunk_count, bucket + 1, bucket_count);
    bool is_below = vec3d_length(r->camera.position) < SPHERE_RADIUS, is_bound = false;
    for (; i < end; ++i) {
        uint32_t mesh = r->order[r->chunk_count - 1 - i];
        const mesh_slot *slot = &r->meshes[mesh];
        if (water_count(r, mesh) == 0) continue;
        if (!is_bound) render_bind_ground(r, command, is_below ? PIPELINE_WATER_BELOW : PIPELINE_WATER);
        is_bound = true;
        nb_gpu_push(command, &slot->node, sizeof slot->node);
        render_draw_quads(command, slot->quad_first + slot->quad_count, slot->water_count);
    }
    return NB_OK;
}

static nb_gpu_clear clear_of(const render *r) {
    const frame_constants *c = (const frame_constants *)r->constants.memory;
    return (nb_gpu_clear){{c->clear[0], c->clear[1], c->clear[2], 1}};
}

// Always there: it clears.
nb_result render_ground_add(render *r, uint32_t bucket_count) {
    nb_graph *graph = nb_gpu_graph(r->gpu);
    nb_graph_pass pass;
    nb_graph_record_fn record = r->draw_count > 0 ? record_ground : NULL;
    nb_result result =
        render_pass_add(r, "ground", record, record != NULL ? bucket_count : 1, NB_GPU_ACCESS_DEPTH, &pass);
    if (result == NB_OK) result = nb_graph_clear(graph, pass, r->scene, clear_of(r));
    if (result == NB_OK) result = nb_graph_clear(graph, pass, r->depth, (nb_gpu_clear){{0}});
    return result;
}

nb_result render_water_add(render *r, uint32_t bucket_count) {
    uint32_t quads = 0;
    for (uint32_t i = 0; i < r->chunk_count; ++i) quads += water_count(r, r->order[i]);
    if (quads == 0) return NB_OK;
    r->stats.triangle_count += quads * 2;
    nb_graph_pass pass;
    return render_pass_add(r, "water", record_water, bucket_count, NB_GPU_ACCESS_DEPTH_READ, &pass);
}
