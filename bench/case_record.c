// SPDX-License-Identifier: MIT
// Recording: what a tick costs on the frame's side, and what a minute of a game takes on the disk. The peer is the
// least that a recording could be: the same bytes, copied.

#include "bench.h"

#include <stdlib.h>
#include <string.h>

#if BENCH_HAVE_RECORD
#include <nebula/record.h>
#endif

#include <nebula/input.h>

#define RATE 60u
#define TICK_COUNT (RATE * 60u)
// A busy player: some key and pointer events in each tick, a command in every tenth.
#define EVENT_COUNT 4u
// 10,000 rows of 12 bytes, of which a part changes in each tick.
#define STATE_BYTES (120u << 10)

typedef struct fixture {
    nb_input_event events[TICK_COUNT][EVENT_COUNT];
    uint64_t hashes[TICK_COUNT];
    unsigned char state[STATE_BYTES];
    unsigned char *copy; // of the peer
} fixture;

static void *open_fixture(void) {
    fixture *f = calloc(1, sizeof *f);
    uint64_t random = 3, time_ns = 0;
    if (!f) return NULL;
    f->copy = malloc((size_t)TICK_COUNT * (EVENT_COUNT * sizeof(nb_input_event) + 64));
    for (uint32_t i = 0; i < TICK_COUNT; ++i) {
        f->hashes[i] = bench_random(&random);
        for (uint32_t j = 0; j < EVENT_COUNT; ++j) {
            nb_input_event *event = &f->events[i][j];
            event->timestamp_ns = time_ns += bench_random(&random) % 4000000;
            event->kind = (uint16_t)(j == 0 ? NB_INPUT_PRESS : NB_INPUT_MOTION);
            event->code = (uint32_t)(bench_random(&random) % 8);
            event->payload.i32[0] = (int32_t)(bench_random(&random) % 32);
            event->payload.i32[1] = (int32_t)(bench_random(&random) % 32);
        }
    }
    for (uint32_t i = 0; i < STATE_BYTES; ++i) f->state[i] = (unsigned char)(bench_random(&random) % 16);
    return f;
}

static void close_fixture(void *context) {
    free(((fixture *)context)->copy);
    free(context);
}

static int compare(const void *a, const void *b) {
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

static double costs_ns[TICK_COUNT];

static void put_values(double *values, double bytes) {
    double sum = 0;
    for (uint32_t i = 0; i < TICK_COUNT; ++i) sum += costs_ns[i];
    qsort(costs_ns, TICK_COUNT, sizeof costs_ns[0], compare);
    values[0] = sum / TICK_COUNT;
    values[1] = costs_ns[TICK_COUNT * 99 / 100];
    values[2] = bytes / 1024;
}

#if BENCH_HAVE_RECORD
static nb_result take_bytes(void *user, const void *bytes, size_t size_bytes) {
    (void)bytes;
    *(uint64_t *)user += size_bytes;
    return NB_OK;
}

static bool run_nebula(void *context, const void *argument, double *values) {
    fixture *f = context;
    const bool *has_keys = argument;
    uint64_t file_bytes = 0;
    nb_recorder_desc desc = {.sink = {.write = take_bytes, .user = &file_bytes}, .queue_count = 256};
    nb_recorder *recorder = NULL;
    if (nb_recorder_create(&desc, &recorder) != NB_OK) return false;
    bool is_right = true;
    for (uint32_t i = 0; i < TICK_COUNT; ++i) {
        nb_record_tick tick = {.index = i, .input = {f->events[i], EVENT_COUNT}, .hash = f->hashes[i]};
        // Ten seconds of ticks pass in a few milliseconds here: the writer is waited for, and only what it takes
        // counts.
        uint64_t start_ns = bench_now_ns();
        bool is_key = *has_keys && i % NB_RECORD_KEY_TICKS_DEFAULT == 0;
        while (is_key && nb_recorder_push_state(recorder, i, f->state, sizeof f->state) == NB_BUSY)
            start_ns = bench_now_ns();
        is_right &= nb_recorder_push(recorder, &tick) == NB_OK;
        costs_ns[i] = (double)(bench_now_ns() - start_ns);
    }
    is_right &= nb_recorder_destroy(recorder) == NB_OK;
    put_values(values, (double)file_bytes);
    return is_right;
}

static const bool with_keys = true, without_keys = false;
#endif

static bool run_copy(void *context, const void *argument, double *values) {
    fixture *f = context;
    (void)argument;
    unsigned char *at = f->copy;
    if (!at) return false;
    for (uint32_t i = 0; i < TICK_COUNT; ++i) {
        uint64_t start_ns = bench_now_ns();
        memcpy(at, f->events[i], sizeof f->events[i]);
        memcpy(at + sizeof f->events[i], &f->hashes[i], sizeof f->hashes[i]);
        at += sizeof f->events[i] + 24;
        costs_ns[i] = (double)(bench_now_ns() - start_ns);
        bench_keep(at);
    }
    put_values(values, (double)(at - f->copy));
    return true;
}

static const bench_row rows[] = {
    // A thousandth of a frame at 60 Hz.
    {.name = "record.tick", .unit = "ns a tick, frame's side", .goals = {{.kind = BENCH_GOAL_LIMIT, .factor = 16000}}},
    {.name = "record.tick_p99", .unit = "ns a tick, frame's side", .sample_count = TICK_COUNT},
    {.name = "record.bytes_per_minute", .unit = "KiB of file, 4 events a tick"},
};

static const bench_contender contenders[] = {
#if BENCH_HAVE_RECORD
    {"nebula", BENCH_NEBULA, run_nebula, &without_keys, NULL},
    {"with keys", BENCH_SHOWN, run_nebula, &with_keys, NULL},
#else
    {"nebula", BENCH_NEBULA, NULL, NULL, "libzstd-dev"},
#endif
    {"memcpy", BENCH_SHOWN, run_copy, NULL, NULL},
};

static const bench_case cases[] = {
    {"record.tick", "recording a minute of ticks with 4 events each; with a 120 KiB key state every 10 s", rows,
     BENCH_COUNT(rows), contenders, BENCH_COUNT(contenders), 1, open_fixture, close_fixture},
};

const bench_case *bench_record_cases(size_t *count) {
    *count = BENCH_COUNT(cases);
    return cases;
}
