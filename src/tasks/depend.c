// SPDX-License-Identifier: MIT
// Tasks that wait for the end of others. Everything here happens under one lock: dependencies are few beside tasks, and
// a task that has none never comes here.
//
// The first to depend on a task marks its state LISTED, by a compare-and-exchange that fails once it has ended; the end
// is an exchange that returns the mark. So either the end knows that it has to look into the list, or whoever wanted to
// wait learns that there is nothing to wait for.

#include "scheduler.h"

static nbi_slot_more *more_of(const nb_scheduler *scheduler, nbi_hint hint) {
    return &scheduler->more[nbi_hint_slot(hint)];
}

static uint64_t state_of(const nb_scheduler *scheduler, nbi_hint hint) {
    return nbi_atomic_load_seq_cst_u64(&nbi_slot_at(scheduler, nbi_hint_slot(hint))->state.word);
}

static bool is_in_phase(const nb_scheduler *scheduler, nbi_hint hint, nbi_phase phase) {
    return (state_of(scheduler, hint) & ~NBI_STATE_NOTES) == nbi_state_of_hint(hint, phase);
}

// Moves a task from one phase to another. False: it is not in the first. The lock is held.
static bool move(const nb_scheduler *scheduler, nbi_hint hint, nbi_phase from, nbi_phase to) {
    nbi_slot *slot = nbi_slot_at(scheduler, nbi_hint_slot(hint));
    uint64_t wanted = nbi_state_of_hint(hint, from), state = wanted;
    do {
        uint64_t moved = (state & ~NBI_PHASE_MASK) | (uint64_t)to;
        if (nbi_atomic_compare_exchange_seq_cst_u64(&slot->state.word, &state, moved)) return true;
    } while ((state & ~NBI_STATE_NOTES) == wanted);
    return false;
}

// False: the task has ended. The lock is held.
static bool mark_listed(const nb_scheduler *scheduler, nbi_hint hint) {
    nbi_slot *slot = nbi_slot_at(scheduler, nbi_hint_slot(hint));
    uint64_t state = nbi_atomic_load_acquire_u64(&slot->state.word);
    do {
        bool is_alive = nbi_state_generation(state) == nbi_hint_generation(hint);
        if (!is_alive || nbi_state_phase(state) == NBI_PHASE_FREE) return false;
        // One order with the exchange in end_slot.
    } while (!nbi_atomic_compare_exchange_seq_cst_u64(&slot->state.word, &state, state | NBI_STATE_LISTED));
    return true;
}

// --- edges ---

static uint32_t edge_alloc(nb_scheduler *scheduler) {
    uint32_t index = scheduler->free_edge;
    if (index != 0) {
        scheduler->free_edge = scheduler->edges[index - 1].next_out;
        return index;
    }
    return scheduler->fresh_edge_count < scheduler->edge_count ? ++scheduler->fresh_edge_count : 0;
}

static void edge_free(nb_scheduler *scheduler, uint32_t index) {
    scheduler->edges[index - 1].next_out = scheduler->free_edge;
    scheduler->free_edge = index;
}

static void edge_link(nb_scheduler *scheduler, uint32_t index, nbi_hint from, nbi_hint to) {
    nbi_slot_more *source = more_of(scheduler, from), *target = more_of(scheduler, to);
    scheduler->edges[index - 1] =
        (nbi_edge){.from = from, .to = to, .next_out = source->first_out, .next_in = target->first_in};
    if (target->first_in != 0) scheduler->edges[target->first_in - 1].prior_in = index;
    source->first_out = index;
    target->first_in = index;
    ++target->pending;
}

static void edge_unlink_in(nb_scheduler *scheduler, const nbi_edge *edge) {
    if (edge->next_in != 0) scheduler->edges[edge->next_in - 1].prior_in = edge->prior_in;
    if (edge->prior_in != 0)
        scheduler->edges[edge->prior_in - 1].next_in = edge->next_in;
    else
        more_of(scheduler, edge->to)->first_in = edge->next_in;
}

// --- in and out of waiting ---

static void enter_waiting(nb_scheduler *scheduler) { nbi_atomic_fetch_add_seq_cst_u32(&scheduler->waiting_count, 1); }

// Out of phase WAITING; to QUEUED only where nothing is left to wait for. Under the lock, so that who still finds the
// task waiting may add to what it waits for. The caller publishes it after the lock is free.
static bool leave_waiting(nb_scheduler *scheduler, nbi_hint task, nbi_phase to) {
    if (to == NBI_PHASE_QUEUED && more_of(scheduler, task)->pending != 0) return false;
    if (!move(scheduler, task, NBI_PHASE_WAITING, to)) return false;
    nbi_atomic_fetch_sub_seq_cst_u32(&scheduler->waiting_count, 1);
    return true;
}

// --- held back by the budget ---

static void held_link(nb_scheduler *scheduler, nbi_hint task) {
    nbi_slot_more *more = more_of(scheduler, task);
    uint32_t slot = nbi_hint_slot(task) + 1;
    more->is_held = true;
    more->next_held = 0;
    more->prior_held = scheduler->last_held;
    if (scheduler->last_held != 0)
        scheduler->more[scheduler->last_held - 1].next_held = slot;
    else
        scheduler->first_held = slot;
    scheduler->last_held = slot;
    ++more->pending;
    nbi_atomic_fetch_add_relaxed_u32(&scheduler->held_count, 1);
}

static void held_unlink(nb_scheduler *scheduler, uint32_t slot) {
    nbi_slot_more *more = &scheduler->more[slot];
    if (more->next_held != 0)
        scheduler->more[more->next_held - 1].prior_held = more->prior_held;
    else
        scheduler->last_held = more->prior_held;
    if (more->prior_held != 0)
        scheduler->more[more->prior_held - 1].next_held = more->next_held;
    else
        scheduler->first_held = more->next_held;
    more->is_held = false;
    --more->pending;
    nbi_atomic_fetch_sub_relaxed_u32(&scheduler->held_count, 1);
}

// Lets a task go, as far as the budget holds it. Its hint, if it is queued now and to be published; else NBI_HINT_NONE.
// The lock is held.
static nbi_hint release_held(nb_scheduler *scheduler, uint32_t slot) {
    if (!scheduler->more[slot].is_held) return NBI_HINT_NONE;
    // Read before it is queued: from then on anybody may run it, and the slot have another task.
    uint64_t state = nbi_atomic_load_relaxed_u64(&nbi_slot_at(scheduler, slot)->state.word);
    nbi_hint hint = nbi_hint_of(nbi_state_generation(state), slot);
    held_unlink(scheduler, slot);
    return leave_waiting(scheduler, hint, NBI_PHASE_QUEUED) ? hint : NBI_HINT_NONE;
}

bool nbi_depend_release_held(nbi_lane *lane) {
    nb_scheduler *scheduler = lane->scheduler;
    nbi_lock_acquire(&scheduler->depend_lock);
    uint32_t slot = scheduler->first_held;
    nbi_hint hint = slot != 0 ? release_held(scheduler, slot - 1) : NBI_HINT_NONE;
    nbi_lock_release(&scheduler->depend_lock);
    if (hint != NBI_HINT_NONE) nbi_task_publish(lane, hint);
    return slot != 0;
}

// --- walking ---

// A walk against the direction of the edges, from a task to all it waits for. Each slot once: the list runs through the
// slots themselves, so its length is no matter.
typedef struct walk {
    nb_scheduler *scheduler;
    uint32_t first; // slot + 1
} walk;

static void walk_push(walk *w, uint32_t slot) {
    nbi_slot_more *more = &w->scheduler->more[slot];
    if (more->visit_number == w->scheduler->visit_number) return;
    more->visit_number = w->scheduler->visit_number;
    more->next = w->first;
    w->first = slot + 1;
}

static walk walk_begin(nb_scheduler *scheduler) {
    // 0 is what fresh slots have. After 2^32 walks a slot that was last met exactly so many ago is passed by: the
    // waiter then sleeps until somebody else runs what it would have run.
    if (++scheduler->visit_number == 0) ++scheduler->visit_number;
    return (walk){scheduler, 0};
}

// The next slot + 1, after its predecessors were put on the list; 0 at the end.
static uint32_t walk_next(walk *w) {
    uint32_t slot = w->first;
    if (slot == 0) return 0;
    const nbi_slot_more *more = &w->scheduler->more[slot - 1];
    w->first = more->next;
    for (uint32_t edge = more->first_in; edge != 0; edge = w->scheduler->edges[edge - 1].next_in) {
        walk_push(w, nbi_hint_slot(w->scheduler->edges[edge - 1].from));
    }
    return slot;
}

// Whether `on` waits for the task, directly or not. The lock is held.
static bool waits_for(nb_scheduler *scheduler, nbi_hint on, nbi_hint task) {
    walk w = walk_begin(scheduler);
    walk_push(&w, nbi_hint_slot(on));
    for (uint32_t slot = walk_next(&w); slot != 0; slot = walk_next(&w)) {
        if (slot - 1 == nbi_hint_slot(task)) return true;
    }
    return false;
}

static bool is_running_here(const nbi_lane *lane, uint32_t slot) {
    for (const nbi_running *running = lane->running; running != NULL; running = running->below) {
        if (running->id != 0 && nbi_hint_slot(running->id - 1) == slot) return true;
    }
    return false;
}

// What the tasks on the list wait for, as far as it is queued. What only the budget holds back is let go: *is_released.
static nbi_hint walk_to_queued(const nbi_lane *lane, walk *w, bool *is_deadlock, bool *is_released) {
    for (uint32_t slot = walk_next(w); slot != 0; slot = walk_next(w)) {
        nbi_hint hint = release_held(w->scheduler, slot - 1);
        *is_released = hint != NBI_HINT_NONE;
        if (*is_released) return hint;
        uint64_t state = nbi_atomic_load_seq_cst_u64(&nbi_slot_at(w->scheduler, slot - 1)->state.word);
        hint = nbi_hint_of(nbi_state_generation(state), slot - 1);
        if (nbi_state_phase(state) == NBI_PHASE_QUEUED && nbi_pin_allows(lane, hint)) return hint;
        if (nbi_state_phase(state) == NBI_PHASE_RUNNING && is_running_here(lane, slot - 1)) *is_deadlock = true;
    }
    return NBI_HINT_NONE;
}

nbi_hint nbi_depend_search(nbi_lane *lane, const nbi_target *target, bool *is_deadlock) {
    nb_scheduler *scheduler = lane->scheduler;
    uint32_t used = nbi_slot_used_count(scheduler);
    nbi_lock_acquire(&scheduler->depend_lock);
    walk w = walk_begin(scheduler);
    for (uint32_t i = 0; i < used; ++i) {
        uint64_t state = nbi_atomic_load_seq_cst_u64(&nbi_slot_at(scheduler, i)->state.word);
        if (nbi_state_phase(state) != NBI_PHASE_WAITING) continue;
        if (nbi_serves(scheduler, target, nbi_hint_of(nbi_state_generation(state), i))) walk_push(&w, i);
    }
    bool is_released = false;
    nbi_hint hint = walk_to_queued(lane, &w, is_deadlock, &is_released);
    nbi_lock_release(&scheduler->depend_lock);
    if (hint == NBI_HINT_NONE) return hint;
    *is_deadlock = false;
    // Whoever may run it finds it, if this thread may not; its poke makes this one look again.
    if (is_released) nbi_task_publish(lane, hint);
    return nbi_pin_allows(lane, hint) ? hint : NBI_HINT_NONE;
}

// --- waiting and being let go ---

// Whether one task may wait for another, with an edge for it. NB_EMPTY: there is nothing to wait for. The lock is held.
static nb_result prepare(nb_scheduler *scheduler, nbi_hint task, nbi_hint on, uint32_t *edge) {
    if (nbi_hint_slot(on) >= scheduler->slot_count) return NB_EMPTY;
    if (on == task) return NB_ERR_DEADLOCK;
    if (is_in_phase(scheduler, on, NBI_PHASE_WAITING) && waits_for(scheduler, on, task)) return NB_ERR_DEADLOCK;
    *edge = edge_alloc(scheduler);
    if (*edge == 0) return NB_FULL;
    if (mark_listed(scheduler, on)) return NB_OK;
    edge_free(scheduler, *edge);
    return NB_EMPTY;
}

// Forgets what a task waits for; its edges stay in the lists of those, and mean nothing there. The lock is held.
static void forget_all(nb_scheduler *scheduler, nbi_hint task) {
    nbi_slot_more *more = more_of(scheduler, task);
    if (more->is_held) held_unlink(scheduler, nbi_hint_slot(task));
    for (uint32_t edge = more->first_in; edge != 0; edge = scheduler->edges[edge - 1].next_in) {
        scheduler->edges[edge - 1].to = NBI_HINT_NONE;
    }
    more->first_in = 0;
    more->pending = 0;
}

// After a task has got something to wait for: who waits for that task may run it, or let it go.
static void tell_waiters(nb_scheduler *scheduler) {
    if (nbi_atomic_load_seq_cst_u32(&scheduler->sleeper_count) != 0) nbi_poke_sleepers(scheduler);
    nbi_wake_kept(scheduler);
}

nb_result nbi_depend_on_all(nbi_lane *lane, nbi_hint hint, const nb_task *on, uint32_t count, bool is_held) {
    nb_scheduler *scheduler = lane->scheduler;
    nb_result result = NB_OK;
    nbi_lock_acquire(&scheduler->depend_lock);
    enter_waiting(scheduler);
    if (is_held) held_link(scheduler, hint);
    for (uint32_t i = 0; i < count && result != NB_FULL; ++i) {
        nbi_hint from = nbi_hint_of_handle(scheduler, on[i].value);
        uint32_t edge = 0;
        result = prepare(scheduler, hint, from, &edge);
        if (result == NB_OK) edge_link(scheduler, edge, from, hint);
    }
    if (result == NB_FULL) forget_all(scheduler, hint);
    bool is_ready = leave_waiting(scheduler, hint, result == NB_FULL ? NBI_PHASE_RUNNING : NBI_PHASE_QUEUED);
    nbi_lock_release(&scheduler->depend_lock);
    if (result == NB_FULL) return result;
    if (is_ready)
        nbi_task_publish(lane, hint);
    else
        tell_waiters(scheduler);
    return NB_OK;
}

// Makes the task wait, once everything else is known to be possible. NB_BUSY: it has started. The lock is held.
static nb_result hold(nb_scheduler *scheduler, nbi_hint task, nbi_hint on, uint32_t edge) {
    // Entries of the task in queues are dead now; it gets a new one when its time comes.
    bool is_moved = move(scheduler, task, NBI_PHASE_QUEUED, NBI_PHASE_WAITING);
    if (!is_moved && !is_in_phase(scheduler, task, NBI_PHASE_WAITING)) {
        // `on` stays marked: its end finds an empty list, or that of others.
        edge_free(scheduler, edge);
        return NB_BUSY;
    }
    if (is_moved) enter_waiting(scheduler);
    edge_link(scheduler, edge, on, task);
    return NB_OK;
}

// NB_OK where the task has not started: said after it was seen that there is nothing to wait for.
static nb_result is_unstarted(const nb_scheduler *scheduler, nbi_hint task) {
    uint64_t state = state_of(scheduler, task);
    nbi_phase phase = nbi_state_phase(state);
    if (nbi_state_generation(state) != nbi_hint_generation(task) || phase == NBI_PHASE_FREE) return NB_EMPTY;
    return phase == NBI_PHASE_RUNNING ? NB_BUSY : NB_OK;
}

nb_result nb_task_depend(nb_scheduler *scheduler, nb_task task, nb_task on) {
    if (scheduler == NULL) return NBI_FAIL_NULL("scheduler");
    nbi_hint hint = nbi_hint_of_handle(scheduler, task.value), from = nbi_hint_of_handle(scheduler, on.value);
    if (nbi_hint_slot(hint) >= scheduler->slot_count) return NB_EMPTY;
    nbi_lock_acquire(&scheduler->depend_lock);
    uint32_t edge = 0;
    nb_result result = is_unstarted(scheduler, hint);
    if (result == NB_OK) result = prepare(scheduler, hint, from, &edge);
    bool has_edge = edge != 0 && result == NB_OK;
    if (has_edge) result = hold(scheduler, hint, from, edge);
    nbi_lock_release(&scheduler->depend_lock);
    if (result == NB_OK) tell_waiters(scheduler);
    if (result == NB_ERR_DEADLOCK) {
        return NBI_FAIL(&scheduler->desc.hooks, NB_ITEM_TASK_DEADLOCK, result,
                        "the two tasks would wait for each other");
    }
    return result == NB_EMPTY || result == NB_BUSY ? is_unstarted(scheduler, hint) : result;
}

// Takes the first task off the list of one that has ended. False: the list is empty. *ready is that task, if it has
// nothing else to wait for, else NBI_HINT_NONE.
static bool release_one(nb_scheduler *scheduler, uint32_t slot, nbi_hint *ready) {
    *ready = NBI_HINT_NONE;
    nbi_lock_acquire(&scheduler->depend_lock);
    uint32_t at = scheduler->more[slot].first_out;
    if (at != 0) {
        nbi_edge *edge = &scheduler->edges[at - 1];
        scheduler->more[slot].first_out = edge->next_out;
        if (edge->to != NBI_HINT_NONE) {
            edge_unlink_in(scheduler, edge);
            --more_of(scheduler, edge->to)->pending;
            if (leave_waiting(scheduler, edge->to, NBI_PHASE_QUEUED)) *ready = edge->to;
        }
        edge_free(scheduler, at);
    }
    nbi_lock_release(&scheduler->depend_lock);
    return at != 0;
}

void nbi_depend_release(nbi_lane *lane, uint32_t slot) {
    nbi_hint ready;
    while (release_one(lane->scheduler, slot, &ready)) {
        if (ready != NBI_HINT_NONE) nbi_task_publish(lane, ready);
    }
}

bool nbi_depend_claim(nb_scheduler *scheduler, nbi_hint hint) {
    nbi_lock_acquire(&scheduler->depend_lock);
    // One without anything to wait for is on its way in, and the submitting thread's.
    bool is_ours = is_in_phase(scheduler, hint, NBI_PHASE_WAITING) && more_of(scheduler, hint)->pending != 0;
    if (is_ours) {
        forget_all(scheduler, hint);
        is_ours = leave_waiting(scheduler, hint, NBI_PHASE_RUNNING);
    }
    nbi_lock_release(&scheduler->depend_lock);
    return is_ours;
}
