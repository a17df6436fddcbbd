// SPDX-License-Identifier: MIT
// The main of every test program: lists its cases, or runs them one after the other, each in a process of its own.
#define _POSIX_C_SOURCE 200809L

#include <fnmatch.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/case.h"

// A stuck case must not hold a run by hand for long; ctest passes its own number.
#define TIMEOUT_S_DEFAULT 120
#define NAME_SIZE_MAX 512

typedef enum outcome { PASSED, FAILED, SKIPPED, OUTCOME_COUNT } outcome;

typedef struct options {
    bool is_list, is_verbose, is_one_thread;
    unsigned timeout_s;
    char **patterns;
    int pattern_count;
} options;

static test_case *first_case;

// Sorted by file and line, whatever the order of the constructors.
void test_case_register(test_case *added) {
    test_case **at = &first_case;
    while (*at != NULL) {
        int order = strcmp((*at)->file, added->file);
        if (order > 0 || (order == 0 && (*at)->line > added->line)) break;
        at = &(*at)->next;
    }
    added->next = *at;
    *at = added;
}

// The full name: tests/base/test_channel.c and its case "closes" are "base/channel.closes".
static void full_name(const test_case *c, char name[NAME_SIZE_MAX]) {
    const char *folder = c->file;
    for (const char *at = c->file; (at = strstr(at, "tests/")) != NULL;) folder = at += strlen("tests/");
    const char *slash = strrchr(folder, '/');
    const char *stem = slash != NULL ? slash + 1 : folder;
    int folder_length = (int)(stem - folder);
    if (strncmp(stem, "test_", 5) == 0) stem += 5;
    snprintf(name, NAME_SIZE_MAX, "%.*s%.*s.%s", folder_length, folder, (int)strcspn(stem, "."), stem, c->name);
}

// A pattern is the name of a case, a part of its full name, or a glob for either.
static bool is_wanted(const options *o, const test_case *c) {
    char name[NAME_SIZE_MAX];
    full_name(c, name);
    for (int i = 0; i < o->pattern_count; ++i) {
        const char *pattern = o->patterns[i];
        if (strstr(name, pattern) != NULL || fnmatch(pattern, c->name, 0) == 0 || fnmatch(pattern, name, 0) == 0)
            return true;
    }
    return o->pattern_count == 0;
}

// The thread sanitizer leaves out files that CMake calls ONE_THREAD, and cases of TEST_ONE_THREAD, so none of these may
// start a thread.
static bool is_alone(const options *o, const test_case *c) {
    bool has_one_thread = o->is_one_thread || c->has_one_thread;
    if (!has_one_thread || test_threads_started == NULL || test_threads_started() == 0) return true;
    fprintf(stderr, "the case starts a thread: %s\n",
            c->has_one_thread ? "make it a TEST" : "remove its file from ONE_THREAD in tests/programs.cmake");
    return false;
}

static bool is_left_out(const test_case *c) {
#if defined(__SANITIZE_THREAD__)
    return c->has_one_thread;
#else
    (void)c;
    return false;
#endif
}

static _Noreturn void run_in_child(const test_case *c, const options *o, FILE *output) {
    // What the case starts itself ends with it: the parent ends the whole group.
    setpgid(0, 0);
    if (output != NULL) {
        dup2(fileno(output), STDOUT_FILENO);
        dup2(fileno(output), STDERR_FILENO);
    }
    alarm(o->timeout_s);
    const struct CMUnitTest tests[] = {{c->name, c->run, c->setup, c->teardown, NULL}};
    bool is_passed = cmocka_run_group_tests(tests, NULL, NULL) == 0;
    exit(is_passed && is_alone(o, c) ? 0 : 1);
}

// cmocka says only in its text that a case was skipped.
static bool is_skipped(FILE *output) {
    char line[256];
    rewind(output);
    while (fgets(line, sizeof line, output) != NULL) {
        if (strncmp(line, "[  SKIPPED ]", 12) == 0) return true;
    }
    return false;
}

static void show(FILE *output) {
    char line[1024];
    rewind(output);
    while (fgets(line, sizeof line, output) != NULL) {
        if (strncmp(line, "[=====", 6) != 0 && strncmp(line, "[ RUN", 5) != 0) printf("    %s", line);
    }
}

static void describe_end(int status, unsigned timeout_s, char text[64]) {
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
        snprintf(text, 64, "no end after %u s", timeout_s);
    else if (WIFSIGNALED(status))
        snprintf(text, 64, "killed by signal %d", WTERMSIG(status));
    else
        snprintf(text, 64, "exit status %d", WEXITSTATUS(status));
}

static double seconds_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static outcome run_case(const options *o, const test_case *c) {
    char name[NAME_SIZE_MAX], end[64] = "";
    full_name(c, name);
    FILE *output = o->is_verbose ? NULL : tmpfile();
    double start = seconds_now();
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) run_in_child(c, o, output);
    int status = -1;
    if (child > 0) {
        waitpid(child, &status, 0);
        kill(-child, SIGKILL);
    }
    outcome result = FAILED;
    if (status == 0) result = output != NULL && is_skipped(output) ? SKIPPED : PASSED;
    if (result == FAILED) describe_end(status, o->timeout_s, end);
    static const char *const words[] = {"ok     ", "FAILED ", "skipped"};
    printf("%s %s (%.2f s)%s%s\n", words[result], name, seconds_now() - start, end[0] != '\0' ? ": " : "", end);
    // An assertion in a helper has the helper's line alone.
    if (result == FAILED) printf("    %s:%d\n", c->file, c->line);
    if (output != NULL) {
        if (result != PASSED) show(output);
        fclose(output);
    }
    return result;
}

static int usage(const char *program) {
    fprintf(stderr,
            "usage: %s [--list] [--verbose] [--one-thread] [--timeout SECONDS] [PATTERN...]\n"
            "  A pattern is a part of a case's full name (folder/file.case), or a glob.\n",
            program);
    return 2;
}

static bool parse(options *o, int argc, char **argv) {
    for (int i = 1; i < argc; ++i) {
        if (strcmp(argv[i], "--list") == 0)
            o->is_list = true;
        else if (strcmp(argv[i], "--verbose") == 0)
            o->is_verbose = true;
        else if (strcmp(argv[i], "--one-thread") == 0)
            o->is_one_thread = true;
        else if (strcmp(argv[i], "--timeout") == 0 && i + 1 < argc)
            o->timeout_s = (unsigned)strtoul(argv[++i], NULL, 10);
        else if (argv[i][0] == '-')
            return false;
        else
            o->patterns[o->pattern_count++] = argv[i];
    }
    return true;
}

int main(int argc, char **argv) {
    char **patterns = calloc((size_t)argc, sizeof *patterns);
    options o = {.timeout_s = TIMEOUT_S_DEFAULT, .patterns = patterns};
    if (patterns == NULL || !parse(&o, argc, argv)) return usage(argv[0]);
    unsigned counts[OUTCOME_COUNT] = {0}, listed = 0;
    for (const test_case *c = first_case; c != NULL; c = c->next) {
        if (!is_wanted(&o, c) || is_left_out(c)) continue;
        char name[NAME_SIZE_MAX];
        full_name(c, name);
        ++listed;
        if (o.is_list)
            puts(name);
        else
            ++counts[run_case(&o, c)];
    }
    free(patterns);
    if (listed == 0) {
        fprintf(stderr, "%s: no case matches; --list names them\n", argv[0]);
        return 2;
    }
    if (!o.is_list) printf("%u passed, %u failed, %u skipped\n", counts[PASSED], counts[FAILED], counts[SKIPPED]);
    return counts[FAILED] == 0 ? 0 : 1;
}
