// SPDX-License-Identifier: MIT
// The headless demo: the loop at its tick rate, drawn at its frame rate into one line of a terminal, with tasks on
// every core whose results each frame verifies.

#include <stdio.h>
#include <unistd.h>

#include "colour.h"
#include "nebula/loop.h"
#include "nebula/trace.h"
#include "options.h"
#include "work.h"

// Refreshes of the status line: ten a second can be read.
#define STATUS_NS 100000000u

// Frames the shown numbers look back on: about a second of most displays.
#define WINDOW_FRAMES 60

typedef struct demo {
    demo_options options;
    nb_loop loop;
    nb_frame_stats stats;
    nb_clock_manual manual;
    demo_work work;
    nb_trace *trace;           // NULL = none
    nb_trace_thread *recorder; // this thread's end of it
    nb_label frame_label;
    bool is_terminal;
    bool has_start;
    uint64_t start_ns;         // of the first frame
    uint64_t next_status_ns;   // since then
    uint64_t next_teleport_ns; // since then; 0 = not set
    uint64_t last_tick;        // the newest tick, drawn by its colour
} demo;

static void on_tick(void *user, const nb_tick *tick) {
    demo *d = (demo *)user;
    d->last_tick = tick->index;
    if (!d->options.has_tick_lines) return;
    demo_colour colour = demo_colour_of(tick->index);
    printf("tick %llu #%02x%02x%02x\n", (unsigned long long)tick->index, colour.red, colour.green, colour.blue);
}

// How busy the workers are says something about this machine, so a virtual run leaves it out.
static void print_work(demo *d) {
    if (!d->options.is_virtual) {
        demo_load load = demo_work_load_get(&d->work);
        printf("busy %3.0f%%  queued %2llu  ", 100 * load.busy_share, (unsigned long long)load.queued_count);
    }
    fputs(d->work.wrong == 0 ? "sum ok  " : "sum WRONG  ", stdout);
}

static void print_status(demo *d, const nb_loop_frame *frame) {
    nb_frame_summary s = {0}, all = {0};
    nb_frame_stats_summarise(&d->stats, WINDOW_FRAMES, &s);
    nb_frame_stats_summarise(&d->stats, 0, &all);
    demo_colour c = demo_colour_of(d->last_tick);
    double time_s = (double)(frame->now_ns - d->start_ns) / 1e9, p99_ms = (double)all.p99_ns / 1e6;
    // Without wrapping, so that a narrow terminal cuts the line off and the next one still replaces it.
    if (d->is_terminal) printf("\r\x1b[?7l\x1b[48;2;%u;%u;%um    \x1b[0m ", c.red, c.green, c.blue);
    printf("%6.2f s  %5.1f fps  %5.1f ups  ", time_s, s.fps, s.ups);
    print_work(d);
    printf("p99 %6.2f ms  alpha %.3f  #%02x%02x%02x", p99_ms, frame->alpha, c.red, c.green, c.blue);
    fputs(d->is_terminal ? "\x1b[K\x1b[?7h" : "\n", stdout);
    fflush(stdout);
}

static void teleport(demo *d) {
    uint64_t stopped = demo_work_teleport(&d->work);
    if (d->is_terminal) fputs("\r\x1b[K", stdout); // the status comes again below
    printf("Cancelled %llu stale tasks\n", (unsigned long long)stopped);
}

static void on_frame(void *user, const nb_loop_frame *frame) {
    demo *d = (demo *)user;
    if (!d->has_start) d->start_ns = frame->now_ns;
    d->has_start = true;
    uint64_t time_ns = frame->now_ns - d->start_ns;
    NB_TRACE_SCOPE(d->recorder, d->frame_label);
    nb_trace_frame(d->recorder, frame->index);
    demo_work_frame(&d->work, frame->index);
    if (d->options.teleport_ns > 0 && time_ns >= d->next_teleport_ns) {
        if (d->next_teleport_ns > 0) teleport(d); // not before the first journey
        d->next_teleport_ns = time_ns + d->options.teleport_ns;
    }
    if (time_ns >= d->next_status_ns) {
        if (d->next_status_ns > 0) print_status(d, frame); // the first frame has nothing to say
        d->next_status_ns += d->is_terminal ? STATUS_NS : 10 * (uint64_t)STATUS_NS;
    }
    bool is_last = frame->index + 1 == d->options.frame_count;
    if (is_last || time_ns >= d->options.duration_ns) nb_loop_quit(&d->loop);
}

static void print_end(const demo *d) {
    nb_loop_report report = nb_loop_report_get(&d->loop);
    if (d->is_terminal) putchar('\n');
    printf("%llu frames, %llu ticks, %.1f ms dropped, %llu hitches, %llu frames checked, %llu wrong\n",
           (unsigned long long)report.frame_count, (unsigned long long)report.tick_count,
           (double)report.dropped_ns / 1e6, (unsigned long long)d->stats.hitch_count,
           (unsigned long long)d->work.checked, (unsigned long long)d->work.wrong);
}

static nb_result run_loop(demo *d) {
    nb_loop_desc desc = nb_loop_desc_default();
    desc.tick_rate = d->options.tick_rate;
    desc.pace_rate = d->options.render_rate;
    desc.stats = &d->stats;
    nb_clock_manual_init(&d->manual, 0);
    if (d->options.is_virtual) desc.clock = nb_clock_manual_get(&d->manual);
    nb_frame_stats_init(&d->stats);
    nb_loop_callbacks callbacks = {.tick_fn = on_tick, .frame_fn = on_frame, .user = d};
    nb_result result = nb_loop_init(&d->loop, &desc);
    return result == NB_OK ? nb_loop_run(&d->loop, &callbacks) : result;
}

static nb_result trace_begin(demo *d) {
    if (d->options.trace_path == NULL) return NB_OK;
    nb_result result = nb_trace_create(NULL, &d->trace);
    if (result == NB_OK) result = nb_labels_intern(nb_trace_labels(d->trace), "frame", &d->frame_label);
    return result == NB_OK ? nb_trace_attach(d->trace, "main", &d->recorder) : result;
}

static nb_result trace_end(demo *d) {
    if (d->trace == NULL) return NB_OK;
    nb_result result = nb_trace_write_json_file(d->trace, d->options.trace_path);
    nb_trace_detach(d->recorder);
    nb_trace_destroy(d->trace);
    return result;
}

static int run(demo *d) {
    bool has_chunks = !d->options.is_virtual || d->options.teleport_ns > 0;
    nb_result result = trace_begin(d);
    if (result == NB_OK) result = demo_work_start(&d->work, d->options.worker_count, has_chunks);
    d->work.chunk_next = d->options.seed;
    if (result == NB_OK) result = run_loop(d);
    nb_result trace_result = trace_end(d);
    if (result == NB_OK) result = trace_result;
    nb_result stop_result = demo_work_stop(&d->work);
    if (result == NB_OK) result = stop_result;
    if (result == NB_OK) {
        print_end(d);
    } else {
        fprintf(stderr, "nebula-demo: %s\n", nb_result_name(result));
    }
    return result == NB_OK && d->work.wrong == 0 ? 0 : 1;
}

int main(int argc, char **argv) {
    static demo d;
    if (!demo_options_read(argc, argv, &d.options)) return 2;
    if (d.options.is_help) return 0;
    d.is_terminal = isatty(STDOUT_FILENO) && !d.options.is_virtual && !d.options.has_tick_lines;
    nb_rate t = d.options.tick_rate, r = d.options.render_rate;
    printf("nebula %s: %u/%u ticks and %u/%u frames a second, ", nb_version(), t.num, t.den, r.num, r.den);
    if (d.options.frame_count > 0) printf("%llu frames", (unsigned long long)d.options.frame_count);
    if (d.options.duration_ns < UINT64_MAX)
        printf("%s%.1f s", d.options.frame_count > 0 ? " or " : "", (double)d.options.duration_ns / 1e9);
    putchar('\n');
    return run(&d);
}
