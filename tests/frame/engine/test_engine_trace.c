// SPDX-License-Identifier: MIT
// A host that creates a trace, puts it into the engine's desc, and does nothing else: phases, handlers, jobs, tasks and
// steps of async jobs are in it, by their names, on the threads that ran them; with a scheduler of the engine's own,
// and with one that several engines borrow.

#include "frame/engine/engine_fixture.h"
#include "support/log_lines.h"

#include "nebula/trace.h"

#define LIMIT_NS UINT64_C(10000000000)

// --- what is in a trace ---

#define SPAN_MAX 256
typedef struct spans {
    struct {
        char thread[32], name[32];
    } entries[SPAN_MAX];
    uint32_t count, open_count;
} spans;

static void note_span(void *user, const nb_trace_event *event) {
    spans *s = user;
    if (event->kind == NB_TRACE_KIND_END && event->is_cut) ++s->open_count;
    if (event->kind != NB_TRACE_KIND_BEGIN) return;
    for (uint32_t i = 0; i < s->count; ++i) {
        bool is_same = strcmp(s->entries[i].thread, event->thread_name) == 0;
        if (is_same && strcmp(s->entries[i].name, event->name) == 0) return;
    }
    if (s->count == SPAN_MAX) return;
    snprintf(s->entries[s->count].thread, sizeof s->entries[0].thread, "%s", event->thread_name);
    snprintf(s->entries[s->count++].name, sizeof s->entries[0].name, "%s", event->name);
}

static spans spans_of(nb_trace *trace) {
    static spans found;
    memset(&found, 0, sizeof found);
    assert_int_equal(nb_trace_read(trace, note_span, &found), NB_OK);
    return found;
}

// thread: the beginning of its name; "" = any.
static bool has_span(const spans *s, const char *thread, const char *name) {
    for (uint32_t i = 0; i < s->count; ++i) {
        bool is_thread = strncmp(s->entries[i].thread, thread, strlen(thread)) == 0;
        if (is_thread && strcmp(s->entries[i].name, name) == 0) return true;
    }
    return false;
}

static void assert_span(const spans *s, const char *thread, const char *name) {
    if (!has_span(s, thread, name)) fail_msg("no span \"%s\" on \"%s\"", name, thread);
}

static void assert_no_span(const spans *s, const char *name) {
    if (has_span(s, "", name)) fail_msg("a span \"%s\"", name);
}

typedef struct text {
    char bytes[1 << 20];
    size_t size;
} text;

static bool add_text(void *user, const char *bytes, size_t size_bytes) {
    text *t = user;
    if (t->size + size_bytes >= sizeof t->bytes) return false;
    memcpy(t->bytes + t->size, bytes, size_bytes);
    t->size += size_bytes;
    return true;
}

// --- a game ---

typedef struct game {
    nb_engine *engine;
    nb_trace *trace;
    log_lines log;
    const char *task_name, *async_name;
    nb_label task_label, async_label;
    nb_atomic_u32 is_run;
    bool has_submitted;
} game;

static void run_elsewhere(nb_task_context *context, void *argument) {
    (void)context;
    nbi_atomic_exchange_seq_cst_u32(&(*(game **)argument)->is_run, 1);
}

static nb_result load_file(void *argument) {
    (void)argument;
    return NB_OK;
}

static nb_async_status step(nb_async_call *call, void *state) {
    (void)state;
    if (call->step++ == 0) {
        call->io_run = load_file;
        return NB_ASYNC_STATUS_IO;
    }
    return NB_ASYNC_STATUS_DONE;
}

// Tasks that a worker runs, because the coordinator only looks on.
static nb_result submit_all(const nb_context *context, void *user) {
    game *g = user;
    uint64_t end_ns = nbi_clock_now_ns() + LIMIT_NS;
    if (g->has_submitted) return NB_OK;
    g->has_submitted = true;
    nb_task_desc task = {.run = run_elsewhere, .argument = &g, .argument_size_bytes = sizeof g, .label = g->task_label};
    nb_async_job_desc job = {.step = step, .label = g->async_label, .user = g};
    nb_result result = nb_task_submit(context->scheduler, &task, NULL);
    while (nbi_atomic_load_seq_cst_u32(&g->is_run) == 0 && nbi_clock_now_ns() < end_ns) nbi_thread_yield();
    task.label = (nb_label){0};
    task.lifetime = NB_LIFETIME_FRAME, task.fence = context->fence, task.frame = context->frame;
    if (result == NB_OK) result = nb_task_submit(context->scheduler, &task, NULL);
    return result == NB_OK ? nb_async_submit(nb_engine_async(context->engine), &job, NULL) : result;
}

static nb_result do_nothing(const nb_context *context, void *user) {
    (void)context, (void)user;
    return NB_OK;
}

static void game_open(game *g, nb_engine_desc desc, const char *module, const char *task, const char *job) {
    memset(g, 0, sizeof *g);
    g->task_name = task, g->async_name = job;
    assert_int_equal(nb_trace_create(NULL, &g->trace), NB_OK);
    desc.trace = g->trace;
    desc.hooks = log_lines_hooks(&g->log);
    assert_int_equal(nb_engine_create(&desc, &g->engine), NB_OK);
    assert_int_equal(nb_labels_intern(nb_engine_labels(g->engine), task, &g->task_label), NB_OK);
    assert_int_equal(nb_labels_intern(nb_engine_labels(g->engine), job, &g->async_label), NB_OK);
    nb_module_desc desc_of_module = {.name = module,
                                     .tick = do_nothing,
                                     .frame = submit_all,
                                     .parallel = do_nothing,
                                     .record = do_nothing,
                                     .job_count = 4,
                                     .record_count = 2,
                                     .user = g};
    assert_int_equal(nb_engine_module_attach(g->engine, &desc_of_module, NULL), NB_OK);
}

// Few frames, so that no ring is written twice: the async job ends between the first two.
static void game_play(game *g) {
    uint64_t end_ns = nbi_clock_now_ns() + LIMIT_NS;
    assert_int_equal(nb_engine_run_ticks(g->engine, 1), NB_OK);
    const nb_async *async = nb_engine_async(g->engine);
    while (nb_async_stats_get(async).complete_count == 0 && nbi_clock_now_ns() < end_ns) {
        if (nb_scheduler_help(nb_engine_scheduler(g->engine), 0, NULL) != NB_OK) nbi_thread_yield();
    }
    assert_int_equal(nb_engine_run_ticks(g->engine, 2), NB_OK);
    assert_int_equal(nb_trace_stats_get(g->trace).overwritten_count, 0);
}

static void game_close(game *g) {
    assert_int_equal(nb_engine_destroy(g->engine), NB_OK);
    assert_int_equal(nb_trace_stats_get(g->trace).dropped_count, 0);
    assert_int_equal(nb_trace_stats_get(g->trace).thread_count, 0);
}

static void assert_complete(game *g, const char *module) {
    spans s = spans_of(g->trace);
    for (uint32_t i = 1; i < NB_PHASE_COUNT; ++i) {
        if (i != NB_PHASE_DETACHED_SERVICES) assert_span(&s, "coordinator", nb_phase_info_get((nb_phase)i)->name);
    }
    assert_span(&s, "coordinator", module);
    assert_span(&s, "worker ", g->task_name);
    assert_span(&s, "", "task");
    assert_span(&s, "", g->async_name);
    assert_span(&s, "io", g->async_name);
    assert_no_span(&s, "?");
    assert_no_span(&s, "");
    assert_int_equal(s.open_count, 0);
    static text json;
    json.size = 0;
    assert_int_equal(nb_trace_write_json(g->trace, add_text, &json), NB_OK);
    json.bytes[json.size] = '\0';
    assert_non_null(strstr(json.bytes, module));
    assert_non_null(strstr(json.bytes, g->task_name));
    assert_non_null(strstr(json.bytes, g->async_name));
}

TEST(trace_in_the_desc_is_all_that_a_host_needs) {
    static game g;
    game_open(&g, rig_desc(2), "physics", "cook", "mesh");
    game_play(&g);
    game_close(&g);
    assert_complete(&g, "physics");
    assert_int_equal(nb_trace_destroy(g.trace), NB_OK);
}

TEST(host_that_attaches_its_threads_itself_keeps_their_names) {
    static game g;
    game_open(&g, rig_desc(0), "physics", "cook", "mesh");
    nb_trace_thread *own = NULL;
    assert_int_equal(nb_trace_attach(g.trace, "main", &own), NB_OK);
    nbi_atomic_exchange_seq_cst_u32(&g.is_run, 1); // there is no worker to wait for
    game_play(&g);
    assert_int_equal(nb_engine_destroy(g.engine), NB_OK);
    assert_int_equal(nb_trace_stats_get(g.trace).thread_count, 1);
    spans s = spans_of(g.trace);
    assert_span(&s, "main", "FixedSim");
    assert_span(&s, "main", "cook");
    assert_span(&s, "main", "mesh");
    assert_false(has_span(&s, "coordinator", "FixedSim"));
    assert_int_equal(nb_trace_detach(own), NB_OK);
    assert_int_equal(nb_trace_destroy(g.trace), NB_OK);
}

// --- one scheduler for several engines ---

static nb_scheduler *shared_open(uint32_t worker_count) {
    nb_scheduler *scheduler = NULL;
    nb_scheduler_desc desc = {.worker_count = worker_count, .task_count_max = 1024, .group_count_max = 256};
    assert_int_equal(nb_scheduler_create(&desc, &scheduler), NB_OK);
    return scheduler;
}

typedef struct held {
    nb_atomic_u32 has_begun, may_end;
} held;

static void run_held(nb_task_context *context, void *argument) {
    held *h = *(held **)argument;
    uint64_t end_ns = nbi_clock_now_ns() + LIMIT_NS;
    (void)context;
    nbi_atomic_exchange_seq_cst_u32(&h->has_begun, 1);
    while (nbi_atomic_load_acquire_u32(&h->may_end) == 0 && nbi_clock_now_ns() < end_ns) nbi_thread_yield();
}

TEST(engines_with_a_trace_each_share_a_scheduler) {
    static game first, second;
    nb_engine_desc desc = rig_desc(0);
    desc.scheduler = shared_open(2);
    game_open(&first, desc, "physics", "cook", "mesh");
    game_open(&second, desc, "weather", "rain", "cloud");
    game_play(&first);
    game_play(&second);
    // A task that is still running when the first engine and its trace go.
    held h = {0};
    held *pointer = &h;
    nb_task_desc task = {.run = run_held, .argument = &pointer, .argument_size_bytes = sizeof pointer};
    nb_task handle;
    assert_int_equal(nb_task_submit(desc.scheduler, &task, &handle), NB_OK);
    while (nbi_atomic_load_seq_cst_u32(&h.has_begun) == 0) nbi_thread_yield();
    game_close(&first);
    spans s = spans_of(first.trace);
    assert_span(&s, "coordinator", "physics");
    assert_span(&s, "coordinator", "FixedSim");
    // Labels of two tables: whose that of a task of no frame is, is not known.
    assert_span(&s, "worker ", "task");
    assert_span(&s, "", "mesh");
    assert_no_span(&s, "weather");
    assert_no_span(&s, "cloud");
    assert_no_span(&s, "rain");
    assert_int_equal(nb_trace_destroy(first.trace), NB_OK);
    nbi_atomic_exchange_seq_cst_u32(&h.may_end, 1);
    assert_int_equal(nb_task_wait(desc.scheduler, handle, NB_NEVER_NS), NB_OK);
    game_close(&second);
    s = spans_of(second.trace);
    assert_span(&s, "coordinator", "weather");
    assert_span(&s, "", "cloud");
    assert_no_span(&s, "physics");
    assert_int_equal(nb_trace_destroy(second.trace), NB_OK);
    // Alone with the scheduler, a trace has all.
    game_open(&first, desc, "physics", "cook", "mesh");
    game_play(&first);
    game_close(&first);
    assert_complete(&first, "physics");
    assert_int_equal(nb_trace_destroy(first.trace), NB_OK);
    assert_int_equal(nb_scheduler_destroy(desc.scheduler), NB_OK);
}

TEST(one_engine_too_many_is_told_and_runs) {
    static game games[9];
    nb_engine_desc desc = rig_desc(0);
    desc.scheduler = shared_open(1);
    for (int i = 0; i < 9; ++i) {
        game_open(&games[i], desc, "physics", "cook", "mesh");
        assert_int_equal(log_lines_count(&games[i].log, NB_ITEM_TRACE_SHARED), i == 8);
    }
    for (int i = 0; i < 9; ++i) {
        game_play(&games[i]);
        game_close(&games[i]);
        spans s = spans_of(games[i].trace);
        assert_span(&s, "coordinator", "FixedSim");
        assert_int_equal(nb_trace_destroy(games[i].trace), NB_OK);
    }
    assert_int_equal(nb_scheduler_destroy(desc.scheduler), NB_OK);
}

static void help_as_a_guest(void *user, uint32_t index) {
    game *g = user;
    nb_scheduler *scheduler = nb_engine_scheduler(g->engine);
    nb_task_desc task = {.run = run_elsewhere, .argument = &g, .argument_size_bytes = sizeof g, .label = g->task_label};
    bool is_attached = index == 0 && nb_scheduler_attach(scheduler) == NB_OK;
    for (int i = 0; i < 3; ++i) nb_task_run(scheduler, &task);
    if (is_attached) nb_scheduler_detach(scheduler);
}

// One that stays away takes no ring for three tasks.
TEST(thread_that_leaves_the_scheduler_leaves_the_trace) {
    static game g;
    game_open(&g, rig_desc(0), "physics", "cook", "mesh");
    test_threads_run(2, help_as_a_guest, &g);
    assert_int_equal(nb_trace_stats_get(g.trace).thread_count, 0);
    spans s = spans_of(g.trace);
    assert_span(&s, "thread ", "cook");
    assert_int_equal(s.count, 1);
    game_close(&g);
    assert_int_equal(nb_trace_destroy(g.trace), NB_OK);
}

TEST(trace_without_rings_counts_and_the_game_runs) {
    nb_engine_desc desc = rig_desc(2);
    nb_trace_desc trace_desc = {.thread_count_max = 1};
    assert_int_equal(nb_trace_create(&trace_desc, &desc.trace), NB_OK);
    rig r;
    rig_open_desc(&r, desc);
    attach(&r, (nb_module_desc){.name = "physics", .parallel = do_nothing, .job_count = 8});
    run_ticks(&r, 5);
    rig_close(&r);
    assert_true(nb_trace_stats_get(desc.trace).refused_count > 0);
    assert_int_equal(nb_trace_destroy(desc.trace), NB_OK);
}

// --- engines come and go while the workers are busy ---

typedef struct crowd {
    nb_scheduler *scheduler;
    nb_atomic_u32 is_over, failures;
} crowd;

static void run_briefly(nb_task_context *context, void *argument) { (void)context, (void)argument; }

static void keep_busy(void *user, uint32_t index) {
    crowd *c = user;
    (void)index;
    nb_task_desc task = {.run = run_briefly};
    while (nbi_atomic_load_acquire_u32(&c->is_over) == 0) {
        nb_result result = nb_task_submit(c->scheduler, &task, NULL);
        if (result == NB_FULL)
            nbi_thread_yield();
        else if (result != NB_OK)
            nbi_atomic_fetch_add_seq_cst_u32(&c->failures, 1);
    }
}

TEST(traces_come_and_go_while_workers_record) {
    crowd c = {.scheduler = shared_open(2)};
    test_thread busy;
    test_threads_start(&busy, 1, keep_busy, &c);
    for (uint64_t i = 0; i < test_size(50, 200, 2000); ++i) {
        nb_engine_desc desc = rig_desc(0);
        nb_trace_desc trace_desc = {.record_count_max = 64};
        desc.scheduler = c.scheduler;
        assert_int_equal(nb_trace_create(&trace_desc, &desc.trace), NB_OK);
        rig r;
        rig_open_desc(&r, desc);
        run_ticks(&r, 2);
        rig_close(&r);
        assert_int_equal(nb_trace_stats_get(desc.trace).dropped_count, 0);
        assert_int_equal(nb_trace_destroy(desc.trace), NB_OK);
    }
    nbi_atomic_store_release_u32(&c.is_over, 1);
    test_threads_join(&busy, 1);
    assert_int_equal(c.failures.value, 0);
    assert_int_equal(nb_scheduler_destroy(c.scheduler), NB_OK);
}
