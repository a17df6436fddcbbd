// SPDX-License-Identifier: MIT
// module: scene
// A small solar system: moons hang from planets, planets from the sun. Ticks turn each node; where all are in the world
// is worked out once a frame.

#include <nebula/nebula.h>
#include <nebula/scene.h>

#include <stdio.h>

typedef struct solar_system {
    nb_scene *scene;
    nb_entity sun, earth, moon;
} solar_system;

static nb_result turn(const nb_context *context, void *user) {
    solar_system *s = user;
    nb_transform *sun = nb_scene_local_write(s->scene, s->sun), *earth = nb_scene_local_write(s->scene, s->earth);
    float dt = (float)context->tick->dt_s;
    if (sun == NULL || earth == NULL) return NB_ERR_STALE;
    *sun = nb_transform_turn(*sun, 0.0f, 0.0f, 0.5f * dt);     // what hangs from it goes round with it
    *earth = nb_transform_turn(*earth, 0.0f, 0.0f, 6.0f * dt); // a day, or a month for the moon
    return NB_OK;
}

static nb_entity add(nb_scene *scene, nb_entity parent, float distance, float size) {
    nb_node_desc desc = {.parent = parent, .local = {.position = {distance, 0.0f, 0.0f}, .scale = size}};
    nb_entity node = {0};
    nb_scene_spawn(scene, &desc, &node);
    return node;
}

static void print(const solar_system *s, const char *name, nb_entity node) {
    nb_transform pose;
    if (nb_scene_pose_get(s->scene, node, &pose) != NB_OK) return;
    printf("  %-5s %6.2f %6.2f\n", name, (double)pose.position[0], (double)pose.position[1]);
}

int main(void) {
    nb_engine *engine = NULL;
    solar_system s = {0};
    nb_module_desc module = {.name = "orbits", .tick = turn, .user = &s};
    if (nb_engine_create(NULL, &engine) != NB_OK || nb_scene_create(engine, NULL, &s.scene) != NB_OK) return 1;
    s.sun = add(s.scene, (nb_entity){0}, 0.0f, 1.0f);
    s.earth = add(s.scene, s.sun, 10.0f, 0.5f);
    s.moon = add(s.scene, s.earth, 4.0f, 0.25f); // 4 of the earth's units, which are half as large
    nb_engine_module_attach(engine, &module, NULL);
    for (int second = 0; second < 4; ++second) {
        nb_engine_run_ticks(engine, 60);
        printf("after %d s\n", second + 1);
        print(&s, "earth", s.earth);
        print(&s, "moon", s.moon);
    }
    printf("%u poses worked out in the last frame\n", nb_scene_stats_get(s.scene).propagated_count);
    nb_scene_destroy(s.scene);
    return nb_engine_destroy(engine) == NB_OK ? 0 : 1;
}
