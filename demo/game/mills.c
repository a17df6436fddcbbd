// SPDX-License-Identifier: MIT
// Windmills that turn.

#include "mills.h"

#include "../planet/angle.h"
#include "mill_site.h"
#include "nebula/random.h"

#define WIND_STREAM 331 // of nb_random

// Angles are whole numbers, so that none is lost however long it blows: 2^20 are a turn. A tick turns a hub by 1600 to
// 3199 of them, 5 to 11 turns in a minute of 60 ticks a second.
#define TURN_ONES (1u << 20)
#define SPEED_LEAST 1600u
#define SPEED_RANGE 1600u

// --- turns ---

double mills_turns(uint64_t seed, uint32_t number, uint64_t tick_count) {
    nb_random_block block = nb_random_words(nb_random_make(seed, 0, WIND_STREAM), number);
    uint64_t speed = SPEED_LEAST + block.words[0] % SPEED_RANGE;
    return (double)((block.words[1] + tick_count * speed) % TURN_ONES) / TURN_ONES;
}

// A turn around z.
static void turn_z(double turns, float rotation[4]) {
    double sine, cosine;
    angle_of(turns * 0.5, &sine, &cosine);
    rotation[0] = rotation[1] = 0.0f;
    rotation[2] = (float)sine;
    rotation[3] = (float)cosine;
}

// The turn that takes the axes to x, y and z, which are of length 1 and at right angles. Of the four ways to write it
// down the one that divides by the largest number.
static void turn_axes(vec3d x, vec3d y, vec3d z, float rotation[4]) {
    double sums[4] = {1 + x.x - y.y - z.z, 1 - x.x + y.y - z.z, 1 - x.x - y.y + z.z, 1 + x.x + y.y + z.z};
    double rows[4][4] = {{sums[0], x.y + y.x, x.z + z.x, y.z - z.y},
                         {x.y + y.x, sums[1], y.z + z.y, z.x - x.z},
                         {x.z + z.x, y.z + z.y, sums[2], x.y - y.x},
                         {y.z - z.y, z.x - x.z, x.y - y.x, sums[3]}};
    uint32_t best = 0;
    for (uint32_t i = 1; i < 4; ++i) best = sums[i] > sums[best] ? i : best;
    double scale = 0.5 / sqrt(sums[best]);
    for (uint32_t i = 0; i < 4; ++i) rotation[i] = (float)(rows[best][i] * scale);
}

static nb_result tick(const nb_context *context, void *user) {
    mills *m = user;
    for (uint32_t i = 0; i < m->hub_count; ++i) {
        nb_transform *hub = nb_scene_local_write(m->scene, m->hubs[i]);
        if (hub == NULL) return NB_ERR_STALE;
        turn_z(mills_turns(m->seed, i, context->tick->index + 1), hub->rotation);
    }
    return NB_OK;
}

// --- the beginning ---

static nb_result spawn(mills *m, mill_part part, nb_entity parent, nb_transform local, nb_entity *out) {
    nb_node_desc desc = {.parent = parent, .local = local};
    nb_result result = nb_scene_spawn(m->scene, &desc, out);
    uint32_t row = 0;
    if (result == NB_OK) result = nb_store_find(m->world, *out, &row);
    if (result == NB_OK)
        *NB_STORE_ROW_WRITE(m->world, nb_scene_table(m->scene), MILLS_PART, uint8_t, row) = (uint8_t)part;
    return result;
}

static nb_transform root_of(uint64_t seed, creature_home home) {
    mill_site site = mill_site_of(seed, home);
    nb_transform root = {.position = {(float)site.ground.x, (float)site.ground.y, (float)site.ground.z}, .scale = 1};
    turn_axes(vec3d_cross(site.up, site.facing), site.up, site.facing, root.rotation);
    return root;
}

static nb_transform hub_of(uint64_t seed, uint32_t number) {
    nb_transform hub = {.position = {0, MILLS_HUB_HEIGHT, MILLS_HUB_AHEAD}, .scale = 1};
    turn_z(mills_turns(seed, number, 0), hub.rotation);
    return hub;
}

static nb_transform blade_of(uint32_t number) {
    double turns = (double)number / MILLS_BLADES, sine, cosine;
    angle_of(turns, &sine, &cosine);
    nb_transform blade = {.position = {(float)-sine * MILLS_BLADE_MIDDLE, (float)cosine * MILLS_BLADE_MIDDLE, 0},
                          .scale = 1};
    turn_z(turns, blade.rotation);
    return blade;
}

// Part by part over all mills: the hubs, which every tick writes, are rows beside each other.
nb_result mills_populate(mills *m, const creature_home homes[HOME_COUNT]) {
    nb_entity roots[HOME_COUNT], towers[HOME_COUNT], blade;
    nb_result result = NB_OK;
    for (uint32_t i = 0; i < HOME_COUNT && result == NB_OK; ++i)
        result = spawn(m, MILL_ROOT, (nb_entity){0}, root_of(m->seed, homes[i]), &roots[i]);
    for (uint32_t i = 0; i < HOME_COUNT && result == NB_OK; ++i)
        result = spawn(m, MILL_TOWER, roots[i], nb_transform_identity(), &towers[i]);
    for (uint32_t i = 0; i < HOME_COUNT && result == NB_OK; ++i)
        result = spawn(m, MILL_HUB, towers[i], hub_of(m->seed, i), &m->hubs[i]);
    for (uint32_t i = 0; i < HOME_COUNT * MILLS_BLADES && result == NB_OK; ++i)
        result = spawn(m, MILL_BLADE, m->hubs[i / MILLS_BLADES], blade_of(i % MILLS_BLADES), &blade);
    if (result == NB_OK) m->hub_count = HOME_COUNT;
    return result;
}

nb_result mills_attach(mills *m, nb_engine *engine, uint64_t seed) {
    static const nb_column_desc part = {.name = "part", .size_bytes = 1};
    nb_scene_desc desc = {.name = "mills", .node_count_max = MILLS_NODES, .columns = &part, .column_count = 1};
    *m = (mills){.seed = seed, .world = nb_engine_world(engine)};
    nb_result result = nb_scene_create(engine, &desc, &m->scene);
    nb_module_desc module = {.name = "wind", .tick = tick, .user = m};
    return result == NB_OK ? nb_engine_module_attach(engine, &module, NULL) : result;
}

void mills_end(mills *m) {
    nb_scene_destroy(m->scene);
    m->scene = NULL;
}
