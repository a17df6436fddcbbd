// SPDX-License-Identifier: MIT
// What callers do with nodes: spawn them, let them go, hang them elsewhere, move them and ask where they are.

#include "scene.h"

#include "nebula/hash.h"

#include <string.h>

// --- checks ---

// A mistake about a node, or about the scene (0), which handlers may repeat in each tick. Reports are all that a
// question changes.
#define FAIL(scene, node, item, result, ...)                                                                   \
    nb_report_throttled(&(scene)->hooks, (nb_throttle *)(uintptr_t) & (scene)->throttle, (node), true, (item), \
                        (result), function, __VA_ARGS__)

static nb_result check_scene(const nb_scene *scene, const char *function) {
    if (scene == NULL) return nb_report_mistake(NULL, NB_ITEM_BASE_NULL, NB_ERR_MISUSE, function, "scene is NULL");
    return scene->engine != NULL ? NB_OK : NB_CLOSED;
}

// The row of a node.
static nb_result find(const nb_scene *scene, nb_entity node, uint32_t *row, const char *function) {
    if (nb_entity_table(node).value != scene->table.value)
        return FAIL(scene, node.value, NB_ITEM_SCENE_ARGUMENT, NB_ERR_MISUSE,
                    "scene \"%s\": 0x%llx is no node of it; pass a node that nb_scene_spawn gave", scene->name,
                    nb_llu(node.value));
    if (nb_store_find(scene->world, node, row) == NB_OK) return NB_OK;
    return FAIL(scene, node.value, NB_ITEM_SCENE_STALE, NB_ERR_STALE,
                "scene \"%s\": node 0x%llx does not live; it or a parent was despawned: keep no handle of it",
                scene->name, nb_llu(node.value));
}

// The row that a node hangs from; one whose parent is gone hangs from none.
static uint32_t row_above(const nb_scene *scene, uint32_t row) {
    nb_entity parent = *NB_STORE_ROW(scene->world, scene->table, NB_SCENE_PARENT, nb_entity, row);
    bool is_node = nb_entity_table(parent).value == scene->table.value;
    return is_node && nb_store_find(scene->world, parent, &row) == NB_OK ? row : NBI_ROW_NONE;
}

// How many nodes are above a row, up to NB_SCENE_DEPTH_MAX; that many also where `avoided` is among them or the row.
static uint32_t depth_of(const nb_scene *scene, uint32_t row, uint32_t avoided) {
    uint32_t depth = 0;
    for (; depth < NB_SCENE_DEPTH_MAX; ++depth) {
        if (row == avoided) return NB_SCENE_DEPTH_MAX;
        row = row_above(scene, row);
        if (row == NBI_ROW_NONE) return depth;
    }
    return depth;
}

// node: null for one that is yet to come.
static nb_result refuse_parent(nb_scene *scene, nb_entity node, nb_entity parent, const char *function) {
    nbi_atomic_fetch_add_relaxed_u64(&scene->refused_count, 1);
    return FAIL(scene, node.value ^ nb_hash64(&parent.value, sizeof parent.value, 0), NB_ITEM_SCENE_PARENT,
                NB_ERR_RANGE,
                "scene \"%s\": node 0x%llx cannot hang from node 0x%llx: it would hang from itself, or %u levels deep; "
                "choose another parent",
                scene->name, nb_llu(node.value), nb_llu(parent.value), NB_SCENE_DEPTH_MAX);
}

// --- coming and going ---

static nb_result check_node(nb_scene *scene, const nb_node_desc *desc, const char *function) {
    nb_result result = check_scene(scene, function);
    if (result != NB_OK) return result;
    if (desc == NULL)
        return FAIL(scene, 0, NB_ITEM_SCENE_ARGUMENT, NB_ERR_MISUSE, "scene \"%s\": desc is NULL", scene->name);
    if (desc->parent.value == 0) return NB_OK;
    if (desc->parent_staged.value != 0)
        return FAIL(scene, desc->parent.value, NB_ITEM_SCENE_ARGUMENT, NB_ERR_MISUSE,
                    "scene \"%s\": parent 0x%llx and parent_staged are both set; a node has one parent", scene->name,
                    nb_llu(desc->parent.value));
    uint32_t row = 0;
    result = find(scene, desc->parent, &row, function);
    if (result != NB_OK) return result;
    bool is_deep = depth_of(scene, row, NBI_ROW_NONE) + 1 >= NB_SCENE_DEPTH_MAX;
    return is_deep ? refuse_parent(scene, (nb_entity){0}, desc->parent, function) : NB_OK;
}

static nb_transform resolve(nb_transform local) {
    if (local.scale == 0.0f) local.scale = 1.0f;
    return local;
}

nb_result nb_scene_spawn(nb_scene *scene, const nb_node_desc *desc, nb_entity *out) {
    const char *function = __func__;
    nb_result result = check_node(scene, desc, function);
    if (result != NB_OK) return result;
    if (out == NULL)
        return FAIL(scene, 0, NB_ITEM_SCENE_ARGUMENT, NB_ERR_MISUSE, "scene \"%s\": out is NULL", scene->name);
    if (desc->parent_staged.value != 0)
        return FAIL(scene, 0, NB_ITEM_SCENE_ARGUMENT, NB_ERR_MISUSE,
                    "scene \"%s\": parent_staged counts in nb_scene_stage alone; set parent", scene->name);
    nb_entity entity = {0};
    uint32_t row = 0;
    result = nb_store_spawn(scene->world, scene->table, &entity);
    if (result != NB_OK) return result;
    nb_store_find(scene->world, entity, &row);
    *NB_STORE_ROW_WRITE(scene->world, scene->table, NB_SCENE_PARENT, nb_entity, row) = desc->parent;
    *NB_STORE_ROW_WRITE(scene->world, scene->table, NB_SCENE_LOCAL, nb_transform, row) = resolve(desc->local);
    *out = entity;
    return NB_OK;
}

nb_result nb_scene_stage(nb_scene *scene, nb_store_stage *stage, const nb_node_desc *desc, nb_staged *out) {
    nb_staged staged = {0};
    nb_result result = check_node(scene, desc, __func__);
    bool is_linked = result == NB_OK && desc->parent_staged.value != 0;
    if (is_linked && NB_STORE_STAGED_WRITE(stage, desc->parent_staged, NB_SCENE_PARENT, nb_entity) == NULL)
        return NB_ERR_STALE;
    if (result == NB_OK) result = nb_store_stage_spawn(stage, scene->table, &staged);
    if (result != NB_OK) return result;
    nb_entity *parent = NB_STORE_STAGED_WRITE(stage, staged, NB_SCENE_PARENT, nb_entity);
    *NB_STORE_STAGED_WRITE(stage, staged, NB_SCENE_LOCAL, nb_transform) = resolve(desc->local);
    *parent = desc->parent;
    if (is_linked) {
        *parent = NBI_PARENT_GONE; // where the parent's table is full, or the link finds no room, the child goes, too
        result = nb_store_stage_link(stage, staged, NB_SCENE_PARENT, desc->parent_staged);
    }
    if (result == NB_OK && out != NULL) *out = staged;
    return result;
}

nb_result nb_scene_despawn(nb_scene *scene, nb_entity node) {
    uint32_t row = 0;
    nb_result result = check_scene(scene, __func__);
    if (result == NB_OK) result = find(scene, node, &row, __func__);
    if (result != NB_OK) return result;
    nb_entity *parent = NB_STORE_ROW_WRITE(scene->world, scene->table, NB_SCENE_PARENT, nb_entity, row);
    if (parent == NULL) return NB_ERR_PERMISSION;
    *parent = NBI_PARENT_GONE;
    return NB_OK;
}

// --- another parent ---

// Levels of what hangs from a row, itself counted.
static uint32_t height_of(nb_scene *scene, uint32_t row) {
    uint32_t deepest = scene->depths[row];
    memset(scene->flags, 0, scene->seen_count);
    scene->flags[row] = 1;
    nbi_scene_flag_below(scene);
    for (uint32_t i = 0; i < scene->seen_count; ++i) {
        if (scene->flags[i] != 0 && scene->depths[i] > deepest) deepest = scene->depths[i];
    }
    return deepest - scene->depths[row] + 1;
}

// Whether a row with all that hangs from it may be at this depth. How deep the scene is at most answers that mostly;
// only a deep one is walked through. The answer depends on the nodes of now alone, as that of a tick must.
static bool fits(nb_scene *scene, uint32_t row, uint32_t depth) {
    uint32_t depth_now = depth_of(scene, row, NBI_ROW_NONE);
    bool is_surely = depth_now < scene->depth_bound && depth + scene->depth_bound - depth_now <= NB_SCENE_DEPTH_MAX;
    uint32_t height = scene->depth_bound - depth_now;
    if (!is_surely) {
        nbi_scene_order(scene);
        height = height_of(scene, row);
    }
    if (depth + height > NB_SCENE_DEPTH_MAX) return false;
    if (depth + height > scene->depth_bound) scene->depth_bound = depth + height;
    return true;
}

// The pose that leaves a node where it is, below another parent.
static nb_transform pose_below(const nb_scene *scene, nb_entity node, nb_entity parent) {
    nb_transform pose = nb_transform_identity(), above = nb_transform_identity();
    nb_scene_pose_get(scene, node, &pose);
    if (parent.value == 0) return pose;
    nb_scene_pose_get(scene, parent, &above);
    return nb_transform_compose(nb_transform_invert(above), pose);
}

static nb_result parent_write(nb_scene *scene, uint32_t row, nb_entity parent, const nb_transform *local) {
    nb_entity *to = NB_STORE_ROW_WRITE(scene->world, scene->table, NB_SCENE_PARENT, nb_entity, row);
    if (to == NULL) return NB_ERR_PERMISSION;
    *to = parent;
    if (local != NULL) *NB_STORE_ROW_WRITE(scene->world, scene->table, NB_SCENE_LOCAL, nb_transform, row) = *local;
    nb_store_teleport(scene->world, nb_store_entity(scene->world, scene->table, row));
    // The next one asks again for the order, but needs not look whether others have written.
    scene->is_resolved = scene->is_ordered = false;
    nbi_scene_seen(scene);
    return NB_OK;
}

nb_result nb_scene_parent_set(nb_scene *scene, nb_entity node, nb_entity parent, nb_scene_keep keep) {
    const char *function = __func__;
    uint32_t row = 0, parent_row = 0, depth = 0;
    nb_result result = check_scene(scene, function);
    if (result == NB_OK && (uint32_t)keep >= NB_SCENE_KEEP_COUNT)
        result = FAIL(scene, node.value, NB_ITEM_SCENE_ARGUMENT, NB_ERR_MISUSE,
                      "scene \"%s\": node 0x%llx: keep is %u; choose an nb_scene_keep", scene->name, nb_llu(node.value),
                      (uint32_t)keep);
    if (result == NB_OK) result = find(scene, node, &row, function);
    if (result == NB_OK && parent.value != 0) result = find(scene, parent, &parent_row, function);
    if (result != NB_OK) return result;
    nbi_scene_changes_check(scene);
    if (parent.value != 0) depth = depth_of(scene, parent_row, row) + 1;
    if (depth >= NB_SCENE_DEPTH_MAX || !fits(scene, row, depth)) return refuse_parent(scene, node, parent, function);
    nb_transform local = keep == NB_SCENE_KEEP_WORLD ? pose_below(scene, node, parent) : nb_transform_identity();
    return parent_write(scene, row, parent, keep == NB_SCENE_KEEP_WORLD ? &local : NULL);
}

// --- poses ---

nb_transform *nb_scene_local_write(nb_scene *scene, nb_entity node) {
    const char *function = __func__;
    uint32_t row = 0;
    nb_result result = check_scene(scene, function);
    if (result == NB_CLOSED)
        FAIL(scene, 0, NB_ITEM_SCENE_ARGUMENT, NB_CLOSED,
             "scene \"%s\": its engine has ended, or has detached it; destroy the scene", scene->name);
    if (result == NB_OK) result = find(scene, node, &row, function);
    return result == NB_OK ? NB_STORE_ROW_WRITE(scene->world, scene->table, NB_SCENE_LOCAL, nb_transform, row) : NULL;
}

nb_result nb_scene_pose_get(const nb_scene *scene, nb_entity node, nb_transform *out) {
    const char *function = __func__;
    nb_result result = check_scene(scene, function);
    if (result != NB_OK) return result;
    if (out == NULL)
        return FAIL(scene, 0, NB_ITEM_SCENE_ARGUMENT, NB_ERR_MISUSE, "scene \"%s\": out is NULL", scene->name);
    if (nb_entity_table(node).value != scene->table.value)
        return FAIL(scene, node.value, NB_ITEM_SCENE_ARGUMENT, NB_ERR_MISUSE,
                    "scene \"%s\": 0x%llx is no node of it; pass a node that nb_scene_spawn gave", scene->name,
                    nb_llu(node.value));
    uint32_t row = 0;
    if (nb_store_find(scene->world, node, &row) != NB_OK) return NB_ERR_STALE;
    const nb_transform *local = NB_STORE_ROWS(scene->world, scene->table, NB_SCENE_LOCAL, nb_transform);
    nb_transform pose = local[row];
    row = row_above(scene, row);
    for (uint32_t depth = 1; row != NBI_ROW_NONE && depth < NB_SCENE_DEPTH_MAX; ++depth) {
        pose = nb_transform_compose(local[row], pose);
        row = row_above(scene, row);
    }
    *out = pose;
    return NB_OK;
}
