// SPDX-License-Identifier: MIT
// nebula/tasks.h: schedulers, tasks and groups that are none, bad descs, calls from the wrong place.

#include "bad_input/bad_input.h"
#include "tasks/tasks_fixture.h"

#include "nebula/tasks.h"

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

static nb_scheduler *scheduler_open(test_heap *heap) {
    nb_scheduler *scheduler = NULL;
    nb_scheduler_desc desc = {
        .worker_count = NB_WORKER_COUNT_NONE, .task_count_max = 64, .group_count_max = 64, .hooks = bad_hooks(heap)};
    accepted(NB_OK, nb_scheduler_create(&desc, &scheduler));
    return scheduler;
}

static void run_flag(nb_task_context *context, void *argument) {
    (void)context;
    bool *flag;
    memcpy(&flag, argument, sizeof flag);
    *flag = true;
}

static void never_run(nb_task_context *context, void *argument) {
    (void)context;
    (void)argument;
    abort();
}

// Nothing that was refused has left a task, and the scheduler still works.
static void scheduler_close(nb_scheduler *scheduler, test_heap *heap) {
    assert_int_equal(nb_scheduler_stats_get(scheduler).alive_count, 0);
    bool has_run = false, *flag = &has_run;
    nb_task_desc desc = {.run = run_flag, .argument = &flag, .argument_size_bytes = sizeof flag};
    accepted(NB_OK, nb_task_submit(scheduler, &desc, NULL));
    accepted(NB_OK, nb_scheduler_help(scheduler, 0, NULL));
    assert_true(has_run);
    accepted(NB_OK, nb_scheduler_destroy(scheduler));
    assert_int_equal(heap->live_count.value, 0);
}

static test_heap heap; // of the case that runs

// --- creating ---

TEST(creation_refuses_a_bad_desc) {
    nb_scheduler *out = UNTOUCHED(nb_scheduler);
    nb_scheduler_desc many_workers = {.worker_count = NB_SCHEDULER_THREAD_COUNT_MAX - 1, .hooks = bad_hooks(&heap)};
    nb_scheduler_desc most_workers = {.worker_count = NB_WORKER_COUNT_NONE - 1, .hooks = bad_hooks(&heap)};
    nb_scheduler_desc many_tasks = {.task_count_max = NB_TASK_COUNT_MAX + 1, .hooks = bad_hooks(&heap)};
    nb_scheduler_desc most_tasks = {.task_count_max = UINT32_MAX, .hooks = bad_hooks(&heap)};
    nb_scheduler_desc most_groups = {.group_count_max = UINT32_MAX, .hooks = bad_hooks(&heap)};
    nb_scheduler_desc fine = {.hooks = bad_hooks(&heap)};
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_scheduler_create(NULL, NULL));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_scheduler_create(&fine, NULL));
    refused(NB_ERR_RANGE, NB_ITEM_TASK_ARGUMENT, nb_scheduler_create(&many_workers, &out));
    refused(NB_ERR_RANGE, NB_ITEM_TASK_ARGUMENT, nb_scheduler_create(&most_workers, &out));
    refused(NB_ERR_RANGE, NB_ITEM_TASK_ARGUMENT, nb_scheduler_create(&many_tasks, &out));
    refused(NB_ERR_RANGE, NB_ITEM_TASK_ARGUMENT, nb_scheduler_create(&most_tasks, &out));
    refused(NB_ERR_RANGE, NB_ITEM_TASK_ARGUMENT, nb_scheduler_create(&most_groups, &out));
    refused_memory(heap, 1, out, nb_scheduler_create(&fine, &out));
    accepted(NB_OK, nb_scheduler_destroy(NULL));
}

// --- NULL ---

TEST(functions_refuse_no_scheduler) {
    nb_task task = {0x5A};
    nb_group group = {0x5A};
    nb_task_desc desc = {.run = never_run};
    nb_fence_report report;
    uint64_t count = 0x5A;
    memset(&report, 0x5A, sizeof report);
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_scheduler_stop(NULL));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_scheduler_attach(NULL));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_scheduler_detach(NULL));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_task_submit(NULL, &desc, &task));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_task_submit(NULL, NULL, NULL));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_task_run(NULL, &desc));
    refused_default(true, NB_ITEM_BASE_NULL, nb_task_is_complete(NULL, task));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_task_wait(NULL, task, NB_NEVER_NS));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_task_claim(NULL, task));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_task_promote(NULL, task, NB_PRIORITY_HIGH));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_task_cancel(NULL, task));
    refused_default(false, NB_ITEM_BASE_NULL, nb_task_should_stop(NULL));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_task_set_result(NULL, NB_OK));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_group_begin(NULL, &group));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_group_end(NULL, group, 0));
    refused_default(0, NB_ITEM_BASE_NULL, nb_group_pending_count(NULL, group));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL,
                    nb_scheduler_frame_wait(NULL, NULL, (nb_fence_frame){1}, NB_NEVER_NS, &report));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_scheduler_help(NULL, NB_NEVER_NS, &count));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_scheduler_prewake(NULL, 1));
    refused_default(0, NB_ITEM_BASE_NULL, nb_scheduler_check_stats_get(NULL, NULL, 0));
    refused_default(NULL, NB_ITEM_BASE_NULL, nb_scheduler_labels(NULL));
    nb_scheduler_stats stats;
    nb_thread_stats thread_stats;
    reported_default(NB_ITEM_BASE_NULL, stats = nb_scheduler_stats_get(NULL));
    reported_default(NB_ITEM_BASE_NULL, thread_stats = nb_scheduler_thread_stats_get(NULL, 0));
    assert_int_equal(stats.submit_count + stats.thread_count, 0);
    assert_int_equal(thread_stats.run_count, 0);
    assert_int_equal(task.value, 0x5A);
    assert_int_equal(group.value, 0x5A);
    assert_int_equal(count, 0x5A);
    assert_untouched(report, 0x5A);
}

// --- submitting ---

TEST(submit_refuses_a_bad_desc) {
    nb_scheduler *scheduler = scheduler_open(&heap);
    nb_task task = {0x5A};
    char argument[NB_TASK_ARGUMENT_SIZE_MAX + 1] = {0};
    nb_task_desc empty = {0};
    nb_task_desc large = {.run = never_run, .argument = argument, .argument_size_bytes = sizeof argument};
    nb_task_desc largest = {.run = never_run, .argument = argument, .argument_size_bytes = SIZE_MAX};
    nb_task_desc missing = {.run = never_run, .argument_size_bytes = 1};
    refused(NB_ERR_MISUSE, NB_ITEM_TASK_ARGUMENT, nb_task_submit(scheduler, NULL, &task));
    refused(NB_ERR_MISUSE, NB_ITEM_TASK_ARGUMENT, nb_task_submit(scheduler, &empty, &task));
    refused(NB_ERR_RANGE, NB_ITEM_TASK_ARGUMENT, nb_task_submit(scheduler, &large, &task));
    refused(NB_ERR_RANGE, NB_ITEM_TASK_ARGUMENT, nb_task_submit(scheduler, &largest, &task));
    refused(NB_ERR_MISUSE, NB_ITEM_TASK_ARGUMENT, nb_task_submit(scheduler, &missing, &task));
    const int values[] = {-1, 99, INT32_MAX, INT32_MIN};
    for (size_t i = 0; i < COUNT_OF(values); ++i) {
        nb_task_desc priority = {.run = never_run, .priority = (nb_priority)values[i]};
        nb_task_desc lifetime = {.run = never_run, .lifetime = (nb_lifetime)values[i]};
        refused(NB_ERR_MISUSE, NB_ITEM_TASK_ARGUMENT, nb_task_submit(scheduler, &priority, &task));
        refused(NB_ERR_MISUSE, NB_ITEM_TASK_ARGUMENT, nb_task_submit(scheduler, &lifetime, &task));
    }
    nb_task_desc no_level = {.run = never_run, .priority = NB_PRIORITY_COUNT};
    nb_task_desc no_lifetime = {.run = never_run, .lifetime = NB_LIFETIME_COUNT};
    nb_task_desc no_fence = {.run = never_run, .lifetime = NB_LIFETIME_FRAME};
    refused(NB_ERR_MISUSE, NB_ITEM_TASK_ARGUMENT, nb_task_submit(scheduler, &no_level, &task));
    refused(NB_ERR_MISUSE, NB_ITEM_TASK_ARGUMENT, nb_task_submit(scheduler, &no_lifetime, &task));
    refused(NB_ERR_MISUSE, NB_ITEM_TASK_ARGUMENT, nb_task_submit(scheduler, &no_fence, &task));
    assert_int_equal(task.value, 0x5A);
    assert_int_equal(nb_scheduler_stats_get(scheduler).submit_count, 0);
    scheduler_close(scheduler, &heap);
}

TEST(submit_refuses_a_group_or_token_that_is_none) {
    nb_scheduler *scheduler = scheduler_open(&heap);
    nb_task task = {0x5A};
    uint64_t memory[64] = {0}; // no token
    nb_task_desc group = {.run = never_run, .group = {UINT64_MAX}};
    nb_task_desc small = {.run = never_run, .group = {1}};
    nb_task_desc token = {.run = never_run, .token = (nb_token *)(void *)memory};
    refused(NB_ERR_STALE, NB_ITEM_TASK_STALE, nb_task_submit(scheduler, &group, &task));
    listen_begin();
    nb_result small_result = nb_task_submit(scheduler, &small, &task);
    nb_result token_result = nb_task_submit(scheduler, &token, &task);
    listen_end();
    assert_true(small_result == NB_ERR_STALE || small_result == NB_CLOSED);
    assert_int_equal(token_result, NB_ERR_STALE);
    if (!is_stderr_shown()) assert_int_equal(bad_heard.default_item, NB_ITEM_TOKEN_STALE);
    assert_int_equal(task.value, 0x5A);
    for (size_t i = 0; i < COUNT_OF(memory); ++i) assert_int_equal(memory[i], 0);
    scheduler_close(scheduler, &heap);
}

// --- handles ---

TEST(null_and_foreign_handles_are_refused) {
    nb_scheduler *scheduler = scheduler_open(&heap);
    static const uint64_t values[] = {
        0, 1, 5, 64, 65, 0x400000, 0x400001, UINT64_MAX - 1, UINT64_MAX, (uint64_t)1 << 63};
    for (size_t i = 0; i < COUNT_OF(values); ++i) {
        nb_task task = {values[i]};
        nb_group group = {values[i]};
        accepted(true, nb_task_is_complete(scheduler, task));
        accepted(NB_OK, nb_task_wait(scheduler, task, NB_NEVER_NS));
        accepted(NB_EMPTY, nb_task_claim(scheduler, task));
        accepted(NB_EMPTY, nb_task_promote(scheduler, task, NB_PRIORITY_HIGH));
        accepted(NB_EMPTY, nb_task_cancel(scheduler, task));
        refused(NB_ERR_STALE, NB_ITEM_TASK_STALE, nb_group_end(scheduler, group, NB_NEVER_NS));
        accepted(0, nb_group_pending_count(scheduler, group));
    }
    refused(NB_ERR_MISUSE, NB_ITEM_TASK_ARGUMENT, nb_group_begin(scheduler, NULL));
    scheduler_close(scheduler, &heap);
}

TEST(stale_handles_are_refused) {
    nb_scheduler *scheduler = scheduler_open(&heap);
    nb_task task = {0};
    nb_group group = {0};
    accepted(NB_OK, nb_task_submit(scheduler, &(nb_task_desc){.run = never_run}, &task));
    accepted(NB_OK, nb_task_cancel(scheduler, task));
    accepted(NB_EMPTY, nb_task_cancel(scheduler, task));
    accepted(NB_EMPTY, nb_task_claim(scheduler, task));
    accepted(NB_EMPTY, nb_task_promote(scheduler, task, NB_PRIORITY_CRITICAL));
    accepted(NB_OK, nb_task_wait(scheduler, task, NB_NEVER_NS));
    accepted(NB_OK, nb_group_begin(scheduler, &group));
    accepted(NB_OK, nb_group_end(scheduler, group, 0));
    for (int i = 0; i < 3; ++i) {
        refused(NB_ERR_STALE, NB_ITEM_TASK_STALE, nb_group_end(scheduler, group, 0));
        accepted(0, nb_group_pending_count(scheduler, group));
    }
    scheduler_close(scheduler, &heap);
}

TEST(promote_refuses_levels_that_are_none) {
    nb_scheduler *scheduler = scheduler_open(&heap);
    nb_task task = {0};
    accepted(NB_OK, nb_task_submit(scheduler, &(nb_task_desc){.run = never_run}, &task));
    const nb_priority levels[] = {NB_PRIORITY_DEFAULT, NB_PRIORITY_COUNT, (nb_priority)-1, (nb_priority)INT32_MAX};
    for (size_t i = 0; i < COUNT_OF(levels); ++i) {
        refused(NB_ERR_RANGE, NB_ITEM_TASK_ARGUMENT, nb_task_promote(scheduler, task, levels[i]));
    }
    accepted(NB_OK, nb_task_cancel(scheduler, task));
    scheduler_close(scheduler, &heap);
}

// --- waiting and helping ---

TEST(waiting_and_helping_at_their_limits) {
    nb_scheduler *scheduler = scheduler_open(&heap);
    nb_task task = {0};
    nb_group group = {0};
    uint64_t count = 0x5A;
    accepted(NB_OK, nb_task_submit(scheduler, &(nb_task_desc){.run = never_run}, &task));
    accepted(NB_TIMEOUT, nb_task_wait(scheduler, task, 0));
    accepted(NB_OK, nb_task_cancel(scheduler, task));
    accepted(NB_OK, nb_group_begin(scheduler, &group));
    accepted(NB_OK, nb_group_end(scheduler, group, 1)); // long past, and there is nothing to wait for
    accepted(NB_EMPTY, nb_scheduler_help(scheduler, UINT64_MAX, &count));
    accepted(NB_EMPTY, nb_scheduler_help(scheduler, UINT64_MAX - 1, &count));
    assert_int_equal(count, 0x5A);
    refused(NB_ERR_RANGE, NB_ITEM_TASK_ARGUMENT, nb_scheduler_prewake(scheduler, NB_SCHEDULER_PREWAKE_NS_MAX + 1));
    refused(NB_ERR_RANGE, NB_ITEM_TASK_ARGUMENT, nb_scheduler_prewake(scheduler, UINT64_MAX));
    accepted(NB_OK, nb_scheduler_prewake(scheduler, NB_SCHEDULER_PREWAKE_NS_MAX));
    nb_thread_stats stats;
    silent(stats = nb_scheduler_thread_stats_get(scheduler, UINT32_MAX));
    assert_int_equal(stats.run_count + stats.park_count, 0);
    scheduler_close(scheduler, &heap);
}

TEST(frame_wait_refuses_what_is_no_frame) {
    nb_scheduler *scheduler = scheduler_open(&heap);
    nb_fence_report report;
    memset(&report, 0x5A, sizeof report);
    refused(NB_ERR_MISUSE, NB_ITEM_TASK_ARGUMENT,
            nb_scheduler_frame_wait(scheduler, NULL, (nb_fence_frame){1}, NB_NEVER_NS, &report));
    nb_fence *fence = NULL;
    nb_fence_desc desc = {.hooks = bad_hooks(&heap)};
    accepted(NB_OK, nb_fence_create(&desc, &fence));
    const uint64_t values[] = {0, 1, 0x5A5A5A, UINT64_MAX};
    for (size_t i = 0; i < COUNT_OF(values); ++i) {
        refused(NB_ERR_STALE, NB_ITEM_FENCE_STALE,
                nb_scheduler_frame_wait(scheduler, fence, (nb_fence_frame){values[i]}, NB_NEVER_NS, &report));
    }
    assert_untouched(report, 0x5A);
    nb_task_desc stale = {.run = never_run, .fence = fence, .lifetime = NB_LIFETIME_FRAME, .frame = {0x5A5A5A}};
    nb_result result;
    listen_begin();
    result = nb_task_submit(scheduler, &stale, NULL);
    listen_end();
    assert_true(result == NB_ERR_STALE || result == NB_ERR_MISUSE);
    assert_true(bad_heard.own_count >= 1);
    accepted(NB_OK, nb_fence_destroy(fence));
    scheduler_close(scheduler, &heap);
}

// --- inside a task ---

typedef struct inside {
    nb_result destroy, detach, attach, wait, range, positive, first;
} inside;

static void run_inside(nb_task_context *context, void *argument) {
    inside *in;
    memcpy(&in, argument, sizeof in);
    in->destroy = nb_scheduler_destroy(context->scheduler);
    in->attach = nb_scheduler_attach(context->scheduler);
    in->detach = nb_scheduler_detach(context->scheduler);
    in->wait = nb_task_wait(context->scheduler, context->task, NB_NEVER_NS);
    in->range = nb_task_set_result(context, (nb_result)-99);
    in->positive = nb_task_set_result(context, NB_TIMEOUT); // would say that the group is still there
    in->first = nb_task_set_result(context, NB_ERR_RANGE);
}

TEST(calls_from_the_wrong_place_are_refused) {
    nb_scheduler *scheduler = scheduler_open(&heap);
    inside in = {0}, *pointer = &in;
    nb_task task = {0};
    nb_group group = {0};
    accepted(NB_OK, nb_group_begin(scheduler, &group));
    nb_task_desc desc = {
        .run = run_inside, .argument = &pointer, .argument_size_bytes = sizeof pointer, .group = group};
    accepted(NB_OK, nb_task_submit(scheduler, &desc, &task));
    listen_begin();
    nb_result result = nb_group_end(scheduler, group, NB_NEVER_NS);
    listen_end();
    assert_int_equal(in.destroy, NB_ERR_THREAD);
    assert_int_equal(in.attach, NB_ERR_MISUSE);
    assert_true(in.detach == NB_ERR_THREAD || in.detach == NB_ERR_MISUSE);
    assert_int_equal(in.wait, NB_ERR_DEADLOCK);
    assert_int_equal(in.positive, NB_ERR_RANGE);
    assert_int_equal(in.range, NB_ERR_RANGE);
    assert_int_equal(in.first, NB_OK);
    assert_int_equal(result, NB_ERR_RANGE);
    refused(NB_ERR_MISUSE, NB_ITEM_TASK_THREAD, nb_scheduler_attach(scheduler));
    refused(NB_ERR_THREAD, NB_ITEM_TASK_THREAD, nb_scheduler_detach(scheduler));
    scheduler_close(scheduler, &heap);
}

// --- loops ---

static void never_loop(nb_task_context *context, void *user, uint64_t begin, uint64_t end) {
    (void)context, (void)user, (void)begin, (void)end;
    abort();
}

static void never_reduce(nb_task_context *context, void *user, uint64_t begin, uint64_t end, void *value) {
    (void)context, (void)user, (void)begin, (void)end, (void)value;
    abort();
}

static void never_merge(void *user, void *value, const void *later) {
    (void)user, (void)value, (void)later;
    abort();
}

TEST(parallel_for_refuses_a_bad_desc) {
    nb_scheduler *scheduler = scheduler_open(&heap);
    nb_parallel_report report;
    memset(&report, 0x5A, sizeof report);
    nb_parallel_desc fine = {.run = never_loop, .count = 10}, empty = {.count = 10}, level = fine, lifetime = fine;
    nb_parallel_desc frameless = fine;
    level.priority = NB_PRIORITY_COUNT;
    lifetime.lifetime = NB_LIFETIME_COUNT;
    frameless.lifetime = NB_LIFETIME_FRAME;
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_parallel_for(NULL, &fine, &report));
    refused(NB_ERR_MISUSE, NB_ITEM_TASK_ARGUMENT, nb_parallel_for(scheduler, NULL, &report));
    refused(NB_ERR_MISUSE, NB_ITEM_TASK_ARGUMENT, nb_parallel_for(scheduler, &empty, &report));
    refused(NB_ERR_MISUSE, NB_ITEM_TASK_ARGUMENT, nb_parallel_for(scheduler, &level, &report));
    refused(NB_ERR_MISUSE, NB_ITEM_TASK_ARGUMENT, nb_parallel_for(scheduler, &lifetime, &report));
    refused(NB_ERR_MISUSE, NB_ITEM_TASK_ARGUMENT, nb_parallel_for(scheduler, &frameless, &report));
    assert_untouched(report, 0x5A);
    fine.count = 0;
    accepted(NB_OK, nb_parallel_for(scheduler, &fine, NULL));
    scheduler_close(scheduler, &heap);
}

TEST(parallel_reduce_refuses_a_bad_desc) {
    nb_scheduler *scheduler = scheduler_open(&heap);
    uint64_t value = 0x5A5A, initial = 0;
    nb_reduce_desc fine = {.run = never_reduce,
                           .merge = never_merge,
                           .count = 10,
                           .initial = &initial,
                           .value_size_bytes = sizeof initial};
    nb_reduce_desc no_run = fine, no_merge = fine, no_initial = fine, no_size = fine, large = fine, level = fine;
    no_run.run = NULL;
    no_merge.merge = NULL;
    no_initial.initial = NULL;
    no_size.value_size_bytes = 0;
    large.value_size_bytes = NB_REDUCE_VALUE_SIZE_MAX + 1;
    level.priority = (nb_priority)-1;
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_parallel_reduce(NULL, &fine, &value));
    refused(NB_ERR_MISUSE, NB_ITEM_TASK_ARGUMENT, nb_parallel_reduce(scheduler, NULL, &value));
    refused(NB_ERR_MISUSE, NB_ITEM_TASK_ARGUMENT, nb_parallel_reduce(scheduler, &fine, NULL));
    refused(NB_ERR_MISUSE, NB_ITEM_TASK_ARGUMENT, nb_parallel_reduce(scheduler, &no_run, &value));
    refused(NB_ERR_MISUSE, NB_ITEM_TASK_ARGUMENT, nb_parallel_reduce(scheduler, &no_merge, &value));
    refused(NB_ERR_MISUSE, NB_ITEM_TASK_ARGUMENT, nb_parallel_reduce(scheduler, &no_initial, &value));
    refused(NB_ERR_MISUSE, NB_ITEM_TASK_ARGUMENT, nb_parallel_reduce(scheduler, &no_size, &value));
    refused(NB_ERR_MISUSE, NB_ITEM_TASK_ARGUMENT, nb_parallel_reduce(scheduler, &level, &value));
    refused(NB_ERR_RANGE, NB_ITEM_TASK_ARGUMENT, nb_parallel_reduce(scheduler, &large, &value));
    assert_int_equal(value, 0x5A5A);
    scheduler_close(scheduler, &heap);
}

// --- dependencies, results, memory and the budget ---

TEST(functions_refuse_null) {
    nb_task task = {1};
    assert_int_equal(nb_task_depend(NULL, task, task), NB_ERR_MISUSE);
    assert_int_equal(nb_scheduler_drain(NULL, 0, NULL), NB_ERR_MISUSE);
    assert_null(nb_task_arena(NULL));
    assert_int_equal(nb_scheduler_budget_open(NULL, 0), NB_ERR_MISUSE);
    assert_int_equal(nb_scheduler_budget_close(NULL), NB_ERR_MISUSE);
}

typedef struct elsewhere {
    nb_scheduler *scheduler;
    nb_result opened, closed;
} elsewhere;

static void open_elsewhere(void *user) {
    elsewhere *e = user;
    e->opened = nb_scheduler_budget_open(e->scheduler, 0);
    e->closed = nb_scheduler_budget_close(e->scheduler);
}

TEST(budget_refuses_other_threads) {
    tasks *t = tasks_open(0);
    elsewhere e = {.scheduler = t->scheduler};
    test_thread_run(open_elsewhere, &e);
    assert_int_equal(e.opened, NB_ERR_THREAD);
    assert_int_equal(e.closed, NB_ERR_THREAD);
    assert_int_equal(test_log_count(&t->log, NB_ITEM_TASK_THREAD), 2);
    tasks_close(t);
}

TEST(depend_refuses_handles_that_are_none) {
    tasks *t = tasks_open(0);
    event runs = {0};
    nb_task task = submit_pointer(t, (nb_task_desc){0}, run_event, &runs);
    assert_int_equal(nb_task_depend(t->scheduler, (nb_task){0}, task), NB_EMPTY);
    assert_int_equal(nb_task_depend(t->scheduler, (nb_task){UINT64_MAX}, task), NB_EMPTY);
    // Nothing to wait for.
    assert_int_equal(nb_task_depend(t->scheduler, task, (nb_task){0}), NB_OK);
    assert_int_equal(nb_task_depend(t->scheduler, task, (nb_task){UINT64_MAX}), NB_OK);
    assert_int_equal(nb_task_depend(t->scheduler, task, task), NB_ERR_DEADLOCK);
    assert_int_equal(test_log_count(&t->log, NB_ITEM_TASK_DEADLOCK), 1);
    assert_int_equal(nb_task_wait(t->scheduler, task, NB_NEVER_NS), NB_OK);
    assert_int_equal(event_count(&runs), 1);
    tasks_close(t);
}

TEST(submit_refuses_dependencies_without_an_array) {
    tasks *t = tasks_open(0);
    nb_task_desc desc = {.run = never_run, .dependency_count = 1};
    assert_int_equal(nb_task_submit(t->scheduler, &desc, NULL), NB_ERR_MISUSE);
    assert_int_equal(test_log_count(&t->log, NB_ITEM_TASK_ARGUMENT), 1);
    nb_scheduler_desc many = {.dependency_count_max = NB_TASK_COUNT_MAX + 1, .hooks = test_hooks(&t->log, &t->heap)};
    nb_scheduler *other = NULL;
    assert_int_equal(nb_scheduler_create(&many, &other), NB_ERR_RANGE);
    assert_null(other);
    tasks_close(t);
}

TEST(drain_of_nothing_is_empty) {
    tasks *t = tasks_open(0);
    uint64_t count = 77;
    assert_int_equal(nb_scheduler_drain(t->scheduler, 0, &count), NB_EMPTY);
    assert_int_equal(nb_scheduler_drain(t->scheduler, UINT64_MAX, &count), NB_EMPTY);
    assert_int_equal(count, 77);
    tasks_close(t);
}
