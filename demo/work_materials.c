// SPDX-License-Identifier: MIT
// Material and uniform packing.

#include "work_materials.h"

#include <string.h>

static uint32_t bits_set(uint64_t word) {
    uint32_t count = 0;
    for (; word != 0; word &= word - 1) ++count;
    return count;
}

// The difference in doubles: a planet's radius leaves a float a quarter of a millimetre.
static draw_block block_of(const materials_input *input, const material_draw *draw) {
    lod_node node = draw->node;
    int32_t width = node_columns(node.level);
    vec3d middle = sphere_position(node.face, (node.x + 0.5) * width, (node.y + 0.5) * width, 0);
    vec3 origin = vec3_of(vec3d_sub(middle, input->camera));
    draw_block block = {.origin = {origin.x, origin.y, origin.z},
                        .face = node.face,
                        .level = node.level,
                        .column_u = (uint32_t)(node.x * width),
                        .column_v = (uint32_t)(node.y * width),
                        .base = draw->base,
                        .step = draw->step,
                        .quad_first = draw->quad_first,
                        .quad_count = draw->quad_count,
                        .water_first = draw->water_first,
                        .water_count = draw->water_count,
                        .material_count = bits_set(draw->material_bits)};
    float fade = 1 - vec3_length(origin) / input->far;
    block.fade = fade > 0 ? fade : 0;
    return block;
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

uint32_t materials_pack(const materials_output *whole, material_block *blocks) {
    uint32_t count = 0;
    for (uint32_t m = 0; m < TERRAIN_MATERIAL_COUNT; ++m) {
        if (whole->draw_counts[m] == 0) continue;
        const palette_entry *look = palette_of(m);
        material_block *block = &blocks[count++];
        *block = (material_block){.roughness = look->roughness, .glow = look->glow, .material = m};
        block->draw_count = whole->draw_counts[m];
        memcpy(block->colour, look->colour, sizeof look->colour);
        block->colour[3] = look->opacity;
    }
    return count;
}
