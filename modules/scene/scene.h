// SPDX-License-Identifier: MIT
#pragma once

// What the files of a scene share: scene.c begins and ends it, node.c has what callers do with nodes, order.c says
// which row hangs from which and at which depth, split.c where threads part, propagate.c works out the poses in the
// world.

#include "nebula/atomic.h"
#include "nebula/report.h"
#include "nebula/scene.h"

// In place of a row: no parent; one that is gone; one that is too far away, or only reached in a circle.
#define NBI_ROW_NONE UINT32_MAX
#define NBI_ROW_ORPHAN (UINT32_MAX - 1)
#define NBI_ROW_CUT (UINT32_MAX - 2)

// A parent that never lives: the table with this number cannot be.
#define NBI_PARENT_GONE ((nb_entity){UINT64_MAX})

// A node in the order of propagation.
typedef struct nbi_node {
    uint32_t row, parent; // parent is a row or NBI_ROW_NONE
} nbi_node;

struct nb_scene {
    nb_scene_desc desc; // resolved
    nb_hooks hooks;
    nb_engine *engine; // NULL: it has ended
    nb_store *world;
    nb_module_id module;
    nb_table table;
    void *memory; // of the arrays below, each by row or block of rows
    size_t memory_bytes;

    // What follows from the parents. Written here alone, on the coordinator.
    uint64_t seen_version; // what was written later has not been looked at
    uint32_t seen_count;   // rows
    bool is_resolved;      // parent_rows are those of now
    bool is_ordered;       // depths, order and levels, too
    uint32_t depth_bound;  // no node is deeper, itself counted
    uint32_t *slot_rows;   // by slot of an entity; may be of one that is gone
    uint32_t *parent_rows;
    uint8_t *depths;
    nbi_node *order;                              // parents first: by depth, then by row; below split_level by piece
    uint32_t level_begin[NB_SCENE_DEPTH_MAX + 1]; // of each depth, in order; then the end
    uint32_t level_count;
    uint32_t split_level;  // from here on, order is by piece: a node of this depth and all that hangs from it
    uint32_t piece_count;  // 0: there is no such level, and split_level is level_count
    uint32_t *piece_ends;  // in order
    uint32_t *pieces;      // by row
    nbi_node *spare_order; // to sort into
    uint32_t orphan_count, cut_count;
    uint8_t *flags; // by row: whatever a walk along the order notes

    // What was drawn last.
    uint64_t drawn_version; // what was written later is not in it
    float drawn_alpha;
    bool was_irregular;    // there were orphans or cuts, whose rows are not seen to change
    uint8_t *block_dirty;  // by block: something was written
    nb_atomic_u32 *moving; // by block: some row is between two poses

    char name[NB_STORE_NAME_SIZE]; // of its table, for reports
    nb_throttle throttle;          // of reports that ticks and frames repeat
    nb_scene_stats stats;
    nb_atomic_u64 refused_count; // of stats; stages are filled on any thread
};

// --- order.c ---

// Looks whether nodes came, went or changed their parents since the last look.
void nbi_scene_changes_check(nb_scene *scene);

// Takes what was written to the parents so far as seen.
void nbi_scene_seen(nb_scene *scene);

// Finds the rows of the parents, and puts the nodes in order; nothing where that was done for what is there.
void nbi_scene_resolve(nb_scene *scene);
void nbi_scene_order(nb_scene *scene);

// Flags what hangs from rows that are flagged.
void nbi_scene_flag_below(nb_scene *scene);

// In each tick, behind all others: lets nodes go whose parent is gone.
nb_result nbi_scene_reap(const nb_context *context, void *user);

// --- split.c ---

// Chooses split_level, and sorts what is below by piece.
void nbi_scene_split(nb_scene *scene);

// --- propagate.c ---

nb_result nbi_scene_propagate(const nb_context *context, void *user);
