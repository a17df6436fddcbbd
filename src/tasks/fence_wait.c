// SPDX-License-Identifier: MIT
// Waiting for a frame: look, help, spin a little, sleep. What a wait that timed out reports: fence_late.c.

#include "fence_state.h"

// How long a thread looks before it sleeps. A wake-up from sleep takes 6 to 90 us until the thread runs again, so work
// that ends within this time is worth the spin. Under the explorer one look is as good as many.
#if defined(NB_EXPLORE)
#define SPIN_NS 0
#define SPIN_LOOKS 1
#else
#define SPIN_NS 50000u
// Looks between two questions to the clock and the helper: with a pause of some 25 ns each, about a microsecond.
#define SPIN_LOOKS 32
#endif

typedef struct waiting {
    nb_fence *fence;
    nb_fence_frame frame;
    nbi_tally *tally;
    const nb_fence_help *help;    // NULL = cannot help
    const nbi_fence_sleep *sleep; // NULL = nobody wants to know
    uint64_t deadline_ns;
    uint64_t start_ns;
    uint64_t help_count, park_count;
    bool can_sleep;     // the deadline is one that the OS knows
    bool is_after_help; // the last thing it did was a piece of work
} waiting;

static nb_fence_status status_of(uint64_t word, nb_fence_frame frame) {
    if (!nbi_fence_is_in(frame, word)) return NB_FENCE_SUPERSEDED;
    if (nbi_tally_count(word) == 0) return NB_FENCE_COMPLETE;
    return (word & NBI_TALLY_CLOSED) != 0 ? NB_FENCE_CLOSED : NB_FENCE_NONE;
}

// Pairs with the release of the last unit given back: what all work of the frame wrote is visible to who sees its end.
static uint64_t look(const waiting *w) { return nbi_atomic_load_acquire_u64(&w->tally->word); }

static bool is_over(const waiting *w) { return status_of(look(w), w->frame) != NB_FENCE_NONE; }

static uint64_t now_of(const waiting *w) { return nb_clock_now_ns(&w->fence->desc.clock); }

static bool is_past_deadline(const waiting *w) { return w->deadline_ns != NB_NEVER_NS && now_of(w) >= w->deadline_ns; }

static bool help_once(waiting *w) {
    if (w->help == NULL || w->help->run == NULL || !w->help->run(w->help->user, w->frame)) return false;
    ++w->help_count;
    w->is_after_help = true;
    return true;
}

// True: something happened, look again. False: time to sleep.
static bool spin(waiting *w) {
    uint64_t until_ns = nbi_min_u64(nbi_clock_now_ns() + SPIN_NS, w->deadline_ns);
    do {
        for (int i = 0; i < SPIN_LOOKS; ++i) {
            nbi_cpu_relax();
            if (is_over(w)) return true;
        }
        if (help_once(w)) return true;
    } while (nbi_clock_now_ns() < until_ns);
    return false;
}

static void sleep_once(waiting *w) {
    const nbi_fence_sleep *sleep = w->sleep;
    if (sleep != NULL && sleep->before != NULL) sleep->before(sleep->user, w->tally);
    uint64_t word = nbi_tally_announce(w->tally);
    // Help was asked for before others could know of this sleeper: work that came since then told nobody.
    bool is_idle = status_of(word, w->frame) == NB_FENCE_NONE && !help_once(w);
    if (is_idle) {
        ++w->park_count;
        nbi_tally_sleep(w->tally, word, w->deadline_ns);
    }
    if (sleep != NULL && sleep->after != NULL) sleep->after(sleep->user, w->tally);
}

static nb_fence_status wait_long(waiting *w) {
    for (;;) {
        nb_fence_status status = status_of(look(w), w->frame);
        if (status != NB_FENCE_NONE) return status;
        if (is_past_deadline(w)) {
            // Between the look and the clock the frame may have ended.
            status = status_of(look(w), w->frame);
            return status != NB_FENCE_NONE ? status : NB_FENCE_TIMEDOUT;
        }
        if (help_once(w)) continue;
        w->is_after_help = false;
        if (!w->can_sleep) {
            nbi_thread_yield();
        } else if (!spin(w)) {
            sleep_once(w);
        }
    }
}

static uint64_t deadline_of(const nb_fence *fence, uint64_t deadline_ns, uint64_t now_ns) {
    if (deadline_ns != NB_FENCE_DEADLINE_DEFAULT) return deadline_ns;
    return now_ns + nbi_min_u64(fence->desc.timeout_ns, NB_NEVER_NS - now_ns);
}

// The OS cannot sleep until a moment of a clock that it does not know.
static bool can_sleep(const nb_fence *fence, uint64_t deadline_ns) {
    return fence->desc.clock.now_ns == NULL || deadline_ns == NB_NEVER_NS;
}

bool nbi_fence_wait_quietly(nb_fence *fence, nb_fence_frame frame, uint64_t deadline_ns) {
    waiting w = {.fence = fence,
                 .frame = frame,
                 .tally = &nbi_fence_slot_of(fence, frame)->tally,
                 .deadline_ns = deadline_ns,
                 .can_sleep = can_sleep(fence, deadline_ns)};
    nb_fence_status status = wait_long(&w);
    nbi_atomic_fetch_add_relaxed_u64(&fence->park_count, w.park_count);
    return status != NB_FENCE_TIMEDOUT && status != NB_FENCE_CLOSED;
}

// --- the public wait ---

static uint32_t pending_in(const nb_fence *fence, nb_fence_frame frame, uint64_t word) {
    if (!nbi_fence_is_in(frame, word)) return 0;
    uint32_t count = nbi_tally_count(word), open_units = nbi_fence_open_units(fence, frame);
    return count > open_units ? count - open_units : 0;
}

static nb_result result_of(nb_fence_status status) {
    if (status == NB_FENCE_TIMEDOUT) return NB_TIMEOUT;
    return status == NB_FENCE_CLOSED ? NB_CLOSED : NB_OK;
}

static void report_at_once(nb_fence_status status, nb_fence_frame frame, uint32_t pending, nb_fence_report *report) {
    // The list is left as it is: clearing it would take longer than all the rest.
    report->status = status;
    report->frame = frame;
    report->pending_count = pending;
    report->straggler_count = 0;
    report->waited_ns = report->help_count = report->park_count = report->overrun_ns = 0;
}

// Whatever came of a long wait, in counters, report and log.
static void report_long(const waiting *w, nb_fence_status status, nb_fence_report *report) {
    nb_fence *fence = w->fence;
    uint64_t now_ns = now_of(w);
    bool has_overrun = w->is_after_help && now_ns > w->deadline_ns;
    *report = (nb_fence_report){
        .status = status,
        .frame = w->frame,
        .waited_ns = now_ns > w->start_ns ? now_ns - w->start_ns : 0,
        .help_count = w->help_count,
        .park_count = w->park_count,
        .overrun_ns = has_overrun ? now_ns - w->deadline_ns : 0,
    };
    if (w->park_count != 0) nbi_atomic_fetch_add_relaxed_u64(&fence->park_count, w->park_count);
    if (has_overrun) nbi_atomic_fetch_add_relaxed_u64(&fence->overrun_count, 1);
    bool is_pending = status == NB_FENCE_TIMEDOUT || status == NB_FENCE_CLOSED;
    if (is_pending) report->pending_count = pending_in(fence, w->frame, look(w));
    if (status == NB_FENCE_TIMEDOUT) nbi_fence_report_late(fence, w->help, w->start_ns, report);
}

// Kept out of the way of waits that find their frame complete.
NB_NOINLINE static nb_fence_status wait_and_report(waiting *w, uint64_t deadline_ns, nb_fence_report *report) {
    w->start_ns = now_of(w);
    w->deadline_ns = deadline_of(w->fence, deadline_ns, w->start_ns);
    w->can_sleep = can_sleep(w->fence, w->deadline_ns);
    nb_fence_status status = wait_long(w);
    nb_fence_report unwanted;
    report_long(w, status, report != NULL ? report : &unwanted);
    return status;
}

// Whether the slot has, or may have had, the frame: its newest one is not older. Half of all numbers count as older.
static bool may_be_ours(nb_fence_frame frame, uint64_t word) {
    uint64_t distance = (nbi_tally_generation(word) - nbi_fence_number(frame)) & NBI_TALLY_GENERATION_MASK;
    return distance <= NBI_TALLY_GENERATION_MASK / 2;
}

static uint64_t seal_and_look(nb_fence *fence, nb_fence_frame frame, const nbi_fence_slot *slot) {
    bool is_current = nbi_atomic_load_relaxed_u64(&fence->current) == frame.value;
    if (is_current && nbi_fence_is_coordinator(fence)) nbi_fence_seal_current(fence);
    return nbi_atomic_load_acquire_u64(&slot->tally.word);
}

nb_result nbi_fence_wait(nb_fence *fence, nb_fence_frame frame, uint64_t deadline_ns, const nb_fence_help *help,
                         const nbi_fence_sleep *sleep, nb_fence_report *report) {
    nbi_fence_slot *slot = nbi_fence_slot_of(fence, frame);
    if (slot == NULL || !may_be_ours(frame, nbi_atomic_load_acquire_u64(&slot->tally.word))) {
        return nbi_fail(&fence->hooks, NB_ITEM_FENCE_STALE, NB_ERR_STALE, "nb_fence_wait",
                        "frame %llu is none of this fence", (unsigned long long)nbi_fence_number(frame));
    }
    nbi_atomic_fetch_add_relaxed_u64(&fence->wait_count, 1);
    uint64_t word = nbi_atomic_load_acquire_u64(&slot->tally.word); // as in look()
    // A frame that has ended is sealed already.
    if (!nbi_tally_is_over(word, nbi_fence_number(frame))) word = seal_and_look(fence, frame, slot);
    nb_fence_status status = status_of(word, frame);
    if (status == NB_FENCE_NONE && deadline_ns != 0) {
        waiting w = {.fence = fence, .frame = frame, .tally = &slot->tally, .help = help, .sleep = sleep};
        status = wait_and_report(&w, deadline_ns, report);
    } else {
        if (status == NB_FENCE_NONE) status = NB_FENCE_TIMEDOUT;
        if (report != NULL) report_at_once(status, frame, pending_in(fence, frame, word), report);
    }
    bool is_note_due = status == NB_FENCE_COMPLETE && nbi_atomic_load_relaxed_u32(&fence->struck_count) != 0;
    if (is_note_due && nbi_fence_is_coordinator(fence)) nbi_fence_note_complete(fence, frame);
    return result_of(status);
}

nb_result nb_fence_wait(nb_fence *fence, nb_fence_frame frame, uint64_t deadline_ns, const nb_fence_help *help,
                        nb_fence_report *report) {
    if (fence == NULL) return NBI_FAIL_NULL("fence");
    return nbi_fence_wait(fence, frame, deadline_ns, help, NULL, report);
}

nb_result nb_fence_poke(nb_fence *fence, nb_fence_frame frame) {
    if (fence == NULL) return NBI_FAIL_NULL("fence");
    nbi_fence_slot *slot = nbi_fence_slot_of(fence, frame);
    if (slot == NULL || !nbi_fence_is_in(frame, nbi_atomic_load_acquire_u64(&slot->tally.word))) {
        return NBI_FAIL(&fence->hooks, NB_ITEM_FENCE_STALE, NB_ERR_STALE, "frame %llu is none of this fence, or over",
                        (unsigned long long)nbi_fence_number(frame));
    }
    nbi_tally_poke(&slot->tally);
    return NB_OK;
}
