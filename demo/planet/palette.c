// SPDX-License-Identifier: MIT
// What materials look like.

#include "palette.h"

// From what a screen shows, 0 to 255, to linear: the square is close to what a screen does, and exact everywhere.
#define C(value) ((float)(value) * (float)(value) / 65025.0f)
#define RGB(r, g, b) \
    { C(r), C(g), C(b) }

static const palette_entry ENTRIES[TERRAIN_MATERIAL_COUNT] = {
    [TERRAIN_AIR] = {RGB(200, 220, 255), 0, 1.0f, 0, 0},
    [TERRAIN_WATER] = {RGB(26, 88, 150), 0.72f, 0.05f, 0, 0.02f},
    [TERRAIN_ICE] = {RGB(188, 214, 232), 1, 0.2f, 0, 0.05f},
    [TERRAIN_STONE] = {RGB(128, 124, 120), 1, 0.9f, 0, 0.14f},
    [TERRAIN_SLATE] = {RGB(96, 98, 106), 1, 0.7f, 0, 0.12f},
    [TERRAIN_LIMESTONE] = {RGB(178, 166, 146), 1, 0.9f, 0, 0.12f},
    [TERRAIN_BASALT] = {RGB(56, 55, 60), 1, 0.8f, 0, 0.10f},
    [TERRAIN_ORE] = {RGB(206, 150, 64), 1, 0.3f, 0.1f, 0.20f},
    [TERRAIN_DIRT] = {RGB(118, 84, 54), 1, 1.0f, 0, 0.14f},
    [TERRAIN_SEABED] = {RGB(30, 52, 84), 1, 1.0f, 0, 0.06f},
    [TERRAIN_GRAVEL] = {RGB(92, 108, 112), 1, 1.0f, 0, 0.12f},
    [TERRAIN_SAND] = {RGB(218, 202, 150), 1, 1.0f, 0, 0.08f},
    [TERRAIN_DUNE] = {RGB(222, 182, 112), 1, 1.0f, 0, 0.07f},
    [TERRAIN_GRASS] = {RGB(104, 154, 62), 1, 1.0f, 0, 0.12f},
    [TERRAIN_DRY_GRASS] = {RGB(164, 152, 80), 1, 1.0f, 0, 0.12f},
    [TERRAIN_FOREST_GRASS] = {RGB(76, 128, 52), 1, 1.0f, 0, 0.12f},
    [TERRAIN_JUNGLE_GRASS] = {RGB(58, 116, 42), 1, 1.0f, 0, 0.12f},
    [TERRAIN_MOSS] = {RGB(92, 116, 70), 1, 1.0f, 0, 0.12f},
    [TERRAIN_TUNDRA] = {RGB(138, 132, 104), 1, 1.0f, 0, 0.12f},
    [TERRAIN_SNOW] = {RGB(236, 241, 246), 1, 0.6f, 0, 0.03f},
    [TERRAIN_WOOD] = {RGB(98, 70, 44), 1, 0.9f, 0, 0.12f},
    [TERRAIN_LEAVES] = {RGB(62, 116, 44), 1, 1.0f, 0, 0.22f},
    [TERRAIN_JUNGLE_LEAVES] = {RGB(38, 98, 38), 1, 1.0f, 0, 0.22f},
    [TERRAIN_NEEDLES] = {RGB(42, 82, 58), 1, 1.0f, 0, 0.18f},
    [TERRAIN_CACTUS] = {RGB(74, 124, 66), 1, 0.8f, 0, 0.10f},
};

const palette_entry *palette_of(uint32_t material) {
    return &ENTRIES[material < TERRAIN_MATERIAL_COUNT ? material : TERRAIN_AIR];
}
