// SPDX-License-Identifier: MIT
// Which node hangs from which: poses in the world, nodes that come and go, and parents that are refused.

#include "scene/scene_fixture.h"

#include "scene/scene.h"

// --- poses of whole forests ---

TEST(world_poses_agree_with_a_walk_up_the_parents) {
    uint64_t seed = test_seed(__func__);
    for (uint32_t round = 0; round < test_size(4, 8, 60); ++round) {
        stage_rig s;
        scene_open(&s, 600);
        s.seed = seed + round;
        game_fill(&s, round * 40);
        for (uint32_t i = 0; i < 100; ++i) {
            frame(&s, test_random(&seed) % (2 * TICK_NS));
            assert_drawn_right(&s, frame_alpha(&s));
        }
        assert_int_equal(scene_stats(&s).node_count, node_count(&s));
        scene_close(&s);
    }
}

// Many roots, one of which has most of the nodes: threads share the roots one by one, and what is below in pieces.
static void fill_wide(stage_rig *s, uint32_t count) {
    uint64_t random = 3;
    nb_entity node;
    s->tick = game_tick;
    for (uint32_t i = 0; i < count; ++i) {
        nb_node_desc desc = {.local = any_transform(&random)};
        if (i >= count / 4) desc.parent = nb_store_entity(s->world, s->table, i < count / 2 ? 0 : i - count / 4);
        assert_int_equal(nb_scene_spawn(s->scene, &desc, &node), NB_OK);
    }
}

TEST(poses_are_the_same_bits_with_any_number_of_workers) {
    static const uint32_t worker_counts[] = {0, 1, 2, 4};
    uint64_t first = 0;
    for (uint32_t i = 0; i < 4; ++i) {
        stage_rig s;
        uint64_t hash = 1;
        scene_open_desc(&s, rig_desc(worker_counts[i]), (nb_scene_desc){.node_count_max = 16000});
        s.seed = 5;
        fill_wide(&s, 12000);
        for (uint32_t j = 0; j < test_size(10, 25, 200); ++j) {
            frame(&s, TICK_NS * 3 / 4);
            uint64_t parts[] = {hash, drawn_hash(&s)};
            hash = nb_hash64(parts, sizeof parts, 0);
        }
        assert_true(s.scene->split_level > 0 && s.scene->level_begin[1] > 2500 && s.scene->piece_count > 2500);
        assert_drawn_right(&s, frame_alpha(&s));
        if (i == 0) first = hash;
        assert_true(hash == first);
        scene_close(&s);
    }
}

TEST(only_what_has_changed_is_worked_out) {
    stage_rig s;
    scene_open(&s, 10000);
    nb_entity roots[100];
    for (uint32_t i = 0; i < 100; ++i) {
        roots[i] = spawn(&s, (nb_entity){0}, (float)i);
        for (uint32_t j = 0; j < 63; ++j) spawn(&s, roots[i], 1);
    }
    frame(&s, TICK_NS);
    assert_int_equal(scene_stats(&s).propagated_count, 6400);
    assert_int_equal(scene_stats(&s).level_count, 2);
    frame(&s, TICK_NS);
    frame(&s, TICK_NS);
    assert_int_equal(scene_stats(&s).propagated_count, 0);
    uint64_t order_count = scene_stats(&s).order_count;
    nb_scene_local_write(s.scene, roots[50])->position[1] = 3;
    frame(&s, TICK_NS / 2);
    assert_int_equal(scene_stats(&s).propagated_count, 64); // the root's block has all its children
    assert_drawn_at(&s, roots[50], 50, 1.5, 0);             // between two ticks
    frame(&s, TICK_NS);
    assert_drawn_at(&s, roots[50], 50, 3, 0);
    frame(&s, TICK_NS);
    assert_int_equal(scene_stats(&s).propagated_count, 0);
    assert_int_equal(scene_stats(&s).order_count, order_count);
    // Another order is asked for where rows came or went, and poses of others are as they were.
    nb_entity added = spawn(&s, roots[3], 7);
    frame(&s, 0);
    assert_int_equal(scene_stats(&s).order_count, order_count + 1);
    assert_int_equal(scene_stats(&s).propagated_count, 1);
    assert_drawn_at(&s, added, 10, 0, 0);
    scene_close(&s);
}

// --- coming and going ---

static void go(stage_rig *s, const nb_context *context) {
    if (context->tick->index == 1) assert_int_equal(nb_scene_despawn(s->scene, s->node), NB_OK);
}

TEST(nodes_go_with_what_they_hang_from) {
    stage_rig s;
    scene_open(&s, 10000);
    nb_entity root = spawn(&s, (nb_entity){0}, 1), arm = spawn(&s, root, 1), hand = spawn(&s, arm, 1);
    nb_entity leg = spawn(&s, root, 2), foot = spawn(&s, leg, 1);
    for (uint32_t i = 0; i < 3000; ++i) spawn(&s, i % 2 != 0 ? hand : leg, 1); // more than one stage has room for
    s.node = arm;
    s.tick = go;
    run_ticks(&s.r, 1);
    assert_int_equal(node_count(&s), 3005);
    run_ticks(&s.r, 1);
    assert_int_equal(node_count(&s), 1503);
    assert_true(is_live(&s, root) && is_live(&s, leg) && is_live(&s, foot));
    assert_false(is_live(&s, arm) || is_live(&s, hand));
    assert_int_equal(scene_stats(&s).reaped_count, 1502);
    assert_int_equal(scene_stats(&s).orphan_count, 0);
    assert_drawn_at(&s, foot, 4, 0, 0);
    scene_close(&s);
}

// A stage has room for a part of them only: the others go tick by tick, and no tick fails.
TEST(more_nodes_than_a_stage_has_room_for_go_in_parts) {
    stage_rig s;
    nb_engine_desc desc = rig_desc(0);
    desc.stage_bytes_max = NB_STAGE_BYTES_MAX_LEAST;
    scene_open_desc(&s, desc, (nb_scene_desc){.node_count_max = 2000});
    nb_entity root = spawn(&s, (nb_entity){0}, 1);
    for (uint32_t i = 0; i < 1000; ++i) spawn(&s, root, 1);
    s.node = root;
    s.tick = go;
    run_ticks(&s.r, 3);
    assert_in_range(node_count(&s), 700, 999);
    run_ticks(&s.r, 12);
    assert_int_equal(node_count(&s), 0);
    assert_int_equal(scene_stats(&s).reaped_count, 1001);
    assert_int_equal(rig_stats(&s.r).failure_count, 0);
    scene_close(&s);
}

static void go_alone(stage_rig *s, const nb_context *context) {
    if (context->tick->index == 1) nb_store_stage_despawn(nb_context_stage(context, 0), s->node);
}

TEST(orphans_are_drawn_as_roots_until_they_go) {
    stage_rig s;
    scene_open(&s, 300);
    // The root's row is far from the others', whose memory nobody touches when it goes.
    nb_entity arm = spawn(&s, (nb_entity){0}, 10), hand = spawn(&s, arm, 100), others[200];
    for (uint32_t i = 0; i < 200; ++i) others[i] = spawn(&s, (nb_entity){0}, 5);
    nb_entity root = spawn(&s, (nb_entity){0}, 1);
    assert_int_equal(nb_scene_parent_set(s.scene, arm, root, NB_SCENE_KEEP_LOCAL), NB_OK);
    s.node = root;
    s.tick = go_alone;
    run_ticks(&s.r, 1);
    assert_drawn_at(&s, hand, 111, 0, 0);
    run_ticks(&s.r, 1); // the world's own despawn knows nothing of children
    assert_int_equal(node_count(&s), 202);
    assert_int_equal(scene_stats(&s).orphan_count, 1);
    assert_drawn_at(&s, arm, 10, 0, 0);
    assert_drawn_at(&s, hand, 110, 0, 0);
    run_ticks(&s.r, 1);
    assert_int_equal(node_count(&s), 200);
    assert_false(is_live(&s, arm) || is_live(&s, hand));
    assert_drawn_at(&s, others[199], 5, 0, 0);
    assert_int_equal(scene_stats(&s).orphan_count, 0);
    assert_int_equal(scene_stats(&s).reaped_count, 2);
    scene_close(&s);
}

static void stage_family(stage_rig *s, const nb_context *context) {
    nb_store_stage *stage = nb_context_stage(context, 0);
    nb_staged above = {0};
    nb_node_desc desc = node_desc(s->node, 1, 0, 0);
    if (context->tick->index == 1) {
        for (uint32_t i = 0; i < 4; ++i) {
            assert_int_equal(nb_scene_stage(s->scene, stage, &desc, &above), NB_OK);
            desc = node_desc((nb_entity){0}, 1, 0, 0);
            desc.parent_staged = above;
        }
    }
    // Of a parent that goes in this very tick.
    if (context->tick->index == 2) {
        assert_int_equal(nb_scene_despawn(s->scene, s->node), NB_OK);
        assert_int_equal(nb_scene_stage(s->scene, stage, &desc, NULL), NB_OK);
    }
}

TEST(staged_nodes_hang_from_staged_ones) {
    stage_rig s;
    scene_open(&s, 6);
    s.node = spawn(&s, (nb_entity){0}, 10);
    s.other = spawn(&s, (nb_entity){0}, 20);
    s.tick = stage_family;
    run_ticks(&s.r, 2);
    assert_int_equal(node_count(&s), 6);
    assert_int_equal(scene_stats(&s).level_count, 5);
    assert_drawn_at(&s, nb_store_entity(s.world, s.table, 5), 14, 0, 0);
    run_ticks(&s.r, 1); // all go; what was staged found the table full
    assert_int_equal(node_count(&s), 1);
    assert_true(is_live(&s, s.other));
    scene_close(&s);
}

TEST(child_goes_where_its_parent_found_no_room) {
    stage_rig s;
    scene_open(&s, 3);
    for (uint32_t i = 0; i < 2; ++i) spawn(&s, (nb_entity){0}, 1);
    s.node = spawn(&s, (nb_entity){0}, 1);
    frame(&s, TICK_NS);
    // By hand, so that the child has room and its parent has none.
    unsigned char memory[1024];
    nb_store_stage stage, *stages[] = {&stage};
    nb_store_stage_desc desc = {.memory = memory, .size_bytes = sizeof memory};
    assert_int_equal(nb_store_stage_init(&stage, s.world, &desc), NB_OK);
    nb_node_desc parent = node_desc((nb_entity){0}, 1, 0, 0), child = parent;
    assert_int_equal(nb_scene_stage(s.scene, &stage, &parent, &child.parent_staged), NB_OK);
    assert_int_equal(nb_store_stage_despawn(&stage, s.node), NB_OK);
    assert_int_equal(nb_scene_stage(s.scene, &stage, &child, NULL), NB_OK);
    assert_int_equal(nb_store_apply(s.world, stages, 1), NB_FULL);
    assert_int_equal(node_count(&s), 3);
    frame(&s, TICK_NS);
    assert_int_equal(node_count(&s), 2);
    scene_close(&s);
}

// --- parents ---

TEST(nothing_hangs_from_itself) {
    stage_rig s;
    scene_open(&s, 100);
    nb_entity root = spawn(&s, (nb_entity){0}, 1), arm = spawn(&s, root, 1), hand = spawn(&s, arm, 1);
    assert_int_equal(nb_scene_parent_set(s.scene, root, root, NB_SCENE_KEEP_LOCAL), NB_ERR_RANGE);
    assert_int_equal(nb_scene_parent_set(s.scene, root, arm, NB_SCENE_KEEP_LOCAL), NB_ERR_RANGE);
    assert_int_equal(nb_scene_parent_set(s.scene, root, hand, NB_SCENE_KEEP_WORLD), NB_ERR_RANGE);
    assert_int_equal(scene_stats(&s).refused_count, 3);
    assert_int_equal(test_log_count(&s.r.log, NB_ITEM_SCENE_PARENT), 3);
    frame(&s, TICK_NS);
    assert_drawn_at(&s, hand, 3, 0, 0);
    assert_int_equal(scene_stats(&s).cut_count, 0);
    // The other way round is fine.
    assert_int_equal(nb_scene_parent_set(s.scene, hand, (nb_entity){0}, NB_SCENE_KEEP_LOCAL), NB_OK);
    assert_int_equal(nb_scene_parent_set(s.scene, root, hand, NB_SCENE_KEEP_LOCAL), NB_OK);
    assert_int_equal(nb_scene_parent_set(s.scene, hand, arm, NB_SCENE_KEEP_LOCAL), NB_ERR_RANGE);
    frame(&s, 0);
    assert_drawn_at(&s, arm, 3, 0, 0);
    scene_close(&s);
}

// A chain of so many, with its last in *last.
static nb_entity chain(stage_rig *s, uint32_t count, nb_entity *last) {
    nb_entity first = spawn(s, (nb_entity){0}, 1);
    *last = first;
    for (uint32_t i = 1; i < count; ++i) *last = spawn(s, *last, 1);
    return first;
}

TEST(trees_are_as_deep_as_they_may_be_and_no_deeper) {
    stage_rig s;
    nb_entity last, end, node;
    scene_open(&s, 1000);
    chain(&s, NB_SCENE_DEPTH_MAX, &last);
    nb_node_desc desc = node_desc(last, 1, 0, 0);
    assert_int_equal(nb_scene_spawn(s.scene, &desc, &node), NB_ERR_RANGE);
    assert_int_equal(node_count(&s), NB_SCENE_DEPTH_MAX);
    frame(&s, TICK_NS);
    assert_drawn_at(&s, last, NB_SCENE_DEPTH_MAX, 0, 0);
    // What hangs from a node counts with it: 10 below the end of 54 are 64, and one more is too many.
    nb_entity ten = chain(&s, 10, &node), eleven = chain(&s, 11, &node), tall, wide;
    tall = chain(&s, 54, &end);
    assert_int_equal(nb_scene_parent_set(s.scene, eleven, end, NB_SCENE_KEEP_LOCAL), NB_ERR_RANGE);
    assert_int_equal(nb_scene_parent_set(s.scene, ten, end, NB_SCENE_KEEP_LOCAL), NB_OK);
    assert_int_equal(nb_scene_parent_set(s.scene, tall, node, NB_SCENE_KEEP_LOCAL), NB_ERR_RANGE);
    wide = chain(&s, 1, &node);
    assert_int_equal(nb_scene_parent_set(s.scene, eleven, wide, NB_SCENE_KEEP_LOCAL), NB_OK);
    assert_int_equal(nb_scene_parent_set(s.scene, tall, wide, NB_SCENE_KEEP_LOCAL), NB_ERR_RANGE);
    frame(&s, TICK_NS);
    assert_int_equal(scene_stats(&s).level_count, NB_SCENE_DEPTH_MAX);
    assert_int_equal(scene_stats(&s).cut_count, 0);
    assert_drawn_right(&s, 0);
    // Without the long chain there is room for them.
    assert_int_equal(nb_scene_parent_set(s.scene, ten, (nb_entity){0}, NB_SCENE_KEEP_LOCAL), NB_OK);
    assert_int_equal(nb_scene_parent_set(s.scene, tall, wide, NB_SCENE_KEEP_LOCAL), NB_OK);
    scene_close(&s);
}

TEST(chains_joined_between_two_frames_are_as_deep_as_both) {
    stage_rig s;
    nb_entity a_last, b_last, c_last;
    scene_open(&s, 100);
    nb_entity a = chain(&s, 30, &a_last), b = chain(&s, 30, &b_last);
    chain(&s, 10, &c_last);
    frame(&s, TICK_NS);
    assert_int_equal(scene_stats(&s).level_count, 30);
    assert_int_equal(nb_scene_parent_set(s.scene, b, a_last, NB_SCENE_KEEP_LOCAL), NB_OK);
    assert_int_equal(nb_scene_parent_set(s.scene, a, c_last, NB_SCENE_KEEP_LOCAL), NB_ERR_RANGE); // 70 levels
    assert_int_equal(nb_scene_parent_set(s.scene, b, c_last, NB_SCENE_KEEP_LOCAL), NB_OK);
    assert_int_equal(nb_scene_parent_set(s.scene, a, b_last, NB_SCENE_KEEP_LOCAL), NB_ERR_RANGE);
    scene_close(&s);
}

// The plain way: whether a row hangs from another, itself counted.
static bool is_below(const stage_rig *s, uint32_t row, uint32_t above) {
    while (row != above) {
        nb_entity parent = *NB_STORE_ROW(s->world, s->table, NB_SCENE_PARENT, nb_entity, row);
        if (nb_store_find(s->world, parent, &row) != NB_OK) return false;
    }
    return true;
}

static uint32_t deepest_row(const stage_rig *s) {
    uint32_t deepest = 0, found = 0, depth = 0;
    for (uint32_t i = 0; i < node_count(s); ++i) {
        plain_world(s, i, 0, &depth);
        if (depth < deepest) continue;
        deepest = depth;
        found = i;
    }
    return found;
}

static bool is_possible(const stage_rig *s, uint32_t row, uint32_t parent) {
    uint32_t depth = 0, depth_parent = 0, deepest = 0;
    if (is_below(s, parent, row)) return false;
    for (uint32_t i = 0; i < node_count(s); ++i) {
        plain_world(s, i, 0, &depth);
        if (is_below(s, i, row) && depth > deepest) deepest = depth;
    }
    plain_world(s, parent, 0, &depth_parent);
    plain_world(s, row, 0, &depth);
    return depth_parent + 1 + deepest - depth < NB_SCENE_DEPTH_MAX;
}

TEST(parents_are_refused_exactly_where_they_are_impossible) {
    uint64_t random = test_seed(__func__);
    uint32_t refused_count = 0, count = 100;
    stage_rig s;
    nb_entity last;
    scene_open(&s, count);
    for (uint32_t i = 0; i < 4; ++i) chain(&s, 25, &last);
    for (uint32_t i = 0; i < test_size(800, 1500, 20000); ++i) {
        uint32_t row = (uint32_t)(test_random(&random) % count), parent = (uint32_t)(test_random(&random) % count);
        if (i % 3 != 0) parent = deepest_row(&s); // or all would be near the root
        // Now and then the next frame puts the nodes in order, which must make no difference.
        if (i % 50 == 0) frame(&s, 0);
        bool is_fine = is_possible(&s, row, parent);
        nb_result result = nb_scene_parent_set(s.scene, nb_store_entity(s.world, s.table, row),
                                               nb_store_entity(s.world, s.table, parent), NB_SCENE_KEEP_LOCAL);
        assert_int_equal(result, is_fine ? NB_OK : NB_ERR_RANGE);
        refused_count += !is_fine;
    }
    assert_int_equal(scene_stats(&s).refused_count, refused_count);
    scene_close(&s);
}

static void write_parent(stage_rig *s, uint32_t row, uint32_t parent) {
    *NB_STORE_ROW_WRITE(s->world, s->table, NB_SCENE_PARENT, nb_entity, row) =
        nb_store_entity(s->world, s->table, parent);
}

TEST(circles_and_chains_made_by_hand_are_cut) {
    stage_rig s;
    scene_open(&s, 1000);
    for (uint32_t i = 0; i < 300; ++i) spawn(&s, (nb_entity){0}, 1);
    for (uint32_t i = 0; i < 10; ++i) write_parent(&s, i, (i + 1) % 10); // a circle,
    for (uint32_t i = 10; i < 20; ++i) write_parent(&s, i, i - 10);      // what hangs from it,
    for (uint32_t i = 21; i < 120; ++i) write_parent(&s, i, i - 1);      // a chain, the root first,
    for (uint32_t i = 120; i < 219; ++i) write_parent(&s, i, i + 1);     // and one with the root last
    write_parent(&s, 299, 299);
    frame(&s, TICK_NS);
    nb_scene_stats stats = scene_stats(&s);
    assert_int_equal(stats.cut_count, 4);
    assert_int_equal(stats.level_count, NB_SCENE_DEPTH_MAX);
    assert_int_equal(stats.propagated_count, 300);
    // Each is drawn as far from where it was cut as it is below.
    double sum = 0;
    for (uint32_t row = 0; row < 300; ++row) {
        sum = drawn(&s, nb_store_entity(s.world, s.table, row))->m[3];
        assert_true(sum >= 1 && sum <= NB_SCENE_DEPTH_MAX);
    }
    assert_drawn_at(&s, nb_store_entity(s.world, s.table, 20 + 63), 64, 0, 0);
    assert_drawn_at(&s, nb_store_entity(s.world, s.table, 20 + 64), 1, 0, 0);
    // A circle is left as any other parent is.
    assert_int_equal(nb_scene_parent_set(s.scene, nb_store_entity(s.world, s.table, 4), (nb_entity){0}, 0), NB_OK);
    frame(&s, TICK_NS);
    assert_int_equal(scene_stats(&s).cut_count, 3);
    assert_drawn_at(&s, nb_store_entity(s.world, s.table, 5), 10, 0, 0);
    scene_close(&s);
}

TEST(node_stays_where_it_is_below_another_parent) {
    stage_rig s;
    scene_open(&s, 100);
    uint64_t random = 9;
    nb_entity nodes[8];
    for (uint32_t i = 0; i < 8; ++i) {
        nb_node_desc desc = {.local = any_transform(&random)};
        if (i != 0 && i != 4) desc.parent = nodes[i - 1];
        assert_int_equal(nb_scene_spawn(s.scene, &desc, &nodes[i]), NB_OK);
    }
    frame(&s, TICK_NS);
    nb_matrix34 before = *drawn(&s, nodes[2]);
    assert_int_equal(nb_scene_parent_set(s.scene, nodes[2], nodes[6], NB_SCENE_KEEP_WORLD), NB_OK);
    frame(&s, TICK_NS);
    for (int i = 0; i < 12; ++i) assert_true(fabsf(drawn(&s, nodes[2])->m[i] - before.m[i]) < 1e-3f);
    assert_int_equal(nb_scene_parent_set(s.scene, nodes[2], (nb_entity){0}, NB_SCENE_KEEP_WORLD), NB_OK);
    frame(&s, TICK_NS);
    for (int i = 0; i < 12; ++i) assert_true(fabsf(drawn(&s, nodes[2])->m[i] - before.m[i]) < 1e-3f);
    nb_transform pose;
    assert_int_equal(nb_scene_pose_get(s.scene, nodes[7], &pose), NB_OK);
    nb_matrix34 simulated = nb_transform_matrix(pose);
    for (int i = 0; i < 12; ++i) assert_true(fabsf(drawn(&s, nodes[7])->m[i] - simulated.m[i]) < 1e-3f);
    assert_int_equal(nb_scene_parent_set(s.scene, nodes[2], nodes[6], NB_SCENE_KEEP_LOCAL), NB_OK);
    frame(&s, TICK_NS);
    assert_true(fabsf(drawn(&s, nodes[2])->m[3] - before.m[3]) > 1e-2f);
    scene_close(&s);
}

TEST(columns_of_the_game_come_behind_those_of_the_scene) {
    const nb_column_desc columns[] = {{.name = "mesh", .size_bytes = sizeof(uint32_t)}};
    stage_rig s;
    scene_open_desc(&s, rig_desc(0), (nb_scene_desc){.name = "actors", .columns = columns, .column_count = 1});
    spawn(&s, (nb_entity){0}, 1);
    *NB_STORE_ROW_WRITE(s.world, s.table, NB_SCENE_COLUMN_COUNT, uint32_t, 0) = 5;
    assert_int_equal(nb_store_table_find(s.world, "actors").value, s.table.value);
    nb_table_info info;
    assert_int_equal(nb_store_table_info(s.world, s.table, &info), NB_OK);
    assert_int_equal(info.row_count_max, NB_SCENE_NODE_COUNT_DEFAULT);
    nb_scene *more = NULL;
    nb_scene_desc desc = {.name = "menu", .hooks = test_hooks(&s.r.log, &s.r.heap)};
    assert_int_equal(nb_scene_create(s.r.engine, &desc, &more), NB_ERR_MISUSE); // rows are there already
    assert_null(more);
    frame(&s, TICK_NS);
    scene_close(&s);
}

TEST(two_scenes_of_an_engine_know_their_own_nodes) {
    stage_rig s;
    nb_scene *menu = NULL;
    nb_scene_desc desc = {.name = "menu"};
    scene_open(&s, 10);
    assert_int_equal(nb_scene_create(s.r.engine, &desc, &menu), NB_OK);
    nb_entity node = spawn(&s, (nb_entity){0}, 3), button = {0}, other = {0};
    nb_node_desc at = node_desc((nb_entity){0}, 5, 0, 0), foreign = node_desc(node, 5, 0, 0);
    assert_int_equal(nb_scene_spawn(menu, &at, &button), NB_OK);
    assert_int_equal(nb_scene_spawn(menu, &foreign, &other), NB_ERR_MISUSE);
    assert_int_equal(nb_scene_despawn(s.scene, button), NB_ERR_MISUSE);
    assert_int_equal(nb_scene_despawn(menu, button), NB_OK);
    frame(&s, TICK_NS);
    assert_int_equal(nb_scene_stats_get(menu).node_count, 0);
    assert_drawn_at(&s, node, 3, 0, 0);
    assert_int_equal(nb_scene_destroy(menu), NB_OK);
    frame(&s, TICK_NS);
    scene_close(&s);
}
