// SPDX-License-Identifier: MIT
#pragma once

// What an engine uses of its scheduler beyond the public interface, where several engines may share one.

#include "nebula/tasks.h"
#include "nebula/trace.h"

#include "../base/owner.h"

// --- scheduler.c ---

// Frames whose memory is kept where nothing is late, of arenas that are made for a scheduler: the one that runs, the
// one before it, and two with late work before slots have to be added, which takes the heap.
#define NBI_ARENA_SLOT_COUNT 4u

// The thread arenas of its tasks: of its desc, or its own. A fence with the same ones gives its tasks memory until
// their frame ends.
nb_thread_arenas *nbi_scheduler_arenas(const nb_scheduler *scheduler);

// --- owner_tasks.c ---

// An owner (../base/owner.h): of an engine, or, with the engine's as its parent, of a module. NB_FULL, NB_ERR_MEMORY.
// After the close it stays as long as it has work. NULL can be closed.
nb_result nbi_owner_open(nb_scheduler *scheduler, nbi_owner *parent, nbi_owner **out);
void nbi_owner_close(nb_scheduler *scheduler, nbi_owner *owner);

// The owner of code that must not begin anything.
nbi_owner *nbi_owner_closed(nb_scheduler *scheduler);

// Tasks of an owner that have not ended, or whose result is still to be told; *label is that of one.
uint32_t nbi_tasks_owned(nb_scheduler *scheduler, const nbi_owner *owner, nb_label *label);

// How many tasks of an owner were submitted so far.
uint64_t nbi_tasks_births(const nb_scheduler *scheduler, const nbi_owner *owner);

// --- host.c ---

// The host of a task is the engine whose owner it has, or whose modules' owner. In place of one, NULL: all tasks,
// whosever they are.

// What the scheduler runs with: no field is left to a default. worker_count 0 is none here.
nb_scheduler_desc nbi_scheduler_desc(const nb_scheduler *scheduler);

// nb_task_should_stop is true in the host's tasks, and those that have not started never do, until nbi_host_resume.
void nbi_host_stop(nb_scheduler *scheduler, const nbi_owner *host);
void nbi_host_resume(nb_scheduler *scheduler, const nbi_owner *host);

// Labels that are told apart.
#define NBI_HOST_LABEL_MAX 16u

// Tasks that run.
typedef struct nbi_host_rest {
    uint32_t running_count;
    uint32_t label_count; // of those that belong to no frame
    nb_label labels[NBI_HOST_LABEL_MAX];
    uint32_t task_counts[NBI_HOST_LABEL_MAX]; // with that label
} nbi_host_rest;

// After nbi_host_stop: waits until none of the host's tasks runs. False: the deadline came first; *rest says which do.
bool nbi_host_await(nb_scheduler *scheduler, const nbi_owner *host, uint64_t deadline_ns, nbi_host_rest *rest);

// --- result.c ---

// Calls on_complete for the tasks of a fence that have ended when the call begins, or, without a fence, for all. Other
// threads may drain meanwhile: each result is told by one of them.
void nbi_results_tell(nb_scheduler *scheduler, const nb_fence *fence);

// --- trace_spans.c ---

// Engines with a trace that share a scheduler.
#define NBI_TRACED_COUNT_MAX 8u

// A task with this bit in its label records its own spans, as those of an engine's jobs do.
#define NBI_LABEL_RECORDS (1u << 31)

// Records tasks into the trace from now on: those of the fence's frames, and those of no frame. Every thread that runs
// one gets a ring. NB_FULL: too many engines with a trace share the scheduler.
nb_result nbi_scheduler_trace_add(nb_scheduler *scheduler, nb_trace *trace, const nb_fence *fence);

// Ends that. Afterwards no thread writes into the trace, and none is attached to it because of its tasks. Waits for
// records that are being written. A trace that was not added is fine.
void nbi_scheduler_trace_remove(nb_scheduler *scheduler, const nb_trace *trace);
