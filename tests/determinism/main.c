// SPDX-License-Identifier: MIT
// determinism: prints a hash for each tick of a game, or compares them with a file. The file holds lines "tick hash",
// and "tick run hash" for all ticks up to that one; other lines are left out. The hash is the engine's, of 64 bits.

#include "host.h"

#include "nebula/hash.h"
#include "nebula/rollback.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Of the short form: ticks that have a line each, and how far apart the others' lines are. A million ticks are 80 KB.
#define GOLDEN_TICK_COUNT 2000u
#define GOLDEN_STEP 1000u

typedef struct options {
    host_desc host;
    uint64_t tick_count;
    const char *compare;
    bool is_golden;
} options;

static const char usage[] =
    "usage: determinism [--ticks N] [--workers N] [--frame-rate N] [--in-time] [--golden | --compare FILE]\n"
    "  --ticks N       how many, 1 to 10^9; default 1000\n"
    "  --workers N     0 to 60; default 1\n"
    "  --frame-rate N  frames a second, 8 to 10000, or 0 for irregular ones; default 50, a tick each\n"
    "  --in-time       no late input, no going back\n"
    "  --golden        few lines: 2000 ticks, then one for all up to each 1000th\n"
    "  --compare FILE  print nothing but the first tick that differs from the file\n";

static bool read_number(const char *text, uint64_t low, uint64_t high, uint64_t *out) {
    char *end = NULL;
    errno = 0;
    unsigned long long value = text != NULL && text[0] >= '0' && text[0] <= '9' ? strtoull(text, &end, 10) : 0;
    if (end == NULL || *end != '\0' || errno != 0 || value < low || value > high) return false;
    *out = value;
    return true;
}

static bool read_options(int argc, char **argv, options *o) {
    *o = (options){.host = {.worker_count = 1, .frame_rate = GAME_TICK_RATE}, .tick_count = 1000};
    for (int i = 1; i < argc; ++i) {
        const char *name = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;
        uint64_t number = 0;
        if (strcmp(name, "--in-time") == 0) {
            o->host.is_in_time = true;
            continue;
        }
        if (strcmp(name, "--golden") == 0) {
            o->is_golden = true;
            continue;
        }
        ++i;
        if (strcmp(name, "--ticks") == 0 && read_number(value, 1, 1000000000, &o->tick_count)) continue;
        if (strcmp(name, "--compare") == 0 && value != NULL) {
            o->compare = value;
            continue;
        }
        bool is_workers = strcmp(name, "--workers") == 0, is_rate = strcmp(name, "--frame-rate") == 0;
        if (!(is_workers || is_rate) || !read_number(value, 0, is_workers ? 60 : 10000, &number)) return false;
        if (is_rate && number != 0 && number < 8) return false; // longer frames are cut to 250 ms
        *(is_workers ? &o->host.worker_count : &o->host.frame_rate) = (uint32_t)number;
    }
    return !(o->is_golden && o->compare != NULL);
}

// --- the file ---

typedef struct line {
    uint64_t tick, hash;
    bool is_run; // of all ticks up to this one
} line;

typedef struct book {
    FILE *file; // NULL = nothing to compare with
    line next;
    bool has_next;
    uint64_t line_count, tick_last; // compared
} book;

static void book_turn(book *b) {
    char text[128];
    b->has_next = false;
    while (!b->has_next && b->file != NULL && fgets(text, sizeof text, b->file) != NULL) {
        b->next.is_run = sscanf(text, "%" SCNu64 " run %" SCNx64, &b->next.tick, &b->next.hash) == 2;
        b->has_next = b->next.is_run || sscanf(text, "%" SCNu64 " %" SCNx64, &b->next.tick, &b->next.hash) == 2;
    }
}

// False: the file has another hash.
static bool book_compare(book *b, uint64_t tick, uint64_t hash, uint64_t run_hash) {
    if (!b->has_next || b->next.tick != tick) return true;
    uint64_t ours = b->next.is_run ? run_hash : hash;
    if (b->next.hash != ours) {
        printf("tick %" PRIu64 ": %016" PRIx64 ", and %016" PRIx64 " in the file", tick, ours, b->next.hash);
        printf(b->next.is_run && b->line_count != 0 ? "; the first to differ is after %" PRIu64 "\n" : "\n",
               b->tick_last);
        return false;
    }
    ++b->line_count;
    b->tick_last = tick;
    book_turn(b);
    return true;
}

// --- the run ---

static void print_tick(const options *o, uint64_t tick, uint64_t hash, uint64_t run_hash) {
    if (!o->is_golden || tick < GOLDEN_TICK_COUNT)
        printf("%" PRIu64 " %016" PRIx64 "\n", tick, hash);
    else if ((tick + 1) % GOLDEN_STEP == 0)
        printf("%" PRIu64 " run %016" PRIx64 "\n", tick, run_hash);
}

// A hash of bytes in a fixed order, so that it is the same on any machine.
static uint64_t mix(uint64_t run_hash, uint64_t hash) {
    unsigned char bytes[8];
    for (uint32_t i = 0; i < 8; ++i) bytes[i] = (unsigned char)(hash >> 8 * i);
    return nb_hash64(bytes, sizeof bytes, run_hash);
}

static int run(host *h, const options *o, book *b) {
    uint64_t run_hash = 0, tick = 0;
    while (tick < o->tick_count) {
        if (!host_frame(h)) return 3;
        for (; tick < o->tick_count && tick < host_final_count(h); ++tick) {
            uint64_t hash = host_hash(h, tick);
            run_hash = mix(run_hash, hash);
            if (b->file == NULL)
                print_tick(o, tick, hash, run_hash);
            else if (!book_compare(b, tick, hash, run_hash))
                return 1;
        }
    }
    if (b->file == NULL) return 0;
    bool is_whole = b->line_count != 0 && b->tick_last + (b->next.is_run ? GOLDEN_STEP : 1) >= o->tick_count;
    if (!is_whole) printf("the file ends after tick %" PRIu64 "\n", b->tick_last);
    return is_whole ? 0 : 1;
}

static int run_all(const options *o, book *b) {
    static host h;
    if (!host_open(&h, &o->host)) {
        fprintf(stderr, "determinism: the engine could not be made\n");
        return 3;
    }
    int status = run(&h, o, b);
    nb_rollback_stats rollback = nb_engine_rollback_stats(h.engine);
    if (!host_close(&h)) {
        fprintf(stderr, "determinism: %s\n", h.problem);
        return 3;
    }
    if (status == 0 && b->file != NULL) {
        printf("%" PRIu64 " ticks as in the file: %" PRIu64 " frames, %" PRIu64 " ticks simulated again in %" PRIu64
               " rollbacks, %" PRIu64 " ways back, %" PRIu64 " states\n",
               o->tick_count, h.frame_count, rollback.tick_count, rollback.rollback_count, h.rewind_count,
               h.state_count);
    }
    return status;
}

int main(int argc, char **argv) {
    options o;
    if (!read_options(argc, argv, &o)) {
        fputs(usage, stderr);
        return 2;
    }
    book b = {.file = o.compare != NULL ? fopen(o.compare, "r") : NULL};
    if (o.compare != NULL && b.file == NULL) {
        fprintf(stderr, "determinism: %s cannot be read\n", o.compare);
        return 2;
    }
    book_turn(&b);
    int status = run_all(&o, &b);
    if (b.file != NULL) fclose(b.file);
    return status;
}
