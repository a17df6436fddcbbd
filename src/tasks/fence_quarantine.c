// SPDX-License-Identifier: MIT
// Quarantine: a label whose work is late in several frames in a row no longer counts, so that one piece of bad work
// costs some hitches and not the frame rate. Only for fences that ask for it.
//
// Only the coordinator's waits count, and each label once a frame. A table of labels that were late, under a lock, is
// looked at when a wait timed out or when one completes while the table is not empty. Takers read `quarantined` alone.

#include "fence_state.h"

static nbi_fence_strike *find_strike(nb_fence *fence, nb_label label) {
    nbi_fence_strike *unused = NULL;
    for (uint32_t i = 0; i < NBI_FENCE_STRIKE_MAX; ++i) {
        nbi_fence_strike *strike = &fence->strikes[i];
        if (strike->label.id == label.id) return strike;
        if (strike->label.id == 0 && unused == NULL) unused = strike;
    }
    return unused;
}

static bool is_in_quarantine(const nbi_fence_strike *strike) {
    return nbi_atomic_load_relaxed_u32(&strike->quarantined) != 0;
}

static void forget(nb_fence *fence, nbi_fence_strike *strike) {
    if (strike->label.id == 0 || is_in_quarantine(strike)) return;
    strike->label.id = 0;
    nbi_atomic_fetch_sub_relaxed_u32(&fence->struck_count, 1);
}

static bool is_listed(nb_label label, const nb_fence_straggler *stragglers, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
        if (stragglers[i].label.id == label.id) return true;
    }
    return false;
}

// True: the label has just come into quarantine.
static bool strike_label(nb_fence *fence, nb_label label, uint64_t number) {
    nbi_fence_strike *strike = find_strike(fence, label);
    if (strike == NULL || is_in_quarantine(strike)) return false;
    if (strike->label.id == 0) {
        strike->label = label;
        strike->count = 0;
        strike->number = 0;
        nbi_atomic_fetch_add_relaxed_u32(&fence->struck_count, 1);
    }
    if (strike->number == number) return false; // once a frame
    strike->number = number;
    if (++strike->count < fence->desc.strike_count_max) return false;
    nbi_atomic_store_relaxed_u32(&strike->quarantined, label.id);
    nbi_atomic_fetch_add_relaxed_u32(&fence->quarantine_count, 1);
    return true;
}

// Labels of the list that have come into quarantine. The lock is held.
static uint32_t strike_all(nb_fence *fence, uint64_t number, const nb_fence_straggler *stragglers, uint32_t count,
                           nb_label *caught) {
    uint32_t caught_count = 0;
    if (number <= fence->forgiven_number) return 0;
    // A list that is full may have left somebody out: nobody's strikes are forgotten then.
    for (uint32_t i = 0; i < NBI_FENCE_STRIKE_MAX && count < NB_FENCE_STRAGGLER_COUNT_MAX; ++i) {
        nbi_fence_strike *strike = &fence->strikes[i];
        if (!is_listed(strike->label, stragglers, count)) forget(fence, strike);
    }
    for (uint32_t i = 0; i < count; ++i) {
        // Work without a label cannot be told apart, so it is never struck.
        if (stragglers[i].label.id == 0) continue;
        if (strike_label(fence, stragglers[i].label, number)) caught[caught_count++] = stragglers[i].label;
    }
    return caught_count;
}

void nbi_fence_note_late(nb_fence *fence, nb_fence_frame frame, const nb_fence_straggler *stragglers, uint32_t count) {
    if (fence->desc.strike_count_max == 0) return;
    nb_label caught[NB_FENCE_STRAGGLER_COUNT_MAX];
    nbi_lock_acquire(&fence->strike_lock);
    uint32_t caught_count = strike_all(fence, nbi_fence_number(frame), stragglers, count, caught);
    nbi_lock_release(&fence->strike_lock);
    for (uint32_t i = 0; i < caught_count; ++i) {
        char number[NBI_LABEL_NUMBER_SIZE];
        nbi_log(&fence->hooks, NB_LOG_WARNING, NB_ITEM_FENCE_QUARANTINED, "nb_fence_wait",
                "work \"%s\" was late in %u frames in a row: frames no longer wait for it",
                nbi_label_text(fence->desc.labels, caught[i], number), (unsigned)fence->desc.strike_count_max);
    }
}

void nbi_fence_note_complete(nb_fence *fence, nb_fence_frame frame) {
    nbi_lock_acquire(&fence->strike_lock);
    for (uint32_t i = 0; i < NBI_FENCE_STRIKE_MAX; ++i) {
        // A second wait for the frame that the label was late in proves nothing.
        if (fence->strikes[i].number < nbi_fence_number(frame)) forget(fence, &fence->strikes[i]);
    }
    nbi_lock_release(&fence->strike_lock);
}

bool nb_fence_is_quarantined(const nb_fence *fence, nb_label label) {
    if (fence == NULL) return NBI_FAIL_NULL("fence") == NB_OK;
    if (label.id == 0 || nbi_atomic_load_relaxed_u32(&fence->quarantine_count) == 0) return false;
    for (uint32_t i = 0; i < NBI_FENCE_STRIKE_MAX; ++i) {
        if (nbi_atomic_load_relaxed_u32(&fence->strikes[i].quarantined) == label.id) return true;
    }
    return false;
}

nb_result nb_fence_forgive(nb_fence *fence, bool ends_quarantine) {
    if (fence == NULL) return NBI_FAIL_NULL("fence");
    bool has_coordinator = nbi_atomic_load_relaxed_u64(&fence->owner) != 0;
    if (has_coordinator && !nbi_fence_is_coordinator(fence)) {
        return NBI_FAIL(&fence->hooks, NB_ITEM_FENCE_THREAD, NB_ERR_THREAD, "this thread is not the coordinator");
    }
    nbi_lock_acquire(&fence->strike_lock);
    fence->forgiven_number = nbi_atomic_load_relaxed_u64(&fence->number);
    for (uint32_t i = 0; i < NBI_FENCE_STRIKE_MAX; ++i) {
        nbi_fence_strike *strike = &fence->strikes[i];
        if (ends_quarantine && is_in_quarantine(strike)) {
            nbi_atomic_store_relaxed_u32(&strike->quarantined, 0);
            nbi_atomic_fetch_sub_relaxed_u32(&fence->quarantine_count, 1);
        }
        forget(fence, strike);
    }
    nbi_lock_release(&fence->strike_lock);
    return NB_OK;
}
