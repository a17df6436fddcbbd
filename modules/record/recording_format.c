// SPDX-License-Identifier: MIT
// Heads, blocks and ticks as bytes.

#include "recording_format.h"

#include "nebula/bytes.h"
#include "nebula/hash.h"
#include "nebula/state.h"

#include <stdio.h>
#include <string.h>

// Not text, and broken by a transfer that changes line ends.
static const unsigned char head_magic[8] = {0x8E, 'N', 'B', 'R', '\r', '\n', 0x1A, '\n'};
#define BLOCK_MAGIC 0x4B4C424Eu // "NBLK"

// --- the head ---

static size_t text_size(const char *text) { return text != NULL ? strlen(text) : 0; }

size_t nbi_head_size(const nb_record_head *head) {
    return NBI_HEAD_BYTES + text_size(head->build_id) + text_size(head->game_name) + head->config_bytes + 8;
}

uint64_t nbi_head_write(const nb_record_head *head, unsigned char *bytes) {
    size_t build_bytes = text_size(head->build_id), name_bytes = text_size(head->game_name);
    size_t size_bytes = nbi_head_size(head);
    memcpy(bytes, head_magic, sizeof head_magic);
    nb_bytes_put_u32(bytes + 8, NB_RECORD_VERSION), nb_bytes_put_u32(bytes + 12, (uint32_t)size_bytes);
    nb_bytes_put_u64(bytes + 16, head->layout_hash), nb_bytes_put_u64(bytes + 24, head->seed);
    nb_bytes_put_u64(bytes + 32, head->tick_rate.num), nb_bytes_put_u64(bytes + 40, head->tick_rate.den);
    nb_bytes_put_u32(bytes + 48, (uint32_t)build_bytes), nb_bytes_put_u32(bytes + 52, (uint32_t)name_bytes);
    nb_bytes_put_u32(bytes + 56, (uint32_t)head->config_bytes), nb_bytes_put_u32(bytes + 60, NBI_EVENT_BYTES);
    unsigned char *at = bytes + NBI_HEAD_BYTES;
    if (build_bytes != 0) memcpy(at, head->build_id, build_bytes);
    at += build_bytes;
    if (name_bytes != 0) memcpy(at, head->game_name, name_bytes);
    at += name_bytes;
    if (head->config_bytes != 0) memcpy(at, head->config, head->config_bytes);
    uint64_t hash = nb_hash64(bytes, size_bytes - 8, 0);
    nb_bytes_put_u64(bytes + size_bytes - 8, hash);
    return hash;
}

static nb_result wrong(nb_result result, const char **reason, const char *text) {
    *reason = text;
    return result;
}

nb_result nbi_head_read(const unsigned char *bytes, size_t size_bytes, nbi_head *head, const char **reason) {
    if (size_bytes < sizeof head_magic || memcmp(bytes, head_magic, sizeof head_magic) != 0)
        return wrong(NB_ERR_UNSUPPORTED, reason, "this is no recording");
    if (size_bytes < NBI_HEAD_BYTES) return wrong(NB_ERR_RANGE, reason, "it is cut short in its head");
    // Before anything else: another version may have another head.
    if (nb_bytes_get_u32(bytes + 8) != NB_RECORD_VERSION)
        return wrong(NB_ERR_UNSUPPORTED, reason, "it has another version of the format");
    uint32_t head_bytes = nb_bytes_get_u32(bytes + 12);
    uint32_t build_bytes = nb_bytes_get_u32(bytes + 48), name_bytes = nb_bytes_get_u32(bytes + 52);
    uint32_t config_bytes = nb_bytes_get_u32(bytes + 56);
    bool is_size_right = build_bytes <= NB_RECORD_TEXT_SIZE_MAX && name_bytes <= NB_RECORD_TEXT_SIZE_MAX &&
                         config_bytes <= NB_RECORD_CONFIG_BYTES_MAX &&
                         head_bytes == NBI_HEAD_BYTES + build_bytes + name_bytes + config_bytes + 8;
    if (!is_size_right) return wrong(NB_ERR_RANGE, reason, "the sizes in its head are wrong");
    if (head_bytes > size_bytes) return wrong(NB_ERR_RANGE, reason, "it is cut short in its head");
    uint64_t hash = nb_hash64(bytes, head_bytes - 8, 0);
    if (hash != nb_bytes_get_u64(bytes + head_bytes - 8)) return wrong(NB_ERR_RANGE, reason, "its head is damaged");
    uint64_t num = nb_bytes_get_u64(bytes + 32), den = nb_bytes_get_u64(bytes + 40);
    bool is_rate = num != 0 && den != 0 && num <= UINT32_MAX && den <= UINT32_MAX;
    if (!is_rate || nb_bytes_get_u32(bytes + 60) != NBI_EVENT_BYTES)
        return wrong(NB_ERR_RANGE, reason, "its head has no tick rate, or another size of events");
    const unsigned char *text = bytes + NBI_HEAD_BYTES;
    *head = (nbi_head){.head_bytes = head_bytes,
                       .hash = hash,
                       .build_bytes = build_bytes,
                       .name_bytes = name_bytes,
                       .head = {.build_id = (const char *)text,
                                .game_name = (const char *)text + build_bytes,
                                .tick_rate = {.num = (uint32_t)num, .den = (uint32_t)den},
                                .seed = nb_bytes_get_u64(bytes + 24),
                                .layout_hash = nb_bytes_get_u64(bytes + 16),
                                .config = config_bytes != 0 ? text + build_bytes + name_bytes : NULL,
                                .config_bytes = config_bytes}};
    return NB_OK;
}

// --- blocks ---

void nbi_block_write(const nbi_block *block, uint64_t head_hash, unsigned char *bytes) {
    nb_bytes_put_u32(bytes, BLOCK_MAGIC), nb_bytes_put_u32(bytes + 4, block->kind);
    nb_bytes_put_u64(bytes + 8, block->first_tick), nb_bytes_put_u32(bytes + 16, block->tick_count);
    nb_bytes_put_u32(bytes + 20, block->stop), nb_bytes_put_u64(bytes + 24, block->raw_bytes);
    nb_bytes_put_u64(bytes + 32, block->stored_bytes), nb_bytes_put_u64(bytes + 40, block->stored_hash);
    nb_bytes_put_u64(bytes + 48, block->number);
    nb_bytes_put_u64(bytes + 56, nb_hash64(bytes, 56, head_hash));
}

// Whether the sizes fit the kind.
static bool is_sized(const nbi_block *block) {
    switch (block->kind) {
    case NBI_BLOCK_TICKS:
        return block->tick_count != 0 && block->tick_count <= NB_RECORD_BLOCK_TICKS_MAX && block->stop == 0 &&
               block->raw_bytes >= (uint64_t)block->tick_count * NBI_TICK_BYTES &&
               block->raw_bytes <= NB_RECORD_BLOCK_BYTES_MAX && block->stored_bytes != 0;
    case NBI_BLOCK_KEY:
        return block->tick_count == 0 && block->stop == 0 && block->raw_bytes != 0 &&
               block->raw_bytes <= NB_RECORD_STATE_BYTES_MAX && block->stored_bytes != 0;
    case NBI_BLOCK_END:
        return block->tick_count == 0 && block->stop == 0 && block->raw_bytes == 0 && block->stored_bytes == 0;
    case NBI_BLOCK_ERROR:
        return block->tick_count == 0 && block->stop != 0 && block->stop < NB_RECORD_STOP_COUNT &&
               block->raw_bytes == 0 && block->stored_bytes == 0;
    default: return false;
    }
}

const char *nbi_block_read(const unsigned char *bytes, uint64_t head_hash, nbi_block *block) {
    if (nb_bytes_get_u32(bytes) != BLOCK_MAGIC) return "no block is where one should be";
    if (nb_bytes_get_u64(bytes + 56) != nb_hash64(bytes, 56, head_hash)) return "the head of a block is damaged";
    *block = (nbi_block){.kind = nb_bytes_get_u32(bytes + 4),
                         .first_tick = nb_bytes_get_u64(bytes + 8),
                         .tick_count = nb_bytes_get_u32(bytes + 16),
                         .stop = nb_bytes_get_u32(bytes + 20),
                         .raw_bytes = nb_bytes_get_u64(bytes + 24),
                         .stored_bytes = nb_bytes_get_u64(bytes + 32),
                         .stored_hash = nb_bytes_get_u64(bytes + 40),
                         .number = nb_bytes_get_u64(bytes + 48)};
    if (!is_sized(block)) return "a block has an unknown kind or impossible sizes";
    bool has_end = block->first_tick <= NB_TICK_COUNT_MAX && NB_TICK_COUNT_MAX - block->first_tick >= block->tick_count;
    return has_end ? NULL : "a block's ticks are beyond NB_TICK_COUNT_MAX";
}

// --- ticks ---

size_t nbi_tick_size(const nb_record_tick *tick) {
    size_t event_count = (size_t)tick->input.count + tick->commands.count;
    return NBI_TICK_BYTES + event_count * NBI_EVENT_BYTES + (size_t)tick->hash_count * NBI_HASH_BYTES;
}

unsigned char *nbi_events_write(nb_input_view view, unsigned char *at) {
    for (uint32_t i = 0; i < view.count; ++i, at += NBI_EVENT_BYTES) {
        const nb_input_event *event = &view.events[i];
        nb_bytes_put_u64(at, event->timestamp_ns), nb_bytes_put_u16(at + 8, event->kind);
        nb_bytes_put_u16(at + 10, event->device);
        nb_bytes_put_u32(at + 12, event->code);
        memcpy(at + 16, event->payload.bytes, sizeof event->payload.bytes);
    }
    return at;
}

void nbi_event_read(const unsigned char *bytes, nb_input_event *event) {
    event->timestamp_ns = nb_bytes_get_u64(bytes);
    event->kind = nb_bytes_get_u16(bytes + 8), event->device = nb_bytes_get_u16(bytes + 10);
    event->code = nb_bytes_get_u32(bytes + 12);
    memcpy(event->payload.bytes, bytes + 16, sizeof event->payload.bytes);
}

void nbi_tick_write(const nb_record_tick *tick, unsigned char *bytes) {
    nb_bytes_put_u32(bytes, tick->input.count), nb_bytes_put_u32(bytes + 4, tick->commands.count);
    nb_bytes_put_u64(bytes + 8, tick->hash);
    nb_bytes_put_u32(bytes + 16, tick->hash_count), nb_bytes_put_u32(bytes + 20, 0);
    unsigned char *at = nbi_events_write(tick->input, bytes + NBI_TICK_BYTES);
    at = nbi_events_write(tick->commands, at);
    for (uint32_t i = 0; i < tick->hash_count; ++i, at += NBI_HASH_BYTES) {
        nb_bytes_put_u64(at, tick->hashes[i].name_hash), nb_bytes_put_u64(at + 8, tick->hashes[i].hash);
    }
}

size_t nbi_tick_written_size(const unsigned char *bytes) {
    size_t event_count = (size_t)nb_bytes_get_u32(bytes) + nb_bytes_get_u32(bytes + 4);
    return NBI_TICK_BYTES + event_count * NBI_EVENT_BYTES + (size_t)nb_bytes_get_u32(bytes + 16) * NBI_HASH_BYTES;
}

uint64_t nbi_tick_written_hash(const unsigned char *bytes) { return nb_bytes_get_u64(bytes + 8); }

bool nbi_tick_read(const unsigned char *bytes, size_t size_bytes, nbi_tick_parts *parts) {
    if (size_bytes < NBI_TICK_BYTES) return false;
    uint32_t input_count = nb_bytes_get_u32(bytes), command_count = nb_bytes_get_u32(bytes + 4);
    uint32_t hash_count = nb_bytes_get_u32(bytes + 16);
    // Limits first: the sums below cannot wrap then.
    if (input_count > NB_INPUT_COUNT_LIMIT || command_count > NB_COMMAND_COUNT_MAX) return false;
    if (hash_count > NB_RECORD_HASH_COUNT_MAX || nb_bytes_get_u32(bytes + 20) != 0) return false;
    size_t events = (size_t)input_count * NBI_EVENT_BYTES, commands = (size_t)command_count * NBI_EVENT_BYTES;
    size_t whole = NBI_TICK_BYTES + events + commands + (size_t)hash_count * NBI_HASH_BYTES;
    if (whole > size_bytes) return false;
    *parts = (nbi_tick_parts){.input_count = input_count,
                              .command_count = command_count,
                              .hash_count = hash_count,
                              .hash = nb_bytes_get_u64(bytes + 8),
                              .events = bytes + NBI_TICK_BYTES,
                              .commands = bytes + NBI_TICK_BYTES + events,
                              .hashes = bytes + NBI_TICK_BYTES + events + commands,
                              .size_bytes = whole};
    return true;
}

nbi_recording_name nbi_recording_name_of(const char *path, const char *otherwise) {
    nbi_recording_name name;
    size_t size = path != NULL ? strlen(path) : 0, skipped = size > NBI_NAME_SIZE_MAX ? size - NBI_NAME_SIZE_MAX : 0;
    if (path == NULL)
        snprintf(name.text, sizeof name.text, "%s", otherwise);
    else
        snprintf(name.text, sizeof name.text, "\"%s%s\"", skipped != 0 ? "..." : "", path + skipped);
    return name;
}
