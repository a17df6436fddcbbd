// SPDX-License-Identifier: MIT
// nebula/scene.h and nebula/transform.h: scenes and nodes that are none, poses of nonsense.

#include "bad_input/bad_input.h"

#include "nebula/scene.h"

TEST(null_is_refused_everywhere) {
    nb_node_desc desc = nb_node_desc_default();
    nb_entity entity = {77}, none = {0};
    nb_transform pose;
    float point[3] = {1, 2, 3};
    memset(&pose, 0x5A, sizeof pose);
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_scene_create(NULL, NULL, NULL));
    accepted(NB_OK, nb_scene_destroy(NULL));
    refused_default(0, NB_ITEM_BASE_NULL, nb_scene_table(NULL).value);
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_scene_spawn(NULL, &desc, &entity));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_scene_stage(NULL, NULL, &desc, NULL));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_scene_despawn(NULL, entity));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_scene_parent_set(NULL, entity, none, NB_SCENE_KEEP_LOCAL));
    refused_default(NULL, NB_ITEM_BASE_NULL, nb_scene_local_write(NULL, entity));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_scene_pose_get(NULL, entity, &pose));
    refused_default(0, NB_ITEM_BASE_NULL, nb_scene_stats_get(NULL).node_count);
    silent(nb_transform_point(desc.local, NULL, point));
    silent(nb_transform_point(desc.local, point, NULL));
    silent(nb_matrix34_point(nb_transform_matrix(desc.local), NULL, point));
    silent(nb_matrix34_point(nb_transform_matrix(desc.local), point, NULL));
    assert_true(point[0] == 1 && point[2] == 3);
    assert_int_equal(entity.value, 77);
    assert_untouched(pose, 0x5A);
}

// Poses of no use stay what they are; nothing is read or written beside them.
TEST(poses_of_nonsense_harm_nothing) {
    nb_transform zero = {.scale = 0}, huge = {.position = {3e38f, -3e38f, 3e38f}, .scale = 3e38f};
    for (int i = 0; i < 4; ++i) huge.rotation[i] = 3e38f;
    silent(nb_transform_compose(huge, huge));
    silent(nb_transform_invert(huge));
    silent(nb_transform_turn(huge, 3e38f, 0, 0));
    silent(nb_transform_mix(huge, zero, -5.0f));
    silent(nb_matrix34_multiply(nb_transform_matrix(huge), nb_transform_matrix(zero)));
    nb_matrix34 of_zero = nb_transform_matrix(zero);
    for (int i = 0; i < 12; ++i) assert_true(of_zero.m[i] == 0);
    zero = nb_transform_compose(nb_transform_identity(), nb_transform_invert(zero));
    assert_true(zero.scale == 0 && zero.rotation[3] == 1);
}

typedef struct fixture {
    test_heap heap;
    nb_engine *engine;
    nb_scene *scene;
    nb_store *world;
    nb_entity node, dead, foreign;
} fixture;

static nb_scene_desc scene_desc(fixture *f) {
    return (nb_scene_desc){.name = "nodes", .node_count_max = 4, .hooks = bad_hooks(&f->heap)};
}

static void open_engine(fixture *f) {
    memset(f, 0, sizeof *f);
    nb_engine_desc desc = {.scheduler_desc = {.worker_count = NB_WORKER_COUNT_NONE, .task_count_max = 1024},
                           .hooks = bad_hooks(&f->heap)};
    if (nb_engine_create(&desc, &f->engine) != NB_OK) abort();
    f->world = nb_engine_world(f->engine);
}

static void open_scene(fixture *f) {
    const nb_column_desc column = {.name = "x", .size_bytes = 4};
    nb_table_desc table = {.name = "others", .columns = &column, .column_count = 1};
    nb_table others;
    open_engine(f);
    nb_scene_desc desc = scene_desc(f);
    nb_node_desc node = nb_node_desc_default();
    bool is_open = nb_store_table_add(f->world, &table, &others) == NB_OK &&
                   nb_scene_create(f->engine, &desc, &f->scene) == NB_OK &&
                   nb_scene_spawn(f->scene, &node, &f->node) == NB_OK &&
                   nb_scene_spawn(f->scene, &node, &f->dead) == NB_OK && nb_store_despawn(f->world, f->dead) == NB_OK &&
                   nb_store_spawn(f->world, others, &f->foreign) == NB_OK;
    if (!is_open) abort();
}

static void close_all(fixture *f) {
    assert_int_equal(nb_scene_destroy(f->scene), NB_OK);
    assert_int_equal(nb_engine_destroy(f->engine), NB_OK);
    assert_int_equal(f->heap.live_count.value, 0);
}

TEST(impossible_scenes_are_refused) {
    fixture f;
    nb_scene *scene = UNTOUCHED(nb_scene);
    open_engine(&f);
    nb_scene_desc bad = scene_desc(&f), fine = scene_desc(&f);
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_scene_create(f.engine, &fine, NULL));
    bad.node_count_max = UINT32_MAX;
    refused(NB_ERR_RANGE, NB_ITEM_SCENE_ARGUMENT, nb_scene_create(f.engine, &bad, &scene));
    bad = scene_desc(&f);
    bad.column_count = 1;
    refused(NB_ERR_MISUSE, NB_ITEM_SCENE_ARGUMENT, nb_scene_create(f.engine, &bad, &scene));
    nb_column_desc columns[NB_STORE_COLUMN_COUNT_MAX] = {{.name = "world", .size_bytes = 4}};
    bad.columns = columns;
    bad.column_count = NB_STORE_COLUMN_COUNT_MAX - NB_SCENE_COLUMN_COUNT + 1;
    refused(NB_ERR_RANGE, NB_ITEM_SCENE_ARGUMENT, nb_scene_create(f.engine, &bad, &scene));
    bad.column_count = 1; // of a name that is taken: seen by the world, and the module goes again
    refused(NB_ERR_MISUSE, NB_ITEM_STORE_NAME, nb_scene_create(f.engine, &bad, &scene));
    bad = scene_desc(&f);
    bad.name = "";
    refused(NB_ERR_MISUSE, NB_ITEM_ENGINE_ARGUMENT, nb_scene_create(f.engine, &bad, &scene));
    assert_ptr_equal(scene, UNTOUCHED(nb_scene));
    accepted(NB_OK, nb_scene_create(f.engine, &fine, &f.scene));
    refused(NB_ERR_MISUSE, NB_ITEM_ENGINE_ARGUMENT, nb_scene_create(f.engine, &fine, &scene)); // the name again
    assert_ptr_equal(scene, UNTOUCHED(nb_scene));
    close_all(&f);
}

TEST(what_is_no_node_is_refused) {
    fixture f;
    nb_entity none = {0}, noise = {UINT64_MAX}, out = {77};
    nb_transform pose;
    open_scene(&f);
    memset(&pose, 0x5A, sizeof pose);
    nb_node_desc child = nb_node_desc_default();
    refused(NB_ERR_MISUSE, NB_ITEM_SCENE_ARGUMENT, nb_scene_spawn(f.scene, NULL, &out));
    refused(NB_ERR_MISUSE, NB_ITEM_SCENE_ARGUMENT, nb_scene_spawn(f.scene, &child, NULL));
    child.parent = f.dead;
    refused(NB_ERR_STALE, NB_ITEM_SCENE_STALE, nb_scene_spawn(f.scene, &child, &out));
    child.parent = f.foreign;
    refused(NB_ERR_MISUSE, NB_ITEM_SCENE_ARGUMENT, nb_scene_spawn(f.scene, &child, &out));
    child.parent = f.node;
    child.parent_staged.value = 1;
    refused(NB_ERR_MISUSE, NB_ITEM_SCENE_ARGUMENT, nb_scene_spawn(f.scene, &child, &out));
    child.parent = none;
    refused(NB_ERR_MISUSE, NB_ITEM_SCENE_ARGUMENT, nb_scene_spawn(f.scene, &child, &out));
    const nb_entity bad[] = {none, f.foreign, noise};
    for (int i = 0; i < 3; ++i) {
        refused(NB_ERR_MISUSE, NB_ITEM_SCENE_ARGUMENT, nb_scene_despawn(f.scene, bad[i]));
        refused(NB_ERR_MISUSE, NB_ITEM_SCENE_ARGUMENT, nb_scene_parent_set(f.scene, bad[i], none, 0));
        refused(NULL, NB_ITEM_SCENE_ARGUMENT, nb_scene_local_write(f.scene, bad[i]));
        refused(NB_ERR_MISUSE, NB_ITEM_SCENE_ARGUMENT, nb_scene_pose_get(f.scene, bad[i], &pose));
    }
    refused_again(NB_ERR_MISUSE, NB_ITEM_SCENE_ARGUMENT, nb_scene_parent_set(f.scene, f.node, f.foreign, 0));
    refused(NB_ERR_MISUSE, NB_ITEM_SCENE_ARGUMENT,
            nb_scene_parent_set(f.scene, f.node, none, (nb_scene_keep)NB_SCENE_KEEP_COUNT));
    refused(NB_ERR_RANGE, NB_ITEM_SCENE_PARENT, nb_scene_parent_set(f.scene, f.node, f.node, 0));
    refused(NB_ERR_STALE, NB_ITEM_SCENE_STALE, nb_scene_parent_set(f.scene, f.node, f.dead, 0));
    refused_again(NB_ERR_STALE, NB_ITEM_SCENE_STALE, nb_scene_parent_set(f.scene, f.dead, none, 0));
    refused(NB_ERR_STALE, NB_ITEM_SCENE_STALE, nb_scene_despawn(f.scene, f.dead));
    refused(NULL, NB_ITEM_SCENE_STALE, nb_scene_local_write(f.scene, f.dead));
    accepted(NB_ERR_STALE, nb_scene_pose_get(f.scene, f.dead, &pose));
    refused(NB_ERR_MISUSE, NB_ITEM_SCENE_ARGUMENT, nb_scene_pose_get(f.scene, f.node, NULL));
    assert_int_equal(nb_scene_stats_get(f.scene).node_count, 1);
    assert_int_equal(out.value, 77);
    assert_untouched(pose, 0x5A);
    close_all(&f);
}

TEST(bad_stages_are_refused) {
    fixture f;
    unsigned char memory[256];
    nb_store_stage stage;
    nb_staged staged = {77};
    open_scene(&f);
    nb_node_desc desc = nb_node_desc_default();
    nb_store_stage_desc stage_desc = {.memory = memory, .size_bytes = sizeof memory};
    assert_int_equal(nb_store_stage_init(&stage, f.world, &stage_desc), NB_OK);
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_scene_stage(f.scene, NULL, &desc, &staged));
    refused(NB_ERR_MISUSE, NB_ITEM_SCENE_ARGUMENT, nb_scene_stage(f.scene, &stage, NULL, &staged));
    desc.parent = f.dead;
    refused(NB_ERR_STALE, NB_ITEM_SCENE_STALE, nb_scene_stage(f.scene, &stage, &desc, &staged));
    desc.parent = (nb_entity){0};
    assert_int_equal(stage.command_count, 0);
    desc.parent_staged.value = 12345;
    refused(NB_ERR_STALE, NB_ITEM_STORE_STALE, nb_scene_stage(f.scene, &stage, &desc, &staged));
    assert_int_equal(stage.command_count, 0);
    assert_int_equal(staged.value, 77);
    close_all(&f);
}

static nb_result write_outside(const nb_context *context, void *user) {
    fixture *f = user;
    nb_scene *scene = UNTOUCHED(nb_scene);
    nb_scene_desc desc = scene_desc(f);
    (void)context;
    // The world's first refusal of a table is told, as nobody's mistake; the others are counted.
    assert_int_equal(nb_scene_despawn(f->scene, f->node), NB_ERR_PERMISSION);
    accepted(NB_ERR_PERMISSION, nb_scene_parent_set(f->scene, f->node, (nb_entity){0}, 0));
    accepted(NULL, nb_scene_local_write(f->scene, f->node));
    refused(NB_ERR_MISUSE, NB_ITEM_SCENE_ARGUMENT, nb_scene_create(f->engine, &desc, &scene));
    accepted(NB_BUSY, nb_scene_destroy(f->scene));
    return NB_OK;
}

TEST(nodes_are_not_written_outside_ticks) {
    fixture f;
    open_scene(&f);
    nb_module_desc module = {.name = "writer", .frame = write_outside, .user = &f};
    assert_int_equal(nb_engine_module_attach(f.engine, &module, NULL), NB_OK);
    assert_int_equal(nb_engine_run_ticks(f.engine, 1), NB_OK);
    assert_int_equal(nb_scene_stats_get(f.scene).node_count, 1);
    close_all(&f);
}
