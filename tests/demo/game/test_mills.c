// SPDX-License-Identifier: MIT
// The demo's windmills: they stand where they should, turn as the tick says, and come back to the same bits.

#include "frame/engine/engine_fixture.h"

#include <math.h>

#include "nebula/hash.h"
#include "nebula/rollback.h"
#include "nebula/synctest.h"

#include "demo/game/mill_site.h"
#include "demo/game/mills.h"

#define TICK_NS UINT64_C(20000000)
#define HISTORY_TICKS 20u
#define TURN 6.283185307179586

// Floats that far from the planet's middle are a quarter of a millimetre apart.
#define NEAR_ENOUGH 2e-3

typedef struct farm {
    rig r;
    mills m;
    nb_table table;
    creature_home homes[HOME_COUNT];
} farm;

static void farm_open_desc(farm *f, nb_engine_desc desc, uint64_t seed) {
    desc.loop.tick_rate = (nb_rate){50, 1};
    desc.hashes_ticks = true;
    rig_open_desc(&f->r, desc);
    for (uint32_t i = 0; i < HOME_COUNT; ++i) f->homes[i] = home_of(seed, i);
    assert_int_equal(mills_attach(&f->m, f->r.engine, seed), NB_OK);
    assert_int_equal(mills_populate(&f->m, f->homes), NB_OK);
    f->table = nb_scene_table(f->m.scene);
    assert_int_equal(nb_store_row_count(f->m.world, f->table), MILLS_NODES);
}

static void farm_open(farm *f, uint32_t worker_count, uint64_t seed) {
    farm_open_desc(f, rig_desc(worker_count), seed);
}

static void farm_close(farm *f) {
    assert_true(nb_store_is_valid(f->m.world));
    assert_int_equal(rig_stats(&f->r).failure_count, 0);
    rig_close(&f->r);
    mills_end(&f->m);
}

static const nb_matrix34 *drawn(const farm *f, uint32_t row) {
    return NB_STORE_ROW(f->m.world, f->table, NB_SCENE_WORLD, nb_matrix34, row);
}

static uint32_t row_of(const farm *f, nb_entity node) {
    uint32_t row = 0;
    assert_int_equal(nb_store_find(f->m.world, node, &row), NB_OK);
    return row;
}

static uint32_t parent_of(const farm *f, uint32_t row) {
    return row_of(f, *NB_STORE_ROW(f->m.world, f->table, NB_SCENE_PARENT, nb_entity, row));
}

static mill_part part_of(const farm *f, uint32_t row) {
    return (mill_part)*NB_STORE_ROW(f->m.world, f->table, MILLS_PART, uint8_t, row);
}

static vec3d place_of(const nb_matrix34 *m) { return (vec3d){m->m[3], m->m[7], m->m[11]}; }
static vec3d axis_of(const nb_matrix34 *m, uint32_t axis) {
    return (vec3d){m->m[axis], m->m[4 + axis], m->m[8 + axis]};
}

// As simulated, not as drawn.
static uint64_t pose_hash(const farm *f) {
    nb_transform poses[HOME_COUNT];
    for (uint32_t i = 0; i < HOME_COUNT; ++i)
        assert_int_equal(nb_scene_pose_get(f->m.scene, f->m.hubs[i], &poses[i]), NB_OK);
    return nb_hash64(poses, sizeof poses, 3);
}

static uint64_t drawn_hash(const farm *f) { return nb_hash64(drawn(f, 0), MILLS_NODES * sizeof(nb_matrix34), 3); }

// --- where they stand ---

static void assert_stands(const farm *f, uint32_t number, uint32_t root, uint64_t seed) {
    const nb_matrix34 *pose = drawn(f, root);
    vec3d at = place_of(pose), up = vec3d_normal(at, (vec3d){0});
    sphere_place on = sphere_locate(at);
    int32_t height = terrain_height(seed, on.face, sphere_column(on.u), sphere_column(on.v));
    assert_false(terrain_is_wet(height));
    assert_true(fabs(vec3d_length(at) - SPHERE_RADIUS - (height + 1)) < NEAR_ENOUGH);
    assert_true(vec3d_length(vec3d_sub(axis_of(pose, 1), up)) < 1e-5); // upright, and of its own size
    double away = vec3d_length(vec3d_sub(up, home_direction(f->homes[number]))) * SPHERE_RADIUS;
    assert_true(away > 20 && away < 45);
    vec3d back = vec3d_normal(vec3d_sub(home_direction(f->homes[number]), up), (vec3d){0});
    assert_true(vec3d_dot(axis_of(pose, 2), back) > 0.8); // it looks there
    for (uint32_t i = 0; i < HOME_FIRES; ++i) {
        vec3d fire = home_direction(home_fire(seed, f->homes[number], i));
        assert_true(vec3d_length(vec3d_sub(fire, up)) * SPHERE_RADIUS > 3);
    }
}

TEST(every_mill_stands_upright_on_its_ground) {
    static farm f;
    uint32_t north_count = 0, all_count = 0;
    for (uint64_t seed = 1; seed <= test_size(4, 8, 40); ++seed) {
        farm_open(&f, 0, seed);
        run_ticks(&f.r, 1);
        for (uint32_t i = 0; i < HOME_COUNT; ++i) {
            uint32_t hub = row_of(&f, f.m.hubs[i]), tower = parent_of(&f, hub), root = parent_of(&f, tower);
            assert_int_equal(part_of(&f, hub), MILL_HUB);
            assert_int_equal(part_of(&f, tower), MILL_TOWER);
            assert_int_equal(part_of(&f, root), MILL_ROOT);
            assert_stands(&f, i, root, seed);
            north_count += vec3d_normal(place_of(drawn(&f, root)), (vec3d){0}).y > home_direction(f.homes[i]).y;
            ++all_count;
            vec3d line = vec3d_sub(place_of(drawn(&f, hub)), place_of(drawn(&f, root)));
            assert_true(fabs(vec3d_dot(line, axis_of(drawn(&f, root), 1)) - (double)MILLS_HUB_HEIGHT) < NEAR_ENOUGH);
            assert_true(fabs(vec3d_dot(line, axis_of(drawn(&f, root), 2)) - (double)MILLS_HUB_AHEAD) < NEAR_ENOUGH);
        }
        farm_close(&f);
    }
    assert_true(north_count * 4 > all_count * 3); // where one looks first
}

// --- how they turn ---

// Blades are at right angles around the hub, in a plane before the tower.
static void assert_blades(const farm *f) {
    uint32_t blade_count = 0;
    for (uint32_t row = 0; row < MILLS_NODES; ++row) {
        if (part_of(f, row) != MILL_BLADE) continue;
        uint32_t hub = parent_of(f, row), root = parent_of(f, parent_of(f, hub));
        vec3d line = vec3d_sub(place_of(drawn(f, row)), place_of(drawn(f, hub)));
        assert_true(fabs(vec3d_length(line) - (double)MILLS_BLADE_MIDDLE) < NEAR_ENOUGH);
        assert_true(fabs(vec3d_dot(line, axis_of(drawn(f, root), 2))) < NEAR_ENOUGH);
        vec3d spar = vec3d_scale(axis_of(drawn(f, row), 1), (double)MILLS_BLADE_MIDDLE);
        assert_true(vec3d_length(vec3d_sub(spar, line)) < NEAR_ENOUGH);
        double side = vec3d_dot(line, axis_of(drawn(f, hub), blade_count % 2 == 0 ? 0 : 1));
        assert_true(fabs(side) < NEAR_ENOUGH); // blades of a hub are rows beside each other
        ++blade_count;
    }
    assert_int_equal(blade_count, HOME_COUNT * MILLS_BLADES);
}

// Turned by so much, from +x to +y of the tower.
static void assert_turned(const farm *f, uint32_t number, double turns) {
    uint32_t hub = row_of(f, f->m.hubs[number]), tower = parent_of(f, hub);
    vec3d x = axis_of(drawn(f, hub), 0);
    assert_true(fabs(vec3d_dot(x, axis_of(drawn(f, tower), 0)) - cos(turns * TURN)) < 1e-4);
    assert_true(fabs(vec3d_dot(x, axis_of(drawn(f, tower), 1)) - sin(turns * TURN)) < 1e-4);
}

TEST(hubs_turn_between_ticks_and_blades_with_them) {
    static farm f;
    farm_open(&f, 0, 1);
    assert_int_equal(nb_engine_frame_delta(f.r.engine, TICK_NS / 4), NB_OK);
    for (uint32_t i = 0; i < test_size(200, 1500, 10000); ++i) {
        assert_int_equal(nb_engine_frame_delta(f.r.engine, i % 2 == 0 ? TICK_NS / 4 : TICK_NS), NB_OK);
        double alpha = nb_loop_alpha(nb_engine_loop(f.r.engine));
        uint64_t tick_count = rig_stats(&f.r).tick_count;
        assert_blades(&f);
        if (tick_count == 0) continue;
        for (uint32_t mill = 0; mill < HOME_COUNT; ++mill) {
            double before = mills_turns(1, mill, tick_count - 1), now = mills_turns(1, mill, tick_count);
            assert_turned(&f, mill, before + (now + (now < before ? 1 : 0) - before) * alpha);
        }
    }
    farm_close(&f);
}

TEST(every_mill_has_a_wind_of_its_own_that_never_changes) {
    double speeds[HOME_COUNT];
    uint32_t same_count = 0;
    for (uint32_t mill = 0; mill < HOME_COUNT; ++mill) {
        for (uint64_t tick = 0; tick < 1000; ++tick) {
            uint64_t late = tick % 2 == 0 ? tick : (UINT64_C(1) << 40) + tick; // five centuries
            double speed = mills_turns(1, mill, late + 1) - mills_turns(1, mill, late);
            if (speed < 0) speed += 1;
            if (tick == 0) speeds[mill] = speed;
            assert_true(speed == speeds[mill]);
        }
        assert_true(speeds[mill] > 1.0 / 1000 && speeds[mill] < 1.0 / 200);
        for (uint32_t i = 0; i < mill; ++i) same_count += speeds[i] == speeds[mill];
    }
    assert_true(same_count < 4);
    assert_true(mills_turns(1, 0, 0) != mills_turns(2, 0, 0));
}

// --- again ---

TEST(workers_change_no_bit) {
    static farm alone, many;
    farm_open(&alone, 0, 5);
    farm_open(&many, 2, 5);
    for (uint32_t i = 0; i < 30; ++i) {
        run_ticks(&alone.r, 1);
        run_ticks(&many.r, 1);
        assert_true(rig_stats(&alone.r).tick_hash == rig_stats(&many.r).tick_hash);
        assert_true(drawn_hash(&alone) == drawn_hash(&many));
    }
    farm_close(&alone);
    farm_close(&many);
}

TEST(rewound_mills_are_where_they_were) {
    static farm f;
    uint64_t poses[HISTORY_TICKS + 1], seen[HISTORY_TICKS + 1], states[HISTORY_TICKS + 1], seed = test_seed(__func__);
    nb_engine_desc desc = rig_desc(0);
    desc.keeps_history = true;
    desc.rollback_count_max = HISTORY_TICKS;
    farm_open_desc(&f, desc, 1);
    for (uint32_t i = 1; i <= HISTORY_TICKS; ++i) {
        run_ticks(&f.r, 1);
        poses[i] = pose_hash(&f);
        seen[i] = drawn_hash(&f);
        states[i] = rig_stats(&f.r).tick_hash;
        assert_true(i == 1 || (poses[i] != poses[i - 1] && states[i] != states[i - 1]));
    }
    for (uint32_t i = 0; i < test_size(20, 100, 1000); ++i) {
        uint32_t tick = 1 + (uint32_t)(test_random(&seed) % HISTORY_TICKS);
        assert_int_equal(nb_engine_rewind(f.r.engine, tick), NB_OK);
        assert_int_equal(nb_engine_frame_delta(f.r.engine, 0), NB_OK);
        assert_true(pose_hash(&f) == poses[tick]);
        for (uint32_t next = tick + 1; next <= HISTORY_TICKS; ++next) {
            run_ticks(&f.r, 1);
            assert_true(rig_stats(&f.r).tick_hash == states[next]);
            assert_true(pose_hash(&f) == poses[next] && drawn_hash(&f) == seen[next]);
        }
    }
    farm_close(&f);
}

TEST(ticks_simulated_again_are_the_same) {
    static farm f;
    nb_engine_desc desc = rig_desc(2);
    desc.keeps_history = true;
    desc.synctest_depth = 8;
    farm_open_desc(&f, desc, 1);
    run_ticks(&f.r, 60);
    nb_synctest_report report;
    assert_int_equal(nb_engine_synctest_get(f.r.engine, &report), NB_OK);
    assert_true(report.checked_count > 60);
    assert_int_equal(report.diverged_count, 0);
    farm_close(&f);
}
