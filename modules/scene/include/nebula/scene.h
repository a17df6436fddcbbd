// SPDX-License-Identifier: MIT
#pragma once

// A scene: nodes with a parent and a pose relative to it, as a table of the engine's world. Ticks move nodes; once a
// frame, in the phase Transforms, the pose of each in the world is worked out on all threads, between the last two
// ticks as the frame's alpha says, and published with the snapshot. The one rule: ticks read and write NB_SCENE_LOCAL;
// NB_SCENE_WORLD is for drawing, and no part of what is simulated.
//
//     nb_scene_desc desc = {.node_count_max = 1000};
//     nb_scene *scene = NULL;
//     if (nb_scene_create(engine, &desc, &scene) != NB_OK) return 1;
//     nb_node_desc sun = {.local = {.position = {0, 0, 0}}}, planet = {.local = {.position = {10, 0, 0}}};
//     nb_scene_spawn(scene, &sun, &planet.parent); // outside ticks; in ticks nb_scene_stage
//     nb_entity earth;
//     nb_scene_spawn(scene, &planet, &earth);
//     nb_scene_local_write(scene, earth)->position[1] = 2.0f; // in a tick
//     nb_engine_frame(engine);
//     nb_store *world = nb_engine_world(engine);
//     const nb_matrix34 *drawn = NB_STORE_ROWS(world, nb_scene_table(scene), NB_SCENE_WORLD, nb_matrix34);
//     printf("row 1 is drawn at %g\n", (double)drawn[1].m[3]); // in jobs: NB_STORE_VIEW
//     nb_scene_destroy(scene);
//
// A node lives as long as its parent: one whose parent is gone goes itself, with all that hangs from it, at the end of
// the tick in which that is seen; until then it counts as one without a parent. Nodes are rows of a world, so they
// rewind, are saved and hashed like all others, and nb_store_teleport keeps one from being drawn on its way.

#include "nebula/engine.h"
#include "nebula/hooks.h"
#include "nebula/store.h"
#include "nebula/transform.h"
#include "nebula/types.h"

// Nodes on the way from one to its farthest root, both counted: a skeleton has 20, and what is deeper is mostly a list
// that was taken for a tree. It bounds every walk up to a root.
#define NB_SCENE_DEPTH_MAX 64u

// Nodes where the desc gives none: a small game's objects.
#define NB_SCENE_NODE_COUNT_DEFAULT 1024u

// The columns of a scene's table. Those of desc.columns follow.
enum {
    NB_SCENE_PARENT = 0, // nb_entity, null = none; simulated and published. To be read: see nb_scene_parent_set
    NB_SCENE_LOCAL,      // nb_transform, relative to the parent; simulated and interpolated
    NB_SCENE_WORLD,      // nb_matrix34, as drawn in this frame; local and published
    NB_SCENE_COLUMN_COUNT,
};

typedef struct nb_scene_desc {
    const char *name;              // of the table and the module; default "scene"
    uint32_t node_count_max;       // 1 to NB_HANDLE_CAPACITY_MAX; default NB_SCENE_NODE_COUNT_DEFAULT
    const nb_column_desc *columns; // more columns of a node, such as what is drawn there; needed only during the call
    uint32_t column_count;         // up to NB_STORE_COLUMN_COUNT_MAX - NB_SCENE_COLUMN_COUNT
    bool is_exact;                 // world poses are those of the newest tick, not between two: for servers
    nb_hooks hooks;                // zero = defaults
} nb_scene_desc;

typedef struct nb_node_desc {
    nb_entity parent;        // a node of the scene; null = none
    nb_staged parent_staged; // or one staged before in the same stage; then parent is null
    nb_transform local;      // a scale of 0 is 1 here, so that zero is no pose but the default
} nb_node_desc;

// What stays when a node gets another parent.
typedef enum nb_scene_keep {
    NB_SCENE_KEEP_LOCAL = 0, // its pose relative to the parent
    NB_SCENE_KEEP_WORLD,     // where it is, as simulated
    NB_SCENE_KEEP_COUNT,
} nb_scene_keep;

typedef struct nb_scene_stats {
    uint32_t node_count;
    uint32_t level_count;      // of the newest frame: how deep the deepest node is, itself counted
    uint32_t orphan_count;     // of it: nodes whose parent is gone
    uint32_t cut_count;        // of it: nodes without a way to a root, or too far from it, that were drawn as roots
    uint32_t propagated_count; // of it: world poses that were worked out; the others were as before
    uint64_t order_count;      // how often nodes were put in order, because some came, went or changed their parent
    uint64_t reaped_count;     // nodes that went because their parent did, or nb_scene_despawn was called
    uint64_t refused_count;    // parents that nb_scene_parent_set refused: a circle, or too deep
} nb_scene_stats;

typedef struct nb_scene nb_scene;

NB_EXTERN_C_BEGIN

// A desc with every default spelled out.
// Thread: any. Owner: the caller gets a value. Fails: never.
NB_API nb_scene_desc nb_scene_desc_default(void);

// A node without a parent, at the origin.
// Thread: any. Owner: the caller gets a value. Fails: never.
NB_API nb_node_desc nb_node_desc_default(void);

// Adds a scene to an engine: a table of its world, and a module with a handler in Transforms and one that runs last in
// each tick. All memory is taken here. desc may be NULL.
// Thread: the engine's coordinator, before the world's first frame or row. Owner: the caller, until nb_scene_destroy.
// Fails: NB_ERR_RANGE, NB_ERR_MEMORY, NB_ERR_MISUSE; as nb_engine_module_attach and nb_store_table_add. Nothing is
// added then.
NB_API nb_result nb_scene_create(nb_engine *engine, const nb_scene_desc *desc, nb_scene **out);

// Ends a scene; its nodes stay rows of the world, or the engine has ended before. NULL is fine.
// Thread: the coordinator, between frames; also inside a callback of another module. Owner: the scene is gone. Fails:
// NB_BUSY (inside a frame, or the scene's module is leaving: try again later), NB_ERR_THREAD.
NB_API nb_result nb_scene_destroy(nb_scene *scene);

// The table of the nodes.
// Thread: any. Owner: nothing. Fails: null, reported, for NULL.
NB_API nb_table nb_scene_table(const nb_scene *scene);

// Spawns a node at once, for loading: outside ticks.
// Thread: the coordinator, between frames. Owner: the world, until it goes. Fails: NB_ERR_STALE (the parent does not
// live), NB_ERR_RANGE (the parent is too deep), NB_ERR_MISUSE (NULL; a parent that is staged, or no node), NB_CLOSED
// (the engine has ended); as nb_store_spawn.
NB_API nb_result nb_scene_spawn(nb_scene *scene, const nb_node_desc *desc, nb_entity *out);

// Stages a node to be spawned when the tick ends. Where its parent does not live by then, it goes with the next tick.
// More columns are written with NB_STORE_STAGED_WRITE. out may be NULL.
// Thread: the stage's own, while no node gets another parent or is let go. Owner: the stage. Fails: NB_ERR_STALE,
// NB_ERR_RANGE, NB_ERR_MISUSE, NB_CLOSED, as nb_scene_spawn; as nb_store_stage_spawn.
NB_API nb_result nb_scene_stage(nb_scene *scene, nb_store_stage *stage, const nb_node_desc *desc, nb_staged *out);

// Lets a node and all that hangs from it go at the end of the tick that runs, or of the next one. It has no parent any
// more from here on; who gives it one before it goes keeps it.
// Thread: in a tick that of its handler, else the coordinator between frames; two may not write one row. Owner:
// nothing. Fails: NB_ERR_STALE, NB_ERR_MISUSE, NB_ERR_PERMISSION, NB_CLOSED (the engine has ended).
NB_API nb_result nb_scene_despawn(nb_scene *scene, nb_entity node);

// Gives a node another parent, null for none. It counts as teleported: where it was in another space is no place to
// come from. This is how NB_SCENE_PARENT is written.
// Thread: the coordinator, in a tick or between frames, while no other writes the world. Owner: nothing. Fails:
// NB_ERR_STALE (one of both does not live), NB_ERR_RANGE (counted: it would hang from itself, or a node would be deeper
// than NB_SCENE_DEPTH_MAX), NB_ERR_MISUSE (also: what is no node), NB_ERR_PERMISSION, NB_CLOSED. Nothing has changed
// then.
NB_API nb_result nb_scene_parent_set(nb_scene *scene, nb_entity node, nb_entity parent, nb_scene_keep keep);

// The pose of a node relative to its parent, to write in ticks.
// Thread: any; two may not write one row. Owner: the world; valid until rows come or go. Fails: NULL, reported: a node
// that does not live, another phase, NULL.
NB_API nb_transform *nb_scene_local_write(nb_scene *scene, nb_entity node);

// Where a node is in the world, as simulated: worked out from its parents' poses of now, also in ticks.
// Thread: any, while no pose or parent on the way is written. Owner: *out is a value. Fails: NB_ERR_STALE (not
// reported), NB_ERR_MISUSE, NB_CLOSED.
NB_API nb_result nb_scene_pose_get(const nb_scene *scene, nb_entity node, nb_transform *out);

// The numbers of a scene.
// Thread: the coordinator. Owner: the caller gets a value. Fails: zeros, reported, for NULL.
NB_API nb_scene_stats nb_scene_stats_get(const nb_scene *scene);

NB_EXTERN_C_END
