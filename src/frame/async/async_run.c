// SPDX-License-Identifier: MIT
// The threads that run jobs: tasks of the scheduler for their steps, io threads for their blocking calls.

#include "async.h"

#include "../../base/trace.h"
#include "../../tasks/host.h"

// --- runners ---

// The argument of a runner.
typedef struct runner {
    nb_async *async;
    uint32_t priority;
} runner;

static void run_one(nb_task_context *context, void *argument);

bool nbi_async_needs_runner(nb_async *async, uint32_t priority) {
    // One whose job was cancelled is still to come, and takes this one instead.
    if (async->runner_count[priority] >= async->ready_count[priority]) return false;
    ++async->runner_count[priority];
    nbi_atomic_fetch_add_seq_cst_u32(&async->submitting_count, 1);
    return true;
}

void nbi_async_run_more(nb_async *async, uint32_t priority) {
    runner argument = {async, priority};
    nb_task_desc desc = {.run = run_one,
                         .argument = &argument,
                         .argument_size_bytes = sizeof argument,
                         .priority = (nb_priority)priority,
                         .lifetime = NB_LIFETIME_FLOATING,
                         .label = {NBI_LABEL_RECORDS},
                         .group = async->group};
    // Of nobody: it runs the oldest job, whosever that is.
    nbi_owner *owner = nbi_owner_enter(NULL);
    nb_result result = nb_task_submit(async->desc.scheduler, &desc, NULL);
    nbi_owner_leave(owner);
    if (result != NB_OK) {
        nbi_lock_acquire(&async->lock);
        --async->runner_count[priority];
        nbi_lock_release(&async->lock);
        nbi_async_count(&async->stall_count);
        nbi_atomic_exchange_seq_cst_u32(&async->has_stalled, 1); // after the count, which nbi_async_catch_up looks at
    }
    // The last that touches the group: nb_async_drain ends it only when it reads 0 here.
    nbi_atomic_fetch_sub_seq_cst_u32(&async->submitting_count, 1);
}

void nbi_async_catch_up(nb_async *async) {
    if (nbi_atomic_load_relaxed_u32(&async->has_stalled) == 0) return;
    nbi_atomic_exchange_seq_cst_u32(&async->has_stalled, 0);
    for (uint32_t priority = NB_PRIORITY_COUNT; priority-- > 0;) {
        bool needs_runner = true;
        while (needs_runner) {
            nbi_lock_acquire(&async->lock);
            needs_runner = !async->is_closed && nbi_async_needs_runner(async, priority);
            nbi_lock_release(&async->lock);
            if (needs_runner) nbi_async_run_more(async, priority);
            if (nbi_atomic_load_relaxed_u32(&async->has_stalled) != 0) return; // full again
        }
    }
}

// --- spans ---

void nbi_async_trace(nb_async *async, nb_trace *trace) {
    async->trace = trace;
    (void)nb_labels_intern(nb_trace_labels(trace), "async job", &async->trace_label);
}

// The ring in which a span of the job has begun; NULL = none. Threads get their rings from the scheduler, and io
// threads with their start.
static nb_trace_thread *span_begin(const nb_async *async, const nbi_async_slot *slot) {
    nb_trace_thread *ring = async->trace != NULL ? nbi_trace_find(async->trace) : NULL;
    nb_trace_begin(ring, slot->desc.label.id != 0 ? slot->desc.label : async->trace_label);
    return ring;
}

// --- steps ---

static void enqueue(nb_async *async, nbi_async_slot *slot, bool is_first) {
    uint32_t priority = (uint32_t)slot->desc.priority;
    bool needs_runner = false;
    nbi_lock_acquire(&async->lock);
    // Under the lock, so that a cancel that finds the job queued also finds it in the queue.
    bool is_queued = nbi_async_state_advance(slot, NBI_ASYNC_READY);
    if (is_queued) {
        if (is_first)
            nbi_async_prepend(async, &async->ready[priority], slot);
        else
            nbi_async_append(async, &async->ready[priority], slot);
        ++async->ready_count[priority];
        needs_runner = nbi_async_needs_runner(async, priority);
    }
    nbi_lock_release(&async->lock);
    if (!is_queued) nbi_async_complete(async, slot, NB_CANCELLED);
    if (needs_runner) nbi_async_run_more(async, priority);
}

void nbi_async_enqueue(nb_async *async, nbi_async_slot *slot) { enqueue(async, slot, false); }

static void pause_job(nb_async *async, nbi_async_slot *slot) {
    if (nbi_async_state_advance(slot, NBI_ASYNC_PAUSED))
        nbi_async_hand_over(async, slot);
    else
        nbi_async_complete(async, slot, NB_CANCELLED);
}

static bool io_start(nb_async *async);

static void enqueue_io(nb_async *async, nbi_async_slot *slot) {
    if (!io_start(async)) {
        slot->result = NB_ERR_OS; // the step is told of it
        nbi_async_enqueue(async, slot);
        return;
    }
    nbi_lock_acquire(&async->lock);
    bool is_queued = nbi_async_state_advance(slot, NBI_ASYNC_IO_READY);
    if (is_queued) nbi_async_append(async, &async->io[slot->desc.priority], slot);
    nbi_lock_release(&async->lock);
    if (!is_queued) {
        nbi_async_complete(async, slot, NB_CANCELLED);
        return;
    }
    // After the append; an io thread that found the queue empty read the event before, and does not sleep.
    nbi_atomic_fetch_add_seq_cst_u32(&async->io_event, 1);
    nbi_unpark(&async->io_event, 1);
}

static void fail_job(nb_async *async, nbi_async_slot *slot, nb_async_status status, nb_result result) {
    bool is_known = status == NB_ASYNC_STATUS_FAILED && result < 0;
    if (!is_known) {
        char number[NBI_LABEL_NUMBER_SIZE];
        nbi_log(&async->desc.hooks, NB_LOG_ERROR, NB_ITEM_ASYNC_STATUS, "nb_async_job_desc.step",
                "async job \"%s\": its step returned status %d with result %s",
                nbi_label_text(async->desc.labels, slot->desc.label, number), (int)status, nb_result_name(result));
    }
    nbi_async_complete(async, slot, is_known ? result : NB_ERR_MISUSE);
}

static nb_async_status call_step(nb_async *async, nbi_async_slot *slot, nb_task_context *context, nb_result *result) {
    uint64_t generation = nbi_atomic_load_relaxed_u64(&slot->word) >> NBI_ASYNC_GENERATION_SHIFT;
    uint64_t link = nbi_async_index(async, slot) + 1;
    nb_async_call call = {
        .async = async,
        .job = {generation << NBI_ASYNC_GENERATION_SHIFT | link},
        .task = context,
        .token = slot->desc.token != NULL ? slot->desc.token : async->desc.token,
        .user = slot->desc.user,
        .generation = slot->desc.generation,
        .frame_index = nbi_atomic_load_relaxed_u64(&async->frame_index),
        .step = slot->step,
        .result = slot->result,
        .slot = slot,
    };
    nbi_async_count(&async->resume_count);
    nb_trace_thread *ring = span_begin(async, slot);
    uint32_t fp_mode = nbi_fp_enter();
    nbi_owner *owner = nbi_async_enter(slot);
    nb_async_status status = slot->desc.step(&call, nbi_async_payload(slot));
    nbi_owner_leave(owner);
    nbi_fp_leave(fp_mode);
    nb_trace_end(ring);
    slot->step = call.step;
    slot->io_run = call.io_run;
    slot->io_argument = call.io_argument;
    *result = call.result;
    return status;
}

static void run_one(nb_task_context *context, void *argument) {
    nb_async *async = ((runner *)argument)->async;
    uint32_t priority = ((runner *)argument)->priority;
    nbi_lock_acquire(&async->lock);
    --async->runner_count[priority];
    nbi_async_slot *slot = nbi_async_take_ready(async, priority);
    nbi_lock_release(&async->lock);
    if (slot == NULL) return; // its job was cancelled
    if (nbi_async_is_stopped(async, slot)) {
        nbi_async_complete(async, slot, NB_CANCELLED);
        return;
    }
    nb_result result = NB_OK;
    nb_async_status status = call_step(async, slot, context, &result);
    if (status == NB_ASYNC_STATUS_IO && slot->io_run == NULL) status = NB_ASYNC_STATUS_NONE;
    switch (status) {
    case NB_ASYNC_STATUS_DONE:
        nbi_async_count(&async->complete_count);
        nbi_async_complete(async, slot, NB_OK);
        break;
    case NB_ASYNC_STATUS_YIELD: nbi_async_enqueue(async, slot); break;
    case NB_ASYNC_STATUS_CHECK: enqueue(async, slot, true); break;
    case NB_ASYNC_STATUS_IO: enqueue_io(async, slot); break;
    case NB_ASYNC_STATUS_FRAME: pause_job(async, slot); break;
    default: fail_job(async, slot, status, result); break;
    }
}

// --- io threads ---

static void run_io(nb_async *async, nbi_async_slot *slot) {
    if (nbi_async_is_stopped(async, slot)) {
        nbi_async_complete(async, slot, NB_CANCELLED);
        return;
    }
    nbi_async_count(&async->io_count);
    nb_trace_thread *ring = span_begin(async, slot);
    uint32_t fp_mode = nbi_fp_enter();
    nbi_owner *owner = nbi_async_enter(slot);
    slot->result = slot->io_run(slot->io_argument);
    nbi_owner_leave(owner);
    nbi_fp_leave(fp_mode);
    nb_trace_end(ring);
    nbi_async_enqueue(async, slot);
}

static void run_io_until_stop(nb_async *async) {
    for (;;) {
        // Before the look: a call that is queued after it changes the event, and the park returns at once.
        uint32_t event = nbi_atomic_load_acquire_u32(&async->io_event);
        nbi_lock_acquire(&async->lock);
        nbi_async_slot *slot = nbi_async_take_io(async);
        nbi_lock_release(&async->lock);
        if (slot != NULL) {
            run_io(async, slot);
            continue;
        }
        if (nbi_atomic_load_acquire_u32(&async->io_is_stopping) != 0) return;
        nbi_park_until(&async->io_event, event, NB_NEVER_NS);
    }
}

void nbi_async_io_main(void *user) {
    nb_async *async = user;
    nb_trace_thread *ring = NULL;
    if (async->trace != NULL) nb_trace_attach(async->trace, "io", &ring);
    run_io_until_stop(async);
    if (ring != NULL) nb_trace_detach(ring);
}

static void start_threads(nb_async *async) {
    nbi_thread_desc desc = {.run = nbi_async_io_main, .user = async, .name = "nebula-io"};
    while (async->io_thread_count < async->desc.io_thread_count) {
        if (nbi_thread_start(&async->io_threads[async->io_thread_count], &desc) != NB_OK) break;
        ++async->io_thread_count;
    }
    if (async->io_thread_count < async->desc.io_thread_count) {
        nbi_log(&async->desc.hooks, NB_LOG_ERROR, NB_ITEM_ASYNC_OS, "nb_async_job_desc.step",
                "only %u of %u io threads could be started", (unsigned)async->io_thread_count,
                (unsigned)async->desc.io_thread_count);
    }
}

// False: there is no thread at all; the next blocking call tries again.
static bool io_start(nb_async *async) {
    if (nbi_atomic_load_acquire_u32(&async->io_is_started) != 0) return true;
    nbi_lock_acquire(&async->io_start_lock);
    bool is_started = nbi_atomic_load_relaxed_u32(&async->io_is_started) != 0;
    if (!is_started) {
        start_threads(async);
        is_started = async->io_thread_count != 0;
        // Read by the acquire load above; the threads themselves are joined by nb_async_destroy.
        nbi_atomic_store_release_u32(&async->io_is_started, is_started ? 1 : 0);
    }
    nbi_lock_release(&async->io_start_lock);
    return is_started;
}

void nbi_async_io_stop(nb_async *async) {
    // Before the event; read by the acquire load in nbi_async_io_main.
    nbi_atomic_exchange_seq_cst_u32(&async->io_is_stopping, 1);
    nbi_atomic_fetch_add_seq_cst_u32(&async->io_event, 1);
    nbi_unpark(&async->io_event, UINT32_MAX);
    for (uint32_t i = 0; i < async->io_thread_count; ++i) nbi_thread_join(&async->io_threads[i]);
}
