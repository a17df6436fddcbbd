// SPDX-License-Identifier: MIT
// Loops over all threads. One shared index says what is left; a thread that asks for more takes a share of it, large at
// first and smaller towards the end, so that all finish together and the index is touched a few dozen times, however
// many indices there are. The calling thread takes part; helpers are tasks, and each that finds work left calls two
// more, so that many cores are woken by many.

#include "scheduler.h"

#include <string.h>

// A take is at most this share of what is left, per thread: half of an even division, so that a slow thread can be
// made up for.
#define SHARE_OF_LEFT 2u

// With an automatic grain no take is smaller than this share of all, per thread: the price of 32 takes is nothing
// beside the work, and the last one too short to matter.
#define SHARE_OF_ALL 32u

// Grains in one take at most: a thread that is cancelled or preempted holds no more than so many.
#define TAKE_GRAINS_MAX 64u

typedef struct loop_job {
    nb_atomic_u64 next; // first index not taken
    nb_atomic_u64 done_count, call_count;
    nb_atomic_u32 thread_count;
    nb_atomic_u32 helper_left; // helpers that may still be called
    nb_atomic_u32 result;      // the first that was not NB_OK; ends the loop
    uint32_t share_count;      // threads the division is made for
    uint64_t take_min;
    const nb_parallel_desc *desc;
    nb_group group;
} loop_job;

static void helper_run(nb_task_context *context, void *argument);

static nb_task_desc helper_desc(const loop_job *job, loop_job *const *argument) {
    const nb_parallel_desc *desc = job->desc;
    return (nb_task_desc){.run = helper_run,
                          .argument = argument,
                          .argument_size_bytes = sizeof *argument,
                          .label = desc->label,
                          .priority = desc->priority,
                          .lifetime = desc->lifetime,
                          .fence = desc->fence,
                          .frame = desc->frame,
                          .token = desc->token,
                          .group = job->group};
}

// Calls up to two helpers. Without room for them the loop goes on with who is there.
static void call_helpers(nb_scheduler *scheduler, loop_job *job) {
    for (int i = 0; i < 2; ++i) {
        uint32_t left = nbi_atomic_load_relaxed_u32(&job->helper_left);
        do {
            if (left == 0) return;
        } while (!nbi_atomic_compare_exchange_relaxed_u32(&job->helper_left, &left, left - 1));
        nb_task_desc desc = helper_desc(job, &job);
        if (nb_task_submit(scheduler, &desc, NULL) != NB_OK) return;
    }
}

// How much to take when so much is left.
static uint64_t take_size(const loop_job *job, uint64_t left) {
    uint64_t share = left / (SHARE_OF_LEFT * job->share_count);
    uint64_t grain = job->desc->grain;
    if (grain == 0) return nbi_max_u64(share, job->take_min);
    uint64_t grains = nbi_min_u64(nbi_max_u64(share / grain, 1), TAKE_GRAINS_MAX);
    return grains * grain;
}

// False: there is nothing left.
static bool take(loop_job *job, uint64_t *begin, uint64_t *end) {
    uint64_t count = job->desc->count;
    uint64_t next = nbi_atomic_load_relaxed_u64(&job->next);
    do {
        if (next >= count) return false;
        uint64_t size = nbi_min_u64(take_size(job, count - next), count - next);
        *begin = next;
        *end = next + size;
    } while (!nbi_atomic_compare_exchange_relaxed_u64(&job->next, &next, *end));
    return true;
}

static void set_result(loop_job *job, nb_result result) {
    uint32_t none = (uint32_t)NB_OK;
    nbi_atomic_compare_exchange_relaxed_u32(&job->result, &none, (uint32_t)result);
}

// Runs one taken range, in grains. False: the loop is to end.
static bool run_range(nb_task_context *context, loop_job *job, uint64_t begin, uint64_t end, uint64_t *call_count,
                      uint64_t *done_count) {
    const nb_parallel_desc *desc = job->desc;
    uint64_t grain = desc->grain != 0 ? desc->grain : end - begin;
    for (uint64_t at = begin, stop; at < end; at = stop) {
        if (nb_task_should_stop(context)) {
            set_result(job, NB_CANCELLED);
            return false;
        }
        stop = end - at > grain ? at + grain : end;
        nbi_fp_enter(); // left by `work`: the call before this one may have changed the mode
        desc->run(context, desc->user, at, stop);
        *done_count += stop - at;
        ++*call_count;
        if (context->result == NB_OK) continue;
        set_result(job, context->result);
        return false;
    }
    return true;
}

static void work(nb_task_context *context, loop_job *job) {
    uint64_t begin, end, call_count = 0, done_count = 0;
    if (take(job, &begin, &end)) {
        uint32_t fp_mode = nbi_fp_enter();
        call_helpers(context->scheduler, job);
        do {
            if (nbi_atomic_load_relaxed_u32(&job->result) != (uint32_t)NB_OK) break;
        } while (run_range(context, job, begin, end, &call_count, &done_count) && take(job, &begin, &end));
        nbi_fp_leave(fp_mode);
        nbi_atomic_fetch_add_relaxed_u32(&job->thread_count, call_count != 0 ? 1 : 0);
        nbi_atomic_fetch_add_relaxed_u64(&job->call_count, call_count);
        nbi_atomic_fetch_add_relaxed_u64(&job->done_count, done_count);
    }
    // A result is the loop's, which tells it once.
    context->result = NB_OK;
}

static void helper_run(nb_task_context *context, void *argument) { work(context, *(loop_job **)argument); }

// The helpers use the caller's stack, so their end is waited for whatever else is wrong: without helping, where a task
// below depends on one that runs here.
static void end_group(nb_scheduler *scheduler, nb_group handle) {
    while (nb_group_end(scheduler, handle, NB_NEVER_NS) == NB_ERR_DEADLOCK) {
        nbi_target target = nbi_target_group(nbi_group_find(scheduler, handle));
        nbi_wait_outside(scheduler, &target, NB_NEVER_NS);
    }
}

static nb_result run_loop(nbi_lane *lane, loop_job *job) {
    nb_scheduler *scheduler = lane->scheduler;
    const nb_parallel_desc *desc = job->desc;
    uint64_t grain = nbi_max_u64(desc->grain, 1);
    uint64_t helper_max = (desc->count - 1) / grain;
    job->share_count = scheduler->worker_count + 1;
    job->take_min = nbi_max_u64(desc->count / ((uint64_t)SHARE_OF_ALL * job->share_count), 1);
    job->helper_left.value = (uint32_t)nbi_min_u64(scheduler->worker_count, helper_max);
    bool has_group = job->helper_left.value != 0 && nb_group_begin(scheduler, &job->group) == NB_OK;
    if (!has_group) job->helper_left.value = 0;
    nb_task_desc here = helper_desc(job, &job);
    nbi_group *group = has_group ? nbi_group_find(scheduler, job->group) : NULL;
    // The caller waits for its helpers while it takes part.
    if (has_group) nbi_group_stage(scheduler, group, NBI_GROUP_AWAITED);
    bool is_counted = nbi_await_begin(scheduler, lane, NBI_HINT_NONE);
    nbi_task_run_bound(lane, &here, group, &job);
    if (has_group) end_group(scheduler, job->group);
    nbi_await_end(scheduler, lane, is_counted);
    return (nb_result)(int32_t)job->result.value;
}

static bool is_valid(const nb_parallel_desc *desc) {
    return desc != NULL && desc->run != NULL && (uint32_t)desc->priority < NB_PRIORITY_COUNT &&
           (uint32_t)desc->lifetime < NB_LIFETIME_COUNT;
}

nb_result nb_parallel_for(nb_scheduler *scheduler, const nb_parallel_desc *desc, nb_parallel_report *report) {
    if (scheduler == NULL) return NBI_FAIL_NULL("scheduler");
    if (!is_valid(desc)) {
        return NBI_FAIL(&scheduler->desc.hooks, NB_ITEM_TASK_ARGUMENT, NB_ERR_MISUSE,
                        "desc or run is NULL, or priority or lifetime does not exist");
    }
    const nbi_lane *own = nbi_lane_own(scheduler);
    bool is_in_frame = own != NULL && own->running != NULL && own->running->frame_tally != NULL;
    if (desc->lifetime == NB_LIFETIME_FRAME && desc->fence == NULL && !is_in_frame) {
        return NBI_FAIL(&scheduler->desc.hooks, NB_ITEM_TASK_ARGUMENT, NB_ERR_MISUSE,
                        "a frame-bound loop needs a fence");
    }
    if (report != NULL) *report = (nb_parallel_report){0};
    if (desc->count == 0) return NB_OK;
    nbi_lane *lane = nbi_lane_borrow(scheduler);
    if (lane == NULL) return NB_FULL;
    loop_job job = {.desc = desc};
    nb_result result = run_loop(lane, &job);
    nbi_lane_return(lane);
    if (report != NULL) {
        *report = (nb_parallel_report){job.done_count.value, job.call_count.value, job.thread_count.value};
    }
    return result;
}

// --- adding up ---

typedef struct reduce_job {
    const nb_reduce_desc *desc;
    uint64_t block_count;
    unsigned char *values;
} reduce_job;

static uint64_t block_begin(const reduce_job *job, uint64_t block) {
    uint64_t whole = job->desc->count / job->block_count, rest = job->desc->count % job->block_count;
    return block * whole + nbi_min_u64(block, rest);
}

static void reduce_blocks(nb_task_context *context, void *user, uint64_t begin, uint64_t end) {
    const reduce_job *job = user;
    const nb_reduce_desc *desc = job->desc;
    for (uint64_t block = begin; block < end; ++block) {
        void *value = job->values + block * desc->value_size_bytes;
        memcpy(value, desc->initial, desc->value_size_bytes);
        nbi_fp_enter(); // as in run_range
        desc->run(context, desc->user, block_begin(job, block), block_begin(job, block + 1), value);
    }
}

nb_result nb_parallel_reduce(nb_scheduler *scheduler, const nb_reduce_desc *desc, void *value) {
    if (scheduler == NULL) return NBI_FAIL_NULL("scheduler");
    bool is_whole = desc != NULL && value != NULL && desc->run != NULL && desc->merge != NULL && desc->initial != NULL;
    if (!is_whole || desc->value_size_bytes == 0) {
        return NBI_FAIL(&scheduler->desc.hooks, NB_ITEM_TASK_ARGUMENT, NB_ERR_MISUSE,
                        "value, desc, or one of run, merge, initial and value_size_bytes is missing");
    }
    if (desc->values == NULL && desc->value_size_bytes > NB_REDUCE_VALUE_SIZE_MAX) {
        return NBI_FAIL(&scheduler->desc.hooks, NB_ITEM_TASK_ARGUMENT, NB_ERR_RANGE,
                        "values of %zu bytes need desc.values", desc->value_size_bytes);
    }
    _Alignas(64) unsigned char own[NB_REDUCE_BLOCK_COUNT * NB_REDUCE_VALUE_SIZE_MAX];
    reduce_job job = {.desc = desc,
                      .block_count = nbi_max_u64(nbi_min_u64(desc->count, NB_REDUCE_BLOCK_COUNT), 1),
                      .values = desc->values != NULL ? desc->values : own};
    nb_parallel_desc loop = {.run = reduce_blocks,
                             .user = &job,
                             .count = job.block_count,
                             .grain = 1,
                             .label = desc->label,
                             .priority = desc->priority,
                             .token = desc->token};
    nb_result result = nb_parallel_for(scheduler, &loop, NULL);
    if (result != NB_OK) return result;
    memcpy(value, job.values, desc->value_size_bytes);
    uint32_t fp_mode = nbi_fp_enter();
    for (uint64_t block = 1; block < job.block_count; ++block) {
        desc->merge(desc->user, value, job.values + block * desc->value_size_bytes);
    }
    nbi_fp_leave(fp_mode);
    return NB_OK;
}
