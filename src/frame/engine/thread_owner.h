// SPDX-License-Identifier: MIT
#pragma once

// Whose code runs on a thread of an engine, for a guard's line.

#include "engine.h"

// The module whose handler or job runs on the thread, and the index of a job; NULL for a thread that runs neither. An
// nb_guard_who_fn: user is the engine; reads only, on the thread that is asked about, also in a signal handler.
const char *nbi_engine_thread_owner(void *user, uint64_t thread_id, uint32_t *job_index);
