// SPDX-License-Identifier: MIT
// Recording: lanes take items one after the other, whoever is free; what comes of each is kept by its place in the
// plan.

#include "command.h"

static nb_result record_item(nb_gpu *gpu, uint32_t index, uint32_t lane) {
    nb_gpu_item *item = &gpu->items[index];
    nbi_gpu_recorded *recorded = &gpu->recorded[index];
    const nb_graph_step *step = &gpu->plan->steps[item->step];
    item->lane = lane;
    nb_result result = gpu->backend->item_begin(gpu->self, gpu->slot, item, gpu->plan, gpu->resources);
    if (result == NB_OK) {
        nb_gpu_command command;
        nbi_command_begin(&command, gpu, item, step);
        result = step->record(&command, item->bucket, step->bucket_count, step->user);
        if (result >= 0) result = command.result;
        recorded->hash = command.hash;
        recorded->draw_count = command.draw_count;
        nb_result ended = gpu->backend->item_end(gpu->self, gpu->slot, item);
        recorded->is_lost = ended == NB_ERR_LOST;
        if (result >= 0) result = ended;
    } else {
        recorded->is_lost = result == NB_ERR_LOST;
    }
    recorded->result = result < 0 ? result : NB_OK;
    recorded->is_done = true;
    return recorded->result;
}

// A failure ends nothing: which one is reported does not depend on the number of threads.
nb_result nbi_gpu_record(nb_gpu *gpu, uint32_t lane) {
    if (!gpu->has_picture || gpu->is_lost) return NB_EMPTY;
    nb_result first = NB_OK;
    for (;;) {
        uint32_t index = nbi_atomic_fetch_add_relaxed_u32(&gpu->claimed, 1);
        if (index >= gpu->item_count) return first;
        nb_result result = record_item(gpu, index, lane);
        if (first == NB_OK) first = result;
    }
}
