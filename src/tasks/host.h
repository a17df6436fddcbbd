// SPDX-License-Identifier: MIT
#pragma once

// What an engine uses of its scheduler beyond the public interface, where several engines may share one.

#include "nebula/tasks.h"

// --- scheduler.c ---

// Frames whose memory is kept where nothing is late, of arenas that are made for a scheduler: the one that runs, the
// one before it, and two with late work before slots have to be added, which takes the heap.
#define NBI_ARENA_SLOT_COUNT 4u

// The thread arenas of its tasks: of its desc, or its own. A fence with the same ones gives its tasks memory until
// their frame ends.
nb_thread_arenas *nbi_scheduler_arenas(const nb_scheduler *scheduler);

// --- result.c ---

// Calls on_complete for the tasks of a fence that have ended when the call begins, or, without a fence, for all. Other
// threads may drain meanwhile: each result is told by one of them.
void nbi_results_tell(nb_scheduler *scheduler, const nb_fence *fence);
