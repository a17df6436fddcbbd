// SPDX-License-Identifier: MIT
// The workers: looking for work, sleeping for want of it, being woken.
//
// A worker that goes to sleep sets its bit in parked_mask and then searches once more; whoever publishes a task looks
// at parked_mask afterwards. One of the two sees the other. Who clears the bit does the waking, so a sleeper is woken
// once and nobody makes a system call while all are awake.

#include "scheduler.h"

// How long a worker looks for more before it sleeps: a task that comes this soon costs its submitter no system call.
#define IDLE_SPIN_NS 20000u

// Pauses between two looks while spinning.
#define RELAX_COUNT 16

// --- waking ---

// Keeps the OS from putting the sleeper on the waker's own CPU, where it would wait for the waker or push it aside.
static void place(nbi_lane *lane, int cpu) {
    nb_scheduler *scheduler = lane->scheduler;
    if (scheduler->cpu_mask == 0 || cpu < 0 || cpu >= 64) return;
    uint64_t bit = (uint64_t)1 << cpu;
    uint64_t wanted = scheduler->cpu_mask & ~bit;
    if ((nbi_atomic_load_relaxed_u64(&lane->affinity_mask) & bit) == 0 || wanted == 0) return;
    if (nbi_thread_set_affinity(&lane->thread, wanted) != NB_OK) return;
    nbi_atomic_store_relaxed_u64(&lane->affinity_mask, wanted);
}

// Wakes the worker whose bit the caller has cleared.
static void wake(nbi_lane *lane) {
    place(lane, nbi_cpu_current());
    nbi_atomic_fetch_add_seq_cst_u32(&lane->wake_event, 1);
    nbi_unpark(&lane->wake_event, 1);
}

static bool wake_parked(nb_scheduler *scheduler, uint64_t mask) {
    while (mask != 0) {
        uint32_t index = (uint32_t)__builtin_ctzll(mask);
        uint64_t bit = (uint64_t)1 << index;
        mask = nbi_atomic_fetch_and_seq_cst_u64(&scheduler->parked_mask, ~bit);
        if ((mask & bit) != 0) {
            wake(scheduler->lanes[index]);
            return true;
        }
    }
    return false;
}

void nbi_wake_lane(nb_scheduler *scheduler, uint32_t lane) {
    uint64_t bit = (uint64_t)1 << lane;
    // After the publishing RMW; the other halves are in sleep_parked and nbi_sleeper_enter.
    bool is_parked = (nbi_atomic_load_seq_cst_u64(&scheduler->parked_mask) & bit) != 0;
    if (is_parked) is_parked = (nbi_atomic_fetch_and_seq_cst_u64(&scheduler->parked_mask, ~bit) & bit) != 0;
    if (is_parked)
        wake(scheduler->lanes[lane]);
    else if (nbi_atomic_load_seq_cst_u32(&scheduler->sleeper_count) != 0)
        nbi_poke_sleepers(scheduler);
}

// A background task is not worth a wake-up when no further worker may take it. Whoever makes room looks at what is
// queued afterwards: float_end in search.c.
static bool is_worth_it(nb_scheduler *scheduler, bool is_floating, nbi_hint hint, uint64_t parked_mask) {
    if (parked_mask == 0) return false;
    return !is_floating || !nbi_is_float_full(scheduler) || !nbi_is_background(scheduler, hint, parked_mask);
}

void nbi_wake_sleeping(nbi_lane *lane, bool is_floating, nbi_hint hint, uint64_t parked_mask) {
    nb_scheduler *scheduler = lane->scheduler;
    bool is_woken = is_worth_it(scheduler, is_floating, hint, parked_mask) && wake_parked(scheduler, parked_mask);
    if (is_woken) nbi_count(&lane->counts.wake_count, 1);
    // A worker woken for a floating task may find that it may not take it.
    bool is_sure = is_woken && !(is_floating && nbi_holds_ceiling(scheduler));
    if (is_sure) return;
    if (nbi_atomic_load_seq_cst_u32(&scheduler->sleeper_count) != 0) nbi_poke_sleepers(scheduler);
}

void nbi_wake_kept(nb_scheduler *scheduler) {
    uint64_t mask = nbi_atomic_load_seq_cst_u64(&scheduler->kept_mask);
    if (NB_LIKELY(mask == 0)) return;
    mask &= nbi_atomic_load_seq_cst_u64(&scheduler->parked_mask);
    uint64_t left = mask != 0 ? nbi_floating_queued_count(scheduler) : 0;
    for (; mask != 0 && left > 0; mask &= mask - 1) {
        if (wake_parked(scheduler, mask & (~mask + 1))) --left;
    }
}

// One look: who goes to sleep after it has seen what this wake is for.
void nbi_wake_all(nb_scheduler *scheduler) {
    uint64_t mask = nbi_atomic_load_seq_cst_u64(&scheduler->parked_mask);
    for (; mask != 0; mask &= mask - 1) {
        uint64_t bit = mask & (~mask + 1);
        bool is_ours = (nbi_atomic_fetch_and_seq_cst_u64(&scheduler->parked_mask, ~bit) & bit) != 0;
        if (is_ours) wake(scheduler->lanes[__builtin_ctzll(bit)]);
    }
}

nb_result nb_scheduler_prewake(nb_scheduler *scheduler, uint64_t spin_ns) {
    if (scheduler == NULL) return NBI_FAIL_NULL("scheduler");
    if (spin_ns > NB_SCHEDULER_PREWAKE_NS_MAX) {
        return NBI_FAIL(&scheduler->desc.hooks, NB_ITEM_TASK_ARGUMENT, NB_ERR_RANGE, "spin_ns is over 1 ms");
    }
    nbi_atomic_store_relaxed_u32(&scheduler->waker_cpu, (uint32_t)(nbi_cpu_current() + 1));
    nbi_atomic_store_relaxed_u64(&scheduler->spin_until_ns, nbi_clock_now_ns() + spin_ns);
    nbi_wake_all(scheduler);
    return NB_OK;
}

// --- sleeping ---

static bool is_stopping(const nb_scheduler *scheduler) {
    // seq_cst: in sleep_parked, after the bit, it is one half of a pair; the other is workers_end.
    return (nbi_atomic_load_seq_cst_u32(&scheduler->is_stopping) & NBI_STOP_WORKERS) == NBI_STOP_WORKERS;
}

static bool has_any_work(const nb_scheduler *scheduler) {
    uint64_t bits = 0;
    for (uint32_t i = 0; i < NBI_QUEUE_COUNT; ++i) bits |= nbi_atomic_load_relaxed_u64(&scheduler->has_work[i]);
    return bits != 0;
}

// Looks on for a while before it sleeps. A hint, or NBI_HINT_NONE when the time is over.
static nbi_hint spin_for_work(nbi_lane *lane) {
    nb_scheduler *scheduler = lane->scheduler;
#if defined(NB_EXPLORE)
    (void)scheduler, (void)has_any_work;
    return nbi_search(lane);
#else
    uint64_t start_ns = nbi_clock_now_ns(), now_ns = start_ns;
    uint64_t until_ns = nbi_atomic_load_relaxed_u64(&scheduler->spin_until_ns);
    // On the CPU of the thread that announced the work it would keep that thread from starting it.
    if ((uint32_t)(nbi_cpu_current() + 1) == nbi_atomic_load_relaxed_u32(&scheduler->waker_cpu)) until_ns = 0;
    until_ns = nbi_max_u64(until_ns, start_ns + IDLE_SPIN_NS);
    while (now_ns < until_ns && !is_stopping(scheduler)) {
        nbi_hint hint = has_any_work(scheduler) ? nbi_search(lane) : NBI_HINT_NONE;
        if (hint != NBI_HINT_NONE) return hint;
        for (int i = 0; i < RELAX_COUNT; ++i) nbi_cpu_relax();
        now_ns = nbi_clock_now_ns();
    }
    return NBI_HINT_NONE;
#endif
}

// Sleeps until woken, unless a last search finds something: that is returned.
static nbi_hint sleep_parked(nbi_lane *lane) {
    nb_scheduler *scheduler = lane->scheduler;
    uint64_t bit = (uint64_t)1 << lane->index;
    // Before the bit: a wake after it changes the event, and the park returns at once.
    uint32_t event = nbi_atomic_load_acquire_u32(&lane->wake_event);
    nbi_atomic_fetch_or_seq_cst_u64(&scheduler->parked_mask, bit);
    nbi_hint hint = nbi_search(lane);
    if (hint == NBI_HINT_NONE && !is_stopping(scheduler)) {
        nbi_count(&lane->counts.park_count, 1);
        while (nbi_atomic_load_acquire_u32(&lane->wake_event) == event) {
            nbi_park_until(&lane->wake_event, event, NB_NEVER_NS);
        }
    }
    // Nobody awake has the bit: a wake meant for an earlier sleep may have ended this one with the bit still up, and a
    // submitter would take this thread for a sleeper. Who has cleared it wakes somebody who is awake: that wake is
    // passed on.
    uint64_t mask = nbi_atomic_fetch_and_seq_cst_u64(&scheduler->parked_mask, ~bit);
    nbi_keep_no_more(lane);
    if ((mask & bit) == 0 && hint != NBI_HINT_NONE) nbi_wake_one(lane, false, hint);
    return hint;
}

static nbi_hint await_work(nbi_lane *lane) {
    nbi_hint hint = spin_for_work(lane);
    if (hint != NBI_HINT_NONE || is_stopping(lane->scheduler)) return hint;
    return sleep_parked(lane);
}

// --- the thread ---

static void work_until_idle(nbi_lane *lane, nbi_hint hint) {
    while (hint != NBI_HINT_NONE) {
        nbi_task_run(lane, hint);
        hint = nbi_search(lane);
    }
    nbi_lane_empty_pockets(lane);
}

void nbi_worker_run(nbi_lane *lane) {
    nb_scheduler *scheduler = lane->scheduler;
    uint64_t last_ns = nbi_clock_now_ns();
    nbi_atomic_store_relaxed_u64(&lane->counts.period, last_ns << 1);
    nbi_hint hint = nbi_search(lane);
    while (!is_stopping(scheduler) || hint != NBI_HINT_NONE) {
        uint64_t begin_ns = nbi_clock_now_ns();
        nbi_count(&lane->counts.idle_ns, begin_ns - last_ns);
        nbi_atomic_store_relaxed_u64(&lane->counts.period, begin_ns << 1 | 1);
        work_until_idle(lane, hint);
        last_ns = nbi_clock_now_ns();
        nbi_count(&lane->counts.busy_ns, last_ns - begin_ns);
        nbi_atomic_store_relaxed_u64(&lane->counts.period, last_ns << 1);
        hint = await_work(lane);
    }
    nbi_lane_empty_pockets(lane);
}

void nbi_worker_main(void *user) {
    nbi_lane *lane = user;
    nb_scheduler *scheduler = lane->scheduler;
    nbi_fp_enter();
    nbi_lane_own_by_caller(lane);
    if (scheduler->desc.on_start != NULL) scheduler->desc.on_start(scheduler->desc.user, lane->index - 1);
    nbi_worker_run(lane);
    if (scheduler->desc.on_stop != NULL) scheduler->desc.on_stop(scheduler->desc.user, lane->index - 1);
    nbi_lane_disown(lane);
}

// --- helping ---

nb_result nb_scheduler_help(nb_scheduler *scheduler, uint64_t budget_ns, uint64_t *run_count) {
    if (scheduler == NULL) return NBI_FAIL_NULL("scheduler");
    nbi_lane *lane = nbi_lane_borrow(scheduler);
    if (lane == NULL) return NB_FULL;
    uint64_t end_ns = budget_ns != 0 ? nbi_clock_now_ns() + budget_ns : 0;
    if (end_ns < budget_ns) end_ns = NB_NEVER_NS;
    uint64_t count = 0;
    do {
        nbi_hint hint = nbi_search(lane);
        if (hint == NBI_HINT_NONE) break;
        if (nbi_task_run(lane, hint)) ++count;
    } while (count == 0 || nbi_clock_now_ns() < end_ns);
    nbi_lane_settle_pockets(lane);
    nbi_count(&lane->counts.help_count, count);
    nbi_lane_return(lane);
    if (count == 0) return NB_EMPTY;
    if (run_count != NULL) *run_count = count;
    return NB_OK;
}
