// SPDX-License-Identifier: MIT
// Hosts: the engines of a scheduler, as far as their tasks are concerned. An engine that ends stops the tasks of its
// own owner and of its modules' owners and waits for them, also where other engines use the scheduler; with one of its
// own it does so with all.

#include "host.h"

#include "scheduler.h"

// Between two looks whether the tasks have ended: most have no handle, and their end wakes nobody.
#define LOOK_NS 200000u

// Number of the host of an owner's tasks; 0 = none.
static uint32_t host_of(const nb_scheduler *scheduler, uint32_t owner) {
    return nbi_atomic_load_relaxed_u32(&scheduler->owners[owner].host);
}

// --- stopping ---

bool nbi_host_is_stopping(const nb_scheduler *scheduler, uint32_t owner) {
    uint32_t stop = nbi_atomic_load_relaxed_u32(&scheduler->is_stopping);
    if ((stop & (NBI_STOP_SUBMITS | NBI_STOP_ALL)) != 0) return true;
    return stop != 0 && nbi_atomic_load_relaxed_u32(&scheduler->owners[host_of(scheduler, owner)].is_stopping) != 0;
}

void nbi_host_stop(nb_scheduler *scheduler, const nbi_owner *host) {
    if (host == NULL) {
        nbi_atomic_fetch_or_seq_cst_u32(&scheduler->is_stopping, NBI_STOP_ALL);
        return;
    }
    nbi_atomic_exchange_seq_cst_u32(&scheduler->owners[host->number].is_stopping, 1);
    // After the mark: a thread that sees the count and not yet the mark runs one more task.
    nbi_atomic_fetch_add_seq_cst_u32(&scheduler->is_stopping, NBI_STOP_HOST);
}

void nbi_host_resume(nb_scheduler *scheduler, const nbi_owner *host) {
    if (host == NULL) {
        nbi_atomic_fetch_and_seq_cst_u32(&scheduler->is_stopping, ~NBI_STOP_ALL);
        return;
    }
    nbi_atomic_fetch_sub_seq_cst_u32(&scheduler->is_stopping, NBI_STOP_HOST);
    nbi_atomic_exchange_seq_cst_u32(&scheduler->owners[host->number].is_stopping, 0);
}

// --- waiting ---

static void note_label(nbi_host_rest *rest, nb_label label) {
    for (uint32_t i = 0; i < rest->label_count; ++i) {
        if (rest->labels[i].id != label.id) continue;
        ++rest->task_counts[i];
        return;
    }
    if (rest->label_count == NBI_HOST_LABEL_MAX) return;
    rest->labels[rest->label_count] = label;
    rest->task_counts[rest->label_count++] = 1;
}

// Ends what has not started, and lists what runs.
static void look(nb_scheduler *scheduler, const nbi_owner *host, nbi_host_rest *rest) {
    *rest = (nbi_host_rest){.running_count = 0};
    uint32_t count = nbi_slot_used_count(scheduler);
    for (uint32_t i = 0; i < count; ++i) {
        const nbi_slot *slot = nbi_slot_at(scheduler, i);
        // Pairs with the release in fill_slot: the label is that of this task, or the claim fails.
        uint64_t state = nbi_atomic_load_acquire_u64(&slot->state.word);
        uint32_t word = nbi_atomic_load_relaxed_u32(&slot->label);
        nbi_phase phase = nbi_state_phase(state);
        bool is_its = host == NULL || host_of(scheduler, nbi_label_owner(word)) == host->number;
        if (phase == NBI_PHASE_FREE || !is_its) continue;
        nbi_task_cancel_one(scheduler, nbi_hint_of(nbi_state_generation(state), i), phase);
        if (phase != NBI_PHASE_RUNNING) continue;
        ++rest->running_count;
        if (nbi_atomic_load_relaxed_ptr(&slot->frame_tally) != NULL) continue;
        note_label(rest, (nb_label){word & NBI_LABEL_MASK});
    }
}

bool nbi_host_await(nb_scheduler *scheduler, const nbi_owner *host, uint64_t deadline_ns, nbi_host_rest *rest) {
    const nb_atomic_u32 nobody = {0};
    for (;;) {
        look(scheduler, host, rest);
        if (rest->running_count == 0) return true;
        uint64_t now_ns = nbi_clock_now_ns();
        if (now_ns >= deadline_ns) return false;
        nbi_park_until(&nobody, 0, nbi_min_u64(deadline_ns, now_ns + LOOK_NS));
    }
}
