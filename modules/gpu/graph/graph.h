// SPDX-License-Identifier: MIT
#pragma once

// What the files of the frame graph share. Assembly (graph.c) fills passes, resources and uses; graph_compile.c finds
// which passes run and what is wrong with them, graph_order.c their order, graph_plan.c transitions, attachments and
// slots.
//
// Resources are versions of memory: renewing one makes a successor with the same root. Within a version those who write
// run first, in the order of adding, then those who read.

#include "graph_table.h"
#include "nebula/frame_graph.h"
#include "nebula/hash.h"
#include "nebula/report.h"

#include <string.h>

typedef struct nbi_graph_pass {
    char name[NB_GPU_NAME_SIZE_MAX + 1];
    nb_graph_pass_desc desc; // without its name
    uint32_t use_first, use_last;
    uint32_t after_first; // links to those that run behind it
    uint32_t depth_use;
    uint32_t color_count;
    bool is_needed; // it runs
} nbi_graph_pass;

typedef struct nbi_graph_use {
    uint32_t pass, resource;
    nb_gpu_access access;
    uint32_t next;           // of the same pass
    uint32_t earlier, later; // of the same resource: a list of those who write and one of those who read
    bool is_cleared;
    bool is_found; // somebody needs what it writes
} nbi_graph_use;

typedef struct nbi_graph_link {
    uint32_t later; // the pass behind
    uint32_t next;  // of the same earlier pass
} nbi_graph_link;

typedef struct nbi_graph_list {
    uint32_t first, last;
} nbi_graph_list;

typedef struct nbi_graph_resource {
    char name[NB_GPU_NAME_SIZE_MAX + 1];
    nb_graph_import_desc desc; // without its name; those of memory within the frame have neither before nor after
    bool is_imported;
    bool is_kept;    // by nb_graph_keep
    bool is_found;   // somebody needs what all who write it leave
    bool is_written; // there is something to be found in it
    uint32_t root, predecessor, successor;
    nbi_graph_list writers, readers;
    // Of a root, while transitions are planned.
    nb_gpu_access state; // all uses since the last transition
    uint32_t transition; // the last one, NBI_NONE: none yet
    uint32_t step_first, step_last;
    bool is_held; // its memory is not given to others
} nbi_graph_resource;

typedef enum nbi_graph_state {
    NBI_GRAPH_IDLE = 0, // never begun
    NBI_GRAPH_OPEN,
    NBI_GRAPH_COMPILED,
    NBI_GRAPH_FAILED,
} nbi_graph_state;

struct nb_graph {
    nb_graph_desc desc; // resolved
    size_t memory_bytes;
    nbi_graph_state state;
    uint32_t generation; // of this assembly; never 0
    nb_graph_error error;
    const char *caller;   // of a device's graph: what the user called, for reports; NULL = nb_graph_compile
    nb_throttle throttle; // of reports that frames repeat

    nbi_graph_pass *passes;
    nbi_graph_resource *resources;
    nbi_graph_use *uses;
    nb_gpu_clear *clears; // by use
    nbi_graph_link *links;
    uint32_t link_count;
    nbi_graph_table pass_names, resource_names; // their counts are those of passes and resources
    nbi_graph_table use_keys;                   // pass and resource; its count is that of uses

    uint32_t *waits; // by node: a pass, or behind the passes the boundary before a version
    uint32_t *heap;  // passes that are ready; before that, those whose needs are to be looked at
    uint32_t *order; // of passes that run; while there is a cycle, where a node is reached from
    uint32_t *via;   // and by which resource, NBI_NONE: by nb_graph_after; before that, boundaries that are ready
    uint32_t heap_count, boundary_count;

    nbi_graph_table classes; // of memory that is alike
    uint32_t *class_free;    // a list of slots through slot_next
    uint32_t *slot_next;

    nb_graph_step *steps;
    nb_graph_transition *transitions;
    nb_graph_plan_resource *plan_resources;
    nb_graph_slot *slots;
    nb_graph_plan plan;
};

static inline bool nbi_graph_is_writer(const nbi_graph_use *use) { return (use->access & NB_GPU_ACCESS_WRITES) != 0; }

// True where what all who write it leave is wanted: an import's newest version, where the import is left for something.
static inline bool nbi_graph_is_wanted(const nbi_graph_resource *resource) {
    bool is_left = resource->is_imported && resource->desc.after != NB_GPU_ACCESS_NONE;
    return resource->is_kept || (is_left && resource->successor == NBI_NONE);
}

// What the throttle tells passes and resources apart by: their names; NULL is none.
static inline uint64_t nbi_graph_key(const char *name, const char *other) {
    uint64_t key = name != NULL ? nb_hash64(name, strlen(name), 0) : 0;
    return other != NULL ? nb_hash64(other, strlen(other), key) : key;
}

// A mistake of the caller about an object; assemblies may repeat it. Reports are all that a question changes.
#define NBI_GRAPH_MISTAKE(graph, object, item, result, function, ...)                                                 \
    nb_report_throttled(&(graph)->desc.hooks, (nb_throttle *)(uintptr_t) & (graph)->throttle, (object), true, (item), \
                        (result), (function), __VA_ARGS__)

// True where an image can be used in all these ways in one layout.
bool nbi_graph_has_one_layout(nb_gpu_access access);

// Room for the names of all bits.
#define NBI_GRAPH_ACCESS_TEXT_SIZE 160
// Writes names of all bits into `text`, such as "depth_read, sampled". Returns it.
const char *nbi_graph_access_text(nb_gpu_access access, char text[NBI_GRAPH_ACCESS_TEXT_SIZE]);

// Remembers and reports why compiling failed; pass and resource may be NBI_NONE. Returns `result`.
nb_result nbi_graph_error_set(nb_graph *graph, nb_log_item item, nb_result result, uint32_t pass, uint32_t resource,
                              const char *format, ...) NB_PRINTF(6, 7);

// nb_graph_declared by the index of a resource in the plan; 0 for what is no pass or resource.
nb_gpu_access nbi_graph_declared_at(const nb_graph *graph, uint32_t pass, uint32_t resource);

// graph_order.c: puts the passes that run into graph->order.
nb_result nbi_graph_order(nb_graph *graph, uint32_t needed_count);

// graph_plan.c: fills the plan for the first `step_count` passes of graph->order.
void nbi_graph_plan_fill(nb_graph *graph, uint32_t step_count);
