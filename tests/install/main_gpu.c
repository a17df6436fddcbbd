// SPDX-License-Identifier: MIT
// A user's program with the module gpu.
#include <nebula/frame_graph.h>
#include <stdio.h>

int main(void) {
    nb_graph *graph = NULL;
    const nb_graph_plan *plan = NULL;
    nb_graph_pass pass;
    nb_graph_pass_desc desc = {.name = "present", .kind = NB_GPU_PASS_COMPUTE, .is_kept = true};
    if (nb_graph_create(NULL, &graph) != NB_OK || nb_graph_begin(graph) != NB_OK) return 1;
    if (nb_graph_pass_add(graph, &desc, &pass) != NB_OK || nb_graph_compile(graph, &plan) != NB_OK) return 1;
    bool is_there = plan->step_count == 1;
    nb_graph_destroy(graph);
    printf("nebula gpu %s\n", nb_version());
    return is_there ? 0 : 1;
}
