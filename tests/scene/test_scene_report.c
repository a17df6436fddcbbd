// SPDX-License-Identifier: MIT
// What the log says of a game that makes the same mistake with a node in each of a thousand ticks: a bounded number of
// lines with the names of scene and node, and the first mistake with another node all the same.

#include "scene/scene_fixture.h"
#include "support/log_lines.h"

#define TICKS 1000

typedef enum mistake {
    MOVES_DEAD,
    DESPAWNS_DEAD,
    HANGS_ON_DEAD,
    HANGS_FROM_ITSELF,
    ASKS_NOTHING,
    STAGES_BADLY,
    MISTAKES
} mistake;

typedef struct forest {
    nb_engine *engine;
    nb_scene *scene;
    log_lines log;
    uint32_t asserted_count;
    nb_entity live, dead, gone;
    mistake mistake;
    bool is_other;
} forest;

static void count_assertion(void *user, const nb_log_record *record) {
    (void)record;
    ++*(uint32_t *)user;
}

static void err(forest *f, const nb_context *context) {
    nb_entity dead = f->is_other ? f->gone : f->dead;
    nb_node_desc child = nb_node_desc_default();
    nb_transform pose;
    nb_staged staged;
    child.parent = dead;
    switch (f->mistake) {
    case MOVES_DEAD: assert_null(nb_scene_local_write(f->scene, dead)); break;
    case DESPAWNS_DEAD: assert_int_equal(nb_scene_despawn(f->scene, dead), NB_ERR_STALE); break;
    case HANGS_ON_DEAD: assert_int_equal(nb_scene_parent_set(f->scene, f->live, dead, 0), NB_ERR_STALE); break;
    case HANGS_FROM_ITSELF:
        dead = f->is_other ? f->gone : f->live;
        assert_int_equal(nb_scene_parent_set(f->scene, dead, dead, 0), f->is_other ? NB_ERR_STALE : NB_ERR_RANGE);
        break;
    case ASKS_NOTHING:
        assert_int_equal(nb_scene_pose_get(f->scene, (nb_entity){f->is_other}, &pose), NB_ERR_MISUSE);
        break;
    default:
        assert_int_equal(nb_scene_stage(f->scene, nb_context_stage(context, 0), &child, &staged), NB_ERR_STALE);
        break;
    }
}

static nb_result tick(const nb_context *context, void *user) {
    forest *f = user;
    if (f->dead.value != 0) err(f, context);
    return NB_OK;
}

static nb_entity plant(forest *f) {
    nb_node_desc desc = nb_node_desc_default();
    nb_entity node = {0};
    assert_int_equal(nb_scene_spawn(f->scene, &desc, &node), NB_OK);
    return node;
}

static void forest_open(forest *f, mistake made) {
    memset(f, 0, sizeof *f);
    nb_engine_desc desc = rig_desc(0);
    desc.hooks = log_lines_hooks(&f->log);
    desc.hooks.assertion = (nb_assert_hook){count_assertion, &f->asserted_count};
    assert_int_equal(nb_engine_create(&desc, &f->engine), NB_OK);
    nb_scene_desc scene = {.name = "forest", .node_count_max = 100, .hooks = desc.hooks};
    nb_module_desc module = {.name = "wind", .tick = tick, .user = f};
    assert_int_equal(nb_engine_module_attach(f->engine, &module, NULL), NB_OK);
    assert_int_equal(nb_scene_create(f->engine, &scene, &f->scene), NB_OK);
    f->mistake = made;
    f->live = plant(f);
    nb_entity dead = plant(f), gone = plant(f);
    assert_int_equal(nb_scene_despawn(f->scene, dead), NB_OK);
    assert_int_equal(nb_scene_despawn(f->scene, gone), NB_OK);
    assert_int_equal(nb_engine_run_ticks(f->engine, 1), NB_OK);
    f->dead = dead, f->gone = gone;
}

// What the other object's report says is `text` with its handle.
static void assert_bounded(mistake made, const char *text) {
    static forest f;
    forest_open(&f, made);
    char expected[160];
    for (int i = 0; i < TICKS; ++i) assert_int_equal(nb_engine_run_ticks(f.engine, 1), NB_OK);
    nb_entity node = made == HANGS_FROM_ITSELF ? f.live : made == ASKS_NOTHING ? (nb_entity){0} : f.dead;
    snprintf(expected, sizeof expected, text, (unsigned long long)node.value);
    assert_throttled(&f.log, expected);
#if !defined(NDEBUG)
    assert_int_equal(f.asserted_count, TICKS);
#endif
    f.is_other = true;
    assert_int_equal(nb_engine_run_ticks(f.engine, 1), NB_OK);
    assert_int_equal(f.log.count.value, 5);
    node = made == ASKS_NOTHING ? (nb_entity){1} : f.gone;
    snprintf(expected, sizeof expected, "scene \"forest\": %s0x%llx", made == ASKS_NOTHING ? "" : "node ",
             (unsigned long long)node.value);
    assert_int_equal(log_lines_saying(&f.log, expected), 1);
    assert_int_equal(nb_scene_destroy(f.scene), NB_OK);
    assert_int_equal(nb_engine_destroy(f.engine), NB_OK);
}

TEST(mistakes_with_nodes_in_each_tick_are_throttled) {
    assert_bounded(MOVES_DEAD, "scene \"forest\": node 0x%llx does not live; it or a parent was despawned");
    assert_bounded(DESPAWNS_DEAD, "scene \"forest\": node 0x%llx does not live; it or");
    assert_bounded(HANGS_ON_DEAD, "scene \"forest\": node 0x%llx does not live; it or");
    assert_bounded(HANGS_FROM_ITSELF, "scene \"forest\": node 0x%llx cannot hang from node");
    assert_bounded(ASKS_NOTHING, "scene \"forest\": 0x%llx is no node of it; pass a node");
    assert_bounded(STAGES_BADLY, "scene \"forest\": node 0x%llx does not live; it or");
}
