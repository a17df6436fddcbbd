// SPDX-License-Identifier: MIT
// The demo: a planet of voxels with animals on it, explored by a camera from orbit to the ground. Everything Nebula has
// takes part: ticks at a fixed rate, a world of tables, snapshots, nine kinds of parallel work, chunks of many levels
// of detail made in jobs of many frames, teleports that cancel them, a frame graph that is recorded on all threads, and
// a state hash that is the same for any number of workers and any frame rate.

#include <stdio.h>
#include <string.h>

#include "chunks/quality.h"
#include "chunks/streamer.h"
#include "game/planet.h"
#include "game/tick_colour.h"
#include "jobs/checksum.h"
#include "jobs/picture.h"
#include "nebula/engine.h"
#include "nebula/report.h"
#include "nebula/synctest.h"
#include "net/two_players.h"
#include "players/bot.h"
#include "players/keys.h"
#include "players/pilot.h"
#include "players/rewind.h"
#include "players/script.h"
#include "record/recording.h"
#include "shell/numbers.h"
#include "shell/options.h"
#include "shell/report.h"
#include "shell/status.h"
#include "show/show.h"

// Memory of one job's outputs: the poses of a fourth of the most animals take half of it.
#define OUTPUT_BYTES ((size_t)4 << 20)

// Frames that one frame in lockstep waits for chunks, at most: hours.
#define LOCKSTEP_FRAMES_MAX 1000000u

// This thread makes chunks too before it looks again: a frame that only waits takes longer than one of them.
#define LOCKSTEP_HELP_NS UINT64_C(100000000)

// On the virtual clock no job is late, however slow the machine is.
#define VIRTUAL_FENCE_NS UINT64_C(600000000000)

typedef struct demo {
    demo_options options;
    nb_engine *engine;
    nb_trace *trace;
    nb_trace_thread *recorder;
    nb_frame_stats stats;
    numbers numbers;
    nb_clock_manual manual;
    planet planet;
    bots bots;
    script script;
    pilot pilot;
    recording recording;
    streamer streamer;
    picture picture;
    checksum checksum;
    status status;
    show *show; // NULL = nothing is shown
    rewind_plan rewind;
    keys keys;
    uint64_t second;        // of simulated time, printed last
    uint64_t second_frames; // frames, chunks and ticks up to then
    uint64_t second_ready;
    uint64_t stale_count; // printed last
} demo;

static double seconds_of(const demo *d, uint64_t tick_count) {
    return (double)tick_count * d->options.tick_rate.den / d->options.tick_rate.num;
}

// --- output ---

// Numbers of the run; those over a time are over `frame_count` frames and `chunk_count` chunks of it.
static demo_report report_of(const demo *d, uint64_t frame_count, uint64_t chunk_count) {
    nb_engine_stats stats = nb_engine_stats_get(d->engine);
    nb_frame_summary frames = {0};
    nb_frame_stats_summarise(&d->stats, frame_count < UINT32_MAX ? (uint32_t)frame_count : 0, &frames);
    double time_s = seconds_of(d, stats.tick_count);
    const planet_census *census = NB_STORE_SINGLETON(d->planet.world, d->planet.census, 0, planet_census);
    return (demo_report){.time_s = time_s,
                         .tick_count = stats.tick_count,
                         .frame_count = stats.frame_count,
                         .fps = frames.fps,
                         .ups = frames.ups,
                         .alpha = frames.alpha,
                         .busy_share = d->status.busy_share,
                         .queued_count = d->status.queued_count,
                         .checksum = d->checksum.value,
                         .checksum_count = d->checksum.frame_count,
                         .checksum_wrong_count = d->checksum.wrong_count,
                         .p50_ns = frames.p50_ns,
                         .p99_ns = frames.p99_ns,
                         .max_ns = frames.max_ns,
                         .chunk_count = d->streamer.table.state_counts[CHUNK_READY],
                         .chunk_ready_count = d->streamer.ready_count,
                         .chunk_cancelled_count = d->streamer.cancelled_count,
                         .chunks_per_s = frame_count > 0 ? (double)chunk_count * frames.fps / (double)frame_count : 0,
                         .creature_count = nb_store_row_count(d->planet.world, d->planet.creatures),
                         .birth_count = census->birth_count,
                         .death_count = census->death_count,
                         .frame_peak_bytes = stats.frame_peak_bytes,
                         .job_peak_bytes = stats.output_peak_bytes,
                         .quality_level = nb_budget_level(nb_engine_budget(d->engine)),
                         .quality_level_max = QUALITY_COUNT - 1,
                         .state_hash = stats.tick_hash,
                         .back_count = d->rewind.back_count,
                         .is_back = d->rewind.is_back,
                         .triangle_count = d->numbers.last.triangle_count,
                         .has_picture = d->show != NULL,
                         .is_virtual = d->options.is_virtual};
}

// How many tasks there are depends on the machine.
static void print_cancelled(demo *d) {
    uint64_t count = d->streamer.stale_count - d->stale_count;
    d->stale_count = d->streamer.stale_count;
    if (count > 0 && !d->options.is_virtual) printf("Cancelled %llu stale tasks\n", nb_llu(count));
}

// A line for each second that the ticks have come to.
static nb_result print_second(const nb_context *context, void *user) {
    demo *d = user;
    (void)context;
    print_cancelled(d);
    nb_engine_stats stats = nb_engine_stats_get(d->engine);
    uint64_t second = stats.tick_count * d->options.tick_rate.den / d->options.tick_rate.num;
    if (second == d->second) return NB_OK;
    demo_report report = report_of(d, stats.frame_count - d->second_frames, d->streamer.ready_count - d->second_ready);
    char text[REPORT_LINE_SIZE];
    report_line(&report, text);
    puts(text);
    fflush(stdout);
    d->second = second;
    d->second_frames = stats.frame_count;
    d->second_ready = d->streamer.ready_count;
    return NB_OK;
}

static nb_result print_tick(const nb_context *context, void *user) {
    const demo *d = user;
    // The hash is that of the tick before: this handler is a part of its tick.
    if (context->tick->index == 0) return NB_OK;
    uint64_t tick = context->tick->index - 1;
    tick_colour colour = colour_of_tick(tick);
    printf("tick %llu %016llx #%02x%02x%02x\n", nb_llu(tick), nb_llu(nb_engine_stats_get(d->engine).tick_hash),
           colour.red, colour.green, colour.blue);
    return NB_OK;
}

static void print_summary_to(const demo *d, FILE *to) {
    char text[REPORT_END_SIZE];
    demo_report report = report_of(d, 0, 0); // all frames that are remembered
    report.chunks_per_s = report.time_s > 0 ? (double)report.chunk_ready_count / report.time_s : 0;
    numbers_sum_up(&d->numbers, &report.settled);
    report_end(&report, text);
    fputs(text, to);
    show_print(d->show, to);
}

static nb_result print_summary(const demo *d) {
    print_summary_to(d, stdout);
    if (d->options.summary_path == NULL) return NB_OK;
    FILE *file = fopen(d->options.summary_path, "w");
    if (file == NULL) return NB_ERR_OS;
    print_summary_to(d, file);
    bool is_written = ferror(file) == 0;
    if (fclose(file) != 0 || !is_written) return NB_ERR_OS;
    printf("summary     %s\n", d->options.summary_path);
    return NB_OK;
}

// NB_ERR_MISUSE: a tick came to another state when it was simulated again.
static nb_result print_synctest(const demo *d) {
    nb_synctest_report report;
    if (d->options.synctest_depth == 0) return NB_OK;
    nb_result result = nb_engine_synctest_get(d->engine, &report);
    if (result != NB_OK) return result;
    if (report.diverged_count == 0)
        printf("synctest    %llu ticks again, every one the same\n", nb_llu(report.checked_count));
    else
        printf("DIVERGED    %s\n", report.text);
    return report.diverged_count == 0 ? NB_OK : NB_ERR_MISUSE;
}

// --- beginning and end ---

static nb_result trace_begin(demo *d) {
    if (d->options.trace_path == NULL) return NB_OK;
    nb_result result = nb_trace_create(NULL, &d->trace);
    return result == NB_OK ? nb_trace_attach(d->trace, "main", &d->recorder) : result;
}

static nb_result trace_end(demo *d) {
    if (d->trace == NULL) return NB_OK;
    nb_result result = nb_trace_write_json_file(d->trace, d->options.trace_path);
    if (result == NB_OK)
        printf("trace       %s, to be opened in ui.perfetto.dev or chrome://tracing\n", d->options.trace_path);
    if (d->recorder != NULL) nb_trace_detach(d->recorder);
    nb_trace_destroy(d->trace);
    return result;
}

static nb_result engine_begin(demo *d) {
    const demo_options *o = &d->options;
    nb_engine_desc desc = {.loop = {.tick_rate = o->tick_rate,
                                    .pace_rate = o->render_rate,
                                    .stats = &d->stats,
                                    .is_refresh_estimated = show_has_window(d->show)},
                           .scheduler_desc = {.worker_count = o->worker_count},
                           .output_bytes = OUTPUT_BYTES,
                           .is_headless = d->show == NULL,
                           .hashes_ticks = true,
                           .keeps_history = true,
                           .synctest_depth = o->synctest_depth,
                           .adapts_budget = !o->is_quality_fixed,
                           .budget = {.target_ns = UINT64_C(1000000000) * o->render_rate.den / o->render_rate.num,
                                      .level_count = QUALITY_COUNT,
                                      .level_lowered = QUALITY_COUNT - 1 - o->quality},
                           .seed = o->seed,
                           .trace = d->trace};
    nb_frame_stats_init(&d->stats);
    nb_clock_manual_init(&d->manual, 0);
    if (o->is_virtual) {
        desc.loop.clock = nb_clock_manual_get(&d->manual);
        desc.fence_timeout_ns = VIRTUAL_FENCE_NS;
    }
    return nb_engine_create(&desc, &d->engine);
}

static const script *script_of(const demo *d) { return d->options.script_path != NULL ? &d->script : NULL; }

// A flight of its own, and how long that is. On false one line about it is on stderr.
static bool script_begin(demo *d) {
    demo_options *o = &d->options;
    char why[SCRIPT_WHY_SIZE];
    if (o->script_path == NULL) return true;
    if (!script_read(&d->script, o->script_path, o->seed, o->tick_rate, why)) {
        fprintf(stderr, "nebula-demo: %s\n", why);
        return false;
    }
    bool has_length = o->duration_ns != 0 || o->frame_count != 0;
    // A second more: the last picture is taken while ticks run.
    if (!has_length) o->tick_count = d->script.tick_last + (o->tick_rate.num + o->tick_rate.den - 1) / o->tick_rate.den;
    return true;
}

static nb_result modules_begin(demo *d) {
    const demo_options *o = &d->options;
    d->planet.seed = o->seed;
    d->planet.tick_count_max = o->tick_count;
    d->planet.teleport_ticks = o->teleport_ticks;
    nb_result result = planet_attach(&d->planet, d->engine);
    if (result == NB_OK) result = streamer_attach(&d->streamer, d->engine, &d->planet);
    d->streamer.is_exact = o->is_lockstep;
    if (result == NB_OK) result = picture_attach(&d->picture, d->engine, &d->planet, &d->streamer);
    if (result == NB_OK) result = checksum_attach(&d->checksum, d->engine, &d->planet);
    show_scene scene = {&d->planet, &d->streamer, &d->picture, &d->status};
    if (result == NB_OK) result = show_attach(d->show, d->engine, &scene);
    if (result == NB_OK) result = planet_populate(&d->planet);
    d->bots.is_over = &d->pilot.is_flying;
    d->bots.script = script_of(d);
    if (result == NB_OK && d->show != NULL && o->replay_path == NULL)
        result = pilot_attach(&d->pilot, d->engine, &d->planet, 0);
    if (result == NB_OK && o->replay_path == NULL) result = bots_attach(&d->bots, d->engine, o->seed);
    if (result == NB_OK) result = recording_attach(&d->recording, d->engine, o);
    nb_module_desc printer = {.name = "teller", .user = d, .priority = -1};
    printer.handlers[NB_PHASE_FRAME_END] = print_second;
    if (o->has_tick_lines) printer.tick = print_tick;
    return result == NB_OK ? nb_engine_module_attach(d->engine, &printer, NULL) : result;
}

// What the frame that has ended was like. On the virtual clock there is nothing to measure.
static void measure(demo *d) {
    nb_engine_stats stats = nb_engine_stats_get(d->engine);
    nb_frame_summary newest;
    if (d->options.is_virtual || nb_frame_stats_summarise(&d->stats, 1, &newest) != NB_OK) return;
    numbers_frame frame = {.frame_ns = newest.frame_ns,
                           .chunk_count = d->streamer.ready_count,
                           .quality = nb_budget_level(nb_engine_budget(d->engine))};
    memcpy(frame.phase_ns, stats.phase_ns, sizeof frame.phase_ns);
    show_measure(d->show, &frame);
    numbers_add(&d->numbers, &frame);
}

// One frame, and what is shown of it.
static nb_result draw_frame(demo *d) {
    bool is_back = d->keys.is_back;
    if (!show_begin(d->show, &is_back)) nb_engine_stop(d->engine);
    nb_result result = rewind_step(&d->rewind, d->engine, is_back);
    if (result == NB_OK) result = nb_engine_frame(d->engine);
    status_read(&d->status, d->engine, &d->stats, &d->checksum);
    if (result == NB_OK) measure(d);
    return result == NB_OK ? show_end_frame(d->show) : result;
}

static nb_result run_frame(demo *d) {
    nb_result result = nb_loop_pace(nb_engine_loop(d->engine));
    keys_read(&d->keys, nb_clock_now_ns(NULL));
    if (d->keys.is_quit_pressed) nb_engine_stop(d->engine);
    if (result == NB_OK) result = draw_frame(d);
    if (!d->options.is_lockstep) return result;
    // The clock stands still meanwhile: no tick comes.
    for (uint32_t i = 0; i < LOCKSTEP_FRAMES_MAX && result == NB_OK && !show_is_settled(d->show); ++i) {
        nb_scheduler_help(nb_engine_scheduler(d->engine), LOCKSTEP_HELP_NS, NULL);
        result = draw_frame(d);
    }
    return result;
}

// A frame that failed is a mistake of the demo.
static nb_result run(demo *d) {
    nb_result result = NB_OK;
    d->rewind = (rewind_plan){.at_tick = d->options.rewind_tick,
                              .for_ticks = d->options.tick_rate.num / d->options.tick_rate.den};
    if (!d->options.is_virtual) keys_open(&d->keys);
    if (d->keys.is_open) puts("hold r: time runs backwards; q: end");
    while (result == NB_OK && !nb_engine_is_stopping(d->engine)) result = run_frame(d);
    keys_close(&d->keys);
    nb_engine_stats stats = nb_engine_stats_get(d->engine);
    bool is_sound = stats.failure_count == 0 && stats.violation_count == 0 && nb_store_is_valid(d->planet.world);
    is_sound = is_sound && d->checksum.wrong_count == 0;
    return result == NB_OK && !is_sound ? NB_ERR_MISUSE : result;
}

static int end(demo *d, nb_result result) {
    nb_result recorded = recording_close(&d->recording, &d->options);
    if (result == NB_OK) result = recorded;
    nb_result ended = nb_engine_destroy(d->engine);
    if (result == NB_OK) result = ended;
    if (ended != NB_OK) return 1; // the log says what still runs, and it has the memory below
    nb_result traced = trace_end(d);
    if (result == NB_OK) result = traced;
    show_close(d->show);
    planet_end(&d->planet);
    streamer_end(&d->streamer);
    picture_end(&d->picture);
    if (result != NB_OK) fprintf(stderr, "nebula-demo: %s\n", nb_result_name(result));
    return result == NB_OK ? 0 : 1;
}

int main(int argc, char **argv) {
    static demo d;
    if (!demo_options_read(argc, argv, &d.options)) return 2;
    if (d.options.is_help) return 0;
    if (d.options.has_players) return players_run(&d.options, NULL);
    if (!recording_open(&d.recording, &d.options)) return 2;
    if (!script_begin(&d)) return 2;
    nb_rate t = d.options.tick_rate, r = d.options.render_rate;
    nb_result result = show_open(&d.options, script_of(&d), &d.show);
    if (result == NB_ERR_UNSUPPORTED || result == NB_ERR_OS) return 2; // one line has told
    if (result == NB_OK) result = trace_begin(&d);
    if (result == NB_OK) result = engine_begin(&d);
    if (result == NB_OK) result = modules_begin(&d);
    printf("nebula %s: planet %llu, %u/%u ticks and %u/%u frames a second, %llu ticks\n", nb_version(),
           nb_llu(d.options.seed), t.num, t.den, r.num, r.den, nb_llu(d.options.tick_count));
    char header[REPORT_LINE_SIZE];
    report_header(d.options.is_virtual, d.show != NULL, header);
    puts(header);
    if (result == NB_OK) result = run(&d);
    if (result == NB_OK) result = print_summary(&d);
    if (result == NB_OK) result = print_synctest(&d);
    return end(&d, result);
}
