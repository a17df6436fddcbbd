// SPDX-License-Identifier: MIT
// Finding any task, strictly by priority, for workers and helpers. What a waiter may run: waiter_search.c.

#include "scheduler.h"

// A thief that empties a ring as fast as its owner fills it takes the line with the cells away from the owner at every
// push, and both crawl. So after every DISTANCE_TASKS tasks that took less than DISTANCE_TASK_NS each, from a ring with
// fewer than DISTANCE_QUEUED entries, it stays away for DISTANCE_PAUSE_NS (100,000 empty tasks: 45 ns each instead of
// 49).
#define DISTANCE_TASKS 16u
#define DISTANCE_TASK_NS 150u
#define DISTANCE_QUEUED 64u
#define DISTANCE_PAUSE_NS 2000u

// Where more than BULK_QUEUED entries lie in another's ring, a thief takes BULK_COUNT at once: many thieves at one head
// would spend their time on taking its line from each other. Only while tasks take less than BULK_TASK_NS each, so that
// a thread keeps the others' tasks back for no longer than that. Should it be held up after all: every LEFT_TASKS times
// a thief looks into the deques of all others before it looks into a ring.
#define BULK_TASK_NS 2000u
#if defined(NB_EXPLORE)
#define BULK_COUNT 3u
#define BULK_QUEUED 3u
#define LEFT_TASKS 2u
#define OWN_TASKS 3u
#else
#define BULK_COUNT 8u
#define BULK_QUEUED 32u
#define LEFT_TASKS 4u
// Every so often what others have goes before what the thread itself has: seldom enough to cost nothing.
#define OWN_TASKS 64u
#endif

// A Low task may go first when Low was neither empty nor served for this long.
#define LOW_AGE_NS 500000000u

// Tasks between two looks at the clock while Low ones wait: a look costs about 25 ns. After tasks of more than
// LOW_LOOK_NS together the next look comes at once.
#define LOW_LOOK_TASKS 16u
#define LOW_LOOK_NS 10000000u

#define QUEUE_LOW nbi_queue_index(NB_PRIORITY_LOW, false)

static void own_cleared(nbi_lane *lane, uint32_t queue) {
    lane->owned_mask &= ~(1u << queue);
    nbi_atomic_fetch_and_seq_cst_u64(&lane->scheduler->has_work[queue], ~((uint64_t)1 << lane->index));
}

static nbi_hint take_deque(nbi_deque *deque) {
    uint64_t index;
    for (;;) {
        nbi_hint hint = nbi_deque_peek(deque, &index);
        if (hint == NBI_HINT_NONE || nbi_deque_take(deque, index)) return hint;
    }
}

// After the deque was taken from: whether anything is left of what was taken in bulk, and where it ends.
static void bulk_noted(nbi_lane *lane, uint32_t queue) {
    const nbi_deque *own = &lane->queues[queue].deque;
    uint64_t bottom = nbi_atomic_load_relaxed_u64(&own->bottom), top = nbi_atomic_load_relaxed_u64(&own->top);
    if ((int64_t)(bottom - lane->bulk_end[queue]) < 0) lane->bulk_end[queue] = bottom;
    if ((int64_t)(lane->bulk_end[queue] - top) <= 0) lane->bulk_mask &= ~(1u << queue);
}

static nbi_hint take_own(nbi_lane *lane, uint32_t queue) {
    if ((lane->owned_mask & 1u << queue) == 0) return NBI_HINT_NONE;
    nbi_queue *own = &lane->queues[queue];
    nbi_hint hint = nbi_deque_pop(&own->deque);
    if ((lane->bulk_mask & 1u << queue) != 0) bulk_noted(lane, queue);
    if (hint == NBI_HINT_NONE) hint = nbi_ring_pop(&own->ring);
    if (hint == NBI_HINT_NONE) own_cleared(lane, queue);
    return hint;
}

static bool has_urgent(const nb_scheduler *scheduler) {
    uint64_t bits = 0;
    for (uint32_t queue = 0; queue < nbi_queue_index(NB_PRIORITY_NORMAL, false); ++queue) {
        bits |= nbi_atomic_load_relaxed_u64(&scheduler->has_work[queue]);
    }
    return bits != 0;
}

// Called for tasks taken from another's ring.
static void keep_distance(nbi_lane *lane, const nbi_ring *ring, uint32_t count, bool is_pressing) {
    lane->near_count += count;
    if (lane->near_count < DISTANCE_TASKS) return;
    lane->near_count = 0;
    uint64_t now_ns = nbi_clock_now_ns(), spent_ns = now_ns - lane->near_ns;
    bool is_quick = spent_ns < (uint64_t)DISTANCE_TASKS * DISTANCE_TASK_NS;
    lane->takes_bulk = spent_ns < (uint64_t)DISTANCE_TASKS * BULK_TASK_NS;
    uint64_t ahead = nbi_atomic_load_relaxed_u64(&ring->head) + DISTANCE_QUEUED;
    if (is_quick && !is_pressing && nbi_ring_at(ring, ahead) == NBI_HINT_NONE) {
        uint64_t until_ns = now_ns + DISTANCE_PAUSE_NS;
        while (now_ns < until_ns && !has_urgent(lane->scheduler)) {
            for (int i = 0; i < 8; ++i) nbi_cpu_relax();
            now_ns = nbi_clock_now_ns();
        }
    }
    lane->near_ns = now_ns;
}

// The bit of the shared lane has no owner who would clear it in passing.
static void clear_outside(nb_scheduler *scheduler, uint32_t queue) {
    if (!nbi_lock_try(&scheduler->outside_lock)) return;
    nbi_lane *outside = scheduler->lanes[NBI_LANE_OUTSIDE];
    uint64_t index;
    bool is_empty = nbi_ring_peek(&outside->queues[queue].ring, &index) == NBI_HINT_NONE;
    if (is_empty && (outside->owned_mask & 1u << queue) != 0) own_cleared(outside, queue);
    nbi_lock_release(&scheduler->outside_lock);
}

// Copies the entries behind an index into the own deque, so that the oldest is found first. Returns how many.
static uint32_t copy_behind(nbi_lane *lane, const nbi_ring *ring, uint64_t index, uint32_t queue) {
    nbi_deque *own = &lane->queues[queue].deque;
    uint32_t count = 0;
    for (uint64_t at = index + BULK_COUNT - 1; at != index; --at) {
        nbi_hint hint = nbi_ring_at(ring, at);
        if (hint != NBI_HINT_NONE && nbi_deque_push(own, hint)) ++count;
    }
    nbi_own_noted(lane, queue);
    return count;
}

static bool takes_bulk(const nbi_lane *lane) {
#if defined(NB_EXPLORE)
    return !lane->is_others_turn; // time is not what decides there
#else
    return lane->takes_bulk && !lane->is_others_turn;
#endif
}

// The oldest entry of a long ring, and with it some more: those are in the own deque before they leave the ring, so
// that none is ever out of sight, and an entry seen in both is one whose task is claimed once.
static nbi_hint take_bulk(nbi_lane *lane, nbi_ring *ring, uint32_t queue) {
    uint64_t index;
    nbi_hint hint = nbi_ring_peek(ring, &index);
    // In a ring that is not longer than that the index would come around.
    bool can_be_long = hint != NBI_HINT_NONE && ring->mask >= BULK_QUEUED;
    if (!can_be_long || nbi_ring_at(ring, index + BULK_QUEUED) == NBI_HINT_NONE) return NBI_HINT_NONE;
    uint32_t count = copy_behind(lane, ring, index, queue);
    if (count == BULK_COUNT - 1 && nbi_ring_take_many(ring, index, BULK_COUNT)) {
        lane->bulk_mask |= 1u << queue;
        lane->bulk_end[queue] = nbi_atomic_load_relaxed_u64(&lane->queues[queue].deque.bottom);
        // All who looked into the deque before and into the ring afterwards have seen nothing, and may go to sleep.
        for (; count > 0; --count) nbi_wake_one(lane, nbi_queue_is_floating(queue), NBI_HINT_NONE);
        return hint;
    }
    // Another was faster; what it has taken need not be found here too.
    while (count-- > 0) nbi_deque_pop(&lane->queues[queue].deque);
    return NBI_HINT_NONE;
}

static nbi_hint take_from(nbi_lane *lane, nbi_lane *victim, uint32_t queue) {
    nbi_queue *theirs = &victim->queues[queue];
    // Urgent work is taken in its order, and does not wait for anybody's cache.
    bool is_urgent = queue < nbi_queue_index(NB_PRIORITY_NORMAL, false);
    nbi_hint hint = is_urgent || !takes_bulk(lane) ? NBI_HINT_NONE : take_bulk(lane, &theirs->ring, queue);
    uint32_t count = hint != NBI_HINT_NONE ? BULK_COUNT : 1;
    if (hint == NBI_HINT_NONE) hint = nbi_ring_pop(&theirs->ring);
    if (hint != NBI_HINT_NONE) {
        keep_distance(lane, &theirs->ring, count, is_urgent);
    } else {
        hint = take_deque(&theirs->deque);
    }
    if (hint == NBI_HINT_NONE && victim->index == NBI_LANE_OUTSIDE) clear_outside(lane->scheduler, queue);
    return hint;
}

// A task that another thread has in its deque, from a different lane each time.
static nbi_hint take_left(nbi_lane *lane, uint64_t mask, uint32_t queue) {
    const nb_scheduler *scheduler = lane->scheduler;
    for (; mask != 0;) {
        uint64_t upper = mask >> lane->left_victim << lane->left_victim;
        uint32_t victim = (uint32_t)__builtin_ctzll(upper != 0 ? upper : mask);
        lane->left_victim = (victim + 1) % NBI_LANE_COUNT_MAX;
        nbi_hint hint = take_deque(&scheduler->lanes[victim]->queues[queue].deque);
        if (hint != NBI_HINT_NONE) return hint;
        mask &= ~((uint64_t)1 << victim);
    }
    return NBI_HINT_NONE;
}

// The lanes whose bit is set, from lane->victim on, in a circle.
static nbi_hint take_others(nbi_lane *lane, uint32_t queue) {
    nb_scheduler *scheduler = lane->scheduler;
    uint64_t mask = nbi_atomic_load_seq_cst_u64(&scheduler->has_work[queue]) & ~((uint64_t)1 << lane->index);
    if (++lane->left_count[queue] % LEFT_TASKS == 0) {
        nbi_hint hint = take_left(lane, mask, queue);
        if (hint != NBI_HINT_NONE) {
            nbi_count(&lane->counts.steal_count, 1);
            return hint;
        }
    }
    while (mask != 0) {
        uint64_t upper = mask >> lane->victim << lane->victim;
        uint32_t victim = (uint32_t)__builtin_ctzll(upper != 0 ? upper : mask);
        nbi_hint hint = take_from(lane, scheduler->lanes[victim], queue);
        if (hint != NBI_HINT_NONE) {
            lane->victim = victim;
            nbi_count(&lane->counts.steal_count, 1);
            return hint;
        }
        mask &= ~((uint64_t)1 << victim);
    }
    return NBI_HINT_NONE;
}

// The oldest of one other lane, without a look at how many there are: the own deque is not empty.
static nbi_hint take_one(nbi_lane *lane, uint32_t queue) {
    lane->is_others_turn = true;
    nbi_hint hint = take_others(lane, queue);
    lane->is_others_turn = false;
    return hint;
}

// What was taken in bulk is older than what is left where it came from, so it goes first. It is the newest of the own
// deque, or lies below what the thread's own tasks have spawned: then it has to be taken from the other end.
static nbi_hint take_turn(nbi_lane *lane, uint32_t queue) {
    if ((lane->bulk_mask & 1u << queue) == 0) return take_one(lane, queue);
    nbi_deque *own = &lane->queues[queue].deque;
    if (nbi_atomic_load_relaxed_u64(&own->bottom) == lane->bulk_end[queue]) return NBI_HINT_NONE;
    nbi_hint hint = take_deque(own);
    bulk_noted(lane, queue);
    return hint;
}

static nbi_hint take_any(nbi_lane *lane, uint32_t queue) {
    // A task that spawns its own successor would keep the thread to itself for ever. Counted for each queue: with one
    // count for all, two queues that are searched in turns would leave every turn to the same one.
    bool is_others_turn = ++lane->own_count[queue] % OWN_TASKS == 0;
    nbi_hint hint = is_others_turn ? take_turn(lane, queue) : NBI_HINT_NONE;
    if (hint == NBI_HINT_NONE) hint = take_own(lane, queue);
    return hint != NBI_HINT_NONE ? hint : take_others(lane, queue);
}

// Before the first frame all workers may have begun with floating work: this one turns to something else, if there are
// too many.
static bool leave_surplus(nbi_lane *lane) {
    nb_scheduler *scheduler = lane->scheduler;
    uint32_t count = nbi_atomic_load_seq_cst_u32(&scheduler->floating_busy_count);
    if (NB_LIKELY(count <= scheduler->floating_max) || !nbi_holds_ceiling(scheduler)) return false;
    do {
        if (count <= scheduler->floating_max) return false;
    } while (!nbi_atomic_compare_exchange_seq_cst_u32(&scheduler->floating_busy_count, &count, count - 1));
    lane->is_floating_busy = false;
    return true;
}

// Workers busy with floating tasks are counted when they begin with them and when they turn to something else, not for
// every task.
static bool may_float(nbi_lane *lane) {
    nb_scheduler *scheduler = lane->scheduler;
    if (!lane->is_worker || !nbi_has_ceiling(scheduler)) return true;
    if (lane->is_floating_busy) return !leave_surplus(lane);
    bool is_held = nbi_holds_ceiling(scheduler);
    // Once the ceiling holds, never above it, not even for a moment: who sees it there believes that all places are
    // taken.
    uint32_t count = nbi_atomic_load_seq_cst_u32(&scheduler->floating_busy_count);
    do {
        if (is_held && count >= scheduler->floating_max) return false;
    } while (!nbi_atomic_compare_exchange_seq_cst_u32(&scheduler->floating_busy_count, &count, count + 1));
    lane->is_floating_busy = true;
    return true;
}

// Whether a floating task is there to be taken; a bit of has_work may be old.
static bool is_floating_queued(const nb_scheduler *scheduler) {
    for (uint32_t queue = 1; queue < NBI_QUEUE_COUNT; queue += 2) {
        uint64_t mask = nbi_atomic_load_seq_cst_u64(&scheduler->has_work[queue]);
        for (; mask != 0; mask &= mask - 1) {
            const nbi_queue *theirs = &scheduler->lanes[__builtin_ctzll(mask)]->queues[queue];
            uint64_t index;
            if (nbi_ring_peek(&theirs->ring, &index) != NBI_HINT_NONE) return true;
            if (nbi_deque_peek(&theirs->deque, &index) != NBI_HINT_NONE) return true;
        }
    }
    return false;
}

uint64_t nbi_floating_queued_count(const nb_scheduler *scheduler) {
    uint64_t sum = 0;
    for (uint32_t queue = 1; queue < NBI_QUEUE_COUNT; queue += 2) {
        uint64_t mask = nbi_atomic_load_seq_cst_u64(&scheduler->has_work[queue]);
        for (; mask != 0; mask &= mask - 1) {
            const nbi_queue *theirs = &scheduler->lanes[__builtin_ctzll(mask)]->queues[queue];
            // The heads first: they only grow.
            uint64_t head = nbi_atomic_load_seq_cst_u64(&theirs->ring.head);
            uint64_t top = nbi_atomic_load_seq_cst_u64(&theirs->deque.top);
            sum += nbi_atomic_load_seq_cst_u64(&theirs->ring.tail) - head;
            int64_t in_deque = (int64_t)(nbi_atomic_load_seq_cst_u64(&theirs->deque.bottom) - top);
            sum += in_deque > 0 ? (uint64_t)in_deque : 0;
        }
    }
    return sum;
}

// The lane's thread turns away from floating work. True: there is more of it, and room for somebody to take it.
static bool float_end(nbi_lane *lane) {
    if (!lane->is_floating_busy) return false;
    lane->is_floating_busy = false;
    // seq_cst, before the look at what is queued: one half of the pair with nbi_wake_one, which looks at the count
    // after its push.
    nbi_atomic_fetch_sub_seq_cst_u32(&lane->scheduler->floating_busy_count, 1);
    return is_floating_queued(lane->scheduler);
}

static bool is_low(uint32_t queue) { return queue >= QUEUE_LOW; }

static bool has_low(const nb_scheduler *scheduler) {
    return (nbi_atomic_load_relaxed_u64(&scheduler->has_work[QUEUE_LOW]) |
            nbi_atomic_load_relaxed_u64(&scheduler->has_work[QUEUE_LOW + 1])) != 0;
}

// Low was served, or is empty: its age begins anew. Set again by the next task that comes to an empty queue, or here.
static void low_served(nb_scheduler *scheduler) {
    nbi_atomic_store_relaxed_u64(&scheduler->low_since_ns, has_low(scheduler) ? nbi_clock_now_ns() : 0);
}

// A look at the clock now and then, for a Low task that has waited too long behind the others.
static NB_NOINLINE nbi_hint take_aged_low(nbi_lane *lane, uint64_t since_ns) {
    if (++lane->low_look_count < LOW_LOOK_TASKS) return NBI_HINT_NONE;
    uint64_t now_ns = nbi_clock_now_ns();
    lane->low_look_count = now_ns - lane->low_look_ns > LOW_LOOK_NS ? LOW_LOOK_TASKS - 1 : 0;
    lane->low_look_ns = now_ns;
    if (now_ns < since_ns + LOW_AGE_NS) return NBI_HINT_NONE;
    nbi_hint hint = take_any(lane, QUEUE_LOW);
    if (hint == NBI_HINT_NONE && may_float(lane)) hint = take_any(lane, QUEUE_LOW + 1);
    low_served(lane->scheduler);
    return hint;
}

// Turning to a task that only this thread may run: if it was woken for another one, somebody else has to come for that.
static void pass_on(nbi_lane *lane) {
    uint64_t bits = float_end(lane) ? 1 : 0;
    for (uint32_t queue = 0; queue < NBI_QUEUE_COUNT; ++queue) {
        bits |= nbi_atomic_load_seq_cst_u64(&lane->scheduler->has_work[queue]);
    }
    if (bits != 0) nbi_wake_one(lane, false, NBI_HINT_NONE);
}

// Of a queue that has work, which the lane's worker may have to pass by.
static nbi_hint take_allowed(nbi_lane *lane, uint32_t queue) {
    if (!nbi_queue_is_floating(queue) || may_float(lane)) return take_any(lane, queue);
    nbi_keep(lane);
    bool is_waited_for = nbi_atomic_load_seq_cst_u32(&lane->scheduler->waiter_count) != 0;
    return is_waited_for ? nbi_search_awaited(lane, queue) : NBI_HINT_NONE;
}

// Above the ceiling: what something awaited depends on.
static nbi_hint take_dependency(nbi_lane *lane) {
    nb_scheduler *scheduler = lane->scheduler;
    if (!lane->is_worker || !nbi_is_kept(lane)) return NBI_HINT_NONE;
    if (nbi_atomic_load_seq_cst_u32(&scheduler->waiting_count) == 0) return NBI_HINT_NONE;
    if (nbi_atomic_load_seq_cst_u32(&scheduler->waiter_count) == 0) return NBI_HINT_NONE;
    const nbi_target any = {.is_any = true};
    bool is_deadlock = false;
    return nbi_depend_search(lane, &any, &is_deadlock);
}

static nbi_hint search_once(nbi_lane *lane, uint64_t low_since_ns) {
    nbi_hint hint = NB_UNLIKELY(low_since_ns != 0) ? take_aged_low(lane, low_since_ns) : NBI_HINT_NONE;
    if (NB_UNLIKELY(hint != NBI_HINT_NONE)) return hint;
    uint32_t inbox_mask = nbi_atomic_load_seq_cst_u32(&lane->inbox_mask);
    for (uint32_t queue = 0; queue < NBI_QUEUE_COUNT; ++queue) {
        // What only this thread may run does not count against the ceiling of floating work.
        if (NB_UNLIKELY((inbox_mask & 1u << queue) != 0)) {
            hint = nbi_pin_take(lane, queue);
            if (hint != NBI_HINT_NONE) {
                pass_on(lane);
                return hint;
            }
        }
        if (nbi_atomic_load_seq_cst_u64(&lane->scheduler->has_work[queue]) == 0) continue;
        hint = take_allowed(lane, queue);
        if (hint == NBI_HINT_NONE) continue;
        if (!nbi_queue_is_floating(queue) && float_end(lane)) nbi_wake_one(lane, true, NBI_HINT_NONE);
        if (NB_UNLIKELY(is_low(queue))) low_served(lane->scheduler);
        return hint;
    }
    return NBI_HINT_NONE;
}

nbi_hint nbi_search(nbi_lane *lane) {
    nb_scheduler *scheduler = lane->scheduler;
    uint64_t low_since_ns = nbi_atomic_load_relaxed_u64(&scheduler->low_since_ns);
    for (;;) {
        nbi_hint hint = search_once(lane, low_since_ns);
        if (hint != NBI_HINT_NONE) return hint;
        // A task that came while this thread was counted as busy woke nobody: this thread takes it.
        if (!float_end(lane)) break;
    }
    if (NB_UNLIKELY(low_since_ns != 0) && !has_low(scheduler)) low_served(scheduler);
    return nbi_has_ceiling(scheduler) ? take_dependency(lane) : NBI_HINT_NONE;
}
