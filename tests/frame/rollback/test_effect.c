// SPDX-License-Identifier: MIT
// What a tick does beside the state happens once, however often the tick is simulated.

#include "frame/engine/engine_fixture.h"

#include "nebula/effect.h"
#include "nebula/rollback.h"

#define TICKS 40u

typedef struct stage_play {
    rig r;
    uint64_t sum;                         // simulated
    uint32_t runs, logs, submits, leaves; // of the tick handler, and what it was told
    uint32_t step_count, publish_count;
    nb_result bad; // of a line without a level
    nb_context kept;
} stage_play;

static nb_async_status step(nb_async_call *call, void *state) {
    (void)call;
    ++(*(stage_play **)state)->step_count; // no workers: the coordinator's thread
    return NB_ASYNC_STATUS_DONE;
}

static void publish(void *host, void *state) {
    (void)host;
    ++(*(stage_play **)state)->publish_count;
}

static nb_result tick(const nb_context *context, void *user) {
    stage_play *p = user;
    p->sum = p->sum * 31 + context->tick->index + context->commands.count;
    ++p->runs;
    nb_async_job_desc job = {.step = step, .publish = publish, .state = &p, .state_size_bytes = sizeof p};
    nb_result logged = nb_context_log(context, NB_LOG_WARNING, "tick %u", (unsigned)context->tick->index);
    nb_result submitted = nb_context_submit(context, &job, NULL);
    assert_int_equal(logged, context->is_resimulated ? NB_EMPTY : NB_OK);
    assert_int_equal(submitted, context->is_resimulated ? NB_EMPTY : NB_OK);
    p->logs += logged == NB_OK;
    p->submits += submitted == NB_OK;
    p->leaves += (logged == NB_EMPTY ? 1u : 0u) + (submitted == NB_EMPTY ? 1u : 0u);
    return NB_OK;
}

static nb_result reconcile(const nb_context *context, void *user) {
    stage_play *p = user;
    uint64_t now = nb_loop_tick_count(nb_engine_loop(context->engine));
    p->kept = *context;
    p->bad = nb_context_log(context, NB_LOG_OFF, "nothing");
    if (now < 5) return NB_OK;
    nb_input_event event = {.kind = NB_INPUT_COMMAND, .code = (uint32_t)now};
    nb_history_input input = {{NULL, 0}, {&event, 1}};
    return nb_context_correct_input(context, now - 5, &input);
}

TEST(effects_of_a_tick_come_once) {
    static stage_play p;
    memset(&p, 0, sizeof p);
    nb_engine_desc desc = rig_desc(0);
    desc.keeps_history = true;
    rig_open_desc(&p.r, desc);
    nb_provider_desc sum = {.name = "sum", .data = &p.sum, .size_bytes = sizeof p.sum};
    assert_int_equal(nb_states_add(nb_engine_states(p.r.engine), &sum, NULL), NB_OK);
    nb_module_desc module = {.name = "play", .tick = tick, .user = &p};
    module.handlers[NB_PHASE_NETWORK_RECONCILIATION] = reconcile;
    attach(&p.r, module);
    run_ticks(&p.r, TICKS);
    nb_rollback_stats stats = nb_engine_rollback_stats(p.r.engine);
    assert_int_equal(stats.rollback_count, TICKS - 5);
    assert_int_equal(p.runs, TICKS + 5 * (TICKS - 5));
    assert_int_equal(p.logs, TICKS);
    assert_int_equal(p.submits, TICKS);
    assert_int_equal(p.leaves, 2 * 5 * (TICKS - 5));
    assert_int_equal(stats.effect_count, p.leaves);
    assert_int_equal(test_log_count(&p.r.log, NB_ITEM_ENGINE_NOTE), TICKS);
    assert_int_equal(p.bad, NB_ERR_MISUSE);
    // A context is worth nothing when its handler has returned.
    assert_int_equal(nb_context_log(&p.kept, NB_LOG_WARNING, "late"), NB_ERR_STALE);
    assert_int_equal(nb_context_submit(&p.kept, NULL, NULL), NB_ERR_STALE);
    assert_int_equal(test_log_count(&p.r.log, NB_ITEM_ENGINE_NOTE), TICKS);
    rig_close(&p.r);
    assert_int_equal(p.step_count, TICKS);
    assert_true(p.publish_count > 0 && p.publish_count <= TICKS); // the last ones have no frame left to be shown in
}

static nb_result whisper(const nb_context *context, void *user) {
    rig *r = user;
    assert_int_equal(nb_context_log(context, NB_LOG_INFO, "not heard"), NB_OK);
    assert_int_equal(nb_context_log(context, NB_LOG_ERROR, "%s in frame %u", "heard", (unsigned)context->frame_index),
                     NB_OK);
    assert_string_equal(r->log.last_message, "heard in frame 0");
    return NB_OK;
}

TEST(lines_have_a_level_and_any_phase) {
    rig r;
    rig_open(&r, 0);
    nb_module_desc module = {.name = "whisper", .user = &r};
    module.handlers[NB_PHASE_GAMEPLAY] = whisper;
    attach(&r, module);
    run_ticks(&r, 1);
    assert_int_equal(test_log_count(&r.log, NB_ITEM_ENGINE_NOTE), 1);
    assert_int_equal(nb_engine_rollback_stats(r.engine).effect_count, 0);
    rig_close(&r);
}
