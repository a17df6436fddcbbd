// SPDX-License-Identifier: MIT
// The trace alone, without the engine: a hundred frames with nested spans, then a Chrome trace file
// (`only_trace trace.json`) or a table of what took how long (`only_trace`).

#include "nebula/trace.h"

#include <stdio.h>

enum { SPAN_FRAME, SPAN_PHYSICS, SPAN_RENDER, SPAN_COUNT };
static const char *const span_names[SPAN_COUNT] = {"frame", "physics", "render"};

// Deep enough for this program; a table for any program would have to cope with more.
#define DEPTH_MAX 8
#define SPANS_MAX 512

// A span is slow when it takes twice its label's average, or a quarter of a 60 Hz frame.
#define SLOW_NS 4000000u

typedef struct span_log {
    nb_label labels[SPAN_COUNT];
    uint64_t durations_ns[SPAN_COUNT][SPANS_MAX];
    uint32_t counts[SPAN_COUNT];
    nb_trace_event open[DEPTH_MAX];
    uint32_t depth;
} span_log;

static void add_span(span_log *log, const nb_trace_event *begin, uint64_t end_ns) {
    for (int i = 0; i < SPAN_COUNT; ++i) {
        if (log->labels[i].id != begin->label.id || log->counts[i] == SPANS_MAX) continue;
        log->durations_ns[i][log->counts[i]++] = end_ns - begin->time_ns;
    }
}

// Events of a thread come in order and balanced, so a stack is enough to pair them.
static void collect(void *user, const nb_trace_event *event) {
    span_log *log = (span_log *)user;
    if (event->kind == NB_TRACE_KIND_BEGIN && log->depth < DEPTH_MAX) log->open[log->depth++] = *event;
    if (event->kind == NB_TRACE_KIND_END && log->depth > 0) add_span(log, &log->open[--log->depth], event->time_ns);
}

static void print_summary(const span_log *log) {
    printf("%-10s %6s %12s %12s %6s\n", "span", "count", "average us", "longest us", "slow");
    for (int i = 0; i < SPAN_COUNT; ++i) {
        uint64_t total_ns = 0, longest_ns = 0;
        uint32_t slow = 0, count = log->counts[i];
        for (uint32_t k = 0; k < count; ++k) {
            total_ns += log->durations_ns[i][k];
            if (log->durations_ns[i][k] > longest_ns) longest_ns = log->durations_ns[i][k];
        }
        for (uint32_t k = 0; k < count; ++k) {
            uint64_t ns = log->durations_ns[i][k];
            slow += ns > SLOW_NS || ns * count > 2 * total_ns;
        }
        printf("%-10s %6u %12.1f %12.1f %6u\n", span_names[i], count, count > 0 ? (double)total_ns / count / 1000 : 0.0,
               (double)longest_ns / 1000, slow);
    }
}

static double work(uint32_t rounds) {
    double x = 1;
    for (uint32_t i = 0; i < rounds; ++i) x = x * 1.000001 + 0.5 / x;
    return x;
}

static double run_frames(nb_trace_thread *thread, const nb_label *labels, nb_label energy) {
    double total = 0;
    for (uint64_t frame = 0; frame < 100; ++frame) {
        nb_trace_frame(thread, frame);
        NB_TRACE_SCOPE(thread, labels[SPAN_FRAME]);
        {
            NB_TRACE_SCOPE(thread, labels[SPAN_PHYSICS]);
            total += work(2000);
        }
        {
            NB_TRACE_SCOPE(thread, labels[SPAN_RENDER]);
            total += work(frame % 25 == 24 ? 40000 : 4000); // now and then a slow one
        }
        nb_trace_counter_f64(thread, energy, total);
    }
    return total;
}

int main(int argc, char **argv) {
    if (argc > 2) {
        fprintf(stderr, "usage: only_trace [trace.json]\n");
        return 2;
    }
    nb_trace *trace = NULL;
    nb_trace_thread *thread = NULL;
    nb_label energy = {0};
    span_log log = {0};
    if (nb_trace_create(NULL, &trace) != NB_OK || nb_trace_attach(trace, "main", &thread) != NB_OK) return 1;
    for (int i = 0; i < SPAN_COUNT; ++i) nb_labels_intern(nb_trace_labels(trace), span_names[i], &log.labels[i]);
    nb_labels_intern(nb_trace_labels(trace), "energy", &energy);

    double total = run_frames(thread, log.labels, energy);
    nb_result result = NB_OK;
    if (argc == 2) {
        result = nb_trace_write_json_file(trace, argv[1]);
        if (result == NB_OK) printf("%s: 100 frames, energy %.3f\n", argv[1], total);
    } else {
        result = nb_trace_read(trace, collect, &log);
        print_summary(&log);
    }
    nb_trace_destroy(trace);
    return result == NB_OK ? 0 : 1;
}
