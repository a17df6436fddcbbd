// SPDX-License-Identifier: MIT
// XXH3 in 64 and 128 bits, written from the public description of the algorithm. It has four ways of hashing, by size:
// up to 16 bytes, up to 128, up to 240, and longer input in 1024-byte blocks over eight lanes.

#include "nebula/hash.h"

#include "base.h"
#include "hash_lanes.h"

// Constants of the algorithm: any other value gives another hash.
#define PRIME32_1 0x9E3779B1u
#define PRIME32_2 0x85EBCA77u
#define PRIME32_3 0xC2B2AE3Du
#define PRIME64_1 0x9E3779B185EBCA87u
#define PRIME64_2 0xC2B2AE3D27D4EB4Fu
#define PRIME64_3 0x165667B19E3779F9u
#define PRIME64_4 0x85EBCA77C2B2AE63u
#define PRIME64_5 0x27D4EB2F165667C5u
#define PRIME_MIX_1 0x165667919E3779F9u
#define PRIME_MIX_2 0x9FB21C651E98DF25u

// A block is as many stripes as the secret, moving by 8 bytes, has room for.
#define BLOCK_STRIPES ((NB_HASH_SECRET_SIZE - NBI_STRIPE_SIZE) / 8)
#define BLOCK_SIZE (BLOCK_STRIPES * NBI_STRIPE_SIZE)
#define SHORT_SIZE_MAX 240

// Where in the secret the last steps read.
#define SECRET_SCRAMBLE (NB_HASH_SECRET_SIZE - 64)
#define SECRET_LAST_STRIPE (NB_HASH_SECRET_SIZE - 71)
#define SECRET_MERGE_LOW 11
#define SECRET_MERGE_HIGH (NB_HASH_SECRET_SIZE - 75)

// "hash" in ASCII: arbitrary, but unlikely in memory that was never initialised.
#define STATE_MARK 0x68617368u

NB_STATIC_ASSERT(BLOCK_SIZE == 1024, "the block size follows from the secret's");
NB_STATIC_ASSERT(NB_HASH_BUFFER_SIZE % NBI_STRIPE_SIZE == 0, "the buffer is mixed in whole stripes");
NB_STATIC_ASSERT(NB_HASH_BUFFER_SIZE >= SHORT_SIZE_MAX, "a short input must be whole in the buffer");

static const uint8_t default_secret[NB_HASH_SECRET_SIZE] = {
    0xb8, 0xfe, 0x6c, 0x39, 0x23, 0xa4, 0x4b, 0xbe, 0x7c, 0x01, 0x81, 0x2c, 0xf7, 0x21, 0xad, 0x1c, 0xde, 0xd4,
    0x6d, 0xe9, 0x83, 0x90, 0x97, 0xdb, 0x72, 0x40, 0xa4, 0xa4, 0xb7, 0xb3, 0x67, 0x1f, 0xcb, 0x79, 0xe6, 0x4e,
    0xcc, 0xc0, 0xe5, 0x78, 0x82, 0x5a, 0xd0, 0x7d, 0xcc, 0xff, 0x72, 0x21, 0xb8, 0x08, 0x46, 0x74, 0xf7, 0x43,
    0x24, 0x8e, 0xe0, 0x35, 0x90, 0xe6, 0x81, 0x3a, 0x26, 0x4c, 0x3c, 0x28, 0x52, 0xbb, 0x91, 0xc3, 0x00, 0xcb,
    0x88, 0xd0, 0x65, 0x8b, 0x1b, 0x53, 0x2e, 0xa3, 0x71, 0x64, 0x48, 0x97, 0xa2, 0x0d, 0xf9, 0x4e, 0x38, 0x19,
    0xef, 0x46, 0xa9, 0xde, 0xac, 0xd8, 0xa8, 0xfa, 0x76, 0x3f, 0xe3, 0x9c, 0x34, 0x3f, 0xf9, 0xdc, 0xbb, 0xc7,
    0xc7, 0x0b, 0x4f, 0x1d, 0x8a, 0x51, 0xe0, 0x4b, 0xcd, 0xb4, 0x59, 0x31, 0xc8, 0x9f, 0x7e, 0xc9, 0xd9, 0x78,
    0x73, 0x64, 0xea, 0xc5, 0xac, 0x83, 0x34, 0xd3, 0xeb, 0xc3, 0xc5, 0x81, 0xa0, 0xff, 0xfa, 0x13, 0x63, 0xeb,
    0x17, 0x0d, 0xdd, 0x51, 0xb7, 0xf0, 0xda, 0x49, 0xd3, 0x16, 0x55, 0x26, 0x29, 0xd4, 0x68, 0x9e, 0x2b, 0x16,
    0xbe, 0x58, 0x7d, 0x47, 0xa1, 0xfc, 0x8f, 0xf8, 0xb8, 0xd1, 0x7a, 0xd0, 0x31, 0xce, 0x45, 0xcb, 0x3a, 0x8f,
    0x95, 0x16, 0x04, 0x28, 0xaf, 0xd7, 0xfb, 0xca, 0xbb, 0x4b, 0x40, 0x7e,
};

static uint32_t read_le32(const uint8_t *bytes) {
    return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

static uint64_t secret64(size_t offset) { return nbi_read_le64(default_secret + offset); }
static uint64_t secret64_pair(size_t offset) { return secret64(offset) ^ secret64(offset + 8); }

static uint32_t rotate32(uint32_t value, unsigned bits) { return value << bits | value >> (32 - bits); }
static uint64_t rotate64(uint64_t value, unsigned bits) { return value << bits | value >> (64 - bits); }

static uint32_t swap32(uint32_t value) {
    return value << 24 | (value & 0xFF00u) << 8 | (value >> 8 & 0xFF00u) | value >> 24;
}

static uint64_t swap64(uint64_t value) {
    return (uint64_t)swap32((uint32_t)value) << 32 | swap32((uint32_t)(value >> 32));
}

static nb_digest128 multiply128(uint64_t a, uint64_t b) {
#if defined(__SIZEOF_INT128__)
    __extension__ unsigned __int128 product = (unsigned __int128)a * b;
    return (nb_digest128){.low = (uint64_t)product, .high = (uint64_t)(product >> 64)};
#else
    uint64_t a_low = (uint32_t)a, a_high = a >> 32, b_low = (uint32_t)b, b_high = b >> 32;
    uint64_t low = a_low * b_low, cross = a_high * b_low + (low >> 32);
    uint64_t middle = a_low * b_high + (uint32_t)cross;
    return (nb_digest128){.low = middle << 32 | (uint32_t)low,
                          .high = a_high * b_high + (cross >> 32) + (middle >> 32)};
#endif
}

static uint64_t multiply_fold(uint64_t a, uint64_t b) {
    nb_digest128 product = multiply128(a, b);
    return product.low ^ product.high;
}

static uint64_t avalanche(uint64_t value) {
    value = (value ^ value >> 37) * PRIME_MIX_1;
    return value ^ value >> 32;
}

// The final mix of XXH3's ancestor, which the shortest inputs still use.
static uint64_t avalanche_strong(uint64_t value) {
    value = (value ^ value >> 33) * PRIME64_2;
    value = (value ^ value >> 29) * PRIME64_3;
    return value ^ value >> 32;
}

// --- 0 to 16 bytes ---

// The one to three bytes and their count, each byte read at least once without a branch on the size.
static uint32_t combine_1to3(const uint8_t *data, size_t size) {
    return (uint32_t)data[size - 1] | (uint32_t)size << 8 | (uint32_t)data[0] << 16 | (uint32_t)data[size >> 1] << 24;
}

static uint64_t spread_seed(uint64_t seed) { return seed ^ (uint64_t)swap32((uint32_t)seed) << 32; }

static uint64_t hash64_4to8(const uint8_t *data, size_t size, uint64_t seed) {
    uint64_t combined = read_le32(data + size - 4) | (uint64_t)read_le32(data) << 32;
    uint64_t value = (secret64_pair(8) - spread_seed(seed)) ^ combined;
    value ^= rotate64(value, 49) ^ rotate64(value, 24);
    value *= PRIME_MIX_2;
    value ^= (value >> 35) + size;
    value *= PRIME_MIX_2;
    return value ^ value >> 28;
}

static uint64_t hash64_9to16(const uint8_t *data, size_t size, uint64_t seed) {
    uint64_t low = (secret64_pair(24) + seed) ^ nbi_read_le64(data);
    uint64_t high = (secret64_pair(40) - seed) ^ nbi_read_le64(data + size - 8);
    return avalanche(size + swap64(low) + high + multiply_fold(low, high));
}

static uint64_t hash64_0to16(const uint8_t *data, size_t size, uint64_t seed) {
    if (size > 8) return hash64_9to16(data, size, seed);
    if (size > 3) return hash64_4to8(data, size, seed);
    if (size == 0) return avalanche_strong(seed ^ secret64_pair(56));
    uint64_t key = (uint64_t)(read_le32(default_secret) ^ read_le32(default_secret + 4)) + seed;
    return avalanche_strong(key ^ combine_1to3(data, size));
}

static nb_digest128 hash128_1to3(const uint8_t *data, size_t size, uint64_t seed) {
    uint32_t combined = combine_1to3(data, size);
    uint64_t key_low = (uint64_t)(read_le32(default_secret) ^ read_le32(default_secret + 4)) + seed;
    uint64_t key_high = (uint64_t)(read_le32(default_secret + 8) ^ read_le32(default_secret + 12)) - seed;
    return (nb_digest128){
        .low = avalanche_strong(key_low ^ combined),
        .high = avalanche_strong(key_high ^ rotate32(swap32(combined), 13)),
    };
}

static nb_digest128 hash128_4to8(const uint8_t *data, size_t size, uint64_t seed) {
    uint64_t combined = read_le32(data) | (uint64_t)read_le32(data + size - 4) << 32;
    uint64_t value = (secret64_pair(16) + spread_seed(seed)) ^ combined;
    nb_digest128 mixed = multiply128(value, PRIME64_1 + ((uint64_t)size << 2));
    mixed.high += mixed.low << 1;
    mixed.low ^= mixed.high >> 3;
    mixed.low = (mixed.low ^ mixed.low >> 35) * PRIME_MIX_2;
    mixed.low ^= mixed.low >> 28;
    mixed.high = avalanche(mixed.high);
    return mixed;
}

static nb_digest128 hash128_9to16(const uint8_t *data, size_t size, uint64_t seed) {
    uint64_t first = nbi_read_le64(data), last = nbi_read_le64(data + size - 8);
    uint64_t a = (secret64_pair(32) - seed) ^ first ^ last;
    uint64_t b = (secret64_pair(48) + seed) ^ last;
    nb_digest128 mixed = multiply128(a, PRIME64_1);
    mixed.low += (uint64_t)(size - 1) << 54;
    mixed.high += b + (uint64_t)(uint32_t)b * (PRIME32_2 - 1);
    mixed.low ^= swap64(mixed.high);
    nb_digest128 product = multiply128(mixed.low, PRIME64_2);
    product.high += mixed.high * PRIME64_2;
    return (nb_digest128){.low = avalanche(product.low), .high = avalanche(product.high)};
}

static nb_digest128 hash128_0to16(const uint8_t *data, size_t size, uint64_t seed) {
    if (size > 8) return hash128_9to16(data, size, seed);
    if (size > 3) return hash128_4to8(data, size, seed);
    if (size > 0) return hash128_1to3(data, size, seed);
    return (nb_digest128){
        .low = avalanche_strong(seed ^ secret64_pair(64)),
        .high = avalanche_strong(seed ^ secret64_pair(80)),
    };
}

// --- 17 to 240 bytes ---

static inline uint64_t mix16(const uint8_t *data, size_t secret_offset, uint64_t seed) {
    return multiply_fold(nbi_read_le64(data) ^ (secret64(secret_offset) + seed),
                         nbi_read_le64(data + 8) ^ (secret64(secret_offset + 8) - seed));
}

// One half of the 128-bit sum over two chunks: mixes `a`, and `b` unmixed, which the other half mixes in its turn.
static inline uint64_t mix_half(uint64_t sum, const uint8_t *a, const uint8_t *b, size_t secret_offset, uint64_t seed) {
    sum += mix16(a, secret_offset, seed);
    return sum ^ (nbi_read_le64(b) + nbi_read_le64(b + 8));
}

// 17 to 128: from both ends inwards, so that the chunks may overlap in the middle; the innermost pair comes first.
static uint64_t hash64_17to128(const uint8_t *data, size_t size, uint64_t seed) {
    uint64_t sum = size * PRIME64_1;
    for (size_t round = (size - 1) / 32 + 1; round-- > 0;) {
        sum += mix16(data + round * 16, round * 32, seed);
        sum += mix16(data + size - round * 16 - 16, round * 32 + 16, seed);
    }
    return avalanche(sum);
}

static uint64_t hash64_129to240(const uint8_t *data, size_t size, uint64_t seed) {
    uint64_t sum = size * PRIME64_1;
    for (size_t chunk = 0; chunk < 8; ++chunk) sum += mix16(data + chunk * 16, chunk * 16, seed);
    sum = avalanche(sum);
    for (size_t chunk = 8; chunk < size / 16; ++chunk) sum += mix16(data + chunk * 16, (chunk - 8) * 16 + 3, seed);
    sum += mix16(data + size - 16, 119, seed);
    return avalanche(sum);
}

static nb_digest128 finish128_17to240(uint64_t low, uint64_t high, size_t size, uint64_t seed) {
    uint64_t mixed = low * PRIME64_1 + high * PRIME64_4 + (size - seed) * PRIME64_2;
    return (nb_digest128){.low = avalanche(low + high), .high = 0 - avalanche(mixed)};
}

static nb_digest128 hash128_17to128(const uint8_t *data, size_t size, uint64_t seed) {
    uint64_t low = size * PRIME64_1, high = 0;
    for (size_t round = (size - 1) / 32 + 1; round-- > 0;) {
        const uint8_t *front = data + round * 16, *back = data + size - round * 16 - 16;
        low = mix_half(low, front, back, round * 32, seed);
        high = mix_half(high, back, front, round * 32 + 16, seed);
    }
    return finish128_17to240(low, high, size, seed);
}

static nb_digest128 hash128_129to240(const uint8_t *data, size_t size, uint64_t seed) {
    uint64_t low = size * PRIME64_1, high = 0;
    const uint8_t *chunk = data;
    for (size_t i = 0; i < 4; ++i, chunk += 32) {
        low = mix_half(low, chunk, chunk + 16, i * 32, seed);
        high = mix_half(high, chunk + 16, chunk, i * 32 + 16, seed);
    }
    low = avalanche(low);
    high = avalanche(high);
    for (size_t i = 4; i < size / 32; ++i, chunk += 32) {
        low = mix_half(low, chunk, chunk + 16, (i - 4) * 32 + 3, seed);
        high = mix_half(high, chunk + 16, chunk, (i - 4) * 32 + 19, seed);
    }
    chunk = data + size - 32; // the last 32 bytes in reverse order, with the seed reversed too
    low = mix_half(low, chunk + 16, chunk, 103, 0 - seed);
    high = mix_half(high, chunk, chunk + 16, 119, 0 - seed);
    return finish128_17to240(low, high, size, seed);
}

static uint64_t hash64_short(const uint8_t *data, size_t size, uint64_t seed) {
    if (size <= 16) return hash64_0to16(data, size, seed);
    return size <= 128 ? hash64_17to128(data, size, seed) : hash64_129to240(data, size, seed);
}

static nb_digest128 hash128_short(const uint8_t *data, size_t size, uint64_t seed) {
    if (size <= 16) return hash128_0to16(data, size, seed);
    return size <= 128 ? hash128_17to128(data, size, seed) : hash128_129to240(data, size, seed);
}

// --- longer than 240 bytes ---

static void lanes_init(uint64_t *lanes) {
    static const uint64_t start[NBI_LANE_COUNT] = {PRIME32_3, PRIME64_1, PRIME64_2, PRIME64_3,
                                                   PRIME64_4, PRIME32_2, PRIME64_5, PRIME32_1};
    memcpy(lanes, start, sizeof start);
}

static void write_le64(uint8_t *bytes, uint64_t value) {
    value = nbi_to_le64(value);
    memcpy(bytes, &value, sizeof value);
}

static void derive_secret(uint8_t *secret, uint64_t seed) {
    for (size_t offset = 0; offset < NB_HASH_SECRET_SIZE; offset += 16) {
        write_le64(secret + offset, secret64(offset) + seed);
        write_le64(secret + offset + 8, secret64(offset + 8) - seed);
    }
}

static uint64_t merge(const uint64_t *lanes, const uint8_t *secret, uint64_t start) {
    uint64_t sum = start;
    for (size_t lane = 0; lane < NBI_LANE_COUNT; lane += 2) {
        sum += multiply_fold(lanes[lane] ^ nbi_read_le64(secret + 8 * lane),
                             lanes[lane + 1] ^ nbi_read_le64(secret + 8 * lane + 8));
    }
    return avalanche(sum);
}

static uint64_t merge_low(const uint64_t *lanes, const uint8_t *secret, uint64_t size) {
    return merge(lanes, secret + SECRET_MERGE_LOW, size * PRIME64_1);
}

static nb_digest128 merge_both(const uint64_t *lanes, const uint8_t *secret, uint64_t size) {
    return (nb_digest128){
        .low = merge_low(lanes, secret, size),
        .high = merge(lanes, secret + SECRET_MERGE_HIGH, ~(size * PRIME64_2)),
    };
}

// Mixes in `count` stripes, scrambling at each end of a block. At least one byte must follow them: the stripe that
// holds the very last byte goes through mix_last instead.
static void mix_stripes(uint64_t *lanes, const uint8_t *secret, uint32_t *block_stripes, const uint8_t *data,
                        size_t count) {
    while (count > 0) {
        size_t part = (size_t)nbi_min_u64(count, BLOCK_STRIPES - *block_stripes);
        nbi_lanes_accumulate(lanes, data, secret + 8 * *block_stripes, part);
        data += part * NBI_STRIPE_SIZE;
        count -= part;
        *block_stripes += (uint32_t)part;
        if (*block_stripes < BLOCK_STRIPES) return;
        nbi_lanes_scramble(lanes, secret + SECRET_SCRAMBLE);
        *block_stripes = 0;
    }
}

static void mix_last(uint64_t *lanes, const uint8_t *secret, const uint8_t *last_stripe) {
    nbi_lanes_accumulate(lanes, last_stripe, secret + SECRET_LAST_STRIPE, 1);
}

// Fills the lanes from a whole input; returns the secret to merge with: `derived`, or the default for seed 0.
static const uint8_t *mix_long(uint64_t *lanes, uint8_t *derived, const uint8_t *data, size_t size, uint64_t seed) {
    const uint8_t *secret = default_secret;
    if (seed != 0) {
        derive_secret(derived, seed);
        secret = derived;
    }
    uint32_t block_stripes = 0;
    lanes_init(lanes);
    mix_stripes(lanes, secret, &block_stripes, data, (size - 1) / NBI_STRIPE_SIZE);
    mix_last(lanes, secret, data + size - NBI_STRIPE_SIZE);
    return secret;
}

uint64_t nb_hash64(const void *data, size_t size_bytes, uint64_t seed) {
    if (data == NULL && size_bytes != 0) {
        NBI_FAIL_NULL("data");
        size_bytes = 0;
    }
    if (size_bytes <= SHORT_SIZE_MAX) return hash64_short((const uint8_t *)data, size_bytes, seed);
    uint64_t lanes[NBI_LANE_COUNT];
    uint8_t derived[NB_HASH_SECRET_SIZE];
    const uint8_t *secret = mix_long(lanes, derived, (const uint8_t *)data, size_bytes, seed);
    return merge_low(lanes, secret, size_bytes);
}

// Not inlined, so that nb_hash128 only jumps: with this frame inside it gcc passes short results through memory, two
// stores and one load twice as wide, which costs as much as the hash.
NB_NOINLINE static nb_digest128 hash128_long(const uint8_t *data, size_t size, uint64_t seed) {
    uint64_t lanes[NBI_LANE_COUNT];
    uint8_t derived[NB_HASH_SECRET_SIZE];
    const uint8_t *secret = mix_long(lanes, derived, data, size, seed);
    return merge_both(lanes, secret, size);
}

nb_digest128 nb_hash128(const void *data, size_t size_bytes, uint64_t seed) {
    if (data == NULL && size_bytes != 0) {
        NBI_FAIL_NULL("data");
        size_bytes = 0;
    }
    if (size_bytes <= SHORT_SIZE_MAX) return hash128_short((const uint8_t *)data, size_bytes, seed);
    return hash128_long((const uint8_t *)data, size_bytes, seed);
}

// --- in pieces ---

nb_result nb_hash_init(nb_hash_state *state, uint64_t seed) {
    if (state == NULL) return NBI_FAIL_NULL("state");
    memset(state, 0, sizeof *state);
    state->seed = seed;
    state->mark = STATE_MARK;
    lanes_init(state->lanes);
    derive_secret(state->secret, seed);
    return NB_OK;
}

// Reports a state that cannot be used, in the name of the public function.
static bool is_usable(const nb_hash_state *state, const char *function) {
    if (state != NULL && state->mark == STATE_MARK) return true;
    nbi_fail(NULL, state == NULL ? NB_ITEM_BASE_NULL : NB_ITEM_BASE_ARGUMENT, NB_ERR_MISUSE, function, "%s",
             state == NULL ? "state is NULL" : "state was not initialised with nb_hash_init");
    return false;
}

// Mixes the whole buffer in, then as much of data as leaves at least one byte; returns how many bytes of data that was.
// The last mixed stripe stays in the buffer's end, because the final stripe may reach back into it.
static size_t mix_through(nb_hash_state *state, const uint8_t *data, size_t size) {
    const size_t buffer_stripes = NB_HASH_BUFFER_SIZE / NBI_STRIPE_SIZE;
    mix_stripes(state->lanes, state->secret, &state->block_stripes, state->buffer, buffer_stripes);
    size_t stripes = (size - 1) / NBI_STRIPE_SIZE;
    if (stripes == 0) return 0;
    size_t mixed = stripes * NBI_STRIPE_SIZE;
    mix_stripes(state->lanes, state->secret, &state->block_stripes, data, stripes);
    memcpy(state->buffer + NB_HASH_BUFFER_SIZE - NBI_STRIPE_SIZE, data + mixed - NBI_STRIPE_SIZE, NBI_STRIPE_SIZE);
    return mixed;
}

nb_result nb_hash_update(nb_hash_state *state, const void *data, size_t size_bytes) {
    if (!is_usable(state, __func__)) return NB_ERR_MISUSE;
    if (data == NULL && size_bytes != 0) return NBI_FAIL_NULL("data");
    if (size_bytes == 0) return NB_OK;
    const uint8_t *bytes = (const uint8_t *)data;
    state->total_bytes += size_bytes;
    size_t room = NB_HASH_BUFFER_SIZE - state->buffered_bytes;
    if (size_bytes > room) {
        memcpy(state->buffer + state->buffered_bytes, bytes, room);
        bytes += room;
        size_bytes -= room;
        size_t mixed = mix_through(state, bytes, size_bytes);
        bytes += mixed;
        size_bytes -= mixed;
        state->buffered_bytes = 0;
    }
    memcpy(state->buffer + state->buffered_bytes, bytes, size_bytes);
    state->buffered_bytes += (uint32_t)size_bytes;
    return NB_OK;
}

// Finishes a copy of the lanes, so that the state can go on.
static void mix_rest(const nb_hash_state *state, uint64_t *lanes) {
    memcpy(lanes, state->lanes, sizeof state->lanes);
    size_t buffered = state->buffered_bytes;
    if (buffered >= NBI_STRIPE_SIZE) {
        uint32_t block_stripes = state->block_stripes;
        mix_stripes(lanes, state->secret, &block_stripes, state->buffer, (buffered - 1) / NBI_STRIPE_SIZE);
        mix_last(lanes, state->secret, state->buffer + buffered - NBI_STRIPE_SIZE);
        return;
    }
    uint8_t last[NBI_STRIPE_SIZE];
    size_t older = NBI_STRIPE_SIZE - buffered;
    memcpy(last, state->buffer + NB_HASH_BUFFER_SIZE - older, older);
    memcpy(last + older, state->buffer, buffered);
    mix_last(lanes, state->secret, last);
}

uint64_t nb_hash_digest64(const nb_hash_state *state) {
    if (!is_usable(state, __func__)) return 0;
    if (state->total_bytes <= SHORT_SIZE_MAX) {
        return hash64_short(state->buffer, (size_t)state->total_bytes, state->seed);
    }
    uint64_t lanes[NBI_LANE_COUNT];
    mix_rest(state, lanes);
    return merge_low(lanes, state->secret, state->total_bytes);
}

nb_digest128 nb_hash_digest128(const nb_hash_state *state) {
    if (!is_usable(state, __func__)) return (nb_digest128){0};
    if (state->total_bytes <= SHORT_SIZE_MAX) {
        return hash128_short(state->buffer, (size_t)state->total_bytes, state->seed);
    }
    uint64_t lanes[NBI_LANE_COUNT];
    mix_rest(state, lanes);
    return merge_both(lanes, state->secret, state->total_bytes);
}
