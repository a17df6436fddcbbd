// SPDX-License-Identifier: MIT
// Which chunks are wanted.

#include "stream.h"

// Above or below the camera by no more than the world is high, wherever in it the camera is.
#define REACH_Y (TERRAIN_CHUNK_Y_END - TERRAIN_CHUNK_Y_MIN - 1)

static int32_t distance_squared(stream_offset offset) {
    return offset.x * offset.x + offset.y * offset.y + offset.z * offset.z;
}

// A total order, so that every sort gives the same.
static bool is_before(stream_offset a, stream_offset b) {
    int32_t near = distance_squared(a), far = distance_squared(b);
    if (near != far) return near < far;
    if (a.y != b.y) return a.y < b.y;
    return a.z != b.z ? a.z < b.z : a.x < b.x;
}

// Lets the entry at `at` sink until neither child belongs behind it.
static void sink(stream_offset *offsets, uint32_t at, uint32_t count) {
    stream_offset moved = offsets[at];
    for (uint32_t child = 2 * at + 1; child < count; child = 2 * at + 1) {
        if (child + 1 < count && is_before(offsets[child], offsets[child + 1])) ++child;
        if (!is_before(moved, offsets[child])) break;
        offsets[at] = offsets[child];
        at = child;
    }
    offsets[at] = moved;
}

// A heap sort: in place, and qsort may use the heap.
static void sort(stream_offset *offsets, uint32_t count) {
    for (uint32_t i = count / 2; i > 0; --i) sink(offsets, i - 1, count);
    for (uint32_t end = count; end > 1; --end) {
        stream_offset last = offsets[end - 1];
        offsets[end - 1] = offsets[0];
        offsets[0] = last;
        sink(offsets, 0, end - 1);
    }
}

bool stream_init(stream_area *area, stream_offset *offsets, uint32_t radius) {
    if (radius == 0 || radius > STREAM_RADIUS_MAX) return false;
    int32_t reach = (int32_t)radius;
    uint32_t count = 0;
    for (int32_t z = -reach; z <= reach; ++z) {
        for (int32_t x = -reach; x <= reach; ++x) {
            if (x * x + z * z > reach * reach) continue;
            for (int32_t y = -REACH_Y; y <= REACH_Y; ++y)
                offsets[count++] = (stream_offset){(int8_t)x, (int8_t)y, (int8_t)z, 0};
        }
    }
    sort(offsets, count);
    area->offsets = offsets;
    area->offset_count = count;
    area->radius = radius;
    return true;
}

// Coordinates wrap like the land does.
static int32_t wrap_add(int32_t a, int32_t b) { return (int32_t)((uint32_t)a + (uint32_t)b); }
static int64_t wrap_distance(int32_t a, int32_t b) { return (int32_t)((uint32_t)a - (uint32_t)b); }

// A camera may fly above the world or below: the chunks below or above it are then as near as they get.
static int32_t camera_y(chunk_coord camera) {
    if (camera.y < TERRAIN_CHUNK_Y_MIN) return TERRAIN_CHUNK_Y_MIN;
    return camera.y >= TERRAIN_CHUNK_Y_END ? TERRAIN_CHUNK_Y_END - 1 : camera.y;
}

bool stream_wanted(const stream_area *area, chunk_coord camera, uint32_t number, chunk_coord *out) {
    if (number >= area->offset_count) return false;
    stream_offset offset = area->offsets[number];
    int32_t y = camera_y(camera) + offset.y;
    if (y < TERRAIN_CHUNK_Y_MIN || y >= TERRAIN_CHUNK_Y_END) return false;
    *out = (chunk_coord){wrap_add(camera.x, offset.x), y, wrap_add(camera.z, offset.z)};
    return true;
}

bool stream_is_far(const stream_area *area, chunk_coord camera, chunk_coord coord) {
    int64_t dx = wrap_distance(coord.x, camera.x), dz = wrap_distance(coord.z, camera.z);
    int64_t limit = (int64_t)area->radius + STREAM_MARGIN;
    // Each alone first: squares of such differences fit, their sum may not.
    if (dx > limit || dx < -limit || dz > limit || dz < -limit) return true;
    return dx * dx + dz * dz > limit * limit;
}

// Rounded down for both signs.
static int32_t chunk_of(int32_t voxel) {
    return (int32_t)(((int64_t)voxel + ((int64_t)1 << 31)) / TERRAIN_CHUNK_SIZE -
                     ((int64_t)1 << 31) / TERRAIN_CHUNK_SIZE);
}

chunk_coord stream_chunk_of(int32_t x, int32_t y, int32_t z) {
    return (chunk_coord){chunk_of(x), chunk_of(y), chunk_of(z)};
}
