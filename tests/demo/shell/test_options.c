// SPDX-License-Identifier: MIT
// The demo's command line, and what it tells a person.

#include "support/support.h"

#include "demo/shell/options.h"
#include "demo/shell/report.h"
#include "nebula/tasks.h"

// Reads a command line of words separated by spaces.
static bool read_words(const char *line, demo_options *out) {
    static char text[256];
    char *words[20] = {"nebula-demo"};
    int count = 1;
    snprintf(text, sizeof text, "%s", line);
    for (char *word = strtok(text, " "); word != NULL; word = strtok(NULL, " ")) words[count++] = word;
    return demo_options_read(count, words, out);
}

TEST(without_words_there_are_defaults) {
    demo_options options;
    assert_true(read_words("", &options));
    assert_int_equal(options.tick_count, 20 * 60);
    assert_int_equal(options.teleport_ticks, 0);
    assert_int_equal(options.seed, 1);
    assert_int_equal(options.tick_rate.num, 60);
    assert_int_equal(options.render_rate.num, 60);
    assert_int_equal(options.worker_count, 0);
    assert_null(options.trace_path);
    assert_false(options.is_virtual || options.is_help || options.has_tick_lines);
}

TEST(every_option_is_read) {
    demo_options options;
    assert_true(read_words("--seconds 0.5 --frames 600 --seed 0xFFFFFFFFFFFFFFFF --hz 50 --render-hz 60000/1001 "
                           "--workers 4 --teleport-every 0.25 --trace out.json --ticks",
                           &options));
    assert_int_equal(options.duration_ns, 500000000u);
    assert_int_equal(options.frame_count, 600);
    assert_int_equal(options.seed, UINT64_MAX);
    assert_int_equal(options.tick_rate.num, 50);
    assert_int_equal(options.render_rate.num, 60000);
    assert_int_equal(options.render_rate.den, 1001);
    assert_int_equal(options.worker_count, 4);
    assert_int_equal(options.tick_count, 25);     // the shorter of both
    assert_int_equal(options.teleport_ticks, 13); // rounded up
    assert_string_equal(options.trace_path, "out.json");
    assert_true(options.has_tick_lines);
    assert_false(options.has_players);
}

TEST(options_of_the_picture_are_read) {
    demo_options options;
    assert_true(read_words("--gpu vulkan --size 1920x1080 --pictures out --no-window --validate", &options));
    assert_int_equal(options.gpu, DEMO_GPU_VULKAN);
    assert_int_equal(options.width, 1920);
    assert_int_equal(options.height, 1080);
    assert_string_equal(options.picture_folder, "out");
    assert_true(options.is_windowless && options.is_validated);
    assert_false(options.is_lockstep);
    assert_true(read_words("", &options));
    assert_int_equal(options.gpu, DEMO_GPU_DEFAULT);
    assert_int_equal(options.width * options.height, 640 * 360);
    // On the virtual clock there is no device, unless one is asked for or frames wait for it.
    assert_true(read_words("--virtual", &options));
    assert_int_equal(options.gpu, DEMO_GPU_NONE);
    assert_true(read_words("--virtual --gpu null", &options));
    assert_int_equal(options.gpu, DEMO_GPU_NULL);
    assert_true(read_words("--lockstep", &options));
    assert_true(options.is_virtual && options.is_lockstep);
    assert_int_equal(options.gpu, DEMO_GPU_DEFAULT);
    static const char *const wrong[] = {
        "--gpu metal",   "--size 640",      "--size x360",     "--size 640x",
        "--size 15x360", "--size 640x8193", "--size 640x-360", "--size 00000000000000000640x360"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; ++i) assert_false(read_words(wrong[i], &options));
}

TEST(options_of_time_travel_are_read) {
    demo_options options;
    assert_true(read_words("--record a.nbr --rewind-at 1.5 --synctest 8 --hz 50", &options));
    assert_string_equal(options.record_path, "a.nbr");
    assert_int_equal(options.rewind_tick, 75);
    assert_int_equal(options.synctest_depth, 8);
    assert_true(read_words("--replay b.nbr", &options));
    assert_string_equal(options.replay_path, "b.nbr");
    assert_true(read_words("--lag 80 --loss 5", &options));
    assert_true(options.has_players && options.loss == 0.05);
    assert_int_equal(options.lag_ns, 80000000);
    assert_int_equal(options.jitter_ns, 40000000);
    assert_true(read_words("--script f.txt --record a.nbr", &options));
    assert_string_equal(options.script_path, "f.txt");
    assert_false(read_words("--script f.txt --replay a.nbr", &options));
    assert_false(read_words("--lag 1 --script f.txt", &options));
    assert_true(read_words("--jitter 0 --lag 80", &options));
    assert_int_equal(options.jitter_ns, 0);
}

TEST(the_shorter_of_frames_and_time_counts_in_ticks) {
    static const struct {
        const char *words;
        uint64_t tick_count;
    } CASES[] = {
        {"--frames 1", 1},
        {"--frames 100000", 100000},
        {"--seconds 2 --frames 1", 1},
        {"--seconds 2 --frames 500", 120},
        {"--seconds 2 --hz 60000/1001", 120}, // 119.88
        {"--seconds 0.1 --hz 1", 1},
        {"--seconds 3600 --hz 1000", 3600000},
        {"--frames 90 --render-hz 144", 90}, // whatever the picture does
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; ++i) {
        demo_options options;
        assert_true(read_words(CASES[i].words, &options));
        assert_int_equal(options.tick_count, CASES[i].tick_count);
    }
}

TEST(no_workers_differs_from_the_machines_number) {
    demo_options options;
    assert_true(read_words("--workers 0", &options));
    assert_int_equal(options.worker_count, NB_WORKER_COUNT_NONE);
    assert_true(read_words("--virtual", &options));
    assert_int_equal(options.worker_count, 0); // the output is the same all the same
}

TEST(numbers_are_digits_within_their_range) {
    static const char *const REFUSED[] = {
        "--frames 0",    "--frames -1",  "--frames 3600001", "--frames 1e3",
        "--frames",      "--seed 1x",    "--seed -1",        "--seed +1",
        "--seed 0x",     "--seed 0x-1",  "--seed 0xg",       "--seed 18446744073709551616",
        "--workers 61",  "--workers +2", "--workers 2.0",    "--hz 0",
        "--lag 501",     "--loss 91",    "--synctest 65",    "--rewind-at 0",
        "--seconds nan", "--trace",      "--frobnicate",     "--trace /no/such/folder/file"};
    demo_options options;
    for (size_t i = 0; i < sizeof REFUSED / sizeof REFUSED[0]; ++i) {
        if (read_words(REFUSED[i], &options)) fail_msg("'%s' was taken", REFUSED[i]);
    }
    assert_true(read_words("--seed 18446744073709551615 --frames 3600000 --workers 60", &options));
    assert_true(read_words("--seed 0xaBc0", &options));
    assert_int_equal(options.seed, 0xabc0);
    assert_true(read_words("--seed 010", &options));
    assert_int_equal(options.seed, 10);
}

TEST(an_empty_word_is_no_value) {
    static char program[] = "nebula-demo", empty[] = "";
    static const char *const NAMES[] = {"--trace", "--seed", "--frames", "--workers", "--hz", "--seconds"};
    for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0]; ++i) {
        char name[32];
        snprintf(name, sizeof name, "%s", NAMES[i]);
        char *words[] = {program, name, empty};
        demo_options options;
        assert_false(demo_options_read(3, words, &options));
    }
}

// --- the report ---

static demo_report sample(void) {
    return (demo_report){.time_s = 12,
                         .tick_count = 720,
                         .frame_count = 718,
                         .fps = 59.9,
                         .ups = 60,
                         .alpha = 0.25f,
                         .busy_share = 0.375,
                         .queued_count = 12,
                         .checksum = 0x9abcdef000000000u,
                         .checksum_count = 718,
                         .p50_ns = 16666667,
                         .p99_ns = 17250000,
                         .max_ns = 21000000,
                         .chunk_count = 812,
                         .chunk_ready_count = 1612,
                         .chunk_cancelled_count = 87,
                         .chunks_per_s = 43,
                         .creature_count = 3021,
                         .birth_count = 12,
                         .death_count = 4,
                         .frame_peak_bytes = 1048576,
                         .job_peak_bytes = 524288,
                         .quality_level = 2,
                         .quality_level_max = 3,
                         .state_hash = 0x1a2b};
}

TEST(the_line_says_everything_in_one_width) {
    demo_report small = sample(), large = sample();
    char text[REPORT_LINE_SIZE], other[REPORT_LINE_SIZE];
    report_header(false, false, other);
    report_line(&small, text);
    print_message("%s\n%s\n", other, text);
    assert_int_equal(strlen(other), strlen(text));
    assert_string_equal(
        text, "  12 s    59.9    60.0   0.25     3021     812    16.7    17.2    21.0      43         87    1.5"
              "      2/3   38 %     12  9abcdef0  0000000000001a2b");
    large.time_s = 3599, large.fps = 1000, large.chunk_count = 9999, large.chunks_per_s = 0;
    large.chunk_cancelled_count = 9999, large.creature_count = 99999, large.max_ns = 250000000;
    large.is_back = true;
    report_line(&large, other);
    assert_int_equal(strlen(other), strlen(text));
    assert_non_null(strstr(other, "3599 s<"));
    assert_null(strchr(text, '\n'));
    // With a device there is one more column.
    large.has_picture = true, large.triangle_count = 1234567;
    report_header(false, true, text);
    report_line(&large, other);
    assert_int_equal(strlen(other), strlen(text));
    assert_non_null(strstr(other, "  1234567 "));
}

TEST(the_end_sums_up) {
    demo_report report = sample();
    char text[REPORT_END_SIZE];
    report_end(&report, text);
    print_message("%s", text);
    assert_non_null(strstr(text, "720 ticks, 718 frames"));
    assert_non_null(strstr(text, "1612 made, 43.0 a second, 87 cancelled, 812 ready"));
    assert_non_null(strstr(text, "state hash  0000000000001a2b\n"));
    assert_null(strstr(text, "rewound"));
    assert_non_null(strstr(text, "checksums   718 frames, every one right\n"));
    report.back_count = 60;
    report_end(&report, text);
    assert_non_null(strstr(text, "rewound     60 ticks\n"));
    assert_int_equal(text[strlen(text) - 1], '\n');
    report.checksum_wrong_count = 3;
    report_end(&report, text);
    assert_non_null(strstr(text, "WRONG       the checksums of 3 of 718 frames\n"));
}

TEST(the_end_tells_medians_of_a_run_that_has_settled) {
    demo_report report = sample();
    char text[REPORT_END_SIZE];
    report.settled = (numbers_summary){.is_warm = true,
                                       .frame_count = 420,
                                       .fps = 59.95,
                                       .gpu_ms = 4.125,
                                       .triangle_count = 20000,
                                       .triangle_max = 25000,
                                       .view_triangle_count = 31000,
                                       .upload_bytes = 12340000,
                                       .upload_mb_per_s = 1.5,
                                       .chunks_per_s = 30,
                                       .quality_most = 1};
    for (int phase = 1; phase < NB_PHASE_COUNT; ++phase) report.settled.phase_ms[phase] = phase % 5;
    report_end(&report, text);
    assert_null(strstr(text, "triangles")); // nothing is drawn
    report.has_picture = true;
    report_end(&report, text);
    print_message("%s", text);
    assert_non_null(strstr(text, "quality     level 2 of 3, mostly 1\n"));
    assert_non_null(strstr(text, "median      60.0 frames a second, of 420 frames after the first 5 s\n"));
    assert_non_null(strstr(
        text, "picture     20000 triangles, 25000 at most, 31000 with what hills hide, 4.12 ms on the device\n"));
    assert_non_null(strstr(text, "uploads     12.34 MB, then 1.500 MB/s with 30.0 chunks/s\n"));
    assert_non_null(strstr(text, "phases      ms: "));
    assert_non_null(strstr(text, " Gameplay 1.00"));
    assert_null(strstr(text, " FixedSim ")); // it took no time
    for (const char *line = text; *line != '\0'; line = strchr(line, '\n') + 1) assert_true(strcspn(line, "\n") < 120);
    report.settled.is_warm = false, report.settled.gpu_ms = 0;
    report_end(&report, text);
    assert_non_null(strstr(text, "420 frames of a run that was too short to settle\n"));
    assert_null(strstr(text, "on the device"));
}

// On the virtual clock only what is the same everywhere is printed.
TEST(a_virtual_run_leaves_out_what_depends_on_the_machine) {
    demo_report one = sample(), two = sample();
    one.is_virtual = two.is_virtual = true;
    two.p50_ns = two.p99_ns = two.max_ns = 1;
    two.chunk_count = 7,
    two.chunk_cancelled_count = two.chunk_ready_count = two.frame_peak_bytes = two.job_peak_bytes = 7;
    two.chunks_per_s = 9, two.quality_level = 0;
    two.has_picture = true, two.triangle_count = 9, two.settled.frame_count = 9;
    char text[REPORT_END_SIZE], other[REPORT_END_SIZE];
    report_header(true, true, other);
    report_line(&one, text);
    assert_int_equal(strlen(other), strlen(text));
    report_line(&two, other);
    assert_string_equal(text, other);
    report_end(&one, text);
    report_end(&two, other);
    assert_string_equal(text, other);
    two.state_hash = 1;
    report_end(&two, other);
    assert_string_not_equal(text, other);
}

TEST(huge_numbers_stay_inside_the_buffer) {
    demo_report report;
    memset(&report, 0xff, sizeof report);
    report.is_virtual = report.is_back = false;
    report.time_s = report.fps = report.chunks_per_s = 1e300;
    report.settled.fps = report.settled.gpu_ms = report.settled.upload_mb_per_s = 1e300;
    report.settled.is_warm = report.has_picture = true;
    for (int phase = 1; phase < NB_PHASE_COUNT; ++phase) report.settled.phase_ms[phase] = 1e300;
    struct {
        char text[REPORT_END_SIZE], guard[8];
    } end;
    struct {
        char text[REPORT_LINE_SIZE], guard[8];
    } line;
    memset(&end, 0x55, sizeof end);
    memset(&line, 0x55, sizeof line);
    report_end(&report, end.text);
    report_line(&report, line.text);
    for (uint32_t i = 0; i < 8; ++i) assert_true(end.guard[i] == 0x55 && line.guard[i] == 0x55);
    assert_true(strlen(line.text) < REPORT_LINE_SIZE && strlen(end.text) < REPORT_END_SIZE);
}
