// SPDX-License-Identifier: MIT
// Measures the work of a frame and feeds the budget with it. Present counts as a wait, because it blocks until the
// display is ready; the host encloses other waits. All times are readings of the loop's clock.

#include "engine.h"

#include "../../base/loop.h"

// --- waits ---

static void open_wait(nb_engine *engine, uint64_t now_ns) {
    if (engine->wait_depth++ == 0) engine->wait_start_ns = now_ns;
}

static void close_waits(nb_engine *engine, uint64_t now_ns) {
    engine->wait_depth = 0;
    engine->wait_ns += nbi_loop_since(now_ns, engine->wait_start_ns);
}

void nbi_work_present(nb_engine *engine) { open_wait(engine, engine->phase_start_ns); }

void nbi_work_phase_end(nb_engine *engine, uint64_t now_ns) {
    if (engine->wait_depth != 0) close_waits(engine, now_ns);
}

static nb_result check_frame(nb_engine *engine, const char *function) {
    if (!nbi_is_coordinator(engine))
        return nbi_fail_throttled(&engine->hooks, &engine->throttle, 0, NB_ITEM_ENGINE_THREAD, NB_ERR_THREAD, function,
                                  "called on another thread; call it on the thread that runs the frames");
    if (engine->is_in_frame) return NB_OK;
    return nbi_fail_throttled(&engine->hooks, &engine->throttle, 0, NB_ITEM_ENGINE_ARGUMENT, NB_ERR_MISUSE, function,
                              "no frame runs; call it inside a frame");
}

nb_result nb_engine_wait_begin(nb_engine *engine) {
    if (engine == NULL) return NBI_FAIL_NULL("engine");
    nb_result result = check_frame(engine, __func__);
    if (result == NB_OK) open_wait(engine, nbi_engine_now_ns(engine));
    return result;
}

nb_result nb_engine_wait_end(nb_engine *engine) {
    if (engine == NULL) return NBI_FAIL_NULL("engine");
    nb_result result = check_frame(engine, __func__);
    if (result != NB_OK) return result;
    uint32_t depth_min = nb_engine_phase(engine) == NB_PHASE_PRESENT ? 2 : 1; // Present's own wait ends with it
    if (engine->wait_depth < depth_min)
        return nbi_fail_throttled(&engine->hooks, &engine->throttle, 0, NB_ITEM_ENGINE_ARGUMENT, NB_ERR_MISUSE,
                                  __func__, "no wait has begun in this phase; call nb_engine_wait_begin before");
    if (engine->wait_depth == 1)
        close_waits(engine, nbi_engine_now_ns(engine));
    else
        --engine->wait_depth;
    return NB_OK;
}

nb_result nb_engine_note_device(nb_engine *engine, uint64_t work_ns, bool is_on_cpu) {
    if (engine == NULL) return NBI_FAIL_NULL("engine");
    nb_result result = check_frame(engine, __func__);
    if (result != NB_OK) return result;
    engine->device_ns = work_ns;
    engine->is_device_on_cpu = is_on_cpu;
    return NB_OK;
}

uint64_t nbi_work_ns(const nb_engine *engine) {
    uint64_t frame_ns = nbi_loop_since(engine->phase_start_ns, engine->frame_start_ns);
    return frame_ns - nbi_min_u64(frame_ns, engine->wait_ns);
}

// --- the budget ---

// The length of a frame; 0 = not known. An estimate may be of frames that are late because there is too much work: it
// never gives more time than there is without it.
static uint64_t frame_length_ns(const nb_engine *engine) {
    uint64_t period_ns = nbi_loop_period_ns(&engine->loop), limit_ns = nbi_loop_pace_ns(&engine->loop);
    if (!engine->loop.snap.is_estimated) return period_ns;
    if (limit_ns == 0) limit_ns = NB_BUDGET_TARGET_DEFAULT_NS;
    return period_ns != 0 ? nbi_min_u64(period_ns, limit_ns) : limit_ns;
}

void nbi_work_follow(nb_engine *engine) {
    uint64_t length_ns = engine->follows_loop ? frame_length_ns(engine) : 0;
    if (length_ns != 0) engine->budget.desc.target_ns = engine->desc.budget.target_ns = length_ns;
}

// What limits the frame: the CPU and the device work beside each other, unless they are one.
static uint64_t measured_ns(const nb_engine *engine) {
    uint64_t own_ns = nbi_work_ns(engine), device_ns = engine->device_ns;
    if (!engine->is_device_on_cpu) return nbi_max_u64(own_ns, device_ns);
    return own_ns + nbi_min_u64(device_ns, UINT64_MAX - own_ns);
}

void nbi_work_adapt(nb_engine *engine) {
    bool is_left_out = engine->is_degraded && engine->desc.excludes_degraded_time;
    nbi_work_follow(engine); // where nothing adapts, too: time-outs and snapshots count in it
    nb_budget_sample sample = {.measured_ns = measured_ns(engine),
                               .is_discontinuity = engine->time.is_discontinuity || is_left_out,
                               .has_nothing_visible = engine->has_nothing_visible};
    if (engine->desc.adapts_budget) nb_budget_update(&engine->budget, &sample);
}
