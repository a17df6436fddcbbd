// SPDX-License-Identifier: MIT
#pragma once

// Async jobs in few words.

#include "nebula/async.h"

static inline nb_async_job_desc async_job_of(nb_async_step_fn step, nb_result (*commit)(void *host, void *state),
                                             void (*publish)(void *host, void *state),
                                             void (*discard)(void *host, void *state, nb_result reason),
                                             const void *state, size_t size_bytes) {
    nb_async_job_desc desc = {.step = step, .commit = commit, .publish = publish, .discard = discard};
    desc.state = state, desc.state_size_bytes = size_bytes;
    return desc;
}

// The step of a job that ends only where it is cancelled.
static inline nb_async_status async_pause_for_ever(nb_async_call *call, void *state) {
    (void)state;
    NB_ASYNC_BEGIN(call);
    for (;;) {
        NB_ASYNC_FRAME(call);
    }
    NB_ASYNC_END(call);
}
