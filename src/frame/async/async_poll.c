// SPDX-License-Identifier: MIT
// The coordinator's side: results are taken in, prepared within budgets, made visible a frame later, or thrown away.

#include "async.h"

// --- who may ---

// One thread at a time, and no callback inside a callback.
static nb_result enter(nb_async *async, const char *function) {
    uint64_t self = nbi_thread_id(), id = 0;
    if (nbi_atomic_compare_exchange_acquire_u64(&async->coordinator_id, &id, self)) return NB_OK;
    bool is_inside = id == self;
    return nbi_fail(&async->desc.hooks, is_inside ? NB_ITEM_ASYNC_ARGUMENT : NB_ITEM_ASYNC_THREAD,
                    is_inside ? NB_ERR_MISUSE : NB_ERR_THREAD, function, "%s",
                    is_inside ? "called from a callback of its own" : "another thread is at it");
}

static void leave(nb_async *async) {
    // Read by the acquire exchange in enter: the next coordinator finds what this one left.
    nbi_atomic_store_release_u64(&async->coordinator_id, 0);
}

// --- the end of a job ---

// The only function that publishes or discards. A cancel that comes before the move to ENDING decides; one that comes
// after it is refused.
static void end_job(nb_async *async, nbi_async_slot *slot, void *host, nb_result reason) {
    uint64_t before = nbi_async_state_set(slot, NBI_ASYNC_ENDING);
    if (reason == NB_OK && (before & NBI_ASYNC_CANCELLED) != 0) reason = NB_CANCELLED;
    const nb_async_job_desc *desc = &slot->desc;
    nbi_owner *owner = nbi_async_enter(slot);
    if (reason == NB_OK) {
        nbi_async_count_alone(&async->publish_count, 1);
        if (desc->publish != NULL) desc->publish(host, nbi_async_payload(slot));
    } else {
        nbi_async_count_alone(&async->discard_count, 1);
        nbi_async_count_alone(reason == NB_CANCELLED   ? &async->cancel_count
                              : reason == NB_ERR_STALE ? &async->unwanted_count
                                                       : &async->fail_count,
                              1);
        if (desc->discard != NULL) desc->discard(host, nbi_async_payload(slot), reason);
    }
    nbi_owner_leave(owner);
    nb_token_release(desc->token);
    nbi_async_free(async, slot);
}

// NB_OK: its result is still to be used.
static nb_result judge(const nb_async *async, nbi_async_slot *slot) {
    if (slot->result != NB_OK) return slot->result;
    if (nbi_async_is_stopped(async, slot)) return NB_CANCELLED;
    const nb_async_job_desc *desc = &slot->desc;
    nbi_owner *owner = nbi_async_enter(slot);
    bool is_wanted = desc->is_wanted == NULL || desc->is_wanted(desc->user, desc->generation, nbi_async_payload(slot));
    nbi_owner_leave(owner);
    return is_wanted ? NB_OK : NB_ERR_STALE;
}

// --- heaps ---

static bool is_before(const nbi_async_slot *a, const nbi_async_slot *b) {
    if (a->desc.priority != b->desc.priority) return a->desc.priority > b->desc.priority;
    return a->sequence < b->sequence;
}

static bool is_index_before(const nb_async *async, uint32_t a, uint32_t b) {
    return is_before(nbi_async_slot_at(async, a), nbi_async_slot_at(async, b));
}

static void heap_push(const nb_async *async, nbi_async_heap *heap, uint32_t index) {
    uint32_t at = heap->count++;
    for (; at > 0 && is_index_before(async, index, heap->slots[(at - 1) / 2]); at = (at - 1) / 2) {
        heap->slots[at] = heap->slots[(at - 1) / 2];
    }
    heap->slots[at] = index;
}

static uint32_t heap_pop(const nb_async *async, nbi_async_heap *heap) {
    uint32_t top = heap->slots[0], last = heap->slots[--heap->count], at = 0;
    for (uint32_t child = 1; child < heap->count; child = 2 * at + 1) {
        bool is_right = child + 1 < heap->count && is_index_before(async, heap->slots[child + 1], heap->slots[child]);
        if (is_right) ++child;
        if (is_index_before(async, last, heap->slots[child])) break;
        heap->slots[at] = heap->slots[child];
        at = child;
    }
    heap->slots[at] = last;
    return top;
}

// --- the inbox ---

// The oldest first: slot + 1, linked by `next`.
static uint32_t take_inbox(nb_async *async) {
    // Pairs with the exchange in nbi_async_hand_over.
    uint32_t link = nbi_atomic_exchange_seq_cst_u32(&async->inbox, 0) & ~NBI_ASYNC_INBOX_WAITED, first = 0;
    while (link != 0) {
        nbi_async_slot *slot = nbi_async_slot_at(async, link - 1);
        uint32_t next = slot->next;
        slot->next = first;
        first = link;
        link = next;
    }
    return first;
}

static void accept_inbox(nb_async *async, void *host) {
    uint32_t next = 0;
    for (uint32_t link = take_inbox(async); link != 0; link = next) {
        nbi_async_slot *slot = nbi_async_slot_at(async, link - 1);
        next = slot->next;
        nbi_async_slot_state state = nbi_async_slot_state_of(nbi_atomic_load_acquire_u64(&slot->word));
        if (state == NBI_ASYNC_PAUSED && !nbi_async_is_stopped(async, slot)) {
            nbi_async_enqueue(async, slot);
        } else if (state == NBI_ASYNC_PAUSED) {
            end_job(async, slot, host, NB_CANCELLED);
        } else if (slot->result != NB_OK) {
            end_job(async, slot, host, slot->result);
        } else {
            heap_push(async, &async->heaps[slot->desc.budget_class], link - 1);
        }
    }
}

// --- poll ---

// How far one poll has come with a class.
typedef struct account {
    uint64_t budget_ns, spent_ns;
    uint32_t commit_count;
} account;

static void commit_one(nb_async *async, nbi_async_slot *slot, void *host, account *taken) {
    nb_result reason = judge(async, slot);
    if (reason == NB_OK) {
        ++taken->commit_count;
        nbi_owner *owner = nbi_async_enter(slot);
        if (slot->desc.commit != NULL) reason = slot->desc.commit(host, nbi_async_payload(slot));
        nbi_owner_leave(owner);
    }
    if (reason != NB_OK) {
        end_job(async, slot, host, reason);
        return;
    }
    nbi_async_count_alone(&async->commit_count, 1);
    nbi_async_state_set(slot, NBI_ASYNC_STAGED);
    async->staged[async->staged_count++] = nbi_async_index(async, slot);
}

// The class whose next job comes first, of those with time left; 0 = none. One commit is always possible, or a class
// whose commits take longer than its budget would never advance.
static uint32_t next_class(const nb_async *async, const account *accounts) {
    uint32_t best = 0;
    for (uint32_t i = 1; i < NB_ASYNC_CLASS_COUNT; ++i) {
        bool has_time = accounts[i].commit_count == 0 || accounts[i].spent_ns < accounts[i].budget_ns;
        if (async->heaps[i].count == 0 || !has_time) continue;
        if (best == 0 || is_index_before(async, async->heaps[i].slots[0], async->heaps[best].slots[0])) best = i;
    }
    return best;
}

static void commit_all(nb_async *async, const nb_async_frame *frame) {
    account accounts[NB_ASYNC_CLASS_COUNT] = {{0, 0, 0}};
    uint64_t factor = frame->is_blind ? NB_ASYNC_BLIND_FACTOR : 1;
    for (uint32_t i = 1; i < NB_ASYNC_CLASS_COUNT; ++i) {
        uint64_t budget_ns = async->budgets_ns[i];
        accounts[i].budget_ns = budget_ns > UINT64_MAX / factor ? UINT64_MAX : budget_ns * factor;
        if (frame->budgets_ns[i] != 0) accounts[i].budget_ns = frame->budgets_ns[i];
    }
    uint64_t now_ns = nb_clock_now_ns(&async->desc.clock);
    for (uint32_t class = next_class(async, accounts); class != 0; class = next_class(async, accounts)) {
        uint32_t index = heap_pop(async, &async->heaps[class]);
        commit_one(async, nbi_async_slot_at(async, index), frame->host, &accounts[class]);
        uint64_t start_ns = now_ns;
        now_ns = nb_clock_now_ns(&async->desc.clock);
        accounts[class].spent_ns += now_ns > start_ns ? now_ns - start_ns : 0; // an injected clock may step back
    }
    for (uint32_t i = 1; i < NB_ASYNC_CLASS_COUNT; ++i) {
        nbi_async_count_alone(&async->defer_count, async->heaps[i].count);
        if (accounts[i].spent_ns > accounts[i].budget_ns) nbi_async_count_alone(&async->overrun_count, 1);
    }
}

static const nb_async_frame no_frame = {.host = NULL};

nb_result nb_async_poll(nb_async *async, const nb_async_frame *frame) {
    if (async == NULL) return NBI_FAIL_NULL("async");
    nb_result result = enter(async, __func__);
    if (result != NB_OK) return result;
    if (frame == NULL) frame = &no_frame;
    nbi_atomic_store_relaxed_u64(&async->frame_index, frame->frame_index);
    nbi_async_catch_up(async);
    if (async->is_alone) nb_scheduler_help(async->desc.scheduler, NB_ASYNC_HELP_NS, NULL);
    accept_inbox(async, frame->host);
    commit_all(async, frame);
    leave(async);
    return NB_OK;
}

// --- publish ---

static void publish_all(nb_async *async, void *host) {
    // What a callback of this loop submits is not staged before the next poll.
    for (uint32_t i = 0; i < async->staged_count; ++i) {
        nbi_async_slot *slot = nbi_async_slot_at(async, async->staged[i]);
        end_job(async, slot, host, judge(async, slot));
    }
    async->staged_count = 0;
}

nb_result nb_async_publish(nb_async *async, const nb_async_frame *frame) {
    if (async == NULL) return NBI_FAIL_NULL("async");
    nb_result result = enter(async, __func__);
    if (result != NB_OK) return result;
    publish_all(async, frame != NULL ? frame->host : NULL);
    leave(async);
    return NB_OK;
}

// --- drain ---

// Whatever was accepted before is found and marked, whatever comes later is refused: a job is accepted under the same
// lock. What is marked is never queued again.
static void close_and_cancel(nb_async *async) {
    nbi_lock_acquire(&async->lock);
    async->is_closed = true;
    nbi_lock_release(&async->lock);
    nb_async_cancel_all(async, NULL);
    // A job that was queued before it was marked, perhaps by another thread, may be half-way into its queue: its runner
    // is to be counted before end_runners looks.
    nbi_lock_acquire(&async->lock);
    nbi_lock_release(&async->lock);
}

// Everything that the coordinator has, or has been given. All of it is cancelled.
static void discard_all(nb_async *async, void *host) {
    accept_inbox(async, host);
    for (uint32_t i = 1; i < NB_ASYNC_CLASS_COUNT; ++i) {
        while (async->heaps[i].count != 0) {
            uint32_t index = heap_pop(async, &async->heaps[i]);
            end_job(async, nbi_async_slot_at(async, index), host, NB_CANCELLED);
        }
    }
    publish_all(async, host);
}

static bool is_late(uint64_t deadline_ns) { return deadline_ns != NB_NEVER_NS && nbi_clock_now_ns() >= deadline_ns; }

// Waits for all runners, helping; NB_OK: no thread of the scheduler is inside this code any more, nor will be.
static nb_result end_runners(nb_async *async, uint64_t deadline_ns) {
    if (async->group.value == 0) return NB_OK;
    // A few instructions of other threads, which have passed the closed gate before it was closed.
    while (nbi_atomic_load_seq_cst_u32(&async->submitting_count) != 0) {
        if (is_late(deadline_ns)) return NB_TIMEOUT;
        nbi_thread_yield();
    }
    nb_result result = nb_group_end(async->desc.scheduler, async->group, deadline_ns);
    if (result == NB_TIMEOUT || result == NB_ERR_DEADLOCK) return result;
    async->group.value = 0;
    for (uint32_t i = 0; i < NB_PRIORITY_COUNT; ++i) async->runner_count[i] = 0; // a stopped scheduler ran none
    return NB_OK;
}

void nbi_async_await_inbox(nb_async *async, uint64_t deadline_ns) {
    uint32_t empty = 0;
    // Not empty, or waited for already: the park finds out.
    nbi_atomic_compare_exchange_seq_cst_u32(&async->inbox, &empty, NBI_ASYNC_INBOX_WAITED);
    nbi_park_until(&async->inbox, NBI_ASYNC_INBOX_WAITED, deadline_ns);
}

static void report_stuck(const nb_async *async, const char *function) {
    for (uint32_t i = 0; i < async->desc.job_count_max; ++i) {
        const nbi_async_slot *slot = nbi_async_slot_at(async, i);
        nbi_async_slot_state state = nbi_async_slot_state_of(nbi_atomic_load_acquire_u64(&slot->word));
        if (state == NBI_ASYNC_FREE) continue;
        char number[NBI_LABEL_NUMBER_SIZE];
        nbi_log(&async->desc.hooks, NB_LOG_ERROR, NB_ITEM_ASYNC_STUCK, function, "async job \"%s\" has not stopped: %s",
                nbi_label_text(async->desc.labels, slot->desc.label, number),
                state == NBI_ASYNC_IO_RUNNING ? "it is in a blocking call" : "it is in a step");
    }
}

nb_result nb_async_drain(nb_async *async, const nb_async_frame *frame, uint64_t deadline_ns) {
    if (async == NULL) return NBI_FAIL_NULL("async");
    return nbi_async_drain(async, frame, deadline_ns, __func__);
}

nb_result nbi_async_drain(nb_async *async, const nb_async_frame *frame, uint64_t deadline_ns, const char *function) {
    nb_result result = enter(async, function);
    if (result != NB_OK) return result;
    void *host = frame != NULL ? frame->host : NULL;
    close_and_cancel(async);
    result = end_runners(async, deadline_ns);
    while (result != NB_ERR_DEADLOCK) { // a thread inside a step is no coordinator, and discards nothing
        discard_all(async, host);
        bool is_empty = nbi_atomic_load_relaxed_u32(&async->live_count) == 0;
        // A runner may be left, but nothing for it to run.
        if (is_empty && result == NB_TIMEOUT) result = NB_OK;
        if (is_empty) break;
        if (is_late(deadline_ns)) {
            result = NB_TIMEOUT;
            break;
        }
        nbi_async_await_inbox(async, deadline_ns);
    }
    if (result == NB_TIMEOUT) report_stuck(async, function);
    leave(async);
    return result;
}

nb_result nb_async_reopen(nb_async *async) {
    if (async == NULL) return NBI_FAIL_NULL("async");
    nb_result result = enter(async, __func__);
    if (result != NB_OK) return result;
    bool is_drained = async->is_closed && nbi_atomic_load_relaxed_u32(&async->live_count) == 0;
    result = is_drained ? end_runners(async, NB_NEVER_NS) : NB_BUSY;
    if (result == NB_OK) result = nb_group_begin(async->desc.scheduler, &async->group);
    if (result == NB_OK) {
        nbi_lock_acquire(&async->lock);
        async->is_closed = false;
        nbi_lock_release(&async->lock);
    }
    leave(async);
    return result;
}
