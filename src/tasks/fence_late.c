// SPDX-License-Identifier: MIT
// Naming late work: the tickets of a frame that are still out when its wait times out go into the report and the log,
// with label, age and thread.

#include "fence_state.h"

#include <stdio.h>

// Most of one log message; base.c cuts at 320.
#define MESSAGE_SIZE 256

static size_t append_straggler(const nb_fence *fence, const nb_fence_straggler *late, char *text, size_t size_bytes) {
    char number[NBI_LABEL_NUMBER_SIZE];
    const char *name = nbi_label_text(fence->desc.labels, late->label, number);
    int length = late->thread_id != 0
                     ? snprintf(text, size_bytes, "%s (%llu ms, thread 0x%llx)", name,
                                (unsigned long long)(late->age_ns / 1000000), (unsigned long long)late->thread_id)
                     : snprintf(text, size_bytes, "%s (not started)", name);
    return length > 0 ? nbi_min_u64((uint64_t)length, size_bytes - 1) : 0;
}

static void log_timeout(const nb_fence *fence, const nb_fence_report *report) {
    char text[MESSAGE_SIZE] = "";
    size_t used = 0;
    for (uint32_t i = 0; i < report->straggler_count && used + 3 < sizeof text; ++i) {
        used += (size_t)snprintf(text + used, sizeof text - used, "%s", i == 0 ? ": " : ", ");
        used += append_straggler(fence, &report->stragglers[i], text + used, sizeof text - used);
    }
    nbi_log(&fence->hooks, NB_LOG_WARNING, NB_ITEM_FENCE_TIMEOUT, "nb_fence_wait",
            "frame %llu: %u pieces of work still pending after %llu ms%s",
            (unsigned long long)nbi_fence_number(report->frame), (unsigned)report->pending_count,
            (unsigned long long)(report->waited_ns / 1000000), text);
}

static void list_stragglers(const nb_fence *fence, const nb_fence_help *help, uint64_t start_ns,
                            nb_fence_report *report) {
    uint64_t now_ns = start_ns + report->waited_ns;
    uint32_t count_max = NB_FENCE_STRAGGLER_COUNT_MAX;
    uint32_t count = nbi_fence_records_list(fence, report->frame, now_ns, report->stragglers, count_max);
    if (count < count_max && help != NULL && help->list != NULL) {
        uint32_t more = help->list(help->user, report->frame, report->stragglers + count, count_max - count);
        uint32_t end = count + (uint32_t)nbi_min_u64(more, count_max - count);
        // A host that keeps no times leaves the age at 0: its work is at least as old as this wait.
        for (; count < end; ++count) {
            if (report->stragglers[count].age_ns == 0) report->stragglers[count].age_ns = report->waited_ns;
        }
    }
    report->straggler_count = count;
}

void nbi_fence_report_late(nb_fence *fence, const nb_fence_help *help, uint64_t start_ns, nb_fence_report *report) {
    if (nbi_fence_raise(&nbi_fence_slot_of(fence, report->frame)->degraded, report->frame.value)) {
        nbi_atomic_fetch_add_relaxed_u64(&fence->degraded_count, 1);
    }
    list_stragglers(fence, help, start_ns, report);
    log_timeout(fence, report);
    if (!nbi_fence_is_coordinator(fence)) return;
    nbi_fence_note_late(fence, report->frame, report->stragglers, report->straggler_count);
}
