// SPDX-License-Identifier: MIT
// Scenes whose ticks are simulated again, rewound, saved and loaded; and one that finds no memory.

#include "scene/scene_fixture.h"

#include "nebula/rollback.h"
#include "nebula/synctest.h"

#define TICK_COUNT 60u

static nb_engine_desc history_desc(void) {
    nb_engine_desc desc = rig_desc(0);
    desc.keeps_history = desc.hashes_ticks = true;
    desc.rollback_count_max = TICK_COUNT;
    return desc;
}

static void open_game(stage_rig *s, nb_engine_desc desc, uint64_t seed) {
    scene_open_desc(s, desc, (nb_scene_desc){.node_count_max = 500, .is_exact = true});
    s->seed = seed;
    game_fill(s, 100);
}

TEST(rewound_scene_is_drawn_as_it_was) {
    stage_rig s;
    uint64_t hashes[TICK_COUNT + 1], states[TICK_COUNT + 1], seed = test_seed(__func__);
    open_game(&s, history_desc(), seed);
    for (uint32_t i = 1; i <= TICK_COUNT; ++i) {
        run_ticks(&s.r, 1);
        hashes[i] = drawn_hash(&s);
        states[i] = rig_stats(&s.r).tick_hash;
    }
    for (uint32_t i = 0; i < test_size(20, 100, 1000); ++i) {
        uint32_t tick = 1 + (uint32_t)(test_random(&seed) % TICK_COUNT);
        assert_int_equal(nb_engine_rewind(s.r.engine, tick), NB_OK);
        frame(&s, 0);
        assert_true(drawn_hash(&s) == hashes[tick]);
        // And the ticks from there on are what they were.
        for (uint32_t next = tick + 1; next <= TICK_COUNT; ++next) {
            run_ticks(&s.r, 1);
            assert_true(rig_stats(&s.r).tick_hash == states[next]);
            assert_true(drawn_hash(&s) == hashes[next]);
        }
    }
    scene_close(&s);
}

static void swap_parent(stage_rig *s, const nb_context *context) {
    nb_store_stage *stage = nb_context_stage(context, 0);
    nb_node_desc desc = node_desc((nb_entity){0}, 7, 0, 0);
    if (context->tick->index != 1) return;
    assert_int_equal(nb_store_stage_despawn(stage, s->other), NB_OK);
    assert_int_equal(nb_scene_stage(s->scene, stage, &desc, NULL), NB_OK);
}

// Another node takes the parent's row, so that only the entities tell one time from the other.
TEST(rewound_parent_is_a_parent_again) {
    stage_rig s;
    scene_open_desc(&s, history_desc(), (nb_scene_desc){.node_count_max = 10, .is_exact = true});
    s.node = spawn(&s, (nb_entity){0}, 1);
    s.other = spawn(&s, (nb_entity){0}, 10);
    assert_int_equal(nb_scene_parent_set(s.scene, s.node, s.other, NB_SCENE_KEEP_LOCAL), NB_OK);
    s.tick = swap_parent;
    run_ticks(&s.r, 1);
    assert_drawn_at(&s, s.node, 11, 0, 0);
    run_ticks(&s.r, 1);
    assert_int_equal(node_count(&s), 2);
    assert_drawn_at(&s, s.node, 1, 0, 0);
    assert_int_equal(nb_engine_rewind(s.r.engine, 1), NB_OK);
    frame(&s, 0);
    assert_drawn_at(&s, s.node, 11, 0, 0);
    assert_int_equal(scene_stats(&s).orphan_count, 0);
    scene_close(&s);
}

TEST(ticks_simulated_again_are_the_same) {
    stage_rig s;
    nb_engine_desc desc = rig_desc(0);
    nb_synctest_report report;
    desc.synctest_depth = 4;
    open_game(&s, desc, test_seed(__func__));
    run_ticks(&s.r, test_size(200, 1000, 10000));
    assert_int_equal(nb_engine_synctest_get(s.r.engine, &report), NB_OK);
    assert_string_equal(report.text, "");
    assert_int_equal(report.diverged_count + report.outside_count, 0);
    assert_true(report.checked_count > 400);
    scene_close(&s);
}

typedef struct corrector {
    uint64_t tick;
    uint32_t code;
    bool is_due;
} corrector;

static nb_result correct(const nb_context *context, void *user) {
    corrector *c = user;
    if (!c->is_due) return NB_OK;
    nb_input_event command = {.kind = NB_INPUT_COMMAND, .code = c->code};
    nb_history_input input = {{NULL, 0}, {&command, 1}};
    c->is_due = false;
    return nb_context_correct_input(context, c->tick, &input);
}

TEST(late_commands_give_the_scene_that_timely_ones_do) {
    stage_rig late;
    corrector c = {.tick = 21, .code = 9};
    open_game(&late, history_desc(), 11);
    nb_module_desc module = {.name = "corrector", .user = &c};
    module.handlers[NB_PHASE_NETWORK_RECONCILIATION] = correct;
    attach(&late.r, module);
    run_ticks(&late.r, 22);
    uint64_t without = rig_stats(&late.r).tick_hash;
    c.is_due = true;
    frame(&late, 0); // goes back one tick
    uint64_t with = rig_stats(&late.r).tick_hash, with_drawn = drawn_hash(&late);
    assert_true(with != without);
    run_ticks(&late.r, 10);
    uint64_t end = rig_stats(&late.r).tick_hash;
    // Back to before it, and wrong at first.
    assert_int_equal(nb_engine_rewind(late.r.engine, 21), NB_OK);
    run_ticks(&late.r, 11);
    assert_true(rig_stats(&late.r).tick_hash != end);
    c.is_due = true;
    frame(&late, 0); // eleven ticks
    assert_true(rig_stats(&late.r).tick_hash == end);
    assert_int_equal(nb_engine_rewind(late.r.engine, 22), NB_OK);
    frame(&late, 0);
    assert_true(rig_stats(&late.r).tick_hash == with && drawn_hash(&late) == with_drawn);
    scene_close(&late);
}

TEST(loaded_scene_is_drawn_like_the_saved_one) {
    stage_rig a, b;
    static unsigned char bytes[1 << 20];
    size_t size_bytes = 0;
    open_game(&a, rig_desc(0), 4);
    run_ticks(&a.r, 40);
    assert_int_equal(nb_states_save(nb_engine_states(a.r.engine), bytes, sizeof bytes, &size_bytes), NB_OK);
    open_game(&b, rig_desc(0), 8);
    run_ticks(&b.r, 10);
    b.seed = a.seed;
    assert_int_equal(nb_states_load(nb_engine_states(b.r.engine), bytes, size_bytes), NB_OK);
    assert_int_equal(nb_engine_set_tick(b.r.engine, 40), NB_OK);
    frame(&b, 0);
    assert_int_equal(node_count(&b), node_count(&a));
    assert_true(drawn_hash(&b) == drawn_hash(&a));
    for (uint32_t i = 0; i < 20; ++i) {
        run_ticks(&a.r, 1);
        run_ticks(&b.r, 1);
        assert_true(drawn_hash(&b) == drawn_hash(&a));
    }
    scene_close(&a);
    scene_close(&b);
}

// --- the end, and memory ---

TEST(scene_without_memory_leaves_nothing_behind) {
    for (uint64_t fail = 1; fail < 100; ++fail) {
        rig r;
        nb_scene *scene = NULL;
        rig_open(&r, 0);
        uint64_t before = r.heap.call_count.value;
        nb_scene_desc desc = {.node_count_max = 100, .hooks = test_hooks(&r.log, &r.heap)};
        r.heap.fail_at = before + fail;
        nb_result result = nb_scene_create(r.engine, &desc, &scene);
        r.heap.fail_at = 0;
        bool is_done = r.heap.call_count.value < before + fail;
        assert_int_equal(result, is_done ? NB_OK : NB_ERR_MEMORY);
        // The next one has it all.
        if (!is_done) assert_int_equal(nb_scene_create(r.engine, &desc, &scene), NB_OK);
        assert_int_equal(nb_engine_run_ticks(r.engine, 2), NB_OK);
        assert_int_equal(nb_scene_destroy(scene), NB_OK);
        rig_close(&r);
        if (is_done) return;
    }
    fail_msg("never enough memory");
}

TEST(scene_may_outlive_its_engine) {
    rig r;
    nb_scene *scene = NULL;
    test_heap heap = {0};
    rig_open(&r, 0);
    nb_scene_desc desc = {.hooks = test_hooks(NULL, &heap)};
    assert_int_equal(nb_scene_create(r.engine, &desc, &scene), NB_OK);
    nb_node_desc node = nb_node_desc_default();
    nb_entity entity = {0};
    assert_int_equal(nb_scene_spawn(scene, &node, &entity), NB_OK);
    rig_close(&r);
    assert_int_equal(nb_scene_spawn(scene, &node, &entity), NB_CLOSED);
    assert_int_equal(nb_scene_despawn(scene, entity), NB_CLOSED);
    assert_int_equal(nb_scene_stats_get(scene).node_count, 0);
    assert_int_equal(nb_scene_destroy(scene), NB_OK);
    assert_int_equal(heap.live_count.value, 0);
}
