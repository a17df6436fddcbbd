// SPDX-License-Identifier: MIT
#pragma once

// A flight recorder: each thread writes spans, instants, counters and frame marks into a ring of its own, always on, in
// fixed memory, oldest overwritten. The one rule: a nb_trace_thread is used by the thread that attached, and no other.
// A NULL one records nothing, so code need not ask whether it is traced.
//
//     nb_trace *trace = NULL;
//     nb_trace_thread *thread = NULL;
//     nb_label step = {0};
//     if (nb_trace_create(NULL, &trace) != NB_OK) return 1;
//     nb_labels_intern(nb_trace_labels(trace), "step", &step);
//     nb_trace_attach(trace, "main", &thread);
//     for (uint64_t frame = 0; frame < 100; ++frame) {
//         NB_TRACE_SCOPE(thread, step); // ends with the block
//         nb_trace_frame(thread, frame);
//     }
//     nb_trace_write_json_file(trace, "trace.json"); // for chrome://tracing, Perfetto, speedscope
//     nb_trace_detach(thread);
//     nb_trace_destroy(trace);

#include "nebula/atomic.h"
#include "nebula/hooks.h"
#include "nebula/label.h"
#include "nebula/types.h"

#include <string.h>

// Compile a source with -DNB_TRACE=0 and its nb_trace_begin, _end, _instant, _counter, _frame and NB_TRACE_SCOPE become
// nothing. The rest stays as it is, so that no other line has to change: such a trace is merely empty.
#if !defined(NB_TRACE)
#define NB_TRACE 1
#endif

// A ring must hold a few spans; above the upper limit (256 MiB a thread) nobody reads it all.
#define NB_TRACE_RECORD_COUNT_MIN 16
#define NB_TRACE_RECORD_COUNT_MAX (1u << 24)

// Looking up a thread walks all of them.
#define NB_TRACE_THREAD_COUNT_MAX 1024

// Frame numbers share a word with 4 bits that say what it is.
#define NB_TRACE_FRAME_MAX ((1ull << 60) - 1)

typedef struct nb_trace nb_trace;

typedef enum nb_trace_clock {
    NB_TRACE_CLOCK_DEFAULT = 0, // in a desc: TSC where it is invariant, else SYSTEM
    NB_TRACE_CLOCK_TSC,         // the CPU's time stamp counter, 10 ns a reading; wrong across a suspend of the machine
    NB_TRACE_CLOCK_SYSTEM,      // the monotonic clock of the system, 25 ns a reading
    NB_TRACE_CLOCK_CUSTOM,      // nb_trace_desc.now
    NB_TRACE_CLOCK_COUNT,
} nb_trace_clock;

typedef enum nb_trace_kind {
    NB_TRACE_KIND_NONE = 0,
    NB_TRACE_KIND_BEGIN,       // a span starts; spans of a thread nest
    NB_TRACE_KIND_END,         // the innermost open span ends
    NB_TRACE_KIND_INSTANT,     // something happened
    NB_TRACE_KIND_COUNTER_I64, // a counter has a new value
    NB_TRACE_KIND_COUNTER_F64, // the same, not whole
    NB_TRACE_KIND_FRAME,       // a frame starts
    NB_TRACE_KIND_COUNT,
} nb_trace_kind;

// One thing that was recorded, as readers and sinks get it. All pointers are valid during the callback only.
typedef struct nb_trace_event {
    nb_trace_kind kind;
    uint32_t thread_number;  // 1.. in order of attaching; a thread that attaches again gets another
    const char *thread_name; // as given to nb_trace_attach
    nb_label label;          // null for END and FRAME
    const char *name;        // of the label; "" for END and FRAME, "?" for a label of another table
    uint64_t time_ns;        // since an arbitrary start, the same for all threads of a trace
    int64_t value_i64;       // of a COUNTER_I64
    double value_f64;        // of a COUNTER_F64
    uint64_t frame;          // of a FRAME, 0..NB_TRACE_FRAME_MAX
    bool is_cut;             // an END that nb_trace_read adds for a span that is still open
} nb_trace_event;

typedef void (*nb_trace_visit)(void *user, const nb_trace_event *event);

// Takes the next bytes of a file; false ends the writing.
typedef bool (*nb_trace_output)(void *user, const char *bytes, size_t size_bytes);

typedef struct nb_trace_desc {
    uint32_t thread_count_max;   // threads attached at a time, 1..NB_TRACE_THREAD_COUNT_MAX; 0 = 32
    uint32_t record_count_max;   // 16-byte records a thread, a power of two, NB_TRACE_RECORD_COUNT_MIN.._MAX; a span or
                                 // counter takes two, the rest one; 0 = 32768: over a second of 200 spans a frame
    nb_labels *labels;           // borrowed, must outlive the trace; NULL = the trace creates its own
    nb_trace_clock clock;        // what to record times with; ignored where `now` is set
    uint64_t (*now)(void *user); // a clock in nanoseconds for tests and virtual time; called by every tracing thread
    void *now_user;
    nb_trace_visit sink; // also called for each event as it happens, on the thread that records it, to feed other
                         // profilers; must not record. Excludes the time stamp counter; NULL = none
    void *sink_user;
    nb_hooks hooks; // zero = defaults
} nb_trace_desc;

typedef struct nb_trace_stats {
    nb_trace_clock clock;       // the one in use, never DEFAULT
    uint32_t thread_count;      // attached now
    uint32_t thread_count_max;  // as created
    uint32_t record_count_max;  // as created
    uint64_t recorded_count;    // records ever written
    uint64_t overwritten_count; // of those, no longer in a ring
    uint64_t dropped_count;     // events of threads that were not attached
    uint64_t refused_count;     // attaches refused because all rings were taken
} nb_trace_stats;

// A thread's end of the trace. Visible for the inline functions; callers touch none of it.
typedef struct nb_trace_thread {
    nb_atomic_u64 head;   // records ever written by all owners of this ring
    nb_atomic_u64 *words; // the ring: two words a record
    uint64_t mask;        // record_count_max - 1
    nb_trace *trace;
    uint32_t mode;  // 0 = the inline path is enough; else nb_trace_write knows what to do
    uint32_t index; // of this ring
    uint8_t reserved[NB_CACHE_LINE - 24 - 2 * sizeof(void *)];
} nb_trace_thread;

NB_STATIC_ASSERT(sizeof(nb_trace_thread) == NB_CACHE_LINE, "two threads never write to one cache line");

NB_EXTERN_C_BEGIN

// The defaults, spelled out.
// Thread: any. Owner: the caller gets a value. Fails: never.
NB_API nb_trace_desc nb_trace_desc_default(void);

// Creates a trace with all its rings, in one allocation (16.5 MiB by default, which the system provides page by page as
// rings are written). desc may be NULL.
// Thread: any. Owner: the caller, until nb_trace_destroy. Fails: NB_ERR_MEMORY, NB_ERR_MISUSE (out is NULL, a record
// count that is no power of two, an unknown clock, NB_TRACE_CLOCK_CUSTOM without now), NB_ERR_RANGE, NB_ERR_UNSUPPORTED
// (NB_TRACE_CLOCK_TSC with a sink or without an invariant counter).
NB_API nb_result nb_trace_create(const nb_trace_desc *desc, nb_trace **out);

// The labels of the trace: its own or the borrowed ones.
// Thread: any. Owner: unchanged. Fails: NULL for NULL.
NB_API nb_labels *nb_trace_labels(nb_trace *trace);

// Gives the calling thread a ring: a fresh one, or, when all have been used, the one detached longest ago, whose
// records are lost. A thread detaches before it ends: the OS may give its id to the next thread, which would then count
// as attached. A name that the label table refuses (no room, too long) becomes "".
// Thread: any, acts on the caller. Owner: the calling thread, until nb_trace_detach. Fails: NB_FULL (counted; logged
// the first time), NB_ERR_MISUSE (NULL, attached already).
NB_API nb_result nb_trace_attach(nb_trace *trace, const char *thread_name, nb_trace_thread **out);

// What the calling thread got from nb_trace_attach, for code that was not handed it; NULL where it did not attach,
// counted as one dropped event.
// Thread: any. Owner: unchanged. Fails: NULL.
NB_API nb_trace_thread *nb_trace_current(nb_trace *trace);

// Records one event; `bits` is a counter's value (a double as its 64 bits) or the frame number. The inline functions
// below are the usual way: they call this one when there is a sink or no time stamp counter. Languages without C's
// inline functions call it directly.
// Thread: the one that attached. Owner: nothing. Fails: never; NULL is ignored, a detached thread counted as dropped,
// an unknown kind reported.
NB_API void nb_trace_write(nb_trace_thread *thread, nb_trace_kind kind, nb_label label, uint64_t bits);

// What a record's second word is made of, and the word that follows a counter's record in place of a time.
#define NBI_TRACE_KIND_SHIFT 60
#define NBI_TRACE_KIND_VALUE 15u

NB_INLINE uint64_t nbi_trace_word(uint32_t kind, uint64_t payload) {
    return (uint64_t)kind << NBI_TRACE_KIND_SHIFT | (payload & NB_TRACE_FRAME_MAX);
}

// The release stores are read by the acquire loads in copy_records (trace_read.c), which explains why they must be.
NB_INLINE void nbi_trace_store(nb_trace_thread *thread, uint64_t position, uint64_t first, uint64_t second) {
    nb_atomic_u64 *record = thread->words + 2 * (position & thread->mask);
    nbi_atomic_store_release_u64(record, first);
    nbi_atomic_store_release_u64(record + 1, second);
}

NB_INLINE void nbi_trace_put(nb_trace_thread *thread, uint64_t time, uint64_t word) {
    uint64_t head = nbi_atomic_load_relaxed_u64(&thread->head); // only the owner writes it
    nbi_trace_store(thread, head, time, word);
    // Publishes the record; read by the first acquire load of head in copy_records.
    nbi_atomic_store_release_u64(&thread->head, head + 1);
}

NB_INLINE void nbi_trace_put_value(nb_trace_thread *thread, uint64_t time, uint64_t word, uint64_t value) {
    uint64_t head = nbi_atomic_load_relaxed_u64(&thread->head);
    nbi_trace_store(thread, head, time, word);
    nbi_trace_store(thread, head + 1, value, nbi_trace_word(NBI_TRACE_KIND_VALUE, 0));
    // Publishes both records at once, so that no reader sees a counter without its value; read as above.
    nbi_atomic_store_release_u64(&thread->head, head + 2);
}

// Used only while thread->mode is 0, which nb_trace_create allows only where this is a clock.
NB_INLINE uint64_t nbi_trace_ticks(void) {
#if defined(__GNUC__) && (defined(__x86_64__) || defined(__i386__))
    return __builtin_ia32_rdtsc();
#else
    return 0;
#endif
}

NB_INLINE void nbi_trace_record(nb_trace_thread *thread, nb_trace_kind kind, nb_label label, uint64_t bits) {
    if (!NB_TRACE || thread == NULL) return;
    if (NB_UNLIKELY(thread->mode != 0)) {
        nb_trace_write(thread, kind, label, bits);
    } else if (kind == NB_TRACE_KIND_COUNTER_I64 || kind == NB_TRACE_KIND_COUNTER_F64) {
        nbi_trace_put_value(thread, nbi_trace_ticks(), nbi_trace_word((uint32_t)kind, label.id), bits);
    } else {
        nbi_trace_put(thread, nbi_trace_ticks(),
                      nbi_trace_word((uint32_t)kind, kind == NB_TRACE_KIND_FRAME ? bits : label.id));
    }
}

NB_INLINE nb_label nbi_trace_no_label(void) {
    nb_label label = {0};
    return label;
}

// Opens a span.
// Thread: the one that attached. Owner: the span must be ended by nb_trace_end. Fails: never; NULL records nothing.
NB_INLINE void nb_trace_begin(nb_trace_thread *thread, nb_label label) {
    nbi_trace_record(thread, NB_TRACE_KIND_BEGIN, label, 0);
}

// Ends the innermost open span. One too many is dropped when the trace is read.
// Thread: the one that attached. Owner: nothing. Fails: never; NULL records nothing.
NB_INLINE void nb_trace_end(nb_trace_thread *thread) {
    nbi_trace_record(thread, NB_TRACE_KIND_END, nbi_trace_no_label(), 0);
}

// Marks a moment.
// Thread: the one that attached. Owner: nothing. Fails: never; NULL records nothing.
NB_INLINE void nb_trace_instant(nb_trace_thread *thread, nb_label label) {
    nbi_trace_record(thread, NB_TRACE_KIND_INSTANT, label, 0);
}

// Records the value a counter has from now on.
// Thread: the one that attached. Owner: nothing. Fails: never; NULL records nothing.
NB_INLINE void nb_trace_counter(nb_trace_thread *thread, nb_label label, int64_t value) {
    nbi_trace_record(thread, NB_TRACE_KIND_COUNTER_I64, label, (uint64_t)value);
}

// The same for a value that is not whole.
// Thread: the one that attached. Owner: nothing. Fails: never; NULL records nothing.
NB_INLINE void nb_trace_counter_f64(nb_trace_thread *thread, nb_label label, double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    nbi_trace_record(thread, NB_TRACE_KIND_COUNTER_F64, label, bits);
}

// Marks the start of a frame; the number is kept modulo NB_TRACE_FRAME_MAX + 1.
// Thread: the one that attached. Owner: nothing. Fails: never; NULL records nothing.
NB_INLINE void nb_trace_frame(nb_trace_thread *thread, uint64_t frame) {
    nbi_trace_record(thread, NB_TRACE_KIND_FRAME, nbi_trace_no_label(), frame);
}

NB_INLINE nb_trace_thread *nbi_trace_scope_begin(nb_trace_thread *thread, nb_label label) {
    nb_trace_begin(thread, label);
    return thread;
}

NB_INLINE void nbi_trace_scope_end(nb_trace_thread **thread) { nb_trace_end(*thread); }

// A span from here to the end of the enclosing block, however that is left (return, break, goto, a C++ exception).
#if defined(__GNUC__)
#define NB_TRACE_SCOPE(thread, label) NBI_TRACE_SCOPE(thread, label, __LINE__)
#define NBI_TRACE_SCOPE(thread, label, line) NBI_TRACE_SCOPE_NAMED(thread, label, line)
#define NBI_TRACE_SCOPE_NAMED(thread, label, line)                                                  \
    __attribute__((cleanup(nbi_trace_scope_end), unused)) nb_trace_thread *nbi_trace_scope_##line = \
        nbi_trace_scope_begin((thread), (label))
#endif

// Hands every event still in the rings to `visit`: ring by ring, oldest first. Threads go on recording; what they
// overwrite meanwhile is left out. Spans come balanced: ENDs whose BEGIN was overwritten are left out, spans still open
// are closed at the time of the call (or, for a detached thread, at its last event) with is_cut set.
// Thread: any, one at a time; holds no lock during visit. Owner: nothing. Fails: NB_BUSY (another thread, or `visit`
// itself, is in the middle of a read), NB_ERR_MISUSE (NULL).
NB_API nb_result nb_trace_read(nb_trace *trace, nb_trace_visit visit, void *user);

// Writes what nb_trace_read gives in Chrome's trace format (JSON, times in microseconds with three decimals). Counters
// that are not finite become null, and bytes that are not UTF-8 become U+FFFD.
// Thread: any, one at a time. Owner: nothing. Fails: NB_BUSY, NB_ERR_MISUSE (NULL), NB_ERR_OS (output returned false).
NB_API nb_result nb_trace_write_json(nb_trace *trace, nb_trace_output output, void *user);

// The same into a file, which is replaced; after a failure it may be incomplete.
// Thread: any, one at a time. Owner: nothing. Fails: NB_BUSY, NB_ERR_MISUSE (NULL), NB_ERR_OS.
NB_API nb_result nb_trace_write_json_file(nb_trace *trace, const char *path);

// How much was recorded, lost and refused, and what the trace was created with.
// Thread: any. Owner: the caller gets a value. Fails: zeros for NULL.
NB_API nb_trace_stats nb_trace_stats_get(const nb_trace *trace);

// Ends the calling thread's use of its ring. The records stay readable until another thread needs the ring; a span left
// open is closed by the reader.
// Thread: the one that attached. Owner: the ring is the trace's again. Fails: NB_ERR_MISUSE (NULL), NB_ERR_THREAD
// (attached by another thread, or not at all).
NB_API nb_result nb_trace_detach(nb_trace_thread *thread);

// Ends the trace. The calling thread need not detach, all others must have: they would write into freed memory. NULL is
// fine.
// Thread: any, when no other uses the trace. Owner: the trace is gone on NB_OK. Fails: NB_BUSY (threads are attached,
// reported; or a read is under way).
NB_API nb_result nb_trace_destroy(nb_trace *trace);

NB_EXTERN_C_END
