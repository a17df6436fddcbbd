// SPDX-License-Identifier: MIT
// Where threads part. Above a certain depth they share each level and wait for each other; from there on each takes
// whole pieces, a node with all that hangs from it, and nobody waits: a thousand skeletons are a thousand pieces. The
// depth is the first one with enough pieces, none of which is so large that the others would wait for it.

#include "scene.h"

#include <string.h>

// Pieces that keep 64 threads busy to the end.
#define PIECE_COUNT_MIN 256u

// The largest piece is at most this part of all nodes.
#define PIECE_PARTS 32u

// Scenes up to this are worked out by one thread.
#define NODE_COUNT_ALONE 2048u

// The depth of the pieces, or level_count where there is none.
static uint32_t choose_level(nb_scene *scene) {
    uint32_t heaviest[NB_SCENE_DEPTH_MAX] = {0}, count = scene->seen_count, *weights = scene->pieces;
    if (count <= NODE_COUNT_ALONE) return scene->level_count;
    memset(weights, 0, count * sizeof *weights);
    for (uint32_t i = count; i > 0; --i) { // children before their parents
        nbi_node node = scene->order[i - 1];
        uint32_t weight = ++weights[node.row], depth = scene->depths[node.row];
        if (weight > heaviest[depth]) heaviest[depth] = weight;
        if (node.parent != NBI_ROW_NONE) weights[node.parent] += weight;
    }
    uint32_t level = 0;
    for (; level < scene->level_count; ++level) {
        uint32_t piece_count = scene->level_begin[level + 1] - scene->level_begin[level];
        if (piece_count >= PIECE_COUNT_MIN && heaviest[level] <= count / PIECE_PARTS) break;
    }
    return level;
}

// Stable, so that parents stay before their children. After it ends[i] is where piece i ends.
static void sort_by_piece(nb_scene *scene, uint32_t first, uint32_t level_end) {
    uint32_t count = scene->seen_count, *ends = scene->piece_ends, *pieces = scene->pieces;
    memset(ends, 0, scene->piece_count * sizeof *ends);
    for (uint32_t i = first; i < count; ++i) {
        nbi_node node = scene->order[i];
        pieces[node.row] = i < level_end ? i - first : pieces[node.parent];
        ++ends[pieces[node.row]];
    }
    for (uint32_t i = 0, sum = first; i < scene->piece_count; ++i) {
        uint32_t here = ends[i];
        ends[i] = sum;
        sum += here;
    }
    memcpy(scene->spare_order, scene->order, first * sizeof *scene->order);
    for (uint32_t i = first; i < count; ++i) scene->spare_order[ends[pieces[scene->order[i].row]]++] = scene->order[i];
    nbi_node *spare = scene->order;
    scene->order = scene->spare_order;
    scene->spare_order = spare;
}

void nbi_scene_split(nb_scene *scene) {
    scene->split_level = choose_level(scene);
    scene->piece_count = 0;
    if (scene->split_level == scene->level_count) return;
    uint32_t first = scene->level_begin[scene->split_level], end = scene->level_begin[scene->split_level + 1];
    scene->piece_count = end - first;
    sort_by_piece(scene, first, end);
}
