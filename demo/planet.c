// SPDX-License-Identifier: MIT
// What is simulated, tick by tick, and where it is between two ticks.

#include "planet.h"

#include "nebula/random.h"
#include "nebula/rollback.h"
#include "wave.h"

// Rows of a task: an animal takes some fifty nanoseconds, so a task takes as long as it takes to hand one out a few
// times over.
#define STEP_GRAIN 256

// An explorer's height over the land and highest speed, in TERRAIN_ONE (a tick): 12 voxels a second.
#define EYE_HEIGHT (40 * TERRAIN_ONE)
#define EYE_SPEED (TERRAIN_ONE / 5)

// Where nobody steers: a circle in less than a minute. And how far apart explorers begin.
#define EXPLORER_TURN 20
#define EXPLORER_GAP (8 * TERRAIN_ONE)

// What a correction may move the camera by before it jumps, in voxels: a third of a second at full speed.
#define SNAP_DISTANCE 4.0f

// How far a teleport goes, and how far around the middle the first animals are, in voxels: where one lands, there are
// some in sight.
#define JOURNEY_RANGE 512
#define HERD_RANGE 640

#define JOURNEY_STREAM 300 // of nb_random

// Half the angle the camera sees, and how far.
#define EYE_TAN_X 0.9f
#define EYE_TAN_Y 0.5f
#define EYE_NEAR 0.5f
#define EYE_FAR 256.0f

static const nb_column_desc creature_columns_desc[CREATURE_COLUMN_COUNT] = {
    [CREATURE_ID] = {.name = "id", .size_bytes = sizeof(uint32_t)},
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
    uint8_t is_teleported[2] = {0}, decision[2] = {0};
    creature_columns both = {ids, x, y, z, speed_x, speed_z, heading, energy, is_teleported, decision};
    creature_spawn_young(id, 0, 1, &both);
    nb_staged young;
    if (nb_stage_spawn(stage, p->creatures, &young) != NB_OK) return false;
    *NB_STAGED_WRITE(stage, young, CREATURE_ID, uint32_t) = ids[1];
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

static int32_t height_at(uint64_t seed, int32_t x, int32_t z) {
    int32_t height = terrain_height(seed, terrain_voxel_of(x), terrain_voxel_of(z));
    return height > TERRAIN_SEA_Y ? height : TERRAIN_SEA_Y;
}

static int32_t within(int32_t value, int32_t low, int32_t high) {
    return value < low ? low : value > high ? high : value;
}

static void steer(const nb_context *context, explorer *explorers) {
    for (uint32_t i = 0; i < context->commands.count; ++i) {
        const nb_input_event *event = &context->commands.events[i];
        const int32_t *words = event->payload.i32;
        bool is_ours = event->kind == NB_INPUT_COMMAND && event->code == PLANET_STEER;
        if (!is_ours || words[0] < 0 || words[0] >= (int32_t)PLANET_EXPLORERS) continue;
        explorers[words[0]].turn = within(words[1], -PLANET_TURN_MAX, PLANET_TURN_MAX);
        explorers[words[0]].pace = within(words[2], 0, PLANET_PACE_MAX);
    }
}

static void jump(const planet *p, uint64_t tick, uint32_t row, explorer *e) {
    nb_random_block block = nb_random_words(nb_random_make(p->seed, tick, JOURNEY_STREAM), row);
    e->x = ((int32_t)(block.words[0] % (2 * JOURNEY_RANGE)) - JOURNEY_RANGE) * TERRAIN_ONE;
    e->z = ((int32_t)(block.words[1] % (2 * JOURNEY_RANGE)) - JOURNEY_RANGE) * TERRAIN_ONE;
    e->heading = block.words[2] & 65535;
    ++e->journey;
    nb_world_teleport(p->world, nb_world_entity(p->world, p->explorers, row));
}

static void explore(const planet *p, uint64_t tick, uint32_t row, explorer *e) {
    bool is_journey = p->teleport_ticks != 0 && tick != 0 && tick % p->teleport_ticks == 0;
    if (is_journey) jump(p, tick, row, e);
    int32_t speed = EYE_SPEED * e->pace / PLANET_PACE_MAX;
    e->heading = (e->heading + (uint32_t)e->turn) & 65535;
    e->x += wave(e->heading + 16384) * speed / 32768;
    e->z += wave(e->heading) * speed / 32768;
    int32_t wanted = height_at(p->seed, e->x, e->z) * TERRAIN_ONE + EYE_HEIGHT;
    e->y = is_journey ? wanted : e->y + (wanted - e->y) / 32;
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
    steer(context, explorers);
    NB_EACH_ROW(row, p->world, p->explorers) explore(p, index, row, &explorers[row]);
    if (p->tick_count_max == 0 || index + 1 < p->tick_count_max) return NB_OK;
    nb_loop_pause(nb_engine_loop(context->engine)); // no further tick in this frame
    return nb_engine_stop(context->engine);
}

// --- between two ticks ---

static float between(int32_t before, int32_t now, float alpha) {
    return ((float)before + (float)(now - before) * alpha) / (float)TERRAIN_ONE;
}

typedef struct drawing {
    const planet *planet;
    float alpha;
} drawing;

static void draw_rows(nb_task_context *context, void *user, uint64_t begin, uint64_t end) {
    (void)context;
    const drawing *d = user;
    nb_world *w = d->planet->world;
    nb_table t = d->planet->creatures;
    const int32_t *x = NB_COLUMN(w, t, CREATURE_X, int32_t), *x0 = NB_COLUMN_PREVIOUS(w, t, CREATURE_X, int32_t);
    const int32_t *y = NB_COLUMN(w, t, CREATURE_Y, int32_t), *y0 = NB_COLUMN_PREVIOUS(w, t, CREATURE_Y, int32_t);
    const int32_t *z = NB_COLUMN(w, t, CREATURE_Z, int32_t), *z0 = NB_COLUMN_PREVIOUS(w, t, CREATURE_Z, int32_t);
    const uint32_t *id = NB_COLUMN(w, t, CREATURE_ID, uint32_t);
    uint32_t first = (uint32_t)begin, count = (uint32_t)(end - begin);
    vec3 *place = NB_RANGE_WRITE(w, t, CREATURE_PLACE, vec3, first, count);
    pose_body *body = NB_RANGE_WRITE(w, t, CREATURE_BODY, pose_body, first, count);
    for (uint32_t row = first; row < first + count; ++row) {
        place[row] = (vec3){between(x0[row], x[row], d->alpha), between(y0[row], y[row], d->alpha),
                            between(z0[row], z[row], d->alpha)};
        vec3 step = {(float)(x[row] - x0[row]), 0, (float)(z[row] - z0[row])};
        float length = vec3_length(step);
        body[row] = (pose_body){.feet = place[row],
                                .forward = vec3_normal(step, (vec3){1, 0, 0}),
                                .phase = place[row].x + place[row].z + (float)(id[row] % 16),
                                .is_moving = length > 1 ? 1.0f : 0.0f};
    }
}

// --- corrections ---

static void place_of(const explorer *e, float out[3]) {
    out[0] = (float)e->x / TERRAIN_ONE;
    out[1] = (float)e->y / TERRAIN_ONE;
    out[2] = (float)e->z / TERRAIN_ONE;
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

static nb_result transform(const nb_context *context, void *user) {
    planet *p = user;
    float alpha = (float)context->time->alpha;
    drawing d = {.planet = p, .alpha = alpha};
    nb_parallel_desc rows = {
        .run = draw_rows, .user = &d, .count = nb_world_row_count(p->world, p->creatures), .grain = STEP_GRAIN};
    if (nb_parallel_for(context->scheduler, &rows, NULL) != NB_OK) return NB_ERR_OS;
    const explorer *now = NB_COLUMN(p->world, p->explorers, 0, explorer) + p->player;
    const explorer *before = NB_COLUMN_PREVIOUS(p->world, p->explorers, 0, explorer) + p->player;
    planet_eye *eye = NB_SINGLETON_WRITE(p->world, p->eye, 0, planet_eye);
    float at[3] = {between(before->x, now->x, alpha), between(before->y, now->y, alpha),
                   between(before->z, now->z, alpha)};
    nb_smooth_advance(&p->smooth, context->time->delta_ns);
    nb_smooth_apply(&p->smooth, p->player, at);
    vec3 ahead = {(float)wave(now->heading + 16384), -12000, (float)wave(now->heading)};
    *eye = (planet_eye){
        .camera = {{at[0], at[1], at[2]}, vec3_normal(ahead, (vec3){1, 0, 0}), EYE_TAN_X, EYE_TAN_Y, EYE_NEAR, EYE_FAR},
        .chunk = stream_chunk_of(terrain_voxel_of(now->x), terrain_voxel_of(now->y), terrain_voxel_of(now->z)),
        .place = {now->x, now->y, now->z},
        .journey = now->journey};
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
        creature_spawn(p->seed, 0, census->next_id++, 0, 0, HERD_RANGE, i, &columns);
    }
    return NB_OK;
}

// Side by side, looking the same way.
static nb_result populate_explorers(planet *p) {
    for (uint32_t row = 0; row < PLANET_EXPLORERS; ++row) {
        nb_entity entity;
        nb_result result = nb_world_spawn(p->world, p->explorers, &entity);
        if (result != NB_OK) return result;
        explorer *e = NB_ROW_WRITE(p->world, p->explorers, 0, explorer, row);
        e->z = (int32_t)row * EXPLORER_GAP;
        e->y = height_at(p->seed, e->x, e->z) * TERRAIN_ONE + EYE_HEIGHT;
        e->turn = EXPLORER_TURN;
        e->pace = PLANET_PACE_MAX;
    }
    return NB_OK;
}

nb_result planet_populate(planet *p) {
    nb_result result = populate_creatures(p);
    return result == NB_OK ? populate_explorers(p) : result;
}

nb_input_event planet_steer(uint32_t player, int32_t turn, int32_t pace) {
    nb_input_event event = {.kind = NB_INPUT_COMMAND, .code = PLANET_STEER};
    event.payload.i32[0] = (int32_t)player;
    event.payload.i32[1] = turn;
    event.payload.i32[2] = pace;
    return event;
}

nb_result planet_attach(planet *p, nb_engine *engine) {
    p->world = nb_engine_world(engine);
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
    return result == NB_OK ? nb_engine_module_attach(engine, &module, NULL) : result;
}
