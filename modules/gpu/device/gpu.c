// SPDX-License-Identifier: MIT
// A device: its beginning, its end, and what can be asked of it.

#include "gpu.h"

#include "nebula/gpu_null.h"
#include "nebula/tasks.h"

#include <stdio.h>
#include <string.h>

// Memory of a graph that is kept: twice what a frame may have, for the frames after a resize; more than this would be
// no renderer.
#define TRANSIENT_COUNT_MAX 1024u
// Beside those: back buffers and capture buffers that wait for the device while new ones are in use.
#define SPARE_COUNT 16u

static uint32_t machine_threads(void) {
    uint32_t count = nb_scheduler_desc_default().worker_count + 1;
    return count < NB_GPU_LANE_COUNT_MAX ? count : NB_GPU_LANE_COUNT_MAX;
}

nb_gpu_desc nb_gpu_desc_default(void) {
    return (nb_gpu_desc){.backend = nb_gpu_null_backend(),
                         .width = 640,
                         .height = 360,
                         .frames_in_flight = NB_GPU_FRAMES_DEFAULT,
                         .frame_bytes = NB_GPU_FRAME_BYTES_DEFAULT,
                         .buffer_count_max = NB_GPU_BUFFER_COUNT_DEFAULT,
                         .image_count_max = NB_GPU_IMAGE_COUNT_DEFAULT,
                         .pipeline_count_max = NB_GPU_PIPELINE_COUNT_DEFAULT,
                         .lane_count = machine_threads(),
                         .wait_ns = NB_GPU_WAIT_NS_DEFAULT,
                         .stuck_ns = NB_GPU_STUCK_NS_DEFAULT,
                         .graph = nb_graph_desc_default(),
                         .hooks = nb_hooks_default()};
}

// --- what a desc says ---

static void fill_desc(nb_gpu_desc *desc) {
    nb_gpu_desc defaults = nb_gpu_desc_default();
    desc->hooks = nb_hooks_resolve(&desc->hooks);
    if (desc->backend == NULL) desc->backend = defaults.backend;
    if (desc->width == 0 && desc->height == 0) desc->width = defaults.width, desc->height = defaults.height;
    if (desc->frames_in_flight == 0) desc->frames_in_flight = defaults.frames_in_flight;
    if (desc->frame_bytes == 0) desc->frame_bytes = defaults.frame_bytes;
    if (desc->buffer_count_max == 0) desc->buffer_count_max = defaults.buffer_count_max;
    if (desc->image_count_max == 0) desc->image_count_max = defaults.image_count_max;
    if (desc->pipeline_count_max == 0) desc->pipeline_count_max = defaults.pipeline_count_max;
    if (desc->lane_count == 0) desc->lane_count = defaults.lane_count;
    if (desc->wait_ns == 0) desc->wait_ns = defaults.wait_ns;
    if (desc->stuck_ns == 0) desc->stuck_ns = defaults.stuck_ns;
    if (desc->graph.pass_count_max == 0) desc->graph.pass_count_max = NB_GRAPH_PASS_COUNT_DEFAULT;
    if (desc->graph.resource_count_max == 0) desc->graph.resource_count_max = NB_GRAPH_RESOURCE_COUNT_DEFAULT;
    desc->graph.hooks = desc->hooks;
}

static const char *problem_of(const nb_gpu_desc *desc) {
    if (desc->width == 0 || desc->height == 0) return "one of width and height is 0; set both or neither";
    if (desc->width > NB_GRAPH_IMAGE_SIZE_MAX || desc->height > NB_GRAPH_IMAGE_SIZE_MAX)
        return "width or height is over NB_GRAPH_IMAGE_SIZE_MAX";
    if (desc->frames_in_flight > NB_GPU_FRAMES_MAX) return "frames_in_flight is over NB_GPU_FRAMES_MAX";
    if (desc->frame_bytes > NB_GPU_FRAME_BYTES_MAX) return "frame_bytes is over NB_GPU_FRAME_BYTES_MAX";
    if (desc->lane_count > NB_GPU_LANE_COUNT_MAX) return "lane_count is over NB_GPU_LANE_COUNT_MAX";
    bool is_many = desc->buffer_count_max > NB_GPU_OBJECT_COUNT_MAX ||
                   desc->image_count_max > NB_GPU_OBJECT_COUNT_MAX ||
                   desc->pipeline_count_max > NB_GPU_OBJECT_COUNT_MAX;
    if (is_many) return "buffer_count_max, image_count_max or pipeline_count_max is over NB_GPU_OBJECT_COUNT_MAX";
    bool is_large = desc->graph.pass_count_max > NB_GRAPH_PASS_COUNT_MAX ||
                    desc->graph.resource_count_max > NB_GRAPH_RESOURCE_COUNT_MAX;
    return is_large ? "graph.pass_count_max or graph.resource_count_max is over its limit of frame_graph.h" : NULL;
}

static void set_limits(nb_gpu *gpu) {
    const nb_gpu_desc *desc = &gpu->desc;
    uint32_t transients = desc->graph.resource_count_max * 2;
    gpu->transient_max = transients < TRANSIENT_COUNT_MAX ? transients : TRANSIENT_COUNT_MAX;
    // Those that wait for the device have a number, too.
    uint32_t own = gpu->transient_max * 2 + desc->frames_in_flight + SPARE_COUNT;
    gpu->limits = (nb_gpu_limits){.frames_in_flight = desc->frames_in_flight,
                                  .lane_count = desc->lane_count,
                                  .buffer_count_max = desc->buffer_count_max + own,
                                  .image_count_max = desc->image_count_max + own,
                                  .pipeline_count_max = desc->pipeline_count_max,
                                  .pass_count_max = desc->graph.pass_count_max,
                                  .item_count_max = desc->graph.pass_count_max + NB_GPU_BUCKET_COUNT_MAX,
                                  .frame_bytes = desc->frame_bytes};
}

// --- memory ---

// All that has the life of the device, with the sizes it is freed by.
typedef struct piece {
    void **memory;
    size_t size_bytes;
} piece;

#define PIECE_COUNT (8u + NB_GPU_FRAMES_MAX)

static uint32_t list_pieces(nb_gpu *gpu, piece pieces[PIECE_COUNT]) {
    const nb_gpu_limits *limits = &gpu->limits;
    size_t resources = gpu->desc.graph.resource_count_max, steps = limits->pass_count_max;
    const piece all[8] = {
        {(void **)&gpu->uploads, NB_GPU_UPLOAD_COUNT_MAX * sizeof *gpu->uploads},
        {(void **)&gpu->resources, resources * sizeof *gpu->resources},
        {(void **)&gpu->versions, resources * sizeof *gpu->versions},
        {(void **)&gpu->slot_objects, resources * sizeof *gpu->slot_objects},
        {(void **)&gpu->transients, gpu->transient_max * sizeof *gpu->transients},
        {(void **)&gpu->items, limits->item_count_max * sizeof *gpu->items},
        {(void **)&gpu->recorded, limits->item_count_max * sizeof *gpu->recorded},
        {(void **)&gpu->times, steps * sizeof *gpu->times},
    };
    memcpy(pieces, all, sizeof all);
    uint32_t count = 8;
    for (uint32_t i = 0; i < limits->frames_in_flight; ++i)
        pieces[count++] = (piece){(void **)&gpu->slots[i].steps, steps * sizeof *gpu->slots[i].steps};
    return count;
}

static nb_result alloc_pieces(nb_gpu *gpu) {
    piece pieces[PIECE_COUNT];
    uint32_t count = list_pieces(gpu, pieces);
    for (uint32_t i = 0; i < count; ++i) {
        void *memory = nb_hooks_alloc(gpu->hooks, pieces[i].size_bytes, NB_CACHE_LINE, "nb_gpu_create");
        if (memory == NULL) return NB_ERR_MEMORY;
        memset(memory, 0, pieces[i].size_bytes);
        memcpy(pieces[i].memory, &memory, sizeof memory);
    }
    return NB_OK;
}

static void free_pieces(nb_gpu *gpu) {
    piece pieces[PIECE_COUNT];
    uint32_t count = list_pieces(gpu, pieces);
    for (uint32_t i = 0; i < count; ++i) {
        void *memory = NULL;
        memcpy(&memory, pieces[i].memory, sizeof memory);
        nb_hooks_free(gpu->hooks, memory, pieces[i].size_bytes);
    }
}

// --- beginning and end ---

static void end(nb_gpu *gpu) {
    nbi_gpu_unmake(gpu);
    nb_timelines_destroy(gpu->own);
    nb_graph_destroy(gpu->graph);
    nbi_gpu_tables_destroy(gpu);
    nb_hooks_free(gpu->hooks, gpu->capture.pixels, gpu->capture.pixel_bytes);
    free_pieces(gpu);
    nb_hooks hooks = gpu->desc.hooks;
    nb_hooks_free(&hooks, gpu, sizeof *gpu);
}

// Slots that the device itself has for its whole life.
static void take_own_slots(nb_gpu *gpu) {
    for (uint32_t i = 0; i < gpu->limits.frames_in_flight; ++i) {
        nbi_gpu_slot *slot = &gpu->slots[i];
        nbi_gpu_object_take(gpu, NBI_GPU_BUFFER, NBI_GPU_MEMORY, "frame", &slot->buffer);
        gpu->tables[NBI_GPU_BUFFER].objects[slot->buffer].desc.buffer.size_bytes = gpu->desc.frame_bytes;
        nbi_gpu_object_take(gpu, NBI_GPU_IMAGE, NBI_GPU_SURFACE, "backbuffer", &slot->surface);
        gpu->tables[NBI_GPU_IMAGE].objects[slot->surface].desc.image.layer_count = 1;
    }
}

static nb_result begin(nb_gpu *gpu) {
    nb_timelines_desc timelines = {.timeline_count_max = 1, .hooks = gpu->desc.hooks};
    nb_result result = alloc_pieces(gpu);
    if (result == NB_OK) result = nbi_gpu_tables_create(gpu);
    if (result == NB_OK) result = nb_graph_create(&gpu->desc.graph, &gpu->graph);
    if (result == NB_OK) result = nb_timelines_create(&timelines, &gpu->own);
    if (result == NB_OK) result = nb_timelines_open(gpu->own, "gpu", &gpu->own_timeline);
    if (result != NB_OK) return result;
    gpu->timeline = gpu->own_timeline;
    take_own_slots(gpu);
    result = nbi_gpu_make(gpu);
    if (result == NB_OK) snprintf(gpu->name, sizeof gpu->name, "%s: %s", gpu->backend->name, gpu->info.name);
    return result;
}

nb_result nb_gpu_create(const nb_gpu_desc *given, nb_gpu **out) {
    if (out == NULL) return NB_FAIL_NULL("out");
    nb_gpu_desc desc = given != NULL ? *given : (nb_gpu_desc){0};
    fill_desc(&desc);
    const char *problem = problem_of(&desc);
    if (problem != NULL)
        return nb_report_mistake(&desc.hooks, NB_ITEM_GPU_ARGUMENT, NB_ERR_RANGE, __func__, "nb_gpu_desc: %s", problem);
    nb_gpu *gpu = nb_hooks_alloc(&desc.hooks, sizeof *gpu, NB_CACHE_LINE, __func__);
    if (gpu == NULL) return NB_ERR_MEMORY;
    memset(gpu, 0, sizeof *gpu);
    gpu->desc = desc;
    gpu->hooks = &gpu->desc.hooks;
    gpu->backend = desc.backend;
    gpu->width = desc.width;
    gpu->height = desc.height;
    gpu->back = gpu->capture.buffer = NBI_NONE_INDEX;
    nbi_gpu_spans_close(gpu);
    set_limits(gpu);
    gpu->caller = __func__;
    nb_result result = begin(gpu);
    if (result != NB_OK) {
        end(gpu);
        return result;
    }
    *out = gpu;
    return NB_OK;
}

nb_result nb_gpu_destroy(nb_gpu *gpu) {
    if (gpu == NULL) return NB_OK;
    if (gpu->frame_state != NBI_GPU_FRAME_NONE || nbi_gpu_is_any_late(gpu)) return NB_BUSY;
    gpu->caller = __func__;
    nb_result result = nbi_gpu_detach(gpu);
    if (result != NB_OK) return result;
    if (nbi_gpu_wait(gpu, gpu->submitted, gpu->desc.stuck_ns) == NB_BUSY) nbi_gpu_lose(gpu, "it did not end its work");
    nb_timelines_reclaim(gpu->own, 0, NULL);
    end(gpu);
    return NB_OK;
}

// --- questions ---

nb_gpu_stats nb_gpu_stats_get(const nb_gpu *gpu) {
    if (gpu == NULL) {
        NB_FAIL_NULL("gpu");
        return (nb_gpu_stats){0};
    }
    nb_gpu_stats stats = gpu->stats;
    stats.misuse_count = nbi_atomic_load_relaxed_u64(&gpu->misuse_count);
    stats.span_full_count = nbi_atomic_load_relaxed_u64(&gpu->span_full_count);
    stats.submitted_value = gpu->submitted;
    stats.completed_value = gpu->completed;
    stats.buffer_count = gpu->tables[NBI_GPU_BUFFER].live_count;
    stats.image_count = gpu->tables[NBI_GPU_IMAGE].live_count;
    stats.pipeline_count = gpu->tables[NBI_GPU_PIPELINE].live_count;
    if (gpu->self != NULL && !gpu->is_lost)
        gpu->backend->memory(gpu->self, &stats.memory_bytes, &stats.memory_budget_bytes);
    return stats;
}

const char *nb_gpu_name(const nb_gpu *gpu) {
    if (gpu == NULL) NB_FAIL_NULL("gpu");
    return gpu != NULL ? gpu->name : "";
}

void *nbi_gpu_backend_self(const nb_gpu *gpu, const nb_gpu_backend *backend) {
    return gpu != NULL && gpu->backend == backend ? gpu->self : NULL;
}
