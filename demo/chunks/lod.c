// SPDX-License-Identifier: MIT
// Six quadtrees.

#include "lod.h"

#include <string.h>

#include "../planet/relief.h"

// What hides the planet's far side: neither sea nor land is lower than a metre below the sea's top, and the coarsest
// cells are flat where the planet is 0.8 m rounder.
#define LIMB_RADIUS (SPHERE_RADIUS - 3)

// What is behind the limb needs less detail, but some: the eye may rise.
#define HIDDEN_SHARE 0.4
#define HIDDEN_RISE 1.005

// --- sets ---

uint32_t lod_index(lod_node n) {
    // Nodes of all finer levels come before: 4^7 + 4^6 + ... of each face.
    uint32_t side = NODE_COUNT_0 >> n.level, finer = (NODE_COUNT_0 * NODE_COUNT_0 - side * side) / 3 * 4;
    return SPHERE_FACE_COUNT * finer + (n.face * side + n.y) * side + n.x;
}

bool lod_has(const lod_set *set, lod_node node) {
    uint32_t index = lod_index(node);
    return (set->words[index / 64] >> index % 64 & 1) != 0;
}

void lod_add(lod_set *set, lod_node node) {
    uint32_t index = lod_index(node);
    set->words[index / 64] |= (uint64_t)1 << index % 64;
}

// --- what is wanted ---

static double clamp(double value, double low, double high) { return value < low ? low : value > high ? high : value; }

static double size_of(double value) { return value < 0 ? -value : value; }

double lod_distance(const lod_view *view, lod_node node) {
    double width = node_columns(node.level), u = node.x * width, v = node.y * width;
    double depth = vec3d_dot(view->eye, sphere_axis(node.face, 2));
    double s = vec3d_dot(view->eye, sphere_axis(node.face, 0)), t = vec3d_dot(view->eye, sphere_axis(node.face, 1));
    // Below the eye where that is on this face, else on the edge that is nearest to it; then the node's nearest to
    // that.
    double across = size_of(s) > size_of(t) ? size_of(s) : size_of(t), scale = depth > across ? depth : across;
    if (scale < 1) scale = 1;
    double near_u = clamp(sphere_unwarped(s / scale), u, u + width);
    double near_v = clamp(sphere_unwarped(t / scale), v, v + width);
    vec3d point = sphere_position(node.face, near_u, near_v, view->ground);
    return vec3d_length(vec3d_sub(view->eye, point));
}

// How much a node wants to be split: 1 and more does.
static double split_priority(const lod_view *view, const lod_choice *before, lod_node node) {
    double reach = view->split * node_columns(node.level), distance = lod_distance(view, node);
    lod_bounds bounds = lod_bounds_of(node, RELIEF_MIN, RELIEF_MAX + 20);
    bool was_split = before != NULL && lod_has(&before->split, node);
    // What was split stays so until it would be hidden from a place that is higher, too.
    vec3d eye = was_split ? vec3d_scale(view->eye, HIDDEN_RISE) : view->eye;
    if (!lod_is_over_horizon(eye, &bounds)) reach *= HIDDEN_SHARE;
    if (was_split) reach *= LOD_HYSTERESIS;
    return distance > 1e-3 ? reach / distance : reach * 1e3;
}

// Nodes that may be split, as a heap: the strongest priority first, the older of two that are equal.
typedef struct split_heap {
    double priorities[LOD_NODES_MAX];
    uint32_t numbers[LOD_NODES_MAX];
    uint32_t count;
} split_heap;

static bool is_stronger(const split_heap *heap, uint32_t a, uint32_t b) {
    if (heap->priorities[a] > heap->priorities[b]) return true;
    if (heap->priorities[a] < heap->priorities[b]) return false;
    return heap->numbers[a] < heap->numbers[b];
}

static void swap(split_heap *heap, uint32_t a, uint32_t b) {
    double priority = heap->priorities[a];
    uint32_t number = heap->numbers[a];
    heap->priorities[a] = heap->priorities[b], heap->numbers[a] = heap->numbers[b];
    heap->priorities[b] = priority, heap->numbers[b] = number;
}

static void heap_push(split_heap *heap, double priority, uint32_t number) {
    uint32_t at = heap->count++;
    heap->priorities[at] = priority, heap->numbers[at] = number;
    for (; at > 0 && is_stronger(heap, at, (at - 1) / 2); at = (at - 1) / 2) swap(heap, at, (at - 1) / 2);
}

static uint32_t heap_pop(split_heap *heap) {
    uint32_t number = heap->numbers[0], at = 0;
    swap(heap, 0, --heap->count);
    for (uint32_t child = 1; child < heap->count; child = 2 * at + 1) {
        if (child + 1 < heap->count && is_stronger(heap, child + 1, child)) ++child;
        if (!is_stronger(heap, child, at)) break;
        swap(heap, child, at);
        at = child;
    }
    return number;
}

static void add_node(const lod_view *view, const lod_choice *before, lod_node node, split_heap *heap, lod_choice *out) {
    uint32_t number = out->node_count++;
    out->nodes[number] = node;
    ++out->leaf_count;
    double priority = node.level > 0 ? split_priority(view, before, node) : 0;
    if (priority >= 1) heap_push(heap, priority, number);
}

void lod_choose(const lod_view *view, const lod_choice *before, lod_choice *out) {
    split_heap heap;
    heap.count = 0;
    out->node_count = out->leaf_count = 0;
    out->is_full = false;
    memset(&out->split, 0, sizeof out->split);
    for (uint32_t face = 0; face < SPHERE_FACE_COUNT; ++face) add_node(view, before, node_root(face), &heap, out);
    while (heap.count > 0) {
        out->is_full = out->node_count + 4 > LOD_NODES_MAX;
        if (out->is_full) return;
        lod_node node = out->nodes[heap_pop(&heap)];
        lod_add(&out->split, node);
        --out->leaf_count;
        for (uint32_t i = 0; i < 4; ++i) add_node(view, before, node_child(node, i), &heap, out);
    }
}

bool lod_is_wanted(const lod_choice *choice, lod_node node) {
    return node.level == NODE_ROOT_LEVEL || lod_has(&choice->split, node_parent(node));
}

// --- what is drawn ---

void lod_ready_clear(lod_ready *ready) { memset(ready, 0, sizeof *ready); }

void lod_ready_add(lod_ready *ready, lod_node node) {
    lod_add(&ready->ready, node);
    while (node.level < NODE_ROOT_LEVEL) {
        node = node_parent(node);
        lod_add(&ready->above, node);
    }
}

// Whether a node's ground can be drawn without a hole: by itself, or by what is below it.
static bool is_covered(const lod_ready *ready, lod_node node) {
    if (lod_has(&ready->ready, node)) return true;
    if (node.level == 0 || !lod_has(&ready->above, node)) return false;
    for (uint32_t i = 0; i < 4; ++i)
        if (!is_covered(ready, node_child(node, i))) return false;
    return true;
}

static bool are_children_covered(const lod_ready *ready, lod_node node) {
    if (node.level == 0 || !lod_has(&ready->above, node)) return false;
    for (uint32_t i = 0; i < 4; ++i)
        if (!is_covered(ready, node_child(node, i))) return false;
    return true;
}

uint32_t lod_drawn(const lod_choice *choice, const lod_ready *ready, lod_node *nodes) {
    // Nodes still to be looked at, all of them covered: four more for each level that one goes down.
    lod_node stack[SPHERE_FACE_COUNT + 4 * NODE_LEVELS];
    uint32_t height = 0, count = 0;
    for (uint32_t face = SPHERE_FACE_COUNT; face > 0; --face)
        if (is_covered(ready, node_root(face - 1))) stack[height++] = node_root(face - 1);
    while (height > 0) {
        lod_node node = stack[--height];
        bool is_ready = lod_has(&ready->ready, node), goes_on = lod_has(&choice->split, node) || !is_ready;
        if (goes_on && are_children_covered(ready, node)) {
            for (uint32_t i = 4; i > 0; --i) stack[height++] = node_child(node, i - 1);
        } else if (count < LOD_NODES_MAX) {
            nodes[count++] = node;
        }
    }
    return count;
}

// --- what can be seen ---

lod_bounds lod_bounds_of(lod_node node, double low, double high) {
    double width = node_columns(node.level), u = node.x * width, v = node.y * width;
    lod_bounds b = {.direction = sphere_direction(node.face, u + width / 2, v + width / 2), .cos_half = 1};
    b.high = SPHERE_RADIUS + high;
    b.middle = vec3d_scale(b.direction, SPHERE_RADIUS + (low + high) / 2);
    b.radius = (high - low) / 2;
    for (uint32_t i = 0; i < 4; ++i) {
        vec3d corner = sphere_direction(node.face, u + width * (i % 2), v + width * (i / 2));
        double cosine = vec3d_dot(corner, b.direction);
        double to_low = vec3d_length(vec3d_sub(vec3d_scale(corner, SPHERE_RADIUS + low), b.middle));
        double to_high = vec3d_length(vec3d_sub(vec3d_scale(corner, SPHERE_RADIUS + high), b.middle));
        if (cosine < b.cos_half) b.cos_half = cosine;
        if (to_low > b.radius) b.radius = to_low;
        if (to_high > b.radius) b.radius = to_high;
    }
    return b;
}

static double sine_of(double cosine) { return cosine < 1 && cosine > -1 ? sqrt(1 - cosine * cosine) : 0; }

// The angle between the directions of an eye and a point, both seen from the planet's middle, up to which they see each
// other is acos(limb / eye) + acos(limb / point); what is as wide as `half` is seen for that much longer. Compared by
// cosines, as long as the sum is less than half a turn.
static bool is_within(vec3d eye, vec3d direction, double high, double cos_half) {
    double distance = vec3d_length(eye);
    if (distance <= LIMB_RADIUS) return true;
    double cos_a = LIMB_RADIUS / distance, sin_a = sine_of(cos_a);
    double cos_b = high > LIMB_RADIUS ? LIMB_RADIUS / high : 1, sin_b = sine_of(cos_b);
    double cos_ab = cos_a * cos_b - sin_a * sin_b, sin_ab = sin_a * cos_b + cos_a * sin_b;
    double sin_half = sine_of(cos_half);
    double cos_all = cos_ab * cos_half - sin_ab * sin_half, sin_all = sin_ab * cos_half + cos_ab * sin_half;
    if (sin_ab < 0 || sin_all < 0) return true;
    return vec3d_dot(eye, direction) >= distance * cos_all;
}

bool lod_is_over_horizon(vec3d eye, const lod_bounds *b) { return is_within(eye, b->direction, b->high, b->cos_half); }

bool lod_point_is_over_horizon(vec3d eye, vec3d point) {
    double length = vec3d_length(point);
    return length <= 0 || is_within(eye, vec3d_scale(point, 1 / length), length, 1);
}
