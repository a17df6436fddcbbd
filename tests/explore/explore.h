// SPDX-License-Identifier: MIT
#pragma once

// A schedule explorer: the real sources, compiled with NB_EXPLORE, run as fibers of one OS thread. Every atomic access
// and every park is a point where a seeded scheduler may switch to another fiber, so a seed is a schedule and replays
// exactly. Half of the seeds switch at random; the other half give threads priorities and lower them at a few random
// points (this finds bugs of small depth with a known probability). Interleavings only: memory is sequentially
// consistent here.
//
// Also found: deadlock (everybody parked, no deadline left), livelock (too many steps), an atomic access to freed
// memory, a leak at the end of a schedule.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "nebula/hooks.h"
#include "nebula/types.h"

#include "support/case.h"

#define EXPLORE_THREADS_MAX 6

typedef struct explore_test {
    const char *name;
    uint32_t thread_count;
    void (*setup)(void *user);                  // before the threads, not interleaved; user is zeroed
    void (*thread)(void *user, uint32_t index); // one body for all threads, told apart by index
    void (*check)(void *user);                  // after all threads have ended, not interleaved
    size_t user_size_bytes;
} explore_test;

// Hooks whose heap watches for use after free; for setup, thread and check.
nb_hooks explore_hooks(void);

// A number the schedule's seed decides.
uint64_t explore_random(void);

// Ends the schedule as failed. The message is printed with the seed.
_Noreturn void explore_fail(const char *file, int line, const char *message);
#define EXPLORE_CHECK(condition)                                        \
    do {                                                                \
        if (!(condition)) explore_fail(__FILE__, __LINE__, #condition); \
    } while (0)

// Of a program that runs its schedules one by one, with explore_open.
typedef struct explore_options {
    uint32_t step_limit; // after which a schedule counts as a livelock; 0 = that of explore_passes
    bool has_threads;    // threads that the library starts are fibers, too
    bool is_long;        // priorities change through the whole of a schedule
} explore_options;

typedef struct explore_outcome {
    const char *failure; // NULL = passed; valid until the next run
    uint64_t schedule_hash;
    uint32_t step_count;
} explore_outcome;

void explore_open(const explore_test *test, const explore_options *options);
bool explore_run(const explore_test *test, uint64_t seed, explore_outcome *outcome);
void explore_close(void);

// Of the schedule that runs: its user, the steps so far, the blocks of its heap.
void *explore_user(void);
uint32_t explore_step_count(void);
size_t explore_heap_live_count(void);

// From now on no thread starts, or they do again.
void explore_refuse_threads(bool refuses);

// Runs a test over many seeds; false = a schedule failed, and its seed was printed. NB_TEST_SEED is the first seed,
// NB_TEST_SCHEDULES their number; by default it follows NB_TEST_SIZE.
bool explore_passes(const explore_test *test);

// A case of the test program: EXPLORE(name, threads, setup, thread, check, size), or with the fields' names.
#define EXPLORE(case_name, ...)                                          \
    TEST(case_name) {                                                    \
        const explore_test explored = {.name = #case_name, __VA_ARGS__}; \
        assert_true(explore_passes(&explored));                          \
    }
