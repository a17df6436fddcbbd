// SPDX-License-Identifier: MIT
// nebula_bench: Nebula and its peers on the same machine in the same run.

#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXIT_USAGE 2
// The least that makes a median worth printing; more with --runs.
#define RUNS_DEFAULT 7
#define RUNS_MAX 99

typedef struct options {
    const char *only; // NULL: every case
    const char *json;
    unsigned run_count;
    bool is_list;
    bool is_help;
} options;

typedef const bench_case *case_list_fn(size_t *count);

static case_list_fn *const case_lists[] = {
    bench_arena_cases,          bench_token_cases,        bench_channel_cases, bench_trace_cases,
    bench_loop_cases,           bench_hash_cases,         bench_fence_cases,   bench_task_cases,
    bench_task_range_cases,     bench_task_latency_cases, bench_engine_cases,  bench_world_cases,
    bench_snapshot_cases,       bench_async_cases,        bench_budget_cases,  bench_history_cases,
    bench_history_memory_cases, bench_record_cases,       bench_replay_cases,  bench_synctest_cases,
    bench_scene_cases,          bench_graph_cases,        bench_gpu_cases,     bench_demo_cases,
};

static const char help_text[] = "nebula_bench measures Nebula against its peers on this machine.\n"
                                "\n"
                                "  --only CASE,...   these cases alone: a case, a row, or a group such as arena\n"
                                "  --json FILE       also write one JSON object per row to FILE\n"
                                "  --runs N          rounds per case, 1 to 99; 7 unless said otherwise\n"
                                "  --list            the cases and what they measure\n"
                                "  --help            this text\n";

static bool fail_usage(const char *problem, const char *word) {
    fprintf(stderr, "nebula_bench: %s '%s'; see --help and --list\n", problem, word);
    return false;
}

static bool parse_runs(const char *word, unsigned *run_count) {
    char *end = NULL;
    unsigned long value = strtoul(word, &end, 10);
    if (word[0] < '0' || word[0] > '9' || *end != '\0' || value < 1 || value > RUNS_MAX)
        return fail_usage("--runs wants a number from 1 to 99, not", word);
    *run_count = (unsigned)value;
    return true;
}

static bool parse_option(const char *word, const char *argument, options *chosen, bool *takes_argument) {
    bool is_only = strcmp(word, "--only") == 0, is_json = strcmp(word, "--json") == 0;
    *takes_argument = is_only || is_json || strcmp(word, "--runs") == 0;
    if (*takes_argument) {
        if (!argument) return fail_usage("a value must follow", word);
        if (is_only) chosen->only = argument;
        if (is_json) chosen->json = argument;
        return is_only || is_json || parse_runs(argument, &chosen->run_count);
    }
    if (strcmp(word, "--list") == 0) return chosen->is_list = true;
    if (strcmp(word, "--help") == 0) return chosen->is_help = true;
    return fail_usage("unknown option", word);
}

static bool parse(int argc, char **argv, options *chosen) {
    for (int i = 1; i < argc; ++i) {
        bool takes_argument = false;
        if (!parse_option(argv[i], i + 1 < argc ? argv[i + 1] : NULL, chosen, &takes_argument)) return false;
        i += takes_argument;
    }
    return true;
}

// "arena" names every arena.* row, "arena.frame" one of them.
static bool name_matches(const char *name, const char *word, size_t length) {
    return strncmp(name, word, length) == 0 && (name[length] == '\0' || name[length] == '.');
}

static bool case_matches_word(const bench_case *subject, const char *word, size_t length) {
    bool is_match = name_matches(subject->name, word, length);
    for (size_t row = 0; row < subject->row_count; ++row)
        is_match |= name_matches(subject->rows[row].name, word, length);
    return is_match;
}

static bool case_is_chosen(const bench_case *subject, const char *only) {
    if (!only) return true;
    for (const char *word = only; *word;) {
        size_t length = strcspn(word, ",");
        if (length && case_matches_word(subject, word, length)) return true;
        word += length + (word[length] == ',');
    }
    return false;
}

typedef bool visit_fn(const bench_case *subject, void *user);

// Stops at the first false.
static bool visit_cases(visit_fn *visit, void *user) {
    for (size_t list = 0; list < BENCH_COUNT(case_lists); ++list) {
        size_t count = 0;
        const bench_case *cases = case_lists[list](&count);
        for (size_t i = 0; i < count; ++i)
            if (!visit(&cases[i], user)) return false;
    }
    return true;
}

typedef struct word_search {
    const char *word;
    size_t length;
} word_search;

static bool word_is_elsewhere(const bench_case *subject, void *user) {
    const word_search *search = user;
    return !case_matches_word(subject, search->word, search->length);
}

// A misspelt case must not pass as "nothing to measure".
static bool only_is_known(const char *only) {
    bool has_word = false;
    for (const char *word = only; *word;) {
        word_search search = {word, strcspn(word, ",")};
        char text[64];
        snprintf(text, sizeof text, "%.*s", (int)search.length, word);
        if (search.length && visit_cases(word_is_elsewhere, &search)) return fail_usage("unknown case", text);
        has_word |= search.length != 0;
        word += search.length + (word[search.length] == ',');
    }
    return has_word || fail_usage("--only names no case in", only);
}

static bool list_case(const bench_case *subject, void *user) {
    (void)user;
    printf("%-24s %s\n", subject->name, subject->about);
    return true;
}

typedef struct measurement {
    const options *chosen;
    FILE *json;
    bench_result *result;
    unsigned not_met_count;
    unsigned failed_count;
} measurement;

static bool measure_case(const bench_case *subject, void *user) {
    measurement *run = user;
    if (!case_is_chosen(subject, run->chosen->only)) return true;
    if (!bench_case_run(subject, run->chosen->run_count, run->result)) {
        ++run->failed_count;
        return true;
    }
    for (size_t i = 0; i < subject->contender_count; ++i) run->failed_count += run->result->is_failed[i];
    run->not_met_count += bench_print_result(run->result);
    if (run->json) bench_write_json(run->json, run->result);
    return true;
}

static int measure(const options *chosen) {
    measurement run = {chosen, NULL, malloc(sizeof(bench_result)), 0, 0};
    if (chosen->json) run.json = fopen(chosen->json, "w");
    if (!run.result || (chosen->json && !run.json)) {
        fprintf(stderr, "nebula_bench: %s\n", run.result ? "the JSON file cannot be written" : "no memory");
        free(run.result);
        return EXIT_FAILURE;
    }
    bench_print_header(chosen->run_count);
    visit_cases(measure_case, &run);
    printf("goals not met: %u; failures: %u\n", run.not_met_count, run.failed_count);
    free(run.result);
    bool is_written = !run.json || fclose(run.json) == 0;
    return run.failed_count || !is_written ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char **argv) {
    options chosen = {NULL, NULL, RUNS_DEFAULT, false, false};
    if (argc == 3 && strcmp(argv[1], BENCH_TASK_JOB_OPTION) == 0) return bench_task_job(argv[2]);
    if (!parse(argc, argv, &chosen)) return EXIT_USAGE;
    if (chosen.is_help) {
        fputs(help_text, stdout);
        return EXIT_SUCCESS;
    }
    if (chosen.is_list) {
        visit_cases(list_case, NULL);
        return EXIT_SUCCESS;
    }
    if (chosen.only && !only_is_known(chosen.only)) return EXIT_USAGE;
    return measure(&chosen);
}
