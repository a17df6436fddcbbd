// SPDX-License-Identifier: MIT
// Compiling a frame graph: which passes run, mistakes of those, and their order. Every step looks at each use and link
// a fixed number of times.

#include "graph.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define READ_ONLY_DEPTH (NB_GPU_ACCESS_DEPTH_READ | NB_GPU_ACCESS_SAMPLED)
#define DEPTH_BOTH (NB_GPU_ACCESS_DEPTH | NB_GPU_ACCESS_DEPTH_READ)
#define STORAGE_BOTH (NB_GPU_ACCESS_STORAGE | NB_GPU_ACCESS_STORAGE_READ)

bool nbi_graph_has_one_layout(nb_gpu_access access) {
    bool is_one_bit = (access & (access - 1)) == 0;
    return is_one_bit || (access & ~READ_ONLY_DEPTH) == 0 || (access & ~DEPTH_BOTH) == 0 ||
           (access & ~STORAGE_BOTH) == 0;
}

const char *nbi_graph_access_text(nb_gpu_access access, char text[NBI_GRAPH_ACCESS_TEXT_SIZE]) {
    size_t length = 0;
    snprintf(text, NBI_GRAPH_ACCESS_TEXT_SIZE, "%s", nb_gpu_access_name(access));
    bool has_one_name = (access & (access - 1)) == 0 || (access & ~NB_GPU_ACCESS_ALL) != 0;
    for (nb_gpu_access bit = 1; !has_one_name && bit <= access; bit <<= 1) {
        if ((access & bit) == 0) continue;
        int written = snprintf(text + length, NBI_GRAPH_ACCESS_TEXT_SIZE - length, "%s%s", length != 0 ? ", " : "",
                               nb_gpu_access_name(bit));
        length += (size_t)written;
    }
    return text;
}

nb_result nbi_graph_error_set(nb_graph *graph, nb_log_item item, nb_result result, uint32_t pass, uint32_t resource,
                              const char *format, ...) {
    nb_graph_error *error = &graph->error;
    *error = (nb_graph_error){.result = result};
    if (pass != NBI_NONE) memcpy(error->pass, graph->passes[pass].name, sizeof error->pass);
    if (resource != NBI_NONE) memcpy(error->resource, graph->resources[resource].name, sizeof error->resource);
    va_list args;
    va_start(args, format);
    vsnprintf(error->text, sizeof error->text, format, args);
    va_end(args);
    const char *function = graph->caller != NULL ? graph->caller : "nb_graph_compile";
    return NBI_GRAPH_MISTAKE(graph, nbi_graph_key(error->text, NULL), item, result, function, "%s", error->text);
}

// --- who writes and who reads ---

static void append(nb_graph *graph, nbi_graph_list *list, uint32_t use) {
    graph->uses[use].earlier = list->last;
    graph->uses[use].later = NBI_NONE;
    if (list->last != NBI_NONE) graph->uses[list->last].later = use;
    if (list->first == NBI_NONE) list->first = use;
    list->last = use;
}

// The lists of each version, in the order of adding the passes: of all of them, or of those that run.
static void list_uses(nb_graph *graph, bool is_of_needed) {
    const nbi_graph_list empty = {NBI_NONE, NBI_NONE};
    for (uint32_t i = 0; i < graph->resource_names.count; ++i)
        graph->resources[i].writers = graph->resources[i].readers = empty;
    for (uint32_t i = 0; i < graph->pass_names.count; ++i) {
        if (is_of_needed && !graph->passes[i].is_needed) continue;
        for (uint32_t use = graph->passes[i].use_first; use != NBI_NONE; use = graph->uses[use].next) {
            nbi_graph_resource *resource = &graph->resources[graph->uses[use].resource];
            append(graph, nbi_graph_is_writer(&graph->uses[use]) ? &resource->writers : &resource->readers, use);
        }
    }
}

// --- which passes run ---

static void need(nb_graph *graph, uint32_t pass) {
    if (graph->passes[pass].is_needed) return;
    graph->passes[pass].is_needed = true;
    graph->heap[graph->heap_count++] = pass;
}

// Somebody finds what was there after the use `writer` of a version, or before its first: all who wrote it are needed,
// back to one who cleared it. A use that is found already was followed to its end before.
static void find_contents(nb_graph *graph, uint32_t version, uint32_t writer) {
    for (;;) {
        for (; writer != NBI_NONE; writer = graph->uses[writer].earlier) {
            if (graph->uses[writer].is_found) return;
            graph->uses[writer].is_found = true;
            need(graph, graph->uses[writer].pass);
            if (graph->uses[writer].is_cleared) return;
        }
        version = graph->resources[version].predecessor;
        if (version == NBI_NONE || graph->resources[version].is_found) return;
        graph->resources[version].is_found = true;
        writer = graph->resources[version].writers.last;
    }
}

static void follow_uses(nb_graph *graph, uint32_t pass) {
    for (uint32_t i = graph->passes[pass].use_first; i != NBI_NONE; i = graph->uses[i].next) {
        const nbi_graph_use *use = &graph->uses[i];
        if (use->is_cleared) continue;
        bool is_writer = nbi_graph_is_writer(use);
        find_contents(graph, use->resource, is_writer ? use->earlier : graph->resources[use->resource].writers.last);
    }
}

static void find_needed(nb_graph *graph) {
    graph->heap_count = 0;
    for (uint32_t i = 0; i < graph->use_keys.count; ++i) graph->uses[i].is_found = false;
    for (uint32_t i = 0; i < graph->resource_names.count; ++i) graph->resources[i].is_found = false;
    for (uint32_t i = 0; i < graph->pass_names.count; ++i) {
        graph->passes[i].is_needed = false;
        if (graph->passes[i].desc.is_kept) need(graph, i);
    }
    for (uint32_t i = 0; i < graph->resource_names.count; ++i) {
        if (nbi_graph_is_wanted(&graph->resources[i])) find_contents(graph, i, graph->resources[i].writers.last);
    }
    while (graph->heap_count != 0) follow_uses(graph, graph->heap[--graph->heap_count]);
}

// --- mistakes ---

static nb_result check_layout(nb_graph *graph, const nbi_graph_use *use) {
    const nbi_graph_resource *resource = &graph->resources[use->resource];
    if (resource->desc.is_buffer || nbi_graph_has_one_layout(use->access)) return NB_OK;
    char text[NBI_GRAPH_ACCESS_TEXT_SIZE];
    return nbi_graph_error_set(graph, NB_ITEM_GRAPH_CONFLICT, NB_ERR_MISUSE, use->pass, use->resource,
                               "pass '%s' uses image '%s' as %s, which exclude each other: make two passes of it",
                               graph->passes[use->pass].name, resource->name, nbi_graph_access_text(use->access, text));
}

// What is found in memory within the frame was written under this name or an earlier one. A predecessor has the smaller
// number.
static void find_written(nb_graph *graph) {
    for (uint32_t i = 0; i < graph->resource_names.count; ++i) {
        nbi_graph_resource *r = &graph->resources[i];
        r->is_written = r->is_imported || r->writers.first != NBI_NONE ||
                        (r->predecessor != NBI_NONE && graph->resources[r->predecessor].is_written);
    }
}

static nb_result check_written(nb_graph *graph, const nbi_graph_use *use) {
    if (graph->resources[use->resource].is_written) return NB_OK;
    return nbi_graph_error_set(graph, NB_ITEM_GRAPH_UNWRITTEN, NB_ERR_MISUSE, use->pass, use->resource,
                               "pass '%s' reads '%s', which no pass writes: add one that does, or import it",
                               graph->passes[use->pass].name, graph->resources[use->resource].name);
}

static nb_result check_size(nb_graph *graph, const nbi_graph_use *use, const nbi_graph_use *first) {
    const nb_graph_import_desc *a = &graph->resources[first->resource].desc;
    const nb_graph_import_desc *b = &graph->resources[use->resource].desc;
    if (a->width == b->width && a->height == b->height) return NB_OK;
    return nbi_graph_error_set(graph, NB_ITEM_GRAPH_SIZE, NB_ERR_MISUSE, use->pass, use->resource,
                               "pass '%s' attaches '%s' of %u x %u and '%s' of %u x %u: make them alike",
                               graph->passes[use->pass].name, graph->resources[first->resource].name, a->width,
                               a->height, graph->resources[use->resource].name, b->width, b->height);
}

static nb_result check_pass(nb_graph *graph, uint32_t pass) {
    const nbi_graph_use *attached = NULL;
    nb_result result = NB_OK;
    for (uint32_t i = graph->passes[pass].use_first; i != NBI_NONE && result == NB_OK; i = graph->uses[i].next) {
        const nbi_graph_use *use = &graph->uses[i];
        result = check_layout(graph, use);
        if (result == NB_OK) result = check_written(graph, use);
        if (result != NB_OK || (use->access & (NB_GPU_ACCESS_COLOR | DEPTH_BOTH)) == 0) continue;
        if (attached == NULL) attached = use;
        result = check_size(graph, use, attached);
    }
    return result;
}

static nb_result check_needed(nb_graph *graph, uint32_t *needed_count) {
    *needed_count = 0;
    find_written(graph);
    for (uint32_t i = 0; i < graph->pass_names.count; ++i) {
        if (!graph->passes[i].is_needed) continue;
        ++*needed_count;
        nb_result result = check_pass(graph, i);
        if (result != NB_OK) return result;
    }
    return NB_OK;
}

// --- compiling ---

static nb_result compile(nb_graph *graph) {
    uint32_t step_count = 0;
    list_uses(graph, false);
    find_needed(graph);
    list_uses(graph, true);
    nb_result result = check_needed(graph, &step_count);
    if (result == NB_OK) result = nbi_graph_order(graph, step_count);
    if (result == NB_OK) nbi_graph_plan_fill(graph, step_count);
    return result;
}

nb_result nb_graph_compile(nb_graph *graph, const nb_graph_plan **out) {
    if (graph == NULL) return NB_FAIL_NULL("graph");
    if (graph->state == NBI_GRAPH_IDLE)
        return NBI_GRAPH_MISTAKE(graph, 0, NB_ITEM_GRAPH_MOMENT, NB_ERR_MISUSE, __func__,
                                 "no assembly was begun; call nb_graph_begin first");
    if (graph->state == NBI_GRAPH_OPEN) graph->state = compile(graph) == NB_OK ? NBI_GRAPH_COMPILED : NBI_GRAPH_FAILED;
    if (graph->state == NBI_GRAPH_FAILED) return graph->error.result;
    if (out != NULL) *out = &graph->plan;
    return NB_OK;
}

const nb_graph_error *nb_graph_error_get(const nb_graph *graph) {
    if (graph == NULL) NB_FAIL_NULL("graph");
    return graph != NULL && graph->state == NBI_GRAPH_FAILED ? &graph->error : NULL;
}
