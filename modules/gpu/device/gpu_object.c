// SPDX-License-Identifier: MIT
// Buffers, images and pipelines: places with a desc that is kept, so that a lost device can be filled again. A place
// whose object was destroyed stays taken until the device is through with it.

#include "gpu.h"

#include <stdio.h>
#include <string.h>

static nbi_gpu_object *at(const nb_gpu *gpu, nbi_gpu_kind kind, uint32_t index) {
    return &gpu->tables[kind].objects[index];
}

// --- places ---

static nb_result table_create(nb_gpu *gpu, nbi_gpu_table *table, uint32_t user_max, uint32_t capacity) {
    table->objects = nb_hooks_alloc(gpu->hooks, capacity * sizeof *table->objects, NB_CACHE_LINE, "nb_gpu_create");
    if (table->objects == NULL) return NB_ERR_MEMORY;
    memset(table->objects, 0, capacity * sizeof *table->objects);
    table->capacity = capacity;
    table->user_max = user_max;
    for (uint32_t i = 0; i < capacity; ++i) table->objects[i].next_free = i + 1 < capacity ? i + 1 : NBI_NONE_INDEX;
    table->free_first = 0;
    table->free_last = capacity - 1;
    return NB_OK;
}

nb_result nbi_gpu_tables_create(nb_gpu *gpu) {
    const nb_gpu_limits *limits = &gpu->limits;
    const nb_gpu_desc *desc = &gpu->desc;
    nb_result result =
        table_create(gpu, &gpu->tables[NBI_GPU_BUFFER], desc->buffer_count_max, limits->buffer_count_max);
    if (result == NB_OK)
        result = table_create(gpu, &gpu->tables[NBI_GPU_IMAGE], desc->image_count_max, limits->image_count_max);
    if (result == NB_OK)
        result =
            table_create(gpu, &gpu->tables[NBI_GPU_PIPELINE], desc->pipeline_count_max, limits->pipeline_count_max);
    return result;
}

static size_t words_bytes(const nb_gpu_pipeline_desc *desc) {
    return desc->vertex.size_bytes + desc->fragment.size_bytes + desc->compute.size_bytes;
}

// All words are one block, the first shader's that has any.
static void free_words(nb_gpu *gpu, nb_gpu_pipeline_desc *desc) {
    const uint32_t *words = desc->vertex.size_bytes != 0 ? desc->vertex.words : desc->compute.words;
    nb_hooks_free(gpu->hooks, (void *)(uintptr_t)words, words_bytes(desc));
    desc->vertex = desc->fragment = desc->compute = (nb_gpu_shader){NULL, 0};
}

void nbi_gpu_tables_destroy(nb_gpu *gpu) {
    for (uint32_t kind = 0; kind < NBI_GPU_KIND_COUNT; ++kind) {
        nbi_gpu_table *table = &gpu->tables[kind];
        for (uint32_t i = 0; table->objects != NULL && i < table->capacity; ++i) {
            if (kind == NBI_GPU_PIPELINE && table->objects[i].life != NBI_GPU_FREE)
                free_words(gpu, &table->objects[i].desc.pipeline);
        }
        nb_hooks_free(gpu->hooks, table->objects, table->capacity * sizeof *table->objects);
        table->objects = NULL;
    }
}

nb_result nbi_gpu_object_take(nb_gpu *gpu, nbi_gpu_kind kind, nbi_gpu_role role, const char *name, uint32_t *index) {
    nbi_gpu_table *table = &gpu->tables[kind];
    bool is_full = role == NBI_GPU_USERS && table->user_count >= table->user_max;
    if (is_full || table->free_first == NBI_NONE_INDEX) return NB_FULL;
    *index = table->free_first;
    nbi_gpu_object *object = &table->objects[*index];
    table->free_first = object->next_free;
    if (table->free_first == NBI_NONE_INDEX) table->free_last = NBI_NONE_INDEX;
    // Of two rows: what the device makes for itself, and when, does not change the numbers of the users' objects.
    uint64_t serial = role == NBI_GPU_USERS ? ++gpu->object_serial : ++gpu->own_serial | NBI_GPU_OWN_BIT;
    *object = (nbi_gpu_object){.serial = serial, .kind = kind, .life = NBI_GPU_LIVE, .role = role};
    snprintf(object->name, sizeof object->name, "%s", name);
    if (role == NBI_GPU_USERS) ++table->user_count, ++table->live_count;
    return NB_OK;
}

void nbi_gpu_object_free(nb_gpu *gpu, nbi_gpu_kind kind, uint32_t index) {
    nbi_gpu_table *table = &gpu->tables[kind];
    nbi_gpu_object *object = &table->objects[index];
    if (kind == NBI_GPU_PIPELINE) free_words(gpu, &object->desc.pipeline);
    if (object->role == NBI_GPU_USERS) --table->user_count;
    if (object->role == NBI_GPU_USERS && object->life == NBI_GPU_LIVE) --table->live_count;
    object->life = NBI_GPU_FREE; // serial and name stay, for reports of handles that have ended
    // Behind all others: an index is taken again as late as can be.
    object->next_free = NBI_NONE_INDEX;
    if (table->free_last != NBI_NONE_INDEX)
        table->objects[table->free_last].next_free = index;
    else
        table->free_first = index;
    table->free_last = index;
}

uint64_t nbi_gpu_handle_of(const nb_gpu *gpu, nbi_gpu_kind kind, uint32_t index) {
    return at(gpu, kind, index)->serial << NBI_GPU_INDEX_BITS | index;
}

nbi_gpu_object *nbi_gpu_object_find(const nb_gpu *gpu, nbi_gpu_kind kind, uint64_t handle, uint32_t *index) {
    uint32_t found = (uint32_t)(handle & NBI_GPU_INDEX_MASK);
    if (handle == 0 || found >= gpu->tables[kind].capacity) return NULL;
    nbi_gpu_object *object = at(gpu, kind, found);
    uint64_t serial = handle >> NBI_GPU_INDEX_BITS;
    if (kind == NBI_GPU_BUFFER && (handle & NBI_GPU_MEMORY_BIT) != 0) {
        bool is_now = gpu->has_picture && found == gpu->slots[gpu->slot].buffer &&
                      (serial & NBI_GPU_TAG_MASK) == (gpu->picture & NBI_GPU_TAG_MASK);
        if (!is_now) return NULL;
    } else if (object->life != NBI_GPU_LIVE || object->serial != serial || object->role == NBI_GPU_MEMORY) {
        return NULL;
    }
    *index = found;
    return object;
}

const char *nbi_gpu_kind_name(nbi_gpu_kind kind) {
    static const char *const names[NBI_GPU_KIND_COUNT] = {"buffer", "image", "pipeline"};
    return names[kind];
}

const char *nbi_gpu_object_name(const nb_gpu *gpu, nbi_gpu_kind kind, uint64_t handle) {
    uint32_t index = (uint32_t)(handle & NBI_GPU_INDEX_MASK);
    if (handle == 0 || index >= gpu->tables[kind].capacity) return "unknown";
    const nbi_gpu_object *object = at(gpu, kind, index);
    bool is_it = object->role == NBI_GPU_USERS && object->serial == handle >> NBI_GPU_INDEX_BITS;
    return is_it ? object->name : "unknown";
}

// --- in the backend ---

nb_result nbi_gpu_object_make(nb_gpu *gpu, nbi_gpu_kind kind, uint32_t index) {
    nbi_gpu_object *object = at(gpu, kind, index);
    if (gpu->is_lost || gpu->self == NULL) return NB_ERR_LOST;
    nb_result result = NB_OK;
    if (object->role == NBI_GPU_MEMORY || object->role == NBI_GPU_SURFACE) return NB_OK;
    if (kind == NBI_GPU_BUFFER) {
        object->desc.buffer.name = object->name;
        result = gpu->backend->buffer_create(gpu->self, index, &object->desc.buffer);
    } else if (kind == NBI_GPU_IMAGE) {
        object->desc.image.name = object->name;
        result = gpu->backend->image_create(gpu->self, index, &object->desc.image);
    } else {
        object->desc.pipeline.name = object->name;
        result = gpu->backend->pipeline_create(gpu->self, index, &object->desc.pipeline);
    }
    object->is_made = result == NB_OK;
    object->made_value = gpu->submitted;
    return nbi_gpu_note_result(gpu, result, "making an object");
}

static void unmake(nb_gpu *gpu, nbi_gpu_object *object, uint32_t index) {
    if (!object->is_made) return;
    object->is_made = false;
    if (object->kind == NBI_GPU_BUFFER)
        gpu->backend->buffer_destroy(gpu->self, index);
    else if (object->kind == NBI_GPU_IMAGE)
        gpu->backend->image_destroy(gpu->self, index);
    else
        gpu->backend->pipeline_destroy(gpu->self, index);
}

// The device is through with it: in a reclaim.
static void reclaim(void *user_object, void *user) {
    nb_gpu *gpu = user;
    nbi_gpu_object *object = user_object;
    uint32_t index = (uint32_t)(object - gpu->tables[object->kind].objects);
    unmake(gpu, object, index);
    ++gpu->stats.reclaimed_count;
    nbi_gpu_object_free(gpu, object->kind, index);
}

nb_result nbi_gpu_object_retire(nb_gpu *gpu, nbi_gpu_kind kind, uint32_t index) {
    nbi_gpu_object *object = at(gpu, kind, index);
    // Nothing that is recorded after this can use it, so what was handed over is all there is to wait for.
    nb_result result = nb_timeline_retire(gpu->timeline, gpu->submitted, object, reclaim, gpu);
    if (result != NB_OK) return result;
    if (object->upload_picture == gpu->picture) nbi_gpu_uploads_drop(gpu, kind, index);
    // Nothing was handed over since it was made, so nobody uses it; but a backend may do something to all that is new
    // with the next picture, which would still run when this is reclaimed.
    if (object->made_value == gpu->submitted) unmake(gpu, object, index);
    object->life = NBI_GPU_RETIRED;
    if (object->role == NBI_GPU_USERS) --gpu->tables[kind].live_count;
    ++gpu->stats.retired_count;
    return NB_OK;
}

// --- the device's own ---

static nb_result make_own(nb_gpu *gpu, nbi_gpu_kind kind, uint32_t taken, uint32_t *index) {
    nb_result result = nbi_gpu_object_make(gpu, kind, taken);
    if (result != NB_OK) nbi_gpu_object_free(gpu, kind, taken);
    if (result == NB_OK) *index = taken;
    return result;
}

nb_result nbi_gpu_own_buffer(nb_gpu *gpu, const nb_gpu_buffer_desc *desc, uint32_t *index) {
    uint32_t taken = 0;
    if (nbi_gpu_object_take(gpu, NBI_GPU_BUFFER, NBI_GPU_OWN, desc->name, &taken) != NB_OK) return NB_ERR_MEMORY;
    at(gpu, NBI_GPU_BUFFER, taken)->desc.buffer = *desc;
    return make_own(gpu, NBI_GPU_BUFFER, taken, index);
}

nb_result nbi_gpu_own_image(nb_gpu *gpu, const nb_gpu_image_desc *desc, uint32_t *index) {
    uint32_t taken = 0;
    if (nbi_gpu_object_take(gpu, NBI_GPU_IMAGE, NBI_GPU_OWN, desc->name, &taken) != NB_OK) return NB_ERR_MEMORY;
    at(gpu, NBI_GPU_IMAGE, taken)->desc.image = *desc;
    return make_own(gpu, NBI_GPU_IMAGE, taken, index);
}

// --- the users' ---

// What is wrong with a desc, or NB_OK.
static nb_result check_desc(nb_gpu *gpu, nbi_gpu_kind kind, const char *name, const char *problem, nb_result result,
                            const char *function) {
    if (problem == NULL) return NB_OK;
    return NBI_GPU_MISTAKE(gpu, nbi_gpu_key(name, problem), NB_ITEM_GPU_ARGUMENT, result, function, "%s \"%s\": %s",
                           nbi_gpu_kind_name(kind), name, problem);
}

static nb_result refuse_null(nb_gpu *gpu, nbi_gpu_kind kind, const char *what, const char *function) {
    return NBI_GPU_MISTAKE(gpu, nbi_gpu_key(what, ""), NB_ITEM_GPU_ARGUMENT, NB_ERR_MISUSE, function, "%s: %s is NULL",
                           nbi_gpu_kind_name(kind), what);
}

// What keeps an object from being made or destroyed now.
static nb_result gate(nb_gpu *gpu, nbi_gpu_kind kind, const char *name, const char *function) {
    if (gpu->frame_state != NBI_GPU_FRAME_COMPILED) return NB_OK;
    return NBI_GPU_MISTAKE(gpu, nbi_gpu_key(name, ""), NB_ITEM_GPU_MOMENT, NB_BUSY, function,
                           "%s \"%s\": the frame is being recorded; create and destroy before FrameGraph ends, or "
                           "after the frame was submitted",
                           nbi_gpu_kind_name(kind), name);
}

static nb_result take_for_user(nb_gpu *gpu, nbi_gpu_kind kind, const char *name, const char *function,
                               uint32_t *index) {
    nb_result result = gate(gpu, kind, name, function);
    if (result != NB_OK) return result;
    if (gpu->is_lost) return NB_ERR_LOST;
    gpu->caller = function;
    result = nbi_gpu_object_take(gpu, kind, NBI_GPU_USERS, name, index);
    if (result == NB_OK) return NB_OK;
    return NBI_GPU_FAILURE(gpu, kind, NB_ITEM_GPU_FULL, result,
                           "gpu: %s \"%s\" has no room: %u are alive or wait for the device; raise "
                           "nb_gpu_desc.%s_count_max, or destroy some",
                           nbi_gpu_kind_name(kind), name, gpu->tables[kind].user_count, nbi_gpu_kind_name(kind));
}

static nb_result make_for_user(nb_gpu *gpu, nbi_gpu_kind kind, uint32_t index, uint64_t *handle) {
    nb_result result = nbi_gpu_object_make(gpu, kind, index);
    if (result == NB_OK)
        *handle = nbi_gpu_handle_of(gpu, kind, index);
    else
        nbi_gpu_object_free(gpu, kind, index);
    return result;
}

static nb_result destroy_for_user(nb_gpu *gpu, nbi_gpu_kind kind, uint64_t handle, const char *function) {
    const char *name = nbi_gpu_object_name(gpu, kind, handle);
    nb_result result = gate(gpu, kind, name, function);
    if (result != NB_OK) return result;
    uint32_t index = 0;
    const nbi_gpu_object *object = nbi_gpu_object_find(gpu, kind, handle, &index);
    if (object == NULL || object->role != NBI_GPU_USERS)
        return NBI_GPU_MISTAKE(gpu, nbi_gpu_key(name, ""), NB_ITEM_GPU_STALE, NB_ERR_STALE, function,
                               "%s \"%s\" (handle 0x%llx) does not live; forget its handle when you destroy it",
                               nbi_gpu_kind_name(kind), name, nb_llu(handle));
    return nbi_gpu_object_retire(gpu, kind, index);
}

nb_result nb_gpu_buffer_create(nb_gpu *gpu, const nb_gpu_buffer_desc *desc, nb_gpu_buffer *out) {
    if (gpu == NULL) return NB_FAIL_NULL("gpu");
    if (desc == NULL || out == NULL) return refuse_null(gpu, NBI_GPU_BUFFER, desc == NULL ? "desc" : "out", __func__);
    nb_result result = NB_OK;
    const char *problem = nbi_gpu_buffer_problem(desc, &result), *name = desc->name != NULL ? desc->name : "buffer";
    result = check_desc(gpu, NBI_GPU_BUFFER, name, problem, result, __func__);
    uint32_t index = 0;
    if (result == NB_OK) result = take_for_user(gpu, NBI_GPU_BUFFER, name, __func__, &index);
    if (result != NB_OK) return result;
    at(gpu, NBI_GPU_BUFFER, index)->desc.buffer = *desc;
    return make_for_user(gpu, NBI_GPU_BUFFER, index, &out->value);
}

nb_result nb_gpu_image_create(nb_gpu *gpu, const nb_gpu_image_desc *desc, nb_gpu_image *out) {
    if (gpu == NULL) return NB_FAIL_NULL("gpu");
    if (desc == NULL || out == NULL) return refuse_null(gpu, NBI_GPU_IMAGE, desc == NULL ? "desc" : "out", __func__);
    nb_result result = NB_OK;
    const char *problem = nbi_gpu_image_problem(desc, &result), *name = desc->name != NULL ? desc->name : "image";
    result = check_desc(gpu, NBI_GPU_IMAGE, name, problem, result, __func__);
    uint32_t index = 0;
    if (result == NB_OK) result = take_for_user(gpu, NBI_GPU_IMAGE, name, __func__, &index);
    if (result != NB_OK) return result;
    nb_gpu_image_desc *kept = &at(gpu, NBI_GPU_IMAGE, index)->desc.image;
    *kept = *desc;
    if (kept->layer_count == 0) kept->layer_count = 1;
    return make_for_user(gpu, NBI_GPU_IMAGE, index, &out->value);
}

// A copy of the words in one block: the caller's may go.
static nb_result keep_words(nb_gpu *gpu, nb_gpu_pipeline_desc *desc) {
    unsigned char *words = nb_hooks_alloc(gpu->hooks, words_bytes(desc), NB_CACHE_LINE, "nb_gpu_pipeline_create");
    if (words == NULL) return NB_ERR_MEMORY;
    nb_gpu_shader *shaders[3] = {&desc->vertex, &desc->fragment, &desc->compute};
    for (uint32_t i = 0; i < 3; ++i) {
        size_t size_bytes = shaders[i]->size_bytes;
        if (size_bytes != 0) memcpy(words, shaders[i]->words, size_bytes);
        shaders[i]->words = size_bytes != 0 ? (const uint32_t *)(const void *)words : NULL;
        words += size_bytes;
    }
    return NB_OK;
}

nb_result nb_gpu_pipeline_create(nb_gpu *gpu, const nb_gpu_pipeline_desc *desc, nb_gpu_pipeline *out) {
    if (gpu == NULL) return NB_FAIL_NULL("gpu");
    if (desc == NULL || out == NULL) return refuse_null(gpu, NBI_GPU_PIPELINE, desc == NULL ? "desc" : "out", __func__);
    nb_result result = NB_OK;
    const char *problem = nbi_gpu_pipeline_problem(desc, &result), *name = desc->name != NULL ? desc->name : "pipeline";
    result = check_desc(gpu, NBI_GPU_PIPELINE, name, problem, result, __func__);
    uint32_t index = 0;
    if (result == NB_OK) result = take_for_user(gpu, NBI_GPU_PIPELINE, name, __func__, &index);
    if (result != NB_OK) return result;
    nb_gpu_pipeline_desc kept = *desc;
    result = keep_words(gpu, &kept);
    if (result != NB_OK) {
        nbi_gpu_object_free(gpu, NBI_GPU_PIPELINE, index);
        return result;
    }
    at(gpu, NBI_GPU_PIPELINE, index)->desc.pipeline = kept;
    return make_for_user(gpu, NBI_GPU_PIPELINE, index, &out->value);
}

nb_result nb_gpu_buffer_destroy(nb_gpu *gpu, nb_gpu_buffer buffer) {
    return gpu != NULL ? destroy_for_user(gpu, NBI_GPU_BUFFER, buffer.value, __func__) : NB_FAIL_NULL("gpu");
}

nb_result nb_gpu_image_destroy(nb_gpu *gpu, nb_gpu_image image) {
    return gpu != NULL ? destroy_for_user(gpu, NBI_GPU_IMAGE, image.value, __func__) : NB_FAIL_NULL("gpu");
}

nb_result nb_gpu_pipeline_destroy(nb_gpu *gpu, nb_gpu_pipeline pipeline) {
    return gpu != NULL ? destroy_for_user(gpu, NBI_GPU_PIPELINE, pipeline.value, __func__) : NB_FAIL_NULL("gpu");
}

const void *nb_gpu_buffer_memory(nb_gpu *gpu, nb_gpu_buffer buffer) {
    if (gpu == NULL) {
        NB_FAIL_NULL("gpu");
        return NULL;
    }
    uint32_t index = 0;
    const nbi_gpu_object *object = nbi_gpu_object_find(gpu, NBI_GPU_BUFFER, buffer.value, &index);
    bool is_readable = object != NULL && object->role == NBI_GPU_USERS && object->is_made &&
                       object->desc.buffer.memory == NB_GPU_MEMORY_READBACK;
    return is_readable ? gpu->backend->buffer_memory(gpu->self, index) : NULL;
}
