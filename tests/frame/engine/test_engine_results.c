// SPDX-License-Identifier: MIT
// The engine tells the results of tasks: on the coordinator, in FrameStart and PostParallel, with an own and with a
// borrowed scheduler, while it is paused, and before its modules leave.

#include "frame/engine/engine_fixture.h"

#define TASK_COUNT 20u
#define LIMIT_NS UINT64_C(10000000000)

// Workers, and whether the scheduler is borrowed.
typedef struct setting {
    uint32_t worker_count;
    bool is_borrowed;
} setting;

static const setting settings[] = {{0, false}, {1, false}, {4, false}, {0, true}, {1, true}, {4, true}};

typedef struct game {
    rig rig;
    nb_scheduler *borrowed;
    uint64_t coordinator;
    uint32_t submit_count; // a frame
    nb_lifetime lifetime;
    uint32_t told_count, wrong_count;
    uint32_t told_in[NB_PHASE_COUNT];
    uint32_t seen;       // told when the handler of PostParallel ran
    uint32_t left_after; // told when the module was detached
    bool has_left, is_quiet;
    uint64_t sum;
} game;

static void run_square(nb_task_context *context, void *argument) {
    uint64_t *value = argument;
    (void)context;
    *value *= *value;
}

static void on_square(void *user, const nb_task_result *result) {
    game *g = user;
    ++g->told_count;
    ++g->told_in[nb_engine_phase(g->rig.engine)];
    g->sum += *NB_RESULT_AS(uint64_t, result);
    if (result->status != NB_OK || nbi_thread_id() != g->coordinator) ++g->wrong_count;
    // A careless host: neither ends the engine under its own feet.
    if (nb_engine_destroy(g->rig.engine) != NB_BUSY || nb_engine_frame(g->rig.engine) != NB_BUSY) ++g->wrong_count;
}

static nb_result submit(const nb_context *context, void *user) {
    game *g = user;
    for (uint64_t i = 1; i <= g->submit_count; ++i) {
        nb_task_desc desc = {.run = run_square,
                             .argument = &i,
                             .argument_size_bytes = sizeof i,
                             .lifetime = g->lifetime,
                             .fence = context->fence,
                             .on_complete = on_square,
                             .user = g};
        if (nb_task_submit(context->scheduler, &desc, NULL) != NB_OK) ++g->wrong_count;
    }
    return NB_OK;
}

static nb_result look(const nb_context *context, void *user) {
    game *g = user;
    (void)context;
    g->seen = g->told_count;
    return NB_OK;
}

static void on_detach(nb_engine *engine, void *user) {
    game *g = user;
    (void)engine;
    g->has_left = true;
    g->left_after = g->told_count;
}

static nb_module_desc module_of(game *g) {
    return (nb_module_desc){.name = "game",
                            .frame = submit,
                            .handlers = {[NB_PHASE_POST_PARALLEL] = look},
                            .on_detach = on_detach,
                            .user = g};
}

static void open_desc(game *g, setting by, nb_engine_desc desc) {
    memset(g, 0, sizeof *g);
    g->coordinator = nbi_thread_id();
    desc.is_headless = true;
    if (by.is_borrowed) {
        assert_int_equal(nb_scheduler_create(&desc.scheduler_desc, &g->borrowed), NB_OK);
        desc.scheduler = g->borrowed;
    }
    rig_open_desc(&g->rig, desc);
}

static void open(game *g, setting by) { open_desc(g, by, rig_desc(by.worker_count)); }

// Submits tasks from the first frame on.
static void open_submitting(game *g, setting by, nb_lifetime lifetime) {
    open(g, by);
    g->submit_count = TASK_COUNT;
    g->lifetime = lifetime;
    attach(&g->rig, module_of(g));
}

static void close(game *g) {
    assert_int_equal(g->wrong_count, 0);
    rig_close(&g->rig);
    assert_int_equal(nb_scheduler_destroy(g->borrowed), NB_OK);
}

static void frame(game *g) { assert_int_equal(nb_engine_frame_delta(g->rig.engine, 0), NB_OK); }

TEST(results_of_a_frame_are_told_in_its_post_parallel) {
    for (uint32_t i = 0; i < sizeof settings / sizeof settings[0]; ++i) {
        game g;
        open_submitting(&g, settings[i], NB_LIFETIME_FRAME);
        for (uint32_t f = 1; f <= 10; ++f) {
            if (f == 5) assert_int_equal(nb_loop_pause(nb_engine_loop(g.rig.engine)), NB_OK);
            frame(&g);
            assert_int_equal(g.seen, f * TASK_COUNT);
            assert_int_equal(g.told_in[NB_PHASE_POST_PARALLEL], f * TASK_COUNT);
            assert_int_equal(g.sum, f * (TASK_COUNT * (TASK_COUNT + 1) * (2 * TASK_COUNT + 1) / 6));
        }
        close(&g);
    }
}

static bool await_told(game *g, uint32_t count) {
    uint64_t end_ns = nbi_clock_now_ns() + LIMIT_NS;
    while (g->told_count < count && nbi_clock_now_ns() < end_ns) frame(g);
    return g->told_count == count;
}

TEST(results_of_floating_tasks_are_told_in_a_later_frame) {
    for (uint32_t i = 0; i < sizeof settings / sizeof settings[0]; ++i) {
        game g;
        open_submitting(&g, settings[i], NB_LIFETIME_FLOATING);
        frame(&g);
        g.submit_count = 0;
        assert_true(await_told(&g, TASK_COUNT));
        assert_int_equal(g.told_in[NB_PHASE_FRAME_START] + g.told_in[NB_PHASE_POST_PARALLEL], TASK_COUNT);
        close(&g);
    }
}

// --- a callback that makes work for itself ---

static void on_again(void *user, const nb_task_result *result);

static void again(game *g, nb_scheduler *scheduler, nb_fence *fence) {
    uint64_t value = 1;
    nb_task_desc desc = {.run = run_square,
                         .argument = &value,
                         .argument_size_bytes = sizeof value,
                         .lifetime = NB_LIFETIME_FLOATING,
                         .fence = fence,
                         .on_complete = on_again,
                         .user = g};
    // It has ended when the call returns.
    if (nb_task_run(scheduler, &desc) != NB_OK) ++g->wrong_count;
}

static nb_fence *fence_of_game;

static void on_again(void *user, const nb_task_result *result) {
    game *g = user;
    (void)result;
    ++g->told_count;
    if (g->is_quiet || g->told_count > 1000) return; // a frame that has no end must not keep the test
    again(g, nb_engine_scheduler(g->rig.engine), fence_of_game);
    if (nb_scheduler_drain(nb_engine_scheduler(g->rig.engine), 0, NULL) != NB_BUSY) ++g->wrong_count;
}

static nb_result start_once(const nb_context *context, void *user) {
    game *g = user;
    fence_of_game = context->fence;
    if (context->frame_index == 0) again(g, context->scheduler, context->fence);
    return NB_OK;
}

TEST(callbacks_that_submit_more_cannot_hold_a_frame) {
    const setting by[] = {{1, false}, {1, true}};
    for (uint32_t i = 0; i < 2; ++i) {
        game g;
        open(&g, by[i]);
        attach(&g.rig, (nb_module_desc){.name = "again", .frame = start_once, .user = &g});
        frame(&g); // PostParallel tells the first
        assert_int_equal(g.told_count, 1);
        for (uint32_t f = 1; f <= 10; ++f) {
            frame(&g);
            assert_int_equal(g.told_count, 1 + 2 * f); // one in each of the two phases
        }
        g.is_quiet = true;
        close(&g);
        assert_int_equal(g.told_count, 22);
    }
}

// --- two engines, one scheduler ---

static void count_told(void *user, const nb_task_result *result) {
    (void)result;
    ++*(uint32_t *)user;
}

TEST(engines_tell_their_own_results_on_a_shared_scheduler) {
    game first, second;
    nb_scheduler *scheduler = NULL;
    uint32_t hosts_count = 0;
    uint64_t value = 3, count = 0;
    nb_engine_desc desc = rig_desc(1);
    assert_int_equal(nb_scheduler_create(&desc.scheduler_desc, &scheduler), NB_OK);
    desc.scheduler = scheduler;
    open_desc(&first, (setting){1, false}, desc);
    open_desc(&second, (setting){1, false}, desc);
    game *both[] = {&first, &second};
    for (uint32_t i = 0; i < 2; ++i) {
        both[i]->submit_count = TASK_COUNT;
        both[i]->lifetime = NB_LIFETIME_FRAME;
        attach(&both[i]->rig, module_of(both[i]));
    }
    nb_task_desc task = {.run = run_square,
                         .argument = &value,
                         .argument_size_bytes = sizeof value,
                         .on_complete = count_told,
                         .user = &hosts_count};
    assert_int_equal(nb_task_run(scheduler, &task), NB_OK);
    for (uint32_t f = 1; f <= 5; ++f) {
        // The first one's frame ends its tasks; those that the second left late would be told by the second alone.
        frame(&first);
        assert_int_equal(first.told_count, f * TASK_COUNT);
        assert_int_equal(second.told_count, (f - 1) * TASK_COUNT);
        frame(&second);
        assert_int_equal(first.told_count, f * TASK_COUNT);
        assert_int_equal(second.told_count, f * TASK_COUNT);
    }
    assert_int_equal(hosts_count, 0);
    close(&first);
    frame(&second);
    assert_int_equal(second.told_count, 6 * TASK_COUNT);
    close(&second);
    assert_int_equal(nb_scheduler_drain(scheduler, 0, &count), NB_OK);
    assert_int_equal(count, 1);
    assert_int_equal(hosts_count, 1);
    assert_int_equal(nb_scheduler_destroy(scheduler), NB_OK);
}

// --- the end ---

static void run_slowly(nb_task_context *context, void *argument) {
    for (int i = 0; i < 300; ++i) nbi_thread_yield();
    run_square(context, argument);
}

// The square of 2 for a game.
static nb_task_desc square_desc(const nb_context *context, game *g, void (*run)(nb_task_context *, void *)) {
    static const uint64_t value = 2;
    nb_task_desc desc = {.run = run, .argument = &value, .argument_size_bytes = sizeof value, .on_complete = on_square};
    desc.fence = context->fence, desc.user = g;
    return desc;
}

static nb_result submit_and_leave(const nb_context *context, void *user) {
    game *g = user;
    nb_task_desc desc = square_desc(context, g, run_slowly);
    desc.lifetime = NB_LIFETIME_FRAME;
    // A handler behind the drains of the frame: only the end can tell it.
    if (nb_task_submit(context->scheduler, &desc, NULL) != NB_OK && context->frame.value != 0) ++g->wrong_count;
    return NB_OK;
}

static void run_floating(const nb_context *context, game *g) {
    nb_task_desc desc = square_desc(context, g, run_square);
    desc.lifetime = NB_LIFETIME_FLOATING;
    if (nb_task_run(context->scheduler, &desc) != NB_OK) ++g->wrong_count;
}

static nb_result run_at_the_end(const nb_context *context, void *user) {
    run_floating(context, user);
    return NB_OK;
}

TEST(results_are_told_before_modules_leave) {
    for (uint32_t i = 0; i < sizeof settings / sizeof settings[0]; ++i) {
        game g;
        open(&g, settings[i]);
        nb_module_desc desc = {
            .name = "late", .handlers = {[NB_PHASE_FRAME_END] = run_at_the_end}, .on_detach = on_detach, .user = &g};
        attach(&g.rig, desc);
        frame(&g);
        assert_int_equal(g.told_count, 0);
        close(&g);
        assert_true(g.has_left);
        assert_int_equal(g.told_count, 1);
        assert_int_equal(g.left_after, 1);
    }
}

// A module that is detached leaves its results to be told: none is lost, and none is told twice.
TEST(results_of_a_detached_module_are_told) {
    for (uint32_t i = 0; i < sizeof settings / sizeof settings[0]; ++i) {
        game g;
        open(&g, settings[i]);
        nb_module_id module = attach(&g.rig, (nb_module_desc){.name = "late", .frame = submit_and_leave, .user = &g});
        frame(&g);
        uint32_t told_count = g.told_count;
        assert_int_equal(nb_engine_module_detach(g.rig.engine, module), NB_OK);
        assert_true(await_told(&g, 1));
        assert_true(told_count <= 1);
        frame(&g);
        assert_int_equal(g.told_count, 1);
        close(&g);
    }
}
