// SPDX-License-Identifier: MIT
#pragma once

// A crew and a few tasks that note the order in which they run.

#include "explore_tasks.h"

#define ORDERED_TASK_COUNT 4

typedef struct room {
    crew crew;
    crew_count run_count;
    crew_count ready, ended, gate;
    nb_atomic_u32 started_count;
    nb_group group;
    nb_task tasks[ORDERED_TASK_COUNT];
    nb_atomic_u32 order[ORDERED_TASK_COUNT]; // when each ran, from 1 on; 0 = it did not
    nb_result results[EXPLORE_THREADS_MAX];
} room;

typedef struct ordered_task {
    room *room;
    uint32_t index;
} ordered_task;

static inline void note_order(nb_task_context *context, void *argument) {
    (void)context;
    const ordered_task *own = argument;
    room *r = own->room;
    uint32_t place = nbi_atomic_fetch_add_seq_cst_u32(&r->started_count, 1) + 1;
    EXPLORE_CHECK(nbi_atomic_load_relaxed_u32(&r->order[own->index]) == 0);
    nbi_atomic_store_relaxed_u32(&r->order[own->index], place);
    crew_count_add(&r->run_count);
}

static inline uint32_t order_of(const room *r, uint32_t index) { return nbi_atomic_load_relaxed_u32(&r->order[index]); }

// Runs note_order where the desc names no function.
static inline nb_result submit_ordered(room *r, uint32_t index, nb_task_desc desc) {
    ordered_task own = {r, index};
    if (desc.run == NULL) desc.run = note_order;
    desc.argument = &own;
    desc.argument_size_bytes = sizeof own;
    return nb_task_submit(r->crew.scheduler, &desc, &r->tasks[index]);
}

static inline void wait_for(room *r, uint32_t index) {
    EXPLORE_CHECK(nb_task_wait(r->crew.scheduler, r->tasks[index], NB_NEVER_NS) == NB_OK);
    EXPLORE_CHECK(nb_task_is_complete(r->crew.scheduler, r->tasks[index]));
}

static inline void run_when_open(nb_task_context *context, void *argument) {
    room *r = ((const ordered_task *)argument)->room;
    crew_count_add(&r->ended);
    crew_count_await(&r->gate, 1);
    note_order(context, argument);
}

// Submits a task of the group that another thread claims, and that keeps the group open until the gate opens.
static inline void hold_group(room *r, uint32_t index) {
    nb_task_desc desc = {.run = run_when_open, .group = r->group};
    EXPLORE_CHECK(submit_ordered(r, index, desc) == NB_OK);
    crew_count_add(&r->ready);
    crew_count_await(&r->ended, 1);
}

// Thread 1 claims that task, and thread 2 sleeps for the group.
static inline void claim_or_end_group(room *r, uint32_t thread, uint32_t index) {
    crew_count_await(&r->ready, 1);
    if (thread == 1) EXPLORE_CHECK(nb_task_claim(r->crew.scheduler, r->tasks[index]) == NB_OK);
    if (thread != 2) return;
    crew_count_await(&r->ended, 1);
    EXPLORE_CHECK(nb_group_end(r->crew.scheduler, r->group, NB_NEVER_NS) == NB_OK);
    EXPLORE_CHECK(crew_count_now(&r->run_count) >= 1);
}
