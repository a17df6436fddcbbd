// SPDX-License-Identifier: MIT
// What the demo tells a person.

#include "report.h"

#include <stdarg.h>
#include <stdio.h>

// A text that grows, and that is cut off where its buffer ends.
typedef struct text_out {
    char *text;
    size_t size, used;
} text_out;

static void put(text_out *out, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int written = vsnprintf(out->text + out->used, out->size - out->used, format, arguments);
    va_end(arguments);
    if (written < 0) return;
    size_t left = out->size - out->used - 1;
    out->used += (size_t)written < left ? (size_t)written : left;
}

static double ms(uint64_t ns) { return (double)ns / 1e6; }
static double mib(uint64_t bytes) { return (double)bytes / 1048576.0; }

void report_header(bool is_virtual, char text[REPORT_LINE_SIZE]) {
    text_out out = {text, REPORT_LINE_SIZE, 0};
    put(&out, "  time     fps  animals");
    if (!is_virtual) put(&out, "  chunks  p50 ms     p99     max   new/s  cancelled    MiB  quality");
    put(&out, "        state hash");
}

void report_line(const demo_report *r, char text[REPORT_LINE_SIZE]) {
    text_out out = {text, REPORT_LINE_SIZE, 0};
    put(&out, "%4.0f s%c %6.1f  %7u", r->time_s, r->is_back ? '<' : ' ', r->fps, r->creature_count);
    if (!r->is_virtual) {
        put(&out, "  %6u  %6.1f  %6.1f  %6.1f", r->chunk_count, ms(r->p50_ns), ms(r->p99_ns), ms(r->max_ns));
        put(&out, "  %6.0f  %9llu", r->chunks_per_s, (unsigned long long)r->chunk_cancelled_count);
        put(&out, "  %5.1f  %5u/%u", mib(r->frame_peak_bytes + r->job_peak_bytes), r->quality_level,
            r->quality_level_max);
    }
    put(&out, "  %016llx", (unsigned long long)r->state_hash);
}

void report_end(const demo_report *r, char text[REPORT_END_SIZE]) {
    text_out out = {text, REPORT_END_SIZE, 0};
    put(&out, "run         %.1f s, %llu ticks, %llu frames, %.1f a second\n", r->time_s,
        (unsigned long long)r->tick_count, (unsigned long long)r->frame_count, r->fps);
    if (!r->is_virtual) {
        put(&out, "frames      half within %.2f ms, 99 of 100 within %.2f ms, longest %.2f ms\n", ms(r->p50_ns),
            ms(r->p99_ns), ms(r->max_ns));
        put(&out, "chunks      %llu made, %.1f a second, %llu cancelled, %u ready\n",
            (unsigned long long)r->chunk_ready_count, r->chunks_per_s, (unsigned long long)r->chunk_cancelled_count,
            r->chunk_count);
        put(&out, "memory      %.2f MiB at most for a frame, %.2f MiB for a job\n", mib(r->frame_peak_bytes),
            mib(r->job_peak_bytes));
        put(&out, "quality     level %u of %u\n", r->quality_level, r->quality_level_max);
    }
    if (r->back_count > 0) put(&out, "rewound     %llu ticks\n", (unsigned long long)r->back_count);
    put(&out, "animals     %u, %llu born, %llu died\n", r->creature_count, (unsigned long long)r->birth_count,
        (unsigned long long)r->death_count);
    put(&out, "state hash  %016llx\n", (unsigned long long)r->state_hash);
}
