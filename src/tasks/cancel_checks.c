// SPDX-License-Identifier: MIT
// How long tasks with a token go without asking whether they should stop, by label. Time is read where a task asks, and
// at the start and end of one task in SAMPLE_TASKS, so that one that never asks is found too.

#include "scheduler.h"

// Two looks at the clock cost about 50 ns, as much as a small task; an eighth of that is not felt.
#define SAMPLE_TASKS 8u

// The row of a label; one that is new gets the next free row. All that find no room share the last.
static nbi_check *row_of(nb_scheduler *scheduler, uint32_t label) {
    for (uint32_t i = 0; i < NB_CHECK_LABEL_COUNT_MAX; ++i) {
        nbi_check *row = &scheduler->checks[i];
        uint64_t seen = 0, wanted = (uint64_t)label + 1;
        if (nbi_atomic_load_relaxed_u64(&row->key) == wanted) return row;
        if (nbi_atomic_compare_exchange_relaxed_u64(&row->key, &seen, wanted) || seen == wanted) return row;
    }
    return &scheduler->checks[NB_CHECK_LABEL_COUNT_MAX - 1];
}

static void raise_to(nb_atomic_u64 *value, uint64_t least) {
    uint64_t seen = nbi_atomic_load_relaxed_u64(value);
    while (seen < least && !nbi_atomic_compare_exchange_relaxed_u64(value, &seen, least)) {
    }
}

static void note_interval(nb_scheduler *scheduler, nb_label label, uint64_t interval_ns) {
    nbi_check *row = row_of(scheduler, label.id);
    uint64_t limit_ns = scheduler->desc.check_interval_max_ns;
    nbi_atomic_fetch_add_relaxed_u64(&row->interval_count, 1);
    raise_to(&row->interval_max_ns, interval_ns);
    if (limit_ns == 0 || interval_ns <= limit_ns) return;
    if (nbi_atomic_fetch_add_relaxed_u64(&row->late_count, 1) != 0) return;
    char number[NBI_LABEL_NUMBER_SIZE];
    nbi_log(
        &scheduler->desc.hooks, NB_LOG_WARNING, NB_ITEM_TASK_CHECK, "nb_task_should_stop",
        "task \"%s\" went %llu us without a cancellation check, the limit is %llu us; call nb_task_should_stop more "
        "often; further tasks of this label are only counted",
        nbi_label_text(scheduler->desc.labels, label, number), (unsigned long long)(interval_ns / 1000),
        (unsigned long long)(limit_ns / 1000));
}

void nbi_check_begin(nbi_lane *lane, nbi_running *running) {
    bool is_sampled = lane->check_count++ % SAMPLE_TASKS == 0;
    running->check_ns = is_sampled ? nbi_clock_now_ns() : 0;
    running->is_sampled = is_sampled;
}

void nbi_check_note(nbi_lane *lane) {
    nbi_running *running = lane->running;
    uint64_t now_ns = nbi_clock_now_ns(), since_ns = running->check_ns;
    running->check_ns = now_ns;
    if (since_ns != 0) note_interval(lane->scheduler, running->context.label, now_ns - since_ns);
}

void nbi_check_end(nbi_lane *lane, const nbi_running *running) {
    if (!running->is_sampled) return;
    note_interval(lane->scheduler, running->context.label, nbi_clock_now_ns() - running->check_ns);
}

// --- numbers ---

static nb_check_stats stats_of(const nbi_check *row) {
    return (nb_check_stats){.label = {(uint32_t)(nbi_atomic_load_relaxed_u64(&row->key) - 1)},
                            .interval_count = nbi_atomic_load_relaxed_u64(&row->interval_count),
                            .interval_max_ns = nbi_atomic_load_relaxed_u64(&row->interval_max_ns),
                            .late_count = nbi_atomic_load_relaxed_u64(&row->late_count)};
}

uint32_t nb_scheduler_check_stats_get(const nb_scheduler *scheduler, nb_check_stats *stats, uint32_t count_max) {
    if (scheduler == NULL) return NBI_FAIL_NULL("scheduler") == NB_OK;
    uint32_t count = 0;
    while (count < NB_CHECK_LABEL_COUNT_MAX && nbi_atomic_load_relaxed_u64(&scheduler->checks[count].key) != 0) ++count;
    for (uint32_t i = 0; stats != NULL && i < count && i < count_max; ++i) stats[i] = stats_of(&scheduler->checks[i]);
    return count;
}
