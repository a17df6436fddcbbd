// SPDX-License-Identifier: MIT
#pragma once

// What the scheduler uses of a fence: the tally of a frame, in which it holds units for its tasks without tickets.

#include "nebula/fence.h"

#include "tally.h"

// nb_fence_create with a first frame other than 1 (1 to 2^56 - 1): the tests' way to the end of the number range.
nb_result nbi_fence_create_at(const nb_fence_desc *desc, uint64_t frame_first, nb_fence **out);

// The tally of a frame (null = the current one, written to *frame), with `count` units taken for the caller. Fails as
// nb_fence_take, without reports; *tally is written on NB_OK.
nb_result nbi_fence_enter(nb_fence *fence, nb_fence_frame *frame, uint32_t count, nbi_tally **tally);

// Brackets each sleep of nbi_fence_wait, so that a scheduler knows on which tally the thread sleeps, and can poke it.
typedef struct nbi_fence_sleep {
    void (*before)(void *user, nbi_tally *tally); // announces the sleeper; afterwards help is asked once more
    void (*after)(void *user, nbi_tally *tally);
    void *user;
} nbi_fence_sleep;

// nb_fence_wait for a fence that is not NULL, with the sleeps bracketed. sleep may be NULL.
nb_result nbi_fence_wait(nb_fence *fence, nb_fence_frame frame, uint64_t deadline_ns, const nb_fence_help *help,
                         const nbi_fence_sleep *sleep, nb_fence_report *report);

// The thread arenas of its desc, or NULL.
nb_thread_arenas *nbi_fence_arenas(const nb_fence *fence);

// The tally of a frame that the fence knows, or NULL.
nbi_tally *nbi_fence_tally(nb_fence *fence, nb_fence_frame frame);
