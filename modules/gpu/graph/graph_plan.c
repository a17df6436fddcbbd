// SPDX-License-Identifier: MIT
// The plan of a frame graph: lives and slots of memory, transitions between uses, attachments of passes. Transitions
// are made in the order of the steps; one before several who read grows with each of them.

#include "graph.h"

#define OF_DEPTH (NB_GPU_ACCESS_DEPTH | NB_GPU_ACCESS_DEPTH_READ)

// --- lives ---

static void live_through(uint32_t step, uint32_t *first, uint32_t *last) {
    if (*first == NBI_NONE) *first = step;
    *last = step;
}

static void begin_resources(nb_graph *graph) {
    for (uint32_t i = 0; i < graph->resource_names.count; ++i) {
        nbi_graph_resource *from = &graph->resources[i];
        from->step_first = from->step_last = from->transition = NBI_NONE;
        from->state = from->desc.before;
        from->is_held = false;
        graph->plan_resources[i] = (nb_graph_plan_resource){.name = from->name,
                                                            .is_buffer = from->desc.is_buffer,
                                                            .is_imported = from->is_imported,
                                                            .image = from->desc.image,
                                                            .buffer = from->desc.buffer,
                                                            .format = from->desc.format,
                                                            .width = from->desc.width,
                                                            .height = from->desc.height,
                                                            .size_bytes = from->desc.size_bytes,
                                                            .step_first = NBI_NONE,
                                                            .step_last = NBI_NONE,
                                                            .root = from->root,
                                                            .slot = NB_GRAPH_SLOT_NONE};
        // What is wanted is looked at when the frame is over.
        if (nbi_graph_is_wanted(from)) graph->resources[from->root].is_held = true;
    }
}

static void find_lives(nb_graph *graph, uint32_t step_count) {
    for (uint32_t step = 0; step < step_count; ++step) {
        uint32_t i = graph->passes[graph->order[step]].use_first;
        for (; i != NBI_NONE; i = graph->uses[i].next) {
            const nbi_graph_use *use = &graph->uses[i];
            nb_graph_plan_resource *resource = &graph->plan_resources[use->resource];
            nbi_graph_resource *root = &graph->resources[resource->root];
            resource->access |= use->access;
            resource->is_used = true;
            live_through(step, &resource->step_first, &resource->step_last);
            live_through(step, &root->step_first, &root->step_last);
        }
    }
}

// --- slots ---

// Memory that is alike has the same key: sizes are bounded, so that all of it fits.
static uint64_t class_key(const nb_graph_import_desc *desc) {
    if (desc->is_buffer) return UINT64_C(1) << 63 | desc->size_bytes;
    return (uint64_t)desc->format << 32 | (uint64_t)desc->width << 16 | desc->height;
}
NB_STATIC_ASSERT(NB_GRAPH_IMAGE_SIZE_MAX < 65536, "both sides of an image are in one half of a key");

static uint32_t take_slot(nb_graph *graph, const nb_graph_import_desc *desc) {
    uint64_t key = class_key(desc);
    uint32_t at, class = nbi_graph_table_find(&graph->classes, key, &at);
    if (class == NBI_NONE) {
        class = nbi_graph_table_add(&graph->classes, key, at);
        graph->class_free[class] = NBI_NONE;
    }
    uint32_t slot = graph->class_free[class];
    if (slot != NBI_NONE) {
        graph->class_free[class] = graph->slot_next[slot];
        return slot;
    }
    slot = graph->plan.slot_count++;
    graph->slots[slot] = (nb_graph_slot){.is_buffer = desc->is_buffer,
                                         .format = desc->format,
                                         .width = desc->width,
                                         .height = desc->height,
                                         .size_bytes = desc->size_bytes};
    return slot;
}

static void give_slot_back(nb_graph *graph, const nb_graph_import_desc *desc, uint32_t slot) {
    uint32_t at, class = nbi_graph_table_find(&graph->classes, class_key(desc), &at);
    graph->slot_next[slot] = graph->class_free[class];
    graph->class_free[class] = slot;
}

// At its first step memory within the frame gets a slot, and with it what was done there before.
static void begin_life(nb_graph *graph, uint32_t root) {
    nbi_graph_resource *memory = &graph->resources[root];
    uint32_t slot = take_slot(graph, &memory->desc);
    graph->plan_resources[root].slot = slot;
    memory->state = graph->slots[slot].access_last;
}

static void end_lives(nb_graph *graph, uint32_t pass, uint32_t step) {
    for (uint32_t i = graph->passes[pass].use_first; i != NBI_NONE; i = graph->uses[i].next) {
        uint32_t root = graph->plan_resources[graph->uses[i].resource].root;
        nbi_graph_resource *memory = &graph->resources[root];
        if (memory->step_last != step || memory->is_imported) continue;
        uint32_t slot = graph->plan_resources[root].slot;
        graph->slots[slot].access_last = memory->state;
        if (!memory->is_held) give_slot_back(graph, &memory->desc, slot);
    }
}

// --- transitions ---

static void add_transition(nb_graph *graph, const nb_graph_transition *transition) {
    graph->transitions[graph->plan.transition_count++] = *transition;
}

// Nothing is to be waited for between those who read, and images stay as they are where one layout serves all. Without
// a transition that could grow, as before the first use of an import, nothing may be added.
static bool is_joining(const nbi_graph_resource *memory, nb_gpu_access access) {
    nb_gpu_access both = memory->state | access;
    if (memory->state == NB_GPU_ACCESS_NONE || (both & NB_GPU_ACCESS_WRITES) != 0) return false;
    if (memory->transition == NBI_NONE && both != memory->state) return false;
    return memory->desc.is_buffer || nbi_graph_has_one_layout(both);
}

// is_empty: nothing was there before that anybody could find.
static void plan_use(nb_graph *graph, const nbi_graph_use *use, bool is_empty) {
    nbi_graph_resource *memory = &graph->resources[graph->plan_resources[use->resource].root];
    if (!is_empty && is_joining(memory, use->access)) {
        memory->state |= use->access;
        if (memory->transition != NBI_NONE) graph->transitions[memory->transition].after = memory->state;
        return;
    }
    nb_graph_transition transition = {.resource = use->resource,
                                      .before = memory->state,
                                      .after = use->access,
                                      .is_discarded = is_empty || use->is_cleared};
    memory->state = use->access;
    memory->transition = graph->plan.transition_count;
    add_transition(graph, &transition);
}

static void plan_end(nb_graph *graph) {
    graph->plan.final_first = graph->plan.transition_count;
    for (uint32_t i = 0; i < graph->resource_names.count; ++i) {
        const nbi_graph_resource *memory = &graph->resources[i];
        nb_gpu_access after = memory->desc.after;
        if (!memory->is_imported || memory->root != i || after == NB_GPU_ACCESS_NONE || after == memory->state)
            continue;
        nb_graph_transition transition = {.resource = i,
                                          .before = memory->state,
                                          .after = after,
                                          .is_discarded = memory->state == NB_GPU_ACCESS_NONE};
        add_transition(graph, &transition);
    }
    graph->plan.final_count = graph->plan.transition_count - graph->plan.final_first;
}

// --- steps ---

static void plan_attachment(nb_graph *graph, nb_graph_step *step, uint32_t use_index, bool is_empty) {
    const nbi_graph_use *use = &graph->uses[use_index];
    bool is_color = (use->access & NB_GPU_ACCESS_COLOR) != 0;
    if (!is_color && (use->access & OF_DEPTH) == 0) return;
    nb_graph_attachment *attachment = is_color ? &step->colors[step->color_count++] : &step->depth;
    *attachment = (nb_graph_attachment){.resource = use->resource,
                                        .access = use->access,
                                        .is_cleared = use->is_cleared,
                                        .is_discarded = is_empty && !use->is_cleared};
    if (use->is_cleared) attachment->clear = graph->clears[use_index];
    step->width = graph->resources[use->resource].desc.width;
    step->height = graph->resources[use->resource].desc.height;
}

static void plan_step(nb_graph *graph, uint32_t index) {
    uint32_t pass = graph->order[index];
    const nbi_graph_pass *from = &graph->passes[pass];
    nb_graph_step *step = &graph->steps[index];
    *step = (nb_graph_step){.name = from->name,
                            .pass = pass,
                            .kind = from->desc.kind,
                            .record = from->desc.record,
                            .user = from->desc.user,
                            .bucket_count = from->desc.bucket_count,
                            .transition_first = graph->plan.transition_count};
    for (uint32_t i = from->use_first; i != NBI_NONE; i = graph->uses[i].next) {
        const nbi_graph_use *use = &graph->uses[i];
        uint32_t root = graph->plan_resources[use->resource].root;
        const nbi_graph_resource *memory = &graph->resources[root];
        bool is_first = memory->step_first == index;
        if (is_first && !memory->is_imported) begin_life(graph, root);
        bool is_empty = is_first && (!memory->is_imported || memory->desc.before == NB_GPU_ACCESS_NONE);
        plan_use(graph, use, is_empty);
        plan_attachment(graph, step, i, is_empty);
    }
    step->transition_count = graph->plan.transition_count - step->transition_first;
    end_lives(graph, pass, index);
}

// Renewed memory is where its root is.
static void spread_slots(nb_graph *graph) {
    for (uint32_t i = 0; i < graph->resource_names.count; ++i) {
        nb_graph_plan_resource *resource = &graph->plan_resources[i];
        if (resource->is_used) resource->slot = graph->plan_resources[resource->root].slot;
        if (resource->slot != NB_GRAPH_SLOT_NONE) graph->slots[resource->slot].access |= resource->access;
    }
}

void nbi_graph_plan_fill(nb_graph *graph, uint32_t step_count) {
    graph->plan = (nb_graph_plan){.steps = graph->steps,
                                  .step_count = step_count,
                                  .transitions = graph->transitions,
                                  .resources = graph->plan_resources,
                                  .resource_count = graph->resource_names.count,
                                  .slots = graph->slots,
                                  .culled_count = graph->pass_names.count - step_count};
    graph->classes.count = 0;
    begin_resources(graph);
    find_lives(graph, step_count);
    for (uint32_t i = 0; i < step_count; ++i) plan_step(graph, i);
    plan_end(graph);
    spread_slots(graph);
}
