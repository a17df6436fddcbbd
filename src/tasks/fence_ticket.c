// SPDX-License-Identifier: MIT
// Tickets: taking one, giving it back exactly once, and finding the ones that are out.
//
// A ticket names a record and the record's generation. A compare-exchange on the record's state decides which of
// several returns is the one; the others, and tickets that never were, change a counter. Free records are a stack with
// a tagged head. The last thing a return does to the fence is giving back its unit of the frame's tally: whoever waits
// may then destroy the fence.

#include "fence_state.h"

// A ticket: the record's index below, its generation above. The head of the free list: index + 1 below, a tag above.
#define INDEX_BITS 22
#define INDEX_MASK (((uint64_t)1 << INDEX_BITS) - 1)
#define GENERATION_MASK (UINT64_MAX >> INDEX_BITS)

NB_STATIC_ASSERT(NB_FENCE_TICKET_COUNT_MAX <= INDEX_MASK, "index + 1 fits beside the tag");
NB_STATIC_ASSERT(64 - INDEX_BITS >= 40, "tags and generations do not come round while somebody holds an old one");

static uint64_t state_free(uint64_t generation) { return generation << 1; }
static uint64_t state_live(uint64_t generation) { return generation << 1 | 1; }
static bool state_is_live(uint64_t state) { return (state & 1) != 0; }
static uint64_t state_generation(uint64_t state) { return state >> 1; }

// Never 0, so that a zeroed ticket has none.
static uint64_t next_generation(uint64_t generation) {
    uint64_t next = (generation + 1) & GENERATION_MASK;
    return next != 0 ? next : 1;
}

// --- the free list ---

static uint64_t head_after(uint64_t head, uint64_t place) { return ((head >> INDEX_BITS) + 1) << INDEX_BITS | place; }

// The record's index + 1; 0 = all are out.
static uint32_t record_pop(nb_fence *fence) {
    uint64_t head = nbi_atomic_load_acquire_u64(&fence->free_head);
    uint32_t place;
    uint64_t next;
    do {
        place = (uint32_t)(head & INDEX_MASK);
        if (place == 0) return 0;
        // Somebody else may have taken the record and be writing this; the tag then makes the exchange fail.
        next = nbi_atomic_load_relaxed_u32(&fence->records[place - 1].next);
        // Acquire: what the thread that pushed the record last did with it.
    } while (!nbi_atomic_compare_exchange_acquire_u64(&fence->free_head, &head, head_after(head, next)));
    return place;
}

static void record_push(nb_fence *fence, uint32_t place) {
    uint64_t head = nbi_atomic_load_relaxed_u64(&fence->free_head);
    do {
        nbi_atomic_store_relaxed_u32(&fence->records[place - 1].next, (uint32_t)(head & INDEX_MASK));
        // Publishes the record; read by the acquire in record_pop.
    } while (!nbi_atomic_compare_exchange_release_u64(&fence->free_head, &head, head_after(head, place)));
}

// Every fence starts its generations somewhere else, so that a ticket of another one is found out.
static uint64_t first_generation(const nb_fence *fence) {
    uint64_t mixed = ((uint64_t)(uintptr_t)fence ^ nbi_clock_now_ns()) * 0x9E3779B97F4A7C15u;
    mixed = (mixed ^ mixed >> 32) * 0xD6E8FEB86659FD93u; // odd constants with well spread bits
    return (mixed ^ mixed >> 32) & GENERATION_MASK;
}

void nbi_fence_records_init(nb_fence *fence) {
    uint64_t generation = first_generation(fence);
    uint32_t count = fence->desc.ticket_count_max;
    for (uint32_t i = 0; i < count; ++i) {
        fence->records[i] = (nbi_fence_record){.state = {state_free(generation)}, .next = {i + 1 < count ? i + 2 : 0}};
    }
    fence->free_head.value = 1;
}

// --- taking ---

static nb_result refuse_frame(nb_fence *fence, nb_fence_frame frame, const char *function) {
    return nbi_fail(&fence->hooks, NB_ITEM_FENCE_STALE, NB_ERR_STALE, function,
                    "frame %llu is none of this fence, or long over", (unsigned long long)nbi_fence_number(frame));
}

// Fills in the current frame for a null one. NB_ERR_MISUSE: there was none yet.
static nb_result resolve_frame(nb_fence *fence, nb_fence_frame *frame) {
    if (frame->value != 0) return NB_OK;
    nb_fence_frame current = nb_fence_current(fence);
    if (current.value != 0) {
        *frame = current;
        return NB_OK;
    }
    if (nbi_atomic_load_relaxed_u32(&fence->is_closed) != 0) return NB_CLOSED;
    // The coordinator was told that this frame has no slot.
    if (nbi_atomic_load_relaxed_u64(&fence->full_count) != 0) return NB_FULL;
    return NB_ERR_MISUSE;
}

nb_result nbi_fence_enter(nb_fence *fence, nb_fence_frame *frame, uint32_t count, nbi_tally **tally) {
    nb_result result = resolve_frame(fence, frame);
    if (result != NB_OK) return result;
    nbi_fence_slot *slot = nbi_fence_slot_of(fence, *frame);
    if (slot == NULL) return NB_ERR_STALE;
    result = nbi_tally_add(&slot->tally, nbi_fence_number(*frame), count);
    if (result == NB_OK) *tally = &slot->tally;
    return result;
}

// The caller's mistakes, said aloud.
static nb_result report_frame(nb_fence *fence, nb_fence_frame frame, nb_result result) {
    if (result == NB_ERR_STALE) return refuse_frame(fence, frame, "nb_fence_take");
    if (result != NB_ERR_MISUSE) return result;
    return nbi_fail(&fence->hooks, NB_ITEM_FENCE_ARGUMENT, result, "nb_fence_take", "no frame has begun");
}

nbi_tally *nbi_fence_tally(nb_fence *fence, nb_fence_frame frame) {
    nbi_fence_slot *slot = nbi_fence_slot_of(fence, frame);
    return slot != NULL ? &slot->tally : NULL;
}

// The fields are released one by one, and read with acquire in read_straggler: a reader that meets one of a newer
// ticket also meets the end of the older in `state`.
static void record_fill(nb_fence *fence, nbi_fence_record *record, nb_fence_frame frame, nb_label label,
                        bool is_counted) {
    uint64_t now_ns = nb_clock_now_ns(&fence->desc.clock);
    nbi_atomic_store_release_u64(&record->frame, frame.value);
    nbi_atomic_store_release_u64(&record->taken_ns, now_ns);
    nbi_atomic_store_release_u64(&record->thread_id, nbi_thread_id());
    nbi_atomic_store_release_u32(&record->label, label.id);
    nbi_atomic_store_release_u32(&record->is_counted, is_counted ? 1 : 0);
}

static nb_fence_ticket record_publish(nb_fence *fence, uint32_t place) {
    nbi_fence_record *record = &fence->records[place - 1];
    uint64_t generation = next_generation(state_generation(nbi_atomic_load_relaxed_u64(&record->state)));
    // Read by the acquire loads in nb_fence_return and read_straggler.
    nbi_atomic_store_release_u64(&record->state, state_live(generation));
    return (nb_fence_ticket){generation << INDEX_BITS | (place - 1)};
}

// Gives a record back whose ticket was never handed out.
static void record_drop(nb_fence *fence, uint32_t place) {
    record_push(fence, place);
    // Read by the acquire load in nb_fence_destroy.
    nbi_atomic_fetch_sub_release_u64(&fence->ticket_count, 1);
}

static nb_result refuse_full(nb_fence *fence) {
    nbi_atomic_fetch_add_relaxed_u64(&fence->ticket_full_count, 1);
    if (nbi_atomic_exchange_acquire_u32(&fence->is_ticket_full_reported, 1) == 0) {
        nbi_log(&fence->hooks, NB_LOG_WARNING, NB_ITEM_FENCE_FULL, "nb_fence_take", "all %u tickets are out",
                (unsigned)fence->desc.ticket_count_max);
    }
    return NB_FULL;
}

static nb_result enter_counted(nb_fence *fence, nb_fence_frame *frame) {
    nbi_tally *tally = NULL;
    nb_result result = nbi_fence_enter(fence, frame, 1, &tally);
    if (result == NB_FULL && frame->value != 0) nbi_atomic_fetch_add_relaxed_u64(&fence->ticket_full_count, 1);
    return report_frame(fence, *frame, result);
}

// As enter_counted, without a unit: the frame will not wait.
static nb_result enter_uncounted(nb_fence *fence, nb_fence_frame *frame) {
    nb_result result = resolve_frame(fence, frame);
    if (result != NB_OK) return report_frame(fence, *frame, result);
    const nbi_fence_slot *slot = nbi_fence_slot_of(fence, *frame);
    uint64_t word = slot != NULL ? nbi_atomic_load_acquire_u64(&slot->tally.word) : 0;
    if (slot == NULL || !nbi_fence_is_in(*frame, word)) return refuse_frame(fence, *frame, "nb_fence_take");
    return nbi_tally_count(word) == 0 || (word & NBI_TALLY_CLOSED) != 0 ? NB_CLOSED : NB_OK;
}

nb_result nb_fence_take(nb_fence *fence, nb_fence_frame frame, nb_label label, nb_fence_ticket *out) {
    if (fence == NULL) return NBI_FAIL_NULL("fence");
    if (out == NULL) return NBI_FAIL(&fence->hooks, NB_ITEM_FENCE_ARGUMENT, NB_ERR_MISUSE, "out is NULL");
    // Before the record leaves the list: nb_fence_destroy looks at this count alone.
    uint64_t ticket_count = nbi_atomic_fetch_add_relaxed_u64(&fence->ticket_count, 1) + 1;
    uint32_t place = record_pop(fence);
    if (place == 0) {
        nbi_atomic_fetch_sub_release_u64(&fence->ticket_count, 1);
        return refuse_full(fence);
    }
    // The unit last: it is the one thing that others see, so nothing has to be taken back.
    bool has_quarantine = nbi_atomic_load_relaxed_u32(&fence->quarantine_count) != 0;
    bool is_counted = !has_quarantine || !nb_fence_is_quarantined(fence, label);
    nb_result result = is_counted ? enter_counted(fence, &frame) : enter_uncounted(fence, &frame);
    if (result != NB_OK) {
        record_drop(fence, place);
        return result;
    }
    nbi_fence_raise(&fence->ticket_count_peak, ticket_count);
    record_fill(fence, &fence->records[place - 1], frame, label, is_counted);
    *out = record_publish(fence, place);
    return NB_OK;
}

// --- giving back ---

static nb_result refuse_ticket(nb_fence *fence, const char *function) {
    nbi_atomic_fetch_add_relaxed_u64(&fence->refused_count, 1);
    return nbi_fail(&fence->hooks, NB_ITEM_FENCE_STALE, NB_ERR_STALE, function,
                    "the ticket is none of this fence, or back already");
}

nb_result nb_fence_return(nb_fence *fence, nb_fence_ticket ticket) {
    if (fence == NULL) return NBI_FAIL_NULL("fence");
    uint64_t index = ticket.value & INDEX_MASK, generation = ticket.value >> INDEX_BITS;
    if (index >= fence->desc.ticket_count_max) return refuse_ticket(fence, __func__);
    nbi_fence_record *record = &fence->records[index];
    uint64_t live = state_live(generation);
    // Decides which of several returns is the one.
    if (!nbi_atomic_compare_exchange_acq_rel_u64(&record->state, &live, state_free(generation))) {
        return refuse_ticket(fence, __func__);
    }
    nb_fence_frame frame = {nbi_atomic_load_relaxed_u64(&record->frame)};
    bool is_counted = nbi_atomic_load_relaxed_u32(&record->is_counted) != 0;
    nbi_fence_slot *slot = nbi_fence_slot_of(fence, frame);
    if (nbi_atomic_load_relaxed_u64(&slot->degraded) == frame.value) {
        nbi_atomic_fetch_add_relaxed_u64(&fence->late_count, 1);
    }
    record_push(fence, (uint32_t)index + 1);
    // One of these two is the last touch of the fence's memory. Read by the acquire load in nb_fence_destroy.
    nbi_atomic_fetch_sub_release_u64(&fence->ticket_count, 1);
    if (is_counted) nbi_tally_sub(&slot->tally, 1);
    return NB_OK;
}

// --- finding ---

// False where the record's ticket is not of this frame, or came back meanwhile.
static bool read_straggler(const nbi_fence_record *record, nb_fence_frame frame, uint64_t now_ns,
                           nb_fence_straggler *out) {
    uint64_t state = nbi_atomic_load_acquire_u64(&record->state);
    if (!state_is_live(state) || nbi_atomic_load_acquire_u64(&record->frame) != frame.value) return false;
    if (nbi_atomic_load_acquire_u32(&record->is_counted) == 0) return false;
    uint64_t taken_ns = nbi_atomic_load_acquire_u64(&record->taken_ns);
    out->age_ns = now_ns > taken_ns ? now_ns - taken_ns : 0;
    out->thread_id = nbi_atomic_load_acquire_u64(&record->thread_id);
    out->label.id = nbi_atomic_load_acquire_u32(&record->label);
    return nbi_atomic_load_relaxed_u64(&record->state) == state;
}

uint32_t nbi_fence_records_list(const nb_fence *fence, nb_fence_frame frame, uint64_t now_ns,
                                nb_fence_straggler *stragglers, uint32_t count_max) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < fence->desc.ticket_count_max && count < count_max; ++i) {
        if (read_straggler(&fence->records[i], frame, now_ns, &stragglers[count])) ++count;
    }
    return count;
}
