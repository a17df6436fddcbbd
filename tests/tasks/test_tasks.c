// SPDX-License-Identifier: MIT
// Tasks from submit to end, handles, room, workers, and the threads that may use a scheduler.

#include "tasks/tasks_fixture.h"

#include <fenv.h>

// --- one task ---

typedef struct copied {
    unsigned char bytes[NB_TASK_ARGUMENT_SIZE_MAX];
} copied;

static struct {
    size_t size_bytes;
    unsigned char first;
    uint32_t failures, runs;
} copy_expected;

static void run_copied(nb_task_context *context, void *argument) {
    (void)context;
    const unsigned char *bytes = argument;
    ++copy_expected.runs;
    if ((uintptr_t)argument % 16 != 0) ++copy_expected.failures;
    for (size_t i = 0; i < copy_expected.size_bytes; ++i) {
        if (bytes[i] != (unsigned char)(copy_expected.first + i)) ++copy_expected.failures;
    }
}

TEST(argument_of_any_size_is_copied) {
    tasks *t = tasks_open(0);
    memset(&copy_expected, 0, sizeof copy_expected);
    for (size_t size = 0; size <= NB_TASK_ARGUMENT_SIZE_MAX; ++size) {
        copied argument;
        copy_expected.size_bytes = size;
        copy_expected.first = (unsigned char)(3 * size);
        for (size_t i = 0; i < size; ++i) argument.bytes[i] = (unsigned char)(copy_expected.first + i);
        nb_task_desc desc = {
            .run = run_copied, .argument = size != 0 ? argument.bytes : NULL, .argument_size_bytes = size};
        assert_int_equal(nb_task_submit(t->scheduler, &desc, NULL), NB_OK);
        memset(&argument, 0xEE, sizeof argument);
        assert_int_equal(nb_scheduler_help(t->scheduler, 0, NULL), NB_OK);
    }
    assert_int_equal(copy_expected.runs, NB_TASK_ARGUMENT_SIZE_MAX + 1);
    assert_int_equal(copy_expected.failures, 0);
    tasks_close(t);
}

typedef struct noted {
    nb_task_context context;
    nb_task own;
    uint32_t runs;
} noted;

static void run_noted(nb_task_context *context, void *argument) {
    noted *n = pointer_of(argument);
    n->context = *context;
    ++n->runs;
}

TEST(context_says_what_the_task_is) {
    tasks *t = tasks_open(0);
    nb_token *token = NULL;
    nb_token_desc token_desc = {.hooks = test_hooks(NULL, &t->heap)};
    assert_int_equal(nb_token_create(&token_desc, &token), NB_OK);
    for (int priority = NB_PRIORITY_DEFAULT; priority < NB_PRIORITY_COUNT; ++priority) {
        noted n = {0};
        nb_task task = submit_pointer(
            t, (nb_task_desc){.label = {77}, .token = token, .priority = (nb_priority)priority}, run_noted, &n);
        assert_int_equal(nb_scheduler_help(t->scheduler, 0, NULL), NB_OK);
        assert_int_equal(n.runs, 1);
        assert_ptr_equal(n.context.scheduler, t->scheduler);
        assert_int_equal(n.context.task.value, task.value);
        assert_ptr_equal(n.context.token, token);
        assert_null(n.context.fence);
        assert_int_equal(n.context.frame.value, 0);
        assert_int_equal(n.context.thread_index, 0);
        assert_int_equal(n.context.label.id, 77);
        assert_int_equal(n.context.priority, priority == NB_PRIORITY_DEFAULT ? NB_PRIORITY_NORMAL : priority);
    }
    nb_token_release(token);
    tasks_close(t);
}

// --- handles ---

TEST(handle_of_an_ended_task_finds_nothing) {
    tasks *t = tasks_open_room(0, 8);
    event runs = {0};
    nb_task old = submit_pointer(t, (nb_task_desc){0}, run_event, &runs);
    assert_false(nb_task_is_complete(t->scheduler, old));
    assert_int_equal(nb_scheduler_help(t->scheduler, 0, NULL), NB_OK);
    // The slot is used again, over and over: the old handle is never the new task.
    for (int i = 0; i < 100; ++i) {
        nb_task task = submit_pointer(t, (nb_task_desc){0}, run_event, &runs);
        assert_int_not_equal(task.value, old.value);
        assert_true(nb_task_is_complete(t->scheduler, old));
        assert_int_equal(nb_task_cancel(t->scheduler, old), NB_EMPTY);
        assert_int_equal(nb_task_claim(t->scheduler, old), NB_EMPTY);
        assert_int_equal(nb_task_promote(t->scheduler, old, NB_PRIORITY_CRITICAL), NB_EMPTY);
        assert_int_equal(nb_task_wait(t->scheduler, old, 0), NB_OK);
        assert_false(nb_task_is_complete(t->scheduler, task));
        assert_int_equal(nb_scheduler_help(t->scheduler, 0, NULL), NB_OK);
        assert_true(nb_task_is_complete(t->scheduler, task));
    }
    assert_int_equal(event_count(&runs), 101);
    tasks_close(t);
}

// Values that no submit of this scheduler has given: a handle of another one, or anything.
TEST(handle_that_was_never_given_finds_nothing) {
    tasks *t = tasks_open_room(0, 256);
    uint64_t random = test_seed("handle_that_was_never_given_finds_nothing");
    for (uint32_t i = 0; i < 2000; ++i) {
        uint64_t bits = i < 512 ? i : i < 1024 ? UINT64_MAX - i + 512 : test_random(&random) >> (i % 64);
        nb_task task = {bits};
        assert_true(nb_task_is_complete(t->scheduler, task));
        assert_int_equal(nb_task_wait(t->scheduler, task, nbi_clock_now_ns() + 1000), NB_OK);
        assert_int_equal(nb_task_cancel(t->scheduler, task), NB_EMPTY);
        assert_int_equal(nb_task_claim(t->scheduler, task), NB_EMPTY);
        assert_int_equal(nb_task_promote(t->scheduler, task, NB_PRIORITY_HIGH), NB_EMPTY);
        nb_group group = {bits};
        assert_int_equal(nb_group_end(t->scheduler, group, 0), NB_ERR_STALE);
        assert_int_equal(nb_group_pending_count(t->scheduler, group), 0);
        nb_task_desc desc = {.run = run_nothing, .group = group};
        if (bits == 0) continue;
        nb_result result = nb_task_submit(t->scheduler, &desc, NULL);
        assert_true(result == NB_ERR_STALE || result == NB_CLOSED);
    }
    assert_int_equal(stats_of(t).submit_count, 0);
    tasks_close(t);
}

TEST(claimed_task_runs_here_and_once) {
    tasks *t = tasks_open(0);
    event runs = {0};
    nb_task first = submit_pointer(t, (nb_task_desc){0}, run_event, &runs);
    nb_task second = submit_pointer(t, (nb_task_desc){.priority = NB_PRIORITY_LOW}, run_event, &runs);
    assert_int_equal(nb_task_claim(t->scheduler, second), NB_OK);
    assert_int_equal(event_count(&runs), 1);
    assert_true(nb_task_is_complete(t->scheduler, second));
    assert_int_equal(nb_task_claim(t->scheduler, second), NB_EMPTY);
    assert_false(nb_task_is_complete(t->scheduler, first));
    uint64_t count = 77;
    assert_int_equal(nb_scheduler_help(t->scheduler, NB_NEVER_NS, &count), NB_OK);
    assert_int_equal(count, 1);
    assert_int_equal(nb_scheduler_help(t->scheduler, NB_NEVER_NS, &count), NB_EMPTY);
    assert_int_equal(count, 1);
    assert_int_equal(event_count(&runs), 2);
    tasks_close(t);
}

TEST(running_task_is_busy) {
    tasks *t = tasks_open(1);
    held h = {0};
    nb_task task = submit_held(t, (nb_task_desc){0}, &h);
    assert_int_equal(nb_task_claim(t->scheduler, task), NB_BUSY);
    assert_int_equal(nb_task_cancel(t->scheduler, task), NB_BUSY);
    assert_int_equal(nb_task_promote(t->scheduler, task, NB_PRIORITY_CRITICAL), NB_BUSY);
    assert_false(nb_task_is_complete(t->scheduler, task));
    held_wait(t, &h, task);
    assert_int_equal(h.ended.count.value, 1);
    tasks_close(t);
}

TEST(cancelled_task_never_runs) {
    tasks *t = tasks_open(0);
    event runs = {0};
    nb_task doomed[3];
    for (int i = 0; i < 3; ++i) doomed[i] = submit_pointer(t, (nb_task_desc){0}, run_event, &runs);
    for (int i = 0; i < 3; ++i) {
        assert_int_equal(nb_task_cancel(t->scheduler, doomed[i]), NB_OK);
        assert_true(nb_task_is_complete(t->scheduler, doomed[i]));
        assert_int_equal(nb_task_cancel(t->scheduler, doomed[i]), NB_EMPTY);
        assert_int_equal(nb_task_wait(t->scheduler, doomed[i], NB_NEVER_NS), NB_OK);
    }
    assert_int_equal(nb_scheduler_help(t->scheduler, NB_NEVER_NS, NULL), NB_EMPTY);
    assert_int_equal(event_count(&runs), 0);
    assert_ended(t, 0, 3);
    tasks_close(t);
}

TEST(promoted_task_goes_first_and_runs_once) {
    tasks *t = tasks_open(0);
    order ran = {0};
    nb_task low = submit_order(t, (nb_task_desc){.priority = NB_PRIORITY_LOW}, &ran, 1);
    submit_order(t, (nb_task_desc){.priority = NB_PRIORITY_NORMAL}, &ran, 2);
    submit_order(t, (nb_task_desc){.priority = NB_PRIORITY_HIGH}, &ran, 3);
    assert_int_equal(nb_task_promote(t->scheduler, low, NB_PRIORITY_LOW), NB_OK); // nothing to do
    assert_int_equal(nb_task_promote(t->scheduler, low, NB_PRIORITY_CRITICAL), NB_OK);
    assert_int_equal(nb_task_promote(t->scheduler, low, NB_PRIORITY_NORMAL), NB_OK); // higher already
    assert_int_equal(nb_scheduler_help(t->scheduler, NB_NEVER_NS, NULL), NB_OK);
    assert_int_equal(ran.count.value, 3);
    assert_int_equal(ran.ids[0], 1);
    assert_int_equal(ran.ids[1], 3);
    assert_int_equal(ran.ids[2], 2);
    assert_int_equal(nb_task_promote(t->scheduler, low, NB_PRIORITY_CRITICAL), NB_EMPTY);
    tasks_close(t);
}

TEST(promoting_again_takes_no_room) {
    tasks *t = tasks_open_room(0, 16);
    noted n = {0};
    nb_task low = submit_pointer(t, (nb_task_desc){.priority = NB_PRIORITY_LOW}, run_noted, &n);
    for (int i = 0; i < 100; ++i) {
        assert_int_equal(nb_task_promote(t->scheduler, low, NB_PRIORITY_HIGH), NB_OK);
        assert_int_equal(nb_scheduler_thread_stats_get(t->scheduler, 0).queued_count, 2); // the old entry and the new
    }
    event runs = {0};
    for (int i = 0; i < 8; ++i) submit_pointer(t, (nb_task_desc){.priority = NB_PRIORITY_HIGH}, run_event, &runs);
    assert_int_equal(nb_scheduler_help(t->scheduler, NB_NEVER_NS, NULL), NB_OK);
    assert_int_equal(n.runs, 1);
    assert_int_equal(n.context.priority, NB_PRIORITY_HIGH);
    assert_int_equal(event_count(&runs), 8);
    tasks_close(t);
}

// --- room ---

#define ROOM 64

static nb_result submit_plain(tasks *t, nb_priority priority, event *runs) {
    nb_task_desc desc = {.run = run_event, .argument = &runs, .argument_size_bytes = sizeof runs, .priority = priority};
    return nb_task_submit(t->scheduler, &desc, NULL);
}

TEST(full_pool_keeps_an_eighth_for_critical) {
    static const nb_priority levels[] = {NB_PRIORITY_LOW, NB_PRIORITY_NORMAL, NB_PRIORITY_HIGH};
    tasks *t = tasks_open_room(0, ROOM);
    for (uint32_t round = 1; round <= 3; ++round) {
        event runs = {0};
        for (uint32_t i = 0; i < ROOM - ROOM / 8; ++i) {
            assert_int_equal(submit_plain(t, levels[i % 3], &runs), NB_OK);
        }
        for (int i = 0; i < 3; ++i) assert_int_equal(submit_plain(t, levels[i], &runs), NB_FULL);
        for (uint32_t i = 0; i < ROOM / 8; ++i) {
            assert_int_equal(submit_plain(t, NB_PRIORITY_CRITICAL, &runs), NB_OK);
        }
        assert_int_equal(submit_plain(t, NB_PRIORITY_CRITICAL, &runs), NB_FULL);
        assert_int_equal(stats_of(t).alive_count, ROOM);
        assert_int_equal(stats_of(t).full_count, round * 4);
        assert_int_equal(stats_of(t).refuse_count, round * 4);
        uint64_t count = 0;
        assert_int_equal(nb_scheduler_help(t->scheduler, NB_NEVER_NS, &count), NB_OK);
        assert_int_equal(count, ROOM);
        assert_int_equal(event_count(&runs), ROOM);
    }
    tasks_close(t);
}

typedef struct inline_note {
    uint64_t thread_id;
    bool is_aligned;
    nb_priority priority;
    uint32_t runs;
} inline_note;

static void run_inline_note(nb_task_context *context, void *argument) {
    inline_note *note = pointer_of(argument);
    note->thread_id = nbi_thread_id();
    note->is_aligned = (uintptr_t)argument % 16 == 0;
    note->priority = context->priority;
    ++note->runs;
    nb_task_set_result(context, NB_ERR_RANGE);
}

static nb_task_desc inline_desc(inline_note *const *pointer, nb_group group) {
    nb_task_desc desc = {.run = run_inline_note, .argument = pointer, .argument_size_bytes = sizeof *pointer};
    desc.group = group, desc.runs_inline = true;
    return desc;
}

TEST(task_without_room_runs_inline_if_asked) {
    tasks *t = tasks_open_room(0, 8);
    event runs = {0};
    uint32_t accepted = 0;
    nb_group group = group_begin(t);
    while (submit_plain(t, NB_PRIORITY_NORMAL, &runs) == NB_OK) ++accepted;
    inline_note note = {0}, *pointer = &note;
    nb_task_desc desc = inline_desc(&pointer, group);
    nb_task task = {0x5A};
    assert_int_equal(nb_task_submit(t->scheduler, &desc, &task), NB_OK);
    assert_int_equal(note.runs, 1);
    assert_int_equal(note.thread_id, nbi_thread_id());
    assert_true(note.is_aligned);
    assert_int_equal(note.priority, NB_PRIORITY_NORMAL);
    assert_true(nb_task_is_complete(t->scheduler, task));
    assert_int_equal(stats_of(t).inline_count, 1);
    assert_int_equal(stats_of(t).run_count, 1);
    assert_int_equal(stats_of(t).refuse_count, 1);
    assert_int_equal(stats_of(t).full_count, 2);
    // With room it is queued like any other.
    assert_int_equal(nb_scheduler_help(t->scheduler, NB_NEVER_NS, NULL), NB_OK);
    assert_int_equal(nb_task_submit(t->scheduler, &desc, NULL), NB_OK);
    assert_int_equal(note.runs, 1);
    assert_int_equal(nb_scheduler_help(t->scheduler, NB_NEVER_NS, NULL), NB_OK);
    assert_int_equal(note.runs, 2);
    assert_int_equal(event_count(&runs), accepted);
    assert_int_equal(nb_group_end(t->scheduler, group, 0), NB_ERR_RANGE);
    tasks_close(t);
}

TEST(inline_task_tells_its_group_and_needs_one_that_is_open) {
    tasks *t = tasks_open_room(0, 8);
    event runs = {0};
    nb_group group = group_begin(t);
    while (submit_plain(t, NB_PRIORITY_NORMAL, &runs) == NB_OK) {
    }
    inline_note note = {0}, *pointer = &note;
    nb_task_desc desc = inline_desc(&pointer, group);
    assert_int_equal(nb_task_submit(t->scheduler, &desc, NULL), NB_OK);
    assert_int_equal(note.runs, 1);
    assert_int_equal(nb_group_end(t->scheduler, group, 0), NB_ERR_RANGE); // what the task has set
    nb_result result = nb_task_submit(t->scheduler, &desc, NULL);
    assert_true(result == NB_CLOSED || result == NB_ERR_STALE);
    assert_int_equal(note.runs, 1);
    tasks_close(t);
}

// Whatever ends a task gives back all its room, though nobody looks through the queues.
TEST(ended_tasks_leave_their_room) {
    tasks *t = tasks_open_room(0, 16);
    event runs = {0};
    for (int i = 0; i < 200; ++i) {
        nb_task task = submit_pointer(t, (nb_task_desc){0}, run_event, &runs);
        assert_int_equal(nb_task_wait(t->scheduler, task, NB_NEVER_NS), NB_OK);
    }
    for (int i = 0; i < 200; ++i) {
        nb_task task = submit_pointer(t, (nb_task_desc){.priority = NB_PRIORITY_HIGH}, run_event, &runs);
        assert_int_equal(nb_task_cancel(t->scheduler, task), NB_OK);
    }
    for (int i = 0; i < 200; ++i) {
        nb_task task = submit_pointer(t, (nb_task_desc){.priority = NB_PRIORITY_LOW}, run_event, &runs);
        assert_int_equal(nb_task_claim(t->scheduler, task), NB_OK);
    }
    assert_int_equal(event_count(&runs), 400);
    tasks_close(t);
}

TEST(pool_smaller_than_the_threads_goes_round) {
    for (uint32_t room = 1; room <= 4; ++room) {
        tasks *t = tasks_open_room(3, room);
        event runs = {0};
        for (uint32_t i = 0; i < 50; ++i) {
            void *pointer = &runs;
            nb_task_desc desc = task_with_pointer(run_event, &pointer);
            desc.priority = NB_PRIORITY_CRITICAL;
            // A task has ended a moment before its room is free.
            nb_result result = NB_FULL;
            uint64_t end_ns = nbi_clock_now_ns() + LIMIT_NS;
            while (result == NB_FULL && nbi_clock_now_ns() < end_ns) {
                result = nb_task_submit(t->scheduler, &desc, NULL);
            }
            assert_int_equal(result, NB_OK);
            // By events alone, so that workers run it too.
            assert_true(event_await(&runs, i + 1));
        }
        tasks_close(t);
    }
}

// --- workers ---

typedef struct worker_notes {
    nb_atomic_u32 starts, stops, failures;
    nb_atomic_u32 started_mask, stopped_mask;
} worker_notes;

static void worker_note_start(void *user, uint32_t index) {
    worker_notes *notes = user;
    char expected[32], name[32] = "";
    snprintf(expected, sizeof expected, "nebula-worker-%u", (unsigned)index);
    FILE *file = fopen("/proc/thread-self/comm", "r");
    if (file == NULL || fgets(name, sizeof name, file) == NULL) name[0] = 0;
    if (file != NULL) fclose(file);
    name[strcspn(name, "\n")] = 0;
    if (strcmp(name, expected) != 0) nbi_atomic_fetch_add_seq_cst_u32(&notes->failures, 1);
    nbi_atomic_fetch_or_seq_cst_u32(&notes->started_mask, 1u << index);
    nbi_atomic_fetch_add_seq_cst_u32(&notes->starts, 1);
}

static void worker_note_stop(void *user, uint32_t index) {
    worker_notes *notes = user;
    nbi_atomic_fetch_or_seq_cst_u32(&notes->stopped_mask, 1u << index);
    nbi_atomic_fetch_add_seq_cst_u32(&notes->stops, 1);
}

TEST(workers_have_names_and_call_their_hooks_once) {
    worker_notes notes = {0};
    tasks *t = tasks_open_desc((nb_scheduler_desc){
        .worker_count = 4, .on_start = worker_note_start, .on_stop = worker_note_stop, .user = &notes});
    AWAIT(nbi_atomic_load_seq_cst_u32(&notes.starts) == 4);
    assert_int_equal(nbi_atomic_load_seq_cst_u32(&notes.stops), 0);
    assert_int_equal(stats_of(t).worker_count, 4);
    assert_int_equal(stats_of(t).thread_count, 5);
    tasks_close(t);
    assert_int_equal(notes.starts.value, 4);
    assert_int_equal(notes.stops.value, 4);
    assert_int_equal(notes.started_mask.value, 15);
    assert_int_equal(notes.stopped_mask.value, 15);
    assert_int_equal(notes.failures.value, 0);
}

typedef struct fp_note {
    int rounding;
    uint32_t thread_index;
    event done;
} fp_note;

static void run_fp_note(nb_task_context *context, void *argument) {
    fp_note *note = pointer_of(argument);
    note->rounding = fegetround();
    note->thread_index = context->thread_index;
    event_set(&note->done);
}

TEST(tasks_round_to_nearest_whatever_the_host_does) {
    fenv_t before;
    assert_int_equal(fegetenv(&before), 0);
    fesetround(FE_TOWARDZERO);
    tasks *t = tasks_open(1);
    fesetenv(&before);
    fp_note note = {0};
    submit_pointer(t, (nb_task_desc){0}, run_fp_note, &note);
    assert_true(event_await(&note.done, 1));
    assert_int_equal(note.thread_index, 1);
    assert_int_equal(note.rounding, FE_TONEAREST);
    tasks_close(t);
}

typedef struct cpu_note {
    int cpu;
    event done;
} cpu_note;

static void run_cpu_note(nb_task_context *context, void *argument) {
    (void)context;
    cpu_note *note = pointer_of(argument);
    note->cpu = nbi_cpu_current();
    event_set(&note->done);
}

TEST(worker_stays_on_its_cpus) {
    uint64_t usable = nbi_cpu_mask();
    if (usable == 0 || !nbi_platform_has(NBI_ABILITY_THREAD_AFFINITY)) skip();
    for (int cpu = 0; cpu < 64; ++cpu) {
        if ((usable & (uint64_t)1 << cpu) == 0) continue;
        uint64_t mask = (uint64_t)1 << cpu;
        tasks *t = tasks_open_desc((nb_scheduler_desc){.worker_count = 1, .affinity = &mask});
        cpu_note note = {.cpu = -1};
        submit_pointer(t, (nb_task_desc){0}, run_cpu_note, &note);
        assert_true(event_await(&note.done, 1));
        assert_int_equal(note.cpu, cpu);
        tasks_close(t);
    }
}

TEST(empty_scheduler_does_nothing) {
    for (uint32_t workers = 0; workers <= 2; ++workers) {
        tasks *t = tasks_open(workers);
        uint64_t count = 5;
        assert_int_equal(nb_scheduler_help(t->scheduler, NB_NEVER_NS, &count), NB_EMPTY);
        assert_int_equal(nb_scheduler_help(t->scheduler, 0, NULL), NB_EMPTY);
        assert_int_equal(count, 5);
        assert_int_equal(nb_scheduler_prewake(t->scheduler, 0), NB_OK);
        assert_int_equal(nb_scheduler_prewake(t->scheduler, NB_SCHEDULER_PREWAKE_NS_MAX), NB_OK);
        nb_scheduler_stats stats = stats_of(t);
        assert_int_equal(stats.submit_count + stats.run_count + stats.cancel_count + stats.alive_count, 0);
        tasks_close(t);
    }
}

TEST(defaults_suit_this_machine) {
    nb_scheduler_desc desc = nb_scheduler_desc_default();
    uint32_t cpus = nbi_cpu_count();
    assert_int_equal(desc.worker_count, cpus > 1 ? (cpus < 61 ? cpus - 1 : 60) : 1);
    assert_int_equal(desc.task_count_max, NB_TASK_COUNT_DEFAULT);
    assert_int_equal(desc.group_count_max, NB_GROUP_COUNT_DEFAULT);
    assert_int_equal(desc.stack_size_bytes, NB_WORKER_STACK_SIZE_DEFAULT);
    nb_scheduler *scheduler = NULL;
    assert_int_equal(nb_scheduler_create(NULL, &scheduler), NB_OK);
    assert_int_equal(nb_scheduler_stats_get(scheduler).worker_count, desc.worker_count);
    assert_int_equal(nb_scheduler_destroy(scheduler), NB_OK);
    assert_int_equal(nb_scheduler_destroy(NULL), NB_OK);
}

typedef struct pairs {
    nb_atomic_u32 arrived, failures;
    nb_atomic_u32 per_thread[4];
} pairs;

// Two of these run at the same moment, or none ends.
static void run_pair(nb_task_context *context, void *argument) {
    pairs *p = pointer_of(argument);
    nbi_atomic_fetch_add_seq_cst_u32(&p->per_thread[context->thread_index], 1);
    uint32_t wanted = nbi_atomic_fetch_add_seq_cst_u32(&p->arrived, 1) / 2 * 2 + 2;
    uint64_t end_ns = nbi_clock_now_ns() + LIMIT_NS;
    while (nbi_atomic_load_seq_cst_u32(&p->arrived) < wanted) {
        if (nbi_clock_now_ns() > end_ns || nbi_atomic_load_seq_cst_u32(&p->failures) != 0) {
            nbi_atomic_fetch_add_seq_cst_u32(&p->failures, 1);
            return;
        }
        nbi_thread_yield();
    }
}

TEST(no_thread_runs_more_than_60_percent) {
    tasks *t = tasks_open(1);
    pairs p = {0};
    nb_group group = group_begin(t);
    for (int i = 0; i < 1000; ++i) submit_pointer(t, (nb_task_desc){.group = group}, run_pair, &p);
    assert_int_equal(nb_group_end(t->scheduler, group, NB_NEVER_NS), NB_OK);
    assert_int_equal(p.failures.value, 0);
    assert_int_equal(p.per_thread[0].value + p.per_thread[1].value, 1000);
    assert_in_range(p.per_thread[0].value, 400, 600);
    assert_int_equal(nb_scheduler_thread_stats_get(t->scheduler, 0).run_count, p.per_thread[0].value);
    assert_int_equal(nb_scheduler_thread_stats_get(t->scheduler, 1).run_count, p.per_thread[1].value);
    tasks_close(t);
}

TEST(four_tasks_run_at_once_on_workers) {
    tasks *t = tasks_open(4);
    held h = {0};
    submit_started(t, (nb_task_desc){0}, run_held, &h, &h.started, 4);
    event_set(&h.may_end);
    assert_true(event_await(&h.ended, 4));
    assert_int_equal(h.timeouts.value, 0);
    tasks_close(t);
}

// --- threads ---

typedef struct across {
    nb_scheduler *other;
    event runs;
    nb_result result;
} across;

static void run_across(nb_task_context *context, void *argument) {
    (void)context;
    across *a = pointer_of(argument);
    event *runs = &a->runs;
    nb_group group = {0};
    nb_group_begin(a->other, &group);
    nb_task_desc desc = {.run = run_event, .argument = &runs, .argument_size_bytes = sizeof runs, .group = group};
    for (int i = 0; i < 50; ++i) nb_task_submit(a->other, &desc, NULL);
    a->result = nb_group_end(a->other, group, NB_NEVER_NS);
}

TEST(schedulers_know_nothing_of_each_other) {
    for (uint32_t workers = 0; workers <= 2; ++workers) {
        tasks *first = tasks_open(workers), *second = tasks_open(workers);
        across a = {.other = second->scheduler, .result = NB_ERR_OS};
        nb_task task = submit_pointer(first, (nb_task_desc){0}, run_across, &a);
        assert_int_equal(nb_task_wait(first->scheduler, task, NB_NEVER_NS), NB_OK);
        assert_int_equal(a.result, NB_OK);
        assert_int_equal(event_count(&a.runs), 50);
        assert_int_equal(stats_of(first).submit_count, 1);
        assert_int_equal(stats_of(second).submit_count, 50);
        tasks_close(first);
        event runs = {0};
        task = submit_pointer(second, (nb_task_desc){0}, run_event, &runs);
        assert_int_equal(nb_task_wait(second->scheduler, task, NB_NEVER_NS), NB_OK);
        tasks_close(second);
    }
}

typedef struct external {
    tasks *t;
    bool is_attached;
    once *seen;
    nb_atomic_u32 failures;
    event attached, may_detach;
} external;

#define EXTERNAL_THREADS 4
#define EXTERNAL_TASKS 200

static void use_from_outside(void *user, uint32_t index) {
    external *x = user;
    nb_scheduler *scheduler = x->t->scheduler;
    bool is_fine = !x->is_attached || nb_scheduler_attach(scheduler) == NB_OK;
    nb_group group = {0};
    is_fine = is_fine && nb_group_begin(scheduler, &group) == NB_OK;
    for (uint32_t i = 0; i < EXTERNAL_TASKS; ++i) {
        once_entry entry = {x->seen, index * EXTERNAL_TASKS + i};
        nb_task_desc desc = {.run = run_once, .argument = &entry, .argument_size_bytes = sizeof entry, .group = group};
        nb_task task = {0};
        is_fine = is_fine && nb_task_submit(scheduler, &desc, &task) == NB_OK;
        if (i % 8 == 0) is_fine = is_fine && nb_task_wait(scheduler, task, NB_NEVER_NS) == NB_OK;
    }
    is_fine = is_fine && nb_group_end(scheduler, group, NB_NEVER_NS) == NB_OK;
    if (x->is_attached) is_fine = is_fine && nb_scheduler_detach(scheduler) == NB_OK;
    if (!is_fine) nbi_atomic_fetch_add_seq_cst_u32(&x->failures, 1);
}

TEST(other_threads_submit_and_wait) {
    static once seen;
    for (uint32_t workers = 0; workers <= 2; ++workers) {
        for (int is_attached = 0; is_attached <= 1; ++is_attached) {
            tasks *t = tasks_open(workers);
            memset(&seen, 0, sizeof seen);
            external x = {.t = t, .is_attached = is_attached != 0, .seen = &seen};
            test_threads_run(EXTERNAL_THREADS, use_from_outside, &x);
            assert_int_equal(x.failures.value, 0);
            assert_true(once_is_exact(&seen, EXTERNAL_THREADS * EXTERNAL_TASKS));
            tasks_close(t);
        }
    }
}

static void attach_submit_detach(void *user, uint32_t index) {
    (void)index;
    external *x = user;
    nb_scheduler *scheduler = x->t->scheduler;
    bool is_fine = nb_scheduler_attach(scheduler) == NB_OK && nb_scheduler_attach(scheduler) == NB_ERR_MISUSE;
    for (uint32_t i = 0; i < 10; ++i) {
        once_entry entry = {x->seen, i};
        nb_task_desc desc = {.run = run_once, .argument = &entry, .argument_size_bytes = sizeof entry};
        is_fine = is_fine && nb_task_submit(scheduler, &desc, NULL) == NB_OK;
    }
    event_set(&x->attached);
    event_await(&x->may_detach, 1);
    is_fine = is_fine && nb_scheduler_detach(scheduler) == NB_OK && nb_scheduler_detach(scheduler) == NB_ERR_THREAD;
    if (!is_fine) nbi_atomic_fetch_add_seq_cst_u32(&x->failures, 1);
}

TEST(tasks_of_a_detached_thread_are_run_by_others) {
    static once seen;
    memset(&seen, 0, sizeof seen);
    tasks *t = tasks_open(0);
    external x = {.t = t, .seen = &seen};
    test_thread thread;
    test_threads_start(&thread, 1, attach_submit_detach, &x);
    assert_true(event_await(&x.attached, 1));
    assert_int_equal(nb_scheduler_destroy(t->scheduler), NB_BUSY); // a thread is attached, and nothing was done
    event_set(&x.may_detach);
    test_threads_join(&thread, 1);
    assert_int_equal(x.failures.value, 0);
    uint64_t count = 0;
    assert_int_equal(nb_scheduler_help(t->scheduler, NB_NEVER_NS, &count), NB_OK);
    assert_int_equal(count, 10);
    assert_true(once_is_exact(&seen, 10));
    tasks_close(t);
}

#define ATTACHED_MAX (NB_SCHEDULER_THREAD_COUNT_MAX - 2)

typedef struct attached_many {
    tasks *t;
    event tried, may_end;
    nb_atomic_u32 ok, full;
} attached_many;

static void attach_and_stay(void *user, uint32_t index) {
    (void)index;
    attached_many *many = user;
    nb_result result = nb_scheduler_attach(many->t->scheduler);
    if (result == NB_OK) nbi_atomic_fetch_add_seq_cst_u32(&many->ok, 1);
    if (result == NB_FULL) nbi_atomic_fetch_add_seq_cst_u32(&many->full, 1);
    event_set(&many->tried);
    event_await(&many->may_end, 1);
    if (result == NB_OK) nb_scheduler_detach(many->t->scheduler);
}

typedef struct laneless {
    tasks *t;
    nb_result task_result, group_result, early_result;
    held h;
    event runs, waiting;
} laneless;

// There is no lane for this thread: it can submit and wait, and others do the work.
static void use_without_a_lane(void *user, uint32_t index) {
    (void)index;
    laneless *l = user;
    held *h = &l->h;
    event *runs = &l->runs;
    nb_scheduler *scheduler = l->t->scheduler;
    nb_group group = {0};
    nb_group_begin(scheduler, &group);
    nb_task task = {0};
    // Keeps the only worker until this thread sleeps.
    nb_task_desc first = {.run = run_held, .argument = &h, .argument_size_bytes = sizeof h, .group = group};
    nb_task_desc desc = {.run = run_event, .argument = &runs, .argument_size_bytes = sizeof runs, .group = group};
    nb_task_submit(scheduler, &first, &task);
    for (int i = 0; i < 100; ++i) nb_task_submit(scheduler, &desc, NULL);
    l->early_result = nb_task_wait(scheduler, task, nbi_clock_now_ns() + 1000);
    event_set(&l->waiting);
    l->task_result = nb_task_wait(scheduler, task, nbi_clock_now_ns() + LIMIT_NS);
    l->group_result = nb_group_end(scheduler, group, nbi_clock_now_ns() + LIMIT_NS);
}

TEST(threads_beyond_the_limit_still_submit_and_wait) {
    tasks *t = tasks_open(1);
    static attached_many many;
    memset(&many, 0, sizeof many);
    many.t = t;
    static test_thread threads[ATTACHED_MAX + 2];
    test_threads_start(threads, ATTACHED_MAX + 2, attach_and_stay, &many);
    assert_true(event_await(&many.tried, ATTACHED_MAX + 2));
    assert_int_equal(many.ok.value, ATTACHED_MAX);
    assert_int_equal(many.full.value, 2);
    assert_int_equal(stats_of(t).thread_count, NB_SCHEDULER_THREAD_COUNT_MAX);
    laneless l = {.t = t, .task_result = NB_ERR_OS, .group_result = NB_ERR_OS};
    test_thread last;
    test_threads_start(&last, 1, use_without_a_lane, &l);
    assert_true(event_await(&l.waiting, 1));
    // Time to fall asleep; if it does not, it is caught on the way.
    nbi_sleep_until_ns(nbi_clock_now_ns() + 2000000);
    uint64_t start_ns = nbi_clock_now_ns();
    event_set(&l.h.may_end);
    test_threads_join(&last, 1);
    assert_true(nbi_clock_now_ns() - start_ns < WAKE_LIMIT_NS);
    assert_int_equal(l.early_result, NB_TIMEOUT);
    assert_int_equal(l.task_result, NB_OK);
    assert_int_equal(l.group_result, NB_OK);
    assert_int_equal(event_count(&l.runs), 100);
    event_set(&many.may_end);
    test_threads_join(threads, ATTACHED_MAX + 2);
    tasks_close(t);
}

static void try_destroy(void *user) {
    laneless *l = user;
    l->task_result = nb_scheduler_destroy(l->t->scheduler);
}

static void run_destroy(nb_task_context *context, void *argument) {
    laneless *l = pointer_of(argument);
    l->group_result = nb_scheduler_destroy(context->scheduler);
}

TEST(coordinator_is_the_thread_that_created_it) {
    tasks *t = tasks_open(0);
    laneless l = {.t = t};
    test_thread_run(try_destroy, &l);
    assert_int_equal(l.task_result, NB_ERR_THREAD);
    submit_pointer(t, (nb_task_desc){0}, run_destroy, &l);
    assert_int_equal(nb_scheduler_help(t->scheduler, 0, NULL), NB_OK);
    assert_int_equal(l.group_result, NB_ERR_THREAD);
    assert_int_equal(test_log_count(&t->log, NB_ITEM_TASK_THREAD), 2);
    assert_int_equal(nb_scheduler_detach(t->scheduler), NB_ERR_THREAD);
    assert_int_equal(nb_scheduler_attach(t->scheduler), NB_ERR_MISUSE);
    tasks_close(t);
}

TEST(queued_count_is_what_lies_in_a_threads_queues) {
    tasks *t = tasks_open(0);
    event runs = {0};
    for (uint32_t i = 0; i < 10; ++i) {
        assert_int_equal(nb_scheduler_thread_stats_get(t->scheduler, 0).queued_count, i);
        submit_plain(t, (nb_priority)(1 + i % 4), &runs);
    }
    assert_int_equal(nb_scheduler_help(t->scheduler, NB_NEVER_NS, NULL), NB_OK);
    assert_int_equal(nb_scheduler_thread_stats_get(t->scheduler, 0).queued_count, 0);
    assert_int_equal(nb_scheduler_thread_stats_get(t->scheduler, 0).run_count, 10);
    tasks_close(t);
}

TEST(end_wakes_workers_that_sleep) {
    tasks *t = tasks_open(2);
    AWAIT(parks_of(t, 1) > 0 && parks_of(t, 2) > 0);
    tasks_close(t); // returns
}
