// SPDX-License-Identifier: MIT
#pragma once

// What the tests of scenes share: an engine with a scene and a tick handler, a game that does everything to nodes at
// random, and poses worked out the plain way, node by node up to the root, with doubles.

#include "frame/engine/engine_fixture.h"

#include <math.h>

#include "nebula/hash.h"
#include "nebula/scene.h"

#define TICK_NS UINT64_C(16666667)

typedef struct stage_rig stage_rig;
struct stage_rig {
    rig r;
    nb_scene *scene;
    nb_store *world;
    nb_table table;
    void (*tick)(stage_rig *rig, const nb_context *context); // may be NULL
    uint64_t seed;
    uint64_t tick_count;
    nb_entity node, other; // for a test's own use
};

static nb_result rig_tick(const nb_context *context, void *user) {
    stage_rig *s = user;
    ++s->tick_count;
    if (s->tick != NULL) s->tick(s, context);
    return NB_OK;
}

static inline void scene_open_desc(stage_rig *s, nb_engine_desc engine, nb_scene_desc desc) {
    memset(s, 0, sizeof *s);
    rig_open_desc(&s->r, engine);
    desc.hooks = test_hooks(&s->r.log, &s->r.heap);
    attach(&s->r, (nb_module_desc){.name = "driver", .tick = rig_tick, .user = s});
    assert_int_equal(nb_scene_create(s->r.engine, &desc, &s->scene), NB_OK);
    s->world = nb_engine_world(s->r.engine);
    s->table = nb_scene_table(s->scene);
}

static inline void scene_open(stage_rig *s, uint32_t node_count_max) {
    scene_open_desc(s, rig_desc(0), (nb_scene_desc){.node_count_max = node_count_max});
}

static inline void scene_close(stage_rig *s) {
    assert_true(nb_store_is_valid(s->world));
    assert_int_equal(nb_scene_destroy(s->scene), NB_OK);
    rig_close(&s->r);
}

static inline void frame(stage_rig *s, uint64_t delta_ns) {
    assert_int_equal(nb_engine_frame_delta(s->r.engine, delta_ns), NB_OK);
}

// --- nodes ---

static inline nb_node_desc node_desc(nb_entity parent, float x, float y, float z) {
    return (nb_node_desc){.parent = parent, .local = {.position = {x, y, z}, .scale = 1.0f, .rotation = {0, 0, 0, 1}}};
}

static inline nb_entity spawn(stage_rig *s, nb_entity parent, float x) {
    nb_node_desc desc = node_desc(parent, x, 0, 0);
    nb_entity node = {0};
    assert_int_equal(nb_scene_spawn(s->scene, &desc, &node), NB_OK);
    return node;
}

static inline uint32_t node_count(const stage_rig *s) { return nb_store_row_count(s->world, s->table); }

static inline bool is_live(const stage_rig *s, nb_entity node) {
    uint32_t row = 0;
    return nb_store_find(s->world, node, &row) == NB_OK;
}

static inline const nb_matrix34 *drawn(const stage_rig *s, nb_entity node) {
    uint32_t row = 0;
    assert_int_equal(nb_store_find(s->world, node, &row), NB_OK);
    return NB_STORE_ROW(s->world, s->table, NB_SCENE_WORLD, nb_matrix34, row);
}

static inline void assert_drawn_at(const stage_rig *s, nb_entity node, double x, double y, double z) {
    const double at[3] = {x, y, z};
    for (int i = 0; i < 3; ++i) {
        double is = (double)drawn(s, node)->m[4 * i + 3];
        if (fabs(is - at[i]) > 1e-4) fail_msg("axis %d: %g, not %g", i, is, at[i]);
    }
}

static inline nb_scene_stats scene_stats(const stage_rig *s) { return nb_scene_stats_get(s->scene); }

// Of all world poses.
static inline uint64_t drawn_hash(const stage_rig *s) {
    const nb_matrix34 *rows = NB_STORE_ROWS(s->world, s->table, NB_SCENE_WORLD, nb_matrix34);
    return nb_hash64(rows, node_count(s) * sizeof *rows, 7);
}

// --- the plain way ---

typedef struct plain_matrix {
    double m[3][4];
} plain_matrix;

static inline plain_matrix plain_of(const nb_transform *t) {
    double x = (double)t->rotation[0], y = (double)t->rotation[1], z = (double)t->rotation[2],
           w = (double)t->rotation[3];
    double length = sqrt(x * x + y * y + z * z + w * w);
    if (length > 0)
        x /= length, y /= length, z /= length, w /= length;
    else
        w = 1;
    double s = (double)t->scale;
    plain_matrix out = {{{1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w), 0},
                         {2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w), 0},
                         {2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y), 0}}};
    for (int i = 0; i < 3; ++i) {
        for (int j = 0; j < 3; ++j) out.m[i][j] *= s;
        out.m[i][3] = (double)t->position[i];
    }
    return out;
}

static inline plain_matrix plain_times(const plain_matrix *a, const plain_matrix *b) {
    plain_matrix out;
    for (int i = 0; i < 3; ++i) {
        for (int j = 0; j < 4; ++j) {
            out.m[i][j] = j == 3 ? a->m[i][3] : 0;
            for (int k = 0; k < 3; ++k) out.m[i][j] += a->m[i][k] * b->m[k][j];
        }
    }
    return out;
}

static inline nb_transform plain_local(const stage_rig *s, uint32_t row, float alpha) {
    nb_transform now = *NB_STORE_ROW(s->world, s->table, NB_SCENE_LOCAL, nb_transform, row);
    nb_transform before = NB_STORE_ROWS_PREVIOUS(s->world, s->table, NB_SCENE_LOCAL, nb_transform)[row];
    nb_column_view marks;
    assert_int_equal(nb_store_teleport_view(s->world, s->table, &marks), NB_OK);
    if (((const uint8_t *)marks.base)[row] != 0) return now;
    double dot = 0;
    for (int i = 0; i < 4; ++i) dot += (double)now.rotation[i] * (double)before.rotation[i];
    nb_transform out = now;
    for (int i = 0; i < 4; ++i) {
        float b = dot < 0 ? -before.rotation[i] : before.rotation[i];
        out.rotation[i] = b + (now.rotation[i] - b) * alpha;
    }
    for (int i = 0; i < 3; ++i) out.position[i] = before.position[i] + (now.position[i] - before.position[i]) * alpha;
    out.scale = before.scale + (now.scale - before.scale) * alpha;
    return out;
}

// Recursive on purpose; *depth is how many are above.
static inline plain_matrix plain_world(const stage_rig *s, uint32_t row, float alpha, uint32_t *depth) {
    nb_transform local = plain_local(s, row, alpha);
    plain_matrix own = plain_of(&local);
    uint32_t above = 0;
    *depth = 0;
    nb_entity parent = *NB_STORE_ROW(s->world, s->table, NB_SCENE_PARENT, nb_entity, row);
    if (nb_store_find(s->world, parent, &above) != NB_OK) return own;
    plain_matrix from = plain_world(s, above, alpha, depth);
    *depth += 1;
    return plain_times(&from, &own);
}

// Every pose that was drawn is that of the plain way, but for what floats lose.
static inline void assert_drawn_right(const stage_rig *s, float alpha) {
    for (uint32_t row = 0; row < node_count(s); ++row) {
        uint32_t depth = 0;
        plain_matrix wanted = plain_world(s, row, alpha, &depth);
        const nb_matrix34 *is = NB_STORE_ROW(s->world, s->table, NB_SCENE_WORLD, nb_matrix34, row);
        double size = 1;
        for (int i = 0; i < 12; ++i) size = fmax(size, fabs(wanted.m[i / 4][i % 4]));
        for (int i = 0; i < 12; ++i) {
            if (fabs((double)is->m[i] - wanted.m[i / 4][i % 4]) <= 2e-5 * size * (depth + 1)) continue;
            fail_msg("row %u, depth %u, element %d: %.9g, not %.9g", row, depth, i, (double)is->m[i],
                     wanted.m[i / 4][i % 4]);
        }
    }
}

static inline float frame_alpha(const stage_rig *s) { return nb_loop_alpha_f32(nb_engine_loop(s->r.engine)); }

// --- a game of chance: what it does depends on the tick and on what is simulated ---

static inline float any_float(uint64_t *random, float low, float high) {
    return low + (high - low) * (float)(test_random(random) % 65536) / 65536.0f;
}

static inline nb_transform any_transform(uint64_t *random) {
    nb_transform t = {.scale = any_float(random, 0.8f, 1.2f)};
    for (int i = 0; i < 3; ++i) t.position[i] = any_float(random, -10, 10);
    for (int i = 0; i < 4; ++i) t.rotation[i] = any_float(random, -1, 1);
    return t;
}

static inline nb_entity any_node(const stage_rig *s, uint64_t *random) {
    uint32_t count = node_count(s);
    return count != 0 ? nb_store_entity(s->world, s->table, (uint32_t)(test_random(random) % count)) : (nb_entity){0};
}

static inline void any_staged(stage_rig *s, nb_store_stage *stage, uint64_t *random) {
    nb_node_desc desc = {.local = any_transform(random)};
    nb_staged last = {0};
    if (test_random(random) % 4 != 0) desc.parent = any_node(s, random);
    uint32_t below_count = (uint32_t)(test_random(random) % 3);
    for (uint32_t i = 0; i <= below_count; ++i) {
        // Refused where the parent is deep.
        if (nb_scene_stage(s->scene, stage, &desc, &last) != NB_OK) return;
        desc = (nb_node_desc){.parent_staged = last, .local = any_transform(random)};
    }
}

static inline void any_action(stage_rig *s, nb_store_stage *stage, uint64_t *random) {
    nb_entity node = any_node(s, random), other = any_node(s, random);
    uint32_t what = (uint32_t)(test_random(random) % 16);
    if (what < 3 || node_count(s) < 20) {
        any_staged(s, stage, random);
    } else if (what == 3) {
        nb_scene_despawn(s->scene, node);
    } else if (what == 4) {
        nb_store_stage_despawn(stage, node); // its children are orphans until the next tick ends
    } else if (what < 8) {
        nb_entity parent = test_random(random) % 4 != 0 ? other : (nb_entity){0};
        nb_scene_parent_set(s->scene, node, parent, (nb_scene_keep)(test_random(random) % 2));
    } else if (what == 8) {
        nb_store_teleport(s->world, node);
        *nb_scene_local_write(s->scene, node) = any_transform(random);
    } else {
        nb_transform *local = nb_scene_local_write(s->scene, node);
        local->position[test_random(random) % 3] += any_float(random, -2, 2);
        *local = nb_transform_turn(*local, any_float(random, -1, 1), 0.1f, 0.0f);
    }
}

static inline void game_tick(stage_rig *s, const nb_context *context) {
    uint64_t random = s->seed * 1000003 + context->tick->index;
    for (uint32_t i = 0; i < context->commands.count; ++i) random += context->commands.events[i].code * 77;
    nb_store_stage *stage = nb_context_stage(context, 0);
    if (context->tick->index % 3 == 2) return; // some ticks change nothing
    uint32_t count = (uint32_t)(test_random(&random) % 12);
    for (uint32_t i = 0; i < count; ++i) any_action(s, stage, &random);
}

static inline void game_fill(stage_rig *s, uint32_t count) {
    uint64_t random = s->seed;
    s->tick = game_tick;
    for (uint32_t i = 0; i < count; ++i) {
        nb_node_desc desc = {.local = any_transform(&random)};
        if (i % 8 != 0) desc.parent = any_node(s, &random);
        nb_entity node;
        nb_scene_spawn(s->scene, &desc, &node);
    }
}
