// SPDX-License-Identifier: MIT
// History: what a tick costs to keep, by how much of it has changed, and what it costs to take eight back. The peer
// keeps whole copies, in a ring of the same size.

#include "bench.h"

#include <nebula/history.h>

#include <stdlib.h>
#include <string.h>

// 10,000 entities of 64 bytes in four columns: a large match.
#define ROWS 10000
#define COLUMNS 4
typedef struct part {
    float values[4];
} part;

#define STATE_BYTES ((size_t)ROWS * COLUMNS * sizeof(part))
#define RING_BYTES ((size_t)64 << 20)
#define COPY_COUNT (RING_BYTES / STATE_BYTES)
#define SHARES 4
#define TICKS 200
#define DEPTH 8

static const nb_column_desc columns[COLUMNS] = {{.name = "position", .size_bytes = sizeof(part)},
                                                {.name = "velocity", .size_bytes = sizeof(part)},
                                                {.name = "rotation", .size_bytes = sizeof(part)},
                                                {.name = "health", .size_bytes = sizeof(part)}};

// Which rows change: `count` of them, `step` apart.
typedef struct share {
    uint32_t step, count;
} share;

static const share shares[SHARES] = {{1, ROWS / 100}, {100, ROWS / 100}, {10, ROWS / 10}, {1, ROWS}};

typedef struct history_fixture {
    nb_store *world;
    nb_table table;
    nb_history *history;
    uint64_t tick;
    unsigned char *state, *copies; // of the peer
    uint64_t copy;
} history_fixture;

static void close_fixture(void *context) {
    history_fixture *fixture = context;
    nb_history_destroy(fixture->history);
    nb_store_destroy(fixture->world);
    free(fixture->state);
    free(fixture->copies);
    free(fixture);
}

static bool fill(history_fixture *fixture) {
    nb_table_desc table = {.name = "units", .row_count_max = ROWS, .columns = columns, .column_count = COLUMNS};
    if (nb_store_create(NULL, &fixture->world) != NB_OK) return false;
    if (nb_store_table_add(fixture->world, &table, &fixture->table) != NB_OK) return false;
    for (uint32_t i = 0; i < ROWS; ++i) {
        nb_entity entity;
        if (nb_store_spawn(fixture->world, fixture->table, &entity) != NB_OK) return false;
    }
    nb_history_desc desc = {.world = fixture->world, .bytes_max = RING_BYTES};
    if (nb_history_create(&desc, &fixture->history) != NB_OK) return false;
    return nb_history_save(fixture->history, 0) == NB_OK;
}

// Columns one behind the other, on cache lines as those of the world.
static void *open_fixture(void) {
    history_fixture *fixture = calloc(1, sizeof *fixture);
    if (!fixture) return NULL;
    fixture->state = aligned_alloc(64, STATE_BYTES);
    fixture->copies = aligned_alloc(64, COPY_COUNT * STATE_BYTES);
    if (fixture->state && fixture->copies && fill(fixture)) {
        memset(fixture->state, 0, STATE_BYTES);
        memset(fixture->copies, 0, COPY_COUNT * STATE_BYTES); // all pages are there
        return fixture;
    }
    close_fixture(fixture);
    return NULL;
}

// Changes all columns of the rows; in each tick they are others.
static void change_world(history_fixture *fixture, const share *rows) {
    for (uint32_t column = 0; column < COLUMNS; ++column) {
        for (uint32_t i = 0; i < rows->count; ++i) {
            uint32_t row = (uint32_t)((fixture->tick * 37 + i * rows->step) % ROWS);
            NB_STORE_ROW_WRITE(fixture->world, fixture->table, column, part, row)->values[fixture->tick % 4] += 1.0f;
        }
    }
}

static void change_bare(history_fixture *fixture, const share *rows) {
    part *parts = (part *)(void *)fixture->state;
    for (uint32_t column = 0; column < COLUMNS; ++column) {
        for (uint32_t i = 0; i < rows->count; ++i) {
            uint32_t row = (uint32_t)((fixture->copy * 37 + i * rows->step) % ROWS);
            parts[column * ROWS + row].values[fixture->copy % 4] += 1.0f;
        }
    }
}

static bool save_nebula(void *context, const void *argument, double *values) {
    history_fixture *fixture = context;
    (void)argument;
    bool is_good = true;
    for (uint32_t which = 0; which < SHARES; ++which) {
        uint64_t spent_ns = 0;
        for (uint32_t i = 0; is_good && i < TICKS; ++i) {
            fixture->tick += 1;
            change_world(fixture, &shares[which]);
            uint64_t start_ns = bench_now_ns();
            is_good = nb_history_save(fixture->history, fixture->tick) == NB_OK;
            spent_ns += bench_now_ns() - start_ns;
        }
        values[which] = (double)spent_ns * 1e-3 / TICKS;
        values[SHARES + which] = (double)nb_history_stats_get(fixture->history).changed_bytes / 1024;
    }
    return is_good;
}

static bool save_bare(void *context, const void *argument, double *values) {
    history_fixture *fixture = context;
    (void)argument;
    for (uint32_t which = 0; which < SHARES; ++which) {
        uint64_t spent_ns = 0;
        for (uint32_t i = 0; i < TICKS; ++i) {
            fixture->copy += 1;
            change_bare(fixture, &shares[which]);
            uint64_t start_ns = bench_now_ns();
            memcpy(fixture->copies + fixture->copy % COPY_COUNT * STATE_BYTES, fixture->state, STATE_BYTES);
            spent_ns += bench_now_ns() - start_ns;
        }
        values[which] = (double)spent_ns * 1e-3 / TICKS;
        values[SHARES + which] = (double)STATE_BYTES / 1024;
    }
    return true;
}

// --- history.rollback8 ---

// Eight ticks back, and on again with the state as it is: what is simulated in between is not part of it.
static bool rollback_nebula(void *context, const void *argument, double *values) {
    history_fixture *fixture = context;
    (void)argument;
    bool is_good = true;
    for (uint32_t which = 0; which < SHARES; ++which) {
        uint64_t spent_ns = 0;
        for (uint32_t i = 0; is_good && i < TICKS / DEPTH; ++i) {
            for (uint32_t j = 0; is_good && j < DEPTH; ++j) {
                fixture->tick += 1;
                change_world(fixture, &shares[which]);
                is_good = nb_history_save(fixture->history, fixture->tick) == NB_OK;
            }
            uint64_t start_ns = bench_now_ns();
            is_good = is_good && nb_history_rewind(fixture->history, fixture->tick - DEPTH) == NB_OK;
            spent_ns += bench_now_ns() - start_ns;
            fixture->tick -= DEPTH;
        }
        values[which] = (double)spent_ns * 1e-3 / (TICKS / DEPTH);
    }
    return is_good;
}

static bool rollback_bare(void *context, const void *argument, double *values) {
    history_fixture *fixture = context;
    (void)argument;
    for (uint32_t which = 0; which < SHARES; ++which) {
        uint64_t spent_ns = 0;
        for (uint32_t i = 0; i < TICKS / DEPTH; ++i) {
            for (uint32_t j = 0; j < DEPTH; ++j) {
                fixture->copy += 1;
                change_bare(fixture, &shares[which]);
                memcpy(fixture->copies + fixture->copy % COPY_COUNT * STATE_BYTES, fixture->state, STATE_BYTES);
            }
            uint64_t start_ns = bench_now_ns();
            memcpy(fixture->state, fixture->copies + (fixture->copy - DEPTH) % COPY_COUNT * STATE_BYTES, STATE_BYTES);
            spent_ns += bench_now_ns() - start_ns;
        }
        values[which] = (double)spent_ns * 1e-3 / (TICKS / DEPTH);
    }
    return true;
}

static const bench_row save_rows[] = {
    {.name = "history.save_1_run", .unit = "us/tick, 1 % of rows, a run"},
    {.name = "history.save_1", .unit = "us/tick, 1 %, scattered"},
    {.name = "history.save_10", .unit = "us/tick, 10 %, scattered"},
    {.name = "history.save_100", .unit = "us/tick, 100 %"},
    {.name = "history.kept_1_run", .unit = "KiB/tick, 1 %, a run", .is_note = true},
    {.name = "history.kept_1", .unit = "KiB/tick, 1 %", .is_note = true},
    {.name = "history.kept_10", .unit = "KiB/tick, 10 %", .is_note = true},
    {.name = "history.kept_100", .unit = "KiB/tick, 100 %", .is_note = true},
};
static const bench_contender save_contenders[] = {
    {"nebula", BENCH_NEBULA, save_nebula, NULL, NULL},
    {"memcpy of all", BENCH_PEER, save_bare, NULL, NULL},
};

static const bench_row rollback_rows[] = {
    {.name = "history.rollback8_1_run", .unit = "us, 1 % of rows a tick, a run"},
    {.name = "history.rollback8_1", .unit = "us, 1 %, scattered"},
    {.name = "history.rollback8_10", .unit = "us, 10 %, scattered"},
    {.name = "history.rollback8_100", .unit = "us, 100 %"},
};
static const bench_contender rollback_contenders[] = {
    {"nebula", BENCH_NEBULA, rollback_nebula, NULL, NULL},
    {"memcpy of all", BENCH_PEER, rollback_bare, NULL, NULL},
};

static const bench_case cases[] = {
    {"history.save", "10,000 entities of 64 bytes; some rows change, and the tick is kept", save_rows,
     BENCH_COUNT(save_rows), save_contenders, BENCH_COUNT(save_contenders), 3, open_fixture, close_fixture},
    {"history.rollback8", "the same; eight ticks are taken back", rollback_rows, BENCH_COUNT(rollback_rows),
     rollback_contenders, BENCH_COUNT(rollback_contenders), 3, open_fixture, close_fixture},
};

const bench_case *bench_history_cases(size_t *count) {
    *count = BENCH_COUNT(cases);
    return cases;
}
