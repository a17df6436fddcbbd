// SPDX-License-Identifier: MIT
#pragma once

// What every file of the library uses: hooks, memory and reports (nebula/report.h), and arithmetic that cannot wrap.

#include "nebula/hooks.h"
#include "nebula/label.h"
#include "nebula/report.h"
#include "nebula/types.h"

// Assertion hooks fire in Debug and RelWithDebInfo; release builds return the error result alone.
#if !defined(NB_ASSERTIONS)
#if defined(NDEBUG)
#define NB_ASSERTIONS 0
#else
#define NB_ASSERTIONS 1
#endif
#endif

// nebula/report.h by the names that the library itself uses.
#define nbi_hooks_resolve nb_hooks_resolve
#define nbi_alloc nb_hooks_alloc
#define nbi_free nb_hooks_free
#define nbi_log nb_report
#define nbi_fail nb_report_mistake
#define NBI_FAIL NB_FAIL
#define NBI_FAIL_NULL NB_FAIL_NULL

// A mistake at which the host asked to stop: calls the assertion hook in every build, after the log record where
// is_logged. Where the host has set no hook, the process traps. The hooks are resolved.
void nbi_trap(const nb_hooks *hooks, bool is_logged, nb_log_item item, const char *function, const char *format, ...)
    NB_PRINTF(5, 6);

// The name of a label for the log, or its number where there is no table; `number` holds the text of the latter.
#define NBI_LABEL_NUMBER_SIZE 24
const char *nbi_label_text(const nb_labels *labels, nb_label label, char number[NBI_LABEL_NUMBER_SIZE]);

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
