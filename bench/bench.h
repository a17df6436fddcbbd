// SPDX-License-Identifier: MIT
#pragma once

// The benchmark's skeleton: a case is a set of contenders that do the same work, measured in alternation on the same
// machine in the same run. Nebula is one contender; the others are its peers.
//
//     static bool run_sum(void *fixture, const void *argument, double *values) { values[0] = ...; return true; }
//     static const bench_contender contenders[] = {{"nebula", BENCH_NEBULA, run_sum, &nebula_sum, NULL}, ...};

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__cplusplus)
extern "C" {
#endif

// Sizes of the fixed tables in harness.c; the largest case has 9 contenders and 6 rows.
#define BENCH_CONTENDERS_MAX 12
#define BENCH_ROWS_MAX 8
#define BENCH_GOALS_MAX 3
#define BENCH_ROUNDS_MAX 128

typedef enum bench_role {
    BENCH_NEBULA,
    BENCH_PEER,  // counted: the best of these is what the ratio compares with
    BENCH_SHOWN, // listed, but promises less than the case asks for (or is a reference), so never the best peer
} bench_role;

// As a value: this run does not count, because it did not do what the row compares. Such runs are counted instead.
#define BENCH_THROWN_AWAY ((double)NAN)

// One run of the work. Writes one value per row of the case; false means that the result was wrong or the run failed.
typedef bool bench_run_fn(void *fixture, const void *argument, double *values);

typedef struct bench_contender {
    const char *name;
    bench_role role;
    bench_run_fn *run;    // NULL: this peer was not found when the benchmark was built
    const void *argument; // what run needs to know about this contender
    const char *package;  // what to install where it is missing; NULL for what is always there
} bench_contender;

typedef enum bench_goal_kind {
    BENCH_GOAL_NONE = 0,
    BENCH_GOAL_LIMIT, // value <= factor
    BENCH_GOAL_BEST,  // cost <= factor x the cost of the best counted peer
    BENCH_GOAL_PEER,  // cost <= factor x the cost of the named peer + extra
} bench_goal_kind;

typedef struct bench_goal {
    bench_goal_kind kind;
    double factor;
    const char *peer;
    double extra;
    bool (*applies)(void); // NULL: always
} bench_goal;

// One line of the table.
typedef struct bench_row {
    const char *name;
    const char *unit;
    bool is_rate;          // more is better; the ratio is then taken of the inverse, so that below 1 always means ahead
    bool is_pooled;        // each round's value covers all rounds so far: the last one is the result, not the median
    unsigned sample_count; // of one round, where the row is a p99; what is pooled may be more by the warm-up
    bool is_note;          // says something about the others: no contender is better by it
    bench_goal goals[BENCH_GOALS_MAX];
} bench_row;

typedef struct bench_case {
    const char *name;
    const char *about; // one line for --list
    const bench_row *rows;
    size_t row_count;
    const bench_contender *contenders;
    size_t contender_count;
    unsigned repeat;     // rounds per asked-for run; short cases can afford more
    void *(*open)(void); // makes what all contenders share; NULL result: the case fails
    void (*close)(void *fixture);
} bench_case;

// What one case gave. Samples are ordered by round, so that contenders of one round can be compared.
typedef struct bench_result {
    const bench_case *subject;
    unsigned round_count;
    unsigned noisy_count; // rounds kept although other programs used the machine
    double other_load;    // cores used by others during the kept rounds, mean; negative: unknown
    bool is_failed[BENCH_CONTENDERS_MAX];
    double samples[BENCH_CONTENDERS_MAX][BENCH_ROWS_MAX][BENCH_ROUNDS_MAX];
} bench_result;

typedef struct bench_stat {
    double median;
    double low;
    double high;
} bench_stat;

// --- harness.c: measuring ---

// Runs the rounds of one case. False: the fixture could not be made.
bool bench_case_run(const bench_case *subject, unsigned run_count, bench_result *result);

// Sorts `values` and takes median, minimum and maximum.
bench_stat bench_stat_of(double *values, size_t count);
// The value below which the given fraction of the sorted values lies.
double bench_percentile(const double *sorted, size_t count, double fraction);
void bench_sort(double *values, size_t count);

uint64_t bench_now_ns(void);
uint64_t bench_cpu_time_ns(void);
// Fixed pseudo-random sequence: the same in every run and for every contender.
uint64_t bench_random(uint64_t *state);
// Binds the calling thread to one cpu, counted modulo the cpus there are; false where that is refused.
bool bench_pin(unsigned cpu);
// Lets it run on every cpu again.
bool bench_unpin(void);
unsigned bench_cpu_count(void);
// True where the time stamp counter ticks at one rate in every power state.
bool bench_has_invariant_tsc(void);

// --- report.c: printing ---

void bench_print_header(unsigned run_count);
// Returns the number of goals not met.
unsigned bench_print_result(const bench_result *result);
// Writes one JSON object per row. `json` is a FILE *, left untyped to keep stdio out of the peers.
void bench_write_json(void *json, const bench_result *result);

// --- the cases ---

const bench_case *bench_arena_cases(size_t *count);
const bench_case *bench_token_cases(size_t *count);
const bench_case *bench_channel_cases(size_t *count);
const bench_case *bench_trace_cases(size_t *count);
const bench_case *bench_loop_cases(size_t *count);
const bench_case *bench_hash_cases(size_t *count);
const bench_case *bench_fence_cases(size_t *count);
const bench_case *bench_engine_cases(size_t *count);
const bench_case *bench_task_cases(size_t *count);
const bench_case *bench_task_range_cases(size_t *count);
const bench_case *bench_task_latency_cases(size_t *count);
const bench_case *bench_async_cases(size_t *count);
const bench_case *bench_budget_cases(size_t *count);
const bench_case *bench_snapshot_cases(size_t *count);
const bench_case *bench_world_cases(size_t *count);
const bench_case *bench_history_cases(size_t *count);
const bench_case *bench_history_memory_cases(size_t *count);
const bench_case *bench_record_cases(size_t *count);
const bench_case *bench_replay_cases(size_t *count);
const bench_case *bench_synctest_cases(size_t *count);
const bench_case *bench_scene_cases(size_t *count);
const bench_case *bench_graph_cases(size_t *count);
const bench_case *bench_gpu_cases(size_t *count);
const bench_case *bench_demo_cases(size_t *count);

// How the program starts itself to measure a peer that needs a process of its own; not for users.
#define BENCH_TASK_JOB_OPTION "--task-job"
int bench_task_job(const char *words);

#if defined(__GNUC__)
#define BENCH_ALWAYS_INLINE static inline __attribute__((always_inline))
#define BENCH_NOINLINE __attribute__((noinline))
#else
#define BENCH_ALWAYS_INLINE static inline
#define BENCH_NOINLINE
#endif

// Keeps a value alive without giving the compiler a reason to reload anything else.
BENCH_ALWAYS_INLINE void bench_keep(const void *value) { __asm__ volatile("" : : "r"(value)); }

#define BENCH_COUNT(array) (sizeof(array) / sizeof((array)[0]))

#if defined(__cplusplus)
}
#endif
