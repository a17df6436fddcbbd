// SPDX-License-Identifier: MIT
// Synctest: what a tick costs that goes back eight ticks and comes again, against a tick alone, and against what one
// writes by hand: copies of the whole state, eight ticks again, a hash of each.

#include "bench.h"

#include <stdlib.h>
#include <string.h>

#include <nebula/engine.h>
#include <nebula/hash.h>
#include <nebula/synctest.h>

#define ROWS 4096u
#define TICK_COUNT 500u
#define DEPTH 8u

typedef struct match {
    nb_store *world;
    nb_table units;
} match;

// An integer mix of a row, so that a tick is some work, and the same for all.
static int32_t step(int32_t place, int32_t speed, uint64_t tick) {
    uint32_t mixed = (uint32_t)place * 2654435761u + (uint32_t)tick;
    return place + speed + (int32_t)(mixed >> 30);
}

// --- the engine ---

static nb_result tick(const nb_context *context, void *user) {
    match *m = user;
    int32_t *place = NB_STORE_ROWS_WRITE(m->world, m->units, 0, int32_t);
    const int32_t *speed = NB_STORE_ROWS(m->world, m->units, 1, int32_t);
    for (uint32_t row = 0; row < ROWS; ++row) place[row] = step(place[row], speed[row], context->tick->index);
    return NB_OK;
}

static bool attach(match *m, nb_engine *engine) {
    static const nb_column_desc columns[] = {{.name = "place", .size_bytes = 4}, {.name = "speed", .size_bytes = 4}};
    nb_table_desc table = {.name = "units", .row_count_max = ROWS, .columns = columns, .column_count = 2};
    m->world = nb_engine_world(engine);
    bool is_right = m->world != NULL && nb_store_table_add(m->world, &table, &m->units) == NB_OK;
    for (uint32_t i = 0; is_right && i < ROWS; ++i) {
        nb_entity entity;
        is_right = nb_store_spawn(m->world, m->units, &entity) == NB_OK;
        if (is_right) *NB_STORE_ROW_WRITE(m->world, m->units, 1, int32_t, i) = (int32_t)(i % 7);
    }
    nb_module_desc module = {.name = "match", .tick = tick, .user = m};
    return is_right && nb_engine_module_attach(engine, &module, NULL) == NB_OK;
}

static bool run_engine(uint32_t depth, double *values) {
    nb_engine_desc desc = {.is_headless = true,
                           .hashes_ticks = true,
                           .synctest_depth = depth,
                           .scheduler_desc = {.worker_count = NB_WORKER_COUNT_NONE}};
    nb_engine *engine = NULL;
    match m = {0};
    bool is_right = nb_engine_create(&desc, &engine) == NB_OK && attach(&m, engine) &&
                    nb_engine_run_ticks(engine, 2 * DEPTH) == NB_OK;
    uint64_t start_ns = bench_now_ns();
    is_right = is_right && nb_engine_run_ticks(engine, TICK_COUNT) == NB_OK;
    values[0] = (double)(bench_now_ns() - start_ns) / 1e3 / TICK_COUNT;
    nb_synctest_report report = {0};
    if (is_right && depth != 0) is_right = nb_engine_synctest_get(engine, &report) == NB_OK;
    is_right &= report.diverged_count == 0 && (depth == 0 || report.checked_count >= (uint64_t)depth * TICK_COUNT);
    is_right &= nb_engine_destroy(engine) == NB_OK;
    return is_right;
}

static bool run_synctest(void *context, const void *argument, double *values) {
    (void)context, (void)argument;
    return run_engine(DEPTH, values);
}

static bool run_plain(void *context, const void *argument, double *values) {
    (void)context, (void)argument;
    return run_engine(0, values);
}

// --- by hand ---

typedef struct state {
    int32_t place[ROWS], speed[ROWS];
} state;

typedef struct by_hand {
    state now, kept[DEPTH + 1];
    uint64_t hashes[DEPTH + 1];
} by_hand;

static void hand_tick(state *s, uint64_t index) {
    for (uint32_t row = 0; row < ROWS; ++row) s->place[row] = step(s->place[row], s->speed[row], index);
}

static bool hand_test(by_hand *h, uint64_t index) {
    bool is_same = true;
    hand_tick(&h->now, index);
    h->kept[(index + 1) % (DEPTH + 1)] = h->now;
    h->hashes[(index + 1) % (DEPTH + 1)] = nb_hash64(&h->now, sizeof h->now, 0);
    uint64_t from = index + 1 > DEPTH ? index + 1 - DEPTH : 0;
    h->now = h->kept[from % (DEPTH + 1)];
    for (uint64_t i = from; i <= index; ++i) {
        hand_tick(&h->now, i);
        is_same &= nb_hash64(&h->now, sizeof h->now, 0) == h->hashes[(i + 1) % (DEPTH + 1)];
    }
    return is_same;
}

static bool run_by_hand(void *context, const void *argument, double *values) {
    (void)argument;
    by_hand *h = context;
    memset(h, 0, sizeof *h);
    for (uint32_t i = 0; i < ROWS; ++i) h->now.speed[i] = (int32_t)(i % 7);
    h->kept[0] = h->now;
    bool is_right = true;
    for (uint64_t i = 0; i < 2 * DEPTH; ++i) is_right &= hand_test(h, i);
    uint64_t start_ns = bench_now_ns();
    for (uint64_t i = 0; i < TICK_COUNT; ++i) is_right &= hand_test(h, 2 * DEPTH + i);
    values[0] = (double)(bench_now_ns() - start_ns) / 1e3 / TICK_COUNT;
    return is_right;
}

static void *open_fixture(void) { return malloc(sizeof(by_hand)); }
static void close_fixture(void *context) { free(context); }

static const bench_contender contenders[] = {
    {"nebula", BENCH_NEBULA, run_synctest, NULL, NULL},
    {"by hand", BENCH_PEER, run_by_hand, NULL, NULL},
    {"no test", BENCH_SHOWN, run_plain, NULL, NULL},
};

static const bench_row rows[] = {
    // A test: there is no goal. By hand nothing is kept to name what differs, and nothing local is put back.
    {.name = "synctest.cost", .unit = "us a tick, 4096 rows, 8 back"},
};

static const bench_case cases[] = {
    {"synctest.cost", "a tick that goes back eight ticks and comes again", rows, BENCH_COUNT(rows), contenders,
     BENCH_COUNT(contenders), 1, open_fixture, close_fixture},
};

const bench_case *bench_synctest_cases(size_t *count) {
    *count = BENCH_COUNT(cases);
    return cases;
}
