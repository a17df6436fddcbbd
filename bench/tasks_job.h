// SPDX-License-Identifier: MIT
#pragma once

// One measurement of one task system, in this process or, for systems that take their settings when a program is
// loaded, in another.

#include "peers/peers.h"

// Most samples of one measurement; tasks.priority takes the most.
#define TASK_SAMPLES_MAX 2048

// Samples of a measurement, chosen so that all cases together take about a minute and a half.
#define TASK_BARRIER_SAMPLES 100
#define TASK_WAKE_SAMPLES 30
#define TASK_FRAME_SAMPLES 45
// With 7 rounds and the warm-up, more than the 10,000 that a p99 needs.
#define TASK_PRIORITY_SAMPLES 1500

typedef enum task_work {
    TASK_WORK_FLAT,
    TASK_WORK_TREE,
    TASK_WORK_RANGE,
    TASK_WORK_RANGE256,
    TASK_WORK_BARRIER,
    TASK_WORK_FRAMES,
    TASK_WORK_WAKE,
    TASK_WORK_PRIORITY,
    TASK_WORK_IDLE,
    TASK_WORK_COUNT,
} task_work;

typedef struct task_job {
    task_work work;
    unsigned worker_count;
    bool is_pinned; // both threads; else both may run anywhere
} task_job;

typedef struct task_outcome {
    double samples[TASK_SAMPLES_MAX];
    size_t sample_count;
    double worker_share;    // of the work, 0 to 1
    uint64_t inline_count;  // tasks that ran inside a submit
    double same_cpu_share;  // wake: starts on the submitter's cpu, 0 to 1
    double worker_cpu;      // idle, frames: cpu time of the worker beyond its tasks, as a share of a core
    double prewake_call_us; // frames: median cost of the announcement to the caller
} task_outcome;

// A task system as a contender.
typedef struct task_contender {
    const task_pool *pool;   // NULL: OpenMP, in another process
    const char *wait_policy; // of OpenMP; "" is its default
    unsigned slot;           // tells contenders apart in fixtures; below TASK_CONTENDER_SLOTS
} task_contender;

#define TASK_CONTENDER_SLOTS 8

// Contenders that may be missing. OpenMP is shown where it does less than it is asked for.
#define TASK_TBB_PEER(name, run, contender) \
    BENCH_CONTENDER_IF(BENCH_HAVE_TBB, name, BENCH_PEER, run, contender, "libtbb-dev")
#define TASK_TBB_SHOWN(name, run, contender) \
    BENCH_CONTENDER_IF(BENCH_HAVE_TBB, name, BENCH_SHOWN, run, contender, "libtbb-dev")
#define TASK_OPENMP_PEER(name, run, contender) \
    BENCH_CONTENDER_IF(BENCH_HAVE_OPENMP, name, BENCH_PEER, run, contender, "gcc as the compiler")
#define TASK_OPENMP_SHOWN(name, run, contender) \
    BENCH_CONTENDER_IF(BENCH_HAVE_OPENMP, name, BENCH_SHOWN, run, contender, "gcc as the compiler")

extern const task_pool task_pool_nebula;
extern const task_pool task_pool_nebula_queued;
extern const task_pool task_pool_nebula_frame; // every task also belongs to a frame

extern const task_contender task_nebula;
extern const task_contender task_nebula_frame;
extern const task_contender task_nebula_queued;
extern const task_contender task_mutex;
#if BENCH_HAVE_TBB
extern const task_contender task_tbb;
extern const task_contender task_tbb_other;
#endif
extern const task_contender task_openmp;
extern const task_contender task_openmp_passive;

bool task_measure(const task_contender *contender, const task_job *job, task_outcome *outcome);

// Goals that speak of two threads apply where there are two cpus.
bool task_has_two_cpus(void);

// True where both threads did at least a tenth of the work, without which a throughput says nothing about two threads.
bool task_is_shared(const task_outcome *outcome);

// 10^6 items for tasks.range; NULL where there is no memory. The serial loop is measured as a peer.
#define TASK_RANGE_ITEMS ((size_t)1000000)
float *task_range_create(void);
// What the pools are compared with, microseconds.
double task_range_serial_us(float *items);
