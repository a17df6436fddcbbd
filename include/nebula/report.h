// SPDX-License-Identifier: MIT
#pragma once

// For those who write modules: hooks with their defaults, memory through them, and one way to report what went wrong.
// The one rule: a caller's mistake is a mistake (NB_FAIL), which the assertion hook hears of too; what a file, a device
// or the allocator refuses is a failure, and is logged alone. Hooks may be NULL or have zero fields anywhere here;
// those mean the defaults. An object keeps hooks that are resolved, once, when it is made.
//
//     typedef struct thing { nb_hooks hooks; uint32_t size; } thing;
//     static nb_result thing_create(uint32_t size, const nb_hooks *given, thing **out) {
//         if (out == NULL) return NB_FAIL_NULL("out");
//         if (size == 0) return NB_FAIL(given, NB_ITEM_BASE_ARGUMENT, NB_ERR_RANGE, "size is %u", size);
//         thing *made = (thing *)nb_hooks_alloc(given, sizeof(thing), NB_CACHE_LINE, __func__);
//         if (made == NULL) return NB_ERR_MEMORY; // the logger has heard of it
//         made->hooks = nb_hooks_resolve(given);
//         made->size = size;
//         *out = made;
//         return NB_OK;
//     }

#include "nebula/atomic.h"
#include "nebula/hooks.h"
#include "nebula/types.h"

// Longest message of a report with its final zero; longer ones are cut. One line of a wide terminal, twice.
#define NB_REPORT_MESSAGE_SIZE 320

// Different reports that a throttle counts by themselves; all further ones share a count.
#define NB_THROTTLE_COUNT 64u

// Counts the reports of one object with a log, such as a world or a device. Zeros are an empty throttle.
typedef struct nb_throttle {
    nb_atomic_u64 keys[NB_THROTTLE_COUNT]; // 0 = free
    nb_atomic_u64 counts[NB_THROTTLE_COUNT];
} nb_throttle;

NB_EXTERN_C_BEGIN

// A copy of hooks with every zero field replaced by its default; NULL gives all defaults. Half an allocator, alloc
// without free or the other way round, counts as none.
// Thread: any. Owner: the caller gets a value. Fails: never.
NB_API nb_hooks nb_hooks_resolve(const nb_hooks *hooks);

// Memory of at least size_bytes at a multiple of alignment, a power of two; 0 bytes count as 1. What it holds is
// undefined. A refusal is reported in the name of `function` (NULL: of this one), as item base_memory.
// Thread: as the allocator of hooks. Owner: the caller, until nb_hooks_free. Fails: NULL (no memory, or an alignment
// that is no power of two: a mistake, as item base_argument).
NB_API void *nb_hooks_alloc(const nb_hooks *hooks, size_t size_bytes, size_t alignment, const char *function);

// Gives memory of nb_hooks_alloc back: the same hooks, the same size. NULL is nothing to give back.
// Thread: as the allocator of hooks. Owner: the memory is gone. Fails: never.
NB_API void nb_hooks_free(const nb_hooks *hooks, void *memory, size_t size_bytes);

// Sends one record to the logger if its level is high enough; below that nothing is formatted. A level that no record
// has (NB_LOG_DEFAULT, NB_LOG_OFF, not of the enum) counts as NB_LOG_ERROR, so that nothing gets lost. A function or
// format that is NULL counts as "?".
// Thread: as the logger of hooks. Owner: the text is the caller's; the record lasts for the call. Fails: never.
NB_API void nb_report(const nb_hooks *hooks, nb_log_level level, nb_log_item item, const char *function,
                      const char *format, ...) NB_PRINTF(5, 6);

// Reports what is nobody's mistake, such as a file that cannot be read: an error record, and no assertion. It gives
// `result` back: return nb_report_failure(&object->hooks, item, NB_ERR_OS, __func__, "%s cannot be read", path);
// Thread: as the logger of hooks. Owner: as nb_report. Fails: never; it returns what it is given.
NB_API nb_result nb_report_failure(const nb_hooks *hooks, nb_log_item item, nb_result result, const char *function,
                                   const char *format, ...) NB_PRINTF(5, 6);

// Reports a caller's mistake: an error record, then the assertion hook where the library is built with assertions, even
// with the log turned off. It gives `result` back. Most say it by NB_FAIL; a helper names the public function it is of.
// Thread: as the logger of hooks. Owner: as nb_report. Fails: never; it returns what it is given.
NB_API nb_result nb_report_mistake(const nb_hooks *hooks, nb_log_item item, nb_result result, const char *function,
                                   const char *format, ...) NB_PRINTF(5, 6);

// Reports what a careless caller repeats in each frame: a mistake, or else a failure, as above. Each function, item,
// format and object has a count of its own: the log gets the 1st, 10th, 100th, 1000th ... report, with the number of
// those in between. The assertion hook hears of every mistake. `object` is any number that tells the objects of the
// caller apart, such as a handle or the hash of a name. Without a throttle (NULL) every report is logged.
// Thread: as the logger of hooks; any number may share a throttle. Owner: as nb_report. Fails: never; it returns what
// it is given.
NB_API nb_result nb_report_throttled(const nb_hooks *hooks, nb_throttle *throttle, uint64_t object, bool is_mistake,
                                     nb_log_item item, nb_result result, const char *function, const char *format, ...)
    NB_PRINTF(8, 9);

// A number for %llu or %llx in a format: uint64_t is unsigned long on some systems, unsigned long long on others.
// Thread: any. Owner: the caller gets a value. Fails: never.
NB_INLINE unsigned long long nb_llu(uint64_t value) { return value; }

NB_EXTERN_C_END

// A caller's mistake, in the name of the function it stands in, as in the sketch above.
#define NB_FAIL(hooks, item, result, ...) nb_report_mistake((hooks), (item), (result), __func__, __VA_ARGS__)

// The commonest mistake in one line: NULL where an object is needed. There is no object to take hooks from, so it goes
// to the default logger.
#define NB_FAIL_NULL(what) nb_report_mistake(NULL, NB_ITEM_BASE_NULL, NB_ERR_MISUSE, __func__, "%s is NULL", (what))
