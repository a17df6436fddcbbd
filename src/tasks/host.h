// SPDX-License-Identifier: MIT
#pragma once

// What an engine uses of its scheduler beyond the public interface, where several engines may share one.

#include "nebula/tasks.h"

#include "../base/owner.h"

// --- result.c ---

// Calls on_complete for the tasks of a fence that have ended when the call begins, or, without a fence, for all. Other
// threads may drain meanwhile: each result is told by one of them.
void nbi_results_tell(nb_scheduler *scheduler, const nb_fence *fence);

// --- owned.c ---

// An owner (../base/owner.h) for a module, or NULL: no memory. After the close it stays as long as it has work.
nbi_owner *nbi_owner_open(nb_scheduler *scheduler);
void nbi_owner_close(nb_scheduler *scheduler, nbi_owner *owner);

// The owner of code that must not begin anything.
nbi_owner *nbi_owner_closed(nb_scheduler *scheduler);

// Tasks of an owner that have not ended, or whose result is still to be told; *label is that of one.
uint32_t nbi_tasks_owned(nb_scheduler *scheduler, const nbi_owner *owner, nb_label *label);

// How many tasks of an owner were submitted so far.
uint64_t nbi_tasks_births(const nb_scheduler *scheduler, const nbi_owner *owner);
