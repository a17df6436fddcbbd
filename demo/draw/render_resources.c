// SPDX-License-Identifier: MIT
// Meshes of the ground: one buffer for all quads, a copy of it for the case that the device is lost, and a queue of
// what is not on the device yet.
//
// Pages that are given back may be written over at once: a copy to the device runs after all frames before it.

#include "render_internal.h"

#include <string.h>

#include "nebula/report.h"

#include "../planet/sphere.h"

static size_t copy_bytes(const render *r) { return (size_t)r->pool.page_count * QUAD_POOL_PAGE * sizeof(render_quad); }

static void *take(render *r, size_t count, size_t size_bytes) {
    return nb_hooks_alloc(&r->hooks, count * size_bytes, 64, "render_create");
}

static void slots_clear(render *r) {
    uint32_t count = r->desc.mesh_count_max;
    memset(r->meshes, 0, count * sizeof(mesh_slot));
    for (uint32_t i = 0; i < count; ++i) r->meshes[i].next = i + 1 < count ? i + 1 : RENDER_NONE;
    r->free_first = 0;
    r->wait_first = r->wait_last = RENDER_NONE;
}

static nb_result buffers_make(render *r) {
    nb_gpu_buffer_desc quads = {.name = "quads", .size_bytes = copy_bytes(r)};
    nb_gpu_buffer_desc indices = {.name = "quad indices", .size_bytes = RENDER_DRAW_QUADS_MAX * 6 * sizeof(uint32_t)};
    nb_result result = nb_gpu_buffer_create(r->gpu, &quads, &r->quads);
    return result == NB_OK ? nb_gpu_buffer_create(r->gpu, &indices, &r->indices) : result;
}

nb_result render_resources_make(render *r) {
    size_t meshes = r->desc.mesh_count_max;
    nb_result result = quad_pool_init(&r->pool, quad_pool_pages(r->desc.quad_count_max), &r->hooks);
    if (result != NB_OK) return result;
    r->copy = (render_quad *)nb_hooks_alloc(&r->hooks, copy_bytes(r), 64, "render_create");
    r->meshes = (mesh_slot *)take(r, meshes, sizeof(mesh_slot));
    r->draws = (ground_draw *)take(r, meshes * RENDER_PARTS_MAX, sizeof(ground_draw));
    r->order = (uint32_t *)take(r, meshes, sizeof(uint32_t));
    r->order_other = (uint32_t *)take(r, meshes, sizeof(uint32_t));
    r->keys = (uint32_t *)take(r, meshes, sizeof(uint32_t));
    if (r->copy == NULL || r->meshes == NULL || r->draws == NULL || r->order == NULL || r->order_other == NULL ||
        r->keys == NULL)
        return NB_ERR_MEMORY;
    slots_clear(r);
    return buffers_make(r);
}

void render_resources_end(render *r) {
    size_t meshes = r->desc.mesh_count_max;
    if (r->quads.value != 0) nb_gpu_buffer_destroy(r->gpu, r->quads);
    if (r->indices.value != 0) nb_gpu_buffer_destroy(r->gpu, r->indices);
    nb_hooks_free(&r->hooks, r->keys, meshes * sizeof(uint32_t));
    nb_hooks_free(&r->hooks, r->order_other, meshes * sizeof(uint32_t));
    nb_hooks_free(&r->hooks, r->order, meshes * sizeof(uint32_t));
    nb_hooks_free(&r->hooks, r->draws, meshes * RENDER_PARTS_MAX * sizeof(ground_draw));
    nb_hooks_free(&r->hooks, r->meshes, meshes * sizeof(mesh_slot));
    nb_hooks_free(&r->hooks, r->copy, copy_bytes(r));
    if (r->pool.words != NULL) quad_pool_deinit(&r->pool);
}

// --- meshes ---

static uint32_t index_of(const render *r, render_mesh mesh) {
    uint32_t index = (mesh.value & 0xffff) - 1;
    if (mesh.value == 0 || index >= r->desc.mesh_count_max) return RENDER_NONE;
    const mesh_slot *slot = &r->meshes[index];
    return slot->is_used && slot->generation == mesh.value >> 16 ? index : RENDER_NONE;
}

static uint32_t total(const mesh_slot *slot) { return slot->quad_count + slot->water_count; }
static bool is_ready(const mesh_slot *slot) { return slot->done_count == total(slot); }

const mesh_slot *render_mesh_of(const render *r, render_mesh mesh) {
    uint32_t index = index_of(r, mesh);
    return index == RENDER_NONE ? NULL : &r->meshes[index];
}

bool render_mesh_is_ready(const render *r, render_mesh mesh) {
    const mesh_slot *slot = render_mesh_of(r, mesh);
    return slot != NULL && is_ready(slot);
}

static void wait_push(render *r, uint32_t index) {
    mesh_slot *slot = &r->meshes[index];
    slot->is_waiting = true;
    slot->next = RENDER_NONE;
    slot->before = r->wait_last;
    if (r->wait_last != RENDER_NONE)
        r->meshes[r->wait_last].next = index;
    else
        r->wait_first = index;
    r->wait_last = index;
    r->waiting_quads += total(slot) - slot->done_count;
}

static void wait_leave(render *r, uint32_t index) {
    mesh_slot *slot = &r->meshes[index];
    slot->is_waiting = false;
    r->waiting_quads -= total(slot) - slot->done_count;
    if (slot->before != RENDER_NONE)
        r->meshes[slot->before].next = slot->next;
    else
        r->wait_first = slot->next;
    if (slot->next != RENDER_NONE)
        r->meshes[slot->next].before = slot->before;
    else
        r->wait_last = slot->before;
}

// Where each direction begins, if they come one after the other.
static void faces_find(mesh_slot *slot, const render_quad *quads) {
    uint32_t face = 0;
    memset(slot->face_first, 0, sizeof slot->face_first);
    for (uint32_t i = 0; i < slot->quad_count; ++i) {
        uint32_t own = quads[i].place >> 23 & 7;
        if (own < face || own >= RENDER_FACE_COUNT) {
            memset(slot->face_first, 0, sizeof slot->face_first);
            return;
        }
        while (face < own) slot->face_first[++face] = i;
    }
    while (face < RENDER_FACE_COUNT) slot->face_first[++face] = slot->quad_count;
}

// Cells along a side of a node.
#define NODE_CELLS 32u

static vec3d middle_of(const node_constants *node) {
    double size = NODE_CELLS << node->level;
    return sphere_position(node->face, (node->x + 0.5) * size, (node->y + 0.5) * size, node->base);
}

static bool is_node(const render_mesh_desc *desc) {
    if (desc->face >= SPHERE_FACE_COUNT || desc->level > 7) return false;
    uint32_t count = (uint32_t)SPHERE_FACE_COLUMNS / NODE_CELLS >> desc->level;
    return desc->x < count && desc->y < count;
}

static void quads_copy(render_quad *to, const render_quad *from, uint32_t count) {
    if (count > 0) memcpy(to, from, count * sizeof(render_quad));
}

nb_result render_mesh_add(render *r, const render_mesh_desc *desc, render_mesh *out) {
    if (!is_node(desc) || desc->quad_count > r->desc.quad_count_max || desc->water_count > r->desc.quad_count_max)
        return NB_FAIL(&r->hooks, NB_ITEM_BASE_ARGUMENT, NB_ERR_RANGE, "node %u/%u/%u/%u with %u + %u quads",
                       desc->face, desc->level, desc->x, desc->y, desc->quad_count, desc->water_count);
    uint32_t index = r->free_first, pages = quad_pool_pages(desc->quad_count + desc->water_count), page = 0;
    if (index == RENDER_NONE || quad_pool_take(&r->pool, pages, &page) != NB_OK) return NB_FULL;
    mesh_slot *slot = &r->meshes[index];
    r->free_first = slot->next;
    *slot = (mesh_slot){.generation = (uint16_t)(slot->generation + 1),
                        .is_used = true,
                        .node = {desc->face, desc->level, desc->x, desc->y, desc->base, desc->step, {0, 0}},
                        .page_first = page,
                        .page_count = pages,
                        .quad_first = page * QUAD_POOL_PAGE,
                        .quad_count = desc->quad_count,
                        .water_count = desc->water_count};
    slot->middle = middle_of(&slot->node);
    faces_find(slot, desc->quads);
    quads_copy(&r->copy[slot->quad_first], desc->quads, desc->quad_count);
    quads_copy(&r->copy[slot->quad_first + desc->quad_count], desc->water, desc->water_count);
    if (total(slot) > 0)
        wait_push(r, index);
    else
        ++r->ready_count;
    ++r->mesh_count;
    *out = (render_mesh){(uint32_t)slot->generation << 16 | (index + 1)};
    return NB_OK;
}

bool render_mesh_fill(render *r, render_mesh mesh, nb_gpu_span quads) {
    uint32_t index = index_of(r, mesh);
    mesh_slot *slot = index != RENDER_NONE ? &r->meshes[index] : NULL;
    if (slot == NULL || !slot->is_waiting || slot->done_count > 0) return false;
    if (quads.size_bytes != total(slot) * sizeof(render_quad)) return false;
    if (nb_gpu_upload_buffer(r->gpu, quads, r->quads, slot->quad_first * sizeof(render_quad)) != NB_OK) return false;
    wait_leave(r, index);
    slot->done_count = total(slot);
    ++r->ready_count;
    r->filled_bytes += quads.size_bytes;
    return true;
}

void render_mesh_remove(render *r, render_mesh mesh) {
    uint32_t index = index_of(r, mesh);
    if (index == RENDER_NONE) return;
    mesh_slot *slot = &r->meshes[index];
    if (slot->is_waiting)
        wait_leave(r, index);
    else
        --r->ready_count;
    quad_pool_give(&r->pool, slot->page_first, slot->page_count);
    slot->is_used = false;
    slot->next = r->free_first;
    r->free_first = index;
    --r->mesh_count;
}

void render_restored(render *r) {
    r->is_filled = false;
    for (uint32_t i = 0; i < r->desc.mesh_count_max; ++i) {
        mesh_slot *slot = &r->meshes[i];
        if (!slot->is_used || slot->done_count == 0) continue;
        if (slot->is_waiting)
            wait_leave(r, i);
        else
            --r->ready_count;
        slot->done_count = 0;
        wait_push(r, i);
    }
}

// --- to the device ---

// The two triangles of a quad share the corners 1 and 2.
static void indices_fill(uint32_t *indices) {
    static const uint32_t CORNERS[6] = {0, 1, 2, 2, 1, 3};
    for (uint32_t i = 0; i < RENDER_DRAW_QUADS_MAX * 6; ++i) indices[i] = i / 6 * 4 + CORNERS[i % 6];
}

static bool fixed_fill(render *r) {
    nb_gpu_span indices;
    size_t bytes = RENDER_DRAW_QUADS_MAX * 6 * sizeof(uint32_t);
    if (nb_gpu_frame_alloc(r->gpu, bytes, 256, &indices) != NB_OK) return false;
    indices_fill((uint32_t *)indices.memory);
    return nb_gpu_upload_buffer(r->gpu, indices, r->indices, 0) == NB_OK;
}

// Some quads of the mesh that waits longest; returns how many.
static uint32_t upload_some(render *r, mesh_slot *slot, uint32_t count_max) {
    uint32_t left = total(slot) - slot->done_count, count = left < count_max ? left : count_max;
    uint64_t first = (uint64_t)slot->quad_first + slot->done_count;
    nb_gpu_span span;
    if (nb_gpu_frame_alloc(r->gpu, count * sizeof(render_quad), 16, &span) != NB_OK) return 0;
    memcpy(span.memory, &r->copy[first], count * sizeof(render_quad));
    if (nb_gpu_upload_buffer(r->gpu, span, r->quads, first * sizeof(render_quad)) != NB_OK) return 0;
    slot->done_count += count;
    r->waiting_quads -= count;
    return count;
}

void render_upload(render *r) {
    // What has got lost may be of any mesh: all are uploaded again.
    uint64_t lost_bytes = nb_gpu_stats_get(r->gpu).upload_lost_bytes;
    if (lost_bytes != r->lost_bytes) render_restored(r);
    r->lost_bytes = lost_bytes;
    if (!r->is_filled) r->is_filled = fixed_fill(r);
    r->stats.upload_bytes += r->filled_bytes;
    r->stats.filled_bytes_total += r->filled_bytes;
    r->filled_bytes = 0;
    uint32_t budget = r->desc.upload_bytes_max / (uint32_t)sizeof(render_quad);
    while (budget > 0 && r->wait_first != RENDER_NONE) {
        uint32_t index = r->wait_first, count = upload_some(r, &r->meshes[index], budget);
        if (count == 0) break;
        budget -= count;
        r->stats.upload_bytes += count * sizeof(render_quad);
        if (!is_ready(&r->meshes[index])) continue;
        wait_leave(r, index);
        ++r->ready_count;
    }
    r->stats.upload_bytes_total += r->stats.upload_bytes;
}

render_list render_list_take(render *r, uint32_t count, size_t size_bytes) {
    render_list list = {.count = 0};
    if (count > 0 && nb_gpu_frame_alloc(r->gpu, count * size_bytes, 256, &list.span) == NB_OK)
        list.count = count;
    else
        r->stats.dropped_count += count;
    return list;
}
