// SPDX-License-Identifier: MIT
// Material and uniform packing.

#include "work_materials.h"

#include <string.h>

#include "../chunks/mesher.h"
#include "picture_job.h"

// The borders between columns are planes through the middle of the planet: which side of each the camera is on says
// whether what looks along U or V can be seen from there. `is_high` says whether it looks up the axis.
static bool is_side_seen(vec3d eye, vec3d axis, vec3d out, double low_warp, double high_warp, bool is_high) {
    double at = vec3d_dot(eye, axis), depth = vec3d_dot(eye, out);
    double a = at - low_warp * depth, b = at - high_warp * depth;
    return is_high ? a > 0 || b > 0 : a < 0 || b < 0;
}

uint32_t material_faces(vec3d eye, lod_node node) {
    double size = node_columns(node.level);
    vec3d out = sphere_axis(node.face, 2);
    uint32_t seen = 1u << MESH_FACE_Y_NEGATIVE | 1u << MESH_FACE_Y_POSITIVE;
    for (uint32_t axis = 0; axis < 2; ++axis) {
        uint32_t face = axis == 0 ? MESH_FACE_X_NEGATIVE : MESH_FACE_Z_NEGATIVE;
        double first = (axis == 0 ? node.x : node.y) * size;
        double low = sphere_warped(first), high = sphere_warped(first + size);
        vec3d along = sphere_axis(node.face, axis);
        seen |= (uint32_t)is_side_seen(eye, along, out, low, high, false) << face;
        seen |= (uint32_t)is_side_seen(eye, along, out, low, high, true) << (face + 1);
    }
    return seen;
}

static draw_block block_of(const materials_input *input, const material_draw *draw) {
    lod_node node = draw->node;
    double width = node_columns(node.level);
    vec3d middle = sphere_position(node.face, (node.x + 0.5) * width, (node.y + 0.5) * width, 0);
    return (draw_block){.faces = material_faces(input->camera, node),
                        .distance = (float)vec3d_length(vec3d_sub(middle, input->camera))};
}

void materials_run(const materials_input *input, uint32_t first, uint32_t count, materials_output *out) {
    for (uint32_t i = first; i < first + count; ++i) {
        const material_draw *draw = &input->draws[i];
        out->blocks[out->block_count++] = block_of(input, draw);
        for (uint32_t m = 0; m < TERRAIN_MATERIAL_COUNT; ++m)
            out->draw_counts[m] += (uint32_t)(draw->material_bits >> m) & 1;
    }
}

void materials_append(materials_output *whole, const materials_output *part) {
    memcpy(whole->blocks + whole->block_count, part->blocks, part->block_count * sizeof(draw_block));
    whole->block_count += part->block_count;
    for (uint32_t m = 0; m < TERRAIN_MATERIAL_COUNT; ++m) whole->draw_counts[m] += part->draw_counts[m];
}

static material_block material_of(uint32_t number) {
    const palette_entry *look = palette_of(number);
    return (material_block){.colour = {look->colour[0], look->colour[1], look->colour[2]},
                            .speckle = look->speckle,
                            .opacity = look->opacity,
                            .roughness = look->roughness,
                            .glow = look->glow};
}

uint32_t materials_pack(const materials_output *whole, material_block *blocks) {
    uint32_t count = 0;
    for (uint32_t m = 0; m < TERRAIN_MATERIAL_COUNT; ++m) {
        if (whole->draw_counts[m] == 0) continue;
        blocks[m] = material_of(m);
        ++count;
    }
    return count;
}

// --- in every frame ---

static nb_result materials_job(const nb_context *context, void *user) {
    const picture *p = user;
    const planet_eye *eye = job_eye(context, p);
    const nb_snapshot *seen = context->snapshot;
    materials_input input = {.draws = NB_STORE_VIEW(seen, p->world, p->streamer->chunks, CHUNK_DRAW, material_draw),
                             .camera = eye->position};
    job_share mine = job_share_of(context, job_chunk_count(context, p));
    materials_output *out = job_output(context, sizeof *out);
    draw_block *blocks = job_output(context, mine.count * sizeof *blocks);
    if (out == NULL || blocks == NULL) return NB_ERR_MEMORY;
    materials_output made = {.blocks = blocks};
    materials_run(&input, mine.first, mine.count, &made);
    made.blocks = NULL; // an address is not the same in every run
    *out = made;
    return NB_OK;
}

static nb_result materials_merge(const nb_context *context, void *user, const nb_output_list *outputs) {
    picture *p = user;
    size_t size_bytes = 0;
    const materials_output *made = merge_note(context, p, outputs, &size_bytes);
    p->made.draws_end = merge_parts_end(context, &p->draw_parts);
    if (p->draw_parts.count == 1) memset(p->draw_counts, 0, sizeof p->draw_counts);
    for (uint32_t i = 0; i < TERRAIN_MATERIAL_COUNT; ++i) p->draw_counts[i] += made->draw_counts[i];
    const draw_block *blocks = nb_output_list_next(outputs, made, NULL);
    memcpy(p->made.draws + job_share_of(context, job_chunk_count(context, p)).first, blocks,
           made->block_count * sizeof *blocks);
    p->now.draw_count += made->block_count;
    if (context->job_index + 1 < context->job_count) return NB_OK;
    materials_output whole = {.block_count = p->now.draw_count};
    memcpy(whole.draw_counts, p->draw_counts, sizeof whole.draw_counts);
    p->now.material_count = materials_pack(&whole, p->made.materials);
    return NB_OK;
}

const nb_module_desc work_materials_module = {
    .name = "materials", .parallel = materials_job, .merge = materials_merge, .job_count = 2};
