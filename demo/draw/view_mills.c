// SPDX-License-Identifier: MIT
// What a windmill looks like: a white tower of eight sides on stones, a wooden cap, sails of cloth on four spars.

#include "view_mills.h"

// As a screen shows them.
#define STONE 0x8f897d
#define WHITE 0xe6dfcf
#define WOOD 0x6e4c2f
#define DARK_WOOD 0x4a3220
#define GLASS 0x2c3a48
#define CLOTH 0xefe6d2

// Of half a side of eight, by how far it is from the middle.
#define EIGHTH_TAN 0.41421356f
#define EIGHTH 0.70710678f

typedef struct box_list {
    render_box *boxes;
    uint32_t count, count_max;
} box_list;

// A node's place and its directions.
typedef struct node_frame {
    vec3d at;
    vec3 x, y, z;
} node_frame;

static node_frame frame_of(const nb_matrix34 *drawn) {
    const float *m = drawn->m;
    return (node_frame){{m[3], m[7], m[11]}, {m[0], m[4], m[8]}, {m[1], m[5], m[9]}, {m[2], m[6], m[10]}};
}

static vec3 along(const node_frame *f, vec3 v) {
    return vec3_add(vec3_scale(f->x, v.x), vec3_add(vec3_scale(f->y, v.y), vec3_scale(f->z, v.z)));
}

static void put(box_list *list, const node_frame *f, vec3 middle, vec3 half, uint32_t colour) {
    if (list->count >= list->count_max) return;
    vec3 way = along(f, middle);
    list->boxes[list->count++] = (render_box){.position = vec3d_add(f->at, (vec3d){way.x, way.y, way.z}),
                                              .x = vec3_scale(f->x, half.x),
                                              .y = vec3_scale(f->y, half.y),
                                              .z = vec3_scale(f->z, half.z),
                                              .colour = colour};
}

// A drum of eight sides around y, from four boxes; a radius is that of the sides' middles.
static void drum_put(box_list *list, const node_frame *f, float low, float high, float radius, uint32_t colour) {
    static const float cosine[4] = {1, EIGHTH, 0, -EIGHTH}, sine[4] = {0, EIGHTH, 1, EIGHTH};
    for (uint32_t i = 0; i < 4; ++i) {
        node_frame turned = {.at = f->at,
                             .x = along(f, (vec3){cosine[i], 0, -sine[i]}),
                             .y = f->y,
                             .z = along(f, (vec3){sine[i], 0, cosine[i]})};
        put(list, &turned, (vec3){0, (low + high) * 0.5f, 0}, (vec3){radius, (high - low) * 0.5f, radius * EIGHTH_TAN},
            colour);
    }
}

// Stones that reach into the ground: it need not be even.
static void root_put(box_list *list, const node_frame *f) {
    drum_put(list, f, -2.5f, 0.45f, 2.35f, STONE);
    put(list, f, (vec3){0, 0.1f, 2.45f}, (vec3){0.7f, 0.12f, 0.4f}, STONE); // a step
}

static void tower_put(box_list *list, const node_frame *f) {
    drum_put(list, f, 0.45f, 2.2f, 2.1f, WHITE);
    drum_put(list, f, 2.2f, 3.9f, 1.88f, WHITE);
    drum_put(list, f, 3.9f, 5.5f, 1.67f, WHITE);
    drum_put(list, f, 5.5f, 6.6f, 1.47f, WHITE);
    drum_put(list, f, 6.6f, 6.85f, 1.75f, DARK_WOOD); // the ring that the cap rests on
    put(list, f, (vec3){0, 7.35f, -0.1f}, (vec3){1.3f, 0.5f, 1.6f}, WOOD);
    put(list, f, (vec3){0, 8.05f, -0.1f}, (vec3){0.95f, 0.22f, 1.6f}, WOOD);
    put(list, f, (vec3){0, 8.42f, -0.1f}, (vec3){0.5f, 0.17f, 1.6f}, DARK_WOOD);
    put(list, f, (vec3){0, 1.35f, 2.1f}, (vec3){0.5f, 0.9f, 0.06f}, DARK_WOOD); // a door
    for (int side = -1; side <= 1; side += 2)                                   // and windows
        put(list, f, (vec3){(float)side * 1.67f, 4.7f, 0}, (vec3){0.05f, 0.4f, 0.28f}, GLASS);
    put(list, f, (vec3){0, 4.7f, 1.67f}, (vec3){0.28f, 0.4f, 0.05f}, GLASS);
}

static void hub_put(box_list *list, const node_frame *f) {
    put(list, f, (vec3){0, 0, -0.6f}, (vec3){0.16f, 0.16f, 0.6f}, DARK_WOOD); // the axle, into the cap
    put(list, f, (vec3){0, 0, 0.02f}, (vec3){0.34f, 0.34f, 0.22f}, WOOD);
}

// A spar and, behind it at one side, a sail on its bars.
static void blade_put(box_list *list, const node_frame *f) {
    put(list, f, (vec3){0, -0.15f, 0}, (vec3){0.1f, 2.4f, 0.09f}, DARK_WOOD);
    put(list, f, (vec3){0.52f, 0.35f, -0.08f}, (vec3){0.4f, 1.8f, 0.025f}, CLOTH);
    for (int i = -1; i <= 1; ++i)
        put(list, f, (vec3){0.5f, 0.35f + (float)i * 1.75f, -0.03f}, (vec3){0.5f, 0.05f, 0.045f}, WOOD);
}

uint32_t view_mills(const mills *m, vec3d eye, render_box *boxes, uint32_t count_max) {
    static void (*const PUT[MILL_PART_COUNT])(box_list *, const node_frame *) = {
        [MILL_ROOT] = root_put, [MILL_TOWER] = tower_put, [MILL_HUB] = hub_put, [MILL_BLADE] = blade_put};
    nb_table t = nb_scene_table(m->scene);
    const nb_matrix34 *drawn = NB_STORE_ROWS(m->world, t, NB_SCENE_WORLD, nb_matrix34);
    const uint8_t *parts = NB_STORE_ROWS(m->world, t, MILLS_PART, uint8_t);
    box_list list = {boxes, 0, count_max};
    NB_STORE_EACH_ROW(row, m->world, t) {
        node_frame f = frame_of(&drawn[row]);
        vec3d line = vec3d_sub(f.at, eye);
        if (vec3d_dot(line, line) < VIEW_MILLS_FAR * VIEW_MILLS_FAR && parts[row] < MILL_PART_COUNT)
            PUT[parts[row]](&list, &f);
    }
    return list.count;
}
