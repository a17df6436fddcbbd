// SPDX-License-Identifier: MIT
#pragma once

// What an engine uses of its scheduler beyond the public interface, where several engines may share one.

#include "nebula/tasks.h"
#include "nebula/trace.h"

// --- scheduler.c ---

// Frames whose memory is kept where nothing is late, of arenas that are made for a scheduler: the one that runs, the
// one before it, and two with late work before slots have to be added, which takes the heap.
#define NBI_ARENA_SLOT_COUNT 4u

// The thread arenas of its tasks: of its desc, or its own. A fence with the same ones gives its tasks memory until
// their frame ends.
nb_thread_arenas *nbi_scheduler_arenas(const nb_scheduler *scheduler);

// --- host.c ---

// A host is an engine; 0 is none, and tasks of none are never waited for. As many as a task has bits for.
#define NBI_HOST_MAX 127u
#define NBI_HOST_ALL 128u // in place of a host: all tasks, whosever they are

// A number for one more engine; 0: there is none left. Any thread.
uint32_t nbi_host_open(nb_scheduler *scheduler);
void nbi_host_close(nb_scheduler *scheduler, uint32_t host);

// What the calling thread submits from now on, outside tasks, is the host's. Returns whose it was, for the same call
// afterwards. A thread without a lane of its own is of no host.
uint32_t nbi_host_enter(nb_scheduler *scheduler, uint32_t host);

// nb_task_should_stop is true in the host's tasks, and those that have not started never do, until nbi_host_resume.
void nbi_host_stop(nb_scheduler *scheduler, uint32_t host);
void nbi_host_resume(nb_scheduler *scheduler, uint32_t host);

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
bool nbi_host_await(nb_scheduler *scheduler, uint32_t host, uint64_t deadline_ns, nbi_host_rest *rest);

// --- result.c ---

// Calls on_complete for the tasks of a fence that have ended when the call begins, or, without a fence, for all. Other
// threads may drain meanwhile: each result is told by one of them.
void nbi_results_tell(nb_scheduler *scheduler, const nb_fence *fence);

// --- span.c ---

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
