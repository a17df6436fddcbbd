// SPDX-License-Identifier: MIT
// Which row hangs from which, and the order in which poses are worked out: parents before children, depth by depth. All
// of it follows from the column of parents, and is made again only where blocks of that column, or of the entities,
// were written since.

#include "scene.h"

#include "nebula/handle.h"

#include <string.h>

// In place of a depth.
#define DEPTH_UNKNOWN UINT8_MAX
#define DEPTH_ON_PATH (UINT8_MAX - 1)
NB_STATIC_ASSERT(NB_SCENE_DEPTH_MAX < DEPTH_ON_PATH, "a depth has a byte");

// Of a despawn in a stage, with room to spare. Nodes for which a stage has no room go with the next tick.
#define DESPAWN_BYTES 32u

// --- has anything changed? ---

static bool has_newer(const nb_column_view *view, uint64_t version) {
    uint32_t block_count = (view->row_count + view->block_rows - 1) / view->block_rows;
    for (uint32_t i = 0; i < block_count; ++i) {
        if (view->block_versions[i] > version) return true;
    }
    return false;
}

void nbi_scene_seen(nb_scene *scene) { scene->seen_version = nb_store_version_advance(scene->world) - 1; }

void nbi_scene_changes_check(nb_scene *scene) {
    nb_column_view parents, entities;
    nb_store_column_view(scene->world, scene->table, NB_SCENE_PARENT, &parents);
    nb_store_entity_view(scene->world, scene->table, &entities);
    bool is_same = parents.row_count == scene->seen_count && !has_newer(&parents, scene->seen_version) &&
                   !has_newer(&entities, scene->seen_version);
    if (is_same) return;
    scene->is_resolved = scene->is_ordered = false;
    scene->depth_bound = NB_SCENE_DEPTH_MAX;
    scene->seen_count = parents.row_count;
    nbi_scene_seen(scene);
}

// --- whose child? ---

static uint32_t slot_of(nb_entity entity) { return nb_handle_index((nb_handle){entity.value}); }

static uint32_t row_of(const nb_scene *scene, const nb_entity *entities, nb_entity parent) {
    if (parent.value == 0) return NBI_ROW_NONE;
    uint32_t slot = slot_of(parent);
    uint32_t row = slot < scene->desc.node_count_max ? scene->slot_rows[slot] : scene->seen_count;
    return row < scene->seen_count && entities[row].value == parent.value ? row : NBI_ROW_ORPHAN;
}

void nbi_scene_resolve(nb_scene *scene) {
    if (scene->is_resolved) return;
    nb_column_view view;
    nb_store_entity_view(scene->world, scene->table, &view);
    const nb_entity *entities = view.base;
    const nb_entity *parents = NB_STORE_ROWS(scene->world, scene->table, NB_SCENE_PARENT, nb_entity);
    uint32_t count = scene->seen_count;
    scene->orphan_count = 0;
    for (uint32_t row = 0; row < count; ++row) scene->slot_rows[slot_of(entities[row])] = row;
    for (uint32_t row = 0; row < count; ++row) {
        scene->parent_rows[row] = row_of(scene, entities, parents[row]);
        scene->orphan_count += scene->parent_rows[row] == NBI_ROW_ORPHAN;
    }
    scene->is_resolved = true;
}

// --- how deep? ---

static void cut(nb_scene *scene, uint32_t row) {
    scene->parent_rows[row] = NBI_ROW_CUT;
    ++scene->cut_count;
}

// Walks up to what is known, and back down. A walk that meets itself or gets too long is cut where it is.
static void climb(nb_scene *scene, uint32_t row) {
    uint32_t path[NB_SCENE_DEPTH_MAX], length = 0, at = row;
    while (at < NBI_ROW_CUT && scene->depths[at] == DEPTH_UNKNOWN && length < NB_SCENE_DEPTH_MAX) {
        scene->depths[at] = DEPTH_ON_PATH;
        path[length++] = at;
        at = scene->parent_rows[at];
    }
    uint32_t depth = 0;
    if (at < NBI_ROW_CUT && scene->depths[at] < NB_SCENE_DEPTH_MAX)
        depth = scene->depths[at] + 1u;
    else if (at < NBI_ROW_CUT)
        cut(scene, path[length - 1]);
    while (length-- > 0) {
        if (depth == NB_SCENE_DEPTH_MAX) cut(scene, path[length]);
        depth %= NB_SCENE_DEPTH_MAX;
        scene->depths[path[length]] = (uint8_t)depth++;
    }
}

static void sort_by_depth(nb_scene *scene) {
    uint32_t next[NB_SCENE_DEPTH_MAX] = {0}, sum = 0, count = scene->seen_count;
    for (uint32_t row = 0; row < count; ++row) ++next[scene->depths[row]];
    scene->level_count = 0;
    for (uint32_t depth = 0; depth < NB_SCENE_DEPTH_MAX; ++depth) {
        uint32_t here = next[depth];
        if (here != 0) scene->level_count = depth + 1;
        scene->level_begin[depth] = next[depth] = sum;
        sum += here;
    }
    scene->level_begin[NB_SCENE_DEPTH_MAX] = sum;
    for (uint32_t row = 0; row < count; ++row) {
        uint32_t parent = scene->parent_rows[row];
        scene->order[next[scene->depths[row]]++] = (nbi_node){row, parent < NBI_ROW_CUT ? parent : NBI_ROW_NONE};
    }
}

void nbi_scene_order(nb_scene *scene) {
    if (scene->is_ordered) return;
    nbi_scene_resolve(scene);
    memset(scene->depths, DEPTH_UNKNOWN, scene->seen_count);
    scene->cut_count = 0;
    for (uint32_t row = 0; row < scene->seen_count; ++row) {
        if (scene->depths[row] == DEPTH_UNKNOWN) climb(scene, row);
    }
    sort_by_depth(scene);
    nbi_scene_split(scene);
    scene->depth_bound = scene->level_count;
    scene->is_ordered = true;
    ++scene->stats.order_count;
}

void nbi_scene_flag_below(nb_scene *scene) {
    for (uint32_t i = 0; i < scene->seen_count; ++i) {
        nbi_node node = scene->order[i];
        if (node.parent != NBI_ROW_NONE) scene->flags[node.row] |= scene->flags[node.parent];
    }
}

// --- who goes? ---

// By row, so that nothing but the state decides in which order they go.
static uint32_t stage_flagged(const nb_scene *scene, const nb_context *context) {
    nb_store_stage *stage = nb_context_stage(context, 0);
    size_t room = nb_engine_desc_get(context->engine)->stage_bytes_max / DESPAWN_BYTES;
    uint32_t staged_count = 0;
    for (uint32_t row = 0; row < scene->seen_count && staged_count < room; ++row) {
        if (scene->flags[row] == 0) continue;
        nb_entity entity = nb_store_entity(scene->world, scene->table, row);
        if (stage == NULL || nb_store_stage_despawn(stage, entity) != NB_OK) break;
        ++staged_count;
    }
    return staged_count;
}

nb_result nbi_scene_reap(const nb_context *context, void *user) {
    nb_scene *scene = user;
    nbi_scene_changes_check(scene);
    nbi_scene_resolve(scene);
    if (scene->orphan_count == 0) return NB_OK;
    nbi_scene_order(scene);
    for (uint32_t row = 0; row < scene->seen_count; ++row)
        scene->flags[row] = scene->parent_rows[row] == NBI_ROW_ORPHAN;
    nbi_scene_flag_below(scene);
    uint32_t staged_count = stage_flagged(scene, context);
    if (!context->is_resimulated) scene->stats.reaped_count += staged_count;
    return NB_OK;
}
