// SPDX-License-Identifier: MIT
// One frame of the device: begun, compiled, recorded (gpu_record.c), handed over, shown. Whatever goes wrong costs this
// frame's picture and is counted; the next frame begins as if nothing had been.

#include "../graph/graph.h"
#include "gpu.h"

#include <stdio.h>
#include <string.h>

// --- beginning ---

static nb_result leave_out(nb_gpu *gpu, uint64_t *counter, nb_result result) {
    if (!gpu->is_counted) ++*counter;
    gpu->is_counted = true;
    gpu->has_picture = false;
    nbi_gpu_spans_close(gpu);
    return result;
}

// By what it was: lost, without memory, or simply behind.
static nb_result leave_out_for(nb_gpu *gpu, nb_result result) {
    nb_gpu_stats *stats = &gpu->stats;
    if (gpu->is_lost) return leave_out(gpu, &stats->skipped_lost_count, result);
    if (result == NB_BUSY) return leave_out(gpu, &stats->skipped_behind_count, result);
    return leave_out(gpu, &stats->skipped_failed_count, result);
}

// The next slot that no late job of the engine writes to; false: there is none.
static bool choose_slot(nb_gpu *gpu) {
    uint32_t count = gpu->limits.frames_in_flight;
    for (uint32_t i = 1; i <= count; ++i) {
        uint32_t slot = (gpu->slot + i) % count;
        if (nbi_gpu_is_late(gpu, slot)) continue;
        gpu->slot = slot;
        return true;
    }
    return false;
}

static nb_result open_picture(nb_gpu *gpu, nb_fence_frame frame) {
    nb_result result = nbi_gpu_note_result(gpu, gpu->backend->frame_reset(gpu->self, gpu->slot), "beginning a frame");
    if (result != NB_OK) return result;
    ++gpu->picture;
    gpu->slots[gpu->slot].frame = frame;
    result = nb_graph_begin(gpu->graph);
    if (result == NB_OK) result = nbi_gpu_back_import(gpu);
    if (result != NB_OK) return result;
    gpu->has_picture = true;
    nbi_gpu_spans_open(gpu, frame);
    return NB_OK;
}

// Waits until the slot and an image of the surface are free: for the device, or for the display behind it. So the wait
// says nothing of work; that is what the device measures itself. Without a measure the wait is charged to the frame.
static nb_result await_device(nb_gpu *gpu, bool *is_hidden) {
    bool is_charged = gpu->engine == NULL || gpu->stats.gpu_ns == 0;
    if (!is_charged) nb_engine_wait_begin(gpu->engine);
    nb_result result = nbi_gpu_wait(gpu, gpu->slots[gpu->slot].value, gpu->desc.wait_ns);
    if (result == NB_OK) result = nbi_gpu_surface_take(gpu, is_hidden);
    if (!is_charged) nb_engine_wait_end(gpu->engine);
    return result;
}

static nb_result begin_picture(nb_gpu *gpu, nb_fence_frame frame) {
    nb_result result = gpu->is_lost ? nbi_gpu_restore(gpu) : NB_OK;
    if (result == NB_OK) result = nbi_gpu_poll(gpu);
    if (gpu->engine == NULL) nb_timelines_reclaim(gpu->own, 0, NULL);
    if (result != NB_OK) return leave_out_for(gpu, result);
    nbi_gpu_transients_trim(gpu);
    if (!choose_slot(gpu)) return leave_out(gpu, &gpu->stats.skipped_late_count, NB_BUSY);
    bool is_hidden = false;
    result = await_device(gpu, &is_hidden);
    if (is_hidden) return leave_out(gpu, &gpu->stats.skipped_hidden_count, result);
    if (result == NB_OK) result = open_picture(gpu, frame);
    return result == NB_OK ? NB_OK : leave_out_for(gpu, result);
}

nb_result nbi_gpu_begin(nb_gpu *gpu, nb_fence_frame frame) {
    ++gpu->stats.frame_count;
    gpu->frame_state = NBI_GPU_FRAME_BEGUN;
    gpu->has_picture = gpu->is_handed = gpu->is_counted = gpu->is_shown = false;
    gpu->upload_count = gpu->item_count = 0;
    gpu->plan = NULL;
    return begin_picture(gpu, frame);
}

// --- the plan ---

nb_result nbi_gpu_compile(nb_gpu *gpu) {
    gpu->frame_state = NBI_GPU_FRAME_COMPILED;
    if (!gpu->has_picture) return NB_EMPTY;
    nb_result result = gpu->is_lost ? NB_ERR_LOST : nbi_gpu_capture_add(gpu);
    gpu->graph->caller = gpu->caller;
    if (result == NB_OK) result = nb_graph_compile(gpu->graph, &gpu->plan);
    if (result == NB_OK) result = nbi_gpu_plan_resolve(gpu);
    return result == NB_OK ? NB_OK : leave_out_for(gpu, result);
}

// --- handing over ---

static uint64_t hash_uploads(const nb_gpu *gpu) {
    uint64_t hash = 0;
    for (uint32_t i = 0; i < gpu->upload_count; ++i) {
        const nb_gpu_upload *upload = &gpu->uploads[i];
        nbi_gpu_kind kind = upload->is_image ? NBI_GPU_IMAGE : NBI_GPU_BUFFER;
        hash = nbi_gpu_mix(hash, gpu->tables[kind].objects[upload->to].serial);
        hash = nbi_gpu_mix(hash, upload->to_offset + upload->layer);
        hash = nbi_gpu_mix(hash, upload->size_bytes);
    }
    return hash;
}

// In the order of the plan, whoever has recorded what; the first failure in that order is the frame's.
static nb_result collect(nb_gpu *gpu, uint64_t *hash, uint32_t *draw_count) {
    nb_result first = NB_OK;
    *hash = hash_uploads(gpu);
    *draw_count = 0;
    for (uint32_t i = 0; i < gpu->plan->step_count; ++i) *hash = nbi_gpu_mix(*hash, gpu->plan->steps[i].pass + 1);
    for (uint32_t i = 0; i < gpu->item_count; ++i) {
        const nbi_gpu_recorded *recorded = &gpu->recorded[i];
        nb_result result = recorded->is_done ? recorded->result : NB_ERR_MISUSE;
        *hash = nbi_gpu_mix(*hash, recorded->hash);
        *draw_count += recorded->draw_count;
        if (recorded->is_lost) nbi_gpu_lose(gpu, "recording");
        if (result >= 0 || first != NB_OK) continue;
        first = result;
        const char *name = gpu->plan->steps[gpu->items[i].step].name;
        NBI_GPU_FAILURE(gpu, nbi_gpu_key(name, nb_result_name(result)), NB_ITEM_GPU_RECORD, result,
                        "gpu: pass \"%s\", bucket %u: %s: the picture is left out", name,
                        (unsigned)gpu->items[i].bucket, recorded->is_done ? nb_result_name(result) : "not recorded");
    }
    return first;
}

static void keep_names(nb_gpu *gpu, const nb_graph_plan *plan) {
    nbi_gpu_slot *slot = &gpu->slots[gpu->slot];
    slot->step_count = plan->step_count;
    for (uint32_t i = 0; i < plan->step_count; ++i)
        snprintf(slot->steps[i], sizeof slot->steps[i], "%s", plan->steps[i].name);
}

static nb_result hand_over(nb_gpu *gpu, const nb_graph_plan *plan, uint32_t item_count, bool is_shown) {
    nb_gpu_submit submit = {.slot = gpu->slot,
                            .value = gpu->submitted + 1 - gpu->base,
                            .plan = plan,
                            .resources = gpu->resources,
                            .item_count = item_count,
                            .items = gpu->items,
                            .uploads = gpu->uploads,
                            .upload_count = gpu->upload_count,
                            .is_shown = is_shown};
    nb_result result = nbi_gpu_note_result(gpu, gpu->backend->submit(gpu->self, &submit), "handing over a picture");
    if (result != NB_OK) {
        if (result != NB_ERR_LOST)
            NBI_GPU_FAILURE(gpu, (uint64_t)result, NB_ITEM_GPU_SUBMIT, result,
                            "gpu: device \"%s\" refused a picture: %s", gpu->name, nb_result_name(result));
        return result;
    }
    if (gpu->completed == gpu->submitted) gpu->progress_ns = nbi_gpu_now_ns(gpu);
    gpu->slots[gpu->slot].value = ++gpu->submitted;
    keep_names(gpu, plan);
    for (uint32_t i = 0; i < gpu->upload_count; ++i) gpu->stats.upload_bytes += gpu->uploads[i].size_bytes;
    gpu->upload_count = 0;
    return NB_OK;
}

// The name under which the plan draws to the back buffer, where it does.
static bool draws_back(const nb_gpu *gpu) {
    uint32_t back = nbi_gpu_back_index(gpu);
    const nbi_gpu_object *object = &gpu->tables[NBI_GPU_IMAGE].objects[back];
    return object->import_picture == gpu->picture;
}

static nb_result submit_now(nb_gpu *gpu) {
    uint64_t hash = 0;
    uint32_t draw_count = 0;
    nb_result result = gpu->is_lost ? NB_ERR_LOST : collect(gpu, &hash, &draw_count);
    if (result == NB_OK && gpu->is_lost) result = NB_ERR_LOST;
    bool is_shown = gpu->info.has_surface && draws_back(gpu);
    if (result == NB_OK) result = hand_over(gpu, gpu->plan, gpu->item_count, is_shown);
    if (result != NB_OK) return result;
    nb_gpu_stats *stats = &gpu->stats;
    ++stats->submit_count;
    stats->pass_count = gpu->plan->step_count;
    stats->culled_count = gpu->plan->culled_count;
    stats->transition_count = gpu->plan->transition_count;
    stats->draw_count = draw_count;
    stats->command_hash = hash;
    gpu->is_handed = true;
    gpu->is_shown = is_shown;
    return NB_OK;
}

// What was uploaded is wanted in later frames, too: it goes without the picture.
static void save_uploads(nb_gpu *gpu) {
    if (gpu->upload_count == 0) return;
    static const nb_graph_plan nothing = {0};
    if (!gpu->is_lost && hand_over(gpu, &nothing, 0, false) == NB_OK) return;
    for (uint32_t i = 0; i < gpu->upload_count; ++i) gpu->stats.upload_lost_bytes += gpu->uploads[i].size_bytes;
    if (!gpu->is_lost)
        NBI_GPU_FAILURE(gpu, 0, NB_ITEM_GPU_UPLOAD, NB_ERR_MEMORY,
                        "gpu: device \"%s\" refused %u uploads: they are lost; upload again", gpu->name,
                        (unsigned)gpu->upload_count);
    gpu->upload_count = 0;
}

nb_result nbi_gpu_submit_picture(nb_gpu *gpu) {
    nb_result result = gpu->has_picture ? submit_now(gpu) : NB_EMPTY;
    if (gpu->has_picture && result != NB_OK) leave_out_for(gpu, result);
    nbi_gpu_spans_close(gpu);
    save_uploads(gpu);
    gpu->frame_state = NBI_GPU_FRAME_SUBMITTED;
    nbi_gpu_capture_note(gpu, gpu->is_handed);
    return result;
}

// --- the end ---

nb_result nbi_gpu_end(nb_gpu *gpu) {
    // A frame that nobody compiled or handed over has failed.
    if (gpu->frame_state != NBI_GPU_FRAME_SUBMITTED && gpu->has_picture) leave_out_for(gpu, NB_ERR_MISUSE);
    if (gpu->frame_state != NBI_GPU_FRAME_SUBMITTED) nbi_gpu_submit_picture(gpu);
    if (gpu->is_shown && !gpu->is_lost) nbi_gpu_surface_show(gpu);
    gpu->has_picture = false;
    gpu->frame_state = NBI_GPU_FRAME_NONE;
    gpu->plan = NULL;
    nbi_gpu_poll(gpu);
    return gpu->is_lost ? NB_ERR_LOST : NB_OK;
}

// --- by hand ---

// Fails where the frame is in another state, or where an engine runs the frames.
static nb_result require_state(nb_gpu *gpu, nbi_gpu_frame_state state, const char *function, const char *why) {
    if (gpu->engine == NULL && gpu->frame_state == state) return NB_OK;
    return NBI_GPU_MISTAKE(gpu, 0, NB_ITEM_GPU_MOMENT, NB_ERR_MISUSE, function, "device \"%s\": %s", gpu->name, why);
}

nb_result nb_gpu_frame_begin(nb_gpu *gpu) {
    if (gpu == NULL) return NB_FAIL_NULL("gpu");
    nb_result result = require_state(
        gpu, NBI_GPU_FRAME_NONE, __func__,
        "a frame is begun, or an engine runs the frames; end the frame first, or leave frames to the engine");
    if (result != NB_OK) return result;
    gpu->caller = __func__;
    return nbi_gpu_begin(gpu, (nb_fence_frame){0});
}

nb_result nb_gpu_frame_compile(nb_gpu *gpu) {
    if (gpu == NULL) return NB_FAIL_NULL("gpu");
    nb_result result = require_state(gpu, NBI_GPU_FRAME_BEGUN, __func__,
                                     "no frame is begun, or it is compiled already; call nb_gpu_frame_begin first");
    if (result != NB_OK) return result;
    gpu->caller = __func__;
    return nbi_gpu_compile(gpu);
}

static nb_result require_compiled(nb_gpu *gpu, const char *function) {
    return require_state(gpu, NBI_GPU_FRAME_COMPILED, function,
                         "no frame is compiled, or it was submitted already; call nb_gpu_frame_compile first");
}

nb_result nb_gpu_frame_record(nb_gpu *gpu, uint32_t lane) {
    if (gpu == NULL) return NB_FAIL_NULL("gpu");
    nb_result result = require_compiled(gpu, __func__);
    if (result != NB_OK) return result;
    if (lane >= gpu->limits.lane_count)
        return NBI_GPU_REFUSE(gpu, gpu->name, NB_ERR_RANGE,
                              "device \"%s\": no lane %u of %u; raise nb_gpu_desc.lane_count", gpu->name,
                              (unsigned)lane, (unsigned)gpu->limits.lane_count);
    return nbi_gpu_record(gpu, lane);
}

nb_result nb_gpu_frame_submit(nb_gpu *gpu) {
    if (gpu == NULL) return NB_FAIL_NULL("gpu");
    nb_result result = require_compiled(gpu, __func__);
    if (result != NB_OK) return result;
    gpu->caller = __func__;
    return nbi_gpu_submit_picture(gpu);
}

nb_result nb_gpu_frame_end(nb_gpu *gpu) {
    if (gpu == NULL) return NB_FAIL_NULL("gpu");
    bool is_begun = gpu->engine == NULL && gpu->frame_state != NBI_GPU_FRAME_NONE;
    if (!is_begun) return NBI_GPU_REFUSE_STATE(gpu, "no frame is begun; call nb_gpu_frame_begin first");
    gpu->caller = __func__;
    return nbi_gpu_end(gpu);
}

nb_graph *nb_gpu_graph(nb_gpu *gpu) {
    if (gpu == NULL) NB_FAIL_NULL("gpu");
    return gpu != NULL && gpu->has_picture ? gpu->graph : NULL;
}
