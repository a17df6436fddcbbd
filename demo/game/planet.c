// SPDX-License-Identifier: MIT
// What is simulated, tick by tick, and where it is between two ticks.

#include "planet.h"

#include "../planet/sun.h"
#include "nebula/random.h"
#include "nebula/rollback.h"

// Rows of a task: an animal takes some fifty nanoseconds, so a task takes as long as it takes to hand one out a few
// times over.
#define STEP_GRAIN 256

// How far apart explorers begin, in columns.
#define EXPLORER_GAP 8

// Animals nearer than this, in metres, have their feet put on the ground one by one.
#define FEET_DISTANCE 48.0

// What a correction may move the camera by before it jumps, in metres: a third of a second at full speed near
// the ground.
#define SNAP_DISTANCE 4.0f

// How far from a home a teleport may lead, and how far around it the first animals are, in columns: where one lands,
// there are some in sight.
#define JOURNEY_RANGE 64
#define HERD_RANGE 96

#define JOURNEY_STREAM 300 // of nb_random

// Half the angle the camera sees.
#define EYE_TAN_X 0.9f
#define EYE_TAN_Y 0.50625f

// The nearest that is drawn: this, and a share of the height.
#define EYE_NEAR 0.25
#define EYE_NEAR_SHARE 0.05

static const nb_column_desc creature_columns_desc[CREATURE_COLUMN_COUNT] = {
    [CREATURE_ID] = {.name = "id", .size_bytes = sizeof(uint32_t)},
    [CREATURE_FACE] = {.name = "face", .size_bytes = 1, .flags = NB_COLUMN_SNAPSHOT | NB_COLUMN_INTERPOLATE},
    [CREATURE_X] = {.name = "x", .size_bytes = sizeof(int32_t), .flags = NB_COLUMN_SNAPSHOT | NB_COLUMN_INTERPOLATE},
    [CREATURE_Y] = {.name = "y", .size_bytes = sizeof(int32_t), .flags = NB_COLUMN_SNAPSHOT | NB_COLUMN_INTERPOLATE},
    [CREATURE_Z] = {.name = "z", .size_bytes = sizeof(int32_t), .flags = NB_COLUMN_SNAPSHOT | NB_COLUMN_INTERPOLATE},
    [CREATURE_SPEED_X] = {.name = "speed_x", .size_bytes = sizeof(int32_t)},
    [CREATURE_SPEED_Z] = {.name = "speed_z", .size_bytes = sizeof(int32_t)},
    [CREATURE_HEADING] = {.name = "heading", .size_bytes = sizeof(uint16_t)},
    [CREATURE_ENERGY] = {.name = "energy", .size_bytes = sizeof(int32_t)},
    [CREATURE_IS_TELEPORTED] = {.name = "is_teleported", .size_bytes = 1, .flags = NB_COLUMN_LOCAL},
    [CREATURE_DECISION] = {.name = "decision", .size_bytes = 1, .flags = NB_COLUMN_LOCAL},
    [CREATURE_PLACE] = {.name = "place", .size_bytes = sizeof(vec3), .flags = NB_COLUMN_SNAPSHOT | NB_COLUMN_LOCAL},
    [CREATURE_LEVEL] = {.name = "level", .size_bytes = 1, .flags = NB_COLUMN_SNAPSHOT | NB_COLUMN_LOCAL},
    [CREATURE_BODY] = {.name = "body", .size_bytes = sizeof(pose_body), .flags = NB_COLUMN_SNAPSHOT | NB_COLUMN_LOCAL},
};

static const nb_column_desc explorer_columns[] = {
    {.name = "explorer", .size_bytes = sizeof(explorer), .flags = NB_COLUMN_INTERPOLATE}};
static const nb_column_desc census_columns[] = {{.name = "census", .size_bytes = sizeof(planet_census)}};
static const nb_column_desc eye_columns[] = {
    {.name = "eye", .size_bytes = sizeof(planet_eye), .flags = NB_COLUMN_SNAPSHOT}};

// --- ticks ---

// The columns of rows first to first + count - 1, to be written.
static creature_columns columns_write(const planet *p, uint32_t first, uint32_t count) {
    nb_world *w = p->world;
    nb_table t = p->creatures;
    return (creature_columns){
        .id = NB_RANGE_WRITE(w, t, CREATURE_ID, uint32_t, first, count),
        .face = NB_RANGE_WRITE(w, t, CREATURE_FACE, uint8_t, first, count),
        .x = NB_RANGE_WRITE(w, t, CREATURE_X, int32_t, first, count),
        .y = NB_RANGE_WRITE(w, t, CREATURE_Y, int32_t, first, count),
        .z = NB_RANGE_WRITE(w, t, CREATURE_Z, int32_t, first, count),
        .speed_x = NB_RANGE_WRITE(w, t, CREATURE_SPEED_X, int32_t, first, count),
        .speed_z = NB_RANGE_WRITE(w, t, CREATURE_SPEED_Z, int32_t, first, count),
        .heading = NB_RANGE_WRITE(w, t, CREATURE_HEADING, uint16_t, first, count),
        .energy = NB_RANGE_WRITE(w, t, CREATURE_ENERGY, int32_t, first, count),
        .is_teleported = NB_RANGE_WRITE(w, t, CREATURE_IS_TELEPORTED, uint8_t, first, count),
        .decision = NB_RANGE_WRITE(w, t, CREATURE_DECISION, uint8_t, first, count),
    };
}

typedef struct stepping {
    const planet *planet;
    uint64_t tick;
} stepping;

static void step_rows(nb_task_context *context, void *user, uint64_t begin, uint64_t end) {
    (void)context;
    const stepping *s = user;
    uint32_t first = (uint32_t)begin, count = (uint32_t)(end - begin);
    creature_columns columns = columns_write(s->planet, first, count);
    creatures_step(s->planet->seed, s->tick, &columns, first, count, &columns);
}

// A young one beside its parent: both as rows of small arrays, then the young as a staged row.
static bool stage_young(const planet *p, nb_stage *stage, const creature_columns *from, uint32_t parent, uint32_t id) {
    uint32_t ids[2] = {from->id[parent], 0};
    int32_t x[2] = {from->x[parent], 0}, y[2] = {from->y[parent], 0}, z[2] = {from->z[parent], 0};
    int32_t speed_x[2] = {from->speed_x[parent], 0}, speed_z[2] = {from->speed_z[parent], 0};
    int32_t energy[2] = {from->energy[parent], 0};
    uint16_t heading[2] = {from->heading[parent], 0};
    uint8_t face[2] = {from->face[parent], 0}, is_teleported[2] = {0}, decision[2] = {0};
    creature_columns both = {ids, face, x, y, z, speed_x, speed_z, heading, energy, is_teleported, decision};
    creature_spawn_young(id, 0, 1, &both);
    nb_staged young;
    if (nb_stage_spawn(stage, p->creatures, &young) != NB_OK) return false;
    *NB_STAGED_WRITE(stage, young, CREATURE_ID, uint32_t) = ids[1];
    *NB_STAGED_WRITE(stage, young, CREATURE_FACE, uint8_t) = face[1];
    *NB_STAGED_WRITE(stage, young, CREATURE_X, int32_t) = x[1];
    *NB_STAGED_WRITE(stage, young, CREATURE_Y, int32_t) = y[1];
    *NB_STAGED_WRITE(stage, young, CREATURE_Z, int32_t) = z[1];
    *NB_STAGED_WRITE(stage, young, CREATURE_HEADING, uint16_t) = heading[1];
    *NB_STAGED_WRITE(stage, young, CREATURE_ENERGY, int32_t) = energy[1];
    return true;
}

// Who is born, who dies, who jumped: in the order of the rows.
static void decide(const planet *p, const nb_context *context, uint32_t count) {
    nb_stage *stage = nb_context_stage(context, 0);
    planet_census *census = NB_SINGLETON_WRITE(p->world, p->census, 0, planet_census);
    creature_columns columns = columns_write(p, 0, count);
    for (uint32_t row = 0; row < count; ++row) {
        nb_entity entity = nb_world_entity(p->world, p->creatures, row);
        bool is_born = columns.decision[row] == CREATURE_BIRTH, is_dead = columns.decision[row] == CREATURE_DEATH;
        if (columns.is_teleported[row]) nb_world_teleport(p->world, entity);
        if (is_born && stage_young(p, stage, &columns, row, census->next_id++)) ++census->birth_count;
        if (is_dead && nb_stage_despawn(stage, entity) == NB_OK) ++census->death_count;
    }
}

static void mark_journey(const planet *p, uint32_t row, explorer *e) {
    ++e->journey;
    nb_world_teleport(p->world, nb_world_entity(p->world, p->explorers, row));
}

static void steer(const planet *p, const nb_context *context, explorer *explorers) {
    for (uint32_t i = 0; i < context->commands.count; ++i) {
        const nb_input_event *event = &context->commands.events[i];
        int32_t player = event->payload.i32[0];
        if (event->kind != NB_INPUT_COMMAND || player < 0 || player >= (int32_t)PLANET_EXPLORERS) continue;
        explorer *e = &explorers[player];
        if (explorer_command(e, p->seed, event)) mark_journey(p, (uint32_t)player, e);
    }
}

// To a herd, wherever on the planet.
static void jump(const planet *p, uint64_t tick, uint32_t row, explorer *e) {
    nb_random_block block = nb_random_words(nb_random_make(p->seed, tick, JOURNEY_STREAM), row);
    creature_home home = p->homes[block.words[3] % HOME_COUNT];
    int32_t x = home.x + (int32_t)(block.words[0] % (2 * JOURNEY_RANGE)) - JOURNEY_RANGE;
    int32_t z = home.z + (int32_t)(block.words[1] % (2 * JOURNEY_RANGE)) - JOURNEY_RANGE;
    sphere_cell at = sphere_fold(home.face, x, z, SPHERE_FACE_COLUMNS);
    explorer_put(e, p->seed, (creature_home){at.face, at.x, at.z}, 0);
    explorer_turn(e, (int32_t)(block.words[2] & 65535));
    mark_journey(p, row, e);
}

static void explore(const planet *p, uint64_t tick, uint32_t row, explorer *e) {
    bool is_journey = p->teleport_ticks != 0 && tick != 0 && tick % p->teleport_ticks == 0;
    if (is_journey) jump(p, tick, row, e);
    explorer_step(e, p->seed);
}

static nb_result tick(const nb_context *context, void *user) {
    planet *p = user;
    uint64_t index = context->tick->index;
    uint32_t count = nb_world_row_count(p->world, p->creatures);
    stepping s = {.planet = p, .tick = index};
    nb_parallel_desc rows = {.run = step_rows, .user = &s, .count = count, .grain = STEP_GRAIN};
    nb_result result = nb_parallel_for(context->scheduler, &rows, NULL);
    if (result != NB_OK) return NB_ERR_OS;
    decide(p, context, count);
    explorer *explorers = NB_COLUMN_WRITE(p->world, p->explorers, 0, explorer);
    steer(p, context, explorers);
    NB_EACH_ROW(row, p->world, p->explorers) explore(p, index, row, &explorers[row]);
    if (p->tick_count_max == 0 || index + 1 < p->tick_count_max) return NB_OK;
    nb_loop_pause(nb_engine_loop(context->engine)); // no further tick in this frame
    return nb_engine_stop(context->engine);
}

// --- between two ticks ---

static vec3d blend(vec3d before, vec3d now, double alpha) {
    return vec3d_add(before, vec3d_scale(vec3d_sub(now, before), alpha));
}

typedef struct drawing {
    const planet *planet;
    double alpha;
    vec3d eye;
} drawing;

static vec3d place_of_row(uint8_t face, int32_t x, int32_t y, int32_t z) {
    return sphere_position(face, (double)x / TERRAIN_ONE, (double)z / TERRAIN_ONE, (double)y / TERRAIN_ONE);
}

// Feet of animals that are near stand on the ground below each of them.
static void put_feet(const planet *p, vec3d place, pose_body *body) {
    double ground = vec3d_length(place) - SPHERE_RADIUS;
    for (uint32_t leg = 0; leg < POSE_LEG_COUNT; ++leg) {
        vec3 foot = vec3_add(body->feet, pose_leg_offset(body, leg));
        vec3d towards = vec3d_normal((vec3d){foot.x, foot.y, foot.z}, place);
        double below = terrain_height_towards(p->seed, towards) + 1 - ground;
        body->ground[leg] = (float)(below < -POSE_REACH ? -POSE_REACH : below > POSE_REACH ? POSE_REACH : below);
    }
}

static void draw_rows(nb_task_context *context, void *user, uint64_t begin, uint64_t end) {
    (void)context;
    const drawing *d = user;
    nb_world *w = d->planet->world;
    nb_table t = d->planet->creatures;
    const uint8_t *face = NB_COLUMN(w, t, CREATURE_FACE, uint8_t);
    const uint8_t *face0 = NB_COLUMN_PREVIOUS(w, t, CREATURE_FACE, uint8_t);
    const int32_t *x = NB_COLUMN(w, t, CREATURE_X, int32_t), *x0 = NB_COLUMN_PREVIOUS(w, t, CREATURE_X, int32_t);
    const int32_t *y = NB_COLUMN(w, t, CREATURE_Y, int32_t), *y0 = NB_COLUMN_PREVIOUS(w, t, CREATURE_Y, int32_t);
    const int32_t *z = NB_COLUMN(w, t, CREATURE_Z, int32_t), *z0 = NB_COLUMN_PREVIOUS(w, t, CREATURE_Z, int32_t);
    const uint32_t *id = NB_COLUMN(w, t, CREATURE_ID, uint32_t);
    uint32_t first = (uint32_t)begin, count = (uint32_t)(end - begin);
    vec3 *place = NB_RANGE_WRITE(w, t, CREATURE_PLACE, vec3, first, count);
    pose_body *body = NB_RANGE_WRITE(w, t, CREATURE_BODY, pose_body, first, count);
    for (uint32_t row = first; row < first + count; ++row) {
        vec3d before = place_of_row(face0[row], x0[row], y0[row], z0[row]);
        vec3d now = place_of_row(face[row], x[row], y[row], z[row]), at = blend(before, now, d->alpha);
        vec3d up = vec3d_normal(at, (vec3d){0, 1, 0}), step = vec3d_sub(now, before);
        // Along the ground; who stands looks along its face.
        step = vec3d_sub(step, vec3d_scale(up, vec3d_dot(step, up)));
        vec3d along = sphere_axis(face[row], 0);
        along = vec3d_sub(along, vec3d_scale(up, vec3d_dot(along, up)));
        bool is_moving = vec3d_length(step) > 1e-3;
        place[row] = vec3_of(at);
        body[row] =
            (pose_body){.feet = place[row],
                        .up = vec3_of(up),
                        .forward = vec3_of(vec3d_normal(is_moving ? step : along, (vec3d){1, 0, 0})),
                        .phase = (float)((x[row] + z[row]) % (64 * TERRAIN_ONE)) / TERRAIN_ONE + (float)(id[row] % 16),
                        .is_moving = is_moving ? 1.0f : 0.0f};
        vec3d line = vec3d_sub(at, d->eye);
        if (vec3d_dot(line, line) < FEET_DISTANCE * FEET_DISTANCE) put_feet(d->planet, at, &body[row]);
    }
}

// --- corrections ---

static void place_of(const explorer *e, float out[3]) {
    vec3d at = explorer_position(e);
    out[0] = (float)at.x;
    out[1] = (float)at.y;
    out[2] = (float)at.z;
}

// Before the ticks that got other input are simulated again,
static nb_result predict(const nb_context *context, void *user) {
    planet *p = user;
    (void)context;
    const explorer *explorers = NB_COLUMN(p->world, p->explorers, 0, explorer);
    NB_EACH_ROW(row, p->world, p->explorers) place_of(&explorers[row], p->predicted[row]);
    return NB_OK;
}

// and after it.
static nb_result correct(const nb_context *context, void *user) {
    planet *p = user;
    uint64_t rollback_count = nb_engine_rollback_stats(context->engine).rollback_count;
    if (rollback_count == p->rollback_count) return NB_OK;
    p->rollback_count = rollback_count;
    const explorer *explorers = NB_COLUMN(p->world, p->explorers, 0, explorer);
    NB_EACH_ROW(row, p->world, p->explorers) {
        float after[3];
        place_of(&explorers[row], after);
        nb_smooth_correct(&p->smooth, row, p->predicted[row], after);
    }
    return NB_OK;
}

// --- what is drawn ---

static uint32_t nearest_home(const planet *p, vec3d up) {
    uint32_t best = 0;
    double nearest = -2;
    for (uint32_t i = 0; i < HOME_COUNT; ++i) {
        double cosine = vec3d_dot(home_direction(p->homes[i]), up);
        if (cosine > nearest) best = i, nearest = cosine;
    }
    return best;
}

// From the nearest that is drawn to behind the horizon, with the mountains there.
static void set_depths(double altitude, double above, camera *c) {
    double high = SPHERE_RADIUS + altitude, limb = SPHERE_RADIUS + RELIEF_MIN, top = SPHERE_RADIUS + TERRAIN_Y_END;
    double to_limb = high > limb ? sqrt(high * high - limb * limb) : 0;
    c->near = (float)(EYE_NEAR + EYE_NEAR_SHARE * (above > 0 ? above : 0));
    c->far = (float)(to_limb + sqrt(top * top - limb * limb));
}

// Where the camera is between two ticks; corrections are blended in.
static planet_eye eye_between(planet *p, const nb_context *context) {
    double alpha = context->time->alpha;
    const explorer *now = NB_COLUMN(p->world, p->explorers, 0, explorer) + p->player;
    const explorer *before = NB_COLUMN_PREVIOUS(p->world, p->explorers, 0, explorer) + p->player;
    vec3d exact = blend(explorer_position(before), explorer_position(now), alpha);
    float at[3] = {(float)exact.x, (float)exact.y, (float)exact.z}, smooth[3] = {at[0], at[1], at[2]};
    nb_smooth_advance(&p->smooth, context->time->delta_ns);
    nb_smooth_apply(&p->smooth, p->player, smooth);
    // Only what the correction adds: a float is too coarse for the place itself.
    vec3d moved = {smooth[0] - at[0], smooth[1] - at[1], smooth[2] - at[2]}, position = vec3d_add(exact, moved);
    vec3d gaze = blend(explorer_gaze(before), explorer_gaze(now), alpha), up = vec3d_normal(position, now->up);
    uint64_t tick = nb_loop_tick_count(nb_engine_loop(context->engine));
    vec3d sun = sun_direction((double)tick + alpha);
    planet_eye eye = {.position = position,
                      .sun = vec3_of(sun),
                      .altitude = vec3d_length(position) - SPHERE_RADIUS,
                      .ground = now->ground,
                      .home = nearest_home(p, up),
                      .journey = now->journey,
                      .tick = tick};
    double light = vec3d_dot(up, sun) * 4 + 0.5;
    eye.daylight = (float)(light < 0 ? 0 : light > 1 ? 1 : light);
    eye.camera = (camera){.position = vec3_of(position),
                          .forward = vec3_normal(vec3_of(gaze), vec3_of(now->forward)),
                          .up = vec3_of(up),
                          .tan_half_x = EYE_TAN_X,
                          .tan_half_y = EYE_TAN_Y};
    set_depths(eye.altitude, eye.altitude - eye.ground, &eye.camera);
    return eye;
}

static nb_result transform(const nb_context *context, void *user) {
    planet *p = user;
    planet_eye eye = eye_between(p, context);
    drawing d = {.planet = p, .alpha = context->time->alpha, .eye = eye.position};
    nb_parallel_desc rows = {
        .run = draw_rows, .user = &d, .count = nb_world_row_count(p->world, p->creatures), .grain = STEP_GRAIN};
    if (nb_parallel_for(context->scheduler, &rows, NULL) != NB_OK) return NB_ERR_OS;
    *NB_SINGLETON_WRITE(p->world, p->eye, 0, planet_eye) = eye;
    return NB_OK;
}

// --- the beginning ---

static nb_result declare(planet *p) {
    nb_table_desc creatures = {.name = "creatures",
                               .row_count_max = PLANET_CREATURES_MAX,
                               .columns = creature_columns_desc,
                               .column_count = CREATURE_COLUMN_COUNT};
    nb_table_desc explorers = {
        .name = "explorers", .row_count_max = PLANET_EXPLORERS, .columns = explorer_columns, .column_count = 1};
    nb_table_desc census = {.name = "census", .columns = census_columns, .column_count = 1, .is_singleton = true};
    nb_table_desc eye = {
        .name = "eye", .columns = eye_columns, .column_count = 1, .is_singleton = true, .is_local = true};
    nb_result result = nb_world_table_add(p->world, &creatures, &p->creatures);
    if (result == NB_OK) result = nb_world_table_add(p->world, &explorers, &p->explorers);
    if (result == NB_OK) result = nb_world_table_add(p->world, &census, &p->census);
    if (result == NB_OK) result = nb_world_table_add(p->world, &eye, &p->eye);
    return result;
}

static nb_result populate_creatures(planet *p) {
    planet_census *census = NB_SINGLETON_WRITE(p->world, p->census, 0, planet_census);
    for (uint32_t i = 0; i < PLANET_CREATURES_START; ++i) {
        nb_entity entity;
        nb_result result = nb_world_spawn(p->world, p->creatures, &entity);
        if (result != NB_OK) return result;
        creature_columns columns = columns_write(p, i, 1);
        creature_spawn(p->seed, 0, census->next_id++, p->homes[i % HOME_COUNT], HERD_RANGE, i, &columns);
    }
    return NB_OK;
}

// Side by side at the first herd, looking the same way.
static nb_result populate_explorers(planet *p) {
    for (uint32_t row = 0; row < PLANET_EXPLORERS; ++row) {
        nb_entity entity;
        nb_result result = nb_world_spawn(p->world, p->explorers, &entity);
        if (result != NB_OK) return result;
        explorer *e = NB_ROW_WRITE(p->world, p->explorers, 0, explorer, row);
        creature_home home = p->homes[0];
        sphere_cell at = sphere_fold(home.face, home.x, home.z + (int32_t)row * EXPLORER_GAP, SPHERE_FACE_COLUMNS);
        explorer_put(e, p->seed, (creature_home){at.face, at.x, at.z}, 0);
        e->pace = PLANET_PACE_MAX;
    }
    return NB_OK;
}

nb_result planet_populate(planet *p) {
    nb_result result = populate_creatures(p);
    if (result == NB_OK) result = populate_explorers(p);
    return result == NB_OK ? mills_populate(&p->mills, p->homes) : result;
}

nb_result planet_attach(planet *p, nb_engine *engine) {
    p->world = nb_engine_world(engine);
    for (uint32_t i = 0; i < HOME_COUNT; ++i) p->homes[i] = home_of(p->seed, i);
    nb_result result = p->world != NULL ? declare(p) : NB_ERR_MEMORY;
    nb_smooth_desc smooth = {.row_count = PLANET_EXPLORERS,
                             .float_count = 3,
                             .memory = p->smooth_memory,
                             .left_ns = p->smooth_left_ns,
                             .snap_distance = SNAP_DISTANCE};
    if (result == NB_OK) result = nb_smooth_init(&p->smooth, &smooth);
    nb_module_desc module = {.name = "planet", .tick = tick, .user = p};
    module.handlers[NB_PHASE_NETWORK_RECONCILIATION] = predict;
    module.handlers[NB_PHASE_RANDOM_SEED] = correct;
    module.handlers[NB_PHASE_TRANSFORMS] = transform;
    if (result == NB_OK) result = nb_engine_module_attach(engine, &module, NULL);
    return result == NB_OK ? mills_attach(&p->mills, engine, p->seed) : result;
}

void planet_end(planet *p) { mills_end(&p->mills); }
