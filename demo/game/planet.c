// SPDX-License-Identifier: MIT
// The tables of the planet and their tick.

#include "planet.h"

#include "nebula/random.h"
#include "planet_transforms.h"

// Rows of a task: an animal takes some fifty nanoseconds, so a task takes as long as it takes to hand one out a few
// times over.
#define STEP_GRAIN 256

// How far apart explorers begin, in columns.
#define EXPLORER_GAP 8

// What a correction may move the camera by before it jumps, in metres: a third of a second at full speed near
// the ground.
#define SNAP_DISTANCE 4.0f

// How far from a home a teleport may lead, and how far around it the first animals are, in columns: where one lands,
// there are some in sight.
#define JOURNEY_RANGE 64
#define HERD_RANGE 96

#define JOURNEY_STREAM 300 // of nb_random

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
    nb_store *w = p->world;
    nb_table t = p->creatures;
    return (creature_columns){
        .id = NB_STORE_RANGE_WRITE(w, t, CREATURE_ID, uint32_t, first, count),
        .face = NB_STORE_RANGE_WRITE(w, t, CREATURE_FACE, uint8_t, first, count),
        .x = NB_STORE_RANGE_WRITE(w, t, CREATURE_X, int32_t, first, count),
        .y = NB_STORE_RANGE_WRITE(w, t, CREATURE_Y, int32_t, first, count),
        .z = NB_STORE_RANGE_WRITE(w, t, CREATURE_Z, int32_t, first, count),
        .speed_x = NB_STORE_RANGE_WRITE(w, t, CREATURE_SPEED_X, int32_t, first, count),
        .speed_z = NB_STORE_RANGE_WRITE(w, t, CREATURE_SPEED_Z, int32_t, first, count),
        .heading = NB_STORE_RANGE_WRITE(w, t, CREATURE_HEADING, uint16_t, first, count),
        .energy = NB_STORE_RANGE_WRITE(w, t, CREATURE_ENERGY, int32_t, first, count),
        .is_teleported = NB_STORE_RANGE_WRITE(w, t, CREATURE_IS_TELEPORTED, uint8_t, first, count),
        .decision = NB_STORE_RANGE_WRITE(w, t, CREATURE_DECISION, uint8_t, first, count),
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
static bool stage_young(const planet *p, nb_store_stage *stage, const creature_columns *from, uint32_t parent,
                        uint32_t id) {
    uint32_t ids[2] = {from->id[parent], 0};
    int32_t x[2] = {from->x[parent], 0}, y[2] = {from->y[parent], 0}, z[2] = {from->z[parent], 0};
    int32_t speed_x[2] = {from->speed_x[parent], 0}, speed_z[2] = {from->speed_z[parent], 0};
    int32_t energy[2] = {from->energy[parent], 0};
    uint16_t heading[2] = {from->heading[parent], 0};
    uint8_t face[2] = {from->face[parent], 0}, is_teleported[2] = {0}, decision[2] = {0};
    creature_columns both = {ids, face, x, y, z, speed_x, speed_z, heading, energy, is_teleported, decision};
    creature_spawn_young(id, 0, 1, &both);
    nb_staged young;
    if (nb_store_stage_spawn(stage, p->creatures, &young) != NB_OK) return false;
    *NB_STORE_STAGED_WRITE(stage, young, CREATURE_ID, uint32_t) = ids[1];
    *NB_STORE_STAGED_WRITE(stage, young, CREATURE_FACE, uint8_t) = face[1];
    *NB_STORE_STAGED_WRITE(stage, young, CREATURE_X, int32_t) = x[1];
    *NB_STORE_STAGED_WRITE(stage, young, CREATURE_Y, int32_t) = y[1];
    *NB_STORE_STAGED_WRITE(stage, young, CREATURE_Z, int32_t) = z[1];
    *NB_STORE_STAGED_WRITE(stage, young, CREATURE_HEADING, uint16_t) = heading[1];
    *NB_STORE_STAGED_WRITE(stage, young, CREATURE_ENERGY, int32_t) = energy[1];
    return true;
}

// Who is born, who dies, who jumped: in the order of the rows.
static void decide(const planet *p, const nb_context *context, uint32_t count) {
    nb_store_stage *stage = nb_context_stage(context, 0);
    planet_census *census = NB_STORE_SINGLETON_WRITE(p->world, p->census, 0, planet_census);
    creature_columns columns = columns_write(p, 0, count);
    for (uint32_t row = 0; row < count; ++row) {
        nb_entity entity = nb_store_entity(p->world, p->creatures, row);
        bool is_born = columns.decision[row] == CREATURE_BIRTH, is_dead = columns.decision[row] == CREATURE_DEATH;
        if (columns.is_teleported[row]) nb_store_teleport(p->world, entity);
        if (is_born && stage_young(p, stage, &columns, row, census->next_id++)) ++census->birth_count;
        if (is_dead && nb_store_stage_despawn(stage, entity) == NB_OK) ++census->death_count;
    }
}

static void mark_journey(const planet *p, uint32_t row, explorer *e) {
    ++e->journey;
    nb_store_teleport(p->world, nb_store_entity(p->world, p->explorers, row));
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
    uint32_t count = nb_store_row_count(p->world, p->creatures);
    stepping s = {.planet = p, .tick = index};
    nb_parallel_desc rows = {.run = step_rows, .user = &s, .count = count, .grain = STEP_GRAIN};
    nb_result result = nb_parallel_for(context->scheduler, &rows, NULL);
    if (result != NB_OK) return NB_ERR_OS;
    decide(p, context, count);
    explorer *explorers = NB_STORE_ROWS_WRITE(p->world, p->explorers, 0, explorer);
    steer(p, context, explorers);
    NB_STORE_EACH_ROW(row, p->world, p->explorers) explore(p, index, row, &explorers[row]);
    if (p->tick_count_max == 0 || index + 1 < p->tick_count_max) return NB_OK;
    nb_loop_pause(nb_engine_loop(context->engine)); // no further tick in this frame
    return nb_engine_stop(context->engine);
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
    nb_result result = nb_store_table_add(p->world, &creatures, &p->creatures);
    if (result == NB_OK) result = nb_store_table_add(p->world, &explorers, &p->explorers);
    if (result == NB_OK) result = nb_store_table_add(p->world, &census, &p->census);
    if (result == NB_OK) result = nb_store_table_add(p->world, &eye, &p->eye);
    return result;
}

static nb_result populate_creatures(planet *p) {
    planet_census *census = NB_STORE_SINGLETON_WRITE(p->world, p->census, 0, planet_census);
    for (uint32_t i = 0; i < PLANET_CREATURES_START; ++i) {
        nb_entity entity;
        nb_result result = nb_store_spawn(p->world, p->creatures, &entity);
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
        nb_result result = nb_store_spawn(p->world, p->explorers, &entity);
        if (result != NB_OK) return result;
        explorer *e = NB_STORE_ROW_WRITE(p->world, p->explorers, 0, explorer, row);
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
    module.handlers[NB_PHASE_NETWORK_RECONCILIATION] = planet_predict;
    module.handlers[NB_PHASE_RANDOM_SEED] = planet_correct;
    module.handlers[NB_PHASE_TRANSFORMS] = planet_transform;
    if (result == NB_OK) result = nb_engine_module_attach(engine, &module, NULL);
    return result == NB_OK ? mills_attach(&p->mills, engine, p->seed) : result;
}

void planet_end(planet *p) { mills_end(&p->mills); }
