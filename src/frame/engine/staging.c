// SPDX-License-Identifier: MIT
// The stages of a tick or of Gameplay.

#include "staging.h"

#include "engine.h"

#include "../store/store.h"

#include <string.h>

// The first memory of a stage: a few hundred rows. More comes in steps that double, one system call each, and stays.
#define STAGE_BYTES_FIRST ((size_t)1 << 14)

static size_t whole_pages(size_t size_bytes) {
    size_t page_bytes = nbi_page_size();
    return (size_bytes + page_bytes - 1) / page_bytes * page_bytes;
}

static size_t list_bytes(const nb_engine *engine) {
    return engine->desc.stage_count_max * (sizeof(nb_store_stage) + sizeof(nb_store_stage *));
}

nb_result nbi_staging_create(nb_engine *engine) {
    nbi_staging *staging = &engine->staging;
    uint32_t count = engine->desc.stage_count_max;
    size_t reserved_bytes;
    void *list = nbi_alloc(&engine->hooks, list_bytes(engine), NB_CACHE_LINE, "nb_engine_world");
    if (list == NULL) return NB_ERR_MEMORY;
    memset(list, 0, list_bytes(engine));
    staging->stages = list;
    staging->order = (nb_store_stage **)(void *)(staging->stages + count);
    staging->stride_bytes = whole_pages(engine->desc.stage_bytes_max);
    bool is_sane = nbi_size_mul(staging->stride_bytes, count, &reserved_bytes);
    staging->pages = is_sane ? nbi_pages_reserve(reserved_bytes) : NULL;
    if (staging->pages != NULL) return NB_OK;
    return nbi_fail(&engine->hooks, NB_ITEM_BASE_MEMORY, NB_ERR_MEMORY, "nb_engine_world",
                    "no address space for %u stages of %zu bytes; lower nb_engine_desc.stage_bytes_max or "
                    "stage_count_max",
                    count, engine->desc.stage_bytes_max);
}

void nbi_staging_destroy(nb_engine *engine) {
    nbi_staging *staging = &engine->staging;
    if (staging->pages != NULL) nbi_pages_release(staging->pages, staging->stride_bytes * engine->desc.stage_count_max);
    if (staging->stages != NULL) nbi_free(&engine->hooks, staging->stages, list_bytes(engine));
    *staging = (nbi_staging){0};
}

// The next stage in use. The pages that it had in an earlier tick are its own still.
static nb_store_stage *open_next(nb_engine *engine) {
    nbi_staging *staging = &engine->staging;
    nb_store_stage *stage = &staging->stages[staging->count];
    if (stage->memory != NULL) return nb_store_stage_reset(stage) == NB_OK ? stage : NULL;
    unsigned char *memory = staging->pages + staging->count * staging->stride_bytes;
    size_t first_bytes = nbi_min_u64(whole_pages(STAGE_BYTES_FIRST), staging->stride_bytes);
    if (nbi_pages_commit(memory, first_bytes) != NB_OK) return NULL;
    nb_store_stage_desc desc = {.memory = memory,
                                .size_bytes = nbi_min_u64(first_bytes, engine->desc.stage_bytes_max),
                                .size_bytes_max = engine->desc.stage_bytes_max,
                                .commit = nbi_pages_commit};
    return nb_store_stage_init(stage, engine->world, &desc) == NB_OK ? stage : NULL;
}

static void report_full(nb_engine *engine, const nbi_call *call) {
    engine->staging.has_refused = true;
    if (engine->stats.stage_full_count++ != 0) return;
    bool is_full = engine->staging.count == engine->desc.stage_count_max;
    nbi_log(&engine->hooks, NB_LOG_ERROR, is_full ? NB_ITEM_ENGINE_FULL : NB_ITEM_BASE_MEMORY, "nb_context_stage",
            is_full ? "module \"%s\": no room for more than %u stages; raise nb_engine_desc.stage_count_max; further "
                      "refusals are only counted"
                    : "module \"%s\": the OS has no memory for stage %u; further refusals are only counted",
            engine->modules[call->module].name, engine->staging.count);
}

nb_store_stage *nb_context_stage(const nb_context *context, uint32_t job) {
    if (context == NULL || context->engine == NULL) {
        NBI_FAIL_NULL("context");
        return NULL;
    }
    nb_engine *engine = context->engine;
    nbi_staging *staging = &engine->staging;
    nb_result result = nbi_context_check_call(context);
    const nbi_call *call = context->call;
    bool is_phase = result == NB_OK && (call->phase == NB_PHASE_FIXED_SIM || call->phase == NB_PHASE_GAMEPLAY);
    if (result == NB_OK && !is_phase) result = NB_ERR_PERMISSION;
    if (result == NB_OK && !engine->is_world_joined) result = NB_ERR_MISUSE;
    if (result != NB_OK) {
        nbi_context_report(context, __func__, NBI_VIOLATION_STAGE, result);
        return NULL;
    }
    // Handlers run one after the other: this one's stages are the last.
    for (uint32_t i = staging->count; i > 0 && staging->stages[i - 1].handler == call->handler_index; --i) {
        if (staging->stages[i - 1].job == job) return &staging->stages[i - 1];
    }
    nb_store_stage *stage = staging->count < engine->desc.stage_count_max ? open_next(engine) : NULL;
    if (stage == NULL) {
        report_full(engine, call);
        return NULL;
    }
    stage->handler = call->handler_index;
    stage->job = job;
    ++staging->count;
    return stage;
}

// The first stage of the handler, which is the last that has any.
static uint32_t first_of(const nbi_staging *staging, uint32_t handler_index) {
    uint32_t first = staging->count;
    while (first > 0 && staging->stages[first - 1].handler == handler_index) --first;
    return first;
}

bool nbi_stages_are_full(const nb_engine *engine, uint32_t handler_index) {
    const nbi_staging *staging = &engine->staging;
    if (staging->has_refused) return true;
    for (uint32_t i = first_of(staging, handler_index); i < staging->count; ++i) {
        if (staging->stages[i].full_count != 0) return true;
    }
    return false;
}

void nbi_stages_drop(nb_engine *engine, uint32_t handler_index) {
    engine->staging.count = first_of(&engine->staging, handler_index);
    engine->staging.has_refused = false;
}

void nbi_stages_apply(nb_engine *engine) {
    nbi_staging *staging = &engine->staging;
    if (staging->count == 0) return;
    for (uint32_t i = 0; i < staging->count; ++i) staging->order[i] = &staging->stages[i];
    nbi_store_of(engine->world)->skips_local = engine->is_resimulating;
    nbi_store_apply(nbi_store_of(engine->world), staging->order, staging->count);
    nbi_store_of(engine->world)->skips_local = false;
    staging->count = 0;
}
