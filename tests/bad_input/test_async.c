// SPDX-License-Identifier: MIT
// nebula/async.h: job systems and jobs that are none, bad descs, calls from the wrong place.

#include "bad_input/bad_input.h"

#include "nebula/async.h"

static nb_async_status step(nb_async_call *call, void *state) {
    (void)call;
    (void)state;
    return NB_ASYNC_STATUS_DONE;
}

static nb_scheduler *make_scheduler(void) {
    nb_scheduler *scheduler = NULL;
    nb_scheduler_desc desc = {.worker_count = NB_WORKER_COUNT_NONE, .task_count_max = 64, .hooks = bad_hooks(NULL)};
    assert_int_equal(nb_scheduler_create(&desc, &scheduler), NB_OK);
    return scheduler;
}

static nb_async *make_async(nb_scheduler *scheduler) {
    nb_async *async = NULL;
    nb_async_desc desc = {.scheduler = scheduler, .job_count_max = 2, .state_bytes_max = 16, .hooks = bad_hooks(NULL)};
    accepted(NB_OK, nb_async_create(&desc, &async));
    return async;
}

TEST(creation_refuses_a_bad_desc) {
    nb_scheduler *scheduler = make_scheduler();
    nb_async *async = UNTOUCHED(nb_async);
    nb_async_desc desc = {.scheduler = scheduler, .hooks = bad_hooks(NULL)};
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_async_create(NULL, &async));
    refused(NB_ERR_MISUSE, NB_ITEM_ASYNC_ARGUMENT, nb_async_create(&desc, NULL));
    desc.scheduler = NULL;
    refused(NB_ERR_MISUSE, NB_ITEM_ASYNC_ARGUMENT, nb_async_create(&desc, &async));
    desc.scheduler = scheduler;
    desc.job_count_max = NB_ASYNC_JOB_COUNT_MAX + 1;
    refused(NB_ERR_RANGE, NB_ITEM_ASYNC_ARGUMENT, nb_async_create(&desc, &async));
    desc.job_count_max = 0;
    desc.state_bytes_max = SIZE_MAX;
    refused(NB_ERR_RANGE, NB_ITEM_ASYNC_ARGUMENT, nb_async_create(&desc, &async));
    desc.state_bytes_max = 0;
    desc.io_thread_count = NB_ASYNC_IO_THREAD_COUNT_MAX + 1;
    refused(NB_ERR_RANGE, NB_ITEM_ASYNC_ARGUMENT, nb_async_create(&desc, &async));
    assert_ptr_equal(async, UNTOUCHED(nb_async));
    accepted(NB_OK, nb_scheduler_destroy(scheduler));
}

TEST(submit_refuses_a_bad_job) {
    nb_scheduler *scheduler = make_scheduler();
    nb_async *async = make_async(scheduler);
    unsigned char bytes[17] = {0};
    nb_async_job job;
    memset(&job, 0x5A, sizeof job);
    nb_async_job_desc desc = {.step = step};
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_async_submit(NULL, &desc, &job));
    refused(NB_ERR_MISUSE, NB_ITEM_ASYNC_ARGUMENT, nb_async_submit(async, NULL, &job));
    desc.step = NULL;
    refused(NB_ERR_MISUSE, NB_ITEM_ASYNC_ARGUMENT, nb_async_submit(async, &desc, &job));
    desc = (nb_async_job_desc){.step = step, .state_size_bytes = 8};
    refused(NB_ERR_MISUSE, NB_ITEM_ASYNC_ARGUMENT, nb_async_submit(async, &desc, &job));
    desc = (nb_async_job_desc){.step = step, .state = bytes, .state_size_bytes = sizeof bytes};
    refused(NB_ERR_RANGE, NB_ITEM_ASYNC_ARGUMENT, nb_async_submit(async, &desc, &job));
    desc = (nb_async_job_desc){.step = step, .priority = NB_PRIORITY_COUNT};
    refused(NB_ERR_MISUSE, NB_ITEM_ASYNC_ARGUMENT, nb_async_submit(async, &desc, &job));
    desc = (nb_async_job_desc){.step = step, .budget_class = (nb_async_class)-1};
    refused(NB_ERR_MISUSE, NB_ITEM_ASYNC_ARGUMENT, nb_async_submit(async, &desc, &job));
    assert_untouched(job, 0x5A);
    assert_int_equal(nb_async_stats_get(async).submit_count, 0);
    accepted(NB_OK, nb_async_destroy(async));
    accepted(NB_OK, nb_scheduler_destroy(scheduler));
}

TEST(job_functions_refuse_null_and_ended_jobs) {
    nb_scheduler *scheduler = make_scheduler();
    nb_async *async = make_async(scheduler);
    static const uint64_t values[] = {0, 1, 3, UINT64_MAX, (uint64_t)1 << 32 | 1, (uint64_t)7 << 32 | 2};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; ++i) {
        nb_async_job job = {values[i]};
        accepted(NB_EMPTY, nb_async_cancel(async, job));
        accepted(NB_ASYNC_STAGE_NONE, nb_async_stage_get(async, job));
        accepted(true, nb_async_is_done(async, job));
    }
    nb_async_job null = {0};
    uint32_t count = 0x5A;
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_async_cancel(NULL, null));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_async_cancel_all(NULL, &count));
    assert_int_equal(count, 0x5A);
    refused_default(NB_ASYNC_STAGE_NONE, NB_ITEM_BASE_NULL, nb_async_stage_get(NULL, null));
    refused_default(true, NB_ITEM_BASE_NULL, nb_async_is_done(NULL, null));
    refused_default(false, NB_ITEM_BASE_NULL, nb_async_should_stop(NULL));
    nb_async_call call = {0};
    refused_default(false, NB_ITEM_BASE_NULL, nb_async_should_stop(&call));
    accepted(NB_OK, nb_async_destroy(async));
    accepted(NB_OK, nb_scheduler_destroy(scheduler));
}

TEST(coordinator_functions_refuse_null) {
    nb_async_frame frame = {0};
    nb_async_stats stats;
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_async_poll(NULL, &frame));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_async_publish(NULL, &frame));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_async_drain(NULL, &frame, 0));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_async_reopen(NULL));
    reported_default(NB_ITEM_BASE_NULL, stats = nb_async_stats_get(NULL));
    assert_int_equal(stats.submit_count, 0);
    accepted(NB_OK, nb_async_destroy(NULL));
    nb_scheduler *scheduler = make_scheduler();
    nb_async *async = make_async(scheduler);
    accepted(NB_OK, nb_async_poll(async, NULL));
    accepted(NB_OK, nb_async_publish(async, NULL));
    accepted(NB_BUSY, nb_async_reopen(async));
    nb_async_job_desc desc = {.step = step};
    accepted(NB_OK, nb_async_submit(async, &desc, NULL));
    refused(NB_BUSY, NB_ITEM_ASYNC_BUSY, nb_async_destroy(async));
    accepted(NB_OK, nb_async_drain(async, NULL, 0));
    accepted(NB_OK, nb_async_destroy(async));
    accepted(NB_OK, nb_scheduler_destroy(scheduler));
}
