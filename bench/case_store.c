// SPDX-License-Identifier: MIT
// Tables of columns: what they cost beside bare arrays, and the hash of a tick in which little changed.

#include "bench.h"

#include <nebula/hash.h>
#include <nebula/store.h>

#include <stdlib.h>
#include <string.h>

typedef struct vec3 {
    float x, y, z;
} vec3;

enum { POSITION, VELOCITY, HEALTH, COLUMNS };

static const nb_column_desc columns[COLUMNS] = {
    {.name = "position", .size_bytes = sizeof(vec3)},
    {.name = "velocity", .size_bytes = sizeof(vec3)},
    {.name = "health", .size_bytes = sizeof(uint32_t)},
};

// 10,000 entities: a large match; their two columns stay in a second-level cache.
#define ROWS 10000
// Passes of one run: some ten milliseconds.
#define PASSES 1000
#define TURNOVER 500
#define TICKS 200
// One in a hundred.
#define CHANGED (ROWS / 100)

typedef struct world_fixture {
    nb_store *world;
    nb_table table;
    vec3 *position, *velocity; // the bare arrays
    uint32_t *health;
    uint32_t count; // of the bare arrays
    unsigned char stage_memory[TURNOVER * 128];
} world_fixture;

static void close_fixture(void *context) {
    world_fixture *fixture = context;
    nb_store_destroy(fixture->world);
    free(fixture->position);
    free(fixture->velocity);
    free(fixture->health);
    free(fixture);
}

static bool fill(world_fixture *fixture) {
    nb_table_desc desc = {.name = "units", .row_count_max = 2 * ROWS, .columns = columns, .column_count = COLUMNS};
    if (nb_store_create(NULL, &fixture->world) != NB_OK) return false;
    if (nb_store_table_add(fixture->world, &desc, &fixture->table) != NB_OK) return false;
    uint64_t random = 3;
    for (uint32_t i = 0; i < ROWS; ++i) {
        nb_entity entity;
        if (nb_store_spawn(fixture->world, fixture->table, &entity) != NB_OK) return false;
        vec3 velocity = {(float)(bench_random(&random) % 100), 1.0f, 2.0f};
        fixture->position[i] = (vec3){0};
        fixture->velocity[i] = *NB_STORE_ROW_WRITE(fixture->world, fixture->table, VELOCITY, vec3, i) = velocity;
        fixture->health[i] = *NB_STORE_ROW_WRITE(fixture->world, fixture->table, HEALTH, uint32_t, i) = i;
    }
    fixture->count = ROWS;
    return true;
}

static void *open_fixture(void) {
    world_fixture *fixture = calloc(1, sizeof *fixture);
    if (!fixture) return NULL;
    // As the world aligns its columns, so that both loops are the same to the machine.
    fixture->position = aligned_alloc(64, sizeof(vec3) * 2 * ROWS);
    fixture->velocity = aligned_alloc(64, sizeof(vec3) * 2 * ROWS);
    fixture->health = aligned_alloc(64, sizeof(uint32_t) * 2 * ROWS);
    if (fixture->position && fixture->velocity && fixture->health && fill(fixture)) return fixture;
    close_fixture(fixture);
    return NULL;
}

// --- world.iterate ---

static bool iterate_nebula(void *context, const void *argument, double *values) {
    world_fixture *fixture = context;
    (void)argument;
    uint64_t start_ns = bench_now_ns();
    for (uint32_t pass = 0; pass < PASSES; ++pass) {
        const vec3 *velocity = NB_STORE_ROWS(fixture->world, fixture->table, VELOCITY, vec3);
        vec3 *position = NB_STORE_ROWS_WRITE(fixture->world, fixture->table, POSITION, vec3);
        NB_STORE_EACH_ROW(row, fixture->world, fixture->table) {
            position[row].x += velocity[row].x * 0.016f;
            position[row].y += velocity[row].y * 0.016f;
            position[row].z += velocity[row].z * 0.016f;
        }
        bench_keep(position);
        nb_store_version_advance(fixture->world);
    }
    values[0] = (double)(bench_now_ns() - start_ns) / ((double)PASSES * ROWS);
    return nb_store_row_count(fixture->world, fixture->table) == ROWS;
}

static bool iterate_bare(void *context, const void *argument, double *values) {
    world_fixture *fixture = context;
    (void)argument;
    uint64_t start_ns = bench_now_ns();
    for (uint32_t pass = 0; pass < PASSES; ++pass) {
        const vec3 *velocity = fixture->velocity;
        vec3 *position = fixture->position;
        for (uint32_t row = 0, end = fixture->count; row < end; ++row) {
            position[row].x += velocity[row].x * 0.016f;
            position[row].y += velocity[row].y * 0.016f;
            position[row].z += velocity[row].z * 0.016f;
        }
        bench_keep(position);
    }
    values[0] = (double)(bench_now_ns() - start_ns) / ((double)PASSES * ROWS);
    return fixture->count == ROWS;
}

// --- world.spawn_despawn ---

static bool turn_over(world_fixture *fixture, nb_store_stage *stage, uint64_t *random) {
    nb_store_stage *stages[] = {stage};
    bool is_good = nb_store_tick_begin(fixture->world) == NB_OK;
    for (uint32_t i = 0; is_good && i < TURNOVER; ++i) {
        nb_staged staged;
        // A step of 17 and 8,000 rows: no row twice in one tick.
        uint32_t row = (uint32_t)(*random % 1000) + i * 17;
        is_good = nb_store_stage_despawn(stage, nb_store_entity(fixture->world, fixture->table, row)) == NB_OK &&
                  nb_store_stage_spawn(stage, fixture->table, &staged) == NB_OK;
        if (is_good) *NB_STORE_STAGED_WRITE(stage, staged, HEALTH, uint32_t) = i;
    }
    is_good = is_good && nb_store_apply(fixture->world, stages, 1) == NB_OK;
    is_good = nb_store_tick_end(fixture->world) == NB_OK && is_good;
    bench_random(random);
    return nb_store_stage_reset(stage) == NB_OK && is_good;
}

static bool turnover_nebula(void *context, const void *argument, double *values) {
    world_fixture *fixture = context;
    (void)argument;
    nb_store_stage stage;
    nb_store_stage_desc desc = {.memory = fixture->stage_memory, .size_bytes = sizeof fixture->stage_memory};
    uint64_t random = 4;
    bool is_good = nb_store_stage_init(&stage, fixture->world, &desc) == NB_OK;
    uint64_t start_ns = bench_now_ns();
    for (uint32_t tick = 0; is_good && tick < TICKS; ++tick) is_good = turn_over(fixture, &stage, &random);
    values[0] = (double)(bench_now_ns() - start_ns) / ((double)TICKS * TURNOVER);
    return is_good && nb_store_row_count(fixture->world, fixture->table) == ROWS;
}

// The floor: swap-remove and append, at once, without handles, order or marks.
static bool turnover_bare(void *context, const void *argument, double *values) {
    world_fixture *fixture = context;
    (void)argument;
    uint64_t random = 4;
    uint64_t start_ns = bench_now_ns();
    for (uint32_t tick = 0; tick < TICKS; ++tick) {
        for (uint32_t i = 0; i < TURNOVER; ++i) {
            uint32_t row = (uint32_t)(random % 1000) + i * 17, last = fixture->count - 1;
            fixture->position[row] = fixture->position[last];
            fixture->velocity[row] = fixture->velocity[last];
            fixture->health[row] = fixture->health[last];
            fixture->position[last] = fixture->velocity[last] = (vec3){0};
            fixture->health[last] = i;
            bench_keep(fixture);
        }
        bench_random(&random);
    }
    values[0] = (double)(bench_now_ns() - start_ns) / ((double)TICKS * TURNOVER);
    return fixture->count == ROWS;
}

// --- hash.tick ---

// Microseconds to change one row in a hundred, `step` apart, and hash the world.
static double hash_ticks(world_fixture *fixture, uint32_t step, uint64_t *sum) {
    uint64_t start_ns = bench_now_ns();
    for (uint32_t tick = 0; tick < TICKS; ++tick) {
        for (uint32_t i = 0; i < CHANGED; ++i) {
            uint32_t row = (tick * 64 + i * step) % ROWS;
            NB_STORE_ROW_WRITE(fixture->world, fixture->table, POSITION, vec3, row)->x += 1.0f;
        }
        *sum += nb_store_hash(fixture->world);
    }
    return (double)(bench_now_ns() - start_ns) * 1e-3 / TICKS;
}

static bool hash_nebula(void *context, const void *argument, double *values) {
    uint64_t sum = 0;
    (void)argument;
    values[0] = hash_ticks(context, 1, &sum);
    values[1] = hash_ticks(context, ROWS / CHANGED, &sum);
    bench_keep((const void *)(uintptr_t)sum);
    return sum != 0;
}

// The same writes, then every byte hashed.
static double hash_ticks_bare(world_fixture *fixture, uint32_t step, uint64_t *sum) {
    uint64_t start_ns = bench_now_ns();
    for (uint32_t tick = 0; tick < TICKS; ++tick) {
        for (uint32_t i = 0; i < CHANGED; ++i) fixture->position[(tick * 64 + i * step) % ROWS].x += 1.0f;
        *sum += nb_hash64(fixture->position, sizeof(vec3) * ROWS, 0);
        *sum += nb_hash64(fixture->velocity, sizeof(vec3) * ROWS, 0);
        *sum += nb_hash64(fixture->health, sizeof(uint32_t) * ROWS, 0);
    }
    return (double)(bench_now_ns() - start_ns) * 1e-3 / TICKS;
}

static bool hash_bare(void *context, const void *argument, double *values) {
    uint64_t sum = 0;
    (void)argument;
    values[0] = hash_ticks_bare(context, 1, &sum);
    values[1] = hash_ticks_bare(context, ROWS / CHANGED, &sum);
    bench_keep((const void *)(uintptr_t)sum);
    return sum != 0;
}

static const bench_row iterate_rows[] = {
    {.name = "world.iterate",
     .unit = "ns/row",
     .goals = {{.kind = BENCH_GOAL_PEER, .factor = 1.05, .peer = "bare array"}}},
};
static const bench_contender iterate_contenders[] = {
    {"nebula", BENCH_NEBULA, iterate_nebula, NULL, NULL},
    {"bare array", BENCH_PEER, iterate_bare, NULL, NULL},
};

static const bench_row turnover_rows[] = {{.name = "world.spawn_despawn", .unit = "ns/pair"}};
static const bench_contender turnover_contenders[] = {
    {"nebula", BENCH_NEBULA, turnover_nebula, NULL, NULL},
    {"bare array", BENCH_SHOWN, turnover_bare, NULL, NULL},
};

static const bench_row hash_rows[] = {
    {.name = "hash.tick", .unit = "us/tick, a run"},
    {.name = "hash.tick_scattered", .unit = "us/tick, scattered"},
};
static const bench_contender hash_contenders[] = {
    {"nebula", BENCH_NEBULA, hash_nebula, NULL, NULL},
    {"every byte", BENCH_PEER, hash_bare, NULL, NULL},
};

static const bench_case cases[] = {
    {"world.iterate", "10,000 rows: position += velocity * dt, one tick after the other", iterate_rows,
     BENCH_COUNT(iterate_rows), iterate_contenders, BENCH_COUNT(iterate_contenders), 3, open_fixture, close_fixture},
    {"world.spawn_despawn", "500 staged spawns and despawns a tick among 10,000 rows of three columns", turnover_rows,
     BENCH_COUNT(turnover_rows), turnover_contenders, BENCH_COUNT(turnover_contenders), 3, open_fixture, close_fixture},
    {"hash.tick", "10,000 entities of three columns, 1 % of one column changed a tick, and the hash of all", hash_rows,
     BENCH_COUNT(hash_rows), hash_contenders, BENCH_COUNT(hash_contenders), 3, open_fixture, close_fixture},
};

const bench_case *bench_world_cases(size_t *count) {
    *count = BENCH_COUNT(cases);
    return cases;
}
