// SPDX-License-Identifier: MIT
// How long tasks go without asking whether they should stop: measured by label, reported once where it is too long.

#include "tasks/tasks_fixture.h"

#define LIMIT_CHECK_NS ((uint64_t)1000000)
#define SLEEPY_NS ((uint64_t)3000000)
#define NEVER_LATE_NS ((uint64_t)3600000000000)
#define SAMPLED_OF 8 // one task in so many is timed from start to end

static void work_for(uint64_t ns) {
    uint64_t end_ns = nbi_clock_now_ns() + ns;
    while (nbi_clock_now_ns() < end_ns) nbi_cpu_relax();
}

// Asks after a long time and once more at once.
static void run_sleepy(nb_task_context *context, void *argument) {
    (void)argument;
    nb_task_should_stop(context);
    work_for(SLEEPY_NS);
    nb_task_should_stop(context);
}

static void run_silent(nb_task_context *context, void *argument) {
    (void)context, (void)argument;
    work_for(SLEEPY_NS);
}

static tasks *open_with_limit(uint64_t limit_ns) {
    return tasks_open_desc((nb_scheduler_desc){.worker_count = NB_WORKER_COUNT_NONE,
                                               .task_count_max = 4096,
                                               .group_count_max = 64,
                                               .check_interval_max_ns = limit_ns});
}

static nb_token *token_open(tasks *t) {
    nb_token *token = NULL;
    nb_token_desc desc = {.label = "check", .hooks = test_hooks(&t->log, &t->heap)};
    assert_int_equal(nb_token_create(&desc, &token), NB_OK);
    return token;
}

static void run_all(tasks *t, nb_token *token, task_function run, uint32_t label, uint32_t count) {
    nb_group group = group_begin(t);
    for (uint32_t i = 0; i < count; ++i) {
        submit_pointer(t, (nb_task_desc){.token = token, .group = group, .label = {label}}, run, NULL);
    }
    assert_int_equal(nb_group_end(t->scheduler, group, NB_NEVER_NS), NB_OK);
}

static nb_check_stats row_of(const tasks *t, uint32_t label) {
    nb_check_stats rows[NB_CHECK_LABEL_COUNT_MAX] = {0};
    uint32_t count = nb_scheduler_check_stats_get(t->scheduler, rows, NB_CHECK_LABEL_COUNT_MAX);
    for (uint32_t i = 0; i < count; ++i) {
        if (rows[i].label.id == label) return rows[i];
    }
    return (nb_check_stats){0};
}

TEST(task_that_asks_too_late_is_told_of_once) {
    tasks *t = open_with_limit(LIMIT_CHECK_NS);
    nb_token *token = token_open(t);
    run_all(t, token, run_sleepy, 7, 3);
    nb_check_stats row = row_of(t, 7);
    assert_true(row.interval_max_ns >= SLEEPY_NS);
    assert_true(row.interval_count >= 3);
    assert_true(row.late_count >= 3);
    assert_int_equal(test_log_count(&t->log, NB_ITEM_TASK_CHECK), 1);
    run_all(t, token, run_sleepy, 8, 1);
    assert_int_equal(test_log_count(&t->log, NB_ITEM_TASK_CHECK), 2);
    nb_token_release(token);
    tasks_close(t);
}

TEST(task_that_never_asks_is_found) {
    tasks *t = open_with_limit(LIMIT_CHECK_NS);
    nb_token *token = token_open(t);
    run_all(t, token, run_silent, 9, SAMPLED_OF);
    nb_check_stats row = row_of(t, 9);
    assert_int_equal(row.interval_count, 1);
    assert_true(row.interval_max_ns >= SLEEPY_NS);
    assert_int_equal(row.late_count, 1);
    nb_token_release(token);
    tasks_close(t);
}

TEST(without_a_limit_nothing_is_late_and_labels_are_kept_apart) {
    tasks *t = open_with_limit(0);
    nb_token *token = token_open(t);
    run_all(t, token, run_sleepy, 1, SAMPLED_OF);
    run_all(t, token, run_nothing, 2, SAMPLED_OF);
    assert_true(row_of(t, 1).interval_max_ns >= SLEEPY_NS);
    assert_int_equal(row_of(t, 1).late_count, 0);
    assert_int_equal(row_of(t, 2).interval_count, 1);
    assert_int_equal(test_log_count(&t->log, NB_ITEM_TASK_CHECK), 0);
    assert_int_equal(nb_scheduler_check_stats_get(t->scheduler, NULL, 0), 2);
    nb_token_release(token);
    tasks_close(t);
}

TEST(tasks_without_a_token_are_not_timed) {
    tasks *t = open_with_limit(LIMIT_CHECK_NS);
    run_all(t, NULL, run_sleepy, 1, SAMPLED_OF);
    assert_int_equal(nb_scheduler_check_stats_get(t->scheduler, NULL, 0), 0);
    tasks_close(t);
}

TEST(labels_beyond_the_table_share_its_last_row) {
    tasks *t = open_with_limit(NEVER_LATE_NS);
    nb_token *token = token_open(t);
    const uint32_t label_count = NB_CHECK_LABEL_COUNT_MAX + 3;
    for (uint32_t label = 1; label <= label_count; ++label) run_all(t, token, run_nothing, label, SAMPLED_OF);
    nb_check_stats rows[NB_CHECK_LABEL_COUNT_MAX];
    assert_int_equal(nb_scheduler_check_stats_get(t->scheduler, rows, NB_CHECK_LABEL_COUNT_MAX),
                     NB_CHECK_LABEL_COUNT_MAX);
    for (uint32_t i = 0; i < NB_CHECK_LABEL_COUNT_MAX; ++i) {
        assert_int_equal(rows[i].label.id, i + 1);
        assert_int_equal(rows[i].interval_count, i + 1 < NB_CHECK_LABEL_COUNT_MAX ? 1 : 4);
        assert_int_equal(rows[i].late_count, 0);
    }
    nb_token_release(token);
    tasks_close(t);
}
