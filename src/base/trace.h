// SPDX-License-Identifier: MIT
#pragma once

// Private: the trace as its parts see it. trace.c gives rings to threads and writes, trace_read.c reads while they
// write, trace_json.c turns what was read into a file.

#include "nebula/trace.h"

#include "lock.h"

// One moment on both clocks.
typedef struct nbi_clock_pair {
    uint64_t ticks;
    uint64_t ns;
} nbi_clock_pair;

// What is only needed to attach, detach and read; protected by nb_trace.lock.
typedef struct nbi_trace_ring {
    uint64_t first;          // head when the owner attached: older records are another thread's
    uint64_t detached_order; // the smaller, the longer ago
    uint32_t number;         // of the owner, see nb_trace_event; 0 = never attached
    nb_label name;
    bool is_attached;
} nbi_trace_ring;

struct nb_trace {
    nb_hooks hooks;
    size_t memory_bytes;
    nb_trace_desc desc; // resolved; its clock is the one in use
    bool is_labels_owner;
    nbi_clock_pair start; // with NB_TRACE_CLOCK_TSC: the first point of the calibration
    nb_trace_thread *threads;
    nb_atomic_u64 *owners; // by ring: the id of the thread attached, or 0
    uint64_t *copy;        // as large as one ring; belongs to the thread that set is_reading
    nbi_trace_ring *rings;
    nbi_lock lock; // protects rings and the three numbers below, and keeps a ring's owner while it is copied
    nb_atomic_u32 attached_count; // now; statistics read it without the lock
    uint32_t attach_number;       // of the newest owner
    uint64_t detached_order;      // of the newest detach
    nb_atomic_u32 is_reading;
    nb_atomic_u64 dropped_count;
    nb_atomic_u64 refused_count;
};

// Both clocks, read as close together as possible.
nbi_clock_pair nbi_clock_pair_now(void);

// The calling thread's ring, or NULL; counts nothing.
nb_trace_thread *nbi_trace_find(nb_trace *trace);

// The same; a thread without one is attached, and *own becomes its ring.
nb_trace_thread *nbi_trace_join(nb_trace *trace, const char *thread_name, nb_trace_thread **own);

// Ends a thread's use of a ring, on any thread, while that one does not record. Nothing happens where it has done so.
void nbi_trace_leave(nb_trace_thread *thread, uint64_t thread_id);

// Nanoseconds of the desc's clock, or of the system's.
uint64_t nbi_trace_now_ns(const nb_trace *trace);

// Fills kind, label, name, value and frame of an event from a record.
void nbi_trace_event_fill(nb_trace_event *event, uint64_t word, uint64_t value, const nb_labels *labels);

static inline bool nbi_trace_is_counter(nb_trace_kind kind) {
    return kind == NB_TRACE_KIND_COUNTER_I64 || kind == NB_TRACE_KIND_COUNTER_F64;
}
