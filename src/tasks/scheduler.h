// SPDX-License-Identifier: MIT
#pragma once

// What the files of the scheduler share. The parts, bottom up:
// - A slot is one task. Its state word {generation, phase} decides everything by compare-and-exchange; whoever moves it
//   from QUEUED to RUNNING runs it, and every queue entry is only a hint to it.
// - A lane is a thread's place: its queues, its spare slots and groups, its pockets. Only its thread touches what is
//   not atomic in it. Threads without a lane share one, under a lock.
// - A group and a frame are tallies (tally.h): each task holds one unit in both. A thread that ends tasks keeps their
//   units in a pocket and gives them back together, because a cache line that two cores write for every task costs more
//   than everything else; it empties the pocket before it could keep anybody waiting.
// - Threads that sleep for want of work are in parked_mask, threads that sleep in a wait in the list of sleepers.
//
// submit.c takes tasks in, submit_budget.c holds some back; task.c runs and ends them; search.c finds the next task;
// wait.c waits, waiter_search.c finds what a waiter may run; awaited.c knows which work somebody waits for, which no
// ceiling applies to; park.c has the workers and wakes them; lane.c, slot.c and group.c keep lanes, slots and groups;
// scheduler.c creates and destroys the scheduler. On top of them: depend.c (tasks that wait for others), parallel.c,
// pin.c, result.c, task_memory.c, cancel_checks.c, owner_tasks.c and trace_spans.c (tasks in traces).

#include "nebula/tasks.h"

#include "../base/base.h"
#include "../base/lock.h"
#include "../base/owner.h"
#include "../base/throttle.h"
#include "fence.h"
#include "host.h"
#include "queue.h"
#include "tally.h"

// Queues a lane has: each priority once for frame-bound and once for floating tasks, so that a worker which may take no
// more floating work still finds what lies behind it. Index 0 is searched first.
#define NBI_QUEUE_COUNT 8u

static inline uint32_t nbi_queue_index(nb_priority priority, bool is_floating) {
    return 2u * (uint32_t)(NB_PRIORITY_CRITICAL - priority) + (is_floating ? 1u : 0u);
}
static inline bool nbi_queue_is_floating(uint32_t queue) { return (queue & 1) != 0; }

// Entries of a deque: more than a task can sensibly have started and not waited for; beyond it they go to the ring.
#if defined(NB_EXPLORE)
#define NBI_DEQUE_CAPACITY 4u
#else
#define NBI_DEQUE_CAPACITY 4096u
#endif

// Lanes: the coordinator, workers and attached threads, and the one that all other threads share.
#define NBI_LANE_COUNT_MAX (NB_SCHEDULER_THREAD_COUNT_MAX + 1u)
#define NBI_LANE_OUTSIDE NB_SCHEDULER_THREAD_COUNT_MAX
NB_STATIC_ASSERT(NBI_LANE_COUNT_MAX <= 64, "a lane is a bit in a word");

// On the way of every task; a call costs as much as what it would do.
#if defined(__GNUC__)
#define NBI_HOT inline __attribute__((always_inline))
#define NBI_COMPILER_BARRIER() __asm__ volatile("" ::: "memory")
#else
#define NBI_HOT inline
#define NBI_COMPILER_BARRIER() ((void)0)
#endif

// In nb_scheduler.is_stopping.
#define NBI_STOP_SUBMITS 1u
#define NBI_STOP_WORKERS 3u // and submits
#define NBI_STOP_ALL 4u     // tasks of all hosts, and of none
#define NBI_STOP_HOST 8u    // added for each host that stops; see host.c

// --- slots ---

// The state of a slot: [ generation 41 | 0 | listed 1 | phase 2 | what sleepers and pokes change ]. The last and the
// futex are those of a tally word (tally.h), so that who waits for a task sleeps and is poked in the same way.
typedef enum nbi_phase {
    NBI_PHASE_FREE = 0,
    NBI_PHASE_QUEUED = 1 << NBI_TALLY_COUNT_SHIFT,
    NBI_PHASE_RUNNING = 2 << NBI_TALLY_COUNT_SHIFT,
    NBI_PHASE_WAITING = 3 << NBI_TALLY_COUNT_SHIFT, // for the end of others
} nbi_phase;

#define NBI_PHASE_MASK ((uint64_t)3 << NBI_TALLY_COUNT_SHIFT)
#define NBI_STATE_LISTED ((uint64_t)4 << NBI_TALLY_COUNT_SHIFT) // others wait for its end; depend.c knows them
#define NBI_STATE_NOTES (NBI_TALLY_WAITED | NBI_STATE_LISTED)   // what says nothing about the phase
#define NBI_STATE_GENERATION_SHIFT 23

static inline uint64_t nbi_state_of(uint64_t generation, nbi_phase phase) {
    return generation << NBI_STATE_GENERATION_SHIFT | (uint64_t)phase;
}
static inline nbi_phase nbi_state_phase(uint64_t state) { return (nbi_phase)(state & NBI_PHASE_MASK); }
static inline uint64_t nbi_state_generation(uint64_t state) { return state >> NBI_STATE_GENERATION_SHIFT; }

// What the state of a hint's task is in a phase, without notes. The shift drops the lap bit.
static inline uint64_t nbi_state_of_hint(nbi_hint hint, nbi_phase phase) {
    return hint << 1 >> NBI_STATE_GENERATION_SHIFT << NBI_STATE_GENERATION_SHIFT | (uint64_t)phase;
}
NB_STATIC_ASSERT(NBI_STATE_GENERATION_SHIFT == NBI_HINT_SLOT_BITS + 1, "a hint and a state differ by one bit");

// In nbi_slot.kind: the priority, flags, and the low bits of the task's generation, so that a promotion that
// comes late does not change another task's priority.
#define NBI_KIND_PRIORITY 7u
#define NBI_KIND_GENERATION_SHIFT 16
#define NBI_KIND_GENERATION_MASK 0xFFFF0000u
#define NBI_KIND_FLOATING 8u
#define NBI_KIND_AWAITED 256u   // a thread waits for it, or has
#define NBI_KIND_PINNED 128u    // only one lane may run it
#define NBI_KIND_HAS_RESULT 64u // somebody is told of the end
#define NBI_KIND_HAS_FENCE 32u  // the slot's further fields say which
#define NBI_KIND_HAS_HANDLE 16u // somebody may wait for it, or claim it by its handle

// Numbers of owners, with 0, which nobody has.
#if defined(NB_EXPLORE)
#define NBI_OWNER_COUNT 32u
#else
#define NBI_OWNER_COUNT 2048u
#endif

// In nbi_slot.label: NBI_LABEL_RECORDS, the owner's number, the label's.
#define NBI_LABEL_MASK NB_LABEL_COUNT_MAX
#define NBI_LABEL_OWNER_SHIFT 20
#define NBI_LABEL_OWNER_MASK 0x7FFu

NB_STATIC_ASSERT(NBI_LABEL_MASK == (1u << NBI_LABEL_OWNER_SHIFT) - 1, "a label has its bits alone");
NB_STATIC_ASSERT(NBI_LABEL_RECORDS == (NBI_LABEL_OWNER_MASK + 1) << NBI_LABEL_OWNER_SHIFT, "so has the owner");
NB_STATIC_ASSERT(NBI_OWNER_COUNT <= NBI_LABEL_OWNER_MASK + 1, "a task has bits for every owner");

// The number of the task's owner; 0 = nobody.
static inline uint32_t nbi_label_owner(uint32_t word) { return word >> NBI_LABEL_OWNER_SHIFT & NBI_LABEL_OWNER_MASK; }

// Fields that a thread may read before it has claimed the task are relaxed atomics: what it reads may belong to a newer
// task, and is believed only if the claim succeeds.
typedef struct nbi_slot {
    nbi_tally state;
    void (*run)(nb_task_context *context, void *argument);
    nb_token *token;
    nb_atomic_ptr frame_tally; // of a frame-bound task; NULL = floating
    nb_atomic_ptr group;       // NULL = none
    nb_atomic_u32 label;       // and the owner: see nbi_label_owner
    nb_atomic_u32 kind;
    unsigned char argument[NB_TASK_ARGUMENT_SIZE_MAX];
} nbi_slot;

NB_STATIC_ASSERT(sizeof(nbi_slot) == 2 * NB_CACHE_LINE, "a task is two lines");
NB_STATIC_ASSERT(offsetof(nbi_slot, argument) == 48, "16 bytes of argument share the first line");

// What only some tasks need, beside the slots.
typedef struct nbi_slot_more {
    nb_fence *fence;
    nb_fence_frame frame;
    nb_atomic_u64 thread_id; // of the thread that runs it; 0 = not started. For the list of late tasks
    // Of depend.c, under its lock. Zero where nothing depends on anything.
    uint32_t first_out;     // edge + 1 to one that waits for this
    uint32_t first_in;      // edge + 1 from one that this waits for
    uint32_t pending;       // of the latter
    uint32_t next;          // in a list of one walk: slot + 1
    uint64_t visit_number;  // of the newest walk that came here
    nb_atomic_u32 pin_lane; // of a pinned task
    // Of submit_budget.c, under the same lock.
    bool is_held;                   // one of `pending` is the budget's
    uint32_t next_held, prior_held; // slot + 1
} nbi_slot_more;

// Slots that a lane keeps for itself, at most; they move between lanes and the pool half of it at a time.
#if defined(NB_EXPLORE)
#define NBI_SPARE_MAX 4u
#else
#define NBI_SPARE_MAX 128u
#endif

// Of a task whose end is told: kept with its slot until then.
typedef struct nbi_outcome {
    void (*on_complete)(void *user, const nb_task_result *result);
    void *user;
    uint64_t sequence; // order of submission: lane, then number
    nb_task task;
    const nb_fence *fence; // of the task, once it has ended; NULL = none. Only compared: it may be gone
    nb_fence_frame completed;
    nb_result status;
    nb_arena_frame memory; // of the thread arenas: pinned, because the task has memory there; zero = not
    uint32_t stale_frame_count;
    uint32_t next;       // slot + 1: in the stack of ended ones, or in the drain's sorted list
    nb_atomic_u32 parts; // NBI_OUTCOME_*: who of the two has done with the slot
} nbi_outcome;

// The thread that ends a task and the one that tells of it are both to be through before its slot is used again.
#define NBI_OUTCOME_ENDED 1u
#define NBI_OUTCOME_TOLD 2u

// Says that the task `to` waits for the end of `from`. In two lists; indices are + 1, 0 ends a list.
typedef struct nbi_edge {
    nbi_hint from;
    nbi_hint to;                // NBI_HINT_NONE: it no longer waits
    uint32_t next_out;          // of the same `from`; also chains free edges
    uint32_t next_in, prior_in; // of the same `to`
    uint32_t pad;
} nbi_edge;

// --- groups ---

// Stages of a group.
#define NBI_GROUP_OPEN 0u
#define NBI_GROUP_AWAITED 1u // its opener takes part in its work, and waits for the rest
#define NBI_GROUP_SEALED 2u  // nb_group_end has begun: its open unit was given back
#define NBI_GROUP_ENDED 3u   // nb_group_end has returned it

// Type-stable: a group's memory is a group for as long as the scheduler lives, so a stale read finds an old value and
// never something else.
typedef struct nbi_group {
    nbi_tally tally;
    nb_atomic_ptr parent;      // the group of the task that opened it; NULL = none
    nb_atomic_u32 depth;       // groups above it
    nb_atomic_u32 result;      // the first nb_result that was not NB_OK
    nb_atomic_u64 owner;       // the task that opened it; 0 = none
    nb_atomic_ptr frame_tally; // of that task
    uint32_t next_free;        // index + 1
    nb_atomic_u32 stage;       // NBI_GROUP_*
    nb_atomic_u64 sequence;    // how often it was opened; the tally has its low bits as generation
    nb_atomic_u32 is_below;    // it was opened below a group that was awaited: its tasks always are
    char pad_end[NB_CACHE_LINE - 60];
} nbi_group;

NB_STATIC_ASSERT(sizeof(nbi_group) == NB_CACHE_LINE, "groups of two threads share no line");

// --- lanes ---

// Units of one tally that a thread holds beyond those of its running tasks.
typedef struct nbi_pocket {
    nbi_tally *tally;
    uint32_t count;
} nbi_pocket;

typedef struct nbi_queue {
    nbi_ring ring;
    nbi_deque deque;
} nbi_queue;

// A task that runs in this lane; more than one while the lower ones wait.
typedef struct nbi_running {
    nb_task_context context;
    struct nbi_running *below;
    uint64_t id; // of the task: its hint + 1; 0 = no task of its own
    nbi_group *group;
    nbi_tally *frame_tally;
    uint32_t owner;    // its number
    bool has_scratch;  // it has taken memory that ends with it
    bool is_sampled;   // of a task with a token: its end is timed too
    uint64_t check_ns; // when it last asked whether to stop, or started; 0 = not known
    nb_arena_mark scratch_mark;
} nbi_running;

// Written by the lane's thread alone, read by all.
typedef struct nbi_lane_counts {
    nb_atomic_u64 submit_count, run_count, cancel_count, refuse_count, full_count, inline_count, wake_count,
        steal_count, help_count, overrun_count, park_count, busy_ns, idle_ns;
    nb_atomic_u64 period; // of a worker: when its present busy or idle time began, << 1, and 1 if busy; 0 = none yet
} nbi_lane_counts;

static inline void nbi_count(nb_atomic_u64 *count, uint64_t more) {
    // Read by the acquire loads in nb_scheduler_stats_get, so that no end is seen before its submit.
    nbi_atomic_store_release_u64(count, nbi_atomic_load_relaxed_u64(count) + more);
}

// A trace into which tasks are recorded; see trace_spans.c.
typedef struct nbi_traced {
    nb_atomic_ptr trace;   // NULL = none
    const nb_fence *fence; // tasks of its frames are that trace's; this and the label are valid while there is a trace
    nb_label task_label;   // of tasks without a name
    bool is_used;          // (traced_lock)
} nbi_traced;

typedef struct nbi_lane {
    nb_scheduler *scheduler;
    uint32_t index;
    bool is_worker;
    bool is_floating_busy;                // counted in floating_busy_count
    uint32_t fp_mode;                     // of its thread before it was borrowed; workers have none of their own
    bool is_waiting;                      // counted in waiter_count
    uint32_t owned_mask;                  // queues whose bit in has_work is set; the owner's own note of it
    uint32_t victim;                      // where the next search of other lanes begins
    uint32_t near_count;                  // tasks taken from one ring in a row; see keep_distance
    uint64_t near_ns;                     // when that row began
    bool takes_bulk;                      // the last tasks were short ones
    uint32_t left_count[NBI_QUEUE_COUNT]; // searches of other lanes; see LEFT_TASKS
    uint32_t own_count[NBI_QUEUE_COUNT];  // searches of the own lane; see OWN_TASKS
    bool is_others_turn;                  // inside take_one
    uint32_t bulk_mask;                   // queues whose deque may have something left of what was taken in bulk
    uint64_t bulk_end[NBI_QUEUE_COUNT];   // above it are only tasks that came later
    uint32_t left_victim;                 // where the next search of deques begins
    uint32_t low_look_count;              // tasks since the last look at the age of Low ones
    uint64_t low_look_ns;                 // when that was
    bool has_budget;                      // submits of this lane's thread are timed; the coordinator's only
    uint64_t budget_left_ns;              // of the frame's time for submitting
    nbi_running *running;                 // newest first
    nbi_pocket group_pocket, frame_pocket;
    uint32_t spare_count, spare_max;
    uint32_t spare[NBI_SPARE_MAX + 1];
    uint32_t spare_group; // index + 1, chained by next_free
    uint32_t spare_group_count, group_batch;
    uint64_t sequence;    // submissions of tasks with a result
    uint32_t check_count; // tasks with a token that were run
    nbi_lane_counts counts;
    nb_atomic_u32 *births;    // tasks submitted, by owner; written by the lane's thread alone
    nb_thread_arena *arena;   // of desc.arenas; NULL until it is needed
    nb_arena scratch;         // memory of floating tasks, which end in the order in which they came here reversed
    bool has_scratch;         // it was made
    nb_atomic_u64 thread_id;  // 0 = nobody; changes under scheduler->lock
    uint32_t borrow_count;    // calls under way that may run tasks here
    bool is_borrowed;         // taken for such a call, by a thread that is not attached
    nb_atomic_u32 is_tracing; // its thread looks at scheduler->traced; see trace_spans.c
    uint32_t refused_rings;   // bits: entries of it whose trace has no ring left
    nb_trace_thread *rings[NBI_TRACED_COUNT_MAX]; // that the thread got by its tasks; by entry
    char pad[NB_CACHE_LINE];
    nb_atomic_u32 wake_event; // futex word; changes with every wake
    // What the thread may run on now. Two wakers may place it at once, where it slept again in between; either is
    // right.
    nb_atomic_u64 affinity_mask;
    nbi_thread thread;
    void *pages; // of the queues
    nbi_queue *queues;
    // The inbox: tasks that only this lane's thread may run. Anybody puts in, under the lock; the owner takes.
    nbi_lock inbox_lock;
    nb_atomic_u32 inbox_mask; // queues with an entry; changes under the lock
    nbi_ring *inbox;
} nbi_lane;

// Intervals between two questions whether to stop, of the tasks of one label.
typedef struct nbi_check {
    nb_atomic_u64 key; // label + 1; 0 = free
    nb_atomic_u64 interval_count, interval_max_ns, late_count;
} nbi_check;

// A thread asleep in a wait.
typedef struct nbi_sleeper {
    nbi_tally *tally;
    struct nbi_sleeper *next;
} nbi_sleeper;

typedef struct nbi_owner_place {
    nbi_owner *owner;   // NULL = nobody. Made before a task can have the number, and there until none has it (lock)
    nb_atomic_u32 host; // number of the engine's owner, where this is a module's; else this number
    nb_atomic_u32 is_stopping; // the tasks of this host are to stop
} nbi_owner_place;

struct nb_scheduler {
    // Read by everybody, rarely written.
    nbi_slot *slots;
    nbi_slot_more *more;
    nbi_outcome *outcomes;
    nbi_group *groups;
    uint32_t slot_count, group_count, worker_count;
    uint64_t handle_salt;  // the bits of the slot are 0
    uint64_t stamp;        // tells this scheduler from an earlier one at the same address
    uint64_t cpu_mask;     // CPUs the process may use; 0 = unknown
    uint32_t floating_max; // workers that may be busy with background work at once
    uint64_t ring_capacity;
    nb_atomic_u32 traced_count; // entries of `traced` with a trace; changes under traced_lock
    nb_scheduler_desc desc;     // resolved
    bool owns_arenas;           // desc.arenas was made with the scheduler
    nbi_throttle throttle;      // of refused tasks
    nbi_owner_place *owners;    // by number
    nbi_owner closed_owner;     // of code that is about to go
    uint32_t owner_last;        // number found by the last search (lock)
    uint32_t owner_limit;       // numbers from here on were never used (lock)
    void *pages;                // of slots, more, groups and owners
    size_t pages_bytes;
    char pad_hot[NB_CACHE_LINE];

    nb_atomic_u64 has_work[NBI_QUEUE_COUNT]; // bit = lane; set and cleared only by the lane's owner
    char pad_sleep[NB_CACHE_LINE];
    nb_atomic_u64 parked_mask;   // bit = lane of a worker that sleeps or is about to
    nb_atomic_u32 sleeper_count; // threads in the list of sleepers
    nb_atomic_u32 is_stopping;   // NBI_STOP_*
    nb_atomic_u64 spin_until_ns; // workers do not sleep before
    nb_atomic_u64 low_since_ns;  // since when Low tasks wait, or were served last; 0 = there are none
    nb_atomic_u32 floating_busy_count;
    nb_atomic_u32 serves_frames; // a frame-bound task came: from now on the ceiling holds
    nb_atomic_u32 waiter_count;  // threads inside a wait; counted where there is a ceiling
    nb_atomic_u64 kept_mask;     // bit = lane of a worker that passed floating work by; see awaited.c
    nb_atomic_u32 waker_cpu;     // + 1, of the last prewake: a worker must not spin there
    nb_atomic_u64 poke_count;
    char pad_pool[NB_CACHE_LINE];

    nbi_lock pool_lock;   // the two pools below
    uint32_t *free_slots; // a stack
    uint32_t free_slot_count, fresh_slot_count;
    uint32_t free_group, fresh_group_count;
    char pad_lock[NB_CACHE_LINE];

    nb_atomic_u32 done_first;  // stack of ended tasks to be told of: slot + 1. Taken whole, so that nothing can recur
    nb_atomic_u32 is_draining; // a thread is in the callbacks of nb_scheduler_drain
    nbi_lock done_lock;        // protects done_sorted; never held across a callback
    uint32_t done_sorted;      // taken off the stack, oldest submission first: slot + 1
    nb_atomic_u64 result_count, stale_count;
    nbi_lock depend_lock; // edges, the lists in slots, and the step into and out of phase WAITING
    nbi_edge *edges;
    uint32_t edge_count, free_edge, fresh_edge_count;
    uint64_t visit_number;          // of the newest walk
    nb_atomic_u32 waiting_count;    // tasks in phase WAITING
    uint32_t first_held, last_held; // slot + 1, in the order of their submits
    nb_atomic_u32 held_count;
    nbi_check checks[NB_CHECK_LABEL_COUNT_MAX];
    nbi_lock sleeper_lock;
    nbi_sleeper *sleepers; // (sleeper_lock)
    nbi_lock outside_lock; // the lane NBI_LANE_OUTSIDE
    nbi_lock lock;         // attaching and detaching
    nbi_lock traced_lock;  // adding and removing of traces
    nbi_traced traced[NBI_TRACED_COUNT_MAX];
    nb_atomic_u32 lane_count; // lanes in use: 0 .. lane_count - 1, and NBI_LANE_OUTSIDE
    nbi_lane *lanes[NBI_LANE_COUNT_MAX];
};

static inline nbi_slot *nbi_slot_at(const nb_scheduler *scheduler, uint32_t index) { return &scheduler->slots[index]; }

// Handles are hints plus 1, moved by a number of the scheduler's own: those of another one are never found.
static inline uint64_t nbi_handle_of(const nb_scheduler *scheduler, nbi_hint hint) {
    return ((hint + scheduler->handle_salt) & ~NBI_HINT_LAP) + 1;
}
static inline nbi_hint nbi_hint_of_handle(const nb_scheduler *scheduler, uint64_t value) {
    return value != 0 ? (value - 1 - scheduler->handle_salt) & ~NBI_HINT_LAP : NBI_HINT_NONE & ~NBI_HINT_LAP;
}

// Whether the task of a hint is queued now, so that claiming it is worth a try.
static inline bool nbi_is_queued(const nb_scheduler *scheduler, nbi_hint hint) {
    uint64_t state = nbi_atomic_load_relaxed_u64(&nbi_slot_at(scheduler, nbi_hint_slot(hint))->state.word);
    return (state & ~NBI_STATE_NOTES) == nbi_state_of_hint(hint, NBI_PHASE_QUEUED);
}

// --- slot.c: the pool of slots ---

void nbi_slot_refill(nbi_lane *lane, nb_priority priority);
void nbi_slot_spill(nbi_lane *lane);

// Slots that have ever been used: all tasks lie below this index.
uint32_t nbi_slot_used_count(nb_scheduler *scheduler);

// Slots a lane of this scheduler may keep.
uint32_t nbi_slot_spare_max(const nb_scheduler *scheduler);

// A free slot for a task of the lane's thread, in phase FREE; UINT32_MAX: none left. The last eighth is for Critical.
static inline uint32_t nbi_slot_alloc(nbi_lane *lane, nb_priority priority) {
    if (NB_UNLIKELY(lane->spare_count == 0)) {
        nbi_slot_refill(lane, priority);
        if (lane->spare_count == 0) return UINT32_MAX;
    }
    return lane->spare[--lane->spare_count];
}

static inline void nbi_slot_free(nbi_lane *lane, uint32_t slot) {
    lane->spare[lane->spare_count++] = slot;
    if (NB_UNLIKELY(lane->spare_count > lane->spare_max)) nbi_slot_spill(lane);
}

// --- group.c ---

// Groups that a lane of this scheduler takes or gives back at a time.
uint32_t nbi_group_batch(const nb_scheduler *scheduler);

// Moves a group on, in the hands of its opener.
void nbi_group_stage(const nb_scheduler *scheduler, nbi_group *group, uint32_t stage);

// The group of a handle, or NULL when it has ended or never was. Null's index is no group's.
static inline nbi_group *nbi_group_find(const nb_scheduler *scheduler, nb_group handle) {
    nbi_hint hint = nbi_hint_of_handle(scheduler, handle.value);
    if (NB_UNLIKELY(nbi_hint_slot(hint) >= scheduler->group_count)) return NULL;
    nbi_group *group = &scheduler->groups[nbi_hint_slot(hint)];
    return nbi_atomic_load_relaxed_u64(&group->sequence) == nbi_hint_generation(hint) ? group : NULL;
}

// What the group's end is to return, unless a failure was noted before. NULL is fine.
static inline void nbi_group_note(nbi_group *group, nb_result result) {
    uint32_t none = (uint32_t)NB_OK;
    if (group != NULL) nbi_atomic_compare_exchange_relaxed_u32(&group->result, &none, (uint32_t)result);
}

static inline nbi_tally *nbi_group_tally(nbi_group *group) { return group != NULL ? &group->tally : NULL; }

// --- lanes (lane.c) ---

// The lane a thread used last, so that a submit needs no search for it. Only compared, never followed, unless the
// scheduler at hand is the very one it was noted for. Under the explorer all threads are fibers of one, without a note.
typedef struct nbi_lane_note {
    const nb_scheduler *scheduler;
    uint64_t stamp;
    nbi_lane *lane;
} nbi_lane_note;

nbi_lane *nbi_lane_find_own(nb_scheduler *scheduler);

// The calling thread's own lane, or NULL.
#if defined(NB_EXPLORE)
static inline nbi_lane *nbi_lane_own(nb_scheduler *scheduler) { return nbi_lane_find_own(scheduler); }
#else
#if defined(__GNUC__)
// The quick way to a thread's variable in a shared library too; a library this small fits the space that is set aside.
__attribute__((tls_model("initial-exec"), visibility("hidden")))
#endif
extern _Thread_local nbi_lane_note nbi_lane_noted;

static inline nbi_lane *nbi_lane_own(nb_scheduler *scheduler) {
    const nbi_lane_note *note = &nbi_lane_noted;
    bool is_noted = note->scheduler == scheduler && note->stamp == scheduler->stamp;
    return NB_LIKELY(is_noted) ? note->lane : nbi_lane_find_own(scheduler);
}
#endif

// The lane of the calling thread for a short section without user code; threads without one get the shared lane,
// locked. nbi_lane_leave ends its use.
nbi_lane *nbi_lane_enter_outside(nb_scheduler *scheduler);
static inline nbi_lane *nbi_lane_enter(nb_scheduler *scheduler) {
    nbi_lane *lane = nbi_lane_own(scheduler);
    return NB_LIKELY(lane != NULL) ? lane : nbi_lane_enter_outside(scheduler);
}
static inline void nbi_lane_leave(nbi_lane *lane) {
    if (NB_UNLIKELY(lane->index == NBI_LANE_OUTSIDE)) nbi_lock_release(&lane->scheduler->outside_lock);
}

// A lane in which tasks can run: the calling thread's own, or a free one for the time being; NULL: none is free.
nbi_lane *nbi_lane_borrow_free(nb_scheduler *scheduler);
void nbi_lane_return_free(nbi_lane *lane);
static inline nbi_lane *nbi_lane_borrow(nb_scheduler *scheduler) {
    nbi_lane *lane = nbi_lane_own(scheduler);
    if (NB_UNLIKELY(lane == NULL)) return nbi_lane_borrow_free(scheduler);
    // Tasks compute the same on every thread: workers have the mode for that from their start, the others for as long
    // as they run any.
    if (lane->borrow_count++ == 0 && !lane->is_worker) lane->fp_mode = nbi_fp_enter();
    return lane;
}
static inline void nbi_lane_return(nbi_lane *lane) {
    if (--lane->borrow_count != 0) return;
    if (!lane->is_worker) nbi_fp_leave(lane->fp_mode);
    if (NB_UNLIKELY(lane->is_borrowed)) nbi_lane_return_free(lane);
}

// Makes the lane with this index, or frees it.
nb_result nbi_lane_create(nb_scheduler *scheduler, uint32_t index);
void nbi_lane_destroy(nbi_lane *lane);

// Makes the calling thread the lane's owner, or nobody.
void nbi_lane_own_by_caller(nbi_lane *lane);
void nbi_lane_disown(nbi_lane *lane);

// --- pockets ---

// True: what was in it were the tally's last units.
static inline bool nbi_pocket_empty(nbi_pocket *pocket) {
    if (pocket->count == 0) return false;
    uint32_t count = pocket->count;
    pocket->count = 0;
    return nbi_tally_sub(pocket->tally, count);
}

// Units that a running task takes at once for what it submits: one write to the shared word for so many submits. They
// go back when the thread turns to anything else.
#define NBI_POCKET_TAKE 8u

// Units in a pocket beyond which it gives them back: a word that is written every so many tasks costs them nothing, and
// a count that is this much too high delays nobody, because the pocket is emptied before the thread could.
#define NBI_POCKET_MAX 192u

static inline void nbi_pocket_put(nbi_pocket *pocket, nbi_tally *tally) {
    if (pocket->tally != tally) {
        nbi_pocket_empty(pocket);
        pocket->tally = tally;
    }
    if (NB_UNLIKELY(++pocket->count > NBI_POCKET_MAX)) nbi_pocket_empty(pocket);
}

static inline void nbi_lane_empty_pockets(nbi_lane *lane) {
    nbi_pocket_empty(&lane->group_pocket);
    nbi_pocket_empty(&lane->frame_pocket);
}

// Units of what the lane's thread is not working for go back: the work it turns to may take long.
static inline void nbi_lane_turn_pockets(nbi_lane *lane, nbi_group *group, const nbi_tally *frame_tally) {
    if (lane->group_pocket.tally != nbi_group_tally(group)) nbi_pocket_empty(&lane->group_pocket);
    if (lane->frame_pocket.tally != frame_tally) nbi_pocket_empty(&lane->frame_pocket);
}

// Before control goes back to the caller's code.
static inline void nbi_lane_settle_pockets(nbi_lane *lane) {
    const nbi_running *running = lane->running;
    nbi_lane_turn_pockets(lane, running != NULL ? running->group : NULL, running != NULL ? running->frame_tally : NULL);
}

// --- running and ending (task.c) ---

// Takes the task of a hint and runs it. False: it was taken, cancelled or claimed before.
bool nbi_task_run(nbi_lane *lane, nbi_hint hint);

// Runs a task that the caller has claimed, or that was never in a queue.
void nbi_task_run_claimed(nbi_lane *lane, nbi_hint hint);

// Calls run in the calling thread as if in a task of the group and of desc's frame, whose tally the caller has a unit
// of (NULL = none), and returns the result it set.
nb_result nbi_task_run_here(nbi_lane *lane, const nb_task_desc *desc, nbi_group *group, nbi_tally *frame_tally,
                            void *argument);

// The same in the frame that the desc asks for, held meanwhile: what a task leaves in memory is the frame's, whichever
// thread ran it. Where there is no such frame it runs without. (submit.c)
nb_result nbi_task_run_bound(nbi_lane *lane, const nb_task_desc *desc, nbi_group *group, void *argument);

// Claims and ends every queued task; one that was seen in a phase.
void nbi_task_cancel_all(nb_scheduler *scheduler);
void nbi_task_cancel_one(nb_scheduler *scheduler, nbi_hint hint, nbi_phase phase);

// What a thread waits for, and so what it may run: tasks of a group or below it; one task, and what lies below it;
// tasks of a frame, and what lies below them.
typedef struct nbi_target {
    nbi_tally *word; // of the group or task, where it sleeps
    uint64_t begun;  // what the word has of its generation while that lasts
    uint64_t begun_mask;
    const nbi_group *group; // or NULL
    uint64_t task_id;       // hint + 1; 0 = none
    const nbi_tally *frame; // or NULL
    bool is_any;            // all that any thread waits for
} nbi_target;

// The end of a group or task that is not over.
static inline nbi_target nbi_target_group(nbi_group *group) {
    uint64_t generation = nbi_atomic_load_relaxed_u64(&group->sequence) & NBI_TALLY_GENERATION_MASK;
    return (nbi_target){.word = &group->tally,
                        .begun = generation << NBI_TALLY_GENERATION_SHIFT,
                        .begun_mask = NBI_TALLY_GENERATION_MASK << NBI_TALLY_GENERATION_SHIFT,
                        .group = group};
}
static inline nbi_target nbi_target_task(const nb_scheduler *scheduler, nbi_hint hint) {
    return (nbi_target){.word = &nbi_slot_at(scheduler, nbi_hint_slot(hint))->state,
                        .begun = nbi_state_of_hint(hint, NBI_PHASE_FREE),
                        .begun_mask = NBI_HINT_GENERATION_MASK << NBI_STATE_GENERATION_SHIFT,
                        .task_id = hint + 1};
}

// Whether it was over when the word was read. A task that has ended has left its generation; a group may not have yet.
static inline bool nbi_target_is_over(const nbi_target *target, uint64_t word) {
    return ((word ^ target->begun) & target->begun_mask) != 0 || (target->group != NULL && nbi_tally_count(word) == 0);
}

// --- trace_spans.c ---

// Around a task: its span in every trace that it concerns. begin gives what end needs; is_recorded: it has no spans of
// its own.
uint32_t nbi_span_begin_slow(nbi_lane *lane, const nb_task_context *context, bool is_recorded);
void nbi_span_end_slow(nbi_lane *lane, uint32_t begun);
static inline uint32_t nbi_span_begin(nbi_lane *lane, const nb_task_context *context, bool is_recorded) {
    bool is_traced = nbi_atomic_load_relaxed_u32(&lane->scheduler->traced_count) != 0;
    return NB_UNLIKELY(is_traced) ? nbi_span_begin_slow(lane, context, is_recorded) : 0;
}
static inline void nbi_span_end(nbi_lane *lane, uint32_t begun) {
    if (NB_UNLIKELY(begun != 0)) nbi_span_end_slow(lane, begun);
}

// Before another thread has the lane.
void nbi_span_forget(nbi_lane *lane);

// --- host.c ---

// Whether a task of this kind is to stop: the scheduler does, or its host.
bool nbi_host_is_stopping(const nb_scheduler *scheduler, uint32_t owner);

// --- task_memory.c ---

// Gives back the memory that a task has left for the one who is told of its end.
void nbi_outcome_memory_end(const nb_scheduler *scheduler, const nbi_outcome *outcome);

// Gives back what a task has taken of the lane's scratch memory.
void nbi_scratch_end(nbi_lane *lane, const nbi_running *running);

// Gives back all memory of the lane's thread, before it has another.
void nbi_lane_memory_end(nbi_lane *lane);

// --- cancel_checks.c ---

// Around a task with a token, and where it asks.
void nbi_check_begin(nbi_lane *lane, nbi_running *running);
void nbi_check_note(nbi_lane *lane);
void nbi_check_end(nbi_lane *lane, const nbi_running *running);

// --- pin.c ---

// Puts a pinned task into its lane's inbox, and wakes that thread.
void nbi_pin_publish(nb_scheduler *scheduler, nbi_hint hint, uint32_t queue);

// The oldest pinned task of one queue of the caller's own lane.
nbi_hint nbi_pin_take(nbi_lane *lane, uint32_t queue);

// A pinned task of the caller's own lane that serves the target. It may stay in the inbox, dead once it was claimed.
nbi_hint nbi_pin_search(nbi_lane *lane, const nbi_target *target);

// Whether the lane's thread may run the task of a hint.
static inline bool nbi_pin_allows(const nbi_lane *lane, nbi_hint hint) {
    const nb_scheduler *scheduler = lane->scheduler;
    uint32_t kind = nbi_atomic_load_relaxed_u32(&nbi_slot_at(scheduler, nbi_hint_slot(hint))->kind);
    if (NB_LIKELY((kind & NBI_KIND_PINNED) == 0)) return true;
    return nbi_atomic_load_relaxed_u32(&scheduler->more[nbi_hint_slot(hint)].pin_lane) == lane->index;
}

// --- result.c ---

// Keeps an ended task, and its slot, for nb_scheduler_drain.
void nbi_result_keep(nb_scheduler *scheduler, nbi_hint hint, nb_result status);

// One of the two parts is through with the slot; the second frees it.
void nbi_result_part(nbi_lane *lane, uint32_t slot, uint32_t part);

// --- owner_tasks.c ---

// Lets go of all owners; those with work that outlives the scheduler stay until that has ended.
void nbi_owners_end(nb_scheduler *scheduler);

// --- depend.c ---

// Lets go those that waited for a task which has ended, and whose state was LISTED.
void nbi_depend_release(nbi_lane *lane, uint32_t slot);

// Makes a new task in phase WAITING wait for all in the array, and for the budget where is_held says so; it is queued
// when none is left. NB_FULL: no room for that; the task is as before.
nb_result nbi_depend_on_all(nbi_lane *lane, nbi_hint hint, const nb_task *on, uint32_t count, bool is_held);

// Lets go the one that was held back first. False: there is none.
bool nbi_depend_release_held(nbi_lane *lane);

// Takes a task that waits away from what it waits for, for the caller to end. False: it does not wait.
bool nbi_depend_claim(nb_scheduler *scheduler, nbi_hint hint);

// A queued task on which one that serves the target depends. NBI_HINT_NONE: there is none. *is_deadlock: one of those
// runs in this lane, below the wait.
nbi_hint nbi_depend_search(nbi_lane *lane, const nbi_target *target, bool *is_deadlock);

// Begins a walk in which each slot is met once; the lock is held. 0 is what fresh slots have.
static inline void nbi_visit_begin(nb_scheduler *scheduler) { ++scheduler->visit_number; }

// Puts a task that was just moved to phase QUEUED where others find it.
void nbi_task_publish(nbi_lane *lane, nbi_hint hint);

// --- search.c ---

// Floating entries that are queued; dead ones count.
uint64_t nbi_floating_queued_count(const nb_scheduler *scheduler);

// Any task the lane's thread may take, strictly by priority. NBI_HINT_NONE: there was none.
nbi_hint nbi_search(nbi_lane *lane);

// A lane's queue has got its first entry: if it is a Low one, its age is watched from now on.
static inline void nbi_low_noted(nb_scheduler *scheduler, uint32_t queue) {
    if (queue < nbi_queue_index(NB_PRIORITY_LOW, false)) return;
    uint64_t none = 0;
    nbi_atomic_compare_exchange_relaxed_u64(&scheduler->low_since_ns, &none, nbi_clock_now_ns());
}

// A queue of the caller's own lane has an entry: others are to look into it.
static inline void nbi_own_noted(nbi_lane *lane, uint32_t queue) {
    uint32_t bit = 1u << queue;
    if (NB_LIKELY((lane->owned_mask & bit) != 0)) return;
    lane->owned_mask |= bit;
    nbi_atomic_fetch_or_seq_cst_u64(&lane->scheduler->has_work[queue], (uint64_t)1 << lane->index);
    nbi_low_noted(lane->scheduler, queue);
}

// --- waiter_search.c ---

// A task of a floating queue that somebody waits for, of any lane; background work in front of it stays where it is.
nbi_hint nbi_search_awaited(nbi_lane *lane, uint32_t queue);

// A task that serves the target; a thorough search also looks behind other tasks, and takes out of order. The hint may
// stay in its queue: it is dead once its task was claimed.
nbi_hint nbi_search_target(nbi_lane *lane, const nbi_target *target, bool is_thorough);

// Whether the task of a hint serves the target, as far as can be seen without claiming it.
bool nbi_serves(const nb_scheduler *scheduler, const nbi_target *target, nbi_hint hint);

// Throws dead and double entries out of a ring into which only the caller puts any; the living ones keep their order.
void nbi_ring_clean(nb_scheduler *scheduler, nbi_ring *ring);

// --- park.c ---

void nbi_wake_sleeping(nbi_lane *lane, bool is_floating, nbi_hint hint, uint64_t parked_mask);

// Wakes a worker for one new task, or, where none sleeps, makes waiting threads look. The hint of a floating task may
// be NBI_HINT_NONE: some of those that are queued.
static inline void nbi_wake_one(nbi_lane *lane, bool is_floating, nbi_hint hint) {
    const nb_scheduler *scheduler = lane->scheduler;
    // After the publishing RMW; the other halves are in sleep_parked and nbi_sleeper_enter.
    uint64_t mask = nbi_atomic_load_seq_cst_u64(&scheduler->parked_mask);
    uint32_t sleeper_count = nbi_atomic_load_seq_cst_u32(&scheduler->sleeper_count);
    if (NB_UNLIKELY((mask | sleeper_count) != 0)) nbi_wake_sleeping(lane, is_floating, hint, mask);
}
void nbi_worker_main(void *lane);

// Makes one worker look, if it sleeps for want of work; else every thread that sleeps in a wait.
void nbi_wake_lane(nb_scheduler *scheduler, uint32_t lane);

// What a worker does until the scheduler stops; the lane is the calling thread's.
void nbi_worker_run(nbi_lane *lane);
void nbi_wake_all(nb_scheduler *scheduler);

// Wakes workers that sleep beside floating work, after something became awaited.
void nbi_wake_kept(nb_scheduler *scheduler);

// --- awaited.c ---

// Whether any worker may ever have to pass floating work by.
static inline bool nbi_has_ceiling(const nb_scheduler *scheduler) {
    return scheduler->floating_max < scheduler->worker_count;
}

// Whether one has to now: the ceiling is for the sake of frames.
static inline bool nbi_holds_ceiling(const nb_scheduler *scheduler) {
    return nbi_has_ceiling(scheduler) && nbi_atomic_load_seq_cst_u32(&scheduler->serves_frames) != 0;
}

static inline bool nbi_is_float_full(const nb_scheduler *scheduler) {
    return nbi_holds_ceiling(scheduler) &&
           nbi_atomic_load_seq_cst_u32(&scheduler->floating_busy_count) >= scheduler->floating_max;
}

// Before the first task of a frame.
static inline void nbi_serve_frames(nb_scheduler *scheduler) {
    if (nbi_atomic_load_relaxed_u32(&scheduler->serves_frames) != 0) return;
    nbi_atomic_exchange_seq_cst_u32(&scheduler->serves_frames, 1);
}

// Around a wait of the calling thread, in its lane or, where it has none, NULL; `task` is what it waits for, or
// NBI_HINT_NONE. The end gets what the begin has returned.
bool nbi_await_note(nb_scheduler *scheduler, nbi_lane *lane, nbi_hint task);
void nbi_await_settle(nb_scheduler *scheduler, nbi_lane *lane);
static inline bool nbi_await_begin(nb_scheduler *scheduler, nbi_lane *lane, nbi_hint task) {
    return NB_UNLIKELY(nbi_has_ceiling(scheduler)) && nbi_await_note(scheduler, lane, task);
}
static inline void nbi_await_end(nb_scheduler *scheduler, nbi_lane *lane, bool is_counted) {
    if (NB_UNLIKELY(is_counted)) nbi_await_settle(scheduler, lane);
}

// Whether somebody waits for the task of a hint, or for a task above it, as far as can be seen without claiming it.
bool nbi_is_awaited(const nb_scheduler *scheduler, nbi_hint hint);

// For one who publishes a floating task above the ceiling: whether the workers in parked_mask may sleep on.
bool nbi_is_background(nb_scheduler *scheduler, nbi_hint hint, uint64_t parked_mask);

static inline bool nbi_is_kept(const nbi_lane *lane) {
    return (nbi_atomic_load_seq_cst_u64(&lane->scheduler->kept_mask) >> lane->index & 1) != 0;
}

// The lane's worker passes floating work by; and when it has slept.
void nbi_keep(nbi_lane *lane);
void nbi_keep_no_more(nbi_lane *lane);

// --- wait.c ---

void nbi_sleeper_enter(nb_scheduler *scheduler, nbi_sleeper *sleeper, nbi_tally *tally);
void nbi_sleeper_leave(nb_scheduler *scheduler, nbi_sleeper *sleeper);

// Makes every thread that sleeps in a wait look for work again.
void nbi_poke_sleepers(nb_scheduler *scheduler);

// Waits until the target's group or task is over, helping with what it allows. NB_TIMEOUT.
nb_result nbi_wait(nbi_lane *lane, const nbi_target *target, uint64_t deadline_ns);

// The same for a thread that has no lane and cannot help.
nb_result nbi_wait_outside(nb_scheduler *scheduler, const nbi_target *target, uint64_t deadline_ns);
