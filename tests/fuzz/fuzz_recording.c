// SPDX-License-Identifier: MIT
// Any bytes as a recording. The first byte says how they are prepared: as they are (0); with checksums made right, so
// that what lies behind them is reached (1); as the content of a block that is packed and signed (2); as they are, from
// a file (3). It also says which allocation fails.

#include "fuzz.h"

#include "nebula/bytes.h"
#include "nebula/replay.h"
#include "record/compress.h"
#include "record/recording_format.h"

// Beside the input: one block and its events, the replay, zstd's context.
#define MEMORY_CONSTANT (((uint64_t)NB_RECORD_BLOCK_BYTES_MAX) * 2)

static void sign(unsigned char *bytes, size_t size) {
    if (size < NBI_HEAD_BYTES) return;
    size_t head = nb_bytes_get_u32(bytes + 12);
    if (head < NBI_HEAD_BYTES + 8 || head > size) return;
    uint64_t hash = nb_hash64(bytes, head - 8, 0);
    nb_bytes_put_u64(bytes + head - 8, hash);
    for (size_t at = head; size - at >= NBI_BLOCK_BYTES;) {
        uint64_t stored = nb_bytes_get_u64(bytes + at + 32), left = size - at - NBI_BLOCK_BYTES;
        if (stored <= left)
            nb_bytes_put_u64(bytes + at + 40, nb_hash64(bytes + at + NBI_BLOCK_BYTES, (size_t)stored, 0));
        nb_bytes_put_u64(bytes + at + 56, nb_hash64(bytes + at, 56, hash));
        if (stored > left) return;
        at += NBI_BLOCK_BYTES + (size_t)stored;
    }
}

// A recording of one block with this content, after 8 bytes: tick count, kind, size said beside the real one.
static unsigned char *wrap(const uint8_t *data, size_t size, size_t *out_size) {
    nb_record_head head = {.tick_rate = {60, 1}};
    size_t head_bytes = nbi_head_size(&head), capacity = head_bytes + NBI_BLOCK_BYTES + nbi_compress_bound(size);
    unsigned char *bytes = malloc(capacity);
    if (bytes == NULL) abort();
    uint64_t hash = nbi_head_write(&head, bytes);
    uint32_t tick_count = size >= 4 ? nb_bytes_get_u32(data) % 64 : 1;
    uint32_t kind = size >= 5 ? data[4] % NBI_BLOCK_KIND_COUNT : NBI_BLOCK_TICKS;
    uint64_t said = size >= 6 ? data[5] % 3 : 0;
    if (size >= 8) data += 8, size -= 8;
    nbi_compress compress = {.hooks = nb_hooks_default()};
    size_t stored = 0;
    unsigned char *at = bytes + head_bytes;
    if (nbi_compress_pack(&compress, 1, data, size, at + NBI_BLOCK_BYTES, capacity - head_bytes - NBI_BLOCK_BYTES,
                          &stored) != NB_OK)
        abort();
    nbi_compress_end(&compress);
    nbi_block block = {.kind = kind,
                       .tick_count = kind == NBI_BLOCK_TICKS ? tick_count : 0,
                       .raw_bytes = size + said,
                       .stored_bytes = stored,
                       .stored_hash = nb_hash64(at + NBI_BLOCK_BYTES, stored, 0)};
    nbi_block_write(&block, hash, at);
    *out_size = head_bytes + NBI_BLOCK_BYTES + stored;
    return bytes;
}

static volatile uint64_t sum; // keeps the reads alive

static void read_view(nb_input_view view) {
    for (uint32_t i = 0; i < view.count; ++i) sum += view.events[i].timestamp_ns + view.events[i].payload.bytes[15];
}

static void read_keys(nb_replay *replay, nb_states *states) {
    uint64_t tick = UINT64_MAX, key_tick = 0;
    size_t size_bytes = 0;
    for (int i = 0; i < 8 && nb_replay_key_find(replay, tick, &key_tick, &size_bytes) == NB_OK; ++i) {
        unsigned char bytes[256];
        nb_result result = nb_replay_key_read(replay, key_tick, bytes, sizeof bytes);
        if (result == NB_OK) sum += bytes[size_bytes - 1];
        nb_replay_load(replay, key_tick, states, NULL);
        if (key_tick == 0) return;
        tick = key_tick - 1;
    }
}

static void read_all(nb_replay *replay) {
    nb_replay_info info = nb_replay_info_get(replay);
    nb_record_tick tick;
    uint64_t count = 0;
    nb_result result;
    if (info.reason == NULL || info.end == NB_REPLAY_END_NONE) abort();
    while ((result = nb_replay_next(replay, &tick)) == NB_OK) {
        if (tick.index != info.first_tick + count++) abort();
        read_view(tick.input), read_view(tick.commands);
        for (uint32_t i = 0; i < tick.hash_count; ++i) sum += tick.hashes[i].hash;
    }
    if (result < 0 && result != NB_ERR_RANGE && result != NB_ERR_MEMORY) abort();
    if (result == NB_EMPTY && count != info.tick_count) abort();
    for (uint64_t i = 0; i < 4 && i <= info.tick_count; ++i) {
        uint64_t wanted = info.first_tick + info.tick_count - i;
        if (nb_replay_seek(replay, wanted) != NB_OK) continue;
        if (i != 0 && (nb_replay_next(replay, &tick) != NB_OK || tick.index != wanted)) abort();
        if (nb_replay_seek(replay, wanted + 1 + info.tick_count) == NB_OK) abort();
    }
}

static nb_result open_input(const unsigned char *bytes, size_t size, uint32_t mode, const nb_replay_desc *desc,
                            nb_replay **replay) {
    if (mode != 3) return nb_replay_open_memory(bytes, size, desc, replay);
    nb_replay_open("fuzz_no_such_file.nbr", desc, replay);
    return nb_replay_open(fuzz_file(bytes, size, "fuzz_recording.nbr"), desc, replay);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0) return 0;
    uint32_t mode = FUZZ_MODE(data[0]);
    fuzz_heap heap = {.fail_at = FUZZ_FAIL_AT(data[0])}, other = {0};
    ++data, --size;
    unsigned char *bytes = NULL;
    if (mode == 2) {
        bytes = wrap(data, size, &size);
    } else {
        bytes = malloc(size != 0 ? size : 1);
        if (bytes == NULL) abort();
        memcpy(bytes, data, size);
        if (mode == 1) sign(bytes, size);
    }
    nb_replay_desc desc = {.file_bytes_max = 1u << 20, .state_bytes_max = 128, .hooks = fuzz_hooks(&heap)};
    nb_states_desc states_desc = {.hooks = fuzz_hooks(&other)};
    nb_states *states = NULL;
    nb_replay *replay = NULL;
    if (nb_states_create(&states_desc, &states) != NB_OK) abort();
    nb_result result = open_input(bytes, size, mode, &desc, &replay);
    if ((result == NB_OK) != (replay != NULL)) abort();
    if (replay != NULL) {
        read_keys(replay, states);
        read_all(replay);
    }
    nb_replay_close(replay);
    nb_states_destroy(states);
    free(bytes);
    if (heap.live_count != 0 || other.live_count != 0 || heap.peak_bytes > size + MEMORY_CONSTANT) abort();
    return 0;
}
