// SPDX-License-Identifier: MIT
#pragma once

// What an engine uses of its scheduler beyond the public interface, where several engines may share one.

#include "nebula/tasks.h"

// --- result.c ---

// Calls on_complete for the tasks of a fence that have ended when the call begins, or, without a fence, for all. Other
// threads may drain meanwhile: each result is told by one of them.
void nbi_results_tell(nb_scheduler *scheduler, const nb_fence *fence);
