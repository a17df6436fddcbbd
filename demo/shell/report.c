// SPDX-License-Identifier: MIT
// What the demo tells a person.

#include "report.h"

#include "nebula/report.h"

#include <stdarg.h>
#include <stdio.h>

// Columns of a line of phases before it is broken.
#define PHASES_WIDTH 90

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

void report_header(bool is_virtual, bool has_picture, char text[REPORT_LINE_SIZE]) {
    text_out out = {text, REPORT_LINE_SIZE, 0};
    put(&out, "  time     fps     ups  alpha  animals");
    if (!is_virtual && has_picture) put(&out, "  triangles");
    if (!is_virtual) put(&out, "  chunks  p50 ms     p99     max   new/s  cancelled    MiB  quality   load  queue");
    put(&out, "  checksum        state hash");
}

void report_line(const demo_report *r, char text[REPORT_LINE_SIZE]) {
    text_out out = {text, REPORT_LINE_SIZE, 0};
    put(&out, "%4.0f s%c %6.1f  %6.1f   %.2f  %7u", r->time_s, r->is_back ? '<' : ' ', r->fps, r->ups, (double)r->alpha,
        r->creature_count);
    if (!r->is_virtual && r->has_picture) put(&out, "  %9u", r->triangle_count);
    if (!r->is_virtual) {
        put(&out, "  %6u  %6.1f  %6.1f  %6.1f", r->chunk_count, ms(r->p50_ns), ms(r->p99_ns), ms(r->max_ns));
        put(&out, "  %6.0f  %9llu", r->chunks_per_s, nb_llu(r->chunk_cancelled_count));
        put(&out, "  %5.1f  %5u/%u", mib(r->frame_peak_bytes + r->job_peak_bytes), r->quality_level,
            r->quality_level_max);
        put(&out, "  %3.0f %%  %5llu", 100 * r->busy_share, nb_llu(r->queued_count));
    }
    // Its upper half is enough to see that it moves.
    put(&out, "  %08llx  %016llx", nb_llu(r->checksum >> 32), nb_llu(r->state_hash));
}

// Phases whose median is as much as a hundredth of a millisecond, in their order, as many as fit a line.
static void put_phases(text_out *out, const numbers_summary *s) {
    size_t line = out->used;
    put(out, "phases      ms:");
    for (int phase = 1; phase < NB_PHASE_COUNT; ++phase) {
        if (s->phase_ms[phase] < 0.01) continue;
        if (out->used - line > PHASES_WIDTH) {
            put(out, "\n               ");
            line = out->used;
        }
        put(out, " %s %.2f", nb_phase_info_get((nb_phase)phase)->name, s->phase_ms[phase]);
    }
    put(out, "\n");
}

// Medians of what is measured on a machine that has settled.
static void put_settled(text_out *out, const demo_report *r) {
    const numbers_summary *s = &r->settled;
    put(out, "median      %.1f frames a second, of %llu frames ", s->fps, nb_llu(s->frame_count));
    put(out, s->is_warm ? "after the first 5 s\n" : "of a run that was too short to settle\n");
    if (r->has_picture) {
        put(out, "picture     %u triangles, %u at most", s->triangle_count, s->triangle_max);
        put(out, ", %u with what hills hide", s->view_triangle_count);
        if (s->gpu_ms > 0) put(out, ", %.2f ms on the device", s->gpu_ms);
        put(out, "\nuploads     %.2f MB, then %.3f MB/s", (double)s->upload_bytes / 1e6, s->upload_mb_per_s);
        put(out, " with %.1f chunks/s\n", s->chunks_per_s);
    }
    put_phases(out, s);
}

void report_end(const demo_report *r, char text[REPORT_END_SIZE]) {
    text_out out = {text, REPORT_END_SIZE, 0};
    put(&out, "run         %.1f s, %llu ticks, %llu frames, %.1f a second\n", r->time_s, nb_llu(r->tick_count),
        nb_llu(r->frame_count), r->fps);
    if (!r->is_virtual) {
        put(&out, "frames      half within %.2f ms, 99 of 100 within %.2f ms, longest %.2f ms\n", ms(r->p50_ns),
            ms(r->p99_ns), ms(r->max_ns));
        put(&out, "chunks      %llu made, %.1f a second, %llu cancelled, %u ready\n", nb_llu(r->chunk_ready_count),
            r->chunks_per_s, nb_llu(r->chunk_cancelled_count), r->chunk_count);
        put(&out, "memory      %.2f MiB at most for a frame, %.2f MiB for a job\n", mib(r->frame_peak_bytes),
            mib(r->job_peak_bytes));
        put(&out, "quality     level %u of %u", r->quality_level, r->quality_level_max);
        if (r->settled.frame_count > 0) put(&out, ", mostly %u", r->settled.quality_most);
        put(&out, "\n");
        if (r->settled.frame_count > 0) put_settled(&out, r);
    }
    if (r->back_count > 0) put(&out, "rewound     %llu ticks\n", nb_llu(r->back_count));
    put(&out, "animals     %u, %llu born, %llu died\n", r->creature_count, nb_llu(r->birth_count),
        nb_llu(r->death_count));
    if (r->checksum_wrong_count > 0)
        put(&out, "WRONG       the checksums of %llu of %llu frames\n", nb_llu(r->checksum_wrong_count),
            nb_llu(r->checksum_count));
    else
        put(&out, "checksums   %llu frames, every one right\n", nb_llu(r->checksum_count));
    put(&out, "state hash  %016llx\n", nb_llu(r->state_hash));
}
