// SPDX-License-Identifier: MIT
#pragma once

// Private: reports that a careless caller repeats each frame. A report is logged the first time for each place and
// object, and then the 10th, 100th, 1000th time, with the number of those that were not logged. The assertion hook
// hears of every mistake. One throttle belongs to one object with a log, such as a world; zeros are an empty one.
// Modules use the same through nebula/report.h.

#include "base.h"

// As the library itself calls it.
typedef nb_throttle nbi_throttle;

// Counts one report of `item` by `function` about an object; `object` is any number that tells it from others. Returns
// the count if this report should be logged, else 0.
uint64_t nbi_throttle_note(nbi_throttle *throttle, const char *function, nb_log_item item, uint64_t object);

// nbi_fail and nbi_log through a throttle.
#define nbi_fail_throttled(hooks, throttle, object, item, result, ...) \
    nb_report_throttled((hooks), (throttle), (object), true, (item), (result), __VA_ARGS__)
void nbi_log_throttled(const nb_hooks *hooks, nbi_throttle *throttle, uint64_t object, nb_log_level level,
                       nb_log_item item, const char *function, const char *format, ...) NB_PRINTF(7, 8);
