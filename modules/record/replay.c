// SPDX-License-Identifier: MIT
// Reading a recording. Opening walks all blocks and keeps a list of those that are whole; a block is unpacked when one
// of its ticks is asked for. Every number of the file is compared with what is there before it is used.

#include "replay.h"

#include "file.h"
#include "nebula/bytes.h"
#include "nebula/hash.h"

#include <string.h>

nb_replay_desc nb_replay_desc_default(void) {
    return (nb_replay_desc){.file_bytes_max = NB_REPLAY_FILE_BYTES_DEFAULT,
                            .state_bytes_max = NB_REPLAY_STATE_BYTES_DEFAULT,
                            .hooks = nb_hooks_default()};
}

// --- the list of blocks ---

typedef struct scan {
    size_t at;
    uint64_t number;
    uint64_t next_tick;
    bool has_tick;
    bool is_over;
} scan;

static void end_scan(nb_replay *replay, scan *s, nb_replay_end end, const char *reason) {
    replay->info.end = end;
    replay->info.reason = reason;
    s->is_over = true;
}

// Why the block's place is wrong, or NULL.
static const char *misplaced(const scan *s, const nbi_block *block) {
    if (block->number != s->number) return "a block is missing, or there twice";
    bool is_next = !s->has_tick || block->first_tick == s->next_tick;
    return is_next ? NULL : "its ticks have a gap";
}

static void take_block(nb_replay *replay, scan *s, const nbi_block *block) {
    if (!s->has_tick) replay->info.first_tick = block->first_tick;
    s->has_tick = true;
    s->next_tick = block->first_tick + block->tick_count;
    replay->info.tick_count += block->tick_count;
    replay->info.key_count += block->kind == NBI_BLOCK_KEY;
    if (replay->entries != NULL) {
        replay->entries[replay->entry_count] = (nbi_entry){.first_tick = block->first_tick,
                                                           .tick_count = block->tick_count,
                                                           .at = s->at + NBI_BLOCK_BYTES,
                                                           .raw_bytes = block->raw_bytes,
                                                           .stored_bytes = block->stored_bytes};
    }
    ++replay->entry_count;
}

static const char *const stop_reasons[NB_RECORD_STOP_COUNT] = {
    [NB_RECORD_STOP_NONE] = "",
    [NB_RECORD_STOP_QUEUE_FULL] = "it ended early: the writer was too slow",
    [NB_RECORD_STOP_TOO_LARGE] = "it ended early: a tick was larger than a block",
    [NB_RECORD_STOP_WRITE] = "it ended early: writing failed",
    [NB_RECORD_STOP_REWOUND] = "it ended early: time was turned back, and went on otherwise",
    [NB_RECORD_STOP_JUMPED] = "it ended early: states were loaded or the tick was set",
};

static void take_last(nb_replay *replay, scan *s, const nbi_block *block) {
    bool is_stopped = block->kind == NBI_BLOCK_ERROR;
    replay->info.stop = (nb_record_stop)block->stop;
    if (s->at + NBI_BLOCK_BYTES != replay->size_bytes)
        end_scan(replay, s, NB_REPLAY_END_DAMAGED, "bytes follow behind its end");
    else if (is_stopped)
        end_scan(replay, s, NB_REPLAY_END_STOPPED, stop_reasons[block->stop]);
    else
        end_scan(replay, s, NB_REPLAY_END_WHOLE, "it is whole");
}

static void scan_block(nb_replay *replay, scan *s) {
    const unsigned char *start = replay->bytes + s->at;
    size_t left = replay->size_bytes - s->at;
    nbi_block block;
    if (left < NBI_BLOCK_BYTES) {
        end_scan(replay, s, NB_REPLAY_END_CUT, left == 0 ? "it has no end" : "it is cut inside a block");
        return;
    }
    const char *problem = nbi_block_read(start, replay->head.hash, &block);
    if (problem == NULL) problem = misplaced(s, &block);
    if (problem != NULL) {
        end_scan(replay, s, NB_REPLAY_END_DAMAGED, problem);
        return;
    }
    if (block.stored_bytes > left - NBI_BLOCK_BYTES) {
        end_scan(replay, s, NB_REPLAY_END_CUT, "it is cut inside a block");
        return;
    }
    size_t stored = (size_t)block.stored_bytes;
    // Left out while blocks are only counted: the count is then too large, not too small.
    bool is_right = replay->entries == NULL || block.stored_hash == nb_hash64(start + NBI_BLOCK_BYTES, stored, 0);
    if (!is_right) {
        end_scan(replay, s, NB_REPLAY_END_DAMAGED, "the content of a block is damaged");
        return;
    }
    bool is_last = block.kind == NBI_BLOCK_END || block.kind == NBI_BLOCK_ERROR;
    if (is_last)
        take_last(replay, s, &block);
    else
        take_block(replay, s, &block);
    ++s->number;
    s->at += NBI_BLOCK_BYTES + stored;
}

static void scan_blocks(nb_replay *replay) {
    scan s = {.at = replay->head.head_bytes};
    replay->entry_count = 0;
    replay->info.tick_count = 0;
    replay->info.key_count = 0;
    replay->info.first_tick = 0;
    replay->info.stop = NB_RECORD_STOP_NONE;
    while (!s.is_over) scan_block(replay, &s); // each is at least NBI_BLOCK_BYTES of the file
    replay->info.block_count = (uint32_t)s.number;
    replay->info.whole_bytes = s.at;
}

// --- opening ---

static nb_replay_desc resolve(const nb_replay_desc *given) {
    nb_replay_desc desc = given != NULL ? *given : (nb_replay_desc){0};
    desc.hooks = nb_hooks_resolve(&desc.hooks);
    if (desc.file_bytes_max == 0) desc.file_bytes_max = NB_REPLAY_FILE_BYTES_DEFAULT;
    if (desc.state_bytes_max == 0) desc.state_bytes_max = NB_REPLAY_STATE_BYTES_DEFAULT;
    return desc;
}

static void free_all(nb_replay *replay) {
    nb_hooks hooks = replay->hooks;
    nbi_compress_end(&replay->compress);
    nb_hooks_free(&hooks, replay->block, replay->block_capacity_bytes);
    nb_hooks_free(&hooks, replay->events, replay->event_capacity * sizeof *replay->events);
    nb_hooks_free(&hooks, replay->entries, replay->entry_capacity * sizeof *replay->entries);
    nb_hooks_free(&hooks, replay->own, replay->own_bytes);
    nb_hooks_free(&hooks, replay, sizeof *replay);
}

static void fill_info(nb_replay *replay) {
    const nbi_head *head = &replay->head;
    memcpy(replay->build_id, head->head.build_id, head->build_bytes);
    memcpy(replay->game_name, head->head.game_name, head->name_bytes);
    replay->info.head = head->head;
    replay->info.head.build_id = replay->build_id;
    replay->info.head.game_name = replay->game_name;
    replay->info.version = NB_RECORD_VERSION;
    replay->info.size_bytes = replay->size_bytes;
}

static nb_result read_all(nb_replay *replay, const char *function) {
    const char *reason = NULL;
    nb_result result = nbi_head_read(replay->bytes, replay->size_bytes, &replay->head, &reason);
    if (result != NB_OK)
        return nb_report_failure(&replay->hooks, NB_ITEM_RECORD_FORMAT, result, function,
                                 "recording %s: not opened: %s", replay->name.text, reason);
    fill_info(replay);
    scan_blocks(replay);
    // One more, so that there is a list also where it is empty.
    replay->entry_capacity = replay->entry_count + 1;
    replay->entries =
        nb_hooks_alloc(&replay->hooks, replay->entry_capacity * sizeof *replay->entries, NB_CACHE_LINE, function);
    if (replay->entries == NULL) {
        replay->entry_capacity = 0;
        return NB_ERR_MEMORY;
    }
    scan_blocks(replay);
    replay->next_tick = replay->info.first_tick;
    return NB_OK;
}

// What a replay reads: bytes that it owns (own_bytes != 0), or those of a caller.
typedef struct source {
    const char *path; // NULL = bytes in memory
    const unsigned char *bytes;
    size_t size_bytes;
    unsigned char *own;
    size_t own_bytes;
} source;

// What is owned is freed with the replay, also where this fails.
static nb_result open_bytes(const source *from, const nb_replay_desc *desc, const char *function, nb_replay **out) {
    nb_replay *replay = nb_hooks_alloc(&desc->hooks, sizeof *replay, NB_CACHE_LINE, function);
    if (replay == NULL) {
        nb_hooks_free(&desc->hooks, from->own, from->own_bytes);
        return NB_ERR_MEMORY;
    }
    memset(replay, 0, sizeof *replay);
    replay->desc = *desc;
    replay->hooks = desc->hooks;
    replay->name = nbi_recording_name_of(from->path, "in memory");
    replay->bytes = from->bytes;
    replay->size_bytes = from->size_bytes;
    replay->own = from->own;
    replay->own_bytes = from->own_bytes;
    replay->compress.hooks = desc->hooks;
    nb_result result = read_all(replay, function);
    if (result == NB_OK)
        *out = replay;
    else
        free_all(replay);
    return result;
}

nb_result nb_replay_open_memory(const void *bytes, size_t size_bytes, const nb_replay_desc *given, nb_replay **out) {
    if (bytes == NULL) return NB_FAIL_NULL("bytes");
    if (out == NULL) return NB_FAIL_NULL("out");
    nb_replay_desc desc = resolve(given);
    if (size_bytes > desc.file_bytes_max)
        return nb_report_failure(
            &desc.hooks, NB_ITEM_RECORD_FORMAT, NB_ERR_RANGE, __func__,
            "recording in memory: not opened: %zu bytes, more than nb_replay_desc.file_bytes_max of %llu; raise that",
            size_bytes, nb_llu(desc.file_bytes_max));
    return open_bytes(&(source){.bytes = bytes, .size_bytes = size_bytes}, &desc, __func__, out);
}

static nb_result fail_os(const nb_hooks *hooks, const char *path, int error) {
    char text[128];
    nbi_file_error_text(error, text, sizeof text);
    return nb_report_failure(hooks, NB_ITEM_RECORD_FILE, NB_ERR_OS, "nb_replay_open",
                             "recording \"%s\" cannot be read: %s", path, text);
}

nb_result nb_replay_open(const char *path, const nb_replay_desc *given, nb_replay **out) {
    if (path == NULL) return NB_FAIL_NULL("path");
    if (out == NULL) return NB_FAIL_NULL("out");
    nb_replay_desc desc = resolve(given);
    uint64_t size = 0;
    int error = nbi_file_size(path, &size);
    if (error != 0) return fail_os(&desc.hooks, path, error);
    if (size > desc.file_bytes_max || size > SIZE_MAX - 1)
        return nb_report_failure(
            &desc.hooks, NB_ITEM_RECORD_FORMAT, NB_ERR_RANGE, __func__,
            "recording \"%s\": not opened: %llu bytes, more than nb_replay_desc.file_bytes_max of %llu; raise that",
            path, nb_llu(size), nb_llu(desc.file_bytes_max));
    // One more, because none cannot be asked for.
    source from = {.path = path, .own_bytes = (size_t)size + 1};
    from.own = nb_hooks_alloc(&desc.hooks, from.own_bytes, NB_CACHE_LINE, __func__);
    if (from.own == NULL) return NB_ERR_MEMORY;
    error = nbi_file_read(path, from.own, (size_t)size, &from.size_bytes);
    if (error != 0) {
        nb_hooks_free(&desc.hooks, from.own, from.own_bytes);
        return fail_os(&desc.hooks, path, error);
    }
    from.bytes = from.own;
    return open_bytes(&from, &desc, __func__, out);
}

nb_result nb_replay_close(nb_replay *replay) {
    if (replay == NULL) return NB_OK;
    if (nbi_replay_detach(replay) != NB_OK) return NB_BUSY;
    free_all(replay);
    return NB_OK;
}

nb_replay_info nb_replay_info_get(const nb_replay *replay) {
    if (replay != NULL) return replay->info;
    NB_FAIL_NULL("replay");
    return (nb_replay_info){.head = {.build_id = "", .game_name = ""}, .reason = ""};
}

// --- ticks ---

// The last block whose first tick is not behind this one; NULL where there is none. Keys stand before the ticks of the
// same index.
static const nbi_entry *find_entry(const nb_replay *replay, uint64_t tick) {
    uint32_t low = 0, high = replay->entry_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (replay->entries[middle].first_tick <= tick)
            low = middle + 1;
        else
            high = middle;
    }
    return low != 0 ? &replay->entries[low - 1] : NULL;
}

// An engine that is fed asks in each tick.
static nb_result forged(nb_replay *replay, const char *function, uint64_t tick) {
    return nb_report_throttled(&replay->hooks, &replay->throttle, 0, false, NB_ITEM_RECORD_FORMAT, NB_ERR_RANGE,
                               function,
                               "recording %s: the block of tick %llu has a right checksum and a wrong content: it was "
                               "forged; do not use the file",
                               replay->name.text, nb_llu(tick));
}

// Whether the block is exactly its ticks, and how many events one of them has at most.
static bool walk_ticks(const nb_replay *replay, const nbi_entry *entry, size_t *event_count) {
    size_t at = 0;
    *event_count = 1; // one at least: memory to point to
    for (uint32_t i = 0; i < entry->tick_count; ++i) {
        nbi_tick_parts parts;
        if (!nbi_tick_read(replay->block + at, replay->block_bytes - at, &parts)) return false;
        at += parts.size_bytes;
        size_t count = (size_t)parts.input_count + parts.command_count;
        if (count > *event_count) *event_count = count;
    }
    return at == replay->block_bytes;
}

static bool reserve(const nb_hooks *hooks, void **memory, size_t *capacity, size_t wanted, size_t unit_bytes,
                    const char *function) {
    if (wanted <= *capacity) return true;
    void *larger = nb_hooks_alloc(hooks, wanted * unit_bytes, NB_CACHE_LINE, function);
    if (larger == NULL) return false;
    nb_hooks_free(hooks, *memory, *capacity * unit_bytes);
    *memory = larger;
    *capacity = wanted;
    return true;
}

static nb_result load_block(nb_replay *replay, uint64_t tick, const char *function) {
    const nbi_entry *entry = find_entry(replay, tick);
    size_t raw_bytes = (size_t)entry->raw_bytes;
    replay->block_left = 0;
    if (!nbi_compress_is(replay->bytes + entry->at, (size_t)entry->stored_bytes, entry->raw_bytes))
        return forged(replay, function, tick);
    void *memory = replay->block;
    if (!reserve(&replay->hooks, &memory, &replay->block_capacity_bytes, raw_bytes, 1, function)) return NB_ERR_MEMORY;
    replay->block = memory;
    nb_result result = nbi_compress_unpack(&replay->compress, replay->bytes + entry->at, (size_t)entry->stored_bytes,
                                           replay->block, raw_bytes);
    if (result == NB_ERR_MEMORY) return result;
    replay->block_bytes = raw_bytes;
    size_t event_count = 0;
    if (result != NB_OK || !walk_ticks(replay, entry, &event_count)) return forged(replay, function, tick);
    memory = replay->events;
    bool has_room =
        reserve(&replay->hooks, &memory, &replay->event_capacity, event_count, sizeof *replay->events, function);
    if (!has_room) return NB_ERR_MEMORY;
    replay->events = memory;
    replay->block_at = 0;
    replay->block_next = entry->first_tick;
    replay->block_left = entry->tick_count;
    return NB_OK;
}

// The next tick's parts; what is behind it is the next. The block was walked: they are right.
static void step(nb_replay *replay, nbi_tick_parts *parts) {
    nbi_tick_read(replay->block + replay->block_at, replay->block_bytes - replay->block_at, parts);
    replay->block_at += parts->size_bytes;
    ++replay->block_next;
    --replay->block_left;
}

// Brings block_at to next_tick.
static nb_result reach(nb_replay *replay, const char *function) {
    uint64_t tick = replay->next_tick;
    bool is_here =
        replay->block_left != 0 && tick >= replay->block_next && tick - replay->block_next < replay->block_left;
    nb_result result = is_here ? NB_OK : load_block(replay, tick, function);
    nbi_tick_parts parts;
    while (result == NB_OK && replay->block_next < tick) step(replay, &parts);
    return result;
}

static uint64_t tick_end(const nb_replay *replay) { return replay->info.first_tick + replay->info.tick_count; }

static nb_input_view read_events(nb_input_event *events, const unsigned char *bytes, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) nbi_event_read(bytes + (size_t)i * NBI_EVENT_BYTES, &events[i]);
    return (nb_input_view){count != 0 ? events : NULL, count};
}

nb_result nb_replay_next(nb_replay *replay, nb_record_tick *tick) {
    if (replay == NULL) return NB_FAIL_NULL("replay");
    if (tick == NULL) return NBI_REPLAY_FAIL(replay, NB_ERR_MISUSE, "%s is NULL", "tick");
    if (replay->next_tick == tick_end(replay)) return NB_EMPTY;
    nb_result result = reach(replay, __func__);
    if (result != NB_OK) return result;
    nbi_tick_parts parts;
    step(replay, &parts);
    for (uint32_t i = 0; i < parts.hash_count; ++i) {
        const unsigned char *at = parts.hashes + (size_t)i * NBI_HASH_BYTES;
        replay->hashes[i] = (nb_record_hash){nb_bytes_get_u64(at), nb_bytes_get_u64(at + 8)};
    }
    *tick = (nb_record_tick){.index = replay->next_tick++,
                             .input = read_events(replay->events, parts.events, parts.input_count),
                             .commands =
                                 read_events(replay->events + parts.input_count, parts.commands, parts.command_count),
                             .hash = parts.hash,
                             .hashes = parts.hash_count != 0 ? replay->hashes : NULL,
                             .hash_count = parts.hash_count};
    return NB_OK;
}

nb_result nb_replay_seek(nb_replay *replay, uint64_t tick) {
    if (replay == NULL) return NB_FAIL_NULL("replay");
    if (tick < replay->info.first_tick || tick > tick_end(replay)) {
        return NBI_REPLAY_FAIL_TICK(replay, tick);
    }
    uint64_t before = replay->next_tick;
    replay->next_tick = tick;
    nb_result result = tick != tick_end(replay) ? reach(replay, __func__) : NB_OK;
    if (result != NB_OK) replay->next_tick = before;
    return result;
}

// --- key states ---

static const nbi_entry *find_key(const nb_replay *replay, uint64_t tick) {
    const nbi_entry *entry = find_entry(replay, tick);
    if (entry == NULL) return NULL;
    for (;; --entry) {
        if (entry->tick_count == 0) return entry;
        if (entry == replay->entries) return NULL;
    }
}

nb_result nb_replay_key_find(const nb_replay *replay, uint64_t tick, uint64_t *key_tick, size_t *size_bytes) {
    if (replay == NULL) return NB_FAIL_NULL("replay");
    const nbi_entry *entry = find_key(replay, tick);
    if (entry == NULL) return NB_EMPTY;
    if (key_tick != NULL) *key_tick = entry->first_tick;
    if (size_bytes != NULL) *size_bytes = (size_t)entry->raw_bytes;
    return NB_OK;
}

static nb_result unpack_key(nb_replay *replay, const nbi_entry *entry, void *bytes, const char *function) {
    nb_result result = nbi_compress_unpack(&replay->compress, replay->bytes + entry->at, (size_t)entry->stored_bytes,
                                           bytes, (size_t)entry->raw_bytes);
    return result == NB_ERR_RANGE ? forged(replay, function, entry->first_tick) : result;
}

nb_result nb_replay_key_read(nb_replay *replay, uint64_t key_tick, void *bytes, size_t capacity_bytes) {
    if (replay == NULL) return NB_FAIL_NULL("replay");
    if (bytes == NULL) return NBI_REPLAY_FAIL(replay, NB_ERR_MISUSE, "%s is NULL", "bytes");
    const nbi_entry *entry = find_key(replay, key_tick);
    if (entry == NULL || entry->first_tick != key_tick) return NB_EMPTY;
    if (entry->raw_bytes > capacity_bytes) return NB_FULL;
    return unpack_key(replay, entry, bytes, __func__);
}

// Unpacks a key state into memory of its own, which is of the replay's hooks.
static nb_result take_key(nb_replay *replay, const nbi_entry *entry, const char *function, unsigned char **bytes) {
    if (entry->raw_bytes > replay->desc.state_bytes_max) {
        return nb_report_throttled(
            &replay->hooks, &replay->throttle, 0, false, NB_ITEM_RECORD_FORMAT, NB_ERR_RANGE, function,
            "recording %s: the key state before tick %llu has %llu bytes, more than "
            "nb_replay_desc.state_bytes_max of %zu; raise that",
            replay->name.text, nb_llu(entry->first_tick), nb_llu(entry->raw_bytes), replay->desc.state_bytes_max);
    }
    size_t size_bytes = (size_t)entry->raw_bytes;
    if (!nbi_compress_is(replay->bytes + entry->at, (size_t)entry->stored_bytes, entry->raw_bytes))
        return forged(replay, function, entry->first_tick);
    unsigned char *memory = nb_hooks_alloc(&replay->hooks, size_bytes, NB_CACHE_LINE, function);
    if (memory == NULL) return NB_ERR_MEMORY;
    nb_result result = unpack_key(replay, entry, memory, function);
    if (result == NB_OK)
        *bytes = memory;
    else
        nb_hooks_free(&replay->hooks, memory, size_bytes);
    return result;
}

nb_result nbi_replay_key_take(nb_replay *replay, uint64_t tick, const char *function, nbi_key *key) {
    const nbi_entry *entry = find_key(replay, tick);
    if (entry == NULL) return NB_EMPTY;
    *key = (nbi_key){.tick = entry->first_tick, .size_bytes = (size_t)entry->raw_bytes};
    return take_key(replay, entry, function, &key->bytes);
}

nb_result nb_replay_load(nb_replay *replay, uint64_t tick, nb_states *states, uint64_t *key_tick) {
    if (replay == NULL) return NB_FAIL_NULL("replay");
    if (states == NULL) return NBI_REPLAY_FAIL(replay, NB_ERR_MISUSE, "%s is NULL", "states");
    nbi_key key;
    nb_result result = nbi_replay_key_take(replay, tick, __func__, &key);
    if (result != NB_OK) return result;
    result = nb_states_load(states, key.bytes, key.size_bytes);
    nb_hooks_free(&replay->hooks, key.bytes, key.size_bytes);
    if (result != NB_OK) return result;
    replay->next_tick = key.tick;
    if (key_tick != NULL) *key_tick = key.tick;
    return NB_OK;
}

nb_result nbi_replay_key_next(nb_replay *replay, uint64_t tick, nbi_key *key) {
    for (uint32_t i = 0; i < replay->entry_count; ++i) {
        const nbi_entry *entry = &replay->entries[i];
        if (entry->tick_count != 0 || entry->first_tick < tick) continue;
        *key = (nbi_key){.tick = entry->first_tick, .size_bytes = (size_t)entry->raw_bytes};
        return take_key(replay, entry, "nb_replay", &key->bytes);
    }
    return NB_EMPTY;
}
