// SPDX-License-Identifier: MIT
// Waiting for a task, a group or a frame: help, then spin a little, then sleep.

#include "scheduler.h"

// How long a waiting thread looks before it sleeps: what a wake-up costs (6 to 90 us), so that at worst the price is
// paid twice.
#define SPIN_NS 50000u

// Looks at the tally between two searches for work while spinning.
#define LOOKS_A_SEARCH 16

// Whether it is over, or nothing is outstanding but what lies in this thread's own pocket: that is given back then.
static NBI_HOT bool is_over(nbi_lane *lane, const nbi_target *target) {
    // Pairs with the release half of nbi_tally_sub and of the exchange in end_slot.
    uint64_t word = nbi_atomic_load_acquire_u64(&target->word->word);
    if (nbi_target_is_over(target, word)) return true;
    nbi_pocket *pocket = &lane->group_pocket;
    if (target->group == NULL || pocket->tally != target->word || pocket->count != nbi_tally_count(word)) return false;
    // Somebody may have added to the group since the look.
    return nbi_pocket_empty(pocket);
}

// The newest task of the own deque if it belongs to the group itself: what a task that waits for its parts finds, as a
// rule.
static NBI_HOT nbi_hint take_newest(nbi_lane *lane, const nbi_group *group) {
    if (lane->owned_mask == 0) return NBI_HINT_NONE;
    nbi_deque *deque = &lane->queues[__builtin_ctz(lane->owned_mask)].deque;
    nbi_hint hint = nbi_deque_newest(deque);
    if (hint == NBI_HINT_NONE) return hint;
    const nbi_slot *slot = nbi_slot_at(lane->scheduler, nbi_hint_slot(hint));
    return nbi_atomic_load_relaxed_ptr(&slot->group) == group ? nbi_deque_pop(deque) : NBI_HINT_NONE;
}

static NBI_HOT bool help_once(nbi_lane *lane, const nbi_target *target, bool is_thorough) {
    nbi_hint hint = target->group != NULL ? take_newest(lane, target->group) : NBI_HINT_NONE;
    if (hint == NBI_HINT_NONE) hint = nbi_search_target(lane, target, is_thorough);
    if (hint == NBI_HINT_NONE) return false;
    if (nbi_task_run(lane, hint)) nbi_count(&lane->counts.help_count, 1);
    return true;
}

// True: there is something to do or to see.
static NB_NOINLINE bool spin(nbi_lane *lane, const nbi_target *target, uint64_t deadline_ns) {
#if !defined(NB_EXPLORE)
    uint64_t until_ns = nbi_min_u64(nbi_clock_now_ns() + SPIN_NS, deadline_ns);
    do {
        for (int i = 0; i < LOOKS_A_SEARCH; ++i) {
            if (nbi_target_is_over(target, nbi_atomic_load_acquire_u64(&target->word->word))) return true;
            nbi_cpu_relax();
        }
        if (help_once(lane, target, false)) return true;
    } while (nbi_clock_now_ns() < until_ns);
#else
    (void)lane, (void)target, (void)deadline_ns;
#endif
    return false;
}

// --- sleepers ---

void nbi_sleeper_enter(nb_scheduler *scheduler, nbi_sleeper *sleeper, nbi_tally *tally) {
    sleeper->tally = tally;
    nbi_lock_acquire(&scheduler->sleeper_lock);
    sleeper->next = scheduler->sleepers;
    scheduler->sleepers = sleeper;
    nbi_lock_release(&scheduler->sleeper_lock);
    // seq_cst, before the last look for work: whoever publishes after that look sees a sleeper to poke.
    nbi_atomic_fetch_add_seq_cst_u32(&scheduler->sleeper_count, 1);
}

void nbi_sleeper_leave(nb_scheduler *scheduler, nbi_sleeper *sleeper) {
    nbi_atomic_fetch_sub_seq_cst_u32(&scheduler->sleeper_count, 1);
    nbi_lock_acquire(&scheduler->sleeper_lock);
    nbi_sleeper **at = &scheduler->sleepers;
    while (*at != sleeper) at = &(*at)->next;
    *at = sleeper->next;
    nbi_lock_release(&scheduler->sleeper_lock);
}

void nbi_poke_sleepers(nb_scheduler *scheduler) {
    nbi_atomic_fetch_add_relaxed_u64(&scheduler->poke_count, 1);
    // Under the lock a sleeper cannot leave, and with it what it sleeps on cannot go.
    nbi_lock_acquire(&scheduler->sleeper_lock);
    for (nbi_sleeper *sleeper = scheduler->sleepers; sleeper != NULL; sleeper = sleeper->next) {
        nbi_tally_poke(sleeper->tally);
    }
    nbi_lock_release(&scheduler->sleeper_lock);
}

// Something that what is waited for depends on, and that is queued.
static bool help_dependency(nbi_lane *lane, const nbi_target *target, bool *is_deadlock) {
    if (nbi_atomic_load_seq_cst_u32(&lane->scheduler->waiting_count) == 0) return false;
    nbi_hint hint = nbi_depend_search(lane, target, is_deadlock);
    if (hint == NBI_HINT_NONE) return *is_deadlock;
    if (nbi_task_run(lane, hint)) nbi_count(&lane->counts.help_count, 1);
    return true;
}

// Announces itself to completers (the mark in the word) and to submitters (the list), looks once more, sleeps.
static NB_NOINLINE nb_result sleep_on(nbi_lane *lane, const nbi_target *target, uint64_t deadline_ns) {
    nb_scheduler *scheduler = lane->scheduler;
    bool is_deadlock = false;
    nbi_sleeper sleeper;
    nbi_sleeper_enter(scheduler, &sleeper, target->word);
    uint64_t word = nbi_tally_announce(target->word);
    if (!nbi_target_is_over(target, word) && !help_once(lane, target, true) &&
        !help_dependency(lane, target, &is_deadlock)) {
        nbi_count(&lane->counts.park_count, 1);
        nbi_tally_sleep(target->word, word, deadline_ns);
    }
    nbi_sleeper_leave(scheduler, &sleeper);
    return is_deadlock ? NB_ERR_DEADLOCK : NB_OK;
}

// 0 is always past, and the clock is only read where there is a deadline.
static inline bool is_late(uint64_t deadline_ns) {
    return deadline_ns == 0 || (deadline_ns != NB_NEVER_NS && nbi_clock_now_ns() >= deadline_ns);
}

static NBI_HOT nb_result help_and_sleep(nbi_lane *lane, const nbi_target *target, uint64_t deadline_ns) {
    nb_result result = NB_OK;
    while (!is_over(lane, target)) {
        if (!is_late(deadline_ns) && help_once(lane, target, false)) {
            // The deadline bounds sleeping, not a task that is being helped.
            if (is_late(deadline_ns)) nbi_count(&lane->counts.overrun_count, 1);
            continue;
        }
        // Nothing of this is near: what the pockets hold is what others may be waiting for, and this thread too.
        nbi_lane_empty_pockets(lane);
        if (is_over(lane, target)) break;
        result = is_late(deadline_ns) ? NB_TIMEOUT : NB_OK;
        if (result != NB_OK) break;
        if (!spin(lane, target, deadline_ns)) result = sleep_on(lane, target, deadline_ns);
        if (result != NB_OK) break;
    }
    return result;
}

nb_result nbi_wait(nbi_lane *lane, const nbi_target *target, uint64_t deadline_ns) {
    bool is_counted = deadline_ns != 0 && nbi_await_begin(lane->scheduler, lane, target->task_id - 1);
    nb_result result = help_and_sleep(lane, target, deadline_ns);
    nbi_await_end(lane->scheduler, lane, is_counted);
    nbi_lane_settle_pockets(lane);
    if (NB_UNLIKELY(result == NB_ERR_DEADLOCK)) {
        nbi_fail(&lane->scheduler->desc.hooks, NB_ITEM_TASK_DEADLOCK, result,
                 target->group != NULL ? "nb_group_end" : "nb_task_wait",
                 "what is waited for depends on a task that waits for it");
    }
    return result;
}

nb_result nbi_wait_outside(nb_scheduler *scheduler, const nbi_target *target, uint64_t deadline_ns) {
    bool is_counted = nbi_await_begin(scheduler, NULL, target->task_id - 1);
    nb_result result = NB_OK;
    for (;;) {
        uint64_t word = nbi_tally_announce(target->word);
        if (nbi_target_is_over(target, word)) break;
        if (is_late(deadline_ns)) result = NB_TIMEOUT;
        if (result != NB_OK) break;
        nbi_tally_sleep(target->word, word, deadline_ns);
    }
    nbi_await_end(scheduler, NULL, is_counted);
    return result;
}

// --- a task ---

// Whether a task could end only after one that runs in this lane: it is that one, or one that opened a group above it.
static bool is_above(const nbi_lane *lane, uint64_t task_id) {
    for (const nbi_running *running = lane->running; running != NULL; running = running->below) {
        if (running->id == task_id) return true;
        for (const nbi_group *at = running->group; at != NULL; at = nbi_atomic_load_relaxed_ptr(&at->parent)) {
            if (nbi_atomic_load_relaxed_u64(&at->owner) == task_id) return true;
        }
    }
    return false;
}

nb_result nb_task_wait(nb_scheduler *scheduler, nb_task task, uint64_t deadline_ns) {
    if (scheduler == NULL) return NBI_FAIL_NULL("scheduler");
    if (nb_task_is_complete(scheduler, task)) return NB_OK;
    nbi_hint hint = nbi_hint_of_handle(scheduler, task.value);
    nbi_target target = nbi_target_task(scheduler, hint);
    nbi_lane *lane = nbi_lane_borrow(scheduler);
    if (lane == NULL) return nbi_wait_outside(scheduler, &target, deadline_ns);
    nb_result result = NB_OK;
    bool is_counted = deadline_ns != 0 && nbi_await_begin(scheduler, lane, hint);
    if (is_above(lane, hint + 1)) {
        result = NBI_FAIL(&scheduler->desc.hooks, NB_ITEM_TASK_DEADLOCK, NB_ERR_DEADLOCK,
                          "a task waits for itself, or for a task that waits for it");
    } else {
        // The shortest way: it is still queued.
        bool is_run = deadline_ns != 0 && nbi_pin_allows(lane, hint) && nbi_task_run(lane, hint);
        if (is_run) nbi_count(&lane->counts.help_count, 1);
        result = nbi_wait(lane, &target, deadline_ns);
    }
    nbi_await_end(scheduler, lane, is_counted);
    nbi_lane_return(lane);
    return result;
}

// --- a frame ---

typedef struct frame_wait {
    nbi_lane *lane;
    nbi_target target;
    nbi_sleeper sleeper;
    bool is_sleeping;
} frame_wait;

static bool frame_help(void *user, nb_fence_frame frame) {
    (void)frame;
    frame_wait *wait = user;
    bool is_helped = help_once(wait->lane, &wait->target, wait->is_sleeping);
    // A deadlock ends with the frame's time-out.
    bool is_deadlock = false;
    if (!is_helped && wait->is_sleeping)
        is_helped = help_dependency(wait->lane, &wait->target, &is_deadlock) && !is_deadlock;
    // The fence counts units, not tasks: what this thread has ended must not hold it up.
    if (!is_helped || wait->lane->frame_pocket.tally == wait->target.frame) nbi_lane_empty_pockets(wait->lane);
    return is_helped;
}

static uint32_t frame_list(void *user, nb_fence_frame frame, nb_fence_straggler *stragglers, uint32_t count_max) {
    (void)frame;
    const frame_wait *wait = user;
    nb_scheduler *scheduler = wait->lane->scheduler;
    uint32_t used = nbi_slot_used_count(scheduler), count = 0;
    for (uint32_t i = 0; i < used && count < count_max; ++i) {
        const nbi_slot *slot = nbi_slot_at(scheduler, i);
        nbi_phase phase = nbi_state_phase(nbi_atomic_load_acquire_u64(&slot->state.word));
        if (phase == NBI_PHASE_FREE || nbi_atomic_load_relaxed_ptr(&slot->frame_tally) != wait->target.frame) continue;
        uint64_t thread_id = nbi_atomic_load_relaxed_u64(&scheduler->more[i].thread_id);
        stragglers[count++] =
            (nb_fence_straggler){.label = {nbi_atomic_load_relaxed_u32(&slot->label) & NBI_LABEL_MASK},
                                 .thread_id = phase == NBI_PHASE_RUNNING ? thread_id : 0};
    }
    return count;
}

static void frame_sleep_before(void *user, nbi_tally *tally) {
    frame_wait *wait = user;
    nbi_lane_empty_pockets(wait->lane);
    nbi_sleeper_enter(wait->lane->scheduler, &wait->sleeper, tally);
    wait->is_sleeping = true;
    nbi_count(&wait->lane->counts.park_count, 1);
}

static void frame_sleep_after(void *user, nbi_tally *tally) {
    (void)tally;
    frame_wait *wait = user;
    wait->is_sleeping = false;
    nbi_sleeper_leave(wait->lane->scheduler, &wait->sleeper);
}

// Whether the frame could end only after a task that runs in this lane.
static bool is_in_frame(const nbi_lane *lane, const nbi_tally *tally) {
    for (const nbi_running *running = lane->running; running != NULL; running = running->below) {
        if (running->frame_tally == tally) return true;
        for (const nbi_group *at = running->group; at != NULL; at = nbi_atomic_load_relaxed_ptr(&at->parent)) {
            if (nbi_atomic_load_relaxed_ptr(&at->frame_tally) == tally) return true;
        }
    }
    return false;
}

nb_result nb_scheduler_frame_wait(nb_scheduler *scheduler, nb_fence *fence, nb_fence_frame frame, uint64_t deadline_ns,
                                  nb_fence_report *report) {
    if (scheduler == NULL) return NBI_FAIL_NULL("scheduler");
    if (fence == NULL) return NBI_FAIL(&scheduler->desc.hooks, NB_ITEM_TASK_ARGUMENT, NB_ERR_MISUSE, "fence is NULL");
    nbi_tally *tally = nbi_fence_tally(fence, frame);
    nbi_lane *lane = tally != NULL ? nbi_lane_borrow(scheduler) : NULL;
    if (lane == NULL) return nb_fence_wait(fence, frame, deadline_ns, NULL, report);
    nb_result result;
    if (is_in_frame(lane, tally)) {
        result =
            NBI_FAIL(&scheduler->desc.hooks, NB_ITEM_TASK_DEADLOCK, NB_ERR_DEADLOCK, "a task waits for its own frame");
    } else {
        nbi_lane_empty_pockets(lane);
        frame_wait wait = {.lane = lane, .target = {.frame = tally}};
        nb_fence_help help = {.run = frame_help, .list = frame_list, .user = &wait};
        nbi_fence_sleep sleep = {frame_sleep_before, frame_sleep_after, &wait};
        bool is_counted = nbi_await_begin(scheduler, lane, NBI_HINT_NONE);
        result = nbi_fence_wait(fence, frame, deadline_ns, &help, &sleep, report);
        nbi_await_end(scheduler, lane, is_counted);
        nbi_lane_settle_pockets(lane);
    }
    nbi_lane_return(lane);
    return result;
}
