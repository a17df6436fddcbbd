// SPDX-License-Identifier: MIT
// Material and uniform packing.

#include "work_materials.h"

#include <string.h>

typedef struct material_look {
    uint32_t colour; // 0xRRGGBB, as a screen shows it
    float roughness, glow, opacity;
} material_look;

static const material_look LOOKS[TERRAIN_MATERIAL_COUNT] = {
    [TERRAIN_AIR] = {0xc8dcff, 1.0f, 0, 0},       [TERRAIN_WATER] = {0x285aaa, 0.05f, 0, 0.6f},
    [TERRAIN_STONE] = {0x828282, 0.9f, 0, 1},     [TERRAIN_SLATE] = {0x5a5f69, 0.7f, 0, 1},
    [TERRAIN_LIMESTONE] = {0xbeb4a0, 0.9f, 0, 1}, [TERRAIN_BASALT] = {0x323237, 0.8f, 0, 1},
    [TERRAIN_ORE] = {0xdca03c, 0.3f, 0.1f, 1},    [TERRAIN_DIRT] = {0x785537, 1.0f, 0, 1},
    [TERRAIN_GRASS] = {0x5a963c, 1.0f, 0, 1},     [TERRAIN_SAND] = {0xd7c88c, 1.0f, 0, 1},
    [TERRAIN_SNOW] = {0xf0f5fa, 0.6f, 0, 1},      [TERRAIN_WOOD] = {0x644628, 0.9f, 0, 1},
    [TERRAIN_LEAVES] = {0x326e2d, 1.0f, 0, 1},
};

uint32_t material_colour(terrain_material material) {
    return (uint32_t)material < TERRAIN_MATERIAL_COUNT ? LOOKS[material].colour : 0;
}

static uint32_t bits_set(uint64_t word) {
    uint32_t count = 0;
    for (; word != 0; word &= word - 1) ++count;
    return count;
}

// The difference first, in whole chunks: far from the origin a float has no room for both.
static float relative(int32_t chunk, int32_t camera, float offset) {
    return (float)((int64_t)chunk - camera) * TERRAIN_CHUNK_SIZE - offset;
}

static draw_block block_of(const materials_input *input, const material_draw *draw) {
    draw_block block = {.quad_first = draw->quad_first, .quad_count = draw->quad_count};
    block.origin[0] = relative(draw->chunk.x, input->camera_chunk.x, input->camera_offset.x);
    block.origin[1] = relative(draw->chunk.y, input->camera_chunk.y, input->camera_offset.y);
    block.origin[2] = relative(draw->chunk.z, input->camera_chunk.z, input->camera_offset.z);
    const float half = TERRAIN_CHUNK_SIZE / 2;
    vec3 middle = {block.origin[0] + half, block.origin[1] + half, block.origin[2] + half};
    float fade = 1 - vec3_length(middle) / input->far;
    block.fade = fade > 0 ? fade : 0;
    block.material_count = bits_set(draw->material_bits);
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

// Light adds up in linear numbers; the square is close to what a screen does, and exact everywhere.
static float linear(uint32_t channel) {
    float value = (float)(channel & 255) / 255.0f;
    return value * value;
}

uint32_t materials_pack(const materials_output *whole, material_block *blocks) {
    uint32_t count = 0;
    for (uint32_t m = 0; m < TERRAIN_MATERIAL_COUNT; ++m) {
        if (whole->draw_counts[m] == 0) continue;
        const material_look *look = &LOOKS[m];
        material_block *block = &blocks[count++];
        *block = (material_block){.roughness = look->roughness, .glow = look->glow, .material = m};
        block->draw_count = whole->draw_counts[m];
        for (uint32_t i = 0; i < 3; ++i) block->colour[i] = linear(look->colour >> (16 - 8 * i));
        block->colour[3] = look->opacity;
    }
    return count;
}
