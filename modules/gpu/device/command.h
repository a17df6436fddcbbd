// SPDX-License-Identifier: MIT
#pragma once

// One pass or bucket that is being recorded: what is bound, and what has come of it so far.

#include "gpu.h"

// What a binding may be used for, as the graph says.
typedef struct nbi_command_binding {
    nb_gpu_access declared;
    const char *name; // of the resource
} nbi_command_binding;

struct nb_gpu_command {
    nb_gpu *gpu;
    const nb_gpu_item *item;
    const nb_graph_step *step;
    const nb_gpu_pipeline_desc *pipeline; // NULL: none
    nb_gpu_index pipeline_index;
    nb_gpu_bindings bindings;
    nbi_command_binding buffers[NB_GPU_BUFFER_BINDING_COUNT], images[NB_GPU_IMAGE_BINDING_COUNT];
    bool is_dirty; // bindings or pipeline changed since the last draw
    bool has_push;
    bool has_indices;
    uint64_t index_count; // in the index buffer, from its offset on
    uint32_t draw_count;
    uint64_t hash;
    nb_result result; // what the backend could not do
};

void nbi_command_begin(nb_gpu_command *command, nb_gpu *gpu, const nb_gpu_item *item, const nb_graph_step *step);
