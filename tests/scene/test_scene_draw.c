// SPDX-License-Identifier: MIT
// What is drawn between two ticks, what is not drawn on its way, and who may read it.

#include "scene/scene_fixture.h"

// Frames at any alpha: a tick, then a part of one.
static float draw_at(stage_rig *s, double part) {
    nb_loop *loop = nb_engine_loop(s->r.engine);
    uint64_t ticks = nb_loop_tick_count(loop);
    while (nb_loop_tick_count(loop) == ticks) frame(s, TICK_NS / 8);
    while (nb_loop_alpha(loop) < part) frame(s, TICK_NS / 64);
    assert_int_equal(nb_loop_tick_count(loop), ticks + 1);
    return frame_alpha(s);
}

static void move_node(stage_rig *s, const nb_context *context) {
    nb_transform *local = nb_scene_local_write(s->scene, s->node);
    (void)context;
    local->position[0] += 8;
    local->scale += 1;
}

// A node that `tick` moves, and a child of it.
static nb_entity open_pair(stage_rig *s, float x, void (*tick)(stage_rig *, const nb_context *), uint64_t tick_count) {
    scene_open(s, 10);
    s->node = spawn(s, (nb_entity){0}, 0);
    nb_entity child = spawn(s, s->node, x);
    s->tick = tick;
    run_ticks(&s->r, tick_count);
    return child;
}

TEST(poses_are_drawn_between_two_ticks) {
    static const double parts[] = {0.0, 0.125, 0.5, 0.75, 0.9};
    for (uint32_t i = 0; i < 5; ++i) {
        stage_rig s;
        nb_entity child = open_pair(&s, 3, move_node, 3);
        double alpha = (double)draw_at(&s, parts[i]); // from 24 to 32, from size 4 to 5
        assert_drawn_at(&s, s.node, 24 + 8 * alpha, 0, 0);
        assert_drawn_at(&s, child, 24 + 8 * alpha + 3 * (4 + alpha), 0, 0);
        assert_true(fabs((double)drawn(&s, s.node)->m[0] - (4 + alpha)) < 1e-4);
        scene_close(&s);
    }
}

static void turn_node(stage_rig *s, const nb_context *context) {
    static const float quarter[4] = {0, 0, 0.70710678f, 0.70710678f};
    nb_transform *local = nb_scene_local_write(s->scene, s->node);
    // The same turn, with the other sign.
    for (int i = 0; i < 4; ++i) local->rotation[i] = context->tick->index == 0 ? (i == 3) : -quarter[i];
}

TEST(turns_go_the_short_way) {
    stage_rig s;
    nb_entity child = open_pair(&s, 1, turn_node, 1);
    float alpha = draw_at(&s, 0.5);
    // From 0 to 90 degrees, in the first quadrant all the time; halfway it is half of both.
    const nb_matrix34 *is = drawn(&s, child);
    assert_true(is->m[3] > 0.3f && is->m[7] > 0.3f);
    assert_true(fabsf(is->m[3] * is->m[3] + is->m[7] * is->m[7] - 1) < 1e-5f);
    assert_true(alpha < 0.55f && fabsf(is->m[3] - is->m[7]) < 0.2f);
    scene_close(&s);
}

static void jump_node(stage_rig *s, const nb_context *context) {
    nb_scene_local_write(s->scene, s->node)->position[0] += 100;
    nb_scene_local_write(s->scene, s->other)->position[0] += 4;
    if (context->tick->index == 2) assert_int_equal(nb_store_teleport(s->world, s->node), NB_OK);
}

TEST(teleported_node_is_not_drawn_on_its_way) {
    stage_rig s;
    scene_open(&s, 10);
    s.node = spawn(&s, (nb_entity){0}, 0);
    s.other = spawn(&s, s.node, 0);
    s.tick = jump_node;
    run_ticks(&s.r, 1);
    float alpha = draw_at(&s, 0.5);
    assert_drawn_at(&s, s.node, 100 + 100 * (double)alpha, 0, 0);
    alpha = draw_at(&s, 0.5); // jumps: it is there at once, and what hangs from it goes on in its own space
    assert_drawn_at(&s, s.node, 300, 0, 0);
    assert_drawn_at(&s, s.other, 300 + 8 + 4 * (double)alpha, 0, 0);
    alpha = draw_at(&s, 0.5);
    assert_drawn_at(&s, s.node, 300 + 100 * (double)alpha, 0, 0);
    scene_close(&s);
}

static void add_node(stage_rig *s, const nb_context *context) {
    nb_node_desc desc = node_desc(s->node, 50, 0, 0);
    if (context->tick->index == 1)
        assert_int_equal(nb_scene_stage(s->scene, nb_context_stage(context, 0), &desc, NULL), NB_OK);
}

TEST(new_node_does_not_come_from_the_origin) {
    stage_rig s;
    scene_open(&s, 10);
    s.node = spawn(&s, (nb_entity){0}, 10);
    frame(&s, TICK_NS / 2); // none has run yet
    assert_drawn_at(&s, s.node, 10, 0, 0);
    s.tick = add_node;
    frame(&s, TICK_NS);
    draw_at(&s, 0.5);
    assert_int_equal(node_count(&s), 2);
    assert_drawn_at(&s, nb_store_entity(s.world, s.table, 1), 60, 0, 0);
    nb_entity late = spawn(&s, s.node, 70);
    frame(&s, TICK_NS / 16);
    assert_drawn_at(&s, late, 80, 0, 0);
    scene_close(&s);
}

static void hang_elsewhere(stage_rig *s, const nb_context *context) {
    if (context->tick->index == 1)
        assert_int_equal(nb_scene_parent_set(s->scene, s->node, s->other, NB_SCENE_KEEP_WORLD), NB_OK);
}

TEST(node_with_another_parent_stays_between_ticks) {
    stage_rig s;
    scene_open(&s, 10);
    s.node = spawn(&s, spawn(&s, (nb_entity){0}, 100), 5);
    s.other = spawn(&s, (nb_entity){0}, -100);
    s.tick = hang_elsewhere;
    run_ticks(&s.r, 1);
    draw_at(&s, 0.5);
    assert_drawn_at(&s, s.node, 105, 0, 0); // not halfway between 5 of one and 205 of the other
    scene_close(&s);
}

TEST(exact_scene_is_drawn_as_of_its_newest_tick) {
    stage_rig s;
    scene_open_desc(&s, rig_desc(0), (nb_scene_desc){.is_exact = true});
    s.node = spawn(&s, (nb_entity){0}, 0);
    s.tick = move_node;
    run_ticks(&s.r, 1);
    draw_at(&s, 0.5);
    assert_drawn_at(&s, s.node, 16, 0, 0);
    frame(&s, TICK_NS / 64);
    assert_int_equal(scene_stats(&s).propagated_count, 0); // another alpha makes no difference
    scene_close(&s);
}

static void rest(stage_rig *s, const nb_context *context) {
    if (context->tick->index < 3) nb_scene_local_write(s->scene, s->node)->position[0] += 1;
}

TEST(node_that_rests_is_worked_out_no_more) {
    stage_rig s;
    scene_open(&s, 100);
    s.node = spawn(&s, (nb_entity){0}, 0);
    s.tick = rest;
    run_ticks(&s.r, 2);
    for (uint32_t i = 0; i < 5; ++i) {
        frame(&s, TICK_NS / 8);
        assert_int_equal(scene_stats(&s).propagated_count, 1); // between two places, at each alpha
    }
    frame(&s, 0);
    assert_int_equal(scene_stats(&s).propagated_count, 0); // nothing has changed
    frame(&s, 3 * TICK_NS);                                // moves and comes to rest within one frame
    frame(&s, TICK_NS / 8);
    frame(&s, TICK_NS / 8);
    assert_int_equal(scene_stats(&s).propagated_count, 0);
    assert_drawn_at(&s, s.node, 3, 0, 0);
    scene_close(&s);
}

// --- readers ---

typedef struct reader {
    stage_rig *s;
    nb_atomic_u32 right_count, wrong_count;
} reader;

static nb_result read_snapshot(const nb_context *context, void *user) {
    reader *r = user;
    const stage_rig *s = r->s;
    uint32_t count = nb_store_view_row_count(context->snapshot, s->world, s->table);
    const nb_matrix34 *poses = NB_STORE_VIEW(context->snapshot, s->world, s->table, NB_SCENE_WORLD, nb_matrix34);
    const nb_entity *parents = NB_STORE_VIEW(context->snapshot, s->world, s->table, NB_SCENE_PARENT, nb_entity);
    bool is_right = count == 2 && poses[0].m[3] == (float)s->tick_count && poses[1].m[3] == poses[0].m[3] + 5 &&
                    parents[1].value == s->node.value;
    nbi_atomic_fetch_add_seq_cst_u32(is_right ? &r->right_count : &r->wrong_count, 1);
    return NB_OK;
}

static void move_steadily(stage_rig *s, const nb_context *context) {
    (void)context;
    nb_scene_local_write(s->scene, s->node)->position[0] += 1;
}

TEST(jobs_read_poses_of_this_frame_from_the_snapshot) {
    stage_rig s;
    reader r = {.s = &s};
    scene_open_desc(&s, rig_desc(2), (nb_scene_desc){.node_count_max = 10, .is_exact = true});
    attach(&s.r, (nb_module_desc){.name = "reader", .parallel = read_snapshot, .job_count = 4, .user = &r});
    s.node = spawn(&s, (nb_entity){0}, 0);
    spawn(&s, s.node, 5);
    s.tick = move_steadily;
    for (uint32_t i = 0; i < 20; ++i) frame(&s, TICK_NS);
    assert_int_equal(r.wrong_count.value, 0);
    assert_int_equal(r.right_count.value, 80);
    scene_close(&s);
}

TEST(frames_need_no_heap) {
    stage_rig s;
    scene_open_desc(&s, rig_desc(1), (nb_scene_desc){.node_count_max = 3000});
    s.seed = 3;
    game_fill(&s, 2000);
    for (uint32_t i = 0; i < 10; ++i) frame(&s, TICK_NS);
    uint64_t call_count = s.r.heap.call_count.value;
    uint64_t order_count = scene_stats(&s).order_count;
    for (uint32_t i = 0; i < 50; ++i) frame(&s, TICK_NS * 5 / 4);
    assert_int_equal(s.r.heap.call_count.value, call_count);
    assert_true(scene_stats(&s).order_count > order_count + 20);
    scene_close(&s);
}
