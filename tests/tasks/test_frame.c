// SPDX-License-Identifier: MIT
// Tasks that belong to a frame: what a fence waits for, what it does not, and what late tasks can no longer touch.

#include "tasks/tasks_fixture.h"

#include "nebula/fence.h"

typedef struct framed {
    tasks *t;
    nb_fence *fence;
    nb_labels *labels;
    nb_fence_frame frame;
} framed;

static framed f; // the one that is open

static void framed_open_desc(nb_scheduler_desc scheduler_desc) {
    memset(&f, 0, sizeof f);
    f.t = tasks_open_desc(scheduler_desc);
    nb_hooks hooks = test_hooks(&f.t->log, &f.t->heap);
    hooks.logger.level_min = NB_LOG_WARNING;
    nb_labels_desc labels_desc = {.hooks = hooks};
    assert_int_equal(nb_labels_create(&labels_desc, &f.labels), NB_OK);
    nb_fence_desc desc = {.hooks = hooks, .labels = f.labels};
    assert_int_equal(nb_fence_create(&desc, &f.fence), NB_OK);
}

static void framed_open(uint32_t workers) {
    framed_open_desc(
        (nb_scheduler_desc){.worker_count = worker_count_of(workers), .task_count_max = 4096, .group_count_max = 1024});
}

static void framed_begin(void) { assert_int_equal(nb_fence_begin(f.fence, &f.frame), NB_OK); }

static nb_result framed_wait(uint64_t deadline_ns, nb_fence_report *report) {
    return nb_scheduler_frame_wait(f.t->scheduler, f.fence, f.frame, deadline_ns, report);
}

static void framed_close(void) {
    assert_int_equal(nb_scheduler_stop(f.t->scheduler), NB_OK);
    AWAIT(stats_of(f.t).alive_count == 0);
    assert_int_equal(nb_fence_destroy(f.fence), NB_OK);
    nb_labels_destroy(f.labels);
    tasks_close(f.t);
}

static nb_task_desc in_frame(void) { return (nb_task_desc){.fence = f.fence, .priority = NB_PRIORITY_CRITICAL}; }

// --- the barrier ---

TEST(test_barrier_waits_for_all_critical) {
    for (uint32_t workers = 0; workers <= WORKER_COUNTS_MAX; ++workers) {
        framed_open(workers);
        for (int frame = 0; frame < 20; ++frame) {
            event runs = {0};
            framed_begin();
            for (int i = 0; i < 5; ++i) submit_pointer(f.t, in_frame(), run_event, &runs);
            nb_fence_report report;
            assert_int_equal(framed_wait(NB_NEVER_NS, &report), NB_OK);
            assert_int_equal(event_count(&runs), 5);
            assert_int_equal(report.status, NB_FENCE_COMPLETE);
            assert_int_equal(report.pending_count, 0);
        }
        framed_close();
    }
}

TEST(test_non_critical_tasks_continue_past_barrier) {
    framed_open(2);
    held floating = {0};
    event runs = {0};
    framed_begin();
    submit_held(f.t, (nb_task_desc){.fence = f.fence, .priority = NB_PRIORITY_HIGH}, &floating);
    for (int i = 0; i < 5; ++i) submit_pointer(f.t, in_frame(), run_event, &runs);
    assert_int_equal(framed_wait(NB_NEVER_NS, NULL), NB_OK);
    assert_int_equal(event_count(&runs), 5);
    assert_int_equal(event_count(&floating.ended), 0);
    held_end(&floating, 1);
    framed_close();
}

TEST(test_tasks_from_different_frames_independent) {
    framed_open(2);
    held late = {0};
    event runs = {0};
    framed_begin();
    nb_fence_frame first = f.frame;
    submit_started(f.t, in_frame(), run_held, &late, &late.started, 2);
    assert_int_equal(framed_wait(nbi_clock_now_ns() + 1000000, NULL), NB_TIMEOUT);
    framed_begin();
    nb_task task = submit_pointer(f.t, in_frame(), run_event, &runs);
    assert_int_equal(framed_wait(NB_NEVER_NS, NULL), NB_OK);
    assert_int_equal(event_count(&runs), 1);
    assert_true(nb_task_is_complete(f.t->scheduler, task));
    assert_true(nb_fence_is_degraded(f.fence, first));
    // Late returns, with a newer frame open, complete only their own.
    framed_begin();
    event_set(&late.may_end);
    assert_int_equal(nb_scheduler_frame_wait(f.t->scheduler, f.fence, first, NB_NEVER_NS, NULL), NB_OK);
    held still = {0};
    submit_held(f.t, in_frame(), &still);
    assert_int_equal(framed_wait(0, NULL), NB_TIMEOUT);
    event_set(&still.may_end);
    assert_int_equal(framed_wait(NB_NEVER_NS, NULL), NB_OK);
    framed_close();
}

TEST(waiting_thread_runs_the_frame_without_workers) {
    framed_open(0);
    order ran = {0};
    framed_begin();
    for (uint32_t i = 0; i < 20; ++i) submit_order(f.t, (nb_task_desc){.priority = NB_PRIORITY_HIGH}, &ran, 1000 + i);
    for (uint32_t i = 0; i < 20; ++i) {
        nb_task_desc desc = {.fence = f.fence, .lifetime = NB_LIFETIME_FRAME, .priority = NB_PRIORITY_LOW};
        submit_order(f.t, desc, &ran, i);
    }
    nb_fence_report report;
    assert_int_equal(framed_wait(NB_NEVER_NS, &report), NB_OK);
    assert_int_equal(report.help_count, 20);
    assert_int_equal(report.park_count, 0);
    assert_int_equal(ran.count.value, 20);
    for (uint32_t i = 0; i < 20; ++i) assert_in_range(ran.ids[i], 0, 19);
    framed_close();
}

// The thread that ran its last task goes on with a long floating one.
TEST(frame_is_over_though_its_thread_runs_on) {
    framed_open(1);
    held first = {0}, other = {0};
    event runs = {0};
    framed_begin();
    submit_held(f.t, (nb_task_desc){0}, &first);
    submit_pointer(f.t, in_frame(), run_event, &runs);
    submit_pointer(f.t, (nb_task_desc){0}, run_held, &other);
    event_set(&first.may_end);
    assert_true(event_await(&other.started, 1));
    nb_result result = framed_wait(nbi_clock_now_ns() + WAKE_LIMIT_NS, NULL);
    event_set(&other.may_end);
    assert_int_equal(result, NB_OK);
    assert_int_equal(event_count(&runs), 1);
    assert_true(event_await(&other.ended, 1));
    framed_close();
}

// --- what belongs to a frame ---

typedef struct noted_frame {
    nb_fence *fence;
    nb_fence_frame frame;
    uint32_t runs;
    bool is_bound; // the frame waited for it
} noted_frame;

static void run_note_frame(nb_task_context *context, void *argument) {
    noted_frame *n = pointer_of(argument);
    n->fence = context->fence;
    n->frame = context->frame;
    ++n->runs;
}

static uint32_t pending_of_frame(void) {
    nb_fence_report report = {0};
    if (f.frame.value != 0) nb_fence_wait(f.fence, f.frame, 0, NULL, &report);
    return report.pending_count;
}

static noted_frame note_frame(nb_task_desc desc) {
    noted_frame n = {0};
    uint32_t before = pending_of_frame();
    submit_pointer(f.t, desc, run_note_frame, &n);
    n.is_bound = pending_of_frame() == before + 1;
    assert_true(n.is_bound || pending_of_frame() == before);
    assert_int_equal(nb_scheduler_help(f.t->scheduler, 0, NULL), NB_OK);
    assert_int_equal(n.runs, 1);
    assert_int_equal(pending_of_frame(), before);
    assert_ptr_equal(n.fence, desc.fence);
    return n;
}

TEST(critical_is_frame_bound_while_a_frame_is_open) {
    framed_open(0);
    nb_task_desc critical = in_frame(), fenceless = {.priority = NB_PRIORITY_CRITICAL}, floating = in_frame();
    floating.lifetime = NB_LIFETIME_FLOATING;
    assert_int_equal(note_frame(critical).frame.value, 0); // no frame yet
    framed_begin();
    nb_fence_ticket ticket = {0}; // keeps the frame from being over
    assert_int_equal(nb_fence_take(f.fence, f.frame, (nb_label){0}, &ticket), NB_OK);
    noted_frame bound = note_frame(critical);
    assert_true(bound.is_bound);
    assert_int_equal(bound.frame.value, f.frame.value);
    assert_false(note_frame(fenceless).is_bound);
    noted_frame tagged = note_frame(floating);
    assert_false(tagged.is_bound);
    assert_int_equal(tagged.frame.value, f.frame.value); // so that what it makes has an age
    for (int level = NB_PRIORITY_LOW; level < NB_PRIORITY_CRITICAL; ++level) {
        nb_task_desc desc = {.priority = (nb_priority)level, .fence = f.fence};
        assert_false(note_frame(desc).is_bound);
        desc.lifetime = NB_LIFETIME_FRAME;
        assert_true(note_frame(desc).is_bound);
        desc.frame = f.frame;
        assert_int_equal(note_frame(desc).frame.value, f.frame.value);
    }
    assert_int_equal(nb_fence_return(f.fence, ticket), NB_OK);
    assert_int_equal(framed_wait(0, NULL), NB_OK);
    assert_false(note_frame(critical).is_bound); // over, so it floats
    framed_close();
}

TEST(frame_bound_submit_needs_an_open_frame) {
    framed_open(0);
    nb_task_desc desc = {.run = run_nothing, .lifetime = NB_LIFETIME_FRAME};
    assert_int_equal(nb_task_submit(f.t->scheduler, &desc, NULL), NB_ERR_MISUSE); // no fence
    desc.fence = f.fence;
    assert_int_equal(nb_task_submit(f.t->scheduler, &desc, NULL), NB_ERR_MISUSE); // no frame yet
    framed_begin();
    nb_fence_frame first = f.frame;
    assert_int_equal(nb_task_submit(f.t->scheduler, &desc, NULL), NB_OK);
    assert_int_equal(framed_wait(NB_NEVER_NS, NULL), NB_OK);
    assert_int_equal(nb_task_submit(f.t->scheduler, &desc, NULL), NB_CLOSED);
    for (int i = 0; i < 20; ++i) {
        framed_begin();
        assert_int_equal(framed_wait(0, NULL), NB_OK);
    }
    desc.frame = first;
    assert_int_equal(nb_task_submit(f.t->scheduler, &desc, NULL), NB_ERR_STALE);
    framed_begin();
    desc.frame = f.frame;
    assert_int_equal(nb_task_submit(f.t->scheduler, &desc, NULL), NB_OK);
    assert_int_equal(framed_wait(NB_NEVER_NS, NULL), NB_OK);
    framed_close();
}

typedef struct lineage {
    order *ran;
    uint32_t depth, width;
    nb_lifetime lifetime;
} lineage;

static void run_lineage(nb_task_context *context, void *argument) {
    lineage self;
    memcpy(&self, argument, sizeof self);
    order_entry entry = {self.ran, self.depth};
    run_order(context, &entry);
    lineage child = self;
    --child.depth;
    // No fence: the frame is that of this task.
    nb_task_desc desc = {
        .run = run_lineage, .argument = &child, .argument_size_bytes = sizeof child, .lifetime = self.lifetime};
    for (uint32_t i = 0; self.depth != 0 && i < self.width; ++i) nb_task_submit(context->scheduler, &desc, NULL);
}

TEST(frame_waits_for_what_its_tasks_submit_to_it) {
    for (uint32_t workers = 0; workers <= WORKER_COUNTS_MAX; ++workers) {
        framed_open(workers);
        for (int frame = 0; frame < 5; ++frame) {
            static order ran;
            ran.count.value = 0;
            lineage root = {&ran, 5, 3, NB_LIFETIME_FRAME};
            nb_task_desc desc = {.run = run_lineage,
                                 .argument = &root,
                                 .argument_size_bytes = sizeof root,
                                 .fence = f.fence,
                                 .lifetime = NB_LIFETIME_FRAME};
            framed_begin();
            assert_int_equal(nb_task_submit(f.t->scheduler, &desc, NULL), NB_OK);
            assert_int_equal(framed_wait(NB_NEVER_NS, NULL), NB_OK);
            assert_int_equal(ran.count.value, 1 + 3 + 9 + 27 + 81 + 243);
        }
        framed_close();
    }
}

// A timed-out frame's task submits more into it, while a newer frame is open.
TEST(late_task_still_submits_to_its_own_frame) {
    framed_open(2);
    held late = {0};
    framed_begin();
    nb_fence_frame first = f.frame;
    submit_held(f.t, in_frame(), &late);
    assert_int_equal(framed_wait(0, NULL), NB_TIMEOUT);
    framed_begin();
    event runs = {0};
    nb_task_desc desc = {.fence = f.fence, .lifetime = NB_LIFETIME_FRAME, .frame = first};
    submit_pointer(f.t, desc, run_event, &runs);
    assert_int_equal(framed_wait(NB_NEVER_NS, NULL), NB_OK);
    event_set(&late.may_end);
    assert_int_equal(nb_scheduler_frame_wait(f.t->scheduler, f.fence, first, NB_NEVER_NS, NULL), NB_OK);
    assert_int_equal(event_count(&runs), 1);
    framed_close();
}

TEST(cancelled_and_stopped_tasks_return_their_tickets) {
    framed_open(0);
    nb_token *token = NULL;
    nb_token_desc token_desc = {.hooks = test_hooks(NULL, &f.t->heap)};
    assert_int_equal(nb_token_create(&token_desc, &token), NB_OK);
    event runs = {0};
    framed_begin();
    nb_task_desc desc = in_frame();
    nb_task by_hand = submit_pointer(f.t, desc, run_event, &runs);
    desc.token = token;
    for (int i = 0; i < 10; ++i) submit_pointer(f.t, desc, run_event, &runs);
    assert_int_equal(nb_task_cancel(f.t->scheduler, by_hand), NB_OK);
    nb_cancel_counts counts = {0};
    assert_int_equal(nb_token_cancel(token, NB_CANCEL_STALE, 0, &counts), NB_OK);
    assert_int_equal(counts.task_queued_count, 10);
    assert_int_equal(framed_wait(NB_NEVER_NS, NULL), NB_OK);
    framed_begin();
    for (int i = 0; i < 10; ++i) submit_pointer(f.t, in_frame(), run_event, &runs);
    assert_int_equal(nb_scheduler_stop(f.t->scheduler), NB_OK);
    assert_int_equal(framed_wait(0, NULL), NB_OK);
    assert_int_equal(event_count(&runs), 0);
    assert_int_equal(stats_of(f.t).cancel_count, 21);
    nb_token_release(token);
    framed_close();
}

// --- time-outs ---

TEST(time_out_names_late_tasks) {
    framed_open(1);
    nb_label running_label = {0};
    assert_int_equal(nb_labels_intern(f.labels, "slow_mesh", &running_label), NB_OK);
    held late = {0};
    framed_begin();
    nb_task_desc desc = in_frame();
    desc.label = running_label;
    submit_held(f.t, desc, &late);
    nb_fence_report report;
    memset(&report, 0x5A, sizeof report);
    uint64_t deadline_ns = nbi_clock_now_ns() + 3000000;
    assert_int_equal(framed_wait(deadline_ns, &report), NB_TIMEOUT);
    assert_true(nbi_clock_now_ns() >= deadline_ns);
    assert_int_equal(report.status, NB_FENCE_TIMEDOUT);
    assert_int_equal(report.pending_count, 1);
    assert_int_equal(report.straggler_count, 1);
    assert_int_equal(report.stragglers[0].label.id, running_label.id);
    assert_int_equal(report.stragglers[0].thread_id, nbi_atomic_load_relaxed_u64(&late.thread_id));
    assert_in_range(report.stragglers[0].age_ns, 1000000, LIMIT_NS);
    assert_non_null(strstr(f.t->log.last_message, "slow_mesh"));
    assert_int_equal(test_log_count(&f.t->log, NB_ITEM_FENCE_TIMEOUT), 1);
    // The next frame has nothing of it, and may name its own.
    framed_begin();
    assert_int_equal(framed_wait(0, &report), NB_OK);
    assert_int_equal(report.pending_count, 0);
    held_end(&late, 1);
    framed_close();
}

// Over 64 slots are in use, so that late ones are found wherever they lie.
TEST(time_out_finds_late_tasks_among_many) {
    framed_open(1);
    held late = {0};
    event runs = {0};
    for (int i = 0; i < 300; ++i) submit_pointer(f.t, (nb_task_desc){0}, run_event, &runs);
    assert_true(event_await(&runs, 300));
    framed_begin();
    nb_task_desc desc = in_frame();
    desc.label = (nb_label){5};
    submit_held(f.t, desc, &late);
    for (int i = 0; i < 300; ++i) {
        submit_pointer(f.t, (nb_task_desc){.priority = NB_PRIORITY_LOW}, run_event, &runs);
    }
    nb_fence_report report;
    assert_int_equal(framed_wait(nbi_clock_now_ns() + 1000000, &report), NB_TIMEOUT);
    assert_int_equal(report.straggler_count, 1);
    assert_int_equal(report.stragglers[0].label.id, 5);
    event_set(&late.may_end);
    assert_int_equal(framed_wait(NB_NEVER_NS, NULL), NB_OK);
    framed_close();
}

// --- deadlock ---

typedef struct own_frame {
    nb_fence *fence;
    nb_result result;
} own_frame;

static void run_wait_for_frame(nb_task_context *context, void *argument) {
    own_frame *own = pointer_of(argument);
    own->result = nb_scheduler_frame_wait(context->scheduler, own->fence, nb_fence_current(own->fence),
                                          nbi_clock_now_ns() + LIMIT_NS, NULL);
}

static void run_wait_for_frame_inside(nb_task_context *context, void *argument) {
    nb_group group = {0};
    nb_group_begin(context->scheduler, &group);
    nb_task_desc desc = {
        .run = run_wait_for_frame, .argument = argument, .argument_size_bytes = sizeof(void *), .group = group};
    nb_task_submit(context->scheduler, &desc, NULL);
    nb_group_end(context->scheduler, group, NB_NEVER_NS);
}

TEST(waiting_for_ones_own_frame_is_found) {
    static const task_function bodies[] = {run_wait_for_frame, run_wait_for_frame_inside};
    for (int i = 0; i < 2; ++i) {
        framed_open(0);
        own_frame own = {.fence = f.fence};
        framed_begin();
        submit_pointer(f.t, in_frame(), bodies[i], &own);
        assert_int_equal(framed_wait(NB_NEVER_NS, NULL), NB_OK);
        assert_int_equal(own.result, NB_ERR_DEADLOCK);
        assert_int_equal(test_log_count(&f.t->log, NB_ITEM_TASK_DEADLOCK), 1);
        framed_close();
    }
}

// --- the ceiling for floating work ---

// There is none before the first task of a frame.
static void serve_a_frame(void) {
    event runs = {0};
    framed_begin();
    submit_pointer(f.t, in_frame(), run_event, &runs);
    assert_int_equal(framed_wait(NB_NEVER_NS, NULL), NB_OK);
}

TEST(one_worker_is_left_for_frame_bound_work) {
    framed_open(3);
    held floating = {0};
    event frames = {0};
    serve_a_frame();
    for (int i = 0; i < 5; ++i) submit_pointer(f.t, (nb_task_desc){0}, run_held, &floating);
    assert_true(event_await(&floating.started, 2));
    // The third worker takes frame-bound work, and only that, though there is other work for it.
    for (uint32_t frame = 1; frame <= 3; ++frame) {
        framed_begin();
        submit_pointer(f.t, in_frame(), run_event, &frames);
        assert_true(event_await(&frames, frame));
        assert_int_equal(framed_wait(NB_NEVER_NS, NULL), NB_OK);
    }
    assert_int_equal(event_count(&floating.started), 2);
    held_end(&floating, 5);
    framed_close();
}

// The desc has another ceiling: none, a low one, and the highest number there is.
TEST(ceiling_is_as_the_desc_says) {
    const uint32_t maxima[] = {3, 1, UINT32_MAX}, running[] = {3, 1, 3};
    for (int i = 0; i < 3; ++i) {
        framed_open_desc((nb_scheduler_desc){.worker_count = 3, .floating_worker_count_max = maxima[i]});
        held floating = {0};
        event frames = {0};
        serve_a_frame();
        for (int j = 0; j < 5; ++j) submit_pointer(f.t, (nb_task_desc){0}, run_held, &floating);
        assert_true(event_await(&floating.started, running[i]));
        framed_begin();
        submit_pointer(f.t, in_frame(), run_event, &frames);
        assert_int_equal(framed_wait(NB_NEVER_NS, NULL), NB_OK);
        assert_int_equal(event_count(&floating.started), running[i]);
        held_end(&floating, 5);
        framed_close();
    }
}

// When a worker turns away from floating work, another one that sleeps takes what is queued.
TEST(floating_work_goes_on_when_there_is_room_again) {
    framed_open(2);
    for (int round = 0; round < 50; ++round) {
        held floating = {0};
        event runs = {0};
        serve_a_frame();
        submit_held(f.t, (nb_task_desc){0}, &floating);
        submit_pointer(f.t, (nb_task_desc){0}, run_event, &runs);
        uint64_t start_ns = nbi_clock_now_ns();
        event_set(&floating.may_end);
        assert_true(event_await(&runs, 1));
        assert_true(nbi_clock_now_ns() - start_ns < WAKE_LIMIT_NS);
        AWAIT(event_count(&floating.ended) == 1);
    }
    framed_close();
}

// --- memory ---

typedef struct taken {
    nb_arena *arenas[2];
    void *blocks[2];
    bool is_kept; // the second task got the memory of the first
} taken;

static void run_take(nb_task_context *context, void *argument) {
    taken *k = pointer_of(argument);
    int index = k->arenas[0] == NULL ? 0 : 1;
    k->arenas[index] = nb_task_arena(context);
    if (k->arenas[index] == NULL) return;
    k->blocks[index] = nb_arena_alloc(k->arenas[index], 64, 16);
    if (k->blocks[index] != NULL) memset(k->blocks[index], 0x5A, 64);
}

TEST(floating_task_has_memory_until_it_returns) {
    framed_open(0);
    taken k = {0};
    for (int i = 0; i < 2; ++i) {
        submit_pointer(f.t, (nb_task_desc){0}, run_take, &k);
        assert_int_equal(nb_scheduler_help(f.t->scheduler, 0, NULL), NB_OK);
    }
    assert_non_null(k.blocks[0]);
    assert_ptr_equal(k.blocks[0], k.blocks[1]);
    framed_close();
}

// A late task's memory stays its own, whatever frames come and go meanwhile.
TEST(late_task_keeps_the_memory_of_its_frame) {
    nb_thread_arenas *arenas = NULL;
    nb_fence *fence = NULL;
    nb_thread_arenas_desc arenas_desc = {.slot_count = 2};
    assert_int_equal(nb_thread_arenas_create(&arenas_desc, &arenas), NB_OK);
    nb_fence_desc fence_desc = {.arenas = arenas};
    assert_int_equal(nb_fence_create(&fence_desc, &fence), NB_OK);
    tasks *t = tasks_open_desc(
        (nb_scheduler_desc){.worker_count = NB_WORKER_COUNT_NONE, .task_count_max = 256, .arenas = arenas});
    taken k = {0};
    nb_fence_frame frame;
    nb_task_desc bound = {.fence = fence, .lifetime = NB_LIFETIME_FRAME};
    assert_int_equal(nb_fence_begin(fence, &frame), NB_OK);
    submit_pointer(t, bound, run_take, &k);
    nb_task late = submit_pointer(t, bound, run_take, &k);
    assert_int_equal(nb_scheduler_help(t->scheduler, 0, NULL), NB_OK);
    for (int i = 0; i < 10; ++i) { // far more frames than the arenas keep without a pin
        nb_fence_frame next;
        assert_int_equal(nb_fence_begin(fence, &next), NB_OK);
        taken other = {0};
        submit_pointer(t, bound, run_take, &other);
        assert_int_equal(nb_scheduler_frame_wait(t->scheduler, fence, next, NB_NEVER_NS, NULL), NB_OK);
        assert_non_null(other.blocks[0]);
        memset(other.blocks[0], 0xFF, 64);
    }
    for (int i = 0; i < 64; ++i) assert_int_equal(((const unsigned char *)k.blocks[0])[i], 0x5A);
    assert_int_equal(nb_task_wait(t->scheduler, late, NB_NEVER_NS), NB_OK);
    assert_ptr_equal(k.arenas[0], k.arenas[1]);
    tasks_close(t);
    assert_int_equal(nb_fence_destroy(fence), NB_OK);
    assert_int_equal(nb_thread_arenas_destroy(arenas), NB_OK);
}

TEST(quarantined_label_no_longer_holds_its_frame) {
    tasks *t = tasks_open(1);
    nb_labels *labels = NULL;
    nb_label slow = {0};
    assert_int_equal(nb_labels_create(NULL, &labels), NB_OK);
    assert_int_equal(nb_labels_intern(labels, "slow", &slow), NB_OK);
    nb_fence *fence = NULL;
    nb_fence_desc desc = {.strike_count_max = 3, .labels = labels};
    desc.hooks.logger.level_min = NB_LOG_OFF;
    assert_int_equal(nb_fence_create(&desc, &fence), NB_OK);
    for (int i = 0; i < 5; ++i) {
        nb_fence_frame frame;
        held late = {0};
        assert_int_equal(nb_fence_begin(fence, &frame), NB_OK);
        nb_task_desc bound = {.fence = fence, .lifetime = NB_LIFETIME_FRAME, .label = slow};
        nb_task task = submit_held(t, bound, &late);
        nb_result result = nb_scheduler_frame_wait(t->scheduler, fence, frame, nbi_clock_now_ns() + 1000000, NULL);
        assert_int_equal(result, i < 3 ? NB_TIMEOUT : NB_OK);
        held_wait(t, &late, task);
    }
    assert_true(nb_fence_is_quarantined(fence, slow));
    tasks_close(t);
    assert_int_equal(nb_fence_destroy(fence), NB_OK);
    nb_labels_destroy(labels);
}
