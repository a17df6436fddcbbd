// SPDX-License-Identifier: MIT
// Poses in the world: on all threads, parents before children, for nodes whose own pose, or that of one above, is
// another than when it was worked out last. A node's pose depends on its own and its parent's alone, so that who works
// out which, and when, changes no bit.

#include "scene.h"

#include "lanes.h"

#include <string.h>

// Levels up to this are not worth waking anybody: some thirty microseconds of work.
#define LEVEL_ALONE_MAX 2048u

// Nodes of one take, about, or more: some microseconds.
#define GRAIN 256u

// One propagation, shared by all threads.
typedef struct pass {
    nb_scene *scene;
    const nb_transform *local, *previous;
    const uint8_t *teleports;
    nb_matrix34 *drawn;
    const nbi_node *nodes; // that indices are of
    nb_atomic_u32 done_count;
    float alpha;
    bool is_between; // poses are mixed
} pass;

// --- what has changed ---

static void mark_view(uint8_t *block_dirty, const nb_column_view *view, uint64_t version) {
    uint32_t block_count = (view->row_count + view->block_rows - 1) / view->block_rows;
    for (uint32_t i = 0; i < block_count; ++i) block_dirty[i] |= view->block_versions[i] > version;
}

static void mark_written(nb_scene *scene) {
    nb_column_view view;
    for (uint32_t column = NB_SCENE_PARENT; column <= NB_SCENE_WORLD; ++column) {
        nb_store_column_view(scene->world, scene->table, column, &view);
        mark_view(scene->block_dirty, &view, scene->drawn_version);
    }
    nb_store_previous_view(scene->world, scene->table, NB_SCENE_LOCAL, &view);
    mark_view(scene->block_dirty, &view, scene->drawn_version);
    nb_store_entity_view(scene->world, scene->table, &view);
    mark_view(scene->block_dirty, &view, scene->drawn_version);
    nb_store_teleport_view(scene->world, scene->table, &view);
    mark_view(scene->block_dirty, &view, scene->drawn_version);
}

// Which blocks have rows to work out; false: none has.
static bool mark_blocks(nb_scene *scene, float alpha) {
    uint32_t block_count = (scene->seen_count + NB_STORE_BLOCK_ROWS - 1) / NB_STORE_BLOCK_ROWS;
    bool is_irregular = scene->orphan_count != 0 || scene->cut_count != 0, has_any = false;
    bool is_all = is_irregular || scene->was_irregular;
    memset(scene->block_dirty, is_all, block_count);
    mark_written(scene);
    for (uint32_t i = 0; i < block_count; ++i) {
        bool is_moving = nbi_atomic_load_relaxed_u32(&scene->moving[i]) != 0;
        if (is_moving && alpha != scene->drawn_alpha) scene->block_dirty[i] = 1;
        if (scene->block_dirty[i] == 0) continue;
        nbi_atomic_store_relaxed_u32(&scene->moving[i], 0); // said again by rows that are
        has_any = true;
    }
    scene->was_irregular = is_irregular;
    return has_any;
}

// --- a pose ---

static bool is_moving(const pass *p, uint32_t row) {
    return p->teleports[row] == 0 && memcmp(&p->local[row], &p->previous[row], sizeof *p->local) != 0;
}

static void draw_node(const pass *p, uint32_t row, const nb_matrix34 *above) {
    nbi_pose pose = nbi_pose_load(&p->local[row]);
    if (p->is_between && p->teleports[row] == 0) pose = nbi_pose_mix(nbi_pose_load(&p->previous[row]), pose, p->alpha);
    nbi_pose_draw(pose, above, &p->drawn[row]);
}

static void run_nodes(nb_task_context *context, void *user, uint64_t begin, uint64_t end) {
    pass *p = user;
    nb_scene *scene = p->scene;
    uint8_t *flags = scene->flags;
    uint32_t done_count = 0, block_stamped = UINT32_MAX;
    (void)context;
    for (uint64_t i = begin; i < end; ++i) {
        uint32_t row = p->nodes[i].row, parent = p->nodes[i].parent, block = row / NB_STORE_BLOCK_ROWS;
        flags[row] = scene->block_dirty[block] != 0 || (parent != NBI_ROW_NONE && flags[parent] != 0);
        if (flags[row] == 0) continue;
        if (block != block_stamped)
            NB_STORE_RANGE_WRITE(scene->world, scene->table, NB_SCENE_WORLD, nb_matrix34, row, 1);
        block_stamped = block;
        bool is_marked = !p->is_between || nbi_atomic_load_relaxed_u32(&scene->moving[block]) != 0;
        if (!is_marked && is_moving(p, row)) nbi_atomic_store_relaxed_u32(&scene->moving[block], 1);
        draw_node(p, row, parent != NBI_ROW_NONE ? &p->drawn[parent] : NULL);
        ++done_count;
    }
    nbi_atomic_fetch_add_relaxed_u32(&p->done_count, done_count);
}

static nb_result run_level(pass *p, nb_scheduler *scheduler, uint32_t level) {
    const nb_scene *scene = p->scene;
    uint32_t begin = scene->level_begin[level], count = scene->level_begin[level + 1] - begin;
    nb_parallel_desc loop = {.run = run_nodes, .user = p, .count = count, .grain = GRAIN};
    p->nodes = scene->order + begin;
    if (count > LEVEL_ALONE_MAX) return nb_parallel_for(scheduler, &loop, NULL);
    run_nodes(NULL, p, 0, count);
    return NB_OK;
}

static void run_pieces(nb_task_context *context, void *user, uint64_t begin, uint64_t end) {
    const pass *p = user;
    const nb_scene *scene = p->scene;
    uint32_t first = begin != 0 ? scene->piece_ends[begin - 1] : scene->level_begin[scene->split_level];
    run_nodes(context, user, first, scene->piece_ends[end - 1]);
}

static nb_result run_all(pass *p, nb_scheduler *scheduler) {
    const nb_scene *scene = p->scene;
    nb_result result = NB_OK;
    for (uint32_t level = 0; level < scene->split_level && result == NB_OK; ++level)
        result = run_level(p, scheduler, level);
    if (scene->piece_count == 0 || result != NB_OK) return result;
    uint64_t count = scene->seen_count - scene->level_begin[scene->split_level];
    nb_parallel_desc loop = {.run = run_pieces, .user = p, .count = scene->piece_count};
    loop.grain = GRAIN * scene->piece_count / count + 1;
    p->nodes = scene->order;
    return nb_parallel_for(scheduler, &loop, NULL);
}

nb_result nbi_scene_propagate(const nb_context *context, void *user) {
    nb_scene *scene = user;
    pass p = {.scene = scene, .alpha = context->time->alpha_f32, .is_between = !scene->desc.is_exact};
    nb_column_view teleports;
    nbi_scene_changes_check(scene);
    nbi_scene_order(scene);
    bool has_any = mark_blocks(scene, p.alpha);
    nb_store_teleport_view(scene->world, scene->table, &teleports);
    p.teleports = teleports.base;
    p.local = NB_STORE_ROWS(scene->world, scene->table, NB_SCENE_LOCAL, nb_transform);
    p.previous = NB_STORE_ROWS_PREVIOUS(scene->world, scene->table, NB_SCENE_LOCAL, nb_transform);
    p.drawn = NB_STORE_RANGE_WRITE(scene->world, scene->table, NB_SCENE_WORLD, nb_matrix34, 0, 0);
    nb_result result = has_any && p.drawn != NULL ? run_all(&p, context->scheduler) : NB_OK;
    uint64_t version = nb_store_version_advance(scene->world) - 1;
    if (result == NB_OK) scene->drawn_version = version;
    scene->drawn_alpha = p.alpha;
    scene->stats.propagated_count = nbi_atomic_load_relaxed_u32(&p.done_count);
    scene->stats.level_count = scene->level_count;
    scene->stats.orphan_count = scene->orphan_count;
    scene->stats.cut_count = scene->cut_count;
    return result;
}
