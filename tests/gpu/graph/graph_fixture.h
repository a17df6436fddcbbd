// SPDX-License-Identifier: MIT
#pragma once

// What the tests of the frame graph share: an assembly in few words, and its plan as one line to compare.

#include "support/support.h"

#include "nebula/frame_graph.h"

#define COLOR NB_GPU_ACCESS_COLOR
#define DEPTH NB_GPU_ACCESS_DEPTH
#define DEPTH_READ NB_GPU_ACCESS_DEPTH_READ
#define SAMPLED NB_GPU_ACCESS_SAMPLED
#define STORAGE NB_GPU_ACCESS_STORAGE
#define STORAGE_READ NB_GPU_ACCESS_STORAGE_READ
#define UNIFORM NB_GPU_ACCESS_UNIFORM
#define VERTEX NB_GPU_ACCESS_VERTEX
#define INDIRECT NB_GPU_ACCESS_INDIRECT
#define COPY_FROM NB_GPU_ACCESS_COPY_FROM
#define COPY_TO NB_GPU_ACCESS_COPY_TO
#define PRESENT NB_GPU_ACCESS_PRESENT

typedef struct graph_fixture {
    nb_graph *graph;
    const nb_graph_plan *plan;
    test_log log;
    test_heap heap;
    char line[2048];
} graph_fixture;

static inline void graph_open(graph_fixture *f) {
    memset(f, 0, sizeof *f);
    nb_graph_desc desc = {.hooks = test_hooks(&f->log, &f->heap)};
    assert_int_equal(nb_graph_create(&desc, &f->graph), NB_OK);
    assert_int_equal(nb_graph_begin(f->graph), NB_OK);
}

static inline void graph_close(graph_fixture *f) {
    nb_graph_destroy(f->graph);
    assert_int_equal(f->heap.live_count.value, 0);
}

static inline nb_graph_resource image_of(graph_fixture *f, const char *name, nb_gpu_format format, uint32_t side) {
    nb_graph_resource out = {0};
    nb_graph_image_desc desc = {name, format, side, side};
    assert_int_equal(nb_graph_image_add(f->graph, &desc, &out), NB_OK);
    return out;
}

static inline nb_graph_resource image(graph_fixture *f, const char *name) {
    return image_of(f, name, NB_GPU_FORMAT_RGBA8, 64);
}

static inline nb_graph_resource depth(graph_fixture *f, const char *name) {
    return image_of(f, name, NB_GPU_FORMAT_DEPTH32F, 64);
}

static inline nb_graph_resource buffer(graph_fixture *f, const char *name) {
    nb_graph_resource out = {0};
    nb_graph_buffer_desc desc = {name, 256};
    assert_int_equal(nb_graph_buffer_add(f->graph, &desc, &out), NB_OK);
    return out;
}

static inline nb_graph_resource import(graph_fixture *f, const char *name, nb_gpu_access before, nb_gpu_access after) {
    nb_graph_resource out = {0};
    nb_graph_import_desc desc = {
        .name = name, .format = NB_GPU_FORMAT_RGBA8, .width = 64, .height = 64, .before = before, .after = after};
    assert_int_equal(nb_graph_import(f->graph, &desc, &out), NB_OK);
    return out;
}

static inline nb_graph_resource renew(graph_fixture *f, nb_graph_resource old, const char *name) {
    nb_graph_resource out = {0};
    assert_int_equal(nb_graph_renew(f->graph, old, name, &out), NB_OK);
    return out;
}

static inline nb_graph_pass pass(graph_fixture *f, const char *name) {
    nb_graph_pass out = {0};
    nb_graph_pass_desc desc = {.name = name, .kind = NB_GPU_PASS_RENDER};
    assert_int_equal(nb_graph_pass_add(f->graph, &desc, &out), NB_OK);
    return out;
}

static inline nb_graph_pass kept_pass(graph_fixture *f, const char *name) {
    nb_graph_pass out = {0};
    nb_graph_pass_desc desc = {.name = name, .kind = NB_GPU_PASS_RENDER, .is_kept = true};
    assert_int_equal(nb_graph_pass_add(f->graph, &desc, &out), NB_OK);
    return out;
}

static inline void use(graph_fixture *f, nb_graph_pass pass_, nb_graph_resource resource, nb_gpu_access access) {
    assert_int_equal(nb_graph_use(f->graph, pass_, resource, access), NB_OK);
}

static inline void clear(graph_fixture *f, nb_graph_pass pass_, nb_graph_resource resource) {
    nb_gpu_clear value = {{0.5f, 0, 0, 1}};
    assert_int_equal(nb_graph_clear(f->graph, pass_, resource, value), NB_OK);
}

static inline void line_add(graph_fixture *f, const char *text) {
    size_t length = strlen(f->line);
    snprintf(f->line + length, sizeof f->line - length, "%s", text);
}

static inline void line_add_access(graph_fixture *f, nb_gpu_access access) {
    const char *between = "";
    if (access == 0) line_add(f, "none");
    for (nb_gpu_access bit = 1; bit <= access; bit <<= 1) {
        if ((access & bit) == 0) continue;
        line_add(f, between);
        line_add(f, nb_gpu_access_name(bit));
        between = "+";
    }
}

static inline void line_add_transitions(graph_fixture *f, uint32_t first, uint32_t count) {
    for (uint32_t i = first; i < first + count; ++i) {
        const nb_graph_transition *t = &f->plan->transitions[i];
        line_add(f, " ");
        line_add(f, f->plan->resources[t->resource].name);
        line_add(f, ":");
        line_add_access(f, t->before);
        line_add(f, ">");
        line_add_access(f, t->after);
        if (t->is_discarded) line_add(f, "!");
    }
}

static inline void compile(graph_fixture *f) {
    nb_result result = nb_graph_compile(f->graph, &f->plan);
    if (result != NB_OK) print_error("%s\n", f->log.last_message);
    assert_int_equal(result, NB_OK);
    assert_null(nb_graph_error_get(f->graph));
}

// Compiles; "a b c" are the passes that run, in their order.
#define assert_order(f, expected)                                 \
    do {                                                          \
        compile(f);                                               \
        (f)->line[0] = '\0';                                      \
        for (uint32_t i_ = 0; i_ < (f)->plan->step_count; ++i_) { \
            if (i_ != 0) line_add(f, " ");                        \
            line_add(f, (f)->plan->steps[i_].name);               \
        }                                                         \
        assert_string_equal((f)->line, expected);                 \
    } while (0)

// Compiles; "a x:none>color!; b x:color>sampled; end s:color>present" are its transitions, those with ! discard.
#define assert_transitions(f, expected)                                                \
    do {                                                                               \
        compile(f);                                                                    \
        (f)->line[0] = '\0';                                                           \
        for (uint32_t i_ = 0; i_ < (f)->plan->step_count; ++i_) {                      \
            const nb_graph_step *step_ = &(f)->plan->steps[i_];                        \
            if (i_ != 0) line_add(f, "; ");                                            \
            line_add(f, step_->name);                                                  \
            line_add_transitions(f, step_->transition_first, step_->transition_count); \
        }                                                                              \
        if ((f)->plan->final_count != 0) line_add(f, "; end");                         \
        line_add_transitions(f, (f)->plan->final_first, (f)->plan->final_count);       \
        assert_string_equal((f)->line, expected);                                      \
    } while (0)

// Compiling fails with this result, item, pass, resource and text.
static inline void assert_refused(graph_fixture *f, nb_result result, nb_log_item item, const char *pass_name,
                                  const char *resource_name, const char *text) {
    uint32_t before = test_log_count(&f->log, item);
    f->plan = NULL;
    assert_int_equal(nb_graph_compile(f->graph, &f->plan), result);
    assert_null(f->plan);
    assert_int_equal(test_log_count(&f->log, item), before + 1);
    const nb_graph_error *error = nb_graph_error_get(f->graph);
    assert_non_null(error);
    assert_int_equal(error->result, result);
    assert_string_equal(error->pass, pass_name);
    assert_string_equal(error->resource, resource_name);
    assert_string_equal(error->text, text);
    assert_string_equal(f->log.last_message, text);
    // A second call says the same, once.
    assert_int_equal(nb_graph_compile(f->graph, NULL), result);
    assert_int_equal(test_log_count(&f->log, item), before + 1);
}
