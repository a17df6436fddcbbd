// SPDX-License-Identifier: MIT
// Jobs that span many frames: making, submitting, cancelling, asking.
//
// The protocol. Each slot has one word {generation, cancelled, state}. The state says who owns the job, and only the
// owner changes it: the queue it is in (so whoever holds the lock and takes it out), the thread that runs its step or
// its blocking call, the coordinator. Anybody else may do one thing, set `cancelled`, by the same compare-and-exchange
// that checks the generation. An owner that wants to go on (queue the job again, pause it, publish it) moves the word
// only if it is not cancelled; otherwise it ends the job. So a cancel is either seen by the next move, or comes after
// the move to ENDING and is told that it is too late: there is no moment at which both believe to have won.
//
// Jobs that wait for a thread are in queues of our own, in order of arrival; the scheduler gets anonymous runner tasks,
// one for each queued job, that take the oldest. A cancelled job therefore leaves its queue at once and the runner
// finds another or none, and a job that yields goes behind the others. A runner that the scheduler has no room for is
// submitted by the next poll. All runners are in one group: its end is how drain and destroy know that no thread is
// inside this code any more.
//
// Ended and paused jobs go to the coordinator over the inbox, a stack that is taken whole. There is room for every
// job in it, the slot's own link, so nothing is ever dropped. Who drains sleeps on the inbox's word, with a bit set in
// it: a push sees the bit in the word that it replaces, so no other word has to be agreed on.

#include "async.h"

#include <string.h>

#define REFUSE(async, result, ...) NBI_FAIL(&(async)->desc.hooks, NB_ITEM_ASYNC_ARGUMENT, (result), __VA_ARGS__)

// --- the word ---

static uint64_t word_at(uint64_t word, nbi_async_slot_state state) {
    return (word & ~NBI_ASYNC_STATE_MASK) | (uint64_t)state;
}

uint64_t nbi_async_state_set(nbi_async_slot *slot, nbi_async_slot_state state) {
    uint64_t word = nbi_atomic_load_relaxed_u64(&slot->word);
    while (!nbi_atomic_compare_exchange_seq_cst_u64(&slot->word, &word, word_at(word, state))) continue;
    return word;
}

bool nbi_async_state_advance(nbi_async_slot *slot, nbi_async_slot_state state) {
    uint64_t word = nbi_atomic_load_relaxed_u64(&slot->word);
    do {
        if ((word & NBI_ASYNC_CANCELLED) != 0) return false;
    } while (!nbi_atomic_compare_exchange_seq_cst_u64(&slot->word, &word, word_at(word, state)));
    return true;
}

bool nbi_async_mark_cancelled(nbi_async_slot *slot, uint32_t generation, uint64_t *before) {
    uint64_t word = nbi_atomic_load_acquire_u64(&slot->word);
    do {
        *before = word;
        nbi_async_slot_state state = nbi_async_slot_state_of(word);
        bool is_over = state == NBI_ASYNC_FREE || state == NBI_ASYNC_ENDING;
        if (is_over || (word & NBI_ASYNC_CANCELLED) != 0) return false;
        if (word >> NBI_ASYNC_GENERATION_SHIFT != generation) return false;
    } while (!nbi_atomic_compare_exchange_seq_cst_u64(&slot->word, &word, word | NBI_ASYNC_CANCELLED));
    return true;
}

bool nbi_async_is_stopped(const nb_async *async, const nbi_async_slot *slot) {
    return (nbi_atomic_load_acquire_u64(&slot->word) & NBI_ASYNC_CANCELLED) != 0 ||
           nb_token_is_cancelled(slot->desc.token) || nb_token_is_cancelled(async->desc.token);
}

// --- queues, under the lock ---

void nbi_async_append(nb_async *async, nbi_async_queue *queue, nbi_async_slot *slot) {
    uint32_t link = nbi_async_index(async, slot) + 1;
    slot->next = 0;
    slot->prior = queue->last;
    if (queue->last != 0)
        nbi_async_slot_at(async, queue->last - 1)->next = link;
    else
        queue->first = link;
    queue->last = link;
}

void nbi_async_prepend(nb_async *async, nbi_async_queue *queue, nbi_async_slot *slot) {
    uint32_t link = nbi_async_index(async, slot) + 1;
    slot->prior = 0;
    slot->next = queue->first;
    if (queue->first != 0)
        nbi_async_slot_at(async, queue->first - 1)->prior = link;
    else
        queue->last = link;
    queue->first = link;
}

void nbi_async_unlink(nb_async *async, nbi_async_queue *queue, nbi_async_slot *slot) {
    if (slot->prior != 0)
        nbi_async_slot_at(async, slot->prior - 1)->next = slot->next;
    else
        queue->first = slot->next;
    if (slot->next != 0)
        nbi_async_slot_at(async, slot->next - 1)->prior = slot->prior;
    else
        queue->last = slot->prior;
}

nbi_async_slot *nbi_async_take_ready(nb_async *async, uint32_t priority) {
    nbi_async_queue *queue = &async->ready[priority];
    if (queue->first == 0) return NULL;
    nbi_async_slot *slot = nbi_async_slot_at(async, queue->first - 1);
    nbi_async_unlink(async, queue, slot);
    --async->ready_count[priority];
    nbi_async_state_set(slot, NBI_ASYNC_RUNNING);
    return slot;
}

nbi_async_slot *nbi_async_take_io(nb_async *async) {
    for (uint32_t priority = NB_PRIORITY_COUNT; priority-- > 0;) {
        nbi_async_queue *queue = &async->io[priority];
        if (queue->first == 0) continue;
        nbi_async_slot *slot = nbi_async_slot_at(async, queue->first - 1);
        nbi_async_unlink(async, queue, slot);
        nbi_async_state_set(slot, NBI_ASYNC_IO_RUNNING);
        return slot;
    }
    return NULL;
}

// --- the inbox ---

void nbi_async_hand_over(nb_async *async, nbi_async_slot *slot) {
    uint32_t link = nbi_async_index(async, slot) + 1;
    uint32_t head = nbi_atomic_load_relaxed_u32(&async->inbox);
    do {
        slot->next = head & ~NBI_ASYNC_INBOX_WAITED;
        // Publishes the job; read by the exchange in take_inbox. Takes the sleeper's bit away, and wakes it.
    } while (!nbi_atomic_compare_exchange_seq_cst_u32(&async->inbox, &head, link));
    if ((head & NBI_ASYNC_INBOX_WAITED) != 0) nbi_unpark(&async->inbox, UINT32_MAX);
}

void nbi_async_complete(nb_async *async, nbi_async_slot *slot, nb_result result) {
    slot->result = result;
    nbi_async_state_set(slot, NBI_ASYNC_DONE);
    nbi_async_hand_over(async, slot);
}

// --- creation ---

static const nbi_desc_number numbers[] = {
    NBI_NUMBER(nb_async_desc, job_count_max, NB_ASYNC_JOB_COUNT_DEFAULT, 1, NB_ASYNC_JOB_COUNT_MAX),
    NBI_NUMBER(nb_async_desc, state_bytes_max, NB_ASYNC_STATE_SIZE_DEFAULT, 1, NB_ASYNC_STATE_SIZE_MAX),
    NBI_NUMBER(nb_async_desc, io_thread_count, NB_ASYNC_IO_THREAD_COUNT_DEFAULT, 1, NB_ASYNC_IO_THREAD_COUNT_MAX),
    NBI_NUMBER(nb_async_desc, budget_generation_ns, NB_ASYNC_BUDGET_GENERATION_NS_DEFAULT, 1, UINT64_MAX),
    NBI_NUMBER(nb_async_desc, budget_meshing_ns, NB_ASYNC_BUDGET_MESHING_NS_DEFAULT, 1, UINT64_MAX),
    NBI_NUMBER(nb_async_desc, budget_other_ns, NB_ASYNC_BUDGET_OTHER_NS_DEFAULT, 1, UINT64_MAX),
};
const nbi_desc_rules nbi_async_rules = NBI_RULES(nb_async_desc, numbers);

nb_async_desc nb_async_desc_default(void) {
    nb_async_desc desc = {.hooks = nb_hooks_default()};
    nbi_desc_fill(&nbi_async_rules, &desc);
    return desc;
}

nb_async_job_desc nb_async_job_desc_default(void) {
    return (nb_async_job_desc){.priority = NB_PRIORITY_NORMAL, .budget_class = NB_ASYNC_CLASS_OTHER};
}

static nb_result check_desc(const nb_async_desc *desc, const char *function) {
    nbi_desc_place place = {&desc->hooks, NB_ITEM_ASYNC_ARGUMENT, function, NULL};
    if (desc->scheduler == NULL)
        return nbi_fail(&desc->hooks, NB_ITEM_ASYNC_ARGUMENT, NB_ERR_MISUSE, function, "scheduler is NULL");
    return nbi_desc_check(&nbi_async_rules, desc, &place);
}

// Heaps of three classes, and what is staged.
#define INDEX_ARRAY_COUNT ((size_t)NB_ASYNC_CLASS_COUNT)

static size_t round_up(size_t size_bytes) { return (size_bytes + NB_CACHE_LINE - 1) / NB_CACHE_LINE * NB_CACHE_LINE; }

// In one piece: the struct, the arrays of indices, the slots.
static nb_async *async_alloc(const nb_async_desc *desc) {
    // No overflow: the limits of check_desc keep each factor small, and their product below 2^38.
    size_t slot_size_bytes = NBI_ASYNC_HEADER_SIZE + round_up(desc->state_bytes_max);
    size_t arrays_bytes = round_up(INDEX_ARRAY_COUNT * desc->job_count_max * sizeof(uint32_t));
    size_t head_bytes = round_up(sizeof(nb_async)), slots_bytes = 0, size_bytes = 0;
    bool is_small = nbi_size_mul(slot_size_bytes, desc->job_count_max, &slots_bytes) &&
                    nbi_size_add(head_bytes + arrays_bytes, slots_bytes, &size_bytes);
    if (!is_small) return NULL;
    nb_async *async = nbi_alloc(&desc->hooks, size_bytes, NB_CACHE_LINE, "nb_async_create");
    if (async == NULL) return NULL;
    memset(async, 0, size_bytes);
    async->desc = *desc;
    async->size_bytes = size_bytes;
    async->is_alone = nb_scheduler_stats_get(desc->scheduler).worker_count == 0;
    async->slot_size_bytes = slot_size_bytes;
    uint32_t *indices = (uint32_t *)(void *)((unsigned char *)async + head_bytes);
    async->staged = indices;
    for (uint32_t i = 1; i < NB_ASYNC_CLASS_COUNT; ++i) async->heaps[i].slots = indices + i * desc->job_count_max;
    async->slots = (unsigned char *)async + head_bytes + arrays_bytes;
    return async;
}

nb_result nbi_async_create(const nb_async_desc *given, const char *function, nb_async **out) {
    nb_async_desc desc = *given;
    desc.hooks = nbi_hooks_resolve(&desc.hooks);
    nbi_desc_fill(&nbi_async_rules, &desc);
    if (out == NULL) return nbi_fail(&desc.hooks, NB_ITEM_ASYNC_ARGUMENT, NB_ERR_MISUSE, function, "out is NULL");
    nb_result result = check_desc(&desc, function);
    if (result != NB_OK) return result;
    nb_async *async = async_alloc(&desc);
    if (async == NULL) return NB_ERR_MEMORY;
    async->budgets_ns[NB_ASYNC_CLASS_GENERATION] = desc.budget_generation_ns;
    async->budgets_ns[NB_ASYNC_CLASS_MESHING] = desc.budget_meshing_ns;
    async->budgets_ns[NB_ASYNC_CLASS_OTHER] = desc.budget_other_ns;
    for (uint32_t i = desc.job_count_max; i-- > 0;) {
        nbi_async_slot *slot = nbi_async_slot_at(async, i);
        slot->word.value = (uint64_t)1 << NBI_ASYNC_GENERATION_SHIFT;
        slot->next = async->first_free;
        async->first_free = i + 1;
    }
    result = nb_group_begin(desc.scheduler, &async->group);
    if (result != NB_OK) {
        nbi_free(&desc.hooks, async, async->size_bytes);
        return result;
    }
    *out = async;
    return NB_OK;
}

nb_result nb_async_create(const nb_async_desc *desc, nb_async **out) {
    return desc != NULL ? nbi_async_create(desc, __func__, out) : NBI_FAIL_NULL("desc");
}

// --- submitting ---

#define SUBMIT "nb_async_submit"

// What is wrong with a job; NULL = nothing but perhaps its size.
static const char *job_problem(const nb_async_job_desc *desc) {
    if (desc == NULL) return "desc is NULL";
    if (desc->step == NULL) return "there is no step";
    if (desc->state == NULL && desc->state_size_bytes != 0) return "state is NULL and has a size";
    if ((uint32_t)desc->priority >= NB_PRIORITY_COUNT || (uint32_t)desc->budget_class >= NB_ASYNC_CLASS_COUNT)
        return "priority or class does not exist";
    return NULL;
}

static nb_result check_job(nb_async *async, const nb_async_job_desc *desc) {
    const char *problem = job_problem(desc);
    if (problem == NULL && desc->state_size_bytes <= async->desc.state_bytes_max) return NB_OK;
    char number[NBI_LABEL_NUMBER_SIZE];
    nb_label label = desc != NULL ? desc->label : (nb_label){0};
    const char *name = label.id != 0 ? nbi_label_text(async->desc.labels, label, number) : "";
    uint64_t mistake = (uint64_t)(uintptr_t)problem ^ (uint64_t)label.id << 32;
    if (desc != NULL)
        mistake ^= (uint64_t)(uint32_t)desc->priority << 24 ^ (uint64_t)(uint32_t)desc->budget_class << 40;
    if (problem != NULL)
        return nbi_fail_throttled(&async->desc.hooks, &async->throttle, mistake, NB_ITEM_ASYNC_ARGUMENT, NB_ERR_MISUSE,
                                  SUBMIT, "async job \"%s\": %s", name, problem);
    mistake ^= desc->state_size_bytes;
    return nbi_fail_throttled(&async->desc.hooks, &async->throttle, mistake, NB_ITEM_ASYNC_ARGUMENT, NB_ERR_RANGE,
                              SUBMIT,
                              "async job \"%s\": state of %zu bytes, %zu at most; raise "
                              "nb_async_desc.state_bytes_max",
                              name, desc->state_size_bytes, async->desc.state_bytes_max);
}

static void fill_slot(nb_async *async, nbi_async_slot *slot, const nb_async_job_desc *desc) {
    slot->desc = *desc;
    slot->desc.state = NULL;
    if (desc->priority == NB_PRIORITY_DEFAULT) slot->desc.priority = NB_PRIORITY_NORMAL;
    if (desc->budget_class == NB_ASYNC_CLASS_DEFAULT) slot->desc.budget_class = NB_ASYNC_CLASS_OTHER;
    slot->sequence = async->sequence++;
    slot->step = 0;
    slot->result = NB_OK;
    slot->io_run = NULL;
    slot->io_argument = NULL;
    nbi_atomic_store_relaxed_ptr(&slot->owner, nbi_owner_take(NBI_OWNED_ASYNC_JOB));
    unsigned char *state = nbi_async_payload(slot);
    if (desc->state_size_bytes != 0) memcpy(state, desc->state, desc->state_size_bytes);
    memset(state + desc->state_size_bytes, 0, async->desc.state_bytes_max - desc->state_size_bytes);
}

// Under the lock. NULL: no slot is free.
static nbi_async_slot *slot_alloc(nb_async *async) {
    if (async->first_free == 0) return NULL;
    nbi_async_slot *slot = nbi_async_slot_at(async, async->first_free - 1);
    async->first_free = slot->next;
    // Only written under the lock, so the peak needs no exchange.
    uint32_t live_count = nbi_atomic_fetch_add_relaxed_u32(&async->live_count, 1) + 1;
    if (live_count > nbi_atomic_load_relaxed_u64(&async->live_peak_count)) {
        nbi_atomic_store_relaxed_u64(&async->live_peak_count, live_count);
    }
    return slot;
}

void nbi_async_free(nb_async *async, nbi_async_slot *slot) {
    uint64_t generation = (nbi_atomic_load_relaxed_u64(&slot->word) >> NBI_ASYNC_GENERATION_SHIFT) + 1;
    if (generation > UINT32_MAX) generation = 1; // 0 would make a null handle
    nbi_owner *owner = nbi_atomic_load_relaxed_ptr(&slot->owner);
    nbi_lock_acquire(&async->lock);
    // A plain store: in ENDING the word is the coordinator's alone. Read by the acquire loads of who holds a handle.
    nbi_atomic_store_release_u64(&slot->word, generation << NBI_ASYNC_GENERATION_SHIFT);
    slot->next = async->first_free;
    async->first_free = nbi_async_index(async, slot) + 1;
    nbi_atomic_fetch_sub_relaxed_u32(&async->live_count, 1);
    nbi_lock_release(&async->lock);
    nbi_owner_give(owner, NBI_OWNED_ASYNC_JOB);
}

// Takes a slot and queues the job in it, in one section: drain closes under the same lock, so it finds every job that
// was accepted.
static nb_result accept(nb_async *async, const nb_async_job_desc *desc, nb_async_job *job, bool *needs_runner) {
    nb_result result = NB_CLOSED;
    nbi_lock_acquire(&async->lock);
    nbi_async_slot *slot = async->is_closed ? NULL : slot_alloc(async);
    if (slot != NULL) {
        fill_slot(async, slot, desc);
        uint32_t priority = (uint32_t)slot->desc.priority;
        uint64_t word = nbi_atomic_load_relaxed_u64(&slot->word);
        if (job != NULL) job->value = word | (nbi_async_index(async, slot) + 1);
        nbi_async_state_set(slot, NBI_ASYNC_READY);
        nbi_async_append(async, &async->ready[priority], slot);
        ++async->ready_count[priority];
        *needs_runner = nbi_async_needs_runner(async, priority);
        nbi_async_count_alone(&async->submit_count, 1);
        result = NB_OK;
    } else if (!async->is_closed) {
        result = NB_FULL;
    }
    nbi_lock_release(&async->lock);
    return result;
}

nb_result nb_async_submit(nb_async *async, const nb_async_job_desc *desc, nb_async_job *job) {
    if (async == NULL) return NBI_FAIL_NULL("async");
    nb_result result = check_job(async, desc);
    if (result != NB_OK) return result;
    if (nbi_owner_is_closed()) return NB_CLOSED;
    if (nb_token_is_cancelled(desc->token) || nb_token_is_cancelled(async->desc.token)) return NB_CANCELLED;
    if (desc->token != NULL && nb_token_retain(desc->token) == NULL) return NB_ERR_STALE;
    bool needs_runner = false;
    result = accept(async, desc, job, &needs_runner);
    if (result != NB_OK) {
        if (result == NB_FULL) nbi_async_count(&async->full_count);
        nb_token_release(desc->token);
        return result;
    }
    uint32_t priority = desc->priority != NB_PRIORITY_DEFAULT ? (uint32_t)desc->priority : NB_PRIORITY_NORMAL;
    if (needs_runner) nbi_async_run_more(async, priority);
    return NB_OK;
}

// --- cancelling ---

// A job that nobody has begun with is taken out of its queue. The generation tells it from a later one in its slot.
static void withdraw(nb_async *async, nbi_async_slot *slot, uint32_t generation) {
    nbi_lock_acquire(&async->lock);
    uint64_t word = nbi_atomic_load_relaxed_u64(&slot->word);
    nbi_async_slot_state state = nbi_async_slot_state_of(word);
    bool is_queued =
        word >> NBI_ASYNC_GENERATION_SHIFT == generation && (state == NBI_ASYNC_READY || state == NBI_ASYNC_IO_READY);
    if (is_queued) {
        uint32_t priority = (uint32_t)slot->desc.priority;
        bool is_io = state == NBI_ASYNC_IO_READY;
        nbi_async_unlink(async, is_io ? &async->io[priority] : &async->ready[priority], slot);
        if (!is_io) --async->ready_count[priority];
        nbi_async_state_set(slot, NBI_ASYNC_RUNNING); // here, so that nobody else finds it queued
    }
    nbi_lock_release(&async->lock);
    if (is_queued) nbi_async_complete(async, slot, NB_CANCELLED);
}

static bool cancel_slot(nb_async *async, nbi_async_slot *slot, uint32_t generation, uint64_t *before) {
    if (!nbi_async_mark_cancelled(slot, generation, before)) return false;
    nbi_async_slot_state state = nbi_async_slot_state_of(*before);
    if (state == NBI_ASYNC_READY || state == NBI_ASYNC_IO_READY) withdraw(async, slot, generation);
    return true;
}

// NULL: no such slot.
static nbi_async_slot *find_slot(const nb_async *async, nb_async_job job) {
    uint32_t link = (uint32_t)job.value;
    return link != 0 && link <= async->desc.job_count_max ? nbi_async_slot_at(async, link - 1) : NULL;
}

nb_result nb_async_cancel(nb_async *async, nb_async_job job) {
    if (async == NULL) return NBI_FAIL_NULL("async");
    nbi_async_slot *slot = find_slot(async, job);
    if (slot == NULL) return NB_EMPTY;
    uint32_t generation = (uint32_t)(job.value >> NBI_ASYNC_GENERATION_SHIFT);
    uint64_t before = 0;
    if (cancel_slot(async, slot, generation, &before)) return NB_OK;
    bool was_cancelled = before >> NBI_ASYNC_GENERATION_SHIFT == generation &&
                         nbi_async_slot_state_of(before) != NBI_ASYNC_ENDING && (before & NBI_ASYNC_CANCELLED) != 0;
    return was_cancelled ? NB_CANCELLED : NB_EMPTY;
}

nb_result nb_async_cancel_all(nb_async *async, uint32_t *count) {
    if (async == NULL) return NBI_FAIL_NULL("async");
    uint32_t cancelled_count = 0;
    for (uint32_t i = 0; i < async->desc.job_count_max; ++i) {
        nbi_async_slot *slot = nbi_async_slot_at(async, i);
        uint64_t word = nbi_atomic_load_acquire_u64(&slot->word), before = 0;
        if (cancel_slot(async, slot, (uint32_t)(word >> NBI_ASYNC_GENERATION_SHIFT), &before)) ++cancelled_count;
    }
    if (count != NULL) *count = cancelled_count;
    return NB_OK;
}

// --- questions ---

bool nb_async_should_stop(const nb_async_call *call) {
    if (call == NULL || call->async == NULL || call->slot == NULL) {
        NBI_FAIL_NULL("call");
        return false;
    }
    return nbi_async_is_stopped(call->async, call->slot);
}

nb_async_stage nb_async_stage_get(const nb_async *async, nb_async_job job) {
    static const nb_async_stage stages[] = {
        NB_ASYNC_STAGE_NONE, NB_ASYNC_STAGE_QUEUED, NB_ASYNC_STAGE_RUNNING, NB_ASYNC_STAGE_PAUSED, NB_ASYNC_STAGE_IO,
        NB_ASYNC_STAGE_IO,   NB_ASYNC_STAGE_DONE,   NB_ASYNC_STAGE_STAGED,  NB_ASYNC_STAGE_ENDING,
    };
    if (async == NULL) {
        NBI_FAIL_NULL("async");
        return NB_ASYNC_STAGE_NONE;
    }
    const nbi_async_slot *slot = find_slot(async, job);
    if (slot == NULL) return NB_ASYNC_STAGE_NONE;
    uint64_t word = nbi_atomic_load_acquire_u64(&slot->word);
    if (word >> NBI_ASYNC_GENERATION_SHIFT != job.value >> NBI_ASYNC_GENERATION_SHIFT) return NB_ASYNC_STAGE_NONE;
    return stages[nbi_async_slot_state_of(word)];
}

bool nbi_async_owned(const nb_async *async, const nbi_owner *owner, nb_label *label) {
    for (uint32_t i = 0; async != NULL && i < async->desc.job_count_max; ++i) {
        const nbi_async_slot *slot = nbi_async_slot_at(async, i);
        // The label is written before the word, by the thread that submits the job.
        nbi_async_slot_state state = nbi_async_slot_state_of(nbi_atomic_load_acquire_u64(&slot->word));
        if (state == NBI_ASYNC_FREE || nbi_atomic_load_relaxed_ptr(&slot->owner) != owner) continue;
        *label = slot->desc.label;
        return true;
    }
    return false;
}

bool nb_async_is_done(const nb_async *async, nb_async_job job) {
    return nb_async_stage_get(async, job) == NB_ASYNC_STAGE_NONE;
}

nb_async_stats nb_async_stats_get(const nb_async *async) {
    if (async == NULL) {
        NBI_FAIL_NULL("async");
        return (nb_async_stats){0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    }
    return (nb_async_stats){
        .submit_count = nbi_atomic_load_relaxed_u64(&async->submit_count),
        .full_count = nbi_atomic_load_relaxed_u64(&async->full_count),
        .resume_count = nbi_atomic_load_relaxed_u64(&async->resume_count),
        .complete_count = nbi_atomic_load_relaxed_u64(&async->complete_count),
        .commit_count = nbi_atomic_load_relaxed_u64(&async->commit_count),
        .publish_count = nbi_atomic_load_relaxed_u64(&async->publish_count),
        .discard_count = nbi_atomic_load_relaxed_u64(&async->discard_count),
        .cancel_count = nbi_atomic_load_relaxed_u64(&async->cancel_count),
        .fail_count = nbi_atomic_load_relaxed_u64(&async->fail_count),
        .unwanted_count = nbi_atomic_load_relaxed_u64(&async->unwanted_count),
        .defer_count = nbi_atomic_load_relaxed_u64(&async->defer_count),
        .overrun_count = nbi_atomic_load_relaxed_u64(&async->overrun_count),
        .io_count = nbi_atomic_load_relaxed_u64(&async->io_count),
        .stall_count = nbi_atomic_load_relaxed_u64(&async->stall_count),
        .live_count = nbi_atomic_load_relaxed_u32(&async->live_count),
        .live_peak_count = (uint32_t)nbi_atomic_load_relaxed_u64(&async->live_peak_count),
    };
}

// --- the end ---

nb_result nb_async_destroy(nb_async *async) {
    if (async == NULL) return NB_OK;
    uint32_t live_count = nbi_atomic_load_relaxed_u32(&async->live_count);
    if (live_count != 0) {
        return NBI_FAIL(&async->desc.hooks, NB_ITEM_ASYNC_BUSY, NB_BUSY, "%u jobs are alive", (unsigned)live_count);
    }
    nbi_async_io_stop(async);
    // Runners on their way out, and those whose jobs were cancelled: none of them runs anything of the caller's.
    if (async->group.value != 0) nb_group_end(async->desc.scheduler, async->group, NB_NEVER_NS);
    nb_hooks hooks = async->desc.hooks;
    nbi_free(&hooks, async, async->size_bytes);
    return NB_OK;
}
