// SPDX-License-Identifier: MIT
// A compiled frame graph as text: a table for people, and the DOT language.

#include "graph.h"

#include <stdarg.h>
#include <stdio.h>

// A line: two names of twice their length, all accesses twice, and words.
#define LINE_SIZE 640

typedef struct writer {
    nb_graph_write_fn write;
    void *user;
} writer;

static void put(const writer *to, const char *format, ...) NB_PRINTF(2, 3);

static void put(const writer *to, const char *format, ...) {
    char line[LINE_SIZE];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (length > 0) to->write(to->user, line, (size_t)length < sizeof line ? (size_t)length : sizeof line - 1);
}

static nb_result check(const nb_graph *graph, nb_graph_write_fn write, const char *function) {
    if (graph == NULL) return nb_report_mistake(NULL, NB_ITEM_BASE_NULL, NB_ERR_MISUSE, function, "graph is NULL");
    if (write == NULL)
        return NBI_GRAPH_MISTAKE(graph, 0, NB_ITEM_GRAPH_ARGUMENT, NB_ERR_MISUSE, function, "write is NULL");
    if (graph->state == NBI_GRAPH_COMPILED) return NB_OK;
    return NBI_GRAPH_MISTAKE(graph, 0, NB_ITEM_GRAPH_MOMENT, NB_ERR_MISUSE, function,
                             "the assembly is not compiled; call nb_graph_compile first");
}

static const char *kind_name(nb_gpu_pass_kind kind) { return kind == NB_GPU_PASS_RENDER ? "render" : "compute"; }

// "rgba8 640 x 360", "4096 bytes".
static const char *size_text(const nb_graph_plan_resource *resource, char *text, size_t size_bytes) {
    if (!resource->is_buffer)
        snprintf(text, size_bytes, "%s %u x %u", nb_gpu_format_name(resource->format), resource->width,
                 resource->height);
    else if (resource->size_bytes != 0)
        snprintf(text, size_bytes, "%llu bytes", nb_llu(resource->size_bytes));
    else
        snprintf(text, size_bytes, "buffer");
    return text;
}

// --- the table ---

static void put_transition(const writer *to, const char *name, const char *use, const nb_graph_transition *transition) {
    char before[NBI_GRAPH_ACCESS_TEXT_SIZE], after[NBI_GRAPH_ACCESS_TEXT_SIZE];
    if (transition == NULL)
        put(to, "    %-20s %s\n", name, use);
    else
        put(to, "    %-20s %-28s %s -> %s%s\n", name, use, nbi_graph_access_text(transition->before, before),
            nbi_graph_access_text(transition->after, after), transition->is_discarded ? ", discards" : "");
}

static void put_step(const nb_graph *graph, const writer *to, uint32_t index) {
    const nb_graph_step *step = &graph->steps[index];
    uint32_t at = step->transition_first, end = at + step->transition_count;
    put(to, "\n%u %s (%s", index, step->name, kind_name(step->kind));
    if (step->width != 0) put(to, ", %u x %u", step->width, step->height);
    if (step->bucket_count > 1) put(to, ", %u buckets", step->bucket_count);
    put(to, ")\n");
    for (uint32_t i = graph->passes[step->pass].use_first; i != NBI_NONE; i = graph->uses[i].next) {
        const nbi_graph_use *use = &graph->uses[i];
        char access[NBI_GRAPH_ACCESS_TEXT_SIZE], text[NBI_GRAPH_ACCESS_TEXT_SIZE + 16];
        snprintf(text, sizeof text, "%s%s", nbi_graph_access_text(use->access, access),
                 use->is_cleared ? ", cleared" : "");
        // Transitions of a step are in the order of its uses.
        bool has_one = at < end && graph->transitions[at].resource == use->resource;
        put_transition(to, graph->resources[use->resource].name, text, has_one ? &graph->transitions[at++] : NULL);
    }
}

static void put_end(const nb_graph *graph, const writer *to) {
    const nb_graph_plan *plan = &graph->plan;
    if (plan->final_count != 0) put(to, "\nat the end\n");
    for (uint32_t i = 0; i < plan->final_count; ++i) {
        const nb_graph_transition *transition = &graph->transitions[plan->final_first + i];
        put_transition(to, graph->resources[transition->resource].name, "", transition);
    }
    if (plan->culled_count != 0) put(to, "\nleft out\n");
    for (uint32_t i = 0; i < graph->pass_names.count; ++i) {
        if (!graph->passes[i].is_needed)
            put(to, "    %-20s %s\n", graph->passes[i].name, kind_name(graph->passes[i].desc.kind));
    }
}

static void put_resource(const writer *to, const nb_graph_plan_resource *resource) {
    char size[64], where[64] = "imported";
    if (!resource->is_imported) snprintf(where, sizeof where, "slot %u", resource->slot);
    put(to, "    %-20s %-28s ", resource->name, size_text(resource, size, sizeof size));
    if (!resource->is_used)
        put(to, "%s\n", resource->is_imported ? "imported, not used" : "not used");
    else
        put(to, "%s, steps %u to %u\n", where, resource->step_first, resource->step_last);
}

nb_result nb_graph_print(const nb_graph *graph, nb_graph_write_fn write, void *user) {
    nb_result result = check(graph, write, __func__);
    if (result != NB_OK) return result;
    writer to = {write, user};
    const nb_graph_plan *plan = &graph->plan;
    put(&to, "%u passes, %u left out, %u transitions, %u resources, %u slots\n", plan->step_count, plan->culled_count,
        plan->transition_count, plan->resource_count, plan->slot_count);
    for (uint32_t i = 0; i < plan->step_count; ++i) put_step(graph, &to, i);
    put_end(graph, &to);
    if (plan->resource_count != 0) put(&to, "\nresources\n");
    for (uint32_t i = 0; i < plan->resource_count; ++i) put_resource(&to, &graph->plan_resources[i]);
    return NB_OK;
}

// --- DOT ---

typedef struct quoted {
    char text[2 * NB_GPU_NAME_SIZE_MAX + 1];
} quoted;

static quoted quote(const char *name) {
    quoted out;
    size_t length = 0;
    for (; *name != '\0'; ++name) {
        if (*name == '"' || *name == '\\') out.text[length++] = '\\';
        out.text[length++] = *name;
    }
    out.text[length] = '\0';
    return out;
}

#define GREY ", color=grey, fontcolor=grey"

static void put_nodes(const nb_graph *graph, const writer *to) {
    for (uint32_t i = 0; i < graph->pass_names.count; ++i) {
        quoted name = quote(graph->passes[i].name);
        put(to, "    p%u [label=\"%s\", shape=box%s];\n", i, name.text, graph->passes[i].is_needed ? "" : GREY);
    }
    for (uint32_t i = 0; i < graph->resource_names.count; ++i) {
        const nb_graph_plan_resource *resource = &graph->plan_resources[i];
        quoted name = quote(resource->name);
        char size[64];
        put(to, "    r%u [label=\"%s\\n%s\", shape=ellipse%s];\n", i, name.text, size_text(resource, size, sizeof size),
            resource->is_used ? "" : GREY);
    }
}

static void put_edges(const nb_graph *graph, const writer *to, uint32_t pass) {
    const char *grey = graph->passes[pass].is_needed ? "" : GREY;
    for (uint32_t i = graph->passes[pass].use_first; i != NBI_NONE; i = graph->uses[i].next) {
        const nbi_graph_use *use = &graph->uses[i];
        char text[NBI_GRAPH_ACCESS_TEXT_SIZE];
        nbi_graph_access_text(use->access, text);
        if (nbi_graph_is_writer(use))
            put(to, "    p%u -> r%u [label=\"%s\"%s];\n", pass, use->resource, text, grey);
        else
            put(to, "    r%u -> p%u [label=\"%s\"%s];\n", use->resource, pass, text, grey);
    }
    for (uint32_t i = graph->passes[pass].after_first; i != NBI_NONE; i = graph->links[i].next)
        put(to, "    p%u -> p%u [style=dotted%s];\n", pass, graph->links[i].later, grey);
}

nb_result nb_graph_dot(const nb_graph *graph, nb_graph_write_fn write, void *user) {
    nb_result result = check(graph, write, __func__);
    if (result != NB_OK) return result;
    writer to = {write, user};
    put(&to, "digraph frame {\n    rankdir=LR;\n");
    put_nodes(graph, &to);
    for (uint32_t i = 0; i < graph->pass_names.count; ++i) put_edges(graph, &to, i);
    for (uint32_t i = 0; i < graph->resource_names.count; ++i) {
        uint32_t successor = graph->resources[i].successor;
        if (successor != NBI_NONE) put(&to, "    r%u -> r%u [style=dashed];\n", i, successor);
    }
    put(&to, "}\n");
    return NB_OK;
}
