// SPDX-License-Identifier: MIT
// One table of labels for everything that an engine runs: reports name the work as the game named it, wherever the
// label came from.

#include "frame/engine/engine_fixture.h"
#include "support/log_lines.h"

#define LIMIT_NS UINT64_C(10000000000)

typedef struct labels_test {
    log_lines log;
    nb_engine *engine;
    nb_trace *trace;
    nb_label mesh;
    nb_token *token;
    nb_atomic_u32 is_running, may_end;
} labels_test;

static void open_engine(labels_test *t, nb_engine_desc desc) {
    desc.hooks = log_lines_hooks(&t->log);
    assert_int_equal(nb_engine_create(&desc, &t->engine), NB_OK);
}

static nb_result do_nothing(const nb_context *context, void *user) {
    (void)context, (void)user;
    return NB_OK;
}

static void run_held(nb_task_context *context, void *argument) {
    labels_test *t = *(labels_test **)argument;
    uint64_t end_ns = nbi_clock_now_ns() + LIMIT_NS;
    (void)context;
    nbi_atomic_exchange_seq_cst_u32(&t->is_running, 1);
    while (nbi_atomic_load_acquire_u32(&t->may_end) == 0 && nbi_clock_now_ns() < end_ns) nbi_thread_yield();
}

// In Gameplay: a task that is late, and that a worker has begun, so that the coordinator does not get stuck in it.
static nb_result start_mesh(const nb_context *context, void *user) {
    labels_test *t = user;
    uint64_t end_ns = nbi_clock_now_ns() + LIMIT_NS;
    if (nbi_atomic_load_seq_cst_u32(&t->is_running) != 0) return NB_OK;
    nb_task_desc desc = {.run = run_held,
                         .argument = &t,
                         .argument_size_bytes = sizeof t,
                         .label = t->mesh,
                         .lifetime = NB_LIFETIME_FRAME,
                         .fence = context->fence,
                         .frame = context->frame};
    nb_result result = nb_task_submit(context->scheduler, &desc, NULL);
    while (nbi_atomic_load_seq_cst_u32(&t->is_running) == 0 && nbi_clock_now_ns() < end_ns) nbi_thread_yield();
    return result;
}

// Two modules, so that the first labels of a private table would be theirs.
static void run_late_mesh(labels_test *t) {
    nb_module_desc physics = {.name = "physics", .frame = do_nothing};
    nb_module_desc mesher = {.name = "mesher", .frame = start_mesh, .user = t};
    assert_int_equal(nb_engine_module_attach(t->engine, &physics, NULL), NB_OK);
    assert_int_equal(nb_engine_module_attach(t->engine, &mesher, NULL), NB_OK);
    assert_int_equal(nb_engine_frame_delta(t->engine, 0), NB_OK);
    assert_true(log_lines_count(&t->log, NB_ITEM_FENCE_TIMEOUT) >= 1);
    assert_says(&t->log, NB_ITEM_FENCE_TIMEOUT, "mesh (");
    assert_never_says(&t->log, NB_ITEM_FENCE_TIMEOUT, "physics");
    nbi_atomic_exchange_seq_cst_u32(&t->may_end, 1);
    assert_int_equal(nb_engine_destroy(t->engine), NB_OK);
}

static nb_engine_desc late_desc(void) {
    nb_engine_desc desc = rig_desc(1);
    desc.fence_timeout_ns = 1000000;
    return desc;
}

TEST(late_task_has_the_name_that_the_game_gave_it) {
    static labels_test t;
    memset(&t, 0, sizeof t);
    open_engine(&t, late_desc());
    assert_int_equal(nb_labels_intern(nb_engine_labels(t.engine), "mesh", &t.mesh), NB_OK);
    run_late_mesh(&t);
}

TEST(late_task_with_a_label_of_the_trace_has_its_name) {
    static labels_test t;
    memset(&t, 0, sizeof t);
    nb_engine_desc desc = late_desc();
    assert_int_equal(nb_trace_create(NULL, &t.trace), NB_OK);
    assert_int_equal(nb_labels_intern(nb_trace_labels(t.trace), "mesh", &t.mesh), NB_OK);
    desc.trace = t.trace;
    open_engine(&t, desc);
    assert_ptr_equal(nb_engine_labels(t.engine), nb_trace_labels(t.trace));
    run_late_mesh(&t);
    assert_int_equal(nb_trace_destroy(t.trace), NB_OK);
}

TEST(host_hands_its_own_table_to_all) {
    static labels_test t;
    memset(&t, 0, sizeof t);
    nb_labels *labels = NULL, *other = NULL;
    assert_int_equal(nb_labels_create(NULL, &labels), NB_OK);
    assert_int_equal(nb_labels_create(NULL, &other), NB_OK);
    assert_int_equal(nb_labels_intern(labels, "mesh", &t.mesh), NB_OK);
    nb_scheduler *scheduler = NULL;
    nb_scheduler_desc scheduler_desc = {.worker_count = 1, .labels = labels};
    assert_int_equal(nb_scheduler_create(&scheduler_desc, &scheduler), NB_OK);
    assert_ptr_equal(nb_scheduler_labels(scheduler), labels);
    // Another table beside the scheduler's would give its tasks wrong names.
    nb_engine_desc desc = late_desc();
    desc.scheduler = scheduler;
    desc.labels = other;
    desc.hooks = log_lines_hooks(&t.log);
    assert_int_equal(nb_engine_create(&desc, &t.engine), NB_ERR_MISUSE);
    assert_says(&t.log, NB_ITEM_ENGINE_ARGUMENT, "different tables of labels");
    desc.labels = NULL;
    open_engine(&t, desc);
    assert_ptr_equal(nb_engine_labels(t.engine), labels);
    assert_ptr_equal(nb_engine_desc_get(t.engine)->labels, labels);
    run_late_mesh(&t);
    assert_string_equal(nb_labels_name(labels, t.mesh), "mesh"); // borrowed: not destroyed with the engine
    assert_int_equal(nb_scheduler_destroy(scheduler), NB_OK);
    nb_labels_destroy(other);
    nb_labels_destroy(labels);
}

static void run_checked(nb_task_context *context, void *argument) {
    (void)argument;
    for (uint64_t start_ns = nbi_clock_now_ns(); nbi_clock_now_ns() - start_ns < 10000;) nbi_thread_yield();
    nb_task_should_stop(context);
}

static nb_result run_slow_task(const nb_context *context, void *user) {
    labels_test *t = user;
    nb_task_desc desc = {.run = run_checked, .label = t->mesh, .token = context->token};
    return nb_task_run(context->scheduler, &desc);
}

static nb_async_status strange_step(nb_async_call *call, void *state) {
    (void)call, (void)state;
    return (nb_async_status)77;
}

static nb_result submit_strange(const nb_context *context, void *user) {
    labels_test *t = user;
    nb_async_job_desc desc = {.step = strange_step, .label = t->mesh};
    if (context->frame_index != 0) return NB_OK;
    return nb_async_submit(nb_engine_async(context->engine), &desc, NULL);
}

TEST(task_that_checks_too_late_is_reported_by_its_name) {
    static labels_test t;
    memset(&t, 0, sizeof t);
    nb_engine_desc desc = rig_desc(0);
    desc.scheduler_desc.check_interval_max_ns = 1000;
    open_engine(&t, desc);
    assert_int_equal(nb_labels_intern(nb_engine_labels(t.engine), "mesh", &t.mesh), NB_OK);
    nb_module_desc module = {.name = "mesher", .frame = run_slow_task, .user = &t};
    assert_int_equal(nb_engine_module_attach(t.engine, &module, NULL), NB_OK);
    for (int i = 0; i < 3; ++i) assert_int_equal(nb_engine_frame_delta(t.engine, 0), NB_OK);
    assert_int_equal(log_lines_count(&t.log, NB_ITEM_TASK_CHECK), 1);
    assert_says(&t.log, NB_ITEM_TASK_CHECK, "task \"mesh\" went");
    assert_int_equal(nb_engine_destroy(t.engine), NB_OK);
}

TEST(async_job_is_reported_by_its_name) {
    static labels_test t;
    memset(&t, 0, sizeof t);
    open_engine(&t, rig_desc(0));
    assert_int_equal(nb_labels_intern(nb_engine_labels(t.engine), "mesh", &t.mesh), NB_OK);
    nb_module_desc module = {.name = "mesher", .frame = submit_strange, .user = &t};
    assert_int_equal(nb_engine_module_attach(t.engine, &module, NULL), NB_OK);
    for (int i = 0; i < 3; ++i) assert_int_equal(nb_engine_frame_delta(t.engine, 0), NB_OK);
    assert_says(&t.log, NB_ITEM_ASYNC_STATUS, "async job \"mesh\"");
    assert_int_equal(nb_engine_destroy(t.engine), NB_OK);
}
