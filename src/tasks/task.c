// SPDX-License-Identifier: MIT
// Tasks: submitted, claimed, run, ended.

#include "scheduler.h"

#include <string.h>

// --- pockets ---

// Takes a unit that the pocket has. False: it has none of this tally.
static bool pocket_take(nbi_pocket *pocket, const nbi_tally *tally) {
    if (pocket->tally != tally || pocket->count == 0) return false;
    --pocket->count;
    return true;
}

static void pocket_fill(nbi_pocket *pocket, nbi_tally *tally, uint32_t count) {
    nbi_pocket_empty(pocket);
    *pocket = (nbi_pocket){tally, count};
}

// --- what a task belongs to ---

// A task on its way in: what was taken for it, to be given back if it cannot be queued.
typedef struct entry {
    nbi_group *group;
    nbi_tally *frame_tally; // NULL = floating
    nb_fence *fence;
    nb_frame frame;
} entry;

static nb_result refuse(const nb_scheduler *scheduler, nb_log_item item, nb_result result, const char *what) {
    return nbi_fail(scheduler != NULL ? &scheduler->desc.hooks : NULL, item, result, "nb_task_submit", "%s", what);
}

static bool is_valid(const nb_task_desc *desc) {
    return desc != NULL && desc->run != NULL && desc->argument_size_bytes <= NB_TASK_ARGUMENT_SIZE_MAX &&
           (desc->argument != NULL || desc->argument_size_bytes == 0) &&
           (desc->dependencies != NULL || desc->dependency_count == 0) &&
           (uint32_t)desc->priority < NB_PRIORITY_COUNT && (uint32_t)desc->lifetime < NB_LIFETIME_COUNT;
}

static NB_NOINLINE nb_result refuse_desc(const nb_scheduler *scheduler, const nb_task_desc *desc) {
    if (scheduler == NULL) return refuse(NULL, NB_ITEM_BASE_NULL, NB_ERR_MISUSE, "scheduler is NULL");
    const char *what = "priority or lifetime does not exist";
    if (desc == NULL)
        what = "desc is NULL";
    else if (desc->run == NULL)
        what = "run is NULL";
    else if (desc->argument_size_bytes > NB_TASK_ARGUMENT_SIZE_MAX)
        return refuse(scheduler, NB_ITEM_TASK_ARGUMENT, NB_ERR_RANGE, "argument_size_bytes is over 80");
    else if (desc->argument == NULL && desc->argument_size_bytes != 0)
        what = "argument is NULL and has a size";
    else if (desc->dependencies == NULL && desc->dependency_count != 0)
        what = "dependencies is NULL and has a count";
    return refuse(scheduler, NB_ITEM_TASK_ARGUMENT, NB_ERR_MISUSE, what);
}

// A unit of the group. The task that submits holds one as a rule, and its pocket may have more.
static inline nb_result group_enter(nbi_lane *lane, nb_group handle, entry *in) {
    nbi_group *group = nbi_group_find(lane->scheduler, handle);
    if (NB_UNLIKELY(group == NULL)) return NB_ERR_STALE;
    if (pocket_take(&lane->group_pocket, &group->tally)) {
        in->group = group;
        return NB_OK;
    }
    // More than one only for the group that the running task belongs to or ends itself: nobody waits for that while the
    // task runs.
    const nbi_running *running = lane->running;
    bool is_own = running != NULL && (running->group == nbi_group_index(lane->scheduler, group) + 1 ||
                                      (running->id != 0 && running->id == nbi_atomic_load_relaxed_u64(&group->owner)));
    uint32_t extra = is_own ? NBI_POCKET_TAKE : 0;
    // The handle's own: the group may have ended, and begun anew, since it was looked at.
    uint64_t generation = nbi_hint_generation(nbi_hint_of_handle(lane->scheduler, handle.value));
    nb_result result = nbi_tally_add(&group->tally, generation, 1 + extra);
    if (NB_UNLIKELY(result != NB_OK)) return result;
    if (extra != 0) pocket_fill(&lane->group_pocket, &group->tally, extra);
    in->group = group;
    return NB_OK;
}

// A unit for one more task in the frame of the task that submits it.
static nb_result frame_inherit(nbi_lane *lane, entry *in) {
    const nbi_running *running = lane->running;
    if (!pocket_take(&lane->frame_pocket, running->frame_tally)) {
        if (!nbi_tally_add_held(running->frame_tally, 1 + NBI_POCKET_TAKE)) return NB_FULL;
        pocket_fill(&lane->frame_pocket, running->frame_tally, NBI_POCKET_TAKE);
    }
    in->fence = running->context.fence, in->frame = running->context.frame;
    in->frame_tally = running->frame_tally;
    return NB_OK;
}

// A unit of the frame, where the task is to be bound to one; called only if it may be.
static NB_NOINLINE nb_result frame_enter(nbi_lane *lane, const nb_task_desc *desc, entry *in) {
    const nbi_running *running = lane->running;
    bool is_inherited = running != NULL && running->frame_tally != NULL && desc->frame.value == 0 &&
                        (desc->fence == NULL || desc->fence == running->context.fence);
    if (is_inherited) return frame_inherit(lane, in);
    bool is_optional = desc->lifetime == NB_LIFETIME_DEFAULT;
    if (desc->fence == NULL) return is_optional ? NB_OK : NB_ERR_MISUSE;
    in->fence = desc->fence, in->frame = desc->frame;
    // What has kept its frames waiting too often is no longer waited for.
    if (nb_fence_is_quarantined(desc->fence, desc->label)) {
        if (in->frame.value == 0) in->frame = nb_fence_current(desc->fence);
        return NB_OK;
    }
    nb_result result = nbi_fence_enter(desc->fence, &in->frame, 1, &in->frame_tally);
    if (result == NB_ERR_MISUSE && is_optional) return NB_OK;
    return is_optional && result == NB_CLOSED ? NB_OK : result;
}

static NB_NOINLINE void leave_all(nbi_lane *lane, const nb_task_desc *desc, const entry *in) {
    if (in->frame_tally != NULL) nbi_pocket_put(&lane->frame_pocket, in->frame_tally);
    if (in->group != NULL) nbi_pocket_put(&lane->group_pocket, &in->group->tally);
    nbi_lane_empty_pockets(lane);
    if (desc->token == NULL) return;
    nb_token_task_withdraw(desc->token);
    nb_token_release(desc->token);
}

static NB_NOINLINE nb_result token_enter(nb_token *token) {
    nb_result result = nb_token_task_enter(token);
    if (result == NB_OK) nb_token_retain(token);
    return result;
}

static inline nb_result enter_all(nbi_lane *lane, const nb_task_desc *desc, bool may_be_bound, entry *in) {
    nb_result result = NB_OK;
    if (NB_UNLIKELY(desc->token != NULL)) {
        result = token_enter(desc->token);
        if (result != NB_OK) return result;
    }
    if (desc->group.value != 0) result = group_enter(lane, desc->group, in);
    if (may_be_bound && result == NB_OK) {
        result = frame_enter(lane, desc, in);
    } else if (NB_UNLIKELY(desc->fence != NULL)) {
        in->fence = desc->fence;
        in->frame = desc->frame.value != 0 ? desc->frame : nb_fence_current(desc->fence);
    }
    if (NB_UNLIKELY(result != NB_OK)) leave_all(lane, desc, in);
    return result;
}

// --- submitting ---

static void note_result(const nb_scheduler *scheduler, uint32_t group, nb_result result) {
    if (group == 0) return;
    uint32_t none = (uint32_t)NB_OK;
    nbi_atomic_compare_exchange_relaxed_u32(&scheduler->groups[group - 1].result, &none, (uint32_t)result);
}

// Word by word: a call for a few bytes costs more than the bytes.
static inline void copy_argument(unsigned char *to, const void *from, size_t size_bytes) {
    const unsigned char *bytes = from;
    size_t at = 0;
    for (; at + 8 <= size_bytes; at += 8) memcpy(to + at, bytes + at, 8);
    if (NB_UNLIKELY(at < size_bytes)) memcpy(to + at, bytes + at, size_bytes - at);
}

static NB_NOINLINE void fill_outcome(nbi_lane *lane, const nb_task_desc *desc, nbi_hint hint) {
    lane->scheduler->outcomes[nbi_hint_slot(hint)] =
        (nbi_outcome){.on_complete = desc->on_complete,
                      .user = desc->user,
                      .sequence = (uint64_t)lane->index << 48 | lane->sequence++,
                      .task = {nbi_handle_of(lane->scheduler, hint)},
                      .stale_frame_count = desc->stale_frame_count};
}

static inline nbi_hint fill_slot(nbi_lane *lane, const nb_task_desc *desc, const entry *in, uint32_t index,
                                 uint32_t kind, nbi_phase phase) {
    nb_scheduler *scheduler = lane->scheduler;
    nbi_slot *slot = nbi_slot_at(scheduler, index);
    slot->run = desc->run;
    slot->token = desc->token;
    nbi_atomic_store_relaxed_ptr(&slot->frame_tally, in->frame_tally);
    uint32_t group = in->group != NULL ? nbi_group_index(scheduler, in->group) + 1 : 0;
    nbi_atomic_store_relaxed_u32(&slot->group, group);
    nbi_atomic_store_relaxed_u32(&slot->label, desc->label.id);
    copy_argument(slot->argument, desc->argument, desc->argument_size_bytes);
    if (NB_UNLIKELY(in->fence != NULL)) {
        nbi_slot_more *more = &scheduler->more[index];
        more->fence = in->fence;
        more->frame = in->frame;
        nbi_atomic_store_relaxed_u64(&more->thread_id, 0);
    }
    uint64_t generation = nbi_state_generation(nbi_atomic_load_relaxed_u64(&slot->state.word));
    if (NB_UNLIKELY((kind & NBI_KIND_HAS_RESULT) != 0)) fill_outcome(lane, desc, nbi_hint_of(generation, index));
    nbi_atomic_store_relaxed_u32(&slot->kind, kind | (uint32_t)generation << NBI_KIND_GENERATION_SHIFT);
    // Publishes the task, with the push that follows; read by the acquire half of the claim.
    nbi_atomic_store_release_u64(&slot->state.word, nbi_state_of(generation, phase));
    return nbi_hint_of(generation, index);
}

static NBI_HOT bool publish(nbi_lane *lane, nbi_hint hint, uint32_t queue) {
    nbi_queue *queues = &lane->queues[queue];
    bool is_in = lane->running != NULL && nbi_deque_push(&queues->deque, hint);
    if (!is_in && !nbi_ring_push(&queues->ring, hint)) {
        nbi_ring_clean(lane->scheduler, &queues->ring);
        if (!nbi_ring_push(&queues->ring, hint)) return false;
    }
    uint32_t bit = 1u << queue;
    if (NB_UNLIKELY((lane->owned_mask & bit) == 0)) {
        lane->owned_mask |= bit;
        nbi_atomic_fetch_or_seq_cst_u64(&lane->scheduler->has_work[queue], (uint64_t)1 << lane->index);
        nbi_low_noted(lane->scheduler, queue);
    }
    nbi_wake_one(lane, nbi_queue_is_floating(queue));
    return true;
}

void nbi_task_publish(nbi_lane *lane, nbi_hint hint) {
    // After the phase: a promotion that comes between finds the task queued, and publishes it again.
    uint32_t kind = nbi_atomic_load_seq_cst_u32(&nbi_slot_at(lane->scheduler, nbi_hint_slot(hint))->kind);
    bool is_floating = (kind & NBI_KIND_FLOATING) != 0;
    // An old entry may have been found already, and the slot have another task: then this one is dead from the start.
    uint32_t queue = nbi_queue_index((nb_priority)(kind & NBI_KIND_PRIORITY), is_floating);
    // There is room: without its dead and double entries a ring has at most one entry for each task.
    if (NB_UNLIKELY((kind & NBI_KIND_PINNED) != 0))
        nbi_pin_publish(lane->scheduler, hint, queue);
    else
        publish(lane, hint, queue);
}

// Takes back what could not be put into a queue.
static NB_NOINLINE nb_result undo(nbi_lane *lane, const nb_task_desc *desc, const entry *in, nbi_hint hint,
                                  nb_result result) {
    uint32_t index = nbi_hint_slot(hint);
    uint64_t unused = nbi_state_of(nbi_hint_generation(hint), NBI_PHASE_FREE);
    nbi_atomic_store_relaxed_u64(&nbi_slot_at(lane->scheduler, index)->state.word, unused);
    nbi_slot_free(lane, index);
    leave_all(lane, desc, in);
    nbi_count(&lane->counts.submit_count, UINT64_MAX); // one less
    return result;
}

static NBI_HOT nb_result submit(nbi_lane *lane, const nb_task_desc *desc, nb_task *task, bool is_held) {
    nb_scheduler *scheduler = lane->scheduler;
    nb_priority priority = desc->priority != 0 ? desc->priority : NB_PRIORITY_NORMAL;
    bool may_be_bound = desc->lifetime == NB_LIFETIME_FRAME ||
                        (desc->lifetime == NB_LIFETIME_DEFAULT && priority == NB_PRIORITY_CRITICAL);
    if (NB_UNLIKELY(nbi_atomic_load_relaxed_u32(&scheduler->is_stopping) != 0)) return NB_CLOSED;
    uint32_t index = nbi_slot_alloc(lane, priority);
    if (NB_UNLIKELY(index == UINT32_MAX)) return NB_FULL;
    entry in = {.group = NULL, .frame_tally = NULL, .fence = NULL};
    nb_result result = enter_all(lane, desc, may_be_bound, &in);
    if (NB_UNLIKELY(result != NB_OK)) {
        nbi_slot_free(lane, index);
        return result;
    }
    bool is_floating = in.frame_tally == NULL;
    uint32_t kind = (uint32_t)priority | (is_floating ? NBI_KIND_FLOATING : 0) |
                    (task != NULL ? NBI_KIND_HAS_HANDLE : 0) | (in.fence != NULL ? NBI_KIND_HAS_FENCE : 0) |
                    (desc->on_complete != NULL ? NBI_KIND_HAS_RESULT : 0);
    if (NB_UNLIKELY(desc->pin != NB_PIN_NONE)) {
        kind |= NBI_KIND_PINNED;
        nbi_atomic_store_relaxed_u32(&scheduler->more[index].pin_lane, desc->pin - NB_PIN_COORDINATOR);
    }
    nbi_phase phase = desc->dependency_count == 0 && !is_held ? NBI_PHASE_QUEUED : NBI_PHASE_WAITING;
    nbi_hint hint = fill_slot(lane, desc, &in, index, kind, phase);
    // Before the task can run and count itself as ended.
    nbi_count(&lane->counts.submit_count, 1);
    if (NB_UNLIKELY(phase == NBI_PHASE_WAITING)) {
        result = nbi_depend_on_all(lane, hint, desc->dependencies, desc->dependency_count, is_held);
    } else {
        uint32_t queue = nbi_queue_index(priority, is_floating);
        bool is_in = true;
        if (NB_UNLIKELY(desc->pin != NB_PIN_NONE))
            nbi_pin_publish(scheduler, hint, queue);
        else
            is_in = publish(lane, hint, queue);
        if (NB_UNLIKELY(!is_in)) result = NB_FULL;
    }
    if (NB_UNLIKELY(result != NB_OK)) return undo(lane, desc, &in, hint, result);
    if (task != NULL) task->value = nbi_handle_of(scheduler, hint);
    return NB_OK;
}

nb_result nbi_task_run_here(nbi_lane *lane, const nb_task_desc *desc, uint32_t group, void *argument) {
    const nbi_running *outer = lane->running;
    nbi_running running = {.context = {.scheduler = lane->scheduler,
                                       .token = desc->token,
                                       .thread_index = lane->index,
                                       .priority = desc->priority != 0 ? desc->priority : NB_PRIORITY_NORMAL,
                                       .label = desc->label,
                                       .lane = lane},
                           .below = lane->running,
                           .group = group};
    // What it submits belongs to the frame that the thread is working for.
    running.context.fence = desc->fence;
    running.context.frame = desc->frame;
    if (outer != NULL && outer->frame_tally != NULL) {
        running.frame_tally = outer->frame_tally;
        running.context.fence = outer->context.fence;
        running.context.frame = outer->context.frame;
    }
    lane->running = &running;
    desc->run(&running.context, argument);
    lane->running = running.below;
    if (running.has_scratch) nbi_scratch_end(lane, &running);
    return running.context.result;
}

// Runs a task that found no room, in the call that submitted it: nobody has to wait for it.
static nb_result run_inline(nb_scheduler *scheduler, const nb_task_desc *desc, nb_task *task) {
    const nbi_group *group = nbi_group_find(scheduler, desc->group);
    if (group == NULL && desc->group.value != 0) return NB_ERR_STALE;
    if (group != NULL && nbi_tally_count(nbi_atomic_load_relaxed_u64(&group->tally.word)) == 0) return NB_CLOSED;
    nbi_lane *lane = nbi_lane_borrow(scheduler);
    if (lane == NULL) return NB_FULL;
    _Alignas(16) unsigned char argument[NB_TASK_ARGUMENT_SIZE_MAX];
    copy_argument(argument, desc->argument, desc->argument_size_bytes);
    nb_result result = nb_token_task_enter(desc->token);
    if (result == NB_OK) result = nb_token_task_start(desc->token);
    if (result == NB_OK) {
        nbi_count(&lane->counts.submit_count, 1);
        nbi_count(&lane->counts.inline_count, 1);
        nb_result told = nbi_task_run_here(lane, desc, 0, argument);
        if (told != NB_OK && group != NULL) note_result(scheduler, nbi_group_index(scheduler, group) + 1, told);
        nb_token_task_leave(desc->token);
        nbi_count(&lane->counts.run_count, 1);
        if (task != NULL) task->value = 0;
    }
    nbi_lane_return(lane);
    return result;
}

static NB_NOINLINE nb_result submit_refused(nbi_lane *lane, const nb_task_desc *desc, nb_task *task, nb_result result) {
    nb_scheduler *scheduler = lane->scheduler;
    bool runs_inline = result == NB_FULL && desc->runs_inline;
    nbi_count(&lane->counts.refuse_count, runs_inline ? 0 : 1);
    nbi_count(&lane->counts.full_count, result == NB_FULL ? 1 : 0);
    nbi_lane_leave(lane);
    if (runs_inline) return run_inline(scheduler, desc, task);
    // Reported only now: the shared lane's lock is never held across a logger.
    if (result == NB_ERR_STALE)
        refuse(scheduler, NB_ITEM_TASK_STALE, result, "the token, the group or the frame has ended");
    if (result == NB_ERR_MISUSE) refuse(scheduler, NB_ITEM_TASK_ARGUMENT, result, "a frame-bound task needs a frame");
    return result;
}

// By the coordinator, while its budget is open.
static NB_NOINLINE nb_result submit_timed(nbi_lane *lane, const nb_task_desc *desc, nb_task *task) {
    uint64_t start_ns = nbi_clock_now_ns();
    bool is_held = lane->budget_left_ns == 0 && desc->priority != NB_PRIORITY_CRITICAL;
    nb_result result = submit(lane, desc, task, is_held);
    uint64_t spent_ns = nbi_clock_now_ns() - start_ns;
    lane->budget_left_ns -= nbi_min_u64(spent_ns, lane->budget_left_ns);
    return result;
}

nb_result nb_task_submit(nb_scheduler *scheduler, const nb_task_desc *desc, nb_task *task) {
    if (NB_UNLIKELY(scheduler == NULL || !is_valid(desc))) return refuse_desc(scheduler, desc);
    if (NB_UNLIKELY(desc->pin > scheduler->worker_count + NB_PIN_COORDINATOR)) {
        return refuse(scheduler, NB_ITEM_TASK_ARGUMENT, NB_ERR_RANGE, "pin names a worker that is not there");
    }
    nbi_lane *lane = nbi_lane_enter(scheduler);
    bool is_timed = NB_UNLIKELY(lane->has_budget) && lane->running == NULL;
    nb_result result = is_timed ? submit_timed(lane, desc, task) : submit(lane, desc, task, false);
    if (NB_UNLIKELY(result != NB_OK)) return submit_refused(lane, desc, task, result);
    nbi_lane_leave(lane);
    return NB_OK;
}

// --- running and ending ---

// Moves a queued task on. False: it is no longer queued, or never was this one.
static bool claim(nbi_slot *slot, nbi_hint hint) {
    uint64_t wanted = nbi_state_of(nbi_hint_generation(hint), NBI_PHASE_QUEUED);
    uint64_t state = wanted;
    do {
        // acquire: reads what fill_slot published. seq_cst: one order with the announcement of a waiter.
        if (nbi_atomic_compare_exchange_seq_cst_u64(&slot->state.word, &state,
                                                    state + (NBI_PHASE_RUNNING - NBI_PHASE_QUEUED))) {
            return true;
        }
    } while ((state & ~NBI_STATE_NOTES) == wanted);
    return false;
}

// The last steps of every task, run or not: the slot is free, then the units go back, into pockets.
static NBI_HOT void end_slot(nbi_lane *lane, uint32_t index, uint32_t group, nbi_tally *frame_tally, nb_result result) {
    nb_scheduler *scheduler = lane->scheduler;
    nbi_slot *slot = nbi_slot_at(scheduler, index);
    uint64_t generation = nbi_state_generation(nbi_atomic_load_relaxed_u64(&slot->state.word));
    uint64_t ended = nbi_state_of(generation + 1, NBI_PHASE_FREE);
    if (NB_UNLIKELY(result != NB_OK)) note_result(scheduler, group, result);
    uint32_t kind = nbi_atomic_load_relaxed_u32(&slot->kind);
    // Before anybody can see that the task has ended: who knows of the end finds the result.
    bool is_kept = (kind & NBI_KIND_HAS_RESULT) != 0;
    if (NB_UNLIKELY(is_kept)) nbi_result_keep(scheduler, nbi_hint_of(generation, index), result);
    if ((kind & NBI_KIND_HAS_HANDLE) != 0) {
        // Publishes what the task did; read by the acquire load in nbi_wait and nb_task_is_complete. One order with the
        // announcement of a waiter: it is seen here, or sees this.
        uint64_t state = nbi_atomic_exchange_seq_cst_u64(&slot->state.word, ended);
        if ((state & NBI_TALLY_MARK) != 0) nbi_unpark(nbi_tally_futex(&slot->state), UINT32_MAX);
        if (NB_UNLIKELY((state & NBI_STATE_LISTED) != 0)) nbi_depend_release(lane, index);
    } else {
        nbi_atomic_store_release_u64(&slot->state.word, ended);
    }
    if (NB_UNLIKELY(is_kept))
        nbi_result_part(lane, index, NBI_OUTCOME_ENDED);
    else
        nbi_slot_free(lane, index);
    if (NB_UNLIKELY(frame_tally != NULL)) nbi_pocket_put(&lane->frame_pocket, frame_tally);
    if (group != 0) nbi_pocket_put(&lane->group_pocket, &scheduler->groups[group - 1].tally);
}

static inline nb_result run_claimed(nbi_lane *lane, nbi_slot *slot, nbi_hint hint, nbi_running *running) {
    nb_task_context *context = &running->context;
    context->scheduler = lane->scheduler;
    // Without a handle nobody could be woken, so nobody is to wait.
    uint32_t kind = nbi_atomic_load_relaxed_u32(&slot->kind);
    context->task.value = (kind & NBI_KIND_HAS_HANDLE) != 0 ? nbi_handle_of(lane->scheduler, hint) : 0;
    context->token = slot->token;
    context->fence = NULL;
    context->frame.value = 0;
    context->thread_index = lane->index;
    context->priority = (nb_priority)(kind & NBI_KIND_PRIORITY);
    context->label.id = nbi_atomic_load_relaxed_u32(&slot->label);
    context->lane = lane;
    context->result = NB_OK;
    if (NB_UNLIKELY((kind & NBI_KIND_HAS_FENCE) != 0)) {
        nbi_slot_more *more = &lane->scheduler->more[nbi_hint_slot(hint)];
        context->fence = more->fence;
        context->frame = more->frame;
        nbi_atomic_store_relaxed_u64(&more->thread_id, nbi_atomic_load_relaxed_u64(&lane->thread_id));
    }
    running->has_scratch = false;
    running->id = hint + 1;
    running->below = lane->running;
    lane->running = running;
    slot->run(context, slot->argument);
    lane->running = running->below;
    if (NB_UNLIKELY(running->has_scratch)) nbi_scratch_end(lane, running);
    nbi_count(&lane->counts.run_count, 1);
    return context->result;
}

// With a token, or while the scheduler stops: perhaps it is not to run.
static NB_NOINLINE void run_guarded(nbi_lane *lane, nbi_slot *slot, nbi_hint hint, nbi_running *running,
                                    bool is_stopping) {
    nb_token *token = slot->token;
    nb_result result = is_stopping ? NB_CANCELLED : nb_token_task_start(token);
    if (result == NB_OK) {
        result = run_claimed(lane, slot, hint, running);
        nb_token_task_leave(token);
    } else {
        if (is_stopping) nb_token_task_withdraw(token);
        nbi_count(&lane->counts.cancel_count, 1);
        result = NB_CANCELLED;
    }
    end_slot(lane, nbi_hint_slot(hint), running->group, running->frame_tally, result);
    nb_token_release(token);
}

bool nbi_task_run(nbi_lane *lane, nbi_hint hint) {
    nbi_slot *slot = nbi_slot_at(lane->scheduler, nbi_hint_slot(hint));
    if (NB_UNLIKELY(!claim(slot, hint))) return false;
    nbi_running running;
    running.group = nbi_atomic_load_relaxed_u32(&slot->group);
    running.frame_tally = nbi_atomic_load_relaxed_ptr(&slot->frame_tally);
    nbi_lane_turn_pockets(lane, running.group, running.frame_tally);
    bool is_stopping = nbi_atomic_load_relaxed_u32(&lane->scheduler->is_stopping) != 0;
    if (NB_UNLIKELY(slot->token != NULL || is_stopping)) {
        run_guarded(lane, slot, hint, &running, is_stopping);
        return true;
    }
    nb_result result = run_claimed(lane, slot, hint, &running);
    end_slot(lane, nbi_hint_slot(hint), running.group, running.frame_tally, result);
    return true;
}

// --- by handle ---

// The hint of a handle; NBI_HINT_NONE for null and for what was never a handle of this scheduler.
static nbi_hint hint_of(const nb_scheduler *scheduler, nb_task task) {
    nbi_hint hint = nbi_hint_of_handle(scheduler, task.value);
    return nbi_hint_slot(hint) < scheduler->slot_count ? hint : NBI_HINT_NONE;
}

// Where the task of a hint stands: NB_OK not started, NB_BUSY running, NB_EMPTY ended.
static nb_result standing(const nb_scheduler *scheduler, nbi_hint hint) {
    if (hint == NBI_HINT_NONE) return NB_EMPTY;
    // Pairs with the exchange in end_slot.
    uint64_t state = nbi_atomic_load_acquire_u64(&nbi_slot_at(scheduler, nbi_hint_slot(hint))->state.word);
    if (nbi_state_generation(state) != nbi_hint_generation(hint)) return NB_EMPTY;
    nbi_phase phase = nbi_state_phase(state);
    return phase == NBI_PHASE_RUNNING ? NB_BUSY : phase == NBI_PHASE_FREE ? NB_EMPTY : NB_OK;
}

// Ends a claimed task without having run it.
static void end_unrun(nb_scheduler *scheduler, uint32_t index) {
    nbi_slot *slot = nbi_slot_at(scheduler, index);
    nb_token *token = slot->token;
    nbi_lane *lane = nbi_lane_enter(scheduler);
    nbi_count(&lane->counts.cancel_count, 1);
    end_slot(lane, index, nbi_atomic_load_relaxed_u32(&slot->group), nbi_atomic_load_relaxed_ptr(&slot->frame_tally),
             NB_CANCELLED);
    nbi_lane_empty_pockets(lane);
    nbi_lane_leave(lane);
    if (token == NULL) return;
    nb_token_task_withdraw(token);
    nb_token_release(token);
}

bool nb_task_is_complete(const nb_scheduler *scheduler, nb_task task) {
    if (scheduler == NULL) return NBI_FAIL_NULL("scheduler") != NB_OK;
    return standing(scheduler, hint_of(scheduler, task)) == NB_EMPTY;
}

nb_result nb_task_claim(nb_scheduler *scheduler, nb_task task) {
    if (scheduler == NULL) return NBI_FAIL_NULL("scheduler");
    nbi_hint hint = hint_of(scheduler, task);
    nb_result result = standing(scheduler, hint);
    if (result != NB_OK) return result;
    nbi_lane *lane = nbi_lane_borrow(scheduler);
    if (lane == NULL) return NB_FULL;
    if (!nbi_pin_allows(lane, hint)) {
        result = NB_ERR_THREAD;
    } else if (!nbi_task_run(lane, hint)) {
        result = standing(scheduler, hint);
        if (result == NB_OK) result = NB_BUSY; // it waits for others
    }
    nbi_lane_settle_pockets(lane);
    nbi_lane_return(lane);
    return result;
}

nb_result nb_task_cancel(nb_scheduler *scheduler, nb_task task) {
    if (scheduler == NULL) return NBI_FAIL_NULL("scheduler");
    nbi_hint hint = hint_of(scheduler, task);
    nb_result result = standing(scheduler, hint);
    if (result != NB_OK) return result;
    // It may come to be queued between the two tries, but not twice.
    nbi_slot *slot = nbi_slot_at(scheduler, nbi_hint_slot(hint));
    while (result == NB_OK && !claim(slot, hint) && !nbi_depend_claim(scheduler, hint))
        result = standing(scheduler, hint);
    if (result == NB_OK) end_unrun(scheduler, nbi_hint_slot(hint));
    return result;
}

void nbi_task_cancel_all(nb_scheduler *scheduler) {
    uint32_t count = nbi_slot_used_count(scheduler);
    for (uint32_t i = 0; i < count; ++i) {
        nbi_slot *slot = nbi_slot_at(scheduler, i);
        uint64_t state = nbi_atomic_load_acquire_u64(&slot->state.word);
        nbi_phase phase = nbi_state_phase(state);
        nbi_hint hint = nbi_hint_of(nbi_state_generation(state), i);
        bool is_ours = (phase == NBI_PHASE_QUEUED && claim(slot, hint)) ||
                       (phase == NBI_PHASE_WAITING && (nbi_depend_claim(scheduler, hint) || claim(slot, hint)));
        if (is_ours) end_unrun(scheduler, i);
    }
}

// Raises the priority noted in the slot. False: it is as high already, or the slot has another task by now.
static bool raise_priority(nbi_slot *slot, nbi_hint hint, nb_priority priority) {
    uint32_t generation = (uint32_t)nbi_hint_generation(hint) << NBI_KIND_GENERATION_SHIFT;
    uint32_t kind = nbi_atomic_load_relaxed_u32(&slot->kind);
    do {
        if ((kind & NBI_KIND_GENERATION_MASK) != generation) return false;
        if ((kind & NBI_KIND_PRIORITY) >= (uint32_t)priority) return false;
    } while (
        !nbi_atomic_compare_exchange_seq_cst_u32(&slot->kind, &kind, (kind & ~NBI_KIND_PRIORITY) | (uint32_t)priority));
    return true;
}

// The task keeps its slot and its entry, and gets a second one in a better queue; whichever is found first counts.
nb_result nb_task_promote(nb_scheduler *scheduler, nb_task task, nb_priority priority) {
    if (scheduler == NULL) return NBI_FAIL_NULL("scheduler");
    if (priority <= NB_PRIORITY_DEFAULT || priority >= NB_PRIORITY_COUNT) {
        return NBI_FAIL(&scheduler->desc.hooks, NB_ITEM_TASK_ARGUMENT, NB_ERR_RANGE, "priority does not exist");
    }
    nbi_hint hint = hint_of(scheduler, task);
    nb_result result = standing(scheduler, hint);
    if (result != NB_OK) return result;
    nbi_slot *slot = nbi_slot_at(scheduler, nbi_hint_slot(hint));
    if (!raise_priority(slot, hint, priority)) return NB_OK;
    // One that waits is queued by its new priority when its time comes; one of the two sees the other.
    uint64_t state = nbi_atomic_load_seq_cst_u64(&slot->state.word);
    if ((state & ~NBI_STATE_NOTES) != nbi_state_of(nbi_hint_generation(hint), NBI_PHASE_QUEUED)) return NB_OK;
    nbi_lane *lane = nbi_lane_enter(scheduler);
    nbi_task_publish(lane, hint);
    nbi_lane_leave(lane);
    return NB_OK;
}

// --- inside a task ---

bool nb_task_should_stop(nb_task_context *context) {
    if (context == NULL) return NBI_FAIL_NULL("context") == NB_OK;
    return nb_token_is_cancelled(context->token) || nbi_atomic_load_relaxed_u32(&context->scheduler->is_stopping) != 0;
}

nb_result nb_task_set_result(nb_task_context *context, nb_result result) {
    if (context == NULL) return NBI_FAIL_NULL("context");
    if (result < NB_ERR_DEADLOCK || (result >= 0 && result != NB_CANCELLED)) {
        return NBI_FAIL(&context->scheduler->desc.hooks, NB_ITEM_TASK_ARGUMENT, NB_ERR_RANGE,
                        "%d is neither a failure nor NB_CANCELLED", (int)result);
    }
    if (context->result == NB_OK) context->result = result;
    return NB_OK;
}
