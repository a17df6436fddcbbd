// SPDX-License-Identifier: MIT
// Who may do what: every phase, every layer, every capability, from the right call and from wrong ones. What is refused
// is counted once, and changes nothing.

#define _DEFAULT_SOURCE // fork, setrlimit

#include "frame/engine/engine_fixture.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "nebula/rollback.h"

// --- the matrix ---

typedef struct matrix {
    uint32_t asked;         // capabilities of the module
    uint64_t cell_count;    // questions asked
    uint64_t refused_count; // of them, refused
    uint64_t mistake_count; // answers other than the table's
    uint32_t phases_seen[NB_PHASE_COUNT];
    uint64_t value;    // "state" that only an allowed operation changes
    uint64_t expected; // what it should be
} matrix;

// An operation of the kind the runtime has: it asks first, and has no effect where it is refused.
static void operate(matrix *m, const nb_context *context, uint32_t layer) {
    if (nb_context_check(context, layer) == NB_OK) m->value = m->value * 31 + layer;
}

static void ask_all(matrix *m, const nb_context *context, bool is_job) {
    const nb_phase_info *info = nb_phase_info_get(context->phase);
    uint32_t capabilities = is_job ? 0 : m->asked & info->capabilities;
    if (context->capabilities != capabilities) ++m->mistake_count;
    ++m->phases_seen[context->phase];
    for (uint32_t bit = 0; bit < 4; ++bit) {
        uint32_t one = 1u << bit;
        bool may = (info->mutates & one) != 0 ||
                   ((info->conditional & one) != 0 && (capabilities & NB_CAPABILITY_MUTATE_ENGINE) != 0);
        uint64_t before = nb_engine_stats_get(context->engine).violation_count;
        operate(m, context, one);
        if (may) m->expected = m->expected * 31 + one;
        uint64_t refused = nb_engine_stats_get(context->engine).violation_count - before;
        bool has = (capabilities & one) != 0;
        nb_result result = nb_context_check_capability(context, one);
        if (refused != (may ? 0u : 1u) || result != (has ? NB_OK : NB_ERR_PERMISSION)) ++m->mistake_count;
        m->cell_count += 2;
        m->refused_count += (may ? 0u : 1u) + (has ? 0u : 1u);
    }
}

static nb_result ask(const nb_context *context, void *user) {
    ask_all(user, context, false);
    return NB_OK;
}

static nb_result ask_in_job(const nb_context *context, void *user) {
    ask_all(user, context, true);
    return NB_OK;
}

static nb_module_desc matrix_desc(matrix *m) {
    nb_module_desc desc = {.name = "matrix", .capabilities = m->asked, .user = m};
    for (uint32_t i = 1; i < NB_PHASE_DETACHED_SERVICES; ++i) {
        if (i != NB_PHASE_PARALLEL_TASKS && i != NB_PHASE_COMMAND_RECORD) desc.handlers[i] = ask;
    }
    desc.parallel = ask_in_job;
    desc.record = ask_in_job;
    return desc;
}

static rig r; // of the case that runs

TEST(every_phase_operation_and_capability_is_as_the_table_says) {
    for (uint32_t asked = 0; asked <= NB_CAPABILITY_ALL; ++asked) {
        rig_open(&r, 0);
        matrix m = {.asked = asked};
        attach(&r, matrix_desc(&m));
        run_ticks(&r, 1);
        assert_int_equal(m.mistake_count, 0);
        assert_int_equal(m.cell_count, 17 * 8); // all but DetachedServices
        for (uint32_t i = 1; i < NB_PHASE_DETACHED_SERVICES; ++i) assert_int_equal(m.phases_seen[i], 1);
        assert_true(m.value == m.expected);
        assert_int_equal(rig_stats(&r).violation_count, m.refused_count);
        // Told once a place, counted each time.
        uint32_t told = test_log_count(&r.log, NB_ITEM_ENGINE_VIOLATION);
        assert_int_equal(told, m.refused_count);
        run_ticks(&r, 1);
        assert_int_equal(rig_stats(&r).violation_count, m.refused_count);
        assert_int_equal(test_log_count(&r.log, NB_ITEM_ENGINE_VIOLATION), told);
        rig_close(&r);
    }
}

// --- contexts in the wrong place ---

typedef struct keeper {
    nb_context kept, job_kept, last_kept;
    nb_result from_other_thread;
} keeper;

static void use_elsewhere(void *user) {
    keeper *k = user;
    k->from_other_thread = nb_context_check(&k->kept, NB_LAYER_GAME);
}

static nb_result keep(const nb_context *context, void *user) {
    keeper *k = user;
    k->kept = *context;
    test_thread_run(use_elsewhere, k);
    return nb_context_check(context, NB_LAYER_GAME);
}

static nb_result keep_job(const nb_context *context, void *user) {
    ((keeper *)user)->job_kept = *context;
    return nb_context_check(context, NB_LAYER_FRAME);
}

static nb_result use_kept(const nb_context *context, void *user) {
    keeper *k = user;
    k->last_kept = *context;
    return nb_context_check(&k->kept, NB_LAYER_GAME) == NB_ERR_STALE &&
                   nb_context_check(&k->job_kept, NB_LAYER_FRAME) == NB_ERR_STALE
               ? NB_OK
               : NB_ERR_MISUSE;
}

TEST(kept_and_carried_contexts_are_worth_nothing) {
    rig_open(&r, 1);
    keeper k = {0};
    nb_module_desc desc = {.name = "keeper", .frame = keep, .parallel = keep_job, .user = &k};
    desc.handlers[NB_PHASE_FRAME_END] = use_kept;
    attach(&r, desc);
    run_ticks(&r, 1);
    assert_int_equal(rig_stats(&r).failure_count, 0);
    assert_int_equal(k.from_other_thread, NB_ERR_THREAD);
    assert_int_equal(nb_context_check(&k.kept, NB_LAYER_GAME), NB_ERR_STALE);
    assert_int_equal(nb_context_check(&k.last_kept, NB_LAYER_ENGINE), NB_ERR_STALE); // between frames
    k.kept.call = NULL;
    assert_int_equal(nb_context_check(&k.kept, NB_LAYER_GAME), NB_ERR_STALE);
    assert_int_equal(rig_stats(&r).violation_count, 6);
    rig_close(&r);
}

// What a context says is not believed.
static nb_result lie(const nb_context *context, void *user) {
    (void)user;
    nb_context forged = *context;
    forged.phase = NB_PHASE_FIXED_SIM;
    forged.capabilities = NB_CAPABILITY_ALL;
    return nb_context_check(&forged, NB_LAYER_SIMULATED) == NB_ERR_PERMISSION &&
                   nb_context_check_capability(&forged, NB_CAPABILITY_ADVANCE) == NB_ERR_PERMISSION
               ? NB_OK
               : NB_ERR_MISUSE;
}

TEST(forged_context_is_not_believed) {
    rig_open(&r, 0);
    attach(&r, (nb_module_desc){.name = "liar", .frame = lie});
    run_ticks(&r, 1);
    assert_int_equal(rig_stats(&r).failure_count, 0);
    rig_close(&r);
}

// --- policies ---

static void count_trap(void *user, const nb_log_record *record) {
    (void)record;
    ++*(uint32_t *)user;
}

static nb_result misbehave(const nb_context *context, void *user) {
    (void)user;
    return nb_context_check(context, NB_LAYER_SIMULATED) == NB_ERR_PERMISSION ? NB_OK : NB_ERR_MISUSE;
}

TEST(policy_decides_how_loud_a_refusal_is) {
    for (uint32_t policy = NB_VIOLATION_REPORT; policy < NB_VIOLATION_POLICY_COUNT; ++policy) {
        test_log log = {0};
        uint32_t trap_count = 0;
        nb_engine_desc desc = rig_desc(0);
        desc.violation_policy = (nb_violation_policy)policy;
        desc.hooks = test_hooks(&log, NULL);
        desc.hooks.assertion.failed = count_trap;
        desc.hooks.assertion.user = &trap_count;
        nb_engine *engine = NULL;
        assert_int_equal(nb_engine_create(&desc, &engine), NB_OK);
        nb_module_desc module = {.name = "bad", .frame = misbehave};
        assert_int_equal(nb_engine_module_attach(engine, &module, NULL), NB_OK);
        assert_int_equal(nb_engine_run_ticks(engine, 3), NB_OK);
        assert_int_equal(nb_engine_stats_get(engine).violation_count, 3);
        assert_int_equal(nb_engine_stats_get(engine).failure_count, 0);
        assert_int_equal(test_log_count(&log, NB_ITEM_ENGINE_VIOLATION), policy == NB_VIOLATION_COUNT_ONLY ? 0 : 1);
        assert_int_equal(trap_count, policy == NB_VIOLATION_TRAP ? 3 : 0);
        assert_int_equal(nb_engine_destroy(engine), NB_OK);
    }
}

// --- traps, in every build ---

static const nb_column_desc ship_columns[] = {{.name = "health", .size_bytes = sizeof(uint32_t)}};

typedef struct harbour {
    nb_table ships;
    uint32_t violation; // which one it commits
} harbour;

enum { BY_STAGE, BY_CORRECTION, BY_CHECK, BY_SPAWN, BY_LOAD, VIOLATIONS };

// In PostParallel, which may do nothing of it.
static nb_result violate(const nb_context *context, void *user) {
    const harbour *h = user;
    nb_entity entity;
    static unsigned char bytes[64];
    switch (h->violation) {
    case BY_STAGE: nb_context_stage(context, 0); break;
    case BY_CORRECTION: nb_context_correct_state(context, 0, bytes, sizeof bytes); break;
    case BY_CHECK: nb_context_check(context, NB_LAYER_SIMULATED); break;
    case BY_SPAWN: nb_store_spawn(context->world, h->ships, &entity); break;
    default: nb_store_load(context->world, bytes, sizeof bytes); break;
    }
    return NB_OK;
}

static nb_engine *harbour_open(harbour *h, nb_hooks hooks) {
    nb_engine_desc desc = rig_desc(0);
    desc.violation_policy = NB_VIOLATION_TRAP;
    desc.hooks = hooks;
    nb_engine *engine = NULL;
    nb_table_desc ships = {.name = "ships", .row_count_max = 10, .columns = ship_columns, .column_count = 1};
    nb_module_desc module = {.name = "bad", .handlers = {[NB_PHASE_POST_PARALLEL] = violate}, .user = h};
    bool is_open = nb_engine_create(&desc, &engine) == NB_OK &&
                   nb_store_table_add(nb_engine_world(engine), &ships, &h->ships) == NB_OK &&
                   nb_engine_module_attach(engine, &module, NULL) == NB_OK;
    return is_open ? engine : NULL;
}

TEST(trap_calls_the_hook_at_each_violation) {
    for (uint32_t violation = 0; violation < VIOLATIONS; ++violation) {
        uint32_t trap_count = 0;
        test_log log = {0};
        harbour h = {.violation = violation};
        nb_hooks hooks = test_hooks(&log, NULL);
        hooks.assertion = (nb_assert_hook){count_trap, &trap_count};
        nb_engine *engine = harbour_open(&h, hooks);
        assert_non_null(engine);
        assert_int_equal(nb_engine_run_ticks(engine, 5), NB_OK);
        assert_int_equal(trap_count, 5);
        assert_int_equal(nb_engine_stats_get(engine).violation_count, 5);
        uint32_t logged = test_log_count(&log, NB_ITEM_ENGINE_VIOLATION) + test_log_count(&log, NB_ITEM_STORE_DENIED);
        assert_int_equal(logged, 1);
        assert_int_equal(nb_engine_destroy(engine), NB_OK);
    }
}

// The signal that ends a child whose engine has no assertion hook; 0 = none did.
static int signal_of_child(uint32_t violation) {
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        struct rlimit none = {0, 0};
        test_log log = {0};
        harbour h = {.violation = violation};
        setrlimit(RLIMIT_CORE, &none);
        signal(SIGILL, SIG_DFL), signal(SIGTRAP, SIG_DFL);
        nb_engine *engine = harbour_open(&h, test_hooks(&log, NULL));
        if (engine != NULL) nb_engine_run_ticks(engine, 1);
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

TEST(trap_without_a_hook_ends_the_process) {
    for (uint32_t violation = 0; violation < VIOLATIONS; ++violation) {
        int signal = signal_of_child(violation);
        assert_true(signal == SIGILL || signal == SIGTRAP);
    }
}
