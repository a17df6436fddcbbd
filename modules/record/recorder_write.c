// SPDX-License-Identifier: MIT
// The writer's thread: compresses blocks and writes them, in the order of their messages. After the first failure
// nothing more is written: a gap would be worse than an end.

#include "recorder.h"

#include "nebula/hash.h"

#include <stdio.h>

static bool has_failed(const nb_recorder *recorder) {
    return nbi_atomic_load_relaxed_u32(&recorder->result) != (uint32_t)NB_OK;
}

// Read by the acquire load in recorder.c; nobody else writes it.
static void set_failed(nb_recorder *recorder, nb_result result) {
    if (!has_failed(recorder)) nbi_atomic_store_release_u32(&recorder->result, (uint32_t)result);
}

// `verb` says what could not be done. All that is lost begins with the tick that the file would have had next.
static void fail(nb_recorder *recorder, nb_result result, const char *verb, const char *cause) {
    const nbi_writer *writer = &recorder->writer;
    if (has_failed(recorder)) return; // the first failure is the cause of the others
    char end[48] = "at its beginning";
    if (writer->has_tick) snprintf(end, sizeof end, "before tick %llu", nb_llu(writer->next_tick));
    set_failed(recorder,
               nb_report_failure(&recorder->hooks, NB_ITEM_RECORD_FILE, result, nbi_recorder_pushed_by(recorder),
                                 "recording %s: ends %s: %s failed after %llu bytes: %s", recorder->name.text, end,
                                 verb, nb_llu(nbi_atomic_load_relaxed_u64(&recorder->file_bytes)), cause));
}

static void fail_os(nb_recorder *recorder, const char *verb, int error) {
    char text[128];
    nbi_file_error_text(error, text, sizeof text);
    fail(recorder, NB_ERR_OS, verb, text);
}

static void write_bytes(nb_recorder *recorder, const void *bytes, size_t size_bytes) {
    const nbi_writer *writer = &recorder->writer;
    if (has_failed(recorder)) return;
    if (writer->file.os != 0) {
        int error = writer->ops.write(writer->ops.user, writer->file, bytes, size_bytes);
        if (error != 0) fail_os(recorder, "writing", error);
    } else {
        nb_result result = recorder->desc.sink.write(recorder->desc.sink.user, bytes, size_bytes);
        if (result < 0) fail(recorder, result, "nb_record_sink.write", nb_result_name(result));
    }
    if (!has_failed(recorder)) nbi_atomic_fetch_add_relaxed_u64(&recorder->file_bytes, size_bytes);
}

static void sync_bytes(nb_recorder *recorder) {
    const nbi_writer *writer = &recorder->writer;
    if (has_failed(recorder)) return;
    if (writer->file.os != 0) {
        int error = writer->ops.sync(writer->ops.user, writer->file);
        if (error != 0) fail_os(recorder, "flushing", error);
    } else if (recorder->desc.sink.sync != NULL) {
        nb_result result = recorder->desc.sink.sync(recorder->desc.sink.user);
        if (result < 0) fail(recorder, result, "nb_record_sink.sync", nb_result_name(result));
    }
}

// One call writes head and content, so that a crash leaves both more often.
static void write_block(nb_recorder *recorder, nbi_block block, const void *raw, unsigned char *packed,
                        size_t packed_bytes) {
    nbi_writer *writer = &recorder->writer;
    if (has_failed(recorder) || writer->has_stopped) return;
    size_t stored = 0;
    if (block.raw_bytes != 0) {
        nb_result result = nbi_compress_pack(&writer->compress, recorder->desc.level, raw, (size_t)block.raw_bytes,
                                             packed + NBI_BLOCK_BYTES, packed_bytes - NBI_BLOCK_BYTES, &stored);
        if (result != NB_OK) {
            fail(recorder, result, "compressing a block", nb_result_name(result));
            return;
        }
    }
    block.stored_bytes = stored;
    block.stored_hash = nb_hash64(packed + NBI_BLOCK_BYTES, stored, 0);
    block.number = writer->number++;
    nbi_block_write(&block, writer->head_hash, packed);
    write_bytes(recorder, packed, NBI_BLOCK_BYTES + stored);
    if (recorder->desc.is_synced) sync_bytes(recorder);
    if (has_failed(recorder)) return;
    nbi_atomic_fetch_add_relaxed_u64(&recorder->block_count, 1);
    nbi_atomic_fetch_add_relaxed_u64(&recorder->raw_bytes, block.raw_bytes);
}

static void write_ticks(nb_recorder *recorder, nbi_batch *batch) {
    nbi_writer *writer = &recorder->writer;
    nbi_block block = {.kind = NBI_BLOCK_TICKS,
                       .first_tick = batch->first_tick,
                       .tick_count = batch->tick_count,
                       .raw_bytes = batch->used_bytes};
    writer->next_tick = batch->first_tick;
    writer->has_tick = true;
    write_block(recorder, block, batch->bytes, writer->packed, writer->packed_bytes);
    if (has_failed(recorder)) nbi_atomic_fetch_add_relaxed_u64(&recorder->unwritten_count, batch->tick_count);
    writer->next_tick = batch->first_tick + batch->tick_count;
    nbi_atomic_store_release_u32(&batch->is_busy, 0); // read by the acquire load in take_batch
}

static void write_key(nb_recorder *recorder, nbi_key_slot *slot) {
    nbi_block block = {.kind = NBI_BLOCK_KEY, .first_tick = slot->tick, .raw_bytes = slot->used_bytes};
    write_block(recorder, block, slot->bytes, slot->packed, NBI_BLOCK_BYTES + nbi_compress_bound(slot->capacity_bytes));
    recorder->writer.next_tick = slot->tick;
    nbi_atomic_store_release_u32(&slot->is_busy, 0); // read by the acquire load in nbi_recorder_key_begin
}

static void write_last(nb_recorder *recorder, uint32_t kind, uint32_t stop) {
    nbi_writer *writer = &recorder->writer;
    nbi_block block = {.kind = kind, .stop = stop, .first_tick = writer->next_tick};
    write_block(recorder, block, NULL, writer->packed, writer->packed_bytes);
    writer->has_stopped = true;
    sync_bytes(recorder);
}

nb_result nbi_writer_run(nb_service *service, void *user) {
    nb_recorder *recorder = user;
    nbi_writer *writer = &recorder->writer;
    write_bytes(recorder, writer->head, writer->head_bytes);
    nbi_message message;
    while (nb_service_recv(service, &message, NB_NEVER_NS) == NB_OK) {
        if (message.kind == NBI_MESSAGE_TICKS) write_ticks(recorder, &recorder->batches[message.index]);
        if (message.kind == NBI_MESSAGE_KEY) write_key(recorder, &recorder->keys[message.index]);
        if (message.kind == NBI_MESSAGE_STOP) write_last(recorder, NBI_BLOCK_ERROR, message.index);
    }
    if (!writer->has_stopped) write_last(recorder, NBI_BLOCK_END, 0);
    if (writer->file.os != 0) {
        int error = writer->ops.close(writer->ops.user, writer->file);
        writer->file.os = 0;
        if (error != 0) fail_os(recorder, "closing", error);
    }
    return NB_OK;
}
