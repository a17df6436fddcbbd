// SPDX-License-Identifier: MIT
#pragma once

// Integer types, result codes and export macros: what every other header builds on.
// The one rule: a value leaves a function through an out-pointer, and that pointer is written only on NB_OK.
//
//     nb_loop loop;
//     nb_result result = nb_loop_init(&loop, NULL);
//     if (result < 0) fprintf(stderr, "loop: %s\n", nb_result_name(result));

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NB_VERSION_MAJOR 0
#define NB_VERSION_MINOR 1
#define NB_VERSION_PATCH 0

#if defined(_WIN32) && defined(NB_SHARED)
#if defined(NB_BUILDING)
#define NBI_EXPORT __declspec(dllexport)
#else
#define NBI_EXPORT __declspec(dllimport)
#endif
#elif defined(__GNUC__)
#define NBI_EXPORT __attribute__((visibility("default")))
#else
#define NBI_EXPORT
#endif

#if defined(__cplusplus)
#define NBI_LINKAGE extern "C"
#define NB_EXTERN_C_BEGIN extern "C" {
#define NB_EXTERN_C_END }
#else
#define NBI_LINKAGE extern
#define NB_EXTERN_C_BEGIN
#define NB_EXTERN_C_END
#endif

// NB_API marks a stable declaration, NB_EXPERIMENTAL one that may change in any release.
#define NB_API NBI_LINKAGE NBI_EXPORT
#define NB_EXPERIMENTAL NBI_LINKAGE NBI_EXPORT

// Functions whose work is cheaper than a call; the linker never sees them.
#define NB_INLINE static inline

#if defined(__GNUC__)
#define NB_PRINTF(format_index, first_arg) __attribute__((format(printf, format_index, first_arg)))
#define NB_LIKELY(x) __builtin_expect(!!(x), 1)
#define NB_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define NB_NOINLINE __attribute__((noinline))
#else
#define NB_PRINTF(format_index, first_arg)
#define NB_LIKELY(x) (x)
#define NB_UNLIKELY(x) (x)
#define NB_NOINLINE
#endif

#if defined(__cplusplus)
#define NB_STATIC_ASSERT(condition, message) static_assert(condition, message)
#define NB_ALIGNOF(type) alignof(type)
#else
#define NB_STATIC_ASSERT(condition, message) _Static_assert(condition, message)
#define NB_ALIGNOF(type) _Alignof(type)
#endif

// A cache line on every CPU Nebula targets; what is written by different threads is kept this far apart.
#define NB_CACHE_LINE 64

// A deadline that never comes. The largest time there is, so a plain "now < deadline" is true for it without a special
// case.
#define NB_NEVER_NS UINT64_MAX

// Largest index of a next tick that time can be moved to: 8,900 years at 1000 ticks a second. A file that says more is
// forged, and below it no sum of ticks passes 2^64.
#define NB_TICK_COUNT_MAX (UINT64_C(1) << 48)

// Negative: failure. Zero: done. Positive: a normal outcome that produced no value.
typedef enum nb_result {
    NB_OK = 0,
    NB_EMPTY = 1,     // nothing there now
    NB_FULL = 2,      // no room now; nothing was taken
    NB_TIMEOUT = 3,   // the deadline passed first
    NB_CANCELLED = 4, // stopped by a token
    NB_CLOSED = 5,    // the other side is gone for good
    NB_BUSY = 6,      // in use; ask again later

    NB_ERR_MEMORY = -1,      // an allocation failed; nothing was changed
    NB_ERR_MISUSE = -2,      // wrong form (NULL, no power of two, not of its enum) or wrong moment; nothing was changed
    NB_ERR_RANGE = -3,       // a number is too large or too small
    NB_ERR_STALE = -4,       // a handle of an object that has ended
    NB_ERR_THREAD = -5,      // called from a thread that may not
    NB_ERR_OS = -6,          // the operating system refused; the log item carries its code
    NB_ERR_UNSUPPORTED = -7, // this platform or build has no such ability
    NB_ERR_DEADLOCK = -8,    // waiting would never end
    NB_ERR_PERMISSION = -9,  // not in this phase, or not without the capability; nothing was changed
    NB_ERR_LOST = -10,       // the device is gone; what was on it is lost
} nb_result;

NB_EXTERN_C_BEGIN

// The identifier of a result, such as "NB_ERR_MEMORY"; "unknown" for a value outside the enum.
// Thread: any. Owner: a static string. Fails: never.
NB_API const char *nb_result_name(nb_result result);

// The version as "major.minor.patch" of the library linked in, which may differ from the header's NB_VERSION_*.
// Thread: any. Owner: a static string. Fails: never.
NB_API const char *nb_version(void);

NB_EXTERN_C_END
