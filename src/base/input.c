// SPDX-License-Identifier: MIT
// The input queue: a bounded ring that any thread writes, and behind it, private to the loop's thread, a heap ordered
// by time from which each tick takes its slice.

#include "input.h"

#include <string.h>

#include "nebula/atomic.h"

#define COUNT_DEFAULT 1024

// Of the number of a send: more than a program lives to see.
#define ARRIVAL_MASK (UINT64_MAX >> 1)

// A cell is free for the send number `turn`, and full for the receive number `turn - 1`.
typedef struct cell {
    nb_atomic_u64 turn;
    nb_input_event event;
} cell;

typedef struct waiting {
    nb_input_event event;
    uint64_t arrival : 63; // number of its send: orders events of the same time
    uint64_t is_net : 1;   // what folded events come to: for the tick only where it changes a button
} waiting;

struct nb_input {
    // Written by senders.
    nb_atomic_u64 tail; // sends claimed
    nb_atomic_u64 full_count;
    uint8_t pad[NB_CACHE_LINE - 16];

    // Private to the loop's thread.
    uint64_t head;         // sends received
    uint64_t slice_end_ns; // of the newest tick
    uint64_t delivered_count, discarded_count, late_count, early_count, frame_missed_count, folded_count, net_count;
    uint32_t waiting_count;    // events in the heap
    uint32_t frame_count;      // events in frame_events
    uint32_t frame_seen_count; // of them, already shown
    bool has_frame_views;      // nb_input_begin_frame is in use
    nbi_input_fold fold;
    nbi_held held;

    // Fixed at creation.
    uint32_t count_max;
    bool is_memory_owned;
    size_t memory_bytes;
    cell *cells;
    waiting *heap;
    nb_input_event *tick_events;
    nb_input_event *frame_events;
    nb_hooks hooks;
};

NB_STATIC_ASSERT(offsetof(nb_input, head) == NB_CACHE_LINE, "senders and the loop do not share a line");

// Not 1: a ring of one cell could not tell "full" from "free for the next lap", both being turn + 1.
static bool is_count_allowed(uint32_t count) {
    return nbi_is_power_of_two(count) && count >= 2 && count <= NB_INPUT_COUNT_LIMIT;
}

nb_input_desc nb_input_desc_default(void) {
    return (nb_input_desc){.event_count_max = COUNT_DEFAULT, .hooks = nb_hooks_default()};
}

size_t nb_input_memory_size(uint32_t event_count_max) {
    if (event_count_max == 0) event_count_max = COUNT_DEFAULT;
    if (!is_count_allowed(event_count_max)) return 0;
    size_t event_bytes = sizeof(cell) + sizeof(waiting) + 2 * sizeof(nb_input_event);
    size_t net_bytes = sizeof(waiting) + sizeof(nb_input_event);
    return sizeof(nb_input) + event_count_max * event_bytes + NBI_HELD_COUNT_MAX * net_bytes;
}

static nb_result check_desc(const nb_input_desc *desc, const nb_hooks *hooks) {
    if (!is_count_allowed(desc->event_count_max)) {
        nb_result result = nbi_is_power_of_two(desc->event_count_max) ? NB_ERR_RANGE : NB_ERR_MISUSE;
        return nbi_fail(hooks, NB_ITEM_INPUT_ARGUMENT, result, "nb_input_create",
                        "event_count_max %u is no power of two from 2 to %u", desc->event_count_max,
                        NB_INPUT_COUNT_LIMIT);
    }
    if (desc->memory == NULL) return NB_OK;
    if ((uintptr_t)desc->memory % NB_CACHE_LINE != 0) {
        return nbi_fail(hooks, NB_ITEM_INPUT_ARGUMENT, NB_ERR_MISUSE, "nb_input_create",
                        "memory is not aligned to a cache line");
    }
    if (desc->memory_bytes < nb_input_memory_size(desc->event_count_max)) {
        return nbi_fail(hooks, NB_ITEM_INPUT_ARGUMENT, NB_ERR_RANGE, "nb_input_create",
                        "memory of %zu bytes is too small", desc->memory_bytes);
    }
    return NB_OK;
}

static void lay_out(nb_input *input, uint32_t count) {
    input->cells = (cell *)(input + 1);
    input->heap = (waiting *)(input->cells + count);
    input->tick_events = (nb_input_event *)(input->heap + count + NBI_HELD_COUNT_MAX);
    input->frame_events = input->tick_events + count + NBI_HELD_COUNT_MAX;
    for (uint32_t i = 0; i < count; ++i) nbi_atomic_store_relaxed_u64(&input->cells[i].turn, i);
}

nb_result nb_input_create(const nb_input_desc *given, nb_input **out) {
    nb_input_desc desc = given == NULL ? (nb_input_desc){0} : *given;
    nb_hooks hooks = nbi_hooks_resolve(&desc.hooks);
    if (out == NULL) return NBI_FAIL(&hooks, NB_ITEM_INPUT_ARGUMENT, NB_ERR_MISUSE, "out is NULL");
    if (desc.event_count_max == 0) desc.event_count_max = COUNT_DEFAULT;
    nb_result result = check_desc(&desc, &hooks);
    if (result != NB_OK) return result;
    size_t size_bytes = nb_input_memory_size(desc.event_count_max);
    void *memory = desc.memory != NULL ? desc.memory : nbi_alloc(&hooks, size_bytes, NB_CACHE_LINE, __func__);
    if (memory == NULL) return NB_ERR_MEMORY;
    nb_input *input = (nb_input *)memory;
    memset(input, 0, sizeof *input);
    input->count_max = desc.event_count_max;
    input->is_memory_owned = desc.memory == NULL;
    input->memory_bytes = size_bytes;
    input->hooks = hooks;
    lay_out(input, desc.event_count_max);
    *out = input;
    return NB_OK;
}

void nb_input_destroy(nb_input *input) {
    if (input == NULL || !input->is_memory_owned) return;
    nb_hooks hooks = input->hooks;
    nbi_free(&hooks, input, input->memory_bytes);
}

// The first refusal is news, and then each time the number has doubled.
static nb_result refuse(nb_input *input, const char *function) {
    uint64_t count = nbi_atomic_fetch_add_acq_rel_u64(&input->full_count, 1) + 1;
    if ((count & (count - 1)) == 0) {
        nbi_log(&input->hooks, NB_LOG_WARNING, NB_ITEM_INPUT_FULL, function, "%llu events refused so far",
                nb_llu(count));
    }
    return NB_FULL;
}

nb_result nb_input_send(nb_input *input, const nb_input_event *event) {
    if (input == NULL) return NBI_FAIL_NULL("input");
    if (event == NULL) return NBI_FAIL(&input->hooks, NB_ITEM_INPUT_ARGUMENT, NB_ERR_MISUSE, "event is NULL");
    uint64_t tail = nbi_atomic_load_relaxed_u64(&input->tail);
    for (;;) { // each further turn means that another sender got the place: somebody makes progress
        cell *at = &input->cells[tail & (input->count_max - 1)];
        uint64_t turn = nbi_atomic_load_acquire_u64(&at->turn); // pairs with the release store in receive
        if (turn == tail) {
            // The claim orders nothing: the event is published through `turn`, below.
            if (!nbi_atomic_compare_exchange_relaxed_u64(&input->tail, &tail, tail + 1)) continue;
            at->event = *event;
            nbi_atomic_store_release_u64(&at->turn, tail + 1); // read by the acquire load in receive
            return NB_OK;
        }
        if ((int64_t)(turn - tail) < 0) return refuse(input, __func__);
        tail = nbi_atomic_load_relaxed_u64(&input->tail);
    }
}

// Takes the next event in order of arrival. False when there is none, or when its sender is not done writing it: later
// ones then wait behind it.
static bool receive(nb_input *input, waiting *out) {
    cell *at = &input->cells[input->head & (input->count_max - 1)];
    // Pairs with the release store in nb_input_send.
    if (nbi_atomic_load_acquire_u64(&at->turn) != input->head + 1) return false;
    *out = (waiting){.event = at->event, .arrival = input->head & ARRIVAL_MASK};
    // Read by the acquire load in nb_input_send: the copy above must be done before the place is given away.
    nbi_atomic_store_release_u64(&at->turn, input->head + input->count_max);
    ++input->head;
    return true;
}

static bool is_before(const waiting *a, const waiting *b) {
    if (a->event.timestamp_ns != b->event.timestamp_ns) return a->event.timestamp_ns < b->event.timestamp_ns;
    return a->arrival < b->arrival;
}

static void heap_push(nb_input *input, const waiting *added) {
    uint32_t hole = input->waiting_count++;
    while (hole > 0 && is_before(added, &input->heap[(hole - 1) / 2])) {
        input->heap[hole] = input->heap[(hole - 1) / 2];
        hole = (hole - 1) / 2;
    }
    input->heap[hole] = *added;
}

static void heap_pop(nb_input *input) {
    uint32_t count = --input->waiting_count, hole = 0;
    const waiting last = input->heap[count];
    for (uint32_t child = 1; child < count; child = 2 * hole + 1) {
        if (child + 1 < count && is_before(&input->heap[child + 1], &input->heap[child])) ++child;
        if (!is_before(&input->heap[child], &last)) break;
        input->heap[hole] = input->heap[child];
        hole = child;
    }
    input->heap[hole] = last;
}

static void show_to_frame(nb_input *input, const nb_input_event *event) {
    if (!input->has_frame_views) return;
    if (input->frame_count == input->count_max) {
        ++input->frame_missed_count;
        return;
    }
    input->frame_events[input->frame_count++] = *event;
}

void nbi_input_fold_set(nb_input *input, nbi_input_fold fold) { input->fold = fold; }

static void fold(nb_input *input, const waiting *received) {
    ++input->folded_count;
    if (nbi_is_button(&received->event)) nbi_held_fold(&input->held, &received->event, received->arrival);
}

// Bounded, so senders that never stop cannot hold the frame up.
static void drain(nb_input *input) {
    waiting received;
    for (uint32_t i = 0; i < input->count_max; ++i) {
        bool is_full = input->waiting_count >= input->count_max;
        bool is_folded = input->fold == NBI_INPUT_FOLD_ALL || (input->fold == NBI_INPUT_FOLD_EXCESS && is_full);
        if ((is_full && !is_folded) || !receive(input, &received)) return;
        show_to_frame(input, &received.event);
        if (is_folded)
            fold(input, &received);
        else
            heap_push(input, &received);
    }
}

// Puts what folded events come to among the events that wait: their order decides whether it still is a change. All of
// it is due, so there is room for it.
static void unfold(nb_input *input, uint64_t until_ns) {
    nbi_held_button button;
    while (until_ns > 0 && nbi_held_take(&input->held, &button)) {
        waiting net = {.event = {.timestamp_ns = nbi_min_u64(button.timestamp_ns, until_ns - 1),
                                 .kind = button.is_pressed ? NB_INPUT_PRESS : NB_INPUT_RELEASE,
                                 .device = button.device,
                                 .code = button.code},
                       .arrival = button.arrival & ARRIVAL_MASK,
                       .is_net = true};
        heap_push(input, &net);
    }
}

nb_result nb_input_begin_frame(nb_input *input, nb_input_view *view) {
    if (input == NULL) return NBI_FAIL_NULL("input");
    if (view == NULL) return NBI_FAIL(&input->hooks, NB_ITEM_INPUT_ARGUMENT, NB_ERR_MISUSE, "view is NULL");
    // What the ticks of the frame before received comes first: no frame has shown it yet.
    uint32_t unseen_count = input->frame_count - input->frame_seen_count;
    memmove(input->frame_events, input->frame_events + input->frame_seen_count,
            unseen_count * sizeof *input->frame_events);
    input->frame_count = unseen_count;
    input->has_frame_views = true;
    drain(input);
    input->frame_seen_count = input->frame_count;
    view->count = input->frame_count;
    view->events = view->count > 0 ? input->frame_events : NULL;
    return NB_OK;
}

// Whether the tick gets it.
static bool deliver(nb_input *input, const waiting *next) {
    if (next->is_net && !nbi_held_is_change(&input->held, &next->event)) return false;
    if (nbi_is_button(&next->event)) nbi_held_deliver(&input->held, &next->event);
    ++*(next->is_net ? &input->net_count : &input->delivered_count);
    if (!next->is_net && next->event.timestamp_ns < input->slice_end_ns) ++input->late_count;
    return true;
}

// Moves events from before until_ns, or all, to the end of the tick's list and returns its length, which was `count`.
static uint32_t take_due(nb_input *input, uint64_t until_ns, bool is_all, uint32_t count) {
    while (input->waiting_count > 0) {
        const waiting next = input->heap[0];
        if (next.event.timestamp_ns >= until_ns && !is_all) break;
        heap_pop(input);
        if (deliver(input, &next)) input->tick_events[count++] = next.event;
    }
    return count;
}

nb_result nb_input_take_tick(nb_input *input, uint64_t until_ns, nb_input_view *view) {
    if (input == NULL) return NBI_FAIL_NULL("input");
    if (view == NULL) return NBI_FAIL(&input->hooks, NB_ITEM_INPUT_ARGUMENT, NB_ERR_MISUSE, "view is NULL");
    // Once: what a full heap leaves in the ring may be older than what is handed out, and would break the order.
    drain(input);
    unfold(input, until_ns);
    uint32_t count = take_due(input, until_ns, false, 0);
    // A heap full of events with times to come would shut out what is in the ring behind it: then all of them are due.
    bool is_full = input->waiting_count == input->count_max;
    if (is_full && nbi_atomic_load_relaxed_u64(&input->tail) != input->head) {
        uint32_t due_count = count;
        count = take_due(input, until_ns, true, due_count);
        input->early_count += count - due_count;
    }
    input->slice_end_ns = until_ns == UINT64_MAX ? 0 : until_ns; // nothing is late for a slice without an end
    view->count = count;
    view->events = count > 0 ? input->tick_events : NULL;
    return NB_OK;
}

nb_result nb_input_discard(nb_input *input) {
    if (input == NULL) return NBI_FAIL_NULL("input");
    input->discarded_count += input->waiting_count;
    input->waiting_count = 0;
    waiting received;
    // At most one ring: what is sent meanwhile stays. Frames have not seen these events yet: a key that was released
    // must not stay down for what listens to frames.
    for (uint32_t i = 0; i < input->count_max && receive(input, &received); ++i) {
        show_to_frame(input, &received.event);
        ++input->discarded_count;
    }
    return NB_OK;
}

void nbi_input_restart(nb_input *input) {
    nb_input_discard(input);
    nbi_held_mark_unsure(&input->held);
}

nb_input_stats nb_input_stats_get(const nb_input *input) {
    if (input == NULL) {
        NBI_FAIL_NULL("input");
        return (nb_input_stats){0};
    }
    uint64_t sent_count = nbi_atomic_load_acquire_u64(&input->tail);
    return (nb_input_stats){
        .sent_count = sent_count,
        .full_count = nbi_atomic_load_acquire_u64(&input->full_count),
        .delivered_count = input->delivered_count,
        .discarded_count = input->discarded_count,
        .waiting_count = sent_count - input->delivered_count - input->discarded_count - input->folded_count,
        .late_count = input->late_count,
        .early_count = input->early_count,
        .frame_missed_count = input->frame_missed_count,
        .folded_count = input->folded_count,
        .net_count = input->net_count,
        .lost_button_count = input->held.lost_count,
    };
}
