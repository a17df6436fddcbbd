// SPDX-License-Identifier: MIT
// Greedy meshing.

#include "mesher.h"

#include <string.h>

#include "terrain.h"

#define SIZE TERRAIN_CHUNK_SIZE

// Steps among the padded voxels.
#define STEP_X 1
#define STEP_Z TERRAIN_PADDED_SIZE
#define STEP_Y TERRAIN_LAYER_VOXELS

// How a direction lies among the voxels: w and h in the plane of its faces, d through the planes.
typedef struct mesh_frame {
    int32_t step_w, step_h, step_d;
    int32_t step_out; // to the voxel that the face looks at
} mesh_frame;

// The faces of one plane that no quad covers yet, by material; 0 = none. [h][w]
typedef struct mesh_plane {
    uint8_t at[SIZE][SIZE];
} mesh_plane;

static mesh_frame frame_of(mesh_face face) {
    static const mesh_frame FRAMES[3] = {
        {STEP_Y, STEP_Z, STEP_X, STEP_X}, {STEP_X, STEP_Z, STEP_Y, STEP_Y}, {STEP_X, STEP_Y, STEP_Z, STEP_Z}};
    mesh_frame result = FRAMES[face / 2];
    if (face % 2 == 0) result.step_out = -result.step_out;
    return result;
}

static uint8_t face_material(uint8_t own, uint8_t other) {
    bool is_seen = other == TERRAIN_AIR || (other == TERRAIN_WATER && own != TERRAIN_WATER);
    return is_seen ? own : TERRAIN_AIR;
}

// False for a plane without any face.
static bool plane_fill(mesh_plane *plane, const uint8_t *first, const mesh_frame *frame) {
    uint8_t any = 0;
    for (int32_t h = 0; h < SIZE; ++h) {
        for (int32_t w = 0; w < SIZE; ++w) {
            const uint8_t *voxel = first + h * frame->step_h + w * frame->step_w;
            uint8_t material = face_material(voxel[0], voxel[frame->step_out]);
            plane->at[h][w] = material;
            any |= material;
        }
    }
    return any != 0;
}

static uint32_t run_length(const uint8_t *row, uint32_t w, uint8_t material) {
    uint32_t end = w;
    while (end < SIZE && row[end] == material) ++end;
    return end - w;
}

// Takes the largest rectangle that starts at {w, h}: first as wide as it gets, then as high.
static void plane_take(mesh_plane *plane, uint32_t w, uint32_t h, mesh_quad *quad) {
    uint8_t material = plane->at[h][w];
    uint32_t width = run_length(plane->at[h], w, material), height = 0;
    do {
        memset(&plane->at[h + height][w], TERRAIN_AIR, width);
        ++height;
    } while (h + height < SIZE && run_length(plane->at[h + height], w, material) >= width);
    quad->w = (uint8_t)width;
    quad->h = (uint8_t)height;
    quad->material = material;
}

static mesh_quad quad_at(mesh_face face, uint32_t w, uint32_t h, uint32_t d) {
    uint8_t at_w = (uint8_t)w, at_h = (uint8_t)h, at_d = (uint8_t)d;
    mesh_quad quad = {.face = (uint8_t)face};
    quad.x = face / 2 == 0 ? at_d : at_w;
    quad.y = face / 2 == 0 ? at_w : face / 2 == 1 ? at_d : at_h;
    quad.z = face / 2 == 2 ? at_d : at_h;
    return quad;
}

static void append(mesh_output *out, const mesh_quad *quad) {
    if (out->quad_count < out->quad_count_max) {
        out->quads[out->quad_count++] = *quad;
    } else {
        ++out->dropped_count;
    }
}

bool mesher_face(const uint8_t *voxels, mesh_face face, mesh_output *out) {
    if ((uint32_t)face >= MESH_FACE_COUNT) return false;
    uint32_t dropped_before = out->dropped_count;
    mesh_frame frame = frame_of(face);
    const uint8_t *first = voxels + terrain_voxel_index(0, 0, 0);
    mesh_plane plane;
    for (uint32_t d = 0; d < SIZE; ++d) {
        if (!plane_fill(&plane, first + (int32_t)d * frame.step_d, &frame)) continue;
        for (uint32_t i = 0; i < SIZE * SIZE; ++i) {
            uint32_t w = i % SIZE, h = i / SIZE;
            if (plane.at[h][w] == TERRAIN_AIR) continue;
            mesh_quad quad = quad_at(face, w, h, d);
            plane_take(&plane, w, h, &quad);
            append(out, &quad);
        }
    }
    return out->dropped_count == dropped_before;
}
