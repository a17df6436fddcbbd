// SPDX-License-Identifier: MIT
// Jobs of many frames as part of the frame: polled in AsyncPoll, seen from the next FrameStart on, ended with the
// engine.

#include "../engine/engine.h"

#include "async.h"

nb_async *nb_engine_async(nb_engine *engine) {
    if (engine == NULL) NBI_FAIL_NULL("engine");
    if (engine == NULL) return NULL;
    if (engine->async != NULL) return engine->async;
    nb_async_desc desc = engine->desc.async;
    desc.scheduler = engine->scheduler;
    desc.token = engine->token;
    if (nbi_async_create(&desc, __func__, &engine->async) == NB_OK && engine->desc.trace != NULL)
        nbi_async_trace(engine->async, engine->desc.trace);
    return engine->async;
}

// What callbacks get as their host is a context, of no module.
static nb_async_frame frame_of(const nb_engine *engine, nb_context *context) {
    nb_async_frame frame = {
        .frame_index = engine->time.index, .host = context, .is_blind = engine->has_nothing_visible};
    if (engine->desc.adapts_budget) {
        const nb_budget *budget = &engine->budget;
        frame.budgets_ns[NB_ASYNC_CLASS_GENERATION] = nb_budget_optional_ns(budget, NB_BUDGET_KIND_GENERATION);
        frame.budgets_ns[NB_ASYNC_CLASS_MESHING] = nb_budget_optional_ns(budget, NB_BUDGET_KIND_MESHING);
    }
    return frame;
}

void nbi_frame_async_publish(nb_engine *engine) {
    if (engine->async == NULL) return;
    nb_context context = nbi_call_begin(engine, NBI_MODULE_NONE, NB_PHASE_FRAME_START);
    nb_async_frame frame = frame_of(engine, &context);
    nb_async_publish(engine->async, &frame);
    nbi_call_end(engine);
}

void nbi_frame_async_poll(nb_engine *engine) {
    if (engine->async == NULL) return;
    nb_context context = nbi_call_begin(engine, NBI_MODULE_NONE, NB_PHASE_ASYNC_POLL);
    nb_async_frame frame = frame_of(engine, &context);
    nb_async_poll(engine->async, &frame);
    nbi_call_end(engine);
}

static nb_result drain(nb_engine *engine) {
    if (engine->async == NULL) return NB_OK;
    uint64_t deadline_ns = nbi_shutdown_deadline_ns(engine);
    nb_context context = nbi_call_begin(engine, NBI_MODULE_NONE, NB_PHASE_NONE);
    nb_async_frame frame = frame_of(engine, &context);
    nbi_store_allow(engine, NB_PHASE_FRAME_START); // what a discard may write is the same as in a frame
    nb_result result = nbi_async_drain(engine->async, &frame, deadline_ns, "nb_engine_destroy");
    nbi_store_allow(engine, NB_PHASE_NONE);
    nbi_call_end(engine);
    return result == NB_OK ? NB_OK : NB_BUSY;
}

nb_result nbi_frame_async_end(nb_engine *engine) {
    nb_result result = drain(engine);
    if (result == NB_OK) result = nb_async_destroy(engine->async);
    if (result == NB_OK) engine->async = NULL;
    return result;
}
