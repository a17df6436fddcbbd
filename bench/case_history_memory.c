// SPDX-License-Identifier: MIT
// History of one large piece of raw memory, little of which changes in a tick: an existing game put under the engine.
// The peers are what its author would write by hand.

#include "bench.h"

#include <nebula/history.h>

#include <stdlib.h>
#include <string.h>

// A game of some thousand things, each of which is a struct: 120 of them move in a tick, 28 KiB in all.
#define STATE_BYTES ((size_t)8 << 20)
#define SPOT_COUNT 120
#define SPOT_BYTES 240
#define TICKS 100
#define DEPTH 8

// Of each: what keeps 400 ticks by changes, or 8 whole copies.
#define LOG_BYTES ((size_t)64 << 20)
#define PIECE_BYTES 256
#define COPY_COUNT (LOG_BYTES / STATE_BYTES)

typedef struct piece {
    size_t offset;
    unsigned char before[PIECE_BYTES];
} piece;

#define PIECE_COUNT (LOG_BYTES / sizeof(piece))

typedef struct memory_fixture {
    nb_states *states;
    nb_history *history;
    uint64_t tick, random;
    unsigned char *state, *shadow; // the shadow is the undo log's
    unsigned char *log;            // of pieces, or of copies
    uint64_t piece_count, copy_count;
    uint64_t marks[DEPTH + 1]; // piece_count after each of the last ticks
} memory_fixture;

static void close_fixture(void *context) {
    memory_fixture *fixture = context;
    nb_history_destroy(fixture->history);
    nb_states_destroy(fixture->states);
    free(fixture->state);
    free(fixture->shadow);
    free(fixture->log);
    free(fixture);
}

static bool fill(memory_fixture *fixture) {
    nb_provider_desc state = {.name = "game", .data = fixture->state, .size_bytes = STATE_BYTES};
    if (nb_states_create(NULL, &fixture->states) != NB_OK) return false;
    if (nb_states_add(fixture->states, &state, NULL) != NB_OK) return false;
    nb_history_desc desc = {.states = fixture->states, .bytes_max = LOG_BYTES, .tick_count_max = 1024};
    if (nb_history_create(&desc, &fixture->history) != NB_OK) return false;
    return nb_history_save(fixture->history, 0) == NB_OK;
}

static void *open_fixture(void) {
    memory_fixture *fixture = calloc(1, sizeof *fixture);
    if (!fixture) return NULL;
    fixture->random = 1;
    fixture->state = aligned_alloc(64, STATE_BYTES);
    fixture->shadow = aligned_alloc(64, STATE_BYTES);
    fixture->log = aligned_alloc(64, LOG_BYTES);
    if (fixture->state && fixture->shadow && fixture->log) {
        memset(fixture->state, 0, STATE_BYTES);
        memset(fixture->shadow, 0, STATE_BYTES);
        memset(fixture->log, 0, LOG_BYTES); // all pages are there
        if (fill(fixture)) return fixture;
    }
    close_fixture(fixture);
    return NULL;
}

static void change(memory_fixture *fixture) {
    for (uint32_t i = 0; i < SPOT_COUNT; ++i) {
        size_t at = bench_random(&fixture->random) % (STATE_BYTES / 256) * 256;
        for (size_t byte = 0; byte < SPOT_BYTES; byte += 8) fixture->state[at + byte] += 1;
    }
}

// --- ways to keep a tick, and to take eight back ---

static bool nebula_save(memory_fixture *fixture) { return nb_history_save(fixture->history, ++fixture->tick) == NB_OK; }

static bool nebula_back(memory_fixture *fixture) {
    fixture->tick -= DEPTH;
    return nb_history_rewind(fixture->history, fixture->tick) == NB_OK;
}

static piece *piece_at(memory_fixture *fixture, uint64_t number) {
    return (piece *)(void *)fixture->log + number % PIECE_COUNT;
}

static bool log_save(memory_fixture *fixture) {
    for (size_t at = 0; at < STATE_BYTES; at += PIECE_BYTES) {
        if (memcmp(fixture->state + at, fixture->shadow + at, PIECE_BYTES) == 0) continue;
        piece *kept = piece_at(fixture, fixture->piece_count++);
        kept->offset = at;
        memcpy(kept->before, fixture->shadow + at, PIECE_BYTES);
        memcpy(fixture->shadow + at, fixture->state + at, PIECE_BYTES);
    }
    memmove(fixture->marks, fixture->marks + 1, DEPTH * sizeof fixture->marks[0]);
    fixture->marks[DEPTH] = fixture->piece_count;
    return true;
}

static bool log_back(memory_fixture *fixture) {
    while (fixture->piece_count > fixture->marks[0]) {
        const piece *kept = piece_at(fixture, --fixture->piece_count);
        memcpy(fixture->state + kept->offset, kept->before, PIECE_BYTES);
        memcpy(fixture->shadow + kept->offset, kept->before, PIECE_BYTES);
    }
    fixture->marks[DEPTH] = fixture->piece_count;
    return true;
}

static bool copy_save(memory_fixture *fixture) {
    memcpy(fixture->log + fixture->copy_count++ % COPY_COUNT * STATE_BYTES, fixture->state, STATE_BYTES);
    return true;
}

static bool copy_back(memory_fixture *fixture) {
    fixture->copy_count -= DEPTH;
    memcpy(fixture->state, fixture->log + fixture->copy_count % COPY_COUNT * STATE_BYTES, STATE_BYTES);
    return true;
}

typedef struct way {
    bool (*save)(memory_fixture *fixture);
    bool (*back)(memory_fixture *fixture);
    bool has_log; // its log and shadow are of this state
} way;

static const way nebula = {nebula_save, nebula_back, false};
static const way undo_log = {log_save, log_back, true};
static const way copies = {copy_save, copy_back, false};

static bool run_way(void *context, const void *argument, double *values) {
    memory_fixture *fixture = context;
    const way *by = argument;
    uint64_t save_ns = 0, back_ns = 0;
    bool is_good = true;
    // What others have changed since is not measured.
    if (by->has_log) log_save(fixture);
    if (by == &nebula) nebula_save(fixture);
    for (uint32_t i = 0; is_good && i < TICKS; ++i) {
        change(fixture);
        uint64_t start_ns = bench_now_ns();
        is_good = by->save(fixture);
        save_ns += bench_now_ns() - start_ns;
    }
    for (uint32_t i = 0; is_good && i < TICKS / DEPTH; ++i) {
        uint64_t start_ns = bench_now_ns();
        is_good = by->back(fixture);
        back_ns += bench_now_ns() - start_ns;
        for (uint32_t j = 0; is_good && j < DEPTH; ++j) {
            change(fixture);
            is_good = by->save(fixture);
        }
    }
    values[0] = (double)save_ns * 1e-3 / TICKS;
    values[1] = (double)back_ns * 1e-3 / (TICKS / DEPTH);
    return is_good;
}

static const bench_row rows[] = {
    {.name = "history.memory_save", .unit = "us/tick, 28 KiB of 8 MiB"},
    {.name = "history.memory_rollback8", .unit = "us, the same"},
};
static const bench_contender contenders[] = {
    {"nebula", BENCH_NEBULA, run_way, &nebula, NULL},
    {"memcmp of 256 B, undo log", BENCH_PEER, run_way, &undo_log, NULL},
    {"memcpy of all", BENCH_PEER, run_way, &copies, NULL},
};

static const bench_case cases[] = {
    {"history.memory", "8 MiB of raw memory; 28 KiB of it change, and the tick is kept", rows, BENCH_COUNT(rows),
     contenders, BENCH_COUNT(contenders), 3, open_fixture, close_fixture},
};

const bench_case *bench_history_memory_cases(size_t *count) {
    *count = BENCH_COUNT(cases);
    return cases;
}
