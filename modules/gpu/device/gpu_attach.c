// SPDX-License-Identifier: MIT
// The engine's side. Two modules, for the frame of the device begins before what others do in a phase and ends after
// it. Whatever the device does, the handlers return NB_OK: a module that fails is left out for the rest of the frame,
// and the frame of the device has to be ended.

#include "gpu.h"

// --- in the frame ---

// What the user called. Objects that handlers make in between name their own call.
#define FRAME "nb_engine_frame"

static nb_result frame_start(const nb_context *context, void *user) {
    nb_gpu *gpu = user;
    if (nb_context_check(context, NB_LAYER_ENGINE) != NB_OK) return NB_OK;
    gpu->fence = context->fence;
    gpu->caller = FRAME;
    // A frame of the engine that was cut short.
    if (gpu->frame_state != NBI_GPU_FRAME_NONE) nbi_gpu_end(gpu);
    if (!nb_engine_desc_get(context->engine)->is_headless) nbi_gpu_begin(gpu, context->frame);
    return NB_OK;
}

// Who runs behind cannot add passes any more; that would look like a graph that loses them.
static void check_order(nb_gpu *gpu, const nb_context *context) {
    enum { LOOK_COUNT_MAX = 64 };
    nb_module_id modules[LOOK_COUNT_MAX];
    uint32_t count = nb_engine_order_get(context->engine, NB_PHASE_FRAME_GRAPH, modules, LOOK_COUNT_MAX);
    if (count == 0 || count > LOOK_COUNT_MAX || modules[count - 1].value == context->module.value) return;
    const char *name = nb_engine_module_name(context->engine, modules[count - 1]);
    NBI_GPU_FAILURE(gpu, nbi_gpu_key(name, ""), NB_ITEM_GPU_ORDER, NB_ERR_MISUSE,
                    "gpu: module \"%s\" runs behind \"gpu.record\" in FrameGraph: passes that it adds are lost; "
                    "let it run before",
                    name);
}

static nb_result frame_graph(const nb_context *context, void *user) {
    nb_gpu *gpu = user;
    gpu->caller = FRAME;
    check_order(gpu, context);
    if (nb_context_check(context, NB_LAYER_ENGINE) == NB_OK && gpu->frame_state == NBI_GPU_FRAME_BEGUN)
        nbi_gpu_compile(gpu);
    return NB_OK;
}

static nb_result record(const nb_context *context, void *user) {
    nb_gpu *gpu = user;
    if (gpu->frame_state == NBI_GPU_FRAME_COMPILED) nbi_gpu_record(gpu, context->job_index);
    return NB_OK;
}

// After all jobs have returned, for each of them: the last one hands over.
static nb_result submit(const nb_context *context, void *user, const nb_output_list *outputs) {
    nb_gpu *gpu = user;
    (void)outputs;
    gpu->caller = FRAME;
    bool is_last = context->job_index + 1 == context->job_count;
    if (!is_last || gpu->frame_state != NBI_GPU_FRAME_COMPILED) return NB_OK;
    if (nb_context_check_capability(context, NB_CAPABILITY_SUBMIT) == NB_OK) nbi_gpu_submit_picture(gpu);
    return NB_OK;
}

static nb_result present(const nb_context *context, void *user) {
    nb_gpu *gpu = user;
    bool is_begun = gpu->frame_state != NBI_GPU_FRAME_NONE;
    gpu->caller = FRAME;
    if (is_begun && nb_context_check(context, NB_LAYER_ENGINE) == NB_OK) nbi_gpu_end(gpu);
    if (gpu->is_handed) nb_engine_note_device(context->engine, gpu->stats.gpu_ns, gpu->info.is_on_cpu);
    return NB_OK;
}

// --- joining and leaving ---

// What waits in the one set of timelines is reclaimed before the other is used.
static nb_result change_timeline(nb_gpu *gpu, nb_timelines *old, nb_timeline *next) {
    nb_result result = nbi_gpu_wait(gpu, gpu->submitted, gpu->desc.stuck_ns);
    if (result == NB_BUSY) return result;
    nb_timelines_reclaim(old, 0, NULL);
    nb_timeline_signal(next, gpu->completed);
    gpu->timeline = next;
    return NB_OK;
}

static void leave(nb_gpu *gpu, nb_engine *engine) {
    if (gpu->frame_state != NBI_GPU_FRAME_NONE) nbi_gpu_end(gpu);
    if (change_timeline(gpu, nb_engine_timelines(engine), gpu->own_timeline) != NB_OK) {
        nbi_gpu_lose(gpu, "it did not end its work");
        change_timeline(gpu, nb_engine_timelines(engine), gpu->own_timeline);
    }
    for (uint32_t i = 0; i < gpu->limits.frames_in_flight; ++i) gpu->slots[i].frame = (nb_fence_frame){0};
    gpu->engine = NULL;
    gpu->fence = NULL;
}

// One without the other would begin frames that nobody ends. So a module that leaves takes the other along, and with
// the second one the device leaves.
static void module_left(nb_gpu *gpu, nb_engine *engine, uint32_t which) {
    nb_module_id other = gpu->modules[1 - which];
    gpu->modules[which] = (nb_module_id){0};
    if (other.value != 0) nb_engine_module_detach(engine, other);
    if (gpu->modules[0].value == 0 && gpu->modules[1].value == 0 && gpu->engine != NULL) leave(gpu, engine);
}

static void first_left(nb_engine *engine, void *user) { module_left(user, engine, 0); }
static void last_left(nb_engine *engine, void *user) { module_left(user, engine, 1); }

static nb_result attach_modules(nb_gpu *gpu, nb_engine *engine) {
    uint32_t threads = nb_scheduler_stats_get(nb_engine_scheduler(engine)).worker_count + 1;
    nb_module_desc first = {.name = "gpu", .priority = INT32_MAX, .on_detach = first_left, .user = gpu};
    nb_module_desc last = {.name = "gpu.record",
                           .priority = INT32_MIN,
                           .record = record,
                           .submit = submit,
                           .record_count = threads < gpu->limits.lane_count ? threads : gpu->limits.lane_count,
                           .capabilities = NB_CAPABILITY_SUBMIT | NB_CAPABILITY_MUTATE_ENGINE,
                           .on_detach = last_left,
                           .user = gpu};
    first.handlers[NB_PHASE_FRAME_START] = frame_start;
    last.handlers[NB_PHASE_FRAME_GRAPH] = frame_graph;
    last.handlers[NB_PHASE_PRESENT] = present;
    nb_result result = nb_engine_module_attach(engine, &last, &gpu->modules[1]);
    if (result == NB_OK) result = nb_engine_module_attach(engine, &first, &gpu->modules[0]);
    if (result == NB_OK) return NB_OK;
    // Inside a frame the device leaves with its end.
    if (gpu->modules[1].value != 0)
        nb_engine_module_detach(engine, gpu->modules[1]);
    else
        leave(gpu, engine);
    return result;
}

nb_result nb_gpu_attach(nb_gpu *gpu, nb_engine *engine) {
    if (gpu == NULL) return NB_FAIL_NULL("gpu");
    if (engine == NULL)
        return NBI_GPU_REFUSE(gpu, gpu->name, NB_ERR_MISUSE, "device \"%s\": engine is NULL", gpu->name);
    if (gpu->engine != NULL || gpu->frame_state != NBI_GPU_FRAME_NONE) return NB_BUSY;
    nb_timelines *timelines = nb_engine_timelines(engine);
    if (timelines == NULL) return NB_ERR_MEMORY;
    gpu->caller = __func__;
    nb_timeline *timeline = NULL;
    nb_result result = nb_timelines_open(timelines, "gpu", &timeline);
    if (result == NB_OK) result = change_timeline(gpu, gpu->own, timeline);
    if (result != NB_OK) return result;
    gpu->engine = engine;
    return attach_modules(gpu, engine);
}

nb_result nbi_gpu_detach(nb_gpu *gpu) {
    nb_result result = NB_OK;
    for (uint32_t i = 2; i-- > 0 && gpu->engine != NULL;) {
        if (gpu->modules[i].value != 0) result = nb_engine_module_detach(gpu->engine, gpu->modules[i]);
    }
    // Inside a frame of the engine they go with its end, and a second call finds them leaving.
    if (gpu->engine == NULL) return NB_OK;
    return result == NB_ERR_THREAD ? result : NB_BUSY;
}
