// SPDX-License-Identifier: MIT
// Reading save files: only where every byte is as it should be.

#include "save_file.h"

#include "nebula/bytes.h"
#include "nebula/hash.h"
#include "nebula/report.h"

#include "compress.h"
#include "recording_format.h"

#include <string.h>

// Not text, and broken by a transfer that changes line ends.
const unsigned char nbi_save_magic[8] = {0x8E, 'N', 'B', 'S', '\r', '\n', 0x1A, '\n'};

nb_save_desc nb_save_desc_default(void) {
    return (nb_save_desc){.level = NBI_COMPRESS_LEVEL_DEFAULT,
                          .state_bytes_max = NB_SAVE_STATE_BYTES_DEFAULT,
                          .hooks = nb_hooks_default()};
}

nb_save_desc nbi_save_resolve(const nb_save_desc *given) {
    nb_save_desc desc = given != NULL ? *given : (nb_save_desc){0};
    desc.hooks = nb_hooks_resolve(&desc.hooks);
    if (desc.level == 0) desc.level = NBI_COMPRESS_LEVEL_DEFAULT;
    if (desc.state_bytes_max == 0) desc.state_bytes_max = NB_SAVE_STATE_BYTES_DEFAULT;
    return desc;
}

// The head of a file of file_bytes, of which size_bytes are there. NB_OK, or what is wrong with *reason set.
static nb_result read_head(const unsigned char *bytes, size_t size_bytes, uint64_t file_bytes, nb_save_info *info,
                           const char **reason) {
    *reason = "this is no save";
    if (size_bytes < sizeof nbi_save_magic || memcmp(bytes, nbi_save_magic, sizeof nbi_save_magic) != 0)
        return NB_ERR_UNSUPPORTED;
    *reason = "it is cut short";
    if (size_bytes < NBI_SAVE_HEAD_BYTES) return NB_ERR_RANGE;
    *reason = "it has another version of the format";
    uint32_t format = nb_bytes_get_u32(bytes + 8);
    if (format < NB_SAVE_VERSION_OLDEST || format > NB_SAVE_VERSION) return NB_ERR_UNSUPPORTED;
    *reason = "its head is damaged";
    if (nb_bytes_get_u64(bytes + 64) != nb_hash64(bytes, 64, 0)) return NB_ERR_RANGE;
    uint64_t stored_bytes = nb_bytes_get_u64(bytes + 48), tick = nb_bytes_get_u64(bytes + 24);
    *reason = "it is cut short, or bytes follow behind its end";
    if (stored_bytes != file_bytes - NBI_SAVE_HEAD_BYTES) return NB_ERR_RANGE;
    *reason = "its tick is over NB_TICK_COUNT_MAX";
    if (tick > NB_TICK_COUNT_MAX) return NB_ERR_RANGE;
    *reason = NULL;
    *info = (nb_save_info){.format = format,
                           .version = nb_bytes_get_u32(bytes + 12),
                           .layout_hash = nb_bytes_get_u64(bytes + 16),
                           .tick = tick,
                           .seed = nb_bytes_get_u64(bytes + 32),
                           .state_bytes = nb_bytes_get_u64(bytes + 40),
                           .file_bytes = file_bytes};
    return NB_OK;
}

// Unpacks what the head promises into save->content.
static nb_result unpack(const unsigned char *bytes, const nb_save_desc *desc, nbi_save *save, const char **reason) {
    const nb_save_info *info = &save->info;
    *reason = "the state is larger than state_bytes_max";
    if (info->state_bytes > desc->state_bytes_max) return NB_ERR_RANGE;
    size_t raw_bytes = (size_t)info->state_bytes, stored_bytes = (size_t)info->file_bytes - NBI_SAVE_HEAD_BYTES;
    *reason = "its content is damaged";
    const unsigned char *stored = bytes + NBI_SAVE_HEAD_BYTES;
    if (nb_bytes_get_u64(bytes + 56) != nb_hash64(stored, stored_bytes, 0)) return NB_ERR_RANGE;
    *reason = "its checksum is right and its content is wrong";
    if (!nbi_compress_is(stored, stored_bytes, raw_bytes)) return NB_ERR_RANGE;
    *reason = "there is no memory for it";
    save->content = nb_hooks_alloc(&desc->hooks, raw_bytes, NB_CACHE_LINE, "nb_save_read");
    if (save->content == NULL) return NB_ERR_MEMORY;
    save->content_bytes = raw_bytes;
    nbi_compress compress = {.hooks = desc->hooks};
    nb_result result = nbi_compress_unpack(&compress, stored, stored_bytes, save->content, raw_bytes);
    nbi_compress_end(&compress);
    if (result == NB_ERR_RANGE) *reason = "its checksum is right and its content is wrong";
    return result;
}

// Finds commands and state in the content. Events get the form of this machine where they are.
static nb_result take_apart(nbi_save *save, const char **reason) {
    save->state = save->content;
    save->state_bytes = save->content_bytes;
    if (save->info.format == NB_SAVE_VERSION_OLDEST) return NB_OK;
    *reason = "its waiting commands are damaged";
    if (save->content_bytes < NBI_SAVE_COUNT_BYTES) return NB_ERR_RANGE;
    uint64_t count = nb_bytes_get_u64(save->content);
    if (count > (save->content_bytes - NBI_SAVE_COUNT_BYTES) / NBI_EVENT_BYTES) return NB_ERR_RANGE;
    unsigned char *events = save->content + NBI_SAVE_COUNT_BYTES;
    for (uint64_t i = 0; i < count; ++i) {
        nb_input_event event;
        nbi_event_read(events + i * NBI_EVENT_BYTES, &event);
        memcpy(events + i * NBI_EVENT_BYTES, &event, sizeof event);
    }
    if (count != 0) save->commands = (nb_input_view){(const nb_input_event *)(const void *)events, (uint32_t)count};
    save->state = events + count * NBI_EVENT_BYTES;
    save->state_bytes -= NBI_SAVE_COUNT_BYTES + (size_t)count * NBI_EVENT_BYTES;
    return NB_OK;
}

NB_STATIC_ASSERT(sizeof(nb_input_event) == NBI_EVENT_BYTES && NBI_SAVE_COUNT_BYTES % NB_ALIGNOF(nb_input_event) == 0,
                 "events of a content are read in place");

void nbi_save_close(const nb_save_desc *desc, nbi_save *save) {
    nb_hooks_free(&desc->hooks, save->content, save->content_bytes);
    *save = (nbi_save){0};
}

// name: for the report.
static nb_result open_bytes(const unsigned char *bytes, size_t size_bytes, const nb_save_desc *desc, const char *name,
                            nbi_save *save) {
    const char *reason = NULL;
    *save = (nbi_save){0};
    nb_result result = read_head(bytes, size_bytes, size_bytes, &save->info, &reason);
    if (result == NB_OK) result = unpack(bytes, desc, save, &reason);
    if (result == NB_OK) result = take_apart(save, &reason);
    if (result == NB_OK) return NB_OK;
    nbi_save_close(desc, save);
    return nb_report_failure(&desc->hooks, NB_ITEM_RECORD_FORMAT, result, "nb_save_read", "%s is not loaded: %s", name,
                             reason);
}

nb_result nbi_save_check_layout(const nb_save_desc *desc, const char *name, const nbi_save *save,
                                const nb_states *states) {
    if (save->info.layout_hash == nb_states_layout_hash(states)) return NB_OK;
    nb_states_check(states, save->state, save->state_bytes); // says which state it is
    return nb_report_failure(&desc->hooks, NB_ITEM_SAVE_LAYOUT, NB_ERR_UNSUPPORTED, "nb_save_read",
                             "%s is not loaded: it is of other states, or of another layout of them", name);
}

// Loads a save that was read, and closes it.
static nb_result load_states(const nb_save_desc *desc, const char *name, nbi_save *save, nb_states *states,
                             nb_save_info *info) {
    nb_result result = nbi_save_check_layout(desc, name, save, states);
    if (result == NB_OK) {
        result = nb_states_load(states, save->state, save->state_bytes);
        if (result != NB_OK) nbi_save_report_refusal(desc, name, result);
    }
    if (result == NB_OK && info != NULL) *info = save->info;
    nbi_save_close(desc, save);
    return result;
}

void nbi_save_report_refusal(const nb_save_desc *desc, const char *name, nb_result result) {
    nb_report_failure(&desc->hooks, NB_ITEM_RECORD_FORMAT, result, "nb_save_read",
                      "%s is not loaded: the states refuse it", name);
}

nb_result nb_save_read_memory(const void *bytes, size_t size_bytes, nb_states *states, const nb_save_desc *given,
                              nb_save_info *info) {
    if (bytes == NULL) return NB_FAIL_NULL("bytes");
    if (states == NULL) return NB_FAIL_NULL("states");
    nb_save_desc desc = nbi_save_resolve(given);
    nbi_save save;
    nb_result result = open_bytes(bytes, size_bytes, &desc, "the save", &save);
    return result == NB_OK ? load_states(&desc, "the save", &save, states, info) : result;
}

static nb_result fail_os(const nb_hooks *hooks, const char *path, int error) {
    char text[128];
    nbi_file_error_text(error, text, sizeof text);
    return nb_report_failure(hooks, NB_ITEM_RECORD_FILE, NB_ERR_OS, "nb_save_read", "%s cannot be read: %s", path,
                             text);
}

nb_result nbi_save_open(const char *path, const nb_save_desc *desc, nbi_save *save) {
    uint64_t size = 0;
    int error = nbi_file_size(path, &size);
    if (error != 0) return fail_os(&desc->hooks, path, error);
    // A save is never much larger than its state.
    if (size > nbi_compress_bound(desc->state_bytes_max) + NBI_SAVE_HEAD_BYTES) {
        return nb_report_failure(&desc->hooks, NB_ITEM_RECORD_FORMAT, NB_ERR_RANGE, "nb_save_read",
                                 "%s is not loaded: it is larger than state_bytes_max", path);
    }
    size_t size_bytes = (size_t)size, read_bytes_count = 0;
    unsigned char *bytes = nb_hooks_alloc(&desc->hooks, size_bytes, NB_CACHE_LINE, "nb_save_read");
    if (bytes == NULL) return NB_ERR_MEMORY;
    error = nbi_file_read(path, bytes, size_bytes, &read_bytes_count);
    nb_result result =
        error != 0 ? fail_os(&desc->hooks, path, error) : open_bytes(bytes, read_bytes_count, desc, path, save);
    nb_hooks_free(&desc->hooks, bytes, size_bytes);
    return result;
}

nb_result nb_save_read(const char *path, nb_states *states, const nb_save_desc *given, nb_save_info *info) {
    if (path == NULL) return NB_FAIL_NULL("path");
    if (states == NULL) return NB_FAIL_NULL("states");
    nb_save_desc desc = nbi_save_resolve(given);
    nbi_save save;
    nb_result result = nbi_save_open(path, &desc, &save);
    return result == NB_OK ? load_states(&desc, path, &save, states, info) : result;
}

nb_result nb_save_info_read(const char *path, const nb_save_desc *given, nb_save_info *info) {
    if (path == NULL) return NB_FAIL_NULL("path");
    if (info == NULL) return NB_FAIL_NULL("info");
    nb_save_desc desc = nbi_save_resolve(given);
    unsigned char head[NBI_SAVE_HEAD_BYTES];
    uint64_t size = 0;
    size_t read_bytes_count = 0;
    int error = nbi_file_size(path, &size);
    if (error == 0) error = nbi_file_read(path, head, sizeof head, &read_bytes_count);
    if (error != 0) return fail_os(&desc.hooks, path, error);
    const char *reason = NULL;
    nb_save_info found;
    nb_result result = read_head(head, read_bytes_count, size, &found, &reason);
    if (result != NB_OK)
        return nb_report_failure(&desc.hooks, NB_ITEM_RECORD_FORMAT, result, __func__, "%s: %s", path, reason);
    *info = found;
    return NB_OK;
}
