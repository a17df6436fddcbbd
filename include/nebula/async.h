// SPDX-License-Identifier: MIT
#pragma once

// Work that spans many frames: a job is a function that is resumed step by step on the scheduler's threads, may block
// on threads of its own kind for files and sockets, and hands its result back to the frame: prepared by `commit` within
// a time budget, made visible by `publish` in a later frame. The one rule: for every accepted job exactly one of
// publish and discard is called, on the thread that polls, whatever became of the job. What a step needs after a yield
// belongs into its state: locals are lost.
//
//     static nb_async_status generate(nb_async_call *call, void *state) {
//         int *layer = (int *)state;
//         NB_ASYNC_BEGIN(call);
//         for (*layer = 0; *layer < 32; ++*layer) {
//             NB_ASYNC_YIELD(call); // ends here once cancelled
//         }
//         NB_ASYNC_END(call);
//     }
//     int first = 0;
//     nb_async_job_desc desc = {.step = generate, .state = &first, .state_size_bytes = sizeof first};
//     if (nb_async_submit(async, &desc, NULL) != NB_OK) return 1;
//     nb_async_frame frame = {.frame_index = 1};
//     nb_async_publish(async, &frame); // at the start of each frame
//     nb_async_poll(async, &frame);    // at its end

#include "nebula/clock.h"
#include "nebula/hooks.h"
#include "nebula/label.h"
#include "nebula/tasks.h"
#include "nebula/token.h"
#include "nebula/types.h"

// Jobs alive at once where the desc gives none: several times what is visible of a streamed world's edge.
#define NB_ASYNC_JOB_COUNT_DEFAULT 1024u
#define NB_ASYNC_JOB_COUNT_MAX (1u << 20)

// Bytes of a job's state where the desc gives none; more goes behind a pointer.
#define NB_ASYNC_STATE_SIZE_DEFAULT ((size_t)256)
#define NB_ASYNC_STATE_SIZE_MAX ((size_t)1 << 16)

// Threads for blocking calls where the desc gives none: one may hang on a slow disk while the other goes on.
#define NB_ASYNC_IO_THREAD_COUNT_DEFAULT 2u
#define NB_ASYNC_IO_THREAD_COUNT_MAX 16u

// Time for commits in one poll where the desc gives none: together half of a frame at 60 a second.
#define NB_ASYNC_BUDGET_GENERATION_NS_DEFAULT ((uint64_t)4000000)
#define NB_ASYNC_BUDGET_MESHING_NS_DEFAULT ((uint64_t)3000000)
#define NB_ASYNC_BUDGET_OTHER_NS_DEFAULT ((uint64_t)2000000)

// How much more time there is while nothing is visible, such as behind a loading screen.
#define NB_ASYNC_BLIND_FACTOR 4u

// How long a poll runs queued tasks itself where the scheduler has no workers.
#define NB_ASYNC_HELP_NS ((uint64_t)2000000)

// Jobs of one engine. Opaque.
typedef struct nb_async nb_async;

// One job. Zero is null; a job that has ended is never found again under its old value.
typedef struct nb_async_job {
    uint64_t value; // private: generation and slot
} nb_async_job;

// What a step returns; the macros below do it.
typedef enum nb_async_status {
    NB_ASYNC_STATUS_NONE = 0, // a mistake: the job fails with NB_ERR_MISUSE
    NB_ASYNC_STATUS_DONE,     // its result is ready to be committed
    NB_ASYNC_STATUS_FAILED,   // call->result says why
    NB_ASYNC_STATUS_YIELD,    // resume it when the jobs before it have had their turn
    NB_ASYNC_STATUS_CHECK,    // resume it before other jobs of its priority, but after all that is more urgent
    NB_ASYNC_STATUS_IO,       // resume it after call->io_run, which runs on an io thread
    NB_ASYNC_STATUS_FRAME,    // resume it in the next poll
    NB_ASYNC_STATUS_COUNT,
} nb_async_status;

// Whose time a commit takes.
typedef enum nb_async_class {
    NB_ASYNC_CLASS_DEFAULT = 0, // OTHER
    NB_ASYNC_CLASS_GENERATION,
    NB_ASYNC_CLASS_MESHING,
    NB_ASYNC_CLASS_OTHER,
    NB_ASYNC_CLASS_COUNT,
} nb_async_class;

// Where a job is.
typedef enum nb_async_stage {
    NB_ASYNC_STAGE_NONE = 0, // ended, or never was
    NB_ASYNC_STAGE_QUEUED,   // waits for a thread of the scheduler
    NB_ASYNC_STAGE_RUNNING,  // inside its step, or on its way between two stages
    NB_ASYNC_STAGE_PAUSED,   // waits for the next poll
    NB_ASYNC_STAGE_IO,       // waits for an io thread, or is inside a blocking call
    NB_ASYNC_STAGE_DONE,     // waits to be committed
    NB_ASYNC_STAGE_STAGED,   // committed, waits to be published
    NB_ASYNC_STAGE_ENDING,   // inside its publish or discard
    NB_ASYNC_STAGE_COUNT,
} nb_async_stage;

// A call that may block.
typedef nb_result (*nb_async_io_fn)(void *argument);

// What a running step is told; valid until it returns.
typedef struct nb_async_call {
    nb_async *async;
    nb_async_job job;
    nb_task_context *task; // of the task that resumes it: its scheduler, thread and arena
    nb_token *token;       // as submitted, or that of the nb_async; NULL = none
    void *user;            // as submitted
    uint64_t generation;   // as submitted
    uint64_t frame_index;  // of the newest poll
    uint32_t step;         // where to go on; 0 the first time, afterwards what the step left here
    nb_result result;      // of the last blocking call; with FAILED, what the job fails with
    nb_async_io_fn io_run; // for IO
    void *io_argument;     // lives longer than the step: a part of the state, as a rule
    void *slot;            // private
} nb_async_call;

typedef nb_async_status (*nb_async_step_fn)(nb_async_call *call, void *state);

// A step is written as one function from BEGIN to END; where it is suspended it returns, and goes on at the same place
// when it is resumed. Locals do not live across a suspension, `switch` cannot stand around one, and each stands on a
// line of its own. Once the job is cancelled it is not resumed.
#define NB_ASYNC_BEGIN(call)              \
    switch ((call)->step) {               \
    default: return NB_ASYNC_STATUS_NONE; \
    case 0:

#define NB_ASYNC_SUSPEND(call, status) \
    do {                               \
        (call)->step = __LINE__;       \
        return (status);               \
    case __LINE__:;                    \
    } while (0)

// Lets the jobs of its priority that were queued before it run first, and all work of a higher priority.
#define NB_ASYNC_YIELD(call) NB_ASYNC_SUSPEND(call, NB_ASYNC_STATUS_YIELD)

// Lets what is more urgent run, such as the jobs of a frame; then goes on before other jobs of its priority, so that
// what was begun first is ready first. For a job that is to end: one that checks for ever keeps the others waiting.
#define NB_ASYNC_CHECK(call) NB_ASYNC_SUSPEND(call, NB_ASYNC_STATUS_CHECK)

// Waits for the next poll.
#define NB_ASYNC_FRAME(call) NB_ASYNC_SUSPEND(call, NB_ASYNC_STATUS_FRAME)

// Has an io thread call function(argument); afterwards call->result is what it returned.
#define NB_ASYNC_IO(call, function, argument)       \
    do {                                            \
        (call)->io_run = (function);                \
        (call)->io_argument = (argument);           \
        NB_ASYNC_SUSPEND(call, NB_ASYNC_STATUS_IO); \
    } while (0)

// Ends the job without a result; failure is negative.
#define NB_ASYNC_FAIL(call, failure)   \
    do {                               \
        (call)->result = (failure);    \
        return NB_ASYNC_STATUS_FAILED; \
    } while (0)

#define NB_ASYNC_END(call) \
    }                      \
    (void)(call);          \
    return NB_ASYNC_STATUS_DONE

typedef struct nb_async_desc {
    nb_scheduler *scheduler;       // runs the steps; borrowed, outlives the nb_async; required
    nb_token *token;               // once cancelled, so are all jobs; borrowed; NULL = none
    const nb_labels *labels;       // the names of labels, for the log; borrowed; NULL = numbers
    uint32_t job_count_max;        // jobs alive at once, up to NB_ASYNC_JOB_COUNT_MAX; 0 = 1024
    size_t state_bytes_max;        // of a job's state, up to NB_ASYNC_STATE_SIZE_MAX; 0 = 256
    uint32_t io_thread_count;      // up to 16, started by the first blocking call; 0 = 2
    uint64_t budget_generation_ns; // for commits of that class in one poll; 0 = 4 ms
    uint64_t budget_meshing_ns;    // 0 = 3 ms
    uint64_t budget_other_ns;      // 0 = 2 ms
    nb_clock clock;                // measures the budgets; zero = the machine's
    nb_hooks hooks;
} nb_async_desc;

typedef struct nb_async_job_desc {
    nb_async_step_fn step; // required
    // All on the thread that polls; NULL = nothing to do. host is that of the poll, publish or drain.
    nb_result (*commit)(void *host, void *state); // prepares the result; not NB_OK: it is discarded instead
    void (*publish)(void *host, void *state);     // makes it visible; the job's end
    // The other end. reason: NB_CANCELLED, NB_ERR_STALE (no longer wanted), or what the step, or commit, failed with.
    // It may come after a commit, too.
    void (*discard)(void *host, void *state, nb_result reason);
    // Whether the result still has a place: asked before commit and again before publish. Compares the generation with
    // that of the asset as it is now. NULL = always.
    bool (*is_wanted)(void *user, uint64_t generation, const void *state);
    void *user;
    const void *state; // copied into the job, 64-byte aligned; NULL = zeros
    size_t state_size_bytes;
    uint64_t generation; // of what the result is for
    nb_label label;      // for reports and traces
    nb_priority priority;
    nb_async_class budget_class;
    nb_token *token; // once cancelled the job ends at its next suspension; held until it has ended; NULL = none
} nb_async_job_desc;

// Which frame it is, for nb_async_poll, nb_async_publish and nb_async_drain.
typedef struct nb_async_frame {
    uint64_t frame_index; // told to steps
    void *host;           // handed to commit, publish and discard
    bool is_blind;        // nothing is visible: commits have four times as long
    // For commits of each class in this poll, also where is_blind; 0 = as in the desc.
    uint64_t budgets_ns[NB_ASYNC_CLASS_COUNT];
} nb_async_frame;

// Counters since the creation. Read while others work, they are not one moment of all of them.
typedef struct nb_async_stats {
    uint64_t submit_count;    // accepted; = publish + discard + live
    uint64_t full_count;      // refused because job_count_max jobs were alive
    uint64_t resume_count;    // calls of steps
    uint64_t complete_count;  // steps that came to their end
    uint64_t commit_count;    // results prepared
    uint64_t publish_count;   // results made visible
    uint64_t discard_count;   // = cancel + fail + unwanted
    uint64_t cancel_count;    // discarded because cancelled
    uint64_t fail_count;      // discarded because the step or commit failed
    uint64_t unwanted_count;  // discarded because is_wanted said no
    uint64_t defer_count;     // results left to the next poll for want of time, each time counted
    uint64_t overrun_count;   // times a class took more than its budget in one poll
    uint64_t io_count;        // blocking calls made
    uint64_t stall_count;     // resumptions that found the scheduler full; the next poll tries again
    uint32_t live_count;      // accepted and not ended
    uint32_t live_peak_count; // most at once
} nb_async_stats;

NB_EXTERN_C_BEGIN

// The defaults, spelled out; the scheduler is left for the caller.
// Thread: any. Owner: the caller gets a value. Fails: never.
NB_API nb_async_desc nb_async_desc_default(void);

// The defaults, spelled out; the step is left for the caller.
// Thread: any. Owner: the caller gets a value. Fails: never.
NB_API nb_async_job_desc nb_async_job_desc_default(void);

// Makes room for jobs. Nothing touches the heap afterwards, but for the start of the io threads.
// Thread: any, outside tasks. Owner: the caller, until nb_async_destroy. Fails: NB_ERR_MEMORY, NB_ERR_RANGE,
// NB_ERR_MISUSE, NB_FULL (the scheduler has no group left).
NB_API nb_result nb_async_create(const nb_async_desc *desc, nb_async **out);

// Accepts a job; *job (may be NULL) is its handle. Its step is called from a task of the scheduler; one that is stopped
// runs nothing, and leaves the job to nb_async_drain.
// Thread: any, also inside steps and callbacks. Owner: the state is copied, the token held. Fails: NB_FULL (counted),
// NB_CLOSED (drained, or the caller is the on_detach of a module that was replaced), NB_CANCELLED (its token, or that
// of the nb_async, is), NB_ERR_STALE (the token), NB_ERR_RANGE (the state), NB_ERR_MISUSE; nothing was accepted then,
// and no callback comes.
NB_API nb_result nb_async_submit(nb_async *async, const nb_async_job_desc *desc, nb_async_job *job);

// Cancels a job: NB_OK means that it will be discarded and not published, whatever it is doing. One that is queued ends
// now, one that runs at its next suspension, one inside a blocking call after that; the discard comes with a poll. Work
// that the step itself has started is reached only through a token of the job's own.
// Thread: any, also inside steps and callbacks. Owner: unchanged. Fails: NB_CANCELLED (it was before), NB_EMPTY (it has
// ended, or is being published or discarded), NB_ERR_MISUSE.
NB_API nb_result nb_async_cancel(nb_async *async, nb_async_job job);

// Cancels all jobs; *count (may be NULL) says how many of them were not before.
// Thread: any, also inside steps and callbacks. Owner: unchanged. Fails: NB_ERR_MISUSE.
NB_API nb_result nb_async_cancel_all(nb_async *async, uint32_t *count);

// Inside a step that takes long: whether the job is cancelled. Ask every few hundred microseconds.
// Thread: the one that runs the step. Owner: unchanged. Fails: false for NULL.
NB_API bool nb_async_should_stop(const nb_async_call *call);

// Where a job is, a moment ago.
// Thread: any. Owner: the caller gets a value. Fails: NB_ASYNC_STAGE_NONE for null and ended jobs.
NB_API nb_async_stage nb_async_stage_get(const nb_async *async, nb_async_job job);

// True once the job was published or discarded.
// Thread: any. Owner: unchanged. Fails: true for null and ended jobs.
NB_API bool nb_async_is_done(const nb_async *async, nb_async_job job);

// Commits what has come to its end, highest priority first, then in the order of the submits, each class within its
// budget and at least one of each; discards what was cancelled, has failed or is not wanted; resumes what waits for
// this frame. Where the scheduler has no workers, it first runs queued tasks for NB_ASYNC_HELP_NS. frame may be NULL.
// Thread: the coordinator: one at a time, not from a callback. Owner: unchanged. Fails: NB_ERR_MISUSE (inside a
// callback), NB_ERR_THREAD (another thread is at it).
NB_API nb_result nb_async_poll(nb_async *async, const nb_async_frame *frame);

// Publishes what was committed before, in that order, unless it was cancelled or is not wanted any more. Called at the
// start of the next frame, so that no frame sees a result come in its middle. frame may be NULL.
// Thread: as nb_async_poll. Owner: unchanged. Fails: as nb_async_poll.
NB_API nb_result nb_async_publish(nb_async *async, const nb_async_frame *frame);

// Ends all work: refuses further jobs with NB_CLOSED, cancels those there are, waits until deadline_ns of the machine's
// monotonic clock for steps and blocking calls under way, and discards everything. Nothing is killed: NB_TIMEOUT means
// that the jobs named in the log (NB_ITEM_ASYNC_STUCK) have not stopped; drain again later. frame may be NULL.
// Thread: as nb_async_poll, and outside tasks of this nb_async. Owner: unchanged. Fails: NB_TIMEOUT, NB_ERR_DEADLOCK
// (from a step: all jobs are cancelled, none is discarded), and as nb_async_poll.
NB_API nb_result nb_async_drain(nb_async *async, const nb_async_frame *frame, uint64_t deadline_ns);

// Accepts jobs again after a drain that returned NB_OK, for code that was replaced.
// Thread: as nb_async_poll. Owner: unchanged. Fails: NB_BUSY (jobs are left), NB_FULL (the scheduler has no group
// left), and as nb_async_poll.
NB_API nb_result nb_async_reopen(nb_async *async);

// The counters.
// Thread: any. Owner: the caller gets a value. Fails: zeros for NULL.
NB_API nb_async_stats nb_async_stats_get(const nb_async *async);

// Ends the io threads and frees everything. NULL is fine.
// Thread: one, while no other is inside a call. Owner: the nb_async is gone on NB_OK. Fails: NB_BUSY (jobs are alive:
// drain first).
NB_API nb_result nb_async_destroy(nb_async *async);

NB_EXTERN_C_END
