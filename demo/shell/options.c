// SPDX-License-Identifier: MIT
// The demo's command line.

#include "options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../chunks/quality.h"
#include "nebula/tasks.h"

// Runs: a whole flight, and an hour is more than anybody watches.
#define SECONDS_DEFAULT 20
#define SECONDS_MIN 0.1
#define SECONDS_MAX 3600.0

// Shortest time between teleports: the frame rate's limit.
#define TELEPORT_SECONDS_MIN 0.001

// Most frames: an hour at the highest rate.
#define FRAMES_MAX 3600000

// Most workers: what a scheduler has room for beside its coordinator, rounded down.
#define WORKERS_MAX 60

// Ticks a self-test goes back: what a frame's rollback goes.
#define SYNCTEST_DEPTH_MAX 64

// Networks that somebody would still play over; the rest of 64 ticks is for messages that were lost.
#define LAG_MS_MAX 500
#define LOSS_PERCENT_MAX 90

// Pictures: as small as a stamp, as large as every device draws.
#define PICTURE_SIZE_MIN 16
#define PICTURE_SIZE_MAX 8192
#define WIDTH_DEFAULT 640
#define HEIGHT_DEFAULT 360

// Rates the demo takes: what a person can see.
#define RATE_MIN 1.0
#define RATE_MAX 1000.0

static const char HELP[] =
    "usage: nebula-demo [OPTION...]\n"
    "A planet of voxels with animals on it, seen from orbit and from the ground, by everything the library has: in a\n"
    "window where there is a display, else with pictures as files. The state hash at the end depends on --seed, --hz,\n"
    "--teleport-every, --script and how long it runs, and on\n"
    "nothing else: not on workers, frame rate or machine.\n"
    "  --seconds S         how long, in simulated time, 0.1 to 3600 (default 20)\n"
    "  --frames N          how long, in frames at the rate of the ticks, 1 to 3600000\n"
    "  --seed S            of the planet, decimal or 0x and hexadecimal (default 1)\n"
    "  --hz R              ticks a second, 1 to 1000, such as 60 or 60000/1001 (default 60)\n"
    "  --render-hz R       frames a second (default: as many as ticks)\n"
    "  --workers N         threads beside the main one, 0 to 60 (default: the machine's)\n"
    "  --teleport-every S  seconds between further teleports, which cancel work, 0.001 to 3600\n"
    "  --gpu DEVICE        vulkan, null (a device without a picture) or none (default: vulkan where there is one)\n"
    "  --size WxH          of the picture, 16x16 to 8192x8192 (default 640x360)\n"
    "  --quality N         of the picture, 0 to 7, and it stays so (default: what the frame rate leaves time for)\n"
    "  --pictures FOLDER   write pictures of the flight there, as PNG\n"
    "  --no-window         no window, though there is a display\n"
    "  --lockstep          on the virtual clock, and frames wait for what is to be drawn: the same pictures always\n"
    "  --validate          with Vulkan's validation layer\n"
    "  --trace FILE        write what each thread did, for chrome://tracing, Perfetto or speedscope\n"
    "  --summary FILE      write what is told at the end there too\n"
    "  --virtual           run on a virtual clock: at once, and with the same output everywhere\n"
    "  --script FILE       fly as the file says (docs/planet.md), by default until a second after its last line\n"
    "  --record FILE       write a recording, for --replay and nebula-replay\n"
    "  --replay FILE       play a recording again and compare; its planet and length are taken\n"
    "  --rewind-at S       at this second time runs backwards for one second; in a terminal also while r is held\n"
    "  --synctest D        every tick goes D ticks back, 1 to 64, and has to come to the same state again\n"
    "  --lag MS            two players in one process, each ahead of the other's input: one way, 0 to 500 ms\n"
    "  --jitter MS         up to so much more, 0 to 500 (default: half of --lag)\n"
    "  --loss P            of their messages, 0 to 90 percent\n"
    "  --ticks             one line for each tick, with its state hash\n"
    "  --help              this text\n";

// Digits alone, up to value_max: strtoull takes signs and spaces.
static bool read_number(const char *text, uint64_t value_max, uint64_t *out) {
    bool is_hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
    const char *digits = is_hex ? text + 2 : text;
    char *end = NULL;
    errno = 0;
    unsigned long long value = strtoull(digits, &end, is_hex ? 16 : 10);
    bool is_digit = (digits[0] >= '0' && digits[0] <= '9') ||
                    (is_hex && ((digits[0] >= 'a' && digits[0] <= 'f') || (digits[0] >= 'A' && digits[0] <= 'F')));
    if (!is_digit || *end != '\0' || errno != 0 || value > value_max) return false;
    *out = value;
    return true;
}

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

static bool set_seconds(const char *text, demo_options *out) {
    return read_seconds(text, SECONDS_MIN, &out->duration_ns);
}

static bool set_frames(const char *text, demo_options *out) {
    return read_number(text, FRAMES_MAX, &out->frame_count) && out->frame_count > 0;
}

static bool set_seed(const char *text, demo_options *out) { return read_number(text, UINT64_MAX, &out->seed); }
static bool set_hz(const char *text, demo_options *out) { return read_rate(text, &out->tick_rate); }
static bool set_render_hz(const char *text, demo_options *out) { return read_rate(text, &out->render_rate); }

static bool set_workers(const char *text, demo_options *out) {
    uint64_t count = 0;
    if (!read_number(text, WORKERS_MAX, &count)) return false;
    out->worker_count = count == 0 ? NB_WORKER_COUNT_NONE : (uint32_t)count;
    return true;
}

static bool set_teleport(const char *text, demo_options *out) {
    return read_seconds(text, TELEPORT_SECONDS_MIN, &out->teleport_ns);
}

static bool set_gpu(const char *text, demo_options *out) {
    static const char *const names[DEMO_GPU_COUNT] = {"default", "none", "null", "vulkan"};
    for (int i = 0; i < DEMO_GPU_COUNT; ++i) {
        if (strcmp(text, names[i]) != 0) continue;
        out->gpu = (demo_gpu)i;
        return true;
    }
    return false;
}

// "640x360".
static bool set_size(const char *text, demo_options *out) {
    char width[16];
    const char *cross = strchr(text, 'x');
    uint64_t w = 0, h = 0;
    if (cross == NULL || (size_t)(cross - text) >= sizeof width) return false;
    memcpy(width, text, (size_t)(cross - text));
    width[cross - text] = '\0';
    if (!read_number(width, PICTURE_SIZE_MAX, &w) || !read_number(cross + 1, PICTURE_SIZE_MAX, &h)) return false;
    out->width = (uint32_t)w;
    out->height = (uint32_t)h;
    return w >= PICTURE_SIZE_MIN && h >= PICTURE_SIZE_MIN;
}

static bool set_quality(const char *text, demo_options *out) {
    uint64_t level = 0;
    if (!read_number(text, QUALITY_COUNT - 1, &level)) return false;
    out->quality = (uint32_t)level;
    out->is_quality_fixed = true;
    return true;
}

static bool set_pictures(const char *text, demo_options *out) {
    out->picture_folder = text;
    return text[0] != '\0';
}

static bool set_trace(const char *text, demo_options *out) {
    out->trace_path = text;
    return text[0] != '\0';
}

static bool set_summary(const char *text, demo_options *out) {
    out->summary_path = text;
    return text[0] != '\0';
}

static bool set_record(const char *text, demo_options *out) {
    out->record_path = text;
    return text[0] != '\0';
}

static bool set_replay(const char *text, demo_options *out) {
    out->replay_path = text;
    return text[0] != '\0';
}

static bool set_script(const char *text, demo_options *out) {
    out->script_path = text;
    return text[0] != '\0';
}

static bool set_rewind(const char *text, demo_options *out) { return read_seconds(text, SECONDS_MIN, &out->rewind_ns); }

static bool set_synctest(const char *text, demo_options *out) {
    uint64_t depth = 0;
    if (!read_number(text, SYNCTEST_DEPTH_MAX, &depth) || depth == 0) return false;
    out->synctest_depth = (uint32_t)depth;
    return true;
}

static bool set_lag(const char *text, demo_options *out) {
    uint64_t ms = 0;
    out->has_players = true;
    if (!read_number(text, LAG_MS_MAX, &ms)) return false;
    out->lag_ns = ms * 1000000;
    return true;
}

static bool set_jitter(const char *text, demo_options *out) {
    uint64_t ms = 0;
    out->has_players = out->has_jitter = true;
    if (!read_number(text, LAG_MS_MAX, &ms)) return false;
    out->jitter_ns = ms * 1000000;
    return true;
}

static bool set_loss(const char *text, demo_options *out) {
    uint64_t percent = 0;
    out->has_players = true;
    if (!read_number(text, LOSS_PERCENT_MAX, &percent)) return false;
    out->loss = (double)percent / 100;
    return true;
}

static const struct {
    const char *name;
    bool (*set)(const char *text, demo_options *out);
} VALUES[] = {
    {"--seconds", set_seconds},
    {"--frames", set_frames},
    {"--seed", set_seed},
    {"--hz", set_hz},
    {"--render-hz", set_render_hz},
    {"--workers", set_workers},
    {"--teleport-every", set_teleport},
    {"--gpu", set_gpu},
    {"--size", set_size},
    {"--quality", set_quality},
    {"--pictures", set_pictures},
    {"--trace", set_trace},
    {"--summary", set_summary},
    {"--record", set_record},
    {"--replay", set_replay},
    {"--script", set_script},
    {"--rewind-at", set_rewind},
    {"--synctest", set_synctest},
    {"--lag", set_lag},
    {"--jitter", set_jitter},
    {"--loss", set_loss},
};
#define VALUE_COUNT (sizeof VALUES / sizeof VALUES[0])

static bool read_flag(const char *name, demo_options *out) {
    if (strcmp(name, "--virtual") == 0)
        out->is_virtual = true;
    else if (strcmp(name, "--lockstep") == 0)
        out->is_lockstep = out->is_virtual = true;
    else if (strcmp(name, "--no-window") == 0)
        out->is_windowless = true;
    else if (strcmp(name, "--validate") == 0)
        out->is_validated = true;
    else if (strcmp(name, "--ticks") == 0)
        out->has_tick_lines = true;
    else if (strcmp(name, "--help") == 0)
        out->is_help = true;
    else
        return false;
    return true;
}

// Reads an option and its value, which may be missing (NULL).
static bool read_value(const char *name, const char *value, demo_options *out) {
    size_t i = 0;
    while (i < VALUE_COUNT && strcmp(name, VALUES[i].name) != 0) ++i;
    if (i == VALUE_COUNT) {
        fprintf(stderr, "nebula-demo: unknown option '%s' (try --help)\n", name);
        return false;
    }
    if (value == NULL) {
        fprintf(stderr, "nebula-demo: %s needs a value (try --help)\n", name);
        return false;
    }
    if (VALUES[i].set(value, out)) return true;
    fprintf(stderr, "nebula-demo: '%s' is not a value for %s (try --help)\n", value, name);
    return false;
}

// Rounded up: a run of any length has a tick.
static uint64_t ticks_of(uint64_t time_ns, nb_rate rate) {
    // At most an hour at 1000 ticks a second, and rates have 32 bits: doubles count that exactly enough for a rounding.
    double ticks = (double)time_ns / 1e9 * rate.num / rate.den;
    uint64_t whole = (uint64_t)ticks;
    return (double)whole < ticks ? whole + 1 : whole;
}

static void fill_in_defaults(demo_options *out) {
    uint64_t duration_ns = out->duration_ns != 0 ? out->duration_ns : SECONDS_DEFAULT * UINT64_C(1000000000);
    out->tick_count = ticks_of(duration_ns, out->tick_rate);
    bool is_shorter = out->duration_ns == 0 || out->frame_count < out->tick_count;
    if (out->frame_count != 0 && is_shorter) out->tick_count = out->frame_count;
    out->teleport_ticks = ticks_of(out->teleport_ns, out->tick_rate);
    if (out->render_rate.num == 0) out->render_rate = out->tick_rate;
    out->rewind_tick = ticks_of(out->rewind_ns, out->tick_rate);
    // On the virtual clock the output is the same everywhere, whatever devices there are.
    if (out->gpu == DEMO_GPU_DEFAULT && out->is_virtual && !out->is_lockstep) out->gpu = DEMO_GPU_NONE;
    // Nothing measures time there.
    if (out->is_virtual && !out->is_quality_fixed) out->quality = QUALITY_FIXED_DEFAULT, out->is_quality_fixed = true;
    if (!out->has_jitter) out->jitter_ns = out->lag_ns / 2;
}

// Better found out before the run than after it. On false one line about it is on stderr.
static bool is_writable(const char *path) {
    FILE *file = path != NULL ? fopen(path, "wb") : NULL;
    if (file != NULL) fclose(file);
    if (path == NULL || file != NULL) return true;
    fprintf(stderr, "nebula-demo: cannot write '%s'\n", path);
    return false;
}

bool demo_options_read(int argc, char **argv, demo_options *out) {
    *out = (demo_options){
        .seed = 1, .tick_rate = {60, 1}, .width = WIDTH_DEFAULT, .height = HEIGHT_DEFAULT, .quality = QUALITY_FIRST};
    for (int i = 1; i < argc; ++i) {
        if (read_flag(argv[i], out)) continue;
        if (!read_value(argv[i], i + 1 < argc ? argv[i + 1] : NULL, out)) return false;
        ++i;
    }
    fill_in_defaults(out);
    if (out->script_path != NULL && (out->replay_path != NULL || out->has_players)) {
        fputs("nebula-demo: --script does not go with --replay, --lag, --jitter or --loss\n", stderr);
        return false;
    }
    if (out->is_help) return fputs(HELP, stdout) >= 0;
    return is_writable(out->trace_path) && is_writable(out->summary_path);
}
