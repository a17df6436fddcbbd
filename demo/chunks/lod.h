// SPDX-License-Identifier: MIT
#pragma once

// Which nodes of the planet are wanted for an eye, and which are drawn meanwhile. Six quadtrees, one a face: a node is
// split into four while it is near for its size. The one rule: a node is drawn until all that is to replace it is
// ready, so that nothing is ever missing: what is drawn covers each face exactly once, from the moment its root is
// ready. Pure functions: nothing is loaded here.

#include <stdbool.h>
#include <stdint.h>

#include "../planet/node.h"

// Wanted nodes, those that are split too: what a picture of the best quality takes from any place.
#define LOD_NODES_MAX 8000u

// Nodes of all levels and faces: 4^0 + ... + 4^7 of each.
#define LOD_NODE_TOTAL (SPHERE_FACE_COUNT * 21845u)

// A node that is split stays so until it is this much further away than where it was split.
#define LOD_HYSTERESIS 1.15

// A set of nodes.
typedef struct lod_set {
    uint64_t words[(LOD_NODE_TOTAL + 63) / 64];
} lod_set;

typedef struct lod_view {
    vec3d eye;     // metres from the middle of the planet
    double ground; // metres above the sea of the ground around it
    double split;  // a node nearer than this many of its widths is split; 0 = none is
} lod_view;

// What is wanted, the most important first: a node always stands after its parent.
typedef struct lod_choice {
    lod_node nodes[LOD_NODES_MAX];
    uint32_t node_count;
    uint32_t leaf_count;
    bool is_full;  // more nodes would have been split
    lod_set split; // those of the nodes whose four children are wanted too
} lod_choice;

// Nodes that are there, and which of the others have some below them.
typedef struct lod_ready {
    lod_set ready, above;
} lod_ready;

// Around everything in a node between two heights above the sea.
typedef struct lod_bounds {
    vec3d middle;
    double radius;
    vec3d direction; // to its middle
    double cos_half; // of the angle from there to its corners
    double high;     // metres from the middle of the planet
} lod_bounds;

// Numbers of nodes, below LOD_NODE_TOTAL, and sets of them.
uint32_t lod_index(lod_node node);
bool lod_has(const lod_set *set, lod_node node);
void lod_add(lod_set *set, lod_node node);

// Metres from an eye to the nearest ground of a node.
double lod_distance(const lod_view *view, lod_node node);

// What is wanted. `before` is the choice of the last frame, for the hysteresis; NULL where there is none.
void lod_choose(const lod_view *view, const lod_choice *before, lod_choice *out);

// Whether a node is among them: a root, or a child of one that is split.
bool lod_is_wanted(const lod_choice *choice, lod_node node);

static inline bool lod_is_leaf(const lod_choice *choice, lod_node node) { return !lod_has(&choice->split, node); }

void lod_ready_clear(lod_ready *ready);
void lod_ready_add(lod_ready *ready, lod_node node);

// What is drawn: writes up to LOD_NODES_MAX nodes and returns how many. Of two that cover the same ground the wanted
// one, where it is ready; else the nearest above it or those below it that are. A face nothing is ready for is empty.
uint32_t lod_drawn(const lod_choice *choice, const lod_ready *ready, lod_node *nodes);

lod_bounds lod_bounds_of(lod_node node, double low, double high);

// Whether anything in the bounds may be seen over the planet's limb. What it leaves out is certainly behind.
bool lod_is_over_horizon(vec3d eye, const lod_bounds *bounds);

// The same for a point.
bool lod_point_is_over_horizon(vec3d eye, vec3d point);
