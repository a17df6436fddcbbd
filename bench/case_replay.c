// SPDX-License-Identifier: MIT
// Replaying: how fast a recording is verified, against the same game when it is played as fast as it goes. Both make
// their engine, and hash each tick.

#include "bench.h"

#include <stdlib.h>
#include <string.h>

#if BENCH_HAVE_RECORD
#include <nebula/verify.h>

// A small match: its ticks are short, so what is around them counts.
#define ROWS 4096u
#define TICK_COUNT 2000u
#define EVENT_COUNT 4u

typedef struct fixture {
    unsigned char *bytes; // of the recording
    size_t size_bytes, capacity_bytes;
} fixture;

// --- the game ---

typedef struct match {
    nb_store *world;
    nb_table units;
} match;

static nb_result tick(const nb_context *context, void *user) {
    match *m = user;
    int32_t *place = NB_STORE_ROWS_WRITE(m->world, m->units, 0, int32_t);
    const int32_t *speed = NB_STORE_ROWS(m->world, m->units, 1, int32_t);
    int32_t push = 0;
    for (uint32_t i = 0; i < context->input.count; ++i) push += (int32_t)context->input.events[i].code;
    for (uint32_t row = 0; row < ROWS; ++row) place[row] += speed[row] + push;
    return NB_OK;
}

static nb_result begin(const nb_record_head *head, nb_engine_desc *desc, void **user) {
    (void)head;
    desc->is_headless = true;
    *user = calloc(1, sizeof(match));
    return *user != NULL ? NB_OK : NB_ERR_MEMORY;
}

static nb_result attach(void *user, nb_engine *engine) {
    match *m = user;
    static const nb_column_desc columns[] = {{.name = "place", .size_bytes = 4}, {.name = "speed", .size_bytes = 4}};
    nb_table_desc table = {.name = "units", .row_count_max = ROWS, .columns = columns, .column_count = 2};
    m->world = nb_engine_world(engine);
    nb_result result = m->world != NULL ? nb_store_table_add(m->world, &table, &m->units) : NB_ERR_MEMORY;
    for (uint32_t i = 0; result == NB_OK && i < ROWS; ++i) {
        nb_entity entity;
        result = nb_store_spawn(m->world, m->units, &entity);
        if (result == NB_OK) *NB_STORE_ROW_WRITE(m->world, m->units, 1, int32_t, i) = (int32_t)(i % 7);
    }
    nb_module_desc module = {.name = "match", .tick = tick, .user = m};
    return result == NB_OK ? nb_engine_module_attach(engine, &module, NULL) : result;
}

static void end(void *user) { free(user); }

static const nb_replay_game game = {.begin = begin, .attach = attach, .end = end};

// --- live ---

static nb_result take_bytes(void *user, const void *bytes, size_t size_bytes) {
    fixture *f = user;
    if (f->size_bytes + size_bytes > f->capacity_bytes) return NB_ERR_MEMORY;
    memcpy(f->bytes + f->size_bytes, bytes, size_bytes);
    f->size_bytes += size_bytes;
    return NB_OK;
}

static bool play_ticks(nb_engine *engine) {
    nb_input *input = nb_engine_input(engine);
    uint64_t random = 3;
    bool is_right = input != NULL;
    for (uint32_t i = 0; is_right && i < TICK_COUNT; ++i) {
        for (uint32_t j = 0; j < EVENT_COUNT; ++j) {
            nb_input_event event = {.kind = NB_INPUT_MOTION, .code = (uint32_t)(bench_random(&random) % 8)};
            is_right &= nb_input_send(input, &event) == NB_OK;
        }
        is_right &= nb_engine_run_ticks(engine, 1) == NB_OK;
    }
    return is_right;
}

// Plays the game; records it where there is a fixture to record to.
static bool play(fixture *to) {
    nb_record_head head = {.tick_rate = {60, 1}};
    nb_engine_desc desc = {.hashes_ticks = true, .scheduler_desc = {.worker_count = NB_WORKER_COUNT_NONE}};
    nb_recorder_desc recorder_desc = {.sink = {.write = take_bytes, .user = to}, .head = head, .queue_count = 256};
    nb_engine *engine = NULL;
    nb_recorder *recorder = NULL;
    void *user = NULL;
    bool is_right = begin(&head, &desc, &user) == NB_OK && nb_engine_create(&desc, &engine) == NB_OK &&
                    attach(user, engine) == NB_OK;
    if (is_right && to != NULL) is_right = nb_recorder_attach(engine, &recorder_desc, &recorder) == NB_OK;
    is_right = is_right && play_ticks(engine);
    is_right &= nb_recorder_destroy(recorder) == NB_OK;
    is_right &= nb_engine_destroy(engine) == NB_OK;
    end(user);
    return is_right;
}

static bool run_live(void *context, const void *argument, double *values) {
    (void)context, (void)argument;
    uint64_t start_ns = bench_now_ns();
    bool is_right = play(NULL);
    values[0] = TICK_COUNT * 1e9 / (double)(bench_now_ns() - start_ns);
    return is_right;
}

static bool run_verify(void *context, const void *argument, double *values) {
    fixture *f = context;
    (void)argument;
    nb_replay *replay = NULL;
    nb_verify_desc desc = {.worker_count = NB_WORKER_COUNT_NONE};
    nb_verify_report report;
    uint64_t start_ns = bench_now_ns();
    bool is_right = nb_replay_open_memory(f->bytes, f->size_bytes, NULL, &replay) == NB_OK &&
                    nb_replay_verify(replay, &game, &desc, &report) == NB_OK;
    nb_replay_close(replay);
    values[0] = TICK_COUNT * 1e9 / (double)(bench_now_ns() - start_ns);
    return is_right && report.verdict == NB_VERDICT_SAME && report.compared_count == TICK_COUNT;
}

static void *open_fixture(void) {
    fixture *f = calloc(1, sizeof *f);
    if (!f) return NULL;
    f->capacity_bytes = (size_t)16 << 20;
    f->bytes = malloc(f->capacity_bytes);
    if (f->bytes && play(f)) return f;
    free(f->bytes);
    free(f);
    return NULL;
}

static void close_fixture(void *context) {
    free(((fixture *)context)->bytes);
    free(context);
}

static const bench_contender contenders[] = {
    {"nebula", BENCH_NEBULA, run_verify, NULL, NULL},
    {"live", BENCH_PEER, run_live, NULL, NULL},
};
#else
static void *open_fixture(void) { return calloc(1, 1); }
static void close_fixture(void *context) { free(context); }

static const bench_contender contenders[] = {{"nebula", BENCH_NEBULA, NULL, NULL, "libzstd-dev"}};
#endif

static const bench_row rows[] = {
    // What a verification adds to a tick is decoding its input and looking at its hash.
    {.name = "replay.speed",
     .unit = "ticks/s, 4096 rows",
     .is_rate = true,
     .goals = {{.kind = BENCH_GOAL_PEER, .factor = 1.25, .peer = "live"}}},
};

static const bench_case cases[] = {
    {"replay.speed", "verifying a recording of 2000 ticks, against playing it as fast as it goes", rows,
     BENCH_COUNT(rows), contenders, BENCH_COUNT(contenders), 1, open_fixture, close_fixture},
};

const bench_case *bench_replay_cases(size_t *count) {
    *count = BENCH_COUNT(cases);
    return cases;
}
