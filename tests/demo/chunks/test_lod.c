// SPDX-License-Identifier: MIT
// The demo's quadtrees: what is wanted follows the eye, and what is drawn covers the planet at every moment.

#include "support/support.h"

#include "demo/chunks/lod.h"
#include "demo/chunks/quality.h"
#include "demo/planet/relief.h"

static double real(uint64_t *random, double low, double high) {
    return low + (high - low) * (double)(test_random(random) >> 11) / 9007199254740992.0;
}

static vec3d any_direction(uint64_t *random) {
    vec3d p = {0, 0, 0};
    while (vec3d_length(p) < 0.1 || vec3d_length(p) > 1)
        p = (vec3d){real(random, -1, 1), real(random, -1, 1), real(random, -1, 1)};
    return vec3d_normal(p, p);
}

// Low as often as high.
static vec3d any_eye(uint64_t *random) {
    double altitude = 2;
    for (uint64_t i = test_random(random) % 12; i > 0; --i) altitude *= 2;
    return vec3d_scale(any_direction(random), SPHERE_RADIUS + altitude);
}

static lod_choice choices[2];
static lod_ready ready;

TEST(every_node_has_a_number_of_its_own) {
    static uint8_t seen[LOD_NODE_TOTAL];
    memset(seen, 0, sizeof seen);
    uint32_t count = 0;
    for (uint32_t level = 0; level < NODE_LEVELS; ++level) {
        uint32_t side = NODE_COUNT_0 >> level;
        for (uint32_t i = 0; i < 6 * side * side; ++i, ++count) {
            lod_node node = {(uint8_t)(i / side / side), (uint8_t)level, (uint8_t)(i % side),
                             (uint8_t)(i / side % side), 0};
            uint32_t index = lod_index(node);
            assert_true(index < LOD_NODE_TOTAL && seen[index] == 0);
            seen[index] = 1;
            for (uint32_t k = 0; level > 0 && k < 4; ++k)
                assert_true(node_is_same(node_parent(node_child(node, k)), node));
        }
    }
    assert_int_equal(count, LOD_NODE_TOTAL);
}

// The area of drawn nodes, in nodes of level 0; and no two lie on each other.
static uint32_t area_of(const lod_node *nodes, uint32_t count, uint32_t face) {
    static lod_set all;
    memset(&all, 0, sizeof all);
    uint32_t area = 0;
    for (uint32_t i = 0; i < count; ++i) {
        assert_false(lod_has(&all, nodes[i]));
        lod_add(&all, nodes[i]);
    }
    for (uint32_t i = 0; i < count; ++i) {
        if (nodes[i].face != face) continue;
        area += 1u << 2 * nodes[i].level;
        for (lod_node up = nodes[i]; up.level < NODE_ROOT_LEVEL;) {
            up = node_parent(up);
            assert_false(lod_has(&all, up));
        }
    }
    return area;
}

#define FACE_AREA (NODE_COUNT_0 * NODE_COUNT_0)

TEST(wanted_leaves_cover_each_face_once_and_parents_come_first) {
    uint64_t random = test_seed("wanted_leaves");
    lod_choice *choice = &choices[0];
    for (uint32_t round = 0; round < 200; ++round) {
        lod_view view = {any_eye(&random), real(&random, 0, 60), real(&random, 0.5, 5)};
        lod_choose(&view, NULL, choice);
        static lod_node leaves[LOD_NODES_MAX];
        static lod_set before;
        memset(&before, 0, sizeof before);
        uint32_t count = 0;
        for (uint32_t i = 0; i < choice->node_count; ++i) {
            lod_node node = choice->nodes[i];
            if (node.level < NODE_ROOT_LEVEL) assert_true(lod_has(&before, node_parent(node)));
            assert_true(lod_is_wanted(choice, node));
            lod_add(&before, node);
            if (lod_is_leaf(choice, node)) leaves[count++] = node;
        }
        assert_int_equal(count, choice->leaf_count);
        assert_in_range(choice->node_count, 6, LOD_NODES_MAX);
        for (uint32_t face = 0; face < 6; ++face) assert_int_equal(area_of(leaves, count, face), FACE_AREA);
    }
}

TEST(near_nodes_are_fine_and_far_ones_coarse) {
    uint64_t random = test_seed("near_nodes");
    for (uint32_t round = 0; round < 100; ++round) {
        vec3d up = any_direction(&random);
        lod_view view = {vec3d_scale(up, SPHERE_RADIUS + 3), 0, 2};
        lod_choose(&view, NULL, &choices[0]);
        assert_false(choices[0].is_full);
        for (uint32_t i = 0; i < choices[0].node_count; ++i) {
            lod_node node = choices[0].nodes[i];
            if (!lod_is_leaf(&choices[0], node)) continue;
            double width = node_columns(node.level), distance = lod_distance(&view, node);
            if (node.level > 0) assert_true(distance >= 2 * width * 0.39);
            // Nothing is finer than it has to be: its parent was near enough.
            if (node.level < NODE_ROOT_LEVEL) assert_true(lod_distance(&view, node_parent(node)) <= 2 * 2 * width);
        }
        sphere_place below = sphere_locate(up);
        lod_node here = {(uint8_t)below.face, 0, (uint8_t)(sphere_column(below.u) / 32),
                         (uint8_t)(sphere_column(below.v) / 32), 0};
        assert_true(lod_is_wanted(&choices[0], here));
    }
}

// The distance to a node against the nearest of many points of it.
TEST(distances_are_those_of_the_nearest_ground) {
    uint64_t random = test_seed("distances");
    for (uint32_t round = 0; round < 300; ++round) {
        lod_view view = {any_eye(&random), 0, 2};
        uint32_t level = round % NODE_LEVELS, side = NODE_COUNT_0 >> level;
        lod_node node = {(uint8_t)(round % 6), (uint8_t)level, (uint8_t)(test_random(&random) % side),
                         (uint8_t)(test_random(&random) % side), 0};
        double width = node_columns(level), nearest = 1e9;
        for (uint32_t i = 0; i < 17 * 17; ++i) {
            double u = node.x * width + i % 17 * width / 16, v = node.y * width + i / 17 * width / 16;
            nearest = fmin(nearest, vec3d_length(vec3d_sub(sphere_position(node.face, u, v, 0), view.eye)));
        }
        double distance = lod_distance(&view, node);
        // Beside the face it is a bound for a choice, not more.
        sphere_place below = sphere_locate(view.eye);
        if (below.face == node.face) assert_true(fabs(distance - nearest) < width / 12 + nearest * 0.02);
        assert_true(distance > nearest * 0.99 - width / 12 && distance < nearest * 1.25 + width / 2);
    }
}

TEST(a_choice_lasts_while_the_eye_trembles) {
    uint64_t random = test_seed("a_choice_lasts");
    for (uint32_t round = 0; round < 30; ++round) {
        lod_view view = {any_eye(&random), 0, 2.2};
        vec3d eye = view.eye;
        lod_choose(&view, NULL, &choices[0]);
        for (uint32_t i = 1; i < 20; ++i) {
            double share = 1 + 0.00002 * (i % 2);
            view.eye = vec3d_scale(eye, share);
            lod_choose(&view, &choices[(i + 1) % 2], &choices[i % 2]);
            if (i > 2) assert_memory_equal(&choices[0].split, &choices[1].split, sizeof choices[0].split);
        }
    }
}

TEST(too_many_wishes_are_cut_from_the_weakest) {
    uint64_t random = test_seed("too_many_wishes");
    lod_view view = {vec3d_scale(any_direction(&random), SPHERE_RADIUS + 2), 0, 50};
    lod_choose(&view, NULL, &choices[0]);
    assert_true(choices[0].is_full && choices[0].node_count + 4 > LOD_NODES_MAX);
    view.split = 0;
    lod_choose(&view, NULL, &choices[0]);
    assert_int_equal(choices[0].node_count, 6);
    for (uint32_t i = 1; i < QUALITY_COUNT; ++i) assert_true(quality_of(i - 1).split <= quality_of(i).split);
    assert_true(quality_of(99).split <= quality_of(QUALITY_COUNT - 1).split);
    // From high above the lowest levels draw as well as a better one; nobody draws worse than on the ground.
    for (uint32_t i = 0; i < QUALITY_COUNT; ++i) {
        double before = quality_of(i).split;
        assert_true(quality_split(quality_of(i), -5) >= before && quality_split(quality_of(i), -5) <= before);
        for (double height = 0; height < 5000; height += 50) {
            double split = quality_split(quality_of(i), height);
            assert_true(split >= before);
            before = split;
        }
        assert_true(before >= QUALITY_SPLIT_HIGH);
    }
}

// --- random flights ---

// What a streamer does, with a table of its own: nodes come some frames after they are wanted, in any order, and go
// when they are neither wanted nor drawn.
typedef struct world {
    lod_node nodes[2 * LOD_NODES_MAX];
    uint32_t count;
    lod_node drawn[LOD_NODES_MAX];
    uint32_t drawn_count;
} world;

static bool world_has(const world *w, lod_node node) {
    for (uint32_t i = 0; i < w->count; ++i)
        if (node_is_same(w->nodes[i], node)) return true;
    return false;
}

static void world_load(world *w, const lod_choice *choice, uint64_t *random) {
    for (uint32_t i = 0; i < choice->node_count && w->count < 2 * LOD_NODES_MAX; ++i) {
        bool is_root = choice->nodes[i].level == NODE_ROOT_LEVEL, is_leaf = lod_is_leaf(choice, choice->nodes[i]);
        // Parents seldom: some are missing when their children go.
        if (!is_root && test_random(random) % (is_leaf ? 4 : 40) != 0) continue;
        if (!world_has(w, choice->nodes[i])) w->nodes[w->count++] = choice->nodes[i];
    }
}

static void world_forget(world *w, const lod_choice *choice) {
    static lod_set shown;
    memset(&shown, 0, sizeof shown);
    for (uint32_t i = 0; i < w->drawn_count; ++i) lod_add(&shown, w->drawn[i]);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < w->count; ++i)
        if (lod_is_wanted(choice, w->nodes[i]) || lod_has(&shown, w->nodes[i])) w->nodes[kept++] = w->nodes[i];
    w->count = kept;
}

static void fly_on(uint64_t *random, uint32_t frame, vec3d *up, double *altitude, double *climb) {
    if (frame % 97 == 96) *up = any_direction(random); // a teleport
    if (frame % 23 == 0) *climb = real(random, 0.9, 1.11);
    *altitude = fmin(fmax(*altitude * *climb, 2), 9000);
    vec3d step = vec3d_scale(any_direction(random), 0.01);
    *up = vec3d_normal(vec3d_add(*up, step), *up);
}

TEST(what_is_drawn_covers_the_planet_once_on_any_flight) {
    static world w;
    uint64_t random = test_seed("what_is_drawn");
    uint32_t fine = 0, coarse = 0, above = 0;
    for (uint32_t flight = 0; flight < test_size(3, 20, 200); ++flight) {
        vec3d up = any_direction(&random);
        double altitude = 3000, climb = 1, split = real(&random, 0.8, 2);
        memset(&w, 0, sizeof w);
        choices[1].node_count = 0;
        memset(&choices[1].split, 0, sizeof choices[1].split);
        for (uint32_t frame = 0; frame < 200; ++frame) {
            fly_on(&random, frame, &up, &altitude, &climb);
            lod_view view = {vec3d_scale(up, SPHERE_RADIUS + altitude), 0, split};
            lod_choice *choice = &choices[frame % 2];
            lod_choose(&view, &choices[(frame + 1) % 2], choice);
            lod_ready_clear(&ready);
            for (uint32_t i = 0; i < w.count; ++i) lod_ready_add(&ready, w.nodes[i]);
            w.drawn_count = lod_drawn(choice, &ready, w.drawn);
            for (uint32_t face = 0; face < 6; ++face)
                assert_int_equal(area_of(w.drawn, w.drawn_count, face), frame == 0 ? 0 : FACE_AREA);
            for (uint32_t i = 0; i < w.drawn_count; ++i) {
                assert_true(lod_has(&ready.ready, w.drawn[i]));
                bool is_wanted = lod_is_wanted(choice, w.drawn[i]);
                fine += is_wanted && lod_is_leaf(choice, w.drawn[i]);
                coarse += is_wanted && !lod_is_leaf(choice, w.drawn[i]);
                above += !is_wanted;
            }
            world_forget(&w, choice);
            world_load(&w, choice, &random);
        }
    }
    print_message("drawn: %u as wanted, %u for those to come, %u of those that go\n", fine, coarse, above);
    assert_true(fine > 1000 && coarse > 100);
}

// Four children stand for a parent that is wanted again and not there, until it is; three of them cannot.
TEST(children_stand_for_a_parent_that_is_not_ready) {
    static lod_node drawn[LOD_NODES_MAX];
    lod_view far = {.eye = {0, 0, 90000}, .split = 1};
    lod_choose(&far, NULL, &choices[0]);
    assert_int_equal(choices[0].node_count, 6);
    lod_ready_clear(&ready);
    for (uint32_t face = 1; face < 6; ++face) lod_ready_add(&ready, node_root(face));
    for (uint32_t i = 0; i < 3; ++i) lod_ready_add(&ready, node_child(node_root(0), i));
    assert_int_equal(lod_drawn(&choices[0], &ready, drawn), 5);
    // The last child is there by its own four.
    for (uint32_t i = 0; i < 4; ++i) lod_ready_add(&ready, node_child(node_child(node_root(0), 3), i));
    assert_int_equal(lod_drawn(&choices[0], &ready, drawn), 5 + 3 + 4);
    assert_int_equal(area_of(drawn, 5 + 3 + 4, 0), FACE_AREA);
    lod_ready_add(&ready, node_root(0));
    assert_int_equal(lod_drawn(&choices[0], &ready, drawn), 6);
}

TEST(what_is_wanted_is_drawn_when_all_is_ready) {
    uint64_t random = test_seed("what_is_wanted");
    static lod_node drawn[LOD_NODES_MAX];
    for (uint32_t round = 0; round < 50; ++round) {
        lod_view view = {any_eye(&random), 0, 2};
        lod_choose(&view, NULL, &choices[0]);
        lod_ready_clear(&ready);
        for (uint32_t i = 0; i < choices[0].node_count; ++i) lod_ready_add(&ready, choices[0].nodes[i]);
        uint32_t count = lod_drawn(&choices[0], &ready, drawn);
        assert_int_equal(count, choices[0].leaf_count);
        for (uint32_t i = 0; i < count; ++i) assert_true(lod_is_leaf(&choices[0], drawn[i]));
    }
}

// --- the limb ---

// Whether a line from the eye passes the ball of the sea on its way.
static bool is_hidden(vec3d eye, vec3d point, double ball) {
    vec3d line = vec3d_sub(point, eye);
    double length = vec3d_dot(line, line), share = -vec3d_dot(eye, line) / length;
    if (share <= 0 || share >= 1) return false;
    return vec3d_length(vec3d_add(eye, vec3d_scale(line, share))) < ball;
}

TEST(nothing_in_sight_is_behind_the_limb) {
    uint64_t random = test_seed("nothing_in_sight");
    uint32_t culled = 0, seen = 0;
    for (uint32_t round = 0; round < 4000; ++round) {
        vec3d eye = any_eye(&random);
        uint32_t level = round % NODE_LEVELS, side = NODE_COUNT_0 >> level;
        lod_node node = {(uint8_t)(round % 6), (uint8_t)level, (uint8_t)(test_random(&random) % side),
                         (uint8_t)(test_random(&random) % side), 0};
        double width = node_columns(level);
        lod_bounds bounds = lod_bounds_of(node, RELIEF_MIN, RELIEF_MAX);
        bool is_kept = lod_is_over_horizon(eye, &bounds);
        culled += !is_kept;
        for (uint32_t i = 0; i < 8; ++i) {
            double u = (node.x + real(&random, 0, 1)) * width, v = (node.y + real(&random, 0, 1)) * width;
            vec3d point = sphere_position(node.face, u, v, real(&random, -2.9, RELIEF_MAX));
            assert_true(vec3d_length(vec3d_sub(point, bounds.middle)) <= bounds.radius + 1e-6);
            bool is_seen = !is_hidden(eye, point, SPHERE_RADIUS - 3);
            if (is_seen) assert_true(is_kept && lod_point_is_over_horizon(eye, point));
            if (!is_seen) assert_false(lod_point_is_over_horizon(eye, point));
            seen += is_seen;
        }
    }
    print_message("%u points in sight, %u of 4000 nodes behind the limb\n", seen, culled);
    assert_true(seen > 1000 && culled > 1000);
}
