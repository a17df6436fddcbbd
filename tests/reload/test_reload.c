// SPDX-License-Identifier: MIT
// Reloading real libraries while their tasks, async jobs and token callbacks are in flight: what is unloaded is not
// called any more, and nothing that was begun is lost.

#include "frame/engine/engine_fixture.h"
#include "reload/reload.h"

#include <dlfcn.h>

#define LIMIT_NS UINT64_C(20000000000)
#define RELOAD_COUNT 200u

static const char *const paths[3] = {reload_broken_path, reload_one_path, reload_two_path};

// Another module, of the host's own code: it goes on whatever happens to the game.
typedef struct neighbour {
    nb_atomic_u32 task_count;
    uint32_t begun, published, discarded;
    bool is_quiet;
} neighbour;

typedef struct host {
    rig r;
    reload_shared shared;
    neighbour neighbour;
    void *library;
    nb_module_id module;
    uint32_t version, busy_count;
} host;

static nb_async_status pause_once(nb_async_call *call, void *state) {
    (void)state;
    NB_ASYNC_BEGIN(call);
    NB_ASYNC_FRAME(call);
    NB_ASYNC_END(call);
}

static void count_publish(void *engine, void *state) {
    (void)engine;
    ++(*(neighbour **)state)->published;
}

static void count_discard(void *engine, void *state, nb_result reason) {
    (void)engine, (void)reason;
    ++(*(neighbour **)state)->discarded;
}

static void count_task(nb_task_context *context, void *argument) {
    (void)context;
    nbi_atomic_fetch_add_seq_cst_u32(&(*(neighbour **)argument)->task_count, 1);
}

static nb_result neighbour_frame(const nb_context *context, void *user) {
    neighbour *n = user;
    if (n->is_quiet) return NB_OK;
    nb_async_job_desc job = {.step = pause_once,
                             .publish = count_publish,
                             .discard = count_discard,
                             .state = &n,
                             .state_size_bytes = sizeof n};
    nb_task_desc task = {.run = count_task, .argument = &n, .argument_size_bytes = sizeof n};
    nb_result result = nb_async_submit(nb_engine_async(context->engine), &job, NULL);
    if (result == NB_OK) ++n->begun;
    return result == NB_OK ? nb_task_submit(context->scheduler, &task, NULL) : result;
}

// --- libraries ---

static nb_module_desc load(reload_shared *shared, uint32_t version, void **library) {
    *library = dlopen(paths[version], RTLD_NOW | RTLD_LOCAL);
    assert_non_null(*library);
    void *symbol = dlsym(*library, RELOAD_FUNCTION);
    assert_non_null(symbol);
    reload_module_fn *module = NULL;
    memcpy(&module, &symbol, sizeof module); // ISO C has no cast between the two
    return module(shared);
}

// Really gone: whatever calls its code now ends the process.
static void unload(void *library, uint32_t version) {
    assert_int_equal(dlclose(library), 0);
    assert_null(dlopen(paths[version], RTLD_NOW | RTLD_NOLOAD));
}

// --- the host ---

static void frame(host *h) { assert_int_equal(nb_engine_frame_delta(h->r.engine, 0), NB_OK); }

static void host_open(host *h) {
    memset(h, 0, sizeof *h);
    rig_open(&h->r, 2);
    nb_labels_intern(nb_engine_labels(h->r.engine), "errand", &h->shared.label);
    attach(&h->r, (nb_module_desc){.name = "neighbour", .frame = neighbour_frame, .user = &h->neighbour});
    h->version = 1;
    h->module = attach(&h->r, load(&h->shared, h->version, &h->library));
}

static bool is_whole(const reload_count *count) { return count->begun.value == count->ended.value; }

static void expect_nothing_lost(const reload_shared *s) {
    assert_true(is_whole(&s->tasks) && is_whole(&s->results) && is_whole(&s->bound) && is_whole(&s->jobs));
    assert_true(is_whole(&s->callbacks) && is_whole(&s->parts));
}

static void host_close(host *h) {
    expect_nothing_lost(&h->shared);
    for (uint32_t i = 0; i < RELOAD_CALLBACK_COUNT; ++i) {
        nb_token_callback_unregister(&h->shared.tokens[i]);
        nb_token_release(h->shared.token_of[i]);
    }
    rig_close(&h->r);
    unload(h->library, h->version);
    assert_int_equal(h->shared.attach_count, h->shared.detach_count);
}

// With a task that is held the answer is certain; afterwards the game is asked to rest, and frames run until it does.
static void reload(host *h, uint32_t version) {
    void *library = NULL;
    nb_module_desc desc = load(&h->shared, version, &library);
    nbi_atomic_store_release_u32(&h->shared.is_held, 1);
    h->shared.is_quiet = false;
    frame(h);
    assert_int_equal(nb_engine_module_replace(h->r.engine, h->module, &desc), NB_BUSY);
    nbi_atomic_store_release_u32(&h->shared.is_held, 0);
    h->shared.is_quiet = true;
    uint64_t end_ns = nbi_clock_now_ns() + LIMIT_NS;
    nb_result result = NB_BUSY;
    while (result == NB_BUSY && nbi_clock_now_ns() < end_ns) {
        ++h->busy_count;
        frame(h);
        result = nb_engine_module_replace(h->r.engine, h->module, &desc);
    }
    assert_int_equal(result, NB_OK);
    unload(h->library, h->version);
    h->library = library;
    h->version = version;
}

TEST(libraries_are_reloaded_while_their_work_is_in_flight) {
    static host h;
    host_open(&h);
    for (uint32_t i = 0; i < RELOAD_COUNT; ++i) {
        reload(&h, 1 + (i + 1) % 2);
        expect_nothing_lost(&h.shared);
        frame(&h);
        assert_int_equal(h.shared.version, h.version);
    }
    assert_int_equal(h.shared.attach_count, RELOAD_COUNT + 1);
    assert_int_equal(h.shared.detach_count, RELOAD_COUNT);
    assert_true(h.shared.jobs.ended.value >= RELOAD_COUNT && h.shared.callbacks.ended.value >= RELOAD_COUNT);
    // In one word for each row of refusals.
    assert_int_equal(test_log_count(&h.r.log, NB_ITEM_ENGINE_LEFTOVER), RELOAD_COUNT);
    uint64_t end_ns = nbi_clock_now_ns() + LIMIT_NS;
    h.neighbour.is_quiet = true;
    while (h.neighbour.published < h.neighbour.begun && nbi_clock_now_ns() < end_ns) frame(&h);
    assert_int_equal(h.neighbour.published, h.neighbour.begun);
    assert_int_equal(h.neighbour.discarded, 0);
    assert_true(h.neighbour.begun > RELOAD_COUNT);
    host_close(&h);
}

TEST(library_that_fails_to_attach_is_unloaded_at_once) {
    static host h;
    host_open(&h);
    for (uint32_t i = 0; i < 10; ++i) {
        void *library = NULL;
        h.shared.is_quiet = false;
        frame(&h);
        h.shared.is_quiet = true;
        nb_module_desc desc = load(&h.shared, 0, &library);
        nb_result result = NB_BUSY;
        uint64_t end_ns = nbi_clock_now_ns() + LIMIT_NS;
        while (result == NB_BUSY && nbi_clock_now_ns() < end_ns) {
            frame(&h);
            result = nb_engine_module_replace(h.r.engine, h.module, &desc);
        }
        assert_int_equal(result, NB_ERR_UNSUPPORTED);
        unload(library, 0);
        h.shared.version = 0;
        frame(&h);
        assert_int_equal(h.shared.version, 1); // the old one runs
        assert_int_equal(h.shared.detach_count, 0);
    }
    h.shared.attach_count -= 10; // those that were refused are not detached
    host_close(&h);
}
