// SPDX-License-Identifier: MIT
#pragma once

// Where time comes from: a pair of functions that a host, a test or a tool may replace. A zero nb_clock is the
// machine's monotonic clock, which stands still while a Linux machine is suspended. The one rule: times of different
// clocks are never compared, so give the loop, its input and its tokens the same clock.
//
//     nb_clock_manual manual;
//     nb_clock_manual_init(&manual, 0);
//     nb_clock clock = nb_clock_manual_get(&manual);
//     nb_clock_manual_advance(&manual, 16666667);
//     uint64_t now_ns = nb_clock_now_ns(&clock); // 16666667
//     (void)now_ns;

#include "nebula/atomic.h"
#include "nebula/types.h"

// Both functions may be called from any thread that calls the object holding the clock.
typedef struct nb_clock {
    uint64_t (*now_ns)(void *user); // nanoseconds since any fixed moment; NULL = monotonic clock of the machine
    // Returns at or after deadline_ns. NULL = the machine's absolute sleep where now_ns is NULL too; beside an own
    // now_ns it means that this clock cannot wait, and pacing is refused.
    void (*sleep_until_ns)(void *user, uint64_t deadline_ns);
    void *user; // handed to both; default NULL
} nb_clock;

// A clock that moves only when told to; sleeping on it moves it to the deadline at once.
typedef struct nb_clock_manual {
    nb_atomic_u64 now_ns; // the time it shows; use the functions below
} nb_clock_manual;

NB_EXTERN_C_BEGIN

// The time of a clock; NULL or a zero clock reads the machine's monotonic clock.
// Thread: any. Owner: nothing. Fails: never.
NB_API uint64_t nb_clock_now_ns(const nb_clock *clock);

// Sleeps until the clock shows deadline_ns or later; returns at once when it has passed. NULL is the machine's clock.
// Thread: any. Owner: nothing. Fails: NB_ERR_UNSUPPORTED for a clock with now_ns but without sleep_until_ns.
NB_API nb_result nb_clock_sleep_until_ns(const nb_clock *clock, uint64_t deadline_ns);

// Starts a manual clock at start_ns.
// Thread: any, before the clock is shared. Owner: the caller's storage. Fails: NB_ERR_MISUSE.
NB_API nb_result nb_clock_manual_init(nb_clock_manual *manual, uint64_t start_ns);

// The nb_clock that reads `manual`; NULL gives the machine's clock and a log item.
// Thread: any. Owner: the caller keeps `manual` alive while the clock is in use. Fails: never.
NB_API nb_clock nb_clock_manual_get(nb_clock_manual *manual);

// Moves the clock forward; it stops at UINT64_MAX.
// Thread: any. Owner: nothing. Fails: NB_ERR_MISUSE.
NB_API nb_result nb_clock_manual_advance(nb_clock_manual *manual, uint64_t delta_ns);

// Moves the clock to a time, backwards too: that is how a test steps it back.
// Thread: any. Owner: nothing. Fails: NB_ERR_MISUSE.
NB_API nb_result nb_clock_manual_set(nb_clock_manual *manual, uint64_t now_ns);

NB_EXTERN_C_END
