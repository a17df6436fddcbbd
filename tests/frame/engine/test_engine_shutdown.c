// SPDX-License-Identifier: MIT
// An engine whose handlers submit plain floating tasks and forget them: such tasks have every core where somebody waits
// for them, run without workers, and do not keep nb_engine_destroy, or the process, beyond desc.shutdown_ns.

#include "frame/engine/engine_fixture.h"
#include "tasks/tasks_fixture.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define SHUTDOWN_NS UINT64_C(20000000)

// --- an engine that is ended with tasks in flight ---

typedef struct careless {
    rig rig;
    nb_scheduler *borrowed; // NULL = the engine has its own
    held stuck;
    held late;
    event queued; // a task that never starts
    nb_atomic_u32 saw_stop;
    uint32_t submit_count, detach_count;
    nb_result result;
} careless;

static void run_stuck(nb_task_context *context, void *argument) {
    careless *c = pointer_of(argument);
    run_held(context, &(void *){&c->stuck});
    if (nb_task_should_stop(context)) nbi_atomic_store_relaxed_u32(&c->saw_stop, 1);
}

static void submit_plain(nb_scheduler *scheduler, nb_labels *labels, const char *name, task_function run,
                         void *pointer) {
    nb_task_desc desc = {.run = run, .argument = &pointer, .argument_size_bytes = sizeof pointer};
    assert_int_equal(nb_labels_intern(labels, name, &desc.label), NB_OK);
    assert_int_equal(nb_task_submit(scheduler, &desc, NULL), NB_OK);
}

static nb_result submit_stuck(const nb_context *context, void *user) {
    careless *c = user;
    if (c->submit_count++ > 0) return NB_OK;
    submit_plain(context->scheduler, nb_engine_labels(context->engine), "mesh", run_stuck, c);
    return NB_OK;
}

static void note_detach(nb_engine *engine, void *user) {
    (void)engine;
    ++((careless *)user)->detach_count;
}

static nb_scheduler *scheduler_with(uint32_t worker_count, nb_labels *labels) {
    nb_scheduler_desc desc = {.worker_count = worker_count != 0 ? worker_count : NB_WORKER_COUNT_NONE,
                              .labels = labels};
    nb_scheduler *scheduler = NULL;
    assert_int_equal(nb_scheduler_create(&desc, &scheduler), NB_OK);
    return scheduler;
}

static void careless_open(careless *c, uint32_t worker_count, bool is_borrowed) {
    memset(c, 0, sizeof *c);
    nb_engine_desc desc = rig_desc(worker_count);
    desc.shutdown_ns = SHUTDOWN_NS;
    if (is_borrowed) desc.scheduler = c->borrowed = scheduler_with(worker_count, NULL);
    rig_open_desc(&c->rig, desc);
    nb_module_desc module = {.name = "careless", .on_detach = note_detach, .user = c};
    module.handlers[NB_PHASE_FRAME_END] = submit_stuck;
    attach(&c->rig, module);
}

static void careless_close(careless *c) {
    rig_close(&c->rig);
    assert_int_equal(c->detach_count, 1);
    assert_int_equal(nb_scheduler_destroy(c->borrowed), NB_OK);
}

TEST(stuck_task_is_named_and_ends_the_engine_later) {
    for (int is_borrowed = 0; is_borrowed < 2; ++is_borrowed) {
        careless c;
        careless_open(&c, 2, is_borrowed != 0);
        run_ticks(&c.rig, 1);
        assert_true(event_await(&c.stuck.started, 1));
        for (uint32_t i = 1; i <= 2; ++i) {
            assert_int_equal(nb_engine_destroy(c.rig.engine), NB_BUSY);
            assert_int_equal(test_log_count(&c.rig.log, NB_ITEM_ENGINE_LEFTOVER), i);
            assert_non_null(strstr(c.rig.log.last_message, "\"mesh\""));
        }
        assert_int_equal(c.detach_count, 0); // the task may use what is the module's
        event_set(&c.stuck.may_end);
        assert_true(event_await(&c.stuck.ended, 1));
        while (nb_engine_destroy(c.rig.engine) == NB_BUSY) nbi_thread_yield();
        assert_int_equal(c.rig.heap.live_count.value, 0);
        assert_int_equal(c.saw_stop.value, 1);
        assert_int_equal(c.detach_count, 1);
        assert_int_equal(nb_scheduler_destroy(c.borrowed), NB_OK);
    }
}

// Its handler runs after AsyncPoll, which would run the task on the coordinator.
TEST(task_that_has_not_started_never_does) {
    for (int is_borrowed = 0; is_borrowed < 2; ++is_borrowed) {
        careless c;
        careless_open(&c, 0, is_borrowed != 0);
        run_ticks(&c.rig, 1);
        assert_true(c.submit_count > 0);
        careless_close(&c);
        assert_int_equal(event_count(&c.stuck.started), 0);
    }
}

// Another engine's task is none of its business.
TEST(stuck_task_of_another_engine_is_not_waited_for) {
    careless c;
    rig other;
    careless_open(&c, 2, true);
    nb_engine_desc desc = rig_desc(0);
    desc.scheduler = c.borrowed;
    rig_open_desc(&other, desc);
    run_ticks(&c.rig, 1);
    run_ticks(&other, 1);
    assert_true(event_await(&c.stuck.started, 1));
    rig_close(&other);
    assert_int_equal(test_log_count(&other.log, NB_ITEM_ENGINE_LEFTOVER), 0);
    event_set(&c.stuck.may_end);
    assert_true(event_await(&c.stuck.ended, 1));
    while (nb_engine_destroy(c.rig.engine) == NB_BUSY) nbi_thread_yield();
    assert_int_equal(nb_scheduler_destroy(c.borrowed), NB_OK);
}

static nb_result run_many(nb_engine *engine, event *runs) {
    nb_scheduler *scheduler = nb_engine_scheduler(engine);
    nb_group group;
    nb_result result = nb_group_begin(scheduler, &group);
    for (int i = 0; i < 10 && result == NB_OK; ++i) {
        void *pointer = runs;
        nb_task_desc desc = {
            .run = run_event, .argument = &pointer, .argument_size_bytes = sizeof pointer, .group = group};
        result = nb_task_submit(scheduler, &desc, NULL);
    }
    nb_result ended = nb_group_end(scheduler, group, NB_NEVER_NS);
    return result == NB_OK ? ended : result;
}

static void work_in_detach(nb_engine *engine, void *user) {
    careless *c = user;
    c->result = run_many(engine, &c->queued);
    submit_plain(nb_engine_scheduler(engine), nb_engine_labels(engine), "late", run_held, &c->late);
    ++c->detach_count;
}

// What it leaves behind there is waited for, too.
TEST(module_that_is_detached_has_tasks_as_ever) {
    careless c;
    memset(&c, 0, sizeof c);
    nb_engine_desc desc = rig_desc(1);
    desc.shutdown_ns = SHUTDOWN_NS;
    rig_open_desc(&c.rig, desc);
    attach(&c.rig, (nb_module_desc){.name = "tidy", .on_detach = work_in_detach, .user = &c});
    run_ticks(&c.rig, 1);
    nb_result result = nb_engine_destroy(c.rig.engine);
    assert_int_equal(c.result, NB_OK);
    assert_int_equal(event_count(&c.queued), 10);
    event_set(&c.late.may_end);
    while (result == NB_BUSY) result = nb_engine_destroy(c.rig.engine);
    assert_int_equal(result, NB_OK);
    assert_int_equal(event_count(&c.late.started), event_count(&c.late.ended));
    assert_int_equal(c.detach_count, 1);
    assert_int_equal(c.rig.heap.live_count.value, 0);
}

static void attach_and_detach(void *user, uint32_t index) {
    (void)index;
    careless *c = user;
    c->result = nb_scheduler_attach(nb_engine_scheduler(c->rig.engine));
    event_set(&c->stuck.started);
    event_await(&c->stuck.may_end, 1);
    nb_scheduler_detach(nb_engine_scheduler(c->rig.engine));
}

TEST(attached_thread_keeps_the_engine) {
    careless c;
    careless_open(&c, 1, false);
    test_thread thread;
    test_threads_start(&thread, 1, attach_and_detach, &c);
    assert_true(event_await(&c.stuck.started, 1));
    assert_int_equal(c.result, NB_OK);
    assert_int_equal(nb_engine_destroy(c.rig.engine), NB_BUSY);
    assert_non_null(strstr(c.rig.log.last_message, "attached"));
    event_set(&c.stuck.may_end);
    test_threads_join(&thread, 1);
    careless_close(&c);
}

// --- a process that ends with a stuck task ---

static void exit_with_stuck_task(bool is_borrowed) {
    static careless c;
    alarm(60); // a process that hangs is killed, and has no exit status
    careless_open(&c, 2, is_borrowed);
    run_ticks(&c.rig, 1);
    if (!event_await(&c.stuck.started, 1)) exit(2);
    exit(nb_engine_destroy(c.rig.engine) == NB_BUSY ? 0 : 3);
}

TEST(process_exits_with_a_stuck_task) {
    for (int is_borrowed = 0; is_borrowed < 2; ++is_borrowed) {
        fflush(NULL);
        pid_t child = fork();
        if (child == 0) exit_with_stuck_task(is_borrowed != 0);
        int status = 0;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
    }
}

// --- without workers ---

typedef struct backlog {
    nb_atomic_u32 runs;
    bool is_endless;
    uint32_t submit_count;
} backlog;

static nb_result submit_one(nb_scheduler *scheduler, backlog *b);

static void run_backlog(nb_task_context *context, void *argument) {
    backlog *b = pointer_of(argument);
    nbi_atomic_fetch_add_relaxed_u32(&b->runs, 1);
    if (b->is_endless) submit_one(context->scheduler, b);
}

static nb_result submit_one(nb_scheduler *scheduler, backlog *b) {
    void *pointer = b;
    nb_task_desc desc = task_with_pointer(run_backlog, &pointer);
    return nb_task_submit(scheduler, &desc, NULL);
}

static nb_result submit_backlog(const nb_context *context, void *user) {
    backlog *b = user;
    nb_result result = NB_OK;
    for (; b->submit_count > 0 && result == NB_OK; --b->submit_count) result = submit_one(context->scheduler, b);
    return result;
}

static void backlog_open(rig *r, backlog *b, uint64_t target_ns) {
    nb_engine_desc desc = rig_desc(0);
    desc.scheduler_desc.task_count_max = 2048;
    desc.budget.target_ns = target_ns;
    rig_open_desc(r, desc);
    attach(r, (nb_module_desc){.name = "backlog", .frame = submit_backlog, .user = b});
}

TEST(floating_tasks_have_the_rest_of_a_frame_without_workers) {
    rig r;
    backlog b = {.submit_count = 1000};
    backlog_open(&r, &b, UINT64_C(3600000000000));
    run_ticks(&r, 1);
    assert_int_equal(b.runs.value, 1000);
    rig_close(&r);
}

// However much there is, and in a frame that is over its target: the frame ends.
TEST(endless_floating_work_ends_no_frame_late_without_workers) {
    rig r;
    backlog b = {.submit_count = 10, .is_endless = true};
    backlog_open(&r, &b, 1);
    run_ticks(&r, 5);
    assert_true(b.runs.value >= 5);
    rig_close(&r);
}

// --- the ceiling on background work ---

typedef struct host {
    held background;
    event met;
    nb_atomic_u32 timeouts;
    uint32_t frame_count;
    nb_result result;
} host;

static nb_result do_job(const nb_context *context, void *user) {
    (void)context, (void)user;
    return NB_OK;
}

// Two threads are inside at once, or it fails.
static void meet(nb_task_context *context, void *user, uint64_t begin, uint64_t end) {
    (void)context, (void)begin, (void)end;
    host *h = user;
    event_set(&h->met);
    if (!event_await(&h->met, 2)) nbi_atomic_fetch_add_relaxed_u32(&h->timeouts, 1);
}

// In the second frame one of two workers has a background task, and the other is free for frames.
static nb_result loop_beside_background(const nb_context *context, void *user) {
    host *h = user;
    if (h->frame_count++ == 0) return NB_OK;
    submit_plain(context->scheduler, nb_engine_labels(context->engine), "background", run_held, &h->background);
    submit_plain(context->scheduler, nb_engine_labels(context->engine), "background", run_held, &h->background);
    event_await(&h->background.started, 1);
    nb_parallel_desc loop = {.run = meet, .user = h, .count = 2, .grain = 1};
    h->result = nb_parallel_for(context->scheduler, &loop, NULL);
    return NB_OK;
}

TEST(loop_in_a_handler_has_the_worker_that_is_kept_for_frames) {
    rig r;
    host h = {.result = NB_ERR_MISUSE};
    rig_open(&r, 2);
    attach(&r, (nb_module_desc){.name = "host", .frame = loop_beside_background, .parallel = do_job, .user = &h});
    run_ticks(&r, 2);
    assert_int_equal(h.result, NB_OK);
    assert_int_equal(h.timeouts.value, 0);
    assert_int_equal(event_count(&h.background.started), 1); // the ceiling holds for the second one
    event_set(&h.background.may_end);
    assert_true(event_await(&h.background.ended, 2));
    rig_close(&r);
}
