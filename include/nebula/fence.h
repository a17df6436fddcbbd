// SPDX-License-Identifier: MIT
#pragma once

// The frame fence: the point where a frame waits for all work that must finish in it, and for nothing else. Work that
// belongs to a frame holds a ticket of that frame; a ticket given back late, twice, or to the wrong fence changes
// nothing but a counter, and can never touch a newer frame. Tasks of a scheduler take and return theirs by themselves
// (nebula/tasks.h); the functions here are for the frame's coordinator and for other job systems. The one rule: whoever
// takes a ticket gives it back exactly once, on every way out.
//
//     nb_fence *fence = NULL;
//     if (nb_fence_create(NULL, &fence) != NB_OK) return 1;
//     nb_fence_frame frame;
//     nb_fence_begin(fence, &frame); // the coordinator, once a frame
//     nb_fence_ticket ticket;
//     nb_fence_take(fence, frame, (nb_label){0}, &ticket);
//     nb_fence_return(fence, ticket); // as a rule on another thread, when the work is done
//     nb_fence_report report;
//     if (nb_fence_wait(fence, frame, NB_FENCE_DEADLINE_DEFAULT, NULL, &report) == NB_TIMEOUT) {
//         printf("%u tasks are late\n", (unsigned)report.pending_count); // go on: the frame is degraded
//     }
//     nb_fence_destroy(fence);

#include "nebula/clock.h"
#include "nebula/hooks.h"
#include "nebula/label.h"
#include "nebula/thread_arena.h"
#include "nebula/types.h"

// Frames that may have tickets out at once where the desc gives none: the current one, a few late ones, and room.
#define NB_FENCE_SLOT_COUNT_DEFAULT 8

// Frames that may have tickets out at once, at most; as many as thread arenas keep.
#define NB_FENCE_SLOT_COUNT_MAX 64

// Tickets out at once where the desc gives none, without those of a scheduler's tasks: a foreign job system's frame.
#define NB_FENCE_TICKET_COUNT_DEFAULT 4096

// Most tickets a desc may ask for, and most units of work one frame can have: what the frame's word can count.
#define NB_FENCE_TICKET_COUNT_MAX ((1u << 22) - 1)

// How long nb_fence_wait waits where neither desc nor call says otherwise: six frames at 60 a second, long enough for
// any honest task and short enough that a player sees a hitch and not a freeze.
#define NB_FENCE_TIMEOUT_NS_DEFAULT ((uint64_t)100000000)

// As a deadline: now plus the fence's timeout.
#define NB_FENCE_DEADLINE_DEFAULT (NB_NEVER_NS - 1)

// Time-outs in a row after which a label is quarantined, where quarantine is asked for without a number of its own.
#define NB_FENCE_STRIKE_COUNT_DEFAULT 3

// Late tasks a report names; more are only counted. A screen of text.
#define NB_FENCE_STRAGGLER_COUNT_MAX 8

// One frame of one fence. Zero is null.
typedef struct nb_fence_frame {
    uint64_t value; // private: number and slot
} nb_fence_frame;

// One piece of work of one frame. Zero is null.
typedef struct nb_fence_ticket {
    uint64_t value; // private: record and generation
} nb_fence_ticket;

typedef struct nb_fence nb_fence;

typedef enum nb_fence_status {
    NB_FENCE_NONE = 0,
    NB_FENCE_COMPLETE,   // every ticket of the frame is back
    NB_FENCE_TIMEDOUT,   // some are not; the frame is degraded, and goes on
    NB_FENCE_SUPERSEDED, // every ticket was back so long ago that the slot has a newer frame
    NB_FENCE_CLOSED,     // nb_fence_close was called before they were
    NB_FENCE_STATUS_COUNT,
} nb_fence_status;

// Work that was not back when a wait gave up.
typedef struct nb_fence_straggler {
    nb_label label;     // as given with the ticket or the task; null = none
    uint64_t age_ns;    // since the ticket was taken; of a scheduler's task: how long the wait lasted, at least
    uint64_t thread_id; // of the thread that took the ticket or runs the task; 0 = not started
} nb_fence_straggler;

// What one wait found.
typedef struct nb_fence_report {
    nb_fence_status status;
    nb_fence_frame frame;
    uint32_t pending_count;   // units of work not back; for tasks of a scheduler an upper bound, until it is idle
    uint32_t straggler_count; // of them, named below
    nb_fence_straggler stragglers[NB_FENCE_STRAGGLER_COUNT_MAX]; // beyond straggler_count: anything
    uint64_t waited_ns;                                          // in this call; 0 where it found an end at once
    uint64_t help_count;                                         // calls of the help function that did something
    uint64_t park_count;                                         // times the thread went to sleep
    uint64_t overrun_ns; // how far past the deadline a helped piece of work kept the call
} nb_fence_report;

// What a waiting thread can do meanwhile. All fields may be NULL.
typedef struct nb_fence_help {
    bool (*run)(void *user, nb_fence_frame frame); // does one piece of this frame's work; false = there is none
    // Adds up to count_max late pieces of work that have no ticket of the fence's own; returns how many.
    uint32_t (*list)(void *user, nb_fence_frame frame, nb_fence_straggler *stragglers, uint32_t count_max);
    void *user;
} nb_fence_help;

// What nb_fence_begin does when every slot has tickets out.
typedef enum nb_fence_policy {
    NB_FENCE_POLICY_DEFAULT = 0, // FAIL
    NB_FENCE_POLICY_FAIL,        // NB_FULL: the frame goes on without frame-bound work
    NB_FENCE_POLICY_WAIT,        // waits for the oldest late frame first, for at most the timeout
    NB_FENCE_POLICY_COUNT,
} nb_fence_policy;

typedef struct nb_fence_desc {
    uint32_t slot_count;       // 2 to NB_FENCE_SLOT_COUNT_MAX; default 8
    uint32_t slot_count_max;   // what late frames may make it grow to; slot_count to 64, default 64
    uint32_t ticket_count_max; // tickets out at once; default 4096
    uint64_t timeout_ns;       // default NB_FENCE_TIMEOUT_NS_DEFAULT
    nb_fence_policy policy;    // when all slots are taken
    uint32_t strike_count_max; // time-outs in a row after which a label no longer counts; 0 = never (no quarantine)
    nb_labels *labels;         // where labels of reports come from; borrowed. NULL = names are left out of the log
    nb_thread_arenas *arenas;  // advanced by nb_fence_begin, pinned while tickets are out; borrowed, may be NULL
    nb_clock clock;            // for deadlines and ages; zero = the OS's monotonic clock
    nb_hooks hooks;            // zero = defaults
} nb_fence_desc;

typedef struct nb_fence_stats {
    nb_fence_frame frame;    // the current one
    uint32_t slot_count;     // slots in use or used before
    uint32_t pending_slots;  // of them, with tickets out
    uint64_t frame_count;    // ever begun
    uint64_t degraded_count; // ever: frames with a wait that timed out
    uint64_t full_count;     // ever: begins refused because every slot had tickets out
    uint64_t ticket_count;   // tickets out now
    uint64_t ticket_count_peak;
    uint64_t ticket_full_count; // ever: takes refused for want of a record or of room in the frame's word
    uint64_t late_count;        // ever: tickets that came back after their frame's wait had timed out
    uint64_t refused_count;     // ever: returns of a null, foreign, stale or already returned ticket
    uint64_t wait_count;        // ever
    uint64_t park_count;        // ever: times a waiting thread slept
    uint64_t overrun_count;     // ever: waits that a piece of help kept past their deadline
    uint64_t quarantine_count;  // labels in quarantine
} nb_fence_stats;

NB_EXTERN_C_BEGIN

// A desc with every default spelled out.
// Thread: any. Owner: the caller gets a value. Fails: never.
NB_API nb_fence_desc nb_fence_desc_default(void);

// Creates a fence without a frame: the first nb_fence_begin opens frame 1. desc may be NULL.
// Thread: any. Owner: the caller, until nb_fence_destroy. Fails: NB_ERR_MEMORY, NB_ERR_MISUSE, NB_ERR_RANGE.
NB_API nb_result nb_fence_create(const nb_fence_desc *desc, nb_fence **out);

// Ends the fence; all waits must have returned. NULL is fine.
// Thread: any, when no other uses the fence; a thread whose nb_fence_return has made a wait return may still be inside
// it. Owner: the fence is gone. Fails: NB_BUSY while tickets are out, logged as NB_ITEM_FENCE_BUSY; nothing is freed.
NB_API nb_result nb_fence_destroy(nb_fence *fence);

// Opens the next frame in a free slot; the frame before it stays as it is, for its late work. With desc.arenas the
// frame of the thread arenas is advanced too, and kept from being used again while tickets of it are out.
// Thread: the coordinator: the first thread to call it, see nb_fence_disown. Owner: unchanged. Fails: NB_FULL (every
// slot has tickets out; the frame number advances all the same, and nb_fence_take refuses until the next begin),
// NB_CLOSED, NB_ERR_THREAD, NB_ERR_MISUSE.
NB_API nb_result nb_fence_begin(nb_fence *fence, nb_fence_frame *frame);

// Lets another thread be the coordinator: the next one that calls nb_fence_begin.
// Thread: any, when no frame is being begun. Owner: unchanged. Fails: NB_ERR_MISUSE.
NB_API nb_result nb_fence_disown(nb_fence *fence);

// The current frame; null before the first and after a begin that was refused.
// Thread: any; work should use the frame it was given. Owner: the caller gets a value. Fails: null for NULL.
NB_API nb_fence_frame nb_fence_current(const nb_fence *fence);

// The frame's number: 1, 2, ...; 0 for null. Frames that were refused have one too.
// Thread: any. Owner: nothing. Fails: never.
NB_INLINE uint64_t nb_fence_frame_number(nb_fence_frame frame) { return frame.value >> 8; }

// Frames between two, 0 where `later` is not later: the age of a result, never a huge number.
// Thread: any. Owner: nothing. Fails: never.
NB_INLINE uint64_t nb_fence_frame_age(nb_fence_frame earlier, nb_fence_frame later) {
    uint64_t first = nb_fence_frame_number(earlier), second = nb_fence_frame_number(later);
    return second > first ? second - first : 0;
}

// The thread arenas' frame that belongs to a frame, for nb_thread_arena_at; null without desc.arenas.
// Thread: any that holds a ticket of the frame, or the coordinator. Owner: the caller gets a value. Fails: null.
NB_API nb_arena_frame nb_fence_arena_frame(const nb_fence *fence, nb_fence_frame frame);

// Takes a ticket. A null frame means the current one. Possible until the frame is sealed and its last ticket is back,
// so running work may take more for what it starts. A quarantined label gets a ticket that the frame does not wait for,
// and whose memory it does not keep. Costs one look at the clock, for the age in a report.
// Thread: any. Owner: the caller owes one nb_fence_return. Fails: NB_CLOSED (the frame is over, or the fence closed),
// NB_FULL (ticket_count_max, logged the first time; or the current frame has no slot), NB_ERR_STALE (the frame's slot
// has a newer one, or never had it), NB_ERR_MISUSE (no frame yet).
NB_API nb_result nb_fence_take(nb_fence *fence, nb_fence_frame frame, nb_label label, nb_fence_ticket *out);

// Gives a ticket back; the last one of a sealed frame wakes everybody who waits for it. What was written before is
// visible to them.
// Thread: any, also after a time-out. Owner: the ticket ends; the fence may be destroyed as soon as a wait has
// returned for it. Fails: NB_ERR_STALE (null, foreign, or back already; counted), NB_ERR_MISUSE.
NB_API nb_result nb_fence_return(nb_fence *fence, nb_fence_ticket ticket);

// Says that the coordinator itself will start no more work in the current frame. Its nb_fence_wait and its next
// nb_fence_begin do it too.
// Thread: the coordinator. Owner: unchanged. Fails: NB_ERR_THREAD, NB_ERR_MISUSE (no frame, or sealed already).
NB_API nb_result nb_fence_seal(nb_fence *fence);

// Waits until every ticket of the frame is back. The thread first helps where `help` (may be NULL) can, then spins a
// little, then sleeps. deadline_ns is absolute on the fence's clock: 0 looks once and is no time-out, NB_NEVER_NS waits
// for ever, NB_FENCE_DEADLINE_DEFAULT is now plus the timeout; it bounds sleeping, not a piece of work that is being
// helped. On a time-out the frame counts as degraded, late work is named in the log and in *report (may be NULL), and
// its slot and memory stay as they are until the last ticket is back. NB_OK: COMPLETE or SUPERSEDED. With a clock of
// the host's own the thread yields instead of sleeping, until that clock shows the deadline.
// Thread: any; the coordinator's wait for the current frame seals it. Owner: *report is the caller's, written unless
// the result is negative. Fails: NB_TIMEOUT, NB_CLOSED, NB_ERR_STALE (null, or never a frame of this fence),
// NB_ERR_MISUSE.
NB_API nb_result nb_fence_wait(nb_fence *fence, nb_fence_frame frame, uint64_t deadline_ns, const nb_fence_help *help,
                               nb_fence_report *report);

// Makes threads that sleep in nb_fence_wait ask their help function again: for job systems that queue work which only
// the waiting thread may be able to run. Queue first, then poke.
// Thread: any that holds a ticket of the frame, or otherwise knows that the fence is there. Owner: unchanged. Fails:
// NB_ERR_STALE (null, or the frame's slot has a newer one), NB_ERR_MISUSE.
NB_API nb_result nb_fence_poke(nb_fence *fence, nb_fence_frame frame);

// True for a frame one of whose waits timed out, as long as its slot has no newer frame.
// Thread: any. Owner: unchanged. Fails: false.
NB_API bool nb_fence_is_degraded(const nb_fence *fence, nb_fence_frame frame);

// True while a label is in quarantine: it was late in desc.strike_count_max frames in a row, by the coordinator's
// waits. Reported once.
// Thread: any. Owner: unchanged. Fails: false.
NB_API bool nb_fence_is_quarantined(const nb_fence *fence, nb_label label);

// Forgets the strikes of all labels, and, with `ends_quarantine`, lets quarantined ones count again: after a load, a
// suspend or a debugger's stop, where being late says nothing. Time-outs of frames that have begun before the call are
// no strikes either.
// Thread: the coordinator. Owner: unchanged. Fails: NB_ERR_THREAD, NB_ERR_MISUSE.
NB_API nb_result nb_fence_forgive(nb_fence *fence, bool ends_quarantine);

// Refuses new frames and tickets for good and makes every wait return; tickets that are out may still come back.
// Thread: any. Owner: unchanged. Fails: NB_ERR_MISUSE.
NB_API nb_result nb_fence_close(nb_fence *fence);

// The fence's numbers; those that other threads change meanwhile are a moment old.
// Thread: any. Owner: the caller gets a value. Fails: zeros for NULL.
NB_API nb_fence_stats nb_fence_stats_get(const nb_fence *fence);

NB_EXTERN_C_END
