// SPDX-License-Identifier: MIT
// Writing save files: beside the old one, and renamed when all of it is on the disk.

#include "save_file.h"

#include "nebula/bytes.h"
#include "nebula/hash.h"
#include "nebula/report.h"

#include "compress.h"
#include "recording_format.h"

#include <string.h>

#define TEMPORARY ".tmp"

typedef struct save {
    unsigned char *raw, *file;
    size_t raw_bytes, file_capacity, file_bytes;
} save;

static void write_head(save *s, nb_states *states, const nb_save_desc *desc, size_t stored_bytes) {
    unsigned char *head = s->file;
    memcpy(head, nbi_save_magic, sizeof nbi_save_magic);
    nb_bytes_put_u32(head + 8, NB_SAVE_VERSION), nb_bytes_put_u32(head + 12, desc->version);
    nb_bytes_put_u64(head + 16, nb_states_layout_hash(states));
    nb_bytes_put_u64(head + 24, desc->tick), nb_bytes_put_u64(head + 32, desc->seed);
    nb_bytes_put_u64(head + 40, s->raw_bytes), nb_bytes_put_u64(head + 48, stored_bytes);
    nb_bytes_put_u64(head + 56, nb_hash64(head + NBI_SAVE_HEAD_BYTES, stored_bytes, 0));
    nb_bytes_put_u64(head + 64, nb_hash64(head, 64, 0));
}

// The content: commands, then the state.
static nb_result make_content(save *s, nb_states *states, nb_input_view commands, const nb_save_desc *desc) {
    const char *function = "nb_save_write";
    size_t state_bytes = 0, state_at = NBI_SAVE_COUNT_BYTES + (size_t)commands.count * NBI_EVENT_BYTES;
    nb_result result = nb_states_save(states, NULL, 0, &state_bytes);
    if (result < 0) return result;
    if (state_bytes > NB_RECORD_STATE_BYTES_MAX - state_at)
        return nb_report_failure(&desc->hooks, NB_ITEM_RECORD_ARGUMENT, NB_ERR_RANGE, function,
                                 "the state is too large");
    s->raw_bytes = state_at + state_bytes;
    s->raw = nb_hooks_alloc(&desc->hooks, s->raw_bytes, NB_CACHE_LINE, function);
    if (s->raw == NULL) return NB_ERR_MEMORY;
    nb_bytes_put_u64(s->raw, commands.count);
    nbi_events_write(commands, s->raw + NBI_SAVE_COUNT_BYTES);
    result = nb_states_save(states, s->raw + state_at, state_bytes, &state_bytes);
    return result > 0 ? NB_ERR_RANGE : result;
}

static nb_result make_file(save *s, nb_states *states, nb_input_view commands, const nb_save_desc *desc) {
    nb_result result = make_content(s, states, commands, desc);
    if (result != NB_OK) return result;
    s->file_capacity = NBI_SAVE_HEAD_BYTES + nbi_compress_bound(s->raw_bytes);
    s->file = nb_hooks_alloc(&desc->hooks, s->file_capacity, NB_CACHE_LINE, "nb_save_write");
    if (s->file == NULL) return NB_ERR_MEMORY;
    nbi_compress compress = {.hooks = desc->hooks};
    size_t stored_bytes = 0;
    result = nbi_compress_pack(&compress, desc->level, s->raw, s->raw_bytes, s->file + NBI_SAVE_HEAD_BYTES,
                               s->file_capacity - NBI_SAVE_HEAD_BYTES, &stored_bytes);
    nbi_compress_end(&compress);
    if (result != NB_OK) return result;
    write_head(s, states, desc, stored_bytes);
    s->file_bytes = NBI_SAVE_HEAD_BYTES + stored_bytes;
    return NB_OK;
}

// The order is what makes it safe: the bytes are on the disk before the name is.
static int put_file(const save *s, const char *path, const char *temporary, const nbi_file_ops *ops,
                    const char **what) {
    nbi_file file = {0};
    *what = "made";
    int error = ops->open(ops->user, temporary, &file);
    if (error != 0) return error;
    *what = "written";
    error = ops->write(ops->user, file, s->file, s->file_bytes);
    if (error == 0) error = ops->sync(ops->user, file);
    int close_error = ops->close(ops->user, file);
    if (error == 0) error = close_error;
    if (error == 0) {
        *what = "renamed";
        error = ops->rename(ops->user, temporary, path);
    }
    if (error != 0) {
        ops->remove(ops->user, temporary);
        return error;
    }
    *what = "made to last";
    return ops->sync_folder(ops->user, path);
}

nb_result nbi_save_write(const char *path, nb_states *states, nb_input_view commands, const nb_save_desc *given,
                         const nbi_file_ops *ops) {
    nb_save_desc desc = nbi_save_resolve(given);
    const char *function = "nb_save_write";
    if (desc.level < 1 || desc.level > NBI_COMPRESS_LEVEL_MAX)
        return nb_report_mistake(&desc.hooks, NB_ITEM_RECORD_ARGUMENT, NB_ERR_RANGE, function,
                                 "level is out of bounds");
    if (desc.tick > NB_TICK_COUNT_MAX)
        return nb_report_mistake(&desc.hooks, NB_ITEM_RECORD_ARGUMENT, NB_ERR_RANGE, function,
                                 "tick is over NB_TICK_COUNT_MAX");
    size_t length = strlen(path);
    if (length == 0 || length > NB_SAVE_PATH_SIZE_MAX)
        return nb_report_mistake(&desc.hooks, NB_ITEM_RECORD_ARGUMENT, NB_ERR_RANGE, function,
                                 "the path is empty or too long");
    char temporary[NB_SAVE_PATH_SIZE_MAX + sizeof TEMPORARY];
    memcpy(temporary, path, length);
    memcpy(temporary + length, TEMPORARY, sizeof TEMPORARY);
    save s = {0};
    nb_result result = make_file(&s, states, commands, &desc);
    const char *what = "";
    int error = result == NB_OK ? put_file(&s, path, temporary, ops, &what) : 0;
    if (error != 0) {
        char text[128];
        nbi_file_error_text(error, text, sizeof text);
        result = nb_report_failure(&desc.hooks, NB_ITEM_RECORD_FILE, NB_ERR_OS, function, "%s cannot be %s: %s",
                                   strcmp(what, "made") == 0 ? temporary : path, what, text);
    }
    nb_hooks_free(&desc.hooks, s.raw, s.raw_bytes);
    nb_hooks_free(&desc.hooks, s.file, s.file_capacity);
    return result;
}

nb_result nb_save_write(const char *path, nb_states *states, const nb_save_desc *desc) {
    if (path == NULL) return NB_FAIL_NULL("path");
    if (states == NULL) return NB_FAIL_NULL("states");
    nbi_file_ops ops = nbi_file_ops_default();
    return nbi_save_write(path, states, (nb_input_view){NULL, 0}, desc, &ops);
}
