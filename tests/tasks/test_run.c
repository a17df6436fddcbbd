// SPDX-License-Identifier: MIT
// Tasks that are run at once, in the thread that would have submitted them.

#include "tasks/tasks_fixture.h"

typedef struct note {
    uint32_t run_count;
    uint64_t thread_id;
    nb_fence_frame frame;
    nb_label label;
    nb_result sets;   // what it sets as its result
    nb_result waited; // for its own group
    nb_group group;
} note;

static void run_note(nb_task_context *context, void *argument) {
    note *n = pointer_of(argument);
    ++n->run_count;
    n->thread_id = nbi_thread_id();
    n->frame = context->frame;
    n->label = context->label;
    if (n->sets != NB_OK) nb_task_set_result(context, n->sets);
    if (n->group.value != 0) n->waited = nb_group_end(context->scheduler, n->group, NB_NEVER_NS);
}

static nb_result run_here(tasks *t, nb_task_desc desc, note *n) {
    void *pointer = n;
    desc.run = run_note, desc.argument = &pointer, desc.argument_size_bytes = sizeof pointer;
    return nb_task_run(t->scheduler, &desc);
}

TEST(task_has_run_here_when_the_call_returns) {
    for (uint32_t workers = 0; workers < 3; ++workers) {
        tasks *t = tasks_open(workers);
        note n = {0};
        nb_group group = group_begin(t);
        assert_int_equal(run_here(t, (nb_task_desc){.group = group, .label = {5}}, &n), NB_OK);
        assert_int_equal(n.run_count, 1);
        assert_true(n.thread_id == nbi_thread_id());
        assert_int_equal(n.label.id, 5);
        assert_int_equal(nb_group_pending_count(t->scheduler, group), 0);
        assert_int_equal(nb_group_end(t->scheduler, group, NB_NEVER_NS), NB_OK);
        assert_int_equal(stats_of(t).run_count, 1);
        tasks_close(t);
    }
}

TEST(its_result_is_told_by_its_group) {
    tasks *t = tasks_open(0);
    note n = {.sets = NB_ERR_RANGE};
    nb_group group = group_begin(t);
    assert_int_equal(run_here(t, (nb_task_desc){.group = group}, &n), NB_OK);
    assert_int_equal(nb_group_end(t->scheduler, group, NB_NEVER_NS), NB_ERR_RANGE);
    tasks_close(t);
}

TEST(it_belongs_to_its_group_while_it_runs) {
    tasks *t = tasks_open(1);
    note n = {0};
    n.group = group_begin(t);
    assert_int_equal(run_here(t, (nb_task_desc){.group = n.group}, &n), NB_OK);
    assert_int_equal(n.waited, NB_ERR_DEADLOCK);
    assert_int_equal(nb_group_end(t->scheduler, n.group, NB_NEVER_NS), NB_OK);
    tasks_close(t);
}

TEST(cancelled_stopped_and_misused_ones_do_not_run) {
    tasks *t = tasks_open(0);
    note n = {0};
    nb_token *token = NULL;
    nb_token_desc token_desc = {.label = "run", .hooks = test_hooks(&t->log, &t->heap)};
    assert_int_equal(nb_token_create(&token_desc, &token), NB_OK);
    assert_int_equal(run_here(t, (nb_task_desc){.token = token}, &n), NB_OK);
    assert_int_equal(n.run_count, 1);
    nb_cancel_counts counts = {0};
    assert_int_equal(nb_token_cancel(token, NB_CANCEL_STALE, 0, &counts), NB_OK);
    assert_int_equal(counts.task_running_count + counts.task_queued_count, 0);
    assert_int_equal(run_here(t, (nb_task_desc){.token = token}, &n), NB_CANCELLED);
    nb_task on = {0};
    assert_int_equal(run_here(t, (nb_task_desc){.pin = NB_PIN_COORDINATOR}, &n), NB_ERR_MISUSE);
    assert_int_equal(run_here(t, (nb_task_desc){.dependencies = &on, .dependency_count = 1}, &n), NB_ERR_MISUSE);
    assert_int_equal(run_here(t, (nb_task_desc){.lifetime = NB_LIFETIME_FRAME}, &n), NB_ERR_MISUSE);
    assert_int_equal(run_here(t, (nb_task_desc){.group = {12345}}, &n), NB_ERR_STALE);
    assert_int_equal(nb_scheduler_stop(t->scheduler), NB_OK);
    assert_int_equal(run_here(t, (nb_task_desc){0}, &n), NB_CLOSED);
    assert_int_equal(n.run_count, 1);
    nb_token_release(token);
    tasks_close(t);
}

static void note_told(void *user, const nb_task_result *result) {
    note *n = NB_RESULT_AS(note *, result)[0];
    *(uint32_t *)user += result->status == NB_OK && result->dispatched.value == n->frame.value ? 1 : 100;
}

TEST(it_belongs_to_its_frame_and_tells_its_end) {
    tasks *t = tasks_open(0);
    nb_fence *fence = NULL;
    nb_fence_frame frame;
    note n = {0};
    uint32_t told = 0;
    assert_int_equal(nb_fence_create(NULL, &fence), NB_OK);
    assert_int_equal(nb_fence_begin(fence, &frame), NB_OK);
    nb_task_desc bound = {.fence = fence, .lifetime = NB_LIFETIME_FRAME, .on_complete = note_told, .user = &told};
    assert_int_equal(run_here(t, bound, &n), NB_OK);
    assert_true(n.frame.value == frame.value);
    nb_fence_report report;
    assert_int_equal(nb_scheduler_frame_wait(t->scheduler, fence, frame, NB_NEVER_NS, &report), NB_OK);
    assert_int_equal(report.pending_count, 0);
    assert_int_equal(nb_scheduler_drain(t->scheduler, 0, NULL), NB_OK);
    assert_int_equal(told, 1);
    tasks_close(t);
    assert_int_equal(nb_fence_destroy(fence), NB_OK);
}

// Every call a task, one of the two parts of each run at once.
typedef struct part {
    uint32_t n;
    uint64_t *sum;
} part;

static void run_part(nb_task_context *context, void *argument) {
    const part *mine = argument;
    if (mine->n < 2) {
        *mine->sum = mine->n;
        return;
    }
    uint64_t sums[2] = {0, 0};
    part parts[2] = {{mine->n - 1, &sums[0]}, {mine->n - 2, &sums[1]}};
    nb_group group;
    if (nb_group_begin(context->scheduler, &group) != NB_OK) return;
    nb_task_desc desc = {.run = run_part, .argument_size_bytes = sizeof(part), .group = group};
    desc.argument = &parts[0];
    bool is_good = nb_task_submit(context->scheduler, &desc, NULL) == NB_OK;
    desc.argument = &parts[1];
    is_good = nb_task_run(context->scheduler, &desc) == NB_OK && is_good;
    is_good = nb_group_end(context->scheduler, group, NB_NEVER_NS) == NB_OK && is_good;
    if (is_good) *mine->sum = sums[0] + sums[1];
}

TEST(parts_run_at_once_and_submitted_make_one_whole) {
    for (uint32_t workers = 0; workers < 4; ++workers) {
        tasks *t = tasks_open(workers);
        uint64_t sum = 0, count = 0;
        part whole = {(uint32_t)test_size(16, 20, 24), &sum};
        nb_task_desc desc = {.run = run_part, .argument = &whole, .argument_size_bytes = sizeof whole};
        assert_int_equal(nb_task_run(t->scheduler, &desc), NB_OK);
        uint64_t before = 0, expected = 1;
        for (uint32_t i = 1; i < whole.n; ++i) {
            uint64_t next = before + expected;
            before = expected, expected = next;
        }
        assert_int_equal(sum, expected);
        count = 2 * (before + expected) - 1;
        assert_int_equal(stats_of(t).run_count, count);
        tasks_close(t);
    }
}
