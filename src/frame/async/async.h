// SPDX-License-Identifier: MIT
#pragma once

// What the files of the async jobs share: async.c has the jobs and their words, async_run.c the threads that run them,
// async_poll.c the coordinator's side. The explorer uses it too, for it starts no threads.

#include "nebula/async.h"
#include "nebula/trace.h"

#include "../../base/base.h"
#include "../../base/desc.h"
#include "../../base/lock.h"
#include "../../base/owner.h"
#include "../../base/throttle.h"
#include "../../platform/platform.h"

extern const nbi_desc_rules nbi_async_rules;

// --- a job ---

// A job's word: [ generation 32 | 0 | cancelled 1 | state 8 ]. A handle has the same generation, and the slot + 1.
typedef enum nbi_async_slot_state {
    NBI_ASYNC_FREE = 0,
    NBI_ASYNC_READY,      // in a queue of `ready`
    NBI_ASYNC_RUNNING,    // owned by the thread that put it there
    NBI_ASYNC_PAUSED,     // in the inbox, to be resumed
    NBI_ASYNC_IO_READY,   // in a queue of `io`
    NBI_ASYNC_IO_RUNNING, // owned by an io thread
    NBI_ASYNC_DONE,       // in the inbox or a heap, to be committed or discarded
    NBI_ASYNC_STAGED,     // in `staged`
    NBI_ASYNC_ENDING,     // inside publish or discard
} nbi_async_slot_state;

#define NBI_ASYNC_STATE_MASK ((uint64_t)0xFF)
#define NBI_ASYNC_CANCELLED ((uint64_t)0x100)
#define NBI_ASYNC_GENERATION_SHIFT 32

static inline nbi_async_slot_state nbi_async_slot_state_of(uint64_t word) {
    return (nbi_async_slot_state)(word & NBI_ASYNC_STATE_MASK);
}

typedef struct nbi_async_slot {
    nb_atomic_u64 word;
    uint32_t next, prior;   // slot + 1; in the queue, the inbox or the list of free slots that the state says
    uint64_t sequence;      // of the submits
    nb_async_job_desc desc; // resolved; state is NULL
    uint32_t step;
    nb_result result; // of the last blocking call; from DONE on, of the job
    nb_async_io_fn io_run;
    void *io_argument;
    nb_atomic_ptr owner; // whose job it is, see ../base/owner.h
} nbi_async_slot;

// First in, first out; slot + 1.
typedef struct nbi_async_queue {
    uint32_t first, last;
} nbi_async_queue;

// The oldest of the highest priority is on top.
typedef struct nbi_async_heap {
    uint32_t *slots;
    uint32_t count;
} nbi_async_heap;

// Somebody sleeps until something comes into the inbox; a bit of its word.
#define NBI_ASYNC_INBOX_WAITED ((uint32_t)1 << 31)

struct nb_async {
    nb_async_desc desc; // resolved
    size_t size_bytes, slot_size_bytes;
    nbi_throttle throttle; // of refused jobs
    unsigned char *slots;
    bool is_alone;        // the scheduler has no workers
    nb_trace *trace;      // steps and blocking calls are recorded into it; NULL = none. Set before the first submit
    nb_label trace_label; // of jobs without a name
    char pad[NB_CACHE_LINE];

    nbi_lock lock;       // everything down to the next line
    bool is_closed;      // written by the coordinator alone
    uint32_t first_free; // slot + 1
    uint64_t sequence;
    nbi_async_queue ready[NB_PRIORITY_COUNT], io[NB_PRIORITY_COUNT];
    uint32_t ready_count[NB_PRIORITY_COUNT];  // jobs in `ready`
    uint32_t runner_count[NB_PRIORITY_COUNT]; // tasks that will each take one of them
    nb_atomic_u64 submit_count, live_peak_count;
    char pad_lock[NB_CACHE_LINE];

    nb_atomic_u32 submitting_count; // threads that are giving a runner to the scheduler
    nb_atomic_u32 live_count;       // changes under the lock
    nb_atomic_u32 inbox;            // newest first: slot + 1, and NBI_ASYNC_INBOX_WAITED. Taken whole
    nb_group group;                 // of the runners; null after a drain
    nb_atomic_u32 io_event;         // changes with every blocking call and at the end; io threads sleep on it
    nb_atomic_u32 io_is_stopping;
    nb_atomic_u32 io_is_started;
    nbi_lock io_start_lock; // io_threads, until they are started
    uint32_t io_thread_count;
    nbi_thread io_threads[NB_ASYNC_IO_THREAD_COUNT_MAX];
    nb_atomic_u64 frame_index;
    nb_atomic_u32 has_stalled; // a runner was refused, and is to be submitted again
    nb_atomic_u64 full_count, resume_count, complete_count, io_count, stall_count;
    char pad_coordinator[NB_CACHE_LINE];

    nb_atomic_u64 coordinator_id;               // of the thread inside poll, publish or drain; 0 = none
    nbi_async_heap heaps[NB_ASYNC_CLASS_COUNT]; // the coordinator's, as all below; 0 is not used
    uint64_t budgets_ns[NB_ASYNC_CLASS_COUNT];
    uint32_t *staged; // slots, in the order of their commits
    uint32_t staged_count;
    nb_atomic_u64 commit_count, publish_count, discard_count, cancel_count, fail_count, unwanted_count;
    nb_atomic_u64 defer_count, overrun_count;
    char pad_end[NB_CACHE_LINE];
};

static inline nbi_async_slot *nbi_async_slot_at(const nb_async *async, uint32_t index) {
    return (nbi_async_slot *)(void *)(async->slots + index * async->slot_size_bytes);
}

static inline uint32_t nbi_async_index(const nb_async *async, const nbi_async_slot *slot) {
    return (uint32_t)((size_t)((const unsigned char *)slot - async->slots) / async->slot_size_bytes);
}

// The header takes whole lines, so that the state begins one.
#define NBI_ASYNC_HEADER_SIZE ((sizeof(nbi_async_slot) + NB_CACHE_LINE - 1) / NB_CACHE_LINE * NB_CACHE_LINE)

static inline void *nbi_async_payload(nbi_async_slot *slot) { return (unsigned char *)slot + NBI_ASYNC_HEADER_SIZE; }

// By any thread.
static inline void nbi_async_count(nb_atomic_u64 *count) { nbi_atomic_fetch_add_relaxed_u64(count, 1); }
// By one thread at a time: the coordinator, or whoever has the lock.
static inline void nbi_async_count_alone(nb_atomic_u64 *count, uint64_t more) {
    nbi_atomic_store_relaxed_u64(count, nbi_atomic_load_relaxed_u64(count) + more);
}

// --- async_run.c ---

// Before the first submit: where the spans of steps and blocking calls go.
void nbi_async_trace(nb_async *async, nb_trace *trace);

// --- async.c ---

// Moves a job that the caller owns; what was cancelled stays so. Returns the word before.
uint64_t nbi_async_state_set(nbi_async_slot *slot, nbi_async_slot_state state);
// The same, unless it is cancelled: then false, and it stays where it is.
bool nbi_async_state_advance(nbi_async_slot *slot, nbi_async_slot_state state);

// Whether the job, its token or that of the nb_async is cancelled.
bool nbi_async_is_stopped(const nb_async *async, const nbi_async_slot *slot);

// Queues under the lock. take gives the oldest of the highest priority in `queues`, or NULL.
void nbi_async_append(nb_async *async, nbi_async_queue *queue, nbi_async_slot *slot);
void nbi_async_prepend(nb_async *async, nbi_async_queue *queue, nbi_async_slot *slot);
void nbi_async_unlink(nb_async *async, nbi_async_queue *queue, nbi_async_slot *slot);
nbi_async_slot *nbi_async_take_io(nb_async *async);
nbi_async_slot *nbi_async_take_ready(nb_async *async, uint32_t priority);

// Hands a job that the caller owns to the coordinator, PAUSED or DONE. It is not the caller's any more.
void nbi_async_hand_over(nb_async *async, nbi_async_slot *slot);
// The same with its result.
void nbi_async_complete(nb_async *async, nbi_async_slot *slot, nb_result result);

// Gives the slot of an ended job back; its handle finds nothing from now on.
void nbi_async_free(nb_async *async, nbi_async_slot *slot);

// Sets the mark. False: it was set before, or it is too late. *before: the word found.
bool nbi_async_mark_cancelled(nbi_async_slot *slot, uint32_t generation, uint64_t *before);

// nb_async_create for `function`, which reports name; given is not NULL.
nb_result nbi_async_create(const nb_async_desc *given, const char *function, nb_async **out);

// Whether an owner has a job; *label is that of one. A moment old: for the log.
bool nbi_async_owned(const nb_async *async, const nbi_owner *owner, nb_label *label);

// Around a callback of the job, on any thread: what it submits has the job's owner.
static inline nbi_owner *nbi_async_enter(const nbi_async_slot *slot) {
    return nbi_owner_enter(nbi_atomic_load_relaxed_ptr(&slot->owner));
}

// --- async_run.c ---

// Queues a job that the caller owns for its next step; ends it if it is cancelled.
void nbi_async_enqueue(nb_async *async, nbi_async_slot *slot);
// Under the lock: whether a runner has to be submitted for what was just queued. If so, nbi_async_run_more follows.
bool nbi_async_needs_runner(nb_async *async, uint32_t priority);
void nbi_async_run_more(nb_async *async, uint32_t priority);
// Submits the runners that the scheduler had no room for.
void nbi_async_catch_up(nb_async *async);

// What an io thread runs.
void nbi_async_io_main(void *async);
void nbi_async_io_stop(nb_async *async);

// --- async_poll.c ---

// nb_async_drain for a call of `function`, which reports name.
nb_result nbi_async_drain(nb_async *async, const nb_async_frame *frame, uint64_t deadline_ns, const char *function);

// Sleeps until the inbox has something, or past the deadline; may return for nothing.
void nbi_async_await_inbox(nb_async *async, uint64_t deadline_ns);
