// SPDX-License-Identifier: MIT
// The demo's command line.

#include "options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nebula/tasks.h"

// Runs: long enough to show something, and an hour is more than anybody watches.
#define SECONDS_MIN 0.1
#define SECONDS_MAX 3600.0

// Shortest time between teleports: the frame rate's limit.
#define TELEPORT_SECONDS_MIN 0.001

// Most workers: what a scheduler has room for beside its coordinator, rounded down.
#define WORKERS_MAX 60

// Rates the demo takes: what a person can see.
#define RATE_MIN 1.0
#define RATE_MAX 1000.0

static const char HELP[] =
    "usage: nebula-demo [OPTION...]\n"
    "Runs the fixed-step loop and shows its numbers; the colour follows the tick counter.\n"
    "  --seconds S         how long, 0.1 to 3600 (default 3)\n"
    "  --hz R              ticks a second, 1 to 1000, such as 60 or 60000/1001 (default 60)\n"
    "  --render-hz R       frames a second (default: as many as ticks)\n"
    "  --workers N         threads beside the main one, 0 to 60 (default: the machine's; 0 with --virtual)\n"
    "  --teleport-every S  seconds between teleports, which cancel work, 0.001 to 3600 (default: none)\n"
    "  --virtual           run on a virtual clock: at once, and with the same output everywhere\n"
    "  --ticks             one line for each tick, with its colour\n"
    "  --help              this text\n";

// "60" or "60000/1001".
static bool read_rate(const char *text, nb_rate *out) {
    char *end = NULL;
    unsigned long num = strtoul(text, &end, 10), den = 1;
    bool is_number = end != text && text[0] >= '0' && text[0] <= '9';
    if (is_number && *end == '/') {
        const char *rest = end + 1;
        den = strtoul(rest, &end, 10);
        is_number = end != rest && rest[0] >= '0' && rest[0] <= '9';
    }
    if (!is_number || *end != '\0' || num == 0 || den == 0) return false;
    if (num > NB_LOOP_RATE_MAX || den > NB_LOOP_RATE_MAX) return false;
    double rate = (double)num / (double)den;
    if (rate < RATE_MIN || rate > RATE_MAX) return false;
    *out = (nb_rate){(uint32_t)num, (uint32_t)den};
    return true;
}

static bool read_seconds(const char *text, double seconds_min, uint64_t *out_ns) {
    char *end = NULL;
    double seconds = strtod(text, &end);
    // Written so that a NaN is refused too.
    if (end == text || *end != '\0' || !(seconds >= seconds_min && seconds <= SECONDS_MAX)) return false;
    *out_ns = (uint64_t)(seconds * 1e9);
    return true;
}

static bool read_workers(const char *text, uint32_t *out) {
    char *end = NULL;
    unsigned long count = strtoul(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || count > WORKERS_MAX) return false;
    *out = count == 0 ? NB_WORKER_COUNT_NONE : (uint32_t)count;
    return true;
}

static bool read_value(const char *name, const char *value, demo_options *out) {
    if (strcmp(name, "--seconds") == 0) return read_seconds(value, SECONDS_MIN, &out->duration_ns);
    if (strcmp(name, "--teleport-every") == 0) return read_seconds(value, TELEPORT_SECONDS_MIN, &out->teleport_ns);
    if (strcmp(name, "--workers") == 0) return read_workers(value, &out->worker_count);
    if (strcmp(name, "--hz") == 0) return read_rate(value, &out->tick_rate);
    return read_rate(value, &out->render_rate);
}

static bool has_value(const char *name) {
    return strcmp(name, "--seconds") == 0 || strcmp(name, "--hz") == 0 || strcmp(name, "--render-hz") == 0 ||
           strcmp(name, "--workers") == 0 || strcmp(name, "--teleport-every") == 0;
}

static bool read_flag(const char *name, demo_options *out) {
    if (strcmp(name, "--virtual") == 0)
        out->is_virtual = true;
    else if (strcmp(name, "--ticks") == 0)
        out->has_tick_lines = true;
    else if (strcmp(name, "--help") == 0)
        out->is_help = true;
    else
        return false;
    return true;
}

bool demo_options_read(int argc, char **argv, demo_options *out) {
    *out = (demo_options){.duration_ns = 3000000000u, .tick_rate = {60, 1}};
    for (int i = 1; i < argc; ++i) {
        const char *name = argv[i];
        if (read_flag(name, out)) continue;
        if (!has_value(name)) {
            fprintf(stderr, "nebula-demo: unknown option '%s' (try --help)\n", name);
            return false;
        }
        if (++i == argc) {
            fprintf(stderr, "nebula-demo: %s needs a value (try --help)\n", name);
            return false;
        }
        if (!read_value(name, argv[i], out)) {
            fprintf(stderr, "nebula-demo: '%s' is not a value for %s (try --help)\n", argv[i], name);
            return false;
        }
    }
    if (out->render_rate.num == 0) out->render_rate = out->tick_rate;
    if (out->is_virtual && out->worker_count == 0) out->worker_count = NB_WORKER_COUNT_NONE;
    if (out->is_virtual && out->teleport_ns > 0 && out->worker_count != NB_WORKER_COUNT_NONE) {
        // How many chunks a worker has done by then depends on the machine.
        fprintf(stderr, "nebula-demo: --teleport-every with --virtual needs --workers 0 (try --help)\n");
        return false;
    }
    if (out->is_help) fputs(HELP, stdout);
    return true;
}
