// SPDX-License-Identifier: MIT
// A user's program with the module scene.
#include <nebula/scene.h>
#include <stdio.h>

int main(void) {
    nb_engine *engine = NULL;
    nb_scene *scene = NULL;
    nb_entity node;
    nb_node_desc desc = nb_node_desc_default();
    if (nb_engine_create(NULL, &engine) != NB_OK || nb_scene_create(engine, NULL, &scene) != NB_OK) return 1;
    if (nb_scene_spawn(scene, &desc, &node) != NB_OK || nb_engine_run_ticks(engine, 1) != NB_OK) return 1;
    uint32_t count = nb_scene_stats_get(scene).propagated_count;
    printf("%u node\n", count);
    nb_scene_destroy(scene);
    return nb_engine_destroy(engine) == NB_OK && count == 1 ? 0 : 1;
}
