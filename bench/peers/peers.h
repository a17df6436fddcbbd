// SPDX-License-Identifier: MIT
#pragma once

// The peers that live in files of their own because they need a library or a language that may not be there.
// The build defines BENCH_HAVE_<PEER> as 0 or 1; what is 0 appears in the table as missing.

#include "../bench.h"
#include "arena_frame.h"
#include "channel_lane.h"
#include "tasks_pool.h"

#if !defined(BENCH_HAVE_MIMALLOC)
#define BENCH_HAVE_MIMALLOC 0
#endif
#if !defined(BENCH_HAVE_OBSTACK)
#define BENCH_HAVE_OBSTACK 0
#endif
#if !defined(BENCH_HAVE_CXX)
#define BENCH_HAVE_CXX 0
#endif
#if !defined(BENCH_HAVE_STOP_TOKEN)
#define BENCH_HAVE_STOP_TOKEN 0
#endif
#if !defined(BENCH_HAVE_CK)
#define BENCH_HAVE_CK 0
#endif
#if !defined(BENCH_HAVE_MOODYCAMEL)
#define BENCH_HAVE_MOODYCAMEL 0
#endif
#if !defined(BENCH_HAVE_URCU)
#define BENCH_HAVE_URCU 0
#endif
#if !defined(BENCH_HAVE_XXHASH)
#define BENCH_HAVE_XXHASH 0
#endif
#if !defined(BENCH_HAVE_TBB)
#define BENCH_HAVE_TBB 0
#endif
#if !defined(BENCH_HAVE_OPENMP)
#define BENCH_HAVE_OPENMP 0
#endif

// BENCH_OPTIONAL(BENCH_HAVE_X, value): the value, or NULL where X is not built in; then `value` is never named.
#define BENCH_OPTIONAL_0(value) NULL
#define BENCH_OPTIONAL_1(value) value
#define BENCH_OPTIONAL_PASTE(have, value) BENCH_OPTIONAL_##have(value)
#define BENCH_OPTIONAL(have, value) BENCH_OPTIONAL_PASTE(have, value)

// A contender that may be missing.
#define BENCH_CONTENDER_IF(have, name, role, run, argument, package) \
    { name, role, BENCH_OPTIONAL(have, run), BENCH_OPTIONAL(have, argument), package }

#if defined(__cplusplus)
extern "C" {
#endif

extern const arena_peer peer_mimalloc;
extern const arena_peer peer_mimalloc_heap;
extern const arena_peer peer_obstack;
extern const arena_peer peer_pmr_monotonic;

extern const channel_peer peer_ck_spsc;
extern const channel_peer peer_ck_mpsc;
extern const channel_peer peer_moodycamel_credits;
extern const channel_peer peer_moodycamel_unbounded;
extern const channel_peer peer_wfcqueue;
extern const channel_peer peer_mutex_ring;
extern const channel_peer peer_cell_ring;

// std::stop_token, each returning nanoseconds: `count` checks; one stop_source with `count` callbacks stopped; a chain
// of `count` stop_sources, each stopped by the one before; `count` times a source with a callback made and destroyed.
double peer_stop_token_check(size_t count);
double peer_stop_token_cancel_wide(size_t count);
double peer_stop_token_cancel_deep(size_t count);
double peer_stop_token_child(size_t count);

// A fence of a mutex and a condition variable, each returning nanoseconds: `count` frames with one piece of work;
// `count` waits for a frame that is done.
double peer_condvar_fence_cycle(size_t count);
double peer_condvar_fence_complete(size_t count);

typedef uint64_t hash_fn(const void *data, size_t size_bytes);
uint64_t peer_xxhash_64(const void *data, size_t size_bytes);
uint64_t peer_xxhash_128(const void *data, size_t size_bytes);

#if defined(__cplusplus)
}
#endif
