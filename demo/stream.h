// SPDX-License-Identifier: MIT
#pragma once

// Which chunks are wanted around a camera, nearest first, and which may go. The one rule: what is wanted depends on the
// chunk the camera is in and on nothing else, and a chunk goes only when it is STREAM_MARGIN further away than where it
// came, so that a camera on a border does not load and unload the same chunks in turn.

#include <stdbool.h>
#include <stdint.h>

#include "terrain.h"

// Largest radius: 32 chunks are a kilometre.
#define STREAM_RADIUS_MAX 32

// Chunks between coming and going.
#define STREAM_MARGIN 2

// Offsets a radius can have at most: a square of columns, as high as the world.
#define STREAM_OFFSETS_MAX(radius) \
    ((2 * (radius) + 1) * (2 * (radius) + 1) * (TERRAIN_CHUNK_Y_END - TERRAIN_CHUNK_Y_MIN) * 2)

// A place relative to the camera's chunk.
typedef struct stream_offset {
    int8_t x, y, z;
    uint8_t reserved; // zero
} stream_offset;

typedef struct stream_area {
    const stream_offset *offsets; // nearest first
    uint32_t offset_count;
    uint32_t radius; // chunks
} stream_area;

// Chunks away from the camera that are wanted: a column of chunks within `radius` of its own, from bottom to top.
// `offsets` has room for STREAM_OFFSETS_MAX(radius). Sorted by distance, then y, z and x. False where radius is 0 or
// above STREAM_RADIUS_MAX.
bool stream_init(stream_area *area, stream_offset *offsets, uint32_t radius);

// The wanted chunk at a number below offset_count, nearest first. False where the world has none there.
bool stream_wanted(const stream_area *area, chunk_coord camera, uint32_t number, chunk_coord *out);

// Whether a chunk is so far away that it is to be unloaded.
bool stream_is_far(const stream_area *area, chunk_coord camera, chunk_coord coord);

// The chunk of a voxel.
chunk_coord stream_chunk_of(int32_t x, int32_t y, int32_t z);
