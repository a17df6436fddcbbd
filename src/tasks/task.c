// SPDX-License-Identifier: MIT
// Tasks that were submitted: claimed, run, ended, and found by their handles.

#include "scheduler.h"

// --- running and ending ---

// Moves a queued task on. False: it is no longer queued, or never was this one.
static bool claim(nbi_slot *slot, nbi_hint hint) {
    uint64_t wanted = nbi_state_of_hint(hint, NBI_PHASE_QUEUED);
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
static NBI_HOT void end_slot(nbi_lane *lane, nbi_hint hint, nbi_group *group, nbi_tally *frame_tally,
                             nb_result result) {
    nb_scheduler *scheduler = lane->scheduler;
    uint32_t index = nbi_hint_slot(hint);
    nbi_slot *slot = nbi_slot_at(scheduler, index);
    uint64_t ended = nbi_state_of_hint(hint, NBI_PHASE_FREE) + nbi_state_of(1, NBI_PHASE_FREE);
    if (NB_UNLIKELY(result != NB_OK)) nbi_group_note(group, result);
    uint32_t kind = nbi_atomic_load_relaxed_u32(&slot->kind);
    // Before anybody can see that the task has ended: who knows of the end finds the result.
    bool is_kept = (kind & NBI_KIND_HAS_RESULT) != 0;
    if (NB_UNLIKELY(is_kept)) nbi_result_keep(scheduler, hint, result);
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
    if (group != NULL) nbi_pocket_put(&lane->group_pocket, &group->tally);
}

static NBI_HOT nb_result run_claimed(nbi_lane *lane, nbi_slot *slot, nbi_hint hint, nbi_running *running) {
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
    uint32_t label = nbi_atomic_load_relaxed_u32(&slot->label);
    context->label.id = label & NBI_LABEL_MASK;
    context->lane = lane;
    context->result = NB_OK;
    if (NB_UNLIKELY((kind & NBI_KIND_HAS_FENCE) != 0)) {
        nbi_slot_more *more = &lane->scheduler->more[nbi_hint_slot(hint)];
        context->fence = more->fence;
        context->frame = more->frame;
        nbi_atomic_store_relaxed_u64(&more->thread_id, nbi_atomic_load_relaxed_u64(&lane->thread_id));
    }
    running->has_scratch = false;
    running->owner = nbi_label_owner(label);
    running->id = hint + 1;
    running->below = lane->running;
    lane->running = running;
    uint32_t begun = nbi_span_begin(lane, context, (label & NBI_LABEL_RECORDS) == 0);
    nbi_owner *before = nbi_owner_enter(lane->scheduler->owners[running->owner].owner);
    slot->run(context, slot->argument);
    nbi_owner_leave(before);
    nbi_span_end(lane, begun);
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
        nbi_check_begin(lane, running);
        result = run_claimed(lane, slot, hint, running);
        nbi_check_end(lane, running);
        nb_token_task_leave(token);
    } else {
        if (is_stopping) nb_token_task_withdraw(token);
        nbi_count(&lane->counts.cancel_count, 1);
        result = NB_CANCELLED;
    }
    end_slot(lane, hint, running->group, running->frame_tally, result);
    nb_token_release(token);
}

static NBI_HOT void run_and_end(nbi_lane *lane, nbi_slot *slot, nbi_hint hint) {
    nbi_running running;
    running.group = nbi_atomic_load_relaxed_ptr(&slot->group);
    running.frame_tally = nbi_atomic_load_relaxed_ptr(&slot->frame_tally);
    nbi_lane_turn_pockets(lane, running.group, running.frame_tally);
    bool is_stopping = nbi_atomic_load_relaxed_u32(&lane->scheduler->is_stopping) != 0;
    if (NB_UNLIKELY(is_stopping))
        is_stopping = nbi_host_is_stopping(lane->scheduler, nbi_label_owner(nbi_atomic_load_relaxed_u32(&slot->label)));
    if (NB_UNLIKELY(slot->token != NULL || is_stopping)) {
        run_guarded(lane, slot, hint, &running, is_stopping);
        return;
    }
    nb_result result = run_claimed(lane, slot, hint, &running);
    end_slot(lane, hint, running.group, running.frame_tally, result);
}

void nbi_task_run_claimed(nbi_lane *lane, nbi_hint hint) {
    run_and_end(lane, nbi_slot_at(lane->scheduler, nbi_hint_slot(hint)), hint);
}

bool nbi_task_run(nbi_lane *lane, nbi_hint hint) {
    nbi_slot *slot = nbi_slot_at(lane->scheduler, nbi_hint_slot(hint));
    if (NB_UNLIKELY(!claim(slot, hint))) return false;
    run_and_end(lane, slot, hint);
    return true;
}

nb_result nbi_task_run_here(nbi_lane *lane, const nb_task_desc *desc, nbi_group *group, nbi_tally *frame_tally,
                            void *argument) {
    const nbi_running *outer = lane->running;
    nbi_running running = {.context = {.scheduler = lane->scheduler,
                                       .token = desc->token,
                                       .thread_index = lane->index,
                                       .priority = desc->priority != 0 ? desc->priority : NB_PRIORITY_NORMAL,
                                       .label = desc->label,
                                       .lane = lane},
                           .below = lane->running,
                           .group = group,
                           .frame_tally = frame_tally,
                           .owner = nbi_owner_number(lane->scheduler)};
    // What it submits belongs to the frame that the thread is working for.
    running.context.fence = desc->fence;
    running.context.frame = desc->frame;
    if (frame_tally == NULL && outer != NULL && outer->frame_tally != NULL) {
        running.frame_tally = outer->frame_tally;
        running.context.fence = outer->context.fence;
        running.context.frame = outer->context.frame;
    }
    lane->running = &running;
    uint32_t begun = nbi_span_begin(lane, &running.context, desc->label.id != 0);
    desc->run(&running.context, argument);
    nbi_span_end(lane, begun);
    lane->running = running.below;
    if (running.has_scratch) nbi_scratch_end(lane, &running);
    return running.context.result;
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
static void end_unrun(nb_scheduler *scheduler, nbi_hint hint) {
    nbi_slot *slot = nbi_slot_at(scheduler, nbi_hint_slot(hint));
    nb_token *token = slot->token;
    nbi_lane *lane = nbi_lane_enter(scheduler);
    nbi_count(&lane->counts.cancel_count, 1);
    end_slot(lane, hint, nbi_atomic_load_relaxed_ptr(&slot->group), nbi_atomic_load_relaxed_ptr(&slot->frame_tally),
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
    if (result == NB_OK) end_unrun(scheduler, hint);
    return result;
}

void nbi_task_cancel_one(nb_scheduler *scheduler, nbi_hint hint, nbi_phase phase) {
    nbi_slot *slot = nbi_slot_at(scheduler, nbi_hint_slot(hint));
    bool is_ours = (phase == NBI_PHASE_QUEUED && claim(slot, hint)) ||
                   (phase == NBI_PHASE_WAITING && (nbi_depend_claim(scheduler, hint) || claim(slot, hint)));
    if (is_ours) end_unrun(scheduler, hint);
}

void nbi_task_cancel_all(nb_scheduler *scheduler) {
    uint32_t count = nbi_slot_used_count(scheduler);
    for (uint32_t i = 0; i < count; ++i) {
        uint64_t state = nbi_atomic_load_acquire_u64(&nbi_slot_at(scheduler, i)->state.word);
        nbi_task_cancel_one(scheduler, nbi_hint_of(nbi_state_generation(state), i), nbi_state_phase(state));
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
    if ((state & ~NBI_STATE_NOTES) != nbi_state_of_hint(hint, NBI_PHASE_QUEUED)) return NB_OK;
    nbi_lane *lane = nbi_lane_enter(scheduler);
    nbi_task_publish(lane, hint);
    nbi_lane_leave(lane);
    return NB_OK;
}

// --- inside a task ---

bool nb_task_should_stop(nb_task_context *context) {
    if (context == NULL) return NBI_FAIL_NULL("context") == NB_OK;
    if (context->token != NULL && context->lane != NULL) nbi_check_note(context->lane);
    if (nb_token_is_cancelled(context->token)) return true;
    if (NB_LIKELY(nbi_atomic_load_relaxed_u32(&context->scheduler->is_stopping) == 0)) return false;
    // The context of a task that runs in a lane is the first member of its nbi_running.
    const nbi_running *running = context->lane != NULL ? (const nbi_running *)(const void *)context : NULL;
    return nbi_host_is_stopping(context->scheduler, running != NULL ? running->owner : 0);
}

nb_result nb_task_set_result(nb_task_context *context, nb_result result) {
    if (context == NULL) return NBI_FAIL_NULL("context");
    if (result < NB_ERR_PERMISSION || (result >= 0 && result != NB_CANCELLED)) {
        return NBI_FAIL(&context->scheduler->desc.hooks, NB_ITEM_TASK_ARGUMENT, NB_ERR_RANGE,
                        "%d is neither a failure nor NB_CANCELLED", (int)result);
    }
    if (context->result == NB_OK) context->result = result;
    return NB_OK;
}
