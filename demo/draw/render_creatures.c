// SPDX-License-Identifier: MIT
// Animals: near ones are boxes on legs with two bones each, far ones flat figures. Plain boxes are drawn with theirs.

#include "render_internal.h"

// Beyond this many metres an animal has no face.
#define FACE_DISTANCE 60.0f

// An animal's own directions.
typedef struct frame_of_body {
    vec3 at, x, y, z; // relative to the camera; forward, up, to its right
    float size;
} frame_of_body;

typedef struct box_list {
    render_instance *boxes;
    uint32_t count, count_max;
} box_list;

static uint32_t shade(uint32_t colour, float factor) {
    uint32_t result = 0;
    for (uint32_t shift = 0; shift < 24; shift += 8) {
        float value = (float)(colour >> shift & 255) * factor;
        result |= (value < 255 ? (uint32_t)value : 255u) << shift;
    }
    return result;
}

static void put(float out[4], vec3 v, float w) {
    out[0] = v.x;
    out[1] = v.y;
    out[2] = v.z;
    out[3] = w;
}

static void box_put(box_list *list, vec3 middle, vec3 x, vec3 y, vec3 z, uint32_t colour) {
    if (list->count >= list->count_max) return;
    render_instance *box = &list->boxes[list->count++];
    *box = (render_instance){.middle = {middle.x, middle.y, middle.z}, .colour = colour};
    put(box->x, x, 0);
    put(box->y, y, 0);
    put(box->z, z, 0);
}

// In the planet's axes.
static vec3 along(const frame_of_body *b, vec3 own) {
    return vec3_add(vec3_add(vec3_scale(b->x, own.x), vec3_scale(b->y, own.y)), vec3_scale(b->z, own.z));
}

// A box of the body, in its own directions and in shares of its size.
static void part_put(box_list *list, const frame_of_body *b, vec3 middle, vec3 half, uint32_t colour) {
    vec3 at = vec3_add(b->at, along(b, vec3_scale(middle, b->size)));
    box_put(list, at, vec3_scale(b->x, half.x * b->size), vec3_scale(b->y, half.y * b->size),
            vec3_scale(b->z, half.z * b->size), colour);
}

// A box along the way from one end to the other.
static void bone_put(box_list *list, const frame_of_body *b, vec3 from, vec3 to, float thick, uint32_t colour) {
    vec3 way = vec3_sub(to, from);
    vec3 y = vec3_normal(way, b->y), z = vec3_normal(vec3_cross(b->x, y), b->z), x = vec3_cross(y, z);
    vec3 middle = vec3_add(b->at, vec3_scale(vec3_add(from, to), 0.5f));
    float half = vec3_length(way) * 0.5f + thick * b->size * 0.5f;
    box_put(list, middle, vec3_scale(x, thick * b->size), vec3_scale(y, half), vec3_scale(z, thick * b->size), colour);
}

// The head's own directions: as the body's, turned about the neck to where it looks.
static frame_of_body head_of(const frame_of_body *b, vec3 look) {
    const vec3 neck = {0.66f * b->size, 0.96f * b->size, 0};
    frame_of_body head = *b;
    if (vec3_length(look) < 0.5f) return head;
    head.x = along(b, look);
    head.z = vec3_normal(vec3_cross(head.x, b->y), b->z);
    head.y = vec3_cross(head.z, head.x);
    head.at = vec3_add(b->at, vec3_sub(along(b, neck), along(&head, neck)));
    return head;
}

static void face_put(box_list *list, const frame_of_body *b, uint32_t colour) {
    uint32_t dark = shade(colour, 0.45f);
    part_put(list, b, (vec3){1.09f, 0.98f, 0}, (vec3){0.09f, 0.07f, 0.10f}, shade(colour, 0.75f));
    for (int side = -1; side <= 1; side += 2) {
        float z = (float)side;
        part_put(list, b, (vec3){0.80f, 1.24f, z * 0.12f}, (vec3){0.03f, 0.09f, 0.04f}, dark);
        part_put(list, b, (vec3){0.98f, 1.09f, z * 0.14f}, (vec3){0.03f, 0.03f, 0.03f}, 0x101014);
    }
}

// The neck shows where the head is turned.
static void tail_and_neck_put(box_list *list, const frame_of_body *b, uint32_t colour) {
    part_put(list, b, (vec3){-0.73f, 0.92f, 0}, (vec3){0.12f, 0.035f, 0.035f}, shade(colour, 0.45f));
    part_put(list, b, (vec3){0.66f, 0.965f, 0}, (vec3){0.10f, 0.10f, 0.11f}, colour);
}

static void creature_put(box_list *list, const render_creature *c, const camera_view *camera) {
    frame_of_body b = {.at = camera_relative(camera, c->position), .x = c->forward, .y = c->up, .size = c->size};
    b.z = vec3_cross(b.x, b.y);
    frame_of_body head = head_of(&b, c->look);
    uint32_t leg = shade(c->colour, 0.62f), hoof = shade(c->colour, 0.30f);
    part_put(list, &b, (vec3){0, 0.86f, 0}, (vec3){0.64f, 0.22f, 0.26f}, c->colour);
    part_put(list, &head, (vec3){0.82f, 1.03f, 0}, (vec3){0.19f, 0.17f, 0.16f}, shade(c->colour, 1.12f));
    if (vec3_length(b.at) < FACE_DISTANCE) {
        face_put(list, &head, c->colour);
        tail_and_neck_put(list, &b, c->colour);
    }
    for (uint32_t i = 0; i < RENDER_LEG_COUNT; ++i) {
        bone_put(list, &b, c->legs[i].hip, c->legs[i].knee, 0.085f, leg);
        bone_put(list, &b, c->legs[i].knee, c->legs[i].foot, 0.06f, hoof);
    }
}

static void plain_put(box_list *list, const render_box *b, const camera_view *camera) {
    box_put(list, camera_relative(camera, b->position), b->x, b->y, b->z, b->colour);
}

static void impostors_prepare(render *r, const render_frame *frame) {
    uint32_t count = frame->impostor_count < RENDER_IMPOSTORS_MAX ? frame->impostor_count : RENDER_IMPOSTORS_MAX;
    r->stats.dropped_count += frame->impostor_count - count;
    r->impostors = render_list_take(r, count, sizeof(render_sprite));
    render_sprite *sprites = (render_sprite *)r->impostors.span.memory;
    for (uint32_t i = 0; i < r->impostors.count; ++i) {
        const render_impostor *from = &frame->impostors[i];
        vec3 at = camera_relative(&r->camera, from->position);
        sprites[i] = (render_sprite){{at.x, at.y, at.z}, from->size, from->colour, from->direction, {0, 0}};
    }
    r->stats.triangle_count += r->impostors.count * 2;
}

void render_creatures_prepare(render *r, const render_frame *frame) {
    uint32_t count = frame->creature_count < RENDER_CREATURES_MAX ? frame->creature_count : RENDER_CREATURES_MAX;
    uint32_t plain_count = frame->box_count < RENDER_BOXES_MAX ? frame->box_count : RENDER_BOXES_MAX;
    r->stats.dropped_count += frame->creature_count - count + frame->box_count - plain_count;
    r->boxes = render_list_take(r, count * RENDER_BOXES_EACH + plain_count, sizeof(render_instance));
    box_list list = {(render_instance *)r->boxes.span.memory, 0, r->boxes.count};
    if (list.count_max > 0) {
        for (uint32_t i = 0; i < count; ++i) creature_put(&list, &frame->creatures[i], &r->camera);
        for (uint32_t i = 0; i < plain_count; ++i) plain_put(&list, &frame->boxes[i], &r->camera);
    }
    r->boxes.count = list.count;
    r->stats.triangle_count += list.count * 12;
    impostors_prepare(r, frame);
}

static nb_result record_creatures(nb_gpu_command *command, uint32_t bucket, uint32_t bucket_count, void *user) {
    const render *r = (const render *)user;
    (void)bucket, (void)bucket_count;
    if (r->boxes.count > 0) {
        render_pipeline plain = r->has_lights ? PIPELINE_BOX_LIT : PIPELINE_BOX;
        render_bind(r, command, r->has_shadows ? PIPELINE_BOX_RICH : plain);
        nb_gpu_set_span(command, BINDING_DATA, r->boxes.span);
        nb_gpu_draw(command, r->boxes.count * 36, 1, 0, 0);
    }
    if (r->impostors.count > 0) {
        render_bind(r, command, PIPELINE_IMPOSTOR);
        nb_gpu_set_span(command, BINDING_DATA, r->impostors.span);
        nb_gpu_draw(command, r->impostors.count * 6, 1, 0, 0);
    }
    return NB_OK;
}

nb_result render_creatures_add(render *r) {
    if (r->boxes.count == 0 && r->impostors.count == 0) return NB_OK;
    nb_graph_pass pass;
    return render_pass_add(r, "creatures", record_creatures, 1, NB_GPU_ACCESS_DEPTH, &pass);
}
