// SPDX-License-Identifier: MIT
#pragma once

// OpenMP reads how its threads wait when the program is loaded. Each of its measurements is therefore a run of this
// program with the environment that says so; the outcome comes back through a pipe.

#include "tasks_job.h"

bool task_measure_here(const task_pool *kind, const task_job *job, task_outcome *outcome);
bool task_measure_elsewhere(const char *wait_policy, const task_job *job, task_outcome *outcome);
