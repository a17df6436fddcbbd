// SPDX-License-Identifier: MIT
// The order of passes: of those that wait for nobody always the one that was added first. A version that renews another
// has a boundary between the users of both, a node that runs nothing: without it each user of the one would wait for
// each of the other.

#include "graph.h"

#include <stdio.h>

// Room for a cycle in the text of an error, beside the words around it.
#define CYCLE_SIZE 180

typedef void visit_fn(nb_graph *graph, uint32_t from, uint32_t to, uint32_t resource);

static uint32_t node_count(const nb_graph *graph) { return graph->pass_names.count + graph->resource_names.count; }
static uint32_t boundary(const nb_graph *graph, uint32_t version) { return graph->pass_names.count + version; }

// --- who waits for whom ---

static inline void visit_readers(nb_graph *graph, uint32_t from, uint32_t version, visit_fn *visit) {
    for (uint32_t i = graph->resources[version].readers.first; i != NBI_NONE; i = graph->uses[i].later)
        visit(graph, from, graph->uses[i].pass, version);
}

static inline void visit_successor(nb_graph *graph, uint32_t from, uint32_t version, visit_fn *visit) {
    uint32_t successor = graph->resources[version].successor;
    if (successor != NBI_NONE) visit(graph, from, boundary(graph, successor), successor);
}

// Those who come after the writers of a version, `from` being the last of them.
static inline void visit_behind_writers(nb_graph *graph, uint32_t from, uint32_t version, visit_fn *visit) {
    if (graph->resources[version].readers.first != NBI_NONE)
        visit_readers(graph, from, version, visit);
    else
        visit_successor(graph, from, version, visit);
}

static inline void visit_behind_use(nb_graph *graph, const nbi_graph_use *use, visit_fn *visit) {
    if (!nbi_graph_is_writer(use))
        visit_successor(graph, use->pass, use->resource, visit);
    else if (use->later != NBI_NONE)
        visit(graph, use->pass, graph->uses[use->later].pass, use->resource);
    else
        visit_behind_writers(graph, use->pass, use->resource, visit);
}

static inline void visit_behind(nb_graph *graph, uint32_t node, visit_fn *visit) {
    if (node >= graph->pass_names.count) {
        uint32_t version = node - graph->pass_names.count, writer = graph->resources[version].writers.first;
        if (writer != NBI_NONE)
            visit(graph, node, graph->uses[writer].pass, version);
        else
            visit_behind_writers(graph, node, version, visit);
        return;
    }
    for (uint32_t i = graph->passes[node].use_first; i != NBI_NONE; i = graph->uses[i].next)
        visit_behind_use(graph, &graph->uses[i], visit);
    for (uint32_t i = graph->passes[node].after_first; i != NBI_NONE; i = graph->links[i].next) {
        uint32_t later = graph->links[i].later;
        if (graph->passes[later].is_needed) visit(graph, node, later, NBI_NONE);
    }
}

// Passes that run, and boundaries; what runs not is behind nobody.
static bool is_node(const nb_graph *graph, uint32_t node) {
    if (node < graph->pass_names.count) return graph->passes[node].is_needed;
    return graph->resources[node - graph->pass_names.count].predecessor != NBI_NONE;
}

// --- passes that are ready, the first of them on top ---

static void heap_push(nb_graph *graph, uint32_t pass) {
    uint32_t at = graph->heap_count++;
    for (; at != 0 && graph->heap[(at - 1) / 2] > pass; at = (at - 1) / 2) graph->heap[at] = graph->heap[(at - 1) / 2];
    graph->heap[at] = pass;
}

static uint32_t heap_pop(nb_graph *graph) {
    uint32_t *heap = graph->heap, first = heap[0], last = heap[--graph->heap_count], at = 0;
    for (uint32_t child = 1; child < graph->heap_count; child = 2 * at + 1) {
        if (child + 1 < graph->heap_count && heap[child + 1] < heap[child]) ++child;
        if (heap[child] >= last) break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = last;
    return first;
}

// --- the order ---

static void wait_more(nb_graph *graph, uint32_t from, uint32_t to, uint32_t resource) {
    (void)from, (void)resource;
    ++graph->waits[to];
}

static void make_ready(nb_graph *graph, uint32_t node) {
    if (node < graph->pass_names.count)
        heap_push(graph, node);
    else
        graph->via[graph->boundary_count++] = node;
}

static void wait_less(nb_graph *graph, uint32_t from, uint32_t to, uint32_t resource) {
    (void)from, (void)resource;
    if (--graph->waits[to] == 0) make_ready(graph, to);
}

static void count_waits(nb_graph *graph) {
    uint32_t count = node_count(graph);
    for (uint32_t i = 0; i < count; ++i) graph->waits[i] = 0;
    for (uint32_t i = 0; i < count; ++i) {
        if (is_node(graph, i)) visit_behind(graph, i, wait_more);
    }
    graph->heap_count = graph->boundary_count = 0;
    for (uint32_t i = 0; i < count; ++i) {
        if (graph->waits[i] == 0 && is_node(graph, i)) make_ready(graph, i);
    }
}

// --- cycles ---

static void note_origin(nb_graph *graph, uint32_t from, uint32_t to, uint32_t resource) {
    if (graph->order[to] != NBI_NONE) return;
    graph->order[to] = from;
    graph->via[to] = resource;
}

// Leaves the passes of a cycle in graph->heap, against the direction of waiting, the one added first at its begin.
static void find_cycle(nb_graph *graph) {
    uint32_t count = node_count(graph), node = NBI_NONE;
    for (uint32_t i = 0; i < count; ++i) graph->order[i] = NBI_NONE;
    for (uint32_t i = 0; i < count; ++i) {
        if (graph->waits[i] == 0) continue;
        visit_behind(graph, i, note_origin);
        if (node == NBI_NONE) node = i;
    }
    // All who still wait are reached from one who still waits: whoever goes back often enough goes round.
    for (uint32_t i = 0; i < count; ++i) node = graph->order[node];
    uint32_t start = node, first = node;
    for (node = graph->order[start]; node != start; node = graph->order[node]) first = node < first ? node : first;
    graph->heap_count = 0;
    node = first; // a pass: those have smaller numbers than boundaries, and no cycle is without one
    do {
        if (node < graph->pass_names.count) graph->heap[graph->heap_count++] = node;
        node = graph->order[node];
    } while (node != first);
}

static nb_result fail_cycle(nb_graph *graph) {
    find_cycle(graph);
    const uint32_t *cycle = graph->heap;
    uint32_t count = graph->heap_count, resource = graph->via[cycle[count - 1]];
    char text[CYCLE_SIZE];
    int length = snprintf(text, sizeof text, "%s", graph->passes[cycle[0]].name);
    for (uint32_t i = count; i-- > 0;) {
        uint32_t via = graph->via[cycle[i]];
        char step[2 * NB_GPU_NAME_SIZE_MAX + 16];
        int size = snprintf(step, sizeof step, " -> (%s) -> %s", via != NBI_NONE ? graph->resources[via].name : "after",
                            graph->passes[cycle[i]].name);
        bool is_too_long = length + size + 8 > CYCLE_SIZE;
        length += snprintf(text + length, sizeof text - (size_t)length, "%s", is_too_long ? " -> ..." : step);
        if (is_too_long) break;
    }
    return nbi_graph_error_set(graph, NB_ITEM_GRAPH_CYCLE, NB_ERR_DEADLOCK, cycle[0], resource,
                               "passes wait for each other: %s; renew a resource between them", text);
}

nb_result nbi_graph_order(nb_graph *graph, uint32_t needed_count) {
    uint32_t step_count = 0;
    count_waits(graph);
    while (graph->heap_count + graph->boundary_count != 0) {
        bool is_boundary = graph->boundary_count != 0;
        uint32_t node = is_boundary ? graph->via[--graph->boundary_count] : heap_pop(graph);
        if (!is_boundary) graph->order[step_count++] = node;
        visit_behind(graph, node, wait_less);
    }
    return step_count == needed_count ? NB_OK : fail_cycle(graph);
}
