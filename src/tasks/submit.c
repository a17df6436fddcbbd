// SPDX-License-Identifier: MIT
// Submitting: what a task takes with it, its slot, its place in a queue.

#include "scheduler.h"

#include "nebula/hash.h"

#include <string.h>

// --- pockets ---

// Takes a unit that the pocket has. False: it has none of this tally.
static inline bool pocket_take(nbi_pocket *pocket, const nbi_tally *tally) {
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
    nb_fence_frame frame;
} entry;

#define SUBMIT "nb_task_submit"
#define RUN "nb_task_run"

// The same number for the same mistake: a handler may offer a task in each frame.
static uint64_t mistake_of(const nb_task_desc *desc, const char *what) {
    uint64_t parts[6] = {(uint64_t)(uintptr_t)what};
    if (desc != NULL) {
        parts[1] = desc->label.id, parts[2] = desc->argument_size_bytes, parts[3] = desc->pin;
        parts[4] = (uint64_t)desc->priority, parts[5] = (uint64_t)desc->lifetime;
    }
    return nb_hash64(parts, sizeof parts, 0);
}

// `function` is what the caller called.
static nb_result refuse(nb_scheduler *scheduler, const char *function, const nb_task_desc *desc, nb_log_item item,
                        nb_result result, const char *what) {
    if (scheduler == NULL) return nbi_fail(NULL, item, result, function, "%s", what);
    nb_label label = desc != NULL ? desc->label : (nb_label){0};
    char number[NBI_LABEL_NUMBER_SIZE];
    const char *name = label.id != 0 ? nbi_label_text(scheduler->desc.labels, label, number) : "";
    return nbi_fail_throttled(&scheduler->desc.hooks, &scheduler->throttle, mistake_of(desc, what), item, result,
                              function, "task \"%s\": %s", name, what);
}

static bool is_valid(const nb_task_desc *desc) {
    return desc != NULL && desc->run != NULL && desc->argument_size_bytes <= NB_TASK_ARGUMENT_SIZE_MAX &&
           (desc->argument != NULL || desc->argument_size_bytes == 0) &&
           (desc->dependencies != NULL || desc->dependency_count == 0) &&
           (uint32_t)desc->priority < NB_PRIORITY_COUNT && (uint32_t)desc->lifetime < NB_LIFETIME_COUNT;
}

static NB_NOINLINE nb_result refuse_desc(nb_scheduler *scheduler, const char *function, const nb_task_desc *desc) {
    if (scheduler == NULL) return refuse(NULL, function, desc, NB_ITEM_BASE_NULL, NB_ERR_MISUSE, "scheduler is NULL");
    const char *what = "priority or lifetime does not exist";
    if (desc == NULL)
        what = "desc is NULL";
    else if (desc->run == NULL)
        what = "run is NULL";
    else if (desc->argument_size_bytes > NB_TASK_ARGUMENT_SIZE_MAX)
        return refuse(scheduler, function, desc, NB_ITEM_TASK_ARGUMENT, NB_ERR_RANGE, "argument_size_bytes is over 80");
    else if (desc->argument == NULL && desc->argument_size_bytes != 0)
        what = "argument is NULL and has a size";
    else if (desc->dependencies == NULL && desc->dependency_count != 0)
        what = "dependencies is NULL and has a count";
    return refuse(scheduler, function, desc, NB_ITEM_TASK_ARGUMENT, NB_ERR_MISUSE, what);
}

static NB_NOINLINE nb_result group_add(nbi_lane *lane, nbi_group *group, nb_group handle) {
    // More than one only for the group that the running task belongs to or ends itself: nobody waits for that while the
    // task runs.
    const nbi_running *running = lane->running;
    bool is_own = running != NULL && (running->group == group ||
                                      (running->id != 0 && running->id == nbi_atomic_load_relaxed_u64(&group->owner)));
    uint32_t extra = is_own ? NBI_POCKET_TAKE : 0;
    // The handle's own: the group may have ended, and begun anew, since it was looked at.
    uint64_t generation = nbi_hint_generation(nbi_hint_of_handle(lane->scheduler, handle.value));
    nb_result result = nbi_tally_add(&group->tally, generation, 1 + extra);
    if (NB_UNLIKELY(result != NB_OK)) return result;
    if (extra != 0) pocket_fill(&lane->group_pocket, &group->tally, extra);
    return NB_OK;
}

// A unit of the group. The task that submits holds one as a rule, and its pocket may have more.
static NBI_HOT nb_result group_enter(nbi_lane *lane, nb_group handle, nbi_group **out) {
    nbi_group *group = nbi_group_find(lane->scheduler, handle);
    if (NB_UNLIKELY(group == NULL)) return NB_ERR_STALE;
    nb_result result =
        NB_LIKELY(pocket_take(&lane->group_pocket, &group->tally)) ? NB_OK : group_add(lane, group, handle);
    if (NB_LIKELY(result == NB_OK)) *out = group;
    return result;
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
    bool is_inherited = running != NULL && running->frame_tally != NULL &&
                        (desc->frame.value == 0 || desc->frame.value == running->context.frame.value) &&
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
    if (result == NB_OK) nbi_serve_frames(lane->scheduler);
    if (result == NB_ERR_MISUSE && is_optional) return NB_OK;
    return is_optional && result == NB_CLOSED ? NB_OK : result;
}

// The frame that the task belongs to, or, where it floats, is submitted in.
static nb_result bind(nbi_lane *lane, const nb_task_desc *desc, entry *in) {
    bool may_be_bound = desc->lifetime == NB_LIFETIME_FRAME ||
                        (desc->lifetime == NB_LIFETIME_DEFAULT && desc->priority == NB_PRIORITY_CRITICAL);
    if (may_be_bound) return frame_enter(lane, desc, in);
    if (desc->fence == NULL) return NB_OK;
    in->fence = desc->fence;
    in->frame = desc->frame.value != 0 ? desc->frame : nb_fence_current(desc->fence);
    return NB_OK;
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

static nb_result enter_all(nbi_lane *lane, const nb_task_desc *desc, entry *in) {
    nb_result result = NB_OK;
    if (desc->token != NULL) {
        result = token_enter(desc->token);
        if (result != NB_OK) return result;
    }
    if (desc->group.value != 0) result = group_enter(lane, desc->group, &in->group);
    if (result == NB_OK) result = bind(lane, desc, in);
    if (NB_UNLIKELY(result != NB_OK)) leave_all(lane, desc, in);
    return result;
}

// --- submitting ---

// Eight bytes at a time, as they were written a moment ago: a wider load would have to wait for two such writes to
// reach the cache. The barrier keeps the compiler from making one.
static NBI_HOT void copy_argument(unsigned char *to, const void *from, size_t size_bytes) {
    const unsigned char *bytes = from;
    size_t at = 0;
    for (; at + 8 <= size_bytes; at += 8) {
        memcpy(to + at, bytes + at, 8);
        NBI_COMPILER_BARRIER();
    }
    for (; NB_UNLIKELY(at < size_bytes); ++at) to[at] = bytes[at];
}

static NB_NOINLINE void fill_outcome(nbi_lane *lane, const nb_task_desc *desc, nbi_hint hint) {
    nbi_outcome *outcome = &lane->scheduler->outcomes[nbi_hint_slot(hint)];
    outcome->on_complete = desc->on_complete;
    outcome->user = desc->user;
    outcome->sequence = (uint64_t)lane->index << 48 | lane->sequence++;
    outcome->task.value = nbi_handle_of(lane->scheduler, hint);
    outcome->memory = (nb_arena_frame){0};
    outcome->stale_frame_count = desc->stale_frame_count;
    // nbi_tasks_owned may look at the slot's last task; the other fields are filled at the task's end.
    nbi_atomic_store_relaxed_u32(&outcome->parts, 0);
}

// What only some tasks have.
static void fill_more(nbi_lane *lane, const nb_task_desc *desc, const entry *in, nbi_hint hint) {
    nbi_slot_more *more = &lane->scheduler->more[nbi_hint_slot(hint)];
    if (in->fence != NULL) {
        more->fence = in->fence;
        more->frame = in->frame;
        nbi_atomic_store_relaxed_u64(&more->thread_id, 0);
    }
    if (desc->pin != NB_PIN_NONE) nbi_atomic_store_relaxed_u32(&more->pin_lane, desc->pin - NB_PIN_COORDINATOR);
    if (desc->on_complete != NULL) fill_outcome(lane, desc, hint);
}

// The hint of the next task in a free slot.
static NBI_HOT nbi_hint next_hint(const nb_scheduler *scheduler, uint32_t index) {
    uint64_t state = nbi_atomic_load_relaxed_u64(&nbi_slot_at(scheduler, index)->state.word);
    return nbi_hint_of(nbi_state_generation(state), index);
}

// Counts the birth of a task that is filled in: see owner.h. Tasks of nobody are not counted.
static NBI_HOT void note_birth(nbi_lane *lane, uint32_t owner) {
    nb_atomic_u32 *births = &lane->births[owner];
    // Read by the acquire load in nbi_tasks_births: a thread that sees the birth sees the task.
    if (owner != 0) nbi_atomic_store_release_u32(births, nbi_atomic_load_relaxed_u32(births) + 1);
}

static NBI_HOT void fill_slot(nbi_lane *lane, const nb_task_desc *desc, const entry *in, nbi_hint hint, uint32_t kind,
                              nbi_phase phase) {
    nbi_slot *slot = nbi_slot_at(lane->scheduler, nbi_hint_slot(hint));
    uint32_t owner = nbi_owner_number(lane->scheduler);
    uint32_t label = desc->label.id & (NBI_LABEL_MASK | NBI_LABEL_RECORDS);
    slot->run = desc->run;
    slot->token = desc->token;
    nbi_atomic_store_relaxed_ptr(&slot->frame_tally, in->frame_tally);
    nbi_atomic_store_relaxed_ptr(&slot->group, in->group);
    nbi_atomic_store_relaxed_u32(&slot->label, label | owner << NBI_LABEL_OWNER_SHIFT);
    copy_argument(slot->argument, desc->argument, desc->argument_size_bytes);
    uint32_t generation = (uint32_t)nbi_hint_generation(hint) << NBI_KIND_GENERATION_SHIFT;
    nbi_atomic_store_relaxed_u32(&slot->kind, kind | generation);
    // Publishes the task, with the push that follows; read by the acquire half of the claim.
    nbi_atomic_store_release_u64(&slot->state.word, nbi_state_of_hint(hint, phase));
    note_birth(lane, owner);
}

// Nothing is taken in any more: the scheduler stops, or the caller's code is about to go.
static NBI_HOT bool is_closed(const nb_scheduler *scheduler) {
    uint32_t stop = nbi_atomic_load_relaxed_u32(&scheduler->is_stopping);
    return (stop & NBI_STOP_SUBMITS) != 0 || nbi_owner_is_closed();
}

static NBI_HOT bool publish(nbi_lane *lane, nbi_hint hint, uint32_t queue) {
    nbi_queue *queues = &lane->queues[queue];
    bool is_in = lane->running != NULL && nbi_deque_push(&queues->deque, hint);
    if (!is_in && !nbi_ring_push(&queues->ring, hint)) {
        nbi_ring_clean(lane->scheduler, &queues->ring);
        if (!nbi_ring_push(&queues->ring, hint)) return false;
    }
    nbi_own_noted(lane, queue);
    nbi_wake_one(lane, nbi_queue_is_floating(queue), hint);
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
    uint64_t unused = nbi_state_of_hint(hint, NBI_PHASE_FREE);
    nbi_slot *slot = nbi_slot_at(lane->scheduler, index);
    nbi_atomic_store_relaxed_u32(&slot->kind, 0); // no result of it waits to be told
    nbi_atomic_store_relaxed_u64(&slot->state.word, unused);
    nbi_slot_free(lane, index);
    leave_all(lane, desc, in);
    nbi_count(&lane->counts.submit_count, UINT64_MAX); // one less
    return result;
}

// Where the task of a slot goes now: into a queue, or, in phase WAITING, to those it waits for.
static nb_result place(nbi_lane *lane, const nb_task_desc *desc, nbi_hint hint, uint32_t queue, bool is_held) {
    if (desc->dependency_count != 0 || is_held) {
        return nbi_depend_on_all(lane, hint, desc->dependencies, desc->dependency_count, is_held);
    }
    if (desc->pin == NB_PIN_NONE) return publish(lane, hint, queue) ? NB_OK : NB_FULL;
    nbi_pin_publish(lane->scheduler, hint, queue);
    return NB_OK;
}

static NBI_HOT nb_priority priority_of(const nb_task_desc *desc) {
    return desc->priority != 0 ? desc->priority : NB_PRIORITY_NORMAL;
}

// Gives a task its slot and what it belongs to, in a phase. It is in no queue.
static NB_NOINLINE nb_result enter_any(nbi_lane *lane, const nb_task_desc *desc, bool has_handle, nbi_phase phase,
                                       entry *in, nbi_hint *hint) {
    nb_scheduler *scheduler = lane->scheduler;
    if (is_closed(scheduler)) return NB_CLOSED;
    uint32_t index = nbi_slot_alloc(lane, priority_of(desc));
    if (index == UINT32_MAX) return NB_FULL;
    *in = (entry){.group = NULL, .frame_tally = NULL, .fence = NULL};
    nb_result result = enter_all(lane, desc, in);
    if (result != NB_OK) {
        nbi_slot_free(lane, index);
        return result;
    }
    uint32_t kind = (uint32_t)priority_of(desc) | (in->frame_tally == NULL ? NBI_KIND_FLOATING : 0) |
                    (has_handle ? NBI_KIND_HAS_HANDLE : 0) | (in->fence != NULL ? NBI_KIND_HAS_FENCE : 0) |
                    (desc->on_complete != NULL ? NBI_KIND_HAS_RESULT : 0) |
                    (desc->pin != NB_PIN_NONE ? NBI_KIND_PINNED : 0);
    *hint = next_hint(scheduler, index);
    fill_more(lane, desc, in, *hint);
    // Before the slot has the task: from then on it can run, or a stop can end it, and be counted as ended.
    nbi_count(&lane->counts.submit_count, 1);
    fill_slot(lane, desc, in, *hint, kind, phase);
    return NB_OK;
}

static NB_NOINLINE nb_result submit_any(nbi_lane *lane, const nb_task_desc *desc, nb_task *task, bool is_held) {
    entry in;
    nbi_hint hint;
    nbi_phase phase = desc->dependency_count == 0 && !is_held ? NBI_PHASE_QUEUED : NBI_PHASE_WAITING;
    nb_result result = enter_any(lane, desc, task != NULL, phase, &in, &hint);
    if (result != NB_OK) return result;
    result = place(lane, desc, hint, nbi_queue_index(priority_of(desc), in.frame_tally == NULL), is_held);
    if (NB_UNLIKELY(result != NB_OK)) return undo(lane, desc, &in, hint, result);
    if (task != NULL) task->value = nbi_handle_of(lane->scheduler, hint);
    return NB_OK;
}

// A plain task is a function with an argument, a label, a priority and a group: most of all tasks. It is valid, and
// needs nothing of what enter_any does for others.
static NBI_HOT bool is_plain(const nb_task_desc *desc) {
    uintptr_t more = (uintptr_t)desc->token | (uintptr_t)desc->fence | desc->pin | desc->dependency_count;
    return more == 0 && desc->on_complete == NULL && desc->run != NULL && desc->priority < NB_PRIORITY_CRITICAL &&
           desc->lifetime < NB_LIFETIME_FRAME && desc->argument_size_bytes <= NB_TASK_ARGUMENT_SIZE_MAX &&
           (desc->argument != NULL || desc->argument_size_bytes == 0);
}

static NBI_HOT nb_result enter_plain(nbi_lane *lane, const nb_task_desc *desc, bool has_handle, nbi_phase phase,
                                     nbi_group **group, nbi_hint *hint) {
    nb_scheduler *scheduler = lane->scheduler;
    *group = NULL;
    if (NB_UNLIKELY(is_closed(scheduler))) return NB_CLOSED;
    uint32_t index = nbi_slot_alloc(lane, priority_of(desc));
    if (NB_UNLIKELY(index == UINT32_MAX)) return NB_FULL;
    nb_result result = desc->group.value != 0 ? group_enter(lane, desc->group, group) : NB_OK;
    if (NB_UNLIKELY(result != NB_OK)) {
        nbi_slot_free(lane, index);
        return result;
    }
    uint32_t kind = (uint32_t)priority_of(desc) | NBI_KIND_FLOATING | (has_handle ? NBI_KIND_HAS_HANDLE : 0);
    *hint = next_hint(scheduler, index);
    nbi_count(&lane->counts.submit_count, 1); // as in enter_any
    fill_slot(lane, desc, &(entry){.group = *group}, *hint, kind, phase);
    return NB_OK;
}

static NBI_HOT nb_result submit_plain(nbi_lane *lane, const nb_task_desc *desc, nb_task *task) {
    nbi_group *group;
    nbi_hint hint;
    nb_result result = enter_plain(lane, desc, task != NULL, NBI_PHASE_QUEUED, &group, &hint);
    if (NB_UNLIKELY(result != NB_OK)) return result;
    if (NB_UNLIKELY(!publish(lane, hint, nbi_queue_index(priority_of(desc), true)))) {
        return undo(lane, desc, &(entry){.group = group}, hint, NB_FULL);
    }
    if (task != NULL) task->value = nbi_handle_of(lane->scheduler, hint);
    return NB_OK;
}

nb_result nbi_task_run_bound(nbi_lane *lane, const nb_task_desc *desc, nbi_group *group, void *argument) {
    entry in = {.group = NULL, .frame_tally = NULL, .fence = NULL};
    nb_task_desc here = *desc;
    if (bind(lane, desc, &in) == NB_OK) here.fence = in.fence, here.frame = in.frame;
    nb_result told = nbi_task_run_here(lane, &here, group, in.frame_tally, argument);
    if (in.frame_tally != NULL) nbi_pocket_put(&lane->frame_pocket, in.frame_tally);
    nbi_lane_settle_pockets(lane);
    return told;
}

// Runs a task that found no room, in the call that submitted it: nobody has to wait for it.
static nb_result run_inline(nb_scheduler *scheduler, const nb_task_desc *desc, nb_task *task) {
    nbi_group *group = nbi_group_find(scheduler, desc->group);
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
        nb_result told = nbi_task_run_bound(lane, desc, NULL, argument);
        if (told != NB_OK) nbi_group_note(group, told);
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
        refuse(scheduler, SUBMIT, desc, NB_ITEM_TASK_STALE, result, "the token, the group or the frame has ended");
    if (result == NB_ERR_MISUSE)
        refuse(scheduler, SUBMIT, desc, NB_ITEM_TASK_ARGUMENT, result, "a frame-bound task needs a frame");
    return result;
}

// By the coordinator, while its budget is open.
static nb_result submit_timed(nbi_lane *lane, const nb_task_desc *desc, nb_task *task) {
    uint64_t start_ns = nbi_clock_now_ns();
    bool is_held = lane->budget_left_ns == 0 && desc->priority != NB_PRIORITY_CRITICAL;
    nb_result result = submit_any(lane, desc, task, is_held);
    uint64_t spent_ns = nbi_clock_now_ns() - start_ns;
    lane->budget_left_ns -= nbi_min_u64(spent_ns, lane->budget_left_ns);
    return result;
}

static NB_NOINLINE nb_result submit_checked(nb_scheduler *scheduler, const nb_task_desc *desc, nb_task *task) {
    if (scheduler == NULL || !is_valid(desc)) return refuse_desc(scheduler, SUBMIT, desc);
    if (desc->pin > scheduler->worker_count + NB_PIN_COORDINATOR) {
        return refuse(scheduler, SUBMIT, desc, NB_ITEM_TASK_ARGUMENT, NB_ERR_RANGE,
                      "pin names a worker that is not there");
    }
    nbi_lane *lane = nbi_lane_enter(scheduler);
    bool is_timed = lane->has_budget && lane->running == NULL;
    nb_result result = is_timed ? submit_timed(lane, desc, task) : submit_any(lane, desc, task, false);
    if (result != NB_OK) return submit_refused(lane, desc, task, result);
    nbi_lane_leave(lane);
    return NB_OK;
}

nb_result nb_task_submit(nb_scheduler *scheduler, const nb_task_desc *desc, nb_task *task) {
    bool is_quick = scheduler != NULL && desc != NULL && is_plain(desc);
    nbi_lane *lane = NB_LIKELY(is_quick) ? nbi_lane_own(scheduler) : NULL;
    if (NB_UNLIKELY(lane == NULL || lane->has_budget)) return submit_checked(scheduler, desc, task);
    nb_result result = submit_plain(lane, desc, task);
    return NB_LIKELY(result == NB_OK) ? NB_OK : submit_refused(lane, desc, task, result);
}

// --- running at once ---

// The task is over. Units of a group that the calling task ends itself may stay in the pocket: nobody else waits for
// them while it runs.
static NBI_HOT void settle(nbi_lane *lane, nb_group handle) {
    const nbi_running *running = lane->running;
    const nbi_group *group = running != NULL ? nbi_group_find(lane->scheduler, handle) : NULL;
    bool is_own = group != NULL && running->id != 0 && nbi_atomic_load_relaxed_u64(&group->owner) == running->id;
    if (NB_LIKELY(is_own && lane->group_pocket.tally == &group->tally)) return;
    nbi_lane_settle_pockets(lane);
}

static NB_NOINLINE nb_result run_refused(nb_scheduler *scheduler, const nb_task_desc *desc, nb_result result) {
    if (scheduler == NULL || !is_valid(desc)) return refuse_desc(scheduler, RUN, desc);
    if (desc->pin != NB_PIN_NONE || desc->dependency_count != 0) {
        return refuse(scheduler, RUN, desc, NB_ITEM_TASK_ARGUMENT, NB_ERR_MISUSE,
                      "what runs at once has no pin and no dependencies");
    }
    if (result == NB_ERR_STALE)
        refuse(scheduler, RUN, desc, NB_ITEM_TASK_STALE, result, "the token, the group or the frame has ended");
    if (result == NB_ERR_MISUSE)
        refuse(scheduler, RUN, desc, NB_ITEM_TASK_ARGUMENT, result, "a frame-bound task needs a frame");
    return result;
}

nb_result nb_task_run(nb_scheduler *scheduler, const nb_task_desc *desc) {
    bool is_good = scheduler != NULL && desc != NULL && is_valid(desc);
    if (NB_UNLIKELY(!is_good || desc->pin != NB_PIN_NONE || desc->dependency_count != 0)) {
        return run_refused(scheduler, desc, NB_ERR_MISUSE);
    }
    nbi_lane *lane = nbi_lane_borrow(scheduler);
    if (NB_UNLIKELY(lane == NULL)) return NB_FULL;
    nbi_group *group;
    nbi_hint hint;
    entry in;
    nb_result result = is_plain(desc) ? enter_plain(lane, desc, false, NBI_PHASE_RUNNING, &group, &hint)
                                      : enter_any(lane, desc, false, NBI_PHASE_RUNNING, &in, &hint);
    if (NB_LIKELY(result == NB_OK)) {
        nbi_task_run_claimed(lane, hint);
        settle(lane, desc->group);
    }
    nbi_lane_return(lane);
    if (NB_LIKELY(result == NB_OK)) return NB_OK;
    return result == NB_FULL && desc->runs_inline ? run_inline(scheduler, desc, NULL)
                                                  : run_refused(scheduler, desc, result);
}
