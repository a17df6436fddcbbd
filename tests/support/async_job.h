// SPDX-License-Identifier: MIT
#pragma once

// An async job in one line, for tests whose jobs have these callbacks.

#include "nebula/async.h"

static inline nb_async_job_desc async_job_of(nb_async_step_fn step, nb_result (*commit)(void *host, void *state),
                                             void (*publish)(void *host, void *state),
                                             void (*discard)(void *host, void *state, nb_result reason),
                                             const void *state, size_t size_bytes) {
    nb_async_job_desc desc = {.step = step, .commit = commit, .publish = publish, .discard = discard};
    desc.state = state, desc.state_size_bytes = size_bytes;
    return desc;
}
