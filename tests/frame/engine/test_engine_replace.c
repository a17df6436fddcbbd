// SPDX-License-Identifier: MIT
// Replacing a module while work of it is in flight, and while new code fails: refused, or done whole. Work of others
// goes on. The libraries of test_reload.c are real; here the code stays, so that each kind of work can be held.

#include "frame/engine/engine_fixture.h"

#define LIMIT_NS UINT64_C(10000000000)

typedef enum kind {
    KIND_TASK,
    KIND_CHILD,    // of a task that has ended
    KIND_OF_JOB,   // a task that a parallel job has submitted
    KIND_OF_STEP,  // and one that an async job has
    KIND_FRAME,    // a frame-bound task that is late
    KIND_RESULT,   // of a task that has ended: on_complete is still to be called
    KIND_STEP,     // an async job inside its step
    KIND_IO,       // an async job inside its blocking call
    KIND_PAUSED,   // an async job that nobody runs
    KIND_SERVICE,  // that runs
    KIND_CALLBACK, // on a token with a deadline
    KIND_JOB,      // a late one of the parallel handler
    KIND_COUNT,
} kind;

typedef struct owner owner;
struct owner {
    rig *r;
    kind kind;
    nb_module_id module;
    nb_label label;
    bool is_asked;                           // to begin its work in the next frame
    nb_atomic_u32 is_held, is_inside, ended; // of the work
    nb_atomic_u32 is_begun;                  // by a job or step
    nb_token *token;
    nb_token_callback callback;
    nb_service *service;
    uint32_t attach_count, detach_count, frame_count;
    nb_result attach_result;
    nb_result results[4]; // of what on_detach tried
    bool tries, tries_name;
};

static void work(owner *o) {
    nbi_atomic_store_release_u32(&o->is_inside, 1);
    while (nbi_atomic_load_acquire_u32(&o->is_held) != 0) nbi_thread_yield();
    nbi_atomic_store_release_u32(&o->ended, 1);
}

static void run_task(nb_task_context *context, void *argument) {
    owner *o = *(owner **)argument;
    (void)context;
    if (o->kind != KIND_RESULT) work(o);
    if (o->kind == KIND_RESULT) nbi_atomic_store_release_u32(&o->is_inside, 1);
}

static void note_result(void *user, const nb_task_result *result) {
    owner *o = user;
    (void)result;
    nbi_atomic_store_release_u32(&o->ended, 1);
}

static void run_parent(nb_task_context *context, void *argument) {
    owner *o = *(owner **)argument;
    nb_task_desc desc = {.run = run_task, .argument = &o, .argument_size_bytes = sizeof o, .label = o->label};
    if (nb_task_submit(context->scheduler, &desc, NULL) != NB_OK) abort();
}

static nb_result wait_in_io(void *argument) {
    work(*(owner **)argument);
    return NB_OK;
}

// By the job, or step, that comes first.
static void begin_once(owner *o, nb_scheduler *scheduler) {
    nb_task_desc desc = {.run = run_task, .argument = &o, .argument_size_bytes = sizeof o, .label = o->label};
    bool is_held = nbi_atomic_load_acquire_u32(&o->is_held) != 0;
    if (!is_held || nbi_atomic_exchange_seq_cst_u32(&o->is_begun, 1) != 0) return;
    if (nb_task_submit(scheduler, &desc, NULL) != NB_OK) abort();
}

static nb_async_status step(nb_async_call *call, void *state) {
    owner *o = *(owner **)state;
    NB_ASYNC_BEGIN(call);
    if (o->kind == KIND_OF_STEP) {
        begin_once(o, call->task->scheduler);
        return NB_ASYNC_STATUS_DONE;
    }
    if (o->kind == KIND_STEP) work(o);
    if (o->kind == KIND_IO) {
        NB_ASYNC_IO(call, wait_in_io, state);
        o = *(owner **)state;
    }
    nbi_atomic_store_release_u32(&o->is_inside, 1);
    while (o->kind == KIND_PAUSED && nbi_atomic_load_acquire_u32(&o->is_held) != 0) {
        NB_ASYNC_FRAME(call);
        o = *(owner **)state;
    }
    nbi_atomic_store_release_u32(&o->ended, 1);
    NB_ASYNC_END(call);
}

static nb_result serve(nb_service *service, void *user) {
    owner *o = user;
    uint64_t message = 0;
    nbi_atomic_store_release_u32(&o->is_inside, 1);
    while (nb_service_recv(service, &message, NB_NEVER_NS) == NB_OK) continue;
    nbi_atomic_store_release_u32(&o->ended, 1);
    return NB_OK;
}

static void note_cancel(void *user, nb_token *token) {
    (void)token;
    nbi_atomic_store_release_u32(&((owner *)user)->ended, 1);
}

static nb_result begin_task(owner *o, const nb_context *context) {
    nb_task_desc desc = {.run = o->kind == KIND_CHILD ? run_parent : run_task,
                         .argument = &o,
                         .argument_size_bytes = sizeof o,
                         .label = o->label,
                         .on_complete = o->kind == KIND_RESULT ? note_result : NULL,
                         .user = o};
    if (o->kind == KIND_FRAME) {
        desc.lifetime = NB_LIFETIME_FRAME;
        desc.fence = context->fence;
        desc.frame = context->frame;
    }
    return nb_task_submit(context->scheduler, &desc, NULL);
}

static nb_result begin_job(owner *o, nb_engine *engine) {
    nb_async_job_desc desc = {.step = step, .state = &o, .state_size_bytes = sizeof o, .label = o->label};
    return nb_async_submit(nb_engine_async(engine), &desc, NULL);
}

static nb_result begin_service(owner *o, nb_engine *engine, const char *name) {
    nb_service_desc desc = {.name = name, .run = serve, .user = o};
    return nb_service_start(nb_engine_services(engine), &desc, &o->service);
}

static nb_result begin_callback(owner *o, nb_engine *engine) {
    nb_result result = NB_OK;
    if (o->token == NULL) result = nb_token_child(nb_engine_token(engine), "deadline", &o->token);
    if (result == NB_OK) result = nb_token_callback_register(o->token, &o->callback, note_cancel, o);
    return result;
}

static nb_result begin(const nb_context *context, void *user) {
    owner *o = user;
    // Results are told in the middle of a frame: what is to stay begins at its end.
    bool is_end = context->phase == NB_PHASE_FRAME_END;
    if (!is_end) ++o->frame_count;
    if (!o->is_asked || is_end != (o->kind == KIND_RESULT)) return NB_OK;
    o->is_asked = false;
    switch (o->kind) {
    case KIND_OF_STEP:
    case KIND_STEP:
    case KIND_IO:
    case KIND_PAUSED: return begin_job(o, context->engine);
    case KIND_SERVICE: return begin_service(o, context->engine, nb_engine_module_name(context->engine, o->module));
    case KIND_CALLBACK: nbi_atomic_store_release_u32(&o->is_inside, 1); return begin_callback(o, context->engine);
    case KIND_OF_JOB:
    case KIND_JOB: return NB_OK;
    default: return begin_task(o, context);
    }
}

static nb_result run_job(const nb_context *context, void *user) {
    owner *o = user;
    if (o->kind == KIND_OF_JOB) begin_once(o, context->scheduler);
    if (o->kind == KIND_JOB && nbi_atomic_load_acquire_u32(&o->is_held) != 0) work(o);
    return NB_OK;
}

static nb_result on_attach(nb_engine *engine, void *user) {
    owner *o = user;
    (void)engine;
    ++o->attach_count;
    return o->attach_result;
}

static void on_detach(nb_engine *engine, void *user) {
    owner *o = user;
    ++o->detach_count;
    nb_task_desc task = {.run = run_task, .argument = &o, .argument_size_bytes = sizeof o};
    nb_module_desc same = {.name = "first"};
    if (o->tries) {
        o->results[0] = nb_task_submit(nb_engine_scheduler(engine), &task, NULL);
        o->results[1] = begin_job(o, engine);
        o->results[2] = begin_service(o, engine, "late");
        o->results[3] = begin_callback(o, engine);
    }
    if (o->tries_name) o->results[0] = nb_engine_module_attach(engine, &same, NULL);
}

static nb_module_desc desc_of(owner *o, const char *name) {
    nb_module_desc desc = {
        .name = name, .frame = begin, .parallel = run_job, .on_attach = on_attach, .on_detach = on_detach, .user = o};
    desc.handlers[NB_PHASE_FRAME_END] = begin;
    return desc;
}

static void open_owner(owner *o, rig *r, const char *name, kind which) {
    memset(o, 0, sizeof *o);
    o->r = r;
    o->kind = which;
    nb_labels_intern(nb_engine_labels(r->engine), name, &o->label);
    o->module = attach(r, desc_of(o, name));
}

static void open_rig(rig *r, uint32_t worker_count) {
    nb_engine_desc desc = rig_desc(worker_count);
    desc.fence_timeout_ns = 1; // what is held is late
    desc.is_headless = true;
    rig_open_desc(r, desc);
}

static void frame(rig *r) { assert_int_equal(nb_engine_frame_delta(r->engine, 0), NB_OK); }

// Until the work is where it can be held.
static void start(owner *o) {
    uint64_t end_ns = nbi_clock_now_ns() + LIMIT_NS;
    nbi_atomic_store_release_u32(&o->is_held, 1);
    o->is_asked = true;
    frame(o->r);
    while (nbi_atomic_load_acquire_u32(&o->is_inside) == 0 && nbi_clock_now_ns() < end_ns) {
        if (o->kind != KIND_RESULT) frame(o->r);
        nbi_thread_yield();
    }
    assert_int_equal(nbi_atomic_load_acquire_u32(&o->is_inside), 1);
}

static void let_go(owner *o) {
    nbi_atomic_store_release_u32(&o->is_held, 0);
    if (o->kind == KIND_SERVICE) assert_int_equal(nb_service_stop(o->service, nbi_clock_now_ns() + LIMIT_NS), NB_OK);
    if (o->kind == KIND_CALLBACK) assert_int_equal(nb_token_set_deadline(o->token, 0, 1), NB_OK);
}

// A result is told by the next frame.
static bool is_held(const owner *o) { return o->kind == KIND_RESULT || nbi_atomic_load_acquire_u32(&o->ended) == 0; }

static void close_owner(owner *o) {
    nb_token_callback_unregister(&o->callback);
    nb_token_release(o->token);
}

static nb_result replace(owner *o, const char *name) {
    nb_module_desc desc = desc_of(o, name);
    return nb_engine_module_replace(o->r->engine, o->module, &desc);
}

// Its jobs, which are late after a nanosecond, may still be at it when a frame ends.
static nb_result replace_soon(owner *o, const char *name) {
    uint64_t end_ns = nbi_clock_now_ns() + LIMIT_NS;
    nb_result result = replace(o, name);
    while (result == NB_BUSY && nbi_clock_now_ns() < end_ns) {
        frame(o->r);
        result = replace(o, name);
    }
    return result;
}

static void open_first(rig *r, uint32_t worker_count, owner *first, kind which) {
    open_rig(r, worker_count);
    open_owner(first, r, "first", which);
}

static void open_two(rig *r, owner *first, owner *other, kind which) {
    open_first(r, 2, first, which);
    open_owner(other, r, "other", which);
}

// A module that another one takes the place of.
static nb_module_desc open_old(rig *r, uint32_t worker_count, owner *old, owner *next) {
    open_first(r, worker_count, old, KIND_TASK);
    *next = (owner){.r = r};
    return desc_of(next, "first");
}

// --- work in flight ---

static const char *name_of(kind which) {
    switch (which) {
    case KIND_STEP:
    case KIND_IO:
    case KIND_PAUSED: return "1 async job (\"first\")";
    case KIND_SERVICE: return "1 service (\"first\")";
    case KIND_CALLBACK: return "1 token callback";
    case KIND_JOB: return "jobs of its handlers";
    default: return "1 task (\"first\")";
    }
}

static rig r; // of the case that runs

TEST(module_with_work_in_flight_is_not_replaced) {
    for (uint32_t which = 0; which < KIND_COUNT; ++which) {
        owner first, other;
        open_two(&r, &first, &other, (kind)which);
        start(&first);
        // Said once for a row of refusals, and in the words of the user.
        assert_int_equal(replace(&first, "first"), NB_BUSY);
        assert_int_equal(test_log_count(&r.log, NB_ITEM_ENGINE_LEFTOVER), 1);
        assert_non_null(strstr(r.log.last_message, name_of((kind)which)));
        assert_int_equal(replace(&first, "first"), NB_BUSY);
        assert_int_equal(test_log_count(&r.log, NB_ITEM_ENGINE_LEFTOVER), 1);
        assert_int_equal(first.attach_count, 1);
        assert_int_equal(first.detach_count, 0);
        // The other one has no work, and is replaced beside it.
        assert_int_equal(replace_soon(&other, "other"), NB_OK);
        assert_true(is_held(&first));
        let_go(&first);
        assert_int_equal(replace_soon(&first, "first"), NB_OK);
        assert_int_equal(first.ended.value, 1); // nothing was cancelled
        assert_int_equal(first.attach_count, 2);
        assert_int_equal(first.detach_count, 1);
        close_owner(&first);
        close_owner(&other);
        rig_close(&r);
    }
}

TEST(work_of_others_does_not_keep_a_module) {
    for (uint32_t which = 0; which < KIND_COUNT; ++which) {
        owner first, other;
        open_two(&r, &first, &other, (kind)which);
        start(&other);
        for (uint32_t i = 0; i < 10; ++i) assert_int_equal(replace_soon(&first, "first"), NB_OK);
        assert_true(is_held(&other));
        let_go(&other);
        uint64_t end_ns = nbi_clock_now_ns() + LIMIT_NS;
        while (nbi_atomic_load_acquire_u32(&other.ended) == 0 && nbi_clock_now_ns() < end_ns) frame(&r);
        assert_int_equal(other.ended.value, 1);
        close_owner(&first);
        close_owner(&other);
        rig_close(&r);
    }
}

TEST(work_of_the_host_is_nobodys) {
    owner first, *pointer = &first;
    open_first(&r, 1, &first, KIND_TASK);
    nbi_atomic_store_release_u32(&first.is_held, 1);
    nb_task_desc task = {.run = run_task, .argument = &pointer, .argument_size_bytes = sizeof pointer};
    assert_int_equal(nb_task_submit(nb_engine_scheduler(r.engine), &task, NULL), NB_OK);
    assert_int_equal(replace(&first, "first"), NB_OK);
    let_go(&first);
    rig_close(&r);
}

TEST(service_is_in_flight_until_its_last_call) {
    owner first;
    open_first(&r, 0, &first, KIND_SERVICE);
    start(&first);
    let_go(&first);
    assert_int_equal(replace(&first, "first"), NB_OK); // no frame was needed: the service has ended
    close_owner(&first);
    rig_close(&r);
}

// A callback on a token of the host's own: it is registered when its module, engine and scheduler are gone.
TEST(work_that_outlives_its_engine_has_an_owner) {
    owner first;
    open_first(&r, 0, &first, KIND_CALLBACK);
    nb_token_desc desc = {.hooks = test_hooks(&r.log, &r.heap)};
    assert_int_equal(nb_token_create(&desc, &first.token), NB_OK);
    start(&first);
    assert_int_equal(replace(&first, "first"), NB_BUSY);
    assert_int_equal(nb_engine_destroy(r.engine), NB_OK);
    assert_int_equal(nb_token_cancel(first.token, NB_CANCEL_REQUESTED, 0, NULL), NB_OK);
    assert_int_equal(first.ended.value, 1);
    close_owner(&first);
    assert_int_equal(r.heap.live_count.value, 0);
}

// --- new code that fails ---

TEST(module_that_cannot_be_replaced_goes_on) {
    owner old, next;
    nb_module_desc desc = open_old(&r, 0, &old, &next);
    frame(&r);
    uint32_t frames = old.frame_count;
    next.attach_result = NB_ERR_OS;
    assert_int_equal(nb_engine_module_replace(r.engine, old.module, &desc), NB_ERR_OS);
    // No memory, at any call.
    nb_result result = NB_ERR_MEMORY;
    next.attach_result = NB_OK;
    for (uint64_t call = 1; result == NB_ERR_MEMORY; ++call) {
        assert_int_equal(old.detach_count, 0);
        assert_int_equal(rig_stats(&r).module_count, 1);
        frame(&r);
        assert_int_equal(old.frame_count, ++frames);
        r.heap.fail_at = r.heap.call_count.value + call;
        result = nb_engine_module_replace(r.engine, old.module, &desc);
        r.heap.fail_at = 0;
    }
    assert_int_equal(result, NB_OK);
    assert_int_equal(old.detach_count, 1);
    assert_int_equal(next.attach_count, 2);
    frame(&r);
    assert_int_equal(old.frame_count, frames);
    assert_int_equal(next.frame_count, 1);
    assert_string_equal(nb_engine_module_name(r.engine, old.module), "first"); // its handle is the new one's
    rig_close(&r);
    assert_int_equal(next.detach_count, 1);
}

// --- on_detach ---

TEST(replaced_module_begins_nothing) {
    owner old, next;
    nb_module_desc desc = open_old(&r, 1, &old, &next);
    old.tries = true;
    assert_int_equal(nb_engine_module_replace(r.engine, old.module, &desc), NB_OK);
    for (uint32_t i = 0; i < 4; ++i) assert_int_equal(old.results[i], NB_CLOSED);
    close_owner(&old);
    rig_close(&r);
}

static uint32_t count_name(rig *own, const char *name) {
    nb_module_id modules[8];
    uint32_t found = 0, count = nb_engine_order_get(own->engine, NB_PHASE_GAMEPLAY, modules, 8);
    for (uint32_t i = 0; i < count; ++i) {
        found += strcmp(nb_engine_module_name(own->engine, modules[i]), name) == 0 ? 1 : 0;
    }
    return found;
}

TEST(replaced_module_does_not_take_its_name_back) {
    owner old, next;
    nb_module_desc desc = open_old(&r, 0, &old, &next);
    old.tries_name = true;
    assert_int_equal(nb_engine_module_replace(r.engine, old.module, &desc), NB_OK);
    assert_int_equal(old.results[0], NB_ERR_MISUSE);
    assert_int_equal(rig_stats(&r).module_count, 1);
    assert_int_equal(count_name(&r, "first"), 1);
    frame(&r);
    assert_int_equal(next.frame_count, 1);
    rig_close(&r);
}
