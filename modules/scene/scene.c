// SPDX-License-Identifier: MIT
// A scene's beginning and end, and its numbers.

#include "scene.h"

#include "nebula/handle.h"

#include <stdio.h>
#include <string.h>

#define NAME_DEFAULT "scene"

nb_scene_desc nb_scene_desc_default(void) {
    return (nb_scene_desc){
        .name = NAME_DEFAULT, .node_count_max = NB_SCENE_NODE_COUNT_DEFAULT, .hooks = nb_hooks_default()};
}

nb_node_desc nb_node_desc_default(void) { return (nb_node_desc){.local = nb_transform_identity()}; }

// --- memory ---

// Hands out pieces of one allocation, each on a cache line. The first pass has no base and only measures.
typedef struct carver {
    unsigned char *base;
    size_t used_bytes;
} carver;

// At most 2^24 of 8 bytes: no sum overflows.
static void *carve(carver *from, size_t count, size_t size_bytes) {
    size_t at = from->used_bytes;
    from->used_bytes += (count * size_bytes + NB_CACHE_LINE - 1) & ~(size_t)(NB_CACHE_LINE - 1);
    return from->base != NULL ? from->base + at : NULL;
}

static size_t carve_scene(nb_scene *scene, unsigned char *base) {
    carver from = {base, 0};
    size_t rows = scene->desc.node_count_max, blocks = (rows + NB_STORE_BLOCK_ROWS - 1) / NB_STORE_BLOCK_ROWS;
    scene->slot_rows = carve(&from, rows, sizeof *scene->slot_rows);
    scene->parent_rows = carve(&from, rows, sizeof *scene->parent_rows);
    scene->depths = carve(&from, rows, sizeof *scene->depths);
    scene->order = carve(&from, rows, sizeof *scene->order);
    scene->spare_order = carve(&from, rows, sizeof *scene->spare_order);
    scene->pieces = carve(&from, rows, sizeof *scene->pieces);
    scene->piece_ends = carve(&from, rows, sizeof *scene->piece_ends);
    scene->flags = carve(&from, rows, sizeof *scene->flags);
    scene->block_dirty = carve(&from, blocks, sizeof *scene->block_dirty);
    scene->moving = carve(&from, blocks, sizeof *scene->moving);
    return from.used_bytes;
}

static nb_scene *allocate(const nb_scene_desc *desc) {
    nb_scene *scene = nb_hooks_alloc(&desc->hooks, sizeof *scene, NB_CACHE_LINE, "nb_scene_create");
    if (scene == NULL) return NULL;
    memset(scene, 0, sizeof *scene);
    scene->desc = *desc;
    scene->hooks = desc->hooks;
    snprintf(scene->name, sizeof scene->name, "%s", desc->name);
    scene->memory_bytes = carve_scene(scene, NULL);
    scene->memory = nb_hooks_alloc(&desc->hooks, scene->memory_bytes, NB_CACHE_LINE, "nb_scene_create");
    if (scene->memory == NULL) {
        nb_hooks_free(&desc->hooks, scene, sizeof *scene);
        return NULL;
    }
    memset(scene->memory, 0, scene->memory_bytes);
    carve_scene(scene, scene->memory);
    scene->depth_bound = NB_SCENE_DEPTH_MAX;
    return scene;
}

static void release(nb_scene *scene) {
    nb_hooks hooks = scene->hooks;
    nb_hooks_free(&hooks, scene->memory, scene->memory_bytes);
    nb_hooks_free(&hooks, scene, sizeof *scene);
}

// --- beginning and end ---

static void on_detach(nb_engine *engine, void *user) {
    nb_scene *scene = user;
    (void)engine;
    scene->engine = NULL;
    scene->world = NULL;
}

static nb_result attach(nb_scene *scene, nb_engine *engine) {
    // Behind all others: what they do in a tick or to poses is then done.
    nb_module_desc module = {
        .name = scene->desc.name, .priority = INT32_MIN, .tick = nbi_scene_reap, .on_detach = on_detach, .user = scene};
    module.handlers[NB_PHASE_TRANSFORMS] = nbi_scene_propagate;
    scene->engine = engine;
    return nb_engine_module_attach(engine, &module, &scene->module);
}

static nb_result add_table(nb_scene *scene) {
    nb_column_desc columns[NB_STORE_COLUMN_COUNT_MAX] = {
        [NB_SCENE_PARENT] = {.name = "parent", .size_bytes = sizeof(nb_entity), .flags = NB_COLUMN_SNAPSHOT},
        [NB_SCENE_LOCAL] = {.name = "local", .size_bytes = sizeof(nb_transform), .flags = NB_COLUMN_INTERPOLATE},
        [NB_SCENE_WORLD] = {.name = "world",
                            .size_bytes = sizeof(nb_matrix34),
                            .flags = NB_COLUMN_LOCAL | NB_COLUMN_SNAPSHOT},
    };
    uint32_t more = scene->desc.column_count;
    if (more != 0) memcpy(&columns[NB_SCENE_COLUMN_COUNT], scene->desc.columns, more * sizeof columns[0]);
    nb_table_desc table = {.name = scene->desc.name,
                           .row_count_max = scene->desc.node_count_max,
                           .columns = columns,
                           .column_count = NB_SCENE_COLUMN_COUNT + more};
    return nb_store_table_add(scene->world, &table, &scene->table);
}

static nb_result refuse(const nb_scene_desc *desc, nb_result result, const char *reason) {
    return nb_report_mistake(&desc->hooks, NB_ITEM_SCENE_ARGUMENT, result, "nb_scene_create", "scene \"%s\": %s",
                             desc->name, reason);
}

static nb_result check_desc(const nb_scene_desc *desc) {
    if (desc->columns == NULL && desc->column_count != 0)
        return refuse(desc, NB_ERR_MISUSE, "columns is NULL, and column_count is not 0");
    if (desc->node_count_max > NB_HANDLE_CAPACITY_MAX)
        return refuse(desc, NB_ERR_RANGE, "node_count_max is over NB_HANDLE_CAPACITY_MAX");
    if (desc->column_count > NB_STORE_COLUMN_COUNT_MAX - NB_SCENE_COLUMN_COUNT)
        return refuse(desc, NB_ERR_RANGE, "column_count is over NB_STORE_COLUMN_COUNT_MAX - NB_SCENE_COLUMN_COUNT");
    return NB_OK;
}

// Nothing of the engine uses the scene once on_detach was called; between frames that is in this call.
static nb_result detach(nb_scene *scene) {
    if (scene->engine == NULL) return NB_OK;
    nb_result result = nb_engine_module_detach(scene->engine, scene->module);
    if (scene->engine == NULL) return NB_OK;
    return result == NB_ERR_THREAD ? result : NB_BUSY;
}

static nb_result begin(nb_scene *scene, nb_engine *engine) {
    scene->world = nb_engine_world(engine);
    if (scene->world == NULL) return nb_engine_phase(engine) == NB_PHASE_NONE ? NB_ERR_MEMORY : NB_ERR_MISUSE;
    nb_result result = attach(scene, engine);
    if (result != NB_OK) return result;
    result = add_table(scene);
    if (result != NB_OK) detach(scene);
    // Those of the desc may go.
    scene->desc.columns = NULL;
    scene->desc.name = NULL;
    return result;
}

nb_result nb_scene_create(nb_engine *engine, const nb_scene_desc *desc, nb_scene **out) {
    if (engine == NULL) return NB_FAIL_NULL("engine");
    if (out == NULL) return NB_FAIL_NULL("out");
    nb_scene_desc resolved = desc != NULL ? *desc : (nb_scene_desc){0};
    resolved.hooks = nb_hooks_resolve(&resolved.hooks);
    if (resolved.name == NULL) resolved.name = NAME_DEFAULT;
    if (resolved.node_count_max == 0) resolved.node_count_max = NB_SCENE_NODE_COUNT_DEFAULT;
    nb_result result = check_desc(&resolved);
    if (result != NB_OK) return result;
    if (nb_engine_phase(engine) != NB_PHASE_NONE)
        return refuse(&resolved, NB_ERR_MISUSE, "called inside a frame; create it between frames");
    nb_scene *scene = allocate(&resolved);
    if (scene == NULL) return NB_ERR_MEMORY;
    result = begin(scene, engine);
    if (result != NB_OK) {
        release(scene);
        return result;
    }
    *out = scene;
    return NB_OK;
}

nb_result nb_scene_destroy(nb_scene *scene) {
    if (scene == NULL) return NB_OK;
    if (scene->engine != NULL) {
        if (nb_engine_phase(scene->engine) != NB_PHASE_NONE) return NB_BUSY;
        nb_result result = detach(scene);
        if (result != NB_OK) return result;
    }
    release(scene);
    return NB_OK;
}

// --- questions ---

nb_table nb_scene_table(const nb_scene *scene) {
    if (scene != NULL) return scene->table;
    NB_FAIL_NULL("scene");
    return (nb_table){0};
}

nb_scene_stats nb_scene_stats_get(const nb_scene *scene) {
    if (scene == NULL) {
        NB_FAIL_NULL("scene");
        return (nb_scene_stats){0};
    }
    nb_scene_stats stats = scene->stats;
    stats.node_count = nb_store_row_count(scene->world, scene->table);
    stats.refused_count = nbi_atomic_load_relaxed_u64(&scene->refused_count);
    return stats;
}
