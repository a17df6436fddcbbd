// SPDX-License-Identifier: MIT
// Waiting for room or for an item, and waking.
//
// A waiter raises the WAITING flag in the index word of the *other* end and looks at what the same atomic operation
// returned. Claims that come later find the flag in the word they move, take it down, and wake one waiter after their
// copy: nothing can slip between, because index and flag are one word. If no claim came earlier that is still without
// result, the waiter parks until it is woken. If one did, its thread is copying at this moment (or was preempted there)
// and does not know of the waiter: the waiter then sleeps in short slices until that copy is done. This keeps the
// hand-over of a cell a plain store: an exchange there, so that it could look for waiters by itself, was measured to
// cost a third of the throughput.
//
// One wake lets one thread in and takes the flag down, so each thread that leaves raises it again for those still
// waiting, and wakes the next if there is something for it.

#include "channel.h"

#include "../platform/platform.h"
#include "base.h"

// Looks before a thread goes to sleep: together about as long as the system call they may save (a few microseconds).
// Under the schedule explorer a look is a step like any other, and what it hides is what is to be explored.
#if defined(NB_EXPLORE)
#define SPIN_COUNT 1
#else
#define SPIN_COUNT 64
#endif

// How long to sleep at a time while another thread is between claim and hand-over. That takes nanoseconds unless the
// thread was preempted, and then milliseconds: a tenth of one makes neither late nor busy.
#define COPY_SLICE_NS 100000u

static nb_result attempt(nbi_channel *channel, nbi_channel_end end, void *item) {
    size_t count = 0;
    return end == NBI_CHANNEL_SEND ? nbi_channel_put(channel, item, 1, &count)
                                   : nbi_channel_take(channel, item, 1, &count);
}

// Not now, but perhaps later.
static bool is_unready(nb_result result) { return result == NB_FULL || result == NB_EMPTY; }

void nbi_channel_wake(nbi_channel *channel, nbi_channel_end end, uint32_t count) {
    nbi_channel_gate *gate = &channel->gates[end];
    // seq_cst, after the state change; read by the acquire load in wait_for_turn, which comes before the last look at
    // the state, and by the kernel when the waiter goes to sleep.
    nbi_atomic_fetch_add_seq_cst_u32(&gate->event, 1);
    nbi_unpark(&gate->event, count);
}

// Asks the other end to wake this one with its next claim. True: it had claimed something before, so an item or a free
// cell is there or will be, without a wake. False: there is nothing, and whoever changes that finds the flag.
static bool raise_flag(nbi_channel *channel, nbi_channel_end end) {
    nb_channel *ring = &channel->ring;
    if (end == NBI_CHANNEL_RECV) {
        // seq_cst: the other half of the pair in claim_cells and nbi_channel_send_fast.
        uint64_t tail = nbi_atomic_fetch_or_seq_cst_u64(&ring->tail, NBI_CHANNEL_WAITING) & ~NBI_CHANNEL_FLAGS;
        uint64_t head = nbi_atomic_load_acquire_u64(&ring->head) & ~NBI_CHANNEL_FLAGS;
        // Signed: head was read later and may have passed this tail.
        return (int64_t)(tail - head) > 0;
    }
    uint64_t head = nbi_atomic_fetch_or_seq_cst_u64(&ring->head, NBI_CHANNEL_WAITING) & ~NBI_CHANNEL_FLAGS;
    uint64_t tail = nbi_atomic_load_acquire_u64(&ring->tail) & ~NBI_CHANNEL_FLAGS;
    return tail - head < (ring->index_mask + 1) * NBI_CHANNEL_STEP;
}

// False when the deadline has passed.
static bool park(nbi_channel_gate *gate, uint32_t event, bool is_short, uint64_t deadline_ns) {
    nbi_atomic_fetch_add_relaxed_u64(&gate->park_count, 1);
    uint64_t until_ns = deadline_ns;
    if (is_short) until_ns = nbi_min_u64(until_ns, nbi_clock_now_ns() + COPY_SLICE_NS);
    nbi_park_until(&gate->event, event, until_ns);
    return deadline_ns == NB_NEVER_NS || nbi_clock_now_ns() < deadline_ns;
}

static nb_result wait_for_turn(nbi_channel *channel, nbi_channel_end end, void *item, uint64_t deadline_ns) {
    nbi_channel_gate *gate = &channel->gates[end];
    for (;;) {
        // Before the last look: what changes after that look also changes the event, and the park returns at once.
        uint32_t event = nbi_atomic_load_acquire_u32(&gate->event);
        bool is_copying = raise_flag(channel, end);
        nb_result result = attempt(channel, end, item);
        if (!is_unready(result)) return result;
        bool has_time = park(gate, event, is_copying, deadline_ns);
        // Without the flag first: a thread that was woken leaves it down, and spares the other end a needless wake.
        result = attempt(channel, end, item);
        if (!is_unready(result)) return result;
        if (!has_time) return NB_TIMEOUT;
    }
}

nb_result nbi_channel_wait(nbi_channel *channel, nbi_channel_end end, void *item, uint64_t deadline_ns) {
    for (int spin = 0; spin < SPIN_COUNT; ++spin) {
        nbi_cpu_relax();
        nb_result result = attempt(channel, end, item);
        if (!is_unready(result)) return result;
    }
    nbi_channel_gate *gate = &channel->gates[end];
    nbi_atomic_fetch_add_relaxed_u32(&channel->guest_count, 1);
    nbi_atomic_fetch_add_seq_cst_u32(&gate->waiter_count, 1);
    nb_result result = wait_for_turn(channel, end, item, deadline_ns);
    // A wake meant for another may have ended here, and the flag may be down: pass both on.
    bool has_others = nbi_atomic_fetch_sub_seq_cst_u32(&gate->waiter_count, 1) > 1;
    if (has_others && raise_flag(channel, end)) nbi_channel_wake(channel, end, 1);
    nbi_atomic_fetch_sub_release_u32(&channel->guest_count, 1); // read by nb_channel_destroy
    return result;
}
