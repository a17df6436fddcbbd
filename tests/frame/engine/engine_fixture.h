// SPDX-License-Identifier: MIT
#pragma once

// What the tests of the engine share: an engine that is checked for leaks when it is closed, and a journal of who ran
// when.

#include "support/support.h"

#include "nebula/engine.h"

typedef struct rig {
    nb_engine *engine;
    test_heap heap;
    test_log log;
} rig;

static inline void rig_open_desc(rig *r, nb_engine_desc desc) {
    memset(r, 0, sizeof *r);
    desc.hooks = test_hooks(&r->log, &r->heap);
    desc.hooks.logger.level_min = NB_LOG_WARNING;
    assert_int_equal(nb_engine_create(&desc, &r->engine), NB_OK);
}

// 0 is none here. Small pools: a test makes many. No job is late, however slow the machine is, unless a test says so.
static inline nb_engine_desc rig_desc(uint32_t worker_count) {
    return (nb_engine_desc){.fence_timeout_ns = UINT64_C(60000000000),
                            .scheduler_desc = {.worker_count = worker_count != 0 ? worker_count : NB_WORKER_COUNT_NONE,
                                               .task_count_max = 1024,
                                               .group_count_max = 256}};
}

static inline void rig_open(rig *r, uint32_t worker_count) { rig_open_desc(r, rig_desc(worker_count)); }

// Each tick is hashed.
static inline void rig_open_hashed(rig *r, uint32_t worker_count) {
    nb_engine_desc desc = rig_desc(worker_count);
    desc.hashes_ticks = true;
    rig_open_desc(r, desc);
}

// By a clock that the test moves.
static inline void rig_open_clock(rig *r, nb_clock_manual *clock, uint64_t start_ns) {
    nb_clock_manual_init(clock, start_ns);
    nb_engine_desc desc = rig_desc(0);
    desc.loop.clock = nb_clock_manual_get(clock);
    rig_open_desc(r, desc);
}

static inline void rig_close(rig *r) {
    assert_int_equal(nb_engine_destroy(r->engine), NB_OK);
    assert_int_equal(r->heap.live_count.value, 0);
}

static inline nb_engine_stats rig_stats(const rig *r) { return nb_engine_stats_get(r->engine); }

static inline nb_module_id attach(rig *r, nb_module_desc desc) {
    nb_module_id module = {0};
    assert_int_equal(nb_engine_module_attach(r->engine, &desc, &module), NB_OK);
    return module;
}

static inline void run_ticks(rig *r, uint64_t count) { assert_int_equal(nb_engine_run_ticks(r->engine, count), NB_OK); }

// Takes the first output into a hash.
static inline nb_result mix_first(uint64_t *hash, const nb_output_list *outputs) {
    *hash = *hash * 31 + *(const uint64_t *)nb_output_list_next(outputs, NULL, NULL);
    return NB_OK;
}

// A line for each handler that ran, in its order.
#define JOURNAL_MAX 4096
typedef struct journal {
    struct {
        char name;
        nb_phase phase;
    } entries[JOURNAL_MAX];
    uint32_t count;
} journal;

typedef struct writer {
    journal *journal;
    char name;
    nb_result returns;
} writer;

static inline nb_result write_journal(const nb_context *context, void *user) {
    writer *w = user;
    journal *j = w->journal;
    if (j->count < JOURNAL_MAX) {
        j->entries[j->count].name = w->name;
        j->entries[j->count].phase = context->phase;
        ++j->count;
    }
    return w->returns;
}

// The names in the journal that ran in a phase.
static inline void assert_ran(const journal *j, nb_phase phase, const char *names) {
    char found[256];
    size_t count = 0;
    for (uint32_t i = 0; i < j->count && count + 1 < sizeof found; ++i) {
        if (j->entries[i].phase == phase) found[count++] = j->entries[i].name;
    }
    found[count] = '\0';
    assert_string_equal(found, names);
}
