// SPDX-License-Identifier: MIT
// What goes wrong, and how often. A seed has each kind of fault with one of two probabilities: all at once hide one
// another, so most seeds have a few kinds only, and some have none or all.

#include "simulation.h"

#include <string.h>

uint64_t sim_random(uint64_t below) { return explore_random() % below; }

bool fault_happens(const sim *s, fault kind) {
    if (s->is_calm || s->config.chances[kind] == 0) return false;
    return sim_random(1024) < s->config.chances[kind];
}

const char *fault_name(fault kind) {
    static const char *const names[FAULT_COUNT] = {
        "heap",          "thread",     "late job",   "job",         "handler",       "output",      "violation",
        "cancel",        "loss",       "copy",       "delay",       "partition",     "corrupt",     "forged state",
        "forged input",  "absurd",     "clock jump", "clock stall", "clock back",    "slow tick",   "input flood",
        "command flood", "task flood", "reader",     "module",      "errand",        "errand hang", "errand cancel",
        "errand flood",  "rewind",     "watch",      "pause",       "forged message"};
    return names[kind];
}

// Of 1024: rarely enough that a run gets somewhere.
static uint32_t chance_of(fault kind) {
    switch (kind) {
    case FAULT_LOSS: return (uint32_t)(128 + sim_random(384));
    case FAULT_DELAY: return (uint32_t)(128 + sim_random(640));
    case FAULT_HEAP: return (uint32_t)(sim_random(2) == 0 ? 4 + sim_random(64) : 128 + sim_random(256));
    case FAULT_CORRUPT:
    case FAULT_READER:
    case FAULT_WATCH:
    case FAULT_ERRAND:
    case FAULT_ERRAND_HANG:
    case FAULT_ERRAND_CANCEL:
    case FAULT_THREAD: return (uint32_t)(64 + sim_random(256));
    default: return (uint32_t)(16 + sim_random(112));
    }
}

// A quarter of the seeds has no workers: they are fast, and what is wrong with them needs no schedule. The others have
// one or two for each peer, or share them.
static void plan_threads(sim_config *c) {
    uint64_t draw = sim_random(8);
    c->worker_count = draw < 2 ? 0 : draw < 5 ? 1 : 2;
    c->shares_scheduler = sim_random(5) == 0;
    c->has_reader = sim_random(3) != 0;
    c->has_tick_tasks = sim_random(2) == 0;
    c->disables = sim_random(3) == 0;
}

static void plan_sizes(sim_config *c) {
    c->task_count = c->chances[FAULT_TASK_FLOOD] != 0 ? 8u << sim_random(2) : 64;
    c->errand_count = c->chances[FAULT_ERRAND_FLOOD] != 0 ? 2 + (uint32_t)sim_random(4) : 64;
    c->command_count = c->chances[FAULT_COMMAND_FLOOD] != 0 ? 3 + (uint32_t)sim_random(5) : 128;
    c->input_count = c->chances[FAULT_INPUT_FLOOD] != 0 ? 4u << sim_random(2) : 64;
    c->history_bytes = sim_random(6) == 0 ? 96 * 1024 : 512 * 1024;
    c->history_events = sim_random(6) == 0 ? 4 : PEER_COUNT * PART_MAX;
    c->state_period = 4 + (uint32_t)sim_random(12);
}

void faults_plan(sim *s, sim_mode mode, uint32_t tick_count) {
    sim_config *c = &s->config;
    static const uint32_t percents[] = {0, 6, 12, 25, 50, 100};
    uint64_t percent = percents[sim_random(sizeof percents / sizeof percents[0])];
    for (uint32_t i = 0; i < FAULT_FORGED_MESSAGE; ++i) {
        uint32_t chance = chance_of((fault)i);
        c->chances[i] = sim_random(100) < percent ? chance : 0;
    }
    c->mode = mode;
    c->tick_count = tick_count;
    plan_threads(c);
    plan_sizes(c);
    // A match of its own takes time: of the peers' faults none needs it.
    c->chances[FAULT_FORGED_MESSAGE] = sim_random(8) == 0 ? 512 : 0;
}

// --- the heap ---

static void *heap_alloc(void *user, size_t size_bytes, size_t alignment) {
    peer *p = user;
    ++p->heap_calls;
    if (p->is_heap_armed && fault_happens(p->sim, FAULT_HEAP)) {
        ++p->heap_faults;
        return NULL;
    }
    return explore_hooks().allocator.alloc(NULL, size_bytes, alignment);
}

static void heap_free(void *user, void *memory, size_t size_bytes) {
    (void)user;
    explore_hooks().allocator.free(NULL, memory, size_bytes);
}

static void log_record(void *user, const nb_log_record *record) { oracle_log(user, record); }

nb_hooks peer_hooks(peer *p) {
    return (nb_hooks){.allocator = {.alloc = heap_alloc, .free = heap_free, .user = p},
                      .logger = {.log = log_record, .user = p, .level_min = NB_LOG_TRACE}};
}
