// SPDX-License-Identifier: MIT
// Spans of tasks in the traces of engines. An engine adds its trace to the scheduler it uses, its own or a borrowed
// one; several engines may share a scheduler, each with a trace.
//
// Who writes into a trace, and until when: a thread raises its lane's is_tracing, looks which traces there are,
// records, and lowers it again. Whoever takes a trace away clears its entry, then waits until no lane's is_tracing is
// up: a lane that raises it later finds the entry empty. After that no thread writes into the trace, and the rings that
// threads got here are given back in their names. A thread that leaves its lane before gives back its own.

#include "scheduler.h"

#include <stdio.h>

#include "../base/trace.h"

// --- recording ---

static void enter(nbi_lane *lane) {
    // seq_cst: one order with the entry that nbi_scheduler_trace_remove clears; one of the two sees the other.
    nbi_atomic_exchange_seq_cst_u32(&lane->is_tracing, 1);
}

static void leave(nbi_lane *lane) {
    // Read by the load in await_lane: what was recorded, and the lane's rings, come before.
    nbi_atomic_store_release_u32(&lane->is_tracing, 0);
}

static nb_trace *trace_at(nb_scheduler *scheduler, uint32_t index) {
    return nbi_atomic_load_seq_cst_ptr(&scheduler->traced[index].trace);
}

// The ring of the calling thread, which gets one with its first task. A thread that is not attached to the scheduler
// gets none: it would take one for each wait. The thread that has made the scheduler gets its ring from its engine.
static nb_trace_thread *ring_of(nbi_lane *lane, uint32_t index, nb_trace *trace) {
    nb_trace_thread *own = nbi_trace_find(trace);
    bool is_guest = lane->is_borrowed || lane->index == 0;
    if (own != NULL || is_guest || (lane->refused_rings & 1u << index) != 0) return own;
    char name[24];
    if (lane->is_worker)
        snprintf(name, sizeof name, "worker %u", (unsigned)(lane->index - 1));
    else
        snprintf(name, sizeof name, "thread %u", (unsigned)lane->index);
    if (nb_trace_attach(trace, name, &lane->rings[index]) == NB_OK) return lane->rings[index];
    lane->refused_rings |= 1u << index; // counted by the trace
    return NULL;
}

// What the task is called in a trace. Labels are numbers: where traces of several tables share the scheduler, nobody
// knows which table that of a floating task is from.
static nb_label name_in(const nb_scheduler *scheduler, const nbi_traced *traced, const nb_task_context *context) {
    bool is_known = context->fence != NULL || scheduler->desc.labels != NULL ||
                    nbi_atomic_load_relaxed_u32(&scheduler->traced_count) == 1;
    return context->label.id != 0 && is_known ? context->label : traced->task_label;
}

uint32_t nbi_span_begin_slow(nbi_lane *lane, const nb_task_context *context, bool is_recorded) {
    nb_scheduler *scheduler = lane->scheduler;
    uint32_t begun = 0;
    enter(lane);
    for (uint32_t i = 0; i < NBI_TRACED_COUNT_MAX; ++i) {
        nb_trace *trace = trace_at(scheduler, i);
        if (trace == NULL) continue;
        const nbi_traced *traced = &scheduler->traced[i];
        // A task of a frame is of one engine; whose a floating one is, is not known.
        if (context->fence != NULL && context->fence != traced->fence) continue;
        nb_trace_thread *ring = ring_of(lane, i, trace);
        if (ring == NULL || !is_recorded) continue;
        nb_trace_begin(ring, name_in(scheduler, traced, context));
        begun |= 1u << i;
    }
    leave(lane);
    return begun;
}

void nbi_span_end_slow(nbi_lane *lane, uint32_t begun) {
    enter(lane);
    for (uint32_t i = 0; i < NBI_TRACED_COUNT_MAX; ++i) {
        nb_trace *trace = (begun & 1u << i) != 0 ? trace_at(lane->scheduler, i) : NULL;
        // Where another trace has taken the entry meanwhile, its reader drops an end too many.
        if (trace != NULL) nb_trace_end(nbi_trace_find(trace));
    }
    leave(lane);
}

static void give_back(nbi_lane *lane, uint32_t index) {
    uint64_t thread_id = nbi_atomic_load_relaxed_u64(&lane->thread_id);
    if (lane->rings[index] != NULL) nbi_trace_leave(lane->rings[index], thread_id);
    lane->rings[index] = NULL;
    lane->refused_rings &= ~(1u << index);
}

void nbi_span_forget(nbi_lane *lane) {
    if (nbi_atomic_load_relaxed_u32(&lane->scheduler->traced_count) == 0) return;
    enter(lane);
    // The rings of an entry that is empty are being given back by whoever has cleared it.
    for (uint32_t i = 0; i < NBI_TRACED_COUNT_MAX; ++i) {
        if (trace_at(lane->scheduler, i) != NULL) give_back(lane, i);
    }
    leave(lane);
}

// --- traces come and go ---

nb_result nbi_scheduler_trace_add(nb_scheduler *scheduler, nb_trace *trace, const nb_fence *fence) {
    nb_result result = NB_FULL;
    nbi_lock_acquire(&scheduler->traced_lock);
    for (uint32_t i = 0; i < NBI_TRACED_COUNT_MAX && result != NB_OK; ++i) {
        nbi_traced *traced = &scheduler->traced[i];
        if (traced->is_used) continue;
        traced->is_used = true;
        traced->fence = fence;
        traced->task_label = (nb_label){0};
        (void)nb_labels_intern(nb_trace_labels(trace), "task", &traced->task_label);
        nbi_atomic_fetch_add_relaxed_u32(&scheduler->traced_count, 1);
        // Publishes the entry; read by the load in trace_at.
        nbi_atomic_exchange_seq_cst_ptr(&traced->trace, trace);
        result = NB_OK;
    }
    nbi_lock_release(&scheduler->traced_lock);
    return result;
}

// Waits until the lane's thread does not record: it does so between two instructions of its own, or in a trace's sink.
static void await_lane(const nbi_lane *lane) {
    while (nbi_atomic_load_seq_cst_u32(&lane->is_tracing) != 0) nbi_thread_yield();
}

void nbi_scheduler_trace_remove(nb_scheduler *scheduler, const nb_trace *trace) {
    // Held while lanes are waited for: they never take it.
    nbi_lock_acquire(&scheduler->traced_lock);
    for (uint32_t i = 0; i < NBI_TRACED_COUNT_MAX; ++i) {
        nbi_traced *traced = &scheduler->traced[i];
        if (!traced->is_used || nbi_atomic_load_relaxed_ptr(&traced->trace) != trace) continue;
        nbi_atomic_exchange_seq_cst_ptr(&traced->trace, NULL);
        uint32_t count = nbi_atomic_load_acquire_u32(&scheduler->lane_count);
        for (uint32_t j = 0; j < count; ++j) {
            await_lane(scheduler->lanes[j]);
            give_back(scheduler->lanes[j], i);
        }
        traced->is_used = false;
        nbi_atomic_fetch_sub_relaxed_u32(&scheduler->traced_count, 1);
        break;
    }
    nbi_lock_release(&scheduler->traced_lock);
}
