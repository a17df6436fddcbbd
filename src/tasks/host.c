// SPDX-License-Identifier: MIT
// Hosts: the engines of a scheduler, as far as their tasks are concerned. A task is of the host whose call submitted
// it, or of the host of the task that did. So an engine that ends stops its own tasks and waits for them, also where
// other engines use the scheduler; with one of its own it does so with all.

#include "host.h"

#include "scheduler.h"

// Between two looks whether the tasks have ended: most have no handle, and their end wakes nobody.
#define LOOK_NS 200000u

NB_STATIC_ASSERT(NBI_HOST_ALL > NBI_HOST_MAX, "all is none of them");

static uint64_t bit_of(uint32_t host) { return (uint64_t)1 << host % 64; }

static uint32_t host_of_kind(uint32_t kind) { return (kind & NBI_KIND_HOST_MASK) >> NBI_KIND_HOST_SHIFT; }

// --- who ---

uint32_t nbi_host_open(nb_scheduler *scheduler) {
    for (uint32_t host = 1; host <= NBI_HOST_MAX; ++host) {
        nb_atomic_u64 *taken = &scheduler->hosts[host / 64];
        if ((nbi_atomic_fetch_or_seq_cst_u64(taken, bit_of(host)) & bit_of(host)) == 0) return host;
    }
    return 0;
}

void nbi_host_close(nb_scheduler *scheduler, uint32_t host) {
    if (host != 0) nbi_atomic_fetch_and_seq_cst_u64(&scheduler->hosts[host / 64], ~bit_of(host));
}

uint32_t nbi_host_enter(nb_scheduler *scheduler, uint32_t host) {
    nbi_lane *lane = nbi_lane_own(scheduler);
    if (lane == NULL) return 0;
    uint32_t former = host_of_kind(lane->host_kind);
    lane->host_kind = host << NBI_KIND_HOST_SHIFT;
    return former;
}

// --- stopping ---

bool nbi_host_is_stopping(const nb_scheduler *scheduler, uint32_t kind) {
    uint32_t stop = nbi_atomic_load_relaxed_u32(&scheduler->is_stopping);
    if ((stop & NBI_STOP_SUBMITS) != 0) return true;
    uint32_t host = host_of_kind(kind);
    return stop != 0 && (nbi_atomic_load_relaxed_u64(&scheduler->host_stops[host / 64]) & bit_of(host)) != 0;
}

static void set_stops(nb_scheduler *scheduler, uint32_t host, bool is_on) {
    for (uint32_t i = 0; i < NBI_HOST_WORDS; ++i) {
        uint64_t bits = host == NBI_HOST_ALL ? UINT64_MAX : host / 64 == i ? bit_of(host) : 0;
        if (is_on)
            nbi_atomic_fetch_or_seq_cst_u64(&scheduler->host_stops[i], bits);
        else
            nbi_atomic_fetch_and_seq_cst_u64(&scheduler->host_stops[i], ~bits);
    }
}

void nbi_host_stop(nb_scheduler *scheduler, uint32_t host) {
    if (host == 0) return;
    set_stops(scheduler, host, true);
    // After the bits: a thread that sees the count and not yet the bits runs one more task.
    nbi_atomic_fetch_add_seq_cst_u32(&scheduler->is_stopping, NBI_STOP_HOST);
}

void nbi_host_resume(nb_scheduler *scheduler, uint32_t host) {
    if (host == 0) return;
    nbi_atomic_fetch_sub_seq_cst_u32(&scheduler->is_stopping, NBI_STOP_HOST);
    set_stops(scheduler, host, false);
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
static void look(nb_scheduler *scheduler, uint32_t host, nbi_host_rest *rest) {
    *rest = (nbi_host_rest){.running_count = 0};
    uint32_t count = nbi_slot_used_count(scheduler);
    for (uint32_t i = 0; i < count; ++i) {
        const nbi_slot *slot = nbi_slot_at(scheduler, i);
        // Pairs with the release in fill_slot: the kind is that of this task, or the claim fails.
        uint64_t state = nbi_atomic_load_acquire_u64(&slot->state.word);
        uint32_t kind = nbi_atomic_load_relaxed_u32(&slot->kind);
        nbi_phase phase = nbi_state_phase(state);
        if (phase == NBI_PHASE_FREE || (host != NBI_HOST_ALL && host_of_kind(kind) != host)) continue;
        nbi_task_cancel_one(scheduler, nbi_hint_of(nbi_state_generation(state), i), phase);
        if (phase != NBI_PHASE_RUNNING) continue;
        ++rest->running_count;
        if (nbi_atomic_load_relaxed_ptr(&slot->frame_tally) != NULL) continue;
        note_label(rest, (nb_label){nbi_atomic_load_relaxed_u32(&slot->label)});
    }
}

bool nbi_host_await(nb_scheduler *scheduler, uint32_t host, uint64_t deadline_ns, nbi_host_rest *rest) {
    *rest = (nbi_host_rest){.running_count = 0};
    if (host == 0) return true;
    const nb_atomic_u32 nobody = {0};
    for (;;) {
        look(scheduler, host, rest);
        if (rest->running_count == 0) return true;
        uint64_t now_ns = nbi_clock_now_ns();
        if (now_ns >= deadline_ns) return false;
        nbi_park_until(&nobody, 0, nbi_min_u64(deadline_ns, now_ns + LOOK_NS));
    }
}
