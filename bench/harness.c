// SPDX-License-Identifier: MIT
// Measuring: rounds in which the contenders alternate, and a look at what else ran on the machine meanwhile.

#define _GNU_SOURCE // sched_setaffinity

#include "bench.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

// Above this share of a core, other programs distort what is measured here.
#define OTHER_LOAD_MAX 0.05
// The kernel counts busy time in steps of 1/sysconf(_SC_CLK_TCK) s; two steps per cpu can be wrong at both ends.
#define LOAD_SLACK_TICKS 2
// Rounds are repeated while the machine is busy, up to this many times the asked-for number; then they are kept.
#define ROUND_FACTOR_MAX 2

typedef struct load_sample {
    double busy_s; // all cpus, all processes, and time the host took away
    double own_s;  // this process and those it started and saw end
    double clock_s;
    bool is_known;
} load_sample;

static uint64_t clock_ns(clockid_t id) {
    struct timespec now;
    clock_gettime(id, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t bench_now_ns(void) { return clock_ns(CLOCK_MONOTONIC); }

uint64_t bench_cpu_time_ns(void) { return clock_ns(CLOCK_PROCESS_CPUTIME_ID); }

uint64_t bench_random(uint64_t *state) {
    // A Weyl sequence with a multiply-xor finish: equidistributed enough for sizes, and the same everywhere.
    *state += 0x9e3779b97f4a7c15u;
    uint64_t mixed = *state;
    mixed = (mixed ^ (mixed >> 32)) * 0xd6e8feb86659fd93u;
    mixed = (mixed ^ (mixed >> 32)) * 0xd6e8feb86659fd93u;
    return mixed ^ (mixed >> 32);
}

unsigned bench_cpu_count(void) {
    long count = sysconf(_SC_NPROCESSORS_ONLN);
    return count > 0 ? (unsigned)count : 1;
}

bool bench_pin(unsigned cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu % bench_cpu_count(), &set);
    return sched_setaffinity(0, sizeof set, &set) == 0;
}

bool bench_unpin(void) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (unsigned cpu = 0; cpu < bench_cpu_count(); ++cpu) CPU_SET(cpu, &set);
    return sched_setaffinity(0, sizeof set, &set) == 0;
}

bool bench_has_invariant_tsc(void) {
#if defined(__x86_64__) || defined(__i386__)
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    return __get_cpuid(0x80000007u, &eax, &ebx, &ecx, &edx) && (edx & (1u << 8)) != 0;
#else
    return false;
#endif
}

static int compare_doubles(const void *a, const void *b) {
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

void bench_sort(double *values, size_t count) { qsort(values, count, sizeof *values, compare_doubles); }

double bench_percentile(const double *sorted, size_t count, double fraction) {
    if (count == 0) return 0.0;
    size_t index = (size_t)(fraction * (double)count);
    return sorted[index < count ? index : count - 1];
}

bench_stat bench_stat_of(double *values, size_t count) {
    bench_stat stat = {0.0, 0.0, 0.0};
    if (count == 0) return stat;
    bench_sort(values, count);
    stat.low = values[0];
    stat.high = values[count - 1];
    stat.median = count % 2 ? values[count / 2] : 0.5 * (values[count / 2 - 1] + values[count / 2]);
    return stat;
}

static double children_s(void) {
    struct rusage used;
    if (getrusage(RUSAGE_CHILDREN, &used) != 0) return 0.0;
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1e-6;
}

static load_sample sample_load(void) {
    load_sample sample = {0.0, 0.0, 0.0, false};
    unsigned long long user = 0, nice = 0, system = 0, idle = 0, io = 0, irq = 0, soft = 0, steal = 0;
    FILE *file = fopen("/proc/stat", "r");
    if (file) {
        sample.is_known = fscanf(file, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &user, &nice, &system, &idle, &io,
                                 &irq, &soft, &steal) == 8;
        fclose(file);
    }
    double tick_s = 1.0 / (double)sysconf(_SC_CLK_TCK);
    sample.busy_s = (double)(user + nice + system + irq + soft + steal) * tick_s;
    sample.own_s = (double)bench_cpu_time_ns() * 1e-9 + children_s();
    sample.clock_s = (double)bench_now_ns() * 1e-9;
    return sample;
}

// Cores used by others between two samples; negative where the kernel does not say.
static double other_load_between(const load_sample *before, const load_sample *after) {
    if (!before->is_known || !after->is_known) return -1.0;
    double slack_s = LOAD_SLACK_TICKS * bench_cpu_count() / (double)sysconf(_SC_CLK_TCK);
    double other_s = (after->busy_s - before->busy_s) - (after->own_s - before->own_s) - slack_s;
    double elapsed_s = after->clock_s - before->clock_s;
    return other_s > 0.0 && elapsed_s > 0.0 ? other_s / elapsed_s : 0.0;
}

// Every contender once. Each round starts with another one, so that no contender always runs on a warm or cold machine.
static double run_round(const bench_case *subject, void *fixture, unsigned first, unsigned slot, bench_result *result) {
    load_sample before = sample_load();
    for (size_t i = 0; i < subject->contender_count; ++i) {
        size_t index = (first + i) % subject->contender_count;
        const bench_contender *contender = &subject->contenders[index];
        if (!contender->run || result->is_failed[index]) continue;
        double values[BENCH_ROWS_MAX] = {0};
        if (!contender->run(fixture, contender->argument, values)) {
            fprintf(stderr, "%s: %s failed\n", subject->name, contender->name);
            result->is_failed[index] = true;
        }
        for (size_t row = 0; row < subject->row_count; ++row) result->samples[index][row][slot] = values[row];
    }
    load_sample after = sample_load();
    return other_load_between(&before, &after);
}

// On a terminal one line that changes, elsewhere one line a case.
static void show_progress(const bench_case *subject, unsigned round, unsigned round_count) {
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "\r%-24s round %u of %u ", subject->name, round + 1, round_count);
    else if (round == 0)
        fprintf(stderr, "%s: %u rounds\n", subject->name, round_count);
}

static void run_rounds(const bench_case *subject, void *fixture, unsigned round_count, bench_result *result) {
    unsigned attempt_max = round_count * ROUND_FACTOR_MAX;
    double load_sum = 0.0;
    show_progress(subject, 0, round_count);
    // The warm-up round goes to slot 0 and is overwritten.
    run_round(subject, fixture, 0, 0, result);
    for (unsigned attempt = 0; attempt < attempt_max && result->round_count < round_count; ++attempt) {
        if (result->round_count) show_progress(subject, result->round_count, round_count);
        double load = run_round(subject, fixture, attempt, result->round_count, result);
        bool is_noisy = load > OTHER_LOAD_MAX;
        bool can_repeat = attempt_max - attempt - 1 >= round_count - result->round_count;
        if (is_noisy && can_repeat) continue;
        result->noisy_count += is_noisy;
        load_sum += load;
        ++result->round_count;
    }
    if (isatty(STDERR_FILENO)) fprintf(stderr, "\r%-48s\r", "");
    result->other_load = result->round_count ? load_sum / result->round_count : -1.0;
}

bool bench_case_run(const bench_case *subject, unsigned run_count, bench_result *result) {
    memset(result, 0, sizeof *result);
    result->subject = subject;
    unsigned round_count = run_count * (subject->repeat ? subject->repeat : 1);
    if (round_count > BENCH_ROUNDS_MAX) round_count = BENCH_ROUNDS_MAX;
    bench_pin(0);
    void *fixture = subject->open();
    if (!fixture) {
        fprintf(stderr, "%s: its fixture could not be made\n", subject->name);
        return false;
    }
    run_rounds(subject, fixture, round_count, result);
    subject->close(fixture);
    return true;
}
