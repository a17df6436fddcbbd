// SPDX-License-Identifier: MIT
// Probes: two modules that look, in each phase, whether the states are still those after the newest tick. Only a run
// that is to find out has them: each look hashes all states.

#include "verify_run.h"

static void look(nbi_run *run, nb_phase phase) {
    nb_states *states = nb_engine_states(run->engine);
    if (run->has_leak || run->result != NB_OK || nb_states_hash(states) == run->before_hash) return;
    nbi_saved now = {.bytes = NULL};
    nb_result result = nbi_run_save(run, &now);
    if (result == NB_OK) {
        result =
            nb_states_compare(states, run->before.bytes, run->before.size_bytes, now.bytes, now.size_bytes, &run->leak);
    }
    nb_hooks_free(&run->desc.hooks, now.bytes, now.capacity_bytes);
    if (result < 0) run->result = result;
    if (result != NB_OK) return;
    run->has_leak = true;
    run->leak_tick = nb_loop_tick_count(nb_engine_loop(run->engine));
    run->leak_phase = phase;
}

static nb_result look_last(const nb_context *context, void *user) {
    look(user, context->phase);
    return NB_OK;
}

// Rollback comes behind the handlers of its phase.
static nb_result look_behind_rollback(const nb_context *context, void *user) {
    (void)context;
    look(user, NB_PHASE_NETWORK_RECONCILIATION);
    return NB_OK;
}

// Before the first merge: what changed by then was a job.
static nb_result look_behind_jobs(const nb_context *context, void *user, const nb_output_list *outputs) {
    (void)context, (void)outputs;
    look(user, NB_PHASE_PARALLEL_TASKS);
    return NB_OK;
}

// Behind the last submit, as handlers of other phases are.
static nb_result look_behind_submits(const nb_context *context, void *user, const nb_output_list *outputs) {
    (void)outputs;
    return look_last(context, user);
}

static nb_result do_nothing(const nb_context *context, void *user) {
    (void)context, (void)user;
    return NB_OK;
}

nb_result nbi_probes_attach(nbi_run *run) {
    // Users tell modules apart by names only: both may have the same.
    nb_module_desc first = {.name = "nebula-verify-first",
                            .priority = INT32_MAX,
                            .parallel = do_nothing,
                            .merge = look_behind_jobs,
                            .user = run};
    first.handlers[NB_PHASE_RANDOM_SEED] = look_behind_rollback;
    nb_module_desc last = {.name = "nebula-verify-last",
                           .priority = INT32_MIN,
                           .frame = look_last,
                           .record = do_nothing,
                           .submit = look_behind_submits,
                           .user = run};
    static const nb_phase phases[] = {
        NB_PHASE_FRAME_START, NB_PHASE_INPUT,      NB_PHASE_NETWORK_RECONCILIATION,
        NB_PHASE_RANDOM_SEED, NB_PHASE_TRANSFORMS, NB_PHASE_SCENE_MUTATION,
        NB_PHASE_SNAPSHOT,    NB_PHASE_PRESENT,    NB_PHASE_POST_PARALLEL,
        NB_PHASE_FRAME_GRAPH, NB_PHASE_ASYNC_POLL, NB_PHASE_BUDGET_ADAPT,
        NB_PHASE_FRAME_END,
    };
    for (size_t i = 0; i < sizeof phases / sizeof phases[0]; ++i) last.handlers[phases[i]] = look_last;
    nb_result result = nb_engine_module_attach(run->engine, &first, NULL);
    if (result == NB_OK) result = nb_engine_module_attach(run->engine, &last, NULL);
    return result == NB_FULL ? NB_OK : result;
}

void nbi_probes_note(nbi_run *run) {
    if (run->has_leak) return;
    run->before_hash = nb_states_hash(nb_engine_states(run->engine)); // first: it clears padding
    nb_result result = nbi_run_save(run, &run->before);
    if (result != NB_OK && run->result == NB_OK) run->result = result;
}
