// SPDX-License-Identifier: MIT
// Running the handlers of a phase.

#include "engine.h"

#include "../../base/loop.h"

static nbi_module *module_at(nb_engine *engine, uint32_t index) { return &engine->modules[index]; }

nb_context nbi_call_begin(nb_engine *engine, uint32_t module, nb_phase phase) {
    const nbi_module *owner = module != NBI_MODULE_NONE ? module_at(engine, module) : NULL;
    nbi_call *call = &engine->call;
    bool is_tick = phase == NB_PHASE_FIXED_SIM;
    call->owner = nbi_owner_enter(owner != NULL ? owner->owner : engine->owner);
    call->phase = phase;
    call->capabilities = owner != NULL ? owner->desc.capabilities & nb_phase_info_get(phase)->capabilities : 0;
    call->module = module;
    call->fp_mode = nbi_fp_enter();
    nbi_atomic_store_relaxed_u64(&call->thread_id, engine->coordinator);
    nbi_atomic_store_relaxed_u64(&call->serial, ++engine->serial);
    return (nb_context){.engine = engine,
                        .module = {owner != NULL ? owner->number << 16 | module : 0},
                        .phase = phase,
                        .frame_index = engine->time.index,
                        .frame = engine->frame,
                        .time = &engine->time,
                        .tick = engine->tick,
                        .is_resimulated = engine->is_resimulating,
                        .world = engine->world,
                        .input = is_tick ? engine->tick_input : engine->frame_input,
                        .commands = is_tick ? engine->tick_commands : (nb_input_view){NULL, 0},
                        .arena = &engine->arena,
                        .token = engine->token,
                        .scheduler = engine->solo != NULL ? engine->solo : engine->scheduler,
                        .fence = engine->fence,
                        .snapshot = engine->snapshot,
                        .seed = engine->desc.seed,
                        .quality_level = nb_budget_level(&engine->budget),
                        .capabilities = call->capabilities,
                        .call = call,
                        .serial = engine->serial};
}

void nbi_call_end(nb_engine *engine) {
    nbi_owner_leave(engine->call.owner);
    nbi_fp_leave(engine->call.fp_mode);
    nbi_atomic_store_relaxed_u64(&engine->call.serial, 0);
}

void nbi_module_failed(nb_engine *engine, nbi_module *module, nb_phase phase, nb_result result) {
    nbi_health *health = &module->health[nbi_health_of(phase)];
    ++engine->stats.failure_count;
    // Of the frame; a tick that is simulated again is of an earlier one.
    if (engine->failure == NB_OK && !engine->is_resimulating) engine->failure = result;
    // One record for a row of ticks or frames that fail.
    if (!health->has_failed && health->fail_streak == 0) {
        nbi_log(&engine->hooks, NB_LOG_ERROR, NB_ITEM_ENGINE_FAILURE, "nb_engine_frame",
                "module %s failed in %s of frame %llu: %s", module->name, nb_phase_info_get(phase)->name,
                nb_llu(engine->time.index), nb_result_name(result));
    }
    health->has_failed = true;
    // The rest of the frame would see what a failed tick has left; one that is simulated again was told of before.
    if (!engine->is_resimulating) module->health[NBI_HEALTH_FRAMES].has_failed = true;
}

// What the module does in the phase on the coordinator.
static nb_handler handler_of(const nbi_module *module, nb_phase phase) {
    if (phase == NB_PHASE_FIXED_SIM && module->desc.tick != NULL) return module->desc.tick;
    if (phase == NB_PHASE_GAMEPLAY && module->desc.frame != NULL) return module->desc.frame;
    return module->desc.handlers[phase];
}

void nbi_handlers_run(nb_engine *engine, nb_phase phase) {
    const nbi_order *order = &engine->orders[phase];
    for (uint32_t i = 0; i < order->count && !engine->is_world_stuck; ++i) {
        nbi_module *module = module_at(engine, order->modules[i]);
        const nbi_health *health = &module->health[nbi_health_of(phase)];
        nb_handler run = handler_of(module, phase);
        if (run == NULL || health->has_failed || health->is_disabled) continue;
        if (engine->trace != NULL) nb_trace_begin(engine->trace, module->label);
        nb_context context = nbi_call_begin(engine, order->modules[i], phase);
        engine->call.handler_index = i;
        nb_result result = run(&context, module->desc.user);
        nbi_call_end(engine);
        if (result >= 0 && nbi_stages_are_full(engine, i)) result = NB_ERR_MEMORY;
        if (engine->trace != NULL) nb_trace_end(engine->trace);
        if (result < 0) {
            nbi_module_failed(engine, module, phase, result);
            nbi_stages_drop(engine, i);
        }
    }
}

// Deadlines are on the loop's clock, which stands still in a frame that was given its time. A clock without an answer
// ends none.
static void expire_tokens(nb_engine *engine) {
    bool has_reading = engine->loop.is_clocked && engine->phase_start_ns != NBI_NO_READING;
    uint64_t now_ns = has_reading ? engine->phase_start_ns : engine->time.now_ns;
    nb_token_expire(engine->token, now_ns, engine->time.index, NULL);
}

void nbi_phase_run(nb_engine *engine, nb_phase phase, void (*before)(nb_engine *engine),
                   void (*after)(nb_engine *engine)) {
    const nb_phase_info *info = nb_phase_info_get(phase);
    uint32_t open_barriers = engine->required_barriers[phase] & ~engine->closed_barriers;
    if (open_barriers != 0) {
        nbi_fail(&engine->hooks, NB_ITEM_ENGINE_BARRIER, NB_ERR_MISUSE, "nb_engine_frame",
                 "%s was entered with the barrier %s open", info->name,
                 nb_barrier_name((int32_t)__builtin_ctz(open_barriers)));
        return;
    }
    nbi_atomic_store_relaxed_u32(&engine->phase, (uint32_t)phase);
    nbi_store_allow(engine, phase);
    expire_tokens(engine);
    if (engine->trace != NULL) nb_trace_begin(engine->trace, engine->phase_labels[phase]);
    if (before != NULL) before(engine);
    // FixedSim's run for each tick.
    if (phase != NB_PHASE_FIXED_SIM) nbi_handlers_run(engine, phase);
    if (after != NULL) after(engine);
    if (engine->trace != NULL) nb_trace_end(engine->trace);
    if (info->barrier != NB_BARRIER_NONE) engine->closed_barriers |= 1u << info->barrier;
    // The end of a phase is the start of the next: one look at the clock.
    uint64_t now_ns = nbi_engine_now_ns(engine);
    nbi_work_phase_end(engine, now_ns);
    engine->stats.phase_ns[phase] = nbi_loop_since(now_ns, engine->phase_start_ns);
    engine->phase_start_ns = now_ns;
}
