// SPDX-License-Identifier: MIT
// Measuring OpenMP in a process of its own.

#define _GNU_SOURCE // environ

#include "tasks_process.h"

#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

// Settings of the runtime: as many levels as tasks.priority needs, and threads that stay where they are put.
static void set_environment(const char *wait_policy) {
    setenv("OMP_MAX_TASK_PRIORITY", "1", 1);
    setenv("OMP_PROC_BIND", "false", 1);
    if (wait_policy[0])
        setenv("OMP_WAIT_POLICY", wait_policy, 1);
    else
        unsetenv("OMP_WAIT_POLICY");
}

// True where exactly `size` bytes came before the other end was closed.
static bool read_all(int from, void *data, size_t size) {
    size_t done = 0;
    for (ssize_t got = 1; got > 0 && done<size; done += got> 0 ? (size_t)got : 0)
        got = read(from, (char *)data + done, size - done);
    return done == size;
}

static bool spawn_self(const char *words, int write_end, int read_end, pid_t *child) {
    char program[] = "nebula-bench", option[] = BENCH_TASK_JOB_OPTION, job[32];
    char *arguments[] = {program, option, job, NULL};
    posix_spawn_file_actions_t actions;
    snprintf(job, sizeof job, "%s", words);
    if (posix_spawn_file_actions_init(&actions) != 0) return false;
    bool is_good = posix_spawn_file_actions_adddup2(&actions, write_end, STDOUT_FILENO) == 0 &&
                   posix_spawn_file_actions_addclose(&actions, read_end) == 0 &&
                   posix_spawn(child, "/proc/self/exe", &actions, NULL, arguments, environ) == 0;
    posix_spawn_file_actions_destroy(&actions);
    return is_good;
}

bool task_measure_elsewhere(const char *wait_policy, const task_job *job, task_outcome *outcome) {
    char words[32];
    int ends[2], status = -1;
    pid_t child = 0;
    snprintf(words, sizeof words, "%d,%u,%d", (int)job->work, job->worker_count, (int)job->is_pinned);
    if (pipe(ends) != 0) return false;
    set_environment(wait_policy);
    // The runtime counts its cpus by those of the thread that loads it.
    bench_unpin();
    bool is_started = spawn_self(words, ends[1], ends[0], &child);
    bench_pin(TASK_MAIN_CPU);
    close(ends[1]);
    bool is_good = is_started && read_all(ends[0], outcome, sizeof *outcome);
    close(ends[0]);
    if (is_started) waitpid(child, &status, 0);
    return is_good && status == 0;
}

int bench_task_job(const char *words) {
    int work = 0, is_pinned = 0;
    unsigned worker_count = 0;
    if (sscanf(words, "%d,%u,%d", &work, &worker_count, &is_pinned) != 3) return EXIT_FAILURE;
    if (work < 0 || work >= TASK_WORK_COUNT) return EXIT_FAILURE;
#if BENCH_HAVE_OPENMP
    static task_outcome outcome;
    task_job job = {(task_work)work, worker_count, is_pinned != 0};
    if (!task_measure_here(&task_pool_openmp, &job, &outcome)) return EXIT_FAILURE;
    return write(STDOUT_FILENO, &outcome, sizeof outcome) == (ssize_t)sizeof outcome ? EXIT_SUCCESS : EXIT_FAILURE;
#else
    return EXIT_FAILURE;
#endif
}
