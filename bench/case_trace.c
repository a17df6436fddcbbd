// SPDX-License-Identifier: MIT
// The trace: what a span costs the thread that records it.

#include "bench.h"

#include <nebula/trace.h>

#include <stdlib.h>

#define SPANS ((size_t)200000)
// A frame at 60 Hz, and the spans a busy one has.
#define FRAME_NS (1e9 / 60.0)
#define FRAME_SPANS 5000.0

typedef struct trace_fixture {
    nb_trace *trace;
    nb_trace_thread *thread;
    nb_label label;
} trace_fixture;

static bool has_no_invariant_tsc(void) { return !bench_has_invariant_tsc(); }

static void close_fixture(void *context) {
    trace_fixture *fixture = context;
    if (fixture->thread) nb_trace_detach(fixture->thread);
    nb_trace_destroy(fixture->trace);
    free(fixture);
}

static void *open_fixture(void) {
    trace_fixture *fixture = calloc(1, sizeof *fixture);
    if (!fixture) return NULL;
    if (nb_trace_create(NULL, &fixture->trace) == NB_OK &&
        nb_trace_attach(fixture->trace, "bench", &fixture->thread) == NB_OK &&
        nb_labels_intern(nb_trace_labels(fixture->trace), "span", &fixture->label) == NB_OK)
        return fixture;
    close_fixture(fixture);
    return NULL;
}

static void report(uint64_t start_ns, double *values) {
    values[0] = (double)(bench_now_ns() - start_ns) / (double)SPANS;
    values[1] = 100.0 * FRAME_SPANS * values[0] / FRAME_NS;
}

static bool run_spans(void *context, const void *argument, double *values) {
    trace_fixture *fixture = context;
    (void)argument;
    uint64_t recorded = nb_trace_stats_get(fixture->trace).recorded_count;
    uint64_t start_ns = bench_now_ns();
    for (size_t i = 0; i < SPANS; ++i) {
        nb_trace_begin(fixture->thread, fixture->label);
        nb_trace_end(fixture->thread);
    }
    report(start_ns, values);
    return nb_trace_stats_get(fixture->trace).recorded_count == recorded + 2 * SPANS;
}

#if defined(__x86_64__) || defined(__i386__)
static bool run_counter_reads(void *context, const void *argument, double *values) {
    uint64_t sum = 0;
    (void)context;
    (void)argument;
    uint64_t start_ns = bench_now_ns();
    for (size_t i = 0; i < SPANS; ++i) {
        sum -= __builtin_ia32_rdtsc();
        sum += __builtin_ia32_rdtsc();
    }
    report(start_ns, values);
    bench_keep((const void *)(uintptr_t)sum);
    return true;
}
#else
#define run_counter_reads NULL
#endif

static bool run_clock_reads(void *context, const void *argument, double *values) {
    uint64_t sum = 0;
    (void)context;
    (void)argument;
    uint64_t start_ns = bench_now_ns();
    for (size_t i = 0; i < SPANS; ++i) {
        sum -= bench_now_ns();
        sum += bench_now_ns();
    }
    report(start_ns, values);
    bench_keep((const void *)(uintptr_t)sum);
    return true;
}

static const bench_row rows[] = {
    {.name = "trace.span",
     .unit = "ns",
     .goals = {{.kind = BENCH_GOAL_LIMIT, .factor = 25.0, .applies = bench_has_invariant_tsc},
               {.kind = BENCH_GOAL_PEER,
                .factor = 1.0,
                .peer = "two_clock_reads",
                .extra = 10.0,
                .applies = has_no_invariant_tsc}}},
    {.name = "trace.frame_share",
     .unit = "% of a 60 Hz frame for 5,000 spans",
     .goals = {{.kind = BENCH_GOAL_LIMIT, .factor = 1.0}}},
};

static const bench_contender contenders[] = {
    {"nebula", BENCH_NEBULA, run_spans, NULL, NULL},
    {"two_tsc_reads", BENCH_PEER, run_counter_reads, NULL, "an x86 CPU"},
    {"two_clock_reads", BENCH_PEER, run_clock_reads, NULL, NULL},
};

static const bench_case cases[] = {
    {"trace.span", "a span begun and ended; beside it, reading the time twice", rows, BENCH_COUNT(rows), contenders,
     BENCH_COUNT(contenders), 3, open_fixture, close_fixture},
};

const bench_case *bench_trace_cases(size_t *count) {
    *count = BENCH_COUNT(cases);
    return cases;
}
