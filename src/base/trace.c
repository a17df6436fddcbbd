// SPDX-License-Identifier: MIT
// Per-thread rings and who owns which. The writing itself is inline in nebula/trace.h.

#include "trace.h"

#include "base.h"

#include <string.h>

#if defined(__GNUC__) && (defined(__x86_64__) || defined(__i386__)) && !defined(NB_EXPLORE)
#include <cpuid.h>
#define HAS_CPUID 1
#else
#define HAS_CPUID 0
#endif

// More than a frame runtime starts (workers, I/O, services) on a 16-core machine.
#define THREAD_COUNT_DEFAULT 32
// 512 KiB a thread: over a second of 200 spans a frame, or three frames of 5,000.
#define RECORD_COUNT_DEFAULT 32768

// Readings of both clocks at each end of the calibration, of which the tightest counts: one is enough to be lucky, the
// others cost 60 ns each.
#define CALIBRATION_TRIES 8

// Values of nb_trace_thread.mode.
enum { MODE_FAST = 0, MODE_SLOW, MODE_DETACHED };

// --- clocks ---

// Invariant: ticks at one rate whatever the CPU's frequency and sleep state. Bit 8 of EDX in CPUID leaf 80000007h.
static bool has_invariant_tsc(void) {
#if HAS_CPUID
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid(0x80000007u, &a, &b, &c, &d) != 0 && (d >> 8 & 1) != 0;
#else
    return false;
#endif
}

nbi_clock_pair nbi_clock_pair_now(void) {
    nbi_clock_pair best = {0};
    uint64_t best_gap = UINT64_MAX;
    for (int i = 0; i < CALIBRATION_TRIES; ++i) {
        uint64_t before = nbi_clock_now_ns();
        uint64_t ticks = nbi_trace_ticks();
        uint64_t gap = nbi_clock_now_ns() - before;
        if (gap >= best_gap) continue;
        best_gap = gap;
        best = (nbi_clock_pair){.ticks = ticks, .ns = before + gap / 2};
    }
    return best;
}

uint64_t nbi_trace_now_ns(const nb_trace *trace) {
    return trace->desc.now != NULL ? trace->desc.now(trace->desc.now_user) : nbi_clock_now_ns();
}

static uint64_t now_recorded(const nb_trace *trace) {
    return trace->desc.clock == NB_TRACE_CLOCK_TSC ? nbi_trace_ticks() : nbi_trace_now_ns(trace);
}

// --- create ---

nb_trace_desc nb_trace_desc_default(void) {
    return (nb_trace_desc){.thread_count_max = THREAD_COUNT_DEFAULT,
                           .record_count_max = RECORD_COUNT_DEFAULT,
                           .clock = NB_TRACE_CLOCK_DEFAULT,
                           .hooks = nb_hooks_default()};
}

static nb_result choose_clock(nb_trace_desc *desc, const nb_hooks *hooks) {
    nb_trace_clock asked = desc->clock;
    bool can_tsc = has_invariant_tsc() && desc->now == NULL && desc->sink == NULL;
    desc->clock = can_tsc && asked != NB_TRACE_CLOCK_SYSTEM ? NB_TRACE_CLOCK_TSC : NB_TRACE_CLOCK_SYSTEM;
    if (desc->now != NULL) desc->clock = NB_TRACE_CLOCK_CUSTOM;
    if (asked == NB_TRACE_CLOCK_TSC && desc->clock == NB_TRACE_CLOCK_SYSTEM) {
        return nbi_fail(hooks, NB_ITEM_TRACE_ARGUMENT, NB_ERR_UNSUPPORTED, "nb_trace_create",
                        "no invariant time stamp counter, or a sink that cannot use it");
    }
    if (asked == NB_TRACE_CLOCK_CUSTOM && desc->now == NULL) {
        return nbi_fail(hooks, NB_ITEM_TRACE_ARGUMENT, NB_ERR_MISUSE, "nb_trace_create", "a custom clock needs now");
    }
    return NB_OK;
}

static nb_result resolve_desc(nb_trace_desc *desc, const nb_hooks *hooks) {
    if (desc->thread_count_max == 0) desc->thread_count_max = THREAD_COUNT_DEFAULT;
    if (desc->record_count_max == 0) desc->record_count_max = RECORD_COUNT_DEFAULT;
    if (!nbi_is_power_of_two(desc->record_count_max)) {
        return nbi_fail(hooks, NB_ITEM_TRACE_ARGUMENT, NB_ERR_MISUSE, "nb_trace_create",
                        "record_count_max %u is no power of two", desc->record_count_max);
    }
    if ((unsigned)desc->clock >= NB_TRACE_CLOCK_COUNT) {
        return nbi_fail(hooks, NB_ITEM_TRACE_ARGUMENT, NB_ERR_MISUSE, "nb_trace_create", "clock %d does not exist",
                        (int)desc->clock);
    }
    if (desc->thread_count_max > NB_TRACE_THREAD_COUNT_MAX || desc->record_count_max < NB_TRACE_RECORD_COUNT_MIN ||
        desc->record_count_max > NB_TRACE_RECORD_COUNT_MAX) {
        return nbi_fail(hooks, NB_ITEM_TRACE_ARGUMENT, NB_ERR_RANGE, "nb_trace_create",
                        "thread_count_max %u or record_count_max %u is out of range", desc->thread_count_max,
                        desc->record_count_max);
    }
    return choose_clock(desc, hooks);
}

// Where the parts of the one allocation start. The threads come first: they are cache lines.
typedef struct layout {
    size_t trace, rings, owners, words, size;
} layout;

static bool layout_of(const nb_trace_desc *desc, layout *out) {
    size_t threads = desc->thread_count_max, ring_bytes = desc->record_count_max * 2 * sizeof(nb_atomic_u64);
    size_t words_bytes = 0;
    out->trace = threads * sizeof(nb_trace_thread);
    out->rings = out->trace + sizeof(nb_trace);
    out->owners = out->rings + threads * sizeof(nbi_trace_ring);
    out->words = out->owners + threads * sizeof(nb_atomic_u64);
    // One ring more than there are threads: the reader's copy.
    return nbi_size_mul(threads + 1, ring_bytes, &words_bytes) && nbi_size_add(out->words, words_bytes, &out->size);
}

NB_STATIC_ASSERT(sizeof(nb_trace) % NB_ALIGNOF(nbi_trace_ring) == 0 &&
                     sizeof(nbi_trace_ring) % NB_ALIGNOF(nb_atomic_u64) == 0,
                 "the parts follow each other directly");

static nb_trace *allocate(const nb_trace_desc *desc, const nb_hooks *hooks) {
    layout at;
    if (!layout_of(desc, &at)) return NULL;
    char *memory = (char *)nbi_alloc(hooks, at.size, NB_CACHE_LINE, "nb_trace_create");
    if (memory == NULL) return NULL;
    // The words are left as they are: none is read before it was written, and unused rings stay without memory.
    memset(memory, 0, at.words);
    nb_trace *trace = (nb_trace *)(void *)(memory + at.trace);
    trace->hooks = *hooks;
    trace->desc = *desc;
    trace->memory_bytes = at.size;
    trace->threads = (nb_trace_thread *)(void *)memory;
    trace->rings = (nbi_trace_ring *)(void *)(memory + at.rings);
    trace->owners = (nb_atomic_u64 *)(void *)(memory + at.owners);
    nb_atomic_u64 *words = (nb_atomic_u64 *)(void *)(memory + at.words);
    for (uint32_t i = 0; i < desc->thread_count_max; ++i, words += 2 * (size_t)desc->record_count_max) {
        trace->threads[i] = (nb_trace_thread){
            .words = words, .mask = desc->record_count_max - 1, .trace = trace, .mode = MODE_DETACHED, .index = i};
    }
    trace->copy = (uint64_t *)(void *)words;
    return trace;
}

nb_result nb_trace_create(const nb_trace_desc *desc, nb_trace **out) {
    nb_trace_desc asked = desc != NULL ? *desc : (nb_trace_desc){0};
    nb_hooks hooks = nbi_hooks_resolve(&asked.hooks);
    if (out == NULL) return NBI_FAIL(&hooks, NB_ITEM_TRACE_ARGUMENT, NB_ERR_MISUSE, "out is NULL");
    nb_result result = resolve_desc(&asked, &hooks);
    if (result != NB_OK) return result;
    nb_labels *labels = NULL;
    if (asked.labels == NULL) {
        result = nb_labels_create(&(nb_labels_desc){.hooks = hooks}, &labels);
        if (result != NB_OK) return result;
        asked.labels = labels;
    }
    nb_trace *trace = allocate(&asked, &hooks);
    if (trace == NULL) {
        nb_labels_destroy(labels);
        return NB_ERR_MEMORY;
    }
    trace->is_labels_owner = labels != NULL;
    if (asked.clock == NB_TRACE_CLOCK_TSC) trace->start = nbi_clock_pair_now();
    *out = trace;
    return NB_OK;
}

nb_labels *nb_trace_labels(nb_trace *trace) {
    if (trace != NULL) return trace->desc.labels;
    NBI_FAIL_NULL("trace");
    return NULL;
}

// --- attach and detach ---

// The ring this thread is attached to. No lock: the only one it can find is what it wrote itself.
nb_trace_thread *nbi_trace_find(nb_trace *trace) {
    uint64_t self = nbi_thread_id();
    for (uint32_t i = 0; i < trace->desc.thread_count_max; ++i) {
        if (nbi_atomic_load_relaxed_u64(&trace->owners[i]) == self) return &trace->threads[i];
    }
    return NULL;
}

// A ring never used, or the one detached longest ago. Under the lock.
static nbi_trace_ring *choose_ring(nb_trace *trace) {
    nbi_trace_ring *oldest = NULL;
    for (uint32_t i = 0; i < trace->desc.thread_count_max; ++i) {
        nbi_trace_ring *candidate = &trace->rings[i];
        if (candidate->is_attached) continue;
        if (candidate->number == 0) return candidate;
        if (oldest == NULL || candidate->detached_order < oldest->detached_order) oldest = candidate;
    }
    return oldest;
}

static nb_trace_thread *take_ring(nb_trace *trace, nb_label name) {
    nb_trace_thread *thread = NULL;
    nbi_lock_acquire(&trace->lock);
    nbi_trace_ring *chosen = choose_ring(trace);
    if (chosen != NULL) {
        thread = &trace->threads[chosen - trace->rings];
        *chosen = (nbi_trace_ring){
            .first = nbi_atomic_load_relaxed_u64(&thread->head),
            .number = ++trace->attach_number,
            .name = name,
            .is_attached = true,
        };
        nbi_atomic_fetch_add_relaxed_u32(&trace->attached_count, 1);
        bool is_fast = trace->desc.clock == NB_TRACE_CLOCK_TSC && trace->desc.sink == NULL;
        thread->mode = is_fast ? MODE_FAST : MODE_SLOW;
        nbi_atomic_store_relaxed_u64(&trace->owners[thread->index], nbi_thread_id());
    }
    nbi_lock_release(&trace->lock);
    return thread;
}

nb_result nb_trace_attach(nb_trace *trace, const char *thread_name, nb_trace_thread **out) {
    if (trace == NULL) return NBI_FAIL_NULL("trace");
    if (thread_name == NULL || out == NULL) {
        return NBI_FAIL(&trace->hooks, NB_ITEM_TRACE_ARGUMENT, NB_ERR_MISUSE, "thread_name or out is NULL");
    }
    if (nbi_trace_find(trace) != NULL) {
        return NBI_FAIL(&trace->hooks, NB_ITEM_TRACE_ARGUMENT, NB_ERR_MISUSE, "\"%s\" is attached already",
                        thread_name);
    }
    nb_label name = {0};
    (void)nb_labels_intern(trace->desc.labels, thread_name, &name); // without room it stays null: tracing goes on
    nb_trace_thread *thread = take_ring(trace, name);
    if (thread != NULL) {
        *out = thread;
        return NB_OK;
    }
    if (nbi_atomic_fetch_add_relaxed_u64(&trace->refused_count, 1) == 0) {
        nbi_log(&trace->hooks, NB_LOG_WARNING, NB_ITEM_TRACE_FULL, __func__,
                "no ring for \"%s\", %u threads are attached; further refusals are only counted", thread_name,
                trace->desc.thread_count_max);
    }
    return NB_FULL;
}

nb_trace_thread *nbi_trace_join(nb_trace *trace, const char *thread_name, nb_trace_thread **own) {
    nb_trace_thread *thread = nbi_trace_find(trace);
    if (thread == NULL && nb_trace_attach(trace, thread_name, &thread) == NB_OK) *own = thread;
    return thread;
}

nb_trace_thread *nb_trace_current(nb_trace *trace) {
    if (trace == NULL) {
        NBI_FAIL_NULL("trace");
        return NULL;
    }
    nb_trace_thread *thread = nbi_trace_find(trace);
    if (thread == NULL) nbi_atomic_fetch_add_relaxed_u64(&trace->dropped_count, 1);
    return thread;
}

nb_result nb_trace_detach(nb_trace_thread *thread) {
    if (thread == NULL) return NBI_FAIL_NULL("thread");
    nb_trace *trace = thread->trace;
    if (nbi_atomic_load_relaxed_u64(&trace->owners[thread->index]) != nbi_thread_id()) {
        return NBI_FAIL(&trace->hooks, NB_ITEM_TRACE_ARGUMENT, NB_ERR_THREAD, "ring %u is not this thread's",
                        thread->index);
    }
    nbi_trace_leave(thread, nbi_thread_id());
    return NB_OK;
}

void nbi_trace_leave(nb_trace_thread *thread, uint64_t thread_id) {
    nb_trace *trace = thread->trace;
    nbi_lock_acquire(&trace->lock);
    if (nbi_atomic_load_relaxed_u64(&trace->owners[thread->index]) == thread_id) {
        nbi_trace_ring *own = &trace->rings[thread->index];
        own->is_attached = false;
        own->detached_order = ++trace->detached_order;
        nbi_atomic_fetch_sub_relaxed_u32(&trace->attached_count, 1);
        thread->mode = MODE_DETACHED;
        nbi_atomic_store_relaxed_u64(&trace->owners[thread->index], 0);
    }
    nbi_lock_release(&trace->lock);
}

// --- write ---

void nbi_trace_event_fill(nb_trace_event *event, uint64_t word, uint64_t value, const nb_labels *labels) {
    uint64_t payload = word & NB_TRACE_FRAME_MAX;
    event->kind = (nb_trace_kind)(word >> NBI_TRACE_KIND_SHIFT);
    event->name = "";
    if (event->kind == NB_TRACE_KIND_FRAME) {
        event->frame = payload;
    } else if (event->kind != NB_TRACE_KIND_END) {
        event->label = (nb_label){(uint32_t)payload};
        // Asked first, because a label of another table would be reported once for each of its records.
        bool is_known = payload <= nb_labels_stats_get(labels).label_count;
        event->name = is_known ? nb_labels_name(labels, event->label) : "?";
    }
    if (event->kind == NB_TRACE_KIND_COUNTER_I64) event->value_i64 = (int64_t)value;
    if (event->kind == NB_TRACE_KIND_COUNTER_F64) memcpy(&event->value_f64, &value, sizeof value);
}

// The owner may read its ring's number and name without the lock: only attaching writes them.
static void call_sink(nb_trace *trace, const nb_trace_thread *thread, uint64_t word, uint64_t value, uint64_t time_ns) {
    const nbi_trace_ring *own = &trace->rings[thread->index];
    nb_trace_event event = {.thread_number = own->number, .time_ns = time_ns};
    event.thread_name = nb_labels_name(trace->desc.labels, own->name);
    nbi_trace_event_fill(&event, word, value, trace->desc.labels);
    trace->desc.sink(trace->desc.sink_user, &event);
}

void nb_trace_write(nb_trace_thread *thread, nb_trace_kind kind, nb_label label, uint64_t bits) {
    if (thread == NULL) return;
    nb_trace *trace = thread->trace;
    if (kind <= NB_TRACE_KIND_NONE || kind >= NB_TRACE_KIND_COUNT) {
        NBI_FAIL(&trace->hooks, NB_ITEM_TRACE_ARGUMENT, NB_ERR_MISUSE, "kind %d is unknown", (int)kind);
        return;
    }
    if (thread->mode == MODE_DETACHED) {
        nbi_atomic_fetch_add_relaxed_u64(&trace->dropped_count, 1);
        return;
    }
    uint64_t time = now_recorded(trace);
    uint64_t word = nbi_trace_word((uint32_t)kind, kind == NB_TRACE_KIND_FRAME ? bits : label.id);
    if (nbi_trace_is_counter(kind)) {
        nbi_trace_put_value(thread, time, word, bits);
    } else {
        nbi_trace_put(thread, time, word);
    }
    if (trace->desc.sink != NULL) call_sink(trace, thread, word, bits, time);
}

nb_trace_stats nb_trace_stats_get(const nb_trace *trace) {
    if (trace == NULL) {
        NBI_FAIL_NULL("trace");
        return (nb_trace_stats){0};
    }
    nb_trace_stats stats = {
        .clock = trace->desc.clock,
        .thread_count = nbi_atomic_load_relaxed_u32(&trace->attached_count),
        .thread_count_max = trace->desc.thread_count_max,
        .record_count_max = trace->desc.record_count_max,
        .dropped_count = nbi_atomic_load_relaxed_u64(&trace->dropped_count),
        .refused_count = nbi_atomic_load_relaxed_u64(&trace->refused_count),
    };
    for (uint32_t i = 0; i < trace->desc.thread_count_max; ++i) {
        uint64_t head = nbi_atomic_load_relaxed_u64(&trace->threads[i].head);
        stats.recorded_count += head;
        if (head > stats.record_count_max) stats.overwritten_count += head - stats.record_count_max;
    }
    return stats;
}

nb_result nb_trace_destroy(nb_trace *trace) {
    if (trace == NULL) return NB_OK;
    if (nbi_atomic_load_acquire_u32(&trace->is_reading) != 0) return NB_BUSY;
    nb_trace_thread *own = nbi_trace_find(trace);
    // With the lock: a thread that is no longer counted must be done with the trace.
    nbi_lock_acquire(&trace->lock);
    uint32_t others = nbi_atomic_load_relaxed_u32(&trace->attached_count) - (own != NULL ? 1 : 0);
    nbi_lock_release(&trace->lock);
    if (others != 0) {
        return NBI_FAIL(&trace->hooks, NB_ITEM_TRACE_ARGUMENT, NB_BUSY, "%u other threads are still attached", others);
    }
    if (trace->is_labels_owner) nb_labels_destroy(trace->desc.labels);
    nb_hooks hooks = trace->hooks;
    nbi_free(&hooks, trace->threads, trace->memory_bytes);
    return NB_OK;
}
