// SPDX-License-Identifier: MIT
// Reading the rings while their owners write, and turning records back into events.

#include "trace.h"

#include "base.h"

// A counter writes this many records before it publishes them; everything else writes one.
#define RECORDS_PER_PUBLISH_MAX 2

// How to turn recorded times into nanoseconds: for ticks a line through the trace's creation and now, so that nothing
// ever waits for a calibration, and the error is that of reading two clocks at once (below 0.1 us) at both ends.
typedef struct time_scale {
    nbi_clock_pair start;
    double ns_per_tick;
    bool is_ticks; // else times are nanoseconds already
    uint64_t now_ns;
} time_scale;

static time_scale time_scale_now(const nb_trace *trace) {
    if (trace->desc.clock != NB_TRACE_CLOCK_TSC) return (time_scale){.now_ns = nbi_trace_now_ns(trace)};
    nbi_clock_pair end = nbi_clock_pair_now();
    uint64_t ticks = nbi_max_u64(end.ticks - trace->start.ticks, 1);
    return (time_scale){
        .start = trace->start,
        .is_ticks = true,
        .ns_per_tick = (double)(end.ns - trace->start.ns) / (double)ticks,
        .now_ns = end.ns,
    };
}

// A double holds 34 days of ticks exactly at 3 GHz; after that it rounds to nanoseconds, not to more.
static uint64_t time_to_ns(const time_scale *scale, uint64_t time) {
    if (!scale->is_ticks) return time;
    if (time <= scale->start.ticks) return scale->start.ns;
    return scale->start.ns + (uint64_t)((double)(time - scale->start.ticks) * scale->ns_per_tick);
}

// A ring as it was at one moment: records [begin, end) of nb_trace.copy, by position as in the ring.
typedef struct ring_copy {
    nbi_trace_ring info;
    uint64_t begin, end;
} ring_copy;

// Copies what a ring holds while its owner goes on writing, and leaves out every record the owner may have overwritten
// meanwhile. Sound without a lock or a fence: suppose a word copied for record i is really that of a later record j in
// the same place, so j >= i + capacity. The acquire load that read it saw the owner's release store, hence everything
// the owner did before, such as publishing a head of at least j + 1 - RECORDS_PER_PUBLISH_MAX. The load of head below
// comes after and cannot find less; so i < head + RECORDS_PER_PUBLISH_MAX - capacity, and i is left out.
static void copy_records(nb_trace *trace, const nb_trace_thread *thread, ring_copy *copy) {
    uint64_t capacity = trace->desc.record_count_max;
    copy->end = nbi_atomic_load_acquire_u64(&thread->head);
    copy->begin = nbi_max_u64(copy->info.first, copy->end > capacity ? copy->end - capacity : 0);
    for (uint64_t position = copy->begin; position < copy->end; ++position) {
        size_t at = (size_t)(2 * (position & thread->mask));
        trace->copy[at] = nbi_atomic_load_acquire_u64(&thread->words[at]);
        trace->copy[at + 1] = nbi_atomic_load_acquire_u64(&thread->words[at + 1]);
    }
    uint64_t head = nbi_atomic_load_acquire_u64(&thread->head) + RECORDS_PER_PUBLISH_MAX;
    if (head > capacity) copy->begin = nbi_max_u64(copy->begin, head - capacity);
    if (copy->begin > copy->end) copy->begin = copy->end;
}

// The lock keeps the ring from getting another owner; it is held for one pass over the ring (some 50 us by default),
// and only attaching and detaching threads wait for it.
static void copy_ring(nb_trace *trace, uint32_t index, ring_copy *copy) {
    nbi_lock_acquire(&trace->lock);
    *copy = (ring_copy){.info = trace->rings[index]};
    if (copy->info.number != 0) copy_records(trace, &trace->threads[index], copy);
    nbi_lock_release(&trace->lock);
}

typedef struct reader {
    nb_trace *trace;
    nb_trace_visit visit;
    void *user;
    time_scale scale;
    nb_trace_event event; // thread fields filled; time_ns is that of the newest record seen
    uint64_t depth;       // open spans
} reader;

// Hands out the record at a position; returns how many records it took.
static uint64_t visit_record(reader *self, const ring_copy *copy, uint64_t position) {
    const uint64_t *words = self->trace->copy;
    uint64_t mask = self->trace->desc.record_count_max - 1;
    size_t at = (size_t)(2 * (position & mask)), next = (size_t)(2 * ((position + 1) & mask));
    uint64_t word = words[at + 1];
    nb_trace_kind kind = (nb_trace_kind)(word >> NBI_TRACE_KIND_SHIFT);
    // A value whose counter was overwritten; it may stand only at the beginning.
    if (kind >= NB_TRACE_KIND_COUNT || (nbi_trace_is_counter(kind) && position + 1 == copy->end)) return 1;
    nb_trace_event *event = &self->event;
    event->time_ns = time_to_ns(&self->scale, words[at]);
    if (kind == NB_TRACE_KIND_END && self->depth == 0) return 1; // its beginning was overwritten
    if (kind == NB_TRACE_KIND_BEGIN) self->depth += 1;
    if (kind == NB_TRACE_KIND_END) self->depth -= 1;
    nb_trace_event filled = *event;
    uint64_t value = nbi_trace_is_counter(kind) ? words[next] : 0;
    nbi_trace_event_fill(&filled, word, value, self->trace->desc.labels);
    self->visit(self->user, &filled);
    return nbi_trace_is_counter(kind) ? 2 : 1;
}

static void visit_ring(reader *self, const ring_copy *copy) {
    self->depth = 0;
    self->event = (nb_trace_event){
        .thread_number = copy->info.number,
        .thread_name = nb_labels_name(self->trace->desc.labels, copy->info.name),
        .name = "",
    };
    for (uint64_t position = copy->begin; position < copy->end;) position += visit_record(self, copy, position);
    if (copy->info.is_attached) self->event.time_ns = nbi_max_u64(self->event.time_ns, self->scale.now_ns);
    self->event.kind = NB_TRACE_KIND_END;
    self->event.is_cut = true;
    for (; self->depth > 0; --self->depth) self->visit(self->user, &self->event);
}

nb_result nb_trace_read(nb_trace *trace, nb_trace_visit visit, void *user) {
    if (trace == NULL) return NBI_FAIL_NULL("trace");
    if (visit == NULL) return NBI_FAIL(&trace->hooks, NB_ITEM_TRACE_ARGUMENT, NB_ERR_MISUSE, "visit is NULL");
    // Read by nobody but other readers and nb_trace_destroy: whoever turns 0 into 1 owns the copy until it stores 0.
    if (nbi_atomic_exchange_acquire_u32(&trace->is_reading, 1) != 0) return NB_BUSY;
    reader self = {.trace = trace, .visit = visit, .user = user, .scale = time_scale_now(trace)};
    for (uint32_t i = 0; i < trace->desc.thread_count_max; ++i) {
        ring_copy copy;
        copy_ring(trace, i, &copy);
        if (copy.begin < copy.end) visit_ring(&self, &copy);
    }
    // Hands the copy on; read by the acquire exchange above.
    nbi_atomic_store_release_u32(&trace->is_reading, 0);
    return NB_OK;
}
