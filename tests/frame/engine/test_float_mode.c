// SPDX-License-Identifier: MIT
// A host that changes the floating-point mode of its threads: rounding upwards, denormals flushed to zero. Ticks, tasks
// and reductions compute the same bits, and the host's mode is as it was after each call.

#include "frame/engine/engine_fixture.h"

#include <fenv.h>

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

#define VALUES 4000
#define TICKS 60
#define TICK_NS UINT64_C(16666667)

// --- the mode of the host ---

// Round upwards, and flush denormals where this CPU can.
static void mode_set_odd(void) {
    fesetround(FE_UPWARD);
#if defined(__SSE__)
    _mm_setcsr(_mm_getcsr() | 0x8040u);
#elif defined(__aarch64__)
    uint64_t control;
    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    __asm__ volatile("msr fpcr, %0" : : "r"(control | UINT64_C(1) << 24));
#endif
}

static void mode_set_default(void) { fesetenv(FE_DFL_ENV); }

static bool flushes_denormals(void) {
    volatile float tiny = 1.0e-38f, tenth = 0.1f;
    volatile float product = tiny * tenth;
    return product == 0.0f;
}

static bool mode_is_odd(void) {
#if defined(__SSE__) || defined(__aarch64__)
    if (!flushes_denormals()) return false;
#endif
    return fegetround() == FE_UPWARD;
}

static bool mode_is_default(void) { return fegetround() == FE_TONEAREST && !flushes_denormals(); }

// When the host sets its mode.
typedef enum host_habit { HOST_KEEPS, HOST_SETS_BEFORE, HOST_SETS_AFTER, HOST_SETS_AND_RESETS, HOST_HABITS } host_habit;

static void host_before(host_habit habit) {
    if (habit == HOST_SETS_BEFORE || habit == HOST_SETS_AND_RESETS) mode_set_odd();
}
static void host_after(host_habit habit) {
    if (habit == HOST_SETS_AFTER) mode_set_odd();
    if (habit == HOST_SETS_AND_RESETS) mode_set_default();
}
static bool host_is_as_it_was(host_habit habit) {
    bool is_odd = habit == HOST_SETS_BEFORE || habit == HOST_SETS_AFTER;
    return is_odd ? mode_is_odd() : mode_is_default();
}

// --- sums ---

static double value_of(uint64_t index) { return 1.0 / (double)(3 + index); }

static void add_range(nb_task_context *context, void *user, uint64_t begin, uint64_t end, void *value) {
    (void)context;
    float *tiny = (float *)user;
    double *sums = value;
    for (uint64_t i = begin; i < end; ++i) {
        sums[0] += value_of(i);
        sums[1] += (double)(*tiny / (float)(1 + i % 7)); // denormals
    }
}

static void add_sums(void *user, void *into, const void *from) {
    (void)user;
    for (int i = 0; i < 2; ++i) ((double *)into)[i] += ((const double *)from)[i];
}

static void sum_up(nb_scheduler *scheduler, uint64_t count, double *sums) {
    static const double nothing[2] = {0.0, 0.0};
    static float tiny = 1.5e-38f;
    nb_reduce_desc desc = {.run = add_range,
                           .merge = add_sums,
                           .user = &tiny,
                           .count = count,
                           .initial = nothing,
                           .value_size_bytes = sizeof nothing};
    assert_int_equal(nb_parallel_reduce(scheduler, &desc, sums), NB_OK);
}

TEST(sums_are_the_same_whenever_the_host_sets_its_mode) {
    static double expected[200][2];
    for (uint32_t workers = 0; workers < 3; workers += 2) {
        for (host_habit habit = HOST_KEEPS; habit < HOST_HABITS; ++habit) {
            nb_scheduler *scheduler = NULL;
            nb_scheduler_desc desc = {.worker_count = workers != 0 ? workers : NB_WORKER_COUNT_NONE};
            host_before(habit);
            assert_int_equal(nb_scheduler_create(&desc, &scheduler), NB_OK);
            host_after(habit);
            uint32_t different = 0;
            for (uint64_t i = 0; i < 200; ++i) {
                double sums[2];
                sum_up(scheduler, 1 + i * VALUES / 200, sums);
                if (workers == 0 && habit == HOST_KEEPS) memcpy(expected[i], sums, sizeof sums);
                different += memcmp(expected[i], sums, sizeof sums) != 0;
            }
            bool is_as_it_was = host_is_as_it_was(habit);
            mode_set_default();
            assert_int_equal(different, 0);
            assert_true(is_as_it_was);
            assert_int_equal(nb_scheduler_destroy(scheduler), NB_OK);
        }
    }
}

// --- ticks ---

static const nb_column_desc body_columns[] = {{.name = "speed", .size_bytes = sizeof(double)}};

typedef struct game {
    nb_table bodies;
    double *speeds;
    double carried;          // by commands, of what jobs and async jobs have computed
    bool leaves_mode;        // handlers, tasks and steps leave an odd mode behind
    nb_atomic_u32 odd_count; // calls that found one
} game;

static void note_mode(game *g) {
    if (!mode_is_default()) nbi_atomic_fetch_add_seq_cst_u32(&g->odd_count, 1);
    if (g->leaves_mode) mode_set_odd();
}

static void move_bodies(nb_task_context *context, void *user, uint64_t begin, uint64_t end) {
    game *g = user;
    (void)context;
    for (uint64_t i = begin; i < end; ++i) g->speeds[i] = g->speeds[i] * 1.0000001 + value_of(i);
    note_mode(g);
}

static void run_alone(nb_task_context *context, void *argument) {
    (void)context;
    note_mode(*(game **)argument);
}

static nb_result tick(const nb_context *context, void *user) {
    game *g = user;
    g->speeds = NB_STORE_ROWS_WRITE(context->world, g->bodies, 0, double);
    if (g->speeds == NULL) return NB_ERR_MISUSE;
    double sums[2];
    sum_up(context->scheduler, 100 + context->tick->index % 100, sums);
    g->speeds[0] += sums[0] / 3.0 + sums[1];
    nb_parallel_desc desc = {.run = move_bodies, .user = g, .count = nb_store_row_count(context->world, g->bodies)};
    nb_result result = nb_parallel_for(context->scheduler, &desc, NULL);
    nb_task_desc task = {.run = run_alone, .argument = &g, .argument_size_bytes = sizeof g};
    if (result == NB_OK) result = nb_task_run(context->scheduler, &task);
    g->speeds[1] += g->speeds[0] / 7.0;
    note_mode(g);
    return result;
}

static nb_result leave_mode(const nb_context *context, void *user) {
    (void)context;
    note_mode(user);
    return NB_OK;
}

static nb_result merge(const nb_context *context, void *user, const nb_output_list *outputs) {
    (void)outputs;
    return leave_mode(context, user);
}

static nb_async_status step(nb_async_call *call, void *state) {
    (void)state;
    note_mode(call->user);
    return call->step++ < 2 ? NB_ASYNC_STATUS_FRAME : NB_ASYNC_STATUS_DONE;
}

static nb_engine *game_open(game *g, uint32_t workers) {
    nb_engine_desc desc = rig_desc(workers);
    desc.hashes_ticks = desc.keeps_history = true;
    nb_engine *engine = NULL;
    assert_int_equal(nb_engine_create(&desc, &engine), NB_OK);
    nb_table_desc bodies = {.name = "bodies", .row_count_max = 100, .columns = body_columns, .column_count = 1};
    assert_int_equal(nb_store_table_add(nb_engine_world(engine), &bodies, &g->bodies), NB_OK);
    for (int i = 0; i < 100; ++i) {
        nb_entity entity;
        assert_int_equal(nb_store_spawn(nb_engine_world(engine), g->bodies, &entity), NB_OK);
    }
    nb_module_desc module = {.name = "bodies",
                             .tick = tick,
                             .frame = leave_mode,
                             .parallel = leave_mode,
                             .merge = merge,
                             .record = leave_mode,
                             .handlers = {[NB_PHASE_INPUT] = leave_mode},
                             .user = g};
    assert_int_equal(nb_engine_module_attach(engine, &module, NULL), NB_OK);
    nb_async_job_desc job = {.step = step, .user = g};
    assert_int_equal(nb_async_submit(nb_engine_async(engine), &job, NULL), NB_OK);
    return engine;
}

// The hash of all ticks, half of them played in frames of about so many.
static uint64_t run_game(host_habit habit, uint32_t workers, uint32_t ticks_a_frame, bool leaves_mode) {
    game g = {.leaves_mode = leaves_mode};
    host_before(habit);
    nb_engine *engine = game_open(&g, workers);
    host_after(habit);
    bool is_as_it_was = true;
    for (int i = 0; i < 400 && nb_loop_tick_count(nb_engine_loop(engine)) < TICKS / 2; ++i) {
        nb_engine_frame_delta(engine, ticks_a_frame * TICK_NS);
        is_as_it_was = is_as_it_was && host_is_as_it_was(habit);
    }
    nb_result result = nb_engine_run_ticks(engine, TICKS - nb_loop_tick_count(nb_engine_loop(engine)));
    is_as_it_was = is_as_it_was && host_is_as_it_was(habit);
    mode_set_default();
    assert_true(is_as_it_was);
    assert_int_equal(result, NB_OK);
    assert_int_equal(g.odd_count.value, 0);
    uint64_t hash = nb_engine_stats_get(engine).run_hash;
    assert_int_equal(nb_engine_destroy(engine), NB_OK);
    return hash;
}

TEST(ticks_are_the_same_whenever_the_host_sets_its_mode) {
    uint64_t expected = run_game(HOST_KEEPS, 0, 1, false);
    for (host_habit habit = HOST_KEEPS; habit < HOST_HABITS; ++habit) {
        for (uint32_t workers = 0; workers < 3; ++workers) {
            assert_int_equal(run_game(habit, workers, 1 + workers, false), expected);
        }
    }
}

TEST(mode_that_a_callback_leaves_behind_reaches_no_other) {
    uint64_t expected = run_game(HOST_KEEPS, 0, 1, false);
    for (uint32_t workers = 0; workers < 3; ++workers) {
        assert_int_equal(run_game(HOST_KEEPS, workers, 1 + workers, true), expected);
    }
}

TEST(sticky_flags_of_the_host_stay) {
    game g = {0};
    nb_engine *engine = game_open(&g, 1);
    feclearexcept(FE_ALL_EXCEPT);
    fesetround(FE_UPWARD);
    feraiseexcept(FE_DIVBYZERO);
    assert_int_equal(nb_engine_run_ticks(engine, 2), NB_OK);
    int flags = fetestexcept(FE_DIVBYZERO), rounding = fegetround();
    mode_set_default();
    assert_int_equal(flags, FE_DIVBYZERO);
    assert_int_equal(rounding, FE_UPWARD);
    assert_int_equal(nb_engine_destroy(engine), NB_OK);
}
