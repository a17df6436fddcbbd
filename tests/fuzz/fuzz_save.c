// SPDX-License-Identifier: MIT
// Any bytes as a save file. The first byte says how they are prepared: as they are (0); with checksums made right (1);
// as a state that is packed and signed (2); as they are, from a file (3). It also says which allocation fails. What is
// refused has changed nothing.

#include "fuzz.h"

#include "nebula/bytes.h"
#include "nebula/save_file.h"
#include "record/compress.h"
#include "record/save_file.h"

#define STATE_BYTES_MAX 512u
// Beside the input: the state twice, and zstd's context.
#define MEMORY_CONSTANT ((uint64_t)2 * STATE_BYTES_MAX + (1u << 20))

static void sign(unsigned char *bytes, size_t size, uint64_t layout) {
    if (size < NBI_SAVE_HEAD_BYTES) return;
    nb_bytes_put_u64(bytes + 16, layout);
    nb_bytes_put_u64(bytes + 48, size - NBI_SAVE_HEAD_BYTES);
    nb_bytes_put_u64(bytes + 56, nb_hash64(bytes + NBI_SAVE_HEAD_BYTES, size - NBI_SAVE_HEAD_BYTES, 0));
    nb_bytes_put_u64(bytes + 64, nb_hash64(bytes, 64, 0));
}

static unsigned char *wrap(const uint8_t *data, size_t size, uint64_t layout, size_t *out_size) {
    size_t capacity = NBI_SAVE_HEAD_BYTES + nbi_compress_bound(size), stored = 0;
    unsigned char *bytes = calloc(1, capacity);
    if (bytes == NULL) abort();
    nbi_compress compress = {.hooks = nb_hooks_default()};
    if (nbi_compress_pack(&compress, 1, data, size, bytes + NBI_SAVE_HEAD_BYTES, capacity - NBI_SAVE_HEAD_BYTES,
                          &stored) != NB_OK)
        abort();
    nbi_compress_end(&compress);
    static const unsigned char magic[8] = {0x8E, 'N', 'B', 'S', '\r', '\n', 0x1A, '\n'};
    memcpy(bytes, magic, sizeof magic);
    // The state alone ends 8 bytes behind a multiple of 16; with commands before it, it does not.
    nb_bytes_put_u32(bytes + 8, size % 16 == 8 ? NB_SAVE_VERSION_OLDEST : NB_SAVE_VERSION);
    nb_bytes_put_u64(bytes + 40, size);
    *out_size = NBI_SAVE_HEAD_BYTES + stored;
    sign(bytes, *out_size, layout);
    return bytes;
}

static nb_result read_input(const unsigned char *bytes, size_t size, uint32_t mode, nb_states *states,
                            const nb_save_desc *desc, nb_save_info *info) {
    if (mode != 3) return nb_save_read_memory(bytes, size, states, desc, info);
    nb_save_info menu;
    const char *path = fuzz_file(bytes, size, "fuzz_save.nbs");
    nb_save_read("fuzz_no_such_file.nbs", states, desc, info);
    nb_save_info_read("fuzz_no_such_file.nbs", desc, &menu);
    nb_result result = nb_save_info_read(path, desc, &menu), read = nb_save_read(path, states, desc, info);
    if (result != NB_OK && read == NB_OK) abort();
    return read;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0) return 0;
    uint32_t mode = FUZZ_MODE(data[0]);
    fuzz_heap heap = {0}, own = {.fail_at = FUZZ_FAIL_AT(data[0])};
    ++data, --size;
    uint64_t state[4] = {1, 2, 3, 4};
    nb_states_desc states_desc = {.hooks = fuzz_hooks(&heap)};
    nb_provider_desc provider = {.name = "game", .data = state, .size_bytes = sizeof state};
    nb_states *states = NULL;
    if (nb_states_create(&states_desc, &states) != NB_OK) abort();
    if (nb_states_add(states, &provider, NULL) != NB_OK) abort();
    uint64_t before = heap.live_bytes, hash = nb_states_hash(states), layout = nb_states_layout_hash(states);
    unsigned char *bytes = NULL;
    if (mode == 2) {
        bytes = wrap(data, size, layout, &size);
    } else {
        bytes = malloc(size != 0 ? size : 1);
        if (bytes == NULL) abort();
        memcpy(bytes, data, size);
        if (mode == 1) sign(bytes, size, layout);
    }
    nb_save_desc desc = {.state_bytes_max = STATE_BYTES_MAX, .hooks = fuzz_hooks(&own)};
    nb_save_info info;
    nb_result result = read_input(bytes, size, mode, states, &desc, &info);
    if (result != NB_OK && nb_states_hash(states) != hash) abort();
    if (result == NB_OK && info.file_bytes != size) abort();
    if (own.peak_bytes > size + MEMORY_CONSTANT || own.live_count != 0 || heap.live_bytes != before) abort();
    free(bytes);
    nb_states_destroy(states);
    if (heap.live_count != 0) abort();
    return 0;
}
