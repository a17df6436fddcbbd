// SPDX-License-Identifier: MIT
// The frame's side of a recorder: ticks become bytes of a block, whole blocks go to the writer.

#include "recorder.h"

#include "nebula/clock.h"
#include "nebula/hash.h"
#include "nebula/state.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

// --- making and ending ---

nb_recorder_desc nb_recorder_desc_default(void) {
    return (nb_recorder_desc){.head = {.tick_rate = {60, 1}},
                              .block_bytes = NB_RECORD_BLOCK_BYTES_DEFAULT,
                              .block_ticks = NB_RECORD_BLOCK_TICKS_DEFAULT,
                              .queue_count = NB_RECORD_QUEUE_COUNT_DEFAULT,
                              .key_ticks = NB_RECORD_KEY_TICKS_DEFAULT,
                              .level = NBI_COMPRESS_LEVEL_DEFAULT,
                              .hooks = nb_hooks_default()};
}

static nb_recorder_desc resolve(const nb_recorder_desc *given) {
    nb_recorder_desc desc = *given, defaults = nb_recorder_desc_default();
    desc.hooks = nb_hooks_resolve(&given->hooks);
    if (desc.head.tick_rate.num == 0) desc.head.tick_rate = defaults.head.tick_rate;
    if (desc.head.tick_rate.den == 0) desc.head.tick_rate.den = 1;
    if (desc.block_bytes == 0) desc.block_bytes = defaults.block_bytes;
    if (desc.block_ticks == 0) desc.block_ticks = defaults.block_ticks;
    if (desc.queue_count == 0) desc.queue_count = defaults.queue_count;
    if (desc.key_ticks == 0) desc.key_ticks = defaults.key_ticks;
    if (desc.level == 0) desc.level = defaults.level;
    return desc;
}

static bool is_text_fine(const char *text) { return text == NULL || strlen(text) <= NB_RECORD_TEXT_SIZE_MAX; }

static nb_result check_desc(const nb_recorder_desc *desc, const char *function) {
    const char *problem = NULL;
    if ((desc->path != NULL) == (desc->sink.write != NULL) || (desc->path != NULL && desc->path[0] == '\0'))
        return nb_report_mistake(&desc->hooks, NB_ITEM_RECORD_ARGUMENT, NB_ERR_MISUSE, function,
                                 "neither or both of path and sink");
    if (desc->head.config == NULL && desc->head.config_bytes != 0)
        return nb_report_mistake(&desc->hooks, NB_ITEM_RECORD_ARGUMENT, NB_ERR_MISUSE, function,
                                 "config_bytes without config");
    if (!is_text_fine(desc->head.build_id) || !is_text_fine(desc->head.game_name))
        problem = "the build id or the name of the game is too long";
    else if (desc->head.config_bytes > NB_RECORD_CONFIG_BYTES_MAX)
        problem = "config_bytes is too large";
    else if (desc->block_bytes < NB_RECORD_BLOCK_BYTES_MIN || desc->block_bytes > NB_RECORD_BLOCK_BYTES_MAX)
        problem = "block_bytes is out of bounds";
    else if (desc->block_ticks > NB_RECORD_BLOCK_TICKS_MAX)
        problem = "block_ticks is too large";
    else if (desc->queue_count < 2 || desc->queue_count > NB_RECORD_QUEUE_COUNT_MAX)
        problem = "queue_count is out of bounds";
    else if (desc->level < 1 || desc->level > NBI_COMPRESS_LEVEL_MAX)
        problem = "level is out of bounds";
    if (problem == NULL) return NB_OK;
    return nb_report_mistake(&desc->hooks, NB_ITEM_RECORD_ARGUMENT, NB_ERR_RANGE, function, "%s", problem);
}

static nb_result make_memory(nb_recorder *recorder) {
    const nb_recorder_desc *desc = &recorder->desc;
    nbi_writer *writer = &recorder->writer;
    const char *function = nbi_recorder_opened_by(recorder->is_attached);
    writer->head_bytes = nbi_head_size(&desc->head);
    writer->head = nb_hooks_alloc(&recorder->hooks, writer->head_bytes, NB_CACHE_LINE, function);
    if (writer->head == NULL) return NB_ERR_MEMORY;
    writer->head_hash = nbi_head_write(&desc->head, writer->head);
    writer->packed_bytes = NBI_BLOCK_BYTES + nbi_compress_bound(desc->block_bytes);
    writer->packed = nb_hooks_alloc(&recorder->hooks, writer->packed_bytes, NB_CACHE_LINE, function);
    if (writer->packed == NULL) return NB_ERR_MEMORY;
    recorder->batches =
        nb_hooks_alloc(&recorder->hooks, desc->queue_count * sizeof *recorder->batches, NB_CACHE_LINE, function);
    if (recorder->batches == NULL) return NB_ERR_MEMORY;
    memset(recorder->batches, 0, desc->queue_count * sizeof *recorder->batches);
    recorder->memory_bytes = desc->queue_count * desc->block_bytes;
    recorder->memory = nb_hooks_alloc(&recorder->hooks, recorder->memory_bytes, NB_CACHE_LINE, function);
    if (recorder->memory == NULL) return NB_ERR_MEMORY;
    for (uint32_t i = 0; i < desc->queue_count; ++i)
        recorder->batches[i].bytes = recorder->memory + i * desc->block_bytes;
    if (!desc->hashes_states) return NB_OK;
    recorder->hashes =
        nb_hooks_alloc(&recorder->hooks, NB_RECORD_HASH_COUNT_MAX * sizeof *recorder->hashes, NB_CACHE_LINE, function);
    return recorder->hashes != NULL ? NB_OK : NB_ERR_MEMORY;
}

static nb_result open_file(nb_recorder *recorder) {
    nbi_writer *writer = &recorder->writer;
    if (recorder->desc.path == NULL) return NB_OK;
    const char *failed = "cannot create the file";
    int error = writer->ops.open(writer->ops.user, recorder->desc.path, &writer->file);
    if (error == 0) {
        // Without this the file itself may be gone after a loss of power, however often its blocks are flushed.
        failed = "cannot flush the folder";
        error = writer->ops.sync_folder(writer->ops.user, recorder->desc.path);
    }
    if (error == 0) return NB_OK;
    char text[128];
    nbi_file_error_text(error, text, sizeof text);
    return nb_report_failure(&recorder->hooks, NB_ITEM_RECORD_FILE, NB_ERR_OS,
                             nbi_recorder_opened_by(recorder->is_attached), "recording %s: %s: %s", recorder->name.text,
                             failed, text);
}

static nb_result start_writer(nb_recorder *recorder) {
    nb_services_desc set = {.service_count_max = 1, .hooks = recorder->hooks};
    nb_result result = nb_services_create(&set, &recorder->services);
    if (result != NB_OK) return result;
    nb_service_desc desc = {.name = "nebula-record",
                            .run = nbi_writer_run,
                            .user = recorder,
                            .message_size_bytes = sizeof(nbi_message),
                            // One for each buffer and one for the stop: a send never finds it full.
                            .mailbox_count = recorder->desc.queue_count + NBI_KEY_SLOT_COUNT + 1,
                            .restart_limit = NB_SERVICE_RESTART_NEVER};
    return nb_service_start(recorder->services, &desc, &recorder->service);
}

static void free_all(nb_recorder *recorder) {
    nb_hooks hooks = recorder->hooks;
    nbi_writer *writer = &recorder->writer;
    // Only where the writer never ran: it closes the file itself.
    if (writer->file.os != 0) writer->ops.close(writer->ops.user, writer->file);
    nbi_compress_end(&writer->compress);
    nb_hooks_free(&hooks, writer->head, writer->head_bytes);
    nb_hooks_free(&hooks, writer->packed, writer->packed_bytes);
    nb_hooks_free(&hooks, recorder->batches, recorder->desc.queue_count * sizeof *recorder->batches);
    nb_hooks_free(&hooks, recorder->memory, recorder->memory_bytes);
    nbi_window_end(recorder);
    nb_hooks_free(&hooks, recorder->hashes, NB_RECORD_HASH_COUNT_MAX * sizeof *recorder->hashes);
    for (uint32_t i = 0; i < NBI_KEY_SLOT_COUNT; ++i) {
        nbi_key_slot *slot = &recorder->keys[i];
        nb_hooks_free(&hooks, slot->bytes, slot->capacity_bytes);
        nb_hooks_free(&hooks, slot->packed, NBI_BLOCK_BYTES + nbi_compress_bound(slot->capacity_bytes));
    }
    nb_hooks_free(&hooks, recorder, sizeof *recorder);
}

nb_result nbi_recorder_create(const nb_recorder_desc *given, const nbi_file_ops *ops, bool is_attached,
                              nb_recorder **out) {
    const char *function = nbi_recorder_opened_by(is_attached);
    nb_recorder_desc desc = resolve(given);
    nb_result result = check_desc(&desc, function);
    if (result != NB_OK) return result;
    nb_recorder *recorder = nb_hooks_alloc(&desc.hooks, sizeof *recorder, NB_CACHE_LINE, function);
    if (recorder == NULL) return NB_ERR_MEMORY;
    *recorder = (nb_recorder){.desc = desc,
                              .is_attached = is_attached,
                              .hooks = desc.hooks,
                              .close_ns = NB_RECORD_CLOSE_NS,
                              .writer = {.ops = *ops, .compress = {.hooks = desc.hooks}}};
    recorder->name = nbi_recording_name_of(recorder->desc.path, "into a sink");
    result = make_memory(recorder);
    if (result == NB_OK) result = open_file(recorder);
    if (result == NB_OK) result = start_writer(recorder);
    if (result != NB_OK) {
        nb_services_destroy(recorder->services);
        free_all(recorder);
        return result;
    }
    // The caller's strings are no longer needed, and may go.
    recorder->desc.path = NULL;
    recorder->desc.head = (nb_record_head){.tick_rate = desc.head.tick_rate};
    *out = recorder;
    return NB_OK;
}

nb_result nb_recorder_create(const nb_recorder_desc *desc, nb_recorder **out) {
    if (desc == NULL) return NB_FAIL_NULL("desc");
    if (out == NULL) return NB_FAIL_NULL("out");
    nbi_file_ops ops = nbi_file_ops_default();
    return nbi_recorder_create(desc, &ops, false, out);
}

// --- handing over ---

// NB_OK while the recording goes on. The first call after a failed write gets NB_ERR_OS, as the call that ends a
// recording for another reason gets that reason; every later call gets NB_CLOSED.
static nb_result refuse(nb_recorder *recorder) {
    if (recorder->stats.stop != NB_RECORD_STOP_NONE) return NB_CLOSED;
    if (nbi_atomic_load_acquire_u32(&recorder->result) == (uint32_t)NB_OK) return NB_OK;
    recorder->stats.stop = NB_RECORD_STOP_WRITE; // the writer has logged it
    // The writer writes nothing any more: what is being filled is lost too.
    if (recorder->filling != NULL) recorder->stats.lost_count += recorder->filling->tick_count;
    recorder->filling = NULL;
    return NB_ERR_OS;
}

static void send(nb_recorder *recorder, uint32_t kind, uint32_t index) {
    nbi_message message = {.kind = kind, .index = index};
    nb_service_send(recorder->service, &message);
}

static void hand_over(nb_recorder *recorder) {
    nbi_batch *batch = recorder->filling;
    if (batch == NULL || batch->tick_count == 0) return;
    recorder->filling = NULL;
    nbi_atomic_store_relaxed_u32(&batch->is_busy, 1); // goes over with the message
    send(recorder, NBI_MESSAGE_TICKS, (uint32_t)(batch - recorder->batches));
    uint64_t busy_count = 0;
    for (uint32_t i = 0; i < recorder->desc.queue_count; ++i)
        busy_count += nbi_atomic_load_relaxed_u32(&recorder->batches[i].is_busy);
    if (busy_count > recorder->stats.queue_peak_count) recorder->stats.queue_peak_count = busy_count;
}

// Ends the recording before the tick `next_tick`, which the caller counts as lost. Nothing is logged after this.
NB_PRINTF(4, 5)
static nb_result stop(nb_recorder *recorder, nb_record_stop why, nb_result result, const char *format, ...) {
    char cause[160];
    va_list args;
    va_start(args, format);
    vsnprintf(cause, sizeof cause, format, args);
    va_end(args);
    hand_over(recorder);
    recorder->stats.stop = why;
    send(recorder, NBI_MESSAGE_STOP, (uint32_t)why);
    return nb_report_failure(&recorder->hooks, NB_ITEM_RECORD_STOPPED, result, nbi_recorder_pushed_by(recorder),
                             "recording %s: ends before tick %llu: %s", recorder->name.text,
                             nb_llu(recorder->next_tick), cause);
}

static nbi_batch *take_batch(nb_recorder *recorder) {
    if (recorder->filling != NULL) return recorder->filling;
    for (uint32_t i = 0; i < recorder->desc.queue_count; ++i) {
        nbi_batch *batch = &recorder->batches[i];
        if (nbi_atomic_load_acquire_u32(&batch->is_busy) != 0) continue;
        batch->used_bytes = 0;
        batch->tick_count = 0;
        batch->first_tick = recorder->next_tick;
        recorder->filling = batch;
        return batch;
    }
    return NULL;
}

// --- ticks ---

// A mistake about what is pushed; `object` tells mistakes of one function apart.
#define FAIL(recorder, object, function, format, ...)                                                       \
    nb_report_throttled(&(recorder)->hooks, &(recorder)->throttle, (object), true, NB_ITEM_RECORD_ARGUMENT, \
                        NB_ERR_MISUSE, (function), "recording %s: " format, (recorder)->name.text, __VA_ARGS__)

static nb_result check_tick(nb_recorder *recorder, const nb_record_tick *tick) {
    const char *problem = NULL;
    unsigned long long index = tick->index, next = recorder->next_tick;
    if (recorder->has_tick && tick->index != recorder->next_tick)
        return FAIL(recorder, 0, nbi_recorder_pushed_by(recorder),
                    "tick %llu was pushed and tick %llu follows; push each tick once, in their order", index, next);
    if (tick->index >= NB_TICK_COUNT_MAX)
        problem = "its index is not below NB_TICK_COUNT_MAX";
    else if (tick->input.count > NB_INPUT_COUNT_LIMIT)
        problem = "it has more events than NB_INPUT_COUNT_LIMIT";
    else if (tick->commands.count > NB_COMMAND_COUNT_MAX)
        problem = "it has more commands than NB_COMMAND_COUNT_MAX";
    else if (tick->hash_count > NB_RECORD_HASH_COUNT_MAX)
        problem = "it has more hashes than NB_RECORD_HASH_COUNT_MAX";
    else if (tick->input.count != 0 && tick->input.events == NULL)
        problem = "input has a count and no events";
    else if (tick->commands.count != 0 && tick->commands.events == NULL)
        problem = "commands has a count and no events";
    else if (tick->hash_count != 0 && tick->hashes == NULL)
        problem = "hash_count is not 0 and hashes is NULL";
    if (problem == NULL) return NB_OK;
    return FAIL(recorder, nb_hash64(problem, strlen(problem), 0), nbi_recorder_pushed_by(recorder), "tick %llu: %s",
                index, problem);
}

// Room for the tick, in the block that is being filled, of a recording that goes on.
static nb_result take_room(nb_recorder *recorder, uint64_t index, size_t size_bytes, unsigned char **room) {
    const nb_recorder_desc *desc = &recorder->desc;
    if (!recorder->has_tick) recorder->next_tick = index;
    recorder->has_tick = true;
    if (size_bytes > desc->block_bytes) {
        return stop(recorder, NB_RECORD_STOP_TOO_LARGE, NB_ERR_RANGE,
                    "the tick takes %zu bytes and a block has %zu; raise nb_recorder_desc.block_bytes", size_bytes,
                    desc->block_bytes);
    }
    nbi_batch *batch = recorder->filling;
    if (batch != NULL && desc->block_bytes - batch->used_bytes < size_bytes) hand_over(recorder);
    batch = take_batch(recorder);
    if (batch == NULL) {
        return stop(recorder, NB_RECORD_STOP_QUEUE_FULL, NB_FULL,
                    "writing is too slow, and all %u blocks wait for it; raise nb_recorder_desc.queue_count",
                    (unsigned)desc->queue_count);
    }
    *room = batch->bytes + batch->used_bytes;
    batch->used_bytes += size_bytes;
    return NB_OK;
}

static void end_tick(nb_recorder *recorder, uint64_t hash) {
    recorder->last_hash = hash;
    ++recorder->next_tick;
    ++recorder->stats.tick_count;
    if (++recorder->filling->tick_count == recorder->desc.block_ticks) hand_over(recorder);
}

nb_result nb_recorder_push(nb_recorder *recorder, const nb_record_tick *tick) {
    if (recorder == NULL) return NB_FAIL_NULL("recorder");
    if (tick == NULL) return FAIL(recorder, 0, __func__, "%s is NULL", "tick");
    // Asked first: behind an early end every tick has another index than the one that would follow.
    nb_result result = refuse(recorder);
    unsigned char *room = NULL;
    if (result == NB_OK) {
        result = check_tick(recorder, tick);
        if (result != NB_OK) return result; // a mistake ends nothing and loses nothing
        result = take_room(recorder, tick->index, nbi_tick_size(tick), &room);
    }
    if (result != NB_OK) {
        ++recorder->stats.lost_count;
        return result;
    }
    nbi_tick_write(tick, room);
    end_tick(recorder, tick->hash);
    return NB_OK;
}

nb_result nbi_recorder_push_cell(nb_recorder *recorder, uint64_t index, const unsigned char *cell) {
    size_t size_bytes = nbi_tick_written_size(cell);
    unsigned char *room = NULL;
    nb_result result = refuse(recorder);
    if (result == NB_OK) result = take_room(recorder, index, size_bytes, &room);
    if (result != NB_OK) {
        ++recorder->stats.lost_count;
        return result;
    }
    memcpy(room, cell, size_bytes);
    end_tick(recorder, nbi_tick_written_hash(cell));
    return NB_OK;
}

void nbi_recorder_repeat(nb_recorder *recorder, const nb_record_tick *tick) {
    ++recorder->stats.repeat_count;
    bool is_last = tick->index + 1 == recorder->next_tick;
    if (is_last && tick->hash != recorder->last_hash && refuse(recorder) == NB_OK) {
        ++recorder->stats.lost_count;
        stop(recorder, NB_RECORD_STOP_REWOUND, NB_ERR_RANGE,
             "tick %llu, which is written, has run again and ended in another state", nb_llu(tick->index));
    }
}

void nbi_recorder_jump(nb_recorder *recorder, uint64_t index) {
    if (refuse(recorder) != NB_OK) return;
    stop(recorder, NB_RECORD_STOP_JUMPED, NB_ERR_RANGE, "tick %llu follows after a load or nb_engine_set_tick",
         nb_llu(index));
}

nb_result nb_recorder_flush(nb_recorder *recorder) {
    if (recorder == NULL) return NB_FAIL_NULL("recorder");
    nb_result result = refuse(recorder);
    if (result == NB_OK) hand_over(recorder);
    return result;
}

// --- key states ---

static nb_result grow_key(nb_recorder *recorder, nbi_key_slot *slot, size_t size_bytes) {
    // Half as much again: a state that grows by a row a tick is not to need the heap each time.
    size_t capacity = size_bytes + size_bytes / 2;
    if (capacity > NB_RECORD_STATE_BYTES_MAX) capacity = NB_RECORD_STATE_BYTES_MAX;
    size_t packed_bytes = NBI_BLOCK_BYTES + nbi_compress_bound(capacity);
    unsigned char *bytes = nb_hooks_alloc(&recorder->hooks, capacity, NB_CACHE_LINE, "nb_recorder_push_state");
    unsigned char *packed =
        bytes != NULL ? nb_hooks_alloc(&recorder->hooks, packed_bytes, NB_CACHE_LINE, "nb_recorder_push_state") : NULL;
    if (packed == NULL) {
        nb_hooks_free(&recorder->hooks, bytes, capacity);
        return NB_ERR_MEMORY;
    }
    nb_hooks_free(&recorder->hooks, slot->bytes, slot->capacity_bytes);
    nb_hooks_free(&recorder->hooks, slot->packed, NBI_BLOCK_BYTES + nbi_compress_bound(slot->capacity_bytes));
    slot->bytes = bytes, slot->packed = packed, slot->capacity_bytes = capacity;
    return NB_OK;
}

nbi_key_slot *nbi_recorder_key_begin(nb_recorder *recorder, size_t size_bytes, nb_result *result) {
    nbi_key_slot *slot = NULL;
    for (uint32_t i = 0; i < NBI_KEY_SLOT_COUNT && slot == NULL; ++i) {
        nbi_key_slot *tried = &recorder->keys[(recorder->key_next + i) % NBI_KEY_SLOT_COUNT];
        if (nbi_atomic_load_acquire_u32(&tried->is_busy) == 0) slot = tried;
    }
    *result = slot != NULL ? NB_OK : NB_BUSY;
    if (size_bytes > NB_RECORD_STATE_BYTES_MAX) *result = NB_ERR_RANGE;
    if (*result == NB_OK && size_bytes > slot->capacity_bytes) *result = grow_key(recorder, slot, size_bytes);
    return *result == NB_OK ? slot : NULL;
}

nb_result nbi_recorder_key_end(nb_recorder *recorder, nbi_key_slot *slot, uint64_t tick, size_t size_bytes) {
    // Behind the ticks that led to it.
    hand_over(recorder);
    recorder->next_tick = tick;
    recorder->has_tick = true;
    slot->tick = tick;
    slot->used_bytes = size_bytes;
    nbi_atomic_store_relaxed_u32(&slot->is_busy, 1); // goes over with the message
    recorder->key_next = (uint32_t)(slot - recorder->keys) + 1;
    send(recorder, NBI_MESSAGE_KEY, (uint32_t)(slot - recorder->keys));
    ++recorder->stats.key_count;
    return NB_OK;
}

nb_result nb_recorder_push_state(nb_recorder *recorder, uint64_t tick, const void *bytes, size_t size_bytes) {
    if (recorder == NULL) return NB_FAIL_NULL("recorder");
    nb_result result = refuse(recorder);
    if (result != NB_OK) return result;
    const char *problem = NULL;
    if (bytes == NULL)
        problem = "bytes is NULL";
    else if (size_bytes == 0)
        problem = "a state has bytes";
    else if (tick > NB_TICK_COUNT_MAX)
        problem = "the tick is over NB_TICK_COUNT_MAX";
    else if (recorder->has_tick && tick != recorder->next_tick)
        problem = "push the state before the next tick";
    if (problem != NULL)
        return FAIL(recorder, nb_hash64(problem, strlen(problem), 0), __func__,
                    "state of %zu bytes before tick %llu, where tick %llu follows: %s", size_bytes, nb_llu(tick),
                    nb_llu(recorder->next_tick), problem);
    nbi_key_slot *slot = nbi_recorder_key_begin(recorder, size_bytes, &result);
    if (slot == NULL) return result;
    memcpy(slot->bytes, bytes, size_bytes);
    return nbi_recorder_key_end(recorder, slot, tick, size_bytes);
}

// --- the end ---

nb_recorder_stats nb_recorder_stats_get(const nb_recorder *recorder) {
    if (recorder == NULL) {
        NB_FAIL_NULL("recorder");
        return (nb_recorder_stats){0};
    }
    nb_recorder_stats stats = recorder->stats;
    stats.result = (nb_result)(int32_t)nbi_atomic_load_acquire_u32(&recorder->result);
    stats.block_count = nbi_atomic_load_relaxed_u64(&recorder->block_count);
    stats.raw_bytes = nbi_atomic_load_relaxed_u64(&recorder->raw_bytes);
    stats.file_bytes = nbi_atomic_load_relaxed_u64(&recorder->file_bytes);
    if (stats.result != NB_OK && stats.stop == NB_RECORD_STOP_NONE) stats.stop = NB_RECORD_STOP_WRITE;
    stats.lost_count += nbi_atomic_load_relaxed_u64(&recorder->unwritten_count);
    return stats;
}

nb_result nb_recorder_destroy(nb_recorder *recorder) {
    if (recorder == NULL) return NB_OK;
    if (nbi_recorder_detach(recorder) != NB_OK) return NB_BUSY;
    nbi_window_write(recorder);
    if (recorder->stats.stop == NB_RECORD_STOP_NONE) hand_over(recorder);
    uint64_t deadline_ns = nb_clock_now_ns(NULL) + recorder->close_ns;
    if (nb_service_stop(recorder->service, deadline_ns) != NB_OK) return NB_BUSY;
    if (nb_services_destroy(recorder->services) != NB_OK) return NB_BUSY;
    nb_recorder_stats stats = nb_recorder_stats_get(recorder);
    free_all(recorder);
    if (stats.result != NB_OK) return stats.result;
    if (stats.stop == NB_RECORD_STOP_QUEUE_FULL) return NB_FULL;
    return stats.stop != NB_RECORD_STOP_NONE ? NB_ERR_RANGE : NB_OK;
}
