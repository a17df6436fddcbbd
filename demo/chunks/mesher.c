// SPDX-License-Identifier: MIT
// Greedy meshing.

#include "mesher.h"

#include <string.h>

#include "../planet/terrain.h"

#define SIZE NODE_CELLS

// Steps among the padded cells.
#define STEP_X 1
#define STEP_Z MESH_PADDED
#define STEP_Y MESH_LAYER_CELLS

#define LIGHT_OPEN 0xffu

// How a direction lies among the cells: w and h in the plane of its faces, d through the planes.
typedef struct mesh_frame {
    int32_t step_w, step_h, step_d;
    int32_t step_out;  // to the cell that the face looks at
    int32_t step_rise; // to the cell that is asked about light
} mesh_frame;

// One plane of faces: [h][w]. An entry is material, light and slope in one number, or 0 where no quad is needed, or no
// longer.
typedef struct mesh_plane {
    uint32_t at[MESH_LAYERS_MAX][SIZE];
    uint32_t h_first, h_count;
} mesh_plane;

uint8_t mesh_slope(int32_t slope_x, int32_t slope_z) {
    int32_t x = slope_x < -3 ? -3 : slope_x > 3 ? 3 : slope_x, z = slope_z < -3 ? -3 : slope_z > 3 ? 3 : slope_z;
    return (uint8_t)(((uint32_t)x & 7) | ((uint32_t)z & 7) << 3);
}

mesh_quad mesh_quad_pack(const mesh_rect *r) {
    return (mesh_quad){.place = r->x | r->z << 5 | r->y << 10 | (r->w - 1) << 18 | r->face << 23 | r->material << 26,
                       .what = (r->h - 1) | r->light << 8 | (uint32_t)mesh_slope(r->slope_x, r->slope_z) << 16};
}

static int32_t slope_open(uint32_t bits) { return (int32_t)((bits & 7) ^ 4) - 4; }

mesh_rect mesh_quad_open(mesh_quad q) {
    return (mesh_rect){.x = q.place & 31,
                       .z = q.place >> 5 & 31,
                       .y = q.place >> 10 & 255,
                       .w = (q.place >> 18 & 31) + 1,
                       .face = q.place >> 23 & 7,
                       .material = q.place >> 26,
                       .h = (q.what & 255) + 1,
                       .light = q.what >> 8 & 255,
                       .slope_x = slope_open(q.what >> 16),
                       .slope_z = slope_open(q.what >> 19)};
}

static mesh_frame frame_of(mesh_face face, uint32_t rise) {
    static const mesh_frame FRAMES[3] = {{STEP_Z, STEP_Y, STEP_X, STEP_X, STEP_X},
                                         {STEP_X, STEP_Z, STEP_Y, STEP_Y, STEP_Y},
                                         {STEP_X, STEP_Y, STEP_Z, STEP_Z, STEP_Z}};
    mesh_frame result = FRAMES[face / 2];
    if (face % 2 == 0) result.step_out = result.step_rise = -result.step_out;
    if (face == MESH_FACE_Y_POSITIVE) result.step_rise *= (int32_t)rise;
    return result;
}

static uint32_t face_material(uint8_t own, uint8_t other) {
    bool is_seen = other == TERRAIN_AIR || (other == TERRAIN_WATER && own != TERRAIN_WATER);
    return is_seen ? own : TERRAIN_AIR;
}

static uint32_t is_dark(uint8_t cell) { return !terrain_is_clear(cell); }

// How open a corner is, by the two cells beside it and the one across.
static uint32_t corner_light(uint32_t side_1, uint32_t side_2, uint32_t across) {
    return side_1 & side_2 ? 0 : 3 - side_1 - side_2 - across;
}

// From a cell to those beside its grain, along one direction.
typedef struct mesh_reach {
    int32_t low, high;
} mesh_reach;

static mesh_reach reach_of(uint32_t at, uint32_t grain, int32_t step) {
    int32_t in = (int32_t)(at % grain);
    return (mesh_reach){-(in + 1) * step, ((int32_t)grain - in) * step};
}

// Two bits a corner, by the eight cells around those that the face looks at.
static uint32_t light_at(const uint8_t *out, mesh_reach w, mesh_reach h) {
    uint32_t low_w = is_dark(out[w.low]), high_w = is_dark(out[w.high]);
    uint32_t low_h = is_dark(out[h.low]), high_h = is_dark(out[h.high]);
    uint32_t a = is_dark(out[w.low + h.low]), b = is_dark(out[w.high + h.low]);
    uint32_t c = is_dark(out[w.low + h.high]), d = is_dark(out[w.high + h.high]);
    if ((low_w | high_w | low_h | high_h | a | b | c | d) == 0) return LIGHT_OPEN;
    return corner_light(low_w, low_h, a) | corner_light(high_w, low_h, b) << 2 | corner_light(low_w, high_h, c) << 4 |
           corner_light(high_w, high_h, d) << 6;
}

static uint32_t entry_of(uint32_t material, uint32_t light, uint32_t slope) {
    return material | light << 8 | slope << 16;
}

// The slope counts where the ground is seen from above.
static uint32_t slope_of(const mesh_input *input, mesh_face face, uint32_t w, uint32_t h) {
    bool is_top = face == MESH_FACE_Y_POSITIVE && input->slopes != NULL;
    return is_top ? input->slopes[mesh_column_index((int32_t)w, (int32_t)h)] : 0;
}

// False for a plane without any face.
static bool plane_fill(mesh_plane *plane, const mesh_input *input, mesh_face face, const uint8_t *first,
                       const mesh_frame *frame) {
    uint32_t any = 0;
    for (uint32_t h = plane->h_first; h < plane->h_first + plane->h_count; ++h) {
        const uint8_t *row = first + (int32_t)h * frame->step_h;
        // Layers have no grain.
        mesh_reach reach_h = reach_of(h, face / 2 == 1 ? input->grain : 1, frame->step_h);
        for (uint32_t w = 0; w < SIZE; ++w) {
            const uint8_t *cell = row + (int32_t)w * frame->step_w;
            uint32_t material = face_material(cell[0], cell[frame->step_out]), entry = 0;
            if (material != TERRAIN_AIR) {
                bool is_water = material == TERRAIN_WATER;
                mesh_reach reach_w = reach_of(w, input->grain, frame->step_w);
                uint32_t light = is_water ? LIGHT_OPEN : light_at(cell + frame->step_rise, reach_w, reach_h);
                entry = entry_of(material, light, is_water ? 0 : slope_of(input, face, w, h));
            }
            plane->at[h][w] = entry;
            any |= entry;
        }
    }
    return any != 0;
}

// The sides of a border plane go on below the ground behind it.
static bool plane_add_skirt(mesh_plane *plane, const mesh_input *input, mesh_face face, const uint8_t *first,
                            const mesh_frame *frame) {
    uint32_t any = 0;
    for (uint32_t w = 0; w < SIZE; ++w) {
        int32_t behind = face % 2 == 0 ? -1 : SIZE, along = (int32_t)w;
        uint32_t column = face / 2 == 0 ? mesh_column_index(behind, along) : mesh_column_index(along, behind);
        int32_t top = input->ground[column], low = top - (int32_t)input->skirt + 1;
        int32_t end = top + 1 < (int32_t)input->layer_count ? top + 1 : (int32_t)input->layer_count;
        for (int32_t h = low > 0 ? low : 0; h < end; ++h) {
            const uint8_t *cell = first + h * frame->step_h + along * frame->step_w;
            if (plane->at[h][w] != 0 || terrain_is_clear(cell[0])) continue;
            plane->at[h][w] = entry_of(cell[0], LIGHT_OPEN, 0);
            any = 1;
        }
    }
    return any != 0;
}

static uint32_t run_length(const uint32_t *row, uint32_t w, uint32_t limit, uint32_t entry) {
    uint32_t end = w, stop = w + limit < SIZE ? w + limit : SIZE;
    while (end < stop && row[end] == entry) ++end;
    return end - w;
}

// Takes the largest rectangle that starts at {w, h}: first as wide as it gets, then as high.
static void plane_take(mesh_plane *plane, uint32_t w, uint32_t h, uint32_t w_max, uint32_t h_max, mesh_rect *rect) {
    uint32_t entry = plane->at[h][w], height = 0;
    uint32_t width = run_length(plane->at[h], w, w_max, entry), end = plane->h_first + plane->h_count;
    do {
        memset(&plane->at[h + height][w], 0, width * sizeof entry);
        ++height;
    } while (height < h_max && h + height < end && run_length(plane->at[h + height], w, width, entry) == width);
    rect->w = width;
    rect->h = height;
    rect->material = entry & 255;
    rect->light = entry >> 8 & 255;
    rect->slope_x = slope_open(entry >> 16);
    rect->slope_z = slope_open(entry >> 19);
}

static mesh_rect rect_at(mesh_face face, uint32_t w, uint32_t h, uint32_t d) {
    mesh_rect rect = {.face = face};
    rect.x = face / 2 == 0 ? d : w;
    rect.y = face / 2 == 1 ? d : h;
    rect.z = face / 2 == 0 ? w : face / 2 == 1 ? h : d;
    return rect;
}

static void append(mesh_output *out, const mesh_rect *rect) {
    bool is_water = rect->material == TERRAIN_WATER;
    uint32_t *count = is_water ? &out->water_count : &out->quad_count;
    if (*count < (is_water ? out->water_count_max : out->quad_count_max)) {
        (is_water ? out->water : out->quads)[(*count)++] = mesh_quad_pack(rect);
    } else {
        ++out->dropped_count;
    }
}

static void plane_mesh(mesh_plane *plane, const mesh_input *input, mesh_face face, uint32_t d, mesh_output *out) {
    bool is_flat = face / 2 == 1;
    for (uint32_t h = plane->h_first; h < plane->h_first + plane->h_count; ++h) {
        for (uint32_t w = 0; w < SIZE; ++w) {
            if (plane->at[h][w] == 0) continue;
            mesh_rect rect = rect_at(face, w, h, d);
            plane_take(plane, w, h, input->merge_max, is_flat ? input->merge_max : MESH_LAYERS_MAX, &rect);
            append(out, &rect);
        }
    }
}

bool mesher_face(const mesh_input *input, mesh_face face, mesh_output *out) {
    bool is_wrong = input->layer_count == 0 || input->layer_count > MESH_LAYERS_MAX || input->grain == 0;
    if ((uint32_t)face >= MESH_FACE_COUNT || is_wrong) return false;
    uint32_t dropped_before = out->dropped_count, layers = input->layer_count;
    bool is_flat = face / 2 == 1;
    mesh_frame frame = frame_of(face, input->rise);
    const uint8_t *first = input->cells + mesh_cell_index(0, 0, 0);
    mesh_plane plane;
    // The highest of the opaque layers has faces upwards.
    uint32_t open = input->open_layer > 0 ? input->open_layer - 1 : 0;
    for (uint32_t d = is_flat ? open : 0; d < (is_flat ? layers : SIZE); ++d) {
        bool is_border = !is_flat && input->ground != NULL && d == (face % 2 == 0 ? 0 : SIZE - 1);
        uint32_t h_first = is_flat || is_border ? 0 : open;
        // Light further up than the padding is that of the padding.
        mesh_frame at = frame;
        if (face == MESH_FACE_Y_POSITIVE && d + input->rise > layers) at.step_rise = STEP_Y * (int32_t)(layers - d);
        plane.h_first = h_first, plane.h_count = is_flat ? SIZE : layers - h_first;
        const uint8_t *start = first + (int32_t)d * frame.step_d;
        bool has_faces = plane_fill(&plane, input, face, start, &at);
        if (is_border && plane_add_skirt(&plane, input, face, start, &at)) has_faces = true;
        if (has_faces) plane_mesh(&plane, input, face, d, out);
    }
    return out->dropped_count == dropped_before;
}
