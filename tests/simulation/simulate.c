// SPDX-License-Identifier: MIT
// The simulation's program: seeds, one after the other, in both modes.

#define _GNU_SOURCE

#include "simulation.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

// Steps of a whole run: fifty times what they take.
#define RUN_STEP_MAX 20000000u

// Each so many seeds are run twice: the same seed must be the same run, or a failure could not be repeated.
#define REPEAT_PERIOD 16u

typedef struct options {
    uint64_t seed, seed_count;
    bool has_safety, has_liveness;
    uint32_t tick_count;
    bool is_verbose;
} options;

// What a signal handler says; nothing else can be handed to it.
static struct {
    uint64_t seed;
    uint32_t tick_count;
    sim_mode mode;
    bool is_told;
} now_running;

static const char *mode_name(sim_mode mode) { return mode == MODE_SAFETY ? "safety" : "liveness"; }

static void usage(FILE *out) {
    fprintf(out,
            "Usage: simulate [--seed S] [--seeds N] [--mode safety|liveness|both] [--ticks T] [--verbose]\n"
            "\n"
            "Runs two engines with faults, everything from one seed.\n"
            "  --seed S      the first seed; default 1\n"
            "  --seeds N     how many; default by NB_TEST_SIZE\n"
            "  --mode M      safety: faults all the time; liveness: they stop, and all must recover; default both\n"
            "  --ticks T     ticks with faults, 1 to 800; default %u\n"
            "  --verbose     what each seed is made of, and what its peers do\n"
            "Exit code: 0 all seeds passed, 1 one failed, 2 the command line is wrong.\n",
            TICK_COUNT_DEFAULT);
}

// --- options ---

static uint64_t default_seed_count(void) {
    const char *size = getenv("NB_TEST_SIZE");
    if (size != NULL && strcmp(size, "full") == 0) return 100000;
    if (size != NULL && strcmp(size, "check") == 0) return 2000;
    return 120;
}

static bool parse_number(const char *text, uint64_t low, uint64_t high, uint64_t *out) {
    char *end = NULL;
    uint64_t value = strtoull(text, &end, 0);
    if (end == text || *end != 0 || value < low || value > high) return false;
    *out = value;
    return true;
}

static bool parse_mode(options *o, const char *value) {
    o->has_safety = strcmp(value, "safety") == 0 || strcmp(value, "both") == 0;
    o->has_liveness = strcmp(value, "liveness") == 0 || strcmp(value, "both") == 0;
    return o->has_safety || o->has_liveness;
}

static bool parse_option(options *o, const char *name, const char *value) {
    uint64_t ticks = 0;
    if (strcmp(name, "--seed") == 0) return parse_number(value, 0, UINT64_MAX, &o->seed);
    if (strcmp(name, "--seeds") == 0) return parse_number(value, 1, UINT64_MAX, &o->seed_count);
    if (strcmp(name, "--mode") == 0) return parse_mode(o, value);
    if (strcmp(name, "--ticks") != 0 || !parse_number(value, 1, 800, &ticks)) return false;
    o->tick_count = (uint32_t)ticks;
    return true;
}

// `--name value` or `--name=value`.
static bool parse_options(options *o, int argc, char **argv) {
    for (int i = 1; i < argc; ++i) {
        char name[16] = "";
        const char *equals = strchr(argv[i], '=');
        size_t length = equals != NULL ? (size_t)(equals - argv[i]) : strlen(argv[i]);
        if (strcmp(argv[i], "--verbose") == 0) {
            o->is_verbose = true;
            continue;
        }
        if (length >= sizeof name || (equals == NULL && i + 1 == argc)) return false;
        memcpy(name, argv[i], length);
        const char *value = equals != NULL ? equals + 1 : argv[++i];
        if (!parse_option(o, name, value)) return false;
    }
    return true;
}

// --- runs ---

static void print_repeat(FILE *out) {
    fprintf(out, "  repeat: simulate --seed 0x%llx --seeds 1 --mode %s --ticks %u\n",
            (unsigned long long)now_running.seed, mode_name(now_running.mode), now_running.tick_count);
}

// A crash ends the process, but not without its seed.
static void on_crash(int signal_number) {
    print_repeat(stderr);
    fflush(stderr);
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

static void watch_crashes(void) {
    static char stack[1 << 16];
    stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
    sigaltstack(&alternate, NULL);
    struct sigaction action = {.sa_handler = on_crash, .sa_flags = SA_ONSTACK};
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
    sigaction(SIGABRT, &action, NULL);
    sigaction(SIGFPE, &action, NULL);
}

static void setup(void *user) {
    sim *s = user;
    s->is_told = now_running.is_told;
    faults_plan(s, now_running.mode, now_running.tick_count);
}

static const explore_test simulation = {
    .name = "simulation", .thread_count = 1, .setup = setup, .thread = run_main, .user_size_bytes = sizeof(sim)};

static void print_plan(const sim *s, const explore_outcome *outcome) {
    const sim_config *c = &s->config;
    printf("  seed 0x%llx %s: %u workers%s%s%s, rounds %llu, ticks %llu and %llu, %llu comparisons, %u steps; faults:",
           (unsigned long long)now_running.seed, mode_name(c->mode), c->worker_count,
           c->shares_scheduler ? " shared" : "", c->has_reader ? ", a reader" : "", c->disables ? ", disables" : "",
           (unsigned long long)s->round, (unsigned long long)s->peers[0].run_count,
           (unsigned long long)s->peers[1].run_count, (unsigned long long)s->checks, outcome->step_count);
    for (uint32_t i = 0; i < FAULT_COUNT; ++i) {
        if (c->chances[i] != 0) printf(" %s,", fault_name((fault)i));
    }
    printf("\n");
}

typedef struct totals {
    uint64_t run_count, check_count, step_count, tick_count;
} totals;

static uint64_t whole_trace(const explore_outcome *outcome) {
    const sim *s = explore_user();
    return mix(s->trace, outcome->schedule_hash);
}

static bool report(const explore_outcome *outcome) {
    const sim *s = explore_user();
    fprintf(stderr, "seed 0x%llx, %s, round %llu: %s\n", (unsigned long long)now_running.seed,
            mode_name(now_running.mode), (unsigned long long)s->round, outcome->failure);
    print_repeat(stderr);
    return false;
}

static bool run_seed(const options *o, uint64_t seed, sim_mode mode, totals *sum) {
    now_running.seed = seed, now_running.mode = mode, now_running.tick_count = o->tick_count;
    now_running.is_told = o->is_verbose;
    explore_outcome outcome;
    bool passed = explore_run(&simulation, seed, &outcome);
    uint64_t first_trace = whole_trace(&outcome);
    const sim *s = explore_user();
    ++sum->run_count;
    sum->check_count += s->checks;
    sum->step_count += outcome.step_count;
    sum->tick_count += s->peers[0].run_count + s->peers[1].run_count;
    if (o->is_verbose || !passed) print_plan(s, &outcome);
    if (!passed) report(&outcome);
    if (passed && seed % REPEAT_PERIOD != 0) return true;
    bool passed_again = explore_run(&simulation, seed, &outcome);
    if (passed_again == passed && whole_trace(&outcome) == first_trace) return passed;
    outcome.failure = "the same seed was another run the second time";
    return report(&outcome);
}

int main(int argc, char **argv) {
    options o = {.seed = 1,
                 .seed_count = default_seed_count(),
                 .has_safety = true,
                 .has_liveness = true,
                 .tick_count = TICK_COUNT_DEFAULT};
    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        usage(stdout);
        return 0;
    }
    if (!parse_options(&o, argc, argv)) {
        usage(stderr);
        return 2;
    }
    explore_options explore = {.step_limit = RUN_STEP_MAX, .has_threads = true, .is_long = true};
    explore_open(&simulation, &explore);
    watch_crashes();
    totals sum = {0};
    bool passed = true;
    time_t said = time(NULL);
    for (uint64_t i = 0; i < o.seed_count && passed; ++i) {
        if (o.has_safety) passed = run_seed(&o, o.seed + i, MODE_SAFETY, &sum);
        if (o.has_liveness && passed) passed = run_seed(&o, o.seed + i, MODE_LIVENESS, &sum);
        if (time(NULL) - said < 10) continue;
        said = time(NULL);
        printf("%llu of %llu seeds\n", (unsigned long long)(i + 1), (unsigned long long)o.seed_count);
        fflush(stdout);
    }
    explore_close();
    printf("simulated: %llu runs, %llu ticks, %llu comparisons with the reference, %llu steps: %s\n",
           (unsigned long long)sum.run_count, (unsigned long long)sum.tick_count, (unsigned long long)sum.check_count,
           (unsigned long long)sum.step_count, passed ? "passed" : "FAILED");
    return passed ? 0 : 1;
}
