// SPDX-License-Identifier: MIT
#pragma once

// What every file of the library uses: hooks with defaults filled in, memory through them, and one way to report a
// mistake.

#include "nebula/hooks.h"
#include "nebula/types.h"

// Assertion hooks fire in Debug and RelWithDebInfo; release builds return the error result alone.
#if !defined(NB_ASSERTIONS)
#if defined(NDEBUG)
#define NB_ASSERTIONS 0
#else
#define NB_ASSERTIONS 1
#endif
#endif

// Copies hooks with every zero field replaced by its default; NULL gives all defaults.
nb_hooks nbi_hooks_resolve(const nb_hooks *hooks);

// Memory through the hooks; a failure is logged as NB_ITEM_BASE_MEMORY with the function's name. hooks: resolved.
void *nbi_alloc(const nb_hooks *hooks, size_t size_bytes, size_t alignment, const char *function);
void nbi_free(const nb_hooks *hooks, void *memory, size_t size_bytes);

// Sends one record to the logger of `hooks` (NULL: the default logger) if its level is high enough.
void nbi_log(const nb_hooks *hooks, nb_log_level level, nb_log_item item, const char *function, const char *format, ...)
    NB_PRINTF(5, 6);

// Reports a caller's mistake: an error record, then the assertion hook where compiled in. Returns `result`, so that a
// public function can say: return NBI_FAIL(&object->hooks, NB_ITEM_ARENA_ARGUMENT, NB_ERR_MISUSE, "alignment %zu ...",
// a);
nb_result nbi_fail(const nb_hooks *hooks, nb_log_item item, nb_result result, const char *function, const char *format,
                   ...) NB_PRINTF(5, 6);
#define NBI_FAIL(hooks, item, result, ...) nbi_fail((hooks), (item), (result), __func__, __VA_ARGS__)

// The commonest mistake, in one line: NULL where an object is needed. There is no object to take hooks from, so it goes
// to the default logger.
#define NBI_FAIL_NULL(what) nbi_fail(NULL, NB_ITEM_BASE_NULL, NB_ERR_MISUSE, __func__, "%s is NULL", (what))

static inline bool nbi_is_power_of_two(size_t value) { return value != 0 && (value & (value - 1)) == 0; }
static inline uint64_t nbi_min_u64(uint64_t a, uint64_t b) { return a < b ? a : b; }
static inline uint64_t nbi_max_u64(uint64_t a, uint64_t b) { return a > b ? a : b; }

// Size arithmetic that cannot wrap: false means overflow and *out is untouched.
static inline bool nbi_size_add(size_t a, size_t b, size_t *out) {
    if (a > SIZE_MAX - b) return false;
    *out = a + b;
    return true;
}
static inline bool nbi_size_mul(size_t a, size_t b, size_t *out) {
    if (b != 0 && a > SIZE_MAX / b) return false;
    *out = a * b;
    return true;
}
