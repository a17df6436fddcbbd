// SPDX-License-Identifier: MIT
#pragma once

// The task scheduler: work for every core that knows about frames. A task is a function with up to 80 bytes of copied
// argument; it belongs to a frame (the frame's fence waits for it) or floats across frames, has one of four priorities,
// may belong to a group and a cancellation token. Nothing touches the heap after creation. The one rule: a thread that
// waits runs only what it waits for, so a wait inside a task is safe and never buries unrelated work under it.
//
// Tasks run in the default floating-point mode (round to nearest, denormals kept) on every thread, whatever mode the
// host has set; the host's mode is back when a call of the scheduler returns. A task that changes the mode restores it
// before it returns. Each call of a parallel loop or reduction starts in the default mode.
//
//     static void square(nb_task_context *context, void *argument) {
//         int *value = *(int **)argument;
//         *value *= *value;
//     }
//     nb_scheduler *scheduler = NULL;
//     if (nb_scheduler_create(NULL, &scheduler) != NB_OK) return 1;
//     int number = 7, *pointer = &number;
//     nb_group group;
//     nb_group_begin(scheduler, &group);
//     nb_task_desc desc = {.run = square, .argument = &pointer, .argument_size_bytes = sizeof pointer, .group = group};
//     nb_task_submit(scheduler, &desc, NULL);
//     nb_group_end(scheduler, group, NB_NEVER_NS); // helps, then waits
//     nb_scheduler_destroy(scheduler);

#include "nebula/fence.h"
#include "nebula/hooks.h"
#include "nebula/label.h"
#include "nebula/thread_arena.h"
#include "nebula/token.h"
#include "nebula/types.h"

// Argument bytes that travel inside a task: two cache lines less what the scheduler needs. More goes behind a pointer.
#define NB_TASK_ARGUMENT_SIZE_MAX 80

// Tasks alive at once where the desc gives none: 33 MiB of address space, and 16 MiB for the queues of each thread, of
// which only what was used takes memory. A queue goes round in its ring: with this default the 1 MiB of each queue in
// use is touched piece by piece during its first 131,072 tasks, and never more.
#define NB_TASK_COUNT_DEFAULT (1u << 17)
#define NB_TASK_COUNT_MAX (1u << 22)

// Groups alive at once where the desc gives none; a group lives as long as somebody is going to wait for it.
#define NB_GROUP_COUNT_DEFAULT (1u << 14)

// Dependencies between tasks alive at once where the desc gives none.
#define NB_DEPENDENCY_COUNT_DEFAULT (1u << 14)

// Threads of a scheduler: coordinator, workers, attached threads. One bit each in a word.
#define NB_SCHEDULER_THREAD_COUNT_MAX 62

// Time for submitting in one frame where nb_scheduler_budget_open is given none: an eighth of a frame at 60 a second.
#define NB_SUBMIT_BUDGET_NS_DEFAULT ((uint64_t)2000000)

// Stack of a worker where the desc gives none.
#define NB_WORKER_STACK_SIZE_DEFAULT ((size_t)2 << 20)

// Labels whose tasks' questions are timed; the tasks of all further ones count as the last of these.
#define NB_CHECK_LABEL_COUNT_MAX 64

// Longest spin that nb_scheduler_prewake may ask for: beyond it a worker had better sleep.
#define NB_SCHEDULER_PREWAKE_NS_MAX ((uint64_t)1000000)

// As desc.worker_count: no workers at all; everything runs in threads that wait or help.
#define NB_WORKER_COUNT_NONE UINT32_MAX

// As desc.pin: the only thread that may run the task. The coordinator runs its own when it waits for them or helps.
#define NB_PIN_NONE 0u
#define NB_PIN_COORDINATOR 1u
#define NB_PIN_WORKER(index) (2u + (index))

// One task. Zero is null; a task that has ended is never found again under its old value.
typedef struct nb_task {
    uint64_t value; // private: generation and slot
} nb_task;

// Tasks that are waited for together. Zero is null.
typedef struct nb_group {
    uint64_t value; // private: generation and slot
} nb_group;

typedef struct nb_scheduler nb_scheduler;

// Strict: a thread takes a task only when none of a higher priority is queued.
typedef enum nb_priority {
    NB_PRIORITY_DEFAULT = 0, // NORMAL
    NB_PRIORITY_LOW,         // when nothing else is to be done; one that is 500 ms old may go first
    NB_PRIORITY_NORMAL,
    NB_PRIORITY_HIGH,     // within two or three frames
    NB_PRIORITY_CRITICAL, // this frame
    NB_PRIORITY_COUNT,
} nb_priority;

// From the first frame-bound task on, the scheduler keeps workers free for frames: at most
// nb_scheduler_desc.floating_worker_count_max of them run background work at once. Background is floating work that no
// thread waits for. The ceiling does not apply to a task that was given to nb_task_wait, to a group whose nb_group_end
// has begun, to nb_parallel_for, to what those depend on, or to any task below one of them. So tasks that wait for each
// other by means of their own need a thread that waits for all of them, or a ceiling as high as their number.
typedef enum nb_lifetime {
    NB_LIFETIME_DEFAULT = 0, // FRAME for a Critical task with a fence whose frame is open, else FLOATING
    NB_LIFETIME_FLOATING,    // may run across frames; background work while no thread waits for it
    NB_LIFETIME_FRAME,       // the fence waits for it; inside a frame-bound task: that task's frame where none is given
    NB_LIFETIME_COUNT,
} nb_lifetime;

// What a running task is told; valid until its function returns.
typedef struct nb_task_context {
    nb_scheduler *scheduler;
    nb_task task;          // its handle; null where the submit asked for none
    nb_token *token;       // of the task; NULL = none
    nb_fence *fence;       // as submitted, or of the frame-bound task that submitted it; NULL = none
    nb_fence_frame frame;  // the frame it was submitted in, also of a floating task; null without a fence
    uint32_t thread_index; // 0 = the coordinator, 1.. the workers, then attached threads
    nb_priority priority;
    nb_label label;
    void *lane;       // private
    nb_result result; // private: nb_task_set_result
} nb_task_context;

// What became of a task, told by nb_scheduler_drain.
typedef struct nb_task_result {
    nb_task task; // its handle, which finds nothing any more
    nb_label label;
    nb_result status;          // NB_OK, NB_CANCELLED (it never ran), or what nb_task_set_result was given
    void *argument;            // the task's copy, with whatever it wrote into it; valid during the call
    nb_fence_frame dispatched; // the frame it was submitted in; null without a fence
    nb_fence_frame completed;  // the one it ended in
    bool is_stale;             // more than desc.stale_frame_count frames lie between the two
} nb_task_result;

// What a task left in its argument, in on_complete: NB_RESULT_AS(mesh_job, result)->triangle_count.
#define NB_RESULT_AS(type, result) ((type *)(result)->argument)

typedef struct nb_task_desc {
    void (*run)(nb_task_context *context, void *argument); // argument: the copy, 16-byte aligned
    const void *argument;                                  // copied at submit; NULL = nothing
    size_t argument_size_bytes;                            // up to NB_TASK_ARGUMENT_SIZE_MAX
    nb_label label;                                        // for reports and traces
    nb_priority priority;
    nb_lifetime lifetime;
    nb_fence *fence;      // whose frame it belongs to; kept by the caller while the task is alive
    nb_fence_frame frame; // null = the fence's current one
    nb_token *token;      // once cancelled the task never starts, and ends when a thread comes to it; held until then
    nb_group group;       // null = none
    uint32_t pin;         // NB_PIN_*
    const nb_task *dependencies; // tasks whose end it waits for, run or cancelled; ended ones are fine
    uint32_t dependency_count;
    // Called by nb_scheduler_drain after the end, whatever the end was; NULL = nobody is told. The task's slot is kept
    // until then, so a result is never dropped. An engine drains by itself: see nb_engine_scheduler.
    void (*on_complete)(void *user, const nb_task_result *result);
    void *user;
    uint32_t stale_frame_count; // frames after which its result is stale; 0 = never
    bool runs_inline;           // where there is no room: run it in the submit instead of returning NB_FULL
} nb_task_desc;

// Work on the indices 0 to count - 1, in ranges.
typedef struct nb_parallel_desc {
    void (*run)(nb_task_context *context, void *user, uint64_t begin, uint64_t end); // end is not included
    void *user;
    uint64_t count;
    uint64_t grain; // indices in each call of run, the last one perhaps less; 0 = as large as keeps all threads busy
    nb_label label;
    nb_priority priority;
    nb_lifetime lifetime;
    nb_fence *fence;
    nb_fence_frame frame;
    nb_token *token; // once it is cancelled, no further range begins
} nb_parallel_desc;

// What nb_parallel_for did.
typedef struct nb_parallel_report {
    uint64_t done_count;   // indices in ranges whose run has returned; all of them on NB_OK
    uint64_t call_count;   // calls of run
    uint32_t thread_count; // threads that made them
} nb_parallel_report;

// Blocks that nb_parallel_reduce divides the indices into, whatever the number of threads: the order of merging, and so
// the result, depends on nothing else. Enough to keep 16 threads busy to the end.
#define NB_REDUCE_BLOCK_COUNT 64

// Largest value that nb_parallel_reduce keeps by itself; larger ones need desc.values.
#define NB_REDUCE_VALUE_SIZE_MAX 64

typedef struct nb_reduce_desc {
    // Adds the indices begin to end - 1 to *value.
    void (*run)(nb_task_context *context, void *user, uint64_t begin, uint64_t end, void *value);
    void (*merge)(void *user, void *value, const void *later); // adds what a later block gave
    void *user;
    uint64_t count;
    const void *initial;     // what each block's value starts from; the sum of nothing
    size_t value_size_bytes; // of a value; plain data
    void *values;            // room for NB_REDUCE_BLOCK_COUNT values; NULL up to NB_REDUCE_VALUE_SIZE_MAX
    nb_label label;
    nb_priority priority;
    nb_token *token;
} nb_reduce_desc;

typedef struct nb_scheduler_desc {
    uint32_t worker_count; // 0 = usable cores beside the coordinator, at least 1; NB_WORKER_COUNT_NONE = none
    // Workers that run background work at once; see nb_lifetime. 0 = all but one (a single worker runs it too); as many
    // as worker_count, or more = no ceiling. nb_scheduler_desc_default leaves it 0, for it follows worker_count.
    uint32_t floating_worker_count_max;
    uint32_t task_count_max;
    uint32_t group_count_max;
    uint32_t dependency_count_max;
    size_t stack_size_bytes;  // of a worker; default 2 MiB
    const uint64_t *affinity; // per worker a mask of CPUs; NULL = anywhere, off the CPU of the thread that wakes it
    bool is_unplaced;         // leave placement to the OS; for comparison
    nb_thread_arenas *arenas; // memory of frame-bound tasks: see nb_task_arena; borrowed. NULL = the scheduler's own
    void (*on_start)(void *user, uint32_t worker_index); // in each worker, before its first task
    void (*on_stop)(void *user, uint32_t worker_index);  // in each worker, after its last
    void *user;
    // A task with a token that goes longer without nb_task_should_stop is reported, the first time for its label; 1 ms
    // suits most. 0 = none is.
    uint64_t check_interval_max_ns;
    nb_labels *labels; // of the labels of its tasks, for the log; borrowed; NULL = numbers
    nb_hooks hooks;
} nb_scheduler_desc;

typedef struct nb_thread_stats {
    uint64_t run_count;     // tasks run
    uint64_t steal_count;   // of them, taken from another thread's queues
    uint64_t help_count;    // of them, run inside a wait or nb_scheduler_help
    uint64_t overrun_count; // waits that a helped task kept past their deadline
    uint64_t park_count;    // times it slept for want of work
    uint64_t busy_ns;       // between finding work and running out of it
    uint64_t idle_ns;       // else; both 0 for threads that are not workers
    uint64_t queued_count;  // entries in its queues now, dead ones included
} nb_thread_stats;

// How long tasks with a token go without asking nb_task_should_stop: from the start to the first question, from one to
// the next, from the last to the end. Of one task in eight; of the others between their questions.
typedef struct nb_check_stats {
    nb_label label;
    uint64_t interval_count;  // such times measured
    uint64_t interval_max_ns; // the longest
    uint64_t late_count;      // those over desc.check_interval_max_ns
} nb_check_stats;

typedef struct nb_scheduler_stats {
    uint32_t worker_count;
    uint32_t thread_count; // with coordinator and attached threads
    uint64_t submit_count; // accepted; = run + cancelled + alive
    uint64_t run_count;    // ended after running
    uint64_t cancel_count; // ended without running
    uint64_t refuse_count; // submits that returned an error, NB_FULL or NB_CLOSED
    uint64_t full_count;   // of them NB_FULL
    uint64_t inline_count; // run in the submit, for want of room
    uint64_t alive_count;  // accepted and not ended
    uint64_t held_count;   // of them, held back by the budget
    uint64_t result_count; // results told
    uint64_t stale_count;  // of them, stale
    uint64_t wake_count;   // workers woken by a submit
    uint64_t poke_count;   // times waiting threads were made to look again
} nb_scheduler_stats;

NB_EXTERN_C_BEGIN

// A desc with every default spelled out; worker_count is that of this machine.
// Thread: any. Owner: the caller gets a value. Fails: never.
NB_API nb_scheduler_desc nb_scheduler_desc_default(void);

// Creates a scheduler and starts its workers. The calling thread becomes its coordinator, thread 0. desc may be NULL.
// Thread: any. Owner: the caller, until nb_scheduler_destroy. Fails: NB_ERR_MEMORY, NB_ERR_OS (a thread could not be
// started), NB_ERR_RANGE, NB_ERR_MISUSE.
NB_API nb_result nb_scheduler_create(const nb_scheduler_desc *desc, nb_scheduler **out);

// Stops the scheduler, waits for running tasks, ends the workers, tells the results that are left and frees everything.
// Queued tasks end as cancelled. NULL is fine.
// Thread: the coordinator, outside tasks, with no other thread inside a call. Owner: the scheduler is gone, groups and
// handles with it. Fails: NB_ERR_THREAD, NB_BUSY (threads are attached); nothing is done then.
NB_API nb_result nb_scheduler_destroy(nb_scheduler *scheduler);

// Refuses new tasks from now on and cancels those that have not started; running ones go on, nb_task_should_stop is
// true in them. May be called again.
// Thread: any. Owner: unchanged. Fails: NB_ERR_MISUSE.
NB_API nb_result nb_scheduler_stop(nb_scheduler *scheduler);

// Gives the calling thread queues of its own, for threads that submit or wait much. Others may submit and wait too,
// through queues they share.
// Thread: any, once. Owner: the thread, until nb_scheduler_detach. Fails: NB_FULL (NB_SCHEDULER_THREAD_COUNT_MAX),
// NB_ERR_MISUSE (attached already), NB_ERR_MEMORY.
NB_API nb_result nb_scheduler_attach(nb_scheduler *scheduler);

// Ends what nb_scheduler_attach began. Tasks in the thread's queues are run by others.
// Thread: an attached one, outside tasks. Owner: unchanged. Fails: NB_ERR_THREAD, NB_ERR_MISUSE.
NB_API nb_result nb_scheduler_detach(nb_scheduler *scheduler);

// Queues a task; *task (may be NULL) is its handle. The group, where given, must not be over.
// Thread: any. Owner: the argument is copied. Fails: NB_FULL (no room; nothing was queued), NB_CANCELLED (the token is;
// nothing was queued), NB_CLOSED (stopped, or the frame or group is over), NB_ERR_STALE, NB_ERR_RANGE, NB_ERR_MISUSE.
NB_API nb_result nb_task_submit(nb_scheduler *scheduler, const nb_task_desc *desc, nb_task *task);

// Runs a task here and now, without a queue; in all else it is as if it had been submitted. The last of the parts into
// which a task divides its work, before it waits for the others.
// Thread: any. Owner: the argument is copied. Fails: as nb_task_submit, and nothing was run; NB_ERR_MISUSE with a pin
// or dependencies. What the task sets with nb_task_set_result is told by its group.
NB_API nb_result nb_task_run(nb_scheduler *scheduler, const nb_task_desc *desc);

// True once the task has ended, whether it ran or was cancelled.
// Thread: any. Owner: unchanged. Fails: true for null and stale handles.
NB_API bool nb_task_is_complete(const nb_scheduler *scheduler, nb_task task);

// Waits for a task: runs it here if it is still queued, else helps with what it started, else sleeps. deadline_ns is
// absolute, 0 only looks. A handle whose task has ended is fine.
// Thread: any. Owner: unchanged. Fails: NB_TIMEOUT, NB_ERR_DEADLOCK (it cannot end before the calling task),
// NB_ERR_MISUSE.
NB_API nb_result nb_task_wait(nb_scheduler *scheduler, nb_task task, uint64_t deadline_ns);

// Runs a queued task here and now.
// Thread: any. Owner: unchanged. Fails: NB_BUSY (it is running, or waits for others), NB_EMPTY (it has ended), NB_FULL
// (the thread is not attached, and there are too many), NB_ERR_MISUSE.
NB_API nb_result nb_task_claim(nb_scheduler *scheduler, nb_task task);

// Gives a queued task a higher priority.
// Thread: any. Owner: unchanged. Fails: NB_BUSY (it is running), NB_EMPTY (it has ended), NB_ERR_RANGE, NB_ERR_MISUSE.
NB_API nb_result nb_task_promote(nb_scheduler *scheduler, nb_task task, nb_priority priority);

// Ends a queued task without running it.
// Thread: any. Owner: unchanged. Fails: NB_BUSY (it is running), NB_EMPTY (it has ended), NB_ERR_MISUSE.
NB_API nb_result nb_task_cancel(nb_scheduler *scheduler, nb_task task);

// Makes a task that has not started wait for the end of another. A task that has ended is nothing to wait for. Whoever
// waits for the task helps with what it depends on.
// Thread: any. Owner: unchanged. Fails: NB_BUSY (the task runs), NB_EMPTY (it has ended), NB_FULL
// (dependency_count_max; nothing is changed), NB_ERR_DEADLOCK (`on` waits for the task already, or is it).
NB_API nb_result nb_task_depend(nb_scheduler *scheduler, nb_task task, nb_task on);

// Inside a task: whether it should end early, because its token is cancelled or the scheduler stops. Ask every few
// hundred microseconds of work.
// Thread: the one that runs the task. Owner: unchanged. Fails: false for NULL.
NB_API bool nb_task_should_stop(nb_task_context *context);

// Inside a task: memory that needs no freeing. In a frame-bound task, where the fence has the arenas of desc.arenas, or
// is that of an engine which runs on this scheduler, it lives until the frame has ended and all its work is back, and
// until on_complete has returned. In any other task it lives until the task returns, also in one that the frame does
// not wait for because its label is in quarantine.
// Thread: the one that runs the task. Owner: the scheduler; reset and deinit are not the task's. Fails: NULL for NULL
// and when memory runs out.
NB_API nb_arena *nb_task_arena(nb_task_context *context);

// Inside a task: what the end of its group returns instead of NB_OK, a failure or NB_CANCELLED. The first one stays.
// Thread: the one that runs the task. Owner: unchanged. Fails: NB_ERR_RANGE, NB_ERR_MISUSE.
NB_API nb_result nb_task_set_result(nb_task_context *context, nb_result result);

// Opens a group; inside a task it lies below that task's group, and whoever waits for that one helps with this too.
// Thread: any. Owner: the calling thread until its nb_group_end; what a task opens, that task ends. Fails: NB_FULL,
// NB_ERR_MISUSE.
NB_API nb_result nb_group_begin(nb_scheduler *scheduler, nb_group *group);

// Waits for everything in the group and ends it. On NB_TIMEOUT the group stays, and is to be ended again. Tasks that
// run in it may add more until it is over.
// Thread: any, one at a time for a group. Owner: the group is gone on NB_OK and NB_CANCELLED. Fails: NB_TIMEOUT,
// NB_CANCELLED (all have ended, and some never ran), the first result a task set, NB_ERR_DEADLOCK (called from a task
// that belongs to it), NB_ERR_STALE, NB_ERR_MISUSE.
NB_API nb_result nb_group_end(nb_scheduler *scheduler, nb_group group, uint64_t deadline_ns);

// Tasks of the group that have not ended, at most; a moment old.
// Thread: any. Owner: unchanged. Fails: 0 for null and stale groups.
NB_API uint32_t nb_group_pending_count(const nb_scheduler *scheduler, nb_group group);

// Runs desc->run over all indices on every thread that is free, the calling one included, and returns when it is done.
// A range is divided further only when a thread asks for more. Where there is no room for tasks, the calling thread
// does it alone. *report may be NULL.
// Thread: any. Owner: desc and what it points to are used until the return. Fails: NB_CANCELLED (by the token or a
// stop; *report says how much was done), the first result a range set with nb_task_set_result (no further range begins
// then), NB_FULL (as nb_task_claim), NB_ERR_MISUSE.
NB_API nb_result nb_parallel_for(nb_scheduler *scheduler, const nb_parallel_desc *desc, nb_parallel_report *report);

// Adds up a value over all indices; for one desc the result is the same to the bit with any number of threads. *value
// is written on NB_OK.
// Thread: any. Owner: desc and what it points to are used until the return. Fails: as nb_parallel_for; NB_ERR_RANGE
// (value_size_bytes needs desc.values).
NB_API nb_result nb_parallel_reduce(nb_scheduler *scheduler, const nb_reduce_desc *desc, void *value);

// nb_fence_wait, helping with that frame's tasks.
// Thread: as nb_fence_wait. Owner: unchanged. Fails: as nb_fence_wait; NB_ERR_DEADLOCK from a task of that frame.
NB_API nb_result nb_scheduler_frame_wait(nb_scheduler *scheduler, nb_fence *fence, nb_fence_frame frame,
                                         uint64_t deadline_ns, nb_fence_report *report);

// Runs queued tasks, whatever they are, until there are none or budget_ns has passed (0 = one task); one whose token is
// cancelled is ended instead. *run_count says how many of both, and may be NULL.
// Thread: any. Owner: unchanged. Fails: NB_EMPTY (there was nothing to run), NB_FULL (as nb_task_claim), NB_ERR_MISUSE.
NB_API nb_result nb_scheduler_help(nb_scheduler *scheduler, uint64_t budget_ns, uint64_t *run_count);

// Calls on_complete for tasks that have ended; of those that are there, in the order in which each thread submitted
// them, at most count_max (0 = all). After a frame's wait every result of that frame is there.
// Thread: any, one at a time. Owner: unchanged. Fails: NB_EMPTY (there are none), NB_BUSY (another thread is at it, or
// the call comes from on_complete), NB_ERR_MISUSE.
NB_API nb_result nb_scheduler_drain(nb_scheduler *scheduler, uint64_t count_max, uint64_t *count);

// Limits the time that the coordinator spends on submitting until nb_scheduler_budget_close: once budget_ns (0 =
// NB_SUBMIT_BUDGET_NS_DEFAULT) has gone into nb_task_submit outside tasks, further tasks are accepted and held back, in
// their order, except Critical ones. The next open lets them go first, within its own budget; whoever waits for one,
// for its group or for its frame lets it go at once. Called at the beginning of a frame; a second open is a new frame.
// Thread: the coordinator. Owner: unchanged. Fails: NB_ERR_THREAD, NB_ERR_MISUSE.
NB_API nb_result nb_scheduler_budget_open(nb_scheduler *scheduler, uint64_t budget_ns);

// Ends the limit; what is held back stays so until the next open.
// Thread: the coordinator. Owner: unchanged. Fails: NB_ERR_THREAD, NB_ERR_MISUSE.
NB_API nb_result nb_scheduler_budget_close(nb_scheduler *scheduler);

// Says that work comes soon: sleeping workers wake, and look for it without sleeping for spin_ns (at most 1 ms). Called
// 80 to 100 us ahead of a parallel phase it saves that phase the time of waking.
// Thread: any. Owner: unchanged. Fails: NB_ERR_RANGE, NB_ERR_MISUSE.
NB_API nb_result nb_scheduler_prewake(nb_scheduler *scheduler, uint64_t spin_ns);

// The table of desc.labels. Intern the labels of tasks there.
// Thread: any. Owner: as desc.labels. Fails: NULL for NULL, and where desc gave none.
NB_API nb_labels *nb_scheduler_labels(const nb_scheduler *scheduler);

// The scheduler's numbers, a moment old.
// Thread: any. Owner: the caller gets a value. Fails: zeros for NULL.
NB_API nb_scheduler_stats nb_scheduler_stats_get(const nb_scheduler *scheduler);

// Those of one thread.
// Thread: any. Owner: the caller gets a value. Fails: zeros for NULL and for a thread that is not there.
NB_API nb_thread_stats nb_scheduler_thread_stats_get(const nb_scheduler *scheduler, uint32_t thread_index);

// Which tasks would be slow to stop: a row for each label, up to count_max, in the order in which they first ran.
// Returns how many labels there are. stats may be NULL.
// Thread: any. Owner: unchanged. Fails: 0 for NULL.
NB_API uint32_t nb_scheduler_check_stats_get(const nb_scheduler *scheduler, nb_check_stats *stats, uint32_t count_max);

NB_EXTERN_C_END
